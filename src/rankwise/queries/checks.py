"""Checks of input: every value that comes from outside is checked once, here, and is trusted afterwards.

``as_*`` functions return the value in the form that the package uses, or raise an error that names the argument, what
was found and what is expected. ``is_*`` functions answer a question.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._kernels.memory import available_memory
from rankwise.errors import DataError, RankwiseError, in_one_line
from rankwise.queries.grouping import Grouping, StringColumn

if TYPE_CHECKING:
    from rankwise.queries.queries import Queries


Missing = Literal["error", "zero", "min", "keep"]
Name = TypeVar("Name", str, bytes)
Floats = NDArray[np.float32] | NDArray[np.float64]

# Squares, products and sums of weights within these stay within float64, whatever the number of queries.
_LIGHTEST, _HEAVIEST = 1e-100, 1e100
WEIGHTS = f"must be 0 or between {_LIGHTEST:g} and {_HEAVIEST:g}"

# Values that are checked together: no check of a large X allocates a second array of its size.
BLOCK_VALUES = 1 << 20
_BYTES = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "KI": 2**10, "MI": 2**20, "GI": 2**30}


def as_whole(value: Any, name: str, least: int = 0, most: int = 2**63 - 1) -> int:
    """A whole number between two others; no bool, no float, nothing beyond 64 bits."""
    if is_whole(value, least) and value <= most:
        return int(value)
    above = f"{least:,} or more" if most == 2**63 - 1 else f"between {least:,} and {most:,}"
    raise RankwiseError(f"{name} must be a whole number, {above}, got {value!r:.60}")


def as_range(value: Any, name: str) -> tuple[int, int]:
    """(fewest, most): two whole numbers, or one number for both."""
    pair = (value, value) if isinstance(value, (int, np.integer)) else value
    if not isinstance(pair, Sequence) or isinstance(pair, (str, bytes)) or len(pair) != 2:
        raise RankwiseError(f"{name} must be a whole number or a pair (fewest, most), got {value!r:.60}")
    return as_whole(pair[0], name, most=2**40), as_whole(pair[1], name, most=2**40)


def is_number(value: Any) -> bool:
    """Whether a value is one real number: not NaN, no bool."""
    real = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    return real and bool(value == value)


def is_whole(value: Any, least: int = 1) -> bool:
    """Whether a value is a whole number from ``least`` on that 64 bits can hold."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    return whole and bool(least <= value < 2**63)


def refuse_unless_one_of(value: Any, name: str, choices: Sequence[str]) -> None:
    """Refuse an option that is not one of the given words: "name must be 'a', 'b' or 'c', got ..."."""
    if not (isinstance(value, str) and value in choices):
        *others, last = map(repr, choices)
        raise RankwiseError(f"{name} must be {', '.join(others)} or {last}, got {value!r:.60}")


def as_floats(values: Any, what: str) -> NDArray[np.float64]:
    """An array of float64 of any shape, or an error whose message begins with ``what``, the expected form."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{what}: {in_one_line(error)}") from error


def as_one_list(values: Any, name: str) -> NDArray[np.float64]:
    """The scores or labels of one query as float64; a single number is one document."""
    vector = np.atleast_1d(as_floats(values, f"{name} must hold one number per document"))
    return as_vector(vector, len(vector), name)


def as_features(X: Any, n_features: int | None = None) -> Floats:
    """Features as a C-contiguous array of float32 or float64, without a copy where ``X`` is one already.

    Parameters
    ----------
    X : array-like, data frame or sparse matrix, shape (n_documents, n_features)
        The features. Masked values become NaN.
    n_features : int, default=None
        The expected number of features, if it is known; it decides the hint for a single row.

    Returns
    -------
    X : ndarray of float32 or float64, shape (n_documents, n_features)
        The features, not yet checked for NaN.
    """
    if isinstance(X, (str, bytes, os.PathLike)):
        raise DataError(not_a_path(X))
    if hasattr(X, "toarray") and hasattr(X, "nnz"):
        X = _dense(X)
    if isinstance(X, np.ma.MaskedArray):
        X = np.ma.filled(X.astype(np.float64), np.nan)  # masked values are missing values
    try:
        array = np.asanyarray(X) if isinstance(X, np.memmap) else np.asarray(X)
    except Exception as error:  # foreign objects and ragged lists raise anything
        raise DataError(f"X must have two dimensions, documents x features: {in_one_line(error)}") from error
    if array.ndim != 2:
        hint = ""
        if array.ndim == 1:
            hint = "; one document is X.reshape(1, -1)"
            if n_features != len(array):
                hint += ", and a single feature X.reshape(-1, 1)"
        raise DataError(f"X must have two dimensions, documents x features, got shape {array.shape}{hint}")
    if array.dtype.kind == "O":
        array = _of_objects(array)
    if array.dtype.kind not in "fiub":
        hint = " (Complex data not supported)" if array.dtype.kind == "c" else ""
        raise DataError(f"X must hold numbers, got type {array.dtype}{hint}")
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float32 if array.dtype == np.float16 else np.float64)
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


_OF_WORDS = (
    "a FeatureBuilder makes features of texts and categories, BoostedRanker takes the codes of categories by "
    "categorical_features, or leave their columns out"
)


def _of_objects(array: NDArray[Any]) -> NDArray[Any]:
    """Objects that are numbers, as a data frame of several types gives them, as float64; None becomes NaN."""
    odd = next((value for value in array.flat if isinstance(value, (str, bytes))), None)
    if odd is not None:
        raise DataError(f"X must hold numbers, got the text {odd!r:.60}; {_OF_WORDS}")
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"X must hold numbers: {in_one_line(error)}") from error


def not_a_path(path: Any) -> str:
    """The error message for a file name where arrays are expected."""
    return (
        f"X must be an array, a data frame or Queries, got the path {os.fsdecode(path)!r:.60}; read_table(path, "
        "qid=..., label=...) reads CSV, Parquet and Arrow files, and read_letor(path) LETOR and SVMlight text"
    )


def as_labels(y: ArrayLike, n_rows: int) -> NDArray[np.float64]:
    """Labels as float64: one per row, finite, not negative."""
    given: Any = y
    word = next((value for value in given if isinstance(value, str)), None) if _may_hold_texts(given) else None
    if word is not None:
        raise DataError(
            f"labels must be numbers, got the text {str(word)!r:.60}: give every word its grade first, such as "
            "{'bad': 0, 'good': 1}"
        )
    labels = as_vector(y, n_rows, "y")
    if not np.isfinite(labels).all():
        row = int(np.argmin(np.isfinite(labels)))
        raise DataError(f"labels must be finite, got {labels[row]} at row {row:,}: leave unjudged documents out")
    if len(labels) and labels.min() < 0:
        row = int(labels.argmin())
        raise DataError(f"labels must be 0 or more, got {labels[row]:g} at row {row:,}: leave unjudged documents out")
    return labels


def _may_hold_texts(y: Any) -> bool:
    """Whether a sequence or a column is not one of numbers by its type."""
    kind = getattr(getattr(y, "dtype", None), "kind", "O")
    return isinstance(y, Iterable) and not isinstance(y, (str, bytes)) and kind not in "fiub"


def as_weights(weight: ArrayLike, n_queries: int) -> NDArray[np.float64]:
    """Query weights as float64: one per query, 0 or of a usual size, not all zero."""
    weights = as_floats(weight, "weight must hold one number per query")
    if weights.shape != (n_queries,):
        raise DataError(f"weight must hold one number per query, got shape {weights.shape} for {n_queries:,} queries")
    _check_weights(weights, "query", "query")
    return weights


def as_weight(weight: Any) -> float:
    """The weight of one query, 0 or of a usual size."""
    if isinstance(weight, (int, float, np.integer, np.floating)) and usual_weights(weight):
        return float(weight)
    raise DataError(f"a query weight {WEIGHTS}, got {weight!r:.60}")


def as_document_weights(weight: ArrayLike, n_rows: int) -> NDArray[np.float64]:
    """Document weights as float64: one per row, 0 or of a usual size, not all zero.

    A document of weight k counts in a loss as k copies of it would, and one of weight 0 not at all.
    """
    weights = as_vector(weight, n_rows, "document_weight")
    _check_weights(weights, "document", "row")
    return weights


def _check_weights(weights: NDArray[np.float64], what: str, place: str) -> None:
    """Refuse weights that are not of a usual size, or all zero."""
    usual = usual_weights(weights)
    if not usual.all():
        number = int(np.argmin(usual))
        raise DataError(f"{what} weights {WEIGHTS}, got {weights[number]} at {place} {number:,}")
    if len(weights) and not weights.any():
        raise DataError(f"at least one {what} weight must be above 0, got zeros")


def as_judged(judged: ArrayLike, labels: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether each document was judged, as bool; what nobody judged has label 0."""
    given = np.asarray(judged)
    if given.dtype != np.bool_ or given.shape != labels.shape:
        raise DataError(
            f"judged must hold True or False for each of {len(labels):,} rows, got {given.dtype} of shape {given.shape}"
        )
    odd = ~given & (labels != 0)
    if odd.any():
        row = int(np.argmax(odd))
        raise DataError(f"documents that were not judged must have label 0, got {labels[row]:g} at row {row:,}")
    return given


def refuse_unjudged(queries: "Queries", what: str) -> None:
    """Raise an error where a format would make judgments of documents that nobody judged."""
    if queries.judged is not None and not queries.judged.all():
        raise DataError(
            f"{what} cannot say that {plural(int((~queries.judged).sum()), 'document')} of these queries were not "
            "judged: write a .rankwise file or qrels, or use with_judged(None), after which they are judged to be 0"
        )


def usual_weights(weight: Any) -> Any:
    """Whether weights are 0 or within the allowed sizes."""
    return (weight == 0) | ((weight >= _LIGHTEST) & (weight <= _HEAVIEST))


def as_scores(scores: ArrayLike, n_rows: int) -> NDArray[np.float64]:
    """Scores as float64: one per row, never NaN; -inf means that the document was not retrieved."""
    values = as_vector(scores, n_rows, "scores")
    if np.isnan(values).any():
        raise DataError(f"scores must not be NaN, got NaN at row {int(np.argmax(np.isnan(values))):,}")
    return values


def as_vector(values: ArrayLike, n_rows: int, name: str) -> NDArray[np.float64]:
    """One float64 number per row; a column of shape (n, 1) is accepted."""
    vector = as_floats(values, f"{name} must hold one number per row")
    if vector.ndim == 2 and vector.shape[1] == 1:
        vector = vector[:, 0]
    if vector.shape != (n_rows,):
        raise DataError(f"{name} must hold one number per row, got shape {vector.shape} for {n_rows:,} rows")
    return np.ascontiguousarray(vector)


def as_names(names: Sequence[str] | None, n_features: int | None) -> tuple[str, ...] | None:
    """Feature names: one per feature (None: as many as there are names), without repeats."""
    if names is None:
        return None
    try:
        listed = tuple(str(name) for name in names)
    except TypeError as error:  # not iterable
        raise DataError(f"feature_names must hold one name per feature: {in_one_line(error)}") from error
    if n_features is not None and len(listed) != n_features:
        raise DataError(
            f"feature_names must hold one name per feature, got {len(listed)} names for {n_features} features"
        )
    if (twice := first_repeated(listed)) is not None:
        raise DataError(f"feature_names must differ, got {twice!r} twice")
    return listed


def first_repeated(names: Sequence[Name]) -> Name | None:
    """The first name that occurs a second time, or None; in one pass, because there may be thousands."""
    seen: set[Name] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def first_not_finite(X: Floats) -> tuple[int, int] | None:
    """(row, feature) of the first NaN or infinity, found in blocks."""
    return _find_first(lambda block: ~np.isfinite(block), X)


def _find_first(is_wrong: Callable[[Floats], NDArray[np.bool_]], X: Floats) -> tuple[int, int] | None:
    """(row, feature) of the first wrong value, found in blocks."""
    for rows in blocks_of_rows(*X.shape):
        wrong = is_wrong(X[rows])
        if wrong.any():
            row, feature = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
            return rows.start + int(row), int(feature)
    return None


def refuse_missing(X: Floats, who: str) -> None:
    """Raise an error for NaN that was kept (``missing="keep"``), where ``who`` has no use for it."""
    found = first_not_finite(X)
    if found is not None:
        row, feature = found
        raise DataError(
            f"X is {X[row, feature]} at row {row:,}, feature {feature}, and {who} gives no meaning to missing values: "
            "make the queries with missing='zero' or missing='min'"
        )


def refuse_infinite(X: Floats, names: Any = None) -> None:
    """Raise an error that names the first infinity; NaN is allowed."""
    found = _find_first(np.isinf, X)
    if found is not None:
        row, feature = found
        called = f" ({names[feature]})" if names else ""
        raise DataError(f"X is infinite at row {row:,}, feature {feature}{called}: missing='keep' keeps NaN only")


def fill_missing(
    X: Floats, start: NDArray[np.int64], rows: NDArray[np.int64] | None, missing: Missing, names: Any = None
) -> Floats:
    """Refuse or replace NaN and infinity; ``X`` itself is never changed.

    Parameters
    ----------
    X : ndarray, shape (n_documents, n_features)
        The features.
    start, rows : ndarray of int64
        The layout of the queries; ``rows`` is None where the rows are grouped.
    missing : {"error", "zero", "min", "keep"}
        "error" raises an error that names the row and the feature. "zero" puts 0. "min" puts the smallest finite value
        of the feature in the same query, 0 if there is none (LETOR's rule). "keep" leaves NaN, for rankers that know
        what to do with it, and refuses infinity.
    names : sequence of str, default=None
        The feature names, for the error message.

    Returns
    -------
    X : ndarray, shape (n_documents, n_features)
        Finite features, apart from NaN that is kept: the same array, or a copy where something was replaced.
    """
    refuse_unless_one_of(missing, "missing", get_args(Missing))
    if missing == "keep":
        refuse_infinite(X, names)
        return X
    found = first_not_finite(X)
    if found is None:
        return X
    if missing == "error":
        row, feature = found
        called = f" ({names[feature]})" if names else ""
        raise DataError(
            f"X is {X[row, feature]} at row {row:,}, feature {feature}{called}: "
            "pass missing='zero' or missing='min', or replace NaN and infinity"
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
    """A scipy sparse matrix made dense, if it fits into the free memory."""
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


def as_docid(docid: Sequence[Any] | StringColumn | None, n_rows: int) -> StringColumn | None:
    """Document ids as texts: one per row; None where there are none."""
    if docid is None:
        return None
    try:
        texts = docid if isinstance(docid, StringColumn) else StringColumn.of(docid)
    except TypeError as error:  # not iterable, or an object without a text
        raise DataError(f"docid must hold one id per row: {in_one_line(error)}") from error
    if len(texts) != n_rows:
        raise DataError(f"docid must hold one id per row, got {len(texts):,} for {n_rows:,} rows")
    return texts


def plural(number: int, one: str, many: str | None = None) -> str:
    """A number and its noun: "1 query", "2 queries"."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def blocks_of_rows(n_rows: int, n_features: int) -> Iterator[slice]:
    """Consecutive ranges of rows, each small enough that a copy in float64 does not matter."""
    step = max(1, BLOCK_VALUES // max(1, n_features))
    return (slice(first, min(first + step, n_rows)) for first in range(0, n_rows, step))


def as_bytes(size: Any, name: str, least: int) -> int:
    """A number of bytes, or a text such as "256MB" or "1 GiB"."""
    if isinstance(size, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMG]I?)?B?\s*", size.upper())
        if found is None:
            raise RankwiseError(f"{name} must be a number of bytes, such as 256MB, got {size!r:.40}")
        size = int(float(found[1]) * _BYTES[found[2] or ""])
    return as_whole(size, name, least)


def check_fields(
    X: Floats, y: Any, layout: Grouping, weight: Any, docid: Any, names: Any, missing: Missing = "error"
) -> tuple[Any, ...]:
    """The fields of queries, without the scaling, after all checks but those of ``X``'s type and of the layout."""
    names = as_names(names, X.shape[1])
    return (
        fill_missing(X, layout.start, layout.rows, missing, names),
        None if y is None else as_labels(y, len(X)),
        layout.start,
        layout.rows,
        None if weight is None else as_weights(weight, len(layout.start) - 1),
        layout.qid,
        as_docid(docid, len(X)),
        names,
    )


def names_or_columns(queries: "Queries") -> list[str]:
    """The names of the features; their columns, such as ``X[:, 4]``, where they have none."""
    return list(queries.feature_names or (f"X[:, {number}]" for number in range(queries.n_features)))
