"""What linear weights on a map compute, and how every such formula is written: for ONNX, in Python and in C.

A map has no file in an engine, so its formula is written with the weights folded in: :class:`~.waves.FourierSum`,
:class:`~.kernel_sums.KernelSum`, :class:`~.products.ProductSum` and :class:`~.curves.CurveSum`. ONNX computes them in
float64 from features of float32: weights on landmarks of a kernel are large and cancel.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rankwise.measures._base import Vector
from rankwise.queries import checks


def rows_of(values: Sequence[float] | NDArray[Any]) -> str:
    """Values as the lines of a table."""
    listed = [value.item() if isinstance(value, np.generic) else value for value in values]
    return "".join(f"    {value!r},\n" for value in listed)


def table_of(text: str, name: str) -> list[float]:
    """A table of C, read back from its text."""
    body = text.split(f" {name}[] = {{")[1].split("}")[0]
    return [float(word.rstrip("UL")) for word in body.replace(",", " ").split()]


@dataclass(frozen=True)
class MapSum(ABC):
    """A score that is no sum over single features.

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
    def onnx(self, graph: "ExactGraph") -> str:
        """Add nodes; the name of the sums of every document, shape (n_documents, 1), without the constant."""

    @abstractmethod
    def python(self, value: str) -> tuple[str, list[str]]:
        """(tables, body) of the module in Python; ``value`` is what a feature ``v`` counts."""

    @abstractmethod
    def c(self, called: str, value: str) -> tuple[str, list[str]]:
        """(tables, body) of the function in C; ``value`` is what a feature ``v`` counts."""

    @classmethod
    @abstractmethod
    def c_scores(cls, tables: "CTables", X: Vector) -> Vector:
        """The scores of the function in C, from the tables of its text and without the constant."""


class ExactGraph:
    """Nodes of ONNX that compute in float64.

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
    double : int
        The type of float64.
    """

    def __init__(self, helper: Any, proto: Any, prefix: str = "") -> None:
        self._helper, self._proto, self._prefix = helper, proto, prefix
        self.double: int = proto.DOUBLE
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def node(self, kind: str, *given: str, **options: Any) -> str:
        """Add a node, and return the name of its result."""
        name = f"{self._prefix}{kind.lower()}{len(self.nodes)}"
        self.nodes.append(self._helper.make_node(kind, list(given), [name], **options))
        return name

    def constant(self, values: Any, kind: str = "DOUBLE") -> str:
        """Add a constant, and return its name."""
        name, array = f"{self._prefix}constant{len(self.constants)}", np.asarray(values)
        made = self._helper.make_tensor(name, getattr(self._proto, kind), array.shape, array.ravel().tolist())
        self.constants.append(made)
        return name

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
        self.nodes.append(self._helper.make_node("Cast", [last], ["score"], to=self._proto.FLOAT))


class CTables:
    """The tables of a function in C, read back from its text.

    Parameters
    ----------
    text : str
        The text of the file.
    called : str
        The name of the function.

    Attributes
    ----------
    text : str
        The text.
    """

    def __init__(self, text: str, called: str) -> None:
        self.text, self._called = text, called

    def __getitem__(self, name: str) -> Vector:
        return np.array(table_of(self.text, f"{self._called}_{name}"))

    def has(self, name: str) -> bool:
        """Whether there is such a table."""
        return f" {self._called}_{name}[]" in self.text

    def whole(self, name: str) -> Any:
        """A table of whole numbers."""
        return self[name].astype(np.int64)


def c_table(called: str, name: str, values: Any, kind: str = "double") -> str:
    """A table of C."""
    return f"static const {kind} {called}_{name}[] = {{\n{rows_of(np.ravel(values))}}};\n"


def python_table(name: str, values: Vector) -> str:
    """A table of Python."""
    return f"{name} = (\n{rows_of(values)})\n"


PYTHON_STANDARDIZED = "z = [(({value}) - c) / d for v, c, d in zip(x, _CENTER, _SCALE)]"


def c_standardized(called: str, width: int, value: str) -> list[str]:
    """The loop that standardizes features into ``z``."""
    return [
        f"for (i = 0; i < {width}; i++) {{",
        "    double v = x[i];",
        f"    z[i] = ({value} - {called}_center[i]) / {called}_scale[i];",
        "}",
    ]
