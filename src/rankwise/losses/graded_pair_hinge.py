"""A pair hinge that weighs a pair by its two labels: the loss of IR-SVM, in O(m log m + m grades).

As for :mod:`rankwise.losses.pairwise_hinge`, documents are sorted by score and enter sums, here one sum per grade.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from rankwise._kernels.machine.jit import kernel
from rankwise._kernels.ragged import number_levels
from rankwise._kernels.sorting import sort_carrying
from rankwise.errors import RankwiseError
from rankwise.losses._base import Loss


@kernel
def _active_pairs(score, place, grade, n_grades, tau, count, slack):
    """For each document i its pairs with lower-graded documents j for which 1 + s_j - s_i is above 0.

    ``place`` lists the documents by decreasing score. ``count`` gets the sum of tau[grade_i, grade_j], ``slack`` the
    sum of tau (1 + s_j - s_i). For every grade the number of documents that have entered, the lowest of their scores,
    and how far they are above it in total are kept: sums of nonnegative numbers, which lose no digits.
    """
    size = len(score)
    number, lowest, above = np.zeros(n_grades), np.zeros(n_grades), np.zeros(n_grades)
    entered = 0
    for p in range(size):
        i = place[p]
        while entered < size and 1.0 + (score[place[entered]] - score[i]) > 0.0:
            j = place[entered]
            g = grade[j]
            above[g] += number[g] * (lowest[g] - score[j])
            number[g] += 1.0
            lowest[g] = score[j]
            entered += 1
        count[i], slack[i] = 0.0, 0.0
        for g in range(grade[i]):
            if number[g] > 0.0:
                weight = tau[grade[i], g]
                count[i] += weight * number[g]
                slack[i] += weight * (above[g] + number[g] * (1.0 + (lowest[g] - score[i])))


@kernel
def graded_hinge_formula(score, label, value, grad, table, params):
    """The hinge; ``params``: whether it is a mean, the number of weights, and each as (better, worse, weight)."""
    size = len(score)
    grade = np.empty(size, np.int64)
    n_grades = number_levels(label, grade)
    members, label_of = np.zeros(n_grades), np.empty(n_grades)
    for i in range(size):
        members[grade[i]] += 1.0
        label_of[grade[i]] = label[i]
    pairs, lower = 0.0, 0.0
    for g in range(n_grades):
        pairs += members[g] * lower
        lower += members[g]
    if pairs == 0.0:
        return 0.0
    tau, reversed_tau = np.ones((n_grades, n_grades)), np.ones((n_grades, n_grades))
    for k in range(int(params[1])):
        better, worse = params[2 + 3 * k], params[3 + 3 * k]
        for a in range(n_grades):
            for b in range(a):
                if label_of[a] == better and label_of[b] == worse:
                    tau[a, b] = params[4 + 3 * k]
    for a in range(n_grades):
        for b in range(a):
            reversed_tau[n_grades - 1 - b, n_grades - 1 - a] = tau[a, b]
    negated = -score
    key, place = negated.copy(), np.arange(size)
    sort_carrying(key, place, np.empty(size), np.empty(size, np.int64), np.empty(size + 1, np.int64))
    count, slack = np.empty((2, size)), np.empty((2, size))
    _active_pairs(score, place, grade, n_grades, tau, count[0], slack[0])
    _active_pairs(negated, place[::-1].copy(), n_grades - 1 - grade, n_grades, reversed_tau, count[1], slack[1])
    divisor = pairs if params[0] != 0.0 else 1.0
    for i in range(size):
        grad[i] = (count[1, i] - count[0, i]) / divisor
    return slack[0].sum() / divisor


@dataclass(frozen=True, kw_only=True, repr=False)
class GradedPairHinge(Loss):
    r"""phi = mean over label_i > label_j of tau(label_i, label_j) [1 + s_j - s_i]_+, or the sum.

    Parameters
    ----------
    weights : sequence of (better label, worse label, weight), default=()
        tau, at least 0; labels that are not named together weigh 1.
    per_pair : bool, default=True
        Whether to divide by the number of pairs with different labels, so that long lists do not outweigh short ones.

    Notes
    -----
    O(m log m + m grades): documents are sorted by score, and active pairs are counted grade by grade. A sum of hinges
    with weights of at least 0 is convex. A pair moves two scores by its weight: G1 is 2 t for the mean and
    2 t floor(m^2 / 4) for the sum, with t the largest weight, or 1.

    **No measure is bounded** if a weight is below 1: a pair in the wrong order costs tau.

    References
    ----------
    Y. Cao, J. Xu, T.-Y. Liu, H. Li, Y. Huang, H.-W. Hon (2006). Adapting ranking SVM to document retrieval. SIGIR.
    doi:10.1145/1148170.1148205.

    Examples
    --------
    >>> value, gradient = GradedPairHinge(weights=[(2, 1, 0.25)])([0.0, 0.0, 0.0], [2, 1, 0])
    >>> value, (3 * gradient).tolist()
    (0.75, [-1.25, -0.75, 2.0])
    """

    weights: Any = ()
    per_pair: bool = True

    name = "GradedPairHinge"
    convex = True
    kernel = graded_hinge_formula

    def __post_init__(self) -> None:
        if not isinstance(self.per_pair, (bool, np.bool_)):
            raise RankwiseError(f"per_pair must be True or False, got {self.per_pair!r:.60}")
        try:
            if not isinstance(self.weights, Iterable) or isinstance(self.weights, (str, bytes)):
                raise TypeError
            weights = tuple((float(better), float(worse), float(weight)) for better, worse, weight in self.weights)
        except (TypeError, ValueError) as error:
            raise RankwiseError(
                f"weights must be a sequence of (better label, worse label, weight), got {self.weights!r:.60}"
            ) from error
        for better, worse, weight in weights:
            if not (better > worse and 0 <= weight < math.inf):
                raise RankwiseError(
                    "weights must name a better label, a worse one and a finite weight of at least 0, "
                    f"got {(better, worse, weight)}"
                )
        if len({pair[:2] for pair in weights}) < len(weights):
            raise RankwiseError(f"weights must name two labels once, got {weights!r:.60}")
        object.__setattr__(self, "weights", weights)

    def params(self) -> tuple[float, ...]:
        """The parameters as the kernel reads them."""
        return float(self.per_pair), float(len(self.weights)), *(number for pair in self.weights for number in pair)

    @property
    def _largest(self) -> float:
        return max((weight for _, _, weight in self.weights), default=0.0)

    def lipschitz_l1(self, m: int) -> float:
        """G1 of queries of at most ``m`` documents; see :meth:`Loss.lipschitz_l1` and Notes."""
        if m < 2:
            return 0.0
        return 2.0 * max(self._largest, 1.0) * (1.0 if self.per_pair else m * m // 4)

    @property
    def labels_per_term(self) -> Literal[1, 2] | None:
        """2 for the sum; the mean divides by a number of pairs that depends on all labels."""
        return None if self.per_pair else 2

    def term_lipschitz_l1(self, b: float, m: int, label: float) -> float:
        """A pair moves two scores by its weight."""
        return 2.0 * max(self._largest, 1.0) if m > 1 else 0.0

    def range(self, b: float, m: int, labels: tuple[float, float] = (0.0, 4.0)) -> tuple[float, float]:
        """Smallest and largest value for scores in [-b, b]; see :meth:`Loss.range`."""
        worst = max(self._largest, 1.0) * (1 + 2 * b)
        return 0.0, worst if self.per_pair else worst * (m * (m - 1) // 2)

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """The variants that the common tests run on."""
        some = ((1.0, 0.0, 0.25), (2.0, 0.0, 1.0), (2.0, 1.0, 0.5))
        return (
            cls(),
            cls(weights=some),
            cls(weights=some, per_pair=False),
            cls(weights=((3.0, 0.0, 2.5), (1.0, 0.0, 0.0))),
        )
