r"""The risk of every w of a ball at once: bounds that hold however w was found, for convex and non-convex losses.

With probability 1 - delta over n independent queries, for every w of norm at most W,

.. math:: L(w) \le \hat L(w) + 2 \, \text{Rad} + b \sqrt{\log(1/\delta) / (2n)},

where L is the risk, L-hat the mean loss of the sample (``risk`` below), b the length of ONE interval that holds the
losses of all queries, and Rad bounds the Rademacher complexity of the losses:

=================== ============================================= ====================================
function            2 Rad                                         for
=================== ============================================= ====================================
:func:`l2_ball`     sqrt(2 pi) L2 W R sqrt(m/n)                   losses L2-Lipschitz in the l2 norm
                                                                  of the m scores
:func:`linf_ball`   2 min(a, b/2, D(C)), a = G W R,               losses G-Lipschitz in the largest
                    C = 10 a sqrt((1 + 4 log2(2 m n))/n)          score
:func:`l1_ball`     the same with a = G W1 Rbar,                  the same; w of l1 norm W1, features
                    C = 10 a sqrt((1 + 2 log(2 m n)) log2(2 d)/n) of size Rbar at most
=================== ============================================= ====================================

Every bound has every constant among its terms. D(C) = 4 e if C >= 4 e, else C (1 + log(4 e/C)), with e = min(a, b):
Dudley's integral. :func:`linf_erm` and :func:`l1_erm` bound the excess risk of the minimizer of the sample over the
best w of the ball.

m, R, L2, G and b hold for every future query, and W is chosen before the data are seen. A ball, or one of several
bounds, that is chosen after the data were seen costs a smaller delta: :func:`for_fitted_norm` pays for the norm of a
fitted w, and :func:`~rankwise.guarantees.smallest` for the smallest of several bounds.

**Smooth losses, with an optimistic rate.** The gap of :func:`smooth_ball` shrinks like 1/n where the sample's loss is
0. For a nonnegative loss with values up to B and smoothness H1 in the largest score, with

.. math:: C = 5 \sqrt2 \, W R \sqrt{H_1 \log_2(4mn)/n}, \quad r^* = (4 C \log(3\sqrt B/C))^2, \quad
          r_0 = B (\log(1/\delta) + \log\log n)/n,

every w of the ball has sqrt(L(w)) <= (p + sqrt(p^2 + 4 q))/2, p = sqrt(8 r*) + sqrt(4 r0) and q = risk + 45 r* + 20 r0.
The numbers 45, 8, 4 and 20 come from a theorem of Bousquet that was not checked: the bounds are ``unverified``, and
:func:`~rankwise.guarantees.smallest` leaves them out by default. They are vacuous unless n is huge.

References
----------
A. Tewari, S. Chaudhuri (2015). Generalization error bounds for learning to rank: does the length of document lists
matter? ICML, PMLR 37, 315-323. Theorem 17 and appendix M for smooth losses.

O. Chapelle, M. Wu (2010). Gradient descent optimization of smoothed information retrieval metrics. Information
Retrieval 13(3), 216-235. doi:10.1007/s10791-009-9110-3.
"""

import math
from collections.abc import Callable
from dataclasses import replace

from rankwise.errors import RankwiseError
from rankwise.guarantees._bound import ERM, UNIFORM, Bound, Precondition, refuse_unless, refuse_unless_chance
from rankwise.guarantees.bounds.batch import INDEPENDENT

ROWS = Precondition("radius bounds every row of every future query, and m its length, not only in the sample")
ENTRIES = Precondition("entry bounds every feature of every future query, and m its length, not only in the sample")
BALL = Precondition("the ball of w was fixed before the data were seen")
MINIMIZER = Precondition("w minimizes the sample's mean loss over the ball")
STEEP_L2 = Precondition("the loss is L2-Lipschitz in the l2 norm of the scores")
STEEP_MAX = Precondition("the loss is G-Lipschitz in the largest score")
SPAN = Precondition("the loss of every query, at every w of the ball, is between low and low + b")


def l2_ball(
    *, risk: float, L2: float, W: float, radius: float, m: int, n: int, b: float, delta: float, low: float = 0.0
) -> Bound:
    r"""Losses that are L2-Lipschitz in the l2 norm: risk + sqrt(2 pi) L2 W R sqrt(m/n) + b sqrt(log(1/delta)/(2n)).

    Theorem 1 of Chapelle and Wu (2010), corrected: the printed one omits that losses have to be bounded, and has larger
    constants. L2 may be any bound on the l2 norm of the loss's gradient, for instance its l1 norm.

    Parameters
    ----------
    risk : float
        Mean loss on the sample.
    L2 : float
        Lipschitz constant with respect to the l2 norm of a query's scores.
    W, radius : float
        Radius of the ball of w, and R, a bound on the norm of every row.
    m, n : int
        Number of documents of the longest query, and number of queries.
    b, delta : float
        Length of an interval that holds the loss of every query, and the probability that the bound may fail.
    low : float, default=0.0
        Where that interval begins.

    Notes
    -----
    Rademacher complexity is at most sqrt(pi/2) times the Gaussian one; by Slepian's and Fernique's comparison, with
    constant 1, that of the losses is at most L2 times that of all scores, W norm(sum g_ij x_ij)/n <= W R sqrt(m n)/n.

    Examples
    --------
    >>> gap = l2_ball(risk=0.0, L2=math.sqrt(2), W=1.0, radius=1.0, m=100, n=10_000, b=3.0, delta=0.05)
    >>> round(gap.value, 2)
    0.39
    """
    _refuse("l2_ball", n, delta, b=b, L2=L2, W=W, radius=radius, m=m)
    return _risk_bound(
        "Uniform, l2-Lipschitz",
        "sqrt(2 pi) L2 W radius sqrt(m/n)",
        risk,
        math.sqrt(2 * math.pi) * L2 * W * radius * math.sqrt(m / n),
        {"L2": L2, "W": W, "radius": radius, "m": float(m), "n": float(n), "b": b, "delta": delta, "low": low},
        (STEEP_L2, ROWS),
        "Theorem 1 of SmoothRank, with the missing assumption",
    )


def linf_ball(
    *, risk: float, G: float, W: float, radius: float, m: int, n: int, b: float, delta: float, low: float = 0.0
) -> Bound:
    r"""Losses that are G-Lipschitz in the largest score: risk + 2 Rad + b sqrt(log(1/delta)/(2 n)).

    Corollary 8 and Theorem 9 of Tewari and Chaudhuri (2015), corrected. The length m of the lists enters only as
    log2(2 m n), yet the constants are such that :func:`l2_ball` is smaller in practice.

    Parameters
    ----------
    risk : float
        Mean loss on the sample.
    G : float
        Lipschitz constant of the loss in the largest score: the largest l1 norm of its gradient.
    W, radius : float
        Radius of the ball of w, and R, a bound on the norm of every row.
    m, n : int
        Number of documents of the longest query, and number of queries.
    b, delta : float
        Length of an interval that holds the loss of every query, and the probability that the bound may fail.
    low : float, default=0.0
        Where that interval begins.

    Notes
    -----
    The covering number is log2 N(eps) <= 1 + 4 (a/eps)^2 log2(2 m n) and 0 from a on. The tail is McDiarmid's, for
    the expected complexity, to which the bound on Rad applies since it holds for every sample.

    Examples
    --------
    >>> round(linf_ball(risk=0.0, G=2.0, W=1.0, radius=1.0, m=100, n=10**6, b=2.0, delta=0.05).terms["Rad"], 2)
    0.98
    """
    _refuse("linf_ball", n, delta, b=b, G=G, W=W, radius=radius, m=m)
    terms, rad = _linf_complexity(G, W, radius, m, n, b)
    return _risk_bound(
        "Uniform, largest score",
        "2 Rad",
        risk,
        2 * rad,
        terms | {"n": float(n), "b": b, "delta": delta, "low": low},
        (STEEP_MAX, ROWS),
        "Corollary 8 and Theorem 9 of the generalization bounds, with a guard and a covering number that is proved",
    )


def linf_erm(*, G: float, W: float, radius: float, m: int, n: int, b: float, delta: float) -> Bound:
    """Excess risk of the sample's minimizer over the best w of the ball: 2 Rad + 2 b sqrt(log(2/delta)/(2 n)).

    Parameters
    ----------
    G : float
        Lipschitz constant of the loss in the largest score: the largest l1 norm of its gradient.
    W, radius : float
        Radius of the ball of w, and R, a bound on the norm of every row.
    m, n : int
        Number of documents of the longest query, and number of queries.
    b, delta : float
        Length of an interval that holds the loss of every query, and the probability that the bound may fail.
    """
    _refuse("linf_erm", n, delta, b=b, G=G, W=W, radius=radius, m=m)
    terms, rad = _linf_complexity(G, W, radius, m, n, b)
    return _excess_bound(
        "Minimizer, largest score",
        rad,
        terms | {"n": float(n), "b": b, "delta": delta},
        (STEEP_MAX, ROWS),
        "Theorem 9 of the generalization bounds",
    )


def l1_ball(
    *, risk: float, G: float, W1: float, entry: float, d: int, m: int, n: int, b: float, delta: float, low: float = 0.0
) -> Bound:
    r"""Sparse weights: for every w of l1 norm W1 at most, risk + 2 Rad + b sqrt(log(1/delta)/(2 n)).

    Corollary 11 and Theorem 12 of Tewari and Chaudhuri (2015), corrected: features are bounded entry by entry, and
    their number d enters as log2(2 d).

    Parameters
    ----------
    risk : float
        Mean loss on the sample.
    G : float
        Lipschitz constant of the loss in the largest score: the largest l1 norm of its gradient.
    W1, entry : float
        l1 radius of the ball of w, and a bound on the absolute value of every feature.
    d : int
        Number of features.
    m, n : int
        Number of documents of the longest query, and number of queries.
    b, delta : float
        Length of an interval that holds the loss of every query, and the probability that the bound may fail.
    low : float, default=0.0
        Where that interval begins.

    Notes
    -----
    Maurey's sampling: log2 N(eps) <= (2 (a/eps)^2 log(2 m n) + 1) log2(2 d), a = G W1 entry.
    """
    _refuse("l1_ball", n, delta, b=b, G=G, W1=W1, entry=entry, m=m)
    refuse_unless("l1_ball", least=1, d=d)
    terms, rad = _l1_complexity(G, W1, entry, d, m, n, b)
    return _risk_bound(
        "Uniform, sparse weights",
        "2 Rad",
        risk,
        2 * rad,
        terms | {"n": float(n), "b": b, "delta": delta, "low": low},
        (STEEP_MAX, ENTRIES),
        "Corollary 11 and Theorem 12 of the generalization bounds, with the lost terms",
    )


def l1_erm(*, G: float, W1: float, entry: float, d: int, m: int, n: int, b: float, delta: float) -> Bound:
    """Excess risk of the minimizer over the l1 ball: 2 Rad + 2 b sqrt(log(2/delta)/(2 n)).

    Parameters
    ----------
    G : float
        Lipschitz constant of the loss in the largest score: the largest l1 norm of its gradient.
    W1, entry : float
        l1 radius of the ball of w, and a bound on the absolute value of every feature.
    d : int
        Number of features.
    m, n : int
        Number of documents of the longest query, and number of queries.
    b, delta : float
        Length of an interval that holds the loss of every query, and the probability that the bound may fail.
    """
    _refuse("l1_erm", n, delta, b=b, G=G, W1=W1, entry=entry, m=m)
    refuse_unless("l1_erm", least=1, d=d)
    terms, rad = _l1_complexity(G, W1, entry, d, m, n, b)
    return _excess_bound(
        "Minimizer, sparse weights",
        rad,
        terms | {"n": float(n), "b": b, "delta": delta},
        (STEEP_MAX, ENTRIES),
        "Theorem 12 of the generalization bounds",
    )


def dudley(*, C: float, largest: float) -> float:
    """The smallest 4 alpha + C log(largest/alpha) over alpha up to ``largest``, at alpha = min(largest, C/4).

    Parameters
    ----------
    C : float
        The coefficient of the logarithm.
    largest : float
        The largest alpha.

    Returns
    -------
    float
        The minimum.

    Examples
    --------
    >>> dudley(C=8.0, largest=1.0), dudley(C=0.0, largest=1.0)
    (4.0, 0.0)
    """
    refuse_unless("dudley", least=0, C=C, largest=largest)
    alpha = min(largest, C / 4)
    return 4 * alpha + C * (math.log(largest) - math.log(alpha)) if alpha > 0 else 0.0


def _linf_complexity(G: float, W: float, radius: float, m: int, n: int, b: float) -> tuple[dict[str, float], float]:
    """(terms, Rad) of the l2 ball."""
    a = G * W * radius
    C = 10 * a * math.sqrt((1 + 4 * math.log2(2 * m * n)) / n)
    rad = min(a, b / 2, dudley(C=C, largest=min(a, b)))
    return {"G": G, "W": W, "radius": radius, "m": float(m), "a": a, "C": C, "Rad": rad}, rad


def _l1_complexity(
    G: float, W1: float, entry: float, d: int, m: int, n: int, b: float
) -> tuple[dict[str, float], float]:
    """(terms, Rad) of the l1 ball."""
    a = G * W1 * entry
    C = 10 * a * math.sqrt((1 + 2 * math.log(2 * m * n)) * math.log2(2 * d) / n)
    rad = min(a, b / 2, dudley(C=C, largest=min(a, b)))
    return {"G": G, "W1": W1, "entry": entry, "d": float(d), "m": float(m), "a": a, "C": C, "Rad": rad}, rad


def _risk_bound(
    name: str,
    excess: str,
    risk: float,
    complexity: float,
    terms: dict[str, float],
    preconditions: tuple[Precondition, ...],
    source: str,
) -> Bound:
    """The bound risk + complexity + tail."""
    b, delta, low = terms["b"], terms["delta"], terms["low"]
    tail = b * math.sqrt(-math.log(delta) / (2 * terms["n"]))
    refuse_unless(name, risk=risk, low=low)
    if not -1e-12 * b <= risk - low <= b * (1 + 1e-12):
        raise RankwiseError(f"{name}: risk must be between low={low:g} and low + b={low + b:g}, got risk={risk!r}")
    return Bound(
        name=name,
        bounds="risk",
        statement=f"risk + {excess} + b sqrt(log(1/delta)/(2 n))",
        value=risk + complexity + tail,
        terms={"risk": risk} | terms | {"complexity": complexity, "tail": tail},
        preconditions=(*preconditions, SPAN, INDEPENDENT, BALL, _every_w(delta)),
        source=source,
        ceiling=low + b,
        kind="generalization",
        scope=UNIFORM,
    )


def _every_w(delta: float) -> Precondition:
    return Precondition(f"it holds with probability {1 - delta:g} over the queries, for every w of the ball at once")


def _excess_bound(
    name: str, rad: float, terms: dict[str, float], preconditions: tuple[Precondition, ...], source: str
) -> Bound:
    """The bound 2 Rad + tail on the excess risk of the minimizer."""
    b, n, delta = terms["b"], terms["n"], terms["delta"]
    tail = 2 * b * math.sqrt(math.log(2 / delta) / (2 * n))
    return Bound(
        name=name,
        bounds="excess risk",
        statement="2 Rad + 2 b sqrt(log(2/delta)/(2 n))",
        value=2 * rad + tail,
        terms=terms | {"complexity": 2 * rad, "tail": tail},
        preconditions=(
            *preconditions,
            Precondition("one interval of length b holds the loss of every query at every w of the ball"),
            INDEPENDENT,
            BALL,
            MINIMIZER,
            Precondition(f"it holds with probability {1 - delta:g} over the queries"),
        ),
        source=source,
        ceiling=b,
        kind="generalization",
        scope=ERM,
    )


def _refuse(where: str, n: int, delta: float, *, b: float, m: int, **constants: float) -> None:
    """Validate the numbers that all these bounds share."""
    refuse_unless(where, above=0, b=b, **constants)
    refuse_unless(where, least=1, m=m, n=n)
    refuse_unless_chance(where, delta=delta)


# ------------------------------------------------------------------------------------------- choices after the data

FIRST_BALL = Precondition("W_0 was fixed before the data were seen")


def ball_index(*, norm: float, W_0: float) -> int:
    """The first j with norm <= W_0 2^j: the smallest of the balls fixed in advance that holds a fitted w.

    Parameters
    ----------
    norm : float
        Norm of the fitted w.
    W_0 : float
        Radius of the first ball.

    Returns
    -------
    int
        j.

    Examples
    --------
    >>> [ball_index(norm=norm, W_0=1.0) for norm in (0.0, 1.0, 1.01, 2.0, 5.0)]
    [0, 0, 1, 1, 3]
    """
    refuse_unless("ball_index", least=0, norm=norm)
    refuse_unless("ball_index", above=0, W_0=W_0)
    j = 0
    while math.ldexp(W_0, j) < norm:  # a logarithm would round
        j += 1
    return j


def for_fitted_norm(make: Callable[[float, float], Bound], *, norm: float, W_0: float, delta: float) -> Bound:
    r"""A uniform bound for a w whose norm was not known in advance: W_j = W_0 2^j at delta_j = delta/((j+1)(j+2)).

    All the balls W_0, 2 W_0, 4 W_0, ... are fixed in advance and their deltas sum to delta, so with probability 1 -
    delta every one of the bounds holds, in particular that of the first ball that contains w.

    Parameters
    ----------
    make : callable
        (W, delta) -> the bound of a ball of radius W at level delta. What depends on the ball, such as the interval of
        the losses, depends on W there, as in the example.
    norm : float
        Norm of the fitted w.
    W_0 : float
        Radius of the first ball, chosen before the data were seen.
    delta : float
        Probability that the whole may fail.

    Returns
    -------
    Bound
        With j, W_0, delta_j and the fitted norm among its terms.

    Examples
    --------
    >>> from rankwise.guarantees import l2_ball
    >>> def make(W, delta):
    ...     return l2_ball(risk=0.1, L2=1.0, W=W, radius=1.0, m=10, n=10**6, b=1 + 2 * W, delta=delta)
    >>> bound = for_fitted_norm(make, norm=3.0, W_0=1.0, delta=0.05)
    >>> bound.terms["j"], bound.terms["W"], round(bound.terms["delta_j"], 5), round(bound.value, 3)
    (2.0, 4.0, 0.00417, 0.147)
    """
    refuse_unless_chance("for_fitted_norm", delta=delta)
    j = ball_index(norm=norm, W_0=W_0)
    delta_j = delta / ((j + 1) * (j + 2))
    alone = make(math.ldexp(W_0, j), delta_j)
    statement = alone.statement.replace("delta", "delta_j").replace(" W ", " W_j ").replace("W1", "W_j")
    kept = {name: number for name, number in alone.terms.items() if name != "delta"}
    return replace(
        alone,
        name=f"{alone.name}, fitted norm",
        statement=f"{statement}, W_j = W_0 2^j, delta_j = delta/((j + 1)(j + 2))",
        terms=kept | {"norm": norm, "W_0": W_0, "j": float(j), "delta": delta, "delta_j": delta_j},
        preconditions=(
            *(one for one in alone.preconditions if not one.sentence.startswith(("the ball of w", "it holds with"))),
            FIRST_BALL,
            Precondition(f"it holds with probability {1 - delta:g} over the queries, for every w at once"),
        ),
    )


# -------------------------------------------------------------------------------------------------------- smooth losses

SMOOTH_TO_B = Precondition("the loss is between 0 and B, and smooth with constant H1 in the largest score")
SOURCE = "Theorem 17 of the generalization bounds, with a covering number that is proved; constants of Bousquet's"


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
        value=_solve(risk, r_star, r_0) if defined else math.inf,
        terms={"risk": risk} | terms,
        preconditions=(*_preconditions(terms["C"], B, n), _every_w(delta)),
        status="unverified",
        source=SOURCE,
        ceiling=B,
        kind="generalization",
        scope=UNIFORM,
    )


def smooth_erm(*, L_star: float, H1: float, W: float, radius: float, m: int, n: int, B: float, delta: float) -> Bound:
    """The sample's minimizer over the ball: :func:`smooth_ball` at risk = L* + sqrt(4 r_0 L*) + 4 r_0.

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
        name="Minimizer, smooth",
        bounds="risk of the minimizer",
        statement="((p + sqrt(p^2 + 4 q))/2)^2, p = sqrt(8 r_star) + sqrt(4 r_0), q = risk + 45 r_star + 20 r_0, "
        "risk = L_star + sqrt(4 r_0 L_star) + 4 r_0",
        value=_solve(risk, r_star, r_0) if defined else math.inf,
        terms={"L_star": L_star, "risk": risk} | terms,
        preconditions=(
            *_preconditions(terms["C"], B, n),
            Precondition("w minimizes the sample's mean loss over the ball"),
            Precondition(f"it holds with probability {1 - 2 * delta:g} over the queries"),
        ),
        status="unverified",
        source=SOURCE,
        ceiling=B,
        kind="generalization",
        scope=ERM,
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


def _solve(risk: float, r_star: float, r_0: float) -> float:
    """((p + sqrt(p^2 + 4 q))/2)^2."""
    p, q = math.sqrt(8 * r_star) + math.sqrt(4 * r_0), risk + 45 * r_star + 20 * r_0
    return ((p + math.sqrt(p * p + 4 * q)) / 2) ** 2


def _preconditions(C: float, B: float, n: int) -> tuple[Precondition, ...]:
    """What both bounds rest on."""
    return (
        *(SMOOTH_TO_B, ROWS, INDEPENDENT, BALL),
        Precondition("C < sqrt(B) and n >= 3", math.sqrt(B) > C and n >= 3),
        Precondition("the constants 45, 8, 4 and 20 are those of Bousquet's theorem"),
    )
