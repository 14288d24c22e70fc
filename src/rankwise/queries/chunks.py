"""The fixed chunks of queries: jobs on every chunk, rows in blocks of bounded size, and the scales of features.

A :class:`Job` maps the queries of one chunk to a small result. :func:`over_chunks` runs it on queries in memory as on
queries in parts, whose passes are in :mod:`rankwise.queries.passes`.

Sums over all documents of a large set go block by block, because a second copy of ``X`` in float64 may not fit
into memory. The blocks run query after query, whatever the order of the rows in the input, so that scattered
rows give the same bits as grouped ones. They begin anew with every fixed chunk, and sums of chunks are added in order:
so queries in memory and in parts give the same bits, too.

Losses ignore a shift of all scores, so that one factor per feature puts features on a common scale without a second
``X``: s = sum_j w_j f_j x_j is the score of scaled features with weights w, and of raw ones with weights w f; the
gradient with respect to w is f X' g (:func:`scale_factors`).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels import parallel
from rankwise.errors import DataError, RankwiseError
from rankwise.queries import checks
from rankwise.queries.checks import differing_weights
from rankwise.queries.queries import Queries

if TYPE_CHECKING:
    from rankwise.queries.passes.chunked import ChunkedQueries

Vector = NDArray[np.float64]
Scale = Literal["auto", "none"]
How = Literal["standard", "minmax", "log"]


# ----------------------------------------------------------------------------------------------------------------- jobs


class Job(ABC):
    """What is computed of every chunk; a subclass is a frozen dataclass that can be pickled."""

    def prepare(self, block: Queries, first: int) -> Any:
        """What only the queries decide, for all passes of this job.

        Parameters
        ----------
        block : Queries
            The queries of the chunk.
        first : int
            The number of its first query.

        Returns
        -------
        object
            Kept by whoever holds the chunk, and made again, with the same bits, when it was evicted.
        """
        return None

    @abstractmethod
    def run(self, block: Queries, first: int, prepared: Any, *arguments: Any) -> Any:
        """The result of one chunk.

        Parameters
        ----------
        block : Queries
            The queries of the chunk.
        first : int
            The number of its first query.
        prepared : object
            What :meth:`prepare` returned.
        *arguments : object
            What differs from pass to pass, such as weights.

        Returns
        -------
        object
            A tuple of numbers and arrays.
        """


def block_of(queries: Queries, first: int, last: int) -> Queries:
    """A range of queries with their rows grouped: a view where the rows of all queries stand together."""
    if (first, last) == (0, len(queries)) and queries.is_grouped:
        return queries
    low, high = int(queries.start[first]), int(queries.start[last])
    rows: Any = slice(low, high) if queries.is_grouped else queries.rows[low:high]
    return Queries._trusted(
        queries.X[rows],
        None if queries.y is None else queries.y[rows],
        queries.start[first : last + 1] - low,
        weight=None if queries.weight is None else queries.weight[first:last],
        feature_names=queries.feature_names,
        scaling=queries.scaling,
        document_weight=None if queries.document_weight is None else queries.document_weight[rows],
        judged=None if queries.judged is None else queries.judged[rows],
    )


def over_chunks(queries: "Queries | ChunkedQueries", job: Job, *arguments: Any, n_jobs: int | None) -> Iterator[Any]:
    """The result of a job on every chunk, in their order, of queries in memory or in parts.

    Parameters
    ----------
    queries : Queries or ChunkedQueries
        The queries.
    job : Job
        What is computed.
    *arguments : object
        Further arguments of the job.
    n_jobs : int or None
        Number of threads.

    Returns
    -------
    iterator of object
        The results.
    """
    if isinstance(queries, Queries):
        return _in_memory(queries, job, arguments)
    return queries.map(job, *arguments, n_jobs=n_jobs)


def _in_memory(queries: Queries, job: Job, arguments: Sequence[Any]) -> Iterator[Any]:
    for first, last in parallel.query_chunks(queries.start):
        block = block_of(queries, first, last)
        yield job.run(block, first, job.prepare(block, first), *arguments)


def summed(queries: "Queries | ChunkedQueries", job: Job, *arguments: Any, n_jobs: int | None) -> tuple[Any, ...]:
    """The sums of results over all chunks, in their order; the parameters are those of :func:`over_chunks`."""
    if not isinstance(queries, Queries):
        return queries.total(job, *arguments, n_jobs=n_jobs)
    sums: list[Any] = []
    for result in _in_memory(queries, job, arguments):
        sums = [one + own for one, own in zip(sums, result, strict=True)] if sums else [0.0 + one for one in result]
    return tuple(sums)


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


# --------------------------------------------------------------------------------------------------------------- scales


def scale_factors(queries: "Queries | ChunkedQueries", scale: Scale) -> tuple[Vector, Vector]:
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
    extremes = Extremes.of(queries, "standard", counted=True)
    largest = extremes.largest
    if _TINY <= largest <= 1 or largest == 0:
        return plain
    centre, deviation = center_and_scale(queries, "standard", extremes, counted=True)
    if differing_weights(queries) is not None:
        centre, deviation = _weighted_moments(queries, deviation > 0)
    with np.errstate(over="ignore"):
        factor = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 0)
    if not np.isfinite(factor).all():
        feature = int(np.argmin(np.isfinite(factor)))
        raise RankwiseError(f"feature {feature} varies by {deviation[feature]:g} only, which cannot be scaled")
    return factor, centre


def _taken(block: Queries, counted: bool) -> list[Any]:
    """The rows of a chunk in blocks: all of them, or those of non-zero weight."""
    if not counted:
        return list(checks.blocks_of_rows(*block.X.shape))
    blocks, weight = list(row_blocks(block)), differing_weights(block)
    if weight is None:
        return blocks
    every = np.arange(len(weight), dtype=np.int64)
    heavy = (every[rows][weight[every[rows]] > 0] for rows in blocks)
    return [rows for rows in heavy if len(rows)]


@dataclass(frozen=True)
class WeightOfChunk(Job):
    """The sum of the document weights; of (weight / total) x; and of (weight / total) (x - centre)^2."""

    total: float | None = None
    centre: Vector | None = None

    def run(self, block: Queries, first: int, prepared: Any, *arguments: Any) -> tuple[Any, ...]:
        weight = np.ones(block.n_documents) if block.document_weight is None else block.document_weight
        blocks = _taken(block, counted=True)
        if self.total is None:
            return (float(sum(weight[rows].sum() for rows in blocks)),)
        found = np.zeros(block.n_features)
        for rows in blocks:
            values = block.X[rows] if self.centre is None else (block.X[rows] - self.centre) ** 2
            found += ((weight[rows] / self.total)[:, np.newaxis] * values).sum(axis=0)
        return (found,)


def _weighted_moments(queries: "Queries | ChunkedQueries", varies: NDArray[np.bool_]) -> tuple[Vector, Vector]:
    """(mean, standard deviation) with document weights; the deviation is 0 where a feature does not vary."""
    (total,) = summed(queries, WeightOfChunk(), n_jobs=None)
    (centre,) = summed(queries, WeightOfChunk(float(total)), n_jobs=None)
    (squares,) = summed(queries, WeightOfChunk(float(total), centre), n_jobs=None)
    return centre, np.where(varies, np.sqrt(squares), 0.0)


def shaped(block: checks.Floats, how: How) -> Vector:
    """t(x) in float64."""
    values = block.astype(np.float64)
    return np.copysign(np.log1p(np.abs(values)), values) if how == "log" else values


@dataclass(frozen=True)
class ExtremesOfChunk(Job):
    """The smallest and the largest value of every feature of a chunk, after the transformation."""

    how: How
    counted: bool

    def run(self, block: Queries, first: int, prepared: Any, *arguments: Any) -> tuple[Vector, Vector]:
        least, most = np.full(block.n_features, np.inf), np.full(block.n_features, -np.inf)
        for rows in _taken(block, self.counted):
            values = block.X[rows] if self.how != "log" else shaped(block.X[rows], self.how)
            np.minimum(least, values.min(axis=0, initial=np.inf), out=least)
            np.maximum(most, values.max(axis=0, initial=-np.inf), out=most)
        return least, most


@dataclass(frozen=True)
class Extremes:
    """The smallest and the largest value of every feature; infinite without rows."""

    least: Vector
    most: Vector

    @classmethod
    def of(cls, queries: "Queries | ChunkedQueries", how: How, counted: bool) -> "Extremes":
        """From one pass over X."""
        least, most = np.full(queries.n_features, np.inf), np.full(queries.n_features, -np.inf)
        for low, high in over_chunks(queries, ExtremesOfChunk(how, counted), n_jobs=None):
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
    queries: "Queries | ChunkedQueries", how: How, extremes: Extremes | None = None, counted: bool = False
) -> tuple[Vector, Vector]:
    """Center and scale of all documents, which are read block by block.

    Parameters
    ----------
    queries : Queries or ChunkedQueries
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


@dataclass(frozen=True)
class MomentsOfChunk(Job):
    """(number of rows, mean, sum of squares around it) of the transformed features times ``factor``."""

    how: How
    factor: Vector
    counted: bool

    def run(self, block: Queries, first: int, prepared: Any, *arguments: Any) -> "_Merged":
        found: _Merged = (0, np.zeros(block.n_features), np.zeros(block.n_features))
        for rows in _taken(block, self.counted):
            values = shaped(block.X[rows], self.how) * self.factor
            mean = values.mean(axis=0)
            found = _merged(found, (len(values), mean, ((values - mean) ** 2).sum(axis=0)))
        return found


_Merged = tuple[int, Vector, Vector]


def _merged(one: _Merged, two: _Merged) -> _Merged:
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


def _moments(queries: "Queries | ChunkedQueries", how: How, largest: Vector, counted: bool) -> tuple[Vector, Vector]:
    """(mean, standard deviation) of all rows: blocks are merged in their order, and chunks in theirs."""
    # Powers of two that keep the squares of huge and tiny features in range: exact, and 1 for every ordinary feature.
    exponent = np.clip(np.frexp(largest)[1], -1000, 1000)
    factor = np.where((largest > 1e100) | (largest < 1e-100), np.ldexp(1.0, -exponent), 1.0)
    found: _Merged = (0, np.zeros(queries.n_features), np.zeros(queries.n_features))
    for own in over_chunks(queries, MomentsOfChunk(how, factor, counted), n_jobs=None):
        found = _merged(found, own)
    count, mean, squares = found
    return mean / factor, np.sqrt(squares / count) / factor


@dataclass(frozen=True)
class RadiusOfChunk(Job):
    """The largest radius of a query of one chunk."""

    def run(self, block: Queries, first: int, prepared: Any, *arguments: Any) -> float:
        return radius_of(block)


def radius_of(queries: "Queries | ChunkedQueries", n_jobs: int | None = None) -> float:
    """The largest radius of a query, in memory or in parts."""
    if not isinstance(queries, Queries):
        return max(queries.map(RadiusOfChunk(), n_jobs=n_jobs), default=0.0)
    from rankwise._kernels.radius import largest_radius  # compiled code, which most importers do not need

    return largest_radius(queries.X, queries.start, queries.rows)
