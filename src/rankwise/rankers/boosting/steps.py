"""Rankers that are sums of steps on single features, s(x) = sum_t alpha_t 1[x_f > theta], one step per round.

:class:`ThresholdRanker` has all that such rankers share: the rounds, the choice of the round to keep, the scores and
the file. An algorithm (:class:`~rankwise.RankBoost`, :class:`~rankwise.FRank`) supplies the function that finds the
next step among the :class:`~rankwise.rankers.boosting.candidates.Candidates`. During a fit, :class:`Watched` keeps the
scores of all documents and measures them after every round; :class:`StepScorer` scores new documents.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np

from rankwise._arrays import Array, Matrix, Numbers, Vector
from rankwise._kernels import parallel
from rankwise._kernels.pairs import exponential_potentials
from rankwise._kernels.thresholds import add_step, score_steps
from rankwise._parameters import PositiveInt
from rankwise._store import Store
from rankwise._tables import Table
from rankwise.errors import RankwiseError
from rankwise.measures._base import Measure
from rankwise.measures.compute import PreparedMeasure, ScoredLists, measure_lists
from rankwise.queries import checks
from rankwise.queries.checks import Floats
from rankwise.queries.queries import Queries
from rankwise.rankers._base import Ranker
from rankwise.rankers._history import History, history_arrays, read_history, typed_columns
from rankwise.rankers._model_selection import weighted_mean
from rankwise.rankers.boosting.candidates import Candidates, GradedLists

# Alphas are integer multiples of this. Sums of them are exact below 2^13, in any order: rounds are judged by the bits
# that ``predict`` gives, and scores that are equal on paper are equal.
GRAIN = 2.0**-40
# Candidates whose worth differs by less are equal: sums over documents are not more exact than this.
TIE = 1e-12


class Step(NamedTuple):
    """What a round decided.

    Attributes
    ----------
    candidate : int
        The number of the candidate.
    alpha : float
        Its weight.
    facts : tuple of float
        The columns that the algorithm adds to the table of rounds.
    last : bool
        Whether nothing is left to do after this step.
    """

    candidate: int
    alpha: float
    facts: tuple[float, ...]
    last: bool = False


@dataclass(eq=False, repr=False, kw_only=True)
class ThresholdRanker(Ranker):
    """What all rankers share that are sums of steps; a subclass supplies the choice of a step.

    Parameters
    ----------
    measure : str or Measure, default="nDCG@10"
        The measure that selects the round to keep on a validation set; ``score`` reports it.
    rounds : int, default=100
        The largest number of steps.
    thresholds : int, default=255
        The largest number of thresholds per feature; None takes all midpoints.
    patience : int, default=None
        Stop after so many rounds without a better measure on the validation set.
    n_jobs : int, default=None
        Number of threads; None uses all cores. The result does not depend on it.
    verbose : bool, default=False
        Whether to show a progress bar on a terminal.
    missing : {"error", "zero", "min"}, default="error"
        What to do with NaN in arrays.

    Attributes
    ----------
    rounds_ : int
        Number of steps that are kept.
    history_ : History
        One row per round.
    """

    takes_validation = True
    own_columns: ClassVar[tuple[str, ...]]  # what the algorithm adds to the table of rounds
    drawn: ClassVar[tuple[str, ...]] = ("train", "validation")

    rounds: PositiveInt = 100
    thresholds: PositiveInt | None = 255
    patience: PositiveInt | None = None

    @abstractmethod
    def _begin(self, lists: GradedLists, candidates: Candidates) -> Callable[[Vector], Step | None]:
        """The function that gives the next step for the scores at the places of ``lists``, or None if none helps."""

    @property
    def steps_(self) -> Table:
        """The steps that are kept: feature, threshold and alpha, in the order in which they were found."""
        self._check_fitted()
        return Table({name: self.history_[name][: self.rounds_] for name in ("feature", "threshold", "alpha")})

    def _fit(self, queries: Queries, validation: Queries | None) -> None:
        measure = self._measure()
        if self.patience is not None and validation is None:
            raise RankwiseError("patience counts rounds without a better validation measure: pass validation=")
        lists = GradedLists.of(queries)
        candidates = Candidates.of(queries.X, lists.rows, lists.n_paired, self.thresholds, self.n_jobs)
        # thresholds come from the training documents; those of the validation set only find their places between them
        if validation is not None:
            candidates = candidates.with_documents(validation.X, self.n_jobs)
        next_step = self._begin(lists, candidates)
        watched = Watched.of(lists.rows, candidates.bins, queries, validation, measure)
        done: list[tuple[float, ...]] = []

        bar = self._progress("boosting", self.rounds)
        with self._keep_on_interrupt(lambda: self._take(done), finished=lambda: done), bar:
            while len(done) < self.rounds and not self._is_out_of_patience(done):
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

    def _is_out_of_patience(self, done: list[tuple[float, ...]]) -> bool:
        return self.patience is not None and len(done) - _best([row[-1] for row in done]) >= self.patience

    def _take(self, done: list[tuple[float, ...]]) -> None:
        """Set the state after these rounds, given in the columns of the history but for the first."""
        columns = typed_columns([(number, *row) for number, row in enumerate(done, 1)], self._columns())
        self._set(columns, _best(columns["validation"]))

    def _set(self, columns: Mapping[str, Any], rounds: int) -> None:
        title = f"{self.name}: {self._measure().title} by round"
        self.rounds_ = rounds
        self.history_ = History({name: columns[name] for name in self._columns()}, self.drawn, title)

    def _columns(self) -> dict[str, type[np.generic]]:
        """The columns of the history, and their types."""
        floats = ("threshold", "alpha", *self.own_columns, "train", "validation")
        return {"round": np.int64, "feature": np.int64, **dict.fromkeys(floats, np.float64)}

    # ------------------------------------------------------------------------------------------- scores and files

    def _scores(self, X: Floats) -> Vector:
        return StepScorer.of(self.steps_)(X, self.n_jobs)

    def _contributions(self, X: Floats) -> tuple[Matrix, float] | None:
        return StepScorer.of(self.steps_).by_feature(X), 0.0

    def _state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        return {"rounds": self.rounds_, "features": self.n_features_in_}, history_arrays(self.history_)

    def _restore(self, facts: Mapping[str, Any], store: Store) -> None:
        columns = read_history(store, self._columns())
        count, kept, width = len(columns["round"]), facts["rounds"], self.n_features_in_
        if not np.array_equal(columns["round"], np.arange(1, count + 1)):
            raise RankwiseError(f"its rounds are not numbered from 1 to {count}")
        if not checks.is_whole(kept, 0) or kept > count:
            raise RankwiseError(f"it keeps {kept!r:.20} of its {count} rounds")
        if facts["features"] != width or ((columns["feature"] < 0) | (columns["feature"] >= width)).any():
            raise RankwiseError(f"its steps are not on features 0 to {width - 1}")
        # a sum of alphas that overflows would make scores that are not finite
        with np.errstate(over="ignore"):
            if not np.isfinite(columns["threshold"]).all() or not np.isfinite(np.abs(columns["alpha"]).sum()):
                raise RankwiseError("its thresholds or alphas are not finite")
        self._set(columns, int(kept))


def _best(worth: Any) -> int:
    """The number of rounds with the highest worth, the fewest of equals; all of them if none was judged."""
    values = np.asarray(worth, dtype=np.float64)
    return len(values) if np.isnan(values).all() else int(np.nanargmax(values)) + 1


def on_grain(alpha: float) -> float:
    """The nearest multiple of :data:`GRAIN`; it is 0 only if alpha is."""
    return (round(alpha / GRAIN) or math.copysign(1.0, alpha)) * GRAIN if alpha else 0.0


def first_largest(value: Vector) -> int:
    """The place of the first of the largest values, where values that differ by :data:`TIE` or less are equal."""
    return int(np.argmax(value >= value.max() - TIE))


# ------------------------------------------------------------------------------------------------------------- scores


@dataclass(frozen=True)
class StepScorer:
    """Steps in a compact form: the thresholds of each feature in use, and the sum of alphas between any two of them.

    Attributes
    ----------
    feature : ndarray of int64
        The features in use, ascending.
    start : ndarray of int64
        The thresholds of ``feature[n]`` are ``cut[start[n]:start[n+1]]``.
    cut : ndarray of float64
        The thresholds, ascending within each feature.
    worth : ndarray of float64
        The score of each interval between thresholds, one more per feature than there are thresholds; those of
        ``feature[n]`` begin at ``worth[start[n] + n]``.
    """

    feature: Numbers
    start: Numbers
    cut: Vector
    worth: Vector

    @classmethod
    def of(cls, steps: Table) -> Self:
        """The scorer of a table with the columns feature, threshold and alpha; equal thresholds become one."""
        order = np.lexsort((steps["threshold"], steps["feature"]))
        feature, cut = steps["feature"][order], steps["threshold"][order]
        # a step is fresh if it is the first at its threshold; the others add to its alpha
        fresh = np.ones(len(order), dtype=bool)
        fresh[1:] = (feature[1:] != feature[:-1]) | (cut[1:] != cut[:-1])
        alpha = np.bincount(np.cumsum(fresh) - 1, steps["alpha"][order]) if len(order) else np.empty(0)
        used, first = np.unique(feature[fresh], return_index=True)
        start = np.append(first, fresh.sum()).astype(np.int64)
        worths = [np.append(0.0, np.cumsum(part)) for part in np.split(alpha, first[1:])] if len(used) else []
        return cls(used.astype(np.int64), start, cut[fresh], np.concatenate([*worths, np.empty(0)]))

    def by_feature(self, X: Floats) -> Matrix:
        """What each feature adds to the score of each row; scores are sums of these from the first feature on."""
        found = np.zeros(X.shape)
        for number, feature in enumerate(self.feature.tolist()):
            first, last = int(self.start[number]), int(self.start[number + 1])
            below = np.searchsorted(self.cut[first:last], X[:, feature].astype(np.float64), side="left")
            found[:, feature] = self.worth[first + number + below]
        return found

    def __call__(self, X: Floats, n_jobs: int | None = None) -> Vector:
        """One score per row, by a binary search for every feature in use."""
        rows, scores = np.asarray(X), np.empty(len(X))
        parts = [(first, min(first + parallel.CHUNK, len(X))) for first in range(0, len(X), parallel.CHUNK)]

        def score(first: int, last: int) -> None:
            score_steps(rows, first, last, self.feature, self.start, self.cut, self.worth, scores)

        parallel.map_chunks(score, parts, n_jobs)
        return scores


@dataclass(frozen=True)
class Watched:
    """The scores of training and validation documents during a fit, and their measure after every round.

    Rows of the validation set are numbered on from those of the training set, so one pass measures both.

    Attributes
    ----------
    rows : ndarray of int64
        The row at each place of ``bins`` and ``score``.
    bins : ndarray of shape (n_features, n_places)
        Number of thresholds below each value, as in :class:`Candidates`.
    weight : tuple of two ndarray
        The weights of training and validation queries.
    measure : PreparedMeasure
        The measure.
    lists : ScoredLists
        Both sets of queries, with their scores in the order of the input.
    score : ndarray of shape (n_places,)
        The current scores.
    """

    rows: Numbers
    bins: Array
    weight: tuple[Vector, Vector]
    measure: PreparedMeasure
    lists: ScoredLists
    score: Vector

    @classmethod
    def of(cls, places: Numbers, bins: Array, train: Queries, held: Queries | None, measure: Measure) -> Self:
        """Scores of 0; ``places`` are the rows of the training documents, those of the validation set follow."""
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
        prepared = PreparedMeasure.of(measure, lists.labels, lists.start)
        return cls(places, bins, weight, prepared, lists, np.zeros(len(places)))

    def add(self, feature: int, cut: int, alpha: float, n_jobs: int | None) -> tuple[float, float]:
        """Take a step, and return the mean measure of the training and the validation set after it."""
        add_step(self.bins[feature], cut, alpha, self.score)
        self.lists.scores[self.rows] = self.score
        values = measure_lists([self.measure], self.lists, n_jobs=n_jobs)[0]
        train = len(self.weight[0])
        return weighted_mean(values[:train], self.weight[0]), weighted_mean(values[train:], self.weight[1])


# ---------------------------------------------------------------------------------------------------------- RankBoost


# From here on a weak ranker counts as perfect; this keeps alpha below 10.8.
PERFECT = 1.0 - 1e-9


@dataclass(eq=False, repr=False, kw_only=True)
class RankBoost(ThresholdRanker):
    r"""A weighted sum of thresholds of features, boosted for the exponential loss of pairs.

    s(x) = sum_t alpha_t 1[x_f > theta], each step with the largest abs(r) = abs(sum_ij D(i,j) (h_i - h_j)).

    D(i,j) is proportional to c_q exp(s_j - s_i), over pairs of the same query whose label_i is above label_j, with any
    number of levels; alpha = 0.5 ln((1 + r) / (1 - r)). The exponential loss sum_ij D_1(i,j) exp(s_j - s_i), and with
    it the weighted fraction of pairs that are misordered or tied, is at most the product of sqrt(1 - r^2) over the
    rounds.

    Parameters
    ----------
    measure : str or Measure, default="nDCG@10"
        The measure that selects the round to keep on a validation set; ``score`` reports it.
    rounds : int, default=300
        The largest number of steps.
    pairs : {"equal", "query"}, default="equal"
        "equal" gives every pair the same weight at the beginning, as Freund et al. do. "query" gives the pairs of a
        query the same total weight, however many they are. Both are multiplied by the weight of the query.
    thresholds : int, default=255
        The largest number of thresholds per feature: midpoints between its distinct values that divide the documents
        with pairs evenly. None takes all midpoints. With 255 a document takes one byte per feature.
    patience : int, default=None
        Stop after so many rounds without a better measure on the validation set.
    n_jobs : int, default=None
        Number of threads; None uses all cores. The result does not depend on it.
    verbose : bool, default=False
        Whether to show a progress bar on a terminal.
    missing : {"error", "zero", "min"}, default="error"
        What to do with NaN in arrays.

    Attributes
    ----------
    steps_ : Table
        Feature, threshold and alpha of the steps that are kept.
    rounds_ : int
        Number of steps that are kept: those up to the best round on the validation set, the first of equals; all of
        them without a validation set.
    history_ : History
        One row per round: round, feature, threshold, alpha, r, bound (the product above), and the measure on training
        and validation queries.

    Notes
    -----
    A round costs O(documents x features). D is a product of a factor of i and one of j, so the weight of the pairs
    of a document takes one sum per grade, and r is the sum of those over the documents above a threshold. Among
    candidates whose abs(r) agree to 1e-12, the lowest feature number is taken, then the lowest threshold. The rounds
    end early if every r is 0, or after a step that orders all pairs rightly (or all wrongly); its abs(r) counts as
    1 - 1e-9. After Ctrl-C the ranker holds the rounds that were finished.

    References
    ----------
    Y. Freund, R. Iyer, R. E. Schapire, Y. Singer (2003). An efficient boosting algorithm for combining
    preferences. Journal of Machine Learning Research 4, 933-969. Theorem 1, and the alpha for weak rankings between
    0 and 1.
    """

    name = "RankBoost"
    own_columns = ("r", "bound")
    drawn = ("train", "validation", "bound")

    rounds: PositiveInt = 300
    pairs: Literal["equal", "query"] = "equal"

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """Instances that the common tests of all rankers use."""
        return cls(rounds=8), cls("AP", rounds=5, thresholds=3, pairs="query")

    def _begin(self, lists: GradedLists, candidates: Candidates) -> Callable[[Vector], Step | None]:
        # logarithms, because exp(s_j - s_i) overflows when scores grow over many rounds
        log_weight = np.log(lists.weight if self.pairs == "equal" else lists.weight / lists.pairs)
        potential, bound = np.empty(lists.n_paired), 1.0

        def next_step(score: Vector) -> Step | None:
            nonlocal bound
            exponential_potentials(score[: len(potential)], lists.segment, lists.lists, log_weight, potential)
            every = candidates.sums_above(potential, self.n_jobs)
            candidate = first_largest(np.abs(every))
            r = min(max(float(every[candidate]), -PERFECT), PERFECT)
            if abs(r) <= TIE:
                return None
            bound *= math.sqrt((1.0 - r) * (1.0 + r))
            return Step(candidate, on_grain(math.atanh(r)), (r, bound), abs(r) == PERFECT)

        return next_step
