"""XGBoost's JSON and UBJSON formats of a model, read into flat arrays: what ``save_model`` and ``save_raw`` write.

XGBoost rounds a feature to float32 and goes left if it is below a float32 condition c. That is x <= t, where t is the
largest float64 that is rounded below c. A category goes right if it is in the set of the node, and left otherwise; NaN
goes to the default side in either case. Leaf values are float32, and so are the weights of trees that were dropped in
training (DART), with which they are multiplied in float32.
"""

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.errors import FileFormatError, RankwiseError
from rankwise.io.ubjson import read_ubjson
from rankwise.queries.checks import is_whole
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
from rankwise.rankers.boosting.tree_checks import MISSING_NAN, MISSING_ZERO

# How objectives turn the base score of a file into the constant that is added to the trees.
_PLAIN = (
    "binary:hinge",
    "reg:absoluteerror",
    "reg:expectileerror",
    "reg:linear",
    "reg:pseudohubererror",
    "reg:quantileerror",
    "reg:squarederror",
    "reg:squaredlogerror",
)
_LOGIT = ("binary:logistic", "binary:logitraw", "reg:logistic")
_LOG = ("count:poisson", "reg:gamma", "reg:tweedie", "survival:aft", "survival:cox")
_LARGEST_CATEGORY = 1 << 24  # XGBoost's own limit: float32 holds smaller whole numbers exactly


def read_xgboost(text: str | bytes, rounds: int | None = None, missing: float = math.nan) -> TreesOfFile:
    """Read the trees of a model with one score per row.

    Parameters
    ----------
    text : str or bytes
        The model, in JSON or UBJSON.
    rounds : int, default=None
        The number of boosting rounds to read. None reads all, or, of a model that a wrapper for scikit-learn saved,
        those up to the best iteration, because this is what ``predict`` of the wrapper does.
    missing : float, default=nan
        What counts as missing: NaN alone, or 0, too.

    Returns
    -------
    TreesOfFile
        The trees.

    Raises
    ------
    FileFormatError
        If the text is no such model, is damaged, or holds what the ensemble cannot express.
    """
    if not isinstance(text, (str, bytes, bytearray)):
        raise RankwiseError(f"an XGBoost model must be a str, got {type(text).__name__}")
    try:
        learner = _parsed(text)["learner"]
        facts, booster = dict(learner["learner_model_param"]), dict(learner["gradient_booster"])
        objective, kind = str(learner["objective"]["name"]), booster["name"]
        n_features, classes = int(facts["num_feature"]), int(facts.get("num_class", "0"))
        outputs = int(facts.get("num_target", "1"))
        base = float(str(facts["base_score"]).strip("[]") or "nan")
        attributes = dict(learner.get("attributes", {}))
        names = list(learner.get("feature_names", []))
        model = dict((booster["gbtree"] if kind == "dart" else booster).get("model", {}))
        dropped = list(booster["weight_drop"]) if kind == "dart" else None
        trees = list(model["trees"]) if kind in ("gbtree", "dart") else []
        starts = list(model.get("iteration_indptr", []))
        parallel = int(dict(model.get("gbtree_model_param", {})).get("num_parallel_tree", "1") or 1)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
        raise FileFormatError("this is not an XGBoost model in JSON or UBJSON, or it is damaged") from error
    if kind == "gblinear":
        raise FileFormatError(
            "the XGBoost model is linear (booster gblinear): pass its coef_ to rankwise.LinearModel.of"
        )
    if kind not in ("gbtree", "dart"):
        raise FileFormatError(f"the XGBoost model has the booster {kind!r:.20}: expected gbtree or dart")
    if classes > 1 or outputs != 1 or objective.startswith("multi:"):
        raise FileFormatError(
            "the XGBoost model has several scores per row (multi-class or multi-target): expected one, as rankers "
            "and regressions have"
        )
    if not 1 <= n_features <= MOST_FEATURES:
        raise FileFormatError("the XGBoost model has an impossible number of features")
    offset = _margin(base, objective)
    if rounds is None and "scikit_learn" in attributes:
        best = str(attributes.get("best_iteration", ""))
        rounds = int(best) + 1 if best.isdecimal() and len(best) < 10 else None
    if rounds is not None and starts:
        if not all(is_whole(one, 0) for one in starts):
            raise FileFormatError("the XGBoost model: iteration_indptr is damaged")
        kept = trees[: starts[min(rounds, len(starts) - 1)]]
    else:
        kept = first_rounds(trees, rounds, max(parallel, 1))
    factors = _factors(dropped, len(trees))
    parts: list[dict[str, NDArray[Any]]] = []
    words = 0
    for number, tree in enumerate(kept):
        parts.append(_read_tree(tree, f"the XGBoost model, tree {number}", factors[number], words))
        words += len(parts[-1].get("words", ()))
    joined = concat_trees(parts)
    if missing == 0:
        if np.diff(joined["word_start"]).any():
            raise FileFormatError(
                "the XGBoost model splits by categories, and counts 0 as missing (missing=0): train with missing=nan"
            )
        joined["missing"][:] = MISSING_ZERO
    return TreesOfFile(n_features, joined, offset, names=names_or_none(names, [f"f{n}" for n in range(n_features)])
                       if len(names) == n_features else None)


def _parsed(text: str | bytes) -> Any:
    """The value of a JSON or UBJSON text."""
    if isinstance(text, str):
        return json.loads(text)
    whole = bytes(text)
    # an object of JSON goes on with blanks or a key in quotes, one of UBJSON with the type of a length
    return json.loads(whole) if whole[1:].lstrip()[:1] in (b'"', b"}") else read_ubjson(whole)


def _margin(base: float, objective: str) -> float:
    """The constant that is added to the trees, computed in float32 as XGBoost does."""
    if objective.startswith("rank:") or objective in _PLAIN:
        found = np.float32(base)
    elif objective in _LOGIT:
        with np.errstate(all="ignore"):
            found = -np.log(np.float32(1.0) / np.float32(base) - np.float32(1.0))
    elif objective in _LOG:
        with np.errstate(all="ignore"):
            found = np.log(np.float32(base))
    else:
        raise FileFormatError(
            f"the XGBoost model has the objective {objective!r:.40}, which is not known: expected a ranking, a "
            "regression or two classes"
        )
    if not math.isfinite(found):
        raise FileFormatError("the XGBoost model has an impossible base score")
    return float(found)


def _factors(dropped: list[Any] | None, count: int) -> NDArray[np.float32]:
    """The weight of every tree."""
    if dropped is None:
        return np.ones(count, np.float32)
    weights = numbers_in({"weight_drop": dropped}, "weight_drop", "the XGBoost model", "if")
    if len(weights) != count:
        raise FileFormatError(f"the XGBoost model has {count} trees and {len(weights)} weights of trees (weight_drop)")
    found: NDArray[np.float32] = weights.astype(np.float32)
    return found


def _read_tree(tree: Any, where: str, factor: np.float32, words: int) -> dict[str, NDArray[Any]]:
    """One tree, its nodes and leaves numbered anew in the order in which they are reached from the root."""
    if not isinstance(tree, dict):
        raise FileFormatError(f"{where} is not an object")
    if str(dict(tree.get("tree_param") or {}).get("size_leaf_vector", "1")) not in ("0", "1"):
        raise FileFormatError(f"{where}: its leaves are vectors: train with multi_strategy=one_output_per_tree")
    left, right = (numbers_in(tree, name, where, "biu") for name in ("left_children", "right_children"))
    feature, default_left = (numbers_in(tree, name, where, "biu") for name in ("split_indices", "default_left"))
    condition, gain, weight = (
        numbers_in(tree, name, where, "biuf") for name in ("split_conditions", "loss_changes", "sum_hessian")
    )
    kinds = numbers_in(tree, "split_type", where, "biu") if "split_type" in tree else np.zeros(len(left), np.int64)
    if len({len(one) for one in (left, right, feature, default_left, condition, gain, weight, kinds)}) > 1:
        raise FileFormatError(f"{where}: its lists have different lengths")
    if not len(left):
        raise FileFormatError(f"{where}: it has no nodes")
    by_category = kinds != 0
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
            # what is in a set goes left in the ensemble, and right in XGBoost
            sides = (left[node], right[node]) if not by_category[node] else (right[node], left[node])
            waiting += [(int(sides[1]), number, 1), (int(sides[0]), number, 0)]
        if parent >= 0:
            children[parent][side] = number
    below = np.array(children, np.int64).reshape(-1, 2)
    code = by_category[nodes]
    with np.errstate(over="ignore"):
        value = (condition[leaves].astype(np.float32) * factor).astype(np.float64)
    found = {
        "feature": feature[nodes],
        "threshold": np.where(code, 0.0, _not_below(condition[nodes].astype(np.float32))),
        "left": below[:, 0],
        "right": below[:, 1],
        "missing": np.full(len(nodes), MISSING_NAN, np.uint8),
        "default_left": ((default_left[nodes] != 0) ^ code).astype(np.uint8),
        "value": value,
        "gain": gain[nodes],
        "node_count": as_counts(weight[nodes], float(weight[0])),
        "leaf_count": as_counts(weight[leaves], float(weight[0])),
    }
    if code.any():
        found["n_words"], found["words"] = sets_of_categories(_sets(tree, nodes, code, where), words, where)
    return found


def _sets(tree: Mapping[str, Any], nodes: list[int], code: NDArray[np.bool_], where: str) -> list[list[int]]:
    """The categories of every node that go right in XGBoost; none at numerical nodes."""
    owner, first, size = (
        numbers_in(tree, f"categories_{name}", where, "biu").tolist() for name in ("nodes", "segments", "sizes")
    )
    codes = numbers_in(tree, "categories", where, "biu")
    if len({len(one) for one in (owner, first, size)}) > 1:
        raise FileFormatError(f"{where}: its sets of categories have different lengths")
    place = {node: at for at, node in enumerate(owner)}
    found: list[list[int]] = []
    for node, is_code in zip(nodes, code.tolist(), strict=True):
        at = place.get(node) if is_code else None
        if at is None:
            if is_code:
                raise FileFormatError(f"{where}: node {node} splits by categories and has none")
            found.append([])
            continue
        own = codes[first[at] : first[at] + size[at]] if first[at] >= 0 and size[at] > 0 else codes[:0]
        if len(own) != size[at] or not len(own) or (own < 0).any() or (own >= _LARGEST_CATEGORY).any():
            raise FileFormatError(f"{where}: the categories of node {node} are damaged")
        found.append(own.tolist())
    return found


def _not_below(condition: NDArray[np.float32]) -> NDArray[np.float64]:
    """The largest float64 that is rounded to a float32 below the condition."""
    lower = np.nextafter(condition, np.float32(-np.inf))
    middle = (condition.astype(np.float64) + lower.astype(np.float64)) / 2
    return np.where(middle.astype(np.float32) < condition, middle, np.nextafter(middle, -np.inf))
