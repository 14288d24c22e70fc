"""Weights of pairs of documents of different grades, summed over each document's pairs.

Lists stand one after the other, each from its lowest grade to its highest: list q has the segments of equal grade
lists[q] .. lists[q+1]-1, and segment g the places segment[g] .. segment[g+1]-1. The documents that are worse than those
of a segment are then the places from the beginning of the list to that of the segment.
"""

import math

import numpy as np

from rankwise._kernels.exp import exp
from rankwise._kernels.jit import kernel


@kernel
def _fill_exp(score, sign, shift, out):
    """exp(sign (score - shift)), which no caller lets grow above 1."""
    for p in range(len(score)):
        out[p] = exp(sign * (score[p] - shift))


@kernel(fastmath={"reassoc"})
def _sum(value):
    total = 0.0
    for v in value:
        total += v
    return total


@kernel(fastmath={"reassoc", "nnan", "nsz"})
def _range(value):
    """(lowest, highest)."""
    low, high = value[0], value[0]
    for v in value:
        low = min(low, v)
        high = max(high, v)
    return low, high


@kernel
def _log_of_sum(a, b):
    """log(e^a + e^b), either of which may be -inf."""
    high, low = max(a, b), min(a, b)
    return high if low == -np.inf else high + math.log1p(math.exp(low - high))


@kernel
def exponential_potentials(score, segment, lists, log_weight, potential):
    """For every document the weights of pairs in which it is the better one less those in which it is the worse.

    The pair of a better i and a worse j of list q weighs exp(log_weight[q] + s_j - s_i); potentials are divided by the
    sum of all weights, whose logarithm is returned (-inf where there is no pair). Linear in documents, since the sum
    over all worse j is exp(-s_i) times one number a grade; that number is kept as its logarithm, so that scores may be
    of any size.
    """
    grades = len(segment) - 1
    low, high = np.empty(grades), np.empty(grades)
    falls, rises = np.empty(grades), np.empty(grades)  # sums of exp(low - s) and of exp(s - high) over a segment
    worse, better = np.empty(grades), np.empty(grades)
    falling, rising = np.empty(len(score)), np.empty(len(score))
    for g in range(grades):
        own = slice(segment[g], segment[g + 1])
        low[g], high[g] = _range(score[own])
        _fill_exp(score[own], -1.0, low[g], falling[own])
        _fill_exp(score[own], 1.0, high[g], rising[own])
        falls[g], rises[g] = _sum(falling[own]), _sum(rising[own])
    peak = -np.inf
    for q in range(len(lists) - 1):
        total = -np.inf
        for g in range(lists[q], lists[q + 1]):  # log of the sum of exp(s_j) over lower grades
            worse[g] = total
            total = _log_of_sum(total, high[g] + math.log(rises[g]))
            peak = max(peak, log_weight[q] + worse[g] - low[g])
        total = -np.inf
        for g in range(lists[q + 1] - 1, lists[q] - 1, -1):  # log of the sum of exp(-s_i) over higher grades
            better[g] = total
            total = _log_of_sum(total, math.log(falls[g]) - low[g])
    if peak == -np.inf:
        potential[:] = 0.0
        return peak
    whole = 0.0
    for q in range(len(lists) - 1):
        for g in range(lists[q], lists[q + 1]):
            as_better = math.exp(log_weight[q] + worse[g] - low[g] - peak)
            as_worse = math.exp(log_weight[q] + better[g] + high[g] - peak)
            whole += as_better * falls[g]
            for p in range(segment[g], segment[g + 1]):
                potential[p] = as_better * falling[p] - as_worse * rising[p]
    potential /= whole
    return peak + math.log(whole)
