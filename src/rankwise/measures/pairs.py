"""Pair accuracy: the share of pairs with different labels that are in the right order, in O(m log m)."""

from dataclasses import dataclass

import numpy as np

from rankwise._kernels.machine.jit import kernel
from rankwise.measures._base import Measure


@kernel
def count_descents(value):
    """Pairs p < q with value[p] > value[q], by merge sort in O(m log m)."""
    work = value.copy()
    merged = np.empty_like(work)
    size = len(work)
    count = 0
    width = 1
    while width < size:
        for low in range(0, size, 2 * width):
            middle = min(low + width, size)
            high = min(low + 2 * width, size)
            i, j = low, middle
            for place in range(low, high):
                if j >= high or (i < middle and work[i] <= work[j]):
                    merged[place] = work[i]
                    i += 1
                else:
                    count += middle - i  # everything left in the first half is above and larger
                    merged[place] = work[j]
                    j += 1
        work, merged = merged, work
        width *= 2
    return count, work


@kernel
def pairs_of_equals(ascending):
    """Pairs with equal values in a sorted array."""
    count = 0
    run = 0
    for p in range(1, len(ascending)):
        run = run + 1 if ascending[p] == ascending[p - 1] else 0
        count += run
    return count


@kernel
def pairs_formula(value, end, retrieved, best, table, params):
    """Pair accuracy; ``value`` holds the labels."""
    size = len(value)
    right, ascending = count_descents(value)
    different = size * (size - 1) // 2 - pairs_of_equals(ascending)
    if different == 0:
        return np.nan
    tied = 0  # pairs with equal scores and different labels; values ascend inside a block, so none was counted
    t = 0
    while t < size:
        block = value[t : end[t]]
        tied += len(block) * (len(block) - 1) // 2 - pairs_of_equals(block)
        t = end[t]
    return (right + 0.5 * tied) / different


@dataclass(frozen=True, kw_only=True, repr=False)
class Pairs(Measure):
    """Pair accuracy: the share of pairs with different labels that are in the right order.

    Parameters
    ----------
    cutoff : None
        Not allowed; the measure looks at the whole list.

    Notes
    -----
    A score tie counts 1/2 under ``expected``, 0 under ``pessimistic``, 1 under ``optimistic``, and by order under
    ``stable``. The measure is 0/0 if all labels are equal. Documents that were not retrieved are below all others,
    tied.

    Examples
    --------
    >>> Pairs()([3.0, 2.0, 1.0], [2, 0, 1])
    0.6666666666666666
    """

    name = "Pairs"
    takes_cutoff = False
    kernel = pairs_formula
