"""Documents within a query: ids that occur twice, and labels that depend on the order of the rows."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from rankwise.data.checks import plural
from rankwise.data.diagnose.findings import Finding
from rankwise.data.queries import Queries

# Correlations of row numbers and labels from which a finding is made, and rows count as sorted by label.
_NOTED, _SORTED = 0.1, 0.9
# Standard deviations of what a random order gives: five are exceeded by chance less than once in a million sets.
_DEVIATIONS = 5.0


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


def find_position(queries: Queries, facts: dict[str, Any]) -> Iterator[Finding]:
    """Labels that rise or fall with the order of the rows of a query, by more than chance.

    The covariance of row numbers and ranks of labels is summed over queries, and divided by that of sorted rows. If the
    order says nothing about labels, each order of a query is as likely as any other, and the sum has mean 0 and a known
    variance.
    """
    from scipy.stats import rankdata

    if queries.y is None:
        return
    labels = queries.in_query_order(queries.labels())
    total = variance = most = 0.0
    for begin, end in zip(queries.start[:-1].tolist(), queries.start[1:].tolist(), strict=True):
        n = end - begin
        if n < 2:
            continue
        rank = rankdata(labels[begin:end]) - (n + 1) / 2
        place = np.arange(n) - (n - 1) / 2
        # each query counts by its length, not by the square of it
        size = float((rank * rank).sum()) * float((place * place).sum()) / n**4
        total += float((rank * place).sum()) / n**2
        variance += size / (n - 1)
        most += float((np.sort(rank) * place).sum()) / n**2  # of rows in the order of their labels
    if most == 0:
        return
    correlation, deviations = total / most, abs(total) / variance**0.5
    facts["label_by_position"] = correlation
    if abs(correlation) < _NOTED or deviations < _DEVIATIONS:
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
            "rows that come from an earlier ranking carry its position, and judgements from clicks its bias: keep the "
            "position out of the features, and evaluate with ties='expected'"
        )
        yield Finding.of("note", f"labels depend on the order of rows within queries ({figures})", (), advice)
