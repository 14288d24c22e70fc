"""Single precision as Java's engines compute it: every product and every sum is rounded to float32, in order."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import DataError
from rankwise.data.checks import Floats

Vector = NDArray[np.float64]
Single = NDArray[np.float32]


def as_single(values: Vector, names: Sequence[str], what: str, engine: str, added: bool = False) -> Single:
    """The values rounded to float32; one that float32 cannot hold is refused by the name of its feature.

    ``added``: they are terms of a sum and not factors, so that one too small to be told from 0 may be 0.
    """
    with np.errstate(over="ignore", under="ignore"):
        rounded = values.astype(np.float32)
    lost = ~np.isfinite(rounded) | ((rounded == 0) & (values != 0) & (not added))
    if lost.any():
        place = int(np.argmax(lost))
        raise DataError(
            f"the {what} of feature {names[place]!r} is {values[place]:g}, and {engine} computes in float32, which "
            "cannot hold it: scale the features"
        )
    return rounded


def below(threshold: Vector, names: Sequence[str], engine: str) -> Single:
    """The largest float32 that is not above each threshold: x > t says the same of every float32 x for either."""
    with np.errstate(over="ignore"):
        rounded = threshold.astype(np.float32)
    lower = np.where(rounded > threshold, np.nextafter(rounded, np.float32(-np.inf)), rounded).astype(np.float32)
    if not np.isfinite(lower).all():
        place = int(np.argmin(np.isfinite(lower)))
        raise DataError(
            f"a threshold of feature {names[place]!r} is {threshold[place]:g}, and {engine} computes in float32, which "
            "cannot hold it: scale the features"
        )
    return lower


def rounded_features(X: Floats) -> Single:
    """Features as an engine of single precision holds them."""
    with np.errstate(over="ignore"):
        return np.asarray(X).astype(np.float32)


def dot(X: Single, weight: Single) -> Single:
    """Weighted sums, feature after feature."""
    total = np.zeros(len(X), dtype=np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        for place, own in enumerate(weight):
            total += X[:, place] * own
    return total


def scaled(column: Single, center: Any, scale: Any) -> Single:
    """(x - center) / scale."""
    with np.errstate(over="ignore"):
        return np.asarray((column - np.float32(center)) / np.float32(scale), dtype=np.float32)
