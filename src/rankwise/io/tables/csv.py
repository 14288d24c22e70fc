"""CSV text, block by block: separators, decimal commas and byte order marks are detected, and ids stay as written.

:class:`CsvText` reads the header and cuts the text into blocks of whole records. :func:`read_fast` reads a block by
pyarrow where that is installed. What pyarrow rejects, and everything where it is not installed, is read cell by cell by
:func:`read_cells`, which also finds the line and the column for an error message. No core dependency reads CSV: pandas
and polars are optional too, and none of them names the line of a cell that is not a number.
"""

import csv
import importlib.util
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from rankwise._parameters import validated
from rankwise.errors import FileFormatError
from rankwise.io.sources import DELIMITERS, ByteStream, OnRead, open_text
from rankwise.io.tables.records import as_csv
from rankwise.io.tables.rows import (
    Columns,
    Roles,
    TableRows,
    Unjudged,
    as_queries,
    name_in_errors,
    side_by_side,
    text_as_feature,
    without_unjudged,
)
from rankwise.queries.checks import Missing, first_repeated
from rankwise.queries.grouping import StringColumn
from rankwise.queries.queries import Queries

# Cells of numbers that count as empty: those that pandas takes for missing.
EMPTY = ("", "NA", "N/A", "n/a", "#N/A", "#NA", "<NA>", "NaN", "nan", "-NaN", "-nan", "null", "NULL", "None")
_TRUTHS = {"true": 1.0, "True": 1.0, "TRUE": 1.0, "false": 0.0, "False": 0.0, "FALSE": 0.0}
_SHOWN = 40  # letters of a cell that a message shows
_BLOCK = 1 << 22  # bytes parsed together
_LONGEST_HEADER = 1 << 24
_MOST_COLUMNS = 5000  # pyarrow takes 0.1 ms per column and block, in which so wide a table has few rows
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?")


# The csv module refuses longer cells. What a cell may take is limited by memory, as everything that is read.
csv.field_size_limit(max(csv.field_size_limit(), 1 << 30))


class Format(NamedTuple):
    """The separator of cells, and the decimal mark of numbers."""

    delimiter: str
    decimal: str


class Places(NamedTuple):
    """The names of places in a text, for messages.

    Attributes
    ----------
    name : str
        The name of the source.
    numbers : sequence of int
        What messages call each line by, where that is not its number.
    unit : str
        What is counted.
    """

    name: str
    numbers: Sequence[int] = ()
    unit: str = "line"

    def at(self, line: int) -> str:
        """The place of a line: ``train.csv, line 12``."""
        return f"{self.name}, {self.unit} {self.numbers[line - 1] if self.numbers else line:,}"


@dataclass(frozen=True)
class Wanted:
    """The columns to read, and the policies for empty cells.

    Attributes
    ----------
    places : Places
        How messages call places.
    names : tuple of str
        All columns of the file.
    columns : Columns
        The columns that are read.
    decimal : {".", ","}
        The decimal mark.
    missing : {"error", "zero", "min", "keep"}
        What happens to features that are not finite.
    unjudged : {"error", "drop", "zero"}
        What happens to labels that are empty or negative.
    grades : mapping of str to float, or None
        The labels of the words in the label column, where it holds words.
    """

    places: Places
    names: tuple[str, ...]
    columns: Columns
    decimal: str = "."
    missing: Missing = "error"
    unjudged: Unjudged = "error"
    grades: Mapping[str, float] | None = None


@dataclass(frozen=True)
class CsvText:
    """An open CSV text whose header has been read.

    Attributes
    ----------
    source : ByteStream
        The source, after its first bytes.
    format : Format
        The detected format.
    names : tuple of str
        The columns.
    rest : bytes
        Bytes that were read from the source and not yet handed out.
    first_line : int
        The number of the first line after the header.
    places : Places
        How messages call places.
    """

    source: ByteStream
    format: Format
    names: tuple[str, ...]
    rest: bytes
    first_line: int
    places: Places

    @classmethod
    def open(cls, source: ByteStream) -> "CsvText":
        """Read the header and detect the format; what is not a header of different names raises an error.

        Rows in JSON become the CSV that says the same; other JSON raises an error.
        """
        if source.kind == "json":
            raise FileFormatError(
                f"{source.name} is JSON without rows: expected one object per document, on lines of their own or in a "
                "list"
            )
        if source.kind == "records":
            rows = as_csv(source)
            text_of_rows: Any = rows.text
            stream = ByteStream(source.name, text_of_rows)
            return cls(stream, Format(",", "."), rows.names, b"", 1, Places(source.name, rows.lines, rows.unit))
        text = source.read(len(source.head))
        while (end := _record_end(text)) < 0 and (more := source.read(_BLOCK)):
            if len(text) > _LONGEST_HEADER:
                raise FileFormatError(f"{source.name}: its first line does not end, expected names of columns")
            text += more
        header, rest = (text[: end + 1], text[end + 1 :]) if end >= 0 else (text, b"")
        if b"\0" in header:
            place = header.index(b"\0") + 1
            raise FileFormatError(
                f"{source.name}, line 1: byte {place:,} is zero, as in UTF-16 without its mark: expected the names of "
                "the columns in UTF-8"
            )
        names = header.decode()
        found = _format_of(names, rest)
        try:
            cells = next(csv.reader([names], delimiter=found.delimiter), [])
        except csv.Error as error:
            raise FileFormatError(f"{source.name}, line 1: expected the names of the columns, {error}") from error
        columns = tuple(cell.strip() for cell in cells)
        _check_names(columns, source.name)
        return cls(source, found, columns, rest, 1 + header.count(b"\n"), Places(source.name))

    def select(self, roles: Roles, **policies: Any) -> Wanted:
        """The columns with a role, and what happens to empty cells."""
        return Wanted(self.places, self.names, roles.among(self.names), self.format.decimal, **policies)

    def pieces(self, wanted: Wanted) -> Iterator[TableRows]:
        """The rows, some thousands at a time; a text without rows raises an error."""
        empty = True
        for _, rows in self.blocks_of_rows(wanted):
            empty = empty and not len(rows.X)
            yield rows
        if empty:
            raise FileFormatError(f"{self.source.name} has a header but no rows")

    def blocks_of_rows(self, wanted: Wanted) -> Iterator[tuple[bytes, TableRows]]:
        """(bytes, rows) of every block of whole records."""
        line = self.first_line
        for block in self._blocks():
            rows = read_fast(block, self.format.delimiter, wanted)
            if rows is None:
                rows = read_cells(block.decode(), self.format.delimiter, line, wanted)
            yield block, rows
            line += block.count(b"\n")

    def records(self) -> Iterator[tuple[int, list[str]]]:
        """(line, cells) of every record; a record of another length than the header raises an error."""
        line, empty = self.first_line, True
        for block in self._blocks():
            for record in _records(block.decode(), self.format.delimiter, line, self.places, len(self.names)):
                empty = False
                yield record
            line += block.count(b"\n")
        if empty:
            raise FileFormatError(f"{self.source.name} has a header but no rows")

    def _blocks(self) -> Iterator[bytes]:
        """Blocks of whole records; a line break inside quotes does not end a record."""
        held, size, ended = self.rest, _BLOCK, False
        while held or not ended:
            if len(held) < size and not ended:
                more = self.source.read(_BLOCK)
                held, ended = held + more, not more
                continue
            end = len(held) - 1 if ended and len(held) <= size else _last_record_end(held[:size])
            if end < 0:  # a record that is longer
                size *= 2
                continue
            block, held, size = held[: end + 1], held[end + 1 :], _BLOCK
            if block.strip():
                yield block


@contextmanager
def open_csv(path: Any, on_read: OnRead = None) -> Iterator[CsvText]:
    """Open a CSV text, or rows in JSON, and read its header.

    Parameters
    ----------
    path : path, ``-``, binary file object or ByteStream
        The text, plain or gzipped.
    on_read : callable, default=None
        Receives the number of bytes each time some are read.

    Yields
    ------
    text : CsvText
        The open text, whose :meth:`~CsvText.records` are the cells.
    """
    with nullcontext(path) if isinstance(path, ByteStream) else open_text(path, on_read) as source:
        yield CsvText.open(source)


@validated
def read_text_table(
    path: Any,
    *,
    missing: Missing = "error",
    unjudged: Unjudged = "error",
    grades: Mapping[str, float] | None = None,
    **columns: Any,
) -> Queries:
    """Read judged queries from CSV, from rows in JSON, or from a LETOR text under the name of one.

    Parameters
    ----------
    path : path, ``-``, binary file object or ByteStream
        The text, plain or gzipped.
    missing, unjudged, grades : str or mapping
        As for :func:`rankwise.from_frame`.
    **columns : keyword arguments
        The other keywords of :class:`~rankwise.io.tables.rows.Roles`; a LETOR text has no columns.

    Returns
    -------
    queries : Queries
        The queries of the text.
    """
    with nullcontext(path) if isinstance(path, ByteStream) else open_text(path) as source:
        if source.kind == "letor":
            from rankwise.io.letor.read import read_letor

            return read_letor(source, missing=missing, unjudged=unjudged)
        text = CsvText.open(source)
        with name_in_errors(source.name):
            wanted = text.select(Roles(**columns), missing=missing, unjudged=unjudged, grades=grades)
            rows = without_unjudged(TableRows.concat(list(text.pieces(wanted))), unjudged)
            return as_queries(rows, wanted.columns.features, missing, wanted.columns.weight)


def _records(text: str, delimiter: str, line: int, places: Places, width: int) -> Iterator[tuple[int, list[str]]]:
    """(line, cells) of the records of a block whose first line has this number; blank lines are skipped."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        for record in reader:
            if record and len(record) != width:
                expected = f"expected {width} cells as in the header, got {len(record)}"
                raise FileFormatError(f"{places.at(line + reader.line_num - 1)}: {expected}")
            if record:
                yield line + reader.line_num - 1, record
    except csv.Error as error:  # usually a quote that does not end
        raise FileFormatError(f"{places.at(line + reader.line_num - 1)}: {error}") from error


def _record_end(text: bytes) -> int:
    """The place of the end of the first record, or -1."""
    end = text.find(b"\n")
    while end >= 0 and text.count(b'"', 0, end) % 2:
        end = text.find(b"\n", end + 1)
    return end


def _last_record_end(text: bytes) -> int:
    """The last line break outside of quotes, or -1."""
    if b'"' not in text:
        return text.rfind(b"\n")
    data = np.frombuffer(text, dtype=np.uint8)
    inside = np.cumsum(data == ord('"'), dtype=np.int64) % 2 == 1
    breaks = np.flatnonzero((data == ord("\n")) & ~inside)
    return int(breaks[-1]) if len(breaks) else -1


def _format_of(header: str, sample: bytes) -> Format:
    """The separator that occurs most often in the header; a decimal comma where numbers have commas and no dots."""
    names = re.sub(r'"[^"]*"', "", header)
    delimiter = max(DELIMITERS, key=names.count)
    if delimiter == ",":
        return Format(delimiter, ".")
    # lines of bytes: those of str also end at \x1e, U+2028 and others, which are letters of a cell
    rows = csv.reader(
        (line.decode("utf-8", "replace") for line in sample[: 1 << 14].splitlines()[:50]), delimiter=delimiter
    )
    numbers = [cell.strip() for row in rows for cell in row if _NUMBER.fullmatch(cell.strip())]
    commas = any("," in cell for cell in numbers) and not any("." in cell for cell in numbers)
    return Format(delimiter, "," if commas else ".")


def _check_names(names: tuple[str, ...], name: str) -> None:
    """Refuse a header of numbers, and a header in which a name occurs twice."""
    numbers = [cell for cell in names if _NUMBER.fullmatch(cell)]
    if numbers and len(numbers) * 2 >= len(names):
        raise FileFormatError(
            f"{name}, line 1: expected the names of the columns, got numbers such as {numbers[0]!r}: put a header "
            "before the rows"
        )
    twice = first_repeated(names)
    if twice is not None:
        raise FileFormatError(f"{name}, line 1: two columns are called {twice!r}: give them different names")


# ---------------------------------------------------------------------------------------------------- blocks by pyarrow


def read_fast(block: bytes, delimiter: str, wanted: Wanted) -> TableRows | None:
    """The rows of a block of whole records by pyarrow.

    None where pyarrow is not installed, or where a cell needs a closer look: words among numbers, empty cells.
    """
    columns = wanted.columns
    if importlib.util.find_spec("pyarrow") is None or wanted.grades is not None or len(wanted.names) > _MOST_COLUMNS:
        return None
    arrow, text = map(importlib.import_module, ("pyarrow", "pyarrow.csv"))
    ids = [columns.qid, *([columns.docid] if columns.docid else [])]
    numbers = [*columns.features, *(name for name in (columns.label, columns.weight, columns.document_weight) if name)]
    kinds = {**dict.fromkeys(numbers, arrow.float64()), **dict.fromkeys(ids, arrow.binary())}
    if set(ids) & set(numbers):
        return None
    try:
        table = text.read_csv(
            arrow.BufferReader(block),
            read_options=text.ReadOptions(column_names=wanted.names, block_size=len(block) + 1),
            parse_options=text.ParseOptions(delimiter=delimiter, newlines_in_values=b'"' in block),
            convert_options=text.ConvertOptions(
                column_types=kinds,
                include_columns=list(kinds),
                null_values=EMPTY,
                strings_can_be_null=False,
                decimal_point=wanted.decimal,
            ),
        )
    except arrow.ArrowException:
        return None
    found = {name: table.column(name) for name in kinds}
    X = side_by_side([found[name].to_numpy() for name in columns.features], len(table))
    of_rows = (columns.label, columns.weight, columns.document_weight)
    y, weight, of_document = (None if name is None else found[name].to_numpy() for name in of_rows)
    qid = _texts(found[columns.qid])
    odd = [
        _refused(X, wanted.missing).any(),
        y is not None and wanted.unjudged == "error" and not (y >= 0).all(),
        any(one is not None and np.isnan(one).any() for one in (weight, of_document)),
        (np.diff(qid.offset) == 0).any(),
    ]
    if any(odd):
        return None
    docid = None if columns.docid is None else _texts(found[columns.docid])
    return TableRows(X, y, qid, docid, weight, of_document)


def _refused(X: Any, missing: str) -> NDArray[np.bool_]:
    """Which features raise an error under a policy for missing values."""
    wrong: NDArray[np.bool_] = np.zeros(X.shape, bool) if missing not in ("error", "keep") else np.isinf(X)
    return wrong | np.isnan(X) if missing == "error" else wrong


def _texts(column: Any) -> StringColumn:
    """A column of bytes, without copying the texts one by one."""
    chunk = column.combine_chunks()
    _, offsets, data = chunk.buffers()
    places = np.frombuffer(offsets, dtype=np.int32)[chunk.offset : chunk.offset + len(chunk) + 1].astype(np.int64)
    return StringColumn(np.frombuffer(data if data is not None else b"", dtype=np.uint8), places)


# -------------------------------------------------------------------------------------------------- blocks cell by cell


def read_cells(text: str, delimiter: str, first_line: int, wanted: Wanted) -> TableRows:
    """The rows of a block, cell by cell.

    Parameters
    ----------
    text : str
        Whole records.
    delimiter : str
        The separator.
    first_line : int
        The number of the first line, for messages.
    wanted : Wanted
        The columns.

    Returns
    -------
    rows : TableRows
        The rows of the block.

    Raises
    ------
    FileFormatError
        If a cell cannot be read; the message names the line and the column.
    """
    block = _Block(text, delimiter, first_line, wanted)
    columns = wanted.columns
    labels = None if columns.label is None else [block.label(row, columns.label) for row in range(len(block.cells))]
    return TableRows(
        block.features(columns.features),
        None if labels is None else np.array(labels, dtype=np.float64),
        StringColumn.of(block.identities(columns.qid)),
        None if columns.docid is None else StringColumn.of(block.column(columns.docid)),
        None if columns.weight is None else block.weights(columns.weight),
        None if columns.document_weight is None else block.weights(columns.document_weight),
    )


class _Block:
    """The records of a block as lists of cells, each with the number of the line that it ends in."""

    def __init__(self, text: str, delimiter: str, first_line: int, wanted: Wanted) -> None:
        self.wanted = wanted
        self.place = {name: column for column, name in enumerate(wanted.names)}
        self.cells: list[list[str]] = []
        self.lines: list[int] = []
        # Python's own numbers may hold underscores and digits of other scripts, those of other tools may not
        self.plain = wanted.decimal == "." and "_" not in text and text.isascii()
        for line, record in _records(text, delimiter, first_line, wanted.places, len(wanted.names)):
            self.lines.append(line)
            self.cells.append(record)

    def refuse(self, row: int, sentence: str) -> NoReturn:
        """Raise an error about a row."""
        raise FileFormatError(f"{self.wanted.places.at(self.lines[row])}: {sentence}")

    def column(self, name: str) -> list[str]:
        """The cells of a column."""
        place = self.place[name]
        return [record[place] for record in self.cells]

    def identities(self, name: str) -> list[str]:
        """The query ids; an empty one raises an error."""
        found = self.column(name)
        if "" in found:
            self.refuse(found.index(""), f"column {name!r} must hold a query id, got an empty cell")
        return found

    def features(self, names: list[str]) -> NDArray[np.float64]:
        """The features; what is not finite raises an error unless a policy is given, which is for NaN with "keep"."""
        places = [self.place[name] for name in names]
        X = np.empty((len(self.cells), len(names)))
        for row, record in enumerate(self.cells):
            cells = [record[place] for place in places]
            try:
                X[row] = list(map(float if self.plain else self.exactly, cells))
            except ValueError:
                X[row] = [self.feature(row, name, cell) for name, cell in zip(names, cells, strict=True)]
        refused = _refused(X, self.wanted.missing)
        if refused.any():
            row, place = map(int, np.unravel_index(int(np.argmax(refused)), X.shape))
            cell = self.cells[row][places[place]].strip()
            found = "an empty cell" if cell in EMPTY else repr(cell)
            self.refuse(
                row,
                f"column {names[place]!r} must be finite, got {found}: pass missing='zero' or "
                "missing='min', or replace it",
            )
        return X

    def feature(self, row: int, name: str, cell: str) -> float:
        """One feature; a word raises an error."""
        value = self.number(cell)
        if value is None and self.wanted.decimal == "," and "." in cell:
            self.refuse(row, f"column {name!r} must have a decimal comma as the other columns have, got {_show(cell)}")
        if value is None:
            self.refuse(row, text_as_feature(name, _show(cell)))
        return value

    def weights(self, name: str) -> NDArray[np.float64]:
        """The weights; a cell that is not a number raises an error."""
        values = []
        for row, cell in enumerate(self.column(name)):
            value = self.number(cell)
            if value is None or np.isnan(value):
                self.refuse(row, f"the weights in column {name!r} must be numbers, got {_show(cell)}")
            values.append(value)
        return np.array(values, dtype=np.float64)

    def exactly(self, cell: str) -> float:
        """The value of a cell, or ValueError."""
        value = self.number(cell)
        if value is None:
            raise ValueError
        return value

    def number(self, cell: str) -> float | None:
        """The value of a cell; NaN where it is empty, None where it is not a number."""
        text = cell.strip()
        if text in EMPTY:
            return np.nan
        if self.wanted.decimal == "," and "." not in text:
            text = text.replace(",", ".")
        elif self.wanted.decimal == ",":
            return None
        try:
            return float(text) if "_" not in text and text.isascii() else None
        except ValueError:
            return _TRUTHS.get(text)

    def label(self, row: int, name: str) -> float:
        """One label, by ``grades`` or as a number."""
        cell = self.cells[row][self.place[name]].strip()
        grades = self.wanted.grades or {}
        value = grades.get(cell)
        value = self.number(cell) if value is None else value
        if value is None:
            words = list(dict.fromkeys(text.strip() for text in self.column(name)))[:8]
            meant = ", ".join(f"{word!r}: {grade}" for grade, word in enumerate(words))
            self.refuse(
                row,
                f"the labels in column {name!r} must be numbers, got {_show(cell)}: give each of its words "
                f"({', '.join(map(_show, words))}) a grade by grades={{{meant}}}, in the right order",
            )
        if self.wanted.unjudged == "error" and not value >= 0:
            found = "an empty cell" if np.isnan(value) else repr(cell)
            self.refuse(
                row,
                f"the labels in column {name!r} must be 0 or more, got {found}: pass unjudged='drop' or "
                "unjudged='zero'",
            )
        return value


def _show(cell: str) -> str:
    """A cell for a message, shortened."""
    return repr(cell if len(cell) <= _SHOWN else cell[:_SHOWN] + "...")
