"""The figure of the README: the rankers of the demonstration with intervals, and what is certified of the winner.

``python3 run.py python -m experiments.demo`` runs ``rankwise demo`` in a temporary folder. It writes docs/demo.json,
from which ``--draw`` draws docs/figures/demo.png.
"""

import json
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Any

from experiments.pages import DOCS
from rankwise._figures import COLORS, FAINT, house_style, new_figure, save_png
from rankwise._files import writing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NUMBERS, FIGURE = DOCS / "demo.json", DOCS / "figures" / "demo.png"
_KEPT = ("ranker", "nDCG@10", "low", "high", "AP")


def measured() -> dict[str, Any]:
    """The results of the demonstration, and the lower bound of its winner."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "rankwise", "demo", "--out", f"{folder}/demo", "--json"]
        printed = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return {
        "results": {name: printed["results"][name] for name in _KEPT},
        "winner": printed["winner"],
        "at least": 1 - printed["certificate"]["headline"]["value"],
    }


def draw(found: dict[str, Any]) -> "Figure":
    """A row per ranker, the best first, and the certified bound as a line."""
    results, winner, bound = found["results"], found["winner"], found["at least"]
    names = results["ranker"]
    with house_style():
        figure = new_figure(width=6.4, height=2.9)
        axes = figure.subplots()
        for place, name in enumerate(names):
            color = COLORS[0] if name == winner else FAINT
            mean, low, high = (results[column][place] for column in ("nDCG@10", "low", "high"))
            axes.plot([low, high], [place, place], color=color, linewidth=2.4, solid_capstyle="butt")
            axes.plot([mean], [place], "o", color=color, markersize=5)
            axes.annotate(f"{mean:.3f}", (high, place), (4, 0), textcoords="offset points", va="center")
        axes.axvline(bound, color=COLORS[1], linewidth=1.2, linestyle="--")
        axes.annotate(f"certified: {bound:.3f}", (bound, -0.55), (-4, 0), textcoords="offset points", ha="right")
        axes.set_title(f"{winner}: at least {bound:.3f} on future searches, with 95% confidence")
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.4, -0.8)
        axes.set_xlim(min(results["low"]) - 0.02, max(results["high"]) + 0.03)
        axes.set(xlabel="nDCG@10 on test searches, 95% intervals")
        axes.grid(axis="y", visible=False)
    return figure


def main(arguments: list[str]) -> int:
    if arguments != ["--draw"]:
        with writing(NUMBERS) as part:
            part.write_text(json.dumps(measured(), indent=1) + "\n", encoding="utf-8")
    save_png(draw(json.loads(NUMBERS.read_text(encoding="utf-8"))), FIGURE)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
