r"""Bounds on the losses and mistakes of one online run, against any comparator u.

M is the set of rounds with a mistake (pessimistic ties), L the sum of the losses of those rounds, phi_t the surrogate
of round t at margin 1, and

.. math:: F(u) = \sum_{t \in M} \phi_t(X_t u).

R is the radius of the rows and V the largest sum of a round's weights v (see :class:`WeightFacts`); both may be those
of the run itself. R may be the radius of each query around its own center, because adding a constant to all scores of a
query changes no surrogate here.

=============================== ==================================================== ==================================
function                        bound                                                for
=============================== ==================================================== ==================================
:func:`slam_loss`               L <= F + norm_u sqrt(c F) + c norm_u^2               SLAM perceptron, any step
:func:`fixed_step`              L <= (F + norm_u^2/(2 eta)) / (1 - 2 eta R^2 kappa)  SLAM perceptron, small steps
:func:`quarter_step`            L <= 2 F + 4 norm_u^2 R^2 kappa                      the same, eta = 1/(4 R^2 kappa)
:func:`slam_mistakes`           slam_loss / (smallest positive v)                    mistakes of the SLAM perceptron
:func:`worst_pair_mistakes`     F + 2 norm_u R sqrt(F) + 4 norm_u^2 R^2              mistakes of the max-pair perceptron
:func:`online_to_batch`         L/n + sqrt(log(1/delta)/(2 n))                       mean risk, one pass, iid queries
=============================== ==================================================== ==================================

Every function returns a :class:`~rankwise.guarantees.Bound` with every constant among its terms.
c = 4 R^2 V + 2 margin/eta. Data that a unit vector separates by gamma have norm_u = 1/gamma and F = 0: see
:func:`separable_loss`, :func:`separable_mistakes`, :func:`separable_worst_pair`.

The bounds are for the perceptron as it runs, from w = 0. They do not cover projected weights, nor an average of the
weights. Over several epochs M, F and L range over all presentations.

References
----------
S. Chaudhuri, A. Tewari (2014). Perceptron-like algorithms and generalization bounds for learning to rank.
arXiv:1405.0591.

S. Chaudhuri, A. Tewari (2015). Perceptron-like algorithms for online learning to rank. arXiv:1508.00842.
"""

import math
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._tables import ShownAsFacts
from rankwise.errors import RankwiseError
from rankwise.guarantees._bound import (
    ANY_TIME,
    ITERATES,
    ROUNDS,
    Bound,
    Precondition,
    refuse_unless,
    refuse_unless_chance,
)
from rankwise.guarantees.holdout.sequences import RHO, anytime_radius


@dataclass(frozen=True, kw_only=True)
class WeightFacts(ShownAsFacts):
    r"""Extremes of the weights v over queries, from which the constants of the online bounds are computed.

    Attributes
    ----------
    V : float
        Largest sum of a query's weights.
    smallest : float
        Smallest positive weight; infinite if there is none.
    v_max : float
        Largest ratio of two positive weights of one query; 1 if there is none.
    longest : int
        Largest number of positive weights of a query: at most m for NDCG and AP, at most k for NDCG@k.
    steepest : float
        Largest (sum v)^2 / (smallest positive v) of a query.

    Examples
    --------
    >>> facts = WeightFacts.of([0.5, 0.25, 0.0, 1.0, 0.0], start=[0, 3, 5])
    >>> facts.V, facts.smallest, facts.v_max, facts.kappa
    (1.0, 0.25, 2.0, 2.25)
    """

    V: float = 0.0
    smallest: float = math.inf
    v_max: float = 1.0
    longest: int = 0
    steepest: float = 0.0

    @classmethod
    def of(cls, v: ArrayLike, start: ArrayLike | None = None) -> "WeightFacts":
        """Compute the facts.

        Parameters
        ----------
        v : array-like, shape (n_documents,)
            Weights, 0 or more.
        start : array-like of int, shape (n_queries + 1,), default=None
            Query q owns ``v[start[q]:start[q+1]]``; None for one query.

        Returns
        -------
        WeightFacts
            The facts.
        """
        weights = np.asarray(v, dtype=np.float64)
        bounds = np.array([0, len(weights)] if start is None else start, dtype=np.int64)
        if not np.isfinite(weights).all() or (weights < 0).any():
            place = int(np.argmax(~np.isfinite(weights) | (weights < 0)))
            raise RankwiseError(f"weights v must be finite and non-negative, got {weights[place]} at row {place:,}")
        facts = cls()
        for begin, end in pairwise(bounds):
            facts = facts | cls._of_list(weights[begin:end])
        return facts

    @classmethod
    def _of_list(cls, v: NDArray[np.float64]) -> "WeightFacts":
        positive = v[v > 0]
        if not len(positive):
            return cls()
        total, least, most = math.fsum(positive), float(positive.min()), float(positive.max())
        return cls(V=total, smallest=least, v_max=most / least, longest=len(positive), steepest=total**2 / least)

    def __or__(self, other: "WeightFacts") -> "WeightFacts":
        """The facts about the queries of both; a stream accumulates them this way."""
        found = {name: max(number, getattr(other, name)) for name, number in vars(self).items()}
        return WeightFacts(**found | {"smallest": min(self.smallest, other.smallest)})

    @property
    def kappa(self) -> float:
        r"""The constant of norm(z)^2 <= 4 radius^2 kappa phi on a round with a mistake, z the gradient of phi.

        The papers use ``longest * v_max``. On a mistake some document with v > 0 is outscored and has a slack of 1 or
        more, so phi is at least the smallest positive v, while norm(z) <= 2 radius sum v. Hence (sum v)^2 / (smallest
        positive v) is valid, too, and is never larger for weights that sum to 1 or less. The smaller one is returned.
        """
        return min(self.steepest, self.longest * self.v_max)


RUN = Precondition("the weights w that rank during the run start at 0 and are not projected")
F_SLAM = Precondition("F sums the SLAM loss of u at margin 1 over the rounds with a mistake")
MARGIN_1 = Precondition("the perceptron runs with margin 1")
F_WORST_PAIR = Precondition("F sums the worst pair's hinge of u at margin 1 over the rounds with a mistake")
SEPARABLE = Precondition("one unit vector ranks every query with all gaps of gamma or more")
_run_bound = partial(Bound, kind="online", scope=ROUNDS)
COVERED = Precondition("the weights v follow a rule that covers the measure, whatever the scores")


def largest_root(*, F: float, b: float) -> float:
    r"""The largest x with x - F <= b sqrt(x), which is (b/2 + sqrt(F + b^2/4))^2 and at most F + b sqrt(F) + b^2.

    Parameters
    ----------
    F : float
        The constant, 0 or more.
    b : float
        The coefficient, 0 or more.

    Returns
    -------
    float
        The root.

    Examples
    --------
    >>> largest_root(F=0.0, b=3.0)
    9.0
    """
    refuse_unless("largest_root", least=0, F=F, b=b)
    return F + b * (b + math.hypot(b, 2 * math.sqrt(F))) / 2  # the same, and exactly F for b = 0


def slam_loss(
    *, F: float, norm_u: float, radius: float, V: float, eta: float | None = None, margin: float = 1.0
) -> Bound:
    r"""Cumulative loss of the SLAM perceptron: L <= F + norm_u sqrt(c F) + c norm_u^2, c = 4 R^2 V + 2 margin/eta.

    This is Theorem S of the documentation. It holds for any step eta. With margin 0, the scale-free perceptron,
    c = 4 R^2 V and there is no step. The bound depends neither on the length of the lists nor on the ratio of weights,
    and no step has to be known in hindsight.

    Parameters
    ----------
    F, norm_u : float
        The cumulative surrogate loss of the comparator u over the rounds with a mistake, and its norm.
    radius, V : float
        R, the radius of the rows of every query, and the largest sum of a query's weights v.
    eta : float, default=None
        The step; required if the margin is above 0.
    margin : float, default=1.0
        The margin of the perceptron; 0 for the scale-free one.

    Notes
    -----
    Let A be the weight of the active documents of a round, at least its loss and at most V, x the sum of A over M, and
    z the gradient. Activity means z u <= phi(u) - A, z w >= -margin A, norm(z) <= 2 R A. So after all rounds w u >= eta
    (x - F) while norm(w)^2 <= eta^2 c x, hence x - F <= norm_u sqrt(c x). The exact root, :func:`largest_root`, is a
    little tighter than the closed form and is the term ``sharp``.

    Examples
    --------
    >>> slam_loss(F=2.0, norm_u=3.0, radius=1.0, V=1.0, margin=0.0).value
    46.48528137423857
    """
    c = _constant("slam_loss", radius, V, eta, margin)
    refuse_unless("slam_loss", least=0, F=F, norm_u=norm_u)
    return _run_bound(
        name="SLAM loss",
        bounds="cumulative loss",
        statement=f"F + norm_u sqrt(c F) + c norm_u^2, {_constant_text(margin)}",
        value=F + norm_u * math.sqrt(c * F) + c * norm_u**2,
        terms={"F": F, "norm_u": norm_u, "c": c}
        | {"radius": radius, "V": V}
        | ({} if eta is None or margin == 0 else {"margin": margin, "eta": eta})
        | {"sharp": largest_root(F=F, b=norm_u * math.sqrt(c))},
        preconditions=(RUN, COVERED, F_SLAM),
    )


def slam_mistakes(
    *, F: float, norm_u: float, radius: float, V: float, smallest: float, eta: float | None = None, margin: float = 1.0
) -> Bound:
    """Mistakes of the SLAM perceptron: :func:`slam_loss` over the smallest positive weight v that any round had.

    A round whose loss is above 0 has an active document of positive weight, so x of :func:`slam_loss` grows by
    ``smallest``.

    Parameters
    ----------
    F, norm_u : float
        The cumulative surrogate loss of the comparator u over the rounds with a mistake, and its norm.
    radius, V : float
        R, the radius of the rows of every query, and the largest sum of a query's weights v.
    smallest : float
        The smallest positive weight v of any round.
    eta : float, default=None
        The step; required if the margin is above 0.
    margin : float, default=1.0
        The margin of the perceptron; 0 for the scale-free one.
    """
    refuse_unless("slam_mistakes", above=0, smallest=smallest)
    loss = slam_loss(F=F, norm_u=norm_u, radius=radius, V=V, eta=eta, margin=margin)
    terms = dict(loss.terms)
    terms["sharp"] /= smallest
    return replace(
        loss,
        name="SLAM mistakes",
        bounds="rounds with a loss above 0",
        statement=f"(F + norm_u sqrt(c F) + c norm_u^2) / smallest, {_constant_text(margin)}",
        value=loss.value / smallest,
        terms=terms | {"smallest": smallest},
    )


def fixed_step(*, F: float, norm_u: float, radius: float, kappa: float, eta: float) -> Bound:
    """Gradient descent with a small enough step: L <= (F + norm_u^2/(2 eta)) / (1 - 2 eta R^2 kappa).

    The value is infinite, and the bound does not apply, for eta >= 1/(2 R^2 kappa).

    Parameters
    ----------
    F, norm_u : float
        The cumulative surrogate loss of the comparator u over the rounds with a mistake, and its norm.
    radius : float
        R, the radius of the rows of every query.
    kappa : float
        The constant of :attr:`WeightFacts.kappa`.
    eta : float
        The step.
    """
    refuse_unless("fixed_step", least=0, F=F, norm_u=norm_u, radius=radius, kappa=kappa)
    refuse_unless("fixed_step", above=0, eta=eta)
    left = 1 - 2 * eta * radius**2 * kappa
    return _run_bound(
        name="Fixed step",
        bounds="cumulative loss",
        statement="(F + norm_u^2/(2 eta)) / (1 - 2 eta radius^2 kappa)",
        value=(F + norm_u**2 / (2 * eta)) / left if left > 0 else math.inf,
        terms={"F": F, "norm_u": norm_u, "radius": radius, "kappa": kappa, "eta": eta},
        preconditions=(RUN, COVERED, F_SLAM, MARGIN_1, Precondition("eta < 1/(2 radius^2 kappa)", left > 0)),
        source="online gradient descent with the self-bounding gradient of SLAM",
    )


def quarter_step(*, F: float, norm_u: float, radius: float, kappa: float, eta: float | None = None) -> Bound:
    """Gradient descent with the step 1/(4 R^2 kappa): L <= 2 F + 4 norm_u^2 R^2 kappa, for this step alone.

    Theorem 5 of Chaudhuri and Tewari (2014), who print it for eta = 1, for which it is false. If the run's ``eta``
    is given, the step is checked.

    Parameters
    ----------
    F, norm_u : float
        The cumulative surrogate loss of the comparator u over the rounds with a mistake, and its norm.
    radius : float
        R, the radius of the rows of every query.
    kappa : float
        The constant of :attr:`WeightFacts.kappa`.
    eta : float, default=None
        The step of the run.
    """
    refuse_unless("quarter_step", least=0, F=F, norm_u=norm_u)
    refuse_unless("quarter_step", above=0, radius=radius, kappa=kappa)
    only = 1 / (4 * radius**2 * kappa)
    if eta is not None:
        refuse_unless("quarter_step", above=0, eta=eta)
    right = None if eta is None else math.isclose(eta, only, rel_tol=1e-9)
    return _run_bound(
        name="Quarter step",
        bounds="cumulative loss",
        statement="2 F + 4 norm_u^2 radius^2 kappa",
        value=2 * F + 4 * norm_u**2 * radius**2 * kappa,
        terms={"F": F, "norm_u": norm_u, "radius": radius, "kappa": kappa} | ({} if eta is None else {"eta": eta}),
        preconditions=(
            *(RUN, COVERED, F_SLAM, MARGIN_1),
            Precondition(f"eta = 1/(4 radius^2 kappa) = {only:g}", right),
        ),
        source="Theorem 5 of the perceptron of 2014, with its step",
    )


def worst_pair_mistakes(*, F: float, norm_u: float, radius: float) -> Bound:
    """Mistakes of the max-pair perceptron: F + 2 norm_u R sqrt(F) + 4 norm_u^2 R^2, whatever the step.

    F sums the loss of the worst pair. Since a loss is at most 1, this bounds the cumulative loss, too. Theorem 10 of
    Chaudhuri and Tewari (2015).

    Parameters
    ----------
    F, norm_u : float
        The cumulative surrogate loss of the comparator u over the rounds with a mistake, and its norm.
    radius : float
        R, the radius of the rows of every query.
    """
    refuse_unless("worst_pair_mistakes", least=0, F=F, norm_u=norm_u, radius=radius)
    b = 2 * norm_u * radius
    return _run_bound(
        name="Max-pair mistakes",
        bounds="rounds with a mistake",
        statement="F + 2 norm_u radius sqrt(F) + 4 norm_u^2 radius^2",
        value=F + b * math.sqrt(F) + b**2,
        terms={"F": F, "norm_u": norm_u, "radius": radius, "sharp": largest_root(F=F, b=b)},
        preconditions=(RUN, F_WORST_PAIR),
        source="Theorem 10 of the online perceptron for ranking",
    )


def separable_loss(*, gamma: float, radius: float, V: float, eta: float | None = None, margin: float = 1.0) -> Bound:
    """:func:`slam_loss` on separable queries: L <= c / gamma^2, for any number of rounds.

    Parameters
    ----------
    gamma : float
        Margin by which a unit vector separates every query.
    radius, V : float
        R, the radius of the rows of every query, and the largest sum of a query's weights v.
    eta : float, default=None
        The step; required if the margin is above 0.
    margin : float, default=1.0
        The margin of the perceptron; 0 for the scale-free one.
    """
    refuse_unless("separable_loss", above=0, gamma=gamma)
    whole = slam_loss(F=0.0, norm_u=1 / gamma, radius=radius, V=V, eta=eta, margin=margin)
    return _separable(whole, gamma, f"c / gamma^2, {_constant_text(margin)}")


def separable_mistakes(
    *, gamma: float, radius: float, V: float, smallest: float, eta: float | None = None, margin: float = 1.0
) -> Bound:
    """Mistakes of the SLAM perceptron on separable queries: c / (gamma^2 smallest positive v).

    Parameters
    ----------
    gamma : float
        Margin by which a unit vector separates every query.
    radius, V : float
        R, the radius of the rows of every query, and the largest sum of a query's weights v.
    smallest : float
        The smallest positive weight v of any round.
    eta : float, default=None
        The step; required if the margin is above 0.
    margin : float, default=1.0
        The margin of the perceptron; 0 for the scale-free one.
    """
    refuse_unless("separable_mistakes", above=0, gamma=gamma)
    whole = slam_mistakes(F=0.0, norm_u=1 / gamma, radius=radius, V=V, smallest=smallest, eta=eta, margin=margin)
    return _separable(whole, gamma, f"c / (gamma^2 smallest), {_constant_text(margin)}")


def separable_worst_pair(*, gamma: float, radius: float) -> Bound:
    """Mistakes of the max-pair perceptron on separable queries: 4 R^2 / gamma^2.

    :mod:`rankwise.guarantees.bounds.adversary` forces all but one of them, rounded down, on any deterministic ranker.

    Parameters
    ----------
    gamma : float
        Margin by which a unit vector separates every query.
    radius : float
        R, the radius of the rows of every query.
    """
    refuse_unless("separable_worst_pair", above=0, gamma=gamma)
    whole = worst_pair_mistakes(F=0.0, norm_u=1 / gamma, radius=radius)
    return _separable(whole, gamma, "4 radius^2 / gamma^2")


RISK = "mean risk of the iterates"
INDEPENDENT = Precondition("the n queries are independent draws of one distribution, each seen once")


def online_to_batch(*, L: float, n: int, delta: float, anytime: bool = False) -> Bound:
    r"""The mean risk of the iterates of a run over n independent queries.

    With probability 1 - delta over the queries

    .. math:: \frac1n \sum_t \text{Risk}(w_t) \le \frac{L}{n} + \sqrt{\frac{\log(1/\delta)}{2n}},

    for the weights w_t before each round of any online ranker, by Hoeffding's inequality for martingales. A ranker that
    draws one of the w_t at random has that risk.

    This holds for one n that was fixed beforehand. A run that is watched while it goes on, and may be stopped because
    of what is seen, needs a bound for all n simultaneously: ``anytime=True`` uses the radius of
    :func:`~rankwise.guarantees.holdout.sequences.anytime_radius` in place of the square root. Its proof applies because
    the loss of round t minus Risk(w_t) has mean 0 given the queries before.

    Parameters
    ----------
    L : float
        Cumulative loss of the run; each loss is between 0 and 1.
    n : int
        Number of queries.
    delta : float
        Probability that the bound may fail.
    anytime : bool, default=False
        Whether the bound holds for all n simultaneously, and not only for one n that was fixed beforehand.

    References
    ----------
    N. Cesa-Bianchi, A. Conconi, C. Gentile (2004). On the generalization ability of on-line learning algorithms. IEEE
    Transactions on Information Theory 50(9), 2050-2057. doi:10.1109/TIT.2004.833339.

    Examples
    --------
    >>> round(online_to_batch(L=100.0, n=1000, delta=0.05).value, 4)
    0.1387
    >>> round(online_to_batch(L=100.0, n=1000, delta=0.05, anytime=True).value, 4)
    0.148
    """
    refuse_unless("online_to_batch", least=0, L=L)
    refuse_unless("online_to_batch", least=1, n=n)
    refuse_unless_chance("online_to_batch", delta=delta)
    if n < L * (1 - 1e-12):
        raise RankwiseError(f"online_to_batch: L must be at most n, because losses are at most 1, got L={L!r}, n={n!r}")
    if anytime:
        statement, radius = "L/n + sqrt((2 rho + n/2) log(sqrt(1 + n/(4 rho))/delta))/n", anytime_radius(n, delta)
        read = Precondition(f"it holds for all n simultaneously with probability {1 - delta:g} over the queries")
    else:
        statement, radius = "L/n + sqrt(log(1/delta)/(2 n))", math.sqrt(-math.log(delta) / (2 * n))
        read = Precondition(f"n was fixed beforehand; it holds with probability {1 - delta:g} over the queries")
    return Bound(
        name="Online to batch" + ", at all times" * anytime,
        bounds=RISK,
        statement=statement,
        value=L / n + radius,
        terms={"L": L, "n": float(n), "delta": delta} | ({"rho": RHO} if anytime else {}),
        preconditions=(INDEPENDENT, Precondition("the loss of a round is between 0 and 1"), read),
        ceiling=1.0,
        kind="online",
        scope=replace(ITERATES, read=ANY_TIME) if anytime else ITERATES,
    )


def _constant(where: str, radius: float, V: float, eta: float | None, margin: float) -> float:
    """c = 4 radius^2 V + 2 margin/eta."""
    refuse_unless(where, least=0, radius=radius, V=V, margin=margin)
    if eta is not None:
        refuse_unless(where, above=0, eta=eta)
    elif margin > 0:
        raise RankwiseError(f"{where}: eta is required if the margin is positive, got margin={margin}, eta=None")
    return 4 * radius**2 * V + (0.0 if eta is None else 2 * margin / eta)


def _constant_text(margin: float) -> str:
    """The formula of c in words."""
    return "c = 4 radius^2 V" + (" + 2 margin/eta" if margin > 0 else "")


def _separable(whole: Bound, gamma: float, statement: str) -> Bound:
    """The bound for u = u*/gamma and F = 0."""
    kept = {name: number for name, number in whole.terms.items() if name not in ("F", "norm_u", "sharp")}
    return replace(
        whole,
        name=f"{whole.name}, separable",
        statement=statement,
        terms={"gamma": gamma} | kept,
        preconditions=(*(one for one in whole.preconditions if not one.sentence.startswith("F ")), SEPARABLE),
    )
