"""Where a bound stops the annealing of SmoothRank: ``python3 run.py python -m experiments.stopping``.

The five official folds of OHSUMED and MQ2008, features as they come, nDCG@50, default settings but for ``stop``. Each
ranker is fitted on the training part, selects alpha by folds over it, and is measured on the validation part by nDCG@10
(standard, queries without a relevant document left out). Test parts are not read. "Queries needed" repeats the stages
of the fits, with their weights and mean losses, as if there had been more queries: the smallest power of 2 for which a
bound is below the largest possible loss, and that for which the last stage has the smallest bound; the median of the
folds.

Reads the folder that RANKWISE_DATA names; writes docs/stopping.json and a table of docs/direct.md. Half a minute.
"""

import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import rankwise as rw
from experiments.pages import DOCS, markdown_table, write_block
from rankwise._files import writing
from rankwise.losses._base import smoothed
from rankwise.measures._base import parse
from rankwise.rankers.smooth.stopping import StageBound

PAGE, NUMBERS = DOCS / "direct.md", DOCS / "stopping.json"
SETS = ("ohsumed", "mq2008")
MEASURE = "nDCG@50"


def needed(model: rw.SmoothRank, train: rw.Queries) -> dict[str, float]:
    """How many queries the bounds would need, by the weights and mean losses of the stages."""
    history = model.history_
    stages = list(zip(history["sigma"], 1 - history["smoothed"], history.coefs, strict=True))
    bound = StageBound.of(smoothed(parse(MEASURE)), [train], len(stages), None)
    found: dict[str, float] = {}
    for power in range(1, 80):
        values = [bound(sigma, risk, coef, 2**power) for sigma, risk, coef in stages]
        if min(values) < 1:
            found.setdefault("below 1", 2.0**power)
        if min(values) < 1 and int(np.argmin(values)) == len(stages) - 1:
            found.setdefault("last stage", 2.0**power)
            break
    return found


def one_set(folder: Path) -> dict[str, Any]:
    """Means over the folds, and the sigmas that were kept."""
    found: dict[str, Any] = {
        "last": [],
        "bound": [],
        "sigma": [],
        "smallest bound": [],
        "below 1": [],
        "last stage": [],
    }
    for fold in rw.io.read_folds(folder):
        for stop in ("last", "bound"):
            model = rw.SmoothRank(MEASURE, stop=stop).fit(fold.train)
            value = rw.evaluate(fold.validation, model.predict(fold.validation), ["nDCG@10"]).mean["nDCG@10"]
            found[stop].append(round(value, 6))
        kept = int((model.history_.coefs == model.coef_).all(axis=1).argmax())
        found["sigma"].append(float(model.history_["sigma"][kept]))
        found["smallest bound"].append(float(model.history_["bound"].min()))
        for name, value in needed(model, fold.train).items():
            found[name].append(value)
    return found


def table(numbers: dict[str, Any]) -> str:
    """One row per set."""
    rows = []
    for name, found in numbers.items():
        kept = ", ".join(f"{sigma:g} in {count}" for sigma, count in Counter(found["sigma"]).items())
        queries = [f"about 10^{np.log10(np.median(found[one])):.0f}" for one in ("below 1", "last stage")]
        means = [f"{np.mean(found[stop]):.4f}" for stop in ("last", "bound")]
        rows.append([name.upper(), *means, f"{kept} folds", f"{min(found['smallest bound']):.2f}", *queries])
    titles = ["set", '`stop="last"`', '`stop="bound"`', "sigma kept", "smallest bound", "queries needed to be below 1"]
    return markdown_table([*titles, "for the last stage"], rows)


def main() -> int:
    data = os.environ.get("RANKWISE_DATA")
    if not data:
        print("set RANKWISE_DATA to the folder with the sets ohsumed and mq2008", file=sys.stderr)
        return 2
    numbers = {name: one_set(Path(data, name)) for name in SETS}
    with writing(NUMBERS) as part:
        part.write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")
    write_block(PAGE, "stopping", table(numbers))
    return 0


if __name__ == "__main__":
    sys.exit(main())
