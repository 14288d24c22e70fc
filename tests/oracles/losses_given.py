"""The losses that are linear in the labels, straight from their definitions."""

import numpy as np

from rankwise.losses import GivenSoftmax, PropensityHinge


def propensity_hinge(loss: PropensityHinge, s: np.ndarray, labels: np.ndarray) -> tuple[float, np.ndarray]:
    total, gradient = 0.0, np.zeros(len(s))
    if np.ptp(labels) == 0:
        return total, gradient
    for d in range(len(s)):
        for j in range(len(s)):
            if j != d and 1 + (s[j] - s[d]) > 0:
                total += labels[d] * (1 + (s[j] - s[d]))
                gradient[d] -= labels[d]
                gradient[j] += labels[d]
    return total, gradient


def given_softmax(loss: GivenSoftmax, s: np.ndarray, labels: np.ndarray) -> tuple[float, np.ndarray]:
    if np.ptp(labels) == 0:
        return 0.0, np.zeros(len(s))
    log_p = s - s.max() - np.log(np.exp(s - s.max()).sum())
    return -float(labels @ log_p), labels.sum() * np.exp(log_p) - labels


DEFINITIONS = {"PropensityHinge": propensity_hinge, "GivenSoftmax": given_softmax}
