"""Piecewise linear functions of features: between two knots a line, beyond the first and the last one constant.

Every value is computed by itself, so that neither chunks nor threads change a bit. Results never fall where values grow
and are exact at the knots.
"""

from functools import cache, partial
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from rankwise._kernels import parallel
from rankwise._kernels.machine.jit import FLOATS, FLOATS_IN, INTS_IN, compiled, features_in, kernel

Vector = NDArray[np.float64]
Wholes = NDArray[np.int64]


@kernel(inline="always")
def _at(x, first, last, knot, height):
    """The function with the knots first..last at x."""
    if x <= knot[first]:
        return height[first]
    if x >= knot[last]:
        return height[last]
    low, high = first, last  # knot[low] <= x < knot[high]
    while high - low > 1:
        middle = (low + high) // 2
        if x >= knot[middle]:
            low = middle
        else:
            high = middle
    gap = knot[high] - knot[low]
    if gap < np.inf:
        share = (x - knot[low]) / gap
    else:  # too far apart for float64: all three are halved
        share = (0.5 * x - 0.5 * knot[low]) / (0.5 * knot[high] - 0.5 * knot[low])
    return min(height[low] + (height[high] - height[low]) * share, height[high])


def _rows(X, start, knot, height, out, first, last):
    """Rows first..last-1 of ``out``."""
    for row in range(first, last):
        for feature in range(X.shape[1]):
            out[row, feature] = _at(np.float64(X[row, feature]), start[feature], start[feature + 1] - 1, knot, height)


def _values(x, feature, start, knot, height, out):
    """The value of x[i] as one of feature[i]."""
    for i in range(len(x)):
        out[i] = _at(x[i], start[feature[i]], start[feature[i] + 1] - 1, knot, height)


@cache
def _on_rows(dtype: "np.dtype[Any]") -> Any:
    """The loop over rows of this type, compiled at its first use."""
    out = types.Array(types.float32 if dtype == np.float32 else types.float64, 2, "C")
    given = features_in(dtype), INTS_IN, FLOATS_IN, FLOATS_IN, out, types.int64, types.int64
    return compiled(kernel(_rows), types.void(*given))


@cache
def _on_values() -> Any:
    return compiled(kernel(_values), types.void(FLOATS_IN, INTS_IN, INTS_IN, FLOATS_IN, FLOATS_IN, FLOATS))


def interpolate_rows(X: NDArray[Any], start: Wholes, knot: Vector, height: Vector) -> NDArray[Any]:
    """The functions of all features.

    Parameters
    ----------
    X : ndarray of float32 or float64, shape (n_rows, n_features)
        The values, all finite.
    start : ndarray of int64, shape (n_features + 1,)
        Feature j owns the knots start[j]..start[j + 1] - 1, at least one.
    knot : ndarray of float64
        The knots, ascending within each feature.
    height : ndarray of float64
        What the functions are at the knots, never falling within a feature.

    Returns
    -------
    ndarray
        As X in shape and type.
    """
    out = np.empty(X.shape, X.dtype)
    step = max(1, parallel.CHUNK // max(1, X.shape[1]))
    chunks = [(first, min(first + step, len(X))) for first in range(0, len(X), step)]
    parallel.map_chunks(partial(_on_rows(X.dtype), np.ascontiguousarray(X), start, knot, height, out), chunks)
    return out


def interpolate(x: Vector, feature: Wholes, start: Wholes, knot: Vector, height: Vector) -> Vector:
    """The function of feature[i] at x[i], for every i, as :func:`interpolate_rows` has them."""
    out = np.empty(len(x))
    _on_values()(x, feature, start, knot, height, out)
    return out
