"""LightGBM's trees beside linear rankers on OHSUMED and MQ2008: ``python3 run.py python -m experiments.trees``.

The protocol, fixed before its result: the five official folds, each ranker by its name with the defaults that
``rankwise compare`` gives it, choices and early stopping on the validation part, test parts scored once, paired
randomization tests against ridge regression with Holm's correction. OHSUMED is measured by the conventions of the LETOR
evaluator, MQ2008 with a query without a relevant document counting 0. Reads the folder that RANKWISE_DATA names; writes
docs/trees_results.json and the table of docs/choose_ranker.md.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import rankwise as rw
from experiments.pages import DOCS, markdown_table, write_block
from rankwise._files import writing
from rankwise.rankers.smooth.smoothrank import RIDGE_ALPHAS

PAGE, RESULTS = DOCS / "choose_ranker.md", DOCS / "trees_results.json"
RANKERS = ("RidgeRanker", "RankSVM", "MaxPairRanker", "StructuredNDCG", "FRank", "SmoothRank", "lightgbm")
SHOWN = ("RidgeRanker", "MaxPairRanker", "FRank", "SmoothRank", "lightgbm")
PUBLISHED: dict[str, Any] = {
    "RidgeRanker": rw.RidgeRanker("nDCG@10", alpha=RIDGE_ALPHAS, intercept="global", refit="train"),
    "SmoothRank": rw.SmoothRank("nDCG@10", protocol="paper"),
}
MEASURES = ("nDCG@10", "AP")
CONVENTIONS: dict[str, dict[str, Any]] = {"ohsumed": {"like": "letor"}, "mq2008": {"empty": "zero"}}


def collect(data: Path) -> dict[str, Any]:
    """Means of all rankers, and the tests against the first one, by set."""
    found = {}
    for folder, conventions in CONVENTIONS.items():
        # ridge regression and SmoothRank as in their papers, see experiments/direct.py
        named = {name: PUBLISHED.get(name, name) for name in RANKERS}
        compared = rw.compare(named, data / folder, list(MEASURES), **conventions)
        tests = {name: {} for name in RANKERS[1:]}
        for line in compared.tests:
            tests[line["ranker"]][line["measure"]] = {
                column: line[column] for column in ("difference", "low", "high", "p", "p_corrected")
            }
        means = {name: {title: float(mean) for title, mean in compared.means[name].items()} for name in RANKERS}
        found[folder] = {"mean": means, "tests": tests}
        print(folder, json.dumps(means, indent=1), flush=True)
    return found


def table(found: dict[str, Any]) -> str:
    """A row for each set and measure; the last cell tests LightGBM against ridge regression."""
    rows = []
    for folder, one in found.items():
        for title in MEASURES:
            name = {"AP": "MAP"}.get(title, "NDCG@10" if folder == "ohsumed" else "nDCG@10")
            test = one["tests"]["lightgbm"][title]
            chance = f"{test['p_corrected']:.2g}"
            means = [f"{one['mean'][ranker][title]:.4f}" for ranker in SHOWN]
            rows.append([f"{folder.upper()} {name}", *means, f"{test['difference']:+.3f} (p = {chance})"])
    shown = ["LightGBM" if ranker == "lightgbm" else ranker for ranker in SHOWN]
    return markdown_table(["", *shown, "LightGBM against ridge"], rows)


def main() -> int:
    data = os.environ.get("RANKWISE_DATA")
    if not data:
        print("set RANKWISE_DATA to the folder with the sets ohsumed and mq2008", file=sys.stderr)
        return 2
    found = collect(Path(data))
    with writing(RESULTS) as part:
        part.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    write_block(PAGE, "trees", table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
