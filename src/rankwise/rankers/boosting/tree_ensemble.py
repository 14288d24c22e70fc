"""An immutable sum of decision trees: scores, contributions of features, importance, and its arrays for a file."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels import parallel, trees
from rankwise._kernels.symmetric_scores import SymmetricTrees, score_symmetric_on
from rankwise._store import Store, digest_state
from rankwise.errors import DataError, RankwiseError
from rankwise.queries import checks
from rankwise.queries.checks import Floats
from rankwise.rankers._base import linear_scores
from rankwise.rankers.boosting.catboost_file import read_catboost
from rankwise.rankers.boosting.lightgbm_file import read_lightgbm
from rankwise.rankers.boosting.normal_sum import BLOCK, TABLE, NormalSum
from rankwise.rankers.boosting.symmetric_form import symmetric_form
from rankwise.rankers.boosting.tree_arrays import TreesOfFile
from rankwise.rankers.boosting.tree_checks import DTYPES, MISSING_NAN, MISSING_NONE, MISSING_ZERO, check_trees
from rankwise.rankers.boosting.xgboost_file import read_xgboost

Vector = NDArray[np.float64]
Wholes = NDArray[np.int64]
Bytes = NDArray[np.uint8]

_PREFIX, _NORMAL, _FILL, _DIVISOR = "trees.", "trees.normal_", "trees.fill", "trees.divisor"
# Thresholds that NaN alone is above: of today, and of files of before.
_ABOVE_ALL = [float(np.finfo(kind).max) for kind in (np.float64, np.float32)]


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
    r"""s(x) = sum_t value_t(leaf of x in tree t) / divisor + offset + sum_j coef_j x_j + sum_j w_j z_j(x_j), in float64.

    z_j are normal scores. Leaves are added in the order of the trees, beginning with 0, and what follows is added to
    their sum as a whole. A
    value x goes left at a node if x <= threshold. Values of at most 1e-35 (as a float32) in size count as 0. NaN counts
    as 0 where ``missing`` is 0; where it is 1, NaN and 0 go to the default side; where it is 2, NaN does. At a
    categorical node a value goes left if its whole part is in a set of categories; negative values go right, and so does
    NaN unless ``missing`` is 2 and the default side the left one. All this is what LightGBM does, whose own sets never
    have NaN.

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
        Training documents that came to each node, or their weight in units of the tree; 0 where that is not known.
    leaf_count : ndarray of int64, shape (n_leaves,)
        The same of each leaf.
    offset : float
        A constant.
    coef : ndarray of float64, shape (n_features,), or None
        Weights of a linear part.
    normal : NormalSum or None
        Weights of normal scores.
    fill : ndarray of float64, shape (n_features,), or None
        What NaN counts as in the linear part and for normal scores, where None makes the score NaN; trees see NaN.
    divisor : float
        What the sum of the leaves is divided by: the number of trees of a random forest.
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
    normal: NormalSum | None = None
    fill: Vector | None = None
    divisor: float = 1.0

    def __post_init__(self) -> None:
        for name in (*DTYPES, "coef", "fill"):
            array = getattr(self, name)
            if array is not None:
                own = np.array(array)  # a copy that nobody can change
                own.setflags(write=False)
                object.__setattr__(self, name, own)
        check_trees(self)

    def __reduce__(self) -> tuple[Any, ...]:
        # a copy is made of the fields alone: arrays that were prepared for the kernels would come back writable
        return type(self), tuple(getattr(self, field.name) for field in fields(self))

    # -------------------------------------------------------------------------------------------------- constructors

    @classmethod
    def of(cls, found: TreesOfFile) -> Self:
        """The trees of a booster's file."""
        return cls(found.n_features, **found.arrays, offset=found.offset, divisor=found.divisor)

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
        return cls.of(read_lightgbm(text))

    @classmethod
    def from_xgboost_json(cls, text: str | bytes) -> Self:
        """The trees of an XGBoost model; a row falls into the same leaves, which are added in float64, not in float32.

        The second derivatives of the loss, by which XGBoost weights documents, stand for the numbers of training
        documents. Values of at most 1e-35 in size count as 0, unlike in XGBoost, and categories are whole numbers.

        Parameters
        ----------
        text : str or bytes
            What ``Booster.save_raw("json")`` or ``Booster.save_raw("ubj")`` returns.

        Returns
        -------
        ensemble : TreeEnsemble
            The trees. Their scores are those of ``predict(X, output_margin=True)``, rounded less.

        Raises
        ------
        FileFormatError
            If the text is no XGBoost model with one score per row, or is damaged.
        """
        return cls.of(read_xgboost(text))

    @classmethod
    def from_catboost_json(cls, text: str | bytes) -> Self:
        """The trees of a CatBoost model; a row falls into the same leaves, and its score has the same bits.

        CatBoost does not save gains. In their place is the variance, over training documents, between the leaves that a
        split divides, from which CatBoost computes importances, too. Values of at most 1e-35 in size count as 0, unlike
        in CatBoost.

        Parameters
        ----------
        text : str or bytes
            What ``save_model(path, format="json")`` writes.

        Returns
        -------
        ensemble : TreeEnsemble
            The trees. Their scores are those of ``predict(X, prediction_type="RawFormulaVal")``. Where the documents
            were weighted, their weights stand for their numbers.

        Raises
        ------
        FileFormatError
            If the text is no CatBoost model with one score per row, is damaged, or has features that CatBoost computes
            itself: statistics of categories, of texts and of embeddings.
        """
        return cls.of(read_catboost(text))

    @classmethod
    def stumps(cls, n_features: int, feature: Wholes, threshold: Vector, alpha: Vector) -> Self:
        """Steps alpha 1[x > threshold] as trees of one node: the left leaf is 0, the right one alpha."""
        count = len(feature)
        arrays = {name: np.zeros(count, dtype) for name, dtype in DTYPES.items()}
        arrays |= {name: np.zeros(size, DTYPES[name]) for name, size in (("leaf_count", 2 * count), ("words", 0))}
        arrays |= {"start": np.arange(count + 1), "word_start": np.zeros(count + 1, np.int64)}
        arrays |= {"left": np.full(count, -1), "right": np.full(count, -2)}
        arrays |= {"feature": feature.astype(np.int64), "threshold": np.asarray(threshold)}
        return cls(n_features, **arrays | {"value": np.column_stack((np.zeros(count), alpha)).ravel()})

    @classmethod
    def from_arrays(cls, store: Store, n_features: int) -> Self:
        """The ensemble with these :meth:`arrays`, which may come from a stranger's file.

        Parameters
        ----------
        store : Store
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
        dtypes = {**DTYPES, "offset": np.float64, "coef": np.float64}
        found: dict[str, Any] = {name: store.array(_PREFIX + name, dtype, (None,)) for name, dtype in dtypes.items()}
        offset, coef = found.pop("offset"), found.pop("coef")
        if len(offset) != 1 or len(coef) not in (0, n_features):
            raise RankwiseError(f"its trees have {len(offset)} offsets and {len(coef)} weights of features")
        table = {
            name: store.array(_NORMAL + name, dtype, (None,))
            for name, dtype in TABLE.items()
            if _NORMAL + name in store
        }
        if len(table) not in (0, len(TABLE)):
            raise RankwiseError(f"the normal scores of its trees lack {', '.join(sorted(TABLE.keys() - table.keys()))}")
        found |= {"offset": float(offset[0]), "coef": coef if len(coef) else None}
        found |= {"normal": NormalSum(**table) if table else None}
        if _DIVISOR in store:
            found["divisor"] = float(store.array(_DIVISOR, np.float64, (1,))[0])
        return cls(n_features, **found, fill=store.array(_FILL, np.float64, (None,)) if _FILL in store else None)

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

        Raises
        ------
        RankwiseError
            If their normal scores are not of one scaler, or they count NaN as different values.
        """
        if not len(ensembles):
            raise RankwiseError("concat requires at least one ensemble")
        factors = checks.as_vector(
            [1.0 / len(ensembles)] * len(ensembles) if weights is None else weights, len(ensembles), "weights"
        )
        ensembles = [one.as_sum for one in ensembles]
        widths = sorted({one.n_features for one in ensembles})
        if len(widths) > 1:
            raise RankwiseError(
                f"concat requires ensembles with the same number of features, got {widths[0]} and {widths[-1]}"
            )
        joined = {name: np.concatenate([getattr(one, name) for one in ensembles]) for name in DTYPES}
        for name in ("start", "word_start"):  # offsets go on where those of the ensemble before ended
            pieces = [np.diff(getattr(one, name)) for one in ensembles]
            joined[name] = np.concatenate([[0], np.cumsum(np.concatenate(pieces))]).astype(np.int64)
        pairs = list(zip(factors.tolist(), ensembles, strict=True))
        joined["value"] = np.concatenate([factor * one.value for factor, one in pairs])
        joined["gain"] = np.concatenate([abs(factor) * one.gain for factor, one in pairs])
        linear = [factor * one.coef for factor, one in pairs if one.coef is not None]
        offset = sum(factor * one.offset for factor, one in pairs)
        normal = [(one.normal, factor) for factor, one in pairs if one.normal is not None]
        fills = [one.fill for one in ensembles if one.fill is not None]
        if any(not np.array_equal(fill, fills[0]) for fill in fills):
            raise RankwiseError("concat requires ensembles that count NaN as the same values, got different fill")
        return cls(
            widths[0],
            **joined,
            offset=float(offset),
            coef=sum(linear[1:], linear[0]) if linear else None,
            normal=NormalSum.total(*zip(*normal, strict=True)) if normal else None,
            fill=fills[0] if fills else None,
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays by name, for :meth:`from_arrays`."""
        found = {_PREFIX + name: getattr(self, name) for name in DTYPES}
        coef = np.empty(0) if self.coef is None else self.coef
        found |= {f"{_PREFIX}offset": np.array([self.offset]), f"{_PREFIX}coef": coef}
        if self.normal is not None:
            found |= {_NORMAL + name: getattr(self.normal, name) for name in TABLE}
        found |= {} if self.fill is None else {_FILL: self.fill}
        return found if self.divisor == 1 else found | {_DIVISOR: np.array([self.divisor])}

    # ---------------------------------------------------------------------------------------------------------- facts

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the arrays."""
        return digest_state({"n_features": self.n_features}, self.arrays())

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.start) - 1

    @property
    def n_leaves(self) -> int:
        """Number of leaves of all trees."""
        return len(self.value)

    @cached_property
    def as_sum(self) -> "TreeEnsemble":
        """The same with each leaf divided, and so rounded, in place of their sum."""
        return self if self.divisor == 1 else replace(self, value=self.value / self.divisor, divisor=1.0)

    @cached_property
    def categorical(self) -> NDArray[np.bool_]:
        """Which nodes are categorical."""
        return np.diff(self.word_start) > 0

    @cached_property
    def nan_left(self) -> NDArray[np.bool_]:
        """At which nodes NaN goes left."""
        zero, default = self.threshold >= 0, self.default_left == 1
        number = np.where(self.missing == MISSING_NONE, zero, default)
        return np.asarray(np.where(self.categorical, (self.missing == MISSING_NAN) & default, number), np.bool_)

    @cached_property
    def flips_zero(self) -> NDArray[np.bool_]:
        """At which nodes 0 goes to the other side than its threshold has it, because it counts as missing."""
        moved = (self.missing == MISSING_ZERO) & ((self.threshold >= 0) != (self.default_left == 1))
        return np.asarray(moved & ~self.categorical, np.bool_)

    @property
    def refuses_missing(self) -> bool:
        """Whether a row with NaN has no score."""
        return self.fill is None and (self.coef is not None or self.normal is not None)

    def __repr__(self) -> str:
        parts = [f"{self.n_trees} trees", f"{self.n_leaves} leaves", f"{self.n_features} features"]
        parts += ["linear part"] * (self.coef is not None) + ["normal scores"] * (self.normal is not None)
        return f"TreeEnsemble({', '.join(parts)})"

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

    def gain_shares(self) -> Vector:
        """The share of each feature in the gains of all splits; 0 throughout if there are none."""
        gain = self.importance("gain")
        total = math.fsum(gain)
        return gain / total if total else gain

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

        def task(first: int, last: int) -> None:
            self.score_into(rows[first:last], scores[first:last])

        parallel.map_chunks(task, _chunks(len(rows)), n_jobs)
        return scores

    def scores_while_grown(self, X: Any, n_jobs: int | None = None) -> Vector:
        """The scores with their sums in the order of growth: trees are added to the linear part one after the other.

        Parameters
        ----------
        X : array-like of shape (n_documents, n_features)
            The features.
        n_jobs : int, default=None
            Number of threads; None uses all cores.

        Returns
        -------
        scores : ndarray of shape (n_documents,)
            The scores, which differ from those of :meth:`predict` by rounding.
        """
        if self.coef is None:
            return self.predict(X, n_jobs)
        scores = self.first(0).predict(X, n_jobs)
        for number in range(self.n_trees):
            scores += self._taking(np.arange(self.n_trees) == number).predict(X, n_jobs)
        return scores

    def score_into(self, rows: Floats, scores: Vector) -> None:
        """Write the scores of C-contiguous rows of float32 or float64, without checks and on one thread."""
        form = self._symmetric
        if form is not None:
            score_symmetric_on(rows.dtype)(0, len(rows), rows, form, trees.ZERO, scores)
        else:
            nodes, mask, by_place = self._prepared
            trees.score_on(rows.dtype)(0, len(rows), rows, nodes, mask, self.value, by_place, scores)
        if self.divisor != 1:
            scores /= self.divisor
        if self.coef is None and self.normal is None:
            scores += self.offset
            return
        rows = self._filled(rows)
        rest = np.zeros(1) if self.coef is None else linear_scores(rows, self.coef, 1)
        if self.normal is not None:
            rest = rest + self.normal.scores(rows, 1)
        scores += rest + self.offset

    def _filled(self, rows: Floats) -> Floats:
        """Rows as the linear part and the normal scores see them."""
        if self.fill is None and self.normal is None:
            return rows
        rows = rows.astype(np.float64, copy=False)  # where one row has NaN, the others keep their bits
        if self.fill is None or not np.isnan(rows.min(initial=0.0)):
            return rows
        return np.where(np.isnan(rows), self.fill, rows)

    def contributions(self, X: Any, n_jobs: int | None = None) -> Vector:
        """How much each feature adds to each score: Shapley values of the trees (path-dependent TreeSHAP).

        A feature that is not known takes each side of a node as often as the training documents did. The linear part
        adds coef_j x_j to feature j, and normal scores w_j z_j(x_j).

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
        if self.divisor != 1:
            return self.as_sum.contributions(X, n_jobs)
        rows = self._rows(X)
        paths, expected = self._paths
        rule_start, points, weights = trees.quadrature_rules(paths)
        found = np.zeros((len(rows), self.n_features + 1))
        contribute = trees.contribute_on(rows.dtype)
        nodes = self._prepared[0]

        def task(first: int, last: int) -> None:
            contribute(first, last, rows, nodes, self.value, paths, rule_start, points, weights, found)
            filled = self._filled(rows[first:last])
            if self.coef is not None:
                found[first:last, :-1] += filled * self.coef
            if self.normal is not None:
                found[first:last, :-1] += self.normal.normal_scores(filled) * self.normal.weight

        parallel.map_chunks(task, _chunks(len(rows), 1 << 8), n_jobs)
        found[:, -1] += expected + self.offset
        return found

    def _rows(self, X: Any) -> Floats:
        """The rows as the kernels take them."""
        rows: Floats = checks.as_features(X, self.n_features).view(np.ndarray)  # a plain array even of a memory map
        if rows.shape[1] != self.n_features:
            raise DataError(f"the trees were grown on {self.n_features} features, got {rows.shape[1]}")
        return rows

    @cached_property
    def _prepared(self) -> tuple[trees.Nodes, NDArray[np.uint64], Vector]:
        """The nodes for the kernels, the leaves that each rules out, and the leaf values from left to right."""
        used, slot = np.unique(self.feature, return_inverse=True)
        kind = np.where(
            self.categorical, trees.CATEGORICAL, np.where(self.flips_zero, trees.FLIPPED, trees.NUMERICAL)
        ).astype(np.uint8)
        size, place = (np.zeros(len(self.feature), np.int64) for _ in range(2))
        mask = np.zeros(len(self.feature), np.uint64)
        by_place = np.empty(len(self.value))
        trees.leaf_order(self.start, self.left, self.right, self.value, size, place, mask, by_place)
        split = self.threshold, kind, self.nan_left.astype(np.uint8)
        nodes = trees.Nodes(
            self.start, used, slot.astype(np.int64), *split, self.left, self.right, self.word_start, self.words
        )
        for array in (*nodes, mask, by_place):
            array.setflags(write=False)
        return nodes, mask, by_place

    @cached_property
    def _symmetric(self) -> SymmetricTrees | None:
        """The trees for the kernel of symmetric trees, if they are so; it adds the same numbers in the same order."""
        nodes, _, by_place = self._prepared
        return symmetric_form(self, nodes, by_place)

    @cached_property
    def _paths(self) -> tuple[trees.Paths, float]:
        """The way to every leaf, and the mean of the trees over the training documents."""
        roots = self.start[:-1][np.diff(self.start) > 0]
        if (self.node_count[roots] == 0).any():
            raise RankwiseError(
                "contributions require the number of training documents of every tree, which is not known"
            )
        return trees.paths_of(
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
            raise RankwiseError("shape functions require that every tree splits on a single, numeric feature")
        cuts = self.threshold[own]
        if (np.abs(cuts) <= trees.ZERO).any() or (self.missing[own] == MISSING_ZERO).any():
            # what counts as 0 is an interval of its own
            cuts = np.append(cuts[np.abs(cuts) > trees.ZERO], [np.nextafter(-trees.ZERO, -np.inf), trees.ZERO])
        cuts = np.unique(cuts[~np.isin(cuts, _ABOVE_ALL)])
        rows = np.zeros((len(cuts) + 2, self.n_features))
        rows[:, place] = [*cuts, np.nextafter(cuts[-1], np.inf) if len(cuts) else 0.0, np.nan]
        values = self._of_feature(place).predict(rows)
        return ShapeFunction(cuts, values[:-1], float(values[-1]))

    def _of_feature(self, feature: int) -> "TreeEnsemble":
        """The trees that split on a feature, and nothing beside them."""
        tree = np.repeat(np.arange(self.n_trees), np.diff(self.start))
        return self._taking(np.isin(np.arange(self.n_trees), tree[self.feature == feature]))

    def first(self, count: int) -> "TreeEnsemble":
        """The first trees, with what is beside the trees.

        Parameters
        ----------
        count : int
            How many; all if there are fewer.

        Returns
        -------
        ensemble : TreeEnsemble
            The trees.
        """
        beside = {name: getattr(self, name) for name in ("offset", "coef", "normal", "fill")}
        return replace(self._taking(np.arange(self.n_trees) < count), **beside)

    def _taking(self, kept: NDArray[np.bool_]) -> "TreeEnsemble":
        """Some of the trees, and nothing beside them."""
        nodes = np.repeat(kept, np.diff(self.start))
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
            divisor=self.divisor,
        )


def _chunks(count: int, size: int = BLOCK) -> list[tuple[int, int]]:
    """Ranges of rows."""
    return [(first, min(first + size, count)) for first in range(0, count, size)]
