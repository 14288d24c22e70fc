r"""Losses that are linear in the labels: sum_d label_d f_d(scores), with f_d free of labels.

Only for such losses does an unbiased estimate of the relevances give an unbiased estimate of the loss: the label of a
document may then be a click divided by the probability that the document was examined
(:mod:`rankwise.clicks`). :class:`PropensityHinge` bounds the ranks of relevant documents, :class:`GivenSoftmax` is the
cross-entropy of ListNet with the labels themselves as weights, which are not normalized.
"""

from dataclasses import dataclass

import numpy as np

from rankwise._kernels.machine.jit import kernel
from rankwise._kernels.sorting import sort_carrying
from rankwise.losses._base import Loss
from rankwise.losses.listnet import softmax


@kernel
def propensity_hinge_formula(score, label, value, grad, table, params):
    """The hinge over all pairs (d, j) with weight label_d, in O(m log m) by sums over the scores in order."""
    size = len(score)
    if label.max() == label.min():
        return 0.0
    key, place = -score, np.arange(size)
    sort_carrying(key, place, np.empty(size), np.empty(size, np.int64), np.empty(size + 1, np.int64))
    loss = 0.0
    # documents j with s_j > s_d - 1, of which there are more as s_d falls; `above` sums s_j - lowest over them
    number, above, lowest = 0, 0.0, score[place[0]]
    for p in range(size):
        d = place[p]
        while number < size and 1.0 + (score[place[number]] - score[d]) > 0.0:
            s = score[place[number]]
            above += number * (lowest - s)
            lowest = s
            number += 1
        if label[d] > 0.0:
            # the document itself, whose hinge is 1, is among them
            loss += label[d] * (above + number * (1.0 + (lowest - score[d])) - 1.0)
            grad[d] -= label[d] * (number - 1)
    # documents d with s_d < s_j + 1, of which there are more as s_j rises
    entered, weight = size - 1, 0.0
    for p in range(size - 1, -1, -1):
        j = place[p]
        while entered >= 0 and 1.0 + (score[j] - score[place[entered]]) > 0.0:
            weight += label[place[entered]]
            entered -= 1
        grad[j] += weight - label[j]
    return loss


@kernel
def given_softmax_formula(score, label, value, grad, table, params):
    """Sum of label_d (log sum exp(s) - s_d)."""
    if label.max() == label.min():
        return 0.0
    log_total = softmax(score, grad)
    total, loss = 0.0, 0.0
    for p in range(len(score)):
        total += label[p]
        loss += label[p] * (log_total - score[p])
    for p in range(len(score)):
        grad[p] = total * grad[p] - label[p]
    return max(loss, 0.0)


@kernel
def given_softmax_curved(score, label, value, grad, diagonal, table, params):
    """W P(s) - label, and W P(s) (1 - P(s)), W the sum of the labels."""
    if label.max() == label.min():
        return
    softmax(score, diagonal)
    total = label.sum()
    for p in range(len(score)):
        own = diagonal[p]
        grad[p] = total * own - label[p]
        diagonal[p] = total * own * (1.0 - own)


@dataclass(frozen=True, kw_only=True, repr=False)
class PropensityHinge(Loss):
    r"""phi = sum_d label_d sum_{j != d} [1 - (s_d - s_j)]_+, with labels as weights.

    Notes
    -----
    O(m log m). The inner sum is at least the number of documents ranked above d, ties counted against d, so phi bounds
    sum_d label_d (rank_d - 1). It is linear in the labels, except that queries whose labels are all equal count 0.
    Labels are not bounded, so no constant bounds the gradient: G1 = H1 = inf.

    References
    ----------
    T. Joachims, A. Swaminathan, T. Schnabel (2017). Unbiased learning-to-rank with biased feedback. WSDM.
    doi:10.1145/3018661.3018699.

    Examples
    --------
    >>> value, gradient = PropensityHinge()([0.0, 0.0, 2.0], [4.0, 0.0, 0.0])
    >>> value, gradient.tolist()
    (16.0, [-8.0, 4.0, 4.0])
    """

    name = "PropensityHinge"
    convex = True
    linear_in_labels = True
    kernel = propensity_hinge_formula

    def lipschitz_l1(self, m: int) -> float:
        """G1 of queries of at most ``m`` documents; see :meth:`Loss.lipschitz_l1` and Notes."""
        return np.inf if m > 1 else 0.0

    def term_lipschitz_l1(self, b: float, m: int, label: float) -> float:
        """2 (m - 1) label: label_d times at most m - 1 hinges, each of which moves two scores by 1."""
        return 2.0 * (m - 1) * label if m > 1 else 0.0

    def range(self, b: float, m: int, labels: tuple[float, float] = (0.0, 4.0)) -> tuple[float, float]:
        """Smallest and largest value for scores in [-b, b]; see :meth:`Loss.range`."""
        return 0.0, m * (m - 1) * labels[1] * (1 + 2 * b)


@dataclass(frozen=True, kw_only=True, repr=False)
class GivenSoftmax(Loss):
    r"""phi = -sum_d label_d log P_d(s), P(s) = softmax(s), with labels as weights that are not normalized.

    Notes
    -----
    The gradient is W P(s) - label with W the sum of the labels, and the diagonal of the Hessian W P(s) (1 - P(s)), in
    O(m). It is linear in the labels, except that queries whose labels are all equal count 0. Labels are not bounded, so
    that no constant bounds the gradient: G1 = H1 = inf.

    References
    ----------
    Z. Cao, T. Qin, T.-Y. Liu, M.-F. Tsai, H. Li (2007). Learning to rank: from pairwise approach to listwise approach.
    ICML. doi:10.1145/1273496.1273513.

    Examples
    --------
    >>> value, gradient = GivenSoftmax()([0.0, 0.0], [4.0, 0.0])
    >>> round(value, 4), gradient.tolist()
    (2.7726, [-2.0, 2.0])
    """

    name = "GivenSoftmax"
    convex = True
    smooth = True
    linear_in_labels = True
    kernel = given_softmax_formula
    curved_kernel = given_softmax_curved

    def lipschitz_l1(self, m: int) -> float:
        """G1 of queries of at most ``m`` documents; see :meth:`Loss.lipschitz_l1` and Notes."""
        return np.inf if m > 1 else 0.0

    def term_lipschitz_l1(self, b: float, m: int, label: float) -> float:
        """2 label: the term of document d has the gradient label_d (P(s) - e_d)."""
        return 2.0 * label if m > 1 else 0.0

    def range(self, b: float, m: int, labels: tuple[float, float] = (0.0, 4.0)) -> tuple[float, float]:
        """Smallest and largest value for scores in [-b, b]; see :meth:`Loss.range`."""
        return 0.0, m * labels[1] * (2 * b + float(np.log(m)))
