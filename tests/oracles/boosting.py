"""Boosting of thresholds straight from its definitions: every pair, every threshold, nothing factored or counted.

A run is followed round by round: the steps that a ranker took go in, and what it had to choose among comes out.
"""

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from rankwise.queries.queries import Queries


def all_pairs(queries: Queries, each_query_equal: bool) -> list[tuple[int, int, float]]:
    """(better row, worse row, weight) of every pair of different labels; weights add up to 1."""
    found = []
    for number in range(len(queries)):
        rows = np.arange(queries.n_documents)[queries.rows_of(number)].tolist()
        own = [(i, j) for i in rows for j in rows if queries.y[i] > queries.y[j]]
        weight = 1.0 if queries.weight is None else queries.weight[number]
        found += [(i, j, weight / len(own) if each_query_equal else weight) for i, j in own]
    total = math.fsum(weight for *_, weight in found)
    return [(i, j, weight / total) for i, j, weight in found if weight]


def midpoints(X: np.ndarray, rows: list[int]) -> list[tuple[int, float]]:
    """(feature, threshold) between all distinct values of these rows, features and thresholds ascending."""
    found = []
    for feature in range(X.shape[1]):
        values = sorted(set(X[rows, feature].tolist()))
        found += [(feature, low / 2 + high / 2) for low, high in pairwise(values)]
    return found


def score(X: np.ndarray, steps: list[tuple[int, float, float]]) -> np.ndarray:
    """sum_t alpha_t 1[x_f > theta]."""
    total = np.zeros(len(X))
    for feature, threshold, alpha in steps:
        total += alpha * (X[:, feature] > threshold)
    return total


def misordered(scores: np.ndarray, pairs: list[tuple[int, int, float]]) -> float:
    """The weighted fraction of pairs whose better document is not strictly above."""
    return math.fsum(weight for i, j, weight in pairs if scores[i] <= scores[j])


def rankboost_r(X: np.ndarray, pairs: list, scores: np.ndarray, candidates: list) -> list[float]:
    """r of every candidate, D(i,j) proportional to weight exp(s_j - s_i)."""
    D = [weight * math.exp(scores[j] - scores[i]) for i, j, weight in pairs]
    total = math.fsum(D)
    found = []
    for feature, threshold in candidates:
        h = (X[:, feature] > threshold).astype(int)
        found.append(math.fsum(d * (h[i] - h[j]) for d, (i, j, _) in zip(D, pairs, strict=True)) / total)
    return found


def fidelity(d: float) -> float:
    return 1 - math.sqrt(1 / (1 + math.exp(-d)))


def fidelity_loss(pairs: list, scores: np.ndarray) -> float:
    return math.fsum(weight * fidelity(scores[i] - scores[j]) for i, j, weight in pairs)


def frank_sums(X: np.ndarray, pairs: list, scores: np.ndarray, candidates: list) -> Iterator[tuple[float, float]]:
    """(W+, W-) of every candidate: sums of -phi' over pairs that it orders rightly and wrongly."""
    slopes = []
    for i, j, weight in pairs:
        u = math.exp(scores[j] - scores[i])
        slopes.append(weight * 0.5 * u * (1 + u) ** -1.5)
    for feature, threshold in candidates:
        h = (X[:, feature] > threshold).astype(int)
        ways = [h[i] - h[j] for i, j, _ in pairs]
        yield tuple(math.fsum(w for w, way in zip(slopes, ways, strict=True) if way == sign) for sign in (1, -1))
