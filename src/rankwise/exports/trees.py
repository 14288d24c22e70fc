"""A sum of steps as one balanced tree a feature, for engines that know trees: x <= threshold goes left.

The leaf between two thresholds is worth the sum of all alphas below it. So a score is one addition a feature in use
instead of one a step, and is rounded as seldom.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.exports.formula import StepSum
from rankwise.exports.single import Single, as_single, below

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Leaf:
    """What a tree gives there."""

    value: float


@dataclass(frozen=True)
class TreeSplit:
    """x <= threshold: left, else right."""

    feature: int
    threshold: float
    left: "Node"
    right: "Node"


Node = Leaf | TreeSplit


def single_trees(formula: StepSum, engine: str) -> list[Node]:
    """Trees whose thresholds and leaves are float32 numbers, and a leaf alone for the constant, if that is not 0.

    Thresholds that float32 cannot tell apart become one: no float32 feature lies between them.
    """
    found: list[Node] = []
    for feature, cuts, worth in formula.trees():
        names = [formula.names[feature]] * len(worth)
        lower = below(cuts, names, engine)
        last = np.append(lower[1:] != lower[:-1], True)  # of those that are now equal
        leaves = as_single(worth[np.append(True, last)], names, "leaf", engine, added=True)
        found.append(balanced(feature, lower[last].astype(np.float64), leaves.astype(np.float64)))
    if formula.constant or not found:
        constant = as_single(np.array([formula.constant]), ["(constant)"], "constant", engine, added=True)
        found.append(Leaf(float(constant[0])))
    return found


def balanced(feature: int, cuts: Vector, leaves: Vector) -> Node:
    """The tree over one feature that asks as few questions as can be."""
    if not len(cuts):
        return Leaf(float(leaves[0]))
    middle = len(cuts) // 2
    left = balanced(feature, cuts[:middle], leaves[: middle + 1])
    right = balanced(feature, cuts[middle + 1 :], leaves[middle + 1 :])
    return TreeSplit(feature, float(cuts[middle]), left, right)


def thresholds_of(node: Node) -> list[float]:
    """All thresholds of a tree, ascending where it is over one feature."""
    if isinstance(node, Leaf):
        return []
    return [*thresholds_of(node.left), node.threshold, *thresholds_of(node.right)]


def score_trees(trees: Sequence[Node], X: Single, threshold: Callable[[float], Any] = np.float32) -> Single:
    """The sum of trees as float32 engines take it, tree after tree; ``threshold`` is what an engine makes of one."""
    total = np.zeros(len(X), dtype=np.float32)
    for tree in trees:
        own = np.empty(len(X), dtype=np.float32)
        _fill(tree, X, np.arange(len(X)), own, threshold)
        total += own
    return total


def _fill(node: Node, X: Single, rows: NDArray[np.int64], out: Single, threshold: Callable[[float], Any]) -> None:
    if isinstance(node, Leaf):
        out[rows] = np.float32(node.value)
        return
    left = X[rows, node.feature] <= threshold(node.threshold)
    _fill(node.left, X, rows[left], out, threshold)
    _fill(node.right, X, rows[~left], out, threshold)
