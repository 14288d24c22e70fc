"""The SVMmap hinge: the most violated ranking for average precision, found exactly in O(m log m).

Inside a class the order of documents changes neither AP nor the score of a ranking, so a ranking is determined by how
many relevant documents are above each irrelevant one. With relevant scores a_1 >= .. >= a_N1 and irrelevant ones
b_1 >= .. >= b_N0, putting b_j just above a_k instead of below all of them adds

    f_j(k) = sum_{i >= k} [ i / ((i + j - 1)(i + j)) / N1 - 2 (a_i - b_j) / (N1 N0) ],    f_j(N1 + 1) = 0.

The summand falls with j, so the best k never falls: the best places of all j are compatible, and the loss is the sum
over j of max_k f_j(k).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from rankwise._kernels.machine.jit import kernel
from rankwise._kernels.sorting import sort_carrying
from rankwise.losses._base import Loss, Vector
from rankwise.measures import AP
from rankwise.measures._base import Measure
from rankwise.measures.ndcg import ANY_RELEVANCE, relevance


@kernel
def best_places_scan(a, b, place, harmonic):
    """Sum over j of f_j(place[j]), place[j] (from 0) the best k for b_j; tries every k, in O(N1 N0)."""
    n_relevant, n_others = len(a), len(b)
    loss = 0.0
    for j in range(n_others):
        best, total = 0.0, 0.0
        place[j] = n_relevant
        for k in range(n_relevant - 1, -1, -1):
            step = (k + 1.0) / ((k + j + 1.0) * (k + j + 2.0)) - 2.0 * (a[k] - b[j]) / n_others
            total += step / n_relevant
            if total > best:
                best = total
                place[j] = k
        loss += best
    return loss


@kernel
def best_places(a, b, place, harmonic):
    """The same in O(N0 + N1 log N0): the k of a middle j is between those of its neighbors, which come first.

    The sum over i is H_{N1+j} - H_{k+j-1} - (j-1)(N1-k+1) / ((N1+j)(k+j-1)), a small difference of two neighboring
    harmonic numbers; separate sums of j terms would lose the digits that decide.
    """
    n_relevant, n_others = len(a), len(b)
    suffix = np.zeros(n_relevant + 1)  # sum of a from k on
    for k in range(n_relevant - 1, -1, -1):
        suffix[k] = suffix[k + 1] + a[k]
    loss = 0.0
    stride = 1
    while stride < n_others:
        stride *= 2
    while stride > 0:
        # the odd multiples of the stride, counted from 1: both neighbors at this distance are multiples of 2 strides
        for j in range(stride - 1, n_others, 2 * stride):
            low = place[j - stride] if j >= stride else 0
            high = place[j + stride] if j + stride < n_others else n_relevant
            best, at = -np.inf, high
            for k in range(high, low - 1, -1):
                count = n_relevant - k
                gain = 0.0
                if count > 0:
                    gain = harmonic[n_relevant + j + 1] - harmonic[k + j + 1]
                    gain -= j * count / ((n_relevant + j + 1.0) * (k + j + 1.0))
                    gain -= 2.0 * (suffix[k] - count * b[j]) / n_others
                if gain > best:
                    best, at = gain, k
            place[j] = at
            loss += max(best, 0.0)
        stride //= 2
    return loss / n_relevant


@kernel
def svmmap_formula(score, label, value, grad, table, params):
    """The hinge; ``value`` holds 0/1 relevance, ``table`` the harmonic numbers from H_0 on."""
    size = len(score)
    n_relevant = int(value.sum())
    n_others = size - n_relevant
    if n_relevant == 0 or n_others == 0:
        return 0.0
    key = -score
    order = np.arange(size)
    sort_carrying(key, order, np.empty(size), np.empty(size, np.int64), np.empty(size + 1, np.int64))
    center = 0.5 * score[order[0]] + 0.5 * score[order[size - 1]]
    a, b = np.empty(n_relevant), np.empty(n_others)
    relevant, others = np.empty(n_relevant, np.int64), np.empty(n_others, np.int64)
    i = j = 0
    for p in range(size):
        if value[order[p]] > 0.0:
            a[i], relevant[i] = score[order[p]] - center, order[p]
            i += 1
        else:
            b[j], others[j] = score[order[p]] - center, order[p]
            j += 1
    place = np.empty(n_others, np.int64)
    loss = best_places_scan(a, b, place, table) if params[0] != 0.0 else best_places(a, b, place, table)
    pair = 2.0 / (float(n_relevant) * n_others)
    flipped = np.zeros(n_relevant + 1)  # irrelevant documents just above this relevant one
    for j in range(n_others):
        flipped[place[j]] += 1.0
        grad[others[j]] += pair * (n_relevant - place[j])
    above = 0.0
    for i in range(n_relevant):
        above += flipped[i]
        grad[relevant[i]] -= pair * above
    return loss


@dataclass(frozen=True, kw_only=True, repr=False)
class SVMMapHinge(Loss):
    r"""phi = max over rankings pi of [1 - AP(pi) + F(pi) - F(perfect)].

    F(pi) = (1 / (N1 N0)) sum over relevant k, irrelevant l of z_kl (s_k - s_l), z_kl = 1 if pi puts k above l, else -1.

    Parameters
    ----------
    rel : float, default=None
        The smallest relevant label; None: every label above 0.
    search : {"divide", "scan"}, default="divide"
        How the most violated ranking is found: "divide" takes O(m log m), "scan" is the plain search in O(N1 N0).

    Notes
    -----
    Every perfect ranking has the same F, and gives 0. The score-sorted ranking has the largest F, so phi bounds 1 - AP.
    A maximum of affine functions is convex; the gradient of each moves every pair by at most 2 / (N1 N0), in two
    scores, so G1 = 4.

    Examples
    --------
    >>> value, gradient = SVMMapHinge()([0.0, 1.0], [1, 0])
    >>> value, gradient.tolist()
    (2.5, [-2.0, 2.0])

    References
    ----------
    Y. Yue, T. Finley, F. Radlinski, T. Joachims (2007). A support vector method for optimizing average precision.
    SIGIR. doi:10.1145/1277741.1277790.
    """

    rel: float | None = None
    search: Literal["divide", "scan"] = "divide"

    name = "SVMMapHinge"
    convex = True
    kernel = svmmap_formula

    def row_values(self, labels: Vector) -> Vector:
        """1 for relevant documents, 0 for others."""
        return relevance(labels, self.rel)

    def table(self, longest: int) -> Vector:
        """The harmonic numbers from H_0 on."""
        return np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, longest + 1))])

    def params(self) -> tuple[float, ...]:
        """The parameters as the kernel reads them."""
        return (float(self.search == "scan"),)

    def lipschitz_l1(self, m: int) -> float:
        """G1 of queries of at most ``m`` documents; see :meth:`Loss.lipschitz_l1` and Notes."""
        return 4.0 if m > 1 else 0.0

    def range(self, b: float, m: int, labels: tuple[float, float] = (0.0, 4.0)) -> tuple[float, float]:
        """Smallest and largest value for scores in [-b, b]; see :meth:`Loss.range`."""
        return 0.0, 1.0 + 4.0 * b

    @property
    def upper_bounds(self) -> Measure | None:
        """The measure whose loss this loss bounds; see :attr:`Loss.upper_bounds`."""
        return AP(rel=ANY_RELEVANCE if self.rel is None else self.rel)

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """The variants that the common tests run on."""
        return cls(), cls(search="scan"), cls(rel=2)
