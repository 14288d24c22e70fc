r"""The regret of online gradient descent that sees the labels of the first k documents shown alone.

:mod:`rankwise.solvers.online.top_k_rounds` has the algorithm, and why its gradients are unbiased. With a surrogate that
is a sum of terms of r labels, G the largest l1 norm of the gradient of a term, R the radius of the rows, m the length
of the longest query, N = C(m, r) and M = C(k, r), the second moment of an estimated gradient is at most

.. math:: S = R^2 G^2 \left(\frac{N (N - M)}{\gamma} + \frac{M^2}{1 - \gamma + \gamma M / N}\right).

References
----------
S. Chaudhuri, A. Tewari (2017). Online learning to rank with top-k feedback. Journal of Machine Learning Research
18(103). arXiv:1608.06408

M. Zinkevich (2003). Online convex programming and generalized infinitesimal gradient ascent. ICML, 928-936.
"""

import math
from typing import Literal

from rankwise.errors import RankwiseError
from rankwise.guarantees._bound import ON_AVERAGE, Bound, Precondition, refuse_unless

CONVEX = Precondition("the surrogate is convex in the scores, and a sum of terms of at most labels_per_term labels")
BALL = Precondition("the weights start at 0 and are projected onto the l2 ball of radius W")
LABELS = Precondition("no label exceeds the one that G was computed for")
OBLIVIOUS = Precondition(
    "queries and labels do not depend on which documents were shown, or the weights to compare with were fixed before"
)


def second_moment(*, radius: float, G: float, m: int, k: int, labels_per_term: Literal[1, 2], explore: float) -> float:
    r"""S, the largest second moment of the norm of an estimated gradient with respect to the weights.

    Parameters
    ----------
    radius : float
        R, the radius of the rows of every query.
    G : float
        The largest l1 norm of the gradient of a term with respect to the scores.
    m : int
        Number of documents of the longest query.
    k : int
        Number of documents whose labels are seen.
    labels_per_term : {1, 2}
        r, the number of labels that a term depends on.
    explore : float
        gamma, the probability that the documents shown first are drawn at random.

    Returns
    -------
    float
        The bound of the Notes.

    Notes
    -----
    *Proof.* Let Z = X' g' be the estimate, the sum of X' g_T / p_T over the terms that are seen. The gradient of a term
    sums to 0, because adding a constant to all scores changes nothing, so X may be replaced by the rows minus the
    center of the query, and norm(X' g_T) <= R G. At most M terms are seen at once, so by Cauchy and Schwarz

    .. math:: E \|Z\|^2 \le R^2 G^2 M \, E \sum_T \frac{1\{T \text{ seen}\}}{p_T^2} = R^2 G^2 M \sum_T \frac{1}{p_T}.

    M terms lie inside the k documents with the highest scores, with p_T = 1 - gamma + gamma q and q = M / N; for the
    N - M others p_T = gamma q, and M / (gamma q) = N / gamma. The sum over both kinds is S / (R^2 G^2). S grows with N,
    so it covers shorter queries; those of at most k documents are seen whole, norm(Z) <= R G N there, with N <= M.

    Examples
    --------
    >>> second_moment(radius=1.0, G=2.0, m=3, k=3, labels_per_term=1, explore=0.1)  # everything is seen
    36.0
    >>> second_moment(radius=1.0, G=2.0, m=3, k=1, labels_per_term=1, explore=0.5)
    54.0
    """
    refuse_unless("second_moment", least=0, radius=radius, G=G)
    refuse_unless("second_moment", least=1, m=m, k=k)
    refuse_unless("second_moment", above=0, explore=explore)
    if labels_per_term not in (1, 2) or k < labels_per_term or explore > 1:
        raise RankwiseError(
            "second_moment: labels_per_term must be 1 or 2 and at most k, and explore at most 1, got "
            f"labels_per_term={labels_per_term!r}, k={k!r}, explore={explore!r}"
        )
    N, M = math.comb(max(m, k), labels_per_term), math.comb(k, labels_per_term)
    terms = N * (N - M) / explore + M**2 / (1 - explore + explore * M / N)
    return radius**2 * G**2 * terms


def top_k_regret(
    *,
    W: float,
    radius: float,
    G: float,
    m: int,
    k: int,
    labels_per_term: Literal[1, 2],
    explore: float,
    eta: float,
    n: int,
    decreasing: bool = False,
    cost: float = 0.0,
) -> Bound:
    r"""Expected regret of online gradient descent on the surrogate, from the labels of the first k documents alone.

    .. math:: E \sum_t \phi_t(X_t w_t) - \sum_t \phi_t(X_t u)
        \le \frac{W^2}{2 \eta} + \frac{\eta n S}{2} + \gamma n \cdot \text{cost}

    for every u of norm W or less, with a constant step eta. With the steps eta / sqrt(t) (``decreasing``) the first two
    terms are sqrt(n) (2 W^2 / eta + eta S). S is :func:`second_moment`. The expectation is over the random rankings of
    the run. With ``cost`` the loss of a round that draws its documents at random counts as ``cost``, and not as that of
    the weights; with eta and explore of :func:`top_k_settings` the bound is then O(n^(2/3)).

    Parameters
    ----------
    W : float
        Radius of the ball that holds the weights and u.
    radius : float
        R, the radius of the rows of every query.
    G : float
        The largest l1 norm of the gradient of a term with respect to the scores.
    m : int
        Number of documents of the longest query.
    k : int
        Number of documents whose labels are seen.
    labels_per_term : {1, 2}
        The number of labels that a term depends on.
    explore : float
        gamma, the probability that the documents shown first are drawn at random.
    eta : float
        The step, or that of the first round.
    n : int
        Number of rounds.
    decreasing : bool, default=False
        Whether the steps are eta / sqrt(t).
    cost : float, default=0.0
        The largest loss of a round, charged to every round that draws documents at random.

    Notes
    -----
    *Proof.* Let Z_t be the estimate of the gradient z_t of f_t(w) = phi_t(X_t w) at w_t, and H_t everything before the
    random ranking of round t. w_t, f_t and u are functions of H_t, so E[Z_t | H_t] = z_t, and by convexity
    E[f_t(w_t) - f_t(u)] <= E z_t (w_t - u) = E Z_t (w_t - u). The projection onto the ball moves no point of the ball
    further away:

    .. math:: \|w_{t+1} - u\|^2 \le \|w_t - u\|^2 - 2 \eta_t Z_t (w_t - u) + \eta_t^2 \|Z_t\|^2.

    Divide by 2 eta_t and sum. With constant steps the first two terms telescope to at most norm(u)^2 / (2 eta), because
    w_1 = 0. With eta / sqrt(t), norm(w_t - u)^2 <= 4 W^2 and summation by parts give 2 W^2 sqrt(n) / eta, and the sum
    of 1/sqrt(t) is at most 2 sqrt(n). E norm(Z_t)^2 <= S completes both. A round draws its documents with probability
    gamma, whatever happened before, and a loss is at least 0, so charging ``cost`` adds at most gamma n cost. u must be
    a function of H_t for all t: fixed before the run, or, as the best u in hindsight is, a function of queries and
    labels that do not depend on what was shown.

    Examples
    --------
    >>> bound = top_k_regret(
    ...     W=1.0, radius=1.0, G=2.0, m=5, k=2, labels_per_term=2, explore=0.2, eta=0.001, n=1000)
    >>> round(bound.value, 1)
    1402.4
    """
    refuse_unless("top_k_regret", above=0, W=W, eta=eta)
    refuse_unless("top_k_regret", least=1, n=n)
    refuse_unless("top_k_regret", least=0, cost=cost)
    S = second_moment(radius=radius, G=G, m=m, k=k, labels_per_term=labels_per_term, explore=explore)
    if decreasing:
        value, statement = math.sqrt(n) * (2 * W**2 / eta + eta * S), "sqrt(n) (2 W^2 / eta + eta S)"
    else:
        value, statement = W**2 / (2 * eta) + eta * n * S / 2, "W^2 / (2 eta) + eta n S / 2"
    charged = " + explore n cost" if cost else ""
    numbers = {"W": W, "radius": radius, "G": G, "m": m, "k": k, "labels_per_term": labels_per_term}
    numbers |= {"explore": explore, "eta": eta, "n": n, "S": S}
    numbers |= {"N": math.comb(max(m, k), labels_per_term), "M": math.comb(k, labels_per_term)}
    numbers |= {"cost": cost} if cost else {}
    return Bound(
        name="Top-k regret" + (", exploration charged" if cost else ""),
        bounds="expected surrogate loss minus that of any weights in the ball"
        + (", where a round that explores counts as cost" if cost else ""),
        statement=f"{statement}{charged}, S = radius^2 G^2 (N (N - M) / explore + M^2 / (1 - explore + explore M / N))",
        value=value + explore * n * cost,
        terms={name: float(number) for name, number in numbers.items()},
        preconditions=(CONVEX, BALL, LABELS, OBLIVIOUS),
        source="online gradient descent with the estimates of top-k feedback",
        kind="online",
        scope=ON_AVERAGE,
    )


def top_k_settings(
    *, W: float, radius: float, G: float, m: int, k: int, labels_per_term: Literal[1, 2], n: int, cost: float
) -> tuple[float, float]:
    r"""Step and probability of exploration with an expected regret of O(n^(2/3)), exploration charged.

    Parameters
    ----------
    W : float
        Radius of the ball that holds the weights.
    radius : float
        R, the radius of the rows of every query.
    G : float
        The largest l1 norm of the gradient of a term with respect to the scores.
    m : int
        Number of documents of the longest query.
    k : int
        Number of documents whose labels are seen.
    labels_per_term : {1, 2}
        The number of labels that a term depends on.
    n : int
        Number of rounds.
    cost : float
        The largest loss of a round.

    Returns
    -------
    eta, explore : float
        For constant steps. Where the longest query has no more than k documents nothing is explored, and ``explore`` is
        only as small as it has to be.

    Notes
    -----
    For a given gamma the best constant step is W / sqrt(n S), with a bound of W sqrt(n S) + gamma n cost. S is at most
    R^2 G^2 (N (N - M) / gamma + M N), as 1 - gamma + gamma M/N >= M/N. gamma minimizes W R G sqrt(n N (N - M) / gamma)
    + gamma n cost: gamma = (W R G sqrt(N (N - M)) / (2 cost sqrt(n)))^(2/3), at most 1. The two terms are then 2 and 1
    times cost n gamma, which grows as n^(2/3); the term of M N adds at most W R G sqrt(M N n).

    Examples
    --------
    >>> eta, explore = top_k_settings(W=1.0, radius=1.0, G=2.0, m=5, k=2, labels_per_term=2, n=10_000, cost=30.0)
    >>> round(eta, 6), round(explore, 4)
    (7.7e-05, 0.0215)
    """
    refuse_unless("top_k_settings", above=0, W=W, radius=radius, G=G, cost=cost)
    refuse_unless("top_k_settings", least=1, n=n)
    N, M = math.comb(max(m, k), labels_per_term), math.comb(k, labels_per_term)
    explore = min(1.0, (W * radius * G * math.sqrt(N * (N - M)) / (2 * cost * math.sqrt(n))) ** (2 / 3))
    explore = max(explore, 1e-12)
    S = second_moment(radius=radius, G=G, m=m, k=k, labels_per_term=labels_per_term, explore=explore)
    return W / math.sqrt(n * S), explore
