"""RankSVM: the hinge over all pairs with different labels, in O(m log m)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from rankwise._kernels.jit import kernel
from rankwise._kernels.levels import number_levels
from rankwise._kernels.sorting import sort_carrying
from rankwise.losses._base import Loss
from rankwise.measures import Pairs
from rankwise.measures._base import Measure


@kernel
def _add(tree, at, amount):
    """Add to one place of a Fenwick tree."""
    at += 1
    while at < len(tree):
        tree[at] += amount
        at += at & -at


@kernel
def _sum_below(tree, at):
    """Sum of the places before ``at``."""
    total = 0.0
    while at > 0:
        total += tree[at]
        at -= at & -at
    return total


@kernel
def active_pairs(score, centred, place, grade, n_grades, sign, count, partner):
    """For each document, its active pairs with lower-graded ones (sign +1) or higher-graded ones (sign -1).

    ``place`` lists the documents by decreasing ``sign * score``. A pair is active when the better document leads by
    less than 1. ``count`` gets how many, ``partner`` the sum of the others' scores, centred. Others only ever come in,
    never leave, so that no sum suffers from cancellation.
    """
    size = len(score)
    number, total = np.zeros(n_grades + 1), np.zeros(n_grades + 1)
    entered = 0
    for p in range(size):
        i = place[p]
        while entered < size and 1.0 + sign * (score[place[entered]] - score[i]) > 0.0:
            j = place[entered]
            own = grade[j] if sign > 0 else n_grades - 1 - grade[j]
            _add(number, own, 1.0)
            _add(total, own, centred[j])
            entered += 1
        mine = grade[i] if sign > 0 else n_grades - 1 - grade[i]
        count[i] = _sum_below(number, mine)
        partner[i] = _sum_below(total, mine)


@kernel
def pair_hinge_formula(score, label, value, grad, table, knobs):
    squared, per_pair = knobs[0] != 0.0, knobs[1] != 0.0
    size = len(score)
    grade = np.empty(size, np.int64)
    n_grades = number_levels(label, grade)
    if n_grades < 2:
        return 0.0
    centred = score - score.mean()
    key = -score
    place = np.arange(size)
    sort_carrying(key, place, np.empty(size), np.empty(size, np.int64), np.empty(size + 1, np.int64))
    below, below_sum, above, above_sum = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    active_pairs(score, centred, place, grade, n_grades, 1.0, below, below_sum)
    active_pairs(score, centred, place[::-1].copy(), grade, n_grades, -1.0, above, above_sum)
    loss = 0.0
    for i in range(size):
        # slack of all pairs in which i is the better, and in which it is the worse document
        better = below[i] * (1.0 - centred[i]) + below_sum[i]
        worse = above[i] * (1.0 + centred[i]) - above_sum[i]
        if squared:
            grad[i] = 2.0 * (worse - better)
            # the sum of squares is half of sum g s plus the sum of slacks: (1 + d)^2 = (1 + d) d + (1 + d)
            loss += 0.5 * grad[i] * centred[i] + better
        else:
            grad[i] = above[i] - below[i]
            loss += better
    if per_pair:
        members = np.zeros(n_grades)
        for i in range(size):
            members[grade[i]] += 1.0
        pairs = (size * size - (members * members).sum()) / 2.0
        for i in range(size):
            grad[i] /= pairs
        loss /= pairs
    return max(loss, 0.0)


@dataclass(frozen=True, kw_only=True, repr=False)
class PairHinge(Loss):
    r"""phi = sum over label_i > label_j of [1 + s_j - s_i]_+, or of its square.

    Parameters
    ----------
    squared : the squared hinge
    per_pair : divide by the number of pairs with different labels, so that long lists do not outweigh short ones

    Notes
    -----
    O(m log m): documents sorted by score, pairs counted by a Fenwick tree over the labels. The gradient counts
    active pairs: +1 for the worse document, -1 for the better. G1 = 2 floor(m^2 / 4) for the plain sum, 2 for its
    mean. Divided or not, it bounds the share of pairs in the wrong order. Sums are taken of centred scores, so the
    rounding error is a few units in the last place of the largest of them (of its square, for the squared hinge).
    """

    squared: bool = False
    per_pair: bool = True

    name = "PairHinge"
    convex = True
    formula = pair_hinge_formula

    def knobs(self) -> tuple[float, ...]:
        return float(self.squared), float(self.per_pair)

    def lipschitz_l1(self, m: int) -> float:
        if self.squared or m < 2:
            return np.inf if m > 1 else 0.0
        return 2.0 if self.per_pair else 2.0 * (m * m // 4)

    def smoothness(self, m: int) -> float:
        """A pair contributes 2 (e_j - e_i)(e_j - e_i)', of norm 8 from the largest to the sum of changes."""
        if not self.squared:
            return np.inf
        return 8.0 if self.per_pair else 8.0 * _most_pairs(m)

    def range(self, b: float, m: int, labels: tuple[float, float] = (0.0, 4.0)) -> tuple[float, float]:
        worst = (1 + 2 * b) ** (2 if self.squared else 1)
        return 0.0, worst if self.per_pair else worst * _most_pairs(m)

    @property
    def bounds(self) -> Measure | None:
        return Pairs()

    @classmethod
    def examples(cls) -> Sequence[Self]:
        return tuple(cls(squared=squared, per_pair=per_pair) for squared in (False, True) for per_pair in (False, True))


def _most_pairs(m: int) -> int:
    """Pairs with different labels are most when all labels differ."""
    return m * (m - 1) // 2
