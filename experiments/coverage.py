"""How often guarantees fail: ``python3 run.py python -m experiments.coverage``.

Certificates of every ranker on populations whose true means are known, at delta = 0.1: how often each row and the
headline are wrong, with exact binomial intervals; then worlds in which queries repeat, touch training or choose, and
intervals, confidence sequences and plans. ``--repetitions 12`` is the number of certificates per cell (a ranker, a
population, a number of queries), and 32 times as many samples are drawn for the others; ``--seed 0`` is where all
random numbers come from, and ``--jobs`` the number of processes, which changes no digit. Writes docs/coverage.json,
docs/figures/coverage.png and the tables of docs/coverage.md; ``--redraw`` makes figure and tables from the stored
numbers, and ``--add LossRanker`` counts the cells of a new ranker alone and adds them to the stored ones. About ten
minutes on two cores.
"""

import argparse
import json
import math
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from multiprocessing import get_context
from typing import Any, NamedTuple

from experiments.coverage_cases import CASES, SHORT
from experiments.coverage_certificates import Cell, Found, run_cell, settle_averages
from experiments.coverage_counts import Count, Trial
from experiments.coverage_intervals import TRIALS, run_trial, worst_failures
from experiments.coverage_page import FIGURE, PAGE, RESULTS, draw, false_ones, missed_controls, tables
from experiments.coverage_populations import POPULATIONS
from experiments.pages import write_block
from rankwise._figures import save_png
from rankwise._files import writing
from rankwise._progress import progress

DELTA = 0.1
REPETITIONS, SAMPLES = 12, 32  # certificates per cell, and how many times as many samples of a trial
FEWER = {"choice": 8}  # as many in place of 32 where one sample has up to 50 certificates
SIZES, MANY = (30, 100), 4_000  # queries to learn from, and as many tiny ones for uniform bounds
EXACT = (2, 5, 8, 10)  # coins of samples that are all gone through
TOGETHER = 6  # certificates in one task; a task has 32 times as many samples

ALL_CELLS: tuple[Cell, ...] = (
    *(
        Cell(case, population, n)
        for case in CASES
        for population in POPULATIONS
        if population != "coins"
        for n in SIZES
        if n <= CASES[case].most
    ),
    *(Cell(case, "coins", MANY) for case in SHORT),
)


class Task(NamedTuple):
    """Some repetitions of one cell or trial."""

    what: Cell | Trial
    first: int
    last: int
    seed: int


class Job(NamedTuple):
    """The averages of one cell, to be compared with the best weights of their population."""

    cell: Cell
    found: Found


def split(cells: Sequence[Cell], trials: Sequence[Trial], repetitions: int, seed: int) -> list[Task]:
    """Tasks of about the same length, those of one cell or trial one after the other."""
    found = []
    for what in (*cells, *trials):
        times = FEWER.get(what.part, SAMPLES) if isinstance(what, Trial) else 1
        whole, part = repetitions * times, TOGETHER * times
        found += [Task(what, first, min(first + part, whole), seed) for first in range(0, whole, part)]
    return found


def run_task(task: Task) -> Any:
    """What the repetitions of a task came to."""
    if isinstance(task.what, Trial):
        return run_trial(task.what, task.first, task.last, task.seed, DELTA)
    return run_cell(task.what, task.first, task.last, task.seed, DELTA)


def settle(job: Job) -> dict[str, Count]:
    return settle_averages(job.cell, job.found.averages)


def in_order(function: Any, items: Sequence[Any], jobs: int, what: str) -> Iterator[Any]:
    """``map`` by so many processes, results in the order of the items, with a progress bar."""
    with progress(what, len(items)) as bar:
        if jobs == 1:
            for item in items:
                yield function(item)
                bar.advance(1)
            return
        # fresh interpreters: forked ones would share the parent's threads
        with get_context("spawn").Pool(jobs, initializer=_quiet) as pool:
            for result in pool.imap(function, items):
                yield result
                bar.advance(1)


def _quiet() -> None:
    """Ctrl-C is for the parent, which ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def collect(
    cells: Sequence[Cell] = ALL_CELLS,
    trials: Sequence[Trial] = TRIALS,
    *,
    repetitions: int = REPETITIONS,
    seed: int = 0,
    jobs: int = 1,
    exact: Sequence[int] = EXACT,
) -> dict[str, Any]:
    """All counts, as plain numbers."""
    tasks = split(cells, trials, repetitions, seed)
    answers = zip(tasks, in_order(run_task, tasks, jobs, "repetitions"), strict=True)
    by_cell: list[Job] = []
    counted = []
    certain: set[str] = set()
    unchecked: dict[tuple[str, str, str], str] = {}
    headline_by: dict[str, int] = {}
    for what, parts in groupby(answers, key=lambda answer: answer[0].what):
        if isinstance(what, Trial):
            whole: dict[str, tuple[float, Count]] = {}
            for _, part in parts:
                for name, (allowed, count) in part.items():
                    whole.setdefault(name, (allowed, Count()))[1].add(count)
            for name, (allowed, count) in whole.items():
                promised = None if math.isnan(allowed) else round(allowed, 12)
                counted.append([*what, name, promised, count.written()])
        else:
            found = Found()
            for _, part in parts:
                found.add(part)
            by_cell.append(Job(what, found))
            certain |= found.certain
            unchecked |= found.unchecked
            for name, count in found.headline_by.items():
                headline_by[name] = headline_by.get(name, 0) + count
    settled = in_order(settle, by_cell, jobs, "comparing averages")
    return {
        "delta": DELTA,
        "repetitions": repetitions,
        "seed": seed,
        "cells": [
            {
                "case": job.cell.case,
                "population": job.cell.population,
                "n": job.cell.n,
                "refused": job.found.refused,
                "rows": {label: count.written() for label, count in sorted(job.found.counts.items())},
                "on average": {label: count.written() for label, count in sorted(averaged.items())},
                "averages": {label: average.written() for label, average in sorted(job.found.averages.items())},
            }
            for job, averaged in zip(by_cell, settled, strict=True)
        ],
        "intervals": counted,
        "exact": [[n, worst_failures(n, DELTA)] for n in exact],
        "certain": " | ".join(sorted(certain)),
        "unchecked": [[*row, why] for row, why in sorted(unchecked.items())],
        "headline by": dict(sorted(headline_by.items())),
    }


def save(numbers: dict[str, Any]) -> None:
    """One line per cell and trial."""

    def lines(items: list[Any]) -> str:
        return "[\n" + ",\n".join(json.dumps(item) for item in items) + "\n]"

    parts = [
        f"{json.dumps(name)}: {lines(value) if isinstance(value, list) else json.dumps(value)}"
        for name, value in numbers.items()
    ]
    with writing(RESULTS) as part:
        part.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def with_case(stored: dict[str, Any], case: str, jobs: int = 1, every: Sequence[Cell] = ALL_CELLS) -> dict[str, Any]:
    """The stored counts and those of one more case, with the same seed and as many repetitions."""
    cells = [cell for cell in every if cell.case == case]
    added = collect(cells, (), repetitions=stored["repetitions"], seed=stored["seed"], jobs=jobs, exact=())
    place = {cell: number for number, cell in enumerate(every)}
    by_bound = dict(stored["headline by"])
    for name, count in added["headline by"].items():
        by_bound[name] = by_bound.get(name, 0) + count
    return stored | {
        "cells": sorted(
            stored["cells"] + added["cells"], key=lambda one: place[Cell(one["case"], one["population"], one["n"])]
        ),
        "certain": " | ".join(sorted({*stored["certain"].split(" | "), *filter(None, added["certain"].split(" | "))})),
        "unchecked": sorted(stored["unchecked"] + added["unchecked"]),
        "headline by": dict(sorted(by_bound.items())),
    }


def redraw() -> int:
    """Tables and figure from the stored numbers; 1 if a promise is false, or a control was not found out."""
    numbers = json.loads(RESULTS.read_text(encoding="utf-8"))
    for name, table in tables(numbers).items():
        write_block(PAGE, name, table)
    save_png(draw(numbers), FIGURE)
    found = [f"FALSE: {name}" for name in false_ones(numbers)]
    found += [f"NOT FOUND OUT: {name}" for name in missed_controls(numbers)]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="experiments.coverage", description="How often guarantees fail.")
    parser.add_argument("--repetitions", type=int, default=REPETITIONS, help="certificates per cell")
    parser.add_argument("--seed", type=int, default=0, help="where all random numbers come from")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes; they change no digit")
    parser.add_argument("--redraw", action="store_true", help="only figure and tables, from the stored numbers")
    parser.add_argument("--add", metavar="CASE", help="count one new case, and add it to the stored numbers")
    given = parser.parse_args(arguments)
    if given.repetitions < 1 or given.jobs < 1 or given.seed < 0:
        parser.error("--repetitions and --jobs are 1 or more, --seed is 0 or more")
    if given.redraw:
        return redraw()
    stored = json.loads(RESULTS.read_text(encoding="utf-8")) if given.add else {"cells": []}
    if given.add and (given.add not in CASES or given.add in {one["case"] for one in stored["cells"]}):
        parser.error(f"--add takes a case that has no counts yet: found {given.add!r}")
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):  # processes use the cores already
        os.environ.setdefault(name, "1")
    try:
        if given.add:
            save(with_case(stored, given.add, given.jobs))
        else:
            save(collect(repetitions=given.repetitions, seed=given.seed, jobs=given.jobs))
    except KeyboardInterrupt:
        print("stopped: nothing was written", file=sys.stderr)
        return 130
    return redraw()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
