"""Which of several rankers to take: a criterion per query, paired differences, and one standard error.

A candidate is judged by scores of queries that it has not seen. The simplest candidate is kept unless another one is
better by more than the standard error of the paired difference: on small data the best mean is often luck.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankwise.measures._base import Measure, parse
from rankwise.measures.compute import ScoredLists, measure_lists
from rankwise.queries.queries import Queries
from rankwise.rankers._model_selection import weighted_mean

Vector = NDArray[np.float64]

# The mean of three measures varies less than any of them, and all of them ask for the same order.
STEADY = ("nDCG@10", "nDCG@50", "AP")


def criterion_measures(measure: Measure) -> list[Measure]:
    """The measures whose mean is the criterion: three steady ones, and the given one if its values are at most 1."""
    found = [parse(name) for name in STEADY]
    return found if measure in found or not measure.at_most_one else [*found, measure]


def judged(queries: Queries, scores: Vector, measures: Sequence[Measure], n_jobs: int | None = None) -> Vector:
    """The values of the measures, shape (n_measures, n_queries); NaN for queries that a measure is undefined for."""
    lists = ScoredLists(scores, queries.labels(), queries.start, queries.scattered_rows)
    return np.array(measure_lists(list(measures), lists, n_jobs=n_jobs), dtype=np.float64)


def criterion(values: Vector) -> Vector:
    """One number per query: the mean of the measures that are defined for it; NaN if none is."""
    known = ~np.isnan(values)
    count = known.sum(axis=0)
    total = np.where(known, values, 0.0).sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


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
