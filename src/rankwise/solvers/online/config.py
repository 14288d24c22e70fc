"""The values of online learning: the configuration of a run, its state, the log of its rounds, and its history.

In every round a ranker predicts a query, sees its labels, and learns from it, always or only on a mistake.
:func:`rankwise.solvers.online.loop.run_rounds` takes an :class:`OnlineConfig` and a :class:`State` and returns the next
state with a :class:`RoundLog`; :class:`rankwise.solvers.online.ledger.Ledger` accumulates the logs in a :class:`Curve`
and a :class:`Tally`.
"""

import math
from dataclasses import dataclass, field
from typing import Annotated, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from rankwise._parameters import NumberRange, PositiveFloat, check_parameters
from rankwise.errors import RankwiseError
from rankwise.guarantees.bounds.online import WeightFacts
from rankwise.losses._base import Loss
from rankwise.measures._base import Measure
from rankwise.queries.fingerprints import Marks

Vector = NDArray[np.float64]
Update = Literal["mistakes", "always"]
Step = Literal["constant", "sqrt"]
Ball = Literal["none", "l2", "l1"]
Averaging = Literal["none", "uniform", "suffix"]
Scaling = Literal["none", "radius", "standard"]

# In the order of their codes in compiled code.
_CHOICES = {"update": Update, "step": Step, "projection": Ball, "averaging": Averaging, "scale": Scaling}


@dataclass(frozen=True, kw_only=True)
class OnlineConfig:
    """How a run learns: w <- projection of (w - eta_t times the gradient of the loss), on mistakes or always.

    Parameters
    ----------
    loss : Loss
        The loss whose gradient is followed.
    measure : Measure
        Defines a mistake: its decisive positions, under pessimistic ties, are not ideal.
    update : {"mistakes", "always"}, default="mistakes"
        When to learn: on mistakes, as a perceptron, or always, as gradient descent.
    eta : float, default=1.0
        Size of a step.
    step : {"constant", "sqrt"}, default="constant"
        eta_t = eta, or eta / sqrt(t).
    projection : {"none", "l2", "l1"}, default="none"
        The norm of w that is kept at most ``max_norm``.
    max_norm : float, default=inf
        The largest norm of w.
    averaging : {"none", "uniform", "suffix"}, default="none"
        What is kept besides the last weights: the mean of the weights at the beginning of all rounds ("uniform"), or of
        the last rounds, at least half and at most three quarters of them ("suffix").
    scale : {"none", "radius", "standard"}, default="none"
        Features are taken as they are; divided by the largest radius of a query so far ("radius"); or by their own
        running standard deviation ("standard"). Weights are learned in these units.
    """

    loss: Loss
    measure: Measure
    update: Update = "mistakes"
    eta: PositiveFloat = 1.0
    step: Step = "constant"
    projection: Ball = "none"
    max_norm: Annotated[float, NumberRange(0, math.inf, closed="right")] = math.inf
    averaging: Averaging = "none"
    scale: Scaling = "none"
    feedback_depth: int | None = None
    explore: float = 0.0

    def __post_init__(self) -> None:
        check_parameters(self)
        object.__setattr__(self, "eta", float(self.eta))
        if (self.projection == "none") != (self.max_norm == math.inf):
            raise RankwiseError(
                f"a projection needs a finite radius, got projection={self.projection!r} and radius {self.max_norm!r}"
            )
        if self.feedback_depth is not None:
            self._check_feedback(self.feedback_depth)

    def _check_feedback(self, depth: int) -> None:
        """Refuse what cannot be learned from the labels of the first documents alone."""
        needed = self.loss.labels_per_term
        if needed is None:
            raise RankwiseError(
                "feedback_depth requires a loss that declares to be a sum of terms with few labels each "
                "(labels_per_term), such as GivenSoftmax() or PairHinge(per_pair=False); otherwise the labels of some "
                f"documents give no unbiased estimate of its gradient, got {self.loss!r}"
            )
        if needed > depth:
            raise RankwiseError(
                f"feedback_depth must be at least {needed} for {self.loss!r}, whose terms depend on {needed} labels "
                f"each, got {depth}"
            )
        if self.update != "always":
            raise RankwiseError(
                "update must be 'always' with feedback_depth, because the first labels do not tell a mistake, "
                f"got {self.update!r}"
            )
        if not 0 < self.explore <= 1:
            raise RankwiseError(f"explore must be a probability above 0 with feedback_depth, got {self.explore!r}")

    def as_numbers(self) -> Vector:
        """The configuration as the compiled loop reads it; see :mod:`rankwise.solvers.online.loop`."""
        update, step, projection, averaging, scale = (
            float(get_args(choices).index(getattr(self, name))) for name, choices in _CHOICES.items()
        )
        cut = self.measure.decisive_positions
        return np.array([cut, update, self.eta, step, projection, self.max_norm, averaging, scale])


@dataclass(frozen=True)
class State:
    """Everything that the next round depends on; a state is never changed.

    Attributes
    ----------
    w : ndarray, shape (n_features,)
        The weights, in the units that are learned in.
    sums : ndarray, shape (2, n_features)
        Sums of weights, from which averages are computed.
    moments : ndarray, shape (2, n_features)
        Running means and sums of squared deviations of the features.
    counts : ndarray of int64, shape (2,)
        Number of rounds, and number of documents that scaling has seen.
    sizes : ndarray, shape (2,)
        The radius that features are divided by, and the largest radius of a query that was learned from.
    scale : ndarray, shape (n_features,)
        The current factor of every feature.
    """

    w: Vector
    sums: Vector
    moments: Vector
    counts: NDArray[np.int64]
    sizes: Vector
    scale: Vector

    @classmethod
    def fresh(cls, features: int) -> Self:
        """The state before the first round: all weights are 0."""
        zeros = np.zeros(features)
        two = np.zeros((2, features))
        return cls(zeros, two, two.copy(), np.zeros(2, np.int64), np.zeros(2), np.ones(features))

    @property
    def rounds(self) -> int:
        """Number of rounds so far."""
        return int(self.counts[0])

    @property
    def radius(self) -> float:
        """The largest radius of a query that was learned from, in the units that are learned in."""
        return float(self.sizes[1])

    @property
    def removed(self) -> int:
        """0: linear weights keep every step."""
        return 0

    def copy(self) -> "State":
        """A copy that the compiled loop may write into."""
        return type(self)(*(getattr(self, name).copy() for name in self.__dataclass_fields__))

    @property
    def feedback(self) -> "FeedbackTotals | None":
        """What a run with a feedback depth has counted; None for other runs."""
        return None

    def coef(self, averaging: Averaging) -> Vector:
        """The weights to predict with, on the raw features.

        Parameters
        ----------
        averaging : {"none", "uniform", "suffix"}
            Which average; "none" gives the last weights.

        Returns
        -------
        ndarray, shape (n_features,)
            The weights.
        """
        t = self.rounds
        w: Vector = self.w
        if averaging == "uniform" and t:
            w = self.sums[1] / t
        elif averaging == "suffix" and t:
            first = max(1, (1 << (t.bit_length() - 1)) // 2)
            w = (self.sums[0] + self.sums[1]) / (t - first + 1)
        return np.asarray(w * self.scale)


@dataclass(frozen=True)
class FeedbackTotals:
    """What a run has counted that learns from the labels of the first documents shown alone.

    Attributes
    ----------
    estimated_loss : float
        Sum of the unbiased estimates of the surrogate losses of the weights of each round.
    explored : int
        Rounds whose first documents were not those with the highest scores.
    unmeasured : int
        Rounds in which some labels were not given; neither their measure nor their mistakes are known.
    largest_label : float
        The largest label that was given.
    longest : int
        Documents of the longest query.
    """

    estimated_loss: float = 0.0
    explored: int = 0
    unmeasured: int = 0
    largest_label: float = 0.0
    longest: int = 0


@dataclass(frozen=True)
class RoundLog:
    """What happened in some rounds, one value per round.

    Attributes
    ----------
    order : ndarray of int64
        The queries, in the order in which they were shown.
    mistake : ndarray of bool
        Whether the first positions of the published ranking, under pessimistic ties, were not ideal.
    loss : ndarray
        The loss of the rounds that were learned from; 0 in the others.
    measure : ndarray
        The measure of the published scores, ties averaged; NaN where it is 0/0.
    worst : ndarray
        The same under pessimistic ties.
    weights : WeightFacts
        Extremes of the weights v of the queries with a mistake, for losses with ``perceptron_bound="weights"``.
    marks : ndarray
        Fingerprints of the queries; empty if they were not asked for.
    """

    order: NDArray[np.int64]
    mistake: NDArray[np.bool_]
    loss: Vector
    measure: Vector
    worst: Vector
    weights: WeightFacts
    marks: Marks


# The largest number of rounds that a curve keeps.
_MOST = 2048
# How many mistakes on one query two bytes can count.
MOST_TIMES = 65_535


def _empty() -> Vector:
    return np.zeros((0, 5))


@dataclass(frozen=True, eq=False)
class Curve:
    """Running totals after every ``stride``-th round; which rounds are kept depends on their number alone.

    Attributes
    ----------
    stride : int
        A power of two.
    points : ndarray, shape (n_kept, 5)
        For each kept round: round, mistakes, cumulative loss, weight of the rounds on which the measure is defined, and
        sum of the measure over them.
    """

    stride: int = 1
    points: Vector = field(default_factory=_empty, repr=False)

    def extend(self, before: int, *totals: NDArray[np.float64] | NDArray[np.int64]) -> "Curve":
        """The curve continued by the totals after rounds before + 1, before + 2, ..."""
        rounds = np.arange(before + 1, before + 1 + len(totals[0]))
        stride = self.stride
        while (before + len(rounds)) // stride > _MOST:
            stride *= 2
        kept = rounds % stride == 0
        old = self.points if stride == self.stride else self.points[self.points[:, 0] % stride == 0]
        if not kept.any():
            return Curve(stride, old)
        return Curve(stride, np.concatenate([old, np.column_stack([rounds, *totals])[kept]]))

    @property
    def rounds(self) -> Vector:
        """The rounds that are kept."""
        return self.points[:, 0]

    @property
    def mistakes(self) -> Vector:
        """Mistakes up to each of them."""
        return self.points[:, 1]

    @property
    def loss(self) -> Vector:
        """Cumulative loss up to each of them."""
        return self.points[:, 2]

    @property
    def mean(self) -> Vector:
        """Time-averaged measure up to each of them; NaN before the first defined value."""
        mean: Vector = np.divide(
            self.points[:, 4], self.points[:, 3], out=np.full(len(self.points), np.nan), where=self.points[:, 3] > 0
        )
        return mean


@dataclass(frozen=True, eq=False)
class Tally:
    """How often something happened on each query, in memory that grows by doubling.

    Attributes
    ----------
    length : int
        Number of queries.
    buffer : ndarray of uint16
        Shared by the tallies of one run; only the first ``length`` entries belong to this tally.
    filled : list of int
        How far any tally has filled the shared buffer. Where two runs diverge, the second one gets its own copy.
    """

    length: int = 0
    buffer: NDArray[np.uint16] = field(default_factory=lambda: np.zeros(0, np.uint16), repr=False)
    filled: list[int] = field(default_factory=lambda: [0], repr=False)

    def add(self, places: NDArray[np.int64], length: int) -> "Tally":
        """The tally with one more for each of the places, and ``length`` queries in all."""
        buffer, filled = self.buffer, self.filled
        if length > len(buffer) or filled[0] > self.length:
            buffer = np.zeros(max(length, 2 * len(buffer)), np.uint16)
            buffer[: self.length] = self.buffer[: self.length]
            filled = [0]
        np.add.at(buffer, places, 1)
        filled[0] = max(length, self.length)
        return Tally(filled[0], buffer, filled)

    @property
    def counts(self) -> NDArray[np.uint16]:
        """One number per query."""
        return self.buffer[: self.length]
