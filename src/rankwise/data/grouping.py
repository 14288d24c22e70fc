"""From ids or sizes to the ragged layout: query q owns ``rows[start[q]:start[q+1]]``.

Any hashable id in any row order; queries are numbered by first appearance. ``rows`` is None when the input is
already grouped, so that the common case stores and copies nothing.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._errors import DataError


class Grouping(NamedTuple):
    """Where each query's rows are, and what the query is called."""

    start: NDArray[np.int64]
    rows: NDArray[np.int64] | None
    qid: NDArray[Any] | None


def by_size(group: ArrayLike, n_rows: int) -> Grouping:
    """Consecutive queries of the given sizes (LightGBM's and XGBoost's ``group``)."""
    sizes = np.asarray(group)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu":
        raise DataError(f"group holds sizes, whole numbers in one dimension: found {_shape_of(sizes)}")
    if len(sizes) and sizes.min() < 0:
        raise DataError(f"group holds sizes: found {sizes.min()} at position {int(sizes.argmin())}")
    if int(sizes.sum()) != n_rows:
        hint = " (query ids go into qid=)" if len(sizes) == n_rows else ""
        raise DataError(f"the sizes in group add up to {int(sizes.sum()):,}, but there are {n_rows:,} rows{hint}")
    return Grouping(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), None, None)


def by_id(qid: ArrayLike | Sequence[Any], n_rows: int) -> Grouping:
    """Rows with the same id form a query, wherever they stand."""
    ids = as_ids(qid, "qid")
    if len(ids) != n_rows:
        raise DataError(f"qid holds one id a row: found {len(ids):,} ids for {n_rows:,} rows")
    if n_rows == 0:
        return Grouping(np.zeros(1, dtype=np.int64), None, ids)
    # objects are compared as a dictionary compares them, by hash and equality
    comparable = number_by_appearance(ids)[0] if ids.dtype.kind == "O" else ids
    head = np.flatnonzero(np.concatenate([[True], comparable[1:] != comparable[:-1]]))
    return by_run(head, ids[head], n_rows)


def by_run(head: NDArray[np.int64], ids: NDArray[Any], n_rows: int) -> Grouping:
    """Runs of rows, each given by its first row and its id; runs with the same id form a query."""
    code, _ = number_by_appearance(ids)
    changes = np.flatnonzero(np.concatenate([[True], code[1:] != code[:-1]]))  # neighbours may be one run in two pieces
    head, ids, code = head[changes], ids[changes], code[changes]
    _, first = np.unique(code, return_index=True)
    bounds = np.append(head, n_rows).astype(np.int64)
    if len(first) == len(code):
        return Grouping(bounds, None, ids)
    row_code = np.repeat(code, np.diff(bounds))
    start = np.concatenate([[0], np.cumsum(np.bincount(row_code))]).astype(np.int64)
    return Grouping(start, np.argsort(row_code, kind="stable").astype(np.int64), ids[first])


def as_ids(values: ArrayLike | Sequence[Any], name: str) -> NDArray[Any]:
    """One-dimensional array of identities; tuples and other hashables are kept as objects."""
    if isinstance(values, np.ndarray) or hasattr(values, "__array__"):
        ids = np.asarray(values)
    else:
        ids = _of_one_kind(list(values))  # type: ignore[arg-type]
    if ids.ndim != 1:
        raise DataError(f"{name} has one dimension: found {_shape_of(ids)}")
    missing = np.isnan(ids) if ids.dtype.kind == "f" else np.zeros(0, dtype=bool)
    if ids.dtype.kind == "O":
        missing = np.array([_is_missing(value) for value in ids], dtype=bool)
    if missing.any():
        raise DataError(f"{name} is missing (None or NaN) at row {int(np.argmax(missing)):,}")
    return ids


def number_by_appearance(ids: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """``(code, first)``: a number for each id in order of first appearance, and where each number first stands."""
    if ids.dtype.kind == "O":
        known: dict[Any, int] = {}
        try:
            code = np.array([known.setdefault(value, len(known)) for value in ids], dtype=np.int64)
        except TypeError as error:
            raise DataError(f"query ids must be hashable: {error}") from error
        return code, np.unique(code, return_index=True)[1].astype(np.int64)
    _, first, code = np.unique(ids, return_index=True, return_inverse=True)
    appearance = np.argsort(first, kind="stable")
    number = np.empty(len(first), dtype=np.int64)
    number[appearance] = np.arange(len(first))
    return number[code.reshape(-1)], first[appearance].astype(np.int64)


def _of_one_kind(items: list[Any]) -> NDArray[Any]:
    """Whole numbers, real numbers or texts as an array of that type; anything else, or a mixture, as objects."""
    kinds = set(map(type, items))
    for family, letters in (((int, np.integer), "iu"), ((float, np.floating), "f"), ((str,), "U")):
        if all(issubclass(kind, family) and kind is not bool for kind in kinds):
            array = np.asarray(items)
            # NumPy turns whole numbers beyond 64 bits into others, and drops the zeros that end a text
            faithful = array.dtype.kind in letters and not (letters == "U" and any(text[-1:] == "\0" for text in items))
            return array if faithful or not items else _objects(items)
    return _objects(items)


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):  # pandas.NA; arrays, which are refused later because they have no hash
        return not hasattr(value, "__len__")


def _objects(items: Sequence[Any]) -> NDArray[Any]:
    array = np.empty(len(items), dtype=object)
    for place, item in enumerate(items):
        array[place] = item
    return array


def _shape_of(array: NDArray[Any]) -> str:
    return f"an array of shape {array.shape} and type {array.dtype}"
