"""Where SmoothRank starts, and the widths of its smoothing: from what users give to weights and numbers.

A width sigma is in squared units of the scores (in their own units for the sigmoid form). The widths of the paper suit
scores that regress on gains; for a start whose scores have another scale, :func:`score_unit` says how many of its units
make one of gain, and the widths are multiplied accordingly.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import DataError, RankwiseError
from rankwise._kernels.rows import linear_scores
from rankwise.data.passes.chunked import ChunkedQueries
from rankwise.data.passes.work import Job
from rankwise.data.queries import Queries
from rankwise.losses._base import SmoothedMeasure
from rankwise.measures.ndcg import gains
from rankwise.rankers._base import LinearRanker
from rankwise.rankers._fit_frame import as_numbers, raw_weights
from rankwise.rankers.smooth.annealing import Start
from rankwise.solvers.batch.descent import Bounds, within

Vector = NDArray[np.float64]

# the stages of the paper, in squared units of scores that regress on gains
SIGMAS = tuple(2.0**power for power in range(6, -7, -1))
_STARTS = "'ridge', 'ranksvm', a fitted linear ranker or a vector"


@dataclass(frozen=True, kw_only=True)
class Beginnings:
    """What turns the starts that users give into weights and widths.

    Attributes
    ----------
    named : mapping of str to LinearRanker
        Unfitted rankers that a start may name.
    loss : SmoothedMeasure
        The smoothed measure.
    sigmas : tuple of float or None
        The widths; None derives them from the scores of the start.
    bounds : Bounds or None
        Bounds on single weights.
    n_jobs : int or None
        Number of threads.
    """

    named: Mapping[str, LinearRanker]
    loss: SmoothedMeasure
    sigmas: tuple[float, ...] | None
    bounds: Bounds | None
    n_jobs: int | None

    def start(self, given: Any, queries: Queries, validation: Queries | None, factor: Vector) -> Start:
        """The start from a name (fitted on these queries), a fitted linear ranker, or weights on raw features."""
        unit: float | None = None
        if isinstance(given, str):
            if given not in self.named:
                raise RankwiseError(f"start is {_STARTS}: found {given!r}")
            unit = 1.0 if given == "ridge" else None  # a regression on gains has scores in units of gain
            given = self.named[given].fit(queries, validation=validation)
        raw = raw_weights(given, queries.n_features, "start", _STARTS)
        w = within(np.divide(raw, factor, out=np.zeros_like(raw), where=factor > 0), self.bounds)
        if not w.any() and something_to_learn(queries):
            raise RankwiseError(
                "the start is 0 everywhere, where the gradient of a smoothed measure is 0: give another start"
            )
        if self.sigmas is not None:
            return Start(w, self.sigmas)
        if unit is None:
            unit = score_unit(queries, linear_scores(queries.X, w * factor, self.n_jobs))
        return Start(w, tuple(stage_sigmas(self.loss, unit)))


def as_starts(given: Any) -> list[Any]:
    """One start or several."""
    if not isinstance(given, list) or (given and all(isinstance(one, (int, float, np.number)) for one in given)):
        return [given]
    if not given:
        raise RankwiseError(f"start is {_STARTS}, or a list of such: found []")
    return given


def as_sigmas(given: Sequence[float] | None) -> tuple[float, ...] | None:
    """Positive, decreasing widths; None stays None."""
    if given is None:
        return None
    sigmas = as_numbers(given)
    if not sigmas or not all(0 < sigma < np.inf for sigma in sigmas) or tuple(sorted(sigmas, reverse=True)) != sigmas:
        raise RankwiseError(f"sigmas are positive numbers in decreasing order: found {given!r:.60}")
    return sigmas


def as_bounds(sign: Mapping[Any, int] | None, queries: Queries) -> Bounds | None:
    """Bounds on single weights from signs by the name or number of a feature."""
    if not sign:
        return None
    if not isinstance(sign, Mapping):
        raise RankwiseError(f"sign gives +1 or -1 by the name or number of a feature: found {sign!r:.60}")
    names = queries.feature_names
    bounds: Bounds = [(None, None)] * queries.n_features
    for feature, one in sign.items():
        place = names.index(feature) if names is not None and feature in names else feature
        if not isinstance(place, (int, np.integer)) or not 0 <= place < queries.n_features:
            raise DataError(f"sign names the feature {feature!r}, which is not among those of these queries")
        if one not in (1, -1):
            raise RankwiseError(f"the sign of feature {feature!r} is +1 or -1: found {one!r}")
        bounds[int(place)] = (0.0, None) if one > 0 else (None, 0.0)
    return bounds


def something_to_learn(queries: Queries) -> bool:
    """Whether both labels and features vary within some query."""
    if isinstance(queries, ChunkedQueries):
        return any(queries.map(LearnableOfChunk()))
    labels = queries.labels()
    for number in queries.counted.tolist():
        rows = queries.rows_of(number)
        if len(np.unique(labels[rows])) > 1 and (queries.X[rows] != queries.X[rows][:1]).any():
            return True
    return False


@dataclass(frozen=True)
class LearnableOfChunk(Job):
    """Whether a chunk holds something to learn."""

    def run(self, block: Queries, first: int, prepared: Any, *arguments: Any) -> bool:
        return something_to_learn(block)


def stage_sigmas(loss: SmoothedMeasure, unit: float) -> list[float]:
    """The widths of the paper for scores in these units; that of a sigmoid is in units of scores, not squared."""
    squared = [sigma * unit**2 for sigma in SIGMAS]
    return [sigma**0.5 for sigma in squared] if getattr(loss, "form", None) == "sigmoid" else squared


def score_unit(queries: Queries, scores: Vector) -> float:
    """Units of these scores per unit of gain: 1 / slope of the regression of gains on scores, within queries.

    If scores do not increase with gains, the ratio of the standard deviations.
    """
    own, target = within_lists(queries, scores), within_lists(queries, gains(queries.labels(), "exp2"))
    variance, along = float(own @ own), float(own @ target)
    if variance == 0 or not float(target @ target):
        return 1.0
    if along <= 0:
        return float(np.sqrt(variance / (target @ target)))
    return variance / along


def within_lists(queries: Queries, values: Vector) -> Vector:
    """Values minus the mean of their query; 0 in queries of weight 0."""
    owner = queries.query_of_row
    count = np.maximum(np.bincount(owner, minlength=len(queries)), 1)
    centred = values - (np.bincount(owner, values, len(queries)) / count)[owner]
    return np.asarray(centred * (queries.query_weight[owner] > 0))
