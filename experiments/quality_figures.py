"""The figures of the quality benchmark, from docs/quality.json.

``python3 run.py python -m experiments.quality_figures`` writes docs/figures/quality_differences.png and
docs/figures/quality_curves.png, as ``python3 run.py bench quality`` does in the end.
"""

import json
import sys
from typing import TYPE_CHECKING, Any

from benchmarks.quality.page import MEASURES, ON_PAGE, RESULTS
from experiments.pages import DOCS
from rankwise._figures import COLORS, FAINT, house_style, new_figure, save_png

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DIFFERENCES, CURVES = (DOCS / "figures" / f"quality_{name}.png" for name in ("differences", "curves"))
SHOWN = ("AutoRanker", "RidgeCommittee", "BoostedRanker", "LightGBM lambdarank", "CatBoost YetiRank")
PANELS = {"interactions": "relevance with interactions", "linear": "relevance without interactions"}


def draw_differences(results: dict[str, Any]) -> "Figure":
    """A panel per measure, a row per set, an interval per peer."""
    rows = list(results.values())[::-1]
    with house_style():
        figure = new_figure(width=7.6, height=0.32 * len(rows) + 1.0)
        panels = figure.subplots(1, len(MEASURES), sharey=True)
        for axes, measure in zip(panels, MEASURES, strict=True):
            axes.axvline(0, color=FAINT, linewidth=1)
            for place, (peer, color) in enumerate(zip(ON_PAGE, COLORS, strict=False)):
                at = [row for row, one in enumerate(rows) if peer in one["differences"]]
                found = [rows[row]["differences"][peer][measure] for row in at]
                axes.errorbar(
                    [one["difference"] for one in found],
                    [row + 0.14 - 0.28 * place for row in at],
                    xerr=[(one["high"] - one["low"]) / 2 for one in found],
                    fmt="o",
                    color=color,
                    capsize=2,
                    label=f"against {peer}",
                )
            axes.set(title=measure, xlabel="AutoRanker is ahead by")
            axes.set_yticks(range(len(rows)), [one["title"] for one in rows])
            axes.locator_params(axis="x", nbins=6)
            axes.tick_params(axis="y", length=0)
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(ON_PAGE))
    return figure


def points(results: dict[str, Any], kind: str, ranker: str) -> list[tuple[int, float]]:
    """(training queries, nDCG@10) of a ranker on the simulated sets of a kind."""
    own = [one for name, one in results.items() if name.startswith(f"{kind}-") and ranker in one["rankers"]]
    return sorted((one["training queries"], one["rankers"][ranker]["nDCG@10"]) for one in own)


def draw_curves(results: dict[str, Any]) -> "Figure":
    """One panel with interactions, one without."""
    with house_style():
        figure = new_figure(width=9.0, height=3.6)
        for place, (kind, title) in enumerate(PANELS.items(), start=1):
            axes = figure.add_subplot(1, len(PANELS), place)
            for color, ranker in zip(COLORS, SHOWN, strict=False):
                found = points(results, kind, ranker)
                if found:
                    axes.plot(*zip(*found, strict=True), marker="o", color=color, label=ranker)
            axes.set_xscale("log")
            counts = [count for count, _ in points(results, kind, "CatBoost YetiRank")]
            axes.set_xticks(counts, [f"{count:,}" for count in counts])
            axes.minorticks_off()
            axes.set(title=title, xlabel="training queries", ylabel="nDCG@10")
        axes.legend()
    return figure


def main() -> int:
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    save_png(draw_differences(results), DIFFERENCES)
    save_png(draw_curves(results), CURVES)
    return 0


if __name__ == "__main__":
    sys.exit(main())
