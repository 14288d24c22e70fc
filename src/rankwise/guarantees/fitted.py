r"""From bounds fixed in advance to the one that is reported: the norm that was fitted, and the smallest of several.

A bound for a ball, at one delta, is about that ball alone. Whoever looks at the data before choosing the ball, or
before choosing between bounds, has to pay for the choice with a smaller delta.
"""

import math
from collections.abc import Callable
from dataclasses import replace

from rankwise._errors import RankwiseError
from rankwise.guarantees._bound import Bound, Precondition, refuse_unless, refuse_unless_chance

FIRST_BALL = Precondition("W_0 was fixed before the data were seen")


def ball_index(*, norm: float, W_0: float) -> int:
    """The first j with norm <= W_0 2^j: which of the balls fixed in advance holds a fitted w.

    >>> [ball_index(norm=norm, W_0=1.0) for norm in (0.0, 1.0, 1.01, 2.0, 5.0)]
    [0, 0, 1, 1, 3]
    """
    refuse_unless("ball_index", least=0, norm=norm)
    refuse_unless("ball_index", above=0, W_0=W_0)
    j = 0
    while math.ldexp(W_0, j) < norm:  # no logarithm, which rounds
        j += 1
    return j


def for_fitted_norm(make: Callable[[float, float], Bound], *, norm: float, W_0: float, delta: float) -> Bound:
    r"""A uniform bound for a w whose norm was not known in advance: W_j = W_0 2^j at delta_j = delta/((j+1)(j+2)).

    All the balls W_0, 2 W_0, 4 W_0, ... are fixed in advance and their deltas add up to delta, so with probability
    1 - delta every one of the bounds holds, that of the first ball with w in it, too.

    Parameters
    ----------
    make : gives the bound of a ball of radius W at a level delta; what depends on the ball, as the interval of the
        losses does, depends on W there, as in the example
    norm : of the fitted w
    W_0 : radius of the first ball, chosen before the data were seen
    delta : how often the whole may be wrong

    Returns
    -------
    bound : with j, W_0, delta_j and the fitted norm among its terms

    Examples
    --------
    >>> from rankwise.guarantees.uniform import l2_ball
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
    kept = {name: number for name, number in alone.terms.items() if name != "delta"}
    return replace(
        alone,
        name=f"{alone.name}, fitted norm",
        statement=f"{_at_delta_j(alone.statement)}, W_j = W_0 2^j, delta_j = delta/((j + 1)(j + 2))",
        terms=kept | {"norm": norm, "W_0": W_0, "j": float(j), "delta": delta, "delta_j": delta_j},
        preconditions=(
            *(one for one in alone.preconditions if not _about_the_ball(one)),
            FIRST_BALL,
            Precondition(f"it is true with probability {1 - delta:g} over the lists, for every w at once"),
        ),
    )


def smallest(*makers: Callable[[float], Bound], delta: float, unverified: bool = False) -> Bound:
    """The smallest of several bounds on the same number, each made at delta divided by how many they are.

    Bounds that are ``unverified`` are left out unless asked for, before delta is divided; what does not apply counts
    in the division, since whether it applies may depend on the data.

    Parameters
    ----------
    makers : each gives its bound at a level delta, as in ``lambda delta: l2_ball(delta=delta, ...)``
    delta : how often the smallest may be wrong
    unverified : whether bounds may be used that rest on constants that nobody checked

    Returns
    -------
    bound : the smallest one that applies, with ``compared`` and ``delta_each`` among its terms

    Examples
    --------
    >>> from rankwise.guarantees.uniform import l2_ball, linf_ball
    >>> known = {"risk": 0.1, "W": 1.0, "radius": 1.0, "m": 10, "n": 10_000, "b": 3.0}
    >>> def scores(delta):
    ...     return l2_ball(L2=1.5, delta=delta, **known)
    >>> def largest(delta):
    ...     return linf_ball(G=2.0, delta=delta, **known)
    >>> best = smallest(scores, largest, delta=0.05)
    >>> best.name, best.terms["delta_each"], round(best.value, 3)
    ('Uniform, l2-Lipschitz, smallest of 2', 0.025, 0.26)
    """
    refuse_unless_chance("smallest", delta=delta)
    kept = [make for make in makers if unverified or make(delta).status == "proved here"]
    if not kept:
        raise RankwiseError(f"the smallest of several bounds needs one that is verified: found {len(makers)} in all")
    each = delta / len(kept)
    bounds = [make(each) for make in kept]
    about = {(bound.bounds, bound.side) for bound in bounds}
    if len(about) > 1:
        raise RankwiseError(f"bounds are compared if they bound the same number from above: found {sorted(about)}")
    best = min((bound for bound in bounds if bound.applies is not False), key=lambda bound: bound.value, default=None)
    if best is None or best.side != "at most":
        raise RankwiseError("none of the bounds that were compared applies, and is a bound from above")
    return replace(
        best,
        name=f"{best.name}, smallest of {len(kept)}",
        terms=dict(best.terms) | {"compared": float(len(kept)), "delta_each": each},
        preconditions=(
            *(one for one in best.preconditions if not one.sentence.startswith("it is true with probability")),
            Precondition(f"it is true with probability {1 - delta:g} over the lists"),
        ),
    )


def _about_the_ball(condition: Precondition) -> bool:
    return condition.sentence.startswith(("the ball of w", "it is true with probability"))


def _at_delta_j(statement: str) -> str:
    return statement.replace("delta", "delta_j").replace(" W ", " W_j ").replace("W1", "W_j")
