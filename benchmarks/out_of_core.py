"""A data set in parts against the same rows in memory: CPU seconds of passes, anonymous memory, and reading it cold.

``python3 run.py python -m benchmarks.out_of_core --rows 20000000 --folder lists/`` writes 20 million rows of 136
features (11 GB), unless the folder is there, and prints the figures; with ``--json``, what docs/out_of_core.json holds.
The cost of a pass per row is compared with that of the first queries of the same data set in memory, measured in the
same run. Whole fits are not compared, because model selection on at most 2,000 queries costs the same for any size.
RssAnon, which Linux counts, is memory that is not backed by a file: mapped features are not in it.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.clock import row

ROWS, FEATURES, IN_MEMORY = 1_000_000, 136, 500_000
MOST_ANONYMOUS = 2_000_000_000


def anonymous() -> int:
    """Bytes of this process that no file backs."""
    with open("/proc/self/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))


class Watched:
    """The time of a block of work, and the largest anonymous memory during it."""

    def __enter__(self) -> "Watched":
        self.peak, self._ended = anonymous(), threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        return self

    def _watch(self) -> None:
        while not self._ended.wait(0.02):
            self.peak = max(self.peak, anonymous())

    def __exit__(self, *error: Any) -> None:
        self.wall, self.cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu
        self._ended.set()
        self._thread.join()


def timed(work: Callable[[], Any]) -> Watched:
    with Watched() as found:
        work()
    return found


def read_cold(folder: Path) -> tuple[float, int]:
    """(seconds, bytes) of reading all files after the system was asked to forget them."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    for path in files:
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)
    began, size = time.perf_counter(), 0
    buffer = bytearray(1 << 22)
    for path in files:
        with open(path, "rb", buffering=0) as file:
            while count := file.readinto(buffer):
                size += count
    return time.perf_counter() - began, size


def measure(folder: Path, in_memory: int = IN_MEMORY) -> dict[str, Any]:
    """All figures of one data set."""
    import rankwise as rw
    from rankwise.losses.compute import LossOverLists
    from rankwise.losses.smooth_ndcg import SmoothNDCG

    parts = rw.Parts(folder)
    some = parts[: int(np.searchsorted(parts.start, min(in_memory, parts.n_documents), side="right")) - 1]
    rw.RidgeCommittee().fit(some[:200].to_queries())  # compiled by now
    LossOverLists.of(SmoothNDCG(k=50), some[:200].to_queries())(np.zeros(parts.n_features))
    cold, size = read_cold(folder)
    fit = timed(lambda: rw.RidgeCommittee().fit(parts))
    lists, w = LossOverLists.of(SmoothNDCG(k=50), parts.as_source()), np.full(parts.n_features, 1e-3)
    first, again = timed(lambda: lists(w)), timed(lambda: lists(w))
    held = parts.executor.kept.bytes  # type: ignore[attr-defined]
    queries = some.to_queries()
    fit_in_memory = timed(lambda: rw.RidgeCommittee().fit(queries))
    inner = LossOverLists.of(SmoothNDCG(k=50), queries)
    inner(w)
    pass_in_memory = timed(lambda: inner(w))
    share = parts.n_documents / queries.n_documents
    return {
        "documents": parts.n_documents,
        "features": parts.n_features,
        "bytes": size,
        "read cold": cold,
        "committee": {"wall": fit.wall, "cpu": fit.cpu, "in memory": fit_in_memory.cpu * share, "peak": fit.peak},
        "pass": {
            "wall": again.wall,
            "cpu": again.cpu,
            "in memory": pass_in_memory.cpu * share,
            "in memory, wall": pass_in_memory.wall * share,
            "first": first.cpu,
            "peak": max(first.peak, again.peak),
            "kept": held,
        },
    }


def table(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The figures as rows of the page of benchmarks."""
    size = f"{found['documents']:,} x {found['features']} float32 in parts"
    committee, one = found["committee"], found["pass"]
    peer, aim = "the same rows in memory", "0.77 x"
    rows = [
        row(f"a pass of SmoothRank over {size}", peer, one["in memory"], one["cpu"], "CPU", aim),
    ]
    peak = max(committee["peak"], one["peak"])
    memory = {
        "work": f"RidgeCommittee and a pass of SmoothRank over {size}",
        "how": "peak of RssAnon",
        "peer": "2 GB",
        "peer_mib": MOST_ANONYMOUS / 2**20,
        "rankwise_mib": peak / 2**20,
        "ratio": MOST_ANONYMOUS / peak,
        "target": "1 x",
    }
    return [*rows, memory]


def run() -> list[dict[str, Any]]:
    """The rows of one million documents, measured in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks.out_of_core", "--rows", str(ROWS), "--folder", f"{folder}/lists"]
        done = subprocess.run([*command, "--json"], check=True, capture_output=True, text=True)
    return table(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=ROWS)
    options.add_argument("--features", type=int, default=FEATURES)
    options.add_argument("--in-memory", type=int, default=IN_MEMORY)
    options.add_argument("--folder", type=Path, required=True)
    options.add_argument("--json", action="store_true")
    given = options.parse_args()
    if not given.folder.exists():
        # in a process of its own, whose memory is not counted here
        sizes = ["--rows", str(given.rows), "--features", str(given.features)]
        command = [sys.executable, "-m", "experiments.large_lists", str(given.folder), *sizes]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    found = measure(given.folder, given.in_memory)
    if given.json:
        print(json.dumps(found))
        return
    gigabytes, one, committee = found["bytes"] / 1e9, found["pass"], found["committee"]
    print(f"{found['documents']:,} documents x {found['features']} features, {gigabytes:.2f} GB")
    print(f"read cold: {found['read cold']:.1f} s, {gigabytes / found['read cold']:.2f} GB/s")
    for name, figures in (("RidgeCommittee", committee), ("a pass of SmoothRank", one)):
        peak = figures["peak"] / 1e6
        print(f"{name}: {figures['wall']:.1f} s, {figures['cpu']:.1f} CPU s, RssAnon at most {peak:,.0f} MB")
    print(f"a pass takes {one['cpu'] / one['in memory']:.2f} times the CPU of the same rows in memory")
    slower = max(found["read cold"], one["in memory, wall"])
    print(f"a pass takes {one['wall'] / slower:.2f} times the larger of reading cold and the wall clock in memory")
    print(f"kept between passes: {one['kept'] / 1e6:,.0f} MB")


if __name__ == "__main__":
    main()
