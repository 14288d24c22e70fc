"""The pair hinge with weights of grade pairs, pair by pair."""

import numpy as np

from rankwise.losses import GradedPairHinge


def graded_pair_hinge(loss: GradedPairHinge, s: np.ndarray, labels: np.ndarray) -> tuple[float, np.ndarray]:
    tau = {(better, worse): weight for better, worse, weight in loss.weights}
    total, count, gradient = 0.0, 0, np.zeros(len(s))
    for i in range(len(s)):
        for j in range(len(s)):
            if labels[i] > labels[j]:
                count += 1
                weight = tau.get((labels[i], labels[j]), 1.0)
                slack = 1 + (s[j] - s[i])
                if slack > 0:
                    total += weight * slack
                    gradient[j] += weight
                    gradient[i] -= weight
    divisor = count if loss.per_pair and count else 1
    return total / divisor, gradient / divisor


DEFINITIONS = {"GradedPairHinge": graded_pair_hinge}
