"""Parts of queries: the fields that make them, some of the queries, one query, some of the features.

:class:`rankwise.Queries` calls these functions; they stand here so that its own module shows the container alone.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankwise.errors import DataError
from rankwise.queries import checks
from rankwise.queries.checks import Floats, Missing
from rankwise.queries.grouping import Grouping
from rankwise.queries.string_column import offsets

if TYPE_CHECKING:
    from rankwise.queries.queries import Queries
    from rankwise.queries.scaling import Scaler
from dataclasses import dataclass

from rankwise.queries.string_column import StringColumn

# ---------------------------------------------------------------------------------------------------------- one query


_FIELDS = ("X", "y", "qid", "docid", "weight", "feature_names", "document_weight")


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """One judged query: a view of its rows, in input order.

    ``queries[q]`` gives a view without another check. A query that is made by hand is checked as
    :class:`Queries` are.

    Parameters
    ----------
    X : array-like, shape (n_documents, n_features)
        The feature vectors of the documents.
    y : array-like, shape (n_documents,), or None
        The labels, 0 or more; None for data to be ranked.
    qid : hashable
        The id of the query; its position where the queries have no ids.
    docid : sequence or StringColumn, length n_documents, or None
        The document ids.
    weight : float
        The weight of the query, 0 or between 1e-100 and 1e100.
    feature_names : sequence of str, length n_features, or None
        The names of the features.
    document_weight : array-like, shape (n_documents,), default=None
        The document weights.
    """

    X: Floats
    y: NDArray[np.float64] | None
    qid: Any
    docid: StringColumn | None
    weight: float
    feature_names: tuple[str, ...] | None
    document_weight: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        X = checks.as_features(self.X)
        names = checks.as_names(self.feature_names, X.shape[1])
        checked = {
            "X": checks.fill_missing(X, np.array([0, len(X)]), None, "error", names),
            "y": None if self.y is None else checks.as_labels(self.y, len(X)),
            "docid": checks.as_docid(self.docid, len(X)),
            "weight": checks.as_weight(self.weight),
            "feature_names": names,
            "document_weight": None
            if self.document_weight is None
            else checks.as_document_weights(self.document_weight, len(X)),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @classmethod
    def _trusted(cls, *fields: Any) -> "Query":
        """A query of checked parts, in the order of the fields."""
        query = object.__new__(cls)
        for name, value in zip(_FIELDS, fields, strict=True):
            object.__setattr__(query, name, value)
        return query

    def __len__(self) -> int:
        return len(self.X)

    def _repr_html_(self) -> str:
        """The HTML that notebooks show: the documents, the highest labels first."""
        from rankwise.queries.html import query_html

        return query_html(self)


def check_fields(
    X: Floats, y: Any, layout: Grouping, weight: Any, docid: Any, names: Any, missing: Missing = "error"
) -> tuple[Any, ...]:
    """The fields of queries, without the scaling, after all checks but those of ``X``'s type and of the layout."""
    names = checks.as_names(names, X.shape[1])
    return (
        checks.fill_missing(X, layout.start, layout.rows, missing, names),
        None if y is None else checks.as_labels(y, len(X)),
        layout.start,
        layout.rows,
        None if weight is None else checks.as_weights(weight, len(layout.start) - 1),
        layout.qid,
        checks.as_docid(docid, len(X)),
        names,
    )


def as_scaling(scaling: Any, n_features: int) -> "Scaler | None":
    """A scaler that was fitted on as many features, or None."""
    if scaling is None:
        return None
    from rankwise.queries.scaling import Scaler

    if not isinstance(scaling, Scaler) or getattr(scaling, "n_features_in_", None) != n_features:
        raise DataError(f"scaling must be a Scaler fitted on {n_features} features or None, got {scaling!r:.60}")
    return scaling


def select(queries: "Queries", key: Any) -> "Query | Queries":
    """``queries[key]``: one query for a number, otherwise the queries of a slice, a mask or a list of numbers."""
    if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:  # how scikit-learn slices
        key = key[0]
    if isinstance(key, tuple) and len(key) == 2:
        raise DataError(
            "queries are selected by one index: select_features(names) selects features, and "
            "DocumentTransformer(transformer) applies a scikit-learn transformer of columns"
        )
    if isinstance(key, (int, np.integer)):
        return one_query(queries, range(len(queries))[int(key)])
    if isinstance(key, slice) and key.step in (None, 1) and queries.is_grouped:
        first, last, _ = key.indices(len(queries))
        last = max(first, last)
        row, end = int(queries.start[first]), int(queries.start[last])
        # views of the same memory
        return _at(queries, slice(row, end), queries.start[first : last + 1] - row, slice(first, last))
    try:
        if not isinstance(key, slice):
            key = np.asarray(key) if len(key) else np.zeros(0, dtype=np.int64)
        chosen = np.arange(len(queries))[key]
        sizes = queries.sizes[chosen]
        start = offsets(sizes)
        places = np.repeat(queries.start[chosen] - start[:-1], sizes) + np.arange(start[-1])
        return _at(queries, places if queries.is_grouped else queries.rows[places], start, chosen)
    except (IndexError, TypeError) as error:
        raise DataError(f"queries are chosen by number, slice, mask or list of numbers: {error}") from error


def one_query(queries: "Queries", query: int) -> Query:
    """One query as a view."""
    places = queries.rows_of(query)
    return Query._trusted(
        queries.X[places],
        None if queries.y is None else queries.y[places],
        query if queries.qid is None else queries.qid[query],
        None if queries.docid is None else queries.docid[places],
        1.0 if queries.weight is None else float(queries.weight[query]),
        queries.feature_names,
        None if queries.document_weight is None else queries.document_weight[places],
    )


def select_features(queries: "Queries", names: Sequence[str]) -> "Queries":
    """The queries with the named features, in that order."""
    if isinstance(names, (str, bytes)) or not isinstance(names, Iterable):
        raise DataError(f"select_features takes a list of feature names, got {names!r:.60}")
    names = list(names)
    if queries.feature_names is None:
        raise DataError("these queries have no feature names: pass feature_names= when making them")
    place = {name: column for column, name in enumerate(queries.feature_names)}
    lacking = [name for name in names if not isinstance(name, str) or name not in place]
    if lacking:
        raise DataError(f"feature {lacking[0]!r} is not among the {len(place)} features of these queries")
    if tuple(names) == queries.feature_names:
        return queries
    X = np.ascontiguousarray(queries.X[:, [place[name] for name in names]])
    return queries._replace(X=X, feature_names=checks.as_names(names, len(names)), scaling=None, built_by=None)


def _at(queries: "Queries", rows: Any, start: NDArray[np.int64], chosen: Any) -> "Queries":
    """The queries whose fields per document are at ``rows`` and whose fields per query are at ``chosen``."""
    return queries._trusted(
        queries.X[rows],
        None if queries.y is None else queries.y[rows],
        start,
        weight=None if queries.weight is None else queries.weight[chosen],
        qid=None if queries.qid is None else queries.qid[chosen],
        docid=None if queries.docid is None else queries.docid[rows],
        feature_names=queries.feature_names,
        scaling=queries.scaling,
        document_weight=None if queries.document_weight is None else queries.document_weight[rows],
        built_by=queries.built_by,
        finite=queries._finite,
        judged=None if queries.judged is None else queries.judged[rows],
    )


def names_or_columns(queries: "Queries") -> list[str]:
    """The names of the features; their columns, such as ``X[:, 4]``, where they have none."""
    return list(queries.feature_names or (f"X[:, {number}]" for number in range(queries.n_features)))
