"""Expected reciprocal rank."""

import math
from dataclasses import dataclass

import numpy as np

from rankwise._errors import MeasureError
from rankwise._kernels.jit import kernel
from rankwise.data.checks import is_number
from rankwise.measures._base import Measure, Vector


@kernel
def tied_stops(stop, size, within, above):
    """sum over the first ``within`` places q of P(the reader stops at q) / (above + q), the order being random.

    ``stop`` holds the positive stop probabilities x among the ``size`` documents of a tie block. E[a] is the mean,
    over subsets of a of them, of the product of 1 - x; H[a] the probability that a of them stand at the places
    already read. Subsets beyond ``depth`` add less than 1e-18, since E[a] <= (mean of 1 - x)^a.
    """
    count = len(stop)
    mean = (1.0 - stop).mean()
    depth = count
    if 0.0 < mean < 1.0:
        depth = min(count, 1 + math.ceil(math.log(1e-18) / math.log(mean)))
    E = np.zeros(depth + 1)
    E[0] = 1.0
    for i in range(1, count + 1):
        for a in range(min(i, depth), 0, -1):
            E[a] = ((i - a) / i) * E[a] + (a / i) * (1.0 - stop[i - 1]) * E[a - 1]
    H = np.zeros(depth + 1)
    H[0] = 1.0
    total = 0.0
    for q in range(within):
        here = 0.0
        arriving = 0.0
        seen = min(q + 1, depth)
        for a in range(seen):
            hit = H[a] * (count - a) / (size - q)
            here += hit * (E[a] - E[a + 1])
            H[a] += arriving - hit
            arriving = hit
        H[seen] += arriving
        total += here / (above + q + 1)
    return total


@kernel
def err_formula(value, end, retrieved, best, table, knobs):
    if len(best) == 0 or best.max() <= 0.0:
        return np.nan
    cut = int(min(knobs[0], float(retrieved)))
    total = 0.0
    reading = 1.0  # probability that the reader has not stopped above the block
    t = 0
    while t < cut:
        e = end[t]
        if e - t == 1:
            total += reading * value[t] / (t + 1)
        else:
            first = t  # values ascend inside a block: the positive ones stand at its end
            while first < e and value[first] <= 0.0:
                first += 1
            if first < e:
                total += reading * tied_stops(value[first:e], e - t, min(e, cut) - t, t)
        for p in range(t, e):
            reading *= 1.0 - value[p]
        t = e
    return total


@dataclass(frozen=True, kw_only=True, repr=False)
class ERR(Measure):
    """Expected reciprocal rank: ERR@k = sum_{p <= k} (1/p) x_p prod_{q < p} (1 - x_q), x = (2^l - 1) / 2^max_grade.

    Parameters
    ----------
    max_grade : the largest grade of the scale (4, as in RankLib and gdeval); larger labels are refused, never
        rescaled in silence
    cutoff : k, or None for the whole list

    Notes
    -----
    Empty when no document has a positive label.
    """

    max_grade: float = 4

    name = "ERR"
    formula = err_formula

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_number(self.max_grade) or not 0 < self.max_grade <= 1000:
            raise MeasureError(f"max_grade is above 0 and at most 1000: found {self.max_grade!r}")

    def row_values(self, labels: Vector) -> Vector:
        largest = labels.max(initial=0.0)
        if largest > self.max_grade:
            raise MeasureError(
                f"ERR knows grades up to {self.max_grade:g} and found label {largest:g}: "
                f"write ERR(max_grade={largest:g}), or map the labels"
            )
        return np.asarray((np.exp2(labels) - 1.0) / 2.0**self.max_grade)
