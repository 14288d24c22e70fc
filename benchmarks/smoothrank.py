"""SmoothRank: one evaluation of its objective against two products with X, and a whole experiment against the clock.

The products ``X @ w`` and ``X.T @ g`` in float32 are the least that a gradient over all documents takes with BLAS; the
objective reads X once, sums in float64, and takes the loss as well. Memory is measured in a process of its own that
has compiled everything before.
"""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.clock import best_of, row

ROWS, FEATURES, LONGEST = 720_000, 136, 900
SECONDS = 60.0


def synthetic(rows: int) -> Any:
    """Judged lists of 1 to 900 documents with float32 features, made block by block."""
    from rankwise.queries.queries import Queries

    rng = np.random.default_rng(0)
    sizes = rng.integers(1, LONGEST + 1, 2 * rows // LONGEST + 100)
    ends = np.minimum(np.cumsum(sizes), rows)
    X = np.empty((rows, FEATURES), np.float32)
    for first in range(0, rows, 10_000):
        rng.standard_normal(out=X[first : first + 10_000], dtype=np.float32)
    labels = np.clip(rng.geometric(0.5, rows) - 1, 0, 4)
    sizes = np.diff(ends, prepend=0)
    return Queries.from_arrays(X, labels, group=sizes[sizes > 0])


def objective(queries: Any) -> Any:
    from rankwise.losses.compute import LossOverLists
    from rankwise.losses.smooth_ndcg import SmoothNDCG

    return LossOverLists.of(SmoothNDCG(k=50, sigma=1.0), queries)


def evaluation() -> dict[str, Any]:
    """Value and gradient of nDCG@50 at sigma 1, on as many threads as BLAS has."""
    queries, rng = synthetic(ROWS), np.random.default_rng(1)
    w, g = rng.normal(size=FEATURES) / np.sqrt(FEATURES), rng.normal(size=ROWS).astype(np.float32)
    short, X, smoothed = w.astype(np.float32), queries.X, objective(queries)
    smoothed(w)
    ours = best_of(7, lambda: smoothed(w))
    products = best_of(7, lambda: (X @ short, X.T @ g))
    work = f"smooth nDCG@50 and its gradient, {ROWS:,} x {FEATURES} float32"
    return row(work, "X @ w and X.T @ g by BLAS", products, ours, "one pass over X, all cores", "0.33 x")


# Linux's own figures, the peak counted from the moment when everything is there
PEAK = """
import numpy as np
from benchmarks.smoothrank import FEATURES, ROWS, objective, synthetic

def memory(figure):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(figure))

w = np.ones(FEATURES) / np.sqrt(FEATURES)
objective(synthetic(10_000))(w)
queries = synthetic(ROWS)
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
held = memory("VmRSS")
objective(queries)(w)
print(memory("VmHWM") - held, queries.X.nbytes)
"""


def memory() -> dict[str, Any]:
    """Peak above what the process held: preparing the lists, and one evaluation."""
    done = subprocess.run([sys.executable, "-c", PEAK], check=True, capture_output=True, text=True)
    peak, size = map(int, done.stdout.split())
    return {
        "work": f"smooth nDCG@50 and its gradient, {ROWS:,} x {FEATURES} float32",
        "how": "peak memory beside X",
        "peer": "a fifth of X",
        "peer_mib": 0.2 * size / 2**20,
        "rankwise_mib": peak / 2**20,
        "ratio": 0.2 * size / peak,
        "target": "1 x",
    }


def experiment(folder: Path) -> dict[str, Any]:
    """OHSUMED, five folds, ten alphas chosen on the validation part, thirteen stages each."""
    import rankwise as rw
    from rankwise.rankers.smooth.smoothrank import SmoothRank

    folds = list(rw.io.read_folds(folder))
    SmoothRank(alpha=1.0, protocol="paper", scale="none", steps=1).fit(
        folds[0].train, validation=folds[0].validation
    )  # compiles
    begin = time.perf_counter()
    for fold in folds:
        model = SmoothRank("nDCG@50", protocol="paper", scale="none").fit(fold.train, validation=fold.validation)
        rw.evaluate(fold.test, model.predict(fold.test), ["nDCG@10", "AP"])
    seconds = time.perf_counter() - begin
    work = "SmoothRank on OHSUMED, 5 folds x 10 alphas x 13 stages"
    return row(work, "the time allowed", SECONDS, seconds, "alphas on all cores", "1 x")


def run() -> list[dict[str, Any]]:
    rows = [evaluation(), memory()]
    data = os.environ.get("RANKWISE_DATA")
    folder = Path(data or "", "ohsumed")
    if data and folder.is_dir():
        return [*rows, experiment(folder)]
    print("the OHSUMED experiment is left out: RANKWISE_DATA names no folder with ohsumed in it", file=sys.stderr)
    return rows


if __name__ == "__main__":
    for line in run():
        print(line)
