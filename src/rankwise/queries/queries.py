"""`Queries`: the ragged, immutable set of judged queries that all parts of the package exchange.

The documents of all queries share one feature matrix ``X``, one label vector ``y`` and one column of document ids,
all in the order of the input. The layout, ``start`` and ``rows``, says which rows belong to which query.
:mod:`rankwise.queries.grouping` derives the layout from query ids or sizes, and :mod:`rankwise.queries.checks` checks
the arrays. A selection of queries is a `Queries` again; one query is a :class:`rankwise.queries.selection.Query`.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.errors import DataError
from rankwise.queries import checks, grouping
from rankwise.queries.checks import Floats, Missing, check_fields, plural
from rankwise.queries.grouped_labels import Labels
from rankwise.queries.grouping import StringColumn
from rankwise.queries.selection import Query, as_scaling, one_query, select_features
from rankwise.queries.source import MemorySource, select

if TYPE_CHECKING:
    from os import PathLike

    from rankwise.queries.html import QueryBrowser
    from rankwise.queries.scaling import Scaler


Array = TypeVar("Array", bound=NDArray[Any])

# In the order in which `Queries._trusted` takes them.
_FIELDS = (
    "X",
    "y",
    "start",
    "_rows",
    "weight",
    "qid",
    "docid",
    "feature_names",
    "scaling",
    "document_weight",
    "built_by",
    "judged",
    "_finite",
)
# What fingerprints do not depend on.
_NOT_IN_FINGERPRINTS = {"weight", "feature_names", "scaling", "document_weight", "built_by", "judged", "finite"}


class Queries(MemorySource):
    """Judged queries: documents x features, labels, and which rows belong to which query.

    Query q owns the rows ``rows[start[q]:start[q+1]]``. ``X``, ``y``, ``docid`` and every score stay in the order of
    the input, and ``X`` is not copied. :meth:`from_arrays`, :meth:`from_frame`, :func:`read_letor` and :func:`load`
    make `Queries` from data. The constructor takes the layout itself and checks all of it.

    Parameters
    ----------
    X : array-like, shape (n_documents, n_features)
        The features, finite; float32 and float64 are kept as they are.
    y : array-like, shape (n_documents,), or None
        The labels, finite and 0 or more; None for data to be ranked.
    start : array-like of int, shape (n_queries + 1,)
        Offsets that climb from 0 to the number of documents.
    rows : array-like of int, shape (n_documents,), default=None
        Every row number once, query after query; None where the rows are already grouped.
    weight : array-like, shape (n_queries,), default=None
        The query weights; None weights all queries equally.
    qid : sequence of hashable, length n_queries, default=None
        One id per query, without repeats.
    docid : sequence, length n_documents, default=None
        One id per document.
    feature_names : sequence of str, length n_features, default=None
        One name per feature, without repeats.
    scaling : Scaler, default=None
        The fitted scaler that made ``X``.
    document_weight : array-like, shape (n_documents,), default=None
        The document weights, 0 or more, for rankers that take them; None weights all documents equally. Measures
        do not use them.

    Attributes
    ----------
    X, y, start, weight, qid, docid, feature_names, scaling, document_weight : as the parameters
        What was given, as read-only views where possible; see also :attr:`rows` and :attr:`query_weight`.
    built_by : FeatureBuilder or None
        The fitted builder that made ``X`` from a table.
    judged : ndarray of bool, shape (n_documents,), or None
        Which documents were judged; None where all were. :func:`rankwise.io.from_trec` and :meth:`with_judged` set it,
        and the measures that tell unjudged documents apart (Bpref, Judged) read it; for all others they have label 0.

    Examples
    --------
    >>> queries = Queries.from_arrays([[0.1], [0.9], [0.4]], [0, 2, 1], qid=["b", "a", "b"])
    >>> queries
    Queries(2 queries, 3 documents, 1 feature, labels 0 to 2)
    >>> queries[0].y
    array([0., 1.])
    """

    __slots__ = _FIELDS

    X: Floats
    y: NDArray[np.float64] | None
    start: NDArray[np.int64]
    _rows: NDArray[np.int64] | None
    weight: NDArray[np.float64] | None
    qid: NDArray[Any] | None
    docid: StringColumn | None
    feature_names: tuple[str, ...] | None
    scaling: "Scaler | None"
    document_weight: NDArray[np.float64] | None
    built_by: Any  # a FeatureBuilder, which a higher layer has
    judged: NDArray[np.bool_] | None
    _finite: bool  # known to hold no NaN; False where nobody has looked yet

    def __init__(
        self,
        X: Any,
        y: ArrayLike | None,
        start: ArrayLike,
        rows: ArrayLike | None = None,
        *,
        weight: ArrayLike | None = None,
        qid: ArrayLike | Sequence[Any] | None = None,
        docid: Sequence[Any] | None = None,
        feature_names: Sequence[str] | None = None,
        scaling: "Scaler | None" = None,
        document_weight: ArrayLike | None = None,
    ) -> None:
        X = checks.as_features(X)
        layout = grouping.as_layout(start, rows, len(X))
        if qid is not None:
            layout = layout._replace(qid=grouping.as_query_ids(qid, len(layout.start) - 1))
        self._set(
            *check_fields(X, y, layout, weight, docid, feature_names),
            as_scaling(scaling, X.shape[1]),
            None if document_weight is None else checks.as_document_weights(document_weight, len(X)),
            None,
            None,
            True,
        )

    @classmethod
    def _trusted(
        cls,
        X: Floats,
        y: NDArray[np.float64] | None,
        start: NDArray[np.int64],
        rows: NDArray[np.int64] | None = None,
        weight: NDArray[np.float64] | None = None,
        qid: NDArray[Any] | None = None,
        docid: StringColumn | None = None,
        feature_names: tuple[str, ...] | None = None,
        scaling: "Scaler | None" = None,
        document_weight: NDArray[np.float64] | None = None,
        built_by: Any = None,
        judged: NDArray[np.bool_] | None = None,
        finite: bool = False,
    ) -> "Queries":
        """Queries of parts that were checked where they came from; nothing is checked again."""
        queries = object.__new__(cls)
        fields = X, y, start, rows, weight, qid, docid, feature_names, scaling, document_weight, built_by, judged
        queries._set(*fields, finite)
        return queries

    def _set(self, *fields: Any) -> None:
        for name, value in zip(_FIELDS, fields, strict=True):
            object.__setattr__(self, name, _read_only(value) if isinstance(value, np.ndarray) else value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"Queries are immutable: with_labels, with_weight and map_features make others ({name})")

    # ------------------------------------------------------------------------------------------- making one

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | Sequence[Any] | None = None,
        group: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        docid: Sequence[Any] | None = None,
        feature_names: Sequence[str] | None = None,
        missing: Missing = "error",
        document_weight: ArrayLike | None = None,
    ) -> "Queries":
        """Make queries from arrays.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_documents, n_features)
            The features. float32 and float64 are kept as they are; a scipy sparse matrix is made dense if it fits into
            memory.
        y : array-like, shape (n_documents,), default=None
            The labels, 0 or more; None for data to be ranked.
        qid : sequence of hashable, length n_documents, default=None
            One id per row, in any order. Give either ``qid`` or ``group``, or neither where ``y`` is made by
            :func:`rankwise.sklearn.labels`, which carry their own.
        group : array-like of int, shape (n_queries,), default=None
            The sizes of consecutive queries. A size of 0 is a query without documents.
        weight : array-like, shape (n_queries,), default=None
            One number per query, in order of first appearance: 0, or between 1e-100 and 1e100.
        docid : sequence, length n_documents, default=None
            One id per row.
        feature_names : sequence of str, length n_features, default=None
            One name per feature, without repeats; the columns of a data frame where None.
        missing : {"error", "zero", "min", "keep"}, default="error"
            What to do with NaN and infinity. "min" takes the smallest value of the feature in the same query (LETOR's
            rule). "keep" keeps NaN, which only some rankers take (:class:`~rankwise.HybridRanker`), and refuses
            infinity.
        document_weight : array-like, shape (n_documents,), default=None
            One number per row: 0, or between 1e-100 and 1e100. A document of weight k counts in the loss of a ranker as
            k copies of it would.

        Returns
        -------
        queries : Queries
            The queries, numbered by first appearance.

        Raises
        ------
        DataError
            If the grouping is not given exactly once, or an array does not have the shape, type or values above.

        Warns
        -----
        DataWarning
            If ``group`` holds a size of 0.
        """
        if feature_names is None and hasattr(X, "columns"):
            feature_names = list(X.columns)  # a data frame names its features
        X = checks.as_features(X)
        if isinstance(y, Labels) and qid is None and group is None:
            qid = y.whole_queries()
        if (qid is None) == (group is None):
            found = "neither" if qid is None else "both"
            raise DataError(f"pass either qid= (one id per row) or group= (query sizes); got {found}")
        parts = grouping.by_id(qid, len(X)) if qid is not None else grouping.by_size(group, len(X))  # type: ignore[arg-type]
        if group is not None:
            grouping.warn_of_empty(np.diff(parts.start), "group")
        fields = check_fields(X, y, parts, weight, docid, feature_names, missing)
        queries = cls._trusted(*fields)._replace(finite=missing != "keep")
        return queries if document_weight is None else queries.with_document_weight(document_weight)

    @classmethod
    def from_frame(cls, frame: Any, **columns: Any) -> "Queries":
        """Make queries from a polars, pandas or Arrow table.

        Parameters
        ----------
        frame : data frame
            One row per document.
        **columns : keyword arguments
            The column names and options of :func:`rankwise.io.tables.frames.from_frame`.

        Returns
        -------
        queries : Queries
            The queries of the table.
        """
        from rankwise.io.tables.frames import from_frame

        return from_frame(frame, **columns)

    @classmethod
    def concat(cls, parts: Sequence["Queries"], *, rename: bool = False) -> "Queries":
        """Join sets of queries, in order.

        Parameters
        ----------
        parts : sequence of Queries
            The sets. Either all or none carry labels, query ids, document ids and feature names.
        rename : bool, default=False
            Whether the query ids become the texts ``part/id``. Otherwise parts that share a query id raise an error,
            because two queries would become one.

        Returns
        -------
        queries : Queries
            All queries of the parts.
        """
        from rankwise.queries.concat import concat

        return concat(parts, rename=rename)

    # ------------------------------------------------------------------------------------------- looking at it

    @property
    def rows(self) -> NDArray[np.int64]:
        """Row numbers, query after query; the identity where the input was grouped."""
        return np.arange(len(self.X), dtype=np.int64) if self._rows is None else self._rows

    @property
    def scattered_rows(self) -> NDArray[np.int64] | None:
        """``rows`` where the input was not grouped, otherwise None: what functions take that skip the look-up then."""
        return self._rows

    @property
    def is_grouped(self) -> bool:
        """Whether the rows of every query stand together in the input, in the order of the queries."""
        return self._rows is None

    @property
    def n_features(self) -> int:
        """The number of features."""
        return int(self.X.shape[1])

    def labels(self) -> NDArray[np.float64]:
        """The labels, for functions that need them.

        Returns
        -------
        y : ndarray of float64, shape (n_documents,)
            The labels, in input order.

        Raises
        ------
        DataError
            If the queries carry no labels.
        """
        if self.y is None:
            raise DataError("these queries have no labels, which are required here: use with_labels(y)")
        return self.y

    @property
    def query_of_row(self) -> NDArray[np.int64]:
        """The number of the query of every row, in input order."""
        owner = np.repeat(np.arange(len(self), dtype=np.int64), self.sizes)
        if self._rows is None:
            return owner
        placed = np.empty_like(owner)
        placed[self._rows] = owner
        return placed

    def rows_of(self, query: int) -> Any:
        """The index that selects the rows of one query from an array in input order.

        Parameters
        ----------
        query : int
            The number of the query; negative numbers count from the end.

        Returns
        -------
        rows : slice or ndarray of int64
            A slice where the rows stand together.
        """
        if not isinstance(query, (int, np.integer)) or not -len(self) <= query < len(self):
            raise DataError(f"rows_of takes the number of a query from 0 to {len(self) - 1:,}, got {query!r:.60}")
        query = range(len(self))[int(query)]
        first, last = int(self.start[query]), int(self.start[query + 1])
        return slice(first, last) if self._rows is None else self._rows[first:last]

    def in_query_order(self, values: Array) -> Array:
        """Bring values per document from input order into the order of ``rows``.

        Parameters
        ----------
        values : ndarray, shape (n_documents, ...)
            Values in input order.

        Returns
        -------
        values : ndarray, shape (n_documents, ...)
            The values query after query; the same array where the input was grouped.
        """
        return values if self._rows is None else values[self._rows]  # type: ignore[return-value]

    def names(self) -> list[Any]:
        """The query ids as Python values.

        Returns
        -------
        names : list
            The ids; the positions 0, 1, ... where the queries have none.
        """
        return list(range(len(self))) if self.qid is None else list(self.qid.tolist())

    def __iter__(self) -> Iterator[Query]:
        return (one_query(self, query) for query in range(len(self)))

    @overload
    def __getitem__(self, key: int | np.integer[Any]) -> Query: ...
    @overload
    def __getitem__(self, key: slice | Sequence[int] | NDArray[Any] | tuple[Any, ...]) -> "Queries": ...
    def __getitem__(self, key: Any) -> "Query | Queries":
        return select(self, key)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """The documents, without the grouping: what a transformer of scikit-learn sees."""
        return np.array(self.X, dtype=dtype) if copy else np.asarray(self.X, dtype=dtype)

    def __repr__(self) -> str:
        labels = "no labels"
        if self.y is not None:
            labels = f"labels {self.y.min():g} to {self.y.max():g}" if len(self.y) else "labels none"
        return (
            f"Queries({plural(len(self), 'query', 'queries')}, {plural(self.n_documents, 'document')}, "
            f"{plural(self.n_features, 'feature')}, {labels})"
        )

    def _repr_html_(self) -> str:
        """The HTML that notebooks show: the numbers, and the first queries."""
        from rankwise.queries.html import queries_html

        return queries_html(self)

    def browse(self, scores: ArrayLike | None = None, *, first: int = 20, documents: int = 10) -> "QueryBrowser":
        """Leaf through the first queries in a notebook: each opens and shows its documents with labels and features.

        Parameters
        ----------
        scores : array-like of shape (n_documents,), default=None
            Scores that order the documents of each query, best first; None orders them by their labels.
        first : int, default=20
            How many queries are shown, up to 100; ``queries[chosen].browse()`` shows others.
        documents : int, default=10
            How many documents of each query are shown, up to 50.

        Returns
        -------
        QueryBrowser
            An object that notebooks show; it needs no widget and no script.

        Examples
        --------
        >>> from rankwise import make_lists
        >>> make_lists(30, random_state=1).browse(first=5)
        QueryBrowser(5 queries of 30)
        """
        from rankwise.queries.html import QueryBrowser

        return QueryBrowser.of(self, scores, first, documents)

    # ------------------------------------------------------------------------------------------- making another

    def with_labels(self, y: ArrayLike | None) -> "Queries":
        """The same documents with other labels.

        Parameters
        ----------
        y : array-like, shape (n_documents,), or None
            The new labels, which count as judgments of all documents; None removes the labels.

        Returns
        -------
        queries : Queries
            A copy that shares ``X``.
        """
        return self._replace(y=None if y is None else checks.as_labels(y, self.n_documents), judged=None)

    def with_weight(self, weight: ArrayLike | None) -> "Queries":
        """The same queries with other weights.

        Parameters
        ----------
        weight : array-like, shape (n_queries,), or None
            The new query weights; None weights all queries equally.

        Returns
        -------
        queries : Queries
            A copy that shares ``X``.
        """
        return self._replace(weight=None if weight is None else checks.as_weights(weight, len(self)))

    def with_document_weight(self, document_weight: ArrayLike | None) -> "Queries":
        """The same queries with other document weights.

        Parameters
        ----------
        document_weight : array-like, shape (n_documents,), or None
            The new document weights, in input order; None weights all documents equally.

        Returns
        -------
        queries : Queries
            A copy that shares ``X``.
        """
        given = None if document_weight is None else checks.as_document_weights(document_weight, self.n_documents)
        return self._replace(document_weight=given)

    def with_judged(self, judged: ArrayLike | None) -> "Queries":
        """The same queries, of which only some documents were judged.

        Parameters
        ----------
        judged : array-like of bool, shape (n_documents,), or None
            Whether each document was judged, in input order; one that was not has label 0. None: all were.

        Returns
        -------
        queries : Queries
            A copy that shares ``X``.
        """
        given = None if judged is None else checks.as_judged(judged, self.labels())
        return self._replace(judged=None if given is None or given.all() else given)

    def map_features(
        self, function: Callable[[Floats], ArrayLike], *, feature_names: Sequence[str] | None = None
    ) -> "Queries":
        """The same queries with transformed features.

        Parameters
        ----------
        function : callable
            Takes ``X`` and returns as many rows.
        feature_names : sequence of str, default=None
            The names of the new features; None keeps the old names while the number of features stays the same.

        Returns
        -------
        queries : Queries
            A copy with ``function(X)`` as its features.
        """
        X = checks.as_features(function(self.X))
        if len(X) != self.n_documents:
            raise DataError(f"the function returned {len(X):,} rows for {self.n_documents:,} documents")
        X = checks.fill_missing(X, self.start, self._rows, "error")
        if feature_names is None and X.shape[1] == self.n_features:
            feature_names = self.feature_names
        names = checks.as_names(feature_names, X.shape[1])
        return self._replace(X=X, feature_names=names, scaling=None, built_by=None)

    def select_features(self, names: Sequence[str]) -> "Queries":
        """The same queries with some of their features.

        Parameters
        ----------
        names : sequence of str
            The features, in the new order.

        Returns
        -------
        queries : Queries
            A copy with these features.

        Raises
        ------
        DataError
            If the features have no names, or none of them has a given name.
        """
        return select_features(self, names)

    def save(self, path: "str | PathLike[str]") -> None:
        """Write everything to one file that holds no code; :func:`rankwise.load` maps it back into memory.

        Parameters
        ----------
        path : path
            The file, which is replaced as a whole.
        """
        from rankwise.queries.stored import save_queries

        save_queries(self, path)

    def __reduce__(self) -> tuple[Any, ...]:
        return Queries._trusted, tuple(getattr(self, name) for name in _FIELDS)

    def refuse_missing(self, who: str) -> None:
        """Raise an error for NaN that ``missing="keep"`` left in, where ``who`` has no use for it."""
        if not self._finite:  # looked at once: reading all of X takes as long as multiplying it by weights
            checks.refuse_missing(self.X, who)
            object.__setattr__(self, "_finite", True)

    def _replace(self, **changes: Any) -> "Queries":
        """A copy with other fields, by the names of the constructor's parameters."""
        if "X" in changes:
            changes.setdefault("finite", False)
        other = Queries._trusted(*(changes.get(name.lstrip("_"), getattr(self, name)) for name in _FIELDS))
        if changes.keys() <= _NOT_IN_FINGERPRINTS and hasattr(self, "_fingerprints"):
            object.__setattr__(other, "_fingerprints", self._fingerprints)
        return other


def as_queries(value: Any, function: str) -> Queries:
    """The queries that a function was given, or an error that says what the function takes."""
    if isinstance(value, Queries):
        return value
    hint = "; read_letor and read_table read files" if isinstance(value, (str, bytes, os.PathLike)) else ""
    if hasattr(value, "to_queries"):
        hint = ", which this does not take in parts: to_queries() reads all of them into memory"
    raise DataError(f"{function} takes Queries, got {type(value).__name__}{hint}")


def _read_only(array: Array) -> Array:
    """A view that cannot be written through: what was checked stays checked."""
    view = array.view()
    view.flags.writeable = False
    return view
