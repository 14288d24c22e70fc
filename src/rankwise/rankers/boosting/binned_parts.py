"""The features of data sets in parts in bins: files beside the parts, written once, checked, and mapped.

A file holds the bins, the labels and the document weights of a range of queries. Thresholds are those of the same rows
in memory (:func:`~rankwise.rankers.boosting.packed_rows.sampled_rows`), so the bins are the same, too, whatever files
the data set is cut into. Files stand in a folder that is named by what decides their content: the queries, the number
of bins, the categories. A fit checks the files that it finds there by their checksums, and writes those that are
missing or damaged, each as a whole: so a run that was killed while it wrote them goes on where it was.
"""

import hashlib
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakSet, WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels import parallel
from rankwise._kernels.histograms import BLOCK
from rankwise._kernels.machine.cache import user_cache
from rankwise._store import Store, StoreWriter, open_store
from rankwise._version import __version__
from rankwise.errors import FileFormatError, RankwiseError
from rankwise.queries.grouping import offsets
from rankwise.queries.parts.files import LazyRows
from rankwise.queries.passes.chunked import ChunkedQueries
from rankwise.queries.passes.executors import Threads
from rankwise.queries.queries import Queries
from rankwise.queries.source import Chunk, Job, QueryLayout, QuerySource, block_of
from rankwise.rankers.boosting.packed_rows import (
    Lanes,
    PackedRows,
    checked_codes,
    distinct_codes,
    refuse_odd_codes,
    sampled_rows,
)

Vector = NDArray[np.float64]
Numbers = NDArray[np.int64]

FOLDER, FORMAT = ".binned", 1
_LANES, _ROWS = "lanes of bins", "binned rows"
# A data set has about so many files at least and at most, of 65,536 to 262,144 documents in between: several per
# worker, and few enough to be mapped all at once.
_FEWEST, _MOST, _LARGE = 16, 256, 4
_MONTH = 30 * 86_400  # seconds


# ---------------------------------------------------------------------------------------------------------- queries


def in_parts(sets: Sequence[Any]) -> bool:
    """Whether one of several sets is in parts."""
    return any(one.is_in_parts for one in sets)


@dataclass(frozen=True)
class QueryRanges:
    """Queries without documents, for passes that find them elsewhere.

    Attributes
    ----------
    start : ndarray of int64, shape (n_queries + 1,)
        The offsets of the queries.
    ranges : tuple of (int, int)
        The ranges of queries that results are computed of.
    bytes : int
        What a pass reads.
    """

    start: Numbers
    ranges: tuple[tuple[int, int], ...]
    bytes: int = 0
    weight = None
    n_features = 0

    def block(self, first: int, last: int) -> Queries:
        """A range of queries, without features and labels."""
        start = self.start[first : last + 1] - self.start[first]
        return Queries._trusted(np.empty((int(start[-1]), 0)), None, start)


class RangedQueries(ChunkedQueries):
    """Queries whose passes go over ranges that their source names."""

    @cached_property
    def chunks(self) -> tuple[tuple[int, int], ...]:
        """The ranges."""
        return self.source.ranges  # type: ignore[no-any-return]


@dataclass(frozen=True)
class JoinedParts(QueryLayout):
    """The queries of several sets, set after set, in parts or in memory; documents are read where they are.

    Attributes
    ----------
    sources : tuple of Parts or Queries
        The sets.
    bounds : ndarray of int64
        The offsets of the queries.
    weight : ndarray, or None
        The query weights; None where all are 1.
    """

    sources: tuple[Any, ...]
    bounds: Numbers
    weight: Vector | None = None

    @classmethod
    def of(cls, sets: Sequence[Any]) -> "JoinedParts":
        """The queries of these sets."""
        weighted = any(one.weight is not None for one in sets)
        return cls(
            tuple(one.source if one.is_in_parts else one for one in sets),
            offsets(np.concatenate([one.sizes for one in sets])),
            np.concatenate([one.query_weight for one in sets]) if weighted else None,
        )

    @property
    def start(self) -> Numbers:
        """The offsets of the queries."""
        return self.bounds

    @property
    def n_features(self) -> int:
        """The number of features."""
        return int(self.sources[0].n_features)

    @cached_property
    def firsts(self) -> list[int]:
        """The number of the first query of every set, and of all queries."""
        return [0, *np.cumsum([len(one.start) - 1 for one in self.sources]).tolist()]

    def blocks(self, first: int, last: int) -> Iterator[Queries]:
        """A range of queries in blocks, views of the files where a block stands in one."""
        for source, base in zip(self.sources, self.firsts, strict=False):
            low, high = max(first - base, 0), min(last - base, len(source.start) - 1)
            if low < high:
                for begin, end in parallel.query_chunks(source.start[low : high + 1] - source.start[low]):
                    yield _block(source, low + begin, low + end)

    def load(self, numbers: Numbers) -> Queries:
        """Some queries, ascending, in memory without their features."""
        found = []
        for source, base, end in zip(self.sources, self.firsts, self.firsts[1:], strict=False):
            own = numbers[slice(*np.searchsorted(numbers, [base, end]))] - base
            block = source[own] if isinstance(source, Queries) else source[own].block(0, len(own))
            found.append(block._replace(X=np.empty((block.n_documents, 0)), feature_names=None, qid=None, docid=None))
        whole = found[0] if len(found) == 1 else Queries.concat(found)
        return whole if self.weight is None else whole.with_weight(self.weight[numbers])

    def labels_of(self, rows: Numbers) -> Vector:
        """The labels of these rows."""
        found, order = np.empty(len(rows)), np.argsort(rows, kind="stable")
        ordered, row = rows[order], 0
        for block in self.blocks(0, len(self)):
            own = slice(*np.searchsorted(ordered, [row, row + block.n_documents]))
            found[order[own]] = block.labels()[ordered[own] - row]
            row += block.n_documents
        return found

    def sample(self, rows: Numbers) -> list[tuple[NDArray[Any], Numbers]]:
        """Features of some rows, ascending, and their numbers there, set by set."""
        found = []
        for source, base, end in zip(self.sources, self.firsts, self.firsts[1:], strict=False):
            low, high = np.searchsorted(rows, [self.start[base], self.start[end]])
            own = rows[low:high] - self.start[base]
            if isinstance(source, Queries):
                found.append((np.asarray(source.X), source.rows[own]))
            else:
                found.append((LazyRows(source)[own], np.arange(len(own))))
        return found


def _block(source: Any, first: int, last: int) -> Queries:
    return block_of(source, first, last) if isinstance(source, Queries) else source.block(first, last)


# ------------------------------------------------------------------------------------------------------------ files


_opened: "WeakValueDictionary[str, Any]" = WeakValueDictionary()


class BinnedFile(NamedTuple):
    """The file of a range of queries.

    Attributes
    ----------
    path : str
        Its name.
    about : str
        A digest of what decides its content.
    first, last : int
        The queries: first..last-1.
    """

    path: str
    about: str
    first: int
    last: int

    def open(self) -> tuple[NDArray[np.uint32], Vector, Vector | None]:
        """(words, labels, document weights), mapped; a file is mapped once in a process."""
        store = self._store()
        words = _opened.get(self.path)
        if words is None:
            place = store._place("words", np.uint32, (None, None, None))
            words = store.array("words")
            if words.size:
                # a private copy of what is written, which is nothing: kernels are compiled for arrays that can be
                words = np.asarray(np.memmap(self.path, place.dtype, "c", place.offset, place.shape))
            _opened[self.path] = words
        weight = store.map("document_weight", np.float64, (None,)) if "document_weight" in store else None
        return words, store.map("y", np.float64, (None,)), weight

    def holes(self) -> NDArray[np.uint8] | None:
        """Which lanes have NaN, if the file is there and whole."""
        with suppress(FileFormatError):
            store = self._store()
            arrays = {name: store.map(name) for name in sorted(store.places)}
            if store.metadata.get("sha256") == _digest(arrays):
                return np.array(arrays["holes"])
        return None

    def write(self, rows: PackedRows, y: Vector, document_weight: Vector | None) -> NDArray[np.uint8]:
        """Write the file as a whole; returns which lanes have NaN."""
        holes: NDArray[np.uint8] = (rows.facts[:, 1] != 0).astype(np.uint8)
        arrays: dict[str, NDArray[Any]] = {"words": rows.words, "y": y, "holes": holes}
        if document_weight is not None:
            arrays["document_weight"] = document_weight
        _write(self.path, _ROWS, self.about, arrays)
        return holes

    def _store(self) -> Store:
        return _read(self.path, _ROWS, self.about)


def _write(path: str, kind: str, about: str, arrays: dict[str, NDArray[Any]]) -> None:
    with StoreWriter(path, kind) as file:
        for name, array in arrays.items():
            file.append(name, array)
        file.metadata |= {"about": about, "sha256": _digest(dict(sorted(arrays.items())))}


def _read(path: str, kind: str, about: str) -> Store:
    """The store of a file, or an error if it is not there or of another data set."""
    store = open_store(path)
    if store.kind != kind or store.metadata.get("about") != about:
        raise FileFormatError(f"{path} does not hold the {kind} of this data set: remove the folder it stands in")
    return store


def _digest(arrays: dict[str, NDArray[Any]]) -> str:
    """SHA-256 of arrays, which are not copied."""
    found = hashlib.sha256()
    for name, array in arrays.items():
        found.update(f"{name} {array.dtype.str} {array.shape}".encode())
        if array.size:
            found.update(np.ascontiguousarray(array).data.cast("B"))
    return found.hexdigest()


@dataclass(frozen=True)
class BinJob(Job):
    """Check the file of every range, and write it where it is missing or damaged; the result says which have NaN.

    Attributes
    ----------
    own : JoinedParts
        The queries of a set.
    files : mapping of int to BinnedFile
        Their files, by the number of the first query in the set.
    lanes : Lanes
        The thresholds.
    """

    own: JoinedParts
    files: Mapping[int, BinnedFile]
    lanes: Lanes

    keeps_prepared = False

    def run(self, chunk: Chunk, prepared: Any, *arguments: Any) -> NDArray[np.uint8]:
        file = self.files[chunk.offset]
        found = file.holes()
        if found is not None:
            return found
        rows, labels, weights = chunk.queries.n_documents, [np.empty(0)], [np.empty(0)]
        weighted = False

        def blocks() -> Iterator[Queries]:
            nonlocal weighted
            for block in self.own.blocks(chunk.offset, chunk.offset + len(chunk.queries)):
                labels.append(block.labels())
                own = block.document_weight
                weighted |= own is not None
                weights.append(np.ones(block.n_documents) if own is None else own)
                yield block

        packed = PackedRows.filled(self.lanes, blocks(), rows, BLOCK, 1)
        return file.write(packed, np.concatenate(labels), np.concatenate(weights) if weighted else None)

    @property
    def title(self) -> str:
        return "bins"


@dataclass(frozen=True)
class BinnedParts(Lanes):
    """Data sets in parts, with or without sets in memory, in bins.

    Attributes
    ----------
    joined : JoinedParts
        The queries.
    files : tuple of BinnedFile
        Their files, in order.
    queries : ChunkedQueries
        One of the sets in parts: its executor computes, its checkpoint records.
    models : WeakSet
        The models that grow on them.
    """

    joined: JoinedParts
    files: tuple[BinnedFile, ...]
    queries: ChunkedQueries
    models: "WeakSet[Any]" = field(default_factory=WeakSet)

    @classmethod
    def of(
        cls,
        sets: Sequence[Any],
        categorical: Sequence[int],
        bins: int,
        order: Numbers | None,
        n_jobs: int | None,
    ) -> "BinnedParts":
        """Choose thresholds, and write the files that are not there yet.

        Parameters
        ----------
        sets : sequence of QuerySource
            The sets, one of them in parts.
        categorical : sequence of int
            Features whose values are codes of categories.
        bins : int
            The largest number of bins of a feature, with that of NaN.
        order : ndarray of int64, or None
            The order in which features fill groups of four; None is that of the features.
        n_jobs : int or None
            Number of threads, where threads compute.

        Returns
        -------
        BinnedParts
            The bins.
        """
        joined = JoinedParts.of(sets)
        queries = next(one for one in sets if one.is_in_parts)
        ranges = [_file_ranges(one.start) for one in sets]
        about = [FORMAT, __version__, bins, sorted(categorical), None if order is None else order.tolist(), ranges]
        identities = [source.identity for source in joined.sources]
        digest = hashlib.sha256(repr((about, identities)).encode()).hexdigest()[:32]
        folder = _folder(queries, digest)
        lanes = _lanes(str(folder / "lanes.rankwise"), digest, sets, joined, categorical, bins, order, n_jobs)
        facts, files = lanes.facts.copy(), list[BinnedFile]()
        for one, source, base, own in zip(sets, joined.sources, joined.firsts, ranges, strict=False):
            named = {
                first: BinnedFile(str(folder / f"{base + first:010d}.rankwise"), digest, base + first, base + last)
                for first, last in own
            }
            files += named.values()
            executor, size = (one.executor, one.bytes) if one.is_in_parts else (Threads(), 0)
            passes = RangedQueries(QueryRanges(one.start, tuple(own), size), executor, account=queries.account)
            job = BinJob(JoinedParts((source,), one.start), named, lanes)
            for holes in passes.map(job, n_jobs=n_jobs) if lanes.splittable else ():
                facts[:, 1] |= holes
        return cls(lanes.feature, lanes.cut, facts, lanes.n_features, joined, tuple(files), queries)

    @property
    def n_documents(self) -> int:
        """Number of rows."""
        return self.joined.n_documents

    def ranges(self, n_jobs: int | None) -> tuple[tuple[int, int], ...]:
        """Ranges of queries for passes, of whole files: enough for all workers, and of a million documents or more."""
        workers = self.queries.executor.workers(n_jobs)
        count = min(max(workers, min(self.n_documents >> 20, 64)), len(self.files))
        bounds = np.linspace(0, len(self.files), count + 1).astype(int).tolist()
        return tuple((self.files[low].first, self.files[high - 1].last) for low, high in pairwise(bounds))


def _file_ranges(start: Numbers) -> list[tuple[int, int]]:
    """Ranges of queries, of whole chunks, for one file each."""
    documents = int(start[-1])
    least = max(min(documents // _FEWEST, _LARGE * parallel.CHUNK), documents // _MOST)
    found: list[tuple[int, int]] = []
    for first, last in parallel.query_chunks(start):
        if found and start[found[-1][1]] - start[found[-1][0]] < least:
            found[-1] = found[-1][0], last
        else:
            found.append((first, last))
    return found


def _folder(queries: ChunkedQueries, digest: str) -> Path:
    """The folder of the files: beside the parts, or in the cache of the user where that cannot be written to.

    The cache is not for clusters, whose machines have one each.
    """
    places = [Path(queries.source.path) / FOLDER]
    if queries.executor.name != "dask":
        places.append(user_cache() / FOLDER[1:])
    for place in places:
        with suppress(OSError):
            found = place / digest
            found.mkdir(parents=True, exist_ok=True)
            if os.access(found, os.W_OK):
                os.utime(found)
                _remove_old(place)
                return found
    raise RankwiseError(f"trees write the bins of all features into a folder, and {places[0]} cannot be written to")


def _remove_old(place: Path) -> None:
    """Remove the bins that no fit has used for a month."""
    for other in place.iterdir():
        if time.time() - other.stat().st_mtime > _MONTH:
            shutil.rmtree(other, ignore_errors=True)


def _lanes(
    path: str,
    about: str,
    sets: Sequence[QuerySource],
    joined: JoinedParts,
    categorical: Sequence[int],
    bins: int,
    order: Numbers | None,
    n_jobs: int | None,
) -> Lanes:
    """The thresholds from their file, or chosen, and written there."""
    with suppress(FileFormatError):
        store = _read(path, _LANES, about)
        arrays = {name: store.array(name) for name in sorted(store.places)}
        if store.metadata.get("sha256") == _digest(arrays):
            return Lanes(arrays["feature"], arrays["cut"], arrays["facts"], joined.n_features)
    codes: dict[int, list[Vector]] = {number: [] for number in categorical}
    if categorical:
        for one in sets:
            for found in one.map(CodesJob(tuple(categorical)), n_jobs=n_jobs):
                for number, own in zip(categorical, found, strict=True):
                    codes[number].append(own)
    for number, found in codes.items():
        refuse_odd_codes(number, np.concatenate(found))
    known = {number: checked_codes(number, found) for number, found in codes.items()}
    lanes = Lanes.choose(joined.sample(sampled_rows(joined.n_documents)), known, bins, order, n_jobs)
    if lanes.splittable:
        _write(path, _LANES, about, {"feature": lanes.feature, "cut": lanes.cut, "facts": lanes.facts})
    return lanes


@dataclass(frozen=True)
class CodesJob(Job):
    """The codes of every chunk by categorical feature.

    Attributes
    ----------
    numbers : tuple of int
        The features.
    """

    numbers: tuple[int, ...]

    keeps_prepared = False

    def run(self, chunk: Chunk, prepared: Any, *arguments: Any) -> list[Vector]:
        return [distinct_codes(chunk.block, number) for number in self.numbers]
