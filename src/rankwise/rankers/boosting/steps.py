"""Rankers that are sums of steps, s(x) = sum_t alpha_t 1[x_f > theta], grown one step a round."""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import RankwiseError
from rankwise._kernels import drive
from rankwise._progress import progress
from rankwise._store import Store
from rankwise._tables import Table
from rankwise.data.checks import Floats
from rankwise.data.queries import Queries
from rankwise.measures._base import Measure
from rankwise.measures.compute import PreparedMeasure, ScoredLists, measure_lists
from rankwise.rankers._base import Ranker
from rankwise.rankers._history import History, history_arrays, read_history
from rankwise.rankers._model_selection import weighted_mean
from rankwise.rankers.boosting.candidates import Candidates, GradedLists

Vector = NDArray[np.float64]

# Alphas are whole multiples of this: sums of them are exact while they stay below 2^13, in whatever order they are
# taken. So rounds are judged by the bits that will be published, and scores that are equal on paper are equal.
GRAIN = 2.0**-40
# Candidates whose worth differs by less are equal: sums over documents are not known better.
TIE = 1e-12


class Step(NamedTuple):
    """What a round decided: a candidate, its alpha, the algorithm's own columns, and whether nothing is left to do."""

    candidate: int
    alpha: float
    facts: tuple[float, ...]
    last: bool = False


@dataclass(eq=False, repr=False, kw_only=True)
class ThresholdRanker(Ranker):
    """The rounds, the scores and the file of an additive threshold ranker; an algorithm says how a step is chosen."""

    takes_validation = True
    own_columns: ClassVar[tuple[str, ...]]  # what the algorithm adds to the table of rounds
    options: ClassVar[Mapping[str, tuple[str, ...]]]  # its parameters that are one of some words
    drawn: ClassVar[tuple[str, ...]] = ("train", "validation")

    rounds: int = 100
    thresholds: int | None = 255
    patience: int | None = None

    @abstractmethod
    def _begin(self, lists: GradedLists, candidates: Candidates) -> Callable[[Vector], Step | None]:
        """What gives the next step for the scores at the places of ``lists``, or None where none would help."""

    @property
    def steps_(self) -> Table:
        """The steps that make up the score: feature, threshold, alpha, in the order in which they were found."""
        self._check_fitted()
        return Table({name: self.history_[name][: self.rounds_] for name in ("feature", "threshold", "alpha")})

    def _fit(self, queries: Queries, validation: Queries | None) -> None:
        measure = self._measure()
        self._check_parameters()
        if self.patience is not None and validation is None:
            raise RankwiseError("patience counts rounds without a better validation measure: give validation=")
        lists = GradedLists.of(queries)
        candidates = Candidates.of(queries.X, lists.rows, lists.n_paired, self.thresholds, self.n_jobs)
        if validation is not None:
            candidates = candidates.with_documents(validation.X, self.n_jobs)
        next_step = self._begin(lists, candidates)
        watched = Watched.of(lists.rows, candidates.bins, queries, validation, measure)
        done: list[tuple[float, ...]] = []

        def keep() -> bool:
            finished = list(done)
            if finished:
                self._take(finished)
            return bool(finished)

        bar = progress("boosting", self.rounds, enabled=None if self.verbose else False)
        with self._kept_on_ctrl_c(keep), bar:
            while len(done) < self.rounds and not self._waited_enough(done):
                step = next_step(watched.score) if len(candidates) else None
                if step is None:
                    break
                feature, cut = candidates.place(step.candidate)
                worth = watched.add(feature, cut, step.alpha, self.n_jobs)
                threshold = float(candidates.cut[step.candidate])
                done.append((feature, threshold, step.alpha, *step.facts, *worth))
                bar.advance(1)
                if step.last:
                    break
            self._take(done)

    def _check_parameters(self) -> None:
        for name, none in (("rounds", False), ("thresholds", True), ("patience", True)):
            value = getattr(self, name)
            if not (none and value is None) and not (_is_whole(value) and value >= 1):
                raise RankwiseError(f"{name} is a whole number, 1 or more{' or None' * none}: found {value!r:.60}")
        for name, known in {**self.options, "missing": ("error", "zero", "min")}.items():
            value = getattr(self, name)
            if value not in known:
                raise RankwiseError(f"{name} is {' or '.join(map(repr, known))}: found {value!r:.60}")

    def _waited_enough(self, done: list[tuple[float, ...]]) -> bool:
        return self.patience is not None and len(done) - _best([row[-1] for row in done]) >= self.patience

    def _take(self, done: list[tuple[float, ...]]) -> None:
        """The fitted state after these rounds."""
        columns = np.array(done, dtype=np.float64).reshape(len(done), len(self._columns()) - 1).T
        named = dict(zip(list(self._columns())[1:], columns, strict=True))
        self._set({"round": np.arange(1, len(done) + 1), **named, "feature": named["feature"].astype(np.int64)})

    def _set(self, columns: Mapping[str, Any], rounds: int | None = None) -> None:
        title = f"{self.name}: {self._measure().title} by round"
        self.rounds_ = _best(columns["validation"]) if rounds is None else rounds
        self.history_ = History({name: columns[name] for name in self._columns()}, self.drawn, title)

    def _columns(self) -> dict[str, type[np.generic]]:
        floats = ("threshold", "alpha", *self.own_columns, "train", "validation")
        return {"round": np.int64, "feature": np.int64, **dict.fromkeys(floats, np.float64)}

    # ------------------------------------------------------------------------------------------- scores and files

    def _scores(self, X: Floats) -> Vector:
        return StepScorer.of(self.steps_)(X, self.n_jobs)

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        return {"rounds": self.rounds_, "features": self.n_features_in_}, history_arrays(self.history_)

    def _restore(self, facts: Mapping[str, Any], store: Store) -> None:
        self._check_parameters()
        columns = read_history(store, self._columns())
        count, kept, width = len(columns["round"]), facts["rounds"], self.n_features_in_
        if any(len(column) != count for column in columns.values()):
            raise RankwiseError("its table of rounds has columns of different lengths")
        if not np.array_equal(columns["round"], np.arange(1, count + 1)):
            raise RankwiseError(f"its rounds are not numbered from 1 to {count}")
        if not _is_whole(kept) or not 0 <= kept <= count:
            raise RankwiseError(f"it keeps {kept!r:.20} of its {count} rounds")
        if facts["features"] != width or ((columns["feature"] < 0) | (columns["feature"] >= width)).any():
            raise RankwiseError(f"its steps are not on features 0 to {width - 1}")
        with np.errstate(over="ignore"):
            if not np.isfinite(columns["threshold"]).all() or not np.isfinite(np.abs(columns["alpha"]).sum()):
                raise RankwiseError("its thresholds or alphas are not finite")
        self._set(columns, int(kept))


@dataclass(frozen=True)
class StepScorer:
    """Steps compressed: for every feature in use its thresholds, ascending, and what each bin between them is worth.

    The thresholds of feature[n] are cut[start[n]:start[n+1]]; its bins, one more, are worth worth[start[n] + n] and
    what follows: sums of alphas.
    """

    feature: NDArray[np.int64]
    start: NDArray[np.int64]
    cut: Vector
    worth: Vector

    @classmethod
    def of(cls, steps: Table) -> Self:
        """Steps at the same threshold become one."""
        order = np.lexsort((steps["threshold"], steps["feature"]))
        feature, cut = steps["feature"][order], steps["threshold"][order]
        fresh = np.ones(len(order), dtype=bool)
        fresh[1:] = (feature[1:] != feature[:-1]) | (cut[1:] != cut[:-1])
        alpha = np.bincount(np.cumsum(fresh) - 1, steps["alpha"][order]) if len(order) else np.empty(0)
        used, first = np.unique(feature[fresh], return_index=True)
        start = np.append(first, fresh.sum()).astype(np.int64)
        worths = [np.append(0.0, np.cumsum(part)) for part in np.split(alpha, first[1:])] if len(used) else []
        return cls(used.astype(np.int64), start, cut[fresh], np.concatenate([*worths, np.empty(0)]))

    def __call__(self, X: Floats, n_jobs: int | None = None) -> Vector:
        """One score a row: a binary search for every feature in use."""
        from rankwise._kernels.thresholds import score_steps

        rows, scores = np.asarray(X), np.empty(len(X))
        parts = [(first, min(first + drive.CHUNK, len(X))) for first in range(0, len(X), drive.CHUNK)]

        def score(first: int, last: int) -> None:
            score_steps(rows, first, last, self.feature, self.start, self.cut, self.worth, scores)

        drive.run(score, parts, n_jobs)
        return scores


def on_grain(alpha: float) -> float:
    """The nearest multiple of :data:`GRAIN`, and never 0 for an alpha that is not."""
    return (round(alpha / GRAIN) or math.copysign(1.0, alpha)) * GRAIN if alpha else 0.0


def first_largest(value: Vector) -> int:
    """The first of the largest values, those that agree to :data:`TIE` being equal."""
    return int(np.argmax(value >= value.max() - TIE))


def _best(worth: Any) -> int:
    """The number of rounds with the highest worth, the fewest of equals; all of them where nothing judges them."""
    values = np.asarray(worth, dtype=np.float64)
    return len(values) if np.isnan(values).all() else int(np.nanargmax(values)) + 1


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


# ------------------------------------------------------------------------------------------------------------ watched
# Training and validation documents while a ranker grows by steps: their scores, and the measure after every round.


@dataclass(frozen=True)
class Watched:
    """The scores of training and validation documents, and the measure on either set after every round.

    ``score`` holds those at the places of ``rows``, which are also those of ``bins``; rows of the validation set are
    counted on from those of the training set, so that one pass serves both.
    """

    rows: NDArray[np.int64]
    bins: NDArray[Any]
    weight: tuple[Vector, Vector]
    measure: PreparedMeasure
    lists: ScoredLists
    score: Vector

    @classmethod
    def of(
        cls, places: NDArray[np.int64], bins: NDArray[Any], train: Queries, held: Queries | None, measure: Measure
    ) -> Self:
        sets = [train] if held is None else [train, held]
        shifts = [0, train.n_documents][: len(sets)]
        rows = [part.rows + shift for part, shift in zip(sets, shifts, strict=True)]
        starts = [part.start[1:] + shift for part, shift in zip(sets, shifts, strict=True)]
        lists = ScoredLists(
            np.zeros(sum(map(len, rows))),
            np.concatenate([part.labels() for part in sets]),
            np.concatenate([[0], *starts]),
            None if all(part.is_grouped for part in sets) else np.concatenate(rows),
        )
        if held is not None:
            places = np.append(places, train.n_documents + np.arange(held.n_documents))
        weight = (train.query_weight, np.empty(0) if held is None else held.query_weight)
        told = PreparedMeasure.of(measure, lists.labels, lists.start)
        return cls(places, bins, weight, told, lists, np.zeros(len(places)))

    def add(self, feature: int, cut: int, alpha: float, n_jobs: int | None) -> tuple[float, float]:
        """Take a step; the mean measure of either set after it, as :func:`mean_measure` has it."""
        from rankwise._kernels.thresholds import add_step

        add_step(self.bins[feature], cut, alpha, self.score)
        self.lists.scores[self.rows] = self.score
        values = measure_lists([self.measure], self.lists, n_jobs=n_jobs)[0]
        train = len(self.weight[0])
        return weighted_mean(values[:train], self.weight[0]), weighted_mean(values[train:], self.weight[1])
