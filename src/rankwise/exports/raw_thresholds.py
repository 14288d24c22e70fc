"""What was learned from scaled features, on raw features; thresholds are exact for every float64."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rankwise.errors import RankwiseError
from rankwise.measures._base import Vector
from rankwise.queries.scaling import Scaler

Wholes = NDArray[np.int64]


def center_and_scale(scaler: Scaler) -> tuple[NDArray[np.bool_], Vector, Vector]:
    """(whether a feature varied, center, scale); 0 and 1 stand for center and scale of one that did not."""
    if scaler.how == "normal":
        raise RankwiseError(
            f"{scaler!r} makes normal scores, which files hold for linear weights and for trees: learn from "
            "Scaler('standard'), or pass scaling='none' and send scaled features"
        )
    if scaler.how == "log" or scaler.scale_ is None or scaler.center_ is None:
        raise RankwiseError(
            f"{scaler!r} takes logarithms, which weights on raw features cannot express: learn from "
            "Scaler('standard'), or pass scaling='none' and send scaled features"
        )
    varies = find_varying(scaler)
    return varies, np.where(varies, scaler.center_, 0.0), np.where(varies, scaler.scale_, 1.0)


def find_varying(scaler: Scaler) -> NDArray[np.bool_]:
    """Which features varied in training: a scale of 0 marks one that was constant, which the scaler sets to 0."""
    if scaler.knot_start_ is not None:
        return np.asarray(np.diff(scaler.knot_start_) > 1)
    if scaler.scale_ is None:
        raise ValueError("the scaler is one of a whole set")
    return np.asarray(scaler.scale_ > 0)


def raw_thresholds(scaler: Scaler, feature: Wholes, threshold: Vector) -> Vector:
    """The largest raw value of each feature that is scaled to the threshold or below.

    Parameters
    ----------
    scaler : Scaler
        A fitted scaler of a whole set.
    feature : ndarray of int64
        The features.
    threshold : ndarray
        A threshold for each, on the scaled feature.

    Returns
    -------
    threshold : ndarray
        The thresholds on raw features; the largest or smallest float64 for a feature that did not vary, which is 0
        after scaling.
    """
    if scaler.knot_start_ is not None and scaler.knots_ is not None and scaler.scores_ is not None:
        from rankwise._kernels.interpolate import interpolate  # compiled code, which most exports do not need

        parts = scaler.knot_start_, scaler.knots_, scaler.scores_
        return last_not_above(lambda x: interpolate(x, feature, *parts), threshold)
    varies = find_varying(scaler)[feature]
    assert scaler.scale_ is not None
    assert scaler.center_ is not None
    center, scale = scaler.center_[feature], scaler.scale_[feature]

    def z(x: Vector) -> Vector:
        shaped = np.copysign(np.log1p(np.abs(x)), x) if scaler.how == "log" else x
        with np.errstate(over="ignore"):
            return np.where(varies, (shaped - center) / np.where(varies, scale, 1.0), 0.0)

    return last_not_above(z, threshold)


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
