"""Whether arrays are trees: their types and lengths, the range of every value, and no cycle.

The arrays may come from a stranger's file. What passes can be scored without a look beyond the end of an array, an
endless loop, or a score that is not finite.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from rankwise.errors import RankwiseError
from rankwise.queries import checks

if TYPE_CHECKING:
    from rankwise.rankers.boosting.tree_ensemble import TreeEnsemble

# What ``missing`` says of a node: which values go to the default side in place of being compared.
MISSING_NONE, MISSING_ZERO, MISSING_NAN = 0, 1, 2

# The arrays of an ensemble.
DTYPES: dict[str, Any] = {
    "start": np.int64,
    "feature": np.int64,
    "threshold": np.float64,
    "left": np.int64,
    "right": np.int64,
    "missing": np.uint8,
    "default_left": np.uint8,
    "word_start": np.int64,
    "words": np.uint32,
    "value": np.float64,
    "gain": np.float64,
    "node_count": np.int64,
    "leaf_count": np.int64,
}


def check_trees(trees: "TreeEnsemble") -> None:
    """Raise an error unless the arrays are trees over the features, with finite scores."""
    for name, dtype in DTYPES.items():
        array = getattr(trees, name)
        if array.dtype != dtype or array.ndim != 1:
            raise RankwiseError(f"{name} of the trees has type {array.dtype} and shape {array.shape}")
    if not checks.is_whole(trees.n_features, 1):
        raise RankwiseError(f"the trees are over {trees.n_features!r:.20} features: expected 1 or more")
    start, nodes = trees.start, len(trees.feature)
    if not len(start) or start[0] != 0 or start[-1] != nodes or (np.diff(start) < 0).any():
        raise RankwiseError(f"start of the trees does not ascend from 0 to their {nodes} nodes")
    for name in ("threshold", "left", "right", "missing", "default_left", "gain", "node_count"):
        if len(getattr(trees, name)) != nodes:
            raise RankwiseError(f"the trees have {nodes} nodes, and {name} has {len(getattr(trees, name))} values")
    for name in ("value", "leaf_count"):
        if len(getattr(trees, name)) != nodes + trees.n_trees:
            raise RankwiseError(
                f"the trees have {nodes + trees.n_trees} leaves, and {name} has {len(getattr(trees, name))} values"
            )
    _check_values(trees)
    _check_structure(trees)


def _check_values(trees: "TreeEnsemble") -> None:
    """Raise an error for a value that is out of its range."""
    if ((trees.feature < 0) | (trees.feature >= trees.n_features)).any():
        raise RankwiseError(f"a tree splits on a feature that is not one of 0 to {trees.n_features - 1}")
    if (trees.missing > MISSING_NAN).any() or (trees.default_left > 1).any():
        raise RankwiseError("a tree treats missing values in an unknown way")
    bounds = trees.word_start
    if len(bounds) != len(trees.feature) + 1 or bounds[0] != 0 or bounds[-1] != len(trees.words):
        raise RankwiseError("the sets of categories of the trees do not fit to their nodes")
    if (np.diff(bounds) < 0).any():
        raise RankwiseError("the sets of categories of the trees do not fit to their nodes")
    if (trees.node_count < 0).any() or (trees.leaf_count < 0).any():
        raise RankwiseError("a tree counts fewer than 0 documents")
    for name in ("threshold", "gain", "value"):
        if not np.isfinite(getattr(trees, name)).all():
            raise RankwiseError(f"{name} of the trees holds a number that is not finite")
    if not (isinstance(trees.divisor, float) and 1 <= trees.divisor < np.inf):
        raise RankwiseError(f"the trees are divided by {trees.divisor!r:.20}: expected a number from 1 on")
    coef = np.zeros(1) if trees.coef is None else trees.coef
    if trees.coef is not None and (coef.shape != (trees.n_features,) or coef.dtype != np.float64):
        raise RankwiseError(f"the linear part has type {coef.dtype} and shape {coef.shape}")
    fill, normal = trees.fill, trees.normal
    if fill is not None and (fill.shape != (trees.n_features,) or fill.dtype != np.float64):
        raise RankwiseError(f"what NaN counts as has type {fill.dtype} and shape {fill.shape}")
    if fill is not None and not np.isfinite(fill).all():
        raise RankwiseError("what NaN counts as holds a number that is not finite")
    if normal is not None and len(normal.weight) != trees.n_features:
        raise RankwiseError(
            f"the trees are over {trees.n_features} features, and normal scores of {len(normal.weight)}"
        )
    first_leaf = trees.start[:-1] + np.arange(trees.n_trees)
    largest = np.maximum.reduceat(np.abs(trees.value), first_leaf) if trees.n_trees else np.zeros(1)
    scores = 0.0 if normal is None else normal.largest
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isfinite(largest.sum() + abs(trees.offset) + np.abs(coef).sum() + scores):
            raise RankwiseError("the leaves, offset or weights of the trees add up to more than float64 can hold")


def _check_structure(trees: "TreeEnsemble") -> None:
    """Raise an error unless every node and leaf but the roots is the child of one earlier node of its tree."""
    sizes = np.diff(trees.start)
    tree = np.repeat(np.arange(trees.n_trees), sizes)
    first, size = trees.start[:-1][tree], sizes[tree]
    own = np.arange(len(tree)) - first
    children = []
    for child in (trees.left, trees.right):
        if ((child >= size) | (child < -1 - size) | ((child >= 0) & (child <= own))).any():
            raise RankwiseError("a tree has a child outside of itself, or before its parent")
        # leaves are numbered after all nodes
        children.append(np.where(child >= 0, first + child, len(tree) + first + tree - 1 - child))
    if len(np.unique(np.concatenate(children))) != 2 * len(tree):
        raise RankwiseError("a tree has a node or leaf with two parents")
