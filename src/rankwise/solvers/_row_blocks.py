"""The rows of judged lists in blocks, so that sums over them need no second X.

List after list, whatever order the rows stand in: scattered rows give the same bits as grouped ones.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rankwise.data import checks
from rankwise.data.queries import Queries


def lists_that_count(queries: Queries) -> NDArray[np.int64]:
    """The numbers of the lists whose weight is not 0."""
    return np.arange(len(queries)) if queries.weight is None else np.flatnonzero(queries.weight)


def row_blocks(queries: Queries, lists: NDArray[np.int64] | None = None) -> Iterator[slice | NDArray[np.int64]]:
    """Rows of these lists (None: of all that count), block after block, each small enough for a copy in float64."""
    rows, count = rows_in_order(queries, lists)
    step = max(1, checks.BLOCK_VALUES // max(1, queries.n_features))
    if not len(rows):
        return (slice(first, min(first + step, count)) for first in range(0, count, step))
    return (rows[first : first + step] for first in range(0, count, step))


def rows_in_order(queries: Queries, lists: NDArray[np.int64] | None = None) -> tuple[NDArray[np.int64], int]:
    """(rows of these lists, list after list, their number); no rows where all rows stand in this order already."""
    chosen = np.zeros(len(queries), dtype=bool)
    chosen[lists_that_count(queries) if lists is None else lists] = True
    if chosen.all() and queries.is_grouped:
        return np.empty(0, np.int64), queries.n_documents
    rows = np.ascontiguousarray(queries.rows[np.repeat(chosen, queries.sizes)])
    return rows, len(rows)
