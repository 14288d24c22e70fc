"""How the cost of learning on parts grows with documents, features and workers, and what a billion documents take.

``python3 run.py python -m experiments.growth FOLDER`` writes data sets of 10^5 to ``--most`` documents into the folder,
measures CPU seconds of one pass of SmoothRank's objective, of one pass of the moments of RidgeCommittee and of a
tree of depth 6, and the anonymous memory beside them; with 10 to 1,000 features, and with 1, 2 and 4 processes on the
largest data set. It writes docs/growth.json, from which ``--draw`` draws docs/figures/growth.png and ``python3 run.py
docs --write`` makes the tables of docs/scale.md. ``--workers FOLDER`` measures the processes alone, and keeps the
rest: their seconds are wall-clock time, which takes a quiet machine.
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

from experiments.pages import markdown_table
from experiments.parted_trees import cost, sentence

DOCS = Path(__file__).parents[1] / "docs"
FEATURES = (10, 46, 136, 300, 1000)
WORKERS = (1, 2, 4)
# Documents of the sets whose features or workers vary.
VARIED = 200_000
BILLION = 1_000_000_000
# Trees are timed on this many rows in all: a tree on a few rows takes too little time to be measured alone.
TREE_ROWS = 40_000_000
# What trees keep of a row between passes.
BYTES_OF_A_ROW = 45
# At most so many ranges of documents answer a pass over trees, with sums of 16 bytes for 32 leaves of a tree.
MOST_RANGES, SUMS_OF_A_TREE = 64, 32
# A tree of depth 6 asks a pass for the largest derivatives, one per level, and one for the leaves.
PASSES_OF_A_TREE = 8


def measured(folder: Path, workers: int | None = None) -> dict[str, float]:
    """CPU seconds, seconds and anonymous bytes of passes over one data set."""
    from benchmarks.out_of_core import anonymous, timed
    from rankwise import BoostedRanker, Parts
    from rankwise.losses.compute import LossOverLists
    from rankwise.losses.smooth_ndcg import SmoothNDCG
    from rankwise.rankers.linear.committee import committee_targets
    from rankwise.rankers.linear.ridge import ProblemsJob, RegressionTerms

    parts = Parts(folder)
    if workers is not None:
        parts = parts.on("processes", workers)
    queries = parts.as_source()
    lists, w = LossOverLists.of(SmoothNDCG(k=50), queries), np.full(parts.n_features, 1e-3)
    lists(w)  # compiled, prepared and read
    passes = [timed(lambda: lists(w)) for _ in range(3)]
    job = ProblemsJob(True, RegressionTerms(committee_targets), np.zeros(len(queries), np.int64), 1)
    queries.total(job)
    moments = timed(lambda: queries.total(job))
    held = anonymous()
    trees = max(5, min(51, 1 + TREE_ROWS // parts.n_documents))
    BoostedRanker(trees=1, patience=None, n_jobs=1).fit(parts)  # compiled, and bins are written
    tree, tree_wall, _, peak = cost(parts, trees, 1)
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
        "tree": tree,
        "tree wall": tree_wall,
        "anonymous": held,
        "anonymous, trees": peak,
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
    return found | measure_workers(also or written(folder, documents[-1], 136))


def measure_workers(folder: Path) -> dict[str, Any]:
    """The figures of one data set by the number of processes."""
    return {"workers": [in_a_process(folder, count) for count in WORKERS]}


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
        "bins": BILLION * 136,
        "core hours, tree": last["tree"] * share / 3600,
        "rows kept": BILLION * BYTES_OF_A_ROW,
        "results, tree": MOST_RANGES * SUMS_OF_A_TREE * 136 * 64 * 16,
    }


def draw(found: dict[str, Any]) -> None:
    """The figure of docs/scale.md."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from rankwise._figures import COLORS

    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(10.5, 3.2), layout="constrained")
    rows = [one["documents"] for one in found["documents"]]
    left.loglog(rows, [one["pass"] for one in found["documents"]], "o-", color=COLORS[0], label="pass of SmoothRank")
    left.loglog(rows, [one["moments"] for one in found["documents"]], "s-", color=COLORS[1], label="moments")
    left.set(xlabel="documents, 136 features", ylabel="CPU seconds")
    left.loglog(rows, [one["tree"] for one in found["documents"]], "^-", color=COLORS[3], label="tree of depth 6")
    left.legend()
    width = [one["features"] for one in found["features"]]
    middle.loglog(width, [one["pass"] for one in found["features"]], "o-", color=COLORS[0])
    middle.loglog(width, [one["moments"] for one in found["features"]], "s-", color=COLORS[1])
    middle.loglog(width, [one["tree"] for one in found["features"]], "^-", color=COLORS[3])
    middle.set(xlabel=f"features, {VARIED:,} documents")
    right.semilogx(rows, [one["anonymous"] / 1e6 for one in found["documents"]], "o-", color=COLORS[2], label="passes")
    right.semilogx(
        rows, [one["anonymous, trees"] / 1e6 for one in found["documents"]], "^-", color=COLORS[3], label="trees"
    )
    right.legend(loc="upper left")
    right.set(xlabel="documents, 136 features", ylabel="anonymous memory, MB", ylim=(0, None))
    figure.savefig(DOCS / "figures" / "growth.png", dpi=150)


def blocks(
    found: dict[str, Any], fits: dict[str, Any], converted: dict[str, Any], trees: dict[str, Any]
) -> dict[str, str]:
    """The blocks of docs/scale.md, of this module, benchmarks.out_of_core, convert_parts and parted_trees."""
    grown = [
        [
            *(f"{one['documents']:,}", f"{one['features']:,}", f"{one['bytes'] / 1e9:.2f}", f"{one['pass']:.3f}"),
            f"{one['pass'] / (one['documents'] * one['features']) * 1e9:.2f}",
            *(f"{one['moments']:.2f}", f"{one['anonymous'] / 1e6:,.0f}"),
            *(f"{one['tree']:.3f}", f"{one['anonymous, trees'] / 1e6:,.0f}"),
        ]
        for one in (*found["documents"], *found["features"])
    ]
    titles = [
        "documents",
        "features",
        "GB",
        "pass, CPU s",
        "ns per value",
        "moments, CPU s",
        "MB",
        "tree, CPU s",
        "MB, trees",
    ]
    alone = found["workers"][0]
    workers = [
        [
            *(str(one["workers"]), f"{one['pass wall']:.2f}", f"{alone['pass wall'] / one['pass wall']:.2f}"),
            *(f"{one['tree wall']:.2f}", f"{alone['tree wall'] / one['tree wall']:.2f}", f"{1000 * one['pass']:.0f}"),
        ]
        for one in found["workers"]
    ]
    passed = f"pass over {alone['documents']:,} documents, s"
    most, one, committee = billion(found), fits["pass"], fits["committee"]
    billions = [
        ["read per pass", f"{most['bytes'] / 1e9:,.0f} GB"],
        ["computed per pass of SmoothRank", f"{60 * most['core hours, pass']:.1f} core minutes"],
        ["computed per pass of moments", f"{60 * most['core hours, moments']:.0f} core minutes"],
        ["returned to the client per pass of SmoothRank", f"{most['results, pass'] / 1e6:.0f} MB"],
        ["returned to the client per pass of moments", f"{most['results, moments'] / 1e9:.1f} GB"],
        ["held by the client, for 100 documents per query", f"{most['queries in memory'] / 1e6:,.0f} MB"],
        ["bins of all features, which trees read instead", f"{most['bins'] / 1e9:,.0f} GB"],
        ["passes over the bins per tree of depth 6", str(PASSES_OF_A_TREE)],
        ["computed per tree", f"{60 * most['core hours, tree']:.1f} core minutes"],
        ["returned to the client per tree", f"at most {most['results, tree'] / 1e6:.0f} MB"],
        ["kept by the workers between the passes of trees", f"{most['rows kept'] / 1e9:,.0f} GB"],
    ]
    return {
        "growth": markdown_table(titles, grown),
        "processes": markdown_table(
            ["processes", passed, "times faster", "tree, s", "times faster", "CPU of the client per pass, ms"], workers
        ),
        "billion": markdown_table(["", ""], billions),
        "out of core": (
            f"On {fits['documents']:,} documents of {fits['features']} features ({fits['bytes'] / 1e9:.1f} GB), a fit "
            f"of RidgeCommittee took {committee['cpu']:.0f} CPU seconds and at most {committee['peak'] / 1e6:.0f} MB "
            f"of anonymous memory, and a pass of SmoothRank {one['cpu']:.1f} CPU seconds, "
            f"{one['cpu'] / one['in memory']:.2f} times the cost of the same rows in memory, and at most "
            f"{one['peak'] / 1e6:.0f} MB (`python3 run.py python -m benchmarks.out_of_core`)."
        ),
        "trees in parts": sentence(trees),
        "converted": (
            f"An unsorted CSV of {converted['rows']:,} rows and {converted['columns']} columns "
            f"({converted['source_bytes'] / 1e9:.1f} GB) with interleaved ids of {converted['queries']:,} queries "
            f"becomes parts with at most {converted['peak_anonymous_bytes'] / 1e9:.2f} GB of anonymous memory and "
            f"{converted['cpu_seconds']:.0f} seconds of CPU time; counts, labels and sums equal those of the source "
            f"(`python3 run.py python -m experiments.convert_parts --rows {converted['rows']}`)."
        ),
    }


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path, nargs="?")
    options.add_argument("--most", type=int, default=1_000_000)
    options.add_argument("--also", type=Path, default=None, help="a larger data set that is there already")
    options.add_argument("--workers", type=Path, default=None, help="measure the processes on this data set, no more")
    options.add_argument("--draw", action="store_true")
    options.add_argument("--one", type=int, default=None, help="measure this one data set, with so many processes")
    given = options.parse_args()
    if given.one is not None:
        print(json.dumps(measured(given.folder, given.one or None)))
        sys.exit()
    if given.folder is not None:
        (DOCS / "growth.json").write_text(json.dumps(measure(given.folder, given.most, given.also), indent=1) + "\n")
    results = json.loads((DOCS / "growth.json").read_text())
    if given.workers is not None:
        results |= measure_workers(given.workers)
        (DOCS / "growth.json").write_text(json.dumps(results, indent=1) + "\n")
    draw(results)
