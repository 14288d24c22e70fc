"""The structured hinge for NDCG: the most violated ranking is a linear assignment of documents to positions.

The assignment is solved in this module because the loss runs inside a compiled loop over queries, where SciPy's solver
cannot be called, and because its costs, d_p w_j - a_p s_j, do not need a matrix: memory stays O(m).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from rankwise._kernels.machine.jit import kernel
from rankwise._kernels.sorting import sort_carrying
from rankwise._parameters import PositiveInt
from rankwise.losses._gains import LossOfGains
from rankwise.measures import NDCG
from rankwise.measures._base import Measure


@kernel
def _ascending(key):
    """Indices of the keys in increasing order, equal ones by index; sorts ``key`` in place."""
    size = len(key)
    place = np.arange(size)
    sort_carrying(key, place, np.empty(size), np.empty(size, np.int64), np.empty(size + 1, np.int64))
    return place


@kernel
def _first_prices(a, d, s, w, price):
    """Prices of documents under which an almost optimal assignment is tight, for as many positions as documents.

    If d were affine in a, d = slope a + constant, sorting by s - slope w would be optimal. Neighbors in that order
    are priced so that neither gains by taking the other's position, half-way between the two limits.
    """
    size = len(s)
    center_a, center_d = a.mean(), d.mean()
    slope = ((a - center_a) * (d - center_d)).sum() / ((a - center_a) ** 2).sum()
    order = _ascending(slope * w - s)
    price[order[size - 1]] = 0.0
    for p in range(size - 2, -1, -1):
        j, other = order[p], order[p + 1]
        step = 0.5 * (d[p] + d[p + 1]) * (w[j] - w[other]) - 0.5 * (a[p] + a[p + 1]) * (s[j] - s[other])
        price[j] = price[other] + step
    return order


@kernel
def assign(a, d, s, w, holder):
    """Give each position p its own document j so that the sum of d_p w_j - a_p s_j is least; exact.

    ``holder[j]`` receives the position of document j, -1 for those left over when positions are fewer. Shortest
    augmenting paths (R. Jonker, A. Volgenant, 1987, doi:10.1007/BF02278710): O(n^2 m) for n positions and m documents
    in the worst case; the initial prices leave few paths to search.
    """
    n, size = len(a), len(s)
    reward, price = np.empty(n), np.zeros(size)
    held = np.full(n, -1)
    holder[:] = -1
    # with documents to spare, those left over must keep the price 0
    guess = _first_prices(a, d, s, w, price) if n == size and n > 1 else np.arange(size)
    for p in range(n):
        at = guess[p]
        least = d[p] * w[at] - a[p] * s[at] - price[at]
        for j in range(size):
            reduced = d[p] * w[j] - a[p] * s[j] - price[j]
            if reduced < least:
                least, at = reduced, j
        reward[p] = least
        if holder[at] < 0:
            holder[at], held[p] = p, at
    distance, before = np.empty(size), np.empty(size, np.int64)
    column = np.empty(size, np.int64)  # documents: those not reached yet first, then the reached ones, last one first
    for start in range(n):
        if held[start] >= 0:
            continue
        for j in range(size):
            distance[j] = np.inf
            before[j] = start
            column[j] = j
        left = size
        p, reached = start, 0.0
        while True:
            base = reached - reward[p]
            nearest = 0
            for c in range(left):
                j = column[c]
                through = base + (d[p] * w[j] - a[p] * s[j] - price[j])
                if through < distance[j]:
                    distance[j] = through
                    before[j] = p
                closest = distance[column[nearest]]
                if distance[j] < closest or (distance[j] == closest and holder[j] < 0):
                    nearest = c
            left -= 1
            sink = column[nearest]
            column[nearest], column[left] = column[left], sink
            reached = distance[sink]
            if holder[sink] < 0:
                break
            p = holder[sink]
        reward[start] += reached
        for c in range(left + 1, size):  # all reached ones but the free document at the end of the path
            j = column[c]
            reward[holder[j]] += reached - distance[j]
            price[j] += distance[j] - reached
        while True:
            p = before[sink]
            holder[sink] = p
            sink, held[p] = held[p], sink
            if p == start:
                break


@kernel
def steepest(a, size):
    """The largest l1 distance between a and a rearrangement, a = 0 beyond its end: that of reversing it."""
    total = 0.0
    for p in range(size):
        mine = a[p] if p < len(a) else 0.0
        other = a[size - 1 - p] if size - 1 - p < len(a) else 0.0
        total += abs(mine - other)
    return total


@kernel
def _missed(score, gain, order, d):
    """1 - NDCG of the score-sorted ranking, lower gains first among equal scores, at least 0."""
    pessimist = order[::-1].copy()
    key = -score[pessimist]
    size = len(key)
    sort_carrying(key, pessimist, np.empty(size), np.empty(size, np.int64), np.empty(size + 1, np.int64))
    missed = 1.0
    for p in range(len(d)):
        missed -= d[p] * gain[pessimist[p]]
    return max(missed, 0.0)


@kernel
def ndcg_hinge_formula(score, label, value, grad, table, params):
    """The hinge; ``value`` holds gains, ``table`` discounts."""
    symmetric, normalized = params[1] != 0.0, params[2] != 0.0
    size = len(score)
    cut = int(min(float(size), params[0]))
    order = _ascending(-value)  # never by score, which would make the loss non-convex
    ideal = 0.0
    for p in range(cut):
        ideal += value[order[p]] * table[p]
    if ideal <= 0.0 or value[order[0]] == value[order[size - 1]]:
        return 0.0
    a = np.empty(cut)
    for p in range(cut):
        a[p] = cut - p
    if normalized:
        a *= 2.0 / steepest(a, size)
    # positions of the perfect ranking, averaged inside classes of equal gain if symmetric
    t = 0
    while t < size:
        e = t + 1
        while symmetric and e < size and value[order[e]] == value[order[t]]:
            e += 1
        mean = a[t:e].sum() / (e - t)  # the slice ends where a does
        for p in range(t, e):
            grad[order[p]] = -mean
        t = e
    d = table[:cut] / ideal
    s = score - (0.5 * score.min() + 0.5 * score.max())
    holder = np.empty(size, np.int64)
    assign(a, d, s, value, holder)
    loss = 1.0
    for j in range(size):
        if holder[j] >= 0:
            grad[j] += a[holder[j]]
            loss -= d[holder[j]] * value[j]
        loss += s[j] * grad[j]
    # The maximum is at least the bracket of the sorted order, hence at least 1 - NDCG, which rounding of large scores
    # may hide.
    return max(loss, _missed(score, value, order, d))


@dataclass(frozen=True, kw_only=True, repr=False)
class NDCGHinge(LossOfGains):
    r"""phi = max over rankings pi of [1 - NDCG@k(pi) + sum_i s_i (a(pi_i) - a(pi*_i))], a(p) = [k + 1 - p]_+.

    pi_i is the position of document i, pi* a perfect ranking; k = m for the whole list.

    Parameters
    ----------
    k : int, default=None
        Cut-off of NDCG@k; None for the whole list.
    gain : str or mapping, default="exp2"
        The gain of the measure that is bounded, as in :class:`~rankwise.measures.NDCG`.
    discount : str or sequence of float, default="log2"
        The discount of the measure that is bounded, as in :class:`~rankwise.measures.NDCG`.
    symmetric : bool, default=True
        Whether a(pi*_i) is the mean over all perfect rankings, so the order of the documents does not matter;
        False takes one of them, by the index of the documents, as in the paper.
    normalized : bool, default=False
        Whether to divide a by a constant of the list's length so that G1 = 2.

    Notes
    -----
    The score-sorted ranking has the largest sum of s_i a(pi_i), which the perfect rankings and their mean cannot
    exceed: phi bounds 1 - NDCG@k, whatever positive constant scales a. The mean over perfect rankings of the bracket at
    pi* is 0, so phi >= 0. A maximum of affine functions is convex. Its slope is a difference of two rearrangements of
    a, or of one and a mean of others, and no two differ more than a and its reverse: G1 = floor(m^2 / 2) for the whole
    list and at most k (k + 1) with a cut-off.

    Time is O(k^2 m) with a cut-off and O(m^3) in the worst case, mostly O(m^2) because sorting by score is nearly the
    solution; normalized scores of about 1 are the worst case. Memory is O(m). The maximum is an assignment problem,
    which is solved exactly because the bound rests on it: give ``k`` for queries with hundreds of documents.

    Examples
    --------
    >>> value, gradient = NDCGHinge()([0.0, 1.0], [1, 0])
    >>> round(value, 6), gradient.tolist()
    (1.36907, [-1.0, 1.0])

    References
    ----------
    O. Chapelle, Q. Le, A. Smola (2007). Large margin optimization of ranking measures. NIPS workshop on machine
    learning for web search.

    S. Chaudhuri, A. Tewari (2014). Perceptron-like algorithms and generalization bounds for learning to rank.
    arXiv:1405.0591. Section 6.1 analyses this form.
    """

    k: PositiveInt | None = None
    gain: Any = "exp2"
    discount: Any = "log2"
    symmetric: bool = True
    normalized: bool = False

    name = "NDCGHinge"
    convex = True
    kernel = ndcg_hinge_formula

    def params(self) -> tuple[float, ...]:
        """The parameters as the kernel reads them."""
        return np.inf if self.k is None else self.k, float(self.symmetric), float(self.normalized)

    def lipschitz_l1(self, m: int) -> float:
        """G1 of queries of at most ``m`` documents; see :meth:`Loss.lipschitz_l1` and Notes."""
        if m < 2 or self.normalized:
            return 2.0 if m > 1 else 0.0
        k = m if self.k is None else min(self.k, m)
        return float(steepest(np.arange(k, 0, -1.0), m))

    def range(self, b: float, m: int, labels: tuple[float, float] = (0.0, 4.0)) -> tuple[float, float]:
        """Smallest and largest value for scores in [-b, b]; see :meth:`Loss.range`."""
        return 0.0, 1.0 + b * self.lipschitz_l1(m)

    @property
    def order_free(self) -> bool:
        """True if no perfect ranking is preferred."""
        return self.symmetric

    @property
    def upper_bounds(self) -> Measure | None:
        """The measure whose loss this loss bounds; see :attr:`Loss.upper_bounds`."""
        return NDCG(gain=self.gain, discount=self.discount, cutoff=self.k)

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """The variants that the common tests run on."""
        plain = cls(symmetric=False), cls(k=3, symmetric=False)
        return (cls(), *plain, cls(k=1), cls(k=3, normalized=True), cls(gain="linear", discount="letor", k=4))
