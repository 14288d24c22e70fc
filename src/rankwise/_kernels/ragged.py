"""Sort the ties of every query of a ragged array, number its grades, and measure it by many columns of keys.

The order of a query is given by row numbers, its ties by ``end``: positions t .. end[t]-1 hold equal keys, for every t
at which a block begins. A query without ties has ``end[t] = t + 1``.
"""

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels.machine.jit import kernel
from rankwise._kernels.sorting import sort_carrying

Ints = NDArray[np.int64]

# Shorter blocks are sorted by insertion, which needs no call; longer ones than the other by a sort in O(m log m).
_SHORT, _LONG = 16, 512
# Different values of a long block that are sorted one after the other: five grades are common.
_PASSES = 6


@kernel
def _sort_long(value):
    """Sort a long array in place, ascending, in O(m log m)."""
    size = len(value)
    place = np.empty(size, np.int64)
    for p in range(size):
        place[p] = p
    sort_carrying(value, place, np.empty(size), np.empty(size, np.int64), np.empty(size + 1, np.int64))


@kernel
def _sort_range(value, first, last):
    """Sort value[first:last] in place, ascending.

    Gains have few different values: each pass brings the smallest one to the front. Other values are left to Shell's
    sort, and few values to insertion. numba's own sort takes 0.8 seconds to compile and is no faster here.
    """
    passes = 0
    while last - first > _SHORT and passes < _PASSES:
        lowest = value[first]
        for p in range(first + 1, last):
            lowest = value[p] if value[p] < lowest else lowest
        for p in range(first, last):
            if value[p] == lowest:
                value[p] = value[first]
                value[first] = lowest
                first += 1
        passes += 1
    if last - first > _LONG:
        _sort_long(value[first:last])
        return
    gap = 1
    while gap * _SHORT < last - first:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(first + gap, last):
            v = value[i]
            j = i
            while j - gap >= first and value[j - gap] > v:
                value[j] = value[j - gap]
                j -= gap
            value[j] = v
        gap //= 3


@kernel(inline="always")
def sort_blocks(value, end, descending):
    """Sort ``value`` inside each block of ties, in place."""
    t = np.int64(0)  # of a literal the sort would be compiled once more
    while t < len(value):
        e = end[t]
        if e - t > 1:
            _sort_range(value, t, e)
            if descending:
                for p in range((e - t) // 2):
                    value[t + p], value[e - 1 - p] = value[e - 1 - p], value[t + p]
        t = e


# Fewer largest values than this are kept sorted by insertion: one comparison for most values, since most are smaller.
_FEW = 32


@kernel(inline="always")
def largest(value, top):
    """The ``len(top)`` largest values into ``top``, decreasing."""
    if len(top) > _FEW:
        everything = np.empty(len(value))
        for p in range(len(value)):
            everything[p] = value[p]
        _sort_range(everything, np.int64(0), len(value))
        for p in range(len(top)):
            top[p] = everything[len(value) - 1 - p]
        return
    kept = 0
    for p in range(len(value)):
        v = value[p]
        if kept < len(top):
            j = kept
            kept += 1
        elif v > top[kept - 1]:
            j = kept - 1
        else:
            continue
        while j > 0 and top[j - 1] < v:
            top[j] = top[j - 1]
            j -= 1
        top[j] = v


# ------------------------------------------------------------------------------------------------------------- grades

# Labels that are whole numbers below this, as grades are, are classes themselves.
GRADES = 64


@kernel(inline="always")
def number_classes(classes, number, buffer):
    """Fill ``number`` with the rank of every class among those of the query, 0 for the lowest; returns how many.

    ``buffer`` has a place for every class and one more.
    """
    most = 0
    for p in range(len(classes)):
        most = max(most, classes[p])
    for c in range(most + 1):
        buffer[c] = 0
    for p in range(len(classes)):
        buffer[classes[p]] = 1
    found = 0
    for c in range(most + 1):
        found += buffer[c]
        buffer[c] = found - 1
    for p in range(len(classes)):
        number[p] = buffer[classes[p]]
    return found


@kernel
def _number_grades(key, number):
    """The levels of integers below 64, as grades are, by counting; 0 where another key is found."""
    level = np.empty(GRADES, np.int64)
    for grade in range(GRADES):
        level[grade] = 0
    for p in range(len(key)):
        x = key[p]
        if not (0.0 <= x < GRADES and x == np.floor(x)):
            return 0
        level[int(x)] = 1
    found = 0
    for grade in range(GRADES):
        found += level[grade]
        level[grade] = found - 1
    for p in range(len(key)):
        number[p] = level[int(key[p])]
    return found


@kernel
def number_levels(key, number):
    """Fill ``number`` with the level of every key, 0 for the lowest; returns the number of levels.

    Grades are counted, other keys are sorted.
    """
    found = _number_grades(key, number)
    if found > 0:
        return found
    size = len(key)
    ordered, place = np.empty(size), np.empty(size, np.int64)
    for p in range(size):
        ordered[p], place[p] = key[p], p
    sort_carrying(ordered, place, np.empty(size), np.empty(size, np.int64), np.empty(size + 1, np.int64))
    level = 0
    number[place[0]] = 0
    for p in range(1, size):
        level += ordered[p] != ordered[p - 1]
        number[place[p]] = level
    return level + 1


@kernel
def number_lists(start, rows, classes, level, n_levels, pairs):
    """The levels of the labels of every query, in query order, their number, and the number of pairs that differ.

    ``classes`` are those of :func:`rankwise.losses.compute.label_classes`.
    """
    longest = 0
    for q in range(len(start) - 1):
        longest = max(longest, start[q + 1] - start[q])
    longest = max(longest, GRADES)
    own, buffer, members = np.empty(longest, np.int64), np.empty(longest + 1, np.int64), np.empty(longest)
    for q in range(len(start) - 1):
        low, size = start[q], start[q + 1] - start[q]
        if size == 0:
            continue
        for p in range(size):
            own[p] = classes[low + p if len(rows) == 0 else rows[low + p]]
        numbers = level[low : low + size]
        n_levels[q] = number_classes(own[:size], numbers, buffer)
        for c in range(n_levels[q]):
            members[c] = 0.0
        for p in range(size):
            members[numbers[p]] += 1.0
        alike = 0.0  # whole numbers: exact in any order
        for c in range(n_levels[q]):
            alike += members[c] * members[c]
        pairs[q] = (size * size - alike) / 2.0


# ------------------------------------------------------------------------------------------------------------ columns


@kernel
def gather_columns(X, rows, first, out):
    """out[j, i] = X[rows[i], first + j], in float64."""
    for i in range(len(rows)):
        row = rows[i]
        for j in range(len(out)):
            out[j, i] = X[row, first + j]


@kernel
def measure_columns(kernel, start, keys, order, value, tied, needs_ideal, table, params, out):
    """out[j, q] = the measure of query q in decreasing order of keys[j].

    Every query is stored in ascending order of its values. A stable order by decreasing key then leaves the values of
    every block of ties ascending, and the largest values stand at the end: neither has to be sorted for each column.

    Parameters
    ----------
    kernel : typed function
        The kernel of the measure.
    start : ndarray of int64, shape (n_queries + 1,)
        Query q has the documents start[q] .. start[q+1]-1.
    keys : ndarray of float64, shape (n_columns, n_documents)
        The keys of every column.
    order : ndarray of int64, shape (n_documents,)
        The place of every value inside its query.
    value : ndarray of float64, shape (n_documents,)
        The gains, ascending inside a query.
    tied : bool
        Whether the kernel sees blocks of ties; otherwise every block is cut into blocks of one, lowest value first.
    needs_ideal : bool
        Whether the kernel needs the largest values.
    table, params : ndarray of float64
        The other arguments of the kernel; params[0] is a cut-off.
    out : ndarray of float64, shape (n_columns, n_queries)
        Receives the measures.
    """
    longest = 0
    for q in range(len(start) - 1):
        longest = max(longest, start[q + 1] - start[q])
    ranked_buffer, ideal_buffer = np.empty(longest), np.empty(longest)
    key_buffer, spare_buffer = np.empty(longest), np.empty(longest)
    place_buffer, other_buffer = np.empty(longest, np.int64), np.empty(longest, np.int64)
    end_buffer, count_buffer = np.empty(longest, np.int64), np.empty(longest + 1, np.int64)
    alone = np.empty(longest, np.int64)
    for p in range(longest):
        alone[p] = p + 1
    for q in range(len(start) - 1):
        low = start[q]
        size = start[q + 1] - low
        own = value[low : low + size]
        best = own
        if needs_ideal:
            best = ideal_buffer[: int(min(float(size), params[0]))]
            for p in range(len(best)):
                best[p] = own[size - 1 - p]
        ranked, key, place = ranked_buffer[:size], key_buffer[:size], place_buffer[:size]
        end = end_buffer[:size] if tied else alone[:size]
        for j in range(len(keys)):
            for p in range(size):
                key[p] = -keys[j, low + order[low + p]]
                place[p] = p
            sort_carrying(key, place, spare_buffer, other_buffer, count_buffer)
            for p in range(size):
                ranked[p] = own[place[p]]
            if tied:
                _find_blocks(key, end)
            out[j, q] = kernel(ranked, end, size, best, table, params)


@kernel(inline="always")
def _find_blocks(key, end):
    """end[t] = the end of the run of equal keys that t belongs to."""
    block = 0
    for p in range(1, len(key) + 1):
        if p == len(key) or key[p] != key[p - 1]:
            for t in range(block, p):
                end[t] = p
            block = p
