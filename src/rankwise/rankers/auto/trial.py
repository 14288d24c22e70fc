"""A trial: candidates that are compared on queries which they have not seen."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rankwise._progress import progress
from rankwise._tables import Table
from rankwise.measures._base import Measure
from rankwise.queries.queries import Queries
from rankwise.rankers._base import Ranker
from rankwise.rankers._model_selection import weighted_mean
from rankwise.rankers.auto.choice import Difference, criterion, judged
from rankwise.rankers.auto.families import Clock
from rankwise.rankers.committee import Committee, within_query_deviation

Vector = NDArray[np.float64]


class Family(Protocol):
    """Rankers of one kind: fitted on parts of the queries for a trial, and on all of them if they are chosen."""

    def out_of_fold(self, trial: "CandidateTrial", clock: Clock, bar: progress) -> Vector:
        """A score for every document of ``trial.queries``, by a ranker that has not seen its query."""

    def fitted(self, queries: Queries) -> Ranker:
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
        self, everything: Queries, parts: Sequence[NDArray[np.int64]], measures: Sequence[Measure], n_jobs: int | None
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

    def splits(self) -> list[tuple[Queries, NDArray[np.bool_]]]:
        """Per part: the queries to learn from, and which rows of ``queries`` are judged."""
        found = []
        counted, owner = self.everything.counted, self.queries.query_of_row
        for part, place in zip(self.parts, self.places, strict=True):
            inside = np.zeros(len(self.queries), dtype=bool)
            inside[place] = True
            found.append((self.everything[np.setdiff1d(counted, part)], inside[owner]))
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
        values = judged(self.queries, scores, self.measures, self.n_jobs)
        # at once: Ctrl-C leaves whole candidates
        self._tried[name] = _Tried(scores, values, criterion(values), families, time.perf_counter() - began)

    def whole(self, family: Family) -> Ranker:
        """The ranker of a family for all queries, fitted the first time that it is asked for."""
        if family not in self._whole:
            self._whole[family] = family.fitted(self.everything)
        return self._whole[family]

    def fitted(self, name: str, like: Ranker) -> Ranker:
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
