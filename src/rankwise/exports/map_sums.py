"""What linear weights on a map compute, and how every such formula is written: for ONNX, in Python and in C.

A map has no file in an engine, so its formula is written with the weights folded in: :class:`FourierSum`,
:class:`KernelSum`, :class:`ProductSum`, :class:`~.curves.CurveSum` and :class:`~.networks.NetworkSum`. ONNX computes
them in float64 from features of float32, because weights on landmarks of a kernel are large and cancel; a network is
float32 throughout.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rankwise.measures._base import Vector
from rankwise.queries import checks

_NUMBER = r"[-+.e0-9]+"
CTables = dict[str, NDArray[Any]]
# The call of the kernel in C: its name, gamma, coef0 and degree.
_CALL = re.compile(rf"(exp|pow|tanh)\(-?({_NUMBER}) \* t(?: \+ ({_NUMBER}))?(?:, ({_NUMBER}))?\)")


def rows_of(values: Sequence[Any] | NDArray[Any]) -> str:
    """Values as the lines of a table."""
    listed = [value.item() if isinstance(value, np.generic) else value for value in values]
    return "".join(f"    {value!r},\n" for value in listed)


@dataclass(frozen=True)
class MapSum(ABC):
    """A score that is no sum over single features: linear weights on a map.

    Attributes
    ----------
    names : tuple of str
        The names of the features.
    constant : float
        The constant.
    missing : {"error", "zero", "min"}
        How the ranker treats missing values.
    """

    names: tuple[str, ...]
    constant: float
    missing: checks.Missing

    # What it is, for messages; the names of functions of ``math`` that it uses; the table of C that no other one has.
    about: ClassVar[str]
    functions: ClassVar[tuple[str, ...]] = ()
    mark: ClassVar[str]

    @abstractmethod
    def onnx(self, graph: "Graph") -> None:
        """Add nodes, of which the last one gives ``score``, shape (n_documents, 1)."""

    @abstractmethod
    def python(self, value: str) -> tuple[str, list[str]]:
        """(tables, what adds to ``s``) of the module in Python; ``value`` is what a feature ``v`` counts."""

    @abstractmethod
    def c(self, called: str, value: str) -> tuple[str, list[str]]:
        """(tables, what adds to ``s``) of the function in C; ``value`` is what a feature ``v`` counts."""

    @classmethod
    @abstractmethod
    def c_scores(cls, tables: CTables, text: str, X: Vector) -> Vector:
        """The scores of the function in C, from its text and the tables in it."""


class Graph:
    """Nodes and constants of ONNX.

    Parameters
    ----------
    helper : module
        ``onnx.helper``.
    proto : type
        ``onnx.TensorProto``.
    prefix : str, default=""
        What names begin with, where a graph is made of several parts.

    Attributes
    ----------
    nodes : list
        The nodes so far.
    constants : list
        The constants so far.
    double, whole : int
        The types of float64 and int64.
    """

    def __init__(self, helper: Any, proto: Any, prefix: str = "") -> None:
        self._helper, self._proto, self._prefix = helper, proto, prefix
        self.double: int = proto.DOUBLE
        self.whole: int = proto.INT64
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def node(self, kind: str, *given: str, result: str = "", **options: Any) -> str:
        """Add a node, and return the name of its result."""
        name = result or f"{self._prefix}{kind.lower()}{len(self.nodes)}"
        self.nodes.append(self._helper.make_node(kind, list(given), [name], **options))
        return name

    def constant(self, values: Any, kind: str = "DOUBLE", name: str = "") -> str:
        """Add a constant, and return its name."""
        name = name or f"{self._prefix}constant{len(self.constants)}"
        self.constants.append(self.tensor(values, kind, name))
        return name

    def tensor(self, values: Any, kind: str, name: str) -> Any:
        """A tensor, which is not part of the graph yet."""
        array = np.asarray(values)
        return self._helper.make_tensor(name, getattr(self._proto, kind), array.shape, array.ravel().tolist())

    def features(self) -> str:
        """The features in float64."""
        return self.node("Cast", "X", to=self.double)

    def standardize(self, center: Vector, scale: Vector) -> str:
        """(X - center) / scale."""
        return self.node("Div", self.node("Sub", self.features(), self.constant(center)), self.constant(scale))

    def add(self, terms: str) -> str:
        """The sum over the terms of every document."""
        return self.node("ReduceSum", terms, self.constant([1], "INT64"), keepdims=1)

    def finish(self, total: str, constant: float) -> None:
        """Add the constant, and round to the score."""
        last = self.node("Add", total, self.constant([constant]))
        self.node("Cast", last, result="score", to=self._proto.FLOAT)


def read_c_tables(text: str, called: str) -> CTables:
    """The tables of a function in C by name, read back from its text."""
    found = re.findall(rf"static const ([a-z ]+) {called}_(\w+)\[\] = {{\n(.*?)}};", text, re.DOTALL)
    return {
        name: np.array([(float if kind == "double" else int)(word.strip(" UL")) for word in body.split(",\n")[:-1]])
        for kind, name, body in found
    }


def number_after(words: str, text: str) -> float:
    """The first number of a text after some words, up to a semicolon."""
    return float(text.split(words)[1].split(";")[0])


def c_tables(called: str, **columns: Any) -> str:
    """Tables of C: whole numbers are int, others double; an empty table holds a 0, since C has no empty arrays."""
    text = ""
    for name, values in columns.items():
        column = np.ravel(values)
        kind = "int" if column.dtype.kind == "i" else "double"
        text += f"static const {kind} {called}_{name}[] = {{\n{rows_of(column if len(column) else [0])}}};\n"
    return text


def python_table(name: str, values: Sequence[Any] | NDArray[Any], about: str = "") -> str:
    """A table of Python, with a comment about its rows."""
    return f"{name} = ({about and f'  # {about}'}\n{rows_of(values)})\n"


def python_standardized(center: Vector, scale: Vector, value: str) -> tuple[str, str]:
    """The tables of a standardization, and the statement that makes ``z`` of the features."""
    tables = python_table("_CENTER", center) + python_table("_SCALE", scale)
    return tables, f"z = [(({value}) - c) / d for v, c, d in zip(x, _CENTER, _SCALE)]"


def c_standardized(called: str, width: int, value: str) -> list[str]:
    """The loop that standardizes features into ``z``."""
    return [
        f"for (i = 0; i < {width}; i++) {{",
        "    double v = x[i];",
        f"    z[i] = ({value} - {called}_center[i]) / {called}_scale[i];",
        "}",
    ]


# ------------------------------------------------------------------------------------------- cosines and sines


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
    def of(
        cls, frequencies: Vector, cosine: Vector, sine: Vector, center: Vector, scale: Vector, **rest: Any
    ) -> "FourierSum":
        """The formula on raw features of waves on (x - center) / scale."""
        raw = frequencies / scale
        # cos(t - p) = cos t cos p + sin t sin p and sin(t - p) = sin t cos p - cos t sin p
        phase = raw @ center
        turned = cosine * np.cos(phase) - sine * np.sin(phase)
        return cls(frequencies=raw, cosine=turned, sine=cosine * np.sin(phase) + sine * np.cos(phase), **rest)

    def onnx(self, graph: Graph) -> None:
        """Cosines and sines of the angles X W', and then their products with the weights."""
        angle = graph.node("MatMul", graph.features(), graph.constant(self.frequencies.T))
        # cos t = sin(t + pi / 2): ONNX Runtime has long had Sin in double precision, and Cos only lately
        turned = graph.node("Add", angle, graph.constant(np.pi / 2))
        waves = graph.node("Concat", graph.node("Sin", turned), graph.node("Sin", angle), axis=1)
        weights = np.concatenate([self.cosine, self.sine])[:, None]
        graph.finish(graph.node("MatMul", waves, graph.constant(weights)), self.constant)

    def python(self, value: str) -> tuple[str, list[str]]:
        """(tables, what adds to ``s``) of the module in Python."""
        frequencies = map(tuple, self.frequencies.tolist())
        waves = list(zip(self.cosine.tolist(), self.sine.tolist(), frequencies, strict=True))
        body = [
            "for a, b, frequencies in _WAVES:",
            "    t = 0.0",
            "    for w, v in zip(frequencies, x):",
            f"        t += w * ({value})",
            "    s += a * cos(t) + b * sin(t)",
        ]
        return python_table("_WAVES", waves, "weight of the cosine, weight of the sine, frequencies"), body

    def c(self, called: str, value: str) -> tuple[str, list[str]]:
        """(tables, what adds to ``s``) of the function in C."""
        tables = c_tables(called, frequency=self.frequencies, cosine=self.cosine, sine=self.sine)
        body = [
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
        ]
        return tables, body

    @classmethod
    def c_scores(cls, tables: CTables, text: str, X: Vector) -> Vector:
        """The scores of the function in C."""
        cosine, sine = tables["cosine"], tables["sine"]
        frequencies = tables["frequency"].reshape(len(cosine), -1)
        total = np.zeros(len(X))
        for a, b, w in zip(cosine, sine, frequencies, strict=True):
            angle = np.zeros(len(X))
            for place, one in enumerate(w):
                angle += one * X[:, place]
            total += a * np.cos(angle) + b * np.sin(angle)
        return total + number_after("double s = ", text)


# ------------------------------------------------------------------------------------------- kernels


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

    def onnx(self, graph: Graph) -> None:
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
        graph.finish(graph.node("MatMul", kernel, graph.constant(self.weight[:, None])), self.constant)

    def python(self, value: str) -> tuple[str, list[str]]:
        """(tables, what adds to ``s``) of the module in Python."""
        tables, standardize = python_standardized(self.center, self.scale, value)
        rows = list(zip(self.weight.tolist(), map(tuple, self.landmarks.tolist()), strict=True))
        step, last = {
            "rbf": ("(v - p) * (v - p)", f"exp(-{self.gamma!r} * t)"),
            "poly": ("v * p", f"({self.gamma!r} * t + {self.coef0!r}) ** {self.degree}"),
            "sigmoid": ("v * p", f"tanh({self.gamma!r} * t + {self.coef0!r})"),
        }[self.kernel]
        body = [
            standardize,
            "for w, landmark in _LANDMARKS:",
            "    t = 0.0",
            "    for v, p in zip(z, landmark):",
            f"        t += {step}",
            f"    s += w * {last}",
        ]
        return tables + python_table("_LANDMARKS", rows, "weight, landmark"), body

    def c(self, called: str, value: str) -> tuple[str, list[str]]:
        """(tables, what adds to ``s``) of the function in C."""
        tables = c_tables(called, center=self.center, scale=self.scale, landmark=self.landmarks, weight=self.weight)
        step, last = {
            "rbf": ("(z[i] - *p) * (z[i] - *p)", f"exp(-{self.gamma!r} * t)"),
            "poly": ("z[i] * *p", f"pow({self.gamma!r} * t + {self.coef0!r}, {float(self.degree)!r})"),
            "sigmoid": ("z[i] * *p", f"tanh({self.gamma!r} * t + {self.coef0!r})"),
        }[self.kernel]
        width = len(self.names)
        body = [
            f"double z[{width}];",
            f"const double *p = {called}_landmark;",
            "int i, j;",
            *c_standardized(called, width, value),
            f"for (j = 0; j < {len(self.weight)}; j++) {{",
            "    double t = 0.0;",
            f"    for (i = 0; i < {width}; i++, p++) t += {step};",
            f"    s += {called}_weight[j] * {last};",
            "}",
        ]
        return tables, body

    @classmethod
    def c_scores(cls, tables: CTables, text: str, X: Vector) -> Vector:
        """The scores of the function in C."""
        weight = tables["weight"]
        called, *numbers = _CALL.findall(text)[0]
        gamma, coef0, degree = (float(number or 0) for number in numbers)
        landmarks = tables["landmark"].reshape(len(weight), -1)
        z, total = (X - tables["center"]) / tables["scale"], np.zeros(len(X))
        for one, landmark in zip(weight, landmarks, strict=True):
            t = np.zeros(len(X))
            for place, p in enumerate(landmark):
                t += np.square(z[:, place] - p) if called == "exp" else z[:, place] * p
            inside = gamma * t + coef0
            total += one * {"exp": np.exp(-inside), "pow": inside ** int(degree), "tanh": np.tanh(inside)}[called]
        return total + number_after("double s = ", text)


# ------------------------------------------------------------------------------------------- products of features


@dataclass(frozen=True)
class ProductSum(MapSum):
    """s(x) = constant + sum_t weight_t product of z_j for the features j of t, with z = (x - center) / scale.

    Attributes
    ----------
    weight : ndarray
        The weights.
    places : ndarray of int64, shape (n_products, degree)
        The features of every product; the number of features stands for 1.
    center : ndarray
        What is subtracted from each feature.
    scale : ndarray
        What each feature is divided by.
    """

    weight: Vector
    places: NDArray[np.int64]
    center: Vector
    scale: Vector

    about = "a sum of products of features"
    mark = "place"

    def onnx(self, graph: Graph) -> None:
        """The features of every product by Gather, their products, and then those with the weights."""
        z = graph.standardize(self.center, self.scale)
        pads = graph.constant([0, 0, 0, 1], "INT64")
        z = graph.node("Pad", z, pads, graph.constant(1.0))
        factors = [graph.node("Gather", z, graph.constant(column, "INT64"), axis=1) for column in self.places.T]
        total = factors[0]
        for factor in factors[1:]:
            total = graph.node("Mul", total, factor)
        graph.finish(graph.node("MatMul", total, graph.constant(self.weight[:, None])), self.constant)

    def python(self, value: str) -> tuple[str, list[str]]:
        """(tables, what adds to ``s``) of the module in Python."""
        width = len(self.names)
        tables, standardize = python_standardized(self.center, self.scale, value)
        places = [tuple(place for place in row if place < width) for row in self.places.tolist()]
        rows = list(zip(self.weight.tolist(), places, strict=True))
        body = [
            standardize,
            "for t, places in _PRODUCTS:",
            "    for place in places:",
            "        t *= z[place]",
            "    s += t",
        ]
        return tables + python_table("_PRODUCTS", rows, "weight, features"), body

    def c(self, called: str, value: str) -> tuple[str, list[str]]:
        """(tables, what adds to ``s``) of the function in C."""
        width, (count, degree) = len(self.names), self.places.shape
        tables = c_tables(called, center=self.center, scale=self.scale, weight=self.weight, place=self.places)
        body = [
            f"double z[{width + 1}];",
            f"const int *place = {called}_place;",
            "int i, j;",
            *c_standardized(called, width, value),
            f"z[{width}] = 1.0;",
            f"for (j = 0; j < {count}; j++) {{",
            f"    double t = {called}_weight[j];",
            f"    for (i = 0; i < {degree}; i++) t *= z[*place++];",
            "    s += t;",
            "}",
        ]
        return tables, body

    @classmethod
    def c_scores(cls, tables: CTables, text: str, X: Vector) -> Vector:
        """The scores of the function in C."""
        weight = tables["weight"]
        places = tables["place"].reshape(len(weight), -1)
        z = np.column_stack([(X - tables["center"]) / tables["scale"], np.ones(len(X))])
        total = np.zeros(len(X))
        for one, own in zip(weight, places, strict=True):
            t = np.full(len(X), one)
            for place in own:
                t *= z[:, place]
            total += t
        return total + number_after("double s = ", text)
