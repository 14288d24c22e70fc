"""Measures over many lists: sort every list once, then run each measure's formula on it, chunk by chunk."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from numba import types
from numpy.typing import ArrayLike, NDArray

from rankwise._errors import RankwiseError
from rankwise._kernels import drive
from rankwise._kernels.jit import compiled, kernel
from rankwise._kernels.ragged import largest, sort_blocks
from rankwise.data import checks
from rankwise.measures._base import TIES, Empty, Measure, Ties, Vector

EMPTY = {"skip": math.nan, "zero": 0.0, "one": 1.0}


@dataclass(frozen=True)
class ScoredLists:
    """Scores and labels in input order; list q owns rows ``rows[start[q]:start[q+1]]`` (rows None: as they stand)."""

    scores: Vector
    labels: Vector
    start: NDArray[np.int64]
    rows: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class PreparedMeasure:
    """A measure with all that labels alone tell it, for lists that are measured again and again."""

    measure: Measure
    values: Vector
    table: Vector
    params: Vector
    kernel: Any

    @classmethod
    def of(cls, measure: Measure, labels: Vector, start: NDArray[np.int64]) -> "PreparedMeasure":
        """The value of every row, and the table of positions of the longest list."""
        table = np.ascontiguousarray(measure.table(int(np.diff(start).max(initial=0))))
        return cls(measure, measure.row_values(labels), table, measure.all_params(), _function(type(measure).kernel))


def measure_lists(
    measures: Sequence[Measure | PreparedMeasure],
    lists: ScoredLists,
    *,
    ties: Ties = "expected",
    n_jobs: int | None = None,
) -> NDArray[np.float64]:
    """Values of every measure on every list, measures x lists; NaN where a measure is 0/0.

    Scores are sorted once, in O(m log m) a list, however many measures there are. A score of -inf says that the
    document was not retrieved: it takes no position, but counts among the documents that could have been found.
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
    """As :func:`measure_lists` for several ways to order equal scores, modes x measures x lists, with one sort."""
    for ties in modes:
        if not isinstance(ties, str) or ties not in TIES:
            raise RankwiseError(f"ties is one of {', '.join(map(repr, TIES))}: found {ties!r}")
    order_lists, measure_chunk = _drivers()
    scores, start = lists.scores, lists.start
    told = [
        one if isinstance(one, PreparedMeasure) else PreparedMeasure.of(one, lists.labels, start) for one in measures
    ]
    no_rows = np.empty(0, dtype=np.int64) if lists.rows is None else lists.rows
    result = np.full((len(modes), len(measures), len(start) - 1), np.nan)

    def work(first: int, last: int) -> None:
        size = int(start[last] - start[first])
        order = np.empty(size, dtype=np.int64)
        end = np.empty(size, dtype=np.int64)
        retrieved = np.empty(last - first, dtype=np.int64)
        tied = order_lists(first, last, start, no_rows, scores, order, end, retrieved)
        for (mode, ties), (number, one) in product(enumerate(modes if tied else modes[:1]), enumerate(told)):
            measure_chunk(
                one.kernel,
                start[first : last + 1],
                order,
                end,
                retrieved,
                one.values,
                TIES[ties],
                one.measure.needs_ideal,
                one.table,
                one.params,
                result[mode, number, first:last],
            )
        if not tied:  # all ways to order equal scores are one
            result[1:, :, first:last] = result[0, :, first:last]

    drive.run(work, list(drive.query_chunks(start)), n_jobs)
    return result


def one_list(measure: Measure, scores: ArrayLike, labels: ArrayLike, *, ties: Ties, empty: Empty) -> float:
    """One measure on one list."""
    y = checks.as_one_list(labels, "labels")
    y = checks.as_labels(y, len(y))
    s = checks.as_scores(checks.as_one_list(scores, "scores"), len(y))
    values = measure_lists([measure], ScoredLists(s, y, np.array([0, len(y)])), ties=ties, n_jobs=1)
    return float(fill_empty(values, empty)[0, 0])


def fill_empty(values: NDArray[np.float64], empty: Empty) -> NDArray[np.float64]:
    """Give the lists on which a measure is 0/0 their stated value; "skip" leaves NaN."""
    if not isinstance(empty, str) or empty not in EMPTY:
        raise RankwiseError(f"empty is one of {', '.join(map(repr, EMPTY))}: found {empty!r}")
    return np.where(np.isnan(values), EMPTY[empty], values)


@cache
def _drivers() -> tuple[Any, Any]:
    """The two compiled loops; kept out of module import, which costs no compiler."""
    from rankwise._kernels.ragged import order_lists

    return order_lists, measure_chunk


def _function(kernel: Any) -> Any:
    from rankwise._kernels.jit import typed_function

    return typed_function(kernel, KERNEL)


# ------------------------------------------------------------------------------------------------------------- driver
# The one compiled loop over lists that runs any measure's formula.
#
# It takes the formula as a typed function argument, so that it is compiled and cached once for all measures, third
# parties' included.


_EXPECTED, _OPTIMISTIC, _STABLE = (TIES[mode] for mode in ("expected", "optimistic", "stable"))

_floats = types.Array(types.float64, 1, "C")
_floats_in = types.Array(types.float64, 1, "C", readonly=True)
_ints_in = types.Array(types.int64, 1, "C", readonly=True)

# value, end, retrieved, best, table, params
KERNEL = types.float64(_floats, _ints_in, types.int64, _floats, _floats_in, _floats_in)


@kernel
def _measure_chunk(kernel, start, order, end, retrieved, row_value, ties, needs_ideal, table, params, out):
    longest = 0
    for q in range(len(start) - 1):
        longest = max(longest, start[q + 1] - start[q])
    buffer = np.empty(longest)
    ideal_buffer = np.empty(longest)
    alone = np.arange(1, longest + 1)
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


measure_chunk = compiled(
    _measure_chunk,
    types.void(
        types.FunctionType(KERNEL),
        _ints_in,
        _ints_in,
        _ints_in,
        _ints_in,
        _floats_in,
        types.int64,
        types.boolean,
        _floats_in,
        _floats_in,
        _floats,
    ),
)
