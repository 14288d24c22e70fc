"""The rows of queries in blocks of bounded size, and the radius of their feature vectors.

Sums over all documents of a large set go block by block, because a second copy of ``X`` in float64 may not fit
into memory. The blocks run query after query, whatever the order of the rows in the input, so that scattered
rows give the same bits as grouped ones.

Losses ignore a shift of all scores, so that one factor per feature puts features on a common scale without a second
``X``: s = sum_j w_j f_j x_j is the score of scaled features with weights w, and of raw ones with weights w f; the
gradient with respect to w is f X' g (:func:`scale_factors`).
"""

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import RankwiseError
from rankwise.data import checks
from rankwise.data.document_weights import differing_weights
from rankwise.data.queries import Queries
from rankwise.data.scaling import center_and_scale

Vector = NDArray[np.float64]
Scale = Literal["auto", "none"]


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


def largest_radius(queries: Queries, factor: NDArray[np.float64] | None = None) -> float:
    """The largest radius of a query's feature vectors, which every bound on a linear ranker needs.

    The radius of one query is min over c in {0, mean row} of max_i norm(x_i - c).

    Parameters
    ----------
    queries : Queries
        The documents and their grouping.
    factor : ndarray of shape (n_features,), default=None
        Factor of each feature; None is 1.

    Returns
    -------
    radius : float
        The maximum over all queries with documents; 0 where there are none.
    """
    from rankwise._kernels.rows import list_radius

    X, rows = np.asarray(queries.X), queries.rows
    buffer = np.empty(queries.n_features)
    factor = np.ones(queries.n_features) if factor is None else factor
    bounds = zip(queries.start[:-1], queries.start[1:], strict=True)
    return max((float(list_radius(X, rows[a:b], factor, buffer)) for a, b in bounds if b > a), default=0.0)


# -------------------------------------------------------------------------------------------------------------- scale


# Features that are all smaller than this are scaled even though they lie in [-1, 1].
_TINY = 1e-8


def scale_factors(queries: Queries, scale: Scale) -> tuple[Vector, Vector]:
    """The factor and the centre of every feature, from the queries and documents whose weight is not 0.

    Document weights count in the mean and in the standard deviation; query weights do not.

    Parameters
    ----------
    queries : Queries
        Queries with features.
    scale : {"auto", "none"}
        "none" gives 1 and 0; so does "auto" if all values lie in [-1, 1] (but not all within 1e-8 of 0), or if the
        queries were scaled already. Otherwise "auto" gives 1 / standard deviation (0 if a feature does not vary) and
        the mean.

    Returns
    -------
    factor, centre : ndarray, shape (n_features,)
        One number per feature.

    Raises
    ------
    RankwiseError
        If a feature varies so little that its factor overflows.
    """
    if scale not in ("auto", "none"):
        raise RankwiseError(f"scale is 'auto' or 'none': found {scale!r}")
    plain = np.ones(queries.n_features), np.zeros(queries.n_features)
    if scale == "none" or queries.scaling is not None:
        return plain
    blocks, weight = list(row_blocks(queries)), differing_weights(queries)
    if weight is not None:
        counted = (_counted(rows, weight) for rows in blocks)
        blocks = [rows for rows in counted if len(rows)]
    largest = max((_largest(queries.X[rows]) for rows in blocks), default=0.0)
    if _TINY <= largest <= 1 or largest == 0:
        return plain
    centre, deviation = center_and_scale(queries.X, blocks, "standard")
    if weight is not None:
        centre, deviation = _weighted_moments(queries, blocks, weight, deviation > 0)
    with np.errstate(over="ignore"):
        factor = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 0)
    if not np.isfinite(factor).all():
        feature = int(np.argmin(np.isfinite(factor)))
        raise RankwiseError(f"feature {feature} varies by {deviation[feature]:g} only, which cannot be scaled")
    return factor, centre


def _counted(rows: Any, weight: Vector) -> NDArray[np.int64]:
    """The rows of a block whose weight is not 0."""
    every: NDArray[np.int64] = np.arange(len(weight), dtype=np.int64)[rows]
    return every[weight[every] > 0]


def _weighted_moments(
    queries: Queries, blocks: list[Any], weight: Vector, varies: NDArray[np.bool_]
) -> tuple[Vector, Vector]:
    """(mean, standard deviation) with document weights; the deviation is 0 where a feature does not vary."""
    total = float(sum(weight[rows].sum() for rows in blocks))
    centre = np.zeros(queries.n_features)
    for rows in blocks:
        centre += (weight[rows] / total) @ queries.X[rows].astype(np.float64)
    squares = np.zeros(queries.n_features)
    for rows in blocks:
        squares += (weight[rows] / total) @ (queries.X[rows].astype(np.float64) - centre) ** 2
    return centre, np.where(varies, np.sqrt(squares), 0.0)


def _largest(block: NDArray[Any]) -> float:
    """The largest absolute value, without a copy."""
    return max(float(block.max(initial=0.0)), -float(block.min(initial=0.0)))
