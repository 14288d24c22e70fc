"""The loss of RankSVM: the hinge over all pairs with different labels, in O(m log m).

The kernel sorts the documents by score and counts active pairs with a Fenwick tree over the labels, once for the pairs
in which a document is the better one and once, with scores and labels negated, for those in which it is the worse one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from rankwise._kernels.machine.jit import kernel
from rankwise._kernels.ragged import number_levels
from rankwise._kernels.sorting import sort_carrying
from rankwise.losses._base import Loss
from rankwise.measures import Pairs
from rankwise.measures._base import Measure

# A node of the tree sums over documents that were added from the highest score down: their weight, the lowest of their
# scores, and how far they are above it, as a weighted sum and as a weighted sum of squares. All sums are of nonnegative
# numbers, so no digit is lost to cancellation, however far apart the scores are.
_WEIGHT, _LOWEST, _ABOVE, _SQUARES = range(4)


@kernel
def _enter(tree, at, score, weight):
    """Add a document of class ``at``, whose score is not above any added before, to the tree over the classes."""
    at += 1
    while at < len(tree):
        node = tree[at]
        drop = node[_LOWEST] - score
        node[_SQUARES] += drop * (2.0 * node[_ABOVE] + node[_WEIGHT] * drop)
        node[_ABOVE] += node[_WEIGHT] * drop
        node[_WEIGHT] += weight
        node[_LOWEST] = score
        at += at & -at


@kernel
def _slacks_below(tree, at, score):
    """Over all documents j of classes below ``at``: weighted sums of 1, of 1 + s_j - score, and of its square."""
    total, slack, squares = 0.0, 0.0, 0.0
    while at > 0:
        node = tree[at]
        least = 1.0 + (node[_LOWEST] - score)
        total += node[_WEIGHT]
        slack += node[_ABOVE] + node[_WEIGHT] * least
        squares += node[_SQUARES] + least * (2.0 * node[_ABOVE] + node[_WEIGHT] * least)
        at -= at & -at
    return total, slack, squares


@kernel
def _active_pairs(score, weight, place, grade, n_grades, count, slack):
    """For each document i its active pairs with lower-graded documents j, those where 1 + s_j - s_i is above 0.

    ``place`` lists the documents by decreasing score. ``count`` gets the sum of their weights w_i w_j, ``slack`` the
    weighted sum of 1 + s_j - s_i; returns the weighted sum of its squares over all pairs.
    """
    size = len(score)
    tree = np.zeros((n_grades + 1, 4))
    entered, total = 0, 0.0
    for p in range(size):
        i = place[p]
        while entered < size and 1.0 + (score[place[entered]] - score[i]) > 0.0:
            j = place[entered]
            if weight is None:
                _enter(tree, grade[j], score[j], 1.0)
            elif weight[j] > 0.0:
                _enter(tree, grade[j], score[j], weight[j])
            entered += 1
        count[i], slack[i], squares = _slacks_below(tree, grade[i], score[i])
        if weight is not None:
            count[i] *= weight[i]
            slack[i] *= weight[i]
            squares *= weight[i]
        total += squares
    return total


@kernel
def _sum_pairs(score, label, weight, count, slack):
    """Sums over the pairs of a query with different labels; ``weight`` None means that every document weighs 1.

    numba compiles the two cases apart, so documents without weights cost nothing more.
    ``count`` and ``slack`` get the sums of :func:`_active_pairs`: in their first row over the pairs in which a document
    is the better one, in the second over those in which it is the worse one. Returns the weight of all pairs, active or
    not, and the sum of squares over the active ones.
    """
    size = len(score)
    grade = np.empty(size, np.int64)
    n_grades = number_levels(label, grade)
    members = np.zeros(n_grades)
    for i in range(size):
        if weight is None:
            members[grade[i]] += 1.0
        else:
            members[grade[i]] += weight[i]
    pairs, lower = 0.0, 0.0
    for g in range(n_grades):
        pairs += members[g] * lower
        lower += members[g]
    if pairs == 0.0:
        return 0.0, 0.0
    negated = -score
    key, place = negated.copy(), np.arange(size)
    sort_carrying(key, place, np.empty(size), np.empty(size, np.int64), np.empty(size + 1, np.int64))
    squares = _active_pairs(score, weight, place, grade, n_grades, count[0], slack[0])
    _active_pairs(negated, weight, place[::-1].copy(), n_grades - 1 - grade, n_grades, count[1], slack[1])
    return pairs, squares


@kernel
def pair_hinge_formula(score, label, value, grad, table, params):
    """The hinge over pairs; ``params`` are whether it is squared and whether it is divided by the number of pairs."""
    squared, size = params[0] != 0.0, len(score)
    count, slack = np.empty((2, size)), np.empty((2, size))
    pairs, squares = _sum_pairs(score, label, None, count, slack)
    if pairs == 0.0:
        return 0.0
    divisor = pairs if params[1] != 0.0 else 1.0
    for i in range(size):
        grad[i] = (2.0 * (slack[1, i] - slack[0, i]) if squared else count[1, i] - count[0, i]) / divisor
    return (squares if squared else slack[0].sum()) / divisor


@kernel
def weighted_pair_hinge(score, label, value, grad, table, params):
    """The same for document weights ``value``: a pair weighs w_i w_j."""
    squared, size = params[0] != 0.0, len(score)
    count, slack = np.empty((2, size)), np.empty((2, size))
    pairs, squares = _sum_pairs(score, label, value, count, slack)
    if pairs == 0.0:
        return 0.0
    share = 1.0 / pairs if params[1] != 0.0 else 1.0
    for i in range(size):
        grad[i] = share * (2.0 * (slack[1, i] - slack[0, i]) if squared else count[1, i] - count[0, i])
    return share * (squares if squared else slack[0].sum())


@kernel
def _add_curved(score, label, weight, grad, diagonal, params):
    """The squared hinge: its gradient, and 2 times the weight of the active pairs of each document."""
    size = len(score)
    count, slack = np.empty((2, size)), np.empty((2, size))
    pairs, _ = _sum_pairs(score, label, weight, count, slack)
    if pairs == 0.0:
        return
    share = 2.0 / pairs if params[1] != 0.0 else 2.0
    for i in range(size):
        grad[i] = share * (slack[1, i] - slack[0, i])
        diagonal[i] = share * (count[0, i] + count[1, i])


@kernel
def squared_hinge_curved(score, label, value, grad, diagonal, table, params):
    """Gradient and second derivatives of the squared hinge; see :func:`_add_curved`."""
    _add_curved(score, label, None, grad, diagonal, params)


@kernel
def weighted_squared_hinge_curved(score, label, value, grad, diagonal, table, params):
    """The same for document weights ``value``."""
    _add_curved(score, label, value, grad, diagonal, params)


@dataclass(frozen=True, kw_only=True, repr=False)
class PairHinge(Loss):
    r"""phi = sum over label_i > label_j of [1 + s_j - s_i]_+, or of its square.

    Parameters
    ----------
    squared : bool, default=False
        Whether the hinge is squared.
    per_pair : bool, default=True
        Whether to divide by the number of pairs with different labels, so that long lists do not outweigh short ones.

    Notes
    -----
    O(m log m): documents are sorted by score and pairs counted by a Fenwick tree over the labels. The gradient counts
    active pairs: +1 for the worse document, -1 for the better one. G1 = 2 floor(m^2 / 4) for the plain sum and 2 for
    its mean. Divided or not, the loss bounds the share of pairs in the wrong order. Sums are taken of centered scores,
    so the rounding error is a few units in the last place of the largest of them (of its square, for the squared
    hinge). A pair contributes 2 (e_j - e_i)(e_j - e_i)' to the Hessian of the squared hinge, so H1 = 8 for its mean.

    With document weights a pair weighs w_i w_j, and the mean divides by the sum of these weights: weights times c
    change the mean by nothing, the sum by c^2. G1 and H1 of the mean stay the same, since it is a mean of the same
    terms.

    References
    ----------
    T. Joachims (2002). Optimizing search engines using clickthrough data. KDD. doi:10.1145/775047.775067.
    """

    squared: bool = False
    per_pair: bool = True

    name = "PairHinge"
    convex = True
    kernel = pair_hinge_formula
    document_weights = True
    weighted_kernel = weighted_pair_hinge
    curved_kernel = squared_hinge_curved
    weighted_curved_kernel = weighted_squared_hinge_curved

    def params(self) -> tuple[float, ...]:
        """The parameters as the kernel reads them."""
        return float(self.squared), float(self.per_pair)

    def lipschitz_l1(self, m: int) -> float:
        """G1 of queries of at most ``m`` documents; see :meth:`Loss.lipschitz_l1` and Notes."""
        if self.squared or m < 2:
            return np.inf if m > 1 else 0.0
        return 2.0 if self.per_pair else 2.0 * (m * m // 4)

    @property
    def labels_per_term(self) -> Literal[1, 2] | None:
        """2 for the sum; the mean divides by a number of pairs that depends on all labels."""
        return None if self.per_pair else 2

    def term_lipschitz_l1(self, b: float, m: int, label: float) -> float:
        """2 for a hinge, which moves two scores by 1, and 4 (1 + 2 b) for its square."""
        if m < 2:
            return 0.0
        return 4.0 * (1 + 2 * b) if self.squared else 2.0

    def smoothness(self, m: int) -> float:
        """H1, finite for the squared hinge: a pair's Hessian has norm 8 from the largest to the sum of changes."""
        if not self.squared:
            return np.inf
        return 8.0 if self.per_pair else 8.0 * _most_pairs(m)

    def range(self, b: float, m: int, labels: tuple[float, float] = (0.0, 4.0)) -> tuple[float, float]:
        """Smallest and largest value for scores in [-b, b]; see :meth:`Loss.range`."""
        worst = (1 + 2 * b) ** (2 if self.squared else 1)
        return 0.0, worst if self.per_pair else worst * _most_pairs(m)

    @property
    def upper_bounds(self) -> Measure | None:
        """The measure whose loss this loss bounds; see :attr:`Loss.upper_bounds`."""
        return Pairs()

    @property
    def squared_pairs(self) -> bool | None:
        return self.per_pair if self.squared else None

    @property
    def curvature(self) -> Literal["exact"] | None:
        return "exact" if self.squared else None

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """The variants that the common tests run on."""
        return tuple(cls(squared=squared, per_pair=per_pair) for squared in (False, True) for per_pair in (False, True))


def _most_pairs(m: int) -> int:
    """The largest number of pairs with different labels: that of m different labels."""
    return m * (m - 1) // 2
