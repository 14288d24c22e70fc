"""TwoStage: a ranker learned by a type one bound of the measure, then improved by a convex type two bound.

:class:`TwoStage` is the ranker. The first stage is another ranker's weights w0. :class:`MeanBound` is the mean of the
bound phi over the queries, and finds the length t at which phi(t w0) is smallest. A
:class:`~rankwise.solvers.batch.bundle.Bundle` then finds the minimum around t w0 for one alpha after another, on the
same planes.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Self, cast

import numpy as np

from rankwise._arrays import Array, Vector
from rankwise._parameters import OpenFraction
from rankwise._store import Store
from rankwise.errors import DataError, RankwiseError
from rankwise.losses._base import Loss
from rankwise.losses.compute import LossOverLists
from rankwise.losses.structured import SVMMapHinge
from rankwise.losses.structured_ndcg import NDCGHinge
from rankwise.measures._base import Measure
from rankwise.measures.ap import AP
from rankwise.measures.compute import ScoredLists, measure_lists
from rankwise.measures.ndcg import NDCG
from rankwise.queries.chunks import row_blocks, scale_factors
from rankwise.queries.queries import Queries
from rankwise.rankers._base import AnyMeasure, LinearRanker, linear_scores, registered
from rankwise.rankers._model_selection import (
    PositiveAlphas,
    SelectionParameters,
    as_grid,
    best_alpha,
    mean_over_folds,
    measure_of_weights,
    normalize_weight,
    parts_of,
    path_arrays,
    read_path,
)
from rankwise.rankers._parameters import AnyLoss, Weights, raw_weights
from rankwise.rankers.certificate.objective import TrainingObjective
from rankwise.solvers.batch.bundle import Bundle, BundleResult

ALPHAS = tuple(10.0**power for power in range(-4, 4))
# The first stages that have a name, and their rankers.
_FIRST = {"adarank": "AdaRank", "smoothrank": "SmoothRank", "ridge": "RidgeRanker"}
# The ray is searched from 2^-20 to 2^20 times the length at which scores spread by 1, to a 25,000th of its length.
_OCTAVES, _HALVINGS = 20, 20


@dataclass(eq=False, repr=False, kw_only=True)
class TwoStage(SelectionParameters, LinearRanker):
    r"""A linear ranker in two stages: a bound, minimized near the weights of a first ranker.

    min over w of (alpha/2) norm(w - t w0)^2 + mean over queries of phi(X w), w0 from a first ranker, phi a bound.

    The first ranker minimizes a bound that is a function of the measure (type one: AdaRank's exp(-E)), which is easy to
    lower and not convex. phi bounds 1 - E by comparing rankings (type two); it is convex, and tighter where the ranker
    is good already. A large alpha gives the first ranker, a small one the minimum of phi alone.

    Parameters
    ----------
    measure : str or Measure, default="AP"
        The measure of both stages, which is used for model selection; ``score`` reports it. AP and nDCG@k have a phi of
        their own.
    first : {"adarank", "smoothrank", "ridge"}, ranker or array of shape (n_features,), default="adarank"
        The first stage: the name of a ranker, a fitted linear ranker, or weights on raw features.
    second : Loss, default=None
        phi, a convex loss; None is :class:`~rankwise.losses.SVMMapHinge` for AP and the normalized
        :class:`~rankwise.losses.NDCGHinge` for nDCG.
    alpha : float or sequence of float, default=None
        The penalty, for features in the units of ``scale`` and a mean over queries. Of several the best one on the
        validation set is taken (without one, by folds over the training queries); None tries 10^-4, ..., 10^3.
    tolerance : float, default=1e-4
        The relative gap to the minimum at which a solution is accepted.
    scale : {"auto", "none"}, default="auto"
        "auto" divides features by their standard deviation unless all of them lie in [-1, 1].
    folds : int, default=5
        Number of parts of the training queries that select alpha if there is no validation set. The first ranker is
        learned anew for each part.
    random_state : int or numpy.random.Generator, default=0
        Seed of the division into parts, and of the first ranker.
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
    first_ : ndarray of shape (n_features,)
        w0 on raw features.
    length_ : float
        t. Rankings do not depend on it but phi does; it is the t that minimizes phi(t w0).
    alpha_ : float
        The alpha that was selected.
    path_ : Table
        For every alpha, from the largest on: alpha, objective, loss (phi), gap, train (the measure on the training
        queries), and the measure that it was judged by.

    Notes
    -----
    phi is convex along a ray, so t > 0 is found to 1e-4 by bisection. The planes of one alpha serve the next:
    all of them together cost little more than one. Where nothing can judge them, the largest alpha is taken. After
    Ctrl-C the ranker holds the best of the alphas that were solved on all training queries.

    A bound that is smallest at w = 0 has nothing to add: t is then next to 0, and every alpha keeps the ranking of the
    first stage or loses it. The hinge of nDCG is such a bound on queries with many documents that no weights separate;
    ``second=SVMMapHinge()`` takes AP's bound instead, with alpha selected by nDCG.

    References
    ----------
    J. Xu, H. Li, T.-Y. Liu, Y. Peng, M. Lu, W.-Y. Ma (2010). Direct optimization of evaluation measures in
    learning to rank. Microsoft Research technical report MSR-TR-2010-171. Section 8 names the idea.
    """

    name = "TwoStage"
    takes_validation = True

    measure: AnyMeasure = field(default="AP", kw_only=False)
    first: Literal["adarank", "smoothrank", "ridge"] | Weights = "adarank"
    second: AnyLoss | None = None
    alpha: PositiveAlphas = None
    tolerance: OpenFraction = 0.0001

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """Instances that the common tests of all rankers use."""
        return cls("AP", alpha=0.1), cls("nDCG@3", first="ridge", alpha=(0.01, 1.0), folds=2)

    def _fit(self, queries: Queries, validation: Queries | None) -> None:
        alphas = sorted(set(as_grid(self.alpha, ALPHAS)), reverse=True)
        loss = self._second_loss()
        parts = []
        if validation is None and len(alphas) > 1:
            parts = parts_of(queries, self.folds, self.random_state)
        factor, _ = scale_factors(queries, self.scale)
        judged: Vector | None = None
        with self._progress("alphas", len(alphas) * (len(parts) + 1)) as bar:

            def minima(first: "_FirstStage") -> Iterator[BundleResult]:
                for alpha in alphas:
                    yield first.bundle.solve(alpha, tol=self.tolerance)
                    bar.advance(1)

            def judge(train: Queries, held: Queries) -> list[float]:
                # learned anew and without a validation set: the held-out queries must not have chosen it
                first = self._first_stage(train, None, factor, loss)
                return [self._worth(held, found.w * factor) for found in minima(first)]

            if parts:
                judged = mean_over_folds(queries, parts, judge)
            first = self._first_stage(queries, validation, factor, loss)
            done: list[_Solved] = []
            with self._keep_on_interrupt(lambda: self._take(done, alphas, judged, first, factor), lambda: done):
                for found in minima(first):
                    coef = found.w * factor
                    done.append(_Solved(found, self._worth(queries, coef), self._worth(validation, coef)))
        self._take(done, alphas, judged, first, factor)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not self._second_loss().convex:
            raise self._wrong("second", "a convex loss, such as SVMMapHinge()")

    def _second_loss(self) -> Loss:
        """phi."""
        return bound_of(self._measure()) if self.second is None else self.second

    def _first_stage(self, queries: Queries, validation: Queries | None, factor: Vector, loss: Loss) -> "_FirstStage":
        """The first ranker's weights on these queries, their best length, and the bundle of the second stage."""
        first = self._first_weights(queries, validation)
        with np.errstate(over="ignore"):
            w = np.divide(first, factor, out=np.zeros_like(first), where=factor > 0)
        bound = MeanBound.of(loss, self._measure(), queries, factor, self.n_jobs)
        scores = linear_scores(queries.X, w * factor, self.n_jobs)
        if not (np.isfinite(w).all() and np.isfinite(scores).all()):
            raise DataError("the scores of the first stage are not finite: scale the features")
        # the search for the length begins where the scores of the queries that count spread by 1
        counted = [scores[rows] for rows in row_blocks(queries)]
        length = bound.best_along(w, float(np.concatenate(counted).std()) if counted else 0.0)
        floor = 0.0 if loss.nonnegative else None
        return _FirstStage(first, length, Bundle(bound, len(w), center=length * w, floor=floor))

    def _first_weights(self, queries: Queries, validation: Queries | None) -> Vector:
        given = self.first
        if isinstance(given, str):
            kind = cast("Callable[..., LinearRanker]", registered()[_FIRST[given]])
            ranker = kind(self.measure, scale=self.scale, n_jobs=self.n_jobs)
            alike = {"random_state": self.random_state, "folds": self.folds}
            alike["refit"] = "train"  # what is learned from the validation set could not be judged by it
            ranker.set_params(**{name: value for name, value in alike.items() if name in ranker.get_params()})
            return ranker.fit(queries, validation=validation).coef_
        return raw_weights(given, queries.n_features, "first").copy()

    def _worth(self, queries: Queries | None, coef: Vector) -> float:
        return measure_of_weights(queries, coef, self._measure(), self.n_jobs)

    def _take(
        self,
        done: "list[_Solved]",
        alphas: Sequence[float],
        judged: Vector | None,
        first: "_FirstStage",
        factor: Vector,
    ) -> None:
        """Set the best of the alphas that are solved; False if there is none."""
        # after Ctrl-C only the first alphas, which are the largest, are solved
        alphas = alphas[: len(done)]
        worth = np.array([one.held for one in done]) if judged is None else judged[: len(done)]
        best = best_alpha(alphas, worth)
        found = [one.found for one in done]
        self.first_, self.length_ = first.coef, first.length
        self.alpha_ = alphas[best]
        solved = zip(*((one.objective, one.value, one.gap) for one in found), strict=True)
        columns = (alphas, *map(list, solved), [one.train for one in done], worth)
        self._path_ = dict(zip(self._columns(), map(np.asarray, columns), strict=True))
        self.coef_ = found[best].w * factor

    def _training_objective(self) -> TrainingObjective:
        place = self.path_["alpha"].tolist().index(self.alpha_)
        return TrainingObjective(
            loss=self._second_loss(),
            alpha=self.alpha_,
            alpha_fixed=False if len(self.path_) > 1 else None,
            scale=self.scale,
            center_fixed=False,  # its length at least was found on these queries
            objective=float(self.path_["objective"][place]),
            gap=float(self.path_["gap"][place]),
        )

    # ------------------------------------------------------------------------------------------- saving

    def _state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        arrays = {"coef": self.coef_, "first": self.first_, **path_arrays(self._path_)}
        return {"alpha": self.alpha_, "length": self.length_}, arrays

    def _restore(self, facts: Mapping[str, Any], store: Store) -> None:
        self.coef_ = self._read_coef(store)
        self.first_ = store.array("first", np.float64, (self.n_features_in_,))
        self.alpha_, self.length_ = float(facts["alpha"]), float(facts["length"])
        self._path_ = read_path(store, self._columns())

    def _columns(self) -> tuple[str, ...]:
        return ("alpha", "objective", "loss", "gap", "train", self._measure().title)


class _FirstStage(NamedTuple):
    """The weights w0 on raw features, their length t, and the bundle that minimizes phi around t w0."""

    coef: Vector
    length: float
    bundle: Bundle


class _Solved(NamedTuple):
    """The minimum for one alpha, and its measure on training and validation queries."""

    found: BundleResult
    train: float
    held: float


def bound_of(measure: Measure) -> Loss:
    """The structured hinge that bounds 1 - measure."""
    if isinstance(measure, AP) and measure.cutoff is None:
        return SVMMapHinge(rel=measure.rel)
    if isinstance(measure, NDCG):
        return NDCGHinge(k=measure.cutoff, gain=measure.gain, discount=measure.discount, normalized=True)
    raise RankwiseError(
        f"the second stage has bounds for AP and nDCG, got {measure.title}: pass a convex loss as second="
    )


@dataclass(frozen=True)
class MeanBound:
    """phi(w), the mean of a loss over the queries for which a measure is defined, and its slope.

    Attributes
    ----------
    lists : LossOverLists
        The loss over the queries.
    factor : ndarray of shape (n_features,)
        What features are multiplied by: ``w`` are weights of features so scaled.
    n_jobs : int or None
        Number of threads.
    """

    lists: LossOverLists
    factor: Vector
    n_jobs: int | None

    @classmethod
    def of(cls, loss: Loss, measure: Measure, queries: Queries, factor: Vector, n_jobs: int | None) -> "MeanBound":
        """The mean of ``loss`` over the queries for which ``measure`` is defined."""
        perfect = ScoredLists(queries.labels(), queries.labels(), queries.start, queries.scattered_rows)
        weight = normalize_weight(queries, ~np.isnan(measure_lists([measure], perfect, n_jobs=n_jobs)[0]))
        return cls(LossOverLists.of(loss, queries, weight), factor, n_jobs)

    def __call__(self, w: Vector) -> tuple[float, Vector]:
        """(phi(w), slope)."""
        value, slope = self.lists(w * self.factor, n_jobs=self.n_jobs)
        return value, slope * self.factor

    def best_along(self, w: Vector, spread: float) -> float:
        """The t above 0 that minimizes phi(t w); ``spread`` is the standard deviation of the scores of w."""
        if not 0 < spread < math.inf:
            return 1.0
        low, high = -float(_OCTAVES), float(_OCTAVES)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            if self(w * (2.0**middle / spread))[1] @ w < 0:  # phi is convex along the ray, and still falls here
                low = middle
            else:
                high = middle
        return float(2.0 ** ((low + high) / 2) / spread)
