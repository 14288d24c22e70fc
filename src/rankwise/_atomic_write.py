"""Write files atomically: a file is written beside its target and renamed, and an error leaves nothing behind.

The file in progress is ``.NAME.TOKEN.part`` in the folder of its target, locked by its writer. When it is complete it
is flushed to the disk (``fsync``), takes the mode and owner of the file that it replaces, and is renamed; then the
folder is flushed. A process that has the old file open or mapped keeps the old one. A writer that is killed leaves its
``.part`` file without a lock, and the next writer of the same target removes it. :func:`new_folder` does the same for
folders.
"""

import errno
import glob
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rankwise._files import path_of
from rankwise.errors import RankwiseError

try:
    import fcntl
except ImportError:  # Windows, where an open file cannot be removed
    fcntl = None  # type: ignore[assignment]

_LONGEST = 200  # bytes of the target's name in the part's: file systems allow 255 in all
_PART = re.compile(r"\..*\.[0-9a-f]{12}\.part", re.DOTALL)
_NO_SYNC = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)  # of file systems without fsync
_UNLOCKED = 86_400  # seconds after which a part counts as left behind, on systems without locks


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A new, empty file in the folder of ``path``: renamed to it on success, removed on failure.

    A symbolic link stays one, and the file that it points to is replaced. A new file has the mode that the umask gives;
    a replaced one keeps its mode, and its owner and group as far as the system allows.

    Parameters
    ----------
    path : path
        The target.

    Yields
    ------
    part : Path
        The file to write to.

    Raises
    ------
    RankwiseError
        If the folder does not exist, or if the target is something other than a regular file.
    """
    name = path_of(path)
    with refusing(name):
        target = Path(os.path.realpath(name))
        if not target.parent.is_dir():
            raise RankwiseError(f"{name} cannot be written: the folder {target.parent} does not exist")
        if target.is_dir():
            raise RankwiseError(f"{name} cannot be written: it is a folder")
        old = _status(target)
        if old is not None and not stat.S_ISREG(old.st_mode):  # renaming onto /dev/null would remove the device
            raise RankwiseError(f"{name} cannot be written: it is not a regular file")
        remove_parts(target.parent, target.name)
        part, held = _new_part(target, private=old is not None)
    try:
        yield part
        with refusing(name):
            if old is not None:
                _inherit(held, old)
            _sync(held)
            if fcntl is None:  # Windows renames nothing that is open
                held = _close(held)
            os.replace(part, target)
            _sync_folder(target.parent)
    finally:
        _close(held)
        with suppress(OSError):  # usually renamed; a failure of the clean-up must not hide the error before it
            part.unlink(missing_ok=True)


@contextmanager
def refusing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn what the system refuses (no space, no permission) into an error that names the file.

    Parameters
    ----------
    path : path
        The file that is written.

    Yields
    ------
    None
        Nothing.
    """
    try:
        yield
    except OSError as error:
        raise RankwiseError(f"{os.fspath(path)} cannot be written: {error.strerror or error}") from error


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """:func:`atomic_write` for a body that only writes: what the system refuses raises an error that names the file.

    Parameters
    ----------
    path : path
        The target.

    Yields
    ------
    part : Path
        The file to write to.
    """
    with refusing(path), atomic_write(path) as part:
        yield part


def remove_parts(folder: Path, name: str = "", *, ending: str = "") -> None:
    """Remove the parts that killed writers have left in a folder: those without a lock.

    Parameters
    ----------
    folder : Path
        Where to look.
    name : str, default=""
        The name of their target; empty for any target with the ending.
    ending : str, default=""
        The ending of the target's name, where no name is given.
    """
    with suppress(OSError):  # a failure of the clean-up must not stop the writer
        with os.scandir(folder) as entries:
            found = [entry.name for entry in entries if _PART.fullmatch(entry.name)]
        for part in found:
            begin = part[: -len("0123456789ab.part")]
            if begin == _prefix(name) or (not name and begin.endswith(f"{ending}.")):
                with suppress(OSError):  # no permission, or another process was quicker
                    _remove_if_left(folder / part)


def _prefix(name: str) -> str:
    """The beginning of the names of the parts of a target."""
    return f".{name.encode('utf-8', 'surrogateescape')[:_LONGEST].decode('utf-8', 'ignore')}."


def _status(target: Path) -> os.stat_result | None:
    """The status of the target, or None; links have been followed, so a link that is left belongs to a loop."""
    try:
        return os.lstat(target)
    except FileNotFoundError:
        return None


def _new_part(target: Path, private: bool) -> tuple[Path, int]:
    """(path, descriptor) of an empty file that is locked for as long as the descriptor is open.

    A private file can be opened by its owner alone until it has the mode of the file that it replaces.
    """
    while True:
        part = target.with_name(f"{_prefix(target.name)}{secrets.token_hex(6)}.part")
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        held = os.open(part, flags, 0o600 if private else 0o666)
        locked = take_lock(held)
        # Before it was locked, another process may have removed it as left behind: then try again.
        if locked is False or (locked and _is_at(held, part)):
            return part, held
        os.close(held)


def take_lock(descriptor: int) -> bool | None:
    """Take the lock: True, False where the system has no locks, None where another process holds it."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return None
    except OSError:  # a file system without locks
        return False
    return True


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether the open file is still the one of that name."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    own = os.fstat(descriptor)
    return (found.st_dev, found.st_ino) == (own.st_dev, own.st_ino)


def _remove_if_left(part: Path) -> None:
    """Remove a part without a lock; without locks in the system, a part that is a day old."""
    if fcntl is None:
        if time.time() - part.stat().st_mtime > _UNLOCKED:
            part.unlink()
        return
    held = os.open(part, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if stat.S_ISREG(os.fstat(held).st_mode) and take_lock(held):
            part.unlink()
    finally:
        os.close(held)


def _inherit(held: int, old: os.stat_result) -> None:
    """Give an open file the owner, group and mode of the file that it replaces."""
    if fcntl is None:  # modes and owners of POSIX only
        return
    mode, own = stat.S_IMODE(old.st_mode) & 0o777, os.fstat(held)
    if (own.st_uid, own.st_gid) != (old.st_uid, old.st_gid):
        try:
            os.fchown(held, old.st_uid, old.st_gid)
        except OSError:
            try:
                os.fchown(held, -1, old.st_gid)
            except OSError:
                mode &= 0o707  # the rights of the old group are not for the new one
    if mode != stat.S_IMODE(os.fstat(held).st_mode):
        os.fchmod(held, mode)


def _sync(descriptor: int) -> None:
    """Wait until what was written is on the disk."""
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise


def _sync_folder(folder: Path) -> None:
    """Make the new name survive a power failure, where the system can."""
    if fcntl is None:
        return
    with suppress(OSError):  # some file systems have nothing to sync in a folder
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def _close(descriptor: int) -> int:
    """Close a descriptor once; -1 stands for a closed one."""
    if descriptor >= 0:
        os.close(descriptor)
    return -1


# -------------------------------------------------------------------------------------------------------------- folders

LOCK = "lock"


@contextmanager
def new_folder(path: str | os.PathLike[str], mark: str, *, overwrite: bool = False) -> Iterator[Path]:
    """An empty folder beside ``path``: renamed to it on success, removed with its content on failure.

    The folder in progress is ``.NAME.TOKEN.parts`` with a locked file inside. A writer that is killed leaves it
    without a lock, and the next writer of the same target removes it.

    Parameters
    ----------
    path : path
        The target: nothing, an empty folder, or with ``overwrite`` a data set.
    mark : str
        The name of the file by which a folder is known as a data set.
    overwrite : bool, default=False
        Whether a data set may be replaced.

    Yields
    ------
    folder : Path
        The folder to write to.

    Raises
    ------
    RankwiseError
        If the target cannot be written or is something else.
    """
    name = path_of(path)
    with refusing(name):
        target = Path(os.path.realpath(name))
        _check_target(target, name, mark, overwrite)
        _remove_left_folders(target)
        part = target.with_name(f".{target.name}.{secrets.token_hex(6)}.parts")
        part.mkdir()
    held = -1
    try:
        held = os.open(part / LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        take_lock(held)
        yield part
        with refusing(name):
            _check_target(target, name, mark, overwrite)
            os.unlink(part / LOCK)
            _replace_folder(part, target)
    finally:
        if held >= 0:
            os.close(held)
        shutil.rmtree(part, ignore_errors=True)


def _check_target(target: Path, name: str, mark: str, overwrite: bool) -> None:
    """Raise an error if a folder cannot be written at this place."""
    if not target.parent.is_dir():
        raise RankwiseError(f"{name} cannot be written: the folder {target.parent} does not exist")
    if not os.path.lexists(target):
        return
    if not target.is_dir():
        raise RankwiseError(f"{name} cannot be written: it is a file, expected a new folder")
    if any(target.iterdir()):
        if not (target / mark).is_file():
            raise RankwiseError(f"{name} cannot be written: the folder holds other files")
        if not overwrite:
            raise RankwiseError(
                f"{name} cannot be written: it holds a data set already; remove it, or overwrite it "
                "(overwrite=True, --overwrite)"
            )


def _replace_folder(part: Path, target: Path) -> None:
    """Put a complete folder in the place of its target; processes that have the old files open keep them."""
    old = target.with_name(f".{target.name}.{secrets.token_hex(6)}.old")
    moved = False
    if target.is_dir():
        if any(target.iterdir()):
            os.replace(target, old)
            moved = True
        else:
            target.rmdir()
    try:
        os.replace(part, target)
    except BaseException:
        if moved:
            os.replace(old, target)
        raise
    if moved:
        shutil.rmtree(old, ignore_errors=True)


def _remove_left_folders(target: Path) -> None:
    """Remove the folders that killed writers of this target have left: those without a lock."""
    for left in target.parent.glob(f".{glob.escape(target.name)}.{'[0-9a-f]' * 12}.parts"):
        with suppress(OSError):
            if not (left / LOCK).exists():
                continue  # being made, or being renamed at this moment
            held = os.open(left / LOCK, os.O_RDWR)
            try:
                free = take_lock(held)
            finally:
                os.close(held)
            if free:
                shutil.rmtree(left, ignore_errors=True)
