"""StochasticNDCG: logistic pairs weighted by what a swap under perturbed scores changes in NDCG@k.

The noise is a hash of the seed, the iteration, the draw and the place of the document in the set. It depends
neither on threads nor on chunks. :meth:`StochasticNDCG.prepare` leaves those places in the slot of the labels: gains
tell all that the kernels need of a label.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

import numpy as np

from rankwise._kernels.bits import mix
from rankwise._kernels.exp import exp, log1pexp, sigmoid
from rankwise._kernels.machine.jit import kernel
from rankwise._kernels.sorting import sort_carrying
from rankwise._parameters import NonNegativeFloat, NumberRange, PositiveInt
from rankwise.losses._base import Rows, Vector
from rankwise.losses._gains import LossOfGains
from rankwise.losses.smooth_ndcg import SmoothNDCG

# Whole numbers that are exact as the float64 that the kernels take.
Word = Annotated[int, NumberRange(0, 2**53)]
_STEP = np.uint64(0x9E3779B97F4A7C15)
_TWELVE = np.uint64(12)
# Scores that are closer have powers e^s without underflow.
_SPREAD = 600.0
_SEED, _ITERATION, _DRAWS, _BETA, _CUTOFF = range(5)


@kernel(inline="always")
def _word(number):
    """A whole number, kept as a float64, as a word of 64 bits."""
    return np.uint64(np.int64(number))


@kernel
def _perturbed(score, place, draw, params, key, order):
    """Minus the perturbed scores into ``key``, then sorted, and the documents in that order."""
    stream = mix(mix(mix(_word(params[_SEED]) + _STEP) ^ _word(params[_ITERATION])) + _STEP * np.uint64(draw + 1))
    for p in range(len(score)):
        bits = mix(stream ^ mix(_word(place[p]) + _STEP)) >> _TWELVE
        uniform = (np.float64(bits) + 0.5) * 2.0**-52  # never 0 or 1
        key[p] = params[_BETA] * math.log(-math.log(uniform)) - score[p]
        order[p] = p


@kernel
def _pairs_of(a, score, gain, discount, slope, weight, first, last):
    """The weights of the pairs of the document at position ``a`` with those after it, and sigmoid(s_lo - s_hi)."""
    for b in range(first, last):
        lead = gain[a] - gain[b]
        x = score[b] - score[a]
        weight[b] = abs(lead) * (discount[a] - discount[b])
        slope[b] = sigmoid(x if lead > 0.0 else -x)


@kernel
def _pairs_by_ratios(a, power, gain, discount, slope, weight, first, last):
    """The same from the powers e^s: sigmoid(s_lo - s_hi) = e^s_lo / (e^s_hi + e^s_lo)."""
    for b in range(first, last):
        lead = gain[a] - gain[b]
        weight[b] = abs(lead) * (discount[a] - discount[b])
        slope[b] = (power[b] if lead > 0.0 else power[a]) / (power[a] + power[b])


@kernel(fastmath={"reassoc", "contract"})
def _add_pairs(a, gain, slope, weight, grad, diagonal, first, last):
    """Add gradient and second derivatives of these pairs."""
    own, own_bend = 0.0, 0.0
    for b in range(first, last):
        pull = weight[b] * slope[b]
        bend = pull * (1.0 - slope[b])
        signed = pull if gain[a] > gain[b] else -pull
        grad[b] += signed
        diagonal[b] += bend
        own += signed
        own_bend += bend
    grad[a] -= own
    diagonal[a] += own_bend


@kernel
def _loss_of_pairs(a, score, gain, weight, first, last):
    """The sum of w log(1 + exp(s_lo - s_hi)) over these pairs."""
    total = 0.0
    for b in range(first, last):
        x = score[b] - score[a]
        total += weight[b] * log1pexp(x if gain[a] > gain[b] else -x)
    return total


@kernel
def _over_draws(score, place, gain, grad, diagonal, table, params, valued):
    """The mean over the draws of gradient and second derivatives, and of the loss where it is ``valued``."""
    size, draws = len(score), int(params[_DRAWS])
    top = int(min(params[_CUTOFF], float(size)))
    key, order = np.empty(size), np.empty(size, np.int64)
    key_buffer, place_buffer, counts = np.empty(size), np.empty(size, np.int64), np.empty(size + 1, np.int64)
    s, g, slope, weight = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    pull, bend, power = np.empty(size), np.empty(size), np.empty(size)
    highest = score.max()
    near = highest - score.min() < _SPREAD  # one power per document in place of one per pair
    for p in range(size):
        power[p] = exp(score[p] - highest)
    e, loss = np.empty(size), 0.0
    for draw in range(draws):
        _perturbed(score, place, draw, params, key, order)
        sort_carrying(key, order, key_buffer, place_buffer, counts)
        for p in range(size):
            s[p], g[p], pull[p], bend[p] = score[order[p]], gain[order[p]], 0.0, 0.0
            e[p] = power[order[p]]
        for a in range(top):
            if near:
                _pairs_by_ratios(a, e, g, table, slope, weight, a + 1, size)
            else:
                _pairs_of(a, s, g, table, slope, weight, a + 1, size)
            _add_pairs(a, g, slope, weight, pull, bend, a + 1, size)
            if valued:
                loss += _loss_of_pairs(a, s, g, weight, a + 1, size)
        for p in range(size):
            grad[order[p]] += pull[p]
            diagonal[order[p]] += bend[p]
    for p in range(size):
        grad[p] /= draws
        diagonal[p] /= draws
    return loss / draws


@kernel
def stochastic_ndcg_formula(score, label, value, grad, table, params):
    """The loss and its gradient; ``label`` holds places, ``value`` gains divided by the ideal DCG."""
    if value.max() == value.min():
        return 0.0
    return _over_draws(score, label, value, grad, np.zeros(len(score)), table, params, True)


@kernel
def stochastic_ndcg_curved(score, label, value, grad, diagonal, table, params):
    """Gradient and second derivatives."""
    if value.max() > value.min():
        _over_draws(score, label, value, grad, diagonal, table, params, False)


@dataclass(frozen=True, kw_only=True, repr=False)
class StochasticNDCG(LossOfGains):
    r"""phi = mean over draws of sum over pairs of w_ij log(1 + exp(s_j - s_i)), label_i > label_j.

    A draw adds noise to the scores, f = s + beta e with e from the standard Gumbel distribution, and ranks by f. A pair
    counts if the better placed of both is among the first k, and weighs what a swap of the two would change in NDCG@k
    if the discount were not cut: w_ij = abs(G_i - G_j) abs(D(pi_i) - D(pi_j)) / Z_k, with the positions pi under f.

    Parameters
    ----------
    k : int, default=10
        Cut-off of NDCG@k; None for the whole list.
    beta : float, default=0.5
        Scale of the noise, in units of the scores; 0 draws none, which is the loss of LambdaRank.
    draws : int, default=4
        Number of rankings that are drawn.
    gain : str or mapping, default="exp2"
        The gain, as in :class:`~rankwise.measures.NDCG`.
    discount : str or sequence of float, default="log2"
        The discount, as in :class:`~rankwise.measures.NDCG`.
    random_state : int, default=0
        Seed of the noise.
    iteration : int, default=0
        The number of the iteration; each one has noise of its own. Boosters advance it, see :meth:`at_iteration`.

    Notes
    -----
    O(m log m + m k) per draw. The noise of a document is a hash of the seed, the iteration, the draw and its place in
    the set, query after query: the same set has the same noise, on any number of threads, and the same query at another
    place of a set has another. Hence ``order_free`` is false.

    **What the gradient is.** The weights w are constants in it. They change only where the order of the perturbed
    scores does, and there the loss jumps: between the jumps the gradient is that of the loss, and the second
    derivatives are exact. Nothing is known about where a descent along it ends. G1 is infinite because of the jumps.

    The range: log(1 + e^(2b)) times the sum of the largest weights of pairs of positions. G_max / Z_k <= 1 / D(1),
    since the ideal list has the largest gain first.

    References
    ----------
    C. Burges, R. Ragno, Q. V. Le (2006). Learning to rank with nonsmooth cost functions. NIPS 19, 193-200.

    A. Gulin, I. Kuralenok, D. Pavlov (2011). Winning the transfer learning track of Yahoo!'s learning to rank
    challenge with YetiRank. JMLR: Workshop and Conference Proceedings 14, 63-76.

    Examples
    --------
    >>> loss = StochasticNDCG(k=5, beta=0.0)
    >>> value, gradient = loss([0.0, 1.0], [1, 0])
    >>> round(value, 6), gradient.round(6).tolist()
    (0.484686, [-0.269812, 0.269812])
    """

    k: PositiveInt | None = 10
    beta: NonNegativeFloat = 0.5
    draws: PositiveInt = 4
    gain: Any = "exp2"
    discount: Any = "log2"
    random_state: Word = 0
    iteration: Word = 0

    name = "StochasticNDCG"
    convex = False
    noisy = True
    kernel = stochastic_ndcg_formula
    curved_kernel = stochastic_ndcg_curved

    @property
    def order_free(self) -> bool:
        return False

    def at_iteration(self, iteration: int) -> Self:
        """The same loss with the noise of another iteration; see :meth:`Loss.at_iteration`."""
        return replace(self, iteration=iteration)

    def prepare(self, labels: Vector, start: Rows, rows: Rows | None) -> tuple[Vector, Vector]:
        """The places of the documents, query after query, and their gains divided by the ideal DCG."""
        place = np.arange(len(labels), dtype=np.float64)
        if rows is not None:
            place[rows[: start[-1]]] = np.arange(start[-1], dtype=np.float64)
        scale = SmoothNDCG(k=self.k, gain=self.gain, discount=self.discount)
        return place, scale.prepare(labels, start, rows)[1]

    def params(self) -> tuple[float, ...]:
        """The parameters as the kernels read them."""
        cutoff = np.inf if self.k is None else float(self.k)
        return float(self.random_state), float(self.iteration), float(self.draws), float(self.beta), cutoff

    def lipschitz_l1(self, m: int) -> float:
        """Infinite: the loss jumps where the order of the perturbed scores changes."""
        return np.inf if m > 1 else 0.0

    def range(self, b: float, m: int, labels: tuple[float, float] = (0.0, 4.0)) -> tuple[float, float]:
        """0 to log(1 + e^(2b)) times the sum of D(p) - D(q) over positions p <= k and q > p, divided by D(1)."""
        discount = self.table(max(m, 1))
        apart = math.fsum(float((discount[p] - discount[p + 1 :]).sum()) for p in range(m)[: self.k])
        return 0.0, float(np.logaddexp(0.0, 2.0 * b)) * apart / float(discount[0])

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """The variants that the common tests run on."""
        return cls(), cls(k=None, beta=2.0, draws=1, gain="linear"), cls(k=2, random_state=5, iteration=3)
