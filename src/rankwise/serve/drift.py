"""An alarm when features leave the range that they used to have.

The range of a feature is that of the training queries where it is given, and otherwise that of the first rankings that
the service shows. Watched is the share of values outside, over the last rankings.
"""

import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

_FIRST = 200  # rankings that define a range where none is given
_RECENT = 0.99  # weight of the past in the running share


@dataclass
class FeatureRange:
    """The usual range of a model's features, and what is outside of it lately."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    declared: bool
    seen: int = 0
    outside: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))


class Drift:
    """Shares of values outside of their usual range, by model.

    Parameters
    ----------
    threshold : float, default=0.05
        The share of a feature's values above which an alarm rings.

    Examples
    --------
    >>> drift = Drift()
    >>> drift.declare("news", np.zeros(2), np.ones(2))
    >>> for _ in range(100):
    ...     drift.look("news", np.array([[0.5, 7.0]]))
    >>> drift.alarms()
    ['news: feature 2 is outside its usual range in 63% of its recent values']
    """

    def __init__(self, threshold: float = 0.05) -> None:
        self.threshold, self._ranges, self._lock = threshold, dict[str, FeatureRange](), threading.Lock()

    def declare(self, model: str, low: Any, high: Any) -> None:
        """Give the range of a model's features, as the training queries had it."""
        low, high = np.asarray(low, np.float64), np.asarray(high, np.float64)
        with self._lock:
            self._ranges[model] = FeatureRange(low, high, True, outside=np.zeros(len(low)))

    def look(self, model: str, X: NDArray[Any]) -> None:
        """Take in the features of one ranking."""
        if not len(X):
            return
        with self._lock:
            known = self._ranges.get(model)
            if known is None or len(known.low) != X.shape[1]:
                width = X.shape[1]
                known = FeatureRange(np.full(width, np.inf), np.full(width, -np.inf), False, outside=np.zeros(width))
                self._ranges[model] = known
            if not known.declared and known.seen < _FIRST:
                known.low = np.fmin(known.low, np.fmin.reduce(X, axis=0))
                known.high = np.fmax(known.high, np.fmax.reduce(X, axis=0))
            else:
                share = ((known.low > X) | (known.high < X)).mean(axis=0)
                known.outside = _RECENT * known.outside + (1 - _RECENT) * share
            known.seen += 1

    def shares(self, model: str) -> list[float]:
        """The share of values outside lately, for each feature; empty before there is a range."""
        with self._lock:
            known = self._ranges.get(model)
            return [] if known is None else known.outside.tolist()

    def alarms(self) -> list[str]:
        """One sentence per model with a feature that is often outside."""
        with self._lock:
            found = [(model, known.outside) for model, known in self._ranges.items() if known.seen]
        return [
            f"{model}: feature {int(outside.argmax()) + 1} is outside its usual range in "
            f"{100 * outside.max():.0f}% of its recent values"
            for model, outside in found
            if len(outside) and outside.max() > self.threshold
        ]
