"""Annealing: minimise a smoothed measure while the smoothing gets finer, each stage from where the last one ended.

A stage minimises J(w) = alpha norm(w - w0)^2 + sum_q weight_q phi_q(X_q (f w); sigma), where f is the scale of the
features, by :func:`rankwise.solvers.batch.descent.descend`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from rankwise.losses._base import SmoothedMeasure
from rankwise.solvers.batch.descent import Bounds, Function, Solver, descend
from rankwise.solvers.batch.objective import LossOverLists

Vector = NDArray[np.float64]


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
        The sum of the smoothed losses, without the regulariser.
    steps, evaluations : int
        Steps of the descent, and evaluations of J.
    """

    sigma: float
    w: Vector
    objective: float
    loss: float
    steps: int
    evaluations: int


@dataclass(frozen=True, kw_only=True)
class Annealing:
    """What all stages share.

    Parameters
    ----------
    lists : LossOverLists
        A smoothed measure over judged queries.
    factor : ndarray, shape (n_features,)
        The scale f of the features.
    centre : ndarray, shape (n_features,)
        The centre w0 of the regulariser.
    alpha : float
        Strength of the regulariser.
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
    """

    lists: LossOverLists
    factor: Vector
    centre: Vector
    alpha: float
    solver: Solver = "cg"
    steps: int = 50
    tolerance: float = 1e-6
    bounds: Bounds | None = None
    n_jobs: int | None = None

    def objective(self, sigma: float) -> Function:
        """J at this sigma, as a function that returns (value, gradient)."""
        smoothed = at_sigma(self.lists, sigma)

        def value_and_slope(w: Vector) -> tuple[float, Vector]:
            value, slope = smoothed(w * self.factor, n_jobs=self.n_jobs)
            away = w - self.centre
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
            w, away = found.w, found.w - self.centre
            loss = found.value - self.alpha * float(away @ away)
            stages.append(Stage(sigma, w, found.value, loss, found.steps, found.evaluations))
            if after is not None:
                after(stages[-1])
        return stages


def at_sigma(lists: LossOverLists, sigma: float) -> LossOverLists:
    """The same queries with another width of the smoothing, on which nothing that was prepared depends."""
    smoothed = cast("SmoothedMeasure", lists.prepared.loss)
    return replace(lists, prepared=replace(lists.prepared, loss=smoothed.at_sigma(sigma)))
