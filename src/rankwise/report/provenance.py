"""Where a report comes from, as plain values: data, settings, versions, seeds, and the call that makes it again."""

import json
from collections.abc import Mapping
from typing import Any

from rankwise.data.diagnose import diagnose
from rankwise.evaluation.compare_result import Comparison
from rankwise.report.call import python_call
from rankwise.report.compact import rounded

_FEATURES_SHOWN = 300


def data_facts(comparison: Comparison) -> dict[str, Any]:
    """The diagnosis of the first fold: its training part against its test part, or all lists where nobody learned."""
    first = comparison.first
    found = diagnose(first.test) if first.train is None else diagnose({"train": first.train}, {"test": first.test})
    rows = [
        {name: rounded(value, 4) if isinstance(value, float) else value for name, value in row.items()}
        for row in found.table()
    ]
    return {
        "part": "all lists" if first.train is None else "training part of fold 1",
        "about": repr(found).split("\n\n")[0].splitlines(),
        "findings": [
            {"severity": one.severity, "what": one.what, "where": one.places(), "advice": one.advice}
            for one in found.findings
        ],
        "features": rows[:_FEATURES_SHOWN],
        "left_out": max(0, len(rows) - _FEATURES_SHOWN),
    }


def provenance(comparison: Comparison, command: str | None) -> dict[str, Any]:
    """Everything that decides the numbers, and how to have them again."""
    about = comparison.about
    return {
        "versions": about["versions"],
        "random_state": about["random_state"],
        "folds": about["data"]["folds"],
        "chosen": [
            {"ranker": row["ranker"], "fold": row["fold"], "settings": _setting(row), "tried": row["tried"]}
            for row in comparison.chosen
        ],
        "configuration": json.dumps(about, indent=1, ensure_ascii=False),
        "python": python_call(comparison),
        "command": command,
    }


def _setting(row: Mapping[str, Any]) -> str:
    """What was chosen on this fold, from the grid and by the ranker itself."""
    together = {**row["settled"], **row["settings"]}
    return ", ".join(f"{name} = {_short(value)}" for name, value in together.items()) or "nothing to choose"


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else json.dumps(value, ensure_ascii=False)
