"""Where rankers err on OHSUMED: ``python3 run.py python -m experiments.ranking_errors [curves] [errors]``.

The analysis of the paper on direct optimization (Figures 11 and 14 to 16) for rankers of this package, over the test
lists of the five official folds, settings chosen on the validation parts. Reads the folder that RANKWISE_DATA names;
writes docs/ranking_errors.json and the figures docs/figures/analysis_*.png.
"""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments import smoothrank
from experiments.pages import DOCS
from rankwise._figures import PlottedTable, save_png
from rankwise._files import writing
from rankwise.analysis.curves import learning_curves
from rankwise.analysis.mistakes import gain_by_group, label_pair_errors, queries_by_size
from rankwise.evaluation.comparison.selection import select
from rankwise.io.folds import read_folds
from rankwise.rankers.online.perceptron import SLAMPerceptron
from rankwise.rankers.smooth.smoothrank import SmoothRank

NUMBERS, FIGURES = DOCS / "ranking_errors.json", DOCS / "figures"
MEASURE = "nDCG@10"
NAMES: dict[float, str] = {2.0: "definitely", 1.0: "possibly", 0.0: "not"}
WIDTH = 1_000  # of the paper's groups of queries, in pairs


def rankers() -> dict[str, Any]:
    """The regression and the ranker of experiments/smoothrank.py, and one that sees every list once."""
    batch = smoothrank.rankers((10,))
    online = SLAMPerceptron(MEASURE, weights="ndcg_003", averaging="uniform")
    return {"RidgeRanker": batch["RidgeRanker"], "SmoothRank": batch["SmoothRank k=10"], "SLAMPerceptron": online}


def curves(folder: Path) -> dict[str, PlottedTable]:
    """SmoothRank along its annealing, first fold, for two cut-offs."""
    fold = next(read_folds(folder))
    models = {f"SmoothRank, k = {k}": SmoothRank(f"nDCG@{k}", scale="none", protocol="paper") for k in (5, 10)}
    fitted = {name: model.fit(fold.train, validation=fold.validation) for name, model in models.items()}
    return {"analysis_learning_curves": learning_curves(fitted, measure="nDCG@k")}


def errors(folder: Path) -> dict[str, PlottedTable]:
    """Errors by labels, sizes of queries and gains by size, over the test lists of all folds."""
    found = select(rankers(), read_folds(folder))
    pair = {name: found.scores[name] for name in ("RidgeRanker", "SmoothRank")}
    return {
        "analysis_label_pairs": label_pair_errors(found.queries, found.scores, names=NAMES),
        "analysis_query_sizes": queries_by_size(found.queries, width=WIDTH),
        "analysis_gains": gain_by_group(found.queries, pair, MEASURE, bins=5),
    }


PARTS = {"curves": curves, "errors": errors}


def main(wanted: Sequence[str]) -> int:
    data = os.environ.get("RANKWISE_DATA")
    if not data or not set(wanted) <= set(PARTS):
        print(
            f"set RANKWISE_DATA to the folder with the set ohsumed, and name parts of {', '.join(PARTS)} or none",
            file=sys.stderr,
        )
        return 2
    kept = json.loads(NUMBERS.read_text(encoding="utf-8")) if NUMBERS.is_file() else {}
    for part in wanted or PARTS:
        for name, table in PARTS[part](Path(data) / "ohsumed").items():
            save_png(table.plot(), FIGURES / f"{name}.png")
            kept[name] = {"title": table.title, **table.to_dict()}
            print(table.title, table, sep="\n")
    with writing(NUMBERS) as part:
        part.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
