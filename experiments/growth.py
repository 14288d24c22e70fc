"""How the cost of learning on parts grows with documents, features and workers, and what a billion documents take.

``python3 run.py python -m experiments.growth FOLDER`` writes data sets of 10^5 to ``--most`` documents into the folder,
measures CPU seconds of one pass of SmoothRank's objective and of one pass of the moments of RidgeCommittee, and the
anonymous memory beside them; with 10 to 1,000 features, and with 1, 2 and 4 processes. It writes docs/growth.json, from
which ``--draw`` draws docs/figures/growth.png and prints the tables of docs/scale.md.
"""

import argparse
import json
import math
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

DOCS = Path(__file__).parents[1] / "docs"
FEATURES = (10, 46, 136, 300, 1000)
WORKERS = (1, 2, 4)
# Documents of the sets whose features or workers vary.
VARIED = 200_000
BILLION = 1_000_000_000


def measured(folder: Path, workers: int | None = None) -> dict[str, float]:
    """CPU seconds, seconds and anonymous bytes of passes over one data set."""
    import rankwise as rw
    from benchmarks.out_of_core import anonymous, timed
    from rankwise.losses.compute import LossOverLists
    from rankwise.losses.smooth_ndcg import SmoothNDCG
    from rankwise.rankers.linear.committee import committee_targets
    from rankwise.rankers.linear.ridge import ProblemsOfChunk

    parts = rw.Parts(folder)
    if workers is not None:
        parts = parts.on("processes", workers)
    queries = parts.chunked()
    lists, w = LossOverLists.of(SmoothNDCG(k=50), queries), np.full(parts.n_features, 1e-3)
    lists(w)  # compiled, prepared and read
    passes = [timed(lambda: lists(w)) for _ in range(3)]
    job = ProblemsOfChunk(True, committee_targets, (1.0, 1.0), None, None, np.zeros(len(queries), np.int64), 1)
    queries.total(job)
    moments = timed(lambda: queries.total(job))
    parts.executor.close()
    return {
        "documents": parts.n_documents,
        "features": parts.n_features,
        "chunks": len(queries.chunks),
        "workers": workers or 0,
        "bytes": parts.bytes,
        "pass": min(one.cpu for one in passes),
        "pass wall": min(one.wall for one in passes),
        "moments": moments.cpu,
        "anonymous": anonymous(),
    }


def in_a_process(folder: Path, workers: int | None = None) -> dict[str, float]:
    """:func:`measured` in a process of its own."""
    command = [sys.executable, "-m", "experiments.growth", str(folder), "--one", str(workers or 0)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def written(folder: Path, rows: int, features: int) -> Path:
    """A data set of this size, written if it is not there."""
    found = folder / f"{rows}x{features}"
    if not found.exists():
        sizes = ["--rows", str(rows), "--features", str(features)]
        command = [sys.executable, "-m", "experiments.large_lists", str(found), *sizes]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return found


def measure(folder: Path, most: int, also: Path | None = None) -> dict[str, Any]:
    """All figures."""
    folder.mkdir(parents=True, exist_ok=True)
    documents = [10**power for power in range(5, int(math.log10(most)) + 1)]
    found: dict[str, Any] = {"measured": time.strftime("%Y-%m-%d")}
    found["documents"] = [in_a_process(written(folder, rows, 136)) for rows in documents]
    if also is not None:
        found["documents"].append(in_a_process(also))
    found["features"] = [in_a_process(written(folder, VARIED, width)) for width in FEATURES]
    found["workers"] = [in_a_process(written(folder, documents[-1], 136), count) for count in WORKERS]
    return found


def billion(found: dict[str, Any]) -> dict[str, float]:
    """What a pass over 10^9 documents of 136 features takes, from the largest data set that was measured."""
    last = found["documents"][-1]
    share = BILLION / last["documents"]
    chunks = BILLION / 65_536
    return {
        "bytes": last["bytes"] * share,
        "core hours, pass": last["pass"] * share / 3600,
        "core hours, moments": last["moments"] * share / 3600,
        "results, pass": chunks * (136 + 1) * 8,
        "results, moments": chunks * (1 + 136 + 3) ** 2 * 8 * 2,
        "queries in memory": BILLION / 100 * 40,
    }


def draw(found: dict[str, Any]) -> None:
    """The figure of docs/scale.md."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from rankwise._figures import COLOURS

    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(10.5, 3.2), layout="constrained")
    rows = [one["documents"] for one in found["documents"]]
    left.loglog(rows, [one["pass"] for one in found["documents"]], "o-", color=COLOURS[0], label="pass of SmoothRank")
    left.loglog(rows, [one["moments"] for one in found["documents"]], "s-", color=COLOURS[1], label="moments")
    left.set(xlabel="documents, 136 features", ylabel="CPU seconds")
    left.legend()
    width = [one["features"] for one in found["features"]]
    middle.loglog(width, [one["pass"] for one in found["features"]], "o-", color=COLOURS[0])
    middle.loglog(width, [one["moments"] for one in found["features"]], "s-", color=COLOURS[1])
    middle.set(xlabel=f"features, {VARIED:,} documents")
    right.semilogx(rows, [one["anonymous"] / 1e6 for one in found["documents"]], "o-", color=COLOURS[2])
    right.set(xlabel="documents, 136 features", ylabel="anonymous memory, MB", ylim=(0, None))
    figure.savefig(DOCS / "figures" / "growth.png", dpi=150)


def rows_of(found: dict[str, Any]) -> list[str]:
    """The rows of the table of documents and features."""
    return [
        f"| {one['documents']:,} | {one['features']:,} | {one['bytes'] / 1e9:.2f} | {one['pass']:.3f} "
        f"| {one['pass'] / (one['documents'] * one['features']) * 1e9:.2f} | {one['moments']:.2f} "
        f"| {one['anonymous'] / 1e6:,.0f} |"
        for one in (*found["documents"], *found["features"])
    ]


def workers_of(found: dict[str, Any]) -> list[str]:
    """The rows of the table of processes."""
    return [f"| {one['workers']} | {one['pass wall']:.2f} | {1000 * one['pass']:.0f} |" for one in found["workers"]]


def billions_of(found: dict[str, Any]) -> list[str]:
    """The rows of the table of a billion documents."""
    most = billion(found)
    return [
        f"| read per pass | {most['bytes'] / 1e9:,.0f} GB |",
        f"| computed per pass of SmoothRank | {60 * most['core hours, pass']:.1f} core minutes |",
        f"| computed per pass of moments | {60 * most['core hours, moments']:.0f} core minutes |",
        f"| returned to the client per pass of SmoothRank | {most['results, pass'] / 1e6:.0f} MB |",
        f"| returned to the client per pass of moments | {most['results, moments'] / 1e9:.1f} GB |",
        f"| held by the client, for 100 documents per query | {most['queries in memory'] / 1e6:,.0f} MB |",
    ]


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path, nargs="?")
    options.add_argument("--most", type=int, default=1_000_000)
    options.add_argument("--also", type=Path, default=None, help="a larger data set that is there already")
    options.add_argument("--draw", action="store_true")
    options.add_argument("--one", type=int, default=None, help="measure this one data set, with so many processes")
    given = options.parse_args()
    if given.one is not None:
        print(json.dumps(measured(given.folder, given.one or None)))
        sys.exit()
    if given.folder is not None:
        (DOCS / "growth.json").write_text(json.dumps(measure(given.folder, given.most, given.also), indent=1) + "\n")
    results = json.loads((DOCS / "growth.json").read_text())
    draw(results)
    print("\n".join([*rows_of(results), *workers_of(results), *billions_of(results)]))
