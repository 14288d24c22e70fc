"""ListNet: the cross-entropy of two softmax distributions over a query's documents, online or over all queries.

:class:`ListNet` is the ranker. Its solver "sgd" is an online learner, with the rounds, the ledger and the streams of
:class:`~rankwise.rankers.online.learner.LinearOnlineLearner`. Its solver "lbfgs" minimizes a regularized mean over all
queries; :class:`ListNetRun` holds the descent for one alpha. Every descent begins at 0, so the weights for the
selected alpha are those of a fit with this alpha alone.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from rankwise._arrays import Array, Vector
from rankwise._parameters import NonNegativeFloat, PositiveFloat, PositiveInt
from rankwise._store import Store
from rankwise._tables import Table
from rankwise.errors import RankwiseError
from rankwise.losses.compute import LossJob, LossOverLists
from rankwise.losses.listnet import ListNet as ListNetLoss
from rankwise.queries.chunks import Scale, scale_factors
from rankwise.queries.queries import Queries
from rankwise.queries.source import QuerySource
from rankwise.rankers._history import History, history_arrays, read_history
from rankwise.rankers._model_selection import (
    Alphas,
    Folds,
    as_grid,
    best_alpha,
    mean_over_folds,
    measure_of_weights,
    measures_of_weights,
    parts_of,
)
from rankwise.rankers.certificate.objective import TrainingObjective
from rankwise.rankers.online.learner import LinearOnlineLearner, theory_step
from rankwise.solvers.batch.descent import Function, descend
from rankwise.solvers.batch.risk import mean_share
from rankwise.solvers.online.config import OnlineConfig, Step

ALPHAS = tuple(10.0**power for power in range(-6, 2))
# Evaluations of one descent on data of a few hundred features, for an estimate of what a fit will cost.
_USUAL_STEPS = 60
COLUMNS: dict[str, type[np.generic]] = {
    "step": np.int64,
    **dict.fromkeys(("objective", "gradient", "train", "validation"), np.float64),
}


@dataclass(eq=False, repr=False, kw_only=True)
class ListNet(LinearOnlineLearner):
    r"""Scores whose softmax over the documents of a query is close to the softmax of their labels.

    solver="sgd": w <- w - eta_t X' (softmax(X w) - softmax(labels)) in every round.
    solver="lbfgs": min over w of (alpha/2) norm(w)^2 + (1/n) sum_q weight_q KL(softmax(labels), softmax(X_q w)), with n
    the sum of the weights and KL the cross-entropy less its smallest value.

    Parameters
    ----------
    measure : str or Measure, default="nDCG@10"
        The measure that the ledger keeps account of, that is used for model selection, and that ``score`` reports; the
        loss does not depend on it.
    solver : {"sgd", "lbfgs"}, default="sgd"
        "sgd" runs online rounds, also from streams by ``partial_fit``; "lbfgs" learns from all queries at once.
    target : {"labels", "gains"}, default="labels"
        Whether the target is the softmax of the labels or of the gains 2^label - 1.
    scale : {"auto", "none", "standard", "radius"}, default="auto"
        "auto" divides features by their standard deviation unless all of them lie in [-1, 1], for "lbfgs"; for "sgd" it
        leaves them alone, because rounds cannot look ahead. "none" leaves them alone. "standard" and "radius" are for
        "sgd", as for :class:`SLAMPerceptron`.
    eta : float or "theory", default=1.0
        For "sgd", the size of a step; "theory" is max_norm / (2 R sqrt(n)).
    step : {"sqrt", "constant"}, default="sqrt"
        For "sgd", whether the step of round t is eta / sqrt(t) or eta; with ``eta="theory"`` it is constant.
    max_norm : float, default=None
        For ``eta="theory"``, the norm of the weights to compare with.
    row_radius : float, default=None
        R of ``eta="theory"``, needed in a stream; ``fit`` finds it.
    horizon : int, default=None
        n of ``eta="theory"``, needed in a stream; ``fit`` finds it.
    averaging : {"none", "uniform", "suffix"}, default="none"
        For "sgd", whether ``coef_`` are the last weights, or their mean over all rounds or over the later ones.
    epochs : int, default=1
        For "sgd", the number of passes over the queries in ``fit``.
    shuffle : bool, default=False
        For "sgd", whether each pass has a random order of its own.
    alpha : float or sequence of float, default=None
        For "lbfgs", the penalty, for features in the units of ``scale``. Of several the best one on the validation set
        is taken (without one, by folds over the training queries); None tries 10^-6, ..., 10.
    steps : int, default=500
        For "lbfgs", the largest number of steps.
    tolerance : float, default=1e-8
        For "lbfgs", the relative improvement below which the descent ends.
    patience : int, default=None
        For "lbfgs", end after so many steps that do not improve the measure on the validation set, and keep the step
        that was best there; None goes on to the minimum.
    folds : int, default=5
        For "lbfgs", the number of parts of the training queries that select alpha if there is no validation set.
    random_state : int or numpy.random.Generator, default=0
        Seed of the shuffling, or of the division into parts.
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
    ledger_ : Ledger
        Of "sgd": the account of the rounds.
    alpha_ : float
        Of "lbfgs": the alpha that was selected.
    step_ : int
        Of "lbfgs": the step whose weights are kept.
    path_ : Table
        Of "lbfgs": for every alpha the measure that it was judged by.
    history_ : History
        Of "lbfgs": one row per step: step, objective, gradient (its norm), and the measure on training and validation
        queries.

    Notes
    -----
    A step of "lbfgs" costs about one pass over X. Queries whose labels are all equal teach nothing, and count in n.
    Where nothing can judge them, the largest alpha is taken. After Ctrl-C the ranker holds the last step, or with a
    validation set the best of the alphas so far; while folds select alpha, it holds what it held before.

    References
    ----------
    Z. Cao, T. Qin, T.-Y. Liu, M.-F. Tsai, H. Li (2007). Learning to rank: from pairwise approach to listwise
    approach. ICML. doi:10.1145/1273496.1273513
    """

    name = "ListNet"
    _reason_no_document_weights = "the ledger of solver='sgd' counts unweighted losses; solver='lbfgs' takes them"

    solver: Literal["sgd", "lbfgs"] = "sgd"
    target: Literal["labels", "gains"] = "labels"
    scale: Literal["auto", "none", "standard", "radius"] = "auto"  # type: ignore[assignment]
    step: Step = "sqrt"
    max_norm: PositiveFloat | None = None
    row_radius: PositiveFloat | None = None
    horizon: PositiveInt | None = None
    alpha: Alphas = None
    steps: PositiveInt = 500
    tolerance: NonNegativeFloat = 1e-08
    patience: PositiveInt | None = None
    folds: Folds = 5

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self._is_batch() and self.scale not in ("auto", "none"):
            raise self._wrong("scale", "'auto' or 'none' for solver='lbfgs'")

    @property
    def takes_validation(self) -> bool:  # type: ignore[override]
        """Whether ``fit`` uses a validation set: only the solver "lbfgs" does."""
        return self._is_batch()

    @property
    def takes_document_weights(self) -> bool:  # type: ignore[override]
        """Whether ``fit`` uses document weights: only the solver "lbfgs" does."""
        return self._is_batch()

    def _is_batch(self) -> bool:
        return self.solver == "lbfgs"

    def _fit(self, queries: Queries, validation: Queries | None) -> None:
        for learned in ("ledger_", "state_", "alpha_", "step_", "path_", "history_"):
            self.__dict__.pop(learned, None)  # what the other solver had learned
        if self._is_batch():
            self._fit_batch(queries, validation)
        else:
            super()._fit(queries, validation)

    @property
    def _records_rounds(self) -> bool:  # type: ignore[override]
        return not self._is_batch()

    # ------------------------------------------------------------------------------------------- online rounds

    def partial_fit(
        self, X: Any, y: ArrayLike | None = None, *, group: ArrayLike | None = None, qid: Any = None, **unknown: Any
    ) -> Self:
        """Continue the run of "sgd"; see :meth:`SLAMPerceptron.partial_fit`.

        Parameters
        ----------
        X : Query, Queries, array of shape (n_documents, n_features) or iterator
            The next query or queries.
        y : array-like of shape (n_documents,), default=None
            The labels, if X is an array.
        group : array-like of int, default=None
            The sizes of consecutive queries, if X is an array of several.
        qid : array-like, default=None
            The query of every row, if X is an array of several.
        **unknown : Any
            Not accepted; other names raise a clear error.

        Returns
        -------
        ListNet
            The ranker itself.
        """
        if self._is_batch():
            raise RankwiseError("ListNet(solver='lbfgs') learns from all queries at once; streams require solver='sgd'")
        return super().partial_fit(X, y, group=group, qid=qid, **unknown)

    def __getattr__(self, name: str) -> Any:
        if name in ("ledger_", "state_"):
            raise AttributeError(f"ListNet has {name} only after rounds of solver='sgd'")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _loss(self) -> ListNetLoss:
        return ListNetLoss(target=self.target)

    def _theory_step(self, queries: Queries | None) -> float:
        # theory_step takes a scale that rounds know, and "auto" is none
        online: Any = type(self)(**self.get_params() | {"scale": self._round_scale()})
        return theory_step(online, self._loss(), queries)

    def _resumed(self, eta: float) -> OnlineConfig:
        return OnlineConfig(
            loss=self._loss(),
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

    # ------------------------------------------------------------------------------------------- all queries at once

    def _fit_batch(self, queries: Queries, validation: Queries | None) -> None:
        alphas = as_grid(self.alpha, ALPHAS)
        if self.patience is not None and validation is None:
            raise RankwiseError("patience counts steps on a validation set: pass validation= to fit, or patience=None")
        factor, _ = scale_factors(queries, cast(Scale, self.scale))
        selecting = validation is None and len(alphas) > 1
        parts = parts_of(queries, self.folds, self.random_state) if selecting else []
        judged = np.full(len(alphas), np.nan)
        runs: list[ListNetRun] = []

        def judge(train: Queries, held: Queries) -> list[float]:
            worth = []
            for alpha in alphas:
                run = ListNetRun(alpha, factor)
                self._descend(run, train, None)
                worth.append(self._worth(held, run.coef))
                bar.advance()
            return worth

        def keep() -> None:
            """Set the best run so far, of which the last may be unfinished."""
            self._take_batch([run for run in runs if run.steps], alphas, judged, queries, validation)

        descents = len(alphas) * (len(parts) or 1) + bool(parts)
        bar = self._progress("descending", descents)
        with bar, self._keep_on_interrupt(keep, finished=lambda: any(len(run.steps) > 1 for run in runs)):
            if parts:
                judged = mean_over_folds(queries, parts, judge)
            # without a validation set one alpha is left: the one that the folds selected, or the largest
            for alpha in alphas if validation is not None else [alphas[best_alpha(alphas, judged)]]:
                runs.append(ListNetRun(alpha, factor))
                self._descend(runs[-1], queries, validation)
                bar.advance()
            self._take_batch(runs, alphas, judged, queries, validation)

    def _expected_passes(self, queries: QuerySource) -> Any:
        if not self._is_batch():
            return super()._expected_passes(queries)
        loss, alphas = self._loss(), as_grid(self.alpha, ALPHAS)
        descents = len(alphas) * self.folds + 1 if len(alphas) > 1 else 1
        usual = descents * min(self.steps, _USUAL_STEPS)
        arguments = (np.zeros(queries.n_features), loss)
        return LossJob(loss, None), arguments, 3 + usual, 3 + 20 * descents * self.steps

    def _objective(self, queries: Queries, alpha: float, factor: Vector) -> Function:
        """Value and gradient as a function of weights on features times ``factor``."""
        lists, share = LossOverLists.of(self._loss(), queries), mean_share(queries)

        def value_and_slope(w: Vector) -> tuple[float, Vector]:
            value, slope = lists(w * factor, n_jobs=self.n_jobs)
            return alpha / 2 * float(w @ w) + share * value, alpha * w + share * factor * slope

        return value_and_slope

    @np.errstate(over="ignore", invalid="ignore")  # a step that is too long overflows, and is not taken
    def _descend(self, run: "ListNetRun", queries: Queries, held: Queries | None) -> None:
        """Add the steps for one alpha to the run; with ``patience``, ``held`` may end it early."""
        function, start = self._objective(queries, run.alpha, run.factor), np.zeros(queries.n_features)
        watched = held if self.patience is not None else None

        def after(w: Vector, value: float, slope: Vector) -> bool:
            worth = self._worth(watched, w * run.factor)
            run.steps.append(BatchStep(w, value, float(np.linalg.norm(slope)), worth))
            return self.patience is not None and len(run.steps) - 1 - run.best >= self.patience

        value, slope = function(start)
        size = float(np.linalg.norm(slope))
        if not (math.isfinite(value) and math.isfinite(size)):
            raise RankwiseError("the features are too large to learn from: scale them, or pass scale='auto'")
        run.steps.append(BatchStep(start, value, size, math.nan))
        descend(function, start, solver="lbfgs", steps=self.steps, tolerance=self.tolerance, callback=after)

    def _worth(self, queries: Queries | None, coef: Vector) -> float:
        return measure_of_weights(queries, coef, self._measure(), self.n_jobs)

    def _take_batch(
        self,
        runs: "Sequence[ListNetRun]",
        alphas: Sequence[float],
        judged: Vector,
        queries: Queries,
        validation: Queries | None,
    ) -> None:
        """Set the best of the runs: the one that folds selected, or the best on the validation set."""
        best = runs[0]
        if validation is not None:
            judged = np.full(len(alphas), np.nan)
            judged[: len(runs)] = [self._worth(validation, run.coef) for run in runs]
            best = runs[best_alpha(alphas[: len(runs)], judged[: len(runs)])]
        if not np.isfinite(best.coef).all():
            raise RankwiseError("the weights overflowed: scale the features, or pass scale='auto'")
        self.coef_, self.alpha_, self.step_ = best.coef, best.alpha, best.best
        self.path_ = Table({"alpha": list(alphas), self._measure().title: judged})
        coefs = [step.w * best.factor for step in best.steps]
        self.history_ = self._as_history(
            {
                "step": np.arange(len(best.steps)),
                "objective": [step.objective for step in best.steps],
                "gradient": [step.gradient for step in best.steps],
                "train": measures_of_weights(queries, coefs, self._measure(), self.n_jobs),
                "validation": measures_of_weights(validation, coefs, self._measure(), self.n_jobs),
            }
        )

    def _as_history(self, columns: Mapping[str, Any]) -> History:
        return History(columns, ("train", "validation"), f"{self._measure().title} along the descent")

    def _training_objective(self) -> TrainingObjective | None:
        # the fitted state tells the solver, because set_params may have changed the parameter since
        if "history_" not in self.__dict__:
            return super()._training_objective()
        slope = float(self.history_["gradient"][self.step_])
        return TrainingObjective(
            loss=self._loss(),
            alpha=self.alpha_ or math.nan,
            alpha_fixed=False if len(self.path_) > 1 else None,
            scale=self.scale,
            objective=float(self.history_["objective"][self.step_]),
            # the slope of a strongly convex function bounds its distance to the minimum
            gap=slope**2 / (2 * self.alpha_) if self.alpha_ else math.nan,
        )

    # ------------------------------------------------------------------------------------------- saving

    def _state(self) -> tuple[dict[str, Any], dict[str, Array]]:
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
        self.coef_ = self._read_coef(store)
        self.alpha_, self.step_ = float(facts["alpha"]), int(facts["step"])
        self.history_ = self._as_history(read_history(store, COLUMNS))
        if not 0 <= self.step_ < len(self.history_):
            raise RankwiseError(f"its weights are those of step {self.step_} of {len(self.history_)}")
        alphas, judged = (store.array(name, np.float64, (None,)) for name in ("strengths", "judged"))
        self.path_ = Table({"alpha": alphas, self._measure().title: judged})


class BatchStep(NamedTuple):
    """The end of a step; ``held`` is the measure on the validation set if ``patience`` watches it, else NaN."""

    w: Vector
    objective: float
    gradient: float
    held: float


@dataclass(frozen=True)
class ListNetRun:
    """The descent for one alpha, on features times ``factor``: its steps, the start at 0 first.

    Steps are only added, so those that were finished are complete after Ctrl-C.
    """

    alpha: float
    factor: Vector
    steps: list[BatchStep] = field(default_factory=list)

    @property
    def best(self) -> int:
        """The step to keep: the best on the validation set if it was watched, else the last."""
        held = np.array([step.held for step in self.steps[1:]])
        return len(self.steps) - 1 if np.isnan(held).all() else 1 + int(np.nanargmax(held))

    @property
    def coef(self) -> Vector:
        """The weights of the step to keep, on raw features."""
        return self.steps[self.best].w * self.factor
