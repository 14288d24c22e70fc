"""Scores of sums of symmetric trees, in which all nodes of a level ask the same question.

A tile of rows is brought into bins, a byte per feature in use. The leaf of a row in a tree is then one comparison of
bytes per level, which are made for many rows at once, and a look into a table. The comparison of
:mod:`rankwise._kernels.histograms`, uint8(bin - shift) > limit, holds for the values that go right.

Leaves are added in the order of the trees, beginning with 0: the bits of a score depend on its row alone.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from rankwise._kernels.machine.jit import FLOATS, FLOATS_IN, INTS_IN, compiled, features_in, kernel

# The numbers of leaves fit into a byte.
DEEPEST = 8
# Rows of a tile: few rows are not worth a large one, and find their bins by bisection.
TILE, SMALL_TILE, SMALLEST_TILE = 256, 64, 32


class SymmetricTrees(NamedTuple):
    """Symmetric trees, prepared for the kernel; arrays are read-only.

    Attributes
    ----------
    used : ndarray of int64
        The features in use.
    first_cut : ndarray of int64, shape (n_used + 1,)
        The thresholds of a feature are ``cut[first_cut[n]:first_cut[n + 1]]``, ascending.
    cut : ndarray of float64
        Thresholds, or codes of categories.
    categorical : ndarray of uint8
        1 where the thresholds of a feature are codes.
    start : ndarray of int64, shape (n_trees + 1,)
        The levels of tree t are start[t] .. start[t + 1]-1, the last one first.
    slot : ndarray of int64
        The place of the feature of a level in ``used``.
    shift, limit : ndarray of uint8
        The comparison of a level.
    first_leaf : ndarray of int64, shape (n_trees + 1,)
        The first leaf of every tree.
    value : ndarray of float64
        The leaves of all trees; a leaf has bit l if level l of the order above goes right.
    """

    used: NDArray[np.int64]
    first_cut: NDArray[np.int64]
    cut: NDArray[np.float64]
    categorical: NDArray[np.uint8]
    start: NDArray[np.int64]
    slot: NDArray[np.int64]
    shift: NDArray[np.uint8]
    limit: NDArray[np.uint8]
    first_leaf: NDArray[np.int64]
    value: NDArray[np.float64]


_BYTES_IN = types.Array(types.uint8, 1, "C", readonly=True)
_TREES = types.NamedTuple(
    (INTS_IN, INTS_IN, FLOATS_IN, _BYTES_IN, INTS_IN, INTS_IN, _BYTES_IN, _BYTES_IN, INTS_IN, FLOATS_IN), SymmetricTrees
)


@kernel
def _count_below(value, cut, found):
    """For every value 1 + the number of thresholds below it; 0 for NaN."""
    for r in range(len(found)):
        found[r] = np.uint8(1) if value[r] == value[r] else np.uint8(0)
    for k in range(len(cut)):
        limit = cut[k]
        for r in range(len(found)):
            found[r] += np.uint8(1) if value[r] > limit else np.uint8(0)


@kernel
def _bisect(value, cut, found):
    """The same by bisection."""
    for r in range(len(found)):
        low, size = 0, len(cut)
        while size > 0:
            half = size >> 1
            above = cut[low + half] < value[r]
            low = low + half + 1 if above else low
            size = size - half - 1 if above else half
        found[r] = low + 1 if value[r] == value[r] else 0


@kernel
def _match(value, code, found):
    """For every value 1 + the place of its whole part among the codes; 0 for what is none of them."""
    for r in range(len(found)):
        found[r] = 0
        if -1.0 < value[r] < 2147483648.0:
            whole = np.float64(np.int64(value[r]))
            for k in range(len(code)):
                if code[k] == whole:
                    found[r] = k + 1


@kernel
def _add_trees(trees, bins, leaf, total):
    """Add the leaves of all trees to the rows of a tile."""
    for t in range(len(trees.start) - 1):
        first = trees.start[t]
        leaf[:] = 0
        for level in range(first, trees.start[t + 1]):
            own, shift, limit = bins[trees.slot[level]], trees.shift[level], trees.limit[level]
            bit = np.uint8(1 << (level - first))
            for r in range(len(leaf)):
                leaf[r] |= bit if np.uint8(own[r] - shift) > limit else np.uint8(0)
        base = np.uint64(trees.first_leaf[t])
        for r in range(len(leaf)):
            total[r] += trees.value[base + np.uint64(leaf[r])]


def _score(first, last, X, trees, zero, out):
    """Scores of rows first..last-1; values up to ``zero`` in size count as 0."""
    count = last - first
    rows = SMALLEST_TILE if count <= SMALLEST_TILE else SMALL_TILE if count <= 2 * SMALL_TILE else TILE
    bins, value = np.zeros((len(trees.used), rows), np.uint8), np.zeros(rows)
    leaf, total = np.empty(rows, np.uint8), np.empty(rows)
    for begin in range(first, last, rows):
        size = min(rows, last - begin)
        for n in range(len(trees.used)):
            for r in range(size):
                x = np.float64(X[begin + r, trees.used[n]])
                value[r] = 0.0 if -zero <= x <= zero else x
            cut = trees.cut[trees.first_cut[n] : trees.first_cut[n + 1]]
            if trees.categorical[n] == 1:
                _match(value, cut, bins[n])
            elif rows == SMALLEST_TILE:
                _bisect(value, cut, bins[n])
            else:
                _count_below(value, cut, bins[n])
        total[:] = 0.0
        _add_trees(trees, bins, leaf, total)
        out[begin : begin + size] = total[:size]


@cache
def score_symmetric_on(dtype: "np.dtype[Any]") -> Any:
    """The scores of rows, compiled for this type of X."""
    given = (types.int64, types.int64, features_in(dtype), _TREES, types.float64, FLOATS)
    return compiled(kernel(_score), types.void(*given))
