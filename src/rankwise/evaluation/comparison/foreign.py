"""Learners of other packages in a comparison.

:class:`OnArrays` adapts any object with ``fit(X, y)`` and ``predict(X)``, such as those of scikit-learn, LightGBM and
XGBoost, to queries. :class:`LambdaRank` is LightGBM's lambdarank as a ranker of its own, with early stopping;
:func:`save_trees` and :func:`read_trees` keep its trees in the folder of finished cells.
"""

import os
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from rankwise._extras import require
from rankwise._store import Store, StoreWriter
from rankwise.errors import DataError, FileFormatError
from rankwise.evaluation.comparison.keys import plain
from rankwise.measures._base import Vector, parse
from rankwise.measures.ndcg import NDCG
from rankwise.queries.queries import Queries
from rankwise.rankers._foreign import fit_foreign, in_list_order, refuse_document_weights, row_weights

KIND = "lambdarank trees"  # of files
_LARGEST_LABEL = 30  # LightGBM's own table of gains ends there


class OnArrays(BaseEstimator):  # type: ignore[misc]
    """An object with ``fit(X, y)`` and ``predict(X)`` that is given judged queries.

    ``fit`` receives the grouping of the rows in the form that it takes (:func:`rankwise.rankers._foreign.fit_foreign`).
    Queries of weight 0 are left out.

    Parameters
    ----------
    model : object
        The object, which is cloned where it can be.

    Attributes
    ----------
    model_ : object
        The fitted object.
    """

    takes_validation = False

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, queries: Queries) -> Self:
        """Train on the documents of all queries, query after query."""
        self.model_ = fit_foreign(self.model, queries)
        return self

    def predict(self, queries: Queries) -> Any:
        """Score every document."""
        return self.model_.predict(np.asarray(queries.X))


@dataclass(eq=False, repr=False)
class LambdaRank(BaseEstimator):  # type: ignore[misc]
    """``lightgbm.train`` with the objective lambdarank, and early stopping by NDCG on the validation part.

    Parameters
    ----------
    measure : str or Measure, default="nDCG@10"
        The cutoff of an nDCG@k is that of the NDCG which is watched; 10 for any other measure.
    trees : int, default=1000
        The largest number of trees.
    few_trees : int, default=100
        The number of trees where there is no validation part.
    rate : float, default=0.05
        The learning rate.
    leaves : int, default=31
        Leaves per tree.
    smallest_leaf : int, default=20
        The smallest number of documents in a leaf.
    patience : int, default=50
        Stop after so many trees without an improvement on the validation part.
    random_state : int, default=0
        Seed.

    Attributes
    ----------
    trees_ : int
        Trees that were kept.
    model_ : lightgbm.Booster
        The fitted booster.

    Notes
    -----
    It uses one thread and LightGBM's ``deterministic``: sums in several threads have other bits.
    """

    takes_validation = True

    measure: Any = "nDCG@10"
    _: KW_ONLY
    trees: int = 1000
    few_trees: int = 100
    rate: float = 0.05
    leaves: int = 31
    smallest_leaf: int = 20
    patience: int = 50
    random_state: int = 0

    def fit(self, queries: Queries, validation: Queries | None = None) -> Self:
        """Grow trees on ``queries``, as many as do best on ``validation``.

        Parameters
        ----------
        queries : Queries
            Judged queries.
        validation : Queries, default=None
            The validation part.

        Returns
        -------
        LambdaRank
            The object itself.
        """
        refuse_document_weights(queries, "LightGBM")
        lightgbm, measure = require("lightgbm"), parse(self.measure)
        rules = {
            "objective": "lambdarank",
            "metric": "ndcg",
            "eval_at": [measure.cutoff or 10 if isinstance(measure, NDCG) else 10],
            "learning_rate": self.rate,
            "num_leaves": self.leaves,
            "min_data_in_leaf": self.smallest_leaf,
            "seed": self.random_state,
            # several threads would give other bits
            "num_threads": 1,
            "deterministic": True,
            "force_row_wise": True,
            "verbosity": -1,
        }
        train = lightgbm.Dataset(*_check_labels(queries), group=queries.sizes, weight=row_weights(queries))
        if validation is None:
            self.model_ = lightgbm.train(rules, train, self.few_trees)
        else:
            watched = train.create_valid(*_check_labels(validation), group=validation.sizes)
            stop = lightgbm.early_stopping(self.patience, verbose=False)
            self.model_ = lightgbm.train(rules, train, self.trees, valid_sets=[watched], callbacks=[stop])
        self.trees_ = int(self.model_.best_iteration if validation is not None else self.model_.num_trees())
        return self

    def predict(self, queries: Queries) -> Vector:
        """Score every document."""
        return np.asarray(self.model_.predict(np.asarray(queries.X), num_iteration=self.trees_), dtype=np.float64)


def _check_labels(queries: Queries) -> tuple[Any, Vector]:
    """Features and labels, query after query; labels that LightGBM does not take raise an error."""
    X, y = in_list_order(queries)
    odd = y[(y != np.rint(y)) | (y > _LARGEST_LABEL)]
    if len(odd):
        raise DataError(f"LightGBM's lambdarank requires integer labels from 0 to {_LARGEST_LABEL}, got {odd[0]:g}")
    return X, y


def save_trees(model: LambdaRank, path: str | os.PathLike[str]) -> None:
    """Write a fitted model, without the trees that early stopping left out."""
    # the text that LightGBM itself writes: no code, and readable by later versions
    text = model.model_.model_to_string(num_iteration=model.trees_)
    parameters = {name: plain(value, name) for name, value in model.get_params(deep=False).items()}
    with StoreWriter(path, KIND) as file:
        file.metadata.update({"parameters": parameters, "trees": model.trees_})
        file.append("text", np.frombuffer(text.encode(), dtype=np.uint8))


def read_trees(store: Store) -> LambdaRank:
    """Read a model from the folder of finished cells; the caller has checked that the file was not changed."""
    if store.kind != KIND:
        raise FileFormatError(f"{store.path} must be a file of LightGBM trees, got {store.kind}")
    parameters: dict[str, Any] = store.fact("parameters", dict)
    model = LambdaRank(**parameters)
    text = store.array("text", np.uint8, (None,)).tobytes().decode()
    model.model_ = require("lightgbm").Booster(model_str=text)
    model.trees_ = store.fact("trees", int)
    return model
