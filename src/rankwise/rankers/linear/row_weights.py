"""The weights of documents in a regression: their own, those of their queries, and a balance of relevant and others."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels import drive
from rankwise.data.checks import differing_weights
from rankwise.data.passes.chunked import ChunkedQueries
from rankwise.data.passes.work import Job
from rankwise.data.queries import Queries

Vector = NDArray[np.float64]

# Integers up to this one are grades: LightGBM's table of gains ends there, too.
_LARGEST_GRADE = 30
# The largest weight of a document without relevance. Without a limit a single one would count as much as all others
# together, and with weak features the order would be almost random. Sets with at least 5 % of such documents, among
# them all that LETOR has published, never reach the limit.
_MOST_OF_GRADES = 10.0


def row_weight(queries: Queries) -> Vector:
    """The weight of every row, query weight times document weight; empty if all are 1."""
    own = differing_weights(queries)
    if queries.weight is None:
        return np.empty(0) if own is None else own
    weight = queries.weight[queries.query_of_row]
    return np.ascontiguousarray(weight if own is None else weight * own)


def balanced_weights(sets: Sequence[Queries]) -> list[Vector]:
    """The weight of every row, with the same total for relevant documents (label above 0) and for others.

    If the others are fewer, one of them counts at most 10 times if labels are grades, and once if they are not. The
    total weight stays the same.

    Parameters
    ----------
    sets : sequence of Queries
        Judged queries, balanced together.

    Returns
    -------
    list of ndarray, shape (n_documents,)
        The weights, one array per set.
    """
    return balanced([row_weight(queries) for queries in sets], sets, balance_of(sets))


def balanced(given: list[Vector], sets: Sequence[Queries], balance: tuple[float, float]) -> list[Vector]:
    """Weights of rows times the factor of their class; as they are if both factors are 1."""
    others, own_class = balance
    if others == own_class == 1.0:
        return given
    return [
        (own if len(own) else np.ones(one.n_documents)) * np.where(one.labels() > 0, own_class, others)
        for own, one in zip(given, sets, strict=True)
    ]


def balance_of(sets: "Sequence[Queries | ChunkedQueries]") -> tuple[float, float]:
    """Factors of (documents without relevance, relevant documents) that balance these sets together."""
    counts, fractions = np.zeros(2), 0.0
    for queries in sets:
        if isinstance(queries, ChunkedQueries):
            own, other = queries.total(ClassesOfChunk())
        else:
            own, other = _classes(queries)
        counts, fractions = counts + own, fractions + other
    return class_shares(counts, 1.0 if fractions else _MOST_OF_GRADES)


def _classes(queries: Queries) -> tuple[Vector, float]:
    """(weights of documents without relevance and of relevant ones, number of labels that are no grades)."""
    labels, weight = queries.in_query_order(queries.labels()), row_weight(queries)
    weight = queries.in_query_order(weight) if len(weight) else np.ones(len(labels))
    counts = np.zeros(2)
    for first, last in drive.query_chunks(queries.start):  # added chunk by chunk, as those of queries in parts are
        rows = slice(int(queries.start[first]), int(queries.start[last]))
        relevant, own = labels[rows] > 0, weight[rows]
        counts += [float(own[~relevant].sum()), float(own[relevant].sum())]
    grades = (labels <= _LARGEST_GRADE) & (labels == np.rint(labels))
    return counts, float((~grades).sum())


@dataclass(frozen=True)
class ClassesOfChunk(Job):
    """The weights of both classes, and the number of labels that are no grades, of one chunk."""

    def run(self, block: Queries, first: int, prepared: Any, *arguments: Any) -> tuple[Vector, float]:
        return _classes(block)


def class_shares(counts: Vector, most: float) -> tuple[float, float]:
    """Factors of (documents without relevance, relevant documents) that give both classes the same weight.

    Parameters
    ----------
    counts : ndarray, shape (2,)
        The total weights of the two classes.
    most : float
        The largest factor of documents without relevance; the total weight stays the same.

    Returns
    -------
    tuple of float
        The two factors.
    """
    others, relevant = map(float, counts)
    if not (others and relevant):
        return 1.0, 1.0
    total = others + relevant
    if total / (2 * others) <= max(most, 1.0):
        return total / (2 * others), total / (2 * relevant)
    return most, (relevant - (most - 1) * others) / relevant
