"""Queries that were used before: those of a hold-out that a ranker has seen, and those that repeat another one.

Both compare content, not ids. Neither is fooled by another order of rows or by a touch on the last digits, the first
one also not by rounding, by another precision or by a document that is missing.
"""

import math

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels import drive
from rankwise.data.fingerprints import Fingerprints, fingerprints, telling
from rankwise.data.queries import Queries

# The width of cells for means, for one feature.
_NARROW = 2.0**-26

# What a certificate may say of queries that :func:`seen_before` does not name.
NOT_SEEN = (
    "no hold-out query has the content of a query that fit saw, or half of its sampled documents with features equal "
    "to about five digits"
)


def seen_before(queries: Queries, seen: Fingerprints, *, n_jobs: int | None = None) -> NDArray[np.bool_]:
    """For each query whether it is one of those that were seen.

    A query was seen if its hash is known; or if two of the sketched documents of one query that was seen, and half of
    them, are among its documents. Documents that occur in several queries do not count: they tell nothing.

    Parameters
    ----------
    queries : Queries
        To be looked up.
    seen : Fingerprints
        Of what was seen.
    n_jobs : int, default=None
        Threads.

    Returns
    -------
    seen : ndarray of bool, shape (n_queries,)
    """
    if not seen.length:
        return np.zeros(len(queries), bool)
    marks, known = fingerprints(queries, n_jobs=n_jobs), seen.marks
    exact = np.isin(marks["hash"], known["hash"]) & telling(marks)
    sketches, owner = _telling_sketches(known["documents"])
    if not len(sketches):
        return exact
    place = _found(queries, sketches, n_jobs)
    found = place >= 0
    # every sketch once per query, or per group of queries that repeat each other
    pairs = np.unique(np.stack([queries.query_of_row[found], place[found]]), axis=1)
    group = same_content(queries, n_jobs=n_jobs)
    groups_of_sketch = np.bincount(np.unique(np.stack([group[pairs[0]], pairs[1]]), axis=1)[1], minlength=len(sketches))
    pairs = pairs[:, groups_of_sketch[pairs[1]] == 1]
    (asked, of), count = np.unique(np.stack([pairs[0], owner[pairs[1]]]), axis=1, return_counts=True)
    needed = np.maximum(2, (np.bincount(owner)[of] + 1) // 2)
    exact[asked[count >= needed]] = True
    return exact


def same_content(queries: Queries, *, n_jobs: int | None = None) -> NDArray[np.int64]:
    """For each query the number of its group: queries of one group repeat each other.

    Queries repeat each other if they have the same hash, or if they have equally many documents whose features and
    labels have the same mean to about nine digits. Queries whose documents are all alike repeat nothing.

    Parameters
    ----------
    queries : Queries
        With or without labels.
    n_jobs : int, default=None
        Threads.

    Returns
    -------
    group : ndarray of int64, shape (n_queries,)
        From 0 on, in the order of first appearance.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    count = len(queries)
    marks = fingerprints(queries, n_jobs=n_jobs)
    tells = np.flatnonzero(telling(marks))
    means = _means(queries, n_jobs)[tells]
    keys = [marks["hash"][tells]]
    for shift in (0.0, 0.5):  # two grids: what lies at the edge of a cell of one lies inside a cell of the other
        cells = np.column_stack([queries.sizes[tells], np.floor(means + shift)])
        keys.append(np.unique(cells, axis=0, return_inverse=True)[1].reshape(-1).astype(np.uint64))
    one, two = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for key in keys:  # each is tied to the next of its kind
        order = np.argsort(key, kind="stable")
        tied = key[order[1:]] == key[order[:-1]]
        one.append(tells[order[:-1][tied]])
        two.append(tells[order[1:][tied]])
    first, second = np.concatenate(one), np.concatenate(two)
    ties = coo_array((np.ones(len(first), bool), (first, second)), shape=(count, count))
    _, group = connected_components(ties, directed=False)
    _, appeared, number = np.unique(group, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(appeared))[number.reshape(-1)], dtype=np.int64)


def _telling_sketches(documents: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """(sorted sketches, the query of each) without those of no document and those of several queries."""
    flat, owner = documents.reshape(-1), np.repeat(np.arange(len(documents)), documents.shape[1])
    values, place, count = np.unique(flat, return_index=True, return_counts=True)
    kept = (count == 1) & (values != 0)
    return values[kept], owner[place[kept]]


def _found(queries: Queries, sketches: NDArray[np.uint32], n_jobs: int | None) -> NDArray[np.int64]:
    """For each document the place of its sketch, or -1."""
    from rankwise._kernels.fingerprint import find_sketches, projection_signs

    X, signs = np.asarray(queries.X), projection_signs(queries.n_features)
    place = np.full(queries.n_documents, -1, np.int64)
    chunks = [
        (first, min(first + drive.CHUNK, queries.n_documents)) for first in range(0, queries.n_documents, drive.CHUNK)
    ]
    drive.run(lambda first, last: find_sketches(first, last, X, signs, sketches, place), chunks, n_jobs)
    return place


def _means(queries: Queries, n_jobs: int | None) -> NDArray[np.float64]:
    """The mean projection of each query's documents, in narrow cells, and four times the sum of their labels.

    These cells are wider than what another order of the rows or a touch on the last digits makes of a mean, and so
    narrow that queries which differ in a single feature hardly ever share one.
    """
    from rankwise._kernels.fingerprint import PROJECTIONS, cell_width, mean_projections, projection_signs

    X, signs = np.asarray(queries.X), projection_signs(queries.n_features)
    rows = np.empty(0, np.int64) if queries.is_grouped else queries.rows
    means = np.zeros((len(queries), PROJECTIONS + 1))
    drive.run(
        lambda first, last: mean_projections(first, last, queries.start, rows, X, signs, means),
        list(drive.query_chunks(queries.start)),
        n_jobs,
    )
    if queries.y is not None and len(queries):
        filled = queries.sizes > 0
        labels = queries.y if queries.is_grouped else queries.y[queries.rows]
        total = np.concatenate([[0.0], np.cumsum(labels)])
        sums = total[queries.start[1:]] - total[queries.start[:-1]]
        means[filled, PROJECTIONS] = 4 * sums[filled]
    means[:, :PROJECTIONS] *= cell_width(queries.n_features) / (_NARROW * math.sqrt(max(1, queries.n_features)))
    return means
