"""The first use in a fresh process, in processor seconds, and the speed of the code that packs carry.

Every row of the first part is a process of its own, user and system time, from its start to the end of the first call.
The second call of the same process is subtracted, so that what remains is imports, loading and compiling. With the pack
the user's cache is empty. LightGBM's process reads the same CSV file, trains 100 trees and predicts; its own second
training is subtracted too. ``rankwise train`` runs on one thread: waiting threads of a busy machine cost processor time
that differs from run to run by more than what is measured. Figures of version 0.1.0 are recorded ones, of another
machine; so is that of the AutoRanker that chose one ranker and did not combine several.

The second part times kernels of the pack against kernels that numba optimizes for this very processor.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.clock import row
from wheels import pack as builder

QUERIES = 200
RECORDED = {"evaluate": 15.0, "RidgeRanker": 24.0, "SmoothRank": 60.0, "SLAMPerceptron": 48.0, "rankwise train": 84.0}
CHOSE = 14.28  # AutoRanker.fit before it was a stack; a first fit may take half as much again
TWICE = """
import sys, time
import numpy as np
folder = sys.argv[1]
def first():
{body}
first()
begin = time.process_time()
first()
print(time.process_time() - begin)
"""
EVALUATE = """
    import rankwise as rw
    with np.load(folder + "/lists.npz") as lists:
        rw.evaluate(lists["y"], lists["X"][:, 0], ["nDCG@10", "AP"], group=lists["group"])
"""
READ = """
    import rankwise as rw
    rw.read_letor(folder + "/lists.txt")
"""
FIT = """
    from rankwise.rankers._base import registered
    with np.load(folder + "/lists.npz") as lists:
        registered()["{name}"].examples()[0].fit(lists["X"], lists["y"], group=lists["group"])
"""
TRAIN = """
    import contextlib, io
    from rankwise.cli import main
    sys.argv = ["rankwise", "train", folder + "/lists.csv", "--out", folder + "/model.rankwise", "--set", "n_jobs=1"]
    with contextlib.redirect_stdout(io.StringIO()):
        assert main() == 0
"""
LIGHTGBM = """
    import lightgbm, pandas
    table = pandas.read_csv(folder + "/lists.csv")
    X, sizes = table.drop(columns=["qid", "label"]), table.groupby("qid", sort=False).size()
    lightgbm.LGBMRanker(n_estimators=100, verbose=-1).fit(X, table["label"], group=sizes).predict(X)
"""


def write_data(folder: Path) -> None:
    """The same queries as arrays, LETOR text and CSV."""
    import rankwise as rw

    lists = rw.make_lists(QUERIES, features=10, random_state=0)
    np.savez(folder / "lists.npz", X=lists.X, y=lists.labels(), group=lists.sizes)
    rw.write_letor(lists, folder / "lists.txt")
    rw.io.write_table(lists._replace(docid=None), folder / "lists.csv")


def first_use(body: str, folder: Path, **variables: str) -> float:
    """Processor seconds of a first call in a fresh process, without those of a second call."""
    used = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "RANKWISE_"))}
    command = [sys.executable, "-c", TWICE.format(body=body), str(folder)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, env={**used, **variables}, stdout=subprocess.PIPE, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    whole = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return whole - 2 * float(done.stdout.splitlines()[-1])


def first_uses() -> list[dict[str, Any]]:
    from rankwise._kernels.machine import pack
    from rankwise.rankers._base import registered

    if not isinstance(pack.open_installed(), pack.Pack):
        builder.main([])
    works = {
        "evaluate": (EVALUATE, 3),
        "read_letor": (READ, 3),
        **{name: (FIT.format(name=name), 3 if name == "RidgeRanker" else 6) for name in registered()},
        "rankwise train": (TRAIN, 6),
    }
    rows = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_data(folder)
        peer = first_use(LIGHTGBM, folder)
        for name, (body, most) in works.items():
            work = f"first {name}{'.fit' if name in registered() else ''} on {QUERIES} queries, processor time"
            cache = str(folder / f"cache {name}")
            cold = first_use(body, folder, RANKWISE_CACHE_DIR=cache, RANKWISE_PACK="0")
            warm = first_use(body, folder, RANKWISE_CACHE_DIR=cache, RANKWISE_PACK="0")
            packed = first_use(body, folder, RANKWISE_CACHE_DIR=str(folder / f"empty {name}"))
            compiling = "the same, compiling"
            rows.append(row(work, compiling, cold, packed, "with the pack, empty cache", f"at most {most} s"))
            rows.append(row(work, compiling, cold, warm, "without a pack, warm cache", "-"))
            if name in RECORDED:
                rows.append(row(work, "0.1.0, as recorded", RECORDED[name], cold, "compiling, empty cache", "2 x"))
            if name == "AutoRanker":
                rows.append(row(work, "when it chose, as recorded", CHOSE, cold, "compiling, empty cache", "0.67 x"))
        rows.append(row(work, "LightGBM from CSV to predictions", peer, packed, "with the pack, empty cache", "-"))
    return rows


# ---------------------------------------------------------------------------------------------------- speed of kernels

KERNELS = """
import io, json, sys
if sys.argv[1] == "native":
    from rankwise._kernels.machine import level
    level.level = lambda: None  # before anything else reads it: kernels are optimized for this processor
import numpy as np
import rankwise as rw
from benchmarks.clock import best_of
from rankwise._kernels.machine import compile_log
from rankwise.rankers._base import linear_scores
from rankwise.losses.compute import PreparedLists, loss_lists

rng = np.random.default_rng(0)
labels, scores, start = rng.integers(0, 5, 24_000).astype(float), rng.normal(size=24_000), np.arange(0, 24_001, 120)
smooth = PreparedLists.of(rw.losses.SmoothNDCG(), labels, start)
X, w = rng.normal(size=(24_000, 136)), rng.normal(size=136)
lists = rw.Queries.from_arrays(X, labels, group=np.full(200, 120))
text = "".join(
    f"{int(y)} qid:{i // 120} " + " ".join(f"{j + 1}:{v:.6f}" for j, v in enumerate(x)) + "\\n"
    for i, (y, x) in enumerate(zip(labels[:3000], X[:3000].tolist()))
).encode()
works = {
    "smooth NDCG and gradient, 200 lists of 120": lambda: loss_lists(smooth, scores, n_jobs=1),
    "X w, 24,000 x 136": lambda: linear_scores(X, w, 1),
    "LETOR text, 3,000 x 136": lambda: rw.read_letor(io.BytesIO(text), n_jobs=1),
    "200 rounds of SLAMPerceptron, 120 x 136": lambda: rw.SLAMPerceptron(n_jobs=1).fit(lists),
}
found = {}
for name, work in works.items():
    work()
    found[name] = best_of(30, work)
sources = {one.source for one in compile_log.record}
assert ("pack" in sources) == (sys.argv[1] == "pack"), sources
print(json.dumps(found))
"""


def speeds() -> list[dict[str, Any]]:
    """Kernels of the pack and kernels for this processor, the faster of three processes each."""
    used = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    found: dict[str, list[dict[str, float]]] = {"pack": [], "native": []}
    for _ in range(3):
        for kind, runs in found.items():
            variables = {**used, "RANKWISE_PACK": "1" if kind == "pack" else "0"}
            command = [sys.executable, "-c", KERNELS, kind]
            done = subprocess.run(
                command, env=variables, cwd=builder.ROOT, stdout=subprocess.PIPE, text=True, check=True
            )
            runs.append(json.loads(done.stdout))
    best = {kind: {name: min(run[name] for run in runs) for name in runs[0]} for kind, runs in found.items()}
    return [
        row(name, "code for this processor", best["native"][name], seconds, "code of the pack, 1 thread", "0.95 x")
        for name, seconds in best["pack"].items()
    ]


def run() -> list[dict[str, Any]]:
    return [*first_uses(), *speeds()]


if __name__ == "__main__":
    for line in run():
        print(line)
