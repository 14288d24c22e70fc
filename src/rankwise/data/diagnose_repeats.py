"""Diagnosis of what is there twice: documents within a query, and queries in two splits.

Candidates are found by 64-bit keys in linear time and memory, and then compared value by value.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.data.diagnose_features import Keys, mixed
from rankwise.data.diagnose_findings import Finding, counted
from rankwise.data.queries import Queries

# Pairs of rows compared together.
_COMPARED_TOGETHER = 1 << 12


@dataclass(frozen=True, slots=True)
class Split:
    """One set of queries, seen through the features of the first set.

    Attributes
    ----------
    name : what the user calls it
    queries : the set
    columns : for each feature of the first set, the column in this one
    row_key : the rows' keys, made with the first set's multipliers
    """

    name: str
    queries: Queries
    columns: NDArray[np.int64]
    row_key: Keys


def find_repeated_rows(queries: Queries, row_key: Keys, facts: dict[str, Any]) -> Iterator[Finding]:
    """Documents of one query with the same features, and those of them with different labels."""
    if queries.n_features == 0:
        return
    owner = queries.query_of_row
    first, second = _repeats(queries, row_key, owner)
    facts["repeated_rows"] = len(second)
    if len(second) == 0:
        return
    names = queries.names()
    where = np.unique(owner[second])
    what = f"{counted(len(second), 'document repeats', 'documents repeat')} the features of another of the same query"
    advice = "no ranker can tell them apart: check that no document was joined twice"
    yield Finding.of("note", what, (names[query] for query in where), advice)
    if queries.y is None:
        return
    against = queries.y[first] != queries.y[second]
    facts["contradictory_rows"] = int(against.sum())
    if against.any():
        where = np.unique(owner[second[against]])
        yield Finding.of(
            "warning",
            f"{counted(len(where), 'query has', 'queries have')} documents with the same features and different labels",
            (names[query] for query in where),
            "contradictory judgements bound what any ranker can reach: judge again, or add features that differ",
        )


def find_shared_queries(splits: list[Split]) -> Iterator[Finding]:
    """Queries that are in two splits, by their ids and by their documents."""
    content = [_fingerprints(split) for split in splits]
    for one, two in combinations(range(len(splits)), 2):
        yield from _compare(splits[one], splits[two], content[one], content[two])


def _compare(one: Split, two: Split, mine: Keys, theirs: Keys) -> Iterator[Finding]:
    names, others = one.queries.names(), two.queries.names()
    both_named = one.queries.qid is not None and two.queries.qid is not None
    place = {name: query for query, name in enumerate(names)} if both_named else {}
    by_content: dict[int, list[int]] = {}
    for query, key in enumerate(mine.tolist()):
        by_content.setdefault(key, []).append(query)
    same: list[Any] = []
    namesakes: list[Any] = []
    renamed: list[str] = []
    for query, name in enumerate(others):
        twin = place.get(name)
        if twin is not None:
            alike = mine[twin] == theirs[query] and _same_documents(one, twin, two, query)
            (same if alike else namesakes).append(name)
        if _tells(two, query):
            for candidate in by_content.get(int(theirs[query]), ()):
                if candidate != twin and _same_documents(one, candidate, two, query):
                    renamed.append(f"{names[candidate]} = {name}")
                    break
    between = f"{one.name!r} and {two.name!r}"
    leak = "what is measured on them is memory, not ranking: leave them out of one of the two"
    if same:
        what = f"{counted(len(same), 'query is', 'queries are')} in both {between}"
        yield Finding.of("problem", what, same, leak)
    if renamed:
        ids = " under different ids" if both_named else ""
        what = f"{counted(len(renamed), 'query has', 'queries have')} the same documents in {between}{ids}"
        yield Finding.of("problem", what, renamed, leak)
    if namesakes:
        what = f"{counted(len(namesakes), 'query id has', 'query ids have')} different documents in {between}"
        advice = "fine where numbering begins anew in each file; otherwise the same query leaks from one into the other"
        yield Finding.of("warning", what, namesakes, advice)


def _repeats(queries: Queries, row_key: Keys, owner: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of equal rows of one query: each repeated row with the one before it among its equals."""
    key = row_key + mixed(mixed(owner.astype(np.uint64) + np.uint64(1)))
    order = np.argsort(key, kind="stable")
    near = np.flatnonzero(key[order[1:]] == key[order[:-1]])
    first, second = order[near], order[near + 1]
    equal = owner[first] == owner[second]
    for begin in range(0, len(first), _COMPARED_TOGETHER):
        some = slice(begin, begin + _COMPARED_TOGETHER)
        equal[some] &= (queries.X[first[some]] == queries.X[second[some]]).all(axis=1)
    return first[equal], second[equal]


def _fingerprints(split: Split) -> Keys:
    """One word a query that depends on its documents and not on their order."""
    queries = split.queries
    words = mixed(split.row_key if queries.is_grouped else split.row_key[queries.rows])
    total = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(words, dtype=np.uint64)])
    return mixed(total[queries.start[1:]] - total[queries.start[:-1]]) + queries.sizes.astype(np.uint64)


def _tells(split: Split, query: int) -> bool:
    """Whether a query's documents identify it: lists of one document, or of equal ones, are alike by chance."""
    keys = split.row_key[split.queries.rows_of(query)]
    return len(keys) > 1 and bool((keys != keys[0]).any())


def _same_documents(one: Split, query: int, two: Split, other: int) -> bool:
    """Whether two queries hold the same documents, compared value by value in the order of their keys."""
    blocks = []
    for split, number in ((one, query), (two, other)):
        rows = split.queries.rows_of(number)
        order = np.argsort(split.row_key[rows], kind="stable")
        blocks.append(split.queries.X[rows][order][:, split.columns])
    return np.array_equal(*blocks)
