"""CatBoost's JSON format of a model, as ``save_model(path, format="json")`` writes it, read into flat arrays.

A tree of CatBoost is symmetric: all nodes of a level ask the same question. Bit i of the number of a leaf is 1 if the
feature of split i, rounded to float32, is above a float32 border. That is not x <= t, where t is the largest float64
that is rounded to at most the border. NaN is above no border or, in a feature that says so, above every border.
"""

import json
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import FileFormatError, RankwiseError
from rankwise.rankers.boosting.tree_checks import MISSING_NAN

_MOST_FEATURES = 10_000_000  # a damaged number must not take all memory
_DEEPEST = 16  # CatBoost's own limit
_LARGEST = float(np.finfo(np.float32).max)
# The first float64 that is rounded to an infinite float32, plus as much again: where the next float32 would be.
_BEYOND = 2.0**128
_OTHER_KINDS = ("categorical_features", "text_features", "embedding_features", "ctrs")


def read_catboost(text: str | bytes) -> tuple[int, dict[str, NDArray[Any]], float]:
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
        raise RankwiseError(f"a CatBoost model is a text: found {type(text).__name__}")
    try:
        model = json.loads(text)
        info = dict(model["features_info"])
        others = [kind for kind in _OTHER_KINDS if info.get(kind)]
        trees = list(model["oblivious_trees"]) if "trees" not in model else None
        scale, bias = model["scale_and_bias"]
        biases = [float(one) for one in (bias if isinstance(bias, list) else [bias])]
        scale = float(scale)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
        raise FileFormatError("this is no CatBoost model in JSON, or it is damaged") from error
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
    sizes = [len(part["feature"]) for part in parts]
    nodes = sum(sizes)
    joined = {name: np.concatenate([empty, *(part[name] for part in parts)]) for name, empty in _EMPTY.items()}
    with np.errstate(over="ignore"):  # what overflows is found by the checks of the ensemble
        joined["value"] *= scale
        joined["gain"] *= scale * scale
    return (
        len(nan_left),
        {
            **joined,
            "start": np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64),
            "missing": np.full(nodes, MISSING_NAN, np.uint8),
            "word_start": np.zeros(nodes + 1, np.int64),
            "words": np.empty(0, np.uint32),
        },
        biases[0],
    )


_EMPTY: dict[str, NDArray[Any]] = {
    "feature": np.empty(0, np.int64),
    "threshold": np.empty(0),
    "left": np.empty(0, np.int64),
    "right": np.empty(0, np.int64),
    "default_left": np.empty(0, np.uint8),
    "value": np.empty(0),
    "gain": np.empty(0),
    "node_count": np.empty(0, np.int64),
    "leaf_count": np.empty(0, np.int64),
}


def _nan_left(features: Any) -> NDArray[np.uint8]:
    """Whether NaN goes left, per feature."""
    where = "the CatBoost model"
    if not isinstance(features, list) or not 1 <= len(features) <= _MOST_FEATURES:
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
        raise FileFormatError(f"{where}: it is no object")
    splits = tree.get("splits") or []
    if not isinstance(splits, list) or not all(isinstance(split, dict) for split in splits) or len(splits) > _DEEPEST:
        raise FileFormatError(f"{where}: its splits are no list of at most {_DEEPEST}")
    if any(split.get("split_type", "FloatFeature") != "FloatFeature" for split in splits):
        raise FileFormatError(f"{where}: it splits by categories, encode them as numbers before training")
    depth = len(splits)
    values, weights = (_column(tree.get(name), name, where) for name in ("leaf_values", "leaf_weights"))
    if len(values) != 1 << depth or len(weights) != 1 << depth:
        raise FileFormatError(f"{where}: it has {depth} splits and {len(values)} leaf_values: expected {1 << depth}")
    if (weights < 0).any():
        raise FileFormatError(f"{where}: leaf_weights holds a number below 0")
    features = [split.get("float_feature_index") for split in splits]
    if not all(type(one) is int and 0 <= one < len(nan_left) for one in features):
        raise FileFormatError(f"{where}: it splits on a feature that is not one of 0 to {len(nan_left) - 1}")
    borders = _column([split.get("border") for split in splits], "border", where)
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


def _column(given: Any, name: str, where: str) -> NDArray[np.float64]:
    """A list of numbers that float32 can hold."""
    try:
        array = np.array(given if given != [] else np.empty(0))
        if array.ndim != 1 or array.dtype.kind not in "if":
            raise TypeError("no list of numbers")
        found = array.astype(np.float64)
    except (ValueError, TypeError, OverflowError) as error:
        raise FileFormatError(f"{where}: {name} is missing or damaged") from error
    if not (np.abs(found) <= _LARGEST).all():
        raise FileFormatError(f"{where}: {name} holds a number that float32 cannot hold")
    return found


def _not_above(border: NDArray[np.float32]) -> NDArray[np.float64]:
    """The largest float64 that is rounded to a float32 of at most the border."""
    with np.errstate(over="ignore"):
        upper = np.nextafter(border, np.float32(np.inf)).astype(np.float64)
        upper = np.where(np.isinf(upper), _BEYOND, upper)
        middle = (border.astype(np.float64) + upper) / 2
        return np.where(middle.astype(np.float32) <= border, middle, np.nextafter(middle, -np.inf))
