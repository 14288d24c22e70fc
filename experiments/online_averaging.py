"""Last or averaged weights after a run of the perceptrons: ``python3 run.py python -m experiments.online_averaging``.

The five official folds of OHSUMED and MQ2008, one pass over the training part with queries and documents in random
order, default settings for nDCG@10 but for ``averaging``; NDCG@10 on the validation part, mean over the folds, for five
orders. Test parts are not read. And separable streams, the perceptrons' own ground: 200 and 10,000 rounds of queries
with margin 0.02, measured on the 500 queries that follow, for five streams.

Reads the folder that RANKWISE_DATA names; writes docs/online_averaging.json and a table of docs/online.md. A minute.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

import rankwise as rw
from experiments.online import SHUFFLES, shuffle
from experiments.pages import DOCS, markdown_table, write_block
from rankwise._files import writing

PAGE, NUMBERS = DOCS / "online.md", DOCS / "online_averaging.json"
SETS = ("ohsumed", "mq2008")
PERCEPTRONS = ("SLAMPerceptron", "MaxPairPerceptron")
AVERAGES = ("none", "uniform", "suffix")
ROUNDS, FOLLOWING, MARGIN = (200, 10_000), 500, 0.02


def on_folds(folder: Path, name: str, averaging: str) -> list[float]:
    """NDCG@10 on the validation parts, mean over the folds, for each order."""
    folds = list(rw.io.read_folds(folder))
    kind = getattr(rw, name)
    return [
        float(np.mean([kind(averaging=averaging).fit(shuffle(one.train, seed)).score(one.validation) for one in folds]))
        for seed in SHUFFLES
    ]


def on_streams(rounds: int, name: str, averaging: str) -> list[float]:
    """NDCG@10 on the queries that follow so many rounds, for each stream."""
    found = []
    for seed in SHUFFLES:
        stream = rw.synthetic.separable_stream(rounds + FOLLOWING, margin=MARGIN, random_state=seed)
        queries = stream.queries()
        model = getattr(rw, name)(averaging=averaging).fit(queries[:rounds])
        found.append(model.score(queries[rounds:]))
    return found


def table(numbers: dict[str, Any]) -> str:
    """One row per perceptron and origin of the queries."""
    rows = []
    for where, lines in numbers.items():
        for name, by_average in lines.items():
            cells = [f"{np.mean(values):.3f} ± {np.std(values):.3f}" for values in by_average.values()]
            rows.append([where, f"`{name}`", *cells])
    return markdown_table(["queries", "ranker", "last weights", '`"uniform"`', '`"suffix"`'], rows)


def main() -> int:
    data = os.environ.get("RANKWISE_DATA")
    if not data:
        print("set RANKWISE_DATA to the folder with the sets ohsumed and mq2008", file=sys.stderr)
        return 2
    numbers: dict[str, Any] = {}
    for one in SETS:
        numbers[f"{one.upper()}, validation parts"] = {
            name: {kind: [round(value, 6) for value in on_folds(Path(data, one), name, kind)] for kind in AVERAGES}
            for name in PERCEPTRONS
        }
    for rounds in ROUNDS:
        numbers[f"separable, after {rounds:,} rounds"] = {
            name: {kind: [round(value, 6) for value in on_streams(rounds, name, kind)] for kind in AVERAGES}
            for name in PERCEPTRONS
        }
    with writing(NUMBERS) as part:
        part.write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")
    write_block(PAGE, "averaging", table(numbers))
    return 0


if __name__ == "__main__":
    sys.exit(main())
