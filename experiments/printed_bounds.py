"""Formulas of the papers that are false as printed, or true only under an assumption that they do not name.

They are kept for comparison; the tests have a counterexample for each. docs/bounds.md explains them. What holds
instead is in :mod:`rankwise.guarantees`:

=============================== ============================================================= ====================
function                        what is wrong                                                 holds
=============================== ============================================================= ====================
:func:`printed_lambda_2014`     lambda = sqrt(4 L^2/n) does not know the size of the ball     ``rerm_in_ball_lambda``
:func:`printed_lambda_2015`     1/n is missing under the root                                 ``rerm_in_ball_lambda``
:func:`printed_theorem_1`       losses have to be between 0 and 1                             ``l2_ball``
:func:`printed_corollary_8`     negative where the logarithm is                               ``linf_ball``
:func:`printed_corollary_11`    2 + log d became log d, and a squared logarithm goes to 0     ``l1_ball``
:func:`printed_smooth_erm`      the leading L* is lost                                        ``smooth_erm``
:func:`printed_003`             (19) lacks v_max; both need the best eta in hindsight         ``slam_loss``
:func:`adarank_printed`         never below 1/e                                               ``adarank_certificate``
=============================== ============================================================= ====================
"""

import math
from collections.abc import Sequence

from rankwise.errors import RankwiseError
from rankwise.guarantees._bound import Bound, Precondition, refuse_unless, refuse_unless_chance
from rankwise.guarantees.bounds.batch import INDEPENDENT
from rankwise.guarantees.bounds.online import COVERED, F_SLAM, RUN
from rankwise.guarantees.bounds.training import REWEIGHTED, ROUNDS, log_pi


def printed_lambda_2014(*, G: float, radius: float, n: int) -> float:
    """sqrt(4 G^2 R^2/n): the lambda of Theorem 11 of the perceptron of 2014."""
    refuse_unless("printed_lambda_2014", above=0, G=G, radius=radius)
    refuse_unless("printed_lambda_2014", least=1, n=n)
    return math.sqrt(4 * (G * radius) ** 2 / n)


def printed_lambda_2015(*, G: float, W: float, radius: float, n: int) -> float:
    """sqrt(4 G^2 R^2 / (W^2/2 + 4 W^2/n)): the lambda of Theorem 18 of the generalization bounds."""
    refuse_unless("printed_lambda_2015", above=0, G=G, W=W, radius=radius)
    refuse_unless("printed_lambda_2015", least=1, n=n)
    return math.sqrt(4 * (G * radius) ** 2 / (W**2 / 2 + 4 * W**2 / n))


def printed_theorem_1(*, risk: float, L2: float, W: float, radius: float, m: int, n: int, delta: float) -> Bound:
    """risk + 3 L2 W R sqrt(m/n) + sqrt(8 log(2/delta)/n): true for losses between 0 and 1, which is not said."""
    refuse_unless("printed_theorem_1", least=0, L2=L2, W=W, radius=radius)
    refuse_unless("printed_theorem_1", least=1, m=m, n=n)
    refuse_unless("printed_theorem_1", risk=risk)
    refuse_unless_chance("printed_theorem_1", delta=delta)
    return Bound(
        name="Theorem 1 of SmoothRank",
        bounds="risk",
        statement="risk + 3 L2 W radius sqrt(m/n) + sqrt(8 log(2/delta)/n)",
        value=risk + 3 * L2 * W * radius * math.sqrt(m / n) + math.sqrt(8 * math.log(2 / delta) / n),
        terms={"risk": risk, "L2": L2, "W": W, "radius": radius, "m": float(m), "n": float(n), "delta": delta},
        preconditions=(INDEPENDENT,),
        status="as printed",
        source="Theorem 1 of SmoothRank",
        kind="generalization",
    )


def printed_corollary_8(*, G: float, W: float, radius: float, m: int, n: int, B: float) -> Bound:
    """10 a sqrt(log2(3 m n)/n) log(6 B sqrt(n)/(5 a sqrt(log2(3 m n)))), a = G W R, which is negative for small B."""
    refuse_unless("printed_corollary_8", above=0, G=G, W=W, radius=radius, B=B)
    refuse_unless("printed_corollary_8", least=1, m=m, n=n)
    a, root = G * W * radius, math.sqrt(math.log2(3 * m * n))
    return Bound(
        name="Corollary 8",
        bounds="Rademacher complexity",
        statement="10 a sqrt(log2(3 m n)/n) log(6 B sqrt(n)/(5 a sqrt(log2(3 m n)))), a = G W radius",
        value=10 * a * root / math.sqrt(n) * math.log(6 * B * math.sqrt(n) / (5 * a * root)),
        terms={"G": G, "W": W, "radius": radius, "m": float(m), "n": float(n), "B": B, "a": a},
        status="as printed",
        source="Corollary 8 of the generalization bounds",
        kind="generalization",
    )


def printed_corollary_11(*, G: float, W1: float, entry: float, d: int, m: int, n: int, B: float) -> Bound:
    """120 sqrt(2) a sqrt(log(d) l/n) log^2((B + 24 m n a)/(40 sqrt(2) a sqrt(log(d) l))), l = log2(24 m n a)."""
    refuse_unless("printed_corollary_11", above=0, G=G, W1=W1, entry=entry, B=B)
    refuse_unless("printed_corollary_11", least=1, m=m, n=n)
    refuse_unless("printed_corollary_11", least=2, d=d)
    a = G * W1 * entry
    length = math.log2(24 * m * n * a)
    refuse_unless("printed_corollary_11, log2(24 m n a)", above=0, length=length)
    root = math.sqrt(math.log(d) * length)
    inside = (B + 24 * m * n * a) / (40 * math.sqrt(2) * a * root)
    return Bound(
        name="Corollary 11",
        bounds="Rademacher complexity",
        statement="120 sqrt(2) a sqrt(log(d) l/n) log^2((B + 24 m n a)/(40 sqrt(2) a sqrt(log(d) l))), "
        "a = G W1 entry, l = log2(24 m n a)",
        value=120 * math.sqrt(2) * a * root / math.sqrt(n) * math.log(inside) ** 2,
        terms={"G": G, "W1": W1, "entry": entry, "d": float(d), "m": float(m), "n": float(n), "B": B, "a": a},
        status="as printed",
        source="Corollary 11 of the generalization bounds",
        kind="generalization",
    )


def printed_smooth_erm(*, L_star: float, D_0: float) -> Bound:
    """sqrt(D_0 L*)/2 + 2 D_0, which for small D_0 is below L*, the risk of the best w."""
    refuse_unless("printed_smooth_erm", least=0, L_star=L_star, D_0=D_0)
    return Bound(
        name="Appendix M.1",
        bounds="risk of the minimizer",
        statement="sqrt(D_0 L_star)/2 + 2 D_0",
        value=math.sqrt(D_0 * L_star) / 2 + 2 * D_0,
        terms={"L_star": L_star, "D_0": D_0},
        preconditions=(INDEPENDENT, Precondition("w minimizes the sample's mean loss over the ball")),
        status="as printed",
        source="appendix M.1 of the generalization bounds",
        kind="generalization",
    )


def printed_003(
    *, F: float, norm_u: float, radius: float, v_max: float, m: int | None = None, k: int | None = None
) -> Bound:
    """The bounds of the online perceptron for ranking as printed, for comparison with ``slam_loss``.

    With the length ``m`` of the longest list equation (19), which lacks v_max under the first root; with the cut-off
    ``k`` equation (22), which has it. Both want the best eta, which depends on what the run will meet. By Theorem S
    (19) is true all the same for every eta >= 1/(2 R^2 (m - 1)), and it is false for some that are smaller.
    """
    refuse_unless("printed_003", least=0, F=F, norm_u=norm_u, radius=radius)
    refuse_unless("printed_003", least=1, v_max=v_max)
    if m is not None and k is None:
        name, length = "m", m
    elif k is not None and m is None:
        name, length = "k", k
    else:
        raise RankwiseError(f"printed_003 takes m for equation (19) or k for (22): found m={m}, k={k}")
    refuse_unless("printed_003", least=1, **{name: length})
    whole = 4 * norm_u**2 * length * radius**2
    root = whole if k is None else whole * v_max
    return Bound(
        name="Equation (19)" if k is None else "Equation (22)",
        bounds="cumulative loss",
        statement=f"F + sqrt(4 norm_u^2 {name} radius^2{'' if k is None else ' v_max'} F) "
        f"+ 4 norm_u^2 {name} radius^2 v_max",
        value=F + math.sqrt(root * F) + whole * v_max,
        terms={"F": F, "norm_u": norm_u, "radius": radius, "v_max": v_max, name: float(length)},
        preconditions=(RUN, COVERED, F_SLAM, Precondition("eta is the best one for this F and norm_u in hindsight")),
        status="as printed",
        source=f"{'Theorem 6' if k is None else 'Theorem 8'} of the online perceptron for ranking",
        kind="online",
    )


def adarank_printed(*, phi: Sequence[float], alpha: Sequence[float], delta: Sequence[float]) -> Bound:
    """The same as the paper states it: 1 - (mean measure) <= Pi, which is never below 1/e.

    Parameters are those of :func:`rankwise.guarantees.adarank_certificate`. Where alpha is not the formula's (a phi of
    1 would make it infinite), rho replaces the paper's sqrt(1 - phi^2).
    """
    total, lost = log_pi("adarank_printed", phi, alpha, delta)
    most = total + lost
    return Bound(
        name="AdaRank, Theorem 4",
        bounds="1 - mean measure",
        statement="Pi",
        value=math.exp(most) if most < 700 else math.inf,
        terms={"rounds": float(len(phi)), "log_Pi": total},
        preconditions=(ROUNDS, REWEIGHTED),
        source="Theorem 4 of direct optimization",
        ceiling=1.0,
        kind="training",
    )
