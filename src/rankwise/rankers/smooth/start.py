"""Where an annealed fit begins: weights w0 from a regression, another ranker or a vector, and widths that suit them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import DataError, RankwiseError
from rankwise.data.queries import Queries
from rankwise.losses._base import SmoothedMeasure
from rankwise.rankers._base import LinearRanker
from rankwise.rankers._model_selection import linear_scores
from rankwise.rankers.linear.ridge import as_numbers
from rankwise.rankers.smooth.smoothed import score_unit, stage_sigmas
from rankwise.solvers.batch.descent import Bounds, within

Vector = NDArray[np.float64]

_CHOICES = "'ridge', 'ranksvm', a fitted linear ranker or a vector"


@dataclass(frozen=True)
class Start:
    """w0 in the units of the scaled features, and the widths that suit its scores."""

    w: Vector
    sigmas: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Beginnings:
    """What every start is made with: rankers by name, the loss, the widths (None: by the scores), and the signs."""

    named: Mapping[str, LinearRanker]
    loss: SmoothedMeasure
    sigmas: tuple[float, ...] | None
    bounds: Bounds | None
    n_jobs: int | None

    def start(self, given: Any, queries: Queries, validation: Queries | None, factor: Vector) -> Start:
        """From "ridge" or "ranksvm", fitted on these queries, a fitted linear ranker or a vector on raw features."""
        unit: float | None = None
        if isinstance(given, str):
            if given not in self.named:
                raise RankwiseError(f"start is {_CHOICES}: found {given!r}")
            unit = 1.0 if given == "ridge" else None  # a regression on gains has their units
            given = self.named[given].fit(queries, validation=validation)
        raw = raw_weights(given, queries.n_features, "start", _CHOICES)
        w = within(np.divide(raw, factor, out=np.zeros_like(raw), where=factor > 0), self.bounds)
        if not w.any() and _something_to_learn(queries):
            raise RankwiseError(
                "the start is 0 everywhere, where a smoothed measure is flat: there is no direction to go; give another"
            )
        if self.sigmas is not None:
            return Start(w, self.sigmas)
        if unit is None:
            unit = score_unit(queries, linear_scores(queries.X, w * factor, self.n_jobs))
        return Start(w, tuple(stage_sigmas(self.loss, unit)))


def as_starts(given: Any) -> list[Any]:
    """One start or several."""
    if not isinstance(given, list) or (given and all(isinstance(one, (int, float, np.number)) for one in given)):
        return [given]
    if not given:
        raise RankwiseError(f"start is {_CHOICES}, or a list of such: found []")
    return given


def as_sigmas(given: Sequence[float] | None) -> tuple[float, ...] | None:
    """Widths above 0, from large to small; None is left to the scores."""
    if given is None:
        return None
    sigmas = as_numbers(given)
    if not sigmas or not all(0 < sigma < np.inf for sigma in sigmas) or tuple(sorted(sigmas, reverse=True)) != sigmas:
        raise RankwiseError(f"sigmas are numbers above 0, from large to small: found {given!r:.60}")
    return sigmas


def as_bounds(sign: Mapping[Any, int] | None, queries: Queries) -> Bounds | None:
    """The bounds on single weights that signs, by the name or number of a feature, stand for."""
    if not sign:
        return None
    if not isinstance(sign, Mapping):
        raise RankwiseError(f"sign gives +1 or -1 by the name or number of a feature: found {sign!r:.60}")
    names = queries.feature_names
    bounds: Bounds = [(None, None)] * queries.n_features
    for feature, one in sign.items():
        place = names.index(feature) if names is not None and feature in names else feature
        if not isinstance(place, (int, np.integer)) or not 0 <= place < queries.n_features:
            raise DataError(f"sign names the feature {feature!r}, which is not among those of these queries")
        if one not in (1, -1):
            raise RankwiseError(f"the sign of feature {feature!r} is +1 or -1: found {one!r}")
        bounds[int(place)] = (0.0, None) if one > 0 else (None, 0.0)
    return bounds


def raw_weights(given: Any, features: int, what: str, choices: str) -> Vector:
    """The weights of a fitted linear ranker, or a vector, on raw features; ``what`` it is for and the ``choices``."""
    try:
        raw = np.asarray(getattr(given, "coef_", given), dtype=np.float64)
    except (TypeError, ValueError):
        raise RankwiseError(
            f"{what} is {choices}: found {type(given).__name__} without coef_ "
            "(scikit-learn's clone forgets what a ranker has learned: give its coef_)"
        ) from None
    if raw.shape != (features,):
        raise DataError(f"a {what} has one weight a feature, {features}: found shape {raw.shape}")
    if not np.isfinite(raw).all():
        raise DataError(f"a {what} has finite weights: found {raw[~np.isfinite(raw)][0]}")
    return raw


def _something_to_learn(queries: Queries) -> bool:
    """Whether in some list both labels and features vary."""
    labels = queries.labels()
    for number in queries.counted.tolist():
        rows = queries.rows_of(number)
        if len(np.unique(labels[rows])) > 1 and (queries.X[rows] != queries.X[rows][:1]).any():
            return True
    return False
