"""Smooth average precision, by soft ranks or by soft indicators of positions.

The sigmoid form replaces every comparison of two scores by a sigmoid (:func:`outranking`, which soft ranks use, too);
the indicator form uses the soft positions of :class:`~rankwise.losses.SmoothNDCG`. :class:`SmoothAP` proves the
constants of both.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from rankwise._kernels.exp import exp, outranking
from rankwise._kernels.machine.jit import kernel
from rankwise._kernels.sorting import sort_carrying
from rankwise._parameters import PositiveFloat
from rankwise.losses._base import Form, SmoothedMeasure, Vector
from rankwise.measures import AP
from rankwise.measures._base import Measure
from rankwise.measures.ndcg import ANY_RELEVANCE, relevance


@kernel(fastmath={"reassoc", "contract"})
def _sums(above, relevant):
    """Sums of ``above`` over the relevant and over the other documents."""
    a, b = 0.0, 0.0
    for j in range(len(above)):
        a += relevant[j] * above[j]
        b += (1.0 - relevant[j]) * above[j]
    return a, b


@kernel(fastmath={"reassoc", "contract"})
def _push(above, relevant, n, b, scale, grad):
    """Add one relevant document's part of the gradient to all others; returns what it must subtract from itself."""
    total = 0.0
    for j in range(len(above)):
        # d(b / (n + b)) / dP_ij is n / (n + b)^2 for the others and -b / (n + b)^2 for a relevant j
        w = scale * above[j] * (1.0 - above[j]) * (n - relevant[j] * (n + b))
        grad[j] += w
        total += w
    return total


@kernel
def _by_ranks(score, relevant, grad, sigma, r):
    """1 - A of the sigmoid form, its gradient into ``grad``."""
    size = len(score)
    above = np.empty(size)
    loss = 0.0
    for i in range(size):
        if relevant[i] > 0.0:
            outranking(score, i, sigma, above)
            a, b = _sums(above, relevant)
            rank = 1.0 + a + b
            loss += b / rank
            grad[i] -= _push(above, relevant, 1.0 + a, b, 1.0 / (r * sigma * rank * rank), grad)
    return loss / r


@kernel
def _nearness(score, place, sigma, near):
    """e_ij = exp(-(s_i - f)^2 / sigma) for the score f = ``place`` of one position."""
    for i in range(len(score)):
        gap = score[i] - place
        near[i] = exp(-gap * gap / sigma)


@kernel(fastmath={"reassoc", "contract"})
def _moments(near, score, relevant, place):
    """Sums of e, l e, (s - f) e and (s - f) l e."""
    e, le, ge, gle = 0.0, 0.0, 0.0, 0.0
    for i in range(len(near)):
        moment = (score[i] - place) * near[i]
        e += near[i]
        le += relevant[i] * near[i]
        ge += moment
        gle += relevant[i] * moment
    return e, le, ge, gle


@kernel
def _by_indicators(score, relevant, grad, sigma, r):
    """1 - A of the indicator form, its gradient into ``grad``."""
    size = len(score)
    ranked, order = -score, np.arange(size)
    sort_carrying(ranked, order, np.empty(size), np.empty(size, np.int64), np.empty(size + 1, np.int64))
    near = np.empty(size)
    mass, share, drift = np.empty(size), np.empty(size), np.empty(size)
    for j in range(size):
        _nearness(score, -ranked[j], sigma, near)
        e, le, ge, gle = _moments(near, score, relevant, -ranked[j])
        mass[j], share[j] = e, le / e
        drift[j] = (gle - share[j] * ge) / e
    slope = np.empty(size)  # of the gain, with respect to every position's share of relevance
    before, gain = 0.0, 0.0
    for j in range(size):
        before += share[j]
        slope[j] = before / (j + 1)
        gain += share[j] * slope[j]
    after = 0.0
    for j in range(size - 1, -1, -1):
        after += share[j] / (j + 1)
        slope[j] += after
    for j in range(size):
        _nearness(score, -ranked[j], sigma, near)
        scale = 2.0 * slope[j] / (sigma * r)
        for i in range(size):
            grad[i] += scale * near[i] / mass[j] * (score[i] + ranked[j]) * (relevant[i] - share[j])
        grad[order[j]] -= scale * drift[j]
    return 1.0 - gain / r


@kernel
def smooth_ap_formula(score, label, value, grad, table, params):
    """Smooth AP; ``value`` holds 0/1 relevance."""
    r = value.sum()
    if r == 0.0 or r == len(value):  # every order is perfect
        return 0.0
    if params[1] != 0.0:
        return _by_indicators(score, value, grad, params[0], r)
    return _by_ranks(score, value, grad, params[0], r)


@dataclass(frozen=True, kw_only=True, repr=False)
class SmoothAP(SmoothedMeasure):
    r"""1 - A, where A is average precision with soft positions.

    ``form="sigmoid"``, with l_i = 1 for the r relevant documents, else 0, and P_ij = sigmoid((s_j - s_i) / sigma)::

        A = (1/r) sum_i l_i n_i / rank_i,    n_i = 1 + sum_{j != i} l_j P_ij,    rank_i = 1 + sum_{j != i} P_ij

    ``form="indicator"``, with f_j the j-th largest score and h_ij proportional to exp(-(s_i - f_j)^2 / sigma)::

        A = (1/r) sum_j rho_j (1/j) sum_{t <= j} rho_t,    rho_j = sum_i l_i h_ij,    sum_i h_ij = 1

    Parameters
    ----------
    form : {"sigmoid", "indicator"}, default="sigmoid"
        "sigmoid" costs O(r m), "indicator" O(m^2).
    sigma : float, default=1.0
        Width of the smoothing, in units of scores for "sigmoid", of squared scores for "indicator".
    rel : float, default=None
        The smallest relevant label; None: every label above 0.

    Notes
    -----
    Both forms tend to AP as sigma goes to 0, if no scores tie. Document i counts fully for itself: with the printed
    term 1/2 for j = i in n_i, the limit would be AP - (1/2r) sum of 1/position over relevant documents. The loss is not
    convex.

    **Sigmoid form**: 0 <= 1 - A < 1 - 1/m, G1 = (m-1) / (2 m sigma), H1 <= 32 / (27 sigma^2).

    Let N = m - r, and b the sum of P_ij over the N others. 1 - A is the mean over relevant i of q = b / (n + b),
    where b <= N and n >= 1, so q <= N / (N+1) <= 1 - 1/m. Write q = sigmoid(z) with z = log b - log n, and move the
    scores by v with abs(v_j) <= 1. As P' = P (1 - P) / sigma, sigma dz = B (a mean of v_j - v_i) - C (another such
    mean), where by Cauchy and Schwarz B = sum P (1 - P) / b <= 1 - b/N, and C <= (a - a^2 / (r-1)) / (1 + a) for a =
    n - 1. Both means lie in [-1 - v_i, 1 - v_i], an interval of length 2 around 0, so abs(sigma dz) <= 2 max(B, C) <=
    2. G1: q (1-q) 2B is at most N / (2 (N + n)) <= (m-1) / 2m, attained by r = 1 and m - 1 others of one score; q (1-q)
    2C is less. H1: in directions u and v, d2q = q (1-q) ((1 - 2q) (du z) (dv z) + d2z). With means weighted by P / b,
    and x = u_j - u_i, y = v_j - v_i, sigma^2 d2(log b) = Cov((1-P) x, (1-P) y) - mean(P (1-P) x y), each at most 1 in
    size; the same holds of log n. So sigma^2 abs(d2q) <= 4 q (1-q) (abs(1 - 2q) + 1) <= 32/27.

    **Indicator form**: A can exceed 1, and at ties the gradient is one limit of several. The document at position j
    has e = 1 there and r relevant ones at most r, so rho_j <= r / (r+1) if it is not relevant:
    0 <= A <= (1/r) sum rho_j <= (m+1) / 2. G1 <= (3m+1) sqrt(log(1 + (m-1)/e) / sigma): as for smooth NDCG, Cauchy and
    Schwarz give ||d rho_j||_1 <= 2 sqrt(W / sigma), W e^W = (m-1)/e, so W <= log(1 + (m-1)/e); and the slopes of A in
    the rho_j sum to at most (1/r) sum_j (1 + rho_j) <= (3m+1) / 2.

    References
    ----------
    O. Chapelle, M. Wu (2010). Gradient descent optimization of smoothed information retrieval metrics. Information
    Retrieval 13(3), 216-235. doi:10.1007/s10791-009-9110-3. Equation (9), with its diagonal corrected.

    Examples
    --------
    >>> value, gradient = SmoothAP()([0.3, 0.1, 0.9, 0.5, -0.2], [2, 0, 1, 0, 3])
    >>> round(value, 6)
    0.327234
    """

    form: Form = "sigmoid"
    sigma: PositiveFloat = 1.0
    rel: float | None = None

    name = "SmoothAP"
    offered_for = (AP,)
    kernel = smooth_ap_formula

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        """True for the sigmoid form; the indicator form has kinks where scores tie."""
        return self.form == "sigmoid"

    @property
    def nonnegative(self) -> bool:  # type: ignore[override]
        """True for the sigmoid form; A of the indicator form can exceed 1."""
        return self.form == "sigmoid"

    @property
    def squared_width(self) -> bool:
        """True for the indicator form."""
        return self.form == "indicator"

    @classmethod
    def smoothing(cls, measure: Measure, form: Form = "sigmoid") -> "SmoothAP | None":
        """For AP over the whole list, in one of two forms."""
        matches = isinstance(measure, AP) and measure.cutoff is None
        return cls(form=form, rel=measure.rel) if matches else None  # type: ignore[attr-defined]

    @property
    def smooths(self) -> Measure | None:
        """Average precision."""
        return AP(rel=ANY_RELEVANCE if self.rel is None else self.rel)

    def row_values(self, labels: Vector) -> Vector:
        """1 for relevant documents, 0 for others."""
        return relevance(labels, self.rel)

    def params(self) -> tuple[float, ...]:
        """The parameters as the kernel reads them."""
        return self.sigma, float(self.form == "indicator")

    def lipschitz_l1(self, m: int) -> float:
        """G1 of queries of at most ``m`` documents; see :meth:`Loss.lipschitz_l1` and Notes."""
        if m < 2:
            return 0.0
        if self.form == "sigmoid":
            return (m - 1) / (2 * m * self.sigma)
        return (3 * m + 1) * math.sqrt(math.log1p((m - 1) / math.e) / self.sigma)

    def smoothness(self, m: int) -> float:
        """H1 of queries of at most ``m`` documents; see :meth:`Loss.smoothness` and Notes."""
        return 32 / 27 / self.sigma**2 if self.form == "sigmoid" else np.inf

    def range(self, b: float, m: int, labels: tuple[float, float] = (0.0, 4.0)) -> tuple[float, float]:
        """Smallest and largest value for scores in [-b, b]; see :meth:`Loss.range`."""
        if m < 2:
            return 0.0, 0.0
        return (0.0, 1 - 1 / m) if self.form == "sigmoid" else ((1 - m) / 2, 1.0)

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """The variants that the common tests run on."""
        return cls(), cls(sigma=0.1, rel=2), cls(form="indicator"), cls(form="indicator", sigma=0.05, rel=3)
