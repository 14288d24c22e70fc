"""RankSVM: one pass over 100,000 documents in lists of 10 to 10,000, whole fits, and scikit-learn on written-out pairs.

A pass over lists of m documents takes O(m log m) each, so that ten times longer lists should take little longer for the
same documents; the slope of log(time a list) over log(m) is printed, where 1 is linear and 2 is what pairs cost.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.clock import best_of, row

ROWS, FEATURES = 100_000, 50
LENGTHS = (10, 100, 1_000, 10_000)
PAIRS_LENGTH = 100
SMALL, SMALL_LENGTH = 10_000, 20


def synthetic(rows: int, length: int) -> Any:
    """Judged lists of one length, with a linear signal in the labels."""
    from rankwise.queries.queries import Queries

    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, FEATURES))
    signal = X @ rng.standard_normal(FEATURES) / math.sqrt(FEATURES) + rng.standard_normal(rows)
    return Queries.from_arrays(X, np.clip(np.floor(signal + 1), 0, 4), group=[length] * (rows // length))


def passes() -> list[dict[str, Any]]:
    """One value and gradient of the pair hinge, and a fit to a gap of 1e-3, for lists of every length."""
    from rankwise.losses.compute import LossOverLists
    from rankwise.losses.pairwise_hinge import PairHinge
    from rankwise.rankers.linear.presets import RankSVM

    w = np.random.default_rng(1).standard_normal(FEATURES) / math.sqrt(FEATURES)
    seconds, rows = {}, []
    for length in LENGTHS:
        queries = synthetic(ROWS, length)
        lists = LossOverLists.of(PairHinge(), queries)
        lists(w, n_jobs=1)
        seconds[length] = best_of(7, lambda lists=lists: lists(w, n_jobs=1))
        model = RankSVM(alpha=1e-3, n_jobs=1)
        fit = best_of(1, lambda model=model, queries=queries: model.fit(queries))
        calls = int(model.history_["call"][-1]) + 1
        work = f"RankSVM, {ROWS:,} x {FEATURES} in lists of {length:,}"
        how = f"a fit of {calls} passes to a gap of 1e-3, one thread"
        rows.append(row(work, f"{calls} single passes", calls * seconds[length], fit, how, "0.5 x"))
    per_list = [math.log(seconds[length] * length) for length in LENGTHS]
    slope = float(np.polyfit(np.log(LENGTHS), per_list, 1)[0])
    print(f"time a list grows like m^{slope:.2f} from {LENGTHS[0]} to {LENGTHS[-1]:,} documents")
    peer = best_of(3, pairs_by_numpy(synthetic(ROWS, PAIRS_LENGTH), w))
    work = f"pair hinge and gradient, {ROWS:,} x {FEATURES} in lists of {PAIRS_LENGTH}"
    how = f"one thread; a list takes m^{slope:.2f}, m to {LENGTHS[-1]:,}"
    return [*rows, row(work, "written-out pairs by NumPy", peer, seconds[PAIRS_LENGTH], how, "2 x")]


def pairs_by_numpy(queries: Any, w: Any) -> Callable[[], Any]:
    """The same value and gradient from the places of all pairs, found beforehand, for lists of one length."""
    labels = queries.y.reshape(len(queries), -1)
    number, better, worse = np.nonzero(labels[:, :, None] > labels[:, None, :])
    better, worse = better + queries.start[number], worse + queries.start[number]
    share = 1 / np.maximum(1, np.bincount(number, minlength=len(queries)))[number]

    def value_and_gradient() -> Any:
        scores = queries.X @ w
        slack = 1 + scores[worse] - scores[better]
        active = slack > 0
        gained = np.where(active, share, 0.0)
        slope = np.bincount(worse, gained, len(scores)) - np.bincount(better, gained, len(scores))
        return gained @ slack, queries.X.T @ slope

    return value_and_gradient


def written_out() -> dict[str, Any]:
    """The squared hinge on all pairs: scikit-learn's primal solver on their differences, which are made first."""
    from sklearn.svm import LinearSVC

    from rankwise.rankers.linear.presets import RankSVM

    queries = synthetic(SMALL, SMALL_LENGTH)
    n, alpha = len(queries), 1.0

    def differences() -> Any:
        parts = []
        for first in queries.start[:-1]:
            rows = slice(first, first + SMALL_LENGTH)
            better, worse = np.nonzero(queries.y[rows, None] > queries.y[None, rows])
            parts.append(queries.X[rows][better] - queries.X[rows][worse])
        found = np.concatenate(parts)
        sign = np.where(np.arange(len(found)) % 2, 1.0, -1.0)  # a classifier wants two classes
        return found * sign[:, None], sign

    def theirs() -> Any:
        return LinearSVC(C=1 / (n * alpha), dual=False, fit_intercept=False, tol=1e-4).fit(*differences())

    model = RankSVM(loss="squared", per_pair=False, alpha=alpha, scale="none", n_jobs=1)
    ours = best_of(3, lambda: model.fit(queries))
    peer = best_of(3, theirs)
    cosine = float(theirs().coef_[0] @ model.coef_ / np.linalg.norm(theirs().coef_) / np.linalg.norm(model.coef_))
    print(f"the weights of both point the same way: cosine {cosine:.6f}")
    work = f"RankSVM, squared hinge, {SMALL:,} x {FEATURES} in lists of {SMALL_LENGTH}"
    return row(work, "LinearSVC on written-out pairs", peer, ours, "Newton steps, one thread", "1 x")


def run() -> list[dict[str, Any]]:
    return [*passes(), written_out()]


if __name__ == "__main__":
    for line in run():
        print(line)
