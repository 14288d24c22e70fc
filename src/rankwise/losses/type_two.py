r"""The exponential and the logistic type two bound, exact: the largest (1 - E(pi)) phi(F(pi*) - F(pi)) of all orders.

The measure of an order depends only on the classes of documents (their gains) at its positions, and inside a class F
is largest if scores decrease. An order is therefore a path through the numbers of documents of each class that have
been placed, and every step adds to E and to F what depends on these numbers alone. The product is not a sum over the
path. The best path is therefore looked for among all that no other one beats in both: a label (E, F) of a state
survives unless another label there has at most its E and at least its F. Most labels are discarded by a bound: for any
lambda, F - lambda E of a path is at most that of the label plus the best of the rest, which one sweep from the end
finds for all states.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from rankwise._kernels.machine.jit import kernel
from rankwise._kernels.orders import EXP, LOGISTIC, STEEPEST, best_unsorted, relaxation, weights_of_places, worst_sorted
from rankwise._kernels.ragged import number_levels
from rankwise._kernels.sorting import sort_carrying
from rankwise.errors import RankwiseError
from rankwise.losses._base import Loss, Rows, Vector
from rankwise.losses.permutation import MAPS
from rankwise.measures import AP, NDCG
from rankwise.measures._base import Measure, parse

# An order is perfect within this of 1.
_PERFECT = 1e-9
# States of a query that are not tried: they would take hundreds of megabytes.
_MOST_STATES = 2_000_000
# Orders whose products differ by less, relative to the largest, are equally good.
_ROUNDING = 1e-12
_GOLDEN = 0.6180339887498949


@kernel
def _step(counts, c, size, gain, table, ideal, n_relevant, s, is_ap, by_class):
    """(what placing a document of class c with score s adds to E, and to F), ``counts`` of each class placed."""
    place, relevant = 0, 0
    for k in range(len(counts)):
        place += counts[k]
        if gain[k] > 0.0:
            relevant += counts[k]
    more = 0.0
    if gain[c] > 0.0:
        more = (relevant + 1.0) / (place + 1.0) / n_relevant if is_ap else table[place] * gain[c] / ideal
    if not by_class:
        return more, (size - 1.0 - 2.0 * place) / (size * (size - 1.0)) * s
    others = size - n_relevant
    weight = others - 2.0 * (place - relevant) if gain[c] > 0.0 else n_relevant - 2.0 * relevant
    return more, weight / (float(n_relevant) * others) * s


@kernel
def _largest_product(reach, slope, form):
    """max over m in [0, 1] of m phi(-(reach + slope (1 - m))); log-concave, hence found by sections."""
    low, high = 0.0, 1.0
    a, b = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_a = a * relaxation(-(reach + slope * (1.0 - a)), form)[0]
    at_b = b * relaxation(-(reach + slope * (1.0 - b)), form)[0]
    for _ in range(50):
        if at_a < at_b:
            low, a, at_a = a, b, at_b
            b = low + _GOLDEN * (high - low)
            at_b = b * relaxation(-(reach + slope * (1.0 - b)), form)[0]
        else:
            high, b, at_b = b, a, at_a
            a = high - _GOLDEN * (high - low)
            at_a = a * relaxation(-(reach + slope * (1.0 - a)), form)[0]
    return max(at_a, at_b, relaxation(-reach, form)[0])


@kernel
def _least_reach(value, slope, form):
    """The smallest reach with which the largest product exceeds a value, or a little less."""
    if form == EXP:
        at_one = math.log(value) if value <= math.exp(STEEPEST) else value / math.exp(STEEPEST) + STEEPEST - 1.0
    else:
        at_one = math.log(math.expm1(value * math.log(2.0))) if value < 500.0 else value * math.log(2.0)
    low, high = at_one - slope, at_one
    for _ in range(60):
        middle = 0.5 * (low + high)
        if _largest_product(middle, slope, form) > value:
            high = middle
        else:
            low = middle
    return low


@kernel
def _rests(counts, first, members, order, score, size, placed):
    """What the positions from ``placed`` on add to F, with the documents that are left by decreasing score."""
    left = np.empty(size - placed)
    number = 0
    for c in range(len(members)):
        for k in range(counts[c], members[c]):
            left[number] = -score[order[first[c] + k]]
            number += 1
    left.sort()
    total = 0.0
    for p in range(number):
        total -= (size - 1.0 - 2.0 * (placed + p)) / (size * (size - 1.0)) * left[p]
    return total


@kernel
def type_two_formula(score, label, value, grad, table, params):
    """The bound; ``value`` holds gains or relevance, ``table`` discounts; see :class:`TypeTwoBound`."""
    form, is_ap, by_class = int(params[0]), params[1] != 0.0, params[2] != 0.0
    size = len(score)
    code = np.empty(size, np.int64)
    n_classes = number_levels(value, code)
    if n_classes == 1:
        return 0.0
    deep = int(min(float(size), params[3]))
    # documents class by class, each by decreasing score
    s = score - (0.5 * score.min() + 0.5 * score.max())
    members, first, gain = np.zeros(n_classes, np.int64), np.zeros(n_classes, np.int64), np.zeros(n_classes)
    for i in range(size):
        members[code[i]] += 1
        gain[code[i]] = value[i]
    for c in range(1, n_classes):
        first[c] = first[c - 1] + members[c - 1]
    key, by_score = -s, np.arange(size)
    sort_carrying(key, by_score, np.empty(size), np.empty(size, np.int64), np.empty(size + 1, np.int64))
    order, filled = np.empty(size, np.int64), first.copy()
    for p in range(size):
        c = code[by_score[p]]
        order[filled[c]] = by_score[p]
        filled[c] += 1
    n_relevant, ideal, place = 0, 0.0, 0
    for c in range(n_classes - 1, -1, -1):
        for _ in range(members[c]):
            n_relevant += gain[c] > 0.0
            if place < deep:
                ideal += table[place] * gain[c]
            place += 1
    # the worst perfect order, and an imperfect one to begin with
    edge = np.empty(size, np.bool_)
    for p in range(size):
        edge[p] = p < deep and (p + 1 >= deep or table[p] > table[p + 1])
    worst, path_order = np.empty(size, np.int64), np.empty(size, np.int64)
    worst_sorted(s, value, edge, worst)
    if not best_unsorted(s, value, edge, path_order):
        return 0.0
    weight, relevant = np.empty(size), np.empty(size, np.bool_)
    for p in range(size):
        relevant[p] = value[worst[p]] > 0.0
    weights_of_places(relevant, by_class, weight)
    perfect = 0.0
    for p in range(size):
        perfect += weight[p] * s[worst[p]]
        grad[worst[p]] += weight[p]
    # states, numbered so that every step leads to a larger number
    stride, states = np.empty(n_classes, np.int64), 1
    for c in range(n_classes):
        stride[c] = states
        states *= min(members[c], deep) + 1
    counts = np.zeros(n_classes, np.int64)
    depth, step_E, step_F = (
        np.zeros(states, np.int64),
        np.zeros((states, n_classes)),
        np.zeros((states, n_classes)),
    )
    rest = np.zeros(states)
    for at in range(states):
        left = at
        for c in range(n_classes - 1, -1, -1):
            counts[c] = left // stride[c]
            left -= counts[c] * stride[c]
            depth[at] += counts[c]
        if depth[at] > deep:
            continue
        if depth[at] == deep:
            if deep < size:
                rest[at] = _rests(counts, first, members, order, s, size, deep)
            continue
        for c in range(n_classes):
            if counts[c] < members[c]:
                own = s[order[first[c] + counts[c]]]
                step_E[at, c], step_F[at, c] = _step(
                    counts, c, size, gain, table, ideal, n_relevant, own, is_ap, by_class
                )
            else:
                step_E[at, c], step_F[at, c] = 0.0, -np.inf
    # the incumbent
    path, trial = np.empty(deep, np.int64), np.empty(deep, np.int64)
    best, best_E, best_F = -1.0, 0.0, 0.0
    at, E, F = 0, 0.0, 0.0
    for p in range(deep):
        c = code[path_order[p]]
        path[p] = c
        E, F = E + step_E[at, c], F + step_F[at, c]
        at += stride[c]
    best_E, best_F = E, F + rest[at]
    best = (1.0 - best_E) * relaxation(perfect - best_F, form)[0]
    # the slope lambda with the smallest bound; the paths that it prefers may be better incumbents
    ahead, kept_ahead = np.empty(states), np.empty(states)
    low, high = math.log(0.5), math.log(1e4)
    a, b = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_a, at_b, least, slope = -1.0, -1.0, np.inf, 1.0
    for _ in range(26):
        at_left = at_a < 0.0
        tried = math.exp(a if at_left else b)
        for at in range(states - 1, -1, -1):
            if depth[at] > deep:
                ahead[at] = -np.inf
                continue
            if depth[at] == deep:
                ahead[at] = rest[at]
                continue
            most = -np.inf
            for c in range(n_classes):
                if step_F[at, c] > -np.inf:
                    most = max(most, step_F[at, c] - tried * step_E[at, c] + ahead[at + stride[c]])
            ahead[at] = most
        at, E, F = 0, 0.0, 0.0
        for p in range(deep):
            chosen, most = 0, -np.inf
            for c in range(n_classes):
                if step_F[at, c] > -np.inf:
                    found = step_F[at, c] - tried * step_E[at, c] + ahead[at + stride[c]]
                    if found > most:
                        chosen, most = c, found
            trial[p] = chosen
            E, F = E + step_E[at, chosen], F + step_F[at, chosen]
            at += stride[chosen]
        F += rest[at]
        if 1.0 - E > _PERFECT:
            found = (1.0 - E) * relaxation(perfect - F, form)[0]
            if found > best:
                best, best_E, best_F = found, E, F
                path[:] = trial
        bound = _largest_product(ahead[0] - perfect, tried, form)
        if bound < least:
            least, slope = bound, tried
            kept_ahead[:] = ahead
        if at_left:
            at_a = bound
        else:
            at_b = bound
        if at_a >= 0.0 and at_b >= 0.0:
            if at_a > at_b:
                low, a, at_a = a, b, at_b
                b = low + _GOLDEN * (high - low)
                at_b = -1.0
            else:
                high, b, at_b = b, a, at_a
                a = high - _GOLDEN * (high - low)
                at_a = -1.0
    # labels of states, E and F increasing
    enough = best * (1.0 + _ROUNDING)
    if least > enough > 0.0:
        needed = perfect + _least_reach(enough, slope, form)
        rounding = 1e-15 * np.abs(s).max()  # labels that differ by less, as in lists of evenly spaced scores, are one
        room = 1024
        label_E, label_F = np.empty(room), np.empty(room)
        before, by = np.empty(room, np.int64), np.empty(room, np.int64)
        begin, end = np.zeros(states, np.int64), np.zeros(states, np.int64)
        label_E[0], label_F[0], before[0], by[0] = 0.0, 0.0, -1, -1
        end[0], used, winner = 1, 1, -1
        cursor = np.empty(n_classes, np.int64)
        for at in range(1, states):
            begin[at] = end[at] = used
            if depth[at] > deep:
                continue
            left = at
            for c in range(n_classes - 1, -1, -1):
                counts[c] = left // stride[c]
                left -= counts[c] * stride[c]
                cursor[c] = begin[at - stride[c]] if counts[c] > 0 else 0
            highest = -np.inf
            while True:
                chosen, E, F = -1, np.inf, 0.0
                for c in range(n_classes):
                    if counts[c] > 0 and cursor[c] < end[at - stride[c]]:
                        from_state = at - stride[c]
                        here = label_E[cursor[c]] + step_E[from_state, c]
                        there = label_F[cursor[c]] + step_F[from_state, c]
                        if here < E or (here == E and there > F):
                            chosen, E, F = c, here, there
                if chosen < 0:
                    break
                parent = cursor[chosen]
                cursor[chosen] += 1
                if F - highest <= rounding:
                    continue
                highest = F
                if F - slope * E + kept_ahead[at] <= needed:
                    continue
                if used == room:
                    room *= 2
                    label_E, label_F = np.append(label_E, label_E), np.append(label_F, label_F)
                    before, by = np.append(before, before), np.append(by, by)
                label_E[used], label_F[used], before[used], by[used] = E, F, parent, chosen
                if depth[at] == deep and 1.0 - E > _PERFECT:
                    found = (1.0 - E) * relaxation(perfect - (F + rest[at]), form)[0]
                    if found > best:
                        best, best_E, best_F, winner = found, E, F + rest[at], used
                used += 1
            end[at] = used
        if winner >= 0:
            for p in range(deep - 1, -1, -1):
                path[p] = by[winner]
                winner = before[winner]
    # the order of the path, and the slope
    taken, counts = np.zeros(size, np.bool_), np.zeros(n_classes, np.int64)
    final = np.empty(size, np.int64)
    for p in range(deep):
        c = path[p]
        final[p] = order[first[c] + counts[c]]
        taken[final[p]] = True
        counts[c] += 1
    place = deep
    for p in range(size):
        if not taken[by_score[p]]:
            final[place] = by_score[p]
            place += 1
    for p in range(size):
        relevant[p] = value[final[p]] > 0.0
    weights_of_places(relevant, by_class, weight)
    for p in range(size):
        grad[final[p]] -= weight[p]
    missed = 1.0 - best_E
    result, falling = relaxation(perfect - best_F, form)
    for i in range(size):
        grad[i] *= missed * falling
    return missed * result


@dataclass(frozen=True, kw_only=True, repr=False)
class TypeTwoBound(Loss):
    r"""phi = max over perfect orders pi*, imperfect orders pi of (1 - E(pi)) f(F(pi*) - F(pi)).

    f(x) = log2(1 + exp(-x)), or exp(-x) for the exponential form. F of an order measures how far it agrees with the
    scores, see :func:`~rankwise.losses.permutation_score`. These are the values of :class:`~rankwise.losses.TypeTwo`
    for learning: with a gradient, and on lists that are too long to visit all orders.

    Parameters
    ----------
    measure : str or Measure, default="AP"
        E: AP, or nDCG of any gain and discount, preferably with a cut-off.
    form : {"logistic", "exp"}, default="logistic"
        f. Beyond -x = 16 the exponential is continued by its tangent, so that values stay finite.
    map : {"relevant", "pairs"}, default="relevant"
        The pairs of documents that F compares: those of a relevant and another one, for a measure of all positions on
        two grades such as AP, or all pairs.

    Notes
    -----
    F(pi*) - F(pi) is a sum of scores times numbers, f is convex and falling, the worst pi* has the smallest F, and a
    maximum of convex functions with weights of at least 0 is convex. The score-sorted order has the largest F: if it is
    imperfect, f is at least 1 there, so phi bounds 1 - E. A type one bound is a function of E, constant between
    changes of the order: :class:`~rankwise.AdaRank` lowers it without a gradient.

    The maximum over all orders is exact, up to a part of 1e-12. Its time is proportional to the number of states, which
    is O(N1 N0) for AP, with N1 relevant and N0 other documents, and the number of ways to fill k positions with gains
    for nDCG@k, and to the partial orders of a state that a bound leaves, mostly less than one; besides, documents are
    sorted in O(m log m). In the worst case the bound leaves many: lists of hundreds of documents may then take seconds.
    Queries with more than two million states raise an error; :class:`~rankwise.PermuRank` has the same forms on working
    sets.

    G1 of the logistic form is 4 / log 2 for the map "relevant", since each pair moves two scores by 2 / (N1 N0), and
    2 / log 2 for "pairs", where the largest change is 2 floor(m^2 / 2) / (m (m - 1)). The exponential has none.

    References
    ----------
    J. Xu, H. Li, T.-Y. Liu, Y. Peng, M. Lu, W.-Y. Ma (2010). Direct optimization of evaluation measures in
    learning to rank. Microsoft Research technical report MSR-TR-2010-171. Section 4.2, equation (6).

    Examples
    --------
    >>> value, gradient = TypeTwoBound(form="exp")([0.0, 0.0], [1, 0])
    >>> value, gradient.tolist()
    (0.5, [-1.0, 1.0])
    """

    measure: Any = "AP"
    form: Literal["logistic", "exp"] = "logistic"
    map: Literal["relevant", "pairs"] = "relevant"

    name = "TypeTwoBound"
    convex = True
    kernel = type_two_formula

    def __post_init__(self) -> None:
        measure = parse(self.measure)
        whole_ap = isinstance(measure, AP) and measure.cutoff is None
        if not (whole_ap or (isinstance(measure, NDCG) and measure.short == "allow")):
            raise RankwiseError(f"measure must be AP, nDCG or nDCG@k for this loss, got {measure.title}")
        if self.form not in ("exp", "logistic"):
            raise RankwiseError(f"form must be 'exp' or 'logistic', got {self.form!r:.60}")
        if self.map not in MAPS:
            raise RankwiseError(f"map must be 'relevant' or 'pairs', got {self.map!r:.60}")
        if self.map == "relevant" and measure.cutoff is not None:
            raise RankwiseError(f"map='relevant' requires a measure of all positions, got {measure.title}")
        object.__setattr__(self, "measure", repr(measure))

    def row_values(self, labels: Vector) -> Vector:
        """Gains, or 1 for relevant documents and 0 for others."""
        return parse(self.measure).row_values(labels)

    def prepare(self, labels: Vector, start: Rows, rows: Rows | None) -> tuple[Vector, Vector]:
        """Labels and gains; raises an error for queries that are too large, or of more grades than the map takes."""
        value = self.row_values(labels)
        levels, code = np.unique(value if rows is None else value[rows], return_inverse=True)
        if self.map == "relevant" and len(np.union1d(levels, [0.0])) > 2:
            raise RankwiseError(
                f"map='relevant' requires two grades, got {len(levels)} different gains of {self.measure}: use "
                "map='pairs'"
            )
        states = np.ones(len(start) - 1)
        owner = np.repeat(np.arange(len(start) - 1), np.diff(start))
        for c in range(len(levels)):
            states *= np.minimum(np.bincount(owner[code == c], minlength=len(states)), self._deep) + 1
        if states.max(initial=0) > _MOST_STATES:
            raise RankwiseError(
                f"TypeTwoBound({self.measure!r}) takes queries of at most {_MOST_STATES:,} states, got one of "
                f"{states.max():.3g}: give the measure a smaller cut-off, or use PermuRank(form={self.form!r})"
            )
        return labels, value

    @property
    def _deep(self) -> float:
        return parse(self.measure).cutoff or np.inf

    def table(self, longest: int) -> Vector:
        """The discounts of the first positions, and falling numbers for AP."""
        measure = parse(self.measure)
        if isinstance(measure, AP):
            return np.asarray(1.0 / np.arange(1, longest + 2))
        inside = np.arange(1, longest + 2) <= self._deep
        return np.where(inside, measure.table(longest + 1), 0.0)

    def params(self) -> tuple[float, ...]:
        """The parameters as the kernel reads them."""
        form = EXP if self.form == "exp" else LOGISTIC
        return float(form), float(isinstance(parse(self.measure), AP)), float(self.map == "relevant"), self._deep

    def lipschitz_l1(self, m: int) -> float:
        """G1 of queries of at most ``m`` documents; see :meth:`Loss.lipschitz_l1` and Notes."""
        if m < 2 or self.form == "exp":
            return np.inf if m > 1 else 0.0
        return self._reach / math.log(2)

    @property
    def _reach(self) -> float:
        """The largest l1 norm of the slope of F(pi*) - F(pi)."""
        return 4.0 if self.map == "relevant" else 2.0

    def range(self, b: float, m: int, labels: tuple[float, float] = (0.0, 4.0)) -> tuple[float, float]:
        """Smallest and largest value for scores in [-b, b]; see :meth:`Loss.range`."""
        most = self._reach * b
        if self.form == "logistic":
            return 0.0, float(np.logaddexp(0.0, most)) / math.log(2)
        return 0.0, math.exp(min(most, STEEPEST)) * (1.0 + max(most - STEEPEST, 0.0))

    @property
    def upper_bounds(self) -> Measure | None:
        """The measure whose loss this loss bounds; see :attr:`Loss.upper_bounds`."""
        return parse(self.measure)

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """The variants that the common tests run on."""
        return (
            cls(),
            cls(form="exp", map="pairs"),
            *(cls(measure="nDCG@2", form=form, map="pairs") for form in ("logistic", "exp")),
        )
