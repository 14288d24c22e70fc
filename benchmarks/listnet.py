"""ListNet: 1,500 passes over a training part of OHSUMED against RankLib's recorded time, and a whole fit beside it.

A pass is the objective over all lists with its gradient, of which a step of L-BFGS takes about one; or an epoch of
rounds, which measures every list and keeps the account of the run besides. Passes and epochs are timed in blocks, the
fastest of which counts. RankLib, which needs Java, runs 1,500 epochs by default. Without OHSUMED the passes go over
random lists of its size.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.clock import best_of, row

PASSES, BLOCK, EPOCHS = 1_500, 10, 5
# seconds of RankLib's 1,500 epochs on one training part of OHSUMED
RANKLIB = 17.0
LISTS, DOCUMENTS, FEATURES = 63, 150, 45


def training_lists() -> tuple[Any, str]:
    """A training part of OHSUMED, or random lists of its size; and what they are called."""
    from rankwise.io.folds import read_folds
    from rankwise.queries.queries import Queries

    folder = Path(os.environ.get("RANKWISE_DATA") or "nowhere", "ohsumed")
    if folder.is_dir():
        return next(iter(read_folds(folder))).train, "a fold of OHSUMED"
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(LISTS * DOCUMENTS, FEATURES))
    labels = rng.choice(3, len(X), p=(0.7, 0.15, 0.15))
    return Queries.from_arrays(X, labels, group=[DOCUMENTS] * LISTS), "lists as large as a fold of OHSUMED"


def run() -> list[dict[str, Any]]:
    from rankwise.losses.compute import LossOverLists
    from rankwise.losses.listnet import ListNet as ListNetLoss
    from rankwise.rankers.linear.listnet import ListNet

    queries, called = training_lists()
    objective, rng = LossOverLists.of(ListNetLoss(), queries), np.random.default_rng(1)
    points = rng.normal(size=(BLOCK, queries.n_features)) / np.sqrt(queries.n_features)
    rounds = ListNet(epochs=EPOCHS, eta=0.1)
    whole = ListNet(solver="lbfgs", alpha=1e-4)
    objective(points[0])
    rounds.fit(queries)
    whole.fit(queries)  # compiled by now
    in_passes = best_of(200, lambda: [objective(w) for w in points]) * PASSES / BLOCK
    in_rounds = best_of(10, lambda: rounds.fit(queries)) * PASSES / EPOCHS
    peer = f"RankLib's {PASSES:,} epochs, as recorded"
    return [
        row(f"{PASSES:,} passes of ListNet over {called}", peer, RANKLIB, in_passes, "value and gradient", "20 x"),
        row(
            f"{PASSES:,} epochs of ListNet over {called}", peer, RANKLIB, in_rounds, "rounds with their account", "1 x"
        ),
        row(
            f"ListNet on {called}",
            peer,
            RANKLIB,
            best_of(5, lambda: whole.fit(queries)),
            f"L-BFGS to the minimum, {whole.step_} steps",
            "20 x",
        ),
    ]


if __name__ == "__main__":
    for line in run():
        print(line)
