"""Online learning, one round at a time: predict a list, see its labels, learn if the rule says so.

``play(rules, state, lists) -> (state, played)`` is all of it: a state is never changed, so that a run can be stopped,
saved and continued at any round, and any division of the same rounds into calls gives the same bits.
"""

import math
import numbers
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import RankwiseError
from rankwise._kernels import drive
from rankwise.data.queries import Queries
from rankwise.losses._base import Loss
from rankwise.losses.compute import PreparedLists
from rankwise.measures._base import BinaryMeasure, Measure
from rankwise.measures.compute import ScoredLists, measure_lists_by_ties

Vector = NDArray[np.float64]
Update = Literal["mistakes", "always"]
Step = Literal["constant", "sqrt"]
Ball = Literal["none", "l2", "l1"]
Averaging = Literal["none", "uniform", "suffix"]
Scaling = Literal["none", "radius", "standard"]

# Documents that are measured together, beside the rounds that follow: enough that handing them over does not show.
_TOGETHER = 1 << 14

_CHOICES: dict[str, tuple[str, ...]] = {
    "update": ("mistakes", "always"),
    "step": ("constant", "sqrt"),
    "projection": ("none", "l2", "l1"),
    "averaging": ("none", "uniform", "suffix"),
    "scale": ("none", "radius", "standard"),
}


@dataclass(frozen=True, kw_only=True)
class Rules:
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
    ball: float = math.inf
    averaging: Averaging = "none"
    scale: Scaling = "none"

    def __post_init__(self) -> None:
        for name, known in _CHOICES.items():
            if getattr(self, name) not in known:
                raise RankwiseError(f"{name} is one of {', '.join(map(repr, known))}: found {getattr(self, name)!r}")
        if not isinstance(self.eta, numbers.Real) or not 0 < self.eta < math.inf:
            raise RankwiseError(f"eta, the size of a step, is a number above 0: found {self.eta!r}")
        ball = self.ball if isinstance(self.ball, numbers.Real) else 0.0
        if (self.projection == "none") != (ball == math.inf) or not ball > 0:
            raise RankwiseError(
                f"a projection goes onto a ball of a radius above 0: found projection={self.projection!r} and "
                f"radius {self.ball!r}"
            )

    def cut(self) -> float:
        """How many positions decide whether a list is a mistake."""
        if self.measure.name in ("RR", "WTA"):  # nothing below the first position matters once that is right
            return 1.0
        return math.inf if self.measure.cutoff is None else float(self.measure.cutoff)

    def as_numbers(self) -> Vector:
        """The rules as the compiled loop reads them; see :mod:`rankwise.solvers._rounds`."""
        place = {name: float(known.index(getattr(self, name))) for name, known in _CHOICES.items()}
        return np.array(
            [
                self.cut(),
                place["update"],
                self.eta,
                place["step"],
                place["projection"],
                self.ball,
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
class Lists:
    """Judged lists with all that the labels alone decide: what the loss prepares, and the classes of labels."""

    queries: Queries
    prepared: PreparedLists
    grade: Vector

    @classmethod
    def of(cls, rules: Rules, queries: Queries) -> Self:
        from rankwise.losses.slam_weights import number_lists

        labels = queries.labels()
        rows = None if queries.is_grouped else queries.rows
        classes = rules.measure.row_values(labels) if isinstance(rules.measure, BinaryMeasure) else labels
        grade, every = np.empty(len(labels)), queries.rows

        def number(first: int, last: int) -> None:
            number_lists(queries.start[first : last + 1], every, classes, grade)

        drive.run(number, list(drive.query_chunks(queries.start)))
        return cls(queries, PreparedLists.of(rules.loss, labels, queries.start, rows), grade)


@dataclass(frozen=True)
class Played:
    """What happened in some rounds, one value a round: the lists, mistakes, and measures of the published scores.

    ``loss`` is that of the rounds that were learned from and 0 in the others. ``measure`` is NaN where a list has
    nothing to find; ``worst`` is its value with equal scores in the worst order.
    """

    order: NDArray[np.int64]
    mistake: NDArray[np.bool_]
    loss: Vector
    measure: Vector
    worst: Vector


def play(
    rules: Rules, state: State, lists: Lists, order: NDArray[np.int64], n_jobs: int | None = None
) -> tuple[State, Played]:
    """Present the lists ``order`` one after the other, from a state; the state after the last, and what happened."""
    from rankwise._kernels.jit import typed_function
    from rankwise.losses._driver import FORMULA
    from rankwise.solvers._rounds import rounds_on

    queries, prepared = lists.queries, lists.prepared
    after = state.copy()
    start = np.concatenate([[0], np.cumsum(queries.sizes[order])]).astype(np.int64)
    scores, loss = np.empty(int(start[-1])), np.zeros(len(order))
    mistake = np.zeros(len(order), dtype=bool)
    labels = _labels_in_order(queries, order, start)
    no_rows, no_weight = np.empty(0, np.int64), np.empty(0)
    X, rows = np.asarray(queries.X), no_rows if queries.is_grouped else queries.rows
    weight = no_weight if queries.weight is None else queries.weight
    given = (queries.start, rows, X, lists.grade, prepared.label, prepared.value, weight, prepared.table)
    told = (np.array(rules.loss.knobs(), dtype=np.float64), rules.as_numbers())
    formula, rounds = typed_function(type(rules.loss).formula, FORMULA), rounds_on(queries.X.dtype)

    def present(first: int, last: int) -> None:
        room = (scores[start[first] : start[last]], loss[first:last], mistake[first:last])
        done = first + rounds(formula, order[first:last], *given, *told, *vars(after).values(), *room)
        if done < last:
            query = queries.names()[int(order[done])]
            raise RankwiseError(
                f"a score of query {query!r} in round {state.rounds + done + 1:,} is too large for float64: scale the "
                "features, or take a smaller eta"
            )

    def measured(first: int, last: int) -> Vector:
        """What was shown, with equal scores in no order and in the worst one."""
        places = slice(start[first], start[last])
        shown = ScoredLists(scores[places], labels[places], start[first : last + 1] - start[first])
        return np.asarray(measure_lists_by_ties([rules.measure], shown, ["expected", "pessimistic"], n_jobs=1)[:, 0])

    values = _beside(present, measured, list(drive.query_chunks(start, _TOGETHER)), drive.threads(n_jobs))
    if not all(np.isfinite(getattr(after, name)).all() for name in ("w", "sums", "moments", "sizes")):
        raise RankwiseError(
            f"weights or radii after round {after.rounds:,} are too large for float64: scale the features, or take a "
            "smaller eta"
        )
    expected, worst = np.concatenate([np.empty((2, 0)), *values], axis=1)
    return after, Played(order, mistake, loss, expected, worst)


def _beside(
    present: Callable[[int, int], None],
    measured: Callable[[int, int], Vector],
    parts: list[tuple[int, int]],
    threads: int,
) -> list[Vector]:
    """Rounds follow one another, but what was shown is measured beside them."""
    if threads == 1 or len(parts) == 1:
        found = []
        for part in parts:
            present(*part)
            found.append(measured(*part))
        return found
    with ThreadPoolExecutor(1) as beside:
        waiting = []
        for part in parts:
            present(*part)
            waiting.append(beside.submit(measured, *part))
        return [future.result() for future in waiting]


def _labels_in_order(queries: Queries, order: NDArray[np.int64], start: NDArray[np.int64]) -> Vector:
    """The labels of these lists, list after list; a view where they stand that way already."""
    labels = queries.labels()
    if queries.is_grouped and len(order) and (np.diff(order) == 1).all():
        return labels[queries.start[order[0]] : queries.start[order[-1] + 1]]
    places = np.repeat(queries.start[order] - start[:-1], np.diff(start)) + np.arange(start[-1])
    return np.ascontiguousarray(labels[places if queries.is_grouped else queries.rows[places]])
