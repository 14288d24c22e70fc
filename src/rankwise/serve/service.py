"""The service without HTTP: it ranks with published models, hands feedback to the log, and answers questions.

Requests read :attr:`Service.published`, which the thread of the log replaces as a whole after every change; nothing
here waits for a lock. A ranking is scored with one version of one model from beginning to end.
"""

import asyncio
import copy
import logging
import math
import os
import secrets
import sqlite3
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from rankwise.analysis.explanation import contributions_of
from rankwise.errors import DataError, RankwiseError, in_one_line
from rankwise.guarantees._bound import Bound, Precondition
from rankwise.guarantees.bounds.online import INDEPENDENT, RISK
from rankwise.guarantees.cutoff import Cutoff
from rankwise.guarantees.holdout.sequences import anytime_radius
from rankwise.rankers._base import LinearRanker, Ranker
from rankwise.rankers.online.learner import OnlineLearner
from rankwise.rankers.scorer import Scorer
from rankwise.serve import structs
from rankwise.serve.cuts import Cutoffs
from rankwise.serve.drift import Drift
from rankwise.serve.experiments import Experiment, as_interval, interleave
from rankwise.serve.log import OWN, Entry, Log, LoopReply, RequestError, ShownRanking
from rankwise.serve.replay import Replay, Served, file_at, model_bytes, ranker_of_bytes
from rankwise.serve.statefile import StateFile, file_digest, open_to_read
from rankwise.serve.structs import Feedback, RankAnswer, RankedItem, RankRequest, encode

logger = logging.getLogger("rankwise.serve")

# answers are kept for the curves of the status page: (seq, mean, low, high) of the running measure
_CURVE = 512


@dataclass(frozen=True)
class Published:
    """A version of a model that rankings are made with."""

    name: str
    version: int
    scorer: Scorer
    ranker: Ranker
    names: tuple[str, ...] | None


@dataclass(frozen=True)
class RequestLimits:
    """What a request may ask for.

    Parameters
    ----------
    body : int, default=8388608
        Bytes of a body.
    documents : int, default=10000
        Documents of one ranking.
    explained : int, default=100000
        Contributions (documents times features) in one answer that explains its scores.
    seconds : float, default=10.0
        Time to receive a body.
    wait : float, default=5.0
        Time to wait for ``min_seq``, and for a commit.
    """

    body: int = 8 << 20
    documents: int = 10_000
    explained: int = 100_000
    seconds: float = 10.0
    wait: float = 5.0


@dataclass(frozen=True)
class _View:
    """What requests see: everything after one event."""

    seq: int = 0
    default: str | None = None
    models: dict[str, Published] = field(default_factory=dict)
    running: dict[str, Experiment] = field(default_factory=dict)  # by the model that is asked for


class Service:
    """An online ranking service on one state.

    Parameters
    ----------
    state : str or path
        The SQLite file; it is made if it is not there.
    models : dict of str to path, default=None
        Model files to register by name. A name that the state knows with the same file is left as it is.
    window : float, default=1800.0
        Seconds after the first click at which a ranking is closed.
    retention : float, default=604800.0
        Seconds after which rankings without feedback are forgotten.
    limits : RequestLimits, default=RequestLimits()
        What a request may ask for.
    floor : float, default=None
        The measure that was promised, by a certificate for example: an alarm rings when what is shown is provably
        below it.
    accept_loss : bool, default=False
        Go on where acknowledged events are missing at the end of the state.
    cutoffs : sequence of Cutoff or path, default=()
        Cut-offs of the models, for requests that ask for rankings that are cut.

    Examples
    --------
    >>> import tempfile
    >>> from rankwise import SLAMPerceptron, make_lists
    >>> folder = tempfile.mkdtemp()
    >>> SLAMPerceptron().fit(make_lists(20, features=3, random_state=1)).save(f"{folder}/news.rankwise")
    >>> service = Service(f"{folder}/state.db", {"news": f"{folder}/news.rankwise"})
    >>> answer = service.rank(RankRequest(ids=["a", "b"], x=[[1.0, 0.0, 2.0], [0.0, 1.0, 1.0]]))
    >>> service.feedback(Feedback("event 1", answer.ranking, grades={"b": 1})).result()
    (2, True)
    >>> service.close()
    """

    def __init__(
        self,
        state: str | os.PathLike[str],
        models: "dict[str, str | os.PathLike[str]] | None" = None,
        *,
        window: float = 1_800.0,
        retention: float = 604_800.0,
        limits: RequestLimits | None = None,
        floor: float | None = None,
        accept_loss: bool = False,
        snapshot_every: int = 5_000,
        cutoffs: "Sequence[Cutoff | str | os.PathLike[str]]" = (),
    ) -> None:
        self.cutoffs = Cutoffs(cutoffs)
        self.limits, self.floor, self._stopping = limits or RequestLimits(), floor, False
        self.view, self.began = _View(), time.time()
        self.curves: dict[str, list[tuple[float, ...]]] = {}
        self._scorers: dict[str, tuple[Ranker, Scorer]] = {}
        self._watchers: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
        self.drift = Drift()
        # older versions are rebuilt here, one at a time: the thread of the log, and with it feedback, does not wait
        self._past = ThreadPoolExecutor(1, thread_name_prefix="rankwise-past")
        self._past_db: sqlite3.Connection | None = None
        # model files are read before the state is touched: a wrong one leaves nothing behind
        files = {name: model_bytes(path) for name, path in (models or {}).items()}
        for name, data in files.items():
            _check_model(name, data)
        self.state = StateFile(state, accept_loss=accept_loss)
        try:
            self.log = Log(
                self.state,
                window=window,
                retention=retention,
                snapshot_every=snapshot_every,
                on_advance=self._publish,
                on_shown=self._look,
            )
            for name, data in files.items():
                self._register_once(name, data)
        except BaseException:
            if hasattr(self, "log"):
                self.log.close()
            self.state.close()
            raise

    def _register_once(self, name: str, data: bytes) -> None:
        """Register a model file, unless the state knows the name: with another file that is refused."""
        served = self.log.replay.models.get(name)
        if served is None:
            self.register(name, data).result()
            self.log.call(lambda: None).result()
            return
        (reads,) = self.log.call(
            lambda: self.state.db.execute("SELECT reads FROM event WHERE seq=?", (served.since,)).fetchone()
        ).result()
        if reads.hex() != file_digest(data):
            raise RankwiseError(
                f"{self.state.path} already has another model named {name!r}: choose another name with --name, or "
                f"replace it with POST /v1/models/{name} on the running service"
            )

    def close(self) -> None:
        """Write what waits, keep a snapshot, and let others have the state."""
        self._stopping = True
        with suppress(AttributeError):  # there is none, or it was closed a moment ago
            self._past_db.interrupt()  # type: ignore[union-attr]
        self._past.shutdown()
        self.log.close()
        self.state.close()

    # ------------------------------------------------------------------------------------------- publishing

    def _publish(self, replay: Replay) -> None:
        """Replace what requests see; runs in the thread of the log."""
        models = {}
        for name, served in replay.models.items():
            version, ranker = (replay.seq, served.ranker) if served.pinned is None else served.pinned
            models[name] = self._publish_model(name, version, ranker)
            curve = self.curves.setdefault(name, [])
            one = served.running
            if one.n and (not curve or curve[-1][1] < one.n):
                curve.append((replay.seq, one.n, one.mean, one.low, one.high))
                if len(curve) > _CURVE:
                    del curve[1:-1:2]
        running = {one.request.model: one for one in replay.experiments.values() if one.running}
        self.view = _View(replay.seq, replay.default, models, running)
        for loop, event in list(self._watchers):
            loop.call_soon_threadsafe(event.set)

    def _publish_model(self, name: str, version: int, ranker: Ranker) -> Published:
        kept = self._scorers.get(name)
        if kept is not None and kept[0] is ranker and isinstance(ranker, LinearRanker) and hasattr(ranker, "coef_"):
            scorer = kept[1].with_coef(ranker.coef_)
        elif kept is not None and kept[0] is ranker and not isinstance(ranker, OnlineLearner):
            scorer = kept[1]
        else:
            scorer = Scorer(ranker)
            self._scorers[name] = ranker, scorer
        names = ranker._names()
        return Published(name, version, scorer, copy.copy(ranker), None if names is None else tuple(names))

    def _look(self, shown: list[ShownRanking]) -> None:
        """Compare some features with their usual range; runs in the thread of the log."""
        for one in shown[::8]:
            self.drift.look(one.model, np.asarray(one.X))

    async def wait_for(self, seq: int) -> None:
        """Wait until everything up to ``seq`` is in the published models."""
        if self.view.seq >= seq:
            return
        if seq > self.log.committed:  # whoever knows a place in the log was told it after its commit
            raise RequestError(f"there is no event {seq:,} yet: the log ends at {self.log.committed:,}", 409, True)
        watcher = asyncio.get_running_loop(), asyncio.Event()
        self._watchers.append(watcher)
        try:
            async with asyncio.timeout(self.limits.wait):
                while self.view.seq < seq:
                    self.log.hurry()
                    await watcher[1].wait()
                    watcher[1].clear()
        except TimeoutError:
            raise RequestError(f"event {seq:,} is not learned yet: the models are at {self.view.seq:,}", 503) from None
        finally:
            self._watchers.remove(watcher)

    # ------------------------------------------------------------------------------------------- ranking

    def model(self, name: str | None, view: _View | None = None) -> Published:
        """The published version of a model; the default one without a name."""
        view = self.view if view is None else view
        found = view.models.get(name or view.default or "")
        if found is None:
            raise RequestError(f"there is no model {name!r}" if name else "there is no model yet", 404)
        return found

    def rank(self, request: RankRequest, X: NDArray[Any] | None = None) -> RankAnswer:
        """Rank documents, and remember what was shown.

        Parameters
        ----------
        request : RankRequest
            The request.
        X : ndarray of shape (n_documents, n_features), default=None
            The features, if they did not come in the request.

        Returns
        -------
        RankAnswer
            The ranking.

        Raises
        ------
        RankwiseError
            If the request does not fit the model.
        """
        view = self.view  # as it is now: models and experiments of two moments may not fit together
        used = self.model(request.model, view)
        ids, X = self._documents(request, X, used)
        ranking = _new_ranking()
        asked, experiment, teams, unit = used.name, view.running.get(used.name), None, None
        if experiment is not None:
            other = view.models[experiment.request.challenger]
            if experiment.request.kind == "split":
                unit, side = experiment.assign(request.user or ranking)
                used, teams = (other if side else used), bytes([side])
        scores, drawn_at_random = _finite(used.scorer.scores(X), ids), False
        order = (-scores).argsort(kind="stable")
        if experiment is not None and experiment.request.kind != "split":
            theirs = (-_finite(other.scorer.scores(X), ids)).argsort(kind="stable")
            if experiment.request.kind == "shadow":
                teams = _places(theirs).tobytes()
            else:
                order, team = interleave(order, theirs, experiment.seed(ranking))
                teams, drawn_at_random = team.tobytes(), True
        if experiment is None and getattr(used.ranker, "feedback_depth", None) is not None:
            drawn = used.ranker.show(X, name=ranking, scores=scores)
            order, teams, drawn_at_random = drawn.order, drawn.record(), True
        adds = self._explain(used, X, ids) if request.explain else None
        listed, values = order.tolist(), scores.tolist()
        if request.cut:
            if drawn_at_random:
                raise RequestError("cut must be false for rankings that are interleaved or drawn at random", 409)
            kept = self.cutoffs.kept(used.name, used.version, used.ranker, scores)
            listed = [row for row in listed if kept[row]]
        items = [RankedItem(ids[row], values[row]) for row in listed]
        if adds is not None:
            for item, row in zip(items, listed, strict=True):
                item.adds = adds[row]
        name = None if experiment is None else experiment.request.name
        shown = ShownRanking(
            ranking, used.name, used.version, self.log.now(), ids, X, _places(order), name, teams, unit
        )
        logged = self.log.show(shown)
        return RankAnswer(ranking, asked if teams is None else used.name, used.version, items, logged)

    def _documents(
        self, request: RankRequest, X: NDArray[Any] | None, used: Published
    ) -> tuple[list[str], NDArray[Any]]:
        """Ids and features of a request."""
        width = used.ranker.n_features_in_
        if request.items is not None:
            if request.ids is not None or request.x is not None or X is not None:
                raise DataError("a request must have either items, or ids and x; got both")
            ids = [one.id for one in request.items]
            self._check_length(len(ids), width)
            return _distinct(ids), _by_name(request.items, used)
        if request.ids is None or (request.x is None and X is None):
            raise DataError("a request must have either ids and x, or items with features by name; got neither")
        ids = request.ids
        self._check_length(len(ids), width)
        if X is None:
            try:
                X = np.array(request.x, dtype=np.float64)
            except ValueError:
                raise DataError(
                    f"x must be a matrix with {width} numbers for each of the {len(ids):,} ids, got rows of different "
                    "lengths"
                ) from None
        if X.shape != (len(ids), width) and not (len(ids) == 0 and X.size == 0):
            shape = " x ".join(map(str, X.shape))
            raise DataError(f"x must have {width} features for each of {len(ids):,} ids, got {shape}")
        return _distinct(ids), X.reshape(len(ids), width)

    def _check_length(self, documents: int, width: int) -> None:
        if documents > self.limits.documents:
            raise RequestError(
                f"a ranking must have at most {self.limits.documents:,} documents, got {documents:,}", 413
            )
        # features by name may be left out: a small body must not become a large matrix
        if documents * width > self.limits.body // 2:
            raise RequestError(
                f"a ranking must have at most {self.limits.body // 2:,} values, got {documents:,} documents of "
                f"{width:,} features",
                413,
            )

    def _explain(self, used: Published, X: NDArray[Any], ids: list[str]) -> list[dict[str, float]]:
        """What each feature adds to the score of each document over the average one."""
        from rankwise.queries.queries import Queries

        if X.size > self.limits.explained:
            raise RequestError(
                f"an explained answer must have at most {self.limits.explained:,} contributions, got {len(X):,} "
                f"documents of {X.shape[1]:,} features: explain fewer documents in one request",
                413,
            )
        lists = Queries.from_arrays(X, group=[len(X)], feature_names=used.names, missing=used.ranker.missing)
        parts = contributions_of(used.ranker, lists)
        parts = parts - parts.mean(axis=0) if len(parts) else parts
        _finite(parts.sum(axis=1), ids)
        names = used.names or tuple(f"x{column + 1}" for column in range(X.shape[1]))
        return [dict(zip(names, row, strict=True)) for row in parts.tolist()]

    # ------------------------------------------------------------------------------------------- feedback

    def feedback(self, feedback: Feedback) -> "Future[tuple[int, bool]]":
        """Record what became of a ranking; the future has (seq, new) after a durable commit."""
        done: Future[tuple[int, bool]] = Future()
        self.record(feedback, done)
        return done

    def record(self, feedback: Feedback, done: "Future[tuple[int, bool]] | LoopReply") -> None:
        """Record what became of a ranking, and give the outcome to ``done``."""
        try:
            if (feedback.grades is None) == (feedback.clicks is None):
                raise RequestError(
                    "feedback must have either grades or clicks, got "
                    + ("neither" if feedback.grades is None else "both")
                )
            _event_id(feedback.id)
            if (feedback.ids is None) != (feedback.x is None):
                raise RequestError("feedback must have both ids and x, or neither")
            shown = None if feedback.ids is None else self._ranking_of(feedback)
        except RankwiseError as error:
            done.set_exception(error if isinstance(error, RequestError) else RequestError(str(error)))
            return
        kind, model = "clicks" if feedback.grades is None else "grades", feedback.model or ""
        self.log.add(Entry(feedback.id, kind, model, encode(feedback), feedback.ranking, done, feedback, shown=shown))

    def _ranking_of(self, feedback: Feedback) -> ShownRanking:
        """The ranking that feedback describes itself: the order of its ids is the order that was shown."""
        used = self.model(feedback.model)
        ids, X = self._documents(RankRequest(ids=feedback.ids, x=feedback.x), None, used)
        _finite(used.scorer.scores(X), ids)  # refuses what the ranker does not take
        return ShownRanking(feedback.ranking, used.name, used.version, self.log.now(), ids, X, np.arange(len(ids)))

    def close_ranking(self, ranking: str, id: str | None = None) -> "Future[tuple[int, bool]]":
        """End the clicks of a ranking: it is learned now."""
        named = f"{OWN}close:{ranking}" if id is None else _event_id(id)
        return self._add(Entry(named, "close", "", b'{"by":"request"}', ranking))

    # ------------------------------------------------------------------------------------------- changes

    def register(self, name: str, data: bytes, id: str | None = None) -> "Future[tuple[int, bool]]":
        """Add a model, or give a model a new file from which it goes on."""
        named = _event_id(id)
        body = {"file": file_digest(data), "features": _check_model(name, data).n_features_in_}
        return self._add(Entry(named, "model", name, encode(body), file=data))

    def change(self, kind: str, name: str, body: dict[str, Any], id: str | None = None) -> "Future[tuple[int, bool]]":
        """Promote, roll back, freeze or thaw a model, or begin or stop an experiment."""
        entry, version = Entry(_event_id(id), kind, name, encode(body)), body.get("version")
        if kind in ("promote", "rollback") and version is not None and name in self.view.models:
            with suppress(RuntimeError):  # it is shut down: the log says so
                self._past.submit(self._add_with_file, entry, version)
                return cast("Future[tuple[int, bool]]", entry.done)
        return self._add(entry)

    def _add(self, entry: Entry) -> "Future[tuple[int, bool]]":
        """Hand an event to the log; the future has (seq, new) after a durable commit."""
        self.log.add(entry)
        return cast("Future[tuple[int, bool]]", entry.done)

    def _add_with_file(self, entry: Entry, version: int) -> None:
        """Add an event that names a version, with the file of that version."""
        try:
            with closing(open_to_read(self.state.path)) as db:
                self._past_db = db
                known = db.execute("SELECT 1 FROM event WHERE id=?", (entry.id,)).fetchone()
                if known is None and not self._stopping:  # an event that is sent again needs no file
                    entry.file = file_at(db, entry.model, version)
        except Exception as error:  # the log refuses it, and says why if the version is wrong
            logger.warning("version %s of %r could not be rebuilt: %s", version, entry.model, error)
        finally:
            self._past_db = None
            self.log.add(entry)

    def experiment(self, request: structs.ExperimentRequest) -> "Future[tuple[int, bool]]":
        """Begin an experiment."""
        return self._add(Entry(_event_id(request.id), "experiment", request.model, encode(request)))

    # ------------------------------------------------------------------------------------------- questions

    def describe(self, name: str) -> structs.ModelAnswer:
        """One model."""
        self.model(name)
        served, view = self.log.replay.models[name], self.view
        names = served.ranker._names()
        return structs.ModelAnswer(
            name=name,
            ranker=served.ranker.name,
            features=served.ranker.n_features_in_ if names is None else list(names),
            learns=served.learns,
            frozen=served.frozen,
            default=view.default == name,
            version=served.version,
            published=view.models[name].version,
            lists=served.lists,
            refused=served.refused,
            measure=served.ranker._measure().title,
            running=as_interval(served.running),
        )

    def versions(self, name: str) -> "Future[list[structs.VersionAnswer]]":
        """The versions of a model that were recorded, the newest first."""
        self.model(name)
        asked = "SELECT seq, digest, at, note FROM version WHERE model=? ORDER BY seq DESC LIMIT 1000"
        return self.log.call(lambda: [structs.VersionAnswer(*row) for row in self.state.db.execute(asked, (name,))])

    def ledger(self, name: str | None, delta: float = 0.05, gamma: float | None = None) -> structs.LedgerAnswer:
        """The account of a model's run, to be read at any time."""
        served = self.log.replay.models[self.model(name).name]
        account = getattr(served.ranker, "ledger_", None)
        bounds = _bounds(served, delta, gamma)
        risk = any(one.of == RISK and one.applies is not False for one in bounds)
        points = [] if account is None else account.curve.points
        return structs.LedgerAnswer(
            **_describe_measure(served),
            bounds=bounds,
            seq=self.log.replay.seq,
            lag=self.log.committed - self.log.replay.seq,
            rounds=getattr(account, "rounds", 0),
            mistakes=getattr(account, "mistakes", 0),
            loss=getattr(account, "loss", 0.0),
            mean=None if account is None or not account.counted else account.mean,
            refused=served.refused,
            curve=[_with_bound(list(map(float, row)), delta, risk) for row in points[:: max(1, len(points) // 256)]],
        )

    def certificate(self, name: str | None) -> structs.CertificateAnswer:
        """What is guaranteed about what a model has shown, simultaneously at all times."""
        used = self.model(name)
        served = self.log.replay.models[used.name]
        return structs.CertificateAnswer(
            **_describe_measure(served),
            bounds=_bounds(served),
            version=used.version,
            statement=(
                f"with probability {1 - served.running.delta:g} the mean, over the {served.running.n:,} rankings that "
                f"{used.name} showed and that were judged so far (with a relevant document, in the order in which "
                f"their judgments were complete), of the expected {served.ranker._measure().title} of each given the "
                "earlier ones is in this interval, simultaneously at all times, while the model learns"
            ),
        )

    def experiments(self) -> list[structs.ExperimentAnswer]:
        """All experiments with their read-outs."""
        models, found = self.log.replay.models, []
        for one in list(self.log.replay.experiments.values()):
            sides = [models[one.request.model], models[one.request.challenger]]
            learning = any(each.learns and not each.frozen for each in sides)
            found.append(one.answer(sides[0].ranker._measure().title, learning))
        return found

    def alarms(self) -> list[str]:
        """What an operator should look at."""
        found = self.drift.alarms()
        if self.log.broken is not None:
            found.append("the log has stopped: feedback is rejected")
        elif self.log.full:
            found.append("the state could not be written: feedback is rejected until it can be")
        if self.log.stuck is not None:
            found.append(
                f"learning has failed since event {self.view.seq:,} and is being retried; feedback is still recorded: "
                f"{in_one_line(self.log.stuck)}"
            )
        if self.floor is not None:
            for served in list(self.log.replay.models.values()):
                if served.running.n and served.running.high < self.floor:
                    found.append(
                        f"{served.name}: the running {served.ranker._measure().title} is below the promised "
                        f"{self.floor:g}: it is at most {served.running.high:.4f}, simultaneously at all times, with "
                        f"{100 * (1 - served.running.delta):g}% confidence"
                    )
        return found


def answer_of(outcome: "tuple[int, bool] | BaseException", id: str) -> structs.FeedbackAnswer:
    """One line of the answer to several events."""
    if isinstance(outcome, RequestError):
        return structs.FeedbackAnswer(None, False, id, str(outcome), outcome.status)
    if isinstance(outcome, BaseException):
        raise outcome
    return structs.FeedbackAnswer(outcome[0], outcome[1], id)


def _new_ranking() -> str:
    """An id that nobody can guess; later ones sort after earlier ones, so the state grows at one end."""
    return f"{int(time.time()):08x}{secrets.token_urlsafe(9)}"


def _places(order: NDArray[np.int64]) -> NDArray[np.int32]:
    """The position of every document, from 0."""
    places = np.empty(len(order), np.int32)
    places[order] = np.arange(len(order), dtype=np.int32)
    return places


def _distinct(ids: list[str]) -> list[str]:
    if len(set(ids)) < len(ids):
        seen: set[str] = set()
        twice = next(id for id in ids if id in seen or seen.add(id))  # type: ignore[func-returns-value]
        raise DataError(f"the ids of a ranking must be distinct, got {twice!r:.80} twice")
    return ids


def _finite(scores: NDArray[np.float64], ids: list[str]) -> NDArray[np.float64]:
    """The scores, if all are numbers: JSON has no infinity, and no order is right where scores overflow."""
    if not np.isfinite(scores).all():
        first = ids[int(np.argmin(np.isfinite(scores)))]
        raise DataError(
            f"the scores must be finite, but that of document {first!r:.80} overflows: its features are too large"
        )
    return scores


def _event_id(given: str | None) -> str:
    """The id of an event: the client's, unless it is one that the service itself may make; a new one without it."""
    if given is None:
        return secrets.token_urlsafe(12)
    if given.startswith(OWN):
        raise RequestError(f"the id of an event must not begin with {OWN!r}, which is reserved for the service")
    if not 1 <= len(given) <= structs.LONGEST_ID:
        raise RequestError(f"the id of an event must have 1 to {structs.LONGEST_ID} characters, got {len(given):,}")
    return given


def _by_name(items: Any, used: Published) -> NDArray[np.float64]:
    """Features by name as a matrix in the order of the model; NaN where one is not given."""
    columns = {name: column for column, name in enumerate(used.names or ())}
    if not columns:
        raise DataError(f"the model {used.name!r} has no feature names: send ids and x")
    X = np.full((len(items), len(columns)), np.nan)
    for row, one in enumerate(items):
        for name, value in one.features.items():
            column = columns.get(name)
            if column is None:
                raise DataError(f"the model {used.name!r} has no feature {name!r:.80} (document {one.id!r:.80})")
            X[row, column] = value
    return X


def _check_model(name: str, data: bytes) -> Ranker:
    """The ranker in a file; refused if it cannot be ranked with, or not be asked for by its name."""
    try:
        structs.read_name(encode(name))
    except structs.Malformed:
        raise DataError(
            f"the name of a model must be 1 to 64 letters, digits, '.', '_' or '-', the first a letter or digit, got "
            f"{name!r:.80}: choose another with --name"
        ) from None
    ranker = ranker_of_bytes(data)
    try:
        Scorer(ranker)
    except RankwiseError as error:
        raise DataError(f"the model {name!r} cannot be served: {error}") from error
    return ranker


def _describe_measure(served: Served) -> dict[str, Any]:
    """What answers say about the measure of what a model showed."""
    return {
        "model": served.name,
        "measure": served.ranker._measure().title,
        "running": as_interval(served.running),
        "scope": served.running.scope.to_dict(),
        "preconditions": _preconditions(served),
    }


def _preconditions(served: Served) -> list[str]:
    """What has to be true for the running measure to be what it seems."""
    by_clicks = f": {served.clicked:,} rankings were labeled by clicks, which favor what was shown first"
    labels = "labels do not depend on the order shown" + by_clicks * bool(served.clicked)
    judged = "to be true of all rankings: which are judged, and when, does not depend on how good they are"
    return [str(Precondition(labels, False if served.clicked else None)), str(Precondition(judged))]


def _bounds(served: Served, delta: float = 0.05, gamma: float | None = None) -> list[structs.BoundAnswer]:
    """The bounds that hold for the run of a model."""
    account, found = getattr(served.ranker, "ledger_", None), list[structs.BoundAnswer]()
    if account is None or not account.rounds:
        return found
    asked: list[dict[str, Any]] = [{"delta": delta, "anytime": True}]
    asked += [] if gamma is None else [{"gamma": gamma}]
    for one in asked:
        # this run may have no such bound, or one that is too large for float64
        with suppress(RankwiseError, ArithmeticError):
            found += [_bound(bound, served) for bound in account.bounds(**one)]
    return found


def _bound(one: Bound, served: Served) -> structs.BoundAnswer:
    """A bound of the run; labels from clicks depend on what was shown before, so they are no independent draws."""
    if served.clicked:
        changed = tuple(replace(each, met=False) if each == INDEPENDENT else each for each in one.preconditions)
        one = replace(one, preconditions=changed)
    conditions = [str(each) for each in one.preconditions]
    return structs.BoundAnswer(one.name, one.bounds, float(one.value), one.statement, one.applies, conditions)


def _with_bound(point: list[float], delta: float, risk: bool) -> list[float]:
    """A point of the curve, with the bound on the mean risk at that time; NaN where there is none."""
    loss, counted = point[2], point[3]
    return [*point, loss / counted + anytime_radius(counted, delta) if risk and counted > 0 else math.nan]
