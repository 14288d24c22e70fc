"""A block of CSV cell by cell: slow, and able to say which line and which column cannot be read."""

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import FileFormatError
from rankwise.data.checks import Missing
from rankwise.data.table_columns import Columns, text_as_feature
from rankwise.data.table_rows import Rows, Unjudged
from rankwise.data.texts import Texts

# What stands for nothing in a cell of numbers.
EMPTY = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")
_TRUTHS = {"true": 1.0, "True": 1.0, "TRUE": 1.0, "false": 0.0, "False": 0.0, "FALSE": 0.0}
_SHOWN = 40  # letters of a cell that a sentence shows


@dataclass(frozen=True)
class Wanted:
    """Which columns are read, and what happens to cells that hold nothing.

    ``grades``: what the texts of the label column mean, where it holds texts.
    """

    name: str
    names: tuple[str, ...]
    columns: Columns
    decimal: str = "."
    missing: Missing = "error"
    unjudged: Unjudged = "error"
    grades: Mapping[str, float] | None = None


def read_cells(text: str, delimiter: str, first_line: int, wanted: Wanted) -> Rows:
    """The records of a text whose first line has this number."""
    block = _Block(text, delimiter, first_line, wanted)
    columns = wanted.columns
    labels = None if columns.label is None else [block.label(row, columns.label) for row in range(len(block.cells))]
    return Rows(
        block.features(columns.features),
        None if labels is None else np.array(labels, dtype=np.float64),
        Texts.of(block.identities(columns.qid)),
        None if columns.docid is None else Texts.of(block.column(columns.docid)),
        None if columns.weight is None else block.weights(columns.weight),
    )


class _Block:
    """Records as lists of cells, each with the number of the line that it ends in."""

    def __init__(self, text: str, delimiter: str, first_line: int, wanted: Wanted) -> None:
        self.wanted = wanted
        self.place = {name: column for column, name in enumerate(wanted.names)}
        self.cells: list[list[str]] = []
        self.lines: list[int] = []
        # Python's own numbers may hold underscores and digits of other scripts, those of other tools may not
        self.plain = wanted.decimal == "." and "_" not in text and text.isascii()
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        for record in self._records(reader, first_line):
            if not record:  # a blank line
                continue
            self.lines.append(first_line + reader.line_num - 1)
            if len(record) != len(wanted.names):
                self.refuse(-1, f"expected {len(wanted.names)} cells as in the header, found {len(record)}")
            self.cells.append(record)

    def _records(self, reader: Any, first_line: int) -> Iterator[list[str]]:
        try:
            yield from reader
        except csv.Error as error:  # a quote that does not end, as a rule
            raise FileFormatError(f"{self.wanted.name}, line {first_line + reader.line_num - 1:,}: {error}") from error

    def refuse(self, row: int, sentence: str) -> NoReturn:
        raise FileFormatError(f"{self.wanted.name}, line {self.lines[row]:,}: {sentence}")

    def column(self, name: str) -> list[str]:
        place = self.place[name]
        return [record[place] for record in self.cells]

    def identities(self, name: str) -> list[str]:
        found = self.column(name)
        if "" in found:
            self.refuse(found.index(""), f"column {name!r} is empty, and every row belongs to a query")
        return found

    def features(self, names: list[str]) -> NDArray[np.float64]:
        places = [self.place[name] for name in names]
        X = np.empty((len(self.cells), len(names)))
        for row, record in enumerate(self.cells):
            cells = [record[place] for place in places]
            try:
                X[row] = list(map(float if self.plain else self.exactly, cells))
            except ValueError:
                X[row] = [self.feature(row, name, cell) for name, cell in zip(names, cells, strict=True)]
        finite = np.isfinite(X)
        if self.wanted.missing == "error" and not finite.all():
            row, place = map(int, np.unravel_index(int(np.argmin(finite)), X.shape))
            cell = self.cells[row][places[place]].strip()
            found = "empty" if cell in EMPTY else repr(cell)
            self.refuse(row, f"column {names[place]!r} is {found}: give missing='zero' or missing='min', or clean it")
        return X

    def feature(self, row: int, name: str, cell: str) -> float:
        value = self.number(cell)
        if value is None and self.wanted.decimal == "," and "." in cell:
            self.refuse(row, f"column {name!r} holds {_shown(cell)}, and other numbers here have a decimal comma")
        if value is None:
            self.refuse(row, text_as_feature(name, _shown(cell)))
        return value

    def weights(self, name: str) -> NDArray[np.float64]:
        values = []
        for row, cell in enumerate(self.column(name)):
            value = self.number(cell)
            if value is None or np.isnan(value):
                self.refuse(row, f"column {name!r} holds {_shown(cell)}, and a weight is a number")
            values.append(value)
        return np.array(values, dtype=np.float64)

    def exactly(self, cell: str) -> float:
        value = self.number(cell)
        if value is None:
            raise ValueError
        return value

    def number(self, cell: str) -> float | None:
        """What a cell is worth; NaN for nothing, None for what is no number."""
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
        cell = self.cells[row][self.place[name]].strip()
        grades = self.wanted.grades or {}
        value = grades.get(cell)
        value = self.number(cell) if value is None else value
        if value is None:
            words = list(dict.fromkeys(text.strip() for text in self.column(name)))[:8]
            meant = ", ".join(f"{word!r}: {grade}" for grade, word in enumerate(words))
            self.refuse(
                row,
                f"column {name!r} holds {_shown(cell)}, and a label is a number: say what its words "
                f"({', '.join(map(_shown, words))}) mean by grades={{{meant}}}, in the right order",
            )
        if self.wanted.unjudged == "error" and not value >= 0:
            found = "empty" if np.isnan(value) else f"{cell!r}"
            self.refuse(
                row, f"column {name!r} is {found}, labels are 0 or more: give unjudged='drop' or unjudged='zero'"
            )
        return value


def _shown(cell: str) -> str:
    return repr(cell if len(cell) <= _SHOWN else cell[:_SHOWN] + "...")
