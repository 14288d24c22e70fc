"""Soft ranks by direct sums: which document stands at position j, blurred by a Gaussian, in O(m k).

f_1 >= f_2 >= ... are the scores of one list in decreasing order and G the gains in the same order.
Position j takes document i with weight h_ij = e_ij / E_j, e_ij = exp(-(f_i - f_j)^2 / sigma), E_j = sum_i e_ij >= 1, so
its mean gain is Gbar_j = sum_i h_ij G_i. With T_ij = h_ij (f_i - f_j) (G_i - Gbar_j), a sum of weights times mean
gains, sum_j w_j Gbar_j, has the derivative -(2/sigma) sum_j w_j T_pj + (2/sigma) w_p sum_i T_ip with respect to f_p.

e_ij = e_ji, so pairs i > j are enough: each is computed once, kept, and used for both positions.
"""

import math

import numpy as np

from rankwise._kernels.exp import LOG2_E, decay
from rankwise._kernels.jit import kernel

# exp(-36) = 2e-16: a document that far away is not seen beside the one that stands at the position itself
FAR = 36.0
# exp(-707) = 1e-307: whatever is smaller is taken for nothing
_FARTHEST = 707.0


@kernel
def reach(f, gain, positions, sigma):
    """The squared distance from which on nothing counts.

    The closest documents with different gains make the largest part of a gradient, which may be tiny itself where all
    scores are far apart: what is left out is small beside that part.
    """
    closest = _FARTHEST
    for p in range(min(positions, len(f) - 1)):
        x = f[p] - f[p + 1]
        if x > 0.0 and gain[p] != gain[p + 1]:
            closest = min(closest, x * x / sigma)
    return min(FAR + closest, _FARTHEST) * sigma


# Whole arrays and unsigned indices instead of slices: a slice counts references, and a signed index may have to wrap
# around, which keeps a loop from being vectorised. Either costs as much as a short row itself.
_ONE = np.uint64(1)


@kernel(fastmath={"contract"})
def _square_row(j, stop, base, f, scale, pairs):
    """(f_i - f_j)^2 scale of the pairs of document j with those after it; pair i stands at ``base + i``."""
    x = f[j]
    for i in range(j + _ONE, stop):
        d = f[i] - x
        pairs[base + i] = d * d * scale


@kernel(fastmath={"contract"})
def _decay_all(pairs):
    for i in range(len(pairs)):
        pairs[i] = decay(pairs[i])


@kernel(fastmath={"reassoc", "contract"})
def _add_row(j, stop, base, gain, pairs, total, away):
    """Add the pairs of document j with those after it to E and E (Gbar - G) of all of them."""
    own_total, own_away, mine = 0.0, 0.0, gain[j]
    for i in range(j + _ONE, stop):
        e = pairs[base + i]
        more = e * (gain[i] - mine)
        own_total += e
        own_away += more
        total[i] += e
        away[i] -= more
    total[j] += own_total
    away[j] += own_away


@kernel(fastmath={"reassoc", "contract"})
def _slope_row(j, stop, base, f, gain, factor, mean, pairs, slope):
    """Add the derivatives that the pairs of document j with those after it contribute."""
    own, x, mine, my_factor, my_mean = 0.0, f[j], gain[j], factor[j], mean[j]
    for i in range(j + _ONE, stop):
        t = pairs[base + i] * (f[i] - x) * (my_factor * (gain[i] - my_mean) + factor[i] * (mine - mean[i]))
        slope[i] -= t
        own += t
    slope[j] += own


@kernel
def windows(f, reach, stop):
    """The first document after each position that is farther away than sqrt(reach); returns how many pairs are closer.

    The pairs of position j are those with documents j + 1 .. stop[j] - 1.
    """
    radius = math.sqrt(reach)
    count, i = 0, 0
    for j in range(len(stop)):
        while i < len(f) and f[j] - f[i] <= radius:
            i += 1
        stop[j] = i
        count += i - 1 - j
    return count


@kernel
def row_means(f, gain, sigma, stop, pairs, total, mean):
    """E_j and Gbar_j of the first ``len(stop)`` positions; what stands after them in the two arrays has no meaning.

    ``pairs`` receives the e_ij, as many as :func:`windows` has counted.
    """
    at = 0
    for j in range(len(stop)):
        _square_row(np.uint64(j), np.uint64(stop[j]), np.uint64(at - j - 1), f, LOG2_E / sigma, pairs)
        at += stop[j] - j - 1
    _decay_all(pairs)  # in one go: what is left over at the end of a short row costs more than the row
    total[:] = 1.0
    mean[:] = 0.0  # as a difference from the gain of the document at the position: equal gains leave exactly 0
    at = 0
    for j in range(len(stop)):
        _add_row(np.uint64(j), np.uint64(stop[j]), np.uint64(at - j - 1), gain, pairs, total, mean)
        at += stop[j] - j - 1
    for j in range(len(mean)):
        mean[j] = gain[j] + mean[j] / total[j]


@kernel
def row_slopes(f, gain, weight, sigma, stop, pairs, total, mean, slope):
    """Add the derivatives of sum_j w_j Gbar_j to ``slope``, given what :func:`row_means` found."""
    factor = np.zeros(len(f))
    for j in range(len(weight)):
        factor[j] = 2.0 / sigma * weight[j] / total[j]
    at = 0
    for j in range(len(stop)):
        row, end, base = np.uint64(j), np.uint64(stop[j]), np.uint64(at - j - 1)
        _slope_row(row, end, base, f, gain, factor, mean, pairs, slope)
        at += stop[j] - j - 1
