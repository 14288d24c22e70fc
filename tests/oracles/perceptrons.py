"""Online rankers straight from their definitions: sorted lists, loops over documents, nothing clever.

Each step is a function of the scores that were published, so that a run can be followed round by round: what the
ranker scored goes in, and what it must have done comes out.
"""

import math

import numpy as np

from rankwise.losses import SLAM
from rankwise.measures._base import BinaryMeasure, Measure
from tests.oracles.losses import slam_v


def classes(measure: Measure, labels: np.ndarray) -> list[float]:
    """The labels that a measure tells apart: relevant or not for binary ones."""
    return list(measure.row_values(labels)) if isinstance(measure, BinaryMeasure) else list(labels)


def is_mistake(scores: np.ndarray, labels: list[float], k: int | None = None) -> bool:
    """Whether the first k labels, lower ones first among equal scores, differ from those of the ideal order."""
    order = sorted(range(len(labels)), key=lambda i: (-scores[i], labels[i]))
    return [labels[i] for i in order][:k] != sorted(labels, reverse=True)[:k]


def looked_at(measure: Measure) -> int | None:
    """How many positions decide: one for measures that only look for the first good document."""
    return 1 if measure.name in ("RR", "WTA") else measure.cutoff


def best_lower(i: int, scores: np.ndarray, labels: list[float]) -> int | None:
    """The highest-scored document of a lower label than i's, the first of equals."""
    lower = [j for j in range(len(labels)) if labels[j] < labels[i]]
    return max(lower, key=lambda j: (scores[j], -j)) if lower else None


def slam_gradient(X: np.ndarray, labels: np.ndarray, scores: np.ndarray, loss: SLAM) -> np.ndarray:
    """sum of v_i (x_K(i) - x_i) over documents that a less relevant one reaches or outscores, within the margin."""
    grades = list(loss.row_values(labels)) if loss.is_ap else list(labels)
    v, z = slam_v(loss, np.array(grades)), np.zeros(X.shape[1])
    for i in range(len(grades)):
        k = best_lower(i, scores, grades)
        if k is None:
            continue
        slack = loss.margin + scores[k] - scores[i]
        if slack > 0 or (loss.margin == 0 and slack == 0):
            z += v[i] * (X[k] - X[i])
    return z


def worst_pair_gradients(X: np.ndarray, labels: np.ndarray, scores: np.ndarray) -> list[np.ndarray]:
    """x_j - x_i for each pair with label_i > label_j whose gap s_j - s_i is the largest: any of equals will do."""
    pairs = [(i, j) for i in range(len(labels)) for j in range(len(labels)) if labels[i] > labels[j]]
    worst = max(scores[j] - scores[i] for i, j in pairs)
    return [X[j] - X[i] for i, j in pairs if scores[j] - scores[i] == worst]


def listnet_gradient(X: np.ndarray, targets: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """X' (softmax(s) - softmax(targets)); nothing where all targets are the same."""
    if len(set(targets)) == 1:
        return np.zeros(X.shape[1])

    def softmax(values: np.ndarray) -> np.ndarray:
        powers = np.exp(values - values.max())
        return powers / powers.sum()

    return X.T @ (softmax(scores) - softmax(targets))


def onto_l2_ball(w: np.ndarray, radius: float) -> np.ndarray:
    norm = math.sqrt(w @ w)
    return w if norm <= radius else w * (radius / norm)


def onto_l1_ball(w: np.ndarray, radius: float) -> np.ndarray:
    """The threshold that leaves sum [abs(w) - threshold]_+ = radius, by bisection."""
    sizes = np.abs(w)
    if sizes.sum() <= radius:
        return w
    low, high = 0.0, float(sizes.max())
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(sizes - middle, 0).sum() > radius else (low, middle)
    return np.sign(w) * np.maximum(sizes - high, 0)


def suffix(weights: list[np.ndarray]) -> np.ndarray:
    """Mean of the weights that rounds p/2 .. t began with, p the largest power of two up to t, counted from 1."""
    t = len(weights)
    p = 2 ** int(math.log2(t))
    return np.mean(weights[max(1, p // 2) - 1 :], axis=0)


def perceptron(rows: np.ndarray, signs: np.ndarray) -> tuple[np.ndarray, list[int]]:
    """The classification perceptron: (w, rows that were mistakes)."""
    w, mistakes = np.zeros(rows.shape[1]), []
    for number, (x, y) in enumerate(zip(rows, signs, strict=True)):
        if y * sum(a * b for a, b in zip(x, w, strict=True)) <= 0:
            w = w + y * x
            mistakes.append(number)
    return w, mistakes
