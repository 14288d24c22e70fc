"""The largest violated pair."""

from dataclasses import dataclass

import numpy as np

from rankwise._errors import RankwiseError
from rankwise._kernels.jit import kernel
from rankwise.losses._base import Loss, Rows, Vector
from rankwise.losses.slam_weights import best_below, number_lists
from rankwise.measures import WTA
from rankwise.measures._base import Measure


@kernel
def max_pair_formula(score, label, value, grad, table, knobs):
    """``label`` holds the number of each document's label class."""
    below = best_below(score, label, int(label.max()) + 1)
    worst = -1
    largest = -knobs[0]
    for i in range(len(score)):
        k = below[int(label[i])]
        if k >= 0 and score[k] - score[i] > largest:
            largest = score[k] - score[i]
            worst = i
    if worst < 0:
        return 0.0
    grad[below[int(label[worst])]] += 1.0
    grad[worst] -= 1.0
    return knobs[0] + largest


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
    O(m) once the classes of a list are known, which takes a sort of its labels. The gradient is e_j - e_i of the
    worst pair: G1 = 2.

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

    def prepare(self, labels: Vector, start: Rows, rows: Rows | None) -> tuple[Vector, Vector]:
        grade = np.empty(len(labels))
        number_lists(start, np.arange(len(labels)) if rows is None else rows, labels, grade)
        return grade, labels

    def knobs(self) -> tuple[float, ...]:
        return (self.margin,)

    def lipschitz_l1(self, m: int) -> float:
        return 2.0 if m > 1 else 0.0

    def range(self, b: float, m: int, labels: tuple[float, float] = (0.0, 4.0)) -> tuple[float, float]:
        return 0.0, self.margin + 2 * b

    @property
    def bounds(self) -> Measure | None:
        return WTA() if self.margin >= 1 else None
