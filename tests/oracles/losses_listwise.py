"""ListMLE, RankCosine and top-k ListNet straight from their definitions."""

from itertools import permutations

import numpy as np

from rankwise.losses import ListMLE, ListNetTopK, RankCosine


def list_mle(loss: ListMLE, s: np.ndarray, labels: np.ndarray) -> tuple[float, np.ndarray]:
    """A draw for every document that has a less relevant one: softmax over itself and those."""
    total, draws, gradient = 0.0, 0, np.zeros(len(s))
    for i in range(len(s)):
        rivals = [j for j in range(len(s)) if labels[j] < labels[i]]
        if rivals:
            log_all = np.logaddexp.reduce([s[j] for j in [i, *rivals]])
            total += log_all - s[i]
            draws += 1
            for j in [i, *rivals]:
                gradient[j] += np.exp(s[j] - log_all)
            gradient[i] -= 1
    share = 1 / draws if loss.per_draw and draws else 1.0
    return total * share, gradient * share


def rank_cosine(loss: RankCosine, s: np.ndarray, labels: np.ndarray) -> tuple[float, np.ndarray]:
    if np.ptp(labels) == 0:
        return 0.0, np.zeros(len(s))
    t = labels if loss.target == "labels" else 2.0**labels - 1
    t = t - t.mean()
    a, x = t / np.linalg.norm(t), s - s.mean()
    norm = np.sqrt(x @ x + loss.epsilon**2)
    return (1 - a @ x / norm) / 2, -(a / norm - x * (a @ x) / norm**3) / 2


def list_net_top_k(loss: ListNetTopK, s: np.ndarray, labels: np.ndarray) -> tuple[float, np.ndarray]:
    """The sum over all ordered lists of k documents."""
    m = len(s)
    if np.ptp(labels) == 0:
        return 0.0, np.zeros(m)

    def log_probability(x, order):
        """log P(order), and its gradient with respect to x."""
        total, gradient, left = 0.0, np.zeros(m), list(range(m))
        for j in order:
            log_all = np.logaddexp.reduce(x[left])
            total += x[j] - log_all
            gradient[j] += 1
            gradient[left] -= np.exp(x[left] - log_all)
            left.remove(j)
        return total, gradient

    target = labels if loss.target == "labels" else 2.0**labels - 1
    value, gradient = 0.0, np.zeros(m)
    for order in permutations(range(m), min(loss.k, m)):
        wanted, (given, slope) = log_probability(target, order)[0], log_probability(s, order)
        value += np.exp(wanted) * ((wanted if loss.form == "kl" else 0.0) - given)
        gradient -= np.exp(wanted) * slope
    return value, gradient


DEFINITIONS = {"ListMLE": list_mle, "RankCosine": rank_cosine, "ListNetTopK": list_net_top_k}
