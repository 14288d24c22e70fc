"""The upkeep of a state: copies, checks, forgetting what is not needed, compaction."""

import hashlib
import os
import sqlite3
import time
from pathlib import Path
from typing import Any

from rankwise._errors import RankwiseError
from rankwise.serve.course import Course
from rankwise.serve.statefile import StateDamaged, StateFile, check_events, fact, named, open_to_read
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
        raise RankwiseError(f"{to} is there already: give another name for the copy")
    source = open_to_read(path)
    beside = Path(f"{to}.part")
    beside.unlink(missing_ok=True)
    target = sqlite3.connect(beside)
    try:
        with named(Path(path)):
            source.backup(target, pages=2_000)
            last = target.execute("SELECT coalesce(max(seq), 0) FROM event").fetchone()[0]
        target.close()
        os.replace(beside, to)
    finally:
        target.close()
        source.close()
        beside.unlink(missing_ok=True)
    return int(last)


def expire(state: StateFile, older_than: float, now: float | None = None) -> int:
    """Forget rankings that got no feedback and were shown more than so many seconds ago; how many."""
    before = (time.time() if now is None else now) - older_than
    with state.transaction(durable=False) as db:
        without = "NOT EXISTS (SELECT 1 FROM outcome WHERE ranking = shown.id)"
        return db.execute(f"DELETE FROM shown WHERE at<? AND {without}", (before,)).rowcount


def check(path: str | os.PathLike[str]) -> dict[str, int]:
    """Check a whole state: SQLite's own check, every event, every model file.

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
    db = open_to_read(path)
    try:
        with named(Path(path)):
            (found,) = db.execute("PRAGMA quick_check(1)").fetchone()
            if found != "ok":
                raise StateDamaged(f"{path} is damaged: {found}")
            events = check_events(db, Path(path))
            files = 0
            for digest, data in db.execute("SELECT digest, data FROM file"):
                if hashlib.blake2b(data, digest_size=16).hexdigest() != digest:
                    raise StateDamaged(f"{path} is damaged: the model file {digest} is not what was stored")
                files += 1
            (rankings,) = db.execute("SELECT count(*) FROM shown").fetchone()
            (snapshots,) = db.execute("SELECT count(*) FROM snapshot").fetchone()
    finally:
        db.close()
    return {"events": events, "rankings": rankings, "files": files, "snapshots": snapshots}


def forget_snapshots(state: StateFile, keep: int = 2) -> None:
    """Forget all but the newest snapshots, and the files that nothing mentions any more."""
    with state.transaction(durable=False) as db:
        db.execute(
            "DELETE FROM snapshot WHERE seq NOT IN (SELECT seq FROM snapshot ORDER BY seq DESC LIMIT ?) AND seq<>?",
            (keep, fact(db, "compacted", 0)),
        )
        kept = {one for (body,) in db.execute("SELECT body FROM snapshot") for one in _files_in(read_any(body))}
        for (body,) in db.execute("SELECT body FROM event WHERE kind='model' AND body IS NOT NULL"):
            kept.add(read_any(body)["file"])
        for (digest,) in db.execute("SELECT digest FROM file").fetchall():
            if digest not in kept:
                db.execute("DELETE FROM file WHERE digest=?", (digest,))


def _files_in(snapshot: Any) -> list[str]:
    """The digests of the files that a snapshot needs."""
    models = snapshot["models"].values()
    return [one["file"] for one in models] + [one["pinned"][1] for one in models if one["pinned"] is not None]


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
    course = Course.at(state.db)
    course.snapshot(state, "compaction", time.time())
    with state.transaction(durable=True) as db:
        db.execute("INSERT OR REPLACE INTO fact VALUES('compacted', ?)", (course.seq,))
        events = db.execute(
            "UPDATE event SET body=NULL WHERE body IS NOT NULL AND seq<=? AND "
            "(ranking IS NULL OR ranking IN (SELECT ranking FROM outcome WHERE closed IS NOT NULL))",
            (course.seq,),
        ).rowcount
        # the outcome stays, so that a late event is refused for the right reason
        rankings = db.execute(
            "DELETE FROM shown WHERE id IN (SELECT ranking FROM outcome WHERE closed<=?)", (course.seq,)
        ).rowcount
    forget_snapshots(state, keep=1)
    state.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    state.db.execute("VACUUM")
    return {"events": events, "rankings": rankings}
