"""Scores of small neural networks."""

from functools import cache
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from rankwise._kernels import parallel
from rankwise._kernels.dot_products import dot
from rankwise._kernels.machine.jit import FLOATS, FLOATS_IN, INTS_IN, compiled, features_in, kernel


def _network_range(first, last, X, center, scale, widths, theta, out):
    """Scores of rows first..last-1, at their own places.

    ``widths`` is (number of features, widths of the hidden layers); ``theta`` holds for every hidden layer its matrix,
    row after row, and its biases, then the weights of the output on the last layer and on the standardized features.
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
    parts = [(first, min(first + parallel.CHUNK, len(rows))) for first in range(0, len(rows), parallel.CHUNK)]
    parallel.map_chunks(lambda first, last: score(first, last, *given), parts, n_jobs)
    return scores
