"""What a ranker minimized, as its certificate needs to know it, and the bounds that follow from that.

:class:`TrainingObjective` names the loss, the penalty, and how both were chosen. The bounds are the gap to the minimum,
the excess in expectation, and what the loss tells about the measure on the training queries.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from rankwise._kernels.radius import largest_radius
from rankwise.guarantees._bound import OPTIMALITY_GAP, TRAINING, Bound, Precondition
from rankwise.guarantees.bounds.batch import rerm
from rankwise.guarantees.bounds.training import smoothing_error, surrogate_above_loss
from rankwise.guarantees.bounds.uniform import BALL, MINIMIZER, l1_erm, linf_erm
from rankwise.losses._base import Loss, SmoothedMeasure
from rankwise.measures._base import Measure
from rankwise.queries.chunks import scale_factors

if TYPE_CHECKING:
    from rankwise.rankers.certificate.claims import Constants, ScoredSample


@dataclass(frozen=True, kw_only=True)
class TrainingObjective:
    r"""The mean of a loss over queries plus (alpha/2) norm(w - w0)^2, or inside a ball.

    Attributes
    ----------
    loss : Loss
        The loss that ``coef_`` minimizes, with its final parameters.
    loss_fixed : bool or None, default=True
        Whether the parameters of the loss were fixed before the data were seen; None if only the user can know.
    loss_among : int, default=1
        The number of losses, all fixed before the data were seen, of which the data chose this one.
    alpha : float, default=NaN
        The l2 penalty, for weights in the units of ``scale``; NaN if there is none.
    alpha_fixed : bool or None, default=None
        Whether alpha was fixed before the data were seen.
    scale : str, default="none"
        The ranker's ``scale``; "auto" may divide features by statistics of these queries.
    center_fixed : bool or None, default=True
        Whether w0 does not depend on these queries.
    objective : float, default=NaN
        The objective at ``coef_``.
    gap : float, default=NaN
        A proven bound on objective - minimum; NaN if there is none.
    norm : float, default=None
        The declared norm of the weights to compare with.
    max_norm : float, default=NaN
        The radius of the ball around w0 in which the mean loss was minimized; NaN if there was none.
    max_norm_order : {"l2", "l1"}, default="l2"
        The norm of that ball.
    """

    loss: Loss
    loss_fixed: bool | None = True
    loss_among: int = 1
    alpha: float = math.nan
    alpha_fixed: bool | None = None
    scale: str = "none"
    center_fixed: bool | None = True
    objective: float = math.nan
    gap: float = math.nan
    norm: float | None = None
    max_norm: float = math.nan
    max_norm_order: str = "l2"


def gap_bound(objective: float, gap: float, of: str = "objective") -> Bound:
    """The proven distance of a nonnegative objective from its minimum, as a bound."""
    return Bound(
        name="Gap to the minimum",
        bounds=f"{of} - its minimum",
        statement="objective - lower_bound",
        value=gap,
        terms={"objective": objective, "lower_bound": objective - gap},
        ceiling=objective if objective > 0 else math.inf,
        kind="optimality gap",
        scope=OPTIMALITY_GAP,
    )


def _solved_for(
    training: TrainingObjective, sample: "ScoredSample", constants: "Constants"
) -> tuple[int, float, float, Precondition] | None:
    """(n, R, G, whether features are raw) of a convex problem that was solved; None for others."""
    loss, queries = training.loss, sample.queries
    n = int((queries.query_weight > 0).sum())
    factor, _ = scale_factors(queries, training.scale)  # type: ignore[arg-type]
    raw = bool((factor == 1).all())
    R = constants.radius if raw else largest_radius(queries.X, queries.start, queries.rows, factor)
    G = loss.lipschitz_l1(constants.m)
    if not (loss.convex and math.isfinite(training.gap) and n and R > 0 and 0 < G < math.inf):
        return None
    return n, R, G, Precondition("features are raw, not scaled by statistics of these queries", raw)


def expected_excess(training: TrainingObjective, sample: "ScoredSample", constants: "Constants") -> Bound | None:
    """The excess of regularized minimization in expectation over samples; None without a convex loss and an alpha.

    W is the declared norm, or else the norm for which this alpha gives the smallest bound.
    """
    loss, alpha, known = training.loss, training.alpha, _solved_for(training, sample, constants)
    if known is None or not alpha > 0:
        return None
    n, R, G, raw = known
    W = training.norm or 2 * G * R / (alpha * math.sqrt(n))
    gap = max(0.0, training.gap)  # rounding may take it below
    bound = rerm(G=G, W=W, radius=R, n=n, lambda_=alpha, gap=gap, fixed=training.alpha_fixed)
    # weights with an objective not above that of w0 are at most this far from it
    at_center = loss.range(0.0, constants.m, sample.label_span)[1]
    worst = float(loss.range(R * math.sqrt(2 * at_center / alpha), constants.m, sample.label_span)[1])
    return replace(
        bound,
        name=f"{bound.name}, {loss.name}{constants.mark}",
        bounds=f"expected excess of the {loss.name} loss over weights of norm W",
        preconditions=(
            *bound.preconditions,
            raw,
            Precondition("w0 does not depend on these queries", training.center_fixed),
            sample.count_the_same,
            *constants.conditions,
        ),
        ceiling=worst if loss.nonnegative and training.center_fixed else math.inf,
    )


def minimizer_excess(
    training: TrainingObjective, sample: "ScoredSample", constants: "Constants"
) -> Callable[[float], Bound] | None:
    """delta -> the excess risk over the best weights of the ball; None without a ball around 0 that was solved in.

    The gap to the minimum is added: weights whose mean loss is above the minimum by the gap have at most that much more
    excess.
    """
    loss, W, known = training.loss, training.max_norm, _solved_for(training, sample, constants)
    if known is None or not (W > 0 and training.center_fixed is True):
        return None
    n, R, G, raw = known
    low, high = loss.range(W * R, constants.m, sample.label_span)
    shared: dict[str, Any] = {"G": G, "m": constants.m, "n": n, "b": float(high - low)}
    gap = max(0.0, training.gap)  # rounding may take it below

    def at(delta: float) -> Bound:
        if training.max_norm_order == "l1":  # no entry of a row exceeds its norm
            bound = l1_erm(W1=W, entry=R, d=sample.queries.n_features, delta=delta, **shared)
        else:
            bound = linf_erm(W=W, radius=R, delta=delta, **shared)
        decided = {
            one.sentence: replace(one, met=met) for one, met in ((MINIMIZER, True), (BALL, training.alpha_fixed))
        }
        return replace(
            bound,
            name=f"{bound.name}, {loss.name}{constants.mark}",
            bounds=f"excess of the {loss.name} loss over the best weights of {training.max_norm_order} norm {W:g}",
            statement=f"{bound.statement} + gap",
            value=bound.value + gap,
            terms={**bound.terms, "gap": gap},
            preconditions=(
                *(decided.get(one.sentence, one) for one in bound.preconditions),
                raw,
                sample.count_the_same,
                *constants.conditions,
            ),
        )

    return at


def surrogate_on_sample(sample: "ScoredSample", loss: Loss) -> Bound | None:
    """Mean of 1 - measure <= mean loss, for the measure that the loss upper-bounds, checked on every query."""
    measure = loss.upper_bounds
    if measure is None:
        return None
    values = sample.measured(measure, "pessimistic")
    counted = ~np.isnan(values)
    if not counted.any():
        return None
    bound = surrogate_above_loss(sample.losses(loss)[counted], 1 - values[counted])
    about = f"1 - {measure.title} on {sample.population(measure, None).training}"
    return replace(bound, name=f"{bound.name}, {loss.name}", bounds=about)


def smoothing_gap(sample: "ScoredSample", loss: Loss, measure: Measure) -> Bound | None:
    """Bound on the mean distance of smoothed NDCG from NDCG; None for losses that smooth another measure.

    The error of a query bounds its distance from NDCG with ties in any order, so also from the average over orders.
    """
    queries = sample.queries
    terms = (
        loss.discounted_gains(queries.labels(), int(queries.sizes.max(initial=0)))
        if isinstance(loss, SmoothedMeasure)
        else None
    )
    if terms is None:
        return None
    measured = sample.measured(measure, "expected")
    counted = np.flatnonzero(~np.isnan(measured))
    if not len(counted):
        return None
    smooth = 1 - sample.losses(loss)[counted]
    (gain, discount), smoothed = terms, cast("Any", loss)
    each = [
        smoothing_error(
            sample.scores[rows], gain[rows], sigma=smoothed.sigma, k=smoothed.k, discounts=discount[: len(gain[rows])]
        )
        for rows in map(queries.rows_of, counted.tolist())
    ]
    values, gaps = [one.value for one in each], [one.terms["mu"] for one in each]
    return Bound(
        name="Smoothing error, mean over queries",
        bounds=f"abs(smooth {measure.title} - {measure.title}) on {sample.population(measure, None).training}",
        statement="mean of G_max share S/(1 + S)",
        value=math.fsum(values) / len(values),
        terms={
            **{"sigma": smoothed.sigma, "n": float(len(each)), "largest": max(values), "smallest_mu": min(gaps)},
            "measured": float(np.abs(smooth - measured[counted]).mean()),
        },
        source=each[0].source,
        ceiling=float(np.maximum(np.abs(smooth), np.abs(1 - smooth)).mean()),  # NDCG is between 0 and 1 anyway
        kind="training",
        scope=TRAINING,
    )
