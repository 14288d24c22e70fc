"""Sums of decision trees over rows of X: scores, and what each feature contributes to them.

The nodes of all trees stand one after the other. Tree t owns the nodes start[t] .. start[t+1]-1 and the leaves
start[t] + t .. start[t+1] + t, one more than it has nodes. A child c >= 0 is node c of the same tree, c < 0 is its leaf
-1 - c; a node comes before its children.

A value goes left at a node if it is not above the threshold, or if its category is in the node's bit set. What happens
to NaN and to 0 is known before any row is seen: ``nan_left`` says where NaN goes, and a node of kind :data:`FLIPPED`
sends 0 there, too, which is not where its threshold would.

Shapley values are computed from the ways from the roots of trees to their leaves (:func:`paths_of`). A leaf with value
v whose way asks the features 1, ..., d adds to the Shapley value of feature i

    v (o_i - z_i) int_0^1 prod_{j != i} (z_j (1 - t) + o_j t) dt

where o_j is 1 if the row passes all nodes of feature j on the way, else 0, and z_j is the fraction of training
documents that do; at a node that no training document came to, each side has one half. The integral is the sum over
sets of the other features, weighted by |S|! (d - 1 - |S|)! / d!. Its integrand is a polynomial of degree d - 1, for
which Gauss-Legendre quadrature is exact with d / 2 points.
"""

from functools import cache
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from rankwise._kernels.bits import trailing_zeros
from rankwise._kernels.machine.jit import FLOATS, FLOATS_IN, INTS_IN, compiled, features_in, kernel
from rankwise.errors import RankwiseError

# The kinds of nodes.
NUMERICAL, FLIPPED, CATEGORICAL = 0, 1, 2
# Values up to this size are 0 in LightGBM (kZeroThreshold, a float32), when a row is read and when a node decides.
ZERO = float(np.float32(1e-35))
# Rows that are scored together. A column of them takes 512 bytes, those of a hundred features stay in the second cache.
ROWS = 64
# Trees with so many leaves are scored by bit sets of reachable leaves, larger ones from node to node.
LEAVES = 64
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


class Nodes(NamedTuple):
    """The nodes of all trees, prepared for the kernels; arrays are read-only.

    Attributes
    ----------
    start : ndarray of int64, shape (n_trees + 1,)
        The first node of every tree.
    used : ndarray of int64
        The features in use, ascending.
    slot : ndarray of int64, shape (n_nodes,)
        The place of a node's feature in ``used``.
    threshold : ndarray of float64, shape (n_nodes,)
        The thresholds.
    kind : ndarray of uint8, shape (n_nodes,)
        :data:`NUMERICAL`, :data:`FLIPPED` or :data:`CATEGORICAL`.
    nan_left : ndarray of uint8, shape (n_nodes,)
        1 where NaN goes left.
    left, right : ndarray of int64, shape (n_nodes,)
        The children.
    word_start : ndarray of int64, shape (n_nodes + 1,)
        The bit set of a node is ``words[word_start[node]:word_start[node + 1]]``.
    words : ndarray of uint32
        The bit sets.
    """

    start: NDArray[np.int64]
    used: NDArray[np.int64]
    slot: NDArray[np.int64]
    threshold: NDArray[np.float64]
    kind: NDArray[np.uint8]
    nan_left: NDArray[np.uint8]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    word_start: NDArray[np.int64]
    words: NDArray[np.uint32]


_BYTES_IN = types.Array(types.uint8, 1, "C", readonly=True)
_WORDS_IN = types.Array(types.uint32, 1, "C", readonly=True)
_MASKS_IN = types.Array(types.uint64, 1, "C", readonly=True)
_NODES = types.NamedTuple(
    (INTS_IN, INTS_IN, INTS_IN, FLOATS_IN, _BYTES_IN, _BYTES_IN, INTS_IN, INTS_IN, INTS_IN, _WORDS_IN), Nodes
)


# --------------------------------------------------------------------------------------------------------- structure


@kernel
def leaf_order(start, left, right, value, size, place, mask, by_place):
    """For every node: its number of leaves, the place of its first leaf from the left, and which leaves it rules out.

    ``by_place`` gets the values of the leaves of every tree from left to right.

    Bit p of ``mask`` is 0 if leaf p from the left of the tree is in the left part of the node: those are out of reach
    for a row that goes right. Masks are meant for trees of at most :data:`LEAVES` leaves.
    """
    for t in range(len(start) - 1):
        first, last = start[t], start[t + 1]
        for node in range(last - 1, first - 1, -1):  # children before their parents
            on_the_left = 1 if left[node] < 0 else size[first + left[node]]
            on_the_right = 1 if right[node] < 0 else size[first + right[node]]
            size[node] = on_the_left + on_the_right
        if last > first:
            place[first] = 0
        else:
            by_place[first + t] = value[first + t]
        for node in range(first, last):
            on_the_left = 1 if left[node] < 0 else size[first + left[node]]
            for child, at in ((left[node], place[node]), (right[node], place[node] + on_the_left)):
                if child >= 0:
                    place[first + child] = at
                else:
                    by_place[first + t + at] = value[first + t - 1 - child]
            mask[node] = _ALL
            for p in range(place[node], min(place[node] + on_the_left, LEAVES)):
                mask[node] ^= np.uint64(1) << np.uint64(p)


# ------------------------------------------------------------------------------------------------------------ scores


@kernel
def _in_bits(value, words, first, last):
    """Whether the whole part of a value is a category in these words; NaN and what no int32 holds is not."""
    if not -1.0 < value < 2147483648.0:
        return False
    category = np.int64(value)
    word = first + (category >> 5)
    return word < last and (words[word] >> np.uint32(category & 31)) & np.uint32(1) == np.uint32(1)


@kernel
def _goes_left(value, node, nodes):
    """Whether a value goes left at a node."""
    if nodes.kind[node] == CATEGORICAL:
        if value != value:
            return nodes.nan_left[node] == 1
        return _in_bits(value, nodes.words, nodes.word_start[node], nodes.word_start[node + 1])
    if value != value or (nodes.kind[node] == FLIPPED and value == 0.0):
        return nodes.nan_left[node] == 1
    return value <= nodes.threshold[node]


@kernel
def _take_columns(X, first, count, used, column, holes):
    """The features in use of a block of rows, column after column, and which columns hold NaN; tiny values become 0."""
    for n in range(len(used)):
        holes[n] = 0
        for r in range(count):
            value = np.float64(X[first + r, used[n]])
            if value != value:
                holes[n] = 1
            column[n, r] = 0.0 if -ZERO <= value <= ZERO else value
        column[n, count:] = 0.0


@kernel
def _narrow(column, limit, mask, reach):
    """Rows above the limit lose the leaves of the left part."""
    for r in range(ROWS):
        reach[r] &= _ALL if column[r] <= limit else mask


@kernel
def _narrow_with_nan(column, limit, nan_left, mask, reach):
    """The same where there may be NaN."""
    for r in range(ROWS):
        value = column[r]
        left = (value <= limit) | ((value != value) & nan_left)
        reach[r] &= _ALL if left else mask


@kernel
def _narrow_one_by_one(column, count, node, nodes, mask, reach):
    """The same for nodes of any kind."""
    for r in range(count):
        if not _goes_left(column[r], node, nodes):
            reach[r] &= mask


@kernel
def _walk(column, r, first, last, nodes):
    """The leaf of a row in a tree, from node to node."""
    child = np.int64(0) if last > first else np.int64(-1)
    while child >= 0:
        node = first + child
        left = _goes_left(column[nodes.slot[node], r], node, nodes)
        child = nodes.left[node] if left else nodes.right[node]
    return -1 - child


def _score(first, last, X, nodes, mask, value, by_place, out):
    """Scores of rows first..last-1: the leaves of all trees, added in their order.

    ``by_place`` has the leaf values of every tree from left to right, ``value`` as the trees number them.
    """
    column, holes = np.empty((len(nodes.used), ROWS)), np.empty(len(nodes.used), np.uint8)
    reach, total = np.empty(ROWS, np.uint64), np.empty(ROWS)
    for begin in range(first, last, ROWS):
        count = min(ROWS, last - begin)
        _take_columns(X, begin, count, nodes.used, column, holes)
        total[:] = 0.0
        for t in range(len(nodes.start) - 1):
            low, high = nodes.start[t], nodes.start[t + 1]
            if high - low >= LEAVES:
                for r in range(count):
                    total[r] += value[low + t + _walk(column, r, low, high, nodes)]
                continue
            reach[:] = _ALL
            for node in range(low, high):
                own, limit = column[nodes.slot[node]], nodes.threshold[node]
                if nodes.kind[node] != NUMERICAL:
                    _narrow_one_by_one(own, count, node, nodes, mask[node], reach)
                elif holes[nodes.slot[node]] == 0:
                    _narrow(own, limit, mask[node], reach)
                else:
                    _narrow_with_nan(own, limit, nodes.nan_left[node] == 1, mask[node], reach)
            for r in range(ROWS):  # the first leaf that is left is the one that the row falls into
                total[r] += by_place[low + t + np.int64(trailing_zeros(reach[r]))]
        out[begin : begin + count] = total[:count]


@cache
def score_on(dtype: "np.dtype[Any]") -> Any:
    """The scores of rows, compiled for this type of X."""
    given = (types.int64, types.int64, features_in(dtype), _NODES, _MASKS_IN, FLOATS_IN, FLOATS_IN, FLOATS)
    return compiled(kernel(_score), types.void(*given))


# ----------------------------------------------------------------------------------------------------- contributions


class Paths(NamedTuple):
    """The way from the root to every leaf, with the nodes of one feature joined to a part.

    Attributes
    ----------
    step_start : ndarray of int64, shape (n_leaves + 1,)
        The steps of leaf l are step_start[l] .. step_start[l+1]-1.
    step_node : ndarray of int64
        The node of a step.
    step_left : ndarray of uint8
        1 if the step goes left there.
    step_part : ndarray of int64
        The part that the step belongs to, counted from the first of its leaf.
    part_start : ndarray of int64, shape (n_leaves + 1,)
        The parts of leaf l are part_start[l] .. part_start[l+1]-1.
    part_feature : ndarray of int64
        The feature of a part.
    part_zero : ndarray of float64
        The fraction of training documents that take all steps of the part, of those that came to them.
    """

    step_start: NDArray[np.int64]
    step_node: NDArray[np.int64]
    step_left: NDArray[np.uint8]
    step_part: NDArray[np.int64]
    part_start: NDArray[np.int64]
    part_feature: NDArray[np.int64]
    part_zero: NDArray[np.float64]


_PATHS = types.NamedTuple((INTS_IN, INTS_IN, _BYTES_IN, INTS_IN, INTS_IN, INTS_IN, FLOATS_IN), Paths)
_TABLE = types.Array(types.float64, 2, "C")


@kernel
def _add_leaf(value, zero, one, feature, count, points, weights, before, out):
    """Add the Shapley values of a leaf: value (one_i - zero_i) int_0^1 prod_{j != i} (zero_j (1 - t) + one_j t) dt.

    The integrand is a polynomial, for which these points and weights are exact. All its terms are positive: nothing
    cancels, and no part is divided out.
    """
    for q in range(len(points)):
        t = points[q]
        product = 1.0
        for i in range(count):
            before[i] = product
            product *= zero[i] * (1.0 - t) + one[i] * t
        after = value * weights[q]
        for i in range(count - 1, -1, -1):
            out[feature[i]] += after * before[i] * (one[i] - zero[i])
            after *= zero[i] * (1.0 - t) + one[i] * t


def _contribute(first, last, X, nodes, value, paths, rule_start, points, weights, out):
    """Add the contributions of all features to rows first..last-1.

    The rule for paths of c parts has the points and weights rule_start[c] .. rule_start[c+1]-1.
    """
    most = len(rule_start) - 1
    column, holes = np.empty((len(nodes.used), ROWS)), np.empty(len(nodes.used), np.uint8)
    one, before = np.empty(most), np.empty(most)
    left = np.empty(len(nodes.left), np.uint8)
    for begin in range(first, last, ROWS):
        count = min(ROWS, last - begin)
        _take_columns(X, begin, count, nodes.used, column, holes)
        for r in range(count):
            for node in range(len(left)):
                left[node] = 1 if _goes_left(column[nodes.slot[node], r], node, nodes) else 0
            for leaf in range(len(value)):
                low, high = paths.part_start[leaf], paths.part_start[leaf + 1]
                parts = high - low
                one[:parts] = 1.0
                for step in range(paths.step_start[leaf], paths.step_start[leaf + 1]):
                    if left[paths.step_node[step]] != paths.step_left[step]:
                        one[paths.step_part[step]] = 0.0
                rule = slice(rule_start[parts], rule_start[parts + 1])
                zero, feature = paths.part_zero[low:high], paths.part_feature[low:high]
                _add_leaf(value[leaf], zero, one, feature, parts, points[rule], weights[rule], before, out[begin + r])


@cache
def contribute_on(dtype: "np.dtype[Any]") -> Any:
    """The contributions of features, compiled for this type of X."""
    given = (types.int64, types.int64, features_in(dtype), _NODES, FLOATS_IN, _PATHS, INTS_IN, FLOATS_IN, FLOATS_IN)
    return compiled(kernel(_contribute), types.void(*given, _TABLE))


# ------------------------------------------------------------------------------------------------------ ways to leaves


Vector = NDArray[np.float64]
Wholes = NDArray[np.int64]
# Ways are listed one by one, which takes memory for every leaf and level; a damaged file may hold a single long chain.
_DEEPEST = 1_000
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
        Training documents of nodes and of leaves; no root has 0.
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
        if len(way) >= _DEEPEST:
            raise RankwiseError(f"contributions take trees of at most {_DEEPEST} levels: tree {tree} has more")
        node = first + child
        for side, below in ((1, int(children[0][node])), (0, int(children[1][node]))):
            count = counts[1][first + tree - 1 - below] if below < 0 else counts[0][first + below]
            own = counts[0][node]
            waiting.append((below, [*way, (node, side, float(count / own) if own else 0.5)]))
    return found


def quadrature_rules(paths: Paths) -> tuple[Wholes, Vector, Vector]:
    """Gauss-Legendre rules on [0, 1] that are exact for these ways.

    Parameters
    ----------
    paths : Paths
        The ways, each through a number of features.

    Returns
    -------
    start : ndarray of int64, shape (most features + 2,)
        The rule for d features is start[d] .. start[d+1]-1; it is empty if no way goes through so many.
    points, weights : ndarray of float64
        The points and weights of all rules.
    """
    counts = set(np.diff(paths.part_start).tolist()) - {0}
    nothing = (np.empty(0), np.empty(0))
    rules = [
        np.polynomial.legendre.leggauss((count + 1) // 2) if count in counts else nothing
        for count in range(max(counts, default=0) + 1)
    ]
    start = np.array([0, *accumulate(len(points) for points, _ in rules)], np.int64)
    points = np.concatenate([(1.0 + points) / 2.0 for points, _ in rules])
    return start, points, np.concatenate([weights / 2.0 for _, weights in rules])
