"""exp, sigmoid and log(1 + exp x) that a loop can vectorise, to two units in the last place.

numba has no vectorised ``exp`` of its own, and a call into the C library for every value costs five times as much. Here
x = k ln 2 + r with k whole and |r| <= ln(2)/2; exp(r) is a polynomial and 2^k is put together from its bits.

Fastmath must stay off in this file: reassociation would delete the rounding trick. Loops that call these functions
may use it.
"""

import math

import numpy as np

from rankwise._kernels.bits import from_bits, to_bits
from rankwise._kernels.jit import kernel

_LOG2_E = 1.0 / math.log(2.0)
# ln 2 in two parts: the first has zeros at its end, so that k times it is exact for every k here
_LN2_HIGH = float.fromhex("0x1.62e42fee00000p-1")
_LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
# adding this number leaves no room for fractions: what is kept is x rounded to a whole number, in the lowest bits
_ROUND = 1.5 * 2.0**52
_ROUND_BITS = int(np.float64(_ROUND).view(np.int64))
# below, exp rounds to 0; above, to infinity
_LOWEST, _HIGHEST = -746.0, 710.0

(_C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11, _C12, _C13) = (1.0 / math.factorial(n) for n in range(2, 14))


@kernel(inline="always")
def exp(x):
    """e^x; 0 below -745.13 and infinity above 709.78, with gradual underflow between."""
    x = min(max(x, _LOWEST), _HIGHEST)
    rounded = x * _LOG2_E + _ROUND
    k = rounded - _ROUND
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    tail = _C9 + r * (_C10 + r * (_C11 + r * (_C12 + r * _C13)))
    tail = _C4 + r * (_C5 + r * (_C6 + r * (_C7 + r * (_C8 + r * tail))))
    value = 1.0 + (r + r * r * (_C2 + r * (_C3 + r * tail)))
    whole = to_bits(rounded) - _ROUND_BITS
    half = whole >> 1  # in two steps, so that neither 2^half nor 2^(whole - half) leaves the normal range
    return value * from_bits((half + 1023) << 52) * from_bits((whole - half + 1023) << 52)


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
