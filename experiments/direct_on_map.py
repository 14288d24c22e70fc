"""Five rankers trained for MAP on OHSUMED: ``python3 run.py python -m experiments.direct_on_map``.

Figures 8, 14 and 16 and the OHSUMED columns of Tables 2 and 3 of the paper on direct optimization: SVMmap, AdaRank
and PermuRank for MAP, beside RankSVM (its sum over pairs) and RankBoost. The protocol, fixed before its result: the
five official folds of LETOR 3.0 (the paper had LETOR 2.0), features as they come, each ranker with its defaults,
alphas and rounds chosen on the validation part by MAP, test parts scored once, all 106 test queries together, by the
conventions of the official LETOR evaluator, both positive grades relevant. Differences in NDCG@1 by the paper's t-test,
with Holm's correction for the ten pairs beside it. The groups of Figure 16 are those of the paper, 1,000 pairs of
documents wide, and the last is open.

Reads the folder that RANKWISE_DATA names; writes docs/direct_on_map.json and docs/figures/reproduction_{accuracies,
label_pairs,gains}.png. ``--redraw`` draws the first from the numbers that are there. About four minutes, most of them
PermuRank's.
"""

import json
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import rankwise as rw
from experiments.pages import DOCS
from experiments.published import DIRECT_TABLES_2_AND_3
from experiments.ranking_errors import WIDTH
from rankwise._figures import COLORS, INK, house_style, new_figure, save_png
from rankwise._files import writing
from rankwise.analysis.mistakes import (
    GroupGains,
    different_pairs,
    gain_by_group,
    label_pair_errors,
    pairs_by_query,
)
from rankwise.evaluation.comparison.selection import Selection, select
from rankwise.evaluation.statistics.intervals import interval
from rankwise.evaluation.statistics.multiple_testing import significance

NUMBERS, FIGURES = DOCS / "direct_on_map.json", DOCS / "figures"
MEASURES = ["AP", "nDCG@1", "nDCG@3", "nDCG@5", "nDCG@10"]
TESTED = "nDCG@1"  # by the paper, and so here
GRADES = {2.0: "definitely", 1.0: "possibly", 0.0: "not"}
PAIRS = "pairs of documents with different labels, in thousands"
LAST_GROUP = 8  # of Figure 16: this many thousand pairs or more


def rankers() -> dict[str, Any]:
    """In the order of the paper's tables."""
    raw: dict[str, Any] = {"scale": "none"}
    found = {
        "SVMMap": rw.SVMMap("AP", **raw),
        "AdaRank": rw.AdaRank("AP", **raw),
        "PermuRank": rw.PermuRank("AP", **raw),
        "RankSVM": rw.RankSVM("AP", per_pair=False, **raw),
        "RankBoost": rw.RankBoost("AP"),
    }
    return {name: found[name] for name in DIRECT_TABLES_2_AND_3}


def collect(found: Selection) -> dict[str, Any]:
    """Means, intervals and the tests in NDCG@1, all folds together."""
    results = found.evaluate(MEASURES, like="letor")
    lines = {
        name: {
            "mean": dict(result.mean),
            "interval": {title: list(ends) for title, ends in result.interval(0.95).items()},
        }
        for name, result in results.items()
    }
    values = {name: {TESTED: result[TESTED]} for name, result in results.items()}
    kept = ("ranker", "baseline", "difference", "p", "p_corrected")
    tested = [{key: line[key] for key in kept} for line in significance(values, test="t")]
    return {"rankers": lines, "tests": tested}


def gains(queries: rw.Queries, scores: dict[str, Any]) -> GroupGains:
    """What the second ranker gains over the first in MAP, by thousands of pairs, from few to many."""
    thousands = different_pairs(queries) // WIDTH
    by = [f"{LAST_GROUP}k or more" if one >= LAST_GROUP else f"{one}k to {one + 1}k" for one in thousands]
    found = gain_by_group(queries, scores, "AP", by=by, like="letor")
    order = np.argsort(found["group"])
    return GroupGains({name: found[name][order] for name in found.columns}, found.title, PAIRS)


def fewer_inverted(queries: rw.Queries, scores: dict[str, Any]) -> dict[str, list[float]]:
    """What the second ranker inverts less the first, in parts of the pairs: labels -> difference, low, high (95%)."""
    labels = [(2.0, 1.0), (2.0, 0.0), (1.0, 0.0)]
    first, second = (pairs_by_query(queries, one, labels) for one in scores.values())
    found = {}
    for (higher, lower), (pairs, before), (_, after) in zip(labels, first, second, strict=True):
        share = np.divide(after - before, pairs, out=np.full(len(pairs), np.nan), where=pairs > 0)
        mean = float((after - before).sum() / pairs.sum())
        found[f"{GRADES[higher]}-{GRADES[lower]}"] = [mean, *interval(share, 0.95, weight=pairs)]
    return found


def draw_accuracies(numbers: dict[str, Any]) -> Any:
    """Figure 8: a group of dots a measure, and where Tables 2 and 3 print a number, a mark for it."""
    lines = numbers["rankers"]
    published: dict[str, Any] = {"color": INK, "markerfacecolor": "none", "markersize": 5, "linestyle": "none"}
    with house_style():
        figure = new_figure(8.0, 3.2)
        axes = figure.subplots()
        for number, ((name, line), color) in enumerate(zip(lines.items(), COLORS, strict=False)):
            at = np.arange(len(MEASURES)) + 0.14 * (number - (len(lines) - 1) / 2)
            mean = np.array([line["mean"][title] for title in MEASURES])
            low, high = np.array([line["interval"][title] for title in MEASURES]).T
            axes.errorbar(at, mean, [mean - low, high - mean], fmt="o", color=color, markersize=5, label=name)
            axes.plot(
                at[[MEASURES.index("AP"), MEASURES.index("nDCG@3")]], DIRECT_TABLES_2_AND_3[name], "D", **published
            )
        axes.plot([], [], "D", label="published", **published)
        axes.set_xticks(range(len(MEASURES)), ["MAP", *(title.replace("nDCG", "NDCG") for title in MEASURES[1:])])
        axes.grid(axis="x", visible=False)
        axes.set_title("OHSUMED, trained for MAP, with 95% intervals")
        axes.legend(loc="upper right", ncols=3)
    return figure


def main(arguments: Sequence[str]) -> int:
    if list(arguments) == ["--redraw"]:
        save_png(
            draw_accuracies(json.loads(NUMBERS.read_text(encoding="utf-8"))), FIGURES / "reproduction_accuracies.png"
        )
        return 0
    data = os.environ.get("RANKWISE_DATA")
    if arguments or not data:
        print("set RANKWISE_DATA to the folder with the set ohsumed; --redraw is the only argument", file=sys.stderr)
        return 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a ranker that learns nothing at some alpha says so
        found = select(rankers(), rw.io.read_folds(Path(data) / "ohsumed"), verbose=True)
    numbers = collect(found)
    boosted = {name: found.scores[name] for name in ("RankBoost", "AdaRank")}
    tables = {
        "label_pairs": label_pair_errors(found.queries, boosted, names=GRADES),
        "gains": gains(found.queries, boosted),
    }
    numbers |= {name: table.to_dict() for name, table in tables.items()}
    numbers["fewer inverted"] = fewer_inverted(found.queries, boosted)
    for name, table in tables.items():
        save_png(table.plot(), FIGURES / f"reproduction_{name}.png")
    save_png(draw_accuracies(numbers), FIGURES / "reproduction_accuracies.png")
    with writing(NUMBERS) as part:
        part.write_text(json.dumps(numbers) + "\n", encoding="utf-8")
    for table in tables.values():
        print(table.title, table, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
