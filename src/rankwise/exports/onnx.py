"""ONNX: ``Gemm`` for a weighted sum, and with ``Relu`` for a network, ``TreeEnsembleRegressor`` for steps and trees,
and sums over maps in float64.

What is written is checked by onnxruntime.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rankwise._extras import require
from rankwise.errors import MissingExtraError
from rankwise.exports import single
from rankwise.exports._base import Content, Target, Written
from rankwise.exports.columns import ColumnFeatures, ColumnStep
from rankwise.exports.formula import MEDIAN, Formula, StepSum, TreeSum, WeightedSum, fills_gaps
from rankwise.exports.map_sums import Graph, MapSum
from rankwise.exports.networks import NetworkSum
from rankwise.exports.single import refuse_rules, single_trees
from rankwise.exports.tree_nodes import Leaf, Node, nest
from rankwise.measures._base import Vector
from rankwise.queries.checks import Floats

_NODE = "treeids nodeids featureids modes values truenodeids falsenodeids missing_value_tracks_true"
_NODE_COLUMNS = tuple(f"nodes_{name}" for name in _NODE.split())
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
    takes = (*Target.takes, MapSum)
    holds_columns = True
    holds_tables = True

    sums: Literal["float64", "float32"] = "float64"

    def write(self, formula: Formula | MapSum, called: str, columns: ColumnFeatures | None = None) -> Written:
        """Write the model, and check it with the package onnx."""
        helper, proto = require("onnx.helper"), require("onnx").TensorProto
        has_trees = isinstance(formula, (StepSum, TreeSum))
        graph = Graph(helper, proto)
        self._add_nodes(graph, formula)
        nodes, constants = graph.nodes, graph.constants
        inputs = [helper.make_tensor_value_info("X", proto.FLOAT, ["N", len(formula.names)])]
        names = {f"feature.{place}": name for place, name in enumerate(formula.names)}
        if columns is not None:
            made = _ColumnGraph(helper, proto, columns)
            nodes, constants = [*made.nodes, *nodes], [*made.constants, *constants]
            inputs, names = made.inputs, made.names
            has_trees = has_trees or columns.uses("level")
        outputs = [helper.make_tensor_value_info("score", proto.FLOAT, ["N", 1])]
        whole = helper.make_graph(nodes, called, inputs, outputs, constants)
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid("ai.onnx.ml", _ML_OPSET)]
        model = helper.make_model(whole, opset_imports=opsets[: 1 + has_trees], ir_version=_IR)
        model.producer_name = "rankwise"
        helper.set_model_props(model, names)
        require("onnx").checker.check_model(model)
        notes = ["ONNX holds weights and features in float32; runtimes may add them in any order"]
        arithmetic = ""
        if isinstance(formula, TreeSum):
            filled = f"; beside the trees it {MEDIAN}" * fills_gaps(formula)
            notes.append(f"NaN goes where the trees of the ranker send it{filled}")
            if self.sums == "float64":
                arithmetic = "float64 trees and sums, a float32 score, run by onnxruntime"
                notes.append("trees and their sums are float64, which not every runtime takes: sums='float32' does")
        elif isinstance(formula, MapSum) and not isinstance(formula, NetworkSum):
            arithmetic = "float32 features, float64 sums, a float32 score, run by onnxruntime"
            notes[0] = "ONNX holds features in float32, and what is computed of them in float64"
            filled = f"NaN {MEDIAN}" if fills_gaps(formula) else ""
            notes.append(filled or "NaN is not looked for: send complete features")
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

    def _add_nodes(self, graph: Graph, formula: Formula | MapSum) -> None:
        """Add the nodes that make the score of X."""
        if isinstance(formula, MapSum):
            formula.onnx(graph)
        elif isinstance(formula, WeightedSum):
            _add_linear(graph, formula, "score")
        elif isinstance(formula, StepSum):
            _add_trees(graph, single_trees(formula, "ONNX"), "X", "score")
        else:
            trees, exact = _trees(formula, single_precision=self.sums == "float32"), self.sums == "float64"
            given = graph.node("Cast", "X", result="exact", to=graph.double) if exact else "X"
            alone = formula.linear is None and formula.curves is None
            _add_trees(graph, trees, given, "score" if alone else "trees", exact)
            if formula.curves is not None:
                both = graph.node("Add", graph.node("Cast", "trees", to=graph.double), formula.curves.onnx_sum(graph))
                graph.finish(both, formula.constant + formula.curves.constant)
            if formula.linear is not None:
                _add_linear(graph, formula.linear, "linear")
                graph.node("Add", "trees", "linear", result="score")


class _ColumnGraph(Graph):
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
        self.node("Cast", exact, result="X", to=proto.FLOAT)

    def _feature(self, v: str, steps: tuple[ColumnStep, ...]) -> str:
        """One feature, shape (N, 1)."""
        operations = {"subtract": "Sub", "divide": "Div", "multiply": "Mul", "add": "Add"}
        for step in steps:
            if step.kind == "level":
                # levels without a number of their own need a key all the same: the encoder wants one
                levels = step.levels or (("", step.value),)
                keys, values = zip(*levels, strict=True)
                options: dict[str, Any] = {"keys_strings": keys, "values_floats": values, "default_float": step.value}
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


def _add_linear(graph: Graph, formula: WeightedSum, result: str) -> None:
    """(X - center) / scale where the features are scaled, and then Gemm."""

    def constant(name: str, values: Vector, *shape: int) -> str:
        names = formula.names if len(values) == len(formula.names) else ["(constant)"]
        rounded = single.as_single(values, names, name, "ONNX", added=name in ("constant", "center"))
        return graph.constant(rounded.reshape(shape), "FLOAT", name)

    width, features = len(formula.names), "X"
    weights = constant("weight", formula.weight, width, 1), constant("constant", np.array([formula.constant]), 1)
    if formula.center is not None and formula.scale is not None:
        features = graph.node("Sub", features, constant("center", formula.center, width), result="centred")
        features = graph.node("Div", features, constant("scale", formula.scale, width), result="scaled")
    graph.node("Gemm", features, *weights, result=result)


def _trees(formula: TreeSum, single_precision: bool) -> list[Node]:
    """The trees and the constant, with leaves in float32 where that is asked for; features are float32 in any case."""
    refuse_rules(formula, "ONNX", "sql, python or c")
    if single_precision:
        found = single.round_trees(formula, "ONNX")
    else:
        found = nest(formula.trees, single.round_thresholds(formula.trees.threshold))
    if formula.curves is not None:  # in float64, with the constant
        return found or [Leaf(0.0)]
    if formula.constant or not found:
        single.as_single(np.array([formula.constant]), ["(constant)"], "constant", "ONNX", added=True)
        found.append(Leaf(formula.constant))
    return found


def _add_trees(graph: Graph, trees: list[Node], given: str, result: str, exact: bool = False) -> None:
    """Add the trees as one node, with numbers in float64 (tensors) or plain float32."""
    nodes: list[list[Any]] = []
    leaves: list[list[Any]] = []
    for number, tree in enumerate(trees):
        _add_tree(nodes, leaves, tree, number, 0)
    columns: dict[str, Any] = dict(zip(_NODE_COLUMNS, map(list, zip(*nodes, strict=True)), strict=True))
    columns |= zip(_TARGET_COLUMNS, map(list, zip(*leaves, strict=True)), strict=True)
    if exact:
        for name in ("nodes_values", "target_weights"):
            columns[f"{name}_as_tensor"] = graph.tensor(columns.pop(name), "DOUBLE", name)
    options = {"n_targets": 1, "aggregate_function": "SUM", "post_transform": "NONE"}
    graph.node("TreeEnsembleRegressor", given, result=result, domain="ai.onnx.ml", **options, **columns)


def _add_tree(nodes: list[list[Any]], leaves: list[list[Any]], node: Node, tree: int, number: int) -> int:
    """Add the rows of a node and of what is below it; the next free number is returned."""
    if isinstance(node, Leaf):
        nodes.append([tree, number, 0, "LEAF", 0.0, 0, 0, 0])
        leaves.append([tree, number, 0, node.value])
        return number + 1
    row: list[Any] = [tree, number, node.feature, "BRANCH_LEQ", node.threshold, number + 1, 0, int(node.nan_left)]
    nodes.append(row)
    # the right subtree begins where the left one ends
    row[6] = _add_tree(nodes, leaves, node.left, tree, number + 1)
    return _add_tree(nodes, leaves, node.right, tree, row[6])
