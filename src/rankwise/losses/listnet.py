"""ListNet: the cross-entropy between the top-one probabilities of labels and scores.

The target P(y) and its logarithm depend on the labels alone and are computed once, by :func:`target_lists`. The kernel
works with differences of logarithms, so no probability that rounds to 0 is ever divided by.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from rankwise._kernels.exp import exp
from rankwise._kernels.machine.jit import kernel
from rankwise.losses._base import Loss, Rows, Vector
from rankwise.measures.ndcg import gains

Target = Literal["labels", "gains"]


@kernel
def softmax(x, out):
    """Probabilities proportional to e^x into ``out``; returns log(sum e^x)."""
    highest = x.max()
    for p in range(len(x)):  # a loop of its own: beside a sum it would not be vectorized
        out[p] = exp(x[p] - highest)
    total = out.sum()
    out /= total
    return highest + np.log(total)


@kernel
def target_lists(start, rows, label, value, target, log_target):
    """P(y) and log P(y) of every query, by row; P is 0 throughout where every order is perfect."""
    for q in range(len(start) - 1):
        own = rows[start[q] : start[q + 1]]
        if len(own) == 0:
            continue
        classes, x, buffer = label[own], value[own], np.zeros(len(own))
        log_total = softmax(x, buffer)
        if classes.max() == classes.min():
            buffer[:] = 0.0
        for p in range(len(own)):
            target[own[p]] = buffer[p]
            log_target[own[p]] = x[p] - log_total


@kernel
def listnet_formula(score, label, value, grad, table, params):
    """The cross-entropy; ``label`` holds P(y), ``value`` its logarithm."""
    if label.max() == 0.0:
        return 0.0
    log_score = softmax(score, grad)
    loss = 0.0
    for p in range(len(score)):
        # -log P(s), from which the KL form subtracts the target's own -log P(y); no division by a rounded probability
        own = value[p] if params[0] != 0.0 else 0.0
        loss += label[p] * ((log_score - score[p]) + own)
        grad[p] -= label[p]
    return max(loss, 0.0)


@kernel
def listnet_curved(score, label, value, grad, diagonal, table, params):
    """P(s) - P(y), and P(s) (1 - P(s)); ``label`` holds P(y)."""
    if label.max() == 0.0:
        return
    softmax(score, diagonal)
    for p in range(len(score)):
        own = diagonal[p]
        grad[p] = own - label[p]
        diagonal[p] = own * (1.0 - own)


# With document weights: one of weight k counts as k copies of it.


@kernel
def _log_sum(x, weight):
    """log of the sum of w_i e^x_i over documents of positive weight, of which there is one."""
    highest = -np.inf
    for p in range(len(x)):
        if weight[p] > 0.0:
            highest = max(highest, x[p])
    total = 0.0
    for p in range(len(x)):
        if weight[p] > 0.0:
            total += weight[p] * math.exp(x[p] - highest)
    return highest + math.log(total)


@kernel
def weighted_targets(start, rows, label, target, weight, kept, log_target):
    """For every query its weights, 0 throughout where all orders are perfect, and log(e^t / sum of w e^t), by row."""
    for q in range(len(start) - 1):
        own = rows[start[q] : start[q + 1]]
        lowest, highest = np.inf, -np.inf
        for row in own:
            if weight[row] > 0.0:
                lowest, highest = min(lowest, label[row]), max(highest, label[row])
        if not lowest < highest:
            continue
        log_total = _log_sum(target[own], weight[own])
        for row in own:
            kept[row], log_target[row] = weight[row], target[row] - log_total


@kernel
def weighted_softmax(score, label, value, grad, table, params):
    """The cross-entropy of P_i = w_i e^v_i and Q_i = w_i e^s_i / sum; ``label`` holds w, ``value`` holds v."""
    if label.max() == 0.0:
        return 0.0
    log_score = _log_sum(score, label)
    loss = 0.0
    for p in range(len(score)):
        if label[p] > 0.0:
            wanted = label[p] * math.exp(value[p])
            own = value[p] if params[0] != 0.0 else 0.0
            loss += wanted * ((log_score - score[p]) + own)
            grad[p] = label[p] * math.exp(score[p] - log_score) - wanted
    return max(loss, 0.0)


@kernel
def weighted_softmax_curved(score, label, value, grad, diagonal, table, params):
    """Q_i - P_i and Q_i (1 - Q_i), as in :func:`weighted_softmax`."""
    if label.max() == 0.0:
        return
    log_score = _log_sum(score, label)
    for p in range(len(score)):
        if label[p] > 0.0:
            own = min(label[p] * math.exp(score[p] - log_score), 1.0)
            grad[p] = own - label[p] * math.exp(value[p])
            diagonal[p] = own * (1.0 - own)


def target_values(labels: Vector, target: Target) -> Vector:
    """The labels, or their gains 2^label - 1."""
    return labels if target == "labels" else gains(labels, "exp2")


@dataclass(frozen=True, kw_only=True, repr=False)
class ListNet(Loss):
    r"""Cross-entropy of top-one probabilities: phi = -sum_j P_j(y) log P_j(s), P(v) = softmax(v).

    Parameters
    ----------
    target : {"labels", "gains"}, default="labels"
        P(y) is the softmax of the labels, as in the paper, or of the gains 2^label - 1.
    form : {"kl", "ce"}, default="kl"
        "kl" subtracts the entropy of P(y), so the smallest value is 0; "ce" does not. The gradient is the same.

    Notes
    -----
    The gradient is P(s) - P(y), in O(m); the diagonal of the Hessian is P(s) (1 - P(s)). G1 <= 2, H1 <= 1 (attained at
    m = 2, s = 0). Queries whose labels are all equal count 0 in both forms. The KL form is in [0, 2b + y_max - y_min]
    for scores in [-b, b].

    With document weights the probabilities are P_i(v) = w_i e^v_i / sum_j w_j e^v_j, which is the softmax over w_i
    copies of each document: the KL form is sum_i P_i(y) log((P_i(y) / w_i) / (P_i(s) / w_i)), the other one
    -sum_i P_i(y) log(P_i(s) / w_i). Weights times c change the KL form by nothing, the other one by log c.
    G1, H1 and the range of the KL form stay the same.

    References
    ----------
    Z. Cao, T. Qin, T.-Y. Liu, M.-F. Tsai, H. Li (2007). Learning to rank: from pairwise approach to listwise approach.
    ICML. doi:10.1145/1273496.1273513.

    Examples
    --------
    >>> value, gradient = ListNet()([0.0, 0.0], [0, 0])
    >>> value, gradient.tolist()
    (0.0, [0.0, 0.0])
    """

    target: Target = "labels"
    form: Literal["kl", "ce"] = "kl"

    name = "ListNet"
    convex = True
    smooth = True
    kernel = listnet_formula
    document_weights = True
    weighted_kernel = weighted_softmax
    curved_kernel = listnet_curved
    weighted_curved_kernel = weighted_softmax_curved

    def row_values(self, labels: Vector) -> Vector:
        """Labels or gains, whichever the target is the softmax of."""
        return target_values(labels, self.target)

    def prepare(self, labels: Vector, start: Rows, rows: Rows | None) -> tuple[Vector, Vector]:
        """P(y) and log P(y)."""
        every = np.arange(len(labels)) if rows is None else rows
        target, log_target = np.zeros(len(labels)), np.zeros(len(labels))
        target_lists(start, every, labels, self.row_values(labels), target, log_target)
        return target, log_target

    def prepare_weighted(self, labels: Vector, weight: Vector, start: Rows, rows: Rows | None) -> tuple[Vector, Vector]:
        """The weights, and log(e^t / sum of w e^t) of the target t."""
        every = np.arange(len(labels)) if rows is None else rows
        kept, log_target = np.zeros(len(labels)), np.zeros(len(labels))
        weighted_targets(start, every, labels, self.row_values(labels), weight, kept, log_target)
        return kept, log_target

    def params(self) -> tuple[float, ...]:
        """The parameters as the kernel reads them."""
        return (float(self.form == "kl"),)

    def lipschitz_l1(self, m: int) -> float:
        """G1 of queries of at most ``m`` documents; see :meth:`Loss.lipschitz_l1` and Notes."""
        return 2.0 if m > 1 else 0.0

    def smoothness(self, m: int) -> float:
        """H1 of queries of at most ``m`` documents; see :meth:`Loss.smoothness` and Notes."""
        return 1.0

    def range(self, b: float, m: int, labels: tuple[float, float] = (0.0, 4.0)) -> tuple[float, float]:
        """Smallest and largest value for scores in [-b, b]; see :meth:`Loss.range`."""
        low, high = self.row_values(np.array(labels))
        return 0.0, 2 * b + (high - low if self.form == "kl" else np.log(m))

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """The variants that the common tests run on."""
        return cls(), cls(form="ce"), cls(target="gains")
