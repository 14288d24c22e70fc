r"""What a boosted ranker has reached on its training queries, computed from its rounds.

:func:`adarank_certificate` states that 1 - (mean measure of AdaRank on its training queries) <= 1 + log Pi, where Pi =
prod_t exp(-delta_t) rho_t with rho_t = ((1 + phi_t) exp(-alpha_t) + (1 - phi_t) exp(alpha_t)) / 2, over the rounds up
to the one that is returned. At AdaRank's own alpha = log((1 + phi) / (1 - phi)) / 2 rho is sqrt(1 - phi^2).

The proof is for queries of weights v_q > 0 that sum to 1 (1/Q each where there are none). E_t(q) is the measure of
query q after round t, E_0 = 0; E(q, h_t) that of the feature of round t, in [0, 1]; the distribution of round t is
P_t(q) = v_q exp(-E_{t-1}(q)) / Z_{t-1} with Z_t = sum_q v_q exp(-E_t(q)), so that Z_0 = 1; phi_t = sum_q P_t(q) E(q,
h_t); and delta_t is the least over queries of E_t(q) - E_{t-1}(q) - alpha_t E(q, h_t).

1. exp(-E_t(q)) <= exp(-delta_t) exp(-E_{t-1}(q)) exp(-alpha_t E(q, h_t)), by the definition of delta_t.
2. exp(-a x) <= ((1 + x) exp(-a) + (1 - x) exp(a)) / 2 for x in [-1, 1]: an exponential lies below its chord.
3. Multiplied by v_q and summed: Z_t <= exp(-delta_t) Z_{t-1} rho_t, hence Z_T <= Pi.
4. An exponential of a mean is at most the mean of exponentials: exp(-sum_q v_q E_T(q)) <= Z_T. Hence the weighted mean
   is at least -log Pi. The paper uses exp(-x) >= 1 - x instead, which gives 1 - Pi.

The first form is never the weaker one, since log x <= x - 1. As a measure is at most 1, Pi is at least 1/e: the paper's
form certifies 0.632 at best, however well the queries are ranked. The alpha of step 1 may be any number, and E_T may be
measured again, for instance on scores that were rounded otherwise, as long as delta_T is computed from it.

References
----------
J. Xu, H. Li, T.-Y. Liu, Y. Peng, M. Lu, W.-Y. Ma. Direct optimization of evaluation measures in learning to rank.
Microsoft Research Asia.
Theorem 4.
"""

import math
from collections.abc import Sequence

from rankwise._errors import RankwiseError
from rankwise.guarantees._bound import Bound, Precondition, refuse_unless

ROUNDS = Precondition(
    "phi, alpha and delta are those of every round up to the returned one, in a measure within [0, 1]"
)
REWEIGHTED = Precondition("round t weights a query by its own weight times exp(-measure) after round t - 1")

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
        raise RankwiseError(f"log_factor: phi is a mean of measures between 0 and 1: found {phi!r}")
    ends = [math.log1p(phi) - alpha]
    if phi < 1:
        ends.append(math.log1p(-phi) + alpha)
    largest = max(ends)  # taken out, so that no exponential overflows
    return largest + math.log(sum(math.exp(end - largest) for end in ends) / 2) - delta


def adarank_certificate(*, phi: Sequence[float], alpha: Sequence[float], delta: Sequence[float]) -> Bound:
    """AdaRank's training queries: 1 - (mean measure) <= 1 + log Pi, that is, a mean measure of -log Pi or more.

    The value is rounded upwards, so that it holds for the mean as computed. Without rounds it is vacuous: Pi = 1.

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
    return Bound(
        name="AdaRank certificate",
        bounds="1 - mean measure",
        statement="1 + log Pi",
        value=max(0.0, 1 + total + lost),
        terms={"rounds": float(len(phi)), "log_Pi": total},
        preconditions=(ROUNDS, REWEIGHTED),
        source="Theorem 4 of direct optimisation, by the convexity of exp in place of exp(-x) >= 1 - x",
        ceiling=1.0,
        kind="training",
    )


def log_pi(where: str, phi: Sequence[float], alpha: Sequence[float], delta: Sequence[float]) -> tuple[float, float]:
    """(log Pi, a bound on its rounding error)."""
    if not len(phi) == len(alpha) == len(delta):
        raise RankwiseError(
            f"{where}: phi, alpha and delta have one number per round: found {len(phi)}, {len(alpha)} and {len(delta)}"
        )
    rounds = list(zip(phi, alpha, delta, strict=True))
    factors = [log_factor(phi=float(p), alpha=float(a), delta=float(d)) for p, a, d in rounds]
    lost = _ROUNDING * math.fsum(1 + abs(a) + abs(d) for _, a, d in rounds)
    return math.fsum(factors), lost
