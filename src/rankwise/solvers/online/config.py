"""Online learning, one round at a time: predict a list, see its labels, learn if the rule says so.

The rules of a run, where it is, and what happened in some rounds; :func:`rankwise.solvers.online.loop.play` plays them.
"""

import math
import numbers
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import RankwiseError
from rankwise.data.fingerprints import Marks
from rankwise.guarantees.bounds.online import WeightFacts
from rankwise.losses._base import Loss
from rankwise.measures._base import Measure

Vector = NDArray[np.float64]
Update = Literal["mistakes", "always"]
Step = Literal["constant", "sqrt"]
Ball = Literal["none", "l2", "l1"]
Averaging = Literal["none", "uniform", "suffix"]
Scaling = Literal["none", "radius", "standard"]

_CHOICES: dict[str, tuple[str, ...]] = {
    "update": ("mistakes", "always"),
    "step": ("constant", "sqrt"),
    "projection": ("none", "l2", "l1"),
    "averaging": ("none", "uniform", "suffix"),
    "scale": ("none", "radius", "standard"),
}


@dataclass(frozen=True, kw_only=True)
class OnlineConfig:
    """How a run learns: w <- projection of (w - eta_t times the gradient of the loss), on mistakes or always.

    Parameters
    ----------
    loss : any loss of the project
    measure : what counts as a mistake: its first k positions, pessimistically ordered, are not ideal
    update : "mistakes", as a perceptron, or "always", as gradient descent
    eta, step : eta_t = eta ("constant") or eta / sqrt(t) ("sqrt")
    projection, ball : keep norm(w) <= ball, in the l2 or l1 norm
    averaging : what is kept besides the last weights: the mean of those that all rounds began with ("uniform"), or
        those of the last half of the rounds at least and three quarters at most ("suffix")
    scale : features as they are; divided by the largest radius of a list so far ("radius"); or by their own running
        standard deviation ("standard"). What is learned is in these units
    """

    loss: Loss
    measure: Measure
    update: Update = "mistakes"
    eta: float = 1.0
    step: Step = "constant"
    projection: Ball = "none"
    max_norm: float = math.inf
    averaging: Averaging = "none"
    scale: Scaling = "none"

    def __post_init__(self) -> None:
        for name, known in _CHOICES.items():
            if getattr(self, name) not in known:
                raise RankwiseError(f"{name} is one of {', '.join(map(repr, known))}: found {getattr(self, name)!r}")
        if not isinstance(self.eta, numbers.Real) or not 0 < self.eta < math.inf:
            raise RankwiseError(f"eta, the size of a step, is a number above 0: found {self.eta!r}")
        object.__setattr__(self, "eta", float(self.eta))  # compiled code takes no whole number beyond 64 bits
        max_norm = self.max_norm if isinstance(self.max_norm, numbers.Real) else 0.0
        if (self.projection == "none") != (max_norm == math.inf) or not max_norm > 0:
            raise RankwiseError(
                f"a projection goes onto a ball of a radius above 0: found projection={self.projection!r} and "
                f"radius {self.max_norm!r}"
            )

    def cut(self) -> float:
        """How many positions decide whether a list is a mistake."""
        if self.measure.name in ("RR", "WTA"):  # nothing below the first position matters once that is right
            return 1.0
        return math.inf if self.measure.cutoff is None else float(self.measure.cutoff)

    def as_numbers(self) -> Vector:
        """The rules as the compiled loop reads them; see :mod:`rankwise.solvers.online.loop`."""
        place = {name: float(known.index(getattr(self, name))) for name, known in _CHOICES.items()}
        return np.array(
            [
                self.cut(),
                place["update"],
                self.eta,
                place["step"],
                place["projection"],
                self.max_norm,
                place["averaging"],
                place["scale"],
            ]
        )


@dataclass(frozen=True)
class State:
    """Where a run is: everything that the next round depends on.

    ``counts`` holds the rounds played and the documents that scaling has seen, ``sizes`` the radius that features are
    divided by and the largest radius of a list that was learned from, ``sums`` what averages are made of, ``moments``
    the running means and squared deviations of the features.
    """

    w: Vector
    sums: Vector
    moments: Vector
    counts: NDArray[np.int64]
    sizes: Vector
    scale: Vector

    @classmethod
    def fresh(cls, features: int) -> Self:
        """Before the first round: all weights are 0."""
        zeros = np.zeros(features)
        two = np.zeros((2, features))
        return cls(zeros, two, two.copy(), np.zeros(2, np.int64), np.zeros(2), np.ones(features))

    @property
    def rounds(self) -> int:
        """Rounds played."""
        return int(self.counts[0])

    @property
    def radius(self) -> float:
        """The largest radius of a list that was learned from, in the units that were learned in."""
        return float(self.sizes[1])

    def copy(self) -> "State":
        """A state of its own, which the compiled loop may write into."""
        return State(*(getattr(self, name).copy() for name in self.__dataclass_fields__))

    def coef(self, averaging: Averaging) -> Vector:
        """The weights to predict with, on the features as they come."""
        t = self.rounds
        w: Vector = self.w
        if averaging == "uniform" and t:
            w = self.sums[1] / t
        elif averaging == "suffix" and t:
            first = max(1, (1 << (t.bit_length() - 1)) // 2)
            w = (self.sums[0] + self.sums[1]) / (t - first + 1)
        return np.asarray(w * self.scale)


@dataclass(frozen=True)
class RoundLog:
    """What happened in some rounds, one value a round: the lists, mistakes, and measures of the published scores.

    ``loss`` is that of the rounds that were learned from and 0 in the others. ``measure`` is NaN where a list has
    nothing to find; ``worst`` is its value with equal scores in the worst order. ``weights`` are extremes of the
    weights of the lists with a mistake, for losses that have weights; ``marks`` the fingerprints of the lists, where
    they were asked for.
    """

    order: NDArray[np.int64]
    mistake: NDArray[np.bool_]
    loss: Vector
    measure: Vector
    worst: Vector
    weights: WeightFacts
    marks: Marks
