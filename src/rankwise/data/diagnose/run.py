"""`diagnose`: look at judged lists before trusting anything learned from them."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import DataError
from rankwise.data.diagnose.features import (
    feature_names,
    feature_table,
    find_drift,
    find_in_features,
    odd_words,
    summarise,
)
from rankwise.data.diagnose.findings import Diagnosis, Finding
from rankwise.data.diagnose.queries import (
    Gain,
    NamedQueries,
    find_in_lists,
    find_repeated_rows,
    find_shared_queries,
    list_facts,
)
from rankwise.data.queries import Queries

__all__ = ["Diagnosis", "Finding", "diagnose"]


def diagnose(
    queries: Queries | Mapping[str, Queries],
    *others: Queries | Mapping[str, Queries],
    gain: Gain = "exp2",
    n_jobs: int | None = None,
    verbose: bool = False,
) -> Diagnosis:
    """Look for what makes rankers fail silently: in the lists, the labels, the features, and between splits.

    Parameters
    ----------
    queries : the judged lists to look at in full
    others : other splits of the same data, looked at for queries they share with the first and with each other,
        and for features that leave the first one's range; a dict gives names, as in
        ``diagnose({"train": train}, {"test": test})``, otherwise they are 'train', 'other 1', 'other 2', ...
    gain : the gain that NDCG will use: "exp2", "linear", or a table of gains by label
    n_jobs : threads
    verbose : show a progress bar on a terminal

    Returns
    -------
    diagnosis : with ``findings`` (the worst first), ``facts``, ``table()`` of the features and ``to_dict()``

    Notes
    -----
    X is read once, in blocks, so that memory-mapped data larger than memory can be looked at; equal rows and
    queries are found by 64-bit keys and then compared value by value.

    Examples
    --------
    >>> train = Queries.from_arrays([[1.0, 5.0], [2.0, 5.0], [3.0, 7.0]], [0, 1, 1], group=[2, 1])
    >>> for finding in diagnose(train).findings:
    ...     print(finding.severity, "-", finding.what, finding.where)
    warning - 1 feature is constant within every query ('X[:, 1]',)
    note - 1 query has a single document (1,)
    """
    named = _named(queries, others)
    (name, first), *rest = named.items()
    multipliers = odd_words(0, first.n_features)
    options: dict[str, Any] = {"n_jobs": n_jobs, "verbose": verbose}
    summary = summarise(first, multipliers, **options)
    facts = list_facts(first)
    findings = [
        *find_in_lists(first, gain, facts),
        *find_in_features(first, summary),
        *find_repeated_rows(first, summary.row_key, facts),
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
        seen = summarise(other, words, **options)
        splits.append(NamedQueries(label, other, columns, seen.row_key))
        if first.n_documents and other.n_documents:
            low, high = seen.low[columns], seen.high[columns]
            findings.extend(find_drift(name, label, feature_names(first), summary, low, high))
    findings.extend(find_shared_queries(splits))
    return Diagnosis.of(findings, facts, feature_table(first, summary))


def _named(queries: Any, others: tuple[Any, ...]) -> dict[str, Queries]:
    """All sets by name, the one to look at first."""
    named: dict[str, Queries] = {}
    for name, part in _pairs(queries, others):
        if not isinstance(part, Queries):
            raise DataError(f"diagnose looks at Queries: found {type(part).__name__} for {name!r}")
        if name in named:
            raise DataError(f"two of the sets are called {name!r}: give each its own name")
        named[name] = part
    if not named:
        raise DataError("diagnose needs at least one set of queries: found none")
    return named


def _pairs(queries: Any, others: tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
    for place, part in enumerate((queries, *others)):
        if isinstance(part, Mapping):
            yield from ((str(name), value) for name, value in part.items())
        else:
            yield f"other {place}" if place else "train", part


def _columns(first: Queries, other: Queries) -> NDArray[np.int64] | None:
    """For each feature of the first set its column in the other one, by name where both have names, or None."""
    if first.n_features != other.n_features:
        return None
    if first.feature_names is None or other.feature_names is None:
        return np.arange(first.n_features)
    place = {name: column for column, name in enumerate(other.feature_names)}
    if not place.keys() >= set(first.feature_names):
        return None
    return np.array([place[name] for name in first.feature_names], dtype=np.int64)


def _strange_features(name: str, first: Queries, label: str, other: Queries) -> Finding:
    lacking = sorted(set(first.feature_names or ()) ^ set(other.feature_names or ()))
    what = f"{name!r} and {label!r} have different features ({first.n_features} and {other.n_features})"
    return Finding.of("problem", what, lacking, "make both with the same features, and name them")
