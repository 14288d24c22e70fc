"""Model selection inside a ranker: the mean measure of candidates on a set of queries, and folds over queries."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._errors import RankwiseError
from rankwise._kernels.rows import linear_scores, scores_by_weights
from rankwise._store import Store
from rankwise._tables import Table
from rankwise.data import checks
from rankwise.data.passes.chunked import ChunkedQueries
from rankwise.data.passes.work import Job
from rankwise.data.queries import Queries
from rankwise.data.row_blocks import rows_in_order
from rankwise.measures._base import Measure
from rankwise.measures.compute import PreparedMeasure, ScoredLists, measure_lists

Vector = NDArray[np.float64]

# Candidates that one pass judges: 128 bytes per query.
_TOGETHER = 16


@dataclass(frozen=True)
class ValuesOfChunk(Job):
    """Measures of linear candidates on every query of a chunk, or on some of them, ties averaged.

    Attributes
    ----------
    measures : tuple of Measure
        The measures.
    taken : ndarray of bool, shape (n_queries,), or None
        Which queries; None for all.
    """

    measures: tuple[Measure, ...]
    taken: NDArray[np.bool_] | None = None

    def prepare(self, block: Queries, first: int) -> tuple[NDArray[np.int64], ScoredLists, list[PreparedMeasure]]:
        numbers = np.arange(len(block))
        if self.taken is not None:
            numbers = np.flatnonzero(self.taken[first : first + len(block)])
        return judged_lists(block, numbers, self.measures)

    def run(  # type: ignore[override]
        self, block: Queries, first: int, prepared: Any, weights: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        return values_of(block, *prepared, weights, 1)


def judged_lists(
    queries: Queries, numbers: NDArray[np.int64], measures: Sequence[Measure]
) -> tuple[NDArray[np.int64], ScoredLists, list[PreparedMeasure]]:
    """(rows, labels, measures) of some queries, prepared so that many linear candidates can be measured on them."""
    rows, _ = rows_in_order(queries, numbers)
    labels = np.ascontiguousarray(queries.labels()[rows] if len(rows) else queries.labels())
    start = np.concatenate([[0], np.cumsum(queries.sizes[numbers])]).astype(np.int64)
    labels = labels[: start[-1]]  # no row numbers stand for all rows, or for none
    return rows, ScoredLists(labels, labels, start), [PreparedMeasure.of(one, labels, start) for one in measures]


def values_of(
    queries: Queries,
    rows: NDArray[np.int64],
    lists: ScoredLists,
    measures: Sequence[PreparedMeasure],
    weights: NDArray[np.float64],
    n_jobs: int | None,
) -> NDArray[np.float64]:
    """Measures of linear candidates: candidates x measures x queries; NaN where a measure is 0/0."""
    scores = scores_by_weights(queries.X, rows, len(lists.labels), weights, n_jobs)
    each = [ScoredLists(one, lists.labels, lists.start) for one in scores]
    return np.array([measure_lists(measures, one, n_jobs=n_jobs) for one in each])


def mean_measure(queries: Queries, scores: Vector, measure: Measure, n_jobs: int | None = None) -> float:
    """The weighted mean over the queries that the measure is defined for, ties averaged."""
    lists = ScoredLists(scores, queries.labels(), queries.start, queries.scattered_rows)
    values = measure_lists([measure], lists, n_jobs=n_jobs)[0]
    return weighted_mean(values, queries.query_weight)


def weighted_mean(values: Vector, weight: Vector) -> float:
    """The weighted mean of the values that are not NaN, with exact sums; NaN if there is none."""
    counts = ~np.isnan(values)
    total = math.fsum(weight[counts])
    return math.fsum(weight[counts] * values[counts]) / total if total else math.nan


def parts_of(queries: Queries, folds: int, random_state: int | np.random.Generator) -> list[NDArray[np.int64]]:
    """Random parts of the queries of non-zero weight, at most one per query; none for a single query."""
    if not isinstance(folds, (int, np.integer)) or folds < 2:
        raise RankwiseError(f"model selection takes 2 or more folds: found folds={folds!r:.60}")
    counting = checks.as_random(random_state).permutation(queries.counted)
    if len(counting) < 2:
        return []
    return [np.sort(part) for part in np.array_split(counting, min(folds, len(counting)))]


def held_out(queries: Queries, part: NDArray[np.int64]) -> tuple[Queries, Queries]:
    """(all but these queries, these queries): the same X, with weights of 0 for what is left out."""
    own = queries.query_weight
    inside = np.zeros(len(queries))
    inside[part] = own[part]
    return queries.with_weight(own - inside), queries.with_weight(inside)


def mean_over_parts(values: ArrayLike) -> Vector:
    """The mean along the first axis of the values that are not NaN; NaN if there is none."""
    found = np.asarray(values, dtype=np.float64)
    known = ~np.isnan(found)
    count = known.sum(axis=0)
    total = np.where(known, found, 0.0).sum(axis=0)
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1), np.nan))


# ------------------------------------------------------------------------------------------- selection of a penalty


def measure_of_weights(queries: Queries | None, coef: Vector, measure: Measure, n_jobs: int | None) -> float:
    """The mean measure of linear weights on raw features; NaN if there are no queries to judge them."""
    if queries is None:
        return math.nan
    if isinstance(queries, ChunkedQueries):
        return measures_of_weights(queries, [coef], measure, n_jobs)[0]
    return mean_measure(queries, linear_scores(queries.X, coef, n_jobs), measure, n_jobs)


def measures_of_weights(
    queries: Queries | None, coefs: Sequence[Vector], measure: Measure, n_jobs: int | None
) -> list[float]:
    """The mean measure of several weights; one pass judges up to 16 of them where queries are in parts."""
    if not isinstance(queries, ChunkedQueries):
        return [measure_of_weights(queries, coef, measure, n_jobs) for coef in coefs]
    work, found = queries.work(ValuesOfChunk((measure,))), []
    for first in range(0, len(coefs), _TOGETHER):
        some = np.array(coefs[first : first + _TOGETHER])
        values = np.concatenate(list(queries.map(work, some, n_jobs=n_jobs)), axis=2)
        found += [weighted_mean(one[0], queries.query_weight) for one in values]
    return found


def mean_over_folds(
    queries: Queries, parts: Sequence[NDArray[np.int64]], judge: Callable[[Queries, Queries], ArrayLike]
) -> Vector:
    """The mean over the parts of ``judge(other queries, queries of the part)``, one value per candidate."""
    return mean_over_parts([np.asarray(judge(*held_out(queries, part))) for part in parts])


def best_alpha(alphas: Sequence[float], judged: Vector) -> int:
    """The place of the first of the best alphas; of the largest, which strays least, if none of them was judged."""
    return int(np.argmax(alphas) if np.isnan(judged).all() else np.nanargmax(judged))


def normalised_weight(queries: Queries, counts: NDArray[np.bool_]) -> Vector:
    """The weights of the queries that count, divided by their sum, and 0 for the others."""
    weight = np.where(counts, queries.query_weight, 0.0)
    total = math.fsum(weight)
    return weight / total if total else weight


def path_arrays(path: Table) -> dict[str, NDArray[Any]]:
    """The columns of ``path_``, which are numbers, for a model's file."""
    return {f"path.{number}": path[name] for number, name in enumerate(path.columns)}


def read_path(store: Store, columns: Sequence[str]) -> Table:
    """The table that :func:`path_arrays` wrote, under these column names."""
    arrays = (store.array(f"path.{number}", np.float64, (None,)) for number in range(len(columns)))
    return Table(dict(zip(columns, arrays, strict=True)))
