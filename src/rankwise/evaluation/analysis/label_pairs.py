"""Pairs of labels that rankers invert: which grades are confused, and how sure the sample of queries makes us of it.

:func:`label_pairs` counts the inverted pairs of one ranking by compiled code, and :func:`label_pair_errors` puts
rankers side by side, with intervals over queries and a figure.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._errors import DataError, RankwiseError
from rankwise._figures import COLOURS, INK, PlottedTable
from rankwise._kernels import drive
from rankwise._tables import Table
from rankwise.data.checks import as_scores
from rankwise.data.queries import Queries, as_queries
from rankwise.evaluation.statistics.intervals import How, interval
from rankwise.measures._base import Ties, Vector

# Pairs of labels grow with the square of the number of labels: beyond this the table would be useless.
_LABELS_AT_MOST = 32


def label_pairs(queries: Queries, scores: ArrayLike, *, ties: Ties = "expected", n_jobs: int | None = None) -> Table:
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


def label_pair_errors(
    queries: Queries,
    rankers: Mapping[str, Any],
    *,
    names: Mapping[float, str] | None = None,
    level: float = 0.95,
    how: How = "bootstrap",
    random_state: int | np.random.Generator = 0,
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
        raise DataError("rankers maps names to scores or fitted rankers: found none")
    called = {float(label): name for label, name in (names or {}).items()}
    names_of_columns = ("pair", "ranker", "higher", "lower", "pairs", "inverted", "share", "low", "high")
    rows = []
    for place, (ranker, scored) in enumerate(rankers.items()):
        scores = as_scores(scored.predict(queries) if hasattr(scored, "predict") else scored, queries.n_documents)
        found = list(label_pairs(queries, scores))
        by_query = pairs_by_query(queries, scores, [(line["higher"], line["lower"]) for line in found])
        for line, (pairs, inverted) in zip(found, by_query, strict=True):
            share = np.divide(inverted, pairs, out=np.full(len(pairs), np.nan), where=pairs > 0)
            # weighted by its pairs, the mean over queries is the share over all pairs
            low, high = interval(share, level, how, weight=pairs, random_state=random_state)
            pair = "-".join(called.get(float(line[end]), f"{line[end]:g}") for end in ("higher", "lower"))
            row = {"pair": pair, "ranker": ranker, **line, "low": low, "high": high}
            rows.append(((-line["higher"], line["lower"], place), [row[name] for name in names_of_columns]))
    rows.sort(key=lambda each: each[0])
    table = Table.of_rows(names_of_columns, (row for _, row in rows))
    return LabelPairErrors(table.to_dict(), "inverted pairs of documents")


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
            axes.bar(at, share, 0.92 * width, color=COLOURS[place % len(COLOURS)], label=ranker)
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

    parts = drive.run(count, list(drive.query_chunks(start)), n_jobs)
    empty = np.zeros((n_grades, n_grades), dtype=np.int64)
    return tuple(sum((part[which] for part in parts), empty) for which in range(4))
