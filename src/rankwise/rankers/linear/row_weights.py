"""The weights of documents in a regression: their own, those of their queries, and a balance of relevant and others."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rankwise.data.document_weights import differing_weights
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
    given = [row_weight(queries) for queries in sets]
    weights = [own if len(own) else np.ones(one.n_documents) for own, one in zip(given, sets, strict=True)]
    relevant = [queries.labels() > 0 for queries in sets]
    counts = np.array(
        [
            sum(float(own[which == part].sum()) for own, which in zip(weights, relevant, strict=True))
            for part in (False, True)
        ]
    )
    grades = all(_are_grades(queries.labels()) for queries in sets)
    others, own_class = class_shares(counts, _MOST_OF_GRADES if grades else 1.0)
    if others == own_class == 1.0:
        return given
    return [own * np.where(which, own_class, others) for own, which in zip(weights, relevant, strict=True)]


def _are_grades(labels: Vector) -> bool:
    return bool((labels <= _LARGEST_GRADE).all() and (labels == np.rint(labels)).all())


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
