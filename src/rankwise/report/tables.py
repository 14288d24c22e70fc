"""The tables of the report with all digits, as the page saves them to CSV files.

The names are those of the attribute ``data-table`` in the templates. Tables that the reader makes in the page (queries,
documents, contributions of features, numbers of figures) are put together there.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_LEAGUE = (
    "ranker", "mean", "low", "high", "verdict", "difference", "p", "p_corrected", "wins", "losses", "ties", "seconds",
    "memory",
)  # fmt: skip
_SLICE = (
    "group", "measure", "ranker", "queries", "mean", "low", "high", "verdict", "difference", "difference_low",
    "difference_high", "p", "p_corrected",
)  # fmt: skip
_BOUND = ("kind", "what", "sign", "value", "compared", "name", "vacuous", "applies", "status", "statement")


def tables(found: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Put together every table of the templates.

    Parameters
    ----------
    found : dict
        What :func:`rankwise.report.collect.collect` returned.

    Returns
    -------
    dict of str to dict
        For each table its columns and rows.
    """
    diagnosis, made = found["diagnosis"], found["provenance"]
    slices = found["slices"]["slices"] if found["slices"] else []
    every = {f"league {one['measure']}": _table(_LEAGUE, one["rows"]) for one in found["league"]}
    every |= {f"slice {one['name']}": _table(_SLICE, one["rows"]) for one in slices}
    every |= {f"certificate {one['ranker']}": _table(_BOUND, one["rows"]) for one in found["certificates"]}
    every["findings"] = _table(("severity", "what", "where", "advice"), diagnosis["findings"])
    every["features"] = _table(tuple(diagnosis["features"][0]) if diagnosis["features"] else (), diagnosis["features"])
    every["settings"] = _table(("ranker", "fold", "settings", "tried"), made["chosen"])
    every["folds"] = _table(("fold", "part", "queries", "fingerprint"), _folds(made["folds"]))
    return every


def _table(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The columns of rows that may have more."""
    return {"columns": list(columns), "rows": [[row[name] for name in columns] for row in rows]}


def _folds(folds: Iterable[Mapping[str, Any]]) -> Iterable[dict[str, Any]]:
    """One row per fold and part."""
    for number, fold in enumerate(folds, start=1):
        for part in ("train", "validation", "test"):
            if fold[part]:
                yield {
                    "fold": number, "part": part, "queries": fold[part], "fingerprint": fold["fingerprints"][part],
                }  # fmt: skip
