"""The roles of the columns of a table, and its rows as queries.

:class:`Roles` finds the columns by name. :class:`TableRows` holds rows as arrays, whatever file or data frame they come
from. :func:`as_queries` makes queries of all rows at once, :func:`whole_lists` makes blocks of whole queries of a
stream of rows.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise._extras import require
from rankwise._files import ARROW, PARQUET, path_of, signature
from rankwise._kernels.memory import available_memory
from rankwise._store import KEY
from rankwise.errors import DataError, FileFormatError, nearest
from rankwise.io.sources import beginning_of
from rankwise.queries.checks import Floats, Missing, refuse_unless_one_of
from rankwise.queries.grouping import StringColumn, parse_ids
from rankwise.queries.queries import Queries

Unjudged = Literal["error", "drop", "zero"]
# the columns of weights that write_table writes, and the facts that say so
WEIGHTED = {"weight": "weighted", "document_weight": "document_weighted"}
_ROWS = 1024  # rows of a matrix that are filled together
_SHOWN = 12  # names that a message shows
# Other common names, which are suggested where no column has a similar name.
_ALSO = {
    "qid": ("query", "query_id", "queryid", "q_id", "search_id", "session"),
    "label": ("grade", "relevance", "rel", "judgment", "judgement", "rating", "target"),
}


class Columns(NamedTuple):
    """The names of the columns that are read.

    Attributes
    ----------
    qid : str
        The query ids.
    label : str or None
        The labels.
    docid : str or None
        The document ids.
    weight : str or None
        The query weights.
    features : list of str
        The features.
    document_weight : str or None
        The document weights.
    """

    qid: str
    label: str | None
    docid: str | None
    weight: str | None
    features: list[str]
    document_weight: str | None = None

    @property
    def every(self) -> list[str]:
        """All of them, each once; the features first."""
        named = (*self[:4], self.document_weight)
        return list(dict.fromkeys([*self.features, *(name for name in named if name is not None)]))


@dataclass(frozen=True)
class Roles:
    """The roles of columns as the caller names them, before the header is known; the keywords of ``from_frame``.

    Attributes
    ----------
    qid, label, docid, weight, features, ignore, document_weight : str, sequence of str or None
        As for :func:`rankwise.io.tables.frames.from_frame`.
    judged : bool
        False: the labels are not read, and their column, if there is one, is still not a feature.
    learned_by : str or None
        The model that needs these features, for messages.
    """

    qid: str = "qid"
    label: str | None = "label"
    docid: str | None = None
    weight: str | None = None
    features: Sequence[str] | None = None
    ignore: Sequence[str] = ()
    judged: bool = True
    learned_by: str | None = None
    document_weight: str | None = None

    def among(self, names: Sequence[str]) -> Columns:
        """Assign the roles to the columns of a table.

        Parameters
        ----------
        names : sequence of str
            The columns of the table.

        Returns
        -------
        columns : Columns
            The columns that are read.

        Raises
        ------
        DataError
            If a column is not there; the message suggests a similar name.
        """
        docid = "docid" if self.docid is None and "docid" in names and "docid" not in self.ignore else self.docid
        label = self.label if self.judged or self.label in names else None
        given = {"qid": self.qid, "label": label, "docid": docid, "weight": self.weight}
        given["document_weight"] = self.document_weight
        roles = {role: name for role, name in given.items() if name is not None}
        for role, name in roles.items():
            _require(name, names, role)
        for name in self.ignore:
            _require(name, names, "ignore")
        taken = {*roles.values(), *self.ignore}
        features = [name for name in names if name not in taken] if self.features is None else list(self.features)
        there = set(names)  # there may be a hundred thousand
        lacking = [name for name in features if name not in there]
        if lacking and self.learned_by is not None:
            raise DataError(
                f"there is no column {list_names(list(map(repr, lacking)))}, which {self.learned_by} requires"
            )
        for name in self.features or ():
            if name not in there:
                _require(name, names, "features")
            if name == label:
                raise DataError(f"column {name!r} is the label and cannot be a feature too")
        return Columns(self.qid, label if self.judged else None, docid, self.weight, features, self.document_weight)


def find_noted_roles(roles: Roles, facts: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """The roles that ``write_table`` noted in a file and the caller did not name."""
    noted: dict[str, Any] = {}
    if facts.get("labels", "") is None and roles.label not in names:
        noted["label"] = None
    return noted | {role: role for role in weights_in(facts) if getattr(roles, role) is None}


def weights_in(facts: Mapping[str, Any]) -> list[str]:
    """The columns of weights that ``write_table`` noted in a file."""
    return [role for role, fact in WEIGHTED.items() if facts.get(fact) is True]


def _require(name: str, names: Sequence[str], role: str) -> None:
    """Refuse a column that is not there, with a suggestion."""
    if name in names:
        return
    called = {str(known).lower(): known for known in names}
    also = next((called[one] for one in _ALSO.get(role, ()) if one in called), None)
    meant = nearest(name, map(str, names), cutoff=0.5) or also
    question = "" if meant is None else f" (did you mean {meant!r}?)"
    hint = ", or label=None for data without labels" if role == "label" else ""
    wanted = f"{role}=['its name']" if role in ("features", "ignore") else f"{role}='its name'"
    raise DataError(f"there is no column {name!r}{question} among {list_names(names)}: give {wanted}{hint}")


def list_names(names: Sequence[str]) -> str:
    """Names for a message, shortened."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(map(str, names[:_SHOWN])) + more


def text_as_feature(name: str, found: str) -> str:
    """The message about a column of texts without another role."""
    return (
        f"feature columns must be numeric, got {found} in column {name!r}: leave the column out by "
        f"ignore=[{name!r}], make it the document ids by docid={name!r}, or make features of it with a "
        "FeatureBuilder"
    )


# ------------------------------------------------------------------------------------------------------- rows as arrays


class TableRows(NamedTuple):
    """Consecutive rows of a table as arrays.

    Attributes
    ----------
    X : ndarray, shape (n_rows, n_features)
        The features.
    y : ndarray of float64, shape (n_rows,), or None
        The labels.
    qid : ndarray or StringColumn
        The query ids; texts while it is not known whether all of them are integers.
    docid : StringColumn or None
        The document ids.
    weight : ndarray of float64, shape (n_rows,), or None
        The query weight of every row.
    document_weight : ndarray of float64, shape (n_rows,), or None
        The document weights.
    """

    X: Floats
    y: NDArray[np.float64] | None
    qid: NDArray[Any] | StringColumn
    docid: StringColumn | None
    weight: NDArray[np.float64] | None
    document_weight: NDArray[np.float64] | None = None

    def at(self, places: Any) -> "TableRows":
        """The rows at these places."""
        columns: list[Any] = [None if column is None else column[places] for column in self]
        return TableRows(*columns)

    def identities(self) -> NDArray[Any]:
        """One query id per row: integers where each is written as one."""
        if not isinstance(self.qid, StringColumn):
            return self.qid
        return parse_ids(self.qid) if len(self.qid) else np.empty(0, dtype=str)

    @classmethod
    def concat(cls, parts: Sequence["TableRows"]) -> "TableRows":
        """The rows of all parts, in order."""
        return parts[0] if len(parts) == 1 else cls(*(_concat(column) for column in zip(*parts, strict=True)))


def _concat(columns: tuple[Any, ...]) -> Any:
    """The parts of one column, in order."""
    if columns[0] is None:
        return None
    return StringColumn.concat(columns) if isinstance(columns[0], StringColumn) else np.concatenate(columns)


def side_by_side(columns: Sequence[NDArray[Any]], n_rows: int, dtype: type = np.float64) -> Floats:
    """Columns as a matrix; filled by blocks of rows, which stay in the cache."""
    X: Floats = np.empty((n_rows, len(columns)), dtype=dtype)
    for first in range(0, n_rows, _ROWS):
        for place, column in enumerate(columns):
            X[first : first + _ROWS, place] = column[first : first + _ROWS]
    return X


def labels_by_grades(values: Sequence[Any], name: str, grades: Mapping[str, float]) -> NDArray[np.float64]:
    """The labels of the words in a column; NaN for None."""
    unknown = [value for value in dict.fromkeys(values) if value is not None and str(value) not in grades]
    if unknown:
        raise DataError(f"column {name!r} holds {unknown[0]!r:.40}, which grades does not map to a label")
    return np.array([np.nan if value is None else grades[str(value)] for value in values], dtype=np.float64)


def without_unjudged(rows: TableRows, unjudged: Unjudged) -> TableRows:
    """Take label 0 for rows without a label or with a negative one, or leave them out; "error" keeps them for a later
    check.
    """
    refuse_unless_one_of(unjudged, "unjudged", ("error", "drop", "zero"))
    if rows.y is None or unjudged == "error":
        return rows
    bad = np.isnan(rows.y) | (rows.y < 0)
    if not bad.any():
        return rows
    return rows.at(~bad) if unjudged == "drop" else rows._replace(y=np.where(bad, 0.0, rows.y))


def as_queries(rows: TableRows, names: Sequence[str], missing: Missing, weight_column: str | None = None) -> Queries:
    """Make queries of rows in any order."""
    docid: Any = rows.docid
    queries = Queries.from_arrays(
        rows.X,
        rows.y,
        qid=rows.identities(),
        docid=docid,
        feature_names=names,
        missing=missing,
        document_weight=rows.document_weight,
    )
    if rows.weight is None:
        return queries
    return queries.with_weight(_query_weights(queries, rows.weight, str(weight_column)))


def whole_lists(
    parts: Iterable[TableRows], names: Sequence[str], missing: Missing, rows: int | None, name: str
) -> Iterator[Queries]:
    """Make blocks of whole queries of consecutive rows; memory holds one block and the ids.

    Parameters
    ----------
    parts : iterable of TableRows
        The rows.
    names : sequence of str
        The feature names.
    missing : {"error", "zero", "min", "keep"}
        What to do with features that are not finite.
    rows : int or None
        About how many rows a block has; None makes one block of rows in any order.
    name : str
        The name of the file, for messages.

    Yields
    ------
    block : Queries
        Whole queries.

    Raises
    ------
    DataError
        If a query returns after its rows have ended.
    """
    if rows is None:
        yield as_queries(TableRows.concat(list(parts)), names, missing)
        return
    seen: set[str] = set()
    waiting: list[TableRows] = []
    for part in parts:
        waiting.append(part)
        if sum(len(one.X) for one in waiting) < rows:
            continue
        held = TableRows.concat(waiting)
        ids = held.identities()
        changes = np.flatnonzero(ids[1:] != ids[:-1])
        end = int(changes[-1]) + 1 if len(changes) else 0
        if end:
            yield _block(held.at(slice(0, end)), names, missing, seen, name)
        waiting = [held.at(slice(end, None))]
    if waiting and sum(len(one.X) for one in waiting):
        yield _block(TableRows.concat(waiting), names, missing, seen, name)


def _block(rows: TableRows, names: Sequence[str], missing: Missing, seen: set[str], name: str) -> Queries:
    """One block, whose queries must be new."""
    ids = rows.identities()
    runs = ids[np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]]))]
    for qid in map(str, runs.tolist()):
        if qid in seen:
            raise DataError(
                f"{name}: query {qid} has rows in several places, and a stream needs them together: sort the rows "
                "by query, or read the file as a whole"
            )
        seen.add(qid)
    return as_queries(rows, names, missing)


def _query_weights(queries: Queries, values: NDArray[np.float64], name: str) -> NDArray[np.float64]:
    """One weight per query from one weight per row."""
    ordered = values[queries.rows]
    first = ordered[queries.start[:-1]]
    other = np.flatnonzero(ordered != np.repeat(first, queries.sizes))
    if len(other):
        query = int(np.searchsorted(queries.start, other[0], side="right")) - 1
        raise DataError(
            f"column {name!r} must hold one weight per query, got {first[query]:g} and {ordered[other[0]]:g} within "
            f"query {queries.names()[query]!r}"
        )
    return first


# -------------------------------------------------------------------------------------------- parquet and Arrow files


ARROW_ENDINGS = (".parquet", ".arrow", ".feather")
TEXTS = (".csv", ".tsv", ".tab", ".jsonl", ".ndjson")  # endings of tables that are text
_BATCH = 100_000


def suffix_of(path: str | os.PathLike[str]) -> str:
    """The ending that says what a file is; that of ``t.csv.gz`` is ``.csv``."""
    return os.path.splitext(path_of(path).lower().removesuffix(".gz"))[1]


@contextmanager
def name_in_errors(name: str) -> Iterator[None]:
    """Put the name of the file before messages about its data."""
    try:
        yield
    except DataError as error:
        raise DataError(str(error) if str(error).startswith(name) else f"{name}: {error}") from error


def is_arrow(name: str) -> bool:
    """Whether a file is Parquet or Arrow: by its first bytes, and by its ending where it cannot be opened."""
    if os.path.isfile(name):
        known = signature(beginning_of(name))
        return known is not None and known.called in (PARQUET, ARROW)
    return name.lower().endswith(ARROW_ENDINGS)


def read_arrow(name: str) -> tuple[Any, dict[str, Any]]:
    """The whole table, and the facts that rankwise noted in the file."""
    file = open_arrow(name)
    free = available_memory()
    # a column of equal values takes almost no room in a file
    needed = 8 * file.n_rows * max(1, len(file.names))
    if free is not None and needed > free:
        raise FileFormatError(
            f"{name} holds {file.n_rows:,} rows of {len(file.names):,} columns, about {needed / 2**30:,.1f} GiB, and "
            f"{free / 2**30:,.1f} GiB of memory are free: convert it into parts (write_parts)"
        )
    with _with_file_name(name):
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
    n_rows : int
        The number of rows; 0 where the file does not say.
    whole : callable
        Reads the whole table.
    """

    name: str
    names: list[str]
    facts: dict[str, Any]
    n_rows: int
    whole: Callable[[], Any]
    _pieces: Callable[[list[str], int], Iterator[tuple[Any, float]]]

    def batches(self, columns: list[str], rows: int | None, on_read: Callable[[int], object] | None) -> Iterator[Any]:
        """Tables of about ``rows`` rows with the columns that are read; ``on_read`` receives a share of the bytes for
        each.
        """
        with _with_file_name(self.name):
            for table, share in self._pieces(columns, rows or _BATCH):
                yield table
                if on_read is not None:
                    on_read(int(share * os.path.getsize(self.name)))


def open_arrow(name: str) -> ArrowFile:
    """Open a Parquet or Arrow file."""
    require("pyarrow")
    if os.path.isdir(name) or not os.path.exists(name):
        found = "it is a folder" if os.path.isdir(name) else "there is no such file"
        raise FileFormatError(f"{name} cannot be read: {found}")
    known = signature(beginning_of(name))
    with _with_file_name(name):
        return (_parquet if known is not None and known.called == PARQUET else _arrow)(name)


def _parquet(name: str) -> ArrowFile:
    """Open a Parquet file."""
    arrow = require("pyarrow")
    file = require("pyarrow.parquet").ParquetFile(name)

    def pieces(columns: list[str], rows: int) -> Iterator[tuple[Any, float]]:
        for batch in file.iter_batches(batch_size=rows, columns=columns):
            yield arrow.Table.from_batches([batch]), len(batch) / file.metadata.num_rows

    schema = file.schema_arrow
    return ArrowFile(name, schema.names, _facts(schema), file.metadata.num_rows, file.read, pieces)


def _arrow(name: str) -> ArrowFile:
    """Open an Arrow file of either form; it is read and not mapped: later changes of the file do no harm."""
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
    return ArrowFile(name, schema.names, _facts(schema), 0, lambda: reader().read_all(), pieces)


def _facts(schema: Any) -> dict[str, Any]:
    """The facts that ``write_table`` noted in the file; empty for a table of another origin."""
    try:
        facts = json.loads((schema.metadata or {}).get(KEY.encode(), b"{}"))
    except ValueError:
        return {}
    return facts if isinstance(facts, dict) else {}


@contextmanager
def _with_file_name(name: str) -> Iterator[None]:
    """Turn what pyarrow cannot read into an error that names the file."""
    arrow = require("pyarrow")
    try:
        yield
    except (OSError, arrow.ArrowException) as error:
        raise FileFormatError(f"{name} cannot be read: {(str(error).splitlines() or ['?'])[0]}") from error
