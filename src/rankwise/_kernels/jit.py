"""Compile once per machine: numba with a disk cache keyed by the sources of the package.

:func:`kernel` is the decorator of every compiled function, :func:`compiled` fixes the signature of a driver, and
:func:`typed_function` makes a kernel an argument of such a driver. numba's own cache looks only at the file of the
cached function: a helper that is edited in another file would leave the old code running. The name of the cache folder
is therefore a hash of every source that kernels are made of and of numba's version. :mod:`rankwise._kernels.cache`
says which folder may be used and how files are kept in it.
"""

import hashlib
import os
import sys
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core import sigutils
from numba.core.caching import NullCache
from numba.core.ccallback import CFunc

from rankwise._kernels.cache import KernelCache, private_folder

_decorating = threading.Lock()

# Types of C-contiguous vectors in signatures; arrays of the caller may be read-only, and then only the _IN types fit.
FLOATS, FLOATS_IN = types.Array(types.float64, 1, "C"), types.Array(types.float64, 1, "C", readonly=True)
INTS, INTS_IN = types.Array(types.int64, 1, "C"), types.Array(types.int64, 1, "C", readonly=True)


def features_in(dtype: "np.dtype[Any]") -> Any:
    """The type of a read-only feature matrix of float32 or float64 in a signature."""
    return types.Array(types.float32 if dtype == np.float32 else types.float64, 2, "C", readonly=True)


def _user_cache() -> Path:
    """The folder of this platform for files that can be made again."""
    moved = os.environ.get("RANKWISE_CACHE_DIR")
    if moved:
        return Path(moved)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home()) / "rankwise" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "rankwise"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rankwise"


def _cache_folder() -> str | None:
    """The folder for this version of the sources, or None where nothing can be written."""
    digest = hashlib.sha256(numba.__version__.encode())
    package = Path(__file__).parents[1]
    for place, inside, files in os.walk(package):  # on every start: twice as fast as by Path
        inside.sort()
        for name in sorted(files):
            if name.endswith(".py"):
                with open(os.path.join(place, name), "rb") as file:
                    text = file.read()
                if b"kernel" in text:  # the constants of a module are compiled in, so its whole text is hashed
                    digest.update(os.path.relpath(place, package).encode() + name.encode() + text)
    try:
        # numba's own key lacks this setting: one folder would give unchecked code to a checked run
        checked = "-checked" if numba.config.BOUNDSCHECK else ""  # type: ignore[attr-defined]
        return private_folder(_user_cache() / f"kernels-{digest.hexdigest()[:16]}{checked}")
    except RuntimeError:  # no home folder
        return None


_FOLDER = _cache_folder()
_OPTIONS: dict[str, Any] = {"error_model": "numpy"}


def _cache_of(plain: Callable[..., Any], form: str) -> Any:
    """Where the compiled forms of a function are kept: on the disk, or nowhere."""
    if _FOLDER is None:
        return NullCache()
    try:
        return KernelCache(plain, _FOLDER, form)
    except (OSError, TypeError):  # a function without a file, such as one typed at a prompt
        return NullCache()


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """``numba.njit`` that releases the GIL, divides as NumPy does and caches in the folder of the package.

    Nothing is compiled at import: a kernel is compiled (or loaded) at its first call, or by :func:`compiled`.

    Parameters
    ----------
    function : callable, default=None
        The plain function; None makes a decorator with options.
    **options : keyword arguments
        The options of ``numba.njit``, such as ``fastmath`` and ``inline``.

    Returns
    -------
    kernel : numba dispatcher
        The compiled function, or the decorator.
    """

    def decorate(plain: Callable[..., Any]) -> Any:
        dispatcher = numba.njit(nogil=True, **{**_OPTIONS, **options})(plain)
        if hasattr(dispatcher, "_cache"):  # not where NUMBA_DISABLE_JIT leaves it a plain function
            dispatcher._cache = _cache_of(plain, "Python")
        return dispatcher

    return decorate if function is None else decorate(function)


def compiled(function: Any, signature: Any) -> Any:
    """A kernel compiled for exactly one signature, so that it can take typed functions.

    Parameters
    ----------
    function : numba dispatcher
        The kernel.
    signature : numba signature
        The only signature that it is compiled for.

    Returns
    -------
    function : numba dispatcher
        The same kernel.
    """
    if not function.signatures:
        with _decorating:
            if not function.signatures:
                function.compile(signature)
                function.disable_compile()
    return function


@cache
def typed_function(function: Any, signature: Any) -> Any:
    """A kernel as an argument of another one that was :func:`compiled` to take functions of this signature.

    The argument is a C function. The type of the kernel itself would have to be inferred at every call (90 us).

    Parameters
    ----------
    function : numba dispatcher
        The kernel.
    signature : numba signature
        Its signature.

    Returns
    -------
    function : numba CFunc
        The C function.
    """
    made: Any = CFunc(function.py_func, sigutils.normalize_signature(signature), locals={}, options=dict(_OPTIONS))
    made._cache = _cache_of(function.py_func, "C")  # numba.cfunc compiles before a cache can be put there
    made.compile()
    return made
