"""Whether the order of rows inside queries predicts values: those of features, or labels among equal scores.

An order that means something is harmless until something falls back on it: weights that equal labels get in input
order, or equal scores that are ranked in input order. Rankers and evaluations ask here before they do so.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rankwise._diagnose.drift import mid_ranks
from rankwise._diagnose.findings import Finding
from rankwise.queries.checks import names_or_columns, plural
from rankwise.queries.queries import Queries

# Correlations from which the order of rows is said to predict a feature, or the label of equal scores.
PREDICTS, PREDICTS_LABEL = 0.5, 0.1
# Standard deviations of what a random order gives: five are exceeded by chance less than once in a million columns.
DEVIATIONS = 5.0
# Queries and values that are looked at, at equal distances.
_QUERIES, _VALUES = 1_000, 1 << 21


def find_ordered_features(queries: Queries) -> Iterator[Finding]:
    """Features that rise or fall with the order of the rows of a query.

    Parameters
    ----------
    queries : Queries
        The queries; at most 1,000 of them, at equal distances, are looked at.

    Yields
    ------
    finding : Finding
        One finding that names the features, if there are any.
    """
    correlation, deviations = feature_order(queries)
    found = np.flatnonzero((abs(correlation) >= PREDICTS) & (deviations >= DEVIATIONS))
    if not len(found):
        return
    found = found[np.argsort(-abs(correlation[found]), kind="stable")]
    names = names_or_columns(queries)
    figures = f"largest correlation {correlation[found[0]]:+.2f}"
    yield Finding.of(
        "note",
        f"the order of rows within queries predicts {plural(len(found), 'feature')} ({figures})",
        (names[column] for column in found),
        "whatever falls back on input order learns or measures this order: shuffle the rows of each query before "
        "weights without '_sym', and evaluate with ties='expected' instead of 'stable'",
    )


def feature_order(queries: Queries, *, by_label: bool = False) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The rank correlation of every feature with the order of rows inside queries.

    Parameters
    ----------
    queries : Queries
        The queries; at most 1,000 of them, at equal distances, are looked at.
    by_label : bool, default=False
        Whether only documents of one query with equal labels are compared.

    Returns
    -------
    correlation : ndarray of shape (n_features,)
        Between -1 and 1; 0 where nothing can be compared.
    deviations : ndarray of shape (n_features,)
        How many standard deviations of a random order that is from 0.
    """
    width = max(queries.n_features, 1)
    most = max(1, min(_QUERIES, _VALUES * max(len(queries), 1) // max(queries.n_documents * width, 1)))
    totals = OrderTotals(queries.n_features)
    for query in at_equal_distances(len(queries), most):
        rows = queries.rows_of(int(query))
        X = np.asarray(queries.X[rows], dtype=np.float64)
        if not by_label:
            totals.add(X)
            continue
        labels = queries.labels()[rows]
        for label in np.unique(labels):
            totals.add(X[labels == label])
    return totals.result()


def correlate_tied_labels(
    scores: NDArray[np.float64], labels: NDArray[np.float64], start: NDArray[np.int64], rows: NDArray[np.int64] | None
) -> tuple[float, float]:
    """The rank correlation of labels with the order of rows, among documents of one query with equal scores.

    Parameters
    ----------
    scores, labels : ndarray of shape (n_documents,)
        Scores and labels, in input order.
    start : ndarray of shape (n_queries + 1,)
        Where each query begins.
    rows : ndarray of shape (n_documents,) or None
        The rows of the queries one after the other; None if they are grouped already.

    Returns
    -------
    correlation, deviations : float
        As those of :func:`feature_order`.
    """
    totals = OrderTotals(1)
    for query in at_equal_distances(len(start) - 1, _QUERIES):
        place = slice(start[query], start[query + 1])
        score, label = (values[place if rows is None else rows[place]] for values in (scores, labels))
        known, count = np.unique(score, return_counts=True)
        for value in known[count > 1]:
            totals.add(label[score == value][:, None])
    correlation, deviations = totals.result()
    return float(correlation[0]), float(deviations[0])


def at_equal_distances(count: int, most: int) -> NDArray[np.int64]:
    """At most so many of ``count`` places, the first and the last among them."""
    return np.unique(np.linspace(0, max(count - 1, 0), min(count, most)).astype(np.int64))


class OrderTotals:
    """Sums over groups of rows: covariances of ranks and places, their variances in a random order, their maxima.

    Each group counts by its length, not by the square of it. In a random order the covariance has mean 0 and a known
    variance.

    Parameters
    ----------
    columns : int
        Number of columns.
    """

    def __init__(self, columns: int) -> None:
        self.total, self.variance, self.most = np.zeros((3, columns))

    def add(self, values: NDArray[np.float64]) -> None:
        """Add the rows of one group, in their order.

        Parameters
        ----------
        values : ndarray of shape (n, n_columns)
            The values.
        """
        n = len(values)
        if n < 2:
            return
        rank, place = mid_ranks(values) - (n + 1) / 2, np.arange(n)[:, None] - (n - 1) / 2
        self.total += (rank * place).sum(axis=0) / n**2
        self.variance += (rank**2).sum(axis=0) * (place**2).sum() / n**4 / (n - 1)
        self.most += (np.sort(rank, axis=0) * place).sum(axis=0) / n**2

    def result(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Correlations, and how many standard deviations of a random order each is from 0.

        Returns
        -------
        correlation, deviations : ndarray of shape (n_columns,)
            0 where no two rows of a group differ.
        """
        some = self.most > 0
        correlation = np.divide(self.total, self.most, out=np.zeros_like(self.total), where=some)
        deviation = np.sqrt(self.variance)
        return correlation, np.divide(abs(self.total), deviation, out=np.zeros_like(self.total), where=some)
