"""Groups of queries: where a ranking is good, where one ranker gains over another, and how large the queries are.

:func:`by_group` takes means of any values per query within groups of similar queries, :func:`gain_by_group` applies it
to the difference of two rankers, and :func:`queries_by_size` shows how many queries there are of each size. The last
two draw themselves.
"""

import math
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._errors import DataError, RankwiseError
from rankwise._figures import COLOURS, INK, PAPER, PlottedTable
from rankwise._tables import Table
from rankwise.data.checks import is_whole
from rankwise.data.grouping import as_ids, number_by_appearance
from rankwise.data.queries import Queries, as_queries
from rankwise.evaluation.evaluate import evaluate
from rankwise.evaluation.statistics.intervals import How, interval, mean
from rankwise.measures._base import Measure

_PAIRS = "pairs of documents with different labels"
_BINS = 12  # bins that a histogram without a width of its own has at most


def by_group(
    queries: Queries,
    values: ArrayLike,
    by: Literal["documents", "relevant", "pairs"] | ArrayLike = "documents",
    *,
    bins: int = 4,
    rel: float = 1,
    level: float = 0.95,
    how: How = "bootstrap",
    random_state: int | np.random.Generator = 0,
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
        raise DataError(f"values holds one number per query: found shape {array.shape} for {len(queries):,} queries")
    columns: dict[str, list[Any]]
    if isinstance(by, str):
        counts = _counts(queries, by, rel)
        group = _quantile_bins(counts, bins)
        members = [np.flatnonzero(group == number) for number in range(int(group.max(initial=-1)) + 1)]
        columns = {"from": [int(counts[m].min()) for m in members], "to": [int(counts[m].max()) for m in members]}
    else:
        names = as_ids(by, "by")
        if len(names) != len(queries):
            raise DataError(f"by holds one group name per query: found {len(names):,} for {len(queries):,} queries")
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


def queries_by_size(
    queries: Queries, by: Literal["pairs", "documents"] | ArrayLike = "pairs", *, width: int | None = None
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
    if width is None:
        width = _round_width(int(counts.max(initial=0)))
    elif not is_whole(width):
        raise RankwiseError(f"width is a whole number from 1 on: found {width!r:.60}")
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
        axes.bar(self["from"] - shift, self["queries"], width, align="edge", color=COLOURS[0], edgecolor=PAPER)
        axes.grid(axis="x", visible=False)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.yaxis.get_major_locator().set_params(integer=True)
        axes.set(xlabel=self.title.removeprefix("queries by "), ylabel="queries")


def gain_by_group(
    queries: Queries,
    rankers: Mapping[str, Any],
    measure: str | Measure = "nDCG@10",
    by: Literal["pairs", "documents", "relevant"] | ArrayLike = "pairs",
    *,
    bins: int = 4,
    level: float = 0.95,
    how: How = "bootstrap",
    random_state: int | np.random.Generator = 0,
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
        raise DataError(f"a gain is between two rankers: found {len(rankers)} ({', '.join(map(str, rankers))})")
    found = [evaluate(queries, each, [measure], **conventions) for each in rankers.values()]
    first, second = (each.values[0] for each in found)
    options: dict[str, Any] = {"bins": bins, "level": level, "how": how, "random_state": random_state}
    gains = by_group(queries, second - first, by, **options)
    means = [by_group(queries, each, by, bins=bins, how="t")["mean"] for each in (first, second)]
    columns = {name: gains[name] for name in gains.columns if name not in ("mean", "low", "high")}
    columns |= {
        "first": means[0],
        "second": means[1],
        "gain": gains["mean"],
        "low": gains["low"],
        "high": gains["high"],
    }
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
        colours = [COLOURS[0] if value >= 0 else COLOURS[1] for value in gain]
        axes.bar(at, gain, 0.62, color=colours)
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
        if by == "pairs":
            return different_pairs(queries), _PAIRS
        if by == "documents":
            return queries.sizes, "documents"
        raise RankwiseError(f"by is 'pairs', 'documents' or one whole number per query: found {by!r}")
    counts = np.asarray(by)
    if counts.shape != (len(queries),) or counts.dtype.kind not in "iu" or (counts < 0).any():
        raise DataError(
            f"by holds one whole number from 0 on per query: found {counts.dtype} of shape {counts.shape} "
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


def _counts(queries: Queries, by: str, rel: float) -> NDArray[np.int64]:
    """The number that a query is grouped by."""
    if by == "documents":
        return queries.sizes
    if by == "relevant":
        owner = queries.query_of_row[queries.labels() >= rel]
        return np.bincount(owner, minlength=len(queries)).astype(np.int64)
    if by == "pairs":
        return different_pairs(queries)
    raise RankwiseError(f"by is 'documents', 'relevant', 'pairs' or one group name per query: found {by!r}")


def _quantile_bins(counts: NDArray[np.int64], bins: int) -> NDArray[np.int64]:
    """A bin number for each count, bins about equally full; equal counts are never separated."""
    if bins < 1:
        raise RankwiseError(f"bins is 1 or more: found {bins}")
    if len(counts) == 0:
        return counts
    # inverted_cdf gives values that occur, so equal counts fall on the same side of a cut
    cuts = np.quantile(counts, np.arange(1, bins) / bins, method="inverted_cdf")
    _, number = np.unique(np.searchsorted(cuts, counts, side="left"), return_inverse=True)
    return number.astype(np.int64)
