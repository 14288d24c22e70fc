"""TopHinge straight from its definition."""

import numpy as np


def top_hinge(loss, s, labels):
    """(value, gradient), the gradient None where those of several pairs are right."""
    top, every = max(labels), range(len(s))
    slack = {(i, j): 1 + s[j] - s[i] for i in every for j in every if labels[i] == top > labels[j]}
    value, gradient = max([0.0, *slack.values()]), np.zeros(len(s))
    worst = [pair for pair in slack if slack[pair] >= value - 1e-9 * (1 + value)]
    if value > 0:
        i, j = worst[0]
        gradient[i], gradient[j] = -1.0, 1.0
    return value, gradient if len(worst) < 2 else None


DEFINITIONS = {"TopHinge": top_hinge}
