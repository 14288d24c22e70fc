"""A stable sort that carries row numbers along, linear on keys that are spread out and O(m log m) on any.

It is written by hand because numba's ``argsort`` compares through an index and mispredicts half of its branches: on
queries of a hundred documents it takes several times as long. Keys are first dealt into as many equal buckets as there
are keys, which leaves them nearly sorted; insertion finishes the work, within a budget; what exceeds it (keys in
clumps) is sorted by merging.
"""

import numpy as np

from rankwise._kernels.jit import kernel

# Moves that insertion may make for each key before merging takes over.
_BUDGET = 8
_RUN = 8


@kernel
def sort_carrying(key, place, key_buffer, place_buffer, count_buffer):
    """Sort ``key`` ascending, ties in their order, and ``place`` with it.

    The buffers are overwritten: two as long as ``key``, and ``count_buffer`` of integers, longer by one.
    """
    size = len(key)
    if size < 2:
        return
    if size > 2 * _RUN:
        _deal(key, place, key_buffer, place_buffer, count_buffer)
    if not _insert(key, place, _BUDGET * size):
        _merge(key, place, key_buffer, place_buffer)


@kernel
def _deal(key, place, key_buffer, place_buffer, count):
    """One pass of a bucket sort: stable, and the buckets are in order because rounding is monotone."""
    size = len(key)
    lowest, highest = key[0], key[0]
    for i in range(1, size):
        lowest = min(lowest, key[i])
        highest = max(highest, key[i])
    scale = (size - 1) / (highest - lowest)
    if not (highest > lowest and 0.0 < scale < np.inf):  # all equal, or too far apart or too close to tell
        return
    for b in range(size + 1):
        count[b] = 0
    for i in range(size):
        count[int((key[i] - lowest) * scale) + 1] += 1
    for b in range(1, size):
        count[b] += count[b - 1]
    for i in range(size):
        b = int((key[i] - lowest) * scale)
        to = count[b]
        count[b] = to + 1
        key_buffer[to] = key[i]
        place_buffer[to] = place[i]
    key[:] = key_buffer
    place[:] = place_buffer


@kernel
def _insert(key, place, budget):
    """Insertion sort; returns False once the budget is spent, with some keys sorted and ties still in their order."""
    moves = 0
    for i in range(1, len(key)):
        k = key[i]
        if key[i - 1] > k:
            p = place[i]
            j = i
            while j > 0 and key[j - 1] > k:
                key[j] = key[j - 1]
                place[j] = place[j - 1]
                j -= 1
            key[j] = k
            place[j] = p
            moves += i - j
            if moves > budget:
                return False
    return True


@kernel
def _merge(key, place, key_buffer, place_buffer):
    """Merge sort from the bottom up."""
    size = len(key)
    for low in range(0, size, _RUN):
        high = min(low + _RUN, size)
        _insert(key[low:high], place[low:high], _RUN * _RUN)
    from_key, from_place, to_key, to_place = key, place, key_buffer, place_buffer
    width = _RUN
    swapped = False
    while width < size:
        for low in range(0, size, 2 * width):
            middle = min(low + width, size)
            high = min(low + 2 * width, size)
            i, j = low, middle
            for out in range(low, high):
                if j >= high or (i < middle and from_key[i] <= from_key[j]):
                    to_key[out] = from_key[i]
                    to_place[out] = from_place[i]
                    i += 1
                else:
                    to_key[out] = from_key[j]
                    to_place[out] = from_place[j]
                    j += 1
        from_key, from_place, to_key, to_place = to_key, to_place, from_key, from_place
        swapped = not swapped
        width *= 2
    if swapped:
        key[:] = key_buffer
        place[:] = place_buffer
