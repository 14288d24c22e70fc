"""Dot products of rows with weights, and their transpose.

Every score is computed by :func:`dot`, in predictions, streams and online rounds alike: a row has the same bits alone,
in a slice and in the whole. BLAS does not guarantee that, and a last bit makes or breaks ties. X may be float32 or
float64; sums are in float64.
"""

import numpy as np

from rankwise._kernels.machine.jit import kernel


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
