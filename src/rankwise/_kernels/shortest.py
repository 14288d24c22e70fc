"""The shortest text that is read back as a float64, letter for letter what Python's ``repr`` gives.

x = w / 10^k with w of 16 digits, or of 17 where no 16 will do (Steele and White, "How to print floating-point numbers
accurately", 1990). The product x 10^k is known to twice the precision of float64 (Dekker, 1971), which tells w with
certainty enough to guess, and reading w / 10^k back tells whether the guess is right. What is left over, the very
large, the very small and what cannot be decided, is Python's to write.
"""

import math

import numpy as np

from rankwise._kernels.decimal import TENS, nearest
from rankwise._kernels.jit import kernel
from rankwise._kernels.letor_format import short_decimal

LONGEST = 25  # a sign, 17 digits, a point, and zeros before them
_SMALLEST, _LARGEST = 1e-4, 1e15  # repr has an exponent below, and from 1e16 on
_SPLIT = 134217729.0  # 2^27 + 1
_TENS_TO = np.array([10**power for power in range(19)], dtype=np.int64)


@kernel
def _product(a, b):
    """a b = high + low, exactly."""
    high = a * b
    c, d = _SPLIT * a, _SPLIT * b
    a1, b1 = c - (c - a), d - (d - b)
    a2, b2 = a - a1, b - b1
    return high, ((a1 * b1 - high) + a1 * b2 + a2 * b1) + a2 * b2


@kernel
def _digits_of(size):
    """``(w, k)`` with size = w / 10^k as short as can be, or k = -1 where Python has to write it."""
    w, k = short_decimal(size, False)
    if k >= 0:
        return w, k
    k = 14 - math.floor(math.log10(size))
    for _ in range(3):  # 15, 16 and 17 digits
        high, low = _product(size, TENS[k])
        whole = np.rint(high)
        w = np.int64(whole) + np.int64(np.rint((high - whole) + low))
        value, certain = nearest(np.uint64(w), -k)
        if certain and value == size:
            while w % 10 == 0:
                w //= 10
                k -= 1
            return w, k
        k += 1
    return np.int64(0), -1


@kernel
def put_shortest(out, at, value):
    """Write a number at ``at``; returns where it ends, or -1 where Python has to write it."""
    size = abs(value)
    if size != 0.0 and not _SMALLEST <= size < _LARGEST:  # NaN too
        return -1
    w, k = _digits_of(size)
    if k < 0:
        return -1
    if math.copysign(1.0, value) < 0:
        out[at] = 45
        at += 1
    digits = 1
    while digits < 18 and w >= _TENS_TO[digits]:
        digits += 1
    before = digits - k  # digits before the point
    if before <= 0:
        out[at], out[at + 1] = 48, 46
        at += 2
        for _ in range(-before):
            out[at] = 48
            at += 1
        before = -1
    for place in range(digits):
        if place == before:
            out[at] = 46
            at += 1
        out[at] = 48 + w // _TENS_TO[digits - 1 - place] % 10
        at += 1
    if k == 0:
        out[at], out[at + 1] = 46, 48
        at += 2
    return at
