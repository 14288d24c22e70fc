"""Judged queries from and to tables: polars, pandas and Arrow in memory, Parquet, Arrow and CSV on disk.

A table has one row per document: the columns ``qid``, ``docid`` and ``label``, and then the features by name (``f_1``,
``f_2``, ... where they have none). Other names are given by keyword. Data frames are read through narwhals;
:func:`read_table` and :func:`iter_table` read files, as a whole and block by block.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._extras import require
from rankwise._files import path_of, writing
from rankwise._parameters import PositiveInt, validated
from rankwise._store import FORMAT, KEY
from rankwise._version import __version__
from rankwise.errors import DataError, RankwiseError
from rankwise.io.sources import ByteStream
from rankwise.io.tables.csv import open_csv, read_text_table
from rankwise.io.tables.rows import (
    WEIGHTED,
    Columns,
    Roles,
    TableRows,
    Unjudged,
    as_queries,
    find_noted_roles,
    is_arrow,
    labels_by_grades,
    name_in_errors,
    open_arrow,
    read_arrow,
    side_by_side,
    suffix_of,
    text_as_feature,
    weights_in,
    whole_lists,
    without_unjudged,
)
from rankwise.queries.checks import Floats, Missing, as_scores, refuse_unjudged
from rankwise.queries.grouping import StringColumn, as_ids
from rankwise.queries.queries import Queries
from rankwise.queries.stored import plain_ids

if TYPE_CHECKING:
    import narwhals as nw

Backend = Literal["pandas", "polars", "pyarrow"]
File = str | os.PathLike[str]


def from_frame(
    frame: Any,
    *,
    qid: str = "qid",
    label: str | None = "label",
    docid: str | None = None,
    weight: str | None = None,
    features: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    grades: Mapping[str, float] | None = None,
    missing: Missing = "error",
    unjudged: Unjudged = "error",
    document_weight: str | None = None,
) -> Queries:
    """Make judged queries from a table with one row per document, in any order.

    Parameters
    ----------
    frame : data frame
        A polars (eager or lazy), pandas or Arrow table, or anything else that narwhals takes.
    qid : str, default="qid"
        The column that says which query a row belongs to: numbers, texts, any hashables.
    label : str, default="label"
        The column of labels, numbers of 0 or more; None for data to be ranked.
    docid : str, default=None
        The column of document ids; None takes a column called ``docid`` if there is one.
    weight : str, default=None
        The column of query weights, the same in every row of a query.
    features : sequence of str, default=None
        The columns of features, in this order; None takes every other column, and all of them must then hold numbers.
    ignore : sequence of str, default=()
        Columns that are not read.
    grades : mapping of str to float, default=None
        The labels of the words in a label column of words, such as ``{"bad": 0, "good": 1}``.
    missing : {"error", "zero", "min", "keep"}, default="error"
        What to do with nulls, NaN and infinity among the features. "min" takes the smallest value of the query, "keep"
        leaves NaN to rankers that give it a meaning.
    unjudged : {"error", "drop", "zero"}, default="error"
        What to do with rows whose label is null or negative.
    document_weight : str, default=None
        The column of document weights.

    Returns
    -------
    queries : Queries
        ``X`` is float32 if every feature column is, otherwise float64.

    Raises
    ------
    DataError
        If a column is missing or does not hold what its role requires.

    Examples
    --------
    >>> import pandas as pd
    >>> judged = pd.DataFrame({"q": ["a", "b", "a"], "bm25": [1.5, 0.2, 0.7], "rel": [2, 0, 1]})
    >>> from_frame(judged, qid="q", label="rel")
    Queries(2 queries, 3 documents, 1 feature, labels 0 to 2)
    """
    table = open_frame(frame)
    columns = Roles(qid, label, docid, weight, features, ignore, document_weight=document_weight).among(table.columns)
    rows = without_unjudged(rows_of(table, columns, grades, unjudged), unjudged)
    return as_queries(rows, columns.features, missing, weight)


@validated
def to_frame(queries: Queries, backend: Backend = "pandas", scores: ArrayLike | None = None) -> Any:
    """Make a table with one row per document, in input order.

    The columns are qid, then docid, label, weight, document_weight and score where there are any, then the features.
    ``from_frame(to_frame(queries), ...)`` gives the same queries back.

    Parameters
    ----------
    queries : Queries
        The queries.
    backend : {"pandas", "polars", "pyarrow"}, default="pandas"
        The library of the table, which must be installed.
    scores : array-like, shape (n_documents,), default=None
        One score per document.

    Returns
    -------
    table : data frame
        A table of the backend.
    """
    import narwhals as nw

    require(backend)
    if not isinstance(queries, Queries):
        raise DataError(f"to_frame takes Queries, got {type(queries).__name__}")
    refuse_unjudged(queries, "a table")
    owner = queries.query_of_row
    columns: dict[str, Any] = {"qid": owner if queries.qid is None else plain_ids(queries.qid)[owner]}
    optional = {
        "docid": None if queries.docid is None else list(queries.docid),
        "label": queries.y,
        "weight": None if queries.weight is None else queries.weight[owner],
        "document_weight": queries.document_weight,
        "score": None if scores is None else as_scores(scores, queries.n_documents),
    }
    columns |= {name: values for name, values in optional.items() if values is not None}
    for place, name in enumerate(_names_of(queries)):
        if name in columns:
            raise DataError(f"feature {place} is called {name!r}, the name of another column: rename it")
        columns[name] = queries.X[:, place]
    try:
        return nw.from_dict(columns, backend=backend).to_native()
    except UnicodeError as error:  # tables hold UTF-8 alone
        raise DataError(_not_utf8(queries)) from error


def _not_utf8(queries: Queries) -> str:
    """The message that names the text which no table can hold."""
    texts = {"query id": queries.qid, "document id": queries.docid, "feature name": queries.feature_names}
    for what, found in texts.items():
        for text in found if found is not None else ():
            try:
                str(text).encode()
            except UnicodeEncodeError:
                return f"the {what} {str(text)!r:.60} cannot go into a table: it holds bytes that are not UTF-8"
    return "a text of the queries cannot go into a table: it holds bytes that are not UTF-8"


def read_table(path: File | ByteStream, **columns: Any) -> Queries:
    """Read judged queries from a Parquet, Arrow, CSV or JSON file; what it is, its content says.

    CSV and JSON need no optional package, and may be gzipped. Separators (``,``, ``;``, tab, ``|``), decimal commas,
    byte order marks and encodings are detected. Rows in JSON are objects, one on each line (JSON lines) or in a list;
    an object may also be a query with a list of its documents. Query ids of CSV and JSON are integers if each is
    written as one (``007`` stays ``007``), and document ids are texts. A text of LETOR lines is read as LETOR, whatever
    its name.

    Parameters
    ----------
    path : path or ByteStream
        The file.
    **columns : keyword arguments
        The column names and options of :func:`from_frame`.

    Returns
    -------
    queries : Queries
        The queries of the file.
    """
    if isinstance(path, ByteStream) or not is_arrow(name := path_of(path)):
        return read_text_table(path, **columns)
    table, facts = read_arrow(name)
    label = columns.pop("label", "label")
    columns = {"label": label, **find_noted_roles(Roles(label=label), facts, table.column_names), **columns}
    with name_in_errors(name):
        queries = from_frame(table, **columns)
    return queries._replace(feature_names=None) if facts.get("named") is False else queries


@validated
def iter_table(
    path: File | ByteStream,
    roles: Roles,
    *,
    rows: PositiveInt | None = 100_000,
    missing: Missing = "error",
    on_read: Callable[[int], object] | None = None,
) -> Iterator[Queries]:
    """Read a Parquet, Arrow or CSV file of any length, in blocks of whole queries.

    The rows of a query must stand together. Memory holds one block and the ids of the queries so far; of JSON, the
    whole text. Query weights are not read.

    Parameters
    ----------
    path : path or ByteStream
        The file, or an opened CSV text.
    roles : Roles
        The role of each column.
    rows : int, default=100_000
        About how many documents a block has; None reads everything in one block, with rows in any order.
    missing : {"error", "zero", "min", "keep"}, default="error"
        As for :func:`from_frame`.
    on_read : callable, default=None
        Receives the number of bytes each time some are read.

    Yields
    ------
    block : Queries
        Whole queries.
    """
    if isinstance(path, ByteStream) or not is_arrow(name := path_of(path)):
        with open_csv(path, on_read) as text, name_in_errors(text.source.name):
            wanted = text.select(roles, missing=missing)
            yield from whole_lists(text.pieces(wanted), wanted.columns.features, missing, rows, text.source.name)
        return
    table = open_arrow(name)
    with name_in_errors(name):
        columns = replace(roles, ignore=(*roles.ignore, *weights_in(table.facts))).among(table.names)
        pieces = (
            rows_of(open_frame(batch), columns, None, "error") for batch in table.batches(columns.every, rows, on_read)
        )
        for block in whole_lists(pieces, columns.features, missing, rows, name):
            yield block._replace(feature_names=None) if table.facts.get("named") is False else block


def write_table(queries: Queries, path: str | os.PathLike[str]) -> None:
    """Write a ``.parquet`` or ``.csv`` file with one row per document.

    The metadata of the Parquet file has the key ``rankwise``: JSON with the range of the labels, and whether there are
    query weights and feature names. CSV cannot hold that: to read weights back, give ``weight="weight"``.

    Parameters
    ----------
    queries : Queries
        The queries.
    path : path
        The file, whose name ends in ``.parquet`` or ``.csv``.
    """
    suffix = suffix_of(path)
    if suffix not in (".parquet", ".csv") or os.fspath(path).lower().endswith(".gz"):
        raise RankwiseError(f"the name of a table must end in .parquet or .csv, got {os.fspath(path)}")
    zero = next((name for name in _names_of(queries) if "\0" in name), None)
    if suffix == ".csv" and zero is not None:
        raise DataError(f"the feature name {zero!r:.60} cannot go into a CSV file: it holds a zero byte")
    table = to_frame(queries, "pyarrow")
    with writing(path) as part:
        if suffix == ".csv":
            require("pyarrow.csv").write_csv(table, part)
        else:
            facts = {
                "format": FORMAT,
                "version": __version__,
                "labels": None if queries.y is None else [queries.y.min(), queries.y.max()] if len(queries.y) else [],
                **{fact: getattr(queries, role) is not None for role, fact in WEIGHTED.items()},
                "named": queries.feature_names is not None,
            }
            require("pyarrow.parquet").write_table(table.replace_schema_metadata({KEY: json.dumps(facts)}), part)


def _names_of(queries: Queries) -> Sequence[str]:
    """The feature names, ``f_1``, ``f_2``, ... where there are none."""
    return queries.feature_names or [f"f_{place}" for place in range(1, queries.n_features + 1)]


# ---------------------------------------------------------------------------------------------- columns of a data frame


def open_frame(frame: Any) -> "nw.DataFrame[Any]":
    """The data frame as narwhals sees it."""
    import narwhals as nw

    try:
        table = nw.from_native(frame)
    except (TypeError, ValueError) as error:  # ValueError: a column name twice
        raise DataError(
            f"a table must be a polars, pandas or Arrow table: {(str(error).splitlines() or ['?'])[0]}"
        ) from error
    return table.collect() if isinstance(table, nw.LazyFrame) else table


def rows_of(
    table: "nw.DataFrame[Any]", columns: Columns, grades: Mapping[str, float] | None, unjudged: Unjudged
) -> TableRows:
    """The columns with a role, as arrays."""
    for name in columns.features:
        column = table.get_column(name)
        if not _is_number(column.dtype):
            values = column.drop_nulls().head(1).to_list()
            raise DataError(text_as_feature(name, f"{values[0]!r:.40}" if values else str(column.dtype)))
    return TableRows(
        _matrix(table, columns.features),
        None if columns.label is None else _labels(table, columns.label, grades, unjudged),
        as_ids(_identities(table, columns.qid), "qid"),
        None if columns.docid is None else StringColumn.of(_identities(table, columns.docid)),
        None if columns.weight is None else _numbers(table, columns.weight, "weight"),
        None if columns.document_weight is None else _numbers(table, columns.document_weight, "document_weight"),
    )


def _labels(
    table: "nw.DataFrame[Any]", name: str, grades: Mapping[str, float] | None, unjudged: Unjudged
) -> NDArray[np.float64]:
    """Labels as numbers; nulls become NaN where ``unjudged`` allows them."""
    if grades is None:
        return _numbers(table, name, "label", nulls=unjudged != "error")
    if unjudged == "error":
        _refuse_nulls(table, name)
    return labels_by_grades(table.get_column(name).to_list(), name, grades)


def _matrix(table: "nw.DataFrame[Any]", names: Sequence[str]) -> Floats:
    """The features as a matrix, nulls as NaN."""
    import narwhals as nw

    single = bool(names) and all(table.get_column(name).dtype == nw.Float32 for name in names)
    columns = [table.get_column(name).cast(nw.Float32 if single else nw.Float64).to_numpy() for name in names]
    return side_by_side(columns, len(table), np.float32 if single else np.float64)


def _numbers(table: "nw.DataFrame[Any]", name: str, role: str, nulls: bool = False) -> NDArray[np.float64]:
    """A column of numbers."""
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
    """Ids as an array of numbers, or as a list of other values."""
    _refuse_nulls(table, name)
    column = table.get_column(name)
    return column.to_numpy() if column.dtype.is_numeric() else column.to_list()


def _refuse_nulls(table: "nw.DataFrame[Any]", name: str) -> None:
    """Refuse a column with a missing value."""
    null = table.get_column(name).is_null().to_numpy()
    if null.any():
        raise DataError(f"column {name!r} has no value at row {int(np.argmax(null)):,}")


def _is_number(dtype: Any) -> bool:
    """Whether a column type holds numbers or truth values."""
    import narwhals as nw

    return bool(dtype.is_numeric() or dtype == nw.Boolean)
