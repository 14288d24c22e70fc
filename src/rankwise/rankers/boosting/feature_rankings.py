"""Judged lists made ready to be measured by many scores: by every feature once, and by sums of features after that."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import MeasureError
from rankwise._kernels import drive
from rankwise.data.checks import Floats
from rankwise.data.queries import Queries
from rankwise.measures._base import Measure, Ties

Vector = NDArray[np.float64]

# Features that are gathered at once: a row of X is read by whole cache lines, and a block of rows stays in cache. Lists
# too long for that are gathered by fewer features, down to one.
_FEATURES = 16
_VALUES = 1 << 20

# How far rounding may carry a measure beyond 0 and 1.
_ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True)
class RankedLists:
    """The lists whose weight is not 0, list after list.

    Attributes
    ----------
    X : all documents, as they stand
    rows : which of them the lists own
    start : list q owns rows[start[q]:start[q+1]]
    order, value : what the measure makes of labels, ascending inside a list, and at which place of the list it stands
    formula, table, params : its compiled formula, and the other numbers that this takes
    weight : one number a list
    """

    X: Floats
    rows: NDArray[np.int64]
    start: NDArray[np.int64]
    order: NDArray[np.int64]
    value: Vector
    kernel: Any
    table: Vector
    params: Vector
    weight: Vector
    measure: Measure
    ties: Ties
    n_jobs: int | None

    @classmethod
    def of(cls, queries: Queries, measure: Measure, ties: Ties, n_jobs: int | None) -> "RankedLists":
        """These lists, for a measure under one way to break ties, "pessimistic" or "expected"."""
        chosen = queries.counted
        counts = np.zeros(len(queries), dtype=bool)
        counts[chosen] = True
        rows = queries.rows[np.repeat(counts, queries.sizes)]
        sizes = queries.sizes[chosen]
        value = measure.row_values(queries.labels()[rows])
        start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        order = np.lexsort((value, np.repeat(np.arange(len(sizes)), sizes)))
        return cls(
            X=queries.X.view(np.ndarray),
            rows=rows,
            start=start,
            order=order - np.repeat(start[:-1], sizes),
            value=np.ascontiguousarray(value[order]),
            kernel=_formula(measure),
            table=np.ascontiguousarray(measure.table(int(sizes.max(initial=0)))),
            params=measure.all_params(),
            weight=queries.query_weight[chosen],
            measure=measure,
            ties=ties,
            n_jobs=n_jobs,
        )

    def scores(self, of_documents: Vector) -> Vector:
        """Scores of all documents in the order of these lists."""
        return of_documents[self.rows]

    def column(self, feature: int) -> Vector:
        """A feature as scores."""
        return self.scores(self.X[:, feature].astype(np.float64))

    def measured(self, scores: Vector) -> Vector:
        """The measure of every list under these scores; NaN where it is 0/0."""
        out = np.empty((1, len(self.start) - 1))

        def work(first: int, last: int) -> None:
            self._measure(scores[None, self.start[first] : self.start[last]], first, last, out[:, first:last])

        drive.run(work, list(drive.query_chunks(self.start)), self.n_jobs)
        return _inside_0_and_1(out[0], self.measure)

    def by_features(self, negated: bool, advance: Callable[[float], None]) -> Vector:
        """The measure of every list ranked by every feature, features x lists, and then by every feature negated.

        X is read once, in blocks that bound what is held beside it; ``advance`` is told the share of it that is done.
        """
        from rankwise._kernels.ragged import gather_columns

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
            for half in out:
                self._measure(keys, first, last, half[low:high, first:last])
                np.negative(keys, out=keys)
            advance(1 / len(tasks))

        drive.run(work, tasks, self.n_jobs)
        return _inside_0_and_1(out.reshape(-1, out.shape[2]), self.measure)

    def mean(self, values: Vector) -> float:
        """The mean by weight over the lists that the measure says something about; NaN where there are none."""
        told = ~np.isnan(values)
        total = math.fsum(self.weight[told])
        return math.fsum(self.weight[told] * values[told]) / total if total else math.nan

    def _measure(self, keys: Vector, first: int, last: int, out: Vector) -> None:
        low, high = self.start[first], self.start[last]
        _loop()(
            self.kernel,
            self.start[first : last + 1] - low,
            keys,
            self.order[low:high],
            self.value[low:high],
            self.ties == "expected",
            self.measure.needs_ideal,
            self.table,
            self.params,
            out,
        )


def _inside_0_and_1(values: Vector, measure: Measure) -> Vector:
    with np.errstate(invalid="ignore"):
        outside = (values < -_ROUNDING) | (values > 1 + _ROUNDING)
    if outside.any():
        raise MeasureError(
            f"lists are weighed by a measure with values between 0 and 1: {measure.title} is {values[outside][0]:g}"
        )
    return np.clip(values, 0.0, 1.0, out=values)


@cache
def _loop() -> Any:
    """The loop over lists and columns; kept out of module import, which costs no compiler."""
    from numba import types

    from rankwise._kernels.jit import compiled
    from rankwise._kernels.ragged import measure_columns
    from rankwise.measures.compute import KERNEL

    floats = types.Array(types.float64, 1, "C")
    floats_in = types.Array(types.float64, 1, "C", readonly=True)
    ints_in = types.Array(types.int64, 1, "C", readonly=True)
    signature = types.void(
        types.FunctionType(KERNEL),
        ints_in,
        types.Array(types.float64, 2, "C"),
        ints_in,
        floats,
        types.boolean,
        types.boolean,
        floats_in,
        floats_in,
        types.Array(types.float64, 2, "A"),
    )
    return compiled(measure_columns, signature)


def _formula(measure: Measure) -> Any:
    from rankwise._kernels.jit import typed_function
    from rankwise.measures.compute import KERNEL

    return typed_function(type(measure).kernel, KERNEL)
