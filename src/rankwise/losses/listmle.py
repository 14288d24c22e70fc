"""ListMLE: the likelihood that documents are drawn in the order of their labels, one after the other.

Two passes over the documents arranged by label: upwards for the logarithms of the sums over smaller labels, downwards
for what each document gets from all that compete with it. Every exponent is at most 0, so nothing overflows.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from rankwise._kernels.exp import exp, log1pexp, sigmoid
from rankwise._kernels.machine.jit import kernel
from rankwise._kernels.sorting import sort_carrying
from rankwise.losses._base import Loss, Vector


@kernel
def _draws(score, label, weight, grad, diagonal, curved):
    """The sum over draws, and their total weight; adds first and, if asked, second derivatives."""
    size = len(score)
    key, place = label.copy(), np.arange(size)
    sort_carrying(key, place, np.empty(size), np.empty(size, np.int64), np.empty(size + 1, np.int64))
    drawn = np.empty(size)  # log of e^s_i plus the sum over smaller labels; inf where there is nothing to draw
    total, mass = 0.0, 0.0
    highest, below = -np.inf, 0.0  # the sum of w e^s over smaller labels is below * e^highest
    first = 0
    for p in range(size):
        if key[p] != key[first]:
            for q in range(first, p):  # a whole class moves below, so that its own documents do not compete
                i = place[q]
                if weight[i] > 0.0:
                    if score[i] > highest:
                        below *= exp(highest - score[i])
                        highest = score[i]
                    below += weight[i] * exp(score[i] - highest)
            first = p
        i = place[p]
        drawn[p] = np.inf
        if weight[i] > 0.0 and below > 0.0:
            x = highest + math.log(below) - score[i]
            loss, slope = log1pexp(x), sigmoid(x)
            total += weight[i] * loss
            mass += weight[i]
            drawn[p] = score[i] + loss
            grad[i] -= weight[i] * slope
            if curved:
                diagonal[i] += weight[i] * slope * sigmoid(-x)
    lowest, above, squares = np.inf, 0.0, 0.0  # the sum of w / (e^s_i + smaller) over larger labels, times e^lowest
    last = size - 1
    for p in range(size - 1, -1, -1):
        if key[p] != key[last]:
            for q in range(last, p, -1):
                if drawn[q] < np.inf:
                    i = place[q]
                    if drawn[q] < lowest:
                        shrink = exp(drawn[q] - lowest)
                        above *= shrink
                        squares *= shrink * shrink
                        lowest = drawn[q]
                    share = exp(lowest - drawn[q])
                    above += weight[i] * share
                    squares += weight[i] * share * share
            last = p
        j = place[p]
        if above > 0.0 and weight[j] > 0.0:
            own = exp(min(score[j] + math.log(weight[j]) - lowest, 0.0))  # above 0 by rounding alone
            grad[j] += own * above
            if curved:
                diagonal[j] += max(own * above - own * own * squares, 0.0)
    return total, mass


@kernel
def listmle_formula(score, label, value, grad, table, params):
    """The sum or the mean over draws; ``value`` holds document weights."""
    total, mass = _draws(score, label, value, grad, grad, False)
    if mass > 0.0 and params[0] != 0.0:
        for p in range(len(score)):
            grad[p] /= mass
        return total / mass
    return total


@kernel
def listmle_curved(score, label, value, grad, diagonal, table, params):
    """Gradient and second derivatives, as in :func:`listmle_formula`."""
    _, mass = _draws(score, label, value, grad, diagonal, True)
    if mass > 0.0 and params[0] != 0.0:
        for p in range(len(score)):
            grad[p] /= mass
            diagonal[p] /= mass


@dataclass(frozen=True, kw_only=True, repr=False)
class ListMLE(Loss):
    r"""phi = sum_i log(1 + sum over label_j < label_i of e^(s_j - s_i)), or the mean over these draws.

    Parameters
    ----------
    per_draw : bool, default=False
        Whether to divide by the number of documents that have a less relevant one, so that long lists do not outweigh
        short ones. The paper has the sum.

    Notes
    -----
    The Plackett-Luce model draws documents one after the other, each with a probability proportional to e^s among those
    that are left. If all labels differ, phi is -log of the probability of the order of the labels, the loss of the
    paper: each draw is from the document itself and all less relevant ones.

    **Equal labels.** The paper has a total order, and implementations break ties by the place in the file or at
    random. Here documents of equal labels do not compete: each is drawn against the less relevant ones alone. The order
    of the file has no influence, a perfect ranking has a loss that tends to 0 as the gaps grow, and queries of equal
    labels count 0. phi is at least -log P(all orders that agree with the labels). Proof for one class A before the
    rest B: with independent exponential times of rates e^s, P(A before B) = E[prod_i F_i(T)], where T is the first time
    in B and the distribution functions F_i increase. By Chebyshev's inequality this is at least prod_i E[F_i(T)], and
    E[F_i(T)] = e^s_i / (e^s_i + sum over B of e^s_j). The product over classes, from the largest label on, gives the
    rest.

    O(m) and sorting by label. Each draw is log-sum-exp of differences: convex, smooth, with a gradient of l1 norm at
    most 2 and H1 <= 1 (as ListNet). There are at most m - 1 draws: G1 = 2 (m - 1), approached where one irrelevant
    document is far above m - 1 relevant ones, and H1 = m - 1; for the mean 2 and 1. A draw against n documents costs
    at most log(1 + n e^(2 b)), and in ascending order of labels document n + 1 has at most n less relevant ones. A pair
    in the wrong order costs log 2 = 0.693 or more, so phi bounds no measure.

    With document weights phi = sum_i w_i log(1 + sum_j w_j e^(s_j - s_i)), as with w_i copies. Weights change the
    range; G1 and H1 of the mean stay the same.

    References
    ----------
    F. Xia, T.-Y. Liu, J. Wang, W. Zhang, H. Li (2008). Listwise approach to learning to rank: theory and algorithm.
    ICML. doi:10.1145/1390156.1390306.

    Examples
    --------
    >>> value, gradient = ListMLE()([0.0, 0.0, 0.0], [2, 1, 0])
    >>> round(value, 6), gradient.round(4).tolist()   # log 3 + log 2
    (1.791759, [-0.6667, -0.1667, 0.8333])
    """

    per_draw: bool = False

    name = "ListMLE"
    convex = True
    smooth = True
    kernel = weighted_kernel = listmle_formula
    document_weights = True
    curved_kernel = weighted_curved_kernel = listmle_curved

    def row_values(self, labels: Vector) -> Vector:
        """The weight of every document without weights: 1."""
        return np.ones(len(labels))

    def params(self) -> tuple[float, ...]:
        """Whether the sum is divided by the number of draws."""
        return (float(self.per_draw),)

    def lipschitz_l1(self, m: int) -> float:
        """G1 of queries of at most ``m`` documents; proved in the Notes."""
        return 2.0 * (min(m - 1, 1) if self.per_draw else m - 1)

    def smoothness(self, m: int) -> float:
        """H1 of queries of at most ``m`` documents; proved in the Notes."""
        return float(min(m - 1, 1) if self.per_draw else m - 1)

    def range(self, b: float, m: int, labels: tuple[float, float] = (0.0, 4.0)) -> tuple[float, float]:
        """0 to the sum of log(1 + n e^(2 b)) over n < m; for the mean its last term."""
        worst = np.logaddexp(0.0, 2.0 * b + np.log(np.arange(1.0, m)))
        return 0.0, float(worst.max(initial=0.0) if self.per_draw else worst.sum())

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """The sum and the mean."""
        return cls(), cls(per_draw=True)
