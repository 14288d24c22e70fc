"""StochasticNDCG straight from its definition, the noise by whole numbers of Python."""

import math

import numpy as np

from rankwise.losses import StochasticNDCG
from rankwise.measures.ndcg import discounts, gains

WORD = 2**64 - 1
STEP = 0x9E3779B97F4A7C15


def mixed(word: int) -> int:
    """The finalizer of SplitMix."""
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & WORD
    return word ^ (word >> 31)


def gumbel(loss: StochasticNDCG, draw: int, place: int) -> float:
    """The noise of the document at this place of the set."""
    seed = mixed((loss.random_state + STEP) & WORD)
    stream = mixed((mixed(seed ^ loss.iteration) + STEP * (draw + 1)) & WORD)
    bits = mixed(stream ^ mixed((place + STEP) & WORD)) >> 12
    return -math.log(-math.log((bits + 0.5) / 2**52))


def stochastic_ndcg(loss: StochasticNDCG, s: np.ndarray, labels: np.ndarray) -> tuple[float, np.ndarray]:
    m, gain = len(s), gains(np.asarray(labels, dtype=float), loss.gain)
    discount = discounts(m, loss.discount)
    top = m if loss.k is None else min(loss.k, m)
    ideal = math.fsum(np.sort(gain)[::-1][:top] * discount[:top])
    total, gradient = 0.0, np.zeros(m)
    for draw in range(loss.draws):
        f = [s[i] + loss.beta * gumbel(loss, draw, i) for i in range(m)]
        position = np.empty(m, dtype=int)
        position[sorted(range(m), key=lambda i: (-f[i], i))] = np.arange(m)
        for i in range(m):
            for j in range(m):
                if gain[i] > gain[j] and min(position[i], position[j]) < top:
                    w = (gain[i] - gain[j]) * abs(discount[position[i]] - discount[position[j]]) / ideal / loss.draws
                    total += w * np.logaddexp(0, s[j] - s[i])
                    pull = w * np.exp(-np.logaddexp(0, s[i] - s[j]))
                    gradient[i] -= pull
                    gradient[j] += pull
    return total, gradient


DEFINITIONS = {"StochasticNDCG": stochastic_ndcg}
