"""What the bounds of the SLAM perceptron need to know about the weights v of the lists that it met."""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._errors import RankwiseError


@dataclass(frozen=True, kw_only=True)
class WeightFacts:
    r"""Extremes of weights v over lists, from which every constant of the online bounds is made.

    Attributes
    ----------
    V : largest sum of a list's weights
    smallest : smallest positive weight; infinite if there is none
    v_max : largest ratio of two positive weights of one list; 1 if there is none
    longest : most documents of a list that have a positive weight: m for NDCG and AP at most, k for NDCG@k
    steepest : largest (sum v)^2 / (smallest positive v) of a list

    Examples
    --------
    >>> facts = WeightFacts.of([0.5, 0.25, 0.0, 1.0, 0.0], start=[0, 3, 5])
    >>> facts.V, facts.smallest, facts.v_max, facts.kappa
    (1.0, 0.25, 2.0, 2.25)
    """

    V: float = 0.0
    smallest: float = math.inf
    v_max: float = 1.0
    longest: int = 0
    steepest: float = 0.0

    @classmethod
    def of(cls, v: ArrayLike, start: ArrayLike | None = None) -> "WeightFacts":
        """Facts about weights ``v``, one a document; list q owns ``v[start[q]:start[q+1]]``, one list by default."""
        weights = np.asarray(v, dtype=np.float64)
        bounds = np.array([0, len(weights)] if start is None else start, dtype=np.int64)
        if not np.isfinite(weights).all() or (weights < 0).any():
            place = int(np.argmax(~np.isfinite(weights) | (weights < 0)))
            raise RankwiseError(f"weights v are finite and 0 or more: found {weights[place]} at row {place:,}")
        facts = cls()
        for begin, end in pairwise(bounds):
            facts = facts | cls._of_list(weights[begin:end])
        return facts

    @classmethod
    def _of_list(cls, v: NDArray[np.float64]) -> "WeightFacts":
        positive = v[v > 0]
        if not len(positive):
            return cls()
        total, least, most = math.fsum(positive), float(positive.min()), float(positive.max())
        return cls(V=total, smallest=least, v_max=most / least, longest=len(positive), steepest=total**2 / least)

    def __or__(self, other: "WeightFacts") -> "WeightFacts":
        """Facts about the lists of both: how a stream keeps them."""
        return WeightFacts(
            V=max(self.V, other.V),
            smallest=min(self.smallest, other.smallest),
            v_max=max(self.v_max, other.v_max),
            longest=max(self.longest, other.longest),
            steepest=max(self.steepest, other.steepest),
        )

    @property
    def kappa(self) -> float:
        r"""The constant of norm(z)^2 <= 4 radius^2 kappa phi on a round with a mistake, z the gradient of phi.

        The papers use ``longest * v_max``. A mistake means that some document with v > 0 is outscored and has a slack
        of 1 or more, so phi is at least the smallest positive v, while norm(z) <= 2 radius sum v: (sum v)^2 /
        (smallest positive v) will do, too, and is never larger for weights that add up to 1 or less. The smaller one.
        """
        return min(self.steepest, self.longest * self.v_max)
