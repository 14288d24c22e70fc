"""ListNet: the cross-entropy of two softmax distributions over a list, learned round by round or over all lists."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._errors import RankwiseError
from rankwise._kernels.rows import linear_scores
from rankwise._progress import progress
from rankwise._store import Store
from rankwise._tables import Table
from rankwise.data.queries import Queries
from rankwise.data.row_blocks import Scale, scale_factors
from rankwise.losses.listnet import ListNet as ListNetLoss
from rankwise.measures._base import Measure
from rankwise.rankers._base import LinearRanker
from rankwise.rankers._history import History, history_arrays, read_history
from rankwise.rankers._model_selection import held_out, mean_measure, mean_over_parts, parts_of
from rankwise.rankers._parameters import as_grid
from rankwise.rankers.certificate.objective import TrainingObjective
from rankwise.rankers.linear.ridge import read_coef
from rankwise.rankers.online.learner import OnlineLearner, theory_step
from rankwise.solvers.batch.descent import Function, descend
from rankwise.solvers.batch.objective import LossOverLists
from rankwise.solvers.online.config import OnlineConfig, Step

Vector = NDArray[np.float64]


# ------------------------------------------------------------------------------------------------------ listnet batch
# ListNet over all lists at once: min (lambda/2) norm(w)^2 + (1/n) sum_q weight_q KL_q(X_q w), by L-BFGS.
#
# KL_q is the cross-entropy less what it is at best; n is the sum of the weights. Every alpha lambda begins at 0, so
# that the weights of the one that is chosen are those of a fit with it alone.


ALPHAS = tuple(10.0**power for power in range(-6, 2))
COLUMNS: dict[str, type[np.generic]] = {
    "step": np.int64,
    "objective": np.float64,
    "gradient": np.float64,
    "train": np.float64,
    "validation": np.float64,
}


class BatchStep(NamedTuple):
    """The end of a step; ``held`` is the measure on the validation set where it was looked at on the way."""

    w: Vector
    objective: float
    gradient: float
    held: float


@dataclass(frozen=True)
class ListNetFit:
    """The steps of one alpha, the start at 0 the first of them; steps are only ever added."""

    alpha: float
    steps: list[BatchStep] = field(default_factory=list)

    @property
    def best(self) -> int:
        """The step to keep: the best on the validation set where it was looked at, else the last."""
        held = np.array([step.held for step in self.steps[1:]])
        return len(self.steps) - 1 if np.isnan(held).all() else 1 + int(np.nanargmax(held))

    @property
    def w(self) -> Vector:
        return self.steps[self.best].w


@dataclass(frozen=True, kw_only=True)
class Batch:
    """What all alphas share; ``factor`` puts the features on a common scale."""

    loss: ListNetLoss
    measure: Measure
    factor: Vector
    steps: int
    tolerance: float
    patience: int | None
    n_jobs: int | None

    def __post_init__(self) -> None:
        if not _whole(self.steps) or self.steps < 1:
            raise RankwiseError(f"steps is a whole number of 1 or more: found {self.steps!r}")
        if self.patience is not None and (not _whole(self.patience) or self.patience < 1):
            raise RankwiseError(f"patience is None or a whole number of 1 or more: found {self.patience!r}")
        if not isinstance(self.tolerance, (int, float)) or not 0 <= self.tolerance < math.inf:
            raise RankwiseError(f"tolerance is a number of 0 or more: found {self.tolerance!r}")

    def objective(self, queries: Queries, alpha: float) -> Function:
        """Value and gradient as functions of weights on scaled features."""
        lists = LossOverLists.of(self.loss, queries)
        total = math.fsum(queries.query_weight)
        share = 1 / total if total > 0 else 0.0

        def value_and_slope(w: Vector) -> tuple[float, Vector]:
            value, slope = lists(w * self.factor, n_jobs=self.n_jobs)
            return alpha / 2 * float(w @ w) + share * value, alpha * w + share * self.factor * slope

        return value_and_slope

    @np.errstate(over="ignore", invalid="ignore")  # a step too far is not taken, and nobody need hear of it
    def descend(self, run: ListNetFit, queries: Queries, held: Queries | None) -> None:
        """Add the steps of this alpha to the run; with ``patience``, until so many do not help on ``held``."""
        function, start = self.objective(queries, run.alpha), np.zeros(queries.n_features)
        watched = held if self.patience is not None else None

        def after(w: Vector, value: float, slope: Vector) -> bool:
            run.steps.append(BatchStep(w, value, float(np.linalg.norm(slope)), self.worth(watched, w)))
            return self.patience is not None and len(run.steps) - 1 - run.best >= self.patience

        value, slope = function(start)
        size = float(np.linalg.norm(slope))
        if not (math.isfinite(value) and math.isfinite(size)):
            raise RankwiseError("the features are too large to learn from: scale them, or use scale='auto'")
        run.steps.append(BatchStep(start, value, size, math.nan))
        descend(function, start, solver="lbfgs", steps=self.steps, tolerance=self.tolerance, callback=after)

    def worth(self, queries: Queries | None, w: Vector) -> float:
        """The mean measure of weights on scaled features; NaN where there are no lists."""
        if queries is None:
            return math.nan
        scores = linear_scores(queries.X, w * self.factor, self.n_jobs)
        return mean_measure(queries, scores, self.measure, self.n_jobs)

    def history(self, run: ListNetFit, train: Queries, held: Queries | None) -> History:
        """The run as a table, measured on both sets at every step."""
        columns = {
            "step": np.arange(len(run.steps)),
            "objective": [step.objective for step in run.steps],
            "gradient": [step.gradient for step in run.steps],
            "train": [self.worth(train, step.w) for step in run.steps],
            "validation": [self.worth(held, step.w) for step in run.steps],
        }
        return as_history(columns, self.measure)


class Learned(NamedTuple):
    """What a fit over all lists comes to."""

    coef: Vector
    alpha: float
    step: int
    path: Table
    history: History


@dataclass(frozen=True, kw_only=True)
class ListNetTrials:
    """Alphas tried on the same lists, judged on a validation set or by folds (``parts``), the best one kept.

    ``runs`` and ``by_folds`` are only ever added to: what they hold is whole at any moment.
    """

    batch: Batch
    alphas: tuple[float, ...]
    queries: Queries
    validation: Queries | None
    parts: list[NDArray[np.int64]]
    runs: list[ListNetFit] = field(default_factory=list)
    by_folds: list[Vector] = field(default_factory=list)

    @property
    def passes(self) -> int:
        """How many descents there will be."""
        return len(self.alphas) * (len(self.parts) or 1) + bool(self.parts)

    def run(self, bar: progress) -> None:
        """All descents: with a validation set every alpha on all lists, else the one that the folds choose."""
        for part in self.parts:
            self.by_folds.append(self._judged_on(part, bar))
        chosen = [self._best(self._judged())] if self.validation is None else range(len(self.alphas))
        for number in chosen:
            self.runs.append(ListNetFit(self.alphas[number]))
            self.batch.descend(self.runs[-1], self.queries, self.validation)
            bar.advance()

    @property
    def stepped(self) -> bool:
        """Whether a step on all lists has been finished."""
        return any(len(run.steps) > 1 for run in self.runs)

    def learned(self) -> Learned:
        """The best of the runs so far, of which the last may be unfinished."""
        runs = [run for run in self.runs if run.steps]
        judged = self._judged()
        best = runs[0] if self.validation is None else runs[self._best(judged[: len(runs)])]
        coef = best.w * self.batch.factor
        if not np.isfinite(coef).all():
            raise RankwiseError("the weights grew beyond all numbers: scale the features, or use scale='auto'")
        path = Table({"alpha": list(self.alphas), self.batch.measure.title: judged})
        history = self.batch.history(best, self.queries, self.validation)
        return Learned(coef, best.alpha, best.best, path, history)

    def _judged(self) -> Vector:
        """What every alpha is worth; NaN for those that nothing has judged yet."""
        if self.by_folds:
            return mean_over_parts(self.by_folds)
        judged = np.full(len(self.alphas), np.nan)
        for number, run in enumerate(self.runs if self.validation is not None else []):
            if run.steps:
                judged[number] = self.batch.worth(self.validation, run.w)
        return judged

    def _best(self, judged: Vector) -> int:
        """The first of the best; where nothing judges them, the strongest strays least."""
        unknown = np.isnan(judged).all()
        return int(np.argmax(self.alphas[: len(judged)]) if unknown else np.nanargmax(judged))

    def _judged_on(self, part: NDArray[np.int64], bar: progress) -> Vector:
        """What every alpha is worth on lists that were held out."""
        train, held = held_out(self.queries, part)
        worth = []
        for alpha in self.alphas:
            run = ListNetFit(alpha)
            self.batch.descend(run, train, None)
            worth.append(self.batch.worth(held, run.w))
            bar.advance()
        return np.array(worth)


def as_history(columns: Mapping[str, Any], measure: Measure) -> History:
    """The columns of a run as a table that draws the measure."""
    return History(columns, ("train", "validation"), f"{measure.title} along the descent")


def _whole(number: object) -> bool:
    return isinstance(number, (int, np.integer)) and not isinstance(number, bool)


@dataclass(eq=False, repr=False, kw_only=True)
class ListNet(OnlineLearner):
    r"""Scores whose softmax is close to the softmax of the labels, list by list.

    solver="sgd": w <- w - eta_t X' (softmax(X w) - softmax(labels)) on every round.
    solver="lbfgs": min over w of (alpha/2) norm(w)^2 + (1/n) sum_q weight_q KL(softmax(labels), softmax(X_q w)).

    Parameters
    ----------
    measure : what is accounted, by which the alpha is chosen, and what ``score`` reports; the loss does not look at
        it
    solver : "sgd", online rounds, also from streams by ``partial_fit``; "lbfgs", all lists at once
    target : softmax of the "labels" or of the "gains" 2^label - 1
    scale : "auto": for "lbfgs" features are divided by their standard deviation unless all of them lie in [-1, 1],
        and for "sgd" left alone, since rounds cannot look ahead; "none": left alone; "standard" and "radius" for
        "sgd", as for :class:`SLAMPerceptron`
    eta, step : for "sgd": size of a step, or "theory": max_norm / (2 R sqrt(n)); and "sqrt" (eta / sqrt(t)) or
        "constant", which "theory" is
    max_norm : the norm of the weights to compare with, for "theory"
    row_radius, horizon : R and n of "theory" in a stream; ``fit`` finds them itself
    averaging, epochs, shuffle : for "sgd", as for :class:`SLAMPerceptron`
    alpha : for "lbfgs", for features in the units that ``scale`` gives them; several, of which the best on the
        validation set (or by folds over queries, without one) is taken; None: 10^-6, ..., 10
    steps, tolerance : for "lbfgs", steps at most, and the relative improvement below which they end
    patience : for "lbfgs", end after so many steps that do not help on the validation set, and keep the step that was
        best there; None: go on to the minimum
    folds : how many parts of the queries choose a alpha where there is no validation set
    random_state, n_jobs, verbose, missing : as for :class:`SLAMPerceptron`

    Attributes
    ----------
    coef_ : weights on raw features
    ledger_ : the account of the rounds of "sgd"
    alpha_, step_ : of "lbfgs", the alpha that was taken and the step whose weights were
    path_ : of "lbfgs", for every alpha the measure by which it was judged
    history_ : of "lbfgs", objective, norm of its gradient, and measure on train and validation set at every step

    Notes
    -----
    A step of "lbfgs" is about one pass over X. Lists whose labels are all equal teach nothing, and count in n. After
    Ctrl-C the ranker holds the last step, or with a validation set the best of the alphas so far; what it held
    before, while folds are still choosing.
    """

    name = "ListNet"

    solver: Literal["sgd", "lbfgs"] = "sgd"
    target: str = "labels"
    scale: Literal["auto", "none", "standard", "radius"] = "auto"
    step: Step = "sqrt"
    max_norm: float | None = None
    row_radius: float | None = None
    horizon: int | None = None
    alpha: float | Sequence[float] | None = None
    steps: int = 500
    tolerance: float = 1e-08
    patience: int | None = None
    folds: int = 5

    @property
    def takes_validation(self) -> bool:  # type: ignore[override]
        """Whether ``fit`` makes choices by a second set: over all lists at once it does."""
        return self._is_batch()

    def _is_batch(self) -> bool:
        if self.solver not in ("sgd", "lbfgs"):
            raise RankwiseError(f"solver is 'sgd' or 'lbfgs': found {self.solver!r}")
        return self.solver == "lbfgs"

    def _fit(self, queries: Queries, validation: Queries | None) -> None:
        for learned in ("ledger_", "state_", "alpha_", "step_", "path_", "history_"):
            self.__dict__.pop(learned, None)  # what the other solver had learned
        if self._is_batch():
            self._fit_batch(queries, validation)
        else:
            super()._fit(queries, validation)

    def _remember_lists(self, train: Queries, validation: Queries | None) -> None:
        if self._is_batch():
            LinearRanker._remember_lists(self, train, validation)
        else:
            super()._remember_lists(train, validation)

    # ------------------------------------------------------------------------------------------- round by round

    def partial_fit(
        self, X: Any, y: ArrayLike | None = None, *, group: ArrayLike | None = None, qid: Any = None, **unknown: Any
    ) -> Self:
        """Go on with the run of "sgd"; see :meth:`SLAMPerceptron.partial_fit`."""
        if self._is_batch():
            raise RankwiseError("ListNet(solver='lbfgs') learns from all lists at once: streams are for solver='sgd'")
        return super().partial_fit(X, y, group=group, qid=qid, **unknown)

    def __getattr__(self, name: str) -> Any:
        if name in ("ledger_", "state_"):
            raise AttributeError(f"ListNet has {name} after rounds of solver='sgd', and has seen none")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _config(self, queries: Queries | None) -> OnlineConfig:
        if self.eta != "theory":
            return self._resumed(self.eta)
        online: Any = type(self)(**self.get_params() | {"scale": self._round_scale()})
        return self._resumed(theory_step(online, ListNetLoss(target=self.target), queries))

    def _resumed(self, eta: float) -> OnlineConfig:
        return OnlineConfig(
            loss=ListNetLoss(target=self.target),
            measure=self._measure(),
            update="always",
            eta=eta,
            step="constant" if self.eta == "theory" else self.step,
            max_norm=math.inf,
            averaging=self.averaging,
            scale=self._round_scale(),
        )

    def _round_scale(self) -> Any:
        return "none" if self.scale == "auto" else self.scale

    # ------------------------------------------------------------------------------------------- over all lists

    def _fit_batch(self, queries: Queries, validation: Queries | None) -> None:
        alphas = as_grid(self.alpha, ALPHAS, "alpha")
        if self.patience is not None and validation is None:
            raise RankwiseError("patience watches a validation set: give fit one, or leave patience out")
        choosing = validation is None and len(alphas) > 1
        batch = Batch(
            loss=ListNetLoss(target=self.target),
            measure=self._measure(),
            factor=scale_factors(queries, cast(Scale, self.scale))[0],
            steps=self.steps,
            tolerance=self.tolerance,
            patience=self.patience,
            n_jobs=self.n_jobs,
        )
        trials = ListNetTrials(
            batch=batch,
            alphas=alphas,
            queries=queries,
            validation=validation,
            parts=parts_of(queries, self.folds, self.random_state) if choosing else [],
        )

        def keep() -> bool:
            if trials.stepped:
                self._take_batch(trials.learned())
            return trials.stepped

        bar = progress("descending", trials.passes, enabled=None if self.verbose else False)
        with bar, self._kept_on_ctrl_c(keep):
            trials.run(bar)
            self._take_batch(trials.learned())

    def _take_batch(self, learned: Learned) -> None:
        self.coef_, self.alpha_, self.step_, self.path_, self.history_ = learned

    def _training_objective(self) -> TrainingObjective | None:
        if "history_" not in self.__dict__:
            return super()._training_objective()
        slope = float(self.history_["gradient"][self.step_])
        return TrainingObjective(
            loss=ListNetLoss(target=self.target),
            alpha=self.alpha_ or math.nan,
            alpha_fixed=False if len(self.path_) > 1 else None,
            scale=self.scale,
            objective=float(self.history_["objective"][self.step_]),
            # a strongly convex function is so near its minimum, at most, where its slope is
            gap=slope**2 / (2 * self.alpha_) if self.alpha_ else math.nan,
        )

    # ------------------------------------------------------------------------------------------- saving

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        if "history_" not in self.__dict__:
            return super()._state()
        facts = {"alpha": self.alpha_, "step": self.step_}
        judged = self.path_[self.path_.columns[1]]
        arrays = {"coef": self.coef_, "strengths": self.path_["alpha"], "judged": judged}  # the name of version 0.1
        return facts, arrays | history_arrays(self.history_)

    def _restore(self, facts: Mapping[str, Any], store: Store) -> None:
        if "alpha" not in facts:
            super()._restore(facts, store)
            return
        self.coef_ = read_coef(store, self.n_features_in_)
        self.alpha_, self.step_ = float(facts["alpha"]), int(facts["step"])
        self.history_ = as_history(read_history(store, COLUMNS), self._measure())
        if not 0 <= self.step_ < len(self.history_):
            raise RankwiseError(f"its weights are those of step {self.step_} of {len(self.history_)}")
        alphas, judged = (store.array(name, np.float64, (None,)) for name in ("strengths", "judged"))
        self.path_ = Table({"alpha": alphas, self._measure().title: judged})
