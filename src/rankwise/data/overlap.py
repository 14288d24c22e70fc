"""Which queries are the same: among the queries that a ranker has seen, and inside one set of queries.

There are three answers: *distinct*, *the same*, and *cannot be told*. They rest on the content of queries, which
:mod:`rankwise.data.fingerprints` keeps, and not on their ids.

Two queries have the same content if they have the same features and labels, in any order. Whether content identifies a
query is another matter: queries of one document, or of features with few values, coincide by chance. A query is
*identified* by two documents that occur in exactly the same queries: all queries that hold one of them hold the other.
Documents that are in many queries, each time with others, do not identify any. This does not depend on labels, on the
number of copies of a query, or on rounding of features, so it finds changed copies as well: with other labels, in less
precision, without some of their documents.

:func:`overlap` compares queries with those that were seen, :func:`same_content` compares them with each other.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels import drive
from rankwise._kernels.bits import mixed
from rankwise.data.chunks import Job
from rankwise.data.fingerprints import Fingerprints, content, find_sketches, fingerprints, is_among, projection_signs
from rankwise.data.passes.chunked import ChunkedQueries
from rankwise.data.queries import Queries

Mask = NDArray[np.bool_]

# What a certificate may state about queries for which :func:`overlap` finds nothing.
NOT_SEEN = (
    "no hold-out query counts for certain that has the content of a query which fit saw, and none is a changed copy of "
    "one, as far as changed copies can be recognized"
)


@dataclass(frozen=True)
class Overlap:
    """How queries relate to those that were seen, one answer per query.

    Attributes
    ----------
    same : ndarray of bool, shape (n_queries,)
        The query has the features and labels of a query that was seen.
    identified : ndarray of bool, shape (n_queries,)
        Two of its documents identify a query that was seen.
    common : ndarray of bool, shape (n_queries,)
        It shares two documents or more with queries that were seen, and these documents do not identify a query.
    """

    same: Mask
    identified: Mask
    common: Mask

    @property
    def copies(self) -> Mask:
        """The same query: its content was seen, and identifies it."""
        return self.same & self.identified

    @property
    def changed(self) -> Mask:
        """The same query with other labels, rounded features, or without some of its documents."""
        return self.identified & ~self.same

    @property
    def unclear(self) -> Mask:
        """It cannot be told: what it shares with queries that were seen may be shared by chance."""
        return (self.same | self.common) & ~self.identified


def overlap(queries: Queries, seen: Fingerprints, *, n_jobs: int | None = None) -> Overlap:
    """Compare queries with those that were seen.

    Parameters
    ----------
    queries : Queries
        The queries to look up.
    seen : Fingerprints
        The fingerprints of what was seen.
    n_jobs : int, default=None
        The number of threads; None uses every core.

    Returns
    -------
    Overlap
        The answers.
    """
    count, nothing = len(queries), np.zeros(len(queries), bool)
    if not seen.length:
        return Overlap(nothing, nothing, nothing)
    same = is_among(fingerprints(queries, n_jobs=n_jobs)["hash"], seen.marks["hash"])
    sketches, owners, several = _owners_of_sketches(seen.marks["documents"])
    query, sketch = _sketched(queries, sketches, n_jobs)
    identified = _with_two(query, mixed(owners[sketch]) + _sets(query, sketch, len(sketches))[sketch], count)
    shared = _with_two(query, owners[sketch], count) | (np.bincount(query[several[sketch]], minlength=count) > 1)
    return Overlap(same, identified, shared & ~identified)


def same_content(queries: Queries, *, n_jobs: int | None = None) -> NDArray[np.int64]:
    """Find the queries that repeat each other, or may do so.

    Queries of one group have the same features and labels, or share two documents that occur in exactly the same
    queries, or consist of one and the same document.

    Parameters
    ----------
    queries : Queries
        With or without labels.
    n_jobs : int, default=None
        The number of threads; None uses every core.

    Returns
    -------
    group : ndarray of int64, shape (n_queries,)
        The number of each query's group, from 0 on, in the order of first appearance.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    marks = fingerprints(queries, n_jobs=n_jobs)
    sketches = np.unique(marks["documents"])
    sketches = sketches[sketches != 0]
    query, sketch = _sketched(queries, sketches, n_jobs)
    together, sets, times = _counted(query, _sets(query, sketch, len(sketches))[sketch])
    alone = np.bincount(query, minlength=len(queries))[query] == 1
    ties = [
        (np.arange(len(queries)), marks["hash"]),
        (together[times > 1], sets[times > 1]),
        (query[alone], sketch[alone].astype(np.uint64)),
    ]
    one, two = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for who, key in ties:  # each query is tied to the next one with the same key
        order = np.argsort(key, kind="stable")
        tied = key[order[1:]] == key[order[:-1]]
        one.append(who[order[:-1][tied]])
        two.append(who[order[1:][tied]])
    first, second = np.concatenate(one), np.concatenate(two)
    graph = coo_array((np.ones(len(first), bool), (first, second)), shape=(len(queries), len(queries)))
    _, group = connected_components(graph, directed=False)
    _, appeared, number = np.unique(group, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(appeared))[number.reshape(-1)], dtype=np.int64)


# ------------------------------------------------------------------------------------------- sketches and who has them

Words = NDArray[np.uint64]
Places = NDArray[np.int64]


def _owners_of_sketches(documents: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], Words, Mask]:
    """(sorted sketches, a word for the set of queries that have each, whether there are several)."""
    flat = documents.reshape(-1)
    owner = np.repeat(np.arange(len(documents)), documents.shape[1])[flat != 0]
    sketches, place = np.unique(flat[flat != 0], return_inverse=True)
    several = np.bincount(place.reshape(-1), minlength=len(sketches)) > 1
    return sketches, _sets(owner, place.reshape(-1), len(sketches)), several


def _sets(query: Places, sketch: Places, count: int) -> Words:
    """A word for the set of queries that have each of ``count`` sketches; equal sets have equal words."""
    words = np.zeros(count, np.uint64)
    np.add.at(words, sketch, mixed(query.astype(np.uint64) + np.uint64(1)))
    return words


def _counted(query: Places, key: Words) -> tuple[Places, Words, Places]:
    """(query, key, how often) for every pair that occurs."""
    order = np.lexsort((key, query))
    query, key = query[order], key[order]
    new = np.ones(len(query), bool)
    new[1:] = (query[1:] != query[:-1]) | (key[1:] != key[:-1])
    first = np.flatnonzero(new)
    return query[first], key[first], np.diff(np.append(first, len(query)))


def _with_two(query: Places, key: Words, count: int) -> Mask:
    """Whether each of ``count`` queries has a key twice or more."""
    who, _, times = _counted(query, key)
    found = np.zeros(count, bool)
    found[who[times > 1]] = True
    return found


def _sketched(queries: Queries, sketches: NDArray[np.uint32], n_jobs: int | None) -> tuple[Places, Places]:
    """(query, place of a sketch) for every sketch that a document of the query has, each pair once."""
    if not len(sketches):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    if isinstance(queries, ChunkedQueries):
        parts = list(queries.map(SketchesOfChunk(sketches), n_jobs=n_jobs))
        query, sketch = np.concatenate([np.zeros((2, 0), np.int64), *parts], axis=1)
        return query, sketch
    X, place = content(queries), np.full(queries.n_documents, -1, np.int64)
    signs, ends = projection_signs(X.shape[1]), [*range(0, queries.n_documents, drive.CHUNK), queries.n_documents]
    drive.run(lambda first, last: find_sketches(first, last, X, signs, sketches, place), list(pairwise(ends)), n_jobs)
    found = place >= 0
    query, sketch = np.unique(np.stack([queries.query_of_row[found], place[found]]), axis=1)
    return query, sketch


@dataclass(frozen=True)
class SketchesOfChunk(Job):
    """The sketches that are found in a chunk."""

    sketches: NDArray[np.uint32]

    def run(self, block: Queries, first: int, prepared: Any, *arguments: Any) -> Places:
        query, sketch = _sketched(block, self.sketches, 1)
        return np.stack([query + first, sketch])
