r"""What rankers that make a regularised mean loss smallest share: alphas, their choice, certain gaps, files.

.. math:: \min_w\; \frac\lambda2 \lVert w - w_0\rVert^2 + \frac1n \sum_q \mathrm{weight}_q\, \varphi_q(X_q w)

with n the total weight of the lists, or the mean loss alone where norm1(w - w0) <= a radius.
"""

import math
import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import RankwiseError
from rankwise._progress import progress
from rankwise._store import Store
from rankwise._tables import Table
from rankwise.data import checks
from rankwise.data.queries import Queries
from rankwise.data.row_blocks import largest_radius
from rankwise.losses._base import Loss
from rankwise.losses.pairwise_hinge import PairHinge
from rankwise.rankers._base import LinearRanker
from rankwise.rankers._fit_checks import NothingLearnedWarning
from rankwise.rankers._history import History, history_arrays, read_history
from rankwise.rankers._model_selection import held_out, linear_scores, mean_measure, mean_over_parts, parts_of
from rankwise.rankers.certificate.objective import TrainingObjective
from rankwise.rankers.linear.ridge import RidgeRanker, as_numbers, read_coef
from rankwise.rankers.smooth.start import raw_weights
from rankwise.solvers.batch.feature_scale import Scale, scale_factors
from rankwise.solvers.batch.objective import LossOverLists
from rankwise.solvers.batch.risk import Attempt, BundleRisk, Risk, mean_share

Vector = NDArray[np.float64]

ALPHAS = tuple(10.0**power for power in range(3, -7, -1))


class RegularisedRanker(LinearRanker):
    """A ranker gives its ``_loss`` and its own parameters; those here are told of by :class:`RankSVM`."""

    takes_validation = True

    alpha_: float
    ball_: float
    objective_: float
    gap_: float
    history_: History
    path_: Table

    def __init__(
        self,
        measure: Any,
        *,
        alpha: Any,
        ball: Any,
        center: Any,
        row_radius: float | None,
        norm: float | None,
        tolerance: float,
        max_calls: int,
        scale: Scale,
        folds: int,
        random_state: Any,
        n_jobs: int | None,
        verbose: bool,
        missing: checks.Missing,
    ) -> None:
        self.measure = measure
        self.alpha = alpha
        self.ball = ball
        self.center = center
        self.row_radius = row_radius
        self.norm = norm
        self.tolerance = tolerance
        self.max_calls = max_calls
        self.scale = scale
        self.folds = folds
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.missing = missing

    @abstractmethod
    def _loss(self) -> Loss:
        """The convex loss that is made small."""

    def _risk(self, queries: Queries, factor: Vector, center: Vector) -> Risk:
        return BundleRisk(self._loss(), queries, factor, center, self.ball is not None, self.n_jobs)

    def _columns(self) -> Mapping[str, type[np.generic]]:
        """The columns of the history, and what they count in."""
        return dict(zip(BundleRisk.columns, (np.int64, np.float64, np.float64, np.float64, np.int64), strict=True))

    def _unit(self, queries: Queries) -> float:
        """What the usual alphas are multiplied by."""
        return 1.0

    # ------------------------------------------------------------------------------------------- learning

    def _fit(self, queries: Queries, validation: Queries | None) -> None:
        self._loss()  # refuses a measure that it cannot be made for, before any work
        numbers = checks.is_number(self.tolerance) and checks.is_number(self.max_calls)
        if not (numbers and 0 < self.tolerance < 1 and self.max_calls >= 1):
            raise RankwiseError(
                "tolerance lies between 0 and 1 and max_calls is 1 or more: "
                f"found {self.tolerance!r} and {self.max_calls!r}"
            )
        factor, _ = scale_factors(queries, self.scale)
        levels = self._levels(queries, factor)
        parts = parts_of(queries, self.folds, self.random_state) if validation is None and len(levels) > 1 else []
        judged = np.full(len(levels), np.nan)
        attempts: list[Attempt] = []

        def keep() -> bool:
            judged_ones = [attempt for attempt in attempts if attempt.worth]
            begun = judged_ones or [attempt for attempt in attempts if attempt.rounds]
            if not begun:
                return False
            worth = np.array([attempt.worth[0] if attempt.worth else math.nan for attempt in begun])
            self._set(begun[self._best([attempt.level for attempt in begun], worth)], attempts, levels, judged, factor)
            return True

        with (
            self._kept_on_ctrl_c(keep),
            progress("fitting", self._solves(levels, parts), enabled=None if self.verbose else False) as bar,
        ):
            if parts:
                judged = mean_over_parts([self._judged_on(part, queries, levels, factor, bar) for part in parts])
                levels_left = [levels[self._best(levels, judged)]]
            else:
                levels_left = self._easiest_first(levels)
            self._walk(attempts, levels_left, queries, validation, factor, bar)
            keep()
        self._warn_if_nothing_was_learned(queries)

    def _walk(
        self,
        attempts: list[Attempt],
        levels: Sequence[float],
        train: Queries,
        held: Queries | None,
        factor: Vector,
        bar: progress,
    ) -> None:
        """Solve level after level on the same planes, and judge each as soon as it is solved."""
        risk = self._risk(train, factor, self._center(train, held, factor))
        for level in levels:
            attempt = Attempt(level)
            attempts.append(attempt)
            attempt.run(risk, self.tolerance, self.max_calls, bar)
            attempt.worth.append(self._worth(held, attempt.rounds[-1].w * factor))

    def _judged_on(
        self, part: NDArray[np.int64], queries: Queries, levels: Sequence[float], factor: Vector, bar: progress
    ) -> list[float]:
        """What every level is worth on lists that it has not seen."""
        train, held = held_out(queries, part)
        attempts: list[Attempt] = []
        # the held-out lists judge: a center that chose by them would have seen them
        risk = self._risk(train, factor, self._center(train, None, factor))
        for level in self._easiest_first(levels):
            attempts.append(Attempt(level))
            attempts[-1].run(risk, self.tolerance, self.max_calls, bar)
        found = {attempt.level: self._worth(held, attempt.rounds[-1].w * factor) for attempt in attempts}
        return [found[level] for level in levels]

    def _worth(self, held: Queries | None, coef: Vector) -> float:
        if held is None:
            return math.nan
        return mean_measure(held, linear_scores(held.X, coef, self.n_jobs), self._measure(), self.n_jobs)

    def _set(
        self,
        taken: Attempt,
        attempts: Sequence[Attempt],
        levels: Sequence[float],
        judged: Vector,
        factor: Vector,
    ) -> None:
        """The fitted state, with this attempt for the ranker's own."""
        worth = {attempt.level: attempt.worth[0] for attempt in attempts if attempt.worth}
        found = judged if np.isfinite(judged).any() else [worth.get(level, math.nan) for level in levels]
        rounds, last = list(taken.rounds), taken.rounds[-1]
        columns = dict(zip(self._columns(), zip(*(one.row for one in rounds), strict=True), strict=True))
        self.coef_ = last.w * factor
        self.alpha_, self.ball_ = (math.nan, taken.level) if self.ball is not None else (taken.level, math.nan)
        self.objective_, self.gap_ = last.objective, last.gap
        self.history_ = self._drawn(
            {name: np.array(columns[name], dtype=kind) for name, kind in self._columns().items()}
        )
        self.path_ = Table({self._level_name: list(levels), self._measure().title: np.array(found, dtype=np.float64)})

    def _warn_if_nothing_was_learned(self, queries: Queries) -> None:
        if self.coef_.any() or self.objective_ == 0 or not _better_ones_differ(queries, self.n_jobs):
            return
        other = "" if self.center is not None else ", so give center='ridge' or another ranker"
        warnings.warn(
            f"{self.name} learned weights of 0, which rank nothing: no weights have an objective below "
            f"{self.objective_ - self.gap_:.6g}, and 0 has {self.objective_:.6g}{other}",
            NothingLearnedWarning,
            stacklevel=4,  # at the caller of fit
        )

    # ------------------------------------------------------------------------------------------- levels and center

    @property
    def _level_name(self) -> str:
        return "alpha" if self.ball is None else "ball"

    def _levels(self, queries: Queries, factor: Vector) -> tuple[float, ...]:
        if self.ball is not None:
            if self.alpha is not None:
                raise RankwiseError("a ball is in place of a alpha: give one of them")
            return _as_levels(self.ball, "ball")
        if self.alpha is None:
            return tuple(self._unit(queries) * alpha for alpha in ALPHAS)
        if isinstance(self.alpha, str):
            if self.alpha != "theory" or isinstance(self.center, str):
                raise RankwiseError(
                    "alpha is a number, several, None or 'theory', which takes a center that was not learned from "
                    f"these lists: found {self.alpha!r} with center={self.center!r:.40}"
                )
            return (theory_alpha(self._loss(), queries, factor, self.row_radius, self.norm),)
        return _as_levels(self.alpha, "alpha")

    def _easiest_first(self, levels: Sequence[float]) -> list[float]:
        """Every level once: from the strongest on, or from the smallest ball on, whose points lie in larger ones."""
        return sorted(set(levels), reverse=self.ball is None)

    def _best(self, levels: Sequence[float], judged: Vector) -> int:
        """The place of the best level; of equals, or where nothing judges them, the one that strays least from w0."""
        worth = dict(zip(levels, np.where(np.isnan(judged), -np.inf, judged), strict=True))
        return list(levels).index(max(self._easiest_first(levels), key=lambda level: worth[level]))

    @staticmethod
    def _solves(levels: Sequence[float], parts: Sequence[Any]) -> int:
        return len(set(levels)) * len(parts) + 1 if parts else len(set(levels))

    def _center(self, train: Queries, validation: Queries | None, factor: Vector) -> Vector:
        """w0 in the units of the scaled features."""
        ridge = RidgeRanker(
            self._measure(), scale=self.scale, folds=self.folds, random_state=self.random_state, n_jobs=self.n_jobs
        )
        raw = raw_center(self.center, train, validation, ridge)
        return np.divide(raw, factor, out=np.zeros_like(raw), where=factor > 0)

    # ------------------------------------------------------------------------------------------- what is guaranteed

    def _training_objective(self) -> TrainingObjective:
        by_theory = isinstance(self.alpha, str)
        return TrainingObjective(
            loss=self._loss(),
            alpha=self.alpha_,
            alpha_fixed=True if by_theory else False if len(self.path_) > 1 else None,
            scale=self.scale,
            centre_fixed=True if self.center is None else False if isinstance(self.center, str) else None,
            objective=self.objective_,
            gap=self.gap_,
            norm=self.norm,
        )

    # ------------------------------------------------------------------------------------------- saving

    def _drawn(self, columns: Mapping[str, Any]) -> History:
        return History(columns, ("objective", "lower bound"), f"{self.name}: what was reached, and what is the least")

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        numbers = np.array([self.alpha_, self.ball_, self.objective_, self.gap_])
        path = {f"path.{number}": self.path_[name] for number, name in enumerate(self.path_.columns)}
        return {}, {"coef": self.coef_, "numbers": numbers, **path, **history_arrays(self.history_)}

    def _restore(self, facts: Mapping[str, Any], store: Store) -> None:
        self.coef_ = read_coef(store, self.n_features_in_)
        numbers = store.array("numbers", np.float64, (4,))
        self.alpha_, self.ball_, self.objective_, self.gap_ = numbers.tolist()
        levels, judged = (store.array(f"path.{number}", np.float64, (None,)) for number in range(2))
        self.path_ = Table({self._level_name: levels, self._measure().title: judged})
        self.history_ = self._drawn(read_history(store, self._columns()))


def _better_ones_differ(queries: Queries, n_jobs: int | None) -> bool:
    """Whether the better document of a pair has other features than the worse one, on average and beyond rounding.

    Where it has not, a linear ranker has nothing to go by.
    """
    _, slope = LossOverLists.of(PairHinge(), queries)(np.zeros(queries.n_features), n_jobs=n_jobs)
    radius = largest_radius(queries)
    return radius > 0 and mean_share(queries) * float(np.linalg.norm(slope)) > 1e-9 * radius


def _as_levels(given: Any, name: str) -> tuple[float, ...]:
    """One number or several, each above 0."""
    values = as_numbers(given)
    if not values or not all(0 < value < math.inf for value in values):
        raise RankwiseError(f"{name} is one number or several, finite and above 0: found {given!r:.60}")
    return values


# ------------------------------------------------------------------------------------------------------------- center
# The weights that a regularised ranker stays near: none, a regression, another ranker or a vector.


_CHOICES = "None, 'ridge', a fitted linear ranker or a vector"


def raw_center(given: Any, train: Queries, validation: Queries | None, ridge: RidgeRanker) -> Vector:
    """Weights on raw features.

    Parameters
    ----------
    given : None for 0, "ridge", a fitted linear ranker, or a vector
    train, validation : what a regression is fitted on, and what chooses its alpha
    ridge : the regression, not yet fitted
    """
    if given is None:
        return np.zeros(train.n_features)
    if isinstance(given, str):
        if given != "ridge":
            raise RankwiseError(f"center is {_CHOICES}: found {given!r}")
        given = ridge.fit(train, validation=validation)
    return raw_weights(given, train.n_features, "center", _CHOICES)


# ---------------------------------------------------------------------------------------------------- theory alpha
# The alpha of regularisation for which a bound on the expected risk is known.


def theory_alpha(loss: Loss, queries: Queries, factor: Vector, row_radius: float | None, norm: float | None) -> float:
    r"""lambda = 2 G R / (W sqrt(n)): over n lists drawn independently, E risk(w) - risk(u) <= 2 G W R / sqrt(n).

    u is any vector with norm(u - w0) <= W, G the G1 of the loss, and no document of any list, drawn or to come, lies
    farther than R from 0 (or from the mean of its list). The minimiser moves by 2 G R / (lambda n) at most when one
    list is replaced.

    Parameters
    ----------
    factor : of each feature, all 1 for R to be that of the features at hand
    row_radius, norm : R and W
    """
    if row_radius is None or norm is None or not (0 < row_radius < math.inf and 0 < norm < math.inf):
        raise RankwiseError(
            f"alpha='theory' needs row_radius= and norm=, both above 0: found {row_radius!r} and {norm!r}"
        )
    if (factor != 1).any():
        raise RankwiseError("alpha='theory' takes row_radius= of features as they are: give scale='none'")
    counting = queries.counted
    if queries.weight is not None and len(counting) and np.ptp(queries.weight[counting]) > 0:
        raise RankwiseError("alpha='theory' is for lists of equal weight: found weights that differ")
    found = largest_radius(queries)
    if found > row_radius * (1 + 1e-9):
        raise RankwiseError(f"row_radius={row_radius:g} holds for every list: found one of radius {found:g}")
    steep = loss.lipschitz_l1(int(queries.sizes[counting].max(initial=2)))
    if not math.isfinite(steep):
        raise RankwiseError(f"alpha='theory' needs a loss of bounded slope: found {loss!r}")
    return 2 * steep * row_radius / (norm * math.sqrt(max(1, len(counting))))
