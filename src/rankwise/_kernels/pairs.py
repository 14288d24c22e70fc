"""Sums over pairs of documents of one query whose grades differ.

The products of the Laplacian (:func:`find_windows_on`, :func:`add_products_on`) are those of a squared hinge: rows i
and j of a query are joined where level_i > level_j and 1 + s_j - s_i > 0. In the order of decreasing scores the rows
joined to i, by their scores alone, are the first reach_i ones; both sweeps use nothing else, so the matrix is
symmetric to the last pair. A Fenwick tree over the levels sums up the rows that have entered: O(m log m) for a query of
m rows. :func:`exponential_potentials` sums the weights of pairs of the exponential loss, and :func:`count_pairs` counts
pairs by their two grades.

The fidelity loss of a pair is phi(d) = 1 - sqrt(sigmoid(d)), d = s_i - s_j for a better i and a worse j. Its slope,
w = -phi'(d) = 0.5 sqrt(sigmoid(d)) sigmoid(-d), is not a product of a factor of i and a factor of j, so every pair is
visited. Queries are laid out as for :func:`exponential_potentials`, and a pair of query q has weight[q].

References
----------
P. M. Fenwick (1994). A new data structure for cumulative frequency tables. Software: Practice and Experience 24(3),
327-336. doi:10.1002/spe.4380240306

M.-F. Tsai, T.-Y. Liu, T. Qin, H.-H. Chen and W.-Y. Ma (2007). FRank: a ranking method with fidelity loss. SIGIR 2007,
383-390. doi:10.1145/1277741.1277808
"""

import math
from functools import cache
from typing import Any

import numpy as np
from numba import types

from rankwise._kernels.dot_products import add_rows, dot
from rankwise._kernels.exp import exp
from rankwise._kernels.machine.jit import FLOATS, FLOATS_IN, INTS, INTS_IN, compiled, features_in, kernel
from rankwise._kernels.sorting import sort_carrying


def _find_windows(first, last, start, rows, X, share, w, place, reach):
    """The places of queries first..last-1 by decreasing score, and for each how many of them come before score - 1."""
    for q in range(first, last):
        low, size = start[q], start[q + 1] - start[q]
        if share[q] == 0.0:
            continue
        score, key, order = np.empty(size), np.empty(size), place[low : low + size]
        for p in range(size):
            score[p] = dot(X[low + p if len(rows) == 0 else rows[low + p]], w)
            key[p] = -score[p]
            order[p] = p
        sort_carrying(key, order, np.empty(size), np.empty(size, np.int64), np.empty(size + 1, np.int64))
        entered = 0
        for p in range(size):
            while entered < size and 1.0 + (score[order[entered]] - score[order[p]]) > 0.0:
                entered += 1
            reach[low + p] = entered


@kernel
def _enter(tree, at, a):
    """Add a row of this level to a Fenwick tree of (number, sum of a)."""
    at += 1
    while at < len(tree):
        tree[at, 0] += 1.0
        tree[at, 1] += a
        at += at & -at


@kernel
def _differences(tree, at, a):
    """The sum of a - a_j over the rows j below this level."""
    number, total = 0.0, 0.0
    while at > 0:
        number += tree[at, 0]
        total += tree[at, 1]
        at -= at & -at
    return number * a - total


@kernel
def laplacian(place, reach, level, n_levels, a, out):
    """out_i = sum of a_i - a_j over all j that i is joined to."""
    size, top = len(a), n_levels - 1
    tree = np.zeros((n_levels + 1, 2))
    entered = 0
    for p in range(size):  # with lower levels, from the highest score down
        i = place[p]
        while entered < reach[p]:
            _enter(tree, level[place[entered]], a[place[entered]])
            entered += 1
        out[i] = _differences(tree, level[i], a[i])
    tree[:] = 0.0
    entered = size
    for p in range(size - 1, -1, -1):  # with higher ones, from the lowest score up
        j = place[p]
        while entered > 0 and reach[entered - 1] > p:
            entered -= 1
            _enter(tree, top - level[place[entered]], a[place[entered]])
        out[j] += _differences(tree, top - level[j], a[j])


def _add_products(first, last, start, rows, X, share, level, n_levels, place, reach, v, out):
    """Add sum_q share_q X_q' L_q X_q v over queries first..last-1.

    The rows of a query are read twice, the second time from the cache.
    """
    longest = 0
    for q in range(first, last):
        longest = max(longest, start[q + 1] - start[q])
    buffer, row_buffer = np.empty((2, longest)), np.empty(longest, np.int64)
    for q in range(first, last):
        low, size = start[q], start[q + 1] - start[q]
        if share[q] == 0.0:
            continue
        own, a, h, mine = slice(low, low + size), buffer[0, :size], buffer[1, :size], row_buffer[:size]
        for p in range(size):
            mine[p] = low + p if len(rows) == 0 else rows[low + p]
            a[p] = dot(X[mine[p]], v)
        a -= a.mean()  # a shift changes nothing but the rounding
        laplacian(place[own], reach[own], level[own], n_levels[q], a, h)
        h *= share[q]
        add_rows(X, mine, h, out)


def _shared_types(dtype: np.dtype[Any]) -> tuple[Any, ...]:
    """Types of first, last, start, rows, X and share."""
    return types.int64, types.int64, INTS_IN, INTS_IN, features_in(dtype), FLOATS_IN


@cache
def find_windows_on(dtype: np.dtype[Any]) -> Any:
    """:func:`_find_windows` compiled for this type of X."""
    return compiled(kernel(_find_windows), types.void(*_shared_types(dtype), FLOATS_IN, INTS, INTS))


@cache
def add_products_on(dtype: np.dtype[Any]) -> Any:
    """:func:`_add_products` compiled for this type of X."""
    return compiled(kernel(_add_products), types.void(*_shared_types(dtype), *(INTS_IN,) * 4, FLOATS_IN, FLOATS))


# ------------------------------------------------------------------------------------------------------- pair weights


@kernel
def _fill_exp(score, sign, shift, out):
    """exp(sign (score - shift)), which no caller lets grow above 1."""
    for p in range(len(score)):
        out[p] = exp(sign * (score[p] - shift))


@kernel(fastmath={"reassoc"})
def _sum(value):
    """The sum of an array."""
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
    """For every document the weights of the pairs in which it is the better one minus those in which it is the worse.

    Queries stand one after the other, each from its lowest grade to its highest: query q has the segments of equal
    grade lists[q] .. lists[q+1]-1, and segment g the places segment[g] .. segment[g+1]-1. The documents that are worse
    than those of a segment are then the places from the beginning of the query to that of the segment.

    The pair of a better i and a worse j of query q weighs exp(log_weight[q] + s_j - s_i); potentials are divided by the
    sum of all weights, whose logarithm is returned (-inf where there is no pair). The cost is linear in documents,
    since the sum over all worse j is exp(-s_i) times one number per grade; that number is kept as its logarithm, so
    that scores may be of any size.
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


# ----------------------------------------------------------------------------------------------------- pairs by label


@kernel
def count_pairs(start, order, end, grade, n_grades):
    """Pairs of different grades within queries, by (higher grade, lower grade).

    ``start`` bounds the queries in ``order`` and ``end``, which hold their rows from the highest key down and their
    blocks of equal keys, as ``order_lists`` writes them. Returns four n_grades x n_grades arrays of integers: all
    pairs; inverted ones (the lower grade has the strictly higher key); tied ones (the same key); and the tied ones in
    which the lower grade comes first. O(m n_grades) for a query of m documents.
    """
    pairs = np.zeros((n_grades, n_grades), dtype=np.int64)
    inverted = np.zeros((n_grades, n_grades), dtype=np.int64)
    tied = np.zeros((n_grades, n_grades), dtype=np.int64)
    tied_wrongly = np.zeros((n_grades, n_grades), dtype=np.int64)
    above = np.empty(n_grades, dtype=np.int64)  # documents with a strictly higher key, by grade
    earlier = np.empty(n_grades, dtype=np.int64)  # earlier documents of the same block of equal keys, by grade
    for q in range(len(start) - 1):
        base = start[q] - start[0]
        size = start[q + 1] - start[q]
        above[:] = 0
        t = 0
        while t < size:
            earlier[:] = 0
            for p in range(t, end[base + t]):
                own = grade[order[base + p]]
                for other in range(own):  # lower grades that stand higher, or the same
                    inverted[own, other] += above[other]
                    pairs[own, other] += above[other] + earlier[other]
                    tied[own, other] += earlier[other]
                    tied_wrongly[own, other] += earlier[other]
                for other in range(own + 1, n_grades):  # higher grades that stand higher, or the same
                    pairs[other, own] += above[other] + earlier[other]
                    tied[other, own] += earlier[other]
                earlier[own] += 1
            for g in range(n_grades):
                above[g] += earlier[g]
            t = end[base + t]
    return pairs, inverted, tied, tied_wrongly


# --------------------------------------------------------------------------------------------------- the fidelity loss


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
def fidelity_potentials(first, last, score, segment, lists, weight, potential):
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
