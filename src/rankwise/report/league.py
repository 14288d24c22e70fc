"""The league tables as plain values: means, intervals, tests against the baseline, and what every ranker cost."""

import math
from typing import Any

from rankwise.evaluation.compare_result import BASE, BETTER, EQUAL, WORSE, Comparison
from rankwise.report.compact import rounded

VERDICTS = {BETTER: "better", WORSE: "worse", EQUAL: "not shown", BASE: "baseline"}
_MARGIN = 0.06  # of the width of a drawn interval, on either side


def league(comparison: Comparison) -> list[dict[str, Any]]:
    """One table a measure, best first."""
    return [_table(comparison, title) for title in comparison.titles]


def in_short(comparison: Comparison) -> list[str]:
    """What a reader in a hurry may take away, in sentences."""
    title, level = comparison.titles[0], f"{comparison.level:.0%}"
    rows = [row for row in _table(comparison, title)["rows"] if row["mean"] is not None]
    if not rows:
        return [f"No test query says anything about {title}."]
    best = rows[0]
    said = [f"Highest mean {title}: {best['ranker']} with {best['mean']:.3f}{_between(best, level)}."]
    if len(comparison.rankers) > 1:
        tests = len(comparison.tests)
        for_them = f"after correction for {tests} tests" if comparison.about["correction"] != "none" else "uncorrected"
        said.append(
            f"Against the baseline {comparison.baseline} ({for_them}): {_named(rows, BETTER, 'better')}; "
            f"{_named(rows, WORSE, 'worse')}; {_named(rows, EQUAL, 'not shown to differ')}."
        )
    return said


def _between(row: dict[str, Any], level: str) -> str:
    return "" if row["low"] is None else f" ({level} interval {row['low']:.3f} to {row['high']:.3f})"


def _named(rows: list[dict[str, Any]], mark: str, as_what: str) -> str:
    names = [row["ranker"] for row in rows if row["mark"] == mark]
    return f"{as_what}: {', '.join(names) if names else 'none'}"


def _table(comparison: Comparison, title: str) -> dict[str, Any]:
    tested = {row["ranker"]: row for row in comparison.tests if row["measure"] == title}
    result = comparison.results[comparison.baseline]
    rows = []
    for name in comparison.table(title)["ranker"].tolist():
        low, high = comparison.intervals[name][title]
        mark = comparison.mark(name, title)
        cells = [cell for cell in comparison.cells if cell.ranker == name]
        memory = [cell.memory for cell in cells if cell.memory is not None]
        found = tested.get(name, {})
        rows.append(
            {
                "ranker": name,
                "mean": rounded(comparison.means[name][title], 6),
                "low": rounded(low, 6),
                "high": rounded(high, 6),
                "mark": mark,
                "verdict": VERDICTS[mark],
                **{key: rounded(found.get(key, math.nan), 4) for key in ("difference", "p", "p_corrected")},
                **{key: found.get(key) for key in ("wins", "losses", "ties")},
                "seconds": rounded(math.fsum(cell.seconds for cell in cells), 4),
                "memory": max(memory, default=None),
            }
        )
    _place(rows, comparison.baseline)
    counted = len(comparison.queries) - result.skipped[title]
    return {"measure": title, "queries": counted, "skipped": result.skipped[title], "rows": rows}


def _place(rows: list[dict[str, Any]], baseline: str) -> None:
    """Where dots and whiskers stand, in percent of one width for all rows."""
    known = [row[key] for row in rows for key in ("mean", "low", "high") if row[key] is not None]
    if not known:
        return
    low, high = min(known), max(known)
    width = (high - low) or 1.0

    def at(value: float | None) -> float | None:
        return None if value is None else round(100 * (_MARGIN + (1 - 2 * _MARGIN) * (value - low) / width), 2)

    base = next(at(row["mean"]) for row in rows if row["ranker"] == baseline)
    for row in rows:
        row["drawn"] = {"mean": at(row["mean"]), "low": at(row["low"]), "high": at(row["high"]), "base": base}
