"""`HybridRanker`: the weights of BM25, vector and other scores in hybrid search, learned for a measure.

The best weights on the simplex are searched by a grid and then by moves between pairs of weights (:func:`search`).
Weights are whole hundredths. A measure is piecewise constant in them: its gradients are 0, but there are few
dimensions, and every candidate is measured exactly. With two columns all 101 candidates are measured. With more, a grid
comes first, and then moves of 10, 5, 2 and 1 hundredths from one weight to another, from each of the best candidates,
until none improves the mean. At last the surroundings of the best are measured, so that draws of the queries (the
bootstrap) find their own best weights there. Of more than six columns, the six that rank best alone share the weight.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, permutations
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from rankwise._figures import COLORS, FAINT, PlottedTable
from rankwise._parameters import NonNegativeFloat, NumberRange, Seed, as_random
from rankwise._progress import progress
from rankwise._store import Store
from rankwise._tables import Table
from rankwise.errors import DataError, RankwiseError
from rankwise.measures.compute import PreparedMeasure, ScoredLists, measure_lists
from rankwise.queries import checks
from rankwise.queries.checks import Missing
from rankwise.queries.queries import Queries
from rankwise.queries.selection import Query
from rankwise.rankers import _inputs as inputs
from rankwise.rankers._base import Ranker
from rankwise.rankers._model_selection import weighted_mean
from rankwise.rankers.fusion.normalizers import Engine, Fusion, Normalizer, present

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
_LEVEL = 0.95
_EDGES = ((1 - _LEVEL) / 2, (1 + _LEVEL) / 2)


@dataclass(eq=False, repr=False, kw_only=True)
class HybridRanker(Ranker):
    r"""Hybrid search: a weighted mean of scores that are normalized within each query.

    .. math:: s(d) = \sum_j w_j \, n(x_j(d)), \quad w_j \ge 0, \quad \sum_j w_j = 1.

    Every feature is the score of one sub-query: BM25, a vector field, a sparse encoder ... NaN marks a document that
    the sub-query did not return. n normalizes a column within the query as search engines do it
    (:mod:`rankwise.rankers.fusion.normalizers`). The weights are those of the largest mean measure over the training
    queries, among weights of whole hundredths. It is made for two to six columns; of more, the six that rank best alone
    share the weight.

    Parameters
    ----------
    measure : str or Measure, default="nDCG@10"
        The measure that the weights are chosen for.
    normalizer : {"min_max", "l2", "z_score", "rrf", "none"}, default="min_max"
        What each column is put through within a query; "rrf" is 1 / (rank_constant + rank), and gives reciprocal rank
        fusion with weights.
    engine : {"opensearch", "elasticsearch", "vespa", "solr"}, default=None
        Whose rules decide equal scores and documents that a sub-query did not return; None: the textbook's.
    combination : {"arithmetic_mean", "geometric_mean", "harmonic_mean"}, default="arithmetic_mean"
        The weighted mean; the latter two are OpenSearch's.
    rank_constant : int, default=60
        The constant of "rrf".
    weights : "equal" or sequence of float, default=None
        Weights that are fixed instead of learned, 0 or more and of sum 1: "equal" is the baseline to compare with.
    bootstrap : int, default=1000
        How often the queries are drawn again for ``intervals_``; 0 leaves the intervals out.
    n_jobs : int, default=None
        Number of threads; None uses all cores. The result does not depend on it.
    verbose : bool, default=False
        Whether to show a progress bar on a terminal.
    missing : {"error", "zero", "min", "keep"}, default="keep"
        What ``fit`` and ``predict`` do with NaN in arrays. "keep": the sub-query did not return the document.
    random_state : int or numpy.random.Generator, default=0
        Seed of the draws of the bootstrap. It does not change the weights.

    Attributes
    ----------
    weights_ : ndarray of shape (n_features,)
        The weights, 0 or more and of sum 1. Of several that reach the largest mean, those nearest to equal weights.
    intervals_ : Table
        Per column the weight and the ends of its 95% percentile interval over draws of the training queries with
        replacement: how much the weights would change with other queries. NaN without learning or bootstrap.
    curve_ : WeightCurve
        With two columns: the mean measure against the weight of the first, which draws itself. Absent otherwise.

    Notes
    -----
    ``predict`` needs the grouping unless ``normalizer="none"``: it takes `Queries` or one `Query`, and a `Scorer` takes
    the documents of one query per call. Ties of raw scores have the ranks of their order of rows under "rrf".

    References
    ----------
    G. V. Cormack, C. L. A. Clarke and S. Buettcher (2009). Reciprocal rank fusion outperforms Condorcet and individual
    rank learning methods. SIGIR 2009, 758-759. doi:10.1145/1571941.1572114

    S. Bruch, S. Gai and A. Ingber (2023). An analysis of fusion functions for hybrid retrieval. ACM Transactions on
    Information Systems 42(1), 20. doi:10.1145/3596512

    Examples
    --------
    >>> from rankwise.synthetic import make_hybrid
    >>> queries = make_hybrid(100, random_state=1)
    >>> model = HybridRanker(engine="opensearch", bootstrap=200).fit(queries)
    >>> float(model.weights_.sum())
    1.0
    >>> bool(model.weights_[1] > model.weights_[0])  # the vectors are the better column here
    True
    """

    name = "HybridRanker"
    keeps_missing = True

    normalizer: Normalizer = "min_max"
    engine: Engine | None = None
    combination: Literal["arithmetic_mean", "geometric_mean", "harmonic_mean"] = "arithmetic_mean"
    rank_constant: Annotated[int, NumberRange(1, 10_000, closed="both")] = 60
    weights: Literal["equal"] | Sequence[NonNegativeFloat] | None = None
    bootstrap: Annotated[int, NumberRange(0, 1_000_000, closed="both")] = 1000
    missing: Missing = "keep"
    random_state: Seed = 0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._fusion().check()

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """Instances that the common tests run on."""
        return (cls(bootstrap=20), cls(normalizer="none", bootstrap=0), cls(normalizer="rrf", weights="equal"))

    @property
    def scores_by_query(self) -> bool:  # type: ignore[override]
        """Whether a score depends on the other documents of the query."""
        return self._fusion().by_query

    # ------------------------------------------------------------------------------------------- learning

    def _fit(self, queries: Queries, validation: Queries | None) -> None:
        if validation is not None:
            raise DataError(f"{self.name} does no model selection: omit the validation set")
        fusion, measure = self._fusion(), self._measure()
        self.__dict__.pop("curve_", None)
        fixed = self._fixed_weights(queries.n_features)
        if fixed is not None:
            self.weights_, self.intervals_ = fixed, self._table(fixed, np.full((len(fixed), 2), np.nan))
            return
        rows, start = queries.rows, queries.start
        parts, labels = fusion.normalize(queries.X[rows], start), queries.labels()[rows]
        prepared, weight = PreparedMeasure.of(measure, labels, start), queries.query_weight

        def values_of(weights: Vector) -> Vector:
            lists = ScoredLists(fusion.combine(parts, weights, self.n_jobs), labels, start)
            return np.asarray(measure_lists([prepared], lists, n_jobs=self.n_jobs)[0])

        candidates = WeightCandidates(values_of, lambda values: weighted_mean(values, weight))
        shown = None if self.verbose else False
        with progress(self.name, grid_size(queries.n_features), enabled=shown) as bar:
            search(candidates, queries.n_features, lambda: bar.advance(1))
        weights, values, means = candidates.arrays()
        self.weights_ = weights[first_of_the_best(means)]
        chosen, drawn = self._draw_bootstrap(weights, values, weight)
        ends = _ends(weights[chosen]) if len(chosen) else np.full((len(self.weights_), 2), np.nan)
        self.intervals_ = self._table(self.weights_, ends)
        if queries.n_features == 2:
            order = np.argsort(weights[:, 0])
            band = _ends(drawn) if len(chosen) else np.full((len(means), 2), np.nan)
            self.curve_ = self._curve(np.column_stack((weights[:, 0], means, band))[order])

    def _draw_bootstrap(self, weights: Vector, values: Vector, weight: Vector) -> tuple[NDArray[np.int64], Matrix]:
        """(the chosen candidate, the means of all candidates) of every draw of the queries with replacement."""
        counts = ~np.isnan(values).any(axis=0) & (weight > 0)
        own, weight = values[:, counts], weight[counts]
        random, found = as_random(self.random_state), []
        if not len(weight):
            return np.empty(0, dtype=np.int64), np.empty((0, len(weights)))
        for _ in range(self.bootstrap):
            often = np.bincount(random.integers(len(weight), size=len(weight)), minlength=len(weight)) * weight
            total = often.sum()
            found.append(own @ (often / total) if total else np.full(len(own), np.nan))
        chosen = [first_of_the_best(means) for means in found]
        return np.array(chosen, dtype=np.int64), np.array(found).reshape(len(found), len(weights))

    def _fixed_weights(self, columns: int) -> Vector | None:
        if self.weights is None:
            return None
        if isinstance(self.weights, str) and self.weights == "equal":
            return np.full(columns, 1 / columns)
        weights = np.asarray(self.weights, dtype=np.float64)
        if weights.shape != (columns,) or not abs(weights.sum() - 1) < 1e-6:
            raise RankwiseError(f"weights must be {columns} numbers with the sum 1, got {self.weights!r:.60}")
        return weights

    def _fusion(self) -> Fusion:
        return Fusion(self.normalizer, self.engine, self.combination, self.rank_constant)

    def _table(self, weights: Vector, ends: Vector) -> Table:
        names = self._names() or tuple(f"f{place}" for place in range(1, len(weights) + 1))
        return Table({"column": list(names), "weight": weights, "low": ends[:, 0], "high": ends[:, 1]})

    def _curve(self, rows: Vector) -> "WeightCurve":
        columns = dict(zip(("weight", "mean", "low", "high"), rows.T, strict=True))
        return WeightCurve(columns, self._measure().title, self.intervals_)

    # ------------------------------------------------------------------------------------------- ranking

    def predict(self, X: Any) -> Vector:
        """Score documents.

        Parameters
        ----------
        X : Queries or Query
            The documents with the scores of the sub-queries; named columns are matched by name. With
            ``normalizer="none"`` also a data frame or array of shape (n_documents, n_features).

        Returns
        -------
        scores : ndarray of shape (n_documents,)
            One score per document, in input order; a higher score is ranked first.

        Raises
        ------
        DataError
            If rows come without their grouping and the normalizer needs it.
        """
        self._check_fitted()
        if not self.scores_by_query:
            return super().predict(X)
        if isinstance(X, Query):
            X = inputs.as_single_query(X)
        if not isinstance(X, Queries):
            inputs.as_rows(self, X)
            raise DataError(
                f"{self.name} normalizes scores within each query (normalizer={self.normalizer!r}): pass Queries, one "
                "Query, or Queries.from_arrays(X, qid=..., missing='keep')"
            )
        queries, fusion = inputs.align(self, X), self._fusion()
        scores = np.empty(queries.n_documents)
        parts = fusion.normalize(queries.X[queries.rows], queries.start)
        scores[queries.rows] = fusion.combine(parts, self.weights_, self.n_jobs)
        return scores

    def _scores(self, X: checks.Floats) -> Vector:
        return self._fusion().combine(X, self.weights_, self.n_jobs)

    def _contributions(self, X: checks.Floats) -> tuple[Vector, float] | None:
        """The weighted, normalized columns of the documents of one query; the other means are no sums."""
        if self.combination != "arithmetic_mean":
            return None
        parts = self._fusion().normalize(X, np.array([0, len(X)]))
        return np.asarray(present(parts) * self.weights_), 0.0

    # ------------------------------------------------------------------------------------------- saving

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        ends = np.column_stack((self.intervals_["low"], self.intervals_["high"]))
        arrays: dict[str, NDArray[Any]] = {"weights": self.weights_, "intervals": ends}
        if hasattr(self, "curve_"):
            arrays["curve"] = np.column_stack([self.curve_[name] for name in self.curve_.columns])
        return {}, arrays

    def _restore(self, facts: Mapping[str, Any], store: Store) -> None:
        self._measure()  # an unknown one is an error now, and not at the first use
        width = self.n_features_in_
        self.weights_ = store.array("weights", np.float64, (width,))
        if not (self.weights_ >= 0).all() or not abs(self.weights_.sum() - 1) < 1e-6:
            raise RankwiseError("its weights are not 0 or more with the sum 1")
        self.intervals_ = self._table(self.weights_, store.array("intervals", np.float64, (width, 2)))
        if "curve" in store:
            self.curve_ = self._curve(store.array("curve", np.float64, (None, 4)))


def _ends(draws: Vector) -> Vector:
    """The ends of the percentile interval of every column."""
    return np.quantile(draws, _EDGES, axis=0).T


class WeightCurve(PlottedTable):
    """The mean measure of the training queries against the weight of the first column.

    Parameters
    ----------
    columns : dict of str to array-like
        The weights, the means, and the ends of their 95% bootstrap intervals.
    measure : str
        The title of the measure.
    chosen : Table
        The table of the chosen weights and their intervals.
    """

    __slots__ = ("_chosen", "_measure")

    def __init__(self, columns: Mapping[str, Any], measure: str, chosen: Table) -> None:
        super().__init__(columns, f"{measure} by the weight of {chosen['column'][0]}")
        self._measure, self._chosen = measure, chosen

    def _draw(self, axes: "Axes") -> None:
        first = next(iter(self._chosen))
        axes.fill_between(self["weight"], self["low"], self["high"], color=COLORS[0], alpha=0.15, linewidth=0)
        axes.plot(self["weight"], self["mean"], color=COLORS[0], label="mean, with its 95% interval")
        axes.axvline(0.5, color=FAINT, linestyle=":", label="equal weights")
        axes.axvline(first["weight"], color=COLORS[1], label=f"chosen: {first['weight']:.2f}, with its 95% interval")
        axes.axvspan(first["low"], first["high"], color=COLORS[1], alpha=0.12, linewidth=0)
        axes.set_xlabel(f"weight of {first['column']} ({self._chosen['column'][1]} has the rest)")
        axes.set_ylabel(self._measure)
        axes.set_xlim(0, 1)
        axes.legend()


# ----------------------------------------------------------------------------------------------------------- the search

UNITS = 100
# Steps per unit of the first grid, by the number of columns: 101, 231, 286, 126 and 252 candidates.
_GRID = {1: 1, 2: 100, 3: 20, 4: 10, 5: 5, 6: 5}
MOST = max(_GRID)  # columns that share the weight: of more, those that rank best alone
_MOVES = (10, 5, 2, 1)
_STARTS = 3
# Candidates around the best one, at each of these distances in hundredths.
_AROUND, _REACH = 60, (2.0, 5.0, 10.0)
# Means that differ by less are equal: rounding must not decide.
TIE = 1e-12


@dataclass
class WeightCandidates:
    """Weights that were measured, with the value of every query.

    Attributes
    ----------
    values_of : callable
        Takes weights and returns the value of every query; NaN where the measure is undefined.
    mean_of : callable
        Takes these values and returns their mean; NaN where there is none.
    """

    values_of: Callable[[Vector], Vector]
    mean_of: Callable[[Vector], float]
    _weights: list[Vector] = field(default_factory=list)
    _values: list[Vector] = field(default_factory=list)
    _means: list[float] = field(default_factory=list)
    _known: dict[tuple[int, ...], int] = field(default_factory=dict)

    def measure(self, units: tuple[int, ...]) -> int:
        """The number of the candidate with these hundredths, which is measured if it is new."""
        if units not in self._known:
            self._known[units] = self.add(np.array(units) / UNITS)
        return self._known[units]

    def add(self, weights: Vector) -> int:
        """Measure weights that need not be hundredths."""
        values = self.values_of(weights)
        self._weights.append(weights)
        self._values.append(values)
        self._means.append(self.mean_of(values))
        return len(self._means) - 1

    def mean(self, number: int) -> float:
        """The mean of a candidate; -inf where it is undefined."""
        mean = self._means[number]
        return mean if mean == mean else -np.inf

    def best(self, most: int = 1) -> list[tuple[int, ...]]:
        """The best candidates of whole hundredths."""
        simple = {key: _distance(np.array(key) / UNITS) for key in self._known}
        ordered = sorted(self._known, key=lambda key: (-self.mean(self._known[key]), simple[key], key))
        return ordered[:most]

    def arrays(self) -> tuple[Matrix, Matrix, Vector]:
        """(weights, values, means) of all candidates, nearest to equal weights first: the simplest wins ties."""
        weights = np.array(self._weights)
        order = np.lexsort((*(-weights.T[::-1]), np.round([_distance(one) for one in weights], 12)))
        return weights[order], np.array(self._values)[order], np.array(self._means)[order]


def search(candidates: WeightCandidates, columns: int, advance: Callable[[], None] = lambda: None) -> None:
    """Measure candidates until no move improves the best of them.

    Parameters
    ----------
    candidates : WeightCandidates
        What is filled.
    columns : int
        The number of weights.
    advance : callable, default=nothing
        Called after every candidate of the grid.
    """
    if UNITS % columns:  # equal weights are not whole hundredths
        candidates.add(np.full(columns, 1 / columns))
    else:
        candidates.measure((UNITS // columns,) * columns)
    active: Sequence[int] = range(columns)
    if columns > MOST:
        alone = [_spread((UNITS,), (column,), columns) for column in active]
        means = {column: candidates.mean(candidates.measure(units)) for column, units in enumerate(alone)}
        active = sorted(sorted(active, key=lambda column: (-means[column], column))[:MOST])
    for units in grid(len(active)):
        candidates.measure(_spread(units, active, columns))
        advance()
    if columns == 2:
        return
    for here in candidates.best(_STARTS):
        _climb(candidates, here, active)
    best = candidates.best()[0]
    for units in around(tuple(best[column] for column in active)):
        candidates.measure(_spread(units, active, columns))


def _climb(candidates: WeightCandidates, here: tuple[int, ...], active: Sequence[int]) -> None:
    """Move weight between pairs of columns, in ever smaller steps, as long as that improves the mean."""
    for move in _MOVES:
        improved = True
        while improved:
            mean = candidates.mean(candidates.measure(here))
            tried = [_move(here, move, one, other) for one, other in permutations(active, 2)]
            known = [(candidates.mean(candidates.measure(units)), units) for units in tried if units]
            best = max(known, default=(mean, here), key=lambda pair: pair[0])
            improved = best[0] > mean + TIE
            here = best[1] if improved else here


def grid_size(columns: int) -> int:
    """The number of candidates of the first grid."""
    return len(grid(min(columns, MOST)))


def around(units: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Candidates near these, always the same ones: normal steps, cut at 0 and rounded to the sum of the units."""
    if len(units) < 2:
        return []
    random, found = np.random.default_rng(0), []
    for reach in _REACH:
        for step in random.normal(scale=reach, size=(_AROUND, len(units))):
            near = np.maximum(np.array(units) + step, 0.0)
            near *= UNITS / near.sum()
            whole = np.floor(near).astype(np.int64)
            whole[np.argsort(whole - near, kind="stable")[: UNITS - int(whole.sum())]] += 1
            found.append(tuple(whole.tolist()))
    return found


def grid(columns: int) -> list[tuple[int, ...]]:
    """The candidates of the first grid."""
    steps = _GRID[columns]
    found = []
    for bars in combinations(range(steps + columns - 1), columns - 1):  # stars and bars
        ends = (-1, *bars, steps + columns - 1)
        found.append(tuple((ends[i + 1] - ends[i] - 1) * UNITS // steps for i in range(columns)))
    return found


def _spread(units: tuple[int, ...], active: Sequence[int], columns: int) -> tuple[int, ...]:
    """The weights of some columns among all, the others 0."""
    if len(units) == columns:
        return units
    found = [0] * columns
    for column, unit in zip(active, units, strict=True):
        found[column] = unit
    return tuple(found)


def _move(units: tuple[int, ...], move: int, one: int, other: int) -> tuple[int, ...] | None:
    """The weights after a move from one column to another; None where there is too little to move."""
    if units[one] < move:
        return None
    found = list(units)
    found[one] -= move
    found[other] += move
    return tuple(found)


def _distance(weights: Vector) -> float:
    """The squared distance from equal weights."""
    return float(((weights - 1 / len(weights)) ** 2).sum())


def first_of_the_best(totals: Vector) -> int:
    """The place of the first value that no other exceeds by more than rounding; NaN never wins."""
    known = np.where(np.isnan(totals), -np.inf, totals)
    most = known.max()
    return int(np.argmax(known >= most - TIE * max(1.0, abs(most)))) if np.isfinite(most) else 0
