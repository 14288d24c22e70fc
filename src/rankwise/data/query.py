"""`Query`: one judged query, as iterating over :class:`rankwise.Queries` gives it and online rankers take it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.data import checks
from rankwise.data.checks import Floats
from rankwise.data.string_column import StringColumn

_FIELDS = ("X", "y", "qid", "docid", "weight", "feature_names")


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
    """

    X: Floats
    y: NDArray[np.float64] | None
    qid: Any
    docid: StringColumn | None
    weight: float
    feature_names: tuple[str, ...] | None

    def __post_init__(self) -> None:
        X = checks.as_features(self.X)
        names = checks.as_names(self.feature_names, X.shape[1])
        checked = {
            "X": checks.fill_missing(X, np.array([0, len(X)]), None, "error", names),
            "y": None if self.y is None else checks.as_labels(self.y, len(X)),
            "docid": checks.as_docid(self.docid, len(X)),
            "weight": checks.as_weight(self.weight),
            "feature_names": names,
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
