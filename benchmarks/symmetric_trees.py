"""The package's own symmetric trees against LightGBM's lambdarank: processor seconds on one thread.

Lists of 120 documents, 136 features of float32 of four kinds (normal, counts, mostly zero, few values), relevance from
saturating effects and products. The number of documents is 300,000, or that in RANKWISE_SYMMETRIC_ROWS. Both fits find
their bins and grow 100 trees: ours of depth 6, LightGBM's of 31 leaves on as many bins, on 80% of the documents each.
Labels have a signal: on random ones LightGBM's leaves become tiny, and its trees cheap.
"""

import os
import time
from typing import Any

import numpy as np

from benchmarks.clock import best_of, row

DOCUMENTS, FEATURES, LONG, TREES, SCORED = 300_000, 136, 120, 100, 100_000


def data(count: int, seed: int) -> tuple[Any, Any, Any]:
    """Features, labels and sizes of the queries."""
    world, rng = np.random.default_rng(779), np.random.default_rng(seed)
    weight, middle = world.exponential(0.6, 25) * world.choice([-1, 1], 25), world.normal(0, 0.6, 25)
    product, X, y = world.normal(0, 0.5, 12), np.empty((count, FEATURES), np.float32), np.empty(count)
    kind = np.arange(FEATURES) % 4
    for first in range(0, count, 1000 * LONG):
        size = min(1000 * LONG, count - first)
        common = rng.standard_normal((size, 8), dtype=np.float32)[:, np.arange(FEATURES) % 8]
        Z = 0.5 * common + np.float32(0.75**0.5) * rng.standard_normal((size, FEATURES), dtype=np.float32)
        u = np.tanh(2 * (Z[:, :25] - middle)) @ weight + (Z[:, 20:32] * Z[:, 32:44]) @ product
        y[first : first + size] = u / 3 + 0.6 * rng.standard_normal(size)
        counts, sparse, few = np.round(np.exp(1.2 * Z) * 3), np.maximum(Z - 0.8, 0), np.round(2 * Z)
        X[first : first + size] = np.select([kind == 0, kind == 1, kind == 2], [Z, counts, sparse], few)
    return X, np.searchsorted([0.25, 0.95, 1.7, 2.5], y).astype(float), np.full(count // LONG, LONG)


def run() -> list[dict[str, Any]]:
    import lightgbm

    import rankwise as rw

    count = int(os.environ.get("RANKWISE_SYMMETRIC_ROWS", DOCUMENTS)) // LONG * LONG
    X, y, sizes = data(count, 1)
    lists, small = rw.Queries.from_arrays(X, y, group=sizes), rw.Queries.from_arrays(X[:LONG], y[:LONG], group=[LONG])
    model = rw.BoostedRanker(trees=TREES, patience=None, learning_rate=0.1, n_jobs=1)
    params = {
        "objective": "lambdarank", "verbosity": -1, "num_threads": 1, "max_bin": 63, "num_leaves": 31,
        "learning_rate": 0.1, "bagging_fraction": 0.8, "bagging_freq": 1,
    }  # fmt: skip
    boosters = []

    def peer() -> None:
        boosters.append(lightgbm.train(params, lightgbm.Dataset(X, y, group=sizes, params=params), TREES))

    model.fit(small).predict(X[:LONG])  # compiles
    ours, theirs = best_of(1, lambda: model.fit(lists), time.process_time), best_of(1, peer, time.process_time)
    test, labels, groups = data(SCORED // LONG * LONG, 2)
    scores = model.predict(test), boosters[0].predict(test, num_threads=1)
    held = rw.Queries.from_arrays(test, labels, group=groups)
    quality = [rw.evaluate(held, one, "nDCG@10").mean["nDCG@10"] for one in scores]
    score = best_of(3, lambda: model.predict(test), time.process_time)
    their_score = best_of(3, lambda: boosters[0].predict(test, num_threads=1), time.process_time)
    name, whose = f"{TREES} symmetric trees of depth 6 on {count:,} x {FEATURES}", "LightGBM's lambdarank, 31 leaves"
    how = f"processor seconds of the whole fit; nDCG@10 {quality[0]:.4f}, LightGBM {quality[1]:.4f}"
    return [
        row(name, whose, theirs, ours, how, "2 x"),
        row(f"scores of {len(test):,} documents by them", whose, their_score, score, "processor seconds", "5 x"),
    ]


if __name__ == "__main__":
    for line in run():
        print(line)
