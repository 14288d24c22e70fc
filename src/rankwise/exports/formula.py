"""What a fitted ranker computes, without how it was trained.

That is a weighted sum or a sum of steps or trees over named features, trees with curves beside them, or a weighted mean
of scores that are normalized within a query. Linear weights on a map are in :mod:`rankwise.exports.map_sums`.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels.parallel import one_blas_thread
from rankwise._kernels.trees import ZERO
from rankwise._tables import Table
from rankwise.errors import DataError, RankwiseError
from rankwise.exports.curves import CurveSum
from rankwise.exports.normal_scores import curve_sum
from rankwise.exports.raw_thresholds import center_and_scale, find_varying, raw_thresholds
from rankwise.measures._base import Vector
from rankwise.queries import checks
from rankwise.queries.scaling import Scaler
from rankwise.rankers.boosting.steps import StepScorer
from rankwise.rankers.boosting.tree_checks import MISSING_NAN, MISSING_NONE, MISSING_ZERO
from rankwise.rankers.boosting.tree_ensemble import TreeEnsemble
from rankwise.rankers.fusion.normalizers import Fusion

# What is said of NaN where it is filled in.
MEDIAN = "counts as the median of the feature in training"
# The thresholds that separate what counts as 0 in trees from what is below, and from what is above.
_AROUND_ZERO = np.array([np.nextafter(-ZERO, -np.inf), ZERO])


@dataclass(frozen=True)
class WeightedSum:
    """s(x) = constant + sum_j weight_j (x_j - center_j) / scale_j.

    Attributes
    ----------
    names : tuple of str
        The names of the features.
    weight : ndarray
        The weights.
    constant : float
        The constant.
    center : ndarray or None
        What is subtracted from each feature; None for raw features.
    scale : ndarray or None
        What each feature is divided by; None for raw features.
    missing : {"error", "zero", "min", "keep"}
        How the ranker treats missing values.
    fill : ndarray or None
        What NaN counts as, for ``missing="keep"``.
    """

    names: tuple[str, ...]
    weight: Vector
    constant: float = 0.0
    center: Vector | None = None
    scale: Vector | None = None
    missing: checks.Missing = "error"
    fill: Vector | None = None

    @property
    def used(self) -> list[int]:
        """Features whose weight is not 0; the first one where all are 0, since no engine takes an empty model."""
        return np.flatnonzero(self.weight).tolist() or [0]

    @one_blas_thread()
    def raw(self) -> "WeightedSum":
        """The same sum with the scaling folded into weights and constant."""
        if self.center is None or self.scale is None:
            return self
        weight = self.weight / self.scale
        if not np.isfinite(weight).all():
            place = int(np.argmin(np.isfinite(weight)))
            raise DataError(f"the weight of feature {self.names[place]!r} does not fit into float64 on the raw scale")
        # w (x - c) / s = (w / s) x - w c / s
        constant = self.constant - float(weight @ self.center)
        return replace(self, weight=weight, constant=constant, center=None, scale=None)

    def scale_by(self, scaler: Scaler) -> "WeightedSum":
        """The sum over features that the scaler makes; a feature that did not vary counts nothing."""
        varies, center, scale = center_and_scale(scaler)
        fill = None if self.fill is None else center + scale * self.fill
        return replace(self, weight=np.where(varies, self.weight, 0.0), center=center, scale=scale, fill=fill)

    def as_curves(self) -> CurveSum:
        """The same sum as straight lines, which can say what NaN counts as."""
        own = self.raw()
        return curve_sum(None, own.weight, self.names, own.constant, self.missing, self.fill)


@dataclass(frozen=True)
class StepSum:
    """s(x) = constant + sum_t alpha_t 1[x_f > threshold], on raw features.

    Attributes
    ----------
    names : tuple of str
        The names of the features.
    feature : ndarray of int64
        The feature of every step.
    threshold : ndarray
        The threshold of every step.
    alpha : ndarray
        The height of every step.
    constant : float
        The constant.
    missing : {"error", "zero", "min"}
        How the ranker treats missing values.
    """

    names: tuple[str, ...]
    feature: NDArray[np.int64]
    threshold: Vector
    alpha: Vector
    constant: float = 0.0
    missing: checks.Missing = "error"

    def scale_by(self, scaler: Scaler) -> "StepSum":
        """The sum over features that the scaler makes.

        A scaler computes z(x) in floating point, and z never falls as x grows; so there is a largest x with z(x) <= t,
        and it is found by bisection over all float64. A feature that did not vary is always z = 0: its steps are part
        of the constant.
        """
        varies = find_varying(scaler)[self.feature]
        constant = self.constant + float(self.alpha[~varies & (self.threshold < 0)].sum())
        feature, threshold = self.feature[varies], self.threshold[varies]
        cuts = raw_thresholds(scaler, feature, threshold)
        return replace(self, feature=feature, threshold=cuts, alpha=self.alpha[varies], constant=constant)

    def trees(self) -> list[tuple[int, Vector, Vector]]:
        """Join the steps of each feature."""
        scorer = StepScorer.of(Table({"feature": self.feature, "threshold": self.threshold, "alpha": self.alpha}))
        found = []
        for number, feature in enumerate(scorer.feature.tolist()):
            first, last = int(scorer.start[number]), int(scorer.start[number + 1])
            found.append((feature, scorer.cut[first:last], scorer.worth[first + number : last + number + 1]))
        return found


@dataclass(frozen=True)
class TreeSum:
    """s(x) = the sum of the leaves of x in all trees + a weighted sum or a sum of curves + constant, on raw features.

    A value goes left at a node if it is not above the threshold, or is in the node's set of categories. 0 goes to the
    other side at a node of ``trees.flips_zero``, and NaN goes left at one of ``trees.nan_left``.

    Attributes
    ----------
    names : tuple of str
        The names of the features.
    trees : TreeEnsemble
        The trees; offset and linear part stand below.
    constant : float
        The constant.
    linear : WeightedSum or None
        The weighted sum.
    missing : {"error", "zero", "min", "keep"}
        How the ranker treats missing values.
    curves : CurveSum or None
        In place of the weighted sum: weighted features and normal scores as one broken line per feature, and what NaN
        counts as there.
    """

    names: tuple[str, ...]
    trees: TreeEnsemble
    constant: float = 0.0
    linear: WeightedSum | None = None
    missing: checks.Missing = "error"
    curves: CurveSum | None = None

    @classmethod
    def of(cls, trees: TreeEnsemble, names: tuple[str, ...], missing: checks.Missing = "error") -> "TreeSum":
        """The formula of an ensemble."""
        fill = trees.fill if missing == "keep" else None
        if missing == "zero":  # no gap reaches the trees: where they would send it is of no importance
            trees = replace(
                trees, missing=np.where(trees.missing == MISSING_NAN, np.uint8(MISSING_NONE), trees.missing)
            )
        linear, curves = None, None
        if trees.normal is not None or (trees.coef is not None and fill is not None):
            curves = curve_sum(trees.normal, trees.coef, names, 0.0, missing, fill)
        elif trees.coef is not None:
            linear = WeightedSum(names, trees.coef, missing=missing)
        # what counts as 0 in the ensemble is one side of a threshold: engines then need no rule for tiny values
        threshold = np.where(
            np.abs(trees.threshold) > ZERO, trees.threshold, _AROUND_ZERO[(trees.threshold >= 0).astype(int)]
        )
        return cls(names, replace(trees, threshold=threshold), trees.offset, linear, missing, curves)

    def scale_by(self, scaler: Scaler) -> "TreeSum":
        """The sum over features that the scaler makes."""
        trees = self.trees
        if (trees.missing == MISSING_ZERO).any() or trees.categorical.any():
            raise RankwiseError(
                "trees that treat 0 as missing, or a feature as categories, cannot be moved to raw features: learn "
                "from raw features, or pass scaling='none' if the engine gets scaled ones"
            )
        linear = None if self.linear is None else self.linear.scale_by(scaler)
        curves = None if self.curves is None else self.curves.scale_by(scaler)
        trees = replace(trees, threshold=raw_thresholds(scaler, trees.feature, trees.threshold))
        return replace(self, trees=trees, linear=linear, curves=curves)

    @property
    def used(self) -> list[int]:
        """Features that some tree, the weighted sum or a curve uses; the first one where there is none."""
        rest = set() if self.linear is None else set(np.flatnonzero(self.linear.weight).tolist())
        rest |= set() if self.curves is None else set(self.curves.used)
        return sorted(rest.union(self.trees.feature.tolist())) or [0]

    @property
    def decides_missing(self) -> bool:
        """Whether missing values reach the trees, and these decide where they go."""
        return self.missing == "keep" or bool(self.trees.missing.any())

    def raw_linear(self) -> tuple[list[tuple[int, float]], float]:
        """(feature, weight) of the weighted sum on raw features, and the constant of the whole."""
        constant = self.constant + (0.0 if self.curves is None else self.curves.constant)
        if self.linear is None:
            return [], constant
        own = self.linear.raw()
        return [(place, float(own.weight[place])) for place in own.used], constant + own.constant


@dataclass(frozen=True)
class FusionFormula:
    """s(x) = the weighted mean of columns that are normalized within the query.

    Attributes
    ----------
    names : tuple of str
        The names of the columns.
    weight : ndarray
        The weights.
    fusion : Fusion
        The normalizer and the mean.
    constant : float
        0: no engine adds a constant here.
    """

    names: tuple[str, ...]
    weight: Vector
    fusion: Fusion
    constant: float = 0.0

    @property
    def as_weighted_sum(self) -> WeightedSum | None:
        """The same as a weighted sum, where nothing is normalized; documents that were not returned count 0."""
        if self.fusion.by_query or self.fusion.combination != "arithmetic_mean":
            return None
        return WeightedSum(self.names, self.weight, missing="zero")


Formula = WeightedSum | StepSum | TreeSum


def fills_gaps(formula: object) -> bool:
    """Whether NaN counts as the median of the feature in a sum of curves, or in the one beside trees."""
    curves = formula.curves if isinstance(formula, TreeSum) else formula
    return isinstance(curves, CurveSum) and curves.fill is not None
