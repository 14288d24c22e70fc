"""SmoothRank: linear weights that maximize a smoothed measure, annealed toward the measure itself.

Two protocols share the class. ``"committee"`` anneals from a :class:`~rankwise.RidgeCommittee` in whitened coordinates
(:mod:`rankwise.rankers.smooth.refinement`). ``"paper"`` is Algorithm 1 of the paper, from every start with every
penalty (:mod:`rankwise.rankers.smooth.annealing`). Both take any smoothed loss of the package.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np

from rankwise._arrays import Array, Numbers, Vector
from rankwise._parameters import Check, NonNegativeFloat, PositiveFloat, PositiveInt
from rankwise._progress import progress
from rankwise._store import Store
from rankwise.losses._base import SmoothedMeasure, smoothed
from rankwise.losses._base import registered as registered_losses
from rankwise.losses.compute import LossJob
from rankwise.measures._base import Measure
from rankwise.queries.chunks import scale_factors
from rankwise.queries.queries import Queries
from rankwise.queries.source import QuerySource
from rankwise.rankers._base import AnyMeasure, LinearRanker, registered
from rankwise.rankers._model_selection import (
    MANY,
    Alphas,
    PooledSelection,
    Refit,
    SelectionParameters,
    Trial,
    as_grid,
    hold_out,
    mean_of_known,
    mean_over_held_out,
    parts_of,
    path_arrays,
    read_path,
)
from rankwise.rankers._parameters import Signs, is_vector, raw_weights
from rankwise.rankers.certificate.objective import TrainingObjective
from rankwise.rankers.linear.committee import CommitteeProblems
from rankwise.rankers.smooth.annealing import (
    BOUND,
    COLUMNS,
    SIGMAS,
    AnnealedRun,
    AnnealingHistory,
    AnnealingPlan,
    AnnealingTrials,
    as_bounds,
    as_starts,
    refuse_zero_start,
)
from rankwise.rankers.smooth.refinement import Choice, Refined, Refiner
from rankwise.rankers.smooth.stopping import StageBound
from rankwise.solvers.batch.descent import Solver

# alpha norm(u)^2 beside a mean over queries, for scores of deviation 1
REFINEMENT_ALPHAS = (1.0, 0.3, 0.1, 0.03, 0.01)
# in units of the variance of the start's scores
REFINEMENT_SIGMAS = (4.0, 1.0, 0.25, 0.0625)
# the paper's: lambda norm(w - w0)^2 beside a SUM over queries, and that of the ridge regression that it starts from
ALPHAS = tuple(10.0**power for power in range(-6, 4))
# evaluations of one stage, for an estimate of what a fit will cost
_USUAL_STEPS = 12
RIDGE_ALPHAS = tuple(10.0**power for power in range(-2, 6))


def _is_start(value: Any) -> bool:
    starts = as_starts(value)
    return bool(starts) and all(
        start in ("ridge", "ranksvm") if isinstance(start, str) else is_vector(start) for start in starts
    )


def _as_loss(value: Any) -> SmoothedMeasure | None:
    """A smoothed loss from itself or from its name; None if it is neither."""
    kind = registered_losses().get(value) if isinstance(value, str) else None
    if kind is not None and issubclass(kind, SmoothedMeasure):
        try:
            return kind()
        except TypeError:  # P@k has no usual cutoff
            return None
    return value if isinstance(value, SmoothedMeasure) else None


AnySmoothed = Annotated[
    Any,
    Check(
        "a smoothed loss of rankwise.losses or its name, such as 'SoftRank'", lambda value: _as_loss(value) is not None
    ),
]
Start = Annotated[Any, Check("'ridge', 'ranksvm', a fitted linear ranker, a vector, a list of such", _is_start)]


@dataclass(eq=False, repr=False, kw_only=True)
class SmoothRank(SelectionParameters, LinearRanker):
    r"""A linear ranker that maximizes a smoothed measure.

    min over w of alpha norm(w - w0)^2 - mean_q A_q(X_q w; sigma), sigma from large to small, A a smoothed measure.

    Parameters
    ----------
    measure : str or Measure, default="nDCG@50"
        "nDCG@k", "nDCG", "DCG@k", "AP", "P@k" or "RR": the measure that is smoothed, and used for model selection.
        Any measure if ``loss`` is given.
    protocol : {"committee", "paper"}, default="committee"
        "committee" starts at a :class:`~rankwise.RidgeCommittee` and measures the distance from it by how much scores
        change: norm(u)^2 with w = w0 + B u, where B whitens the features within queries. Folds over queries select
        alpha. "paper" is Algorithm 1 of the reference, with a sum over queries in place of the mean.
    loss : SmoothedMeasure or str, default=None
        The smoothed loss to anneal, or its name, such as "SoftRank" or "SoftRankNDCG" (equation (5) of the reference);
        its own sigma is not used. None smooths ``measure``. With a loss, ``measure`` may be any measure, and is used
        for model selection alone.
    alpha : float or sequence of float, default=None
        The penalty, of which the best one is taken. "committee": for scores of deviation 1; None tries 1, 0.3, 0.1,
        0.03 and 0.01. "paper": for features in the units of ``scale``; None tries 10^-6, ..., 10^3.
    start : str, ranker, array of shape (n_features,) or list of these, default=None
        w0: a fitted linear ranker or weights on raw features. None is the committee, or "ridge" in the paper's
        protocol, which also takes "ridge" (:class:`~rankwise.RidgeRanker` with a global intercept), "ranksvm"
        (:class:`~rankwise.RankSVM`), and a list of starts, of which the best is taken.
    sigmas : sequence of float, default=None
        Widths of the smoothing, decreasing. "committee": in units of the variance of the start's scores within queries;
        None is 4, 1, 1/4, 1/16. "paper": in the units of the loss; None is 2^6, 2^5, ..., 2^-6 for a regression
        on gains, multiplied accordingly for a start whose scores have another scale. Losses whose sigma is in units of
        scores, not squared, take the square roots, in the paper's protocol of the usual widths alone.
    smoothing : {"sigmoid", "indicator"}, default="sigmoid"
        The form of :class:`~rankwise.losses.SmoothAP`, for AP.
    solver : {"cg", "lbfgs"}, default=None
        SciPy's Polak-Ribiere conjugate gradients, or L-BFGS. None is "lbfgs", and "cg" in the paper's protocol.
    steps : int, default=50
        The largest number of steps per stage.
    tolerance : float, default=None
        The relative improvement below which a stage ends. None is 1e-3, and 1e-6 in the paper's protocol.
    stop : {"last", "best", "bound"}, default="last"
        Which weights to keep: those of the smallest sigma; in the paper's protocol those of the sigma that is best on
        the validation set; or those of the sigma whose smoothed loss has the smallest bound on future queries, for the
        radius and the length of the training queries. Of equal bounds the largest sigma is kept, which is the first one
        where all bounds are vacuous. ``history_`` then has a column "bound", and a certificate counts all stages.
    sign : mapping of str or int to {1, -1}, default=None
        The sign that the weight of a feature must have, by its name or number; 0 is allowed. It needs the paper's
        protocol, and is solved by L-BFGS, whatever ``solver`` is.
    warm_start : bool, default=False
        Whether a second ``fit`` starts at the weights of the first.
    refit : {"all", "train"}, default="all"
        What a validation set is for. "all": it joins the training queries, folds over all of them select, and all are
        learned from. "train": it selects and is not learned from, as always in the paper's protocol.
    scale : {"auto", "none"}, default="auto"
        "committee": as in :class:`~rankwise.RidgeCommittee`. "paper": "auto" divides features by their standard
        deviation unless all of them lie in [-1, 1].
    folds : int, default=5
        Number of parts of the queries used for model selection. Of more than 2,000 queries the committee's protocol
        holds out a single part, of at most 2,000 queries.
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
        The selected alpha; NaN if the weights are those of the start: after Ctrl-C during model selection, where
        features or labels do not vary within queries, and in files of versions that left the start as it was.
    start_ : ndarray of shape (n_features,)
        w0 on raw features.
    history_ : AnnealingHistory
        One row per stage: sigma, objective, smoothed, training and validation measure, steps, evaluations. It has no
        rows if ``alpha_`` is NaN.
    path_ : Table
        For every alpha the measure that it was judged by. "committee": with the gain over the start and its standard
        error; the first row is the start. "paper": for every start and alpha.

    Notes
    -----
    A step reads X once: rows are scored, the loss is taken, and the gradient is added while they are in cache. The
    objective is not convex. At w = 0 its gradient is 0, so a start of zeros is an error if there is something to
    learn. If there are fewer queries than folds, every query is a part. Where nothing can judge, the largest alpha is
    taken.

    The result is annealed weights, whether or not they are better than the start: ``path_`` has the gain over the start
    on held-out queries with its standard error. :class:`~rankwise.RidgeCommittee` is the start itself.

    References
    ----------
    O. Chapelle, M. Wu (2010). Gradient descent optimization of smoothed information retrieval metrics.
    Information Retrieval 13, 216-235. doi:10.1007/s10791-009-9110-3. Algorithm 1, equations (5), (7) and (9).

    M. Taylor, J. Guiver, S. Robertson, T. Minka (2008). SoftRank: optimizing non-smooth rank metrics. WSDM.
    doi:10.1145/1341531.1341544. The loss of ``loss="SoftRank"``.

    Examples
    --------
    >>> import rankwise as rw
    >>> queries = rw.make_lists(40, documents=6, features=4, random_state=1)
    >>> model = SmoothRank("nDCG@5", loss="SoftRankNDCG", alpha=(1.0, 0.1)).fit(queries)
    >>> model.history_["sigma"].tolist()
    [2.0, 1.0, 0.5, 0.25]
    """

    name = "SmoothRank"
    _reason_not_on_parts = "protocol='paper' needs all scores in memory, protocol='committee' does not"
    takes_validation = True
    before: ClassVar[Mapping[str, Any]] = {"protocol": "paper", "refit": "train"}

    measure: AnyMeasure = field(default="nDCG@50", kw_only=False)
    protocol: Literal["committee", "paper"] = "committee"
    alpha: Alphas = None
    start: Start | None = None
    sigmas: Sequence[PositiveFloat] | None = None
    loss: AnySmoothed | None = None
    smoothing: Literal["sigmoid", "indicator"] = "sigmoid"
    solver: Solver | None = None
    steps: PositiveInt = 50
    tolerance: NonNegativeFloat | None = None
    stop: Literal["last", "best", "bound"] = "last"
    sign: Signs | None = None
    warm_start: bool = False
    refit: Refit = "all"

    @classmethod
    def examples(cls) -> Sequence[Self]:
        paper: dict[str, Any] = {"protocol": "paper", "stop": "best", "solver": "lbfgs", "folds": 2}
        return (
            cls("nDCG@5", alpha=1.0, sigmas=(4.0, 0.25), steps=5),
            cls("AP", alpha=(0.1, 10.0), sigmas=(2.0, 0.5), steps=3, **paper),
            cls("nDCG@5", alpha=1.0, sigmas=(4.0, 0.25), steps=5, protocol="paper"),
            cls("ERR@5", loss="SoftRankNDCG", alpha=1.0, sigmas=(4.0, 0.25), steps=5),
            cls("nDCG@5", alpha=1.0, sigmas=(4.0, 0.25), steps=5, stop="bound"),
        )

    @property
    def runs_on_parts(self) -> bool:  # type: ignore[override]
        """Whether ``fit`` takes parts: in the committee's protocol."""
        return self.protocol == "committee"

    @property
    def history_(self) -> AnnealingHistory:
        """The stages, made of the columns that ``fit`` keeps."""
        return AnnealingHistory(*self._annealed_)

    def _expected_passes(self, queries: QuerySource) -> Any:
        loss, sigmas = self._smoothed(), self._widths()
        alphas = as_grid(self.alpha, REFINEMENT_ALPHAS)
        trials = 1 if len(queries.counted) > MANY else self.folds
        stages = (trials + 1) * len(set(alphas)) * len(sigmas)
        arguments = (np.zeros(queries.n_features), loss.at_sigma(sigmas[0]))
        usual = stages * min(self.steps, _USUAL_STEPS)
        return LossJob(loss, None), arguments, 5 + usual, 5 + 20 * stages * self.steps

    @property
    def _reason_not_linear_in_labels(self) -> str | None:  # type: ignore[override]
        if self.loss is not None and not self._smoothed().linear_in_labels:
            return f"{self._smoothed()!r} is not linear in the labels"
        if not self._measure().linear_in_labels:
            return f"{self._measure().title} is not linear in the labels"
        if self.stop == "bound":
            return "the bound that stops the annealing is not linear in the labels"
        if self.start is None or isinstance(self.start, str):
            return "its default start is not linear in the labels; give start=, a fitted linear ranker or weights"
        return None

    @property
    def learns_from_validation(self) -> bool:  # type: ignore[override]
        """Whether the final fit learns from the validation set: with ``refit="all"``, in the committee's protocol."""
        return self.refit == "all" and self.protocol == "committee"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._smoothed()  # raises for a measure without such a form
        if self.sigmas is not None and sorted(self.sigmas, reverse=True) != list(self.sigmas):
            raise self._wrong("sigmas", "a decreasing sequence")
        weighed = self._weighed_by()
        if self.stop == "bound" and weighed is not None and not weighed.at_most_one:
            raise self._wrong("stop", f"'last' or 'best' for {weighed.title}, whose loss has no bound")
        if self.protocol == "paper":
            return
        if self.stop == "best":
            raise self._wrong("stop", "'last' or 'bound' for protocol='committee'")
        if self.sign:
            raise self._wrong("sign", "None for protocol='committee'")
        if isinstance(self.start, str) or len(as_starts(self.start)) > 1:
            raise self._wrong("start", "None, a fitted linear ranker or a vector for protocol='committee'")

    def _fit(self, queries: Queries, validation: Queries | None) -> None:
        if self.protocol == "committee":
            self._fit_from_committee(queries, validation)
        else:
            self._fit_paper(queries, validation)

    # ------------------------------------------------------------------------------------------- from the committee

    def _fit_from_committee(self, queries: Queries, validation: Queries | None) -> None:
        alphas, sigmas = as_grid(self.alpha, REFINEMENT_ALPHAS), self._widths()
        selection = PooledSelection.of(queries, validation, self.refit, self.folds, self.random_state)
        stages = (len(selection.trials) + 1) * len(set(alphas)) * len(sigmas)
        with self._progress("annealing", stages) as bar:
            refiner = Refiner(
                problems=CommitteeProblems.of(selection, self.scale, self.n_jobs),
                start=self._given_start(queries),
                loss=self._smoothed(),
                measure=self._measure(),
                weighed_by=self._weighed_by(),
                alphas=alphas,
                sigmas=sigmas,
                descent=self._descent("lbfgs", 1e-3),
                n_jobs=self.n_jobs,
                after=lambda: bar.advance(1),
                bound=self._stage_bound(selection.pool.sets, len(sigmas)),
            )
            start = refiner.start_without(None)
            nothing = Choice.unknown(len(alphas))

            with self._keep_on_interrupt(lambda: self._hold(start, None, refiner, nothing)):
                refined, choice = None, nothing
                if start.any():
                    choice = refiner.judge()
                    best = max(alphas) if choice.best is None else alphas[choice.best]
                    stronger = sorted({one for one in alphas if one >= best}, reverse=True)
                    refined = refiner.path_without(None, stronger, self.n_jobs)[-1]
        self._hold(start, refined, refiner, choice)

    def _stage_bound(self, sources: Sequence[QuerySource], stages: int) -> StageBound | None:
        """What decides where the annealing stops; None if it ends after the last stage, or held-out queries decide."""
        return StageBound.of(self._smoothed(), sources, stages, self.n_jobs) if self.stop == "bound" else None

    def _given_start(self, queries: Queries) -> Vector | None:
        """The weights that the user gave, or those of an earlier fit; None for the committee's."""
        given = self.coef_ if self.warm_start and hasattr(self, "coef_") else self.start
        if given is None:
            return None
        raw = raw_weights(given, queries.n_features, "start")
        refuse_zero_start(raw, queries)
        return raw

    def _smoothed(self) -> SmoothedMeasure:
        """The loss that is annealed, whatever its width."""
        given = _as_loss(self.loss)
        return smoothed(self._measure(), self.smoothing) if given is None else given

    def _weighed_by(self) -> Measure | None:
        """The measure by whose ideal value queries count if it is not normalized; None for a loss that was given."""
        return self._measure() if self.loss is None else None

    def _widths(self) -> tuple[float, ...]:
        """The widths for scores of deviation 1, squared or not as the loss has them."""
        loss = self._smoothed()
        return tuple(loss.sigma_of(one) for one in as_grid(self.sigmas, REFINEMENT_SIGMAS))

    def _descent(self, solver: Solver, tolerance: float) -> dict[str, Any]:
        given = {"solver": self.solver or solver, "steps": self.steps}
        return given | {"tolerance": tolerance if self.tolerance is None else self.tolerance}

    def _hold(self, start: Vector, refined: Refined | None, refiner: Refiner, choice: Choice) -> None:
        """Hold the start or its refinement, and what was known of all penalties when it was chosen."""
        self.alpha_ = math.nan if refined is None else refined.alpha
        self.start_, self.coef_ = start, start if refined is None else refined.coef
        stages, measure = [] if refined is None else refined.stages, self._measure()
        everything = Trial(None, refiner.problems.selection.pool, refiner.problems.selection.pool.counted)
        train, none = np.empty(0), np.full(len(stages), np.nan)
        if stages:
            queries = everything.prepare([measure])
            values = queries.values(np.array([stage.w for stage in stages]), self.n_jobs)
            train = mean_over_held_out([values], [queries.weight])
        bounds = refined.bounds if refined is not None else np.empty(0) if self.stop == "bound" else None
        run = AnnealedRun(stages, train, none, refiner.smoothed(stages) if stages else none, bounds)
        self._annealed_ = run.columns(), measure, run.coefs(np.ones(len(start)))
        nan = [math.nan]
        self._path_ = {
            "alpha": np.append(nan, refiner.alphas),
            measure.title: choice.means,
            "gain": np.append(nan, choice.gains),
            "standard error": np.append(nan, choice.errors),
        }

    # ------------------------------------------------------------------------------------------- the paper's protocol

    def _fit_paper(self, queries: Queries, validation: Queries | None) -> None:
        start = "ridge" if self.start is None else self.start
        given = [self.coef_] if self.warm_start and hasattr(self, "coef_") else as_starts(start)
        alphas = as_grid(self.alpha, ALPHAS)
        tried = len(given) * len(alphas)
        parts = []
        if validation is None and (tried > 1 or self.stop == "best"):
            parts = parts_of(queries, self.folds, self.random_state)
        passes = tried * len(parts) + 1 if parts else tried
        stages = len(as_grid(self.sigmas, SIGMAS))
        grid = np.tile(alphas, len(given))
        with self._progress("annealing", stages * passes) as bar:
            trials = self._trials(queries, given, alphas, bar)

            def keep() -> bool:
                if (found := trials.best_so_far()) is None:
                    return False
                place = found[1].smallest_bound if self.stop == "bound" else -1
                self._take(*found, place, trials, grid, np.full(tried, np.nan))
                return True

            with self._keep_on_interrupt(keep):
                if parts:
                    worth = mean_of_known([self._judge_part(part, queries, trials) for part in parts])
                    best, place = self._choose(worth, alphas)
                    plan = trials.plans(queries, None)[best]
                    (run,) = trials.run([plan], queries, None)
                else:
                    plans = trials.plans(queries, validation)
                    runs = trials.run(plans, queries, validation)
                    worth = np.array([self._held(run) for run in runs])
                    best, place = self._choose(worth, alphas)
                    plan, run = plans[best], runs[best]
        place = run.smallest_bound if self.stop == "bound" else place
        self._take(
            plan, run, place, trials, grid, np.fmax.reduce(worth, axis=1) if self.stop == "best" else worth[:, -1]
        )

    def _take(
        self, plan: AnnealingPlan, run: AnnealedRun, place: int, trials: AnnealingTrials, grid: Vector, judged: Vector
    ) -> None:
        """Hold one stage of one plan, and what was known of all plans when it was chosen."""
        self.alpha_ = plan.alpha
        self.start_ = plan.start * trials.factor
        coefs = run.coefs(trials.factor)
        self._annealed_ = run.columns(), trials.measure, coefs
        self.coef_ = coefs[place].copy()
        number = np.repeat(np.arange(len(trials.given)), len(trials.alphas))
        self._path_ = {"start": number, "alpha": grid, trials.measure.title: judged}

    def _trials(self, queries: Queries, given: list[Any], alphas: tuple[float, ...], bar: progress) -> AnnealingTrials:
        measure, bounds = self._measure(), as_bounds(self.sign, queries)
        alike: dict[str, Any] = {"scale": self.scale, "folds": self.folds, "random_state": self.random_state}
        alike["n_jobs"] = self.n_jobs
        kinds: Any = registered()
        ridge = kinds["RidgeRanker"](measure, alpha=RIDGE_ALPHAS, intercept="global", refit="train", **alike)
        named = {"ridge": ridge, "ranksvm": kinds["RankSVM"](measure, **alike)}
        factor, _ = scale_factors(queries, self.scale)
        descent = self._descent("cg", 1e-6) | {"bounds": bounds}
        return AnnealingTrials(
            given=given,
            alphas=alphas,
            named=named,
            loss=self._smoothed(),
            sigmas=None if self.sigmas is None else as_grid(self.sigmas, ()),
            measure=measure,
            weighed_by=self._weighed_by(),
            factor=factor,
            descent=descent if bounds is None else descent | {"solver": "lbfgs"},
            n_jobs=self.n_jobs,
            bar=bar,
            bound=self._stage_bound([queries], len(as_grid(self.sigmas, SIGMAS))),
        )

    def _judge_part(self, part: Numbers, queries: Queries, trials: AnnealingTrials) -> list[Vector]:
        """The measure of every plan, stage by stage, on queries that neither it nor its start has seen."""
        train, held = hold_out(queries, part)
        return [self._held(run) for run in trials.run(trials.plans(train, None), train, held)]

    def _held(self, run: AnnealedRun) -> Vector:
        """The measure on held-out queries after every stage, or after that which the bound takes."""
        return run.held[[run.smallest_bound]] if self.stop == "bound" else run.held

    def _choose(self, worth: Vector, alphas: tuple[float, ...]) -> tuple[int, int]:
        """(plan, stage) to keep, by what each plan was worth at each stage; the strongest where nothing judges them."""
        last = worth.shape[1] - 1
        considered = worth if self.stop == "best" else worth[:, last:]
        if np.isnan(considered).all():
            return int(np.argmax(alphas)), last
        best, place = np.unravel_index(int(np.nanargmax(considered)), considered.shape)
        return int(best), int(place) if self.stop == "best" else last

    # ------------------------------------------------------------------------------------------- what is guaranteed

    def _training_objective(self) -> TrainingObjective | None:
        # queries count by their ideal value if the measure is not normalized, and the start minimizes other losses
        weighed = self._weighed_by()
        if (weighed is not None and not weighed.at_most_one) or math.isnan(self.alpha_):
            return None
        place = int(np.argmax((self.history_.coefs == self.coef_).all(axis=1)))
        loss = self._smoothed().at_sigma(float(self.history_["sigma"][place]))
        stages = len(as_grid(self.sigmas, REFINEMENT_SIGMAS if self.protocol == "committee" else SIGMAS))
        among = stages if self.stop == "bound" else 1
        if self.protocol == "committee":  # scores have deviation 1 at the start, so the usual widths are constants
            return TrainingObjective(loss=loss, loss_fixed=True if self.sigmas is None else None, loss_among=among)
        kept = self.sigmas is not None and (self.stop != "best" or len(self.history_) == 1)
        return TrainingObjective(loss=loss, loss_fixed=None if kept else False, loss_among=among)

    # ------------------------------------------------------------------------------------------- saving

    def _state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        columns, _, coefs = self._annealed_
        arrays = {f"history.{name}": column.astype(np.float64) for name, column in columns.items()}
        arrays |= {name: column.astype(float) for name, column in path_arrays(self._path_).items()}
        arrays |= {"coef": self.coef_, "start": self.start_, "history.coefs": coefs}
        return {"alpha": None if math.isnan(self.alpha_) else self.alpha_}, arrays

    def _restore(self, facts: Mapping[str, Any], store: Store) -> None:
        self.coef_ = self._read_coef(store)
        self.start_ = store.array("start", np.float64, (self.n_features_in_,))
        self.alpha_ = math.nan if facts["alpha"] is None else float(facts["alpha"])
        names = (*COLUMNS, BOUND) if self.stop == "bound" else COLUMNS
        columns = {name: store.array(f"history.{name}", np.float64, (None,)) for name in names}
        for name in ("steps", "evaluations"):
            columns[name] = columns[name].astype(np.int64)
        coefs = store.array("history.coefs", np.float64, (len(columns["sigma"]), self.n_features_in_))
        measure = self._measure()
        self._annealed_ = columns, measure, coefs
        if self.protocol == "committee":
            self._path_ = read_path(store, ("alpha", measure.title, "gain", "standard error"))
            return
        self._path_ = read_path(store, ("start", "alpha", measure.title))
        self._path_["start"] = self._path_["start"].astype(np.int64)
