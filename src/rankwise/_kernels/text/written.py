"""Rows of LETOR text and lines of ranked documents, written so that reading them gives back the same bits.

Most numbers of real data are short decimals: |v| = m / 10^k with m of at most 15 digits. If that division gives v back
exactly, the text of m with a point before its last k digits suffices, because the reader divides in the same way. Other
numbers of LETOR rows are passed in as text that Python made.

:func:`put_shortest` writes the shortest text that reads back as a float64, letter for letter that of Python's ``repr``:
x = w / 10^k with w of 16 digits, or of 17 where no 16 suffice (Steele and White, 1990). The product x 10^k is known to
twice the precision of float64 (Dekker, 1971), which is enough to guess w, and reading w / 10^k back shows whether the
guess is right. What is left, the very large, the very small and what cannot be decided, is written by Python.

References
----------
G. L. Steele and J. L. White (1990). How to print floating-point numbers accurately. PLDI 1990, 112-126.
doi:10.1145/93542.93559

T. J. Dekker (1971). A floating-point technique for extending the available precision. Numerische Mathematik 18,
224-242. doi:10.1007/BF01397083
"""

import math

import numpy as np

from rankwise._kernels.machine.jit import kernel
from rankwise._kernels.text.decimal import TENS, nearest

MOST_DECIMALS = 15
USUAL_DECIMALS = 6  # tried first
MOST_DOUBLE = 1e15  # no two decimals of 15 digits are the same float64, so the smallest k gives the shortest text
MOST_SINGLE = 1e9
LONGEST_NUMBER = 24  # -2.2250738585072014e-308
WHOLE_TENS = np.array([10**k for k in range(MOST_DECIMALS + 1)], dtype=np.int64)

LABEL = -1  # in place of a column

_QID = np.frombuffer(b" qid:", dtype=np.uint8)
_COMMENT = np.frombuffer(b" # ", dtype=np.uint8)
_DOCID = np.frombuffer(b"docid = ", dtype=np.uint8)
_MARK = np.frombuffer(b"docid=", dtype=np.uint8)  # a document called so would be read as what follows
_NEWLINE = np.frombuffer(b"\n", dtype=np.uint8)


@kernel
def _decimal_of(size, k, single):
    """The m of at most 15 digits (9 if ``single``) with m / 10^k = size, rounded to float32 if ``single``, or -1."""
    m = np.rint(size * TENS[k])
    if not m < (MOST_SINGLE if single else MOST_DOUBLE):
        return -1
    quotient = m / TENS[k]
    return np.int64(m) if (np.float64(np.float32(quotient)) if single else quotient) == size else -1


@kernel
def short_decimal(value, single):
    """``(m, k)`` with |value| = m / 10^k and k as small as possible, or k = -1 if the value is not a short decimal."""
    size = abs(np.float64(value))
    m = _decimal_of(size, 0, single)
    if m >= 0:
        return m, 0
    k = USUAL_DECIMALS
    m = _decimal_of(size, k, single)
    if m >= 0:
        while m % 10 == 0:
            m //= 10
            k -= 1
        return m, k
    for k in range(1, MOST_DECIMALS + 1):
        m = _decimal_of(size, k, single)
        if m >= 0:
            return m, k
    return 0, -1


@kernel
def is_left_out(value, sparse):
    """Whether a sparse text omits this value: 0, but not -0."""
    return sparse and value == 0 and math.copysign(1.0, value) > 0


@kernel
def find_long(X, y, first, last, sparse, single, place):
    """Put (row, column) of every number of these rows that is not a short decimal into ``place``, in order."""
    count = 0
    for row in range(first, last):
        for column in range(LABEL, X.shape[1]):
            if column == LABEL:
                _, k = short_decimal(y[row], False)
            elif is_left_out(X[row, column], sparse):
                continue
            else:
                _, k = short_decimal(X[row, column], single)
            if k < 0:
                place[count, 0] = row
                place[count, 1] = column
                count += 1


@kernel
def put(out, at, letters):
    """Write letters at ``at``; returns where they end."""
    for number in range(len(letters)):
        out[at + number] = letters[number]
    return at + len(letters)


@kernel
def put_whole(out, at, number, count):
    """Write an integer with at least ``count`` digits."""
    digits = count
    while digits <= MOST_DECIMALS and number >= WHOLE_TENS[digits]:
        digits += 1
    for place in range(at + digits - 1, at - 1, -1):
        out[place] = 48 + number % 10
        number //= 10
    return at + digits


@kernel
def _put_number(out, at, value, single, long_texts, long_offset, used):
    """``(where it ends, long texts needed so far)`` after writing one value."""
    m, k = short_decimal(value, single)
    if k < 0:
        if used + 1 < len(long_offset):
            at = put(out, at, long_texts[long_offset[used] : long_offset[used + 1]])
        return at, used + 1
    if math.copysign(1.0, value) < 0:
        out[at] = 45
        at += 1
    at = put_whole(out, at, m // WHOLE_TENS[k], 1)
    if k > 0:
        out[at] = 46
        at = put_whole(out, at + 1, m % WHOLE_TENS[k], k)
    return at, used


@kernel
def _put_comment(out, at, docid):
    """Write a document id so that it is read as one, or nothing if it is empty."""
    if len(docid) == 0:
        return at
    at = put(out, at, _COMMENT)
    same = 0
    while same < min(len(_MARK), len(docid)) and docid[same] == _MARK[same]:
        same += 1
    if same == len(_MARK):
        at = put(out, at, _DOCID)
    return put(out, at, docid)


@kernel
def format_rows(X, y, first, last, sparse, single, query, qid, qid_offset, docid, docid_offset, long, long_offset, out):
    """Write rows ``first`` to ``last`` into ``out``, which is large enough.

    Returns ``(bytes, long texts needed)``; where fewer texts were given, what was written is useless. The first row of
    all names its last feature even if that is 0, so a sparse text keeps the width of X.
    """
    at = 0
    used = 0
    width = X.shape[1]
    for row in range(first, last):
        at, used = _put_number(out, at, y[row], False, long, long_offset, used)
        at = put(out, at, _QID)
        at = put(out, at, qid[qid_offset[query[row]] : qid_offset[query[row] + 1]])
        for column in range(width):
            if is_left_out(X[row, column], sparse) and (row > 0 or column < width - 1):
                continue
            out[at] = 32
            at = put_whole(out, at + 1, column + 1, 1)
            out[at] = 58
            at, used = _put_number(out, at + 1, X[row, column], single, long, long_offset, used)
        if len(docid_offset) > 1:
            at = _put_comment(out, at, docid[docid_offset[row] : docid_offset[row + 1]])
        at = put(out, at, _NEWLINE)
    return at, used


# ----------------------------------------------------------------------------------------------------------- shortest

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
    """Write the shortest text of a number at ``at``; returns where it ends, or -1 where Python has to write it."""
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


# ------------------------------------------------------------------------------------------------------- ranked lines

_LONGEST_WHOLE = 20


@kernel
def put_scores(scores, text, length):
    """The shortest text of every score into a row of ``text``; a length of -1 where Python has to write it."""
    for i in range(len(scores)):
        length[i] = put_shortest(text[i], 0, scores[i])


@kernel
def put_column(text, length):
    """Write one score per line."""
    out, at = np.empty(length.sum() + len(length), np.uint8), 0
    for i in range(len(length)):
        at = put(out, at, text[i, : length[i]])
        out[at] = 10
        at += 1
    return out


@kernel
def put_lines(query, qid, qid_offset, document, docid, docid_offset, rank, text, length, row, behind, behind_offset):
    """Write one line of query, document, rank and score for each place of ``query``, with given letters behind each of
    them.

    Documents are called by their numbers where ``docid`` is empty.
    """
    size, letters = 0, behind_offset[4] + 2 * _LONGEST_WHOLE + LONGEST
    for i in range(len(query)):
        size += qid_offset[query[i] + 1] - qid_offset[query[i]] + letters
        if len(docid_offset):
            size += docid_offset[document[i] + 1] - docid_offset[document[i]]
    out, at = np.empty(size, np.uint8), 0
    for i in range(len(query)):
        at = put(out, at, qid[qid_offset[query[i]] : qid_offset[query[i] + 1]])
        at = put(out, at, behind[behind_offset[0] : behind_offset[1]])
        if len(docid_offset):
            at = put(out, at, docid[docid_offset[document[i]] : docid_offset[document[i] + 1]])
        else:
            at = put_whole(out, at, document[i], 1)
        at = put(out, at, behind[behind_offset[1] : behind_offset[2]])
        at = put_whole(out, at, rank[i], 1)
        at = put(out, at, behind[behind_offset[2] : behind_offset[3]])
        at = put(out, at, text[row[i], : length[row[i]]])
        at = put(out, at, behind[behind_offset[3] : behind_offset[4]])
    return out[:at]
