r"""What lists that are cut have to keep: a demand such as ``recall >= 0.9``, and its value for each length of a list.

A *demand* bounds the mean of a value per query from one side. Which documents a cut keeps is decided by their scores,
so the value of a query depends on how many of its first documents are kept, c:

========================= ===================================== =====================================================
demand                    value of a query                      begins with
========================= ===================================== =====================================================
``recall >= r``           R@c                                   everything kept, where it is 1
``nDCG@10 lost <= x``     nDCG@10 of the whole list minus that  everything kept, where it is 0
                          of its first c documents
``precision >= p``        P@c; 1 if nothing is kept             nothing kept, where it is 1
``nDCG@10 >= x``          that of the first c documents         everything kept, where it has to be shown first
========================= ===================================== =====================================================

A measure that needs a cut-off and is named without one (recall, precision, success) is measured at c. All others are
measured of the first c documents, as if the rest had not been retrieved. "Lost" is never below 0: what a cut gains
counts as 0. Any measure with values in [0, 1] that depends on labels can be demanded.

*Ties.* Of documents with equal scores those with the smallest labels are kept, the smallest first. What is lost is that
of the whole list where the documents that are tied with the last one kept, and those below, are in their best order.
Both are the worst case of any order, or worse, so what holds for them holds however ties are broken. A cut by score,
which keeps all tied documents or none, loses nothing by this.

*Empty queries.* A value that is 0/0, such as the recall of a query without a relevant document, does not count. Where a
demand begins with nothing kept, it counts 0 as soon as a document is kept: such a document is a wrong one.
"""

import re
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rankwise._arrays import Numbers, Vector
from rankwise.errors import RankwiseError
from rankwise.guarantees._bound import refuse_unless
from rankwise.guarantees.holdout.intervals import Plan
from rankwise.guarantees.holdout.testing import queries_to_show
from rankwise.measures._base import Measure, parse
from rankwise.measures.compute import PreparedMeasure, ScoredLists, measure_lists
from rankwise.queries.queries import Queries

_DEMAND = re.compile(r"\s*(?P<measure>.+?)\s*(?P<lost>\blost)?\s*(?P<sign>>=|<=)\s*(?P<limit>[-+.\deE]+)\s*", re.DOTALL)
_EXAMPLES = "'recall>=0.9', 'precision>=0.5' or 'nDCG@10 lost<=0.01'"
# Documents that may be measured, list by list and number by number; a few minutes.
_MOST_MEASURED = 10_000_000_000
# A loss below this is due to rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Demand:
    """A demand on the mean of a value over future queries.

    Parameters
    ----------
    measure : Measure
        The measure.
    limit : float
        The least mean, or the largest where it is about what is lost; between 0 and 1.
    lost : bool, default=False
        Whether it is about what lists lose by being cut.

    Examples
    --------
    >>> Demand.parse("recall(rel=2)>=0.9"), Demand.parse("nDCG@10 lost <= 0.01").goal
    (R(rel=2) >= 0.9, 0.99)
    """

    measure: Measure
    limit: float
    lost: bool = False

    def __post_init__(self) -> None:
        title = self.measure.title
        if not (self.measure.at_most_one and self.measure.depends_on_labels):
            raise RankwiseError(f"keep must name a measure of labels with values between 0 and 1, got {title}")
        if self.lost and self.at_depth:
            raise RankwiseError(
                f"keep: what {title} loses needs a cut-off, such as {title}@10 lost<=0.01; or demand {title}>=0.9"
            )
        if not 0 < self.limit < 1:
            raise RankwiseError(
                f"keep must have a limit above 0 and below 1, which a sample can show, got {self.limit:g}"
            )

    @classmethod
    def parse(cls, text: object) -> "Demand":
        """Read a demand: a measure, ``>=`` or ``lost <=``, and a limit.

        Parameters
        ----------
        text : str
            The demand; the measure is spelled as everywhere.

        Returns
        -------
        Demand
            The demand.
        """
        if isinstance(text, cls):
            return text
        found = _DEMAND.fullmatch(text) if isinstance(text, str) else None
        if found is None or (found["lost"] is None) != (found["sign"] == ">="):
            raise RankwiseError(f"keep must be a demand such as {_EXAMPLES}, got {text!r:.80}")
        try:
            limit = float(found["limit"])
        except ValueError:
            raise RankwiseError(f"keep must end in a number, as in {_EXAMPLES}, got {text!r:.80}") from None
        return cls(parse(found["measure"]), limit, found["lost"] is not None)

    def __repr__(self) -> str:
        return f"{self.measure.title} {'lost <=' if self.lost else '>='} {self.limit:g}"

    @property
    def at_depth(self) -> bool:
        """Whether the measure is taken at the number of documents that are kept."""
        return self.measure.needs_cutoff and self.measure.cutoff is None

    @property
    def begins_with_all(self) -> bool:
        """Whether the sequence of cuts begins with everything kept; otherwise with nothing."""
        return not self.at_depth or self.measure.grows_to_one

    @property
    def holds_at_first(self) -> bool:
        """Whether the demand holds for certain at the beginning."""
        return self.lost or self.at_depth

    @property
    def goal(self) -> float:
        """What the mean of the kept values has to reach: the limit, or 1 minus the largest loss."""
        return 1 - self.limit if self.lost else self.limit

    @property
    def number(self) -> str:
        """The mean that the demand is about, in words."""
        title = self.measure.title
        if self.lost:
            return f"{title} lost by the cut"
        return f"{title} of what is kept" if self.at_depth else f"{title} of the lists that are cut"


@dataclass(frozen=True)
class KeptValues:
    """The value of a demand for every query and every number of documents kept, the larger the better.

    Attributes
    ----------
    demand : Demand
        The demand.
    start : ndarray of int64, shape (n_queries + 1,)
        The documents of query q are ``start[q]`` to ``start[q + 1] - 1`` of the ranked rows.
    rows : ndarray of int64, shape (n_documents,)
        Rows of the documents by query, the best first, ties in the worst order for the demand.
    values : ndarray, shape (n_documents + n_queries,)
        ``values[start[q] + q + c]`` for the first c documents of query q; 1 minus what is lost. NaN where the query
        does not count.
    """

    demand: Demand
    start: Numbers
    rows: Numbers
    values: Vector

    @cached_property
    def first(self) -> Numbers:
        """Where the values of each query begin."""
        return np.asarray(self.start[:-1] + np.arange(len(self.start) - 1))

    def at(self, kept: Numbers) -> Vector:
        """The values of all queries that keep so many documents."""
        return np.asarray(self.values[self.first + kept])

    @cached_property
    def grows(self) -> bool:
        """Whether no value falls as more documents are kept."""
        steps = np.diff(self.values)
        steps[self.first[1:] - 1] = 0.0  # from one query to the next
        return not bool((steps < 0).any())


def kept_values(demand: Demand, queries: Queries, scores: Vector, *, n_jobs: int | None = None) -> KeptValues:
    """Measure a demand for every query and every number of documents kept.

    Parameters
    ----------
    demand : Demand
        The demand.
    queries : Queries
        Judged queries.
    scores : ndarray, shape (n_documents,)
        The scores.
    n_jobs : int, default=None
        Number of threads; None uses every core.

    Returns
    -------
    KeptValues
        The values.
    """
    owner, labels, sizes = queries.query_of_row, queries.labels(), queries.sizes
    rows = np.lexsort((labels, -scores, owner))
    start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    lists = _RankedLists.of(demand.measure, queries, scores, rows, start)
    found = KeptValues(demand, start, rows, np.full(len(rows) + len(sizes), np.nan))
    if demand.at_depth:
        _fill_at_depth(demand, lists, found, n_jobs)
    else:
        _fill_cut_lists(demand, lists, found, n_jobs)
    return found


@dataclass(frozen=True)
class _RankedLists:
    """Lists in ranked order, the longest query first, so that those with c documents or more are the first ones."""

    order: Numbers  # of the queries
    start: Numbers
    measure: PreparedMeasure
    labels: Vector
    depth: Numbers  # the place of a document in its query, from 0 on
    end: Numbers  # how many documents of the query have its score or a larger one

    @classmethod
    def of(cls, measure: Measure, queries: Queries, scores: Vector, rows: Numbers, start: Numbers) -> "_RankedLists":
        sizes = queries.sizes
        order = np.argsort(-sizes, kind="stable")
        own = np.concatenate([[0], np.cumsum(sizes[order])]).astype(np.int64)
        depth = np.arange(len(rows)) - np.repeat(own[:-1], sizes[order])
        ranked = rows[np.repeat(start[order], sizes[order]) + depth]
        labels, score = queries.labels()[ranked], scores[ranked]
        begins = np.ones(len(rows) + 1, bool)  # of blocks of ties
        begins[1:-1] = (score[1:] != score[:-1]) | (depth[1:] == 0)
        edges = np.flatnonzero(begins)
        end = depth + np.repeat(edges[1:], np.diff(edges)) - np.arange(len(rows))
        judged = None if queries.judged is None else queries.judged[ranked]
        known = measure if not measure.needs_cutoff or measure.cutoff is not None else measure @ 1
        return cls(order, own, PreparedMeasure.of(known, labels, own, judged), labels, depth, end)

    def longer_than(self, count: int) -> int:
        """How many queries have more than ``count`` documents."""
        return int(np.searchsorted(-np.diff(self.start), -count))

    def measured(self, first: int, scores: Vector, measure: PreparedMeasure, ties: str, n_jobs: int | None) -> Vector:
        """The measure of the first queries by these scores."""
        end = int(self.start[first])
        part = replace(measure, values=measure.values[:end])
        lists = ScoredLists(scores[:end], self.labels[:end], self.start[: first + 1])
        return np.asarray(measure_lists([part], lists, ties=ties, n_jobs=n_jobs)[0])  # type: ignore[arg-type]


def _fill_at_depth(demand: Demand, lists: _RankedLists, found: KeptValues, n_jobs: int | None) -> None:
    """M@c for c documents; what begins with nothing kept counts 1 for nothing, and 0 instead of 0/0."""
    first, values = found.first[lists.order], lists.measure.values
    whole = lists.measured(len(first), -lists.depth.astype(float), lists.measure, "stable", n_jobs)
    counts = ~np.isnan(whole)
    if demand.measure.at_each_cutoff(np.ones(1)) is not None:
        for query in np.flatnonzero(counts):
            own = values[lists.start[query] : lists.start[query + 1]]
            found.values[first[query] + 1 : first[query] + 1 + len(own)] = demand.measure.at_each_cutoff(own)
    else:
        _refuse_too_much(demand, lists, int(np.diff(lists.start).max(initial=0)))
        for kept in range(1, int(np.diff(lists.start).max(initial=0)) + 1):
            many = lists.longer_than(kept - 1)
            own_cut = replace(lists.measure, measure=demand.measure @ kept, params=(demand.measure @ kept).all_params())
            found.values[first[:many] + kept] = lists.measured(
                many, -lists.depth.astype(float), own_cut, "stable", n_jobs
            )
    if demand.begins_with_all:
        found.values[first[counts]] = 0.0
    else:
        np.nan_to_num(found.values, copy=False)
        found.values[first] = 1.0


def _fill_cut_lists(demand: Demand, lists: _RankedLists, found: KeptValues, n_jobs: int | None) -> None:
    """The measure of the first c documents, as if the others had not been retrieved; or 1 minus what is lost so."""
    first, sizes = found.first[lists.order], np.diff(lists.start)
    longest = int(sizes.max(initial=0))
    cut = demand.measure.cutoff
    last = longest if cut is None else min(cut, longest)  # behind its cut-off a measure sees nothing
    _refuse_too_much(demand, lists, last)
    depth, end = lists.depth.astype(float), lists.end.astype(float)
    tied = bool((end != depth + 1).any())
    for kept in range(last + 1):
        many = lists.longer_than(kept - 1)
        is_kept = lists.depth < kept
        own = lists.measured(many, np.where(is_kept, -depth, -np.inf), lists.measure, "stable", n_jobs)
        if demand.lost:
            if kept == 0 or tied:
                known = np.where(end <= kept, -depth, -end)  # blocks that are kept as a whole are as they are
                whole = lists.measured(many, known, lists.measure, "optimistic", n_jobs)
            loss = whole[:many] - own
            # NaN stays; from its cut-off on a measure loses nothing, whatever the order
            own = 1.0 - np.where((loss < _ROUNDING) | (kept == cut) & ~np.isnan(loss), 0.0, loss)
        found.values[first[:many] + kept] = own
    for query in np.flatnonzero(sizes > last):
        begin = first[query] + last
        found.values[begin : begin + sizes[query] - last + 1] = found.values[begin]


def _refuse_too_much(demand: Demand, lists: _RankedLists, most: int) -> None:
    """Raise an error where lists are so long that measuring every number of documents would take hours."""
    sizes = np.diff(lists.start).astype(float)
    if float((sizes * np.minimum(sizes, most)).sum()) > _MOST_MEASURED:
        title = demand.measure.title
        raise RankwiseError(
            f"{title} cannot be measured for every length of lists of up to {int(sizes.max()):,} documents: name a "
            f"cut-off, such as {title}@10, or keep fewer candidates per query"
        )


def queries_for_cutoff(keep: str | Demand, slack: float, *, sd: float, delta: float = 0.05, power: float = 0.8) -> Plan:
    """Number of calibration queries for a cut-off that gives away at most a slack.

    A cut whose true mean is better than the demand by the slack is then shown with the given power, so the cut-off is
    at least as far along the sequence.

    Parameters
    ----------
    keep : str
        The demand, as for :func:`rankwise.cutoff`.
    slack : float
        By how much the mean at the cut-off may be better than demanded: 0.02 for recall of 0.92 in place of 0.9.
    sd : float
        A guess of the standard deviation of the value over queries, near the cut-off.
    delta : float, default=0.05
        The level of the cut-off; delta / G for each of G groups.
    power : float, default=0.8
        Probability with which the slack has to be kept.

    Returns
    -------
    Plan
        The number of queries that count: for recall, those with a relevant document.

    Examples
    --------
    >>> print(queries_for_cutoff("recall>=0.9", 0.02, sd=0.2))
    1,700 queries for a mean of 0.02 above 0.9, shown 80% of the time at level 0.05 (betting: approximation)
    """
    demand = Demand.parse(keep)
    refuse_unless("queries_for_cutoff", above=0, slack=slack)
    if demand.goal + slack >= 1:
        raise RankwiseError(
            f"queries_for_cutoff: slack must leave a mean that is possible, got {slack:g} with {demand!r}"
        )
    return queries_to_show(slack, sd=sd, threshold=demand.goal, level=delta, power=power)
