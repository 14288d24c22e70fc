"""ONNX: ``Gemm`` for a weighted sum, and with ``Relu`` for a network, ``TreeEnsembleRegressor`` for steps and trees,
and sums over maps in float64.

What is written is checked by onnxruntime.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rankwise._extras import require
from rankwise.errors import MissingExtraError, RankwiseError
from rankwise.exports import single
from rankwise.exports._base import Content, Target, Written
from rankwise.exports.columns import ColumnFeatures, ColumnStep
from rankwise.exports.formula import Formula, NetworkSum, StepSum, TreeSum, WeightedSum
from rankwise.exports.map_sums import ExactGraph, MapSum
from rankwise.exports.networks import onnx_nodes
from rankwise.exports.single import refuse_rules, single_trees
from rankwise.exports.tree_nodes import Leaf, Node, nest
from rankwise.measures._base import Vector
from rankwise.queries.checks import Floats

_NODE_COLUMNS = tuple(
    f"nodes_{name}"
    for name in (
        "treeids",
        "nodeids",
        "featureids",
        "modes",
        "values",
        "truenodeids",
        "falsenodeids",
        "missing_value_tracks_true",
    )
)
_TARGET_COLUMNS = tuple(f"target_{name}" for name in ("treeids", "nodeids", "ids", "weights"))
_ROWS = 4_096  # that are scored at a time: products and kernels of a row are many
_OPSET, _ML_OPSET, _IR = 13, 3, 8  # old enough for every runtime in use


@dataclass(frozen=True, kw_only=True)
class Onnx(Target):
    """``model.onnx``: input ``X`` float[N, features], output ``score`` float[N, 1].

    Parameters
    ----------
    sums : {"float64", "float32"}, default="float64"
        How a sum of trees is computed inside: "float64" rounds once, at the end, and needs a runtime with trees of
        float64, as onnxruntime has them; "float32" rounds at every tree. Weighted sums, steps and networks are float32,
        linear weights on a map are float64.
    """

    name = "onnx"
    title = "ONNX"
    arithmetic = "float32, run by onnxruntime"
    takes = (*Target.takes, NetworkSum, MapSum)
    holds_columns = True

    sums: Literal["float64", "float32"] = "float64"

    def write(
        self, formula: Formula | NetworkSum | MapSum, called: str, columns: ColumnFeatures | None = None
    ) -> Written:
        """Write the model, and check it with the package onnx."""
        if self.sums not in ("float64", "float32"):
            raise RankwiseError(f"sums must be 'float64' or 'float32', got {self.sums!r:.40}")
        helper, proto = require("onnx.helper"), require("onnx").TensorProto
        width, has_trees = len(formula.names), isinstance(formula, (StepSum, TreeSum))
        nodes, constants = self._nodes(formula, helper, proto)
        inputs = [helper.make_tensor_value_info("X", proto.FLOAT, ["N", width])]
        names = {f"feature.{place}": name for place, name in enumerate(formula.names)}
        if columns is not None:
            made = _ColumnGraph(helper, proto, columns)
            nodes, constants = [*made.nodes, *nodes], [*made.constants, *constants]
            inputs, names = made.inputs, made.names
            has_trees = has_trees or columns.uses("level")
        graph = helper.make_graph(
            nodes,
            called,
            inputs,
            [helper.make_tensor_value_info("score", proto.FLOAT, ["N", 1])],
            constants,
        )
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid("ai.onnx.ml", _ML_OPSET)]
        model = helper.make_model(graph, opset_imports=opsets[: 1 + has_trees], ir_version=_IR)
        model.producer_name = "rankwise"
        helper.set_model_props(model, names)
        require("onnx").checker.check_model(model)
        notes = ["ONNX holds weights and features in float32; runtimes may add them in any order"]
        arithmetic = ""
        if isinstance(formula, TreeSum):
            notes.append("NaN goes where the trees of the ranker send it")
            if self.sums == "float64":
                arithmetic = "float64 trees and sums, a float32 score, run by onnxruntime"
                notes.append("trees and their sums are float64, which not every runtime takes: sums='float32' does")
        elif isinstance(formula, MapSum):
            arithmetic = "float32 features, float64 sums, a float32 score, run by onnxruntime"
            notes[0] = "ONNX holds features in float32, and what is computed of them in float64"
            notes.append("NaN is not looked for: send complete features")
        else:
            notes.append("NaN is not looked for: a weighted sum with it is NaN, and it is above no threshold")
        if columns is not None:
            notes[-1] = f"the inputs are {made.about}; NaN and the empty text are missing"
            notes.append("features are made of columns in float64, and rounded to float32 before they are scored")
        return Written({"model.onnx": model.SerializeToString(deterministic=True)}, tuple(notes), arithmetic=arithmetic)

    def score(self, files: Mapping[str, Content], X: Floats, names: tuple[str, ...]) -> Vector:
        """Run onnxruntime, or ONNX's own reference where that is not installed."""
        content = files["model.onnx"]
        try:
            options = require("onnxruntime").SessionOptions()
            # a check of one sample needs no pool of threads
            options.intra_op_num_threads = 1
            session = require("onnxruntime").InferenceSession(content, options, providers=["CPUExecutionProvider"])
        except MissingExtraError:
            if (
                self.sums == "float64" and isinstance(content, bytes) and b"nodes_values_as_tensor" in content
            ):  # which the reference cannot run
                raise
            session = require("onnx.reference").ReferenceEvaluator(content)
        feed = _column_inputs(X) if X.dtype == object else {"X": single.round_features(X)}
        found = []
        for first in range(0, max(len(X), 1), _ROWS):
            block = {name: values[first : first + _ROWS] for name, values in feed.items()}
            found.append(np.asarray(session.run(["score"], block)[0], dtype=np.float64)[:, 0])
        return np.concatenate(found)

    def _nodes(self, formula: Formula | NetworkSum | MapSum, helper: Any, proto: Any) -> tuple[list[Any], list[Any]]:
        """The nodes of the graph, and its constants."""
        if isinstance(formula, NetworkSum):
            return onnx_nodes(formula, helper, proto.FLOAT)
        if isinstance(formula, MapSum):
            graph = ExactGraph(helper, proto)
            graph.finish(formula.onnx(graph), formula.constant)
            return graph.nodes, graph.constants
        if isinstance(formula, WeightedSum):
            return _linear_nodes(formula, helper, proto.FLOAT, "score")
        if isinstance(formula, StepSum):
            return [_tree_node(single_trees(formula, "ONNX"), helper, "X", "score")], []
        trees = _trees(formula, single_precision=self.sums == "float32")
        result = "score" if formula.linear is None else "trees"
        if self.sums == "float32":
            nodes = [_tree_node(trees, helper, "X", result)]
        else:
            cast = helper.make_node("Cast", ["X"], ["exact"], to=proto.DOUBLE)
            nodes = [cast, _tree_node(trees, helper, "exact", result, proto.DOUBLE)]
        if formula.linear is None:
            return nodes, []
        more, constants = _linear_nodes(formula.linear, helper, proto.FLOAT, "linear")
        return [*nodes, *more, helper.make_node("Add", ["trees", "linear"], ["score"])], constants


class _ColumnGraph(ExactGraph):
    """Nodes that make the features ``X`` of columns: ``number`` is double[N, numbers], ``text`` is string[N, texts]."""

    def __init__(self, helper: Any, proto: Any, columns: ColumnFeatures) -> None:
        super().__init__(helper, proto, "column_")  # the formula has nodes of its own
        kinds = {"number": [False, proto.DOUBLE], "text": [True, proto.STRING]}
        self.inputs: list[Any] = []
        self.names: dict[str, str] = {}
        told = []
        given: dict[int, str] = {}
        for kind, (is_text, tensor) in kinds.items():
            own = [place for place, text in enumerate(columns.is_text) if text == is_text]
            if not own:
                continue
            self.inputs.append(helper.make_tensor_value_info(kind, tensor, ["N", len(own)]))
            told.append(f"{kind} ({', '.join(columns.names[place] for place in own)})")
            for number, place in enumerate(own):
                self.names[f"{kind}.{number}"] = columns.names[place]
                given[place] = self.node("Gather", kind, self.constant([number], "INT64"), axis=1)
        self.about = " and ".join(told)
        features = [self._feature(given[place], steps) for place, steps in columns.chains]
        exact = self.node("Concat", *features, axis=1)
        self.nodes.append(helper.make_node("Cast", [exact], ["X"], to=proto.FLOAT))

    def _feature(self, v: str, steps: tuple[ColumnStep, ...]) -> str:
        """One feature, shape (N, 1)."""
        operations = {"subtract": "Sub", "divide": "Div", "multiply": "Mul", "add": "Add"}
        for step in steps:
            if step.kind == "level":
                # levels without a number of their own need a key all the same: the encoder wants one
                levels = step.levels or (("", step.value),)
                keys, values = zip(*levels, strict=True)
                options = {"keys_strings": keys, "values_floats": values, "default_float": step.value}
                v = self.node("Cast", self.node("LabelEncoder", v, domain="ai.onnx.ml", **options), to=self.double)
                continue
            if step.kind == "log":
                grown = self.node("Add", self.node("Abs", v), self.constant([1.0]))
                v = self.node("Mul", self.node("Sign", v), self.node("Log", grown))
                continue
            if step.kind == "missing":
                v = self.node("Cast", self.node("IsNaN", v), to=self.double)
                continue
            value = self.constant([step.value])
            if step.kind == "fill":
                v = self.node("Where", self.node("IsNaN", v), value, v)
            elif step.kind == "before":
                v = self.node("Sub", value, v)
            else:
                v = self.node(operations[step.kind], v, value)
        return v


def _column_inputs(rows: Any) -> dict[str, Any]:
    """The inputs of a graph over columns."""
    texts = np.array([isinstance(one, str) for one in rows[0]])
    numbers, words = rows[:, ~texts].astype(np.float64), rows[:, texts]
    return {name: part for name, part in (("number", numbers), ("text", words)) if part.shape[1]}


def _linear_nodes(formula: WeightedSum, helper: Any, kind: int, result: str) -> tuple[list[Any], list[Any]]:
    """(X - center) / scale where the features are scaled, and then Gemm."""

    def tensor(name: str, values: Vector, shape: list[int]) -> Any:
        names = formula.names if len(values) == len(formula.names) else ["(constant)"]
        added = name in ("constant", "center")
        return helper.make_tensor(name, kind, shape, single.as_single(values, names, name, "ONNX", added))

    width = len(formula.names)
    constants = [tensor("weight", formula.weight, [width, 1]), tensor("constant", np.array([formula.constant]), [1])]
    if formula.center is None or formula.scale is None:
        return [helper.make_node("Gemm", ["X", "weight", "constant"], [result])], constants
    nodes = [
        helper.make_node("Sub", ["X", "center"], ["centred"]),
        helper.make_node("Div", ["centred", "scale"], ["scaled"]),
        helper.make_node("Gemm", ["scaled", "weight", "constant"], [result]),
    ]
    return nodes, [*constants, tensor("center", formula.center, [width]), tensor("scale", formula.scale, [width])]


def _trees(formula: TreeSum, single_precision: bool) -> list[Node]:
    """The trees and the constant, with leaves in float32 where that is asked for; features are float32 in any case."""
    refuse_rules(formula, "ONNX", "sql, python or c")
    if single_precision:
        found = single.round_trees(formula, "ONNX")
    else:
        found = nest(formula.trees, single.round_thresholds(formula.trees.threshold))
    if formula.constant or not found:
        single.as_single(np.array([formula.constant]), ["(constant)"], "constant", "ONNX", added=True)
        found.append(Leaf(formula.constant))
    return found


def _tree_node(trees: list[Node], helper: Any, given: str, result: str, kind: int | None = None) -> Any:
    """The trees as one node; with a type of tensors, numbers are tensors of that type and not plain float32."""
    table: dict[str, list[Any]] = {name: [] for name in (*_NODE_COLUMNS, *_TARGET_COLUMNS)}
    for number, tree in enumerate(trees):
        _add_tree(table, tree, number, 0)
    columns: dict[str, Any] = dict(table)
    if kind is not None:
        for name in ("nodes_values", "target_weights"):
            values = columns.pop(name)
            columns[f"{name}_as_tensor"] = helper.make_tensor(name, kind, [len(values)], values)
    return helper.make_node(
        "TreeEnsembleRegressor",
        [given],
        [result],
        domain="ai.onnx.ml",
        n_targets=1,
        aggregate_function="SUM",
        post_transform="NONE",
        **columns,
    )


def _add_tree(table: dict[str, list[Any]], node: Node, tree: int, number: int) -> int:
    """Add a node and what is below it; the next free number is returned."""
    place = len(table["nodes_treeids"])
    if isinstance(node, Leaf):
        _append(table, _NODE_COLUMNS, (tree, number, 0, "LEAF", 0.0, 0, 0, 0))
        _append(table, _TARGET_COLUMNS, (tree, number, 0, node.value))
        return number + 1
    row = (tree, number, node.feature, "BRANCH_LEQ", node.threshold, number + 1, 0, int(node.nan_left))
    _append(table, _NODE_COLUMNS, row)
    after = _add_tree(table, node.left, tree, number + 1)
    # the right subtree begins where the left one ended
    table["nodes_falsenodeids"][place] = after
    return _add_tree(table, node.right, tree, after)


def _append(table: dict[str, list[Any]], columns: tuple[str, ...], row: tuple[Any, ...]) -> None:
    """Add a row to some columns."""
    for name, value in zip(columns, row, strict=True):
        table[name].append(value)
