"""Weighted cosines and sines for ONNX, and as a function in plain Python."""

from typing import Any

import numpy as np

from rankwise.exports import single
from rankwise.exports.smooth_sums import FourierSum
from rankwise.measures._base import Vector


def onnx_waves(formula: FourierSum, helper: Any, kind: int) -> tuple[list[Any], list[Any]]:
    """Nodes and constants: cos and sin of the angles X W', and then Gemm."""
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


def python_waves(formula: FourierSum, value: str) -> tuple[str, list[str]]:
    """(tables, body) of the module in Python; ``value`` is what a feature ``v`` counts."""
    waves = zip(formula.cosine.tolist(), formula.sine.tolist(), formula.frequencies.tolist(), strict=True)
    rows = "".join(f"    ({a!r}, {b!r}, {tuple(w)!r}),\n" for a, b, w in waves)
    body = [
        f"s = {formula.constant!r}",
        "for a, b, frequencies in _WAVES:",
        "    t = 0.0",
        "    for w, v in zip(frequencies, x):",
        f"        t += w * ({value})",
        "    s += a * cos(t) + b * sin(t)",
        "return s",
    ]
    return f"_WAVES = (  # weight of the cosine, weight of the sine, frequencies\n{rows})\n", body
