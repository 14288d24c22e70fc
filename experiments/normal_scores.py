"""What 255 knots of a normal score lose against full tables: ``python3 run.py python -m experiments.normal_scores``.

RidgeCommittee on ``Scaler("normal")`` as it is, with a knot at every distinct value, and on features as they come: mean
nDCG@10 on the validation parts of the five folds of OHSUMED and MQ2008 (test parts are not read), and on 1,000 new
queries of three draws of ``make_lists`` with 400 training queries. Reads the folder that RANKWISE_DATA names; writes
docs/normal_scores.json. About a minute.
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import rankwise as rw
from experiments.pages import DOCS
from rankwise._files import writing
from rankwise.queries.scaling import Scaler, knots_of

NUMBERS = DOCS / "normal_scores.json"
SETS, DRAWS = ("ohsumed", "mq2008"), 3
Pair = tuple[rw.Queries, rw.Queries]


def full_tables(train: rw.Queries) -> Scaler:
    """The scaler with a knot at every distinct value."""
    scaler = Scaler("normal").fit(train)
    tables = [knots_of(column, most=len(column)) for column in train.X.T]
    scaler.knot_start_ = np.cumsum([0, *(len(knots) for knots, _ in tables)])
    scaler.knots_, scaler.scores_ = (np.concatenate(each) for each in zip(*tables, strict=True))
    return scaler


def value(train: rw.Queries, held: rw.Queries, scaler: Scaler | None) -> float:
    """Mean nDCG@10 of the committee on held-out queries."""
    if scaler is not None:
        train, held = scaler.transform(train), scaler.transform(held)
    return float(rw.RidgeCommittee().fit(train).score(held))


def pairs(folder: Path) -> Iterator[tuple[str, Pair]]:
    """(name, training and held-out queries)."""
    for name in SETS:
        for train, validation, _ in rw.io.read_folds(folder / name):
            yield name, (train, validation)
    for draw in range(DRAWS):
        sets = [
            rw.make_lists(n, documents=(20, 120), features=20, random_state=s)
            for n, s in ((400, draw), (1_000, draw + 100))
        ]
        yield "simulated", (sets[0], sets[1])


def main() -> int:
    found: dict[str, dict[str, list[float]]] = {}
    for name, (train, held) in pairs(Path(os.environ["RANKWISE_DATA"])):
        own = found.setdefault(name, {"knots": [], "tables": [], "raw": []})
        for form, scaler in (("knots", Scaler("normal").fit(train)), ("tables", full_tables(train)), ("raw", None)):
            own[form].append(value(train, held, scaler))
        print(name, {form: round(values[-1], 5) for form, values in own.items()})
    with writing(NUMBERS) as part:
        part.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
