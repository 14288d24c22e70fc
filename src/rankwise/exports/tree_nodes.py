"""Trees as nested nodes, in which most engines read and write them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.errors import RankwiseError
from rankwise.measures._base import Vector
from rankwise.rankers.boosting.tree_ensemble import TreeEnsemble

Goes = Callable[[NDArray[Any], "TreeSplit"], NDArray[np.bool_]]

_DEEPEST = 200  # levels; what reads nested text, here and in engines, calls itself once for each


@dataclass(frozen=True)
class Leaf:
    """A leaf of a tree."""

    value: float


@dataclass(frozen=True)
class CurveLeaf(Leaf):
    """A leaf whose value is a polynomial in x - origin.

    Attributes
    ----------
    value : float
        The value at the origin.
    feature : int
        The feature x.
    origin : float
        The origin.
    higher : tuple of float
        The coefficients of x - origin and its powers, the highest power first.
    """

    feature: int
    origin: float
    higher: tuple[float, ...]

    def text(self, feature: str, number: Callable[[float], str]) -> str:
        """The polynomial by Horner's rule, in the syntax that SQL and Vespa share."""
        sign = "+" if self.origin < 0 else "-"
        away = f"({feature} {sign} {number(abs(self.origin))})"
        found = number(self.higher[0])
        for coef in self.higher[1:]:
            found = f"({found} * {away} + {number(coef)})"
        return f"{found} * {away}" + (f" + {number(self.value)}" if self.value else "")


@dataclass(frozen=True)
class TreeSplit:
    """x <= threshold goes left, everything else right.

    Attributes
    ----------
    feature : int
        The feature.
    threshold : float
        The threshold.
    left : Leaf or TreeSplit
        The tree for smaller or equal values.
    right : Leaf or TreeSplit
        The tree for larger values.
    nan_left : bool
        Whether NaN goes left.
    categories : tuple of int
        What goes left in place of smaller values, where it is not empty.
    """

    feature: int
    threshold: float
    left: "Node"
    right: "Node"
    nan_left: bool = False
    categories: tuple[int, ...] = ()


Node = Leaf | TreeSplit


def nest(trees: TreeEnsemble, threshold: Vector | None = None, value: Vector | None = None) -> list[Node]:
    """The trees of an ensemble as nodes.

    Parameters
    ----------
    trees : TreeEnsemble
        The ensemble.
    threshold : ndarray of shape (n_nodes,), default=None
        Other thresholds than its own.
    value : ndarray of shape (n_leaves,), default=None
        Other leaf values than its own.

    Returns
    -------
    list of Leaf or TreeSplit
        The trees, in their order.

    Raises
    ------
    RankwiseError
        If a tree is nested too deep.
    """
    cuts = (trees.threshold if threshold is None else threshold).tolist()
    leaves = [Leaf(float(one)) for one in (trees.value if value is None else value)]
    feature, left, right, nan_left = (
        array.tolist() for array in (trees.feature, trees.left, trees.right, trees.nan_left)
    )
    found: list[Node] = []
    for tree in range(trees.n_trees):
        first, last = int(trees.start[tree]), int(trees.start[tree + 1])
        made: dict[int, tuple[Node, int]] = {
            -1 - leaf: (leaves[first + tree + leaf], 0) for leaf in range(last - first + 1)
        }
        for node in range(last - 1, first - 1, -1):  # children before their parents
            (low, depth), (high, other) = made[left[node]], made[right[node]]
            split = TreeSplit(feature[node], cuts[node], low, high, nan_left[node], categories_of(trees, node))
            made[node - first] = split, 1 + max(depth, other)
        root, depth = made[0 if last > first else -1]
        if depth > _DEEPEST:
            raise RankwiseError(
                f"tree {tree} is {depth} levels deep, and nested text holds at most {_DEEPEST}: grow trees of "
                "limited depth, or export to Python or C, which hold tables"
            )
        found.append(root)
    return found


def categories_of(trees: TreeEnsemble, node: int) -> tuple[int, ...]:
    """The categories that go left at a node; none at a numerical one."""
    words = trees.words[trees.word_start[node] : trees.word_start[node + 1]]
    if not len(words):
        return ()
    return tuple(np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")).tolist())


class LeafPlaces(NamedTuple):
    """The leaves of every tree from left to right.

    Attributes
    ----------
    first : list of int
        For every node, the place in its tree of the first leaf below it.
    middle : list of int
        The place of the first leaf in its right part.
    last : list of int
        The place after its last leaf.
    value : ndarray
        The values of the leaves of every tree in the order of their places.
    """

    first: list[int]
    middle: list[int]
    last: list[int]
    value: Vector


def place_leaves(trees: TreeEnsemble) -> LeafPlaces:
    """Number the leaves of every tree from left to right."""
    start, left, right = trees.start.tolist(), trees.left.tolist(), trees.right.tolist()
    n_nodes = len(left)
    size, first, middle = [1] * n_nodes, [0] * n_nodes, [0] * n_nodes
    value = trees.value.copy()
    for tree in range(trees.n_trees):
        begin, end = start[tree], start[tree + 1]
        for node in range(end - 1, begin - 1, -1):  # children before their parents
            size[node] = sum(1 if child < 0 else size[begin + child] for child in (left[node], right[node]))
        for node in range(begin, end):
            child = left[node]
            middle[node] = first[node] + (1 if child < 0 else size[begin + child])
            for child, place in ((left[node], first[node]), (right[node], middle[node])):
                if child < 0:
                    value[begin + tree + place] = trees.value[begin + tree - 1 - child]
                else:
                    first[begin + child] = place
    return LeafPlaces(first, middle, [place + own for place, own in zip(first, size, strict=True)], value)


def balance(feature: int, cuts: Vector, leaves: Sequence[Leaf]) -> Node:
    """The tree over one feature with the smallest depth."""
    if not len(cuts):
        return leaves[0]
    middle = len(cuts) // 2
    left = balance(feature, cuts[:middle], leaves[: middle + 1])
    right = balance(feature, cuts[middle + 1 :], leaves[middle + 1 :])
    return TreeSplit(feature, float(cuts[middle]), left, right)


def splits_of(node: Node) -> Iterator[TreeSplit]:
    """All splits of a tree."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, TreeSplit):
            yield one
            waiting += [one.left, one.right]


def score_trees(trees: Sequence[Node], X: NDArray[Any], goes_left: Goes) -> NDArray[Any]:
    """Sum trees in the type of X, tree after tree.

    Parameters
    ----------
    trees : sequence of Leaf or TreeSplit
        The trees.
    X : ndarray of shape (n_documents, n_features)
        The features.
    goes_left : callable
        Takes values of a feature and the split, and returns which of them go left in the engine.

    Returns
    -------
    ndarray of shape (n_documents,)
        The sums.
    """
    total = np.zeros(len(X), dtype=X.dtype)
    own = np.empty_like(total)
    for tree in trees:
        waiting = [(tree, np.arange(len(X)))]
        while waiting:
            node, rows = waiting.pop()
            if isinstance(node, CurveLeaf):
                own[rows] = np.polyval((*node.higher, node.value), X[rows, node.feature] - node.origin)
                continue
            if isinstance(node, Leaf):
                own[rows] = node.value
                continue
            left = goes_left(X[rows, node.feature], node)
            waiting += [(node.left, rows[left]), (node.right, rows[~left])]
        total += own
    return total
