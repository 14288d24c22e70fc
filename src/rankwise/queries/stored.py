"""Judged queries in one file that holds no code, mapped back into memory.

:func:`save_queries` and :func:`load_queries` write and read a whole set. :class:`QueriesWriter` writes block after
block what is larger than memory. The file is one of :mod:`rankwise._store` with these arrays:

======================== ========= ==================================================================
array                    type      content
======================== ========= ==================================================================
X                        F32, F64  documents x features, the first array of the file
y                        F64       labels, if there are any
rows                     I64       rows, query after query, unless they are grouped
start                    I64       query q owns rows[start[q]:start[q+1]]
weight                   F64       one per query, if there are any
document_weight          F64       one per document, if there are any
judged                   U8        whether each document was judged, unless all were
qid                      a number  one per query; texts are in ``qid.bytes`` and ``qid.offset``
docid.bytes, .offset     U8, I64   one text per document
feature.bytes, .offset   U8, I64   one name per feature
scaling.center, .scale   F64       what the scaler learned
scaling.knots, .scores   F64       what one of normal scores learned; feature j begins at
scaling.knot_start       I64       knot_start[j] in both
======================== ========= ==================================================================
"""

import os
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise._store import Store, StoreWriter, read_store
from rankwise.errors import DataError, FileFormatError, RankwiseError
from rankwise.queries import checks, grouping
from rankwise.queries.checks import as_document_weights
from rankwise.queries.concat import join_or_ones
from rankwise.queries.grouping import StringColumn
from rankwise.queries.queries import Queries
from rankwise.queries.scaling import LEARNED, Scaler

KIND = "queries"
_ROWS_AT_ONCE = 1 << 20
_KINDS = {
    "i": "whole numbers",
    "u": "whole numbers",
    "f": "real numbers",
    "b": "truth values",
    "U": "texts",
    "O": "texts",
}


def save_queries(queries: Queries, path: str | os.PathLike[str]) -> None:
    """Write everything that ``queries`` hold to one file; see :meth:`Queries.save`.

    Parameters
    ----------
    queries : Queries
        The queries.
    path : path
        The file, which is replaced as a whole.
    """
    with QueriesWriter(path) as writer:
        writer.append(queries)


def load_queries(path: str | os.PathLike[str]) -> Queries:
    """Load saved queries; see :func:`rankwise.load`.

    Parameters
    ----------
    path : path
        A file that :func:`save_queries` or :class:`QueriesWriter` wrote.

    Returns
    -------
    queries : Queries
        The queries, with ``X`` mapped into memory, read-only.
    """
    with read_store(path) as store:
        if store.kind != KIND:
            raise FileFormatError(f"{store.path} holds {store.kind!r:.40}, not queries")
        return read_queries(store)


def read_queries(store: Store, mmap: bool = True) -> Queries:
    """Read queries from an opened file, which may come from a stranger.

    All arrays but ``X`` are checked. The values of ``X`` are not, because that would read all of it: they were finite
    when rankwise wrote them.

    Parameters
    ----------
    store : Store
        The opened file.
    mmap : bool, default=True
        Whether ``X`` is mapped into memory instead of read.

    Returns
    -------
    queries : Queries
        The queries of the file.

    Raises
    ------
    FileFormatError
        If the arrays cannot be those of queries.
    """
    X = (store.map if mmap else store.array)("X", shape=(None, None))
    if X.dtype not in (np.float32, np.float64):
        raise FileFormatError(f"{store.path} is damaged: its features have type {X.dtype}")
    start = store.array("start", np.int64, (None,))
    rows = store.array("rows", np.int64, (len(X),)) if "rows" in store else None
    try:
        layout = grouping.as_layout(start, rows, len(X))
        count = len(start) - 1
        return Queries._trusted(
            X,
            checks.as_labels(store.array("y", np.float64), len(X)) if "y" in store else None,
            layout.start,
            layout.rows,
            weight=_read_weights(store, "weight", count, checks.as_weights),
            qid=_read_ids(store, count),
            docid=read_texts(store, "docid", len(X)),
            feature_names=_read_names(store, X.shape[1]),
            scaling=read_scaler(store),
            document_weight=_read_weights(store, "document_weight", len(X), as_document_weights),
            judged=_read_judged(store, len(X)),
        )
    except FileFormatError:
        raise
    except RankwiseError as error:
        raise FileFormatError(f"{store.path} is damaged: {error}") from error


def read_texts(store: Store, name: str, count: int, mapped: bool = False) -> StringColumn | None:
    """The ``count`` texts of that name, in memory or mapped, or None where the file has none."""
    if f"{name}.offset" not in store:
        return None
    read = store.map if mapped else store.array
    offset, data = read(f"{name}.offset", np.int64, (count + 1,)), read(f"{name}.bytes", np.uint8, (None,))
    if not grouping.climbs(offset, len(data)):
        raise FileFormatError(f"{store.path} is damaged: its {name} texts overlap or leave a gap")
    return StringColumn(data, offset)


def read_scaler(store: Store) -> Scaler | None:
    """The scaler that :func:`append_scaler` put into the file, or None."""
    if store.metadata.get("scaling") is None:
        return None
    arrays = {
        name: store.array(f"scaling.{name}", kind) for name, kind in LEARNED.items() if f"scaling.{name}" in store
    }
    return Scaler.from_state(store.fact("scaling", dict), arrays)


def _read_weights(
    store: Store, name: str, count: int, check: Callable[[NDArray[Any], int], NDArray[np.float64]]
) -> NDArray[np.float64] | None:
    """The weights of that name, or None."""
    if name not in store:
        return None
    weight = store.array(name, np.float64, (count,))
    # a selection may hold none of non-zero weight
    return check(weight, count) if weight.any() else weight


def _read_judged(store: Store, n_rows: int) -> NDArray[np.bool_] | None:
    """Whether each document was judged, or None."""
    if "judged" not in store:
        return None
    return checks.as_judged(store.array("judged", np.uint8, (n_rows,)) != 0, store.array("y", np.float64, (n_rows,)))


def _read_ids(store: Store, count: int) -> NDArray[Any] | None:
    """The query ids, numbers or texts, or None."""
    if "qid" in store:
        return grouping.as_ids(store.array("qid", shape=(count,)), "qid")
    texts = read_texts(store, "qid", count)
    # without texts there is nothing to learn the type from
    return None if texts is None else grouping.as_ids(list(texts) if count else np.zeros(0, dtype=str), "qid")


def _read_names(store: Store, count: int) -> tuple[str, ...] | None:
    """The feature names, without repeats, or None."""
    texts = read_texts(store, "feature", count)
    if texts is not None and len(set(texts)) < count:
        raise DataError("two of its features have the same name")
    return None if texts is None else tuple(texts)


# -------------------------------------------------------------------------------------------------------------- writing


class QueriesWriter:
    """Write queries block after block into one file; they may be larger than memory.

    The file holds what ``Queries.concat(blocks)`` would: blocks that share a query id raise an error. Arrays with one
    entry per document go to the disk at once; only arrays with one entry per query are kept until the end. Blocks of
    one text may differ in two ways: whole numbers become texts where other blocks have texts as query ids, and document
    ids are empty in blocks without any where others have some.

    Parameters
    ----------
    path : path
        The file, which appears when the context is left without an error.

    Examples
    --------
    >>> with QueriesWriter("train.rankwise") as writer:  # doctest: +SKIP
    ...     for block in rankwise.iter_letor("train.txt"):
    ...         writer.append(block)
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = StoreWriter(path, KIND)
        self._opened = ExitStack()
        self._form: Form | None = None
        self._scaling: Scaler | None = None
        self._builder: Any = None
        self._start = [np.zeros(1, dtype=np.int64)]
        self._weight: list[NDArray[np.float64] | None] = []
        self._qid: list[NDArray[Any]] = []
        self._block_of: dict[Any, int] = {}

    def __enter__(self) -> "QueriesWriter":
        self._opened.enter_context(self._file)
        return self

    def append(self, block: Queries) -> None:
        """Write more queries.

        Parameters
        ----------
        block : Queries
            Queries with the features of the first block, and with labels, query ids and feature names exactly if it has
            them.
        """
        number = len(self._weight)
        if self._form is None:
            self._form, self._scaling, self._builder = Form.of(block), block.scaling, block.built_by
        block = self._form.adapt(block, number)
        self._take_ids(block, number)
        before = self._file.length("X")
        self._file.append("X", block.X.astype(self._form.dtype, copy=False))
        count = block.n_documents
        rows = None if block.is_grouped else block.rows + before
        self._append_late("rows", rows, before, count, lambda first, last: np.arange(first, last, dtype=np.int64))
        if block.y is not None:
            self._file.append("y", block.y)
        self._append_docids(block, before)
        weight, judged = block.document_weight, block.judged
        self._append_late("document_weight", weight, before, count, lambda first, last: np.ones(last - first))
        known = None if judged is None else judged.astype(np.uint8)
        self._append_late("judged", known, before, count, lambda first, last: np.ones(last - first, np.uint8))
        self._start.append(block.start[1:] + before)
        self._weight.append(block.weight)
        if self._scaling != block.scaling:
            self._scaling = None
        if getattr(self._builder, "digest_", None) != getattr(block.built_by, "digest_", None):
            self._builder = None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is not None:
            self._opened.__exit__(kind, error, trace)
            return
        with self._opened:
            self._finish()

    def _take_ids(self, block: Queries, number: int) -> None:
        """Keep the query ids; one that another block has raises an error."""
        if block.qid is None:
            return
        self._qid.append(plain_ids(block.qid))
        for name in block.names():
            if self._block_of.setdefault(name, number) != number:
                raise DataError(
                    f"query {name!r} is in block {self._block_of[name]} and in block {number}: a query is written whole"
                )

    def _append_late(
        self,
        name: str,
        own: NDArray[Any] | None,
        before: int,
        count: int,
        usual: Callable[[int, int], NDArray[Any]],
    ) -> None:
        """Store a column from the first block on that has one; the rows of others get the usual values."""
        if own is None and not self._file.length(name):
            return
        for first in range(self._file.length(name), before, _ROWS_AT_ONCE):
            self._file.append(name, usual(first, min(first + _ROWS_AT_ONCE, before)))
        self._file.append(name, usual(before, before + count) if own is None else own)

    def _append_docids(self, block: Queries, before: int) -> None:
        """Store document ids from the first block on that needs them, as rows are."""
        offsets = self._file.length("docid.offset")
        if block.docid is None and not offsets:
            return
        for first in range(max(0, offsets - 1), before, _ROWS_AT_ONCE):
            append_texts(self._file, "docid", StringColumn.empty(min(_ROWS_AT_ONCE, before - first)))
        append_texts(self._file, "docid", StringColumn.empty(block.n_documents) if block.docid is None else block.docid)

    def _finish(self) -> None:
        """Write what there is one of per query, per feature and per file."""
        if self._form is None:
            raise DataError(f"{os.fspath(self._file.path)} was to be written, but no queries were appended")
        self._file.append("start", np.concatenate(self._start))
        weight = join_or_ones(self._weight, map(len, self._start[1:]))
        if weight is not None:
            self._file.append("weight", weight)
        if self._form.feature_names is not None:
            append_texts(self._file, "feature", StringColumn.of(self._form.feature_names))
        self._append_ids()
        append_scaler(self._file, self._scaling)
        append_builder(self._file, self._builder)

    def _append_ids(self) -> None:
        """Write the query ids as one array of numbers or as texts."""
        columns = [ids for ids in self._qid if len(ids)] or self._qid[:1]  # empty arrays have no kind
        kinds = {_KINDS[ids.dtype.kind] for ids in columns}
        if len(kinds) > 1 and kinds != {"texts", "whole numbers"}:
            raise DataError(f"queries are named by {' and by '.join(sorted(kinds))} in one file: use one kind of id")
        if "texts" in kinds:
            if len({str(name) for name in self._block_of}) < len(self._block_of):
                raise DataError(
                    "a query is named by a number and another by the text of that number: use one kind of id"
                )
            append_texts(self._file, "qid", StringColumn.concat(map(StringColumn.of, columns)))
        elif kinds:
            ids = np.concatenate(columns)
            if kinds != {_KINDS[ids.dtype.kind]}:  # NumPy makes real numbers of signed and unsigned 64-bit ones
                raise DataError("some query ids are below 0 and others above 2^63 - 1: no type of number holds both")
            self._file.append("qid", ids)


class Form(NamedTuple):
    """The facts that the blocks of one file, or of one data set in parts, share.

    Attributes
    ----------
    dtype : numpy.dtype
        The type of the features.
    n_features : int
        The number of features.
    feature_names : tuple of str, or None
        The names of the features.
    has : dict of str to bool
        Whether there are labels, query ids and feature names.
    """

    dtype: np.dtype[Any]
    n_features: int
    feature_names: tuple[str, ...] | None
    has: dict[str, bool]

    @classmethod
    def of(cls, block: Queries) -> "Form":
        """The form of a block."""
        optional = {
            "labels": block.y,
            "query ids": block.qid,
            "feature names": block.feature_names,
        }
        has = {what: value is not None for what, value in optional.items()}
        return cls(block.X.dtype, block.n_features, block.feature_names, has)

    def adapt(self, block: Queries, number: int) -> Queries:
        """The block with its features in the order of the first block, or an error that says what does not fit."""
        other = Form.of(block)
        if other.n_features != self.n_features:
            raise DataError(f"block {number} has {other.n_features} features, block 0 has {self.n_features}")
        for what, there in self.has.items():
            if other.has[what] != there:
                with_, without = (0, number) if there else (number, 0)
                raise DataError(f"block {with_} has {what} and block {without} has none: pass them for all or for none")
        if np.result_type(self.dtype, other.dtype) != self.dtype:
            raise DataError(
                f"block {number} is {other.dtype} and would lose digits: block 0 made the file {self.dtype}"
            )
        return block if self.feature_names is None else block.select_features(self.feature_names)


def plain_ids(ids: NDArray[Any]) -> NDArray[Any]:
    """Ids as numbers or texts, or an error that names the type that cannot be saved."""
    if ids.dtype.kind == "O":
        ids = grouping.as_ids(ids.tolist(), "qid")  # objects that are all of one kind become an array of it
    if ids.dtype.kind == "O" and not all(isinstance(name, str) for name in ids):
        found = sorted({type(name).__name__ for name in ids})
        raise DataError(f"query ids of type {' and '.join(found)} cannot be stored: pass numbers or texts as qid")
    if ids.dtype.kind not in _KINDS:
        raise DataError(f"query ids of type {ids.dtype} cannot be stored: pass numbers or texts as qid")
    return ids


def append_texts(file: StoreWriter, name: str, texts: StringColumn) -> None:
    """Append texts to the arrays ``name.bytes`` and ``name.offset``."""
    before = file.length(f"{name}.bytes")
    offset = texts.offset - texts.offset[0] + before
    file.append(f"{name}.bytes", texts.data[texts.offset[0] : texts.offset[-1]])
    file.append(f"{name}.offset", offset[1:] if file.length(f"{name}.offset") else offset)


def append_scaler(file: StoreWriter, scaler: Scaler | None) -> None:
    """Put a fitted scaler into the facts and arrays of a file."""
    if scaler is not None:
        file.metadata["scaling"], arrays = scaler.to_state()
        for name, array in arrays.items():
            file.append(f"scaling.{name}", array)


def append_builder(file: StoreWriter, builder: Any) -> None:
    """Put a fitted builder of features into the facts and arrays of a file."""
    if builder is not None:
        file.metadata["features"], arrays = builder.to_state()
        for name, array in arrays.items():
            file.append(name, array)
