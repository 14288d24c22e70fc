"""Columns of a data frame in memory into arrays: polars, pandas and Arrow alike, through narwhals."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import DataError
from rankwise.data.checks import Floats
from rankwise.data.grouping import as_ids
from rankwise.data.table_columns import Columns, text_as_feature
from rankwise.data.table_rows import Rows, Unjudged
from rankwise.data.texts import Texts

if TYPE_CHECKING:
    import narwhals as nw

_ROWS = 1024


def open_frame(frame: Any) -> "nw.DataFrame[Any]":
    import narwhals as nw

    try:
        table = nw.from_native(frame)
    except (TypeError, ValueError) as error:  # ValueError: a column name twice
        raise DataError(f"a table is polars, pandas or Arrow: {(str(error).splitlines() or ['?'])[0]}") from error
    return table.collect() if isinstance(table, nw.LazyFrame) else table


def rows_of(
    table: "nw.DataFrame[Any]", columns: Columns, grades: Mapping[str, float] | None, unjudged: Unjudged
) -> Rows:
    """The columns that play a role, as arrays."""
    for name in columns.features:
        column = table.get_column(name)
        if not _is_number(column.dtype):
            values = column.drop_nulls().head(1).to_list()
            raise DataError(text_as_feature(name, f"{values[0]!r:.40}" if values else str(column.dtype)))
    return Rows(
        _matrix(table, columns.features),
        None if columns.label is None else _labels(table, columns.label, grades, unjudged),
        as_ids(_identities(table, columns.qid), "qid"),
        None if columns.docid is None else Texts.of(_identities(table, columns.docid)),
        None if columns.weight is None else _numbers(table, columns.weight, "weight"),
    )


def _labels(
    table: "nw.DataFrame[Any]", name: str, grades: Mapping[str, float] | None, unjudged: Unjudged
) -> NDArray[np.float64]:
    """Labels as numbers; where ``unjudged`` says what to do with them, nulls as NaN."""
    if grades is None:
        return _numbers(table, name, "label", nulls=unjudged != "error")
    if unjudged == "error":
        _refuse_nulls(table, name)
    values = table.get_column(name).to_list()
    unknown = [value for value in dict.fromkeys(values) if value is not None and str(value) not in grades]
    if unknown:
        raise DataError(f"column {name!r} holds {unknown[0]!r:.40}, and grades does not say what that means")
    return np.array([np.nan if value is None else grades[str(value)] for value in values], dtype=np.float64)


def _matrix(table: "nw.DataFrame[Any]", names: Sequence[str]) -> Floats:
    """Columns side by side, nulls as NaN; filled a block of rows at a time, which is kinder to the cache."""
    import narwhals as nw

    single = bool(names) and all(table.get_column(name).dtype == nw.Float32 for name in names)
    columns = [table.get_column(name).cast(nw.Float32 if single else nw.Float64).to_numpy() for name in names]
    shape = (len(table), len(names))
    X: Floats = np.empty(shape, dtype=np.float32) if single else np.empty(shape, dtype=np.float64)
    for first in range(0, len(X), _ROWS):
        for place, column in enumerate(columns):
            X[first : first + _ROWS, place] = column[first : first + _ROWS]
    return X


def _numbers(table: "nw.DataFrame[Any]", name: str, role: str, nulls: bool = False) -> NDArray[np.float64]:
    import narwhals as nw

    dtype = table.get_column(name).dtype
    if not _is_number(dtype):
        raise DataError(
            f"column {name!r} holds {dtype}, and a {role} is a number: turn it into numbers first"
            + (", or say what its words mean by grades={'bad': 0, 'good': 1}" if role == "label" else "")
        )
    if not nulls:
        _refuse_nulls(table, name)
    return np.asarray(table.get_column(name).cast(nw.Float64).to_numpy(), dtype=np.float64)


def _identities(table: "nw.DataFrame[Any]", name: str) -> Any:
    """Ids as an array of numbers, or as a list of whatever they are."""
    _refuse_nulls(table, name)
    column = table.get_column(name)
    return column.to_numpy() if column.dtype.is_numeric() else column.to_list()


def _refuse_nulls(table: "nw.DataFrame[Any]", name: str) -> None:
    null = table.get_column(name).is_null().to_numpy()
    if null.any():
        raise DataError(f"column {name!r} has no value at row {int(np.argmax(null)):,}")


def _is_number(dtype: Any) -> bool:
    import narwhals as nw

    return bool(dtype.is_numeric() or dtype == nw.Boolean)
