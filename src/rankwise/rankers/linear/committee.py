"""RidgeCommittee: the mean of six ridge regressions, which differ in their target and in the balance of documents.

Six regressions that are chosen one by one rank about equally well, and which one is best on few queries is a lottery.
Their mean needs no choice between them. :class:`CommitteeProblems` makes all six from two passes over X, and can leave
out any part of the queries without a further pass.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Self

import numpy as np

from rankwise._arrays import Array, Matrix, Vector
from rankwise._store import Store
from rankwise._tables import Table
from rankwise.measures._base import Measure, parse
from rankwise.measures.compute import ScoredLists, measure_lists
from rankwise.measures.ndcg import gains
from rankwise.queries.chunks import Scale
from rankwise.queries.queries import Queries
from rankwise.queries.source import QuerySource
from rankwise.rankers._base import LinearRanker
from rankwise.rankers._model_selection import (
    Alphas,
    PooledSelection,
    Refit,
    SelectionParameters,
    as_grid,
    best_alpha,
    mean_over_held_out,
)
from rankwise.rankers.linear.least_squares import Problem, Solved, joined, no_scale, within_query_scale
from rankwise.rankers.linear.ridge import (
    RELATIVE_ALPHAS,
    ProblemsJob,
    RegressionTerms,
    balance_of,
    problems_of_parts,
)

TARGETS = ("gains", "labels", "gains / ideal DCG@10")
# Members are (balanced, number of the target).
MEMBERS = tuple(product((True, False), range(len(TARGETS))))
# The mean of these measures selects every penalty.
SELECTED_BY = ("nDCG@10", "nDCG@50", "AP")
JUDGED = f"mean of {', '.join(SELECTED_BY)}"


def committee_targets(queries: Queries) -> Matrix:
    """The three targets of every document; the third is 0 in queries without a relevant document."""
    labels = queries.labels()
    gain = gains(labels, "exp2")
    lists = ScoredLists(labels, labels, queries.start, queries.scattered_rows)
    ideal = measure_lists([parse("DCG@10")], lists)[0]
    share = np.divide(1.0, ideal, out=np.zeros_like(ideal), where=ideal > 0)
    return np.array([gain, labels, gain * share[queries.query_of_row]])


@dataclass(frozen=True)
class CommitteeProblems:
    """The least squares problems of all members, part by part.

    Attributes
    ----------
    selection : PooledSelection
        The queries in parts, and the trials that select penalties.
    problems : mapping of bool to list of Moments or of WeightedRows
        For balanced and for plain documents the problem of every part, with all targets.
    scale : ndarray, shape (n_features,)
        The scale of the features.
    n_jobs : int or None
        Number of threads.
    """

    selection: PooledSelection
    problems: Mapping[bool, list[Problem]]
    scale: Vector
    n_jobs: int | None

    @classmethod
    def of(cls, selection: PooledSelection, scale: Scale, n_jobs: int | None) -> Self:
        """The problems of all parts, from one pass over X for each balance."""
        sets = selection.pool.sets
        numbers = [selection.pool.by_set(part) for part in selection.parts]
        plain, balance = (1.0, 1.0), balance_of(sets)

        def problems(balance: tuple[float, float]) -> list[Problem]:
            return problems_of_parts(sets, RegressionTerms(committee_targets, balance), numbers, n_jobs)

        found = {False: problems(plain)}
        found[True] = found[False] if balance == plain else problems(balance)
        whole = joined(found[False])
        return cls(selection, found, within_query_scale(whole) if scale == "auto" else no_scale(whole), n_jobs)

    def plain(self, without: int | None = None) -> Problem:
        """The problem with plain documents, without a part."""
        return joined(self.problems[False], without)

    def solve(self, without: int | None = None) -> dict[bool, Solved]:
        """The factorized problems of both balances, without a part."""
        found = {False: self.plain(without).ridge(self.scale)}
        same = self.problems[True] is self.problems[False]
        found[True] = found[False] if same else joined(self.problems[True], without).ridge(self.scale)
        return found

    def judge(self, grid: Sequence[float]) -> Matrix:
        """For every member and every relative alpha the mean of the measures on queries that were held out."""
        measures: list[Measure] = [parse(one) for one in SELECTED_BY]
        values: list[list[Matrix]] = [[] for _ in MEMBERS]
        weights = []
        for trial in self.selection.trials:
            held, solved = trial.prepare(measures), self.solve(trial.without)
            weights.append(held.weight)
            for own, (balance, target) in zip(values, MEMBERS, strict=True):
                problem = solved[balance]
                path = problem.weights([problem.unit * alpha for alpha in grid], target)
                own.append(held.values(path, self.n_jobs))
        return np.array([mean_over_held_out(own, weights) for own in values])

    def members(self, alphas: Sequence[float], without: int | None = None) -> Matrix:
        """Weights on raw features of every member, scaled to a standard deviation of 1 of its scores within queries.

        Parameters
        ----------
        alphas : sequence of float
            The relative alpha of every member.
        without : int, default=None
            The number of a part to leave out.

        Returns
        -------
        ndarray, shape (n_members, n_features)
            Rows of 0 where scores do not vary.
        """
        solved, plain = self.solve(without), self.plain(without)
        found = []
        for alpha, (balance, target) in zip(alphas, MEMBERS, strict=True):
            coef = solved[balance].weights([solved[balance].unit * alpha], target)[0]
            deviation = plain.deviation(coef)
            found.append(coef / deviation if deviation > 0 else np.zeros_like(coef))
        return np.array(found)


def choose_alphas(problems: CommitteeProblems, grid: Sequence[float]) -> tuple[tuple[float, ...], Matrix]:
    """The best relative alpha of every member, and what each was judged by."""
    judged = np.full((len(MEMBERS), len(grid)), np.nan)
    if len(grid) > 1 and problems.selection.trials:
        judged = problems.judge(grid)
    return tuple(grid[best_alpha(grid, one)] for one in judged), judged


@dataclass(eq=False, repr=False, kw_only=True)
class RidgeCommittee(SelectionParameters, LinearRanker):
    r"""The mean of six ridge regressions within queries: scores w . x, w = mean over members of w_m / deviation_m.

    The members are :class:`~rankwise.RidgeRanker` for three targets (the gain 2^label - 1, the label, and the gain
    divided by the query's ideal DCG@10), each with relevant and other documents balanced and with plain documents.
    deviation_m is the standard deviation of the member's scores within queries. The result is one linear model.

    Parameters
    ----------
    measure : str or Measure, default="nDCG@10"
        The measure that ``score`` reports and a certificate is about. The members do not depend on it.
    alpha : float or sequence of float, default=None
        The penalties that are tried for every member, in units of the mean of the features' sums of squares. None is
        10^-5, 10^-4.5, ..., 10^2. Each member takes the one with the best mean of nDCG@10, nDCG@50 and AP on the
        queries that were held out.
    refit : {"all", "train"}, default="all"
        What a validation set is for. "all": it joins the training queries, penalties are selected by folds over all of
        them, and all are learned from. "train": it selects penalties and is not learned from.
    scale : {"auto", "none"}, default="auto"
        "auto" divides features by their standard deviation within queries, pooled over queries; a feature that is
        constant within every query gets the weight 0. "none" takes features as they are. Normal scores are no unit but
        a map: ``MappedRanker(Scaler("normal"), RidgeCommittee())``.
    folds : int, default=5
        Number of parts of the queries that select penalties, each by the fit on the other parts. Of more than 2,000
        queries a single part is held out, of at most 2,000 queries.
    random_state : int or numpy.random.Generator, default=0
        Seed of the division into parts.
    n_jobs : int, default=None
        Number of threads; None uses all cores. The result does not depend on it.
    verbose : bool, default=False
        Accepted for uniformity; a fit shows no progress bar.
    missing : {"error", "zero", "min"}, default="error"
        What to do with NaN in arrays.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights on raw features.
    members_ : ndarray of shape (6, n_features)
        Weights on raw features of every member, scaled to a deviation of 1; ``coef_`` is their mean.
    alphas_ : Table
        For every member its target, whether documents are balanced, and the penalty that was selected.
    path_ : Table
        For every member and penalty the mean of the three measures on the queries that were held out.

    Notes
    -----
    All members come from two passes over X, whatever the number of penalties and folds, and O(features^3) per part. To
    select penalties, each member scores each held-out part once. On a few hundred judged queries the mean of the six is
    more reliable than the best of them.

    Examples
    --------
    >>> from rankwise import make_lists
    >>> queries = make_lists(60, documents=8, features=4, random_state=1)
    >>> RidgeCommittee().fit(queries).members_.shape
    (6, 4)
    """

    name = "RidgeCommittee"
    takes_validation = True
    takes_document_weights = True
    runs_on_parts = True

    alpha: Alphas = None
    refit: Refit = "all"

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """Instances that the common tests of all rankers use."""
        return cls(), cls("AP", alpha=(0.1, 10.0), folds=2, refit="train")

    @property
    def learns_from_validation(self) -> bool:  # type: ignore[override]
        """Whether the final fit learns from the validation set: with ``refit="all"``."""
        return self.refit == "all"

    def _fit(self, queries: Queries, validation: Queries | None) -> None:
        grid = as_grid(self.alpha, RELATIVE_ALPHAS)
        selection = PooledSelection.of(queries, validation, self.refit, self.folds, self.random_state)
        problems = CommitteeProblems.of(selection, self.scale, self.n_jobs)
        alphas, judged = choose_alphas(problems, grid)
        self.members_ = problems.members(alphas)
        self.coef_ = self.members_.mean(axis=0)
        self._tell(np.array(alphas), np.array(grid), judged)

    def _expected_passes(self, queries: QuerySource) -> Any:
        part = np.zeros(len(queries), np.int64)
        job = ProblemsJob(True, RegressionTerms(committee_targets), part, 1)
        # survey, balance, moments, what the queries are known by; and the scores of each member on the parts that judge
        passes = 6 + len(MEMBERS) * self._trial_parts(queries, as_grid(self.alpha, RELATIVE_ALPHAS))
        return job, (), passes, passes + 2

    def _tell(self, alphas: Vector, grid: Vector, judged: Matrix) -> None:
        """Set the tables."""
        balance, target = zip(*MEMBERS, strict=True)
        names = [TARGETS[number] for number in target]
        self.alphas_ = Table({"target": names, "balanced": list(balance), "alpha": alphas})
        member = np.repeat(np.arange(len(MEMBERS)), len(grid))
        self._path_ = {"member": member, "alpha": np.tile(grid, len(MEMBERS)), JUDGED: judged.ravel()}

    def _state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        grid = self.path_["alpha"][: len(self.path_) // len(MEMBERS)]
        judged = self.path_[JUDGED].reshape(len(MEMBERS), -1)
        arrays = {"coef": self.coef_, "members": self.members_, "alphas": self.alphas_["alpha"]}
        return {}, arrays | {"grid": grid, "judged": judged}

    def _restore(self, facts: Mapping[str, Any], store: Store) -> None:
        self._measure()  # which a stranger's file may have made up
        self.coef_ = self._read_coef(store)
        self.members_ = store.array("members", np.float64, (len(MEMBERS), self.n_features_in_))
        alphas, grid = store.array("alphas", np.float64, (len(MEMBERS),)), store.array("grid", np.float64, (None,))
        self._tell(alphas, grid, store.array("judged", np.float64, (len(MEMBERS), len(grid))))
