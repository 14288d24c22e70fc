"""The linear members of a stack: six ridge regressions on features or on their normal scores, fold by fold.

What they see are the features of queries, changed chunk by chunk: the median in place of NaN, and normal scores. So
neither a copy of X is made, nor does it matter whether the queries are in memory or in parts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np

from rankwise._arrays import Matrix, Numbers, Vector
from rankwise.queries.queries import Queries
from rankwise.queries.scaling import Scaler
from rankwise.queries.source import Chunk, EachChunk, Job, QuerySource
from rankwise.rankers._base import scores_by_weights
from rankwise.rankers._model_selection import Pool, PooledSelection, Trial
from rankwise.rankers.boosting.binned_parts import in_parts
from rankwise.rankers.linear.committee import CommitteeProblems, choose_alphas
from rankwise.rankers.linear.ridge import RELATIVE_ALPHAS


@dataclass(frozen=True)
class FeatureChange:
    """What linear members see of the features.

    Attributes
    ----------
    fill : ndarray of shape (n_features,)
        What NaN counts as.
    scaler : Scaler or None
        A fitted ``Scaler("normal")``; None leaves features as they are.
    """

    fill: Vector
    scaler: Scaler | None = None

    def __call__(self, queries: Queries) -> Queries:
        """The queries with changed features, in float64 as the model computes them; the same where nothing changes."""
        holes = bool(np.isnan(queries.X.min(initial=0.0)))
        if not holes and self.scaler is None:
            return queries
        X = np.asarray(queries.X, np.float64)
        X = np.where(np.isnan(X), self.fill, X) if holes else X
        queries = queries._replace(X=X, feature_names=None, scaling=None, built_by=None)
        return queries if self.scaler is None else self.scaler.transform(queries)


@dataclass(frozen=True)
class _OnChanged(Job):
    """A job on queries with changed features."""

    job: Job
    change: FeatureChange
    keeps_prepared = False

    def run(self, chunk: Chunk, prepared: Any, *arguments: Any) -> Any:
        block, first = self.change(chunk.block), chunk.offset + chunk.first
        whole = Chunk(block, 0, len(block), first, chunk.n_jobs)
        return self.job.run(whole, self.job.prepare(block, first), *arguments)

    @property
    def title(self) -> str:
        return self.job.title


@dataclass(frozen=True)
class _ChangedQueries:
    """Queries, in memory or in parts, whose features are changed for whatever passes over them."""

    source: QuerySource
    change: FeatureChange

    def __getattr__(self, name: str) -> Any:
        return getattr(self.source, name)

    def __len__(self) -> int:
        return len(self.source)

    def map(self, job: Job, *arguments: Any, n_jobs: int | None = None) -> Iterator[Any]:
        """The result of a job on every chunk."""
        return self.source.map(_OnChanged(job, self.change), *arguments, n_jobs=n_jobs)

    def total(self, job: Job, *arguments: Any, n_jobs: int | None = None) -> tuple[Any, ...]:
        """The sums of results over all chunks."""
        return self.source.total(_OnChanged(job, self.change), *arguments, n_jobs=n_jobs)

    def load_changed(self, numbers: Numbers) -> Queries:
        """Some of the queries in memory."""
        queries, own = self.source.load(numbers)
        return self.change(queries[own])


class LinearFolds(NamedTuple):
    """Six ridge regressions without each part, as means of their weights.

    Attributes
    ----------
    coefs : ndarray of shape (n_folds, n_features)
        The weights of each fold.
    whole : ndarray of shape (n_features,)
        The weights learned from all queries.
    held : list of ndarray
        The scores of the documents that each fold holds out, in query order.
    sets : list of _ChangedQueries
        The queries.
    """

    coefs: Matrix
    whole: Vector
    held: list[Vector]
    sets: list[_ChangedQueries]

    @classmethod
    def of(
        cls, sets: Sequence[QuerySource], selection: PooledSelection, change: FeatureChange, n_jobs: int | None
    ) -> "LinearFolds":
        """Fit on features of these sets; the penalties are selected on all parts together, once."""
        changed = [_ChangedQueries(one, change) for one in sets]
        pool = Pool(tuple(cast(QuerySource, one) for one in changed))
        trials = []
        for one in selection.trials:
            held = [own.load_changed(numbers) for own, numbers in zip(changed, pool.by_set(one.held), strict=True)]
            trials.append(Trial(one.without, Pool(tuple(held)), np.arange(len(one.held))))
        problems = CommitteeProblems.of(PooledSelection(pool, selection.parts, trials), "auto", n_jobs)
        alphas, _ = choose_alphas(problems, RELATIVE_ALPHAS)
        whole = problems.members(alphas).mean(axis=0)
        coefs = np.array([problems.members(alphas, one.without).mean(axis=0) for one in trials] or [whole])
        scores = [
            np.concatenate([_scores(held, coef[None])[0] for held in one.pool.sets])
            for one, coef in zip(trials, coefs, strict=False)
        ]
        return cls(coefs, whole, scores, changed)

    def start(self, coef: Vector, factor: float) -> "ChangedStart":
        """What trees start from: the scores by these weights, times a factor."""
        return ChangedStart(self.sets[0].change, coef, factor)


@dataclass(frozen=True)
class ChangedStart:
    """Scores that trees start from, by weights on changed features.

    Attributes
    ----------
    change : FeatureChange
        How features are changed.
    coef : ndarray of shape (n_features,)
        The weights.
    factor : float
        What scores are multiplied by.
    """

    change: FeatureChange
    coef: Vector
    factor: float

    def __call__(self, queries: Queries) -> Vector:
        """The scores of some queries whose rows are grouped."""
        found: Vector = self.factor * _scores(self.change(queries), self.coef[None])[0]
        return found

    def on(self, sets: Sequence[Any], n_jobs: int | None) -> Any:
        """As trees take it: the scores of all documents in query order, or in parts this function."""
        if in_parts(sets):
            return self
        job = EachChunk(_start_scores, (self,))
        return np.concatenate([own for one in sets for own in one.map(job, n_jobs=n_jobs)])


def _start_scores(queries: Queries, start: ChangedStart) -> Vector:
    return start(queries)


def _scores(queries: Any, coefs: Matrix) -> Matrix:
    """The scores of grouped rows by each of these weights."""
    return scores_by_weights(queries.X, np.empty(0, np.int64), queries.n_documents, coefs, 1)
