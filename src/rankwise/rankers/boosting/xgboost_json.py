"""XGBoost's JSON format of a model, as ``Booster.save_raw("json")`` writes it, read into flat arrays.

XGBoost rounds a feature to float32 and goes left if it is below a float32 condition c. That is x <= t, where t is the
largest float64 that is rounded below c.
"""

import json
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import FileFormatError, RankwiseError
from rankwise.rankers.boosting.tree_checks import MISSING_NAN

_MOST_FEATURES = 10_000_000  # a damaged number must not take all memory
# Objectives whose base score is added to the trees as it is; others convert it first.
_PLAIN = ("reg:squarederror", "reg:absoluteerror", "reg:pseudohubererror")


def read_xgboost(text: str | bytes) -> tuple[int, dict[str, NDArray[Any]], float]:
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
        raise RankwiseError(f"an XGBoost model is a text: found {type(text).__name__}")
    try:
        learner = json.loads(text)["learner"]
        facts, booster = learner["learner_model_param"], learner["gradient_booster"]
        objective, kind = str(learner["objective"]["name"]), booster["name"]
        n_features, classes = int(facts["num_feature"]), int(facts["num_class"])
        outputs = int(facts.get("num_target", "1"))
        offset = float(str(facts["base_score"]).strip("[]"))
        trees = list(booster["model"]["trees"]) if kind == "gbtree" else []
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise FileFormatError("this is no XGBoost model in JSON, or it is damaged") from error
    if kind != "gbtree" or classes > 1 or outputs != 1:
        raise FileFormatError("the XGBoost model is no plain sum of trees with one score per row (booster gbtree)")
    if not objective.startswith("rank:") and objective not in _PLAIN:
        raise FileFormatError(f"the XGBoost model has the objective {objective!r:.40}: expected a ranking objective")
    if not 1 <= n_features <= _MOST_FEATURES or not math.isfinite(offset):
        raise FileFormatError("the XGBoost model has an impossible number of features, or base score")
    parts = [_read_tree(tree, f"the XGBoost model, tree {number}") for number, tree in enumerate(trees)]
    sizes = [len(part["feature"]) for part in parts]
    nodes, leaves = sum(sizes), sum(sizes) + len(parts)
    joined = {name: np.concatenate([empty, *(part[name] for part in parts)]) for name, empty in _EMPTY.items()}
    return (
        n_features,
        {
            **joined,
            "start": np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64),
            "missing": np.full(nodes, MISSING_NAN, np.uint8),
            "word_start": np.zeros(nodes + 1, np.int64),
            "words": np.empty(0, np.uint32),
            "node_count": np.zeros(nodes, np.int64),
            "leaf_count": np.zeros(leaves, np.int64),
        },
        offset,
    )


_EMPTY: dict[str, NDArray[Any]] = {
    "feature": np.empty(0, np.int64),
    "threshold": np.empty(0),
    "left": np.empty(0, np.int64),
    "right": np.empty(0, np.int64),
    "default_left": np.empty(0, np.uint8),
    "value": np.empty(0),
    "gain": np.empty(0),
}


def _read_tree(tree: Any, where: str) -> dict[str, NDArray[Any]]:
    """One tree, its nodes and leaves numbered anew in the order in which they are reached from the root."""
    if not isinstance(tree, dict):
        raise FileFormatError(f"{where}: it is no object")
    left, right = (_column(tree, name, "i", where) for name in ("left_children", "right_children"))
    feature, default_left = (_column(tree, name, "i", where) for name in ("split_indices", "default_left"))
    condition, gain = (_column(tree, name, "f", where) for name in ("split_conditions", "loss_changes"))
    kinds = _column(tree, "split_type", "i", where)
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
            raise FileFormatError(f"{where}: its children are no tree")
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
    }


def _column(tree: dict[str, Any], name: str, kind: str, where: str) -> NDArray[Any]:
    """A list of whole or finite numbers."""
    try:
        given = np.array(tree[name])
        if given.ndim != 1 or given.dtype.kind not in "bi" + kind:
            raise TypeError("no list of numbers")
        found = given.astype(np.int64 if kind == "i" else np.float64)
    except (KeyError, ValueError, TypeError, OverflowError) as error:
        raise FileFormatError(f"{where}: {name} is missing or damaged") from error
    limit = float(np.finfo(np.float32).max)
    if not (np.abs(found) <= limit).all():
        raise FileFormatError(f"{where}: {name} holds a number that float32 cannot hold")
    return found


def _not_below(condition: NDArray[np.float32]) -> NDArray[np.float64]:
    """The largest float64 that is rounded to a float32 below the condition."""
    lower = np.nextafter(condition, np.float32(-np.inf))
    middle = (condition.astype(np.float64) + lower.astype(np.float64)) / 2
    return np.where(middle.astype(np.float32) < condition, middle, np.nextafter(middle, -np.inf))
