"""Symmetric trees grown by the package itself: all nodes of a level ask the same question.

A tree is grown level by level. The split of a level maximizes the sum over its leaves of G^2 / (H + 3), G and H sums of
first and second derivatives over a random part of the documents. The value of a leaf is -rate G / (H + 3) over all of
them. Derivatives are rounded to integers, so their sums are exact (:mod:`rankwise._kernels.histograms`): no order,
chunk or number of threads changes a bit. Both are then multiplied by n / sum of h, n the number of documents with a
curvature, so that the 3 is in units of a mean curvature of 1.

A :class:`SymmetricModel` has the methods of a :class:`~rankwise.rankers.boosting.growing.GrowingModel`; all models of a
fit share the binned rows and the memory in which sums are made.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels import histograms, parallel
from rankwise._kernels.bits import mixed
from rankwise._kernels.splits import (
    ABOVE,
    ABOVE_OR_NAN,
    BUT_ONE,
    NAN_ALONE,
    best_split,
    describe_split,
    order_leaves,
)
from rankwise.errors import RankwiseError
from rankwise.queries.queries import Queries
from rankwise.rankers.boosting.objectives import Derivatives
from rankwise.rankers.boosting.packed_rows import PackedRows, with_signs
from rankwise.rankers.boosting.tree_checks import MISSING_NAN, MISSING_NONE
from rankwise.rankers.boosting.tree_ensemble import TreeEnsemble
from rankwise.rankers.boosting.tree_files import concat_trees

Vector = NDArray[np.float64]
Wholes = NDArray[np.int64]

# What is added to the curvature of a leaf, in units of the mean curvature of a document.
PENALTY = 3.0
# The deepest tree, and the deepest whose leaves have numbers of a byte.
DEEPEST, _BYTE_DEEP = 10, 8
# All numbers go left at it, and NaN right; exports in float32 round it to the largest there.
_NO_WORDS = np.empty(0, np.uint32)
_ABOVE_ALL = float(np.finfo(np.float64).max)


class Split(NamedTuple):
    """The question of a level: which bins of a feature go right.

    Attributes
    ----------
    feature : int
        The feature.
    kind : int
        One of the kinds of :mod:`rankwise._kernels.splits`.
    cut : float
        The threshold, or the code of the category that goes left; of NaN alone what is above all numbers.
    holes : bool
        Whether the feature had NaN when the tree was grown; otherwise NaN counts as 0.
    """

    feature: int
    kind: int
    cut: float
    holes: bool = True


class SymmetricTree(NamedTuple):
    """A tree; bit l of the number of a leaf is 1 on the right of level l.

    Attributes
    ----------
    splits : tuple of Split
        The splits, the root's first.
    gains : tuple of ndarray
        By how much each split improves each leaf of its level.
    value : ndarray of shape (2^depth,)
        The values of the leaves.
    documents : ndarray of int64, shape (2^depth,)
        Documents that were learned from in each.
    """

    splits: tuple[Split, ...]
    gains: tuple[Vector, ...]
    value: Vector
    documents: Wholes


@dataclass(frozen=True)
class TreeGrowth:
    """How trees are grown.

    Attributes
    ----------
    learning_rate : float
        The factor of the leaves.
    depth : int
        The largest number of levels.
    row_fraction, feature_fraction : float
        The shares of documents and of groups of features that splits are found on.
    signs : sequence of int
        For every feature the sign that the score must keep with it, or 0.
    one_feature : bool
        Whether all levels of a tree split on the same feature.
    """

    learning_rate: float = 0.05
    depth: int = 6
    row_fraction: float = 0.8
    feature_fraction: float = 1.0
    signs: Sequence[int] = ()
    one_feature: bool = False


class _Sums(NamedTuple):
    """Integer sums by group of features, leaf and bin.

    Attributes
    ----------
    gradient, curvature : ndarray of int64
        Those of all leaves of a level.
    tasks : list of tuple of ndarray of int64
        For every task its running sums, and the two that it counts.
    """

    gradient: Wholes
    curvature: Wholes
    tasks: list[tuple[Wholes, Wholes, Wholes]]

    @classmethod
    def zeros(cls, groups: int, depth: int, tasks: int) -> "_Sums":
        """Sums of nothing, for trees of this depth."""

        def sums(leaves: int) -> Wholes:
            return np.zeros((groups, max(leaves, 1) * histograms.WIDTH), np.int64)

        half = 1 << depth >> 1
        each = [(sums(half >> 1), sums(half >> 1), sums(half >> 1)) for _ in range(tasks)]
        return cls(sums(half), sums(half), each)

    def of_group(self, place: int) -> "_Sums":
        """The part of one group."""
        own = slice(place, place + 1)
        return _Sums(self.gradient[own], self.curvature[own], [(a[own], b[own], c[own]) for a, b, c in self.tasks])


@dataclass(frozen=True)
class SymmetricRows:
    """Binned rows and the memory that growing on them takes, for all models of a fit.

    Attributes
    ----------
    rows : PackedRows
        The bins.
    growth : TreeGrowth
        How trees are grown.
    n_jobs : int or None
        Number of threads.
    """

    rows: PackedRows
    growth: TreeGrowth
    n_jobs: int | None

    @classmethod
    def of(
        cls,
        sets: Sequence[Queries],
        growth: TreeGrowth,
        categorical: Sequence[int],
        bins: int,
        seed: int,
        n_jobs: int | None,
    ) -> "SymmetricRows":
        """Bin the documents of these sets; the seed groups features where trees see some of the groups alone."""
        order = None
        if growth.feature_fraction < 1:
            order = np.random.default_rng(seed).permutation(sets[0].n_features)
        return cls(PackedRows.of(sets, categorical, bins, order, n_jobs=n_jobs), growth, n_jobs)

    @property
    def splittable(self) -> bool:
        """Whether a feature has two bins."""
        return self.rows.splittable

    @property
    def drawn_groups(self) -> int:
        """Number of groups of features that a tree sees."""
        groups = len(self.rows.feature)
        return min(groups, max(1, round(self.growth.feature_fraction * groups)))

    def model(self, derivatives: Derivatives, seed: int, start: Vector | None, n_jobs: int | None) -> "SymmetricModel":
        """A model without trees whose rows have the weights of ``derivatives``, and these scores to start from."""
        count = self.rows.n_documents
        weight = derivatives.weight
        learned = np.ones(count, np.uint8) if weight is None else (weight > 0).astype(np.uint8)
        score = np.zeros(count) if start is None else np.array(start, np.float64)
        return SymmetricModel(self, derivatives, seed, start, learned, score)

    # ---------------------------------------------------------------------------------------- what models share

    @cached_property
    def facts(self) -> Wholes:
        """What the search for splits knows of every lane."""
        return with_signs(self.rows.facts, self.rows.feature, self.growth.signs)

    @cached_property
    def chunks(self) -> list[tuple[int, int, int]]:
        """(task, first block, last block)."""
        blocks = len(self.rows.words)
        threads = parallel.engine_threads(self.n_jobs, self.rows.n_documents * self.rows.n_features)
        bounds = np.linspace(0, blocks, min(threads, blocks) + 1).astype(int).tolist()
        return [(task, first, last) for task, (first, last) in enumerate(pairwise(bounds))]

    @cached_property
    def sums(self) -> _Sums:
        """Memory for sums by leaf and bin."""
        return _Sums.zeros(self.drawn_groups, self.growth.depth, len(self.chunks))

    @cached_property
    def per_row(self) -> tuple[Wholes, NDArray[Any], NDArray[np.uint8]]:
        """Memory for packed derivatives, leaves, and which rows are sampled."""
        count = self.rows.n_documents
        leaf = np.uint8 if self.growth.depth <= _BYTE_DEEP else np.uint16
        return np.empty(count, np.int64), np.empty(count, leaf), np.empty(count, np.uint8)

    def run(self, task: Callable[..., Any]) -> list[Any]:
        """Run ``task(number of the task, first block, last block)`` on threads."""
        return parallel.map_chunks(task, self.chunks, len(self.chunks))

    def run_on_rows(self, task: Callable[..., Any]) -> list[Any]:
        """Run ``task(first row, last row)`` on threads."""
        size, count = self.rows.words.shape[2], self.rows.n_documents
        return self.run(lambda _, first, last: task(first * size, min(last * size, count)))


@dataclass
class SymmetricModel:
    """A sum of trees under way.

    Attributes
    ----------
    shared : SymmetricRows
        The binned rows.
    derivatives : Derivatives
        The loss and its queries.
    seed : int
        Seed of what is drawn.
    start : ndarray of shape (n_documents,), or None
        Scores that trees are added to.
    learned : ndarray of uint8, shape (n_documents,)
        1 for the rows that are learned from.
    score : ndarray of shape (n_documents,)
        The scores of all rows.
    iteration : int
        Number of times that a tree was asked for.
    trees : list of SymmetricTree
        The trees.
    """

    shared: SymmetricRows
    derivatives: Derivatives
    seed: int
    start: Vector | None
    learned: NDArray[np.uint8]
    score: Vector
    iteration: int = 0
    trees: list[SymmetricTree] = field(default_factory=list)

    def grow(self) -> None:
        """Add a tree; one leaf of value 0 where no split is possible."""
        self.derivatives = self.derivatives.before_tree(self.score, self.iteration, self.shared.n_jobs)
        gradient, curvature = self.derivatives.at(self.score, self.iteration, self.shared.n_jobs)
        key = int(mixed(np.array([self.seed], np.uint64))[0]) ^ self.iteration
        tree, leaf = grow_tree(self.shared, gradient, curvature, self.learned, key)
        self.trees.append(tree)
        self.iteration += 1
        if len(tree.value) > 1:
            add = histograms.add_leaf_values
            self.shared.run_on_rows(lambda first, last: add(leaf, tree.value, first, last, self.score))

    def scores(self) -> Vector:
        """The scores of all rows."""
        return self.score.copy()

    def ensemble(self) -> TreeEnsemble:
        """The trees, without the start."""
        found: dict[str, Any] = concat_trees([_arrays(tree) for tree in self.trees])
        return TreeEnsemble(self.shared.rows.n_features, **found)


def grow_tree(
    shared: SymmetricRows, gradient: Vector, curvature: Vector, learned: NDArray[np.uint8], key: int
) -> tuple[SymmetricTree, NDArray[Any]]:
    """Grow a tree.

    Parameters
    ----------
    shared : SymmetricRows
        The rows, and how to grow.
    gradient, curvature : ndarray of shape (n_documents,)
        The derivatives.
    learned : ndarray of uint8, shape (n_documents,)
        1 for rows that may be learned from; the others have derivatives of 0.
    key : int
        What the draws of rows and features are a function of.

    Returns
    -------
    tree : SymmetricTree
        The tree.
    leaf : ndarray of unsigned integers, shape (n_documents,)
        The leaf of every row, in memory that the next tree overwrites.
    """
    packed, leaf, kept = shared.per_row
    blocks = len(shared.rows.words)
    steepness, bend = np.empty(blocks, np.int64), np.empty(blocks, np.int64)
    scale = _pack(shared, gradient, curvature, (packed, steepness, bend))
    leaf[:] = 0
    if scale is None:
        return SymmetricTree((), (), np.zeros(1), np.array([int(learned.sum())])), leaf
    limit, start = np.uint64(round(shared.growth.row_fraction * 2**32)), np.uint64(key)
    shared.run_on_rows(lambda first, last: histograms.sample_rows(learned, start, limit, first, last, kept))
    splits, gains, asked = _levels(shared, _drawn(shared, key), (kept, leaf, packed, steepness, bend), scale)
    if not splits:
        return SymmetricTree((), (), np.zeros(1), np.array([int(learned.sum())])), leaf
    sums = [np.zeros((3, 1 << len(splits)), np.int64) for _ in shared.chunks]

    def close(task: int, first: int, last: int) -> None:
        histograms.close_leaves(shared.rows.words, first, last, len(splits), asked, learned, leaf, packed, *sums[task])

    shared.run(close)
    slope, bent, count = sum(sums[1:], sums[0])
    weight = scale[1] * bent
    value = -shared.growth.learning_rate * (scale[0] * slope) / (weight + PENALTY)
    signs = np.array([_sign(shared, split) for split in splits], np.int64)
    if signs.any():
        order_leaves(value, weight, signs)
    return SymmetricTree(tuple(splits), tuple(gains), value, count), leaf


def _pack(
    shared: SymmetricRows, gradient: Vector, curvature: Vector, packed: tuple[Wholes, Wholes, Wholes]
) -> tuple[float, float] | None:
    """Round the derivatives; returns the factors of their integer sums, or None where all are 0."""
    largest = shared.run_on_rows(lambda first, last: histograms.largest(gradient, curvature, first, last))
    steepest, most = (max(one[place] for one in largest) for place in range(2))
    if not all(math.isfinite(value) for one in largest for value in one):
        raise RankwiseError("the loss has derivatives that are not finite: no tree can be grown on them")
    if not steepest or not most:
        return None
    by_gradient = _power_of_two((1 << (histograms.GRADIENT_BITS - 1)) - 1, steepest)
    by_curvature = _power_of_two((1 << histograms.CURVATURE_BITS) - 1, most)
    size = shared.rows.words.shape[2]

    def pack(_: int, first: int, last: int) -> None:
        histograms.pack(gradient, curvature, by_gradient, by_curvature, size, first, last, *packed)

    shared.run(pack)
    factor = sum(one[2] for one in largest) / (int(packed[2].sum()) / by_curvature)
    return factor / by_gradient, factor / by_curvature


def _power_of_two(most: int, largest: float) -> float:
    """The largest power of two by which ``largest`` does not come above ``most``."""
    return math.ldexp(1.0, min(math.frexp(most / largest)[1] - 1, 1000))


def _drawn(shared: SymmetricRows, key: int) -> Wholes:
    """The groups of features that a tree sees."""
    groups, count = len(shared.rows.feature), shared.drawn_groups
    if count == groups:
        return np.arange(groups)
    return np.sort(np.random.default_rng(key).choice(groups, count, replace=False))


def _levels(
    shared: SymmetricRows, groups: Wholes, rows: tuple[NDArray[Any], ...], scale: tuple[float, float]
) -> tuple[list[Split], list[Vector], tuple[int, int, int, int]]:
    """Split all leaves, level by level; returns the splits, their gains, and the last split as the kernels take it.

    The last split is not applied to the rows yet.
    """
    sums, facts = shared.sums, shared.facts
    side, asked = np.zeros(1 << shared.growth.depth, np.uint8), (0, 0, 0, 0)
    splits: list[Split] = []
    gains: list[Vector] = []
    for level in range(shared.growth.depth):
        leaves = 1 << level
        counted = _count(shared, sums, level, (asked, side, *rows), groups)
        if level == 0:
            for whole, part in zip((sums.gradient, sums.curvature), counted, strict=True):
                whole[:, : histograms.WIDTH] = part[:, : histograms.WIDTH]
                part[:, : histograms.WIDTH] = 0
        else:
            histograms.divide_leaves(sums.gradient, sums.curvature, *counted, leaves >> 1, side)
        own = sums.gradient, sums.curvature
        found, place, lane, kind, number = best_split(*own, groups, facts, leaves, scale, PENALTY)
        if not found:
            break
        slot = int(groups[place]) * histograms.LANES + lane
        splits.append(_split(shared.rows, slot, kind, number))
        gains.append(np.empty(leaves))
        chosen = place, lane, kind, number, facts[slot, 0], leaves, _sign(shared, splits[-1])
        describe_split(*own, *chosen, scale, PENALTY, side, gains[-1])
        asked = (int(groups[place]), lane, *_comparison(kind, number))
        if shared.growth.one_feature and not level:
            groups, facts, sums = groups[place : place + 1], _alone(facts, slot), sums.of_group(place)
    return splits, gains, asked


def _count(
    shared: SymmetricRows, sums: _Sums, level: int, rows: tuple[Any, ...], groups: Wholes
) -> tuple[Wholes, Wholes]:
    """Sums over the rows that are counted at a level, in the memory of the first task."""

    def add(task: int, first: int, last: int) -> None:
        histograms.add_level(shared.rows.words, first, last, level, *rows, groups, *sums.tasks[task])

    shared.run(add)
    own = max(1 << level >> 1, 1) * histograms.WIDTH
    _, *counted = sums.tasks[0]
    for _, *others in sums.tasks[1:]:
        for whole, part in zip(counted, others, strict=True):
            whole[:, :own] += part[:, :own]
            part[:, :own] = 0
    return counted[0], counted[1]


def _comparison(kind: int, number: int) -> tuple[int, int]:
    """(shift, limit) of a split, as :mod:`rankwise._kernels.histograms` compares bins."""
    return {ABOVE: (0, number), ABOVE_OR_NAN: (1, number - 1), NAN_ALONE: (1, 254), BUT_ONE: (number, 0)}[kind]


def _alone(facts: Wholes, slot: int) -> Wholes:
    """The facts, where all features but one count as constant."""
    found = np.zeros_like(facts)
    found[slot] = facts[slot]
    return found


def _split(rows: PackedRows, slot: int, kind: int, number: int) -> Split:
    """A split of bins on the values of its feature."""
    group, lane = divmod(slot, histograms.LANES)
    cut = _ABOVE_ALL if kind == NAN_ALONE else float(rows.cut[group, lane, number - 1])
    return Split(int(rows.feature[group, lane]), kind, cut, bool(rows.facts[slot, 1]))


def _sign(shared: SymmetricRows, split: Split) -> int:
    """The sign that the leaves on the sides of a split must keep; NaN has no order."""
    signs = shared.growth.signs
    return 0 if split.kind == NAN_ALONE or not len(signs) else int(signs[split.feature])


# ---------------------------------------------------------------------------------------------------------- ensembles


def _arrays(tree: SymmetricTree) -> dict[str, NDArray[Any]]:
    """A tree level by level, as :class:`TreeEnsemble` has it: node n has the children 2n + 1 and 2n + 2."""
    depth = len(tree.splits)
    level, left, right = _layout(depth)
    counts = [tree.documents[_from_left(depth)]]
    for _ in range(depth):
        counts.append(counts[-1].reshape(-1, 2).sum(axis=1))
    categorical = [split.kind == BUT_ONE for split in tree.splits]
    sets = [
        _bits(split.cut) if code else _NO_WORDS for split, code in zip(tree.splits, categorical, strict=True)
    ]
    lengths = np.array([len(words) for words in sets], np.int64)
    return {
        "feature": np.array([split.feature for split in tree.splits], np.int64)[level],
        "threshold": np.array(
            [0.0 if code else split.cut for split, code in zip(tree.splits, categorical, strict=True)]
        )[level],
        "left": left,
        "right": right,
        "missing": np.array([MISSING_NAN if split.holes else MISSING_NONE for split in tree.splits], np.uint8)[level],
        "default_left": np.array([split.kind == ABOVE for split in tree.splits], np.uint8)[level],
        "n_words": lengths[level],
        "words": np.concatenate([sets[at] for at in level]) if any(categorical) else _NO_WORDS,
        "value": tree.value[_from_left(depth)],
        "gain": np.concatenate([np.empty(0), *(gain[_from_left(at)] for at, gain in enumerate(tree.gains))]),
        "node_count": np.concatenate(counts[:0:-1]) if depth else np.empty(0, np.int64),
        "leaf_count": counts[0],
    }


@cache
def _layout(depth: int) -> tuple[Wholes, Wholes, Wholes]:
    """The level of every node and its children."""
    first_leaf = (1 << depth) - 1
    level = np.repeat(np.arange(depth), 1 << np.arange(depth))
    left = 2 * np.arange(first_leaf, dtype=np.int64) + 1
    last = level == depth - 1
    return level, np.where(last, first_leaf - 1 - left, left), np.where(last, first_leaf - 2 - left, left + 1)


@cache
def _from_left(depth: int) -> Wholes:
    """The numbers of the leaves from left to right, where the root decides the highest bit of a place."""
    place, number = np.arange(1 << depth), np.zeros(1 << depth, np.int64)
    for level in range(depth):
        number |= (place >> (depth - 1 - level) & 1) << level
    return number


def _bits(code: float) -> NDArray[np.uint32]:
    """The set of one category."""
    words = np.zeros(int(code) // 32 + 1, np.uint32)
    words[-1] = 1 << int(code) % 32
    return words
