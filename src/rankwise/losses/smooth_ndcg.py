"""Measures smoothed by soft indicators: NDCG@k, precision, reciprocal rank, and DCG@1 by a softmax.

NDCG@k, precision and reciprocal rank share one computation: for every position j the mean Gbar_j of the row values
under the soft indicators h_ij of "document i is at position j". The kernels compute these means either row by row or,
for long lists, by fast Gauss transforms (:mod:`rankwise._kernels.gauss`), whichever is faster. :class:`SmoothNDCG`
proves the Lipschitz constant that all three use.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

import numpy as np

from rankwise._kernels.exp import exp
from rankwise._kernels.gauss import gauss_means, gauss_slopes, reach, row_means, row_slopes, transforms_pay, windows
from rankwise._kernels.machine.jit import kernel, typed_function
from rankwise._kernels.sorting import sort_carrying
from rankwise._parameters import NumberRange, PositiveInt
from rankwise.losses._base import Form, Rows, SmoothedMeasure, Vector
from rankwise.losses._gains import LossOfGains
from rankwise.measures import NDCG, RR, P
from rankwise.measures._base import TIES, Measure
from rankwise.measures.compute import KERNEL, measure_chunk
from rankwise.measures.ndcg import ANY_RELEVANCE, DCG, as_gain, gains, ideal_gain, relevance

# Below the smallest normal number 1/sigma overflows.
_LEAST_SIGMA = float(np.finfo(np.float64).smallest_normal)


# Everything here but the sort, the transforms and the innermost loops is inlined before types are inferred: a helper
# that calls another one would be optimized again inside each of its callers.


@kernel(inline="always")
def _all_equal(value):
    """Whether all values are the same: then every order is perfect."""
    equal = True
    for p in range(1, len(value)):
        equal &= value[p] == value[0]
    return equal


@kernel(inline="always")
def _sort_by_score(score, value, f, ranked, order):
    """Scores decreasing, values in the same order, documents in that order; equal scores keep their order."""
    size = len(score)
    for p in range(size):
        f[p], order[p] = -score[p], p
    sort_carrying(f, order, ranked, np.empty(size, np.int64), np.empty(size + 1, np.int64))
    for p in range(size):
        f[p] = -f[p]
        ranked[p] = value[order[p]]


@kernel(inline="always")
def _smoothed(score, value, weight, sigma, grad):
    """1 - sum_j w_j Gbar_j, its gradient into ``grad``."""
    size, positions = len(score), len(weight)
    f, ranked, order = np.empty(size), np.empty(size), np.empty(size, np.int64)
    _sort_by_score(score, value, f, ranked, order)
    far, stop = reach(f, ranked, positions, sigma), np.empty(positions, np.int64)
    count = windows(f, far, stop)
    total, mean, slope = np.empty(size), np.empty(size), np.empty(size)
    if transforms_pay(f, positions, count, sigma):
        own = np.empty(positions)
        gauss_means(f, ranked, sigma, far, total, mean, own)
        gauss_slopes(f, ranked, weight, sigma, far, total, mean, own, slope)
    else:
        pairs = np.empty(count)
        row_means(f, ranked, sigma, stop, pairs, total, mean)
        row_slopes(f, ranked, weight, sigma, stop, pairs, total, mean, slope)
    reached = 0.0
    for j in range(positions):
        reached += weight[j] * mean[j]
    for p in range(size):
        grad[order[p]] = -slope[p]
    return 1.0 - reached


@kernel
def ideal_formula(value, end, retrieved, best, table, params):
    """The ideal DCG, in the form of a measure."""
    return ideal_gain(best, table)


@kernel
def smooth_ndcg_formula(score, label, value, grad, table, params):
    """Smooth NDCG; ``value`` holds gains divided by the ideal DCG, ``table`` discounts."""
    if _all_equal(value):
        return 0.0
    return _smoothed(score, value, table[: int(min(params[1], float(len(score))))], params[0], grad)


@kernel
def smooth_precision_formula(score, label, value, grad, table, params):
    """Smooth precision; ``value`` holds 0/1 relevance, ``table`` the weights 1/k."""
    if _all_equal(value):
        return 0.0
    return max(_smoothed(score, value, table[: min(len(table), len(score))], params[0], grad), 0.0)


@kernel
def estimated_precision(score, label, value, grad, table, params):
    """The same as an affine function of ``value``, for estimates of relevance."""
    return _smoothed(score, value, table[: min(len(table), len(score))], params[0], grad)


@kernel
def smooth_rr_formula(score, label, value, grad, table, params):
    """Smooth reciprocal rank; ``value`` holds 0/1 relevance.

    With R_j = rho_j / j + (1 - rho_j) R_(j+1) from the end up, A = R_1 and dA/drho_j = (1/j - R_(j+1)) times the
    product of 1 - rho_t over t < j: with these as weights the gradient is that of a sum of means.
    """
    if _all_equal(value):
        return 0.0
    size, sigma = len(score), params[0]
    f, ranked, order = np.empty(size), np.empty(size), np.empty(size, np.int64)
    _sort_by_score(score, value, f, ranked, order)
    far, stop = reach(f, ranked, size, sigma), np.empty(size, np.int64)
    count = windows(f, far, stop)
    total, rho, weight, slope = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    by_boxes = transforms_pay(f, size, count, sigma)
    own, pairs = np.empty(size), np.empty(0 if by_boxes else count)
    if by_boxes:
        gauss_means(f, ranked, sigma, far, total, rho, own)
    else:
        row_means(f, ranked, sigma, stop, pairs, total, rho)
    later = 0.0
    for j in range(size - 1, -1, -1):
        weight[j] = 1.0 / (j + 1) - later
        later = rho[j] / (j + 1) + (1.0 - rho[j]) * later
    before = 1.0
    for j in range(size):
        weight[j] *= before
        before *= 1.0 - rho[j]
    if by_boxes:
        gauss_slopes(f, ranked, weight, sigma, far, total, rho, own, slope)
    else:
        row_slopes(f, ranked, weight, sigma, stop, pairs, total, rho, slope)
    for p in range(size):
        grad[order[p]] = -slope[p]
    return max(1.0 - later, 0.0)


@kernel
def smooth_dcg1_formula(score, label, value, grad, table, params):
    """The mean of 1 - gain / largest gain under a softmax; ``value`` holds gains."""
    best = value.max()
    if best == value.min():
        return 0.0
    highest = score.max()
    total, loss = 0.0, 0.0
    for p in range(len(score)):
        grad[p] = exp((score[p] - highest) / params[0])
        total += grad[p]
        loss += grad[p] * (1.0 - value[p] / best)
    loss /= total
    for p in range(len(score)):
        grad[p] *= ((1.0 - value[p] / best) - loss) / (total * params[0])
    return loss


@dataclass(frozen=True, kw_only=True, repr=False)
class SmoothMeasure(SmoothedMeasure):
    """Base class of the losses of this module.

    Parameters
    ----------
    sigma : float, default=1.0
        Width of the smoothing, at least 2^-1022. A small one is close to the measure, a large one is smooth.
    """

    sigma: Annotated[float, NumberRange(_LEAST_SIGMA)] = 1.0

    @property
    def squared_width(self) -> bool:
        """True: soft indicators compare squared differences of scores with sigma."""
        return True

    def params(self) -> tuple[float, ...]:
        """The parameters as the kernel reads them."""
        return (self.sigma,)

    def _steepest(self, m: int, weights: float) -> float:
        """G1 of sum_j w_j Gbar_j where the largest gain times sum_j abs(w_j) is at most ``weights``; see SmoothNDCG."""
        from scipy.special import lambertw

        return 2.0 * weights * math.sqrt(float(lambertw((m - 1) / math.e).real) / self.sigma)

    def range(self, b: float, m: int, labels: tuple[float, float] = (0.0, 4.0)) -> tuple[float, float]:
        """Smallest and largest value for scores in [-b, b]; see :meth:`Loss.range`."""
        return 0.0, 1.0


@dataclass(frozen=True, kw_only=True, repr=False)
class SmoothNDCG(LossOfGains, SmoothMeasure):
    r"""1 - A, A = sum over j <= k of D(j)/Z_k sum_i G_i h_ij, where h_ij is a soft "document i is at position j".

    h_ij = exp(-(s_i - f_j)^2 / sigma) / sum_l exp(-(s_l - f_j)^2 / sigma), f_j the j-th largest score.

    Parameters
    ----------
    sigma : float, default=1.0
        Width of the soft indicators, in squared units of the scores.
    k : int, default=None
        Cut-off of NDCG@k; None for the whole list.
    gain : str or mapping, default="exp2"
        The gain of the measure that is smoothed, as in :class:`~rankwise.measures.NDCG`.
    discount : str or sequence of float, default="log2"
        The discount of the measure that is smoothed, as in :class:`~rankwise.measures.NDCG`.

    Notes
    -----
    O(m log m) for long lists, O(m k) for short ones. sigma -> 0 gives NDCG@k with expected ties, sigma -> infinity the
    mean gain at every position. The loss is continuous, and differentiable except at ties, where the gradient is the
    limit for the stable order. It is not convex, and constant scores are a stationary point: never start there. The
    indicators of a position sum to 1, those of a document do not, so A can exceed 1 and the loss can be below 0.

    G1 <= 2 G_max sum_j D_j/Z sqrt(W((m-1)/e) / sigma), W Lambert's function: with q the h of position j and x_p = s_p
    - f_j the l1 norm is at most (4/sigma) sum_j D_j/Z sum_p q_p abs(x_p) abs(G_p - Gbar_j); Cauchy and Schwarz split
    the inner sum into the deviation of G, at most G_max/2, and the root of sum_p q_p x_p^2, which is at most sigma
    W((m-1)/e). Z >= G_max D(1), so G_max sum_j D_j/Z <= sum_j D_j / D(1).

    References
    ----------
    O. Chapelle, M. Wu (2010). Gradient descent optimization of smoothed information retrieval metrics. Information
    Retrieval 13(3), 216-235. doi:10.1007/s10791-009-9110-3. Equations (7), (8) and (10).

    Examples
    --------
    >>> round(SmoothNDCG().measure_value([0.3, 0.1, 0.9, 0.5, -0.2], [2, 0, 1, 0, 3]), 6)
    0.615942
    """

    k: PositiveInt | None = None
    gain: Any = "exp2"
    discount: Any = "log2"

    name = "SmoothNDCG"
    offered_for = (NDCG, DCG)
    nonnegative = False
    kernel = smooth_ndcg_formula

    @classmethod
    def smoothing(cls, measure: Measure, form: Form = "sigmoid") -> "SmoothNDCG | None":
        """For NDCG, and for DCG, whose queries then count by their ideal DCG."""
        if not isinstance(measure, (NDCG, DCG)):
            return None
        return cls(k=measure.cutoff, gain=measure.gain, discount=measure.discount)

    @property
    def smooths(self) -> Measure | None:
        """NDCG@k with this gain and discount."""
        return NDCG(gain=self.gain, discount=self.discount, cutoff=self.k)

    def discounted_gains(self, labels: Vector, longest: int) -> tuple[Vector, Vector] | None:
        """(gains, discounts), as of NDCG itself."""
        return self.row_values(labels), self.table(longest)

    def prepare(self, labels: Vector, start: Rows, rows: Rows | None) -> tuple[Vector, Vector]:
        """Labels, and gains divided by the ideal DCG, which does not depend on scores."""
        gain, sizes = self.row_values(labels), np.diff(start)
        order = np.arange(len(labels)) if rows is None else rows
        cut, ideal = np.array([np.inf if self.k is None else float(self.k)]), np.empty(len(sizes))
        kernel = typed_function(ideal_formula, KERNEL)
        given = (TIES["stable"], True, self.table(int(sizes.max(initial=0))), cut, ideal)
        measure_chunk()(kernel, start, order, order, sizes, gain, *given)
        best, value = np.ones(len(labels)), np.zeros(len(labels))
        best[order[: start[-1]]] = np.repeat(ideal, sizes)
        return labels, np.divide(gain, best, out=value, where=best > 0.0)

    def params(self) -> tuple[float, ...]:
        """The parameters as the kernel reads them."""
        return self.sigma, np.inf if self.k is None else self.k

    def _discounts(self, m: int) -> Vector:
        """The discounts of ``m`` positions, up to the cut-off."""
        return self.table(m if self.k is None else min(self.k, m))

    def lipschitz_l1(self, m: int) -> float:
        """G1 of queries of at most ``m`` documents; see :meth:`Loss.lipschitz_l1` and Notes."""
        d = self._discounts(max(m, 1))
        return self._steepest(max(m, 1), float(d.sum() / d[0]))

    def range(self, b: float, m: int, labels: tuple[float, float] = (0.0, 4.0)) -> tuple[float, float]:
        """0 <= A <= G_max sum D / Z, and Z is least when one document has the largest gain, the others the least."""
        d = self._discounts(max(m, 1))
        low, high = self.row_values(np.array(labels))
        if high <= 0:
            return 0.0, 0.0
        return min(1.0 - float(high * d.sum() / (high * d[0] + low * d[1:].sum())), 0.0), 1.0

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """The variants that the common tests run on."""
        return cls(), cls(k=1), cls(k=3, sigma=0.1), cls(sigma=4.0, gain="linear", discount="letor")


@dataclass(frozen=True, kw_only=True, repr=False)
class SmoothPrecision(SmoothMeasure):
    r"""1 - A, A = (1/k) sum over j <= k of rho_j, rho_j = sum_i relevant_i h_ij with :class:`SmoothNDCG`'s h_ij.

    Parameters
    ----------
    sigma : float, default=1.0
        Width of the soft indicators, in squared units of the scores.
    k : int
        Cut-off of P@k.
    rel : float, default=None
        The smallest relevant label; None: every label above 0.

    Notes
    -----
    0 <= A <= 1. sigma -> 0 gives P@k with expected ties. G1 as for SmoothNDCG, with weights 1/k.
    """

    k: PositiveInt
    rel: float | None = None

    name = "SmoothPrecision"
    offered_for = (P,)
    kernel = smooth_precision_formula
    estimate_kernel = estimated_precision

    @classmethod
    def smoothing(cls, measure: Measure, form: Form = "sigmoid") -> "SmoothPrecision | None":
        """For P@k."""
        return cls(k=measure.cutoff, rel=measure.rel) if isinstance(measure, P) and measure.cutoff is not None else None

    @property
    def smooths(self) -> Measure | None:
        """Precision at k."""
        return P(rel=ANY_RELEVANCE if self.rel is None else self.rel, cutoff=self.k)

    @property
    def labels_per_term(self) -> Literal[1, 2] | None:
        """1: A is a sum over the relevant documents."""
        return 1

    def row_values(self, labels: Vector) -> Vector:
        """1 for relevant documents, 0 for others."""
        return relevance(labels, self.rel)

    def table(self, longest: int) -> Vector:
        """The weights 1/k of the first positions."""
        return np.full(min(self.k, longest), 1.0 / self.k)

    def lipschitz_l1(self, m: int) -> float:
        """G1 of queries of at most ``m`` documents; see :meth:`Loss.lipschitz_l1` and Notes."""
        return self._steepest(max(m, 1), min(m, self.k) / self.k)

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """The variants that the common tests run on."""
        return cls(k=1), cls(k=3, sigma=0.1), cls(k=20, rel=2)


@dataclass(frozen=True, kw_only=True, repr=False)
class SmoothRR(SmoothMeasure):
    r"""1 - A, A = sum_j (1/j) rho_j prod over t < j of (1 - rho_t), rho_j = sum_i relevant_i h_ij: a soft 1/rank.

    Parameters
    ----------
    sigma : float, default=1.0
        Width of the soft indicators of :class:`SmoothNDCG`, in squared units of the scores.
    rel : float, default=None
        The smallest relevant label; None: every label above 0.

    Notes
    -----
    0 <= A <= 1; sigma -> 0 gives the reciprocal rank where no scores tie. 0 <= dA/drho_j <= 1/j, so G1 is that
    of SmoothNDCG with the weights 1/j: 2 (1 + 1/2 + ... + 1/m) sqrt(W((m-1)/e) / sigma).
    """

    rel: float | None = None

    name = "SmoothRR"
    offered_for = (RR,)
    kernel = smooth_rr_formula

    @classmethod
    def smoothing(cls, measure: Measure, form: Form = "sigmoid") -> "SmoothRR | None":
        """For RR over the whole list."""
        return cls(rel=measure.rel) if isinstance(measure, RR) and measure.cutoff is None else None

    @property
    def smooths(self) -> Measure | None:
        """The reciprocal rank."""
        return RR(rel=ANY_RELEVANCE if self.rel is None else self.rel)

    def row_values(self, labels: Vector) -> Vector:
        """1 for relevant documents, 0 for others."""
        return relevance(labels, self.rel)

    def lipschitz_l1(self, m: int) -> float:
        """G1 of queries of at most ``m`` documents; see :meth:`Loss.lipschitz_l1` and Notes."""
        return self._steepest(max(m, 1), math.fsum(1.0 / j for j in range(1, m + 1)))

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """The variants that the common tests run on."""
        return cls(), cls(sigma=0.1), cls(rel=2)


@dataclass(frozen=True, kw_only=True, repr=False)
class SmoothDCG1(SmoothMeasure):
    r"""1 - A, A = sum_i G_i p_i / G_max, p = softmax(s / sigma): the gain that a soft first place earns, of the best.

    Parameters
    ----------
    sigma : float, default=1.0
        Temperature of the softmax, in units of the scores.
    gain : str or mapping, default="exp2"
        The gain of DCG@1, as in :class:`~rankwise.measures.NDCG`; the discount D(1) cancels.

    Notes
    -----
    O(m), and differentiable everywhere. The loss is the mean of c_i = 1 - G_i / G_max, in [0, 1], under p; its
    gradient p_i (c_i - cbar) / sigma has an l1 norm of at most 2 cbar (1 - cbar) / sigma: G1 = 1/(2 sigma), attained.
    The second derivative along u and v in [-1, 1]^m is E[(c - cbar)(u - ubar)(v - vbar)] / sigma^2; abs(c - cbar) <= 1
    and deviations of at most 1 give H1 <= 1 / sigma^2.
    """

    gain: Any = "exp2"

    name = "SmoothDCG1"
    smooth = True
    kernel = smooth_dcg1_formula

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "gain", as_gain(self.gain))

    @property
    def squared_width(self) -> bool:
        """False: sigma is a temperature."""
        return False

    @property
    def smooths(self) -> Measure | None:
        """NDCG@1, to which DCG@1 over the largest gain is equal."""
        return NDCG(gain=self.gain, cutoff=1)

    def row_values(self, labels: Vector) -> Vector:
        """The gains of the labels."""
        return gains(labels, self.gain)

    def lipschitz_l1(self, m: int) -> float:
        """G1 of queries of at most ``m`` documents; see :meth:`Loss.lipschitz_l1` and Notes."""
        return 0.5 / self.sigma if m > 1 else 0.0

    def smoothness(self, m: int) -> float:
        """H1 of queries of at most ``m`` documents; see :meth:`Loss.smoothness` and Notes."""
        return (1.0 / self.sigma) * (1.0 / self.sigma)  # sigma^2 may be too small for a number

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """The variants that the common tests run on."""
        return cls(), cls(sigma=0.25, gain="linear")
