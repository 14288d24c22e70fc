"""Radii of queries: how far the rows of a query lie from 0 or from their mean."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels.dot_products import add_rows
from rankwise._kernels.machine.jit import kernel


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
