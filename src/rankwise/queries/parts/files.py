"""The files of a data set in parts, opened when they are used: documents mapped, a few files at a time.

:class:`LazyRows` is their features as something that is indexed by rows, as an array is.
"""

import hashlib
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankwise._files import path_of
from rankwise._store import Store, open_store
from rankwise.errors import DataError, FileFormatError, RankwiseError
from rankwise.queries import checks, grouping
from rankwise.queries.concat import join_or_ones
from rankwise.queries.grouping import StringColumn, offsets
from rankwise.queries.parts.manifest import INDEX_KIND, Manifest, PartFile, read_manifest
from rankwise.queries.queries import Queries
from rankwise.queries.selection import as_scaling
from rankwise.queries.stored import KIND, read_scaler, read_texts

if TYPE_CHECKING:
    from rankwise.queries.parts.parts import Parts
    from rankwise.queries.scaling import Scaler

# Files that are mapped at the same time: each takes up to eight descriptors of the usual 1,024.
_MAPPED = 48
# Bytes that a checksum reads at a time.
_READ = 1 << 22


class OpenPart:
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
        self._texts = read_texts(store, "qid", entry.queries, mapped=True)
        self._queries = Queries._trusted(
            store.map("X", manifest.dtype, shape),
            store.map("y", np.float64, shape[:1]) if manifest.labelled else None,
            start,
            None if rows is None else grouping.as_layout(start, rows, entry.documents).rows,
            weight=store.array("weight", np.float64, (entry.queries,)) if "weight" in store else None,
            docid=read_texts(store, "docid", entry.documents, mapped=True),
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
                raise DataError(f"query weights {checks.WEIGHTS}")
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


class PartFiles:
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
            raise FileFormatError(f"{store.path} is damaged: query weights {checks.WEIGHTS}")
        self.index = store
        self.built_by: Any = None
        self.scaling = as_scaling(read_scaler(store), manifest.features)
        if check:
            for part in manifest.parts:
                self._check_header(part)
        self._open_parts: OrderedDict[int, OpenPart] = OrderedDict()
        self._lock = threading.Lock()

    def part(self, number: int) -> OpenPart:
        """One part, opened and checked when it is first used."""
        with self._lock:
            if number in self._open_parts:
                self._open_parts.move_to_end(number)
                return self._open_parts[number]
        entry, first = self.manifest.parts[number], int(self.first_query[number])
        start = self.start[first : first + entry.queries + 1]
        opened = OpenPart(self._open(entry, KIND), entry, self.manifest, start - start[0], self.scaling)
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


def join_blocks(pieces: list[Queries]) -> Queries:
    """Consecutive blocks of one data set as one block, copied together."""

    def every(name: str) -> Any:
        values = [getattr(piece, name) for piece in pieces]
        return None if values[0] is None else np.concatenate(values)

    documents = [piece.n_documents for piece in pieces]
    docid = None
    if any(piece.docid is not None for piece in pieces):
        columns = (StringColumn.empty(piece.n_documents) if piece.docid is None else piece.docid for piece in pieces)
        docid = StringColumn.concat(columns)
    return Queries._trusted(
        every("X"),
        every("y"),
        offsets(np.concatenate([piece.sizes for piece in pieces])),
        weight=join_or_ones([piece.weight for piece in pieces], map(len, pieces)),
        qid=every("qid"),
        docid=docid,
        feature_names=pieces[0].feature_names,
        scaling=pieces[0].scaling,
        document_weight=join_or_ones([piece.document_weight for piece in pieces], documents),
    )


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


class LazyRows:
    """The features of a data set in parts, read when rows are asked for: ``X[rows]`` is an array in memory.

    Parameters
    ----------
    parts : Parts
        The data set.
    """

    ndim = 2

    def __init__(self, parts: "Parts") -> None:
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
            return np.asarray(self[np.array([key])][0])
        if isinstance(key, slice) and key.step in (None, 1):
            first, last, _ = key.indices(len(self))
            return self._range(first, max(first, last))
        return self._gather(np.arange(len(self))[key])

    def _range(self, first: int, last: int) -> NDArray[Any]:
        """Consecutive rows."""
        start = self._parts.start
        query = max(0, int(np.searchsorted(start, first, side="right")) - 1)
        end = min(len(start) - 1, max(query, int(np.searchsorted(start, last, side="left"))))
        begin = int(start[query])
        return np.asarray(self._parts.block(query, end).X[first - begin : last - begin])

    def _gather(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Rows in any order, read chunk by chunk."""
        start, found = self._parts.start, np.empty((len(rows), self.shape[1]), self.dtype)
        order = np.argsort(rows, kind="stable")
        ordered = rows[order]
        for first, last in self._parts.chunks():
            own = slice(*np.searchsorted(ordered, [start[first], start[last]]))
            if own.stop > own.start:
                found[order[own]] = self._parts.block(first, last).X[ordered[own] - start[first]]
        return found
