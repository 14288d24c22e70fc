"""How the time of a symmetric tree grows with rows, features and the length of lists, up to 1.2 million rows.

``python3 run.py python -m experiments.boosted_growth`` measures processor seconds of one thread on the data of
benchmarks/symmetric_trees.py, writes docs/boosted_growth.json, and draws docs/figures/boosted_growth.png;
``--draw`` draws it from the stored numbers.

A tree is the median of some trees of depth 6 on all rows and features, after two others; its derivatives, of the pair
loss, are timed within. Lists of another length are the same rows, divided otherwise.
"""

import json
import sys
import time
from statistics import median
from typing import Any

import numpy as np

from benchmarks.symmetric_trees import FEATURES, LONG, data
from experiments.pages import DOCS
from rankwise._figures import COLORS, INK, house_style, new_figure, save_png
from rankwise._files import writing
from rankwise._progress import track

NUMBERS, FIGURE = DOCS / "boosted_growth.json", DOCS / "figures" / "boosted_growth.png"
ROWS = (75_000, 150_000, 300_000, 600_000, 1_200_000)
WIDTHS = (17, 34, 68, 136)
LENGTHS = (20, 60, 120, 300, 1_000, 3_000, 10_000)
VARIED = 300_000  # rows where features or lists vary
TREES = 9


def measured(X: Any, y: Any, length: int) -> dict[str, float]:
    """Seconds of bins, of a tree, and of the derivatives of the pair loss before it."""
    import rankwise as rw
    from rankwise.losses import GradedPairs
    from rankwise.rankers.boosting.objectives import Derivatives
    from rankwise.rankers.boosting.symmetric import SymmetricRows, TreeGrowth

    lists = rw.Queries.from_arrays(X, y, group=np.full(len(X) // length, length))
    begin = time.process_time()
    rows = SymmetricRows.of([lists], TreeGrowth(row_fraction=1.0), (), 64, 0, 1)
    bins, derivatives = time.process_time() - begin, Derivatives.of(GradedPairs(), lists, 1)
    model, trees, losses = rows.model(derivatives, 0, None, 1), [], []
    for _ in range(2 + TREES):
        begin = time.process_time()
        derivatives.at(model.score, 0, 1)
        losses.append(time.process_time() - begin)
        begin = time.process_time()
        model.grow()
        trees.append(time.process_time() - begin)
    of = {"documents": len(X), "features": X.shape[1], "length": length}
    return {**of, "bins": bins, "tree": median(trees[2:]), "loss": median(losses[2:])}


def measure() -> dict[str, list[dict[str, float]]]:
    """All points."""
    X, y, _ = data(max(ROWS), 1)
    measured(X[: 50 * LONG], y[: 50 * LONG], LONG)  # compiled, by either form of the loss
    measured(X[: 50 * LONG], y[: 50 * LONG], 10 * LONG)
    works = {
        "rows": [(rows, FEATURES, LONG) for rows in ROWS],
        "features": [(VARIED, width, LONG) for width in WIDTHS],
        "lists": [(VARIED, FEATURES, length) for length in LENGTHS],
    }
    found: dict[str, list[dict[str, float]]] = {name: [] for name in works}
    for name, work in track([(name, one) for name, some in works.items() for one in some], "measuring"):
        rows, width, length = work
        found[name].append(measured(np.ascontiguousarray(X[:rows, :width]), y[:rows], length))
    return found


def slope(points: list[dict[str, float]], size: str, what: str) -> float:
    """Of log time against log size."""
    return float(np.polyfit(np.log([one[size] for one in points]), np.log([one[what] for one in points]), 1)[0])


def line(points: list[dict[str, float]], size: str) -> tuple[float, float]:
    """b and a of the line a + b size through the times of a tree, of equal relative errors."""
    sizes, trees = (np.array([one[name] for one in points]) for name in (size, "tree"))
    rise, base = np.polyfit(sizes, trees, 1, w=1 / trees)
    return float(rise), float(base)


def draw(numbers: dict[str, list[dict[str, float]]]) -> Any:
    """A panel for each size, all on the same scale of seconds."""
    panels = (
        ("rows", "documents", f"rows, {FEATURES} features"),
        ("features", "features", f"features, {VARIED:,} rows"),
        ("lists", "length", f"documents per list, {VARIED:,} rows"),
    )
    titles = {"tree": "a tree", "loss": "its derivatives", "bins": "bins, once"}
    with house_style():
        figure = new_figure(8.0, 3.2)
        for axes, (name, size, label) in zip(figure.subplots(1, 3, sharey=True), panels, strict=True):
            points = numbers[name]
            sizes = [one[size] for one in points]
            for what, color, marker in zip(titles, COLORS, "os^", strict=False):
                shown = f"{slope(points, size, what):.2f}  {titles[what]}"
                axes.plot(sizes, [one[what] for one in points], color=color, marker=marker, label=shown)
            if name != "lists":
                (rise, base), along = line(points, size), np.geomspace(sizes[0], sizes[-1])
                axes.plot(along, base + rise * along, color=INK, linewidth=0.8, linestyle=(0, (4, 3)))
            axes.set(xscale="log", yscale="log", xlabel=label, ylim=(2e-3, 12))
            ticks = sizes if name == "features" else sizes[::2]
            axes.set_xticks(ticks, [f"{one:,.0f}" for one in ticks], fontsize=7)
            axes.minorticks_off()
            axes.legend(title="slope", alignment="left", title_fontsize=7, loc="upper left")
        figure.axes[0].set_ylabel("CPU seconds, one thread")
    return figure


def sentence(numbers: dict[str, list[dict[str, float]]]) -> str:
    """What a tree of the largest data takes, and how that grows."""
    last, lists = numbers["rows"][-1], numbers["lists"]
    by_rows, by_features = line(numbers["rows"], "documents"), line(numbers["features"], "features")
    trees = [one["tree"] for one in lists]
    return (
        f"A tree of depth 6 on {last['documents']:,} x {last['features']} takes {last['tree']:.2f} CPU seconds on one "
        f"thread, of which the derivatives of the loss take {last['loss']:.2f}. Times grow along straight lines: "
        f"{1e6 * 1e3 * by_rows[0]:.0f} ms for a further million rows of {FEATURES} features, and "
        f"{1e3 * by_features[0]:.2f} ms for a further feature of {VARIED:,} rows, beside {1e3 * by_features[1]:.0f} ms "
        f"for any number of features. With the same {VARIED:,} rows in lists of {lists[0]['length']} to "
        f"{lists[-1]['length']:,} documents a tree takes {1e3 * min(trees):.0f} to {1e3 * max(trees):.0f} ms."
    )


def blocks(numbers: dict[str, list[dict[str, float]]]) -> dict[str, str]:
    """The part of docs/boosting.md that is written here."""
    return {"tree growth": sentence(numbers)}


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--draw"]):
        print(f"--draw is the only argument: found {' '.join(arguments)}", file=sys.stderr)
        return 2
    if not arguments:
        with writing(NUMBERS) as part:
            part.write_text(json.dumps(measure(), indent=1) + "\n", encoding="utf-8")
    save_png(draw(json.loads(NUMBERS.read_text(encoding="utf-8"))), FIGURE)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
