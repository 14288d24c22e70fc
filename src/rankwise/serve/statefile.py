"""The state of a service: one SQLite file in WAL mode, locked by the one process that may write it.

Tables: ``event`` is the log, ``shown`` what rankings showed, ``outcome`` when they were clicked and
closed (apart: a row with features is then written once), ``unit`` who took part in a split, ``file`` model files by
digest, ``snapshot`` the state of all models after some event, ``version`` what was recorded under a note. The schema,
``schema.sql``, has a number (``user_version``).

Everything that learning reads has a digest. An event carries the digest of its body, and in ``reads`` that of what it
makes the models read besides: the ranking that it closes with its clicks, or a model file. The chain of an event covers
all of its columns and the chain before it. :func:`read_events` compares all of this while it reads, so a replay gives
the right bits or names the event at which it cannot. A mark beside the file says how far events were acknowledged; a
file that ends earlier has lost its tail.
"""

import hashlib
import os
import sqlite3
import stat
import struct
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from importlib.resources import files
from pathlib import Path
from typing import IO, Any, NamedTuple

from rankwise.errors import FileFormatError, RankwiseError, in_one_line
from rankwise.serve.structs import pack

VERSION = 3
# Bytes of a page of a new file, and of the write-ahead log before they go into the file. Rankings with many features
# take several pages: large ones cost less CPU, and no more for single events.
_PAGE, _CHECKPOINT = 16_384, 16 << 20
_MARK = struct.Struct("<8sQ")
_MAGIC = b"rankwise"
_TAIL = 1_000  # events at the end of the log that are checked whenever a file is opened
_OURS = 1 << 62  # the byte that is locked: far behind all content, and none of those that SQLite locks
_CLOSES = ("grades", "close")
# what SQLite says of a file that is not as it was written; anything else is a matter of the system
_DAMAGE = {"SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_FORMAT", "SQLITE_ERROR", "SQLITE_SCHEMA", "SQLITE_MISMATCH"}
_DAMAGE |= {"SQLITE_TOOBIG", "SQLITE_CONSTRAINT", "SQLITE_RANGE"}


class StateLocked(RankwiseError):  # noqa: N818  a refusal, in one sentence
    """Another process uses the state."""


class StateDamaged(FileFormatError):  # noqa: N818
    """The state is not what was acknowledged; the message says from where on."""


# --------------------------------------------------------------------------------------------------- digests


def digest_of(*parts: object) -> bytes:
    """16 bytes that identify the parts: values of columns, with their kinds, boundaries and content."""
    return hashlib.blake2b(pack(parts), digest_size=16).digest()


def file_digest(data: bytes) -> str:
    """The name under which a model file is kept."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


class ShownRow(NamedTuple):
    """What a ranking showed, as it is stored."""

    id: str
    model: str
    version: int
    at: float
    documents: int
    ids: bytes
    wide: int
    x: bytes
    place: bytes
    experiment: str | None
    teams: bytes | None


class Event(NamedTuple):
    """An event that is as it was written, with the ranking that it closes and the clicks on it."""

    seq: int
    kind: str
    model: str
    ranking: str | None
    body: bytes
    reads: bytes | None
    shown: ShownRow | None
    clicks: list[bytes]


_READ = f"""
    SELECT e.seq, e.id, e.kind, e.model, e.ranking, e.body, e.digest, e.reads, e.chain, e.at,
        s.digest, {", ".join(f"s.{name}" for name in ShownRow._fields)}
    FROM event e LEFT JOIN shown s ON e.kind IN {_CLOSES} AND s.id = e.ranking
    WHERE e.seq > ? AND e.seq <= ? ORDER BY e.seq"""


def reads_of(db: sqlite3.Connection, ranking: str | None) -> bytes:
    """The digest of what closing a ranking makes the models read: what was shown, and all clicks in their order."""
    (shown,) = db.execute("SELECT digest FROM shown WHERE id=?", (ranking,)).fetchone()
    clicks = db.execute("SELECT digest FROM event WHERE ranking=? AND kind='clicks' ORDER BY seq", (ranking,))
    return digest_of(shown, *(one for (one,) in clicks))


def read_events(db: sqlite3.Connection, after: int, to: int, compacted: int = 0) -> Iterator[Event]:
    """The events after ``after`` up to ``to``, each compared with its digests and with the chain.

    Parameters
    ----------
    db : sqlite3.Connection
        A state.
    after, to : int
        The event before the first, and the last.
    compacted : int, default=0
        Up to this event the bodies, and the rankings that were closed, may be gone.

    Yields
    ------
    Event
        The next event.

    Raises
    ------
    StateDamaged
        With the first event that is not as it was written.
    """
    chain, expected = chain_at(db, after), after
    for seq, id, kind, model, ranking, body, digest, reads, stored, at, shown_digest, *columns in db.execute(
        _READ, (after, to)
    ):
        expected += 1
        gone = body is None and seq <= compacted
        chain = digest_of(chain, id, kind, model, ranking, digest, reads, at)
        if seq != expected or stored != chain or not (gone or digest_of(body) == digest):
            raise damage_error(db, expected)
        shown, clicks = None, []
        if kind in _CLOSES and not gone:
            clicks = _clicks_on(db, ranking, seq) if kind == "close" else []
            shown = ShownRow(*columns)
            intact = shown_digest == digest_of(*shown)
            if not intact or reads != digest_of(shown_digest, *(one for one, _ in clicks)):
                raise damage_error(db, expected)
        yield Event(seq, kind, model, ranking, body, reads, shown, [one for _, one in clicks])
    if expected != to:
        raise damage_error(db, expected + 1)


def _clicks_on(db: sqlite3.Connection, ranking: str, before: int) -> list[tuple[bytes, bytes]]:
    """(digest, body) of the clicks on a ranking."""
    asked = "SELECT digest, body FROM event WHERE ranking=? AND kind='clicks' AND seq<? ORDER BY seq"
    found = db.execute(asked, (ranking, before)).fetchall()
    return [(digest if digest_of(body) == digest else b"", body) for digest, body in found]


def chain_at(db: sqlite3.Connection, seq: int) -> bytes:
    """The chain after an event."""
    row = db.execute("SELECT chain FROM event WHERE seq=?", (seq,)).fetchone()
    if row is None and seq:
        raise damage_error(db, seq)
    return b"" if row is None else row[0]


def damage_error(db: sqlite3.Connection, seq: int) -> StateDamaged:
    """The error for an event, or what it makes the models read, that is not as it was written."""
    path = db.execute("PRAGMA database_list").fetchone()[2]
    return StateDamaged(
        f"{path} is damaged at event {seq:,}: the event, or the ranking that it closes, is missing or was changed; "
        f"the {seq - 1:,} events before it are intact (`rankwise replay --to {seq - 1}` rebuilds the model up to there)"
    )


def fact(db: sqlite3.Connection, name: str, default: Any = None) -> Any:
    """A fact about the file."""
    row = db.execute("SELECT value FROM fact WHERE name=?", (name,)).fetchone()
    return default if row is None else row[0]


def compaction_end(db: sqlite3.Connection) -> int:
    """The event up to which the log was replaced by a snapshot; 0 if it was not."""
    found = fact(db, "compacted", 0)
    if not isinstance(found, int) or found < 0:
        raise StateDamaged(
            f"the state is damaged: the end of its compaction must be an event number, got {found!r:.40}"
        )
    return found


# --------------------------------------------------------------------------------------------------- the file


class StateFile:
    """The file, opened by the one process that may change it.

    Parameters
    ----------
    path : str or path
        The file; it is made, for its owner alone to read, if it is not there.
    accept_loss : bool, default=False
        Go on from what is left where acknowledged events are missing at the end.

    Attributes
    ----------
    db : sqlite3.Connection
        The connection; used by one thread at a time.
    seq : int
        The last event.
    """

    def __init__(self, path: str | os.PathLike[str], *, accept_loss: bool = False) -> None:
        # links are followed: the -wal of SQLite, the mark and the lock belong to the file, not to a name of it
        self.path = Path(os.path.realpath(path))
        self.seq, self.chain = 0, b""
        if not self.path.parent.is_dir():
            raise RankwiseError(f"the folder of the state, {self.path.parent}, does not exist")
        self._held = ExitStack()
        try:
            _own(self.path, self._held)
            self._inode = _inode(os.stat(self.path))
            with translate_errors(self.path):
                # Looked at before it may be written: the last connection that closes puts the -wal into the file, and
                # a -wal that belongs to another file would destroy it.
                with closing(_connect_to_read(self.path)) as db:
                    is_new = check_schema(db, self.path)
                    if not is_new:
                        check_tail(db, self.path, 0 if accept_loss else read_mark(self.path), _TAIL)
                self.db = self._held.enter_context(closing(connect(self.path)))
                if is_new:
                    schema = files("rankwise.serve").joinpath("schema.sql").read_text(encoding="utf-8")
                    self.db.executescript(f"BEGIN; {schema} PRAGMA user_version={VERSION}; COMMIT;")
                self.resume()
                self._mark = self._held.enter_context(_open_private(_mark_path(self.path)))
                self.acknowledge()
        except BaseException:
            self.close()
            raise

    def resume(self) -> None:
        """Read the end of the log again, after a commit whose outcome is unknown."""
        row = self.db.execute("SELECT seq, chain FROM event ORDER BY seq DESC LIMIT 1").fetchone()
        self.seq, self.chain = (0, b"") if row is None else (row[0], row[1])

    def acknowledge(self) -> None:
        """Mark that everything so far was acknowledged; the operating system keeps the mark if we are killed."""
        self._mark.seek(0)
        self._mark.write(_MARK.pack(_MAGIC, self.seq))

    @contextmanager
    def transaction(self, durable: bool) -> Iterator[sqlite3.Connection]:
        """A transaction: durable ones are on the disk when the block has ended, the others soon after."""
        if _inode(os.stat(self.path)) != self._inode:  # raises an OSError where there is no file
            raise OSError(f"{self.path} was replaced while the service was using it: stop the service, and put it back")
        before = self.seq, self.chain
        try:
            self.db.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
            self.db.execute("BEGIN IMMEDIATE")
            yield self.db
            self.db.execute("COMMIT")
        except BaseException:
            self.seq, self.chain = before
            with suppress(sqlite3.Error):  # SQLite has rolled back already, or cannot: `resume` reads how it ended
                if self.db.in_transaction:
                    self.db.execute("ROLLBACK")
            raise

    def append(
        self, id: str, kind: str, model: str, ranking: str | None, body: bytes, reads: bytes | None, at: float
    ) -> int:
        """Write one event inside of a transaction; its place in the log."""
        digest = digest_of(body)
        self.chain = digest_of(self.chain, id, kind, model, ranking, digest, reads, at)
        self.seq += 1
        self.db.execute(
            "INSERT INTO event VALUES(?,?,?,?,?,?,?,?,?,?)",
            (self.seq, id, kind, model, ranking, body, digest, reads, self.chain, at),
        )
        return self.seq

    def keep_file(self, data: bytes) -> str:
        """Keep a model file, inside of a transaction; its digest."""
        digest = file_digest(data)
        self.db.execute("INSERT OR IGNORE INTO file VALUES(?,?)", (digest, data))
        return digest

    def close(self) -> None:
        """Close the file and let others have it."""
        self._held.close()


# --------------------------------------------------------------------------------------------------- opening


def connect(path: Path) -> sqlite3.Connection:
    """A connection in WAL mode."""
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=256, timeout=10)
    db.execute(f"PRAGMA page_size={_PAGE}")
    db.execute("PRAGMA journal_mode=WAL")
    db.execute(f"PRAGMA wal_autocheckpoint={_CHECKPOINT // _PAGE}")
    db.execute("PRAGMA synchronous=FULL")
    db.execute("PRAGMA temp_store=MEMORY")
    return db


def open_to_read(path: str | os.PathLike[str]) -> sqlite3.Connection:
    """A connection that only reads, while a service may be running on the file; it sees the state of one moment."""
    if not os.path.isfile(path):
        raise RankwiseError(f"{os.fspath(path)} does not exist: expected the state of a service")
    path = Path(os.path.realpath(path))
    with translate_errors(path):
        db = _connect_to_read(path)
        try:
            if check_schema(db, path):
                raise FileFormatError(f"{path} is not the state of a service: it is an empty file")
        except BaseException:
            db.close()
            raise
    return db


def _connect_to_read(path: Path) -> sqlite3.Connection:
    """A connection that cannot write, in a transaction: what others write or remove meanwhile stays unseen."""
    where = f"{path.as_uri()}?mode=ro"
    db = sqlite3.connect(where, uri=True, isolation_level=None, check_same_thread=False, timeout=10)
    db.execute("PRAGMA temp_store=MEMORY")
    db.execute("BEGIN")
    return db


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Errors of SQLite and of the system as one sentence with the name of the file."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorname", "SQLITE_ERROR")
        if isinstance(error, sqlite3.DatabaseError) and any(code.startswith(one) for one in _DAMAGE):
            raise StateDamaged(
                f"{path} is damaged, or is not the state of a service: {in_one_line(error)}{_about_wal(path)}"
            ) from error
        raise RankwiseError(f"{path} cannot be read or written: {in_one_line(error)}") from error
    except UnicodeDecodeError as error:  # what SQLite says of a damaged name is not always text
        raise StateDamaged(f"{path} is damaged: it holds a name that is not text{_about_wal(path)}") from error
    except OSError as error:
        raise RankwiseError(f"{path} cannot be read or written: {error.strerror or error}") from error


@contextmanager
def translate_errors_of(db: sqlite3.Connection) -> Iterator[None]:
    """:func:`translate_errors` for the file of a connection."""
    with translate_errors(Path(db.execute("PRAGMA database_list").fetchone()[2])):
        yield


def _about_wal(path: Path) -> str:
    """What to do if a backup was put back beside the -wal of the file that it replaced."""
    wal = Path(f"{path}-wal")
    if not wal.exists() or not wal.stat().st_size:
        return ""
    return f"; if this is a restored backup, remove {wal} and {path}-shm, which belong to the file that it replaced"


def check_schema(db: sqlite3.Connection, path: Path) -> bool:
    """Raise an error for a file that is not a state, or that another version wrote; whether it is empty."""
    found = db.execute("PRAGMA user_version").fetchone()[0]
    if found > VERSION:
        raise FileFormatError(
            f"{path} was written by a newer rankwise (schema {found}, this version has {VERSION}): install that version"
        )
    if 0 < found < VERSION:
        raise FileFormatError(
            f"{path} was written by an older rankwise (schema {found}, this version has {VERSION}): with that version "
            "write its models to files (`rankwise replay`), then start a new state from them"
        )
    if found == 0 and db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise FileFormatError(f"{path} is an SQLite file of another application: choose another file for the state")
    return bool(found == 0)


def check_tail(db: sqlite3.Connection, path: Path, acknowledged: int, tail: int | None = None) -> int:
    """Check the last events (None: all), and that none that was acknowledged is missing behind them; the last event.

    Raises
    ------
    StateDamaged
        If they are not as they were written.
    """
    (last,) = db.execute("SELECT coalesce(max(seq), 0) FROM event").fetchone()
    try:
        for _ in read_events(db, 0 if tail is None else max(0, last - tail), last, compaction_end(db)):
            pass
    except StateDamaged as error:
        raise StateDamaged(f"{error}{_about_wal(path)}") from None
    if acknowledged > last:
        raise StateDamaged(
            f"{path} has lost its tail: it ends at event {last:,}, and {acknowledged:,} were acknowledged; put back "
            f"its -wal file or a backup, or accept the loss with --accept-loss{_about_wal(path)}"
        )
    return int(last)


def _mark_path(path: Path) -> Path:
    return Path(f"{path}.mark")


def read_mark(path: Path) -> int:
    """The last event that is known to have been acknowledged; 0 where nothing is known."""
    try:
        found = _mark_path(path).read_bytes()[: _MARK.size]
    except OSError:
        return 0
    return int(_MARK.unpack(found)[1]) if len(found) == _MARK.size and found.startswith(_MAGIC) else 0


# --------------------------------------------------------------------------------------------------- one owner

# Files that this process owns. Closing any descriptor of a file drops all POSIX locks of the process on it, those of
# SQLite among them: a file that we own already must not be opened again to find that out.
_owned: set[tuple[int, int]] = set()


def _inode(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _own(path: Path, held: ExitStack) -> None:
    """Own a state until ``held`` is closed, or raise an error.

    The lock is on the file, not on a name: it holds whatever links lead to the file and whatever is removed beside it.
    """
    with suppress(FileNotFoundError):
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            raise RankwiseError(f"the state must be a file, got {path}, which is a folder or a device")
        if _inode(status) in _owned:
            raise _lock_error(path)
    with translate_errors(path):
        file = held.enter_context(_open_private(path))
        status = os.fstat(file.fileno())
        try:
            _take_lock(file, path, held)
        except (BlockingIOError, PermissionError) as error:
            raise _lock_error(path) from error
    if status.st_nlink > 1:
        raise RankwiseError(
            f"{path} has {status.st_nlink} hard links, but SQLite writes its log beside only one of them: remove the "
            "others, or copy the file"
        )
    _owned.add(_inode(status))
    held.callback(_owned.discard, _inode(status))


def _lock_error(path: Path) -> StateLocked:
    return StateLocked(f"{path} is in use by another service: only one process may use a state")


def _open_private(path: Path) -> IO[bytes]:
    """Open a file to read and write; a new one is for its owner alone."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
    return open(os.open(path, flags, 0o600), "r+b", buffering=0)


def _take_lock(file: IO[bytes], path: Path, held: ExitStack) -> None:
    """Lock one byte of the state, which SQLite does not use, until the file is closed."""
    if sys.platform == "win32":
        import msvcrt

        file.seek(_OURS)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        return
    import fcntl

    wanted = getattr(fcntl, "F_OFD_SETLK", None)  # a lock of the descriptor: no other close drops it
    if wanted is not None:
        fcntl.fcntl(file, wanted, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, _OURS, 1, 0))
    else:  # a system that has only locks of whole files, which would keep out SQLite, too
        fcntl.flock(held.enter_context(_open_private(_mark_path(path))), fcntl.LOCK_EX | fcntl.LOCK_NB)
