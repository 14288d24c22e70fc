"""The replay of the log: models, accounts and experiments as a function of the events, and of nothing else.

:class:`Replay` reads events in their order and does what they say. A running service advances its replay after every
commit, a restart advances from the last snapshot, ``rankwise replay`` from nothing: the same code and the same bits,
because no division of the log into blocks changes what an online ranker learns. It never looks back: an event that
names an older version brings the file of that version (:func:`file_at`), so the time is linear in the events.
"""

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise._store import store_of_bytes
from rankwise.errors import DataError, RankwiseError
from rankwise.guarantees.holdout.sequences import RunningMean
from rankwise.io.any_file import booster_of
from rankwise.measures.compute import ScoredLists, measure_lists_by_ties
from rankwise.rankers._base import Ranker
from rankwise.rankers._record import KIND, read_ranker, save_ranker
from rankwise.rankers.model_files import open_ranker
from rankwise.rankers.online.learner import GATHERED, OnlineLearner
from rankwise.rankers.online.shown_list import ShownList
from rankwise.serve import statefile
from rankwise.serve.experiments import SPLIT_UNIT, Experiment, resume_mean
from rankwise.serve.statefile import Event, StateDamaged, StateFile, digest_of
from rankwise.serve.structs import encode, read_experiment
from rankwise.serve.structs import read_feedback as read_stored

Matrix = NDArray[np.float64]

_GATHERED = 1 << 16  # documents of closed lists that are learned together


class Closed(NamedTuple):
    """A ranking whose labels are complete."""

    seq: int
    model: str
    X: Matrix
    y: Matrix
    place: NDArray[np.int32]
    experiment: str | None
    teams: bytes | None
    clicks: int | None  # events with clicks; None where the labels are grades

    @property
    def judged(self) -> bool:
        """Whether anybody said anything: a ranking that was closed without feedback is not learned from."""
        return self.clicks is None or self.clicks > 0


@dataclass
class Served:
    """One model as the log has made it.

    Attributes
    ----------
    name : str
        Its name in the service.
    ranker : Ranker
        Its newest state.
    since : int
        The event that brought its file.
    version : int
        The last event that it learned from.
    frozen : bool
        Whether it learns no more for now.
    pinned : tuple of int and Ranker, or None
        The version that is published in place of the newest.
    lists, refused : int
        Lists learned from, and lists that could not be learned from.
    reason : str
        Why the last of them could not.
    clicked : int
        Lists of this model, learned from or shown by it, whose labels came from clicks.
    running : RunningMean
        The measure of what this model showed.
    """

    name: str
    ranker: Ranker
    since: int
    version: int
    frozen: bool = False
    pinned: tuple[int, Ranker] | None = None
    lists: int = 0
    refused: int = 0
    reason: str = ""
    clicked: int = 0
    running: RunningMean = field(default_factory=RunningMean)

    @property
    def learns(self) -> bool:
        """Whether the ranker is one that learns from single lists."""
        return isinstance(self.ranker, OnlineLearner)

    @property
    def feedback_depth(self) -> int | None:
        """How many of the documents shown first the ranker learns the labels of; None if it learns all labels."""
        return getattr(self.ranker, "feedback_depth", None)

    def lessons(self, lists: Iterable[Closed]) -> Iterator[Any]:
        """The lists with their labels; with a feedback depth those that the ranker showed, with the first labels."""
        for one in lists:
            if self.feedback_depth is None:
                yield one.X, one.y
                continue
            try:
                record = one.teams if one.model == self.name and one.experiment is None else None
                shown = ShownList.of_record(one.X, one.place, record)
                yield shown.labeled(one.y[shown.seen])
            except RankwiseError as error:
                self.refused, self.reason = self.refused + 1, str(error)

    def learn(self, lists: Sequence[Any]) -> None:
        """Learn from lists in their order; one that cannot be learned from is left out and counted."""
        for part in _in_blocks(lists):
            self._learn_block(part)

    def _learn_block(self, lists: Sequence[Any]) -> None:
        """Learn from lists that ``partial_fit`` takes as one block, of which it learns all or none."""
        if not isinstance(self.ranker, OnlineLearner):
            return
        try:
            self.ranker.partial_fit(lists)
            self.lists += len(lists)
        except RankwiseError as error:
            if len(lists) == 1:
                self.refused, self.reason = self.refused + 1, str(error)
                return
            for one in lists:  # what they give one by one does not depend on the block
                self._learn_block([one])


def _in_blocks(lists: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """The lists in parts that ``partial_fit`` does not divide further."""
    first, documents = 0, 0
    for number, one in enumerate(lists):
        documents += len(one.X if isinstance(one, ShownList) else one[0])
        if documents >= GATHERED or number == len(lists) - 1:
            yield lists[first : number + 1]
            first, documents = number + 1, 0


@dataclass
class Replay:
    """All models after some event.

    Parameters
    ----------
    seq : int, default=0
        The last event that was taken in.
    models : dict of str to Served
        The models by name.
    default : str or None, default=None
        The model of requests that name none.
    experiments : dict of str to Experiment
        The experiments by name.
    """

    seq: int = 0
    models: dict[str, Served] = field(default_factory=dict)
    default: str | None = None
    experiments: dict[str, Experiment] = field(default_factory=dict)

    # ------------------------------------------------------------------------------------------- from the log

    @classmethod
    def at(cls, db: sqlite3.Connection, to: int | None = None, *, from_nothing: bool = False) -> "Replay":
        """The replay after event ``to`` (None: the last), from the last snapshot before it or from nothing."""
        with statefile.translate_errors_of(db):
            (last,) = db.execute("SELECT coalesce(max(seq), 0) FROM event").fetchone()
            to = last if to is None else to
            if not 0 <= to <= last:
                raise RankwiseError(f"the event must be between 0 and {last:,}, the last of the log, got {to:,}")
            first = statefile.compaction_end(db)
            if to < first:
                raise RankwiseError(f"the log before event {first:,} was compacted, so event {to:,} cannot be replayed")
            row = db.execute(
                "SELECT seq, digest, body FROM snapshot WHERE seq<=? ORDER BY seq DESC LIMIT 1",
                (first if from_nothing else to,),
            ).fetchone()
            replay = cls() if row is None else cls._from_snapshot(db, *row)
        replay.advance(db, to)
        return replay

    def advance(self, db: sqlite3.Connection, to: int) -> None:
        """Take in the events up to ``to``."""
        waiting: list[Closed] = []
        documents = 0
        with statefile.translate_errors_of(db):
            for event in statefile.read_events(db, self.seq, to):
                shown = event.shown
                if shown is not None:
                    X = decode_features(shown.x, shown.wide)
                    graded = event.kind == "grades"
                    bodies = [event.body] if graded else event.clicks
                    y = labels_of(map(read_stored, bodies), shown.ids, len(X))
                    where, clicks = np.frombuffer(shown.place, np.int32), None if graded else len(bodies)
                    waiting.append(Closed(event.seq, shown.model, X, y, where, shown.experiment, shown.teams, clicks))
                    documents += len(X)
                change = event.ranking is None
                if waiting and (documents >= _GATHERED or change):
                    self._close(waiting)
                    waiting, documents = [], 0
                if change:
                    self._change(db, event)
                self.seq = event.seq
            self._close(waiting)

    def _close(self, lists: Sequence[Closed]) -> None:
        """Learn from lists whose labels are complete, and account for what was shown."""
        judged = [one for one in lists if one.judged]
        for name, served in self.models.items():
            if served.learns and not served.frozen:
                served.learn(list(served.lessons(one for one in judged if self._concerns(one, name))))
        self._account(lists)
        for served in self.models.values():
            last = [one for one in judged if self._concerns(one, served.name)]
            served.clicked += sum(one.clicks is not None for one in last)
            if last and served.learns and not served.frozen:
                served.version = last[-1].seq

    def _concerns(self, one: Closed, name: str) -> bool:
        """Whether a model learns from a list: from its own, and from those of the experiments that it is in."""
        found = self.experiments.get(one.experiment or "")
        return one.model == name or (found is not None and name in (found.request.model, found.request.challenger))

    def _account(self, lists: Sequence[Closed]) -> None:
        """The measure of what was shown, and the outcome of experiments."""
        interleaved = {name for name, one in self.experiments.items() if one.request.kind == "interleave"}
        for name, served in self.models.items():
            if served.feedback_depth is not None:  # the measure needs labels that are not seen
                continue
            own = [one for one in lists if one.judged and one.model == name and one.experiment not in interleaved]
            served.running.update(values_of(served.ranker, [(one.place, one.y) for one in own]))
        for experiment in self.experiments.values():
            part = [one for one in lists if one.experiment == experiment.request.name]
            if part:
                self._read_out(experiment, part)

    def _read_out(self, experiment: Experiment, lists: Sequence[Closed]) -> None:
        """Add closed rankings to an experiment, both sides by the measure of its model."""
        kind, ranker = experiment.request.kind, self.models[experiment.request.model].ranker
        experiment.clicked += sum(bool(one.clicks) for one in lists)
        if kind == "split":  # a ranking without feedback counts, or the side with fewer clicks would only look better
            lists = [one for one in lists if len(one.teams or b"") == SPLIT_UNIT.size]
            values = np.nan_to_num(values_of(ranker, [(one.place, one.y) for one in lists]))
            experiment.account.add(
                (*reversed(SPLIT_UNIT.unpack(one.teams or b"")), value)
                for one, value in zip(lists, values.tolist(), strict=True)
            )
            return
        lists = [one for one in lists if one.judged]
        if kind == "shadow":
            shown = values_of(ranker, [(one.place, one.y) for one in lists])
            theirs = values_of(ranker, [(np.frombuffer(one.teams or b"", np.int32), one.y) for one in lists])
            experiment.account.update(theirs - shown)
            return
        for one in lists:
            team = np.frombuffer(one.teams or b"", np.uint8)
            credit = [float(one.y[team == side].sum()) for side in (0, 1)]
            experiment.account.update(float(np.sign(credit[1] - credit[0])))

    def _change(self, db: sqlite3.Connection, event: Event) -> None:
        """An event that is no feedback."""
        seq, kind, name, body = event.seq, event.kind, event.model, json.loads(event.body)
        ranker = None if event.reads is None else ranker_of(db, event.reads.hex())
        if kind == "model" and ranker is not None:
            self.models[name] = Served(name, ranker, seq, seq)
            self.default = self.default or name
        elif kind == "experiment":
            request = read_experiment(event.body)
            self.experiments[request.name] = Experiment(request, seq)
        elif kind == "stop":
            self.experiments[body["name"]].running = False
        elif kind in ("freeze", "thaw"):
            self.models[name].frozen = kind == "freeze"
        elif kind == "promote":
            self.models[name].pinned = None if ranker is None else (body["version"], ranker)
            self.default = name
        elif kind == "rollback" and ranker is not None:
            served = self.models[name]
            served.ranker, served.version = ranker, body["version"]
            served.frozen, served.pinned = True, None
        else:
            raise StateDamaged(f"event {seq:,} has the unknown kind {kind!r}")

    # ------------------------------------------------------------------------------------------- snapshots

    def snapshot(self, state: StateFile, note: str, at: float) -> dict[str, str]:
        """Keep the whole replay in the state; the digests of its model files by name."""
        files = {name: file_of(served.ranker) for name, served in self.models.items()}
        pins = {name: file_of(one.pinned[1]) for name, one in self.models.items() if one.pinned is not None}
        with state.transaction(durable=True) as db:
            digests = {name: state.keep_file(data) for name, data in files.items()}
            pinned = {name: state.keep_file(data) for name, data in pins.items()}
            body = {
                "default": self.default,
                "models": {
                    name: {
                        "file": digests[name],
                        "pinned": None if one.pinned is None else [one.pinned[0], pinned[name]],
                        "running": one.running.to_dict(),
                        **{key: getattr(one, key) for key in _KEPT},
                    }
                    for name, one in self.models.items()
                },
                "experiments": [
                    {"request": encode(one.request).decode(), **one.to_dict()} for one in self.experiments.values()
                ],
            }
            data = json.dumps(body).encode()
            digest = snapshot_digest(db, self.seq, data)
            db.execute("INSERT OR REPLACE INTO snapshot VALUES(?,?,?,?)", (self.seq, digest, data, at))
            for name, file in digests.items():
                row = (name, self.seq, file, at, note)
                db.execute("INSERT OR REPLACE INTO version VALUES(?,?,?,?,?)", row)
        return digests

    @classmethod
    def _from_snapshot(cls, db: sqlite3.Connection, seq: int, digest: bytes, body: bytes) -> "Replay":
        if digest != snapshot_digest(db, seq, body):
            raise StateDamaged(f"the state is damaged: the snapshot after event {seq:,} was changed")
        stored = json.loads(body)
        replay = cls(seq=seq, default=stored["default"])
        for name, one in stored["models"].items():
            pinned = None if one["pinned"] is None else (one["pinned"][0], ranker_of(db, one["pinned"][1]))
            kept = {key: one[key] for key in _KEPT}
            ranker = ranker_of(db, one["file"])
            replay.models[name] = Served(name, ranker, pinned=pinned, running=resume_mean(one["running"]), **kept)
        for one in stored["experiments"]:
            request = read_experiment(one["request"].encode())
            replay.experiments[request.name] = Experiment.from_dict(request, one)
        return replay


_KEPT = ("since", "version", "frozen", "lists", "refused", "reason", "clicked")


# --------------------------------------------------------------------------------------------------- pieces


def labels_of(feedback: Iterable[Any], ids: bytes, documents: int) -> Matrix:
    """One label per document, in the order of the request for the ranking; clicked documents have label 1."""
    y = np.zeros(documents)
    for one in feedback:
        if isinstance(one.grades, list):
            return np.array(one.grades, dtype=np.float64)
        place = {id: number for number, id in enumerate(json.loads(ids))}
        for id, grade in (one.grades or dict.fromkeys(one.clicks or (), 1.0)).items():
            y[place[id]] = grade
    return y


def decode_features(x: bytes, wide: int) -> Matrix:
    """Features as they were shown, always as float64: blocks of any lists then have the same bits."""
    kind, width = (np.float64 if wide < 0 else np.float32), abs(wide)
    return np.frombuffer(x, kind).reshape(-1, width).astype(np.float64)


def encode_features(X: NDArray[Any]) -> tuple[int, bytes]:
    """(width, negative for float64; bytes) of features, in float32 where that changes no value."""
    if X.dtype != np.float32:
        with np.errstate(over="ignore"):
            narrow = X.astype(np.float32)
        if not np.array_equal(narrow, X, equal_nan=True):
            return -X.shape[1], X.tobytes()
        X = narrow
    return X.shape[1], X.tobytes()


def values_of(ranker: Ranker, orders: Sequence[tuple[NDArray[np.int32], Matrix]]) -> Matrix:
    """The measure of orders, each given as the position of every document; NaN where it is not defined in [0, 1]."""
    if not orders:
        return np.empty(0)
    start = np.cumsum([0, *(len(y) for _, y in orders)], dtype=np.int64)
    scores = -np.concatenate([place for place, _ in orders]).astype(np.float64)
    lists = ScoredLists(scores, np.concatenate([y for _, y in orders]), start)
    try:
        values = measure_lists_by_ties([ranker._measure()], lists, ["stable"], n_jobs=1)[0, 0]
    except RankwiseError:  # a label that the measure does not know: only its own list is left out
        if len(orders) == 1:
            return np.full(1, np.nan)
        return np.concatenate([values_of(ranker, [one]) for one in orders])
    return np.where((values >= 0) & (values <= 1), values, np.nan)


def snapshot_digest(db: sqlite3.Connection, seq: int, body: bytes) -> bytes:
    """The digest of a snapshot, which belongs to one log."""
    return digest_of(seq, statefile.chain_at(db, seq), body)


def file_of(ranker: Ranker) -> bytes:
    """The bytes of a ranker's file."""
    ranker._check_fitted()
    file = BytesIO()
    save_ranker(ranker, file)
    return file.getvalue()


def model_bytes(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a model file; the trees of a booster become the file that ``save`` would write of them."""
    return Path(path).read_bytes() if booster_of(path) is None else file_of(open_ranker(path))


def ranker_of_bytes(data: bytes) -> Ranker:
    """The ranker in the bytes of a file; raises an error for anything else."""
    store = store_of_bytes(data, "the model file")
    if store.kind != KIND:
        raise DataError(f"the model file must hold a saved ranker, got {store.kind!r:.40}")
    return read_ranker(store)


def ranker_of(db: sqlite3.Connection, digest: str) -> Ranker:
    """The ranker that is kept under a digest."""
    row = db.execute("SELECT data FROM file WHERE digest=?", (digest,)).fetchone()
    if row is None or not isinstance(row[0], bytes) or statefile.file_digest(row[0]) != digest:
        raise StateDamaged(f"the state is damaged: the model file {digest} is missing or was changed")
    return ranker_of_bytes(row[0])


def file_at(db: sqlite3.Connection, name: str, version: int) -> bytes:
    """The file of a model as it was after an event, for an event that names that version."""
    past = Replay.at(db, version)
    if name not in past.models:
        raise RankwiseError(f"the model {name!r} did not exist at event {version:,}")
    return file_of(past.models[name].ranker)
