"""Compile once per machine: numba with a disk cache keyed by the sources of the package.

:func:`kernel` is the decorator of every compiled function, :func:`compiled` fixes the signature of a driver, and
:func:`typed_function` makes a kernel an argument of such a driver. numba's own cache looks only at the file of the
cached function: a helper that is edited in another file would leave the old code running. The name of the cache folder
is therefore a hash of every source that kernels are made of and of numba's version.

Compiled code is read back by ``pickle``, which executes what a file contains. :func:`private_folder` therefore accepts
a folder only if it belongs to the user and no other user can write to it, or to a folder above it. Otherwise nothing is
kept, and one warning says why; a folder that merely cannot be written to is ignored silently.

:class:`KernelCache` keeps one file per function and signature. numba's own cache raises what the disk raises (no space,
no permission), trusts what it reads, and names its files by an index that two processes can overwrite for each other.
Here a failure to write means that nothing is kept. A file begins with the digest of the rest, and the rest with what it
was compiled from: a file that is truncated, damaged or of another function is not used, and the function is compiled
again.
"""

import hashlib
import inspect
import os
import pickle
import secrets
import stat
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core import sigutils
from numba.core.caching import NullCache
from numba.core.ccallback import CFunc
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

# --------------------------------------------------------------------------------------------------------- the folder


_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def private_folder(folder: Path) -> str | None:
    """A folder that only the user can write to.

    Parameters
    ----------
    folder : Path
        A folder for compiled code alone, inside the cache folder of the user or inside ``RANKWISE_CACHE_DIR``. It is
        made with mode 0700 where it does not exist.

    Returns
    -------
    folder : str or None
        None where nothing can or should be kept.

    Warns
    -----
    RuntimeWarning
        If other users could write to the folder.
    """
    try:
        # Links above are followed once, so that the folder that is checked is the one that is used.
        folder = Path(os.path.realpath(folder.parent)) / folder.name
        _make(folder)
        if os.name == "posix":
            reason = _reason_against(folder)
            if reason:
                warnings.warn(
                    f"rankwise compiles its kernels anew in this process and keeps nothing in {folder}: {reason}; "
                    "let RANKWISE_CACHE_DIR name a folder that is yours and that only you can write to",
                    RuntimeWarning,
                    stacklevel=2,
                )
                return None
        with tempfile.TemporaryFile(dir=folder):
            return str(folder)
    except (OSError, ValueError):  # ValueError: a name that no folder can have
        return None


def _make(folder: Path) -> None:
    """Make the folder and those above it for the user alone."""
    if not folder.parent.exists():
        _make(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


def _reason_against(folder: Path) -> str | None:
    """Why compiled code in that folder, whose path holds no link but its last part, cannot be trusted; or None."""
    if stat.S_ISLNK(os.lstat(folder).st_mode):
        return "it is a symbolic link"
    for place in (folder, folder.parent):
        status = os.lstat(place)
        if place != folder and _is_shared_safely(status):
            continue
        if status.st_mode & _OTHERS and not _is_private_group(status):
            return f"others can write to {place} (mode {stat.S_IMODE(status.st_mode):04o})"
        if status.st_uid != os.geteuid():
            return f"{place} belongs to user {status.st_uid}, and you are user {os.geteuid()}"
    for place in folder.parents:
        status = os.lstat(place)
        if status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
            return f"others can write to {place} (mode {stat.S_IMODE(status.st_mode):04o})"
    return None


def _is_shared_safely(status: os.stat_result) -> bool:
    """Whether a folder belongs to root and protects the files of its users from each other, as /tmp does."""
    return status.st_uid == 0 and (bool(status.st_mode & stat.S_ISVTX) or not status.st_mode & _OTHERS)


def _is_private_group(status: os.stat_result) -> bool:
    """Whether only the group can write, and the user is alone in it, as many systems set users up."""
    if status.st_mode & stat.S_IWOTH:
        return False
    try:
        import grp
        import pwd

        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(status.st_gid)
    except (ImportError, KeyError):
        return False
    return group.gr_gid == user.pw_gid and group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}


# -------------------------------------------------------------------------------------------------------------- files

_DIGEST = hashlib.sha256().digest_size


class KernelCache(NullCache):
    """The compiled forms of one function, as numba's dispatchers request them.

    Parameters
    ----------
    function : callable
        The plain function.
    folder : str
        Where files are kept, private to the user.
    form : str
        What it is compiled to; a function for Python differs from one for C.
    """

    def __init__(self, function: Callable[..., Any], folder: str, form: str) -> None:
        self._function = function
        self._folder = folder
        self._form = form
        # A function of another package can change without a change of ours: its source is part of the key.
        with open(inspect.getfile(function), "rb") as file:
            self._source = hashlib.sha256(file.read()).hexdigest()

    @property
    def cache_path(self) -> str:
        """The folder."""
        return self._folder

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What was compiled for this signature, or None where it has to be compiled."""
        target_context.refresh()
        try:
            key = self._key(sig, target_context.codegen())
            with open(self._path(key), "rb") as file:
                if hasattr(os, "geteuid") and os.fstat(file.fileno()).st_uid != os.geteuid():
                    return None
                sealed = file.read()
            content = sealed[_DIGEST:]
            if hashlib.sha256(content).digest() != sealed[:_DIGEST]:
                return None
            found, reduced = pickle.loads(content)
            return CompileResult._rebuild(target_context, *reduced) if found == key else None
        except Exception:  # absent, unreadable or of another numba: the function is compiled again
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled for this signature, if the disk allows it."""
        if any(not lifted.can_cache for lifted in data.lifted) or data.library.has_dynamic_globals:
            return
        key = self._key(sig, data.codegen)
        content = dumps((key, data._reduce()))
        path = self._path(key)
        part = f"{path}.{secrets.token_hex(6)}.part"
        try:
            with open(part, "xb") as file:
                file.write(hashlib.sha256(content).digest() + content)
            os.replace(part, path)
        except OSError:  # no space, no permission, a quota: nothing is kept
            with suppress(OSError):
                os.unlink(part)

    def _key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        """Everything that the machine code depends on, except for the versions in the name of the folder."""
        code = self._function.__code__
        place = (self._function.__module__, self._function.__qualname__, code.co_firstlineno)
        cells = tuple(cell.cell_contents for cell in self._function.__closure__ or ())
        written = hashlib.sha256(code.co_code + (dumps(cells) if cells else b"")).hexdigest()
        return (*place, self._form, self._source, written, sig, codegen.magic_tuple())

    def _path(self, key: tuple[Any, ...]) -> str:
        """The file of a key; two keys that print alike share it, and the last one written is kept."""
        digest = hashlib.sha256(repr(key).encode("utf-8", "backslashreplace")).hexdigest()[:20]
        plain = "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in self._function.__name__)
        return os.path.join(self._folder, f"{plain[:60]}-{digest}.kernel")


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
