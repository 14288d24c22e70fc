"""PermuRank: linear weights that keep perfect orders of the documents ahead of imperfect ones."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import RankwiseError
from rankwise._kernels.rows import linear_scores
from rankwise._progress import progress
from rankwise._store import Store
from rankwise._tables import Table
from rankwise.data import checks
from rankwise.data.queries import Queries
from rankwise.data.row_blocks import scale_factors
from rankwise.guarantees._bound import Bound, Precondition
from rankwise.rankers._base import LinearRanker
from rankwise.rankers._history import History, history_arrays, read_history
from rankwise.rankers._model_selection import held_out, mean_measure, mean_over_parts, parts_of
from rankwise.rankers._parameters import SelectionParameters, as_grid
from rankwise.rankers.certificate.objective import gap_bound
from rankwise.rankers.linear.ridge import read_coef
from rankwise.rankers.permutation.list_orders import ListOrders, Map
from rankwise.solvers.batch.bundle import Bundle
from rankwise.solvers.batch.working_sets import WorkingSets

Vector = NDArray[np.float64]


# ------------------------------------------------------------------------------------------------- permutation rounds
# The rounds of PermuRank for one alpha: solve on the working sets, rank, add the orders that are violated most.


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
class PermutationRound:
    """What one round found: weights of scaled features, and a row of the history in the order of its columns."""

    w: Vector
    row: tuple[Any, ...]
    held: float
    added: int


@dataclass(frozen=True)
class PermutationRun:
    """The rounds of one alpha, which are only ever appended to: after Ctrl-C the finished ones are all there."""

    alpha: float
    rounds: list[PermutationRound] = field(default_factory=list)

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
    """How rounds are made, whatever the lists and the alpha.

    ``lists`` gives the orders of some lists; ``largest`` is that of :class:`WorkingSets`.
    """

    lists: Callable[[Queries], ListOrders]
    largest: bool
    rounds: int
    tolerance: float
    n_jobs: int | None
    advance: Callable[[], None]

    def run(self, run: PermutationRun, train: Queries, held: Queries | None) -> PermutationRun:
        """Append rounds to ``run`` until no set changes, or there are enough."""
        lists = self.lists(train)
        sets, w = lists.working_sets(self.largest), np.zeros(train.n_features)
        lists.extend(sets, np.zeros(train.n_documents))
        while len(run.rounds) < self.rounds:
            run.rounds.append(self._round(len(run.rounds) + 1, run.alpha, w, lists, sets, train, held))
            w = run.rounds[-1].w
            self.advance()
            if run.converged:
                break
        return run

    def _round(
        self,
        number: int,
        alpha: float,
        w: Vector,
        lists: ListOrders,
        sets: WorkingSets,
        train: Queries,
        held: Queries | None,
    ) -> PermutationRound:
        w, objective, loss, gap = self._solve(alpha, w, sets)
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
        return PermutationRound(w, row, on_held, added)

    def _solve(self, alpha: float, start: Vector, sets: WorkingSets) -> tuple[Vector, float, float, float]:
        """(w, objective, loss, gap) of the problem on the sets as they are.

        The gap is small in parts of what was gained over w = 0: the loss grows with the sets, and most of it no w can
        change.
        """
        bundle = Bundle(lambda w: sets(w, self.n_jobs), len(start), floor=0.0)
        at_zero, _ = bundle.ask(np.zeros(len(start)))

        def enough(w: Vector, row: Any) -> bool:
            gained = max(at_zero - row["objective"], _NOTHING * at_zero)
            return bool(row["gap"] <= self.tolerance * gained)

        found = bundle.solve(alpha, start=start, tol=0.0, max_calls=_MOST_CALLS, callback=enough)
        return found.w, found.objective, found.value, found.gap


ALPHAS = tuple(10.0**power for power in range(-4, 2))


@dataclass(eq=False, repr=False, kw_only=True)
class PermuRank(SelectionParameters, LinearRanker):
    r"""min over w of (lambda/2) norm(w)^2 + mean over lists of a hinge between perfect and imperfect orders.

    .. math:: \frac1{\lvert B\rvert} \sum_{b \in B,\, c \in C} (E^* - E(c))\, [1 - w \cdot (\Phi_b - \Phi_c)]_+

    E is the measure, E* its value at a perfect order (1 for AP, nDCG, RR ...), and Phi the features of an order,
    (1 / (n (n - 1))) sum_k (n + 1 - 2 position_k) x_k. The working sets B and C of a list begin with one order each.
    Every round minimises the objective, then adds to B the perfect order that the new weights like least, and to C
    the imperfect one that they like most; it is over when these are there already.

    Parameters
    ----------
    measure : nDCG, MeanNDCG, AP, P, R, RR, WTA, ERR, RBP (each with or without a cut-off, where it takes one) or Pairs
    alpha : lambda, for features in the units that ``scale`` gives them and a mean over lists; C = 1 / (lambda lists)
        beside a sum. Several: the best on the validation set (or by folds over queries, without one) is taken; None:
        10^-4, ..., 10^1
    map : the features of an order; "pairs" compares all documents, as above; "relevant" compares relevant documents
        with others, (1 / (N1 N0)) sum over relevant k, other l of +-(x_k - x_l): for measures of whole lists on two
        grades, such as AP
    hinge : "sum" as above, or "max": the largest (E* - E(c)) [1 - w . (Phi_b - Phi_c)]_+ of the list, a smaller bound
    rounds : at most so many
    stop : "last" keeps the weights of the last round, "best" those of the round that is best on the validation set (or
        by folds)
    tolerance : how far from the minimum a round may stay, in parts of what it gained over w = 0
    scale : "auto" divides features by their standard deviation unless all of them lie in [-1, 1]; "none"
    folds : how many parts of the queries make choices where there is no validation set
    random_state : seed of the folds
    n_jobs, verbose, missing : as for :class:`SLAMPerceptron`; the bits do not depend on ``n_jobs``

    Attributes
    ----------
    coef_ : weights on raw features
    alpha_ : the lambda that was taken
    round_ : the round whose weights were taken
    converged_ : whether the rounds ended because no set changed
    history_ : a row a round: objective, loss (its part beside the norm), gap to the minimum, mean sizes of B and C and
        the largest of all, orders added, train and validation measure, and whether ``loss`` is a bound
    path_ : for every alpha the measure by which it was judged

    Notes
    -----
    Where ``bound`` is True, the best imperfect order of every list was in its set: ``loss`` is then at least the mean
    of E* - E on the training lists, ties pessimistic. So it is when ``converged_``; it says nothing before.

    With the map "pairs" the bound itself asks for the impossible: a perfect order may put the documents of one grade
    in any order, and against the worst of those hardly any weights are better than none. With ``hinge="max"`` the
    rounds then run into w = 0; with "sum" they swing, and a round has to be picked (``stop="best"``). The map
    "relevant" does not see the order inside a grade, and with "max" the rounds are over after about ten.

    An order is stored as one vector: a step costs O((B + C) features) a list, X is read once a round. Fewer queries
    than folds make as many parts as there are queries; where nothing can judge them, the largest alpha is taken.

    References
    ----------
    Figure 7 of direct optimisation of evaluation measures in learning to rank, with (2), (6) and (7).
    """

    name = "PermuRank"
    takes_validation = True

    measure: Any = field(default="AP", kw_only=False)
    alpha: float | Sequence[float] | None = None
    map: Map = "pairs"
    hinge: Literal["sum", "max"] = "sum"
    rounds: int = 50
    stop: Literal["last", "best"] = "best"
    tolerance: float = 0.001

    @classmethod
    def examples(cls) -> Sequence[Self]:
        return (
            cls("AP", alpha=0.1, rounds=3, stop="last"),
            cls("nDCG@3", alpha=(0.01, 1.0), hinge="max", rounds=2, folds=2),
        )

    def _fit(self, queries: Queries, validation: Queries | None) -> None:
        alphas = self._checked()
        parts = []
        if validation is None and (len(alphas) > 1 or self.stop == "best"):
            parts = parts_of(queries, self.folds, self.random_state)
        factor, centre = scale_factors(queries, self.scale)
        total = self.rounds * (len(alphas) * len(parts) + 1 if parts else len(alphas))
        with progress("rounds", total, enabled=None if self.verbose else False) as bar:
            permuting = Permuting(
                lists=lambda some: ListOrders.of(some, self._measure(), self.map, centre, factor, self.n_jobs),
                largest=self.hinge == "max",
                rounds=self.rounds,
                tolerance=self.tolerance,
                n_jobs=self.n_jobs,
                advance=lambda: bar.advance(1),
            )
            if parts:
                worth = self._judged_by_folds(permuting, alphas, queries, parts)
                runs = [PermutationRun(alphas[self._best(worth, alphas)[0]])]
            else:
                worth, runs = None, [PermutationRun(alpha) for alpha in alphas]
            with self._kept_on_ctrl_c(lambda: self._take(runs, alphas, worth, factor)):
                for run in runs:
                    permuting.run(run, queries, validation)
        self._take(runs, alphas, worth, factor)

    def _judged_by_folds(
        self, permuting: Permuting, alphas: tuple[float, ...], queries: Queries, parts: list[NDArray[np.int64]]
    ) -> list[Vector]:
        """The measure of every alpha, round by round, on lists that were held out; a run that is over stays."""
        found = np.empty((len(parts), len(alphas), self.rounds))
        for number, part in enumerate(parts):
            train, held = held_out(queries, part)
            for place, alpha in enumerate(alphas):
                judged = permuting.run(PermutationRun(alpha), train, held).held
                found[number, place] = np.append(judged, np.full(self.rounds - len(judged), judged[-1]))
        return list(mean_over_parts(found))

    def _best(self, worth: Sequence[Vector], alphas: Sequence[float]) -> tuple[int, int]:
        """(alpha, round) to keep, by what each was worth; the last of the strongest where nothing judges them."""
        considered = [one[-1:] if self.stop == "last" else one for one in worth]
        if all(np.isnan(one).all() for one in considered):
            strongest = int(np.argmax(alphas))
            return strongest, len(worth[strongest]) - 1
        best = int(np.nanargmax([np.fmax.reduce(one) for one in considered]))
        return best, len(worth[best]) - 1 if self.stop == "last" else int(np.nanargmax(worth[best]))

    def _take(
        self, runs: list[PermutationRun], alphas: tuple[float, ...], judged: list[Vector] | None, factor: Vector
    ) -> bool:
        """Set what the runs that have begun learned, judged by themselves or by folds; False if there is none."""
        begun = [run for run in runs if run.rounds]
        if not begun:
            return False
        if judged is None:
            alphas = tuple(run.alpha for run in begun)
            worth = [run.held for run in begun]
            number, place = self._best(worth, alphas)
            run = begun[number]
        else:
            worth, run = judged, begun[0]
            place = min(self._best(worth, alphas)[1], len(run.rounds) - 1)
        kept = [one[-1] if self.stop == "last" else np.fmax.reduce(one) for one in worth]
        self.alpha_ = run.alpha
        self.round_ = place + 1
        self.converged_ = run.converged
        self.history_ = run.history()
        self.path_ = Table({"alpha": list(alphas), self._measure().title: np.array(kept)})
        self.coef_ = run.rounds[place].w * factor
        return True

    def _checked(self) -> tuple[float, ...]:
        """The alphas; what the other parameters cannot mean is refused."""
        if self.stop not in ("last", "best"):
            raise RankwiseError(f"stop is 'last' or 'best': found {self.stop!r}")
        if self.hinge not in ("sum", "max"):
            raise RankwiseError(f"hinge is 'sum' or 'max': found {self.hinge!r}")
        if not isinstance(self.rounds, (int, np.integer)) or self.rounds < 1:
            raise RankwiseError(f"rounds is a whole number from 1 on: found {self.rounds!r}")
        if not checks.is_number(self.tolerance) or not 0 < self.tolerance < 1:
            raise RankwiseError(f"tolerance is a number between 0 and 1: found {self.tolerance!r}")
        alphas = as_grid(self.alpha, ALPHAS, "alpha")
        if min(alphas) == 0:
            raise RankwiseError("alpha is above 0, because without it no weights may be the best: found 0")
        return alphas

    def _own_bounds(self) -> Sequence[Bound]:
        place = self.round_ - 1
        row = {name: float(self.history_[name][place]) for name in ("objective", "loss", "gap")}
        found = [gap_bound(row["objective"], row["gap"], "objective on the working sets")]
        if self.history_["bound"][place]:
            found.append(
                Bound(
                    name="Working sets",
                    bounds=f"mean of the best {self._measure().title} - {self._measure().title}",
                    statement="loss on the working sets",
                    value=row["loss"],
                    terms={"loss": row["loss"], "round": float(self.round_)},
                    preconditions=(Precondition("the best imperfect order of every list is in its set", True),),
                    source="equations (6) and (7) of directly optimising evaluation measures in learning to rank",
                    ceiling=1.0,
                    kind="training",
                )
            )
        return found

    # ------------------------------------------------------------------------------------------- saving

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        facts = {"alpha": self.alpha_, "round": self.round_, "converged": self.converged_}
        path = {f"path.{number}": self.path_[name] for number, name in enumerate(self.path_.columns)}
        return facts, {"coef": self.coef_, **path, **history_arrays(self.history_)}

    def _restore(self, facts: Mapping[str, Any], store: Store) -> None:
        self.coef_ = read_coef(store, self.n_features_in_)
        self.alpha_ = float(facts["alpha"])
        self.round_ = int(facts["round"])
        self.converged_ = bool(facts["converged"])
        self.history_ = as_history(read_history(store, COLUMNS))
        alpha, judged = (store.array(f"path.{number}", np.float64, (None,)) for number in range(2))
        self.path_ = Table({"alpha": alpha, self._measure().title: judged})
