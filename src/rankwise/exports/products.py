"""Weighted products of features: linear weights on polynomial features, or on sketches of them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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

    def onnx(self, graph: ExactGraph) -> str:
        """The features of every product by Gather, their products, and then those with the weights."""
        z = graph.standardize(self.center, self.scale)
        pads = graph.constant([0, 0, 0, 1], "INT64")
        z = graph.node("Pad", z, pads, graph.constant(1.0))
        factors = [graph.node("Gather", z, graph.constant(column, "INT64"), axis=1) for column in self.places.T]
        total = factors[0]
        for factor in factors[1:]:
            total = graph.node("Mul", total, factor)
        return graph.node("MatMul", total, graph.constant(self.weight[:, None]))

    def python(self, value: str) -> tuple[str, list[str]]:
        """(tables, body) of the module in Python."""
        width = len(self.names)
        rows = "".join(
            f"    ({w!r}, {tuple(place for place in places if place < width)!r}),\n"
            for w, places in zip(self.weight.tolist(), self.places.tolist(), strict=True)
        )
        body = [
            f"s = {self.constant!r}",
            PYTHON_STANDARDIZED.format(value=value),
            "for t, places in _PRODUCTS:",
            "    for place in places:",
            "        t *= z[place]",
            "    s += t",
            "return s",
        ]
        tables = python_table("_CENTER", self.center) + python_table("_SCALE", self.scale)
        return f"{tables}_PRODUCTS = (  # weight, features\n{rows})\n", body

    def c(self, called: str, value: str) -> tuple[str, list[str]]:
        """(tables, body) of the function in C."""
        width, (count, degree) = len(self.names), self.places.shape
        parts = {"center": self.center, "scale": self.scale, "weight": self.weight}
        tables = "".join(c_table(called, name, values) for name, values in parts.items())
        tables += c_table(called, "place", self.places, "int")
        body = [
            f"double s = {self.constant!r};",
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
            "return s;",
        ]
        return tables, body

    @classmethod
    def c_scores(cls, tables: CTables, X: Vector) -> Vector:
        """The scores of the function in C."""
        weight = tables["weight"]
        places = tables.whole("place").reshape(len(weight), -1)
        z = np.column_stack([(X - tables["center"]) / tables["scale"], np.ones(len(X))])
        total = np.zeros(len(X))
        for one, own in zip(weight, places, strict=True):
            t = np.full(len(X), one)
            for place in own:
                t *= z[:, place]
            total += t
        return total
