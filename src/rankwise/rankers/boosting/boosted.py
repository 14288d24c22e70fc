"""BoostedRanker: gradient boosted trees on any loss of the package, stopped by the measure itself.

LightGBM (:mod:`rankwise.rankers.boosting.growing`) or CatBoost (:mod:`rankwise.rankers.boosting.catboost`)
grows the trees; what is kept is a :class:`~rankwise.rankers.boosting.tree_ensemble.TreeEnsemble`, so that a fitted
ranker scores, explains itself and is saved without either.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, cast

import numpy as np
from numpy.typing import NDArray

from rankwise._figures import COLORS, PlottedTable
from rankwise._parameters import Fraction, Int32, NumberRange, PositiveInt, Seed, as_random
from rankwise._progress import progress
from rankwise._store import Store
from rankwise.errors import DataError, RankwiseError
from rankwise.losses import StochasticNDCG
from rankwise.losses._base import Loss
from rankwise.measures.compute import ScoredLists, measure_lists
from rankwise.measures.ndcg import NDCG
from rankwise.queries import checks
from rankwise.queries.checks import Floats, Missing
from rankwise.queries.queries import Queries
from rankwise.rankers._base import Ranker, linear_scores
from rankwise.rankers._history import History, history_arrays, read_history
from rankwise.rankers._model_selection import MANY, Folds, weighted_mean
from rankwise.rankers._parameters import AnyLoss, Features, Signs, Weights, raw_weights
from rankwise.rankers.boosting.growing import (
    UNJUDGED,
    BinnedRows,
    Growing,
    TreeCurve,
    grow_together,
    joined,
    no_trees,
    refuse_stationary,
    rows_of,
)
from rankwise.rankers.boosting.objectives import Derivatives
from rankwise.rankers.boosting.tree_ensemble import TreeEnsemble
from rankwise.rankers.linear.ridge import RidgeRanker

if TYPE_CHECKING:
    from rankwise.rankers.boosting.catboost import QuantizedRows

Vector = NDArray[np.float64]

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
        :class:`~rankwise.losses.StochasticNDCG` with the gain, discount and cut-off of the measure where it is an
        NDCG@k, and NDCG@10 otherwise. A loss without ``curvature`` has a constant one, see
        :func:`rankwise.boosting.objective`.
    trees : int, default=1000
        The largest number of trees per seed.
    learning_rate : float, default=0.08
        The share of a step that is taken.
    leaves : int, default=15
        The largest number of leaves of a tree, with LightGBM.
    depth : int, default=6
        The number of levels of a tree, with CatBoost: all nodes of a level ask the same question, and there are up to
        2^depth leaves.
    smallest_leaf : int, default=20
        The smallest number of documents in a leaf, as LightGBM estimates it; CatBoost has no such limit.
    row_fraction : float, default=0.8
        The share of the documents that each tree is grown on.
    feature_fraction : float, default=0.5
        The share of the features that each tree, with CatBoost each level, may split on.
    seeds : int, default=3
        Number of models that are averaged; they differ in the rows, features and noise that they draw.
    patience : int, default=60
        Trees without a better measure after which the search for their number ends; None grows ``trees`` trees and
        searches nothing.
    folds : int, default=5
        Number of parts of the queries that are held out in turn to find the number of trees. Of more than 2,000
        queries a single part is held out, of at most 2,000.
    refit : {"all", "train"}, default="all"
        What happens with a validation set. "all": it joins the training queries, parts of both are held out in turn,
        and the final trees are grown on both. "train": it selects the number of trees, which are grown on the training
        queries alone.
    start : "ridge", fitted linear ranker, or array of shape (n_features,), default=None
        Linear scores that the trees are added to: of a :class:`~rankwise.RidgeRanker` on the training queries (those
        that are not held out, where parts are), or given. They are part of the model.
    monotone : mapping of str or int to {-1, 1}, default=None
        Features, by name or number, that the score must not fall (1) or rise (-1) with.
    additive : bool, default=False
        Whether every tree has a single split: the score is then a sum of functions of single features, see
        ``shapes_``.
    categorical_features : sequence of str or int, default=None
        Features, by name or number, whose values are codes of categories, whole numbers from 0; the trees split them
        into sets. Categories that the training queries do not have go with the larger side's others.
    engine : {"lightgbm", "catboost"}, default="lightgbm"
        What grows the trees. "catboost" is CatBoost's YetiRank, which has a loss of its own: it takes no ``loss``,
        ``start``, ``categorical_features`` and document weights.
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
        The trees of all seeds, and the linear start if there is one.
    trees_ : int
        Number of trees per seed that was selected.
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
    held-out documents have weight 0 in it, and LightGBM chooses thresholds from all documents; no label of theirs is
    seen. The measure of all held-out queries together is looked at every 5 trees.

    CatBoost's models grow side by side, too, on thresholds from all documents. Queries whose labels are all equal are
    left out, because they have no pairs. CatBoost saves no gains: ``feature_importances_`` are then shares in the
    variance between the leaves that splits divide, as CatBoost's own importances are. Documents are sampled by the size
    of their derivatives, and not at all if a tree would see fewer than 50.

    Document weights are those of the loss, if it takes them. Otherwise they multiply the derivatives of a document, as
    in LightGBM. There is no bound on trees from their training queries: certificates rest on a hold-out set.

    After Ctrl-C the ranker holds the seeds that were finished, or else the trees that were growing.

    References
    ----------
    J. H. Friedman (2001). Greedy function approximation: a gradient boosting machine. Annals of Statistics 29(5),
    1189-1232. doi:10.1214/aos/1013203451.

    G. Ke, Q. Meng, T. Finley, T. Wang, W. Chen, W. Ma, Q. Ye, T.-Y. Liu (2017). LightGBM: a highly efficient gradient
    boosting decision tree. NIPS 30, 3149-3157.

    A. Gulin, I. Kuralenok, D. Pavlov (2011). Winning the transfer learning track of Yahoo!'s learning to rank challenge
    with YetiRank. JMLR Workshop and Conference Proceedings 14, 63-76.

    Examples
    --------
    >>> from rankwise import make_lists
    >>> queries = make_lists(60, documents=8, features=4, random_state=1)
    >>> model = BoostedRanker(trees=20, seeds=1, n_jobs=1).fit(queries)
    >>> model.ensemble_.n_trees == model.trees_ <= 20
    True
    """

    name = "BoostedRanker"
    takes_validation = True
    keeps_missing = True
    takes_document_weights = True

    loss: AnyLoss | None = None
    trees: Int32 = 1000
    learning_rate: Fraction = 0.08
    leaves: Annotated[int, NumberRange(2, 2**31)] = 15
    depth: Annotated[int, NumberRange(1, 16, closed="both")] = 6
    smallest_leaf: Int32 = 20
    row_fraction: Fraction = 0.8
    feature_fraction: Fraction = 0.5
    seeds: Int32 = 3
    patience: PositiveInt | None = 60
    folds: Folds = 5
    refit: Literal["all", "train"] = "all"
    start: Literal["ridge"] | Weights | None = None
    monotone: Signs | None = None
    additive: bool = False
    categorical_features: Features | None = None
    engine: Literal["lightgbm", "catboost"] = "lightgbm"
    random_state: Seed = 0
    missing: Missing = "keep"

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """Instances that the common tests of all rankers use."""
        small = {"trees": 12, "smallest_leaf": 2, "leaves": 4, "folds": 2}
        return (
            cls(seeds=2, **small),  # type: ignore[arg-type]
            cls("AP", start="ridge", seeds=1, additive=True, refit="train", **small),  # type: ignore[arg-type]
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    @property
    def learns_from_validation(self) -> bool:  # type: ignore[override]
        """Whether the final fit learns from the validation set: with ``refit="all"``."""
        return self.refit == "all"

    # ------------------------------------------------------------------------------------------- learning

    def _fit(self, queries: Queries, validation: Queries | None) -> None:
        loss = self._loss()
        sets = [queries] if validation is None else [queries, validation]
        self._refuse_document_weights_of_catboost(sets)
        categorical = self._categorical(sets)
        for one in sets if self.start is not None else ():
            one.refuse_missing(f"{self.name} with start=")
        together = joined(sets)
        rng = as_random(self.random_state)
        seeds = rng.integers(0, 2**31 - 1, self.seeds).tolist()
        derivatives = Derivatives.of(loss, together, self.n_jobs)
        rows = self._rows(sets, categorical)
        parts = self._parts(together, len(queries), validation is not None, rng) if rows.splittable else []
        growth = TreesGrown()

        def keep() -> bool:
            if growth.any:
                self._take(growth)
            return growth.any

        total = self.trees * (bool(parts) + self.seeds)
        bar = progress("boosting", total, enabled=None if self.verbose else False)
        with self._keep_on_interrupt(keep), bar:
            if parts:
                self._search(sets, together, derivatives, rows, parts, seeds[0], growth, lambda: bar.advance(1))
            if validation is not None and self.refit == "train":
                derivatives = derivatives.without(rows_of(together, np.arange(len(queries), len(together))))
            growth.coef = self._start_coef(queries)
            start = self._start_scores(sets, growth.coef)
            refuse_stationary(derivatives, start, self.n_jobs)
            unjudged = self.trees if self.patience is None else min(self.trees, UNJUDGED)
            growth.trees = 0 if not rows.splittable else growth.curve.best if growth.curve.judged else unjudged
            growth.finished += [] if growth.trees else [no_trees(self.n_features_in_)]
            for seed in seeds if growth.trees else ():
                model = rows.model(_with_seed(derivatives, seed), seed, start, self.n_jobs)
                growth.growing = model
                for _ in range(growth.trees):
                    model.grow()
                    bar.advance(1)
                growth.finished.append(model.ensemble())
        self._take(growth)

    def _search(
        self,
        sets: list[Queries],
        together: Queries,
        derivatives: Derivatives,
        rows: "BinnedRows | QuantizedRows",
        parts: list[NDArray[np.int64]],
        seed: int,
        growth: "TreesGrown",
        after: Callable[[], None],
    ) -> None:
        """Find the curve of the measure on held-out parts by number of trees."""
        places = [rows_of(together, part) for part in parts]
        models: list[Growing] = []
        for part, own in zip(parts, places, strict=True):
            coef = self._start_coef(_without(sets[0], part[part < len(sets[0])]))
            start = self._start_scores(sets, coef)
            models.append(rows.model(_with_seed(derivatives.without(own), seed), seed, start, self.n_jobs))
            if len(models) == 1:
                growth.growing, growth.coef = models[0], coef
        sizes = np.concatenate([together.sizes[part] for part in parts])
        order, bounds = np.concatenate(places), np.append(0, np.cumsum(sizes)).astype(np.int64)
        weight = np.concatenate([together.query_weight[part] for part in parts])
        measure, labels = self._measure(), together.labels()

        def judge(scores: Sequence[Vector]) -> float:
            # every held-out row has the score of the model that did not learn from it
            held = np.zeros(len(labels))
            for score, own in zip(scores, places, strict=True):
                held[own] = score[own]
            lists = ScoredLists(held, labels, bounds, order)
            return weighted_mean(measure_lists([measure], lists, n_jobs=self.n_jobs)[0], weight)

        patience = cast(int, self.patience)  # there are parts only if it is a number
        grow_together(models, judge, self.trees, patience, growth.curve, after)

    def _take(self, growth: "TreesGrown") -> None:
        """Set the state: the finished seeds, or what was growing when the fit was stopped."""
        curve = growth.curve
        found = growth.finished or [growth.growing.ensemble()]  # type: ignore[union-attr]
        self.trees_ = growth.trees if growth.finished else found[0].n_trees
        self.ensemble_ = replace(TreeEnsemble.concat(found), coef=growth.coef)
        self.__dict__.pop("shapes_", None)
        means = curve.means if curve.judged else np.full(len(curve.values), np.nan)
        self._set_history({"trees": curve.trees, "validation": curve.values, "mean of three": means})

    def _set_history(self, columns: Mapping[str, Any]) -> None:
        title = f"{self.name}: {self._measure().title} of held-out queries"
        typed = {name: np.asarray(columns[name], dtype=kind) for name, kind in _HISTORY.items()}
        self.history_ = History(typed, ("validation", "mean of three"), title)

    # ------------------------------------------------------------------------------------------- parameters

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.start is not None and self.monotone:
            raise self._wrong("monotone", "None if start= is given: it constrains the trees, not the linear scores")
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
        measure = self._measure()
        if not isinstance(measure, NDCG):
            return StochasticNDCG()
        return StochasticNDCG(k=measure.cutoff or 10, gain=measure.gain, discount=measure.discount)

    def _refuse_document_weights_of_catboost(self, sets: Sequence[Queries]) -> None:
        """Raise an error for document weights, which YetiRank does not have."""
        if self.engine == "catboost" and any(queries.has_document_weights for queries in sets):
            raise DataError(
                f"{self.name}(engine='catboost') takes no document weights, because YetiRank weights queries alone: "
                "omit them, or use engine='lightgbm'"
            )

    def _rows(self, sets: Sequence[Queries], categorical: Sequence[int]) -> "BinnedRows | QuantizedRows":
        """The features as the engine takes them."""
        if self.engine == "lightgbm":
            return BinnedRows.of(sets, self._params(), categorical, self.n_jobs)
        from rankwise.rankers.boosting.catboost import QuantizedRows

        return QuantizedRows.of(sets, self._catboost_params(), self.n_jobs)

    def _catboost_params(self) -> dict[str, Any]:
        """The parameters of CatBoost."""
        found: dict[str, Any] = {
            "learning_rate": self.learning_rate,
            "depth": 1 if self.additive else self.depth,
            "rsm": self.feature_fraction,
        }
        sampled = {"bootstrap_type": "MVS", "subsample": self.row_fraction}
        found |= sampled if self.row_fraction < 1 else {"bootstrap_type": "No"}
        return found | ({"monotone_constraints": self._signs()} if self.monotone else {})

    def _params(self) -> dict[str, Any]:
        """The parameters of LightGBM."""
        found: dict[str, Any] = {
            "learning_rate": self.learning_rate,
            "num_leaves": 2 if self.additive else self.leaves,
            "min_data_in_leaf": self.smallest_leaf,
            "bagging_fraction": self.row_fraction,
            "bagging_freq": 1,
            "feature_fraction": self.feature_fraction,
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
            for queries in sets:
                codes = queries.X[:, number]
                odd = ~np.isnan(codes) & ((codes < 0) | (codes != np.rint(codes)) | (codes >= 2**31 - 1))
                if odd.any():
                    raise DataError(
                        f"categories of feature {number} must be non-negative integers, got {codes[odd][0]:g} at row "
                        f"{int(np.argmax(odd)):,}"
                    )
        return numbers

    def _parts(
        self, together: Queries, n_train: int, validated: bool, rng: np.random.Generator
    ) -> list[NDArray[np.int64]]:
        """The parts of the queries that are held out in turn; none if the number of trees is given."""
        if self.patience is None:
            return []
        counted = together.counted
        if validated and self.refit == "train":
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

    def _start_scores(self, sets: Sequence[Queries], coef: Vector | None) -> Vector | None:
        if coef is None:
            return None
        return np.concatenate([one.in_query_order(linear_scores(one.X, coef, self.n_jobs)) for one in sets])

    # ------------------------------------------------------------------------------------------- scores

    def _scores(self, X: Floats) -> Vector:
        if self.ensemble_.coef is not None:
            checks.refuse_missing(X, f"{self.name} with start=")
        return self.ensemble_.predict(X, self.n_jobs)

    def _contributions(self, X: Floats) -> tuple[NDArray[np.float64], float] | None:
        found = self.ensemble_.contributions(X, self.n_jobs)
        return found[:, :-1], float(found[0, -1]) if len(found) else 0.0

    @property
    def feature_importances_(self) -> Vector:
        """The share of each feature in the gains of all splits; 0 throughout if there are none."""
        self._check_fitted()
        gain = self.ensemble_.importance("gain")
        total = math.fsum(gain)
        return gain / total if total else gain

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


@dataclass
class TreesGrown:
    """A fit under way; after Ctrl-C the ranker takes from it what is there.

    Attributes
    ----------
    curve : TreeCurve
        The measure by number of trees.
    trees : int
        Number of trees per seed.
    coef : ndarray of shape (n_features,), or None
        The linear start of what is growing.
    growing : Growing or None
        The model of a seed, or of the first fold before the number of trees is known.
    finished : list of TreeEnsemble
        The finished seeds.
    """

    curve: TreeCurve = field(default_factory=TreeCurve)
    trees: int = 0
    coef: Vector | None = None
    growing: Growing | None = None
    finished: list[TreeEnsemble] = field(default_factory=list)

    @property
    def any(self) -> bool:
        """Whether there is a tree."""
        return bool(self.finished) or (self.growing is not None and self.growing.iteration > 0)


def _without(queries: Queries, part: NDArray[np.int64]) -> Queries:
    """The queries with a weight of 0 for a part of them, unless nothing else has a weight."""
    weight = queries.query_weight.copy()
    weight[part] = 0.0
    return queries.with_weight(weight) if len(part) and weight.any() else queries


def _with_seed(derivatives: Derivatives, seed: int) -> Derivatives:
    """The same with the noise of another seed, for a loss that draws some."""
    loss = derivatives.lists.loss
    if not loss.noisy:
        return derivatives
    drawn = replace(loss, random_state=seed)  # type: ignore[call-arg]
    return replace(derivatives, lists=replace(derivatives.lists, loss=drawn))


class ShapeFunctions(PlottedTable):
    """What each feature adds to the score, by its value: one row per interval between thresholds.

    Columns: feature, above (the threshold before, -inf for the first), to (the threshold that ends the interval,
    included), adds.

    Parameters
    ----------
    columns : mapping of str to array-like
        The columns.
    title : str
        The title of the drawing.
    """

    __slots__ = ()

    @classmethod
    def of(cls, ensemble: TreeEnsemble, names: Sequence[str] | None) -> "ShapeFunctions":
        """The functions of all features that an additive ensemble splits on."""
        columns: dict[str, list[Any]] = {"feature": [], "above": [], "to": [], "adds": []}
        for number in np.unique(ensemble.feature).tolist():
            shape = ensemble.shape_function(number)
            columns["feature"] += [str(number) if names is None else names[number]] * len(shape.values)
            columns["above"] += [-math.inf, *shape.thresholds.tolist()]
            columns["to"] += [*shape.thresholds.tolist(), math.inf]
            columns["adds"] += shape.values.tolist()
        return cls(columns, "what each feature adds to the score")

    def _draw(self, axes: Any) -> None:
        feature = np.array(self["feature"])
        for name, color in zip(dict.fromkeys(feature.tolist()), COLORS, strict=False):
            own = feature == name
            inner = np.array(self["to"])[own][:-1]
            adds = np.array(self["adds"])[own]
            width = (inner[-1] - inner[0]) or 1.0
            edges = [inner[0] - 0.1 * width, *inner, inner[-1] + 0.1 * width]
            axes.stairs(adds, edges, baseline=None, color=color, label=name)
        axes.set(xlabel="value of the feature", ylabel="adds")
        axes.legend()
