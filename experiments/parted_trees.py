"""Symmetric trees on a data set in parts against the same trees in memory: CPU seconds per row, and anonymous memory.

``python3 run.py python -m experiments.parted_trees lists/ --rows 2000000`` writes simulated queries of 136 features
(:mod:`experiments.large_lists`) unless the folder is there, and prints the figures; ``--save`` writes
docs/parted_trees.json. Trees of depth 6 are grown on all queries; what a tree costs is the difference between a fit of
many trees and one of a single tree, divided by the trees between them. In memory the first queries of the same data set
are grown on, in the same run, ``--in-memory`` documents of them. Bins are written by the first fit and reused by the
others. RssAnon, which Linux counts, is memory that is not backed by a file: mapped bins are not in it.
"""

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.out_of_core import anonymous, timed
from rankwise import BoostedRanker, Parts, Queries
from rankwise.rankers.boosting.binned_parts import FOLDER

TARGET = Path(__file__).parents[1] / "docs" / "parted_trees.json"
TREES = 21


def cost(queries: Queries | Parts, trees: int, jobs: int) -> tuple[float, float, float, int]:
    """(CPU seconds a tree, wall seconds a tree, CPU seconds of a fit of one tree, peak of anonymous memory)."""

    def fit(count: int) -> Any:
        return timed(lambda: BoostedRanker(trees=count, patience=None, n_jobs=jobs).fit(queries))

    one, many = fit(1), fit(trees)
    between = trees - 1
    return (many.cpu - one.cpu) / between, (many.wall - one.wall) / between, one.cpu, max(one.peak, many.peak)


def measure(folder: Path, in_memory: int, trees: int, jobs: int) -> dict[str, Any]:
    """All figures of one data set."""
    parts = Parts(folder)
    small = parts[:50].to_queries()
    BoostedRanker(trees=1, patience=None, n_jobs=jobs).fit(small)  # compiled by now
    shutil.rmtree(folder / FOLDER, ignore_errors=True)
    before = anonymous()
    first = timed(lambda: BoostedRanker(trees=1, patience=None, n_jobs=jobs).fit(parts))
    cpu, wall, again, peak = cost(parts, trees, jobs)
    some = parts[: int(np.searchsorted(parts.start, min(in_memory, parts.n_documents), side="right")) - 1]
    queries = some.to_queries()
    cpu_in_memory, wall_in_memory, _, _ = cost(queries, trees, jobs)
    share = parts.n_documents / queries.n_documents
    return {
        "documents": parts.n_documents,
        "features": parts.n_features,
        "in memory": queries.n_documents,
        "jobs": jobs,
        "trees": trees,
        "tree": {
            "cpu": cpu,
            "wall": wall,
            "in memory": cpu_in_memory * share,
            "in memory, wall": wall_in_memory * share,
        },
        "first fit": {"cpu": first.cpu, "wall": first.wall, "reused": again},
        "anonymous": {"before": before, "peak": max(first.peak, peak)},
    }


def sentence(found: dict[str, Any]) -> str:
    """The figures in a sentence."""
    tree, first, memory = found["tree"], found["first fit"], found["anonymous"]
    return (
        f"On {found['documents']:,} documents of {found['features']} features, a tree of depth 6 took "
        f"{tree['cpu']:.2f} CPU seconds, {tree['cpu'] / tree['in memory']:.2f} times the cost of the same rows in "
        f"memory, and anonymous memory was at most {memory['peak'] / 1e6:,.0f} MB. The first fit, which writes the "
        f"bins, took {first['cpu'] - first['reused']:.0f} CPU seconds more than a second one "
        f"(`python3 run.py python -m experiments.parted_trees FOLDER --rows {found['documents']} "
        f"--trees {found['trees']}`)."
    )


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path)
    options.add_argument("--rows", type=int, default=2_000_000)
    options.add_argument("--features", type=int, default=136)
    options.add_argument("--in-memory", type=int, default=2_000_000)
    options.add_argument("--trees", type=int, default=TREES)
    options.add_argument("--jobs", type=int, default=1)
    options.add_argument("--save", action="store_true")
    given = options.parse_args()
    if not given.folder.exists():
        # in a process of its own, whose memory is not counted here
        sizes = ["--rows", str(given.rows), "--features", str(given.features)]
        command = [sys.executable, "-m", "experiments.large_lists", str(given.folder), *sizes]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    figures = measure(given.folder, given.in_memory, given.trees, given.jobs)
    print(json.dumps(figures, indent=1))
    print(sentence(figures))
    if given.save:
        TARGET.write_text(json.dumps(figures, indent=1) + "\n")
