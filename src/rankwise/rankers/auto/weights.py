"""Non-negative weights of scores: those with the least pair loss on queries that the scores have not been learned from.

The loss of a weighted sum of scores is convex in the weights. Each step minimizes a quadratic function that is above
the loss nearby: the matrix of second derivatives by documents is at most twice its diagonal, because every pair of
documents adds (u_i - u_j)^2 <= 2 u_i^2 + 2 u_j^2. A step that does not lower the loss is halved.
"""

import math
from itertools import product

import numpy as np

from rankwise._arrays import Matrix, Vector
from rankwise.losses import GradedPairs
from rankwise.losses.compute import loss_lists
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

    def loss(own: Vector) -> float:
        values = loss_lists(derivatives.lists, own @ scores, n_jobs=n_jobs)[0]
        return math.fsum(queries.query_weight * values) / scale + 0.5 * float(own @ toward @ own)

    value = loss(weight)
    for _ in range(_STEPS):
        gradient, curvature = derivatives.at(weight @ scores, 0, n_jobs)
        if not gradient.any():
            return np.zeros(count)
        slope = scores @ gradient / scale + toward @ weight
        bend = 2.0 * (scores * curvature) @ scores.T / scale + toward
        step = _minimize_quadratic(bend, slope, weight) - weight
        largest = float(np.abs(step).max())
        while largest > _CHANGE * float(weight.max()) and not (lower := loss(weight + step)) < value:
            step, largest = step / 2, largest / 2
        if largest <= _CHANGE * float(weight.max()):
            break
        weight, value = weight + step, lower
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
