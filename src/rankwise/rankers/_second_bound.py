"""The second stage of a fit: weights near those of the first that make a convex bound small, for several strengths."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import RankwiseError
from rankwise.data.queries import Queries
from rankwise.losses._base import Loss
from rankwise.measures._base import Measure
from rankwise.measures.compute import ScoredLists, measure_lists
from rankwise.solvers.bundle import Bundle
from rankwise.solvers.objective import LossOverLists

Vector = NDArray[np.float64]

# The ray is searched from 2^-20 to 2^20 times the length at which scores spread by 1, to a 25,000th of its length.
_OCTAVES, _HALVINGS = 20, 20


@dataclass(frozen=True)
class Solved:
    """The minimum for one strength: weights of scaled features, (lambda/2) norm(w - t w0)^2 + loss, loss, and gap."""

    strength: float
    w: Vector
    objective: float
    loss: float
    gap: float


def bound_of(measure: Measure) -> Loss:
    """The structured hinge that bounds 1 - measure."""
    from rankwise.losses.structured import SVMMapHinge
    from rankwise.losses.structured_ndcg import NDCGHinge
    from rankwise.measures.ap import AP
    from rankwise.measures.ndcg import NDCG

    if isinstance(measure, AP) and measure.cutoff is None:
        return SVMMapHinge(rel=measure.rel)
    if isinstance(measure, NDCG):
        return NDCGHinge(k=measure.cutoff, gain=measure.gain, discount=measure.discount, normalised=True)
    raise RankwiseError(
        f"the second stage knows bounds for AP and nDCG: found {measure.title}; give second= a convex loss"
    )


@dataclass(frozen=True)
class MeanBound:
    """phi(w), the mean of a loss over the lists that a measure says something about, and its slope.

    ``w`` are weights of features times ``factor``.
    """

    lists: LossOverLists
    factor: Vector
    n_jobs: int | None

    @classmethod
    def of(cls, loss: Loss, measure: Measure, queries: Queries, factor: Vector, n_jobs: int | None) -> "MeanBound":
        rows, labels = None if queries.is_grouped else queries.rows, queries.labels()
        known = ~np.isnan(measure_lists([measure], ScoredLists(labels, labels, queries.start, rows), n_jobs=n_jobs)[0])
        often = np.where(known, 1.0 if queries.weight is None else queries.weight, 0.0)
        total = math.fsum(often)
        return cls(LossOverLists.of(loss, queries, often / total if total else often), factor, n_jobs)

    def __call__(self, w: Vector) -> tuple[float, Vector]:
        value, slope = self.lists(w * self.factor, n_jobs=self.n_jobs)
        return value, slope * self.factor

    def best_along(self, w: Vector, spread: float) -> float:
        """t above 0 that makes phi(t w) smallest; ``spread`` is the standard deviation of the scores of w."""
        if not 0 < spread < math.inf:
            return 1.0
        low, high = -float(_OCTAVES), float(_OCTAVES)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            if self(w * (2.0**middle / spread))[1] @ w < 0:  # convex along the ray: it still leads down
                low = middle
            else:
                high = middle
        return float(2.0 ** ((low + high) / 2) / spread)

    def near(
        self, centre: Vector, strengths: list[float], tolerance: float, after: Callable[[Solved], Any]
    ) -> list[Solved]:
        """The minimum of (lambda/2) norm(w - centre)^2 + phi(w) for every strength, from the largest on."""
        floor = 0.0 if self.lists.prepared.loss.nonnegative else None
        bundle = Bundle(self, len(centre), center=centre, floor=floor)
        solved = []
        for strength in strengths:
            found = bundle.solve(strength, tol=tolerance)
            solved.append(Solved(strength, found.w, found.objective, found.value, found.gap))
            after(solved[-1])
        return solved
