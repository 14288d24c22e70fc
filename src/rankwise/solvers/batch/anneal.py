"""Annealing: minimise a smoothed measure while the smoothing gets finer, each stage from where the last one ended.

J(w) = lambda norm(w - w0)^2 + sum_q weight_q phi_q(X_q (f w); sigma), f the scale of the features.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.losses._base import Loss
from rankwise.solvers.batch.descent import Bounds, Function, Solver, descend
from rankwise.solvers.batch.objective import LossOverLists

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Stage:
    """How one stage ended; ``loss`` is the sum of the smoothed losses without the regulariser."""

    sigma: float
    w: Vector
    objective: float
    loss: float
    steps: int
    evaluations: int


@dataclass(frozen=True, kw_only=True)
class Annealing:
    """What all stages share: the lists, the alpha lambda, the centre w0, and how to descend."""

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
        """J at this sigma, with its gradient."""
        smoothed = at_sigma(self.lists, sigma)

        def value_and_slope(w: Vector) -> tuple[float, Vector]:
            value, slope = smoothed(w * self.factor, n_jobs=self.n_jobs)
            away = w - self.centre
            return value + self.alpha * float(away @ away), slope * self.factor + 2 * self.alpha * away

        return value_and_slope

    def run(self, start: Vector, sigmas: Sequence[float], after: Callable[[Stage], Any] | None = None) -> list[Stage]:
        """One stage a sigma, in their order; ``after`` is called with each."""
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
    """The same lists with another width of the smoothing, which nothing that was prepared depends on."""
    loss: Loss = replace(lists.prepared.loss, sigma=sigma)  # type: ignore[call-arg]
    return replace(lists, prepared=replace(lists.prepared, loss=loss))
