"""The bins of values between thresholds, a byte for each: what trees are scored by."""

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels.machine.jit import kernel

# Bins of a feature fit into a byte, that of NaN included.
MOST_CUTS = 254
# Thresholds that stand together: every 16th is compared with all values, the 16 after that by bisection.
GROUP = 16
# Numbers of unsigned integers: numba would make floats of one and a signed one, and ask whether a signed index is < 0.
_ONE, _GROUP = np.uint64(1), np.uint64(GROUP)


def padded(cuts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ascending thresholds as :func:`find_bins` takes them: whole groups, the last of which ends with infinity."""
    found = np.full(GROUP * (len(cuts) // GROUP + 1), np.inf)
    found[: len(cuts)] = cuts
    return found


@kernel
def find_bins(value, cut, below, found):
    """For every value 1 + the number of thresholds below it, 0 for NaN; ``below`` is memory.

    No branch depends on a value: a mispredicted one would cost more than the whole search.
    """
    below[:] = np.uint64(0)
    for k in range(GROUP - 1, len(cut) - GROUP, GROUP):
        limit = cut[k]
        for r in range(len(value)):
            below[r] += _GROUP if value[r] > limit else np.uint64(0)
    step = _GROUP
    while step > _ONE:
        step >>= _ONE
        for r in range(len(value)):
            place = below[r]
            below[r] = place + (step if cut[place + step - _ONE] < value[r] else np.uint64(0))
    for r in range(len(value)):
        found[r] = np.uint8(below[r] + _ONE) if value[r] == value[r] else np.uint8(0)
