"""Queries prepared to be measured under many scores: under every single feature once, then under sums of features.

:class:`RankedLists` sorts what the measure makes of the labels once. AdaRank asks it for the measure of every query
under every feature (:meth:`RankedLists.by_features`, in one pass over X) and, in every round, under the current scores
(:meth:`RankedLists.measured`). Both call the same compiled loop, so that a feature has the same value alone and as a
vector of scores.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from rankwise._errors import MeasureError
from rankwise._kernels import drive
from rankwise._kernels.jit import compiled
from rankwise._kernels.ragged import gather_columns, measure_columns
from rankwise.data.checks import Floats
from rankwise.data.queries import Queries
from rankwise.measures._base import Measure, Ties
from rankwise.measures.compute import KERNEL, PreparedMeasure

Vector = NDArray[np.float64]

# Features gathered at once: a row of X is read by whole cache lines, and a block of rows stays in the cache. Queries
# too long for that are gathered by fewer features, down to one.
_FEATURES = 16
_VALUES = 1 << 20
# How far rounding may carry a measure outside of [0, 1].
_ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True)
class RankedLists:
    """The queries whose weight is not 0, one after another, ready for one measure.

    Attributes
    ----------
    X : ndarray of shape (n_documents, n_features)
        All documents, in the order of the input.
    rows : ndarray of int64
        The rows of X that belong to these queries.
    start : ndarray of int64, shape (n_queries + 1,)
        Query q owns ``rows[start[q]:start[q+1]]``.
    order, value : ndarray of int64 and of float64
        What the measure makes of the labels, ascending within each query, and the place of each value in its query.
    weight : ndarray of shape (n_queries,)
        The weights of the queries.
    prepared : PreparedMeasure
        The measure, its kernel, and the numbers that the kernel takes.
    ties : {"expected", "pessimistic"}
        How documents with equal scores are measured.
    n_jobs : int or None
        Number of threads.
    """

    X: Floats
    rows: NDArray[np.int64]
    start: NDArray[np.int64]
    order: NDArray[np.int64]
    value: Vector
    weight: Vector
    prepared: PreparedMeasure
    ties: Ties
    n_jobs: int | None

    @classmethod
    def of(cls, queries: Queries, measure: Measure, ties: Ties, n_jobs: int | None) -> "RankedLists":
        """Prepare queries for a measure.

        Parameters
        ----------
        queries : Queries
            Judged queries.
        measure : Measure
            A measure with values in [0, 1].
        ties : {"expected", "pessimistic"}
            How documents with equal scores are measured.
        n_jobs : int or None
            Number of threads.

        Returns
        -------
        RankedLists
            The prepared queries.
        """
        chosen = queries.counted
        sizes = queries.sizes[chosen]
        rows = queries.rows[np.repeat(queries.query_weight != 0, queries.sizes)]
        start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        prepared = PreparedMeasure.of(measure, queries.labels()[rows], start)
        order = np.lexsort((prepared.values, np.repeat(np.arange(len(sizes)), sizes)))
        return cls(
            X=queries.X.view(np.ndarray),
            rows=rows,
            start=start,
            order=order - np.repeat(start[:-1], sizes),
            value=np.ascontiguousarray(prepared.values[order]),
            weight=queries.query_weight[chosen],
            prepared=prepared,
            ties=ties,
            n_jobs=n_jobs,
        )

    def column(self, feature: int) -> Vector:
        """A feature as scores, in the order of ``rows``."""
        return self.X[:, feature].astype(np.float64)[self.rows]

    def measured(self, scores: Vector) -> Vector:
        """The measure of every query under scores in the order of ``rows``; NaN where it is 0/0."""
        out = np.empty((1, len(self.start) - 1))

        def work(first: int, last: int) -> None:
            self._measure(scores[None, self.start[first] : self.start[last]], first, last, out[:, first:last])

        drive.run(work, list(drive.query_chunks(self.start)), self.n_jobs)
        return _clipped(out[0], self.prepared.measure)

    def by_features(self, negated: bool, advance: Callable[[float], None]) -> Vector:
        """The measure of every query under every feature.

        X is read once, in blocks that bound the memory needed beside it.

        Parameters
        ----------
        negated : bool
            Whether to rank by the negated features as well.
        advance : callable
            Called with the share of the work that has been done since the last call.

        Returns
        -------
        ndarray of shape (n_features or 2 n_features, n_queries)
            One row per feature, then one per negated feature.
        """
        features = self.X.shape[1]
        out = np.empty((2 if negated else 1, features, len(self.start) - 1))
        tasks = []
        for first, last in drive.query_chunks(self.start, max(1, drive.CHUNK // _FEATURES)):
            documents = int(self.start[last] - self.start[first])
            wide = max(1, min(_FEATURES, _VALUES // max(1, documents)))
            tasks += [(first, last, low, min(low + wide, features)) for low in range(0, features, wide)]

        def work(first: int, last: int, low: int, high: int) -> None:
            rows = self.rows[self.start[first] : self.start[last]]
            keys = np.empty((high - low, len(rows)))
            gather_columns(self.X, rows, low, keys)
            # the second half of out, if there is one, gets the negated features
            for half in out:
                self._measure(keys, first, last, half[low:high, first:last])
                np.negative(keys, out=keys)
            advance(1 / len(tasks))

        drive.run(work, tasks, self.n_jobs)
        return _clipped(out.reshape(-1, out.shape[2]), self.prepared.measure)

    def _measure(self, keys: Vector, first: int, last: int, out: Vector) -> None:
        """Measure queries first..last-1 under every row of ``keys``."""
        low, high, prepared = self.start[first], self.start[last], self.prepared
        _loop()(
            prepared.kernel,
            self.start[first : last + 1] - low,
            keys,
            self.order[low:high],
            self.value[low:high],
            self.ties == "expected",
            prepared.measure.needs_ideal,
            prepared.table,
            prepared.params,
            out,
        )


def _clipped(values: Vector, measure: Measure) -> Vector:
    """The values within [0, 1]; a measure that leaves it by more than rounding raises an error."""
    with np.errstate(invalid="ignore"):
        outside = (values < -_ROUNDING) | (values > 1 + _ROUNDING)
    if outside.any():
        raise MeasureError(
            f"boosting needs a measure with values between 0 and 1: {measure.title} is {values[outside][0]:g}"
        )
    return np.clip(values, 0.0, 1.0, out=values)


@cache
def _loop() -> Any:
    """The loop over queries and columns, compiled at its first use."""
    floats_in = types.Array(types.float64, 1, "C", readonly=True)
    ints_in = types.Array(types.int64, 1, "C", readonly=True)
    signature = types.void(
        types.FunctionType(KERNEL),
        ints_in,
        types.Array(types.float64, 2, "C"),
        ints_in,
        types.Array(types.float64, 1, "C"),
        types.boolean,
        types.boolean,
        floats_in,
        floats_in,
        types.Array(types.float64, 2, "A"),
    )
    return compiled(measure_columns, signature)
