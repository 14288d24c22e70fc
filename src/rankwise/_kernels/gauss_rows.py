"""Soft ranks by direct sums: which document stands at position j, blurred by a Gaussian, in O(m k).

f_1 >= f_2 >= ... are the scores of one list in decreasing order and G the gains in the same order.
Position j takes document i with weight h_ij = e_ij / E_j, e_ij = exp(-(f_i - f_j)^2 / sigma), E_j = sum_i e_ij >= 1, so
its mean gain is Gbar_j = sum_i h_ij G_i. With T_ij = h_ij (f_i - f_j) (G_i - Gbar_j), a sum of weights times mean
gains, sum_j w_j Gbar_j, has the derivative -(2/sigma) sum_j w_j T_pj + (2/sigma) w_p sum_i T_ip with respect to f_p.

e_ij = e_ji, so pairs i > j are enough: each is computed once, kept, and used for both positions.
"""

import math

import numpy as np

from rankwise._kernels.exp import exp
from rankwise._kernels.jit import kernel

# exp(-36) = 2e-16: a document that far away is not seen beside the one that stands at the position itself
FAR = 36.0
# below exp(-746) = 0 there is nothing to be seen
_FARTHEST = 746.0


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


# exp must not be reassociated, so that its loop is one of its own; fusing its products and sums does no harm
@kernel(fastmath={"contract"})
def bells(f, x, scale, e):
    """exp(-(f_i - x)^2 scale) of every score."""
    for i in range(len(f)):
        d = f[i] - x
        e[i] = exp(-(d * d * scale))


@kernel(fastmath={"contract"})
def _squares(f, x, scale, out):
    for i in range(len(f)):
        d = f[i] - x
        out[i] = -(d * d * scale)


@kernel(fastmath={"contract"})
def _exp_all(x):
    for i in range(len(x)):
        x[i] = exp(x[i])


@kernel(fastmath={"reassoc", "contract"})
def _add_pairs(e, mine, gain, total, weighted):
    """Add the pairs of one document with those after it, whose E and E Gbar are given; returns what is its own."""
    own_total, own_weighted = 0.0, 0.0
    for i in range(len(e)):
        own_total += e[i]
        own_weighted += e[i] * gain[i]
        total[i] += e[i]
        weighted[i] += e[i] * mine
    return own_total, own_weighted


@kernel(fastmath={"reassoc", "contract"})
def _add_slopes(e, x, mine, my_factor, my_mean, f, gain, factor, mean, slope):
    """Add the derivatives that the pairs of one document with those after it contribute; returns its own."""
    own = 0.0
    for i in range(len(e)):
        t = e[i] * (f[i] - x) * (my_factor * (gain[i] - my_mean) + factor[i] * (mine - mean[i]))
        slope[i] -= t
        own += t
    return own


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
        a, b = j + 1, stop[j]
        _squares(f[a:b], f[j], 1.0 / sigma, pairs[at : at + b - a])
        at += b - a
    _exp_all(pairs)  # in one go: what is left over at the end of a short row costs more than the row
    total[:] = 1.0
    mean[:] = gain
    at = 0
    for j in range(len(stop)):
        a, b = j + 1, stop[j]
        e = pairs[at : at + b - a]
        own_total, own_weighted = _add_pairs(e, gain[j], gain[a:b], total[a:b], mean[a:b])
        total[j] += own_total
        mean[j] += own_weighted
        at += len(e)
    mean /= total


@kernel
def row_slopes(f, gain, weight, sigma, stop, pairs, total, mean, slope):
    """Add the derivatives of sum_j w_j Gbar_j to ``slope``, given what :func:`row_means` found."""
    factor = np.zeros(len(f))
    for j in range(len(weight)):
        factor[j] = 2.0 / sigma * weight[j] / total[j]
    at = 0
    for j in range(len(stop)):
        a, b = j + 1, stop[j]
        e = pairs[at : at + b - a]
        slope[j] += _add_slopes(
            e, f[j], gain[j], factor[j], mean[j], f[a:b], gain[a:b], factor[a:b], mean[a:b], slope[a:b]
        )
        at += len(e)
