"""The weights that a regularised ranker stays near: none, a regression, another ranker or a vector."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import RankwiseError
from rankwise.data.queries import Queries
from rankwise.rankers._start import raw_weights
from rankwise.rankers.ridge import RidgeRanker

Vector = NDArray[np.float64]

_CHOICES = "None, 'ridge', a fitted linear ranker or a vector"


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
            raise RankwiseError(f"center is {_CHOICES}: found {given!r}")
        given = ridge.fit(train, validation=validation)
    return raw_weights(given, train.n_features, "center", _CHOICES)
