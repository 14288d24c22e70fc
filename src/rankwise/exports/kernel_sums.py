"""Weighted kernels: linear weights on landmarks or on the exact map of a kernel, and stored documents."""

import re
from dataclasses import dataclass

import numpy as np

from rankwise.exports.map_sums import (
    PYTHON_STANDARDIZED,
    CTables,
    ExactGraph,
    MapSum,
    c_standardized,
    c_table,
    python_table,
)
from rankwise.measures._base import Vector

_NUMBER = r"[-+.e0-9]+"
# The call of the kernel in C: its name, gamma, coef0 and degree.
_CALL = re.compile(rf"(exp|pow|tanh)\(-?({_NUMBER}) \* t(?: \+ ({_NUMBER}))?(?:, ({_NUMBER}))?\)")


@dataclass(frozen=True)
class KernelSum(MapSum):
    """s(x) = constant + sum_i weight_i k(z, landmark_i), with z = (x - center) / scale.

    Attributes
    ----------
    landmarks : ndarray, shape (n_landmarks, n_features)
        The landmarks.
    weight : ndarray
        The weights.
    kernel : {"rbf", "poly", "sigmoid"}
        exp(-gamma norm(z - p)^2), (gamma z . p + coef0)^degree, or tanh(gamma z . p + coef0).
    gamma : float
        The width of the kernel.
    degree : int
        The degree of "poly".
    coef0 : float
        The constant of "poly" and "sigmoid".
    center : ndarray
        What is subtracted from each feature.
    scale : ndarray
        What each feature is divided by.
    """

    landmarks: Vector
    weight: Vector
    kernel: str
    gamma: float
    degree: int
    coef0: float
    center: Vector
    scale: Vector

    about = "a sum of kernels"
    functions = ("exp", "tanh")
    mark = "landmark"

    def onnx(self, graph: ExactGraph) -> str:
        """The matrix of the kernel between documents and landmarks, and then its product with the weights."""
        z = graph.standardize(self.center, self.scale)
        products = graph.node("MatMul", z, graph.constant(self.landmarks.T))
        if self.kernel == "rbf":
            squares = graph.add(graph.node("Mul", z, z))
            twice = graph.node("Mul", products, graph.constant([-2.0]))
            own = graph.constant(np.square(self.landmarks).sum(axis=1))
            distance = graph.node("Relu", graph.node("Add", graph.node("Add", twice, squares), own))
            kernel = graph.node("Exp", graph.node("Mul", distance, graph.constant([-self.gamma])))
        else:
            inside = graph.node("Mul", products, graph.constant([self.gamma]))
            inside = graph.node("Add", inside, graph.constant([self.coef0]))
            power = graph.constant([float(self.degree)])
            kernel = graph.node("Pow", inside, power) if self.kernel == "poly" else graph.node("Tanh", inside)
        return graph.node("MatMul", kernel, graph.constant(self.weight[:, None]))

    def python(self, value: str) -> tuple[str, list[str]]:
        """(tables, body) of the module in Python."""
        rows = "".join(
            f"    ({w!r}, {tuple(p)!r}),\n" for w, p in zip(self.weight.tolist(), self.landmarks.tolist(), strict=True)
        )
        step, last = {
            "rbf": ("(v - p) * (v - p)", f"exp(-{self.gamma!r} * t)"),
            "poly": ("v * p", f"({self.gamma!r} * t + {self.coef0!r}) ** {self.degree}"),
            "sigmoid": ("v * p", f"tanh({self.gamma!r} * t + {self.coef0!r})"),
        }[self.kernel]
        body = [
            f"s = {self.constant!r}",
            PYTHON_STANDARDIZED.format(value=value),
            "for w, landmark in _LANDMARKS:",
            "    t = 0.0",
            "    for v, p in zip(z, landmark):",
            f"        t += {step}",
            f"    s += w * {last}",
            "return s",
        ]
        tables = python_table("_CENTER", self.center) + python_table("_SCALE", self.scale)
        return f"{tables}_LANDMARKS = (  # weight, landmark\n{rows})\n", body

    def c(self, called: str, value: str) -> tuple[str, list[str]]:
        """(tables, body) of the function in C."""
        parts = {"center": self.center, "scale": self.scale, "landmark": self.landmarks, "weight": self.weight}
        tables = "".join(c_table(called, name, values) for name, values in parts.items())
        step, last = {
            "rbf": ("(z[i] - *p) * (z[i] - *p)", f"exp(-{self.gamma!r} * t)"),
            "poly": ("z[i] * *p", f"pow({self.gamma!r} * t + {self.coef0!r}, {float(self.degree)!r})"),
            "sigmoid": ("z[i] * *p", f"tanh({self.gamma!r} * t + {self.coef0!r})"),
        }[self.kernel]
        width = len(self.names)
        body = [
            f"double s = {self.constant!r};",
            f"double z[{width}];",
            f"const double *p = {called}_landmark;",
            "int i, j;",
            *c_standardized(called, width, value),
            f"for (j = 0; j < {len(self.weight)}; j++) {{",
            "    double t = 0.0;",
            f"    for (i = 0; i < {width}; i++, p++) t += {step};",
            f"    s += {called}_weight[j] * {last};",
            "}",
            "return s;",
        ]
        return tables, body

    @classmethod
    def c_scores(cls, tables: CTables, X: Vector) -> Vector:
        """The scores of the function in C."""
        weight = tables["weight"]
        called, *numbers = _CALL.findall(tables.text)[0]
        gamma, coef0, degree = (float(number or 0) for number in numbers)
        landmarks = tables["landmark"].reshape(len(weight), -1)
        z, total = (X - tables["center"]) / tables["scale"], np.zeros(len(X))
        for one, landmark in zip(weight, landmarks, strict=True):
            t = np.zeros(len(X))
            for place, p in enumerate(landmark):
                t += np.square(z[:, place] - p) if called == "exp" else z[:, place] * p
            inside = gamma * t + coef0
            total += one * {"exp": np.exp(-inside), "pow": inside ** int(degree), "tanh": np.tanh(inside)}[called]
        return total
