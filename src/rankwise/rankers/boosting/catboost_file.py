"""CatBoost's JSON format of a model, read into flat arrays: what ``save_model(path, format="json")`` writes.

A feature, rounded to float32, is compared with a float32 border. It is not above the border if x <= t, where t is the
largest float64 that is rounded to at most the border. NaN is above no border or, in a feature that says so, above every
border. In a symmetric tree, all nodes of a level ask the same question, and bit i of the number of a leaf is 1 if the
feature of split i is above its border. Other trees are nested objects.

A category is known by the hash of its text. Here it is a whole number, so the hash of a split is looked up among those
of the texts "0", "1", "2" and so on, which is what CatBoost makes of such numbers.
"""

import json
import math
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.errors import FileFormatError, RankwiseError
from rankwise.rankers.boosting.tree_arrays import (
    MOST_FEATURES,
    TreesOfFile,
    as_counts,
    concat_trees,
    first_rounds,
    names_or_none,
    numbers_in,
    sets_of_categories,
)
from rankwise.rankers.boosting.tree_checks import MISSING_NAN

_DEEPEST = 16  # CatBoost's own limit
# The first float64 that is rounded to an infinite float32, plus as much again: where the next float32 would be.
_BEYOND = 2.0**128
_MOST_CODES = 100_000  # categories are looked up among the numbers below
_STATISTICS = "features whose categories were replaced by statistics of the labels (ctrs)"
_OTHER_KINDS = {"text_features": "text features", "embedding_features": "embedding features", "ctrs": _STATISTICS}

Wholes = NDArray[np.int64]
Vector = NDArray[np.float64]


def read_catboost(text: str | bytes, rounds: int | None = None) -> TreesOfFile:
    """Read the trees of a model with one score per row.

    Parameters
    ----------
    text : str or bytes
        The model.
    rounds : int, default=None
        The number of trees to read; None reads all.

    Returns
    -------
    TreesOfFile
        The trees. A scale other than 1 is a factor of the leaves.

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
        symmetric = "trees" not in model
        trees = list(model["oblivious_trees"] if symmetric else model["trees"])
        scale, bias = model["scale_and_bias"]
        biases = [float(one) for one in (bias if isinstance(bias, list) else [bias])]
        scale = float(scale)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
        raise FileFormatError("this is not a CatBoost model in JSON, or it is damaged") from error
    if others:
        raise FileFormatError(
            f"the CatBoost model has {_OTHER_KINDS[others[0]]}, which cannot be computed without CatBoost: encode them "
            "as numbers before training, or raise one_hot_max_size above the number of categories"
        )
    if len(biases) != 1:
        raise FileFormatError(f"the CatBoost model has {len(biases)} scores per row (multi-class): expected one")
    if not math.isfinite(biases[0]) or not math.isfinite(scale):
        raise FileFormatError("the CatBoost model has a scale or bias that is not finite")
    features = _features(info)
    parts: list[dict[str, NDArray[Any]]] = []
    words = 0
    for number, tree in enumerate(first_rounds(trees, rounds)):
        where = f"the CatBoost model, tree {number}"
        parts.append((_read_symmetric if symmetric else _read_nested)(tree, features, where, words))
        words += len(parts[-1].get("words", ()))
    joined = concat_trees(parts)
    with np.errstate(over="ignore"):  # what overflows is found by the checks of the ensemble
        joined["value"] *= scale
        joined["gain"] *= scale * scale
    return TreesOfFile(len(features.nan_left), joined, biases[0], names=features.names)


class _Features(NamedTuple):
    """The features of a model.

    Attributes
    ----------
    nan_left : ndarray of uint8
        Whether NaN goes left, per feature.
    numbers : tuple of int
        The places of the numerical features among all.
    categories : tuple of int
        The places of the categorical ones.
    names : tuple of str or None
        The names.
    """

    nan_left: NDArray[np.uint8]
    numbers: tuple[int, ...]
    categories: tuple[int, ...]
    names: tuple[str, ...] | None


def _features(info: Mapping[str, Any]) -> _Features:
    """The features of a model, numerical and categorical ones in their common order."""
    where = "the CatBoost model"
    lists = [info.get("float_features") or [], info.get("categorical_features") or []]
    count = sum(len(one) for one in lists if isinstance(one, list))
    if not all(isinstance(one, list) for one in lists) or not 1 <= count <= MOST_FEATURES:
        raise FileFormatError(f"{where} has no list of features")
    nan_left = np.ones(count, np.uint8)
    names: list[Any] = [None] * count
    places: list[list[int]] = [[], []]
    for kind, features in enumerate(lists):
        for number, feature in enumerate(features):
            at = feature.get("flat_feature_index") if isinstance(feature, dict) else None
            if type(at) is not int or not 0 <= at < count or names[at] is not None:
                raise FileFormatError(f"{where}: feature {number} is missing or damaged")
            names[at] = feature.get("feature_id") or ""
            places[kind].append(at)
            treatment = feature.get("nan_value_treatment") if kind == 0 else "AsIs"
            if treatment not in ("AsIs", "AsFalse", "AsTrue"):
                raise FileFormatError(f"{where}: feature {at} treats NaN as {treatment!r:.40}, which is not known")
            nan_left[at] = treatment != "AsTrue"
    usual = [str(place) for place in range(count)]
    return _Features(nan_left, tuple(places[0]), tuple(places[1]), names_or_none(names, usual))


class _Split(NamedTuple):
    """A question: a feature, and its border or the category that passes."""

    feature: int
    border: float
    category: int | None = None


def _split(split: Any, features: _Features, where: str) -> _Split:
    """A split of a tree."""
    if not isinstance(split, dict):
        raise FileFormatError(f"{where}: a split is not an object")
    kind = split.get("split_type", "FloatFeature")
    if kind not in ("FloatFeature", "OneHotFeature"):
        raise FileFormatError(
            f"{where}: it splits on {_STATISTICS}: encode categories as numbers before training, or raise "
            "one_hot_max_size above the number of categories"
        )
    one_hot = kind == "OneHotFeature"
    places = features.categories if one_hot else features.numbers
    number = split.get("cat_feature_index" if one_hot else "float_feature_index")
    if type(number) is not int or not 0 <= number < len(places):
        raise FileFormatError(f"{where}: it splits on a feature that is not one of 0 to {len(places) - 1}")
    feature = places[number]
    if one_hot:
        value = split.get("value")
        if type(value) is not int or not -(2**31) <= value < 2**32:
            raise FileFormatError(f"{where}: it splits on a category that is damaged")
        code = _codes_by_hash().get(value % 2**32)
        if code is None:
            raise FileFormatError(
                f"{where}: a category of feature {feature} is not a whole number from 0 to {_MOST_CODES - 1:,}: number "
                "the categories before training"
            )
        return _Split(feature, 0.0, code)
    (border,) = numbers_in({"border": [split.get("border")]}, "border", where, "if")
    return _Split(feature, float(border))


def _read_symmetric(tree: Any, features: _Features, where: str, words: int) -> dict[str, NDArray[Any]]:
    """A symmetric tree, level by level: node n has the children 2n + 1 and 2n + 2, and the last level are the leaves.

    The root asks the last split, so that leaves have CatBoost's numbers from left to right, and contributions are those
    of CatBoost.
    """
    if not isinstance(tree, dict):
        raise FileFormatError(f"{where} is not an object")
    given = tree.get("splits") or []
    if not isinstance(given, list) or len(given) > _DEEPEST:
        raise FileFormatError(f"{where}: its splits must be a list of at most {_DEEPEST}")
    depth = len(given)
    values, weights = (numbers_in(tree, name, where, "if") for name in ("leaf_values", "leaf_weights"))
    if len(values) != 1 << depth or len(weights) != 1 << depth:
        raise FileFormatError(f"{where}: it has {depth} splits and {len(values)} leaf_values: expected {1 << depth}")
    if (weights < 0).any():
        raise FileFormatError(f"{where}: leaf_weights holds a number below 0")
    splits = [_split(one, features, where) for one in given]
    first_leaf = (1 << depth) - 1
    asked = np.repeat(np.arange(depth)[::-1], 1 << np.arange(depth))
    left = 2 * np.arange(first_leaf, dtype=np.int64) + 1
    last = asked == 0
    below = np.where(last, first_leaf - 1 - left, left), np.where(last, first_leaf - 2 - left, left + 1)
    gain, weight = _nodes(values, weights, depth)
    return {
        **_questions([splits[one] for one in asked.tolist()], below, features, where, words),
        "value": values,
        "gain": gain,
        **_counts(weight, weights, float(weights.sum())),
    }


def _read_nested(tree: Any, features: _Features, where: str, words: int) -> dict[str, NDArray[Any]]:
    """A tree of nested objects, its nodes and leaves numbered in the order in which they are reached from the root."""
    splits: list[_Split] = []
    children: list[list[int]] = []
    leaves: list[tuple[Any, Any]] = []
    waiting: list[tuple[Any, int, int]] = [(tree, -1, 0)]
    while waiting:
        node, parent, side = waiting.pop()
        if not isinstance(node, dict):
            raise FileFormatError(f"{where}: a node is not an object")
        if "split" in node:
            splits.append(_split(node["split"], features, where))
            children.append([0, 0])
            number = len(splits) - 1
            waiting += [(node.get("right"), number, 1), (node.get("left"), number, 0)]
        else:
            leaves.append((node.get("value"), node.get("weight")))
            number = -len(leaves)
        if parent >= 0:
            children[parent][side] = number
    columns = {"value": [one[0] for one in leaves], "weight": [one[1] for one in leaves]}
    values, weights = (numbers_in(columns, name, where, "if") for name in columns)
    below = np.array(children, np.int64).reshape(-1, 2)
    total, mean, gain = (np.zeros(len(splits)) for _ in range(3))
    with np.errstate(over="ignore", invalid="ignore"):
        for node in range(len(splits) - 1, -1, -1):  # children before their parents
            weight, value = zip(
                *((total[c], mean[c]) if c >= 0 else (weights[-1 - c], values[-1 - c]) for c in below[node]), strict=True
            )
            total[node] = weight[0] + weight[1]
            share = weight[1] / total[node] if total[node] > 0 else 0.5
            mean[node] = value[0] + share * (value[1] - value[0])
            gain[node] = weight[0] * share * (value[1] - value[0]) ** 2
    return {
        **_questions(splits, (below[:, 0], below[:, 1]), features, where, words),
        "value": values,
        "gain": np.where(np.isfinite(gain), gain, 0.0),
        **_counts(total, weights, float(weights.sum())),
    }


def _questions(
    splits: list[_Split], below: tuple[Wholes, Wholes], features: _Features, where: str, words: int
) -> dict[str, NDArray[Any]]:
    """What the nodes of a tree ask, and where they lead."""
    feature = np.array([one.feature for one in splits], np.int64)
    code = np.array([one.category is not None for one in splits], bool)
    borders = np.array([one.border for one in splits], np.float32)
    found: dict[str, NDArray[Any]] = {
        "feature": feature,
        "threshold": np.where(code, 0.0, _not_above(borders)),
        # the category of a node goes left in the ensemble, and right in CatBoost
        "left": np.where(code, below[1], below[0]),
        "right": np.where(code, below[0], below[1]),
        "missing": np.where(code, 0, MISSING_NAN).astype(np.uint8),
        "default_left": np.where(code, 0, features.nan_left[feature]).astype(np.uint8),
    }
    if code.any():
        sets = [[] if one.category is None else [one.category] for one in splits]
        found["n_words"], found["words"] = sets_of_categories(sets, words, where)
    return found


def _counts(nodes: Vector, leaves: Vector, total: float) -> dict[str, Wholes]:
    """Numbers of training documents, or their weights where these are no numbers."""
    if (leaves == np.rint(leaves)).all() and total < 2.0**53 and (leaves >= 0).all():
        return {"node_count": nodes.astype(np.int64), "leaf_count": leaves.astype(np.int64)}
    return {"node_count": as_counts(nodes, total), "leaf_count": as_counts(leaves, total)}


def _nodes(values: Vector, weights: Vector, depth: int) -> tuple[Vector, Vector]:
    """The gain and the weight of every node.

    The gain is the variance, over documents, between the leaves of each pair below the node that the node's split alone
    divides. The gains of a feature add up to CatBoost's importance "PredictionValuesChange", but for its unit.
    """
    gains: list[Vector] = [np.empty(0)]
    totals: list[Vector] = [np.empty(0)]
    with np.errstate(over="ignore", invalid="ignore"):
        for level in range(depth):
            weight, value = (one.reshape(1 << level, 2, -1) for one in (weights, values))
            pair = weight.sum(axis=1)
            product = np.divide(weight[:, 0] * weight[:, 1], pair, out=np.zeros_like(pair), where=pair > 0)
            gains.append((product * (value[:, 1] - value[:, 0]) ** 2).sum(axis=1))
            totals.append(pair.sum(axis=1))
    return np.concatenate(gains), np.concatenate(totals)


def _not_above(border: NDArray[np.float32]) -> Vector:
    """The largest float64 that is rounded to a float32 of at most the border."""
    with np.errstate(over="ignore"):
        upper = np.nextafter(border, np.float32(np.inf)).astype(np.float64)
        upper = np.where(np.isinf(upper), _BEYOND, upper)
        middle = (border.astype(np.float64) + upper) / 2
        return np.where(middle.astype(np.float32) <= border, middle, np.nextafter(middle, -np.inf))


# ------------------------------------------------------------------------------------------------- hashes of categories

_MIX = 0x9DDFEA08EB382D69
_K2, _K3 = 0x9AE16A3B2F90404F, 0xC949D7C7509E6557
_64 = (1 << 64) - 1


@cache
def _codes_by_hash() -> dict[int, int]:
    """The whole numbers by the hash of their text, as CatBoost keeps it; of two with one hash the smaller."""
    return {text_hash(str(code).encode()): code for code in range(_MOST_CODES - 1, -1, -1)}


def text_hash(text: bytes) -> int:
    """The lower half of CityHash64, version 1.0, of a text of at most 8 bytes."""
    length = len(text)
    if length > 3:
        low, high = int.from_bytes(text[:4], "little"), int.from_bytes(text[-4:], "little")
        return _mixed(length + (low << 3) & _64, high) % 2**32
    first, middle, last = text[0], text[length // 2], text[-1]
    y, z = first + (middle << 8), length + (last << 2)
    found = (y * _K2 & _64) ^ (z * _K3 & _64)
    return ((found ^ found >> 47) * _K2 & _64) % 2**32


def _mixed(u: int, v: int) -> int:
    """A hash of 64 bits of two numbers."""
    a = (u ^ v) * _MIX & _64
    b = (v ^ a ^ a >> 47) * _MIX & _64
    return (b ^ b >> 47) * _MIX & _64
