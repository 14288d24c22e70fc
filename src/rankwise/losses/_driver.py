"""The one compiled loop over lists that runs any loss's formula."""

import numpy as np
from numba import types

from rankwise._kernels.jit import compiled, kernel

_floats = types.Array(types.float64, 1, "C")
_floats_in = types.Array(types.float64, 1, "C", readonly=True)
_ints_in = types.Array(types.int64, 1, "C", readonly=True)

# score, label, value, grad, table, knobs
FORMULA = types.float64(_floats_in, _floats_in, _floats_in, _floats, _floats_in, _floats_in)


@kernel
def _loss_lists(formula, first, last, start, rows, score, label, value, table, knobs, out, gradient):
    """Values into ``out``, the gradient into ``gradient``, which holds zeros; no ``rows``: lists stand together."""
    if len(rows) == 0:
        for q in range(first, last):
            own = slice(start[q], start[q + 1])
            if start[q] < start[q + 1]:
                out[q] = formula(score[own], label[own], value[own], gradient[own], table, knobs)
        return
    for q in range(first, last):
        mine = rows[start[q] : start[q + 1]]
        if len(mine) > 0:
            part = np.zeros(len(mine))
            out[q] = formula(score[mine], label[mine], value[mine], part, table, knobs)
            gradient[mine] = part


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
