"""The largest violated pair."""

from dataclasses import dataclass

import numpy as np

from rankwise._errors import RankwiseError
from rankwise._kernels.jit import kernel
from rankwise.data.checks import is_number
from rankwise.losses._base import Loss, Rows, Vector
from rankwise.losses.slam_weights import class_end, first_with, lay_out_lists
from rankwise.measures import WTA
from rankwise.measures._base import Measure


@kernel
def max_pair_formula(score, label, value, grad, table, params):
    """``label`` holds the way through the list from the lowest class up."""
    size = len(score)
    best, rival = -np.inf, -1  # the highest score of lower classes, and the first document that has it
    largest, worst, winner = -params[0], -1, -1
    p = 0
    while p < size:
        end = class_end(label, p)
        highest, lowest = -np.inf, np.inf
        for t in range(p, end):
            s = score[int(label[t])]
            highest = max(highest, s)
            lowest = min(lowest, s)
        if rival >= 0 and best - lowest > largest:
            largest = best - lowest
            worst, winner = first_with(lowest, score, label, p, end), rival
        if highest >= best and end < size:
            document = first_with(highest, score, label, p, end)
            rival = document if highest > best else min(document, rival)
            best = highest
        p = end
    if worst < 0:
        return 0.0
    grad[winner] += 1.0
    grad[worst] -= 1.0
    return params[0] + largest


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
    kernel = max_pair_formula

    def __post_init__(self) -> None:
        if not is_number(self.margin) or not 0 < self.margin < np.inf:
            raise RankwiseError(f"the margin is above 0: found {self.margin!r}")

    def prepare(self, labels: Vector, start: Rows, rows: Rows | None) -> tuple[Vector, Vector]:
        way = np.empty(len(labels))
        lay_out_lists(start, np.empty(0, np.int64) if rows is None else rows, labels, way)
        return way, labels

    def params(self) -> tuple[float, ...]:
        return (self.margin,)

    def lipschitz_l1(self, m: int) -> float:
        return 2.0 if m > 1 else 0.0

    def range(self, b: float, m: int, labels: tuple[float, float] = (0.0, 4.0)) -> tuple[float, float]:
        return 0.0, self.margin + 2 * b

    @property
    def upper_bounds(self) -> Measure | None:
        return WTA() if self.margin >= 1 else None
