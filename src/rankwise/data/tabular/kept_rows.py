"""Tables whose rows are copied as they are: every column stays, whether or not a ranker could read it.

:func:`keep_rows` opens a CSV, Parquet or Arrow file, reads its query ids and nothing else, and writes some of its rows
to another file of the same format. CSV records keep their bytes: quotes, decimal marks, texts, line breaks. The whole
file is held in memory.
"""

import csv
import gzip
import io
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._atomic_write import writing
from rankwise._errors import FileFormatError
from rankwise._extras import require
from rankwise.data.queries import Queries
from rankwise.data.sources import ByteStream
from rankwise.data.tabular.csv import CsvText, read_cells, read_fast
from rankwise.data.tabular.frames import from_frame, suffix_of
from rankwise.data.tabular.rows import Roles, TableRows, as_queries, read_arrow

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class CsvRecords:
    """The records of a CSV text.

    Attributes
    ----------
    queries : Queries
        Which query each record belongs to; without features and labels.
    header : bytes
        The line of names.
    records : list of bytes
        The records, each with its line break.
    """

    queries: Queries
    header: bytes
    records: list[bytes]

    def write(self, rows: Rows, path: str | os.PathLike[str]) -> None:
        """Write these records under the header; a path that ends in ``.gz`` is gzipped.

        Parameters
        ----------
        rows : ndarray of int64
            The numbers of the records.
        path : path
            The file.
        """
        content = self.header + b"".join(self.records[row] for row in rows)
        with writing(path) as part, open(part, "wb") as file:
            if os.fspath(path).endswith(".gz"):
                # no name and no time of writing: the same rows give the same bytes
                with gzip.GzipFile("", "wb", 6, file, 0) as packed:
                    packed.write(content)
            else:
                file.write(content)


@dataclass(frozen=True)
class ArrowRows:
    """The rows of a Parquet or Arrow file.

    Attributes
    ----------
    queries : Queries
        Which query each row belongs to; without features and labels.
    table : pyarrow.Table
        The whole table.
    """

    queries: Queries
    table: Any

    def write(self, rows: Rows, path: str | os.PathLike[str]) -> None:
        """Write these rows in the format of the path's ending.

        Parameters
        ----------
        rows : ndarray of int64
            The numbers of the rows.
        path : path
            The file.
        """
        chosen = self.table.take(rows)
        with writing(path) as part:
            if suffix_of(path) == ".parquet":
                require("pyarrow.parquet").write_table(chosen, part)
            else:
                with require("pyarrow.ipc").new_file(os.fspath(part), chosen.schema) as file:
                    file.write_table(chosen)


def keep_rows(source: "str | os.PathLike[str] | ByteStream", qid: str) -> CsvRecords | ArrowRows:
    """Read a table so that its rows can be written elsewhere unchanged.

    Parameters
    ----------
    source : path or ByteStream
        A Parquet or Arrow file, or an opened CSV text.
    qid : str
        The column of query ids.

    Returns
    -------
    rows : CsvRecords or ArrowRows
        The rows, and the query of each.

    Raises
    ------
    RankwiseError
        If there is no such column, or if a record does not have as many cells as the header.
    """
    if isinstance(source, ByteStream):
        return _csv_records(source, qid)
    table, _ = read_arrow(os.fspath(source), suffix_of(source))
    return ArrowRows(from_frame(table, qid=qid, label=None, features=[]), table)


def _csv_records(source: ByteStream, qid: str) -> CsvRecords:
    """The records of an opened CSV text."""
    text = CsvText.open(source)
    wanted = text.wanted(Roles(qid=qid, label=None, features=()))
    records: list[bytes] = []
    pieces: list[TableRows] = []
    line = text.first_line
    for block in text._blocks():
        rows = read_fast(block, text.format.delimiter, wanted)
        if rows is None:  # names the line of a record that cannot be read
            decoded = block.decode("utf-8", "surrogateescape")
            rows = read_cells(decoded, text.format.delimiter, line, wanted)
        found = _records(block)
        if len(found) != len(rows.qid):
            raise FileFormatError(f"{source.name}: its records could not be told apart after line {line:,}")
        pieces.append(rows)
        records += found
        line += block.count(b"\n")
    if not records:
        raise FileFormatError(f"{source.name} holds names of columns and no rows")
    ending = "\r\n" if records[0].endswith(b"\r\n") else "\n"
    if not records[-1].endswith(b"\n"):
        records[-1] += ending.encode()
    return CsvRecords(as_queries(TableRows.joined(pieces), [], "error"), _header(text, ending), records)


def _records(block: bytes) -> list[bytes]:
    """The records of a block, without blank lines; a line break inside quotes does not end a record."""
    # lines end at \n alone: bytes.splitlines would also end them at a lone \r
    lines = [one + b"\n" for one in block.split(b"\n")]
    lines[-1] = lines[-1].removesuffix(b"\n")
    if b'"' not in block:
        return [one for one in lines if one.strip()]
    found: list[bytes] = []
    held = b""
    for one in lines:
        held += one
        if held.count(b'"') % 2 == 0:
            if held.strip():
                found.append(held)
            held = b""
    return [*found, held] if held else found


def _header(text: CsvText, ending: str) -> bytes:
    """The line of names."""
    written = io.StringIO()
    csv.writer(written, delimiter=text.format.delimiter, lineterminator=ending).writerow(text.names)
    return written.getvalue().encode("utf-8")
