"""Tables and figure of docs/coverage.md, from the stored counts."""

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from experiments import coverage_worlds as worlds
from experiments.coverage_certificates import HEADLINE, Cell
from experiments.coverage_counts import (
    CONTROL,
    Average,
    Count,
    Verdict,
    level_of_one,
    power,
    rates_to_find,
    read_count,
    verdict,
)
from experiments.coverage_populations import POPULATIONS
from experiments.pages import DOCS, markdown_table
from rankwise._figures import COLORS, FAINT, INK, house_style, new_figure

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
    ("Minimizer", "excess risk over the best weights of the ball"),
    ("Online to batch", "mean risk of the iterates"),
    ("SLAM mistakes", "rounds with a loss above 0"),
    ("SLAM loss", "cumulative loss of the run"),
    ("Quarter step", "cumulative loss of the run"),
    ("Fixed step", "cumulative loss of the run"),
    ("Max-pair", "rounds with a mistake"),
    ("Surrogate", "1 - measure on the training queries"),
    ("AdaRank", "1 - measure on the training queries"),
    ("Working sets", "best measure - measure on the training queries"),
    ("Smoothing", "distance of the smoothed measure, training queries"),
    ("Gap", "objective - its minimum"),
    ("Regularized", "expected excess, on average over samples: see below"),
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
Key = tuple[str, str, float | None]  # of a trial: where, what, and how often it may fail
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


def groups_of(cells: dict[Cell, Count]) -> dict[str, list[Count]]:
    """Sums of cells that a verdict looks at as well: of one ranker, and of one population and number of queries."""
    found: dict[str, dict[object, Count]] = {"ranker": {}, "population": {}}
    for cell, count in cells.items():
        for name, key in (("ranker", cell.case), ("population", cell[1:])):
            found[name].setdefault(key, Count()).add(count)
    return {name: list(each.values()) for name, each in found.items()}


def intervals_of(numbers: Numbers) -> dict[Key, list[tuple[str, Count]]]:
    """(part, what, how often it may fail) -> the counts of every distribution and size, without the worlds."""
    found: dict[Key, list[tuple[str, Count]]] = {}
    for part, values, n, what, may_fail, count in numbers["intervals"]:
        if part in PARTS:
            where = f"{values}, n = {n}" if n else values
            found.setdefault((PARTS[part], what, may_fail), []).append((where, read_count(count)))
    return found


def worlds_of(numbers: Numbers) -> dict[Key, list[tuple[str, Count]]]:
    """(world, what, how often it may fail) -> the counts of every size."""
    found: dict[Key, list[tuple[str, Count]]] = {}
    for part, values, n, what, may_fail, count in numbers["intervals"]:
        if part in worlds.PARTS:
            found.setdefault((values, what, may_fail), []).append((f"n = {n:,}", read_count(count)))
    return found


# ------------------------------------------------------------------------------------------- verdicts


def verdicts(numbers: Numbers) -> dict[str, Verdict]:
    """The verdict on everything that is promised, and on the controls, which have to be FALSE."""
    found = {}
    for label, cells in rows_of(numbers).items():
        groups = [group for each in groups_of(cells).values() for group in each]
        found[label] = verdict(cells.values(), allowed(label, numbers), groups)
    for label, cells in averages_of(numbers).items():
        # an average has been compared with all errors allowed for: one that is above its bound is one too many
        failed = Count.total(cells.values()).failed
        found[f"{label} (on average)"] = "FALSE" if failed else "kept"
    for (part, what, may_fail), counts in (intervals_of(numbers) | worlds_of(numbers)).items():
        if may_fail is not None:
            found[f"{part}: {what}"] = verdict((count for _, count in counts), may_fail)
    return found


def allowed(label: str, numbers: Numbers) -> float:
    """How often a row may fail: never, where no chance comes in."""
    return 0.0 if label in numbers["certain"].split(" | ") else float(numbers["delta"])


def false_ones(numbers: Numbers) -> list[str]:
    """The guarantees that failed too often."""
    return [name for name, found in verdicts(numbers).items() if found == "FALSE" and CONTROL not in name]


def missed_controls(numbers: Numbers) -> list[str]:
    """The wrong bounds that were not found out: with them, the verdicts on the others mean nothing."""
    return [name for name, found in verdicts(numbers).items() if found != "FALSE" and CONTROL in name]


# ------------------------------------------------------------------------------------------- tables


def tables(numbers: Numbers) -> dict[str, str]:
    """The parts of the page."""
    return {
        "rows": rows_table(numbers),
        "on average": averages_table(numbers),
        "headlines": headlines_table(numbers),
        "sizes": sizes_table(numbers),
        "worlds": trials_table("world", worlds_of(numbers), promised=True),
        "about the worlds": worlds_table(numbers),
        "intervals": trials_table("part", intervals_of(numbers), promised=True),
        "approximations": trials_table("part", intervals_of(numbers) | worlds_of(numbers), promised=False),
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
        "rate, 99% interval",
        "may fail",
        "vacuous",
        "not met",
        "worst cell",
        *POWER,
        "verdict",
    )
    lines, found = [], verdicts(numbers)
    for label, cells in rows_of(numbers).items():
        whole = Count.total(cells.values())
        if not whole.checked:
            lines.append([label, _about(label), "0", "", "", "", "", f"{whole.not_met:,}", "", "", "", "not met"])
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
                *_powers(list(cells.values()), allowed(label, numbers), *groups_of(cells).values()),
                _judged(label, found[label], list(cells.values()), allowed(label, numbers), *groups_of(cells).values()),
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
    level, lines = _level(cells), []
    for case in dict.fromkeys(cell.case for cell in cells):
        each = [
            Count.total(count for cell, count in cells.items() if (cell.case, cell.population) == (case, name))
            for name in names
        ]
        whole = Count.total(each)
        shown = [f"{one.failed} of {one.checked:,}" if one.checked else "" for one in each]
        found = _bold(verdict(each, numbers["delta"]))
        lines.append([f"`{case}`", *shown, _rate(whole), *_power(whole, numbers["delta"], level), found])
    return markdown_table(("ranker", *names, "rate, 99% interval", *POWER, "verdict"), lines)


def sizes_table(numbers: Numbers) -> str:
    """Hold-out rows and the headline by population and number of queries."""
    rows = rows_of(numbers)
    names = [name for name in (HEADLINE, "Betting", "Hoeffding", "Empirical Bernstein") if name in rows]
    places = dict.fromkeys((cell.population, cell.n) for cell in rows[HEADLINE])
    level, lines = _level(rows[HEADLINE]), []
    for place in sorted(places, key=lambda place: (list(POPULATIONS).index(place[0]), place[1])):
        counts = [Count.total(count for cell, count in rows[name].items() if cell[1:] == place) for name in names]
        refused = sum(one["refused"] for one in numbers["cells"] if (one["population"], one["n"]) == place)
        shown = [*map(_rate, counts), *_power(counts[0], numbers["delta"], level), f"{refused:,}"]
        lines.append([place[0], f"{place[1]:,}", *shown])
    return markdown_table(("population", "n", *names, *POWER, "no hold-out bound"), lines)


def trials_table(first: str, trials: dict[Key, list[tuple[str, Count]]], *, promised: bool) -> str:
    """What was counted without cells; approximations promise nothing, so they have no verdict."""
    titles = [first, "what", "checked", "failed", "rate, 99% interval", "worst", "may fail", *POWER, "verdict"]
    lines = []
    for (where, what, may_fail), counts in trials.items():
        if (may_fail is not None) is not promised:
            continue
        each = [count for _, count in counts]
        whole = Count.total(each)
        line = [where, what, f"{whole.checked:,}", f"{whole.failed:,}", _rate(whole), _worst(counts)]
        if may_fail is not None:
            line += [
                _percent(may_fail),
                *_powers(each, may_fail),
                _judged(what, verdict(each, may_fail), each, may_fail),
            ]
        lines.append(line)
    return markdown_table(titles if promised else titles[:6], lines)


def worlds_table(numbers: Numbers) -> str:
    """What the worlds are like."""
    sizes: dict[tuple[str, str], dict[str, None]] = {}
    for part, values, n, *_ in numbers["intervals"]:
        if part in worlds.PARTS:
            sizes.setdefault((part, values), {})[f"{n:,}"] = None
    lines = ([part, values, worlds.ABOUT[values], " and ".join(each)] for (part, values), each in sizes.items())
    return markdown_table(("part", "world", "what it is like", "n"), lines)


def unchecked_table(numbers: Numbers) -> str:
    lines = [[label, bounds, f"`{case}`", why] for label, bounds, case, why in numbers["unchecked"]]
    return markdown_table(("row", "what it bounds", "ranker", "why it is not checked"), lines)


def exact_table(numbers: Numbers) -> str:
    """The largest probability of failing over all chances, and the chance at which it is."""
    lines = []
    for n, worst in numbers["exact"]:
        lines.append([str(n), *(f"{100 * share:.2f}% at {chance:g}" for share, chance in worst.values())])
    names = list(numbers["exact"][0][1]) if numbers["exact"] else []
    return markdown_table(("n", *names), lines)


def populations_table() -> str:
    return markdown_table(("population", "what it is like"), ([one.name, one.about] for one in POPULATIONS.values()))


def count_guarantees(numbers: Numbers) -> int:
    """How many guarantees were counted, none of which was found to be false; an error if one was."""
    if false_ones(numbers):
        raise ValueError(f"guarantees are found to be false: {false_ones(numbers)}")
    return sum(CONTROL not in name for name in verdicts(numbers))


def run_text(numbers: Numbers) -> str:
    """What the tables were made with, as a sentence."""
    headlines = Count.total(rows_of(numbers)[HEADLINE].values())
    found = verdicts(numbers)
    controls = [name for name in found if CONTROL in name]
    false, missed = false_ones(numbers), missed_controls(numbers)
    return (
        f"{headlines.checked:,} certificates at delta = {numbers['delta']:g}, {numbers['repetitions']} in each of "
        f"{len(numbers['cells'])} cells, seed {numbers['seed']}. Failures of the headline: {headlines.failed:,}, or "
        f"{_rate(headlines)}. Of {len(found) - len(controls)} guarantees {len(false)} are found to be false, and of "
        f"{len(controls)} controls, which are false on purpose, {len(controls) - len(missed)}."
    )


# ------------------------------------------------------------------------------------------- cells of tables


def _place(label: str) -> int:
    return next((place for place, (start, _) in enumerate(ABOUT) if label.startswith(start)), len(ABOUT))


def _about(label: str) -> str:
    place = _place(label)
    return ABOUT[place][1] if place < len(ABOUT) else ""


def _percent(share: float) -> str:
    return f"{100 * share:.3g}%"


def _share(part: int, whole: int) -> str:
    return _percent(part / whole) if part else "0"


def _rate(count: Count) -> str:
    if not count.checked:
        return ""
    low, high = count.interval()
    return f"{100 * count.rate:.2f}% ({100 * low:.2f} to {100 * high:.2f})"


def _worst(counts: Iterable[tuple[str, Count]]) -> str:
    """Where it failed most often, by the lower end of the interval."""
    failed = [(count.interval()[0], count.rate, where, count) for where, count in counts if count.failed]
    if not failed:
        return ""
    _, _, where, count = max(failed, key=lambda one: one[:2])
    return f"{where}: {count.failed} of {count.checked:,}"


def _bold(found: str) -> str:
    return f"**{found}**" if found == "FALSE" else found


def _judged(what: str, found: Verdict, parts: list[Count], may_fail: float, *groups: list[Count]) -> str:
    """The verdict on a guarantee, which needs power to be worth anything; a control has to be found out."""
    if what.startswith(CONTROL):
        return "found out" if found == "FALSE" else "**MISSED**"
    if found == "FALSE":
        return _bold(found)
    whole = Count.total(parts)
    if whole.vacuous == whole.checked:
        return "vacuous"
    level = level_of_one(len(parts) + sum(map(len, groups)))
    rate = max(rates_to_find(may_fail))
    best = max(power(one, may_fail, rate, level) for each in (*groups, parts) for one in each)
    return found if max(best, power(whole, may_fail, rate)) >= ENOUGH else "too weak to tell"


ENOUGH = 0.8  # of power, for a verdict that nothing is wrong
POWER = ("power at twice the rate", "power at 25%")


def _level(cells: dict[Cell, Count]) -> float:
    """The level at which a verdict looks at one of the cells of a row, or at one group of them."""
    return level_of_one(len(cells) + sum(map(len, groups_of(cells).values())))


def _power(count: Count, may_fail: float, level: float) -> list[str]:
    """The power of one count, for each of the two rates."""
    return [f"{power(count, may_fail, rate, level):.2f}" for rate in rates_to_find(may_fail)]


def _powers(parts: list[Count], may_fail: float, *groups: list[Count]) -> list[str]:
    """For each of the two rates the power of all checks together, of the weakest group of each kind, of one part.

    Parts and groups in which nothing can fail have no power, and are left out.
    """
    level, whole = level_of_one(len(parts) + sum(map(len, groups))), Count.total(parts)
    found = []
    for rate in rates_to_find(may_fail):
        shown = [power(whole, may_fail, rate)]
        for each in (*groups, parts):
            able = [power(count, may_fail, rate, level) for count in each if count.checked > count.vacuous]
            shown.append(min(able, default=0.0))
        # one part alone is the whole
        found.append(", ".join(f"{one:.2f}" for one in (shown if len(parts) > 1 else shown[:1])))
    return found


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
        if not what.startswith(CONTROL):
            others.append((start.get(part, "") + what, Count.total(count for _, count in counts), may_fail))
    with house_style():
        figure = new_figure(10.5, 9.4)
        grid = figure.add_gridspec(2, 2, height_ratios=(5.6, 3.8))
        _draw_panel(figure.add_subplot(grid[0, 0]), rows, "Rows of certificates")
        _draw_panel(figure.add_subplot(grid[0, 1]), others, "Intervals and plans")
        _draw_worlds(figure.add_subplot(grid[1, :]), numbers)
        return figure


def _draw_panel(panel: Any, lines: list[Line], title: str) -> None:
    for place, (_, count, may_fail) in enumerate(reversed(lines)):
        low, _ = count.interval()
        color = FAINT if may_fail is None else COLORS[1] if low > may_fail else COLORS[0]
        _draw_count(panel, place, count, color, filled=may_fail is not None)
        if may_fail is not None:
            panel.plot([100 * may_fail] * 2, [place - 0.4, place + 0.4], color=INK, linewidth=1.0)
    panel.set_yticks(range(len(lines)), [label for label, _, _ in reversed(lines)])
    ends = [100 * count.rate for _, count, _ in lines]
    panel.set(xlim=(-0.5, max(12.0, math.ceil(max(ends)) + 3)), title=title, xlabel="% of the checks that failed")
    panel.grid(axis="y", visible=False)


def _draw_worlds(panel: Any, numbers: Numbers) -> None:
    """For each world what failed most often of what is promised, and its control."""
    by_world: dict[str, tuple[list[Count], list[Count]]] = {}
    for (world, what, may_fail), counts in worlds_of(numbers).items():
        if may_fail is not None:
            is_control = what.startswith(CONTROL)
            by_world.setdefault(world, ([], []))[is_control].append(Count.total(count for _, count in counts))
    for place, (promised, controls) in enumerate(reversed(by_world.values())):
        worst = max(promised, key=lambda count: count.rate)
        _draw_count(panel, place, worst, COLORS[1] if worst.interval()[0] > numbers["delta"] else COLORS[0])
        for control in controls:
            _draw_count(panel, place, control, FAINT, filled=False)
    panel.axvline(100 * numbers["delta"], color=INK, linewidth=1.0)
    panel.set_yticks(range(len(by_world)), list(reversed(by_world)))
    title = "Worlds: the guarantee that failed most often, and the control (hollow)"
    panel.set(xlim=(-1.0, 101.0), title=title, xlabel="% of the checks that failed")
    panel.grid(axis="y", visible=False)


def _draw_count(panel: Any, place: int, count: Count, color: str, *, filled: bool = True) -> None:
    """A rate and its interval."""
    low, high = count.interval()
    panel.plot([100 * low, 100 * high], [place, place], color=color, linewidth=2.2, solid_capstyle="butt")
    panel.plot(100 * count.rate, place, "o", color=color, markerfacecolor=color if filled else "none", markersize=4)
