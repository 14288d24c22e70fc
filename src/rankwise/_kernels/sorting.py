"""A stable sort that carries row numbers along, linear on keys that are spread out and O(m log m) on any.

It is written by hand because numba's ``argsort`` compares through an index and mispredicts half of its branches: on
queries of a hundred documents it takes several times as long. Keys are first dealt into as many equal buckets as there
are keys, which leaves them nearly sorted; insertion finishes the work, within a budget; what exceeds it (keys in
clumps) is sorted by merging.
"""

import numpy as np

from rankwise._kernels.machine.jit import kernel

# Moves that insertion may make for each key before merging takes over.
_BUDGET = 8
_RUN = 8


@kernel
def sort_carrying(key, place, key_buffer, place_buffer, count_buffer):
    """Sort ``key`` ascending, ties in their order, and ``place`` with it.

    The buffers are overwritten: two at least as long as ``key``, and ``count_buffer`` of integers, longer by one.
    """
    size = len(key)
    if size < 2:
        return
    if size > 2 * _RUN:
        _deal(key, place, key_buffer, place_buffer, count_buffer)
    if not _insert(key, place, size, _BUDGET * size):
        _merge(key, place, key_buffer, place_buffer)


# The parts are inlined before types are inferred: one compilation instead of four. Arrays are copied by loops, because
# for an assignment between arrays numba compiles the message of an error that cannot occur, 1.5 seconds of strings.


@kernel(inline="always")
def _deal(key, place, key_buffer, place_buffer, count):
    """One pass of a bucket sort: stable, and the buckets are in order because rounding is monotone."""
    size = len(key)
    lowest, highest = key[0], key[0]
    for i in range(1, size):
        lowest = min(lowest, key[i])
        highest = max(highest, key[i])
    scale = (size - 1) / (highest - lowest)
    if highest > lowest and 0.0 < scale < np.inf:  # not all equal, nor too far apart or too close to tell
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
        for i in range(size):
            key[i] = key_buffer[i]
            place[i] = place_buffer[i]


@kernel(inline="always")
def _insert(key, place, run, budget):
    """Insertion sort of every ``run`` keys; False once the budget is spent, with ties still in their order."""
    moves, low, high = 0, 0, run
    for i in range(1, len(key)):
        if i == high:
            low, high = i, i + run
        k = key[i]
        if i > low and key[i - 1] > k:
            p = place[i]
            j = i
            while j > low and key[j - 1] > k:
                key[j] = key[j - 1]
                place[j] = place[j - 1]
                j -= 1
            key[j] = k
            place[j] = p
            moves += i - j
            if moves > budget:
                return False
    return True


@kernel(inline="always")
def _merge(key, place, key_buffer, place_buffer):
    """Merge sort from the bottom up."""
    size, width = len(key), _RUN
    _insert(key, place, width, _RUN * size)
    while width < size:  # there and back again; a second pass with nothing left to merge is a copy
        _merge_runs(key, place, key_buffer, place_buffer, width)
        _merge_runs(key_buffer, place_buffer, key, place, 2 * width)
        width *= 4


@kernel(inline="always")
def _merge_runs(from_key, from_place, to_key, to_place, width):
    """Merge neighboring runs of this width."""
    size = min(len(from_key), len(to_key))  # one of them may be a longer buffer
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
