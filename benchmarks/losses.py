"""Losses inside one compiled loop: against the sort of the labels that they need, and how they grow with the list.

Second derivatives of GradedPairs, which boosters take, are timed against two plain loops over its pairs. "0.5 x" for
SLAM and the worst pair: at most twice the time of the project's own stable sort of the labels. Slopes are those of log
time against log list length, from 1,000 to 100,000 documents.
"""

import time
from functools import partial
from typing import Any

import numpy as np

from benchmarks.clock import best_of, row

LISTS, DOCUMENTS = 1_000, 1_000
LENGTHS = (1_000, 10_000, 100_000)
PAIRED = (10, 20, 60, 120, 1_000, 10_000)


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


def every_pair() -> Any:
    """The derivatives of GradedPairs by their definition: two loops over the documents of a list, a pair at a time."""
    from rankwise._kernels.machine.jit import kernel

    @kernel(cache=False)
    def derivatives(scores: Any, labels: Any, documents: int) -> Any:
        gradient, diagonal = np.zeros(len(scores)), np.zeros(len(scores))
        for first in range(0, len(scores), documents):
            for i in range(first, first + documents):
                for j in range(first, first + documents):
                    if labels[i] > labels[j]:
                        weight = (labels[i] - labels[j]) / documents
                        wrong = 1.0 / (1.0 + np.exp(scores[i] - scores[j]))
                        gradient[i] -= weight * wrong
                        gradient[j] += weight * wrong
                        diagonal[i] += weight * wrong * (1.0 - wrong)
                        diagonal[j] += weight * wrong * (1.0 - wrong)
        return gradient, diagonal

    return derivatives


def forms() -> list[dict[str, Any]]:
    """GradedPairs against its definition: processor time of a list."""
    from rankwise.losses import GradedPairs
    from rankwise.losses.compute import PreparedLists, curvature_lists

    rows, plain, rng = [], every_pair(), np.random.default_rng(0)
    for documents in PAIRED:
        lists = max(40_000 // documents, 1)
        labels = np.clip(rng.geometric(0.5, lists * documents) - 1, 0, 4).astype(float)
        scores = rng.normal(size=len(labels))
        prepared = PreparedLists.of(GradedPairs(), labels, np.arange(0, len(labels) + 1, documents))
        works = partial(plain, scores, labels, documents), partial(curvature_lists, prepared, scores, n_jobs=1)
        for one, other in zip(*(work() for work in works), strict=True):  # compiled
            np.testing.assert_allclose(one, other, atol=1e-4 * np.abs(one).max())
        pairs, chosen = (best_of(5, work, time.process_time) / lists for work in works)
        work = f"GradedPairs(), derivatives, a list of {documents:,}"
        how = f"{chosen / documents * 1e9:.0f} ns a document, 1 thread"
        peer = f"its definition pair by pair, {pairs / documents * 1e9:,.0f} ns a document"
        rows.append(row(work, peer, pairs, chosen, how, "at least 0.8 x"))
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
