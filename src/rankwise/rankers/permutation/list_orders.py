"""The orders of judged lists that PermuRank compares: the worst perfect and the best imperfect ones under scores."""

import math
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import MeasureError, RankwiseError
from rankwise._kernels import drive
from rankwise.data.queries import Queries
from rankwise.measures import AP, ERR, NDCG, RBP, RR, WTA, MeanNDCG, P, Pairs, R, Success
from rankwise.measures._base import Measure
from rankwise.measures.compute import ScoredLists, measure_lists
from rankwise.solvers.batch.working_sets import WorkingSets

Vector = NDArray[np.float64]


# ----------------------------------------------------------------------------------------------------- position edges
# Which orders a measure calls perfect: those that put the best values above every edge between positions.
#
# An edge after position t says that the measure is at its best only if the first t documents have the t largest row
# values. Where a measure cannot tell two neighbouring positions apart (P@k inside the first k, a discount that stays
# the
# same), there is no edge between them.


Edges = NDArray[np.bool_]


def position_edges(measure: Measure, longest: int) -> Edges:
    """Whether there is an edge after positions 1, 2, ..., longest, for lists of any length up to that.

    Measures with values in [0, 1] whose best orders can be told this way; others are refused.
    """
    position = np.arange(1, longest + 1)
    cut = np.inf if measure.cutoff is None else measure.cutoff
    if isinstance(measure, (AP, ERR, RBP)):
        return np.asarray(position <= cut)  # an earlier place always counts more
    if isinstance(measure, Pairs):
        return np.ones(longest, dtype=bool)
    if isinstance(measure, (P, R)):
        measure.all_params()  # which asks for the cut-off
        return np.asarray(position == cut)
    if isinstance(measure, (RR, WTA)) or (isinstance(measure, Success) and cut == 1):
        return np.asarray(position == 1)
    if isinstance(measure, NDCG):
        discount = np.where(np.arange(1, longest + 2) <= cut, measure.table(longest + 1), 0.0)
        return np.asarray(np.diff(discount) < 0)
    if isinstance(measure, MeanNDCG):
        return np.asarray(measure.table(longest) > 0)  # NDCG@1, NDCG@2, ... are all at their best
    raise MeasureError(
        f"permutations can be compared for nDCG, MeanNDCG, AP, P, R, RR, WTA, ERR, RBP and Pairs: found {measure.title}"
    )


def compares_classes(edges: Edges, values: NDArray[np.float64]) -> bool:
    """Whether all that counts is which documents with a value stand above which without: one value, all positions."""
    return bool(edges.all() and len(np.unique(np.append(values, 0.0))) <= 2)


Numbers = NDArray[np.int64]
Map = Literal["pairs", "relevant"]


@dataclass(frozen=True, kw_only=True)
class ListOrders:
    """Judged lists with what their orders are worth.

    Attributes
    ----------
    value : what the measure makes of the label of every row
    edges : between which positions the measure can tell
    best : E*, the measure of a perfect order of every list; NaN where the measure says nothing
    weight : what every list counts, 0 for those without an E*; adds up to 1
    centre, factor : features are (x - centre) factor
    by_class : whether orders are scored by the pairs of a relevant and another document alone
    """

    queries: Queries
    measure: Measure
    value: Vector
    edges: Edges
    best: Vector
    weight: Vector
    centre: Vector
    factor: Vector
    by_class: bool
    n_jobs: int | None

    @classmethod
    def of(
        cls, queries: Queries, measure: Measure, map: Map, centre: Vector, factor: Vector, n_jobs: int | None
    ) -> Self:
        """``map``: "pairs" or "relevant"."""
        labels = queries.labels()
        value = np.ascontiguousarray(measure.row_values(labels), dtype=np.float64)
        edges = position_edges(measure, int(queries.sizes.max(initial=1)))
        if map not in ("pairs", "relevant"):
            raise RankwiseError(f"map is 'pairs' or 'relevant': found {map!r}")
        if map == "relevant" and not compares_classes(edges, value):
            raise RankwiseError(
                f"map='relevant' compares relevant with other documents on whole lists, as AP does: found {measure} "
                "on these labels; map='pairs' takes it"
            )
        rows = queries.scattered_rows
        best = measure_lists([measure], ScoredLists(value, labels, queries.start, rows), n_jobs=n_jobs)[0]
        query_weight = queries.query_weight
        query_weight = np.where(np.isnan(best), 0.0, query_weight)
        total = math.fsum(query_weight)
        weight = query_weight / total if total else query_weight
        return cls(
            queries=queries,
            measure=measure,
            value=value,
            edges=edges,
            best=best,
            weight=weight,
            centre=centre,
            factor=factor,
            by_class=map == "relevant",
            n_jobs=n_jobs,
        )

    def working_sets(self, largest: bool) -> WorkingSets:
        """Sets without orders; ``largest`` as there."""
        return WorkingSets(self.weight, self.queries.n_features, largest)

    def extend(self, sets: WorkingSets, scores: Vector) -> tuple[int, int]:
        """Add the worst perfect and the best imperfect order of every list; how many of either were new."""
        worst, best, exists = self._extremes(scores)
        missed = self.best - self._reached(best)
        chosen = np.flatnonzero(exists & (self.weight > 0) & (missed > 0))
        perfect = self._add(sets, False, chosen, worst, np.zeros(len(chosen)))
        return perfect, self._add(sets, True, chosen, best, missed[chosen])

    def _extremes(self, scores: Vector) -> tuple[Numbers, Numbers, NDArray[np.bool_]]:
        from rankwise._kernels.orders import extreme_orders

        queries = self.queries
        worst, best = np.empty(queries.n_documents, dtype=np.int64), np.empty(queries.n_documents, dtype=np.int64)
        exists = np.empty(len(queries), dtype=bool)
        given = (queries.start, self._rows, scores, self.value, self.edges)

        def part(first: int, last: int) -> None:
            extreme_orders(first, last, *given, worst, best, exists)

        drive.run(part, list(drive.query_chunks(queries.start)), self.n_jobs)
        return worst, best, exists

    def _reached(self, orders: Numbers) -> Vector:
        """The measure of every list in this order."""
        start, position = self.queries.start, np.arange(self.queries.n_documents)
        owner = np.repeat(start[:-1], self.queries.sizes)
        at = owner + orders
        scores = np.empty(len(at))
        scores[at if self.queries.is_grouped else self.queries.rows[at]] = -position.astype(np.float64)
        lists = ScoredLists(scores, self.queries.labels(), start, self.queries.scattered_rows)
        return np.asarray(measure_lists([self.measure], lists, n_jobs=self.n_jobs)[0])

    def _add(self, sets: WorkingSets, imperfect: bool, chosen: Numbers, orders: Numbers, missed: Vector) -> int:
        start, longest = self.queries.start, int(self.queries.sizes.max(initial=1))
        names = self._told_apart(orders).astype(np.min_scalar_type(longest))  # they are kept: small ones
        own = [names[start[q] : start[q + 1]].tobytes() for q in chosen.tolist()]
        fresh = sets.unknown(imperfect, chosen.tolist(), own)
        lists = chosen[fresh]
        sets.add(imperfect, lists, self._vectors(lists, orders), missed[fresh])
        return len(fresh)

    def _told_apart(self, orders: Numbers) -> Numbers:
        """Orders in which what makes no difference is put by index: by class, neighbours of one class."""
        if not self.by_class:
            return orders
        start, sizes = self.queries.start, self.queries.sizes
        at = np.repeat(start[:-1], sizes) + orders
        value = self.value[at if self.queries.is_grouped else self.queries.rows[at]]
        owner = np.repeat(np.arange(len(sizes)), sizes)
        run = np.cumsum((np.diff(value, prepend=value[:1]) != 0) | (np.diff(owner, prepend=0) != 0))
        return orders[np.lexsort((orders, run))]

    def _vectors(self, lists: Numbers, orders: Numbers) -> Vector:
        from rankwise._kernels.orders import order_features

        queries, vectors = self.queries, np.empty((len(lists), self.queries.n_features))
        given = (queries.start, self._rows, self.value, orders, self.by_class, self.centre, self.factor)
        X = np.asarray(queries.X)

        def part(first: int, last: int) -> None:
            order_features(X, lists[first:last], *given, vectors[first:last])

        ends = np.concatenate([[0], np.cumsum(queries.sizes[lists])])
        drive.run(part, list(drive.query_chunks(ends)), self.n_jobs)
        if not np.isfinite(vectors).all():
            raise RankwiseError("features are so large that orders of documents have no finite scores: scale them")
        return vectors

    @property
    def _rows(self) -> Numbers:
        return np.empty(0, dtype=np.int64) if self.queries.is_grouped else self.queries.rows
