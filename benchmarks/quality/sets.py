"""The sets of the quality benchmark: each gives folds of (train, validation, test), the same for every ranker."""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import rankwise as rw
from benchmarks.quality.worlds import World, sat, simulate, tree, wide
from rankwise.errors import RankwiseError
from rankwise.queries.folds import Fold

INTERACTIONS = 2.0  # as much as the weighted sum counts, twice over: nothing was tuned to it
TEST_QUERIES = 1_000
DOCUMENTS = (5, 40)


@dataclass(frozen=True)
class Set:
    """A set of judged queries.

    Attributes
    ----------
    name : str
        The name in the results.
    title : str
        The name on the page.
    folds : callable
        Gives the folds.
    queries : int
        The number of training queries of a fold, with validation, about.
    """

    name: str
    title: str
    folds: Callable[[], Iterator[Fold]]
    queries: int


def data() -> Path:
    """The folder of the real sets."""
    folder = os.environ.get("RANKWISE_DATA")
    if not folder:
        raise RankwiseError("set RANKWISE_DATA to the folder with ohsumed, mq2008, lightgbm-rank and trecnews")
    return Path(folder)


def _official(name: str) -> Callable[[], Iterator[Fold]]:
    """The five folds of LETOR."""
    return lambda: rw.io.read_folds(data() / name)


def _lightgbm() -> Iterator[Fold]:
    """LightGBM's own division; a fifth of the training file is the validation part."""
    train, test = _both("lightgbm-rank", ".gz")
    yield Fold(*rw.split(train, (0.8, 0.2)), test)


def _news() -> Iterator[Fold]:
    """Five folds of all queries, because the test file holds five queries alone."""
    return rw.kfold(rw.Queries.concat(_both("trecnews", "")), 5)


def _both(folder: str, ending: str) -> list[rw.Queries]:
    """The training and the test file."""
    return read_alike([data() / folder / f"{part}.txt{ending}" for part in ("train", "test")])


def read_alike(files: Iterable[Path], **options: Any) -> list[rw.Queries]:
    """LETOR texts with the same features; columns of zeros where a sparse file left out the last ones."""
    parts = [rw.read_letor(file, **options) for file in files]
    width = max(part.n_features for part in parts)
    return [
        part if part.n_features == width else part.map_features(lambda X: np.pad(X, ((0, 0), (0, width - X.shape[1]))))
        for part in parts
    ]


def _simulated(queries: int, interactions: float) -> Callable[[], Iterator[Fold]]:
    """Simulated queries with features in logarithms, which trees do not see and which is fair to linear rankers."""

    def folds() -> Iterator[Fold]:
        parts = [
            rw.make_lists(count, documents=DOCUMENTS, interactions=interactions, random_state=seed)
            for count, seed in ((queries, 1), (TEST_QUERIES, 2))
        ]
        scaler = rw.Scaler("log").fit(parts[0])
        train, test = (scaler.transform(part) for part in parts)
        yield Fold(*rw.split(train, (0.8, 0.2)), test)

    return folds


def _of_world(queries: int, world: World) -> Callable[[], Iterator[Fold]]:
    """Queries of a world; the first ones for training and validation."""

    def folds() -> Iterator[Fold]:
        drawn = simulate(world, queries + TEST_QUERIES)
        yield Fold(*rw.split(drawn[:queries], (0.8, 0.2)), drawn[queries:])

    return folds


SETS = (
    Set("ohsumed", "OHSUMED", _official("ohsumed"), 85),
    Set("mq2008", "MQ2008", _official("mq2008"), 627),
    Set("lightgbm", "LightGBM's example", _lightgbm, 201),
    Set("trecnews", "TREC news", _news, 45),
    *(
        Set(f"interactions-{n}", f"interactions, {n:,} queries", _simulated(n, INTERACTIONS), n)
        for n in (50, 200, 1_000, 5_000)
    ),
    *(Set(f"linear-{n}", f"linear, {n:,} queries", _simulated(n, 0.0), n) for n in (50, 200)),
    Set("tree-200", "trees, 200 queries", _of_world(200, tree), 200),
    Set("sat-200", "saturation, 200 queries", _of_world(200, sat), 200),
    Set("wide-200", "heavy tails, 200 queries", _of_world(200, wide), 200),
)
