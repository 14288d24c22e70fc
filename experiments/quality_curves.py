"""nDCG@10 of the simulated sets against the number of training queries, from docs/quality.json.

``python3 run.py python -m experiments.quality_curves`` writes docs/figures/quality_curves.png.
"""

import json
import sys
from typing import TYPE_CHECKING, Any

from experiments.pages import DOCS
from rankwise._figures import COLORS, house_style, new_figure, save_png

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURE = DOCS / "figures" / "quality_curves.png"
SHOWN = ("AutoRanker", "RidgeCommittee", "BoostedRanker", "LightGBM lambdarank", "CatBoost YetiRank")
PANELS = {"interactions": "relevance with interactions", "linear": "relevance without interactions"}


def points(results: dict[str, Any], kind: str, ranker: str) -> list[tuple[int, float]]:
    """(training queries, nDCG@10) of a ranker on the simulated sets of a kind."""
    own = [one for name, one in results.items() if name.startswith(f"{kind}-") and ranker in one["rankers"]]
    return sorted((one["training queries"], one["rankers"][ranker]["nDCG@10"]) for one in own)


def draw(results: dict[str, Any]) -> "Figure":
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
    save_png(draw(json.loads((DOCS / "quality.json").read_text(encoding="utf-8"))), FIGURE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
