"""Judged lists in one safe file, mapped back into memory.

======================== ========= ==================================================================
array                    type      what
======================== ========= ==================================================================
X                        F32, F64  documents x features, the first array of the file
y                        F64       labels, if there are any
rows                     I64       rows, query after query, unless they stand together already
start                    I64       query q owns rows[start[q]:start[q+1]]
weight                   F64       one a query, if there are any
qid                      a number  one a query; texts are in ``qid.bytes`` and ``qid.offset``
docid.bytes, .offset     U8, I64   one text a document
feature.bytes, .offset   U8, I64   one name a feature
scaling.center, .scale   F64       what the scaler learned
======================== ========= ==================================================================
"""

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import DataError, FileFormatError, RankwiseError
from rankwise._store import Store, read_store
from rankwise.data import checks, grouping
from rankwise.data.queries import Queries
from rankwise.data.scaling import Scaler
from rankwise.data.stored_writer import KIND, QueriesWriter
from rankwise.data.texts import Texts


def save_queries(queries: Queries, path: str | os.PathLike[str]) -> None:
    """Write everything that ``queries`` hold to one file; see :meth:`Queries.save`."""
    with QueriesWriter(path) as writer:
        writer.append(queries)


def load_queries(path: str | os.PathLike[str]) -> Queries:
    """The queries saved under ``path``, with ``X`` mapped into memory, read-only; see :func:`rankwise.load`."""

    def read(store: Store) -> Queries:
        if store.kind != KIND:
            raise FileFormatError(f"{store.path} holds {store.kind!r:.40}, not queries")
        return read_queries(store)

    return read_store(path, read)


def read_queries(store: Store, mmap: bool = True) -> Queries:
    """The queries in an opened file; what could not be queries is refused, for the file may be a stranger's.

    The values of ``X`` alone are not looked at, because that would read all of it: they were finite when rankwise
    wrote them. It is mapped into memory, or read where ``mmap`` is False.
    """
    X = (store.map if mmap else store.array)("X", shape=(None, None))
    if X.dtype not in (np.float32, np.float64):
        raise FileFormatError(f"{store.path} is damaged: its features have type {X.dtype}")
    start = store.array("start", np.int64, (None,))
    if not len(start) or not _climbs(start, 0, len(X)):
        raise FileFormatError(f"{store.path} is damaged: its queries do not cover its {len(X):,} documents")
    count = len(start) - 1
    try:
        return Queries._trusted(
            X,
            checks.as_labels(store.array("y", np.float64), len(X)) if "y" in store else None,
            start,
            _read_rows(store, len(X)),
            weight=_read_weight(store, count),
            qid=_read_ids(store, count),
            docid=read_texts(store, "docid", len(X)),
            feature_names=_read_names(store, X.shape[1]),
            scaling=read_scaler(store),
        )
    except FileFormatError:
        raise
    except RankwiseError as error:
        raise FileFormatError(f"{store.path} is damaged: {error}") from error


def read_texts(store: Store, name: str, count: int) -> Texts | None:
    """The texts of that name, ``count`` of them, or None where the file has none."""
    if f"{name}.offset" not in store:
        return None
    data = store.array(f"{name}.bytes", np.uint8, (None,))
    offset = store.array(f"{name}.offset", np.int64, (count + 1,))
    if not _climbs(offset, 0, len(data)):
        raise FileFormatError(f"{store.path} is damaged: its {name} texts overlap or leave a gap")
    return Texts(data, offset)


def read_scaler(store: Store) -> Scaler | None:
    """The scaler that :func:`append_scaler` put into the file, or None."""
    if store.metadata.get("scaling") is None:
        return None
    arrays = {
        name: store.array(f"scaling.{name}", np.float64) for name in ("center", "scale") if f"scaling.{name}" in store
    }
    return Scaler.from_state(store.fact("scaling", dict), arrays)


def _read_rows(store: Store, count: int) -> NDArray[np.int64] | None:
    if "rows" not in store:
        return None
    rows: NDArray[np.int64] = store.array("rows", np.int64, (count,))
    seen = np.zeros(count, dtype=bool)
    inside = (rows >= 0) & (rows < count)
    seen[rows[inside]] = True
    if not seen.all():
        raise DataError("its rows do not name every document once")
    return rows


def _read_weight(store: Store, count: int) -> NDArray[np.float64] | None:
    if "weight" not in store:
        return None
    weight = store.array("weight", np.float64, (count,))
    return (
        checks.as_weights(weight, count) if weight.any() else weight
    )  # queries may have been chosen so that none counts


def _read_ids(store: Store, count: int) -> NDArray[Any] | None:
    if "qid" in store:
        return grouping.as_ids(store.array("qid", shape=(count,)), "qid")
    texts = read_texts(store, "qid", count)
    # without texts there is nothing to learn the type from
    return None if texts is None else grouping.as_ids(list(texts) if count else np.zeros(0, dtype=str), "qid")


def _read_names(store: Store, count: int) -> tuple[str, ...] | None:
    texts = read_texts(store, "feature", count)
    if texts is not None and len(set(texts)) < count:
        raise DataError("two of its features have the same name")
    return None if texts is None else tuple(texts)


def _climbs(offset: NDArray[np.int64], first: int, last: int) -> bool:
    """Whether offsets lead from first to last without a step back."""
    return bool(offset[0] == first and offset[-1] == last and (offset[1:] >= offset[:-1]).all())
