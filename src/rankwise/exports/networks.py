"""A network for ONNX, and as a function in plain Python or C."""

from itertools import pairwise
from typing import Any

import numpy as np

from rankwise.exports import single
from rankwise.exports.formula import NetworkSum
from rankwise.exports.map_sums import CTables, c_table, python_standardized, python_table
from rankwise.measures._base import Vector


def onnx_nodes(formula: NetworkSum, helper: Any, kind: int) -> tuple[list[Any], list[Any]]:
    """Nodes and constants: Sub, Div, then Gemm and Relu for every layer, and two products for the score."""
    constants, network = [], formula.network
    layers, v, u = network.views()

    def constant(name: str, values: Vector) -> str:
        # weights are float32 already; only the standardization of features has to be rounded
        names = formula.names if name in ("center", "scale") else ["(network)"] * values.size
        added = name != "scale"
        flat = single.as_single(values.ravel(), names, name, "ONNX", added)
        constants.append(helper.make_tensor(name, kind, values.shape, flat))
        return name

    nodes = [
        helper.make_node("Sub", ["X", constant("center", network.center)], ["centred"]),
        helper.make_node("Div", ["centred", constant("scale", network.scale)], ["standardised"]),
    ]
    below = "standardised"
    for number, layer in enumerate(layers, 1):
        given = [below, constant(f"weight{number}", layer.weight), constant(f"bias{number}", layer.bias)]
        nodes.append(helper.make_node("Gemm", given, [f"sum{number}"], transB=1))
        nodes.append(helper.make_node("Relu", [f"sum{number}"], [f"relu{number}"]))
        if layer.residual:
            nodes.append(helper.make_node("Add", [f"relu{number}", below], [f"layer{number}"]))
        below = f"layer{number}" if layer.residual else f"relu{number}"
    last = [constant("linear", u[:, None]), constant("constant", np.array([formula.constant]))]
    nodes += [
        helper.make_node("MatMul", [below, constant("last", v[:, None])], ["curved"]),
        helper.make_node("Gemm", ["standardised", *last], ["straight"]),
        helper.make_node("Add", ["curved", "straight"], ["score"]),
    ]
    return nodes, constants


def python_network(formula: NetworkSum, value: str) -> tuple[str, list[str]]:
    """(tables, body) of the module in Python; ``value`` is what a feature ``v`` counts."""
    network = formula.network
    layers, v, u = network.views()
    tables, standardize = python_standardized(network.center, network.scale, value)
    tables += python_table("_LAST", v) + python_table("_LINEAR", u)
    listed = "".join(
        f"    ({layer.residual}, (  # whether the layer below is added; bias and weights of every unit\n"
        + "".join(
            f"        ({b!r}, {tuple(w)!r}),\n" for b, w in zip(layer.bias.tolist(), layer.weight.tolist(), strict=True)
        )
        + "    )),\n"
        for layer in layers
    )
    body = [
        f"s = {formula.constant!r}",
        standardize,
        "h = z",
        "for residual, units in _LAYERS:",
        "    r = []",
        "    for t, weights in units:",
        "        for w, a in zip(weights, h):",
        "            t += w * a",
        "        r.append(t if t > 0.0 else 0.0)",
        "    h = [a + b for a, b in zip(r, h)] if residual else r",
        "for w, a in zip(_LAST, h):",
        "    s += w * a",
        "for w, a in zip(_LINEAR, z):",
        "    s += w * a",
        "return s",
    ]
    return f"{tables}_LAYERS = (\n{listed})\n", body


def c_network(formula: NetworkSum, called: str, value: str) -> tuple[str, list[str]]:
    """(tables, body) of the function in C; ``value`` is what a feature ``v`` counts.

    The weights are one table: of every layer the biases, and then the weights unit after unit; in the end those of the
    last layer and of the standardized features.
    """
    network = formula.network
    widths, widest = network.widths, max(network.widths)
    layers, v, u = network.views()
    flat = np.concatenate([*(part.ravel() for layer in layers for part in (layer.bias, layer.weight)), v, u])
    parts = {"center": network.center, "scale": network.scale, "theta": flat}
    tables = c_table(called, "layers", widths, "int")
    tables += "".join(c_table(called, name, values) for name, values in parts.items())
    body = [
        f"double s = {formula.constant!r};",
        f"double z[{widths[0]}], h[{widest}], r[{widest}];",
        f"const double *w = {called}_theta;",
        "int i, j, l;",
        f"for (i = 0; i < {widths[0]}; i++) {{",
        "    double v = x[i];",
        f"    z[i] = ({value} - {called}_center[i]) / {called}_scale[i];",
        "    h[i] = z[i];",
        "}",
        f"for (l = 1; l < {len(widths)}; l++) {{",
        f"    int below = {called}_layers[l - 1], above = {called}_layers[l];",
        "    const double *bias = w;",
        "    w += above;",
        "    for (j = 0; j < above; j++) {",
        "        double t = bias[j];",
        "        for (i = 0; i < below; i++) t += *w++ * h[i];",
        "        r[j] = t > 0.0 ? t : 0.0;",
        "        if (l > 1 && below == above) r[j] += h[j];",
        "    }",
        "    for (j = 0; j < above; j++) h[j] = r[j];",
        "}",
        f"for (i = 0; i < {widths[-1]}; i++) s += *w++ * h[i];",
        f"for (i = 0; i < {widths[0]}; i++) s += *w++ * z[i];",
        "return s;",
    ]
    return tables, body


def score_c_network(tables: CTables, X: Vector) -> Vector:
    """The scores of the function in C, from the tables of its text: the same sums in the same order."""
    center, scale, theta = tables["center"], tables["scale"], tables["theta"]
    place, widths = 0, tables.whole("layers").tolist()

    def take(count: int) -> Vector:
        nonlocal place
        place += count
        return theta[place - count : place]

    z = ((X - center) / scale).T
    h = z
    for number, (below, above) in enumerate(pairwise(widths)):
        bias, r = take(above), np.empty((above, len(X)))
        for unit in range(above):
            t = _add_products(np.full(len(X), bias[unit]), take(below), h)
            r[unit] = np.where(t > 0.0, t, 0.0)
        h = r + h if number and below == above else r
    s = _add_products(np.full(len(X), tables.number("double s = ")), take(widths[-1]), h)
    return _add_products(s, take(widths[0]), z)


def _add_products(total: Vector, weights: Vector, values: Vector) -> Vector:
    """Add weights times values, one after the other."""
    for weight, value in zip(weights, values, strict=True):
        total += weight * value
    return total
