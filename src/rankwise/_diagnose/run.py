"""`diagnose`: check judged queries before a ranker learns from them.

One pass over each set summarizes its features; the checks of the other modules turn the summaries into findings.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._diagnose.drift import find_changed_meaning
from rankwise._diagnose.features import (
    equal_features,
    feature_table,
    find_correlated,
    find_drift,
    find_in_features,
    odd_words,
    summarize,
)
from rankwise._diagnose.findings import Diagnosis, Finding
from rankwise._diagnose.leaks import find_leaks, rank_alone
from rankwise._diagnose.queries import (
    Gain,
    NamedQueries,
    find_in_lists,
    find_position,
    find_repeated_ids,
    find_repeated_rows,
    find_shared_queries,
    list_facts,
)
from rankwise._diagnose.row_order import find_ordered_features
from rankwise._parameters import Jobs, validated
from rankwise.errors import DataError
from rankwise.queries.checks import names_or_columns
from rankwise.queries.parts.parts import Parts
from rankwise.queries.queries import Queries
from rankwise.queries.source import QuerySet

__all__ = ["Diagnosis", "Finding", "diagnose"]


@validated
def diagnose(
    queries: Queries | Parts | Mapping[str, Queries | Parts],
    *others: Queries | Parts | Mapping[str, Queries | Parts],
    gain: Gain = "exp2",
    n_jobs: Jobs = None,
    verbose: bool = False,
) -> Diagnosis:
    """Look for what makes rankers fail silently: in the queries, the labels, the features, and between splits.

    Leaks are found by ranking with every feature alone; also found are features that repeat each other, repeated
    documents, labels and features that depend on the order of rows, and features whose values differ between splits.

    Parameters
    ----------
    queries : Queries, Parts, or mapping of str to them
        The judged queries to check in full. A mapping gives them a name, otherwise they are called 'train'.
    *others : Queries, Parts, or mapping of str to them
        Other splits of the same data. They are checked for queries that they share with the first set and with each
        other, for features that leave the range of the first set, and for features with other values, by a test that
        permutes whole queries. A mapping gives names, as in ``diagnose({"train":
        train}, {"test": test})``, otherwise they are called 'other 1', 'other 2', ...
    gain : {"exp2", "linear"} or table of gains by label, default="exp2"
        The gain that NDCG will use.
    n_jobs : int, default=None
        The number of threads; None uses every core.
    verbose : bool, default=False
        Whether to show a progress bar on a terminal.

    Returns
    -------
    diagnosis : Diagnosis
        With ``findings`` (the worst first), ``facts``, ``table()`` of the features and ``to_dict()``.

    Notes
    -----
    X is read a few times, in blocks: memory-mapped data and `Parts` larger than memory can be checked; labels,
    ids and a key of every row are in memory. Equal rows and
    queries are found by 64-bit keys and then compared value by value. Leaks are looked for in at most 8 million values
    of X, and differences between splits in at most 1,000 queries of each, at equal distances. Findings do not depend on
    the number of threads, nor on chance: all seeds are fixed.

    Examples
    --------
    >>> train = Queries.from_arrays([[1.0, 5.0], [2.0, 5.0], [3.0, 7.0]], [0, 1, 1], group=[2, 1])
    >>> for finding in diagnose(train).findings:
    ...     print(finding.severity, "-", finding.what, finding.where)
    warning - 1 feature is constant within every query ('X[:, 1]',)
    note - 1 query has a single document (1,)
    """
    named = _name_sets(queries, others)
    (name, first), *rest = named.items()
    multipliers = odd_words(0, first.n_features)
    options: dict[str, Any] = {"n_jobs": n_jobs, "verbose": verbose}
    summary = summarize(first, multipliers, **options)
    facts = list_facts(first)
    alone = rank_alone(first)
    same = equal_features(first, summary)
    findings = [
        *find_in_lists(first, gain, facts),
        *find_leaks(first, alone, facts),
        *find_in_features(first, summary, same),
        *find_correlated(first, same),
        *find_repeated_rows(first, summary.row_key, facts),
        *find_repeated_ids(first, facts),
        *find_position(first, facts),
        *find_ordered_features(first),
    ]
    splits = [NamedQueries(name, first, np.arange(first.n_features), summary.row_key)]
    for label, other in rest:
        facts.setdefault("others", {})[label] = list_facts(other)
        columns = _columns(first, other)
        if columns is None:
            findings.append(_strange_features(name, first, label, other))
            continue
        words = np.empty_like(multipliers)
        words[columns] = multipliers
        seen = summarize(other, words, **options)
        splits.append(NamedQueries(label, other, columns, seen.row_key))
        if first.n_documents and other.n_documents:
            low, high = seen.low[columns], seen.high[columns]
            names = names_or_columns(first)
            findings.extend(find_drift(name, label, names, summary, low, high))
            findings.extend(find_changed_meaning(name, first, label, other, columns, names))
    findings.extend(find_shared_queries(splits))
    return Diagnosis.of(findings, facts, feature_table(first, summary))


def _name_sets(queries: Any, others: tuple[Any, ...]) -> dict[str, Queries]:
    """All sets by name, the one to check in full first."""
    named: dict[str, Queries] = {}
    for place, given in enumerate((queries, *others)):
        sets = given if isinstance(given, Mapping) else {f"other {place}" if place else "train": given}
        for name, part in zip(map(str, sets), sets.values(), strict=True):
            if not isinstance(part, QuerySet):
                raise DataError(f"diagnose takes Queries, got {type(part).__name__} for {name!r}")
            if name in named:
                raise DataError(f"two sets are called {name!r}: give them different names")
            named[name] = part.lazy()
            named[name].refuse_missing("diagnose")
    if not named:
        raise DataError("diagnose needs at least one set of queries, got none")
    return named


def _columns(first: Queries, other: Queries) -> NDArray[np.int64] | None:
    """The column of each feature of the first set in the other one, by name where both have names, or None."""
    if first.n_features != other.n_features:
        return None
    if first.feature_names is None or other.feature_names is None:
        return np.arange(first.n_features)
    place = {name: column for column, name in enumerate(other.feature_names)}
    if not place.keys() >= set(first.feature_names):
        return None
    return np.array([place[name] for name in first.feature_names], dtype=np.int64)


def _strange_features(name: str, first: Queries, label: str, other: Queries) -> Finding:
    """The finding about two sets with different features."""
    lacking = sorted(set(first.feature_names or ()) ^ set(other.feature_names or ()))
    what = f"{name!r} and {label!r} have different features ({first.n_features} and {other.n_features})"
    return Finding.of("problem", what, lacking, "make both with the same features, and name them")
