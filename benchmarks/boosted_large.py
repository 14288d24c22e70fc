"""BoostedRanker against LightGBM's own lambdarank, at as many trees: seconds and memory beside X.

Lists of 120 documents, 136 features of float32. The number of documents is 1.2 million, or that in
RANKWISE_BOOSTED_ROWS. Both grow trees of the same size from the same shares of rows and features on all cores.
"""

import os
import subprocess
import sys
import time
from typing import Any

import numpy as np

from benchmarks.clock import row

DOCUMENTS, FEATURES, LONG, TREES = 1_200_000, 136, 120, 100
TREE = {"learning_rate": 0.08, "num_leaves": 15, "min_data_in_leaf": 20, "feature_fraction": 0.5}
ROWS = {"bagging_fraction": 0.8, "bagging_freq": 1}


def data() -> tuple[Any, Any, Any]:
    """Features, labels and sizes of the queries."""
    count = int(os.environ.get("RANKWISE_BOOSTED_ROWS", DOCUMENTS)) // LONG * LONG
    rng = np.random.default_rng(0)
    X = rng.random((count, FEATURES), dtype=np.float32)
    signal = X[:, 0] + X[:, 1] * X[:, 2] - X[:, 3] + 0.3 * rng.normal(size=count)
    return X, np.clip(np.rint(4 * signal - 0.5), 0, 4), np.full(count // LONG, LONG)


def boosted(X: Any, y: Any, sizes: Any) -> None:
    import rankwise as rw

    lists = rw.Queries.from_arrays(X, y, group=sizes)
    rw.BoostedRanker(engine="lightgbm", trees=TREES, patience=None, seeds=1).fit(lists)


def lambdarank(X: Any, y: Any, sizes: Any) -> None:
    import lightgbm

    params = {"objective": "lambdarank", "verbosity": -1, "deterministic": True, "force_col_wise": True, **TREE, **ROWS}
    lightgbm.train(params, lightgbm.Dataset(X, y, group=sizes, params=params), TREES)


def measured(name: str) -> tuple[float, float, float]:
    """(processor seconds, seconds, MiB beside X) of one of the two, in a process of its own."""
    run = f"import benchmarks.boosted_large as bench; bench.alone({name!r})"
    told = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=True)
    cpu, wall, memory = map(float, told.stdout.split()[-3:])
    return cpu, wall, memory


def resident() -> float:
    """MiB that this process holds now; what data() needed in passing is not among them."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def alone(name: str) -> None:
    """Print what a fit takes, after a small one that compiles."""
    import resource

    X, y, sizes = data()
    work = {"boosted": boosted, "lambdarank": lambdarank}[name]
    work(X[: 50 * LONG].copy(), y[: 50 * LONG], sizes[:50])
    before = resident()
    cpu, wall = time.process_time(), time.perf_counter()
    work(X, y, sizes)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before
    print(time.process_time() - cpu, time.perf_counter() - wall, memory)


def run() -> list[dict[str, Any]]:
    ours, theirs = measured("boosted"), measured("lambdarank")
    count = int(os.environ.get("RANKWISE_BOOSTED_ROWS", DOCUMENTS))
    work = f"BoostedRanker, {TREES} trees on {count:,} x {FEATURES} float32"
    half = count * FEATURES * 4 / 2**21
    seconds = row(work, "LightGBM's lambdarank, as many trees", theirs[0], ours[0], "processor seconds", "0.67 x")
    memory = {**row(f"{work}, memory beside X", "half of X", half, ours[2], "binned features shared", "1 x")}
    for whose in ("peer", "rankwise"):
        memory[f"{whose}_mib"] = memory.pop(f"{whose}_seconds")
    return [seconds, memory]


if __name__ == "__main__":
    for line in run():
        print(line)
