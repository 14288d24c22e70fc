"""One query of 200 documents, as a search engine asks for it: a `Scorer` against the least that NumPy could do.

``np.argsort(-(X @ w))`` checks nothing, keeps no order among equals, and has other bits for a row in another list.
"""

from typing import Any

import numpy as np

from benchmarks.clock import best_of, row

DOCUMENTS, FEATURES, CALLS = 200, 136, 5_000


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


def run() -> list[dict[str, Any]]:
    return [linear(np.float64), linear(np.float32), steps()]


if __name__ == "__main__":
    for line in run():
        print(line)
