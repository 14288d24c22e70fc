"""``rankwise simulate``: online rankers on a stream whose best ranker is known, beside what theory guarantees.

The numbers come from :mod:`rankwise.evaluation.simulation`; this module prints them as a chart of characters and a
table, and draws them as PNG on request.
"""

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankwise._tables import Table
from rankwise.cli import reading, wording
from rankwise.cli.options import option, output_option

if TYPE_CHECKING:
    from rich.text import Text

_WIDTH, _HEIGHT = 64, 12
_MARKS = ("●", "▲", "○", "◆")
_COLORS = ("blue", "red", "green", "magenta")


def simulate(
    rounds: int = option(10_000, "Queries of the stream.", min=1),
    documents: int = option(20, "Documents per query.", min=1),
    features: int = option(20, "Features per document.", min=1),
    margin: float = option(0.05, "Smallest score gap of two grades under the hidden ranker."),
    grades: int = option(5, "Grades of relevance.", min=2),
    noise: float = option(0.0, "Share of labels that are wrong.", min=0, max=1),
    drift: float = option(0.0, "Angle by which the hidden ranker turns per round."),
    seed: int = option(0, "Seed of the stream; tuning uses the next seed.", min=0),
    png: Path | None = output_option(None, "Also draw the curves into this PNG (extra: plot)."),
    as_json: reading.JsonOption = False,
) -> None:
    """Simulate three perceptrons and online ListNet: how fast they learn, and what is guaranteed.

    A hidden vector ranks every query with a margin. The table shows the time-averaged nDCG@10 after 10, 100, 1,000 ...
    rounds, the mistakes so far, and the largest cumulative loss that theory allows for that margin. Algorithm 2 is the
    perceptron as its paper prints it, with margin 1. Its step size and that of ListNet are chosen on another stream.

    Example: rankwise simulate --rounds 5000 --margin 0.02 --png online.png
    """
    from rankwise._progress import progress
    from rankwise.evaluation import simulation
    from rankwise.synthetic.streams import Stream

    if png is not None:
        from rankwise._extras import require

        require("matplotlib")  # missing: an error before the work, not after it
        reading.check_writable(png)
    stream = Stream(
        n_queries=rounds, documents=(documents, documents), features=features, grades=grades, margin=margin,
        radius=1.0, noise=noise, angle=drift, seed=seed,
    )  # fmt: skip
    with progress("simulating", simulation.total_rounds(stream)) as bar:
        found = simulation.simulate(stream, on_rounds=bar.advance)
    if png is not None:
        from rankwise._figures import save_png
        from rankwise.evaluation.simulation import draw_simulation

        save_png(draw_simulation(found), png)
    if as_json:
        print(json.dumps(found))
        return
    _show(found, png)


def _show(found: dict[str, Any], png: Path | None) -> None:
    """Print the chart, the table and the note."""
    console = wording.new_console()
    console.print(f"Time-averaged {found['measure']}, rounds on a logarithmic scale")
    console.print(_chart(found))
    console.print(_accounts(found).rich())
    console.print(_note(found))
    if png is not None:
        console.print(f"The curves are drawn in {png}", markup=False, soft_wrap=True)


def _accounts(found: dict[str, Any]) -> Table:
    """The account of every ranker after 10, 100, 1,000 ... rounds and after the last."""
    last = found["rounds"][-1]
    shown = [10**power for power in range(1, 20) if 10**power < last] + [last]
    rows = []
    for name, run in found["rankers"].items():
        most = min((bound["value"] for bound in run["bounds"]), default=None)
        for number in shown:
            at = found["rounds"].index(number)
            floor = None if run["floor"] is None else run["floor"][at]
            rows.append((name, number, run["mean"][at], run["mistakes"][at], run["loss"][at], most, floor))
    return Table.of_rows(("ranker", "round", "mean", "mistakes", "loss", "bound", "floor"), rows)


def _note(found: dict[str, Any]) -> str:
    """The explanation below the table: bounds, the chosen step sizes, and where bounds are missing."""
    tuning, tried = found["tuning"], [line["eta"] for line in found["tuning"]["grid"]]
    printed = found["tuning_printed"]
    about = (
        "bound: the largest loss that theory allows for this margin; floor: 1 - bound / round, under the mean. "
        f"ListNet's step {tuning['eta']:g} and the step {printed['eta']:g} of {printed['ranker']} (margin 1, as "
        f"printed) are the best of {tried[0]:g} to {tried[-1]:g} on {tuning['rounds']:,} rounds of another stream "
        f"(seed {tuning['seed']}); ListNet has no such bound."
    )
    return about + (
        " The hidden ranker turns, so the perceptrons have none either." if found["stream"]["angle"] else ""
    )


def _chart(found: dict[str, Any]) -> "Text":
    """The curves in characters: a column for a range of rounds, a row for a range of values."""
    from rich.text import Text

    rounds, runs = found["rounds"], found["rankers"]
    low = min(mean for run in runs.values() for mean in run["mean"] if mean is not None)
    span = (1.0 - low) or 1.0
    wide = math.log(rounds[-1]) or 1.0
    cells: dict[tuple[int, int], tuple[str, str]] = {}
    for run, mark, color in zip(runs.values(), _MARKS, _COLORS, strict=True):
        for number, mean in zip(rounds, run["mean"], strict=True):
            if mean is not None:
                column = round(math.log(number) / wide * (_WIDTH - 1))
                row = round((1.0 - mean) / span * (_HEIGHT - 1))
                # the first ranker wins a cell that two curves share
                cells.setdefault((row, column), (mark, color))
    chart = Text(no_wrap=True)
    for row in range(_HEIGHT):
        value = 1.0 - span * row / (_HEIGHT - 1)
        chart.append(f"{value:6.3f} ┤" if row % 3 == 2 or row == 0 else "       │", style="dim")
        for column in range(_WIDTH):
            mark, color = cells.get((row, column), (" ", ""))
            chart.append(mark, style=color)
        chart.append("\n")
    chart.append(f"       └{'─' * _WIDTH}\n        1{rounds[-1]:>{_WIDTH - 1},}\n        ", style="dim")
    for name, mark, color in zip(runs, _MARKS, _COLORS, strict=True):
        chart.append(f"{mark} {name}   ", style=color)
    return chart
