"""Columns of X against thresholds: bins of values, sums over bins, and scores that are sums of steps.

A feature with thresholds t_0 < ... < t_{K-1} has bins 0, ..., K: bin b holds the values above exactly b thresholds.
"""

import numpy as np

from rankwise._kernels.machine.jit import kernel

# Columns that are processed together: their sums do not wait for each other, and a cache line of X is read once.
TOGETHER = 4


@kernel
def take_columns(X, rows, first, last, out):
    """Values of features first..last-1 in these rows, feature after feature, as float64."""
    for p in range(len(rows)):
        row = X[rows[p]]
        for f in range(first, last):
            out[f - first, p] = row[f]


@kernel
def even_gaps(count, most, gaps):
    """After which of the distinct values a bin ends, so that bins hold about the same number of rows; returns how many.

    ``count`` holds the number of rows of every distinct value, ascending. A bin ends where continuing would take it
    further from an equal share of the rest, so frequent values stand alone and leave the other bins to the rest.
    """
    left, bins, inside, found = count.sum(), most + 1, 0, 0
    for v in range(len(count) - 1):
        inside += count[v]
        share = left / bins
        if inside >= share or inside + count[v + 1] - share > share - inside:
            gaps[found] = v
            found += 1
            left -= inside
            bins -= 1
            inside = 0
            if bins == 1:
                break
    return found


@kernel
def thresholds_below(cut, x):
    """How many of the ascending thresholds are below x."""
    low, size = 0, len(cut)
    while size > 0:
        half = size >> 1
        if cut[low + half] < x:
            low += half + 1
            size -= half + 1
        else:
            size = half
    return low


@kernel
def fill_bins(values, cut, bins):
    """The bin of every value."""
    for p in range(len(values)):
        bins[p] = thresholds_below(cut, values[p])


@kernel
def sums_above(first, last, bins, start, value, out):
    """For features first..last-1, the sum of ``value`` over the rows above each threshold.

    ``bins`` is features x rows, of which the first ``len(value)`` count; the thresholds of feature f have the places
    start[f] .. start[f+1]-1 in ``out``. Rows are added in their order.
    """
    widest = 0
    for f in range(first, last):
        widest = max(widest, start[f + 1] - start[f])
    buffer = np.empty((TOGETHER, widest + 1))
    a, b, c, d = buffer[0], buffer[1], buffer[2], buffer[3]
    for f in range(first, last, TOGETHER):
        buffer[:] = 0.0
        if f + TOGETHER <= last:
            in_a, in_b, in_c, in_d = bins[f], bins[f + 1], bins[f + 2], bins[f + 3]
            for p in range(len(value)):
                v = value[p]
                a[in_a[p]] += v
                b[in_b[p]] += v
                c[in_c[p]] += v
                d[in_d[p]] += v
        else:
            for t in range(last - f):
                for p in range(len(value)):
                    buffer[t, bins[f + t, p]] += value[p]
        for t in range(min(TOGETHER, last - f)):
            total = 0.0
            for cut in range(start[f + t + 1] - start[f + t] - 1, -1, -1):
                total += buffer[t, cut + 1]
                out[start[f + t] + cut] = total


@kernel
def add_step(bins, cut, alpha, score):
    """Add alpha to the scores of rows above threshold number ``cut``."""
    for p in range(len(score)):
        score[p] += alpha if bins[p] > cut else 0.0


@kernel
def score_steps(X, first, last, feature, start, cut, worth, out):
    """Scores of rows first..last-1: for every feature in use the worth of the bin that its value belongs to.

    The thresholds of feature[n] are cut[start[n]:start[n+1]]; its bins, one more, have their worths from worth[start[n]
    + n] on.
    """
    for row in range(first, last):
        x, total = X[row], 0.0
        for n in range(len(feature)):
            low = start[n]
            total += worth[low + n + thresholds_below(cut[low : start[n + 1]], x[feature[n]])]
        out[row] = total
