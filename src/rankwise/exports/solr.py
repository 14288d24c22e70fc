"""Apache Solr's learning to rank module: a LinearModel, or a MultipleAdditiveTreesModel for a sum of steps or trees.

Solr adds 1e-6 to every threshold of a tree as it reads it. The thresholds in the file are lower by as much, or their
feature is multiplied by a power of two: the tree in Solr then has the thresholds of the ranker.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels.trees import ZERO
from rankwise.exports import single
from rankwise.exports._base import Content, Target, Written, json_text
from rankwise.exports.formula import Formula, StepSum, TreeSum, WeightedSum
from rankwise.exports.single import Gaps, Single, normalize, single_trees
from rankwise.exports.tree_nodes import Leaf, Node, TreeSplit, score_trees, splits_of
from rankwise.measures._base import Vector
from rankwise.queries.checks import Floats

_PACKAGE = "org.apache.solr.ltr"
# Solr adds this to every threshold of a tree as it reads it (MultipleAdditiveTreesModel.NODE_SPLIT_SLACK).
SLACK = np.float32(1e-6)
# The float32 that becomes 0 so, and one from which the nearest number below 0 that can be reached is made.
_ZERO = -SLACK, np.nextafter(-SLACK, np.float32(-np.inf))
# Trees separate 0 from the rest by thresholds of this size, which no slack of 1e-6 can tell from 0.
_NEAR_ZERO = float(np.nextafter(np.float32(ZERO), np.float32(1.0)))
_LARGE = 1_000_000  # characters of a model, from which on ZooKeeper may refuse it
_LARGEST_POWER = 126  # of two, with a reciprocal that float32 holds with all its digits


@dataclass(frozen=True, kw_only=True)
class Solr(Target):
    """``model.json`` for the model store, and ``features.json``, a draft for the feature store.

    Parameters
    ----------
    store : str, default="rankwise"
        The feature store that both belong to.
    gaps : {"error", "zero"}, default="error"
        What to do with trees that send a missing value elsewhere than 0, which it is in the engine: raise an error, or
        let it be 0, for documents that lack no feature. XGBoost and CatBoost choose such sides even where training had
        no missing values.
    """

    name = "solr"
    title = "Apache Solr learning to rank"
    arithmetic = "float32, feature after feature (Solr's)"

    store: str = "rankwise"
    gaps: Gaps = "error"

    def write(self, formula: Formula, called: str) -> Written:
        """Write the model and the draft of the features."""
        part = _weights(formula) if isinstance(formula, WeightedSum) else _trees(formula, self.gaps)
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
                "params": {"field": entry["name"], **part.defaults.get(entry["name"], {})},
            }
            for entry in part.features
        ]
        notes = (
            "Solr computes features and scores in float32; a feature without a value is 0 unless its defaultValue says "
            "otherwise",
            "documents beyond reRankDocs keep their first score, and where shards are merged by score, those re-ranked "
            "below 0 may sink under them: re-rank as many as you show",
            "features.json takes every feature from a stored field of its name: say there how you really compute each",
            *part.notes,
        )
        # trees are many and nested: without blanks the file is half as large
        compact = "trees" in part.params
        text = json.dumps(model, ensure_ascii=False, separators=(",", ":")) + "\n" if compact else json_text(model)
        if len(text) > _LARGE:
            notes += (
                f"model.json has {len(text) / 1e6:.1f} MB, and ZooKeeper takes 1 MB unless jute.maxbuffer is raised: "
                "or keep the model in a file, by Solr's DefaultWrapperModel",
            )
        return Written({"model.json": text, "features.json": json_text(features)}, notes, part.dropped)

    def score(self, files: Mapping[str, Content], X: Floats, names: tuple[str, ...]) -> Vector:
        """Score as Solr does, in float32."""
        model = json.loads(files["model.json"])
        listed = [entry["name"] for entry in model["features"]]
        defaults = [one["params"].get("defaultValue", 0.0) for one in json.loads(files["features.json"])]
        rows = single.with_defaults(single.round_features(X)[:, [names.index(name) for name in listed]], defaults)
        for place, entry in enumerate(model["features"]):
            if "norm" in entry:
                params = entry["norm"]["params"]
                rows[:, place] = single.scale_column(rows[:, place], float(params["avg"]), float(params["std"]))
        if "trees" in model["params"]:
            trees = [_read(tree["root"], listed) for tree in model["params"]["trees"]]
            return score_trees(trees, rows, _not_above).astype(np.float64)
        weights = np.array([model["params"]["weights"][name] for name in listed]).astype(np.float32)
        return single.dot(rows, weights).astype(np.float64)


class _Model(NamedTuple):
    """What differs between the two kinds of models."""

    kind: str
    features: list[dict[str, Any]]
    params: dict[str, Any]
    notes: list[str]
    dropped: float = 0.0
    defaults: Mapping[str, dict[str, float]] = MappingProxyType({})


def _feature(name: str, *norm: str) -> dict[str, Any]:
    """A feature of a model; ``norm`` is the center and the scale of its normalizer, if it has one."""
    if not norm:
        return {"name": name}
    params = dict(zip(("avg", "std"), norm, strict=True))
    return {"name": name, "norm": {"class": f"{_PACKAGE}.norm.StandardNormalizer", "params": params}}


def _weights(formula: WeightedSum) -> _Model:
    """A weighted sum as a LinearModel."""
    own = normalize(formula, "Solr")
    features = [_feature(name, *map(repr, own.normalizers.get(name, ()))) for name in own.weights]
    fill = zip(formula.names, [] if formula.fill is None else formula.fill.tolist(), strict=formula.fill is not None)
    defaults = {name: {"defaultValue": value} for name, value in fill}
    return _Model("LinearModel", features, {"weights": own.weights}, own.notes, own.dropped, defaults)


def _not_above(values: Single, split: TreeSplit) -> NDArray[np.bool_]:
    """What goes left in Solr."""
    return values <= np.float32(split.threshold) + SLACK


def _trees(formula: StepSum | TreeSum, gaps: Gaps) -> _Model:
    """A sum of steps or trees as a MultipleAdditiveTreesModel."""
    grown = single_trees(formula, "Solr", gaps)
    cuts: dict[int, set[float]] = {}
    for split in (split for tree in grown for split in splits_of(tree)):
        cuts.setdefault(split.feature, set()).add(split.threshold)
    powers: dict[int, int] = {}
    written: dict[tuple[int, float], float] = {}
    missed = 0
    for place, own in cuts.items():
        power = powers[place] = power_of_two([one for one in own if abs(one) > _NEAR_ZERO])
        for one in own:
            near = abs(one) <= _NEAR_ZERO
            written[place, one] = float(_ZERO[one < 0] if near else before_slack(math.ldexp(one, power)))
            missed += not near and not is_met(math.ldexp(one, power))
    features = [
        _feature(formula.names[place], *(("0", repr(2.0**-power)) if power else ()))
        for place, power in sorted(powers.items() or [(0, 0)])
    ]
    trees = [{"weight": "1", "root": _draw(tree, formula.names, written)} for tree in grown]
    notes = [
        "Solr adds 1e-6 to every threshold of a tree: those in the file are lower by as much, or their feature is "
        "multiplied by a power of two, so that features at a threshold go where the ranker sends them"
    ]
    if any(one < 0 and abs(one) <= _NEAR_ZERO for own in cuts.values() for one in own):
        notes.append("a threshold next to 0 is -1e-13 at the nearest behind Solr's 1e-6: values between count as 0")
    if missed:
        notes.append(f"{missed} thresholds, too near to 0 beside large ones, cannot be met exactly behind Solr's 1e-6")
    return _Model("MultipleAdditiveTreesModel", features, {"trees": trees}, notes)


def before_slack(threshold: float) -> np.float32:
    """The float32 that Solr's slack turns into ``threshold``, or else into the next above that can be reached.

    Above, because a feature that equals its threshold is likelier than one a last place away: it stays on its side.
    """
    wanted = np.float32(threshold)
    # the subtraction is rounded, so neighbors may be the better choice
    around = [wanted - SLACK]
    with np.errstate(over="ignore"):
        for _ in range(4):
            below, above = (np.nextafter(around[at], np.float32(end)) for at, end in ((0, -np.inf), (-1, np.inf)))
            around = [below, *around, above]
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


def _draw(node: Node, names: tuple[str, ...], written: Mapping[tuple[int, float], float]) -> dict[str, Any]:
    """A tree as JSON; ``written`` has the number in the file for every feature and threshold."""
    if isinstance(node, Leaf):
        return {"value": repr(node.value)}
    return {
        "feature": names[node.feature],
        "threshold": repr(written[node.feature, node.threshold]),
        "left": _draw(node.left, names, written),
        "right": _draw(node.right, names, written),
    }


def _read(node: dict[str, Any], listed: list[str]) -> Node:
    """A tree from JSON."""
    if "feature" not in node:
        return Leaf(float(node["value"]))
    left, right = (_read(node[side], listed) for side in ("left", "right"))
    return TreeSplit(listed.index(node["feature"]), float(node["threshold"]), left, right)
