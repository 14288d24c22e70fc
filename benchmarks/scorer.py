"""Scores as users ask for them: of one query, as a search engine does, and of many documents.

A `Scorer` of a linear ranker ranks 200 documents, against the least that NumPy could do: ``np.argsort(-(X @ w))``
checks nothing, keeps no order among equals, and has other bits for a row in another list. 500 trees of depth 6 score
20 documents and more, against ``predict`` of LightGBM with as many trees of 31 leaves: processor time of one thread,
with the Python call.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.clock import best_of, row
from benchmarks.symmetric_trees import data

DOCUMENTS, FEATURES, CALLS = 200, 136, 5_000
TREES, GROWN = 500, 60_000


def linear(dtype: Any) -> dict[str, Any]:
    import rankwise as rw
    from rankwise.rankers.scorer import Scorer

    model = rw.SLAMPerceptron().fit(rw.make_lists(20, features=FEATURES))
    scorer, w = Scorer(model), model.coef_.astype(dtype)
    X = np.random.default_rng(0).normal(size=(DOCUMENTS, FEATURES)).astype(dtype)
    ours = best_of(CALLS, lambda: scorer.rank(X))
    plain = best_of(CALLS, lambda: np.argsort(-(X @ w)))
    work = f"rank one list of {DOCUMENTS} x {FEATURES} {np.dtype(dtype).name}, a linear ranker"
    return row(work, "np.argsort(-(X @ w)), nothing checked", plain, ours, f"Scorer.rank, {ours * 1e6:.0f} us", "0.5 x")


def steps() -> dict[str, Any]:
    import rankwise as rw
    from rankwise.rankers.scorer import Scorer

    model = rw.RankBoost(rounds=300).fit(rw.make_lists(100, features=FEATURES))
    scorer, X = Scorer(model), rw.make_lists(1, documents=DOCUMENTS, features=FEATURES, random_state=1).X
    ours, predict = best_of(CALLS // 5, lambda: scorer.rank(X)), best_of(CALLS // 20, lambda: model.predict(X))
    work = f"rank one list of {DOCUMENTS} x {FEATURES} float64, RankBoost of {model.rounds_} rounds"
    return row(work, "predict", predict, ours, f"Scorer.rank, {ours * 1e6:.0f} us", "1 x")


def trees(features: int) -> list[dict[str, Any]]:
    import lightgbm

    import rankwise as rw
    from rankwise.rankers.scorer import Scorer

    X, y, sizes = data(GROWN, 1)
    X = np.ascontiguousarray(X[:, :features])
    model = rw.BoostedRanker(trees=TREES, patience=None, n_jobs=1).fit(rw.Queries.from_arrays(X, y, group=sizes))
    params = {"objective": "lambdarank", "verbosity": -1, "num_threads": 1, "num_leaves": 31, "learning_rate": 0.05}
    booster = lightgbm.train(params, lightgbm.Dataset(X, y, group=sizes, params=params), TREES)
    scorer, rows = Scorer(model), []
    for documents, calls, how, target in (
        (20, 200, "Scorer.scores", "5 x"),
        (20, 200, "predict", "-"),
        (1_000, 20, "Scorer.scores", "20 x"),
        (1_000, 20, "predict", "20 x"),
        (GROWN, 1, "predict", "20 x"),
    ):
        some, score = X[:documents], model.predict if how == "predict" else scorer.scores
        ours = of_calls(calls, partial(score, some))
        theirs = of_calls(calls, partial(booster.predict, some, num_threads=1))
        work = f"scores of {documents:,} x {features} float32 by {TREES} trees"
        rows.append(row(work, "LightGBM predict, 31 leaves", theirs, ours, f"{how}, 1 thread", target))
    return rows


def of_calls(count: int, work: Callable[[], Any]) -> float:
    """Processor seconds of a call, of the fastest of five times so many."""

    def calls() -> None:
        for _ in range(count):
            work()

    return best_of(5, calls, time.process_time) / count


def run() -> list[dict[str, Any]]:
    return [linear(np.float64), linear(np.float32), steps(), *trees(FEATURES), *trees(20)]


if __name__ == "__main__":
    for line in run():
        print(line)
