"""RankBoost and FRank against the clock, and against their plain definitions on a few lists.

RankLib takes 9.3 s for 300 rounds of RankBoost on a fold of OHSUMED, reading and evaluation included; the figure is
recorded, for it needs Java. Without RANKWISE_DATA a set of the same size stands in for the fold.
"""

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.clock import best_of, row
from benchmarks.smoothrank import synthetic

RANKLIB, ALLOWED = 9.3, 5.0
ROUNDS, FEW = 300, 3


def fold() -> tuple[Any, Any, str]:
    """(train, validation, name) of the first fold of OHSUMED, or of lists of its size."""
    import rankwise as rw

    data = os.environ.get("RANKWISE_DATA")
    folder = Path(data or "", "ohsumed")
    if data and folder.is_dir():
        first = next(iter(rw.io.read_folds(folder)))
        return first.train, first.validation, "an OHSUMED fold"
    print("OHSUMED is replaced by a set of its size: RANKWISE_DATA names no folder with ohsumed in it", file=sys.stderr)
    rng = np.random.default_rng(0)
    X, y = rng.random((12_600, 45)).round(3), rng.choice(3, 12_600, p=[0.7, 0.15, 0.15])
    lists = rw.Queries.from_arrays(X, y, group=[150] * 84)
    return lists[:63], lists[63:], "a set of OHSUMED's size"


def on_fold() -> list[dict[str, Any]]:
    """300 rounds, the train and validation measure after each, and 100 rounds of FRank beside."""
    from rankwise.rankers.boosting.frank import FRank
    from rankwise.rankers.boosting.steps import RankBoost

    train, held, name = fold()
    boosts, franks = RankBoost(rounds=ROUNDS), FRank(rounds=100)
    RankBoost(rounds=2).fit(train, validation=held)  # compiles
    FRank(rounds=2).fit(train, validation=held)
    ours = best_of(5, lambda: boosts.fit(train, validation=held))
    others = best_of(2, lambda: franks.fit(train, validation=held))
    how = "measures of both parts after every round"
    return [
        row(f"RankBoost, {ROUNDS} rounds on {name}", "RankLib (recorded)", RANKLIB, ours, how, "20 x"),
        row(f"FRank, 100 rounds on {name}", "RankBoost, 300 rounds", ours, others, "every pair, every feature", "-"),
    ]


def larger() -> dict[str, Any]:
    """33,000 documents of 136 features."""
    from rankwise.rankers.boosting.steps import RankBoost

    queries = synthetic(33_000)
    RankBoost(rounds=2).fit(queries)
    seconds = best_of(2, lambda: RankBoost(rounds=ROUNDS).fit(queries))
    work = f"RankBoost, {ROUNDS} rounds, 33,000 x 136 float32"
    return row(work, "the time allowed", ALLOWED, seconds, "features on all cores", "1 x")


def against_definitions() -> list[dict[str, Any]]:
    """A few rounds on a few lists, with every pair and every threshold looked at in plain Python."""
    import rankwise as rw
    from rankwise.rankers.boosting.frank import FRank
    from rankwise.rankers.boosting.steps import RankBoost
    from tests.oracles import boosting

    rng = np.random.default_rng(1)
    X, y = rng.integers(0, 40, (100, 5)).astype(float), rng.integers(0, 3, 100)
    queries = rw.Queries.from_arrays(X, y, group=[20] * 5)
    rows = []
    for kind, judge in ((RankBoost, boosting.rankboost_r), (FRank, boosting.frank_sums)):
        pairs = boosting.all_pairs(queries, kind is FRank)
        candidates = boosting.midpoints(queries.X, list(range(100)))
        steps = [tuple(step.values()) for step in kind(rounds=FEW).fit(queries).steps_]

        def plain(judge: Any = judge, pairs: Any = pairs, steps: Any = steps, every: Any = candidates) -> None:
            for number in range(FEW):
                list(judge(queries.X, pairs, boosting.score(queries.X, steps[:number]), every))

        ours = best_of(20, lambda kind=kind: kind(rounds=FEW).fit(queries))
        work = f"{kind.name}, {FEW} rounds on 100 x 5"
        rows.append(
            row(work, "its definition in plain Python", best_of(1, plain), ours, "a few hundred thresholds", "10 x")
        )
    return rows


def run() -> list[dict[str, Any]]:
    return [*on_fold(), larger(), *against_definitions()]


if __name__ == "__main__":
    for line in run():
        print(line)
