"""Rows of a least squares problem: weighted, centered within their query or shifted, with their targets."""

import math
from functools import cache
from typing import Any

import numpy as np
from numba import types

from rankwise._kernels.machine.jit import FLOATS_IN, INTS_IN, MATRIX, MATRIX_IN, compiled, features_in, kernel


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
