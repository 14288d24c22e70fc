"""Measure every list by many columns of keys: gather the columns, order each list by each, call a formula.

Every list is taken in ascending order of its values. A stable order by decreasing key then leaves the values of every
tie block ascending, and the largest values stand at the end: neither is sorted for, column after column.
"""

import numpy as np

from rankwise._kernels.jit import kernel
from rankwise._kernels.sorting import sort_carrying


@kernel
def gather_columns(X, rows, first, out):
    """out[j, i] = X[rows[i], first + j], in float64."""
    for i in range(len(rows)):
        row = rows[i]
        for j in range(len(out)):
            out[j, i] = X[row, first + j]


@kernel
def measure_columns(formula, start, keys, order, value, tied, needs_ideal, table, knobs, out):
    """out[j, q] = formula of list q in decreasing order of keys[j], whose documents are start[q] .. start[q+1]-1.

    ``value`` is ascending inside a list, and ``order`` says at which of its places. ``tied`` shows the formula blocks
    of equal keys; otherwise every block is cut into blocks of one, lowest value first. The other arguments are those of
    the formula, whose first knob is a cut-off.
    """
    longest = 0
    for q in range(len(start) - 1):
        longest = max(longest, start[q + 1] - start[q])
    ranked_room, ideal_room = np.empty(longest), np.empty(longest)
    key_room, spare_room = np.empty(longest), np.empty(longest)
    place_room, other_room = np.empty(longest, np.int64), np.empty(longest, np.int64)
    end_room, count_room = np.empty(longest, np.int64), np.empty(longest + 1, np.int64)
    alone = np.arange(1, longest + 1)
    for q in range(len(start) - 1):
        low = start[q]
        size = start[q + 1] - low
        own = value[low : low + size]
        best = own
        if needs_ideal:
            best = ideal_room[: int(min(float(size), knobs[0]))]
            for p in range(len(best)):
                best[p] = own[size - 1 - p]
        ranked, key, place = ranked_room[:size], key_room[:size], place_room[:size]
        end = end_room[:size] if tied else alone[:size]
        for j in range(len(keys)):
            for p in range(size):
                key[p] = -keys[j, low + order[low + p]]
                place[p] = p
            sort_carrying(key, place, spare_room[:size], other_room[:size], count_room)
            for p in range(size):
                ranked[p] = own[place[p]]
            if tied:
                _find_blocks(key, end)
            out[j, q] = formula(ranked, end, size, best, table, knobs)


@kernel
def _find_blocks(key, end):
    """end[t] = the end of the run of equal keys in which t stands."""
    block = 0
    for p in range(1, len(key) + 1):
        if p == len(key) or key[p] != key[p - 1]:
            end[block:p] = p
            block = p
