"""Tables and figure of docs/coverage.md, from the stored counts."""

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from experiments.coverage_certificates import HEADLINE, Cell
from experiments.coverage_counts import Average, Count, Verdict, read_count, verdict
from experiments.coverage_populations import POPULATIONS
from experiments.pages import DOCS, markdown_table
from rankwise._figures import COLOURS, FAINT, INK, house_style, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RESULTS, FIGURE, PAGE = DOCS / "coverage.json", DOCS / "figures" / "coverage.png", DOCS / "coverage.md"

# What rows are about, in the order of the table, by how their name begins.
ABOUT = (
    (HEADLINE, "1 - measure on future queries"),
    ("Betting", "1 - measure on future queries"),
    ("Hoeffding", "1 - measure on future queries"),
    ("Empirical Bernstein", "1 - measure on future queries"),
    ("Uniform", "the measure's loss, or the surrogate, on future queries"),
    ("Online to batch", "mean risk of the iterates"),
    ("Theorem S, mistakes", "rounds with a loss above 0"),
    ("Theorem S", "cumulative loss of the run"),
    ("Theorem 5", "cumulative loss of the run"),
    ("Fixed step", "cumulative loss of the run"),
    ("Max-pair", "rounds with a mistake"),
    ("Surrogate", "1 - measure on the training queries"),
    ("AdaRank", "1 - measure on the training queries"),
    ("Working sets", "best measure - measure on the training queries"),
    ("Smoothing", "distance of the smoothed measure, training queries"),
    ("Gap", "objective - its minimum"),
    ("Regularised", "expected excess, on average over samples: see below"),
    ("Averaged", "expected excess, on average over samples: see below"),
)
PARTS = {
    "mean": "interval for a mean",
    "difference": "interval for a difference",
    "sequence": "confidence sequence, at any time",
    "plan": "plan",
    "power": "plan",
    "approximate": "interval for a mean",
}

Numbers = dict[str, Any]
Line = tuple[str, Count, float | None]  # of the figure: what, its checks, and how often it may fail


def rows_of(numbers: Numbers) -> dict[str, dict[Cell, Count]]:
    """The counts of every row, cell by cell."""
    found: dict[str, dict[Cell, Count]] = {}
    for one in numbers["cells"]:
        cell = Cell(one["case"], one["population"], one["n"])
        for label, count in one["rows"].items():
            found.setdefault(label, {})[cell] = read_count(count)
    return dict(sorted(found.items(), key=lambda item: (_place(item[0]), item[0])))


def averages_of(numbers: Numbers) -> dict[str, dict[Cell, Count]]:
    """Rows that are promised on average over samples: one check per cell."""
    found: dict[str, dict[Cell, Count]] = {}
    for one in numbers["cells"]:
        for label, count in one["on average"].items():
            found.setdefault(label, {})[Cell(one["case"], one["population"], one["n"])] = read_count(count)
    return dict(sorted(found.items()))


def intervals_of(numbers: Numbers) -> dict[tuple[str, str, float | None], list[tuple[str, Count]]]:
    """(part, what, how often it may fail) -> the counts of every distribution and size."""
    found: dict[tuple[str, str, float | None], list[tuple[str, Count]]] = {}
    for part, values, n, what, allowed, count in numbers["intervals"]:
        where = f"{values}, n = {n}" if n else values
        found.setdefault((PARTS[part], what, allowed), []).append((where, read_count(count)))
    return found


# ------------------------------------------------------------------------------------------- verdicts


def verdicts(numbers: Numbers) -> dict[str, Verdict]:
    """The verdict on everything that is promised."""
    found = {label: verdict(cells.values(), allowed(label, numbers)) for label, cells in rows_of(numbers).items()}
    for label, cells in averages_of(numbers).items():
        # an average has been compared with all errors allowed for: one that is above its bound is one too many
        failed = Count.total(cells.values()).failed
        found[f"{label} (on average)"] = "FALSE" if failed else "kept"
    for (part, what, may_fail), counts in intervals_of(numbers).items():
        if may_fail is not None:
            found[f"{part}: {what}"] = verdict((count for _, count in counts), may_fail)
    return found


def allowed(label: str, numbers: Numbers) -> float:
    """How often a row may fail: never, where no chance comes in."""
    return 0.0 if label in numbers["certain"].split(" | ") else float(numbers["delta"])


def false_ones(numbers: Numbers) -> list[str]:
    return [name for name, found in verdicts(numbers).items() if found == "FALSE"]


# ------------------------------------------------------------------------------------------- tables


def tables(numbers: Numbers) -> dict[str, str]:
    """The parts of the page."""
    return {
        "rows": rows_table(numbers),
        "on average": averages_table(numbers),
        "headlines": headlines_table(numbers),
        "sizes": sizes_table(numbers),
        "intervals": intervals_table(numbers, promised=True),
        "approximations": intervals_table(numbers, promised=False),
        "not checked": unchecked_table(numbers),
        "exact": exact_table(numbers),
        "populations": populations_table(),
        "run": run_text(numbers),
    }


def rows_table(numbers: Numbers) -> str:
    titles = (
        "row",
        "about",
        "checked",
        "failed",
        "rate, 99 % interval",
        "may fail",
        "vacuous",
        "not met",
        "worst cell",
        "verdict",
    )
    lines, found = [], verdicts(numbers)
    for label, cells in rows_of(numbers).items():
        whole = Count.total(cells.values())
        if not whole.checked:
            lines.append([label, _about(label), "0", "", "", "", "", f"{whole.not_met:,}", "", "not met"])
            continue
        lines.append(
            [
                label,
                _about(label),
                f"{whole.checked:,}",
                f"{whole.failed:,}",
                _rate(whole),
                _percent(allowed(label, numbers)),
                _share(whole.vacuous, whole.checked),
                f"{whole.not_met:,}",
                _worst((f"{cell.case}, {cell.population}, n = {cell.n:,}", count) for cell, count in cells.items()),
                "vacuous" if whole.vacuous == whole.checked else _bold(found[label]),
            ]
        )
    return markdown_table(titles, lines)


def averages_table(numbers: Numbers) -> str:
    """The row, per ranker: how near the mean risk came to what is allowed."""
    titles = ("row", "ranker", "cells", "mean of risk - bound, largest", "failed", "verdict")
    lines = []
    for label, cells in averages_of(numbers).items():
        for case in dict.fromkeys(cell.case for cell in cells):
            own = {cell: count for cell, count in cells.items() if cell.case == case}
            gaps = []
            for one in numbers["cells"]:
                if one["case"] == case:
                    averages = [Average(*each) for name, each in one["averages"].items() if name.startswith(label)]
                    gaps += [average.total / average.count for average in averages]
            failed = Count.total(own.values()).failed
            lines.append(
                [label, f"`{case}`", str(len(own)), f"{max(gaps):.3f}", str(failed), "FALSE" if failed else "kept"]
            )
    return markdown_table(titles, lines)


def headlines_table(numbers: Numbers) -> str:
    """Failures of the headline, ranker by ranker."""
    cells = rows_of(numbers)[HEADLINE]
    names = [name for name in POPULATIONS if any(cell.population == name for cell in cells)]
    lines = []
    for case in dict.fromkeys(cell.case for cell in cells):
        each = [
            Count.total(count for cell, count in cells.items() if (cell.case, cell.population) == (case, name))
            for name in names
        ]
        whole = Count.total(each)
        shown = [f"{one.failed} of {one.checked:,}" if one.checked else "" for one in each]
        lines.append([f"`{case}`", *shown, _rate(whole), _bold(verdict(each, numbers["delta"]))])
    return markdown_table(("ranker", *names, "rate, 99 % interval", "verdict"), lines)


def sizes_table(numbers: Numbers) -> str:
    """Hold-out rows and the headline by population and number of queries."""
    rows = rows_of(numbers)
    names = [name for name in (HEADLINE, "Betting", "Hoeffding", "Empirical Bernstein") if name in rows]
    places = dict.fromkeys((cell.population, cell.n) for cell in rows[HEADLINE])
    lines = []
    for population, n in sorted(places, key=lambda place: (list(POPULATIONS).index(place[0]), place[1])):
        shown = []
        for name in names:
            own = [count for cell, count in rows[name].items() if (cell.population, cell.n) == (population, n)]
            shown.append(_rate(Count.total(own)))
        lines.append([population, f"{n:,}", *shown])
    return markdown_table(("population", "n", *names), lines)


def intervals_table(numbers: Numbers, *, promised: bool) -> str:
    titles = ["part", "what", "checked", "failed", "rate, 99 % interval", "worst", "may fail", "verdict"]
    lines = []
    for (part, what, may_fail), counts in intervals_of(numbers).items():
        if (may_fail is not None) is not promised:
            continue
        whole = Count.total(count for _, count in counts)
        line = [part, what, f"{whole.checked:,}", f"{whole.failed:,}", _rate(whole), _worst(counts)]
        if may_fail is not None:
            line += [_percent(may_fail), _bold(verdict((count for _, count in counts), may_fail))]
        lines.append(line)
    return markdown_table(titles if promised else titles[:-2], lines)


def unchecked_table(numbers: Numbers) -> str:
    lines = [[label, bounds, f"`{case}`", why] for label, bounds, case, why in numbers["unchecked"]]
    return markdown_table(("row", "what it bounds", "ranker", "why it is not checked"), lines)


def exact_table(numbers: Numbers) -> str:
    """The largest probability of failing over all chances, and the chance at which it is."""
    lines = []
    for n, worst in numbers["exact"]:
        lines.append([str(n), *(f"{100 * share:.2f} % at {chance:g}" for share, chance in worst.values())])
    names = list(numbers["exact"][0][1]) if numbers["exact"] else []
    return markdown_table(("n", *names), lines)


def populations_table() -> str:
    return markdown_table(("population", "what it is like"), ([one.name, one.about] for one in POPULATIONS.values()))


def run_text(numbers: Numbers) -> str:
    """What the tables were made with, as a sentence."""
    headlines = Count.total(rows_of(numbers)[HEADLINE].values())
    return (
        f"{headlines.checked:,} certificates at delta = {numbers['delta']:g}, {numbers['repetitions']} in each of "
        f"{len(numbers['cells'])} cells, seed {numbers['seed']}. Failures of the headline: {headlines.failed:,}, or "
        f"{_rate(headlines)}."
    )


# ------------------------------------------------------------------------------------------- cells of tables


def _place(label: str) -> int:
    return next((place for place, (start, _) in enumerate(ABOUT) if label.startswith(start)), len(ABOUT))


def _about(label: str) -> str:
    place = _place(label)
    return ABOUT[place][1] if place < len(ABOUT) else ""


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _share(part: int, whole: int) -> str:
    return _percent(part / whole) if part else "0"


def _rate(count: Count) -> str:
    if not count.checked:
        return ""
    low, high = count.interval()
    return f"{100 * count.rate:.2f} % ({100 * low:.2f} to {100 * high:.2f})"


def _worst(counts: Iterable[tuple[str, Count]]) -> str:
    """Where it failed most often, by the lower end of the interval."""
    failed = [(count.interval()[0], count.rate, where, count) for where, count in counts if count.failed]
    if not failed:
        return ""
    _, _, where, count = max(failed, key=lambda one: one[:2])
    return f"{where}: {count.failed} of {count.checked:,}"


def _bold(found: str) -> str:
    return f"**{found}**" if found == "FALSE" else found


# ------------------------------------------------------------------------------------------- the figure


def draw(numbers: Numbers) -> "Figure":
    """How often each promise failed, with its interval, against how often it may."""
    rows: list[Line] = []
    for label, cells in rows_of(numbers).items():
        whole = Count.total(cells.values())
        if whole.checked > whole.vacuous:
            rows.append((label, whole, allowed(label, numbers)))
    others: list[Line] = []
    for (part, what, may_fail), counts in intervals_of(numbers).items():
        start = {"interval for a difference": "difference: ", "confidence sequence, at any time": "sequence: "}
        others.append((start.get(part, "") + what, Count.total(count for _, count in counts), may_fail))
    with house_style():
        figure = new_figure(10.5, 5.6)
        left, right = figure.subplots(1, 2)
        _draw_panel(left, rows, "Rows of certificates")
        _draw_panel(right, others, "Intervals, sequences and plans")
        return figure


def _draw_panel(panel: Any, lines: list[Line], title: str) -> None:
    for place, (_, count, may_fail) in enumerate(reversed(lines)):
        low, high = count.interval()
        colour = FAINT if may_fail is None else COLOURS[1] if low > may_fail else COLOURS[0]
        panel.plot([100 * low, 100 * high], [place, place], color=colour, linewidth=2.2, solid_capstyle="butt")
        face = "none" if may_fail is None else colour
        panel.plot(100 * count.rate, place, "o", color=colour, markerfacecolor=face, markersize=4)
        if may_fail is not None:
            panel.plot([100 * may_fail] * 2, [place - 0.4, place + 0.4], color=INK, linewidth=1.0)
    panel.set_yticks(range(len(lines)), [label for label, _, _ in reversed(lines)])
    ends = [100 * count.interval()[1] for _, count, _ in lines]
    panel.set(xlim=(-0.5, max(12.0, math.ceil(max(ends)))), title=title, xlabel="% of the checks that failed")
    panel.grid(axis="y", visible=False)
