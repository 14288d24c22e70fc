"""Many short lists of one length in a single call into compiled code, and all lists there are of a length."""

from functools import cache
from itertools import product

import numpy as np

from rankwise.losses import Loss
from rankwise.losses.compute import PreparedLists, curvature_lists, loss_lists
from rankwise.measures import Measure
from rankwise.measures.compute import ScoredLists, measure_lists


def on_lists(
    loss: Loss, scores: np.ndarray, labels: np.ndarray, weight: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """(values, gradients) of a loss on every row of ``scores``; one row of labels each, or one for all."""
    values, gradients = loss_lists(
        prepared(loss, scores, labels, weight), np.ascontiguousarray(scores).ravel(), n_jobs=1
    )
    return values, gradients.reshape(scores.shape)


def curvature_on_lists(
    loss: Loss, scores: np.ndarray, labels: np.ndarray, weight: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """(gradients, second derivatives) of a loss on every row of ``scores``."""
    both = curvature_lists(prepared(loss, scores, labels, weight), np.ascontiguousarray(scores).ravel(), n_jobs=1)
    return both[0].reshape(scores.shape), both[1].reshape(scores.shape)


def prepared(loss: Loss, scores: np.ndarray, labels: np.ndarray, weight: np.ndarray | None) -> PreparedLists:
    """Lists of one length, a row each."""
    n, m = scores.shape
    judged = np.ascontiguousarray(np.broadcast_to(labels, scores.shape), dtype=float).ravel()
    own = None if weight is None else weight.ravel().astype(float)
    return PreparedLists.of(loss, judged, np.arange(n + 1, dtype=np.int64) * m, None, own)


def missed(measure: Measure, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """1 - measure of every row under pessimistic ties; 0 where the measure is 0/0."""
    n, m = scores.shape
    start = np.arange(n + 1, dtype=np.int64) * m
    judged = np.ascontiguousarray(np.broadcast_to(labels, scores.shape), dtype=float).ravel()
    lists = ScoredLists(np.ascontiguousarray(scores).ravel(), judged, start)
    return np.nan_to_num(1 - measure_lists([measure], lists, ties="pessimistic", n_jobs=1)[0])


@cache
def weak_orders(m: int) -> np.ndarray:
    """Every way to rank m documents, ties allowed, as whole-numbered scores without gaps."""
    every = [order for order in product(range(m), repeat=m) if set(order) == set(range(len(set(order))))]
    return np.array(every, dtype=float)


@cache
def labelings(m: int, grades: int) -> np.ndarray:
    """Every way to judge m documents on so many grades."""
    return np.array(list(product(range(grades), repeat=m)), dtype=float)


def all_lists(m: int, grades: int) -> tuple[np.ndarray, np.ndarray]:
    """(scores, labels), a list a row: every weak order of m documents with every way to judge them."""
    orders, judged = weak_orders(m), labelings(m, grades)
    return np.tile(orders, (len(judged), 1)), np.repeat(judged, len(orders), axis=0)
