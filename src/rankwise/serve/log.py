"""The writer of a service: one thread that commits what came in together, then learns from it.

Requests hand over what they want written and wait for the outcome. The thread takes all that is waiting, writes it in
one transaction, answers after the commit (which is on the disk by then), and advances the course of the models. A
group of sixteen costs one flush of the disk instead of sixteen.

Rankings that were shown are written in the same way, but nobody waits for them.
"""

import asyncio
import logging
import sqlite3
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from rankwise._errors import RankwiseError
from rankwise.measures._base import Measure
from rankwise.measures.compute import ScoredLists, measure_lists_by_ties
from rankwise.serve.course import Course, as_stored, stored_matrix
from rankwise.serve.experiments import SPLIT_UNIT
from rankwise.serve.statefile import StateFile, digest_of, fact
from rankwise.serve.structs import Feedback, encode, read_any
from rankwise.serve.upkeep import expire, forget_snapshots

logger = logging.getLogger("rankwise.serve")

_TOGETHER = 512  # entries of one transaction
_WAITING = 20_000  # entries that may wait; more are refused
_LINGER = 0.05  # seconds that rankings wait for company when no feedback waits
_MOMENT, _MOMENTS = 0.0005, 6  # seconds, and how many of them events wait for company that is expected
_LEARN = 0.1  # seconds between two calls of the learners while events come in: a call costs as much as many lists
_IDLE = 1.0  # seconds between two looks at the windows when nothing comes in
_BY_WINDOW = b'{"by":"window"}'
_GRADES = 16  # distinct grades of an event up to which it is remembered that a measure takes them

# ids of events that the service itself makes
OWN = "rankwise:"


class Refused(RankwiseError):  # noqa: N818
    """An event that the log does not take; ``status`` is that of HTTP, ``retry`` whether the same may work later."""

    def __init__(self, sentence: str, status: int, retry: bool = False) -> None:
        super().__init__(sentence)
        self.status, self.retry = status, retry


@dataclass(slots=True)
class Shown:
    """What a ranking showed: ids, features and positions of its documents, in the order of the request.

    ``unit`` is who saw it, as 64 bits, in an experiment that counts the first ranking of each.
    """

    id: str
    model: str
    version: int
    at: float
    ids: list[str]
    X: Any
    place: Any
    experiment: str | None = None
    teams: bytes | None = None
    unit: int | None = None


class LoopReply:
    """What an event loop waits for; replies of one commit wake the loop once."""

    __slots__ = ("future", "loop")

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()

    def set_result(self, outcome: Any) -> None:
        """Give the outcome, from any thread."""
        wake([(self, outcome)])

    set_exception = set_result


def wake(replies: "Sequence[tuple[LoopReply, Any]]") -> None:
    """Give outcomes to the event loops that wait for them."""

    def settle(part: "Sequence[tuple[LoopReply, Any]]") -> None:
        for reply, outcome in part:
            if reply.future.done():
                continue  # whoever waited has left
            if isinstance(outcome, BaseException):
                reply.future.set_exception(outcome)
            else:
                reply.future.set_result(outcome)

    for loop in {reply.loop for reply, _ in replies}:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(settle, [one for one in replies if one[0].loop is loop])


@dataclass(slots=True)
class Entry:
    """An event that waits for its commit; ``told`` is the feedback that it came from."""

    id: str
    kind: str
    model: str
    ranking: str | None
    body: bytes
    done: "Future[tuple[int, bool]] | LoopReply"
    told: Feedback | None = None
    files: tuple[bytes, ...] = ()
    shown: Shown | None = None


class Log:
    """The log of a service, written and learned from by one thread.

    Parameters
    ----------
    state : StateFile
        The opened state.
    window : float, default=1800.0
        Seconds after the first click at which a ranking is closed.
    retention : float, default=604800.0
        Seconds after which a ranking without feedback is forgotten.
    snapshot_every : int, default=5000
        Lists between two snapshots, at least; they grow by a fifth of the run.
    on_advance : callable, default=None
        Called in the thread after models have changed.
    """

    def __init__(
        self,
        state: StateFile,
        *,
        window: float = 1_800.0,
        retention: float = 604_800.0,
        snapshot_every: int = 5_000,
        on_advance: Callable[[Course], None] | None = None,
        on_shown: Callable[[list[Shown]], None] | None = None,
    ) -> None:
        self.state, self.window, self.retention = state, window, retention
        self.snapshot_every, self.on_advance, self.on_shown = snapshot_every, on_advance, on_shown
        self.course = Course.at(state.db)
        self.committed = state.seq
        self.counts = {"new": 0, "duplicate": 0, "refused": 0, "failed": 0, "shown": 0, "unlogged": 0, "commits": 0}
        self.full = False  # whether the last transaction failed
        self.broken: BaseException | None = None
        self._waiting: deque[Entry | Shown | Callable[[], None]] = deque()
        self._wake, self._urgent, self._idle, self._closing = threading.Condition(), False, False, False
        self._windows: deque[tuple[float, str]] = deque(
            state.db.execute("SELECT clicked, ranking FROM outcome WHERE closed IS NULL ORDER BY clicked")
        )
        self._snapshot_at = sum(one.lists for one in self.course.models.values())
        self._expired_at, self._learned_at, self._expected, self._hurried = time.monotonic(), 0.0, 0, False
        if on_advance is not None:
            on_advance(self.course)
        self._thread = threading.Thread(target=self._run, name="rankwise-log", daemon=True)
        self._thread.start()

    # ------------------------------------------------------------------------------------------- from requests

    def show(self, shown: Shown) -> bool:
        """Write what a ranking showed, soon; False if it cannot be written now."""
        if self.broken is not None or self._closing or len(self._waiting) > _WAITING:
            self.counts["unlogged"] += 1
            return False
        self._waiting.append(shown)
        if self._idle or len(self._waiting) >= _TOGETHER:
            self._signal(urgent=not self._idle)
        return not self.full  # a full disk is tried again with every ranking

    def add(self, entry: Entry) -> None:
        """Write an event; its ``done`` gets (seq, whether it is new) after the commit, or a :class:`Refused`."""
        if self._closing or self.broken is not None or len(self._waiting) > _WAITING:
            why = "is stopping" if self._closing else "cannot write its state" if self.broken else "is overloaded"
            entry.done.set_exception(Refused(f"the service {why}: try again", 503, retry=True))
            return
        self._waiting.append(entry)
        self._signal(urgent=True)

    def call(self, work: Callable[[], Any]) -> "Future[Any]":
        """Run something in the thread that owns the state."""
        done: Future[Any] = Future()

        def run() -> None:
            try:
                done.set_result(work())
            except BaseException as error:
                done.set_exception(error)

        self._waiting.append(run)
        self.hurry()
        return done

    def hurry(self) -> None:
        """Learn in the next round, whatever the time: somebody waits for it."""
        self._hurried = True
        self._signal(urgent=True)

    def _signal(self, urgent: bool) -> None:
        if not urgent or not self._urgent:
            with self._wake:
                self._urgent = self._urgent or urgent
                self._wake.notify()

    def close(self) -> None:
        """Write what waits, keep a snapshot, and end the thread."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join()

    # ------------------------------------------------------------------------------------------- the thread

    def _run(self) -> None:
        try:
            while True:
                with self._wake:
                    if not self._waiting and not self._urgent and not self._closing:
                        self._idle = True
                        self._wake.wait(_IDLE if self.committed == self.course.seq else _LEARN)
                        self._idle = False
                    if not self._urgent and self._waiting and not self._closing:
                        self._wake.wait(_LINGER)
                    self._urgent = False
                self._turn()
                if self._closing and not self._waiting:
                    if self.course.seq and not self.full:
                        self._keep_snapshot("shutdown")
                    return
        except BaseException as error:  # whatever it is, requests must hear of it
            self.broken = error
            logger.critical("the log has stopped", exc_info=error)
            while self._waiting:
                one = self._waiting.popleft()
                if isinstance(one, Entry):
                    one.done.set_exception(Refused("the service cannot write its state", 503, retry=True))

    def _gather(self) -> None:
        """Wait a moment for as many events as came the last time: whoever was answered soon has the next one."""
        for _ in range(_MOMENTS):
            if self._closing or len(self._waiting) >= self._expected:
                break
            time.sleep(_MOMENT)

    def _turn(self) -> None:
        """One round: write, answer, learn, keep house."""
        if self._expected > 1 and self._waiting:
            self._gather()
        batch: list[Entry | Shown] = []
        while self._waiting and len(batch) < _TOGETHER:
            one = self._waiting.popleft()
            if callable(one):
                self._write(batch)
                batch = []
                one()
            else:
                batch.append(one)
        if self._waiting:
            self._urgent = True
        if self.committed > self.course.seq and any(isinstance(one, Entry) and one.ranking is None for one in batch):
            self._advance()  # whether a change makes sense depends on all events before it
        now = time.time()
        while self._windows and self._windows[0][0] + self.window <= now:
            _, ranking = self._windows.popleft()
            batch.append(Entry(f"{OWN}close:{ranking}", "close", "", ranking, _BY_WINDOW, Future()))
        self._write(batch)
        self._expected = sum(isinstance(one, Entry) for one in batch)
        due = self._hurried or self._closing or time.monotonic() - self._learned_at >= _LEARN
        if self.committed > self.course.seq and due:
            self._hurried = False
            self._advance()
        if time.monotonic() - self._expired_at > min(600.0, self.retention):
            self._expired_at = time.monotonic()
            try:
                expire(self.state, self.retention)
            except sqlite3.Error as error:
                logger.warning("old rankings could not be forgotten", exc_info=error)

    def _write(self, batch: "list[Entry | Shown]") -> None:
        """Commit a batch and answer; a batch that cannot be written is answered so, and nothing of it is kept."""
        if not batch:
            return
        outcomes: list[tuple[Entry, tuple[int, bool] | Refused]] = []
        shown = [one for one in batch if isinstance(one, Shown)]
        try:
            with self.state.transaction(durable=len(shown) < len(batch)) as db:
                for one in batch:
                    if isinstance(one, Shown):
                        if one.unit is not None and number_unit(db, one):
                            self._await_outcome(db, one.id)
                        insert_shown(db, one)
                    else:
                        outcomes.append((one, self._take(db, one)))
        except (sqlite3.Error, OSError) as error:
            self._failed(batch, error)
            return
        self.full = False
        self.committed = self.state.seq
        self.counts["commits"] += 1
        self.counts["shown"] += len(shown)
        if outcomes:
            self.state.acknowledge()
        for entry, outcome in outcomes:
            if isinstance(outcome, Refused):
                self.counts["refused"] += entry.body != _BY_WINDOW  # a request may have closed it before
                if isinstance(entry.done, Future):
                    entry.done.set_exception(outcome)
            else:
                self.counts["new" if outcome[1] else "duplicate"] += 1
                if isinstance(entry.done, Future):
                    entry.done.set_result(outcome)
        wake([(entry.done, outcome) for entry, outcome in outcomes if isinstance(entry.done, LoopReply)])
        if shown and self.on_shown is not None:
            self.on_shown(shown)

    def _failed(self, batch: "list[Entry | Shown]", error: BaseException) -> None:
        """Nothing was written, or it is unknown whether: the log is read again, and clients may send again."""
        if not self.full:
            logger.error("a commit failed: %s", error)
        self.full = True
        sentence = f"the state could not be written ({error}): nothing was recorded, send it again later"
        for one in batch:
            if isinstance(one, Entry):
                self.counts["failed"] += 1
                one.done.set_exception(Refused(sentence, 503, retry=True))
                if one.body == _BY_WINDOW and one.ranking is not None:
                    self._windows.append((time.time(), one.ranking))
            else:
                self.counts["unlogged"] += 1
        try:
            self.state.resume()
            self.committed = self.state.seq
        except sqlite3.Error as again:
            logger.error("the log could not be read again: %s", again)

    def _take(self, db: sqlite3.Connection, entry: Entry) -> "tuple[int, bool] | Refused":
        """Write one event, unless it is there already or cannot be."""
        digest = digest_of(entry.id, entry.kind, entry.model, entry.ranking, entry.body)
        found = db.execute("SELECT seq, digest FROM event WHERE id=?", (entry.id,)).fetchone()
        if found is not None:
            if found[1] == digest:
                return found[0], False
            return Refused(f"the event {entry.id!r:.80} is in the log with another content, at {found[0]:,}", 409)
        if entry.ranking is not None:
            refused = self._check_ranking(db, entry)
            if refused is not None:
                return refused
        elif entry.kind != "model":
            refused = check_change(self.course, entry, self.state.seq, int(fact(db, "compacted", 0)))
            if refused is not None:
                return refused
        for data in entry.files:
            self.state.keep_file(data)
        at = time.time()
        seq = self.state.append(entry.id, entry.kind, entry.model, entry.ranking, entry.body, digest, at)
        if entry.kind == "clicks":
            self._await_outcome(db, str(entry.ranking))
        elif entry.ranking is not None:
            db.execute(
                "INSERT INTO outcome VALUES(?,NULL,?) ON CONFLICT(ranking) DO UPDATE SET closed=excluded.closed",
                (entry.ranking, seq),
            )
        return seq, True

    def _await_outcome(self, db: sqlite3.Connection, ranking: str) -> None:
        """Close a ranking at the end of the window, which begins now unless it has begun."""
        at = time.time()
        if db.execute("INSERT OR IGNORE INTO outcome VALUES(?,?,NULL)", (ranking, at)).rowcount:
            self._windows.append((at, ranking))

    def _check_ranking(self, db: sqlite3.Connection, entry: Entry) -> Refused | None:
        """Why feedback on a ranking cannot be taken, if it cannot."""
        row = db.execute("SELECT closed FROM outcome WHERE ranking=?", (entry.ranking,)).fetchone()
        if row is not None and row[0] is not None:
            return Refused(f"the ranking {entry.ranking!r:.80} was closed by event {row[0]:,}", 409)
        row = db.execute("SELECT ids, model, experiment FROM shown WHERE id=?", (entry.ranking,)).fetchone()
        brought, told = entry.shown, entry.told
        if row is None and brought is None:
            return Refused(
                f"the ranking {entry.ranking!r:.80} is not known (yet): send the feedback again, or with ids and x",
                409,
                retry=True,
            )
        if row is None and brought is not None:
            refused = None if told is None else self._check_told(told, brought.ids, [brought.model])
            if refused is None:  # what is refused leaves nothing behind
                insert_shown(db, brought)
            return refused
        ids, models = read_any(row[0]), self._models_of(row[1], row[2])
        return (
            None if told is None else self._check_brought(db, entry, ids, models) or self._check_told(told, ids, models)
        )

    def _models_of(self, model: str, experiment: str | None) -> list[str]:
        """The models that a ranking is about: the one that showed it first, and those of its experiment."""
        found = self.course.experiments.get(experiment or "")
        return [model] if found is None else list(dict.fromkeys([model, found.request.model, found.request.challenger]))

    def _check_told(self, told: Feedback, ids: list[str], models: list[str]) -> Refused | None:
        """Why grades or clicks do not fit a ranking of these documents, if they do not."""
        if isinstance(told.grades, list) and len(told.grades) != len(ids):
            return Refused(f"the ranking has {len(ids):,} documents: found {len(told.grades):,} grades", 422)
        named = told.grades if isinstance(told.grades, dict) else told.clicks
        if named:
            known = set(ids)
            for id in named:
                if id not in known:
                    return Refused(f"the ranking has no document {id!r:.80}", 422)
        labels = told.grades.values() if isinstance(told.grades, dict) else told.grades or ([1.0] if named else [])
        rankers = [self.course.models[name].ranker for name in models if name in self.course.models]
        distinct = tuple(sorted(set(labels)))
        look = label_problem if len(distinct) <= _GRADES else label_problem.__wrapped__
        for measure in {one._measure() for one in rankers}:
            why = look(measure, distinct)
            if why is not None:
                return Refused(f"the grades do not fit {measure.title}: {why}", 422)
        return None

    @staticmethod
    def _check_brought(db: sqlite3.Connection, entry: Entry, ids: list[str], models: list[str]) -> Refused | None:
        """Why feedback is about something else than what its ranking showed, if it is."""
        told, brought = entry.told, entry.shown
        if told is not None and told.model is not None and told.model not in models:
            return Refused(f"the ranking {entry.ranking!r:.80} was shown by {models[0]!r}, got {told.model!r}", 409)
        if brought is None:
            return None
        row_of = {id: row for row, id in enumerate(ids)}
        rows = [row_of.get(id, -1) for id in brought.ids]
        same = len(rows) == len(ids) and -1 not in rows
        if same and told is not None and isinstance(told.grades, list):
            same = brought.ids == ids  # grades without ids follow the order of the request
        if same:
            wide, x = db.execute("SELECT wide, x FROM shown WHERE id=?", (entry.ranking,)).fetchone()
            shown, given = stored_matrix(x, wide)[rows], np.asarray(brought.X, dtype=np.float64)
            same = shown.shape == given.shape and np.array_equal(shown, given, equal_nan=True)
        if same:
            return None
        return Refused(
            f"the ranking {entry.ranking!r:.80} showed other documents than the ids and x of this feedback: send what "
            "was ranked, in the same order, or leave out ids and x",
            409,
        )

    def _advance(self) -> None:
        """Learn from what was committed, and publish."""
        changed = self.course.seq
        self._learned_at = time.monotonic()
        self.course.advance(self.state.db, self.committed)
        if self.course.seq != changed and self.on_advance is not None:
            self.on_advance(self.course)
        lists = sum(one.lists for one in self.course.models.values())
        if lists - self._snapshot_at >= max(self.snapshot_every, self._snapshot_at // 5):
            self._keep_snapshot("")

    def _keep_snapshot(self, note: str) -> None:
        """Keep a snapshot; without one a restart only takes longer."""
        try:
            self.course.snapshot(self.state, note, time.time())
            self._snapshot_at = sum(one.lists for one in self.course.models.values())
            forget_snapshots(self.state)
        except (sqlite3.Error, OSError) as error:
            logger.warning("a snapshot could not be kept: %s", error)


def number_unit(db: sqlite3.Connection, one: Shown) -> bool:
    """Number a unit that an experiment shows its first ranking; False if it was shown one before.

    A unit takes one row of about 15 bytes. The ranking keeps the number, so a replay needs no memory of units.
    """
    # SQLite has signed integers
    if not db.execute("INSERT OR IGNORE INTO unit VALUES(?)", ((one.unit or 0) - (1 << 63),)).rowcount:
        return False
    name = f"units of {one.experiment}"
    number = int(fact(db, name, 0))
    db.execute("INSERT OR REPLACE INTO fact VALUES(?,?)", (name, number + 1))
    one.teams = SPLIT_UNIT.pack((one.teams or b"\0")[0], number)
    return True


@lru_cache(1_024)
def label_problem(measure: Measure, labels: tuple[float, ...]) -> str | None:
    """Why a measure does not take some labels, if it does not."""
    lists = ScoredLists(np.zeros(len(labels)), np.array(labels), np.array([0, len(labels)]))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # labels that are only large are taken
            measure_lists_by_ties([measure], lists, ["stable"], n_jobs=1)
    except RankwiseError as error:
        return str(error)
    return None


def insert_shown(db: sqlite3.Connection, one: Shown) -> None:
    """Write what a ranking showed."""
    wide, x = as_stored(one.X)
    place = np.asarray(one.place, np.int32).tobytes()
    db.execute(
        "INSERT OR IGNORE INTO shown(id,model,version,at,documents,ids,wide,x,place,experiment,teams) "
        "VALUES(?,?,?,?,?,?,?,?,?,?,?)",
        (
            one.id,
            one.model,
            one.version,
            one.at,
            len(one.ids),
            encode(one.ids),
            wide,
            x,
            place,
            one.experiment,
            one.teams,
        ),
    )


def check_change(course: Course, entry: Entry, last: int, compacted: int) -> Refused | None:
    """Why a change of models or experiments cannot be made, if it cannot; earlier events of the batch are ignored."""
    told = read_any(entry.body)
    if entry.kind in ("promote", "rollback", "freeze", "thaw"):
        served = course.models.get(entry.model)
        if served is None:
            return Refused(f"there is no model {entry.model!r}", 404)
        version = told.get("version")
        if entry.kind == "rollback" and version is None:
            return Refused("a rollback needs the version to go back to", 422)
        if version is not None and not max(served.since, compacted) <= version <= last:
            first = max(served.since, compacted)
            return Refused(f"{entry.model!r} has versions {first:,} to {last:,}: found {version:,}", 422)
    elif entry.kind == "experiment":
        one, two = (course.models.get(told[side]) for side in ("model", "challenger"))
        if one is None or two is None or one is two:
            return Refused("an experiment is between two models that are there", 422)
        if one.ranker.n_features_in_ != two.ranker.n_features_in_:
            return Refused("both models of an experiment have the same features", 422)
        if told["name"] in course.experiments:
            return Refused(f"there is an experiment {told['name']!r} already", 409)
        busy = [
            other.request.name for other in course.experiments.values()
            if other.running and told["model"] in (other.request.model, other.request.challenger)
        ]  # fmt: skip
        if busy:
            return Refused(f"{told['model']!r} takes part in {busy[0]!r}: stop that first", 409)
    elif entry.kind == "stop" and told["name"] not in course.experiments:
        return Refused(f"there is no experiment {told['name']!r}", 404)
    return None
