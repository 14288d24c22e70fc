"""Which pairs of labels rankers invert, side by side, and how sure the sample of queries makes us of it."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import DataError
from rankwise._figures import COLOURS, INK
from rankwise.data.checks import as_scores
from rankwise.data.queries import Queries
from rankwise.evaluation.analysis.groups import label_pairs
from rankwise.evaluation.drawn_table import DrawnTable, in_order
from rankwise.evaluation.statistics.intervals import How, interval

Counts = NDArray[np.float64]


def label_pair_errors(
    queries: Queries,
    rankers: Mapping[str, Any],
    *,
    names: Mapping[float, str] | None = None,
    level: float = 0.95,
    how: How = "bootstrap",
    random_state: int | np.random.Generator = 0,
) -> "LabelPairErrors":
    """The share of document pairs that each ranker inverts, by their labels: do errors fall on the top of lists?

    Parameters
    ----------
    queries : the judged lists, with at most 32 different labels
    rankers : name -> scores, one a document, or a fitted ranker
    names : label -> what the pairs call it, such as {2: "d", 1: "p", 0: "n"}; the label itself where none is given
    level, how, random_state : of the intervals, as for :func:`interval`; queries are the sample, and a query counts as
        often as it has pairs

    Returns
    -------
    errors : a row for each pair of labels that meets in some query, the highest labels first, and each ranker: pair,
        ranker, higher, lower, pairs, inverted, share, low, high. Equal scores count one half, and every pair counts
        the same, whatever the weight of its query. ``plot()`` draws the shares as bars, a group a pair.

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
    columns: dict[str, list[Any]] = {
        name: [] for name in ("pair", "ranker", "higher", "lower", "pairs", "inverted", "share", "low", "high")
    }
    rows = []
    for place, (ranker, scored) in enumerate(rankers.items()):
        scores = as_scores(scored.predict(queries) if hasattr(scored, "predict") else scored, queries.n_documents)
        found = list(label_pairs(queries, scores))
        by_query = pairs_by_query(queries, scores, [(line["higher"], line["lower"]) for line in found])
        for line, (pairs, inverted) in zip(found, by_query, strict=True):
            share = np.divide(inverted, pairs, out=np.full(len(pairs), np.nan), where=pairs > 0)
            low, high = interval(share, level, how, weight=pairs, random_state=random_state)
            pair = "-".join(called.get(float(line[end]), f"{line[end]:g}") for end in ("higher", "lower"))
            key = (-line["higher"], line["lower"], place)
            rows.append((key, {"pair": pair, "ranker": ranker, **line, "low": low, "high": high}))
    for _, row in sorted(rows, key=lambda each: each[0]):
        for name, column in columns.items():
            column.append(row[name])
    return LabelPairErrors(columns, "pairs of documents ranked the wrong way round")


def pairs_by_query(
    queries: Queries, scores: NDArray[np.float64], labels: list[tuple[float, float]]
) -> list[tuple[Counts, Counts]]:
    """For each (higher, lower), the pairs of every query and those inverted, equal scores as one half.

    Rows are sorted once by score; the documents of a label that stand above a row are then a difference of
    cumulative counts. O(N log N), and O(N) for each pair of labels, with N documents.
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


class LabelPairErrors(DrawnTable):
    """pair, ranker, higher, lower, pairs, inverted, share, low, high; what :func:`label_pair_errors` returns."""

    __slots__ = ()

    def _inches(self) -> tuple[float, float]:
        return float(np.clip(1.2 + 0.3 * len(self), 5.2, 14.0)), 3.2

    def _draw(self, axes: Any) -> None:
        pairs, rankers = in_order(self["pair"]), in_order(self["ranker"])
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
