"""PermuRank by brute force: every permutation, every pair of orders, and a general convex solver."""

from itertools import permutations

import numpy as np
import piqp

from rankwise.measures.compute import ScoredLists, measure_lists


def all_orders(size):
    """Every order of so many documents, documents by position, one a row."""
    return np.array(list(permutations(range(size))), dtype=np.int64).reshape(-1, size)


def reached(measure, orders, labels):
    """The measure of every order."""
    many, size = orders.shape
    at = np.asarray(labels, dtype=float)[orders]
    lists = ScoredLists(np.tile(np.arange(size, 0.0, -1.0), many), at.ravel(), np.arange(many + 1) * size)
    return measure_lists([measure], lists, n_jobs=1)[0]


def pair_score(order, scores):
    """(1 / (n (n - 1))) sum over pairs of +-(s_k - s_l), + where k stands above l, pair by pair."""
    n = len(order)
    total = sum(scores[order[p]] - scores[order[q]] for p in range(n) for q in range(p + 1, n))
    return total / (n * (n - 1)) if n > 1 else 0.0


def class_score(order, scores, relevant):
    """(1 / (N1 N0)) sum over relevant k and other l of +-(s_k - s_l)."""
    position = np.argsort(order)
    inside, outside = np.flatnonzero(relevant), np.flatnonzero(~relevant)
    total = sum((scores[k] - scores[i]) * (1 if position[k] < position[i] else -1) for k in inside for i in outside)
    return total / (len(inside) * len(outside))


def vector(order, X, score=pair_score, **options):
    """Phi of an order: its score under every feature alone."""
    return np.array([score(order, X[:, j], **options) for j in range(X.shape[1])])


def hinge_pairs(perfect, imperfect, missed):
    """(1/B) sum over b, c of missed_c [1 - (perfect_b - imperfect_c)]_+, pair by pair."""
    total = sum(m * max(0.0, 1 - (b - c)) for b in perfect for c, m in zip(imperfect, missed, strict=True))
    return total / len(perfect)


def hinge_largest(perfect, imperfect, missed):
    """The largest of these hinges."""
    return max(m * max(0.0, 1 - (b - c)) for b in perfect for c, m in zip(imperfect, missed, strict=True))


def minimum(lists, alpha, largest=False):
    """The least (alpha/2) norm(w)^2 + sum over lists of weight times hinge, as one quadratic programme.

    ``lists``: (weight, perfect vectors, imperfect vectors, missed) each. Unknowns are w and slacks, one a pair of
    orders with slack >= 1 - w . (Phi_b - Phi_c), or one a list with slack >= missed_c (1 - w . (Phi_b - Phi_c)).
    """
    rows, bounds, owner, costs = [], [], [], []
    for weight, perfect, imperfect, missed in lists:
        if largest:
            costs.append(weight)
        for b in perfect:
            for c, m in zip(imperfect, missed, strict=True):
                margin = m if largest else 1.0
                if not largest:
                    costs.append(weight * m / len(perfect))
                rows.append(margin * (b - c))
                bounds.append(margin)
                owner.append(len(costs) - 1)
    return programme(np.array(rows), np.array(bounds), np.array(owner), np.array(costs), alpha)


def programme(A, bound, owner, cost, alpha, center=None):
    """(w, least of (alpha/2) norm(w - center)^2 + cost . slack) with slack_owner >= bound - A w, slack >= 0."""
    features, slacks = A.shape[1], len(cost)
    center = np.zeros(features) if center is None else center
    P = np.zeros((features + slacks, features + slacks), order="F")
    P[:features, :features] = alpha * np.eye(features)
    G = np.zeros((len(A), features + slacks), order="F")
    G[:, :features] = -A
    G[np.arange(len(A)), features + owner] = -1.0
    low = np.concatenate([np.full(features, -1e8), np.zeros(slacks)])
    solver = piqp.DenseSolver()
    for name in ("eps_abs", "eps_rel", "eps_duality_gap_abs", "eps_duality_gap_rel"):
        setattr(solver.settings, name, 1e-10)
    solver.setup(P, np.concatenate([-alpha * center, cost]), G=G, h_u=-bound, x_l=low)
    solver.solve()
    w = np.array(solver.result.x)[:features]
    slack = np.zeros(slacks)
    np.maximum.at(slack, owner, bound - A @ w)
    return w, 0.5 * alpha * (w - center) @ (w - center) + float(cost @ slack)
