"""Soft ranks by Gauss transforms: what gauss_rows computes in O(m k), in nearly linear time for any width.

All that is needed are four sums F(x) = sum_i w_i exp(-(x - y_i)^2 / sigma) and their derivatives, since
sum_i w_i (y_i - x) exp(-(x - y_i)^2 / sigma) = (sigma / 2) F'(x): the weights 1 and G_i at the targets f_j give E_j and
E_j Gbar_j, the weights w_j / E_j and w_j Gbar_j / E_j at the targets f_p give the gradient.

Sorted scores are cut into boxes no wider than sqrt(sigma), each with the middle of its own documents as its centre, so
that nothing is lost to cancellation where scores crowd together. With t the distance of two centres, u and v those of
target and source from theirs, all in units of sqrt(sigma), and Hermite functions h_0 = exp(-t^2), h_1 = 2 t h_0,
h_(n+1) = 2 t h_n - 2 n h_(n-1),

    exp(-(t + u - v)^2) = sum over a, b >= 0 of h_(a+b)(t) v^a / a! (-u)^b / b!

For |u|, |v| <= 1/2 and |h_n(t)| <= 1.09 2^(n/2) sqrt(n!) a term is at most 1.09 / sqrt(a! b!): what lies beyond the
first TERMS powers is below 2e-11 of the weights at the very worst, and below 1e-14 wherever it was measured. A box of
sources becomes TERMS moments, and these a polynomial about the centre of the other box. Pairs of boxes with few
documents are cheaper to sum as they are, and pairs too far apart count nothing. Narrow kernels thus become sums over
windows, wide ones a few polynomials.
"""

import math

import numpy as np

from rankwise._kernels.gauss_rows import FAR, bells
from rankwise._kernels.jit import kernel

TERMS = 24
_INVERSE_FACTORIAL = np.array([1.0 / math.factorial(n) for n in range(TERMS)])
_SIGNED = np.array([(-1.0) ** n / math.factorial(n) for n in range(TERMS)])

# A pair of boxes is expanded from this many pairs of documents on; a row of them costs as much as _ROW pairs more.
_MANY, _ROW = 120, 8
# Direct sums keep every pair: no more than these, 2 MB.
_MOST_PAIRS = 250_000


@kernel
def _cut_into_boxes(f, width, start, centre):
    """Begin a box wherever the next score is more than ``width`` below the box's first; returns their number."""
    count = 0
    for p in range(len(f)):
        if p == 0 or f[start[count - 1]] - f[p] > width:
            start[count] = p
            count += 1
    start[count] = len(f)
    for b in range(count):
        centre[b] = 0.5 * f[start[b]] + 0.5 * f[start[b + 1] - 1]
    return count


@kernel(fastmath={"reassoc", "contract"})
def _moments(f, low, high, centre, inverse, w0, w1, moment, room):
    """sum_i w_i v_i^a / a! for both weights."""
    size = high - low
    v, p0, p1 = room[0, :size], room[1, :size], room[2, :size]
    for i in range(size):
        v[i] = (f[low + i] - centre) * inverse
        p0[i] = w0[low + i]
        p1[i] = w1[low + i]
    for a in range(TERMS):
        sum0, sum1 = 0.0, 0.0
        for i in range(size):
            sum0 += p0[i]
            sum1 += p1[i]
            p0[i] *= v[i]
            p1[i] *= v[i]
        moment[0, a] = sum0 * _INVERSE_FACTORIAL[a]
        moment[1, a] = sum1 * _INVERSE_FACTORIAL[a]


@kernel(fastmath={"contract"})
def _hermite(t, h):
    """h_0(t), h_1(t), ..."""
    twice = 2.0 * t
    h[0] = np.exp(-t * t)
    h[1] = twice * h[0]
    for n in range(1, len(h) - 1):
        h[n + 1] = twice * h[n] - (2.0 * n) * h[n - 1]


@kernel(fastmath={"contract"})
def _translate(h, moment, local):
    """Add a box of sources to the polynomials of a box of targets, whose signs and factorials wait until the end."""
    for a in range(TERMS):
        m0, m1 = moment[0, a], moment[1, a]
        for b in range(TERMS):
            local[0, b] += m0 * h[a + b]
            local[1, b] += m1 * h[a + b]


@kernel(fastmath={"contract"})
def _evaluate(f, low, high, centre, inverse, local, room, sums):
    """Add the polynomials and their derivatives at the scores of a box to ``sums``."""
    size = high - low
    u, v0, d0, v1, d1 = room[0, :size], room[1, :size], room[2, :size], room[3, :size], room[4, :size]
    for i in range(size):
        u[i] = (f[low + i] - centre) * inverse
        v0[i], d0[i], v1[i], d1[i] = 0.0, 0.0, 0.0, 0.0
    for b in range(TERMS - 1, -1, -1):
        c0, c1 = local[0, b] * _SIGNED[b], local[1, b] * _SIGNED[b]
        for i in range(size):
            d0[i] = d0[i] * u[i] + v0[i]
            v0[i] = v0[i] * u[i] + c0
            d1[i] = d1[i] * u[i] + v1[i]
            v1[i] = v1[i] * u[i] + c1
    for i in range(size):
        sums[0, low + i] += v0[i]
        sums[1, low + i] += d0[i] * inverse
        sums[2, low + i] += v1[i]
        sums[3, low + i] += d1[i] * inverse


@kernel(fastmath={"reassoc", "contract"})
def _row(f, x, w0, w1, e):
    """Both sums and first moments of one target, as they are."""
    v0, d0, v1, d1 = 0.0, 0.0, 0.0, 0.0
    for i in range(len(f)):
        e0, e1, y = e[i] * w0[i], e[i] * w1[i], f[i] - x
        v0 += e0
        d0 += e0 * y
        v1 += e1
        d1 += e1 * y
    return v0, d0, v1, d1


@kernel
def _add_rows(f, low, high, from_, to, sigma, w0, w1, e, sums):
    """Add the sources from_ .. to-1 to the sums at the targets low .. high-1."""
    for at in range(low, high):
        bells(f[from_:to], f[at], 1.0 / sigma, e)
        v0, d0, v1, d1 = _row(f[from_:to], f[at], w0[from_:to], w1[from_:to], e)
        sums[0, at] += v0
        sums[1, at] += 2.0 / sigma * d0
        sums[2, at] += v1
        sums[3, at] += 2.0 / sigma * d1


@kernel
def transforms(f, sigma, reach, w0, w1, targets, sums):
    """F and F' for the weights w0 (sums[0], sums[1]) and w1 (sums[2], sums[3]) at the first ``targets`` scores.

    Sources are the first ``len(w0)`` scores; ``f`` is decreasing and ``reach`` the squared distance that still counts.
    """
    size, sources = len(f), len(w0)
    radius, inverse = math.sqrt(reach), 1.0 / math.sqrt(sigma)
    start, centre = np.empty(size + 1, np.int64), np.empty(size)
    count = _cut_into_boxes(f, math.sqrt(sigma), start, centre)
    room, h, local = np.empty((5, size)), np.empty(2 * TERMS), np.empty((2, TERMS))
    moment, ready = np.empty((count, 2, TERMS)), np.zeros(count, np.bool_)
    first = 0  # the first box within reach, which only moves down
    for t in range(count):
        low, high = start[t], min(start[t + 1], targets)
        if high <= low:
            break
        while f[start[first + 1] - 1] - f[low] > radius:
            first += 1
        expanded = False
        waiting = start[first]  # the sources from here to the current box are to be summed as they are
        s = first
        while s < count and start[s] < sources and (s <= t or f[high - 1] - f[start[s]] <= radius):
            from_, to = start[s], min(start[s + 1], sources)
            if (high - low) * (to - from_ + _ROW) > _MANY:
                if waiting < from_:
                    _add_rows(f, low, high, waiting, from_, sigma, w0, w1, room[0], sums)
                waiting = to
                if not expanded:
                    local[:] = 0.0
                    expanded = True
                if not ready[s]:
                    _moments(f, from_, to, centre[s], inverse, w0, w1, moment[s], room)
                    ready[s] = True
                _hermite((centre[t] - centre[s]) * inverse, h)
                _translate(h, moment[s], local)
            s += 1
        to = min(start[s], sources)
        if waiting < to:
            _add_rows(f, low, high, waiting, to, sigma, w0, w1, room[0], sums)
        if expanded:
            _evaluate(f, low, high, centre[t], inverse, local, room, sums)


@kernel
def transforms_pay(f, positions, pairs, sigma):
    """Whether transforms are likely to be faster than direct sums over so many pairs within reach.

    Costs in nanoseconds, measured, for documents that are spread evenly over the boxes.
    """
    if pairs > _MOST_PAIRS:
        return True
    size = len(f)
    boxes = min((f[0] - f[size - 1]) / math.sqrt(sigma) + 1.0, float(size))
    crowd = size / boxes
    near = boxes * min(boxes, 2.0 * math.sqrt(FAR) + 1.0)
    by_boxes = 2.0 * (near * min(150.0, 3.0 * crowd * (crowd + _ROW)) + 400.0 * boxes + 25.0 * size)
    return 2.7 * pairs + 100.0 * positions > by_boxes


@kernel
def gauss_means(f, gain, sigma, reach, total, mean, own):
    """E_j, Gbar_j and the derivative of Gbar_j with respect to f_j alone, of the first ``len(mean)`` positions."""
    k = len(mean)
    sums = np.zeros((4, k))
    transforms(f, sigma, reach, np.ones(len(f)), gain, k, sums)
    for j in range(k):
        total[j] = sums[0, j]
        mean[j] = sums[2, j] / total[j]
        own[j] = (sums[3, j] - mean[j] * sums[1, j]) / total[j]


@kernel
def gauss_slopes(f, gain, weight, sigma, reach, total, mean, own, slope):
    """Add the derivatives of sum_j w_j Gbar_j to ``slope``, given what :func:`gauss_means` found."""
    k, size = len(weight), len(f)
    sums = np.zeros((4, size))
    shared = weight / total
    transforms(f, sigma, reach, shared, shared * mean, size, sums)
    for p in range(size):
        slope[p] += gain[p] * sums[1, p] - sums[3, p]
    for j in range(k):
        slope[j] += weight[j] * own[j]
