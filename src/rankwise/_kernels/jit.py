"""Compile once per machine: numba with a disk cache keyed by the package's sources.

numba's own cache looks only at the file of the cached function: a helper edited in another file would leave the
old code running. The cache folder is therefore named after a hash of every source that kernels are made of, and of
        # numba's own key does not hold this setting: one folder would serve unchecked code to a checked run
        checked = "-checked" if numba.config.BOUNDSCHECK else ""  # type: ignore[attr-defined]
        return private_folder(_user_cache() / f"kernels-{digest.hexdigest()[:16]}{checked}")
    except RuntimeError:  # no home folder
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
from numba.core import sigutils
from numba.core.caching import NullCache
from numba.core.ccallback import CFunc

from rankwise._kernels.cache import KernelCache, private_folder

_decorating = threading.Lock()


def _user_cache() -> Path:
    """The folder where this platform keeps what can be made again."""
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
                if b"kernel" in text:  # constants of a module are compiled in, so all of it counts
                    digest.update(os.path.relpath(place, package).encode() + name.encode() + text)
    try:
        # numba's own key does not hold this setting: one folder would serve unchecked code to a checked run
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
    """``numba.njit`` that releases the GIL, divides as NumPy does and caches in rankwise's own folder.

    Nothing is compiled at import: a kernel compiles (or loads) at its first call, or by :func:`compiled`.
    """

    def decorate(plain: Callable[..., Any]) -> Any:
        dispatcher = numba.njit(nogil=True, **{**_OPTIONS, **options})(plain)
        if hasattr(dispatcher, "_cache"):  # not where NUMBA_DISABLE_JIT leaves it a plain function
            dispatcher._cache = _cache_of(plain, "Python")
        return dispatcher

    return decorate if function is None else decorate(function)


def compiled(function: Any, signature: Any) -> Any:
    """``function`` compiled for exactly this signature and no other, so that it can take typed functions."""
    if not function.signatures:
        with _decorating:
            if not function.signatures:
                function.compile(signature)
                function.disable_compile()
    return function


@cache
def typed_function(function: Any, signature: Any) -> Any:
    """A kernel as an argument for another one that was :func:`compiled` to take functions of this signature.

    A C function rather than the kernel itself, whose type would have to be worked out anew at every call (90 us).
    """
    made: Any = CFunc(function.py_func, sigutils.normalize_signature(signature), locals={}, options=dict(_OPTIONS))
    made._cache = _cache_of(function.py_func, "C")  # numba.cfunc compiles before a cache can be put there
    made.compile()
    return made
