"""What boosting chooses from: thresholds of features, and features as they are.

:class:`GradedLists` orders the documents of the training queries by query and grade; a position in this order is
called a place. :class:`Candidates` holds the thresholds of every feature, and for every place the number of thresholds
below its value. Sums over documents above a threshold and over pairs then run over places, without a look at X.

:class:`RankedLists` sorts what the measure makes of the labels once. AdaRank asks it for the measure of every query
under every feature (:meth:`RankedLists.by_features`, in one pass over X) and, in every round, under the current scores
(:meth:`RankedLists.measured`). Both call the same compiled loop, so a feature has the same value alone and as a
vector of scores.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numba import types

from rankwise._arrays import Array, Mask, Numbers, Vector
from rankwise._kernels import parallel
from rankwise._kernels.machine.jit import FLOATS, FLOATS_IN, INTS_IN, MATRIX, compiled
from rankwise._kernels.ragged import gather_columns, measure_columns
from rankwise._kernels.thresholds import TOGETHER, even_gaps, fill_bins, sums_above, take_columns
from rankwise.errors import MeasureError
from rankwise.measures._base import Measure, Ties
from rankwise.measures.compute import KERNEL, PreparedMeasure
from rankwise.queries.checks import Floats
from rankwise.queries.queries import Queries

# Features read together: a cache line of float32, or two of float64.
_BLOCK = 16
# Fewer cells than this are summed on one thread, which is faster than to divide them.
_SHARED = 1 << 20
# Visits of a pair that are worth a thread of their own, and the largest number of parts that pairs are divided into.
_WORK, _PARTS = 1 << 20, 8


@dataclass(frozen=True)
class Candidates:
    """Weak rankers 1[x_f > cut], feature after feature, thresholds ascending.

    Attributes
    ----------
    cut : ndarray of float64
        All thresholds; the number of a candidate is its place here.
    start : ndarray of int64, shape (n_features + 1,)
        Feature f has the thresholds ``cut[start[f]:start[f+1]]``.
    bins : ndarray of unsigned integers, shape (n_features, n_places)
        How many thresholds of the feature are below the value of the document.
    """

    cut: Vector
    start: Numbers
    bins: Array

    @classmethod
    def of(cls, X: Floats, rows: Numbers, paired: int, most: int | None, n_jobs: int | None) -> Self:
        """Choose the thresholds, and find the place of every document between them.

        Parameters
        ----------
        X : ndarray of shape (n_documents, n_features)
            All documents.
        rows : ndarray of int64
            The row of X at each place.
        paired : int
            Thresholds lie between values of the first ``paired`` places.
        most : int or None
            The largest number of thresholds per feature; None takes all.
        n_jobs : int or None
            Number of threads.

        Returns
        -------
        Candidates
            The candidates.
        """
        cuts: list[list[Vector]] = _over_columns(
            X, rows[:paired], lambda columns, _: [thresholds_between(column, most) for column in columns], n_jobs
        )
        each = [cut for block in cuts for cut in block]
        start = np.concatenate([[0], np.cumsum([len(cut) for cut in each])]).astype(np.int64)
        cut = np.concatenate(each) if each else np.empty(0)
        return cls(cut, start, _bins(X, rows, cut, start, n_jobs))

    def with_documents(self, X: Floats, n_jobs: int | None) -> Self:
        """The same candidates, with the documents of another set in further places."""
        more = _bins(X, np.arange(len(X)), self.cut, self.start, n_jobs)
        return replace(self, bins=np.hstack([self.bins, more]))

    def __len__(self) -> int:
        return len(self.cut)

    def place(self, candidate: int) -> tuple[int, int]:
        """(feature, number of the threshold among those of the feature)."""
        feature = int(np.searchsorted(self.start, candidate, side="right")) - 1
        return feature, candidate - int(self.start[feature])

    def above(self, candidate: int) -> Mask:
        """The value of the weak ranker at every place."""
        feature, cut = self.place(candidate)
        return np.asarray(self.bins[feature] > cut)

    def sums_above(self, value: Vector, n_jobs: int | None) -> Vector:
        """For every candidate the sum of ``value``, given for the first places, over those above its threshold."""
        features = len(self.start) - 1
        out = np.empty(len(self.cut))
        shared = len(value) * features >= _SHARED
        # a multiple of what the kernel sums together, in about four parts
        step = -(-features // (4 * TOGETHER)) * TOGETHER if shared else max(1, features)
        parts = [(first, min(first + step, features)) for first in range(0, features, step)]
        parallel.map_chunks(
            lambda first, last: sums_above(first, last, self.bins, self.start, value, out), parts, n_jobs
        )
        return out


def _bins(X: Floats, rows: Numbers, cut: Vector, start: Numbers, n_jobs: int | None) -> Array:
    """Features x rows: how many thresholds of each feature are below the value, in the smallest type that holds it."""
    bins = np.empty((X.shape[1], len(rows)), np.min_scalar_type(int(np.diff(start).max(initial=0))))

    def fill(columns: Vector, first: int) -> None:
        for f, column in enumerate(columns, first):
            fill_bins(column, cut[start[f] : start[f + 1]], bins[f])

    _over_columns(X, rows, fill, n_jobs)
    return bins


def _over_columns(X: Floats, rows: Numbers, work: Any, n_jobs: int | None) -> list[Any]:
    """``work(columns, number of the first)`` on blocks of columns, each copied as float64; X itself is not copied."""
    features, plain = X.shape[1], np.asarray(X)

    def on_block(first: int, last: int) -> Any:
        columns = np.empty((last - first, len(rows)))
        take_columns(plain, rows, first, last, columns)
        return work(columns, first)

    blocks = [(first, min(first + _BLOCK, features)) for first in range(0, features, _BLOCK)]
    return parallel.map_chunks(on_block, blocks, n_jobs)


def thresholds_between(column: Vector, most: int | None) -> Vector:
    """Thresholds between distinct values: all of them, or those that divide the documents about evenly."""
    values, count = np.unique(column, return_counts=True)
    if most is None or len(values) <= most + 1:
        return between(values[:-1], values[1:])
    gaps = np.empty(most, dtype=np.int64)
    gaps = gaps[: even_gaps(count, most, gaps)]
    return between(values[gaps], values[gaps + 1])


def between(low: Vector, high: Vector) -> Vector:
    """A threshold t with low <= t < high, about the middle, which separates the two in float32 as well as float64.

    If the two differ in float32, t separates their rounded values, too. t is itself a float32 number if there is a
    suitable one, so that tools that store thresholds in float32 separate the same values.

    Parameters
    ----------
    low, high : ndarray of float64
        Pairs of values, low < high.

    Returns
    -------
    ndarray of float64
        One threshold per pair.
    """
    with np.errstate(over="ignore", under="ignore"):
        short_low, short_high = low.astype(np.float32), high.astype(np.float32)
        differ = short_low < short_high
        least = np.where(differ, np.maximum(low, short_low), low)
        limit = np.where(differ, np.minimum(high, short_high), high)
        middle = 0.5 * least + 0.5 * limit
        choice = least.copy()  # for neighboring numbers, which have no middle
        for better in (middle, least.astype(np.float32).astype(np.float64), middle.astype(np.float32)):
            choice = np.where((least <= better) & (better < limit), better, choice)
    return np.asarray(choice, dtype=np.float64)


# --------------------------------------------------------------------------------------------------------------- pairs


@dataclass(frozen=True)
class GradedLists:
    """The documents of queries, by query and grade: the layout in which pairs of different grades are summed.

    Attributes
    ----------
    rows : ndarray of int64
        The row of X at each place: query after query, the lowest grade first. Queries of a single grade, which have no
        pairs, come last; queries of weight 0 are left out.
    segment : ndarray of int64
        Segment g, of one query and one grade, has the places ``segment[g]`` to ``segment[g+1] - 1``. The last entry is
        the number of documents that have pairs.
    lists : ndarray of int64
        Query q has the segments ``lists[q]`` to ``lists[q+1] - 1``, two or more.
    weight : ndarray of float64
        The weights of the queries with pairs, above 0.
    """

    rows: Numbers
    segment: Numbers
    lists: Numbers
    weight: Vector

    @classmethod
    def of(cls, queries: Queries) -> Self:
        """The layout of these queries; scattered rows have the same places as grouped ones."""
        label, rows, weight = queries.labels()[queries.rows], queries.rows, queries.query_weight
        owner = np.repeat(np.arange(len(queries)), queries.sizes)
        # a stable sort: documents of one grade keep their order, so sums have the same bits however rows come
        order = np.lexsort((label, owner))
        label = label[order]
        begins = np.ones(len(order), dtype=bool)
        begins[1:] = (label[1:] != label[:-1]) | (owner[1:] != owner[:-1])
        grades = np.bincount(owner[begins], minlength=len(queries))
        counted = (grades > 1) & (weight > 0)
        paired, alone = counted[owner], ((grades == 1) & (weight > 0))[owner]
        return cls(
            rows=rows[np.concatenate([order[paired], order[alone]])],
            segment=np.append(np.flatnonzero(begins[paired]), paired.sum()),
            lists=np.concatenate([[0], np.cumsum(grades[counted])]),
            weight=weight[counted],
        )

    @property
    def n_paired(self) -> int:
        """Number of documents that have pairs."""
        return int(self.segment[-1])

    @cached_property
    def pairs(self) -> Vector:
        """Number of pairs of each query."""
        sizes = np.diff(self.segment).astype(np.float64)
        worse = self.segment[:-1] - np.repeat(self.segment[self.lists[:-1]], np.diff(self.lists))
        return np.add.reduceat(sizes * worse, self.lists[:-1]) if len(self.lists) > 1 else np.empty(0)

    def chunks(self, work: int) -> list[tuple[int, int]]:
        """Ranges (first, last) of queries with about the same number of pairs; more ``work`` gives more ranges."""
        parts = min(1 + work // _WORK, _PARTS)
        done = np.append(0.0, np.cumsum(self.pairs))
        bounds = np.unique(np.searchsorted(done, np.linspace(0, done[-1], parts + 1)))
        return list(pairwise(np.unique([0, *bounds.tolist(), len(self.pairs)]).tolist()))


# ------------------------------------------------------------------------------------------ single features as rankers


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
    rows: Numbers
    start: Numbers
    order: Numbers
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

        parallel.map_chunks(work, list(parallel.query_chunks(self.start)), self.n_jobs)
        return _clip(out[0], self.prepared.measure)

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
        for first, last in parallel.query_chunks(self.start, max(1, parallel.CHUNK // _FEATURES)):
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

        parallel.map_chunks(work, tasks, self.n_jobs)
        return _clip(out.reshape(-1, out.shape[2]), self.prepared.measure)

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


def _clip(values: Vector, measure: Measure) -> Vector:
    """The values within [0, 1]; a measure that leaves it by more than rounding raises an error."""
    with np.errstate(invalid="ignore"):
        outside = (values < -_ROUNDING) | (values > 1 + _ROUNDING)
    if outside.any():
        raise MeasureError(
            f"boosting requires a measure with values between 0 and 1, but {measure.title} is {values[outside][0]:g}"
        )
    return np.clip(values, 0.0, 1.0, out=values)


@cache
def _loop() -> Any:
    """The loop over queries and columns, compiled at its first use."""
    lists = (types.FunctionType(KERNEL), INTS_IN, MATRIX, INTS_IN, FLOATS)
    measure = (types.boolean, types.boolean, FLOATS_IN, FLOATS_IN)
    return compiled(measure_columns, types.void(*lists, *measure, types.Array(types.float64, 2, "A")))
