"""Online learning: rounds against one product X w over the same rows, and the memory of a long stream.

A round scores a list, compares, and learns on mistakes; ``fit`` also prepares lists for that, measures what was shown,
keeps the account and takes fingerprints. Labels by chance make every round a mistake, labels that follow a hidden
ranker make few. The product is NumPy's: on one thread beside a ``fit`` on one, and on all threads beside a ``fit`` that
has them. Rounds follow one another, so that threads help the product more: all else goes beside the rounds. Memory is
the peak of ``rankwise train --online`` in a process of its own, compiled code loaded from the cache. Single lists are
learned by ``partial_fit``, by prepared rounds and as a stream; their figures are CPU time, as those of the service are.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.clock import row

LISTS, DOCUMENTS, FEATURES = 2_400, 120, 136
ROUNDS, SHORT, LENGTH, WIDTH = 1_000_000, 100_000, 5, 10
SINGLE, SIDE = 1_000, 20


def interleaved(
    times: int, works: list[Callable[[], Any]], clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Seconds of the fastest run of each work, all of them in turn, so that a busy moment hits all alike."""
    fastest = [float("inf")] * len(works)
    for _ in range(times):
        for number, work in enumerate(works):
            begin = clock()
            work()
            fastest[number] = min(fastest[number], clock() - begin)
    return fastest


def single_lists() -> list[dict[str, Any]]:
    """A prepared round beside a call of ``partial_fit``, and beside a list of a stream, in CPU time."""
    from rankwise import OnlineRounds, SLAMPerceptron

    rng = np.random.default_rng(0)
    X, hidden = rng.normal(size=(SINGLE, SIDE, SIDE)), rng.normal(size=SIDE)
    y = np.clip(np.rint(X @ hidden / 2 + rng.normal(size=(SINGLE, SIDE))), 0, 4)
    found: list[Any] = []

    def called() -> None:
        model = SLAMPerceptron()
        for one in zip(X, y, strict=True):
            model.partial_fit(*one)
        found.append(model)

    def prepared() -> None:
        model = SLAMPerceptron()
        with OnlineRounds(model) as rounds:
            for one in zip(X, y, strict=True):
                rounds.learn(*one)
        found.append(model)

    def streamed() -> None:
        found.append(SLAMPerceptron().partial_fit(zip(X, y, strict=True)))

    called_for, prepared_for, streamed_for = interleaved(5, [called, prepared, streamed], time.process_time)
    assert len({model.record_.digest for model in found}) == 1  # the same bits
    work = f"learn from one list of {SIDE} x {SIDE}, CPU"
    how = f"a prepared round (OnlineRounds), {1e6 * prepared_for / SINGLE:.0f} us"
    return [
        row(work, "a call of partial_fit", called_for / SINGLE, prepared_for / SINGLE, how, "5 x"),
        row(work, "a list of a stream", streamed_for / SINGLE, prepared_for / SINGLE, how, "-"),
    ]


def rounds(dtype: str, labels: str, threads: int | None) -> list[dict[str, Any]]:
    """``fit`` of each online ranker beside ``X @ w``, both on so many threads."""
    from threadpoolctl import threadpool_limits

    from rankwise import ListNet, MaxPairPerceptron, Queries, SLAMPerceptron
    from rankwise.solvers.online.config import State
    from rankwise.solvers.online.loop import RoundRunner

    rng = np.random.default_rng(0)
    X = rng.normal(size=(LISTS * DOCUMENTS, FEATURES)).astype(dtype)
    hidden, w = rng.normal(size=(2, FEATURES)).astype(dtype)
    place = (X @ hidden).reshape(LISTS, DOCUMENTS).argsort(axis=1).argsort(axis=1)
    follow = (place * 5 // DOCUMENTS).ravel().astype(float)
    y = follow if labels == "separable" else rng.integers(0, 5, len(X)).astype(float)
    queries = Queries.from_arrays(X, y, group=np.full(LISTS, DOCUMENTS))
    rankers = [SLAMPerceptron(n_jobs=threads), MaxPairPerceptron(n_jobs=threads), ListNet(eta=0.1, n_jobs=threads)]
    for ranker in rankers:  # compiled, and known to have learned
        ranker.fit(queries)
        assert ranker.ledger_.rounds == LISTS
        assert (ranker.ledger_.mistakes == LISTS) == (labels == "random")
    runner = RoundRunner(rankers[0].ledger_.config, queries, State.fresh(FEATURES))
    part = runner.prepare(np.arange(LISTS))
    works: list[Callable[[], Any]] = [
        lambda: X @ w,
        lambda: runner.present(part),
        *(lambda ranker=ranker: ranker.fit(queries) for ranker in rankers),
    ]
    with threadpool_limits(threads):
        product, *learning = interleaved(9, works)
    work = f"{LISTS} rounds, {DOCUMENTS} documents, {FEATURES} features, {dtype}, {labels} labels"
    work += f", {threads or 'all'} thread{'' if threads == 1 else 's'}"
    target = "0.5 x" if dtype == "float64" else "-"
    return [
        row(work, "X @ w", product, seconds, how, target)
        for how, seconds in zip(
            [f"rounds of {rankers[0].name} alone", *(f"{ranker.name}.fit" for ranker in rankers)], learning, strict=True
        )
    ]


def write_stream(path: Path, lists: int) -> None:
    """Short lists with short numbers, 55 bytes a document."""
    rng = np.random.default_rng(0)
    values = rng.integers(0, 10, size=(1_000, LENGTH, WIDTH)).tolist()
    grades = rng.integers(0, 3, size=(1_000, LENGTH)).tolist()
    made = [
        [(grade, " ".join(f"{place}:{v}" for place, v in enumerate(row, 1))) for grade, row in zip(*pair, strict=True)]
        for pair in zip(grades, values, strict=True)
    ]
    with open(path, "w", encoding="ascii") as file:
        for number in range(lists):
            file.write("".join(f"{grade} qid:{number} {tail}\n" for grade, tail in made[number % len(made)]))


# Linux's own figure: getrusage would count what the process was before it became Python.
PEAK = """
import sys
from rankwise.cli import main

sys.argv = ["rankwise", "train", sys.argv[1], "--online", "--out", sys.argv[2], "--json"]
assert main() == 0
with open("/proc/self/status") as lines:
    print(next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")))
"""


def peak(path: Path) -> float:
    """Most memory that training on this file took, in MiB."""
    command = [sys.executable, "-c", PEAK, path, path.with_suffix(".rankwise")]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(done.stdout.splitlines()[-1]) / 2**20


def memory() -> dict[str, Any]:
    """A stream ten times as long takes the same memory."""
    with tempfile.TemporaryDirectory() as folder:
        found = []
        for name, lists in ("warm", 10_000), ("short", SHORT), ("long", ROUNDS):
            path = Path(folder, f"{name}.txt")
            write_stream(path, lists)
            found.append(peak(path))
            path.unlink()
    _, short, long = found
    return {
        "work": f"train --online, {ROUNDS:,} rounds of {LENGTH} documents, {WIDTH} features",
        "how": "peak memory",
        "peer": f"the same with {SHORT:,} rounds",
        "peer_mib": short,
        "rankwise_mib": long,
        "ratio": short / long,
        "target": "0.9 x",
    }


def run() -> list[dict[str, Any]]:
    cases = [(dtype, labels) for dtype in ("float64", "float32") for labels in ("random", "separable")]
    learned = [line for case in cases for threads in (1, None) for line in rounds(*case, threads)]
    return [*learned, *single_lists(), memory()]


if __name__ == "__main__":
    for line in run():
        print(line)
