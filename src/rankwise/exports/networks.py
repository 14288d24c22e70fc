"""A network for ONNX, and as a function in plain Python or C."""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from rankwise.exports import single
from rankwise.exports.map_sums import (
    CTables,
    Graph,
    MapSum,
    c_tables,
    number_after,
    python_standardized,
    python_table,
)
from rankwise.exports.raw_thresholds import center_and_scale
from rankwise.measures._base import Vector
from rankwise.queries.scaling import Scaler
from rankwise.rankers.neural.network import Network


@dataclass(frozen=True)
class NetworkSum(MapSum):
    """s(x) = constant + the score of a network, on raw features.

    Attributes
    ----------
    network : Network
        The network, with a standardization of raw features.
    """

    network: Network

    about = "a network"
    mark = "theta"

    def scale_by(self, scaler: Scaler) -> "NetworkSum":
        """The network over features that the scaler makes."""
        # a feature that did not vary has no weight in the network
        _, center, scale = center_and_scale(scaler)
        own = self.network
        # ((x - c) / s - C) / S = (x - (c + s C)) / (s S)
        return replace(self, network=replace(own, center=center + scale * own.center, scale=scale * own.scale))

    def onnx(self, graph: Graph) -> None:
        """Sub, Div, then Gemm and Relu for every layer, and two products for the score, in float32."""
        network = self.network
        layers, v, u = network.views()

        def constant(name: str, values: Vector) -> str:
            # weights are float32 already; only the standardization of features has to be rounded
            names = self.names if name in ("center", "scale") else ["(network)"] * values.size
            rounded = single.as_single(values.ravel(), names, name, "ONNX", added=name != "scale")
            return graph.constant(rounded.reshape(values.shape), "FLOAT", name)

        below = graph.node("Sub", "X", constant("center", network.center), result="centred")
        below = graph.node("Div", below, constant("scale", network.scale), result="standardised")
        for number, layer in enumerate(layers, 1):
            given = [below, constant(f"weight{number}", layer.weight), constant(f"bias{number}", layer.bias)]
            above = graph.node("Gemm", *given, result=f"sum{number}", transB=1)
            above = graph.node("Relu", above, result=f"relu{number}")
            below = graph.node("Add", above, below, result=f"layer{number}") if layer.residual else above
        last = [constant("linear", u[:, None]), constant("constant", np.array([self.constant]))]
        curved = graph.node("MatMul", below, constant("last", v[:, None]), result="curved")
        straight = graph.node("Gemm", "standardised", *last, result="straight")
        graph.node("Add", curved, straight, result="score")

    def python(self, value: str) -> tuple[str, list[str]]:
        """(tables, what adds to ``s``) of the module in Python."""
        network = self.network
        layers, v, u = network.views()
        tables, standardize = python_standardized(network.center, network.scale, value)
        tables += python_table("_LAST", v) + python_table("_LINEAR", u)
        listed = ""
        for layer in layers:
            units = zip(layer.bias.tolist(), layer.weight.tolist(), strict=True)
            rows = "".join(f"        ({b!r}, {tuple(w)!r}),\n" for b, w in units)
            about = "whether the layer below is added; bias and weights of every unit"
            listed += f"    ({layer.residual}, (  # {about}\n{rows}    )),\n"
        body = [
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
        ]
        return f"{tables}_LAYERS = (\n{listed})\n", body

    def c(self, called: str, value: str) -> tuple[str, list[str]]:
        """(tables, what adds to ``s``) of the function in C.

        The weights are one table: of every layer the biases, and then the weights unit after unit; in the end those of
        the last layer and of the standardized features.
        """
        network = self.network
        widths, widest = network.widths, max(network.widths)
        layers, v, u = network.views()
        flat = np.concatenate([*(part.ravel() for layer in layers for part in (layer.bias, layer.weight)), v, u])
        tables = c_tables(called, layers=widths, center=network.center, scale=network.scale, theta=flat)
        body = [
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
        ]
        return tables, body

    @classmethod
    def c_scores(cls, tables: CTables, text: str, X: Vector) -> Vector:
        """The scores of the function in C: the same sums in the same order."""
        widths, theta = tables["layers"].tolist(), iter(tables["theta"])
        z = ((X - tables["center"]) / tables["scale"]).T
        h = z
        for number, (below, above) in enumerate(pairwise(widths)):
            r = np.empty((above, len(X)))
            r[:] = np.array([next(theta) for _ in range(above)])[:, None]  # the biases
            for unit in r:
                for value in h:
                    unit += next(theta) * value
            r = np.where(r > 0.0, r, 0.0)
            h = r + h if number and below == above else r
        total = np.full(len(X), number_after("double s = ", text))
        for value in (*h, *z):
            total += next(theta) * value
        return total
