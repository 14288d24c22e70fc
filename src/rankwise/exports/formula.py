"""What a fitted ranker computes, without how it was trained.

That is a weighted sum, a sum of steps or trees, linear weights on a map, or a network over named features, or a
weighted mean of scores that are normalized within a query.

:func:`open_model` finds the ranker and its scaler, and :func:`formula_of` turns them into a formula on raw features.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels.parallel import one_blas_thread
from rankwise._kernels.trees import ZERO
from rankwise._tables import Table
from rankwise.errors import DataError, RankwiseError
from rankwise.exports.map_sums import MapSum
from rankwise.exports.maps import LinearSum, formula_of_map
from rankwise.exports.raw_thresholds import center_and_scale, on_raw_features, raw_thresholds
from rankwise.features.builder import FeatureBuilder
from rankwise.measures._base import Vector
from rankwise.queries import checks
from rankwise.queries.queries import Queries
from rankwise.queries.scaling import Scaler
from rankwise.rankers._base import LinearRanker, Ranker
from rankwise.rankers.boosting.steps import StepScorer, ThresholdRanker
from rankwise.rankers.boosting.tree_checks import MISSING_ZERO
from rankwise.rankers.boosting.tree_ensemble import TreeEnsemble
from rankwise.rankers.fusion.hybrid_ranker import HybridRanker
from rankwise.rankers.fusion.normalizers import Fusion
from rankwise.rankers.neural.network import Network
from rankwise.rankers.neural.neural_ranker import NeuralRanker

Scaling = Scaler | Literal["none"] | None

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
    missing : {"error", "zero", "min"}
        How the ranker treats missing values.
    """

    names: tuple[str, ...]
    weight: Vector
    constant: float = 0.0
    center: Vector | None = None
    scale: Vector | None = None
    missing: checks.Missing = "error"

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
    """s(x) = the sum of the leaves of x in all trees + a weighted sum + constant, on raw features.

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
        The weighted sum, without a constant of its own.
    missing : {"error", "zero", "min", "keep"}
        How the ranker treats missing values.
    """

    names: tuple[str, ...]
    trees: TreeEnsemble
    constant: float = 0.0
    linear: WeightedSum | None = None
    missing: checks.Missing = "error"

    @classmethod
    def of(
        cls,
        trees: TreeEnsemble,
        names: tuple[str, ...],
        missing: checks.Missing = "error",
        scaler: Scaler | None = None,
    ) -> "TreeSum":
        """The formula of an ensemble that sees raw features, or the features that a scaler makes."""
        linear = None if trees.coef is None else WeightedSum(names, trees.coef, missing=missing)
        # what counts as 0 in the ensemble is one side of a threshold: engines then need no rule for tiny values
        threshold = np.where(
            np.abs(trees.threshold) > ZERO, trees.threshold, _AROUND_ZERO[(trees.threshold >= 0).astype(int)]
        )
        if scaler is not None:
            if (trees.missing == MISSING_ZERO).any() or trees.categorical.any():
                raise RankwiseError(
                    "trees that treat 0 as missing, or a feature as categories, cannot be moved to raw features: learn "
                    "from raw features, or pass scaling='none' if the engine gets scaled ones"
                )
            threshold = raw_thresholds(scaler, trees.feature, threshold)
            linear = None if linear is None else _scale(linear, scaler)
        return cls(names, replace(trees, threshold=threshold), trees.offset, linear, missing)

    @property
    def used(self) -> list[int]:
        """Features that some tree or the weighted sum uses; the first one where there is none."""
        linear = set() if self.linear is None else set(np.flatnonzero(self.linear.weight).tolist())
        return sorted(linear.union(self.trees.feature.tolist())) or [0]

    @property
    def decides_missing(self) -> bool:
        """Whether missing values reach the trees, and these decide where they go."""
        return self.missing == "keep" or bool(self.trees.missing.any())

    def raw_linear(self) -> tuple[list[tuple[int, float]], float]:
        """(feature, weight) of the weighted sum on raw features, and the constant with what the scaling adds to it."""
        if self.linear is None:
            return [], self.constant
        own = self.linear.raw()
        return [(place, float(own.weight[place])) for place in own.used], self.constant + own.constant


@dataclass(frozen=True)
class NetworkSum:
    """s(x) = constant + the score of a network, on raw features.

    Attributes
    ----------
    names : tuple of str
        The names of the features.
    network : Network
        The network, with a standardization of raw features.
    constant : float
        The constant.
    missing : {"error", "zero", "min"}
        How the ranker treats missing values.
    """

    names: tuple[str, ...]
    network: Network
    constant: float = 0.0
    missing: checks.Missing = "error"

    @classmethod
    def of(
        cls, network: Network, names: tuple[str, ...], missing: checks.Missing = "error", scaler: Scaler | None = None
    ) -> "NetworkSum":
        """The formula of a network that sees raw features, or the features that a scaler makes."""
        if scaler is not None:
            # a feature that did not vary has no weight in the network
            _, center, scale = center_and_scale(scaler)
            # ((x - c) / s - C) / S = (x - (c + s C)) / (s S)
            network = replace(network, center=center + scale * network.center, scale=scale * network.scale)
        return cls(names, network, missing=missing)


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


def formula_of(
    ranker: Ranker, scaler: Scaler | None, feature_names: Sequence[str] | None
) -> tuple[Formula | NetworkSum | MapSum | FusionFormula, list[str]]:
    """What a fitted ranker computes on raw features.

    Parameters
    ----------
    ranker : Ranker
        The fitted ranker.
    scaler : Scaler or None
        The scaler through which it sees raw features.
    feature_names : sequence of str or None
        The names of the features in the engine.

    Returns
    -------
    formula : WeightedSum, StepSum, TreeSum, NetworkSum, MapSum or FusionFormula
        The formula.
    notes : list of str
        Notes about names and missing values.

    Raises
    ------
    RankwiseError
        If the ranker is neither a weighted sum nor a sum of steps or trees, nor linear weights on a map, nor a network.
    """
    names, notes = _names(ranker, feature_names)
    ranker = ranker._scoring_model()  # a committee of linear rankers is a linear ranker
    if ranker.missing == "min":
        notes.append(
            "the ranker fills missing values with the smallest of their query (missing='min'), which no engine does: "
            "send complete features"
        )
    if isinstance(ranker, LinearRanker):
        constant = float(getattr(ranker, "intercept_", 0.0))
        found = WeightedSum(names, ranker.coef_.astype(np.float64), constant, missing=ranker.missing)
        return (found if scaler is None else _scale(found, scaler)), notes
    if isinstance(ranker, ThresholdRanker):
        steps = ranker.steps_
        parts = steps["feature"].astype(np.int64), steps["threshold"].copy(), steps["alpha"].copy()
        if scaler is None:
            return StepSum(names, *parts, missing=ranker.missing), notes
        feature, threshold, alpha, constant = on_raw_features(scaler, *parts)
        return StepSum(names, feature, threshold, alpha, constant, ranker.missing), notes
    trees = getattr(ranker, "ensemble_", None)
    if isinstance(trees, TreeEnsemble):
        return TreeSum.of(trees, names, ranker.missing, scaler), notes
    if isinstance(ranker, NeuralRanker):
        return NetworkSum.of(ranker.network_, names, ranker.missing, scaler), notes
    if isinstance(ranker, HybridRanker):
        if scaler is not None:
            raise RankwiseError(f"{ranker.name} normalizes scores itself: fit it on raw scores, without a Scaler")
        return FusionFormula(names, ranker.weights_, ranker._fusion()), notes
    mapped = formula_of_map(ranker, names, scaler)
    if isinstance(mapped, LinearSum):
        own = (mapped.weight, mapped.constant, mapped.center, mapped.scale)
        return WeightedSum(names, *own, missing=ranker.missing), notes
    if mapped is not None:
        return mapped, notes
    raise RankwiseError(
        f"{ranker.name} cannot be exported: only weighted sums of features, and sums of steps or trees, can be"
    )


def open_model(model: Any, scaling: Scaling = None, sample: Queries | None = None) -> tuple[Ranker, Scaler | None]:
    """Find the fitted ranker, and the scaler through which it sees raw features.

    Parameters
    ----------
    model : Ranker or Pipeline
        A fitted ranker, or scikit-learn's pipeline of a scaler and a ranker.
    scaling : Scaler or "none", default=None
        The scaler, or "none" where the engine gets scaled features; None takes what the ranker or the sample says.
    sample : Queries, default=None
        A sample, which may know its scaler.

    Returns
    -------
    ranker : Ranker
        The ranker.
    scaler : Scaler or None
        The scaler.

    Raises
    ------
    RankwiseError
        If the scaling is one that no engine can apply.
    """
    scaler: Any = scaling
    if hasattr(model, "steps") and not isinstance(model, Ranker):  # a pipeline of scikit-learn's
        *before, (_, ranker) = model.steps
        if before and isinstance(before[0][1], FeatureBuilder):  # which the ranker knows
            before = before[1:]
            if not before and isinstance(ranker, Ranker):
                return open_model(ranker, scaling, sample)
        if len(before) != 1 or not isinstance(before[0][1], Scaler) or not isinstance(ranker, Ranker):
            raise RankwiseError("a pipeline must consist of a Scaler and a ranker to be exported, got other steps")
        scaler, model = before[0][1] if scaling is None else scaling, ranker
    if not isinstance(model, Ranker):
        raise RankwiseError(f"export requires a fitted ranker, got {type(model).__name__}")
    model._check_fitted()
    if scaler is None:
        scaler = model.record_.scaler or (None if sample is None else sample.scaling)
    if scaler is None or (isinstance(scaler, str) and scaler == "none"):
        return model, None
    if not isinstance(scaler, Scaler):
        raise RankwiseError(f"scaling must be a fitted Scaler or 'none', got {scaler!r:.60}")
    if scaler.per == "query":
        raise RankwiseError(
            f"{model.name} learned from features scaled within each query, and an engine scores a document without "
            "seeing its query: learn from Scaler(per='set') or raw features, or pass scaling='none' if the engine "
            "gets features that are scaled already"
        )
    scaler._check_fitted()
    if scaler.n_features_in_ != model.n_features_in_:
        raise DataError(
            f"the scaler must have the features of {model.name} ({model.n_features_in_}), got {scaler.n_features_in_}"
        )
    return model, scaler


def _names(ranker: Ranker, given: Sequence[str] | None) -> tuple[tuple[str, ...], list[str]]:
    """The names of the features in the engine, and a note where they are made up."""
    names = checks.as_names(given, ranker.n_features_in_) if given is not None else ranker._names()
    if names is not None:
        for name in names:
            if not name.strip() or not name.isprintable():
                raise DataError(f"the feature name {name!r:.60} cannot be exported: names are printable and not empty")
        return names, []
    count = ranker.n_features_in_
    return tuple(f"f{place}" for place in range(1, count + 1)), [
        f"the ranker knows no names of features: they are called f1 to f{count}; give feature_names="
    ]


def _scale(formula: WeightedSum, scaler: Scaler) -> WeightedSum:
    """The sum over features that the scaler makes; a feature that did not vary counts nothing."""
    varies, center, scale = center_and_scale(scaler)
    return replace(formula, weight=np.where(varies, formula.weight, 0.0), center=center, scale=scale)
