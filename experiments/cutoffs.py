"""The rankers of LETOR on OHSUMED, NDCG at every cut-off: ``python3 run.py python -m experiments.cutoffs``.

Figure 3 and the OHSUMED columns of Table 2 of the paper on SmoothRank. The protocol is that of two older experiments:
SmoothRank and ridge regression as in experiments/smoothrank.py (trained and chosen at nDCG@50), all others as in
experiments/direct.py (chosen at nDCG@10, or AP where the name says so). The five official folds, test parts scored
once, all 106 test queries together, by the conventions of the official LETOR evaluator; differences to SmoothRank by
Fisher's randomization over queries, corrected by Holm for their number.

Reads the folder that RANKWISE_DATA names; writes docs/cutoffs.json and docs/figures/reproduction_cutoffs.png. Names of
rankers after the module fit these alone, the others keep their lines; ``--redraw`` draws what is there. About four
minutes, most of them for ListNet and SmoothRank.
"""

import json
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import rankwise as rw
from experiments import direct, smoothrank
from experiments.pages import DOCS
from experiments.published import SMOOTHRANK_TABLE_2
from rankwise._figures import COLORS, FAINT, INK, house_style, new_figure, save_png
from rankwise._files import writing
from rankwise._progress import track
from rankwise.evaluation.comparison.selection import select
from rankwise.evaluation.statistics.multiple_testing import significance

NUMBERS, FIGURE = DOCS / "cutoffs.json", DOCS / "figures" / "reproduction_cutoffs.png"
CUTS = range(1, 11)
MEASURES = [*(f"nDCG@{k}" for k in CUTS), "AP"]
COMPARED = "nDCG@10"  # by which the paired tests are made
FIRST = "SmoothRank"
LINES = ("SmoothRank", "RankSVM", "RidgeRanker", "AdaRank", "ListNet", "RankBoost")  # of the right panel


def rankers() -> dict[str, Any]:
    """Those of the paper's Table 2, in its order of NDCG@10, each with the settings that its page has."""
    own = smoothrank.rankers((50,))
    found = direct.rankers() | {"RidgeRanker": own["RidgeRanker"], "SmoothRank": own["SmoothRank k=50"]}
    return {name: found[name] for name in SMOOTHRANK_TABLE_2}


def measured(folder: Path, name: str, ranker: Any) -> dict[str, Any]:
    """One ranker on the test lists of all folds: means with 95% intervals, and the value of every query."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a ranker that learns nothing at some alpha says so
        found = select({name: ranker}, rw.io.read_folds(folder))
    result = found.evaluate(MEASURES, like="letor")[name]
    return {
        "mean": dict(result.mean),
        "interval": {title: list(ends) for title, ends in result.interval(0.95).items()},
        "values": result[COMPARED].round(6).tolist(),
    }


def tests(lines: dict[str, Any]) -> dict[str, Any]:
    """Name -> difference to SmoothRank in NDCG@10, its interval and its p-values."""
    each = {name: {COMPARED: line["values"]} for name, line in lines.items()}
    kept = ("difference", "low", "high", "p", "p_corrected")
    table = significance(each, baseline=FIRST)
    return {line["ranker"]: {key: line[key] for key in kept} for line in table}


def draw(numbers: dict[str, Any]) -> Any:
    """Left NDCG@10 with intervals beside what is printed, right NDCG at every cut-off for some of them."""
    lines = numbers["rankers"]
    with house_style():
        figure = new_figure(8.0, 3.8)
        left, right = figure.subplots(1, 2)
        for place, (name, line) in enumerate(lines.items()):
            mean, (low, high) = line["mean"][COMPARED], line["interval"][COMPARED]
            color = COLORS[LINES.index(name)] if name in LINES else FAINT
            left.plot([low, high], [place, place], color=color, linewidth=1.2)
            left.plot(mean, place, "o", color=color, markersize=5)
            left.plot(SMOOTHRANK_TABLE_2[name][0], place, "D", color=INK, markerfacecolor="none", markersize=5)
        left.plot([], [], "o", color=FAINT, markersize=5, label="ours, with 95% interval")
        left.plot([], [], "D", color=INK, markerfacecolor="none", markersize=5, linestyle="none", label="published")
        left.set_yticks(range(len(lines)), list(lines))
        left.invert_yaxis()
        left.grid(axis="y", visible=False)
        left.set(title="NDCG@10 on OHSUMED", xlim=(0.35, 0.52))
        left.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=2)
        for name, color in zip(LINES, COLORS, strict=False):
            curve = [lines[name]["mean"][f"nDCG@{k}"] for k in CUTS]
            right.plot(CUTS, curve, color=color, marker="o", label=name)
        printed = smoothrank.PAPER_TABLE_3[50]
        look: dict[str, Any] = {"color": INK, "markerfacecolor": "none", "markersize": 5, "linestyle": "none"}
        right.plot((1, 5, 10), printed, "D", label="SmoothNDCG, published", **look)
        right.set(title="NDCG@k", xlabel="k", xticks=list(CUTS))
        right.legend(loc="upper right")
    return figure


def collect(folder: Path, names: Sequence[str], kept: dict[str, Any]) -> dict[str, Any]:
    """The lines of these rankers, those that are kept of the others, and the tests between them."""
    known, lines = rankers(), dict(kept)
    for name in track(names, "rankers"):
        lines[name] = measured(folder, name, known[name])
    lines = {name: lines[name] for name in known if name in lines}
    return {"rankers": lines, "tests": tests(lines)}


def main(arguments: Sequence[str]) -> int:
    known, redraw, data = list(rankers()), list(arguments) == ["--redraw"], os.environ.get("RANKWISE_DATA")
    kept = json.loads(NUMBERS.read_text(encoding="utf-8"))["rankers"] if arguments and NUMBERS.is_file() else {}
    if not redraw:
        if not data or not set(arguments) <= set(known):
            names = ", ".join(map(repr, known))
            print(
                f"set RANKWISE_DATA to the folder with the set ohsumed, and name some of {names}, or none",
                file=sys.stderr,
            )
            return 2
        numbers = collect(Path(data) / "ohsumed", list(arguments) or known, kept)
        with writing(NUMBERS) as part:
            part.write_text(json.dumps(numbers) + "\n", encoding="utf-8")
    save_png(draw(json.loads(NUMBERS.read_text(encoding="utf-8"))), FIGURE)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
