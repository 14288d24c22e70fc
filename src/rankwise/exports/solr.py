"""Apache Solr's learning to rank module: a LinearModel, or a MultipleAdditiveTreesModel for a sum of steps.

Solr adds 1e-6 to every threshold of a tree as it reads it. The thresholds in the file are lower by as much, or their
feature is multiplied by a power of two, so that the tree in Solr has the thresholds of the ranker.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwise.data.checks import Floats
from rankwise.exports import single
from rankwise.exports._base import Content, Target, Written, json_text
from rankwise.exports.formula import Formula, StepSum, WeightedSum
from rankwise.exports.single import Leaf, Node, TreeSplit, normalised, score_trees, single_trees, thresholds_of
from rankwise.measures._base import Vector

_PACKAGE = "org.apache.solr.ltr"
# Solr adds this to every threshold of a tree as it reads it (MultipleAdditiveTreesModel.NODE_SPLIT_SLACK).
SLACK = np.float32(1e-6)
_LARGEST_POWER = 126  # of two, with a reciprocal that float32 holds with all its digits


@dataclass(frozen=True, kw_only=True)
class Solr(Target):
    """``model.json`` for the model store, and ``features.json``, a draft for the feature store.

    Parameters
    ----------
    store : str, default="rankwise"
        The feature store that both belong to.
    """

    name = "solr"
    title = "Apache Solr learning to rank"
    arithmetic = "float32, feature after feature (Solr's)"

    store: str = "rankwise"

    def write(self, formula: Formula, called: str) -> Written:
        """Write the model and the draft of the features."""
        part = _trees(formula) if isinstance(formula, StepSum) else _weights(formula)
        model = {
            "store": self.store,
            "name": called,
            "class": f"{_PACKAGE}.model.{part.kind}",
            "features": part.features,
            "params": part.params,
        }
        features = [
            {
                "store": self.store,
                "name": entry["name"],
                "class": f"{_PACKAGE}.feature.FieldValueFeature",
                "params": {"field": entry["name"]},
            }
            for entry in part.features
        ]
        notes = (
            "Solr computes features and scores in float32; a feature without a value is 0 unless its defaultValue says "
            "otherwise",
            "documents beyond reRankDocs keep their first score, and those re-ranked below 0 sink under them: re-rank "
            "as many as you show",
            "features.json takes every feature from a stored field of its name: say there how you really compute each",
            *part.notes,
        )
        return Written({"model.json": json_text(model), "features.json": json_text(features)}, notes, part.dropped)

    def score(self, files: Mapping[str, Content], X: Floats, names: tuple[str, ...]) -> Vector:
        """Score as Solr does, in float32."""
        model = json.loads(files["model.json"])
        listed = [entry["name"] for entry in model["features"]]
        rows = single.rounded_features(X)[:, [names.index(name) for name in listed]]
        for place, entry in enumerate(model["features"]):
            if "norm" in entry:
                params = entry["norm"]["params"]
                rows[:, place] = single.scaled(rows[:, place], float(params["avg"]), float(params["std"]))
        if "trees" in model["params"]:
            trees = [_read(tree["root"], listed) for tree in model["params"]["trees"]]
            return score_trees(trees, rows, lambda one: np.float32(one) + SLACK).astype(np.float64)
        weights = np.array([model["params"]["weights"][name] for name in listed]).astype(np.float32)
        return single.dot(rows, weights).astype(np.float64)


@dataclass(frozen=True)
class _ModelKind:
    """What differs between the two kinds of models."""

    kind: str
    features: list[dict[str, Any]]
    params: dict[str, Any]
    notes: tuple[str, ...]
    dropped: float = 0.0


def _weights(formula: WeightedSum) -> _ModelKind:
    """A weighted sum as a LinearModel."""
    own = normalised(formula, "Solr")
    features: list[dict[str, Any]] = []
    for place in own.used:
        entry: dict[str, Any] = {"name": formula.names[place]}
        if place in own.center:
            params = {"avg": repr(own.center[place]), "std": repr(own.scale[place])}
            entry["norm"] = {"class": f"{_PACKAGE}.norm.StandardNormalizer", "params": params}
        features.append(entry)
    notes = (own.note,) if own.note else ()
    return _ModelKind("LinearModel", features, {"weights": own.weights(formula.names)}, notes, own.dropped)


def _trees(formula: StepSum) -> _ModelKind:
    """A sum of steps as a MultipleAdditiveTreesModel."""
    used = sorted(set(formula.feature.tolist())) or [0]
    features: list[dict[str, Any]] = [{"name": formula.names[place]} for place in used]
    trees, missed = [], 0
    for tree in single_trees(formula, "Solr"):
        power = power_of_two(thresholds_of(tree))
        missed += sum(not is_met(math.ldexp(one, power)) for one in thresholds_of(tree))
        trees.append({"weight": "1", "root": _drawn(tree, formula.names, power)})
        if power and isinstance(tree, TreeSplit):
            norm = {"class": f"{_PACKAGE}.norm.StandardNormalizer", "params": {"avg": "0", "std": repr(2.0**-power)}}
            features[used.index(tree.feature)]["norm"] = norm
    notes = [
        "Solr adds 1e-6 to every threshold of a tree: those in the file are lower by as much, or their feature is "
        "multiplied by a power of two, so that features at a threshold go where the ranker sends them"
    ]
    if missed:
        notes.append(f"{missed} thresholds, too near to 0 beside large ones, cannot be met exactly behind Solr's 1e-6")
    return _ModelKind("MultipleAdditiveTreesModel", features, {"trees": trees}, tuple(notes))


def before_slack(threshold: float) -> np.float32:
    """The float32 that Solr's slack turns into ``threshold``, or else into the next above that can be reached.

    Above, because a feature that equals its threshold is likelier than one a last place away: it stays on its side.
    """
    wanted = np.float32(threshold)
    # the subtraction is rounded, so neighbours may be the better choice
    around = [wanted - SLACK]
    for _ in range(4):
        around = [np.nextafter(around[0], np.float32(-np.inf)), *around, np.nextafter(around[-1], np.float32(np.inf))]
    return min((one for one in around if one + SLACK >= wanted), key=lambda one: (one + SLACK, one))


def is_met(threshold: float) -> bool:
    """Whether some float32 becomes this threshold by Solr's slack."""
    return bool(before_slack(threshold) + SLACK == np.float32(threshold))


def power_of_two(thresholds: list[float]) -> int:
    """The smallest k for which all thresholds times 2^k can be reached exactly: 0 if they can as they are.

    From 64 on the slack is less than half a unit of the last place and changes nothing, and no power of two changes the
    digits of a feature. A feature that overflows is beyond every threshold, as it was.
    """
    sizes = [abs(one) for one in thresholds if one]
    if not sizes or all(map(is_met, thresholds)):
        return 0
    needed = 7 - math.frexp(min(sizes))[1]
    return max(0, min(needed, _LARGEST_POWER - math.frexp(max(sizes))[1], _LARGEST_POWER))


def _drawn(node: Node, names: tuple[str, ...], power: int) -> dict[str, Any]:
    """A tree as JSON."""
    if isinstance(node, Leaf):
        return {"value": repr(node.value)}
    return {
        "feature": names[node.feature],
        "threshold": repr(float(before_slack(math.ldexp(node.threshold, power)))),
        "left": _drawn(node.left, names, power),
        "right": _drawn(node.right, names, power),
    }


def _read(node: dict[str, Any], listed: list[str]) -> Node:
    """A tree from JSON."""
    if "feature" not in node:
        return Leaf(float(node["value"]))
    left, right = (_read(node[side], listed) for side in ("left", "right"))
    return TreeSplit(listed.index(node["feature"]), float(node["threshold"]), left, right)
