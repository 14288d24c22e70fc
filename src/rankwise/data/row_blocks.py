"""The rows of queries in blocks of bounded size, and the centres and scales of features that are computed from them.

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

from rankwise._errors import DataError, RankwiseError
from rankwise.data import checks
from rankwise.data.document_weights import differing_weights
from rankwise.data.queries import Queries

Vector = NDArray[np.float64]
Scale = Literal["auto", "none"]
How = Literal["standard", "minmax", "log"]


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
        centre += ((weight[rows] / total)[:, np.newaxis] * queries.X[rows]).sum(axis=0)
    squares = np.zeros(queries.n_features)
    for rows in blocks:
        squares += ((weight[rows] / total)[:, np.newaxis] * (queries.X[rows] - centre) ** 2).sum(axis=0)
    return centre, np.where(varies, np.sqrt(squares), 0.0)


def _largest(block: NDArray[Any]) -> float:
    """The largest absolute value, without a copy."""
    return max(float(block.max(initial=0.0)), -float(block.min(initial=0.0)))


def shaped(block: checks.Floats, how: How) -> Vector:
    """t(x) in float64."""
    values = block.astype(np.float64)
    return np.copysign(np.log1p(np.abs(values)), values) if how == "log" else values


def center_and_scale(X: checks.Floats, parts: list[Any], how: How) -> tuple[Vector, Vector]:
    """Center and scale of rows of X that are read part by part.

    Parameters
    ----------
    X : ndarray, shape (n_documents, n_features)
        The features.
    parts : list of slice or ndarray
        The rows, part by part.
    how : {"standard", "minmax", "log"}
        The transformation.

    Returns
    -------
    center, scale : ndarray of float64, shape (n_features,)
        As in the table of :class:`Scaler`.
    """
    least = np.full(X.shape[1], np.inf)
    most = np.full(X.shape[1], -np.inf)
    for rows in parts:
        block = shaped(X[rows], how)
        np.minimum(least, block.min(axis=0), out=least)
        np.maximum(most, block.max(axis=0), out=most)
    with np.errstate(over="ignore"):
        center, scale = least, most - least
    if not np.isfinite(scale).all():
        feature = int(np.argmin(np.isfinite(scale)))
        raise DataError(
            f"feature {feature} reaches from {least[feature]:g} to {most[feature]:g}: the difference does not fit "
            "into float64"
        )
    if how == "minmax":
        return center, scale
    center, deviation = _moments(X, parts, how, np.maximum(-least, most))
    still = scale == 0  # rounding in the moments must not make a constant vary
    return np.where(still, least, center), np.where(still, 0.0, deviation)


def _moments(X: checks.Floats, parts: list[Any], how: How, largest: Vector) -> tuple[Vector, Vector]:
    """(mean, standard deviation) of all parts, whose moments are merged one after the other.

    References
    ----------
    T. F. Chan, G. H. Golub and R. J. LeVeque (1983). Algorithms for computing the sample variance: analysis and
    recommendations. The American Statistician 37(3), 242-247. doi:10.1080/00031305.1983.10483115
    """
    # Powers of two that keep the squares of huge and tiny features in range: exact, and 1 for every ordinary feature.
    exponent = np.clip(np.frexp(largest)[1], -1000, 1000)
    factor = np.where((largest > 1e100) | (largest < 1e-100), np.ldexp(1.0, -exponent), 1.0)
    count, mean, squares = 0, np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for rows in parts:
        block = shaped(X[rows], how) * factor
        own_mean = block.mean(axis=0)
        shift = own_mean - mean
        total = count + len(block)
        squares += ((block - own_mean) ** 2).sum(axis=0) + shift**2 * (count * len(block) / total)
        mean += shift * (len(block) / total)
        count = total
    return mean / factor, np.sqrt(squares / count) / factor
