"""RidgeRanker: ridge regression on gains, with relevant and other documents given the same total weight.

The ranker reads X once (:func:`~rankwise.solvers.batch.least_squares.ridge_problem`) and then solves for all alphas.
The small functions at the end check numbers for several rankers: weights from a file, and grids of alphas.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import RankwiseError
from rankwise._store import Store
from rankwise._tables import Table
from rankwise.data.queries import Queries
from rankwise.data.row_blocks import scale_factors
from rankwise.measures.ndcg import gains
from rankwise.rankers._base import LinearRanker
from rankwise.rankers._model_selection import best_alpha, held_out, mean_over_parts, measure_of_weights, parts_of
from rankwise.rankers._parameters import SelectionParameters, as_grid
from rankwise.solvers.batch.least_squares import Moments, WeightedRows, ridge_problem

Vector = NDArray[np.float64]

ALPHAS = tuple(10.0**power for power in range(-2, 6))
# Integers up to this one are grades: LightGBM's table of gains ends there, too.
_LARGEST_GRADE = 30
# The largest weight of a document without relevance. Without a limit a single one would count as much as all others
# together, and with weak features the order would be almost random. Sets with at least 5 % of such documents, among
# them all that LETOR has published, never reach the limit.
_MOST_OF_GRADES = 10.0


@dataclass(eq=False, repr=False, kw_only=True)
class RidgeRanker(SelectionParameters, LinearRanker):
    r"""min over w, b of sum_i c_i (w . x_i + b - G(label_i))^2 + alpha norm(w)^2, scores w . x.

    Parameters
    ----------
    measure : str or Measure, default="nDCG@10"
        The measure used for model selection, which ``score`` reports; the regression does not depend on it.
    alpha : float or sequence of float, default=None
        The penalty, for features in the units of ``scale``. Of several the best one on the validation set is taken
        (without one, by folds over the training queries); None tries 10^-2, ..., 10^5.
    target : {"gains", "labels"}, default="gains"
        G: the gains 2^label - 1, or the labels themselves.
    balanced : bool, default=True
        Whether relevant documents (label above 0) and other documents get the same total weight, however few the former
        are. If the others are fewer, one of them counts at most 10 times if labels are grades (integers up to 30), and
        once if they are not: the zeros of continuous labels are the end of a range and no class of their own. The total
        weight stays the same.
    scale : {"auto", "none"}, default="auto"
        "auto" divides features by their standard deviation unless all of them lie in [-1, 1].
    folds : int, default=5
        Number of parts of the training queries that select alpha if there is no validation set.
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
        For every alpha the measure that it was judged by.

    Notes
    -----
    A fit costs one pass over X (two with folds), then O(features^3) for all alphas together; with fewer documents than
    features O(documents^2 features) instead. If there are fewer queries than folds, every query is a part. Where
    nothing can judge them, the largest alpha is taken.

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

    alpha: float | Sequence[float] | None = None
    target: str = "gains"
    balanced: bool = True

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """Instances that the common tests of all rankers use."""
        return cls(alpha=1.0), cls("AP", alpha=(0.1, 10.0), target="labels", balanced=False, folds=2)

    def _fit(self, queries: Queries, validation: Queries | None) -> None:
        if self.target not in ("gains", "labels"):
            raise RankwiseError(f"target is 'gains' or 'labels': found {self.target!r}")
        alphas = as_grid(self.alpha, ALPHAS, "alpha")
        labels = queries.labels()
        target = gains(labels, "exp2") if self.target == "gains" else labels
        factor, centre = scale_factors(queries, self.scale)
        most, problem = self._most(labels), ridge_problem(queries)
        whole = problem.of(queries, target, factor, centre, n_jobs=self.n_jobs)
        judged = np.full(len(alphas), np.nan)
        if validation is not None:
            judged = self._judge(alphas, most, whole, validation, factor)
        elif len(alphas) > 1 and (parts := parts_of(queries, self.folds, self.random_state)):
            # one pass over X: the problem without a part is the sum over all other parts
            apart = [problem.of(queries, target, factor, centre, part, self.n_jobs) for part in parts]
            found = []
            for number, part in enumerate(parts):
                others = reduce(add, apart[:number] + apart[number + 1 :])
                found.append(self._judge(alphas, most, others, held_out(queries, part)[1], factor))
            judged = mean_over_parts(found)
        self.alpha_ = alphas[best_alpha(alphas, judged)]
        self.path_ = Table({"alpha": list(alphas), self._measure().title: judged})
        self.coef_ = whole.ridge([self.alpha_], most)[0] * factor

    def _most(self, labels: Vector) -> float | None:
        """The largest weight of a document without relevance; None if classes are not balanced."""
        if not self.balanced:
            return None
        grades = bool((labels <= _LARGEST_GRADE).all() and (labels == np.rint(labels)).all())
        return _MOST_OF_GRADES if grades else 1.0

    def _judge(
        self,
        alphas: Sequence[float],
        most: float | None,
        problem: Moments | WeightedRows,
        held: Queries,
        factor: Vector,
    ) -> Vector:
        """The measure of every alpha on queries that were held out."""
        paths, measure = problem.ridge(alphas, most), self._measure()
        return np.array([measure_of_weights(held, w * factor, measure, self.n_jobs) for w in paths])

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        judged = self.path_[self.path_.columns[1]]
        return {"alpha": self.alpha_}, {"coef": self.coef_, "alphas": self.path_["alpha"], "judged": judged}

    def _restore(self, facts: Mapping[str, Any], store: Store) -> None:
        self.coef_ = read_coef(store, self.n_features_in_)
        self.alpha_ = float(facts["alpha"])
        alphas, judged = (store.array(name, np.float64, (None,)) for name in ("alphas", "judged"))
        self.path_ = Table({"alpha": alphas, self._measure().title: judged})


def read_coef(store: Store, features: int) -> Vector:
    """The weights in a file, one finite number per feature."""
    coef: Vector = store.array("coef", np.float64, (features,))
    if not np.isfinite(coef).all():
        raise RankwiseError("its weights are not finite")
    return coef
