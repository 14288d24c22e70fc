"""Derivatives of a smoothed loss whose width shrinks while trees are grown.

Within a share of the trees the width is fixed: they descend on one function, from where the coarser one left the
scores. That is the annealing of SmoothRank (:mod:`rankwise.rankers.smooth.annealing`) with trees in place of weights.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self, cast

import numpy as np
from numpy.typing import NDArray

from rankwise.losses._base import Loss, SmoothedMeasure
from rankwise.losses.compute import PreparedLists
from rankwise.rankers.boosting.objectives import Derivatives, typical_slope

Vector = NDArray[np.float64]

# Below it 1 / sigma overflows.
_LEAST_SIGMA = float(np.finfo(np.float64).smallest_normal)


@dataclass(frozen=True)
class AnnealedDerivatives(Derivatives):
    """Derivatives at a width that the scores and the number of trees before decide.

    Attributes
    ----------
    sigmas : tuple of float
        Decreasing widths, in units of the variance of scores within queries.
    trees : int
        The number of trees that the widths share.
    """

    sigmas: tuple[float, ...] = ()
    trees: int = 1

    @classmethod
    def over(cls, derivatives: Derivatives, sigmas: Sequence[float], trees: int) -> Self:
        """The same derivatives, annealed over so many trees."""
        own = tuple(float(one) for one in sigmas)
        return cls(derivatives.lists, derivatives.weight, derivatives.constant, own, trees)

    @property
    def begins(self) -> list[int]:
        """The number of trees before each width."""
        return begins_of(self.sigmas, self.trees)

    @property
    def last_change(self) -> int:
        """The number of trees before the last width."""
        return self.begins[-1]

    def before_tree(self, scores: Vector, iteration: int, n_jobs: int | None = None) -> Self:
        """The same at the width that begins here, if one does; of several the smallest.

        It is never above the width before. Where scores do not vary within queries, the width stays what it is: before
        the first tree, that of the loss.
        """
        loss = loss_before(
            self.lists.loss,
            self.sigmas,
            self.trees,
            iteration,
            lambda: variance_within(self.lists, scores, self.weight),
        )
        if loss is None:
            return self
        lists = replace(self.lists, loss=loss)
        constant = self.constant if loss.curvature is not None else typical_slope(lists, n_jobs)
        return replace(self, lists=lists, constant=constant)


def begins_of(sigmas: Sequence[float], trees: int) -> list[int]:
    """The number of trees before each width."""
    return [place * trees // len(sigmas) for place in range(len(sigmas))]


def loss_before(
    loss: Loss, sigmas: Sequence[float], trees: int, iteration: int, variance: Callable[[], float]
) -> Loss | None:
    """The loss at the width that begins before tree ``iteration``, or None where it stays what it is."""
    begun = [sigma for sigma, begin in zip(sigmas, begins_of(sigmas, trees), strict=True) if begin == iteration]
    if not begun:
        return None
    smoothed = cast("SmoothedMeasure", loss)
    sigma = smoothed.sigma_of(begun[-1] * variance())
    if iteration:
        sigma = min(sigma, smoothed.sigma)  # type: ignore[attr-defined]
    return smoothed.at_sigma(sigma) if _LEAST_SIGMA <= sigma < math.inf else None


def variance_within(lists: PreparedLists, scores: Vector, weight: Vector | None) -> float:
    """The weighted mean of the squares of scores minus the weighted mean of their query; exactly 0 if all are equal."""
    return mean_square(*squares_within(lists, scores, weight))


def mean_square(share: Vector, squares: Vector) -> float:
    """The mean of squares with these weights, which they have been multiplied by."""
    whole = math.fsum(share)
    return math.fsum(squares) / whole if whole > 0 else 0.0


def squares_within(lists: PreparedLists, scores: Vector, weight: Vector | None) -> tuple[Vector, Vector]:
    """(weights, weighted squares of scores minus the weighted mean of their query); exactly 0 if all are equal."""
    rows = slice(None) if lists.rows is None else lists.rows
    sizes = np.diff(lists.start)
    own, owner = scores[rows], np.repeat(np.arange(len(sizes)), sizes)
    own = own - own[np.repeat(lists.start[:-1], sizes)]
    share = np.ones(len(own)) if weight is None else weight[rows]
    total, sums = (np.bincount(owner, one, len(sizes)) for one in (share, share * own))
    away = own - np.divide(sums, total, out=np.zeros(len(sizes)), where=total > 0)[owner]
    return share, share * away**2
