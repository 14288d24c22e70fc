"""`AutoRanker`: linear, boosted trees or both, whichever cross-validation over the training queries prefers."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self, get_args

import numpy as np

from rankwise._arrays import Array, Matrix, Numbers, Vector
from rankwise._extras import require
from rankwise._parameters import Check, NumberRange, PositiveFloat, Seed, as_random
from rankwise._store import Store
from rankwise._tables import Table
from rankwise.errors import MissingExtraError, RankwiseError
from rankwise.queries import checks
from rankwise.queries.queries import Queries
from rankwise.rankers._base import Ranker
from rankwise.rankers._model_selection import MANY, Folds, parts_of
from rankwise.rankers.auto.candidates import (
    Boosted,
    CandidateTrial,
    Clock,
    Difference,
    Engine,
    Linear,
    choose,
    concat_sets,
    criterion_measures,
    report_table,
)

logger = logging.getLogger("rankwise")

LINEAR, BOOSTED, BOTH = "linear", "boosted", "half and half"


Boosters = Annotated[
    Sequence[Engine],
    Check(
        f"a sequence of {' and '.join(map(repr, get_args(Engine)))}, which may be empty",
        lambda value: isinstance(value, (tuple, list)) and all(engine in get_args(Engine) for engine in value),
    ),
]


@dataclass(eq=False, repr=False, kw_only=True)
class AutoRanker(Ranker):
    """The ranker to begin with: linear, boosted trees, or both, as cross-validation over the queries decides.

    Linear rankers win on small data and where relevance grows with the features, boosted trees on large data with
    interactions, and which of them is better cannot be known before. This ranker tries three candidates on queries that
    they have not seen: a linear ranker (:class:`~rankwise.RidgeCommittee`), boosted trees
    (:class:`~rankwise.BoostedRanker`), and a :class:`~rankwise.Committee` of both with equal weights. It takes the
    linear one unless another is better by more than one standard error of the paired difference over queries, and then
    fits the chosen one on everything.

    Parameters
    ----------
    measure : str or Measure, default="nDCG@10"
        The measure to train for. Candidates are compared by the mean of nDCG@10, nDCG@50, AP and this measure, which
        varies less from query to query than one of them.
    time_limit : float, default=None
        Seconds after which no further candidate is tried and no further tree is grown. What is learned then depends on
        the speed of the machine: the same bits are promised without a limit alone.
    linear : {"RidgeCommittee", "SmoothRank"}, default="RidgeCommittee"
        The linear candidate: the mean of six ridge regressions, or its refinement by a smoothed nDCG@50, which takes
        ten times as long.
    boosters : sequence of {"lightgbm", "catboost"}, default=("lightgbm",)
        The engines of boosted trees to try, each as a candidate of its own and with the linear ranker. One that is not
        installed is left out. An empty sequence leaves the linear ranker.
    max_trees : int, default=1000
        The largest number of trees of a booster; cross-validation chooses how many are used.
    folds : int, default=5
        Parts of the training queries that choose. With more than 2,000 queries a single part, of one fifth and at most
        2,000 queries, is held out for that.
    random_state : int, default=0
        Seed of the division into parts and of the boosters.
    n_jobs : int, default=None
        Number of threads; None uses all cores. The result does not depend on it.
    verbose : bool, default=False
        Whether to show a progress bar on a terminal.
    missing : {"error", "zero", "min"}, default="error"
        What ``fit`` and ``predict`` do with NaN in arrays.

    Attributes
    ----------
    chosen_ : str
        The candidate that was chosen: "linear", "boosted", "half and half", or one with the name of its engine.
    model_ : Ranker
        The chosen ranker, fitted on all queries.
    report_ : Table
        Per candidate the mean of every measure and of the criterion over queries that it had not seen, its difference
        to the linear one with the standard error, the seconds that it took, and whether it was chosen.
    reason_ : str
        The choice in one sentence.

    Notes
    -----
    A validation set joins the training queries: more queries are worth more than a set for one choice. Certificates
    rest on hold-out queries alone, and every query that ``fit`` was given counts as seen.

    The number of trees is that of the best criterion over all folds together, found before the candidates are compared.
    All of them are then compared on the same queries, so the mean of the chosen one in ``report_`` is optimistic
    by a little: ``certificate`` and ``score`` on hold-out queries are not.

    One standard error is a lenient rule. If no candidate is truly better, a single rival exceeds it with probability
    0.16, and the best of several, compared on parts that share their training queries, more often: simulations left the
    linear ranker in 22 to 55% of the fits. ``chosen_`` is a choice, not evidence that trees are better.

    The linear ranker is fitted on everything before the candidates are tried, and Ctrl-C from then on leaves it as the
    chosen one; ``reason_`` and ``report_`` tell what had been tried by then.

    Examples
    --------
    >>> from rankwise import make_lists
    >>> train, test = make_lists(60, random_state=1), make_lists(60, random_state=2)
    >>> model = AutoRanker(boosters=()).fit(train)
    >>> model.chosen_
    'linear'
    >>> bool(model.score(test) > 0.6)
    True
    """

    name = "AutoRanker"
    takes_validation = True
    learns_from_validation = True

    time_limit: PositiveFloat | None = None
    linear: Literal["RidgeCommittee", "SmoothRank"] = "RidgeCommittee"
    boosters: Boosters = ("lightgbm",)
    max_trees: Annotated[int, NumberRange(1, 1_000_000, closed="both")] = 1000
    folds: Folds = 5
    random_state: Seed = 0

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """Instances that the common tests run on."""
        return (cls(folds=2, max_trees=10, linear="RidgeCommittee"),)

    # ------------------------------------------------------------------------------------------- learning

    def _fit(self, queries: Queries, validation: Queries | None) -> None:
        measures, clock = criterion_measures(self._measure()), Clock(self.time_limit)
        if validation is not None:
            queries = concat_sets(queries, validation)
        if not queries.is_grouped:  # boosters know rows, and no queries
            queries = queries[np.arange(len(queries))]
        linear, boosters, lacking = Linear.of(self), *self._boosters()
        parts = self._parts(queries) if boosters else []
        if not parts:
            why = (
                "there are too few queries to compare candidates"
                if boosters
                else lacking or "no booster is to be tried"
            )
            self._keep(LINEAR, linear.fit(queries), Table({}), f"linear: {why}")
            return
        trial = CandidateTrial(queries, parts, measures, self.n_jobs)
        steps = 1 + len(parts) + len(boosters) * len(parts) * self.max_trees

        def keep() -> bool:
            if base is not None:
                self._keep_linear(base, trial)
            return base is not None

        bar, base = self._progress(self.name, steps), None
        with self._keep_on_interrupt(keep), bar:
            base = trial.whole(linear)  # first: from here on there is a ranker to keep
            trial.add(LINEAR, linear, clock, bar)
            for suffix, booster in boosters.items():
                if not clock.is_over:
                    trial.add(BOOSTED + suffix, booster, clock, bar)
                    trial.add_mean(BOTH + suffix, LINEAR, BOOSTED + suffix)
            chosen, differences = choose(trial.criteria, trial.queries.query_weight)
            model = trial.fit_candidate(chosen, self)
        self._keep(chosen, model, trial.report(chosen, differences), _reason(chosen, differences, trial, clock))

    def _boosters(self) -> tuple[dict[str, Boosted], str]:
        """The boosters to try by what their names end with, and what to say of those that are not installed."""
        found, lacking = {}, ""
        for engine in self.boosters:
            try:
                require(engine)
            except MissingExtraError as error:
                lacking = f"{error}, adds boosted trees to the candidates"
                logger.warning("%s: %s", self.name, lacking)
            else:
                found[f" ({engine})" if len(self.boosters) > 1 else ""] = Boosted.of(self, engine)
        return found, lacking

    def _parts(self, queries: Queries) -> list[Numbers]:
        """The queries that choose: parts of all of them, or one part of many."""
        if len(queries.counted) <= MANY:
            return parts_of(queries, self.folds, self.random_state)
        shuffled = as_random(self.random_state).permutation(queries.counted)
        return [np.sort(shuffled[: min(len(shuffled) // 5, MANY)])]

    def _keep(self, chosen: str, model: Ranker, report: Table, reason: str) -> None:
        self.chosen_, self.model_, self.report_, self.reason_ = chosen, model, report, reason

    def _keep_linear(self, base: Ranker, trial: CandidateTrial) -> None:
        """Keep the linear ranker after Ctrl-C, with a report of the candidates that were tried by then."""
        found, report = trial.criteria, Table({})
        if found:
            report = trial.report(LINEAR, choose(found, trial.queries.query_weight)[1])
        tried = f"after {', '.join(found)} had been tried" if found else "before candidates had been tried"
        self._keep(LINEAR, base, report, f"linear: the fit was stopped {tried}")

    # ------------------------------------------------------------------------------------------- ranking

    def _scoring_model(self) -> Ranker:
        return self.model_._scoring_model()

    def _scores(self, X: checks.Floats) -> Vector:
        return self.model_._scores(X)

    def _contributions(self, X: checks.Floats) -> tuple[Matrix, float] | None:
        return self.model_._contributions(X)

    # ------------------------------------------------------------------------------------------- saving

    def _state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        from rankwise.rankers._record import nested_state

        members, arrays = nested_state([self.model_])
        report = self.report_
        numbers = [name for name in report.columns if name not in ("candidate", "seconds", "chosen")]
        facts = {
            "chosen": self.chosen_,
            "reason": self.reason_,
            "model": members,
            "candidates": report["candidate"].tolist() if len(report) else [],
            "columns": numbers,
        }
        values = np.array([report[name] for name in numbers]).reshape(len(numbers), len(report))
        return facts, {"report": values, **arrays}

    def _frozen_state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        return self.model_._frozen_state()

    def _restore(self, facts: Mapping[str, Any], store: Store) -> None:
        from rankwise.rankers._record import read_nested

        self._measure()
        (self.model_,) = read_nested(store, facts["model"], self.n_features_in_)
        self.chosen_, self.reason_, names, columns = (
            facts[name] for name in ("chosen", "reason", "candidates", "columns")
        )
        if not all(isinstance(text, str) for text in (self.chosen_, self.reason_, *names, *columns)):
            raise RankwiseError("its report names candidates and columns by values that are not strings")
        if self.model_.scores_by_query:
            raise RankwiseError(f"it chose {self.model_.name}, which is not one of its candidates")
        numbers = store.array("report", np.float64, (len(columns), len(names)))
        self.report_ = (
            report_table(names, dict(zip(columns, numbers, strict=True)), self.chosen_) if names else Table({})
        )


def _reason(chosen: str, differences: Mapping[str, Difference], trial: CandidateTrial, clock: Clock) -> str:
    """The choice in one sentence."""
    how = f"{len(trial.parts)}-fold cross-validation" if len(trial.parts) > 1 else "a held-out part"
    over = f"over {len(trial.queries):,} queries"
    late = "; time_limit ended the search" if clock.is_over else ""
    others = {name: one for name, one in differences.items() if name != LINEAR}
    if chosen != LINEAR:
        found = differences[chosen]
        return (
            f"{chosen}: better than linear by {found.mean:.4f} in {how} {over}, more than one standard error "
            f"({found.error:.4f}){late}"
        )
    if not others:
        return f"linear: no other candidate was tried within time_limit={clock.limit:g}"
    best = max(others, key=lambda name: others[name].mean)
    return (
        f"linear: {best} differs by {others[best].mean:+.4f} in {how} {over}, not above one standard error "
        f"({others[best].error:.4f}){late}"
    )
