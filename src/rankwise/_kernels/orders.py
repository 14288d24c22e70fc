"""Orders of values under scores: the worst order that is still sorted, the best one that is not, and their hinge.

``edge[t - 1]`` means that the values above position t + 1 matter as a set: blocks of positions end there. An order is
sorted when, for every edge t, its first t values are the t largest ones. The sum over positions of score times n + 1 -
2 position measures how far an order agrees with the scores; it is largest for the orders that sort them. Orders are
given by items at positions, both counted from 0. Everything is stable: items of equal value and score stand by index in
every answer, so the same scores always give the same order.

:func:`extreme_orders` finds the two orders of every query, :func:`order_features` turns an order into a feature vector,
and :func:`hinge_of_sets` sums the hinges between sets of perfect and imperfect orders.
"""

import math

import numpy as np

from rankwise._kernels.dot_products import add_rows, dot
from rankwise._kernels.machine.jit import kernel
from rankwise._kernels.sorting import sort_carrying


@kernel
def _sort_by(key, order, first, last):
    """Sort places first..last-1 of ``order`` by the keys that stand there, ascending."""
    size = last - first
    sort_carrying(
        key[first:last], order[first:last], np.empty(size), np.empty(size, np.int64), np.empty(size + 1, np.int64)
    )


@kernel
def _block_end(t, edge, size):
    """The end of the block of positions that begins at t."""
    end = t + 1
    while end < size and not edge[end - 1]:
        end += 1
    return end


@kernel
def worst_sorted(score, value, edge, order):
    """The sorted order that agrees least: values by decreasing size, and inside value and block increasing scores."""
    size = len(score)
    for item in range(size):
        order[item] = item
    key = score.copy()
    _sort_by(key, order, 0, size)
    for p in range(size):
        key[p] = -value[order[p]]
    _sort_by(key, order, 0, size)
    t = 0
    while t < size:
        end = _block_end(t, edge, size)
        if end - t > 1:
            for p in range(t, end):
                key[p] = score[order[p]]
            _sort_by(key, order, t, end)
        t = end


@kernel
def _is_sorted(value, edge, order, ideal):
    """Whether every block holds the values of the ideal order."""
    size = len(order)
    t = 0
    while t < size:
        end = _block_end(t, edge, size)
        if end - t == 1:
            if value[order[t]] != ideal[t]:
                return False
        else:
            inside = np.empty(end - t)
            for p in range(t, end):
                inside[p - t] = -value[order[p]]
            inside.sort()
            for p in range(t, end):
                if -inside[p - t] != ideal[p]:
                    return False
        t = end
    return True


@kernel
def _cheapest_pair(score, value, edge, order):
    """(t, a, b, cost): the edge t, and the places a < t <= b whose exchange across it costs least; t = 0 for none.

    The item at a moves to place t and the one at b to place t - 1, and all items between move up or down by one. At an
    edge with equal values on both sides one of the two stays next to it, and the other is the nearest of another value.
    It is searched in its own block only, because beyond that a nearer edge has a cheaper exchange.
    """
    size = len(order)
    at, low, high, cost = 0, 0, 0, np.inf
    begin = 0
    while begin < size:
        t = _block_end(begin, edge, size)
        if t >= size:
            break
        above, below = order[t - 1], order[t]
        if value[above] > value[below]:
            if score[above] - score[below] < cost:
                at, low, high, cost = t, t - 1, t, score[above] - score[below]
        else:
            end = _block_end(t, edge, size)
            b = t
            while b < end and value[order[b]] == value[above]:
                b += 1
            if b < end:
                price = score[above] - score[order[b]]
                for p in range(t, b):
                    price += score[order[p]] - score[order[b]]
                if price < cost:
                    at, low, high, cost = t, t - 1, b, price
            a = t - 1
            while a >= begin and value[order[a]] == value[below]:
                a -= 1
            if a >= begin:
                price = score[order[a]] - score[below]
                for p in range(a + 1, t):
                    price += score[order[a]] - score[order[p]]
                if price < cost:
                    at, low, high, cost = t, a, t, price
        begin = t
    return at, low, high


@kernel
def best_unsorted(score, value, edge, order):
    """The order that is not sorted and agrees most; False, and no order, where all orders are sorted.

    It is the order by decreasing score, smaller values first among ties, unless that is sorted; then the cheapest
    exchange makes it unsorted.
    """
    size = len(score)
    for item in range(size):
        order[item] = item
    key = value.copy()
    _sort_by(key, order, 0, size)
    ideal = key[::-1].copy()
    for p in range(size):
        key[p] = -score[order[p]]
    _sort_by(key, order, 0, size)
    if not _is_sorted(value, edge, order, ideal):
        return True
    t, a, b = _cheapest_pair(score, value, edge, order)
    if t == 0:
        return False
    down, up = order[a], order[b]
    for p in range(a, t - 1):
        order[p] = order[p + 1]
    for p in range(b, t, -1):
        order[p] = order[p - 1]
    order[t - 1], order[t] = up, down
    return True


@kernel
def extreme_orders(first, last, start, rows, score, value, edge, worst, best, exists):
    """Both orders of queries first..last-1, at the queries' own places; ``exists`` receives whether the second exists.

    ``rows`` may have length 0: then query q owns rows start[q] .. start[q+1]-1.
    """
    for q in range(first, last):
        low, size = start[q], start[q + 1] - start[q]
        own, labels = np.empty(size), np.empty(size)
        for p in range(size):
            row = low + p if len(rows) == 0 else rows[low + p]
            own[p], labels[p] = score[row], value[row]
        worst_sorted(own, labels, edge, worst[low : low + size])
        exists[q] = best_unsorted(own, labels, edge, best[low : low + size])


# ----------------------------------------------------------------------------------------------------- order features


@kernel
def weights_of_places(relevant, by_class, out):
    """The weight of every position, for ``relevant`` by position; the weights add up to 0.

    (n + 1 - 2 position) / (n (n - 1)). By class, only the pairs of a relevant and another item count: that is (N0 - 2
    others above) / (N1 N0) for a relevant item and (N1 - 2 relevant above) / (N1 N0) for another one.
    """
    size = len(relevant)
    if not by_class:
        for p in range(size):
            out[p] = (size - 1.0 - 2.0 * p) / (size * (size - 1.0))
        return
    count = 0
    for p in range(size):
        count += relevant[p]
    others = size - count
    above = 0
    for p in range(size):
        if relevant[p]:
            out[p] = (others - 2.0 * (p - above)) / (float(count) * others)
            above += 1
        else:
            out[p] = (count - 2.0 * above) / (float(count) * others)


@kernel(fastmath={"contract"})
def _add_scaled(x, weight, center, factor, out):
    """Add weight (x - center) factor to a vector."""
    for j in range(len(out)):
        out[j] += weight * ((x[j] - center[j]) * factor[j])


@kernel
def order_features(X, lists, start, rows, value, orders, by_class, center, factor, out):
    """out[i] = sum over positions p of weight_p (x - center) factor, for the order of query lists[i].

    ``orders`` holds items at positions for all queries, at the queries' own places; an item is relevant when its value
    is above 0.
    """
    for i in range(len(lists)):
        low = start[lists[i]]
        size = start[lists[i] + 1] - low
        relevant, weight, own = np.empty(size, np.bool_), np.empty(size), np.empty(size, np.int64)
        for p in range(size):
            place = low + orders[low + p]
            own[p] = place if len(rows) == 0 else rows[place]
            relevant[p] = value[own[p]] > 0.0
        weights_of_places(relevant, by_class, weight)
        for j in range(out.shape[1]):
            out[i, j] = 0.0
        for p in range(size):
            _add_scaled(X[own[p]], weight[p], center, factor, out[i])


# -------------------------------------------------------------------------------------------------------- order hinge


@kernel
def hinge_over_pairs(perfect, imperfect, missed, down, up):
    """(1/B) sum over b, c of missed_c [1 - (perfect_b - imperfect_c)]_+ in O(B log B + C log C).

    ``perfect`` and ``imperfect`` are scores; ``down`` and ``up`` receive the slopes with respect to them.
    """
    n_perfect, n_imperfect = len(perfect), len(imperfect)
    b_order, c_order = np.argsort(perfect), np.argsort(imperfect)
    base = perfect[b_order[0]]
    later = 0.0  # the sum of ``missed`` over the imperfect orders that follow
    for c in range(n_imperfect):
        later += missed[c]
    total, below, j = 0.0, 0.0, 0
    for i in range(n_imperfect):
        c = c_order[i]
        reach = 1.0 + imperfect[c]
        while j < n_perfect and perfect[b_order[j]] < reach:
            # from this imperfect order on, the hinge against that perfect one is open
            down[b_order[j]] = -later / n_perfect
            below += perfect[b_order[j]] - base
            j += 1
        total += missed[c] * (j * (reach - base) - below)
        up[c] = missed[c] * j / n_perfect
        later -= missed[c]
    for closed in range(j, n_perfect):
        down[b_order[closed]] = 0.0
    return total / n_perfect


@kernel
def largest_hinge(perfect, imperfect, missed, down, up):
    """max over b, c of missed_c [1 - (perfect_b - imperfect_c)]_+ in O(B + C), with its slopes."""
    down[:] = 0.0
    up[:] = 0.0
    b = np.argmin(perfect)
    best, at = 0.0, -1
    for c in range(len(imperfect)):
        value = missed[c] * (1.0 - (perfect[b] - imperfect[c]))
        if value > best:
            best, at = value, c
    if at >= 0:
        down[b], up[at] = -missed[at], missed[at]
    return best


# Functions that take the place of the hinge, by number; 0 is the hinge itself.
EXP, LOGISTIC = 1, 2
# An exponential beyond this is continued by its tangent: it stays convex and above 1, and finite.
STEEPEST = 16.0


@kernel
def relaxation(x, form):
    """(phi(x), its slope) for phi = exp(-x), or log2(1 + exp(-x))."""
    if form == EXP:
        reach = min(-x, STEEPEST)
        value = math.exp(reach)
        return value * (1.0 + (-x - reach)), -value
    rest = math.exp(-abs(x))
    value = (max(-x, 0.0) + math.log1p(rest)) / math.log(2.0)
    return value, -(1.0 if x < 0.0 else rest) / ((1.0 + rest) * math.log(2.0))


@kernel
def relaxed_pairs(perfect, imperfect, missed, form, largest, down, up):
    """(1/B) sum over b, c of missed_c phi(perfect_b - imperfect_c), or the largest of them, with the slopes."""
    down[:] = 0.0
    up[:] = 0.0
    if largest:
        b = np.argmin(perfect)
        best, at, steepness = -1.0, 0, 0.0
        for c in range(len(imperfect)):
            value, slope = relaxation(perfect[b] - imperfect[c], form)
            if missed[c] * value > best:
                best, at, steepness = missed[c] * value, c, missed[c] * slope
        down[b], up[at] = steepness, -steepness
        return best
    total = 0.0
    for i in range(len(perfect)):
        for c in range(len(imperfect)):
            value, slope = relaxation(perfect[i] - imperfect[c], form)
            share = missed[c] / len(perfect)
            total += share * value
            down[i] += share * slope
            up[c] -= share * slope
    return total


@kernel
def hinge_of_sets(first, last, features, start, middle, weight, missed, largest, form, w, slope):
    """sum_q weight_q hinge_q over the sets of queries first..last-1; adds the slope with respect to w.

    Query q has the perfect orders start[q] .. middle[q]-1 and the imperfect ones middle[q] .. start[q+1]-1, by rows of
    ``features`` and ``missed``. The hinge is the largest one between two orders, or their sum over imperfect and mean
    over perfect ones. Another ``form`` than 0 takes the place of the hinge, see :func:`relaxation`.
    """
    total = 0.0
    for q in range(first, last):
        low, high = start[q], start[q + 1]
        many = middle[q] - low
        if many == 0 or low + many == high:
            continue
        score, factor, own = np.empty(high - low), np.empty(high - low), np.arange(low, high)
        for p in range(high - low):
            score[p] = dot(features[low + p], w)
        given = (score[:many], score[many:], missed[low + many : high], factor[:many], factor[many:])
        if form != 0:
            value = relaxed_pairs(given[0], given[1], given[2], form, largest, given[3], given[4])
        else:
            value = largest_hinge(*given) if largest else hinge_over_pairs(*given)
        total += weight[q] * value
        factor *= weight[q]
        add_rows(features, own, factor, slope)
    return total
