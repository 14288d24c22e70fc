"""The members of a stack: each is fitted once per fold, and scores the queries that the fold held out.

A fold's models are averaged, not refitted: the mean of five models on four fifths of the queries ranks as well as one
on all of them, or better. :class:`OutOfFold` holds the queries and their parts, and judges scores. A member is a
:class:`~rankwise.rankers.boosting.tree_ensemble.TreeEnsemble` whatever it is, so the stack is one, too.
"""

import math
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwise._arrays import Matrix, Numbers, Vector
from rankwise._progress import progress
from rankwise.measures._base import Measure, parse
from rankwise.measures.compute import measure_candidates
from rankwise.queries.queries import Queries
from rankwise.queries.source import QuerySource
from rankwise.rankers._model_selection import PreparedValues, mean_of_known, weighted_mean
from rankwise.rankers.boosting.binned_parts import JoinedParts
from rankwise.rankers.boosting.folds import with_seed
from rankwise.rankers.boosting.growing import UNJUDGED, Growing, TreeCurve, grow_together, joined, no_trees, rows_of
from rankwise.rankers.boosting.packed_rows import sampled_rows
from rankwise.rankers.boosting.tree_ensemble import TreeEnsemble

if TYPE_CHECKING:
    from rankwise.rankers.boosting.folds import AnyRows

# The mean of three measures varies less than any of them, and all of them ask for the same order.
STEADY = ("nDCG@10", "nDCG@50", "AP")
# Trees between two looks, trees without a better mean after which growing ends, and by how many standard
# errors the mean of a later look may be below the best: more trees of a small step do no harm.
LOOK, PATIENCE, WITHIN = 10, 100, 0.25
# Looks whose scores are kept: the best one is among them, unless the curve is very uneven.
_KEPT = PATIENCE // LOOK + 3


def criterion_measures(measure: Measure) -> list[Measure]:
    """The measures whose mean is the criterion: three steady ones, and the given one if its values are at most 1."""
    found = [parse(name) for name in STEADY]
    return found if measure in found or not measure.at_most_one else [*found, measure]


class Clock:
    """The time that is left of a limit in seconds; without one, all the time in the world.

    Parameters
    ----------
    limit : float or None
        The seconds.
    """

    def __init__(self, limit: float | None) -> None:
        self.limit, self._began = limit, time.monotonic()

    @property
    def is_over(self) -> bool:
        """Whether the limit is reached."""
        return self.limit is not None and time.monotonic() - self._began >= self.limit


class _TimeIsOver(Exception):  # noqa: N818  it ends the growth of trees and is no fault
    """The limit was reached while trees were grown."""


@dataclass(frozen=True)
class Member:
    """A member that was fitted.

    Attributes
    ----------
    name : str
        Its name.
    ensemble : TreeEnsemble
        The mean of the models of all folds.
    scores : ndarray
        The score of every held-out document, by the model that did not learn from it.
    trees : int
        Trees per fold.
    seconds : float
        Processor seconds that it took.
    """

    name: str
    ensemble: TreeEnsemble
    scores: Vector
    trees: int
    seconds: float


class OutOfFold:
    """Queries in parts, each of which is scored by models that have not seen it.

    Parameters
    ----------
    sets : sequence of Queries or ChunkedQueries
        The queries; they are numbered through, set after set.
    parts : sequence of ndarray of int64
        The queries that each fold holds out; an empty part holds out nothing.
    measures : sequence of Measure
        The measures whose mean is the criterion.
    n_jobs : int or None
        Number of threads.

    Attributes
    ----------
    together : Queries or JoinedParts
        All queries without features, in query order.
    rows : list of ndarray of int64
        The rows that each fold holds out.
    queries : Queries
        Those that are held out, without features.
    """

    def __init__(
        self, sets: Sequence[QuerySource], parts: Sequence[Numbers], measures: Sequence[Measure], n_jobs: int | None
    ) -> None:
        self.sets, self.n_jobs, self.together = list(sets), n_jobs, joined(sets)
        self.rows = [rows_of(self.together, part) for part in parts]
        self._order = np.argsort(np.concatenate(self.rows), kind="stable")
        held = np.sort(np.concatenate(parts))
        self.queries = self.together[held] if isinstance(self.together, Queries) else self.together.load(held)
        self._prepared = PreparedValues.of(self.queries, np.arange(len(held)), measures)

    def place(self, scores: Sequence[Vector]) -> Vector:
        """The scores of the held-out documents in query order, from those of what each fold holds out."""
        return np.concatenate(scores)[self._order]

    def values(self, scores: Vector) -> Matrix:
        """The measures of every held-out query, shape (n_measures, n_queries); NaN where one is undefined."""
        found: Matrix = measure_candidates(self._prepared.measures, self._prepared.lists, scores[None], self.n_jobs)[0]
        return found

    def mean(self, values: Vector) -> float:
        """The weighted mean over the held-out queries."""
        return weighted_mean(values, self.queries.query_weight)


def sampled_features(sets: Sequence[QuerySource]) -> Matrix:
    """The features of the rows that thresholds of trees are chosen from: of few documents all, of many 65,536."""
    every = JoinedParts.of(sets)
    found = every.sample(sampled_rows(every.n_documents))
    return np.concatenate([np.asarray(X[rows], np.float64) for X, rows in found])


def medians(X: Matrix) -> Vector:
    """The median of every feature over the documents that have it; 0 where none has."""
    known = [column[~np.isnan(column)] for column in X.T]
    return np.array([np.median(column) if len(column) else 0.0 for column in known])


# -------------------------------------------------------------------------------------------------------------- trees


@dataclass
class _Curve(TreeCurve):
    """The criterion by number of trees, with its values by query, and the scores of the last looks."""

    criteria: list[Vector] = field(default_factory=list)
    kept: "deque[tuple[int, Vector]]" = field(default_factory=lambda: deque(maxlen=_KEPT))

    def choose(self, weight: Vector) -> tuple[int, Vector]:
        """The most trees whose mean is within a share of a standard error of the best, and the scores there."""
        means, best = self.means, int(np.argmax(self.means))
        at = {trees: place for place, trees in enumerate(self.trees)}

        def is_close(trees: int) -> bool:
            place = at[trees]
            difference = self.criteria[best] - self.criteria[place]
            error = standard_error(difference, weight) if place != best else 0.0
            return place >= best and bool(means[place] >= means[best] - WITHIN * error)

        return next((one for one in reversed(self.kept) if is_close(one[0])), self.kept[0])


def standard_error(difference: Vector, weight: Vector) -> float:
    """The standard error of a weighted mean over the queries where it is known; infinite for fewer than two."""
    counts = ~np.isnan(difference) & (weight > 0)
    difference, weight = difference[counts], weight[counts]
    if len(difference) < 2:
        return math.inf
    squares = math.fsum((weight * (difference - weighted_mean(difference, weight))) ** 2)
    return math.sqrt(squares * len(difference) / (len(difference) - 1)) / math.fsum(weight)


def grow_folds(
    held: OutOfFold,
    rows: "AnyRows",
    derivatives: Any,
    starts: Sequence[Any] | None,
    seed: int,
    most: int,
    clock: Clock,
    bar: progress,
) -> tuple[TreeEnsemble, Vector, int]:
    """Grow the trees of all folds together, until the criterion on what they hold out does not rise.

    Parameters
    ----------
    held : OutOfFold
        The queries.
    rows : SymmetricRows, BinnedRows or QuantizedRows
        The features of all folds.
    derivatives : Derivatives or PartedDerivatives
        The loss on all queries.
    starts : sequence, or None
        For each fold the scores of all documents that its trees are added to, or a function of queries in parts.
    seed : int
        Seed of the first fold; the others have the next ones.
    most : int
        The largest number of trees.
    clock : Clock
        Ends the growth.
    bar : progress
        Advances by one per tree.

    Returns
    -------
    ensemble : TreeEnsemble
        The mean over the folds of their trees, without the start.
    scores : ndarray
        The scores of the held-out documents, with the start.
    trees : int
        The number of trees of each fold.
    """
    n_features, count = held.sets[0].n_features, len(held.rows)
    if not rows.splittable:
        return no_trees(n_features), np.zeros(held.queries.n_documents), 0
    models = [
        rows.model(
            with_seed(derivatives.without(out) if len(out) else derivatives, seed + place),
            seed + place,
            None if starts is None else starts[place],
            held.n_jobs,
        )
        for place, out in enumerate(held.rows)
    ]
    curve = _Curve()

    def judge(models: Sequence[Growing]) -> float:
        found = held.place([model.scores(rows) for model, rows in zip(models, held.rows, strict=True)])
        curve.criteria.append(mean_of_known(held.values(found)))
        curve.kept.append((models[0].iteration, found))
        return held.mean(curve.criteria[-1])

    def after() -> None:
        bar.advance(count)
        if clock.is_over and curve.values:
            raise _TimeIsOver

    with suppress(_TimeIsOver):
        grow_together(models, judge, most, PATIENCE, curve, after, LOOK)
    if curve.judged:
        trees, scores = curve.choose(held.queries.query_weight)
    else:  # nothing can judge the number
        trees = min(most, UNJUDGED)
        for model in models:
            for _ in range(trees - model.iteration):
                model.grow()
        scores = held.place([model.scores(rows) for model, rows in zip(models, held.rows, strict=True)])
    return TreeEnsemble.concat([model.ensemble().first(trees) for model in models]), scores, trees


def whole_ensemble(
    held: OutOfFold, rows: "AnyRows", derivatives: Any, start: Any, seed: int, trees: int
) -> TreeEnsemble:
    """So many trees grown on all queries."""
    if not trees:
        return no_trees(held.sets[0].n_features)
    model = rows.model(with_seed(derivatives, seed), seed, start, held.n_jobs)
    for _ in range(trees):
        model.grow()
    return model.ensemble()
