"""What a fitted ranker computes, without how it was trained: a weighted sum or a sum of steps over named features, or a
weighted mean of scores that are normalised within a query.

:func:`opened` finds the ranker and its scaler, and :func:`formula_of` turns them into a formula on raw features.
Thresholds on scaled features become thresholds on raw ones, exact for every float64.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankwise._blas import one_blas_thread
from rankwise._errors import DataError, RankwiseError
from rankwise._tables import Table
from rankwise.data import checks
from rankwise.data.queries import Queries
from rankwise.data.scaling import Scaler
from rankwise.features.builder import FeatureBuilder
from rankwise.features.kernel_maps import FourierFeatures
from rankwise.measures._base import Vector
from rankwise.rankers._base import LinearRanker, Ranker
from rankwise.rankers.boosting.steps import StepScorer, ThresholdRanker
from rankwise.rankers.fusion.hybrid_ranker import HybridRanker
from rankwise.rankers.fusion.normalizers import Fusion
from rankwise.rankers.mapped import MappedRanker
from rankwise.rankers.online.kernel_perceptron import KernelPerceptron

Scaling = Scaler | Literal["none"] | None


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
class FusionFormula:
    """s(x) = the weighted mean of columns that are normalised within the query.

    Attributes
    ----------
    names : tuple of str
        The names of the columns.
    weight : ndarray
        The weights.
    fusion : Fusion
        The normaliser and the mean.
    constant : float
        0: no engine adds a constant here.
    """

    names: tuple[str, ...]
    weight: Vector
    fusion: Fusion
    constant: float = 0.0

    @property
    def as_weighted_sum(self) -> WeightedSum | None:
        """The same as a weighted sum, where nothing is normalised; documents that were not returned count 0."""
        if self.fusion.by_query or self.fusion.combination != "arithmetic_mean":
            return None
        return WeightedSum(self.names, self.weight, missing="zero")


@dataclass(frozen=True)
class FourierSum:
    """s(x) = constant + sum_j cosine_j cos(w_j . x) + sine_j sin(w_j . x), with the frequencies w.

    Attributes
    ----------
    names : tuple of str
        The names of the features.
    frequencies : ndarray, shape (n_frequencies, n_features)
        The frequencies.
    cosine : ndarray
        The weights of the cosines.
    sine : ndarray
        The weights of the sines.
    constant : float
        The constant.
    missing : {"error", "zero", "min"}
        How the ranker treats missing values.
    """

    names: tuple[str, ...]
    frequencies: Vector
    cosine: Vector
    sine: Vector
    constant: float = 0.0
    missing: checks.Missing = "error"


Formula = WeightedSum | StepSum


def formula_of(
    ranker: Ranker, scaler: Scaler | None, feature_names: Sequence[str] | None
) -> tuple[Formula | FusionFormula | FourierSum, list[str]]:
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
    formula : WeightedSum, StepSum, FusionFormula or FourierSum
        The formula.
    notes : list of str
        Notes about names and missing values.

    Raises
    ------
    RankwiseError
        If the ranker is neither a weighted sum nor a sum of steps.
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
        return (found if scaler is None else _scaled(found, scaler)), notes
    if isinstance(ranker, ThresholdRanker):
        steps = ranker.steps_
        parts = steps["feature"].astype(np.int64), steps["threshold"].copy(), steps["alpha"].copy()
        if scaler is None:
            return StepSum(names, *parts, missing=ranker.missing), notes
        feature, threshold, alpha, constant = on_raw_features(scaler, *parts)
        return StepSum(names, feature, threshold, alpha, constant, ranker.missing), notes
    if isinstance(ranker, HybridRanker):
        if scaler is not None:
            raise RankwiseError(f"{ranker.name} normalises scores itself: fit it on raw scores, without a Scaler")
        return FusionFormula(names, ranker.weights_, ranker._fusion()), notes
    waves = _waves(ranker)
    if waves is not None and scaler is None:
        return FourierSum(names, *waves, missing=ranker.missing), notes
    raise RankwiseError(
        f"{ranker.name} cannot be exported: a file for an engine holds a weighted sum of features or a sum of steps"
        + (", and of maps random Fourier features of raw features" if isinstance(ranker, MappedRanker) else "")
    )


def _waves(ranker: Ranker) -> tuple[Vector, Vector, Vector, float] | None:
    """(frequencies, weights of cosines, weights of sines, constant) of linear weights on random Fourier features."""
    if isinstance(ranker, MappedRanker) and isinstance(ranker.ranker_, LinearRanker):
        map_, weights = ranker.transformer_, ranker.ranker_.coef_
        constant = float(getattr(ranker.ranker_, "intercept_", 0.0))
    elif isinstance(ranker, KernelPerceptron):
        map_, weights, constant = getattr(ranker, "map_", None), getattr(ranker.state_, "w", np.empty(0)), 0.0
    else:
        return None
    if type(map_) is not FourierFeatures:
        return None
    half = len(map_.frequencies_)
    weights = weights / np.sqrt(half)
    return map_.frequencies_, weights[:half], weights[half:], constant


def opened(model: Any, scaling: Scaling = None, sample: Queries | None = None) -> tuple[Ranker, Scaler | None]:
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
                return opened(ranker, scaling, sample)
        if len(before) != 1 or not isinstance(before[0][1], Scaler) or not isinstance(ranker, Ranker):
            raise RankwiseError("a pipeline is exported if it is a Scaler and then a ranker: found other steps")
        scaler, model = before[0][1] if scaling is None else scaling, ranker
    if not isinstance(model, Ranker):
        raise RankwiseError(f"export takes a fitted ranker: found {type(model).__name__}")
    model._check_fitted()
    if scaler is None:
        scaler = getattr(model, "scaling_", None) or (None if sample is None else sample.scaling)
    if scaler is None or (isinstance(scaler, str) and scaler == "none"):
        return model, None
    if not isinstance(scaler, Scaler):
        raise RankwiseError(f"scaling is a fitted Scaler, or 'none': found {scaler!r:.60}")
    if scaler.per == "query":
        raise RankwiseError(
            f"{model.name} learned from features scaled within each query, and an engine scores a document without "
            "seeing its query: learn from Scaler(per='set') or raw features, or give scaling='none' if the engine "
            "gets features that are scaled already"
        )
    scaler._check_fitted()
    if scaler.n_features_in_ != model.n_features_in_:
        raise DataError(f"the scaler has {scaler.n_features_in_} features and {model.name} {model.n_features_in_}")
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


def _scaled(formula: WeightedSum, scaler: Scaler) -> WeightedSum:
    """The sum over features that the scaler makes; a feature that did not vary counts nothing."""
    if scaler.how == "log" or scaler.scale_ is None or scaler.center_ is None:
        raise RankwiseError(
            f"{scaler!r} takes logarithms, which linear weights on raw features cannot express: learn from "
            "Scaler('standard'), or give scaling='none' and send scaled features"
        )
    # a scale of 0 marks a feature that was constant in training, which the scaler sets to 0
    varies = scaler.scale_ > 0
    return replace(
        formula,
        weight=np.where(varies, formula.weight, 0.0),
        center=np.where(varies, scaler.center_, 0.0),
        scale=np.where(varies, scaler.scale_, 1.0),
    )


# ---------------------------------------------------------------------------------------- thresholds on raw features


Wholes = NDArray[np.int64]


def on_raw_features(
    scaler: Scaler, feature: Wholes, threshold: Vector, alpha: Vector
) -> tuple[Wholes, Vector, Vector, float]:
    """Move steps from scaled features to raw features.

    A scaler computes z(x) in floating point, and z never falls as x grows; so there is a largest x with z(x) <= t, and
    it is found by bisection over all float64. A feature that did not vary is always z = 0: its steps are part of the
    constant.

    Parameters
    ----------
    scaler : Scaler
        A fitted scaler of a whole set.
    feature : ndarray of int64
        The feature of every step.
    threshold : ndarray
        The threshold of every step, on the scaled feature.
    alpha : ndarray
        The height of every step.

    Returns
    -------
    feature : ndarray of int64
        The features.
    threshold : ndarray
        The thresholds on raw features.
    alpha : ndarray
        The heights.
    constant : float
        The sum of the steps that are always taken.
    """
    if scaler.scale_ is None or scaler.center_ is None:
        raise ValueError("the scaler is one of a whole set")
    varies = scaler.scale_[feature] > 0
    constant = float(alpha[~varies & (threshold < 0)].sum())
    feature, threshold, alpha = feature[varies], threshold[varies], alpha[varies]
    center, scale = scaler.center_[feature], scaler.scale_[feature]

    def z(x: Vector) -> Vector:
        shaped = np.copysign(np.log1p(np.abs(x)), x) if scaler.how == "log" else x
        with np.errstate(over="ignore"):
            return np.asarray((shaped - center) / scale)

    return feature, last_not_above(z, threshold), alpha, constant


def last_not_above(rising: Callable[[Vector], Vector], bound: Vector) -> Vector:
    """For each bound the largest finite x with rising(x) <= bound."""
    most = np.finfo(np.float64).max
    low, high = (_place(np.full(bound.shape, end)) for end in (-most, most))
    # 64 halvings suffice for all float64, since they are searched as whole numbers
    while (low < high).any():
        middle = (low >> 1) + (high >> 1) + ((low | high) & 1)  # rounded up, without overflow
        inside = rising(_value(middle)) <= bound
        low, high = np.where(inside, middle, low), np.where(inside, high, middle - 1)
    return _value(low)


def _place(x: Vector) -> Wholes:
    """float64 as whole numbers in the same order: those below 0 have all bits but the sign flipped."""
    bits = x.view(np.int64)
    return np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)


def _value(place: Wholes) -> Vector:
    """The inverse of :func:`_place`."""
    return np.where(place < 0, place ^ np.int64(2**63 - 1), place).view(np.float64)
