"""RidgeRanker: ridge regression on gains within queries, its penalty chosen by cross-validation in one pass over X.

Behind the ranker stands what is regressed on what, which committees of regressions share: documents count by their own
weight, that of their query, and a balance of relevant documents and others (:func:`row_weight`), and
:class:`RegressionTerms` adds the targets. One pass makes the moments of every part of the queries
(:func:`problems_of_parts`); what is learned without a part, and in the end from all of them, is a sum of these.
:mod:`rankwise.rankers.linear.least_squares` solves the problems.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np

from rankwise._arrays import Array, Matrix, Numbers, Vector
from rankwise._kernels.parallel import one_blas_thread
from rankwise._store import Store
from rankwise.measures.ndcg import gains
from rankwise.queries.chunks import Extremes, scale_factors
from rankwise.queries.queries import Queries
from rankwise.queries.source import Chunk, Job, QuerySource, differing_weights
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
from rankwise.rankers.linear.least_squares import (
    Moments,
    Problem,
    Regression,
    Solved,
    WeightedRows,
    joined,
    no_scale,
    within_query_scale,
)

Targets = Callable[[Queries], Matrix]

# The penalties that are tried, in units of trace(A) / number of features.
RELATIVE_ALPHAS = tuple(10.0 ** (power / 2) for power in range(-10, 5))


@dataclass(eq=False, repr=False, kw_only=True)
class RidgeRanker(SelectionParameters, LinearRanker):
    r"""Ridge regression of the gains of labels, within queries.

    min over w, b of sum_i c_i (w . x_i + b_q(i) - G(label_i))^2 + alpha norm(w)^2, scores w . x.

    Every query has an intercept b_q of its own, which no ranking sees: the regression explains differences within
    queries alone. c_i is the weight of the query times the weight of the document, and the balance of ``balanced``.

    Parameters
    ----------
    measure : str or Measure, default="nDCG@10"
        The measure used for model selection, which ``score`` reports; the regression does not depend on it.
    alpha : float or sequence of float, default=None
        The penalty, for features in the units of ``scale``, beside the sum over documents above. Of several the best
        one is taken, see ``refit``. None tries 10^-5, 10^-4.5, ..., 10^2 times the mean of the features' sums of
        squares, which is the total weight of all documents for scaled features.
    target : {"gains", "labels"}, default="gains"
        G: the gains 2^label - 1, or the labels themselves.
    balanced : bool, default=True
        Whether relevant documents (label above 0) and other documents get the same total weight, however few the former
        are. If the others are fewer, one of them counts at most 10 times if labels are grades (integers up to 30), and
        once if they are not: the zeros of continuous labels are the end of a range and no class of their own. The total
        weight stays the same.
    intercept : {"query", "global"}, default="query"
        "global" has one intercept b for all documents, as ordinary ridge regression does: weights then also explain
        differences between queries.
    refit : {"all", "train"}, default="all"
        What a validation set is for. "all": it joins the training queries, alpha is selected by folds over all of them,
        and the ranker learns from all of them. "train": it selects alpha and is not learned from.
    scale : {"auto", "none"}, default="auto"
        "auto" divides features by their standard deviation within queries, pooled over queries with the weights c; a
        feature that is constant within every query gets the weight 0. With a global intercept it divides by the
        standard deviation over all documents, unless all features lie in [-1, 1]. "none" takes features as they are.
    folds : int, default=5
        Number of parts of the queries that select alpha, each by the fit on the other parts. Of more than 2,000 queries
        a single part is held out, of at most 2,000 queries.
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
    alpha_ : float
        The alpha that was selected.
    path_ : Table
        For every alpha the measure that it was judged by: its mean over the queries that were held out.

    Notes
    -----
    A fit costs one pass over X, then O(features^3) per part for all alphas together; with fewer documents than features
    O(documents^2 features) instead. If there are fewer queries than folds, every query is a part. Where nothing can
    judge them, the largest alpha is taken.

    Examples
    --------
    >>> from rankwise import make_lists
    >>> queries = make_lists(60, documents=8, features=4, random_state=1)
    >>> model = RidgeRanker(alpha=(0.1, 10.0)).fit(queries)
    >>> model.path_["alpha"]
    array([ 0.1, 10. ])
    """

    name = "RidgeRanker"
    takes_validation = True
    takes_document_weights = True
    runs_on_parts = True
    before: ClassVar[Mapping[str, Any]] = {"intercept": "global", "refit": "train"}

    alpha: Alphas = None
    target: Literal["gains", "labels"] = "gains"
    balanced: bool = True
    intercept: Literal["query", "global"] = "query"
    refit: Refit = "all"

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """Instances that the common tests of all rankers use."""
        return (
            cls(alpha=1.0),
            cls("AP", alpha=(0.1, 10.0), target="labels", balanced=False, folds=2, intercept="global"),
            cls(refit="train"),
        )

    @property
    def learns_from_validation(self) -> bool:  # type: ignore[override]
        """Whether the final fit learns from the validation set: with ``refit="all"``."""
        return self.refit == "all"

    @property
    def _reason_not_linear_in_labels(self) -> str | None:  # type: ignore[override]
        if self.target != "labels" or self.balanced:
            return "only target='labels' with balanced=False is linear in the labels"
        if not self._measure().linear_in_labels and len(as_grid(self.alpha, RELATIVE_ALPHAS)) > 1:
            return f"{self._measure().title}, which selects among several alpha, is not linear in the labels"
        return None

    def _fit(self, queries: Queries, validation: Queries | None) -> None:
        grid = as_grid(self.alpha, RELATIVE_ALPHAS)
        several = len(grid) > 1
        selection = PooledSelection.of(queries, validation, self.refit, self.folds, self.random_state, several)
        problems, scale = self._problems(selection)
        whole = joined(problems).ridge(scale)
        alphas = self._alphas(whole, grid)
        judged = np.full(len(grid), np.nan)
        if selection.trials:
            judged = self._judge_alphas(selection, problems, scale, grid)
        self.alpha_ = alphas[best_alpha(alphas, judged)]
        self._path_ = {"alpha": np.array(alphas), self._measure().title: judged}
        self.coef_ = whole.weights([self.alpha_])[0]

    def _problems(self, selection: PooledSelection) -> tuple[list[Problem], Vector]:
        """The problem of every part, and the scale of the features."""
        pool = selection.pool
        balance = balance_of(pool.sets) if self.balanced else (1.0, 1.0)
        factor, shift = scale_factors(pool.sets[0], self.scale) if self.intercept == "global" else (None, None)
        target = gains_of if self.target == "gains" else Queries.labels
        terms = RegressionTerms(target, balance, shift, factor)
        problems = problems_of_parts(pool.sets, terms, [pool.by_set(part) for part in selection.parts], self.n_jobs)
        if self.intercept == "global":  # scale_factors has scaled them
            return problems, np.ones(pool.sets[0].n_features)
        return problems, (within_query_scale if self.scale == "auto" else no_scale)(joined(problems))

    def _expected_passes(self, queries: QuerySource) -> Any:
        part = np.zeros(len(queries), np.int64)
        job = ProblemsJob(True, RegressionTerms(gains_of), part, 1)
        # survey, balance, moments, what the queries are known by; scales; and the scores of the parts that judge
        passes = 4 + 2 * (self.intercept == "global")
        passes += self._trial_parts(queries, as_grid(self.alpha, RELATIVE_ALPHAS))
        return job, (), passes, passes + 2

    def _alphas(self, problem: Solved, grid: Sequence[float]) -> tuple[float, ...]:
        """The penalties of this problem; those that nobody gave are in its own unit."""
        unit = 1.0 if self.alpha is not None else problem.unit
        return tuple([unit * alpha for alpha in grid])

    def _judge_alphas(
        self, selection: PooledSelection, problems: list[Problem], scale: Vector, grid: Sequence[float]
    ) -> Vector:
        """The measure of every alpha on queries that it did not learn from."""
        values, weights = [], []
        for trial in selection.trials:
            learned = joined(problems, trial.without).ridge(scale)
            held = trial.prepare([self._measure()])
            values.append(held.values(learned.weights(self._alphas(learned, grid)), self.n_jobs))
            weights.append(held.weight)
        return mean_over_held_out(values, weights)

    def _state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        alphas, judged = self._path_.values()
        return {"alpha": self.alpha_}, {"coef": self.coef_, "alphas": alphas, "judged": judged}

    def _restore(self, facts: Mapping[str, Any], store: Store) -> None:
        self.coef_ = self._read_coef(store)
        self.alpha_ = float(facts["alpha"])
        alphas, judged = (store.array(name, np.float64, (None,)) for name in ("alphas", "judged"))
        self._path_ = {"alpha": alphas, self._measure().title: judged}


def gains_of(queries: Queries) -> Vector:
    """The gain 2^label - 1 of every document."""
    return gains(queries.labels(), "exp2")


# ------------------------------------------------------------------------------------------------- weights of documents

# Integers up to this one are grades: LightGBM's table of gains ends there, too.
_LARGEST_GRADE = 30
# The largest weight of a document without relevance. Without a limit a single one would count as much as all others
# together, and with weak features the order would be almost random. Sets with at least 5% of such documents, among
# them all that LETOR has published, never reach the limit.
_MOST_OF_GRADES = 10.0


def row_weight(queries: Queries, balance: tuple[float, float] = (1.0, 1.0)) -> Vector:
    """The weight of every row: query weight times document weight times the factor of its class.

    Parameters
    ----------
    queries : Queries
        Judged queries.
    balance : (float, float), default=(1.0, 1.0)
        The factors of documents without relevance and of relevant ones (label above 0), as of :func:`balance_of`.

    Returns
    -------
    ndarray, shape (n_documents,)
        The weights; empty if all are 1.
    """
    weight, own = queries.weight, differing_weights(queries)
    found = np.empty(0) if own is None else own
    if weight is not None:
        weight = weight[queries.query_of_row]
        found = np.ascontiguousarray(weight if own is None else weight * own)
    others, relevant = balance
    if others == relevant == 1.0:
        return found
    return (found if len(found) else np.ones(queries.n_documents)) * np.where(queries.labels() > 0, relevant, others)


def balance_of(sets: Sequence[QuerySource]) -> tuple[float, float]:
    """Factors of (documents without relevance, relevant documents) that balance these sets together.

    If the former are fewer, one of them counts at most 10 times if labels are grades, and once if they are not. The
    total weight stays the same.
    """
    counts, fractions = np.zeros(2), 0.0
    for queries in sets:
        own, other = queries.total(CountClasses()) or (0.0, 0.0)  # there may be no queries
        counts, fractions = counts + own, fractions + other
    return class_shares(counts, 1.0 if fractions else _MOST_OF_GRADES)


@dataclass(frozen=True)
class CountClasses(Job):
    """(weights of documents without relevance and of relevant ones, number of labels that are no grades)."""

    keeps_prepared = False

    def prepare(self, queries: Queries, offset: int) -> tuple[Vector, Vector]:
        weight = row_weight(queries)
        labels = queries.in_query_order(queries.labels())
        return labels, queries.in_query_order(weight) if len(weight) else np.ones(len(labels))

    def run(self, chunk: Chunk, prepared: tuple[Vector, Vector], *arguments: Any) -> tuple[Vector, float]:
        rows = slice(int(chunk.queries.start[chunk.first]), int(chunk.queries.start[chunk.last]))
        labels, weight = prepared[0][rows], prepared[1][rows]
        relevant, grades = labels > 0, (labels <= _LARGEST_GRADE) & (labels == np.rint(labels))
        return np.array([weight[~relevant].sum(), weight[relevant].sum()]), float((~grades).sum())


def class_shares(counts: Vector, most: float) -> tuple[float, float]:
    """Factors of (documents without relevance, relevant documents) that give both classes the same weight.

    Parameters
    ----------
    counts : ndarray, shape (2,)
        The total weights of the two classes.
    most : float
        The largest factor of documents without relevance; the total weight stays the same.

    Returns
    -------
    tuple of float
        The two factors.
    """
    others, relevant = map(float, counts)
    if not (others and relevant):
        return 1.0, 1.0
    total = others + relevant
    if total / (2 * others) <= max(most, 1.0):
        return total / (2 * others), total / (2 * relevant)
    return most, (relevant - (most - 1) * others) / relevant


# ---------------------------------------------------------------------------------------------------------- regressions

# Squares of features between these sizes neither overflow nor vanish.
_SMALL, _LARGE = 1e-100, 1e100


@dataclass(frozen=True)
class RegressionTerms:
    """What is regressed on what, for queries in memory or in parts.

    Attributes
    ----------
    targets : callable
        The targets of queries; a function of a module.
    balance : (float, float), default=(1.0, 1.0)
        Factors of the weights of documents without relevance, and of relevant ones.
    shift, factor : ndarray of shape (n_features,) or None, default=None
        As in :class:`Regression`.
    """

    targets: Targets
    balance: tuple[float, float] = (1.0, 1.0)
    shift: Vector | None = None
    factor: Vector | None = None


@dataclass(frozen=True)
class ProblemsJob(Job):
    """The least squares problem of every part of the queries, as far as it is in one chunk.

    Attributes
    ----------
    moments : bool
        Whether the sums of the rows are returned, or the rows.
    terms : RegressionTerms
        The regression.
    part : ndarray of int64, shape (n_queries,)
        The part of every query; -1 for none.
    parts : int
        The number of parts.
    """

    moments: bool
    terms: RegressionTerms
    part: Numbers
    parts: int
    keeps_prepared = False

    def prepare(self, queries: Queries, offset: int) -> Regression:
        terms = self.terms
        weight, targets = row_weight(queries, terms.balance), np.atleast_2d(terms.targets(queries))
        return Regression(queries, targets, weight, terms.shift, terms.factor)

    def run(self, chunk: Chunk, prepared: Regression, *arguments: Any) -> tuple[Any, ...]:
        part, kind = self.part[chunk.numbers], Moments if self.moments else WeightedRows
        members = [chunk.first + np.flatnonzero(part == number) for number in range(self.parts)]
        problems: list[Problem] = [kind.of(prepared, own, chunk.n_jobs) for own in members]
        totals = np.array([one.total for one in problems])
        return totals, *(one.sums if isinstance(one, Moments) else one.z for one in problems)


def _problems_of_set(
    queries: QuerySource, terms: RegressionTerms, moments: bool, parts: Sequence[Numbers], n_jobs: int | None
) -> list[Problem]:
    """The problem of every part of one set of queries, from one pass."""
    part = np.full(len(queries), -1, np.int64)
    for number, own in enumerate(parts):
        part[own] = number
    job, width = ProblemsJob(moments, terms, part, len(parts)), queries.n_features
    factor = np.ones(width) if terms.factor is None else terms.factor
    if moments:
        totals, *sums = queries.total(job, n_jobs=n_jobs)
        return [Moments(own, width, float(total), factor) for own, total in zip(sums, totals, strict=True)]
    totals, rows = np.zeros(len(parts)), [[] for _ in parts]  # type: ignore[var-annotated]
    for total, *chunk in queries.map(job, n_jobs=n_jobs):
        totals = totals + total
        for every, own in zip(rows, chunk, strict=True):
            every.append(own)
    return [
        WeightedRows(np.concatenate(own), width, float(total), factor) for own, total in zip(rows, totals, strict=True)
    ]


def problem_kind(sets: Sequence[QuerySource]) -> type[Moments] | type[WeightedRows]:
    """The cheaper form of the problem for these queries."""
    documents = sum(queries.n_documents for queries in sets)
    return WeightedRows if documents < sets[0].n_features else Moments


@one_blas_thread()
def problems_of_parts(
    sets: Sequence[QuerySource], terms: RegressionTerms, parts: Sequence[Sequence[Numbers]], n_jobs: int | None
) -> list[Problem]:
    """The problem of every part, from one pass over X.

    Parameters
    ----------
    sets : sequence of Queries or ChunkedQueries
        The sets of queries that are learned from together.
    terms : RegressionTerms
        The regression.
    parts : sequence of sequence of ndarray of int64
        For every part the numbers of its queries in each of the sets.
    n_jobs : int or None
        Number of threads; None uses every core.

    Returns
    -------
    list of Moments or of WeightedRows
        One problem per part.
    """
    moments = problem_kind(sets) is Moments

    def problems(terms: RegressionTerms) -> list[Problem]:
        by_set = [
            _problems_of_set(queries, terms, moments, [part[place] for part in parts], n_jobs)
            for place, queries in enumerate(sets)
        ]
        return [joined(own) for own in zip(*by_set, strict=True)]

    found = problems(terms)
    with np.errstate(invalid="ignore"):
        squares = joined(found).squares()
    if terms.factor is None and not ((squares > _SMALL) & (squares < _LARGE)).all():
        factor = exact_factors(sets)
        if factor is not None:
            return problems(replace(terms, factor=factor))
    return found


def exact_factors(sets: Sequence[QuerySource]) -> Vector | None:
    """Powers of two that bring huge and tiny features to about 1; None if there are none."""
    largest = np.zeros(sets[0].n_features)
    for queries in sets:
        np.maximum(largest, Extremes.of(queries, "standard", counted=True).size, out=largest)
    extreme = (largest > _LARGE) | ((largest < _SMALL) & (largest > 0))
    if not extreme.any():
        return None
    exponent = np.frexp(largest)[1].clip(-1000, 1000)
    return np.where(extreme, np.ldexp(1.0, -exponent), 1.0)
