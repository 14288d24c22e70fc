"""The ways from the roots of trees to their leaves, which Shapley values of trees are computed from.

A leaf with value v whose way asks the features 1, ..., d adds to the Shapley value of feature i

    v (o_i - z_i) int_0^1 prod_{j != i} (z_j (1 - t) + o_j t) dt

where o_j is 1 if the row passes all nodes of feature j on the way, else 0, and z_j is the fraction of training
documents that do. The integral is the sum over sets of the other features, weighted by |S|! (d - 1 - |S|)! / d!. Its
integrand is a polynomial of degree d - 1, for which Gauss-Legendre quadrature is exact with d / 2 points.
"""

from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels.trees import Paths

Vector = NDArray[np.float64]
Wholes = NDArray[np.int64]
# A step: the node, 1 for the left side, and the fraction of the node's training documents that take that side.
Step = tuple[int, int, float]


def paths_of(
    start: Wholes, feature: Wholes, children: tuple[Wholes, Wholes], counts: tuple[Wholes, Wholes], value: Vector
) -> tuple[Paths, float]:
    """The way to every leaf.

    Parameters
    ----------
    start : ndarray of int64
        The first node of every tree.
    feature : ndarray of int64
        The feature of every node.
    children : tuple of two ndarray of int64
        The left and the right child of every node.
    counts : tuple of two ndarray of int64
        Training documents of nodes, none of them 0, and of leaves.
    value : ndarray of float64
        The values of the leaves.

    Returns
    -------
    paths : Paths
        The ways, in the order of the leaves.
    expected : float
        The mean of the sum of the trees over the training documents.
    """
    ways: list[list[Step]] = []
    expected = 0.0
    for tree in range(len(start) - 1):
        first, last = int(start[tree]), int(start[tree + 1])
        ways += _ways(first, last, tree, children, counts)
        leaves = slice(first + tree, last + tree + 1)
        share = counts[1][leaves] / counts[0][first] if last > first else np.ones(1)
        expected += float((share * value[leaves]).sum())
    steps = [step for way in ways for step in way]
    part_of_step: list[int] = []
    zero: list[float] = []
    features: list[int] = []
    part_start = [0]
    for way in ways:
        begin, parts = len(zero), dict[int, int]()
        for node, _, fraction in way:
            part = parts.setdefault(int(feature[node]), len(parts))
            if begin + part == len(zero):
                zero.append(1.0)
            zero[begin + part] *= fraction
            part_of_step.append(part)
        features += parts
        part_start.append(len(zero))
    paths = Paths(
        step_start=np.array([0, *accumulate(map(len, ways))], np.int64),
        step_node=np.array([node for node, _, _ in steps], np.int64),
        step_left=np.array([side for _, side, _ in steps], np.uint8),
        step_part=np.array(part_of_step, np.int64),
        part_start=np.array(part_start, np.int64),
        part_feature=np.array(features, np.int64),
        part_zero=np.array(zero, np.float64),
    )
    for array in paths:
        array.setflags(write=False)
    return paths, expected


def _ways(
    first: int, last: int, tree: int, children: tuple[Wholes, Wholes], counts: tuple[Wholes, Wholes]
) -> list[list[Step]]:
    """The steps to every leaf of one tree."""
    found: list[list[Step]] = [[] for _ in range(last - first + 1)]
    waiting: list[tuple[int, list[Step]]] = [(0, [])] if last > first else []
    while waiting:
        child, way = waiting.pop()
        if child < 0:
            found[-1 - child] = way
            continue
        node = first + child
        for side, below in ((1, int(children[0][node])), (0, int(children[1][node]))):
            count = counts[1][first + tree - 1 - below] if below < 0 else counts[0][first + below]
            waiting.append((below, [*way, (node, side, float(count / counts[0][node]))]))
    return found


def quadrature_rules(most: int) -> tuple[Wholes, Vector, Vector]:
    """Gauss-Legendre rules on [0, 1] that are exact for ways through 0 to ``most`` features.

    Parameters
    ----------
    most : int
        The largest number of features.

    Returns
    -------
    start : ndarray of int64, shape (most + 2,)
        The rule for d features is start[d] .. start[d+1]-1.
    points, weights : ndarray of float64
        The points and weights of all rules.
    """
    rules = [(np.empty(0), np.empty(0))]
    rules += [np.polynomial.legendre.leggauss((count + 1) // 2) for count in range(1, most + 1)]
    start = np.array([0, *accumulate(len(points) for points, _ in rules)], np.int64)
    points = np.concatenate([(1.0 + points) / 2.0 for points, _ in rules])
    return start, points, np.concatenate([weights / 2.0 for _, weights in rules])
