"""Models of LightGBM (its text format) and of XGBoost (its JSON format), read into flat arrays.

Only what a score depends on is read, with gains and counts; each value is checked for its form here, and the trees as a
whole by :class:`~rankwise.rankers.boosting.tree_ensemble.TreeEnsemble`. :func:`read_lightgbm` reads what
:meth:`lightgbm.Booster.model_to_string` writes, :func:`read_xgboost` what ``Booster.save_raw("json")`` writes.

XGBoost rounds a feature to float32 and goes left if it is below a float32 condition c. That is x <= t, where t is the
largest float64 that is rounded below c.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.errors import FileFormatError, RankwiseError
from rankwise.rankers.boosting.tree_checks import DTYPES, MISSING_NAN

_VERSIONS = ("v3", "v4")
MOST_FEATURES = 10_000_000  # a damaged number must not take all memory
# The bits of a decision type: a set of categories, the side of missing values, and two bits for what is missing.
_CATEGORICAL, _DEFAULT_LEFT, _MISSING = 1, 2, 2


def read_lightgbm(text: str) -> tuple[int, dict[str, Any]]:
    """Read the trees of a model with one score per row.

    Parameters
    ----------
    text : str
        The model.

    Returns
    -------
    n_features : int
        The number of features.
    arrays : dict of str to ndarray
        The attributes of :class:`~rankwise.rankers.boosting.tree_ensemble.TreeEnsemble` by name.

    Raises
    ------
    FileFormatError
        If the text is no such model, is damaged, or holds what the ensemble cannot express.
    """
    if not isinstance(text, str):
        raise RankwiseError(f"a LightGBM model must be a str, got {type(text).__name__}")
    head, *blocks = re.split(r"^Tree=", text.partition("\nend of trees")[0], flags=re.MULTILINE)
    n_features = _read_head(head)
    if "\nend of trees" not in text:
        raise FileFormatError("the LightGBM model is cut short: the line 'end of trees' is missing")
    trees = [_lightgbm_tree(block, number, n_features) for number, block in enumerate(blocks)]
    return n_features, concat_trees(trees)


def _read_head(head: str) -> int:
    """Check the lines before the first tree, and return the number of features."""
    facts = _facts(head)
    if not head.lstrip().startswith("tree\n"):
        raise FileFormatError("this is not a LightGBM model: its first line must be 'tree'")
    if facts.get("version") not in _VERSIONS:
        raise FileFormatError(f"the LightGBM model must have version v3 or v4, got {facts.get('version')!r:.20}")
    if facts.get("num_class") != "1" or facts.get("num_tree_per_iteration") != "1":
        raise FileFormatError("the LightGBM model has several scores per row: expected num_class=1")
    if re.search(r"^average_output", head, flags=re.MULTILINE):
        raise FileFormatError("the LightGBM model is a mean of trees (random forest): expected a sum")
    highest = facts.get("max_feature_idx", "")
    if not re.fullmatch(r"[0-9]{1,10}", highest) or int(highest) >= MOST_FEATURES:
        raise FileFormatError(f"the LightGBM model has max_feature_idx={highest!r:.20}: expected a whole number")
    return int(highest) + 1


def _facts(text: str) -> dict[str, str]:
    """The lines ``key=value``."""
    pairs = (line.partition("=") for line in text.split("\n"))
    return {key: value.strip() for key, mark, value in pairs if mark}


def _lightgbm_tree(block: str, number: int, n_features: int) -> dict[str, NDArray[Any]]:
    """The arrays of one tree, from the text after ``Tree=``."""
    numbered, _, rest = block.partition("\n")
    tree = _Tree(_facts(rest), f"the LightGBM model, tree {number}")
    if numbered.strip() != str(number):
        raise FileFormatError(f"the LightGBM model numbers its tree {number} as {numbered!r:.20}")
    if tree.facts.get("is_linear", "0") != "0":
        raise FileFormatError(f"{tree.where}: it has linear models in its leaves, train with linear_tree=False")
    value = tree.floats("leaf_value")
    leaves, nodes = len(value), len(value) - 1
    if tree.facts.get("num_leaves") != str(leaves):
        raise FileFormatError(f"{tree.where}: it has {leaves} leaf values, and num_leaves says otherwise")
    if not nodes:
        empty = {name: np.empty(0, dtype) for name, dtype in DTYPES.items()}
        return {**empty, "n_words": np.empty(0, np.int64), "value": value, "leaf_count": np.zeros(1, np.int64)}
    decision = tree.wholes("decision_type", nodes, 0, 15)
    missing = decision >> _MISSING
    if (missing > 2).any():
        raise FileFormatError(f"{tree.where}: unknown decision type {int(decision[missing > 2][0])}")
    # a node that separates NaN from all numbers has an infinite threshold, and features are finite or NaN
    threshold, categorical = tree.floats("threshold", nodes, largest=True), (decision & _CATEGORICAL) > 0
    n_words, words = tree.categories(threshold, categorical)
    return {
        "feature": tree.wholes("split_feature", nodes, 0, n_features - 1),
        "threshold": np.where(categorical, 0.0, threshold),
        "left": tree.wholes("left_child", nodes, -leaves, nodes - 1),
        "right": tree.wholes("right_child", nodes, -leaves, nodes - 1),
        "missing": np.where(categorical, 0, missing).astype(np.uint8),
        "default_left": (~categorical & ((decision & _DEFAULT_LEFT) > 0)).astype(np.uint8),
        "n_words": n_words,
        "words": words,
        "value": value,
        "gain": tree.floats("split_gain", nodes),
        "node_count": tree.wholes("internal_count", nodes, 0, 2**53),
        "leaf_count": tree.wholes("leaf_count", leaves, 0, 2**53),
    }


class _Tree:
    """The lines of one tree, whose values are checked as they are read."""

    def __init__(self, facts: Mapping[str, str], where: str) -> None:
        self.facts = facts
        self.where = where

    def floats(self, name: str, length: int | None = None, largest: bool = False) -> NDArray[np.float64]:
        """Finite numbers; with ``largest``, infinity stands for the largest of them."""
        words = self._words(name, length)
        try:
            found = np.array(words, dtype=np.float64)
        except ValueError as error:
            raise FileFormatError(f"{self.where}: {name} holds values that are not numbers") from error
        if largest:
            found[found == np.inf] = np.finfo(np.float64).max
        if not np.isfinite(found).all():
            raise FileFormatError(f"{self.where}: {name} holds a number that is not finite")
        return found

    def wholes(self, name: str, length: int, least: int, most: int) -> NDArray[np.int64]:
        """Whole numbers in a range."""
        words = self._words(name, length)
        wrong = next((word for word in words if not re.fullmatch(r"-?[0-9]{1,18}", word)), None)
        if wrong is not None:
            raise FileFormatError(f"{self.where}: {name} holds {wrong!r:.30}, expected whole numbers")
        found = np.array(words, dtype=np.int64)
        outside = (found < least) | (found > most)
        if outside.any():
            raise FileFormatError(f"{self.where}: {name} holds {found[outside][0]}, expected {least} to {most}")
        return found

    def categories(
        self, threshold: NDArray[np.float64], categorical: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
        """The number of words of every node, and the words in the order of the nodes.

        The threshold of a categorical node is the number of its set; set c has the words cat_boundaries[c] to
        cat_boundaries[c+1]-1 of cat_threshold.
        """
        n_words = np.zeros(len(threshold), np.int64)
        if not categorical.any():
            return n_words, np.empty(0, np.uint32)
        count = self.wholes("num_cat", 1, 1, len(threshold))[0]
        bounds = self.wholes("cat_boundaries", count + 1, 0, 2**53)
        words = self.wholes("cat_threshold", int(bounds[-1]), 0, 2**32 - 1).astype(np.uint32)
        if bounds[0] != 0 or (np.diff(bounds) <= 0).any():
            raise FileFormatError(f"{self.where}: cat_boundaries do not ascend from 0")
        chosen = threshold[categorical]
        if ((chosen < 0) | (chosen >= count) | (chosen != np.floor(chosen))).any():
            raise FileFormatError(f"{self.where}: a categorical split names none of the {count} sets of categories")
        sets = chosen.astype(np.int64)
        n_words[categorical] = bounds[sets + 1] - bounds[sets]
        return n_words, np.concatenate([words[bounds[one] : bounds[one + 1]] for one in sets.tolist()])

    def _words(self, name: str, length: int | None) -> list[str]:
        """The words of a line, of this number."""
        line = self.facts.get(name)
        if line is None:
            raise FileFormatError(f"{self.where}: it lacks {name}")
        words = line.split()
        if not line.isascii() or "_" in line or not words or (length is not None and len(words) != length):
            expected = "numbers" if length is None else f"{length} numbers"
            raise FileFormatError(f"{self.where}: {name} holds {len(words)} words, expected {expected}")
        return words


# ------------------------------------------------------------------------------------------------------------- XGBoost


# Objectives whose base score is added to the trees as it is; others convert it first.
_PLAIN = ("reg:squarederror", "reg:absoluteerror", "reg:pseudohubererror")


def read_xgboost(text: str | bytes) -> tuple[int, dict[str, Any], float]:
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
        The base score.

    Raises
    ------
    FileFormatError
        If the text is no such model, is damaged, or holds what the ensemble cannot express.
    """
    if not isinstance(text, (str, bytes, bytearray)):
        raise RankwiseError(f"an XGBoost model must be a str, got {type(text).__name__}")
    try:
        learner = json.loads(text)["learner"]
        facts, booster = learner["learner_model_param"], learner["gradient_booster"]
        objective, kind = str(learner["objective"]["name"]), booster["name"]
        n_features, classes = int(facts["num_feature"]), int(facts["num_class"])
        outputs = int(facts.get("num_target", "1"))
        offset = float(str(facts["base_score"]).strip("[]"))
        trees = list(booster["model"]["trees"]) if kind == "gbtree" else []
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise FileFormatError("this is not an XGBoost model in JSON, or it is damaged") from error
    if kind != "gbtree" or classes > 1 or outputs != 1:
        raise FileFormatError("the XGBoost model must be a sum of trees with one score per row (booster gbtree)")
    if not objective.startswith("rank:") and objective not in _PLAIN:
        raise FileFormatError(f"the XGBoost model has the objective {objective!r:.40}: expected a ranking objective")
    if not 1 <= n_features <= MOST_FEATURES or not math.isfinite(offset):
        raise FileFormatError("the XGBoost model has an impossible number of features, or base score")
    parts = [_xgboost_tree(tree, f"the XGBoost model, tree {number}") for number, tree in enumerate(trees)]
    return n_features, concat_trees(parts), offset


def _xgboost_tree(tree: Any, where: str) -> dict[str, NDArray[Any]]:
    """One tree, its nodes and leaves numbered anew in the order in which they are reached from the root."""
    if not isinstance(tree, dict):
        raise FileFormatError(f"{where} is not an object")
    left, right = (numbers_in(tree, name, where, "bi") for name in ("left_children", "right_children"))
    feature, default_left = (numbers_in(tree, name, where, "bi") for name in ("split_indices", "default_left"))
    condition, gain = (numbers_in(tree, name, where, "bif") for name in ("split_conditions", "loss_changes"))
    kinds = numbers_in(tree, "split_type", where, "bi")
    if len({len(one) for one in (left, right, feature, default_left, condition, gain, kinds)}) > 1 or not len(left):
        raise FileFormatError(f"{where}: its lists have different lengths")
    if kinds.any():
        raise FileFormatError(f"{where}: it splits by categories, encode them as numbers before training")
    nodes: list[int] = []
    leaves: list[int] = []
    children: list[list[int]] = []
    waiting = [(0, -1, 0)]  # a node, and the place where its number belongs: which parent, and which side
    while waiting:
        node, parent, side = waiting.pop()
        if not 0 <= node < len(left) or len(nodes) + len(leaves) >= len(left):
            raise FileFormatError(f"{where}: its children do not form a tree")
        if left[node] == -1:
            leaves.append(node)
            number = -len(leaves)
        else:
            nodes.append(node)
            children.append([0, 0])
            number = len(nodes) - 1
            waiting += [(int(right[node]), number, 1), (int(left[node]), number, 0)]
        if parent >= 0:
            children[parent][side] = number
    sides = np.array(children, np.int64).reshape(-1, 2)
    return {
        "feature": feature[nodes],
        "threshold": _not_below(condition[nodes].astype(np.float32)),
        "left": sides[:, 0],
        "right": sides[:, 1],
        "default_left": (default_left[nodes] != 0).astype(np.uint8),
        "value": condition[leaves].astype(np.float32).astype(np.float64),
        "gain": gain[nodes],
        "node_count": np.zeros(len(nodes), np.int64),
        "leaf_count": np.zeros(len(leaves), np.int64),
    }


def _not_below(condition: NDArray[np.float32]) -> NDArray[np.float64]:
    """The largest float64 that is rounded to a float32 below the condition."""
    lower = np.nextafter(condition, np.float32(-np.inf))
    middle = (condition.astype(np.float64) + lower.astype(np.float64)) / 2
    return np.where(middle.astype(np.float32) < condition, middle, np.nextafter(middle, -np.inf))


# --------------------------------------------------------------------------------------------------------- both formats


def concat_trees(trees: Sequence[Mapping[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """The arrays of an ensemble from those of its trees; of trees out of JSON only NaN is missing, and none splits by
    categories.
    """
    sizes = [len(tree["feature"]) for tree in trees]
    usual = {name: np.empty(0, dtype) for name, dtype in DTYPES.items()} | {"n_words": np.empty(0, np.int64)}
    parts: dict[str, list[NDArray[Any]]] = {name: [empty] for name, empty in usual.items()}
    for tree, size in zip(trees, sizes, strict=True):
        given: dict[str, NDArray[Any]]
        given = {"missing": np.full(size, MISSING_NAN, np.uint8), "n_words": np.zeros(size, np.int64), **tree}
        for name, found in parts.items():
            found.append(given.get(name, usual[name]))
    joined = {name: np.concatenate(found) for name, found in parts.items()}
    for name, lengths in (("start", sizes), ("word_start", joined.pop("n_words"))):
        joined[name] = np.append(0, np.cumsum(lengths, dtype=np.int64))
    return joined


def numbers_in(tree: Mapping[str, Any], name: str, where: str, kinds: str) -> NDArray[Any]:
    """A list of numbers that float32 can hold, of these kinds of NumPy: as float64 if "f" is one, otherwise int64."""
    try:
        given = np.array(tree[name])
        if given.ndim != 1 or given.dtype.kind not in kinds:
            raise TypeError("no list of numbers")
        found = given.astype(np.float64 if "f" in kinds else np.int64)
    except (KeyError, ValueError, TypeError, OverflowError) as error:
        raise FileFormatError(f"{where}: {name} is missing or damaged") from error
    if not (np.abs(found) <= float(np.finfo(np.float32).max)).all():
        raise FileFormatError(f"{where}: {name} holds a number that float32 cannot hold")
    return found
