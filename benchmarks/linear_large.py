"""Linear rankers on 1.2 million rows: whole default fits against one pass of X'X in the same run, and their memory.

The pass converts chunks of rows to float64 and adds their products, on one thread of BLAS: the least that a regression
on all rows takes. Both are measured in CPU seconds, which other work on the machine disturbs least. Every fit runs in a
process of its own that has compiled everything before, and its memory is the peak above what the process held.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.clock import row

ROWS, FEATURES, DOCUMENTS, CHUNK = 1_200_000, 136, 120, 1 << 14
SECONDS = 90.0
# The number of passes of X'X that a fit may take.
PASSES = {"RidgeRanker": 4.0, "RidgeCommittee": 10.0}


def synthetic(rows: int) -> Any:
    """Lists of 120 documents with float32 features; labels follow some of them, and one product."""
    from rankwise.queries.queries import Queries

    rng = np.random.default_rng(0)
    X = np.empty((rows, FEATURES), np.float32)
    for first in range(0, rows, 10_000):
        rng.standard_normal(out=X[first : first + 10_000], dtype=np.float32)
    signal = X[:, :10] @ np.linspace(1, 0.1, 10) + X[:, 10] * X[:, 11] + 2 * rng.standard_normal(rows)
    labels = np.searchsorted([1.5, 3.0, 4.5, 6.0], signal)
    return Queries.from_arrays(X, labels, group=[DOCUMENTS] * (rows // DOCUMENTS))


def products(X: Any) -> None:
    """One pass of X'X."""
    from rankwise._kernels.parallel import one_blas_thread

    total = np.zeros((FEATURES, FEATURES))
    with one_blas_thread():
        for first in range(0, len(X), CHUNK):
            block = X[first : first + CHUNK].astype(np.float64)
            total += block.T @ block


def seconds(work: Callable[[], Any]) -> tuple[float, float]:
    """(CPU seconds, seconds) of a call."""
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - cpu, time.perf_counter() - wall


def memory(figure: str) -> int:
    """Linux's own figure of this process, in bytes."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(figure))


def measure(name: str) -> None:
    """Print CPU seconds of the pass, CPU seconds and seconds of the fit, and its peak memory."""
    import rankwise as rw

    kind = getattr(rw, name)
    kind().fit(synthetic(24_000))  # compiles
    queries = synthetic(ROWS)
    one_pass = min(seconds(lambda: products(queries.X))[0] for _ in range(3))
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    held = memory("VmRSS")
    cpu, wall = seconds(lambda: kind().fit(queries))
    print(one_pass, cpu, wall, memory("VmHWM") - held, queries.X.nbytes)


def fits(name: str) -> list[dict[str, Any]]:
    """Time and memory of one default fit."""
    command = [sys.executable, "-c", f"from benchmarks.linear_large import measure; measure({name!r})"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    one_pass, cpu, wall, peak, size = map(float, done.stdout.split())
    work = f"{name}, default fit on {ROWS:,} x {FEATURES} float32 in lists of {DOCUMENTS}"
    if name in PASSES:
        peer, target = "one pass of X'X in float64", f"{1 / PASSES[name]:.2f} x"
        timed = row(work, peer, one_pass, cpu, "CPU seconds, all penalties", target)
    else:
        timed = row(work, "the time allowed", SECONDS, wall, f"two cores, {cpu:.0f} CPU seconds", "1 x")
    used = {
        "work": work,
        "how": "peak memory beside X",
        "peer": "half of X",
        "peer_mib": 0.5 * size / 2**20,
        "rankwise_mib": peak / 2**20,
        "ratio": 0.5 * size / peak,
        "target": "1 x",
    }
    return [timed, used]


def run() -> list[dict[str, Any]]:
    """All rows."""
    return [line for name in (*PASSES, "SmoothRank") for line in fits(name)]


if __name__ == "__main__":
    for line in run():
        print(line)
