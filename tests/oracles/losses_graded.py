"""GradedPairs straight from its definition."""

import numpy as np
from scipy.special import expit

from rankwise.losses import GradedPairs


def graded_pairs(loss: GradedPairs, s: np.ndarray, labels: np.ndarray) -> tuple[float, np.ndarray]:
    total, gradient, m = 0.0, np.zeros(len(s)), len(s)
    for i in range(m):
        for j in range(m):
            if labels[i] > labels[j]:
                lead = (labels[i] - labels[j]) / m
                total += lead * np.logaddexp(0, s[j] - s[i])
                gradient[j] += lead * expit(s[j] - s[i])
                gradient[i] -= lead * expit(s[j] - s[i])
    return total, gradient


def graded_pairs_at_once(s: np.ndarray, labels: np.ndarray, w: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """(value, gradient, second derivatives) with document weights w, from matrices of all pairs."""
    m = w.sum() or 1.0
    lead, x = labels[:, None] - labels[None, :], s[None, :] - s[:, None]
    weight = w[:, None] * w[None, :] * np.maximum(lead, 0.0) / m
    p = expit(x)
    bend = weight * p * (1 - p)
    return (
        float((weight * np.logaddexp(0, x)).sum()),
        (weight * p).sum(0) - (weight * p).sum(1),
        bend.sum(0) + bend.sum(1),
    )


DEFINITIONS = {"GradedPairs": graded_pairs}
