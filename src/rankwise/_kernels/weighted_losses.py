"""Losses of one query with document weights: a document of weight k counts as k copies of it.

These kernels have the signature of all losses; ``value`` holds the document weights, or for the softmax ``label`` does.
They stand apart from the kernels without weights, which neither slow down nor have more to compile.
"""

import math

import numpy as np

from rankwise._kernels.exp import log1pexp, sigmoid
from rankwise._kernels.machine.jit import kernel
from rankwise._kernels.ragged import number_levels
from rankwise._kernels.sorting import sort_carrying

# ------------------------------------------------------------------------------------------------------- pair hinge

# A node of the tree sums over documents that were added from the highest score down: their weight, the lowest of their
# scores, and how far they are above it, as a weighted sum and as a weighted sum of squares.
_WEIGHT, _LOWEST, _ABOVE, _SQUARES = range(4)


@kernel
def _enter(tree, at, score, weight):
    """Add a document of class ``at``, whose score is not above any added before, to the tree over the classes."""
    at += 1
    while at < len(tree):
        node = tree[at]
        drop = node[_LOWEST] - score
        node[_SQUARES] += drop * (2.0 * node[_ABOVE] + node[_WEIGHT] * drop)
        node[_ABOVE] += node[_WEIGHT] * drop
        node[_WEIGHT] += weight
        node[_LOWEST] = score
        at += at & -at


@kernel
def _slacks_below(tree, at, score):
    """Over all documents j of classes below ``at``: weighted sums of 1, of 1 + s_j - score, and of its square."""
    total, slack, squares = 0.0, 0.0, 0.0
    while at > 0:
        node = tree[at]
        least = 1.0 + (node[_LOWEST] - score)
        total += node[_WEIGHT]
        slack += node[_ABOVE] + node[_WEIGHT] * least
        squares += node[_SQUARES] + least * (2.0 * node[_ABOVE] + node[_WEIGHT] * least)
        at -= at & -at
    return total, slack, squares


@kernel
def _active_pairs(score, weight, place, grade, n_grades, count, slack):
    """For each document the weighted sums over its active pairs with lower-graded documents.

    ``place`` lists the documents by decreasing score. Returns the sum of squares over all pairs.
    """
    size = len(score)
    tree = np.zeros((n_grades + 1, 4))
    entered, total = 0, 0.0
    for p in range(size):
        i = place[p]
        while entered < size and 1.0 + (score[place[entered]] - score[i]) > 0.0:
            j = place[entered]
            if weight[j] > 0.0:
                _enter(tree, grade[j], score[j], weight[j])
            entered += 1
        count[i], slack[i], squares = _slacks_below(tree, grade[i], score[i])
        count[i] *= weight[i]
        slack[i] *= weight[i]
        total += weight[i] * squares
    return total


@kernel
def weighted_pair_hinge(score, label, value, grad, table, params):
    """Pairs weigh w_i w_j; ``params`` are whether the hinge is squared and whether it is divided by their sum."""
    squared, per_pair = params[0] != 0.0, params[1] != 0.0
    size = len(score)
    grade = np.empty(size, np.int64)
    n_grades = number_levels(label, grade)
    members = np.zeros(n_grades)
    for i in range(size):
        members[grade[i]] += value[i]
    pairs, lower = 0.0, 0.0
    for g in range(n_grades):
        pairs += members[g] * lower
        lower += members[g]
    if pairs == 0.0:
        return 0.0
    negated = -score
    key, place = negated.copy(), np.arange(size)
    sort_carrying(key, place, np.empty(size), np.empty(size, np.int64), np.empty(size + 1, np.int64))
    below, better, above, worse = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    squares = _active_pairs(score, value, place, grade, n_grades, below, better)
    _active_pairs(negated, value, place[::-1].copy(), n_grades - 1 - grade, n_grades, above, worse)
    share = 1.0 / pairs if per_pair else 1.0
    for i in range(size):
        grad[i] = share * (2.0 * (worse[i] - better[i]) if squared else above[i] - below[i])
    return share * (squares if squared else better.sum())


@kernel
def weighted_pair_hinge_curved(score, label, value, grad, diagonal, table, params):
    """The squared hinge: its gradient, and 2 times the weight of the active pairs of each document."""
    size = len(score)
    grade = np.empty(size, np.int64)
    n_grades = number_levels(label, grade)
    members = np.zeros(n_grades)
    for i in range(size):
        members[grade[i]] += value[i]
    pairs, lower = 0.0, 0.0
    for g in range(n_grades):
        pairs += members[g] * lower
        lower += members[g]
    if pairs == 0.0:
        return
    negated = -score
    key, place = negated.copy(), np.arange(size)
    sort_carrying(key, place, np.empty(size), np.empty(size, np.int64), np.empty(size + 1, np.int64))
    below, better, above, worse = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    _active_pairs(score, value, place, grade, n_grades, below, better)
    _active_pairs(negated, value, place[::-1].copy(), n_grades - 1 - grade, n_grades, above, worse)
    share = 2.0 / pairs if params[1] != 0.0 else 2.0
    for i in range(size):
        grad[i] = share * (worse[i] - better[i])
        diagonal[i] = share * (below[i] + above[i])


# ---------------------------------------------------------------------------------------------------- pair logistic


@kernel
def weighted_pair_logistic(score, label, value, grad, table, params):
    """Pairs weigh w_i w_j; ``params`` is whether their losses are divided by the sum of these weights."""
    size = len(score)
    total, pairs = 0.0, 0.0
    for i in range(size):
        for j in range(size):
            if label[i] > label[j]:
                weight = value[i] * value[j]
                if weight > 0.0:
                    x = score[j] - score[i]
                    slope = weight * sigmoid(x)
                    total += weight * log1pexp(x)
                    grad[j] += slope
                    grad[i] -= slope
                    pairs += weight
    if pairs == 0.0:
        return 0.0
    share = 1.0 / pairs if params[0] != 0.0 else 1.0
    for i in range(size):
        grad[i] *= share
    return total * share


@kernel
def weighted_pair_logistic_curved(score, label, value, grad, diagonal, table, params):
    """Gradient and second derivatives, pairs as in :func:`weighted_pair_logistic`."""
    size, pairs = len(score), 0.0
    for i in range(size):
        for j in range(size):
            if label[i] > label[j]:
                weight = value[i] * value[j]
                if weight > 0.0:
                    p = sigmoid(score[j] - score[i])
                    slope, bend = weight * p, weight * p * (1.0 - p)
                    grad[j] += slope
                    grad[i] -= slope
                    diagonal[j] += bend
                    diagonal[i] += bend
                    pairs += weight
    if pairs > 0.0 and params[0] != 0.0:
        for i in range(size):
            grad[i] /= pairs
            diagonal[i] /= pairs


# ----------------------------------------------------------------------------------------------------------- softmax


@kernel
def _log_sum(x, weight):
    """log of the sum of w_i e^x_i over documents of positive weight, of which there is one."""
    highest = -np.inf
    for p in range(len(x)):
        if weight[p] > 0.0:
            highest = max(highest, x[p])
    total = 0.0
    for p in range(len(x)):
        if weight[p] > 0.0:
            total += weight[p] * math.exp(x[p] - highest)
    return highest + math.log(total)


@kernel
def weighted_targets(start, rows, label, target, weight, kept, log_target):
    """For every query its weights, 0 throughout where all orders are perfect, and log(e^t / sum of w e^t), by row."""
    for q in range(len(start) - 1):
        own = rows[start[q] : start[q + 1]]
        lowest, highest = np.inf, -np.inf
        for row in own:
            if weight[row] > 0.0:
                lowest, highest = min(lowest, label[row]), max(highest, label[row])
        if not lowest < highest:
            continue
        log_total = _log_sum(target[own], weight[own])
        for row in own:
            kept[row], log_target[row] = weight[row], target[row] - log_total


@kernel
def weighted_softmax(score, label, value, grad, table, params):
    """The cross-entropy of P_i = w_i e^v_i and Q_i = w_i e^s_i / sum; ``label`` holds w, ``value`` holds v."""
    if label.max() == 0.0:
        return 0.0
    log_score = _log_sum(score, label)
    loss = 0.0
    for p in range(len(score)):
        if label[p] > 0.0:
            wanted = label[p] * math.exp(value[p])
            own = value[p] if params[0] != 0.0 else 0.0
            loss += wanted * ((log_score - score[p]) + own)
            grad[p] = label[p] * math.exp(score[p] - log_score) - wanted
    return max(loss, 0.0)


@kernel
def weighted_softmax_curved(score, label, value, grad, diagonal, table, params):
    """Q_i - P_i and Q_i (1 - Q_i), as in :func:`weighted_softmax`."""
    if label.max() == 0.0:
        return
    log_score = _log_sum(score, label)
    for p in range(len(score)):
        if label[p] > 0.0:
            own = min(label[p] * math.exp(score[p] - log_score), 1.0)
            grad[p] = own - label[p] * math.exp(value[p])
            diagonal[p] = own * (1.0 - own)
