"""exp, sigmoid and log(1 + exp x) that a loop can vectorize, to two, three and four units in the last place.

numba has no vectorized ``exp``, and a call into the C library for every value costs five times as much. Here x = k ln 2
+ r with k an integer and abs(r) <= ln(2)/2 (Cody and Waite, 1980); exp(r) is a polynomial and 2^k is assembled from its
bits.

Sums must not be reassociated in this file: that would delete the rounding trick. ``exp``, ``sigmoid`` and ``log1pexp``
are inlined into the function that calls them, which must not allow it either; a loop around ``decay`` may.
:func:`outranking` compares all scores of a query with one of them.
"""

import math

import numpy as np

from rankwise._kernels.bits import from_bits, to_bits
from rankwise._kernels.machine.jit import kernel

LOG2_E = 1.0 / math.log(2.0)
# ln 2 in two parts: the first has zeros at its end, so that k times it is exact for every k here
_LN2_HIGH = float.fromhex("0x1.62e42fee00000p-1")
_LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
# adding this number leaves no bits for fractions: what is kept is x rounded to an integer, in the lowest bits
_ROUND = 1.5 * 2.0**52
_ROUND_BITS = int(np.float64(_ROUND).view(np.int64))
# below, exp rounds to 0; above, to infinity
_LOWEST, _HIGHEST = -746.0, 710.0

(_C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11, _C12, _C13) = (1.0 / math.factorial(n) for n in range(2, 14))


@kernel(inline="always")
def exp(x):
    """e^x; 0 below -745.13 and infinity above 709.78, with gradual underflow between."""
    x = min(max(x, _LOWEST), _HIGHEST)
    rounded = x * LOG2_E + _ROUND
    k = rounded - _ROUND
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    tail = _C9 + r * (_C10 + r * (_C11 + r * (_C12 + r * _C13)))
    tail = _C4 + r * (_C5 + r * (_C6 + r * (_C7 + r * (_C8 + r * tail))))
    value = 1.0 + (r + r * r * (_C2 + r * (_C3 + r * tail)))
    whole = to_bits(rounded) - _ROUND_BITS
    half = whole >> 1  # in two steps, so that neither 2^half nor 2^(whole - half) leaves the normal range
    return value * from_bits((half + 1023) << 52) * from_bits((whole - half + 1023) << 52)


# 2^r = 1 + r (d_1 + d_2 r + ... + d_10 r^9) to 3e-16 for abs(r) <= 1/2, by Remez's exchange; exact at r = 0
(_D1, _D2, _D3, _D4, _D5, _D6, _D7, _D8, _D9, _D10) = (
    float.fromhex(digits)
    for digits in (
        "0x1.62e42fefa3a28p-1",
        "0x1.ebfbdff82c61fp-3",
        "0x1.c6b08d7039559p-5",
        "0x1.3b2ab6fb82097p-7",
        "0x1.5d87fea4a75dep-10",
        "0x1.43091387c59dfp-13",
        "0x1.ffcb3f1b0bd1fp-17",
        "0x1.62be6867472a4p-20",
        "0x1.b689b4b8cd52ap-24",
        "0x1.e8b75cc7d42fap-28",
    )
)
# the largest y whose 2^-y is assembled without leaving the normal range
_FADED = 1021.0


@kernel(fastmath={"contract"})
def decay(y):
    """2^-y for y >= 0, to four units in the last place; 0 where that is below 2^-1021.

    It takes half the work of :func:`exp`: there is nothing to clamp, no product with ln 2, and 2^k is added to the
    exponent at once.
    """
    rounded = _ROUND - y
    r = (_ROUND - rounded) - y
    tail = _D5 + r * (_D6 + r * (_D7 + r * (_D8 + r * (_D9 + r * _D10))))
    value = 1.0 + r * (_D1 + r * (_D2 + r * (_D3 + r * (_D4 + r * tail))))
    # the lowest bits of ``rounded`` hold the integer k; shifted up, they are added to the exponent
    return from_bits(to_bits(value) + (to_bits(rounded) << 52)) if y <= _FADED else 0.0


@kernel(inline="always")
def sigmoid(x):
    """1 / (1 + e^-x), without overflow, and exact to the last bits on both sides."""
    z = exp(-abs(x))
    return (1.0 if x >= 0.0 else z) / (1.0 + z)


# log(1 + z) = 2 artanh(z / (2 + z)) = 2 (t + t^3/3 + t^5/5 + ...), t <= 1/3: sixteen terms reach 2^-53
_ODD = np.array([1.0 / (2 * n + 1) for n in range(17)])


@kernel(inline="always")
def log1pexp(x):
    """log(1 + e^x), without overflow."""
    z = exp(-abs(x))
    t = z / (2.0 + z)
    u = t * t
    series = _ODD[16]
    for n in range(15, -1, -1):
        series = series * u + _ODD[n]
    return max(x, 0.0) + 2.0 * t * series


@kernel
def outranking(score, i, sigma, above):
    """P_ij = sigmoid((s_j - s_i) / sigma) into ``above``: close to 1 if j is above i; 0 for i itself."""
    own = score[i]
    for j in range(len(score)):
        above[j] = sigmoid((score[j] - own) / sigma)
    above[i] = 0.0
