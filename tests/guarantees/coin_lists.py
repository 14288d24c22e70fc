"""Judged lists whose true risk is known exactly, whatever w: what uniform bounds are tried on.

List k of K, drawn evenly, has two rows e_k and -e_k and m - 2 rows of zeros; a coin that falls on the first row with
chance p_k says which of the two is relevant. The ramp loss of the pair is between 0 and 1, and

    phi = clip(1/2 - sign (s_1 - s_2)/2, 0, 1) = clip(1/2 - sign w_k, 0, 1)

has the gradient (-1/2, 1/2) at most: 1-Lipschitz in the largest score, 1/sqrt(2)-Lipschitz in the l2 norm. With fair
coins every w has the risk 1/2, and whatever is learned from a sample is an illusion.
"""

import math
from dataclasses import dataclass

import numpy as np

L2, G, RADIUS, B = math.sqrt(0.5), 1.0, 1.0, 1.0


@dataclass
class Samples:
    """Many samples at once: which list, and which of its rows is relevant (+1 the first, -1 the second)."""

    lists: np.ndarray
    signs: np.ndarray
    K: int

    def totals(self) -> np.ndarray:
        """Sum of signs for each sample and list."""
        repetitions = len(self.lists)
        found = np.zeros((repetitions, self.K))
        np.add.at(found, (np.arange(repetitions)[:, None], self.lists), self.signs)
        return found

    def risk(self, w: np.ndarray) -> np.ndarray:
        """Mean ramp loss of each sample at its own w."""
        return ramp(self.signs * np.take_along_axis(w, self.lists, axis=1)).mean(axis=1)


def ramp(margin: np.ndarray) -> np.ndarray:
    return np.clip(0.5 - margin, 0.0, 1.0)


def draw(repetitions: int, n: int, chances: np.ndarray, seed: int) -> Samples:
    random = np.random.default_rng(seed)
    lists = random.integers(0, len(chances), size=(repetitions, n))
    signs = np.where(random.random((repetitions, n)) < chances[lists], 1.0, -1.0)
    return Samples(lists, signs, len(chances))


def true_risk(w: np.ndarray, chances: np.ndarray) -> np.ndarray:
    return (chances * ramp(w) + (1 - chances) * ramp(-w)).mean(axis=1)


def memorized(samples: Samples, W: float) -> np.ndarray:
    """The w of norm W that follows the sample's majority on every list that it has seen."""
    signs = np.sign(samples.totals())
    norms = np.sqrt((signs**2).sum(axis=1, keepdims=True))
    return W * signs / np.maximum(norms, 1.0)


def memorized_fully(samples: Samples) -> np.ndarray:
    """The smallest w with a loss of 0 wherever the sample's majority allows it; its norm is the sample's."""
    return 0.5 * np.sign(samples.totals())


def steepest(totals: np.ndarray, W: float) -> np.ndarray:
    """The minimizer over the l2 ball for W <= 1/2, where the loss is linear: along the sum of signs of each list."""
    return W * totals / np.maximum(np.sqrt((totals**2).sum(axis=1, keepdims=True)), 1e-300)


def most_often(totals: np.ndarray, W1: float) -> np.ndarray:
    """All the weight on the list with the clearest majority: the minimizer over the l1 ball for W1 <= 1/2."""
    best = np.abs(totals).argmax(axis=1)
    w = np.zeros_like(totals)
    rows = np.arange(len(totals))
    w[rows, best] = W1 * np.sign(totals[rows, best])
    return w
