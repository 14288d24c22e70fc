"""Decimal text to the nearest float64, bit for bit the result of Python's ``float``.

A decimal is w * 10^q with w an integer of at most 19 digits. Each of three steps handles what the one before cannot
decide:

1. w <= 2^53 and |q| <= 22: both are exact in float64, and one multiplication or division rounds once (Clinger, 1990).
2. Otherwise w times the leading 128 bits of 5^q gives the leading bits of the result; the error is too small to matter
   except where it is detected (Lemire, 2021, algorithm 1).
3. More than 19 digits, where w and w + 1 lead to different floats, and what step 2 leaves open: ``UNDECIDED``. The
   caller passes the text to Python's ``float``; in real data this does not happen.

References
----------
W. D. Clinger (1990). How to read floating point numbers accurately. PLDI 1990, 92-101. doi:10.1145/93542.93557

D. Lemire (2021). Number parsing at a gigabyte per second. Software: Practice and Experience 51(8), 1700-1727.
doi:10.1002/spe.2984
"""

import numpy as np

from rankwise._kernels.bits import from_bits
from rankwise._kernels.machine.jit import kernel
from rankwise._kernels.text.words import (
    byte,
    digit_bits,
    digits,
    eight_digits,
    leading_zeros,
    multiply_high,
    word,
)

U = np.uint64

# what read_decimal found
FINITE, NOT_FINITE, UNDECIDED, MALFORMED = 0, 1, 2, 3

LOWEST, HIGHEST = -342, 308  # below, every 19-digit w * 10^q rounds to 0; above, to infinity
MOST_DIGITS = 19  # 10^19 - 1 fits into 64 bits
FAR = 1 << 50  # an exponent that the length of no text could compensate


def _leading_bits_of_powers_of_five() -> np.ndarray:
    """For q = LOWEST .. HIGHEST the leading 128 bits of 5^q: cut off for q >= 0, rounded up for q < 0."""
    table = np.empty((HIGHEST - LOWEST + 1, 2), dtype=np.uint64)
    for q in range(LOWEST, HIGHEST + 1):
        power = 5 ** abs(q)
        if q >= 0:
            shift = power.bit_length() - 128
            leading = power >> shift if shift > 0 else power << -shift
        else:
            leading = (1 << (power.bit_length() + 127)) // power + 1
            leading >>= leading.bit_length() - 128
        table[q - LOWEST] = leading >> 64, leading & (2**64 - 1)
    return table


FIVES = _leading_bits_of_powers_of_five()
TENS = np.array([10.0**q for q in range(23)])  # all exact
WHOLE_TENS = np.array([10**q for q in range(8)], dtype=np.uint64)


@kernel
def nearest(w, q):
    """``(w * 10^q rounded to float64, whether that is certain)`` for any w of 64 bits."""
    if w == U(0) or q < LOWEST:
        return 0.0, True
    if q > HIGHEST:
        return np.inf, True
    if w <= U(2**53) and -22 <= q <= 22:
        return (np.float64(w) / TENS[-q] if q < 0 else np.float64(w) * TENS[q]), True
    zeros = leading_zeros(w)
    w <<= zeros
    upper = multiply_high(w, FIVES[q - LOWEST, 0])
    lower = w * FIVES[q - LOWEST, 0]
    if upper & U(0x1FF) == U(0x1FF):  # the nine bits below the 55 that are kept could still carry
        more = multiply_high(w, FIVES[q - LOWEST, 1])
        lower += more
        if lower < more:
            upper += U(1)
    certain = lower != U(2**64 - 1) or -27 <= q <= 55  # in that range 5^q itself is exact or exactly inverted
    top = upper >> U(63)
    mantissa = upper >> (top + U(9))  # 54 bits: 53 and one to round by
    # binary exponent of the leading bit, biased; 217706 / 2^16 approximates log2(10) well enough for every q here
    exponent = ((217706 * q) >> 16) + 63 + np.int64(top) - np.int64(zeros) + 1023
    if exponent <= 0:
        if exponent <= -63:
            return 0.0, certain
        mantissa >>= U(1 - exponent)
        mantissa = (mantissa + (mantissa & U(1))) >> U(1)
        return from_bits(mantissa), certain  # a carry into bit 52 makes the smallest normal number, as it should
    if lower <= U(1) and -4 <= q <= 23 and mantissa & U(3) == U(1) and mantissa << (top + U(9)) == upper:
        mantissa &= ~U(1)  # exactly half way (only possible for these q): to even
    mantissa = (mantissa + (mantissa & U(1))) >> U(1)
    if mantissa == U(2**53):
        mantissa = U(2**52)
        exponent += 1
    if exponent >= 0x7FF:
        return np.inf, certain
    return from_bits((mantissa & U(2**52 - 1)) | (U(exponent) << U(52))), certain


@kernel
def is_break(letter):
    """Whether a byte ends a token: blank, tab, carriage return, newline or the ``#`` of a comment."""
    return letter == 32 or 9 <= letter <= 13 or letter == 35


@kernel
def _add_digits(text, place, end, w):
    """``(w with the digits at place appended, where they end)``; w wraps around after 19 digits."""
    while place + 8 <= end:
        eight = word(text, place)
        bits = digit_bits(eight)
        if bits < U(64):
            count = np.int64(bits >> U(3))
            return w * WHOLE_TENS[count] + digits(eight, bits), place + count
        w = w * U(100_000_000) + eight_digits(eight)
        place += 8
    while place < end and U(byte(text, place)) - U(48) < U(10):
        w = w * U(10) + U(byte(text, place)) - U(48)
        place += 1
    return w, place


@kernel
def _first_digits(text, place, end):
    """``(w, q, cut)``: the first 19 significant digits of ``digits . digits``, and whether others than 0 follow."""
    w = U(0)
    q = 0
    taken = 0
    cut = False
    after_point = False
    while place < end:
        letter = byte(text, place)
        if letter == 46:
            after_point = True
        elif taken < MOST_DIGITS:
            w = w * U(10) + U(letter) - U(48)
            taken += taken > 0 or letter != 48
            q -= after_point
        else:
            q += not after_point
            cut = cut or letter != 48
        place += 1
    return w, q, cut


@kernel
def _exponent(text, place, end):
    """``(exponent, where it ends)`` after the letter e; the same place back if no digit is there."""
    first = place
    negative = False
    if place < end and (byte(text, place) == 43 or byte(text, place) == 45):
        negative = byte(text, place) == 45
        place += 1
    exponent = 0
    digits_from = place
    while place < end and 48 <= byte(text, place) <= 57:
        exponent = min(FAR, exponent * 10 + byte(text, place) - 48)
        place += 1
    if place == digits_from:
        return 0, first
    return (-exponent if negative else exponent), place


@kernel
def _spells(text, place, end, small_letters):
    """Whether the text at ``place`` is this word, in small or capital letters."""
    if place + len(small_letters) > end:
        return False
    same = 0
    while same < len(small_letters) and byte(text, place + same) | 32 == small_letters[same]:
        same += 1
    return same == len(small_letters)


NULL = np.frombuffer(b"null", dtype=np.uint8)
NAN = np.frombuffer(b"nan", dtype=np.uint8)
INFINITY = np.frombuffer(b"infinity", dtype=np.uint8)
INF = np.frombuffer(b"inf", dtype=np.uint8)


@kernel
def _not_a_number(text, place, end):
    """Where ``NULL``, ``nan``, ``inf`` or ``infinity`` ends, or ``place`` itself if none of them is there."""
    if _spells(text, place, end, NULL):
        return place + 4
    if _spells(text, place, end, INFINITY):
        return place + 8
    if _spells(text, place, end, NAN) or _spells(text, place, end, INF):
        return place + 3
    return place


@kernel
def read_decimal(text, place, end):
    """``(value, where the token ends, what it is)`` of the number at ``place``; reads nothing from ``end`` on.

    The form is ``[+-] digits [. digits] [e [+-] digits]`` with at least one digit before or after the point, then a
    break or the end. A value that is not finite comes back as NaN.
    """
    token = place
    negative = False
    if place < end and (byte(text, place) == 43 or byte(text, place) == 45):
        negative = byte(text, place) == 45
        place += 1
    first = place
    w, place = _add_digits(text, place, end, U(0))
    count = place - first
    q = 0
    if place < end and byte(text, place) == 46:
        point = place
        w, place = _add_digits(text, point + 1, end, w)
        q = point + 1 - place
        count -= q
    last = place
    if count == 0:
        place = _not_a_number(text, first, end)
        if place > first and (place == end or is_break(byte(text, place))):
            return np.nan, place, NOT_FINITE
        return 0.0, token, MALFORMED
    if place < end and byte(text, place) | 32 == 101:
        power, stop = _exponent(text, place + 1, end)
        if stop == place + 1:
            return 0.0, token, MALFORMED
        place = stop
    else:
        power = 0
    if place < end and not is_break(byte(text, place)):
        return 0.0, token, MALFORMED
    cut = False
    if count > MOST_DIGITS:  # w has wrapped around, unless zeros led
        w, q, cut = _first_digits(text, first, last)
    value, certain = nearest(w, q + power)
    if cut:  # the truth lies between w and w + 1
        above, surely = nearest(w + U(1), q + power)
        certain = certain and surely and above == value
    if not certain:
        return (-value if negative else value), place, UNDECIDED
    if value == np.inf:
        return np.nan, place, NOT_FINITE
    return (-value if negative else value), place, FINITE
