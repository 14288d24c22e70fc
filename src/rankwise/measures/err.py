"""Expected reciprocal rank.

The expectation over the orders inside a block of tied scores is computed by recursion rather than by enumeration;
:func:`tied_stops` states its accuracy.
"""

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from rankwise._kernels.machine.jit import kernel
from rankwise._parameters import NumberRange
from rankwise.errors import MeasureError
from rankwise.measures._base import Measure, Vector
from rankwise.measures.ndcg import exp2_less_1


@kernel
def stops_in_random_order(stop, depth):
    """P(the reader passes a documents and stops at the next one), for a < ``depth``, in a random order of all.

    ``stop`` holds the stop probabilities x. ``passes[a]`` is the probability that the reader passes the first a
    documents. An added document takes each of the i places of the longer list with probability 1/i: place a + 1, one
    above it or one below it.
    """
    passes = np.zeros(depth)
    stops = np.zeros(depth)
    passes[0] = 1.0
    for i in range(1, len(stop) + 1):
        x = stop[i - 1]
        for a in range(min(i, depth - 1), 0, -1):
            above = a * (1.0 - x)
            stops[a] = ((i - a - 1) * stops[a] + above * stops[a - 1] + x * passes[a]) / i
            passes[a] = ((i - a) * passes[a] + above * passes[a - 1]) / i
        stops[0] = ((i - 1) * stops[0] + x) / i
    return stops


@kernel
def tied_stops(stop, size, within, above):
    """sum over the first ``within`` places q of P(the reader stops at q) / (above + q), the order being random.

    ``stop`` holds the positive stop probabilities x among the ``size`` documents of a tie block. H[a] is the
    probability that a of them are at the places already read. Readers who pass ``depth`` of them add less than
    1e-18, since the probability of passing a is at most (mean of 1 - x)^a, by Maclaurin's inequality.

    The result has a relative error of at most a few (count + size) units in the last place. Both recursions add and
    multiply numbers that are not negative, and never subtract from a rounded number: each step adds a few relative
    errors of 2^-53, and none is amplified. (Updating H[a] by subtracting what leaves would leave a residue where
    everything leaves, which later ratios, far above 1, amplify without bound.) The remaining places hold at most
    ``left`` documents, so H[a] is 0 for a < count - left: the factor of what stays is then exactly 0.
    """
    count = len(stop)
    mean = (1.0 - stop).mean()
    depth = count
    if mean <= 0.0:
        depth = 1  # every reader stops at the first of them
    elif mean < 1.0:
        depth = min(count, 1 + math.ceil(math.log(1e-18) / math.log(mean)))
    stops = stops_in_random_order(stop, depth)
    H = np.zeros(depth)
    H[0] = 1.0
    total = 0.0
    for q in range(within):
        here = 0.0
        arriving = 0.0
        left = size - q
        for a in range(max(0, count - left), min(q + 2, depth)):
            hit = H[a] * ((count - a) / left)
            here += hit * stops[a]
            H[a] = H[a] * ((left - (count - a)) / left) + arriving
            arriving = hit
        total += here / (above + q + 1)
    return total


@kernel
def err_formula(value, end, retrieved, best, table, params):
    """ERR; ``value`` holds the stop probabilities."""
    if len(best) == 0 or best.max() <= 0.0:
        return np.nan
    cut = int(min(params[0], float(retrieved)))
    total = 0.0
    reading = 1.0  # probability that the reader has not stopped above the block
    t = 0
    while t < cut:
        e = end[t]
        if e - t == 1:
            total += reading * value[t] / (t + 1)
        else:
            first = t  # values ascend inside a block: the positive ones are at its end
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
    cutoff : int, default=None
        The cut-off k; None for the whole list.
    max_grade : float, default=4
        The largest grade of the scale, 4 as in RankLib and gdeval. Larger labels raise an error and are never rescaled
        silently.

    Notes
    -----
    The measure is 0/0 if no document has a positive label.

    References
    ----------
    O. Chapelle, D. Metzler, Y. Zhang, P. Grinspan (2009). Expected reciprocal rank for graded relevance. CIKM.
    doi:10.1145/1645953.1646033.
    """

    max_grade: Annotated[float, NumberRange(0, 1000, closed="right")] = 4

    name = "ERR"
    kernel = err_formula

    def row_values(self, labels: Vector) -> Vector:
        """The probabilities that the reader stops: (2^l - 1) / 2^max_grade."""
        largest = labels.max(initial=0.0)
        if largest > self.max_grade:
            raise MeasureError(
                f"ERR knows grades up to {self.max_grade:g} but got label {largest:g}: "
                f"write ERR(max_grade={largest:g}), or map the labels"
            )
        return np.asarray(exp2_less_1(labels) / 2.0**self.max_grade)
