"""Drift: features whose values differ between two splits by more than a random division of queries explains.

For every feature, queries are compared by the mean and by the spread of its values within the query. The statistic is
the difference of mean ranks of the queries of the two splits, so neither units nor tails matter. Its distribution under
"both splits are draws of the same queries" comes from permutations that move whole queries from one split to the other:
documents of one query depend on each other and never count as separate evidence. The largest statistic of each
permutation, over all features, corrects for their number (Westfall and Young): the probability of any false
finding is at most ``LEVEL``. With enough queries every difference is significant; a finding also needs a large one: a
query of one split must have the larger value with probability ``OFTEN`` or more.

References
----------
Westfall, P. H., & Young, S. S. (1993). Resampling-Based Multiple Testing. Wiley.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rankwise._diagnose.findings import Finding
from rankwise.queries.checks import plural
from rankwise.queries.queries import Queries

LEVEL = 0.01
OFTEN = 0.75
_PERMUTATIONS = 1_999
_QUERIES = 1_000  # of each split, at equal distances: more do not change what is found, and cost time
_FEWEST = 4
_BLOCK = 1 << 8
_KINDS = ("mean", "spread")


def find_changed_meaning(
    name: str, first: Queries, label: str, other: Queries, columns: NDArray[np.int64], names: list[str]
) -> Iterator[Finding]:
    """Features whose values within queries have another level or spread in another split.

    Parameters
    ----------
    name : str
        The name of the first set.
    first : Queries
        The first set.
    label : str
        The name of the other set.
    other : Queries
        The other set.
    columns : ndarray of int64
        The column in the other set of each feature of the first.
    names : list of str
        The names of the features.

    Yields
    ------
    finding : Finding
        One finding about all of them.
    """
    one, two = (_per_query(queries) for queries in (first, other))
    if min(len(one), len(two)) < _FEWEST or not len(names):
        return
    p, often = permutation_test(one, two[:, :, columns])
    changed = (p <= LEVEL) & (np.abs(often - 0.5) >= OFTEN - 0.5)
    places = np.flatnonzero(changed.any(axis=0))
    if not len(places):
        return
    what = f"{plural(len(places), 'feature has', 'features have')} other values in {label!r} than in {name!r}"
    where = []
    for place in places[np.argsort(-np.abs(often[:, places] - 0.5).max(axis=0), kind="stable")]:
        kind = int(np.abs(np.where(changed[:, place], often[:, place] - 0.5, 0)).argmax())
        where.append(
            f"{names[place]} ({_KINDS[kind]} per query: median {np.median(one[:, kind, place]):.3g}, "
            f"there {np.median(two[:, kind, columns[place]]):.3g}, larger there for {often[kind, place]:.0%} of pairs "
            f"of queries, p = {p[kind, place]:.4f})"
        )
    advice = "check units, versions and missing values: both splits must be made in the same way, from the same period"
    yield Finding.of("warning", what, where, advice)


def permutation_test(
    one: NDArray[np.float64], two: NDArray[np.float64], *, seed: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compare two samples of queries by ranks, with corrected p-values.

    Parameters
    ----------
    one : ndarray of float64, shape (n_queries, ...)
        Any number of values per query.
    two : ndarray of float64, shape (n_others, ...)
        The same of the other sample.
    seed : int, default=0
        The seed of the permutations.

    Returns
    -------
    p : ndarray of float64, shape (...)
        P-values, corrected for the number of values.
    often : ndarray of float64, shape (...)
        The probability that the value of a query of ``two`` is larger than that of a query of ``one``; ties are half.
    """
    n, m = len(one), len(two)
    values = np.concatenate([one, two]).reshape(n + m, -1)
    # twice the ranks are whole numbers: their sums are exact, in any order and by any library
    ranks = 2 * mid_ranks(values) - (n + m + 1)
    spread = np.sqrt((ranks**2).sum(axis=0))
    varies = spread > 0
    ranks = ranks[:, varies]
    spread = spread[varies]
    seen = ranks[n:].sum(axis=0)
    random = np.random.default_rng(seed)
    above = np.ones(len(seen))
    mine = np.abs(seen) / spread
    for begin in range(0, _PERMUTATIONS, _BLOCK):
        count = min(_BLOCK, _PERMUTATIONS - begin)
        chosen = np.zeros((count, n + m))
        for row in chosen:
            row[random.permutation(n + m)[:m]] = 1
        largest = (np.abs(chosen @ ranks) / spread).max(axis=1, initial=0)
        above += (largest[:, np.newaxis] >= mine * (1 - 1e-12)).sum(axis=0)
    p, often = np.ones(len(varies)), np.full(len(varies), 0.5)
    p[varies] = above / (_PERMUTATIONS + 1)
    # the sum of ranks of m queries is m (n + m + 1) / 2 on average, and n m often - n m / 2 above that
    often[varies] = 0.5 + seen / (2 * n * m)
    return p.reshape(one.shape[1:]), often.reshape(one.shape[1:])


def _per_query(queries: Queries) -> NDArray[np.float64]:
    """(queries, 2, features): the mean and the spread of every feature within some of the queries."""
    filled = np.flatnonzero(queries.sizes > 0)
    if len(filled) > _QUERIES:
        filled = filled[np.linspace(0, len(filled) - 1, _QUERIES).round().astype(np.int64)]
    found = np.empty((len(filled), 2, queries.n_features))
    for place, query in enumerate(filled):
        block = np.asarray(queries.X[queries.rows_of(int(query))], dtype=np.float64)
        low = block.min(axis=0)
        found[place, 0] = low + (block - low).mean(axis=0)  # a constant stays exactly that constant
        found[place, 1] = (block - low).std(axis=0)
    return found


def mid_ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rank the values of every column from 1, equal values with the mean of their ranks.

    This is ``scipy.stats.rankdata``, whose import takes half a second.

    Parameters
    ----------
    values : ndarray of float64, shape (n,) or (n, n_columns)
        Finite values.

    Returns
    -------
    ranks : ndarray of float64
        Of the same shape; whole numbers and halves.
    """
    order = np.argsort(values, axis=0, kind="stable")
    ordered = np.take_along_axis(values, order, axis=0)
    number = np.arange(len(values)).reshape(-1, *(values.ndim - 1) * [1])
    changes, edge = ordered[1:] != ordered[:-1], np.ones_like(ordered[:1], dtype=bool)
    first = np.maximum.accumulate(np.where(np.concatenate([edge, changes]), number, 0), axis=0)
    last = np.minimum.accumulate(np.where(np.concatenate([changes, edge]), number, len(values))[::-1], axis=0)[::-1]
    ranks = np.empty(values.shape)
    np.put_along_axis(ranks, order, (first + last) / 2 + 1, axis=0)
    return ranks
