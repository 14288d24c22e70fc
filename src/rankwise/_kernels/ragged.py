"""Order every list of a ragged array, and find its blocks of equal keys.

A list's order is given by row numbers, its ties by ``end``: positions t .. end[t]-1 hold equal keys, for every t at
which a block begins. A list without ties has ``end[t] = t + 1``.
"""

import numpy as np

from rankwise._kernels.jit import kernel


@kernel
def order_lists(first, last, start, rows, key, order, end):
    """Rows of lists first..last-1 by decreasing key, equal keys in the order of ``rows``; with their tie blocks.

    ``rows`` may have length 0: then list q owns rows start[q] .. start[q+1]-1. ``order`` and ``end`` hold the
    documents of these lists alone, the first of them at place 0; ``end`` counts from each list's own beginning.
    """
    base = start[first]
    for q in range(first, last):
        low = start[q]
        size = start[q + 1] - low
        negated = np.empty(size)
        for p in range(size):
            negated[p] = -key[low + p if len(rows) == 0 else rows[low + p]]
        places = np.argsort(negated, kind="mergesort")
        out = low - base
        block = 0
        for p in range(size):
            order[out + p] = low + places[p] if len(rows) == 0 else rows[low + places[p]]
            if p > 0 and negated[places[p]] != negated[places[p - 1]]:
                for t in range(block, p):
                    end[out + t] = p
                block = p
        for t in range(block, size):
            end[out + t] = size


@kernel
def sort_blocks(value, end, descending):
    """Sort ``value`` inside each tie block, in place."""
    t = 0
    while t < len(value):
        e = end[t]
        if e - t > 1:
            part = value[t:e]
            part.sort()
            if descending:
                part[:] = part[::-1].copy()
        t = e
