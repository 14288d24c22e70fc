r"""What a boosted ranker has reached on its training lists, by the account of its rounds.

=============================  =============================  ============================================
function                       statement                      bounds
=============================  =============================  ============================================
:func:`adarank_certificate`    1 + log Pi                     1 - (mean measure of AdaRank on its lists)
:func:`adarank_printed`        Pi                             the same, as the paper has it
=============================  =============================  ============================================

Pi = prod_t exp(-delta_t) rho_t with rho_t = ((1 + phi_t) exp(-alpha_t) + (1 - phi_t) exp(alpha_t)) / 2, over the rounds
up to the one that is returned. At AdaRank's own alpha = log((1 + phi) / (1 - phi)) / 2 rho is sqrt(1 - phi^2).

The proof, for lists of weights v_q > 0 that add up to 1 (1/Q each where there are none). E_t(q) is the measure of
list q after round t, E_0 = 0; E(q, h_t) that of the feature of round t, in [0, 1]; the distribution of round t is
P_t(q) = v_q exp(-E_{t-1}(q)) / Z_{t-1} with Z_t = sum_q v_q exp(-E_t(q)), so that Z_0 = 1; phi_t = sum_q P_t(q) E(q,
h_t); and delta_t is the least over lists of E_t(q) - E_{t-1}(q) - alpha_t E(q, h_t).

1. exp(-E_t(q)) <= exp(-delta_t) exp(-E_{t-1}(q)) exp(-alpha_t E(q, h_t)), by the definition of delta_t.
2. exp(-a x) <= ((1 + x) exp(-a) + (1 - x) exp(a)) / 2 for x in [-1, 1]: an exponential lies below its chord.
3. Multiplied by v_q and added up: Z_t <= exp(-delta_t) Z_{t-1} rho_t, hence Z_T <= Pi.
4. An exponential of a mean is at most the mean of exponentials: exp(-sum_q v_q E_T(q)) <= Z_T. Hence the mean by weight
   is at least -log Pi. The paper goes on by exp(-x) >= 1 - x instead, which gives 1 - Pi.

The first is never the weaker one, since log x <= x - 1. As a measure is at most 1, Pi is at least 1/e: the paper's form
certifies 0.632 at best, however well the lists are ranked. The alpha of step 1 may be any number, and E_T may be
measured anew, for instance on scores that were rounded otherwise, as long as delta_T is made of it.
"""

import math
from collections.abc import Sequence

from rankwise._errors import RankwiseError
from rankwise.guarantees._bound import Bound, Precondition, refuse_unless

ROUNDS = Precondition(
    "phi, alpha and delta are those of every round up to the returned one, in a measure within [0, 1]"
)
REWEIGHTED = Precondition("round t weighs a list by its own weight times exp(-measure) after round t - 1")

# What a few additions and a logarithm may lose, for every round.
_ROUNDING = 8 * 2.0**-52


def log_factor(*, phi: float, alpha: float, delta: float) -> float:
    """log(exp(-delta) rho) of one round; log Pi is the sum over rounds.

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
    """AdaRank's training lists: 1 - (mean measure) <= 1 + log Pi, that is, a mean measure of -log Pi or more.

    Rounded upwards, so that it is true of the mean as computed. No rounds at all say nothing: Pi = 1.

    Parameters
    ----------
    phi : mean measure of the chosen feature under the distribution of the round, for every round
    alpha : the weight that the feature was given
    delta : least over lists of (measure after the round) - (before it) - alpha (measure of the feature)

    Examples
    --------
    >>> adarank_certificate(phi=[0.6], alpha=[0.5], delta=[0.2])
    AdaRank certificate: 1 - mean measure <= 0.595395 [1 + log Pi; rounds=1, log_Pi=-0.404605; proved here]
    """
    log_pi, lost = _log_pi("adarank_certificate", phi, alpha, delta)
    return Bound(
        name="AdaRank certificate",
        bounds="1 - mean measure",
        statement="1 + log Pi",
        value=max(0.0, 1 + log_pi + lost),
        terms={"rounds": float(len(phi)), "log_Pi": log_pi},
        preconditions=(ROUNDS, REWEIGHTED),
        source="Theorem 4 of direct optimisation, by the convexity of exp in place of exp(-x) >= 1 - x",
        ceiling=1.0,
        kind="training",
    )


def adarank_printed(*, phi: Sequence[float], alpha: Sequence[float], delta: Sequence[float]) -> Bound:
    """The same as the paper states it: 1 - (mean measure) <= Pi, which is never below 1/e.

    Parameters as for :func:`adarank_certificate`. Where alpha is not the formula's (a phi of 1 would make it infinite),
    rho stands for the paper's sqrt(1 - phi^2).
    """
    log_pi, lost = _log_pi("adarank_printed", phi, alpha, delta)
    most = log_pi + lost
    return Bound(
        name="AdaRank, Theorem 4",
        bounds="1 - mean measure",
        statement="Pi",
        value=math.exp(most) if most < 700 else math.inf,
        terms={"rounds": float(len(phi)), "log_Pi": log_pi},
        preconditions=(ROUNDS, REWEIGHTED),
        source="Theorem 4 of direct optimisation",
        ceiling=1.0,
        kind="training",
    )


def _log_pi(where: str, phi: Sequence[float], alpha: Sequence[float], delta: Sequence[float]) -> tuple[float, float]:
    """(log Pi, what rounding may have taken from it)."""
    if not len(phi) == len(alpha) == len(delta):
        raise RankwiseError(
            f"{where}: phi, alpha and delta have one number a round: found {len(phi)}, {len(alpha)} and {len(delta)}"
        )
    rounds = list(zip(phi, alpha, delta, strict=True))
    factors = [log_factor(phi=float(p), alpha=float(a), delta=float(d)) for p, a, d in rounds]
    lost = _ROUNDING * math.fsum(1 + abs(a) + abs(d) for _, a, d in rounds)
    return math.fsum(factors), lost
