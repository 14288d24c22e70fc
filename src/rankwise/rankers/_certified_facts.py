"""Preconditions that the package itself can settle: what a loss declares, and what was fixed before the data."""

from collections.abc import Mapping
from dataclasses import replace

from rankwise.guarantees._bound import Bound, Precondition
from rankwise.guarantees.batch import CONVEX
from rankwise.guarantees.certificate import Claim
from rankwise.guarantees.fitted import FIRST_BALL
from rankwise.guarantees.optimistic import SMOOTH_TO_B
from rankwise.guarantees.training import REWEIGHTED, ROUNDS
from rankwise.guarantees.uniform import SPAN, STEEP_L2, STEEP_MAX
from rankwise.losses._base import Loss

Facts = Mapping[str, Precondition]

# a booster's bound is made of its own rounds
OWN_ROUNDS: Facts = {one.sentence: replace(one, met=True) for one in (ROUNDS, REWEIGHTED)}


def facts_of(loss: Loss, labels: tuple[float, float], *, first_ball_known: bool) -> Facts:
    """What the constants that a loss declares settle, by the sentence that they settle.

    Parameters
    ----------
    loss : whose slope, smoothness and range were taken for the constants of a bound
    labels : the smallest and the largest that its range was taken for
    first_ball_known : whether W_0 came from declared constants alone
    """
    declared = {one.sentence: replace(one, met=True) for one in (STEEP_L2, STEEP_MAX, SMOOTH_TO_B)}
    wider = (labels[0], labels[1] + 1)
    if loss.range(1.0, 2, labels) == loss.range(1.0, 2, wider):
        span = replace(SPAN, met=True)
    else:
        span = Precondition(f"no label to come is above {labels[1]:g}, so that {SPAN.sentence}")
    convex = replace(CONVEX, met=loss.convex)
    first_ball = replace(FIRST_BALL, met=True if first_ball_known else None)
    return declared | {SPAN.sentence: span, CONVEX.sentence: convex, FIRST_BALL.sentence: first_ball}


def settled(bound: Bound, facts: Facts) -> Bound:
    """The bound with the preconditions that are known as the facts have them."""
    return replace(bound, preconditions=tuple(facts.get(one.sentence, one) for one in bound.preconditions))


def settled_claim(claim: Claim, facts: Facts) -> Claim:
    """The claim whose bound is settled at every delta."""
    return replace(claim, make=lambda delta: settled(claim.make(delta), facts))
