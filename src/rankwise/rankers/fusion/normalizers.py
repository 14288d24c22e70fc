r"""Normalization of scores within a query, by the rules of each search engine, and their combination.

A column holds the scores that one sub-query (BM25, vectors ...) gave to the documents of a query; NaN marks a document
that the sub-query did not return. All sums and extremes run over the returned documents x of one column and query:

.. math::

    \text{min\_max}(x) = \frac{x - \min}{\max - \min}, \quad
    \text{l2}(x) = \frac{x}{\sqrt{\sum x^2}}, \quad
    \text{z\_score}(x) = \frac{x - \text{mean}}{\text{sd}}, \quad
    \text{rrf}(x) = \frac{1}{k + \text{rank}(x)}

with sd of n - 1 degrees of freedom and ranks from 1. The engines differ in the cases that these formulas leave open:
equal scores, documents that were not returned, the document with the smallest score. :data:`RULES` says which
normalizers an engine has, and the functions below what it does in these cases. They compute in float64; the exports
compute the same in the engine's own precision (:mod:`rankwise.exports`). ``docs/hybrid.md`` cites every source.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rankwise.errors import DataError, RankwiseError
from rankwise.queries import checks
from rankwise.rankers._base import linear_scores

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Wholes = NDArray[np.int64]
Normalizer = Literal["min_max", "l2", "z_score", "rrf", "none"]
Engine = Literal["opensearch", "elasticsearch", "vespa", "solr"]

# The normalizers of each engine; None is the textbook's.
RULES: dict[str | None, tuple[str, ...]] = {
    None: ("min_max", "l2", "z_score", "rrf", "none"),
    "opensearch": ("min_max", "l2", "z_score", "rrf"),
    "elasticsearch": ("min_max", "l2", "rrf", "none"),
    "vespa": ("min_max", "rrf", "none"),
    "solr": ("min_max", "rrf", "none"),
}
# Engines on Lucene, whose scores are never negative.
_LUCENE = ("opensearch", "elasticsearch", "solr")

_RANK_DIGITS = 13  # decimals of sums of reciprocal ranks

OPENSEARCH_FLOOR = float(np.float32(0.001))  # what OpenSearch gives in place of 0
ELASTICSEARCH_EPSILON = float(np.float32(1e-6))  # what Elasticsearch takes for 0


@dataclass(frozen=True)
class Fusion:
    """How columns of scores become one score, apart from the weights.

    Attributes
    ----------
    normalizer : {"min_max", "l2", "z_score", "rrf", "none"}
        What each column is put through, within a query.
    engine : {"opensearch", "elasticsearch", "vespa", "solr"} or None
        Whose rules decide the cases that the formulas leave open; None: the textbook's.
    combination : {"arithmetic_mean", "geometric_mean", "harmonic_mean"}
        The weighted mean that combines the columns.
    rank_constant : int
        The k of "rrf".
    """

    normalizer: str = "min_max"
    engine: str | None = None
    combination: str = "arithmetic_mean"
    rank_constant: int = 60

    def check(self) -> None:
        """Raise an error for what the engine does not have."""
        known = RULES[self.engine]
        if self.normalizer not in known:
            raise RankwiseError(
                f"normalizer must be one of {', '.join(map(repr, known))} for engine={self.engine!r}, "
                f"got {self.normalizer!r}"
            )
        plain = self.combination == "arithmetic_mean"
        if not plain and (self.engine not in (None, "opensearch") or self.normalizer not in ("min_max", "l2")):
            raise RankwiseError(
                f"combination={self.combination!r} requires normalizer='min_max' or 'l2' and engine='opensearch' or "
                f"None, got normalizer={self.normalizer!r} and engine={self.engine!r}"
            )

    @property
    def by_query(self) -> bool:
        """Whether a document's score depends on the other documents of its query."""
        return self.normalizer != "none"

    # ------------------------------------------------------------------------------------------- normalization

    def normalize(self, X: checks.Floats, start: Wholes) -> Matrix:
        """Normalize every column within every query.

        Parameters
        ----------
        X : ndarray of shape (n_documents, n_columns)
            Scores, query after query; NaN where a sub-query did not return the document.
        start : ndarray of int64, shape (n_queries + 1,)
            Query q owns the rows ``start[q]:start[q+1]``.

        Returns
        -------
        ndarray of shape (n_documents, n_columns)
            Normalized scores; NaN where the column contributes nothing.
        """
        x = np.array(X, dtype=np.float64)
        if self.engine in _LUCENE and (x < 0).any():
            row, column = np.argwhere(x < 0)[0]
            raise DataError(f"scores of {self.engine} must be non-negative, got {x[row, column]:g} in column {column}")
        if self.engine == "vespa":  # a rank feature of a document that does not match is 0
            x[np.isnan(x)] = 0.0
        if self.normalizer == "none" or not len(x):
            return x
        by_query = _Segments(start)
        if self.normalizer == "min_max":
            return self._min_max(x, by_query)
        if self.normalizer == "l2":
            return self._l2(x, by_query)
        if self.normalizer == "z_score":
            return self._z_score(x, by_query)
        return 1.0 / (self.rank_constant + by_query.ranks(x))

    def _min_max(self, x: Matrix, of: "_Segments") -> Matrix:
        low, high = of.each(np.fmin, x), of.each(np.fmax, x)
        if self.engine == "solr":  # scale() sees the whole index, where documents that do not match have 0
            low = np.zeros_like(low)
        width = high - low
        same = np.abs(width) < ELASTICSEARCH_EPSILON if self.engine == "elasticsearch" else width == 0
        found = (x - low) / np.where(same, 1.0, width)
        constant = {"vespa": 0.5, "solr": 0.0}.get(self.engine or "", 1.0)
        found = np.where(same & ~np.isnan(x), constant, found)
        if self.engine == "opensearch":
            found[found == 0] = OPENSEARCH_FLOOR
        return found

    def _l2(self, x: Matrix, of: "_Segments") -> Matrix:
        largest = of.each(np.fmax, np.abs(x))
        unit = np.where(largest > 0, largest, 1.0)  # squares of tiny and of huge scores leave float64
        norm = unit * np.sqrt(of.each(np.add, np.nan_to_num((x / unit) ** 2)))
        small = norm < ELASTICSEARCH_EPSILON if self.engine == "elasticsearch" else norm == 0
        return np.where(small, x, x / np.where(small, 1.0, norm))

    def _z_score(self, x: Matrix, of: "_Segments") -> Matrix:
        here = ~np.isnan(x)
        count = of.each(np.add, here.astype(np.float64))
        largest = of.each(np.fmax, np.abs(x))
        unit = np.where(largest > 0, largest, 1.0)
        scaled = x / unit
        mean = of.each(np.add, np.nan_to_num(scaled)) / np.maximum(count, 1.0)
        squares = of.each(np.add, np.nan_to_num((scaled - mean) ** 2))
        sd = np.sqrt(squares / np.maximum(count - 1.0, 1.0))
        if self.engine == "opensearch":
            return _opensearch_z(x, mean * unit, sd * unit, of)
        # rounding leaves a tiny deviation where all scores are equal
        low, high = of.each(np.fmin, x), of.each(np.fmax, x)
        found = np.where(low == high, 0.0, (scaled - mean) / np.where(sd > 0, sd, 1.0))
        found[~here] = np.nan
        # 0 is the mean of a column: documents that were not returned get its smallest score
        last = of.each(np.fmin, found)
        return np.where(here, found, np.where(np.isnan(last), 0.0, last))

    # ------------------------------------------------------------------------------------------- combination

    def combine(self, parts: checks.Floats, weights: Vector, n_jobs: int | None = None) -> Vector:
        """Combine normalized columns by their weights.

        Parameters
        ----------
        parts : ndarray of shape (n_documents, n_columns)
            What :meth:`normalized` returned.
        weights : ndarray of shape (n_columns,)
            Weights, 0 or more, of sum 1.
        n_jobs : int, default=None
            Number of threads.

        Returns
        -------
        ndarray of shape (n_documents,)
            One score per document.
        """
        if self.combination == "arithmetic_mean":
            found = linear_scores(present(parts), weights, n_jobs)
            # ranks 1 and 2 are as good as 2 and 1: rounding must not order what is tied
            return np.round(found, _RANK_DIGITS) if self.normalizer == "rrf" else found
        # both means leave out scores that are not above 0, and the weights of these columns
        counts = (np.where(np.isnan(parts), 0.0, parts) > 0) & (weights > 0)
        share = np.where(counts, weights, 0.0)
        total = share.sum(axis=1)
        value = np.where(counts, parts, 1.0)
        mean = (share * (np.log(value) if self.combination == "geometric_mean" else 1 / value)).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.exp(mean / total) if self.combination == "geometric_mean" else total / mean
        return np.where(total > 0, found, 0.0)


def present(parts: checks.Floats) -> checks.Floats:
    """The same numbers with 0 in place of NaN; not copied where there is none."""
    if checks.first_not_finite(parts) is None:
        return parts
    return np.where(np.isnan(parts), 0.0, parts)


def _opensearch_z(x: Matrix, mean: Matrix, sd: Matrix, of: "_Segments") -> Matrix:
    """OpenSearch's z-score: a score equal to the mean becomes the largest raw score, one below the mean the floor."""
    low, high = of.each(np.fmin, x), of.each(np.fmax, x)
    with np.errstate(over="ignore"):  # its comparisons are those of float32
        at_mean = x.astype(np.float32) == mean.astype(np.float32)
        flat = sd.astype(np.float32) == 0
    z = (x - mean) / np.where(sd > 0, sd, 1.0)
    found = np.where(flat, low, np.where(z <= 0, OPENSEARCH_FLOOR, z))
    return np.where(np.isnan(x), np.nan, np.where(at_mean, high, found))


class _Segments:
    """Consecutive rows that belong together, for reductions over each."""

    def __init__(self, start: Wholes) -> None:
        sizes = np.diff(start)
        self.first = start[:-1][sizes > 0]  # reduceat has no empty segments
        self.sizes = sizes[sizes > 0]

    def each(self, reduce: np.ufunc, x: Matrix) -> Matrix:
        """Reduce every column over every segment; the result is spread over the rows again."""
        return np.repeat(reduce.reduceat(x, self.first, axis=0), self.sizes, axis=0)

    def ranks(self, x: Matrix) -> Matrix:
        """Ranks from 1 in every column of a segment, largest first, ties in the order of the rows; NaN has none."""
        owner = np.repeat(np.arange(len(self.sizes)), self.sizes)
        place = np.arange(len(x)) - np.repeat(self.first, self.sizes) + 1.0
        found = np.full(x.shape, np.nan)
        for column in range(x.shape[1]):
            score = np.where(np.isnan(x[:, column]), -np.inf, x[:, column])
            order = np.lexsort((-score, owner))  # a stable sort
            found[order, column] = place
        found[np.isnan(x)] = np.nan
        return found
