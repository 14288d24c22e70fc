"""Ridge regression within queries: its moments from one pass over X, and all penalties from one factorization.

min over w, b of sum_i c_i (w . x_i + b_q(i) - g_i)^2 + alpha norm(w)^2 has one intercept per query, which no ranking
sees. The best intercepts take the weighted means of the query off x and g, so A = sum c x x' and sum c g x of the
centered rows determine w: :class:`Moments`. They are sums over queries, so the problem without some of them is a
sum of parts, and several targets g share A. If there are fewer rows than features, the rows themselves are fewer:
:class:`WeightedRows`. With one intercept for all documents, rows are shifted instead, and the sums of the shifted rows,
kept beside their products, center any union of parts.

Both give the same bits on every number of threads: chunks are fixed and added in order, and every product and
factorization runs on one thread of BLAS.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, reduce
from operator import add
from typing import Any, Self

import numpy as np
from numba import types
from numpy.typing import NDArray

from rankwise._arrays import Matrix, Numbers, Vector
from rankwise._kernels import parallel
from rankwise._kernels.machine.jit import FLOATS_IN, INTS_IN, MATRIX, MATRIX_IN, compiled, features_in, kernel
from rankwise._kernels.parallel import one_blas_thread
from rankwise.errors import RankwiseError
from rankwise.queries.queries import Queries

Targets = Callable[[Queries], Matrix]

# Values per chunk of rows in float64, 1.5 MB, and the least and largest number of rows: the bits depend on them.
_VALUES, _FEWEST, _MOST = 3 << 16, 256, 1 << 11
# Bytes of partial sums that may wait to be added, and at least two per thread.
_WAITING = 1 << 20


@dataclass(frozen=True)
class Regression:
    """What is regressed on what: the targets and the weight of every document of some queries.

    Attributes
    ----------
    queries : Queries
        The queries.
    targets : ndarray, shape (n_targets, n_documents)
        The targets g.
    weight : ndarray, shape (n_documents,)
        The weights c; empty if all are 1.
    shift : ndarray of shape (n_features,) or None, default=None
        None: one intercept per query. Otherwise one for all documents, and a point near which the features lie.
    factor : ndarray of shape (n_features,) or None, default=None
        A factor of every feature, which keeps sums of squares within the range of numbers; None is 1.
    """

    queries: Queries
    targets: Matrix
    weight: Vector
    shift: Vector | None = None
    factor: Vector | None = None

    def rows(self, lists: Numbers | None, n_jobs: int | None = None) -> "_Rows":
        """The rows of some queries; None for all of non-zero weight."""
        queries = self.queries
        taken = queries.counted if lists is None else lists
        first, size = queries.start[taken], queries.start[taken + 1] - queries.start[taken]
        start = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
        rows = np.empty(0, np.int64)
        if len(taken) < len(queries) or not queries.is_grouped:
            rows = np.arange(start[-1]) + np.repeat(first - start[:-1], size)
            rows = rows if queries.is_grouped else np.ascontiguousarray(queries.rows[rows])
        factor = np.ones(queries.n_features) if self.factor is None else self.factor
        return _Rows(np.asarray(queries.X), rows, start, factor, self, n_jobs)


@dataclass(frozen=True)
class _Rows:
    """Rows of a regression, query after query, made chunk by chunk."""

    X: NDArray[np.floating]
    rows: Numbers
    start: Numbers
    factor: Vector
    about: Regression
    n_jobs: int | None

    @cached_property
    def width(self) -> int:
        return 1 + self.about.queries.n_features + len(self.about.targets)

    @property
    def total(self) -> float:
        """The sum of the weights."""
        if not len(self.about.weight) or not self.start[-1]:
            return float(self.start[-1])
        return float(self.about.weight[self.rows].sum() if len(self.rows) else self.about.weight.sum())

    def centered(self, first: int, last: int) -> Matrix:
        """Centered rows of whole queries."""

        about, z = self.about, np.empty((self.start[last] - self.start[first], self.width))
        center = centered_rows_on(self.X.dtype)
        center(first, last, self.start, self.rows, self.X, self.factor, about.targets, about.weight, z)
        return z

    def shifted(self, first: int, last: int, shift: Vector) -> Matrix:
        """Shifted rows at places first..last-1."""

        about, z = self.about, np.empty((last - first, self.width))
        shift_rows = shifted_rows_on(self.X.dtype)
        shift_rows(first, last, self.rows, self.X, self.factor, shift, about.targets, about.weight, z)
        return z

    def sums(self) -> Matrix:
        """sum z z' over the rows; the caller keeps BLAS on one thread."""
        step = max(_FEWEST, min(_MOST, _VALUES // self.width))
        if self.about.shift is not None:
            return self._sum_shifted(0, int(self.start[-1]), self.about.shift, step)
        chunks = list(parallel.query_chunks(self.start, step))
        short = [chunk for chunk in chunks if self.start[chunk[1]] - self.start[chunk[0]] <= step]
        sums = self._sum_products([(self.centered, *chunk) for chunk in short])
        for first, last in sorted(set(chunks) - set(short)):  # a query longer than a chunk
            low, high = int(self.start[first]), int(self.start[last])
            head = self.X[self.rows[low] if len(self.rows) else low].astype(np.float64)
            sums += _center(self._sum_shifted(low, high, head, step))
        return sums

    def _sum_shifted(self, low: int, high: int, shift: Vector, step: int) -> Matrix:
        pieces = [(first, min(first + step, high)) for first in range(low, high, step)]
        return self._sum_products([(self.shifted, first, last, shift) for first, last in pieces])

    def _sum_products(self, tasks: Sequence[tuple[Any, ...]]) -> Matrix:
        """The sum over the tasks of z' z, in their order."""

        def product(number: int) -> Matrix:
            make, *chunk = tasks[number]
            z = make(*chunk)
            with np.errstate(over="ignore", invalid="ignore"):  # the caller gives a factor then
                return np.asarray(z.T @ z)

        sums = np.zeros((self.width, self.width))
        together = max(2 * parallel.threads(self.n_jobs), _WAITING // (8 * self.width**2))
        for first in range(0, len(tasks), together):
            some = range(first, min(first + together, len(tasks)))
            for own in parallel.map_chunks(product, [(number,) for number in some], self.n_jobs):
                sums += own
        return sums


def _center(sums: Matrix) -> Matrix:
    """sum c z z' of rows with a leading 1, after their weighted mean is taken off."""
    found = sums - np.outer(sums[0], sums[0]) / (sums[0, 0] or 1.0)
    found[0], found[:, 0] = 0.0, 0.0
    return found


# ------------------------------------------------------------------------------------------------------ the problems


@dataclass(frozen=True)
class Moments:
    """sum z z' over rows z = sqrt(c) (1, x, g).

    Attributes
    ----------
    sums : ndarray, shape (1 + n_features + n_targets, 1 + n_features + n_targets)
        Row and column 0 are zero if every query was centered.
    n_features : int
        Number of features.
    total : float
        The sum of the weights c.
    factor : ndarray, shape (n_features,)
        The factor that every feature was multiplied by.
    """

    sums: Matrix
    n_features: int
    total: float
    factor: Vector

    @classmethod
    def of(cls, about: Regression, lists: Numbers | None = None, n_jobs: int | None = None) -> Self:
        """The moments of some queries, from one pass over their rows; X is neither copied nor converted.

        Parameters
        ----------
        about : Regression
            Queries, targets and weights.
        lists : ndarray of int64, default=None
            Which queries; None for all.
        n_jobs : int, default=None
            Number of threads; None uses every core.

        Returns
        -------
        Moments
            The problem.
        """
        rows = about.rows(lists, n_jobs)
        return cls(rows.sums(), about.queries.n_features, rows.total, rows.factor)

    def __add__(self, other: "Moments") -> "Moments":
        return Moments(self.sums + other.sums, self.n_features, self.total + other.total, self.factor)

    def squares(self) -> Vector:
        """The diagonal of A: the weighted sum of squares of every centered feature."""
        return np.diag(_center(self.sums))[1 : self.n_features + 1].copy()

    def deviation(self, coef: Vector) -> float:
        """The standard deviation within queries of the scores by weights on raw features."""
        with one_blas_thread():
            w = raw_over(coef, self.factor)
            square = float(w @ self.matrix(np.ones_like(w)) @ w)
        return float(np.sqrt(max(0.0, square) / (self.total or 1.0)))

    def matrix(self, scale: Vector) -> Matrix:
        """A for features times ``scale``."""
        end = self.n_features + 1
        return np.asarray(_center(self.sums)[1:end, 1:end] * np.outer(scale, scale))

    def ridge(self, scale: Vector) -> "Solved":
        """Factorize A for features times ``scale``, for all penalties and all targets."""
        end = self.n_features + 1
        right = _center(self.sums)[1:end, end:] * scale[:, None]
        with one_blas_thread():
            values, vectors = np.linalg.eigh(self.matrix(scale))
            return Solved(values, vectors, np.asarray(vectors.T @ right), scale * self.factor)


@dataclass(frozen=True)
class WeightedRows:
    """The rows z themselves, for fewer rows than features: w = Z' (Z Z' + alpha)^-1 t is a combination of the rows.

    w is that of :class:`Moments` up to rounding, in O(rows^2 features) and without a matrix of features x features.

    Attributes
    ----------
    z : ndarray, shape (n_rows, 1 + n_features + n_targets)
        The rows; column 0 is zero if every query was centered.
    n_features : int
        Number of features.
    total : float
        The sum of the weights c.
    factor : ndarray, shape (n_features,)
        The factor that every feature was multiplied by.
    """

    z: Matrix
    n_features: int
    total: float
    factor: Vector

    @classmethod
    def of(cls, about: Regression, lists: Numbers | None = None, n_jobs: int | None = None) -> Self:
        """The rows of some queries; the parameters are those of :meth:`Moments.of`."""
        rows = about.rows(lists, n_jobs)
        if about.shift is None:
            z = rows.centered(0, len(rows.start) - 1)
        else:
            z = rows.shifted(0, int(rows.start[-1]), about.shift)
        return cls(z, about.queries.n_features, rows.total, rows.factor)

    def __add__(self, other: "WeightedRows") -> "WeightedRows":
        rows = np.concatenate([self.z, other.z])
        return WeightedRows(rows, self.n_features, self.total + other.total, self.factor)

    def _center(self) -> Matrix:
        """(x, g) of the rows, after the weighted mean of rows with a leading 1 is taken off."""
        one = self.z[:, 0]
        mean = (one[:, None] * self.z[:, 1:]).sum(axis=0) / (float((one**2).sum()) or 1.0)
        return np.asarray(self.z[:, 1:] - one[:, None] * mean)

    def squares(self) -> Vector:
        """The diagonal of A: the weighted sum of squares of every centered feature."""
        return np.asarray((self._center()[:, : self.n_features] ** 2).sum(axis=0))

    def deviation(self, coef: Vector) -> float:
        """The standard deviation within queries of the scores by weights on raw features."""
        scores = (self._center()[:, : self.n_features] * raw_over(coef, self.factor)).sum(axis=1)
        return float(np.sqrt((scores**2).sum() / (self.total or 1.0)))

    def ridge(self, scale: Vector) -> "Solved":
        """Factorize Z Z' for features times ``scale``, for all penalties and all targets."""
        rows = self._center()
        z = rows[:, : self.n_features] * scale
        with one_blas_thread():
            values, vectors = np.linalg.eigh(z @ z.T)
            right = vectors.T @ rows[:, self.n_features :]
            return Solved(values, np.asarray(z.T @ vectors), np.asarray(right), scale * self.factor)


Problem = Moments | WeightedRows


@dataclass(frozen=True)
class Solved:
    """A factorized problem.

    Attributes
    ----------
    values : ndarray, shape (n,)
        Eigenvalues of A, or of Z Z'.
    vectors : ndarray, shape (n_features, n)
        What turns a solution along the eigenvectors into weights of the scaled features.
    right : ndarray, shape (n, n_targets)
        The right-hand sides along the eigenvectors.
    factor : ndarray, shape (n_features,)
        What turns weights of the scaled features into weights on raw ones.
    """

    values: Vector
    vectors: Matrix
    right: Matrix
    factor: Vector

    @property
    def unit(self) -> float:
        """trace(A) / number of features that vary, the unit of relative penalties; 1 if none varies."""
        return float(self.values.clip(min=0.0).sum()) / max(1, int((self.factor > 0).sum())) or 1.0

    def weights(self, alphas: Sequence[float], target: int = 0) -> Matrix:
        """Weights on raw features for every alpha, 0 in directions in which features do not vary but for rounding.

        Parameters
        ----------
        alphas : sequence of float
            Penalties.
        target : int, default=0
            Which target.

        Returns
        -------
        ndarray, shape (n_alphas, n_features)
            One row per alpha.
        """
        flat = self.values <= self.values.max(initial=0.0) * len(self.factor) * np.finfo(float).eps
        along = self.right[:, target]
        shrunk = [np.where(flat, 0.0, along / np.where(flat, 1.0, self.values + alpha)) for alpha in alphas]
        with one_blas_thread():
            return np.array([self.vectors @ one for one in shrunk]) * self.factor


# ----------------------------------------------------------------------------------------------------- parts and scales


def joined(problems: Sequence[Problem], without: int | None = None) -> Problem:
    """The problem of all these parts together, but for one."""
    return reduce(add, [one for number, one in enumerate(problems) if number != without])


def within_query_scale(problem: Problem) -> Vector:
    """1 / pooled standard deviation of every feature within queries, 0 for a feature that is constant in each of them.

    Parameters
    ----------
    problem : Moments or WeightedRows
        The problem of all queries.

    Returns
    -------
    scale : ndarray, shape (n_features,)
        One number per feature, with the weights of the problem.

    Raises
    ------
    RankwiseError
        If a feature varies so little that its weight overflows.
    """
    squares = problem.squares()
    scale = np.divide(np.sqrt(problem.total), np.sqrt(squares), out=np.zeros_like(squares), where=squares > 0)
    with np.errstate(over="ignore"):
        finite = np.isfinite(scale * problem.factor)
    if not finite.all():
        feature = int(np.argmin(finite))
        raise RankwiseError(f"feature {feature} varies so little within queries that it cannot be scaled")
    return scale


def no_scale(problem: Problem) -> Vector:
    """What takes the factor off that features were multiplied by, so that penalties are in units of raw features."""
    with np.errstate(over="ignore"):
        scale = 1 / problem.factor
        finite = np.isfinite(problem.squares() * scale**2)
    if not finite.all():
        raise RankwiseError(f"feature {int(np.argmin(finite))} is too large to be squared: pass scale='auto'")
    return np.asarray(scale)


def raw_over(coef: Vector, factor: Vector) -> Vector:
    """Weights of features times ``factor`` from those on raw features; 0 where the factor is."""
    return np.divide(coef, factor, out=np.zeros_like(coef), where=factor > 0)


# ------------------------------------------------------------------------------------------------------------- compiled


def _centered_rows(first, last, start, rows, X, factor, targets, weight, z):
    """Rows sqrt(c) (0, (x - mean of its query) factor, g - mean of its query) of queries first..last-1 into ``z``.

    c is the weight of the row, and means are weighted by it. The first document of a query is subtracted before the
    means are taken, so that a feature which is constant within the query gives zeros to the last bit. An empty ``rows``
    means that places are rows; an empty ``weight`` means that every row has weight 1.
    """
    features, width = X.shape[1], z.shape[1]
    mean = np.empty(width)
    for q in range(first, last):
        low, high = start[q], start[q + 1]
        total = 0.0
        mean[:] = 0.0
        head = 0 if high == low else (low if len(rows) == 0 else rows[low])
        for place in range(low, high):
            row = place if len(rows) == 0 else rows[place]
            c = 1.0 if len(weight) == 0 else weight[row]
            own = z[place - start[first]]
            own[0] = 0.0
            for j in range(features):
                own[j + 1] = X[row, j] * factor[j] - X[head, j] * factor[j]
            for k in range(len(targets)):
                own[features + 1 + k] = targets[k, row] - targets[k, head]
            total += c
            for j in range(width):
                mean[j] += c * own[j]
        if total > 0.0:
            for j in range(width):
                mean[j] /= total
        for place in range(low, high):
            row = place if len(rows) == 0 else rows[place]
            root = 1.0 if len(weight) == 0 else math.sqrt(weight[row])
            own = z[place - start[first]]
            for j in range(width):
                own[j] = root * (own[j] - mean[j])


def _shifted_rows(first, last, rows, X, factor, shift, targets, weight, z):
    """Rows sqrt(c) (1, (x - shift) factor, g) of the rows at places first..last-1 into ``z``; see _centered_rows."""
    features = X.shape[1]
    for place in range(first, last):
        row = place if len(rows) == 0 else rows[place]
        root = 1.0 if len(weight) == 0 else math.sqrt(weight[row])
        own = z[place - first]
        own[0] = root
        for j in range(features):
            own[j + 1] = root * (X[row, j] * factor[j] - shift[j] * factor[j])
        for k in range(len(targets)):
            own[features + 1 + k] = root * targets[k, row]


@cache
def centered_rows_on(dtype: np.dtype[Any]) -> Any:
    """:func:`_centered_rows`, compiled for this type of X."""
    given = (types.int64, types.int64, INTS_IN, INTS_IN, features_in(dtype), FLOATS_IN, MATRIX_IN, FLOATS_IN, MATRIX)
    return compiled(kernel(_centered_rows), types.void(*given))


@cache
def shifted_rows_on(dtype: np.dtype[Any]) -> Any:
    """:func:`_shifted_rows`, compiled for this type of X."""
    given = (types.int64, types.int64, INTS_IN, features_in(dtype), FLOATS_IN, FLOATS_IN, MATRIX_IN, FLOATS_IN)
    return compiled(kernel(_shifted_rows), types.void(*given, MATRIX))
