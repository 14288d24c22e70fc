"""Parquet and Arrow files through pyarrow: whole, or in batches of rows."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rankwise._errors import FileFormatError
from rankwise._extras import require
from rankwise._store import KEY
from rankwise.data.tabular.rows import Columns

ENDINGS = (".parquet", ".arrow", ".feather")
_ROWS = 100_000


def read(name: str, suffix: str) -> tuple[Any, dict[str, Any]]:
    """The whole table, and the facts that rankwise noted in the file."""
    file = opened(name, suffix)
    with refusing(name):
        return file.whole(), file.facts


@dataclass(frozen=True)
class ArrowFile:
    """An open file.

    Attributes
    ----------
    name : str
        The name of the file.
    names : list of str
        The columns.
    facts : dict
        What :func:`write_table` noted in the file.
    whole : callable
        Reads the whole table.
    """

    name: str
    names: list[str]
    facts: dict[str, Any]
    whole: Callable[[], Any]
    _pieces: Callable[[list[str], int], Iterator[tuple[Any, float]]]

    def batches(self, columns: Columns, rows: int | None, on_read: Callable[[int], object] | None) -> Iterator[Any]:
        """Tables of about ``rows`` rows with the columns that are read; ``on_read`` receives a share of the bytes for
        each.
        """
        needed = [*columns.features, *(name for name in columns[:4] if name is not None)]
        with refusing(self.name):
            for table, share in self._pieces(list(dict.fromkeys(needed)), rows or _ROWS):
                yield table
                if on_read is not None:
                    on_read(int(share * os.path.getsize(self.name)))


def opened(name: str, suffix: str) -> ArrowFile:
    """Open a file with one of the :data:`ENDINGS`."""
    require("pyarrow")
    if os.path.isdir(name) or not os.path.exists(name):
        found = "it is a folder" if os.path.isdir(name) else "there is no such file"
        raise FileFormatError(f"{name} cannot be read: {found}")
    with refusing(name):
        return (_parquet if suffix == ".parquet" else _arrow)(name)


def _parquet(name: str) -> ArrowFile:
    """Open a Parquet file."""
    arrow = require("pyarrow")
    file = require("pyarrow.parquet").ParquetFile(name)

    def pieces(columns: list[str], rows: int) -> Iterator[tuple[Any, float]]:
        for batch in file.iter_batches(batch_size=rows, columns=columns):
            yield arrow.Table.from_batches([batch]), len(batch) / file.metadata.num_rows

    return ArrowFile(name, file.schema_arrow.names, _facts(file.schema_arrow), file.read, pieces)


def _arrow(name: str) -> ArrowFile:
    """Open an Arrow file of either form; it is read and not mapped, so that later changes of the file do no harm."""
    arrow, ipc = require("pyarrow"), require("pyarrow.ipc")

    def reader() -> Any:
        file = arrow.OSFile(name)
        try:
            return ipc.open_file(file)
        except arrow.ArrowInvalid:  # the form without a table of contents
            file.seek(0)
            return ipc.open_stream(file)

    def pieces(columns: list[str], rows: int) -> Iterator[tuple[Any, float]]:
        opened, size = reader(), max(1, os.path.getsize(name))
        count = getattr(opened, "num_record_batches", None)
        for batch in opened if count is None else map(opened.get_batch, range(count)):
            share = batch.nbytes / size if count is None else 1 / count
            for first in range(0, len(batch), rows):
                part = arrow.Table.from_batches([batch.slice(first, rows)]).select(columns)
                yield part, share * len(part) / len(batch)

    schema = reader().schema
    return ArrowFile(name, schema.names, _facts(schema), lambda: reader().read_all(), pieces)


def _facts(schema: Any) -> dict[str, Any]:
    """What ``write_table`` noted in the file; empty for a table of another origin."""
    try:
        facts = json.loads((schema.metadata or {}).get(KEY.encode(), b"{}"))
    except ValueError:
        return {}
    return facts if isinstance(facts, dict) else {}


@contextmanager
def refusing(name: str) -> Iterator[None]:
    """Turn what pyarrow cannot read into an error that names the file."""
    arrow = require("pyarrow")
    try:
        yield
    except (OSError, arrow.ArrowException) as error:
        raise FileFormatError(f"{name} cannot be read: {(str(error).splitlines() or ['?'])[0]}") from error
