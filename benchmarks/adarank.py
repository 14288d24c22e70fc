"""AdaRank: 50 rounds against RankLib's recorded time, and against the algorithm in plain NumPy on a third of the lists.

Features are never chosen twice, so that all rounds are run: with repeats AdaRank often freezes after two. RankLib needs
Java; its 45 s for the same number of rounds, rows and features were recorded once.
"""

from typing import Any

import numpy as np

from benchmarks.clock import best_of, row
from tests.oracles.adarank import adarank, pessimistic_ndcg

LISTS, LONG, FEATURES, ROUNDS = 275, 120, 136, 50
RANKLIB = 45.0


def synthetic(lists: int) -> Any:
    """Judged lists of 120 documents; features in [0, 1], a third of them with many ties, all a little informative."""
    from rankwise.queries.queries import Queries

    rng, rows = np.random.default_rng(0), lists * LONG
    labels = np.clip(rng.geometric(0.5, rows) - 1, 0, 4)
    X = rng.random((rows, FEATURES)) + 0.1 * labels[:, None] * rng.random(FEATURES)
    X[:, ::3] = np.floor(4 * X[:, ::3]) / 4
    return Queries.from_arrays(X / X.max(axis=0), labels, group=[LONG] * lists)


def against_ranklib(measure: str) -> dict[str, Any]:
    """All lists, from the arrays to the fitted model."""
    from rankwise.rankers.boosting.adarank import AdaRank

    queries, model = synthetic(LISTS), AdaRank(measure, rounds=ROUNDS)
    model.fit(queries)  # compiles
    if len(model.history_) != ROUNDS:
        raise RuntimeError(f"{ROUNDS} rounds were to be timed: found {len(model.history_)}")
    seconds = best_of(7, lambda: model.fit(queries))
    work = f"AdaRank on {measure}, {ROUNDS} rounds, {queries.n_documents:,} x {FEATURES}"
    return row(work, "RankLib, as recorded", RANKLIB, seconds, "features on all cores", "100 x")


def against_numpy() -> dict[str, Any]:
    """A third of the lists, the same choices."""
    from rankwise.rankers.boosting.adarank import AdaRank

    queries, model = synthetic(LISTS // 3), AdaRank(rounds=ROUNDS, ties="pessimistic", n_jobs=1)
    lists = [(query.X, query.y) for query in queries]

    def plain() -> list[Any]:
        return adarank(lists, pessimistic_ndcg(10), ROUNDS, repeats=False)

    features = model.fit(queries).history_["feature"].tolist()
    if features != [one.feature for one in plain()]:
        raise RuntimeError("the plain algorithm chose other features")
    seconds, numpy_seconds = best_of(5, lambda: model.fit(queries)), best_of(2, plain)
    work = f"AdaRank on nDCG@10, {ROUNDS} rounds, {queries.n_documents:,} x {FEATURES}"
    return row(work, "plain NumPy", numpy_seconds, seconds, "one thread", "5 x")


def run() -> list[dict[str, Any]]:
    return [against_ranklib("nDCG@10"), against_ranklib("AP"), against_numpy()]


if __name__ == "__main__":
    for line in run():
        print(line)
