"""Parts of queries: the fields that make them, some of the queries, one query, some of the features.

:class:`rankwise.Queries` calls these functions; they stand here so that its own module shows the container alone.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankwise.errors import DataError
from rankwise.queries import checks
from rankwise.queries.checks import Floats
from rankwise.queries.grouping import StringColumn

if TYPE_CHECKING:
    from rankwise.queries.queries import Queries
    from rankwise.queries.scaling import Scaler

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


def as_scaling(scaling: Any, n_features: int) -> "Scaler | None":
    """A scaler that was fitted on as many features, or None."""
    if scaling is None:
        return None
    from rankwise.queries.scaling import Scaler

    if not isinstance(scaling, Scaler) or getattr(scaling, "n_features_in_", None) != n_features:
        raise DataError(f"scaling must be a Scaler fitted on {n_features} features or None, got {scaling!r:.60}")
    return scaling


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
