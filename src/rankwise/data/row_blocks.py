"""The rows of queries in blocks of bounded size, and the radius of their feature vectors.

Sums over all documents of a large set go block by block, because a second copy of ``X`` in float64 may not fit
into memory. The blocks run query after query, whatever the order of the rows in the input, so that scattered
rows give the same bits as grouped ones.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rankwise.data import checks
from rankwise.data.queries import Queries


def row_blocks(queries: Queries, chosen: NDArray[np.int64] | None = None) -> Iterator[slice | NDArray[np.int64]]:
    """Rows of some queries in blocks, each small enough for a copy in float64.

    Parameters
    ----------
    queries : Queries
        The documents and their grouping.
    chosen : ndarray of int64, default=None
        The numbers of the queries to take; None takes all queries of non-zero weight.

    Returns
    -------
    blocks : iterator of slice or ndarray of int64
        What indexes ``queries.X``: slices where all rows are taken in input order, row numbers otherwise.
    """
    rows, count = rows_in_order(queries, chosen)
    blocks = checks.blocks_of_rows(count, queries.n_features)
    return (rows[block] for block in blocks) if len(rows) else blocks


def rows_in_order(queries: Queries, chosen: NDArray[np.int64] | None = None) -> tuple[NDArray[np.int64], int]:
    """Rows of some queries, query after query.

    Parameters
    ----------
    queries : Queries
        The documents and their grouping.
    chosen : ndarray of int64, default=None
        The numbers of the queries to take; None takes all queries of non-zero weight.

    Returns
    -------
    rows : ndarray of int64
        The row numbers; empty where all rows are taken and already have this order.
    count : int
        The number of rows that are taken.
    """
    taken = np.zeros(len(queries), dtype=bool)
    taken[queries.counted if chosen is None else chosen] = True
    if taken.all() and queries.is_grouped:
        return np.empty(0, np.int64), queries.n_documents
    rows = np.ascontiguousarray(queries.rows[np.repeat(taken, queries.sizes)])
    return rows, len(rows)


def largest_radius(queries: Queries) -> float:
    """The largest radius of a query's feature vectors, which every bound on a linear ranker needs.

    The radius of one query is min over c in {0, mean row} of max_i norm(x_i - c).

    Parameters
    ----------
    queries : Queries
        The documents and their grouping.

    Returns
    -------
    radius : float
        The maximum over all queries with documents; 0 where there are none.
    """
    from rankwise._kernels.rows import list_radius

    X, rows = np.asarray(queries.X), queries.rows
    ones, buffer = np.ones(queries.n_features), np.empty(queries.n_features)
    bounds = zip(queries.start[:-1], queries.start[1:], strict=True)
    return max((float(list_radius(X, rows[a:b], ones, buffer)) for a, b in bounds if b > a), default=0.0)
