"""Ridge regression on gains, with relevant and other documents given the same total weight."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import RankwiseError
from rankwise._kernels.rows import linear_scores
from rankwise._store import Store
from rankwise._tables import Table
from rankwise.data.queries import Queries
from rankwise.data.row_blocks import scale_factors
from rankwise.measures.ndcg import gains
from rankwise.rankers._base import LinearRanker
from rankwise.rankers._model_selection import held_out, mean_measure, mean_over_parts, parts_of
from rankwise.rankers._parameters import SelectionParameters, as_grid
from rankwise.solvers.batch.least_squares import Moments, WeightedRows, ridge_problem

Vector = NDArray[np.float64]

ALPHAS = tuple(10.0**power for power in range(-2, 6))

# Whole numbers up to this one are grades: LightGBM's table of gains ends there, too.
_LARGEST_GRADE = 30
# A document without relevance is weighed up at most so many times. Without a limit a single one would count as much as
# all others together, and with weak features the order would be as good as drawn by lot. Sets with at least 5 % of such
# documents, among them all that LETOR has published, do not notice.
_MOST_OF_GRADES = 10.0


@dataclass(eq=False, repr=False, kw_only=True)
class RidgeRanker(SelectionParameters, LinearRanker):
    r"""min over w, b of sum_i c_i (w . x_i + b - G(label_i))^2 + alpha norm(w)^2, scores w . x.

    Parameters
    ----------
    measure : by which alpha is chosen, and what ``score`` reports
    alpha : alpha, for features in the units that ``scale`` gives them; several, of which the best on the validation
        set (or by folds over queries, without one) is taken; None: 10^-2, ..., 10^5
    target : regress on the "gains" 2^label - 1 or on the "labels"
    balanced : relevant documents (label above 0) and other documents get the same total weight, however few the former
        are. If the others are the few, a document counts at most 10 times where labels are grades (whole numbers up to
        30), and once where they are not: the zeros of continuous labels are the end of a range and no class of their
        own. The total weight stays the same
    scale : "auto" divides features by their standard deviation unless all of them lie in [-1, 1]; "none"
    folds : how many parts of the queries choose alpha where there is no validation set
    random_state : seed of the folds
    n_jobs, missing : as for :class:`SLAMPerceptron`

    Attributes
    ----------
    coef_ : weights on raw features
    alpha_ : the alpha that was taken
    path_ : for every alpha the measure by which it was judged

    Notes
    -----
    One pass over X (two with folds), then O(features^3), for all alphas together; with fewer documents than features
    O(documents^2 features) instead. Fewer queries than folds make as many parts as there are queries; where nothing can
    judge them, the largest alpha is taken.
    """

    name = "RidgeRanker"
    takes_validation = True

    alpha: float | Sequence[float] | None = None
    target: str = "gains"
    balanced: bool = True

    @classmethod
    def examples(cls) -> Sequence[Self]:
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
        elif len(alphas) > 1:
            parts = parts_of(queries, self.folds, self.random_state)
            apart = [problem.of(queries, target, factor, centre, part, self.n_jobs) for part in parts]
            found = []
            for number, part in enumerate(parts):
                others = reduce(add, apart[:number] + apart[number + 1 :])
                found.append(self._judge(alphas, most, others, held_out(queries, part)[1], factor))
            judged = mean_over_parts(found) if found else judged
        # where nothing judges them, the strongest strays least
        best = int(np.argmax(alphas) if np.isnan(judged).all() else np.nanargmax(judged))
        self.alpha_ = alphas[best]
        self.path_ = Table({"alpha": list(alphas), self._measure().title: judged})
        self.coef_ = whole.ridge([self.alpha_], most)[0] * factor

    def _most(self, labels: Vector) -> float | None:
        """How often a document without relevance may count; None: there is no balance."""
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
        """The measure of every alpha on lists that were held out."""
        measure, paths = self._measure(), problem.ridge(alphas, most)
        scores = (linear_scores(held.X, w * factor, self.n_jobs) for w in paths)
        return np.array([mean_measure(held, own, measure, self.n_jobs) for own in scores])

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        judged = self.path_[self.path_.columns[1]]
        return {"alpha": self.alpha_}, {"coef": self.coef_, "alphas": self.path_["alpha"], "judged": judged}

    def _restore(self, facts: Mapping[str, Any], store: Store) -> None:
        self.coef_ = read_coef(store, self.n_features_in_)
        self.alpha_ = float(facts["alpha"])
        alphas, judged = (store.array(name, np.float64, (None,)) for name in ("alphas", "judged"))
        self.path_ = Table({"alpha": alphas, self._measure().title: judged})


def read_coef(store: Store, features: int) -> Vector:
    """The weights in a file, one finite number a feature."""
    coef: Vector = store.array("coef", np.float64, (features,))
    if not np.isfinite(coef).all():
        raise RankwiseError("its weights are not finite")
    return coef
