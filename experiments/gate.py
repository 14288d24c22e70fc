"""How often a release gate lets a bad ranker pass: ``python3 run.py python -m experiments.gate``.

Makers ask a gate about 200 rankers, one after the other, and make each of them from the answers so far. A history is
false if a ranker passes whose true mean is not above the threshold; with probability 1 - delta none ever does. Beside
it stand two mistakes: the ranker with the best printed bound is kept, and every attempt has a gate of its own. The
power of attempts 1, 5, 20 and 100 is counted as well, and whether plans are enough.

``--histories 1000`` is the number of histories of makers who climb (the others have a part of it, ``SHARES``),
``--seed 0`` is where all random numbers come from, and ``--jobs`` the number of processes, which changes no digit.
``--redraw`` makes the figure and the tables from the stored numbers. Writes docs/gate.json, docs/figures/gate.png and
the tables of docs/ship.md and docs/coverage.md. About six minutes on two cores.
"""

import argparse
import json
import math
import os
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

import rankwise as rw
from experiments.coverage import in_order
from experiments.coverage_counts import Count, clopper_pearson, verdict
from experiments.pages import DOCS, markdown_table, write_block
from rankwise._figures import COLORS, FAINT, INK, house_style, new_figure, save_png
from rankwise._files import writing
from rankwise.guarantees import level_of_attempt, mean_interval, queries_to_show
from rankwise.guarantees.holdout.testing import shows_above

RESULTS, FIGURE = DOCS / "gate.json", DOCS / "figures" / "gate.png"
DELTA, THRESHOLD, QUERIES, ATTEMPTS = 0.05, 0.7, 500, 200
HISTORIES, TOGETHER = 1_000, 10
# Histories of the other makers and worlds, as a share of those of the first one.
SHARES = {"fresh": 0.05, "climb": 1.0, "descend": 0.2, "other worlds": 0.06, "printed": 0.05, "without counting": 0.03}
SHARE = 0.1  # of the kinds on which a climbing maker changes a ranker
LOOKS = (1, 2, 5, 10, 20, 50, 100, 200)

# What a ranker does to a query: the relevant document is at place 1 to 10, or tied with the next one at 1 to 9.
PLACES = np.arange(1, 11)
TIED = (1 / PLACES[:-1] + 1 / PLACES[1:]) / 2
WORTH = np.concatenate([1 / PLACES, TIED])
Outcomes = NDArray[np.int64]


class World(NamedTuple):
    """A population of kinds of queries, one relevant document among ten, by RR.

    Attributes
    ----------
    name : what it is
    kinds : how many kinds of queries there are, all equally frequent: the true mean is the mean over them
    empty : the share of kinds without a relevant document
    tied : the share of kinds on which scores are tied
    allow : the question is whether the ranker is worse than another one by at most so much; None for a threshold
    repeats : whether two queries of one kind have the same content
    """

    name: str
    kinds: int = 4_000
    empty: float = 0.0
    tied: float = 0.0
    allow: float | None = None
    repeats: bool = False


WORLDS = (
    World("no query repeats"),
    World("ties", tied=0.5),
    World("empty queries", empty=0.3),
    World("repeated queries", kinds=300, repeats=True),
    World("old against new", allow=0.01),
)
MAKERS = ("fresh", "climb", "descend")


class Task(NamedTuple):
    """Some histories of one world, by one maker."""

    world: World
    maker: str
    first: int
    last: int
    seed: int


# ------------------------------------------------------------------------------------------------------------- rankers


def drawn(world: World, mean: float, random: np.random.Generator, count: int) -> Outcomes:
    """What a ranker does to so many kinds, if its mean is as given on average: place 1, or one of the others."""
    rest = float((1 / PLACES[1:]).mean())
    first = random.random(count) < (mean - rest) / (1 - rest)
    places = np.where(first, 0, random.integers(1, 10, count))
    tie = (random.random(count) < world.tied) & (places < len(TIED))
    return np.where(tie, len(PLACES) + places, places)


def lowered(outcomes: Outcomes, mean: float, counted: NDArray[np.bool_], random: np.random.Generator) -> Outcomes:
    """The same ranker with relevant documents put last on some kinds, until its true mean is at most this."""
    found, last = outcomes.copy(), len(PLACES) - 1
    order = random.permutation(np.flatnonzero(counted))
    lost = np.concatenate([[0.0], np.cumsum(WORTH[found[order]] - WORTH[last])])
    excess = float(WORTH[found[counted]].sum()) - mean * int(counted.sum())
    found[order[: int(np.searchsorted(lost, excess + 1e-9))]] = last
    return found


class Maker:
    """Makes rankers from the answers so far.

    ``fresh`` makes each anew, just below the threshold. ``climb`` changes a tenth of the last one that passed, also
    just below the threshold. ``descend`` begins with a good ranker and makes the last one that passed worse, bit by
    bit, until it is below the threshold and still agrees with it on most queries.
    """

    def __init__(
        self, how: str, world: World, top: float, counted: NDArray[np.bool_], random: np.random.Generator
    ) -> None:
        self.how, self.world, self.top, self.counted, self.random = how, world, top, counted, random
        self.kept = self.fresh(0.95 if how == "descend" else top)
        self.mean, self.begun = (0.95 if how == "descend" else top), False

    def fresh(self, mean: float) -> Outcomes:
        found = drawn(self.world, min(mean + 0.01, 1.0), self.random, len(self.counted))
        return lowered(found, mean, self.counted, self.random)

    def next(self) -> Outcomes:
        if not self.begun:
            self.begun = True
            return self.kept
        if self.how == "fresh":
            return self.fresh(self.top)
        if self.how == "climb":
            anew = self.random.random(len(self.kept)) < SHARE
            changed = np.where(anew, self.fresh(self.top), self.kept)
            return lowered(changed, self.top, self.counted, self.random)
        # a third of the way down to the threshold, and then below it
        self.mean = self.top if self.mean < self.top + 0.03 else self.top + (self.mean - self.top) * 2 / 3
        return lowered(self.kept, self.mean, self.counted, self.random)

    def told(self, ranker: Outcomes, passed: bool) -> None:
        if passed:
            self.kept = ranker


class Holdout:
    """Queries drawn from the kinds, and scores that put the relevant document where a ranker puts it."""

    def __init__(self, world: World, random: np.random.Generator) -> None:
        self.counted = random.random(world.kinds) >= world.empty
        self.kind = random.integers(0, world.kinds, QUERIES)
        labels = np.zeros((QUERIES, 10))
        labels[:, 0] = self.counted[self.kind]
        features = random.random((world.kinds, 10, 2))[self.kind] if world.repeats else random.random((QUERIES, 10, 2))
        self.queries = rw.Queries.from_arrays(features.reshape(-1, 2), labels.reshape(-1), group=[10] * QUERIES)

    def scores(self, ranker: Outcomes) -> NDArray[np.float64]:
        found = np.tile(np.arange(10.0, 0.0, -1.0), (QUERIES, 1))
        own = ranker[self.kind]
        tied = own >= len(PLACES)
        # other documents have the scores 9 to 1
        found[:, 0] = np.where(tied, 9 - (own - len(PLACES)), 9.5 - own)
        return found.reshape(-1)


# ----------------------------------------------------------------------------------------------------------- histories


def history(world: World, how: str, number: int, seed: int, attempts: int = ATTEMPTS) -> tuple[int, int]:
    """(the first false pass, 0 if there is none; how many good rankers passed before it) of one history."""
    random = np.random.default_rng([seed, crc32(f"{world.name} {how}".encode()), number])
    holdout, asked, top = Holdout(world, random), {"at_least": THRESHOLD}, THRESHOLD
    if world.allow is not None:
        old = drawn(world, THRESHOLD, random, world.kinds)
        top = float(WORTH[old[holdout.counted]].mean()) - world.allow
        asked = {"better_than": holdout.scores(old), "allow": world.allow}
    maker, good = Maker(how, world, top, holdout.counted, random), 0
    gate = rw.Gate(holdout.queries, "RR", delta=DELTA, state=None, **asked)
    for attempt in range(1, attempts + 1):
        ranker = maker.next()
        passed = gate.ask(holdout.scores(ranker)).passed
        if passed and WORTH[ranker[holdout.counted]].mean() <= top:
            return attempt, good
        good += passed
        maker.told(ranker, passed)
    return 0, good


def without_counting(number: int, seed: int, attempts: int = ATTEMPTS) -> int:
    """The first false pass of a control: every attempt has a gate of its own on the same queries."""
    random = np.random.default_rng([seed, 1, number])
    world = WORLDS[0]
    holdout = Holdout(world, random)
    maker = Maker("fresh", world, THRESHOLD, holdout.counted, random)
    for attempt in range(1, attempts + 1):
        gate = rw.Gate(holdout.queries, "RR", at_least=THRESHOLD, delta=DELTA, state=None)
        if gate.ask(holdout.scores(maker.next())):
            return attempt
    return 0


def printed(number: int, seed: int, looks: int = ATTEMPTS) -> list[bool]:
    """Whether the printed bound of the ranker that is kept is false, after each look: the better of two is kept."""
    random = np.random.default_rng([seed, 2, number])
    world = WORLDS[0]
    holdout = Holdout(world, random)
    maker, best, false = Maker("climb", world, THRESHOLD, holdout.counted, random), -1.0, []
    for _ in range(looks):
        ranker = maker.next()
        values = WORTH[ranker[holdout.kind]]
        low = mean_interval(values, DELTA, ends="low").low
        maker.told(ranker, low > best)
        best = max(best, low)
        false.append(best > THRESHOLD)
    return false


def run_task(task: Task) -> list[Any]:
    numbers = range(task.first, task.last)
    if task.maker == "printed":
        return [printed(number, task.seed) for number in numbers]
    if task.maker == "without counting":
        return [without_counting(number, task.seed) for number in numbers]
    return [history(task.world, task.maker, number, task.seed) for number in numbers]


# --------------------------------------------------------------------------------------------------------------- power


def values_of(kind: str, mean: float, shape: tuple[int, int], random: np.random.Generator) -> NDArray[np.float64]:
    """Values of a ranker with this mean: RR, values of a Beta distribution (standard deviation 0.36), or coins."""
    if kind == "RR":
        return np.asarray(WORTH[drawn(WORLDS[0], mean, random, math.prod(shape))].reshape(shape))
    if kind == "coins":
        return (random.random(shape) < mean).astype(float)
    total = mean * (1 - mean) / 0.36**2 - 1
    return random.beta(mean * total, (1 - mean) * total, shape)


def power(samples: int, seed: int) -> list[list[Any]]:
    """How often a ranker that is better than the threshold passes, by what its values are, margin and attempt."""
    rows = []
    for kind in ("values of sd 0.36", "RR", "coins"):
        for margin in (0.10, 0.08, 0.05):
            random = np.random.default_rng([seed, 3, crc32(f"{kind} {margin}".encode())])
            values = values_of(kind, THRESHOLD + margin, (samples, QUERIES), random)
            levels = {attempt: level_of_attempt(DELTA, attempt, 0) for attempt in (1, 5, 20, 100)}
            shares = [float(np.mean([shows_above(row, THRESHOLD, one) for row in values])) for one in levels.values()]
            rows.append([kind, margin, float(values.std()), *shares])
    return rows


def plans(samples: int, seed: int) -> list[list[Any]]:
    """Of plans for a power of 0.8: how many queries, and how often the margin is shown with them."""
    rows = []
    for kind, sd in (("values of sd 0.36", 0.36), ("coins", 0.46)):
        for margin in (0.10, 0.05):
            for attempt, passed in ((1, 0), (5, 1), (20, 0), (100, 3)):
                level, name = level_of_attempt(DELTA, attempt, passed), f"{kind} {margin} {attempt} plan"
                plan = queries_to_show(margin, sd=sd, threshold=THRESHOLD, level=level)
                random = np.random.default_rng([seed, 4, crc32(name.encode())])
                values = values_of(kind, THRESHOLD + margin, (samples, plan.queries), random)
                shown = sum(shows_above(row, THRESHOLD, level) for row in values)
                rows.append([kind, margin, attempt, passed, level, plan.queries, shown, samples])
    return rows


# ------------------------------------------------------------------------------------------------------------- collect


def collect(histories: int = HISTORIES, seed: int = 0, jobs: int = 1) -> dict[str, Any]:
    """All counts, as plain numbers."""
    share = {name: max(1, round(histories * one)) for name, one in SHARES.items()}
    wanted = [(WORLDS[0], maker, share[maker]) for maker in (*MAKERS, "without counting", "printed")]
    wanted += [(world, maker, share["other worlds"]) for world in WORLDS[1:] for maker in MAKERS[1:]]
    tasks = [
        Task(world, maker, first, min(first + TOGETHER, count), seed)
        for world, maker, count in wanted
        for first in range(0, count, TOGETHER)
    ]
    found: dict[tuple[str, str], list[Any]] = {}
    for task, part in zip(tasks, in_order(run_task, tasks, jobs, "histories"), strict=True):
        found.setdefault((task.world.name, task.maker), []).extend(part)
    kept = found.pop((WORLDS[0].name, "printed"))
    control = found.pop((WORLDS[0].name, "without counting"))
    samples = max(20, histories // 2)
    return {
        "delta": DELTA,
        "queries": QUERIES,
        "attempts": ATTEMPTS,
        "seed": seed,
        "histories": [[*key, [one for one, _ in each], [good for _, good in each]] for key, each in found.items()],
        "without counting": control,
        "printed": [len(kept), [int(count) for count in np.sum(kept, axis=0)]],
        "power": power(samples, seed),
        "plans": plans(samples, seed),
    }


def false_ones(numbers: dict[str, Any]) -> list[str]:
    """Worlds in which histories are false more often than delta, and a control that is not found out."""
    found = [
        f"FALSE: {world}, {maker}"
        for world, maker, firsts, _ in numbers["histories"]
        if verdict([_count(firsts)], numbers["delta"]) == "FALSE"
    ]
    if verdict([_count(numbers["without counting"])], numbers["delta"]) != "FALSE":
        found.append("NOT FOUND OUT: every attempt has a gate of its own")
    return found


def _count(firsts: Sequence[int]) -> Count:
    return Count.of(failed=sum(one > 0 for one in firsts), checked=len(firsts))


# -------------------------------------------------------------------------------------------------- tables and figure


def after(firsts: Sequence[int], looks: int) -> float:
    """The share of histories with a false pass within so many attempts."""
    return sum(0 < one <= looks for one in firsts) / len(firsts)


def looks_table(numbers: dict[str, Any]) -> str:
    """The share of false decisions after 1, 20, 100 and 200 looks."""
    shown = (1, 20, 100, 200)
    many, false = numbers["printed"]
    rows = [["printed bounds, the better one is kept", *(f"{100 * false[k - 1] / many:.1f}%" for k in shown)]]
    rows.append(
        ["a new gate for each attempt", *(f"{100 * after(numbers['without counting'], k):.1f}%" for k in shown)]
    )
    rows += [
        [f"one gate, makers that {_DOES[maker]}", *(f"{100 * after(firsts, k):.1f}%" for k in shown)]
        for world, maker, firsts, _ in numbers["histories"]
        if world == WORLDS[0].name
    ]
    return markdown_table(("false decisions after looks", *map(str, shown)), rows)


_DOES = {
    "fresh": "try anew",
    "climb": "change what passed",
    "descend": "make what passed worse",
}


def histories_table(numbers: dict[str, Any]) -> str:
    """One row per world and maker, and the control."""
    rows = []
    for world, maker, firsts, good in numbers["histories"]:
        count = _count(firsts)
        low, high = (100 * end for end in count.interval())
        rate = f"{100 * count.rate:.1f}% ({low:.1f} to {high:.1f})"
        passes = f"{np.mean(good):.1f}"
        decided = verdict([count], numbers["delta"])
        rows.append([world, _DOES[maker], f"{len(firsts):,}", f"{count.failed:,}", rate, passes, decided])
    count = _count(numbers["without counting"])
    low, high = (100 * end for end in count.interval())
    rate = f"{100 * count.rate:.1f}% ({low:.1f} to {high:.1f})"
    decided = verdict([count], numbers["delta"])
    rows.append(
        [
            "control: a new gate for each attempt",
            _DOES["fresh"],
            f"{count.checked:,}",
            f"{count.failed:,}",
            rate,
            "",
            decided,
        ]
    )
    titles = ("world", "makers", "histories", "with a false pass", "rate, 99% interval", "true passes each", "verdict")
    return markdown_table(titles, rows)


def power_table(numbers: dict[str, Any]) -> str:
    """The power by margin and attempt."""
    rows = [
        [kind, f"{sd:.2f}", f"{margin:.2f}", *(f"{share:.2f}" for share in shares)]
        for kind, margin, sd, *shares in numbers["power"]
    ]
    return markdown_table(("values", "sd", "better by", "attempt 1", "5", "20", "100"), rows)


def plans_table(numbers: dict[str, Any]) -> str:
    """How many queries a power of 0.8 takes, and the power in simulations."""
    rows = []
    for kind, margin, attempt, passed, level, queries, shown, samples in numbers["plans"]:
        low, high = (100 * end for end in clopper_pearson(shown, samples))
        rate = f"{100 * shown / samples:.0f}% ({low:.0f} to {high:.0f})"
        rows.append([kind, f"{margin:.2f}", str(attempt), str(passed), f"{level:.2g}", f"{queries:,}", rate])
    return markdown_table(
        ("values", "better by", "attempt", "passes before", "level", "queries planned", "passed, 99% interval"), rows
    )


def blocks(numbers: dict[str, Any]) -> dict[str, str]:
    """The tables of docs/ship.md."""
    return {"looks": looks_table(numbers), "power": power_table(numbers), "plans": plans_table(numbers)}


def coverage_blocks(numbers: dict[str, Any]) -> dict[str, str]:
    """The tables of docs/coverage.md."""
    return {"gate": histories_table(numbers)}


def draw(numbers: dict[str, Any]) -> Any:
    """False decisions against the number of looks: printed bounds, new gates, and one gate."""
    many, false = numbers["printed"]
    looks = np.arange(1, numbers["attempts"] + 1)
    with house_style():
        figure = new_figure(6.4, 3.4)
        axes = figure.subplots()
        axes.axhline(100 * numbers["delta"], color=FAINT, linewidth=0.8, linestyle=(0, (3, 2)))
        axes.text(
            1.02, 100 * numbers["delta"] + 1.5, "5%, what delta allows for all looks together", color=INK, fontsize=7
        )
        control = [100 * after(numbers["without counting"], look) for look in looks]
        axes.plot(
            looks,
            [100 * one / many for one in false],
            color=COLORS[1],
            label="printed bounds, the better model is kept",
        )
        axes.plot(looks, control, color=COLORS[3], linestyle=(0, (5, 2)), label="a new gate for each attempt")
        styles = dict(zip(MAKERS, ("-", (0, (4, 1.5)), (0, (1, 1))), strict=True))
        for world, maker, firsts, _ in numbers["histories"]:
            if world == WORLDS[0].name:
                shares = [100 * after(firsts, look) for look in looks]
                axes.plot(
                    looks,
                    shares,
                    color=COLORS[0],
                    linestyle=styles[maker],
                    label=f"one gate, makers that {_DOES[maker]}",
                )
        axes.set(xscale="log", xlim=(1, len(looks)), ylim=(-2, 104), xlabel="models asked about")
        axes.set_ylabel("histories with a false decision, %")
        axes.set_xticks([1, 2, 5, 10, 20, 50, 100, 200], ["1", "2", "5", "10", "20", "50", "100", "200"])
        axes.minorticks_off()
        axes.legend(loc="upper left", bbox_to_anchor=(0.0, 0.98))
    return figure


def redraw() -> int:
    """Tables and figure from the stored numbers; 1 if a promise is false, or the control was not found out."""
    numbers = json.loads(RESULTS.read_text(encoding="utf-8"))
    for page, named in ((DOCS / "ship.md", blocks(numbers)), (DOCS / "coverage.md", coverage_blocks(numbers))):
        for name, table in named.items():
            write_block(page, name, table)
    save_png(draw(numbers), FIGURE)
    found = false_ones(numbers)
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="experiments.gate", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--histories", type=int, default=HISTORIES, help="histories of makers who climb")
    parser.add_argument("--seed", type=int, default=0, help="where all random numbers come from")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes; they change no digit")
    parser.add_argument("--redraw", action="store_true", help="only figure and tables, from the stored numbers")
    given = parser.parse_args(arguments)
    if given.histories < 1 or given.jobs < 1 or given.seed < 0:
        parser.error("--histories and --jobs are 1 or more, --seed is 0 or more")
    if given.redraw:
        return redraw()
    numbers = collect(given.histories, given.seed, given.jobs)
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in numbers.items())
    with writing(RESULTS) as part:
        part.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
    return redraw()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
