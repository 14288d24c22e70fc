"""Compiled code on the disk: the private folder, and one file per function and signature.

Compiled code is read back by ``pickle``, which executes what a file contains. :func:`private_folder` therefore accepts
a folder only if it belongs to the user and no other user can write to it, or to a folder above it. Otherwise nothing is
kept, and one warning says why; a folder that merely cannot be written to is ignored silently.

:class:`KernelCache` takes the place of numba's own cache, which raises what the disk raises (no space, no permission),
trusts what it reads, looks only at the file of the cached function, and names its files by an index that two processes
can overwrite for each other. Here a failure to write means that nothing is kept. A file begins with the digest of the
rest, and the rest with what it was compiled from (:mod:`.keys`): a file that is truncated, damaged or
of another function is not used, and the function is compiled again. Files and folders that nobody has read for a month
are removed.
"""

import hashlib
import os
import pickle
import re
import secrets
import stat
import sys
import tempfile
import time
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from rankwise._kernels.machine.level import level

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


def user_cache() -> Path:
    """The folder of this platform for files that can be made again."""
    moved = os.environ.get("RANKWISE_CACHE_DIR")
    if moved:
        return Path(moved)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home()) / "rankwise" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "rankwise"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rankwise"


# numba's settings that change machine code; numba's own key has none of them
SETTINGS = (
    "BOUNDSCHECK",
    "DEBUGINFO_DEFAULT",
    "ENABLE_AVX",
    "LLVM_REFPRUNE_FLAGS",
    "LLVM_REFPRUNE_PASS",
    "LOOP_VECTORIZE",
    "OPT",
    "SLP_VECTORIZE",
    "USING_SVML",
)


def settings() -> dict[str, str]:
    """The settings of numba that change machine code."""
    return {name: str(getattr(numba.config, name, None)) for name in SETTINGS}


def python_tag() -> str:
    """The version of Python, as far as compiled code depends on it."""
    return f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')}"


def versions() -> dict[str, str]:
    """The versions that compiled code depends on."""
    return {"python": python_tag(), "numba": numba.__version__, "llvmlite": llvmlite.__version__}


_SYMBOLS = "unique"  # code of before, in which symbols of different functions may be equal, is in other folders


def cache_path() -> Path:
    """Where code for these versions, settings and level of processors is kept, if it can be.

    Returns
    -------
    folder : Path
        The folder, which need not exist.

    Raises
    ------
    RuntimeError
        If there is no home folder.
    """
    meant = level()
    made_by = hashlib.sha256(repr((_SYMBOLS, versions(), settings(), meant and meant.name)).encode()).hexdigest()[:16]
    checked = "-checked" if numba.config.BOUNDSCHECK else ""  # type: ignore[attr-defined]
    return user_cache() / f"kernels-{made_by}{checked}"


@cache
def cache_folder() -> str | None:
    """The folder of :func:`cache_path`, made if needed; None where nothing can be kept."""
    try:
        return private_folder(cache_path())
    except RuntimeError:
        return None


# -------------------------------------------------------------------------------------------------------------- files

_DIGEST = hashlib.sha256().digest_size
_DAY = 24 * 3600.0


class KernelCache:
    """The compiled forms of kernels in one folder.

    Parameters
    ----------
    folder : str
        Where files are kept, private to the user.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def load(self, key: tuple[Any, ...], target_context: Any) -> Any:
        """What was compiled under a key.

        Parameters
        ----------
        key : tuple
            What the code depends on; the first item is the name of the function.
        target_context : numba target context
            Where the code is linked in.

        Returns
        -------
        result : numba CompileResult or None
            None where there is none that can be used.
        """
        try:
            path = self.path(key)
            with open(path, "rb") as file:
                status = os.fstat(file.fileno())
                if hasattr(os, "geteuid") and status.st_uid != os.geteuid():
                    return None
                sealed = file.read()
            content = sealed[_DIGEST:]
            if hashlib.sha256(content).digest() != sealed[:_DIGEST]:
                return None
            found, reduced = pickle.loads(content)
            if found != key:
                return None
            if time.time() - status.st_mtime > _DAY:  # not every file system notes when a file was read
                os.utime(path)
            return CompileResult._rebuild(target_context, *reduced)
        except Exception:  # absent, unreadable or of another numba: the function is compiled again
            return None

    def save(self, key: tuple[Any, ...], result: Any) -> None:
        """Keep what was compiled under a key, if the disk allows it.

        Parameters
        ----------
        key : tuple
            What the code depends on.
        result : numba CompileResult
            The code.
        """
        if any(not lifted.can_cache for lifted in result.lifted) or result.library.has_dynamic_globals:
            return
        content = dumps((key, result._reduce()))
        path = self.path(key)
        part = f"{path}.{secrets.token_hex(6)}.part"
        try:
            with open(part, "xb") as file:
                file.write(hashlib.sha256(content).digest() + content)
            os.replace(part, path)
            prune(Path(self.folder))
        except OSError:  # no space, no permission, a quota: nothing is kept
            with suppress(OSError):
                os.unlink(part)

    def path(self, key: tuple[Any, ...]) -> str:
        """The file of a key; two keys that print alike share it, and the last one written is kept."""
        digest = hashlib.sha256(repr(key).encode("utf-8", "backslashreplace")).hexdigest()[:20]
        name = str(key[0]).rpartition(".")[2]
        plain = "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in name)
        return os.path.join(self.folder, f"{plain[:60]}-{digest}.kernel")


# ------------------------------------------------------------------------------------------------------------ pruning

UNUSED_DAYS = 30
_FOLDERS = re.compile(r"kernels-[0-9a-f]{16}(-checked)?")
_FILES = re.compile(r"\w+-[0-9a-f]{20}\.kernel(\.[0-9a-f]{12}\.part)?")


@cache
def prune(folder: Path) -> None:
    """Remove compiled code that nobody has read for a month, from the folder in use and from those beside it.

    It is done once in a process that compiles something. Only files that :class:`KernelCache` could have written are
    removed, only in real folders of the user whose names are of its pattern, and a folder only when it is empty.

    Parameters
    ----------
    folder : Path
        The folder in use.
    """
    before = time.time() - UNUSED_DAYS * _DAY
    with suppress(OSError):
        for beside in os.scandir(folder.parent):
            if _FOLDERS.fullmatch(beside.name) and beside.is_dir(follow_symlinks=False) and _is_own(beside):
                _prune_one(beside.path, before, keep=beside.name == folder.name)


def _prune_one(folder: str, before: float, keep: bool) -> None:
    """Remove the files of one folder that were last read before a time, and the folder if nothing is left."""
    with suppress(OSError):
        left = keep or os.stat(folder).st_mtime >= before  # another process may be about to write its first file
        for file in os.scandir(folder):
            status = file.stat(follow_symlinks=False)
            if _FILES.fullmatch(file.name) and max(status.st_atime, status.st_mtime) < before:
                os.unlink(file.path)
            else:
                left = True
        if not left:
            os.rmdir(folder)


def _is_own(entry: "os.DirEntry[str]") -> bool:
    """Whether an entry of a folder belongs to the user."""
    return not hasattr(os, "geteuid") or entry.stat(follow_symlinks=False).st_uid == os.geteuid()
