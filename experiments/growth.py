"""How the cost of learning on parts grows with documents, features and workers, and what a billion documents would take.

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
    from rankwise.rankers.linear.least_squares import ProblemsOfChunk

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


def measure(folder: Path, most: int) -> dict[str, Any]:
    """All figures."""
    folder.mkdir(parents=True, exist_ok=True)
    documents = [10**power for power in range(5, int(math.log10(most)) + 1)]
    found: dict[str, Any] = {"measured": time.strftime("%Y-%m-%d")}
    found["documents"] = [in_a_process(written(folder, rows, 136)) for rows in documents]
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
        "results, moments": chunks * (1 + 136 + 3) ** 2 * 8,
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


def tables(found: dict[str, Any]) -> str:
    """The tables of docs/scale.md."""
    lines = [
        "| documents | features | GB | pass, CPU s | ns per value | moments, CPU s | RssAnon, MB |",
        "|---" * 7 + "|",
    ]
    for one in (*found["documents"], *found["features"]):
        values = one["documents"] * one["features"]
        lines.append(
            f"| {one['documents']:,} | {one['features']:,} | {one['bytes'] / 1e9:.2f} | {one['pass']:.3f} "
            f"| {one['pass'] / values * 1e9:.2f} | {one['moments']:.2f} | {one['anonymous'] / 1e6:,.0f} |"
        )
    lines += ["", "| 10^9 documents x 136 | |", "|---|---|"]
    lines += [f"| {name} | {value:,.1f} |" for name, value in billion(found).items()]
    return "\n".join(lines)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path, nargs="?")
    options.add_argument("--most", type=int, default=1_000_000)
    options.add_argument("--draw", action="store_true")
    options.add_argument("--one", type=int, default=None, help="measure this one data set, with so many processes")
    given = options.parse_args()
    if given.one is not None:
        print(json.dumps(measured(given.folder, given.one or None)))
        sys.exit()
    if given.folder is not None:
        (DOCS / "growth.json").write_text(json.dumps(measure(given.folder, given.most), indent=1) + "\n")
    results = json.loads((DOCS / "growth.json").read_text())
    draw(results)
    print(tables(results))
