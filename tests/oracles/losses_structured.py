"""Structured hinges from their definitions: rankings tried one by one, or SciPy's assignment solver."""

import itertools

import numpy as np
from scipy.optimize import linear_sum_assignment

from rankwise.losses.structured import SVMMapHinge
from rankwise.losses.structured_ndcg import NDCGHinge


def average_precision(pattern) -> float:
    """AP of a ranking told by which of its positions are relevant."""
    hits = [p for p, relevant in enumerate(pattern, 1) if relevant]
    return sum(found / p for found, p in enumerate(hits, 1)) / len(hits)


def pair_margin(pattern, s_at) -> float:
    """F of a ranking with these scores by position, over pairs of a relevant and an irrelevant document."""
    total = 0.0
    for p, q in itertools.combinations(range(len(pattern)), 2):
        if pattern[p] != pattern[q]:
            total += s_at[p] - s_at[q]  # +(s_k - s_l) if the relevant one is above, -(s_k - s_l) if below
    relevant = sum(pattern)
    return total / (relevant * (len(pattern) - relevant))


def svmmap(loss: SVMMapHinge, s: np.ndarray, labels: np.ndarray) -> tuple[float, np.ndarray | None]:
    """All places for the relevant documents, each class by decreasing score; the gradient None where several tie."""
    m, relevant = len(s), loss.row_values(labels)
    r = int(relevant.sum())
    if r in (0, m):
        return 0.0, np.zeros(m)
    a = sorted(s[relevant == 1], reverse=True)
    b = sorted(s[relevant == 0], reverse=True)
    perfect = pair_margin([1] * r + [0] * (m - r), a + b)
    values = []
    for places in itertools.combinations(range(m), r):
        pattern = [int(p in places) for p in range(m)]
        left = {1: iter(a), 0: iter(b)}
        s_at = [next(left[kind]) for kind in pattern]
        values.append(1 - average_precision(pattern) + pair_margin(pattern, s_at) - perfect)
    return max(values), None


def ndcg_hinge_costs(loss: NDCGHinge, s: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, float] | None:
    """The bracket for ranking pi is 1 + sum_i C[i, pi_i] - c; None where every ranking is perfect."""
    m, gain = len(s), loss.row_values(labels)
    k = m if loss.k is None else min(loss.k, m)
    a = np.array([max(k + 1 - p, 0) for p in range(1, m + 1)], dtype=float)
    discount = np.array([d if p < k else 0.0 for p, d in enumerate(loss.table(m))])
    perfect = sorted(range(m), key=lambda i: (-gain[i], i))
    ideal = sum(gain[i] * discount[p] for p, i in enumerate(perfect))
    if ideal <= 0 or len(set(gain)) == 1:
        return None
    if loss.normalized:
        a *= 2 / np.abs(a - a[::-1]).sum()
    target = np.zeros(m)
    target[perfect] = a
    if loss.symmetric:
        target = np.array([target[gain == own].mean() for own in gain])
    return np.outer(s, a) - np.outer(gain, discount) / ideal, float(s @ target)


def ndcg_hinge(loss: NDCGHinge, s: np.ndarray, labels: np.ndarray) -> tuple[float, np.ndarray | None]:
    found = ndcg_hinge_costs(loss, s - s.mean(), labels)
    if found is None:
        return 0.0, np.zeros(len(s))
    costs, constant = found
    rows, columns = linear_sum_assignment(costs, maximize=True)
    return 1 + costs[rows, columns].sum() - constant, None


DEFINITIONS = {"SVMMapHinge": svmmap, "NDCGHinge": ndcg_hinge}
