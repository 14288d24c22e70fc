"""Losses straight from their definitions: loops over documents and pairs, one (sub)gradient each."""

import importlib
import pkgutil

import numpy as np

import tests.oracles
from rankwise.losses import SLAM, ListNet, Loss, MaxPair, PairHinge
from rankwise.measures.ndcg import discounts


def slam_v(loss: SLAM, labels: np.ndarray) -> np.ndarray:
    """v by document, from the table of rules."""
    m = len(labels)
    order = sorted(range(m), key=lambda i: (-labels[i], i))
    v = np.zeros(m)
    if len(set(labels)) == 1:
        return v
    if loss.is_ap:
        r = int(sum(labels))
        for place, i in enumerate(order[:r], 1):
            v[i] = 1 / r if loss.weights == "ap_003" else (m - r) / (m - r + place) / r
    else:
        gain = loss.row_values(labels)
        discount = discounts(m, loss.discount)
        discount[m if loss.k is None else loss.k :] = 0
        ideal = sum(gain[i] * discount[place] for place, i in enumerate(order))
        for place, i in enumerate(order):
            if ideal > 0 and loss.weights.startswith("ndcg_003"):
                v[i] = gain[i] * discount[place] / ideal
            elif ideal > 0:
                v[i] = (gain[i] - min(gain)) * (discount[place] - discount[-1]) / ideal
    if loss.weights.endswith("_sym"):
        for label in set(labels):
            v[labels == label] = v[labels == label].mean()
    return v


def slam(loss: SLAM, s: np.ndarray, labels: np.ndarray) -> tuple[float, np.ndarray]:
    labels = loss.row_values(labels) if loss.is_ap else labels
    v, total, gradient = slam_v(loss, labels), 0.0, np.zeros(len(s))
    for i in range(len(s)):
        lower = [j for j in range(len(s)) if labels[j] < labels[i]]
        if not lower:
            continue
        k = max(lower, key=lambda j: (s[j], -j))
        slack = loss.margin + s[k] - s[i]
        if slack > 0:
            total += v[i] * slack
            gradient[k] += v[i]
            gradient[i] -= v[i]
    return total, gradient


def pairs(labels: np.ndarray) -> list[tuple[int, int]]:
    return [(i, j) for i in range(len(labels)) for j in range(len(labels)) if labels[i] > labels[j]]


def max_pair(loss: MaxPair, s: np.ndarray, labels: np.ndarray) -> tuple[float, np.ndarray | None]:
    """The gradient is None where several pairs are the worst, within rounding: any of them will do."""
    gradient = np.zeros(len(s))
    value = max((loss.margin + (s[j] - s[i]) for i, j in pairs(labels)), default=0.0)
    if value <= 0:
        return 0.0, gradient
    worst = [(i, j) for i, j in pairs(labels) if loss.margin + (s[j] - s[i]) >= value - 1e-9 * (1 + value)]
    if len(worst) > 1:
        return value, None
    ((i, j),) = worst
    gradient[j], gradient[i] = 1.0, -1.0
    return value, gradient


def pair_hinge(loss: PairHinge, s: np.ndarray, labels: np.ndarray) -> tuple[float, np.ndarray]:
    total, gradient = 0.0, np.zeros(len(s))
    for i, j in pairs(labels):
        slack = 1 + (s[j] - s[i])
        if slack > 0:
            total += slack**2 if loss.squared else slack
            gradient[j] += 2 * slack if loss.squared else 1
            gradient[i] -= 2 * slack if loss.squared else 1
    count = len(pairs(labels)) if loss.per_pair and pairs(labels) else 1
    return total / count, gradient / count


def listnet(loss: ListNet, s: np.ndarray, labels: np.ndarray) -> tuple[float, np.ndarray]:
    if len(set(labels)) == 1:
        return 0.0, np.zeros(len(s))

    def log_softmax(x: np.ndarray) -> np.ndarray:
        return x - np.logaddexp.reduce(x)

    target = log_softmax(loss.row_values(labels))
    own = np.exp(target) @ target if loss.form == "kl" else 0.0
    return own - np.exp(target) @ log_softmax(s), np.exp(log_softmax(s)) - np.exp(target)


DEFINITIONS = {"SLAM": slam, "MaxPair": max_pair, "PairHinge": pair_hinge, "ListNet": listnet}
for _module in pkgutil.iter_modules(tests.oracles.__path__):
    if _module.name.startswith("losses_"):  # a family of losses may have its definitions in a file of its own
        DEFINITIONS |= importlib.import_module(f"tests.oracles.{_module.name}").DEFINITIONS


def plain(loss: Loss, scores, labels) -> tuple[float, np.ndarray | None]:
    """(value, gradient), the gradient None where several are right."""
    return DEFINITIONS[loss.name](loss, np.asarray(scores, dtype=float), np.asarray(labels, dtype=float))
