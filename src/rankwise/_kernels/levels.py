"""Number the different values of a list of keys: 0 for the lowest, 1 for the next, ..."""

import numpy as np

from rankwise._kernels.jit import kernel
from rankwise._kernels.sorting import sort_carrying


@kernel
def number_levels(key, number):
    """Fill ``number`` with the level of every key; returns how many levels there are.

    By sorting, which is linear where keys repeat; a pass for each level would not be faster for five of them.
    """
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
