"""Which loss smooths which measure, and in which units its width is."""

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import RankwiseError
from rankwise.data.queries import Queries
from rankwise.losses._base import SmoothedMeasure
from rankwise.losses.smooth_ap import SmoothAP
from rankwise.losses.smooth_ndcg import SmoothNDCG, SmoothPrecision, SmoothRR
from rankwise.measures._base import Measure
from rankwise.measures.ap import AP
from rankwise.measures.compute import ScoredLists, measure_lists
from rankwise.measures.gains import discounts, gains
from rankwise.measures.ndcg import DCG, NDCG
from rankwise.measures.precision import P
from rankwise.measures.rr import RR
from rankwise.solvers.batch.objective import LossOverLists

Vector = NDArray[np.float64]

# the paper's stages, in squared units of scores that fit gains
SIGMAS = tuple(2.0**power for power in range(6, -7, -1))


def smoothed_for(measure: Measure, form: Literal["sigmoid", "indicator"]) -> SmoothedMeasure:
    """The loss 1 - A whose A tends to the measure as sigma goes to 0."""
    if isinstance(measure, (NDCG, DCG)):
        return SmoothNDCG(k=measure.cutoff, gain=measure.gain, discount=measure.discount)
    if isinstance(measure, AP) and measure.cutoff is None:
        return SmoothAP(form=form, rel=measure.rel)
    if isinstance(measure, P) and measure.cutoff is not None:
        return SmoothPrecision(k=measure.cutoff, rel=measure.rel)
    if isinstance(measure, RR) and measure.cutoff is None:
        return SmoothRR(rel=measure.rel)
    raise RankwiseError(f"nDCG, nDCG@k, DCG@k, AP, P@k and RR can be smoothed: found {measure!r}")


def list_weights(measure: Measure, queries: Queries) -> Vector | None:
    """What each list counts: its own weight and, for DCG, its ideal DCG, for that is what nDCG was divided by."""
    if not isinstance(measure, DCG):
        return queries.weight
    longest = int(queries.sizes.max(initial=0))
    discount = discounts(longest, measure.discount)[: measure.cutoff]
    gain = gains(queries.labels(), measure.gain)
    ideal = np.array(
        [
            np.sort(gain[queries.rows_of(number)])[::-1][: len(discount)] @ discount[: min(size, len(discount))]
            for number, size in enumerate(queries.sizes.tolist())
        ]
    )
    return np.asarray(ideal * queries.query_weight)


def largest_gain(measure: Measure, lists: LossOverLists) -> tuple[float, float]:
    """(sum of what perfect rankings are worth, sum of the lists' weights), lists with nothing to find left out.

    (first - sum of the losses) / second is the mean smoothed measure.
    """
    queries = lists.queries
    nothing = ScoredLists(np.zeros(queries.n_documents), queries.labels(), queries.start, queries.scattered_rows)
    found = ~np.isnan(measure_lists([measure], nothing)[0])
    worth = lists.weight if len(lists.weight) else np.ones(len(queries))
    return math.fsum(worth[found]), math.fsum(queries.query_weight[found])


def stage_sigmas(loss: SmoothedMeasure, unit: float) -> list[float]:
    """The paper's widths for scores in these units; a sigmoid's width is in units of scores, not of their squares."""
    squared = [sigma * unit**2 for sigma in SIGMAS]
    return [sigma**0.5 for sigma in squared] if getattr(loss, "form", None) == "sigmoid" else squared


def score_unit(queries: Queries, scores: Vector) -> float:
    """How many units of these scores make one of gain: 1 / slope of the regression of gains on scores, within lists.

    Scores that do not go along with gains at all are measured by their spread.
    """
    own, target = within_lists(queries, scores), within_lists(queries, gains(queries.labels(), "exp2"))
    variance, along = float(own @ own), float(own @ target)
    if variance == 0 or not float(target @ target):
        return 1.0
    if along <= 0:
        return float(np.sqrt(variance / (target @ target)))
    return variance / along


def within_lists(queries: Queries, values: Vector) -> Vector:
    """Values of rows less the mean of their list; lists of weight 0 are all 0."""
    owner = queries.query_of_row
    count = np.maximum(np.bincount(owner, minlength=len(queries)), 1)
    centred = values - (np.bincount(owner, values, len(queries)) / count)[owner]
    return np.asarray(centred * (queries.query_weight[owner] > 0))
