"""LightGBM's lambdarank as one more ranker to compare with: trees grown until the validation part says enough."""

import os
from inspect import Parameter, signature
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from rankwise._errors import DataError, FileFormatError
from rankwise._extras import require
from rankwise._store import Store, StoreWriter
from rankwise.data.queries import Queries
from rankwise.evaluation.compare.keys import plain
from rankwise.measures.ndcg import NDCG
from rankwise.measures.parse import parse

Vector = NDArray[np.float64]

_LARGEST_LABEL = 30  # LightGBM's own table of gains ends there


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
    X, y = np.asarray(queries.X), queries.labels()
    return (X, y) if queries.is_grouped else (X[queries.rows], y[queries.rows])


def row_weights(queries: Queries) -> Vector | None:
    """The weight of its list for every document, list after list; None where all count the same."""
    return None if queries.weight is None else np.repeat(queries.weight, queries.sizes)


class LambdaRank(BaseEstimator):  # type: ignore[misc]
    """``lightgbm.train`` for its objective lambdarank, with early stopping by NDCG on the validation part.

    Parameters
    ----------
    measure : the cut-off of an nDCG@k is where NDCG is watched; 10 for any other measure
    trees, rate, leaves, smallest_leaf : at most so many trees, their step, their leaves, documents in a leaf at least
    patience : stop after so many trees that do not help on the validation part; without one, ``few_trees`` are grown
    random_state : seed

    Attributes
    ----------
    trees_ : trees that were kept
    model_ : the fitted ``lightgbm.Booster``

    Notes
    -----
    One thread and LightGBM's ``deterministic``: its sums in several threads have other bits.
    """

    takes_validation = True

    def __init__(
        self,
        measure: Any = "nDCG@10",
        *,
        trees: int = 1000,
        few_trees: int = 100,
        rate: float = 0.05,
        leaves: int = 31,
        smallest_leaf: int = 20,
        patience: int = 50,
        random_state: int = 0,
    ) -> None:
        self.measure = measure
        self.trees = trees
        self.few_trees = few_trees
        self.rate = rate
        self.leaves = leaves
        self.smallest_leaf = smallest_leaf
        self.patience = patience
        self.random_state = random_state

    def fit(self, queries: Queries, validation: Queries | None = None) -> Self:
        """Grow trees on ``queries``, as many as do best on ``validation``."""
        lightgbm = require("lightgbm")
        rules = {
            "objective": "lambdarank",
            "metric": "ndcg",
            "eval_at": [self._cutoff()],
            "learning_rate": self.rate,
            "num_leaves": self.leaves,
            "min_data_in_leaf": self.smallest_leaf,
            "seed": self.random_state,
            "num_threads": 1,
            "deterministic": True,
            "force_row_wise": True,
            "verbosity": -1,
        }
        train = lightgbm.Dataset(*_checked(queries), group=queries.sizes, weight=row_weights(queries))
        if validation is None:
            self.model_ = lightgbm.train(rules, train, self.few_trees)
        else:
            watched = train.create_valid(*_checked(validation), group=validation.sizes)
            stop = lightgbm.early_stopping(self.patience, verbose=False)
            self.model_ = lightgbm.train(rules, train, self.trees, valid_sets=[watched], callbacks=[stop])
        self.trees_ = int(self.model_.best_iteration if validation is not None else self.model_.num_trees())
        return self

    def predict(self, queries: Queries) -> NDArray[np.float64]:
        """One score a document, in the order of the input."""
        return np.asarray(self.model_.predict(np.asarray(queries.X), num_iteration=self.trees_), dtype=np.float64)

    def _cutoff(self) -> int:
        measure = parse(self.measure)
        return measure.cutoff if isinstance(measure, NDCG) and measure.cutoff is not None else 10


def _checked(queries: Queries) -> tuple[Any, NDArray[np.float64]]:
    X, y = in_list_order(queries)
    if len(y) and ((y != np.rint(y)) | (y > _LARGEST_LABEL)).any():
        odd = y[(y != np.rint(y)) | (y > _LARGEST_LABEL)][0]
        raise DataError(f"LightGBM's lambdarank takes whole labels from 0 to {_LARGEST_LABEL}: found {odd:g}")
    return X, y


# ------------------------------------------------------------------------------------------------------ compare trees
# LightGBM's trees in the folder of finished cells: the text that LightGBM itself writes, beside our parameters.


KIND = "lambdarank trees"


def save_trees(model: LambdaRank, path: str | os.PathLike[str]) -> None:
    """Write a fitted model; the trees that early stopping left out are left out."""
    text = model.model_.model_to_string(num_iteration=model.trees_)
    parameters = {name: plain(value, name) for name, value in model.get_params(deep=False).items()}
    with StoreWriter(path, KIND) as file:
        file.metadata.update({"parameters": parameters, "trees": model.trees_})
        file.append("text", np.frombuffer(text.encode(), dtype=np.uint8))


def read_trees(store: Store) -> LambdaRank:
    """The model of a file that this run's folder holds; the caller has checked that nothing in it was changed."""
    if store.kind != KIND:
        raise FileFormatError(f"{store.path} holds {store.kind}, and no trees")
    parameters: dict[str, Any] = store.fact("parameters", dict)
    model = LambdaRank(**parameters)
    text = store.array("text", np.uint8, (None,)).tobytes().decode()
    model.model_ = require("lightgbm").Booster(model_str=text)
    model.trees_ = store.fact("trees", int)
    return model
