"""A block of CSV by pyarrow, where that is installed and where there is nothing to complain about."""

import importlib.util
from typing import Any

import numpy as np

from rankwise._extras import require
from rankwise.data.csv_cells import EMPTY, Wanted
from rankwise.data.table_rows import Rows
from rankwise.data.texts import Texts


def read_fast(block: bytes, delimiter: str, wanted: Wanted) -> Rows | None:
    """The rows, or None where somebody has to look closer: texts among numbers, cells that hold nothing ..."""
    columns = wanted.columns
    if importlib.util.find_spec("pyarrow") is None or wanted.grades is not None:
        return None
    arrow, text = require("pyarrow"), require("pyarrow.csv")
    ids = [columns.qid, *([columns.docid] if columns.docid else [])]
    numbers = [*columns.features, *(name for name in (columns.label, columns.weight) if name is not None)]
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
    X = _side_by_side([found[name].to_numpy() for name in columns.features], len(table))
    y = None if columns.label is None else found[columns.label].to_numpy()
    weight = None if columns.weight is None else found[columns.weight].to_numpy()
    qid = _texts(found[columns.qid])
    odd = [
        wanted.missing == "error" and not np.isfinite(X).all(),
        y is not None and wanted.unjudged == "error" and not (y >= 0).all(),
        weight is not None and np.isnan(weight).any(),
        (np.diff(qid.offset) == 0).any(),
    ]
    if any(odd):
        return None
    return Rows(X, y, qid, None if columns.docid is None else _texts(found[columns.docid]), weight)


def _side_by_side(columns: list[Any], rows: int) -> Any:
    X = np.empty((rows, len(columns)))
    for place, column in enumerate(columns):
        X[:, place] = column
    return X


def _texts(column: Any) -> Texts:
    """A column of bytes without copying them one by one."""
    chunk = column.combine_chunks()
    _, offsets, data = chunk.buffers()
    places = np.frombuffer(offsets, dtype=np.int32)[chunk.offset : chunk.offset + len(chunk) + 1].astype(np.int64)
    return Texts(np.frombuffer(data if data is not None else b"", dtype=np.uint8), places)
