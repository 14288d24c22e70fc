"""The learning to rank plugins of Elasticsearch and OpenSearch, which read the same files."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rankwise._errors import RankwiseError
from rankwise.data.checks import Floats
from rankwise.exports import single
from rankwise.exports._base import Content, Target, Written, json_text
from rankwise.exports.formula import Formula, StepSum, WeightedSum
from rankwise.exports.ranklib import RankLib, score_text
from rankwise.exports.single import normalised
from rankwise.measures._base import Vector


@dataclass(frozen=True, kw_only=True)
class Elasticsearch(Target):
    """``model.json`` for ``_createmodel``, and ``featureset.json``, a draft of the feature set that it belongs to.

    Parameters
    ----------
    form : {"linear", "ranklib"}, default=None
        "linear" (``model/linear``, features by name, sums in float32) or "ranklib" (``model/ranklib``, features by
        their position in the set, sums of weights in float64). None takes "linear" for weights, "ranklib" for steps.
    """

    name = "elasticsearch"
    title = "Elasticsearch LTR plugin"
    arithmetic = "float32, feature after feature (the plugin's)"

    form: Literal["linear", "ranklib"] | None = None

    def write(self, formula: Formula, called: str) -> Written:
        """Write the model and the draft of the feature set."""
        # steps have no linear form; RankLib trees are the format that the plugin reads for them
        steps = isinstance(formula, StepSum)
        if self.form not in (None, "linear", "ranklib") or (self.form == "linear" and steps):
            raise RankwiseError(f"form is 'linear' for weights, or 'ranklib': found {self.form!r:.40}")
        notes = [
            "the plugin computes features and scores in float32; a feature that did not match a document is 0",
            "Lucene takes no score below 0: export with shift='sample' (or a number) to lift scores above it",
        ]
        if isinstance(formula, WeightedSum) and self.form != "ranklib":
            model, more, dropped = _linear(formula)
            arithmetic = self.arithmetic
            more.append("form='ranklib' adds in float64, and so keeps apart scores that float32 sums may turn round")
        else:
            written = RankLib(form="trees" if steps else None).write(formula, called)
            model = {"type": "model/ranklib", "definition": written.files["model.txt"]}
            more, dropped = list(written.notes[1:]), written.dropped
            arithmetic = f"{written.arithmetic or RankLib.arithmetic}, rounded to float32"
            more.append(
                f"the numbers of the model are places in the feature set: keep its {len(formula.names)} in order"
            )
        files = {
            "model.json": json_text({"model": {"name": called, "model": model}}),
            "featureset.json": json_text({"featureset": {"features": [_feature(name) for name in formula.names]}}),
        }
        notes.append(
            "featureset.json takes every feature from a field of its name: say there how you really compute each"
        )
        return Written(files, (*notes, *more), dropped, arithmetic)

    def score(self, files: Mapping[str, Content], X: Floats, names: tuple[str, ...]) -> Vector:
        """Score as the plugin does, in float32."""
        model = json.loads(files["model.json"])["model"]["model"]
        if model["type"] == "model/ranklib":
            return single.rounded_features(score_text(model["definition"], X)[:, None])[:, 0].astype(np.float64)
        rows = single.rounded_features(X)
        for name, kind in model.get("feature_normalizers", {}).items():
            place, own = names.index(name), kind["standard"]
            rows[:, place] = single.scaled(rows[:, place], own["mean"], own["standard_deviation"])
        # read back from the file and not from the formula: the file is what the engine sees
        given = json.loads(model["definition"])
        weights = np.array([given.get(name, 0.0) for name in names]).astype(np.float32)
        return single.dot(rows, weights).astype(np.float64)


@dataclass(frozen=True, kw_only=True)
class OpenSearch(Elasticsearch):
    """What :class:`Elasticsearch` writes; the plugin of OpenSearch has the same parsers."""

    name = "opensearch"
    title = "OpenSearch LTR plugin"


def _linear(formula: WeightedSum) -> tuple[dict[str, Any], list[str], float]:
    """The model, notes and dropped constant of a weighted sum."""
    own = normalised(formula, "the plugin")
    notes = [own.note] if own.note else []
    model: dict[str, Any] = {"type": "model/linear"}
    if own.center:
        # "standard" for every scaling: the plugin's min_max refuses a minimum below 0
        model["feature_normalizers"] = {
            formula.names[place]: {"standard": {"mean": center, "standard_deviation": own.scale[place]}}
            for place, center in own.center.items()
        }
        notes.append(
            "behind a normaliser a feature that did not match counts (0 - mean) / standard_deviation, and not 0: give "
            "such features a default"
        )
    model["definition"] = json.dumps(own.weights(formula.names), ensure_ascii=False)
    return model, notes, own.dropped


def _feature(name: str) -> dict[str, Any]:
    """The draft of one feature: a field of its name."""
    value = {"field_value_factor": {"field": name, "missing": 0}, "query": {"match_all": {}}}
    return {"name": name, "params": [], "template_language": "mustache", "template": {"function_score": value}}
