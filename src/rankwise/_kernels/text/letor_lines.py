"""The rules and notes of the LETOR reader, and the words of a line.

A line is a row unless it is blank or begins with ``#``. ``begin`` is always the first byte of a line; nothing at or
after ``end`` is read. The constants are compiled into every kernel that uses them. :class:`LetorRules` goes into the
reader, :class:`LetorRows` holds the arrays that it fills, and :class:`Notes` come out.
"""

from typing import NamedTuple

import numpy as np

from rankwise._kernels.bits import trailing_zeros
from rankwise._kernels.machine.jit import kernel
from rankwise._kernels.text.decimal import is_break
from rankwise._kernels.text.words import HIGH, ONES, U, byte, word

# why a range could not be read to its end; 0 means that it was
BAD_LABEL, BAD_FEATURE, BAD_VALUE, EMPTY_QID, QID_LACKING, QID_UNEXPECTED = 1, 2, 3, 4, 5, 6
VALUE_NOT_FINITE, LABEL_NEGATIVE, ID_REPEATED, ID_TOO_LARGE, ID_ZERO = 7, 8, 9, 10, 11
STRAY_RETURN = 12

# what to do with negative labels, and whether rows carry a qid
REFUSE, DROP, ZERO = 0, 1, 2
WITHOUT_QID, WITH_QID, EITHER = 0, 1, 2

_RETURNS = U(0x0D0D0D0D0D0D0D0D)
LARGEST_ID = 10**17  # larger ids are taken for this one, of which ten times still fits into 64 bits


class LetorRules(NamedTuple):
    """How to read.

    Attributes
    ----------
    base : int
        The id of column 0.
    width : int
        The number of columns.
    fixed_base, fixed_width : bool
        Whether ids outside are refused; otherwise they are only noted.
    qid : int
        Whether rows carry a qid: ``WITHOUT_QID``, ``WITH_QID`` or ``EITHER``.
    unjudged : int
        What to do with negative labels: ``REFUSE``, ``DROP`` or ``ZERO``.
    refuse_missing : bool
        Whether values that are not finite are refused.
    """

    base: int
    width: int
    fixed_base: bool
    fixed_width: bool
    qid: int
    unjudged: int
    refuse_missing: bool


class Expected(NamedTuple):
    """For each column the ``id:`` that announces it, as bytes 1, 2, ... of a word, with a mask.

    Byte 0 is for the blank before; ``length`` includes it.
    """

    letters: np.ndarray
    mask: np.ndarray
    length: np.ndarray


class LetorRows(NamedTuple):
    """The arrays to fill.

    Attributes
    ----------
    X : ndarray, shape (n_rows * n_features,)
        The features of all rows.
    y : ndarray of float64, shape (n_rows,)
        The labels of all rows.
    docid_at, docid_length : ndarray of int64
        Where the document ids of the range's rows stand.
    dropped : ndarray of bool
        Whether each row of the text is left out; empty where none may be.
    """

    X: np.ndarray
    y: np.ndarray
    docid_at: np.ndarray
    docid_length: np.ndarray
    dropped: np.ndarray


class Notes(NamedTuple):
    """What a range found; the compiled reader fills them in by the numbers below.

    Attributes
    ----------
    problem, place : int
        Why the range could not be read to its end (0: it was), and at which byte.
    rows, runs, docids : int
        The number of rows, of runs of one qid, and of document ids.
    largest : int
        The largest feature id among those that were not expected.
    zero : int
        Whether an id 0 occurred where ids should begin at 1.
    missing, undecided : int
        The number of values that are not finite, and of those left to Python's ``float``.
    qid : int
        Whether the first row has a qid.
    """

    problem: int = 0
    place: int = 0
    rows: int = 0
    runs: int = 0
    largest: int = -1
    zero: int = 0
    missing: int = 0
    undecided: int = 0
    docids: int = 0
    qid: int = EITHER


PROBLEM, PLACE, ROWS, RUNS, LARGEST, ZERO_SEEN, MISSING, LEFT_OPEN, DOCIDS, QID = range(10)


TAB, NEWLINE, BLANK, HASH, MINUS, EQUALS = 9, 10, 32, 35, 45, 61
NO_TOKEN = -1


@kernel(inline="always")
def find_byte(text, place, end, repeated, letter):
    """Where this byte stands next, or ``end``; ``repeated`` holds it eight times."""
    while place + 8 <= end:
        apart = word(text, place) ^ repeated
        found = (apart - ONES) & ~apart & HIGH
        if found != U(0):
            return place + np.int64(trailing_zeros(found) >> U(3))
        place += 8
    while place < end and byte(text, place) != letter:
        place += 1
    return place


@kernel
def find_return(text, place, end):
    """Where the next carriage return stands, or ``end``."""
    return find_byte(text, place, end, _RETURNS, 13)


@kernel(inline="always")
def is_blank(letter):
    """Whether a byte is a blank inside a line: space, tab, carriage return, vertical tab or form feed."""
    return letter == BLANK or (TAB <= letter <= 13 and letter != NEWLINE)


@kernel
def skip_blanks(text, place, end):
    """The first place from here on that is not blank, or ``end``."""
    while place < end and is_blank(byte(text, place)):
        place += 1
    return place


@kernel
def skip_word(text, place, end):
    """Where the run of bytes that are neither blank nor newline ends."""
    while place < end and byte(text, place) != NEWLINE and not is_blank(byte(text, place)):
        place += 1
    return place


@kernel
def skip_token(text, place, end):
    """Where the token ends: at a blank, a newline, the ``#`` of a comment, or ``end``."""
    while place < end and not is_break(byte(text, place)):
        place += 1
    return place


@kernel
def has_qid(text, place, end):
    """Whether ``qid:`` stands here."""
    return (
        place + 4 <= end
        and byte(text, place) == 113
        and byte(text, place + 1) == 105
        and byte(text, place + 2) == 100
        and byte(text, place + 3) == 58
    )


@kernel
def same_bytes(text, first, second, length):
    """Whether the ``length`` bytes at two places are the same."""
    same = 0
    while same < length and byte(text, first + same) == byte(text, second + same):
        same += 1
    return same == length


@kernel
def stray_return(text, place, end):
    """Where the rest of a line, from ``place`` to ``end``, holds a carriage return with more than blanks behind it.

    Such a line belongs to a text whose lines end with a carriage return alone: what it hides must not be lost.
    Otherwise ``end``, as before a newline.
    """
    found = find_return(text, place, end)
    behind = skip_blanks(text, found, end)
    return end if behind == end or byte(text, behind) == NEWLINE else found


@kernel
def _names_docid(text, place, end):
    """Where the X of ``docid = X`` begins if that stands here, else ``NO_TOKEN``."""
    letters = (100, 111, 99, 105, 100)
    for number in range(5):
        if place + number >= end or byte(text, place + number) != letters[number]:
            return NO_TOKEN
    place = skip_blanks(text, place + 5, end)
    if place == end or byte(text, place) != EQUALS:
        return NO_TOKEN
    place = skip_blanks(text, place + 1, end)
    return NO_TOKEN if place == end or byte(text, place) == NEWLINE else place


@kernel
def find_docid(text, place, end):
    """``(first byte, length)`` of the document id in the comment at ``place``.

    It is the word X of ``docid = X`` if that is anywhere in the comment, otherwise the first word; length 0 if there is
    none.
    """
    first = skip_blanks(text, place, end)
    place = first
    while place < end and byte(text, place) != NEWLINE:
        named = _names_docid(text, place, end)
        if named != NO_TOKEN:
            return named, skip_word(text, named, end) - named
        place = skip_blanks(text, skip_word(text, place, end), end)
    return first, skip_word(text, first, end) - first
