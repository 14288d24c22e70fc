"""Smooth AP and soft ranks straight from their definitions: loops over documents, pairs, and outcomes."""

import itertools
import math

import numpy as np


def logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def normal_cdf(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2))


def normal_density(x: float) -> float:
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def outranked(s, sigma: float, noise: str = "sigmoid") -> tuple[np.ndarray, np.ndarray]:
    """P[i, j] that j comes out above i, and its slope in s_j; zero on the diagonal."""
    m = len(s)
    P, slope = np.zeros((m, m)), np.zeros((m, m))
    for i, j in itertools.permutations(range(m), 2):
        if noise == "sigmoid":
            x = (s[j] - s[i]) / sigma
            P[i, j], slope[i, j] = logistic(x), logistic(x) * logistic(-x) / sigma
        else:
            spread = math.sqrt(2) * sigma
            x = (s[j] - s[i]) / spread
            P[i, j], slope[i, j] = normal_cdf(x), normal_density(x) / spread
    return P, slope


def smooth_ap(loss, s, labels) -> tuple[float, np.ndarray]:
    relevant = loss.row_values(labels)
    m, r = len(s), int(relevant.sum())
    if r in (0, m):
        return 0.0, np.zeros(m)
    return (by_indicators if loss.form == "indicator" else by_ranks)(loss.sigma, s, relevant)


def by_ranks(sigma: float, s, relevant) -> tuple[float, np.ndarray]:
    r, (P, slope) = relevant.sum(), outranked(s, sigma)
    n, rank = 1 + P @ relevant, 1 + P.sum(axis=1)
    W = relevant[:, None] * slope * (relevant[None, :] / rank[:, None] - (n / rank**2)[:, None])
    return 1 - (relevant * n / rank).sum() / r, -(W.sum(axis=0) - W.sum(axis=1)) / r


def by_indicators(sigma: float, s, relevant) -> tuple[float, np.ndarray]:
    """The chain rule through every h_ij and every sorted score, one position after the other."""
    m, r = len(s), relevant.sum()
    order = sorted(range(m), key=lambda i: (-s[i], i))
    rho, jacobian = np.zeros(m), np.zeros((m, m))  # jacobian[j, p] = d rho_j / d s_p
    for j, own in enumerate(order):
        gap = s - s[own]
        with np.errstate(over="ignore", under="ignore"):
            e = np.exp(-(gap**2) / sigma)
        h = e / e.sum()
        rho[j] = h @ relevant
        for p in range(m):
            # h_i moves by h_i ([i = p] - h_p) for a change of the exponent of p
            change = sum(relevant[i] * h[i] * ((i == p) - h[p]) for i in range(m)) * -2 * gap[p] / sigma
            jacobian[j, p] += change
            jacobian[j, own] -= change
    A, slope = 0.0, np.zeros(m)
    for j in range(m):
        before = rho[: j + 1].sum()
        A += rho[j] * before / (j + 1) / r
        slope[j] += before / (j + 1) / r
        slope[: j + 1] += rho[j] / (j + 1) / r
    return 1 - A, -(slope @ jacobian)


def smooth_ap_as_printed(sigma: float, s, relevant) -> float:
    """The equation as the paper prints it: the relevant documents above i are summed over j = i too, as 1/2."""
    s, relevant = np.asarray(s, dtype=float), np.asarray(relevant, dtype=float)
    P, _ = outranked(s, sigma)
    n, rank = (P + np.eye(len(s)) / 2) @ relevant, 1 + P.sum(axis=1)
    return float((relevant * n / rank).sum() / relevant.sum())


def ideal(gain, discount) -> float:
    return sum(g * d for g, d in zip(sorted(gain, reverse=True), discount, strict=True))


def soft_rank_ndcg(loss, s, labels) -> tuple[float, np.ndarray | None]:
    """The gradient is None where a rank is at a kink of the discount, within rounding."""
    m, gain = len(s), loss.row_values(labels)
    if len(set(gain)) == 1:
        return 0.0, np.zeros(m)
    discount = loss.table(m)
    Z = ideal(gain, discount)
    P, slope = outranked(s, loss.sigma, loss.noise)
    rank = 1 + P.sum(axis=1)
    if loss.discount == "log2":
        D, steepness = 1 / np.log2(1 + rank), -math.log(2) / ((1 + rank) * np.log(1 + rank) ** 2)
    else:
        D = np.interp(rank, np.arange(1, m + 1), discount)
        left = np.clip(np.floor(rank).astype(int), 1, m - 1)
        steepness = discount[left] - discount[left - 1]
    value = 1 - float(gain @ D) / Z
    kinks = loss.discount != "log2" and (np.abs(rank - np.round(rank)) < 1e-9).any()
    W = (gain * steepness / Z)[:, None] * slope
    return value, None if kinks else -(W.sum(axis=0) - W.sum(axis=1))


def soft_rank(loss, s, labels) -> tuple[float, np.ndarray]:
    """The rank distribution by adding the others one at a time; the slope in pi_ij by leaving j out."""
    m, gain = len(s), loss.row_values(labels)
    if len(set(gain)) == 1:
        return 0.0, np.zeros(m)
    discount = np.array([d if loss.k is None or p < loss.k else 0.0 for p, d in enumerate(loss.table(m))])
    Z = ideal(gain, discount)
    if Z == 0:
        return 0.0, np.zeros(m)
    P, slope = outranked(s, loss.sigma, "gaussian")
    A, gradient = 0.0, np.zeros(m)
    for i in range(m):
        A += gain[i] / Z * float(rank_distribution(np.delete(P[i], i)) @ discount)
        for j in range(m):
            if j != i:
                without = rank_distribution(np.delete(P[i], [i, j]))
                change = gain[i] / Z * float(without @ (discount[1:] - discount[:-1])) * slope[i, j]
                gradient[j] += change
                gradient[i] -= change
    return 1 - A, -gradient


def rank_distribution(above) -> np.ndarray:
    """p(rank - 1) when independent others come out above with these probabilities."""
    p = np.zeros(len(above) + 1)
    p[0] = 1.0
    for probability in above:
        p[1:] = p[1:] * (1 - probability) + p[:-1] * probability
        p[0] *= 1 - probability
    return p


DEFINITIONS = {"SmoothAP": smooth_ap, "SoftRankNDCG": soft_rank_ndcg, "SoftRank": soft_rank}
