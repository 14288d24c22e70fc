"""Where a ranking fails: in which groups of queries, and between which labels.

:func:`by_group` takes means of any values per query within groups of similar queries, :func:`gain_by_group` applies it
to the difference of two rankers, and :func:`queries_by_size` shows how many queries there are of each size.
:func:`label_pairs` counts the pairs of labels that one ranking inverts, by compiled code, and :func:`label_pair_errors`
puts rankers side by side, with intervals over queries. All but the first and :func:`label_pairs` draw themselves.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._figures import COLORS, INK, PAPER, PlottedTable
from rankwise._kernels import parallel
from rankwise._parameters import Jobs, OpenFraction, PositiveInt, Seed, validated
from rankwise._tables import Table
from rankwise.errors import DataError, RankwiseError
from rankwise.evaluation.evaluation import evaluate
from rankwise.evaluation.statistics.intervals import How, interval, mean
from rankwise.measures._base import Measure, Ties, Vector
from rankwise.queries.checks import as_scores
from rankwise.queries.grouping import as_ids, number_by_appearance
from rankwise.queries.queries import Queries, as_queries

_PAIRS = "pairs of documents with different labels"
_BINS = 12  # bins that a histogram without a width of its own has at most


@validated
def by_group(
    queries: Queries,
    values: ArrayLike,
    by: Literal["documents", "relevant", "pairs"] | ArrayLike = "documents",
    *,
    bins: PositiveInt = 4,
    rel: float = 1,
    level: OpenFraction = 0.95,
    how: How = "bootstrap",
    random_state: Seed = 0,
) -> Table:
    """Means of values per query, separately for groups of similar queries.

    Parameters
    ----------
    queries : Queries
        The judged queries.
    values : array-like of shape (n_queries,)
        One value per query, such as ``evaluate(...)["nDCG@10"]``; NaN (a skipped query) is left out of the mean.
    by : {"documents", "relevant", "pairs"} or array-like of shape (n_queries,), default="documents"
        What the queries are grouped by: their number of documents, of relevant documents, or of pairs of documents with
        different labels; or one group name per query.
    bins : int, default=4
        Groups of about equally many queries; fewer where many queries have the same number.
    rel : float, default=1
        The smallest relevant label.
    level : float, default=0.95
        The confidence level of the intervals.
    how : {"bootstrap", "t"}, default="bootstrap"
        The kind of interval, see :func:`~rankwise.evaluation.statistics.intervals.interval`.
    random_state : int or Generator, default=0
        Seed of the bootstrap.

    Returns
    -------
    Table
        A row for each group, from small to large or by first appearance: ``from`` and ``to`` (smallest and largest
        number in the group) or ``group``, then queries, skipped (those without a value), mean, low, high. The means use
        the weights of the queries.

    Raises
    ------
    DataError
        If ``values`` or ``by`` do not match the queries.

    Examples
    --------
    >>> queries = Queries.from_arrays(np.zeros((6, 1)), [1, 0, 1, 0, 0, 1], group=[1, 2, 3])
    >>> by_group(queries, [1.0, 0.5, 0.25], bins=2)["to"]
    array([2, 3])
    """
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (len(queries),):
        raise DataError(f"values must hold one number per query, got shape {array.shape} for {len(queries):,} queries")
    columns: dict[str, list[Any]]
    if isinstance(by, str):
        counts = _counts(queries, by, ("documents", "relevant", "pairs"), rel)
        group = _quantile_bins(counts, bins)
        members = [np.flatnonzero(group == number) for number in range(int(group.max(initial=-1)) + 1)]
        columns = {"from": [int(counts[m].min()) for m in members], "to": [int(counts[m].max()) for m in members]}
    else:
        names = as_ids(by, "by")
        if len(names) != len(queries):
            raise DataError(f"by must hold one group name per query, got {len(names):,} for {len(queries):,} queries")
        group, first = number_by_appearance(names)
        members = [np.flatnonzero(group == number) for number in range(len(first))]
        columns = {"group": names[first].tolist()}
    rows = []
    for chosen in members:
        part, weight = array[chosen], None if queries.weight is None else queries.weight[chosen]
        low, high, middle = math.nan, math.nan, math.nan
        if weight is None or weight.any():
            middle = mean(part, weight)
            low, high = interval(part, level, how, weight=weight, random_state=random_state)
        rows.append((len(part), int(np.isnan(part).sum()), middle, low, high))
    found = Table.of_rows(("queries", "skipped", "mean", "low", "high"), rows)
    return Table(columns | found.to_dict())


@validated
def queries_by_size(
    queries: Queries, by: Literal["pairs", "documents"] | ArrayLike = "pairs", *, width: PositiveInt | None = None
) -> "QuerySizes":
    """How many queries have how many pairs, or documents.

    Parameters
    ----------
    queries : Queries
        The judged queries.
    by : {"pairs", "documents"} or array-like of int, shape (n_queries,), default="pairs"
        Pairs of documents with different labels, documents, or one whole number per query, 0 or more.
    width : int, default=None
        The width of a bin; None takes the smallest of 1, 2, 5, 10, 20, 50, ... that makes 12 bins or fewer.

    Returns
    -------
    QuerySizes
        A row for each bin: from, to (both belong to it), queries, share; ``plot()`` draws them.

    Examples
    --------
    >>> queries = Queries.from_arrays(np.zeros((6, 1)), [1, 0, 1, 0, 0, 1], group=[1, 2, 3])
    >>> queries_by_size(queries)["queries"]
    array([1, 1, 1])
    """
    counts, what = _sizes(queries, by)
    width = width or _round_width(int(counts.max(initial=0)))
    number = np.bincount(counts // width)
    start = width * np.arange(len(number))
    share = number / max(len(counts), 1)
    return QuerySizes({"from": start, "to": start + width - 1, "queries": number, "share": share}, f"queries by {what}")


class QuerySizes(PlottedTable):
    """Columns from, to, queries, share; what :func:`queries_by_size` returns."""

    __slots__ = ()

    def _draw(self, axes: Any) -> None:
        width = int(self["to"][0] - self["from"][0]) + 1 if len(self) else 1
        shift = 0.5 if width == 1 else 0.0  # a bin of one number stands over it
        axes.bar(self["from"] - shift, self["queries"], width, align="edge", color=COLORS[0], edgecolor=PAPER)
        axes.grid(axis="x", visible=False)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.yaxis.get_major_locator().set_params(integer=True)
        axes.set(xlabel=self.title.removeprefix("queries by "), ylabel="queries")


@validated
def gain_by_group(
    queries: Queries,
    rankers: Mapping[str, Any],
    measure: str | Measure = "nDCG@10",
    by: Literal["pairs", "documents", "relevant"] | ArrayLike = "pairs",
    *,
    bins: PositiveInt = 4,
    level: OpenFraction = 0.95,
    how: How = "bootstrap",
    random_state: Seed = 0,
    **conventions: Any,
) -> "GroupGains":
    """The gain of the second of two rankers over the first, separately for groups of similar queries.

    Parameters
    ----------
    queries : Queries
        The judged queries.
    rankers : dict of str to array-like or ranker
        Two names with the scores of the documents, or with fitted rankers.
    measure : str or Measure, default="nDCG@10"
        The measure of the gain.
    by : {"pairs", "documents", "relevant"} or array-like, default="pairs"
        What the queries are grouped by, as for :func:`by_group`; groups of a fixed width are
        ``by=different_pairs(queries) // 1000``.
    bins : int, default=4
        Groups of about equally many queries.
    level : float, default=0.95
        The confidence level of the intervals; differences are paired, query by query.
    how : {"bootstrap", "t"}, default="bootstrap"
        The kind of interval.
    random_state : int or Generator, default=0
        Seed of the bootstrap.
    **conventions : dict
        Further options of :func:`evaluate`, such as ``like="letor"``.

    Returns
    -------
    GroupGains
        A row for each group: from and to, or group; queries, skipped, first and second (the means of both rankers),
        gain, low, high. ``plot()`` draws the gains with their intervals.
    """
    if len(rankers) != 2:
        raise DataError(f"a gain compares two rankers, got {len(rankers)} ({', '.join(map(str, rankers))})")
    found = [evaluate(queries, each, [measure], **conventions) for each in rankers.values()]
    first, second = (each.values[0] for each in found)
    options: dict[str, Any] = {"bins": bins, "level": level, "how": how, "random_state": random_state}
    gains = by_group(queries, second - first, by, **options)
    means = [by_group(queries, each, by, bins=bins, how="t")["mean"] for each in (first, second)]
    columns = {name: gains[name] for name in gains.columns if name not in ("mean", "low", "high")}
    columns |= {"first": means[0], "second": means[1]}
    columns |= {"gain": gains["mean"], "low": gains["low"], "high": gains["high"]}
    one, other = rankers
    return GroupGains(columns, f"{found[0].titles[0]}: {other} minus {one}", by if isinstance(by, str) else "group")


class GroupGains(PlottedTable):
    """Columns from and to, or group; queries, skipped, first, second, gain, low, high; of :func:`gain_by_group`.

    Parameters
    ----------
    columns : dict of str to array-like
        The columns.
    title : str
        The title of the figure.
    by : str
        What the queries were grouped by.

    Attributes
    ----------
    by : str
        What the queries were grouped by.
    """

    __slots__ = ("by",)

    def __init__(self, columns: Mapping[str, Any], title: str, by: str) -> None:
        super().__init__(columns, title)
        self.by = by

    def _inches(self) -> tuple[float, float]:
        return float(np.clip(1.0 + 0.95 * len(self), 5.2, 14.0)), 3.2

    def _draw(self, axes: Any) -> None:
        at, gain = np.arange(len(self)), self["gain"]
        colors = [COLORS[0] if value >= 0 else COLORS[1] for value in gain]
        axes.bar(at, gain, 0.62, color=colors)
        known = np.isfinite(self["low"])
        spread = np.maximum([gain - self["low"], self["high"] - gain], 0.0)[:, known]
        axes.errorbar(at[known], gain[known], spread, fmt="none", ecolor=INK, elinewidth=0.9, capsize=3)
        axes.axhline(0, color=INK, linewidth=0.8)
        axes.set_xticks(at, [f"{self._name(row)}\n{row['queries'] - row['skipped']} queries" for row in self])
        axes.grid(axis="x", visible=False)
        axes.set(ylabel="gain", xlabel={"pairs": _PAIRS}.get(self.by, self.by))

    @staticmethod
    def _name(row: Mapping[str, Any]) -> str:
        """The name of a group below its bar."""
        return str(row["group"]) if "group" in row else f"{row['from']:,} to {row['to']:,}"


def _sizes(queries: Queries, by: str | ArrayLike) -> tuple[NDArray[np.int64], str]:
    """The number that a query counts for the histogram, and its name."""
    if isinstance(by, str):
        return _counts(queries, by, ("pairs", "documents")), _PAIRS if by == "pairs" else by
    counts = np.asarray(by)
    if counts.shape != (len(queries),) or counts.dtype.kind not in "iu" or (counts < 0).any():
        raise DataError(
            f"by must hold one non-negative integer per query, got {counts.dtype} of shape {counts.shape} "
            f"for {len(queries):,} queries"
        )
    return counts.astype(np.int64), "size"


def _round_width(largest: int) -> int:
    """The smallest of 1, 2, 5, 10, 20, 50, ... that makes few enough bins from 0 to the largest number."""
    widths: Iterator[int] = (digit * 10**power for power in count() for digit in (1, 2, 5))
    return next(width for width in widths if largest // width < _BINS)


def different_pairs(queries: Queries) -> NDArray[np.int64]:
    """For each query, its pairs of documents with different labels: (m^2 - sum over labels of m_l^2) / 2.

    Parameters
    ----------
    queries : Queries
        The judged queries.

    Returns
    -------
    ndarray of int64, shape (n_queries,)
        The numbers of pairs.
    """
    labels = as_queries(queries, "this count").labels()[queries.rows]
    owner = np.repeat(np.arange(len(queries)), queries.sizes)
    order = np.lexsort((labels, owner))
    labels, owner = labels[order], owner[order]
    # runs of one label in one query; the pairs inside a run are those with equal labels
    head = np.flatnonzero(np.r_[True, (labels[1:] != labels[:-1]) | (owner[1:] != owner[:-1])][: len(labels)])
    run = np.diff(np.append(head, len(labels)))
    equal = np.zeros(len(queries), dtype=np.int64)
    np.add.at(equal, owner[head], run**2)
    return (queries.sizes**2 - equal) // 2


def _counts(queries: Queries, by: str, known: Sequence[str], rel: float = 1) -> NDArray[np.int64]:
    """The number that a query is grouped by."""
    if by not in known:
        raise RankwiseError(f"by must be {', '.join(map(repr, known))}, or hold one value per query, got {by!r:.60}")
    if by == "documents":
        return queries.sizes
    if by == "relevant":
        owner = queries.query_of_row[queries.labels() >= rel]
        return np.bincount(owner, minlength=len(queries)).astype(np.int64)
    return different_pairs(queries)


def _quantile_bins(counts: NDArray[np.int64], bins: int) -> NDArray[np.int64]:
    """A bin number for each count, bins about equally full; equal counts are never separated."""
    if len(counts) == 0:
        return counts
    # inverted_cdf gives values that occur, so equal counts fall on the same side of a cut
    cuts = np.quantile(counts, np.arange(1, bins) / bins, method="inverted_cdf")
    _, number = np.unique(np.searchsorted(cuts, counts, side="left"), return_inverse=True)
    return number.astype(np.int64)


# ------------------------------------------------------------------------------------------------------ pairs of labels

# Pairs of labels grow with the square of the number of labels: beyond this the table would be useless.
_LABELS_AT_MOST = 32


@validated
def label_pairs(queries: Queries, scores: ArrayLike, *, ties: Ties = "expected", n_jobs: Jobs = None) -> Table:
    """Count which pairs of labels are inverted most: pairs of one query whose higher label has the lower score.

    Parameters
    ----------
    queries : Queries
        The judged queries, with at most 32 different labels. More raise an error, because bins chosen here would be
        arbitrary: put real-valued labels into bins of your own by ``queries.with_labels``.
    scores : array-like of shape (n_documents,)
        One score per document, in the order of the input.
    ties : {"expected", "pessimistic", "optimistic", "stable"}, default="expected"
        What a pair with equal scores counts: "expected" one half, "pessimistic" 1, "optimistic" 0, "stable" 1 if the
        lower label comes first in the input.
    n_jobs : int, default=None
        Threads; None uses every core.

    Returns
    -------
    Table
        A row for each pair of labels that occurs in some query, most inverted first: higher, lower, pairs, inverted,
        share (inverted / pairs). Every pair counts the same, whatever the weight of its query.

    Examples
    --------
    >>> queries = Queries.from_arrays(np.zeros((3, 1)), [2, 1, 0], group=[3])
    >>> label_pairs(queries, [0.5, 0.5, 0.9])
    higher  lower  pairs  inverted   share
         1      0      1    1.0000  1.0000
         2      0      1    1.0000  1.0000
         2      1      1    0.5000  0.5000
    """
    labels, grade = np.unique(as_queries(queries, "label_pairs").labels(), return_inverse=True)
    if len(labels) > _LABELS_AT_MOST:
        raise DataError(
            f"pairs of labels are counted for at most {_LABELS_AT_MOST} different labels, got {len(labels):,}; "
            "put them into bins, such as queries.with_labels(numpy.digitize(queries.y, edges))"
        )
    pairs, inverted, tied, tied_wrongly = _count(queries, as_scores(scores, queries.n_documents), grade, n_jobs)
    counted = {"expected": 0.5, "pessimistic": 1.0, "optimistic": 0.0}
    wrong = inverted + (1.0 * tied_wrongly if ties == "stable" else counted[ties] * tied)
    higher, lower = np.nonzero(pairs)
    share = wrong[higher, lower] / pairs[higher, lower]
    order = np.lexsort((lower, higher, -share))
    higher, lower = higher[order], lower[order]
    whole = bool((labels == np.floor(labels)).all())
    shown = labels.astype(np.int64) if whole else labels
    return Table(
        {
            "higher": shown[higher],
            "lower": shown[lower],
            "pairs": pairs[higher, lower],
            "inverted": wrong[higher, lower],
            "share": share[order],
        }
    )


@validated
def label_pair_errors(
    queries: Queries,
    rankers: Mapping[str, Any],
    *,
    names: Mapping[float, str] | None = None,
    level: OpenFraction = 0.95,
    how: How = "bootstrap",
    random_state: Seed = 0,
) -> "LabelPairErrors":
    """The share of document pairs that each ranker inverts, by labels: it shows whether errors concern the top.

    Parameters
    ----------
    queries : Queries
        The judged queries, with at most 32 different labels.
    rankers : dict of str to array-like or ranker
        For each name the scores, one per document, or a fitted ranker.
    names : dict of float to str, default=None
        What the pairs call a label, such as {2: "d", 1: "p", 0: "n"}; the label itself where no name is given.
    level : float, default=0.95
        The confidence level of the intervals. Queries are the sample, and a query counts as often as it has pairs.
    how : {"bootstrap", "t"}, default="bootstrap"
        The kind of interval, see :func:`~rankwise.evaluation.statistics.intervals.interval`.
    random_state : int or Generator, default=0
        Seed of the bootstrap.

    Returns
    -------
    LabelPairErrors
        A row for each pair of labels that occurs in some query, the highest labels first, and each ranker: pair,
        ranker, higher, lower, pairs, inverted, share, low, high. Equal scores count one half, and every pair counts the
        same, whatever the weight of its query. ``plot()`` draws the shares as bars, one group per pair.

    Examples
    --------
    >>> queries = Queries.from_arrays(np.zeros((3, 1)), [2, 1, 0], group=[3])
    >>> errors = label_pair_errors(queries, {"reversed": [0.0, 1.0, 2.0], "right": [2.0, 1.0, 0.0]})
    >>> errors["share"].tolist()
    [1.0, 0.0, 1.0, 0.0, 1.0, 0.0]
    """
    if not rankers:
        raise DataError("rankers must be a dict from names to scores or fitted rankers, got an empty one")
    called = {float(label): name for label, name in (names or {}).items()}
    rows: list[dict[str, Any]] = []
    for ranker, scored in rankers.items():
        scores = as_scores(scored.predict(queries) if hasattr(scored, "predict") else scored, queries.n_documents)
        found = list(label_pairs(queries, scores))
        by_query = pairs_by_query(queries, scores, [(line["higher"], line["lower"]) for line in found])
        for line, (pairs, inverted) in zip(found, by_query, strict=True):
            share = np.divide(inverted, pairs, out=np.full(len(pairs), np.nan), where=pairs > 0)
            # weighted by its pairs, the mean over queries is the share over all pairs
            low, high = interval(share, level, how, weight=pairs, random_state=random_state)
            pair = "-".join(called.get(float(line[end]), f"{line[end]:g}") for end in ("higher", "lower"))
            rows.append({"pair": pair, "ranker": ranker, **line, "low": low, "high": high})
    rows.sort(key=lambda row: (-row["higher"], row["lower"]))  # rankers stay in their order
    columns = ("pair", "ranker", "higher", "lower", "pairs", "inverted", "share", "low", "high")
    return LabelPairErrors({name: [row[name] for row in rows] for name in columns}, "inverted pairs of documents")


def pairs_by_query(queries: Queries, scores: Vector, labels: list[tuple[float, float]]) -> list[tuple[Vector, Vector]]:
    """For each (higher, lower), the pairs of every query and those inverted, equal scores as one half.

    Rows are sorted once by score; the documents of a label that stand above a row are then a difference of cumulative
    counts. O(N log N), and O(N) for each pair of labels, with N documents.

    Parameters
    ----------
    queries : Queries
        The judged queries.
    scores : ndarray of shape (n_documents,)
        The scores.
    labels : list of tuple of float
        The pairs of labels.

    Returns
    -------
    list of tuple of ndarray
        (pairs, inverted) for each pair of labels, both of shape (n_queries,).
    """
    rows, owner = queries.rows, np.repeat(np.arange(len(queries)), queries.sizes)
    order = np.lexsort((scores[rows], owner))
    value, label = scores[rows][order], queries.labels()[rows][order]
    heads = np.concatenate([[0], np.flatnonzero((owner[1:] != owner[:-1]) | (value[1:] != value[:-1])) + 1])
    ends = np.append(heads[1:], len(value))
    tied = np.repeat(np.arange(len(heads)), ends - heads)  # the number of each row's block of equal scores
    first, last, end = heads[tied], ends[tied], queries.start[1:][owner]
    found = []
    for higher, lower in labels:
        upto = np.concatenate([[0], np.cumsum(label == lower)])
        above = (upto[end] - upto[last]) + 0.5 * (upto[last] - upto[first])
        mine = label == higher
        count, inverted = np.zeros((2, len(queries)))
        np.add.at(count, owner[mine], upto[end[mine]] - upto[queries.start[owner[mine]]])
        np.add.at(inverted, owner[mine], above[mine])
        found.append((count, inverted))
    return found


class LabelPairErrors(PlottedTable):
    """Columns pair, ranker, higher, lower, pairs, inverted, share, low, high; of :func:`label_pair_errors`."""

    __slots__ = ()

    def _inches(self) -> tuple[float, float]:
        return float(np.clip(1.2 + 0.3 * len(self), 5.2, 14.0)), 3.2

    def _draw(self, axes: Any) -> None:
        pairs, rankers = list(dict.fromkeys(self["pair"])), list(dict.fromkeys(self["ranker"]))
        for place, ranker in enumerate(rankers):
            width = 0.8 / len(rankers)
            mine = self["ranker"] == ranker
            at = np.array([pairs.index(pair) for pair in self["pair"][mine]]) + (place - (len(rankers) - 1) / 2) * width
            share, low, high = (100 * self[name][mine] for name in ("share", "low", "high"))
            axes.bar(at, share, 0.92 * width, color=COLORS[place % len(COLORS)], label=ranker)
            known = np.isfinite(low)
            spread = np.maximum([share - low, high - share], 0.0)[:, known]
            axes.errorbar(at[known], share[known], spread, fmt="none", ecolor=INK, elinewidth=0.8, capsize=2)
        axes.set_xticks(range(len(pairs)), pairs)
        axes.grid(axis="x", visible=False)
        axes.set(ylabel="inverted, %", xlabel="labels of the pair, higher first")
        if rankers:
            axes.margins(y=0.18)  # the legend stands above the bars
            axes.legend(loc="upper center", ncols=len(rankers))


def _count(
    queries: Queries, scores: Vector, grade: NDArray[np.int64], n_jobs: int | None
) -> tuple[NDArray[np.int64], ...]:
    """The four counts of :func:`count_pairs` over all queries; they are integers, so no order of addition matters."""
    from rankwise._kernels.pairs import count_pairs
    from rankwise.measures.compute import order_lists

    start, n_grades = queries.start, int(grade.max(initial=-1)) + 1
    rows = np.empty(0, dtype=np.int64) if queries.is_grouped else queries.rows

    def count(first: int, last: int) -> Any:
        order, end = np.empty((2, int(start[last] - start[first])), dtype=np.int64)
        retrieved = np.empty(last - first, dtype=np.int64)
        order_lists(first, last, start, rows, scores, order, end, retrieved)
        return count_pairs(start[first : last + 1], order, end, grade, n_grades)

    parts = parallel.map_chunks(count, list(parallel.query_chunks(start)), n_jobs)
    empty = np.zeros((n_grades, n_grades), dtype=np.int64)
    return tuple(sum((part[which] for part in parts), empty) for which in range(4))
