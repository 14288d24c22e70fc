"""Rows of X against a vector: the one dot product of the house, and its transpose.

Every score is made by :func:`dot`, in predictions, streams and rounds alike: a row has the same bits alone, in a slice
and in the whole, which BLAS does not promise, and which makes or breaks ties. X may be float32 or float64; sums are in
float64.
"""

import math

import numpy as np

from rankwise._kernels.jit import kernel


@kernel(fastmath={"reassoc", "contract"})
def dot(x, w):
    """sum_j x_j w_j."""
    total = 0.0
    for j in range(len(w)):
        total += x[j] * w[j]
    return total


@kernel
def score_rows(X, first, last, w, out):
    """Scores of rows first..last-1, at their own places."""
    for row in range(first, last):
        out[row] = dot(X[row], w)


@kernel(fastmath={"contract"})
def add_row(x, factor, out):
    """Add a row times a number to a vector."""
    for j in range(len(out)):
        out[j] += x[j] * factor


@kernel
def add_rows(X, rows, factors, out):
    """Add X' g for the given rows; rows with g = 0 are not touched."""
    for p in range(len(rows)):
        if factors[p] != 0.0:
            add_row(X[rows[p]], factors[p], out)


@kernel(fastmath={"contract"})
def _add_four(a, b, c, d, out):
    for j in range(len(out)):
        out[j] += (a[j] + b[j]) + (c[j] + d[j])


@kernel(fastmath={"reassoc", "contract"})
def _distances(x, center, scale):
    """Squared distances from 0 and from the center, features times ``scale``."""
    far, around = 0.0, 0.0
    for j in range(len(center)):
        a = x[j] * scale[j]
        b = (x[j] - center[j]) * scale[j]
        far += a * a
        around += b * b
    return far, around


@kernel
def list_radius(X, rows, scale, center):
    """The largest distance of a row, its features times ``scale``, from 0 or from the mean row, whichever is smaller.

    Either bounds the radius of the smallest ball around the rows, which is at least half of the second. ``center`` is
    overwritten.
    """
    size = len(rows)
    center[:] = 0.0
    for p in range(0, size - 3, 4):  # four at a time: the sum is read and written a quarter as often
        _add_four(X[rows[p]], X[rows[p + 1]], X[rows[p + 2]], X[rows[p + 3]], center)
    for p in range(size - size % 4, size):
        add_row(X[rows[p]], 1.0, center)
    center /= size
    far, around = 0.0, 0.0
    for row in rows:
        a, b = _distances(X[row], center, scale)
        far, around = max(far, a), max(around, b)
    return math.sqrt(min(far, around))


@kernel
def add_moments(X, rows, count, mean, squares):
    """Running means and sums of squared deviations of every feature (Welford), with these rows; returns the count."""
    for row in rows:
        count += 1
        for j in range(len(mean)):
            shift = X[row, j] - mean[j]
            mean[j] += shift / count
            squares[j] += shift * (X[row, j] - mean[j])
    return count


@kernel
def onto_l1_ball(w, radius):
    """The nearest point of the l1 ball, in place: every size shrunk by the same threshold, none below 0.

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
