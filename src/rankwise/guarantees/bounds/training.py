r"""The queries at hand: what a boosted ranker has reached on them, and what a minimized loss implies for the measure.

All bounds of this module are about the training queries, not about future queries. :func:`smoothing_error`,
:func:`surrogate_above_loss` and :func:`type_two_below_type_one` compare a loss that a ranker minimizes with the measure
that is reported.

:func:`adarank_certificate` states that 1 - (mean measure of AdaRank on its training queries) <= 1 + log Pi, where Pi =
prod_t exp(-delta_t) rho_t with rho_t = ((1 + phi_t) exp(-alpha_t) + (1 - phi_t) exp(alpha_t)) / 2, over the rounds up
to the one that is returned. At AdaRank's own alpha = log((1 + phi) / (1 - phi)) / 2 rho is sqrt(1 - phi^2).

The proof is for queries of weights v_q > 0 that sum to 1 (1/Q each where there are none). E_t(q) is the measure of
query q after round t, E_0 = 0; E(q, h_t) that of the feature of round t, in [0, 1]; the distribution of round t is
P_t(q) = v_q exp(-E_{t-1}(q)) / Z_{t-1} with Z_t = sum_q v_q exp(-E_t(q)), so Z_0 = 1; phi_t = sum_q P_t(q) E(q,
h_t); and delta_t is the least over queries of E_t(q) - E_{t-1}(q) - alpha_t E(q, h_t).

1. exp(-E_t(q)) <= exp(-delta_t) exp(-E_{t-1}(q)) exp(-alpha_t E(q, h_t)), by the definition of delta_t.
2. exp(-a x) <= ((1 + x) exp(-a) + (1 - x) exp(a)) / 2 for x in [-1, 1]: an exponential lies below its chord.
3. Multiplied by v_q and summed: Z_t <= exp(-delta_t) Z_{t-1} rho_t, hence Z_T <= Pi.
4. An exponential of a mean is at most the mean of exponentials: exp(-sum_q v_q E_T(q)) <= Z_T. Hence the weighted mean
   is at least -log Pi. The paper uses exp(-x) >= 1 - x instead, which gives 1 - Pi.

The first form is never the weaker one, since log x <= x - 1. As a measure is at most 1, Pi is at least 1/e: the paper's
form certifies 0.632 at best, however well the queries are ranked. The alpha of step 1 may be any number, and E_T may be
measured again, for instance on scores that were rounded otherwise, as long as delta_T is computed from it.

If the measure is a dot product of scores and labels, so that E(q, f + alpha h) = E(q, f) + alpha E(q, h), every delta
is 0, and each round with phi_t > 0 lowers Pi: the paper's remark after Theorem 4. Measures of rankings are no dot
products, and delta is mostly below 0 there.

:func:`adarank_logistic_certificate` is the counterpart for the logistic type one bound psi(E) = log(1 + exp(-E)), whose
rounds weight queries by -psi'(E) = 1/(1 + exp(E)): P_t(q) = v_q p_t(q) / mass_t with p_t(q) = 1/(1 + exp(E_{t-1}(q)))
and mass_t = sum_q v_q p_t(q). It states that the weighted mean of psi(E_T(q)) is at most B = log 2 + sum_t log(1 +
mass_t (exp(-delta_t) rho_t - 1)), hence 1 - (mean measure) <= 1 + log(exp(B) - 1).

1. psi(E + x) - psi(E) = log(1 + p (exp(-x) - 1)) for p = 1/(1 + exp(E)), which decreases in x.
2. E_t(q) - E_{t-1}(q) >= delta_t + alpha_t E(q, h_t). A mean of logarithms is at most the logarithm of the mean: the
   weighted mean of psi grows in round t by at most log(1 + mass_t (exp(-delta_t) sum_q P_t(q) exp(-alpha_t E(q, h_t))
   - 1)). By the chord above the sum is at most rho_t. The mean begins at psi(0) = log 2.
3. psi is convex: psi of the mean measure is at most the mean of psi, hence at most B, and psi(x) <= B is x >=
   -log(exp(B) - 1).

References
----------
J. Xu, H. Li, T.-Y. Liu, Y. Peng, M. Lu, W.-Y. Ma. Direct optimization of evaluation measures in learning to rank.
Microsoft Research Asia. Theorem 4, and types one and two.

O. Chapelle, M. Wu (2010). Gradient descent optimization of smoothed information retrieval metrics. Information
Retrieval 13(3), 216-235. doi:10.1007/s10791-009-9110-3.
"""

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.errors import DataError, RankwiseError
from rankwise.guarantees._bound import TRAINING, Bound, Precondition, refuse_unless

Floats = NDArray[np.float64]

ROUNDS = Precondition(
    "phi, alpha and delta are those of every round up to the returned one, in a measure within [0, 1]"
)
_training_bound = partial(Bound, kind="training", scope=TRAINING)
REWEIGHTED = Precondition("round t weights a query by its own weight times exp(-measure) after round t - 1")

LOGISTIC = Precondition(
    "round t weights a query by its own weight times 1 / (1 + exp(measure)) after round t - 1, and mass is their mean"
)

# A bound on the rounding error of a few additions and a logarithm, per round.
_ROUNDING = 8 * 2.0**-52


def log_factor(*, phi: float, alpha: float, delta: float) -> float:
    """log(exp(-delta) rho) of one round; log Pi is the sum over rounds.

    Parameters
    ----------
    phi : float
        Mean measure of the chosen feature under the distribution of the round.
    alpha : float
        The weight of the feature.
    delta : float
        Least over queries of (measure after the round) - (before it) - alpha (measure of the feature).

    Returns
    -------
    float
        The logarithm of the factor.

    Examples
    --------
    >>> round(log_factor(phi=0.6, alpha=math.log(2), delta=0.0), 12) == round(math.log(0.8), 12)
    True
    """
    refuse_unless("log_factor", alpha=alpha, delta=delta)
    if not 0 <= phi <= 1:
        raise RankwiseError(f"log_factor: phi must be a mean of measures between 0 and 1, got {phi!r}")
    ends = [math.log1p(phi) - alpha]
    if phi < 1:
        ends.append(math.log1p(-phi) + alpha)
    largest = max(ends)  # taken out, so that no exponential overflows
    return largest + math.log(sum(math.exp(end - largest) for end in ends) / 2) - delta


def adarank_certificate(*, phi: Sequence[float], alpha: Sequence[float], delta: Sequence[float]) -> Bound:
    """AdaRank's training queries: 1 - (mean measure) <= 1 + log Pi, that is, a mean measure of -log Pi or more.

    The value is rounded upwards, so it holds for the mean as computed. Without rounds it is vacuous: Pi = 1.

    Parameters
    ----------
    phi : sequence of float
        Mean measure of the chosen feature under the distribution of the round, for every round.
    alpha : sequence of float
        The weight of the feature.
    delta : sequence of float
        Least over queries of (measure after the round) - (before it) - alpha (measure of the feature).

    Returns
    -------
    Bound
        The bound.

    Examples
    --------
    >>> adarank_certificate(phi=[0.6], alpha=[0.5], delta=[0.2])
    AdaRank certificate: 1 - mean measure <= 0.595395 [1 + log Pi; rounds=1, log_Pi=-0.404605; proved here]
    """
    total, lost = log_pi("adarank_certificate", phi, alpha, delta)
    return _training_bound(
        name="AdaRank certificate",
        bounds="1 - mean measure",
        statement="1 + log Pi",
        value=max(0.0, 1 + total + lost),
        terms={"rounds": float(len(phi)), "log_Pi": total},
        preconditions=(ROUNDS, REWEIGHTED),
        source="Theorem 4 of direct optimization, by the convexity of exp in place of exp(-x) >= 1 - x",
        ceiling=1.0,
    )


def adarank_logistic_certificate(
    *, phi: Sequence[float], alpha: Sequence[float], delta: Sequence[float], mass: Sequence[float]
) -> Bound:
    """AdaRank with the logistic bound: 1 - (mean measure on the training queries) <= 1 + log(exp(B) - 1).

    The value is rounded upwards, so that it holds for the mean as computed. Without rounds it is vacuous: B = log 2.

    Parameters
    ----------
    phi : sequence of float
        Mean measure of the weak ranker under the distribution of the round, for every round.
    alpha : sequence of float
        The weight of the weak ranker.
    delta : sequence of float
        Least over queries of (measure after the round) - (before it) - alpha (measure of the weak ranker).
    mass : sequence of float
        Mean over queries of 1/(1 + exp(measure)) before the round.

    Returns
    -------
    Bound
        The bound; the module's documentation has the proof.

    Examples
    --------
    >>> adarank_logistic_certificate(phi=[0.6], alpha=[0.5], delta=[0.2], mass=[0.5])
    AdaRank logistic certificate: 1 - mean measure <= 0.595395 [1 + log(exp(B) - 1); rounds=1, B=0.51117; proved here]
    """
    name = "adarank_logistic_certificate"
    if not len(phi) == len(alpha) == len(delta) == len(mass):
        raise RankwiseError(
            f"{name}: phi, alpha, delta and mass must have one number per round, "
            f"got {len(phi)}, {len(alpha)}, {len(delta)} and {len(mass)}"
        )
    total, lost = logistic_bound(phi, alpha, delta, mass)
    above = total + lost
    return _training_bound(
        name="AdaRank logistic certificate",
        bounds="1 - mean measure",
        statement="1 + log(exp(B) - 1)",
        # without an exponential that overflows; B <= 0 is below what any measure in [0, 1] gives
        value=max(0.0, 1 + above + math.log1p(-math.exp(-above))) if above > 0 else 0.0,
        terms={"rounds": float(len(phi)), "B": total},
        preconditions=(ROUNDS, LOGISTIC),
        source="type one bounds of direct optimization; the counterpart of Theorem 4 for the logistic function",
        ceiling=1.0,
    )


def logistic_bound(
    phi: Sequence[float], alpha: Sequence[float], delta: Sequence[float], mass: Sequence[float]
) -> tuple[float, float]:
    """(B, a bound on its rounding error)."""
    steps, lost = [math.log(2)], [1.0]
    for p, a, d, m in zip(phi, alpha, delta, mass, strict=True):
        if not 0 <= m <= 1:
            raise RankwiseError(f"adarank_logistic_certificate: mass must be between 0 and 1, got {m!r}")
        # beyond exp(700) the bound is vacuous in any case
        factor = math.exp(min(log_factor(phi=float(p), alpha=float(a), delta=float(d)), 700.0))
        grown = (1 - m) + m * factor
        steps.append(math.log(grown) if grown > 0 else -math.inf)
        lost.append(1 + abs(a) + abs(d))
    return math.fsum(steps), _ROUNDING * math.fsum(lost)


def log_pi(where: str, phi: Sequence[float], alpha: Sequence[float], delta: Sequence[float]) -> tuple[float, float]:
    """(log Pi, a bound on its rounding error)."""
    if not len(phi) == len(alpha) == len(delta):
        raise RankwiseError(
            f"{where}: phi, alpha and delta must have one number per round, "
            f"got {len(phi)}, {len(alpha)} and {len(delta)}"
        )
    rounds = list(zip(phi, alpha, delta, strict=True))
    factors = [log_factor(phi=float(p), alpha=float(a), delta=float(d)) for p, a, d in rounds]
    lost = _ROUNDING * math.fsum(1 + abs(a) + abs(d) for _, a, d in rounds)
    return math.fsum(factors), lost


def smoothing_error(
    scores: ArrayLike, gains: ArrayLike, *, sigma: float, k: int | None = None, discounts: ArrayLike | None = None
) -> Bound:
    r"""How far smooth NDCG is from NDCG on one list: abs(A - NDCG) <= G_max (sum D_j / Z) S/(1 + S).

    .. math:: S = \min\Big((m-1) e^{-\mu/\sigma}, \; 2 \sum_{t=1}^{m-1} e^{-t^2 \mu/\sigma}\Big),

    with mu the smallest squared gap between two scores. If scores are tied, mu is 0, and the bound holds for NDCG with
    the tied documents in any order.

    Parameters
    ----------
    scores : array-like, shape (n_documents,)
        Scores of one query.
    gains : array-like, shape (n_documents,)
        Gains of its documents, 0 or more.
    sigma : float
        Width of the smoothing.
    k : int, default=None
        Cut-off; None for the whole list.
    discounts : array-like, default=None
        Discounts of positions 1, 2, ...; None for 1/log2(1 + position).

    Returns
    -------
    Bound
        The bound, with every constant among its terms.

    Notes
    -----
    Position j averages gains with weights exp(-(s_i - s_(j))^2/sigma), in which its own document has at least the share
    1/(1 + S): there are at most (m - 1) others, at gaps sqrt(mu), 2 sqrt(mu), ... on either side.

    Examples
    --------
    >>> bound = smoothing_error([0.3, 0.1, 0.9, 0.5, -0.2], [3, 0, 1, 0, 7], sigma=0.01)
    >>> round(bound.terms["mu"], 3), round(bound.value, 4)
    (0.04, 0.0776)
    """
    s, gain = (_values("smoothing_error", one) for one in (scores, gains))
    if len(s) != len(gain):
        raise DataError(
            f"smoothing_error: every document must have a score and a gain, got {len(s):,} and {len(gain):,}"
        )
    if (gain < 0).any():
        raise DataError(f"smoothing_error: gains must be non-negative, got {gain.min():g}")
    refuse_unless("smoothing_error", above=0, sigma=sigma)
    m = len(s)
    discount = _discounts(m, k, discounts)
    ideal = math.fsum((np.sort(gain)[::-1] * discount).tolist())
    share = math.fsum(discount.tolist()) / ideal if ideal > 0 else 0.0  # without gains both values are 0
    gap = float(np.diff(np.sort(s)).min()) if m > 1 else math.inf
    mu = gap * gap  # infinite rather than an error for huge scores
    S = min((m - 1) * math.exp(-mu / sigma), 2 * float(np.exp(-(np.arange(1, m) ** 2) * mu / sigma).sum()))
    largest = float(gain.max(initial=0.0))
    return _training_bound(
        name="Smoothing error",
        bounds="abs(smooth NDCG - NDCG)",
        statement="G_max share S/(1 + S), share = sum of discounts / ideal DCG",
        value=largest * share * S / (1 + S),
        terms={"G_max": largest, "share": share, "S": S, "mu": mu, "sigma": sigma, "m": float(m)},
        source="the explicit constant of SmoothRank's order exp(-mu/sigma)",
        # both numbers are 0 or more, NDCG is 1 at most and A is G_max share at most
        ceiling=max(1.0, largest * share),
    )


def surrogate_above_loss(surrogate: ArrayLike, losses: ArrayLike | None = None) -> Bound:
    """Mean loss of the measure <= mean surrogate, over the same queries: what a low training loss certifies.

    For the SLAM loss with weights that cover the measure, the worst pair's hinge, the SVMmap hinge and the type two
    losses it holds query by query, under pessimistic ties, for any scores.

    Parameters
    ----------
    surrogate : array-like, shape (n_queries,)
        The surrogate of every query.
    losses : array-like, shape (n_queries,), default=None
        1 - measure of the same queries under pessimistic ties; if given, the inequality is checked on each.

    Returns
    -------
    Bound
        The bound.

    Examples
    --------
    >>> bound = surrogate_above_loss([0.5, 0.0, 0.25, 0.05], losses=[0.4, 0.0, 0.0, 0.05])
    >>> bound.value, bound.applies, bound.terms["mean_loss"]
    (0.2, True, 0.1125)
    """
    phi = _values("surrogate_above_loss", surrogate)
    terms = {"n": float(len(phi))}
    below: bool | None = None
    if losses is not None:
        measured = _values("surrogate_above_loss", losses)
        if len(measured) != len(phi):
            raise DataError(f"every query must have a surrogate and a loss, got {len(phi):,} and {len(measured):,}")
        below = bool((measured <= phi + 1e-9).all())
        terms["mean_loss"] = math.fsum(measured.tolist()) / len(measured)
    return _training_bound(
        name="Surrogate above loss",
        bounds="mean of 1 - measure on these queries, pessimistic ties",
        statement="mean surrogate",
        value=math.fsum(phi.tolist()) / len(phi),
        terms=terms,
        preconditions=(Precondition("on every query the surrogate is at least 1 - measure", below),),
        ceiling=1.0,
    )


def type_two_below_type_one(type_one: ArrayLike, *, margin: ArrayLike, achieved: ArrayLike) -> Bound:
    """Mean type two loss <= mean type one loss, if on every query the margin is at least the measure achieved.

    Theorem 3 of Xu and others, which holds for any nondecreasing function that is 0 or more. Its condition is hardly
    ever met: with a measure above 0 every perfect order must beat every other order by that much.

    Parameters
    ----------
    type_one : array-like, shape (n_queries,)
        The loss phi(-measure) of each query.
    margin : array-like, shape (n_queries,)
        The smallest F(perfect) - F(imperfect) over all pairs of orders of each query.
    achieved : array-like, shape (n_queries,)
        The measure of each query, in the order of its scores.

    Returns
    -------
    Bound
        The bound.

    Examples
    --------
    >>> type_two_below_type_one([0.37, 0.37], margin=[1.2, 0.4], achieved=[1.0, 1.0]).applies
    False
    """
    phi, gaps, measure = (_values("type_two_below_type_one", one) for one in (type_one, margin, achieved))
    if not len(phi) == len(gaps) == len(measure):
        raise DataError(
            f"every query must have a loss, a margin and a measure, "
            f"got {len(phi):,}, {len(gaps):,} and {len(measure):,}"
        )
    met = gaps >= measure
    return _training_bound(
        name="Type two below type one",
        bounds="mean type two loss",
        statement="mean type one loss",
        value=math.fsum(phi.tolist()) / len(phi),
        terms={"n": float(len(phi)), "lists_with_the_margin": float(met.sum())},
        preconditions=(
            Precondition("on every query each perfect order beats each other one by the measure", bool(met.all())),
            Precondition("both losses are made of the same nondecreasing function, which is 0 or more"),
        ),
        source="Theorem 3 of direct optimization",
    )


def _values(where: str, values: ArrayLike) -> Floats:
    """Validate a vector of finite numbers."""
    found = np.asarray(values, dtype=np.float64)
    if found.ndim != 1 or not len(found) or not np.isfinite(found).all():
        raise DataError(f"{where}: values must be a non-empty array of finite numbers, got {values!r:.80}")
    return found


def _discounts(m: int, k: int | None, discounts: ArrayLike | None) -> Floats:
    """Discounts of ``m`` positions, 0 beyond the cut-off."""
    if k is not None:
        refuse_unless("smoothing_error", least=1, k=k)
    found = 1 / np.log2(np.arange(2, m + 2)) if discounts is None else _values("smoothing_error", discounts)
    if len(found) < m or (found < 0).any() or (np.diff(found) > 0).any():
        raise DataError(f"smoothing_error: discounts must be {m:,} non-negative, decreasing numbers, got {found!r:.80}")
    return np.where(np.arange(m) < (m if k is None else k), found[:m], 0.0)
