"""A comparison as one plain dict: every number of the report, before anything is drawn."""

from collections.abc import Callable
from typing import Any

from rankwise._progress import progress
from rankwise.evaluation.compare_result import Comparison
from rankwise.report.certificates import certificates
from rankwise.report.curves import cutoffs, histories
from rankwise.report.features import importance, weights
from rankwise.report.league import in_short, league
from rankwise.report.mistakes import groups, label_pairs
from rankwise.report.provenance import data_facts, provenance
from rankwise.report.query_lists import Limits, changes, query_lists

_SECTIONS: dict[str, Callable[[Comparison], Any]] = {
    "in_short": in_short,
    "league": league,
    "changes": changes,
    "cutoffs": cutoffs,
    "histories": histories,
    "weights": weights,
    "importance": importance,
    "label_pairs": label_pairs,
    "groups": groups,
    "certificates": certificates,
    "diagnosis": data_facts,
}


def collect(
    comparison: Comparison, *, limits: Limits | None = None, command: str | None = None, verbose: bool = False
) -> dict[str, Any]:
    """Everything that the report of a comparison shows, as plain values ready for JSON.

    The same comparison gives the same dict, whether it was computed at once or read from the folder of ``resume=``;
    seconds and memory are those of the run that learned.

    Parameters
    ----------
    comparison : what :func:`rankwise.compare` returned
    limits : how much of the queries and their documents goes in
    command : the shell's command that made the comparison, where there was one
    verbose : show a progress bar on a terminal
    """
    about = comparison.about
    found: dict[str, Any] = {
        "rankers": comparison.rankers,
        "baseline": comparison.baseline,
        "measures": list(comparison.titles),
        "level": comparison.level,
        "test": about["test"],
        "correction": about["correction"],
        "data": {name: about["data"][name] for name in ("source", "queries", "documents", "features")},
        "folds": len(about["data"]["folds"]),
        "provenance": provenance(comparison, command),
        "lists": query_lists(comparison, limits or Limits()),
    }
    with progress("writing the report", len(_SECTIONS), enabled=None if verbose else False) as bar:
        for name, section in _SECTIONS.items():
            found[name] = section(comparison)
            bar.advance()
    return found
