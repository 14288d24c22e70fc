"""What the members of AutoRanker are worth, alone and together: ``python3 run.py python -m experiments.stack``.

The sets are those on which AutoRanker was developed, or like them: draws of the simulations of docs/quality.md with
other seeds than there, 1,000 further queries for testing, and the validation parts of the five official folds of
OHSUMED and MQ2008, with the training parts alone for training. Test parts are not read. Every ranker has its defaults,
and CatBoost, which stops by a random fifth of the training queries, those of docs/quality.md. Queries without a
relevant document count as 0.

Reads the folder that RANKWISE_DATA names; writes docs/stack.json and two tables of docs/auto_ranker.md. About ten
minutes.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import rankwise as rw
from benchmarks.quality.peers import catboost
from benchmarks.quality.sets import DOCUMENTS, INTERACTIONS
from benchmarks.quality.worlds import sat, simulate, tree, wide
from experiments.pages import DOCS, markdown_table, write_block
from rankwise._files import writing
from rankwise._progress import track

PAGE, NUMBERS = DOCS / "auto_ranker.md", DOCS / "stack.json"
MEASURES = ("nDCG@10", "AP")
TEST_QUERIES = 1_000
MEMBERS = ("ridge", "normal", "trees", "started")
STACK, COMPACT, PEER = "`AutoRanker`", "`compact=True`", "CatBoost YetiRank"
RANKERS: dict[str, dict[str, Any]] = {
    **{f"{name} alone": {"members": (name,)} for name in MEMBERS},
    STACK: {},
    COMPACT: {"compact": True},
}

Pair = tuple[rw.Queries, rw.Queries]


def lists(queries: int, interactions: float, draw: int) -> Pair:
    """Training and test queries of one draw, with features in logarithms."""
    seeds = ((queries, 100 + draw), (TEST_QUERIES, 200 + draw))
    own = [
        rw.make_lists(count, documents=DOCUMENTS, interactions=interactions, random_state=seed) for count, seed in seeds
    ]
    scaler = rw.Scaler("log").fit(own[0])
    return scaler.transform(own[0]), scaler.transform(own[1])


def world(kind: Any, queries: int, draw: int) -> Pair:
    """Training and test queries of a world with other seeds than on the page of quality."""
    own = simulate(kind, queries + TEST_QUERIES, seeds=(300 + draw, 400 + draw))
    return own[:queries], own[queries:]


def pairs(data: Path) -> Iterator[tuple[str, Callable[[], Pair]]]:
    """(set, training and test queries)."""
    for title, name in (("OHSUMED", "ohsumed"), ("MQ2008", "mq2008")):
        for fold in rw.io.read_folds(data / name):
            yield title, lambda fold=fold: (fold.train, fold.validation)
    for draw in (1, 2):
        for queries in (50, 200, 1_000):
            yield f"interactions, {queries:,}", lambda n=queries, draw=draw: lists(n, INTERACTIONS, draw)
        for queries in (50, 200):
            yield f"linear, {queries}", lambda n=queries, draw=draw: lists(n, 0.0, draw)
        for title, kind in (("trees", tree), ("saturation", sat), ("heavy tails", wide)):
            yield f"{title}, 200", lambda kind=kind, draw=draw: world(kind, 200, draw)


def of_catboost(train: rw.Queries) -> Callable[[rw.Queries], Any]:
    """CatBoost, stopped by a fifth of the queries."""
    return catboost(*rw.split(train, (0.8, 0.2), random_state=0), 0)


def collect(data: Path) -> dict[str, Any]:
    """By set: means, seconds and trees by ranker, and the change by ``compact`` with its standard error."""
    found: dict[str, Any] = {}
    for name, make in track(list(pairs(data)), "sets"):
        train, test = make()
        for ranker in (*RANKERS, PEER):
            began, trees = time.process_time(), 0
            if ranker == PEER:
                scores = of_catboost(train)(test)
            else:
                model = rw.AutoRanker(n_jobs=1, **RANKERS[ranker]).fit(train)
                scores, trees = model.predict(test), model.ensemble_.n_trees
            seconds = time.process_time() - began
            tested = rw.evaluate(test, scores, MEASURES, empty="zero")
            own = found.setdefault(name, {}).setdefault(ranker, {"values": [[], []], "seconds": [], "trees": []})
            for values, measure in zip(own["values"], MEASURES, strict=True):
                values += tested.per_query[measure].tolist()
            own["seconds"].append(seconds)
            own["trees"].append(trees)
    return {name: summarize(own) for name, own in found.items()}


def summarize(own: dict[str, Any]) -> dict[str, Any]:
    """What is stored of a set."""
    changes = np.array(own[COMPACT]["values"]) - np.array(own[STACK]["values"])
    errors = changes.std(axis=1, ddof=1) / changes.shape[1] ** 0.5
    means = {
        ranker: {
            "means": [round(float(np.mean(values)), 4) for values in one["values"]],
            "seconds": round(float(np.mean(one["seconds"])), 1),
            "trees": round(float(np.mean(one["trees"]))),
        }
        for ranker, one in own.items()
    }
    return {"rankers": means, "change": np.stack([changes.mean(axis=1), errors], axis=1).round(4).tolist()}


def means(numbers: dict[str, Any]) -> str:
    """The means of both measures, a row per set, the stack first."""
    names = [STACK, *(name for name in (*RANKERS, PEER) if name not in (STACK, COMPACT)), COMPACT]
    rows = [
        [title, *(" / ".join(f"{mean:.4f}" for mean in own["rankers"][name]["means"]) for name in names)]
        for title, own in numbers.items()
    ]
    return markdown_table(["", *names], rows)


def costs(numbers: dict[str, Any]) -> str:
    """Trees and seconds of a fit, and what ``compact`` changes."""
    rows = []
    for title, own in numbers.items():
        rankers = own["rankers"]
        changes = [f"{mean:+.4f} ({error:.4f})" for mean, error in own["change"]]
        trees = [f"{rankers[name]['trees']:,}" for name in (STACK, COMPACT)]
        rows.append([title, *trees, *changes, *(f"{rankers[name]['seconds']:.1f}" for name in (STACK, COMPACT, PEER))])
    titles = ["trees", f"trees, {COMPACT}", f"nDCG@10, {COMPACT}", "AP", "seconds", f"seconds, {COMPACT}"]
    return markdown_table(["", *titles, f"seconds, {PEER}"], rows)


def blocks(numbers: dict[str, Any]) -> dict[str, str]:
    """The tables of the page by the names of their blocks."""
    return {"members": means(numbers), "compact": costs(numbers)}


def main() -> int:
    """Measure, store and write."""
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
