"""A whole LETOR text, or a block of one, into arrays: ranges of lines on threads, directly into the final X.

The text is scanned twice. The first pass counts rows, which is cheap, so that every range knows its own rows; the
second pass reads. The width of X, and whether ids begin at 0, is inferred from samples; the rare text that contradicts
the samples is read once more.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import FileFormatError
from rankwise._kernels import drive
from rankwise._kernels.text import letor_lines as code
from rankwise.data.checks import Floats, available_memory
from rankwise.data.letor.problems import Reading, SourceLocation, problem
from rankwise.data.sources import Text
from rankwise.data.string_column import StringColumn, offsets

RANGE = 1 << 21  # bytes per range; the cuts, and with them the result, do not depend on the number of threads
SAMPLES, SAMPLE = 16, 1 << 13  # the number of ranges that are sampled, and bytes at the beginning of each
UNDECIDED = 64  # values that a range may leave to Python's float before it is read again with a larger buffer
# A table of so many bytes is always accepted. A larger one may have at most so many values per byte of its text: a
# value takes five to ten bytes, so that a table in which one value in a thousand is not 0 is accepted.
_UNQUESTIONED = 100 << 20
_VALUES_A_BYTE = 100


class LetorTable(NamedTuple):
    """The content of a text.

    Attributes
    ----------
    X : ndarray, shape (n_rows, n_features)
        The features.
    y : ndarray of float64, shape (n_rows,)
        The labels.
    docid : StringColumn or None
        The document ids.
    run_row : ndarray of int64
        The first row of every run of rows with one qid.
    run_at : ndarray of int64
        The byte of the qid of every run.
    run_qid : StringColumn
        The qid of every run.
    dropped : ndarray of bool
        Whether each row of the text was left out; empty where no row was.
    missing : int
        The number of values that are not finite.
    rules : LetorRules
        The rules, with what was inferred.
    """

    X: Floats
    y: NDArray[np.float64]
    docid: StringColumn | None
    run_row: NDArray[np.int64]
    run_at: NDArray[np.int64]
    run_qid: StringColumn
    dropped: NDArray[np.bool_]
    missing: int
    rules: code.LetorRules


def read_table(text: Text, begin: int, how: Reading, first_line: int = 1) -> LetorTable | None:
    """Read everything from byte ``begin`` on.

    Parameters
    ----------
    text : Text
        The bytes.
    begin : int
        Where to begin.
    how : Reading
        The options.
    first_line : int, default=1
        The number of the line at byte 0, for messages.

    Returns
    -------
    table : LetorTable or None
        None where there is no row.
    """
    bounds = cut(text.data, begin)
    counts = drive.run(lambda first, last: code.count_rows(text.data, first, last), bounds, how.n_jobs)
    first_row = offsets(counts).tolist()
    n_rows = first_row.pop()
    if not n_rows:
        where = SourceLocation(text.name, text.data, first_line)
        if (stray := where.stray_return(begin)) is not None:
            raise problem(where, code.STRAY_RETURN, stray, how.rules, how)
        return None
    ranges = [Range(*pair, row, count) for pair, row, count in zip(bounds, first_row, counts, strict=True)]
    rules = infer_schema(text.data, bounds, how.rules, how.dtype)
    y = np.zeros(n_rows)
    dropped = np.zeros(n_rows if rules.unjudged == code.DROP else 0, dtype=bool)
    while True:
        X = _allocated(n_rows, rules, how.dtype, text.name)  # zeros take memory when they are first written to
        if not how.width_given:
            _refuse_unless_justified(n_rows, rules, how.dtype, SourceLocation(text.name, text.data, first_line))
        parts = drive.run(RangeReader(text, rules, X, y, dropped).read, ranges, how.n_jobs)
        for notes in (part.notes for part in parts if part.notes.problem):
            raise problem(SourceLocation(text.name, text.data, first_line), notes.problem, notes.place, rules, how)
        seen = _corrected(rules, parts)
        if seen == rules:
            break
        rules = seen
        del X  # its memory is needed for the wider one
    kept = [part.notes.rows for part in parts]
    if sum(kept) < n_rows:
        X, y = _closed_up(X, rules.width, first_row, kept), _closed_up(y, 1, first_row, kept)
    before = offsets(kept)
    return LetorTable(
        X.reshape(len(y), rules.width),
        y,
        _all_docids(parts),
        np.concatenate([part.run_row + row for part, row in zip(parts, before, strict=False)]),
        np.concatenate([part.run_at for part in parts]),
        StringColumn.concat(part.run_qid for part in parts),
        dropped if sum(kept) < n_rows else dropped[:0],
        sum(part.notes.missing for part in parts),
        rules,
    )


def _refuse_unless_justified(n_rows: int, rules: code.LetorRules, dtype: Any, where: SourceLocation) -> None:
    """Refuse a table that one stray feature id makes far larger than its text."""
    needed = n_rows * rules.width * dtype.itemsize
    if needed <= _UNQUESTIONED or n_rows * rules.width <= _VALUES_A_BYTE * len(where.text):
        return
    largest = rules.base + rules.width - 1
    raise FileFormatError(
        f"{where.of(where.announced(largest))}: feature {largest:,} would make a table of {n_rows:,} x {rules.width:,} "
        f"values, {needed / 2**20:,.0f} MiB, out of {len(where.text):,} bytes of text: give "
        f"n_features={rules.width} if that is meant"
    )


def _allocated(n_rows: int, rules: code.LetorRules, dtype: Any, name: str) -> Floats:
    """Zeros for every value, in one dimension, if they fit into memory."""
    needed = n_rows * rules.width * dtype.itemsize
    free = available_memory()
    try:
        if free is None or needed <= free:
            return np.zeros(n_rows * rules.width, dtype=dtype)
    except (MemoryError, ValueError):
        pass
    left = "that is more than there is" if free is None else f"{free / 2**30:,.1f} GiB of memory are free"
    raise FileFormatError(
        f"{name}: a table of {n_rows:,} x {rules.width:,} values would take {needed / 2**30:,.1f} GiB, and {left}: "
        f"the largest feature id is {rules.base + rules.width - 1:,}"
    )


def _closed_up(values: Any, width: int, first_row: Sequence[int], kept: Sequence[int]) -> Any:
    """Move every range down, in place, over the rows that the ranges before it left out."""
    filled = 0
    for row, count in zip(first_row, kept, strict=True):
        if row > filled:
            values[filled * width : (filled + count) * width] = values[row * width : (row + count) * width]
        filled += count
    values.resize(filled * width, refcheck=False)
    return values


# ------------------------------------------------------------------------------------------------------ ranges of lines


class Range(NamedTuple):
    """The bytes of whole lines, and their rows.

    Attributes
    ----------
    begin : int
        The first byte.
    end : int
        The byte after the last.
    row : int
        The first row.
    n_rows : int
        The number of rows.
    """

    begin: int
    end: int
    row: int
    n_rows: int


class ParsedRange(NamedTuple):
    """One range after reading: its notes, and copies of what has to outlive the text.

    Attributes
    ----------
    notes : Notes
        The notes of the compiled reader.
    run_row : ndarray of int64
        The first row of every run of one qid, counted from the first row of the range.
    run_at : ndarray of int64
        The byte of the qid of every run.
    run_qid : StringColumn
        The qid of every run.
    docid : StringColumn or None
        The document ids.
    """

    notes: code.Notes
    run_row: NDArray[np.int64]
    run_at: NDArray[np.int64]
    run_qid: StringColumn
    docid: StringColumn | None


def cut(data: NDArray[np.uint8], begin: int) -> list[tuple[int, int]]:
    """Ranges (first byte, byte after the last) of whole lines, about ``RANGE`` bytes each."""
    ranges = []
    while begin < len(data):
        end = code.after_newline(data, min(begin + RANGE, len(data)), len(data))
        ranges.append((begin, end))
        begin = end
    return ranges


def infer_schema(
    data: NDArray[np.uint8], ranges: Sequence[tuple[int, int]], rules: code.LetorRules, dtype: "np.dtype[np.floating]"
) -> code.LetorRules:
    """The rules with what they leave open inferred from samples: whether there are qids, the first id, the width."""
    if rules.fixed_base and rules.fixed_width and rules.qid != code.EITHER:
        return rules
    trial = code.LetorRules(1, 0, False, False, code.EITHER, code.ZERO, False)
    nothing = np.zeros(0, dtype=dtype)
    samples = []
    for begin, end in ranges[:: -(-len(ranges) // SAMPLES)]:
        stop = code.after_newline(data, min(begin + SAMPLE, end), end)
        n_rows = code.count_rows(data, begin, stop)
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
    """Read ranges of one text into one set of arrays; ranges do not touch each other's rows.

    Parameters
    ----------
    text : Text
        The bytes.
    rules : LetorRules
        How to read.
    X : ndarray, shape (n_rows * n_features,)
        Receives the features.
    y : ndarray of float64, shape (n_rows,)
        Receives the labels.
    dropped : ndarray of bool
        Receives which rows are left out; empty where none may be.
    """

    def __init__(
        self, text: Text, rules: code.LetorRules, X: Floats, y: NDArray[np.float64], dropped: NDArray[np.bool_]
    ) -> None:
        self._text, self._rules, self._X, self._y, self._dropped = text, rules, X, y, dropped
        self._expected = code.expected_ids(rules.base, rules.width)

    def read(self, begin: int, end: int, row: int, n_rows: int) -> ParsedRange:
        """Read the lines between two bytes into rows ``row`` to ``row + n_rows``.

        Parameters
        ----------
        begin, end : int
            The range of bytes.
        row, n_rows : int
            The range of rows.

        Returns
        -------
        part : ParsedRange
            The notes, qids and document ids of the range.
        """
        from rankwise._kernels.text.letor_rows import read_rows

        data = self._text.data
        runs = np.empty((n_rows, 3), dtype=np.int64)
        docid_at = np.zeros(n_rows, dtype=np.int64)
        docid_offset = np.zeros(n_rows + 1, dtype=np.int64)
        rows = code.LetorRows(self._X, self._y, docid_at, docid_offset[1:], self._dropped)
        buffer = UNDECIDED
        while True:
            undecided = np.empty((buffer, 4), dtype=np.int64)
            numbers = np.array(code.Notes(), dtype=np.int64)
            read_rows(data, begin, end, row, self._rules, self._expected, rows, runs, undecided, numbers)
            notes = code.Notes(*numbers.tolist())
            if notes.undecided <= buffer:
                break
            buffer = notes.undecided
        notes = self._decide(undecided[: notes.undecided], notes)
        run_row, run_at, length = runs[: notes.runs].T.copy()
        part = ParsedRange(
            notes,
            run_row,
            run_at,
            _pieces(data, run_at, np.concatenate([[0], length])),
            _pieces(data, docid_at[: notes.rows], docid_offset[: notes.rows + 1]) if notes.docids else None,
        )
        self._text.release(begin, end)
        return part

    def _decide(self, undecided: NDArray[np.int64], notes: code.Notes) -> code.Notes:
        """Convert the values that the compiled reader could not decide, by Python's ``float``."""
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


def _pieces(data: NDArray[np.uint8], at: NDArray[np.int64], offset: NDArray[np.int64]) -> StringColumn:
    """Copies of pieces of the text; ``offset`` comes in as their lengths after a zero, and is overwritten."""
    np.cumsum(offset, out=offset)
    copied = np.empty(int(offset[-1]), dtype=np.uint8)
    code.gather(data, at, offset, copied)
    return StringColumn(copied, offset)


def _corrected(rules: code.LetorRules, parts: Sequence[ParsedRange]) -> code.LetorRules:
    """The rules that the whole text requires; the inferred ones, if they were right."""
    largest = max(rules.base + rules.width - 1, *(part.notes.largest for part in parts))
    base = 0 if any(part.notes.zero for part in parts) else rules.base
    return rules._replace(base=base, width=rules.width if rules.fixed_width else largest - base + 1)


def _all_docids(parts: Sequence[ParsedRange]) -> StringColumn | None:
    """One text per row, empty where a row has none; None if no row has one."""
    if all(part.docid is None for part in parts):
        return None
    return StringColumn.concat(
        StringColumn.empty(part.notes.rows) if part.docid is None else part.docid for part in parts
    )
