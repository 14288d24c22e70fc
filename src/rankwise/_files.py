"""Files and paths: what cannot be a path is an error, formats are recognized by their first bytes, writing is atomic.

:func:`path_of` checks a path before the system sees it. :func:`signature` recognizes a file by its first bytes:
text begins with letters, digits and marks, and other formats begin with bytes of their own (:data:`SIGNATURES`). Two of
them are read here (Parquet and Arrow), one is rankwise's own (safetensors), and for the others there is an advice.

A file is written beside its target and renamed, and an error leaves nothing behind (:func:`atomic_write`). The file in
progress is ``.NAME.TOKEN.part`` in the folder of its target, locked by its writer. When it is complete it is flushed to
the disk (``fsync``), takes the mode and owner of the file that it replaces, and is renamed; then the folder is flushed.
A process that has the old file open or mapped keeps the old one. A writer that is killed leaves its ``.part`` file
without a lock, and the next writer of the same target removes it. :func:`new_folder` does the same for folders.
"""

import errno
import glob
import gzip
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NamedTuple

from rankwise.errors import RankwiseError

PARQUET, ARROW, STORE = "a Parquet file", "an Arrow file", "a safetensors file"
LONGEST = 4096  # bytes within which every signature lies
_UNPACK = "unpack it first, or pack it with gzip, which is read as it is"
_AS_CSV = "save its sheet as CSV"
_TO_TABLE = "write its rows as CSV or Parquet"


class Signature(NamedTuple):
    """The first bytes of a format.

    Attributes
    ----------
    begins : pattern of bytes
        Matches the first bytes.
    called : str
        The format, with its article.
    advice : str
        What to do with such a file where text is expected.
    """

    begins: re.Pattern[bytes]
    called: str
    advice: str


# The first that matches counts: kinds of zip files stand before zip files.
SIGNATURES = tuple(
    Signature(re.compile(begins, re.DOTALL), called, advice)
    for begins, called, advice in (
        (rb"PAR1", PARQUET, "read it with read_table"),
        (rb"PARE", "an encrypted Parquet file", "write it without encryption"),
        # the continuation mark and the length of the schema, in the form without a table of contents
        (rb"ARROW1\0\0|\xff\xff\xff\xff.{3}\0", ARROW, "read it with read_table"),
        (rb"FEA1", "a Feather file of version 1", "write it as Parquet"),
        # eight bytes of length, of which no header has the last three, and the brace of the header
        (rb".{5}\0\0\0\{", STORE, "load it with load"),
        (rb"PK\x03\x04.*xl/|\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an Excel workbook", _AS_CSV),
        (rb"PK\x03\x04.*\[Content_Types\]\.xml", "an Office document", _AS_CSV),
        (rb"PK\x03\x04.*application/vnd\.oasis", "an OpenDocument file", _AS_CSV),
        (rb"PK\x03\x04.{26}[^/]{0,200}\.npy", "a NumPy .npz file", "give its arrays to Queries"),
        (rb"PK(\x03\x04|\x05\x06)", "a zip file", "unpack it first"),
        (rb"\x93NUMPY", "a NumPy .npy file", "give its array to Queries"),
        (rb"\x1f\x8b", "a gzip file", "unpack it first"),
        (rb"\xfd7zXZ\0", "a file packed with xz", _UNPACK),
        (rb"BZh[1-9](1AY&SY|\x17rE8P\x90)", "a file packed with bzip2", _UNPACK),
        (rb"\x28\xb5\x2f\xfd", "a file packed with zstd", _UNPACK),
        (rb"\x04\x22\x4d\x18", "a file packed with lz4", _UNPACK),
        (rb"\x1f\x9d", "a file packed with compress", _UNPACK),
        (rb"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it first"),
        (rb"Rar!\x1a\x07", "a RAR archive", "unpack it first"),
        (rb".{257}ustar", "a tar archive", "unpack it first"),
        (rb"SQLite format 3\0", "a SQLite database", _TO_TABLE),
        (rb".{8}DUCK", "a DuckDB database", _TO_TABLE),
        (rb"\x89HDF\r\n\x1a\n", "an HDF5 file", _TO_TABLE),
        (rb"ORC", "an ORC file", _TO_TABLE),
        (rb"Obj\x01", "an Avro file", _TO_TABLE),
        # protocols 2 to 5; a text does not begin with 0x80, and cp1252's euro sign is followed by a letter
        (
            rb"\x80[\x02-\x05]",
            "a Python pickle",
            "pickles can run code and are not opened: save rankers with save(), data as Parquet or CSV",
        ),
        (rb"%PDF-", "a PDF file", _TO_TABLE),
        (rb"\x89PNG\r\n|\xff\xd8\xff|GIF8", "an image", _TO_TABLE),
        (rb"\x7fELF|MZ\x90", "a program", _TO_TABLE),
    )
)


def signature(head: bytes) -> Signature | None:
    """The format that begins in this way.

    Parameters
    ----------
    head : bytes
        The first bytes of a file, :data:`LONGEST` of them unless it is shorter.

    Returns
    -------
    signature : Signature or None
        None for text and for formats that are not known.

    Examples
    --------
    >>> signature(b"PAR1").called
    'a Parquet file'
    """
    return next((one for one in SIGNATURES if one.begins.match(head[:LONGEST])), None)


def path_of(path: object) -> str:
    """The path as text.

    Parameters
    ----------
    path : str, bytes or os.PathLike
        The path.

    Returns
    -------
    name : str
        The same path.

    Raises
    ------
    RankwiseError
        If it is not a path, is empty, holds a zero byte, or holds a letter that the file system cannot encode.

    Examples
    --------
    >>> path_of("train.txt")
    'train.txt'
    """
    try:
        name = os.fsdecode(path)  # type: ignore[arg-type]
        os.fsencode(name)
    except TypeError as error:
        raise RankwiseError(f"a path must be a str or path-like, got {path!r:.60}") from error
    except UnicodeEncodeError as error:  # half of a surrogate pair
        raise RankwiseError(f"{path!r:.60} is not a path: the file system cannot encode it ({error.reason})") from error
    if not name:
        raise RankwiseError("a path must not be empty")
    if "\0" in name:
        raise RankwiseError(f"{name!r:.60} is not a path: it holds a zero byte")
    return name


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


@contextmanager
def writing_bytes(path: str | os.PathLike[str], level: int = 6) -> Iterator[IO[bytes]]:
    """:func:`writing` for bytes, which are gzipped if the name ends in ``.gz``.

    Parameters
    ----------
    path : path
        The file.
    level : int, default=6
        How hard gzip tries, from 1 to 9.

    Yields
    ------
    file : binary file object
        Where the bytes go.
    """
    with writing(path) as part, open(part, "wb") as file:
        if not path_of(path).endswith(".gz"):
            yield file
            return
        # no name and no time of writing: the same content gives the same bytes
        with gzip.GzipFile("", "wb", level, file, 0) as packed:
            yield packed  # type: ignore[misc]


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
        remove_left_folders(target.parent, glob.escape(target.name))
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


def remove_left_folders(parent: Path, names: str) -> None:
    """Remove the folders that killed writers have left: those without a lock.

    Parameters
    ----------
    parent : Path
        Where to look.
    names : str
        A pattern of the names of their targets.
    """
    for left in parent.glob(f".{names}.{'[0-9a-f]' * 12}.parts"):
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
