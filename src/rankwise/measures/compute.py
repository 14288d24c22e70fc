"""Measures over many queries: every query is sorted once, then each measure's kernel runs on it.

:func:`measure_lists` is the entry point. It works through the queries in fixed chunks, on threads; each query is
computed independently, so neither chunks nor threads change a bit. :class:`PreparedMeasure` keeps what labels alone
decide, for queries that are measured again and again. The compiled loops at the end of the file order each query
(:func:`order_lists`), break the ties and call the kernel.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from rankwise._kernels import parallel
from rankwise._kernels.machine.jit import FLOATS, FLOATS_IN, INTS, INTS_IN, compiled, kernel, typed_function
from rankwise._kernels.ragged import largest, sort_blocks
from rankwise._kernels.sorting import sort_carrying
from rankwise._tables import ShownAsFacts
from rankwise.errors import RankwiseError
from rankwise.measures._base import TIES, Empty, Measure, Ties, Vector

Ints = NDArray[np.int64]

# The value of a query on which a measure is 0/0.
EMPTY = {"skip": math.nan, "zero": 0.0, "one": 1.0}


@dataclass(frozen=True)
class ScoredLists(ShownAsFacts):
    """Scores and labels of many queries.

    Attributes
    ----------
    scores, labels : ndarray, shape (n_documents,)
        In input order.
    start : ndarray of int64, shape (n_queries + 1,)
        Query q owns ``rows[start[q]:start[q+1]]``.
    rows : ndarray of int64, default=None
        None: rows are grouped by query.
    judged : ndarray of bool, shape (n_documents,), default=None
        Whether each document was judged; None: all were.
    """

    scores: Vector
    labels: Vector
    start: NDArray[np.int64]
    rows: NDArray[np.int64] | None = None
    judged: NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class PreparedMeasure:
    """A measure with everything that labels alone decide, for queries that are measured again and again.

    Attributes
    ----------
    measure : Measure
        The measure.
    values : ndarray, shape (n_documents,)
        The row values.
    table, params : ndarray
        What the kernel takes under these names.
    kernel : compiled function
        The measure's kernel as a typed function.
    """

    measure: Measure
    values: Vector
    table: Vector
    params: Vector
    kernel: Any

    @classmethod
    def of(
        cls, measure: Measure, labels: Vector, start: NDArray[np.int64], judged: NDArray[np.bool_] | None = None
    ) -> "PreparedMeasure":
        """Prepare a measure for queries with these labels; query q owns ``start[q]:start[q+1]`` of the row numbers."""
        table = np.ascontiguousarray(measure.table(int(np.diff(start).max(initial=0))))
        kernel = typed_function(type(measure).kernel, KERNEL)
        values = measure.row_values(labels) if judged is None else measure.row_values_judged(labels, judged)
        return cls(measure, values, table, measure.all_params(), kernel)


def measure_lists(
    measures: Sequence[Measure | PreparedMeasure],
    lists: ScoredLists,
    *,
    ties: Ties = "expected",
    n_jobs: int | None = None,
) -> NDArray[np.float64]:
    """Compute every measure on every query.

    Scores are sorted once, in O(m log m) per query, however many measures there are. A score of -inf means that the
    document was not retrieved: it takes no position, but counts among the documents that could have been found.

    Parameters
    ----------
    measures : sequence of Measure or PreparedMeasure
        What to compute.
    lists : ScoredLists
        The queries.
    ties : {"expected", "pessimistic", "optimistic", "stable"}, default="expected"
        How equal scores are ordered.
    n_jobs : int, default=None
        Number of threads; None uses every core. The result does not depend on it.

    Returns
    -------
    ndarray, shape (n_measures, n_queries)
        Values; NaN where a measure is 0/0.
    """
    values: NDArray[np.float64] = measure_lists_by_ties(measures, lists, [ties], n_jobs=n_jobs)[0]
    return values


def measure_lists_by_ties(
    measures: Sequence[Measure | PreparedMeasure],
    lists: ScoredLists,
    modes: Sequence[Ties],
    *,
    n_jobs: int | None = None,
) -> NDArray[np.float64]:
    """As :func:`measure_lists` for several ways to order equal scores, with one sort; modes x measures x queries."""
    for ties in modes:
        if not isinstance(ties, str) or ties not in TIES:
            raise RankwiseError(f"ties must be one of {', '.join(map(repr, TIES))}, got {ties!r}")
    scores, start = lists.scores, lists.start
    prepared = [
        one if isinstance(one, PreparedMeasure) else PreparedMeasure.of(one, lists.labels, start, lists.judged)
        for one in measures
    ]
    no_rows = np.empty(0, dtype=np.int64) if lists.rows is None else lists.rows
    result = np.full((len(modes), len(measures), len(start) - 1), np.nan)

    def work(first: int, last: int) -> None:
        order, end = np.empty((2, int(start[last] - start[first])), dtype=np.int64)
        retrieved = np.empty(last - first, dtype=np.int64)
        tied = order_lists(first, last, start, no_rows, scores, order, end, retrieved)
        for (mode, ties), (number, one) in product(enumerate(modes if tied else modes[:1]), enumerate(prepared)):
            given = (TIES[ties], one.measure.needs_ideal, one.table, one.params, result[mode, number, first:last])
            measure_chunk()(one.kernel, start[first : last + 1], order, end, retrieved, one.values, *given)
        if not tied:  # all ways to order equal scores are one
            result[1:, :, first:last] = result[0, :, first:last]

    parallel.map_chunks(work, list(parallel.query_chunks(start)), n_jobs)
    return result


def measure_candidates(
    measures: Sequence[PreparedMeasure], lists: ScoredLists, scores: NDArray[np.float64], n_jobs: int | None
) -> NDArray[np.float64]:
    """As :func:`measure_lists` for several vectors of scores, with one call for all of them.

    Parameters
    ----------
    measures : sequence of PreparedMeasure
        What to compute.
    lists : ScoredLists
        The queries, which own all rows; their scores are not used.
    scores : ndarray, shape (n_candidates, n_documents)
        The scores of every candidate.
    n_jobs : int or None
        Number of threads; None uses every core.

    Returns
    -------
    ndarray, shape (n_candidates, n_measures, n_queries)
        Values; NaN where a measure is 0/0.
    """
    count, documents = scores.shape
    offset = np.arange(count, dtype=np.int64)[:, np.newaxis] * documents
    start = np.concatenate([[0], (lists.start[1:] + offset).reshape(-1)]).astype(np.int64)
    rows = None if lists.rows is None else (lists.rows + offset).reshape(-1)
    repeated = [replace(one, values=np.tile(one.values, count)) for one in measures]  # candidate after candidate
    values = measure_lists(repeated, ScoredLists(scores.reshape(-1), lists.labels, start, rows), n_jobs=n_jobs)
    return np.ascontiguousarray(values.reshape(len(measures), count, -1).swapaxes(0, 1))


def fill_empty(values: NDArray[np.float64], empty: Empty) -> NDArray[np.float64]:
    """Replace NaN, the value of queries on which a measure is 0/0, by the stated value; "skip" leaves NaN."""
    if not isinstance(empty, str) or empty not in EMPTY:
        raise RankwiseError(f"empty must be one of {', '.join(map(repr, EMPTY))}, got {empty!r}")
    return np.where(np.isnan(values), EMPTY[empty], values)


# ------------------------------------------------------------------------------------------------------- compiled loops

_EXPECTED, _OPTIMISTIC, _STABLE = (TIES[mode] for mode in ("expected", "optimistic", "stable"))

# The signature of a measure's kernel: (value, end, retrieved, best, table, params) -> measure.
KERNEL = types.float64(FLOATS, INTS_IN, types.int64, FLOATS, FLOATS_IN, FLOATS_IN)


def order_lists(
    first: int, last: int, start: Ints, rows: Ints, key: Vector, order: Ints, end: Ints, finite: Ints
) -> bool:
    """Order the rows of queries first..last-1 by decreasing key, ties in the order of ``rows``, and find the ties.

    Parameters
    ----------
    first, last : int
        The range of queries.
    start, rows : ndarray of int64
        The layout; ``rows`` is empty where query q owns rows start[q] .. start[q+1]-1.
    key : ndarray of float64
        The keys, by row.
    order : ndarray of int64
        Receives the rows of these queries alone, the first of them at place 0.
    end : ndarray of int64
        Receives the ends of the blocks of ties, counted from each query's own beginning.
    finite : ndarray of int64
        Receives, for each query, how many keys are above -inf.

    Returns
    -------
    tied : bool
        Whether any two keys of a query are equal.
    """
    keys = np.ascontiguousarray(key, dtype=np.float64)
    return bool(_order_compiled()(first, last, np.ascontiguousarray(start), rows, keys, order, end, finite))


@cache
def _order_compiled() -> Any:
    """:func:`_order_lists` for one set of types, whether or not the caller's arrays can be written to."""
    given = (types.int64, types.int64, INTS_IN, INTS_IN, FLOATS_IN)
    return compiled(kernel(_order_lists), types.boolean(*given, INTS, INTS, INTS))


def _order_lists(first, last, start, rows, key, order, end, finite):
    """The loop of :func:`order_lists`."""
    tied = False
    longest = 0
    for q in range(first, last):
        longest = max(longest, start[q + 1] - start[q])
    negated_buffer, key_buffer = np.empty(longest), np.empty(longest)
    place_buffer, count_buffer = np.empty(longest, np.int64), np.empty(longest + 1, np.int64)
    for q in range(first, last):
        low = start[q]
        size = start[q + 1] - low
        out = low - start[first]
        negated = negated_buffer[:size]
        place = order[out : out + size]
        if len(rows) == 0:
            for p in range(size):
                place[p] = low + p
                negated[p] = -key[low + p]
        else:
            for p in range(size):
                place[p] = rows[low + p]
                negated[p] = -key[rows[low + p]]
        sort_carrying(negated, place, key_buffer, place_buffer, count_buffer)
        block = 0
        for p in range(1, size + 1):
            if p == size or negated[p] != negated[p - 1]:
                tied |= p - block > 1
                for t in range(block, p):
                    end[out + t] = p
                block = p
        present = size
        while present > 0 and negated[present - 1] == np.inf:
            present -= 1
        finite[q - first] = present
    return tied


@kernel
def _measure_chunk(kernel, start, order, end, retrieved, row_value, ties, needs_ideal, table, params, out):
    """Run a kernel on every query of a chunk that ``order_lists`` has sorted; values into ``out``."""
    longest = 0
    for q in range(len(start) - 1):
        longest = max(longest, start[q + 1] - start[q])
    buffer = np.empty(longest)
    ideal_buffer = np.empty(longest)
    alone = np.empty(longest, np.int64)
    for p in range(longest):
        alone[p] = p + 1
    for q in range(len(start) - 1):
        low = start[q] - start[0]
        size = start[q + 1] - start[q]
        value = buffer[:size]
        blocks = end[low : low + size]
        for p in range(size):
            value[p] = row_value[order[low + p]]
        if ties != _STABLE:
            sort_blocks(value, blocks, ties == _OPTIMISTIC)
        best = value
        if needs_ideal:
            best = ideal_buffer[: int(min(float(size), params[0]))]
            largest(value, best)
        if ties == _EXPECTED:
            out[q] = kernel(value, blocks, retrieved[q], best, table, params)
        else:
            out[q] = kernel(value, alone[:size], retrieved[q], best, table, params)


@cache
def measure_chunk() -> Any:
    """The loop, compiled at its first use: its kernel is a typed argument, so one serves all measures."""
    return compiled(
        _measure_chunk,
        types.void(
            *(types.FunctionType(KERNEL), *(INTS_IN,) * 4, FLOATS_IN),
            *(types.int64, types.boolean, FLOATS_IN, FLOATS_IN, FLOATS),
        ),
    )
