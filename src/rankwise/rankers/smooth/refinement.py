"""The refinement of a linear ranker by a smoothed measure: coarse to fine, strong penalties first, near the start.

:class:`Refinement` minimizes J(u) = alpha norm(u)^2 + mean over queries of phi_q(X_q w; sigma) with w = w0 + B u. B
whitens the features within queries: steps of the same length in u change the scores by about the same amount, whatever
the scales and correlations of the features, so few steps are enough and one penalty suits all directions. A path
of penalties is solved from the strongest on, each from the solution of the one before.

:class:`Refiner` does this without each part of the queries in turn, and :class:`Choice` takes the penalty with the
largest mean gain over the start on queries that were held out.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from rankwise._arrays import Matrix, Numbers, Vector
from rankwise._kernels import parallel
from rankwise._kernels.parallel import one_blas_thread
from rankwise.losses._base import SmoothedMeasure
from rankwise.losses.compute import LossOverLists
from rankwise.measures._base import Measure
from rankwise.rankers._model_selection import Pool, weighted_mean
from rankwise.rankers.linear.committee import CommitteeProblems, choose_alphas
from rankwise.rankers.linear.least_squares import Problem
from rankwise.rankers.linear.ridge import RELATIVE_ALPHAS
from rankwise.rankers.smooth.annealing import Stage, at_sigma, count_defined, largest_gain, list_weights
from rankwise.solvers.batch.descent import Function, descend

# Added to the eigenvalues of the features' covariance within queries before the root is taken, times their mean.
_FLOOR = 0.3


def whitening(problem: Problem, scale: Vector) -> Matrix:
    """B, for which the scores of X B u vary by about norm(u) within queries.

    Parameters
    ----------
    problem : Moments or WeightedRows
        The moments of the queries.
    scale : ndarray, shape (n_features,)
        The scale of the features.

    Returns
    -------
    ndarray, shape (n_features, n_directions)
        (A / total weight + floor)^(-1/2) in the directions in which features vary, on raw features.
    """
    solved = problem.ridge(scale)
    flat = solved.values <= solved.values.max(initial=0.0) * len(scale) * np.finfo(float).eps
    vectors, values = solved.vectors[:, ~flat], solved.values[~flat] / (problem.total or 1.0)
    directions = vectors / np.sqrt((vectors**2).sum(axis=0))
    floor = _FLOOR * solved.unit / (problem.total or 1.0)
    return np.asarray(solved.factor[:, None] * directions / np.sqrt(values + floor))


@dataclass(frozen=True, kw_only=True)
class Refined:
    """The stages of one penalty.

    Attributes
    ----------
    alpha : float
        The penalty.
    stages : list of Stage
        How every stage ended, with weights on raw features.
    bounds : ndarray, shape (n_stages,), default=None
        The bound of every stage, if it decides where to stop.
    """

    alpha: float
    stages: list[Stage]
    bounds: Vector | None = None

    @property
    def coef(self) -> Vector:
        """The weights on raw features after the last stage, or after the first one with the smallest bound."""
        return self.stages[-1 if self.bounds is None else int(np.argmin(self.bounds))].w


@dataclass(frozen=True, kw_only=True)
class Refinement:
    """What all stages share.

    Attributes
    ----------
    lists : list of LossOverLists
        The smoothed measure over every set of queries.
    total : float
        The sum of the weights of the queries.
    start : ndarray, shape (n_features,)
        w0 on raw features.
    basis : ndarray, shape (n_features, n_directions)
        B.
    sigmas : sequence of float
        Widths of the smoothing, decreasing.
    descent : mapping
        Solver, steps and tolerance of :func:`~rankwise.solvers.batch.descent.descend`.
    n_jobs : int or None
        Number of threads; None uses every core.
    after : callable
        Called after every stage.
    bound : callable, default=None
        The bound of a stage; None if the last stage is the end.
    """

    lists: list[LossOverLists]
    total: float
    start: Vector
    basis: Matrix
    sigmas: Sequence[float]
    descent: Mapping[str, Any]
    n_jobs: int | None
    after: Callable[[], Any] = lambda: None
    bound: Callable[[Stage], float] | None = None

    def objective(self, sigma: float, alpha: float) -> Function:
        """J at this sigma and alpha, as a function of u that returns (value, gradient)."""
        smoothed = [at_sigma(one, sigma) for one in self.lists]

        def value_and_slope(u: Vector) -> tuple[float, Vector]:
            w = self.start + self.basis @ u
            total, slope = 0.0, np.zeros_like(w)
            for one in smoothed:
                value, own = one(w, n_jobs=self.n_jobs)
                total += value
                slope += own
            return total / self.total + alpha * float(u @ u), self.basis.T @ slope / self.total + 2 * alpha * u

        return value_and_slope

    @one_blas_thread()
    def path(self, alphas: Sequence[float]) -> list[Refined]:
        """Refine for every penalty, the largest first; the results are in the order of ``alphas``."""
        u = np.zeros(self.basis.shape[1])
        found: dict[float, Refined] = {}
        for alpha in sorted(set(alphas), reverse=True):
            stages = []
            for sigma in self.sigmas:
                end = descend(self.objective(sigma, alpha), u, **self.descent)
                u = end.w
                loss, coef = end.value - alpha * float(u @ u), self.start + self.basis @ u
                stages.append(Stage(sigma, coef, end.value, loss, end.steps, end.evaluations))
                self.after()
            bounds = None if self.bound is None else np.array([self.bound(stage) for stage in stages])
            found[alpha] = Refined(alpha=alpha, stages=stages, bounds=bounds)
        return [found[alpha] for alpha in alphas]


# ------------------------------------------------------------------------------------------------ the choice


@dataclass(frozen=True)
class Choice:
    """Every penalty and the start on the queries that were held out.

    Attributes
    ----------
    means : ndarray, shape (1 + n_alphas,)
        The measure of the start, then of every penalty; NaN if nothing judges them.
    gains, errors : ndarray, shape (n_alphas,)
        The mean over queries of the gain over the start, and its standard error.
    """

    means: Vector
    gains: Vector
    errors: Vector

    @classmethod
    def unknown(cls, alphas: int) -> "Choice":
        """What is known of so many penalties without a trial: NaN."""
        return cls(*(np.full(alphas + extra, np.nan) for extra in (1, 0, 0)))

    @classmethod
    def of(cls, values: Matrix, weight: Vector) -> "Choice":
        """From the values of the start and of every penalty on every query."""
        means = np.array([weighted_mean(one, weight) for one in values])
        counted = ~np.isnan(values[0]) & (weight > 0)
        share = weight[counted] / (weight[counted].sum() or 1.0)
        gains = (values[1:, counted] - values[0, counted]) @ share
        count = int(counted.sum())
        if count < 2:
            return replace(cls.unknown(len(gains)), means=means)
        spread = ((values[1:, counted] - values[0, counted] - gains[:, None]) * share) ** 2
        return cls(means, gains, np.sqrt(spread.sum(axis=1) * count / (count - 1)))

    @property
    def best(self) -> int | None:
        """The penalty with the largest gain, of equal ones the first; None if nothing judges them."""
        return None if np.isnan(self.gains).all() else int(np.nanargmax(self.gains))


@dataclass(frozen=True, kw_only=True)
class Refiner:
    """Starts, paths and their trials.

    Attributes
    ----------
    problems : CommitteeProblems
        Queries in parts, trials, and the least squares problems of the start.
    start : ndarray of shape (n_features,) or None
        Given weights; None fits the committee.
    loss : SmoothedMeasure
        The smoothed measure.
    measure : Measure
        The measure itself, which judges.
    weighed_by : Measure or None
        The measure whose ideal values weigh queries if it is not normalized; None if the loss was given.
    alphas : sequence of float
        The penalties.
    sigmas : sequence of float
        Widths of the smoothing.
    descent : mapping
        As for :class:`Refinement`.
    n_jobs : int or None
        Number of threads.
    after : callable
        Called after every stage.
    bound : callable, default=None
        (sigma, mean smoothed loss, weights, number of queries) -> the bound of a stage; None if none decides.
    """

    problems: CommitteeProblems
    start: Vector | None
    loss: SmoothedMeasure
    measure: Measure
    weighed_by: Measure | None
    alphas: Sequence[float]
    sigmas: Sequence[float]
    descent: Mapping[str, Any]
    n_jobs: int | None
    after: Callable[[], Any]
    bound: Callable[[float, float, Vector, int], float] | None = None

    @cached_property
    def _ridge_alphas(self) -> tuple[float, ...]:
        return choose_alphas(self.problems, RELATIVE_ALPHAS)[0]

    def start_without(self, part: int | None) -> Vector:
        """w0 without a part, in units in which its scores have the standard deviation 1 within queries."""
        given = self.start
        if given is None:
            given = self.problems.members(self._ridge_alphas, part).mean(axis=0)
        deviation = self.problems.plain(part).deviation(given)
        return given / deviation if deviation > 0 else np.zeros_like(given)

    def path_without(self, part: int | None, alphas: Sequence[float], n_jobs: int | None) -> list[Refined]:
        """The refinement of the start on all queries but those of a part."""
        selection, problem = self.problems.selection, self.problems.plain(part)
        lists, total = lists_of(
            self.loss, self.weighed_by, selection.pool, None if part is None else selection.parts[part]
        )
        whole = Refinement(
            lists=lists,
            total=total,
            start=self.start_without(part),
            basis=whitening(problem, self.problems.scale),
            sigmas=self.sigmas,
            descent=self.descent,
            n_jobs=n_jobs,
            after=self.after,
            bound=self._bound_on(lists, total),
        )
        return whole.path(alphas)

    def _bound_on(self, lists: list[LossOverLists], total: float) -> Callable[[Stage], float] | None:
        """The bound of a stage from these queries, the sum of whose weights is ``total``."""
        if self.bound is None:
            return None
        n, (most, _) = count_defined(self.measure, lists), np.sum([largest_gain(self.measure, one) for one in lists], 0)
        bound, share = self.bound, total / most if most else 0.0
        return lambda stage: bound(stage.sigma, stage.loss * share, stage.w, n)

    def smoothed(self, stages: Sequence[Stage]) -> Vector:
        """The mean smoothed measure after every stage, over the queries that the measure is defined for."""
        lists, total = lists_of(self.loss, self.weighed_by, self.problems.selection.pool)
        most, counted = np.sum([largest_gain(self.measure, one) for one in lists], axis=0)
        return np.array([(most - stage.loss * total) / counted if counted else np.nan for stage in stages])

    def judge(self) -> Choice:
        """Start and penalties on the queries that were held out; trials share the threads."""
        trials = self.problems.selection.trials
        if not trials:
            return Choice.unknown(len(self.alphas))
        self._ridge_alphas  # noqa: B018  # chosen once, before the threads need it
        inside = 1 if len(trials) > 1 else self.n_jobs

        def values(number: int) -> tuple[Matrix, Vector]:
            trial = trials[number]
            path = self.path_without(trial.without, self.alphas, inside)
            held = trial.prepare([self.measure])
            candidates = np.array([self.start_without(trial.without), *(one.coef for one in path)])
            return held.values(candidates, inside)[:, 0], held.weight

        found = parallel.map_chunks(values, [(number,) for number in range(len(trials))], self.n_jobs)
        each, weight = zip(*found, strict=True)
        return Choice.of(np.concatenate(each, axis=1), np.concatenate(weight))


def lists_of(
    loss: SmoothedMeasure, measure: Measure | None, pool: Pool, without: Numbers | None = None
) -> tuple[list[LossOverLists], float]:
    """The smoothed measure over the queries of a pool, without some of them, and the sum of their weights."""
    left_out = [None] * len(pool.sets) if without is None else pool.by_set(without)
    lists, total = [], 0.0
    for queries, numbers in zip(pool.sets, left_out, strict=True):
        given = list_weights(measure, queries)
        weight = np.ones(len(queries)) if given is None else np.array(given)
        if numbers is not None:
            weight[numbers] = 0.0
        lists.append(LossOverLists.of(loss, queries, weight))
        total += float(weight.sum())
    return lists, total or 1.0
