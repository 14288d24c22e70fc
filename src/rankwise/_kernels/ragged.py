"""Order every query of a ragged array, find its ties, number its grades, and measure it by many columns of keys.

The order of a query is given by row numbers, its ties by ``end``: positions t .. end[t]-1 hold equal keys, for every t
at which a block begins. A query without ties has ``end[t] = t + 1``.
"""

import numpy as np

from rankwise._kernels.jit import kernel
from rankwise._kernels.sorting import sort_carrying

# Shorter blocks are sorted by insertion, which needs no call.
_SHORT = 16


@kernel
def order_lists(first, last, start, rows, key, order, end, finite):
    """Order the rows of queries first..last-1 by decreasing key, ties in the order of ``rows``, and find the ties.

    Parameters
    ----------
    first, last : int
        The range of queries.
    start, rows : ndarray of int64
        The layout; ``rows`` is empty where query q owns rows start[q] .. start[q+1]-1.
    key : ndarray of float64
        The keys, by row.
    order : ndarray of int64
        Receives the rows of these queries alone, the first of them at place 0.
    end : ndarray of int64
        Receives the ends of the blocks of ties, counted from each query's own beginning.
    finite : ndarray of int64
        Receives, for each query, how many keys are above -inf.

    Returns
    -------
    tied : bool
        Whether any two keys of a query are equal.
    """
    tied = False
    longest = 0
    for q in range(first, last):
        longest = max(longest, start[q + 1] - start[q])
    negated_buffer, key_buffer = np.empty(longest), np.empty(longest)
    place_buffer, count_buffer = np.empty(longest, np.int64), np.empty(longest + 1, np.int64)
    for q in range(first, last):
        low = start[q]
        size = start[q + 1] - low
        out = low - start[first]
        negated = negated_buffer[:size]
        place = order[out : out + size]
        if len(rows) == 0:
            for p in range(size):
                place[p] = low + p
                negated[p] = -key[low + p]
        else:
            for p in range(size):
                place[p] = rows[low + p]
                negated[p] = -key[rows[low + p]]
        sort_carrying(negated, place, key_buffer[:size], place_buffer[:size], count_buffer)
        block = 0
        for p in range(1, size + 1):
            if p == size or negated[p] != negated[p - 1]:
                tied |= p - block > 1
                for t in range(block, p):
                    end[out + t] = p
                block = p
        present = size
        while present > 0 and negated[present - 1] == np.inf:
            present -= 1
        finite[q - first] = present
    return tied


@kernel
def sort_blocks(value, end, descending):
    """Sort ``value`` inside each block of ties, in place."""
    t = 0
    while t < len(value):
        e = end[t]
        if e - t > _SHORT:
            value[t:e].sort()
        elif e - t > 1:
            for i in range(t + 1, e):
                v = value[i]
                j = i
                while j > t and value[j - 1] > v:
                    value[j] = value[j - 1]
                    j -= 1
                value[j] = v
        if descending:
            reverse(value[t:e])
        t = e


@kernel
def reverse(value):
    """Reverse an array in place."""
    size = len(value)
    for p in range(size // 2):
        value[p], value[size - 1 - p] = value[size - 1 - p], value[p]


# Fewer largest values than this are kept sorted by insertion: one comparison for most values, since most are smaller.
_FEW = 32


@kernel
def largest(value, top):
    """The ``len(top)`` largest values into ``top``, decreasing."""
    if len(top) > _FEW:
        everything = value.copy()
        everything.sort()
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

_GRADES = 64  # integers below this are counted


@kernel
def _number_grades(key, number):
    """The levels of integers below 64, as grades are, by counting; 0 where another key is found."""
    level = np.zeros(_GRADES, np.int64)
    for x in key:
        if not (0.0 <= x < _GRADES and x == np.floor(x)):
            return 0
        level[int(x)] = 1
    found = 0
    for grade in range(_GRADES):
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
    ordered = key.copy()
    place = np.arange(size)
    sort_carrying(ordered, place, np.empty(size), np.empty(size, np.int64), np.empty(size + 1, np.int64))
    level = 0
    number[place[0]] = 0
    for p in range(1, size):
        level += ordered[p] != ordered[p - 1]
        number[place[p]] = level
    return level + 1


@kernel
def number_lists(start, rows, label, level, n_levels, pairs):
    """The levels of the labels of every query, in query order, their number, and the number of pairs that differ."""
    for q in range(len(start) - 1):
        size = start[q + 1] - start[q]
        if size == 0:
            continue
        own = label[start[q] : start[q + 1]] if len(rows) == 0 else label[rows[start[q] : start[q + 1]]]
        numbers = level[start[q] : start[q + 1]]
        n_levels[q] = number_levels(own, numbers)
        members = np.zeros(n_levels[q])
        for p in range(size):
            members[numbers[p]] += 1.0
        pairs[q] = (size * size - (members * members).sum()) / 2.0


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
    alone = np.arange(1, longest + 1)
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
            sort_carrying(key, place, spare_buffer[:size], other_buffer[:size], count_buffer)
            for p in range(size):
                ranked[p] = own[place[p]]
            if tied:
                _find_blocks(key, end)
            out[j, q] = kernel(ranked, end, size, best, table, params)


@kernel
def _find_blocks(key, end):
    """end[t] = the end of the run of equal keys that t belongs to."""
    block = 0
    for p in range(1, len(key) + 1):
        if p == len(key) or key[p] != key[p - 1]:
            end[block:p] = p
            block = p
