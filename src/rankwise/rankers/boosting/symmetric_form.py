"""Whether all trees of an ensemble are symmetric, and the form in which they are scored by bytes."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels.symmetric_scores import DEEPEST, MOST_CUTS, SymmetricTrees
from rankwise._kernels.trees import FLIPPED

if TYPE_CHECKING:
    from rankwise._kernels.trees import Nodes
    from rankwise.rankers.boosting.tree_ensemble import TreeEnsemble


def symmetric_form(trees: "TreeEnsemble", nodes: "Nodes", by_place: NDArray[np.float64]) -> SymmetricTrees | None:
    """The trees level by level; None if the bytes of the kernel cannot hold them.

    That is so if a tree is not complete or deeper than 8, if its nodes do not stand level by level, if two nodes of a
    level ask different questions, if NaN and 0 go the same special way, if a node has a set of several categories, or
    if a feature has more than 254 thresholds.

    Parameters
    ----------
    trees : TreeEnsemble
        The trees.
    nodes : Nodes
        Their nodes for the kernels.
    by_place : ndarray of float64
        The values of the leaves of every tree from left to right.

    Returns
    -------
    SymmetricTrees or None
        The form.
    """
    sizes = np.diff(trees.start)
    depth = np.round(np.log2(sizes + 1)).astype(np.int64)
    if not len(sizes) or not len(trees.feature) or depth.max() > DEEPEST or ((1 << depth) - 1 != sizes).any():
        return None
    own = np.arange(len(trees.feature)) - np.repeat(trees.start[:-1], sizes)
    level = np.floor(np.log2(own + 1)).astype(np.int64)
    tree = np.repeat(np.arange(len(sizes)), sizes)
    asks = trees.start[:-1][tree] + (1 << level) - 1  # the first node of the same level
    code = _codes(trees)
    if code is None or (nodes.kind == FLIPPED).any() or not _complete(trees, own, level, depth[tree]):
        return None
    for answers in (trees.feature, trees.threshold, nodes.nan_left, code):
        if (answers != answers[asks]).any():
            return None
    # the last level decides bit 0 of a leaf that is counted from the left
    questions = np.unique(asks)
    order = np.lexsort((-questions, tree[questions]))
    return _form(trees, nodes, by_place, questions[order], code, depth)


def _codes(trees: "TreeEnsemble") -> NDArray[np.int64] | None:
    """The category that goes left at each node, -1 at nodes of numbers; None if several or NaN go left somewhere."""
    code = np.full(len(trees.feature), -1, np.int64)
    categorical = np.flatnonzero(trees.categorical)
    if trees.nan_left[categorical].any():
        return None
    for node in categorical.tolist():
        words = trees.words[trees.word_start[node] : trees.word_start[node + 1]]
        place = np.flatnonzero(words)
        if len(place) != 1 or words[place[0]] & (words[place[0]] - np.uint32(1)):
            return None
        code[node] = 32 * int(place[0]) + int(words[place[0]]).bit_length() - 1
    mixed = np.isin(trees.feature[categorical], trees.feature[~trees.categorical])
    return None if mixed.any() else code


def _complete(
    trees: "TreeEnsemble", own: NDArray[np.int64], level: NDArray[np.int64], depth: NDArray[np.int64]
) -> bool:
    """Whether node n of every tree has the children 2n + 1 and 2n + 2, or leaves below the last level."""
    last = level == depth - 1
    for child, after in ((trees.left, 1), (trees.right, 2)):
        inner = child == 2 * own + after
        if not (inner | last).all() or (child[last] >= 0).any():
            return False
    return True


def _form(
    trees: "TreeEnsemble",
    nodes: "Nodes",
    by_place: NDArray[np.float64],
    asked: NDArray[np.int64],
    code: NDArray[np.int64],
    depth: NDArray[np.int64],
) -> SymmetricTrees | None:
    """The form of trees with these questions, those of a tree from the last level to the first."""
    slot, categorical = nodes.slot[asked], code[asked] >= 0
    key = np.where(categorical, code[asked], trees.threshold[asked])
    shift, limit = np.zeros(len(asked), np.uint8), np.zeros(len(asked), np.uint8)
    cuts = []
    for place in range(len(nodes.used)):
        own = slot == place
        found, at = np.unique(key[own], return_inverse=True)
        if len(found) > MOST_CUTS:
            return None
        cuts.append(found)
        # the bin of a value is 1 + the thresholds below it: above threshold k is a bin above k + 1
        right = nodes.nan_left[asked[own]] == 0
        code_of = categorical[own]
        shift[own] = np.where(code_of, at + 1, right)
        limit[own] = np.where(code_of, 0, at + 1 - right)
    found_by = np.zeros(len(nodes.used), np.uint8)
    found_by[slot[categorical]] = 1
    form = SymmetricTrees(
        used=nodes.used,
        first_cut=np.append(0, np.cumsum([len(cut) for cut in cuts])).astype(np.int64),
        cut=np.concatenate(cuts).astype(np.float64),
        categorical=found_by,
        start=np.append(0, np.cumsum(depth)).astype(np.int64),
        slot=slot,
        shift=shift,
        limit=limit,
        first_leaf=trees.start + np.arange(len(trees.start)),
        value=by_place,
    )
    for array in form:
        array.setflags(write=False)
    return form
