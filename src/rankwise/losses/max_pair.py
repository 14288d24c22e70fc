"""The largest violated pair."""

from dataclasses import dataclass

import numpy as np

from rankwise._errors import RankwiseError
from rankwise._kernels.jit import kernel
from rankwise.losses._base import Loss
from rankwise.losses.slam_weights import label_order
from rankwise.measures import WTA
from rankwise.measures._base import Measure


@kernel
def max_pair_formula(score, label, value, grad, table, knobs):
    order = label_order(label)
    size = len(order)
    largest = -np.inf  # of s_j - s_i over pairs with R_i > R_j
    best_i, best_j = -1, -1
    below = -1  # document with the highest score among strictly lower labels; the smallest index among equals
    t = size
    while t > 0:  # from the lowest label up
        e = t
        while t > 0 and label[order[t - 1]] == label[order[e - 1]]:
            t -= 1
        if below >= 0:
            for p in range(t, e):
                i = order[p]
                if score[below] - score[i] > largest:
                    largest = score[below] - score[i]
                    best_i, best_j = i, below
        for p in range(t, e):
            j = order[p]
            if below < 0 or score[j] > score[below] or (score[j] == score[below] and j < below):
                below = j
    loss = knobs[0] + largest
    if best_i < 0 or loss <= 0.0:
        return 0.0
    grad[best_j] += 1.0
    grad[best_i] -= 1.0
    return loss


@dataclass(frozen=True, kw_only=True, repr=False)
class MaxPair(Loss):
    r"""The hinge of the worst pair: phi = [margin + max over label_i > label_j of (s_j - s_i)]_+.

    At least ``margin`` whenever any pair is out of order or tied, so with margin 1 it bounds the loss of every measure
    in [0, 1] whose perfect rankings are the label-sorted ones.

    Parameters
    ----------
    margin : 1, or any number above 0

    Notes
    -----
    O(m log m). The gradient is e_j - e_i of the worst pair: G1 = 2.

    References
    ----------
    Equation (27) of the online perceptron for ranking.
    """

    margin: float = 1.0

    name = "MaxPair"
    convex = True
    formula = max_pair_formula

    def __post_init__(self) -> None:
        if not 0 < self.margin < np.inf:
            raise RankwiseError(f"the margin is above 0: found {self.margin!r}")

    def knobs(self) -> tuple[float, ...]:
        return (self.margin,)

    def lipschitz_l1(self, m: int) -> float:
        return 2.0 if m > 1 else 0.0

    def range(self, b: float, m: int, labels: tuple[float, float] = (0.0, 4.0)) -> tuple[float, float]:
        return 0.0, self.margin + 2 * b

    @property
    def bounds(self) -> Measure | None:
        return WTA() if self.margin >= 1 else None
