"""The one compiled loop over lists that runs any measure's formula.

It takes the formula as a typed function argument, so that it is compiled and cached once for all measures, third
parties' included.
"""

import numpy as np
from numba import types

from rankwise._kernels.jit import compiled, kernel
from rankwise._kernels.ragged import largest, sort_blocks
from rankwise.measures._base import TIES

_EXPECTED, _OPTIMISTIC, _STABLE = (TIES[mode] for mode in ("expected", "optimistic", "stable"))

_floats = types.Array(types.float64, 1, "C")
_floats_in = types.Array(types.float64, 1, "C", readonly=True)
_ints_in = types.Array(types.int64, 1, "C", readonly=True)

# value, end, retrieved, best, table, knobs
FORMULA = types.float64(_floats, _ints_in, types.int64, _floats, _floats_in, _floats_in)


@kernel
def _formula_lists(formula, start, order, end, retrieved, row_value, ties, needs_ideal, table, knobs, out):
    longest = 0
    for q in range(len(start) - 1):
        longest = max(longest, start[q + 1] - start[q])
    room = np.empty(longest)
    ideal_room = np.empty(longest)
    alone = np.arange(1, longest + 1)
    for q in range(len(start) - 1):
        low = start[q] - start[0]
        size = start[q + 1] - start[q]
        value = room[:size]
        blocks = end[low : low + size]
        for p in range(size):
            value[p] = row_value[order[low + p]]
        if ties != _STABLE:
            sort_blocks(value, blocks, ties == _OPTIMISTIC)
        best = value
        if needs_ideal:
            best = ideal_room[: int(min(float(size), knobs[0]))]
            largest(value, best)
        if ties == _EXPECTED:
            out[q] = formula(value, blocks, retrieved[q], best, table, knobs)
        else:
            out[q] = formula(value, alone[:size], retrieved[q], best, table, knobs)


formula_lists = compiled(
    _formula_lists,
    types.void(
        types.FunctionType(FORMULA),
        _ints_in,
        _ints_in,
        _ints_in,
        _ints_in,
        _floats_in,
        types.int64,
        types.boolean,
        _floats_in,
        _floats_in,
        _floats,
    ),
)
