"""One pass over X for a loss and its gradient: a list is scored, and X' g added while its rows are in cache."""

from functools import cache
from typing import Any

import numpy as np
from numba import types

from rankwise._kernels.jit import compiled, kernel
from rankwise._kernels.rows import add_rows, dot
from rankwise.losses._driver import FORMULA


def _fused_lists(formula, first, last, start, rows, X, label, value, weight, table, knobs, w, gradient):
    """The weighted sum of the loss over lists first..last-1; adds its gradient with respect to w to ``gradient``."""
    longest = 0
    for q in range(first, last):
        longest = max(longest, start[q + 1] - start[q])
    room, places = np.empty((4, longest)), np.empty(longest, np.int64)
    total = 0.0
    for q in range(first, last):
        low, size = start[q], start[q + 1] - start[q]
        often = 1.0 if len(weight) == 0 else weight[q]
        if size == 0 or often == 0.0:
            continue
        s, y, v, g, own = room[0, :size], room[1, :size], room[2, :size], room[3, :size], places[:size]
        for p in range(size):
            row = low + p if len(rows) == 0 else rows[low + p]
            own[p] = row
            s[p] = dot(X[row], w)
            y[p], v[p], g[p] = label[row], value[row], 0.0
        total += often * formula(s, y, v, g, table, knobs)
        g *= often
        add_rows(X, own, g, gradient)
    return total


_floats = types.Array(types.float64, 1, "C")
_floats_in = types.Array(types.float64, 1, "C", readonly=True)
_ints_in = types.Array(types.int64, 1, "C", readonly=True)


@cache
def fused_on(dtype: np.dtype[Any]) -> Any:
    """The pass compiled for this type of X."""
    real = types.float32 if dtype == np.float32 else types.float64
    X = types.Array(real, 2, "C", readonly=True)
    given = (types.FunctionType(FORMULA), types.int64, types.int64, _ints_in, _ints_in, X, *(_floats_in,) * 6)
    return compiled(kernel(_fused_lists), types.float64(*given, _floats))
