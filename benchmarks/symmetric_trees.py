"""The package's symmetric trees against LightGBM, XGBoost and CatBoost: processor seconds of one thread, and memory.

Lists of 120 documents, 136 features of float32 of four kinds (normal, counts, mostly zero, few values), relevance from
saturating effects and products. Labels have a signal: on random ones LightGBM's leaves become tiny, and its trees
cheap. There are 1.2 million documents, or as many as RANKWISE_SYMMETRIC_ROWS says, and a quarter of them where peers
are slow.

Every fit runs in a process of its own, on one thread and after a small one that compiles: bins and 100 trees, ours of
depth 6, LightGBM's of 31 leaves, on all documents and features and as many bins. The default setting grows a tree on
80% of the documents. nDCG@10 is that on 100,000 other documents after these 100 trees, which are too few for all.
Memory is the peak above what the process held before the fit, X and the labels.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.clock import row
from benchmarks.linear_large import memory, seconds

DOCUMENTS, FEATURES, LONG, TREES, TESTED = 1_200_000, 136, 120, 100, 100_000
BINS, RATE = 64, 0.1
# Memory beside X: a byte per value, and this.
BESIDE = 200_000_000

Predict = Callable[[Any], Any]


def data(count: int, seed: int) -> tuple[Any, Any, Any]:
    """Features, labels and sizes of the queries."""
    world, rng = np.random.default_rng(779), np.random.default_rng(seed)
    weight, middle = world.exponential(0.6, 25) * world.choice([-1, 1], 25), world.normal(0, 0.6, 25)
    product, X, y = world.normal(0, 0.5, 12), np.empty((count, FEATURES), np.float32), np.empty(count)
    kind = np.arange(FEATURES) % 4
    for first in range(0, count, 100 * LONG):
        size = min(100 * LONG, count - first)
        common = rng.standard_normal((size, 8), dtype=np.float32)[:, np.arange(FEATURES) % 8]
        Z = 0.5 * common + np.float32(0.75**0.5) * rng.standard_normal((size, FEATURES), dtype=np.float32)
        u = np.tanh(2 * (Z[:, :25] - middle)) @ weight + (Z[:, 20:32] * Z[:, 32:44]) @ product
        y[first : first + size] = u / 3 + 0.6 * rng.standard_normal(size)
        counts, sparse, few = np.round(np.exp(1.2 * Z) * 3), np.maximum(Z - 0.8, 0), np.round(2 * Z)
        X[first : first + size] = np.select([kind == 0, kind == 1, kind == 2], [Z, counts, sparse], few)
    return X, np.searchsorted([0.25, 0.95, 1.7, 2.5], y).astype(float), np.full(count // LONG, LONG)


# ------------------------------------------------------------------------------------------------------------- fits


def symmetric(X: Any, y: Any, sizes: Any) -> Predict:
    return boosted(X, y, sizes, learning_rate=RATE, row_fraction=1.0)


def default(X: Any, y: Any, sizes: Any) -> Predict:
    return boosted(X, y, sizes)


def boosted(X: Any, y: Any, sizes: Any, **parameters: Any) -> Predict:
    import rankwise as rw

    lists = rw.Queries.from_arrays(X, y, group=sizes)
    return rw.BoostedRanker(trees=TREES, patience=None, n_jobs=1, **parameters).fit(lists).predict


def lightgbm(X: Any, y: Any, sizes: Any) -> Predict:
    from lightgbm import Dataset, train

    params = {
        "objective": "lambdarank", "verbosity": -1, "num_threads": 1, "max_bin": BINS - 1, "num_leaves": 31,
        "learning_rate": RATE,
    }  # fmt: skip
    return train(params, Dataset(X, y, group=sizes, params=params), TREES).predict


def xgboost(X: Any, y: Any, sizes: Any) -> Predict:
    from xgboost import XGBRanker

    made = XGBRanker(
        objective="rank:ndcg", tree_method="hist", n_estimators=TREES, max_depth=6, max_bin=BINS, learning_rate=RATE,
        n_jobs=1,
    )  # fmt: skip
    return made.fit(X, y, group=sizes).predict


def catboost(X: Any, y: Any, sizes: Any) -> Predict:
    from catboost import CatBoost, Pool

    params = {
        "loss_function": "YetiRank", "iterations": TREES, "depth": 6, "border_count": BINS - 1, "learning_rate": RATE,
        "thread_count": 1, "verbose": False, "allow_writing_files": False,
    }  # fmt: skip
    pool = Pool(X, y, group_id=np.repeat(np.arange(len(sizes)), sizes))
    return CatBoost(params).fit(pool).predict


FITS = {one.__name__: one for one in (symmetric, default, lightgbm, xgboost, catboost)}


def alone(name: str, count: int) -> None:
    """Print processor seconds and bytes that a fit takes, after a small one, and nDCG@10 of its trees."""
    import rankwise as rw

    X, y, sizes = data(count, 1)
    FITS[name](X[: 50 * LONG].copy(), y[: 50 * LONG], sizes[:50])
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak begins anew
    held, fitted = memory("VmRSS"), []
    cpu, _ = seconds(lambda: fitted.append(FITS[name](X, y, sizes)))
    peak = memory("VmHWM") - held
    test, labels, groups = data(TESTED // LONG * LONG, 2)
    found = rw.evaluate(labels, fitted[0](test), "nDCG@10", group=groups)
    print(cpu, peak, found.mean["nDCG@10"])


def measured(name: str, count: int) -> tuple[float, float, float]:
    """(processor seconds, bytes beside X, nDCG@10) of one of the fits, in a process of its own."""
    run = f"import benchmarks.symmetric_trees as bench; bench.alone({name!r}, {count})"
    told = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=True)
    cpu, peak, quality = map(float, told.stdout.split()[-3:])
    return cpu, peak, quality


def run() -> list[dict[str, Any]]:
    count = int(os.environ.get("RANKWISE_SYMMETRIC_ROWS", DOCUMENTS)) // LONG * LONG
    few, rows = count // 4 // LONG * LONG, []
    ours, usual, theirs = (measured(name, count) for name in ("symmetric", "default", "lightgbm"))
    peer = "LightGBM's lambdarank, 31 leaves"

    def timed(work: str, found: tuple[float, ...], whose: str, other: tuple[float, ...], target: str) -> None:
        how = f"processor seconds of the whole fit; nDCG@10 {found[2]:.3f}, {other[2]:.3f}"
        rows.append(row(work, whose, other[0], found[0], how, target))

    work = f"{TREES} symmetric trees of depth 6 on {count:,} x {FEATURES} float32"
    timed(work, ours, peer, theirs, "2 x")
    timed(f"{work}, defaults", usual, peer, theirs, "-")
    allowed, used = count * FEATURES + BESIDE, max(ours[1], usual[1])
    rows.append(
        {
            "work": f"{work}, memory beside X",
            "how": "peak of the fit",
            "peer": "a byte per value and 200 MB",
            "peer_mib": allowed / 2**20,
            "rankwise_mib": used / 2**20,
            "ratio": allowed / used,
            "target": "1 x",
        }
    )
    work = f"{TREES} symmetric trees of depth 6 on {few:,} x {FEATURES} float32"
    found = measured("symmetric", few)
    for name, whose in (
        ("lightgbm", peer),
        ("xgboost", "XGBoost's rank:ndcg, depth 6"),
        ("catboost", "CatBoost's YetiRank, depth 6"),
    ):
        timed(work, found, whose, measured(name, few), "-")
    return rows


if __name__ == "__main__":
    for line in run():
        print(line)
