"""Thresholds on scaled features as thresholds on raw ones, exact for every float64: z(x) > t if and only if x > t'."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rankwise.data.scaling import Scaler

Vector = NDArray[np.float64]
Whole = NDArray[np.int64]


def on_raw_features(
    scaler: Scaler, feature: Whole, threshold: Vector, alpha: Vector
) -> tuple[Whole, Vector, Vector, float]:
    """(feature, threshold, alpha, constant) on raw features of steps on the features that ``scaler`` makes.

    A scaler computes z(x) in floating point, and z never falls as x grows; so there is a largest x with z(x) <= t, and
    it is found by halving the range of all float64. A feature that did not vary is always z = 0: its steps are part of
    the constant.
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
    """For each bound the largest finite x with rising(x) <= bound; the lowest float64 where even that is above."""
    most = np.finfo(np.float64).max
    low, high = (_place(np.full(bound.shape, end)) for end in (-most, most))
    while (low < high).any():
        middle = (low >> 1) + (high >> 1) + ((low | high) & 1)  # rounded up, without overflow
        inside = rising(_value(middle)) <= bound
        low, high = np.where(inside, middle, low), np.where(inside, high, middle - 1)
    return _value(low)


def _place(x: Vector) -> Whole:
    """float64 as whole numbers in the same order: those below 0 have all bits but the sign turned."""
    bits = x.view(np.int64)
    return np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)


def _value(place: Whole) -> Vector:
    return np.where(place < 0, place ^ np.int64(2**63 - 1), place).view(np.float64)
