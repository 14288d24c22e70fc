"""Top-k ListNet: the cross-entropy between the Plackett-Luce probabilities of the first k documents.

After a set S of documents is drawn, the next one is drawn from the others, by the softmax of what is left. So the sum
over all ordered lists of k documents is a sum over the sets S of up to k - 1 drawn ones, and each needs one number: the
sum of e^s over what is left. That sum is never a difference of almost equal numbers: where S holds the documents with
the highest scores, the sum starts without them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, Self

import numpy as np

from rankwise._kernels.exp import exp
from rankwise._kernels.machine.jit import kernel
from rankwise._parameters import NumberRange
from rankwise.losses._base import Loss, Vector
from rankwise.losses.listnet import Target, target_values


@kernel
def _leaders(x):
    """The places of the two largest x; -1 where there is none."""
    first, second = -1, -1
    for p in range(len(x)):
        if first < 0 or x[p] > x[first]:
            first, second = p, first
        elif second < 0 or x[p] > x[second]:
            second = p
    return first, second


@kernel
def _levels(x, first, second, power, total):
    """e^x relative to the largest one left, without 0, 1 or 2 leaders: powers, their sums and the references."""
    reference = np.empty(3)
    for level in range(3):
        highest = -np.inf
        for p in range(len(x)):
            if not ((level > 0 and p == first) or (level > 1 and p == second)):
                highest = max(highest, x[p])
        reference[level], total[level] = highest, 0.0
        for p in range(len(x)):
            gone = highest == -np.inf or (level > 0 and p == first) or (level > 1 and p == second)
            power[level, p] = 0.0 if gone else exp(x[p] - highest)
            total[level] += power[level, p]
    return reference


@kernel
def _level(a, b, first, second):
    """How many leaders the set of a and b lacks, from the first one on; b may be -1."""
    if a != first and b != first:
        return 0
    return 2 if a == second or b == second else 1


@kernel
def _left(a, b, level, power, total):
    """The sum of the powers of a level without a and b."""
    rest = total[level] - power[level, a]
    return rest - power[level, b] if b >= 0 else rest


@kernel
def _add_set(a, b, chance, level, power, total, every, taken):
    """Account for a draw from what a and b leave, which has this chance; returns what is left."""
    rest = _left(a, b, level, power, total)
    share = chance / rest
    every[level, 0] += share
    every[level, 1] += share / rest
    taken[level, 0, a] += share
    taken[level, 1, a] += share / rest
    if b >= 0:
        taken[level, 0, b] += share
        taken[level, 1, b] += share / rest
    return rest


@kernel
def _drawn(j, power, every, taken):
    """The expected number of draws of j, and of those minus the sum of squared probabilities."""
    count, spread = 0.0, 0.0
    for level in range(3):
        own = power[level, j]
        part = own * max(every[level, 0] - taken[level, 0, j], 0.0)
        count += part
        spread += part - own * own * max(every[level, 1] - taken[level, 1, j], 0.0)
    return count, max(spread, 0.0)


@kernel
def _top_k(score, label, target, k, own_entropy, grad, diagonal, curved):
    """The cross-entropy over the first k draws, minus the entropy of the target if asked; adds derivatives."""
    size = len(score)
    if label.max() == label.min():
        return 0.0
    s, t = score - score.max(), target - target.max()
    wanted, wanted_total, t_every, t_taken = np.empty((3, size)), np.empty(3), np.zeros((3, 2)), np.zeros((3, 2, size))
    t_first, t_second = _leaders(t)
    t_top = _levels(t, t_first, t_second, wanted, wanted_total)
    power, total, every, taken = np.empty((3, size)), np.empty(3), np.zeros((3, 2)), np.zeros((3, 2, size))
    first, second = _leaders(s)
    top = _levels(s, first, second, power, total)
    every[0, 0], every[0, 1], t_every[0, 0] = 1.0 / total[0], 1.0 / total[0] ** 2, 1.0 / wanted_total[0]
    loss, entropy = math.log(total[0]), math.log(wanted_total[0])
    for a in range(size):
        if k < 2 or size < 3:  # the last one is drawn with certainty
            break
        chance = wanted[0, a] / wanted_total[0]
        if chance > 0.0:
            at, t_at = _level(a, -1, first, second), _level(a, -1, t_first, t_second)
            loss += chance * (top[at] + math.log(_add_set(a, -1, chance, at, power, total, every, taken)))
            rest = _add_set(a, -1, chance, t_at, wanted, wanted_total, t_every, t_taken)
            entropy += chance * (t_top[t_at] + math.log(rest))
    for a in range(size):
        if k < 3 or size < 4:
            break
        t_at = _level(a, -1, t_first, t_second)
        a_share = wanted[0, a] / wanted_total[0] / _left(a, -1, t_at, wanted, wanted_total)
        for b in range(a):
            b_at = _level(b, -1, t_first, t_second)
            b_share = wanted[0, b] / wanted_total[0] / _left(b, -1, b_at, wanted, wanted_total)
            chance = a_share * wanted[t_at, b] + b_share * wanted[b_at, a]  # that a and b are the first two
            if chance > 0.0:
                at, t_both = _level(a, b, first, second), _level(a, b, t_first, t_second)
                loss += chance * (top[at] + math.log(_add_set(a, b, chance, at, power, total, every, taken)))
                rest = _add_set(a, b, chance, t_both, wanted, wanted_total, t_every, t_taken)
                entropy += chance * (t_top[t_both] + math.log(rest))
    for j in range(size):
        count, spread = _drawn(j, power, every, taken)
        target_count = _drawn(j, wanted, t_every, t_taken)[0]
        loss -= target_count * s[j]
        entropy -= target_count * t[j]
        grad[j] = count - target_count
        if curved:
            diagonal[j] = spread
    return max(loss - entropy if own_entropy else loss, 0.0)


@kernel
def top_k_formula(score, label, value, grad, table, params):
    """The loss and its gradient; ``value`` holds the logarithms of the target's weights."""
    return _top_k(score, label, value, params[0], params[1] != 0.0, grad, grad, False)


@kernel
def top_k_curved(score, label, value, grad, diagonal, table, params):
    """Gradient and second derivatives."""
    _top_k(score, label, value, params[0], params[1] != 0.0, grad, diagonal, True)


@dataclass(frozen=True, kw_only=True, repr=False)
class ListNetTopK(Loss):
    r"""Cross-entropy of top-k probabilities: phi = -sum over ordered lists J of k documents of P_J(y) log P_J(s).

    P_J(v) = prod over t = 1..k of e^v_{J_t} / sum over documents not among J_1..J_{t-1} of e^v: the Plackett-Luce
    probability that J are the first k documents, in this order.

    Parameters
    ----------
    k : {1, 2, 3}, default=2
        Number of first documents; 1 is :class:`ListNet`.
    target : {"labels", "gains"}, default="labels"
        P(y) uses the labels, as in the paper, or the gains 2^label - 1.
    form : {"kl", "ce"}, default="kl"
        "kl" subtracts the entropy of P(y), so the smallest value is 0; "ce" does not. The gradient is the same.

    Notes
    -----
    The sum is exact. Given the set S of the first t documents, the next one is drawn by a softmax over the others, so
    phi is the sum over sets S of fewer than k documents of P_S(y) times the cross-entropy of that draw. It costs O(m)
    for k = 1 and 2, and O(m^2) for k = 3; larger k would take O(m^(k - 1)) and are not offered. Equal labels have equal
    weights in every sum, so the order of the documents has no influence. Queries whose labels are all equal count 0.

    A mean of draws, each of which is a cross-entropy of softmaxes: convex and smooth. There are at most
    min(k, m - 1) draws with a choice, each with G1 <= 2, H1 <= 1 and, in the KL form, values in
    [0, 2 b + y_max - y_min], in the other one in [0, 2 b + log m] (see :class:`ListNet`): all are multiplied by that
    number. Document weights are not offered, since a document leaves the draws as a whole.

    References
    ----------
    Z. Cao, T. Qin, T.-Y. Liu, M.-F. Tsai, H. Li (2007). Learning to rank: from pairwise approach to listwise approach.
    ICML. doi:10.1145/1273496.1273513. Definitions 6 to 8.

    Examples
    --------
    >>> value, gradient = ListNetTopK(k=2)([0.0, 0.0, 0.0], [2, 0, 0])
    >>> round(value, 4), gradient.round(4).tolist()
    (0.5029, [-0.5348, 0.2674, 0.2674])
    """

    k: Annotated[int, NumberRange(1, 3, closed="both")] = 2
    target: Target = "labels"
    form: Literal["kl", "ce"] = "kl"

    name = "ListNetTopK"
    convex = True
    smooth = True
    kernel = top_k_formula
    curved_kernel = top_k_curved

    def row_values(self, labels: Vector) -> Vector:
        """Labels or gains, whichever the target is the softmax of."""
        return target_values(labels, self.target)

    def params(self) -> tuple[float, ...]:
        """The parameters as the kernel reads them."""
        return float(self.k), float(self.form == "kl")

    def _draws(self, m: int) -> int:
        """The number of draws that have a choice."""
        return min(self.k, m - 1)

    def lipschitz_l1(self, m: int) -> float:
        """G1 of queries of at most ``m`` documents; see :meth:`Loss.lipschitz_l1` and Notes."""
        return 2.0 * self._draws(m)

    def smoothness(self, m: int) -> float:
        """H1 of queries of at most ``m`` documents; see :meth:`Loss.smoothness` and Notes."""
        return float(self._draws(m))

    def range(self, b: float, m: int, labels: tuple[float, float] = (0.0, 4.0)) -> tuple[float, float]:
        """Smallest and largest value for scores in [-b, b]; see :meth:`Loss.range`."""
        low, high = self.row_values(np.array(labels))
        return 0.0, self._draws(m) * (2 * b + (float(high - low) if self.form == "kl" else math.log(m)))

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """The variants that the common tests run on."""
        return cls(), cls(form="ce"), cls(k=3, target="gains"), cls(k=1)
