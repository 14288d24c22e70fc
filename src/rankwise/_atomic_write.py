"""Files are written beside their target and renamed: nobody ever sees half a file, and an error leaves none behind.

The file that is being written is ``.NAME.TOKEN.part`` in the folder of its target, locked by its writer. When it is
complete it goes to the disk (``fsync``), takes the mode and owner of the file that it replaces, and is renamed; then
the folder goes to the disk. Whoever has the old file open or mapped keeps the old one. A writer that is killed leaves
its ``.part`` file without a lock, and the next writer of the same target removes it.
"""

import errno
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rankwise._errors import RankwiseError
from rankwise._paths import path_of

try:
    import fcntl
except ImportError:  # Windows, where a file that somebody has open cannot be removed
    fcntl = None  # type: ignore[assignment]

_LONGEST = 200  # bytes of the target's name in the part's: file systems allow 255 in all
_PART = re.compile(r"\..*\.[0-9a-f]{12}\.part", re.DOTALL)
_NO_SYNC = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)  # of file systems that know no such thing
_UNLOCKED = 86_400  # seconds after which a part is nobody's, on systems without locks


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A new, empty file in the folder of ``path``: renamed to it when all went well, removed when not.

    A symbolic link stays one, and the file that it points to is replaced. A new file has the mode that the umask gives,
    a replaced one keeps its mode, and its owner and group as far as the system allows.

    Raises
    ------
    RankwiseError
        If the folder is not there, or if something other than a regular file is in the way.
    """
    name = path_of(path)
    with refusing(name):
        target = Path(os.path.realpath(name))
        if not target.parent.is_dir():
            raise RankwiseError(f"{name} cannot be written: the folder {target.parent} is not there")
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
                held = _closed(held)
            os.replace(part, target)
            _sync_folder(target.parent)
    finally:
        _closed(held)
        with suppress(OSError):  # renamed, as a rule; a failure to tidy up must not hide the one before it
            part.unlink(missing_ok=True)


@contextmanager
def refusing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn what the system refuses (no room, no permission) into a sentence that names the file."""
    try:
        yield
    except OSError as error:
        raise RankwiseError(f"{os.fspath(path)} cannot be written: {error.strerror or error}") from error


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """:func:`beside` for a body that does nothing but write: what the system refuses becomes a sentence."""
    with refusing(path), atomic_write(path) as part:
        yield part


def remove_parts(folder: Path, name: str = "", *, ending: str = "") -> None:
    """Remove the parts that killed writers have left in a folder: those that nobody holds a lock on.

    Parameters
    ----------
    folder : where to look
    name : of their target; empty: any target whose name has that ending
    ending : of the target's name, where no name is given
    """
    with suppress(OSError):  # tidying up is no reason to stop
        with os.scandir(folder) as entries:
            found = [entry.name for entry in entries if _PART.fullmatch(entry.name)]
        for part in found:
            begin = part[: -len("0123456789ab.part")]
            if begin == _prefix(name) or (not name and begin.endswith(f"{ending}.")):
                with suppress(OSError):  # not ours to open, or another process was quicker
                    _remove_if_left(folder / part)


def _prefix(name: str) -> str:
    """How the names of the parts of a target of that name begin."""
    return f".{name.encode('utf-8', 'surrogateescape')[:_LONGEST].decode('utf-8', 'ignore')}."


def _status(target: Path) -> os.stat_result | None:
    """What is at the target now; a link that is left after all were followed is one of a loop."""
    try:
        return os.lstat(target)
    except FileNotFoundError:
        return None


def _new_part(target: Path, private: bool) -> tuple[Path, int]:
    """(path, descriptor) of an empty file that is locked for as long as the descriptor is open.

    What replaces a file may be for its owner's eyes only, so nobody else can open it before it has the mode of that.
    """
    while True:
        part = target.with_name(f"{_prefix(target.name)}{secrets.token_hex(6)}.part")
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        held = os.open(part, flags, 0o600 if private else 0o666)
        locked = _lock(held)
        # Before it was locked, another process may have taken it for one that was left behind: then once more.
        if locked is False or (locked and _is_at(held, part)):
            return part, held
        os.close(held)


def _lock(descriptor: int) -> bool | None:
    """Take the lock: whether that was possible, None where somebody else has it."""
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
    if fcntl is None:
        if time.time() - part.stat().st_mtime > _UNLOCKED:
            part.unlink()
        return
    held = os.open(part, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if stat.S_ISREG(os.fstat(held).st_mode) and _lock(held):
            part.unlink()
    finally:
        os.close(held)


def _inherit(held: int, old: os.stat_result) -> None:
    """Give an open file the owner, group and mode of the one that it replaces."""
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
                mode &= 0o707  # what was for its group is not for ours
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
    """Make the new name survive a power failure, where the system knows how."""
    if fcntl is None:
        return
    with suppress(OSError):  # some file systems have nothing to sync in a folder
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def _closed(descriptor: int) -> int:
    """Close it, once; -1 stands for a closed one."""
    if descriptor >= 0:
        os.close(descriptor)
    return -1
