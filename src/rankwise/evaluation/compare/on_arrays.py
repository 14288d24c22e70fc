"""Objects that learn from arrays, as scikit-learn's, LightGBM's and XGBoost's do, behind the door of our rankers."""

from inspect import Parameter, signature
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from rankwise.data.queries import Queries

Vector = NDArray[np.float64]


class OnArrays(BaseEstimator):  # type: ignore[misc]
    """An object with ``fit(X, y)`` and ``predict(X)`` that is given judged lists.

    ``fit`` is told the sizes of the lists where it takes ``group``, or their numbers where it takes ``qid``, and the
    weights of the lists, one a document, where it takes ``sample_weight`` and no groups. Lists of weight 0 are left
    out.

    Parameters
    ----------
    model : the object, which is cloned where it can be
    """

    takes_validation = False

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, queries: Queries) -> Self:
        """Learn from the documents of all lists, list after list."""
        if queries.weight is not None and (queries.weight == 0).any():
            queries = queries[queries.weight > 0]
        X, y = in_list_order(queries)
        told: dict[str, Any] = {}
        if takes(self.model.fit, "group"):
            told["group"] = queries.sizes
        elif takes(self.model.fit, "qid"):
            told["qid"] = np.repeat(np.arange(len(queries)), queries.sizes)
        elif takes(self.model.fit, "sample_weight") and queries.weight is not None:
            told["sample_weight"] = row_weights(queries)
        self.model_ = self.model.fit(X, y, **told)
        if self.model_ is None:  # an object that learns in place and returns nothing
            self.model_ = self.model
        return self

    def predict(self, queries: Queries) -> Any:
        """One score a document, in the order of the input."""
        return self.model_.predict(np.asarray(queries.X))


def takes(function: Any, name: str) -> bool:
    """Whether a function has a parameter of this name (``**others`` do not count)."""
    try:
        found = signature(function).parameters.get(name)
    except (TypeError, ValueError):  # a builtin that does not say
        return False
    return found is not None and found.kind not in (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL)


def in_list_order(queries: Queries) -> tuple[Any, Vector]:
    """(X, y) with the documents of every list together."""
    return queries.in_query_order(np.asarray(queries.X)), queries.in_query_order(queries.labels())


def row_weights(queries: Queries) -> Vector | None:
    """The weight of its list for every document, list after list; None where all count the same."""
    return None if queries.weight is None else np.repeat(queries.weight, queries.sizes)
