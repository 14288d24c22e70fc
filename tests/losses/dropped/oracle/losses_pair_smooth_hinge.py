"""PairSmoothHinge straight from its definition."""

import numpy as np


def pair_smooth_hinge(loss, s, labels):
    """(value, gradient)."""
    every = range(len(s))
    pairs = [(i, j) for i in every for j in every if labels[i] > labels[j]]
    value, gradient = 0.0, np.zeros(len(s))
    for i, j in pairs:
        x = s[j] - s[i]
        root = np.hypot(1, x)
        hinge = x + root if x > 0 else 1 / (root - x)
        value += hinge / len(pairs)
        slope = hinge / root / len(pairs)
        gradient[i] -= slope
        gradient[j] += slope
    return value, gradient


DEFINITIONS = {"PairSmoothHinge": pair_smooth_hinge}
