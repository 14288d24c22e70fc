"""`write_parts`: queries, or files of any format and size, into a data set in parts.

:class:`SourceReader` gives blocks of rows from files of every format: LETOR text and CSV (gzipped or not, standard
input), Parquet and Arrow files, datasets of pyarrow, rankwise files, data sets in parts, and folders of all of these.
The rows of a query may stand anywhere: :mod:`rankwise.queries.parts.regroup` puts them together.
"""

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankwise._extras import require
from rankwise._files import path_of
from rankwise._parameters import validated
from rankwise._progress import throughput
from rankwise.errors import DataError, FileFormatError, RankwiseError
from rankwise.io.any_file import as_type, is_store, of_type
from rankwise.io.letor.problems import Reading
from rankwise.io.letor.read import FeatureCount, Unjudged, ZeroBased, as_reading, read_table
from rankwise.io.letor.stream import iter_blocks
from rankwise.io.sources import ByteStream, open_text
from rankwise.io.tables.csv import CsvText
from rankwise.io.tables.frames import open_frame, rows_of
from rankwise.io.tables.rows import (
    Columns,
    Roles,
    TableRows,
    find_noted_roles,
    is_arrow,
    name_in_errors,
    open_arrow,
    without_unjudged,
)
from rankwise.queries import checks
from rankwise.queries.checks import Floats, Missing
from rankwise.queries.grouping import StringColumn, as_ids
from rankwise.queries.parts.manifest import NAME
from rankwise.queries.parts.parts import Parts
from rankwise.queries.parts.regroup import RANGE_BYTES, IdKind, Regrouped, SourceBlock
from rankwise.queries.parts.spool import Rows
from rankwise.queries.parts.write import PART_BYTES, PartsWriter
from rankwise.queries.queries import Queries
from rankwise.queries.source import QuerySet
from rankwise.queries.stored import load_queries

# Rows that are numbered together, fewer where they would take more memory than is allowed; the bytes of a line of text
# that has that many rows read at once.
_ROWS, _FEWEST, _LINE = 1 << 17, 1 << 10, 1 << 10
_UNUSED = np.zeros(0, np.int64)
_SMALLEST = 1 << 16  # bytes of a part


@validated
def write_parts(
    source: Any,
    path: str | os.PathLike[str],
    *,
    part_bytes: int | str = PART_BYTES,
    dtype: Literal["float32", "float64"] | None = None,
    qid: str = "qid",
    label: str | None = "label",
    docid: str | None = None,
    weight: str | None = None,
    document_weight: str | None = None,
    features: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    grades: Mapping[str, float] | None = None,
    missing: Missing = "error",
    unjudged: Unjudged = "error",
    zero_based: ZeroBased = "auto",
    n_features: FeatureCount | None = None,
    feature_names: Sequence[str] | None = None,
    overwrite: bool = False,
    memory: int | str = RANGE_BYTES,
) -> Parts:
    """Write queries, or files of any format and size, as a data set in parts.

    The rows of a query may stand anywhere, also in several files: they are put together. Queries come in order of first
    appearance and their documents in the order of the sources, as in `Queries` of the same rows. Memory holds some
    blocks of rows, and of every query its number, size and fingerprint. Temporary files beside the target take up to
    twice the disk of the data set while rows are grouped.

    The folder appears when it is complete. An error or Ctrl-C leaves nothing behind.

    Parameters
    ----------
    source : Queries, Parts, iterable of Queries, path, dataset of pyarrow, or list of paths and datasets
        What is written: queries in memory, blocks of whole queries, or files: LETOR text, CSV (both may be gzipped,
        ``-`` is standard input), Parquet, Arrow, rankwise files, data sets in parts, and folders of files, in the order
        of their names.
    path : path
        The folder to write: a new one, or an empty one.
    part_bytes : int or str, default=268435456
        About how large a part is, in bytes or as "256MB", "1GiB" ...
    dtype : {"float32", "float64"}, default=None
        The type of the features; None keeps that of queries and of rankwise files, and takes float64 for other files.
    qid, label, docid, weight, document_weight : str
        Columns of tables, as for :func:`rankwise.from_frame`.
    features, ignore, grades : sequence or mapping
        More about columns, as for :func:`rankwise.from_frame`.
    missing : {"error", "zero", "min", "keep"}, default="error"
        What to do with NaN and infinity, as for :func:`rankwise.from_frame`.
    unjudged : {"error", "drop", "zero"}, default="error"
        What to do with negative and empty labels.
    zero_based : bool or "auto", default="auto"
        Whether feature ids of LETOR text begin at 0; "auto": yes if an id 0 occurs in any of the texts.
    n_features : int, default=None
        The width of LETOR text; None takes the largest feature id of all texts.
    feature_names : sequence of str, default=None
        One name per feature of LETOR text.
    overwrite : bool, default=False
        Whether a data set in parts that already exists is replaced.
    memory : int or str, default=134217728
        Bytes of rows that are read, or put into order, together; about three times as much is used.

    Returns
    -------
    parts : Parts
        The data set, opened.

    Raises
    ------
    RankwiseError
        If a source cannot be read, if sources do not fit together, or if the folder cannot be written.

    Examples
    --------
    >>> write_parts(["day1.csv.gz", "day2.csv.gz"], "lists/", qid="query", label="grade")  # doctest: +SKIP
    Parts(51,204 queries, 9,803,118 documents, 18 features, labels 0 to 4, 6 parts in lists/)
    """
    size = checks.as_bytes(part_bytes, "part_bytes", _SMALLEST)
    held = checks.as_bytes(memory, "memory", 1)
    whole = _whole(source)
    if whole is None:
        sources = [one for given in _as_list(source) for one in expand_source(given)]
        stored = _open_store(sources[0]) if len(sources) == 1 else None
        whole = None if stored is None else stored.blocks()
    if whole is not None:
        with PartsWriter(path, part_bytes=size, overwrite=overwrite) as writer:
            _write_queries(whole, writer, dtype)
        return Parts(path)
    roles = Roles(qid, label, docid, weight, features, ignore, document_weight=document_weight)
    how = as_reading(
        dtype or _dtype_of(sources), missing, unjudged, zero_based, n_features, feature_names, None, streaming=True
    )
    reader = SourceReader(how, unjudged, roles, grades, held)
    with PartsWriter(path, part_bytes=size, overwrite=overwrite, distinct=True) as writer:
        _write_sources(sources, writer, reader, held)
    return Parts(path)


def _as_list(source: Any) -> list[Any]:
    """The sources one by one."""
    if isinstance(source, (list, tuple)):
        if not source:
            raise RankwiseError("write_parts needs at least one source, got an empty list")
        return list(source)
    return [source]


def _whole(source: Any) -> Iterator[Queries] | None:
    """Blocks of whole queries, where the source is made of them; None for files and datasets."""
    if isinstance(source, QuerySet):
        return source.blocks()
    if isinstance(source, (str, bytes, os.PathLike)) or hasattr(source, "schema") or not isinstance(source, Iterable):
        return None
    blocks = iter(source)
    if isinstance(source, (list, tuple)) and not any(isinstance(one, Queries) for one in source):
        return None
    first = next(blocks, None)
    if first is None:
        raise RankwiseError("write_parts needs at least one block of queries, got none")
    return chain([first], blocks)


def _dtype_of(sources: list[Any]) -> str:
    """The type of the features where none is given: that of rankwise files, if all of them have the same."""
    kinds = set()
    for stored in map(_open_store, sources):
        kinds.add("float64" if stored is None else str(stored.X.dtype if isinstance(stored, Queries) else stored.dtype))
    return kinds.pop() if len(kinds) == 1 else "float64"


def _open_store(source: Any) -> Queries | Parts | None:
    """A rankwise file or a data set in parts, opened; None for anything else."""
    if not isinstance(source, str):
        return None
    if os.path.isdir(source):
        return Parts(source)
    return load_queries(source) if os.path.isfile(source) and is_store(source) else None


def _write_queries(blocks: Iterator[Queries], writer: PartsWriter, dtype: str | None) -> None:
    """Write blocks of whole queries."""
    with throughput("writing") as bar:
        for block in blocks:
            if dtype is not None and isinstance(block, Queries):
                block = of_type(block, dtype)
            writer.append(block)
            bar.advance_rows(block.n_documents, block.X.nbytes)


def _write_sources(sources: list[Any], writer: PartsWriter, reader: "SourceReader", memory: int) -> None:
    """Read, group and write rows of any order."""
    sizes = [bytes_of(source) for source in sources]
    total = None if None in sizes else sum(size or 0 for size in sizes)

    def blocks(on_read: Callable[[int], object]) -> Iterator[SourceBlock]:
        reader.on_read = on_read
        return (block for source in sources for block in reader.of(source))

    for queries in grouped_blocks(writer, blocks, total, str(reader.how.dtype), reader.how.missing, memory):
        writer.append(queries)


def grouped_blocks(
    writer: PartsWriter,
    blocks: Callable[[Callable[[int], object]], Iterator[SourceBlock]],
    total: int | None,
    dtype: str,
    missing: Missing,
    memory: int,
) -> Iterator[Queries]:
    """Put blocks of rows of any order into whole queries, by temporary files in the folder that is being written.

    Parameters
    ----------
    writer : PartsWriter
        The writer, whose folder holds the temporary files.
    blocks : callable
        Takes a function that counts bytes, and gives the blocks.
    total : int or None
        The bytes of the sources, where they are known.
    dtype : str
        The type of the features.
    missing : {"error", "zero", "min", "keep"}
        What to do with features that are not finite.
    memory : int
        Bytes of rows that are put into order together.

    Yields
    ------
    queries : Queries
        Blocks of whole queries, to be appended.
    """
    folder = writer.folder / "grouping"
    folder.mkdir()
    regrouped = Regrouped(folder, dtype, missing, memory)
    with throughput("reading", total) as bar:
        for block in blocks(partial(bar.advance_rows, 0)):
            regrouped.append(block)
            bar.advance_rows(len(block.rows.X), 0)
    with throughput("grouping and writing", regrouped.bytes) as bar:
        yield from regrouped.queries(bar.advance_rows)
    shutil.rmtree(folder)


# ------------------------------------------------------------------------------------------------------ blocks of rows


def expand_source(source: Any) -> list[Any]:
    """The files of a source, in order: a folder stands for its files, sorted by name, those of its folders included.

    Parameters
    ----------
    source : path or dataset
        A file, a folder, or a dataset of pyarrow.

    Returns
    -------
    sources : list
        Files, folders of data sets in parts, and datasets.
    """
    if not isinstance(source, (str, bytes, os.PathLike)):
        return [source]
    name = path_of(source)
    if name == "-" or not os.path.isdir(name) or os.path.isfile(os.path.join(name, NAME)):
        return [name]
    # names that begin with a dot or an underscore are notes of other programs, such as Spark's _SUCCESS
    files = [
        path
        for path in sorted(Path(name).rglob("*"))
        if path.is_file() and not any(one.startswith((".", "_")) for one in path.relative_to(name).parts)
    ]
    if not files:
        raise FileFormatError(f"{name} holds no files")
    if all(path.suffix.lower() == ".parquet" for path in files):
        # pyarrow reads columns that are in the names of folders (grade=2/part-0.parquet), too
        return [require("pyarrow.dataset").dataset(name, format="parquet", partitioning="hive")]
    return [os.fspath(path) for path in files]


def bytes_of(source: Any) -> int | None:
    """The size of a source, or None where it is not known."""
    if not isinstance(source, str):
        files = getattr(source, "files", None)
        return None if not files else sum(os.path.getsize(one) for one in files if os.path.isfile(one))
    if os.path.isdir(source):
        return sum(path.stat().st_size for path in Path(source).iterdir() if path.is_file())
    return os.path.getsize(source) if os.path.isfile(source) else None


@dataclass
class SourceReader:
    """A reader of rows of any sources; the first table decides which columns are features.

    Attributes
    ----------
    how : Reading
        How LETOR text is read; the type of the features, and what to do with features that are not finite, are those of
        all sources. With ``zero_based="auto"`` ids begin at 0 if an id 0 occurs in any text.
    unjudged : {"error", "drop", "zero"}
        What to do with labels that are empty or negative.
    roles : Roles
        The roles of the columns of tables.
    grades : mapping of str to float, or None
        The labels of the words in the label column of tables.
    memory : int, default=134217728
        Bytes of rows that are read together.
    on_read : callable
        Receives the number of bytes each time some are read.
    """

    how: Reading
    unjudged: Unjudged
    roles: Roles
    grades: Mapping[str, float] | None
    memory: int = RANGE_BYTES
    on_read: Callable[[int], object] = lambda count: None
    _first: tuple[str, list[str]] | None = None

    def of(self, source: Any) -> Iterator[SourceBlock]:
        """The rows of a source.

        Parameters
        ----------
        source : str or dataset
            What :func:`expand_source` gives.

        Yields
        ------
        block : SourceBlock
            Consecutive rows.
        """
        if not isinstance(source, str):
            yield from self._dataset(source)
        elif (stored := _open_store(source)) is not None:
            yield from self._whole_queries(source, stored)
        elif is_arrow(source):
            yield from self._arrow(source)
        else:
            with open_text(source, self.on_read) as stream:
                yield from self._letor(stream) if stream.kind == "letor" else self._csv(stream)

    # -------------------------------------------------------------------------------------------------------- texts

    def _letor(self, stream: ByteStream) -> Iterator[SourceBlock]:
        """A LETOR text; each block has the features and the first feature id that it shows."""
        found = False
        count = max(_FEWEST, min(_ROWS, self.memory // _LINE))
        for text, first_line in iter_blocks(stream, count, skip_negative=self.unjudged == "drop"):
            table = read_table(text, self.how, first_line)
            if table is None or not len(table.y):
                continue
            found = True
            rows = Rows(_UNUSED, table.X, table.y, table.docid, base=table.rules.base)
            yield SourceBlock(rows, table.run_qid, table.run_row, "written", stream.name, self.how.names)
        if not found:
            raise FileFormatError(f"{stream.name} has no rows: expected lines of the form label qid:id feature:value")

    def _csv(self, stream: ByteStream) -> Iterator[SourceBlock]:
        """A CSV text."""
        text = CsvText.open(stream)
        with name_in_errors(stream.name):
            roles = self._roles(stream.name, text.names, self.roles)
            wanted = text.select(roles, missing=self.how.missing, unjudged=self.unjudged, grades=self.grades)
            for rows in _gather(text.pieces(wanted), self._rows(wanted.columns)):
                yield self._of_table(rows, wanted.columns, stream.name, 0)

    # ------------------------------------------------------------------------------------------------------- tables

    def _roles(self, name: str, names: Sequence[str], roles: Roles) -> Roles:
        """The roles, with the features of the first table in its order."""
        columns = roles.among(names)
        if self._first is None:
            self._first = name, columns.features
        first, features = self._first
        odd = sorted(set(features) ^ set(columns.features))
        if odd:
            has, lacks = (first, name) if odd[0] in features else (name, first)
            raise DataError(
                f"{has} has a column {odd[0]!r} and {lacks} has not: the tables of a data set must have the same "
                "features; pass ignore= to leave columns out"
            )
        return replace(roles, features=features)

    def _rows(self, columns: Columns) -> int:
        """The number of rows of a table that are read together."""
        return max(_FEWEST, min(_ROWS, self.memory // (8 * max(1, len(columns.every)))))

    def _of_table(
        self, rows: TableRows, columns: Columns, name: str, first_row: int, named: bool = True
    ) -> SourceBlock:
        """Rows of a table as a block."""
        rows = without_unjudged(rows, self.unjudged)
        rows = rows._replace(X=as_type(rows.X, str(self.how.dtype)))
        return block_of_rows(rows, tuple(columns.features), self.how.missing, name, first_row, named)

    def _arrow(self, name: str) -> Iterator[SourceBlock]:
        """A Parquet or Arrow file."""
        file = open_arrow(name)
        with name_in_errors(name):
            roles = replace(self.roles, **find_noted_roles(self.roles, file.facts, file.names))
            columns = self._roles(name, file.names, roles).among(file.names)
            row = 0
            for batch in file.batches(columns.every, self._rows(columns), self.on_read):
                yield self._of_batch(batch, columns, name, row, file.facts.get("named") is not False)
                row += len(batch)

    def _dataset(self, dataset: Any) -> Iterator[SourceBlock]:
        """A dataset of pyarrow, batch by batch with little read ahead."""
        arrow = require("pyarrow")
        files = getattr(dataset, "files", None)
        name = f"{os.path.dirname(files[0]) or '.'} ({len(files)} files)" if files else "the dataset"
        if not hasattr(dataset, "to_batches") or not hasattr(dataset, "schema"):
            raise DataError(
                f"a source must be a path or a pyarrow dataset, got {type(dataset).__name__}; "
                "from_frame reads data frames"
            )
        with name_in_errors(name):
            names = dataset.schema.names
            columns = self._roles(name, names, self.roles).among(names)
            total, count = bytes_of(dataset) or 0, dataset.count_rows() if hasattr(dataset, "count_rows") else 0
            scanned = _batches(dataset, columns.every, self._rows(columns))
            row = 0
            for batch in scanned:
                yield self._of_batch(arrow.Table.from_batches([batch]), columns, name, row, True)
                row += len(batch)
                self.on_read(int(total * len(batch) / max(1, count)))

    def _of_batch(self, batch: Any, columns: Columns, name: str, first_row: int, named: bool) -> SourceBlock:
        rows = rows_of(open_frame(batch), columns, self.grades, self.unjudged)
        return self._of_table(rows, columns, name, first_row, named)

    # ------------------------------------------------------------------------------------------------ rankwise files

    def _whole_queries(self, name: str, queries: Queries | Parts) -> Iterator[SourceBlock]:
        """A rankwise file or a data set in parts."""
        total = bytes_of(name) or 0
        for block in queries.blocks():
            if block.qid is None:
                raise DataError(f"{name} has no query ids, which are needed to join several sources")
            ids, _, kind = runs_of_ids(block.qid)
            weight = None if block.weight is None else np.repeat(block.weight, block.sizes)
            X = as_type(block.X, str(self.how.dtype))
            _check(X, None, self.how.missing, block.feature_names, 0)
            rows = Rows(_UNUSED, X, block.y, block.docid, weight, block.document_weight)
            filled = block.sizes > 0
            yield SourceBlock(rows, ids[filled], block.start[:-1][filled], kind, name, block.feature_names)
            self.on_read(int(total * block.n_documents / max(1, queries.n_documents)))


def block_of_rows(
    rows: TableRows, names: tuple[str, ...], missing: Missing, source: str, first_row: int, named: bool = True
) -> SourceBlock:
    """Rows of a table as a block; what is no feature and no label raises an error.

    Parameters
    ----------
    rows : TableRows
        The rows.
    names : tuple of str
        The names of the features.
    missing : {"error", "zero", "min", "keep"}
        What to do with features that are not finite.
    source : str
        The name of the source.
    first_row : int
        The number of the first row, for messages.
    named : bool, default=True
        Whether the features keep their names.

    Returns
    -------
    block : SourceBlock
        The block.
    """
    _check(rows.X, rows.y, missing, names, first_row)
    if rows.document_weight is not None and not checks.usual_weights(rows.document_weight).all():
        raise DataError(f"document weights {checks.WEIGHTS}")
    ids, head, kind = runs_of_ids(rows.qid)
    kept = Rows(_UNUSED, rows.X, rows.y, rows.docid, rows.weight, rows.document_weight)
    return SourceBlock(kept, ids, head, kind, source, names if named else None)


def _check(X: Floats, y: Any, missing: Missing, names: Any, first_row: int) -> None:
    """Refuse features that are not finite and labels that are not labels, by their row in the source."""
    found = checks.first_not_finite(X) if missing == "error" else None
    if found is not None:
        row, feature = found
        called = f" ({names[feature]})" if names else ""
        raise DataError(
            f"X is {X[row, feature]} at row {first_row + row:,}, feature {feature}{called}: "
            "pass missing='zero' or missing='min', or replace NaN and infinity"
        )
    if missing == "keep":
        checks.refuse_infinite(X, names)
    if y is not None:
        bad = ~(np.isfinite(y) & (y >= 0))
        if bad.any():
            row = int(np.argmax(bad))
            raise DataError(
                f"labels must be finite and 0 or more, got {y[row]:g} at row {first_row + row:,}: pass "
                "unjudged='drop' or unjudged='zero'"
            )


def runs_of_ids(qid: Any) -> tuple[StringColumn, NDArray[np.int64] | None, IdKind]:
    """(ids as texts, first row of each, kind) of the query ids of rows."""
    if isinstance(qid, StringColumn):
        return qid, None, "written"
    ids = as_ids(qid, "qid")
    if ids.dtype.kind in "iu":
        head = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]]))
        letters = ids[head].astype("S20").view(np.uint8).reshape(len(head), 20)
        there = letters != 0
        offset = np.concatenate([[0], np.cumsum(there.sum(axis=1))]).astype(np.int64)
        return StringColumn(letters[there], offset), head, "whole"
    names = ids.tolist()
    real = ids.dtype.kind == "f"
    return StringColumn.of(map(repr, names) if real else names), None, "real" if real else "text"


def _gather(pieces: Iterator[TableRows], rows: int) -> Iterator[TableRows]:
    """The same rows in blocks of about so many."""
    waiting: list[TableRows] = []
    for piece in pieces:
        waiting.append(piece)
        if sum(len(one.X) for one in waiting) >= rows:
            yield TableRows.concat(waiting)
            waiting = []
    if waiting:
        yield TableRows.concat(waiting)


def _batches(dataset: Any, columns: list[str], rows: int) -> Iterator[Any]:
    """Record batches in the order of the files; a table or a reader has fewer options than a dataset."""
    if hasattr(dataset, "scanner"):
        return iter(dataset.to_batches(columns=columns, batch_size=rows, batch_readahead=1, fragment_readahead=1))
    if hasattr(dataset, "select"):
        return iter(dataset.select(columns).to_batches(max_chunksize=rows))
    return iter(batch.select(columns) for batch in dataset)
