"""The orders of documents that PermuRank compares: of each query the worst perfect and the best imperfect order.

A measure calls an order perfect if it reaches the largest value that any order of the query reaches.
:func:`position_edges` says how such orders look: an edge after position t means that the first t documents must have
the t largest row values. A measure that does not distinguish two neighboring positions (P@k within the first k, a
discount that stays the same) has no edge between them. :class:`ListOrders` finds the two extreme orders of every query
under given scores, and adds them, as vectors of features, to the working sets.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from rankwise._arrays import Mask, Numbers, Vector
from rankwise._kernels import parallel
from rankwise._kernels.orders import extreme_orders, order_features
from rankwise.errors import MeasureError, RankwiseError
from rankwise.measures import AP, ERR, NDCG, RBP, RR, WTA, MeanNDCG, P, Pairs, R, Success
from rankwise.measures._base import Measure
from rankwise.measures.compute import ScoredLists, measure_lists
from rankwise.queries.queries import Queries
from rankwise.rankers._model_selection import normalize_weight
from rankwise.solvers.batch.working_sets import WorkingSets

Map = Literal["pairs", "relevant"]


@dataclass(frozen=True)
class ListOrders:
    """Judged queries, and the values of orders of their documents.

    Parameters
    ----------
    queries : Queries
        Judged queries.
    measure : Measure
        The measure E, one that :func:`position_edges` knows.
    map : {"pairs", "relevant"}
        The features of an order, as for :class:`~rankwise.PermuRank`.
    center, factor : ndarray of shape (n_features,)
        Features are (x - center) factor.
    n_jobs : int or None
        Number of threads.

    Raises
    ------
    RankwiseError
        If the map is unknown, or does not suit the measure and the labels.
    """

    queries: Queries
    measure: Measure
    map: Map
    center: Vector
    factor: Vector
    n_jobs: int | None

    def __post_init__(self) -> None:
        # the map "relevant" needs a measure that looks at all positions, and at one kind of relevant documents
        if self.by_class and not (self.edges.all() and len(np.unique(np.append(self.value, 0.0))) <= 2):
            raise RankwiseError(
                "map='relevant' requires a measure of all positions and of binary relevance, such as AP, got "
                f"{self.measure} on these labels: use map='pairs'"
            )

    @cached_property
    def value(self) -> Vector:
        """What the measure makes of the label of every row."""
        return np.ascontiguousarray(self.measure.row_values(self.queries.labels()), dtype=np.float64)

    @cached_property
    def edges(self) -> Mask:
        """The positions after which the measure has an edge."""
        return position_edges(self.measure, int(self.queries.sizes.max(initial=1)))

    @cached_property
    def best(self) -> Vector:
        """E*, the measure of a perfect order of every query; NaN where the measure is undefined."""
        return self._measured(self.value)

    @cached_property
    def weight(self) -> Vector:
        """The weights of the queries, divided by their sum; 0 for queries without an E*."""
        return normalize_weight(self.queries, ~np.isnan(self.best))

    @property
    def by_class(self) -> bool:
        """Whether orders are compared by the pairs of a relevant and another document alone."""
        return self.map == "relevant"

    def extend(self, sets: WorkingSets, scores: Vector) -> tuple[int, int]:
        """Add the worst perfect and the best imperfect order of every query to the sets.

        Parameters
        ----------
        sets : WorkingSets
            The sets.
        scores : ndarray of shape (n_documents,)
            The scores that say which orders are extreme.

        Returns
        -------
        perfect, imperfect : int
            How many orders of either kind were new.
        """
        worst, best, exists = self._extremes(scores)
        missed = self.best - self._reached(best)
        chosen = np.flatnonzero(exists & (self.weight > 0) & (missed > 0))
        perfect = self._add(sets, False, chosen, worst, np.zeros(len(chosen)))
        return perfect, self._add(sets, True, chosen, best, missed[chosen])

    def _extremes(self, scores: Vector) -> tuple[Numbers, Numbers, Mask]:
        """(worst perfect orders, best imperfect orders, whether a query has an imperfect order)."""
        queries = self.queries
        worst, best = np.empty(queries.n_documents, dtype=np.int64), np.empty(queries.n_documents, dtype=np.int64)
        exists = np.empty(len(queries), dtype=bool)
        given = (queries.start, self._rows, scores, self.value, self.edges)

        def part(first: int, last: int) -> None:
            extreme_orders(first, last, *given, worst, best, exists)

        parallel.map_chunks(part, list(parallel.query_chunks(queries.start)), self.n_jobs)
        return worst, best, exists

    def _reached(self, orders: Numbers) -> Vector:
        """The measure of every query in this order."""
        scores = np.empty(len(orders))
        scores[self._ordered_rows(orders)] = -np.arange(len(orders), dtype=np.float64)
        return self._measured(scores)

    def _measured(self, scores: Vector) -> Vector:
        """The measure of every query under scores."""
        lists = ScoredLists(scores, self.queries.labels(), self.queries.start, self.queries.scattered_rows)
        return np.asarray(measure_lists([self.measure], lists, n_jobs=self.n_jobs)[0])

    def _add(self, sets: WorkingSets, imperfect: bool, chosen: Numbers, orders: Numbers, missed: Vector) -> int:
        """Add the orders of the chosen queries that are new, and count them."""
        start, longest = self.queries.start, int(self.queries.sizes.max(initial=1))
        names = self._canonical(orders).astype(np.min_scalar_type(longest))  # small, because the sets keep them
        own = [names[start[q] : start[q + 1]].tobytes() for q in chosen.tolist()]
        fresh = sets.take_new(imperfect, chosen.tolist(), own)
        lists = chosen[fresh]
        sets.add(imperfect, lists, self._vectors(lists, orders), missed[fresh])
        return len(fresh)

    def _canonical(self, orders: Numbers) -> Numbers:
        """One order for all with the same vector: by class, neighbors of one class are sorted by index."""
        if not self.by_class:
            return orders
        value = self.value[self._ordered_rows(orders)]
        owner = np.repeat(np.arange(len(self.queries)), self.queries.sizes)
        run = np.cumsum((np.diff(value, prepend=value[:1]) != 0) | (np.diff(owner, prepend=0) != 0))
        return orders[np.lexsort((orders, run))]

    def _vectors(self, lists: Numbers, orders: Numbers) -> Vector:
        """The features of the orders of some queries."""
        queries, vectors = self.queries, np.empty((len(lists), self.queries.n_features))
        given = (queries.start, self._rows, self.value, orders, self.by_class, self.center, self.factor)
        X = np.asarray(queries.X)

        def part(first: int, last: int) -> None:
            order_features(X, lists[first:last], *given, vectors[first:last])

        ends = np.concatenate([[0], np.cumsum(queries.sizes[lists])])
        parallel.map_chunks(part, list(parallel.query_chunks(ends)), self.n_jobs)
        if not np.isfinite(vectors).all():
            raise RankwiseError("the scores of orders of documents are not finite: scale the features")
        return vectors

    def _ordered_rows(self, orders: Numbers) -> Numbers:
        """The rows of X, query after query, in these orders."""
        queries = self.queries
        return np.asarray(queries.rows[np.repeat(queries.start[:-1], queries.sizes) + orders])

    @property
    def _rows(self) -> Numbers:
        """The rows of the queries as kernels take them: empty if they are grouped."""
        return np.empty(0, dtype=np.int64) if self.queries.is_grouped else self.queries.rows


def position_edges(measure: Measure, longest: int) -> Mask:
    """Whether a measure has an edge after positions 1, 2, ..., longest, for queries of any length up to that.

    Parameters
    ----------
    measure : Measure
        A measure with values in [0, 1] whose perfect orders are described by edges.
    longest : int
        The largest number of documents of a query.

    Returns
    -------
    ndarray of bool, shape (longest,)
        The edges.

    Raises
    ------
    MeasureError
        If the perfect orders of the measure are not known.
    """
    position = np.arange(1, longest + 1)
    cut = np.inf if measure.cutoff is None else measure.cutoff
    if isinstance(measure, (AP, ERR, RBP)):
        return np.asarray(position <= cut)  # an earlier position always counts more
    if isinstance(measure, Pairs):
        return np.ones(longest, dtype=bool)
    if isinstance(measure, (P, R)):
        measure.all_params()  # which raises an error without a cut-off
        return np.asarray(position == cut)
    if isinstance(measure, (RR, WTA)) or (isinstance(measure, Success) and cut == 1):
        return np.asarray(position == 1)
    if isinstance(measure, NDCG):
        discount = np.where(np.arange(1, longest + 2) <= cut, measure.table(longest + 1), 0.0)
        return np.asarray(np.diff(discount) < 0)
    if isinstance(measure, MeanNDCG):
        return np.asarray(measure.table(longest) > 0)  # NDCG@1, NDCG@2, ... are all at their best
    raise MeasureError(
        f"permutations can be compared by nDCG, MeanNDCG, AP, P, R, RR, WTA, ERR, RBP and Pairs, got {measure.title}"
    )
