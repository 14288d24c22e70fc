"""An immutable sum of decision trees: scores, contributions of features, importance, and its arrays for a file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import DataError, RankwiseError
from rankwise._kernels import drive
from rankwise._kernels.rows import linear_scores
from rankwise._kernels.trees import (
    CATEGORICAL,
    FLIPPED,
    NUMERICAL,
    ZERO,
    Nodes,
    Paths,
    contribute_on,
    leaf_order,
    score_on,
)
from rankwise._store import Store
from rankwise.data import checks
from rankwise.data.checks import Floats
from rankwise.rankers.boosting.lightgbm_text import read_lightgbm
from rankwise.rankers.boosting.tree_paths import paths_of, quadrature_rules

Vector = NDArray[np.float64]
Wholes = NDArray[np.int64]
Bytes = NDArray[np.uint8]

# What ``missing`` says of a node: which values go to the default side in place of being compared.
MISSING_NONE, MISSING_ZERO, MISSING_NAN = 0, 1, 2

_CHUNK = 1 << 12  # rows per call into compiled code: some ten milliseconds of work
_PREFIX = "trees."
_DTYPES: dict[str, Any] = {
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


class ShapeFunction(NamedTuple):
    """What one feature adds to the score, as a function of its value.

    Attributes
    ----------
    thresholds : ndarray of float64, shape (n_thresholds,)
        Where the function changes, ascending.
    values : ndarray of float64, shape (n_thresholds + 1,)
        ``values[i]`` holds from above ``thresholds[i - 1]`` up to and including ``thresholds[i]``.
    missing : float
        The value for NaN.
    """

    thresholds: Vector
    values: Vector
    missing: float


@dataclass(frozen=True, eq=False, repr=False)
class TreeEnsemble:
    r"""s(x) = sum_t value_t(leaf of x in tree t) + offset + sum_j coef_j x_j, in float64.

    Leaves are added in the order of the trees, beginning with 0, and what follows is added to their sum as a whole. A
    value x goes left at a node if x <= threshold. Values of at most 1e-35 (as a float32) in size count as 0. NaN counts
    as 0 where ``missing`` is 0; where it is 1, NaN and 0 go to the default side; where it is 2, NaN does. At a
    categorical node a value goes left if its whole part is in a set of categories; NaN and negative values go right.
    All this is what LightGBM does.

    Attributes
    ----------
    n_features : int
        Number of features.
    start : ndarray of int64, shape (n_trees + 1,)
        Tree t has the nodes start[t] .. start[t+1]-1, and the leaves start[t] + t .. start[t+1] + t.
    feature : ndarray of int64, shape (n_nodes,)
        The feature that a node compares.
    threshold : ndarray of float64, shape (n_nodes,)
        Its threshold; 0 at categorical nodes.
    left, right : ndarray of int64, shape (n_nodes,)
        The children: c >= 0 is node start[t] + c, which comes later; c < 0 is leaf -1 - c of the tree.
    missing : ndarray of uint8, shape (n_nodes,)
        What takes the default side: 0 nothing, 1 NaN and 0, 2 NaN.
    default_left : ndarray of uint8, shape (n_nodes,)
        1 if the default side is the left one.
    word_start : ndarray of int64, shape (n_nodes + 1,)
        A node with words is categorical: category c goes left if bit c % 32 of word c // 32 is set.
    words : ndarray of uint32
        The sets of categories.
    value : ndarray of float64, shape (n_leaves,)
        The values of the leaves.
    gain : ndarray of float64, shape (n_nodes,)
        How much each split improved the training objective.
    node_count : ndarray of int64, shape (n_nodes,)
        Training documents that came to each node; 0 where that is not known.
    leaf_count : ndarray of int64, shape (n_leaves,)
        Training documents in each leaf.
    offset : float
        A constant.
    coef : ndarray of float64, shape (n_features,), or None
        Weights of a linear part.
    """

    n_features: int
    start: Wholes
    feature: Wholes
    threshold: Vector
    left: Wholes
    right: Wholes
    missing: Bytes
    default_left: Bytes
    word_start: Wholes
    words: NDArray[np.uint32]
    value: Vector
    gain: Vector
    node_count: Wholes
    leaf_count: Wholes
    offset: float = 0.0
    coef: Vector | None = None

    def __post_init__(self) -> None:
        for name in (*_DTYPES, "coef"):
            array = getattr(self, name)
            if array is not None:
                own = np.array(array)  # a copy that nobody can change
                own.setflags(write=False)
                object.__setattr__(self, name, own)
        _check(self)

    # -------------------------------------------------------------------------------------------------- constructors

    @classmethod
    def from_lightgbm(cls, text: str) -> Self:
        """The trees of a LightGBM model; its scores are those of ``predict(X, raw_score=True)`` to the bit.

        Parameters
        ----------
        text : str
            What ``Booster.model_to_string()`` returns.

        Returns
        -------
        ensemble : TreeEnsemble
            The trees.

        Raises
        ------
        FileFormatError
            If the text is no LightGBM model with one score per row, is damaged, or has linear models in its leaves.
        """
        n_features, arrays = read_lightgbm(text)
        return cls(n_features, **arrays, offset=0.0)

    @classmethod
    def from_arrays(cls, store: Store | Mapping[str, NDArray[Any]], n_features: int) -> Self:
        """The ensemble with these :meth:`arrays`, which may come from a stranger's file.

        Parameters
        ----------
        store : Store or mapping of str to ndarray
            Where the arrays are.
        n_features : int
            Number of features.

        Returns
        -------
        ensemble : TreeEnsemble
            The ensemble.

        Raises
        ------
        RankwiseError
            If an array is missing, has another type, or the arrays are no trees over so many features.
        """
        found = {}
        for name, dtype in {**_DTYPES, "offset": np.float64, "coef": np.float64}.items():
            key = _PREFIX + name
            if isinstance(store, Store):
                array = store.array(key, dtype, (None,))
            elif key in store:
                array = np.asarray(store[key])
            else:
                raise RankwiseError(f"the array {key!r} of its trees is missing")
            if array.dtype != dtype or array.ndim != 1:
                raise RankwiseError(f"the array {key!r} of its trees has type {array.dtype} and shape {array.shape}")
            found[name] = array
        offset, coef = found.pop("offset"), found.pop("coef")
        if len(offset) != 1 or len(coef) not in (0, n_features):
            raise RankwiseError(f"its trees have {len(offset)} offsets and {len(coef)} weights of features")
        return cls(n_features, **found, offset=float(offset[0]), coef=coef if len(coef) else None)

    @classmethod
    def concat(cls, ensembles: Sequence[Self], weights: Sequence[float] | None = None) -> Self:
        """The weighted sum of ensembles as one ensemble; every leaf is multiplied by its weight once.

        Parameters
        ----------
        ensembles : sequence of TreeEnsemble
            Ensembles over the same features.
        weights : sequence of float, default=None
            A factor for each; None takes their mean.

        Returns
        -------
        ensemble : TreeEnsemble
            All trees, in this order.
        """
        if not len(ensembles):
            raise RankwiseError("concat needs at least one ensemble")
        factors = checks.as_vector(
            [1.0 / len(ensembles)] * len(ensembles) if weights is None else weights, len(ensembles), "weights"
        )
        widths = sorted({one.n_features for one in ensembles})
        if len(widths) > 1:
            raise RankwiseError(f"concat joins ensembles over the same features: found {widths[0]} and {widths[-1]}")
        joined = {name: np.concatenate([getattr(one, name) for one in ensembles]) for name in _DTYPES}
        for name in ("start", "word_start"):  # offsets go on where those of the ensemble before ended
            pieces = [np.diff(getattr(one, name)) for one in ensembles]
            joined[name] = np.concatenate([[0], np.cumsum(np.concatenate(pieces))]).astype(np.int64)
        pairs = list(zip(factors.tolist(), ensembles, strict=True))
        joined["value"] = np.concatenate([factor * one.value for factor, one in pairs])
        joined["gain"] = np.concatenate([abs(factor) * one.gain for factor, one in pairs])
        linear = [factor * one.coef for factor, one in pairs if one.coef is not None]
        offset = sum(factor * one.offset for factor, one in pairs)
        return cls(widths[0], **joined, offset=float(offset), coef=sum(linear[1:], linear[0]) if linear else None)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays by name, for :meth:`from_arrays`."""
        found = {_PREFIX + name: getattr(self, name) for name in _DTYPES}
        coef = np.empty(0) if self.coef is None else self.coef
        return found | {f"{_PREFIX}offset": np.array([self.offset]), f"{_PREFIX}coef": coef}

    # ---------------------------------------------------------------------------------------------------------- facts

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.start) - 1

    @property
    def n_leaves(self) -> int:
        """Number of leaves of all trees."""
        return len(self.value)

    @cached_property
    def categorical(self) -> NDArray[np.bool_]:
        """Which nodes are categorical."""
        return np.diff(self.word_start) > 0

    @cached_property
    def nan_left(self) -> NDArray[np.bool_]:
        """At which nodes NaN goes left."""
        zero, default = self.threshold >= 0, self.default_left == 1
        return np.asarray(np.where(self.missing == MISSING_NONE, zero, default) & ~self.categorical, np.bool_)

    @cached_property
    def flips_zero(self) -> NDArray[np.bool_]:
        """At which nodes 0 goes to the other side than its threshold has it, because it counts as missing."""
        moved = (self.missing == MISSING_ZERO) & ((self.threshold >= 0) != (self.default_left == 1))
        return np.asarray(moved & ~self.categorical, np.bool_)

    def __repr__(self) -> str:
        return f"TreeEnsemble({self.n_trees} trees, {self.n_leaves} leaves, {self.n_features} features)"

    def importance(self, kind: Literal["gain", "split"] = "gain") -> Vector:
        """The importance of every feature, as LightGBM counts it.

        Parameters
        ----------
        kind : {"gain", "split"}, default="gain"
            The sum of the gains of a feature's splits, or their number; splits without a gain do not count.

        Returns
        -------
        importance : ndarray of shape (n_features,)
            One number per feature.
        """
        checks.refuse_unless_one_of(kind, "kind", ("gain", "split"))
        counted = self.gain > 0
        weights = self.gain[counted] if kind == "gain" else None
        return np.bincount(self.feature[counted], weights, self.n_features).astype(np.float64)

    # --------------------------------------------------------------------------------------------------------- scores

    def predict(self, X: Any, n_jobs: int | None = None) -> Vector:
        """One score per row; a row's score depends on the row alone.

        Parameters
        ----------
        X : array-like of shape (n_documents, n_features)
            The features; float32 is compared as float64. NaN is allowed.
        n_jobs : int, default=None
            Number of threads; None uses all cores.

        Returns
        -------
        scores : ndarray of shape (n_documents,)
            The scores.
        """
        rows, scores = self._rows(X), np.empty(len(X))
        score = score_on(rows.dtype)
        nodes, mask, by_place = self._prepared

        def task(first: int, last: int) -> None:
            score(first, last, rows, nodes, mask, self.value, by_place, scores)

        drive.run(task, _chunks(len(rows)), n_jobs)
        if self.coef is not None:
            scores += linear_scores(rows, self.coef, n_jobs) + self.offset
        elif self.offset:
            scores += self.offset
        return scores

    def contributions(self, X: Any, n_jobs: int | None = None) -> Vector:
        """How much each feature adds to each score: Shapley values of the trees (path-dependent TreeSHAP).

        A feature that is not known takes each side of a node as often as the training documents did. The linear part
        adds coef_j x_j to feature j.

        Parameters
        ----------
        X : array-like of shape (n_documents, n_features)
            The features.
        n_jobs : int, default=None
            Number of threads; None uses all cores.

        Returns
        -------
        contributions : ndarray of shape (n_documents, n_features + 1)
            The last column is what the score is without any feature. The sum of a row is its score.

        Raises
        ------
        RankwiseError
            If the numbers of training documents are not known.

        References
        ----------
        S. M. Lundberg, G. G. Erion, S.-I. Lee (2018). Consistent individualized feature attribution for tree ensembles.
        arXiv:1802.03888, section 3.
        """
        rows = self._rows(X)
        paths, expected = self._paths
        rule_start, points, weights = quadrature_rules(int(np.diff(paths.part_start).max(initial=0)))
        found = np.zeros((len(rows), self.n_features + 1))
        contribute = contribute_on(rows.dtype)
        nodes = self._prepared[0]

        def task(first: int, last: int) -> None:
            contribute(first, last, rows, nodes, self.value, paths, rule_start, points, weights, found)

        drive.run(task, _chunks(len(rows), 1 << 8), n_jobs)
        if self.coef is not None:
            found[:, :-1] += rows * self.coef
        found[:, -1] += expected + self.offset
        return found

    def _rows(self, X: Any) -> Floats:
        """The rows as the kernels take them."""
        rows: Floats = checks.as_features(X, self.n_features).view(np.ndarray)  # a plain array even of a memory map
        if rows.shape[1] != self.n_features:
            raise DataError(f"the trees were grown on {self.n_features} features: found {rows.shape[1]}")
        return rows

    @cached_property
    def _prepared(self) -> tuple[Nodes, NDArray[np.uint64], Vector]:
        """The nodes for the kernels, the leaves that each rules out, and the leaf values from left to right."""
        used, slot = np.unique(self.feature, return_inverse=True)
        kind = np.where(self.categorical, CATEGORICAL, np.where(self.flips_zero, FLIPPED, NUMERICAL)).astype(np.uint8)
        nan_left = self.nan_left.astype(np.uint8)
        size, place = (np.zeros(len(self.feature), np.int64) for _ in range(2))
        mask = np.zeros(len(self.feature), np.uint64)
        by_place = np.empty(len(self.value))
        leaf_order(self.start, self.left, self.right, self.value, size, place, mask, by_place)
        nodes = Nodes(
            self.start,
            used,
            slot.astype(np.int64),
            self.threshold,
            kind,
            nan_left,
            self.left,
            self.right,
            self.word_start,
            self.words,
        )
        for array in (*nodes, mask, by_place):
            array.setflags(write=False)
        return nodes, mask, by_place

    @cached_property
    def _paths(self) -> tuple[Paths, float]:
        """The way to every leaf, and the mean of the trees over the training documents."""
        if (self.node_count == 0).any():
            raise RankwiseError("contributions need the number of training documents at every node, which is not known")
        return paths_of(
            self.start, self.feature, (self.left, self.right), (self.node_count, self.leaf_count), self.value
        )

    # ----------------------------------------------------------------------------------------------- shape functions

    @property
    def additive(self) -> bool:
        """Whether the score is a sum of functions of single features: no tree splits on two features."""
        tree = np.repeat(np.arange(self.n_trees), np.diff(self.start))
        return len(np.unique(np.stack([tree, self.feature]), axis=1).T) == len(np.unique(tree))

    def shape_function(self, feature: int) -> ShapeFunction:
        """What a feature adds to the score of an :attr:`additive` ensemble without categories.

        Trees of a single leaf belong to no feature, as the offset does.

        Parameters
        ----------
        feature : int
            The feature.

        Returns
        -------
        shape : ShapeFunction
            Thresholds and values.

        Raises
        ------
        RankwiseError
            If there is no such function.
        """
        place = checks.as_whole(feature, "feature", 0, self.n_features - 1)
        own = self.feature == place
        if not self.additive or self.categorical[own].any():
            raise RankwiseError("shape functions exist if every tree splits on one feature, and that is a number")
        cuts = self.threshold[own]
        if (np.abs(cuts) <= ZERO).any() or (self.missing[own] == MISSING_ZERO).any():
            # what counts as 0 is an interval of its own
            cuts = np.append(cuts[np.abs(cuts) > ZERO], [np.nextafter(-ZERO, -np.inf), ZERO])
        cuts = np.unique(cuts)
        rows = np.zeros((len(cuts) + 2, self.n_features))
        rows[:, place] = [*cuts, np.inf, np.nan]
        values = self._of_feature(place).predict(rows)
        return ShapeFunction(cuts, values[:-1], float(values[-1]))

    def _of_feature(self, feature: int) -> "TreeEnsemble":
        """The trees that split on a feature, without offset and linear part."""
        tree = np.repeat(np.arange(self.n_trees), np.diff(self.start))
        kept = np.isin(np.arange(self.n_trees), tree[self.feature == feature])
        nodes = kept[tree]
        leaves = np.repeat(kept, np.diff(self.start) + 1)
        by_node = ("feature", "threshold", "left", "right", "missing", "default_left", "gain", "node_count")
        parts = {name: getattr(self, name)[nodes] for name in by_node}
        parts |= {name: getattr(self, name)[leaves] for name in ("value", "leaf_count")}
        lengths = np.diff(self.word_start)
        return TreeEnsemble(
            self.n_features,
            **parts,
            start=np.append(0, np.cumsum(np.diff(self.start)[kept])),
            word_start=np.append(0, np.cumsum(lengths[nodes])),
            words=self.words[np.repeat(nodes, lengths)],
        )


def _chunks(count: int, size: int = _CHUNK) -> list[tuple[int, int]]:
    """Ranges of rows."""
    return [(first, min(first + size, count)) for first in range(0, count, size)]


# ------------------------------------------------------------------------------------------------------------- checks


def _check(trees: TreeEnsemble) -> None:
    """Raise an error unless the arrays are trees over the features, with finite scores."""
    for name, dtype in _DTYPES.items():
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


def _check_values(trees: TreeEnsemble) -> None:
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
    coef = np.zeros(1) if trees.coef is None else trees.coef
    if trees.coef is not None and (coef.shape != (trees.n_features,) or coef.dtype != np.float64):
        raise RankwiseError(f"the linear part has type {coef.dtype} and shape {coef.shape}")
    first_leaf = trees.start[:-1] + np.arange(trees.n_trees)
    largest = np.maximum.reduceat(np.abs(trees.value), first_leaf) if trees.n_trees else np.zeros(1)
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isfinite(largest.sum() + abs(trees.offset) + np.abs(coef).sum()):
            raise RankwiseError("the leaves, offset or weights of the trees add up to more than float64 can hold")


def _check_structure(trees: TreeEnsemble) -> None:
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
