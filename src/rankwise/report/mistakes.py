"""Where rankers go wrong, as plain values: pairs of labels that they invert, and groups of queries."""

from typing import Any

from rankwise._errors import RankwiseError
from rankwise.evaluation.analyse import by_group
from rankwise.evaluation.compare_result import Comparison
from rankwise.evaluation.label_errors import label_pair_errors
from rankwise.report.compact import numbers

GROUPINGS = {"documents": "documents in the list", "relevant": "relevant documents in the list"}


def label_pairs(comparison: Comparison) -> dict[str, Any]:
    """The share of pairs that each ranker inverts, by labels, with its interval."""
    options: dict[str, Any] = {"level": comparison.level, "random_state": comparison.about["random_state"]}
    try:
        table = label_pair_errors(comparison.queries, comparison.scores, **options)
    except RankwiseError as error:  # too many labels
        return {"note": str(error), "pairs": [], "rankers": {}}
    pairs = list(dict.fromkeys(table["pair"].tolist()))
    found: dict[str, Any] = {}
    for name in comparison.rankers:
        mine = table["ranker"] == name
        found[name] = {column: numbers(table[column][mine], 4) for column in ("share", "low", "high")}
    counts = {row["pair"]: row["pairs"] for row in table}
    return {"note": None, "pairs": pairs, "counts": [counts[pair] for pair in pairs], "rankers": found}


def groups(comparison: Comparison) -> list[dict[str, Any]]:
    """The mean difference to the baseline of the first measure, by kind of query, with its interval."""
    title = comparison.titles[0]
    base = comparison.results[comparison.baseline][title]
    rel = comparison.about["conventions"]["rel"]
    options: dict[str, Any] = {
        "level": comparison.level,
        "random_state": comparison.about["random_state"],
        "rel": 1 if rel is None else rel,
    }
    found = []
    for by, text in GROUPINGS.items():
        rankers, labels = {}, []
        for name in comparison.rankers:
            if name == comparison.baseline:
                continue
            table = by_group(comparison.queries, comparison.results[name][title] - base, by, **options)
            labels = [_span(row) for row in table]
            rankers[name] = {column: numbers(table[column], 4) for column in ("mean", "low", "high")}
        found.append({"by": text, "measure": title, "groups": labels, "rankers": rankers})
    return found


def _span(row: dict[str, Any]) -> str:
    """A group below its axis: from and to, and how many queries count."""
    span = f"{row['from']:,}" if row["from"] == row["to"] else f"{row['from']:,}\u2013{row['to']:,}"
    return f"{span}<br>n = {row['queries'] - row['skipped']:,}"
