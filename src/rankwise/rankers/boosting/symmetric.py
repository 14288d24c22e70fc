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
from collections.abc import Sequence
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
from rankwise.rankers.boosting.binned_parts import BinnedParts, in_parts
from rankwise.rankers.boosting.packed_rows import Lanes, PackedRows, with_signs
from rankwise.rankers.boosting.tree_checks import MISSING_NAN, MISSING_NONE
from rankwise.rankers.boosting.tree_ensemble import TreeEnsemble
from rankwise.rankers.boosting.tree_arrays import concat_trees
from rankwise.rankers.boosting.tree_rows import (
    Comparison,
    ModelRows,
    RowBlocks,
    RowMemory,
    Sums,
    TreeLevel,
    TreeRows,
    sums_of,
)

Vector = NDArray[np.float64]
Wholes = NDArray[np.int64]

# What is added to the curvature of a leaf, in units of the mean curvature of a document.
PENALTY = 3.0
# The deepest tree.
DEEPEST = 10
# All numbers go left at it, and NaN right; exports in float32 round it to the largest there.
_NO_WORDS = np.empty(0, np.uint32)
_ABOVE_ALL = float(np.finfo(np.float64).max)


def bin_rows(
    sets: Sequence[Any], categorical: Sequence[int], bins: int, order: Wholes | None, n_jobs: int | None
) -> Lanes:
    """The features of these sets in bins: in memory, or in files where a set is in parts."""
    if in_parts(sets):
        return BinnedParts.of(sets, categorical, bins, order, n_jobs)
    return PackedRows.of(sets, categorical, bins, order, n_jobs=n_jobs)


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
    asked : tuple of Comparison
        The splits as bins are compared.
    """

    splits: tuple[Split, ...]
    gains: tuple[Vector, ...]
    value: Vector
    documents: Wholes
    asked: tuple[Comparison, ...] = ()


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


@dataclass(frozen=True)
class SymmetricRows:
    """Binned rows and the memory that growing on them takes, for all models of a fit.

    Attributes
    ----------
    rows : PackedRows or BinnedParts
        The bins.
    growth : TreeGrowth
        How trees are grown.
    n_jobs : int or None
        Number of threads.
    """

    rows: Lanes
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
        return cls(bin_rows(sets, categorical, bins, order, n_jobs), growth, n_jobs)

    @property
    def splittable(self) -> bool:
        """Whether a feature has two bins."""
        return self.rows.splittable

    @property
    def drawn_groups(self) -> int:
        """Number of groups of features that a tree sees."""
        groups = len(self.rows.feature)
        return min(groups, max(1, round(self.growth.feature_fraction * groups)))

    def model(self, derivatives: Any, seed: int, start: Any, n_jobs: int | None) -> "SymmetricModel":
        """A model without trees whose rows have the weights of ``derivatives``, and these scores to start from.

        In parts they are :class:`~rankwise.rankers.boosting.parted_rows.PartedDerivatives`, and a function of queries.
        """
        if not isinstance(self.rows, PackedRows):
            from rankwise.rankers.boosting.parted_rows import PartedModel, PartedRows  # it stands on this module

            return PartedModel(self, PartedRows.of(self, derivatives, start, self.n_jobs), seed, start)
        count = self.packed.n_documents
        weight = derivatives.weight
        learned = np.ones(count, np.uint8) if weight is None else (weight > 0).astype(np.uint8)
        score = np.zeros(count) if start is None else np.array(start, np.float64)
        given = self.shares, derivatives, learned, score, self.memory, self.growth.row_fraction
        return SymmetricModel(self, TreeRows(*given, n_jobs=self.n_jobs, sums=self.sums), seed, start)

    # ---------------------------------------------------------------------------------------- what models share

    @property
    def packed(self) -> PackedRows:
        """The bins, where they are in memory."""
        assert isinstance(self.rows, PackedRows)
        return self.rows

    @cached_property
    def facts(self) -> Wholes:
        """What the search for splits knows of every lane."""
        return with_signs(self.rows.facts, self.rows.feature, self.growth.signs)

    @cached_property
    def shares(self) -> list[list[RowBlocks]]:
        """The rows by thread."""
        rows = self.packed
        blocks, _, size = rows.words.shape
        threads = parallel.engine_threads(self.n_jobs, rows.n_documents * rows.n_features)
        bounds = np.linspace(0, blocks, min(threads, blocks) + 1).astype(int).tolist()
        ends = [min(bound * size, rows.n_documents) for bound in bounds]
        return [
            [RowBlocks.of(rows.words[first:last], *own)]
            for (first, last), own in zip(pairwise(bounds), pairwise(ends), strict=True)
        ]

    @cached_property
    def whole(self) -> tuple[Wholes, Wholes]:
        """Memory for the sums of all leaves of a level."""
        return sums_of(self.drawn_groups, 1 << self.growth.depth >> 1)[:2]

    @cached_property
    def sums(self) -> list[Sums]:
        """Memory for the sums of every thread."""
        return [sums_of(self.drawn_groups, max(1 << self.growth.depth >> 2, 1)) for _ in self.shares]

    @cached_property
    def memory(self) -> RowMemory:
        """Memory for every row."""
        return RowMemory.of(self.packed.n_documents, self.growth.depth)


@dataclass
class SymmetricModel:
    """A sum of trees under way.

    Attributes
    ----------
    shared : SymmetricRows
        The binned rows.
    rows : ModelRows
        What trees ask of them.
    seed : int
        Seed of what is drawn.
    start : ndarray of shape (n_documents,), or None
        Scores that trees are added to.
    iteration : int
        Number of times that a tree was asked for.
    trees : list of SymmetricTree
        The trees.
    """

    shared: SymmetricRows
    rows: ModelRows
    seed: int
    start: Any
    iteration: int = 0
    trees: list[SymmetricTree] = field(default_factory=list)

    def grow(self) -> None:
        """Add a tree; one leaf of value 0 where no split is possible."""
        self.append(self.next_tree())

    def next_tree(self) -> SymmetricTree:
        """The tree that follows."""
        key = int(mixed(np.array([self.seed], np.uint64))[0]) ^ self.iteration
        return grow_tree(self.shared, self.rows, self.iteration, key)

    def append(self, tree: SymmetricTree) -> None:
        """Add a tree."""
        self.trees.append(tree)
        self.iteration += 1
        self.rows.add(tree.asked, tree.value)

    def scores(self, rows: Wholes | None = None) -> Vector:
        """The scores of these rows; None for all."""
        return self.rows.scores(rows)

    def ensemble(self) -> TreeEnsemble:
        """The trees, without the start."""
        found: dict[str, Any] = concat_trees([_arrays(tree) for tree in self.trees])
        return TreeEnsemble(self.shared.rows.n_features, **found)


def grow_tree(shared: SymmetricRows, rows: ModelRows, iteration: int, key: int) -> SymmetricTree:
    """Grow a tree.

    Parameters
    ----------
    shared : SymmetricRows
        How to grow, and the memory for sums.
    rows : ModelRows
        What the tree asks; their leaves are those of the tree then.
    iteration : int
        Number of trees before this one.
    key : int
        What the draws of rows and features are a function of.

    Returns
    -------
    SymmetricTree
        The tree.
    """
    steepest, most, curved = rows.largest(iteration)
    if not (math.isfinite(steepest) and math.isfinite(most)):
        raise RankwiseError("the loss has derivatives that are not finite: no tree can be grown on them")
    if steepest and most:
        by_gradient = _power_of_two((1 << (histograms.GRADIENT_BITS - 1)) - 1, steepest)
        by_curvature = _power_of_two((1 << histograms.CURVATURE_BITS) - 1, most)
        side = np.zeros(1 << shared.growth.depth, np.uint8)
        level = TreeLevel(key, (by_gradient, by_curvature), (), side, _drawn(shared, key))
        splits, gains, level, scale = _levels(shared, rows, level, curved)
        if splits:
            slope, bent, count = rows.close(level)
            weight = scale[1] * bent
            value = -shared.growth.learning_rate * (scale[0] * slope) / (weight + PENALTY)
            signs = np.array([_sign(shared, split) for split in splits], np.int64)
            if signs.any():
                order_leaves(value, weight, signs)
            return SymmetricTree(tuple(splits), tuple(gains), value, count, level.asked)
    return SymmetricTree((), (), np.zeros(1), np.array([rows.n_learned]), ())


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
    shared: SymmetricRows, rows: ModelRows, level: TreeLevel, curved: int
) -> tuple[list[Split], list[Vector], TreeLevel, tuple[float, float]]:
    """Split all leaves, level by level, given the number of rows with a curvature.

    Returns the splits, their gains, what is asked of the rows next, and the factors of integer sums.
    """
    whole, facts, groups, side = shared.whole, shared.facts, level.groups, level.side
    splits: list[Split] = []
    gains: list[Vector] = []
    scale = level.scale
    for depth in range(shared.growth.depth):
        leaves = 1 << depth
        bend, *counted = rows.count(level)
        if depth == 0:
            factor = curved / (bend / level.scale[1])
            scale = factor / level.scale[0], factor / level.scale[1]
            for total, part in zip(whole, counted, strict=True):
                total[:, : histograms.WIDTH] = part[:, : histograms.WIDTH]
                part[:, : histograms.WIDTH] = 0
        else:
            histograms.divide_leaves(*whole, *counted, leaves >> 1, side)
        found, place, lane, kind, number = best_split(*whole, groups, facts, leaves, scale, PENALTY)
        if not found:
            break
        slot = int(groups[place]) * histograms.LANES + lane
        splits.append(_split(shared.rows, slot, kind, number))
        gains.append(np.empty(leaves))
        chosen = place, lane, kind, number, facts[slot, 0], leaves, _sign(shared, splits[-1])
        describe_split(*whole, *chosen, scale, PENALTY, side, gains[-1])
        asked = int(groups[place]), int(lane), *_comparison(kind, number)
        if shared.growth.one_feature and not depth:
            groups, facts = groups[place : place + 1], _alone(facts, slot)
            whole = whole[0][place : place + 1], whole[1][place : place + 1]
        level = level._replace(asked=(*level.asked, asked), groups=groups)
    return splits, gains, level, scale


def _comparison(kind: int, number: int) -> tuple[int, int]:
    """(shift, limit) of a split, as :mod:`rankwise._kernels.histograms` compares bins."""
    return {ABOVE: (0, number), ABOVE_OR_NAN: (1, number - 1), NAN_ALONE: (1, 254), BUT_ONE: (number, 0)}[kind]


def _alone(facts: Wholes, slot: int) -> Wholes:
    """The facts, where all features but one count as constant."""
    found = np.zeros_like(facts)
    found[slot] = facts[slot]
    return found


def _split(rows: Lanes, slot: int, kind: int, number: int) -> Split:
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
    sets = [_bits(split.cut) if code else _NO_WORDS for split, code in zip(tree.splits, categorical, strict=True)]
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
