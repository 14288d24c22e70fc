"""SmoothRank: linear weights that maximise a smoothed measure, annealed towards the measure itself.

A width sigma is in squared units of the scores (in their own units for the sigmoid form). The widths of the paper suit
scores that regress on gains; for a start whose scores have another scale, :func:`score_unit` says how many of its units
make one of gain, and the widths are multiplied accordingly.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import DataError, RankwiseError
from rankwise._kernels.rows import linear_scores
from rankwise._progress import progress
from rankwise._store import Store
from rankwise._tables import Table
from rankwise.data.queries import Queries
from rankwise.data.row_blocks import scale_factors
from rankwise.losses._base import SmoothedMeasure, smoothed
from rankwise.measures.ndcg import gains
from rankwise.rankers._base import LinearRanker, registered
from rankwise.rankers._fit_frame import as_grid, as_numbers, raw_weights
from rankwise.rankers._model_selection import held_out, mean_over_parts, parts_of
from rankwise.rankers._parameters import SelectionParameters
from rankwise.rankers.certificate.objective import TrainingObjective
from rankwise.rankers.linear.ridge import read_coef
from rankwise.rankers.smooth.annealing import (
    COLUMNS,
    AnnealedRun,
    AnnealingHistory,
    AnnealingPlan,
    AnnealingTrials,
    Start,
)
from rankwise.solvers.batch.descent import Bounds, Solver, within

Vector = NDArray[np.float64]

# lambda norm(w - w0)^2 beside a SUM over lists
ALPHAS = tuple(10.0**power for power in range(-6, 4))
# those of the ridge regression that it starts from
RIDGE_ALPHAS = tuple(10.0**power for power in range(-2, 6))
# the stages of the paper, in squared units of scores that regress on gains
SIGMAS = tuple(2.0**power for power in range(6, -7, -1))
_STARTS = "'ridge', 'ranksvm', a fitted linear ranker or a vector"


@dataclass(eq=False, repr=False, kw_only=True)
class SmoothRank(SelectionParameters, LinearRanker):
    r"""min over w of alpha norm(w - w0)^2 - sum_q A_q(X_q w; sigma), sigma from large to small, A a smoothed measure.

    Parameters
    ----------
    measure : str or Measure, default="nDCG@50"
        "nDCG@k", "nDCG", "DCG@k", "AP", "P@k" or "RR": the measure that is smoothed, and used for model selection.
    alpha : float or sequence of float, default=None
        The penalty, for features in the units of ``scale`` and a sum over queries. Of several the best one on the
        validation set is taken (without one, by folds over the training queries); None tries 10^-6, ..., 10^3.
    start : str, ranker, array of shape (n_features,) or list of these, default="ridge"
        w0: "ridge" or "ranksvm" (:class:`~rankwise.RidgeRanker`, :class:`~rankwise.RankSVM`, their alpha selected
        likewise), a fitted linear ranker, weights on raw features, or a list of these, of which the best is taken.
    sigmas : sequence of float, default=None
        Widths of the smoothing, decreasing, in squared score units of a regression on gains; None is 2^6, 2^5, ...,
        2^-6. For a start whose scores have another scale they are multiplied accordingly.
    smoothing : {"sigmoid", "indicator"}, default="sigmoid"
        The form of :class:`~rankwise.losses.SmoothAP`, for AP.
    solver : {"cg", "lbfgs"}, default="cg"
        SciPy's Polak-Ribiere conjugate gradients, or L-BFGS.
    steps : int, default=50
        The largest number of steps per stage.
    tolerance : float, default=1e-6
        The relative improvement below which a stage ends.
    stop : {"last", "best"}, default="last"
        Whether to keep the weights of the smallest sigma, or those of the sigma that is best on the validation set.
    sign : mapping of str or int to {1, -1}, default=None
        The sign that the weight of a feature must have, by its name or number; 0 is allowed. Solved by L-BFGS, whatever
        ``solver`` is.
    warm_start : bool, default=False
        Whether a second ``fit`` starts at the weights of the first.
    scale : {"auto", "none"}, default="auto"
        "auto" divides features by their standard deviation unless all of them lie in [-1, 1].
    folds : int, default=5
        Number of parts of the training queries used for model selection if there is no validation set.
    random_state : int or numpy.random.Generator, default=0
        Seed of the division into parts.
    n_jobs : int, default=None
        Number of threads; None uses all cores. The result does not depend on it.
    verbose : bool, default=False
        Whether to show a progress bar on a terminal.
    missing : {"error", "zero", "min"}, default="error"
        What ``fit`` and ``predict`` do with NaN in arrays: raise an error, replace it by 0, or by the smallest value
        of the feature within the query.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights on raw features.
    alpha_ : float
        The selected alpha.
    start_ : ndarray of shape (n_features,)
        w0 on raw features.
    history_ : AnnealingHistory
        One row per stage: sigma, objective, smoothed, training and validation measure, steps, evaluations.
    path_ : Table
        For every start and alpha the measure that it was judged by.

    Notes
    -----
    A step reads X once: rows are scored, the loss is taken, and the gradient is added while they are in cache. The
    objective is not convex. At w = 0 its gradient is 0, so that a start of zeros is an error if there is something to
    learn. If there are fewer queries than folds, every query is a part; where nothing can judge them, the largest alpha
    is taken.

    References
    ----------
    O. Chapelle, M. Wu (2010). Gradient descent optimization of smoothed information retrieval metrics.
    Information Retrieval 13, 216-235. doi:10.1007/s10791-009-9110-3. Algorithm 1.
    """

    name = "SmoothRank"
    takes_validation = True

    measure: Any = field(default="nDCG@50", kw_only=False)
    alpha: float | Sequence[float] | None = None
    start: Any = "ridge"
    sigmas: Sequence[float] | None = None
    smoothing: Literal["sigmoid", "indicator"] = "sigmoid"
    solver: Solver = "cg"
    steps: int = 50
    tolerance: float = 1e-06
    stop: Literal["last", "best"] = "last"
    sign: Mapping[Any, int] | None = None
    warm_start: bool = False

    @classmethod
    def examples(cls) -> Sequence[Self]:
        return (
            cls("nDCG@5", alpha=1.0, sigmas=(4.0, 0.25), steps=5),
            cls("AP", alpha=(0.1, 10.0), sigmas=(2.0, 0.5), steps=3, stop="best", solver="lbfgs", folds=2),
        )

    def _fit(self, queries: Queries, validation: Queries | None) -> None:
        if self.stop not in ("last", "best"):
            raise RankwiseError(f"stop is 'last' or 'best': found {self.stop!r}")
        given = [self.coef_] if self.warm_start and hasattr(self, "coef_") else as_starts(self.start)
        alphas = as_grid(self.alpha, ALPHAS, "alpha")
        tried = len(given) * len(alphas)
        parts = []
        if validation is None and (tried > 1 or self.stop == "best"):
            parts = parts_of(queries, self.folds, self.random_state)
        passes = tried * len(parts) + 1 if parts else tried
        stages = len(as_sigmas(self.sigmas) or SIGMAS)
        grid = np.tile(alphas, len(given))
        with progress("annealing", stages * passes, enabled=None if self.verbose else False) as bar:
            trials = self._trials(queries, given, alphas, bar)

            def keep() -> bool:
                if (found := trials.best_so_far()) is None:
                    return False
                self._take(*found, -1, trials, grid, np.full(tried, np.nan))
                return True

            with self._kept_on_ctrl_c(keep):
                if parts:
                    worth = mean_over_parts([self._judged_on(part, queries, trials) for part in parts])
                    best, place = self._choose(worth, alphas)
                    plan = trials.plans(queries, None)[best]
                    (run,) = trials.run([plan], queries, None)
                else:
                    plans = trials.plans(queries, validation)
                    runs = trials.run(plans, queries, validation)
                    worth = np.array([run.held for run in runs])
                    best, place = self._choose(worth, alphas)
                    plan, run = plans[best], runs[best]
        self._take(
            plan, run, place, trials, grid, worth[:, -1] if self.stop == "last" else np.fmax.reduce(worth, axis=1)
        )

    def _take(
        self, plan: AnnealingPlan, run: AnnealedRun, place: int, trials: AnnealingTrials, grid: Vector, judged: Vector
    ) -> None:
        """Hold one stage of one plan, and what was known of all plans when it was chosen."""
        self.alpha_ = plan.alpha
        self.start_ = plan.start.w * trials.factor
        self.history_ = run.history(trials.measure, trials.factor)
        self.coef_ = self.history_.coefs[place].copy()
        number = np.repeat(np.arange(len(trials.given)), len(trials.alphas))
        self.path_ = Table({"start": number, "alpha": grid, trials.measure.title: judged})

    def _trials(self, queries: Queries, given: list[Any], alphas: tuple[float, ...], bar: progress) -> AnnealingTrials:
        measure, bounds = self._measure(), as_bounds(self.sign, queries)
        alike: dict[str, Any] = {"scale": self.scale, "folds": self.folds, "random_state": self.random_state}
        alike["n_jobs"] = self.n_jobs
        kinds: Any = registered()
        ridge = kinds["RidgeRanker"](measure, alpha=RIDGE_ALPHAS, intercept="global", refit="train", **alike)
        named = {"ridge": ridge, "ranksvm": kinds["RankSVM"](measure, **alike)}
        loss = smoothed(measure, self.smoothing)
        factor, _ = scale_factors(queries, self.scale)
        return AnnealingTrials(
            given=given,
            alphas=alphas,
            begin=Beginnings(named=named, loss=loss, sigmas=as_sigmas(self.sigmas), bounds=bounds, n_jobs=self.n_jobs),
            measure=measure,
            factor=factor,
            descent={
                "solver": self.solver if bounds is None else "lbfgs",
                "steps": self.steps,
                "tolerance": self.tolerance,
                "bounds": bounds,
            },
            n_jobs=self.n_jobs,
            bar=bar,
        )

    @staticmethod
    def _judged_on(part: NDArray[np.int64], queries: Queries, trials: AnnealingTrials) -> list[Vector]:
        """The measure of every plan, stage by stage, on queries that neither it nor its start has seen."""
        train, held = held_out(queries, part)
        return [run.held for run in trials.run(trials.plans(train, None), train, held)]

    def _choose(self, worth: Vector, alphas: tuple[float, ...]) -> tuple[int, int]:
        """(plan, stage) to keep, by what each plan was worth at each stage; the strongest where nothing judges them."""
        last = worth.shape[1] - 1
        considered = worth[:, last:] if self.stop == "last" else worth
        if np.isnan(considered).all():
            return int(np.argmax(alphas)), last
        best, place = np.unravel_index(int(np.nanargmax(considered)), considered.shape)
        return int(best), last if self.stop == "last" else int(place)

    def _training_objective(self) -> TrainingObjective | None:
        if not self._measure().at_most_one:  # queries count by their ideal value there
            return None
        place = int(np.argmax((self.history_.coefs == self.coef_).all(axis=1)))
        kept = self.sigmas is not None and (self.stop == "last" or len(self.history_) == 1)
        loss: Any = smoothed(self._measure(), self.smoothing)
        return TrainingObjective(
            loss=replace(loss, sigma=float(self.history_["sigma"][place])), loss_fixed=None if kept else False
        )

    # ------------------------------------------------------------------------------------------- saving

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        arrays = {f"history.{name}": self.history_[name].astype(np.float64) for name in self.history_.columns}
        arrays |= {f"path.{number}": self.path_[name].astype(float) for number, name in enumerate(self.path_.columns)}
        return {"alpha": self.alpha_}, {
            "coef": self.coef_,
            "start": self.start_,
            "history.coefs": self.history_.coefs,
            **arrays,
        }

    def _restore(self, facts: Mapping[str, Any], store: Store) -> None:
        self.coef_ = read_coef(store, self.n_features_in_)
        self.start_ = store.array("start", np.float64, (self.n_features_in_,))
        self.alpha_ = float(facts["alpha"])
        columns = {name: store.array(f"history.{name}", np.float64, (None,)) for name in COLUMNS}
        for name in ("steps", "evaluations"):
            columns[name] = columns[name].astype(np.int64)
        coefs = store.array("history.coefs", np.float64, (len(columns["sigma"]), self.n_features_in_))
        self.history_ = AnnealingHistory(columns, self._measure(), coefs)
        start, alpha, judged = (store.array(f"path.{number}", np.float64, (None,)) for number in range(3))
        self.path_ = Table({"start": start.astype(np.int64), "alpha": alpha, self._measure().title: judged})


# ------------------------------------------------------------------------------------------------- where it starts


@dataclass(frozen=True, kw_only=True)
class Beginnings:
    """What turns the starts that users give into weights and widths.

    Attributes
    ----------
    named : mapping of str to LinearRanker
        Unfitted rankers that a start may name.
    loss : SmoothedMeasure
        The smoothed measure.
    sigmas : tuple of float or None
        The widths; None derives them from the scores of the start.
    bounds : Bounds or None
        Bounds on single weights.
    n_jobs : int or None
        Number of threads.
    """

    named: Mapping[str, LinearRanker]
    loss: SmoothedMeasure
    sigmas: tuple[float, ...] | None
    bounds: Bounds | None
    n_jobs: int | None

    def start(self, given: Any, queries: Queries, validation: Queries | None, factor: Vector) -> Start:
        """The start from a name (fitted on these queries), a fitted linear ranker, or weights on raw features."""
        unit: float | None = None
        if isinstance(given, str):
            if given not in self.named:
                raise RankwiseError(f"start is {_STARTS}: found {given!r}")
            unit = 1.0 if given == "ridge" else None  # a regression on gains has scores in units of gain
            given = self.named[given].fit(queries, validation=validation)
        raw = raw_weights(given, queries.n_features, "start", _STARTS)
        w = within(np.divide(raw, factor, out=np.zeros_like(raw), where=factor > 0), self.bounds)
        if not w.any() and _something_to_learn(queries):
            raise RankwiseError(
                "the start is 0 everywhere, where the gradient of a smoothed measure is 0: give another start"
            )
        if self.sigmas is not None:
            return Start(w, self.sigmas)
        if unit is None:
            unit = score_unit(queries, linear_scores(queries.X, w * factor, self.n_jobs))
        return Start(w, tuple(stage_sigmas(self.loss, unit)))


def as_starts(given: Any) -> list[Any]:
    """One start or several."""
    if not isinstance(given, list) or (given and all(isinstance(one, (int, float, np.number)) for one in given)):
        return [given]
    if not given:
        raise RankwiseError(f"start is {_STARTS}, or a list of such: found []")
    return given


def as_sigmas(given: Sequence[float] | None) -> tuple[float, ...] | None:
    """Positive, decreasing widths; None stays None."""
    if given is None:
        return None
    sigmas = as_numbers(given)
    if not sigmas or not all(0 < sigma < np.inf for sigma in sigmas) or tuple(sorted(sigmas, reverse=True)) != sigmas:
        raise RankwiseError(f"sigmas are positive numbers in decreasing order: found {given!r:.60}")
    return sigmas


def as_bounds(sign: Mapping[Any, int] | None, queries: Queries) -> Bounds | None:
    """Bounds on single weights from signs by the name or number of a feature."""
    if not sign:
        return None
    if not isinstance(sign, Mapping):
        raise RankwiseError(f"sign gives +1 or -1 by the name or number of a feature: found {sign!r:.60}")
    names = queries.feature_names
    bounds: Bounds = [(None, None)] * queries.n_features
    for feature, one in sign.items():
        place = names.index(feature) if names is not None and feature in names else feature
        if not isinstance(place, (int, np.integer)) or not 0 <= place < queries.n_features:
            raise DataError(f"sign names the feature {feature!r}, which is not among those of these queries")
        if one not in (1, -1):
            raise RankwiseError(f"the sign of feature {feature!r} is +1 or -1: found {one!r}")
        bounds[int(place)] = (0.0, None) if one > 0 else (None, 0.0)
    return bounds


def _something_to_learn(queries: Queries) -> bool:
    """Whether both labels and features vary within some query."""
    labels = queries.labels()
    for number in queries.counted.tolist():
        rows = queries.rows_of(number)
        if len(np.unique(labels[rows])) > 1 and (queries.X[rows] != queries.X[rows][:1]).any():
            return True
    return False


def stage_sigmas(loss: SmoothedMeasure, unit: float) -> list[float]:
    """The widths of the paper for scores in these units; that of a sigmoid is in units of scores, not squared."""
    squared = [sigma * unit**2 for sigma in SIGMAS]
    return [sigma**0.5 for sigma in squared] if getattr(loss, "form", None) == "sigmoid" else squared


def score_unit(queries: Queries, scores: Vector) -> float:
    """Units of these scores per unit of gain: 1 / slope of the regression of gains on scores, within queries.

    If scores do not increase with gains, the ratio of the standard deviations.
    """
    own, target = within_lists(queries, scores), within_lists(queries, gains(queries.labels(), "exp2"))
    variance, along = float(own @ own), float(own @ target)
    if variance == 0 or not float(target @ target):
        return 1.0
    if along <= 0:
        return float(np.sqrt(variance / (target @ target)))
    return variance / along


def within_lists(queries: Queries, values: Vector) -> Vector:
    """Values minus the mean of their query; 0 in queries of weight 0."""
    owner = queries.query_of_row
    count = np.maximum(np.bincount(owner, minlength=len(queries)), 1)
    centred = values - (np.bincount(owner, values, len(queries)) / count)[owner]
    return np.asarray(centred * (queries.query_weight[owner] > 0))
