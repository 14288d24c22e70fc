"""`Parts`: judged queries in a folder of stored files, larger than memory, read block by block.

A data set in parts is the same sequence of queries as :class:`rankwise.Queries` of the same data: query numbers, splits
and folds agree. Only what there is one of per query is in memory (8 to 40 bytes each). Documents are mapped from the
files, and :meth:`Parts.block` gives any range of queries as `Queries`.

All sums over a data set go over :meth:`Parts.chunks`, ranges of queries that depend on the sizes of the queries alone.
So no bit of a result depends on how the data set is cut into files. Files that :class:`rankwise.data.parts.write.
PartsWriter` writes end where chunks end, and their blocks are views of the files; blocks that cross files are copied
together.
"""

import hashlib
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import DataError, FileFormatError, RankwiseError
from rankwise._kernels import drive
from rankwise._paths import path_of
from rankwise._progress import throughput
from rankwise._store import Store, open_store
from rankwise.data import checks, grouping
from rankwise.data.checks import plural
from rankwise.data.fingerprints import Marks, packed
from rankwise.data.parts.manifest import INDEX_KIND, Manifest, PartFile, read_manifest
from rankwise.data.passes.chunked import ChunkedQueries
from rankwise.data.passes.executors import executor_of
from rankwise.data.passes.threads import Threads
from rankwise.data.queries import Queries
from rankwise.data.selection import Query, as_scaling
from rankwise.data.stored import KIND, read_scaler
from rankwise.data.string_column import StringColumn, offsets

if TYPE_CHECKING:
    from rankwise.data.passes.estimate import Estimate
    from rankwise.data.passes.work import Executor
    from rankwise.data.scaling import Scaler

# Files that are mapped at the same time: each takes up to eight descriptors of the usual 1,024.
_MAPPED = 48
# The share of the free memory that `to_queries` takes without `force`.
_SHARE = 0.5
# Bytes that a checksum reads at a time.
_READ = 1 << 22


class Parts:
    """Judged queries in a folder of files with a manifest, as ``rankwise convert`` writes it.

    The manifest, the index and the header of every file are checked here, so a missing or damaged part is named
    before anything is computed; :meth:`verify` reads everything and compares checksums. Files that are replaced or
    changed later are found when they are opened.

    Parameters
    ----------
    path : path
        The folder.
    executor : {"threads", "processes"}, default="threads"
        Who computes passes over the queries; see :meth:`on`.
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

    _files: "_Files"
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
        self._set(_Files(path, check=True), None, executor_of(executor, workers, memory_limit))

    def _set(self, files: "_Files", chosen: NDArray[np.int64] | None, executor: "Executor | None" = None) -> None:
        self._files, self._chosen = files, chosen
        self._executor = Threads() if executor is None else executor
        if chosen is None:
            self.start, self.weight = files.start, files.weight
        else:
            self.start = offsets(np.diff(files.start)[chosen])
            self.weight = None if files.weight is None else files.weight[chosen]
        self.start.flags.writeable = False

    @classmethod
    def _reopened(cls, path: str, sha256: str, chosen: NDArray[np.int64] | None) -> "Parts":
        """The same data set in another process; an error if the folder holds another one now."""
        files = _Files(path, check=False)
        if files.manifest.index.sha256 != sha256:
            raise FileFormatError(f"{path} was replaced by another data set while it was in use")
        parts = object.__new__(cls)
        parts._set(files, chosen)
        return parts

    def __reduce__(self) -> tuple[Any, ...]:
        return Parts._reopened, (self.path, self.manifest.index.sha256, self._chosen)

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
    def n_documents(self) -> int:
        """The number of documents of all queries together."""
        return int(self.start[-1])

    @property
    def n_features(self) -> int:
        """The number of features."""
        return self.manifest.features

    @property
    def shape(self) -> tuple[int, int]:
        """(queries, features), as `Queries` have it."""
        return len(self), self.n_features

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
    def sizes(self) -> NDArray[np.int64]:
        """The number of documents of every query."""
        return np.diff(self.start)

    @property
    def query_weight(self) -> NDArray[np.float64]:
        """The weight of every query; ones where ``weight`` is None."""
        return np.ones(len(self)) if self.weight is None else self.weight

    @property
    def counted(self) -> NDArray[np.int64]:
        """The numbers of the queries of non-zero weight."""
        return np.flatnonzero(self.query_weight)

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

    def __len__(self) -> int:
        return len(self.start) - 1

    def _label_range(self) -> str:
        """What is said about labels: their range, where the manifest has it."""
        known = self.manifest.facts.get("labels")
        if not self.has_labels:
            return "no labels"
        try:
            return f"labels {known[0][0]:g} to {known[-1][0]:g}" if known else "labels"  # type: ignore[index]
        except (TypeError, ValueError, IndexError, KeyError):  # facts are not checked, because nothing relies on them
            return "labels"

    def _repr_html_(self) -> str:
        """The HTML that notebooks show: the numbers, and the first queries."""
        from rankwise.data.shown import parts_html

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
        return list(drive.query_chunks(self.start))

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
            raise DataError(f"a block is a range of the {len(self):,} queries: found {first:,} to {last:,}")
        pieces = [self._files.part(part)[key] for part, key in self._pieces(first, last)]
        if not pieces:
            pieces = [self._files.empty()]
        block = pieces[0] if len(pieces) == 1 else _joined(pieces)
        return self._completed(block, first, last)

    def _completed(self, block: Queries, first: int, last: int) -> Queries:
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
        return ranker._estimate(self.chunked())  # type: ignore[no-any-return]

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
        """Who computes passes."""
        return self._executor

    def chunked(self, **account: Any) -> ChunkedQueries:
        """The queries as functions of the package see them that compute by passes."""
        return ChunkedQueries.of(self, self._executor, **account)

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
        free = checks.available_memory()
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
        whole = _joined(blocks) if len(blocks) > 1 else self._without_features(0, len(self))
        return whole._replace(X=X)

    def _without_features(self, first: int, last: int) -> Queries:
        block = self.block(first, last)
        return block._replace(X=np.zeros((block.n_documents, 0), self.dtype))

    def fingerprints(self) -> Marks:
        """The fingerprints of these queries, from the index.

        Returns
        -------
        marks : structured ndarray, shape (n_queries,)
            What :func:`rankwise.data.fingerprints.fingerprints` computes.
        """
        index, count = self._files.index, self.manifest.queries
        marks = packed(index.array("hash", np.uint64, (count,)), index.array("documents", np.uint32, (count, 4)))
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
        from rankwise.data.parts.write import adopt_files

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


# ------------------------------------------------------------------------------------------------------ the open files


class _Part:
    """One file: its documents mapped, its query ids read when they are asked for."""

    def __init__(
        self,
        store: Store,
        entry: PartFile,
        manifest: Manifest,
        start: NDArray[np.int64],
        scaling: "Scaler | None",
    ) -> None:
        self._path, self._as_texts = store.path, manifest.ids == "texts"
        shape = (entry.documents, manifest.features)
        if not np.array_equal(store.array("start", np.int64, (entry.queries + 1,)), start):
            raise FileFormatError(f"{store.path} is damaged: its queries do not have the sizes that the index has")
        rows = store.map("rows", np.int64, (entry.documents,)) if "rows" in store else None
        self._numbers = store.map("qid", shape=(entry.queries,)) if "qid" in store else None
        self._texts = _mapped_texts(store, "qid", entry.queries)
        self._queries = Queries._trusted(
            store.map("X", manifest.dtype, shape),
            store.map("y", np.float64, shape[:1]) if manifest.labelled else None,
            start,
            None if rows is None else grouping.as_layout(start, rows, entry.documents).rows,
            weight=store.array("weight", np.float64, (entry.queries,)) if "weight" in store else None,
            docid=_mapped_texts(store, "docid", entry.documents),
            feature_names=manifest.feature_names,
            scaling=scaling,
            document_weight=store.map("document_weight", np.float64, shape[:1]) if "document_weight" in store else None,
        )

    def __getitem__(self, key: Any) -> Queries:
        """The chosen queries, their rows grouped and their labels checked."""
        block: Queries = self._queries[key]
        try:
            if block.y is not None:
                checks.as_labels(block.y, block.n_documents)
            if block.document_weight is not None and not checks.usual_weights(block.document_weight).all():
                raise DataError(checks.WEIGHTS)
            return block._replace(qid=self.ids(key))
        except FileFormatError:
            raise
        except RankwiseError as error:
            raise FileFormatError(f"{self._path} is damaged: {error}") from error

    def ids(self, key: Any) -> NDArray[Any] | None:
        """The ids of the chosen queries, or None."""
        if self._numbers is not None:
            numbers = np.array(self._numbers[key])
            return numbers.astype(str) if self._as_texts else grouping.as_ids(numbers, "qid")
        if self._texts is None:
            return None
        chosen = list(self._texts[key])
        return grouping.as_ids(chosen if chosen else np.zeros(0, dtype=str), "qid")


class _Files:
    """The files of a folder, of which the ones used last are mapped; shared by all selections."""

    def __init__(self, path: str | os.PathLike[str], *, check: bool) -> None:
        self.path = path_of(path)
        if not os.path.isdir(self.path):
            found = "is not a folder" if os.path.exists(self.path) else "does not exist"
            raise FileFormatError(f"{self.path} {found}, expected the folder of a data set in parts")
        self.manifest = manifest = read_manifest(self.path)
        store = self._open(manifest.index, INDEX_KIND)
        self.start = store.array("start", np.int64, (manifest.queries + 1,))
        self.first_query = offsets([part.queries for part in manifest.parts])
        first_row = offsets([part.documents for part in manifest.parts])
        if not grouping.climbs(self.start, manifest.documents) or (self.start[self.first_query] != first_row).any():
            raise FileFormatError(f"{store.path} is damaged: its queries are not those of the manifest")
        self.weight = store.array("weight", np.float64, (manifest.queries,)) if "weight" in store else None
        if self.weight is not None and not checks.usual_weights(self.weight).all():
            raise FileFormatError(f"{store.path} is damaged: {checks.WEIGHTS}")
        self.index = store
        self.built_by: Any = None
        self.scaling = as_scaling(read_scaler(store), manifest.features)
        if check:
            for part in manifest.parts:
                self._check_header(part)
        self._open_parts: OrderedDict[int, _Part] = OrderedDict()
        self._lock = threading.Lock()

    def part(self, number: int) -> _Part:
        """One part, opened and checked when it is first used."""
        with self._lock:
            if number in self._open_parts:
                self._open_parts.move_to_end(number)
                return self._open_parts[number]
        entry, first = self.manifest.parts[number], int(self.first_query[number])
        start = self.start[first : first + entry.queries + 1]
        opened = _Part(self._open(entry, KIND), entry, self.manifest, start - start[0], self.scaling)
        with self._lock:
            self._open_parts[number] = opened
            while len(self._open_parts) > _MAPPED:  # blocks in use keep their mapping
                self._open_parts.popitem(last=False)
        return opened

    def empty(self) -> Queries:
        """A block without queries."""
        manifest = self.manifest
        return Queries._trusted(
            np.zeros((0, manifest.features), manifest.dtype),
            np.zeros(0) if manifest.labelled else None,
            np.zeros(1, np.int64),
            qid=None if manifest.ids == "none" else np.zeros(0, dtype=str if manifest.ids == "texts" else np.int64),
            feature_names=manifest.feature_names,
            scaling=self.scaling,
        )

    def _open(self, entry: PartFile, kind: str) -> Store:
        """A file of the size and kind that the manifest says."""
        path = Path(self.path) / entry.file
        if not path.is_file():
            raise FileFormatError(f"{path} is missing: the manifest of {self.path} lists it")
        size = path.stat().st_size
        if size != entry.bytes:
            raise FileFormatError(
                f"{path} is damaged: it has {size:,} bytes, and the manifest of {self.path} says {entry.bytes:,}"
            )
        store = open_store(path)
        if store.kind != kind:
            raise FileFormatError(f"{path} holds {store.kind!r:.40}, expected {kind}")
        return store

    def _check_header(self, entry: PartFile) -> None:
        """Compare what the header of a part says with the manifest."""
        store, width = self._open(entry, KIND), self.manifest.features
        store._place("X", self.manifest.dtype, (entry.documents, width))
        store._place("start", np.int64, (entry.queries + 1,))
        if ("y" in store) != self.manifest.labelled:
            raise FileFormatError(f"{store.path} is damaged: it has labels where the manifest has none, or none")
        if ("qid" in store or "qid.offset" in store) != (self.manifest.ids != "none"):
            raise FileFormatError(f"{store.path} is damaged: it has query ids where the manifest has none, or none")


class LazyRows:
    """The features of a data set in parts, read when rows are asked for: ``X[rows]`` is an array in memory.

    Parameters
    ----------
    parts : Parts
        The data set.
    """

    ndim = 2

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self.shape = (parts.n_documents, parts.n_features)
        self.dtype = parts.dtype

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> NDArray[Any]:
        """Rows by slice, number, mask or numbers; a second index selects features of these."""
        if isinstance(key, tuple):
            return np.asarray(self[key[0]][:, key[1]] if not np.isscalar(key[0]) else self[key[0]][key[1]])
        if isinstance(key, (int, np.integer)):
            return self[np.array([key])][0]
        if isinstance(key, slice) and key.step in (None, 1):
            first, last, _ = key.indices(len(self))
            return self._range(first, max(first, last))
        return self._gathered(np.arange(len(self))[key])

    def _range(self, first: int, last: int) -> NDArray[Any]:
        """Consecutive rows."""
        start = self._parts.start
        query = max(0, int(np.searchsorted(start, first, side="right")) - 1)
        end = min(len(start) - 1, max(query, int(np.searchsorted(start, last, side="left"))))
        begin = int(start[query])
        return np.asarray(self._parts.block(query, end).X[first - begin : last - begin])

    def _gathered(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Rows in any order, read chunk by chunk."""
        start, found = self._parts.start, np.empty((len(rows), self.shape[1]), self.dtype)
        order = np.argsort(rows, kind="stable")
        ordered = rows[order]
        for first, last in self._parts.chunks():
            own = slice(*np.searchsorted(ordered, [start[first], start[last]]))
            if own.stop > own.start:
                found[order[own]] = self._parts.block(first, last).X[ordered[own] - start[first]]
        return found


def checksum(path: Path, on_read: Callable[[int], object] | None = None) -> str:
    """The SHA-256 of a file.

    Parameters
    ----------
    path : Path
        The file.
    on_read : callable, default=None
        Receives the number of bytes each time some are read.

    Returns
    -------
    sha256 : str
        64 hexadecimal digits.
    """
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while block := file.read(_READ):
                digest.update(block)
                if on_read is not None:
                    on_read(len(block))
    except OSError as error:
        raise FileFormatError(f"{path} cannot be read: {error.strerror or error}") from error
    return digest.hexdigest()


def _mapped_texts(store: Store, name: str, count: int) -> StringColumn | None:
    """The texts of that name, mapped; None where the file has none."""
    if f"{name}.offset" not in store:
        return None
    offset = store.map(f"{name}.offset", np.int64, (count + 1,))
    data = store.map(f"{name}.bytes", np.uint8, (None,))
    if not grouping.climbs(offset, len(data)):
        raise FileFormatError(f"{store.path} is damaged: its {name} texts overlap or leave a gap")
    return StringColumn(data, offset)


def _joined(pieces: list[Queries]) -> Queries:
    """Consecutive blocks of one data set as one block, copied together."""

    def every(name: str) -> Any:
        values = [getattr(piece, name) for piece in pieces]
        return None if values[0] is None else np.concatenate(values)

    def filled(name: str, lengths: list[int]) -> Any:
        """Weights: ones where a part has none."""
        values = [getattr(piece, name) for piece in pieces]
        if all(value is None for value in values):
            return None
        return np.concatenate([np.ones(n) if one is None else one for one, n in zip(values, lengths, strict=True)])

    documents = [piece.n_documents for piece in pieces]
    docid = None
    if any(piece.docid is not None for piece in pieces):
        columns = (StringColumn.empty(piece.n_documents) if piece.docid is None else piece.docid for piece in pieces)
        docid = StringColumn.concat(columns)
    return Queries._trusted(
        every("X"),
        every("y"),
        offsets(np.concatenate([piece.sizes for piece in pieces])),
        weight=filled("weight", [len(piece) for piece in pieces]),
        qid=every("qid"),
        docid=docid,
        feature_names=pieces[0].feature_names,
        scaling=pieces[0].scaling,
        document_weight=filled("document_weight", documents),
    )


def _own(array: Any) -> Any:
    """A copy in memory of an array that may be mapped; None stays None."""
    return None if array is None else np.array(array)
