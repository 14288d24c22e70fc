"""The two orders that permutation losses compare: the worst perfect and the best imperfect one under given scores.

The score of an order is F(pi) = (1 / (n (n - 1))) sum_k s_k (n + 1 - 2 pos_k), largest for the orders that sort the
scores. An order is perfect when its labels never increase; with a cut-off k, when its first k labels are the largest
ones, decreasing. That is what the best value of NDCG@k means as long as gains strictly grow and discounts
strictly fall up to k, and of AP once the labels are 0 and 1.

Both functions look at one list, take O(m log m), and return documents by position.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._errors import RankwiseError
from rankwise.data import checks
from rankwise.losses._base import Vector

Order = NDArray[np.int64]


def checked(scores: ArrayLike, labels: ArrayLike, k: int | None) -> tuple[Vector, Vector, int]:
    """Scores, labels and the cut-off, at most the length, of one list."""
    y = np.atleast_1d(np.asarray(labels, dtype=np.float64))
    y = checks.as_labels(y, len(y))
    s = checks.as_vector(np.atleast_1d(np.asarray(scores, dtype=np.float64)), len(y), "scores")
    if not np.isfinite(s).all():
        place = int(np.argmin(np.isfinite(s)))
        raise RankwiseError(f"scores is {s[place]} at row {place:,}: an order is scored with finite scores")
    if k is not None and k < 1:
        raise RankwiseError(f"a cut-off is a whole number from 1 on: found {k!r}")
    return s, y, len(y) if k is None else min(int(k), len(y))


def worst_perfect(scores: ArrayLike, labels: ArrayLike, k: int | None = None) -> Order:
    """The perfect order with the smallest F: labels decreasing, scores increasing inside a label.

    With a cut-off that holds for the first k positions; the others, free of the labels, come by increasing score.

    Examples
    --------
    >>> worst_perfect([0.5, 2.0, 1.0], [0, 1, 1]).tolist()
    [2, 1, 0]
    """
    s, y, cut = checked(scores, labels, k)
    order = np.lexsort((s, -y))
    rest = order[cut:]
    return np.concatenate([order[:cut], rest[np.argsort(s[rest], kind="stable")]])


def best_imperfect(scores: ArrayLike, labels: ArrayLike, k: int | None = None) -> Order | None:
    """The imperfect order with the largest F; None where every order is perfect.

    The scores sorted, lower labels first among equal scores, if that is imperfect. Otherwise the cheapest way to spoil
    it, which is one of two: exchange neighbours with different labels among the first k, or pull the first document
    that has a lower label than the one at k up to position k. (Any imperfect order either inverts two labels among
    the first k, which costs at least the gap of a boundary between them, or brings a lower label into the first k past
    everything from k on that outscores it.)

    Examples
    --------
    >>> best_imperfect([3.0, 2.0, 1.0], [1, 0, 0]).tolist()
    [1, 0, 2]
    """
    s, y, cut = checked(scores, labels, k)
    order = np.lexsort((y, -s))
    ranked, label = s[order], y[order]
    if not np.array_equal(label[:cut], np.sort(y)[::-1][:cut]):
        return order
    gap = np.where(label[: cut - 1] > label[1:cut], ranked[: cut - 1] - ranked[1:cut], np.inf)
    at = int(np.argmin(gap)) if cut > 1 else 0
    exchange = gap[at] if cut > 1 else np.inf
    lower = np.flatnonzero(label[cut:] < label[cut - 1])
    if len(lower):
        place = cut + int(lower[0])
        if (ranked[cut - 1 : place] - ranked[place]).sum() < exchange:
            return np.concatenate(
                [order[: cut - 1], order[place : place + 1], order[cut - 1 : place], order[place + 1 :]]
            )
    elif exchange == np.inf:
        return None
    order[at], order[at + 1] = order[at + 1], order[at]
    return order
