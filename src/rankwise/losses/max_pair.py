"""MaxPair: the hinge of the worst pair of documents with different labels.

The kernel visits the documents from the lowest label class up, along the path that
:func:`rankwise.losses.slam.lay_out_lists` computes once per query.
"""

from dataclasses import dataclass

import numpy as np

from rankwise._kernels.machine.jit import kernel
from rankwise._parameters import PositiveFloat
from rankwise.losses._base import Loss, Rows, Vector
from rankwise.losses.compute import label_classes
from rankwise.losses.slam import class_end, first_with, lay_out_lists
from rankwise.measures import WTA
from rankwise.measures._base import Measure


@kernel
def max_pair_formula(score, label, value, grad, table, params):
    """The worst pair's hinge; ``label`` holds the path through the query from the lowest class up."""
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

    It is at least ``margin`` whenever any pair is out of order or tied. With margin 1 it therefore bounds the loss of
    every measure in [0, 1] whose perfect rankings are the label-sorted ones.

    Parameters
    ----------
    margin : float, default=1.0
        The margin, above 0.

    Notes
    -----
    O(m) once the classes of a query are known, which takes a sort of its labels. The gradient is e_j - e_i of the
    worst pair: G1 = 2.

    References
    ----------
    S. Chaudhuri, A. Tewari (2015). Perceptron-like algorithms for online learning to rank. arXiv:1508.00842.
    Equation (27).

    Examples
    --------
    >>> value, gradient = MaxPair()([0.0, 1.0, 0.5], [2, 0, 1])
    >>> value, gradient.tolist()
    (2.0, [-1.0, 1.0, 0.0])
    """

    margin: PositiveFloat = 1.0

    name = "MaxPair"
    convex = True
    perceptron_bound = "worst pair"
    kernel = max_pair_formula

    def prepare(self, labels: Vector, start: Rows, rows: Rows | None) -> tuple[Vector, Vector]:
        """The path through every query, and the labels."""
        way = np.empty(len(labels))
        longest, every = int(np.diff(start).max(initial=0)), np.empty(0, np.int64) if rows is None else rows
        lay_out_lists(start, every, label_classes(labels, start, rows), longest, way)
        return way, labels

    def params(self) -> tuple[float, ...]:
        """The parameters as the kernel reads them."""
        return (self.margin,)

    def lipschitz_l1(self, m: int) -> float:
        """G1 of queries of at most ``m`` documents; see :meth:`Loss.lipschitz_l1` and Notes."""
        return 2.0 if m > 1 else 0.0

    def range(self, b: float, m: int, labels: tuple[float, float] = (0.0, 4.0)) -> tuple[float, float]:
        """Smallest and largest value for scores in [-b, b]; see :meth:`Loss.range`."""
        return 0.0, self.margin + 2 * b

    @property
    def upper_bounds(self) -> Measure | None:
        """The measure whose loss this loss bounds; see :attr:`Loss.upper_bounds`."""
        return WTA() if self.margin >= 1 else None
