"""Mercer kernels k(x, z) = phi(x) . phi(z) of rows, sums of them, and the random Fourier features of the rbf kernel.

Scores of a kernel expansion are computed here alone, in rounds and in predictions: a row has the same bits everywhere.
X may be float32 or float64; what it is compared with is float64.
"""

import math
from functools import cache
from typing import Any

import numpy as np
from numba import types

from rankwise._kernels.dot_products import dot
from rankwise._kernels.exp import exp
from rankwise._kernels.machine.jit import FLOATS, FLOATS_IN, compiled, features_in, kernel

# The kernels by name, at the numbers that compiled code knows them by.
KERNELS = ("rbf", "linear", "poly")
RBF, LINEAR, POLY = 0.0, 1.0, 2.0
# Places in ``shape``, the parameters of a kernel.
KIND, GAMMA, DEGREE, COEF0 = range(4)


@kernel(fastmath={"reassoc", "contract"})
def _squared_distance(x, z):
    """sum_j (x_j - z_j)^2."""
    total = 0.0
    for j in range(len(z)):
        a = x[j] - z[j]
        total += a * a
    return total


@kernel
def mercer(x, z, shape):
    """k(x, z): exp(-gamma norm(x - z)^2), x . z, or (gamma x . z + coef0)^degree."""
    if shape[KIND] == RBF:
        return exp(-shape[GAMMA] * _squared_distance(x, z))
    if shape[KIND] == LINEAR:
        return dot(x, z)
    return (shape[GAMMA] * dot(x, z) + shape[COEF0]) ** int(shape[DEGREE])


@kernel
def norm_in_space(x, shape):
    """sqrt(k(x, x)), the norm of phi(x)."""
    if shape[KIND] == RBF:
        return 1.0
    square = 0.0
    for j in range(len(x)):
        square += np.float64(x[j]) * x[j]
    if shape[KIND] == POLY:
        square = (shape[GAMMA] * square + shape[COEF0]) ** int(shape[DEGREE])
    return math.sqrt(square)


@kernel
def expansion_score(x, stored, c, count, shape):
    """sum_j c_j k(z_j, x) over the first ``count`` stored rows."""
    total = 0.0
    for j in range(count):
        total += c[j] * mercer(x, stored[j], shape)
    return total


def _expansion_scores(X, first, last, stored, c, count, shape, out):
    """Scores of rows first..last-1, at their own places."""
    for row in range(first, last):
        out[row] = expansion_score(X[row], stored, c, count, shape)


def _mercer_rows(X, first, last, Z, shape, out):
    """k(x, z) of rows first..last-1 with all rows of Z, into rows of ``out``."""
    for row in range(first, last):
        for j in range(len(Z)):
            out[row, j] = mercer(X[row], Z[j], shape)


def _fourier_rows(X, first, last, frequencies, out):
    """(cos(w_j . x), sin(w_j . x)) / sqrt(number of frequencies) of rows first..last-1, cosines first."""
    half = len(frequencies)
    scale = 1.0 / math.sqrt(half)
    for row in range(first, last):
        for j in range(half):
            angle = dot(X[row], frequencies[j])
            out[row, j] = scale * math.cos(angle)
            out[row, half + j] = scale * math.sin(angle)


_matrix, _matrix_in = types.Array(types.float64, 2, "C"), types.Array(types.float64, 2, "C", readonly=True)
_rows = (types.int64, types.int64)


@cache
def expansion_scores_on(dtype: "np.dtype[Any]") -> Any:
    """The scores of rows, compiled for this type of X."""
    given = (features_in(dtype), *_rows, _matrix_in, FLOATS_IN, types.int64, FLOATS_IN, FLOATS)
    return compiled(kernel(_expansion_scores), types.void(*given))


@cache
def mercer_rows_on(dtype: "np.dtype[Any]") -> Any:
    """Rows of a kernel matrix, compiled for this type of X."""
    return compiled(kernel(_mercer_rows), types.void(features_in(dtype), *_rows, _matrix_in, FLOATS_IN, _matrix))


@cache
def fourier_rows_on(dtype: "np.dtype[Any]") -> Any:
    """Random Fourier features of rows, compiled for this type of X."""
    return compiled(kernel(_fourier_rows), types.void(features_in(dtype), *_rows, _matrix_in, _matrix))
