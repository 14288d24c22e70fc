"""The base class of online rankers: rounds over queries or a stream, their ledger, and a state that can be saved.

:class:`OnlineLearner` runs the rounds of :mod:`rankwise.solvers.online` for ``fit`` (all queries, several epochs) and
for ``partial_fit`` (one query, many, or a stream). A subclass builds the
:class:`~rankwise.solvers.online.config.OnlineConfig` that says how a round predicts and learns. State and ledger go
into the file, so a loaded run continues with the same bits.
"""

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, fields, replace
from functools import partial
from typing import Annotated, Any, Literal, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from rankwise._arrays import Array, Numbers
from rankwise._kernels import parallel
from rankwise._parameters import NumberRange, PositiveFloat, Seed, as_random
from rankwise._store import Store
from rankwise.errors import DataError, RankwiseError
from rankwise.guarantees.bounds.online import WeightFacts
from rankwise.losses._base import Loss
from rankwise.queries import checks
from rankwise.queries.chunks import radius_of
from rankwise.queries.fingerprints import FINGERPRINT, Seen, TrainingRecord
from rankwise.queries.grouped_labels import Labels
from rankwise.queries.parts.parts import Parts
from rankwise.queries.queries import Queries
from rankwise.queries.selection import Query
from rankwise.queries.source import QuerySource
from rankwise.rankers import _inputs as inputs
from rankwise.rankers._base import LinearRanker, Ranker, fit_scope
from rankwise.rankers._record import begin_record
from rankwise.rankers.certificate.objective import TrainingObjective
from rankwise.solvers.online.config import MOST_TIMES, Averaging, Curve, OnlineConfig, RoundLog, Scaling, State, Tally
from rankwise.solvers.online.ledger import Ledger
from rankwise.solvers.online.loop import RoundRunner, run_rounds

# Documents of a stream of single queries that are gathered before their rounds: calls are expensive, rounds are not.
GATHERED = 1 << 12
# Documents per call of the compiled loop.
_PRESENTED = 1 << 19


@dataclass(eq=False, repr=False, kw_only=True)
class OnlineLearner(Ranker):
    """Base class of online rankers, whatever their state is.

    Parameters
    ----------
    eta : float or "theory", default=1.0
        The step size.
    epochs : int, default=1
        Number of passes over the queries in ``fit``.
    shuffle : bool, default=False
        Whether each pass visits the queries in a random order of its own.
    random_state : int or numpy.random.Generator, default=0
        Seed of the shuffling.

    Attributes
    ----------
    ledger_ : Ledger
        Rounds, mistakes, losses, and the bounds on them.
    state_ : State
        Everything that the next round depends on.
    """

    _records_rounds = True
    _reason_no_document_weights = (
        "its ledger and the bounds on it count unweighted losses; LossRanker takes them in batch"
    )

    eta: PositiveFloat | Literal["theory"] = 1.0
    epochs: Annotated[int, NumberRange(1, MOST_TIMES, closed="both")] = (
        1  # ledgers count mistakes per query up to there
    )
    shuffle: bool = False
    random_state: Seed = 0

    @abstractmethod
    def _loss(self) -> Loss:
        """The loss of the rounds."""

    def _config(self, queries: Queries | None) -> OnlineConfig:
        """The configuration of a new run; ``queries`` are those of a ``fit``, None in a stream."""
        return self._resumed(self._theory_step(queries) if self.eta == "theory" else self.eta)

    def _theory_step(self, queries: Queries | None) -> float:
        """The step of ``eta="theory"``."""
        return theory_step(self, self._loss(), queries)

    @abstractmethod
    def _begin(self, config: OnlineConfig, random: np.random.Generator) -> tuple[Any, Ledger]:
        """The (state, ledger) before the first round."""

    def _runner(self, config: OnlineConfig, queries: Queries, state: Any, read: bool) -> RoundRunner:
        """What runs blocks of rounds."""
        return RoundRunner(config, queries, state, read)

    def _expected_passes(self, queries: QuerySource) -> Any:
        job, arguments, *_ = super()._expected_passes(queries)
        return job, arguments, 1 + self.epochs, 1 + self.epochs

    def _fit(self, queries: Queries, validation: Queries | None) -> None:
        if validation is not None:
            raise DataError(f"{self.name} does no model selection: omit the validation set")
        config = self._config(queries)
        self._warn_if_uneven(config, queries)
        random = as_random(self.random_state)
        run = *self._begin(config, random), Seen()
        marks = np.zeros(len(queries), FINGERPRINT)  # in the order of the data, not of the rounds

        def keep() -> None:
            state, ledger, seen = run
            whole = seen.training.length + seen.training.forgotten == len(queries)
            record = (
                TrainingRecord().add(marks, queries.weight) if whole else TrainingRecord.of(queries, n_jobs=self.n_jobs)
            )
            self._take(state, replace(ledger, record=record), seen)

        with (
            self._progress("learning", self.epochs * len(queries)) as bar,
            self._keep_on_interrupt(keep, lambda: run[0].rounds),
        ):
            for epoch in range(self.epochs):
                order = random.permutation(len(queries)) if self.shuffle else np.arange(len(queries))
                for part in _chunks(queries, order):
                    state, played = self._run(config, run[0], queries, part, epoch == 0)
                    if epoch == 0:
                        marks[part] = played.marks
                    run = state, run[1].after(played, queries, state, 0), run[2].with_training(played.marks)
                    bar.advance(len(part))
        keep()

    def partial_fit(
        self, X: Any, y: ArrayLike | None = None, *, group: ArrayLike | None = None, qid: Any = None, **unknown: Any
    ) -> Self:
        """Continue the run: predict each query, then learn from it.

        Parameters
        ----------
        X : Query, Queries, array of shape (n_documents, n_features), or iterable of these
            One query (an array needs ``y``), many (arrays need ``group`` or ``qid``), or an iterator over queries,
            which are gathered to some thousand documents per call of the compiled loop.
        y : array of shape (n_documents,), default=None
            Labels, if X is an array.
        group : array of int, default=None
            Sizes of consecutive queries.
        qid : array of shape (n_documents,), default=None
            The query id of each row.
        **unknown : object
            No other argument is accepted.

        Returns
        -------
        self : OnlineLearner
            The ranker after these rounds.

        Notes
        -----
        However the same queries are divided into calls, the result has the same bits, which are also those of ``fit``.
        """
        inputs.refuse_unknown(f"{self.name}.partial_fit", unknown)
        self._check_parameters()
        if hasattr(X, "as_training_queries"):  # a click log, which rounds on mistakes refuse by name
            X = X.as_training_queries(self)
        for block, known in self._known_blocks(X, y, group, qid):
            self._learn_block(block, **known)
        return self

    def _known_blocks(self, X: Any, y: Any, group: Any, qid: Any) -> Iterator[tuple[Queries, dict[str, Any]]]:
        """Blocks of queries, each with what else the runner has to know about it."""
        return ((block, {}) for block in self._blocks(X, y, group, qid))

    def _learn_block(self, block: Queries, **known: Any) -> None:
        """Run the rounds of a block; ``known`` is passed on to the runner."""
        with fit_scope(self):
            inputs.check_document_weights(self, block)
            begins = not hasattr(self, "ledger_")
            if begins:
                begin_record(self, block)
                config = self._config(None)
                self._warn_if_uneven(config, block)
                inputs.warn_of_document_order(self, block)
                self._take(*self._begin(config, as_random(self.random_state)), self.record_.seen)
            queries = inputs.align(self, block)
            config, first = self.ledger_.config, self.ledger_.tally.length
            state, ledger = self.state_, self.ledger_
            seen = self.record_.seen  # a run of an older version has no fingerprints
            for part in _chunks(queries, np.arange(len(queries))):
                state, played = self._run(config, state, queries, part, seen is not None, **known)
                ledger, seen = _add_to_record(ledger, seen, state, played, queries, first)
            self._take(state, ledger, seen)
            self.record_ = self.record_.with_result(self, continued=not begins)

    def _continue(self, state: Any, played: RoundLog, queries: Queries) -> None:
        """Take over rounds that were run from the present state."""
        with fit_scope(self):
            seen, first = self.record_.seen, self.ledger_.tally.length
            ledger, seen = _add_to_record(self.ledger_, seen, state, played, queries, first)
            self._take(state, ledger, seen)
            self.record_ = self.record_.with_result(self, continued=True)

    def _run(
        self, config: OnlineConfig, state: Any, queries: Queries, order: Numbers, read: bool, **known: Any
    ) -> tuple[Any, Any]:
        block, here = queries.load(order)
        runner = partial(self._runner, **known)
        state, played = run_rounds(config, state, block, here, self.n_jobs, read=read, runner=runner)
        return state, replace(played, order=order)

    def _take(self, state: Any, ledger: Ledger, seen: Seen | None) -> None:
        self.state_, self.ledger_ = state, ledger
        if seen is not None:
            self.record_ = replace(self.record_, seen=replace(seen, record=ledger.record))

    def _training_objective(self) -> TrainingObjective | None:
        loss = self.ledger_.config.loss
        return None if loss.hinge_margin == 0 else TrainingObjective(loss=loss)

    # ------------------------------------------------------------------------------------------- streams

    def _blocks(self, X: Any, y: Any, group: Any, qid: Any) -> Iterator[Queries]:
        if isinstance(X, Parts):  # in their order
            yield from (inputs.judged_queries(self, block, y, group, qid, "partial_fit") for block in X.blocks())
        elif isinstance(X, Query):
            yield gather([one_list(X)], self.missing)
        elif isinstance(X, Queries) or isinstance(y, Labels) or group is not None or qid is not None:
            yield inputs.judged_queries(self, X, y, group, qid, "partial_fit")
        elif y is not None:
            yield gather([one_list((X, y))], self.missing)
        elif isinstance(X, Iterable) and not isinstance(X, np.ndarray):
            yield from self._stream(X)
        else:
            raise DataError(f"{self.name} requires labels: pass y, or a Query or Queries with labels")

    def _stream(self, lists: Iterable[Any]) -> Iterator[Queries]:
        """Blocks of queries from an iterator over queries, blocks of queries, or (X, y) pairs."""
        waiting: list[Any] = []
        documents = 0
        for item in lists:
            one = None if isinstance(item, Queries) else one_list(item)
            if waiting and (one is None or one[3] != waiting[0][3]):  # other feature names begin a new block
                yield gather(waiting, self.missing)
                waiting, documents = [], 0
            if one is None:
                item.labels()
                yield item
                continue
            waiting.append(one)
            documents += len(one[0])
            if documents >= GATHERED:
                yield gather(waiting, self.missing)
                waiting, documents = [], 0
        if waiting:
            yield gather(waiting, self.missing)

    def _warn_if_uneven(self, config: OnlineConfig, queries: Queries) -> None:
        """Warn if features are on different scales and nothing scales them."""
        if config.scale == "none":
            own = "pass scale='standard' (--scale standard in the shell)" if hasattr(self, "scale") else "scale them"
            inputs.warn_of_uneven_features(self.name, queries, f"{own}, or scale the queries with rw.Scaler()")

    # ------------------------------------------------------------------------------------------- saving

    def _state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        return pack(self.state_, self.ledger_)

    def _frozen_state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        facts, arrays = self._state()  # without what grows with the run, because a digest is computed after every block
        return facts, {name: array for name, array in arrays.items() if name not in ("tally", "curve")}

    def _step_of(self, facts: Mapping[str, Any]) -> float:
        """The step of the run in a file."""
        eta = facts.get("eta")
        if not isinstance(eta, float) or not 0 < eta < math.inf:
            raise RankwiseError(f"its step is {eta!r:.40}")
        return eta

    def _resumed(self, eta: float) -> OnlineConfig:
        """The configuration of a run with this step: a new one, or one from a file."""
        return OnlineConfig(loss=self._loss(), measure=self._measure(), eta=eta)


@dataclass(eq=False, repr=False, kw_only=True)
class LinearOnlineLearner(OnlineLearner, LinearRanker):
    """Base class of online rankers with one weight per feature.

    Parameters
    ----------
    averaging : {"none", "uniform", "suffix"}, default="none"
        Whether ``coef_`` is the last weights, their mean over all rounds, or their mean over the later ones.
    scale : {"none", "radius", "standard"}, default="none"
        Whether features are divided by the largest radius so far, or by their running standard deviation.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights on raw features, averaged as ``averaging`` says.
    """

    runs_on_parts = True

    averaging: Averaging = "none"
    scale: Scaling = "none"

    def _begin(self, config: OnlineConfig, random: np.random.Generator) -> tuple[State, Ledger]:
        return State.fresh(self.n_features_in_), Ledger(config)

    def _resumed(self, eta: float) -> OnlineConfig:
        return replace(super()._resumed(eta), averaging=self.averaging, scale=self.scale)

    def _take(self, state: State, ledger: Ledger, seen: Seen | None) -> None:
        super()._take(state, ledger, seen)
        self.coef_ = state.coef(ledger.config.averaging)

    def _restore(self, facts: Mapping[str, Any], store: Store) -> None:
        config = self._resumed(self._step_of(facts))
        self._take(unpack_state(store, self.n_features_in_), unpack_ledger(facts, store, config), None)


def _add_to_record(
    ledger: Ledger, seen: Seen | None, state: Any, played: RoundLog, queries: Queries, first: int
) -> tuple[Ledger, Seen | None]:
    """Ledger and fingerprints after some more rounds of a stream; ``first`` is the place of ``queries[0]`` in it."""
    ledger = ledger.after(played, queries, state, first)
    if seen is not None:
        seen = seen.with_training(played.marks)
    if ledger.record is not None:
        weight = None if queries.weight is None else queries.weight[played.order]
        ledger = replace(ledger, record=ledger.record.add(played.marks, weight))
    return ledger, seen


def _chunks(queries: Queries, order: Numbers) -> Iterator[Numbers]:
    """The order in parts of a fraction of a second each, so that Ctrl-C and the progress bar respond."""
    start = np.concatenate([[0], np.cumsum(queries.sizes[order])]).astype(np.int64)
    return (np.ascontiguousarray(order[first:last]) for first, last in parallel.query_chunks(start, _PRESENTED))


def one_list(item: Any) -> tuple[Any, Any, float, Any]:
    """(X, y, weight, names) of a query or of a pair of arrays."""
    if isinstance(item, Query):
        if item.y is None:
            raise DataError(f"query {item.qid!r} has no labels, but learning requires them")
        if item.document_weight is not None:
            raise DataError(f"query {item.qid!r} has document weights, which rounds do not take")
        return item.X, item.y, item.weight, item.feature_names
    if isinstance(item, (tuple, list)) and len(item) == 2:
        names = getattr(item[0], "columns", None)  # a data frame names its features
        return checks.as_features(item[0]), item[1], 1.0, None if names is None else tuple(map(str, names))
    raise DataError(f"a stream must hold queries or pairs (X, y), got {type(item).__name__}")


def gather(lists: list[tuple[Any, Any, float, Any]], missing: checks.Missing) -> Queries:
    """Single queries as `Queries`."""
    widths = {one[0].shape[1] for one in lists}
    if len(widths) > 1:
        raise DataError(
            "all queries of a stream must have the same number of features, got "
            f"{' and '.join(map(str, sorted(widths)))}"
        )
    X = checks.as_features(lists[0][0] if len(lists) == 1 else np.concatenate([one[0] for one in lists]))
    names = checks.as_names(lists[0][3], X.shape[1])
    start = np.cumsum([0, *(len(one[0]) for one in lists)], dtype=np.int64)
    weights = np.array([one[2] for one in lists])
    return Queries._trusted(
        checks.fill_missing(X, start, None, missing, names),
        np.concatenate([checks.as_labels(one[1], len(one[0])) for one in lists]),
        start,
        # weights were checked at the source; a part of a stream may hold none above 0
        weight=None if (weights == 1.0).all() else weights,
        feature_names=names,
    )


def theory_step(ranker: Any, loss: Loss, queries: Queries | None) -> float:
    """max_norm / (G1 R sqrt(n)), the step of online gradient descent that minimizes its regret bound."""
    if ranker.max_norm is None:
        raise RankwiseError(
            "eta='theory' is max_norm / (G1 R sqrt(n)): pass max_norm=, the norm of the weights to compare with"
        )
    if ranker.scale != "none":
        raise RankwiseError("eta='theory' requires scale='none', because R is the radius of the raw features")
    radius, rounds, longest = ranker.row_radius, ranker.horizon, 2
    if queries is not None:
        radius = radius_of(queries) if radius is None else radius
        rounds = ranker.epochs * len(queries) if rounds is None else rounds
        longest = int(queries.sizes.max(initial=2))
    if radius is None or rounds is None:
        raise RankwiseError(
            "eta='theory' in a stream requires row_radius= and horizon=, which a stream does not tell in advance"
        )
    steepest = loss.lipschitz_l1(longest)
    if not (radius > 0 and rounds > 0 and 0 < steepest < math.inf):
        raise RankwiseError(
            "eta='theory' is max_norm / (G1 R sqrt(n)), which requires positive and finite values, "
            f"got G1 = {steepest:g}, R = {radius:g} and n = {rounds:,}"
        )
    return float(ranker.max_norm / (steepest * radius * math.sqrt(rounds)))


# ------------------------------------------------------------------------------------------- the run in a file


_NUMBERS = ("rounds", "counted", "mistakes", "loss", "measured", "radius", "lightest", "heaviest")
_FACTS = tuple(field.name for field in fields(WeightFacts))
IMPOSSIBLE = "the state of its run is impossible"


def pack(state: Any, ledger: Ledger) -> tuple[dict[str, Any], dict[str, Array]]:
    """State and ledger as (facts, arrays), which :func:`unpack_state` and :func:`unpack_ledger` read."""
    arrays = {f"state.{field.name}": getattr(state, field.name) for field in fields(state)}
    arrays["account"] = np.array([getattr(ledger, name) for name in _NUMBERS], dtype=np.float64)
    arrays["weights"] = np.array([getattr(ledger.weights, name) for name in _FACTS], dtype=np.float64)
    arrays["curve"] = ledger.curve.points
    arrays["tally"] = ledger.tally.counts
    if ledger.record is not None:
        arrays["record"] = np.array(astuple(ledger.record), dtype=np.uint64)
    return {"eta": float(ledger.config.eta), "stride": ledger.curve.stride}, arrays


AnyState = TypeVar("AnyState")


def read_state(store: Store, kind: type[AnyState], shapes: Mapping[str, tuple[int, ...]]) -> AnyState:
    """The state of a run, by the shapes of its arrays; raises an error for values that no run has."""
    whole = ("counts", "born")
    arrays = {
        name: store.array(f"state.{name}", np.int64 if name in whole else np.float64, shape)
        for name, shape in shapes.items()
    }
    if not all(np.isfinite(array).all() for array in arrays.values()) or (arrays["counts"] < 0).any():
        raise RankwiseError(IMPOSSIBLE)
    return kind(**arrays)


def unpack_state(store: Store, features: int) -> State:
    """The state of a linear run; raises an error for values that no run has."""
    wide, two = (features,), (2, features)
    return read_state(
        store, State, {"w": wide, "sums": two, "moments": two, "counts": (2,), "sizes": (2,), "scale": wide}
    )


def unpack_ledger(facts: Mapping[str, Any], store: Store, config: OnlineConfig) -> Ledger:
    """The ledger of a run; raises an error for values that no run has."""
    account = dict(zip(_NUMBERS, store.array("account", np.float64, (len(_NUMBERS),)).tolist(), strict=True))
    weights = dict(zip(_FACTS, store.array("weights", np.float64, (len(_FACTS),)).tolist(), strict=True))
    stride, tally = facts.get("stride"), store.array("tally", np.uint16, (None,))
    counts = (account["rounds"], account["mistakes"], weights["longest"])
    whole = all(math.isfinite(number) and number >= 0 and float(number).is_integer() for number in counts)
    if not whole or not isinstance(stride, int) or stride < 1:
        raise RankwiseError(IMPOSSIBLE)
    account |= {name: int(account[name]) for name in ("rounds", "mistakes")}
    weights["longest"] = int(weights["longest"])
    # files of older versions have no record of their queries
    record = TrainingRecord(*store.array("record", np.uint64, (4,)).tolist()) if "record" in store else None
    return Ledger(
        config,
        **account,
        weights=WeightFacts(**weights),
        curve=Curve(stride, store.array("curve", np.float64, (None, 5))),
        tally=Tally(len(tally), tally),
        record=record,
    )
