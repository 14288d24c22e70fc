"""RankSVM: the hinge over pairs, or its square, regularised."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import RankwiseError
from rankwise.data import checks
from rankwise.data.queries import Queries
from rankwise.losses.pairwise_hinge import PairHinge
from rankwise.rankers.linear.loss_ranker import RegularisedRanker
from rankwise.solvers.batch.feature_scale import Scale
from rankwise.solvers.batch.newton import NewtonStep, Ridged, newton
from rankwise.solvers.batch.risk import Note, Risk, Round, mean_share
from rankwise.solvers.batch.squared_pairs import SquaredPairsAt, SquaredPairsOverLists

Vector = NDArray[np.float64]


class RankSVM(RegularisedRanker):
    r"""min over w of (lambda/2) norm(w - w0)^2 + mean over lists of mean over label_i > label_j of [1 + s_j - s_i]_+.

    Parameters
    ----------
    measure : any; by which the alpha is chosen, and what ``score`` reports
    loss : "hinge", by cutting planes, or "squared", by truncated Newton steps
    per_pair : a list counts by the mean over its pairs; False: by their sum, so that long lists outweigh short ones
    alpha : lambda; several, of which the best on the validation set (or by folds over queries, without one) is
        taken; None: 10^3, ..., 10^-6, times the mean number of pairs of a list if not ``per_pair``; "theory":
        2 G R / (W sqrt(n)), see ``row_radius``
    ball : an l1 radius, or several to choose from, in place of a alpha: the mean loss alone is made smallest, where
        norm1(w - w0) <= radius
    center : w0; None for 0, "ridge" for a :class:`RidgeRanker` fitted on the same lists, a fitted linear ranker, or a
        vector of weights on raw features
    row_radius, norm : R and W for "theory": no document of any list to come is farther than R from 0 (or from the mean
        of its list), and W is the norm of weights to compare with
    tolerance, max_calls : the relative gap that is small enough, and the most passes over X for one alpha
    scale : "auto" divides features by their standard deviation unless all of them lie in [-1, 1]; "none". The norm is
        that of the weights on features so scaled
    folds : how many parts of the queries make choices where there is no validation set
    random_state, n_jobs, verbose, missing : as for :class:`SLAMPerceptron`; the bits do not depend on ``n_jobs``

    Attributes
    ----------
    coef_ : weights on raw features
    alpha_, ball_ : the lambda or the radius that was taken; the other is NaN
    objective_, gap_ : what is made smallest, at ``coef_``, and how far below it the smallest can be, for certain
    history_ : a row a pass: call, objective, lower bound, gap, planes; for "squared" a row a step: step, objective,
        lower bound, gap, products; it draws itself
    path_ : for every alpha, or radius, the measure by which it was judged

    Notes
    -----
    A pass costs O(m log m) a list, however many pairs it has, and reads X once. Cutting planes end with a proof: no
    weights have an objective below ``objective_ - gap_``. Planes are kept from one alpha to the next, the strongest
    first. For the squared hinge the gap is norm(gradient)^2 / (2 lambda).

    Joachims's SVM-rank makes (1/2) norm(w)^2 + (C/n) sum over n lists of the sum over pairs small: ``per_pair=False``
    and lambda = 1/C. With one C for the sum over all pairs, lambda = 1/(n C). G1 is 2 for the mean over pairs and
    2 floor(m^2/4) for their sum; the squared hinge has none, so "theory" is not for it.

    A list with one label teaches nothing, but counts in the mean. Fewer queries than folds make as many parts as there
    are queries; of equals, or where nothing can judge them, the largest alpha or the smallest ball is taken. Weights
    of 0, though better documents do differ from worse ones on average, come with a ``NothingLearnedWarning``. Ctrl-C
    leaves the best alpha judged so far, or the best weights of the first one.

    Examples
    --------
    >>> from rankwise import make_lists
    >>> queries = make_lists(60, documents=8, features=4, random_state=1)
    >>> model = RankSVM(alpha=0.01).fit(queries)
    >>> model.gap_ <= 1e-3 * model.objective_
    True

    References
    ----------
    Joachims 2002 and 2006; Chapelle and Keerthi 2010 for the squared hinge.
    """

    name = "RankSVM"

    def __init__(
        self,
        measure: Any = "nDCG@10",
        *,
        loss: Literal["hinge", "squared"] = "hinge",
        per_pair: bool = True,
        alpha: float | Sequence[float] | str | None = None,
        ball: float | Sequence[float] | None = None,
        center: Any = None,
        row_radius: float | None = None,
        norm: float | None = None,
        tolerance: float = 1e-3,
        max_calls: int = 1000,
        scale: Scale = "auto",
        folds: int = 5,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
        missing: checks.Missing = "error",
    ) -> None:
        super().__init__(
            measure,
            alpha=alpha,
            ball=ball,
            center=center,
            row_radius=row_radius,
            norm=norm,
            tolerance=tolerance,
            max_calls=max_calls,
            scale=scale,
            folds=folds,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
            missing=missing,
        )
        self.loss = loss
        self.per_pair = per_pair

    @classmethod
    def examples(cls) -> Sequence[Self]:
        return cls(alpha=0.01), cls("AP", loss="squared", per_pair=False, alpha=(100.0, 1.0), folds=2)

    @property
    def _by_newton(self) -> bool:
        return self.loss == "squared" and self.ball is None

    def _loss(self) -> PairHinge:
        if self.loss not in ("hinge", "squared"):
            raise RankwiseError(f"loss is 'hinge' or 'squared': found {self.loss!r}")
        return PairHinge(squared=self.loss == "squared", per_pair=self.per_pair)

    def _risk(self, queries: Queries, factor: Vector, center: Vector) -> Risk:
        if self._by_newton:
            return _NewtonRisk(queries, self.per_pair, factor, center, self.n_jobs)
        return super()._risk(queries, factor, center)

    def _columns(self) -> Mapping[str, type[np.generic]]:
        if not self._by_newton:
            return super()._columns()
        return dict(zip(_NewtonRisk.columns, super()._columns().values(), strict=True))

    def _unit(self, queries: Queries) -> float:
        return 1.0 if self.per_pair else _mean_pairs(queries) or 1.0


class _NewtonRisk:
    """(lambda/2) norm(w - w0)^2 + the mean squared pair hinge, for one lambda after another, each from the last's w."""

    columns = ("step", "objective", "lower bound", "gap", "products")

    def __init__(self, queries: Queries, per_pair: bool, factor: Vector, center: Vector, n_jobs: int | None) -> None:
        self._pairs = SquaredPairsOverLists.of(queries, per_pair)
        self._share, self._factor, self._center, self._n_jobs = mean_share(queries), factor, center, n_jobs
        self._z = np.zeros_like(center)  # w - w0
        self._at_center = self._share * self._from_center(self._z).value

    def solve(self, level: float, tolerance: float, max_calls: int, note: Note) -> None:
        def after(z: Vector, step: NewtonStep) -> bool:
            row = (step.step, step.value, step.value - step.gap, step.gap, step.products)
            note(Round(self._center + z, row))
            return step.gap <= tolerance * step.value and step.gap <= 0.1 * (self._at_center - row[2])

        problem = Ridged(self._from_center, level, self._share, self._factor)
        found = newton(problem, self._z, tolerance=0.0, steps=max_calls, strong=level, callback=after)
        if found.steps == 0:  # there was nothing to improve
            after(found.w, NewtonStep(**next(iter(found.history))))
        self._z = found.w

    def _from_center(self, raw: Vector) -> SquaredPairsAt:
        return self._pairs(raw + self._center * self._factor, self._n_jobs)


def _mean_pairs(queries: Queries) -> float:
    """The mean over lists, by their weights, of the number of pairs with different labels."""
    owner, labels = queries.query_of_row, queries.labels()
    order = np.lexsort((labels, owner))
    new = np.flatnonzero((np.diff(owner[order], prepend=-1) != 0) | (np.diff(labels[order], prepend=-1.0) != 0))
    same = np.zeros(len(queries))
    np.add.at(same, owner[order][new], np.diff(new, append=len(order)).astype(np.float64) ** 2)
    pairs = (queries.sizes.astype(np.float64) ** 2 - same) / 2
    return float(mean_share(queries) * (pairs.sum() if queries.weight is None else queries.weight @ pairs))
