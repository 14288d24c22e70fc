"""AdaRank as it is written down, in plain NumPy, one list at a time: every round with all that it saw."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

Score = Callable[[np.ndarray, np.ndarray], float]


@dataclass
class OracleRound:
    feature: int
    sign: int
    alpha: float
    phi: float
    delta: float
    P: np.ndarray
    E: np.ndarray
    w: np.ndarray
    Pi: float


def adarank(
    lists: Sequence[tuple[np.ndarray, np.ndarray]],
    measure: Score,
    rounds: int,
    *,
    weight: Sequence[float] | None = None,
    negated: bool = False,
    repeats: bool = True,
    freezes: bool = True,
) -> list[OracleRound]:
    """Lists are (X, labels); ``measure`` is NaN for those to be left out; ``freezes=False`` never gives up.

    Sums over lists are exact, and phi is 1 minus the mean of what is missed: last bits decide which scores tie.
    """
    given = np.ones(len(lists)) if weight is None else np.asarray(weight, dtype=float)
    kept = [
        number
        for number, (X, y) in enumerate(lists)
        if given[number] > 0 and not math.isnan(measure(np.zeros(len(y)), y))
    ]
    lists, v = [lists[number] for number in kept], given[kept]
    if not lists:
        return []
    v = v / v.max()
    d = lists[0][0].shape[1]
    signs = (1, -1) if negated else (1,)
    candidates = [(feature, sign) for sign in signs for feature in range(d)]
    alone = np.array([[measure(sign * X[:, k].astype(float), y) for X, y in lists] for k, sign in candidates])
    alone = alone.clip(0, 1)
    scores = [np.zeros(len(y)) for _, y in lists]
    E, w, Pi = np.zeros(len(lists)), np.zeros(d), 1.0
    done: list[OracleRound] = []
    while len(done) < rounds:
        P = v * np.exp(-E)
        P = P / math.fsum(P)
        used = set() if repeats else {one.feature for one in done}
        worth = [-1.0 if k in used else float(np.sum(P * own)) for (k, _), own in zip(candidates, alone, strict=True)]
        if max(worth) < 0:
            break
        best = next(number for number, value in enumerate(worth) if value >= max(worth) - 1e-12)
        k, sign = candidates[best]
        phi = max(0.0, 1 - math.fsum(P * (1 - alone[best])))
        clipped = min(phi, 1 - 1e-12)
        alpha = math.log((1 + clipped) / (1 - clipped)) / 2
        for (X, _), s in zip(lists, scores, strict=True):
            s += sign * alpha * X[:, k].astype(float)
        w[k] += sign * alpha
        now = np.array([measure(s, y) for (_, y), s in zip(lists, scores, strict=True)]).clip(0, 1)
        delta = float(min(now - E - alpha * alone[best]))
        Pi *= math.exp(-delta) * ((1 + phi) * math.exp(-alpha) + (1 - phi) * math.exp(alpha)) / 2
        frozen = bool(done) and (done[-1].feature, done[-1].sign) == (k, sign) and np.array_equal(now, E)
        done.append(OracleRound(k, sign, alpha, phi, delta, P, now, w.copy(), Pi))
        E = now
        if phi > 1 - 1e-12 or (freezes and frozen):
            break
    return done


def pessimistic_ndcg(k: int) -> Score:
    """NDCG@k with the lower label first among equal scores, by sorting."""

    def measure(scores: np.ndarray, labels: np.ndarray) -> float:
        gain = 2.0**labels - 1
        discount = 1 / np.log2(np.arange(2, min(k, len(labels)) + 2))
        ideal = np.sort(gain)[::-1][: len(discount)] @ discount
        order = np.lexsort((labels, -scores))[: len(discount)]
        return float(gain[order] @ discount / ideal) if ideal > 0 else math.nan

    return measure
