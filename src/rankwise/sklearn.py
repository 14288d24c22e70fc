"""Queries in scikit-learn: transformers of documents, grouped labels, unsliced validation sets."""

import importlib.util
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone

from rankwise._extras import require
from rankwise.errors import RankwiseError
from rankwise.queries.folds import Unsliced
from rankwise.queries.grouped_labels import labels
from rankwise.queries.queries import Queries

__all__ = ["DocumentTransformer", "Unsliced", "labels"]


class DocumentTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Apply any transformer of scikit-learn to the documents of queries: Queries in, Queries out.

    A transformer of scikit-learn returns an array, from which no ranker can tell which rows belong to which query.
    This one puts the transformed features back into the queries, with their grouping, labels, ids and weights.

    Parameters
    ----------
    transformer : transformer
        Any object with ``fit`` and ``transform``, for instance a ColumnTransformer or a Pipeline of transformers. It
        is cloned by ``fit``.

    Attributes
    ----------
    transformer_ : transformer
        The fitted transformer.

    Notes
    -----
    The transformer gets the documents of all queries as rows, and the labels as ``y``. Where the queries name their
    features and pandas or polars is installed, the rows are a data frame of these names. Data that are no Queries are
    passed on as they are, and so is what the transformer returns for them.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from rankwise import RidgeRanker, make_lists
    >>> queries = make_lists(60, documents=8, features=4, random_state=1)
    >>> model = make_pipeline(DocumentTransformer(StandardScaler()), RidgeRanker(alpha=1.0)).fit(queries)
    >>> model.predict(queries).shape
    (480,)
    """

    transformer_: Any

    def __init__(self, transformer: Any) -> None:
        self.transformer = transformer

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the transformer on the documents.

        Parameters
        ----------
        X : Queries, or what the transformer takes
            The training queries.
        y : array of shape (n_documents,), default=None
            Labels in place of those of ``X``.

        Returns
        -------
        self : DocumentTransformer
            The fitted transformer.
        """
        self.transformer_ = clone(self.transformer).fit(*_documents(X, y))
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit the transformer on the documents and transform them.

        Parameters
        ----------
        X : Queries, or what the transformer takes
            The training queries.
        y : array of shape (n_documents,), default=None
            Labels in place of those of ``X``.

        Returns
        -------
        X : Queries, or what the transformer returns
            The same queries with the new features.
        """
        self.transformer_ = clone(self.transformer)
        documents, labels = _documents(X, y)
        # the result of fit_transform may differ from that of fit and transform (TargetEncoder fits across folds)
        if hasattr(self.transformer_, "fit_transform"):
            return self._back(X, self.transformer_.fit_transform(documents, labels))
        return self._back(X, self.transformer_.fit(documents, labels).transform(documents))

    def transform(self, X: Any) -> Any:
        """Transform documents.

        Parameters
        ----------
        X : Queries, or what the transformer takes
            The queries.

        Returns
        -------
        X : Queries, or what the transformer returns
            The same queries with the new features.
        """
        self._check_fitted()
        return self._back(X, self.transformer_.transform(_documents(X, None)[0]))

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """The names of the new features, as the transformer gives them.

        Parameters
        ----------
        input_features : sequence of str, default=None
            The names of the features that go in.

        Returns
        -------
        names : ndarray of str
            One name per new feature.
        """
        self._check_fitted()
        return self.transformer_.get_feature_names_out(input_features)

    def set_output(self, *, transform: Any = None) -> Self:
        """Choose what the transformer returns for data that are no Queries; Queries are always returned as Queries.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"}, default=None
            The container; None changes nothing.

        Returns
        -------
        self : DocumentTransformer
            The transformer itself.
        """
        known = [self.transformer, self.transformer_] if hasattr(self, "transformer_") else [self.transformer]
        for one in known:
            if hasattr(one, "set_output"):
                one.set_output(transform=transform)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "transformer_")

    def _check_fitted(self) -> None:
        if not hasattr(self, "transformer_"):
            raise RankwiseError("this DocumentTransformer is not fitted yet: call fit(training queries) first")

    def _back(self, X: Any, made: Any) -> Any:
        """The transformed documents, as Queries where it was given Queries."""
        if not isinstance(X, Queries):
            return made
        return X.map_features(lambda _: made, feature_names=self._names(X, made))

    def _names(self, queries: Queries, made: Any) -> list[str] | None:
        """The names of the new features, if they are known."""
        if hasattr(made, "columns"):
            return [str(column) for column in made.columns]
        if queries.feature_names is None or not hasattr(self.transformer_, "get_feature_names_out"):
            return None
        return list(map(str, self.transformer_.get_feature_names_out()))


def _documents(X: Any, y: Any) -> tuple[Any, Any]:
    """(documents, labels) as a transformer takes them."""
    if not isinstance(X, Queries):
        return X, y
    labels = X.y if y is None else y
    if X.feature_names is None:
        return X.X, labels
    for library, names in (("pandas", "columns"), ("polars", "schema")):
        if importlib.util.find_spec(library) is not None:
            # a copy, which can be written to: some transformers work in place
            return require(library).DataFrame(np.array(X.X), **{names: list(X.feature_names)}), labels
    return X.X, labels
