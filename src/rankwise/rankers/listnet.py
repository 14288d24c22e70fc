"""ListNet: the cross-entropy of two softmax distributions over a list, learned round by round or over all lists."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._errors import RankwiseError
from rankwise._progress import progress
from rankwise._store import Store
from rankwise._tables import Table
from rankwise.data import checks
from rankwise.data.queries import Queries
from rankwise.losses.listnet import ListNet as ListNetLoss
from rankwise.rankers._base import LinearRanker
from rankwise.rankers._choosing import parts_of
from rankwise.rankers._history import History, history_arrays, read_history
from rankwise.rankers._listnet_batch import COLUMNS, STRENGTHS, Batch, Learned, Trials, as_history
from rankwise.rankers._minimised import Minimised
from rankwise.rankers._online import OnlineLearner
from rankwise.rankers.online import theory_step
from rankwise.rankers.ridge import as_grid, read_coef
from rankwise.solvers.feature_scale import Scale, scale_factors
from rankwise.solvers.online import Averaging, Rules, Step

Vector = NDArray[np.float64]


class ListNet(OnlineLearner):
    r"""Scores whose softmax is close to the softmax of the labels, list by list.

    solver="sgd": w <- w - eta_t X' (softmax(X w) - softmax(labels)) on every round.
    solver="lbfgs": min over w of (strength/2) norm(w)^2 + (1/n) sum_q weight_q KL(softmax(labels), softmax(X_q w)).

    Parameters
    ----------
    measure : what is accounted, by which the strength is chosen, and what ``score`` reports; the loss does not look at
        it
    solver : "sgd", online rounds, also from streams by ``partial_fit``; "lbfgs", all lists at once
    target : softmax of the "labels" or of the "gains" 2^label - 1
    scale : "auto": for "lbfgs" features are divided by their standard deviation unless all of them lie in [-1, 1],
        and for "sgd" left alone, since rounds cannot look ahead; "none": left alone; "standard" and "radius" for
        "sgd", as for :class:`SLAMPerceptron`
    eta, step : for "sgd": size of a step, or "theory": ball / (2 R sqrt(n)); and "sqrt" (eta / sqrt(t)) or "constant",
        which "theory" is
    ball : the norm of the weights to compare with, for "theory"
    row_radius, horizon : R and n of "theory" in a stream; ``fit`` finds them itself
    averaging, epochs, shuffle : for "sgd", as for :class:`SLAMPerceptron`
    strength : for "lbfgs", for features in the units that ``scale`` gives them; several, of which the best on the
        validation set (or by folds over queries, without one) is taken; None: 10^-6, ..., 10
    steps, tolerance : for "lbfgs", steps at most, and the relative improvement below which they end
    patience : for "lbfgs", end after so many steps that do not help on the validation set, and keep the step that was
        best there; None: go on to the minimum
    folds : how many parts of the queries choose a strength where there is no validation set
    random_state, n_jobs, verbose, missing : as for :class:`SLAMPerceptron`

    Attributes
    ----------
    coef_ : weights on raw features
    ledger_ : the account of the rounds of "sgd"
    strength_, step_ : of "lbfgs", the strength that was taken and the step whose weights were
    path_ : of "lbfgs", for every strength the measure by which it was judged
    history_ : of "lbfgs", objective, norm of its gradient, and measure on train and validation set at every step

    Notes
    -----
    A step of "lbfgs" is about one pass over X. Lists whose labels are all equal teach nothing, and count in n. After
    Ctrl-C the ranker holds the last step, or with a validation set the best of the strengths so far; what it held
    before, while folds are still choosing.
    """

    name = "ListNet"

    strength_: float
    step_: int
    path_: Table
    history_: History

    def __init__(
        self,
        measure: Any = "nDCG@10",
        *,
        solver: Literal["sgd", "lbfgs"] = "sgd",
        target: str = "labels",
        scale: Literal["auto", "none", "standard", "radius"] = "auto",
        eta: Any = 1.0,
        step: Step = "sqrt",
        ball: float | None = None,
        row_radius: float | None = None,
        horizon: int | None = None,
        averaging: Averaging = "none",
        epochs: int = 1,
        shuffle: bool = False,
        strength: float | Sequence[float] | None = None,
        steps: int = 500,
        tolerance: float = 1e-8,
        patience: int | None = None,
        folds: int = 5,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
        missing: checks.Missing = "error",
    ) -> None:
        self.measure = measure
        self.solver = solver
        self.target = target
        self.scale = scale
        self.eta = eta
        self.step = step
        self.ball = ball
        self.row_radius = row_radius
        self.horizon = horizon
        self.averaging = averaging
        self.epochs = epochs
        self.shuffle = shuffle
        self.strength = strength
        self.steps = steps
        self.tolerance = tolerance
        self.patience = patience
        self.folds = folds
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.missing = missing

    @property
    def takes_validation(self) -> bool:  # type: ignore[override]
        """Whether ``fit`` makes choices by a second set: over all lists at once it does."""
        return self._is_batch()

    def _is_batch(self) -> bool:
        if self.solver not in ("sgd", "lbfgs"):
            raise RankwiseError(f"solver is 'sgd' or 'lbfgs': found {self.solver!r}")
        return self.solver == "lbfgs"

    def _fit(self, queries: Queries, validation: Queries | None) -> None:
        for learned in ("ledger_", "state_", "strength_", "step_", "path_", "history_"):
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

    def _rules(self, queries: Queries | None) -> Rules:
        if self.eta != "theory":
            return self._resumed(self.eta)
        online: Any = type(self)(**self.get_params() | {"scale": self._round_scale()})
        return self._resumed(theory_step(online, ListNetLoss(target=self.target), queries))

    def _resumed(self, eta: float) -> Rules:
        return Rules(
            loss=ListNetLoss(target=self.target),
            measure=self._measure(),
            update="always",
            eta=eta,
            step="constant" if self.eta == "theory" else self.step,
            ball=math.inf,
            averaging=self.averaging,
            scale=self._round_scale(),
        )

    def _round_scale(self) -> Any:
        return "none" if self.scale == "auto" else self.scale

    # ------------------------------------------------------------------------------------------- over all lists

    def _fit_batch(self, queries: Queries, validation: Queries | None) -> None:
        strengths = as_grid(self.strength, STRENGTHS, "strength")
        if self.patience is not None and validation is None:
            raise RankwiseError("patience watches a validation set: give fit one, or leave patience out")
        choosing = validation is None and len(strengths) > 1
        batch = Batch(
            loss=ListNetLoss(target=self.target),
            measure=self._measure(),
            factor=scale_factors(queries, cast(Scale, self.scale))[0],
            steps=self.steps,
            tolerance=self.tolerance,
            patience=self.patience,
            n_jobs=self.n_jobs,
        )
        trials = Trials(
            batch=batch,
            strengths=strengths,
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
        self.coef_, self.strength_, self.step_, self.path_, self.history_ = learned

    def _minimised(self) -> Minimised | None:
        if "history_" not in self.__dict__:
            return super()._minimised()
        slope = float(self.history_["gradient"][self.step_])
        return Minimised(
            loss=ListNetLoss(target=self.target),
            strength=self.strength_ or math.nan,
            strength_fixed=False if len(self.path_) > 1 else None,
            scale=self.scale,
            objective=float(self.history_["objective"][self.step_]),
            # a strongly convex function is so near its minimum, at most, where its slope is
            gap=slope**2 / (2 * self.strength_) if self.strength_ else math.nan,
        )

    # ------------------------------------------------------------------------------------------- saving

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        if "history_" not in self.__dict__:
            return super()._state()
        facts = {"strength": self.strength_, "step": self.step_}
        judged = self.path_[self.path_.columns[1]]
        arrays = {"coef": self.coef_, "strengths": self.path_["strength"], "judged": judged}
        return facts, arrays | history_arrays(self.history_)

    def _restore(self, facts: Mapping[str, Any], store: Store) -> None:
        if "strength" not in facts:
            super()._restore(facts, store)
            return
        self.coef_ = read_coef(store, self.n_features_in_)
        self.strength_, self.step_ = float(facts["strength"]), int(facts["step"])
        self.history_ = as_history(read_history(store, COLUMNS), self._measure())
        if not 0 <= self.step_ < len(self.history_):
            raise RankwiseError(f"its weights are those of step {self.step_} of {len(self.history_)}")
        strengths, judged = (store.array(name, np.float64, (None,)) for name in ("strengths", "judged"))
        self.path_ = Table({"strength": strengths, self._measure().title: judged})
