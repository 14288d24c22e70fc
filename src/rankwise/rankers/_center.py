"""The weights that a regularised ranker stays near: none, a regression, another ranker or a vector."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import DataError, RankwiseError
from rankwise.data.queries import Queries
from rankwise.rankers.ridge import RidgeRanker

Vector = NDArray[np.float64]


def raw_center(given: Any, train: Queries, validation: Queries | None, ridge: RidgeRanker) -> Vector:
    """Weights on raw features.

    Parameters
    ----------
    given : None for 0, "ridge", a fitted linear ranker, or a vector
    train, validation : what a regression is fitted on, and what chooses its strength
    ridge : the regression, not yet fitted
    """
    if given is None:
        return np.zeros(train.n_features)
    if isinstance(given, str):
        if given != "ridge":
            raise RankwiseError(f"center is None, 'ridge', a fitted linear ranker or a vector: found {given!r}")
        given = ridge.fit(train, validation=validation)
    try:
        raw = np.asarray(getattr(given, "coef_", given), dtype=np.float64)
    except (TypeError, ValueError):
        raise RankwiseError(
            f"center is None, 'ridge', a fitted linear ranker or a vector: found {type(given).__name__} without coef_ "
            "(scikit-learn's clone forgets what a ranker has learned: give its coef_)"
        ) from None
    if raw.shape != (train.n_features,):
        raise DataError(f"a center has one weight a feature, {train.n_features}: found shape {raw.shape}")
    if not np.isfinite(raw).all():
        raise DataError(f"a center has finite weights: found {raw[~np.isfinite(raw)][0]}")
    return raw
