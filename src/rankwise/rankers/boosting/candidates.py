"""The thresholds that boosting chooses among, and every document's place between them."""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels import drive
from rankwise.data.checks import Floats
from rankwise.data.queries import Queries

Vector = NDArray[np.float64]
Ints = NDArray[np.int64]

# Features read together: a cache line of float32, or two of float64.
_BLOCK = 16
# Fewer cells than this are summed on one thread: sharing them out would take longer.
_SHARED = 1 << 20


@dataclass(frozen=True)
class Candidates:
    """Weak rankers 1[x_f > cut], feature after feature, thresholds ascending.

    Attributes
    ----------
    cut : all thresholds
    start : feature f has the thresholds start[f] .. start[f+1]-1
    bins : features x places, how many thresholds of the feature are below a document's value
    """

    cut: Vector
    start: Ints
    bins: NDArray[Any]

    @classmethod
    def of(cls, X: Floats, rows: Ints, paired: int, most: int | None, n_jobs: int | None) -> Self:
        """At most so many thresholds a feature (None: all), between values of the first ``paired`` of these rows."""
        cuts: list[list[Vector]] = _over_columns(
            X, rows[:paired], lambda columns, _: [_cuts(column, most) for column in columns], n_jobs
        )
        each = [cut for block in cuts for cut in block]
        start = np.concatenate([[0], np.cumsum([len(cut) for cut in each])]).astype(np.int64)
        cut = np.concatenate(each) if each else np.empty(0)
        return cls(cut, start, bins_of(X, rows, cut, start, n_jobs))

    def with_documents(self, X: Floats, n_jobs: int | None) -> Self:
        """The same candidates with the documents of another set in further places."""
        more = bins_of(X, np.arange(len(X)), self.cut, self.start, n_jobs)
        return replace(self, bins=np.hstack([self.bins, more]))

    def __len__(self) -> int:
        return len(self.cut)

    def place(self, candidate: int) -> tuple[int, int]:
        """(feature, number of the threshold among those of the feature)."""
        feature = int(np.searchsorted(self.start, candidate, side="right")) - 1
        return feature, candidate - int(self.start[feature])

    def above(self, candidate: int) -> NDArray[np.bool_]:
        """The weak ranker's value at every place."""
        feature, cut = self.place(candidate)
        return np.asarray(self.bins[feature] > cut)

    def sums_above(self, value: Vector, n_jobs: int | None) -> Vector:
        """For every candidate the sum of ``value`` over the first places that are above its threshold."""
        from rankwise._kernels.thresholds import TOGETHER, sums_above

        features = len(self.start) - 1
        out = np.empty(len(self.cut))
        shared = len(value) * features >= _SHARED
        step = -(-features // (4 * TOGETHER)) * TOGETHER if shared else max(1, features)
        parts = [(first, min(first + step, features)) for first in range(0, features, step)]
        drive.run(lambda first, last: sums_above(first, last, self.bins, self.start, value, out), parts, n_jobs)
        return out


def bins_of(X: Floats, rows: Ints, cut: Vector, start: Ints, n_jobs: int | None) -> NDArray[Any]:
    """Features x rows: how many thresholds of each feature are below the value, in as few bytes as hold it."""
    from rankwise._kernels.thresholds import fill_bins

    bins = np.empty((X.shape[1], len(rows)), np.min_scalar_type(int(np.diff(start).max(initial=0))))

    def fill(columns: Vector, first: int) -> None:
        for f, column in enumerate(columns, first):
            fill_bins(column, cut[start[f] : start[f + 1]], bins[f])

    _over_columns(X, rows, fill, n_jobs)
    return bins


def _over_columns(X: Floats, rows: Ints, work: Any, n_jobs: int | None) -> list[Any]:
    """``work(columns, number of the first)`` on blocks of columns, copied as float64; X is read where it stands."""
    from rankwise._kernels.thresholds import take_columns

    features, plain = X.shape[1], np.asarray(X)

    def on_block(first: int, last: int) -> Any:
        columns = np.empty((last - first, len(rows)))
        take_columns(plain, rows, first, last, columns)
        return work(columns, first)

    blocks = [(first, min(first + _BLOCK, features)) for first in range(0, features, _BLOCK)]
    return drive.run(on_block, blocks, n_jobs)


def _cuts(column: Vector, most: int | None) -> Vector:
    """Thresholds between distinct values, all of them or such that bins hold about the same number of documents."""
    from rankwise._kernels.thresholds import even_gaps

    values, count = np.unique(column, return_counts=True)
    if most is None or len(values) <= most + 1:
        return between(values[:-1], values[1:])
    gaps = np.empty(most, dtype=np.int64)
    gaps = gaps[: even_gaps(count, most, gaps)]
    return between(values[gaps], values[gaps + 1])


def between(low: Vector, high: Vector) -> Vector:
    """A threshold t with low <= t < high, about the middle, which separates the two in float32 as well as float64.

    Where the two differ in float32, their rounded values lie on either side of t, too; and t is itself a float32
    number where there is one that serves, so that tools that store thresholds in float32 separate them as well.
    """
    with np.errstate(over="ignore", under="ignore"):
        short_low, short_high = low.astype(np.float32), high.astype(np.float32)
        told_apart = short_low < short_high
        least = np.where(told_apart, np.maximum(low, short_low), low)
        limit = np.where(told_apart, np.minimum(high, short_high), high)
        middle = 0.5 * least + 0.5 * limit
        choice = least.copy()  # in case that no middle lies between: neighbours
        for better in (middle, least.astype(np.float32).astype(np.float64), middle.astype(np.float32)):
            choice = np.where((least <= better) & (better < limit), better, choice)
    return np.asarray(choice, dtype=np.float64)


# ------------------------------------------------------------------------------------------------------------- graded
# Judged lists laid out grade after grade: the form in which pairs of different grades are summed over.


# Looks at a pair that are worth a thread of their own, and the most parts that pairs are shared out in.
_WORK, _PARTS = 1 << 20, 8


@dataclass(frozen=True)
class GradedLists:
    """The documents of lists that count, in places: first those that have pairs, list after list, worst grade first.

    Attributes
    ----------
    rows : the row of X at each place; lists of a single grade come last, lists of weight 0 not at all
    segment : segment g of equal grade has the places segment[g] .. segment[g+1]-1; the last entry is the number of
        documents that have pairs
    lists : list q has the segments lists[q] .. lists[q+1]-1, two or more
    weight : one number a list, above 0
    """

    rows: Ints
    segment: Ints
    lists: Ints
    weight: Vector

    @classmethod
    def of(cls, queries: Queries) -> Self:
        """Places are found list by list, so that scattered rows give the same ones as grouped rows."""
        label, rows = queries.labels()[queries.rows], queries.rows
        owner = np.repeat(np.arange(len(queries)), queries.sizes)
        weight = queries.query_weight
        order = np.lexsort((label, owner))  # stable
        label = label[order]
        begins = np.ones(len(order), dtype=bool)
        begins[1:] = (label[1:] != label[:-1]) | (owner[1:] != owner[:-1])
        grades = np.bincount(owner[begins], minlength=len(queries))
        paired = ((grades > 1) & (weight > 0))[owner]
        alone = ((grades == 1) & (weight > 0))[owner]
        counted = (grades > 1) & (weight > 0)
        return cls(
            rows=rows[np.concatenate([order[paired], order[alone]])],
            segment=np.append(np.flatnonzero(begins[paired]), paired.sum()),
            lists=np.concatenate([[0], np.cumsum(grades[counted])]),
            weight=weight[counted],
        )

    @property
    def n_paired(self) -> int:
        """Documents that have pairs."""
        return int(self.segment[-1])

    @cached_property
    def pairs(self) -> Vector:
        """The number of pairs of each list."""
        sizes = np.diff(self.segment).astype(np.float64)
        worse = self.segment[:-1] - np.repeat(self.segment[self.lists[:-1]], np.diff(self.lists))
        return np.add.reduceat(sizes * worse, self.lists[:-1]) if len(self.lists) > 1 else np.empty(0)

    def chunks(self, work: int) -> list[tuple[int, int]]:
        """Ranges (first, last) of lists with about the same number of pairs; the more ``work``, the more of them."""
        parts = min(1 + work // _WORK, _PARTS)
        done = np.append(0.0, np.cumsum(self.pairs))
        bounds = np.unique(np.searchsorted(done, np.linspace(0, done[-1], parts + 1)))
        return list(pairwise(np.unique([0, *bounds.tolist(), len(self.pairs)]).tolist()))
