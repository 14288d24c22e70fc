"""Model selection inside a ranker: the mean measure of candidates on a set of queries, and folds over queries.

:class:`PooledSelection` cross-validates over pooled queries. With ``refit="all"`` a validation set joins the training
queries: parts of both are held out in turn, and the final fit learns from both. The sets are never copied into one.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rankwise._arrays import Array, Mask, Matrix, Numbers, Vector
from rankwise._parameters import NonNegativeFloat, NumberRange, PositiveFloat, Seed, as_random
from rankwise._store import Store
from rankwise._tables import Table
from rankwise.measures._base import Measure, Ties
from rankwise.measures.compute import PreparedMeasure, ScoredLists, measure_candidates, measure_lists
from rankwise.queries.chunks import Scale
from rankwise.queries.queries import Queries
from rankwise.queries.source import Chunk, Job, QuerySource, rows_in_order
from rankwise.rankers._base import scores_by_weights

if TYPE_CHECKING:
    from rankwise.rankers._base import Ranker


# Candidates that one pass judges: 128 bytes per query.
_TOGETHER = 16
# Scores of candidates that are in memory at a time.
_SCORES = 1 << 22
_NO_SCORES, _NO_ROWS = np.empty(0), np.empty(0, np.int64)


@dataclass(frozen=True)
class ValuesJob(Job):
    """Measures of linear candidates on some queries of a chunk, ties averaged.

    The result has the shape candidates x measures x queries; it is NaN where a measure is 0/0.

    Attributes
    ----------
    measures : tuple of Measure
        The measures.
    taken : ndarray of bool, shape (n_queries,)
        Which queries.
    """

    measures: tuple[Measure, ...]
    taken: Mask

    def prepare(self, queries: Queries, offset: int) -> "dict[int, PreparedValues]":
        return {}

    def run(self, chunk: Chunk, prepared: "dict[int, PreparedValues]", weights: Matrix) -> Any:
        queries = chunk.queries
        if chunk.first not in prepared:
            taken = chunk.first + np.flatnonzero(self.taken[chunk.numbers])
            prepared[chunk.first] = PreparedValues.of(queries, taken, self.measures)
        rows, lists, measures = prepared[chunk.first]
        scores = scores_by_weights(queries.X, rows, len(lists.labels), weights, chunk.n_jobs)
        return measure_candidates(measures, lists, scores, chunk.n_jobs)


class PreparedValues(NamedTuple):
    """Rows, labels and measures of some queries, for many candidates."""

    rows: Numbers
    lists: ScoredLists
    measures: list[PreparedMeasure]

    @classmethod
    def of(cls, queries: Queries, numbers: Numbers, measures: Sequence[Measure]) -> "PreparedValues":
        """Prepare these queries."""
        rows, _ = rows_in_order(queries, numbers)
        labels = np.ascontiguousarray(queries.labels()[rows] if len(rows) else queries.labels())
        start = np.concatenate([[0], np.cumsum(queries.sizes[numbers])]).astype(np.int64)
        labels = labels[: start[-1]]  # no row numbers stand for all rows, or for none
        return cls(
            rows, ScoredLists(labels, labels, start), [PreparedMeasure.of(one, labels, start) for one in measures]
        )


def mean_measure(queries: Queries, scores: Vector, measure: Measure, n_jobs: int | None = None) -> float:
    """The weighted mean over the queries that the measure is defined for, ties averaged."""
    lists = ScoredLists(scores, queries.labels(), queries.start, queries.scattered_rows, queries.judged)
    values = measure_lists([measure], lists, n_jobs=n_jobs)[0]
    return weighted_mean(values, queries.query_weight)


def weighted_mean(values: Vector, weight: Vector) -> float:
    """The weighted mean of the values that are not NaN, with exact sums; NaN if there is none."""
    counts = ~np.isnan(values)
    total = math.fsum(weight[counts])
    return math.fsum(weight[counts] * values[counts]) / total if total else math.nan


def parts_of(queries: QuerySource, folds: int, random_state: int | np.random.Generator) -> list[Numbers]:
    """Random parts of the queries of non-zero weight, at most one per query; none for a single query."""
    counting = as_random(random_state).permutation(queries.counted)
    if len(counting) < 2:
        return []
    return [np.sort(part) for part in np.array_split(counting, min(folds, len(counting)))]


def hold_out(queries: QuerySource, part: Numbers) -> tuple[QuerySource, QuerySource]:
    """(all but these queries, these queries): the same X, with weights of 0 for what is left out."""
    own = queries.query_weight
    inside = np.zeros(len(queries))
    inside[part] = own[part]
    return queries.with_weight(own - inside), queries.with_weight(inside)


def mean_of_known(values: ArrayLike) -> Vector:
    """The mean along the first axis of the values that are not NaN; NaN if there is none."""
    found = np.asarray(values, dtype=np.float64)
    known = ~np.isnan(found)
    count = known.sum(axis=0)
    total = np.where(known, found, 0.0).sum(axis=0)
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1), np.nan))


# ------------------------------------------------------------------------------------------- selection of a penalty


def measure_of_weights(queries: QuerySource | None, coef: Vector, measure: Measure, n_jobs: int | None) -> float:
    """The mean measure of linear weights on raw features; NaN if there are no queries to judge them."""
    return measures_of_weights(queries, [coef], measure, n_jobs)[0]


def measures_of_weights(
    queries: QuerySource | None, coefs: Sequence[Vector], measure: Measure, n_jobs: int | None
) -> list[float]:
    """The mean measure of several weights; one pass judges up to 16 of them where queries are in parts."""
    if queries is None:
        return [math.nan] * len(coefs)
    means = []
    for first in range(0, len(coefs), _TOGETHER):
        some = np.array(coefs[first : first + _TOGETHER])
        values = queries.apply(_measure_weights, some, measure, n_jobs, axis=1, n_jobs=n_jobs)
        means += [weighted_mean(one, queries.query_weight) for one in values]
    return means


def _measure_weights(queries: Queries, coefs: Vector, measure: Measure, n_jobs: int | None) -> Vector:
    """The measure of every query by each of these weights, candidates x queries."""
    lists = ScoredLists(_NO_SCORES, queries.labels(), queries.start, queries.scattered_rows, queries.judged)
    prepared = [PreparedMeasure.of(measure, lists.labels, lists.start, lists.judged)]
    together, values = max(1, _SCORES // max(1, queries.n_documents)), []
    for first in range(0, len(coefs), together):
        scores = scores_by_weights(queries.X, _NO_ROWS, queries.n_documents, coefs[first : first + together], n_jobs)
        values.append(measure_candidates(prepared, lists, scores, n_jobs)[:, 0])
    return np.concatenate(values)


def mean_over_folds(queries: QuerySource, parts: Sequence[Numbers], judge: Callable[[Any, Any], ArrayLike]) -> Vector:
    """The mean over the parts of ``judge(other queries, queries of the part)``, one value per candidate."""
    return mean_of_known([np.asarray(judge(*hold_out(queries, part))) for part in parts])


def best_alpha(alphas: Sequence[float], judged: Vector) -> int:
    """The place of the first of the best alphas; of the largest, which strays least, if none of them was judged."""
    return int(np.argmax(alphas) if np.isnan(judged).all() else np.nanargmax(judged))


def normalize_weight(queries: QuerySource, counts: Mask) -> Vector:
    """The weights of the queries that count, divided by their sum, and 0 for the others."""
    weight = np.where(counts, queries.query_weight, 0.0)
    total = math.fsum(weight)
    return weight / total if total else weight


def path_arrays(path: Mapping[str, Array]) -> dict[str, Array]:
    """The columns of ``path_``, which are numbers, for a model's file."""
    return {f"path.{number}": column for number, column in enumerate(path.values())}


def read_path(store: Store, columns: Sequence[str]) -> dict[str, Array]:
    """The columns that :func:`path_arrays` wrote, under these names."""
    arrays = (store.array(f"path.{number}", np.float64, (None,)) for number in range(len(columns)))
    return dict(zip(columns, arrays, strict=True))


# -------------------------------------------------------------------------------- cross-validation over pooled queries


Refit = Literal["all", "train"]

# Above this number of queries one part is held out instead of every part in turn, and it has at most so many.
MANY = 2_000


@dataclass(frozen=True)
class Pool:
    """Sets of queries that are learned from together; queries are numbered through, set after set.

    Attributes
    ----------
    sets : tuple of Queries
        The sets.
    """

    sets: tuple[QuerySource, ...]

    @property
    def counted(self) -> Numbers:
        """The numbers of the queries of non-zero weight."""
        weight = np.concatenate([queries.query_weight for queries in self.sets])
        return np.flatnonzero(weight).astype(np.int64)

    def by_set(self, part: Numbers) -> list[Numbers]:
        """The numbers of the queries of a part in each of the sets, in increasing order."""
        ends = np.cumsum([len(queries) for queries in self.sets])
        found = np.split(np.sort(part), np.searchsorted(np.sort(part), ends[:-1]))
        firsts = [0, *ends[:-1].tolist()]
        return [own - first for own, first in zip(found, firsts, strict=True)]


@dataclass(frozen=True)
class Trial:
    """A fit without a part of the queries, and the queries that judge it.

    Attributes
    ----------
    without : int or None
        The part that the fit leaves out; None: it leaves out nothing, and other queries judge it.
    pool : Pool
        The queries among which are those that judge.
    held : ndarray of int64
        Their numbers.
    """

    without: int | None
    pool: Pool
    held: Numbers

    def prepare(self, measures: Sequence[Measure]) -> "HeldOut":
        """Prepare these measures on the queries that judge."""
        sets, weight = [], []
        for queries, numbers in zip(self.pool.sets, self.pool.by_set(self.held), strict=True):
            taken = np.zeros(len(queries), bool)
            taken[numbers] = True
            sets.append((queries, queries.work(ValuesJob(tuple(measures), taken))))
            weight.append(queries.query_weight[numbers])
        return HeldOut(sets, np.concatenate(weight))


@dataclass(frozen=True)
class PooledSelection:
    """What the final fit learns from, in parts, and the trials that select among candidates.

    Attributes
    ----------
    pool : Pool
        All queries that are learned from.
    parts : list of ndarray of int64
        Their parts.
    trials : list of Trial
        The trials; none if there is nothing to judge by.
    """

    pool: Pool
    parts: list[Numbers]
    trials: list[Trial]

    @classmethod
    def of(
        cls,
        train: QuerySource,
        validation: QuerySource | None,
        refit: Refit,
        folds: int,
        random_state: int | np.random.Generator,
        by_folds: bool = True,
    ) -> "PooledSelection":
        """Divide queries into random parts of about the same size, each of which judges a fit on the others.

        Of more than 2,000 queries a single part judges, of at most 2,000. A validation set that is not learned from
        judges instead.

        Parameters
        ----------
        train : Queries
            The training queries.
        validation : Queries or None
            The validation queries.
        refit : {"all", "train"}
            Whether the validation queries are learned from.
        folds : int
            Number of parts, at most one per query; a single query cannot be divided.
        random_state : int or numpy.random.Generator
            Seed of the division.
        by_folds : bool, default=True
            Whether there is something to select, so parts are needed.

        Returns
        -------
        PooledSelection
            Parts and trials.
        """
        if validation is not None and refit == "train":
            pool, judges = Pool((train,)), Pool((validation,))
            return cls(pool, [pool.counted], [Trial(None, judges, judges.counted)])
        pool = Pool((train,) if validation is None else (train, validation))
        if not by_folds or len(pool.counted) < 2:
            return cls(pool, [pool.counted], [])
        order = as_random(random_state).permutation(pool.counted)
        if len(order) > MANY:
            count = min(MANY, len(order) // folds)
            parts = [np.sort(order[:count]), np.sort(order[count:])]
            return cls(pool, parts, [Trial(0, pool, parts[0])])
        parts = [np.sort(part) for part in np.array_split(order, min(folds, len(order)))]
        return cls(pool, parts, [Trial(number, pool, part) for number, part in enumerate(parts)])


@dataclass(frozen=True)
class HeldOut:
    """The queries of one part, prepared so that many linear candidates can be measured on them.

    Attributes
    ----------
    weight : ndarray, shape (n_queries,)
        The weight of every query.
    """

    _sets: list[tuple[QuerySource, Any]]
    weight: Vector

    def values(self, weights: Matrix, n_jobs: int | None) -> Matrix:
        """The measures of linear candidates on every query, ties averaged.

        Parameters
        ----------
        weights : ndarray, shape (n_candidates, n_features)
            Weights on raw features.
        n_jobs : int or None
            Number of threads; None uses every core.

        Returns
        -------
        ndarray, shape (n_candidates, n_measures, n_queries)
            Values; NaN where a measure is 0/0.
        """
        chunks = [one for queries, work in self._sets for one in queries.map(work, weights, n_jobs=n_jobs)]
        return np.concatenate(chunks, axis=2)


def mean_over_held_out(values: Sequence[Matrix], weights: Sequence[Vector]) -> Vector:
    """The mean of every candidate over the queries of all parts, and over measures if there are several.

    Parameters
    ----------
    values : sequence of ndarray, shape (n_candidates, n_measures, n_queries)
        The values on every part.
    weights : sequence of ndarray, shape (n_queries,)
        The weights of the queries of every part.

    Returns
    -------
    ndarray, shape (n_candidates,)
        Weighted means of what is defined; NaN if nothing is.
    """
    joined, weight = np.concatenate(values, axis=2), np.concatenate(weights)
    means = np.array([[weighted_mean(one, weight) for one in candidate] for candidate in joined])
    return mean_of_known(means.T)


def measure_ranker(queries: QuerySource, ranker: "Ranker", measure: Measure, ties: Sequence[Ties]) -> Vector:
    """The measure of a ranker on every query, for each treatment of ties; NaN where it is 0/0."""
    values: Vector = queries.apply(_measure_block, ranker, measure, tuple(ties), axis=1)
    return values


def _measure_block(queries: Queries, ranker: "Ranker", measure: Measure, ties: tuple[Ties, ...]) -> Vector:
    n_jobs = getattr(ranker, "n_jobs", None)
    scores = ranker.predict(queries)
    lists = ScoredLists(scores, queries.labels(), queries.start, queries.scattered_rows, queries.judged)
    return np.concatenate([measure_lists([measure], lists, ties=one, n_jobs=n_jobs) for one in ties])


def as_grid(given: Any, usual: Sequence[float]) -> tuple[float, ...]:
    """One value or several as a tuple; ``usual`` if none was given."""
    return tuple(np.atleast_1d(usual if given is None else given).astype(np.float64).tolist())


Folds = Annotated[int, NumberRange(2)]


Alphas = NonNegativeFloat | Sequence[NonNegativeFloat] | None


PositiveAlphas = PositiveFloat | Sequence[PositiveFloat] | None


@dataclass(eq=False, repr=False, kw_only=True)
class SelectionParameters:
    """The parameters of rankers that select a penalty and may scale features.

    Parameters
    ----------
    scale : {"auto", "none"}, default="auto"
        "auto" divides features by their standard deviation unless all of them lie in [-1, 1].
    folds : int, default=5
        Number of parts of the training queries that select among candidates if there is no validation set.
    random_state : int or numpy.random.Generator, default=0
        Seed of the division into parts.
    """

    scale: Scale = "auto"
    folds: Folds = 5
    random_state: Seed = 0

    def _trial_parts(self, queries: QuerySource, alphas: Sequence[float]) -> int:
        """Number of parts of the queries that judge the penalties; 0 where there is one penalty."""
        return 0 if len(alphas) < 2 else 1 if len(queries.counted) > MANY else self.folds

    @property
    def path_(self) -> Table:
        """What every candidate was worth, made of the columns that ``fit`` keeps."""
        return Table(self._path_)  # type: ignore[attr-defined]
