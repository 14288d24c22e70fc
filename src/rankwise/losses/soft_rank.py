"""NDCG of noisy scores: the discount at the expected rank, or the expected discount of a random rank.

:class:`SoftRankNDCG` evaluates the discount at the expected rank. :class:`SoftRank` averages the discount over the
distribution of the rank, which it computes by adding the other documents one at a time. Their docstrings prove the
range and the Lipschitz constants.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from rankwise._kernels.exp import exp, outranking
from rankwise._kernels.machine.jit import kernel
from rankwise._kernels.ragged import largest
from rankwise._parameters import PositiveFloat, PositiveInt
from rankwise.losses._base import SmoothedMeasure, Vector
from rankwise.losses._gains import LossOfGains
from rankwise.measures import NDCG
from rankwise.measures._base import Measure

_LN2 = math.log(2.0)


@kernel
def outranking_gaussian(score, i, sigma, above, slope):
    """P_ij = Phi((s_j - s_i) / (sqrt(2) sigma)) and its slope in s_j; both 0 for i itself."""
    own = score[i]
    height = 0.5 / (math.sqrt(math.pi) * sigma)
    for j in range(len(score)):
        x = (own - score[j]) / (2.0 * sigma)
        above[j] = x
        slope[j] = height * exp(-x * x)
    for j in range(len(score)):  # a separate loop: the one above vectorizes, calls into the C library do not
        above[j] = 0.5 * math.erfc(above[j])
    above[i] = 0.0
    slope[i] = 0.0


@kernel
def ideal_dcg(gain, table):
    """DCG of the gains in decreasing order; positions beyond the table count 0."""
    top = np.empty(min(len(gain), len(table)))
    largest(gain, top)
    total = 0.0
    for p in range(len(top)):
        total += top[p] * table[p]
    return total


@kernel
def _discount_between(rank, size, table, logarithmic):
    """(D, D') at a rank between positions; at a kink, the slope to its right."""
    if logarithmic:
        log = math.log(1.0 + rank)
        return _LN2 / log, -_LN2 / ((1.0 + rank) * log * log)
    p = min(int(rank), size - 1)
    slope = table[p] - table[p - 1]
    return table[p - 1] + (rank - p) * slope, slope


@kernel(fastmath={"reassoc", "contract"})
def _spread(weight, slope, grad):
    """Add weight * slope to the gradient; returns what the document itself must subtract."""
    total = 0.0
    for j in range(len(slope)):
        w = weight * slope[j]
        grad[j] += w
        total += w
    return total


@kernel
def soft_rank_ndcg_formula(score, label, value, grad, table, params):
    """NDCG at expected ranks; ``value`` holds gains."""
    sigma, gaussian, logarithmic = params[0], params[1] != 0.0, params[2] != 0.0
    size = len(score)
    if value.max() == value.min():  # every order is perfect
        return 0.0
    ideal = ideal_dcg(value, table[:size])
    above, slope = np.empty(size), np.empty(size)
    gain = 0.0
    for i in range(size):
        if value[i] > 0.0:
            if gaussian:
                outranking_gaussian(score, i, sigma, above, slope)
            else:
                outranking(score, i, sigma, above)
                for j in range(size):
                    slope[j] = above[j] * (1.0 - above[j]) / sigma
            discount, steepness = _discount_between(1.0 + above.sum(), size, table, logarithmic)
            gain += value[i] / ideal * discount
            grad[i] -= _spread(-value[i] / ideal * steepness, slope, grad)
    return max(1.0 - gain, 0.0) if logarithmic else 1.0 - gain


@kernel
def _look_ahead(above, table, cut, ahead):
    """``ahead[t, p]``: expected discount if p of the first t others are above, the rest yet to be drawn."""
    size = len(above)
    for p in range(cut):
        ahead[size, p] = table[p]
    for t in range(size - 1, -1, -1):
        here, after, up = ahead[t], ahead[t + 1], above[t]
        for p in range(min(t + 1, cut)):
            here[p] = after[p] + up * (after[p + 1] - after[p])


@kernel(fastmath={"reassoc", "contract"})
def _sensitivities(above, ahead, cut, chance, stepped, out):
    """Derivative of ``ahead[0, 0]`` in the probability of each other, from the rank distribution before it is drawn.

    The distribution is kept behind a 0: the first rank needs no case of its own.
    """
    chance[:] = 0.0
    stepped[:] = 0.0
    chance[1] = 1.0
    for t in range(len(above)):
        reach = min(t + 1, cut)
        after, up = ahead[t + 1], above[t]
        stay = 1.0 - up
        total = 0.0
        for p in range(reach):
            total += chance[p + 1] * (after[p + 1] - after[p])
        out[t] = total
        for p in range(reach + 1):
            stepped[p + 1] = chance[p + 1] * stay + chance[p] * up
        chance, stepped = stepped, chance


@kernel
def soft_rank_formula(score, label, value, grad, table, params):
    """NDCG with expected discounts; ``value`` holds gains."""
    sigma, capped = params[0], params[2] != 0.0
    size = len(score)
    if value.max() == value.min():  # every order is perfect
        return 0.0
    cut = int(min(float(size), params[1]))
    ideal = ideal_dcg(value, table[:cut])
    all_above, slope = np.empty(size), np.empty(size)
    above, sensitivity = np.empty(size - 1), np.empty(size - 1)
    ahead = np.zeros((size, cut + 1))  # the last column stays 0: positions beyond the cut-off
    chance, stepped = np.empty(cut + 2), np.empty(cut + 2)
    gain = 0.0
    for i in range(size):
        if value[i] > 0.0:
            outranking_gaussian(score, i, sigma, all_above, slope)
            above[:i], above[i:] = all_above[:i], all_above[i + 1 :]
            _look_ahead(above, table, cut, ahead)
            _sensitivities(above, ahead, cut, chance, stepped, sensitivity)
            weight = value[i] / ideal
            gain += weight * ahead[0, 0]
            for t in range(size - 1):
                j = t if t < i else t + 1
                w = weight * slope[j] * sensitivity[t]
                grad[j] -= w
                grad[i] += w
    return max(1.0 - gain, 0.0) if capped else 1.0 - gain


@dataclass(frozen=True, kw_only=True, repr=False)
class SoftRankNDCG(LossOfGains, SmoothedMeasure):
    r"""1 - A with A = (1/Z) sum_i G_i D(rank_i): the discount is taken at the expected rank.

    rank_i = 1 + sum_{j != i} P_ij, where P_ij is the probability that j comes out above i.

    Parameters
    ----------
    sigma : float, default=1.0
        Width of the smoothing, in units of scores.
    noise : {"sigmoid", "gaussian"}, default="sigmoid"
        "sigmoid": P_ij = sigmoid((s_j - s_i) / sigma), Gumbel noise of scale sigma on every score. "gaussian":
        P_ij = Phi((s_j - s_i) / (sqrt(2) sigma)), normal noise of standard deviation sigma on every score.
    gain : str or mapping, default="exp2"
        The gain of NDCG, as in :class:`~rankwise.measures.NDCG`.
    discount : str or sequence of float, default="log2"
        The discount of NDCG, as in :class:`~rankwise.measures.NDCG`. Between positions "log2" is 1 / log2(1 + rank);
        every other discount is interpolated linearly. A cut-off would make A jump; ``discount=(1, 0.63, 0.5)`` falls to
        0 between ranks 3 and 4.

    Notes
    -----
    O(n m) for n documents with a gain above 0. A tends to NDCG as sigma goes to 0, if no scores tie. The loss is not
    convex. It is smooth for "log2" and has kinks at whole ranks otherwise.

    **Range.** Since P_ij + P_ji = 1, the ranks are a mixture of permutations of 1..m (Landau, Rado). For a convex D, as
    "log2" is, A is therefore at most a mean of NDCGs and 0 <= 1 - A. In general A <= D(1) sum G / Z <= m D(1) / sum D
    by Chebyshev's sum inequality. And A >= D(m) / D(1).

    **G1.** Scores moved by abs(v_j) <= 1 move A by at most (2/Z) sum_i G_i abs(D'(rank_i)) S_i, S_i the sum of the
    slopes of P_ij in s_j. Let N = m - 1 and x = rank_i - 1.

    * sigmoid: sigma S <= min(x, N/4), because P (1 - P) <= min(P, 1/4);
    * Gaussian: S <= N / (2 sqrt(pi) sigma). Also, a normal variable has mean phi/p beyond the quantile that leaves
      probability p, which is at most sqrt(2 log(1/p)) (Donsker and Varadhan), so phi <= sqrt(2 log N) (p + 1/N) for
      N >= 2 and sqrt(2) sigma S <= sqrt(2 log N) (x + 1).

    For "log2" abs(D') / D = 1 / ((2+x) log(2+x)); it and its product with 1 + x are at most 1 / (2 log 2), its product
    with x at most 0.3734. As A <= 1, G1 <= (2/sigma) min(0.3734, N / (8 log 2)) for the sigmoid, and for the Gaussian
    G1 <= min(N / (2 sqrt(pi)), sqrt(log N)) / (sigma log 2). For other discounts sum G / Z <= m / sum D, and abs(D') is
    the drop of D from position p to p + 1, where x <= p.

    References
    ----------
    O. Chapelle, M. Wu (2010). Gradient descent optimization of smoothed information retrieval metrics. Information
    Retrieval 13(3), 216-235. doi:10.1007/s10791-009-9110-3. Equation (5); its Gaussian form with sqrt(2) sigma for
    sigma.

    Examples
    --------
    >>> value, gradient = SoftRankNDCG()([0.3, 0.1, 0.9, 0.5, -0.2], [2, 0, 1, 0, 3])
    >>> round(value, 6)
    0.441635
    """

    sigma: PositiveFloat = 1.0
    noise: Literal["sigmoid", "gaussian"] = "sigmoid"
    gain: Any = "exp2"
    discount: Any = "log2"

    name = "SoftRankNDCG"
    kernel = soft_rank_ndcg_formula

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        """True for "log2"; linear interpolation between positions has kinks."""
        return bool(self.discount == "log2")

    @property
    def nonnegative(self) -> bool:  # type: ignore[override]
        """True for "log2"; with a discount that is not convex, A can exceed 1."""
        return bool(self.discount == "log2")

    @property
    def smooths(self) -> Measure | None:
        """NDCG with this gain and discount."""
        return NDCG(gain=self.gain, discount=self.discount)

    def params(self) -> tuple[float, ...]:
        """The parameters as the kernel reads them."""
        return self.sigma, float(self.noise == "gaussian"), float(self.discount == "log2")

    def lipschitz_l1(self, m: int) -> float:
        """G1 of queries of at most ``m`` documents; see :meth:`Loss.lipschitz_l1` and Notes."""
        if m < 2:
            return 0.0
        if self.discount != "log2":
            d = self.table(m)
            drops, x = d[:-1] - d[1:], np.arange(1, m)
            slopes = np.minimum(x, (m - 1) / 4) if self.noise == "sigmoid" else (m - 1) / (2 * math.sqrt(math.pi))
            return float(2 / self.sigma * m / d.sum() * (slopes * drops).max())
        if self.noise == "sigmoid":
            return 2 / self.sigma * min(0.3734, (m - 1) / (8 * _LN2))
        few = (m - 1) / (2 * math.sqrt(math.pi) * _LN2 * self.sigma)
        return min(few, math.sqrt(math.log(m - 1)) / (self.sigma * _LN2)) if m > 2 else few

    def range(self, b: float, m: int, labels: tuple[float, float] = (0.0, 4.0)) -> tuple[float, float]:
        """Smallest and largest value for scores in [-b, b]; see :meth:`Loss.range`."""
        d = self.table(max(m, 1))
        return (0.0 if self.nonnegative else 1 - len(d) * d[0] / d.sum()), 1 - d[-1] / d[0]

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """The variants that the common tests run on."""
        other = cls(noise="gaussian", gain="linear", discount="letor")
        return cls(), cls(sigma=0.1), cls(noise="gaussian"), cls(discount=(1, 0.5, 0.25, 0)), other


@dataclass(frozen=True, kw_only=True, repr=False)
class SoftRank(LossOfGains, SmoothedMeasure):
    r"""1 - A with A = (1/Z_k) sum_i G_i sum_p D_k(p) P(rank_i = p): the expected discount of a random rank.

    rank_i is 1 plus the number of others above i, each of them above independently of the rest with probability
    P_ij = Phi((s_j - s_i) / (sqrt(2) sigma)), that of two scores with normal noise of standard deviation sigma.

    Parameters
    ----------
    sigma : float, default=1.0
        Standard deviation of the noise, in units of scores.
    k : int, default=None
        Cut-off of NDCG@k; None for the whole list.
    gain : str or mapping, default="exp2"
        The gain of NDCG, as in :class:`~rankwise.measures.NDCG`.
    discount : str or sequence of float, default="log2"
        The discount of NDCG, as in :class:`~rankwise.measures.NDCG`.

    Notes
    -----
    For short lists: time O(n m min(k, m)) for n documents with a gain above 0, O(m^3) on the whole list; memory O(m
    min(k, m)). The others are added one at a time, p_r <- p_{r-1} P_ij + p_r (1 - P_ij); the gradient is exact, from
    the same recursion run backwards, without any division. A tends to NDCG@k as sigma goes to 0, if no scores tie. The
    loss is smooth and not convex.

    **Not the noise's own distribution.** The mean of the rank is the one under the noise, its distribution is not,
    because all comparisons of i share the noise of i: three equal scores make its rank uniform, but (1/4, 1/2, 1/4)
    here. For m = 2 they agree. For a convex D (such as "log2" without a cut-off, or k = 1) A never exceeds the expected
    NDCG under the noise, hence 0 <= 1 - A. Proof: given the noise of i, the comparisons are independent, and all their
    probabilities P_j fall as it grows. The expected discount F(P) is linear in each P_j, with a slope that grows with
    every other P_j because D is convex. P_j and that slope move together, so their covariance is not negative, and
    putting means in the place of P_1, P_2, ..., one after the other, never increases the mean of F.

    **Range.** Otherwise A can exceed 1. It grows with D_k, and a convex D above D_k bounds it: by Z_m / Z_k
    <= sum D / sum D_k for "log2" with a cut-off; by m D(1) / sum D_k, from the constant D(1), for any discount. And
    A >= D_k(m) / D(1).

    **G1.** Scores moved by abs(v_j) <= 1 move A by at most (2/Z) sum_i G_i sum_j c_ij E[d_ij]: c the slope of P_ij, at
    most 1 / (2 sqrt(pi) sigma), and d the drop of D_k from the rank without j to the next. So
    G1 <= (m / sum D_k) (m-1) max d / (sqrt(pi) sigma). For "log2" without a cut-off and N = m - 1 >= 2 also
    G1 <= 4 a sqrt(log N) / sigma, a = log2(3) - 1. Proof: sqrt(2) sigma c <= sqrt(2 log N) (P + 1/N), as in
    :class:`SoftRankNDCG`, and p (D(p) - D(p+1)) <= a D(p+1), so every E[d] <= a E[D(rank)], and
    sum_j P_ij E[d_ij] = E[(rank - 1) (D(rank - 1) - D(rank))] <= a E[D(rank)]; then A <= 1.

    References
    ----------
    M. Taylor, J. Guiver, S. Robertson, T. Minka (2008). SoftRank: optimizing non-smooth rank metrics. WSDM.
    doi:10.1145/1341531.1341544.

    Examples
    --------
    >>> value, gradient = SoftRank()([0.3, 0.1, 0.9, 0.5, -0.2], [2, 0, 1, 0, 3])
    >>> round(value, 6)
    0.411573
    """

    sigma: PositiveFloat = 1.0
    k: PositiveInt | None = None
    gain: Any = "exp2"
    discount: Any = "log2"

    name = "SoftRank"
    smooth = True
    kernel = soft_rank_formula

    @property
    def nonnegative(self) -> bool:  # type: ignore[override]
        """True for a convex discount, "log2" with k None or 1; with others A can exceed 1."""
        return bool(self.discount == "log2" and self.k in (None, 1))

    @property
    def smooths(self) -> Measure | None:
        """NDCG@k with this gain and discount."""
        return NDCG(gain=self.gain, discount=self.discount, cutoff=self.k)

    def params(self) -> tuple[float, ...]:
        """The parameters as the kernel reads them."""
        return self.sigma, np.inf if self.k is None else float(self.k), float(self.nonnegative)

    def _cut_table(self, m: int) -> Vector:
        """The discounts of ``m`` positions, 0 beyond the cut-off."""
        return np.where(np.arange(m) < (m if self.k is None else self.k), self.table(m), 0.0)

    def lipschitz_l1(self, m: int) -> float:
        """G1 of queries of at most ``m`` documents; see :meth:`Loss.lipschitz_l1` and Notes."""
        if m < 2:
            return 0.0
        d = self._cut_table(m)
        steepest = m / d.sum() * (m - 1) * (d[:-1] - d[1:]).max() / (math.sqrt(math.pi) * self.sigma)
        if self.discount == "log2" and self.k is None and m > 2:
            steepest = min(steepest, 4 * (math.log2(3) - 1) * math.sqrt(math.log(m - 1)) / self.sigma)
        return float(steepest)

    def range(self, b: float, m: int, labels: tuple[float, float] = (0.0, 4.0)) -> tuple[float, float]:
        """Smallest and largest value for scores in [-b, b]; see :meth:`Loss.range`."""
        m = max(m, 1)
        whole, cut = self.table(m), self._cut_table(m)
        most = whole.sum() if self.discount == "log2" else m * whole[0]
        return (0.0 if self.nonnegative else 1 - most / cut.sum()), 1 - cut[-1] / cut[0]

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """The variants that the common tests run on."""
        return cls(), cls(sigma=0.3, k=3), cls(k=1), cls(k=5, gain="linear", discount="letor")
