"""The edge: what comes in is checked once, by name, and is trusted afterwards."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._errors import DataError, RankwiseError

Missing = Literal["error", "zero", "min"]
Floats = NDArray[np.float32] | NDArray[np.float64]

# Rows looked at together: no test of a large X needs a second array of its size.
BLOCK_VALUES = 1 << 20


def as_features(X: Any) -> Floats:
    """``X`` as C-contiguous float32 or float64, the caller's own memory where it is that already."""
    if hasattr(X, "toarray") and hasattr(X, "nnz"):
        X = _dense(X)
    if isinstance(X, np.ma.MaskedArray):
        X = np.ma.filled(X.astype(np.float64), np.nan)  # what is masked is missing
    array = np.asanyarray(X) if isinstance(X, np.memmap) else np.asarray(X)
    if array.ndim != 2:
        hint = ": a single feature is X.reshape(-1, 1)" if array.ndim == 1 else ""
        raise DataError(f"X is documents x features, two dimensions: found shape {array.shape}{hint}")
    if array.dtype.kind not in "fiub":
        raise DataError(f"X holds numbers: found type {array.dtype}")
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float32 if array.dtype == np.float16 else np.float64)
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


def as_labels(y: ArrayLike, n_rows: int) -> NDArray[np.float64]:
    """Labels as float64: one a row, finite, not negative."""
    labels = as_vector(y, n_rows, "y")
    if not np.isfinite(labels).all():
        row = int(np.argmin(np.isfinite(labels)))
        raise DataError(f"y is {labels[row]} at row {row:,}: labels are finite; leave unjudged documents out")
    if len(labels) and labels.min() < 0:
        row = int(labels.argmin())
        raise DataError(f"y is {labels[row]:g} at row {row:,}: labels are 0 or more; leave unjudged documents out")
    return labels


def as_weights(weight: ArrayLike, n_queries: int) -> NDArray[np.float64]:
    """Query weights: one a query, finite, not negative, not all zero."""
    weights = np.asarray(weight, dtype=np.float64)
    if weights.shape != (n_queries,):
        raise DataError(f"weight holds one number a query: found shape {weights.shape} for {n_queries:,} queries")
    if not np.isfinite(weights).all() or (weights < 0).any():
        query = int(np.argmax(~np.isfinite(weights) | (weights < 0)))
        raise DataError(f"weight is {weights[query]} at query {query:,}: weights are finite and 0 or more")
    if n_queries and not weights.any():
        raise DataError("weight is 0 at every query: at least one query must count")
    return weights


def as_scores(scores: ArrayLike, n_rows: int) -> NDArray[np.float64]:
    """Scores as float64, one a row, never NaN; -inf says that the document was not retrieved."""
    values = as_vector(scores, n_rows, "scores")
    if np.isnan(values).any():
        raise DataError(f"scores is NaN at row {int(np.argmax(np.isnan(values))):,}: a document needs a place")
    return values


def as_vector(values: ArrayLike, n_rows: int, name: str) -> NDArray[np.float64]:
    """One float64 number a row; a column of shape (n, 1) is taken as what it means."""
    try:
        vector = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} holds one number a row: {error}") from error
    if vector.ndim == 2 and vector.shape[1] == 1:
        vector = vector[:, 0]
    if vector.shape != (n_rows,):
        raise DataError(f"{name} holds one number a row: found shape {vector.shape} for {n_rows:,} rows")
    return np.ascontiguousarray(vector)


def as_names(names: Sequence[str] | None, n_features: int) -> tuple[str, ...] | None:
    """Feature names: one a feature, no name twice."""
    if names is None:
        return None
    listed = tuple(str(name) for name in names)
    if len(listed) != n_features:
        raise DataError(f"feature_names holds one name a feature: found {len(listed)} names for {n_features} features")
    if len(set(listed)) != len(listed):
        twice = next(name for place, name in enumerate(listed) if name in listed[:place])
        raise DataError(f"feature_names holds {twice!r} twice")
    return listed


def first_not_finite(X: Floats) -> tuple[int, int] | None:
    """(row, feature) of the first NaN or infinity, found in blocks."""
    step = max(1, BLOCK_VALUES // max(1, X.shape[1]))
    for first in range(0, len(X), step):
        finite = np.isfinite(X[first : first + step])
        if not finite.all():
            row, feature = np.unravel_index(int(np.argmin(finite)), finite.shape)
            return first + int(row), int(feature)
    return None


def fill_missing(
    X: Floats, start: NDArray[np.int64], rows: NDArray[np.int64] | None, missing: Missing, names: Any = None
) -> Floats:
    """``X`` with NaN and infinities refused by name, or replaced as LETOR does: 0, or the query's smallest value.

    ``min`` takes the smallest finite value of that feature in the same query, 0 if there is none. ``X`` itself is
    left alone: a copy is made only when something has to be replaced.
    """
    if missing not in ("error", "zero", "min"):
        raise RankwiseError(f"missing is 'error', 'zero' or 'min': found {missing!r}")
    found = first_not_finite(X)
    if found is None:
        return X
    if missing == "error":
        row, feature = found
        called = f" ({names[feature]})" if names else ""
        raise DataError(
            f"X is {X[row, feature]} at row {row:,}, feature {feature}{called}: "
            "give missing='zero' or missing='min', or clean the data"
        )
    X = X.copy()
    if missing == "zero":
        X[~np.isfinite(X)] = 0
        return X
    for first, last in pairwise(start.tolist()):
        places = slice(first, last) if rows is None else rows[first:last]
        block = X[places]
        finite = np.isfinite(block)
        if not finite.all():
            smallest = np.where(finite, block, np.inf).min(axis=0)
            X[places] = np.where(finite, block, np.where(np.isfinite(smallest), smallest, 0))
    return X


def _dense(X: Any) -> NDArray[Any]:
    """A scipy sparse matrix made dense, once it is known to fit into what the machine has left."""
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    needed = X.shape[0] * X.shape[1] * X.dtype.itemsize
    free = available_memory()
    if free is not None and needed > free:
        raise DataError(
            f"X is sparse and would take {needed / 2**30:,.1f} GiB when dense, but {free / 2**30:,.1f} GiB of memory "
            "are free: keep fewer features, or give float32"
        )
    return np.asarray(X.toarray())


def available_memory() -> int | None:
    """Bytes that can still be had without swapping, or None where the system does not say."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            figures = dict(line.split(":", 1) for line in lines)
        return int(figures["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return None
