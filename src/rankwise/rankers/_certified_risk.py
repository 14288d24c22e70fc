r"""Bounds on the risk of linear weights, from the lists that they were learned from.

Uniform bounds hold for every w at once, so for one that was learned in any way, with any loss that is fixed beforehand
and bounded on a ball: the loss that was made small, or one that lies above 1 - measure. All is in the units of the
features as they come, because a scale that was learned from the same lists would not be fixed beforehand.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rankwise.data.queries import Queries
from rankwise.guarantees._bound import Bound, Precondition
from rankwise.guarantees.batch import rerm
from rankwise.guarantees.certificate import REPEATED, Claim, largest_of_groups
from rankwise.guarantees.fitted import for_fitted_norm
from rankwise.guarantees.optimistic import smooth_ball
from rankwise.guarantees.uniform import l1_ball, l2_ball, linf_ball
from rankwise.losses._base import Loss
from rankwise.measures._base import Measure
from rankwise.rankers._certified_lists import Constants, ScoredSample
from rankwise.rankers._minimised import Minimised
from rankwise.solvers.feature_scale import scale_factors

Vector = NDArray[np.float64]
Ball: TypeAlias = Callable[[float, float, float], Bound]  # of the sample's risk, the size of the ball, and delta

ABOVE = Precondition("on every list the loss is at least 1 - measure, equal scores in the worst order", True)
LOSS = "the loss was fixed before the data were seen"


@dataclass(frozen=True, kw_only=True)
class LossOnSample:
    """A loss, what it is on the lists that the measure says something about, and what may be said with it."""

    loss: Loss
    fixed: bool | None
    values: Vector
    labels: tuple[float, float]
    count_the_same: Precondition
    distinct: Vector | None = None  # one value for all queries that repeat each other, where some do
    drawn: int | None = None  # how many queries there are, also of those that the measure is not defined for

    @classmethod
    def of(cls, loss: Loss, fixed: bool | None, sample: ScoredSample, measure: Measure) -> "LossOnSample":
        counted = ~np.isnan(sample.measured(measure, "pessimistic"))
        values, group = sample.losses(loss)[counted], sample.group[counted]
        distinct = largest_of_groups(values, group)
        return cls(
            loss=loss,
            fixed=fixed,
            values=values,
            labels=label_span(sample.queries),
            count_the_same=sample.count_the_same,
            distinct=values[distinct] if len(distinct) < len(values) else None,
            drawn=len(sample.queries),
        )

    @property
    def range_needs_labels(self) -> bool:
        """Whether the range of the loss depends on the largest label, which only the sample tells."""
        low, high = self.labels
        return self.loss.range(1.0, 2, (low, high)) != self.loss.range(1.0, 2, (low, high + 1))

    def span(self, W: float, constants: Constants) -> tuple[float, float]:
        """Smallest and largest loss of a list, for every w with norm(w) <= W."""
        low, high = self.loss.range(W * constants.radius, constants.m, self.labels)
        return float(low), float(high)


def label_span(queries: Queries) -> tuple[float, float]:
    """From 0 to the largest label."""
    return 0.0, float(queries.labels().max(initial=0.0))


def uniform_claims(
    found: LossOnSample, coef: Vector, constants: Constants, measure: Measure, delta: float
) -> list[Claim]:
    """The uniform bounds of these weights and this loss; none where the loss has no finite constants.

    The headline at ``delta`` is not offered those that could say nothing about the measure, whatever the sample had
    been: the smallest ball, and no loss at all, would have been too many. That is known beforehand, and costs no delta:
    it is decided by the declared constants and by how many queries were drawn. Nor is it offered those whose loss has a
    range that only the labels of the sample tell, or the sample would choose how many bounds are compared.

    Where queries repeat each other a bound is made of all of them and of one for each group, and the larger one is
    taken, as by :func:`~rankwise.guarantees.certificate.holdout_claims`.
    """
    n, G = len(found.values), found.loss.lipschitz_l1(constants.m)
    if not (n and constants.radius > 0 and 0 < G < math.inf):
        return []
    samples = [found.values] if found.distinct is None else [found.values, found.distinct]
    balls = [_balls(found, constants, G, len(values), len(coef)) for values in samples]
    at_best = _balls(found, constants, G, found.drawn or n, len(coef))
    risks = [math.fsum(values.tolist()) / len(values) for values in samples]
    reach = {"l2": float(np.linalg.norm(coef)), "l1": float(np.abs(coef).sum())}

    def claim(kind: str) -> Claim:
        def fitted(ball: Ball, risk: float | None, norm: float, delta: float) -> Bound:
            def at(W: float, level: float) -> Bound:
                return ball(found.span(W, constants)[0] if risk is None else risk, W, level)

            bound = for_fitted_norm(at, norm=norm, W_0=constants.first_ball, delta=delta)
            return about_lists_to_come(bound, found, reach["l2"], constants, measure)

        def largest(level: float) -> Bound:
            bounds = [fitted(of[kind], risk, norm, level) for of, risk in zip(balls, risks, strict=True)]
            return max(bounds, key=lambda bound: bound.value)

        norm = reach["l1" if kind == "l1" else "l2"]
        hopeless = found.loss.bounds == measure and fitted(at_best[kind], None, 0.0, delta).vacuous
        return Claim(largest, headline=not (constants.assumed or hopeless or found.range_needs_labels))

    return [claim(kind) for kind in balls[0]]


def _balls(found: LossOnSample, constants: Constants, G: float, n: int, d: int) -> dict[str, Ball]:
    """The bounds for a ball, as functions of the sample's risk, the ball and delta."""
    R, m, H1 = constants.radius, constants.m, found.loss.smoothness(constants.m)

    def shared(risk: float, W: float, delta: float) -> dict[str, Any]:
        low, high = found.span(W, constants)
        return {"risk": risk, "n": n, "m": m, "delta": delta, "b": high - low, "low": low}

    # the gradient of a loss that sees no constant adds up to 0: half of its l1 norm G is above 0, half below
    balls: dict[str, Ball] = {
        "l2": lambda risk, W, delta: l2_ball(L2=G / math.sqrt(2), W=W, radius=R, **shared(risk, W, delta)),
        "linf": lambda risk, W, delta: linf_ball(G=G, W=W, radius=R, **shared(risk, W, delta)),
        # no entry of a row is larger than the row
        "l1": lambda risk, W, delta: l1_ball(G=G, W1=W, entry=R, d=d, **shared(risk, W, delta)),
    }
    if math.isfinite(H1) and found.loss.nonnegative:
        balls["smooth"] = lambda risk, W, delta: smooth_ball(
            risk=risk, H1=H1, W=W, radius=R, m=m, n=n, B=found.span(W, constants)[1], delta=delta
        )
    return balls


def about_lists_to_come(
    bound: Bound, found: LossOnSample, norm: float, constants: Constants, measure: Measure
) -> Bound:
    """The bound with what it is about in words, and with what is known of its preconditions."""
    above = found.loss.bounds == measure
    mark = f", assumes {constants.assumed}" if constants.assumed else ""
    return replace(
        bound,
        name=f"{bound.name}, {found.loss.name}{mark}",
        bounds=f"1 - {measure.title} on lists to come" if above else f"{found.loss.name} loss on lists to come",
        terms=dict(bound.terms) | {"measured_radius": constants.measured},
        preconditions=(
            *((ABOVE,) if above else ()),
            Precondition(LOSS, found.fixed),
            found.count_the_same,
            *((Precondition(REPEATED, True),) if found.distinct is not None else ()),
            *constants.conditions,
            *bound.preconditions,
        ),
        ceiling=1.0 if above else found.span(norm, constants)[1],  # what weights of this norm cannot exceed anyway
    )


def expected_excess(
    minimised: Minimised, queries: Queries, constants: Constants, count_the_same: Precondition
) -> Bound | None:
    """Regularised minimisation on average over samples; None where there is no convex loss with a strength.

    W is the declared norm, or else that of the weights for whose comparison this lambda is the best one.
    """
    loss, strength = minimised.loss, minimised.strength
    n = int((np.ones(len(queries)) if queries.weight is None else queries.weight > 0).sum())
    factor, _ = scale_factors(queries, minimised.scale)  # type: ignore[arg-type]
    as_they_are = bool((factor == 1).all())
    R = constants.radius if as_they_are else _scaled_radius(queries, factor)
    G = loss.lipschitz_l1(constants.m)
    solved = loss.convex and strength > 0 and math.isfinite(minimised.gap)
    if not (solved and n and R > 0 and 0 < G < math.inf):
        return None
    W = minimised.norm or 2 * G * R / (strength * math.sqrt(n))
    gap = max(0.0, minimised.gap)  # rounding may take it below
    bound = rerm(G=G, W=W, radius=R, n=n, lambda_=strength, gap=gap, fixed=minimised.strength_fixed)
    # weights that are no worse than w0 for the objective are at most so far from it
    labels = label_span(queries)
    at_centre = loss.range(0.0, constants.m, labels)[1]
    worst = float(loss.range(R * math.sqrt(2 * at_centre / strength), constants.m, labels)[1])
    return replace(
        bound,
        name=f"{bound.name}, {loss.name}" + (f", assumes {constants.assumed}" if constants.assumed else ""),
        bounds=f"expected excess of the {loss.name} loss over weights of norm W",
        preconditions=(
            *bound.preconditions,
            Precondition("features are as they came, not scaled by what these lists say", as_they_are),
            Precondition("w0 owes nothing to these lists", minimised.centre_fixed),
            count_the_same,
            *constants.conditions,
        ),
        ceiling=worst if loss.nonnegative and minimised.centre_fixed else math.inf,
    )


def _scaled_radius(queries: Queries, factor: Vector) -> float:
    from rankwise._kernels.rows import list_radius

    X, room = np.asarray(queries.X), np.empty(queries.n_features)
    parts = (queries.rows[first:last] for first, last in zip(queries.start[:-1], queries.start[1:], strict=True))
    return max((float(list_radius(X, rows, factor, room)) for rows in parts if len(rows)), default=0.0)
