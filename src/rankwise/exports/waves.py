"""Weighted cosines and sines: linear weights on random Fourier features."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwise.exports.map_sums import CTables, ExactGraph, MapSum, c_table
from rankwise.measures._base import Vector


@dataclass(frozen=True)
class FourierSum(MapSum):
    """s(x) = constant + sum_j cosine_j cos(w_j . x) + sine_j sin(w_j . x), with the frequencies w.

    Attributes
    ----------
    frequencies : ndarray, shape (n_frequencies, n_features)
        The frequencies.
    cosine : ndarray
        The weights of the cosines.
    sine : ndarray
        The weights of the sines.
    """

    frequencies: Vector
    cosine: Vector
    sine: Vector

    about = "a sum of cosines and sines"
    functions = ("cos", "sin")
    mark = "frequency"

    @classmethod
    def of(cls, frequencies: Vector, cosine: Vector, sine: Vector, center: Vector, scale: Vector, **rest: Any) -> Any:
        """The formula on raw features of waves on (x - center) / scale."""
        raw = frequencies / scale
        # cos(t - p) = cos t cos p + sin t sin p and sin(t - p) = sin t cos p - cos t sin p
        phase = raw @ center
        turned = (
            cosine * np.cos(phase) - sine * np.sin(phase),
            cosine * np.sin(phase) + sine * np.cos(phase),
        )
        return cls(frequencies=raw, cosine=turned[0], sine=turned[1], **rest)

    def onnx(self, graph: ExactGraph) -> str:
        """Cosines and sines of the angles X W', and then their products with the weights."""
        angle = graph.node("MatMul", graph.features(), graph.constant(self.frequencies.T))
        # cos t = sin(t + pi / 2): ONNX Runtime has long had Sin in double precision, and Cos only lately
        turned = graph.node("Add", angle, graph.constant(np.pi / 2))
        waves = graph.node("Concat", graph.node("Sin", turned), graph.node("Sin", angle), axis=1)
        weights = np.concatenate([self.cosine, self.sine])[:, None]
        return graph.node("MatMul", waves, graph.constant(weights))

    def python(self, value: str) -> tuple[str, list[str]]:
        """(tables, body) of the module in Python."""
        waves = zip(self.cosine.tolist(), self.sine.tolist(), self.frequencies.tolist(), strict=True)
        rows = "".join(f"    ({a!r}, {b!r}, {tuple(w)!r}),\n" for a, b, w in waves)
        body = [
            f"s = {self.constant!r}",
            "for a, b, frequencies in _WAVES:",
            "    t = 0.0",
            "    for w, v in zip(frequencies, x):",
            f"        t += w * ({value})",
            "    s += a * cos(t) + b * sin(t)",
            "return s",
        ]
        return f"_WAVES = (  # weight of the cosine, weight of the sine, frequencies\n{rows})\n", body

    def c(self, called: str, value: str) -> tuple[str, list[str]]:
        """(tables, body) of the function in C."""
        tables = c_table(called, "frequency", self.frequencies)
        tables += c_table(called, "cosine", self.cosine) + c_table(called, "sine", self.sine)
        body = [
            f"double s = {self.constant!r};",
            f"const double *w = {called}_frequency;",
            "int i, j;",
            f"for (j = 0; j < {len(self.cosine)}; j++) {{",
            "    double t = 0.0;",
            f"    for (i = 0; i < {len(self.names)}; i++) {{",
            "        double v = x[i];",
            f"        t += *w++ * {value};",
            "    }",
            f"    s += {called}_cosine[j] * cos(t) + {called}_sine[j] * sin(t);",
            "}",
            "return s;",
        ]
        return tables, body

    @classmethod
    def c_scores(cls, tables: CTables, X: Vector) -> Vector:
        """The scores of the function in C."""
        cosine, sine = tables["cosine"], tables["sine"]
        frequencies = tables["frequency"].reshape(len(cosine), -1)
        total = np.zeros(len(X))
        for a, b, w in zip(cosine, sine, frequencies, strict=True):
            angle = np.zeros(len(X))
            for place, one in enumerate(w):
                angle += one * X[:, place]
            total += a * np.cos(angle) + b * np.sin(angle)
        return total
