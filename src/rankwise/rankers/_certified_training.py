"""What is certain about the training lists themselves: losses above 1 - measure, and how far smoothing is off."""

import math
from dataclasses import replace

import numpy as np

from rankwise.guarantees._bound import Bound
from rankwise.guarantees.smoothing import smoothing_error, surrogate_above_loss
from rankwise.losses._base import Loss
from rankwise.losses.smooth_ndcg import SmoothNDCG
from rankwise.measures._base import Measure
from rankwise.measures.gains import discounts, gains
from rankwise.rankers._certified_lists import ScoredSample


def surrogate_on_sample(sample: ScoredSample, loss: Loss) -> Bound | None:
    """Mean loss of the measure that a loss bounds <= mean loss, checked on every list that the measure counts."""
    measure = loss.bounds
    if measure is None:
        return None
    values = sample.measured(measure, "pessimistic")
    counted = ~np.isnan(values)
    if not counted.any():
        return None
    bound = surrogate_above_loss(sample.losses(loss)[counted], 1 - values[counted])
    return replace(bound, name=f"{bound.name}, {loss.name}", bounds=f"1 - {measure.title} on the training lists")


def smoothing_gap(sample: ScoredSample, loss: Loss, measure: Measure) -> Bound | None:
    """How far the smoothed NDCG is from NDCG, on average over lists; None for losses that smooth something else.

    The error of a list bounds its distance from NDCG with tied documents in any order, so from the mean of all orders.
    """
    if not isinstance(loss, SmoothNDCG):
        return None
    queries, labels = sample.queries, sample.queries.labels()
    measured = sample.measured(measure, "expected")
    counted = np.flatnonzero(~np.isnan(measured))
    if not len(counted):
        return None
    smooth = 1 - sample.losses(loss)[counted]
    gain, discount = gains(labels, loss.gain), discounts(int(queries.sizes.max()), loss.discount)
    each = [
        smoothing_error(
            sample.scores[rows], gain[rows], sigma=loss.sigma, k=loss.k, discounts=discount[: len(gain[rows])]
        )
        for rows in map(queries.rows_of, counted.tolist())
    ]
    values, gaps = [one.value for one in each], [one.terms["mu"] for one in each]
    return Bound(
        name="Smoothing error, mean over lists",
        bounds=f"abs(smooth {measure.title} - {measure.title}) on the training lists",
        statement="mean of G_max share S/(1 + S)",
        value=math.fsum(values) / len(values),
        terms={
            **{"sigma": loss.sigma, "n": float(len(each)), "largest": max(values), "smallest_mu": min(gaps)},
            "measured": float(np.abs(smooth - measured[counted]).mean()),
        },
        source=each[0].source,
        ceiling=float(np.maximum(np.abs(smooth), np.abs(1 - smooth)).mean()),  # NDCG is between 0 and 1 anyway
        kind="training",
    )
