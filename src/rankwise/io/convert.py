"""`write_parts`: queries, or files of any format and size, into a data set in parts."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from rankwise._progress import throughput
from rankwise.errors import RankwiseError
from rankwise.io.any_file import is_store
from rankwise.io.blocks import Blocks, SourceOptions, as_type, blocks_of, bytes_of, expanded
from rankwise.io.tables.rows import Roles, Unjudged
from rankwise.queries import checks
from rankwise.queries.checks import Missing
from rankwise.queries.parts.parts import Parts
from rankwise.queries.parts.regroup import RANGE_BYTES, Regrouped
from rankwise.queries.parts.spool import remove_folder
from rankwise.queries.parts.write import PART_BYTES, PartsWriter
from rankwise.queries.queries import Queries
from rankwise.queries.stored import load_queries

_SMALLEST = 1 << 16


def write_parts(
    source: Any,
    path: str | os.PathLike[str],
    *,
    part_bytes: int | str = PART_BYTES,
    dtype: str | None = None,
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
    zero_based: Any = "auto",
    n_features: int | None = None,
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
        Whether a data set in parts that is there already is replaced.
    memory : int or str, default=134217728
        Bytes of rows that are put into order together; about three times as much is used.

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
    if dtype is not None:
        checks.refuse_unless_one_of(dtype, "dtype", ("float32", "float64"))
    checks.refuse_unless_one_of(unjudged, "unjudged", ("error", "drop", "zero"))
    whole = _whole(source)
    if whole is None:
        sources = [one for given in _listed(source) for one in expanded(given)]
        whole = _stored(sources)
    if whole is not None:
        with PartsWriter(path, part_bytes=size, overwrite=overwrite) as writer:
            _write_queries(whole, writer, dtype)
        return Parts(path)
    options = SourceOptions(
        dtype or _dtype_of(sources),
        missing,
        unjudged,
        zero_based,
        n_features,
        feature_names,
        Roles(qid, label, docid, weight, features, ignore, document_weight=document_weight),
        grades,
    )
    with PartsWriter(path, part_bytes=size, overwrite=overwrite, distinct=True) as writer:
        _write_sources(sources, writer, options, held)
    return Parts(path)


def _listed(source: Any) -> list[Any]:
    """The sources one by one."""
    if isinstance(source, (list, tuple)):
        if not source:
            raise RankwiseError("write_parts needs at least one source, got an empty list")
        return list(source)
    return [source]


def _whole(source: Any) -> Iterator[Queries] | None:
    """Blocks of whole queries, where the source is made of them; None for files and datasets."""
    if isinstance(source, (Queries, Parts)):
        return blocks_of(source)
    if isinstance(source, (str, bytes, os.PathLike)) or hasattr(source, "schema") or not isinstance(source, Iterable):
        return None
    blocks = iter(source)
    if isinstance(source, (list, tuple)) and not any(isinstance(one, Queries) for one in source):
        return None
    first = next(blocks, None)
    if first is None:
        raise RankwiseError("write_parts needs at least one block of queries, got none")
    return chain([first], blocks)


def _stored(sources: list[Any]) -> Iterator[Queries] | None:
    """The queries of a single rankwise file or data set in parts, whose queries are whole; None for anything else."""
    if len(sources) != 1 or not isinstance(sources[0], str):
        return None
    if os.path.isdir(sources[0]):
        return blocks_of(Parts(sources[0]))
    if _is_store(sources[0]):
        return blocks_of(load_queries(sources[0]))
    return None


def _dtype_of(sources: list[Any]) -> str:
    """The type of the features where none is given: that of rankwise files, if all of them have the same."""
    if not all(isinstance(one, str) and (os.path.isdir(one) or _is_store(one)) for one in sources):
        return "float64"
    kinds = {str(Parts(one).dtype if os.path.isdir(one) else load_queries(one).X.dtype) for one in sources}
    return kinds.pop() if len(kinds) == 1 else "float64"


def _is_store(name: str) -> bool:
    return os.path.isfile(name) and is_store(name)


def of_type(queries: Queries, dtype: str) -> Queries:
    """The queries with features of this type; numbers that it cannot hold raise an error."""
    return queries if str(queries.X.dtype) == dtype else queries.map_features(lambda X: as_type(X, dtype))


def _write_queries(blocks: Iterator[Queries], writer: PartsWriter, dtype: str | None) -> None:
    """Write blocks of whole queries."""
    with throughput("writing") as bar:
        for block in blocks:
            if dtype is not None and isinstance(block, Queries):
                block = of_type(block, dtype)
            writer.append(block)
            bar.advance_rows(block.n_documents, block.X.nbytes)


def _write_sources(sources: list[Any], writer: PartsWriter, options: SourceOptions, memory: int) -> None:
    """Read, group and write rows of any order."""
    folder = writer.folder / "grouping"
    folder.mkdir()
    regrouped = Regrouped(folder, options.dtype, options.missing, memory)
    sizes = [bytes_of(source) for source in sources]
    total = None if None in sizes else sum(size or 0 for size in sizes)
    with throughput("reading", total) as bar:
        blocks = Blocks(options, lambda count: bar.advance_rows(0, count))
        for source in sources:
            for block in blocks.of(source):
                regrouped.append(block)
                bar.advance_rows(len(block.rows.X), 0)
    with throughput("grouping and writing", regrouped.bytes) as bar:
        for queries in regrouped.queries(bar.advance_rows):
            writer.append(queries)
    remove_folder(folder)
