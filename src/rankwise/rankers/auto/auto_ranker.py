"""`AutoRanker`: linear rankers and boosted trees, weighted by how well they rank queries they have not seen."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, get_args

import numpy as np

from rankwise._arrays import Array, Matrix, Vector
from rankwise._kernels.histograms import BINS
from rankwise._parameters import Check, NumberRange, PositiveFloat, Seed, as_random
from rankwise._progress import progress
from rankwise._store import Store
from rankwise._tables import Table
from rankwise.errors import RankwiseError
from rankwise.losses import GradedPairs
from rankwise.queries import checks
from rankwise.queries.checks import Missing
from rankwise.queries.queries import Queries
from rankwise.queries.scaling import Scaler
from rankwise.rankers._base import Ranker
from rankwise.rankers._model_selection import MANY, Folds, PooledSelection, mean_of_known
from rankwise.rankers.auto.linear_members import FeatureChange, LinearFolds
from rankwise.rankers.auto.members import (
    Clock,
    Member,
    OutOfFold,
    criterion_measures,
    grow_folds,
    medians,
    sampled_features,
    standard_error,
    whole_ensemble,
)
from rankwise.rankers.auto.weights import pair_weights
from rankwise.rankers.boosting.boosted import USUAL_TREES, BoostedRanker
from rankwise.rankers.boosting.growing import no_trees
from rankwise.rankers.boosting.normal_sum import NormalSum
from rankwise.rankers.boosting.objectives import Derivatives
from rankwise.rankers.boosting.packed_rows import Lanes
from rankwise.rankers.boosting.parted_rows import TreeJob, derivatives_of
from rankwise.rankers.boosting.symmetric import SymmetricRows, TreeGrowth, bin_rows
from rankwise.rankers.boosting.tree_ensemble import TreeEnsemble
from rankwise.rankers.committee import within_query_deviation
from rankwise.rankers.linear.committee import RidgeCommittee
from rankwise.rankers.linear.linear_model import LinearModel

if TYPE_CHECKING:
    from rankwise.queries.passes.chunked import ChunkedQueries
    from rankwise.queries.passes.estimate import Estimate
    from rankwise.queries.source import QuerySource

MemberName = Literal["ridge", "normal", "trees", "started"]
Engine = Literal["lightgbm", "catboost"]

# Deeper trees on all features learn from nothing what relevance looks like; those that start from a linear score have
# less to find, and differ more from the others where each sees half of the features.
GROWTH = {"trees": TreeGrowth(depth=6), "started": TreeGrowth(depth=5, feature_fraction=0.5)}
# What draws the weights of members toward each other, and the weight below which ``compact`` leaves a member out.
PENALTY, SMALL = 0.01, 0.05
STACK = "stack"


def _names(kind: Any, empty: bool) -> Check:
    """A sequence of distinct names."""
    known = get_args(kind)
    return Check(
        f"a sequence of {', '.join(map(repr, known[:-1]))} and {known[-1]!r}, each at most once"
        + (", which may be empty" if empty else ""),
        lambda value: (
            isinstance(value, (tuple, list))
            and all(name in known for name in value)
            and len(set(value)) == len(value)
            and (empty or len(value) > 0)
        ),
    )


@dataclass(eq=False, repr=False, kw_only=True)
class AutoRanker(Ranker):
    r"""The ranker to begin with: the weighted sum of two linear rankers and two sums of boosted trees.

    .. math:: s(x) = \sum_k c_k \, s_k(x) / \sigma_k, \qquad c_k \ge 0,

    where :math:`s_k` is the mean of the models of member k, one per fold, and :math:`\sigma_k` the standard deviation
    within queries of its scores of queries that its models have not seen. The weights minimize the pair loss of
    :class:`~rankwise.losses.GradedPairs` on these queries. Which kind of ranker suits the data cannot be known before,
    and the weights need not choose one: linear rankers count where queries are few or relevance is a weighted sum of
    features, trees where features interact.

    ========== ==========================================================================================
    member     what it is
    ========== ==========================================================================================
    ridge      :class:`~rankwise.RidgeCommittee`: six ridge regressions
    normal     the same on the normal scores of the features, as ``Scaler("normal")`` makes them
    trees      symmetric trees of depth 6 (:class:`~rankwise.BoostedRanker`) for the pair loss
    started    symmetric trees of depth 5 on half of the features, added to the scores of "normal"
    ========== ==========================================================================================

    Parameters
    ----------
    measure : str or Measure, default="nDCG@10"
        The measure that ``score`` reports. The number of trees has the best mean of nDCG@10, nDCG@50, AP and this
        measure, which varies less from query to query than one of them.
    members : sequence of {"ridge", "normal", "trees", "started"}, default=all four
        The members.
    boosters : sequence of {"lightgbm", "catboost"}, default=()
        Further members: trees that these packages grow, with the defaults of
        :class:`BoostedRanker(engine=...) <rankwise.BoostedRanker>`.
    time_limit : float, default=None
        Seconds after which no further member is fitted and no further tree is grown. What is learned then depends on
        the speed of the machine: the same bits are promised without a limit alone.
    max_trees : int, default=1000
        The largest number of trees of a fold.
    folds : int, default=5
        Parts of the training queries that are held out in turn. Of more than 2,000 queries a single part is held out,
        of one fifth and at most 2,000 queries.
    compact : bool, default=False
        Whether members are fitted once more, on all queries, with the number of trees that was found, and this model is
        kept in place of the mean of the folds; members with a weight below 0.05 are left out. The model has a fifth of
        the trees and ranks a little worse.
    random_state : int or numpy.random.Generator, default=0
        Seed of the division into parts, and of what trees draw.
    n_jobs : int, default=None
        Number of threads; None uses all cores. The result does not depend on it.
    verbose : bool, default=False
        Whether to show a progress bar on a terminal.
    missing : {"error", "zero", "min", "keep"}, default="keep"
        What ``fit`` and ``predict`` do with NaN in arrays. "keep": linear members see the median of the feature, and
        trees send NaN to the side where it does better.

    Attributes
    ----------
    weights_ : dict of str to float
        The weights c of the members, of sum 1.
    report_ : Table
        A row per member and one of the stack: its weight and trees per fold; the mean of every measure and of the
        criterion, their mean, over the queries that it had not seen; the difference of the criterion to the stack
        with bounds of its 95% interval, paired over queries; and the processor seconds that it took.
    ensemble_ : TreeEnsemble
        The model: all trees with scaled leaves, weights of features, and weights of their normal scores.

    Notes
    -----
    A validation set joins the training queries: more queries are worth more than a set for one choice. Certificates
    rest on hold-out queries alone, and every query that ``fit`` was given counts as seen.

    Medians and normal scores are those of all documents, or of 65,536 of them that are spread evenly, without a look at
    labels.

    **Folds.** The penalties of the ridges, the numbers of trees and the weights are chosen on the held-out parts
    together, so the row of the stack in ``report_`` is optimistic by a little. ``certificate`` and ``score`` on
    queries that were not given to ``fit`` are not.

    **The number of trees** is looked at every 10 trees, as a mean over three looks. It is the largest whose mean is
    within a quarter of a standard error of the best; 100 trees without a better mean end the growth.

    **The weights** minimize the mean of the pair loss per query, divided by the largest label, plus .01 / 2 times the
    sum of (c_k - mean of c)^2, then they are divided by their sum. The linear start of "started" is multiplied by the
    factor with the least pair loss.

    **Ctrl-C** leaves the stack of the members that were finished, if there is one.

    Examples
    --------
    >>> from rankwise import make_lists
    >>> train, test = make_lists(60, random_state=1), make_lists(60, random_state=2)
    >>> model = AutoRanker(members=("ridge", "normal")).fit(train)
    >>> sorted(model.weights_)
    ['normal', 'ridge']
    >>> bool(model.score(test) > 0.6)
    True
    """

    name = "AutoRanker"
    takes_validation = True
    learns_from_validation = True
    keeps_missing = True
    _reason_no_document_weights = "CatBoost's YetiRank weights queries alone"

    members: Annotated[Sequence[MemberName], _names(MemberName, False)] = get_args(MemberName)
    boosters: Annotated[Sequence[Engine], _names(Engine, True)] = ()
    time_limit: PositiveFloat | None = None
    max_trees: Annotated[int, NumberRange(1, 1_000_000, closed="both")] = 1000
    folds: Folds = 5
    compact: bool = False
    random_state: Seed = 0
    missing: Missing = "keep"

    _earlier: ClassVar[Ranker | None] = None  # the model of a file from before there were stacks

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """Instances that the common tests run on."""
        return cls(folds=2, max_trees=20), cls("AP", members=("trees", "ridge"), folds=3, max_trees=10, compact=True)

    @property
    def takes_document_weights(self) -> bool:  # type: ignore[override]
        """Whether ``fit`` uses document weights: unless CatBoost is a member."""
        return "catboost" not in self.boosters

    @property
    def runs_on_parts(self) -> bool:  # type: ignore[override]
        """Whether ``fit`` takes :class:`~rankwise.Parts`: without trees of other packages."""
        return not self.boosters

    _reason_not_on_parts = "trees of other packages need all documents in memory: leave out boosters="

    # ------------------------------------------------------------------------------------------- learning

    def _fit(self, queries: Queries, validation: Queries | None) -> None:
        rng, clock = as_random(self.random_state), Clock(self.time_limit)
        selection = PooledSelection.of(queries, validation, "all", self.folds, rng)
        sets = [queries] if validation is None else [queries, validation]
        fits = _MemberFits(self, sets, selection, int(rng.integers(2**31)), clock)
        done: list[Member] = []
        names = (*self.members, *self.boosters)
        trees = [name for name in names if name not in ("ridge", "normal")]
        bar = self._progress(self.name, len(names) + len(trees) * self.max_trees * len(fits.held.rows))
        with self._keep_on_interrupt(lambda: bool(done) and self._combine(fits, done)), bar:
            for name in names:
                if not (done and clock.is_over):
                    done.append(fits.fit(name, bar))
                    bar.advance(1)
            self._combine(fits, done, whole=self.compact)

    def _estimate(self, queries: "ChunkedQueries") -> "Estimate":
        """What a fit on these queries will cost, by the time of a tree on a chunk."""
        found = super()._estimate(queries)
        if not any(name in GROWTH for name in self.members):
            return found
        depth = GROWTH["trees"].depth
        size = queries.n_documents * queries.n_features * depth
        return replace(found, unit="tree", passes_of_unit=depth + 2, bytes=size)

    def _expected_passes(self, queries: "QuerySource") -> Any:
        """(a tree on a chunk, nothing, the usual number of trees, the largest), or as the linear members have it."""
        grown = sum(name in GROWTH for name in self.members)
        if not grown:
            return RidgeCommittee(folds=self.folds)._expected_passes(queries)
        models = grown * (1 if len(queries.counted) > MANY else self.folds) + grown * self.compact
        growth = GROWTH["trees"]
        job = TreeJob(GradedPairs(), growth.depth, growth.row_fraction)
        return job, (), models * min(self.max_trees, USUAL_TREES), models * self.max_trees

    def _combine(self, fits: "_MemberFits", members: Sequence[Member], whole: bool = False) -> bool:
        """Set the state: the stack of these members, which are fitted on the ``whole`` of the queries or not."""
        held = fits.held
        deviations = np.array([within_query_deviation(held.queries, one.scores) for one in members])
        scores = np.array([one.scores for one in members]) / np.where(deviations > 0, deviations, np.inf)[:, None]
        weights = _weights(held, scores, deviations > 0)
        if whole:
            weights = _weights(held, scores, weights >= SMALL)
        factors = weights / np.where(deviations > 0, deviations, 1.0)
        ensembles = [
            fits.fit_whole(one) if whole and weight else one.ensemble
            for one, weight in zip(members, weights.tolist(), strict=True)
        ]
        used = [place for place, factor in enumerate(factors) if factor] or [0]
        self.ensemble_ = TreeEnsemble.concat([ensembles[place] for place in used], factors[used].tolist())
        names = [one.name for one in members]
        self.weights_ = dict(zip(names, weights.tolist(), strict=True))
        rows = [*scores, weights @ scores]
        seconds = [one.seconds for one in members]
        self.report_ = _report(
            held, names, rows, [*weights, 1.0], [*(one.trees for one in members), 0], [*seconds, sum(seconds)],
            criterion_measures(self._measure()),
        )  # fmt: skip
        self.__dict__.pop("_earlier", None)
        return True

    # ------------------------------------------------------------------------------------------- ranking

    def _scoring_model(self) -> Ranker:
        if self._earlier is not None:
            return self._earlier._scoring_model()
        trees = self.ensemble_
        if trees.n_trees or trees.normal is not None or trees.coef is None or self.missing == "keep":
            return self
        names = self._names()
        model = LinearModel.of(trees.coef, feature_names=names, measure=self.measure, missing=self.missing)
        model.n_jobs = self.n_jobs
        return model

    def _scores(self, X: checks.Floats) -> Vector:
        return self.ensemble_.predict(X, self.n_jobs) if self._earlier is None else self._earlier._scores(X)

    def _contributions(self, X: checks.Floats) -> tuple[Matrix, float] | None:
        if self._earlier is not None:
            return self._earlier._contributions(X)
        found = self.ensemble_.contributions(X, self.n_jobs)
        return found[:, :-1], float(found[0, -1]) if len(found) else 0.0

    # ------------------------------------------------------------------------------------------- saving

    @classmethod
    def _parameters_from_file(cls, found: dict[str, Any]) -> dict[str, Any]:
        """Files of before chose a linear ranker by a parameter, and their boosters replaced it."""
        return {name: value for name, value in found.items() if name != "linear"}

    def _state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        from rankwise.rankers._record import nested_state

        report = self.report_
        columns = [name for name in report.columns if name not in ("member", "seconds", "chosen")]
        facts: dict[str, Any] = {"rows": report["member"].tolist() if len(report) else [], "columns": columns}
        arrays = {"report": np.array([report[name] for name in columns], np.float64).reshape(len(columns), len(report))}
        if self._earlier is not None:
            members, own = nested_state([self._earlier])
            return facts | {"model": members}, arrays | own
        return facts | {"members": list(self.weights_)}, arrays | self.ensemble_.arrays()

    def _frozen_state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        return ({}, self.ensemble_.arrays()) if self._earlier is None else self._earlier._frozen_state()

    def _restore(self, facts: Mapping[str, Any], store: Store) -> None:
        from rankwise.rankers._record import read_nested

        self._measure()
        names, columns = facts["rows" if "rows" in facts else "candidates"], facts["columns"]
        if not all(isinstance(text, str) for text in (*names, *columns)):
            raise RankwiseError("its report has names of rows and columns that are not strings")
        numbers = store.array("report", np.float64, (len(columns), len(names)))
        self.report_ = Table({})
        if names:
            found = dict(zip(columns, numbers, strict=True))
            self.report_ = Table({"member": names, **found, "seconds": [float("nan")] * len(names)})
        if "model" in facts:
            (earlier,) = read_nested(store, facts["model"], self.n_features_in_)
            if earlier.scores_by_query:
                raise RankwiseError(f"it holds {earlier.name}, which is not one of its members")
            self.__dict__["_earlier"], self.weights_ = earlier, {str(facts.get("chosen", earlier.name)): 1.0}
            return
        self.ensemble_ = TreeEnsemble.from_arrays(store, self.n_features_in_)
        if list(facts["members"]) != names[:-1] or "weight" not in columns:
            raise RankwiseError("its report does not hold its members")
        self.weights_ = dict(zip(names[:-1], numbers[columns.index("weight"), :-1].tolist(), strict=True))


# ------------------------------------------------------------------------------------------------------------ members


class _MemberFits:
    """The fits of the members, with what they share: the parts, medians, normal scores, and binned features.

    Parameters
    ----------
    auto : AutoRanker
        The ranker whose parameters count.
    sets : list of Queries or ChunkedQueries
        The queries.
    selection : PooledSelection
        Their parts.
    seed : int
        Seed of the trees.
    clock : Clock
        Ends the growth of trees.
    """

    def __init__(self, auto: AutoRanker, sets: list[Any], selection: PooledSelection, seed: int, clock: Clock) -> None:
        self._auto, self._selection, self._seed, self._clock = auto, selection, seed, clock
        self._sets = sets
        parts = [one.held for one in selection.trials] or [np.empty(0, np.int64)]
        self.held = OutOfFold(self._sets, parts, criterion_measures(auto._measure()), auto.n_jobs)

    def fit(self, name: str, bar: progress) -> Member:
        """Fit a member."""
        began, held = time.process_time(), self.held
        if name in ("ridge", "normal"):
            folds = self._ridge if name == "ridge" else self._normal
            ensemble, scores, trees = self._linear(name, folds.coefs.mean(axis=0)), self._held(folds), 0
        else:
            starts = [self._start(coef) for coef in self._normal.coefs] if name == "started" else None
            rows, derivatives = self._growth(name)
            ensemble, scores, trees = grow_folds(
                held, rows, derivatives, starts, self._seed_of(name), self._auto.max_trees, self._clock, bar
            )
            ensemble = self._with_start(name, ensemble, self._normal.coefs.mean(axis=0) if starts else None)
        return Member(name, ensemble, scores, trees, time.process_time() - began)

    def fit_whole(self, member: Member) -> TreeEnsemble:
        """A member learned from all queries, with the number of trees that was found."""
        if member.name in ("ridge", "normal"):
            return self._linear(member.name, (self._ridge if member.name == "ridge" else self._normal).whole)
        started = member.name == "started"
        start = self._start(self._normal.whole) if started else None
        rows, derivatives = self._growth(member.name)
        found = whole_ensemble(self.held, rows, derivatives, start, self._seed_of(member.name), member.trees)
        return self._with_start(member.name, found, self._normal.whole if started else None)

    def _seed_of(self, name: str) -> int:
        """The seed of a member, which does not depend on the others."""
        return self._seed + 10_000 * [*get_args(MemberName), *get_args(Engine)].index(name)

    # ---------------------------------------------------------------------------------------------- what they share

    @cached_property
    def _sample(self) -> Matrix:
        return sampled_features(self._sets)

    @cached_property
    def _fill(self) -> Vector:
        return medians(self._sample)

    @cached_property
    def _ridge(self) -> LinearFolds:
        return LinearFolds.of(self._sets, self._selection, FeatureChange(self._fill), self._auto.n_jobs)

    @cached_property
    def _scaler(self) -> Scaler:
        return Scaler("normal").fit(np.where(np.isnan(self._sample), self._fill, self._sample))

    @cached_property
    def _normal(self) -> LinearFolds:
        change = FeatureChange(self._fill, self._scaler)
        return LinearFolds.of(self._sets, self._selection, change, self._auto.n_jobs)

    def _held(self, folds: LinearFolds) -> Vector:
        """The scores of the held-out documents; 0 where nothing is held out."""
        return self.held.place(folds.held or [np.zeros(0)])

    def _start(self, coef: Vector) -> Any:
        """What trees start from: the scores of all documents by weights on normal scores."""
        return self._normal.start(coef, self._factor).on(self._sets, self._auto.n_jobs)

    @cached_property
    def _factor(self) -> float:
        """What the scores of "normal" are multiplied by where trees start from them."""
        scores = self._held(self._normal)
        deviation = within_query_deviation(self.held.queries, scores)
        if not deviation:
            return 1.0
        return float(pair_weights(self.held.queries, scores[None] / deviation, 0.0, self._auto.n_jobs)[0]) / deviation

    @cached_property
    def _bins(self) -> Lanes:
        """Binned features, in an order from which trees draw groups at random."""
        order = np.random.default_rng(self._seed).permutation(self._sets[0].n_features)
        return bin_rows(self._sets, (), BINS, order, self._auto.n_jobs)

    @cached_property
    def _pairs(self) -> Any:
        return derivatives_of(GradedPairs(), self.held.together, self._auto.n_jobs)

    def _growth(self, name: str) -> tuple[Any, Any]:
        """The binned features and the loss of a member that is grown."""
        if name in GROWTH:
            return SymmetricRows(self._bins, GROWTH[name], self._auto.n_jobs), self._pairs
        auto = self._auto
        booster = BoostedRanker(auto.measure, engine=name, n_jobs=auto.n_jobs)  # type: ignore[arg-type]
        return booster._rows(self._sets, []), Derivatives.of(booster._loss(), self.held.together, auto.n_jobs)

    # ---------------------------------------------------------------------------------------------- as ensembles

    def _linear(self, name: str, coef: Vector) -> TreeEnsemble:
        """Weights as a sum of no trees."""
        if name == "ridge":
            return replace(no_trees(len(coef)), coef=coef, fill=self._fill)
        return replace(no_trees(len(coef)), normal=NormalSum.of(self._scaler, coef), fill=self._fill)

    def _with_start(self, name: str, ensemble: TreeEnsemble, coef: Vector | None) -> TreeEnsemble:
        """Trees with the linear scores that they were added to."""
        if coef is None:
            return ensemble
        return replace(ensemble, normal=NormalSum.of(self._scaler, self._factor * coef), fill=self._fill)


# ------------------------------------------------------------------------------------------------------------- weights


def _weights(held: OutOfFold, scores: Matrix, counted: Any) -> Vector:
    """Weights of sum 1 of those members that count; the first has all where nothing can judge."""
    found = np.zeros(len(scores))
    if not counted.any():
        found[0] = 1.0
        return found
    own = pair_weights(held.queries, scores[counted], PENALTY, held.n_jobs)
    found[counted] = own / own.sum() if own.any() else 1.0 / counted.sum()
    return found


def _report(
    held: OutOfFold,
    names: Sequence[str],
    scores: Sequence[Vector],
    weights: Sequence[float],
    trees: Sequence[int],
    seconds: Sequence[float],
    measures: Sequence[Any],
) -> Table:
    """A row per member, and one of the stack."""
    from scipy.special import stdtrit

    values = [held.values(one) for one in scores]
    criteria = [mean_of_known(one) for one in values]
    columns: dict[str, Any] = {"member": [*names, STACK], "weight": weights, "trees": trees}
    for place, measure in enumerate(measures):
        columns[measure.title] = [held.mean(one[place]) for one in values]
    columns["criterion"] = [held.mean(one) for one in criteria]
    differences = [one - criteria[-1] for one in criteria]
    means, weight = [held.mean(one) for one in differences], held.queries.query_weight
    reach = float(stdtrit(max(len(weight) - 1, 1), 0.975))
    spread = [reach * standard_error(one, weight) for one in differences[:-1]] + [0.0]
    columns["difference"] = means
    columns["lower"] = [mean - own for mean, own in zip(means, spread, strict=True)]
    columns["upper"] = [mean + own for mean, own in zip(means, spread, strict=True)]
    return Table({**columns, "seconds": seconds})
