"""Non-negative weights of scores: those with the least pair loss on queries that the scores have not been learned from.

The loss of a weighted sum of scores is convex in the weights. Each step minimizes a quadratic function that is above
the loss nearby: the matrix of second derivatives by documents is at most twice its diagonal, because every pair of
documents adds (u_i - u_j)^2 <= 2 u_i^2 + 2 u_j^2. A step at whose end the loss rises is halved: by convexity, the loss
is lower than before where it still falls. So no value of the loss is needed, and its kernel is not compiled.
"""

import math
from itertools import product

import numpy as np

from rankwise._arrays import Matrix, Vector
from rankwise.losses import GradedPairs
from rankwise.queries.queries import Queries
from rankwise.rankers.boosting.objectives import Derivatives

# Steps at most, and the relative change of weights that ends them.
_STEPS, _CHANGE = 100, 1e-6
# What makes the minimum unique, where members have the same scores.
_UNIQUE = 1e-6


def pair_weights(queries: Queries, scores: Matrix, penalty: float, n_jobs: int | None) -> Vector:
    """The weights c >= 0 that minimize the mean pair loss of sum_k c_k s_k + penalty / 2 sum_k (c_k - mean of c)^2.

    Parameters
    ----------
    queries : Queries
        Judged queries.
    scores : ndarray of shape (n_members, n_documents)
        The scores s_k of every document, of deviation 1 within queries.
    penalty : float
        What draws the weights toward each other.
    n_jobs : int or None
        Number of threads.

    Returns
    -------
    ndarray of shape (n_members,)
        The weights; 0 if no query has two labels.
    """
    count = len(scores)
    derivatives = Derivatives.of(GradedPairs(), queries, n_jobs)
    scale = math.fsum(queries.query_weight) * float(np.abs(queries.labels()).max(initial=0.0))
    if queries.document_weight is not None:  # the loss is in their unit
        scale *= float(queries.document_weight.mean())
    weight = np.full(count, 1.0 / count)
    if not scale:
        return np.zeros(count)
    toward = penalty * (np.eye(count) - 1.0 / count) + _UNIQUE * np.eye(count)

    def derivatives_at(own: Vector) -> tuple[Vector, Matrix]:
        gradient, curvature = derivatives.at(own @ scores, 0, n_jobs)
        bend = 2.0 * (scores * curvature) @ scores.T / scale
        return scores @ gradient / scale + toward @ own, bend + toward

    if not derivatives.at(weight @ scores, 0, n_jobs)[0].any():
        return np.zeros(count)
    slope, bend = derivatives_at(weight)
    for _ in range(_STEPS):
        step = _minimize_quadratic(bend, slope, weight) - weight
        while np.abs(step).max() > _CHANGE * weight.max():
            slope, bend = derivatives_at(weight + step)
            if slope @ step <= 0:
                break
            step = step / 2
        else:
            return weight
        weight = weight + step
    return weight


def _minimize_quadratic(bend: Matrix, slope: Vector, weight: Vector) -> Vector:
    """The x >= 0 with the least slope . (x - weight) + (x - weight) bend (x - weight) / 2: the best of all supports."""
    pull, best, least = bend @ weight - slope, np.zeros(len(weight)), 0.0
    for support in product((False, True), repeat=len(weight)):
        free = np.flatnonzero(support)
        point = np.zeros(len(weight))
        point[free] = np.linalg.solve(bend[np.ix_(free, free)], pull[free])
        value = -0.5 * float(pull @ point)  # of x bend x / 2 - pull . x at a stationary point
        if value < least and (point >= 0).all():
            best, least = point, value
    return best
