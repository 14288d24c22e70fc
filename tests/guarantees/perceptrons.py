"""The perceptrons straight from their definitions: loops over documents, pessimistic ties, nothing clever."""

from dataclasses import dataclass, field

import numpy as np

from rankwise.losses import SLAM, MaxPair
from rankwise.queries.selection import Query


def classes(loss, labels):
    """The labels that decide what is above what: relevance for AP, the labels themselves otherwise."""
    return loss.row_values(labels) if isinstance(loss, SLAM) and loss.is_ap else labels


def is_mistake(scores, labels, k=None):
    """Whether the first k labels of the pessimistic order differ from those of the ideal one."""
    order = sorted(range(len(labels)), key=lambda i: (-scores[i], labels[i]))
    return [labels[i] for i in order][:k] != sorted(labels, reverse=True)[:k]


def weights_of(loss, labels):
    return loss.prepare(labels, np.array([0, len(labels)]), None)[1]


@dataclass
class Slam:
    """The perceptron of a SLAM loss; ``weight`` is the sum of v over the active documents, round by round."""

    loss: SLAM
    eta: float = 1.0
    w: np.ndarray | None = None
    mistakes: list = field(default_factory=list)
    losses: list = field(default_factory=list)
    weight: list = field(default_factory=list)
    gradients: list = field(default_factory=list)
    iterates: list = field(default_factory=list)

    def predict(self, X):
        return X @ (np.zeros(X.shape[1]) if self.w is None else self.w)

    def partial_fit(self, query):
        X, labels = np.asarray(query.X, dtype=float), np.asarray(query.y, dtype=float)
        self.w = np.zeros(X.shape[1]) if self.w is None else self.w
        self.iterates.append(self.w)
        s, grades = self.predict(X), classes(self.loss, labels)
        if not is_mistake(s, grades, self.loss.k):
            return
        active, z = 0.0, np.zeros(X.shape[1])
        v = weights_of(self.loss, labels)
        for i in range(len(s)):
            lower = [j for j in range(len(s)) if grades[j] < grades[i]]
            if not lower:
                continue
            top = max(lower, key=lambda j: (s[j], -j))
            slack = self.loss.margin + s[top] - s[i]
            if slack > 0 or (self.loss.margin == 0 and slack == 0):
                active += v[i]
                z += v[i] * (X[top] - X[i])
        self.w = self.w - self.eta * z
        self.mistakes.append(query)
        self.losses.append(pessimistic_loss(self.loss, s, labels))
        self.weight.append(active)
        self.gradients.append(z)


@dataclass
class WorstPair:
    """The perceptron of the largest violated pair."""

    eta: float = 1.0
    w: np.ndarray | None = None
    mistakes: list = field(default_factory=list)

    def predict(self, X):
        return X @ (np.zeros(X.shape[1]) if self.w is None else self.w)

    def partial_fit(self, query):
        X, labels = np.asarray(query.X, dtype=float), np.asarray(query.y, dtype=float)
        self.w = np.zeros(X.shape[1]) if self.w is None else self.w
        s = self.predict(X)
        if not is_mistake(s, labels):
            return
        pairs = [(i, j) for i in range(len(s)) for j in range(len(s)) if labels[i] > labels[j]]
        i, j = max(pairs, key=lambda pair: s[pair[1]] - s[pair[0]])
        self.w = self.w + self.eta * (X[i] - X[j])
        self.mistakes.append(query)


def pessimistic_loss(loss, scores, labels):
    """1 - the measure that the weights are for, whatever the perceptron's margin."""
    measure = SLAM(weights=loss.weights, k=loss.k).upper_bounds
    return 1 - measure(scores, labels, ties="pessimistic")


def cumulative(surrogate, queries, u):
    """F(u): the surrogate at margin 1 over these rounds."""
    return sum(surrogate(np.asarray(query.X) @ u, query.y)[0] for query in queries)


def slam_at_one(loss):
    return SLAM(weights=loss.weights, k=loss.k)


worst_pair_at_one = MaxPair()


def query(X, y):
    X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    return Query(X=X, y=y, qid=0, docid=None, weight=1.0, feature_names=None)


def longest_row(queries):
    return max(np.sqrt((np.asarray(one.X) ** 2).sum(axis=1)).max() for one in queries)
