r"""Rankers that minimize a regularized mean loss: :class:`LossRanker` for any convex loss, and what its presets share.

.. math:: \min_w\; \frac\alpha2 \lVert w - w_0\rVert_2^2 + \frac1n \sum_q \mathrm{weight}_q\, \varphi_q(X_q w)

with n the total weight of the queries; with ``penalty="l1"`` the first term is alpha norm1(w - w0). With ``max_norm``
it is absent, and norm2(w - w0) <= max_norm, or norm1 for ``penalty="l1"``. :class:`RegularizedRanker` selects among
several values of alpha (or of max_norm), solves with a certain gap, and writes the file; a preset
(:class:`~rankwise.SLAMRanker`, :class:`~rankwise.RankSVM` ...) adds its loss and its own parameters.
"""

import math
import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np

from rankwise._arrays import Array, Numbers, Vector
from rankwise._parameters import OpenFraction, PositiveFloat, PositiveInt
from rankwise._progress import progress
from rankwise._store import Store
from rankwise.errors import NothingLearnedWarning, RankwiseError
from rankwise.losses._base import Loss
from rankwise.losses.compute import LossJob, LossOverLists
from rankwise.losses.pairwise_hinge import PairHinge
from rankwise.queries.chunks import radius_of, scale_factors
from rankwise.queries.queries import Queries
from rankwise.queries.source import QuerySource
from rankwise.rankers._base import AnyMeasure, LinearRanker
from rankwise.rankers._history import History, history_arrays, read_history, typed_columns
from rankwise.rankers._model_selection import (
    PositiveAlphas,
    SelectionParameters,
    as_grid,
    hold_out,
    mean_of_known,
    measure_of_weights,
    parts_of,
    path_arrays,
    read_path,
)
from rankwise.rankers._parameters import AnyLoss, Weights, raw_weights
from rankwise.rankers.certificate.objective import TrainingObjective
from rankwise.rankers.linear.ridge import RidgeRanker
from rankwise.solvers.batch.risk import Attempt, BundleRisk, NewtonRisk, Risk, mean_share

PenaltyName = Literal["l2", "l1"]
Prior = Literal["ridge"] | Weights | None

ALPHAS = tuple(10.0**power for power in range(3, -7, -1))
# Cutting planes of one level at the usual tolerance, for an estimate of what a fit will cost.
_USUAL_CALLS = 30


@dataclass(eq=False, repr=False, kw_only=True)
class RegularizedRanker(SelectionParameters, LinearRanker):
    """What all rankers share that minimize a regularized convex loss; :class:`LossRanker` documents the parameters."""

    takes_validation = True
    runs_on_parts = True

    alpha: PositiveFloat | Sequence[PositiveFloat] | Literal["theory"] | None = None
    penalty: PenaltyName = "l2"
    max_norm: PositiveAlphas = None
    prior_coef: Prior = None
    row_radius: PositiveFloat | None = None
    norm: PositiveFloat | None = None
    tolerance: OpenFraction = 1e-3
    max_calls: PositiveInt = 1000

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not self._loss().convex:  # measures without such a loss raise an error
            expected = "a convex loss of rankwise.losses (SmoothRank takes smoothed measures, OnlineRanker any loss)"
            raise self._wrong("loss", expected)
        if self.max_norm is not None and self.alpha is not None:
            raise self._wrong("max_norm", "None unless alpha=None: it takes the place of a penalty")
        if isinstance(self.alpha, str) and self.penalty != "l2":
            raise RankwiseError(f"alpha='theory' requires penalty='l2', got penalty={self.penalty!r}")
        if isinstance(self.alpha, str) and isinstance(self.prior_coef, str):
            raise RankwiseError(
                "alpha='theory' requires a prior_coef that was not learned from the training queries, "
                f"got prior_coef={self.prior_coef!r}"
            )

    @abstractmethod
    def _loss(self) -> Loss:
        """The convex loss that is minimized."""

    @property
    def takes_document_weights(self) -> bool:  # type: ignore[override]
        """Whether ``fit`` uses document weights: if its loss does."""
        return getattr(self._loss(), "document_weights", False)

    @property
    def _reason_no_document_weights(self) -> str:  # type: ignore[override]
        return f"{self._loss()!r:.60} declares none"

    @property
    def _reason_not_linear_in_labels(self) -> str | None:  # type: ignore[override]
        if not getattr(self._loss(), "linear_in_labels", False):
            return f"{self._loss()!r:.60} is not linear in the labels"
        several = self.max_norm if self.max_norm is not None else self.alpha
        if not self._measure().linear_in_labels and (several is None or len(as_grid(several, ())) > 1):
            return (
                f"{self._measure().title}, which selects among several {self._level_name}, is not linear in the labels"
            )
        return None

    @property
    def _by_newton(self) -> bool:
        """Whether Newton steps solve the problem: they need Hessian products, without weights, and a smooth penalty."""
        if self.record_.document_weights:
            return False
        return self.penalty == "l2" and self.max_norm is None and self._loss().squared_pairs is not None

    def _risk(self, queries: QuerySource, factor: Vector, prior: Vector) -> Risk:
        """The problem that is solved for one alpha, or one max_norm, after another."""
        if self._by_newton:
            return NewtonRisk(self._loss(), queries, factor, prior, self.n_jobs)
        form: Any = self.penalty if self.max_norm is None else f"{self.penalty} ball"
        return BundleRisk(self._loss(), queries, factor, prior, form, self.n_jobs)

    def _columns(self) -> Mapping[str, type[np.generic]]:
        """The columns of the history, and their types."""
        names = NewtonRisk.columns if self._by_newton else BundleRisk.columns
        return dict(zip(names, (np.int64, np.float64, np.float64, np.float64, np.int64), strict=True))

    def _unit(self, queries: QuerySource) -> float:
        """What the default alphas are multiplied by."""
        return 1.0

    # ------------------------------------------------------------------------------------------- learning

    def _fit(self, queries: Queries, validation: Queries | None) -> None:
        factor, _ = scale_factors(queries, self.scale)
        levels = self._levels(queries, factor)
        parts = parts_of(queries, self.folds, self.random_state) if validation is None and len(levels) > 1 else []
        solves = len(set(levels)) * len(parts) + 1 if parts else len(set(levels))
        judged = np.full(len(levels), np.nan)
        attempts: list[Attempt] = []

        def keep() -> None:
            judged_ones = [attempt for attempt in attempts if attempt.worth]
            begun = judged_ones or [attempt for attempt in attempts if attempt.rounds]
            worth = np.array([attempt.worth[0] if attempt.worth else math.nan for attempt in begun])
            self._set(begun[self._best([attempt.level for attempt in begun], worth)], attempts, levels, judged, factor)

        with (
            self._keep_on_interrupt(keep, finished=lambda: any(attempt.rounds for attempt in attempts)),
            self._progress("fitting", solves) as bar,
        ):
            if parts:
                judged = mean_of_known([self._judge_part(part, queries, levels, factor, bar) for part in parts])
                levels_left = [levels[self._best(levels, judged)]]
            else:
                levels_left = self._easiest_first(levels)
            prior = self._prior(queries, validation, factor)
            self._walk(attempts, levels_left, queries, validation, prior, factor, bar)
            keep()
        self._warn_if_nothing_was_learned(queries)

    def _expected_passes(self, queries: QuerySource) -> Any:
        loss = self._loss()
        given = self.max_norm if self.alpha is None else self.alpha
        levels = len(ALPHAS) if given is None else 1 if isinstance(given, str) else len(as_grid(given, ()))
        solves = levels * self.folds + 1 if levels > 1 else 1
        usual = solves * min(self.max_calls, _USUAL_CALLS)
        arguments = (np.zeros(queries.n_features), loss)
        return LossJob(loss, None), arguments, 3 + usual, 3 + solves * self.max_calls

    def _walk(
        self,
        attempts: list[Attempt],
        levels: Sequence[float],
        train: QuerySource,
        held: QuerySource | None,
        prior: Vector,
        factor: Vector,
        bar: progress,
    ) -> None:
        """Solve level after level with the same planes, and judge each once it is solved."""
        risk = self._risk(train, factor, prior)
        for level in levels:
            attempt = Attempt(level)
            attempts.append(attempt)
            attempt.run(risk, self.tolerance, self.max_calls, bar)
            attempt.worth.append(measure_of_weights(held, attempt.rounds[-1].w * factor, self._measure(), self.n_jobs))

    def _judge_part(
        self, part: Numbers, queries: QuerySource, levels: Sequence[float], factor: Vector, bar: progress
    ) -> list[float]:
        """The measure of every level on held-out queries."""
        train, held = hold_out(queries, part)
        attempts: list[Attempt] = []
        # the held-out queries judge: a prior that was selected by them would have seen them
        prior = self._prior(train, None, factor)
        self._walk(attempts, self._easiest_first(levels), train, held, prior, factor, bar)
        found = {attempt.level: attempt.worth[0] for attempt in attempts}
        return [found[level] for level in levels]

    def _set(
        self, taken: Attempt, attempts: Sequence[Attempt], levels: Sequence[float], judged: Vector, factor: Vector
    ) -> None:
        """Set the fitted state from the attempt that was taken."""
        worth = {attempt.level: attempt.worth[0] for attempt in attempts if attempt.worth}
        found = judged if np.isfinite(judged).any() else [worth.get(level, math.nan) for level in levels]
        rounds, last = list(taken.rounds), taken.rounds[-1]
        self.coef_ = last.w * factor
        constrained = self.max_norm is not None
        self.alpha_, self.max_norm_ = (math.nan, taken.level) if constrained else (taken.level, math.nan)
        self.objective_, self.gap_ = last.objective, last.gap
        self.history_ = self._as_history(typed_columns((one.row for one in rounds), self._columns()))
        self._path_ = {self._level_name: np.array(levels), self._measure().title: np.array(found, dtype=np.float64)}

    def _warn_if_nothing_was_learned(self, queries: QuerySource) -> None:
        if self.coef_.any() or self.objective_ == 0 or not _better_ones_differ(queries, self.n_jobs):
            return
        other = "" if self.prior_coef is not None else "; try prior_coef='ridge' or another ranker"
        warnings.warn(
            f"{self.name} learned weights of 0, which rank nothing: no weights have an objective below "
            f"{self.objective_ - self.gap_:.6g}, and 0 has {self.objective_:.6g}{other}",
            NothingLearnedWarning,
            stacklevel=4,  # at the caller of fit
        )

    # ------------------------------------------------------------------------------------------- levels and prior

    @property
    def _level_name(self) -> str:
        return "alpha" if self.max_norm is None else "max_norm"

    def _levels(self, queries: QuerySource, factor: Vector) -> tuple[float, ...]:
        """The values of alpha, or of max_norm, to solve for."""
        if self.max_norm is not None:
            return as_grid(self.max_norm, ())
        if self.alpha is None:
            return tuple(self._unit(queries) * alpha for alpha in ALPHAS if self.penalty == "l2" or alpha <= 1)
        if isinstance(self.alpha, str):
            return (theory_alpha(self._loss(), queries, factor, self.row_radius, self.norm),)
        return as_grid(self.alpha, ())

    def _easiest_first(self, levels: Sequence[float]) -> list[float]:
        """Every level once, the strongest penalty or the smallest ball first, whose points lie in the larger ones."""
        return sorted(set(levels), reverse=self.max_norm is None)

    def _best(self, levels: Sequence[float], judged: Vector) -> int:
        """The position of the best level; of equals, or without any judgment, the one closest to w0."""
        worth = dict(zip(levels, np.where(np.isnan(judged), -np.inf, judged), strict=True))
        return list(levels).index(max(self._easiest_first(levels), key=lambda level: worth[level]))

    def _prior(self, train: QuerySource, validation: QuerySource | None, factor: Vector) -> Vector:
        """w0 in the units of the scaled features."""
        given = self.prior_coef
        if given is None:
            return np.zeros(train.n_features)
        if isinstance(given, str):
            alike: dict[str, Any] = {"scale": self.scale, "folds": self.folds, "random_state": self.random_state}
            # what is learned from the validation set could not be judged by it
            ridge = RidgeRanker(self._measure(), refit="train", n_jobs=self.n_jobs, **alike)
            given = ridge.fit(train, validation=validation)
        raw = raw_weights(given, train.n_features, "prior_coef")
        return np.divide(raw, factor, out=np.zeros_like(raw), where=factor > 0)

    # ------------------------------------------------------------------------------------------- what is guaranteed

    def _training_objective(self) -> TrainingObjective:
        by_theory = isinstance(self.alpha, str)
        return TrainingObjective(
            loss=self._loss(),
            alpha=self.alpha_ if self.penalty == "l2" else math.nan,
            max_norm=self.max_norm_,
            max_norm_order=self.penalty,
            alpha_fixed=True if by_theory else False if len(self.path_) > 1 else None,
            scale=self.scale,
            center_fixed=True if self.prior_coef is None else False if isinstance(self.prior_coef, str) else None,
            objective=self.objective_,
            gap=self.gap_,
            norm=self.norm,
        )

    # ------------------------------------------------------------------------------------------- saving

    def _as_history(self, columns: Mapping[str, Any]) -> History:
        return History(columns, ("objective", "lower bound"), f"{self.name}: objective and its lower bound")

    def _state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        numbers = np.array([self.alpha_, self.max_norm_, self.objective_, self.gap_])
        return {}, {"coef": self.coef_, "numbers": numbers, **path_arrays(self._path_), **history_arrays(self.history_)}

    def _restore(self, facts: Mapping[str, Any], store: Store) -> None:
        self.coef_ = self._read_coef(store)
        numbers = store.array("numbers", np.float64, (4,))
        self.alpha_, self.max_norm_, self.objective_, self.gap_ = numbers.tolist()
        self._path_ = read_path(store, (self._level_name, self._measure().title))
        self.history_ = self._as_history(read_history(store, self._columns()))


@dataclass(eq=False, repr=False, kw_only=True)
class LossRanker(RegularizedRanker):
    r"""A linear ranker for any convex loss.

    min over w of (alpha/2) norm(w - w0)^2 + mean over queries of loss(X_q w, labels_q).

    The batch counterpart of :class:`~rankwise.OnlineRanker`. It takes any convex loss of :mod:`rankwise.losses`, also
    one of your own in a single file, and gives a certain duality gap and a certificate.

    Parameters
    ----------
    loss : Loss, default=None
        The convex loss; None is :class:`~rankwise.losses.PairHinge`.
    alpha : float, sequence of float or "theory", default=None
        The penalty, for features in the units of ``scale``. Of several the best one on the validation set is taken
        (without one, by folds over the training queries); None tries 10^3, ..., 10^-6 (from 1 on for "l1"). "theory" is
        2 G1 R / (W sqrt(n)), see ``row_radius``.
    penalty : {"l2", "l1"}, default="l2"
        The norm of w - w0: (alpha/2) norm2^2, or alpha norm1, which leaves many weights equal to those of w0.
    max_norm : float or sequence of float, default=None
        In place of alpha: minimize the mean loss subject to norm2(w - w0) <= max_norm, the empirical risk minimization
        of Tewari and Chaudhuri (2015), equation (3); with ``penalty="l1"`` subject to norm1(w - w0) <= max_norm. A
        certificate then bounds the excess risk over the best weights of the ball (their Theorems 9 and 12).
    prior_coef : "ridge", ranker or array of shape (n_features,), default=None
        w0, the weights that the penalty pulls toward: None for 0, "ridge" for a :class:`~rankwise.RidgeRanker` fitted
        on the same queries, a fitted linear ranker, or weights on raw features.
    row_radius : float, default=None
        R of ``alpha="theory"`` and of certificates: no document of any future query is farther than R from 0 (or from
        the mean of its query).
    norm : float, default=None
        W of ``alpha="theory"``: the norm of the weights to compare with.
    tolerance : float, default=1e-3
        The relative gap at which a solution is accepted.
    max_calls : int, default=1000
        The largest number of passes over X for one alpha.
    measure : str or Measure, default="nDCG@10"
        The measure used for model selection, which ``score`` reports.
    scale : {"auto", "none"}, default="auto"
        "auto" divides features by their standard deviation unless all of them lie in [-1, 1]. The penalty is on the
        weights of features so scaled.
    folds : int, default=5
        Number of parts of the training queries that select alpha if there is no validation set.
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
    alpha_, max_norm_ : float
        The value that was selected; the other one is NaN.
    objective_, gap_ : float
        The objective at ``coef_``, and a proven bound on how far it is above the minimum.
    history_ : History
        One row per pass: call, objective, lower bound, gap, planes.
    path_ : Table
        For every alpha (or max_norm) the measure that it was judged by.

    Notes
    -----
    Cutting planes end with a proof: no weights have an objective below ``objective_ - gap_``. Planes are kept from one
    alpha to the next. Losses that declare Hessian products (the squared pair hinge) are solved by truncated Newton
    steps, whose gap is norm(gradient)^2 / (2 alpha).

    Examples
    --------
    >>> import rankwise as rw
    >>> queries = rw.make_lists(60, documents=8, features=4, random_state=1)
    >>> model = LossRanker(rw.losses.ListNet(), alpha=0.01).fit(queries)
    >>> bool(model.gap_ <= 1e-3 * model.objective_)
    True
    """

    name = "LossRanker"

    loss: AnyLoss | None = field(default=None, kw_only=False)
    measure: AnyMeasure = field(default="nDCG@10", kw_only=True)

    @classmethod
    def examples(cls) -> Sequence[Self]:
        return cls(alpha=0.01), cls(PairHinge(squared=True), alpha=0.1), cls(PairHinge(), alpha=0.01, penalty="l1")

    def _loss(self) -> Loss:
        return PairHinge() if self.loss is None else self.loss


def _better_ones_differ(queries: QuerySource, n_jobs: int | None) -> bool:
    """Whether better and worse documents of pairs differ in their features on average, beyond rounding.

    If they do not, no linear ranker can learn from these queries.
    """
    _, slope = LossOverLists.of(PairHinge(), queries)(np.zeros(queries.n_features), n_jobs=n_jobs)
    radius = radius_of(queries, n_jobs)
    return radius > 0 and mean_share(queries) * float(np.linalg.norm(slope)) > 1e-9 * radius


def theory_alpha(
    loss: Loss, queries: QuerySource, factor: Vector, row_radius: float | None, norm: float | None
) -> float:
    r"""alpha = 2 G R / (W sqrt(n)): over n independent queries, E risk(w) - risk(u) <= 2 G W R / sqrt(n).

    u is any vector with norm(u - w0) <= W, G the G1 of the loss, and no document of any present or future query is
    farther than R from 0 (or from the mean of its query). The minimizer moves by at most 2 G R / (alpha n) when one
    query is replaced.

    Parameters
    ----------
    loss : Loss
        The loss, for its G1.
    queries : Queries
        The training queries.
    factor : ndarray of shape (n_features,)
        Factor of each feature; all of them 1, so R is the radius of these features.
    row_radius : float or None
        R.
    norm : float or None
        W.

    Returns
    -------
    alpha : float
        The penalty for which the bound holds.
    """
    if row_radius is None or norm is None:
        raise RankwiseError("alpha='theory' requires row_radius= and norm=")
    if (factor != 1).any():
        raise RankwiseError("alpha='theory' requires scale='none', because row_radius= is that of raw features")
    if queries.has_document_weights:
        raise RankwiseError("alpha='theory' requires equal document weights, got weights that differ")
    counting = queries.counted
    if queries.weight is not None and len(counting) and np.ptp(queries.weight[counting]) > 0:
        raise RankwiseError("alpha='theory' requires equal query weights, got weights that differ")
    radius = radius_of(queries)
    if radius > row_radius * (1 + 1e-9):
        raise RankwiseError(f"row_radius={row_radius:g} must hold for every query, got a query of radius {radius:g}")
    steep = loss.lipschitz_l1(int(queries.sizes[counting].max(initial=2)))
    if not math.isfinite(steep):
        raise RankwiseError(f"alpha='theory' requires a loss of bounded slope, got {loss!r}")
    return 2 * steep * row_radius / (norm * math.sqrt(max(1, len(counting))))
