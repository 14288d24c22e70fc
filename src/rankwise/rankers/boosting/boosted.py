"""BoostedRanker: gradient boosted trees on any loss of the package, stopped by the measure itself.

The package itself (:mod:`rankwise.rankers.boosting.symmetric`), LightGBM (:mod:`rankwise.rankers.boosting.growing`) or
CatBoost (:mod:`rankwise.rankers.boosting.catboost`) grows the trees; what is kept is a
:class:`~rankwise.rankers.boosting.tree_ensemble.TreeEnsemble`, so that a fitted ranker scores, explains itself and is
saved without either of the two.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels.histograms import BINS
from rankwise._parameters import Fraction, Int32, NumberRange, PositiveFloat, PositiveInt, Seed, as_random
from rankwise._progress import progress
from rankwise._store import Store
from rankwise.errors import DataError, RankwiseError
from rankwise.losses import GradedPairs, StochasticNDCG
from rankwise.losses._base import Loss, SmoothedMeasure
from rankwise.measures.compute import ScoredLists, measure_lists
from rankwise.measures.ndcg import NDCG
from rankwise.queries import checks
from rankwise.queries.checks import Floats, Missing
from rankwise.queries.passes.chunked import ChunkedQueries
from rankwise.queries.queries import Queries
from rankwise.rankers._base import Ranker, linear_scores
from rankwise.rankers._history import History, history_arrays, read_history
from rankwise.rankers._model_selection import MANY, Folds, weighted_mean
from rankwise.rankers._parameters import AnyLoss, Features, Signs, Weights, raw_weights
from rankwise.rankers.boosting.annealed import AnnealedDerivatives
from rankwise.rankers.boosting.binned_parts import in_parts
from rankwise.rankers.boosting.folds import TreeFold, TreesGrown, grown, without_part
from rankwise.rankers.boosting.growing import (
    LOOK,
    UNJUDGED,
    BinnedRows,
    Growing,
    grow_together,
    joined,
    labels_of,
    no_trees,
    refuse_stationary,
    rows_of,
)
from rankwise.rankers.boosting.objectives import Derivatives
from rankwise.rankers.boosting.packed_rows import refuse_odd_codes
from rankwise.rankers.boosting.parted_rows import (
    PartedDerivatives,
    PartedRows,
    TreeJob,
    derivatives_of,
    start_of_blocks,
)
from rankwise.rankers.boosting.shape_functions import ShapeFunctions
from rankwise.rankers.boosting.symmetric import DEEPEST, SymmetricRows, TreeGrowth
from rankwise.rankers.boosting.tree_ensemble import TreeEnsemble
from rankwise.rankers.linear.ridge import RidgeRanker

if TYPE_CHECKING:
    from rankwise.queries.passes.estimate import Estimate
    from rankwise.queries.source import QuerySource
    from rankwise.rankers.boosting.folds import AnyRows

Vector = NDArray[np.float64]

Engine = Literal["symmetric", "lightgbm", "catboost"]
# What each engine takes, and its own values.
DEFAULTS: dict[str, dict[str, Any]] = {
    "symmetric": {
        "learning_rate": 0.05, "depth": 6, "row_fraction": 0.8, "feature_fraction": 1.0, "bins": 64, "seeds": 1,
        "patience": 100, "refit": "average",
    },
    "lightgbm": {
        "learning_rate": 0.08, "leaves": 15, "smallest_leaf": 20, "row_fraction": 0.8, "feature_fraction": 0.5,
        "seeds": 3, "patience": 60, "refit": "all",
    },
    "catboost": {
        "learning_rate": 0.08, "depth": 6, "row_fraction": 0.8, "feature_fraction": 0.5, "seeds": 3, "patience": 60,
        "refit": "all",
    },
}  # fmt: skip
# Trees of a model as one may expect them, for estimates.
USUAL_TREES = 400
# The measure of symmetric trees is looked at after every so many.
SYMMETRIC_LOOK = 10

_HISTORY: dict[str, type[np.generic]] = {"trees": np.int64, "validation": np.float64, "mean of three": np.float64}


@dataclass(eq=False, repr=False, kw_only=True)
class BoostedRanker(Ranker):
    r"""Boosted trees for a ranking loss; the measure chooses their number.

    s(x) = mean over seeds of the sum of trees, each a Newton step on the loss.

    Tree t fits the step -g_i / h_i, g and h the first and second derivatives of the loss with respect to the scores of
    the t - 1 trees before it, on a random part of the documents and features.

    Parameters
    ----------
    measure : str or Measure, default="nDCG@10"
        The measure that selects the number of trees; ``score`` reports it.
    loss : Loss, default=None
        What the trees minimize: any loss of :mod:`rankwise.losses`, or one of your own. None is
        :class:`~rankwise.losses.GradedPairs` for symmetric trees. With LightGBM it is
        :class:`~rankwise.losses.StochasticNDCG` with the gain, discount and cut-off of the measure where it is an
        NDCG@k, and NDCG@10 otherwise. A loss without ``curvature`` has a constant one, see
        :func:`rankwise.boosting.objective`.
    sigmas : sequence of float, default=None
        Decreasing widths of a smoothed loss, such as ``(4, 1, 1/4, 1/16)``, each for an equal share of ``trees``. They
        are in units of the variance within queries of the scores when the width begins, and never rise. The search for
        the number of trees does not end before the last of them. None is the sigma of the loss for all trees.
    trees : int, default=1000
        The largest number of trees per model.
    learning_rate : float, default=None
        The share of a step that is taken. None is 0.05 for symmetric trees, 0.08 with LightGBM and CatBoost.
    leaves : int, default=None
        The largest number of leaves of a tree, with LightGBM; None is 15.
    depth : int, default=None
        The number of levels of a tree, of symmetric trees (at most 10) and with CatBoost (at most 16): all nodes of a
        level ask the same question, and there are up to 2^depth leaves. None is 6.
    smallest_leaf : int, default=None
        The smallest number of documents in a leaf, as LightGBM estimates it; None is 20.
    row_fraction : float, default=None
        The share of the documents that each tree is grown on; None is 0.8. Leaves of symmetric trees have the values of
        all documents.
    feature_fraction : float, default=None
        The share of the features that each tree, with CatBoost each level, may split on. None is all for symmetric
        trees, 0.5 with LightGBM and CatBoost. Symmetric trees draw groups of four features.
    bins : int, default=None
        The largest number of bins of a feature, from 3 to 64, one of them for NaN, for symmetric trees; None is 64.
    seeds : int, default=None
        Number of models that are averaged; they differ in the rows, features and noise that they draw. None is 1 for
        symmetric trees, 3 with LightGBM and CatBoost.
    patience : int or "auto", default="auto"
        Trees without a better measure after which the search for their number ends; None grows ``trees`` trees and
        searches nothing. "auto" is 100 for symmetric trees, 60 with LightGBM and CatBoost.
    folds : int, default=5
        Number of parts of the queries that are held out in turn to find the number of trees. Of more than 2,000
        queries a single part is held out, of at most 2,000.
    refit : {"average", "all", "train"}, default=None
        What happens after the search for the number of trees. "average": the models of the folds, cut to that number,
        are averaged; a validation set joins the training queries before. "all": a validation set joins the training
        queries, and the final trees are grown on all of them. "train": a validation set selects the number of trees
        alone, and trees are grown on the training queries. None is "average" for symmetric trees, "all" with LightGBM
        and CatBoost. Without a search trees are grown on all queries.
    start : "ridge", fitted linear ranker, or array of shape (n_features,), default=None
        Linear scores that the trees are added to: of a :class:`~rankwise.RidgeRanker` on the training queries (those
        that are not held out, where parts are), or given. They are part of the model.
    warm_start : bool, default=False
        Whether a second ``fit`` keeps the fitted trees and its linear start, and grows what they lack to ``trees``. It
        needs ``patience=None``; the first fit may have searched. The queries may be others with the same features. With
        the same queries, parameters and one seed, symmetric trees that were grown without a search have the same bits
        as if they had been grown at once.
    monotone : mapping of str or int to {-1, 1}, default=None
        Features, by name or number, that the score must not fall (1) or rise (-1) with.
    additive : bool, default=False
        Whether every tree splits on a single feature: the score is then a sum of functions of single features, see
        ``shapes_``. A tree has one split; symmetric trees may have depth 2.
    categorical_features : sequence of str or int, default=None
        Features, by name or number, whose values are codes of categories, whole numbers from 0. Symmetric trees split
        one category of at most 63 from all others, LightGBM splits categories into sets. Categories that the training
        queries do not have, and NaN, go with the others.
    engine : {"symmetric", "lightgbm", "catboost"}, default="symmetric"
        What grows the trees. "symmetric": the package itself. "lightgbm": LightGBM, from leaf to leaf. "catboost":
        CatBoost's YetiRank, which has a loss of its own: it takes no ``loss``, ``start``, ``categorical_features`` and
        document weights. A parameter that the engine does not have raises an error.
    random_state : int or numpy.random.Generator, default=0
        Seed of everything that is drawn.
    n_jobs : int, default=None
        Number of threads; None uses all cores. The result does not depend on it.
    verbose : bool, default=False
        Whether to show a progress bar on a terminal.
    missing : {"error", "zero", "min", "keep"}, default="keep"
        What to do with NaN in arrays; "keep" lets every split send it to the side where it does better.

    Attributes
    ----------
    ensemble_ : TreeEnsemble
        The trees of all models, and the linear start if there is one.
    trees_ : int
        Number of trees per model that was selected.
    history_ : History
        The measure on the held-out queries by number of trees, and its mean over three neighbors, whose first maximum
        is taken.
    feature_importances_ : ndarray of shape (n_features,)
        The share of each feature in the gains of all splits.
    shapes_ : ShapeFunctions
        With ``additive``: a table of the function of every feature in use, which plots itself.

    Notes
    -----
    The models of all folds grow side by side and share one binned copy of the features, of a byte per value. A fold's
    held-out documents have weight 0 in it, and thresholds are chosen from all documents; no label of theirs is seen.
    The measure of all held-out queries together is looked at every 5 trees, every 10 of symmetric ones.

    A symmetric tree is grown level by level: its next split maximizes the sum of G^2 / (H + 3) over the leaves, G and H
    sums of first and second derivatives, which are scaled to a mean curvature of 1. They are rounded to integers of 20
    and 12 bits, so sums are exact, and no order of documents or threads changes a bit. NaN goes to the side where
    it does better, also alone, and counts as 0 where training had none.

    On :class:`~rankwise.Parts` symmetric trees have the same bits. Bins are written once into a folder beside the
    parts, and mapped; every level of a tree is a pass. A loss with noise, such as
    :class:`~rankwise.losses.StochasticNDCG`, raises an error: its noise depends on where a document stands among all.

    CatBoost's models grow side by side, too, on thresholds from all documents. Queries whose labels are all equal are
    left out, because they have no pairs. CatBoost saves no gains: ``feature_importances_`` are then shares in the
    variance between the leaves that splits divide, as CatBoost's own importances are. Documents are sampled by the size
    of their derivatives, and not at all if a tree would see fewer than 50.

    Document weights are those of the loss, if it takes them. Otherwise they multiply the derivatives of a document, as
    in LightGBM. There is no bound on trees from their training queries: certificates rest on a hold-out set.

    Losses of soft indicators, such as :class:`~rankwise.losses.SmoothNDCG`, are stationary where all scores are equal,
    and need a ``start``. For others ``sigmas`` without a ``start`` begin with the sigma of the loss. A width is fixed
    while it lasts, and the second derivative of a loss without ``curvature`` is taken anew at each. Chapelle and Wu
    propose boosting a smoothed measure in Section 6 and anneal linear weights in Section 4.4.

    After Ctrl-C the ranker holds the models that were finished, or else the trees that were growing, of the first fold
    if the number of trees was being searched.

    References
    ----------
    J. H. Friedman (2001). Greedy function approximation: a gradient boosting machine. Annals of Statistics 29(5),
    1189-1232. doi:10.1214/aos/1013203451.

    O. Chapelle, M. Wu (2010). Gradient descent optimization of smoothed information retrieval metrics.
    Information Retrieval 13, 216-235. doi:10.1007/s10791-009-9110-3. Sections 4.4 and 6.

    G. Ke, Q. Meng, T. Finley, T. Wang, W. Chen, W. Ma, Q. Ye, T.-Y. Liu (2017). LightGBM: a highly efficient gradient
    boosting decision tree. NIPS 30, 3149-3157.

    A. Gulin, I. Kuralenok, D. Pavlov (2011). Winning the transfer learning track of Yahoo!'s learning to rank challenge
    with YetiRank. JMLR Workshop and Conference Proceedings 14, 63-76.

    Examples
    --------
    >>> from rankwise import make_lists
    >>> queries = make_lists(60, documents=8, features=4, random_state=1)
    >>> model = BoostedRanker(trees=20, n_jobs=1).fit(queries)
    >>> model.ensemble_.n_trees == 5 * model.trees_ <= 100
    True
    """

    name = "BoostedRanker"
    takes_validation = True
    keeps_missing = True
    takes_document_weights = True

    loss: AnyLoss | None = None
    sigmas: Sequence[PositiveFloat] | None = None
    trees: Int32 = 1000
    learning_rate: Fraction | None = None
    leaves: Annotated[int, NumberRange(2, 2**31)] | None = None
    depth: Annotated[int, NumberRange(1, 16, closed="both")] | None = None
    smallest_leaf: Int32 | None = None
    row_fraction: Fraction | None = None
    feature_fraction: Fraction | None = None
    bins: Annotated[int, NumberRange(3, BINS, closed="both")] | None = None
    seeds: Int32 | None = None
    patience: PositiveInt | Literal["auto"] | None = "auto"
    folds: Folds = 5
    refit: Literal["average", "all", "train"] | None = None
    start: Literal["ridge"] | Weights | None = None
    warm_start: bool = False
    monotone: Signs | None = None
    additive: bool = False
    categorical_features: Features | None = None
    engine: Engine = "symmetric"
    random_state: Seed = 0
    missing: Missing = "keep"

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """Instances that the common tests of all rankers use."""
        lightgbm = {"engine": "lightgbm", "smallest_leaf": 2, "leaves": 4}
        return (
            cls(trees=12, folds=2, depth=3),
            cls("AP", trees=12, folds=2, seeds=2, additive=True, refit="train"),
            cls(trees=12, folds=2, seeds=2, **lightgbm),  # type: ignore[arg-type]
            cls("AP", trees=12, folds=2, seeds=1, start="ridge", additive=True, refit="train", **lightgbm),  # type: ignore[arg-type]
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    @property
    def runs_on_parts(self) -> bool:  # type: ignore[override]
        """Whether ``fit`` takes :class:`~rankwise.Parts`: with symmetric trees."""
        return self.engine == "symmetric"

    _reason_not_on_parts = "its engine needs all documents in memory, and engine='symmetric' does not"

    @property
    def learns_from_validation(self) -> bool:  # type: ignore[override]
        """Whether the final fit learns from the validation set: not with ``refit="train"``."""
        return bool(self._setting("refit") != "train")

    # ------------------------------------------------------------------------------------------- learning

    def _fit(self, queries: Queries, validation: Queries | None) -> None:
        loss = self._loss()
        sets = [queries] if validation is None else [queries, validation]
        self._refuse_document_weights_of_catboost(sets)
        categorical = self._categorical(sets)
        self._refuse_missing(sets)
        together = joined(sets)
        rng = as_random(self.random_state)
        seeds = rng.integers(0, 2**31 - 1, self._setting("seeds")).tolist()
        derivatives = self._annealed(derivatives_of(loss, together, self.n_jobs), self.trees)
        rows = self._rows(sets, categorical, seeds[0])
        parts = self._parts(together, len(queries), validation is not None, rng) if rows.splittable else []
        average = bool(parts) and self._setting("refit") == "average"
        growth = self._growth_so_far(sets)

        def keep() -> bool:
            if growth.any:
                self._take(growth)
            return growth.any

        total = (self.trees - growth.begun) * (len(seeds) + bool(parts) - average)
        bar = progress("boosting", total, enabled=None if self.verbose else False)
        with self._keep_on_interrupt(keep), bar:
            folds = [self._fold(sets, together, derivatives, part) for part in parts]
            if folds:
                models = [fold.model(rows, seeds[0], self.n_jobs) for fold in folds]
                self._refuse_stationary(folds[0], rows)
                growth.growing, growth.coef = models[0], folds[0].coef
                self._search(together, folds, models, growth, lambda: bar.advance(1))
            unjudged = self.trees if self.patience is None else min(self.trees, UNJUDGED)
            chosen = growth.curve.best if growth.curve.judged else unjudged
            growth.trees = chosen if rows.splittable else growth.begun
            if average and growth.curve.judged:
                self._average(rows, folds, models, seeds[1:], growth, bar)
            else:
                if validation is not None and self._setting("refit") == "train":
                    derivatives = derivatives.without(rows_of(together, np.arange(len(queries), len(together))))
                if not growth.curve.judged:
                    derivatives = self._annealed(derivatives, unjudged)
                earlier, lacking = growth.earlier, growth.trees - growth.begun
                growth.coef = self._start_coef(queries) if earlier is None else earlier.coef
                whole = TreeFold(derivatives, self._start_scores(sets, growth.coef, earlier), growth.coef)
                self._refuse_stationary(whole, rows)
                growth.finished += [] if lacking else [no_trees(self.n_features_in_)]
                for seed in seeds if lacking else ():
                    growth.growing = whole.model(rows, seed, self.n_jobs)
                    growth.growing.iteration = growth.begun
                    growth.finished.append(grown(growth.growing, lacking, bar))
        self._take(growth)

    def _estimate(self, queries: ChunkedQueries) -> "Estimate":
        """What a fit on these queries will cost, by the time of a tree on a chunk."""
        found = super()._estimate(queries)
        return replace(found, unit="tree", bytes=queries.n_documents * queries.n_features * self._setting("depth"))

    def _expected_passes(self, queries: "QuerySource") -> Any:
        """(a tree on a chunk, nothing, the usual number of trees, the largest)."""
        job = TreeJob(self._loss(), self._setting("depth"), self._setting("row_fraction"))
        folds = 0 if self.patience is None else 1 if len(queries.counted) > MANY else self.folds
        models = folds + (0 if folds and self._setting("refit") == "average" else 1) + self._setting("seeds") - 1
        return job, (), models * min(self.trees, USUAL_TREES), models * self.trees

    def _refuse_missing(self, sets: Sequence[Any]) -> None:
        """Raise an error for NaN that a linear start has no use for, or that parts should have been made without."""
        for one in sets:
            if self.start is not None:
                one.refuse_missing(f"{self.name} with start=")
            elif self.missing != "keep" and one.is_in_parts:
                one.refuse_missing(f"{self.name} with missing={self.missing!r}")

    def _refuse_stationary(self, fold: TreeFold, rows: "AnyRows") -> None:
        """Raise an error if trees cannot begin to learn."""
        if isinstance(fold.derivatives, PartedDerivatives):
            assert isinstance(rows, SymmetricRows)
            if rows.splittable:
                PartedRows.of(rows, fold.derivatives, fold.start, self.n_jobs).refuse_stationary()
        else:
            refuse_stationary(fold.derivatives, fold.start, self.n_jobs)

    def _growth_so_far(self, sets: Sequence[Queries]) -> TreesGrown:
        """Nothing, or with ``warm_start`` the trees of the fit before."""
        if not self.warm_start or not hasattr(self, "ensemble_"):
            return TreesGrown()
        if self.trees < self.trees_:
            raise self._wrong("trees", f"at least {self.trees_}, the trees of the fit that warm_start=True continues")
        for one in sets if self.ensemble_.refuses_missing else ():
            one.refuse_missing(f"{self.name} that began with start=")
        return TreesGrown(earlier=self.ensemble_, begun=self.trees_)

    def _fold(
        self, sets: list[Queries], together: Queries, derivatives: Derivatives, part: NDArray[np.int64]
    ) -> "TreeFold":
        """What is learned from without a part of the queries."""
        coef = self._start_coef(without_part(sets[0], part[part < len(sets[0])]))
        held = rows_of(together, part)
        return TreeFold(derivatives.without(held), self._start_scores(sets, coef), coef, part, held)

    def _search(
        self,
        together: Queries,
        folds: "list[TreeFold]",
        models: list[Growing],
        growth: "TreesGrown",
        after: Callable[[], None],
    ) -> None:
        """Find the curve of the measure on held-out parts by number of trees."""
        sizes = np.concatenate([together.sizes[fold.part] for fold in folds])
        bounds = np.append(0, np.cumsum(sizes)).astype(np.int64)
        weight = np.concatenate([together.query_weight[fold.part] for fold in folds])
        measure, labels = self._measure(), labels_of(together, np.concatenate([fold.held for fold in folds]))

        def judge(models: Sequence[Growing]) -> float:
            # every held-out row has the score of the model that did not learn from it
            held = [model.scores(fold.held) for model, fold in zip(models, folds, strict=True)]
            lists = ScoredLists(np.concatenate(held), labels, bounds)
            return weighted_mean(measure_lists([measure], lists, n_jobs=self.n_jobs)[0], weight)

        look, least = SYMMETRIC_LOOK if self.engine == "symmetric" else LOOK, folds[0].derivatives.last_change
        grow_together(models, judge, self.trees, self._setting("patience"), growth.curve, after, look, least)

    def _average(
        self,
        rows: "AnyRows",
        folds: "list[TreeFold]",
        models: list[Growing],
        seeds: list[int],
        growth: "TreesGrown",
        bar: progress,
    ) -> None:
        """Take the models of the folds with the number of trees that was found, and grow as many of other seeds."""
        coefs = [fold.coef for fold in folds if fold.coef is not None]
        growth.coef = np.mean(coefs, axis=0) if coefs else None
        growth.finished += [model.ensemble().first(growth.trees) for model in models]
        for seed in seeds if growth.trees else ():
            growth.finished += [grown(fold.model(rows, seed, self.n_jobs), growth.trees) for fold in folds]
            bar.advance(self.trees)

    def _take(self, growth: "TreesGrown") -> None:
        """Set the state: the finished seeds, or what was growing when the fit was stopped."""
        curve, before = growth.curve, 0 if growth.earlier is None else growth.earlier.n_trees
        self.ensemble_ = growth.ensemble
        self.trees_ = growth.trees if growth.finished else growth.begun + self.ensemble_.n_trees - before
        self.__dict__.pop("shapes_", None)
        means = curve.means if curve.judged else np.full(len(curve.values), np.nan)
        self._set_history({"trees": curve.trees, "validation": curve.values, "mean of three": means})

    def _set_history(self, columns: Mapping[str, Any]) -> None:
        title = f"{self.name}: {self._measure().title} of held-out queries"
        typed = {name: np.asarray(columns[name], dtype=kind) for name, kind in _HISTORY.items()}
        self.history_ = History(typed, ("validation", "mean of three"), title)

    # ------------------------------------------------------------------------------------------- parameters

    @classmethod
    def _parameters_from_file(cls, found: dict[str, Any]) -> dict[str, Any]:
        """Files of before hold parameters that their engine does not have, and ignored."""
        engine = found.setdefault("engine", "lightgbm")
        owners = {name for settings in DEFAULTS.values() for name in settings} - set(DEFAULTS.get(engine, ()))
        return {name: None if name in owners else value for name, value in found.items()}

    def _setting(self, name: str) -> Any:
        """A parameter, or the engine's own value of it."""
        value = getattr(self, name)
        usual = "auto" if name == "patience" else None
        return DEFAULTS[self.engine][name] if value == usual else value

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for owner, settings in DEFAULTS.items():
            for name in settings.keys() - DEFAULTS[self.engine].keys():
                if getattr(self, name) is not None:
                    raise self._wrong(name, f"None for engine={self.engine!r}: it belongs to engine={owner!r}")
        if self.engine == "symmetric" and self.depth is not None and self.depth > DEEPEST:
            raise self._wrong("depth", f"at most {DEEPEST} for engine='symmetric'")
        if self.engine == "symmetric" and self.additive and self.depth is not None and self.depth > 2:
            raise self._wrong("depth", "1 or 2 with additive=True")
        if self.start is not None and self.monotone:
            raise self._wrong("monotone", "None if start= is given: it constrains the trees, not the linear scores")
        if self.sigmas is not None and not isinstance(self.loss, SmoothedMeasure):
            raise self._wrong("sigmas", "None unless loss= is a smoothed measure, such as losses.SmoothNDCG()")
        if self.sigmas is not None and sorted(self.sigmas, reverse=True) != list(self.sigmas):
            raise self._wrong("sigmas", "a decreasing sequence")
        if self.warm_start and self.patience is not None:
            raise self._wrong("patience", "None with warm_start=True: its trees have seen what a search would hold out")
        if self.warm_start and self.sigmas is not None:
            raise self._wrong("sigmas", "None with warm_start=True: their widths share a number of trees that is known")
        if self.warm_start and self.engine == "catboost":
            raise self._wrong("warm_start", "False for engine='catboost': its trees start from equal scores")
        if self.engine == "catboost":
            for name, why in (
                ("loss", "YetiRank is a loss of its own"),
                ("start", "its trees start from equal scores"),
                ("categorical_features", "encode categories as numbers, for example by a FeatureBuilder"),
            ):
                if getattr(self, name) is not None:
                    raise self._wrong(name, f"None for engine='catboost': {why}")

    def _loss(self) -> Loss:
        """The loss that is minimized."""
        if self.loss is not None:
            return self.loss
        if self.engine == "symmetric":
            return GradedPairs()
        measure = self._measure()
        if not isinstance(measure, NDCG):
            return StochasticNDCG()
        return StochasticNDCG(k=measure.cutoff or 10, gain=measure.gain, discount=measure.discount)

    def _annealed(self, derivatives: Any, trees: int) -> Any:
        """The derivatives, at widths that shrink over so many trees if there are ``sigmas``."""
        if self.sigmas is None:
            return derivatives
        if isinstance(derivatives, PartedDerivatives):
            return derivatives.over(self.sigmas, trees)
        return AnnealedDerivatives.over(derivatives, self.sigmas, trees)

    def _refuse_document_weights_of_catboost(self, sets: Sequence[Queries]) -> None:
        """Raise an error for document weights, which YetiRank does not have."""
        if self.engine == "catboost" and any(queries.has_document_weights for queries in sets):
            raise DataError(
                f"{self.name}(engine='catboost') takes no document weights, because YetiRank weights queries alone: "
                "omit them, or use engine='lightgbm'"
            )

    def _rows(self, sets: Sequence[Queries], categorical: Sequence[int], seed: int = 0) -> "AnyRows":
        """The features as the engine takes them."""
        if self.engine == "symmetric":
            bins = self._setting("bins")
            return SymmetricRows.of(sets, self._growth(categorical), categorical, bins, seed, self.n_jobs)
        if self.engine == "lightgbm":
            return BinnedRows.of(sets, self._params(), categorical, self.n_jobs)
        from rankwise.rankers.boosting.catboost import QuantizedRows

        return QuantizedRows.of(sets, self._catboost_params(), self.n_jobs)

    def _growth(self, categorical: Sequence[int]) -> TreeGrowth:
        """How symmetric trees are grown."""
        signs = self._signs() if self.monotone else []
        ordered = [number for number in categorical if signs and signs[number]]
        if ordered:
            raise DataError(
                f"monotone takes numbers, and feature {ordered[0]} has categories: omit it from one of both"
            )
        return TreeGrowth(
            learning_rate=self._setting("learning_rate"),
            depth=1 if self.additive and self.depth is None else self._setting("depth"),
            row_fraction=self._setting("row_fraction"),
            feature_fraction=self._setting("feature_fraction"),
            signs=signs,
            one_feature=self.additive,
        )

    def _catboost_params(self) -> dict[str, Any]:
        """The parameters of CatBoost."""
        found: dict[str, Any] = {
            "learning_rate": self._setting("learning_rate"),
            "depth": 1 if self.additive else self._setting("depth"),
            "rsm": self._setting("feature_fraction"),
        }
        share = self._setting("row_fraction")
        found |= {"bootstrap_type": "MVS", "subsample": share} if share < 1 else {"bootstrap_type": "No"}
        return found | ({"monotone_constraints": self._signs()} if self.monotone else {})

    def _params(self) -> dict[str, Any]:
        """The parameters of LightGBM."""
        found: dict[str, Any] = {
            "learning_rate": self._setting("learning_rate"),
            "num_leaves": 2 if self.additive else self._setting("leaves"),
            "min_data_in_leaf": self._setting("smallest_leaf"),
            "bagging_fraction": self._setting("row_fraction"),
            "bagging_freq": 1,
            "feature_fraction": self._setting("feature_fraction"),
        }
        return found | ({"monotone_constraints": self._signs()} if self.monotone else {})

    def _signs(self) -> list[int]:
        """The direction that the score must keep with each feature, or 0."""
        signs = [0] * self.n_features_in_
        for given, sign in dict(self.monotone or {}).items():
            signs[self._number_of(given, "monotone")] = int(sign)
        return signs

    def _number_of(self, given: Any, what: str) -> int:
        """The number of a feature that is given by its name or number."""
        names = self._names()
        if isinstance(given, str):
            if names is None or given not in names:
                raise DataError(f"{what} must name features of the training queries, got {given!r:.60}")
            return names.index(given)
        return checks.as_whole(given, f"a feature of {what}", 0, self.n_features_in_ - 1)

    def _categorical(self, sets: Sequence[Queries]) -> list[int]:
        """The numbers of the categorical features, whose values are checked."""
        if self.categorical_features is None:
            return []
        numbers = [self._number_of(given, "categorical_features") for given in self.categorical_features]
        for number in numbers:
            for queries in () if in_parts(sets) else sets:  # those of parts are checked while they are read
                refuse_odd_codes(number, np.asarray(queries.X[:, number]), " at row {:,}")
        return numbers

    def _parts(
        self, together: Queries, n_train: int, validated: bool, rng: np.random.Generator
    ) -> list[NDArray[np.int64]]:
        """The parts of the queries that are held out in turn; none if the number of trees is given."""
        if self.patience is None:
            return []
        counted = together.counted
        if validated and self._setting("refit") == "train":
            held = counted[counted >= n_train]
            return [held] if len(held) else []
        order = rng.permutation(counted)
        if len(order) < 2:
            return []
        if len(order) > MANY:
            return [np.sort(order[: min(MANY, len(order) // self.folds)])]
        return [np.sort(part) for part in np.array_split(order, min(self.folds, len(order)))]

    def _start_coef(self, queries: Queries) -> Vector | None:
        """The weights of the linear start, learned from these queries where it is learned."""
        if self.start is None:
            return None
        if isinstance(self.start, str):
            return RidgeRanker(self.measure, n_jobs=self.n_jobs).fit(queries).coef_
        return raw_weights(self.start, self.n_features_in_, "start")

    def _start_scores(self, sets: Sequence[Queries], coef: Vector | None, earlier: TreeEnsemble | None = None) -> Any:
        if in_parts(sets):
            return start_of_blocks(coef, earlier)
        if earlier is not None:
            return np.concatenate([one.in_query_order(earlier.scores_while_grown(one.X, self.n_jobs)) for one in sets])
        if coef is None:
            return None
        return np.concatenate([one.in_query_order(linear_scores(one.X, coef, self.n_jobs)) for one in sets])

    # ------------------------------------------------------------------------------------------- scores

    def _scores(self, X: Floats) -> Vector:
        if self.ensemble_.refuses_missing:
            checks.refuse_missing(X, f"{self.name} with start=")
        return self.ensemble_.predict(X, self.n_jobs)

    def _contributions(self, X: Floats) -> tuple[NDArray[np.float64], float] | None:
        found = self.ensemble_.contributions(X, self.n_jobs)
        return found[:, :-1], float(found[0, -1]) if len(found) else 0.0

    @property
    def feature_importances_(self) -> Vector:
        """The share of each feature in the gains of all splits; 0 throughout if there are none."""
        self._check_fitted()
        return self.ensemble_.gain_shares()

    @cached_property
    def shapes_(self) -> "ShapeFunctions":
        """What each feature adds to the score by its value, with ``additive``."""
        self._check_fitted()
        return ShapeFunctions.of(self.ensemble_, self._names())

    # ------------------------------------------------------------------------------------------- saving

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        facts = {"trees": self.trees_, "features": self.n_features_in_}
        return facts, {**history_arrays(self.history_), **self.ensemble_.arrays()}

    def _restore(self, facts: Mapping[str, Any], store: Store) -> None:
        self._check_parameters()
        if facts["features"] != self.n_features_in_:
            raise RankwiseError(f"its trees are on {facts['features']!r:.20} features of {self.n_features_in_}")
        self.trees_ = checks.as_whole(facts["trees"], "its number of trees", 0)
        self.ensemble_ = TreeEnsemble.from_arrays(store, self.n_features_in_)
        self._set_history(read_history(store, _HISTORY))
