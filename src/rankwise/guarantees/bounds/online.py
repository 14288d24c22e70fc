r"""What an online ranker can lose at most: bounds on the losses and mistakes of one run, for any comparator u.

M are the rounds with a mistake (pessimistic ties), L the sum of the losses of those rounds, phi_t the surrogate of
round t at margin 1, and

.. math:: F(u) = \sum_{t \in M} \phi_t(X_t u).

R is the radius of the rows, V the largest sum of a round's weights v (:class:`WeightFacts` has
it); both may be those of the run itself. R may be the radius of each list around a centre of its own, because no
surrogate here sees a constant that is added to all scores of a list.

=============================== ==================================================== ==================================
function                        bound                                                for
=============================== ==================================================== ==================================
:func:`theorem_s`               L <= F + norm_u sqrt(c F) + c norm_u^2               SLAM perceptron, any step
:func:`fixed_step`              L <= (F + norm_u^2/(2 eta)) / (1 - 2 eta R^2 kappa)  SLAM perceptron, small steps
:func:`theorem_5`               L <= 2 F + 4 norm_u^2 R^2 kappa                      the same, eta = 1/(4 R^2 kappa)
:func:`slam_mistakes`           theorem_s / (smallest positive v)                    mistakes of the SLAM perceptron
:func:`worst_pair_mistakes`     F + 2 norm_u R sqrt(F) + 4 norm_u^2 R^2              mistakes of the max-pair perceptron
:func:`printed_003`             as printed in the paper, for comparison              none without care
:func:`online_to_batch`         L/n + sqrt(log(1/delta)/(2 n))                       mean risk, one pass over iid lists
=============================== ==================================================== ==================================

c = 4 R^2 V + 2 margin/eta. Data that a unit vector separates by gamma have norm_u = 1/gamma and F = 0: see
:func:`separable_loss`, :func:`separable_mistakes`, :func:`separable_worst_pair`.

Bounds are for the perceptron as it runs, from w = 0: not for projected weights, nor for an average that is taken of w
beside the run. Over several epochs M, F
and L run over all presentations.
"""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._errors import RankwiseError
from rankwise.guarantees._bound import Bound, Precondition, refuse_unless

# ------------------------------------------------------------------------------------------------------------ weights
# What the bounds of the SLAM perceptron need to know about the weights v of the lists that it met.


@dataclass(frozen=True, kw_only=True)
class WeightFacts:
    r"""Extremes of weights v over lists, from which every constant of the online bounds is made.

    Attributes
    ----------
    V : largest sum of a list's weights
    smallest : smallest positive weight; infinite if there is none
    v_max : largest ratio of two positive weights of one list; 1 if there is none
    longest : most documents of a list that have a positive weight: m for NDCG and AP at most, k for NDCG@k
    steepest : largest (sum v)^2 / (smallest positive v) of a list

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
        """Facts about weights ``v``, one a document; list q owns ``v[start[q]:start[q+1]]``, one list by default."""
        weights = np.asarray(v, dtype=np.float64)
        bounds = np.array([0, len(weights)] if start is None else start, dtype=np.int64)
        if not np.isfinite(weights).all() or (weights < 0).any():
            place = int(np.argmax(~np.isfinite(weights) | (weights < 0)))
            raise RankwiseError(f"weights v are finite and 0 or more: found {weights[place]} at row {place:,}")
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
        """Facts about the lists of both: how a stream keeps them."""
        return WeightFacts(
            V=max(self.V, other.V),
            smallest=min(self.smallest, other.smallest),
            v_max=max(self.v_max, other.v_max),
            longest=max(self.longest, other.longest),
            steepest=max(self.steepest, other.steepest),
        )

    @property
    def kappa(self) -> float:
        r"""The constant of norm(z)^2 <= 4 radius^2 kappa phi on a round with a mistake, z the gradient of phi.

        The papers use ``longest * v_max``. A mistake means that some document with v > 0 is outscored and has a slack
        of 1 or more, so phi is at least the smallest positive v, while norm(z) <= 2 radius sum v: (sum v)^2 /
        (smallest positive v) will do, too, and is never larger for weights that add up to 1 or less. The smaller one.
        """
        return min(self.steepest, self.longest * self.v_max)


RUN = Precondition("the weights w that rank during the run start at 0 and are not projected")
F_SLAM = Precondition("F adds up the SLAM loss of u at margin 1 over the rounds with a mistake")
MARGIN_1 = Precondition("the perceptron runs with margin 1")
F_WORST_PAIR = Precondition("F adds up the worst pair's hinge of u at margin 1 over the rounds with a mistake")
COVERED = Precondition("the weights v follow a rule that covers the measure, whatever the scores")


def largest_root(*, F: float, b: float) -> float:
    r"""The largest x with x - F <= b sqrt(x), which is (b/2 + sqrt(F + b^2/4))^2 and at most F + b sqrt(F) + b^2.

    >>> largest_root(F=0.0, b=3.0)
    9.0
    """
    refuse_unless("largest_root", least=0, F=F, b=b)
    return F + b * (b + math.hypot(b, 2 * math.sqrt(F))) / 2  # the same, and exactly F for b = 0


def theorem_s(
    *, F: float, norm_u: float, radius: float, V: float, eta: float | None = None, margin: float = 1.0
) -> Bound:
    r"""Theorem S: L <= F + norm_u sqrt(c F) + c norm_u^2, c = 4 R^2 V + 2 margin/eta, for any step eta.

    With margin 0, the scale-free perceptron, c = 4 R^2 V and there is no step. Neither the length of the lists nor
    the ratio of weights comes in, and no step has to be known in hindsight.

    Notes
    -----
    A is the weight of the active documents of a round, at least its loss and at most V; x the sum of A over M; z the
    gradient. Activity means z u <= phi(u) - A, z w >= -margin A, norm(z) <= 2 R A. So after all rounds w u >= eta
    (x - F) while norm(w)^2 <= eta^2 c x, hence x - F <= norm_u sqrt(c x); see :func:`largest_root`, which is a little
    tighter than the closed form and is the term ``sharp``.

    Examples
    --------
    >>> theorem_s(F=2.0, norm_u=3.0, radius=1.0, V=1.0, margin=0.0).value
    46.48528137423857
    """
    c = _constant("theorem_s", radius, V, eta, margin)
    refuse_unless("theorem_s", least=0, F=F, norm_u=norm_u)
    return Bound(
        name="Theorem S",
        bounds="cumulative loss",
        statement=f"F + norm_u sqrt(c F) + c norm_u^2, {_constant_text(margin)}",
        value=F + norm_u * math.sqrt(c * F) + c * norm_u**2,
        terms={"F": F, "norm_u": norm_u, "c": c}
        | _constant_terms(radius, V, eta, margin)
        | {"sharp": largest_root(F=F, b=norm_u * math.sqrt(c))},
        preconditions=(RUN, COVERED, F_SLAM),
        kind="online",
    )


def slam_mistakes(
    *,
    F: float,
    norm_u: float,
    radius: float,
    V: float,
    smallest: float,
    eta: float | None = None,
    margin: float = 1.0,
) -> Bound:
    """Mistakes of the SLAM perceptron: Theorem S over the smallest positive weight v that any round had.

    A round whose loss is above 0 has an active document of positive weight, so x of Theorem S grows by ``smallest``.
    """
    refuse_unless("slam_mistakes", above=0, smallest=smallest)
    loss = theorem_s(F=F, norm_u=norm_u, radius=radius, V=V, eta=eta, margin=margin)
    terms = dict(loss.terms)
    terms["sharp"] /= smallest
    return Bound(
        name="Theorem S, mistakes",
        bounds="rounds with a loss above 0",
        statement=f"(F + norm_u sqrt(c F) + c norm_u^2) / smallest, {_constant_text(margin)}",
        value=loss.value / smallest,
        terms=terms | {"smallest": smallest},
        preconditions=loss.preconditions,
        kind=loss.kind,
    )


def fixed_step(*, F: float, norm_u: float, radius: float, kappa: float, eta: float) -> Bound:
    """Gradient descent with a step that is small enough: L <= (F + norm_u^2/(2 eta)) / (1 - 2 eta R^2 kappa).

    Infinite, and marked as not applying, for eta >= 1/(2 R^2 kappa).
    """
    refuse_unless("fixed_step", least=0, F=F, norm_u=norm_u, radius=radius, kappa=kappa)
    refuse_unless("fixed_step", above=0, eta=eta)
    left = 1 - 2 * eta * radius**2 * kappa
    return Bound(
        name="Fixed step",
        bounds="cumulative loss",
        statement="(F + norm_u^2/(2 eta)) / (1 - 2 eta radius^2 kappa)",
        value=(F + norm_u**2 / (2 * eta)) / left if left > 0 else math.inf,
        terms={"F": F, "norm_u": norm_u, "radius": radius, "kappa": kappa, "eta": eta},
        preconditions=(RUN, COVERED, F_SLAM, MARGIN_1, Precondition("eta < 1/(2 radius^2 kappa)", left > 0)),
        source="online gradient descent with the self-bounding gradient of SLAM",
        kind="online",
    )


def theorem_5(*, F: float, norm_u: float, radius: float, kappa: float, eta: float | None = None) -> Bound:
    """Theorem 5 of the perceptron of 2014: L <= 2 F + 4 norm_u^2 R^2 kappa, for the step 1/(4 R^2 kappa) alone.

    Printed for eta = 1, for which it is false. Give the run's ``eta`` to have the step checked.
    """
    refuse_unless("theorem_5", least=0, F=F, norm_u=norm_u)
    refuse_unless("theorem_5", above=0, radius=radius, kappa=kappa)
    only = 1 / (4 * radius**2 * kappa)
    if eta is not None:
        refuse_unless("theorem_5", above=0, eta=eta)
    right = None if eta is None else math.isclose(eta, only, rel_tol=1e-9)
    return Bound(
        name="Theorem 5",
        bounds="cumulative loss",
        statement="2 F + 4 norm_u^2 radius^2 kappa",
        value=2 * F + 4 * norm_u**2 * radius**2 * kappa,
        terms={"F": F, "norm_u": norm_u, "radius": radius, "kappa": kappa} | ({} if eta is None else {"eta": eta}),
        preconditions=(
            RUN,
            COVERED,
            F_SLAM,
            MARGIN_1,
            Precondition(f"eta = 1/(4 radius^2 kappa) = {only:g}", right),
        ),
        source="Theorem 5 of the perceptron of 2014, with its step",
        kind="online",
    )


def worst_pair_mistakes(*, F: float, norm_u: float, radius: float) -> Bound:
    """Mistakes of the max-pair perceptron: F + 2 norm_u R sqrt(F) + 4 norm_u^2 R^2, whatever the step.

    F adds up the loss of the worst pair. Since a loss is at most 1, this bounds the cumulative loss, too.
    """
    refuse_unless("worst_pair_mistakes", least=0, F=F, norm_u=norm_u, radius=radius)
    b = 2 * norm_u * radius
    return Bound(
        name="Max-pair mistakes",
        bounds="rounds with a mistake",
        statement="F + 2 norm_u radius sqrt(F) + 4 norm_u^2 radius^2",
        value=F + b * math.sqrt(F) + b**2,
        terms={"F": F, "norm_u": norm_u, "radius": radius, "sharp": largest_root(F=F, b=b)},
        preconditions=(RUN, F_WORST_PAIR),
        source="Theorem 10 of the online perceptron for ranking",
        kind="online",
    )


def separable_loss(*, gamma: float, radius: float, V: float, eta: float | None = None, margin: float = 1.0) -> Bound:
    """Theorem S on separable lists: L <= c / gamma^2, however many rounds there are."""
    refuse_unless("separable_loss", above=0, gamma=gamma)
    whole = theorem_s(F=0.0, norm_u=1 / gamma, radius=radius, V=V, eta=eta, margin=margin)
    return _separable(whole, gamma, f"c / gamma^2, {_constant_text(margin)}")


def separable_mistakes(
    *, gamma: float, radius: float, V: float, smallest: float, eta: float | None = None, margin: float = 1.0
) -> Bound:
    """Mistakes of the SLAM perceptron on separable lists: c / (gamma^2 smallest positive v)."""
    refuse_unless("separable_mistakes", above=0, gamma=gamma)
    whole = slam_mistakes(F=0.0, norm_u=1 / gamma, radius=radius, V=V, smallest=smallest, eta=eta, margin=margin)
    return _separable(whole, gamma, f"c / (gamma^2 smallest), {_constant_text(margin)}")


def separable_worst_pair(*, gamma: float, radius: float) -> Bound:
    """Mistakes of the max-pair perceptron on separable lists: 4 R^2 / gamma^2.

    :mod:`rankwise.guarantees.bounds.adversary` forces all but one of them, rounded down, on any deterministic ranker.
    """
    refuse_unless("separable_worst_pair", above=0, gamma=gamma)
    whole = worst_pair_mistakes(F=0.0, norm_u=1 / gamma, radius=radius)
    return _separable(whole, gamma, "4 radius^2 / gamma^2")


def printed_003(
    *, F: float, norm_u: float, radius: float, v_max: float, m: int | None = None, k: int | None = None
) -> Bound:
    """The bounds of the online perceptron for ranking as they are printed, to be drawn beside :func:`theorem_s`.

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


def online_to_batch(*, L: float, n: int, delta: float) -> Bound:
    r"""What a run over n iid lists says about new ones: with probability 1 - delta over the lists

    .. math:: \frac1n \sum_t \text{Risk}(w_t) \le \frac{L}{n} + \sqrt{\frac{\log(1/\delta)}{2n}},

    for the weights w_t before each round of any online ranker, by Hoeffding's inequality for martingales.
    A ranker that draws one of the w_t at random has that risk.

    Examples
    --------
    >>> round(online_to_batch(L=100.0, n=1000, delta=0.05).value, 4)
    0.1387
    """
    refuse_unless("online_to_batch", least=0, L=L)
    refuse_unless("online_to_batch", least=1, n=n)
    if not 0 < delta < 1:
        raise RankwiseError(f"online_to_batch: delta is between 0 and 1: found {delta!r}")
    if n < L * (1 - 1e-12):
        raise RankwiseError(f"online_to_batch: losses are at most 1, so L is at most n: found L={L!r}, n={n!r}")
    return Bound(
        name="Online to batch",
        bounds="mean risk of the iterates",
        statement="L/n + sqrt(log(1/delta)/(2 n))",
        value=L / n + math.sqrt(-math.log(delta) / (2 * n)),
        terms={"L": L, "n": float(n), "delta": delta},
        preconditions=(
            Precondition("the n lists are independent draws of one distribution, each seen once"),
            Precondition("the loss of a round is between 0 and 1"),
            Precondition(f"it is true with probability {1 - delta:g} over the lists"),
        ),
        ceiling=1.0,
        kind="online",
    )


def _constant(where: str, radius: float, V: float, eta: float | None, margin: float) -> float:
    """c = 4 radius^2 V + 2 margin/eta."""
    refuse_unless(where, least=0, radius=radius, V=V, margin=margin)
    if eta is not None:
        refuse_unless(where, above=0, eta=eta)
    elif margin > 0:
        raise RankwiseError(f"{where}: with a margin above 0 the bound depends on eta: found margin={margin}, eta=None")
    return 4 * radius**2 * V + (0.0 if eta is None else 2 * margin / eta)


def _constant_text(margin: float) -> str:
    return "c = 4 radius^2 V" + (" + 2 margin/eta" if margin > 0 else "")


def _constant_terms(radius: float, V: float, eta: float | None, margin: float) -> dict[str, float]:
    terms = {"radius": radius, "V": V}
    return terms if eta is None or margin == 0 else terms | {"margin": margin, "eta": eta}


def _separable(whole: Bound, gamma: float, statement: str) -> Bound:
    """The bound for u = u*/gamma and F = 0."""
    kept = {name: number for name, number in whole.terms.items() if name not in ("F", "norm_u", "sharp")}
    return Bound(
        name=f"{whole.name}, separable",
        bounds=whole.bounds,
        statement=statement,
        value=whole.value,
        terms={"gamma": gamma} | kept,
        preconditions=(
            *(one for one in whole.preconditions if not one.sentence.startswith("F ")),
            Precondition("one unit vector ranks every list with all gaps of gamma or more"),
        ),
        source=whole.source,
        kind=whole.kind,
    )
