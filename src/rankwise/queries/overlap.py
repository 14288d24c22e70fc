"""Which queries are the same: among the queries that a ranker has seen, and inside one set of queries.

There are three answers: *distinct*, *the same*, and *cannot be told*. They rest on the content of queries, which
:mod:`rankwise.queries.fingerprints` keeps, and not on their ids.

Two queries have the same content if they have the same features and labels, in any order. Whether content identifies a
query is another matter: queries of one document, or of features with few values, coincide by chance. A query is
*identified* by two documents that occur in exactly the same queries: all queries that hold one of them hold the other.
Documents that are in many queries, each time with others, do not identify any, nor do those that are in most queries.
This does not depend on labels, on the number of copies of a query, or on rounding of features, so it finds changed
copies as well: with other labels, in less precision, without some of their documents. Where features have few values,
two documents may be in the same queries by chance. How often that is to be expected follows from the number of
documents that are shared without such company; a query is identified only where chance explains at most one case in
a hundred (:func:`_by_more_than_chance`).

:func:`overlap` compares queries with those that were seen, :func:`same_content` compares them with each other.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels.bits import mixed
from rankwise.queries.fingerprints import (
    SKETCHED,
    Fingerprints,
    content,
    find_sketches,
    fingerprints,
    is_among,
    projection_signs,
)
from rankwise.queries.queries import Queries
from rankwise.queries.source import Chunk, Job, QuerySource

Mask = NDArray[np.bool_]

# The largest share of identified queries that chance may explain.
CHANCE = 0.01
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


def overlap(queries: QuerySource, seen: Fingerprints, *, n_jobs: int | None = None) -> Overlap:
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
    if not (seen.length and count):
        return Overlap(nothing, nothing, nothing)
    same = is_among(fingerprints(queries, n_jobs=n_jobs)["hash"], seen.marks["hash"])
    sketches, owners, times = _owners_of_sketches(seen.marks["documents"])
    query, sketch = _find_sketched(queries, sketches, n_jobs)
    company, few = mixed(owners) + _sets(query, sketch, len(sketches)), times <= max(1, seen.length // 2)
    identifies = np.zeros(len(sketches), bool)
    shared = np.unique(sketch[few[sketch]])
    identifies[shared] = _by_more_than_chance(company[shared], seen.length * count)
    identified = np.bincount(query[identifies[sketch]], minlength=count) > 0
    common = _with_two(query, owners[sketch], count) | (np.bincount(query[times[sketch] > 1], minlength=count) > 1)
    return Overlap(same, identified, common & ~identified)


def same_content(queries: QuerySource, *, n_jobs: int | None = None) -> NDArray[np.int64]:
    """Find the queries that repeat each other, or may do so.

    Queries of one group have the same features and labels, or share two documents that occur in exactly the same
    queries, or consist of one and the same document. Documents that are in most queries tie only those queries that
    have no others.

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
    query, sketch = _find_sketched(queries, sketches, n_jobs)
    rare = (np.bincount(sketch, minlength=len(sketches)) <= max(2, len(queries) // 2))[sketch]
    tying = rare | (np.bincount(query[rare], minlength=len(queries)) == 0)[query]
    together, sets, times = _count_pairs(query[tying], _sets(query, sketch, len(sketches))[sketch[tying]])
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


def _owners_of_sketches(documents: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], Words, Places]:
    """(sorted sketches, a word for the set of queries that have each, the size of that set)."""
    flat = documents.reshape(-1)
    owner = np.repeat(np.arange(len(documents)), documents.shape[1])[flat != 0]
    sketches, place = np.unique(flat[flat != 0], return_inverse=True)
    times = np.bincount(place.reshape(-1), minlength=len(sketches))
    return sketches, _sets(owner, place.reshape(-1), len(sketches)), times


def _by_more_than_chance(company: Words, pairs: int) -> Mask:
    """Whether documents identify a query: those of one company, the word of the queries that they occur in.

    If s documents are shared by chance, each by one of ``pairs`` pairs of a query that was seen and a query, then
    about s^t / (t! pairs^(t - 1)) groups of t documents are shared by the same pair. Documents without company
    estimate s.
    """
    _, place, size = np.unique(company, return_inverse=True, return_counts=True)
    single, found = int((size == 1).sum()), np.zeros(len(size), bool)
    for least in range(2, SKETCHED + 1):
        by_chance = single**least / (math.factorial(least) * pairs ** (least - 1))
        groups = size >= least
        if by_chance <= CHANCE * int(groups.sum()):
            found |= groups
    return np.asarray(found[place.reshape(-1)])


def _sets(query: Places, sketch: Places, count: int) -> Words:
    """A word for the set of queries that have each of ``count`` sketches; equal sets have equal words."""
    words = np.zeros(count, np.uint64)
    np.add.at(words, sketch, mixed(query.astype(np.uint64) + np.uint64(1)))
    return words


def _count_pairs(query: Places, key: Words) -> tuple[Places, Words, Places]:
    """(query, key, how often) for every pair that occurs."""
    order = np.lexsort((key, query))
    query, key = query[order], key[order]
    new = np.ones(len(query), bool)
    new[1:] = (query[1:] != query[:-1]) | (key[1:] != key[:-1])
    first = np.flatnonzero(new)
    return query[first], key[first], np.diff(np.append(first, len(query)))


def _with_two(query: Places, key: Words, count: int) -> Mask:
    """Whether each of ``count`` queries has a key twice or more."""
    who, _, times = _count_pairs(query, key)
    found = np.zeros(count, bool)
    found[who[times > 1]] = True
    return found


def _find_sketched(queries: QuerySource, sketches: NDArray[np.uint32], n_jobs: int | None) -> tuple[Places, Places]:
    """(query, place of a sketch) for every sketch that a document of the query has, each pair once."""
    if not len(sketches):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    query, sketch = np.concatenate([np.zeros((2, 0), np.int64), *queries.map(FindSketches(sketches), n_jobs=n_jobs)], 1)
    return query, sketch


@dataclass(frozen=True)
class FindSketches(Job):
    """The sketches that the documents of a chunk have."""

    sketches: NDArray[np.uint32]
    keeps_prepared = False

    def prepare(self, queries: Queries, offset: int) -> NDArray[Any]:
        return content(queries)

    def run(self, chunk: Chunk, prepared: NDArray[Any], *arguments: Any) -> Places:
        queries, own = chunk.queries, slice(chunk.first, chunk.last)
        rows: Any = slice(int(queries.start[chunk.first]), int(queries.start[chunk.last]))
        X = prepared[rows if queries.is_grouped else queries.rows[rows]]
        place = np.full(len(X), -1, np.int64)
        find_sketches(0, len(X), X, projection_signs(X.shape[1]), self.sketches, place)
        owner = np.repeat(np.arange(chunk.numbers.start, chunk.numbers.stop), queries.sizes[own])
        return np.asarray(np.unique(np.stack([owner, place])[:, place >= 0], axis=1))
