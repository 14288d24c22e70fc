"""Every way to place the relevant documents of a query, and the exact type two bounds found by enumerating them.

A measure E depends only on where the relevant documents stand, and for given positions the score F of an order is
largest when each class is sorted by decreasing score, so C(n, N1) patterns replace n! orders. A pattern is described by
c_i, the number of irrelevant documents above the i-th relevant one, and with scores a_1 >= .. >= a_N1 and b_1 >= .. >=
b_N0

    D = sum_i [ sum_{j > c_i} (a_i - b_j) - sum_{j <= c_i} (a_i - b_j) ]

is all of F that depends on it: F = D / (N1 N0) for the map "relevant" and F = (D + K) / (n (n - 1)) for "pairs", where
K is the contribution of the pairs inside the classes. One table of N1 (N0 + 1) numbers thus serves all patterns and
both maps, and the patterns themselves serve every scoring of the query.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels.parallel import one_blas_thread
from rankwise.errors import RankwiseError
from rankwise.measures._base import Measure, Vector
from rankwise.measures.compute import ScoredLists, measure_lists

# A measure is at its best within this of 1.
_PERFECT = 1e-9
# More patterns than this take more memory than a study of bounds is worth.
_FEASIBLE = 1_000_000


class Bounds(NamedTuple):
    """Exponential type two bounds and the smallest F(pi*) - F(pi), by map, one number per scoring of the query."""

    pairs: Vector
    relevant: Vector
    best_sorted: Vector  # by pairs, against the perfect order with the largest F alone
    pairs_margin: Vector
    relevant_margin: Vector


@dataclass(frozen=True, eq=False)
class Patterns:
    """All ways to place N1 relevant among N0 irrelevant documents, and the value of the measure on them.

    Row i of ``perfect`` and ``imperfect`` counts the irrelevant documents above the i-th relevant one, with one column
    per pattern.
    """

    perfect: NDArray[np.int64]
    imperfect: NDArray[np.int64]
    log_missed: Vector  # log(1 - E) of the imperfect ones

    @one_blas_thread()
    def bounds(self, relevant: Vector, others: Vector) -> Bounds:
        """The bounds for scores of the relevant and of the other documents, one row per scoring."""
        found = [self._logarithms(a, b) for a, b in zip(np.sort(relevant), np.sort(others), strict=True)]
        columns = np.array(found).T
        with np.errstate(over="ignore"):  # a bound may well be infinite
            return Bounds(*np.exp(columns[:3]), *columns[3:])

    def _logarithms(self, relevant: Vector, others: Vector) -> tuple[float, ...]:
        """The logarithms of the three bounds, and both margins, for increasing scores."""
        best_first = relevant[::-1], others[::-1]
        inside = _inside(best_first[0]) + _inside(best_first[1])
        n, crossing = len(relevant) + len(others), len(relevant) * len(others)
        pairs = n * (n - 1)
        spoilt = _between(*best_first, self.imperfect)
        worst, best = _between(relevant, others, self.perfect).min(), _between(*best_first, self.perfect).max()
        highest = spoilt.max(initial=-np.inf)
        by_pairs = (self.log_missed + spoilt / pairs).max(initial=-np.inf)
        by_relevant = (self.log_missed + spoilt / crossing).max(initial=-np.inf)
        return (
            by_pairs - (worst - 2 * inside) / pairs,  # K changes its sign where scores increase inside the classes
            by_relevant - worst / crossing,
            by_pairs - best / pairs,
            (worst - 2 * inside - highest) / pairs,
            (worst - highest) / crossing,
        )


@lru_cache(maxsize=1)
def placement_patterns(n_relevant: int, n_others: int, label: float, measure: Measure) -> Patterns:
    """All patterns of so many relevant documents, which have the label, and other ones, which have 0."""
    n = n_relevant + n_others
    if math.comb(n, n_relevant) > _FEASIBLE:
        raise RankwiseError(
            f"{n_relevant} relevant documents of {n} can be placed in {math.comb(n, n_relevant):.3g} ways: "
            f"exact bounds take {_FEASIBLE:,} at most"
        )
    above = np.array(list(combinations_with_replacement(range(n_others + 1), n_relevant)))
    labels = np.zeros((len(above), n))
    np.put_along_axis(labels, above + np.arange(n_relevant), label, axis=1)
    reached = measured(measure, np.broadcast_to(-np.arange(n, dtype=np.float64), labels.shape), labels)
    perfect = reached >= 1 - _PERFECT
    if not perfect.any() or (reached > 1 + _PERFECT).any():
        raise RankwiseError(
            f"these bounds take measures that count 1 at their best: {measure} is {reached.max():g} there"
        )
    columns = np.ascontiguousarray(above.T)
    return Patterns(columns[:, perfect], columns[:, ~perfect], np.log(1 - reached[~perfect]))


def _between(relevant: Vector, others: Vector, above: NDArray[np.int64]) -> Vector:
    """D of every pattern, the classes being placed in the order in which they are given."""
    gap = relevant[:, None] - others
    below = np.cumsum(np.pad(gap, ((0, 0), (1, 0))), axis=1)
    table = gap.sum(axis=1)[:, None] - 2 * below
    total = np.zeros(above.shape[1])
    for row, places in zip(table, above, strict=True):
        total += row.take(places)
    return total


def _inside(decreasing: Vector) -> float:
    """sum over pairs of one class, the first above the second, of the difference of their scores."""
    n = len(decreasing)
    return float((n - 1 - 2.0 * np.arange(n)) @ decreasing)


def measured(measure: Measure, scores: Vector, labels: Vector) -> Vector:
    """The measure of every row of scores and labels, ties pessimistic."""
    start = np.arange(len(scores) + 1, dtype=np.int64) * scores.shape[1]
    lists = ScoredLists(np.ascontiguousarray(scores).ravel(), np.ascontiguousarray(labels).ravel(), start)
    return np.asarray(measure_lists([measure], lists, ties="pessimistic")[0])
