"""Constraints of parameters that several rankers share; :mod:`rankwise._parameters` checks them."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np

from rankwise._arrays import Vector
from rankwise._parameters import Check
from rankwise.errors import DataError, RankwiseError
from rankwise.losses._base import Loss


def is_vector(value: Any) -> bool:
    """Whether a value is one number per feature, whatever the number of features, or a ranker with such weights."""
    from sklearn.base import BaseEstimator

    if isinstance(value, BaseEstimator) and not hasattr(value, "coef_"):
        raise RankwiseError(
            f"this {type(value).__name__} has no coef_, which scikit-learn's clone drops: pass the coef_ itself"
        )
    try:
        array = np.asarray(getattr(value, "coef_", value))
    except (TypeError, ValueError):
        return False
    return array.ndim == 1 and array.dtype.kind in "fiu" and bool(np.isfinite(array).all())


def raw_weights(given: Any, features: int, name: str) -> Vector:
    """Weights on raw features from a fitted linear ranker or a vector."""
    if not is_vector(given):
        raise RankwiseError(f"{name} must be a fitted linear ranker or a vector of finite weights, got {given!r:.60}")
    raw = np.asarray(getattr(given, "coef_", given), dtype=np.float64)
    if raw.shape != (features,):
        raise DataError(f"{name} must have one weight per feature, {features}, got {len(raw)} weights")
    return raw


def _is_sign(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and value in (1, -1)


AnyLoss = Annotated[Loss, Check("a loss of rankwise.losses", lambda value: isinstance(value, Loss))]
Weights = Annotated[Any, Check("a fitted linear ranker or a vector of finite weights", is_vector)]
Signs = Annotated[
    Mapping[Any, int],
    Check(
        "a mapping of feature names or numbers to 1 or -1",
        lambda value: isinstance(value, Mapping) and all(_is_sign(sign) for sign in value.values()),
    ),
]
Features = Annotated[
    Sequence[Any],
    Check(
        "a sequence of feature names or numbers",
        lambda value: isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, (str, bytes)),
    ),
]
