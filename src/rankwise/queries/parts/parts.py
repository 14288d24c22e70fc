"""`Parts`: judged queries in a folder of stored files, larger than memory, read block by block.

A data set in parts is the same sequence of queries as :class:`rankwise.Queries` of the same data: query numbers, splits
and folds agree. Only what there is one of per query is in memory (8 to 40 bytes each). Documents are mapped from the
files, and :meth:`Parts.block` gives any range of queries as `Queries`.

All sums over a data set go over :meth:`Parts.chunks`, ranges of queries that depend on the sizes of the queries alone.
So no bit of a result depends on how the data set is cut into files. Files that :class:`rankwise.queries.parts.write.
PartsWriter` writes end where chunks end, and their blocks are views of the files; blocks that cross files are copied
together.
"""

import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels import parallel
from rankwise._kernels.memory import available_memory
from rankwise._progress import throughput
from rankwise.errors import DataError, FileFormatError
from rankwise.queries.checks import plural
from rankwise.queries.grouping import StringColumn, offsets
from rankwise.queries.parts.files import LazyRows, PartFiles, checksum, join_blocks
from rankwise.queries.parts.manifest import Manifest
from rankwise.queries.passes.chunked import ChunkedQueries
from rankwise.queries.passes.executors import Threads, executor_of
from rankwise.queries.queries import Queries
from rankwise.queries.selection import Query
from rankwise.queries.source import QueryLayout

if TYPE_CHECKING:
    from rankwise.queries.fingerprints import Marks
    from rankwise.queries.passes.estimate import Estimate
    from rankwise.queries.passes.work import Executor
    from rankwise.queries.scaling import Scaler

# The share of the free memory that `to_queries` takes without `force`.
_SHARE = 0.5


class Parts(QueryLayout):
    """Judged queries in a folder of files with a manifest, as ``rankwise convert`` writes it.

    The manifest, the index and the header of every file are checked here, so a missing or damaged part is named
    before anything is computed; :meth:`verify` reads everything and compares checksums. Files that are replaced or
    changed later are found when they are opened.

    Parameters
    ----------
    path : path
        The folder.
    executor : {"threads", "processes"}, default="threads"
        What computes passes over the queries; see :meth:`on`.
    workers : int, default=None
        Number of threads or processes.
    memory_limit : int or str, default=None
        The largest number of bytes, or a text such as "2GB", of what is kept between passes.

    Attributes
    ----------
    path : str
        The folder.
    manifest : Manifest
        What it holds, as a whole.
    start : ndarray of int64, shape (n_queries + 1,)
        The offsets of the queries.
    weight : ndarray of float64, shape (n_queries,), or None
        The query weights.

    Raises
    ------
    FileFormatError
        If the folder is not a finished data set, or a file is missing or damaged.

    Examples
    --------
    >>> parts = rankwise.Parts("lists/")  # doctest: +SKIP
    >>> train, validation, test = rankwise.split(parts)  # doctest: +SKIP
    >>> sum(block.n_documents for block in train.blocks())  # doctest: +SKIP
    11996418
    """

    __slots__ = ("_chosen", "_executor", "_files", "start", "weight")

    _files: PartFiles
    _chosen: NDArray[np.int64] | None
    _executor: "Executor"
    start: NDArray[np.int64]
    weight: NDArray[np.float64] | None

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        executor: str = "threads",
        workers: int | None = None,
        memory_limit: int | str | None = None,
    ) -> None:
        self._set(PartFiles(path, check=True), None, executor_of(executor, workers, memory_limit))

    def _set(self, files: "PartFiles", chosen: NDArray[np.int64] | None, executor: "Executor | None" = None) -> None:
        self._files, self._chosen = files, chosen
        self._executor = Threads() if executor is None else executor
        if chosen is None:
            self.start, self.weight = files.start, files.weight
        else:
            self.start = offsets(np.diff(files.start)[chosen])
            self.weight = None if files.weight is None else files.weight[chosen]
        self.start.flags.writeable = False

    @classmethod
    def _reopen(cls, path: str, sha256: str, chosen: NDArray[np.int64] | None) -> "Parts":
        """The same data set in another process; an error if the folder holds another one now."""
        files = PartFiles(path, check=False)
        if files.manifest.index.sha256 != sha256:
            raise FileFormatError(f"{path} was replaced by another data set while it was in use")
        parts = object.__new__(cls)
        parts._set(files, chosen)
        return parts

    def __reduce__(self) -> tuple[Any, ...]:
        return Parts._reopen, (self.path, self.manifest.index.sha256, self._chosen)

    # ------------------------------------------------------------------------------------------- looking at it

    @property
    def path(self) -> str:
        """The folder."""
        return self._files.path

    @property
    def manifest(self) -> Manifest:
        """The manifest of the whole data set, of which this may be a selection."""
        return self._files.manifest

    @property
    def chosen(self) -> NDArray[np.int64] | None:
        """The numbers of the chosen queries in the whole data set; None for the data set itself."""
        return self._chosen

    @property
    def n_features(self) -> int:
        """The number of features."""
        return self.manifest.features

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """The names of the features, or None."""
        return self.manifest.feature_names

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the features."""
        return np.dtype(self.manifest.dtype)

    @property
    def has_labels(self) -> bool:
        """Whether the documents are judged."""
        return self.manifest.labelled

    @property
    def scaling(self) -> "Scaler | None":
        """The fitted scaler that made the features, or None."""
        return self._files.scaling

    @property
    def built_by(self) -> Any:
        """The fitted FeatureBuilder that made the features, if :func:`rankwise.load` opened the data set; or None."""
        return self._files.built_by

    @property
    def bytes(self) -> int:
        """The bytes of features and labels that one pass over these queries reads."""
        return self.n_documents * (self.n_features * self.dtype.itemsize + 8 * self.has_labels)

    def qid(self, first: int = 0, last: int | None = None) -> NDArray[Any] | None:
        """The ids of a range of queries, read from the files.

        Parameters
        ----------
        first : int, default=0
            The first query.
        last : int, default=None
            The query after the last one; None means the end.

        Returns
        -------
        ids : ndarray, shape (last - first,), or None
            The ids; None where the queries have none.
        """
        if self.manifest.ids == "none":
            return None
        first, last, _ = slice(first, last).indices(len(self))
        found: list[Any] = [self._files.part(part).ids(key) for part, key in self._pieces(first, last)]
        return np.concatenate(found) if found else np.zeros(0, dtype=str if self.manifest.ids == "texts" else np.int64)

    def names(self) -> list[Any]:
        """The ids of all queries as Python values; the positions 0, 1, ... where they have none."""
        ids = self.qid()
        return list(range(len(self))) if ids is None else list(ids.tolist())

    def _label_range(self) -> str:
        """What is said about labels: their range, where the manifest has it."""
        known = self.manifest.facts.get("labels")
        if not self.has_labels:
            return "no labels"
        try:
            return f"labels {known[0][0]:g} to {known[-1][0]:g}" if known else "labels"
        except (TypeError, ValueError, IndexError, KeyError):  # facts are not checked, because nothing relies on them
            return "labels"

    def _repr_html_(self) -> str:
        """The HTML that notebooks show: the numbers, and the first queries."""
        from rankwise.queries.html import parts_html

        return parts_html(self)

    def __repr__(self) -> str:
        labels = self._label_range()
        cut = f"{plural(len(self.manifest.parts), 'part')} in {self.path}"
        part = "" if self._chosen is None else "some of "
        return (
            f"Parts({plural(len(self), 'query', 'queries')}, {plural(self.n_documents, 'document')}, "
            f"{plural(self.n_features, 'feature')}, {labels}, {part}{cut})"
        )

    # ------------------------------------------------------------------------------------------- reading queries

    def chunks(self) -> list[tuple[int, int]]:
        """Ranges of queries for sums over the data set, which depend on ``start`` alone.

        Returns
        -------
        chunks : list of (int, int)
            (first, last): the chunk of queries first..last-1.
        """
        return list(parallel.query_chunks(self.start))

    def block(self, first: int, last: int) -> Queries:
        """A range of queries, their rows grouped.

        Parameters
        ----------
        first : int
            The first query.
        last : int
            The query after the last one.

        Returns
        -------
        queries : Queries
            Views of the mapped file where consecutive queries of one file are asked for, otherwise a copy.
        """
        if not 0 <= first <= last <= len(self):
            raise DataError(f"a block must be a range of the {len(self):,} queries, got {first:,} to {last:,}")
        pieces = [self._files.part(part)[key] for part, key in self._pieces(first, last)]
        if not pieces:
            pieces = [self._files.empty()]
        block = pieces[0] if len(pieces) == 1 else join_blocks(pieces)
        return self._complete(block, first, last)

    def _complete(self, block: Queries, first: int, last: int) -> Queries:
        """The block with what other parts have: weights of 1, empty document ids."""
        lacking: dict[str, Any] = {}
        if block.weight is None and self.weight is not None:
            lacking["weight"] = self.weight[first:last]
        if block.docid is None and self.manifest.docids:
            lacking["docid"] = StringColumn.empty(block.n_documents)
        if block.document_weight is None and self.manifest.document_weights:
            lacking["document_weight"] = np.ones(block.n_documents)
        if self.built_by is not None:
            lacking["built_by"] = self.built_by
        return block._replace(**lacking) if lacking else block

    def blocks(self) -> Iterator[Queries]:
        """The queries of every chunk, in order.

        Yields
        ------
        queries : Queries
            As :meth:`block` gives them.
        """
        for first, last in self.chunks():
            yield self.block(first, last)

    def __iter__(self) -> Iterator[Query]:
        return (query for block in self.blocks() for query in block)

    @overload
    def __getitem__(self, key: int | np.integer[Any]) -> Query: ...
    @overload
    def __getitem__(self, key: slice | Sequence[int] | NDArray[Any] | tuple[Any, ...]) -> "Parts": ...
    def __getitem__(self, key: Any) -> "Query | Parts":
        """One query for a number; the queries of a slice, a mask or a list of numbers, without reading them."""
        if isinstance(key, (int, np.integer)):
            place = range(len(self))[int(key)]
            return self.block(place, place + 1)[0]
        try:
            if not isinstance(key, slice):
                key = np.asarray(key) if len(key) else np.zeros(0, dtype=np.int64)
            every = np.arange(len(self), dtype=np.int64) if self._chosen is None else self._chosen
            chosen = every[key]
            if chosen.ndim != 1:
                raise IndexError(f"found {chosen.ndim} dimensions")
        except (IndexError, TypeError) as error:
            raise DataError(f"queries are chosen by number, slice, mask or list of numbers: {error}") from error
        found = object.__new__(Parts)
        found._set(self._files, chosen, self._executor)
        return found

    # ------------------------------------------------------------------------------------------- computing

    def on(
        self,
        executor: Any,
        workers: int | None = None,
        *,
        memory_limit: int | str | None = None,
        strict: bool = True,
    ) -> "Parts":
        """The same queries, with passes computed by others; no bit of any result depends on who computes.

        Parameters
        ----------
        executor : {"threads", "processes"} or distributed.Client
            Threads of this process, worker processes on this machine, or the workers of a Dask cluster, which must
            see the folder under the same path.
        workers : int, default=None
            Number of threads or processes; None is the number of cores.
        memory_limit : int or str, default=None
            The largest number of bytes, or a text such as "2GB", of what workers keep between passes, on Dask per
            worker; what does not fit is computed again. None is 1 GB.
        strict : bool, default=True
            Whether workers of a cluster whose arithmetic differs from that of this process raise an error.

        Returns
        -------
        Parts
            The same queries.
        """
        found = object.__new__(Parts)
        found._set(self._files, self._chosen, executor_of(executor, workers, memory_limit, strict))
        return found

    def estimate(self, ranker: Any) -> "Estimate":
        """What a fit of a ranker will cost; one chunk is computed twice to find the speed.

        Parameters
        ----------
        ranker : Ranker
            A ranker that runs on parts.

        Returns
        -------
        Estimate
            Passes, bytes and seconds, and who would compute fastest; it prints as a sentence.
        """
        return ranker._estimate(self.as_source())  # type: ignore[no-any-return]

    @property
    def identity(self) -> str:
        """A digest of the data set and of the choice of its queries."""
        found = hashlib.blake2b(self.manifest.index.sha256.encode(), digest_size=16)
        for part in self.manifest.parts:
            found.update(part.sha256.encode())
        if self._chosen is not None:
            found.update(self._chosen.tobytes())
        return found.hexdigest()

    @property
    def executor(self) -> "Executor":
        """The executor of passes."""
        return self._executor

    def as_source(self, verbose: bool = False) -> ChunkedQueries:
        """The queries as algorithms see them, which compute by passes; ``verbose`` logs every pass."""
        return ChunkedQueries.of(self, self._executor, verbose=verbose)

    def to_queries(self, *, force: bool = False) -> Queries:
        """All queries in memory.

        Parameters
        ----------
        force : bool, default=False
            Whether to read them even if they take more than half of the free memory.

        Returns
        -------
        queries : Queries
            The queries.

        Raises
        ------
        DataError
            If they would take more than half of the free memory.
        """
        free = available_memory()
        if not force and free is not None and self.bytes > _SHARE * free:
            raise DataError(
                f"{self.path} would take {self.bytes / 2**30:,.1f} GiB in memory, more than half of the "
                f"{free / 2**30:,.1f} GiB that are free: work on the parts, choose some of the queries, or give "
                "force=True"
            )
        whole = self.block(0, len(self))
        return whole._replace(**{name: _own(getattr(whole, name)) for name in ("X", "y", "document_weight")})

    def labels(self) -> NDArray[np.float64]:
        """The labels of all documents: 8 bytes each.

        Returns
        -------
        y : ndarray of float64, shape (n_documents,)
            The labels.

        Raises
        ------
        DataError
            If the queries carry no labels.
        """
        if not self.has_labels:
            raise DataError("these queries carry no labels, and labels are needed here")
        found = [block.labels() for block in self.blocks()]
        return np.concatenate(found) if found else np.zeros(0)

    def lazy(self) -> Queries:
        """The queries with labels and ids in memory, and features that are read when rows of them are asked for.

        ``X`` of these `Queries` is a :class:`LazyRows`, which compiled functions do not take: this is for functions
        that read ``X`` in blocks of rows.

        Returns
        -------
        queries : Queries
            About 16 bytes per document in memory, and the document ids.
        """
        X: Any = LazyRows(self)
        blocks = [self._without_features(first, last) for first, last in self.chunks()]
        whole = join_blocks(blocks) if len(blocks) > 1 else self._without_features(0, len(self))
        return whole._replace(X=X)

    def _without_features(self, first: int, last: int) -> Queries:
        block = self.block(first, last)
        return block._replace(X=np.zeros((block.n_documents, 0), self.dtype))

    def fingerprints(self) -> "Marks":
        """The fingerprints of these queries, from the index.

        Returns
        -------
        marks : structured ndarray, shape (n_queries,)
            What :func:`rankwise.queries.fingerprints.fingerprints` computes.
        """
        from rankwise.queries.fingerprints import FINGERPRINT, fingerprints, pack_marks  # opening needs no compiler

        index, count = self._files.index, self.manifest.queries
        if "content" not in index:  # older versions computed other fingerprints
            blocks = (fingerprints(self.block(first, last)) for first, last in self.chunks())
            return np.concatenate([np.zeros(0, FINGERPRINT), *blocks])
        marks = pack_marks(index.array("content", np.uint64, (count,)), index.array("sketches", np.uint32, (count, 4)))
        return marks if self._chosen is None else marks[self._chosen]

    def verify(self, *, verbose: bool = False) -> None:
        """Read all files of the data set and compare their checksums with the manifest.

        Parameters
        ----------
        verbose : bool, default=False
            Whether to show a progress bar on a terminal.

        Raises
        ------
        FileFormatError
            If a file is missing or has changed; the message names it.
        """
        files = (self.manifest.index, *self.manifest.parts)
        total = sum(entry.bytes for entry in files)
        with throughput("verifying", total, enabled=verbose) as bar:
            for entry in files:
                found = checksum(Path(self.path) / entry.file, lambda size: bar.advance_rows(0, size))
                if found != entry.sha256:
                    raise FileFormatError(
                        f"{Path(self.path) / entry.file} is damaged: its checksum is not the one in the manifest"
                    )

    @classmethod
    def from_files(cls, files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> "Parts":
        """Make a data set of rankwise files that another program wrote, such as one per partition of Spark.

        The manifest and the index are written into the folder of the files, the manifest last. Files that hold no
        queries are left out. A query whose rows are in two files raises an error that names it.

        Parameters
        ----------
        files : path or list of paths
            The folder of the files, or the files, which stand in one folder. Their order is that of their names.

        Returns
        -------
        parts : Parts
            The data set.
        """
        from rankwise.queries.parts.write import adopt_files

        return cls(adopt_files(files))

    def _pieces(self, first: int, last: int) -> Iterator[tuple[int, Any]]:
        """(part, what selects its queries) for a range of queries, as few as there are changes of part."""
        if first >= last:
            return
        bounds = self._files.first_query
        if self._chosen is None:
            part = int(np.searchsorted(bounds, first, side="right")) - 1
            while first < last:
                end = min(last, int(bounds[part + 1]))
                if end > first:
                    yield part, slice(first - int(bounds[part]), end - int(bounds[part]))
                first, part = max(first, end), part + 1
            return
        numbers = self._chosen[first:last]
        owner = np.searchsorted(bounds, numbers, side="right") - 1
        edges = np.flatnonzero(np.diff(owner)) + 1
        for own in np.split(np.arange(len(numbers)), edges):
            part, key = int(owner[own[0]]), numbers[own] - bounds[owner[own[0]]]
            one_run = len(key) == key[-1] - key[0] + 1 and bool((np.diff(key) == 1).all())
            yield part, slice(int(key[0]), int(key[-1]) + 1) if one_run else key


def _own(array: Any) -> Any:
    """A copy in memory of an array that may be mapped; None stays None."""
    return None if array is None else np.array(array)
