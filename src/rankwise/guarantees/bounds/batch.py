r"""The expected risk of learning from n queries with convex losses: gradient descent and regularized minimization.

L(w) is the risk, the expected loss of w on a new query; w* is the best w with norm(w) <= W, and L* its risk; G is the
loss's Lipschitz constant (the largest l1 norm of its gradient with respect to the scores), so the loss of one
query changes by at most G R times a change of w, where R bounds every row; H = R^2 H1 is its smoothness in w. The
length of the lists does not enter. The expected risk E L(w) of what is learned is at most

============================= ======================================== ===============================
function                      bound                                    for
============================= ======================================== ===============================
:func:`ogd_average`           L* + G W R/sqrt(n)                       one pass, averaged
:func:`rerm`                  L* + lambda W^2/2 + 2 (G R)^2/(lambda n) regularized, any lambda
:func:`rerm_best`             L* + 2 G W R/sqrt(n)                     lambda = 2 G R/(W sqrt(n))
:func:`rerm_in_ball`          L* + 2 G W R (8/n + sqrt(2/n))           the papers' lambda, corrected
:func:`ogd_smooth`            L* + x + sqrt(x^2 + 2 x L*), x = H W^2/n smooth, nonnegative losses
:func:`ogd_smooth_small_step` L* + 2 sqrt(2 H W^2 L*/n) + 8 H W^2/n    the same, as the paper has it
============================= ======================================== ===============================

These are expectations over the sample, not statements about one sample: they hold on average over all samples that
might have been drawn, and must not be mixed with the bounds of :mod:`rankwise.guarantees.bounds.uniform`. G, R and H
are known beforehand and hold for every future query, not only for the sample.

References
----------
A. Tewari, S. Chaudhuri (2015). Generalization error bounds for learning to rank: does the length of document lists
matter? ICML, PMLR 37, 315-323.

S. Chaudhuri, A. Tewari (2014). Perceptron-like algorithms and generalization bounds for learning to rank.
arXiv:1405.0591.
"""

import math
from dataclasses import replace
from functools import partial

from rankwise.guarantees._bound import EXPECTATION, Bound, Precondition, refuse_unless

CONVEX = Precondition("the loss is convex in the scores, with gradients of l1 norm G at most")
INDEPENDENT = Precondition("the n queries are independent draws of one distribution")
RADIUS = Precondition("radius bounds every row of every future query, not only of the sample")
EXPECTED = Precondition("it holds on average over samples of n queries")
ONE_PASS = Precondition("w is the average of the iterates before each of n steps, from 0, one query per step")
SMOOTH = Precondition("the loss is convex and 0 or more, and its gradient in w moves by H times a move of w at most")
_expected_bound = partial(Bound, kind="generalization", scope=EXPECTATION)
LAMBDA = "lambda was fixed before the data were seen"


def ogd_average(*, G: float, W: float, radius: float, n: int) -> Bound:
    r"""Online gradient descent, one pass, step W/(G R sqrt(n)), averaged: E L(w) - L(w*) <= G W R / sqrt(n).

    Theorem 5 of Tewari and Chaudhuri (2015) prints sqrt(2) times as much.

    Parameters
    ----------
    G : float
        Lipschitz constant of the loss in the largest score: the largest l1 norm of its gradient.
    W, radius : float
        Norm of the comparator w*, and R, a bound on the norm of every row.
    n : int
        Number of queries.

    Notes
    -----
    norm(w_{t+1} - w*)^2 <= norm(w_t - w*)^2 - 2 eta g_t (w_t - w*) + eta^2 (G R)^2. Summed up, sum f_t(w_t) - f_t(w*)
    <= W^2/(2 eta) + eta n (G R)^2/2, which is G W R sqrt(n) at this step; each w_t is independent of query t, and the
    risk of the average is at most the average risk.

    Examples
    --------
    >>> ogd_average(G=2.0, W=1.0, radius=1.0, n=10_000).value
    0.02
    """
    refuse_unless("ogd_average", above=0, G=G, W=W, radius=radius)
    refuse_unless("ogd_average", least=1, n=n)
    return _expected_bound(
        name="Averaged gradient descent",
        bounds="expected excess risk",
        statement="G W radius / sqrt(n), with steps eta = W/(G radius sqrt(n))",
        value=G * W * radius / math.sqrt(n),
        terms={"G": G, "W": W, "radius": radius, "n": float(n), "eta": W / (G * radius * math.sqrt(n))},
        preconditions=(CONVEX, INDEPENDENT, RADIUS, ONE_PASS, EXPECTED),
        source="Theorem 5 of the generalization bounds, with a smaller constant",
    )


def rerm(
    *, G: float, W: float, radius: float, n: int, lambda_: float, gap: float = 0.0, fixed: bool | None = None
) -> Bound:
    r"""Regularized minimization: E L(w) - L(w*) <= lambda W^2/2 + 2 (G R)^2/(lambda n) + G R sqrt(2 gap/lambda).

    w minimizes (lambda/2) norm(w)^2 + (1/n) sum of losses, to within ``gap``.

    Parameters
    ----------
    G : float
        Lipschitz constant of the loss in the largest score: the largest l1 norm of its gradient.
    W, radius : float
        Norm of the comparator w*, and R, a bound on the norm of every row.
    n : int
        Number of queries.
    lambda_ : float
        Strength of the regularizer.
    gap : float, default=0.0
        How far the objective at w is at most above its minimum.
    fixed : bool, default=None
        Whether lambda was fixed before the data were seen; one chosen by validation was not.

    Notes
    -----
    The objectives of two samples that differ in one query are both lambda-strongly convex, with the same regularizer:
    their minimizers are at most 2 G R/(lambda n) apart, so the loss of a query changes by 2 (G R)^2/(lambda n) when
    that query is replaced, which bounds the mean difference of risk and training loss. w is within sqrt(2 gap/lambda)
    of the minimizer.

    Examples
    --------
    >>> rerm(G=2.0, W=1.0, radius=1.0, n=10_000, lambda_=0.04).value
    0.04
    """
    refuse_unless("rerm", above=0, G=G, W=W, radius=radius, lambda_=lambda_)
    refuse_unless("rerm", least=1, n=n)
    regularization, stability = lambda_ * W**2 / 2, 2 * (G * radius) ** 2 / (lambda_ * n)
    unsolved = gap_cost(G=G, radius=radius, lambda_=lambda_, gap=gap)
    return _expected_bound(
        name="Regularized minimization",
        bounds="expected excess risk",
        statement="lambda W^2/2 + 2 (G radius)^2/(lambda n) + G radius sqrt(2 gap/lambda)",
        value=regularization + stability + unsolved,
        terms={
            **{"G": G, "W": W, "radius": radius, "n": float(n), "lambda": lambda_, "gap": gap},
            **{"regularization": regularization, "stability": stability, "unsolved": unsolved},
        },
        preconditions=(CONVEX, INDEPENDENT, RADIUS, Precondition(LAMBDA, fixed), EXPECTED),
    )


def best_lambda(*, G: float, W: float, radius: float, n: int) -> float:
    """The lambda that minimizes :func:`rerm`: 2 G R/(W sqrt(n)).

    Parameters
    ----------
    G : float
        Lipschitz constant of the loss in the largest score: the largest l1 norm of its gradient.
    W, radius : float
        Norm of the comparator w*, and R, a bound on the norm of every row.
    n : int
        Number of queries.

    Returns
    -------
    float
        lambda.

    Examples
    --------
    >>> best_lambda(G=2.0, W=1.0, radius=1.0, n=10_000)
    0.04
    """
    refuse_unless("best_lambda", above=0, G=G, W=W, radius=radius)
    refuse_unless("best_lambda", least=1, n=n)
    return 2 * G * radius / (W * math.sqrt(n))


def rerm_best(*, G: float, W: float, radius: float, n: int, gap: float = 0.0) -> Bound:
    """Regularized minimization with lambda = 2 G R/(W sqrt(n)): 2 G W R/sqrt(n), plus the cost of the gap.

    Half of it is due to the regularizer, half to the sample.

    Parameters
    ----------
    G : float
        Lipschitz constant of the loss in the largest score: the largest l1 norm of its gradient.
    W, radius : float
        Norm of the comparator w*, and R, a bound on the norm of every row.
    n : int
        Number of queries.
    gap : float, default=0.0
        How far the objective at w is at most above its minimum.
    """
    lambda_ = best_lambda(G=G, W=W, radius=radius, n=n)
    whole = rerm(G=G, W=W, radius=radius, n=n, lambda_=lambda_, gap=gap, fixed=True)
    return replace(
        whole,
        name="Regularized minimization, best lambda",
        statement="2 G W radius/sqrt(n) + G radius sqrt(2 gap/lambda), lambda = 2 G radius/(W sqrt(n))",
        value=2 * G * W * radius / math.sqrt(n) + whole.terms["unsolved"],
    )


def gap_cost(*, G: float, radius: float, lambda_: float, gap: float) -> float:
    """The risk that an objective ``gap`` above its minimum may cost: G R sqrt(2 gap/lambda).

    Parameters
    ----------
    G : float
        Lipschitz constant of the loss in the largest score: the largest l1 norm of its gradient.
    radius : float
        R, a bound on the norm of every row.
    lambda_ : float
        Strength of the regularizer.
    gap : float
        How far the objective at w is at most above its minimum.

    Returns
    -------
    float
        The cost.
    """
    refuse_unless("gap_cost", above=0, G=G, radius=radius, lambda_=lambda_)
    refuse_unless("gap_cost", least=0, gap=gap)
    return G * radius * math.sqrt(2 * gap / lambda_)


def rerm_in_ball_lambda(*, G: float, W: float, radius: float, n: int) -> float:
    """The lambda for which :func:`rerm_in_ball` holds: sqrt((4 G^2 R^2/n) / (W^2/2 + 4 W^2/n)).

    Both papers print another one and use this one in the proof.

    Parameters
    ----------
    G : float
        Lipschitz constant of the loss in the largest score: the largest l1 norm of its gradient.
    W, radius : float
        Norm of the comparator w*, and R, a bound on the norm of every row.
    n : int
        Number of queries.

    Returns
    -------
    float
        lambda.
    """
    refuse_unless("rerm_in_ball_lambda", above=0, G=G, W=W, radius=radius)
    refuse_unless("rerm_in_ball_lambda", least=1, n=n)
    return math.sqrt((4 * (G * radius) ** 2 / n) / (W**2 / 2 + 4 * W**2 / n))


def rerm_in_ball(*, G: float, W: float, radius: float, n: int, lambda_: float | None = None) -> Bound:
    """The papers' bound for regularized minimization within the ball: 2 G W R (8/n + sqrt(2/n)).

    Theorem 6 of Tewari and Chaudhuri (2015) and Theorem 8 of Chaudhuri and Tewari (2014). It holds for
    the lambda of :func:`rerm_in_ball_lambda` alone; ``lambda_``, the one that was used, is compared with it.
    :func:`rerm_best` is smaller, by sqrt(2) and the term in 1/n.

    Parameters
    ----------
    G : float
        Lipschitz constant of the loss in the largest score: the largest l1 norm of its gradient.
    W, radius : float
        Norm of the comparator w*, and R, a bound on the norm of every row.
    n : int
        Number of queries.
    lambda_ : float, default=None
        The strength that was used.

    Examples
    --------
    >>> round(rerm_in_ball(G=1.0, W=1.0, radius=1.0, n=100).value, 3)
    0.443
    """
    only = rerm_in_ball_lambda(G=G, W=W, radius=radius, n=n)
    if lambda_ is not None:
        refuse_unless("rerm_in_ball", above=0, lambda_=lambda_)
    right = None if lambda_ is None else math.isclose(lambda_, only, rel_tol=1e-9)
    return _expected_bound(
        name="Regularized minimization in the ball",
        bounds="expected excess risk",
        statement="2 G W radius (8/n + sqrt(2/n))",
        value=2 * G * W * radius * (8 / n + math.sqrt(2 / n)),
        terms={"G": G, "W": W, "radius": radius, "n": float(n), "lambda": only if lambda_ is None else lambda_},
        preconditions=(
            *(CONVEX, INDEPENDENT, RADIUS),
            Precondition(f"lambda = sqrt((4 G^2 radius^2/n) / (W^2/2 + 4 W^2/n)) = {only:g}", right),
            EXPECTED,
        ),
        source="Theorem 6 of the generalization bounds, Theorem 8 of the perceptron of 2014, with the proof's lambda",
    )


def ogd_smooth(*, L_star: float, H: float, W: float, n: int) -> Bound:
    r"""Gradient descent on smooth losses: E L(w) <= L* + x + sqrt(x^2 + 2 x L*), x = H W^2/n.

    Parameters
    ----------
    L_star : float
        Risk of w*, or more; the step W/(H W + sqrt(H^2 W^2 + 2 H L* n)) depends on it.
    H : float
        Smoothness of the loss of a query in w, R^2 H1.
    W : float
        Norm of the comparator w*.
    n : int
        Number of queries.

    Notes
    -----
    A nonnegative H-smooth f has norm(grad f)^2 <= 2 H f, so the regret W^2/(2 eta) + (eta/2) sum norm(g_t)^2 is at most
    W^2/(2 eta) + eta H sum f_t(w_t): E L(w) (1 - eta H) <= L* + W^2/(2 eta n). This step minimizes the right side over
    1 - eta H, and the minimum is the bound. It is at most L* + sqrt(2 x L*) + 2 x, the form of the paper's equation
    (8), and decreases the faster the smaller L* is.

    Examples
    --------
    >>> ogd_smooth(L_star=0.0, H=1.0, W=2.0, n=100).value
    0.08
    """
    _refuse_smooth("ogd_smooth", L_star, H, W, n)
    eta, x = W / (H * W + math.sqrt((H * W) ** 2 + 2 * H * L_star * n)), H * W**2 / n
    return _expected_bound(
        name="Smooth gradient descent",
        bounds="expected risk",
        statement="L_star + x + sqrt(x^2 + 2 x L_star), x = H W^2/n, eta = W/(H W + sqrt(H^2 W^2 + 2 H L_star n))",
        value=L_star + x + math.sqrt(x**2 + 2 * x * L_star),
        terms={"L_star": L_star, "H": H, "W": W, "n": float(n), "eta": eta, "x": x},
        preconditions=(SMOOTH, INDEPENDENT, ONE_PASS, Precondition("L_star is the risk of w* or more"), EXPECTED),
        source="equation (8) of the generalization bounds, with smaller constants",
    )


def ogd_smooth_small_step(*, L_star: float, H: float, W: float, n: int) -> Bound:
    """Smooth gradient descent with the paper's smaller step: L* + 2 sqrt(2 H W^2 L*/n) + 8 H W^2/n.

    Equation (8) of Tewari and Chaudhuri (2015). It holds for the step of their equation (7), which is
    smaller than that of :func:`ogd_smooth`, and is never tighter.

    Parameters
    ----------
    L_star : float
        Risk of the best w of the ball, or more.
    H : float
        Smoothness of the loss of a query in w, R^2 H1.
    W : float
        Norm of the comparator w*.
    n : int
        Number of queries.
    """
    _refuse_smooth("ogd_smooth_small_step", L_star, H, W, n)
    eta = W / (4 * H * W + 2 * math.sqrt(4 * (H * W) ** 2 + 2 * H * L_star * n))
    return _expected_bound(
        name="Smooth gradient descent, small step",
        bounds="expected risk",
        statement="L_star + 2 sqrt(2 H W^2 L_star/n) + 8 H W^2/n, eta = W/(4 H W + 2 sqrt(4 H^2 W^2 + 2 H L_star n))",
        value=L_star + 2 * math.sqrt(2 * H * W**2 * L_star / n) + 8 * H * W**2 / n,
        terms={"L_star": L_star, "H": H, "W": W, "n": float(n), "eta": eta},
        preconditions=(SMOOTH, INDEPENDENT, ONE_PASS, Precondition("L_star is the risk of w* or more"), EXPECTED),
        source="equations (7) and (8) of the generalization bounds",
    )


def _refuse_smooth(where: str, L_star: float, H: float, W: float, n: int) -> None:
    """Validate the numbers of the bounds for smooth losses."""
    refuse_unless(where, least=0, L_star=L_star)
    refuse_unless(where, above=0, H=H, W=W)
    refuse_unless(where, least=1, n=n)
