"""Read LETOR / SVMlight text as a whole.

::

    <label> qid:<id> <feature>:<value> <feature>:<value> ... # <comment>

:func:`read_letor` maps the text, reads it into one table and groups its rows by qid; a text without qids needs a file
of query sizes. :mod:`rankwise.io.letor.stream` reads texts of any length, block by block.

A text is scanned twice, in ranges of lines on threads. The first pass counts rows, which is cheap, so every range knows
its own rows; the second pass reads, directly into the final X. The width of X, and whether ids begin at 0, is
inferred from samples; the rare text that contradicts the samples is read once more.
"""

import os
from collections.abc import Sequence
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels import parallel
from rankwise._kernels.memory import available_memory
from rankwise._kernels.parallel import announce_kernels
from rankwise._kernels.text import letor_lines as code
from rankwise._kernels.text.letor_rows import after_newline, count_rows, expected_ids, gather, read_rows
from rankwise._parameters import Check, Jobs, NumberRange, validated
from rankwise.errors import FileFormatError, RankwiseError
from rankwise.io.letor.problems import Reading, SourceLocation, problem
from rankwise.io.sources import STANDARD_INPUT, Text, name_of, read_text
from rankwise.queries.checks import Floats, Missing, as_names, fill_missing
from rankwise.queries.grouping import Grouping, StringColumn, by_run, by_size, offsets, parse_ids, warn_of_empty
from rankwise.queries.queries import Queries

SIDE_FILES = (".query", ".group")  # LightGBM's and XGBoost's names
Unjudged = Literal["error", "drop", "zero"]
FloatType = Annotated[Any, Check("'float64' or 'float32'", lambda value: _is_float_type(value))]
FeatureCount = Annotated[int, NumberRange(1, code.LARGEST_ID, closed="both")]
ZeroBased = bool | Literal["auto"]
# Bytes of a table that are there without asking.
_SMALL = 1 << 26
_UNJUDGED = {"error": code.REFUSE, "drop": code.DROP, "zero": code.ZERO}


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


def _is_float_type(value: Any) -> bool:
    try:
        return np.dtype(value) in (np.float32, np.float64) and value is not None
    except Exception:  # NumPy parses texts, and raises what its parser does
        return False


@validated
def read_letor(
    path: Any,
    *,
    dtype: FloatType = "float64",
    missing: Missing = "error",
    unjudged: Unjudged = "error",
    zero_based: ZeroBased = "auto",
    n_features: FeatureCount | None = None,
    feature_names: Sequence[str] | None = None,
    query_file: Any = None,
    n_jobs: Jobs = None,
) -> Queries:
    """Read judged queries from LETOR / SVMlight text.

    Lines end with a newline, or with a carriage return and a newline; a carriage return alone, with text behind it,
    raises an error. Blank lines and lines that begin with ``#`` are skipped, absent features are 0, and the rows of a
    query may stand anywhere. Values are bit for bit those of Python's ``float``, whatever the number of threads. A file
    that is not gzipped is mapped and read directly into X: it must not be truncated meanwhile, which would end the
    process. An open binary file is read as a stream, to which that does not apply.

    Parameters
    ----------
    path : path, ``-`` or binary file object
        The text; ``-`` is standard input. gzip is recognized by its first bytes.
    dtype : {"float64", "float32"}, default="float64"
        The type of X; float32 is the rounded float64 value.
    missing : {"error", "zero", "min", "keep"}, default="error"
        What to do with ``NULL``, ``nan``, ``inf`` and numbers that are too large. "min" takes the smallest value of the
        feature in the query (LETOR's rule).
    unjudged : {"error", "drop", "zero"}, default="error"
        What to do with negative labels: raise an error, leave the document out, or take label 0.
    zero_based : bool or "auto", default="auto"
        Whether feature ids begin at 0; "auto": yes if an id 0 occurs.
    n_features : int, default=None
        The width of X; None takes the largest id, or the number of names. An id that needs more than 100 MB, and more
        than 100 values per byte of the text, raises an error unless this allows it.
    feature_names : sequence of str, default=None
        One name per feature.
    query_file : path, ``-`` or binary file object, default=None
        For a text without qids: a file with the size of each query, one per line. None takes the file beside ``path``
        whose name ends in ``.query`` (LightGBM) or ``.group`` (XGBoost), if it exists.
    n_jobs : int, default=None
        The number of threads; None uses every core.

    Returns
    -------
    queries : Queries
        ``qid`` holds integers if every id is written as one, otherwise texts as in the file (``007`` stays ``007``).
        ``docid`` is X where a comment says ``docid = X``, otherwise the first word of the comment; it is None if no row
        has a comment.

    Raises
    ------
    FileFormatError
        If the text cannot be read; the message names the line and the column.

    Examples
    --------
    >>> import io
    >>> text = b"2 qid:7 1:0.5 2:1 # d1\\n0 qid:7 2:0.25 # d2\\n"
    >>> queries = read_letor(io.BytesIO(text))
    >>> queries
    Queries(1 query, 2 documents, 2 features, labels 0 to 2)
    >>> queries.X[1], queries.docid[1]
    (array([0.  , 0.25]), 'd2')
    """
    how = as_reading(dtype, missing, unjudged, zero_based, n_features, feature_names, n_jobs)
    text = read_text(path)
    announce_kernels("read_letor")
    table = read_table(text, how)
    if table is None:
        raise FileFormatError(f"{text.name} has no rows: expected lines of the form label qid:id feature:value ...")
    if not len(table.y):
        raise FileFormatError(f"{text.name}: every label is negative, and unjudged='drop' leaves no row")
    if table.rules.qid == code.WITH_QID:
        if query_file is not None:
            raise RankwiseError(f"{text.name} has qids, so query_file={query_file!r} has no effect: leave it out")
        return queries_of(table, how)
    query_file = find_side_file(path) if query_file is None else query_file
    if query_file is None:
        raise FileFormatError(
            f"{text.name}: no line has a qid: put qid:<id> after each label, or pass query_file=, a file with the size "
            f"of each query ({' or '.join(name_of(path) + end for end in SIDE_FILES)} would be found by its name)"
        )
    return queries_of(table, how, group_sizes(query_file, text.name, table.dropped, len(table.y)))


def as_reading(
    dtype: Any,
    missing: Missing,
    unjudged: Any,
    zero_based: Any,
    n_features: int | None,
    feature_names: Sequence[str] | None,
    n_jobs: int | None,
    *,
    streaming: bool = False,
) -> Reading:
    """Check the options of :func:`read_letor` and :func:`iter_letor`."""
    kind = np.dtype(dtype)
    if feature_names is not None:
        feature_names = as_names(feature_names, n_features) or ()
        n_features = len(feature_names) if n_features is None else n_features
    rules = code.LetorRules(
        base=0 if zero_based is True else 1,
        width=n_features or 0,
        fixed_base=zero_based != "auto",
        fixed_width=n_features is not None,
        qid=code.WITH_QID if streaming else code.EITHER,
        unjudged=_UNJUDGED[unjudged],
        refuse_missing=missing == "error",
    )
    names = None if feature_names is None else tuple(feature_names)
    return Reading(kind, missing, names, rules, streaming, rules.fixed_width, rules.fixed_base, n_jobs)


def queries_of(table: LetorTable, how: Reading, grouping: Grouping | None = None) -> Queries:
    """The table as `Queries`, with missing values replaced in place, a few queries at a time."""
    start, rows, qid = grouping or by_run(table.run_row, parse_ids(table.run_qid), len(table.y))
    if table.missing:
        for first, last in parallel.query_chunks(start):
            begin, end = start[first], start[last]
            places = slice(begin, end) if rows is None else rows[begin:end]
            table.X[places] = fill_missing(table.X[places], start[first : last + 1] - begin, None, how.missing)
    finite = how.missing != "keep"
    names, docid = how.names, table.docid
    return Queries._trusted(table.X, table.y, start, rows, qid=qid, docid=docid, feature_names=names, finite=finite)


# -------------------------------------------------------------------------------------------------- query ids and sizes


def find_side_file(source: Any) -> str | None:
    """The file of sizes that belongs to a text by its name: ``train.txt.query`` or ``train.txt.group``."""
    if hasattr(source, "read") or name_of(source) == STANDARD_INPUT:
        return None
    name = name_of(source)
    names = [name, name.removesuffix(".gz")]
    return next((known + end for known in names for end in SIDE_FILES if os.path.isfile(known + end)), None)


def group_sizes(query_file: Any, name: str, dropped: NDArray[np.bool_], n_rows: int) -> Grouping:
    """Queries of the sizes that a file lists, one per line, without the rows that were dropped.

    A query whose rows were all dropped disappears, as it does from a text with qids.
    """
    n_lines = len(dropped) or n_rows
    sizes = _read_sizes(query_file, name, n_lines)
    if sum(sizes) != n_lines:
        raise FileFormatError(
            f"{name_of(query_file)}: the sizes add up to {sum(sizes):,}, but {name} has {n_lines:,} rows"
        )
    warn_of_empty(np.array(sizes, dtype=np.int64), name_of(query_file))
    if len(dropped):
        kept_before = offsets(~dropped)
        kept = np.diff(kept_before[offsets(sizes)])
        return by_size(kept[kept > 0], n_rows)
    return by_size(sizes, n_rows)


def _read_sizes(query_file: Any, name: str, n_lines: int) -> list[int]:
    """The sizes, none above the number of rows; Python's own integers, whose sum does not wrap around."""
    text = read_text(query_file)
    sizes = []
    for number, line in enumerate(text.data.tobytes().splitlines(), start=1):
        words = line.split()
        if len(words) > 1 or not all(word.isdigit() and len(word) <= 18 for word in words):
            shown = line.decode("utf-8", "replace").strip()
            raise FileFormatError(f"{text.name}, line {number:,}: expected the size of a query, got {shown[:40]!r}")
        for size in map(int, words):
            if size > n_lines:
                raise FileFormatError(
                    f"{text.name}, line {number:,}: a query of {size:,} rows, but {name} has {n_lines:,} rows"
                )
            sizes.append(size)
    return sizes


# -------------------------------------------------------------------------------------------------- a text into arrays


RANGE = 1 << 21  # bytes per range; the cuts, and with them the result, do not depend on the number of threads
SAMPLES, SAMPLE = 16, 1 << 13  # the number of ranges that are sampled, and bytes at the beginning of each
UNDECIDED = 64  # values that a range may leave to Python's float before it is read again with a larger buffer
# A table of so many bytes is always accepted. A larger one may have at most so many values per byte of its text: a
# value takes five to ten bytes: a table in which one value in a thousand is not 0 is accepted.
_UNQUESTIONED = 100 << 20
_VALUES_A_BYTE = 100


def read_table(text: Text, how: Reading, first_line: int = 1) -> LetorTable | None:
    """Read a whole text.

    Parameters
    ----------
    text : Text
        The bytes.
    how : Reading
        The options.
    first_line : int, default=1
        The number of the line at byte 0, for messages.

    Returns
    -------
    table : LetorTable or None
        None where there is no row.
    """
    bounds = cut(text.data)
    counts = parallel.map_chunks(lambda first, last: count_rows(text.data, first, last), bounds, how.n_jobs)
    first_row = offsets(counts).tolist()
    n_rows = first_row.pop()
    if not n_rows:
        where = SourceLocation(text.name, text.data, first_line)
        if (stray := where.stray_return()) is not None:
            raise problem(where, code.STRAY_RETURN, stray, how.rules, how)
        return None
    ranges = [(*pair, row, count) for pair, row, count in zip(bounds, first_row, counts, strict=True)]
    rules = infer_schema(text.data, bounds, how.rules, how.dtype)
    y = np.zeros(n_rows)
    dropped = np.zeros(n_rows if rules.unjudged == code.DROP else 0, dtype=bool)
    while True:
        X = _allocate(n_rows, rules, how.dtype, text.name)  # zeros take memory when they are first written to
        if not how.width_given:
            _refuse_unless_justified(n_rows, rules, how.dtype, SourceLocation(text.name, text.data, first_line))
        parts = parallel.map_chunks(RangeReader(text, rules, X, y, dropped).read, ranges, how.n_jobs)
        for notes in (part.notes for part in parts if part.notes.problem):
            raise problem(SourceLocation(text.name, text.data, first_line), notes.problem, notes.place, rules, how)
        seen = _correct(rules, parts)
        if seen == rules:
            break
        rules = seen
        del X  # its memory is needed for the wider one
    kept = [part.notes.rows for part in parts]
    if sum(kept) < n_rows:
        X, y = _close_up(X, rules.width, first_row, kept), _close_up(y, 1, first_row, kept)
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
        f"{where.of(where.find_feature(largest))}: feature {largest:,} would make a table of {n_rows:,} x "
        f"{rules.width:,} values, {needed / 2**20:,.0f} MiB, out of {len(where.text):,} bytes of text: pass "
        f"n_features={rules.width} to allow it"
    )


def _allocate(n_rows: int, rules: code.LetorRules, dtype: Any, name: str) -> Floats:
    """Zeros for every value, in one dimension, if they fit into memory."""
    needed = n_rows * rules.width * dtype.itemsize
    free = available_memory() if needed > _SMALL else None
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


def _close_up(values: Any, width: int, first_row: Sequence[int], kept: Sequence[int]) -> Any:
    """Move every range down, in place, over the rows that the ranges before it left out."""
    filled = 0
    for row, count in zip(first_row, kept, strict=True):
        if row > filled:
            values[filled * width : (filled + count) * width] = values[row * width : (row + count) * width]
        filled += count
    values.resize(filled * width, refcheck=False)
    return values


# ------------------------------------------------------------------------------------------------------ ranges of lines


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


def cut(data: NDArray[np.uint8]) -> list[tuple[int, int]]:
    """Ranges (first byte, byte after the last) of whole lines, about ``RANGE`` bytes each."""
    begin, ranges = 0, []
    while begin < len(data):
        end = after_newline(data, min(begin + RANGE, len(data)), len(data))
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
        stop = after_newline(data, min(begin + SAMPLE, end), end)
        n_rows = count_rows(data, begin, stop)
        reader = RangeReader(Text("", data), trial, nothing, np.zeros(n_rows), np.zeros(0, dtype=bool))
        samples.append(reader.read(begin, stop, 0, n_rows).notes)
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
        self._expected = expected_ids(rules.base, rules.width)

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
    gather(data, at, offset, copied)
    return StringColumn(copied, offset)


def _correct(rules: code.LetorRules, parts: Sequence[ParsedRange]) -> code.LetorRules:
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
