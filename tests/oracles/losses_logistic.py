"""PairLogistic straight from its definition."""

import numpy as np

from rankwise.losses import PairLogistic


def pair_logistic(loss: PairLogistic, s: np.ndarray, labels: np.ndarray) -> tuple[float, np.ndarray]:
    pairs = [(i, j) for i in range(len(s)) for j in range(len(s)) if labels[i] > labels[j]]
    total, gradient = 0.0, np.zeros(len(s))
    for i, j in pairs:
        x = s[j] - s[i]
        total += np.logaddexp(0, x)
        gradient[j] += np.exp(-np.logaddexp(0, -x))
        gradient[i] -= np.exp(-np.logaddexp(0, -x))
    count = len(pairs) if loss.per_pair and pairs else 1
    return total / count, gradient / count


DEFINITIONS = {"PairLogistic": pair_logistic}
