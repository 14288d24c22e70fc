"""A search for the lists that break a fact: many climbers, each list changed a little as long as that takes it higher.

The moves know where ranking losses are at their worst: at ties, one apart (where hinges bend), with one document far
from the others, and at the corners of the scores that are allowed.
"""

from collections.abc import Callable

import numpy as np

GRADES = 5


def first_lists(m: int, many: int, rng: np.random.Generator, width: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """(scores, labels) to start from, a list a row; ``width`` scores a row, m unless told."""
    scores = rng.normal(size=(many, width or m)) * rng.choice([0.1, 1.0, 3.0], size=(many, 1))
    scores[::4] = np.round(scores[::4])  # ties
    labels = rng.integers(0, GRADES, (many, m)).astype(float)
    labels[1::4] = np.arange(m) < rng.integers(1, m, (len(labels[1::4]), 1))  # relevant or not
    labels[2::4] = (np.arange(m) == 0) * rng.integers(1, GRADES, (len(labels[2::4]), 1))  # one document to find
    labels[3::4] = (GRADES - 1) * np.linspace(1, 0, m)  # no two labels equal
    return scores, labels


def changed(scores: np.ndarray, labels: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A neighbor of every list, each by one of five moves."""
    scores, labels = scores.copy(), labels.copy()
    n, width = scores.shape
    move, row = rng.integers(0, 5, n), np.arange(n)
    size = 10.0 ** rng.uniform(-3, 0.7, (n, 1))
    here, there = rng.integers(0, width, (2, n))
    step = size * rng.normal(size=scores.shape)
    scores += step * (move == 0)[:, None]
    scores[row, here] += step[row, here] * (move == 1)
    beside = scores[row, there] + rng.choice([0.0, 1.0, -1.0], n)
    scores[row, here] = np.where(move == 2, beside, scores[row, here])
    scores *= np.where(move == 3, np.exp(rng.normal(size=n)), 1.0)[:, None]
    document = rng.integers(0, labels.shape[1], n)
    relabeled = rng.integers(0, GRADES, n)
    labels[row, document] = np.where(move == 4, relabeled, labels[row, document])
    return scores, labels


def highest(
    height: Callable[[np.ndarray, np.ndarray], np.ndarray],
    m: int,
    *,
    width: int | None = None,
    box: float = np.inf,
    climbers: int = 48,
    rounds: int = 60,
) -> tuple[float, np.ndarray, np.ndarray]:
    """(height, scores, labels) of the highest list that is found, scores within [-box, box]; the same every time."""
    rng = np.random.default_rng(m)
    scores, labels = first_lists(m, climbers, rng, width)
    scores = np.clip(scores, -box, box)
    reached = height(scores, labels)
    for _ in range(rounds):
        others, other_labels = changed(scores, labels, rng)
        others = np.clip(others, -box, box)
        found = height(others, other_labels)
        better = found > reached
        scores[better], labels[better], reached[better] = others[better], other_labels[better], found[better]
    best = int(np.argmax(reached))
    return float(reached[best]), scores[best], labels[best]
