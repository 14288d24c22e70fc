"""CatBoost: trees grown by its YetiRank.

A :class:`YetiRankModel` has the methods of a :class:`~rankwise.rankers.boosting.growing.GrowingModel`. The models of
all folds and seeds are cut from one quantized pool. CatBoost goes on with a model where it stopped, to the bit as if it
had not stopped, so that trees are grown a few at a time.
"""

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._extras import require
from rankwise._kernels import parallel
from rankwise._kernels.trees import ZERO
from rankwise.errors import RankwiseError
from rankwise.queries.queries import Queries
from rankwise.rankers.boosting.growing import LOOK, joined, no_trees
from rankwise.rankers.boosting.objectives import Derivatives
from rankwise.rankers.boosting.tree_ensemble import TreeEnsemble

Vector = NDArray[np.float64]

# CatBoost fails if a sample happens to be empty: of fewer documents none is drawn.
_FEWEST_SAMPLED = 50


@dataclass(frozen=True)
class QuantizedRows:
    """The features of some sets as CatBoost's pool, which takes a byte per value.

    Attributes
    ----------
    pool : catboost.Pool or None
        The quantized features, query after query; None where no feature has two values.
    params : mapping of str to object
        The parameters of CatBoost that all models share.
    label : ndarray of shape (n_documents,)
        The labels.
    query : ndarray of int64, shape (n_documents,)
        The number of the query of each row.
    n_features : int
        Number of features.
    """

    pool: Any
    params: Mapping[str, Any]
    label: Vector
    query: NDArray[np.int64]
    n_features: int

    @classmethod
    def of(cls, sets: Sequence[Queries], params: Mapping[str, Any], n_jobs: int | None) -> "QuantizedRows":
        """Quantize the documents of these sets, query after query.

        Parameters
        ----------
        sets : sequence of Queries
            The sets.
        params : mapping of str to object
            Parameters of CatBoost.
        n_jobs : int or None
            Number of threads.

        Returns
        -------
        QuantizedRows
            The rows.
        """
        together = joined(sets)
        shared = {
            "loss_function": "YetiRank",
            "thread_count": parallel.engine_threads(n_jobs, together.n_documents * sets[0].n_features),
            "model_shrink_rate": 0,  # CatBoost shrinks monotone models otherwise, and cannot go on with them
            "allow_writing_files": False,
            "logging_level": "Silent",
            **params,
        }
        features = np.concatenate([_as_float32(np.asarray(one.X)[one.rows]) for one in sets])
        label, query = together.labels(), together.query_of_row
        catboost, pool = require("catboost"), None
        if len(features) and _varies(features):
            pool = catboost.Pool(features, label, group_id=query, thread_count=shared["thread_count"])
            with _clear_errors():
                pool.quantize(task_type="CPU")
        return cls(pool, shared, label, query, sets[0].n_features)

    @property
    def splittable(self) -> bool:
        """Whether a feature has two values."""
        return self.pool is not None

    def model(self, derivatives: Derivatives, seed: int, start: Vector | None, n_jobs: int | None) -> "YetiRankModel":
        """A model without trees that learns from the rows which ``derivatives`` give a weight, and scores the others.

        A query whose labels are all equal has no pairs, and nothing is learned from it. There are no scores to start
        from.
        """
        weight = np.ones(len(self.label)) if derivatives.weight is None else derivatives.weight
        n_queries = int(self.query[-1]) + 1 if len(self.query) else 0
        least, most = np.full(n_queries, np.inf), np.full(n_queries, -np.inf)
        np.minimum.at(least, self.query, self.label)
        np.maximum.at(most, self.query, self.label)
        learned = np.flatnonzero((weight > 0) & (least < most)[self.query])
        held = np.flatnonzero(weight == 0)
        own = weight[learned]
        weighted = len(own) > 0 and own.min() < own.max()
        pool: Any = self.pool.slice(learned) if len(learned) else None
        if weighted:
            # CatBoost adds constants to sums of weights: a common factor of all weights would change the trees
            pool.set_group_weight(own / own.mean())
        others = self.pool.slice(held) if len(held) else None
        params = {**self.params, "random_seed": seed}
        if params.get("subsample", 1.0) * len(learned) < _FEWEST_SAMPLED:
            params = {**params, "bootstrap_type": "No"}
            params.pop("subsample", None)
        return YetiRankModel(pool, params, held, others, len(weight), self.n_features, weighted)


@dataclass
class YetiRankModel:
    """A sum of trees under way.

    Attributes
    ----------
    pool : catboost.Pool or None
        What is learned from; None where there is nothing to learn.
    params : mapping of str to object
        The parameters of CatBoost.
    held : ndarray of int64
        The rows of weight 0, which are scored.
    others : catboost.Pool or None
        Their features.
    n_documents : int
        Number of all rows.
    n_features : int
        Number of features.
    weighted : bool
        Whether queries that are learned from have different weights.
    iteration : int
        Number of times that a tree was asked for.
    start : None
        There are no scores that trees are added to.
    booster : catboost.CatBoost or None
        The trees that were grown; at most a few that were asked for are not.
    """

    pool: Any
    params: Mapping[str, Any]
    held: NDArray[np.int64]
    others: Any
    n_documents: int
    n_features: int
    weighted: bool
    iteration: int = 0
    booster: Any = None
    start: Vector | None = None
    _scores: Vector = field(init=False)
    _scored: int = 0

    def __post_init__(self) -> None:
        self._scores = np.zeros(self.n_documents)

    def grow(self) -> None:
        """Ask for a tree; they are grown a few at a time."""
        self.iteration += 1
        if self.iteration % LOOK == 0:
            self._catch_up()

    def _catch_up(self) -> None:
        """Grow the trees that were asked for."""
        lacking = self.iteration - (self.booster.tree_count_ if self.booster is not None else 0)
        if self.pool is None or not lacking:
            return
        further = require("catboost").CatBoost({**self.params, "iterations": lacking})
        with _clear_errors():
            further.fit(self.pool, init_model=self.booster)
        self.booster = further

    def scores(self, rows: NDArray[np.int64] | None = None) -> Vector:
        """The scores of these rows, None for all; those of rows that are learned from are 0."""
        self._catch_up()
        if self.booster is not None and self.others is not None and self._scored < self.iteration:
            threads = self.params["thread_count"]
            self._scores[self.held] += self.booster.predict(
                self.others, ntree_start=self._scored, ntree_end=self.iteration, thread_count=threads
            )
            self._scored = self.iteration
        return self._scores.copy() if rows is None else self._scores[rows]

    def ensemble(self) -> TreeEnsemble:
        """The trees."""
        self._catch_up()
        if self.booster is None:
            return no_trees(self.n_features)
        with tempfile.TemporaryDirectory() as folder:  # CatBoost writes this format to files alone
            path = Path(folder) / "model.json"
            self.booster.save_model(str(path), format="json")
            text = path.read_bytes()
        return TreeEnsemble.from_catboost_json(text if not self.weighted else self._with_counts(text))

    def _with_counts(self, text: bytes) -> str:
        """The saved model with the number of documents in place of the weight of every leaf."""
        model = json.loads(text)
        trees = model["oblivious_trees"]
        for first in range(0, len(trees), LOOK):  # the leaf of every row and tree at once would take a lot of memory
            own = trees[first : first + LOOK]
            leaves = self.booster.calc_leaf_indexes(
                self.pool, first, first + len(own), thread_count=self.params["thread_count"]
            )
            for tree, leaf in zip(own, leaves.T, strict=True):
                tree["leaf_weights"] = np.bincount(leaf, minlength=len(tree["leaf_values"])).tolist()
        return json.dumps(model)


@contextmanager
def _clear_errors() -> Iterator[None]:
    """Turn errors of CatBoost into one sentence."""
    try:
        yield
    except require("catboost").CatBoostError as error:
        said = str(error).partition("\n")[0].partition(": ")[2] or str(error)
        raise RankwiseError(f"CatBoost cannot grow trees on these queries: {said:.200}") from error


def _as_float32(X: NDArray[Any]) -> NDArray[np.float32]:
    """The features as CatBoost compares them; what is beyond float32 is its largest, what counts as 0 is 0."""
    limit = float(np.finfo(np.float32).max)
    found: NDArray[np.float32] = np.clip(X, -limit, limit).astype(np.float32)
    found[np.abs(found) <= np.float32(ZERO)] = 0.0
    return found


def _varies(X: NDArray[np.float32]) -> bool:
    """Whether a feature has two different values, NaN being one."""
    first = X[0]
    return bool((~((first == X) | (np.isnan(X) & np.isnan(first)))).any())
