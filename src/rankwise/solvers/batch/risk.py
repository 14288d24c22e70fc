"""The regularised mean loss over judged lists, made smallest for one alpha, or one ball, after another."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rankwise._progress import progress
from rankwise.data.queries import Queries
from rankwise.losses._base import Loss
from rankwise.solvers.batch.bundle import Bundle
from rankwise.solvers.batch.objective import LossOverLists

Vector = NDArray[np.float64]


class Round(NamedTuple):
    """The best weights after a round, in the units of the scaled features, and the round's row of the history.

    A row begins with the number of the round, the objective, what no weights can go below, and the gap between the two.
    """

    w: Vector
    row: tuple[float, ...]

    @property
    def objective(self) -> float:
        return self.row[1]

    @property
    def gap(self) -> float:
        return self.row[3]


Note: TypeAlias = Callable[[Round], None]


class Risk(Protocol):
    """What a ranker asks of a problem that it solves for several alphas."""

    def solve(self, level: float, tolerance: float, max_calls: int, note: Note) -> None:
        """Make the problem of this alpha, or in this ball, small; every round, the last one too, is noted."""


def mean_share(queries: Queries) -> float:
    """What makes a mean over lists of a sum by their weights; 0 where there are no lists."""
    total = math.fsum(queries.query_weight)
    return 1 / total if total > 0 else 0.0


class BundleRisk:
    r"""(lambda/2) norm(w - w0)^2 + F(w), or F(w) where norm1(w - w0) <= radius, F the mean loss: by cutting planes.

    Parameters
    ----------
    loss, queries : a convex loss, never below 0, and the lists that it is taken over
    factor : of each feature; w is the weight of the scaled one
    center : w0
    in_ball : whether a level is the radius of a ball
    n_jobs : threads

    Notes
    -----
    A search is over once gap <= tolerance x objective and nine tenths of all that can be gained over w0 have been
    gained for certain. The latter matters where the alpha is so large that w0 itself is within the tolerance: it is
    the direction that ranks, however short. Where nothing can be gained, gap <= tolerance^2 x objective ends it.
    """

    columns = ("call", "objective", "lower bound", "gap", "planes")

    def __init__(
        self, loss: Loss, queries: Queries, factor: Vector, center: Vector, in_ball: bool, n_jobs: int | None
    ) -> None:
        lists, share = LossOverLists.of(loss, queries), mean_share(queries)

        def mean_loss(w: Vector) -> tuple[float, Vector]:
            total, slope = lists(w * factor, n_jobs=n_jobs)
            return share * total, share * (slope * factor)

        self._bundle = Bundle(mean_loss, queries.n_features, center=center, floor=0.0)
        self._search = self._bundle.solve_in_l1_ball if in_ball else self._bundle.solve
        self._at_center, _ = self._bundle.ask(center)

    def solve(self, level: float, tolerance: float, max_calls: int, note: Note) -> None:
        def after(w: Vector, row: Mapping[str, float]) -> bool:
            note(Round(w, tuple(row.values())))
            objective, gap = row["objective"], row["gap"]
            return gap <= tolerance * objective and gap <= 0.1 * (self._at_center - row["lower bound"])

        self._search(level, tol=tolerance**2, max_calls=max_calls, callback=after)


@dataclass(frozen=True)
class Attempt:
    """One level as far as it has been worked on: its rounds, and its worth once it was judged.

    Both lists only ever grow, by one whole item at a time, so that whoever is interrupted finds nothing half done.
    """

    level: float
    rounds: list[Round] = field(default_factory=list)
    worth: list[float] = field(default_factory=list)

    def run(self, risk: Risk, tolerance: float, max_calls: int, bar: progress) -> None:
        """Solve; the bar advances by 1 in all, by how far the gap has come on its way to the tolerance."""
        shown = 0.0

        def note(found: Round) -> None:
            nonlocal shown
            self.rounds.append(found)
            first, aim = self.rounds[0].gap, tolerance * abs(found.objective)
            if 0 < aim < found.gap < first:
                way = math.log(first / found.gap) / math.log(first / aim)
                bar.advance(max(0.0, way - shown))
                shown = max(shown, way)

        risk.solve(self.level, tolerance, max_calls, note)
        bar.advance(1.0 - shown)
