"""How often the certificate of a chosen ranker fails: ``python3 run.py python -m experiments.coverage_winners``.

K rankers whose true mean is the same are compared, one of them is chosen, and its certificate is checked against the
truth. Three ways: the best on the validation queries, certified by the test queries at the whole delta
(``Comparison.certificate``); the best on the test queries, certified by the same queries at delta / K
(``Comparison.certificates``); and the mistake that these two avoid, the best on the test queries certified by them at
the whole delta. ``--repetitions 1000`` is the number of samples per world, ``--seed 0`` is where all random numbers
come from, and ``--jobs`` the number of processes, which changes no digit. Writes docs/coverage_winners.json.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

import rankwise as rw
from experiments.coverage import in_order
from experiments.coverage_counts import Count, check, read_count, verdict
from experiments.coverage_populations import Mean
from rankwise._files import writing
from rankwise._tables import Table
from rankwise.evaluation.comparison.cells import Cell
from rankwise.evaluation.comparison.comparison import Comparison
from rankwise.evaluation.evaluation import Evaluation
from rankwise.queries.folds import Fold

DELTA = 0.05
REPETITIONS, TOGETHER = 1_000, 50  # samples of a world, and samples in one task
MEASURE = "nDCG@1"
RESULTS = Path(__file__).parents[1] / "docs" / "coverage_winners.json"

VALIDATION, TOGETHER_ALL, MISTAKE = "best on validation, delta", "best on test, delta / K", "best on test, delta"
PROMISED = {VALIDATION: DELTA, TOGETHER_ALL: DELTA, MISTAKE: None}  # nothing is promised for the mistake


class World(NamedTuple):
    """Rankers of equal quality: each ranks each query wrongly with the same probability, whatever the others do.

    Attributes
    ----------
    rankers : K
    queries : test queries, and as many validation queries
    loss : the true mean of 1 - measure of every ranker
    """

    rankers: int
    queries: int
    loss: float

    @property
    def name(self) -> str:
        return f"{self.rankers} rankers, {self.queries} queries, loss {self.loss:g}"


WORLDS = tuple(World(rankers, *rest) for rankers in (9, 50, 300) for rest in ((49, 0.3), (60, 0.5)))


class Task(NamedTuple):
    """Some repetitions of one world."""

    world: World
    first: int
    last: int
    seed: int


def drawn(world: World, random: np.random.Generator) -> rw.Queries:
    """Queries of a relevant and another document; feature k is the score of ranker k."""
    wrong = random.random((world.queries, world.rankers)) < world.loss
    # sizes differ, so that no query repeats another one
    relevant = np.where(wrong, -1.0, 1.0) * (0.5 + random.random(wrong.shape))
    X = np.stack([relevant, np.zeros_like(relevant)], axis=1).reshape(-1, world.rankers)
    return rw.Queries.from_arrays(X, np.tile([1.0, 0.0], world.queries), group=[2] * world.queries)


def compared(world: World, random: np.random.Generator) -> Comparison:
    """What :func:`rankwise.compare` returns for rankers that are one feature each, without the tests of differences."""
    parts = Fold(drawn(world, random), drawn(world, random), drawn(world, random))
    assert parts.validation is not None
    names = [f"ranker {k}" for k in range(world.rankers)]
    cells = tuple(
        Cell(name, 1, parts.test.X[:, k], {}, {}, None, 1, 0.0, None, validation_scores=parts.validation.X[:, k])
        for k, name in enumerate(names)
    )
    about: dict[str, Any] = {
        "conventions": {},
        "rankers": {name: {"kind": "learned"} for name in names},
        "data": {"folds": [{"test": world.queries}]},
    }
    scores = {cell.ranker: cell.scores for cell in cells}
    found = Comparison(parts.test, scores, measured(names, parts.test), Table({}), cells, names[0], 0.95, about, parts)
    vars(found)["validation"] = measured(names, parts.validation)  # what it would compute, once for all rankers
    return found


def measured(names: Sequence[str], queries: rw.Queries) -> dict[str, Evaluation]:
    """What :func:`rankwise.evaluate` says of every feature: 1 where the relevant document has the larger score."""
    first = rw.evaluate(queries, queries.X[:, 0], MEASURE, n_jobs=1)
    values = (queries.X[0::2] > queries.X[1::2]).astype(float)
    return {name: replace(first, values=values[None, :, k], lists=None) for k, name in enumerate(names)}


def alone(comparison: Comparison, name: str) -> Comparison:
    """The comparison without the other rankers."""
    cells = tuple(cell for cell in comparison.cells if cell.ranker == name)
    return replace(comparison, results={name: comparison.results[name]}, cells=cells, baseline=name)


def run_winners(world: World, first: int, last: int, seed: int, delta: float = DELTA) -> dict[str, Count]:
    """Choose and certify again and again; a repetition depends on nothing but its number and the seed."""
    found = {how: Count() for how in PROMISED}
    truth = Mean(world.loss)
    for repetition in range(first, last):
        random = np.random.default_rng([seed, crc32(world.name.encode()), repetition])
        comparison = compared(world, random)
        means = {name: result.mean[MEASURE] for name, result in comparison.results.items()}
        best = max(means, key=means.__getitem__)
        certificates = {
            VALIDATION: comparison.certificate(delta),
            TOGETHER_ALL: comparison.certificates(delta, of=[best])[best],
            # a comparison of one ranker, as if the others had never been there
            MISTAKE: alone(comparison, best).certificates(delta)[best],
        }
        for how, certificate in certificates.items():
            assert certificate.headline is not None
            found[how].add(check(certificate.headline, truth))
    return found


def run_task(task: Task) -> dict[str, Count]:
    return run_winners(*task)


def collect(
    worlds: Sequence[World] = WORLDS, repetitions: int = REPETITIONS, seed: int = 0, jobs: int = 1
) -> dict[str, Any]:
    """All counts, as plain numbers."""
    tasks = [
        Task(world, first, min(first + TOGETHER, repetitions), seed)
        for world in worlds
        for first in range(0, repetitions, TOGETHER)
    ]
    counts = {world: {how: Count() for how in PROMISED} for world in worlds}
    for task, part in zip(tasks, in_order(run_task, tasks, jobs, "samples"), strict=True):
        for how, count in part.items():
            counts[task.world][how].add(count)
    rows = [[*world, how, count.written()] for world, found in counts.items() for how, count in found.items()]
    return {"delta": DELTA, "repetitions": repetitions, "seed": seed, "winners": rows}


def false_ones(numbers: dict[str, Any]) -> list[str]:
    """The promises that failed more often than they may, beyond the binomial interval."""
    found = []
    for how, allowed in PROMISED.items():
        parts = [read_count(count) for *_, name, count in numbers["winners"] if name == how]
        if allowed is not None and verdict(parts, allowed) == "FALSE":
            found.append(how)
    return found


def table(numbers: dict[str, Any]) -> Table:
    """One row per world and way."""
    rows = []
    for rankers, queries, loss, how, written in numbers["winners"]:
        count = read_count(written)
        low, high = count.interval()
        rows.append((rankers, queries, loss, how, count.failed, count.checked, count.rate, low, high))
    names = ("K", "queries", "loss", "certified", "false", "of", "rate", "low 99%", "high 99%")
    return Table.of_rows(names, rows)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="experiments.coverage_winners", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--repetitions", type=int, default=REPETITIONS, help="samples per world")
    parser.add_argument("--seed", type=int, default=0, help="where all random numbers come from")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes; they change no digit")
    given = parser.parse_args(arguments)
    if given.repetitions < 1 or given.jobs < 1 or given.seed < 0:
        parser.error("--repetitions and --jobs are 1 or more, --seed is 0 or more")
    numbers = collect(repetitions=given.repetitions, seed=given.seed, jobs=given.jobs)
    lines = ",\n".join(json.dumps(row) for row in numbers.pop("winners"))
    with writing(RESULTS) as part:
        part.write_text(json.dumps(numbers)[:-1] + f', "winners": [\n{lines}\n]}}\n', encoding="utf-8")
    stored = json.loads(RESULTS.read_text(encoding="utf-8"))
    for line in table(stored).to_markdown().splitlines():
        print(line)
    found = false_ones(stored)
    for name in found:
        print(f"FALSE: {name}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
