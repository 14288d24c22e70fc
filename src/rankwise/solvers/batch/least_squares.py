"""Ridge regression on millions of rows in one pass, or on few rows with any number of features.

min over w, b of sum_i c_i (w . x_i + b - g_i)^2 + alpha norm(w)^2 needs only sum c, sum c x, sum c x x' and sum c g x:
:class:`Moments`. If there are fewer rows than features, the products x_i . x_k of the rows are fewer:
:class:`WeightedRows`. Both keep relevant and other documents apart, so that any balance between the two classes, and
any union of sets of queries, is a sum. Both give the same bits on every number of threads: chunks of rows are fixed and
added in order, and factorisations run on one thread of BLAS.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from rankwise._blas import one_blas_thread
from rankwise._kernels import drive
from rankwise.data.queries import Queries
from rankwise.data.row_blocks import rows_in_order

Vector = NDArray[np.float64]

# Rows per chunk: 20 ms of work at 136 features. The bits of the result depend on it.
_CHUNK = 1 << 14
# Bytes of partial sums that may wait to be added.
_WAITING = 1 << 30


@dataclass(frozen=True)
class Moments:
    """Weighted sums over rows of (1, x, g) times its transpose, as one symmetric matrix per class of documents.

    Attributes
    ----------
    sums : ndarray, shape (2, n_features + 2, n_features + 2)
        ``sums[0]`` is over the documents without relevance, ``sums[1]`` over the relevant ones; row and column 0 belong
        to the 1, the last ones to the target g.
    """

    sums: Vector

    @classmethod
    def of(
        cls,
        queries: Queries,
        target: Vector,
        factor: Vector,
        shift: Vector,
        lists: NDArray[np.int64] | None = None,
        n_jobs: int | None = None,
    ) -> Self:
        """Moments of (x - shift) factor over queries; X is neither copied nor converted.

        Parameters
        ----------
        queries : Queries
            Judged queries.
        target : ndarray, shape (n_documents,)
            The targets g.
        factor : ndarray, shape (n_features,)
            The scale of the features.
        shift : ndarray, shape (n_features,)
            Subtracted from the features before they are scaled.
        lists : ndarray of int64, default=None
            Which queries; None for all.
        n_jobs : int, default=None
            Number of threads; None uses every core.

        Returns
        -------
        Moments
            The problem.
        """
        from rankwise._kernels.rows import moments_on

        X, labels = np.asarray(queries.X), queries.labels()
        rows, count = rows_in_order(queries, lists)
        weight = np.empty(0) if queries.weight is None else queries.weight[queries.query_of_row]
        width = queries.n_features + 2
        add_moments = moments_on(X.dtype)

        def part(first: int, last: int) -> Vector:
            own = np.zeros((2, width, width))
            add_moments(first, last, rows, X, labels, target, weight, shift, factor, own)
            return own

        step = max(_CHUNK, 4 * width)  # with fewer rows, adding the sums would take longer than computing them
        chunks = [(first, min(first + step, count)) for first in range(0, count, step)]
        together = max(1, _WAITING // (16 * width**2))
        sums = np.zeros((2, width, width))
        for first in range(0, len(chunks), together):
            for own in drive.run(part, chunks[first : first + together], n_jobs):
                sums += own
        upper = np.triu(np.ones((width, width), dtype=bool))
        return cls(np.where(upper, sums, sums.transpose(0, 2, 1)))

    def __add__(self, other: "Moments") -> "Moments":
        return Moments(self.sums + other.sums)

    def ridge(self, alphas: Sequence[float], most: float | None) -> list[Vector]:
        """Solve the ridge problem.

        Parameters
        ----------
        alphas : sequence of float
            Strengths of the penalty.
        most : float or None
            As for :func:`class_shares`.

        Returns
        -------
        list of ndarray, shape (n_features,)
            The weights w for every alpha.
        """
        first, second = class_shares(self.sums[:, 0, 0], most)
        total = first * self.sums[0] + second * self.sums[1]
        mean = total[0] / total[0, 0] if total[0, 0] else total[0]
        centred = total[1:-1, 1:] - np.outer(mean[1:-1], total[0, 1:])
        with one_blas_thread():
            values, vectors = np.linalg.eigh(centred[:, :-1])
            along = vectors.T @ centred[:, -1]
            return [np.asarray(vectors @ part) for part in _shrunk(along, values, alphas, len(values))]


@dataclass(frozen=True)
class WeightedRows:
    """The rows themselves, for fewer rows than features: w = Z' (Z Z' + alpha)^-1 t is a combination of the rows.

    Z has the rows sqrt(c_i) (x_i - mean), t the numbers sqrt(c_i) (g_i - mean). w is that of :class:`Moments` up to
    rounding, in O(rows^2 features) and without a matrix of features x features.

    Attributes
    ----------
    x : ndarray, shape (n_rows, n_features)
        Scaled rows.
    target, weight : ndarray, shape (n_rows,)
        Targets g and weights c.
    relevant : ndarray of bool, shape (n_rows,)
        Whether the label is above 0.
    """

    x: Vector
    target: Vector
    weight: Vector
    relevant: NDArray[np.bool_]

    @classmethod
    def of(
        cls,
        queries: Queries,
        target: Vector,
        factor: Vector,
        shift: Vector,
        lists: NDArray[np.int64] | None = None,
        n_jobs: int | None = None,
    ) -> Self:
        """The rows (x - shift) factor of queries.

        Parameters
        ----------
        queries : Queries
            Judged queries.
        target : ndarray, shape (n_documents,)
            The targets g.
        factor : ndarray, shape (n_features,)
            The scale of the features.
        shift : ndarray, shape (n_features,)
            Subtracted from the features before they are scaled.
        lists : ndarray of int64, default=None
            Which queries; None for all.
        n_jobs : int, default=None
            Number of threads; None uses every core.

        Returns
        -------
        WeightedRows
            The problem.
        """
        rows, count = rows_in_order(queries, lists)
        rows = rows if len(rows) else np.arange(count)
        weight = queries.query_weight[queries.query_of_row[rows]]
        return cls((queries.X[rows] - shift) * factor, target[rows], weight, queries.labels()[rows] > 0)

    def __add__(self, other: "WeightedRows") -> "WeightedRows":
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return WeightedRows(*(np.concatenate(pair) for pair in pairs))

    def ridge(self, alphas: Sequence[float], most: float | None) -> list[Vector]:
        """Solve the ridge problem.

        Parameters
        ----------
        alphas : sequence of float
            Strengths of the penalty.
        most : float or None
            As for :func:`class_shares`.

        Returns
        -------
        list of ndarray, shape (n_features,)
            The weights w for every alpha.
        """
        counts = np.array([self.weight[self.relevant == part].sum() for part in (False, True)])
        share = class_shares(counts, most)
        weight = self.weight * np.where(self.relevant, share[1], share[0])
        total, root = weight.sum() or 1.0, np.sqrt(weight)
        z = (self.x - (weight[:, None] * self.x).sum(axis=0) / total) * root[:, None]
        t = (self.target - (weight * self.target).sum() / total) * root
        with one_blas_thread():
            values, vectors = np.linalg.eigh(z @ z.T)
            along = vectors.T @ t
            return [np.asarray((vectors @ part) @ z) for part in _shrunk(along, values, alphas, z.shape[1])]


def ridge_problem(queries: Queries) -> type[Moments] | type[WeightedRows]:
    """The cheaper form of the problem for these queries."""
    return WeightedRows if queries.n_documents < queries.n_features else Moments


def class_shares(counts: Vector, most: float | None) -> tuple[float, float]:
    """Factors of (documents without relevance, relevant documents) that give both classes the same weight.

    Parameters
    ----------
    counts : ndarray, shape (2,)
        The total weights of the two classes.
    most : float or None
        The largest factor of documents without relevance; the total weight stays the same. None: no balance, (1, 1).

    Returns
    -------
    tuple of float
        The two factors.
    """
    others, relevant = map(float, counts)
    if most is None or not (others and relevant):
        return 1.0, 1.0
    total = others + relevant
    if total / (2 * others) <= max(most, 1.0):
        return total / (2 * others), total / (2 * relevant)
    return most, (relevant - (most - 1) * others) / relevant


def _shrunk(along: Vector, values: Vector, alphas: Sequence[float], features: int) -> list[Vector]:
    """along / (values + alpha) for every alpha, 0 in directions in which the features do not vary but for rounding."""
    flat = values <= values.max(initial=0.0) * features * np.finfo(float).eps
    return [np.where(flat, 0.0, along / np.where(flat, 1.0, values + alpha)) for alpha in alphas]
