"""Piecewise linear functions of features: between two knots a line, beyond the first and the last one constant.

Every value is computed by itself, so neither chunks nor threads change a bit. Results never fall where values grow
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


# Rows whose values of one feature are searched side by side: no branch depends on a value, and none is mispredicted.
_TILE = 32


@kernel(inline="always")
def _between(x, low, knot, height):
    """The function at x, between the knots low and low + 1 or at one of them."""
    high = low + np.uint32(1)
    unit = 1.0 if knot[high] - knot[low] < np.inf else 0.5  # knots may be too far apart for float64
    share = (unit * x - unit * knot[low]) / (unit * knot[high] - unit * knot[low])
    inside = min(height[low] + (height[high] - height[low]) * share, height[high])
    return height[high] if x >= knot[high] else inside


@kernel(inline="always")
def _step(x, low, half, knot):
    """The later knot of two if it is not above x."""
    return low + half if x >= knot[low + half] else low


def _rows(X, start, knot, height, out, first, last):
    """Rows first..last-1 of ``out``."""
    low, x = np.empty(_TILE, np.uint32), np.empty(_TILE)
    for top in range(first, last, _TILE):
        size = min(_TILE, last - top)
        for feature in range(X.shape[1]):
            begin, end = np.uint32(start[feature]), np.uint32(start[feature + 1] - 1)
            for i in range(_TILE):
                low[i], x[i] = begin, knot[begin]
            for i in range(size):
                x[i] = min(max(np.float64(X[top + i, feature]), knot[begin]), knot[end])
            ahead = end - begin
            while ahead > np.uint32(1):
                half = ahead >> np.uint32(1)
                for i in range(_TILE):
                    low[i] = _step(x[i], low[i], half, knot)
                ahead -= half
            if end > begin:
                for i in range(_TILE):
                    x[i] = _between(x[i], low[i], knot, height)
            else:
                for i in range(_TILE):
                    x[i] = height[begin]
            for i in range(size):
                out[top + i, feature] = x[i]


def _values(x, feature, start, knot, height, out):
    """The value of x[i] as one of feature[i]."""
    for i in range(len(x)):
        low, end = np.uint32(start[feature[i]]), np.uint32(start[feature[i] + 1] - 1)
        own, ahead = min(max(x[i], knot[low]), knot[end]), end - low
        while ahead > np.uint32(1):
            half = ahead >> np.uint32(1)
            low = _step(own, low, half, knot)
            ahead -= half
        out[i] = _between(own, low, knot, height) if end > low else height[low]


@cache
def _on_rows(dtype: "np.dtype[Any]") -> Any:
    """The loop over rows of this type, compiled at its first use."""
    out = types.Array(types.float32 if dtype == np.float32 else types.float64, 2, "C")
    given = features_in(dtype), INTS_IN, FLOATS_IN, FLOATS_IN, out, types.int64, types.int64
    return compiled(kernel(_rows), types.void(*given))


@cache
def _on_values() -> Any:
    return compiled(kernel(_values), types.void(FLOATS_IN, INTS_IN, INTS_IN, FLOATS_IN, FLOATS_IN, FLOATS))


def interpolate_rows(
    X: NDArray[Any], start: Wholes, knot: Vector, height: Vector, n_jobs: int | None = None
) -> NDArray[Any]:
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
    n_jobs : int, default=None
        Number of threads; None uses all cores.

    Returns
    -------
    ndarray
        As X in shape and type.
    """
    out = np.empty(X.shape, X.dtype)
    step = max(1, parallel.CHUNK // max(1, X.shape[1]))
    chunks = [(first, min(first + step, len(X))) for first in range(0, len(X), step)]
    parallel.map_chunks(partial(_on_rows(X.dtype), np.ascontiguousarray(X), start, knot, height, out), chunks, n_jobs)
    return out


def interpolate(x: Vector, feature: Wholes, start: Wholes, knot: Vector, height: Vector) -> Vector:
    """The function of feature[i] at x[i], for every i, as :func:`interpolate_rows` has them."""
    out = np.empty(len(x))
    _on_values()(x, feature, start, knot, height, out)
    return out
