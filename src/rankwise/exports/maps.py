"""The formula of linear weights on a map: which maps can be written, and what stands before them."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankwise._kernels import mercer
from rankwise._kernels.parallel import one_blas_thread
from rankwise.errors import RankwiseError
from rankwise.exports.curves import CurveSum, Piece, bin_curves, periods, scale_pieces, spline_curves, value_of
from rankwise.exports.formula import WeightedSum
from rankwise.exports.map_sums import FourierSum, KernelSum, MapSum, ProductSum
from rankwise.exports.normal_scores import broken_lines, normal_sum
from rankwise.exports.raw_thresholds import center_and_scale
from rankwise.features.kernel_maps import FourierFeatures, KernelPCAMap
from rankwise.measures._base import Vector
from rankwise.queries import checks
from rankwise.queries.scaling import Scaler
from rankwise.rankers._base import LinearRanker, Ranker
from rankwise.rankers.mapped import MappedRanker
from rankwise.rankers.online.kernel_perceptron import KernelPerceptron

# Products of features that a file may hold, and those that are counted to find out how many there are.
_MOST_PRODUCTS, _MOST_COUNTED = 20_000, 1_000_000
_NEVER = float(np.finfo(np.float64).max)  # the scale of a feature that counts nothing


@dataclass(frozen=True)
class Standardized:
    """z = (x - center) / scale, made of steps that each rise with the feature; what weights on z are added to.

    Attributes
    ----------
    names : tuple of str
        The names of the features.
    missing : {"error", "zero", "min"}
        How the ranker treats missing values.
    center : ndarray
        What is subtracted from each feature.
    scale : ndarray
        What each feature is divided by; the largest number for a feature that is always 0.
    constant : float
        The constant of the sum.
    steps : tuple of callable
        What computes z of the values of one feature, given the number of the feature, as the ranker does.
    """

    names: tuple[str, ...]
    missing: checks.Missing
    center: Vector
    scale: Vector
    constant: float = 0.0
    steps: tuple[Callable[[Vector, int], Vector], ...] = ()

    @classmethod
    def of(cls, names: tuple[str, ...], missing: checks.Missing, scaler: Scaler | None) -> "Standardized":
        """Raw features, or those of a scaler."""
        nothing = cls(names, missing, np.zeros(len(names)), np.ones(len(names)))
        if scaler is None:
            return nothing
        varies, center, scale = center_and_scale(scaler)
        return nothing.then(center, np.where(varies, scale, _NEVER))

    @property
    def base(self) -> dict[str, Any]:
        """What every formula on z begins with."""
        return {"names": self.names, "missing": self.missing, "constant": self.constant}

    @property
    def scaled(self) -> dict[str, Any]:
        """What every formula on z that standardizes by itself begins with."""
        return {**self.base, "center": self.center, "scale": self.scale}

    def then(
        self, center: Vector, scale: Vector, step: Callable[[Vector, int], Vector] | None = None
    ) -> "Standardized":
        """The same with one more step: (z - center) / scale, unless ``step`` computes that by other means."""

        def plain(x: Vector, feature: int) -> Vector:
            moved: Vector = (x - center[feature]) / scale[feature]
            return moved

        with np.errstate(over="ignore"):
            together = np.minimum(self.scale * scale, _NEVER)
        return replace(
            self, center=self.center + self.scale * center, scale=together, steps=(*self.steps, step or plain)
        )

    def rising(self, feature: int) -> Callable[[Vector], Vector] | None:
        """What computes z of one feature; None for raw features."""

        def z(x: Vector) -> Vector:
            with np.errstate(over="ignore"):
                for step in self.steps:
                    x = step(x, feature)
            return x

        return z if self.steps else None


@one_blas_thread()
def formula_of_map(ranker: Ranker, names: tuple[str, ...], scaler: Scaler | None) -> MapSum | WeightedSum:
    """What a ranker on a map computes on raw features.

    Parameters
    ----------
    ranker : Ranker
        The fitted ranker.
    names : tuple of str
        The names of the features.
    scaler : Scaler or None
        The scaler through which it sees raw features.

    Returns
    -------
    MapSum or WeightedSum
        The formula.

    Raises
    ------
    RankwiseError
        If the ranker has no map, or one that cannot be written.
    """
    before = Standardized.of(names, ranker.missing, scaler)
    if isinstance(ranker, KernelPerceptron):
        return _of_perceptron(ranker, before)
    if not isinstance(ranker, MappedRanker):
        raise RankwiseError(
            f"{ranker.name} cannot be exported: only weighted sums of features, and sums of steps or trees, can be"
        )
    inside = ranker.ranker_._scoring_model()
    if not isinstance(inside, LinearRanker):
        raise RankwiseError(
            f"{ranker.name} cannot be exported with {inside.name} on its map: files hold linear weights on a map"
        )
    weights = inside.coef_.astype(np.float64)
    before = replace(before, constant=float(getattr(inside, "intercept_", 0.0)))
    *scalers, last = _steps(ranker.transformer_)
    if type(last).__name__ in _SCALERS:
        scalers, last = [*scalers, last], None
    for step in scalers:
        before = _scale(before, step, ranker)
    if last is None:
        return WeightedSum(**before.scaled, weight=weights)
    write = _MAPS.get(type(last).__name__)
    if write is None:
        raise _refusal(ranker, last)
    return write(last, weights, before)


def _steps(transformer: Any) -> list[Any]:
    """The steps of a pipeline, one after the other, without those that do nothing."""
    if type(transformer).__name__ != "Pipeline":
        return [transformer]
    steps = [step for _, step in transformer.steps if step is not None and step != "passthrough"]
    return list(itertools.chain.from_iterable(map(_steps, steps)))


def _refusal(ranker: Ranker, step: Any) -> RankwiseError:
    return RankwiseError(
        f"{ranker.name} cannot be exported with {type(step).__name__}: files hold linear weights on one of "
        f"{', '.join(_MAPS)}, after one or more of {', '.join(_SCALERS)}"
    )


# ------------------------------------------------------------------------------------------------- before the map


def _scale(before: Standardized, step: Any, ranker: Ranker) -> Standardized:
    """Standardized by one more step of a pipeline."""
    kind, width = type(step).__name__, len(before.names)
    if kind not in _SCALERS:
        raise _refusal(ranker, step)
    if getattr(step, "clip", False):
        raise RankwiseError(f"{ranker.name} cannot be exported with {kind}(clip=True): fit with clip=False")
    if kind == "MinMaxScaler":  # which multiplies, and then adds
        return before.then(
            -step.min_ / step.scale_, 1 / step.scale_, lambda x, feature: x * step.scale_[feature] + step.min_[feature]
        )
    center = getattr(step, {"StandardScaler": "mean_", "RobustScaler": "center_"}.get(kind, ""), None)
    return before.then(
        np.zeros(width) if center is None else np.asarray(center, dtype=np.float64),
        np.ones(width) if step.scale_ is None else np.asarray(step.scale_, dtype=np.float64),
    )


_SCALERS = ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler")


# ------------------------------------------------------------------------------------------------- the maps


def _of_perceptron(ranker: KernelPerceptron, before: Standardized) -> MapSum | WeightedSum:
    """A perceptron on random features, or on stored documents."""
    if hasattr(ranker, "map_"):
        return _fourier(ranker.map_, ranker.state_.w, before)
    stored = ranker.state_.stored
    return _kernels(ranker.state_.documents[:stored], ranker.state_.c[:stored], ranker._shape().tolist(), before)


def _fourier(map_: FourierFeatures, weights: Vector, before: Standardized) -> MapSum:
    half = len(map_.frequencies_)
    cosine, sine = np.split(weights / np.sqrt(half), 2)
    return FourierSum.of(map_.frequencies_, cosine, sine, **before.scaled)


def _sampler(map_: Any, weights: Vector, before: Standardized) -> MapSum:
    # cos(t + b) = cos t cos b - sin t sin b
    weights = weights * np.sqrt(2.0 / map_.n_components)
    cosine, sine = weights * np.cos(map_.random_offset_), -weights * np.sin(map_.random_offset_)
    return FourierSum.of(map_.random_weights_.T, cosine, sine, **before.scaled)


def _kernels(landmarks: Vector, weights: Vector, shape: Sequence[Any], before: Standardized) -> MapSum | WeightedSum:
    """Weights on kernels with landmarks, for (kernel, gamma, degree, coef0); a linear kernel is a weighted sum."""
    if isinstance(shape[0], float):  # as compiled code reads it
        shape = (mercer.KERNELS[int(shape[0])], *shape[1:])
    if shape[0] == "linear" or not len(weights):
        return WeightedSum(**before.scaled, weight=landmarks.T @ weights)
    own = {"kernel": shape[0], "gamma": float(shape[1]), "degree": int(shape[2]), "coef0": float(shape[3])}
    return KernelSum(**before.scaled, landmarks=landmarks, weight=weights, **own)


def _exact(map_: KernelPCAMap, weights: Vector, before: Standardized) -> MapSum | WeightedSum:
    return _kernels(map_.documents_, map_.projection_ @ weights, map_.shape_.tolist(), before)


def _nystroem(map_: Any, weights: Vector, before: Standardized) -> MapSum | WeightedSum:
    kernels = {"rbf": "rbf", "linear": "linear", "poly": "poly", "polynomial": "poly", "sigmoid": "sigmoid"}
    kernel = kernels.get(map_.kernel) if isinstance(map_.kernel, str) else None
    given = {**(map_.kernel_params or {}), "gamma": map_.gamma, "degree": map_.degree, "coef0": map_.coef0}
    usual = {"gamma": 1.0 / map_.components_.shape[1], "degree": 3, "coef0": 1.0}
    gamma, degree, coef0 = (usual[name] if given.get(name) is None else given[name] for name in usual)
    if kernel is None or degree != int(degree):
        raise RankwiseError(
            f"landmarks of the kernel {map_.kernel!r:.40} cannot be exported: files hold 'rbf', 'linear', 'sigmoid', "
            "and 'poly' of a whole degree"
        )
    rotated = map_.normalization_.T @ weights
    return _kernels(map_.components_, rotated, (kernel, gamma, degree, coef0), before)


def _polynomials(map_: Any, weights: Vector, before: Standardized) -> MapSum:
    _refuse_many(len(map_.powers_))
    places = [tuple(np.repeat(np.arange(len(powers)), powers).tolist()) for powers in map_.powers_]
    return _products(dict(zip(places, weights.tolist(), strict=True)), before)


def _sketches(map_: Any, weights: Vector, before: Standardized) -> MapSum:
    """A sketch is linear in the products of ``degree`` features, the last of which may be a constant."""
    degree, wide = map_.indexHash_.shape
    width = len(before.names)
    if float(wide) ** degree > _MOST_COUNTED:
        _refuse_many(wide**degree)
    factor = np.sqrt(np.where(np.arange(wide) < width, map_.gamma, map_.coef0))
    found: dict[tuple[int, ...], float] = {}
    for chosen in itertools.product(range(wide), repeat=degree):
        column = sum(map_.indexHash_[row, place] for row, place in enumerate(chosen)) % map_.n_components
        worth = weights[column]
        for row, place in enumerate(chosen):
            worth = worth * map_.bitHash_[row, place] * factor[place]
        key = tuple(sorted(place for place in chosen if place < width))
        found[key] = found.get(key, 0.0) + float(worth)
    _refuse_many(len(found))
    return _products(found, before)


def _products(worth: dict[tuple[int, ...], float], before: Standardized) -> MapSum:
    width = len(before.names)
    before = replace(before, constant=before.constant + worth.pop((), 0.0))
    degree = max(map(len, worth), default=1)
    rows = [places + (width,) * (degree - len(places)) for places in worth] or [(width,) * degree]
    weight = np.array(list(worth.values()) or [0.0])
    return ProductSum(**before.scaled, weight=weight, places=np.array(rows, dtype=np.int64))


def _refuse_many(count: int) -> None:
    if count > _MOST_PRODUCTS:
        raise RankwiseError(
            f"this map makes {count:,} products of features, and a file holds {_MOST_PRODUCTS:,} at most: fit with a "
            "smaller degree or fewer features"
        )


def _curves(map_: Any, weights: Vector, before: Standardized) -> MapSum:
    """Splines, bins or normal scores."""
    if type(map_).__name__ == "KBinsDiscretizer":
        curves = bin_curves(map_, weights)
    elif isinstance(map_, Scaler):
        curves = broken_lines(normal_sum(map_, weights), before.names)
    else:
        curves = spline_curves(map_, weights, before.names)
    around = periods(map_)
    pieces: list[tuple[Piece, ...]] = []
    constant = before.constant
    for place, own in enumerate(curves):
        center, scale = float(before.center[place]), float(before.scale[place])
        if scale == _NEVER:
            constant += value_of(own, 0.0)  # a scaler sets the feature to 0, whatever its value
            pieces.append(())
            continue
        rising = before.rising(place) if around is None else None
        plain = rising is None and center == 0 and scale == 1
        pieces.append(tuple(own if plain else scale_pieces(own, center, scale, rising)))
    turns = None
    if around is not None:
        scaled = zip(around, before.center.tolist(), before.scale.tolist(), strict=True)
        turns = tuple((c + s * start, s * length) if s != _NEVER else (0.0, 1.0) for (start, length), c, s in scaled)
    return CurveSum(before.names, constant, before.missing, tuple(pieces), turns)


_MAPS: dict[str, Callable[[Any, Vector, Standardized], MapSum | WeightedSum]] = {
    "FourierFeatures": _fourier,
    "RBFSampler": _sampler,
    "Nystroem": _nystroem,
    "KernelPCAMap": _exact,
    "PolynomialFeatures": _polynomials,
    "PolynomialCountSketch": _sketches,
    "SplineTransformer": _curves,
    "KBinsDiscretizer": _curves,
    "Scaler": _curves,
}
