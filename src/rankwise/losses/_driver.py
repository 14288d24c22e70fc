"""The one compiled loop over lists that runs any loss's formula."""

import numpy as np
from numba import types

from rankwise._kernels.jit import compiled, kernel

_floats = types.Array(types.float64, 1, "C")
_floats_in = types.Array(types.float64, 1, "C", readonly=True)
_ints_in = types.Array(types.int64, 1, "C", readonly=True)

# score, label, value, grad, table, knobs
FORMULA = types.float64(_floats, _floats, _floats, _floats, _floats_in, _floats_in)


@kernel
def _loss_lists(formula, first, last, start, rows, score, label, value, table, knobs, out, gradient):
    longest = 0
    for q in range(first, last):
        longest = max(longest, start[q + 1] - start[q])
    room = np.empty((4, longest))
    for q in range(first, last):
        low = start[q]
        size = start[q + 1] - low
        s, y, v, g = room[0, :size], room[1, :size], room[2, :size], room[3, :size]
        for p in range(size):
            row = low + p if len(rows) == 0 else rows[low + p]
            s[p] = score[row]
            y[p] = label[row]
            v[p] = value[row]
            g[p] = 0.0
        out[q] = formula(s, y, v, g, table, knobs) if size > 0 else 0.0
        for p in range(size):
            gradient[low + p if len(rows) == 0 else rows[low + p]] = g[p]


loss_range = compiled(
    _loss_lists,
    types.void(
        types.FunctionType(FORMULA),
        types.int64,
        types.int64,
        _ints_in,
        _ints_in,
        _floats_in,
        _floats_in,
        _floats_in,
        _floats_in,
        _floats_in,
        _floats,
        _floats,
    ),
)
