"""The state of a service: one SQLite file in WAL mode, locked by the one process that may write it.

Tables: ``event`` is the log, ``shown`` what rankings showed, ``outcome`` when they were clicked and
closed (apart, so that a row with features is written once), ``unit`` who took part in a split, ``file`` model files by
digest, ``snapshot`` the state of all models after some event, ``version`` what was recorded under a note. The schema
has a number (``user_version``), and older files are brought up to date when they are opened.

Every event carries a digest of its content and the chain of all digests before it, so that a lost, changed or
reordered event is found. A mark beside the file says how far events were acknowledged; a file that ends earlier has
lost its tail.
"""

import hashlib
import os
import sqlite3
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rankwise._errors import FileFormatError, RankwiseError

# one step a version of the schema; a file of version n has had the first n
MIGRATIONS = (
    """
    CREATE TABLE event(
        seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, model TEXT NOT NULL, ranking TEXT,
        body BLOB, digest BLOB NOT NULL, chain BLOB NOT NULL, at REAL NOT NULL);
    CREATE TABLE shown(
        id TEXT PRIMARY KEY, model TEXT NOT NULL, version INTEGER NOT NULL, at REAL NOT NULL,
        documents INTEGER NOT NULL, ids BLOB NOT NULL, wide INTEGER NOT NULL, x BLOB NOT NULL,
        place BLOB NOT NULL, experiment TEXT, teams BLOB);
    CREATE TABLE outcome(ranking TEXT PRIMARY KEY, clicked REAL, closed INTEGER) WITHOUT ROWID;
    CREATE TABLE file(digest TEXT PRIMARY KEY, data BLOB NOT NULL);
    CREATE TABLE snapshot(seq INTEGER PRIMARY KEY, body BLOB NOT NULL, at REAL NOT NULL);
    CREATE TABLE version(model TEXT, seq INTEGER, digest TEXT, at REAL, note TEXT, PRIMARY KEY(model, seq));
    CREATE TABLE fact(name TEXT PRIMARY KEY, value);
    """,
    """
    CREATE INDEX clicks_of_ranking ON event(ranking) WHERE kind = 'clicks';
    CREATE INDEX event_of_model ON event(model) WHERE kind = 'model';
    CREATE INDEX outcome_waiting ON outcome(clicked) WHERE closed IS NULL;
    CREATE INDEX shown_at ON shown(at);
    """,
    """
    CREATE TABLE unit(unit INTEGER PRIMARY KEY);
    """,
)

# Bytes of a page of a new file, and of the write-ahead log before they go into the file. Rankings with many features
# take several pages: large ones cost less CPU, and no more for single events.
_PAGE, _CHECKPOINT = 16_384, 16 << 20
_MARK = struct.Struct("<8sQ")
_MAGIC = b"rankwise"
_TAIL = 1_000  # events at the end of the log that are checked whenever a file is opened


class StateLocked(RankwiseError):  # noqa: N818  a refusal, in one sentence
    """Another process uses the state."""


class StateDamaged(FileFormatError):  # noqa: N818
    """The state is not what was acknowledged; the message says from where on."""


def digest_of(*parts: bytes | str | None) -> bytes:
    """16 bytes that identify the parts, with their boundaries."""
    encoded = (part.encode() if isinstance(part, str) else part for part in parts)
    whole = b"".join(b"-" if data is None else b"%d:%b" % (len(data), data) for data in encoded)
    return hashlib.blake2b(whole, digest_size=16).digest()


def chained(before: bytes, digest: bytes) -> bytes:
    """The chain after one more event."""
    return hashlib.blake2b(before + digest, digest_size=16).digest()


class StateFile:
    """The file, opened by the one process that may change it.

    Parameters
    ----------
    path : str or path
        The file; it is made if it is not there.
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
        self.path = Path(path)
        if not self.path.parent.is_dir():
            raise RankwiseError(f"the folder of the state is not there: {self.path.parent}")
        self._lock = _lock(self.path)
        try:
            self.db = connect(self.path)
            with named(self.path):
                migrate(self.db, self.path)
                self.seq, self.chain = self._end()
                check_events(self.db, self.path, max(0, self.seq - _TAIL))
            self._check_mark(accept_loss)
        except BaseException:
            self.close()
            raise

    def _end(self) -> tuple[int, bytes]:
        row = self.db.execute("SELECT seq, chain FROM event ORDER BY seq DESC LIMIT 1").fetchone()
        return (0, b"") if row is None else (row[0], row[1])

    def _check_mark(self, accept_loss: bool) -> None:
        """Refuse a file that ends before what was acknowledged."""
        self._lock.seek(0)
        found = self._lock.read(_MARK.size)
        acknowledged = _MARK.unpack(found)[1] if len(found) == _MARK.size and found.startswith(_MAGIC) else 0
        if acknowledged > self.seq and not accept_loss:
            raise StateDamaged(
                f"{self.path} has lost its tail: it ends at event {self.seq:,}, and {acknowledged:,} were "
                "acknowledged; put back its -wal file or a backup, or accept the loss by --accept-loss"
            )
        self.acknowledge()

    def acknowledge(self) -> None:
        """Mark that everything so far was acknowledged; the operating system keeps the mark if we are killed."""
        self._lock.seek(0)
        self._lock.write(_MARK.pack(_MAGIC, self.seq))
        self._lock.flush()

    @contextmanager
    def transaction(self, durable: bool) -> Iterator[sqlite3.Connection]:
        """A transaction: durable ones are on the disk when the block has ended, the others soon after."""
        self.db.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
        self.db.execute("BEGIN IMMEDIATE")
        before = self.seq, self.chain
        try:
            yield self.db
            self.db.execute("COMMIT")
        except BaseException:
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
            self.seq, self.chain = before
            raise

    def append(self, id: str, kind: str, model: str, ranking: str | None, body: bytes, digest: bytes, at: float) -> int:
        """Write one event inside of a transaction; its place in the log."""
        self.chain = chained(self.chain, digest)
        self.seq += 1
        self.db.execute(
            "INSERT INTO event VALUES(?,?,?,?,?,?,?,?,?)",
            (self.seq, id, kind, model, ranking, body, digest, self.chain, at),
        )
        return self.seq

    def resume(self) -> None:
        """Read the end of the log again, after a commit whose outcome is unknown."""
        self.seq, self.chain = self._end()

    def keep_file(self, data: bytes) -> str:
        """Keep a model file, inside of a transaction; its digest."""
        digest = hashlib.blake2b(data, digest_size=16).hexdigest()
        self.db.execute("INSERT OR IGNORE INTO file VALUES(?,?)", (digest, data))
        return digest

    def close(self) -> None:
        """Close the file and let others have it."""
        if hasattr(self, "db"):
            self.db.close()
        self._lock.close()


# --------------------------------------------------------------------------------------------------- opening


def connect(path: Path) -> sqlite3.Connection:
    """A connection in WAL mode, which makes the file where it is not there."""
    with named(path):
        db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=256, timeout=10)
        db.execute(f"PRAGMA page_size={_PAGE}")
        db.execute("PRAGMA journal_mode=WAL")
        db.execute(f"PRAGMA wal_autocheckpoint={_CHECKPOINT // _PAGE}")
        db.execute("PRAGMA synchronous=FULL")
        db.execute("PRAGMA temp_store=MEMORY")
    return db


def open_to_read(path: str | os.PathLike[str]) -> sqlite3.Connection:
    """A connection that only reads, while a service may be running on the file."""
    path = Path(path)
    if not path.is_file():
        raise RankwiseError(f"no such state: {path}")
    with named(path):
        db = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None, timeout=10)
        found = db.execute("PRAGMA user_version").fetchone()[0]
        if not 0 < found <= len(MIGRATIONS):
            raise FileFormatError(f"{path} is no state of this version: its schema is {found}")
    return db


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Errors of SQLite as one sentence with the name of the file."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError) and "unable to open" in str(error):
            raise RankwiseError(f"{path} cannot be opened: {error}") from error
        raise StateDamaged(f"{path} is damaged or no state of a service: {error}") from error


def migrate(db: sqlite3.Connection, path: Path) -> None:
    """Bring the schema up to date, each step in a transaction of its own."""
    found = db.execute("PRAGMA user_version").fetchone()[0]
    if found > len(MIGRATIONS):
        raise FileFormatError(f"{path} was written by a newer rankwise (schema {found}): install that one")
    if found == 0 and db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise FileFormatError(f"{path} is an SQLite file of something else: give another place for the state")
    for number in range(found, len(MIGRATIONS)):
        db.executescript(f"BEGIN; {MIGRATIONS[number]} PRAGMA user_version={number + 1}; COMMIT;")


def check_events(db: sqlite3.Connection, path: Path, after: int = 0) -> int:
    """Check that no event after ``after`` is missing, changed or moved; how many were checked.

    Raises
    ------
    StateDamaged
        With the first event that is not as it was written.
    """
    row = db.execute("SELECT chain FROM event WHERE seq=?", (after,)).fetchone()
    before, expected = (row[0] if row else b""), after
    for seq, id, kind, model, ranking, body, digest, chain in db.execute(
        "SELECT seq, id, kind, model, ranking, body, digest, chain FROM event WHERE seq>? ORDER BY seq", (after,)
    ):
        expected += 1
        before = chained(before, digest)
        intact = seq == expected and chain == before
        # the body of a compacted event is gone, and its digest stays
        if not intact or (body is not None and digest != digest_of(id, kind, model, ranking, body)):
            raise StateDamaged(
                f"{path} is damaged at event {expected:,}: it is missing or was changed; {expected - 1:,} events "
                "before it are intact (`rankwise replay --to` remakes the model up to there)"
            )
    return expected - after


def fact(db: sqlite3.Connection, name: str, default: Any = None) -> Any:
    """A fact about the file."""
    row = db.execute("SELECT value FROM fact WHERE name=?", (name,)).fetchone()
    return default if row is None else row[0]


def _lock(path: Path) -> Any:
    """An exclusive lock beside the file; refused while another process has it."""
    file = open(f"{path}.lock", "r+b" if os.path.exists(f"{path}.lock") else "w+b", buffering=0)  # noqa: SIM115
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(1 << 20)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise StateLocked(f"{path} is in use by another service: one process owns a state") from error
    return file
