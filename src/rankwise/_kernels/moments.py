"""Sums of z z' over rows z = (1, x, g), the only thing about millions of rows that a least squares problem needs.

Written out rather than left to BLAS: a product of BLAS has other bits on one and on two threads, needs X copied to
float64, and does not know that its result is symmetric. One thread of this takes half of the time of one of OpenBLAS.
"""

from functools import cache
from typing import Any

import numpy as np
from numba import types

from rankwise._kernels.jit import compiled, kernel

# Rows that are gathered before their products are added, a multiple of eight.
_GATHERED = 64
# The part of the sums that is worked on at a time, so that it stays in cache however many features there are.
_TALL, _WIDE = 32, 512


@kernel(fastmath={"contract"})
def _add_eight(z, often, k, top, bottom, left, right, out):
    """Add the products of rows k..k+7 to rows top..bottom-1 and columns left..right-1 of the upper triangle."""
    for a in range(top, bottom):
        low = max(a, left)
        f0, f1 = z[k, a] * often[k], z[k + 1, a] * often[k + 1]
        f2, f3 = z[k + 2, a] * often[k + 2], z[k + 3, a] * often[k + 3]
        f4, f5 = z[k + 4, a] * often[k + 4], z[k + 5, a] * often[k + 5]
        f6, f7 = z[k + 6, a] * often[k + 6], z[k + 7, a] * often[k + 7]
        z0, z1, z2, z3 = z[k, low:right], z[k + 1, low:right], z[k + 2, low:right], z[k + 3, low:right]
        z4, z5, z6, z7 = z[k + 4, low:right], z[k + 5, low:right], z[k + 6, low:right], z[k + 7, low:right]
        own = out[a, low:right]
        for b in range(len(own)):
            own[b] += ((f0 * z0[b] + f1 * z1[b]) + (f2 * z2[b] + f3 * z3[b])) + (
                (f4 * z4[b] + f5 * z5[b]) + (f6 * z6[b] + f7 * z7[b])
            )


@kernel
def _add_gathered(z, often, count, out):
    """Add the products of the first ``count`` rows; those that fill up the last eight count 0 times."""
    z[count:], often[count:] = 0.0, 0.0
    width = out.shape[1]
    for left in range(0, width, _WIDE):
        right = min(left + _WIDE, width)
        for top in range(0, right, _TALL):
            for k in range(0, count, 8):
                _add_eight(z, often, k, top, min(top + _TALL, right), left, right, out)


def _moments(first, last, rows, X, label, target, weight, shift, factor, out):
    """Add z z' of the rows at places first..last-1 to out[0], or to out[1] where the label is above 0.

    z = (1, (x - shift) factor, target). ``rows`` empty: places are rows; ``weight`` empty: every row counts once. Only
    the upper triangles are written.
    """
    width = X.shape[1] + 2
    z, often, count = np.zeros((2, _GATHERED, width)), np.zeros((2, _GATHERED)), np.zeros(2, np.int64)
    for place in range(first, last):
        row = place if len(rows) == 0 else rows[place]
        part = 1 if label[row] > 0 else 0
        own = z[part, count[part]]
        own[0] = 1.0
        for j in range(width - 2):
            own[j + 1] = (X[row, j] - shift[j]) * factor[j]
        own[width - 1] = target[row]
        often[part, count[part]] = 1.0 if len(weight) == 0 else weight[row]
        count[part] += 1
        if count[part] == _GATHERED:
            _add_gathered(z[part], often[part], _GATHERED, out[part])
            count[part] = 0
    for part in range(2):
        _add_gathered(z[part], often[part], count[part], out[part])


_floats_in = types.Array(types.float64, 1, "C", readonly=True)
_ints_in = types.Array(types.int64, 1, "C", readonly=True)


@cache
def moments_on(dtype: np.dtype[Any]) -> Any:
    """The sums compiled for this type of X."""
    X = types.Array(types.float32 if dtype == np.float32 else types.float64, 2, "C", readonly=True)
    given = (types.int64, types.int64, _ints_in, X, *(_floats_in,) * 5)
    return compiled(kernel(_moments), types.void(*given, types.Array(types.float64, 3, "C")))
