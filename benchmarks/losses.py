"""Losses inside one compiled loop: against the sort of the labels that they need, and how they grow with the list.

GradedPairs chooses one of two forms; its second derivatives, which boosters take, are timed against those of
every pair. "2 x" for SLAM and the worst pair: at most twice the time of the project's own stable sort of the labels.
Slopes are those of log time against log list length, from 1,000 to 100,000 documents.
"""

import time
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.clock import best_of, row

LISTS, DOCUMENTS = 1_000, 1_000
LENGTHS = (1_000, 10_000, 100_000)
PAIRED = (20, 100, 1_000, 10_000)


def seconds(loss: Any, lists: int, documents: int, times: int = 5) -> float:
    from rankwise.losses.compute import PreparedLists, loss_lists

    rng = np.random.default_rng(0)
    labels = np.clip(rng.geometric(0.5, lists * documents) - 1, 0, 4).astype(float)
    scores = rng.normal(size=len(labels))
    start = np.arange(0, len(labels) + 1, documents)
    prepared = PreparedLists.of(loss, labels, start)
    loss_lists(prepared, scores, n_jobs=1)  # compiled
    return best_of(times, lambda: loss_lists(prepared, scores, n_jobs=1))


def sort_seconds() -> float:
    """The project's own stable sort of the labels, in the same kind of loop."""
    from rankwise._kernels.machine.jit import kernel
    from rankwise._kernels.sorting import sort_carrying

    @kernel(cache=False)
    def sort_all(labels: Any, documents: int) -> int:
        last = 0
        key_buffer, places = np.empty(documents), np.empty(documents, np.int64)
        counts = np.empty(documents + 1, np.int64)
        for first in range(0, len(labels), documents):
            key, place = labels[first : first + documents].copy(), np.arange(documents)
            sort_carrying(key, place, key_buffer, places, counts)
            last += place[0]
        return last

    rng = np.random.default_rng(0)
    labels = np.clip(rng.geometric(0.5, LISTS * DOCUMENTS) - 1, 0, 4).astype(float)
    sort_all(labels[:DOCUMENTS], DOCUMENTS)
    return best_of(5, lambda: sort_all(labels, DOCUMENTS))


def derivative_seconds(documents: int) -> tuple[float, float]:
    """Seconds a document of GradedPairs in lists of this length: every pair, and the form that it chooses."""
    from rankwise.losses import GradedPairs
    from rankwise.losses.compute import PreparedLists, curvature_lists

    rng = np.random.default_rng(0)
    lists = max(40_000 // documents, 1)
    labels = np.clip(rng.geometric(0.5, lists * documents) - 1, 0, 4).astype(float)
    scores = rng.normal(size=len(labels))
    chosen = PreparedLists.of(GradedPairs(), labels, np.arange(0, len(labels) + 1, documents))
    pairs = replace(chosen, table=np.zeros(0))  # without nodes
    curvature_lists(chosen, scores, n_jobs=1)  # compiled

    def of(lists: PreparedLists) -> float:
        return best_of(5, lambda: curvature_lists(lists, scores, n_jobs=1), time.process_time) / len(labels)

    return of(pairs), of(chosen)


def forms() -> list[dict[str, Any]]:
    """GradedPairs as it chooses, against every pair."""
    rows = []
    for documents in PAIRED:
        pairs, chosen = derivative_seconds(documents)
        work = f"GradedPairs(), derivatives, a list of {documents:,}"
        how = f"{chosen * 1e9:.0f} ns a document, 1 thread"
        peer = f"every pair, {pairs * 1e9:,.0f} ns a document"
        rows.append(row(work, peer, pairs * documents, chosen * documents, how, "at least 0.8 x"))
    return rows


def run() -> list[dict[str, Any]]:
    from rankwise.losses import SLAM, MaxPair, PairHinge, SVMMapHinge

    rows = []
    sort = sort_seconds()
    for loss in (SLAM(), SLAM(weights="ap_sym"), MaxPair()):
        took = seconds(loss, LISTS, DOCUMENTS)
        work = f"{loss!r}, {LISTS:,} lists of {DOCUMENTS:,}"
        rows.append(row(work, "the stable sort of the labels alone", sort, took, "1 thread", "at least 0.5 x"))
    for loss in (PairHinge(), PairHinge(squared=True), SVMMapHinge()):
        times = [seconds(loss, 200_000 // length, length, 3) / (200_000 // length) for length in LENGTHS]
        slope = float(np.polyfit(np.log(LENGTHS), np.log(times), 1)[0])
        rows.append(
            {
                "work": f"{loss!r}, one list of {LENGTHS[0]:,} to {LENGTHS[-1]:,}",
                "how": f"slope {slope:.2f}",
                "peer": f"the time of {LENGTHS[0]:,} documents, times {LENGTHS[-1] // LENGTHS[0]}",
                "peer_seconds": times[0] * (LENGTHS[-1] / LENGTHS[0]),
                "rankwise_seconds": times[-1],
                "ratio": times[0] * (LENGTHS[-1] / LENGTHS[0]) / times[-1],
                "target": "slope at most 1.25",
            }
        )
    return [*rows, *forms()]


if __name__ == "__main__":
    for line in run():
        print(line)
