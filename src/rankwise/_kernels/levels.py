"""Number the different values of a list of keys: 0 for the lowest, 1 for the next, ..."""

import numpy as np

from rankwise._kernels.jit import kernel
from rankwise._kernels.sorting import sort_carrying

_FEW = 64


@kernel
def _number_grades(key, number):
    """The levels of whole numbers below 64, as grades are, by counting; 0 where another key is found."""
    level = np.zeros(_FEW, np.int64)
    for x in key:
        if not (0.0 <= x < _FEW and x == np.floor(x)):
            return 0
        level[int(x)] = 1
    found = 0
    for grade in range(_FEW):
        found += level[grade]
        level[grade] = found - 1
    for p in range(len(key)):
        number[p] = level[int(key[p])]
    return found


@kernel
def number_levels(key, number):
    """Fill ``number`` with the level of every key; returns how many levels there are.

    By counting where keys are grades, else by sorting.
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
