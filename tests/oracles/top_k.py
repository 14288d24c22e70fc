"""Learning from the first k labels straight from its definition: loops over terms, sets and rounds."""

import itertools
import math

import numpy as np

_WORD = (1 << 64) - 1
_STRIDE = 0x9E3779B97F4A7C15


def terms_of(loss, s, y):
    """{documents: (value, gradient)} of the terms of a loss, none of which is left out where labels are equal."""
    every = range(len(s))
    found = {}
    if loss.name == "GivenSoftmax":
        p = np.exp(s - np.max(s)) / np.exp(s - np.max(s)).sum()
        for d in every:
            found[(d,)] = (-y[d] * math.log(p[d]), y[d] * (p - np.eye(len(s))[d]))
    elif loss.name == "PropensityHinge":
        for d in every:
            value, gradient = 0.0, np.zeros(len(s))
            for j in every:
                if j != d and 1 - (s[d] - s[j]) > 0:
                    value += y[d] * (1 - (s[d] - s[j]))
                    gradient[j] += y[d]
                    gradient[d] -= y[d]
            found[(d,)] = (value, gradient)
    elif loss.name == "SmoothPrecision":
        for d in every:  # a sum over relevant documents: what one alone would give
            value, gradient = loss(s, 9.0 * np.eye(len(s))[d])
            relevant = y[d] > 0 if loss.rel is None else y[d] >= loss.rel
            found[(d,)] = (relevant * (value - 1), relevant * gradient)
        found[()] = (1.0, np.zeros(len(s)))
    else:
        for i, j in itertools.permutations(every, 2):
            if y[i] <= y[j]:
                continue
            x = s[j] - s[i]
            if loss.name == "PairLogistic":
                value, slope = math.log1p(math.exp(x)), 1 / (1 + math.exp(-x))
            elif loss.name == "GradedPairHinge":
                weight = {pair[:2]: pair[2] for pair in loss.weights}.get((y[i], y[j]), 1.0)
                value, slope = weight * max(0.0, 1 + x), weight * float(1 + x > 0)
            elif loss.squared:
                value, slope = max(0.0, 1 + x) ** 2, 2 * max(0.0, 1 + x)
            else:
                value, slope = max(0.0, 1 + x), float(1 + x > 0)
            found[(i, j)] = (value, slope * (np.eye(len(s))[j] - np.eye(len(s))[i]))
    return found


def whole(loss, s, y):
    """(value, gradient) of the sum of the terms."""
    terms = terms_of(loss, s, y).values()
    return sum(value for value, _ in terms), sum((gradient for _, gradient in terms), np.zeros(len(s)))


def top_of(s, k):
    """The first k documents by decreasing scores, equal scores in their order."""
    return set(sorted(range(len(s)), key=lambda i: (-s[i], i))[:k])


def estimate(loss, s, y, seen, k, explore):
    """(value, gradient) estimated from the labels of the documents ``seen``."""
    m, r, top = len(s), loss.labels_per_term, top_of(s, k)
    if m <= k:
        return loss(s, y)
    share = math.comb(m - r, k - r) / math.comb(m, k)
    total, slope = 0.0, np.zeros(m)
    for documents, (value, gradient) in terms_of(loss, s, y).items():
        if not documents:  # what no label decides is known
            total, slope = total + value, slope + gradient
        elif set(documents) <= seen:
            p = (1 - explore) * (set(documents) <= top) + explore * share
            total, slope = total + value / p, slope + gradient / p
    return total, slope


def outcomes(s, k, explore):
    """(probability, documents seen) over the coin and all orders of the documents."""
    m = len(s)
    yield (1 - explore if m > k else 1.0), top_of(s, k)
    if m > k:
        for order in itertools.permutations(range(m)):
            yield explore / math.factorial(m), set(order[:k])


def _mix(word):
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _WORD
    return word ^ (word >> 31)


def unit(key, draw, number):
    """A number of [0, 1) that depends on its arguments alone."""
    word = _mix((key + _STRIDE * draw) & _WORD)
    return (_mix((word + _STRIDE * (number + 1)) & _WORD) >> 11) * 2.0**-53


def seen_in(s, k, explore, key, draw):
    """The documents seen in a round."""
    m = len(s)
    if m <= k or unit(key, draw, 0) >= explore:
        return top_of(s, k)
    by_score = sorted(range(m), key=lambda i: (-s[i], i))
    for p in range(k):
        q = p + int(unit(key, draw, p + 1) * (m - p))
        by_score[p], by_score[q] = by_score[q], by_score[p]
    return set(by_score[:k])


def run(loss, lists, *, k, explore, eta, key, max_norm=math.inf, decreasing=True):
    """The weights after online gradient descent over (X, y), and the sum of the estimated losses."""
    w, total = np.zeros(lists[0][0].shape[1]), 0.0
    for t, (X, y) in enumerate(lists, 1):
        s = X @ w
        value, gradient = estimate(loss, s, y, seen_in(s, k, explore, key, t), k, explore)
        w = w - eta / (math.sqrt(t) if decreasing else 1) * (X.T @ gradient)
        if np.linalg.norm(w) > max_norm:
            w = w * max_norm / np.linalg.norm(w)
        total += value
    return w, total
