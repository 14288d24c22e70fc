"""Losses on permutations: the score of an order, and the type one and type two losses made of it.

These are values for study and certificates, not :class:`~rankwise.losses.Loss` objects: a type one loss is constant
between changes of the ranking, and a type two loss is a maximum over the orders of a list, which is exact only if all
of them are visited. :class:`~rankwise.losses.TypeTwoBound` has two of its forms with a gradient, for AP and NDCG@k, and
:class:`~rankwise.AdaRank` lowers type one losses. ``loss(scores, labels)`` returns one number; it is 0 if every order
is perfect (one document, equal labels, nothing relevant).

:func:`worst_perfect` and :func:`best_imperfect` are the two orders that permutation losses compare. The score of an
order is F(pi) = (1 / (n (n - 1))) sum_k s_k (n + 1 - 2 pos_k), which is largest for the orders that sort the scores. An
order is perfect if its labels never increase; with a cut-off k, if its first k labels are the largest ones, in
decreasing order. These are the orders of the largest NDCG@k as long as gains strictly grow and discounts strictly fall
up to k, and of the largest AP if the labels are 0 and 1.

References
----------
J. Xu, H. Li, T.-Y. Liu, Y. Peng, M. Lu, W.-Y. Ma. Direct optimization of evaluation measures in learning to rank.
Microsoft Research Asia.
"""

import math
from collections import Counter
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._kernels.orders import best_unsorted, worst_sorted
from rankwise._kernels.parallel import one_blas_thread
from rankwise._parameters import NonNegativeInt, check_parameters, validated
from rankwise._tables import ShownAsFacts
from rankwise.errors import RankwiseError
from rankwise.losses._base import Vector, as_scored_list
from rankwise.measures import AP, NDCG
from rankwise.measures._base import Measure, parse
from rankwise.measures.compute import ScoredLists, measure_lists

Map = Literal["pairs", "relevant"]
MAPS: tuple[Map, ...] = get_args(Map)

# Rounding of a sum of scores, relative to the largest: closer than this is a tie, which counts against the ranker.
_TIE = 1e-12
# A measure is at its best within this of 1.
_PERFECT = 1e-9
# More patterns than this are not even tried when asked for.
_FEASIBLE = 1_000_000


def _position_weights(relevant: NDArray[np.bool_], mapped: str) -> Vector:
    """What F multiplies the score at each position with, for orders given by the relevance at their positions."""
    n = relevant.shape[-1]
    if mapped == "pairs":
        return np.broadcast_to((n + 1 - 2.0 * np.arange(1, n + 1)) / max(n * (n - 1), 1), relevant.shape)
    n_relevant = relevant.sum(axis=-1, keepdims=True)
    above: NDArray[np.int64] = np.cumsum(relevant, axis=-1) - relevant  # relevant documents above each position
    others_above = np.arange(n) - above
    weight = np.where(relevant, (n - n_relevant) - 2.0 * others_above, n_relevant - 2.0 * above)
    return np.asarray(weight / np.maximum(n_relevant * (n - n_relevant), 1))


@one_blas_thread()
@validated
def permutation_score(order: ArrayLike, scores: ArrayLike, labels: ArrayLike, map: Map = "pairs") -> float:
    """F of one order: how far it agrees with the scores; largest for the order that sorts them.

    "pairs" compares all documents: F = (1 / (n (n - 1))) sum over pairs of z_kl (s_k - s_l), z_kl = 1 if k is above l
    and -1 if not, which is (1 / (n (n - 1))) sum_k s_k (n + 1 - 2 pos_k); only the score-sorted orders reach its
    maximum. "relevant" compares relevant documents (label above 0) with irrelevant ones:
    F = (1 / (N1 N0)) sum over relevant k, irrelevant l of z_kl (s_k - s_l), 0 if there are none of one kind. O(n).

    Parameters
    ----------
    order : array-like of int, shape (n_documents,)
        Documents by position, numbered from 0.
    scores : array-like, shape (n_documents,)
        Finite scores.
    labels : array-like, shape (n_documents,)
        Labels, 0 or more.
    map : {"pairs", "relevant"}, default="pairs"
        Which pairs are compared.

    Returns
    -------
    float
        F.

    Examples
    --------
    >>> permutation_score([1, 0], scores=[0.0, 3.0], labels=[1, 0])
    1.5
    >>> permutation_score([1, 0], scores=[0.0, 3.0], labels=[1, 0], map="relevant")
    3.0
    """
    s, y, _ = check_list(scores, labels, None)
    at = np.asarray(order)
    if not np.array_equal(np.sort(at), np.arange(len(s))):
        raise RankwiseError(f"an order must name each of {len(s)} documents once, counted from 0, got {at.tolist()}")
    return float(_position_weights(y[at] > 0, map) @ s[at])


@dataclass(frozen=True)
class TypeOne(ShownAsFacts):
    """exp(-E) or log2(1 + exp(-E)), where E is the measure of the scores.

    1 - E <= exp(-E) <= log2(1 + exp(-E)) for E in [0, 1]. Ties are pessimistic. A perfect ranking still costs 0.368, or
    0.452. AdaRank minimizes the exponential form.

    Parameters
    ----------
    measure : Measure or str
        A measure with values in [0, 1], or its name.
    form : {"exp", "logistic"}, default="exp"
        The decreasing function.
    """

    measure: Any
    form: Literal["exp", "logistic"] = "exp"

    def __post_init__(self) -> None:
        check_parameters(self)
        object.__setattr__(self, "measure", parse(self.measure))

    def __call__(self, scores: ArrayLike, labels: ArrayLike) -> float:
        """Compute the loss of one query; 0 if every order is perfect."""
        s, y, _ = check_list(scores, labels, None)
        if _nothing_to_rank(self.measure, y):
            return 0.0
        reached = self.measure(s, y, ties="pessimistic")
        if not 0 <= reached <= 1:
            raise RankwiseError(f"type one losses take measures in [0, 1]: {self.measure} is {reached:g} here")
        return math.exp(-reached) if self.form == "exp" else math.log2(1 + math.exp(-reached))


@dataclass(frozen=True)
class TypeTwo(ShownAsFacts):
    """max over perfect orders pi*, imperfect orders pi of (1 - E(pi)) phi(x), x = F(pi*) - F(pi).

    ============= ====================== ======================================================
    form          phi(x)
    ============= ====================== ======================================================
    "indicator"   1 if x <= 0, else 0    the loss itself, which all others bound
    "exp"         exp(-x)                never below the hinge
    "logistic"    log2(1 + exp(-x))
    "hinge"       [1 - x]_+
    "additive"                           [(1 - E(pi)) - x]_+ in place of the product
    ============= ====================== ======================================================

    Each is at least 1 - E of the scores under pessimistic ties; all but the indicator are convex. With the map "pairs"
    a perfect ranking may still have a loss, because pi* ranges over ALL perfect orders, badly sorted ones too; with
    "relevant" the order inside a class does not matter. Equation (6) of the paper and its relaxations; PermuRank
    minimizes the hinge.

    Parameters
    ----------
    measure : Measure or str
        A measure that is 1 at its best order (AP, NDCG, RR, WTA, ...), or its name.
    form : {"indicator", "exp", "logistic", "hinge", "additive"}, default="exp"
        phi, as above.
    map : {"pairs", "relevant"}, default="pairs"
        See :func:`permutation_score`; relevant is what has a positive gain in the measure.
    by : {"auto", "patterns", "oracles"}, default="auto"
        "patterns" visits all sequences of labels and is exact: inside a class F is largest if scores decrease, so there
        are n! / (n_1! n_2! ...) of them. "oracles" takes the worst perfect and the best imperfect order only, in
        O(n log n), which gives a value between 1 - E and the exact one. "auto" is "patterns" up to ``most`` patterns.
    most : int, default=200_000
        The largest number of patterns that "auto" visits.
    """

    measure: Any
    form: Literal["indicator", "exp", "logistic", "hinge", "additive"] = "exp"
    map: Map = "pairs"
    by: Literal["auto", "patterns", "oracles"] = "auto"
    most: NonNegativeInt = 200_000

    def __post_init__(self) -> None:
        check_parameters(self)
        object.__setattr__(self, "measure", parse(self.measure))

    def __call__(self, scores: ArrayLike, labels: ArrayLike) -> float:
        """Compute the loss of one query; 0 if every order is perfect."""
        s, y, _ = check_list(scores, labels, None)
        if _nothing_to_rank(self.measure, y):
            return 0.0
        s = s - (0.5 * s.min() + 0.5 * s.max())
        patterns = math.inf if self.by == "oracles" else count_patterns(self.measure.row_values(y))
        exact = self.by == "patterns" or (self.by == "auto" and patterns <= self.most)
        if exact and patterns > _FEASIBLE:
            raise RankwiseError(f"these labels have {patterns:.3g} patterns, more than memory holds: use by='oracles'")
        missed, margin = self._all_patterns(s, y) if exact else self._oracle_pair(s, y)
        return float(self._relax(missed, margin, _TIE * np.abs(s).max()).max(initial=0.0))

    def _relax(self, missed: Vector, margin: Vector, tie: float) -> Vector:
        """The loss of every pair of orders; margins up to ``tie`` count as 0."""
        with np.errstate(over="ignore"):
            if self.form == "indicator":
                return missed * (margin <= tie)
            if self.form == "exp":
                return missed * np.exp(-margin)
            if self.form == "logistic":
                return missed * (np.logaddexp(0.0, -margin) / math.log(2.0))
            if self.form == "hinge":
                return missed * np.maximum(1 - margin, 0.0)
            return np.maximum(missed - margin, 0.0)

    def _all_patterns(self, s: Vector, y: Vector) -> tuple[Vector, Vector]:
        """(1 - E, smallest margin) of every imperfect sequence of classes."""
        value = self.measure.row_values(y)
        classes, first, code = np.unique(value, return_index=True, return_inverse=True)
        pattern = label_patterns(np.bincount(code).tolist())
        reached = _measure_orders(self.measure, y[first][pattern])
        perfect = reached >= 1 - _PERFECT
        if not perfect.any() or (reached > 1 + _PERFECT).any():
            raise RankwiseError(
                f"type two losses take measures that count 1 at their best: {self.measure} is {reached.max():g} there"
            )
        weight = _position_weights(classes[pattern] > 0, self.map)
        by_class = np.argsort(pattern, axis=1, kind="stable")  # positions of the first class, of the second, ...
        at = np.empty(pattern.shape)
        np.put_along_axis(at, by_class, s[np.lexsort((s, code))][None], axis=1)
        worst = (weight * at)[perfect].sum(axis=1).min()
        np.put_along_axis(at, by_class, s[np.lexsort((-s, code))][None], axis=1)
        return 1 - reached[~perfect], worst - (weight * at)[~perfect].sum(axis=1)

    def _oracle_pair(self, s: Vector, y: Vector) -> tuple[Vector, Vector]:
        """(1 - E, margin) of the best imperfect order against the worst perfect one."""
        value = self.measure.row_values(y)
        self._check_oracles_know(value)
        cutoff = self.measure.cutoff
        worst, best = worst_perfect(s, value, cutoff), best_imperfect(s, value, cutoff)
        if best is None:
            return np.zeros(0), np.zeros(0)
        margin = permutation_score(worst, s, value, self.map) - permutation_score(best, s, value, self.map)
        return 1 - _measure_orders(self.measure, y[best][None]), np.array([margin])

    def _check_oracles_know(self, value: Vector) -> None:
        """Refuse measures whose perfect orders are not those that sort the row values up to the cut-off."""
        measure, cut = self.measure, len(value)
        if isinstance(measure, NDCG) and measure.short == "allow":
            cut = min(cut, measure.cutoff or cut)
            known = bool((np.diff(np.append(measure.table(cut), [0.0] * (cut < len(value)))) < 0).all())
        else:
            known = isinstance(measure, AP) and measure.cutoff is None
        if self.map == "relevant":
            known = known and cut == len(value) and len(np.unique(value)) == 2 and value.min() == 0
        if not known:
            raise RankwiseError(
                f"the oracles know AP, and NDCG with falling discounts (on two grades and the whole list for the map "
                f"'relevant'), not {measure} with the map {self.map!r}; by='patterns' takes any measure on short lists"
            )


def count_patterns(values: Vector) -> int:
    """The number of different sequences of these values: n! / (n_1! n_2! ...)."""
    left, total = len(values), 1
    for count in Counter(values.tolist()).values():
        total *= math.comb(left, count)
        left -= count
    return total


def label_patterns(counts: list[int]) -> NDArray[np.int64]:
    """Every sequence with ``counts[c]`` entries c, one per row."""
    pattern = np.full((1, sum(counts)), len(counts) - 1)
    free = np.arange(sum(counts))[None]  # free positions, by row
    for code, count in enumerate(counts[:-1]):
        size = free.shape[1]
        chosen = np.array(list(combinations(range(size), count)), dtype=np.int64).reshape(-1, count)
        kept = np.ones((len(chosen), size), dtype=bool)
        np.put_along_axis(kept, chosen, False, axis=1)
        others = np.nonzero(kept)[1].reshape(len(chosen), size - count)
        pattern = np.repeat(pattern, len(chosen), axis=0)
        np.put_along_axis(pattern, free[:, chosen].reshape(-1, count), code, axis=1)
        free = free[:, others].reshape(-1, size - count)
    return pattern


def _measure_orders(measure: Measure, labels_at: Vector) -> Vector:
    """The measure of every order, given by the labels at its positions."""
    many, n = labels_at.shape
    scores = np.tile(np.arange(n, 0, -1.0), many)
    lists = ScoredLists(scores, np.ascontiguousarray(labels_at).ravel(), np.arange(many + 1, dtype=np.int64) * n)
    return np.asarray(measure_lists([measure], lists)[0])


def _nothing_to_rank(measure: Measure, labels: Vector) -> bool:
    """Whether every order is perfect."""
    value = measure.row_values(labels)
    return bool(value.min() == value.max())


# ------------------------------------------------------------------------------------------------ permutation oracles

Order = NDArray[np.int64]


def check_list(scores: ArrayLike, labels: ArrayLike, k: int | None) -> tuple[Vector, Vector, int]:
    """Scores, labels and the cut-off, at most the length, of one list."""
    s, y = as_scored_list(scores, labels)
    if k is not None and k < 1:
        raise RankwiseError(f"the cut-off must be an integer of at least 1, got {k!r}")
    return s, y, len(y) if k is None else min(int(k), len(y))


def worst_perfect(scores: ArrayLike, labels: ArrayLike, k: int | None = None) -> Order:
    """The perfect order with the smallest F: labels decreasing, scores increasing inside a label.

    With a cut-off this holds for the first k positions; the others follow by increasing score, whatever their labels.
    O(m log m).

    Parameters
    ----------
    scores : array-like, shape (n_documents,)
        Finite scores.
    labels : array-like, shape (n_documents,)
        Labels, 0 or more.
    k : int, default=None
        Cut-off; None for the whole list.

    Returns
    -------
    ndarray of int64, shape (n_documents,)
        Documents by position.

    Examples
    --------
    >>> worst_perfect([0.5, 2.0, 1.0], [0, 1, 1]).tolist()
    [2, 1, 0]
    """
    s, y, cut = check_list(scores, labels, k)
    order = np.empty(len(s), dtype=np.int64)
    worst_sorted(s, y, np.arange(len(s)) < cut, order)
    return order


def best_imperfect(scores: ArrayLike, labels: ArrayLike, k: int | None = None) -> Order | None:
    """The imperfect order with the largest F; None where every order is perfect.

    It is the order that sorts the scores, lower labels first among equal scores, if that is imperfect. Otherwise it is
    the cheapest change of that order, one of two: exchange neighbors with different labels among the first k, or move
    the first document that has a lower label than the one at k up to position k. (Any imperfect order either inverts
    two labels among the first k, which costs at least the gap of a boundary between them, or brings a lower label into
    the first k past everything from k on that outscores it.) O(m log m).

    Parameters
    ----------
    scores : array-like, shape (n_documents,)
        Finite scores.
    labels : array-like, shape (n_documents,)
        Labels, 0 or more.
    k : int, default=None
        Cut-off; None for the whole list.

    Returns
    -------
    ndarray of int64, shape (n_documents,), or None
        Documents by position.

    Examples
    --------
    >>> best_imperfect([3.0, 2.0, 1.0], [1, 0, 0]).tolist()
    [1, 0, 2]
    """
    s, y, cut = check_list(scores, labels, k)
    order = np.empty(len(s), dtype=np.int64)
    return order if best_unsorted(s, y, np.arange(len(s)) < cut, order) else None
