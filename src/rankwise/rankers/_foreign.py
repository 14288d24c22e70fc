"""Learners of other packages: how each is told which rows belong to which query, and how it is asked for scores.

LightGBM's ``fit`` takes the sizes of the queries as ``group``, XGBoost's their numbers as ``qid``, CatBoost's as
``group_id``; others learn from rows alone. Nothing here imports any of these packages.
"""

from inspect import Parameter, signature
from typing import Any

import numpy as np

from rankwise._arrays import Vector
from rankwise.errors import DataError
from rankwise.queries.queries import Queries


def fit_foreign(model: Any, queries: Queries) -> Any:
    """Train an object with ``fit(X, y)`` on the documents of all queries, query after query.

    ``fit`` receives the sizes of the queries where it takes ``group``, or their numbers where it takes ``qid`` or
    ``group_id``, and the weights of the queries, one per document, where it takes ``sample_weight`` and no groups.
    Queries of weight 0 are left out.

    Parameters
    ----------
    model : object
        The object.
    queries : Queries
        Judged queries.

    Returns
    -------
    object
        The fitted object.
    """
    refuse_document_weights(queries, type(model).__name__)
    # not every learner accepts a weight of 0, and such queries have no effect
    if queries.weight is not None and (queries.weight == 0).any():
        queries = queries[queries.weight > 0]
    X, y = in_list_order(queries)
    given: dict[str, Any] = {}
    if takes(model.fit, "group"):
        given["group"] = queries.sizes
    elif takes(model.fit, "qid"):
        given["qid"] = np.repeat(np.arange(len(queries)), queries.sizes)
    elif takes(model.fit, "group_id"):
        given["group_id"] = np.repeat(np.arange(len(queries)), queries.sizes)
    elif takes(model.fit, "sample_weight") and queries.weight is not None:
        given["sample_weight"] = row_weights(queries)
    fitted = model.fit(X, y, **given)
    return model if fitted is None else fitted  # an object that learns in place may return nothing


def is_fitted(model: Any) -> bool:
    """Whether an object of another package has learned: by its own word, or because it cannot learn any more."""
    if not hasattr(model, "fit"):
        return True  # a booster of LightGBM or XGBoost
    for asked in ("__sklearn_is_fitted__", "is_fitted"):  # scikit-learn's protocol, CatBoost's
        if callable(getattr(model, asked, None)):
            return bool(getattr(model, asked)())
    return any(name.endswith("_") and not name.endswith("__") for name in getattr(model, "__dict__", {}))


def foreign_scores(model: Any, X: Any) -> Vector:
    """One score per row from the ``predict`` of a fitted object.

    Parameters
    ----------
    model : object
        The object; a booster of XGBoost, whose ``predict`` takes no array, is asked by ``inplace_predict``.
    X : array of shape (n_documents, n_features)
        The rows.

    Returns
    -------
    ndarray of shape (n_documents,)
        The scores.

    Raises
    ------
    DataError
        If these are not one finite number per row.
    """
    ask = getattr(model, "predict" if hasattr(model, "fit") else "inplace_predict", None) or model.predict
    found = np.asarray(ask(np.asarray(X)))
    try:
        scores = found.astype(np.float64)
    except (TypeError, ValueError):
        scores = np.full(found.shape, np.nan)
    if scores.shape != (len(X),) or not np.isfinite(scores).all():
        raise DataError(
            f"{type(model).__name__}.predict must return one finite score per row, {len(X):,}, got "
            f"{'values that are not finite' if scores.shape == (len(X),) else f'shape {found.shape}'}"
        )
    return scores


def takes(function: Any, name: str) -> bool:
    """Whether a function has a parameter of this name (``**others`` do not count)."""
    try:
        found = signature(function).parameters.get(name)
    except (TypeError, ValueError):  # a builtin that does not say
        return False
    return found is not None and found.kind not in (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL)


_OF_ARRAYS = ("lightgbm", "xgboost", "catboost", "sklearn")


def takes_arrays(model: Any) -> bool:
    """Whether ``predict`` of a model takes features as an array: its ``fit`` takes labels, or its package is known."""
    if type(model).__module__.startswith("rankwise."):
        return False
    return takes(getattr(model, "fit", None), "y") or type(model).__module__.partition(".")[0] in _OF_ARRAYS


def in_list_order(queries: Queries) -> tuple[Any, Vector]:
    """Features and labels with the documents of every query together."""
    return queries.in_query_order(np.asarray(queries.X)), queries.in_query_order(queries.labels())


def refuse_document_weights(queries: Queries, name: str) -> None:
    """Raise an error for document weights: what they mean in another learner is not known."""
    if queries.document_weight is not None:
        raise DataError(
            f"{name} takes no document weights, because their meaning differs: pass queries.with_document_weight(None)"
        )


def row_weights(queries: Queries) -> Vector | None:
    """For every document the weight of its query, query after query."""
    return None if queries.weight is None else np.repeat(queries.weight, queries.sizes)
