"""Tables in JSON: one object per document on each line (JSON lines), in a list, or in a list of each query.

::

    {"qid": "q1", "docid": "a", "label": 2, "bm25": 7.1}
    {"qid": "q1", "documents": [{"docid": "a", "label": 2, "bm25": 7.1}, {"docid": "b", "label": 0, "bm25": 3.4}]}

:func:`as_csv` writes the objects as the CSV that says the same: numbers with all their digits, null and members that an
object lacks as empty cells. The reader of CSV does the rest, so both formats give the same queries and features.
"""

import csv
import io
import json
from array import array
from collections.abc import Sequence
from tempfile import SpooledTemporaryFile
from typing import Any, NamedTuple

from rankwise.errors import FileFormatError
from rankwise.io.json_text import describe_value, iter_json

_IN_MEMORY = 1 << 24  # bytes of text; more of it waits in a temporary file


class CsvOfRecords(NamedTuple):
    """Objects as CSV.

    Attributes
    ----------
    names : tuple of str
        The columns, in the order of their first appearance.
    text : WidenedText
        The rows, without a line of names; a binary file.
    lines : sequence of int
        For each line of ``text`` the line of the source, or its element.
    unit : {"line", "element"}
        What ``lines`` counts.
    """

    names: tuple[str, ...]
    text: "WidenedText"
    lines: Sequence[int]
    unit: str


class WidenedText:
    """Rows as CSV, written and then read once; rows that have fewer cells than later ones get empty cells.

    Memory holds eight bytes per row, and the rows themselves while they are few.
    """

    def __init__(self) -> None:
        self._rows = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115  it ends with this object
        self._sizes, self._next, self._lacking = array("Q"), 0, 0
        # the first row from which on rows have so many cells
        self._widths: list[tuple[int, int]] = []

    def __del__(self) -> None:
        self._rows.close()

    def append(self, row: bytes, cells: int) -> None:
        """Write a row, which has as many cells as the one before or more."""
        if not self._widths or self._widths[-1][1] < cells:
            self._widths.append((len(self._sizes), cells))
        self._sizes.append(self._rows.write(row))

    def rewind(self) -> None:
        """Begin to read."""
        self._rows.seek(0)
        self._widths = [(first, self._widths[-1][1] - cells) for first, cells in self._widths]

    def read(self, size: int) -> bytes:
        """The next bytes: about so many, and none at the end alone."""
        while self._widths and self._widths[0][0] <= self._next:
            self._lacking = self._widths.pop(0)[1]
        if not self._widths and not self._lacking:
            return self._rows.read(size)
        end = self._widths[0][0] if self._widths else len(self._sizes)
        found, empty = [], b"," * self._lacking + b"\n"
        while self._next < end and size > 0:
            found.append(self._rows.read(self._sizes[self._next])[:-1] + empty)
            self._next, size = self._next + 1, size - self._sizes[self._next]
        return b"".join(found)


def is_record(value: Any) -> bool:
    """Whether a JSON value is a row, or a query with a list of its documents, and not an answer of some tool.

    Parameters
    ----------
    value : object
        The value.

    Returns
    -------
    bool
        Whether it is an object whose members are values, or lists of such objects.
    """
    if not isinstance(value, dict) or not value:
        return False
    inner = [one for member in value.values() if isinstance(member, list) for one in member if isinstance(one, dict)]
    return not any(isinstance(member, dict) for row in (value, *inner) for member in row.values())


def as_csv(source: Any) -> CsvOfRecords:
    """Read JSON rows.

    Parameters
    ----------
    source : path or binary file object
        The text.

    Returns
    -------
    rows : CsvOfRecords
        The rows as CSV.

    Raises
    ------
    FileFormatError
        If a line is not JSON, or not an object of values; the message names the line.
    """
    names: dict[str, int] = {}
    text, written, lines = WidenedText(), io.StringIO(newline=""), array("Q")
    writer = csv.writer(written, lineterminator="\n")
    unit = "line"
    for number, value in iter_json(source):
        whole = isinstance(value, list) and not number
        unit = "element" if whole else unit
        for place, row in enumerate(value, 1) if whole else [(number or 1, value)]:
            where = f"{source.name}, {unit} {place:,}"
            for document in _documents(row, where):
                for name in document:
                    names.setdefault(name, len(names))
                cells = [""] * len(names)
                for name, member in document.items():
                    cells[names[name]] = _cell(member)
                writer.writerow(cells)
                line = written.getvalue()
                written.seek(0)
                written.truncate()
                text.append(line.encode(), len(cells))
                lines.extend([place] * line.count("\n"))
    text.rewind()
    return CsvOfRecords(tuple(names), text, lines, unit)


def _documents(row: Any, where: str) -> list[dict[str, Any]]:
    """The documents of an object: itself, or those in its list, each with the other members."""
    if not is_record(row):
        raise FileFormatError(f"{where}: expected an object with one value for each column, got {describe_value(row)}")
    nested = [
        name for name, member in row.items() if isinstance(member, list) and all(type(one) is dict for one in member)
    ]
    if not nested:
        return [row]
    if len(nested) > 1:
        raise FileFormatError(f"{where}: expected one list of documents, got {nested[0]!r:.60} and {nested[1]!r:.60}")
    shared = {name: member for name, member in row.items() if name != nested[0]}
    for document in row[nested[0]]:
        twice = next((name for name in document if name in shared), None)
        if twice is not None:
            raise FileFormatError(f"{where}: {twice!r:.60} is a member of the query and of a document")
    return [{**shared, **document} for document in row[nested[0]]]


def _cell(member: Any) -> str:
    """A value as a cell of CSV."""
    if isinstance(member, str):
        return member
    return "" if member is None else json.dumps(member)
