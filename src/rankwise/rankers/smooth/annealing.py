"""The annealing of SmoothRank: every start with every alpha, stage by stage, and what each is worth.

:class:`AnnealingTrials` runs :class:`AnnealingPlan` after plan (side by side on threads) and keeps what has finished,
so Ctrl-C loses nothing. The stages of the plan that is taken become the :class:`AnnealingHistory` of the ranker.

One plan is an :class:`Annealing`: each stage starts where the previous, coarser one ended. A stage minimizes J(w) =
alpha norm(w - w0)^2 + sum_q weight_q phi_q(X_q (f w); sigma), where f is the scale of the features, by
:func:`rankwise.solvers.batch.descent.descend`.

:class:`Beginnings` turns what users give into starts. A width sigma is in squared units of the scores (in their own
units for the sigmoid form). The widths of the paper suit scores that regress on gains; for a start whose scores have
another scale, :func:`score_unit` says how many of its units make one of gain, and the widths are multiplied
accordingly.
"""

import math
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from rankwise._arrays import Array, Mask, Matrix, Vector
from rankwise._figures import COLORS, PlottedTable
from rankwise._kernels import parallel
from rankwise._progress import progress
from rankwise.errors import DataError, RankwiseError
from rankwise.losses._base import SmoothedMeasure
from rankwise.losses.compute import LossOverLists
from rankwise.measures._base import Measure
from rankwise.measures.compute import ScoredLists, measure_lists
from rankwise.measures.ndcg import DCG, discounts, gains
from rankwise.queries.queries import Queries
from rankwise.queries.source import EachChunk, QuerySource
from rankwise.rankers._base import LinearRanker, linear_scores
from rankwise.rankers._model_selection import measure_of_weights
from rankwise.rankers._parameters import raw_weights
from rankwise.solvers.batch.descent import Bounds, Function, Solver, descend, within

# ------------------------------------------------------------------------------------------------- stages of one plan


@dataclass(frozen=True)
class Stage:
    """How one stage ended.

    Attributes
    ----------
    sigma : float
        Width of the smoothing.
    w : ndarray, shape (n_features,)
        The weights.
    objective : float
        J(w).
    loss : float
        The sum of the smoothed losses, without the regularizer.
    steps, evaluations : int
        Steps of the descent, and evaluations of J.
    """

    sigma: float
    w: Vector
    objective: float
    loss: float
    steps: int
    evaluations: int


class _StoppedError(Exception):
    """Another plan failed, or the fit was interrupted."""


@dataclass(frozen=True, kw_only=True)
class Annealing:
    """What all stages share.

    Parameters
    ----------
    lists : LossOverLists
        A smoothed measure over judged queries.
    factor : ndarray, shape (n_features,)
        The scale f of the features.
    center : ndarray, shape (n_features,)
        The center w0 of the regularizer.
    alpha : float
        Strength of the regularizer.
    solver : {"cg", "lbfgs"}, default="cg"
        The descent of a stage.
    steps : int, default=50
        The largest number of steps of a stage.
    tolerance : float, default=1e-6
        When a stage ends; see :func:`~rankwise.solvers.batch.descent.descend`.
    bounds : list of (float or None, float or None), default=None
        Bounds on single weights.
    n_jobs : int, default=None
        Number of threads; None uses every core.
    stopped : threading.Event, default=threading.Event()
        Ends the run by an error before the next evaluation, from any thread.
    """

    lists: LossOverLists
    factor: Vector
    center: Vector
    alpha: float
    solver: Solver = "cg"
    steps: int = 50
    tolerance: float = 1e-6
    bounds: Bounds | None = None
    n_jobs: int | None = None
    stopped: threading.Event = field(default_factory=threading.Event)

    def objective(self, sigma: float) -> Function:
        """J at this sigma, as a function that returns (value, gradient)."""
        smoothed = at_sigma(self.lists, sigma)

        def value_and_slope(w: Vector) -> tuple[float, Vector]:
            if self.stopped.is_set():
                raise _StoppedError
            value, slope = smoothed(w * self.factor, n_jobs=self.n_jobs)
            away = w - self.center
            return value + self.alpha * float(away @ away), slope * self.factor + 2 * self.alpha * away

        return value_and_slope

    def run(self, start: Vector, sigmas: Sequence[float], after: Callable[[Stage], Any] | None = None) -> list[Stage]:
        """Run one stage per sigma, in their order.

        Parameters
        ----------
        start : ndarray, shape (n_features,)
            Where the first stage begins.
        sigmas : sequence of float
            Widths of the smoothing.
        after : callable, default=None
            Called with every stage.

        Returns
        -------
        list of Stage
            One per sigma.
        """
        w, stages = start, []
        for sigma in sigmas:
            found = descend(
                self.objective(sigma),
                w,
                solver=self.solver,
                steps=self.steps,
                tolerance=self.tolerance,
                bounds=self.bounds,
            )
            w, away = found.w, found.w - self.center
            loss = found.value - self.alpha * float(away @ away)
            stages.append(Stage(sigma, w, found.value, loss, found.steps, found.evaluations))
            if after is not None:
                after(stages[-1])
        return stages


def at_sigma(lists: LossOverLists, sigma: float) -> LossOverLists:
    """The same queries with another width of the smoothing, on which nothing that was prepared depends."""
    return replace(lists, loss=cast("SmoothedMeasure", lists.loss).at_sigma(sigma))


COLUMNS = ("sigma", "objective", "smoothed", "train", "validation", "steps", "evaluations")
BOUND = "bound"  # one more column, where it decides where to stop


class AnnealingHistory(PlottedTable):
    """One row per stage: sigma, objective, smoothed, train and validation measure, steps, evaluations.

    Parameters
    ----------
    columns : mapping of str to array-like
        The columns.
    measure : Measure
        The measure of the columns train and validation; "smoothed" is its smoothed form on the training queries.
    coefs : ndarray of shape (n_stages, n_features)
        The weights on raw features at the end of every stage.
    """

    __slots__ = ("coefs", "measure")

    def __init__(self, columns: Any, measure: Measure, coefs: Matrix) -> None:
        super().__init__(columns, f"{measure.title} along the annealing")
        self.measure = measure
        self.coefs = coefs

    def with_test(self, queries: Queries) -> "AnnealingHistory":
        """The history with a column "test": the measure of every stage's weights on other queries.

        Parameters
        ----------
        queries : Queries
            Judged queries.

        Returns
        -------
        history : AnnealingHistory
            A new table, which also draws the column.
        """
        values = [measure_of_weights(queries, w, self.measure, None) for w in self.coefs]
        return AnnealingHistory({**self.to_dict(), "test": values}, self.measure, self.coefs)

    def _draw(self, axes: Any) -> None:
        sigma = self["sigma"]
        axes.plot(sigma, self["smoothed"], color=COLORS[7], linestyle=":", label="train, smoothed")
        for name, color in zip(("train", "validation", "test"), COLORS, strict=False):
            if name in self.columns and np.isfinite(self[name]).any():
                axes.plot(sigma, self[name], color=color, marker="o", label=name)
        axes.set_xscale("log", base=2)
        axes.invert_xaxis()
        axes.set(xlabel="sigma, from coarse to fine")
        axes.legend()


# ------------------------------------------------------------------------------------------------ plans and their runs


@dataclass(frozen=True)
class AnnealingPlan:
    """One alpha and one start: w0 in the units of the scaled features, and the widths for its scores."""

    alpha: float
    start: Vector
    sigmas: tuple[float, ...]


@dataclass(frozen=True)
class AnnealedRun:
    """The stages of a plan, with the training, held-out and smoothed measure after each, and its bound if asked for."""

    stages: list[Stage]
    train: Vector
    held: Vector
    smoothed: Vector
    bounds: Vector | None = None

    @property
    def smallest_bound(self) -> int:
        """The stage with the smallest bound, of equal ones the coarsest."""
        assert self.bounds is not None
        return int(np.argmin(self.bounds))

    def columns(self) -> dict[str, Array]:
        """The columns of an :class:`AnnealingHistory`, one row per stage."""
        bounds = {} if self.bounds is None else {BOUND: self.bounds}
        return {
            "sigma": np.array([stage.sigma for stage in self.stages]),
            "objective": np.array([stage.objective for stage in self.stages]),
            "smoothed": self.smoothed,
            "train": self.train,
            "validation": self.held,
            "steps": np.array([stage.steps for stage in self.stages], np.int64),
            "evaluations": np.array([stage.evaluations for stage in self.stages], np.int64),
            **bounds,
        }

    def coefs(self, factor: Vector) -> Matrix:
        """The weights on raw features at the end of every stage."""
        return np.array([stage.w * factor for stage in self.stages]).reshape(-1, len(factor))


@dataclass(frozen=True)
class _Running:
    """A plan in progress: its finished stages with their measures; rows are added and never changed."""

    plan: AnnealingPlan
    largest: tuple[float, float]
    bound: Callable[[float, float, Vector], float] | None
    factor: Vector
    rows: list[tuple[Stage, float, float]] = field(default_factory=list)

    def run(self) -> AnnealedRun:
        """The stages so far."""
        most, total_weight = self.largest
        stages, train, held = zip(*self.rows, strict=True)
        smoothed = [(most - stage.loss) / total_weight if total_weight else math.nan for stage in stages]
        bounds = None
        if self.bound is not None:
            each = zip(stages, smoothed, strict=True)
            bounds = np.array([self.bound(stage.sigma, 1 - value, stage.w * self.factor) for stage, value in each])
        return AnnealedRun(list(stages), np.array(train), np.array(held), np.array(smoothed), bounds)


@dataclass(frozen=True, kw_only=True)
class AnnealingTrials:
    """Every start with every alpha, on any queries.

    Attributes
    ----------
    given : list
        The starts as the user gave them.
    alphas : tuple of float
        The penalties.
    named : mapping of str to LinearRanker
        Unfitted rankers that a start may name.
    loss : SmoothedMeasure
        The smoothed measure.
    sigmas : tuple of float or None
        The widths; None derives them from the scores of the start.
    measure : Measure
        The measure that plans are judged by.
    weighed_by : Measure or None
        The measure whose ideal values weigh queries if it is not normalized; None if the loss was given.
    factor : ndarray of shape (n_features,)
        Factor of each feature.
    descent : mapping
        Solver, steps, tolerance and bounds for :class:`~rankwise.rankers.smooth.annealing.Annealing`.
    n_jobs : int or None
        Number of threads.
    bar : progress
        The progress bar, which advances by 1 per stage.
    bound : callable or None
        (sigma, mean smoothed loss, weights, number of queries) -> the bound of a stage; None if none decides.
    begun : list
        All plans that were begun, from which Ctrl-C takes the best.
    """

    given: list[Any]
    alphas: tuple[float, ...]
    named: Mapping[str, LinearRanker]
    loss: SmoothedMeasure
    sigmas: tuple[float, ...] | None
    measure: Measure
    weighed_by: Measure | None
    factor: Vector
    descent: Mapping[str, Any]
    n_jobs: int | None
    bar: progress
    bound: Callable[[float, float, Vector, int], float] | None = None
    begun: list[_Running] = field(default_factory=list)

    def best_so_far(self) -> tuple[AnnealingPlan, AnnealedRun] | None:
        """The plan whose last finished stage is best, by held-out queries if any; None before the first stage."""
        runs = [(one.plan, one.run()) for one in self.begun if one.rows]
        return max(runs, key=lambda run: np.nan_to_num([run[1].held[-1], run[1].train[-1]]).tolist(), default=None)

    def plans(self, train: QuerySource, validation: QuerySource | None) -> list[AnnealingPlan]:
        """All plans, start by start; rankers among the starts are fitted on these queries."""
        starts = [self._start(one, train, validation) for one in self.given]
        return [AnnealingPlan(alpha, *start) for start in starts for alpha in self.alphas]

    def _start(self, given: Any, queries: Any, validation: Any) -> tuple[Vector, tuple[float, ...]]:
        """The start of a plan and its widths.

        It comes from a name (fitted on these queries), a fitted linear ranker, or weights on raw features.
        """
        unit, factor = None, self.factor
        if isinstance(given, str):
            unit = 1.0 if given == "ridge" else None  # a regression on gains has scores in units of gain
            given = self.named[given].fit(queries, validation=validation)
        raw = raw_weights(given, queries.n_features, "start")
        w = within(np.divide(raw, factor, out=np.zeros_like(raw), where=factor > 0), self.descent["bounds"])
        refuse_zero_start(w, queries)
        if self.sigmas is not None:
            return w, self.sigmas
        if unit is None:
            unit = score_unit(queries, linear_scores(queries.X, w * factor, self.n_jobs))
        return w, tuple(stage_sigmas(self.loss, unit))

    def run(self, plans: list[AnnealingPlan], train: QuerySource, held: QuerySource | None) -> list[AnnealedRun]:
        """Anneal the plans on ``train`` and judge them on ``held``; several plans share the threads."""
        lists = LossOverLists.of(self.loss, train, list_weights(self.weighed_by, train))
        largest = largest_gain(self.measure, lists)
        inside = 1 if len(plans) > 1 else self.n_jobs
        stopped, bound = threading.Event(), self._bound_on(lists)

        def anneal(plan: AnnealingPlan) -> AnnealedRun:
            running = _Running(plan, largest, bound, self.factor)
            self.begun.append(running)

            def after(stage: Stage) -> None:
                on_train, on_held = (
                    measure_of_weights(one, stage.w * self.factor, self.measure, inside) for one in (train, held)
                )
                running.rows.append((stage, on_train, on_held))
                self.bar.advance(1)

            annealing = Annealing(
                lists=lists,
                factor=self.factor,
                center=plan.start,
                alpha=plan.alpha,
                n_jobs=inside,
                stopped=stopped,
                **self.descent,
            )
            annealing.run(plan.start, plan.sigmas, after)
            return running.run()

        with warnings.catch_warnings():
            # a line search without progress ends a stage, and its best point counts: no reason to warn
            warnings.filterwarnings("ignore", message="The line search algorithm did not converge")
            return _side_by_side(anneal, plans, min(parallel.threads(self.n_jobs), len(plans)), stopped)

    def _bound_on(self, lists: LossOverLists) -> Callable[[float, float, Vector], float] | None:
        """(sigma, mean smoothed loss, weights) -> the bound of a stage from these queries; None if none decides."""
        if self.bound is None:
            return None
        bound, n = self.bound, count_defined(self.measure, [lists])
        return lambda sigma, risk, coef: bound(sigma, risk, coef, n)


def list_weights(measure: Measure | None, queries: QuerySource) -> Vector | None:
    """The weight of each query; for DCG times its ideal DCG, which the smoothed nDCG was divided by."""
    if measure is None or measure.at_most_one:
        return queries.weight
    assert isinstance(measure, DCG)  # the only measure with a smoothed form that is not normalized
    weights: Vector = queries.apply(_ideal_weights, measure)
    return weights


def _ideal_weights(queries: Queries, measure: DCG) -> Vector:
    """The ideal DCG of every query times its weight."""
    longest = int(queries.sizes.max(initial=0))
    discount = discounts(longest, measure.discount)[: measure.cutoff]
    gain = gains(queries.labels(), measure.gain)
    ideal = np.array(
        [
            np.sort(gain[queries.rows_of(number)])[::-1][: len(discount)] @ discount[: min(size, len(discount))]
            for number, size in enumerate(queries.sizes.tolist())
        ]
    )
    return np.asarray(ideal * queries.query_weight)


def is_defined(queries: Queries, measure: Measure) -> Mask:
    """Whether the measure is defined for each query."""
    nothing = ScoredLists(np.zeros(queries.n_documents), queries.labels(), queries.start, queries.scattered_rows)
    return np.asarray(~np.isnan(measure_lists([measure], nothing)[0]))


def count_defined(measure: Measure, lists: Sequence[LossOverLists]) -> int:
    """How many queries of non-zero weight the measure is defined for."""
    found = 0
    for one in lists:
        weight = one.weight if len(one.weight) else np.ones(len(one.queries))
        found += int(np.count_nonzero(one.queries.apply(is_defined, measure) & (weight > 0)))
    return found


def largest_gain(measure: Measure, lists: LossOverLists) -> tuple[float, float]:
    """(sum of the weights in the objective, sum of the weights) over the queries that the measure is defined for.

    (first - sum of the losses) / second is the mean smoothed measure.
    """
    queries = lists.queries
    defined = queries.apply(is_defined, measure)
    worth = lists.weight if len(lists.weight) else np.ones(len(queries))
    return math.fsum(worth[defined]), math.fsum(queries.query_weight[defined])


def _side_by_side(
    anneal: Callable[[AnnealingPlan], AnnealedRun], plans: list[AnnealingPlan], workers: int, stopped: threading.Event
) -> list[AnnealedRun]:
    """Anneal every plan on threads; a failure or Ctrl-C stops the others."""

    def guarded(plan: AnnealingPlan) -> AnnealedRun:
        try:
            return anneal(plan)
        except BaseException:
            stopped.set()
            raise

    if workers <= 1:
        return [anneal(plan) for plan in plans]
    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(guarded, plan) for plan in plans]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
        finally:
            stopped.set()
            pool.shutdown(wait=True, cancel_futures=True)
    errors = [future.exception() for future in futures if not future.cancelled()]
    for error in errors:
        if error is not None and not isinstance(error, _StoppedError):
            raise error
    return [future.result() for future in futures]


# ---------------------------------------------------------------------------------------------- where annealing starts


# the stages of the paper, in squared units of scores that regress on gains
SIGMAS = tuple(2.0**power for power in range(6, -7, -1))


def as_starts(given: Any) -> list[Any]:
    """One start or several."""
    if not isinstance(given, list) or (given and all(isinstance(one, (int, float, np.number)) for one in given)):
        return [given]
    return given


def refuse_zero_start(w: Vector, queries: QuerySource) -> None:
    """Raise an error for a start of 0 everywhere, if there is something to learn."""
    if not w.any() and any(queries.map(EachChunk(_varies))):
        raise RankwiseError("the start must not be 0 everywhere, because the gradient of a smoothed measure is 0 there")


def as_bounds(sign: Mapping[Any, int] | None, queries: QuerySource) -> Bounds | None:
    """Bounds on single weights from signs by the name or number of a feature."""
    if not sign:
        return None
    names = queries.feature_names
    bounds: Bounds = [(None, None)] * queries.n_features
    for feature, one in sign.items():
        place = names.index(feature) if names is not None and feature in names else feature
        if not isinstance(place, (int, np.integer)) or not 0 <= place < queries.n_features:
            raise DataError(f"sign must name features of the training queries, got {feature!r}")
        bounds[int(place)] = (0.0, None) if one > 0 else (None, 0.0)
    return bounds


def _varies(queries: Queries) -> bool:
    """Whether both labels and features vary within some query."""
    labels = queries.labels()
    for number in queries.counted.tolist():
        rows = queries.rows_of(number)
        if len(np.unique(labels[rows])) > 1 and (queries.X[rows] != queries.X[rows][:1]).any():
            return True
    return False


def stage_sigmas(loss: SmoothedMeasure, unit: float) -> list[float]:
    """The widths of the paper for scores in these units, squared or not as the loss has them."""
    return [loss.sigma_of(sigma * unit**2) for sigma in SIGMAS]


def score_unit(queries: Queries, scores: Vector) -> float:
    """Units of these scores per unit of gain: 1 / slope of the regression of gains on scores, within queries.

    If scores do not increase with gains, the ratio of the standard deviations.
    """
    own, target = within_lists(queries, scores), within_lists(queries, gains(queries.labels(), "exp2"))
    variance, along = float(own @ own), float(own @ target)
    if variance == 0 or not float(target @ target):
        return 1.0
    if along <= 0:
        return float(np.sqrt(variance / (target @ target)))
    return variance / along


def within_lists(queries: Queries, values: Vector) -> Vector:
    """Values minus the mean of their query; 0 in queries of weight 0."""
    owner = queries.query_of_row
    count = np.maximum(np.bincount(owner, minlength=len(queries)), 1)
    centered = values - (np.bincount(owner, values, len(queries)) / count)[owner]
    return np.asarray(centered * (queries.query_weight[owner] > 0))
