"""Diagnosis of the queries, their labels and their documents: sizes, one label alone, labels that a gain cannot take or
that depend on the order of the rows, repeats.

Repeated documents within a query, and queries that two splits share, are found by 64-bit keys in linear time and memory
and then compared value by value.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankwise._diagnose.features import Keys, mix_bits
from rankwise._diagnose.findings import Finding, Severity
from rankwise._diagnose.row_order import DEVIATIONS, PREDICTS_LABEL, OrderTotals
from rankwise._parameters import Check
from rankwise.queries.checks import is_number, plural
from rankwise.queries.queries import Queries

Gain = Annotated[
    Literal["exp2", "linear"] | Mapping[float, float] | Sequence[float],
    Check("'exp2', 'linear' or a table of gains by label", lambda gain: _is_gain(gain)),
]

# Limits of other tools: LightGBM's label_gain has entries for 0..30 and its queries at most 10,000 rows; XGBoost's
# exponential gain takes labels up to 31.
_LIGHTGBM_LABEL, _XGBOOST_LABEL, _LIGHTGBM_ROWS = 30, 31, 10_000
# 2^label - 1 is a whole number that float64 holds exactly up to label 53; beyond 996 no sum of gains is safe.
_EXACT_LABEL, _LARGEST_LABEL = 53, 996
# More different labels than this are counted in ranges.
_LABELS_ONE_BY_ONE = 100
# One query with more documents than this is more often a forgotten query id than a real query.
_SUSPICIOUS = 1_000
# The correlation of row numbers and labels from which rows count as sorted by label.
_SORTED = 0.9


def list_facts(queries: Queries) -> dict[str, Any]:
    """Sizes and the histogram of labels, as plain values."""
    sizes = queries.sizes
    return {
        "queries": len(queries),
        "documents": queries.n_documents,
        "features": queries.n_features,
        "documents_per_query": {
            "min": int(sizes.min()),
            "median": float(np.median(sizes)),
            "mean": float(sizes.mean()),
            "max": int(sizes.max()),
        }
        if len(sizes)
        else None,
        "labels": None if queries.y is None else _histogram(queries.y),
    }


def find_in_lists(queries: Queries, gain: Gain, facts: dict[str, Any]) -> Iterator[Finding]:
    """Findings about sizes and labels; the counts of special queries are added to ``facts``."""
    yield from _find_in_sizes(queries, facts)
    if queries.y is None:
        yield Finding("note", "the documents have no labels", (), "they can be ranked, not trained on or evaluated")
    elif queries.n_documents:
        yield from _find_in_labels(queries, facts)
        yield from _find_in_gain(queries.y, gain)


def _find_in_sizes(queries: Queries, facts: dict[str, Any]) -> Iterator[Finding]:
    """Findings about queries without documents, with one document and with very many."""
    sizes, names = queries.sizes, queries.names()
    single, empty = sizes == 1, sizes == 0
    facts["queries_without_documents"] = int(empty.sum())
    facts["queries_with_one_document"] = int(single.sum())
    if not queries.n_documents:
        yield Finding("problem", "there are no documents", (), "check what was read")
        return
    if len(queries) > 1 and single.sum() == len(queries):
        yield Finding.of(
            "problem",
            "every query has a single document: there is nothing to rank",
            names,
            "check that the query ids are not the ids of documents or rows",
        )
    elif single.any():
        yield _some(queries, single, "note", "a single document", "every ranking of them is perfect")
    if empty.any():
        yield _some(queries, empty, "warning", "no documents", "measures are 0/0 on them; leave them out")
    if len(queries) == 1 and queries.n_documents > _SUSPICIOUS:
        yield Finding.of(
            "warning",
            f"all {queries.n_documents:,} documents belong to one query",
            names,
            "check that qid= or group= says which rows belong together",
        )
    long = sizes > _LIGHTGBM_ROWS
    if long.any():
        yield _some(queries, long, "note", "more than 10,000 documents", "LightGBM refuses them")


def _find_in_labels(queries: Queries, facts: dict[str, Any]) -> Iterator[Finding]:
    """Findings about queries of one label, queries without relevant documents, and labels that are not integers."""
    labels = queries.labels()
    low, high = _extremes(labels, queries)
    listed = queries.sizes > 1
    same, none = listed & (low == high), (queries.sizes > 0) & (high < 1)
    facts["queries_with_one_label"] = int(same.sum())
    facts["queries_without_relevant"] = int(none.sum())
    if listed.any() and same.sum() == listed.sum():
        yield Finding(
            "problem",
            "no query has two documents with different labels: nothing can be learned or measured",
            (),
            "check the labels and the query ids",
        )
    elif same.any():
        advice = "no pair of them can be right or wrong: zero loss, and no information for a ranker"
        yield _some(queries, same, "note", "documents of one label only", advice)
    if none.any():
        advice = "measures are 0/0 on them: choose empty='skip', 'zero' or 'one' when evaluating, and say which"
        yield _some(queries, none, "note", "no relevant document (label 1 or more)", advice)
    real = labels[labels != np.floor(labels)]
    if len(real):
        yield Finding.of(
            "note",
            f"{plural(len(real), 'label is', 'labels are')} not a whole number",
            np.unique(real[:10_000])[:10].tolist(),
            "rankwise takes them, LightGBM and trec_eval do not; check that the gain 2^label - 1 is what you mean",
        )


def _find_in_gain(labels: NDArray[np.float64], gain: Gain) -> Iterator[Finding]:
    """Labels that the gain of NDCG cannot take, or that make it useless."""
    if not isinstance(gain, str):
        known = np.array(sorted(gain) if isinstance(gain, Mapping) else range(len(gain)), dtype=np.float64)
        strangers = np.setdiff1d(labels, known)
        if len(strangers):
            what = f"{plural(len(strangers), 'label is', 'labels are')} not in the table of gains"
            yield Finding.of("problem", what, strangers.tolist(), "give every label a gain")
        return
    largest = labels.max()
    if gain == "linear" or largest <= _LIGHTGBM_LABEL:
        return
    offer = "use the linear gain, nDCG(dcg='log2'), or a table of gains"
    if largest > _LARGEST_LABEL:
        yield Finding("problem", f"the gain 2^label - 1 overflows at label {largest:g}", (), offer)
    elif largest > _EXACT_LABEL:
        what = f"the gain 2^label - 1 of label {largest:g} is beyond what float64 holds exactly"
        yield Finding("warning", what, (), f"the largest labels drown all others: {offer}")
    else:
        tools = "LightGBM and XGBoost refuse" if largest > _XGBOOST_LABEL else "LightGBM refuses"
        what = f"label {largest:g} has a gain of 2^{largest:g} - 1, which {tools}"
        yield Finding("warning", what, (), f"the largest labels drown all others: {offer}")


def _is_gain(gain: Any) -> bool:
    """Whether a value names a gain, or is a table of gains."""
    if isinstance(gain, str):
        return gain in ("exp2", "linear")
    return isinstance(gain, (Mapping, Sequence)) and all(map(is_number, gain))


def _some(queries: Queries, chosen: NDArray[np.bool_], severity: Severity, have: str, advice: str) -> Finding:
    """A finding about the chosen queries."""
    number = int(chosen.sum())
    names = queries.names()
    what = f"{plural(number, 'query has', 'queries have')} {have}"
    return Finding.of(severity, what, (names[query] for query in np.flatnonzero(chosen)), advice)


def _extremes(labels: NDArray[np.float64], queries: Queries) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The smallest and largest label of every query; infinity and minus infinity where it has no document."""
    low, high = np.full(len(queries), np.inf), np.full(len(queries), -np.inf)
    filled = queries.sizes > 0
    if filled.any():
        ordered = queries.in_query_order(labels)
        low[filled] = np.minimum.reduceat(ordered, queries.start[:-1][filled])
        high[filled] = np.maximum.reduceat(ordered, queries.start[:-1][filled])
    return low, high


def _histogram(labels: NDArray[np.float64]) -> dict[str, int]:
    """Label -> documents, from the smallest label on; in ten ranges where there are very many labels."""
    values, numbers = np.unique(labels, return_counts=True)
    if len(values) <= _LABELS_ONE_BY_ONE:
        return {_as_text(value): number for value, number in zip(values.tolist(), numbers.tolist(), strict=True)}
    numbers, edges = np.histogram(labels, bins=10)
    ranges = (f"{low:.6g} to {high:.6g}" for low, high in pairwise(edges.tolist()))
    return dict(zip(ranges, numbers.tolist(), strict=True))


def _as_text(label: float) -> str:
    """A label without a needless decimal point."""
    return str(int(label)) if label == int(label) else repr(label)


def find_position(queries: Queries, facts: dict[str, Any]) -> Iterator[Finding]:
    """Labels that rise or fall with the order of the rows of a query, by more than chance.

    :class:`~rankwise._diagnose.row_order.OrderTotals` says how much is more than chance.
    """
    if queries.y is None:
        return
    labels, totals = queries.in_query_order(queries.labels()), OrderTotals(1)
    for begin, end in pairwise(queries.start.tolist()):
        totals.add(labels[begin:end, np.newaxis])
    if not totals.most:
        return
    correlation, deviations = (float(one[0]) for one in totals.result())
    facts["label_by_position"] = correlation
    if abs(correlation) < PREDICTS_LABEL or deviations < DEVIATIONS:
        return
    figures = f"correlation {correlation:+.2f}, {deviations:.0f} standard deviations from a random order"
    if abs(correlation) >= _SORTED:
        advice = (
            "where scores are equal, ties='stable' and other tools keep this order, which flatters (or punishes) every "
            "ranker: shuffle the rows of each query, or evaluate with ties='expected'"
        )
        yield Finding.of("warning", f"rows are sorted by label within queries ({figures})", (), advice)
    else:
        advice = (
            "rows that come from an earlier ranking carry its position, and judgments from clicks its bias: keep the "
            "position out of the features, and evaluate with ties='expected'"
        )
        yield Finding.of("note", f"labels depend on the order of rows within queries ({figures})", (), advice)


# ------------------------------------------------------------------------------------------------------------ repeats

# Pairs of rows that are compared together.
_COMPARED_TOGETHER = 1 << 12


@dataclass(frozen=True, slots=True)
class NamedQueries:
    """One set of queries, seen through the features of the first set.

    Attributes
    ----------
    name : str
        The name that the user gives it.
    queries : Queries
        The set.
    columns : ndarray of int64
        The column in this set of each feature of the first set.
    row_key : ndarray of uint64
        The keys of the rows, made with the multipliers of the first set.
    """

    name: str
    queries: Queries
    columns: NDArray[np.int64]
    row_key: Keys


def find_repeated_ids(queries: Queries, facts: dict[str, Any]) -> Iterator[Finding]:
    """Document ids that occur more than once in a query; their number is added to ``facts``."""
    if queries.docid is None or not queries.n_documents:
        return
    names, ids, owner = queries.names(), list(queries.docid), queries.query_of_row.tolist()
    first: dict[tuple[int, Any], int] = {}
    repeated: dict[int, list[Any]] = {}
    against = rows = 0
    for row, key in enumerate(zip(owner, ids, strict=True)):
        earlier = first.setdefault(key, row)
        if earlier != row:
            rows += 1
            against += queries.y is not None and bool(queries.y[earlier] != queries.y[row])
            repeated.setdefault(key[0], []).append(ids[row])
    facts["repeated_ids"] = rows
    if repeated:
        labels = f", {against:,} of them with another label" if against else ""
        what = f"{plural(rows, 'row repeats', 'rows repeat')} the id of a document of the same query{labels}"
        where = (f"{names[query]}: {found[0]}" for query, found in sorted(repeated.items()))
        advice = "a document counts twice in every measure: check the join that made the rows, and keep one of each"
        yield Finding.of("warning", what, where, advice)


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
    what = f"{plural(len(second), 'document repeats', 'documents repeat')} the features of another of the same query"
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
            f"{plural(len(where), 'query has', 'queries have')} documents with the same features and different labels",
            (names[query] for query in where),
            "contradictory judgments bound what any ranker can reach: judge again, or add features that differ",
        )


def find_shared_queries(splits: list[NamedQueries]) -> Iterator[Finding]:
    """Queries that are in two splits, by their ids and by their documents."""
    content = [_fingerprints(split) for split in splits]
    for one, two in combinations(range(len(splits)), 2):
        yield from _compare(splits[one], splits[two], content[one], content[two])


def _compare(one: NamedQueries, two: NamedQueries, mine: Keys, theirs: Keys) -> Iterator[Finding]:
    """Findings about the queries that two sets share."""
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
        what = f"{plural(len(same), 'query is', 'queries are')} in both {between}"
        yield Finding.of("problem", what, same, leak)
    if renamed:
        ids = " under different ids" if both_named else ""
        what = f"{plural(len(renamed), 'query has', 'queries have')} the same documents in {between}{ids}"
        yield Finding.of("problem", what, renamed, leak)
    if namesakes:
        what = f"{plural(len(namesakes), 'query id has', 'query ids have')} different documents in {between}"
        advice = "fine where numbering begins anew in each file; otherwise the same query leaks from one into the other"
        yield Finding.of("warning", what, namesakes, advice)


def _repeats(queries: Queries, row_key: Keys, owner: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of equal rows of one query: each repeated row with the one before it among its equals."""
    key = row_key + mix_bits(mix_bits(owner.astype(np.uint64) + np.uint64(1)))
    order = np.argsort(key, kind="stable")
    near = np.flatnonzero(key[order[1:]] == key[order[:-1]])
    first, second = order[near], order[near + 1]
    equal = owner[first] == owner[second]
    for begin in range(0, len(first), _COMPARED_TOGETHER):
        some = slice(begin, begin + _COMPARED_TOGETHER)
        equal[some] &= (queries.X[first[some]] == queries.X[second[some]]).all(axis=1)
    return first[equal], second[equal]


def _fingerprints(split: NamedQueries) -> Keys:
    """One word per query that depends on its documents and not on their order."""
    queries = split.queries
    words = mix_bits(queries.in_query_order(split.row_key))
    total = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(words, dtype=np.uint64)])
    return mix_bits(total[queries.start[1:]] - total[queries.start[:-1]]) + queries.sizes.astype(np.uint64)


def _tells(split: NamedQueries, query: int) -> bool:
    """Whether the documents of a query identify it: queries of one document, or of equal ones, coincide by chance."""
    keys = split.row_key[split.queries.rows_of(query)]
    return len(keys) > 1 and bool((keys != keys[0]).any())


def _same_documents(one: NamedQueries, query: int, two: NamedQueries, other: int) -> bool:
    """Whether two queries hold the same documents, compared value by value in the order of their keys."""
    blocks = []
    for split, number in ((one, query), (two, other)):
        rows = split.queries.rows_of(number)
        order = np.argsort(split.row_key[rows], kind="stable")
        blocks.append(split.queries.X[rows][order][:, split.columns])
    return np.array_equal(*blocks)
