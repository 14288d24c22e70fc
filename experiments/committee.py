"""The linear rankers with their defaults on OHSUMED and MQ2008: ``python3 run.py python -m experiments.committee``.

The five official folds, features as they come. Training and validation parts are learned from together, as the rankers
do by default; test parts are scored once, and all test queries pooled. OHSUMED is measured as by the LETOR evaluator;
for MQ2008 queries without a relevant document are left out of NDCG. Differences to ridge regression are tested by
Fisher's randomization over queries. Reads the folder that RANKWISE_DATA names; writes docs/committee_results.json and a
table of docs/direct.md. About a minute on two cores.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import rankwise as rw
from experiments.pages import DOCS, markdown_table, write_block
from rankwise._files import writing
from rankwise.evaluation.comparison.selection import select
from rankwise.evaluation.statistics.multiple_testing import significance

PAGE, RESULTS = DOCS / "direct.md", DOCS / "committee_results.json"
RANKERS = ("RidgeRanker", "RidgeCommittee", "SmoothRank")
CONVENTIONS: dict[str, dict[str, Any]] = {"ohsumed": {"like": "letor"}, "mq2008": {}}


def cpu_seconds(folder: Path) -> dict[str, float]:
    """CPU seconds of one default fit on the first fold, after one that compiles."""
    fold, found = next(iter(rw.io.read_folds(folder))), {}
    for name in RANKERS:
        kind = getattr(rw, name)
        kind().fit(fold.train, validation=fold.validation)
        begin = time.process_time()
        kind().fit(fold.train, validation=fold.validation)
        found[name] = time.process_time() - begin
    return found


def collect(data: Path) -> dict[str, Any]:
    """Means, tests against ridge regression, and CPU seconds, by set."""
    found = {}
    for folder, conventions in CONVENTIONS.items():
        rankers = {name: getattr(rw, name)() for name in RANKERS}
        results = select(rankers, rw.io.read_folds(data / folder), verbose=True).evaluate(
            ["nDCG@10", "AP"], **conventions
        )
        columns = ("difference", "low", "high", "p")
        tests = [
            {"ranker": line["ranker"], "measure": line["measure"], **{name: line[name] for name in columns}}
            for line in significance(results, baseline="RidgeRanker")
        ]
        found[folder] = {
            "mean": {name: dict(result.mean) for name, result in results.items()},
            "tests": tests,
            "cpu_seconds": cpu_seconds(data / folder),
        }
    return found


def table(found: dict[str, Any]) -> str:
    """One row per ranker."""
    rows = []
    for name in RANKERS:
        cells = [f"`{name}`"]
        for one in found.values():
            cells += [f"{one['mean'][name]['nDCG@10']:.4f}", f"{one['mean'][name]['AP']:.4f}"]
        cells += [f"{found['ohsumed']['cpu_seconds'][name]:.2f}"]
        rows.append(cells)
    titles = ["defaults", "OHSUMED NDCG@10", "OHSUMED MAP", "MQ2008 nDCG@10", "MQ2008 MAP", "CPU seconds per fit"]
    return markdown_table(titles, rows)


def main() -> int:
    data = os.environ.get("RANKWISE_DATA")
    if not data:
        print("set RANKWISE_DATA to the folder with the sets ohsumed and mq2008", file=sys.stderr)
        return 2
    found = collect(Path(data))
    with writing(RESULTS) as part:
        part.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    write_block(PAGE, "defaults", table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
