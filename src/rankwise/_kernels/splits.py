"""The best split of all leaves of a level, from integer sums over bins, and the values of the leaves of a tree.

With the sums G and H of first and second derivatives, a leaf is worth G^2 / (H + l2): all comparisons are made of this
one formula, of integers that have the same bits however they were added up.
"""

import numpy as np

from rankwise._kernels.histograms import BINS, LANES, WIDTH
from rankwise._kernels.machine.jit import kernel

# How a split treats bins: numbers above t, the same with NaN, NaN alone, all but one category.
ABOVE, ABOVE_OR_NAN, NAN_ALONE, BUT_ONE = 0, 1, 2, 3


@kernel
def worth(g, h, by_gradient, by_curvature, l2):
    """G^2 / (H + l2) of integer sums."""
    slope = by_gradient * g
    return slope * slope / (by_curvature * h + l2)


@kernel
def _worth_of_two(g, h, other_g, other_h, sign, by_gradient, by_curvature, l2):
    """What the left and the right side of a leaf are worth, or the leaf unsplit if their values have the wrong order.

    A leaf has the value -G / (H + l2). With ``sign`` 1 the right one must not be smaller, with -1 not larger.
    """
    if sign != 0:
        left = by_gradient * g / (by_curvature * h + l2)
        right = by_gradient * other_g / (by_curvature * other_h + l2)
        if (left - right) * sign < 0.0:
            return worth(g + other_g, h + other_h, by_gradient, by_curvature, l2)
    return worth(g, h, by_gradient, by_curvature, l2) + worth(other_g, other_h, by_gradient, by_curvature, l2)


@kernel
def best_split(gradient, curvature, groups, features, leaves, scale, l2):
    """(found, place in ``groups``, lane, kind, bin) of the split with the largest sum over all leaves.

    ``features`` has one row per feature of the words: its number of bins with that of NaN, 1 if it has NaN, 1 if it is
    categorical, and the sign that the score must keep with it or 0. A split counts only if a leaf has a curvature above
    0 on both sides. Of equals the first is taken: in the order of the groups, of their lanes, of the kinds
    ``ABOVE``, ``NAN_ALONE``, ``ABOVE_OR_NAN``, and of the bins.
    """
    by_gradient, by_curvature = scale
    best, found, place, best_lane, best_kind, best_bin = -np.inf, False, 0, 0, 0, 0
    total, divides = np.empty((3, BINS)), np.empty((3, BINS), np.bool_)
    free = np.int64(0)  # for a literal 0 numba would compile the worth once more
    for a in range(len(groups)):
        for lane in range(LANES):
            bins, has_nan, categorical, sign = features[groups[a] * LANES + lane]
            if bins + has_nan < 3:
                continue  # fewer than two bins are in use
            total[:] = 0.0
            divides[:] = False
            for c in range(leaves):
                first = c * WIDTH + lane * BINS
                g, h = gradient[a, first : first + bins], curvature[a, first : first + bins]
                all_g, all_h = 0, 0
                for b in range(bins):
                    all_g += g[b]
                    all_h += h[b]
                if all_h == 0:
                    continue
                if categorical == 1:
                    for b in range(1, bins):
                        total[0, b] += _worth_of_two(
                            g[b], h[b], all_g - g[b], all_h - h[b], free, by_gradient, by_curvature, l2
                        )
                        divides[0, b] |= 0 < h[b] < all_h
                    continue
                left_g, left_h = g[0], h[0]
                if has_nan == 1:
                    total[1, 0] += _worth_of_two(
                        all_g - left_g, all_h - left_h, left_g, left_h, free, by_gradient, by_curvature, l2
                    )
                    divides[1, 0] |= 0 < left_h < all_h
                value = other = 0.0
                for b in range(1, bins - 1):
                    if b == 1 or g[b] != 0 or h[b] != 0:  # an empty bin moves nothing to the other side
                        left_g += g[b]
                        left_h += h[b]
                        value = _worth_of_two(
                            left_g, left_h, all_g - left_g, all_h - left_h, sign, by_gradient, by_curvature, l2
                        )
                        if has_nan == 1:
                            own_g, own_h = left_g - g[0], left_h - h[0]
                            other = _worth_of_two(
                                own_g, own_h, all_g - own_g, all_h - own_h, sign, by_gradient, by_curvature, l2
                            )
                    total[0, b] += value
                    divides[0, b] |= 0 < left_h < all_h
                    if has_nan == 1:
                        total[2, b] += other
                        divides[2, b] |= h[0] < left_h < all_h + h[0]
            for k in range(3 if has_nan == 1 and categorical == 0 else 1):
                for b in range(bins):
                    if divides[k, b] and total[k, b] > best:
                        best, found, place, best_lane, best_bin = total[k, b], True, a, lane, b
                        best_kind = BUT_ONE if categorical == 1 else NAN_ALONE if k == 1 else ABOVE_OR_NAN if k else 0
    return found, place, best_lane, best_kind, best_bin


@kernel
def describe_split(gradient, curvature, place, lane, kind, number, bins, leaves, sign, scale, l2, side, gain):
    """For every leaf the side with the smaller curvature, 1 for the right one, and how much the split improves it."""
    by_gradient, by_curvature = scale
    for c in range(leaves):
        first = c * WIDTH + lane * BINS
        g, h = gradient[place, first : first + bins], curvature[place, first : first + bins]
        left_g = left_h = right_g = right_h = np.int64(0)  # not literals, as above
        for b in range(bins):
            right = b > number
            if kind == BUT_ONE:
                right = b != number
            elif kind != ABOVE and b == 0:
                right = True
            elif kind == NAN_ALONE:
                right = False
            if right:
                right_g += g[b]
                right_h += h[b]
            else:
                left_g += g[b]
                left_h += h[b]
        side[c] = 1 if right_h < left_h else 0
        split = _worth_of_two(left_g, left_h, right_g, right_h, sign, by_gradient, by_curvature, l2)
        gain[c] = split - worth(left_g + right_g, left_h + right_h, by_gradient, by_curvature, l2)


@kernel
def order_leaves(value, weight, signs):
    """Change the values of leaves where they break a sign: bit l of a leaf is 1 on the right of level l.

    ``signs[l]`` is 1 if the right one of two leaves that differ in this bit alone must not be smaller, -1 if it must
    not be larger, and 0 if they are free. Eight sweeps give pairs in the wrong order their weighted mean. A last one
    moves the right leaf of such a pair to the left one. After level l its pairs are in order, and those of a level k
    before stay so: on both sides of l the values are ordered along k, and so are their pairwise maxima and minima. All
    pairs are therefore in order at its end, whatever the signs.
    """
    levels = len(signs)
    for sweep in range(9):
        for level in range(levels):
            sign, bit = signs[level], 1 << level
            if sign == 0:
                continue
            for left in range(len(value)):
                right = left | bit
                if left & bit or not (value[right] - value[left]) * sign < 0.0:
                    continue
                both = weight[left] + weight[right]
                if sweep == 8:
                    value[right] = value[left]
                elif both > 0.0:
                    mean = (value[left] * weight[left] + value[right] * weight[right]) / both
                    value[left], value[right] = mean, mean
                else:
                    value[left] = value[right] = 0.5 * (value[left] + value[right])
