"""Write a data set in parts, block after block; it may be larger than memory.

A part ends where a chunk of the whole data set ends (:func:`~rankwise._kernels.parallel.query_chunks`), the last one
before the part would be larger than asked for. So every chunk lies in one file, and its block is a view of that file.

The folder appears whole: it is written beside its target, renamed when it is complete, and removed on any failure.
"""

import os
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._files import new_folder, path_of
from rankwise._kernels import parallel
from rankwise._progress import track
from rankwise._store import StoreWriter
from rankwise._tables import ShownAsFacts
from rankwise.errors import DataError, FileFormatError
from rankwise.queries.checks import refuse_unjudged
from rankwise.queries.concat import join_or_ones
from rankwise.queries.fingerprints import fingerprints
from rankwise.queries.grouping import StringColumn, offsets
from rankwise.queries.parts.files import checksum
from rankwise.queries.parts.manifest import INDEX, INDEX_KIND, NAME, Ids, Manifest, PartFile, Summary
from rankwise.queries.parts.query_numbers import QueryNumbers
from rankwise.queries.queries import Queries, as_queries
from rankwise.queries.scaling import Scaler
from rankwise.queries.stored import Form, QueriesWriter, append_builder, append_scaler, load_queries, plain_ids

# Bytes of a part where nothing else is said.
PART_BYTES = 256 << 20


class PartsWriter(ShownAsFacts):
    """Write queries block after block into a folder of files with a manifest.

    Query ids differ over the whole data set: a query is written whole, in one block. The folder appears when the
    context is left without an error; on any error and on Ctrl-C nothing is left.

    Parameters
    ----------
    path : path
        The folder: a new one, or an empty one.
    part_bytes : int, default=268435456
        About how large a part is; no smaller than one chunk of about 65,536 documents.
    overwrite : bool, default=False
        Whether a data set in parts that already exists is replaced.
    n_jobs : int, default=None
        The number of threads for fingerprints; None uses every core.
    distinct : bool, default=False
        Whether the caller knows that query ids differ; this is then not checked again.

    Attributes
    ----------
    folder : Path
        The folder in progress, for temporary files of the caller.

    Examples
    --------
    >>> with PartsWriter("lists/") as writer:  # doctest: +SKIP
    ...     for block in rankwise.iter_letor("train.txt"):
    ...         writer.append(block)
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        part_bytes: int = PART_BYTES,
        overwrite: bool = False,
        n_jobs: int | None = None,
        distinct: bool = False,
    ) -> None:
        self._target, self._part_bytes, self._n_jobs = new_folder(path, NAME, overwrite=overwrite), part_bytes, n_jobs
        self._opened = ExitStack()
        self.folder = Path()
        self._part: _OpenPart | None = None
        self._written: list[PartFile] = []
        self._index = IndexColumns(n_jobs, distinct)
        # documents of the chunk that is not complete yet; -1 before its first query
        self._in_chunk = -1
        self._form: Form | None = None
        self._blocks = 0

    def __enter__(self) -> "PartsWriter":
        self.folder = self._opened.enter_context(self._target)
        return self

    def append(self, block: Queries) -> None:
        """Write more queries.

        Parameters
        ----------
        block : Queries
            Queries with the features of the first block, and with labels, query ids and feature names exactly if it has
            them.
        """
        block = as_queries(block, "PartsWriter")
        if self._form is None:
            self._form = Form.of(block)
        # every part has the form of the first block, as one file would have
        block = self._form.adapt(block, self._blocks)
        self._blocks += 1
        if block.X.dtype != self._form.dtype:
            block = block._replace(X=block.X.astype(self._form.dtype))
        if not block.is_grouped:
            block = block[:]
        if not len(block) and self._part is not None:
            return
        first = 0
        for end in self._chunk_ends(block):
            self._write(block[first:end])
            self._chunk_done()
            first = end
        self._write(block[first:])

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is not None:
            if self._part is not None:
                self._part.writer.__exit__(kind, error, trace)
            self._opened.__exit__(kind, error, trace)
            return
        with self._opened:
            self._close_part()
            write_manifest(self.folder, self._written, self._index)

    def _chunk_ends(self, block: Queries) -> Iterable[int]:
        """The queries of the block before which a chunk of the whole data set ends; see ``parallel.query_chunks``."""
        start, count, first = block.start, len(block), 0
        begin = -max(self._in_chunk, 0)  # the row at which the chunk began, counted from the block's first
        empty = self._in_chunk < 0
        while first < count:
            last = int(np.searchsorted(start, begin + parallel.CHUNK, side="right")) - 1
            last = max(last, first + empty)
            if last >= count:
                break
            yield last
            first, begin, empty = last, int(start[last]), True
        if count:
            self._in_chunk = int(start[-1]) - begin

    def _write(self, block: Queries) -> None:
        """Append queries to the open part."""
        if self._part is None:
            self._part = _OpenPart(self.folder / f"part-{len(self._written):05d}.rankwise")
        self._index.add(block)
        self._part.append(block)

    def _chunk_done(self) -> None:
        """Close the part if the next chunk would make it too large."""
        if self._part is not None:
            self._part.end_chunk()
            if self._part.bytes + self._part.last_chunk > self._part_bytes:
                self._close_part()

    def _close_part(self) -> None:
        if self._part is not None:
            part, self._part = self._part, None
            self._written.append(part.close())


class _OpenPart:
    """The part that is being written."""

    def __init__(self, path: Path) -> None:
        self.path, self.writer = path, QueriesWriter(path)
        self.writer.__enter__()
        self.queries = self.documents = self.bytes = self.last_chunk = self._before = 0

    def append(self, block: Queries) -> None:
        """Write queries."""
        self.writer.append(block)
        self.queries += len(block)
        self.documents += block.n_documents
        self.bytes += block.X.nbytes + (0 if block.y is None else block.y.nbytes)

    def end_chunk(self) -> None:
        """Note how many bytes the chunk has that ends here."""
        self.last_chunk, self._before = self.bytes - self._before, self.bytes

    def close(self) -> PartFile:
        """Finish the file."""
        self.writer.__exit__(None, None, None)
        return entry_of(self.path, self.queries, self.documents)


def entry_of(path: Path, queries: int, documents: int) -> PartFile:
    """The entry of a file in the manifest."""
    return PartFile(path.name, queries, documents, path.stat().st_size, checksum(path))


class IndexColumns:
    """Facts of all blocks for the index and the manifest: 40 bytes per query.

    Parameters
    ----------
    n_jobs : int, default=None
        The number of threads for fingerprints.
    distinct : bool, default=False
        Whether query ids are known to differ.
    """

    def __init__(self, n_jobs: int | None = None, distinct: bool = False) -> None:
        self._n_jobs, self._distinct = n_jobs, distinct
        self._sizes: list[NDArray[np.int64]] = []
        self._weight: list[NDArray[np.float64] | None] = []
        self._marks: list[NDArray[np.void]] = []
        self._form: Queries | None = None
        self._kinds: set[str] = set()
        self._scaling: Scaler | None = None
        self._builder: Any = None
        self.docids = self.document_weights = False
        self._numbers = QueryNumbers()
        self._summary = Summary(0)

    def add(self, block: Queries, source: str = "") -> None:
        """Count a block of queries; one that was there before raises an error that names it and the source."""
        refuse_unjudged(block, "a data set in parts")
        if self._form is None:
            self._form, self._scaling, self._summary = block[:0], block.scaling, Summary(block.n_features)
            self._builder = block.built_by
        if self._scaling != block.scaling:
            self._scaling = None
        if getattr(self._builder, "digest_", None) != getattr(block.built_by, "digest_", None):
            self._builder = None
        if block.qid is not None and len(block):
            ids = plain_ids(block.qid)
            self._kinds.add("texts" if ids.dtype.kind in "UO" else "numbers")
            if not self._distinct:
                self._refuse_repeated(ids, source)
        self.docids = self.docids or block.docid is not None
        self.document_weights = self.document_weights or block.document_weight is not None
        self._summary.add(block)
        self._sizes.append(block.sizes)
        self._weight.append(block.weight)
        self._marks.append(fingerprints(block, n_jobs=self._n_jobs))

    def _refuse_repeated(self, ids: NDArray[Any], source: str) -> None:
        """Refuse an id that was there before."""
        names = ids.tolist()
        number, new = self._numbers.number(StringColumn.of(names))
        if len(new) < len(number):
            again = names[int(np.setdiff1d(np.arange(len(number)), new)[0])]
            where = f" again in {source}" if source else " twice"
            raise DataError(f"query {again!r} comes{where}: a query is written whole, in one block and in one file")

    def write(self, folder: Path) -> PartFile:
        """Write the index."""
        marks = np.concatenate(self._marks)
        start = offsets(np.concatenate(self._sizes))
        with StoreWriter(folder / INDEX, INDEX_KIND) as file:
            file.append("start", start)
            weight = join_or_ones(self._weight, map(len, self._sizes))
            if weight is not None:
                file.append("weight", weight)
            file.append("content", np.ascontiguousarray(marks["hash"]))
            file.append("sketches", np.ascontiguousarray(marks["documents"]))
            append_scaler(file, self._scaling)
            append_builder(file, self._builder)
        return entry_of(folder / INDEX, len(start) - 1, int(start[-1]))

    @property
    def ids(self) -> Ids:
        """The kind of the query ids; texts where some parts have texts and others numbers."""
        if self._form is None or self._form.qid is None:
            return "none"
        return "texts" if "texts" in self._kinds else "numbers"

    @property
    def facts(self) -> dict[str, object]:
        """The statistics of the values."""
        return self._summary.facts()

    @property
    def form(self) -> Queries:
        """The first block, without its queries."""
        if self._form is None:
            raise DataError("a data set in parts was to be written, but no queries were appended")
        return self._form


def write_manifest(folder: Path, parts: list[PartFile], columns: IndexColumns) -> Manifest:
    """Write the index and then the manifest of a folder whose parts are complete."""
    index, form = columns.write(folder), columns.form
    manifest = Manifest(
        tuple(parts),
        index,
        form.n_features,
        str(form.X.dtype),
        form.y is not None,
        columns.ids,
        columns.docids,
        columns.document_weights,
        form.feature_names,
        columns.facts,
    )
    manifest.write(folder)
    return manifest


def adopt_files(files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> Path:
    """Write the index and the manifest of rankwise files that stand in one folder.

    Parameters
    ----------
    files : path or list of paths
        The folder of the files, or the files.

    Returns
    -------
    folder : Path
        The folder.
    """
    if isinstance(files, (str, os.PathLike)):
        folder = Path(path_of(files))
        if not folder.is_dir():
            raise FileFormatError(f"{folder} must be a folder that holds rankwise files")
        found = sorted(one for one in folder.glob("*.rankwise") if one.name != INDEX and not one.name.startswith("."))
    else:
        found = sorted(Path(path_of(one)) for one in files)
        folder = found[0].parent if found else Path()
    if not found:
        raise FileFormatError(f"{folder} holds no rankwise files (*.rankwise)")
    if any(one.parent != folder for one in found):
        raise DataError(f"the files of a data set must be in one folder, got {folder} and others")
    parts, columns, first = [], IndexColumns(), None
    for path in track(found, "reading parts"):
        queries = load_queries(path)
        if not len(queries):
            continue
        first = first or (path, queries)
        _check_alike(path, queries, *first)
        for begin, end in parallel.query_chunks(queries.start):
            columns.add(queries[begin:end], path.name)
        parts.append(entry_of(path, len(queries), queries.n_documents))
    if not parts:
        raise FileFormatError(f"the files in {folder} hold no queries")
    (folder / NAME).unlink(missing_ok=True)  # a manifest that is there belongs to another index
    write_manifest(folder, parts, columns)
    return folder


def _check_alike(path: Path, queries: Queries, first: Path, form: Queries) -> None:
    """Refuse a file whose queries do not fit to those of the first one."""
    facts = {
        "features": (queries.n_features, form.n_features),
        "features of type": (str(queries.X.dtype), str(form.X.dtype)),
        "feature names": (queries.feature_names, form.feature_names),
        "labels": (queries.y is not None, form.y is not None),
        "query ids": (queries.qid is not None, form.qid is not None),
    }
    for what, (here, there) in facts.items():
        if here != there:
            raise DataError(f"{path} and {first} must have the same {what}, got {here!r:.60} and {there!r:.60}")
