"""Derivatives of a smoothed loss whose width shrinks while trees are grown.

Within a share of the trees the width is fixed: they descend on one function, from where the coarser one left the
scores. That is the annealing of SmoothRank (:mod:`rankwise.rankers.smooth.annealing`) with trees in place of weights.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self, cast

import numpy as np
from numpy.typing import NDArray

from rankwise.losses._base import SmoothedMeasure
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
        return [place * self.trees // len(self.sigmas) for place in range(len(self.sigmas))]

    @property
    def last_change(self) -> int:
        """The number of trees before the last width."""
        return self.begins[-1]

    def before_tree(self, scores: Vector, iteration: int, n_jobs: int | None = None) -> Self:
        """The same at the width that begins here, if one does; of several the smallest.

        It is never above the width before. Where scores do not vary within queries, the width stays what it is: before
        the first tree, that of the loss.
        """
        begun = [sigma for sigma, begin in zip(self.sigmas, self.begins, strict=True) if begin == iteration]
        if not begun:
            return self
        loss = cast("SmoothedMeasure", self.lists.loss)
        sigma = loss.sigma_of(begun[-1] * variance_within(self.lists, scores, self.weight))
        if iteration:
            sigma = min(sigma, loss.sigma)  # type: ignore[attr-defined]
        if not _LEAST_SIGMA <= sigma < math.inf:
            return self
        lists = replace(self.lists, loss=loss.at_sigma(sigma))
        constant = self.constant if loss.curvature is not None else typical_slope(lists, n_jobs)
        return replace(self, lists=lists, constant=constant)


def variance_within(lists: PreparedLists, scores: Vector, weight: Vector | None) -> float:
    """The weighted mean of the squares of scores minus the weighted mean of their query; exactly 0 if all are equal."""
    rows = slice(None) if lists.rows is None else lists.rows
    sizes = np.diff(lists.start)
    own, owner = scores[rows], np.repeat(np.arange(len(sizes)), sizes)
    own = own - own[np.repeat(lists.start[:-1], sizes)]
    share = np.ones(len(own)) if weight is None else weight[rows]
    total, sums = (np.bincount(owner, one, len(sizes)) for one in (share, share * own))
    away = own - np.divide(sums, total, out=np.zeros(len(sizes)), where=total > 0)[owner]
    whole = math.fsum(share)
    return math.fsum(share * away**2) / whole if whole > 0 else 0.0
