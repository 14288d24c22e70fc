"""The writer of a service: one thread that commits what came in together, then learns from it.

Requests hand over what they want written and wait for the outcome. The thread takes all that is waiting, writes it in
one transaction, answers after the commit (which is on the disk by then), and advances the replay of the models. A
group of sixteen costs one flush of the disk instead of sixteen. A change of models or experiments is a group of its
own: whether it makes sense is decided inside its transaction, from the replay after all events before it.

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
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from rankwise.errors import RankwiseError
from rankwise.measures._base import Measure
from rankwise.measures.compute import ScoredLists, measure_lists_by_ties
from rankwise.serve import statefile
from rankwise.serve.experiments import SPLIT_UNIT
from rankwise.serve.replay import Replay, decode_features, encode_features
from rankwise.serve.statefile import ShownRow, StateDamaged, StateFile
from rankwise.serve.structs import Feedback, encode, read_any
from rankwise.serve.upkeep import expire, forget_snapshots

logger = logging.getLogger("rankwise.serve")

_TOGETHER = 512  # entries of one transaction
_WAITING = 20_000  # entries that may wait; more are refused
_LINGER = 0.05  # seconds that rankings wait for company when no feedback waits
_MOMENT, _MOMENTS = 0.0005, 6  # seconds, and how many of them events wait for company that is expected
_LEARN = 0.1  # seconds between two calls of the learners while events come in: a call costs as much as many lists
_AGAIN = 1.0, 60.0  # seconds until learning that failed is tried again, at first and at most
_IDLE = 1.0  # seconds between two looks at the windows when nothing comes in
_BY_WINDOW = b'{"by":"window"}'
_GRADES = 16  # distinct grades of an event up to which it is remembered that a measure takes them

# ids of events that the service itself makes
OWN = "rankwise:"


class RequestError(RankwiseError):
    """An event that the log does not take.

    ``status`` is that of HTTP; ``retry`` is whether the same may work later, by default where the status is 503.
    """

    def __init__(self, sentence: str, status: int = 422, retry: bool | None = None) -> None:
        super().__init__(sentence)
        self.status, self.retry = status, status == 503 if retry is None else retry


@dataclass(slots=True)
class ShownRanking:
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
            loop.call_soon_threadsafe(settle, [reply for reply in replies if reply[0].loop is loop])


@dataclass(slots=True)
class Entry:
    """An event that waits for its commit; ``file`` is the model file that it brings."""

    id: str
    kind: str
    model: str
    body: bytes
    ranking: str | None = None
    done: "Future[tuple[int, bool]] | LoopReply" = field(default_factory=Future)
    feedback: Feedback | None = None
    file: bytes | None = None
    shown: ShownRanking | None = None


@dataclass(slots=True)
class ThreadCall:
    """Something to be done in the thread that owns the state."""

    run: Callable[[], Any]
    done: "Future[Any]"


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
        on_advance: Callable[[Replay], None] | None = None,
        on_shown: Callable[[list[ShownRanking]], None] | None = None,
    ) -> None:
        self.state, self.window, self.retention = state, window, retention
        self.snapshot_every, self.on_advance, self.on_shown = snapshot_every, on_advance, on_shown
        self.replay: Replay = Replay.at(state.db)
        self.committed = state.seq
        self.counts = {"new": 0, "duplicate": 0, "refused": 0, "failed": 0, "shown": 0, "unlogged": 0, "commits": 0}
        self.full = False  # whether the last transaction failed
        self.broken: BaseException | None = None
        self.stuck: BaseException | None = None  # why the models do not learn for now
        self._again = _AGAIN[0]
        # Times are those of the system's clock when we began, and go on evenly: a clock that is set ahead or back while
        # we run closes no window too early, keeps none open, and lets nothing be forgotten.
        self._offset = time.time() - time.monotonic()
        self._waiting: deque[Entry | ShownRanking | ThreadCall] = deque()
        self._wake, self._urgent, self._idle, self._closing = threading.Condition(), False, False, False
        began = self.now()
        self._windows: deque[tuple[float, str]] = deque(
            (min(clicked, began), ranking)  # later than now is a click of a clock that was ahead
            for clicked, ranking in state.db.execute(
                "SELECT clicked, ranking FROM outcome WHERE closed IS NULL ORDER BY clicked"
            )
        )
        self._snapshot_at = sum(served.lists for served in self.replay.models.values())
        self._expired_at, self._learned_at, self._expected, self._hurried = time.monotonic(), 0.0, 0, False
        if on_advance is not None:
            on_advance(self.replay)
        self._thread = threading.Thread(target=self._run, name="rankwise-log", daemon=True)
        self._thread.start()

    def now(self) -> float:
        """Seconds since 1970, which never go back."""
        return self._offset + time.monotonic()

    # ------------------------------------------------------------------------------------------- from requests

    def show(self, shown: ShownRanking) -> bool:
        """Write what a ranking showed, soon; False if it cannot be written now."""
        if self.broken is not None or self._closing or len(self._waiting) > _WAITING:
            self.counts["unlogged"] += 1
            return False
        self._waiting.append(shown)
        if self._idle or len(self._waiting) >= _TOGETHER:
            self._signal(urgent=not self._idle)
        return not self.full  # a full disk is tried again with every ranking

    def add(self, entry: Entry) -> None:
        """Write an event; its ``done`` gets (seq, whether it is new) after the commit, or a :class:`RequestError`."""
        if self._closing or self.broken is not None or len(self._waiting) > _WAITING:
            why = "is stopping" if self._closing else "cannot write its state" if self.broken else "is overloaded"
            entry.done.set_exception(RequestError(f"the service {why}: try again", 503))
            return
        self._waiting.append(entry)
        self._signal(urgent=True)

    def call(self, work: Callable[[], Any]) -> "Future[Any]":
        """Run something in the thread that owns the state."""
        item = ThreadCall(work, Future())
        self._waiting.append(item)
        self.hurry()
        if not self._thread.is_alive():
            self._refuse_waiting()
        return item.done

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
                        self._wake.wait(_IDLE if self.committed == self.replay.seq or self.stuck else _LEARN)
                        self._idle = False
                    if not self._urgent and self._waiting and not self._closing:
                        self._wake.wait(_LINGER)
                    self._urgent = False
                self._turn()
                if self._closing and not self._waiting:
                    if self.replay.seq and not self.full and self.stuck is None:
                        self._keep_snapshot("shutdown")
                    return
        except BaseException as error:  # whatever it is, requests must hear of it
            self.broken = error
            logger.critical("the log has stopped", exc_info=error)
            self._refuse_waiting()

    def _refuse_waiting(self) -> None:
        """Tell everybody who waits that nothing will come."""
        while self._waiting:
            with suppress(IndexError):  # another thread does the same
                item = self._waiting.popleft()
                if not isinstance(item, ShownRanking):
                    item.done.set_exception(RequestError("the service cannot write its state", 503))

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
        batch: list[Entry | ShownRanking] = []
        while self._waiting and len(batch) < _TOGETHER:
            item = self._waiting.popleft()
            if isinstance(item, ThreadCall):
                self._write(batch)
                batch = []
                try:
                    item.done.set_result(item.run())
                except BaseException as error:
                    item.done.set_exception(error)
            elif isinstance(item, Entry) and item.ranking is None:
                self._write(batch)
                batch = []
                self._advance()
                self._write([item])
            else:
                batch.append(item)
        now = self.now()
        while self._windows and self._windows[0][0] + self.window <= now and len(batch) < 2 * _TOGETHER:
            _, ranking = self._windows.popleft()
            batch.append(Entry(f"{OWN}close:{ranking}", "close", "", _BY_WINDOW, ranking))
        if self._waiting or (self._windows and self._windows[0][0] + self.window <= now and not self.full):
            self._urgent = True
        self._write(batch)
        self._expected = sum(isinstance(item, Entry) for item in batch)
        due = self._hurried or self._closing or time.monotonic() - self._learned_at >= _LEARN
        if (self.committed > self.replay.seq or self.stuck is not None) and due:
            self._hurried = False
            self._advance()
        if time.monotonic() - self._expired_at > min(600.0, self.retention):
            self._expired_at = time.monotonic()
            try:
                expire(self.state, self.retention, self.now())
            except (sqlite3.Error, OSError) as error:
                logger.warning("old rankings could not be forgotten", exc_info=error)

    def _write(self, batch: "list[Entry | ShownRanking]") -> None:
        """Commit a batch and answer; a batch that cannot be written is answered so, and nothing of it is kept."""
        if not batch:
            return
        outcomes: list[tuple[Entry, tuple[int, bool] | RequestError]] = []
        shown = [item for item in batch if isinstance(item, ShownRanking)]
        try:
            with self.state.transaction(durable=len(shown) < len(batch)) as db:
                for item in batch:
                    if isinstance(item, ShownRanking):
                        if item.unit is not None and number_unit(db, item):
                            self._await_outcome(db, item.id)
                        insert_shown(db, item)
                    else:
                        try:
                            outcomes.append((item, self._take(db, item)))
                        except RequestError as error:
                            outcomes.append((item, error))
        except (sqlite3.Error, OSError) as error:
            self._report_failure(batch, error)
            return
        self.full = False
        self.committed = self.state.seq
        self.counts["commits"] += 1
        self.counts["shown"] += len(shown)
        if outcomes:
            try:
                self.state.acknowledge()
            except OSError as error:  # it is committed: only a loss of the tail would not be found
                logger.warning("the mark of what was acknowledged could not be written: %s", error)
        for entry, outcome in outcomes:
            if isinstance(outcome, RequestError):
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

    def _report_failure(self, batch: "list[Entry | ShownRanking]", error: BaseException) -> None:
        """Nothing was written, or it is unknown whether: the log is read again, and clients may send again."""
        if not self.full:
            logger.error("a commit failed: %s", error)
        self.full = True
        sentence = f"the state could not be written ({error}); nothing was recorded: send it again later"
        due = [item.ranking for item in batch if isinstance(item, Entry) and item.body == _BY_WINDOW]
        self._windows.extendleft((self.now() - self.window, str(ranking)) for ranking in reversed(due))
        for item in batch:
            if isinstance(item, Entry):
                self.counts["failed"] += 1
                item.done.set_exception(RequestError(sentence, 503))
            else:
                self.counts["unlogged"] += 1
        try:
            self.state.resume()
            self.committed = self.state.seq
        except sqlite3.Error as again:
            logger.error("the log could not be read again: %s", again)

    def _take(self, db: sqlite3.Connection, entry: Entry) -> tuple[int, bool]:
        """Write one event unless it is in the log; an event that is rejected writes nothing."""
        same = entry.kind, entry.model, entry.ranking, statefile.digest_of(entry.body)
        found = db.execute("SELECT seq, kind, model, ranking, digest FROM event WHERE id=?", (entry.id,)).fetchone()
        if found is not None:
            if found[1:] == same:
                return found[0], False
            raise RequestError(
                f"the event id {entry.id!r:.80} is already in the log, at event {found[0]:,}, with different content",
                409,
            )
        if entry.ranking is not None:
            self._check_ranking(db, entry)
        else:
            if self.stuck is not None or self.replay.seq != self.state.seq:
                raise RequestError(
                    "learning has failed and is being retried, so models cannot be changed now: try again", 503
                )
            check_change(self.replay, entry, self.state.seq, statefile.compaction_end(db))
        reads = statefile.reads_of(db, entry.ranking) if entry.kind in ("grades", "close") else None
        if entry.file is not None:
            reads = bytes.fromhex(self.state.keep_file(entry.file))
        at = self.now()
        seq = self.state.append(entry.id, entry.kind, entry.model, entry.ranking, entry.body, reads, at)
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
        at = self.now()
        if db.execute("INSERT OR IGNORE INTO outcome VALUES(?,?,NULL)", (ranking, at)).rowcount:
            self._windows.append((at, ranking))

    def _check_ranking(self, db: sqlite3.Connection, entry: Entry) -> None:
        """Raise an error for feedback that cannot be taken; write the ranking if the feedback brings it."""
        row = db.execute("SELECT closed FROM outcome WHERE ranking=?", (entry.ranking,)).fetchone()
        if row is not None and row[0] is not None:
            raise RequestError(f"the ranking {entry.ranking!r:.80} was already closed, by event {row[0]:,}", 409)
        row = db.execute("SELECT ids, model, experiment FROM shown WHERE id=?", (entry.ranking,)).fetchone()
        brought, feedback = entry.shown, entry.feedback
        if row is None and brought is None:
            raise RequestError(
                f"the ranking {entry.ranking!r:.80} is not known (yet): send the feedback again, or add ids and x",
                409,
                retry=True,
            )
        if row is None and brought is not None:
            if feedback is not None:
                self._check_feedback(feedback, brought.ids, [brought.model])
            insert_shown(db, brought)
            return
        ids, models = read_any(row[0]), self._models_of(row[1], row[2])
        if feedback is not None:
            self._check_brought(db, entry, ids, models)
            self._check_feedback(feedback, ids, models)

    def _models_of(self, model: str, experiment: str | None) -> list[str]:
        """The models that a ranking is about: the one that showed it first, and those of its experiment."""
        found = self.replay.experiments.get(experiment or "")
        return [model] if found is None else list(dict.fromkeys([model, found.request.model, found.request.challenger]))

    def _check_feedback(self, feedback: Feedback, ids: list[str], models: list[str]) -> None:
        """Raise an error for grades or clicks that do not fit a ranking of these documents."""
        if isinstance(feedback.grades, list) and len(feedback.grades) != len(ids):
            raise RequestError(
                f"grades must have one value for each of the {len(ids):,} documents of the ranking, got "
                f"{len(feedback.grades):,}"
            )
        named = feedback.grades if isinstance(feedback.grades, dict) else feedback.clicks
        if named:
            known = set(ids)
            for id in named:
                if id not in known:
                    raise RequestError(f"the ranking has no document {id!r:.80}")
        labels = (
            feedback.grades.values()
            if isinstance(feedback.grades, dict)
            else feedback.grades or ([1.0] if named else [])
        )
        rankers = [self.replay.models[name].ranker for name in models if name in self.replay.models]
        distinct = tuple(sorted(set(labels)))
        look = label_problem if len(distinct) <= _GRADES else label_problem.__wrapped__
        for measure in {ranker._measure() for ranker in rankers}:
            why = look(measure, distinct)
            if why is not None:
                raise RequestError(f"the grades are not valid for {measure.title}: {why}")

    @staticmethod
    def _check_brought(db: sqlite3.Connection, entry: Entry, ids: list[str], models: list[str]) -> None:
        """Raise an error for feedback about something other than what its ranking showed."""
        feedback, brought = entry.feedback, entry.shown
        if feedback is not None and feedback.model is not None and feedback.model not in models:
            raise RequestError(
                f"the feedback must name the model that showed {entry.ranking!r:.80}, {models[0]!r}, got "
                f"{feedback.model!r}",
                409,
            )
        if brought is None:
            return
        row_of = {id: row for row, id in enumerate(ids)}
        rows = [row_of.get(id, -1) for id in brought.ids]
        same = len(rows) == len(ids) and -1 not in rows
        if same and feedback is not None and isinstance(feedback.grades, list):
            same = brought.ids == ids  # grades without ids follow the order of the request
        if same:
            wide, x = db.execute("SELECT wide, x FROM shown WHERE id=?", (entry.ranking,)).fetchone()
            shown, given = decode_features(x, wide)[rows], np.asarray(brought.X, dtype=np.float64)
            same = shown.shape == given.shape and np.array_equal(shown, given, equal_nan=True)
        if same:
            return
        raise RequestError(
            f"the ranking {entry.ranking!r:.80} showed documents other than the ids and x of this feedback: send "
            "what was ranked, in the same order, or leave out ids and x",
            409,
        )

    def _advance(self) -> None:
        """Learn from what was committed, and publish; what fails is tried again from the last snapshot."""
        since = time.monotonic() - self._learned_at
        if self.committed == self.replay.seq and self.stuck is None:
            return
        if self.stuck is not None and since < self._again:
            return
        self._learned_at = time.monotonic()
        try:
            if self.stuck is None:
                self.replay.advance(self.state.db, self.committed)
            else:  # nobody knows how far the failed attempt came
                self.replay = Replay.at(self.state.db, self.committed)
            if self.on_advance is not None:
                self.on_advance(self.replay)
        except StateDamaged:
            raise
        except Exception as error:
            logger.error("the models could not learn: %s", error, exc_info=self.stuck is None)
            self._again = _AGAIN[0] if self.stuck is None else min(2 * self._again, _AGAIN[1])
            self.stuck = error
            return
        self.stuck = None
        lists = sum(served.lists for served in self.replay.models.values())
        if lists - self._snapshot_at >= max(self.snapshot_every, self._snapshot_at // 5):
            self._keep_snapshot("")

    def _keep_snapshot(self, note: str) -> None:
        """Keep a snapshot; without one a restart only takes longer."""
        self._snapshot_at = sum(served.lists for served in self.replay.models.values())
        try:
            self.replay.snapshot(self.state, note, self.now())
            forget_snapshots(self.state)
        except Exception as error:
            logger.warning("a snapshot could not be kept: %s", error)


def number_unit(db: sqlite3.Connection, shown: ShownRanking) -> bool:
    """Number a unit that an experiment shows its first ranking; False if it was shown one before.

    A unit takes one row of about 15 bytes. The ranking keeps the number, so a replay needs no memory of units.
    """
    # SQLite has signed integers
    if not db.execute("INSERT OR IGNORE INTO unit VALUES(?)", ((shown.unit or 0) - (1 << 63),)).rowcount:
        return False
    name = f"units of {shown.experiment}"
    number = int(statefile.fact(db, name, 0))
    db.execute("INSERT OR REPLACE INTO fact VALUES(?,?)", (name, number + 1))
    shown.teams = SPLIT_UNIT.pack((shown.teams or b"\0")[0], number)
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


def insert_shown(db: sqlite3.Connection, shown: ShownRanking) -> None:
    """Write what a ranking showed with its digest, unless it is there."""
    wide, x = encode_features(shown.X)
    place, ids = np.asarray(shown.place, np.int32).tobytes(), encode(shown.ids)
    about = shown.id, shown.model, shown.version, shown.at
    row = ShownRow(*about, len(shown.ids), ids, wide, x, place, shown.experiment, shown.teams)
    columns, marks = ", ".join(ShownRow._fields), ",".join("?" * (len(row) + 1))
    db.execute(f"INSERT OR IGNORE INTO shown(digest, {columns}) VALUES({marks})", (statefile.digest_of(*row), *row))


def check_change(replay: Replay, entry: Entry, last: int, compacted: int) -> None:
    """Raise an error for a change of models or experiments that cannot be made after all events before it."""
    body = read_any(entry.body)
    if entry.kind in ("promote", "rollback", "freeze", "thaw"):
        served = replay.models.get(entry.model)
        if served is None:
            raise RequestError(f"there is no model {entry.model!r}", 404)
        version = body.get("version")
        if entry.kind == "rollback" and version is None:
            raise RequestError("a rollback requires the version to go back to")
        if version is not None and not max(served.since, compacted) <= version <= last:
            first = max(served.since, compacted)
            raise RequestError(
                f"the version of {entry.model!r} must be between {first:,} and {last:,}, got {version:,}"
            )
        if version is not None and entry.file is None and entry.kind in ("promote", "rollback"):
            raise RequestError(f"version {version:,} of {entry.model!r} could not be rebuilt: try again", 503)
    elif entry.kind == "model":
        busy, served = _experiments_of(replay, entry.model), replay.models.get(entry.model)
        if busy and served is not None and served.ranker.n_features_in_ != body["features"]:
            raise RequestError(
                f"{entry.model!r} takes part in {busy[0]!r}: its number of features cannot change now", 409
            )
    elif entry.kind == "experiment":
        model, challenger = (replay.models.get(body[side]) for side in ("model", "challenger"))
        if model is None or challenger is None or model is challenger:
            raise RequestError("an experiment requires two different models of this service")
        if model.ranker.n_features_in_ != challenger.ranker.n_features_in_:
            raise RequestError("both models of an experiment must have the same number of features")
        if body["name"] in replay.experiments:
            raise RequestError(f"the experiment {body['name']!r} already exists", 409)
        busy = _experiments_of(replay, body["model"])
        if busy:
            raise RequestError(f"{body['model']!r} takes part in {busy[0]!r}: stop that experiment first", 409)
    elif entry.kind == "stop" and body["name"] not in replay.experiments:
        raise RequestError(f"there is no experiment {body['name']!r}", 404)


def _experiments_of(replay: Replay, name: str) -> list[str]:
    """The experiments that a model takes part in."""
    running = [experiment.request for experiment in replay.experiments.values() if experiment.running]
    return [request.name for request in running if name in (request.model, request.challenger)]
