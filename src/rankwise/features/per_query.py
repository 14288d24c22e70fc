"""Values of a document relative to the other documents of its query: z-score, rank, share of the maximum."""

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Within = Literal["zscore", "rank", "share", "value"]
WITHIN = get_args(Within)


def within_queries(values: Array, start: NDArray[np.int64], rows: NDArray[np.int64] | None, how: str) -> Array:
    """Transform values within each query; what is missing stays so.

    ======== ===================================================================================
    zscore   (x - mean) / standard deviation, 0 where all values of the query are equal
    rank     (r - 1) / (m - 1) for the ascending rank r of m values, ties averaged; 0.5 for m = 1
    share    x / max abs(x), 0 where all values are 0
    ======== ===================================================================================

    Parameters
    ----------
    values : ndarray of float64, shape (n_documents,)
        The values, in input order.
    start : ndarray of int64, shape (n_queries + 1,)
        Query q owns ``rows[start[q]:start[q + 1]]``.
    rows : ndarray of int64, shape (n_documents,), or None
        The rows, query after query; None where they are grouped.
    how : {"zscore", "rank", "share"}
        The transformation.

    Returns
    -------
    transformed : ndarray of float64, shape (n_documents,)
        The new values, in input order. The order of the rows of a query has no influence on their bits.
    """
    found = np.empty(len(values))
    for first, last in zip(start[:-1].tolist(), start[1:].tolist(), strict=True):
        if first < last:
            places = slice(first, last) if rows is None else rows[first:last]
            found[places] = _KINDS[how](values[places])
    return found


def _zscore(x: Array) -> Array:
    there = np.sort(x[~np.isnan(x)])  # sorted: sums do not depend on the order of the rows
    if not len(there) or there[0] == there[-1]:
        return np.where(np.isnan(x), np.nan, 0.0)
    # huge and tiny values are brought near 1: squares stay within float64
    unit = np.abs(there).max()
    there, x = there / unit, x / unit
    mean, deviation = there.mean(), there.std()
    return (x - mean) / deviation if deviation > 0 else np.where(np.isnan(x), np.nan, 0.0)


def _rank(x: Array) -> Array:
    there = np.sort(x[~np.isnan(x)])
    if len(there) < 2:
        return np.where(np.isnan(x), np.nan, 0.5)
    below, upto = np.searchsorted(there, x, "left"), np.searchsorted(there, x, "right")
    return np.where(np.isnan(x), np.nan, (below + upto - 1) / 2 / (len(there) - 1))


def _share(x: Array) -> Array:
    there = np.abs(x[~np.isnan(x)])
    most = there.max() if len(there) else 0.0
    return x / most if most > 0 else np.where(np.isnan(x), np.nan, 0.0)


_KINDS = {"zscore": _zscore, "rank": _rank, "share": _share}
