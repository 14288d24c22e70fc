"""CatBoost: trees grown by its YetiRank, and its JSON format of a model read into flat arrays.

A :class:`YetiRankModel` has the methods of a :class:`~rankwise.rankers.boosting.growing.GrowingModel`. The models of
all folds and seeds are cut from one quantized pool. CatBoost goes on with a model where it stopped, to the bit as if it
had not stopped, so that trees are grown a few at a time.

:func:`read_catboost` reads what ``save_model(path, format="json")`` writes. A tree of CatBoost is symmetric: all nodes
of a level ask the same question. Bit i of the number of a leaf is 1 if the feature of split i, rounded to float32, is
above a float32 border. That is not x <= t, where t is the largest float64 that is rounded to at most the border. NaN is
above no border or, in a feature that says so, above every border.
"""

import json
import math
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
from rankwise.errors import FileFormatError, RankwiseError
from rankwise.queries.queries import Queries
from rankwise.rankers.boosting.growing import LOOK, joined, no_trees
from rankwise.rankers.boosting.objectives import Derivatives
from rankwise.rankers.boosting.tree_ensemble import TreeEnsemble
from rankwise.rankers.boosting.tree_files import MOST_FEATURES, concat_trees, numbers_in

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


# ---------------------------------------------------------------------------------------------- CatBoost's JSON format


_DEEPEST = 16  # CatBoost's own limit
# The first float64 that is rounded to an infinite float32, plus as much again: where the next float32 would be.
_BEYOND = 2.0**128
_OTHER_KINDS = ("categorical_features", "text_features", "embedding_features", "ctrs")


def read_catboost(text: str | bytes) -> tuple[int, dict[str, Any], float]:
    """Read the trees of a model with one score per row.

    Parameters
    ----------
    text : str or bytes
        The model.

    Returns
    -------
    n_features : int
        The number of features.
    arrays : dict of str to ndarray
        The attributes of :class:`~rankwise.rankers.boosting.tree_ensemble.TreeEnsemble` by name.
    offset : float
        The bias.

    Raises
    ------
    FileFormatError
        If the text is no such model, is damaged, or holds what the ensemble cannot express.
    """
    if not isinstance(text, (str, bytes, bytearray)):
        raise RankwiseError(f"a CatBoost model must be a str, got {type(text).__name__}")
    try:
        model = json.loads(text)
        info = dict(model["features_info"])
        others = [kind for kind in _OTHER_KINDS if info.get(kind)]
        trees = list(model["oblivious_trees"]) if "trees" not in model else None
        scale, bias = model["scale_and_bias"]
        biases = [float(one) for one in (bias if isinstance(bias, list) else [bias])]
        scale = float(scale)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
        raise FileFormatError("this is not a CatBoost model in JSON, or it is damaged") from error
    if trees is None:
        raise FileFormatError("the CatBoost model has trees that are not symmetric: expected grow_policy SymmetricTree")
    if others:
        raise FileFormatError(f"the CatBoost model has {others[0]}: encode them as numbers before training")
    if len(biases) != 1:
        raise FileFormatError(f"the CatBoost model has {len(biases)} scores per row: expected one")
    if not math.isfinite(biases[0]) or not math.isfinite(scale):
        raise FileFormatError("the CatBoost model has a scale or bias that is not finite")
    nan_left = _nan_left(info.get("float_features"))
    parts = [_read_tree(tree, nan_left, f"the CatBoost model, tree {number}") for number, tree in enumerate(trees)]
    joined = concat_trees(parts)
    with np.errstate(over="ignore"):  # what overflows is found by the checks of the ensemble
        joined["value"] *= scale
        joined["gain"] *= scale * scale
    return len(nan_left), joined, biases[0]


def _nan_left(features: Any) -> NDArray[np.uint8]:
    """Whether NaN goes left, per feature."""
    where = "the CatBoost model"
    if not isinstance(features, list) or not 1 <= len(features) <= MOST_FEATURES:
        raise FileFormatError(f"{where} has no list of features")
    found = np.ones(len(features), np.uint8)
    for number, feature in enumerate(features):
        if not isinstance(feature, dict) or feature.get("flat_feature_index") != number:
            raise FileFormatError(f"{where}: feature {number} is missing or damaged")
        treatment = feature.get("nan_value_treatment")
        if treatment not in ("AsIs", "AsFalse", "AsTrue"):
            raise FileFormatError(f"{where}: feature {number} treats NaN as {treatment!r:.40}, which is not known")
        found[number] = treatment != "AsTrue"
    return found


def _read_tree(tree: Any, nan_left: NDArray[np.uint8], where: str) -> dict[str, NDArray[Any]]:
    """One tree, level by level: node n has the children 2n + 1 and 2n + 2, and the last level are the leaves.

    The root asks the last split, so that leaves have CatBoost's numbers from left to right, and contributions are those
    of CatBoost.
    """
    if not isinstance(tree, dict):
        raise FileFormatError(f"{where} is not an object")
    splits = tree.get("splits") or []
    if not isinstance(splits, list) or not all(isinstance(split, dict) for split in splits) or len(splits) > _DEEPEST:
        raise FileFormatError(f"{where}: its splits must be a list of at most {_DEEPEST}")
    if any(split.get("split_type", "FloatFeature") != "FloatFeature" for split in splits):
        raise FileFormatError(f"{where}: it splits by categories, encode them as numbers before training")
    depth = len(splits)
    values, weights = (numbers_in(tree, name, where, "if") for name in ("leaf_values", "leaf_weights"))
    if len(values) != 1 << depth or len(weights) != 1 << depth:
        raise FileFormatError(f"{where}: it has {depth} splits and {len(values)} leaf_values: expected {1 << depth}")
    if (weights < 0).any():
        raise FileFormatError(f"{where}: leaf_weights holds a number below 0")
    features = [split.get("float_feature_index") for split in splits]
    if not all(type(one) is int and 0 <= one < len(nan_left) for one in features):
        raise FileFormatError(f"{where}: it splits on a feature that is not one of 0 to {len(nan_left) - 1}")
    borders = numbers_in({"border": [split.get("border") for split in splits]}, "border", where, "if")
    feature = np.array(features, np.int64)
    first_leaf = (1 << depth) - 1
    asked = np.repeat(np.arange(depth)[::-1], 1 << np.arange(depth))
    left = 2 * np.arange(first_leaf, dtype=np.int64) + 1
    last = asked == 0
    gain, weight = _nodes(values, weights, depth)
    # weights that are no counts tell nothing about the number of documents
    counted = bool((weights == np.rint(weights)).all()) and weights.sum() < 2.0**53
    return {
        "feature": feature[asked],
        "threshold": _not_above(borders.astype(np.float32))[asked],
        "left": np.where(last, first_leaf - 1 - left, left),
        "right": np.where(last, first_leaf - 2 - left, left + 1),
        "default_left": nan_left[feature][asked],
        "value": values,
        "gain": gain,
        "node_count": weight.astype(np.int64) if counted else np.zeros(first_leaf, np.int64),
        "leaf_count": weights.astype(np.int64) if counted else np.zeros(len(values), np.int64),
    }


def _nodes(values: NDArray[Any], weights: NDArray[Any], depth: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """The gain and the weight of every node.

    The gain is the variance, over documents, between the leaves of each pair below the node that the node's split alone
    divides. The gains of a feature add up to CatBoost's importance "PredictionValuesChange", but for its unit.
    """
    gains: list[NDArray[Any]] = [np.empty(0)]
    totals: list[NDArray[Any]] = [np.empty(0)]
    with np.errstate(over="ignore", invalid="ignore"):
        for level in range(depth):
            weight, value = (one.reshape(1 << level, 2, -1) for one in (weights, values))
            pair = weight.sum(axis=1)
            product = np.divide(weight[:, 0] * weight[:, 1], pair, out=np.zeros_like(pair), where=pair > 0)
            gains.append((product * (value[:, 1] - value[:, 0]) ** 2).sum(axis=1))
            totals.append(pair.sum(axis=1))
    return np.concatenate(gains), np.concatenate(totals)


def _not_above(border: NDArray[np.float32]) -> NDArray[np.float64]:
    """The largest float64 that is rounded to a float32 of at most the border."""
    with np.errstate(over="ignore"):
        upper = np.nextafter(border, np.float32(np.inf)).astype(np.float64)
        upper = np.where(np.isinf(upper), _BEYOND, upper)
        middle = (border.astype(np.float64) + upper) / 2
        return np.where(middle.astype(np.float32) <= border, middle, np.nextafter(middle, -np.inf))
