"""What the reader of LETOR text is told and what it tells: rules in, arrays to fill, notes out.

The constants are compiled into every ``@kernel`` that imports them; the module itself needs no compiler.
"""

from typing import NamedTuple

import numpy as np

# why a range could not be read on; 0 means that it was read
BAD_LABEL, BAD_FEATURE, BAD_VALUE, EMPTY_QID, QID_LACKING, QID_UNEXPECTED = 1, 2, 3, 4, 5, 6
VALUE_NOT_FINITE, LABEL_NEGATIVE, ID_REPEATED, ID_TOO_LARGE, ID_ZERO = 7, 8, 9, 10, 11
STRAY_RETURN = 12

# what to do with negative labels, and whether rows carry a qid
REFUSE, DROP, ZERO = 0, 1, 2
WITHOUT_QID, WITH_QID, EITHER = 0, 1, 2

LARGEST_ID = 10**17  # larger ids are taken for this one, of which ten times still fits into 64 bits


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
    """For each column the ``id:`` that announces it, as bytes 1, 2, ... of a word, with a mask.

    Byte 0 is for the blank before; ``length`` counts it.
    """

    letters: np.ndarray
    mask: np.ndarray
    length: np.ndarray


class Rows(NamedTuple):
    """The arrays to fill: of all rows ``X`` (flat), ``y`` and ``dropped`` (or none), of the range's rows the docids."""

    X: np.ndarray
    y: np.ndarray
    docid_at: np.ndarray
    docid_length: np.ndarray
    dropped: np.ndarray


class Notes(NamedTuple):
    """What a range found; the compiled reader fills them in by the numbers below."""

    problem: int = 0  # why it could not be read on, and
    place: int = 0  # at which byte
    rows: int = 0
    runs: int = 0
    largest: int = -1  # feature id among those that were not foreseen
    zero: int = 0  # whether an id 0 came where ids should begin at 1
    missing: int = 0  # values that are not finite
    undecided: int = 0  # values left to Python's float
    docids: int = 0
    qid: int = EITHER  # whether the first row has one


PROBLEM, PLACE, ROWS, RUNS, LARGEST, ZERO_SEEN, MISSING, LEFT_OPEN, DOCIDS, QID = range(10)


def expected_ids(base: int, width: int, most: int = 1 << 14) -> Expected:
    """The announcements of columns 0, 1, ...; those of wide sparse data beyond ``most`` are not worth a table."""
    texts = [f"\0{base + column}:".encode() for column in range(min(width, most))]
    return Expected(
        np.array([int.from_bytes(text, "little") for text in texts], dtype=np.uint64),
        np.array([256 ** len(text) - 256 for text in texts], dtype=np.uint64),
        np.array([len(text) for text in texts], dtype=np.int64),
    )
