"""PermuRank: linear weights that score perfect orders of the documents above imperfect ones.

:class:`PermuRank` is the ranker; it selects among alphas and rounds, on a validation set or by folds. The rounds of one
alpha are a :class:`PermutationRun`: each minimizes the objective on the working sets (:func:`minimized`), ranks all
queries, and adds the orders that violate the objective most, which
:class:`~rankwise.rankers.permutation.list_orders.ListOrders` finds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from rankwise._arrays import Array, Vector
from rankwise._parameters import OpenFraction, PositiveInt
from rankwise._progress import progress
from rankwise._store import Store
from rankwise.errors import RankwiseError
from rankwise.guarantees._bound import TRAINING, Bound, Precondition
from rankwise.queries.chunks import scale_factors
from rankwise.queries.queries import Queries
from rankwise.rankers._base import AnyMeasure, LinearRanker, linear_scores
from rankwise.rankers._history import History, history_arrays, read_history, typed_columns
from rankwise.rankers._model_selection import (
    PositiveAlphas,
    SelectionParameters,
    as_grid,
    mean_measure,
    mean_over_folds,
    measure_of_weights,
    parts_of,
    path_arrays,
    read_path,
)
from rankwise.rankers.certificate.objective import gap_bound
from rankwise.rankers.permutation.list_orders import ListOrders, Map
from rankwise.solvers.batch.bundle import Bundle, BundleResult
from rankwise.solvers.batch.working_sets import OrderForm, WorkingSets

ALPHAS = tuple(10.0**power for power in range(-4, 2))
COLUMNS: dict[str, type[np.generic]] = {
    "round": np.int64,
    **dict.fromkeys(("objective", "loss", "gap", "perfect", "imperfect"), np.float64),
    **dict.fromkeys(("largest", "added"), np.int64),
    **dict.fromkeys(("train", "validation"), np.float64),
    "bound": np.bool_,
}
# Where next to nothing can be gained by leaving w = 0, a gap of this part of the objective at 0 is small enough.
_NOTHING = 1e-6
_MOST_CALLS = 2000


@dataclass(eq=False, repr=False, kw_only=True)
class PermuRank(SelectionParameters, LinearRanker):
    r"""A linear ranker for a hinge between perfect and imperfect orders.

    min over w of (alpha/2) norm(w)^2 + mean over queries of a hinge between perfect and imperfect orders.

    .. math:: \frac1{\lvert B\rvert} \sum_{b \in B,\, c \in C} (E^* - E(c))\, [1 - w \cdot (\Phi_b - \Phi_c)]_+

    E is the measure, E* its value at a perfect order (1 for AP, nDCG, RR ...), and Phi the features of an order,
    (1 / (n (n - 1))) sum_k (n + 1 - 2 position_k) x_k. The working sets B and C of a query begin with one order each.
    Every round minimizes the objective, then adds to B the perfect order that the new weights score lowest, and to C
    the imperfect order that they score highest. The rounds end if both orders are in the sets of every query.

    Parameters
    ----------
    measure : str or Measure, default="AP"
        nDCG, MeanNDCG, AP, P, R, RR, WTA, ERR, RBP (each with or without a cut-off, if it takes one) or Pairs. It is
        also used for model selection, and ``score`` reports it.
    alpha : float or sequence of float, default=None
        The penalty, for features in the units of ``scale`` and a mean over queries; beside a sum over queries it would
        be C = 1 / (alpha queries). Of several the best one on the validation set is taken (without one, by folds over
        the training queries); None tries 10^-4, ..., 10^1.
    map : {"pairs", "relevant"}, default="pairs"
        The features of an order. "pairs" compares all documents, as above. "relevant" compares relevant documents with
        others, (1 / (N1 N0)) sum over relevant k, other l of +-(x_k - x_l); it is for measures of whole lists on two
        grades, such as AP.
    hinge : {"sum", "max"}, default="sum"
        "sum" as above, or "max": the largest (E* - E(c)) [1 - w . (Phi_b - Phi_c)]_+ of the query, a smaller bound.
    form : {"hinge", "exp", "logistic"}, default="hinge"
        The function of x = w . (Phi_b - Phi_c): the hinge [1 - x]_+ as above, exp(-x) or log2(1 + exp(-x)), the type
        two bounds of the paper. Beyond -x = 16 the exponential is continued by its tangent.
    rounds : int, default=50
        The largest number of rounds.
    stop : {"best", "last"}, default="best"
        "last" keeps the weights of the last round, "best" those of the best round on the validation set (or by folds).
    tolerance : float, default=1e-3
        The gap to the minimum at which a round is accepted, as a part of what the round gained over w = 0.
    scale : {"auto", "none"}, default="auto"
        "auto" divides features by their standard deviation unless all of them lie in [-1, 1].
    folds : int, default=5
        Number of parts of the training queries that select alpha and round if there is no validation set.
    random_state : int or numpy.random.Generator, default=0
        Seed of the division into parts.
    n_jobs : int, default=None
        Number of threads; None uses all cores. The result does not depend on it.
    verbose : bool, default=False
        Whether to show a progress bar on a terminal.
    missing : {"error", "zero", "min"}, default="error"
        What to do with NaN in arrays.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights on raw features.
    alpha_ : float
        The alpha that was selected.
    round_ : int
        The round whose weights are kept, from 1.
    converged_ : bool
        Whether the rounds ended because no set changed.
    history_ : History
        One row per round: round, objective, loss (the objective without the penalty), gap to the minimum, perfect and
        imperfect (the mean sizes of B and C), largest (of all sets), added (the number of orders), the measure on
        training and validation queries, and bound (whether ``loss`` is one).
    path_ : Table
        For every alpha the measure that it was judged by.

    Notes
    -----
    In a round whose ``bound`` is True, the best imperfect order of every query was in its set: ``loss`` is then at
    least the mean of E* - E on the training queries, ties pessimistic. This is the case if ``converged_``; before, the
    loss is no bound.

    With the map "pairs" the bound itself asks for the impossible: a perfect order may put the documents of one grade
    in any order, and against the worst of those hardly any weights are better than none. With ``hinge="max"`` the
    rounds then end at w = 0; with "sum" they oscillate, and a round has to be selected (``stop="best"``). The map
    "relevant" does not depend on the order within a grade, and with "max" the rounds end after about ten.

    All three forms are convex in w, so a round ends with a certain gap, and at least 1 for x <= 0, which is what
    the bound rests on. The exponential is never below the hinge; the logistic form may be on either side of it.

    An order is stored as one vector: a step costs O((B + C) features) per query, and X is read once per round. Other
    forms than the hinge visit all B C pairs of orders besides. If there
    are fewer queries than folds, every query is a part. Where nothing can judge them, the largest alpha is taken. After
    Ctrl-C the ranker holds the best of the rounds that were finished on all training queries.

    References
    ----------
    J. Xu, T.-Y. Liu, M. Lu, H. Li, W.-Y. Ma (2008). Directly optimizing evaluation measures in learning to rank.
    SIGIR. doi:10.1145/1390334.1390355

    J. Xu, H. Li, T.-Y. Liu, Y. Peng, M. Lu, W.-Y. Ma (2010). Direct optimization of evaluation measures in
    learning to rank. Microsoft Research technical report MSR-TR-2010-171. Section 4.2, Figure 7 and equations (2), (6)
    and (7).
    """

    name = "PermuRank"
    takes_validation = True

    measure: AnyMeasure = field(default="AP", kw_only=False)
    alpha: PositiveAlphas = None
    map: Map = "pairs"
    hinge: Literal["sum", "max"] = "sum"
    form: OrderForm = "hinge"
    rounds: PositiveInt = 50
    stop: Literal["last", "best"] = "best"
    tolerance: OpenFraction = 0.001

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """Instances that the common tests of all rankers use."""
        return (
            cls("AP", alpha=0.1, rounds=3, stop="last"),
            cls("nDCG@3", alpha=(0.01, 1.0), hinge="max", rounds=2, folds=2),
            cls("AP", alpha=0.1, form="logistic", rounds=3, stop="last"),
        )

    def _fit(self, queries: Queries, validation: Queries | None) -> None:
        alphas = as_grid(self.alpha, ALPHAS)
        parts = []
        if validation is None and (len(alphas) > 1 or self.stop == "best"):
            parts = parts_of(queries, self.folds, self.random_state)
        factor, center = scale_factors(queries, self.scale)
        total = self.rounds * (len(alphas) * len(parts) + 1 if parts else len(alphas))
        judged: list[Vector] | None = None
        with self._progress("rounds", total) as bar:

            def orders_of(some: Queries) -> ListOrders:
                return ListOrders(some, self._measure(), self.map, center, factor, self.n_jobs)

            def judge(train: Queries, held: Queries) -> list[Vector]:
                """The measure on held-out queries, by alpha and round; the last round counts for those that lack."""
                # the orders depend on the queries alone, and serve every alpha
                orders, found = orders_of(train), []
                for alpha in alphas:
                    run = self._run(PermutationRun(alpha), orders, held, bar)
                    found.append(np.pad(run.held, (0, self.rounds - len(run.held)), mode="edge"))
                return found

            tried = alphas
            if parts:
                judged = list(mean_over_folds(queries, parts, judge))
                tried = (alphas[self._best(judged, alphas)[0]],)
            runs = [PermutationRun(alpha) for alpha in tried]
            with self._keep_on_interrupt(lambda: self._take(runs, alphas, judged, factor), lambda: runs[0].rounds):
                orders = orders_of(queries)
                for run in runs:
                    self._run(run, orders, validation, bar)
        self._take(runs, alphas, judged, factor)

    def _run(self, run: "PermutationRun", orders: ListOrders, held: Queries | None, bar: progress) -> "PermutationRun":
        """Append rounds to ``run`` until no set changes, or until there are enough."""
        queries = orders.queries
        w = np.zeros(queries.n_features)
        sets = WorkingSets(orders.weight, len(w), self.hinge == "max", self.form)
        # scores of 0 give the sets their first orders
        orders.extend(sets, np.zeros(queries.n_documents))
        while len(run.rounds) < self.rounds and not run.converged:
            run.rounds.append(self._round(run.alpha, w, orders, sets, held))
            w = run.rounds[-1].w
            bar.advance(1)
        return run

    def _round(
        self, alpha: float, w: Vector, orders: ListOrders, sets: WorkingSets, held: Queries | None
    ) -> "PermutationRound":
        """Minimize on the sets, from w on, then extend them."""
        found = minimize_over(sets, alpha, w, self.tolerance, self.n_jobs)
        # the sizes are those that the minimum was found on, before the sets grow
        sizes = sets.perfect, sets.imperfect
        counting = sizes[1] > 0
        means = [float(one[counting].mean()) if counting.any() else 0.0 for one in sizes]
        largest = int(max(one.max(initial=0) for one in sizes))
        coef = found.w * orders.factor
        scores = linear_scores(orders.queries.X, coef, self.n_jobs)
        if not np.isfinite(scores).all():
            raise RankwiseError("the scores of documents are not finite: scale the features")
        perfect, imperfect = orders.extend(sets, scores)
        return PermutationRound(
            w=found.w,
            objective=found.objective,
            loss=found.value,
            gap=found.gap,
            perfect=means[0],
            imperfect=means[1],
            largest=largest,
            added=perfect + imperfect,
            train=mean_measure(orders.queries, scores, orders.measure, self.n_jobs),
            validation=measure_of_weights(held, coef, orders.measure, self.n_jobs),
            bound=imperfect == 0,
        )

    def _best(self, worth: Sequence[Vector], alphas: Sequence[float]) -> tuple[int, int]:
        """(alpha, round) to keep, by what each is worth; the last round of the largest alpha if none was judged."""
        considered = [one[-1:] if self.stop == "last" else one for one in worth]
        if all(np.isnan(one).all() for one in considered):
            strongest = int(np.argmax(alphas))
            return strongest, len(worth[strongest]) - 1
        best = int(np.nanargmax([np.fmax.reduce(one) for one in considered]))
        return best, len(worth[best]) - 1 if self.stop == "last" else int(np.nanargmax(worth[best]))

    def _take(
        self, runs: "list[PermutationRun]", alphas: tuple[float, ...], judged: list[Vector] | None, factor: Vector
    ) -> None:
        """Set the best of the runs that have begun, judged by folds or by themselves; False if there is none."""
        begun = [run for run in runs if run.rounds]
        if judged is None:
            alphas = tuple(run.alpha for run in begun)
            worth = [run.held for run in begun]
            number, place = self._best(worth, alphas)
            run = begun[number]
        else:
            # the run on all queries may have fewer rounds than the folds: it converged, or was stopped
            worth, run = judged, begun[0]
            place = min(self._best(worth, alphas)[1], len(run.rounds) - 1)
        kept = [one[-1] if self.stop == "last" else np.fmax.reduce(one) for one in worth]
        self.alpha_ = run.alpha
        self.round_ = place + 1
        self.converged_ = run.converged
        rows = [(number, *one[1:]) for number, one in enumerate(run.rounds, 1)]
        self.history_ = self._as_history(typed_columns(rows, COLUMNS))
        self._path_ = {"alpha": np.array(alphas), self._measure().title: np.array(kept)}
        self.coef_ = run.rounds[place].w * factor

    def _own_bounds(self) -> Sequence[Bound]:
        place, title = self.round_ - 1, self._measure().title
        objective, loss, gap = (float(self.history_[name][place]) for name in ("objective", "loss", "gap"))
        found = [gap_bound(objective, gap, "objective on the working sets")]
        if self.history_["bound"][place]:
            found.append(
                Bound(
                    name="Working sets",
                    bounds=f"mean of the best {title} - {title}",
                    statement="loss on the working sets",
                    value=loss,
                    terms={"loss": loss, "round": float(self.round_)},
                    preconditions=(Precondition("the best imperfect order of every query is in its set", True),),
                    source="equations (6) and (7) of direct optimization",
                    ceiling=1.0,
                    kind="training",
                    scope=TRAINING,
                )
            )
        return found

    # ------------------------------------------------------------------------------------------- saving

    @staticmethod
    def _as_history(columns: dict[str, Array]) -> History:
        return History(columns, ("train", "validation"), "PermuRank, round by round")

    def _state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        facts = {"alpha": self.alpha_, "round": self.round_, "converged": self.converged_}
        return facts, {"coef": self.coef_, **path_arrays(self._path_), **history_arrays(self.history_)}

    def _restore(self, facts: Mapping[str, Any], store: Store) -> None:
        self.coef_ = self._read_coef(store)
        self.alpha_ = float(facts["alpha"])
        self.round_ = int(facts["round"])
        self.converged_ = bool(facts["converged"])
        self.history_ = self._as_history(read_history(store, COLUMNS))
        self._path_ = read_path(store, ("alpha", self._measure().title))


class PermutationRound(NamedTuple):
    """What one round found: the weights of scaled features, then its row of the history in the order of ``COLUMNS``."""

    w: Vector
    objective: float
    loss: float
    gap: float
    perfect: float
    imperfect: float
    largest: int
    added: int
    train: float
    validation: float
    bound: bool


@dataclass(frozen=True)
class PermutationRun:
    """The rounds of one alpha. They are only appended to, so the finished ones are complete after Ctrl-C."""

    alpha: float
    rounds: list[PermutationRound] = field(default_factory=list)

    @property
    def held(self) -> Vector:
        """The measure on held-out queries, round by round."""
        return np.array([one.validation for one in self.rounds])

    @property
    def converged(self) -> bool:
        """Whether the last round added no order."""
        return bool(self.rounds) and self.rounds[-1].added == 0


def minimize_over(sets: WorkingSets, alpha: float, start: Vector, tolerance: float, n_jobs: int | None) -> BundleResult:
    """The minimum of (alpha/2) norm(w)^2 + the hinge on the working sets.

    Parameters
    ----------
    sets : WorkingSets
        The sets as they are.
    alpha : float
        The penalty.
    start : ndarray of shape (n_features,)
        The weights to begin with.
    tolerance : float
        The gap that is accepted, as a part of what was gained over w = 0. The loss grows with the sets, and no w can
        change most of it, so a part of the loss itself would be too coarse.
    n_jobs : int or None
        Number of threads.

    Returns
    -------
    BundleResult
        The weights of scaled features, with objective, value and gap.
    """
    bundle = Bundle(lambda w: sets(w, n_jobs), len(start), floor=0.0)
    at_zero, _ = bundle.ask(np.zeros(len(start)))

    def enough(w: Vector, row: Any) -> bool:
        return bool(row["gap"] <= tolerance * max(at_zero - row["objective"], _NOTHING * at_zero))

    return bundle.solve(alpha, start=start, tol=0.0, max_calls=_MOST_CALLS, callback=enough)
