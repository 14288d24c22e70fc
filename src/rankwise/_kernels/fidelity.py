"""The fidelity loss phi(d) = 1 - sqrt(sigmoid(d)) of pairs, d = s_i - s_j for a better i and a worse j.

Queries are laid out as in :func:`rankwise._kernels.pairs.exponential_potentials`, and a pair of query q has weight[q].
The slope of the loss, w = -phi'(d) = 0.5 sqrt(sigmoid(d)) sigmoid(-d), is not a product of a factor of i and a factor
of j, so every pair is visited.

References
----------
M.-F. Tsai, T.-Y. Liu, T. Qin, H.-H. Chen and W.-Y. Ma (2007). FRank: a ranking method with fidelity loss. SIGIR 2007,
383-390. doi:10.1145/1277741.1277808
"""

import math

import numpy as np

from rankwise._kernels.exp import exp
from rankwise._kernels.jit import kernel


@kernel
def _slopes(score, own, factor, out):
    """factor w(own - score): the slopes of the pairs of one better document with the worse ones."""
    for j in range(len(score)):
        d = own - score[j]
        z = exp(-abs(d))
        both = 1.0 / (1.0 + z)
        up = both if d >= 0.0 else z * both
        down = z * both if d >= 0.0 else both
        out[j] = 0.5 * factor * math.sqrt(up) * down


@kernel(fastmath={"reassoc"})
def _take_from_worse(slope, potential):
    """Subtract every slope from the potential of its worse document; returns their sum, for the better one."""
    total = 0.0
    for j in range(len(slope)):
        potential[j] -= slope[j]
        total += slope[j]
    return total


@kernel
def list_slopes(q, score, segment, lists, weight, potential, slope):
    """The slopes of one query's pairs, better document after better document, and the potentials.

    ``potential`` receives for every document the slopes of the pairs in which it is the better one minus those in which
    it is the worse one.
    """
    begin, at = segment[lists[q]], 0
    potential[begin : segment[lists[q + 1]]] = 0.0
    for g in range(lists[q] + 1, lists[q + 1]):
        worse = segment[g] - begin
        for i in range(segment[g], segment[g + 1]):
            own = slope[at : at + worse]
            _slopes(score[begin : segment[g]], score[i], weight[q], own)
            potential[i] += _take_from_worse(own, potential[begin : segment[g]])
            at += worse


@kernel
def _most_pairs(first, last, segment, lists):
    """The largest number of pairs of one query."""
    most = 0
    for q in range(first, last):
        pairs = 0
        for g in range(lists[q], lists[q + 1]):
            pairs += (segment[g + 1] - segment[g]) * (segment[g] - segment[lists[q]])
        most = max(most, pairs)
    return most


@kernel
def potentials(first, last, score, segment, lists, weight, potential):
    """The potentials of queries first..last-1; see :func:`list_slopes`."""
    slope = np.empty(_most_pairs(first, last, segment, lists))
    for q in range(first, last):
        list_slopes(q, score, segment, lists, weight, potential, slope)


@kernel(fastmath={"reassoc"})
def _add_right_ones(slope, bins, own, given):
    """Add the slopes of the pairs that a feature orders correctly, by bins, to ``given``; returns their sum."""
    total = 0.0
    for j in range(len(slope)):
        right = slope[j] if bins[j] < own else 0.0
        given[j] += right
        total += right
    return total


@kernel
def slopes_by_candidate(first, last, score, segment, lists, weight, bins, start, potential, rises):
    """The potentials of queries first..last-1 and, by bin, the slopes of the pairs that candidates order correctly.

    ``rises`` holds zeros, and receives for every bin of every feature by how much that sum grows from the threshold
    before the bin to the one after it: a pair counts at the thresholds from the bin of its worse document up to that of
    its better one. The bins of feature f begin at start[f] + f.
    """
    slope = np.empty(_most_pairs(first, last, segment, lists))
    for q in range(first, last):
        list_slopes(q, score, segment, lists, weight, potential, slope)
        begin, end = segment[lists[q]], segment[lists[q + 1]]
        given = np.empty(end - begin)
        for f in range(len(start) - 1):
            if start[f] == start[f + 1]:
                continue
            rise, column, at = rises[start[f] + f :], bins[f], 0
            given[:] = 0.0
            for g in range(lists[q] + 1, lists[q + 1]):
                worse = segment[g] - begin
                for i in range(segment[g], segment[g + 1]):
                    own = slope[at : at + worse]
                    rise[column[i]] -= _add_right_ones(own, column[begin : segment[g]], column[i], given[:worse])
                    at += worse
            for p in range(begin, end):
                rise[column[p]] += given[p - begin]


@kernel
def count_margins(first, last, score, above, segment, lists, weight, width, counts):
    """The weights of the pairs that ``above`` separates, by their margin d in units of ``width``.

    counts[0] receives the pairs that it orders correctly, counts[1] those that it orders wrongly, each shared between
    the two integers around its margin; d = 0 is in the middle, and margins beyond an end are put there.
    """
    middle = (counts.shape[1] - 1) // 2
    for q in range(first, last):
        begin = segment[lists[q]]
        for g in range(lists[q] + 1, lists[q + 1]):
            for i in range(segment[g], segment[g + 1]):
                for j in range(begin, segment[g]):
                    if above[i] != above[j]:
                        at = min(max((score[i] - score[j]) / width, -middle), middle - 1e-9) + middle
                        low = int(at)
                        side = 0 if above[i] else 1
                        counts[side, low] += weight[q] * (low + 1 - at)
                        counts[side, low + 1] += weight[q] * (at - low)
