"""The loss of RankNet: the logistic loss over all pairs with different labels.

:func:`~rankwise.losses.pair_loss` builds its kernels from the vectorized functions of :mod:`rankwise._kernels.exp`;
those for second derivatives are here.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from rankwise._kernels.exp import log1pexp, sigmoid
from rankwise._kernels.machine.jit import kernel
from rankwise._kernels.sorting import sort_carrying
from rankwise.losses._base import Loss
from rankwise.losses._pairs import pair_loss


@kernel
def _pair_slopes(lower, own, slope):
    """The derivative of log(1 + e^x) for x = s_j - s_i over the scores s_j of smaller labels."""
    for j in range(len(lower)):
        slope[j] = sigmoid(lower[j] - own)


@kernel(fastmath={"reassoc", "contract"})
def _add_up_curved(slope, grad, diagonal):
    """Add slopes and second derivatives p (1 - p) to those of the smaller labels; returns their sums."""
    steepness, bend = 0.0, 0.0
    for j in range(len(slope)):
        own = slope[j] * (1.0 - slope[j])
        grad[j] += slope[j]
        diagonal[j] += own
        steepness += slope[j]
        bend += own
    return steepness, bend


@kernel
def pair_logistic_curved(score, label, value, grad, diagonal, table, params):
    """Gradient and second derivatives; ``params`` is whether they are divided by the number of pairs."""
    size = len(score)
    key, place = label.copy(), np.arange(size)
    sort_carrying(key, place, np.empty(size), np.empty(size, np.int64), np.empty(size + 1, np.int64))
    arranged, slope_of, bend_of, slope = score[place], np.zeros(size), np.zeros(size), np.empty(size)
    pairs, first = 0.0, 0
    for p in range(size):
        if key[p] != key[first]:
            first = p
        _pair_slopes(arranged[:first], arranged[p], slope[:first])
        steepness, bend = _add_up_curved(slope[:first], slope_of[:first], bend_of[:first])
        slope_of[p] -= steepness
        bend_of[p] += bend
        pairs += first
    if pairs > 0.0:
        share = 1.0 / pairs if params[0] != 0.0 else 1.0
        for p in range(size):
            grad[place[p]] = slope_of[p] * share
            diagonal[place[p]] = bend_of[p] * share


@kernel
def weighted_pair_logistic_curved(score, label, value, grad, diagonal, table, params):
    """Gradient and second derivatives, where a pair weighs w_i w_j."""
    size, pairs = len(score), 0.0
    for i in range(size):
        for j in range(size):
            if label[i] > label[j]:
                weight = value[i] * value[j]
                if weight > 0.0:
                    p = sigmoid(score[j] - score[i])
                    slope, bend = weight * p, weight * p * (1.0 - p)
                    grad[j] += slope
                    grad[i] -= slope
                    diagonal[j] += bend
                    diagonal[i] += bend
                    pairs += weight
    if pairs > 0.0 and params[0] != 0.0:
        for i in range(size):
            grad[i] /= pairs
            diagonal[i] /= pairs


@dataclass(frozen=True, kw_only=True, repr=False)
class PairLogistic(Loss):
    r"""phi = mean over label_i > label_j of log(1 + exp(s_j - s_i)), or the sum.

    Parameters
    ----------
    per_pair : bool, default=True
        Whether to divide by the number of pairs with different labels, so that long lists do not outweigh short ones.

    Notes
    -----
    O(m^2): every pair is evaluated. Convex and smooth, since x -> log(1 + e^x) is. With p_ij = sigmoid(s_j - s_i) in
    (0, 1) the gradient is the sum of p_ij (e_j - e_i).

    **G1** = 2 floor(m^2 / 4) for the sum and 2 for the mean. The l1 norm is the largest sum of p_ij (u_j - u_i) over
    signs u. Only the pairs with u_j = 1 and u_i = -1 add something, at most 2 each, and there are at most floor(m^2 /
    4) of them. In the mean each pair has a gradient of l1 norm at most 2.

    **H1** = floor(m^2 / 4) for the sum and 1 for the mean. The Hessian is H = sum of c_ij (e_j - e_i)(e_j - e_i)' with
    c_ij = p_ij (1 - p_ij) <= 1/4. H1 is the largest u'Hv over u and v in [-1, 1]^m. H is positive semidefinite, so by
    Cauchy and Schwarz u'Hv is at most the larger of u'Hu and v'Hv, and the convex function u'Hu is largest at signs u:
    each pair of different signs adds 4 c_ij <= 1, and there are at most floor(m^2 / 4) of them. In the mean each pair
    adds at most 1. H1 is attained at m = 2 and s_1 = s_2.

    **No measure is bounded**: a pair in the wrong order costs at least log 2 = 0.693, which is below 1. Hence
    phi / log 2, with the mean, bounds 1 - Pairs under pessimistic ties; phi itself does not.

    With document weights a pair weighs w_i w_j, and the mean divides by the sum of these weights: weights times c
    change the mean by nothing, the sum by c^2. G1 and H1 of the mean stay the same.

    References
    ----------
    C. Burges, T. Shaked, E. Renshaw, A. Lazier, M. Deeds, N. Hamilton, G. Hullender (2005). Learning to rank using
    gradient descent. ICML. doi:10.1145/1102351.1102363.

    Examples
    --------
    >>> value, gradient = PairLogistic()([0.0, 0.0], [1, 0])
    >>> round(value, 6), gradient.tolist()
    (0.693147, [-0.5, 0.5])
    """

    per_pair: bool = True

    name = "PairLogistic"
    convex = True
    smooth = True
    kernel, weighted_kernel = pair_loss(log1pexp, sigmoid)
    document_weights = True
    curved_kernel = pair_logistic_curved
    weighted_curved_kernel = weighted_pair_logistic_curved

    def params(self) -> tuple[float, ...]:
        """Whether the sum is divided by the number of pairs."""
        return (float(self.per_pair),)

    def lipschitz_l1(self, m: int) -> float:
        """G1 of queries of at most ``m`` documents; proved in the Notes."""
        if m < 2:
            return 0.0
        return 2.0 if self.per_pair else 2.0 * (m * m // 4)

    @property
    def labels_per_term(self) -> Literal[1, 2] | None:
        """2 for the sum; the mean divides by a number of pairs that depends on all labels."""
        return None if self.per_pair else 2

    def term_lipschitz_l1(self, b: float, m: int, label: float) -> float:
        """2 sigmoid(2 b), below 2: a pair moves two scores by p_ij."""
        return 2.0 / (1.0 + math.exp(-2.0 * b)) if m > 1 else 0.0

    def smoothness(self, m: int) -> float:
        """H1 of queries of at most ``m`` documents; proved in the Notes."""
        if m < 2:
            return 0.0
        return 1.0 if self.per_pair else float(m * m // 4)

    def range(self, b: float, m: int, labels: tuple[float, float] = (0.0, 4.0)) -> tuple[float, float]:
        """0 (every order is perfect) to log(1 + e^(2 b)), times the largest number of pairs for the sum."""
        worst = float(np.logaddexp(0.0, 2.0 * b))
        return 0.0, worst if self.per_pair else worst * (m * (m - 1) // 2)

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """The mean and the sum."""
        return cls(), cls(per_pair=False)
