"""Raw tables: the columns of a data frame, a CSV text or `Queries`, as arrays of numbers, texts or days.

A column has the type that its source gives it. Texts are looked at later (:mod:`rankwise.features.columns`), in the
same way for all sources: a CSV file and the data frame read from it give the same features.
"""

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import islice
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankwise._files import path_of
from rankwise._tables import ShownAsFacts
from rankwise.errors import DataError, FileFormatError
from rankwise.io.tables.csv import EMPTY, CsvText
from rankwise.io.tables.frames import open_frame
from rankwise.io.tables.rows import is_arrow, name_in_errors, open_arrow, read_arrow
from rankwise.queries.checks import as_features, not_a_path
from rankwise.queries.grouping import StringColumn, as_ids, parse_ids
from rankwise.queries.queries import Queries

Stored = Literal["number", "boolean", "date", "text", "other"]
_EMPTY = frozenset(EMPTY)
_CELLS = 1 << 18  # of a block of a table; a cell of text takes about a hundred bytes
_DAY = 86_400_000_000  # microseconds


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes
    ----------
    name : str
        Its name.
    stored : {"number", "boolean", "date", "text", "other"}
        The type that the source gives it.
    values : ndarray
        float64 with NaN for what is missing (dates: days since 1970-01-01), or objects for texts: str, None for what is
        missing. Empty for "other".
    decimal : str
        The decimal mark of numbers in its texts, if the source has one for all columns.
    type_name : str
        The name of the type, for "other".
    first_row : int
        The number of the first row in the whole table, for messages.
    """

    name: str
    stored: Stored
    values: NDArray[Any]
    decimal: str = "."
    type_name: str = ""
    first_row: int = 0

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Whether each value is missing; infinite numbers count as missing."""
        if self.stored == "text":
            return np.fromiter((value is None for value in self.values), bool, len(self.values))
        return np.asarray(~np.isfinite(self.values), dtype=bool)


class RawTable(ShownAsFacts, ABC):
    """A table with one row per document.

    Attributes
    ----------
    names : tuple of str
        The columns.
    n_rows : int
        The number of rows.
    first_row : int
        The number of the first row in the table that these rows are of.
    """

    names: tuple[str, ...]
    n_rows: int
    first_row: int = 0

    @abstractmethod
    def column(self, name: str) -> Column:
        """One column by name."""

    @abstractmethod
    def identities(self, name: str) -> NDArray[Any]:
        """One id per row from a column that holds ids; an empty one raises an error."""

    def texts(self, name: str) -> StringColumn:
        """A column of document ids."""
        return StringColumn.of(self.identities(name).tolist())

    def written_identities(self, name: str) -> NDArray[Any] | StringColumn:
        """One id per row, as texts where the source is text: whether they are numbers, all rows decide."""
        return self.identities(name)


def as_table(source: Any) -> RawTable:
    """The table of any source.

    Parameters
    ----------
    source : data frame, RawTable or Queries
        A polars (eager or lazy), pandas or Arrow table, what :func:`read_columns` read, or queries whose
        features have names.

    Returns
    -------
    table : RawTable
        The table.
    """
    if isinstance(source, RawTable):
        return source
    if isinstance(source, Queries):
        return QueriesTable(source)
    if isinstance(source, (str, bytes, os.PathLike)):
        raise DataError(not_a_path(source))
    return FrameTable(open_frame(source))


def read_columns(path: str | os.PathLike[str]) -> RawTable:
    """Read a CSV, JSON, Parquet or Arrow file with columns of any kind; what it is, its content says.

    CSV and JSON need no optional package. Separators, decimal commas and encodings are detected. Rows in JSON are
    objects, one on each line or in a list.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    table : RawTable
        Its columns, for :class:`rankwise.FeatureBuilder` and for models that have one.

    Raises
    ------
    FileFormatError
        If the file is not a table.
    """
    from rankwise.io.sources import open_text

    name = path_of(path)
    if is_arrow(name):
        return FrameTable(open_frame(read_arrow(name)[0]))
    with open_text(path) as source:
        if source.kind == "letor":
            raise FileFormatError(f"{source.name} is not a table: it has no CSV header")
        return CsvTable(CsvText.open(source))


def iter_columns(path: str | os.PathLike[str], on_read: Callable[[int], object] | None = None) -> "Iterator[RawTable]":
    """Read a file as :func:`read_columns` does, in blocks of consecutive rows; memory holds one of them.

    Parameters
    ----------
    path : path
        The file.
    on_read : callable, default=None
        Receives the number of bytes each time some are read.

    Yields
    ------
    table : RawTable
        Some rows.
    """
    from rankwise.io.sources import open_text

    name, row = path_of(path), 0
    if is_arrow(name):
        file = open_arrow(name)
        for batch in file.batches(file.names, max(1, _CELLS // max(1, len(file.names))), on_read):
            yield FrameTable(open_frame(batch), row)
            row += len(batch)
        return
    with open_text(path, on_read) as source, name_in_errors(source.name):
        text = CsvText.open(source)
        records = text.records()
        while some := list(islice(records, max(1, _CELLS // len(text.names)))):
            yield CsvTable(text, some, row)
            row += len(some)


# ------------------------------------------------------------------------------------------------------ data frames


class FrameTable(RawTable):
    """The table of a data frame.

    Parameters
    ----------
    frame : narwhals.DataFrame
        The data frame.
    first_row : int, default=0
        The number of its first row in the whole table, for messages.
    """

    def __init__(self, frame: Any, first_row: int = 0) -> None:
        self._frame, self.first_row = frame, first_row
        self._called = {str(name): name for name in frame.columns}
        if len(self._called) < len(frame.columns):
            raise DataError("two columns of the data frame have the same name: give them different names")
        self.names = tuple(self._called)
        self.n_rows = len(frame)

    def column(self, name: str) -> Column:
        """One column by name."""
        return replace(self._column(name), first_row=self.first_row)

    def _column(self, name: str) -> Column:
        import narwhals as nw

        series = self._frame.get_column(self._called[name])
        dtype = series.dtype
        if dtype == nw.Boolean:
            return Column(name, "boolean", _floats(series))
        if dtype.is_numeric():
            return Column(name, "number", _floats(series))
        if dtype == nw.Date or isinstance(dtype, nw.Datetime):
            return Column(name, "date", _days(series))
        if dtype in (nw.String, nw.Categorical, nw.Enum):
            return Column(name, "text", _texts(series.cast(nw.String).to_list()))
        if dtype in (nw.Object, nw.Unknown):
            return _of_objects(name, series.to_list(), str(dtype))
        return Column(name, "other", np.empty(0), type_name=str(dtype))

    def identities(self, name: str) -> NDArray[Any]:
        """One id per row from a column that holds ids; an empty one raises an error."""
        series = self._frame.get_column(self._called[name])
        null = series.is_null().to_numpy()
        if null.any():
            raise DataError(f"column {name!r} has no value at row {self.first_row + int(np.argmax(null)):,}")
        ids: NDArray[Any] = as_ids(series.to_numpy() if series.dtype.is_numeric() else series.to_list(), name)
        return ids


def _floats(series: Any) -> NDArray[np.float64]:
    """Numbers and truth values with NaN for nulls."""
    import narwhals as nw

    if series.dtype == nw.Boolean and series.is_null().any():
        return np.array([np.nan if _is_gap(value) else float(value) for value in series.to_list()])
    return np.array(series.cast(nw.Float64).to_numpy(), dtype=np.float64)


def _days(series: Any) -> NDArray[np.float64]:
    """Days since 1970-01-01 in UTC, to the microsecond; NaN for nulls."""
    import narwhals as nw

    if series.dtype == nw.Date:
        series = series.cast(nw.Datetime("us"))
    found = series.dt.timestamp("us").to_list()
    return np.array([np.nan if _is_gap(value) else value / _DAY for value in found], dtype=np.float64)


def _is_gap(value: Any) -> bool:
    """Whether a Python value stands for none; pandas has three of its own."""
    return (
        value is None
        or (isinstance(value, float) and math.isnan(value))
        or type(value).__name__ in ("NAType", "NaTType")
    )


def _texts(values: Sequence[Any]) -> NDArray[np.object_]:
    """Texts without spaces around them; None for nulls and for texts that stand for nothing."""
    found = np.empty(len(values), dtype=object)
    for row, value in enumerate(values):
        text = None if _is_gap(value) else str(value).strip()
        found[row] = None if text is None or text in _EMPTY else text
    return found


def _of_objects(name: str, values: list[Any], dtype: str) -> Column:
    """A column of Python objects: numbers, truth values or dates if all are, otherwise texts."""
    gaps = list(map(_is_gap, values))
    there = [value for value, gap in zip(values, gaps, strict=True) if not gap]

    def floats(convert: Any) -> NDArray[np.float64]:
        pairs = zip(values, gaps, strict=True)
        return np.array([np.nan if gap else convert(value) for value, gap in pairs], dtype=np.float64)

    if there and all(isinstance(value, (bool, np.bool_)) for value in there):
        return Column(name, "boolean", floats(float))
    if there and all(isinstance(value, (int, float, Decimal, np.number)) for value in there):
        return Column(name, "number", floats(float))
    if there and all(isinstance(value, date) for value in there):
        return Column(name, "date", floats(days_of))
    if all(isinstance(value, (str, int, float, bool, np.generic, Decimal)) for value in there):
        return Column(name, "text", _texts([None if gap else value for value, gap in zip(values, gaps, strict=True)]))
    return Column(name, "other", np.empty(0), type_name=f"{dtype} ({type(there[0]).__name__})")


def days_of(value: date) -> float:
    """Days since 1970-01-01, in UTC where the time zone is known."""
    moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
    passed = moment - datetime(1970, 1, 1, tzinfo=None if moment.tzinfo is None else UTC)
    return (passed.days * _DAY + passed.seconds * 1_000_000 + passed.microseconds) / _DAY


# ------------------------------------------------------------------------------------------------- CSV and Queries


class CsvTable(RawTable):
    """The table of a CSV text; all of its columns are texts.

    Parameters
    ----------
    text : CsvText
        The opened text.
    records : iterable of (int, list of str), default=None
        The lines and cells of some rows; None reads all rows.
    first_row : int, default=0
        The number of the first row, for messages.
    """

    def __init__(
        self, text: CsvText, records: Iterable[tuple[int, list[str]]] | None = None, first_row: int = 0
    ) -> None:
        self.names = text.names
        self._decimal = text.format.decimal
        self._name, self.first_row = text.source.name, first_row
        cells = list(zip(*(record for _, record in (text.records() if records is None else records)), strict=True))
        self._cells = dict(zip(self.names, cells, strict=True))
        self.n_rows = len(cells[0])

    def column(self, name: str) -> Column:
        """One column by name."""
        return Column(name, "text", _texts(self._cells[name]), self._decimal, first_row=self.first_row)

    def identities(self, name: str) -> NDArray[Any]:
        """One id per row from a column that holds ids: integers where each is written as one."""
        ids: NDArray[Any] = parse_ids(self.texts(name))
        return ids

    def written_identities(self, name: str) -> StringColumn:
        """One id per row, as written."""
        return self.texts(name)

    def texts(self, name: str) -> StringColumn:
        """A column of document ids, as written."""
        cells = self._cells[name]
        if "" in cells:
            row = self.first_row + cells.index("")
            raise DataError(f"{self._name}: column {name!r} is empty at row {row:,}")
        return StringColumn.of(cells)


class QueriesTable(RawTable):
    """The named features of queries as a table of numbers; the queries know their ids and labels themselves.

    Parameters
    ----------
    queries : Queries
        The queries.
    """

    def __init__(self, queries: Queries) -> None:
        if queries.feature_names is None:
            raise DataError("a FeatureBuilder needs names of columns: pass feature_names= when making the queries")
        self.queries = queries
        self.names = queries.feature_names
        self.n_rows = queries.n_documents

    def column(self, name: str) -> Column:
        """One column by name."""
        values = as_features(self.queries.X)[:, self.names.index(name)].astype(np.float64)
        return Column(name, "number", values)

    def identities(self, name: str) -> NDArray[Any]:
        """Not used: the ids of queries are not a column."""
        raise DataError(f"there is no column {name!r} among the features of these queries")


class SelectedRows(RawTable):
    """Some rows of a table.

    Parameters
    ----------
    table : RawTable
        The table.
    rows : ndarray of int64
        The numbers of the rows.
    """

    def __init__(self, table: RawTable, rows: NDArray[np.int64]) -> None:
        self._table, self._rows = table, rows
        self.names = table.names
        self.n_rows = len(rows)

    def column(self, name: str) -> Column:
        """One column by name."""
        column = self._table.column(name)
        return column if column.stored == "other" else replace(column, values=column.values[self._rows])

    def identities(self, name: str) -> NDArray[Any]:
        """One id per row from a column that holds ids; an empty one raises an error."""
        found: NDArray[Any] = self._table.identities(name)[self._rows]
        return found

    def texts(self, name: str) -> StringColumn:
        """A column of document ids, as the whole table has them."""
        return self._table.texts(name)[self._rows]
