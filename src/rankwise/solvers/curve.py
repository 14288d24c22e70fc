"""What a run of any length remembers of its rounds: a thinned curve, and two bytes a list."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

_MOST = 2048
# How often something can happen on a list, in two bytes.
MOST_TIMES = 65_535


def _empty() -> Vector:
    return np.zeros((0, 5))


@dataclass(frozen=True, eq=False)
class Curve:
    """Running totals after every ``stride``-th round.

    ``points`` has a row for each kept round: (round, mistakes, cumulative loss, weight of the rounds that the measure
    says something about, sum of the measure over them). Which rounds are kept depends on their number alone.
    """

    stride: int = 1
    points: Vector = field(default_factory=_empty, repr=False)

    def extended(self, before: int, *totals: NDArray[np.float64] | NDArray[np.int64]) -> "Curve":
        """The curve with the totals after rounds before + 1, before + 2, ..."""
        rounds = np.arange(before + 1, before + 1 + len(totals[0]))
        stride = self.stride
        while (before + len(rounds)) // stride > _MOST:
            stride *= 2
        kept = rounds % stride == 0
        old = self.points[self.points[:, 0] % stride == 0]
        return Curve(stride, np.concatenate([old, np.column_stack([rounds, *totals])[kept]]))

    @property
    def rounds(self) -> Vector:
        """The rounds that were kept."""
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
        """Time-averaged measure up to each of them; NaN where nothing was measured yet."""
        mean: Vector = np.divide(
            self.points[:, 4], self.points[:, 3], out=np.full(len(self.points), np.nan), where=self.points[:, 3] > 0
        )
        return mean


@dataclass(frozen=True, eq=False)
class Tally:
    """How often something happened on each list, in memory that grows by doubling.

    Tallies of one run share their memory: only what lies before ``length`` is theirs. ``filled`` says how far anybody
    went on; where two runs part, the second one gets memory of its own.
    """

    length: int = 0
    room: NDArray[np.uint16] = field(default_factory=lambda: np.zeros(0, np.uint16), repr=False)
    filled: list[int] = field(default_factory=lambda: [0], repr=False)

    def added(self, places: NDArray[np.int64], length: int) -> "Tally":
        """One more for each of the places, after which there are ``length`` lists."""
        room, filled = self.room, self.filled
        if length > len(room) or filled[0] > self.length:
            room = np.zeros(max(length, 2 * len(room)), np.uint16)
            room[: self.length] = self.room[: self.length]
            filled = [0]
        np.add.at(room, places, 1)
        filled[0] = max(length, self.length)
        return Tally(filled[0], room, filled)

    @property
    def counts(self) -> NDArray[np.uint16]:
        """One number a list."""
        return self.room[: self.length]
