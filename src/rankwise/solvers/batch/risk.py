"""The regularised mean loss over judged queries, minimised for one level of the penalty after another.

:class:`BundleRisk` takes any convex loss, :class:`NewtonRisk` losses with Hessian products. Each keeps what it learned
from one level for the next. :class:`Attempt` records the rounds of one level, so that an interrupted fit keeps them.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rankwise._progress import progress
from rankwise.data.queries import Queries
from rankwise.losses._base import Loss
from rankwise.losses.compute import LossOverLists
from rankwise.solvers.batch.bundle import Bundle, Form
from rankwise.solvers.batch.newton import NewtonStep, Ridged, SquaredPairsAt, SquaredPairsOverLists, newton

Vector = NDArray[np.float64]


class Round(NamedTuple):
    """The best weights after a round, in the units of the scaled features, and its row of the history.

    A row begins with the number of the round, the objective, its lower bound, and the gap between the two.
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
    """A problem that is solved for several levels of its penalty."""

    def solve(self, level: float, tolerance: float, max_calls: int, note: Note) -> None:
        """Solve the problem at this level; ``note`` is called after every round, including the last."""


def mean_share(queries: Queries) -> float:
    """1 / the total weight of the queries, which turns a weighted sum into a mean; 0 without queries."""
    total = math.fsum(queries.query_weight)
    return 1 / total if total > 0 else 0.0


class BundleRisk:
    r"""The mean loss F with a penalty on w - w0, minimised by cutting planes.

    Parameters
    ----------
    loss : Loss
        A convex loss.
    queries : Queries
        The judged queries that its mean is over.
    factor : ndarray of shape (n_features,)
        Factor of each feature; w is the weight of the scaled one.
    prior : ndarray of shape (n_features,)
        w0.
    form : {"l2", "l1", "l1 ball"}
        (level/2) norm2(w - w0)^2 + F, level norm1(w - w0) + F, or F subject to norm1(w - w0) <= level.
    n_jobs : int or None
        Number of threads.

    Notes
    -----
    A search ends once gap <= tolerance x objective and nine tenths of all that can be gained over w0 have certainly
    been gained. The latter matters where the penalty is so large that w0 itself is within the tolerance: its direction
    ranks, however short it is. Where nothing can be gained, gap <= tolerance^2 x objective ends the search.
    """

    columns = ("call", "objective", "lower bound", "gap", "planes")

    def __init__(
        self,
        loss: Loss,
        queries: Queries,
        factor: Vector,
        prior: Vector,
        form: Form,
        n_jobs: int | None,
    ) -> None:
        lists, share = LossOverLists.of(loss, queries), mean_share(queries)

        def mean_loss(w: Vector) -> tuple[float, Vector]:
            total, slope = lists(w * factor, n_jobs=n_jobs)
            return share * total, share * (slope * factor)

        self._bundle = Bundle(mean_loss, queries.n_features, center=prior, floor=0.0 if loss.nonnegative else None)
        self._form = form
        self._at_prior, _ = self._bundle.ask(prior)

    def solve(self, level: float, tolerance: float, max_calls: int, note: Note) -> None:
        def after(w: Vector, row: Mapping[str, float]) -> bool:
            note(Round(w, tuple(row.values())))
            objective, gap = row["objective"], row["gap"]
            return gap <= tolerance * objective and gap <= 0.1 * (self._at_prior - row["lower bound"])

        self._bundle.solve(level, self._form, tol=tolerance**2, max_calls=max_calls, callback=after)


class NewtonRisk:
    """(level/2) norm(w - w0)^2 + the mean squared pair hinge by truncated Newton steps, each level from the last's w.

    Parameters
    ----------
    loss : Loss
        A loss that declares ``squared_pairs``.
    queries : Queries
        The judged queries that its mean is over.
    factor : ndarray of shape (n_features,)
        Factor of each feature.
    prior : ndarray of shape (n_features,)
        w0.
    n_jobs : int or None
        Number of threads.
    """

    columns = ("step", "objective", "lower bound", "gap", "products")

    def __init__(self, loss: Loss, queries: Queries, factor: Vector, prior: Vector, n_jobs: int | None) -> None:
        self._pairs = SquaredPairsOverLists.of(queries, bool(loss.squared_pairs))
        self._share, self._factor, self._prior, self._n_jobs = mean_share(queries), factor, prior, n_jobs
        self._z = np.zeros_like(prior)  # w - w0
        self._at_prior = self._share * self._from_prior(self._z).value

    def solve(self, level: float, tolerance: float, max_calls: int, note: Note) -> None:
        def after(z: Vector, step: NewtonStep) -> bool:
            row = (step.step, step.value, step.value - step.gap, step.gap, step.products)
            note(Round(self._prior + z, row))
            return step.gap <= tolerance * step.value and step.gap <= 0.1 * (self._at_prior - row[2])

        problem = Ridged(self._from_prior, level, self._share, self._factor)
        found = newton(problem, self._z, tolerance=0.0, steps=max_calls, strong=level, callback=after)
        if found.steps == 0:  # there was nothing to improve
            after(found.w, NewtonStep(**next(iter(found.history))))
        self._z = found.w

    def _from_prior(self, raw: Vector) -> SquaredPairsAt:
        return self._pairs(raw + self._prior * self._factor, self._n_jobs)


@dataclass(frozen=True)
class Attempt:
    """One level: its rounds so far, and its measure once it was judged.

    Both lists grow by whole items only, so that an interrupted fit finds a consistent state.
    """

    level: float
    rounds: list[Round] = field(default_factory=list)
    worth: list[float] = field(default_factory=list)

    def run(self, risk: Risk, tolerance: float, max_calls: int, bar: progress) -> None:
        """Solve; the bar advances by 1 in total, in proportion to the progress of the gap towards the tolerance."""
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
