"""RidgeRanker: ridge regression on gains within queries, its penalty chosen by cross-validation in one pass over X.

:mod:`rankwise.rankers.linear.least_squares` solves the problems. One pass makes the moments of every part of the
queries; what is learned without a part, and in the end from all of them, is a sum of these. Documents count by their
own weight, that of their query, and a balance of relevant documents and others (:func:`balanced_weights`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import RankwiseError
from rankwise._store import Store
from rankwise.data.checks import differing_weights
from rankwise.data.passes.chunked import ChunkedQueries
from rankwise.data.queries import Queries
from rankwise.data.row_blocks import scale_factors
from rankwise.measures.ndcg import gains
from rankwise.rankers._base import LinearRanker
from rankwise.rankers._fit_frame import as_grid
from rankwise.rankers._model_selection import PooledSelection, Refit, best_alpha, mean_over_held_out
from rankwise.rankers._parameters import SelectionParameters
from rankwise.rankers.linear.least_squares import (
    Problem,
    ProblemsOfChunk,
    Solved,
    joined,
    no_scale,
    problems_of_parts,
    regressions,
    within_query_scale,
)
from rankwise.rankers.linear.row_weights import balance_of

Vector = NDArray[np.float64]

# The penalties that are tried, in units of trace(A) / number of features.
RELATIVE_ALPHAS = tuple(10.0 ** (power / 2) for power in range(-10, 5))


@dataclass(eq=False, repr=False, kw_only=True)
class RidgeRanker(SelectionParameters, LinearRanker):
    r"""min over w, b of sum_i c_i (w . x_i + b_q(i) - G(label_i))^2 + alpha norm(w)^2, scores w . x.

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

    alpha: float | Sequence[float] | None = None
    target: str = "gains"
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

    def _learns_from_validation(self) -> bool:
        return self.refit == "all"

    def _why_not_linear(self) -> str | None:
        if self.target != "labels" or self.balanced:
            return "only target='labels' with balanced=False is linear in the labels"
        if not self._measure().linear_in_labels and len(as_grid(self.alpha, RELATIVE_ALPHAS, "alpha")) > 1:
            return f"{self._measure().title}, which selects among several alpha, is not linear in the labels"
        return None

    def _fit(self, queries: Queries, validation: Queries | None) -> None:
        if self.target not in ("gains", "labels"):
            raise RankwiseError(f"target is 'gains' or 'labels': found {self.target!r}")
        if self.intercept not in ("query", "global"):
            raise RankwiseError(f"intercept is 'query' or 'global': found {self.intercept!r}")
        if self.scale not in ("auto", "none"):
            raise RankwiseError(f"scale is 'auto' or 'none': found {self.scale!r}")
        grid = as_grid(self.alpha, RELATIVE_ALPHAS, "alpha")
        several = len(grid) > 1
        selection = PooledSelection.of(queries, validation, self.refit, self.folds, self.random_state, several)
        if any(differing_weights(one) is not None for one in selection.pool.sets):
            self.document_weights_ = True
        problems, scale = self._problems(selection)
        whole = joined(problems).ridge(scale)
        alphas = self._alphas(whole, grid)
        judged = np.full(len(grid), np.nan)
        if selection.trials:
            judged = self._judged_alphas(selection, problems, scale, grid)
        self.alpha_ = alphas[best_alpha(alphas, judged)]
        self._path_ = {"alpha": np.array(alphas), self._measure().title: judged}
        self.coef_ = whole.weights([self.alpha_])[0]

    def _problems(self, selection: PooledSelection) -> tuple[list[Problem], Vector]:
        """The problem of every part, and the scale of the features."""
        pool = selection.pool
        balance = balance_of(pool.sets) if self.balanced else (1.0, 1.0)
        factor, shift = scale_factors(pool.sets[0], self.scale) if self.intercept == "global" else (None, None)
        target = gains_of if self.target == "gains" else Queries.labels
        about = regressions(pool.sets, target, balance, shift, factor)
        problems = problems_of_parts(about, pool.by_sets(selection.parts), self.n_jobs)
        if self.intercept == "global":  # scale_factors has scaled them
            return problems, np.ones(pool.sets[0].n_features)
        return problems, (within_query_scale if self.scale == "auto" else no_scale)(joined(problems))

    def _expected_passes(self, queries: ChunkedQueries) -> Any:
        part = np.zeros(len(queries), np.int64)
        job = ProblemsOfChunk(True, gains_of, (1.0, 1.0), None, None, part, 1)
        passes = 3 + 2 * (self.intercept == "global")  # survey, balance, moments; and scales
        return job, (), passes, passes + 2

    def _alphas(self, problem: Solved, grid: Sequence[float]) -> tuple[float, ...]:
        """The penalties of this problem; those that nobody gave are in its own unit."""
        return tuple(grid) if self.alpha is not None else tuple(problem.unit * alpha for alpha in grid)

    def _judged_alphas(
        self, selection: PooledSelection, problems: list[Problem], scale: Vector, grid: Sequence[float]
    ) -> Vector:
        """The measure of every alpha on queries that it did not learn from."""
        values, weights = [], []
        for trial in selection.trials:
            learned = joined(problems, trial.without).ridge(scale)
            held = trial.prepared([self._measure()])
            values.append(held.values(learned.weights(self._alphas(learned, grid)), self.n_jobs))
            weights.append(held.weight)
        return mean_over_held_out(values, weights)

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        alphas, judged = self._path_.values()
        return {"alpha": self.alpha_}, {"coef": self.coef_, "alphas": alphas, "judged": judged}

    def _restore(self, facts: Mapping[str, Any], store: Store) -> None:
        self.coef_ = read_coef(store, self.n_features_in_)
        self.alpha_ = float(facts["alpha"])
        alphas, judged = (store.array(name, np.float64, (None,)) for name in ("alphas", "judged"))
        self._path_ = {"alpha": alphas, self._measure().title: judged}


def gains_of(queries: Queries) -> Vector:
    """The gain 2^label - 1 of every document."""
    return gains(queries.labels(), "exp2")


def read_coef(store: Store, features: int) -> Vector:
    """The weights in a file, one finite number per feature."""
    coef: Vector = store.array("coef", np.float64, (features,))
    if not np.isfinite(coef).all():
        raise RankwiseError("its weights are not finite")
    return coef
