"""TwoStage: learn by a type one bound of the measure, then go on by a type two bound from there."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import DataError, RankwiseError
from rankwise._kernels.rows import linear_scores
from rankwise._progress import progress
from rankwise._store import Store
from rankwise._tables import Table
from rankwise.data import checks
from rankwise.data.queries import Queries
from rankwise.data.row_blocks import row_blocks, scale_factors
from rankwise.losses._base import Loss
from rankwise.measures._base import Measure
from rankwise.measures.compute import ScoredLists, measure_lists
from rankwise.rankers._base import LinearRanker, registered
from rankwise.rankers._model_selection import held_out, mean_measure, mean_over_parts, parts_of
from rankwise.rankers._parameters import SelectionParameters, as_grid, raw_weights
from rankwise.rankers.certificate.objective import TrainingObjective
from rankwise.rankers.linear.ridge import read_coef
from rankwise.solvers.batch.bundle import Bundle
from rankwise.solvers.batch.objective import LossOverLists

Vector = NDArray[np.float64]


# ------------------------------------------------------------------------------------------------------- second bound
# The second stage of a fit: weights near those of the first that make a convex bound small, for several alphas.


# The ray is searched from 2^-20 to 2^20 times the length at which scores spread by 1, to a 25,000th of its length.
_OCTAVES, _HALVINGS = 20, 20


@dataclass(frozen=True)
class Solved:
    """The minimum for one alpha: weights of scaled features, (lambda/2) norm(w - t w0)^2 + loss, loss, and gap."""

    alpha: float
    w: Vector
    objective: float
    loss: float
    gap: float


def bound_of(measure: Measure) -> Loss:
    """The structured hinge that bounds 1 - measure."""
    from rankwise.losses.structured import SVMMapHinge
    from rankwise.losses.structured_ndcg import NDCGHinge
    from rankwise.measures.ap import AP
    from rankwise.measures.ndcg import NDCG

    if isinstance(measure, AP) and measure.cutoff is None:
        return SVMMapHinge(rel=measure.rel)
    if isinstance(measure, NDCG):
        return NDCGHinge(k=measure.cutoff, gain=measure.gain, discount=measure.discount, normalised=True)
    raise RankwiseError(
        f"the second stage knows bounds for AP and nDCG: found {measure.title}; give second= a convex loss"
    )


@dataclass(frozen=True)
class MeanBound:
    """phi(w), the mean of a loss over the lists that a measure says something about, and its slope.

    ``w`` are weights of features times ``factor``.
    """

    lists: LossOverLists
    factor: Vector
    n_jobs: int | None

    @classmethod
    def of(cls, loss: Loss, measure: Measure, queries: Queries, factor: Vector, n_jobs: int | None) -> "MeanBound":
        rows, labels = queries.scattered_rows, queries.labels()
        known = ~np.isnan(measure_lists([measure], ScoredLists(labels, labels, queries.start, rows), n_jobs=n_jobs)[0])
        query_weight = np.where(known, queries.query_weight, 0.0)
        total = math.fsum(query_weight)
        return cls(LossOverLists.of(loss, queries, query_weight / total if total else query_weight), factor, n_jobs)

    def __call__(self, w: Vector) -> tuple[float, Vector]:
        value, slope = self.lists(w * self.factor, n_jobs=self.n_jobs)
        return value, slope * self.factor

    def best_along(self, w: Vector, spread: float) -> float:
        """t above 0 that makes phi(t w) smallest; ``spread`` is the standard deviation of the scores of w."""
        if not 0 < spread < math.inf:
            return 1.0
        low, high = -float(_OCTAVES), float(_OCTAVES)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            if self(w * (2.0**middle / spread))[1] @ w < 0:  # convex along the ray: it still leads down
                low = middle
            else:
                high = middle
        return float(2.0 ** ((low + high) / 2) / spread)

    def near(
        self, centre: Vector, alphas: list[float], tolerance: float, after: Callable[[Solved], Any]
    ) -> list[Solved]:
        """The minimum of (lambda/2) norm(w - centre)^2 + phi(w) for every alpha, from the largest on."""
        floor = 0.0 if self.lists.prepared.loss.nonnegative else None
        bundle = Bundle(self, len(centre), center=centre, floor=floor)
        solved = []
        for alpha in alphas:
            found = bundle.solve(alpha, tol=tolerance)
            solved.append(Solved(alpha, found.w, found.objective, found.value, found.gap))
            after(solved[-1])
        return solved


ALPHAS = tuple(10.0**power for power in range(-4, 4))
# first stages that are known by name: module and class
_FIRST = {"adarank": "AdaRank", "smoothrank": "SmoothRank", "ridge": "RidgeRanker"}
_COLUMNS = ("alpha", "objective", "loss", "gap", "train")  # and the measure by which each was judged


@dataclass(eq=False, repr=False, kw_only=True)
class TwoStage(SelectionParameters, LinearRanker):
    r"""min over w of (lambda/2) norm(w - t w0)^2 + mean over lists of phi(X w), w0 from a first ranker, phi a bound.

    The first ranker minimises what is bounded by a function of the measure (type one: AdaRank's exp(-E)), which is
    easy to make small and not convex. phi bounds 1 - E by comparing rankings (type two), is convex, and tighter where
    the ranker is good already. A large lambda gives the first ranker, a small one the minimum of phi alone.

    Parameters
    ----------
    measure : what both stages learn, and by which choices are made; AP and nDCG@k have a phi of their own
    first : "adarank", "smoothrank", "ridge", a fitted linear ranker, or a vector of weights on raw features
    second : phi: a convex loss; None: :class:`~rankwise.losses.SVMMapHinge` for AP, and for nDCG the normalised
        :class:`~rankwise.losses.NDCGHinge`
    alpha : lambda, for features in the units that ``scale`` gives them and a mean over lists; several, of which the
        best on the validation set (or by folds over queries, without one) is taken; None: 10^-4, ..., 10^3
    tolerance : the relative gap to the minimum that is small enough
    scale : "auto" divides features by their standard deviation unless all of them lie in [-1, 1]; "none"
    folds : how many parts of the queries choose lambda where there is no validation set; the first ranker is learned
        anew for each
    random_state : seed of the folds, and of the first ranker's
    n_jobs, verbose, missing : as for :class:`SLAMPerceptron`; the bits do not depend on ``n_jobs``

    Attributes
    ----------
    coef_ : weights on raw features
    first_ : w0 on raw features
    length_ : t; rankings do not see it but phi does, so it is the one that makes phi(t w0) smallest
    alpha_ : the lambda that was taken
    path_ : for every alpha, from the largest on: objective, loss (phi), gap, measure on the training lists, and the
        measure by which it was judged

    Notes
    -----
    t > 0 is found to 1e-4 by halving, since phi is convex along a ray. The planes of one lambda serve the next, so
    that all together take little more than one. Where nothing can judge them, the largest lambda is taken.

    A bound that is smallest at w = 0 has nothing to add: t is then next to 0, and every lambda keeps the ranking of the
    first stage or loses it. The hinge of nDCG is such a bound on lists of many documents that no weights separate;
    ``second=SVMMapHinge()`` goes on by AP's instead, with lambda chosen by nDCG.

    References
    ----------
    Section 8 of direct optimisation of evaluation measures in learning to rank names the idea.
    """

    name = "TwoStage"
    takes_validation = True

    measure: Any = field(default="AP", kw_only=False)
    first: Any = "adarank"
    second: Loss | None = None
    alpha: float | Sequence[float] | None = None
    tolerance: float = 0.0001

    @classmethod
    def examples(cls) -> Sequence[Self]:
        return cls("AP", alpha=0.1), cls("nDCG@3", first="ridge", alpha=(0.01, 1.0), folds=2)

    def _fit(self, queries: Queries, validation: Queries | None) -> None:
        alphas, loss = self._checked()
        parts = []
        if validation is None and len(alphas) > 1:
            parts = parts_of(queries, self.folds, self.random_state)
        factor, _ = scale_factors(queries, self.scale)
        with progress("alphas", len(alphas) * (len(parts) + 1), enabled=None if self.verbose else False) as bar:
            judged: Vector | None = None
            if parts:
                found = []
                for part in parts:
                    train, held = held_out(queries, part)
                    stages = self._stages(train, None, factor, loss)
                    solved = stages.bound.near(stages.centre, alphas, self.tolerance, lambda _: bar.advance(1))
                    found.append([self._worth(held, one.w * factor) for one in solved])
                judged = mean_over_parts(found)
            stages = self._stages(queries, validation, factor, loss)
            done: list[tuple[Solved, float, float]] = []

            def after(one: Solved) -> None:
                coef = one.w * factor
                worth = math.nan if validation is None else self._worth(validation, coef)
                done.append((one, self._worth(queries, coef), worth))
                bar.advance(1)

            with self._kept_on_ctrl_c(lambda: self._take(done, judged, stages, factor)):
                stages.bound.near(stages.centre, alphas, self.tolerance, after)
        self._take(done, judged, stages, factor)

    def _checked(self) -> tuple[list[float], Loss]:
        """The alphas from the largest on, and the bound; what parameters cannot mean is refused."""
        alphas = sorted(set(as_grid(self.alpha, ALPHAS, "alpha")), reverse=True)
        if alphas[-1] == 0:
            raise RankwiseError("alpha is above 0, because without it no weights may be the best: found 0")
        if not checks.is_number(self.tolerance) or not 0 < self.tolerance < 1:
            raise RankwiseError(f"tolerance is a number between 0 and 1: found {self.tolerance!r}")
        if self.second is None:
            return alphas, bound_of(self._measure())
        if not isinstance(self.second, Loss) or not self.second.convex:
            raise RankwiseError(f"second is a convex loss, such as SVMMapHinge(): found {self.second!r:.60}")
        return alphas, self.second

    def _stages(self, queries: Queries, validation: Queries | None, factor: Vector, loss: Loss) -> "_Stages":
        """The first ranker's weights on these lists, at their best length, and the bound to go on with."""
        first = self._first_weights(queries, validation)
        with np.errstate(over="ignore"):
            w = np.divide(first, factor, out=np.zeros_like(first), where=factor > 0)
        bound = MeanBound.of(loss, self._measure(), queries, factor, self.n_jobs)
        scores = linear_scores(queries.X, w * factor, self.n_jobs)
        if not (np.isfinite(w).all() and np.isfinite(scores).all()):
            raise DataError("the first stage gives documents no finite scores on these features: scale them")
        counted = [scores[rows] for rows in row_blocks(queries)]
        length = bound.best_along(w, float(np.concatenate(counted).std()) if counted else 0.0)
        return _Stages(first, length, length * w, bound)

    def _first_weights(self, queries: Queries, validation: Queries | None) -> Vector:
        given = self.first
        if isinstance(given, str):
            if given not in _FIRST:
                raise RankwiseError(f"first is one of {', '.join(map(repr, _FIRST))}, or weights: found {given!r:.40}")
            kind = cast("Callable[..., LinearRanker]", registered()[_FIRST[given]])
            ranker = kind(self.measure, scale=self.scale, n_jobs=self.n_jobs)
            if "random_state" in ranker.get_params():
                ranker.set_params(random_state=self.random_state, folds=self.folds)
            return ranker.fit(queries, validation=validation).coef_
        return raw_weights(given, queries.n_features, "first", "a name, a fitted linear ranker or a vector").copy()

    def _worth(self, queries: Queries, coef: Vector) -> float:
        return mean_measure(queries, linear_scores(queries.X, coef, self.n_jobs), self._measure(), self.n_jobs)

    def _take(
        self, done: list[tuple[Solved, float, float]], judged: Vector | None, stages: "_Stages", factor: Vector
    ) -> bool:
        """Set what was learned for the alphas that are done; False if there is none."""
        if not done:
            return False
        worth = np.array([held for _, _, held in done]) if judged is None else judged[: len(done)]
        best = 0 if np.isnan(worth).all() else int(np.nanargmax(worth))
        rows = [
            (one.alpha, one.objective, one.loss, one.gap, train, held)
            for (one, train, _), held in zip(done, worth.tolist(), strict=True)
        ]
        self.first_ = stages.first
        self.length_ = stages.length
        self.alpha_ = done[best][0].alpha
        self.path_ = Table(
            {name: list(column) for name, column in zip(self._columns(), zip(*rows, strict=True), strict=True)}
        )
        self.coef_ = done[best][0].w * factor
        return True

    def _training_objective(self) -> TrainingObjective:
        place = self.path_["alpha"].tolist().index(self.alpha_)
        return TrainingObjective(
            loss=self._checked()[1],
            alpha=self.alpha_,
            alpha_fixed=False if len(self.path_) > 1 else None,
            scale=self.scale,
            centre_fixed=False,  # its length at least was found on these lists
            objective=float(self.path_["objective"][place]),
            gap=float(self.path_["gap"][place]),
        )

    # ------------------------------------------------------------------------------------------- saving

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        path = {f"path.{number}": self.path_[name] for number, name in enumerate(self.path_.columns)}
        return {"alpha": self.alpha_, "length": self.length_}, {"coef": self.coef_, "first": self.first_, **path}

    def _restore(self, facts: Mapping[str, Any], store: Store) -> None:
        self.coef_ = read_coef(store, self.n_features_in_)
        self.first_ = store.array("first", np.float64, (self.n_features_in_,))
        self.alpha_, self.length_ = float(facts["alpha"]), float(facts["length"])
        columns = enumerate(self._columns())
        self.path_ = Table({name: store.array(f"path.{number}", np.float64, (None,)) for number, name in columns})

    def _columns(self) -> tuple[str, ...]:
        return (*_COLUMNS, self._measure().title)


@dataclass(frozen=True)
class _Stages:
    """The first stage's weights on raw features, their length t, the centre t w0 of scaled ones, and the bound."""

    first: Vector
    length: float
    centre: Vector
    bound: MeanBound
