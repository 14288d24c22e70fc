"""Soft ranks: which document stands at position j, blurred by a Gaussian, by direct sums or by Gauss transforms.

f_1 >= f_2 >= ... are the scores of one query in decreasing order and G the gains in the same order. Position j takes
document i with weight h_ij = e_ij / E_j, e_ij = exp(-(f_i - f_j)^2 / sigma), E_j = sum_i e_ij >= 1, so its mean gain is
Gbar_j = sum_i h_ij G_i. With T_ij = h_ij (f_i - f_j) (G_i - Gbar_j), a sum of weights times mean gains, sum_j w_j
Gbar_j, has the derivative -(2/sigma) sum_j w_j T_pj + (2/sigma) w_p sum_i T_ip with respect to f_p.

:func:`row_means` and :func:`row_slopes` compute this in O(m k) by direct sums. :func:`gauss_means` and
:func:`gauss_slopes` compute it by Gauss transforms, in nearly linear time for any width; :func:`transforms_pay` says
which is faster.

All that the transforms need are four sums F(x) = sum_i w_i exp(-(x - y_i)^2 / sigma) and their derivatives, since sum_i
w_i (y_i - x) exp(-(x - y_i)^2 / sigma) = (sigma / 2) F'(x): the weights 1 and G_i at the targets f_j give E_j and E_j
Gbar_j, the weights w_j / E_j and w_j Gbar_j / E_j at the targets f_p give the gradient.

Sorted scores are cut into boxes no wider than sqrt(sigma), each with the middle of its own documents as its center, so
that nothing is lost to cancellation where scores crowd together. With t the distance of two centers, u and v those of
target and source from theirs, all in units of sqrt(sigma), and Hermite functions h_0 = exp(-t^2), h_1 = 2 t h_0,
h_(n+1) = 2 t h_n - 2 n h_(n-1),

    exp(-(t + u - v)^2) = sum over a, b >= 0 of h_(a+b)(t) v^a / a! (-u)^b / b!

For abs(u), abs(v) <= 1/2 and abs(h_n(t)) <= 1.09 2^(n/2) sqrt(n!) a term is at most 1.09 / sqrt(a! b!): the terms
beyond the first TERMS powers are below 2e-11 of the weights in the worst case, and below 1e-14 wherever it was
measured. A box of sources becomes TERMS moments, and these become a polynomial about the center of the other box. Pairs
of boxes with few documents are cheaper to sum directly, and pairs that are too far apart are negligible. Narrow kernels
thus become sums over windows, wide ones a few polynomials.

References
----------
L. Greengard and J. Strain (1991). The fast Gauss transform. SIAM Journal on Scientific and Statistical Computing 12(1),
79-94. doi:10.1137/0912004
"""

import math

import numpy as np

from rankwise._kernels.exp import LOG2_E, decay
from rankwise._kernels.machine.jit import kernel

TERMS = 24
_INVERSE_FACTORIAL = np.array([1.0 / math.factorial(n) for n in range(TERMS)])
_SIGNED = np.array([(-1.0) ** n / math.factorial(n) for n in range(TERMS)])

# A pair of boxes is expanded from this many pairs of documents on; a row of them costs as much as _ROW pairs more.
_MANY, _ROW = 120, 8
# Direct sums keep every pair: no more than these, 2 MB.
_MOST_PAIRS = 250_000


@kernel(inline="always")
def _cut_into_boxes(f, width, start, center):
    """Begin a box wherever the next score is more than ``width`` below the first of the box; returns their number."""
    count = 0
    for p in range(len(f)):
        if p == 0 or f[start[count - 1]] - f[p] > width:
            start[count] = p
            count += 1
    start[count] = len(f)
    for b in range(count):
        center[b] = 0.5 * f[start[b]] + 0.5 * f[start[b + 1] - 1]
    return count


# As in the direct sums below, loops take whole arrays and unsigned indices. What a pass over memory loads is used for
# four terms at once, because loads and stores would otherwise take longer than the arithmetic.


@kernel(fastmath={"reassoc", "contract"})
def _moments(low, size, f, center, inverse, w0, w1, v, p0, p1, moment):
    """sum_i w_i v_i^a / a! for both weights, over ``size`` sources from ``low`` on."""
    for i in range(size):
        v[i] = (f[low + i] - center) * inverse
        p0[i] = w0[low + i]
        p1[i] = w1[low + i]
    for a in range(0, TERMS, 4):
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
        for i in range(size):
            x, p, q = v[i], p0[i], p1[i]
            s0 += p
            t0 += q
            p *= x
            q *= x
            s1 += p
            t1 += q
            p *= x
            q *= x
            s2 += p
            t2 += q
            p *= x
            q *= x
            s3 += p
            t3 += q
            p0[i] = p * x
            p1[i] = q * x
        moment[0, a], moment[0, a + 1], moment[0, a + 2], moment[0, a + 3] = s0, s1, s2, s3
        moment[1, a], moment[1, a + 1], moment[1, a + 2], moment[1, a + 3] = t0, t1, t2, t3
    for a in range(TERMS):
        moment[0, a] *= _INVERSE_FACTORIAL[a]
        moment[1, a] *= _INVERSE_FACTORIAL[a]


@kernel(inline="always")
def _hermite(count, twice, last, lately, h):
    """h_0(t), h_1(t), ... into a row for each of ``count`` numbers 2 t.

    All at once: one after the other, every step would wait for the product of the step before.
    """
    for i in range(count):
        lately[i] = decay(0.25 * LOG2_E * (twice[i] * twice[i]))
        last[i] = twice[i] * lately[i]
        h[i, 0] = lately[i]
        h[i, 1] = last[i]
    for n in range(1, 2 * TERMS - 2):
        for i in range(count):
            new = twice[i] * last[i] - (2.0 * n) * lately[i]
            lately[i] = last[i]
            last[i] = new
            h[i, n + 1] = new


@kernel(inline="always")
def _translate(i, s, h, moment, local):
    """Add box s of sources to the polynomials of a box of targets; signs and factorials are applied at the end."""
    for a in range(0, TERMS, 4):
        m0, m1, m2, m3 = moment[s, 0, a], moment[s, 0, a + 1], moment[s, 0, a + 2], moment[s, 0, a + 3]
        n0, n1, n2, n3 = moment[s, 1, a], moment[s, 1, a + 1], moment[s, 1, a + 2], moment[s, 1, a + 3]
        for b in range(TERMS):
            h0, h1, h2, h3 = h[i, a + b], h[i, a + b + 1], h[i, a + b + 2], h[i, a + b + 3]
            local[0, b] += m0 * h0 + m1 * h1 + m2 * h2 + m3 * h3
            local[1, b] += n0 * h0 + n1 * h1 + n2 * h2 + n3 * h3


@kernel(inline="always")
def _evaluate(low, size, f, center, inverse, local, u, v0, d0, v1, d1, sums):
    """Add the polynomials and their derivatives at ``size`` targets from ``low`` on to ``sums``."""
    for b in range(TERMS):
        local[0, b] *= _SIGNED[b]
        local[1, b] *= _SIGNED[b]
    for i in range(size):
        u[i] = (f[low + i] - center) * inverse
        v0[i], d0[i], v1[i], d1[i] = 0.0, 0.0, 0.0, 0.0
    for b in range(TERMS - 1, 0, -2):
        a0, b0, a1, b1 = local[0, b], local[0, b - 1], local[1, b], local[1, b - 1]
        for i in range(size):
            x, v, d = u[i], v0[i], d0[i]
            d, v = d * x + v, v * x + a0
            d0[i], v0[i] = d * x + v, v * x + b0
            v, d = v1[i], d1[i]
            d, v = d * x + v, v * x + a1
            d1[i], v1[i] = d * x + v, v * x + b1
    for i in range(size):
        sums[0, low + i] += v0[i]
        sums[1, low + i] += d0[i] * inverse
        sums[2, low + i] += v1[i]
        sums[3, low + i] += d1[i] * inverse


@kernel(fastmath={"reassoc", "contract"})
def _row(low, high, x, f, scale, w0, w1):
    """Both sums and first moments at one target x of the sources low .. high-1, directly."""
    v0, d0, v1, d1 = 0.0, 0.0, 0.0, 0.0
    for i in range(low, high):
        y = f[i] - x
        e = decay(y * y * scale)
        e0, e1 = e * w0[i], e * w1[i]
        v0 += e0
        d0 += e0 * y
        v1 += e1
        d1 += e1 * y
    return v0, d0, v1, d1


@kernel
def _add_rows(f, low, high, from_, to, sigma, w0, w1, sums):
    """Add the sources from_ .. to-1 to the sums at the targets low .. high-1."""
    for at in range(low, high):
        v0, d0, v1, d1 = _row(np.uint64(from_), np.uint64(to), f[at], f, LOG2_E / sigma, w0, w1)
        sums[0, at] += v0
        sums[1, at] += 2.0 / sigma * d0
        sums[2, at] += v1
        sums[3, at] += 2.0 / sigma * d1


@kernel(fastmath={"contract"})
def transforms(f, sigma, reach, w0, w1, targets, sums):
    """F and F' for the weights w0 (sums[0], sums[1]) and w1 (sums[2], sums[3]) at the first ``targets`` scores.

    The sources are the first ``len(w0)`` scores; ``f`` is decreasing, and ``reach`` is the squared distance from which
    on pairs are negligible.
    """
    size, sources = len(f), len(w0)
    radius, inverse = math.sqrt(reach), 1.0 / math.sqrt(sigma)
    start, center = np.empty(size + 1, np.int64), np.empty(size)
    count = _cut_into_boxes(f, math.sqrt(sigma), start, center)
    a, b, c, d, e = np.empty(size), np.empty(size), np.empty(size), np.empty(size), np.empty(size)  # buffers
    moment, ready = np.empty((count, 2, TERMS)), np.empty(count, np.bool_)
    for s in range(count):
        ready[s] = False
    h, local = np.empty((count, 2 * TERMS)), np.empty((2, TERMS))
    chosen, twice = np.empty(count, np.int64), np.empty(count)
    for j in range(targets):
        sums[0, j], sums[1, j], sums[2, j], sums[3, j] = 0.0, 0.0, 0.0, 0.0
    first = 0  # the first box within reach; it only moves down
    for t in range(count):
        low, high = start[t], min(start[t + 1], targets)
        if high <= low:
            break
        while f[start[first + 1] - 1] - f[low] > radius:
            first += 1
        expanded = 0
        waiting = start[first]  # the sources from here to the current box are to be summed directly
        s = first
        while s < count and start[s] < sources and (s <= t or f[high - 1] - f[start[s]] <= radius):
            from_, to = start[s], min(start[s + 1], sources)
            if (high - low) * (to - from_ + _ROW) > _MANY:
                if waiting < from_:
                    _add_rows(f, low, high, waiting, from_, sigma, w0, w1, sums)
                waiting = to
                if not ready[s]:
                    low_, many = np.uint64(from_), np.uint64(to - from_)
                    _moments(low_, many, f, center[s], inverse, w0, w1, a, b, c, moment[s])
                    ready[s] = True
                chosen[expanded], twice[expanded] = s, 2.0 * (center[t] - center[s]) * inverse
                expanded += 1
            s += 1
        to = min(start[s], sources)
        if waiting < to:
            _add_rows(f, low, high, waiting, to, sigma, w0, w1, sums)
        if expanded > 0:
            for n in range(TERMS):
                local[0, n], local[1, n] = 0.0, 0.0
            _hermite(expanded, twice, a, b, h)
            for i in range(expanded):
                _translate(i, chosen[i], h, moment, local)
            _evaluate(np.uint64(low), np.uint64(high - low), f, center[t], inverse, local, a, b, c, d, e, sums)


@kernel(inline="always")
def transforms_pay(f, positions, pairs, sigma):
    """Whether transforms are likely to be faster than direct sums over so many pairs within reach.

    The costs are in nanoseconds, measured, for documents that are spread evenly over the boxes.
    """
    if pairs > _MOST_PAIRS:
        return True
    size = len(f)
    boxes = min((f[0] - f[size - 1]) / math.sqrt(sigma) + 1.0, float(size))
    crowd = size / boxes
    near = boxes * min(boxes, 2.0 * math.sqrt(FAR) + 1.0)
    by_boxes = 2.0 * (near * min(90.0, 0.9 * crowd * (crowd + _ROW)) + 250.0 * boxes + 15.0 * size + 900.0)
    return 1.65 * pairs + 35.0 * positions > by_boxes


@kernel(inline="always")
def gauss_means(f, gain, sigma, reach, total, mean, own):
    """E_j, Gbar_j and the derivative of Gbar_j with respect to f_j alone, of the first ``len(own)`` positions."""
    k = len(own)
    sums, ones = np.empty((4, k)), np.empty(len(f))
    for p in range(len(f)):
        ones[p] = 1.0
    transforms(f, sigma, reach, ones, gain, k, sums)
    for j in range(k):
        total[j] = sums[0, j]
        mean[j] = sums[2, j] / total[j]
        own[j] = (sums[3, j] - mean[j] * sums[1, j]) / total[j]


@kernel(inline="always")
def gauss_slopes(f, gain, weight, sigma, reach, total, mean, own, slope):
    """The derivatives of sum_j w_j Gbar_j, given the results of :func:`gauss_means`."""
    k, size = len(weight), len(f)
    sums, shared, by_mean = np.empty((4, size)), np.empty(k), np.empty(k)
    for j in range(k):
        shared[j] = weight[j] / total[j]
        by_mean[j] = shared[j] * mean[j]
    transforms(f, sigma, reach, shared, by_mean, size, sums)
    for p in range(size):
        slope[p] = gain[p] * sums[1, p] - sums[3, p]
    for j in range(k):
        slope[j] += weight[j] * own[j]


# -------------------------------------------------------------------------------------------------------- direct sums

# exp(-36) = 2e-16: a document that far away is negligible beside the one that stands at the position itself
FAR = 36.0
# exp(-707) = 1e-307: smaller weights are taken as 0
_FARTHEST = 707.0


@kernel(inline="always")
def reach(f, gain, positions, sigma):
    """The squared distance from which on pairs are negligible.

    The closest documents with different gains contribute most to a gradient, which may be tiny itself where all scores
    are far apart: what is left out is small compared with that contribution.
    """
    closest = _FARTHEST
    for p in range(min(positions, len(f) - 1)):
        x = f[p] - f[p + 1]
        if x > 0.0 and gain[p] != gain[p + 1]:
            closest = min(closest, x * x / sigma)
    return min(FAR + closest, _FARTHEST) * sigma


# Whole arrays and unsigned indices instead of slices: a slice counts references, and a signed index may have to wrap
# around, which keeps a loop from being vectorized. Either costs as much as a short row itself.
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
    """2^-y for every pair, in place."""
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


@kernel(inline="always")
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


@kernel(inline="always")
def row_means(f, gain, sigma, stop, pairs, total, mean):
    """E_j and Gbar_j of the first ``len(stop)`` positions; later entries of the two arrays are meaningless.

    ``pairs`` receives the e_ij, as many as :func:`windows` has counted. e_ij = e_ji, so pairs i > j are enough: each is
    computed once, kept, and used for both positions.
    """
    at = 0
    for j in range(len(stop)):
        _square_row(np.uint64(j), np.uint64(stop[j]), np.uint64(at - j - 1), f, LOG2_E / sigma, pairs)
        at += stop[j] - j - 1
    _decay_all(pairs)  # all rows together: the remainder of a vectorized loop costs more than a short row
    # the mean as a difference from the gain of the document at the position: equal gains leave exactly 0
    for p in range(len(total)):
        total[p], mean[p] = 1.0, 0.0
    at = 0
    for j in range(len(stop)):
        _add_row(np.uint64(j), np.uint64(stop[j]), np.uint64(at - j - 1), gain, pairs, total, mean)
        at += stop[j] - j - 1
    for j in range(len(mean)):
        mean[j] = gain[j] + mean[j] / total[j]


@kernel(inline="always")
def row_slopes(f, gain, weight, sigma, stop, pairs, total, mean, slope):
    """The derivatives of sum_j w_j Gbar_j, given the results of :func:`row_means`."""
    factor = np.empty(len(f))
    for p in range(len(f)):
        factor[p], slope[p] = 0.0, 0.0
    for j in range(len(weight)):
        factor[j] = 2.0 / sigma * weight[j] / total[j]
    at = 0
    for j in range(len(stop)):
        row, end, base = np.uint64(j), np.uint64(stop[j]), np.uint64(at - j - 1)
        _slope_row(row, end, base, f, gain, factor, mean, pairs, slope)
        at += stop[j] - j - 1
