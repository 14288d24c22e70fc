"""ONNX: ``Gemm`` for a weighted sum, ``TreeEnsembleRegressor`` for a sum of steps; checked by onnxruntime."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwise._errors import MissingExtraError
from rankwise._extras import require
from rankwise.data.checks import Floats
from rankwise.exports import single
from rankwise.exports._base import Content, Target, Written
from rankwise.exports.formula import Formula, FourierSum, StepSum, WeightedSum
from rankwise.exports.single import Leaf, Node, single_trees
from rankwise.measures._base import Vector

_NODE_COLUMNS = tuple(
    f"nodes_{name}" for name in ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids")
)
_TARGET_COLUMNS = tuple(f"target_{name}" for name in ("treeids", "nodeids", "ids", "weights"))
_OPSET, _ML_OPSET, _IR = 13, 3, 8  # old enough for every runtime in use


@dataclass(frozen=True, kw_only=True)
class Onnx(Target):
    """``model.onnx``: input ``X`` float[N, features], output ``score`` float[N, 1]."""

    name = "onnx"
    title = "ONNX"
    arithmetic = "float32, run by onnxruntime"
    takes = (WeightedSum, StepSum, FourierSum)

    def write(self, formula: Formula | FourierSum, called: str) -> Written:
        """Write the model, and check it with the package onnx."""
        helper, proto = require("onnx.helper"), require("onnx").TensorProto
        width = len(formula.names)
        if isinstance(formula, StepSum):
            nodes, constants = [_tree_node(formula, helper)], []
        else:
            made = _wave_nodes if isinstance(formula, FourierSum) else _linear_nodes
            nodes, constants = made(formula, helper, proto.FLOAT)  # type: ignore[operator]
        graph = helper.make_graph(
            nodes,
            called,
            [helper.make_tensor_value_info("X", proto.FLOAT, ["N", width])],
            [helper.make_tensor_value_info("score", proto.FLOAT, ["N", 1])],
            constants,
        )
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid("ai.onnx.ml", _ML_OPSET)]
        model = helper.make_model(graph, opset_imports=opsets[: 1 + isinstance(formula, StepSum)], ir_version=_IR)
        model.producer_name = "rankwise"
        helper.set_model_props(model, {f"feature.{place}": name for place, name in enumerate(formula.names)})
        require("onnx").checker.check_model(model)
        notes = (
            "ONNX holds weights and features in float32; runtimes may add them in any order",
            "NaN is not looked for: a weighted sum with it is NaN, and it is above no threshold",
        )
        return Written({"model.onnx": model.SerializeToString(deterministic=True)}, notes)

    def score(self, files: Mapping[str, Content], X: Floats, names: tuple[str, ...]) -> Vector:
        """Run onnxruntime, or ONNX's own reference where that is not installed."""
        rows, content = single.rounded_features(X), files["model.onnx"]
        try:
            options = require("onnxruntime").SessionOptions()
            # a check of one sample needs no pool of threads
            options.intra_op_num_threads = 1
            session = require("onnxruntime").InferenceSession(content, options, providers=["CPUExecutionProvider"])
        except MissingExtraError:
            session = require("onnx.reference").ReferenceEvaluator(content)
        return np.asarray(session.run(["score"], {"X": rows})[0], dtype=np.float64)[:, 0]


def _linear_nodes(formula: WeightedSum, helper: Any, kind: int) -> tuple[list[Any], list[Any]]:
    """(X - center) / scale where the features are scaled, and then Gemm."""

    def tensor(name: str, values: Vector, shape: list[int]) -> Any:
        names = formula.names if len(values) == len(formula.names) else ["(constant)"]
        added = name in ("constant", "center")
        return helper.make_tensor(name, kind, shape, single.as_single(values, names, name, "ONNX", added))

    width = len(formula.names)
    constants = [tensor("weight", formula.weight, [width, 1]), tensor("constant", np.array([formula.constant]), [1])]
    if formula.center is None or formula.scale is None:
        return [helper.make_node("Gemm", ["X", "weight", "constant"], ["score"])], constants
    nodes = [
        helper.make_node("Sub", ["X", "center"], ["centred"]),
        helper.make_node("Div", ["centred", "scale"], ["scaled"]),
        helper.make_node("Gemm", ["scaled", "weight", "constant"], ["score"]),
    ]
    return nodes, [*constants, tensor("center", formula.center, [width]), tensor("scale", formula.scale, [width])]


def _wave_nodes(formula: FourierSum, helper: Any, kind: int) -> tuple[list[Any], list[Any]]:
    """cos and sin of the angles X W', and then Gemm."""
    half, width = formula.frequencies.shape
    weights = np.concatenate([formula.cosine, formula.sine])

    def tensor(name: str, values: Vector, shape: list[int]) -> Any:
        names = [f"{name} {place}" for place in range(values.size)]
        return helper.make_tensor(name, kind, shape, single.as_single(values.ravel(), names, name, "ONNX", True))

    constants = [
        tensor("frequencies", formula.frequencies.T, [width, half]),
        tensor("weight", weights, [2 * half, 1]),
        tensor("constant", np.array([formula.constant]), [1]),
    ]
    nodes = [
        helper.make_node("MatMul", ["X", "frequencies"], ["angle"]),
        helper.make_node("Cos", ["angle"], ["cosine"]),
        helper.make_node("Sin", ["angle"], ["sine"]),
        helper.make_node("Concat", ["cosine", "sine"], ["waves"], axis=1),
        helper.make_node("Gemm", ["waves", "weight", "constant"], ["score"]),
    ]
    return nodes, constants


def _tree_node(formula: StepSum, helper: Any) -> Any:
    """The trees as one node."""
    table: dict[str, list[Any]] = {name: [] for name in (*_NODE_COLUMNS, *_TARGET_COLUMNS)}
    for number, tree in enumerate(single_trees(formula, "ONNX")):
        _add_tree(table, tree, number, 0)
    return helper.make_node(
        "TreeEnsembleRegressor",
        ["X"],
        ["score"],
        domain="ai.onnx.ml",
        n_targets=1,
        aggregate_function="SUM",
        post_transform="NONE",
        **table,
    )


def _add_tree(table: dict[str, list[Any]], node: Node, tree: int, number: int) -> int:
    """Add a node and what is below it; the next free number is returned."""
    place = len(table["nodes_treeids"])
    if isinstance(node, Leaf):
        _append(table, _NODE_COLUMNS, (tree, number, 0, "LEAF", 0.0, 0, 0))
        _append(table, _TARGET_COLUMNS, (tree, number, 0, node.value))
        return number + 1
    _append(table, _NODE_COLUMNS, (tree, number, node.feature, "BRANCH_LEQ", node.threshold, number + 1, 0))
    after = _add_tree(table, node.left, tree, number + 1)
    # the right subtree begins where the left one ended
    table["nodes_falsenodeids"][place] = after
    return _add_tree(table, node.right, tree, after)


def _append(table: dict[str, list[Any]], columns: tuple[str, ...], row: tuple[Any, ...]) -> None:
    """Add a row to some columns."""
    for name, value in zip(columns, row, strict=True):
        table[name].append(value)
