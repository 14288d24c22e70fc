"""RankLib's model files: a weighted sum, its RankBoost for a sum of steps, or an ensemble of trees.

The learning to rank plugins of Elasticsearch and OpenSearch read the same format, and XGBoost's dumps of trees.
"""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal
from urllib.parse import quote
from xml.etree.ElementTree import Element, fromstring

import numpy as np
from numpy.typing import NDArray

from rankwise.errors import RankwiseError
from rankwise.exports import single
from rankwise.exports._base import Content, Cut, Target, UploadRequest, Written, json_text
from rankwise.exports.formula import Formula, StepSum, TreeSum, WeightedSum
from rankwise.exports.single import Single, normalize, single_trees
from rankwise.exports.tree_nodes import Leaf, Node, TreeSplit, score_trees
from rankwise.measures._base import Vector
from rankwise.queries.checks import Floats

Form = Literal["coordinate ascent", "linear regression", "rankboost", "trees"]

# the forms of each formula, the usual one first
_FORMS: dict[type, tuple[Form, ...]] = {
    WeightedSum: ("coordinate ascent", "linear regression"),
    StepSum: ("rankboost", "trees"),
    TreeSum: ("trees",),
}


@dataclass(frozen=True, kw_only=True)
class RankLib(Target):
    """``model.txt``, which RankLib loads by ``-load``.

    Parameters
    ----------
    form : {"coordinate ascent", "linear regression", "rankboost", "trees"}, default=None
        "coordinate ascent" (no constant) or "linear regression" (not in RankLib 2.16) for a weighted sum; "rankboost"
        (thresholds and sums in float64) or "trees" (all in float32, as LambdaMART) for a sum of steps; "trees" for
        trees. None takes the first of either.
    """

    name = "ranklib"
    title = "RankLib"
    arithmetic = "float32 features, float64 sums (RankLib's)"

    form: Form | None = None

    def write(self, formula: Formula, called: str) -> Written:
        """Write the model file."""
        able = next(forms for kind, forms in _FORMS.items() if isinstance(formula, kind))
        form = self.form or able[0]
        if form not in able:
            raise RankwiseError(
                f"form must be 'coordinate ascent' or 'linear regression' for weights, 'rankboost' or 'trees' for "
                f"steps, 'trees' for trees, got {self.form!r:.40}"
            )
        notes = ["RankLib holds features in float32; one that a line of its data file lacks counts 0 in this model"]
        dropped = 0.0
        if isinstance(formula, WeightedSum):
            lines, dropped = _weights(formula.raw(), form)
            if dropped:
                notes.append(
                    f"the constant {dropped:.6g} is left out, which no ranking sees; form='linear regression' keeps it"
                )
        elif form == "rankboost" and isinstance(formula, StepSum):
            dropped = formula.constant
            lines = ["## RankBoost", *_name_lines(formula), _steps(formula)]
        else:
            lines = ["## LambdaMART", *_name_lines(formula), "<ensemble>"]
            for number, tree in enumerate(single_trees(formula, "RankLib"), 1):
                lines.append(f'<tree id="{number}" weight="1.0"><split>{_draw(tree)}</split></tree>')
            lines.append("</ensemble>")
        arithmetic = "float32, tree after tree (RankLib's)" if form == "trees" else ""
        return Written({"model.txt": "\n".join(lines) + "\n"}, tuple(notes), dropped, arithmetic)

    def score(self, files: Mapping[str, Content], X: Floats, names: tuple[str, ...]) -> Vector:
        """Score as RankLib does."""
        return score_text(str(files["model.txt"]), X)


def score_text(text: str, X: Floats) -> Vector:
    """Score as RankLib does from a model file that :class:`RankLib` wrote.

    Parameters
    ----------
    text : str
        The model file.
    X : array of shape (n_documents, n_features)
        Raw features.

    Returns
    -------
    ndarray of shape (n_documents,)
        The scores.
    """
    rows = single.with_defaults(single.round_features(X))
    kind = text.splitlines()[0].removeprefix("## ").lower()
    body = "".join(line for line in text.splitlines() if not line.startswith("##"))
    if kind == "lambdamart":
        trees = [_read(tree[0]) for tree in fromstring(body)]
        return score_trees(trees, rows, _not_above).astype(np.float64)
    pairs = [word.split(":") for word in body.split()]
    # summed in the order of the file, as RankLib does: floating point sums depend on it
    total = np.zeros(len(rows))
    for number, *rest in pairs:
        if number == "0":
            total += float(rest[0])  # RankLib begins with the constant
    for number, *rest in pairs:
        if number == "0":
            continue
        column = rows[:, int(number) - 1].astype(np.float64)
        if kind == "rankboost":
            total += float(rest[1]) * (column > float(rest[0]))
        else:
            total += float(rest[0]) * column
    return total


def _not_above(values: Single, split: TreeSplit) -> NDArray[np.bool_]:
    """What goes left in RankLib."""
    return values <= np.float32(split.threshold)


def _weights(formula: WeightedSum, form: str) -> tuple[list[str], float]:
    """The lines of a weighted sum, and the constant that they cannot hold."""
    words = [f"{place + 1}:{float(formula.weight[place])!r}" for place in formula.used]
    if form == "linear regression":
        lines = ["## Linear Regression", "## Lambda = 1.0E-10", *_name_lines(formula)]
        return [*lines, " ".join([f"0:{formula.constant!r}", *words])], 0.0
    return ["## Coordinate Ascent", *_name_lines(formula), " ".join(words)], formula.constant


def _steps(formula: StepSum) -> str:
    """Steps as feature:threshold:alpha; one that counts nothing where there is none."""
    rows = zip(formula.feature.tolist(), formula.threshold.tolist(), formula.alpha.tolist(), strict=True)
    return " ".join(f"{place + 1}:{threshold!r}:{alpha!r}" for place, threshold, alpha in rows) or "1:0.0:0.0"


def _name_lines(formula: Formula) -> list[str]:
    """The names of the features, in ASCII lines that RankLib skips."""
    return [f"## feature {place} = {json.dumps(name)}" for place, name in enumerate(formula.names, 1)]


def _draw(node: Node) -> str:
    """A tree as XML."""
    # RankLib's reader takes the first child of an element for its content: no blank may stand between tags
    if isinstance(node, Leaf):
        return f"<output> {node.value!r} </output>"
    return (
        f"<feature> {node.feature + 1} </feature><threshold> {node.threshold!r} </threshold>"
        f'<split pos="left">{_draw(node.left)}</split><split pos="right">{_draw(node.right)}</split>'
    )


def _read(element: Element) -> Node:
    """A tree from XML."""
    first = element[0]
    if first.tag == "output":
        return Leaf(float(first.text or ""))
    return TreeSplit(int(first.text or "") - 1, float(element[1].text or ""), _read(element[2]), _read(element[3]))


# --------------------------------------------------------------------------------------- Elasticsearch and OpenSearch


@dataclass(frozen=True, kw_only=True)
class Elasticsearch(Target):
    """``model.json`` for ``_createmodel``, ``featureset.json``, a draft of its feature set, and ``upload.sh``.

    ``upload.sh ADDRESS`` sends the requests of :attr:`Export.requests` by curl.

    Parameters
    ----------
    featureset : str, default=None
        The name of the feature set that the model belongs to; None takes the name of the model.
    form : {"linear", "xgboost", "ranklib"}, default=None
        "linear" (``model/linear``, features by name, sums in float32) for weights; "xgboost" (``model/xgboost+json``,
        features by name, float32) for steps and trees; "ranklib" (``model/ranklib``, features by their position in the
        set, sums of weights in float64) for all. None takes "linear" for weights, "xgboost" for steps and trees.
    """

    name = "elasticsearch"
    title = "Elasticsearch LTR plugin"
    arithmetic = "float32, feature after feature (the plugin's)"

    form: Literal["linear", "xgboost", "ranklib"] | None = None
    featureset: str | None = None

    def write(self, formula: Formula, called: str) -> Written:
        """Write the model and the draft of the feature set."""
        own = "linear" if isinstance(formula, WeightedSum) else "xgboost"
        form = self.form or own
        if form not in (own, "ranklib"):
            raise RankwiseError(
                f"form must be 'linear' for weights, 'xgboost' for steps and trees, or 'ranklib', got {self.form!r:.40}"
            )
        notes = [
            "the plugin computes features and scores in float32"
            + ("" if form == "xgboost" else "; a feature that did not match a document is 0"),
            "Lucene takes no score below 0: export with shift='sample' (or a number) to lift scores above it",
        ]
        if isinstance(formula, WeightedSum) and form == "linear":
            model, more, dropped = _linear(formula)
            arithmetic = self.arithmetic
            more.append("form='ranklib' adds in float64, and so keeps apart scores that float32 sums may turn round")
        elif not isinstance(formula, WeightedSum) and form == "xgboost":
            # a value goes on at ``yes`` if it is below the condition
            dump = [_dump(tree, formula.names, [0], 0) for tree in single_trees(formula, "the plugin")]
            definition = json.dumps(dump, ensure_ascii=False, separators=(",", ":"))
            model, more, dropped = {"type": "model/xgboost+json", "definition": definition}, [_UNMATCHED], 0.0
            arithmetic = "float32, tree after tree (the plugin's)"
        else:
            written = RankLib(form=None if isinstance(formula, WeightedSum) else "trees").write(formula, called)
            model = {"type": "model/ranklib", "definition": written.files["model.txt"]}
            more, dropped = list(written.notes[1:]), written.dropped
            arithmetic = f"{written.arithmetic or RankLib.arithmetic}, rounded to float32"
            more.append(
                f"the numbers of the model are places in the feature set: keep its {len(formula.names)} in order"
            )
        requests = _requests(called if self.featureset is None else self.featureset)
        written_files = {
            "model.json": json_text({"model": {"name": called, "model": model}}),
            "featureset.json": json_text({"featureset": {"features": _features(formula)}}),
            "upload.sh": curl_script(requests),
        }
        notes.append(
            "featureset.json takes every feature from a field of its name: say there how you really compute each"
        )
        return Written(written_files, (*notes, *more), dropped, arithmetic, requests)

    def write_cut(self, cut: Cut, written: Written) -> Written:
        """``search.json``: a search that scores by the model, with ``min_score`` or ``size``."""
        query = {"bool": {"filter": [{"match_all": {}}], "must": [{"sltr": {"model": cut.called, "params": {}}}]}}
        if cut.score is None:
            note = "cut-off: search.json returns as many documents as the cut-off keeps"
            return Written({"search.json": json_text({"size": cut.documents, "query": query})}, (note,))
        least = float(np.float32(cut.score))
        notes = (
            "cut-off: search.json scores every document of its filter, because min_score does not see the scores of a "
            "rescore: put your own query there; size is the most that is returned",
        )
        return Written({"search.json": json_text({"min_score": least, "size": 10_000, "query": query})}, notes)

    def score(self, files: Mapping[str, Content], X: Floats, names: tuple[str, ...]) -> Vector:
        """Score as the plugin does, in float32."""
        model = json.loads(files["model.json"])["model"]["model"]
        drafts = json.loads(files["featureset.json"])["featureset"]["features"]
        factors = [one["template"]["function_score"]["field_value_factor"] for one in drafts]
        rows = single.with_defaults(single.round_features(X), [one["missing"] for one in factors])
        if model["type"] == "model/ranklib":
            return single.round_features(score_text(model["definition"], rows)[:, None])[:, 0].astype(np.float64)
        if model["type"] == "model/xgboost+json":
            trees = [_read_xgboost(tree, names) for tree in json.loads(model["definition"])]
            return score_trees(trees, rows, _below).astype(np.float64)
        for name, kind in model.get("feature_normalizers", {}).items():
            place, own = names.index(name), kind["standard"]
            rows[:, place] = single.scale_column(rows[:, place], own["mean"], own["standard_deviation"])
        # read back from the file and not from the formula: the file is what the engine sees
        given = json.loads(model["definition"])
        weights = np.array([given.get(name, 0.0) for name in names]).astype(np.float32)
        return single.dot(rows, weights).astype(np.float64)


@dataclass(frozen=True, kw_only=True)
class OpenSearch(Elasticsearch):
    """What :class:`Elasticsearch` writes; the plugin of OpenSearch has the same parsers."""

    name = "opensearch"
    title = "OpenSearch LTR plugin"


# issue 378 of OpenSearch's plugin describes the third kind
_UNMATCHED = (
    "a feature that did not match a document goes where 0 goes if the plugin fills in 0 or obeys 'missing', and to "
    "'no' in plugins from 2024 on that do neither: give such features a default, or use form='ranklib', where it is 0"
)


def _requests(featureset: str) -> tuple[UploadRequest, ...]:
    """What makes the store of features and models, the feature set and the model."""
    if not featureset:
        raise RankwiseError("featureset must be the name of a feature set, got ''")
    path = f"/_ltr/_featureset/{quote(featureset, safe='')}"
    return (
        UploadRequest("PUT", "/_ltr", may_exist=True),
        # PUT makes a set, and POST would replace one that is there by this draft
        UploadRequest("PUT", path, "featureset.json", may_exist=True),
        UploadRequest("POST", f"{path}/_createmodel", "model.json"),
    )


def curl_script(requests: Sequence[UploadRequest]) -> str:
    """A shell script that sends requests by curl.

    Parameters
    ----------
    requests : sequence of UploadRequest
        The requests. The failure of one whose result may be there already does not end the script.

    Returns
    -------
    str
        The script, which takes the address of the engine as its first argument.
    """
    lines = []
    for request in requests:
        line = f'curl -sS --fail-with-body "$@" -X {request.method} "$address"{shlex.quote(request.path)}'
        if request.file is not None:
            line += f" -H 'Content-Type: application/json' --data-binary {shlex.quote('@' + request.file)}"
        lines += [f"{line} || echo ' (it may be there already)'" if request.may_exist else line, "echo"]
    return files("rankwise.exports").joinpath("upload.sh").read_text(encoding="utf-8") + "\n".join(lines) + "\n"


def _linear(formula: WeightedSum) -> tuple[dict[str, Any], list[str], float]:
    """The model, notes and dropped constant of a weighted sum."""
    own = normalize(formula, "the plugin")
    notes = own.notes
    model: dict[str, Any] = {"type": "model/linear"}
    if own.normalizers:
        # "standard" for every scaling: the plugin's min_max refuses a minimum below 0
        model["feature_normalizers"] = {
            name: {"standard": {"mean": center, "standard_deviation": scale}}
            for name, (center, scale) in own.normalizers.items()
        }
        notes.append(
            "behind a normalizer a feature that did not match counts (0 - mean) / standard_deviation, and not 0: give "
            "such features a default"
        )
    model["definition"] = json.dumps(own.weights, ensure_ascii=False)
    return model, notes, own.dropped


def _dump(node: Node, names: tuple[str, ...], count: list[int], depth: int) -> dict[str, Any]:
    """A node as JSON; ``count`` holds the next free number."""
    number = count[0]
    count[0] += 1
    if isinstance(node, Leaf):
        return {"nodeid": number, "leaf": node.value}
    # x <= t is x < t' with the next float32 after t
    most = np.finfo(np.float32).max
    condition = float(np.nextafter(np.float32(node.threshold), most))
    left, right = (_dump(child, names, count, depth + 1) for child in (node.left, node.right))
    yes, no = left["nodeid"], right["nodeid"]
    return {
        "nodeid": number,
        "depth": depth,  # the plugins do not use it, and refuse a split without it
        "split": names[node.feature],
        "split_condition": condition,
        "yes": yes,
        "no": no,
        "missing": yes if node.threshold >= 0 else no,  # where 0 goes: plugins without this rule take 0
        "children": [left, right],
    }


def _read_xgboost(node: dict[str, Any], names: tuple[str, ...]) -> Node:
    """A tree from JSON."""
    if "leaf" in node:
        return Leaf(node["leaf"])
    left, right = (_read_xgboost(one, names) for one in node["children"])
    return TreeSplit(names.index(node["split"]), node["split_condition"], left, right)


def _below(values: Single, split: TreeSplit) -> NDArray[np.bool_]:
    """What goes left in the plugin."""
    return values < np.float32(split.threshold)


def _features(formula: Formula) -> list[dict[str, Any]]:
    """The drafts of all features: fields of their names, with the defaults of the ranker or 0."""
    fill = formula.fill if isinstance(formula, WeightedSum) else None
    defaults = [0] * len(formula.names) if fill is None else fill.tolist()
    factors = ({"field": name, "missing": value} for name, value in zip(formula.names, defaults, strict=True))
    values = ({"field_value_factor": factor, "query": {"match_all": {}}} for factor in factors)
    return [
        {"name": name, "params": [], "template_language": "mustache", "template": {"function_score": value}}
        for name, value in zip(formula.names, values, strict=True)
    ]
