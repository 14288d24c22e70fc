"""CSV text, block by block: separators, decimal commas and byte order marks are found out, ids stay as written.

A block is read by pyarrow where that is installed. What pyarrow does not take, and all of it where it is not there, is
read cell by cell, which also finds the line and the column that a sentence has to name.
"""

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rankwise._errors import FileFormatError
from rankwise.data.checks import first_repeated
from rankwise.data.csv_cells import Wanted, read_cells
from rankwise.data.csv_fast import read_fast
from rankwise.data.peeked import DELIMITERS, Peeked
from rankwise.data.plain_text import MARK, decoded
from rankwise.data.table_columns import Roles
from rankwise.data.table_rows import Rows

_BLOCK = 1 << 22  # bytes parsed together
_LONGEST_HEADER = 1 << 20
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?")


class Format(NamedTuple):
    """How cells are separated, and how a number's fraction is."""

    delimiter: str
    decimal: str


@dataclass(frozen=True)
class CsvText:
    """An open CSV text whose header has been read."""

    source: Peeked
    format: Format
    names: tuple[str, ...]
    rest: bytes  # read, and not yet given out
    first_line: int

    @classmethod
    def open(cls, source: Peeked) -> "CsvText":
        """Read the header and find out the format; what is no header is refused."""
        text = source.head.removeprefix(MARK)
        source.read(len(source.head))
        while (end := _record_end(text)) < 0 and (more := source.read(_BLOCK)):
            if len(text) > _LONGEST_HEADER:
                raise FileFormatError(f"{source.name}: its first line does not end, expected names of columns")
            text += more
        header, rest = (text[: end + 1], text[end + 1 :]) if end >= 0 else (text, b"")
        names = _header_text(header, source.name)
        found = _format_of(names, rest)
        try:
            cells = next(csv.reader([names], delimiter=found.delimiter), [])
        except csv.Error as error:
            raise FileFormatError(f"{source.name}, line 1: expected the names of the columns, {error}") from error
        columns = tuple(cell.strip() for cell in cells)
        _check_names(columns, source.name)
        return cls(source, found, columns, rest, 1 + header.count(b"\n"))

    def wanted(self, roles: Roles, **policies: Any) -> Wanted:
        """The columns that play a role, and what to do with cells that hold nothing."""
        return Wanted(self.source.name, self.names, roles.among(self.names), self.format.decimal, **policies)

    def pieces(self, wanted: Wanted) -> Iterator[Rows]:
        """The rows, some thousands at a time; none at all is refused."""
        line, found = self.first_line, False
        for block in self._blocks():
            rows = read_fast(block, self.format.delimiter, wanted)
            if rows is None:
                rows = read_cells(_decoded(block), self.format.delimiter, line, wanted)
            found = found or len(rows.X) > 0
            yield rows
            line += block.count(b"\n")
        if not found:
            raise FileFormatError(f"{self.source.name} holds names of columns and no rows")

    def _blocks(self) -> Iterator[bytes]:
        """Whole records, as many as fit; a line break inside quotes ends none."""
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


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")


def _record_end(text: bytes) -> int:
    """Where the first record ends, or -1."""
    end = text.find(b"\n")
    while end >= 0 and text.count(b'"', 0, end) % 2:
        end = text.find(b"\n", end + 1)
    return end


def _last_record_end(text: bytes) -> int:
    """The last line break that is outside of quotes, or -1."""
    if b'"' not in text:
        return text.rfind(b"\n")
    data = np.frombuffer(text, dtype=np.uint8)
    inside = np.cumsum(data == ord('"'), dtype=np.int64) % 2 == 1
    breaks = np.flatnonzero((data == ord("\n")) & ~inside)
    return int(breaks[-1]) if len(breaks) else -1


def _header_text(header: bytes, name: str) -> str:
    """The names of the columns, which people and other programs read: UTF-8, unlike ids, and without zero bytes."""
    if b"\0" in header:
        place = header.index(b"\0") + 1
        raise FileFormatError(
            f"{name}, line 1: byte {place:,} is zero, as in UTF-16: expected the names of the columns in UTF-8"
        )
    return decoded(header, f"{name}, line 1")


def _format_of(header: str, sample: bytes) -> Format:
    """The separator that cuts the header most often; a decimal comma where numbers are written with one and no dot."""
    names = re.sub(r'"[^"]*"', "", header)
    delimiter = max(DELIMITERS, key=names.count)
    if delimiter == ",":
        return Format(delimiter, ".")
    # lines of bytes: those of str also end at \x1e, U+2028 and others, which are letters of a cell
    rows = csv.reader(map(_decoded, sample[: 1 << 14].splitlines()[:50]), delimiter=delimiter)
    numbers = [cell.strip() for row in rows for cell in row if _NUMBER.fullmatch(cell.strip())]
    commas = any("," in cell for cell in numbers) and not any("." in cell for cell in numbers)
    return Format(delimiter, "," if commas else ".")


def _check_names(names: tuple[str, ...], name: str) -> None:
    numbers = [cell for cell in names if _NUMBER.fullmatch(cell)]
    if numbers and len(numbers) * 2 >= len(names):
        raise FileFormatError(
            f"{name}, line 1: expected the names of the columns, found numbers such as {numbers[0]!r}: put a line of "
            "names before the rows"
        )
    twice = first_repeated(names)
    if twice is not None:
        raise FileFormatError(f"{name}, line 1: two columns are called {twice!r}: give them different names")
