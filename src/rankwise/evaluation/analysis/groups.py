"""Where a ranking is good and where it is not: by kind of query, and by pair of labels."""

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._errors import DataError, RankwiseError
from rankwise._kernels import drive
from rankwise._tables import Table
from rankwise.data.checks import as_scores
from rankwise.data.grouping import as_ids, number_by_appearance
from rankwise.data.queries import Queries, as_queries
from rankwise.evaluation.statistics.intervals import How, interval, mean
from rankwise.measures._base import Ties

# Pairs of labels grow with the square of the number of labels: beyond this the table would say nothing to anybody.
_LABELS_AT_MOST = 32


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
    """Means of per-query values, separately for groups of similar queries.

    Parameters
    ----------
    queries : the judged lists
    values : one value a query, such as ``evaluate(...)["nDCG@10"]``; NaN (a skipped query) is left out of the mean
    by : "documents" groups the queries by their number of documents, "relevant" by their number of relevant
        documents, "pairs" by their number of pairs with different labels; or one group name a query
    bins : groups of about equally many queries; fewer where many queries have the same number
    rel : the smallest label that is relevant
    level, how, random_state : of the intervals, as for :func:`interval`

    Returns
    -------
    table : a row for each group, from small to large or by first appearance: ``from`` and ``to`` (smallest and
        largest number in the group) or ``group``, then queries, skipped (those without a value), mean, low, high;
        the means use the queries' weights

    Examples
    --------
    >>> queries = Queries.from_arrays(np.zeros((6, 1)), [1, 0, 1, 0, 0, 1], group=[1, 2, 3])
    >>> by_group(queries, [1.0, 0.5, 0.25], bins=2)["to"]
    array([2, 3])
    """
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (len(queries),):
        raise DataError(f"values holds one number a query: found shape {array.shape} for {len(queries):,} queries")
    columns: dict[str, list[Any]]
    if isinstance(by, str):
        counts = _counts(queries, by, rel)
        group = _quantile_bins(counts, bins)
        members = [np.flatnonzero(group == number) for number in range(int(group.max(initial=-1)) + 1)]
        columns = {"from": [int(counts[m].min()) for m in members], "to": [int(counts[m].max()) for m in members]}
    else:
        names = as_ids(by, "by")
        if len(names) != len(queries):
            raise DataError(f"by holds one group name a query: found {len(names):,} for {len(queries):,} queries")
        group, first = number_by_appearance(names)
        members = [np.flatnonzero(group == number) for number in range(len(first))]
        columns = {"group": names[first].tolist()}
    columns |= {"queries": [], "skipped": [], "mean": [], "low": [], "high": []}
    for chosen in members:
        part, weight = array[chosen], None if queries.weight is None else queries.weight[chosen]
        low, high, middle = math.nan, math.nan, math.nan
        if weight is None or weight.any():
            middle = mean(part, weight)
            low, high = interval(part, level, how, weight=weight, random_state=random_state)
        row = (len(part), int(np.isnan(part).sum()), middle, low, high)
        for name, value in zip(("queries", "skipped", "mean", "low", "high"), row, strict=True):
            columns[name].append(value)
    return Table(columns)


def label_pairs(queries: Queries, scores: ArrayLike, *, ties: Ties = "expected", n_jobs: int | None = None) -> Table:
    """Which pairs of labels are inverted most: pairs of one query whose higher label has the lower score.

    Parameters
    ----------
    queries : the judged lists, with at most 32 different labels; more are refused, because bins chosen here would
        be arbitrary: put real-valued labels into bins of your own by ``queries.with_labels``
    scores : one score a document, in the order of the input
    ties : what a pair with equal scores counts: "expected" one half, "pessimistic" 1, "optimistic" 0, "stable" 1
        if the lower label comes first in the input
    n_jobs : threads

    Returns
    -------
    table : a row for each pair of labels that meets in some query, most inverted first: higher, lower, pairs,
        inverted, share (inverted / pairs). Every pair counts the same, whatever the weight of its query.

    Examples
    --------
    >>> queries = Queries.from_arrays(np.zeros((3, 1)), [2, 1, 0], group=[3])
    >>> label_pairs(queries, [0.5, 0.5, 0.9])
    higher  lower  pairs  inverted   share
         1      0      1    1.0000  1.0000
         2      0      1    1.0000  1.0000
         2      1      1    0.5000  0.5000
    """
    if ties not in ("expected", "pessimistic", "optimistic", "stable"):
        raise RankwiseError(f"ties is 'expected', 'pessimistic', 'optimistic' or 'stable': found {ties!r}")
    labels, grade = np.unique(as_queries(queries, "label_pairs").labels(), return_inverse=True)
    if len(labels) > _LABELS_AT_MOST:
        raise DataError(
            f"pairs of labels are counted for {_LABELS_AT_MOST} different labels at most: found {len(labels):,}; "
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


def different_pairs(queries: Queries) -> NDArray[np.int64]:
    """For each query, its pairs of documents with different labels: (m^2 - sum over labels of m_l^2) / 2."""
    labels = as_queries(queries, "this count").labels()[queries.rows]
    owner = np.repeat(np.arange(len(queries)), queries.sizes)
    order = np.lexsort((labels, owner))
    labels, owner = labels[order], owner[order]
    head = np.flatnonzero(np.r_[True, (labels[1:] != labels[:-1]) | (owner[1:] != owner[:-1])][: len(labels)])
    run = np.diff(np.append(head, len(labels)))
    equal = np.zeros(len(queries), dtype=np.int64)
    np.add.at(equal, owner[head], run**2)
    return (queries.sizes**2 - equal) // 2


def _counts(queries: Queries, by: str, rel: float) -> NDArray[np.int64]:
    if by == "documents":
        return queries.sizes
    if by == "relevant":
        owner = queries.query_of_row[queries.labels() >= rel]
        return np.bincount(owner, minlength=len(queries)).astype(np.int64)
    if by == "pairs":
        return different_pairs(queries)
    raise RankwiseError(f"by is 'documents', 'relevant', 'pairs' or one group name a query: found {by!r}")


def _quantile_bins(counts: NDArray[np.int64], bins: int) -> NDArray[np.int64]:
    """A bin number for each count, bins about equally full; equal counts are never put apart."""
    if bins < 1:
        raise RankwiseError(f"bins is 1 or more: found {bins}")
    if len(counts) == 0:
        return counts
    cuts = np.quantile(counts, np.arange(1, bins) / bins, method="inverted_cdf")
    _, number = np.unique(np.searchsorted(cuts, counts, side="left"), return_inverse=True)
    return number.astype(np.int64)


def _count(
    queries: Queries, scores: NDArray[np.float64], grade: NDArray[np.int64], n_jobs: int | None
) -> tuple[NDArray[np.int64], ...]:
    """The four counts of :func:`count_pairs` over all queries; whole numbers, so that no order of adding matters."""
    from rankwise._kernels.pairs import count_pairs
    from rankwise._kernels.ragged import order_lists

    start, n_grades = queries.start, int(grade.max(initial=-1)) + 1
    rows = np.empty(0, dtype=np.int64) if queries.is_grouped else queries.rows

    def count(first: int, last: int) -> Any:
        order, end = np.empty((2, int(start[last] - start[first])), dtype=np.int64)
        retrieved = np.empty(last - first, dtype=np.int64)
        order_lists(first, last, start, rows, scores, order, end, retrieved)
        return count_pairs(start[first : last + 1], order, end, grade, n_grades)

    parts = drive.run(count, list(drive.query_chunks(start)), n_jobs)
    empty = np.zeros((n_grades, n_grades), dtype=np.int64)
    return tuple(sum((part[which] for part in parts), empty) for which in range(4))
