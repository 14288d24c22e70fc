"""How wide hold-out intervals are: ``python3 run.py python -m experiments.holdout_widths``.

Hoeffding's, the empirical Bernstein and the betting interval at 95%, on Bernoulli samples of 5 to 500 values, and on
the 106 queries of OHSUMED: NDCG@10 of ridge regression, each query ranked by the model that had not seen it.
Reads the folder that RANKWISE_DATA names; writes docs/holdout_widths.json, docs/figures/holdout_widths.png and the
tables of docs/bounds_holdout.md.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any, get_args

import numpy as np

from experiments.pages import DOCS, markdown_table, write_block
from rankwise._figures import COLORS, FAINT, house_style, new_figure, save_png
from rankwise._files import writing
from rankwise.evaluation.comparison.selection import select
from rankwise.guarantees.holdout.intervals import NAMES, Method, mean_interval
from rankwise.io.folds import read_folds
from rankwise.rankers.linear.ridge import RidgeRanker

RESULTS, FIGURE, PAGE = (
    DOCS / "holdout_widths.json",
    DOCS / "figures" / "holdout_widths.png",
    DOCS / "bounds_holdout.md",
)
DELTA = 0.05
SIZES = (5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500)
CHANCES = (0.5, 0.8, 0.95)
SAMPLES = 200
ORDERS = 50  # of the input, on OHSUMED
SHOWN = (5, 20, 100, 500)  # sizes of the page's table
METHODS: tuple[Method, ...] = get_args(Method)
COLOR = dict(zip(METHODS, (COLORS[1], COLORS[2], COLORS[0]), strict=True))


def widths(rows: np.ndarray) -> dict[str, np.ndarray]:
    """The width of each method's interval on each row of values."""
    found = {method: [mean_interval(row, DELTA, method=method).width for row in rows] for method in METHODS}
    return {method: np.array(each) for method, each in found.items()}


def summary(rows: np.ndarray) -> dict[str, Any]:
    """Mean widths, and on which share of the samples betting is wider than each of the others."""
    found = widths(rows)
    wider = {
        method: float((found["betting"] > found[method] + 1e-9).mean()) for method in METHODS if method != "betting"
    }
    return {"mean width": {method: float(each.mean()) for method, each in found.items()}, "betting wider": wider}


def coins() -> dict[str, Any]:
    """Bernoulli samples of every size and chance."""
    random = np.random.default_rng(0)
    return {
        f"{chance:g}": {str(n): summary((random.random((SAMPLES, n)) < chance).astype(float)) for n in SIZES}
        for chance in CHANCES
    }


def ohsumed(data: Path) -> dict[str, Any]:
    """The 106 values, the interval of each method, and mean widths on part of them."""
    found = select({"RidgeRanker": RidgeRanker("nDCG@10")}, read_folds(data / "ohsumed"))
    result = found.evaluate(["nDCG@10"], like="letor")["RidgeRanker"]
    values = np.asarray(result.per_query["nDCG@10"], dtype=float)
    random = np.random.default_rng(0)
    sizes = [n for n in SIZES if n < len(values)]
    orders = [mean_interval(np.random.default_rng(seed).permutation(values), DELTA) for seed in range(ORDERS)]
    return {
        "values": values.tolist(),
        "intervals": {method: mean_interval(values, DELTA, method=method).to_dict() for method in METHODS},
        "betting, orders of the input": {
            "narrowest": min(one.width for one in orders),
            "widest": max(one.width for one in orders),
        },
        "parts": {str(n): summary(np.stack([random.permutation(values)[:n] for _ in range(SAMPLES)])) for n in sizes}
        | {str(len(values)): summary(values[None])},
    }


def draw(found: dict[str, Any]) -> None:
    """Mean width against the number of queries, a panel a distribution."""
    panels = {f"coins that show 1 with chance {chance}": curve for chance, curve in found["coins"].items()}
    panels["OHSUMED, NDCG@10 of ridge regression"] = found["ohsumed"]["parts"]
    with house_style():
        figure = new_figure(8.0, 5.4)
        axes = figure.subplots(2, 2, sharex=True, sharey=True).ravel()
        for panel, (title, curve) in zip(axes, panels.items(), strict=True):
            sizes = [int(n) for n in curve]
            for method in METHODS:
                mean = [curve[str(n)]["mean width"][method] for n in sizes]
                panel.plot(sizes, mean, color=COLOR[method], marker="o", label=NAMES[method])
            for n in sizes:
                share = curve[str(n)]["betting wider"]["hoeffding"]
                if share > 0.005:
                    panel.text(n, 0.013, f"{100 * share:.0f}", color=COLOR["betting"], fontsize=6, ha="center")
            ever_wider = any(curve[str(n)]["betting wider"]["hoeffding"] for n in sizes)
            note = (
                "% of samples on which betting is wider than Hoeffding"
                if ever_wider
                else "betting is never the wider one"
            )
            panel.text(5, 0.018, note, color=FAINT, fontsize=6)
            panel.set(xscale="log", yscale="log", ylim=(0.011, 1.3), title=title)
            panel.set_xticks([5, 10, 20, 50, 100, 200, 500], ["5", "10", "20", "50", "100", "200", "500"])
            panel.set_yticks([0.02, 0.05, 0.1, 0.2, 0.5, 1], ["0.02", "0.05", "0.1", "0.2", "0.5", "1"])
            panel.minorticks_off()
        for panel in axes[2:]:
            panel.set_xlabel("queries")
        for panel in axes[::2]:
            panel.set_ylabel("mean width of the 95% interval")
        axes[-1].legend(loc="upper right")
        save_png(figure, FIGURE)


def ohsumed_table(found: dict[str, Any]) -> str:
    """Both ends of each method on the 106 queries, and what the order of the input does to betting."""
    rows = [
        [NAMES[method], *(f"{one[end]:.3f}" for end in ("low", "high")), f"{one['high'] - one['low']:.3f}"]
        for method, one in found["ohsumed"]["intervals"].items()
    ]
    orders = found["ohsumed"]["betting, orders of the input"]
    widths = f"{orders['narrowest']:.3f} to {orders['widest']:.3f}"
    rows.append([f"betting, {ORDERS} orders of the input", "", "", widths])
    return markdown_table(("method", "from", "to", "width"), rows)


def coins_table(found: dict[str, Any]) -> str:
    """Mean widths by chance and size, and on which share of the samples betting is wider than Hoeffding."""
    rows = []
    for chance, curve in found["coins"].items():
        for n in map(str, SHOWN):
            mean, wider = curve[n]["mean width"], curve[n]["betting wider"]["hoeffding"]
            rows.append([chance, n, *(f"{mean[method]:.3f}" for method in METHODS), f"{100 * wider:.3g}%"])
    return markdown_table(("chance of 1", "queries", *(NAMES[method] for method in METHODS), "betting wider"), rows)


def draw_tables(found: dict[str, Any]) -> None:
    """The page's tables."""
    write_block(PAGE, "ohsumed", ohsumed_table(found))
    write_block(PAGE, "coins", coins_table(found))


def main() -> int:
    data = os.environ.get("RANKWISE_DATA")
    if not data:
        print("set RANKWISE_DATA to the folder with the set ohsumed", file=sys.stderr)
        return 2
    found = {"delta": DELTA, "samples": SAMPLES, "coins": coins(), "ohsumed": ohsumed(Path(data))}
    with writing(RESULTS) as part:
        part.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    draw(found)
    draw_tables(found)
    for method, one in found["ohsumed"]["intervals"].items():
        print(f"OHSUMED, {method}: {one['low']:.3f} to {one['high']:.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
