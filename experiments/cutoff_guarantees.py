"""How often cut-offs fail, and how much they keep: ``python3 run.py python -m experiments.cutoff_guarantees``.

In three worlds 20,000 judged queries stand for the population, so that every mean is an exact sum. A calibration set
is a sample of them; the cut-off that it gives fails if the demand does not hold for the population. Beside it stand the
best cut of the population, and the rule that takes the last cut which the mean of the sample meets. ``--repetitions
1000`` is the number of calibration sets per cell, and ``--seed 0`` where all random numbers come from. Writes
docs/cutoff_guarantees.json, of which the page is made, and its figure. A few minutes on one core.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any
from zlib import crc32

import numpy as np

import rankwise as rw
from experiments.coverage import in_order
from experiments.coverage_counts import Count
from experiments.pages import DOCS, markdown_table
from rankwise._arrays import Numbers, Vector
from rankwise._figures import save_png
from rankwise._files import writing
from rankwise.guarantees.cutoff import standardize
from rankwise.guarantees.holdout.cutting import CutSequence, DrawnQueries, count_shown_cuts
from rankwise.guarantees.holdout.demands import Demand, KeptValues, kept_values

RESULTS, FIGURE = DOCS / "cutoff_guarantees.json", DOCS / "figures" / "cutoff.png"
DELTA, REPETITIONS = 0.05, 1_000
QUERIES, TRAINING = 20_000, 300
SIZES = (100, 300, 1_000)
USUAL = 300
GRID, CUTS = 1_000, 200  # queries whose scores make the grid for precision, and its cuts


# ------------------------------------------------------------------------------------------------------------- worlds


@dataclass(frozen=True)
class Population:
    """Queries that all count the same, with the scores of a ranker."""

    queries: rw.Queries
    scores: Vector


def simulated() -> Population:
    """Ridge regression on simulated lists of 50 documents."""
    lists = rw.make_lists(TRAINING + QUERIES, documents=50, random_state=2)
    model = rw.RidgeRanker(n_jobs=1).fit(lists[:TRAINING])
    return Population(lists[TRAINING:], model.predict(lists[TRAINING:]))


def not_comparable() -> Population:
    """The same, and every query has a scale and an offset of scores of its own."""
    known, random = population("simulated"), np.random.default_rng(1)
    scale, offset = np.exp(random.standard_normal(QUERIES)), 2 * random.standard_normal(QUERIES)
    owner = known.queries.query_of_row
    return Population(known.queries, scale[owner] * known.scores + offset[owner])


def tied_and_empty() -> Population:
    """Lists of 1 to 30 documents with eleven scores, four in ten of them without a relevant document."""
    random = np.random.default_rng(2)
    sizes = random.integers(1, 31, size=QUERIES)
    owner = np.repeat(np.arange(QUERIES), sizes)
    useful = random.standard_normal(len(owner)) + 0.7 * random.standard_normal(QUERIES)[owner]
    labels = np.digitize(useful, [1.2, 2.2]).astype(float)
    labels[(random.random(QUERIES) < 0.3)[owner]] = 0.0
    scores = np.round(np.clip(useful + 0.8 * random.standard_normal(len(owner)), -2.5, 2.5) * 2) / 2
    return Population(rw.Queries.from_arrays(scores[:, None], labels, group=sizes), scores)


WORLDS: dict[str, Callable[[], Population]] = {
    "simulated": simulated,
    "not comparable": not_comparable,
    "tied and empty": tied_and_empty,
}
# The demands, by world: each can be met, and none by everything.
KEEP = {
    "simulated": ("recall(rel=2)>=0.9", "precision>=0.5", "nDCG@10 lost<=0.03"),
    "not comparable": ("recall(rel=2)>=0.9", "precision>=0.5", "nDCG@10 lost<=0.03"),
    "tied and empty": ("recall>=0.9", "precision>=0.25", "nDCG@10 lost<=0.03"),
}


@cache
def population(world: str) -> Population:
    """The population of a world."""
    return WORLDS[world]()


# ------------------------------------------------------------------------------------------------------------- cells


@dataclass(frozen=True)
class Cell:
    """What is repeated: a world, a demand, what is cut by, and the number of calibration queries."""

    world: str
    keep: str
    by: str
    n: int


ALL_CELLS = (
    *(Cell("simulated", "recall(rel=2)>=0.9", "score", n) for n in SIZES),
    *(
        Cell(world, keep, by, USUAL)
        for world in WORLDS
        for keep in KEEP[world]
        for by in ("score", "rank")
        if (world, keep, by) != ("simulated", "recall(rel=2)>=0.9", "score")
    ),
    Cell("not comparable", "recall(rel=2)>=0.9", "standardized", USUAL),
)


class Prepared:
    """A population with the values of a demand for every number of documents kept, in ranked order."""

    def __init__(self, world: str, keep: str, by: str) -> None:
        self.by, whole = by, population(world)
        queries, self.demand = whole.queries, Demand.parse(keep)
        self.values = kept_values(self.demand, queries, whole.scores)
        self.sizes, self.start = queries.sizes, self.values.start
        scores = whole.scores
        if by == "standardized":
            scores = standardize(scores, queries.query_of_row, queries.sizes)
        self.scores = scores[self.values.rows]
        self.grid: Vector | None = None
        if by != "rank" and not self.demand.begins_with_all:  # thousands of cuts take long where none can be skipped
            self.grid = np.quantile(self.scores[: self.start[GRID]], np.linspace(0, 1, CUTS))
        self.curve = MeanCurve(*self.sample(np.arange(QUERIES)))

    def sample(self, which: Numbers) -> tuple[CutSequence, KeptValues]:
        """The cuts and the values of some queries, drawn with repetition."""
        sizes = self.sizes[which]
        start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        query = np.repeat(np.arange(len(which)), sizes)
        rows = self.start[which][query] + np.arange(start[-1]) - np.repeat(start[:-1], sizes)
        within = np.arange(start[-1] + len(which)) - np.repeat(start[:-1] + np.arange(len(which)), sizes + 1)
        values = self.values.values[np.repeat(self.values.first[which], sizes + 1) + within]
        kept, falling = KeptValues(self.demand, start, np.arange(start[-1]), values), self.demand.begins_with_all
        if self.by == "rank":
            return CutSequence.of_ranks(sizes, falling=falling), kept
        return CutSequence.of(self.scores[rows], query, sizes, falling=falling, grid=self.grid), kept


class MeanCurve:
    """The mean of a demand and the documents kept along the cuts, for queries in ranked order."""

    def __init__(self, sequence: CutSequence, values: KeptValues) -> None:
        self.sequence, self.demand = sequence, values.demand
        steps = len(sequence.cuts) + 1
        place = np.arange(len(sequence.query)) + sequence.query
        # of one document, the last of those that are kept
        own = np.nan_to_num(values.values[place + 1]) - np.nan_to_num(values.values[place])
        begin = values.at(sequence.kept(-1))
        move, count = (-1 if sequence.falling else 1), int((~np.isnan(begin)).sum())
        gained = np.bincount(sequence.turn, own, steps)[:-1]
        turned = np.bincount(sequence.turn, minlength=steps)[:-1]
        self.means = (np.nansum(begin) + np.concatenate([[0.0], move * np.cumsum(gained)])) / count
        kept = sequence.kept(-1).sum() + np.concatenate([[0], move * np.cumsum(turned)])
        self.shares = kept / len(sequence.query)

    @property
    def last_met(self) -> int:
        """The last step before the first whose mean does not meet the demand; -1 is the beginning."""
        return int(np.argmax(np.append(self.means[1:], -1.0) < self.demand.goal - 1e-12)) - 1

    def at(self, cut: float) -> tuple[float, float]:
        """The mean and the share of the documents kept at any cut."""
        along = self.sequence.cuts
        rising = bool(along[0] <= along[-1])
        passed = np.searchsorted(along if rising else -along, cut if rising else -cut, side="right")
        return float(self.means[passed]), float(self.shares[passed])


def run_cell(cell: Cell, repetitions: int, seed: int) -> dict[str, Any]:
    """How often the cut-off, and the rule of the sample mean, fail in a cell, and what they keep."""
    prepared = Prepared(cell.world, cell.keep, cell.by)
    demand, whole = prepared.demand, prepared.curve
    found: dict[str, Any] = {"failed": 0, "kept": [], "vacuous": 0, "naive failed": 0, "naive kept": []}
    key = crc32(f"{cell.world} {cell.keep} {cell.by} {cell.n}".encode())
    for repetition in range(repetitions):
        random = np.random.default_rng([seed, key, repetition])
        sequence, values = prepared.sample(random.integers(0, QUERIES, size=cell.n))
        shown = count_shown_cuts(sequence, values, DrawnQueries(np.ones(cell.n, bool)), DELTA)
        found["vacuous"] += not shown
        naive = MeanCurve(sequence, values).last_met
        for rule, step in {"": shown - 2, "naive ": naive}.items():
            mean, kept = whole.at(sequence.cut_at(step) if step >= -1 else sequence.beginning)
            found[f"{rule}failed"] += mean < demand.goal - 1e-12
            found[f"{rule}kept"].append(kept)
    return {
        **vars(cell),
        "repetitions": repetitions,
        "failed": int(found["failed"]),
        "vacuous": int(found["vacuous"]),
        "kept": float(np.mean(found["kept"])),
        "kept low and high": [float(one) for one in np.quantile(found["kept"], [0.05, 0.95])],
        "best": float(whole.shares[whole.last_met + 1]),
        "naive failed": int(found["naive failed"]),
        "naive kept": float(np.mean(found["naive kept"])),
    }


COPIES, DISTINCT, COPIED = 10, 40, 400  # how often each query is in the set, how many there are, and the most sets


def run_copied(repetitions: int, seed: int) -> dict[str, Any]:
    """Calibration sets that hold every query ten times, by rank: as the cut-off takes them, and as draws."""
    prepared = Prepared("simulated", "recall(rel=2)>=0.9", "rank")
    counts, group = np.ones(COPIES * DISTINCT, bool), np.repeat(np.arange(DISTINCT), COPIES)
    known = {"failed": DrawnQueries(counts, group, np.zeros(len(counts), bool)), "control failed": DrawnQueries(counts)}
    found = dict.fromkeys(known, 0)
    for repetition in range(repetitions):
        random = np.random.default_rng([seed, crc32(b"copies"), repetition])
        sequence, values = prepared.sample(np.repeat(random.integers(0, QUERIES, size=DISTINCT), COPIES))
        for name, drawn in known.items():
            shown = count_shown_cuts(sequence, values, drawn, DELTA)
            cut = sequence.cut_at(shown - 2) if shown else sequence.beginning
            found[name] += prepared.curve.at(cut)[0] < prepared.demand.goal - 1e-12
    return {"repetitions": repetitions} | {name: int(count) for name, count in found.items()}


# ------------------------------------------------------------------------------------------------------------- the page


def interval(failed: int, repetitions: int) -> str:
    """A rate with its exact 99% interval, in percent."""
    low, high = Count.of(checked=repetitions, failed=failed).interval()
    return f"{100 * failed / repetitions:.1f} ({100 * low:.1f} to {100 * high:.1f})"


def false_ones(numbers: dict[str, Any]) -> list[str]:
    """The cells that fail beyond the binomial interval."""
    found = []
    for one in numbers["cells"]:
        low, _ = Count.of(checked=one["repetitions"], failed=one["failed"]).interval()
        if low > numbers["delta"]:
            found.append(f"{one['world']}, {one['keep']}, by {one['by']}, n = {one['n']}")
    return found


def table(numbers: dict[str, Any]) -> str:
    """All cells."""
    rows = [
        [
            one["world"],
            f"`{one['keep']}`",
            one["by"],
            f"{one['n']:,}",
            interval(one["failed"], one["repetitions"]),
            f"{100 * one['kept']:.1f}",
            f"{100 * one['best']:.1f}",
            f"{100 * one['naive failed'] / one['repetitions']:.1f}",
            f"{100 * one['naive kept']:.1f}",
        ]
        for one in numbers["cells"]
    ]
    head = ("world", "keep", "by", "queries", "fails, %", "keeps, %", "best cut, %", "mean rule fails, %", "keeps, %")
    return markdown_table(head, rows)


def coverage_table(numbers: dict[str, Any]) -> str:
    """The worlds as the page on coverage has them, with the rule of the sample mean as the control."""
    rows, allowed = [], f"{100 * numbers['delta']:g}%"
    for world in WORLDS:
        cells = [one for one in numbers["cells"] if one["world"] == world]
        checked = sum(one["repetitions"] for one in cells)
        for what, name in (("cut-offs", "failed"), ("control: last cut that the sample mean meets", "naive failed")):
            rows.append((world, what, checked, sum(one[name] for one in cells), max(one[name] for one in cells)))
    copied = numbers["copied"]
    for what, name in (("cut-offs", "failed"), ("control: every copy taken for a draw", "control failed")):
        rows.append((f"queries given {COPIES} times", what, copied["repetitions"], copied[name], copied[name]))
    body = []
    for world, what, checked, failed, worst in rows:
        low, _ = Count.of(checked=checked, failed=failed).interval()
        wrong = low > numbers["delta"]
        verdict = ("found out" if wrong else "NOT FOUND OUT") if "control" in what else ("FALSE" if wrong else "kept")
        rate = f"{interval(failed, checked)}"
        body.append([world, what, f"{checked:,}", f"{failed:,}", rate, f"{worst:,}", allowed, verdict])
    head = ("world", "what", "checked", "failed", "rate, 99% interval, %", "worst cell", "may fail", "verdict")
    return markdown_table(head, body)


def collect(repetitions: int, seed: int, jobs: int = 1, cells: Sequence[Cell] = ALL_CELLS) -> dict[str, Any]:
    """All cells, as plain numbers."""
    found = list(in_order(partial(run_cell, repetitions=repetitions, seed=seed), cells, jobs, "cells"))
    return {"delta": DELTA, "seed": seed, "population": QUERIES, "cells": found}


def example() -> rw.guarantees.Cutoff:
    """The cut-off of the page."""
    lists = rw.make_lists(700, documents=50, random_state=1)
    return rw.cutoff(rw.RidgeRanker().fit(lists[:200]), lists[200:600], keep="recall(rel=2)>=0.9")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="experiments.cutoff_guarantees", description="How often cut-offs fail.")
    parser.add_argument("--repetitions", type=int, default=REPETITIONS, help="calibration sets per cell")
    parser.add_argument("--seed", type=int, default=0, help="where all random numbers come from")
    parser.add_argument("--jobs", type=int, default=1, help="processes; they change no digit")
    parser.add_argument("--copied", action="store_true", help="only queries given several times, added to the rest")
    given = parser.parse_args(arguments)
    if given.repetitions < 1 or given.jobs < 1 or given.seed < 0:
        parser.error("--repetitions and --jobs are 1 or more, --seed is 0 or more")
    if given.copied:
        numbers = json.loads(RESULTS.read_text(encoding="utf-8"))
    else:
        numbers = collect(given.repetitions, given.seed, given.jobs)
    numbers["copied"] = run_copied(min(given.repetitions, COPIED), given.seed)
    with writing(RESULTS) as part:
        cells = ",\n".join(json.dumps(one) for one in numbers.pop("cells"))
        part.write_text(f'{json.dumps(numbers)[:-1]}, "cells": [\n{cells}\n]}}\n', encoding="utf-8")
    save_png(example().plot(), FIGURE)
    stored = json.loads(RESULTS.read_text(encoding="utf-8"))
    print(table(stored))
    false = [f"FALSE: {name}" for name in false_ones(stored)]
    print("\n".join(false), end="\n" if false else "")
    return 1 if false else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
