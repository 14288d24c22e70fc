"""Open and convert judged queries of any format.

The format is recognised by the content of a file first, and by the ending of its name where that decides more.
"""

import os
from pathlib import Path
from typing import Any

from rankwise._errors import DataError, FileFormatError
from rankwise._paths import path_of
from rankwise.data.queries import Queries
from rankwise.data.sources import open_file

_TABLES = (".parquet", ".csv")  # endings that are written; frames.is_table has those that are read
_OF_TABLES = ("docid", "ignore", "grades", "features")
_STORES = (".rankwise", ".safetensors")
_TEXTS = (".txt", ".letor", ".dat", ".svm", ".svmlight", ".libsvm")


def read_any(path: str | os.PathLike[str], *, qid: str = "qid", label: str = "label", **options: Any) -> Queries:
    """Read judged queries from a LETOR text, a Parquet, Arrow or CSV table, or a rankwise file.

    Parameters
    ----------
    path : path
        The file; ``-`` is a LETOR text on standard input.
    qid : str, default="qid"
        The column of query ids, for tables.
    label : str, default="label"
        The column of labels, for tables.
    **options : keyword arguments
        ``docid``, ``ignore``, ``grades`` and ``features`` are for tables, as in :func:`from_frame`; the others are
        those of :func:`read_letor`.

    Returns
    -------
    queries : Queries
        The queries of the file.
    """
    kind = kind_of(path)
    if kind == "store":
        from rankwise.data.stored import load_queries

        return load_queries(path)
    if kind == "table":
        from rankwise.data.tabular.frames import read_table

        known = {name: options[name] for name in (*_OF_TABLES, "missing", "unjudged") if name in options}
        return read_table(path, qid=qid, label=label, **known)
    from rankwise.data.letor.read import read_letor

    return read_letor(path, **{name: value for name, value in options.items() if name not in _OF_TABLES})


def kind_of(path: str | os.PathLike[str]) -> str:
    """What a file is.

    Parameters
    ----------
    path : path
        The file, or ``-``.

    Returns
    -------
    kind : {"store", "table", "text"}
        A rankwise file, a table, or LETOR text. A file that does not exist is "text", whose reader reports it.
    """
    name = path_of(path)
    if name == "-":
        return "text"
    if os.path.isdir(name):
        raise FileFormatError(f"{name} is a folder, expected a file; read_folds opens a folder of folds")
    from rankwise.data.tabular.frames import is_table

    if is_table(name):
        return "table"
    if not os.path.isfile(name):
        return "text"  # its reader reports a missing file; a pipe can be read only once
    with open_file(name) as file:
        head = file.read(9)
    if head[:4] == b"PAR1":
        return "table"
    # a safetensors file begins with the length of its header, eight bytes, and the header with a brace
    return "store" if Path(name).suffix.lower() in _STORES or head[8:9] == b"{" else "text"


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
    if str(queries.X.dtype) != dtype:
        queries = queries.map_features(lambda X: X.astype(dtype))
    write_any(queries, target, sparse)
    return f"{target}: {queries}"


def _ending(target: str | os.PathLike[str]) -> str:
    """The ending of a file to write, which names its format; ``.gz`` does not count."""
    endings = [suffix.lower() for suffix in Path(path_of(target)).suffixes]
    ending = next((suffix for suffix in reversed(endings) if suffix != ".gz"), "")
    known = (*_STORES, *_TABLES, *_TEXTS, ".qrels")
    if ending not in known:
        raise DataError(f"{target} ends in {ending or 'nothing'!r}, expected one of {', '.join(known)}")
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
        from rankwise.data.tabular.frames import write_table

        write_table(queries, target)
    elif ending == ".qrels":
        from rankwise.data.trec import write_qrels

        write_qrels(queries, target)
    else:
        from rankwise.data.letor.write import write_letor

        write_letor(queries, target, sparse=sparse)


def _stream(source: str | os.PathLike[str], target: str | os.PathLike[str], dtype: str, options: dict[str, Any]) -> str:
    """Convert a text into a rankwise file block by block, with a progress bar over the bytes of the source."""
    from rankwise._progress import progress
    from rankwise.data.letor.stream import iter_letor
    from rankwise.data.stored import QueriesWriter

    reading = {name: value for name, value in options.items() if name not in ("qid", "label", *_OF_TABLES)}
    total = None if os.fspath(source) == "-" else os.path.getsize(source)
    queries = documents = 0
    with progress("converting", total) as bar, QueriesWriter(target) as writer:
        for block in iter_letor(source, dtype=dtype, on_read=bar.advance, **reading):
            writer.append(block)
            queries += len(block)
            documents += block.n_documents
    return f"{target}: {queries:,} queries, {documents:,} documents"
