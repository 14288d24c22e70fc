"""Rows of X against a vector: the one dot product of the package, its transpose, radii, centred rows, and networks.

Every score is computed by :func:`dot`, in predictions, streams and online rounds alike: a row has the same bits alone,
in a slice and in the whole. BLAS does not guarantee that, and a last bit makes or breaks ties. X may be float32 or
float64; sums are in float64.
"""

import math
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from rankwise._kernels import drive
from rankwise._kernels.jit import FLOATS, FLOATS_IN, INTS_IN, compiled, features_in, kernel


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


@kernel(fastmath={"reassoc", "contract"})
def _distance(x, center):
    """Squared distance of a row from the center."""
    total = 0.0
    for j in range(len(center)):
        a = x[j] - center[j]
        total += a * a
    return total


@kernel(fastmath={"reassoc", "contract"})
def _scaled_distance(x, center, scale):
    """Squared distance of a row from the center, features times ``scale``."""
    total = 0.0
    for j in range(len(center)):
        a = (x[j] - center[j]) * scale[j]
        total += a * a
    return total


@kernel(inline="always")
def _reach(X, rows, scale, center):
    """The largest distance of a row from the center, features times ``scale``."""
    far, plain = 0.0, True
    for j in range(len(scale)):
        plain = plain and scale[j] == 1.0
    if plain:
        for p in range(len(rows)):
            far = max(far, _distance(X[rows[p]], center))
    else:
        for p in range(len(rows)):
            far = max(far, _scaled_distance(X[rows[p]], center, scale))
    return math.sqrt(far)


@kernel
def _set_mean(X, rows, center):
    """The mean of these rows."""
    ones = np.empty(len(rows))
    for p in range(len(rows)):
        ones[p] = 1.0
    for j in range(len(center)):
        center[j] = 0.0
    add_rows(X, rows, ones, center)
    for j in range(len(center)):
        center[j] /= len(rows)


@kernel
def reach_from_mean(X, rows, center):
    """The largest distance of a row from the mean row; ``center`` is overwritten."""
    _set_mean(X, rows, center)
    far = 0.0
    for p in range(len(rows)):
        far = max(far, _distance(X[rows[p]], center))
    return math.sqrt(far)


@kernel
def _reach_from(X, rows, scale, center, from_mean):
    """The largest distance of a row from the mean row or from 0, times ``scale``; ``center`` is overwritten."""
    if from_mean:
        _set_mean(X, rows, center)
    else:
        for j in range(len(center)):
            center[j] = 0.0
    return _reach(X, rows, scale, center)


@kernel
def raised_radius(X, rows, scale, center, radius, mean_first):
    """The larger of ``radius`` and the radius of these rows, and which of its two sides to try first next time.

    The radius of rows is their largest distance, features times ``scale``, from 0 or from their mean row, whichever is
    smaller: either is an upper bound of the radius of the smallest ball around them, which is at least half of the
    second. So one of the two, if it is small enough, shows that nothing is raised, and the order in which they are
    tried changes no result. ``center`` is overwritten.
    """
    first = _reach_from(X, rows, scale, center, mean_first)
    if first <= radius:
        return radius, mean_first
    other = _reach_from(X, rows, scale, center, not mean_first)
    if other <= radius:
        return radius, not mean_first
    return min(first, other), mean_first


@kernel
def list_radius(X, rows, scale, center):
    """The radius of these rows alone; see :func:`raised_radius`."""
    return raised_radius(X, rows, scale, center, 0.0, False)[0]


def largest_radius(
    X: NDArray[Any], start: NDArray[np.int64], rows: NDArray[np.int64], scale: NDArray[np.float64] | None = None
) -> float:
    """The largest radius of a query's feature vectors, which every bound on a linear ranker needs.

    The radius of one query is min over c in {0, mean row} of max_i norm(x_i - c).

    Parameters
    ----------
    X : ndarray, shape (n_documents, n_features)
        The features.
    start, rows : ndarray of int64
        Query q owns ``rows[start[q]:start[q+1]]``.
    scale : ndarray of shape (n_features,), default=None
        Factor of each feature; None is 1.

    Returns
    -------
    radius : float
        The maximum over all queries with documents; 0 where there are none.
    """
    X, center = np.asarray(X), np.empty(X.shape[1])  # a plain array even of a memory map
    factor = np.ones(X.shape[1]) if scale is None else scale
    owned = (rows[first:last] for first, last in pairwise(start) if first < last)
    return max((float(list_radius(X, mine, factor, center)) for mine in owned), default=0.0)


@kernel
def add_moments(X, rows, count, mean, squares):
    """Add rows to running means and sums of squared deviations of every feature (Welford); returns the count."""
    for row in rows:
        count += 1
        for j in range(len(mean)):
            shift = X[row, j] - mean[j]
            mean[j] += shift / count
            squares[j] += shift * (X[row, j] - mean[j])
    return count


@kernel
def onto_l1_ball(w, radius):
    """Project onto the l1 ball in place: every size shrinks by the same threshold, none below 0.

    With the sizes in decreasing order the threshold is the largest of (a_1 + ... + a_p - radius) / p.
    """
    total = np.abs(w).sum()
    if total <= radius:
        return
    sizes = np.sort(np.abs(w))
    threshold, above = 0.0, 0.0
    for p in range(len(sizes)):
        above += sizes[len(sizes) - 1 - p]
        threshold = max(threshold, (above - radius) / (p + 1))
    for j in range(len(w)):
        w[j] = math.copysign(max(abs(w[j]) - threshold, 0.0), w[j])


# ------------------------------------------------------------------------------- rows of a least squares problem


def _centred_rows(first, last, start, rows, X, factor, targets, weight, z):
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
    """Rows sqrt(c) (1, (x - shift) factor, g) of the rows at places first..last-1 into ``z``; see _centred_rows."""
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


def _score_rows_by(first, last, rows, X, weights, out):
    """Scores of the rows at places first..last-1 by several vectors of weights, in the bits of :func:`dot`."""
    for place in range(first, last):
        row = place if len(rows) == 0 else rows[place]
        for k in range(len(weights)):
            out[k, place] = dot(X[row], weights[k])


_MATRIX, _MATRIX_IN = types.Array(types.float64, 2, "C"), types.Array(types.float64, 2, "C", readonly=True)


@cache
def centred_rows_on(dtype: np.dtype[Any]) -> Any:
    """:func:`_centred_rows`, compiled for this type of X."""
    given = (types.int64, types.int64, INTS_IN, INTS_IN, features_in(dtype), FLOATS_IN, _MATRIX_IN, FLOATS_IN, _MATRIX)
    return compiled(kernel(_centred_rows), types.void(*given))


@cache
def shifted_rows_on(dtype: np.dtype[Any]) -> Any:
    """:func:`_shifted_rows`, compiled for this type of X."""
    given = (types.int64, types.int64, INTS_IN, features_in(dtype), FLOATS_IN, FLOATS_IN, _MATRIX_IN, FLOATS_IN)
    return compiled(kernel(_shifted_rows), types.void(*given, _MATRIX))


@cache
def _score_rows_by_on(dtype: np.dtype[Any]) -> Any:
    given = (types.int64, types.int64, INTS_IN, features_in(dtype), _MATRIX_IN, _MATRIX)
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
    parts = [(first, min(first + drive.CHUNK, count)) for first in range(0, count, drive.CHUNK)]
    drive.run(lambda first, last: run(first, last, rows, features, models, scores), parts, n_jobs)
    return scores


def linear_scores(X: Any, coef: NDArray[np.float64], n_jobs: int | None) -> NDArray[np.float64]:
    """X coef, row by row. All linear predictions come from here, so that candidates are judged by the final bits."""
    rows, scores, weights = np.asarray(X), np.empty(len(X)), np.ascontiguousarray(coef).view()
    weights.setflags(write=False)  # as in the loops of losses, which share the compiled product
    parts = [(first, min(first + drive.CHUNK, len(X))) for first in range(0, len(X), drive.CHUNK)]
    drive.run(lambda first, last: score_rows(rows, first, last, weights, scores), parts, n_jobs)
    return scores


# ----------------------------------------------------------------------------------------------- small neural networks


def _network_range(first, last, X, center, scale, widths, theta, out):
    """Scores of rows first..last-1, at their own places.

    ``widths`` is (number of features, widths of the hidden layers); ``theta`` holds for every hidden layer its matrix,
    row after row, and its biases, then the weights of the output on the last layer and on the standardised features.
    """
    features, widest = widths[0], 0
    for width in widths:
        widest = max(widest, width)
    z, below, above = np.empty(features), np.empty(widest), np.empty(widest)
    for row in range(first, last):
        for j in range(features):
            z[j] = (X[row, j] - center[j]) / scale[j]
            below[j] = z[j]
        place = 0
        for layer in range(1, len(widths)):
            n_in, n_out = widths[layer - 1], widths[layer]
            biases = place + n_in * n_out
            for k in range(n_out):
                total = theta[biases + k] + dot(theta[place + k * n_in : place + (k + 1) * n_in], below[:n_in])
                above[k] = max(total, 0.0)
                if layer > 1 and n_in == n_out:
                    above[k] += below[k]
            below, above = above, below
            place = biases + n_out
        last_width = widths[len(widths) - 1]
        end = place + last_width
        out[row] = dot(theta[place:end], below[:last_width]) + dot(theta[end : end + features], z)


@cache
def _network_on(dtype: np.dtype[Any]) -> Any:
    """The loop over rows, compiled for this type of X."""
    given = (types.int64, types.int64, features_in(dtype), FLOATS_IN, FLOATS_IN, INTS_IN, FLOATS_IN, FLOATS)
    return compiled(kernel(_network_range), types.void(*given))


def network_scores(
    X: Any,
    center: NDArray[np.float64],
    scale: NDArray[np.float64],
    widths: NDArray[np.int64],
    theta: NDArray[np.float64],
    n_jobs: int | None,
) -> NDArray[np.float64]:
    """The scores of all rows; see :func:`_network_range` for the arguments."""
    rows, scores = np.ascontiguousarray(X), np.empty(len(X))
    score, given = _network_on(rows.dtype), (rows, center, scale, widths, theta, scores)
    parts = [(first, min(first + drive.CHUNK, len(rows))) for first in range(0, len(rows), drive.CHUNK)]
    drive.run(lambda first, last: score(first, last, *given), parts, n_jobs)
    return scores
