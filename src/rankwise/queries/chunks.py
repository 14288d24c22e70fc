"""Rows of queries in blocks of bounded size, and the scales of features.

Sums over all documents of a large set go block by block, because a second copy of ``X`` in float64 may not fit
into memory. The blocks run query after query, whatever the order of the rows in the input: scattered rows give the same
bits as grouped ones. They begin anew with every fixed chunk, and sums of chunks are added in order: queries in memory
and in parts give the same bits, too.

Losses ignore a shift of all scores. One factor per feature therefore puts features on a common scale without a second
``X``: s = sum_j w_j f_j x_j is the score of scaled features with weights w, and of raw ones with weights w f; the
gradient with respect to w is f X' g (:func:`scale_factors`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankwise.errors import DataError, RankwiseError
from rankwise.queries import checks
from rankwise.queries.queries import Queries
from rankwise.queries.source import Chunk, EachChunk, Job, QuerySource, differing_weights, rows_in_order

Vector = NDArray[np.float64]
Scale = Literal["auto", "none"]
How = Literal["standard", "minmax", "log"]


# ----------------------------------------------------------------------------------------------------------------- rows


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


# --------------------------------------------------------------------------------------------------------------- scales


# Features that are all smaller than this are scaled even though they lie in [-1, 1].
_TINY = 1e-8


def scale_factors(queries: QuerySource, scale: Scale) -> tuple[Vector, Vector]:
    """The factor and the center of every feature, from the queries and documents whose weight is not 0.

    Document weights enter the mean and the standard deviation; query weights do not.

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
    factor, center : ndarray, shape (n_features,)
        One number per feature.

    Raises
    ------
    RankwiseError
        If a feature varies so little that its factor overflows.
    """
    if scale not in ("auto", "none"):
        raise RankwiseError(f"scale must be 'auto' or 'none', got {scale!r}")
    plain = np.ones(queries.n_features), np.zeros(queries.n_features)
    if scale == "none" or queries.scaling is not None:
        return plain
    extremes = Extremes.of(queries, "standard", counted=True)
    largest = extremes.largest
    if _TINY <= largest <= 1 or largest == 0:
        return plain
    center, deviation = center_and_scale(queries, "standard", extremes, counted=True)
    if queries.has_document_weights:
        center, deviation = _weighted_moments(queries, deviation > 0)
    with np.errstate(over="ignore"):
        factor = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 0)
    if not np.isfinite(factor).all():
        feature = int(np.argmin(np.isfinite(factor)))
        raise RankwiseError(f"feature {feature} varies by {deviation[feature]:g} only, which cannot be scaled")
    return factor, center


def _rows_taken(block: Queries, counted: bool) -> list[Any]:
    """The rows of a chunk in blocks: all of them, or those of non-zero weight."""
    if not counted:
        return list(checks.blocks_of_rows(*block.X.shape))
    blocks, weight = list(row_blocks(block)), differing_weights(block)
    if weight is None:
        return blocks
    every = np.arange(len(weight), dtype=np.int64)
    heavy = (every[rows][weight[every[rows]] > 0] for rows in blocks)
    return [rows for rows in heavy if len(rows)]


def _sum_weights(block: Queries, total: float | None = None, center: Vector | None = None) -> tuple[Any]:
    """The sum of the document weights; of (weight / total) x; or of (weight / total) (x - center)^2."""
    weight = np.ones(block.n_documents) if block.document_weight is None else block.document_weight
    blocks = _rows_taken(block, counted=True)
    if total is None:
        return (float(sum(weight[rows].sum() for rows in blocks)),)
    sums = np.zeros(block.n_features)
    for rows in blocks:
        values = block.X[rows] if center is None else (block.X[rows] - center) ** 2
        sums += ((weight[rows] / total)[:, np.newaxis] * values).sum(axis=0)
    return (sums,)


def _weighted_moments(queries: QuerySource, varies: NDArray[np.bool_]) -> tuple[Vector, Vector]:
    """(mean, standard deviation) with document weights; the deviation is 0 where a feature does not vary."""
    (total,) = queries.total(EachChunk(_sum_weights))
    (center,) = queries.total(EachChunk(_sum_weights, (float(total),)))
    (squares,) = queries.total(EachChunk(_sum_weights, (float(total), center)))
    return center, np.where(varies, np.sqrt(squares), 0.0)


def transform_values(block: checks.Floats, how: How) -> Vector:
    """t(x) in float64."""
    values = block.astype(np.float64)
    return np.copysign(np.log1p(np.abs(values)), values) if how == "log" else values


def _find_extremes(block: Queries, how: How, counted: bool) -> tuple[Vector, Vector]:
    """The smallest and the largest value of every feature, after the transformation."""
    least, most = np.full(block.n_features, np.inf), np.full(block.n_features, -np.inf)
    for rows in _rows_taken(block, counted):
        values = block.X[rows] if how != "log" else transform_values(block.X[rows], how)
        np.minimum(least, values.min(axis=0, initial=np.inf), out=least)
        np.maximum(most, values.max(axis=0, initial=-np.inf), out=most)
    return least, most


@dataclass(frozen=True)
class Extremes:
    """The smallest and the largest value of every feature; infinite without rows."""

    least: Vector
    most: Vector

    @classmethod
    def of(cls, queries: QuerySource, how: How, counted: bool) -> "Extremes":
        """From one pass over X."""
        least, most = np.full(queries.n_features, np.inf), np.full(queries.n_features, -np.inf)
        for low, high in queries.map(EachChunk(_find_extremes, (how, counted))):
            np.minimum(least, low, out=least)
            np.maximum(most, high, out=most)
        return cls(least, most)

    @property
    def size(self) -> Vector:
        """The largest absolute value of every feature; 0 without rows."""
        return np.maximum(np.maximum(self.most, -self.least), 0.0)

    @property
    def largest(self) -> float:
        """The largest absolute value of all."""
        return float(self.size.max(initial=0.0))


def center_and_scale(
    queries: QuerySource, how: How, extremes: Extremes | None = None, counted: bool = False
) -> tuple[Vector, Vector]:
    """Center and scale of all documents, which are read block by block.

    Parameters
    ----------
    queries : Queries or Parts
        Queries with documents.
    how : {"standard", "minmax", "log"}
        The transformation.
    extremes : Extremes, default=None
        The extremes of the features, if they are known.
    counted : bool, default=False
        Whether queries and documents of weight 0 are left out.

    Returns
    -------
    center, scale : ndarray of float64, shape (n_features,)
        As in the table of :class:`Scaler`.
    """
    found = Extremes.of(queries, how, counted) if extremes is None else extremes
    least, most = found.least, found.most
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
    center, deviation = _moments(queries, how, np.maximum(-least, most), counted)
    still = scale == 0  # rounding in the moments must not make a constant vary
    return np.where(still, least, center), np.where(still, 0.0, deviation)


def _find_moments(block: Queries, how: How, factor: Vector, counted: bool) -> "_Merged":
    """(number of rows, mean, sum of squares around it) of the transformed features times ``factor``."""
    moments: _Merged = (0, np.zeros(block.n_features), np.zeros(block.n_features))
    for rows in _rows_taken(block, counted):
        values = transform_values(block.X[rows], how) * factor
        mean = values.mean(axis=0)
        moments = _merge(moments, (len(values), mean, ((values - mean) ** 2).sum(axis=0)))
    return moments


_Merged = tuple[int, Vector, Vector]


def _merge(one: _Merged, two: _Merged) -> _Merged:
    """The moments of two sets of rows together.

    References
    ----------
    T. F. Chan, G. H. Golub and R. J. LeVeque (1983). Algorithms for computing the sample variance: analysis and
    recommendations. The American Statistician 37(3), 242-247. doi:10.1080/00031305.1983.10483115
    """
    (count, mean, squares), (own, own_mean, own_squares) = one, two
    if not own:
        return one
    shift, total = own_mean - mean, count + own
    squares = squares + (own_squares + shift**2 * (count * own / total))
    return total, mean + shift * (own / total), squares


def _moments(queries: QuerySource, how: How, largest: Vector, counted: bool) -> tuple[Vector, Vector]:
    """(mean, standard deviation) of all rows: blocks are merged in their order, and chunks in theirs."""
    # Powers of two that keep the squares of huge and tiny features in range: exact, and 1 for every ordinary feature.
    exponent = np.clip(np.frexp(largest)[1], -1000, 1000)
    factor = np.where((largest > 1e100) | (largest < 1e-100), np.ldexp(1.0, -exponent), 1.0)
    found: _Merged = (0, np.zeros(queries.n_features), np.zeros(queries.n_features))
    for own in queries.map(EachChunk(_find_moments, (how, factor, counted))):
        found = _merge(found, own)
    count, mean, squares = found
    return mean / factor, np.sqrt(squares / count) / factor


def radius_of(queries: QuerySource, n_jobs: int | None = None) -> float:
    """The largest radius of a query."""
    return max(queries.map(_LargestRadius(), n_jobs=n_jobs), default=0.0)


@dataclass(frozen=True)
class _LargestRadius(Job):
    """The largest radius of a query of a chunk."""

    def run(self, chunk: Chunk, prepared: Any, *arguments: Any) -> float:
        from rankwise._kernels.radius import largest_radius  # compiled code, which most importers do not need

        queries = chunk.queries
        return largest_radius(queries.X, queries.start[chunk.first : chunk.last + 1], queries.rows)
