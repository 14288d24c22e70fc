"""Annealing over sigma with boosted trees: ``python3 run.py python -m experiments.boosted_annealing``.

Section 6 of the SmoothRank paper proposes functional gradient boosting of the smoothed measure, without an experiment.
The protocol, fixed before its results: SmoothNDCG@10 at its own sigma of 1, at a single width of the variance of the
start's scores, and annealed over 4, 1, 1/4 and 1/16 of the variance, over 1,000 trees (the default) and over 200; all
from the ridge start, without which its gradient is 0. Beside them GradedPairs, the default loss, without a start and
with the same one. Every other parameter has its default: five folds of the training queries choose the number of trees.

Each ranker is fitted on the training part and measured once on queries that no choice has seen: on the validation parts
of the five official folds of OHSUMED and MQ2008, all together, features as they come, and on 500 further queries of
each of two draws of ``make_lists`` with interactions, 500 queries for training, features in logarithms. Test parts are
not read. The measure is nDCG@10, queries without a relevant document left out, with 95% bootstrap intervals of the
paired differences. "Width reached" is that of the last tree that was chosen, in how many of the fits.

One row was added after these results: sigma 1 with all 1,000 trees searched, because on the first draw the search at
sigma 1 had ended before any tree was worth its place, while the annealed one cannot end before its last width.

Reads the folder that RANKWISE_DATA names; writes docs/boosted_annealing.json and two tables of docs/boosting.md. About
ten minutes.
"""

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import rankwise as rw
from experiments.pages import DOCS, markdown_table, write_block
from rankwise import losses
from rankwise._files import writing
from rankwise._progress import track
from rankwise.evaluation.statistics.intervals import interval

PAGE, NUMBERS = DOCS / "boosting.md", DOCS / "boosted_annealing.json"
MEASURE = "nDCG@10"
SIGMAS = (4.0, 1.0, 0.25, 0.0625)
SMOOTHED: dict[str, Any] = {"loss": losses.SmoothNDCG(k=10), "start": "ridge"}
PAIRS, FIXED, ANNEALED = "`GradedPairs`", "`SmoothNDCG`, sigma 1", "`SmoothNDCG`, annealed"
PAIRS_FROM_RIDGE, WHOLE, SHORT = f"{PAIRS}, ridge start", f"{FIXED}, whole search", f"{ANNEALED}, 200 trees"
RANKERS: dict[str, dict[str, Any]] = {
    PAIRS: {},
    PAIRS_FROM_RIDGE: {"start": "ridge"},
    FIXED: SMOOTHED,
    WHOLE: {**SMOOTHED, "patience": 1_000},
    "`SmoothNDCG`, one width": {**SMOOTHED, "sigmas": (1.0,)},
    ANNEALED: {**SMOOTHED, "sigmas": SIGMAS},
    SHORT: {**SMOOTHED, "sigmas": SIGMAS, "trees": 200},
}
DIFFERENCES = ((ANNEALED, FIXED), (ANNEALED, WHOLE), (ANNEALED, PAIRS_FROM_RIDGE), (ANNEALED, PAIRS), (SHORT, FIXED))
TITLES = {"ohsumed": "OHSUMED", "mq2008": "MQ2008", "draw 1": "interactions, draw 1", "draw 2": "draw 2"}

Pair = tuple[rw.Queries, rw.Queries]


def pairs(data: Path) -> Iterator[tuple[str, Pair]]:
    """(set, (training queries, held-out queries))."""
    for name in ("ohsumed", "mq2008"):
        for fold in rw.io.read_folds(data / name):
            yield name, (fold.train, fold.validation)
    for draw in (1, 2):
        own = [rw.make_lists(500, documents=(5, 40), interactions=2.0, random_state=seed) for seed in (draw, draw + 10)]
        scaler = rw.Scaler("log").fit(own[0])
        yield f"draw {draw}", (scaler.transform(own[0]), scaler.transform(own[1]))


def reached(model: rw.BoostedRanker) -> float | None:
    """The width of the last tree; None where there is one alone, or no tree."""
    if model.sigmas is None or len(model.sigmas) == 1 or not model.trees_:
        return None
    begins = np.arange(len(model.sigmas)) * model.trees // len(model.sigmas)
    return float(model.sigmas[int(np.flatnonzero(begins < model.trees_)[-1])])


def collect(data: Path) -> dict[str, Any]:
    """By set and ranker: the measure of every held-out query, and trees and widths of every fit."""
    found: dict[str, dict[str, Any]] = {}
    for name, (train, held) in track(list(pairs(data)), "fits"):
        for ranker, settings in RANKERS.items():
            model = rw.BoostedRanker(MEASURE, **settings).fit(train)
            values = rw.evaluate(held, model.predict(held), [MEASURE]).values[0]
            fits = found.setdefault(name, {}).setdefault(ranker, {"values": [], "trees": [], "reached": []})
            fits["values"] += [round(float(value), 6) for value in values if not np.isnan(value)]
            fits["trees"].append(model.trees_)
            fits["reached"].append(reached(model))
    return found


def table(numbers: dict[str, Any]) -> str:
    """The means, a row per ranker."""
    rows = []
    for ranker in RANKERS:
        fits = [one[ranker] for one in numbers.values()]
        trees = [count for one in fits for count in one["trees"]]
        widths = Counter(width for one in fits for width in one["reached"] if width is not None)
        shown = ", ".join(f"{Fraction(width)} in {count}" for width, count in sorted(widths.items(), reverse=True))
        means = [f"{np.mean(one['values']):.4f}" for one in fits]
        rows.append([ranker, *means, f"{np.median(trees):.0f}", f"{trees.count(0)} of {len(trees)}", shown])
    titles = ["loss", *(TITLES[name] for name in numbers), "median of trees", "fits without trees", "width reached"]
    return markdown_table(titles, rows)


def gains(numbers: dict[str, Any]) -> str:
    """Paired differences between two rankers, with their intervals."""
    rows = []
    for ranker, other in DIFFERENCES:
        row = [f"{ranker} - {other}"]
        for one in numbers.values():
            difference = np.array(one[ranker]["values"]) - np.array(one[other]["values"])
            low, high = interval(difference)
            row.append(f"{difference.mean():+.4f} ({low:+.4f} to {high:+.4f})")
        rows.append(row)
    return markdown_table(["difference", *(TITLES[name] for name in numbers)], rows)


def blocks(numbers: dict[str, Any]) -> dict[str, str]:
    """The tables of the page by the names of their blocks."""
    return {"annealed": table(numbers), "annealed gains": gains(numbers)}


def main() -> int:
    data = os.environ.get("RANKWISE_DATA")
    if not data:
        print("set RANKWISE_DATA to the folder with the sets ohsumed and mq2008", file=sys.stderr)
        return 2
    numbers = collect(Path(data))
    with writing(NUMBERS) as part:
        part.write_text(json.dumps(numbers) + "\n", encoding="utf-8")
    for name, body in blocks(numbers).items():
        write_block(PAGE, name, body)
    return 0


if __name__ == "__main__":
    sys.exit(main())
