"""Sums over pairs of rows whose levels differ and whose scores are within reach: the products of their Laplacian.

Rows i and j of a list are joined where level_i > level_j and 1 + s_j - s_i > 0. In the order of decreasing scores the
rows joined to i, by their scores alone, are the first reach_i ones; both sweeps below use nothing else, so that the
matrix is symmetric to the last pair. A Fenwick tree over the levels sums up who has come in: O(m log m) a list.
"""

from functools import cache
from typing import Any

import numpy as np
from numba import types

from rankwise._kernels.jit import compiled, kernel
from rankwise._kernels.levels import number_levels
from rankwise._kernels.rows import add_rows, dot
from rankwise._kernels.sorting import sort_carrying


@kernel
def number_lists(start, rows, label, level, n_levels, pairs):
    """Levels of the labels of every list, in list order; how many there are; and how many pairs of rows differ."""
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


def _find_windows(first, last, start, rows, X, share, w, place, reach):
    """Of lists first..last-1, the places by decreasing score, and for each how many of them come before score - 1."""
    for q in range(first, last):
        low, size = start[q], start[q + 1] - start[q]
        if share[q] == 0.0:
            continue
        score, key, order = np.empty(size), np.empty(size), place[low : low + size]
        for p in range(size):
            score[p] = dot(X[low + p if len(rows) == 0 else rows[low + p]], w)
            key[p] = -score[p]
            order[p] = p
        sort_carrying(key, order, np.empty(size), np.empty(size, np.int64), np.empty(size + 1, np.int64))
        entered = 0
        for p in range(size):
            while entered < size and 1.0 + (score[order[entered]] - score[order[p]]) > 0.0:
                entered += 1
            reach[low + p] = entered


@kernel
def _enter(tree, at, a):
    """Add a row of this level to a Fenwick tree of (number, sum of a)."""
    at += 1
    while at < len(tree):
        tree[at, 0] += 1.0
        tree[at, 1] += a
        at += at & -at


@kernel
def _differences(tree, at, a):
    """The sum of a - a_j over the rows j below this level."""
    number, total = 0.0, 0.0
    while at > 0:
        number += tree[at, 0]
        total += tree[at, 1]
        at -= at & -at
    return number * a - total


@kernel
def laplacian(place, reach, level, n_levels, a, out):
    """out_i = sum of a_i - a_j over all j that i is joined to."""
    size, top = len(a), n_levels - 1
    tree = np.zeros((n_levels + 1, 2))
    entered = 0
    for p in range(size):  # with lower levels, from the highest score down
        i = place[p]
        while entered < reach[p]:
            _enter(tree, level[place[entered]], a[place[entered]])
            entered += 1
        out[i] = _differences(tree, level[i], a[i])
    tree[:] = 0.0
    entered = size
    for p in range(size - 1, -1, -1):  # with higher ones, from the lowest score up
        j = place[p]
        while entered > 0 and reach[entered - 1] > p:
            entered -= 1
            _enter(tree, top - level[place[entered]], a[place[entered]])
        out[j] += _differences(tree, top - level[j], a[j])


def _add_products(first, last, start, rows, X, share, level, n_levels, place, reach, v, out):
    """Add sum_q share_q X_q' L_q X_q v over lists first..last-1, a list's rows met twice while they are in cache."""
    longest = 0
    for q in range(first, last):
        longest = max(longest, start[q + 1] - start[q])
    room, row_room = np.empty((2, longest)), np.empty(longest, np.int64)
    for q in range(first, last):
        low, size = start[q], start[q + 1] - start[q]
        if share[q] == 0.0:
            continue
        own, a, h, mine = slice(low, low + size), room[0, :size], room[1, :size], row_room[:size]
        for p in range(size):
            mine[p] = low + p if len(rows) == 0 else rows[low + p]
            a[p] = dot(X[mine[p]], v)
        a -= a.mean()  # a shift changes nothing but the rounding
        laplacian(place[own], reach[own], level[own], n_levels[q], a, h)
        h *= share[q]
        add_rows(X, mine, h, out)


_floats = types.Array(types.float64, 1, "C")
_floats_in = types.Array(types.float64, 1, "C", readonly=True)
_ints = types.Array(types.int64, 1, "C")
_ints_in = types.Array(types.int64, 1, "C", readonly=True)


def _shared(dtype: np.dtype[Any]) -> tuple[Any, ...]:
    """Types of first, last, start, rows, X and share."""
    real = types.float32 if dtype == np.float32 else types.float64
    return types.int64, types.int64, _ints_in, _ints_in, types.Array(real, 2, "C", readonly=True), _floats_in


@cache
def find_windows_on(dtype: np.dtype[Any]) -> Any:
    """:func:`_find_windows` compiled for this type of X."""
    return compiled(kernel(_find_windows), types.void(*_shared(dtype), _floats_in, _ints, _ints))


@cache
def add_products_on(dtype: np.dtype[Any]) -> Any:
    """:func:`_add_products` compiled for this type of X."""
    return compiled(kernel(_add_products), types.void(*_shared(dtype), *(_ints_in,) * 4, _floats_in, _floats))
