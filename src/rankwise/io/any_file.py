"""Open and convert judged queries of any format.

The format is recognized by the content of a file first, and by the ending of its name where that decides more.

:func:`keep_rows` copies rows of a table as they are: every column stays, whether or not a ranker could read it. It
opens a CSV, Parquet or Arrow file, reads its query ids and nothing else, and writes some of its rows to another file of
the same format. CSV records keep their bytes: quotes, decimal marks, texts, line breaks. The whole file is held in
memory.
"""

import codecs
import csv
import io
import os
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise._extras import require
from rankwise._files import LONGEST, STORE, path_of, signature, writing, writing_bytes
from rankwise.errors import DataError, FileFormatError
from rankwise.io.sources import GZIP, ByteStream, beginning_of, open_stream
from rankwise.io.tables.csv import CsvText, read_text_table
from rankwise.io.tables.frames import from_frame, read_table, write_table
from rankwise.io.tables.rows import (
    ARROW_ENDINGS,
    TEXTS,
    Roles,
    TableRows,
    as_queries,
    is_arrow,
    read_arrow,
    suffix_of,
)
from rankwise.queries.checks import Floats
from rankwise.queries.queries import Queries

_TABLES = (".parquet", ".csv")  # endings that are written
# options about columns, and the judgments of logs: LETOR text has neither
OF_COLUMNS = ("qid", "label", "docid", "ignore", "grades", "features", "kinds", "columns", "judgments")
_OF_TABLES = ("qid", "label", "docid", "ignore", "grades", "features", "missing", "unjudged")
_OF_LOGS = ("judgments", "features", "missing", "unjudged")
_STORES = (".rankwise", ".safetensors")
_TEXTS = (".txt", ".letor", ".dat", ".svm", ".svmlight", ".libsvm")


def read_any(path: "str | os.PathLike[str] | ByteStream", kind: str | None = None, **options: Any) -> Queries:
    """Read judged queries from a LETOR text, a table (CSV, JSON rows, Parquet, Arrow), a rankwise file, or a log.

    Parameters
    ----------
    path : path or ByteStream
        The file; ``-`` is a LETOR text on standard input.
    kind : {"store", "table", "json", "text"}, default=None
        What it is; None takes :func:`kind_of`.
    **options : keyword arguments
        ``qid``, ``label``, ``docid``, ``ignore``, ``grades`` and ``features`` are for tables, as in
        :func:`from_frame`; ``judgments`` for logs, as in :func:`read_ltr_log`; the others are those of
        :func:`read_letor`. Options for files of another kind are left out.

    Returns
    -------
    queries : Queries
        The queries of the file.
    """
    source: Any = path
    kind = kind or kind_of(source)
    if kind == "store":
        from rankwise.queries.stored import load_queries

        return load_queries(source)
    if kind == "table" and (isinstance(path, ByteStream) or not is_arrow(path_of(path))):
        return read_text_table(source, **_among(options, _OF_TABLES))
    if kind == "table":
        return read_table(source, **_among(options, _OF_TABLES))
    if kind == "json":
        from rankwise.io.ltr_log import read_ltr_log

        return read_ltr_log(source, **_among(options, _OF_LOGS))
    from rankwise.io.letor.read import read_letor

    return read_letor(source, **of_letor(options))


def _among(options: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: options[name] for name in names if name in options}


def of_letor(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that apply to LETOR text."""
    return {name: value for name, value in options.items() if name not in OF_COLUMNS}


def kind_of(path: str | os.PathLike[str]) -> str:
    """The kind of a file.

    Parameters
    ----------
    path : path
        The file, or ``-``.

    Returns
    -------
    kind : {"store", "table", "json", "text"}
        A rankwise file; a table: Parquet, Arrow, CSV or rows in JSON; other JSON (logged features, predictions); or
        lines of LETOR, scores or TREC. A file that does not exist is what its name says, and its reader reports it.

    Raises
    ------
    FileFormatError
        If the file is none of these: a pickle, a workbook, a packed file that is not gzip ...
    """
    name = path_of(path)
    if name == "-":
        return "text"
    if os.path.isdir(name):
        raise FileFormatError(f"{name} is a folder, expected a file; read_folds reads a folder of folds")
    called_table = suffix_of(name) in (*ARROW_ENDINGS, *TEXTS)
    if not os.path.isfile(name):  # a pipe can be read only once
        return "table" if called_table else "text"
    if is_store(name):
        return "store"
    if is_arrow(name):
        return "table"
    with open_stream(name) as stream:
        kind, first = stream.kind, stream.head.splitlines()[:1]
    if kind in ("records", "json"):
        return "table" if kind == "records" else "json"
    # a header holds names: the first line of judgments and runs holds numbers
    headed = kind == "csv" and not any(cell.strip().isdigit() for cell in re.split(rb"[,;|\t]", first[0]))
    return "table" if called_table or headed else "text"


def is_json(path: str | os.PathLike[str]) -> bool:
    """Whether a file is JSON of any kind; ``-`` is not looked at."""
    name = path_of(path)
    if name == "-" or not os.path.isfile(name) or is_store(name) or is_arrow(name):
        return False
    with open_stream(name) as stream:
        return stream.kind in ("records", "json")


def is_store(name: str) -> bool:
    """Whether a file is rankwise's own, or is called so."""
    known = signature(beginning_of(name))
    return Path(name).suffix.lower() in _STORES or (known is not None and known.called == STORE)


# The first bytes of models of boosters. An object of UBJSON begins with the length of its first key, whose type is one
# of these letters; that of JSON with a key in quotes. XGBoost and CatBoost write keys in alphabetical order.
_BOOSTERS = {
    "LightGBM": rb"tree\r?\n",
    "XGBoost": rb"\{\s*\"(learner\"|version\":\s*\[\d+,\s*\d+,\s*\d+\])|\{[iUIlL].{1,8}(learner\{|version\[)",
    "CatBoost": rb"CBM1|\{\s*\"(class_params|ctr_data|features_info|model_info|oblivious_trees|scale_and_bias)\"",
}


def booster_of(path: str | os.PathLike[str]) -> str | None:
    """Which booster saved a model to a file, from its first bytes.

    Parameters
    ----------
    path : path
        The file, plain or gzipped.

    Returns
    -------
    str or None
        "LightGBM", "XGBoost" or "CatBoost"; None for every other file.
    """
    name = path_of(path)
    if not os.path.isfile(name):
        return None
    head = beginning_of(name)
    if head.startswith(GZIP):
        with suppress(zlib.error):
            head = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(head, LONGEST)
    head = head.removeprefix(codecs.BOM_UTF8)
    return next((found for found, begins in _BOOSTERS.items() if re.match(begins, head, re.DOTALL)), None)


def convert_any(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    dtype: str = "float64",
    sparse: bool = False,
    **options: Any,
) -> str:
    """Write the judged queries of one file in the format that the ending of another one names.

    Parameters
    ----------
    source : path
        The file to read.
    target : path
        The file to write.
    dtype : {"float64", "float32"}, default="float64"
        The type of the features.
    sparse : bool, default=False
        Whether a LETOR text leaves zeros out.
    **options : keyword arguments
        The options of :func:`read_any`.

    Returns
    -------
    summary : str
        One line that says what was written.
    """
    ending = _ending(target)
    if ending in _STORES and kind_of(source) == "text":
        return _stream(source, target, dtype, options)
    queries = read_any(source, **({"dtype": dtype} if kind_of(source) == "text" else {}), **options)
    write_any(of_type(queries, dtype), target, sparse)
    return f"{target}: {queries}"


def as_type(X: Floats, dtype: str) -> Floats:
    """Features of another type; numbers that float32 cannot hold become infinite and are found by the check."""
    with np.errstate(over="ignore"):
        return X.astype(dtype, copy=False)


def of_type(queries: Queries, dtype: str) -> Queries:
    """The queries with features of this type; numbers that it cannot hold raise an error."""
    return queries if str(queries.X.dtype) == dtype else queries.map_features(lambda X: as_type(X, dtype))


def _ending(target: str | os.PathLike[str]) -> str:
    """The ending of a file to write, which names its format; ``.gz`` does not count."""
    endings = [suffix.lower() for suffix in Path(path_of(target)).suffixes]
    ending = next((suffix for suffix in reversed(endings) if suffix != ".gz"), "")
    known = (*_STORES, *_TABLES, *_TEXTS, ".qrels")
    if ending not in known:
        raise DataError(f"the name {target} must end in one of {', '.join(known)}, got {ending or 'no ending'!r}")
    return ending


def write_any(queries: Queries, target: str | os.PathLike[str], sparse: bool = False) -> None:
    """Write judged queries in the format that the ending of the file names.

    Parameters
    ----------
    queries : Queries
        The queries.
    target : path
        The file to write.
    sparse : bool, default=False
        Whether a LETOR text leaves zeros out.
    """
    ending = _ending(target)
    if ending in _STORES:
        queries.save(target)
    elif ending in _TABLES:
        write_table(queries, target)
    elif ending == ".qrels":
        from rankwise.io.trec import write_qrels

        write_qrels(queries, target)
    else:
        from rankwise.io.letor.write import write_letor

        write_letor(queries, target, sparse=sparse)


def _stream(source: str | os.PathLike[str], target: str | os.PathLike[str], dtype: str, options: dict[str, Any]) -> str:
    """Convert a text into a rankwise file block by block, with a progress bar over the bytes of the source."""
    from rankwise._progress import progress
    from rankwise.io.letor.stream import iter_letor
    from rankwise.queries.stored import QueriesWriter

    total = None if os.fspath(source) == "-" else os.path.getsize(source)
    queries = documents = 0
    with progress("converting", total) as bar, QueriesWriter(target) as writer:
        for block in iter_letor(source, dtype=dtype, on_read=bar.advance, **of_letor(options)):
            writer.append(block)
            queries += len(block)
            documents += block.n_documents
    return f"{target}: {queries:,} queries, {documents:,} documents"


# ------------------------------------------------------------------------------------ rows of tables, kept as they are


Rows = NDArray[np.int64]


class KeptRows(NamedTuple):
    """The rows of a table, which can be written elsewhere unchanged.

    Attributes
    ----------
    queries : Queries
        Which query each row belongs to; without features and labels.
    write : callable
        Takes the numbers of rows and a path, and writes them in the format of the path's ending; CSV under the line of
        names, gzipped if the path ends in ``.gz``.
    """

    queries: Queries
    write: Callable[[Rows, str | os.PathLike[str]], None]


def keep_rows(source: "str | os.PathLike[str] | ByteStream", qid: str) -> KeptRows:
    """Read a table whose rows are to be written elsewhere unchanged.

    Parameters
    ----------
    source : path or ByteStream
        A Parquet or Arrow file, or an opened CSV text.
    qid : str
        The column of query ids.

    Returns
    -------
    rows : KeptRows
        The rows, and the query of each.

    Raises
    ------
    RankwiseError
        If there is no such column, or if a record does not have as many cells as the header.
    """
    if isinstance(source, ByteStream):
        return _csv_records(source, qid)
    table, _ = read_arrow(os.fspath(source))

    def write(rows: Rows, path: str | os.PathLike[str]) -> None:
        chosen = table.take(rows)
        with writing(path) as part:
            if suffix_of(path) == ".parquet":
                require("pyarrow.parquet").write_table(chosen, part)
            else:
                with require("pyarrow.ipc").new_file(os.fspath(part), chosen.schema) as file:
                    file.write_table(chosen)

    return KeptRows(from_frame(table, qid=qid, label=None, features=[]), write)


def _csv_records(source: ByteStream, qid: str) -> KeptRows:
    """The records of an opened CSV text."""
    text = CsvText.open(source)
    wanted = text.select(Roles(qid=qid, label=None, features=()))
    records: list[bytes] = []
    pieces: list[TableRows] = []
    for block, rows in text.blocks_of_rows(wanted):
        in_block = _records(block)
        if len(in_block) != len(rows.qid):
            raise FileFormatError(f"{source.name}: cannot tell where records end after record {len(records):,}")
        pieces.append(rows)
        records += in_block
    if not records:
        raise FileFormatError(f"{source.name} has a header but no rows")
    ending = "\r\n" if records[0].endswith(b"\r\n") else "\n"
    if not records[-1].endswith(b"\n"):
        records[-1] += ending.encode()
    header = io.StringIO()
    csv.writer(header, delimiter=text.format.delimiter, lineterminator=ending).writerow(text.names)

    def write(rows: Rows, path: str | os.PathLike[str]) -> None:
        with writing_bytes(path) as file:
            file.write(header.getvalue().encode("utf-8") + b"".join(records[row] for row in rows))

    return KeptRows(as_queries(TableRows.concat(pieces), [], "error"), write)


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
