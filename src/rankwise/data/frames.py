"""Judged lists from and to tables: polars, pandas and Arrow in memory, parquet and CSV on disk.

A table has one row a document: the columns ``qid``, ``docid``, ``label``, and then the features by name (``f_1``,
``f_2``, ... where they have none). Other names are given by keyword.
"""

import json
import os
from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._beside import writing
from rankwise._errors import DataError, FileFormatError, RankwiseError
from rankwise._extras import require
from rankwise._store import FORMAT, KEY
from rankwise._version import __version__
from rankwise.data.checks import Floats, Missing, as_scores
from rankwise.data.queries import Queries
from rankwise.data.stored_writer import plain_ids

if TYPE_CHECKING:
    import narwhals as nw

Backend = Literal["pandas", "polars", "pyarrow"]

_ROWS = 1024
_LARGEST_BLOCK = 1 << 30  # bytes; Arrow's own limit is twice that


def from_frame(
    frame: Any,
    *,
    qid: str = "qid",
    label: str | None = "label",
    docid: str | None = None,
    weight: str | None = None,
    features: Sequence[str] | None = None,
    missing: Missing = "error",
) -> Queries:
    """Judged lists from a table with one row a document, in any order.

    Parameters
    ----------
    frame : polars (eager or lazy), pandas or Arrow table, or anything else that narwhals takes
    qid : column that says which query a row belongs to: numbers, texts, anything hashable
    label : column of labels, numbers 0 or more; None for data to be ranked
    docid : column of document ids; a column called ``docid`` is taken by itself
    weight : column of query weights, the same in every row of a query
    features : columns of features, in this order; every other column if not given, and then all of them must hold
        numbers
    missing : what to do with nulls, NaN and infinities among the features: "error", "zero", or "min" (smallest of
        the query)

    Returns
    -------
    queries : ``X`` is float32 if every feature column is, else float64

    Examples
    --------
    >>> import pandas as pd
    >>> judged = pd.DataFrame({"q": ["a", "b", "a"], "bm25": [1.5, 0.2, 0.7], "rel": [2, 0, 1]})
    >>> from_frame(judged, qid="q", label="rel")
    Queries(2 queries, 3 documents, 1 feature, labels 0 to 2)
    """
    table = _open(frame)
    if docid is None and "docid" in table.columns:
        docid = "docid"
    roles = {"qid": qid, "label": label, "docid": docid, "weight": weight}
    given = {role: name for role, name in roles.items() if name is not None}
    for role, name in given.items():
        _require_column(table, name, role)
    names = _feature_columns(table, features, given)
    queries = Queries.from_arrays(
        _matrix(table, names),
        None if label is None else _numbers(table, label, "label"),
        qid=_identities(table, qid),
        docid=None if docid is None else _identities(table, docid),
        feature_names=names,
        missing=missing,
    )
    if weight is None:
        return queries
    return queries.with_weight(_query_weights(queries, _numbers(table, weight, "weight"), weight))


def to_frame(queries: Queries, backend: Backend = "pandas", scores: ArrayLike | None = None) -> Any:
    """A table with one row a document, in input order: qid, then docid, label, weight and score if any, then features.

    ``from_frame(to_frame(queries), ...)`` gives the same lists back.
    """
    import narwhals as nw

    if backend not in ("pandas", "polars", "pyarrow"):
        raise RankwiseError(f"backend is one of 'pandas', 'polars', 'pyarrow': found {backend!r}")
    require(backend)
    owner = queries.query_of_row()
    columns: dict[str, Any] = {"qid": owner if queries.qid is None else plain_ids(queries.qid)[owner]}
    if queries.docid is not None:
        columns["docid"] = list(queries.docid)
    if queries.y is not None:
        columns["label"] = queries.y
    if queries.weight is not None:
        columns["weight"] = queries.weight[owner]
    if scores is not None:
        columns["score"] = as_scores(scores, queries.n_documents)
    for place, name in enumerate(_names_of(queries)):
        if name in columns:
            raise DataError(f"feature {place} is called {name!r}, which is a column of its own: give it another name")
        columns[name] = queries.X[:, place]
    return nw.from_dict(columns, backend=backend).to_native()


def read_table(path: str | os.PathLike[str], **columns: Any) -> Queries:
    """Judged lists from a ``.parquet`` or ``.csv`` file; the keywords are those of :func:`from_frame`.

    In CSV, query ids are numbers if each is written as a number would be (``007`` stays ``007``), and document ids
    are texts.
    """
    arrow = require("pyarrow")
    name = os.fspath(path)
    read = {".parquet": _read_parquet, ".csv": _read_csv}[_suffix(path)]
    try:
        table = read(name, columns)
    except (OSError, arrow.ArrowException) as error:
        raise FileFormatError(f"{name} cannot be read: {(str(error).splitlines() or ['?'])[0]}") from error
    facts = _facts_of(table)
    if facts.get("labels", "") is None and columns.get("label", "label") not in table.column_names:
        columns["label"] = None
    if "weight" not in columns and facts.get("weighted") is True:
        columns["weight"] = "weight"
    try:
        queries = from_frame(table, **columns)
    except DataError as error:
        raise DataError(f"{name}: {error}") from error
    return queries._replace(feature_names=None) if facts.get("named") is False else queries


def write_table(queries: Queries, path: str | os.PathLike[str]) -> None:
    """Write a ``.parquet`` or ``.csv`` file with one row a document.

    The parquet file's metadata has the key ``rankwise``: JSON with the range of the labels, and whether there are query
    weights and feature names. CSV cannot say that: to read weights back, give ``weight="weight"``.
    """
    suffix = _suffix(path)
    table = to_frame(queries, "pyarrow")
    with writing(path) as part:
        if suffix == ".csv":
            require("pyarrow.csv").write_csv(table, part)
        else:
            facts = {
                "format": FORMAT,
                "version": __version__,
                "labels": None if queries.y is None else [queries.y.min(), queries.y.max()] if len(queries.y) else [],
                "weighted": queries.weight is not None,
                "named": queries.feature_names is not None,
            }
            require("pyarrow.parquet").write_table(table.replace_schema_metadata({KEY: json.dumps(facts)}), part)


# ------------------------------------------------------------------------------------------- columns into arrays


def _open(frame: Any) -> "nw.DataFrame[Any]":
    import narwhals as nw

    try:
        table = nw.from_native(frame)
    except (TypeError, ValueError) as error:  # ValueError: a column name twice
        raise DataError(f"a table is polars, pandas or Arrow: {(str(error).splitlines() or ['?'])[0]}") from error
    return table.collect() if isinstance(table, nw.LazyFrame) else table


def _require_column(table: "nw.DataFrame[Any]", name: str, role: str) -> None:
    if name in table.columns:
        return
    near = get_close_matches(str(name), map(str, table.columns), n=3, cutoff=0.5)
    known = f"the nearest are {', '.join(map(repr, near))}" if near else f"there are {len(table.columns)} others"
    hint = ", or label=None for data without labels" if role == "label" else ""
    raise DataError(f"there is no column {name!r}, {known}: give {role}='its name'{hint}")


def _feature_columns(table: "nw.DataFrame[Any]", features: Sequence[str] | None, roles: dict[str, str]) -> list[str]:
    """The columns to take as features: those asked for, or all that have no other role."""
    names = [name for name in table.columns if name not in roles.values()] if features is None else list(features)
    for name in names:
        if features is not None:
            _require_column(table, name, "features")
        if name == roles.get("label"):
            raise DataError(f"column {name!r} is the label and cannot be a feature too")
        if not _is_number(table.get_column(name).dtype):
            advice = "leave it out of features" if features is not None else "name the columns to use by features=[...]"
            raise DataError(
                f"column {name!r} holds {table.get_column(name).dtype}, and a feature is a number: {advice}"
            )
    return names


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


def _numbers(table: "nw.DataFrame[Any]", name: str, role: str) -> NDArray[np.float64]:
    import narwhals as nw

    dtype = table.get_column(name).dtype
    if not _is_number(dtype):
        raise DataError(
            f"column {name!r} holds {dtype}, and a {role} is a number: turn it into numbers first, for instance "
            "{'bad': 0, 'good': 1}"
        )
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


def _query_weights(queries: Queries, values: NDArray[np.float64], name: str) -> NDArray[np.float64]:
    """One weight a query out of one a row."""
    ordered = values[queries.rows]
    first = ordered[queries.start[:-1]]
    other = np.flatnonzero(ordered != np.repeat(first, queries.sizes))
    if len(other):
        query = int(np.searchsorted(queries.start, other[0], side="right")) - 1
        raise DataError(
            f"column {name!r} is {first[query]:g} and {ordered[other[0]]:g} within query {queries.names()[query]!r}: "
            "a weight belongs to a query as a whole"
        )
    return first


def _is_number(dtype: Any) -> bool:
    import narwhals as nw

    return bool(dtype.is_numeric() or dtype == nw.Boolean)


def _names_of(queries: Queries) -> Sequence[str]:
    return queries.feature_names or [f"f_{place}" for place in range(1, queries.n_features + 1)]


# ------------------------------------------------------------------------------------------- files


def _suffix(path: str | os.PathLike[str]) -> str:
    suffix = os.path.splitext(os.fspath(path))[1].lower()
    if suffix not in (".parquet", ".csv"):
        raise RankwiseError(f"{os.fspath(path)} is no table that is known here: its name must end in .parquet or .csv")
    return suffix


def _read_parquet(name: str, columns: dict[str, Any]) -> Any:
    return require("pyarrow.parquet").read_table(name)


def _read_csv(name: str, columns: dict[str, Any]) -> Any:
    arrow, csv = require("pyarrow"), require("pyarrow.csv")
    ids = [columns.get("qid", "qid"), columns.get("docid") or "docid"]
    table = csv.read_csv(
        name,
        # a type is guessed from the first block alone, so that one holds as much as it may
        read_options=csv.ReadOptions(block_size=min(max(os.path.getsize(name), 1), _LARGEST_BLOCK)),
        convert_options=csv.ConvertOptions(column_types={column: arrow.string() for column in ids}),
    )
    if ids[0] in table.column_names:
        place = table.column_names.index(ids[0])
        table = table.set_column(place, ids[0], arrow.array(_as_written(table.column(place).to_pylist())))
    return table


def _as_written(texts: list[str]) -> list[Any]:
    """Ids as whole numbers if all of them are written as such, as texts if not; an empty one is missing."""
    values: dict[str, Any] = {text: text or None for text in texts}
    try:
        numbers = {text: int(text) for text in values}
    except ValueError:
        numbers = {}
    if numbers and all(str(number) == text and abs(number) < 2**63 for text, number in numbers.items()):
        values = numbers
    return [values[text] for text in texts]


def _facts_of(table: Any) -> dict[str, Any]:
    """What :func:`write_table` noted in the file; nothing for a table of another origin."""
    try:
        facts = json.loads((table.schema.metadata or {}).get(KEY.encode(), b"{}"))
    except ValueError:
        return {}
    return facts if isinstance(facts, dict) else {}
