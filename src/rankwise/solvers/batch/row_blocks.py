"""The rows of queries in blocks, so that sums over them need no second X; and the radius of queries.

Rows come query by query, whatever their order in X: scattered rows give the same bits as grouped ones. The radius, how
far the rows of a query are from one point, enters every bound on a linear ranker.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rankwise.data import checks
from rankwise.data.queries import Queries


def lists_that_count(queries: Queries) -> NDArray[np.int64]:
    """The numbers of the queries whose weight is not 0."""
    return np.arange(len(queries)) if queries.weight is None else np.flatnonzero(queries.weight)


def row_blocks(queries: Queries, lists: NDArray[np.int64] | None = None) -> Iterator[slice | NDArray[np.int64]]:
    """Rows of these queries (None: all of weight other than 0) in blocks that are small enough for a float64 copy."""
    rows, count = rows_in_order(queries, lists)
    step = max(1, checks.BLOCK_VALUES // max(1, queries.n_features))
    if not len(rows):
        return (slice(first, min(first + step, count)) for first in range(0, count, step))
    return (rows[first : first + step] for first in range(0, count, step))


def rows_in_order(queries: Queries, lists: NDArray[np.int64] | None = None) -> tuple[NDArray[np.int64], int]:
    """(rows of these queries, query by query; their number); no rows if all rows are in this order already."""
    chosen = np.zeros(len(queries), dtype=bool)
    chosen[lists_that_count(queries) if lists is None else lists] = True
    if chosen.all() and queries.is_grouped:
        return np.empty(0, np.int64), queries.n_documents
    rows = np.ascontiguousarray(queries.rows[np.repeat(chosen, queries.sizes)])
    return rows, len(rows)


def largest_radius(queries: Queries) -> float:
    """The largest over queries of max_i norm(x_i - c), where c is 0 or the query's mean row, whichever is better.

    Parameters
    ----------
    queries : Queries
        Queries with features.

    Returns
    -------
    float
        The radius; 0 without documents.
    """
    from rankwise._kernels.rows import list_radius

    X, rows = np.asarray(queries.X), queries.rows
    ones, buffer = np.ones(queries.n_features), np.empty(queries.n_features)
    bounds = zip(queries.start[:-1], queries.start[1:], strict=True)
    return max((float(list_radius(X, rows[a:b], ones, buffer)) for a, b in bounds if b > a), default=0.0)
