"""Sums of integer derivatives over bins of features: what a symmetric tree is grown from.

A row has one bin, from 0 to 63, per feature. The bins of four features stand in the four bytes of a word, and
``words[block, group, row]`` has the words of a group of features for the rows of a block side by side.

The first derivative of a row is rounded to an integer g of 20 bits with its sign, the second to an integer h >= 0 of 12
bits, and both stand in one number, g 2^28 + h. Sums of such numbers are exact as long as the sum of abs(g) is below
2^35 and that of h below 2^28: the running sums are emptied into two integers of 64 bits before one of them could be
larger. Sums of integers have the same bits in any order, whatever the blocks, chunks and threads are.

A split sends a row to the right if uint8(bin - shift) > limit, which holds for

- bins above t: shift 0, limit t (bin 0, which is NaN, goes left),
- bins above t, and bin 0: shift 1, limit t - 1 (0 - 1 wraps to 255),
- bin 0 alone: shift 1, limit 254,
- all bins but c: shift c, limit 0.

Bit l of the leaf of a row is 1 if split l sent it to the right.
"""

import numpy as np

from rankwise._kernels.bits import mix
from rankwise._kernels.machine.jit import kernel

# Bins of a feature. It is a constant of the compiled code: the four additions of a word have fixed distances.
BINS = 64
# Features whose bins stand in one word, and the numbers that such a word is counted into.
LANES = 4
WIDTH = LANES * BINS
# The place of the first derivative in a packed number, and the bits of both.
SHIFT = 28
GRADIENT_BITS, CURVATURE_BITS = 20, 12
# Running sums of the two may come to this.
_MOST_GRADIENT, _MOST_CURVATURE = (1 << (63 - SHIFT)) - 1, (1 << SHIFT) - 1
# Rows of a block: their leaves, bins and derivatives stay in the first caches. The largest block cannot overflow.
BLOCK, LARGEST_BLOCK = 1 << 12, 1 << 15
_BYTE = np.uint64(255)
_SECOND, _THIRD, _FOURTH = np.uint64(8), np.uint64(16), np.uint64(24)
_LANE_1, _LANE_2, _LANE_3 = np.uint64(BINS), np.uint64(2 * BINS), np.uint64(3 * BINS)
_LOW = (1 << SHIFT) - 1


# ------------------------------------------------------------------------------------------------------- derivatives


@kernel
def largest(gradient, curvature, first, last):
    """(largest abs(gradient), largest curvature, rows with a curvature) of rows first..last-1; NaN if a value is."""
    steepest, most, count = 0.0, 0.0, 0
    for i in range(first, last):
        g, h = abs(gradient[i]), curvature[i]
        steepest = g if not g <= steepest else steepest
        most = h if not h <= most else most
        count += h > 0.0
        if g != g or h != h:
            return np.nan, np.nan, 0
    return steepest, most, count


@kernel
def pack(gradient, curvature, by_gradient, by_curvature, size, first, last, packed, steepness, bend):
    """Round the derivatives of blocks first..last-1 of ``size`` rows, and sum up their sizes for every block."""
    for block in range(first, last):
        steepness[block], bend[block] = 0, 0
        for i in range(block * size, min((block + 1) * size, len(gradient))):
            g, h = np.int64(np.rint(gradient[i] * by_gradient)), np.int64(np.rint(curvature[i] * by_curvature))
            packed[i] = (g << SHIFT) + h
            steepness[block] += abs(g)
            bend[block] += h


@kernel
def sample_rows(learned, key, limit, first, last, kept):
    """Which of rows first..last-1 are kept: those that are learned from whose number has a hash below the limit."""
    for i in range(first, last):
        word = mix(key + np.uint64(i) * np.uint64(0x9E3779B97F4A7C15))
        kept[i] = learned[i] if (word >> np.uint64(32)) < limit else np.uint8(0)


# -------------------------------------------------------------------------------------------------------- histograms


@kernel
def _empty(running, slots, gradient, curvature):
    """Add the running sums to the two sums of 64 bits, and set them to 0."""
    for a in range(running.shape[0]):
        own, g, h = running[a], gradient[a], curvature[a]
        for c in range(slots * WIDTH):
            value = own[c]
            low = value & _LOW
            g[c] += (value - low) >> SHIFT
            h[c] += low
            own[c] = 0


@kernel
def add_level(
    words, first, last, level, split, side, kept, leaf, packed, steepness, bend, groups, running, gradient, curvature
):
    """Sums over the rows of blocks first..last-1 by leaf, feature and bin, after the last split.

    The split (group, lane, shift, limit) of level - 1 is applied to the leaves of all rows. Rows that are kept and went
    to the side of their former leaf c that ``side[c]`` names are then counted under c: ``gradient`` and ``curvature``
    have the shape groups x (leaves 256), with the bins of the four features of a group one after the other. At level 0
    there is no split, and all kept rows are counted under 0.

    ``running``, of the same shape, holds zeros and is left with zeros.
    """
    size, count = words.shape[2], len(leaf)
    slots = 1 << max(level - 1, 0)
    place, value, base = np.empty(size, np.uint16), np.empty(size, np.int64), np.empty(size, np.uint32)
    group, lane, shift, limit = split
    shift, limit, bit = np.uint8(shift), np.uint8(limit), leaf.dtype.type(1 << max(level - 1, 0))
    byte = np.uint32(8 * lane)
    running_gradient, running_curvature = 0, 0
    for block in range(first, last):
        low, high = block * size, min((block + 1) * size, count)
        if running_gradient + steepness[block] > _MOST_GRADIENT or running_curvature + bend[block] > _MOST_CURVATURE:
            _empty(running, slots, gradient, curvature)
            running_gradient, running_curvature = 0, 0
        running_gradient += steepness[block]
        running_curvature += bend[block]
        own_leaf, own_kept, own = leaf[low:high], kept[low:high], packed[low:high]
        taken = 0
        if level == 0:
            for r in range(high - low):
                place[taken], value[taken], base[taken] = r, own[r], 0
                taken += own_kept[r]
        else:
            asked = words[block, group]
            for r in range(high - low):
                c = own_leaf[r]
                right = np.uint8(np.uint8((asked[r] >> byte) & np.uint32(255)) - shift) > limit
                own_leaf[r] = c | bit if right else c
                place[taken], value[taken], base[taken] = r, own[r], np.uint32(c) * np.uint32(WIDTH)
                taken += (right == side[c]) & own_kept[r]
        for a in range(len(groups)):
            word, sums = words[block, groups[a]], running[a]
            for z in range(taken):
                w, v, c = np.uint64(word[place[z]]), value[z], np.uint64(base[z])
                sums[c + (w & _BYTE)] += v
                sums[c + ((w >> _SECOND) & _BYTE) + _LANE_1] += v
                sums[c + ((w >> _THIRD) & _BYTE) + _LANE_2] += v
                sums[c + (w >> _FOURTH) + _LANE_3] += v
    _empty(running, slots, gradient, curvature)


@kernel
def divide_leaves(gradient, curvature, counted_gradient, counted_curvature, leaves, side):
    """Sums of the children of all leaves from those of the leaves and of the child that was counted of each.

    The children of leaf c are c on the left and c + leaves on the right. What was counted is set to 0.
    """
    for a in range(gradient.shape[0]):
        whole_g, whole_h, part_g, part_h = gradient[a], curvature[a], counted_gradient[a], counted_curvature[a]
        for c in range(leaves):
            for left in range(c * WIDTH, (c + 1) * WIDTH):
                right = left + leaves * WIDTH
                g, h = part_g[left], part_h[left]
                part_g[left], part_h[left] = 0, 0
                other_g, other_h = whole_g[left] - g, whole_h[left] - h
                if side[c] == 1:
                    whole_g[right], whole_h[right], whole_g[left], whole_h[left] = g, h, other_g, other_h
                else:
                    whole_g[left], whole_h[left], whole_g[right], whole_h[right] = g, h, other_g, other_h


@kernel
def close_leaves(words, first, last, level, split, learned, leaf, packed, gradient, curvature, count):
    """Apply the last split to the rows of blocks first..last-1; sum up the derivatives of every leaf, and its rows."""
    size = words.shape[2]
    group, lane, shift, limit = split
    shift, limit, bit = np.uint8(shift), np.uint8(limit), leaf.dtype.type(1 << max(level - 1, 0))
    byte = np.uint32(8 * lane)
    for block in range(first, last):
        low, high = block * size, min((block + 1) * size, len(leaf))
        asked, own_leaf, own = words[block, group], leaf[low:high], packed[low:high]
        for r in range(high - low):
            c = own_leaf[r]
            if np.uint8(np.uint8((asked[r] >> byte) & np.uint32(255)) - shift) > limit:
                c |= bit
                own_leaf[r] = c
            h = own[r] & _LOW
            gradient[c] += (own[r] - h) >> SHIFT
            curvature[c] += h
            count[c] += learned[low + r]


@kernel
def add_leaf_values(leaf, value, first, last, score):
    """Add to the scores of rows first..last-1 the values of their leaves."""
    for i in range(first, last):
        score[i] += value[leaf[i]]


# -------------------------------------------------------------------------------------------------------------- bins


@kernel
def fill_words(X, rows, first, last, offset, feature, cut, categorical, zero, words, holes):
    """The bins of rows first..last-1 of X, which are rows ``offset + first`` ... of the words.

    ``rows`` of length 0: rows are taken as they come. ``feature`` and ``cut`` have one row per group: the features of
    its lanes, -1 for none, and their ascending thresholds, 63 numbers with infinity after the last. The bin of a value
    is 1 + the number of thresholds below it; that of NaN is 0. A categorical feature has its codes in place of
    thresholds: the bin of a code is 1 + its place, that of any other 0.

    Values up to ``zero`` in size count as 0. ``holes`` gets 1 where a feature has NaN.
    """
    size = words.shape[2]
    for block in range((offset + first) // size, (offset + last - 1) // size + 1):
        low, high = max(offset + first, block * size), min(offset + last, (block + 1) * size)
        for group in range(feature.shape[0]):
            word = words[block, group]
            for lane in range(LANES):
                own = feature[group, lane]
                if own < 0:
                    continue
                table, codes, byte = cut[group, lane], categorical[group, lane] == 1, np.uint32(8 * lane)
                for at in range(low, high):
                    row = at - offset
                    given = np.float64(X[rows[row], own]) if len(rows) else np.float64(X[row, own])
                    x = 0.0 if abs(given) <= zero else given
                    below = _below(table, x)
                    number = below + 1 if x == x else 0
                    if number == 0:
                        holes[group, lane] = 1
                    if codes and (below == BINS - 1 or table[below] != x):
                        number = 0
                    word[at - block * size] |= np.uint32(number) << byte


@kernel
def _below(table, x):
    """How many of 63 ascending numbers are below x, without a branch; none for NaN."""
    below = np.uint64(0)
    below += np.uint64(32) if table[np.uint64(31)] < x else np.uint64(0)
    below += np.uint64(16) if table[below + np.uint64(15)] < x else np.uint64(0)
    below += np.uint64(8) if table[below + np.uint64(7)] < x else np.uint64(0)
    below += np.uint64(4) if table[below + np.uint64(3)] < x else np.uint64(0)
    below += np.uint64(2) if table[below + np.uint64(1)] < x else np.uint64(0)
    below += np.uint64(1) if table[below] < x else np.uint64(0)
    return np.int64(below)
