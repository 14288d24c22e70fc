"""A range of lines of a LETOR text: cut out, looked at beforehand, read into its own rows of the final arrays."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels import letor_rules as code
from rankwise.data.checks import Floats
from rankwise.data.sources import Text
from rankwise.data.texts import Texts

RANGE = 1 << 21  # bytes a range; the cuts, and with them the result, do not depend on the number of threads
SAMPLES, SAMPLE = 16, 1 << 13  # how many ranges are looked at beforehand, and bytes at the beginning of each
UNDECIDED = 64  # values a range may leave to Python's float before it is read again with more room


class Range(NamedTuple):
    """The bytes of whole lines, and which rows they are."""

    begin: int
    end: int
    row: int
    n_rows: int


class Part(NamedTuple):
    """One range, read: its notes, and copies of what has to outlive the text."""

    notes: code.Notes
    run_row: NDArray[np.int64]  # counted from the range's first row
    run_at: NDArray[np.int64]
    run_qid: Texts
    docid: Texts | None


def cut(data: NDArray[np.uint8], begin: int) -> list[tuple[int, int]]:
    """Ranges (first byte, byte after the last) of whole lines, about ``RANGE`` bytes each."""
    from rankwise._kernels.letor_words import after_newline

    ranges = []
    while begin < len(data):
        end = after_newline(data, min(begin + RANGE, len(data)), len(data))
        ranges.append((begin, end))
        begin = end
    return ranges


def foresee(
    data: NDArray[np.uint8], ranges: Sequence[tuple[int, int]], rules: code.Rules, dtype: "np.dtype[np.floating]"
) -> code.Rules:
    """The rules with what they leave open taken from samples: whether there are qids, the first id, the width."""
    from rankwise._kernels.letor_lines import count_rows
    from rankwise._kernels.letor_words import after_newline

    if rules.fixed_base and rules.fixed_width and rules.qid != code.EITHER:
        return rules
    trial = code.Rules(1, 0, False, False, code.EITHER, code.ZERO, False)
    nothing = np.zeros(0, dtype=dtype)
    samples = []
    for begin, end in ranges[:: -(-len(ranges) // SAMPLES)]:
        stop = after_newline(data, min(begin + SAMPLE, end), end)
        n_rows = count_rows(data, begin, stop)
        sample = Range(begin, stop, 0, n_rows)
        reader = RangeReader(Text("", data), trial, nothing, np.zeros(n_rows), np.zeros(0, dtype=bool))
        samples.append(reader.read(*sample).notes)
    qid = next((notes.qid for notes in samples if notes.qid != code.EITHER), code.WITH_QID)
    if rules.qid == code.EITHER:
        rules = rules._replace(qid=qid)
    if not rules.fixed_base and any(notes.zero for notes in samples):
        rules = rules._replace(base=0)
    if not rules.fixed_width:
        rules = rules._replace(width=max(0, *(notes.largest - rules.base + 1 for notes in samples)))
    return rules


class RangeReader:
    """Reads ranges of one text into one set of arrays; ranges do not touch each other's rows."""

    def __init__(
        self, text: Text, rules: code.Rules, X: Floats, y: NDArray[np.float64], dropped: NDArray[np.bool_]
    ) -> None:
        self._text, self._rules, self._X, self._y, self._dropped = text, rules, X, y, dropped
        self._expected = code.expected_ids(rules.base, rules.width)

    def read(self, begin: int, end: int, row: int, n_rows: int) -> Part:
        """The lines between two bytes, into rows ``row`` to ``row + n_rows``."""
        from rankwise._kernels.letor_text import read_rows

        data = self._text.data
        runs = np.empty((n_rows, 3), dtype=np.int64)
        docid_at = np.zeros(n_rows, dtype=np.int64)
        docid_offset = np.zeros(n_rows + 1, dtype=np.int64)
        rows = code.Rows(self._X, self._y, docid_at, docid_offset[1:], self._dropped)
        room = UNDECIDED
        while True:
            undecided = np.empty((room, 4), dtype=np.int64)
            numbers = np.array(code.Notes(), dtype=np.int64)
            read_rows(data, begin, end, row, self._rules, self._expected, rows, runs, undecided, numbers)
            notes = code.Notes(*numbers.tolist())
            if notes.undecided <= room:
                break
            room = notes.undecided
        notes = self._decide(undecided[: notes.undecided], notes)
        run_row, run_at, length = runs[: notes.runs].T.copy()
        part = Part(
            notes,
            run_row,
            run_at,
            _pieces(data, run_at, np.concatenate([[0], length])),
            _pieces(data, docid_at[: notes.rows], docid_offset[: notes.rows + 1]) if notes.docids else None,
        )
        self._text.release(begin, end)
        return part

    def _decide(self, undecided: NDArray[np.int64], notes: code.Notes) -> code.Notes:
        """Python's ``float`` for the values that are too close to call."""
        for row, column, begin, end in undecided.tolist():
            value = float(self._text.data[begin:end].tobytes())
            with np.errstate(over="ignore"):
                finite = bool(np.isfinite(value if column < 0 else self._X.dtype.type(value)))
            if not finite and (column < 0 or self._rules.refuse_missing):
                if not notes.problem or begin < notes.place:
                    reason = code.BAD_LABEL if column < 0 else code.VALUE_NOT_FINITE
                    notes = notes._replace(problem=reason, place=begin)
            elif column < 0:
                self._y[row] = value
            else:
                self._X[row * self._rules.width + column] = value if finite else np.nan
                notes = notes._replace(missing=notes.missing + (not finite))
        return notes


def _pieces(data: NDArray[np.uint8], at: NDArray[np.int64], offset: NDArray[np.int64]) -> Texts:
    """Copies of pieces of the text; ``offset`` comes in as their lengths after a zero, and is used up."""
    from rankwise._kernels.letor_lines import gather

    np.cumsum(offset, out=offset)
    copied = np.empty(int(offset[-1]), dtype=np.uint8)
    gather(data, at, offset, copied)
    return Texts(copied, offset)
