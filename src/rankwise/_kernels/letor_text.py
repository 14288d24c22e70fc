"""LETOR text to arrays: ``label qid:id feature:value ... # comment``, a range of whole lines at a time.

Ranges are independent of each other, so that threads can share a file; every range writes its own rows of the
final arrays. What a range cannot decide alone it notes: ids beyond the width that was foreseen, values that need
Python's ``float``, the first byte that cannot be read and why.
"""

from typing import NamedTuple

import numpy as np

from rankwise._kernels.decimal import FINITE, MALFORMED, NOT_FINITE, TENS, UNDECIDED, WHOLE_TENS, is_break, read_decimal
from rankwise._kernels.jit import kernel
from rankwise._kernels.letor_lines import (
    HASH,
    NEWLINE,
    find_docid,
    has_qid,
    same_bytes,
    skip_blanks,
    skip_token,
)
from rankwise._kernels.letor_words import after_newline, byte, digit_bits, digits, word

U = np.uint64

# why a range could not be read on; 0 means that it was read
BAD_LABEL, BAD_FEATURE, BAD_VALUE, EMPTY_QID, QID_LACKING, QID_UNEXPECTED = 1, 2, 3, 4, 5, 6
VALUE_NOT_FINITE, LABEL_NEGATIVE, ID_REPEATED, ID_TOO_LARGE, ID_ZERO = 7, 8, 9, 10, 11

# what to do with negative labels, and whether rows carry a qid
REFUSE, DROP, ZERO = 0, 1, 2
WITHOUT_QID, WITH_QID, EITHER = 0, 1, 2

LARGEST_ID = 10**18
STEADY_REACH = 32  # a feature as _steady reads it, and the words it looks at, end within this many bytes


class Rules(NamedTuple):
    """How to read: ``base`` is the id of column 0; ids outside are refused where ``fixed``, else only noted."""

    base: int
    width: int
    fixed_base: bool
    fixed_width: bool
    qid: int
    unjudged: int
    refuse_missing: bool


class Expected(NamedTuple):
    """For each column the bytes `` id:`` that announce it, as a word with a mask and its length."""

    letters: np.ndarray
    mask: np.ndarray
    length: np.ndarray


class Rows(NamedTuple):
    """The arrays to fill, a row each; ``X`` is flat, ``dropped`` is by line and may be empty."""

    X: np.ndarray
    y: np.ndarray
    docid_at: np.ndarray
    docid_length: np.ndarray
    dropped: np.ndarray


class Notes(NamedTuple):
    """What a range found, in the order of the numbers that :func:`read_rows` fills in."""

    problem: int
    place: int
    rows: int
    runs: int
    largest: int
    zero: int
    missing: int
    undecided: int
    docids: int
    qid: int


PROBLEM, PLACE, ROWS, RUNS, LARGEST, ID_0, MISSING, OPEN, DOCIDS, QID = range(10)


def expected_ids(base: int, width: int, most: int = 4096) -> Expected:
    """The announcements of columns 0, 1, ...; those of wide sparse data beyond ``most`` are not worth a table."""
    texts = [f" {base + column}:".encode() for column in range(min(width, most))]
    return Expected(
        np.array([int.from_bytes(text, "little") for text in texts], dtype=np.uint64),
        np.array([256 ** len(text) - 1 for text in texts], dtype=np.uint64),
        np.array([len(text) for text in texts], dtype=np.int64),
    )


@kernel(inline="always")
def _steady(text, place, column, expected, X, offset):
    """Read on while each feature is the next one, written `` id:digits.digits`` with at most 7 digits a side.

    Returns ``(place, column, pending)``: pending says that the value of ``column`` stands at ``place`` and is of
    another kind; otherwise something other than that column's announcement does.
    """
    value_at = -1
    stop = len(text) - STEADY_REACH
    while column < len(expected.letters) and place < stop:
        if (word(text, place) ^ expected.letters[column]) & expected.mask[column] != U(0):
            break
        value_at = place + expected.length[column]
        at = value_at
        eight = word(text, at)
        negative = eight & U(0xFF) == U(45)
        if negative:
            at += 1
            eight = word(text, at)
        bits = digit_bits(eight)
        if bits > U(56):
            return value_at, column, True
        at += np.int64(bits >> U(3))
        w = digits(eight, bits)
        if (eight >> bits) & U(0xFF) == U(46):
            eight = word(text, at + 1)
            more = digit_bits(eight)
            if more > U(56) or bits + more == U(0):
                return value_at, column, True
            count = np.int64(more >> U(3))
            at += count + 1
            value = np.float64(np.int64(w * WHOLE_TENS[count] + digits(eight, more))) / TENS[count]
        elif bits == U(0):
            return value_at, column, True
        else:
            value = np.float64(np.int64(w))
        X[offset + column] = -value if negative else value
        column += 1
        place = at
    if value_at >= 0 and not is_break(byte(text, place)):  # the last number went on, with an exponent for one
        return value_at, column - 1, True
    return place, column, False


@kernel
def _read_id(text, place, end):
    """``(id, first byte of its value)``; the id is -1 if no ``digits:`` stands here."""
    first = place
    identity = 0
    while place < end and 48 <= byte(text, place) <= 57:
        identity = min(LARGEST_ID, identity * 10 + byte(text, place) - 48)
        place += 1
    if place == first or place == end or byte(text, place) != 58:
        return -1, first
    return identity, place + 1


@kernel
def _repeats_an_id(text, place, end):
    """Whether any id stands twice among the features from ``place`` to ``end``."""
    ids = np.empty((end - place) // 3 + 1, dtype=np.int64)  # no feature is shorter than "1:0"
    count = 0
    while True:
        place = skip_blanks(text, place, end)
        if place == end:
            break
        ids[count], _ = _read_id(text, place, end)
        count += 1
        place = skip_token(text, place, end)
    ids = np.sort(ids[:count])
    for number in range(1, count):
        if ids[number] == ids[number - 1]:
            return True
    return False


@kernel
def _refuse(notes, problem, place):
    notes[PROBLEM] = problem
    notes[PLACE] = place
    return -1


@kernel
def _leave_open(undecided, notes, row, column, place, end):
    """Ask for Python's ``float`` on ``text[place:end]``; beyond the capacity it is only counted."""
    if notes[OPEN] < len(undecided):
        undecided[notes[OPEN]] = row, column, place, end
    notes[OPEN] += 1


@kernel
def _features(text, place, end, row, dropping, rules, expected, table, undecided, notes):
    """Read one row's features; returns where they end, or -1 with the problem noted."""
    offset = row * rules.width
    first = place
    column = 0
    previous = -1
    ascending = True
    while True:
        started = column
        place, column, pending = _steady(text, place, column, expected, table.X, offset)
        if column > started:
            previous = column - 1 + rules.base
        if not pending:
            place = skip_blanks(text, place, end)
            if place == end or byte(text, place) == NEWLINE or byte(text, place) == HASH:
                break
            identity, value_at = _read_id(text, place, end)
            if identity < 0:
                return _refuse(notes, BAD_FEATURE, place)
            if identity < rules.base:
                if rules.fixed_base:
                    return _refuse(notes, ID_ZERO, place)
                notes[ID_0] = 1
            column = identity - rules.base
            if column >= rules.width:
                if rules.fixed_width:
                    return _refuse(notes, ID_TOO_LARGE, place)
                notes[LARGEST] = max(notes[LARGEST], identity)
            ascending = ascending and identity > previous
            place = value_at
        value, stop, kind = read_decimal(text, place, end)
        if kind == MALFORMED:
            return _refuse(notes, BAD_VALUE, place)
        if 0 <= column < rules.width:
            table.X[offset + column] = value
            if kind == FINITE and np.isinf(table.X[offset + column]):  # too large for float32
                kind = NOT_FINITE
                table.X[offset + column] = np.nan
            if kind == UNDECIDED and not dropping:
                _leave_open(undecided, notes, row, column, place, stop)
        if kind == NOT_FINITE and not dropping:
            if rules.refuse_missing:
                return _refuse(notes, VALUE_NOT_FINITE, place)
            notes[MISSING] += 1
        previous = column + rules.base
        column += 1
        place = stop
    if not ascending and _repeats_an_id(text, first, place):
        return _refuse(notes, ID_REPEATED, first)
    return place


@kernel
def read_rows(text, begin, end, row, rules, expected, table, runs, undecided, notes):
    """Read the lines from ``begin`` to ``end`` into rows ``row``, ``row + 1``, ... of ``table``.

    ``runs`` receives (row, place, length) of the qid at the first row of every run of one qid, ``undecided``
    (row, column, begin, end) of texts left to Python's ``float`` (column -1: the label), ``notes`` the rest.
    """
    first_row = row
    line = row
    place = begin
    known_at = 0
    known_length = -1
    while place < end:
        place = skip_blanks(text, place, end)
        if place == end or byte(text, place) == NEWLINE or byte(text, place) == HASH:
            place = after_newline(text, place, end)
            continue
        label_at = place
        label, place, kind = read_decimal(text, place, end)
        if kind == MALFORMED or kind == NOT_FINITE:
            _refuse(notes, BAD_LABEL, label_at)
            break
        if label < 0 and rules.unjudged == REFUSE:
            _refuse(notes, LABEL_NEGATIVE, label_at)
            break
        dropping = label < 0 and rules.unjudged == DROP
        if kind == UNDECIDED and label > 0:
            _leave_open(undecided, notes, row, -1, label_at, place)
        table.y[row] = 0.0 if label < 0 else label

        place = skip_blanks(text, place, end)
        with_qid = has_qid(text, place, end)
        if notes[QID] == EITHER:
            notes[QID] = with_qid
        if with_qid != rules.qid and rules.qid != EITHER:
            _refuse(notes, QID_UNEXPECTED if with_qid else QID_LACKING, place)
            break
        if with_qid:
            at = place + 4
            place = skip_token(text, at, end)
            length = place - at
            if length == 0:
                _refuse(notes, EMPTY_QID, at)
                break
            if not dropping and (length != known_length or not same_bytes(text, at, known_at, length)):
                runs[notes[RUNS]] = row, at, length
                notes[RUNS] += 1
                known_at = at
                known_length = length

        place = _features(text, place, end, row, dropping, rules, expected, table, undecided, notes)
        if place < 0:
            break
        if place < end and byte(text, place) == HASH and not dropping:
            at, length = find_docid(text, place + 1, end)
            if length > 0:
                table.docid_at[row] = at
                table.docid_length[row] = length
                notes[DOCIDS] += 1
        place = after_newline(text, place, end)
        if dropping:
            table.X[row * rules.width : (row + 1) * rules.width] = 0
            if len(table.dropped) > 0:
                table.dropped[line] = True
        else:
            row += 1
        line += 1
    notes[ROWS] = row - first_row
