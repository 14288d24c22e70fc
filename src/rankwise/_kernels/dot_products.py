"""Dot products of rows with weights, and their transpose.

Every score is computed by :func:`dot`, in predictions, streams and online rounds alike: a row has the same bits alone,
in a slice and in the whole. BLAS does not guarantee that, and a last bit makes or breaks ties. X may be float32 or
float64; sums are in float64.
"""

from functools import cache
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from rankwise._kernels import parallel
from rankwise._kernels.machine.jit import INTS_IN, MATRIX, MATRIX_IN, compiled, features_in, kernel


@kernel(fastmath={"reassoc", "contract"})
def dot(x, w):
    """sum_j x_j w_j."""
    total = 0.0
    for j in range(len(w)):
        total += x[j] * w[j]
    return total


@kernel(fastmath={"reassoc", "contract"})
def dot_and_square(x, w):
    """(sum_j x_j w_j in the bits of :func:`dot`, sum_j x_j^2), in one reading of the row."""
    total, square = 0.0, 0.0
    for j in range(len(w)):
        value = np.float64(x[j])
        total += value * w[j]
        square += value * value
    return total, square


@kernel
def score_rows(X, first, last, w, out):
    """Scores of rows first..last-1, at their own places."""
    for row in range(first, last):
        out[row] = dot(X[row], w)


@kernel(inline="always")
def _add_row(x, factor, out):
    """Add a row times a number to a vector."""
    for j in range(len(out)):
        out[j] += x[j] * factor


@kernel(inline="always")
def _add_four(a, in_a, b, in_b, c, in_c, d, in_d, out):
    """Add four rows times their factors to a vector."""
    for j in range(len(out)):
        out[j] += (a[j] * in_a + b[j] * in_b) + (c[j] * in_c + d[j] * in_d)


@kernel(fastmath={"contract"})
def add_rows(X, rows, factors, out):
    """Add X' g for the given rows; rows with g = 0 are not read."""
    waiting, count = np.empty(4, np.int64), 0
    for p in range(len(rows)):
        if factors[p] != 0.0:
            waiting[count] = p
            count += 1
        if count == 4:  # four at a time: the sum is read and written a quarter as often
            a, b, c, d = waiting[0], waiting[1], waiting[2], waiting[3]
            _add_four(
                X[rows[a]], factors[a], X[rows[b]], factors[b], X[rows[c]], factors[c], X[rows[d]], factors[d], out
            )
            count = 0
    for at in range(count):
        p = waiting[at]
        _add_row(X[rows[p]], factors[p], out)


def _score_rows_by(first, last, rows, X, weights, out):
    """Scores of the rows at places first..last-1 by several vectors of weights, in the bits of :func:`dot`."""
    for place in range(first, last):
        row = place if len(rows) == 0 else rows[place]
        for k in range(len(weights)):
            out[k, place] = dot(X[row], weights[k])


@cache
def _score_rows_by_on(dtype: np.dtype[Any]) -> Any:
    given = (types.int64, types.int64, INTS_IN, features_in(dtype), MATRIX_IN, MATRIX)
    return compiled(kernel(_score_rows_by), types.void(*given))


def scores_by_weights(
    X: Any, rows: NDArray[np.int64], count: int, weights: NDArray[np.float64], n_jobs: int | None
) -> NDArray[np.float64]:
    """The scores of ``count`` rows by several linear models, which read every row once.

    Parameters
    ----------
    X : ndarray, shape (n_documents, n_features)
        The features.
    rows : ndarray of int64
        The rows; empty for the first ``count`` ones.
    count : int
        Number of rows.
    weights : ndarray, shape (n_models, n_features)
        One vector of weights per model.
    n_jobs : int or None
        Number of threads; None uses every core.

    Returns
    -------
    scores : ndarray, shape (n_models, count)
        In the bits of :func:`linear_scores`.
    """
    features, models = np.asarray(X), np.ascontiguousarray(weights, dtype=np.float64)
    scores = np.empty((len(models), count))
    run = _score_rows_by_on(features.dtype)
    parts = [(first, min(first + parallel.CHUNK, count)) for first in range(0, count, parallel.CHUNK)]
    parallel.map_chunks(lambda first, last: run(first, last, rows, features, models, scores), parts, n_jobs)
    return scores


def linear_scores(X: Any, coef: NDArray[np.float64], n_jobs: int | None) -> NDArray[np.float64]:
    """X coef, row by row. All linear predictions come from here, so that candidates are judged by the final bits."""
    rows, scores, weights = np.asarray(X), np.empty(len(X)), np.ascontiguousarray(coef).view()
    weights.setflags(write=False)  # as in the loops of losses, which share the compiled product
    parts = [(first, min(first + parallel.CHUNK, len(X))) for first in range(0, len(X), parallel.CHUNK)]
    parallel.map_chunks(lambda first, last: score_rows(rows, first, last, weights, scores), parts, n_jobs)
    return scores
