"""The upkeep of a state: copies, checks, forgetting what is not needed, compaction."""

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from rankwise.errors import RankwiseError
from rankwise.serve import statefile
from rankwise.serve.replay import Replay, snapshot_digest
from rankwise.serve.statefile import ShownRow, StateDamaged, StateFile, compaction_end, digest_of, file_digest
from rankwise.serve.structs import read_any


def backup(path: str | os.PathLike[str], to: str | os.PathLike[str]) -> int:
    """Copy a state, also while a service runs on it; the number of events in the copy.

    Parameters
    ----------
    path : str or path
        The state.
    to : str or path
        The copy; it must not be there yet.

    Returns
    -------
    int
        The last event of the copy.
    """
    if Path(to).exists():
        raise RankwiseError(f"{to} already exists: choose another name for the copy")
    beside = Path(f"{to}.part")
    with closing(statefile.open_to_read(path)) as source, statefile.translate_errors(beside):
        try:
            beside.unlink(missing_ok=True)
            # for its owner alone: it says what users saw and did
            os.close(os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            with closing(sqlite3.connect(beside)) as target:
                source.backup(target)
                (last,) = target.execute("SELECT coalesce(max(seq), 0) FROM event").fetchone()
            os.replace(beside, to)
        finally:
            beside.unlink(missing_ok=True)
    return int(last)


def expire(state: StateFile, older_than: float, now: float | None = None) -> int:
    """Forget rankings that got no feedback and were shown more than so many seconds ago; how many."""
    before = (time.time() if now is None else now) - older_than
    with state.transaction(durable=False) as db:
        without = "NOT EXISTS (SELECT 1 FROM outcome WHERE ranking = shown.id)"
        return db.execute(f"DELETE FROM shown WHERE at<? AND {without}", (before,)).rowcount


def check(path: str | os.PathLike[str]) -> dict[str, int]:
    """Check a whole state: SQLite's own check, every event, and everything that learning reads.

    Parameters
    ----------
    path : str or path
        The state.

    Returns
    -------
    dict of str to int
        Counts of what was found intact.

    Raises
    ------
    StateDamaged
        If anything is not as it was written.
    """
    path = Path(os.path.realpath(path))
    acknowledged = statefile.read_mark(path)  # before the moment that is looked at
    with closing(statefile.open_to_read(path)) as db, statefile.translate_errors(path):
        (found,) = db.execute("PRAGMA integrity_check(1)").fetchone()
        if found != "ok":
            raise StateDamaged(f"{path} is damaged: {' '.join(str(found).split()):.200}")
        events = statefile.check_tail(db, path, acknowledged)
        return {"events": events, **_check_rest(db, path)}


# (what is wrong, a query that finds the first such ranking): rankings are closed as the events say
_OUTCOMES = (
    (
        "is closed by an event, and its outcome says otherwise",
        "SELECT e.ranking FROM event e LEFT JOIN outcome o ON o.ranking = e.ranking "
        "WHERE e.kind IN ('grades', 'close') AND o.closed IS NOT e.seq",
    ),
    (
        "is not closed by the event that its outcome names",
        "SELECT o.ranking FROM outcome o LEFT JOIN event e ON e.seq = o.closed "
        "WHERE o.closed IS NOT NULL AND (e.ranking IS NOT o.ranking OR e.kind NOT IN ('grades', 'close'))",
    ),
    (
        "has clicks that are missing, or that nobody waits for",
        "SELECT e.ranking FROM event e LEFT JOIN outcome o ON o.ranking = e.ranking "
        "WHERE e.kind = 'clicks' AND (o.ranking IS NULL OR (o.closed IS NULL AND e.body IS NULL))",
    ),
)


def _check_rest(db: sqlite3.Connection, path: Path) -> dict[str, int]:
    """Check everything besides the events; counts of what is intact."""
    for wrong, query in _OUTCOMES:
        row = db.execute(f"{query} LIMIT 1").fetchone()
        if row is not None:
            raise StateDamaged(f"{path} is damaged: the ranking {row[0]!r:.80} {wrong}")
    # those that an event has closed were read with the event
    unread = db.execute(
        f"SELECT digest, {', '.join(ShownRow._fields)} FROM shown "
        "WHERE id NOT IN (SELECT ranking FROM outcome WHERE closed IS NOT NULL)"
    )
    for digest, *row in unread:
        if digest != digest_of(*row):
            raise StateDamaged(f"{path} is damaged: the ranking {row[0]!r:.80} is not what was shown")
    kept = set()
    for digest, data in db.execute("SELECT digest, data FROM file"):
        if not isinstance(data, bytes) or file_digest(data) != digest:
            raise StateDamaged(f"{path} is damaged: the model file {digest!s:.40} is not what was stored")
        kept.add(digest)
    snapshots = db.execute("SELECT seq, digest, body FROM snapshot").fetchall()
    for seq, digest, body in snapshots:
        if digest != snapshot_digest(db, seq, body):
            raise StateDamaged(f"{path} is damaged: the snapshot after event {seq!s:.20} is not what was stored")
    first = compaction_end(db)
    if first and first not in [seq for seq, _, _ in snapshots]:
        raise StateDamaged(f"{path} is damaged: the snapshot that replaced {first:,} events is missing")
    missing = _files_in_use(db) - kept
    if missing:
        raise StateDamaged(f"{path} is damaged: the model file {min(missing)} is missing")
    (rankings,) = db.execute("SELECT count(*) FROM shown").fetchone()
    return {"rankings": rankings, "files": len(kept), "snapshots": len(snapshots)}


def _files_in_use(db: sqlite3.Connection) -> set[str]:
    """The digests of the files that a replay may read."""
    models = [one for (body,) in db.execute("SELECT body FROM snapshot") for one in read_any(body)["models"].values()]
    found = {one["file"] for one in models} | {one["pinned"][1] for one in models if one["pinned"] is not None}
    with_file = "kind IN ('model', 'promote', 'rollback') AND reads IS NOT NULL AND seq > ?"
    rows = db.execute(f"SELECT reads FROM event WHERE {with_file}", (compaction_end(db),))
    return found | {reads.hex() for (reads,) in rows}


def forget_snapshots(state: StateFile, keep: int = 2) -> None:
    """Forget all but the newest snapshots, and the files that nothing mentions any more."""
    with state.transaction(durable=False) as db:
        db.execute(
            "DELETE FROM snapshot WHERE seq NOT IN (SELECT seq FROM snapshot ORDER BY seq DESC LIMIT ?) AND seq<>?",
            (keep, compaction_end(db)),
        )
        needed = _files_in_use(db)
        for (digest,) in db.execute("SELECT digest FROM file").fetchall():
            if digest not in needed:
                db.execute("DELETE FROM file WHERE digest=?", (digest,))


def compact(state: StateFile) -> dict[str, int]:
    """Replace the log so far by a snapshot: bodies and features of closed rankings go, ids and digests stay.

    Parameters
    ----------
    state : StateFile
        The state, which no service uses meanwhile.

    Returns
    -------
    dict of str to int
        What was removed.
    """
    with statefile.translate_errors(state.path):
        replay = Replay.at(state.db)
        replay.snapshot(state, "compaction", time.time())
        closed = "SELECT ranking FROM outcome WHERE closed<=?"
        with state.transaction(durable=True) as db:
            db.execute("INSERT OR REPLACE INTO fact VALUES('compacted', ?)", (replay.seq,))
            events = db.execute(
                "UPDATE event SET body=NULL WHERE body IS NOT NULL AND seq<=? "
                f"AND (ranking IS NULL OR ranking IN ({closed}))",
                (replay.seq, replay.seq),
            ).rowcount
            # the outcome stays: a late event is refused for the right reason
            rankings = db.execute(f"DELETE FROM shown WHERE id IN ({closed})", (replay.seq,)).rowcount
        forget_snapshots(state, keep=1)
        state.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        state.db.execute("VACUUM")
    return {"events": events, "rankings": rankings}
