"""The folder of compiled code: private, since code that others could have put there would be run.

Compiled code is read back by ``pickle``, which runs what a file tells it to. A folder is therefore used only if it
belongs to the user and nobody else can write to it, or to a folder above it. Otherwise nothing is kept, and one
warning says why; where the folder merely cannot be written, nothing is kept and nothing is said.
"""

import hashlib
import inspect
import os
import pickle
import secrets
import stat
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def private_folder(folder: Path) -> str | None:
    """The folder, made with mode 0700 where it is not there; None where nothing can or should be kept.

    Parameters
    ----------
    folder : a folder of its own for compiled code, inside the folder of the user's or of ``RANKWISE_CACHE_DIR``
    """
    try:
        # Links above are followed once, so that what is looked at is what is used.
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
    except (OSError, ValueError):  # ValueError: a name that cannot be one of a folder
        return None


def _make(folder: Path) -> None:
    """Make the folder and those above it, for nobody but the user."""
    if not folder.parent.exists():
        _make(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


def _reason_against(folder: Path) -> str | None:
    """Why compiled code in that folder, whose path holds no link but its last part, cannot be trusted."""
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
    """Whether a folder is root's and nobody can rename what others have in it, as in /tmp."""
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


# ------------------------------------------------------------------------------------------------------- kernel cache
# Compiled code on the disk: one sealed file for each function and signature.
#
# numba's own cache raises what the disk raises (no room, no permission), trusts what it reads, and names its files by
# an
# index that two processes can overwrite for each other. Here a failure to write means that nothing is kept. A file
# begins
# with the digest of the rest, and the rest with what it was compiled from: a file that is cut short, damaged or another
# function's is not used, and the function is compiled again.


_DIGEST = hashlib.sha256().digest_size


class KernelCache(NullCache):
    """The compiled forms of one function, as numba's dispatchers ask for them.

    Parameters
    ----------
    function : the plain function
    folder : where files are kept, private to the user (:mod:`rankwise._kernels.cache`)
    form : what it is compiled to, as a function for Python is not one for C
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
        """What was compiled for this signature, or None where it has to be compiled (again)."""
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
        except Exception:  # not there, unreadable, of another numba: whatever it is, compiling mends it
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled for this signature, if the disk takes it."""
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
        except OSError:  # no room, no permission, a quota: then there is no cache
            with suppress(OSError):
                os.unlink(part)

    def _key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        """Everything that the machine code depends on, the versions in the folder's name apart."""
        code = self._function.__code__
        place = (self._function.__module__, self._function.__qualname__, code.co_firstlineno)
        cells = tuple(cell.cell_contents for cell in self._function.__closure__ or ())
        written = hashlib.sha256(code.co_code + (dumps(cells) if cells else b"")).hexdigest()
        return (*place, self._form, self._source, written, sig, codegen.magic_tuple())

    def _path(self, key: tuple[Any, ...]) -> str:
        """One name for one key; two keys that print alike share it, and the one that was written last has it."""
        digest = hashlib.sha256(repr(key).encode("utf-8", "backslashreplace")).hexdigest()[:20]
        plain = "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in self._function.__name__)
        return os.path.join(self._folder, f"{plain[:60]}-{digest}.kernel")
