"""The rounds of PermuRank for one strength: solve on the working sets, rank, add the orders that are violated most."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import RankwiseError
from rankwise.data.queries import Queries
from rankwise.rankers._choosing import linear_scores, mean_measure
from rankwise.rankers._history import History
from rankwise.rankers._list_orders import ListOrders
from rankwise.solvers.bundle import Bundle
from rankwise.solvers.working_sets import WorkingSets

Vector = NDArray[np.float64]

COLUMNS: dict[str, type[np.generic]] = {
    "round": np.int64,
    "objective": np.float64,
    "loss": np.float64,
    "gap": np.float64,
    "perfect": np.float64,
    "imperfect": np.float64,
    "largest": np.int64,
    "added": np.int64,
    "train": np.float64,
    "validation": np.float64,
    "bound": np.bool_,
}
# Where next to nothing can be gained by leaving w = 0, a gap of so many parts of the objective there is small.
_NOTHING = 1e-6
_MOST_CALLS = 2000


@dataclass(frozen=True)
class Round:
    """What one round found: weights of scaled features, and a row of the history in the order of its columns."""

    w: Vector
    row: tuple[Any, ...]
    held: float
    added: int


@dataclass(frozen=True)
class Run:
    """The rounds of one strength, which are only ever appended to: after Ctrl-C the finished ones are all there."""

    strength: float
    rounds: list[Round] = field(default_factory=list)

    @property
    def held(self) -> Vector:
        """The measure on held-out lists, round by round."""
        return np.array([one.held for one in self.rounds])

    @property
    def converged(self) -> bool:
        """Whether the last round added no order."""
        return self.rounds[-1].added == 0

    def history(self) -> History:
        columns = zip(*(one.row for one in self.rounds), strict=True)
        return as_history(
            {name: np.array(column, kind) for (name, kind), column in zip(COLUMNS.items(), columns, strict=True)}
        )


def as_history(columns: dict[str, NDArray[Any]]) -> History:
    return History(columns, ("train", "validation"), "PermuRank, round by round")


@dataclass(frozen=True, kw_only=True)
class Permuting:
    """How rounds are made, whatever the lists and the strength.

    ``lists`` gives the orders of some lists; ``largest`` is that of :class:`WorkingSets`.
    """

    lists: Callable[[Queries], ListOrders]
    largest: bool
    rounds: int
    tolerance: float
    n_jobs: int | None
    advance: Callable[[], None]

    def run(self, run: Run, train: Queries, held: Queries | None) -> Run:
        """Append rounds to ``run`` until no set changes, or there are enough."""
        lists = self.lists(train)
        sets, w = lists.working_sets(self.largest), np.zeros(train.n_features)
        lists.extend(sets, np.zeros(train.n_documents))
        while len(run.rounds) < self.rounds:
            run.rounds.append(self._round(len(run.rounds) + 1, run.strength, w, lists, sets, train, held))
            w = run.rounds[-1].w
            self.advance()
            if run.converged:
                break
        return run

    def _round(
        self,
        number: int,
        strength: float,
        w: Vector,
        lists: ListOrders,
        sets: WorkingSets,
        train: Queries,
        held: Queries | None,
    ) -> Round:
        w, objective, loss, gap = self._solve(strength, w, sets)
        sizes = sets.perfect, sets.imperfect
        counting = sizes[1] > 0
        means = [float(one[counting].mean()) if counting.any() else 0.0 for one in sizes]
        largest = int(max(one.max(initial=0) for one in sizes))
        scores = linear_scores(train.X, w * lists.factor, self.n_jobs)
        if not np.isfinite(scores).all():
            raise RankwiseError("features are so large that documents have no finite scores: scale them")
        perfect, imperfect = lists.extend(sets, scores)
        on_train = mean_measure(train, scores, lists.measure, self.n_jobs)
        on_held = math.nan
        if held is not None:
            there = linear_scores(held.X, w * lists.factor, self.n_jobs)
            on_held = mean_measure(held, there, lists.measure, self.n_jobs)
        added = perfect + imperfect
        row = (number, objective, loss, gap, *means, largest, added, on_train, on_held, imperfect == 0)
        return Round(w, row, on_held, added)

    def _solve(self, strength: float, start: Vector, sets: WorkingSets) -> tuple[Vector, float, float, float]:
        """(w, objective, loss, gap) of the problem on the sets as they are.

        The gap is small in parts of what was gained over w = 0: the loss grows with the sets, and most of it no w can
        change.
        """
        bundle = Bundle(lambda w: sets(w, self.n_jobs), len(start), floor=0.0)
        at_zero, _ = bundle.ask(np.zeros(len(start)))

        def enough(w: Vector, row: Any) -> bool:
            gained = max(at_zero - row["objective"], _NOTHING * at_zero)
            return bool(row["gap"] <= self.tolerance * gained)

        found = bundle.solve(strength, start=start, tol=0.0, max_calls=_MOST_CALLS, callback=enough)
        return found.w, found.objective, found.value, found.gap
