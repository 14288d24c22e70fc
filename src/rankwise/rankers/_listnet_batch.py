"""ListNet over all lists at once: min (lambda/2) norm(w)^2 + (1/n) sum_q weight_q KL_q(X_q w), by L-BFGS.

KL_q is the cross-entropy less what it is at best; n is the sum of the weights. Every strength lambda begins at 0, so
that the weights of the one that is chosen are those of a fit with it alone.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import RankwiseError
from rankwise._progress import progress
from rankwise._tables import Table
from rankwise.data.queries import Queries
from rankwise.losses.listnet import ListNet as ListNetLoss
from rankwise.measures._base import Measure
from rankwise.rankers._choosing import held_out, linear_scores, mean_measure, mean_over_parts
from rankwise.rankers._history import History
from rankwise.solvers.descent import Function, descend
from rankwise.solvers.objective import LossOverLists

Vector = NDArray[np.float64]

STRENGTHS = tuple(10.0**power for power in range(-6, 2))
COLUMNS: dict[str, type[np.generic]] = {
    "step": np.int64,
    "objective": np.float64,
    "gradient": np.float64,
    "train": np.float64,
    "validation": np.float64,
}


class BatchStep(NamedTuple):
    """The end of a step; ``held`` is the measure on the validation set where it was looked at on the way."""

    w: Vector
    objective: float
    gradient: float
    held: float


@dataclass(frozen=True)
class BatchRun:
    """The steps of one strength, the start at 0 the first of them; steps are only ever added."""

    strength: float
    steps: list[BatchStep] = field(default_factory=list)

    @property
    def best(self) -> int:
        """The step to keep: the best on the validation set where it was looked at, else the last."""
        held = np.array([step.held for step in self.steps[1:]])
        return len(self.steps) - 1 if np.isnan(held).all() else 1 + int(np.nanargmax(held))

    @property
    def w(self) -> Vector:
        return self.steps[self.best].w


@dataclass(frozen=True, kw_only=True)
class Batch:
    """What all strengths share; ``factor`` puts the features on a common scale."""

    loss: ListNetLoss
    measure: Measure
    factor: Vector
    steps: int
    tolerance: float
    patience: int | None
    n_jobs: int | None

    def __post_init__(self) -> None:
        if not _whole(self.steps) or self.steps < 1:
            raise RankwiseError(f"steps is a whole number of 1 or more: found {self.steps!r}")
        if self.patience is not None and (not _whole(self.patience) or self.patience < 1):
            raise RankwiseError(f"patience is None or a whole number of 1 or more: found {self.patience!r}")
        if not isinstance(self.tolerance, (int, float)) or not 0 <= self.tolerance < math.inf:
            raise RankwiseError(f"tolerance is a number of 0 or more: found {self.tolerance!r}")

    def objective(self, queries: Queries, strength: float) -> Function:
        """Value and gradient as functions of weights on scaled features."""
        lists = LossOverLists.of(self.loss, queries)
        total = float(len(queries)) if queries.weight is None else math.fsum(queries.weight)
        share = 1 / total if total > 0 else 0.0

        def value_and_slope(w: Vector) -> tuple[float, Vector]:
            value, slope = lists(w * self.factor, n_jobs=self.n_jobs)
            return strength / 2 * float(w @ w) + share * value, strength * w + share * self.factor * slope

        return value_and_slope

    @np.errstate(over="ignore", invalid="ignore")  # a step too far is not taken, and nobody need hear of it
    def descend(self, run: BatchRun, queries: Queries, held: Queries | None) -> None:
        """Add the steps of this strength to the run; with ``patience``, until so many do not help on ``held``."""
        function, start = self.objective(queries, run.strength), np.zeros(queries.n_features)
        watched = held if self.patience is not None else None

        def after(w: Vector, value: float, slope: Vector) -> bool:
            run.steps.append(BatchStep(w, value, float(np.linalg.norm(slope)), self.worth(watched, w)))
            return self.patience is not None and len(run.steps) - 1 - run.best >= self.patience

        value, slope = function(start)
        size = float(np.linalg.norm(slope))
        if not (math.isfinite(value) and math.isfinite(size)):
            raise RankwiseError("the features are too large to learn from: scale them, or use scale='auto'")
        run.steps.append(BatchStep(start, value, size, math.nan))
        descend(function, start, solver="lbfgs", steps=self.steps, tolerance=self.tolerance, callback=after)

    def worth(self, queries: Queries | None, w: Vector) -> float:
        """The mean measure of weights on scaled features; NaN where there are no lists."""
        if queries is None:
            return math.nan
        scores = linear_scores(queries.X, w * self.factor, self.n_jobs)
        return mean_measure(queries, scores, self.measure, self.n_jobs)

    def history(self, run: BatchRun, train: Queries, held: Queries | None) -> History:
        """The run as a table, measured on both sets at every step."""
        columns = {
            "step": np.arange(len(run.steps)),
            "objective": [step.objective for step in run.steps],
            "gradient": [step.gradient for step in run.steps],
            "train": [self.worth(train, step.w) for step in run.steps],
            "validation": [self.worth(held, step.w) for step in run.steps],
        }
        return as_history(columns, self.measure)


class Learned(NamedTuple):
    """What a fit over all lists comes to."""

    coef: Vector
    strength: float
    step: int
    path: Table
    history: History


@dataclass(frozen=True, kw_only=True)
class Trials:
    """Strengths tried on the same lists, judged on a validation set or by folds (``parts``), the best one kept.

    ``runs`` and ``by_folds`` are only ever added to: what they hold is whole at any moment.
    """

    batch: Batch
    strengths: tuple[float, ...]
    queries: Queries
    validation: Queries | None
    parts: list[NDArray[np.int64]]
    runs: list[BatchRun] = field(default_factory=list)
    by_folds: list[Vector] = field(default_factory=list)

    @property
    def passes(self) -> int:
        """How many descents there will be."""
        return len(self.strengths) * (len(self.parts) or 1) + bool(self.parts)

    def run(self, bar: progress) -> None:
        """All descents: with a validation set every strength on all lists, else the one that the folds choose."""
        for part in self.parts:
            self.by_folds.append(self._judged_on(part, bar))
        chosen = [self._best(self._judged())] if self.validation is None else range(len(self.strengths))
        for number in chosen:
            self.runs.append(BatchRun(self.strengths[number]))
            self.batch.descend(self.runs[-1], self.queries, self.validation)
            bar.advance()

    @property
    def stepped(self) -> bool:
        """Whether a step on all lists has been finished."""
        return any(len(run.steps) > 1 for run in self.runs)

    def learned(self) -> Learned:
        """The best of the runs so far, of which the last may be unfinished."""
        runs = [run for run in self.runs if run.steps]
        judged = self._judged()
        best = runs[0] if self.validation is None else runs[self._best(judged[: len(runs)])]
        coef = best.w * self.batch.factor
        if not np.isfinite(coef).all():
            raise RankwiseError("the weights grew beyond all numbers: scale the features, or use scale='auto'")
        path = Table({"strength": list(self.strengths), self.batch.measure.title: judged})
        history = self.batch.history(best, self.queries, self.validation)
        return Learned(coef, best.strength, best.best, path, history)

    def _judged(self) -> Vector:
        """What every strength is worth; NaN for those that nothing has judged yet."""
        if self.by_folds:
            return mean_over_parts(self.by_folds)
        judged = np.full(len(self.strengths), np.nan)
        for number, run in enumerate(self.runs if self.validation is not None else []):
            if run.steps:
                judged[number] = self.batch.worth(self.validation, run.w)
        return judged

    def _best(self, judged: Vector) -> int:
        """The first of the best; where nothing judges them, the strongest strays least."""
        unknown = np.isnan(judged).all()
        return int(np.argmax(self.strengths[: len(judged)]) if unknown else np.nanargmax(judged))

    def _judged_on(self, part: NDArray[np.int64], bar: progress) -> Vector:
        """What every strength is worth on lists that were held out."""
        train, held = held_out(self.queries, part)
        worth = []
        for strength in self.strengths:
            run = BatchRun(strength)
            self.batch.descend(run, train, None)
            worth.append(self.batch.worth(held, run.w))
            bar.advance()
        return np.array(worth)


def as_history(columns: Mapping[str, Any], measure: Measure) -> History:
    """The columns of a run as a table that draws the measure."""
    return History(columns, ("train", "validation"), f"{measure.title} along the descent")


def _whole(number: object) -> bool:
    return isinstance(number, (int, np.integer)) and not isinstance(number, bool)
