r"""Smooth losses with an optimistic rate: the uniform bound whose gap shrinks like 1/n where the sample's loss is 0.

For a nonnegative loss with values up to B and smoothness H1 in the largest score, with

.. math:: C = 5 \sqrt2 \, W R \sqrt{H_1 \log_2(4mn)/n}, \quad r^* = (4 C \log(3\sqrt B/C))^2, \quad
          r_0 = B (\log(1/\delta) + \log\log n)/n,

every w of the ball has sqrt(L(w)) <= (p + sqrt(p^2 + 4 q))/2, p = sqrt(8 r*) + sqrt(4 r0) and q = risk + 45 r* + 20 r0.

The numbers 45, 8, 4 and 20 come from a theorem of Bousquet that was not checked: the bounds are ``unverified``, and
:func:`rankwise.guarantees.smallest` leaves them out by default. They are vacuous unless n is huge.

References
----------
A. Tewari, S. Chaudhuri (2015). Generalization error bounds for learning to rank: does the length of document lists
matter? ICML, PMLR 37, 315-323.
Theorem 17 and appendix M.
"""

import math

from rankwise.guarantees._bound import Bound, Precondition, refuse_unless, refuse_unless_chance
from rankwise.guarantees.bounds.batch import INDEPENDENT
from rankwise.guarantees.bounds.uniform import BALL, ROWS

SMOOTH_TO_B = Precondition("the loss is between 0 and B, and smooth with constant H1 in the largest score")
SOURCE = "Theorem 17 of the generalisation bounds, with a covering number that is proved; constants of Bousquet's"


def smooth_ball(*, risk: float, H1: float, W: float, radius: float, m: int, n: int, B: float, delta: float) -> Bound:
    r"""Nonnegative smooth losses: L(w) <= ((p + sqrt(p^2 + 4 q))/2)^2 for every w of the ball, see the module.

    The value is infinite, and the bound does not apply, if C >= sqrt(B) or n < 3.

    Parameters
    ----------
    risk : float
        Mean loss on the sample.
    H1 : float
        Smoothness: the largest change of the gradient's l1 norm if every score moves by at most 1.
    W, radius : float
        Radius of the ball of w, and R, a bound on the norm of every row.
    m, n : int
        Number of documents of the longest query, and number of queries.
    B : float
        Losses are between 0 and B.
    delta : float
        Probability that the bound may fail.

    Examples
    --------
    >>> bound = smooth_ball(risk=0.2, H1=1.0, W=1.0, radius=1.0, m=100, n=10**7, B=3.0, delta=0.05)
    >>> round(bound.value, 1), bound.status, bound.vacuous
    (6.6, 'unverified', True)
    """
    refuse_unless("smooth_ball", least=0, risk=risk)
    terms, r_star, r_0, defined = _radii("smooth_ball", H1, W, radius, m, n, B, delta)
    return Bound(
        name="Uniform, smooth",
        bounds="risk",
        statement="((p + sqrt(p^2 + 4 q))/2)^2, p = sqrt(8 r_star) + sqrt(4 r_0), q = risk + 45 r_star + 20 r_0",
        value=_solved(risk, r_star, r_0) if defined else math.inf,
        terms={"risk": risk} | terms,
        preconditions=(
            *_preconditions(terms["C"], B, n),
            Precondition(f"it holds with probability {1 - delta:g} over the queries, for every w of the ball at once"),
        ),
        status="unverified",
        source=SOURCE,
        ceiling=B,
        kind="generalisation",
    )


def smooth_erm(*, L_star: float, H1: float, W: float, radius: float, m: int, n: int, B: float, delta: float) -> Bound:
    """The sample's minimiser over the ball: :func:`smooth_ball` at risk = L* + sqrt(4 r_0 L*) + 4 r_0.

    It holds with probability 1 - 2 delta. The last lines of the paper's proof lose the leading L*.

    Parameters
    ----------
    L_star : float
        Risk of the best w of the ball, or more.
    H1 : float
        Smoothness: the largest change of the gradient's l1 norm if every score moves by at most 1.
    W, radius : float
        Radius of the ball of w, and R, a bound on the norm of every row.
    m, n : int
        Number of documents of the longest query, and number of queries.
    B : float
        Losses are between 0 and B.
    delta : float
        Probability that the bound may fail.
    """
    refuse_unless("smooth_erm", least=0, L_star=L_star)
    terms, r_star, r_0, defined = _radii("smooth_erm", H1, W, radius, m, n, B, delta)
    risk = L_star + math.sqrt(4 * r_0 * L_star) + 4 * r_0
    return Bound(
        name="Minimiser, smooth",
        bounds="risk of the minimiser",
        statement="((p + sqrt(p^2 + 4 q))/2)^2, p = sqrt(8 r_star) + sqrt(4 r_0), q = risk + 45 r_star + 20 r_0, "
        "risk = L_star + sqrt(4 r_0 L_star) + 4 r_0",
        value=_solved(risk, r_star, r_0) if defined else math.inf,
        terms={"L_star": L_star, "risk": risk} | terms,
        preconditions=(
            *_preconditions(terms["C"], B, n),
            Precondition("w minimises the sample's mean loss over the ball"),
            Precondition(f"it holds with probability {1 - 2 * delta:g} over the queries"),
        ),
        status="unverified",
        source=SOURCE,
        ceiling=B,
        kind="generalisation",
    )


def _radii(
    where: str, H1: float, W: float, radius: float, m: int, n: int, B: float, delta: float
) -> tuple[dict[str, float], float, float, bool]:
    """The terms, r*, r0, and whether the bound is defined."""
    refuse_unless(where, above=0, H1=H1, W=W, radius=radius, B=B)
    refuse_unless(where, least=1, m=m, n=n)
    refuse_unless_chance(where, delta=delta)
    C = 5 * math.sqrt(2) * W * radius * math.sqrt(H1 * math.log2(4 * m * n) / n)
    # log log n below 0 would make the bound smaller than that of the theorem
    r_0 = B * (-math.log(delta) + math.log(math.log(max(n, 3)))) / n
    r_star = (4 * C * math.log(3 * math.sqrt(B) / C)) ** 2
    terms = {"H1": H1, "W": W, "radius": radius, "m": float(m), "n": float(n), "B": B, "delta": delta}
    return terms | {"C": C, "r_star": r_star, "r_0": r_0}, r_star, r_0, math.sqrt(B) > C and n >= 3


def _solved(risk: float, r_star: float, r_0: float) -> float:
    """((p + sqrt(p^2 + 4 q))/2)^2."""
    p, q = math.sqrt(8 * r_star) + math.sqrt(4 * r_0), risk + 45 * r_star + 20 * r_0
    return ((p + math.sqrt(p * p + 4 * q)) / 2) ** 2


def _preconditions(C: float, B: float, n: int) -> tuple[Precondition, ...]:
    """What both bounds rest on."""
    return (
        SMOOTH_TO_B,
        ROWS,
        INDEPENDENT,
        BALL,
        Precondition("C < sqrt(B) and n >= 3", math.sqrt(B) > C and n >= 3),
        Precondition("the constants 45, 8, 4 and 20 are those of Bousquet's theorem"),
    )
