"""Curves as plain values: measures at every cut-off, and what the rounds of each fit were worth."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import RankwiseError
from rankwise._tables import Table
from rankwise.evaluation.compare_result import Comparison
from rankwise.evaluation.evaluate import evaluate
from rankwise.report.compact import numbers

CUTOFFS = tuple(range(1, 21))
_FAMILIES = ("nDCG", "P")
_POINTS = 150  # of a curve; more would not be seen
_MEASURED = ("train", "validation")


def cutoffs(comparison: Comparison) -> list[dict[str, Any]]:
    """nDCG@k and P@k for k = 1..20; a family that the convention or the labels do not allow is told in a note."""
    found: list[dict[str, Any]] = []
    for family in _FAMILIES:
        measures = [f"{family}@{k}" for k in CUTOFFS]
        try:
            lines = {
                name: numbers(evaluate(comparison.queries, scores, measures, **_conventions(comparison)).mean.values())
                for name, scores in comparison.scores.items()
            }
        except RankwiseError as error:
            found.append({"family": family, "k": list(CUTOFFS), "lines": {}, "note": str(error)})
        else:
            found.append({"family": family, "k": list(CUTOFFS), "lines": lines, "note": None})
    return found


def histories(comparison: Comparison) -> list[dict[str, Any]]:
    """For each ranker that keeps an account of its fit: what was drawn against what, in every fold."""
    found = []
    for name, models in comparison.models.items():
        accounts = [(fold, _account(model)) for fold, model in enumerate(models, start=1)]
        known = [(fold, account) for fold, account in accounts if account is not None]
        if not known:
            continue
        _, (across, table, about) = known[0]
        folds = [
            {
                "fold": fold,
                "across": numbers(_thinned(columns[across])),
                "lines": {line: numbers(_thinned(columns[line])) for line in columns.columns[1:]},
            }
            for fold, (_, columns, _) in known
        ]
        found.append(
            {
                "ranker": name,
                "across": across,
                "logarithmic": _is_wide(table[across]),
                "about": about,
                "lines": list(table.columns[1:]),
                "folds": folds,
            }
        )
    return found


Account = tuple[str, Table, str]


def _account(model: Any) -> Account | None:
    """(what stands across, a table of it and the lines, what they are): of rounds, of strengths, of a stream."""
    history = getattr(model, "history_", None)
    if isinstance(history, Table) and len(history):
        drawn = [name for name in _MEASURED if name in history] or list(getattr(history, "drawn", ()))
        return _kept(history, history.columns[0], drawn, "")
    ledger = getattr(model, "ledger_", None)
    if ledger is not None and len(ledger.curve.points):
        table = Table({"round": ledger.curve.rounds, "so far": ledger.curve.mean})
        return _kept(table, "round", ["so far"], "mean over the rounds so far, each ranked before it was learned from")
    path = getattr(model, "path_", None)
    if isinstance(path, Table) and len(path) > 1:
        return _kept(path, path.columns[0], list(path.columns[1:2]), "what each strength was judged by")
    return None


def _kept(table: Table, across: str, lines: list[str], about: str) -> Account | None:
    known = [name for name in lines if np.isfinite(table[name].astype(np.float64)).any()]
    if not known:
        return None
    return across, Table({name: table[name].astype(np.float64) for name in (across, *known)}), about


def _is_wide(column: NDArray[Any]) -> bool:
    """Whether steps are factors, as those of strengths and of an annealing are."""
    return bool((column > 0).all() and column.max() > 100 * column.min() and column[0] != 1)


def _thinned(column: NDArray[Any]) -> NDArray[Any]:
    """No more points than are seen, the first and the last among them."""
    if len(column) <= _POINTS:
        return column
    return column[np.unique(np.linspace(0, len(column) - 1, _POINTS).astype(np.int64))]


def _conventions(comparison: Comparison) -> dict[str, Any]:
    return dict(comparison.about["conventions"])
