"""Candidates of :class:`AutoRanker`: compared on queries that they have not seen, and the choice among them.

A candidate is a linear ranker, boosted trees whose folds grow together, or the mean of two. It has a criterion per
query, the mean of several measures. The simplest candidate is kept unless another one is better by more than the
standard error of the paired difference: on small data the best mean is often luck.
"""

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, Self

import numpy as np
from sklearn.base import clone

from rankwise._arrays import Mask, Numbers, Vector
from rankwise._parameters import as_random
from rankwise._progress import progress
from rankwise._tables import Table
from rankwise.measures._base import Measure, parse
from rankwise.measures.compute import ScoredLists, measure_lists
from rankwise.queries.concat import concat
from rankwise.queries.queries import Queries
from rankwise.rankers._base import Ranker
from rankwise.rankers._model_selection import mean_of_known, weighted_mean
from rankwise.rankers.committee import Committee, within_query_deviation

if TYPE_CHECKING:
    from rankwise.rankers.boosting.boosted import BoostedRanker
    from rankwise.rankers.boosting.growing import Growing

Engine = Literal["lightgbm", "catboost"]

# The mean of three measures varies less than any of them, and all of them ask for the same order.
STEADY = ("nDCG@10", "nDCG@50", "AP")


def criterion_measures(measure: Measure) -> list[Measure]:
    """The measures whose mean is the criterion: three steady ones, and the given one if its values are at most 1."""
    found = [parse(name) for name in STEADY]
    return found if measure in found or not measure.at_most_one else [*found, measure]


def measure_values(queries: Queries, scores: Vector, measures: Sequence[Measure], n_jobs: int | None = None) -> Vector:
    """The values of the measures, shape (n_measures, n_queries); NaN for queries that a measure is undefined for."""
    lists = ScoredLists(scores, queries.labels(), queries.start, queries.scattered_rows)
    return np.array(measure_lists(list(measures), lists, n_jobs=n_jobs), dtype=np.float64)


@dataclass(frozen=True)
class Difference:
    """The mean of a paired difference over queries, and its standard error.

    Attributes
    ----------
    mean : float
        The weighted mean; NaN without a query.
    error : float
        The standard error of the mean; infinite for fewer than two queries.
    """

    mean: float
    error: float

    @classmethod
    def of(cls, one: Vector, other: Vector, weight: Vector) -> "Difference":
        """``one`` minus ``other``, query by query, over the queries for which both are defined."""
        difference = one - other
        counts = ~np.isnan(difference) & (weight > 0)
        difference, weight = difference[counts], weight[counts]
        mean, queries = weighted_mean(difference, weight), len(difference)
        if queries < 2:
            return cls(mean, math.inf)
        squares = math.fsum((weight * (difference - mean)) ** 2)
        return cls(mean, math.sqrt(squares * queries / (queries - 1)) / math.fsum(weight))

    @property
    def is_clear(self) -> bool:
        """Whether the mean is above 0 by more than one standard error."""
        return self.mean > self.error


def choose(candidates: Mapping[str, Vector], weight: Vector) -> tuple[str, dict[str, Difference]]:
    """The candidate to take: the first, unless others are better by more than one standard error; then the best.

    Parameters
    ----------
    candidates : mapping of str to ndarray of shape (n_queries,)
        The criterion of every query, by candidate; the simplest comes first.
    weight : ndarray of shape (n_queries,)
        The weights of the queries.

    Returns
    -------
    chosen : str
        The name of the candidate.
    differences : dict of str to Difference
        The differences to the first candidate.
    """
    first, *others = candidates
    differences = {name: Difference.of(candidates[name], candidates[first], weight) for name in candidates}
    clear = [name for name in others if differences[name].is_clear]
    # of equals the earlier one, which is the simpler one
    return max(clear, key=lambda name: differences[name].mean, default=first), differences


# ------------------------------------------------------------------------------------------- families of rankers


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


def concat_sets(train: Queries, validation: Queries) -> Queries:
    """All queries of both sets, without their identities, which may occur in both."""
    plain = [part._replace(qid=None, docid=None) for part in (train, validation)]
    return concat([plain[0], plain[1]._replace(feature_names=plain[0].feature_names)])


@dataclass(frozen=True, eq=False)
class Linear:
    """Linear rankers.

    Attributes
    ----------
    ranker : Ranker
        The ranker that is cloned and fitted.
    """

    ranker: Ranker

    @classmethod
    def of(cls, auto: Any) -> Self:
        """Those that :class:`AutoRanker` tries."""
        from rankwise.rankers.linear.committee import RidgeCommittee
        from rankwise.rankers.smooth.smoothrank import SmoothRank

        if auto.linear == "RidgeCommittee":
            return cls(RidgeCommittee(auto.measure, n_jobs=auto.n_jobs))
        # its own measure, nDCG@50, sees more of each ranking than most that are reported
        return cls(SmoothRank(n_jobs=auto.n_jobs))

    def out_of_fold(self, trial: "CandidateTrial", clock: Clock, bar: progress) -> Vector:
        """A score for every document of ``trial.queries``, by a ranker that has not seen its query."""
        scores = np.zeros(trial.queries.n_documents)
        for train, rows in trial.splits():
            scores[rows] = self.fit(train).predict(trial.queries)[rows]
            bar.advance(1)
        return scores

    def fit(self, queries: Queries) -> Ranker:
        """The ranker for these queries."""
        fresh: Ranker = clone(self.ranker)
        return fresh.fit(queries)


class Boosted:
    """Boosted trees. The boosters of all folds grow together, and the criterion over all of them sets their number.

    Parameters
    ----------
    ranker : BoostedRanker
        The ranker that is cloned and fitted; ``trees`` is the largest number of trees.

    Attributes
    ----------
    trees : int
        The number of trees that :meth:`out_of_fold` found.
    """

    def __init__(self, ranker: "BoostedRanker") -> None:
        self.ranker = ranker
        self.trees = 0

    @classmethod
    def of(cls, auto: Any, engine: Engine) -> Self:
        """Those that :class:`AutoRanker` tries."""
        from rankwise.rankers.boosting.boosted import BoostedRanker

        return cls(
            BoostedRanker(
                auto.measure,
                engine=engine,
                trees=auto.max_trees,
                random_state=as_random(auto.random_state).integers(2**31).item(),
                n_jobs=auto.n_jobs,
                missing="error",
            )
        )

    def out_of_fold(self, trial: "CandidateTrial", clock: Clock, bar: progress) -> Vector:
        """A score for every document of ``trial.queries``: the mean over the seeds of the ranker, as in its own fit."""
        from rankwise.rankers.boosting.growing import TreeCurve, grow_together

        first, *others = self._seeds()
        growing = _Folds(self.ranker, trial)
        if not growing.splittable:
            return np.zeros(trial.queries.n_documents)
        models, curve, looks = growing.models(first), TreeCurve(), []
        weight = trial.queries.query_weight

        def look(scores: Sequence[Vector]) -> float:
            looks.append(growing.held_out(scores))
            values = measure_values(trial.queries, looks[-1], trial.measures, trial.n_jobs)
            return weighted_mean(mean_of_known(values), weight)

        def after() -> None:
            bar.advance(len(models))
            if clock.is_over and curve.values:
                raise _TimeIsOver

        with suppress(_TimeIsOver):
            patience = self.ranker._setting("patience") or self.ranker.trees
            grow_together(models, look, self.ranker.trees, patience, curve, after)
        self.trees = curve.best if curve.judged else curve.trees[-1]
        scores = looks[curve.trees.index(self.trees)] / (1 + len(others))
        for seed in others:
            models = growing.models(seed)
            for _ in range(self.trees):
                for model in models:
                    model.grow()
            scores += growing.held_out([model.scores() for model in models]) / (1 + len(others))
        return scores

    def _seeds(self) -> list[int]:
        """The seeds that the ranker itself draws."""
        drawn = as_random(self.ranker.random_state).integers(0, 2**31 - 1, self.ranker._setting("seeds"))
        return list(map(int, drawn))

    def fit(self, queries: Queries) -> Ranker:
        """The ranker for these queries, with the number of trees that was found."""
        fresh: Ranker = clone(self.ranker).set_params(trees=self.trees, patience=None)
        return fresh.fit(queries)


class _Folds:
    """The boosters of all folds of a trial: one set of binned rows, in which held-out rows have a weight of 0."""

    def __init__(self, ranker: "BoostedRanker", trial: "CandidateTrial") -> None:
        from rankwise.rankers.boosting.growing import joined, rows_of
        from rankwise.rankers.boosting.objectives import Derivatives

        everything = joined([trial.everything])
        self._ranker, self._trial = ranker, trial
        self._derivatives = Derivatives.of(ranker._loss(), everything, ranker.n_jobs)
        self._rows = ranker._rows([trial.everything], [])
        self._held = [rows_of(everything, part) for part in trial.parts]
        self._places = [rows_of(trial.queries, place) for place in trial.places]

    @property
    def splittable(self) -> bool:
        """Whether a tree can have a split."""
        return self._rows.splittable

    def models(self, seed: int) -> "list[Growing]":
        """A booster without trees for every fold."""
        from rankwise.rankers.boosting.folds import with_seed

        seeded = with_seed(self._derivatives, seed)
        return [self._rows.model(seeded.without(rows), seed, None, self._ranker.n_jobs) for rows in self._held]

    def held_out(self, scores: Sequence[Vector]) -> Vector:
        """The scores of the documents of ``trial.queries``, each by the booster that did not learn from it."""
        found = np.zeros(self._trial.queries.n_documents)
        for score, rows, places in zip(scores, self._held, self._places, strict=True):
            found[places] = score[rows]
        return found


# ------------------------------------------------------------------------------------------- a trial


class Family(Protocol):
    """Rankers of one kind: fitted on parts of the queries for a trial, and on all of them if they are chosen."""

    def out_of_fold(self, trial: "CandidateTrial", clock: Clock, bar: progress) -> Vector:
        """A score for every document of ``trial.queries``, by a ranker that has not seen its query."""

    def fit(self, queries: Queries) -> Ranker:
        """The ranker for all queries."""


class _Tried(NamedTuple):
    """What a candidate came to: its scores, their measures and criterion, its families, and the seconds it took."""

    scores: Vector
    values: Vector
    criterion: Vector
    families: tuple[Family, ...]
    seconds: float


class CandidateTrial:
    """Candidates, their scores of queries that they have not seen, and what these are worth.

    Parameters
    ----------
    everything : Queries
        All queries.
    parts : sequence of ndarray of int64
        The queries of every part; rankers learn from all others and are judged on the part.
    measures : sequence of Measure
        The measures whose mean is the criterion.
    n_jobs : int or None
        Number of threads.

    Attributes
    ----------
    queries : Queries
        The queries of all parts.
    """

    def __init__(
        self, everything: Queries, parts: Sequence[Numbers], measures: Sequence[Measure], n_jobs: int | None
    ) -> None:
        self.everything, self.parts, self.measures, self.n_jobs = everything, list(parts), list(measures), n_jobs
        held = np.sort(np.concatenate(self.parts))
        self.queries = everything[held]
        self.places = [np.searchsorted(held, part) for part in self.parts]  # of the parts among these queries
        self._tried: dict[str, _Tried] = {}
        self._whole: dict[Family, Ranker] = {}

    @property
    def criteria(self) -> dict[str, Vector]:
        """The criterion of every query, by candidate."""
        return {name: one.criterion for name, one in self._tried.items()}

    def splits(self) -> list[tuple[Queries, Mask]]:
        """Per part: the queries to learn from, and which rows of ``queries`` are judged."""
        found = []
        counted, owner = self.everything.counted, self.queries.query_of_row
        for part, place in zip(self.parts, self.places, strict=True):
            found.append((self.everything[np.setdiff1d(counted, part)], np.isin(owner, place)))
        return found

    def add(self, name: str, family: Family, clock: Clock, bar: progress) -> None:
        """Try the rankers of a family."""
        began = time.perf_counter()
        self._judge(name, family.out_of_fold(self, clock, bar), (family,), began)

    def add_mean(self, name: str, one: str, other: str) -> None:
        """Try the mean of the scores of two candidates, each divided by its deviation."""
        began = time.perf_counter()
        scores = np.zeros(self.queries.n_documents)
        for member in (one, other):
            deviation = self.deviation(member)
            scores += self._tried[member].scores / deviation if deviation else 0.0
        self._judge(name, scores, self._tried[one].families + self._tried[other].families, began)

    def deviation(self, name: str) -> float:
        """The deviation of the scores of a candidate within queries."""
        return within_query_deviation(self.queries, self._tried[name].scores)

    def _judge(self, name: str, scores: Vector, families: tuple[Family, ...], began: float) -> None:
        values = measure_values(self.queries, scores, self.measures, self.n_jobs)
        # at once: Ctrl-C leaves whole candidates
        self._tried[name] = _Tried(scores, values, mean_of_known(values), families, time.perf_counter() - began)

    def whole(self, family: Family) -> Ranker:
        """The ranker of a family for all queries, fitted the first time that it is asked for."""
        if family not in self._whole:
            self._whole[family] = family.fit(self.everything)
        return self._whole[family]

    def fit_candidate(self, name: str, like: Ranker) -> Ranker:
        """The candidate, fitted on everything."""
        families = self._tried[name].families
        members = [self.whole(family) for family in families]
        if len(members) == 1:
            return members[0]
        alone = {one.families[0]: own for own, one in self._tried.items() if len(one.families) == 1}
        return Committee.of(members, [self.deviation(alone[family]) for family in families], like)

    def report(self, chosen: str, differences: Mapping[str, Difference]) -> Table:
        """A row per candidate."""
        weight, columns = self.queries.query_weight, {}
        for place, measure in enumerate(self.measures):
            columns[measure.title] = [weighted_mean(one.values[place], weight) for one in self._tried.values()]
        columns["criterion"] = [weighted_mean(one.criterion, weight) for one in self._tried.values()]
        columns["difference"] = [differences[name].mean for name in self._tried]
        columns["standard error"] = [differences[name].error for name in self._tried]
        seconds = [one.seconds for one in self._tried.values()]
        return report_table(list(self._tried), columns, chosen, seconds)


def report_table(
    names: Sequence[str], columns: Mapping[str, Any], chosen: str, seconds: Sequence[float] | None = None
) -> Table:
    """The table of a trial; the seconds of a trial that was read from a file are not known."""
    taken = [float("nan")] * len(names) if seconds is None else list(seconds)
    return Table({"candidate": list(names), **columns, "seconds": taken, "chosen": [name == chosen for name in names]})
