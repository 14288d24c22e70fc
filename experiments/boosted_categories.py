"""Categories of many levels in boosted trees: ``python3 run.py python -m experiments.boosted_categories``.

A symmetric tree splits at most 63 levels; these have more. The protocol: documents have ten features that are normal
numbers and a category with an effect on the label and on the slope of the fourth feature. Levels are equally frequent,
or the k-th as 1 / k. Queries have 5 to 39 documents. Each ranker is fitted on 200 or 1,000 queries with default
parameters, except what its row says, and measured by nDCG@10 on 500 further queries of the same draw, which no choice
has seen. Two draws; the interval is that of the mean paired difference over the queries of both. A first run with three
draws was stopped after its worlds of 200 queries, whose means were seen. LightGBM with its own loss and recipe, and
trees without the category, were columns of it, and were left out because of their time.

- codes: codes are given as numbers, whose order means nothing.
- one-hot: the 62 most frequent levels are categories, and all others together one more.
- statistics: a level is the mean of label minus mean label of the query over its documents, drawn to 0 as if by ten
  further documents. A training query has the means of the four fifths of the queries that it does not belong to.
- both: the two before, as two features.
- LightGBM: ``engine="lightgbm", categorical_features=...``, otherwise the recipe of symmetric trees.

Writes docs/boosted_categories.json and a table of docs/boosting.md. About a quarter of an hour.
"""

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import rankwise as rw
from experiments.pages import DOCS, markdown_table, write_block
from rankwise import losses
from rankwise._files import writing
from rankwise._progress import track
from rankwise.evaluation.statistics.intervals import interval

PAGE, NUMBERS = DOCS / "boosting.md", DOCS / "boosted_categories.json"
MEASURE = "nDCG@10"
NUMERIC, CODE = 10, 10  # the number of the category's column, after the numbers
LEVELS, TRAIN, HELD, DRAWS = (300, 100), (200, 1_000), 500, 2
MOST, SHRINK, FOLDS = 62, 10.0, 5

Vector = NDArray[np.float64]


class Draw(NamedTuple):
    """Queries for training and held-out ones; the last feature holds codes."""

    train: rw.Queries
    held: rw.Queries


def draw(levels: int, skewed: bool, train: int, number: int) -> Draw:
    """Training and held-out queries of one population."""
    rng = np.random.default_rng([levels, skewed, number])
    chance = 1.0 / np.arange(1, levels + 1) if skewed else np.ones(levels)
    effect, slope = rng.normal(0, 1.2, levels), rng.normal(0, 0.8, levels)
    order = rng.permutation(levels)  # codes do not tell how frequent a level is

    def queries(count: int) -> rw.Queries:
        sizes = rng.integers(5, 40, count)
        X = rng.normal(size=(sizes.sum(), NUMERIC + 1))
        code = order[rng.choice(levels, len(X), p=chance / chance.sum())]
        u = X[:, 0] + 0.7 * X[:, 1] * X[:, 2] + effect[code] + slope[code] * X[:, 3] + 0.6 * rng.normal(size=len(X))
        X[:, CODE] = code
        return rw.Queries.from_arrays(X, np.searchsorted([0.3, 1.3, 2.3, 3.3], u).astype(float), group=sizes)

    held = queries(HELD)
    return Draw(queries(train), held)


# --------------------------------------------------------------------------------------------- what a category becomes


def with_column(queries: rw.Queries, *columns: Vector) -> rw.Queries:
    """The queries with these columns in place of the codes."""
    X = np.column_stack([queries.X[:, :NUMERIC], *columns])
    return rw.Queries.from_arrays(X, queries.y, group=queries.sizes)


def frequent(queries: rw.Queries, train: rw.Queries) -> Vector:
    """The most frequent levels by their rank, and all others as one level."""
    levels, count = np.unique(train.X[:, CODE], return_counts=True)
    kept = levels[np.argsort(-count, kind="stable")[:MOST]]
    places = {code: place for place, code in enumerate(kept.tolist())}
    return np.array([places.get(code, MOST) for code in queries.X[:, CODE].tolist()], float)


def level_means(queries: rw.Queries, rows: NDArray[np.bool_], levels: int) -> Vector:
    """For every level the shrunken mean of label minus mean label of the query over these rows."""
    label = queries.labels()
    mean = np.bincount(queries.query_of_row, label) / queries.sizes
    centered, code = label - mean[queries.query_of_row], queries.X[:, CODE].astype(int)
    total = np.bincount(code[rows], centered[rows], levels)
    return total / (np.bincount(code[rows], minlength=levels) + SHRINK)


def statistics(own: Draw) -> tuple[Vector, Vector]:
    """The means of the levels for both sets: out of fold for training queries."""
    train, held = own
    levels = int(max(train.X[:, CODE].max(), held.X[:, CODE].max())) + 1
    fold = np.random.default_rng(0).permutation(len(train)) % FOLDS
    owner = fold[train.query_of_row]
    found = np.empty(train.n_documents)
    for part in range(FOLDS):
        inside = owner == part
        found[inside] = level_means(train, ~inside, levels)[train.X[inside, CODE].astype(int)]
    whole = level_means(train, np.ones(train.n_documents, bool), levels)
    return found, whole[held.X[:, CODE].astype(int)]


def as_given(own: Draw) -> Draw:
    """Codes."""
    return own


def most_frequent(own: Draw) -> Draw:
    """Codes of the most frequent levels and of the rest."""
    return Draw(*(with_column(one, frequent(one, own.train)) for one in own))


def means(own: Draw) -> Draw:
    """Means of levels."""
    return Draw(*(with_column(one, column) for one, column in zip(own, statistics(own), strict=True)))


def codes_and_means(own: Draw) -> Draw:
    """Codes of the most frequent levels and of the rest, and means of levels."""
    pairs = zip(own, statistics(own), strict=True)
    return Draw(*(with_column(one, frequent(one, own.train), column) for one, column in pairs))


CODED: dict[str, Any] = {"categorical_features": [CODE]}
LIGHTGBM: dict[str, Any] = {"engine": "lightgbm", "loss": losses.GradedPairs(), "seeds": 1, "refit": "average"}
ONE_HOT, BOTH, SETS = "one-hot: 62 levels and the rest", "one-hot and statistics", '`engine="lightgbm"`'
RANKERS: dict[str, tuple[Callable[[Draw], Draw], dict[str, Any]]] = {
    "codes as numbers": (as_given, {}),
    ONE_HOT: (most_frequent, CODED),
    "statistics out of fold": (means, {}),
    BOTH: (codes_and_means, CODED),
    SETS: (as_given, {**CODED, **LIGHTGBM}),
}


# ------------------------------------------------------------------------------------------------------------- results


def worlds() -> Iterator[tuple[str, int, bool, int]]:
    """(name, levels, whether frequencies differ, training queries)."""
    for train in TRAIN:
        for levels in LEVELS:
            for skewed in (False, True):
                yield f"{train:,} queries, {levels} levels{', skewed' if skewed else ''}", levels, skewed, train


def collect() -> dict[str, dict[str, list[list[float]]]]:
    """By world and ranker: for every draw the measure of every held-out query."""
    found: dict[str, dict[str, list[list[float]]]] = {}
    for name, levels, skewed, train in track(list(worlds()), "worlds"):
        for number in range(DRAWS):
            own = draw(levels, skewed, train, number)
            for ranker, (form, settings) in RANKERS.items():
                given = form(own)
                scores = rw.BoostedRanker(MEASURE, **settings).fit(given.train).predict(given.held)
                values = rw.evaluate(given.held, scores, [MEASURE]).values[0]
                kept = [round(float(value), 4) for value in values if not np.isnan(value)]
                found.setdefault(name, {}).setdefault(ranker, []).append(kept)
    return found


def summary(numbers: dict[str, dict[str, list[list[float]]]]) -> dict[str, Any]:
    """By world: the mean of every ranker, and what LightGBM gains over each other one with its interval."""
    found: dict[str, Any] = {}
    for name, rankers in numbers.items():
        values = {ranker: np.concatenate(draws) for ranker, draws in rankers.items()}
        gains = {ranker: values[SETS] - one for ranker, one in values.items() if ranker != SETS}
        found[name] = {
            "means": {ranker: float(one.mean()) for ranker, one in values.items()},
            "gains": {ranker: [float(one.mean()), *map(float, interval(one))] for ranker, one in gains.items()},
        }
    return found


def table(numbers: dict[str, Any]) -> str:
    """The means, and what LightGBM gains over the best of the others."""
    rows = []
    for name, one in numbers.items():
        gain, low, high = one["gains"][BOTH]
        means = [f"{one['means'][ranker]:.4f}" for ranker in RANKERS]
        rows.append([name, *means, f"{gain:+.4f} ({low:+.4f} to {high:+.4f})"])
    return markdown_table(["simulated", *RANKERS, "difference of the last two"], rows)


def main() -> int:
    numbers = summary(collect())
    with writing(NUMBERS) as part:
        part.write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")
    write_block(PAGE, "categories", table(numbers))
    return 0


if __name__ == "__main__":
    sys.exit(main())
