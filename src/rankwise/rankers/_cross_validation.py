"""Cross-validation over pooled queries: sets of queries, their parts, and linear candidates on queries left out.

With ``refit="all"`` a validation set joins the training queries: parts of both are held out in turn, and the final fit
learns from both. The sets are never copied into one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import RankwiseError
from rankwise.data import checks
from rankwise.data.passes.chunked import ChunkedQueries
from rankwise.data.queries import Queries
from rankwise.measures._base import Measure
from rankwise.rankers._model_selection import ValuesOfChunk, judged_lists, values_of, weighted_mean

Vector = NDArray[np.float64]
Numbers = NDArray[np.int64]
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

    sets: tuple[Queries, ...]

    @property
    def weight(self) -> Vector:
        """The weight of every query."""
        return np.concatenate([queries.query_weight for queries in self.sets])

    @property
    def counted(self) -> Numbers:
        """The numbers of the queries of non-zero weight."""
        return np.flatnonzero(self.weight).astype(np.int64)

    def by_set(self, part: Numbers) -> list[tuple[Queries, Numbers]]:
        """Each set with its own numbers of the queries of a part, in increasing order."""
        ends = np.cumsum([len(queries) for queries in self.sets])
        found = np.split(np.sort(part), np.searchsorted(np.sort(part), ends[:-1]))
        firsts = [0, *ends[:-1].tolist()]
        return [(queries, own - first) for queries, own, first in zip(self.sets, found, firsts, strict=True)]

    def by_sets(self, parts: Sequence[Numbers]) -> list[list[Numbers]]:
        """For every part the numbers of its queries in each of the sets."""
        return [[own for _, own in self.by_set(part)] for part in parts]


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

    def prepared(self, measures: Sequence[Measure]) -> "HeldOut":
        """The queries that judge, prepared for these measures."""
        return HeldOut.of(self.pool, self.held, measures)


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
        train: Queries,
        validation: Queries | None,
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
            Whether there is something to select, so that parts are needed.

        Returns
        -------
        PooledSelection
            Parts and trials.
        """
        if refit not in ("all", "train"):
            raise RankwiseError(f"refit is 'all' or 'train': found {refit!r:.60}")
        if not isinstance(folds, (int, np.integer)) or folds < 2:
            raise RankwiseError(f"model selection takes 2 or more folds: found folds={folds!r:.60}")
        if validation is not None and refit == "train":
            pool, judges = Pool((train,)), Pool((validation,))
            return cls(pool, [pool.counted], [Trial(None, judges, judges.counted)])
        pool = Pool((train,) if validation is None else (train, validation))
        if not by_folds or len(pool.counted) < 2:
            return cls(pool, [pool.counted], [])
        order = checks.as_random(random_state).permutation(pool.counted)
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

    _sets: list[Callable[[NDArray[np.float64], int | None], NDArray[np.float64]]]
    weight: Vector

    @classmethod
    def of(cls, pool: Pool, part: Numbers, measures: Sequence[Measure]) -> "HeldOut":
        """Prepare these measures on the queries of a part."""
        sets, weight = [], []
        for queries, numbers in pool.by_set(part):
            if isinstance(queries, ChunkedQueries):
                sets.append(_in_parts(queries, numbers, measures))
            else:
                sets.append(partial(values_of, queries, *judged_lists(queries, numbers, measures)))
            weight.append(queries.query_weight[numbers])
        return cls(sets, np.concatenate(weight))

    def values(self, weights: NDArray[np.float64], n_jobs: int | None) -> NDArray[np.float64]:
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
        return np.concatenate([values(weights, n_jobs) for values in self._sets], axis=2)


def _in_parts(
    queries: ChunkedQueries, numbers: Numbers, measures: Sequence[Measure]
) -> Callable[[NDArray[np.float64], int | None], NDArray[np.float64]]:
    """The values of candidates on some queries by passes over the chunks that hold any of them."""
    taken = np.zeros(len(queries), bool)
    taken[numbers] = True
    work = queries.work(ValuesOfChunk(tuple(measures), taken))
    only = [number for number, (first, last) in enumerate(queries.chunks) if taken[first:last].any()]

    def values(weights: NDArray[np.float64], n_jobs: int | None) -> NDArray[np.float64]:
        nothing = np.zeros((len(weights), len(measures), 0))
        return np.concatenate([nothing, *queries.map(work, weights, n_jobs=n_jobs, only=only)], axis=2)

    return values


def mean_over_held_out(values: Sequence[NDArray[np.float64]], weights: Sequence[Vector]) -> Vector:
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
    known = ~np.isnan(means)
    count = known.sum(axis=1)
    return np.asarray(np.where(count > 0, np.where(known, means, 0.0).sum(axis=1) / np.maximum(count, 1), np.nan))
