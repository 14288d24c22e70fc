"""GradedPairs: the logistic loss over all pairs of a query, each weighted by the difference of its labels.

Two forms of the same sums. Short lists take every pair. In long ones what a document gets from all documents of one
label is a sum of sigmoids, a smooth function of its score alone: its values at a few Chebyshev nodes give it everywhere
on the list, to a stated error, at a cost per document that does not grow with the list. Loops are elementwise and sums
have one order, so no width of vectors changes a bit.
"""

import math
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from rankwise._kernels.exp import exp, log1pexp
from rankwise._kernels.machine.jit import kernel
from rankwise.losses._base import Loss, Vector

# Lists of up to so many documents are always computed pair by pair.
_SHORT = 32
# Nodes come in multiples of _STEP up to _MOST: their cosines are tables.
_STEP, _MOST, _FEWEST = 8, 128, 10.0
# Nodes for each unit of the range of the scores: fewer for second derivatives, which boosters round to 12 bits, than
# for the values and gradients on which the gaps of solvers rest.
_CURVED, _VALUED = 2.2, 4.4
# More distinct labels than this are never computed by nodes.
_LABELS = 64
# Documents whose series are summed side by side.
_TILE = 32
# What the value of a pair takes, in units of its derivatives.
_VALUE_OF_A_PAIR = 8.0
# Scores that are closer have powers e^s without overflow.
_SPREAD = 600.0


# ---------------------------------------------------------------------------------------------------- every pair


@kernel
def _slopes_by_ratios(power, label, weight, slope, bend):
    """Add the derivatives of all pairs of all documents, with sigmoid(s_j - s_i) = e^s_j / (e^s_i + e^s_j)."""
    for j in range(len(power)):
        other, its_label, its_weight = power[j], label[j], weight[j]
        for i in range(len(power)):
            lead = label[i] - its_label
            share = 1.0 / (power[i] + other)
            wrong = (other if lead > 0.0 else power[i]) * share
            slope[i] -= lead * its_weight * wrong
            bend[i] += abs(lead) * its_weight * (power[i] * share) * (other * share)


@kernel
def _slopes(score, label, weight, slope, bend):
    """The same for scores too far apart to have powers."""
    for j in range(len(score)):
        other, its_label, its_weight = score[j], label[j], weight[j]
        for i in range(len(score)):
            lead = label[i] - its_label
            x = other - score[i] if lead > 0.0 else score[i] - other
            small = exp(-abs(x))  # sigmoid(x) and sigmoid(-x) with a single exponential
            less, more = small / (1.0 + small), 1.0 / (1.0 + small)
            slope[i] -= lead * its_weight * (more if x >= 0.0 else less)
            bend[i] += abs(lead) * its_weight * more * less


@kernel
def _losses_of(score, label, own, its_label, term):
    """log(1 + e^x) for the pairs of one document with others."""
    for j in range(len(score)):
        x = score[j] - own
        term[j] = log1pexp(x if its_label > label[j] else -x)


@kernel
def _losses(score, label, weight, term, loss):
    """Add the loss of each pair to the document that comes first."""
    for i in range(len(score)):
        its_label, its_weight = label[i], weight[i]
        _losses_of(score[:i], label[:i], score[i], its_label, term[:i])
        for j in range(i):
            loss[j] += abs(its_label - label[j]) * its_weight * term[j]


# ---------------------------------------------------------------------------------------------------- nodes


@cache
def _cosines() -> Vector:
    """cos(pi n (p + 1/2) / R) for nodes p and degrees n below R, for R = 8, 16 ... 128, one table after the other."""
    tables = []
    for nodes in range(_STEP, _MOST + 1, _STEP):
        odd = np.outer(2 * np.arange(nodes) + 1, np.arange(nodes)) % (4 * nodes)
        tables.append(np.cos(np.pi * odd / (2 * nodes)).ravel())
    table = np.concatenate(tables)
    table.setflags(write=False)
    return table


@kernel
def _number_of_nodes(spread, per_unit):
    """The number of nodes for scores within ``spread``; 0 where that takes too many."""
    wanted = _FEWEST + per_unit * spread
    return (math.ceil(wanted) + _STEP - 1) // _STEP * _STEP if wanted <= _MOST else 0


@kernel
def _work(size, nodes, kinds):
    """What the nodes take for a list with so many distinct labels, in units of the derivatives of a pair."""
    return 2.0 * (size + _TILE // 2 * kinds) * nodes + kinds * nodes * (kinds + nodes)


@kernel
def _find_grades(label, grade, level):
    """The distinct labels, ascending, into ``level``, and the place of each label there into ``grade``.

    Returns their number; 0 if there are more than ``level`` holds.
    """
    kinds = 0
    for i in range(len(label)):
        own, known = label[i], False
        for k in range(kinds):  # no early end: it would be mispredicted for every other document
            known |= level[k] == own
        if not known:
            if kinds == len(level):
                return 0
            k = kinds
            while k > 0 and level[k - 1] > own:
                level[k] = level[k - 1]
                k -= 1
            level[k] = own
            kinds += 1
    grade[:] = 0
    for k in range(kinds - 1):
        for i in range(len(label)):
            grade[i] += level[k] < label[i]
    return kinds


@kernel
def _arranged(grade, kinds):
    """Where the documents of each grade begin, and all documents in the order of their grades."""
    first, place = np.zeros(kinds + 2, np.int64), np.empty(len(grade), np.int64)
    for i in range(len(grade)):
        first[grade[i] + 2] += 1
    for k in range(kinds):
        first[k + 2] += first[k + 1]
    for i in range(len(grade)):  # the beginning of each grade moves to its end, which is where the next one begins
        place[first[grade[i] + 1]] = i
        first[grade[i] + 1] += 1
    return first, place


@kernel
def _add_sigmoids(node, power, weight, sums):
    """Add w_j sigmoid(x_p - s_j) at every node x_p, whose power is ``node[p]``, over the documents j of one label."""
    for p in range(len(node)):
        sums[p] = 0.0
    for j in range(len(power)):
        own, its_weight = power[j], weight[j]
        for p in range(len(node)):
            sums[p] += its_weight / (node[p] + own)
    for p in range(len(node)):
        sums[p] *= node[p]


@kernel
def _coefficients(values, cosines, series):
    """The Chebyshev series that has these values at the nodes."""
    nodes = len(values)
    series[:] = 0.0
    for p in range(nodes):
        value, row = values[p] * 2.0 / nodes, cosines[p * nodes : (p + 1) * nodes]
        for n in range(nodes):
            series[n] += value * row[n]
    series[0] *= 0.5


@kernel
def _differentiate(series, radius, derivative):
    """The series of the derivative, for an interval of this radius."""
    derivative[:] = 0.0
    for n in range(len(series) - 3, -1, -1):
        derivative[n] = derivative[n + 2] + 2.0 * (n + 1) * series[n + 1] / radius
    derivative[0] *= 0.5


@kernel
def _integrate(series, radius, at_the_end, integral):
    """The series of the integral that has the value ``at_the_end`` at the upper end of the interval."""
    integral[:] = 0.0
    integral[1] = radius * (series[0] - 0.5 * series[2])
    for n in range(2, len(series) - 1):
        integral[n] = radius * (series[n - 1] - series[n + 1]) / (2.0 * n)
    integral[0] = at_the_end
    for n in range(1, len(series)):
        integral[0] -= integral[n]


@kernel
def _at(x, one, two, first, second):
    """The values of two series at x in [-1, 1]: Clenshaw's recurrence, a tile of documents at a time."""
    nodes = len(one) - 2
    twice, b1, b2, d1, d2 = np.empty(_TILE), np.empty(_TILE), np.empty(_TILE), np.empty(_TILE), np.empty(_TILE)
    for low in range(0, len(x), _TILE):
        size = min(_TILE, len(x) - low)
        for i in range(_TILE):
            twice[i] = b1[i] = b2[i] = d1[i] = d2[i] = 0.0
        for i in range(size):
            twice[i] = 2.0 * x[low + i]
        for n in range(nodes, 0, -2):  # two steps at once, so that nothing is copied
            c_n, c_below, e_n, e_below = one[n], one[n - 1], two[n], two[n - 1]
            for i in range(_TILE):
                b2[i] = twice[i] * b1[i] - b2[i] + c_n
                b1[i] = twice[i] * b2[i] - b1[i] + c_below
                d2[i] = twice[i] * d1[i] - d2[i] + e_n
                d1[i] = twice[i] * d2[i] - d1[i] + e_below
        for i in range(size):
            first[low + i] = one[0] + 0.5 * twice[i] * b1[i] - b2[i]
            second[low + i] = two[0] + 0.5 * twice[i] * d1[i] - d2[i]


@kernel
def _by_nodes(score, label, weight, spread, middle, table, slope, bend, valued):
    """The sums for one list by nodes: the losses if they are ``valued``, else 0; -1 where every pair takes less.

    ``valued`` is True or None: numba compiles no branch that a None rules out.
    """
    size, radius = len(score), max(0.5 * spread, 1e-3)
    nodes = _number_of_nodes(spread, _CURVED if valued is None else _VALUED)
    every_pair = float(size) * size * (1.0 if valued is None else _VALUE_OF_A_PAIR)
    if nodes == 0 or _work(size, nodes, 2) >= every_pair:
        return -1.0
    grade, level = np.empty(size, np.int64), np.empty(_LABELS)
    kinds = _find_grades(label, grade, level)
    if kinds == 0 or _work(size, nodes, kinds) >= every_pair:
        return -1.0
    steps = nodes // _STEP - 1
    before = _STEP * _STEP * steps * (steps + 1) * (2 * steps + 1) // 6
    cosines = table[before : before + nodes * nodes]
    first, place = _arranged(grade, kinds)
    x, power, mass = np.empty(size), np.empty(size), np.empty(size)
    one, two = np.empty(size), np.empty(size)
    for z in range(size):
        x[z], mass[z] = score[place[z]] - middle, weight[place[z]]
    for z in range(size):
        power[z] = exp(x[z])
        x[z] = min(max(x[z] / radius, -1.0), 1.0)
    node, sums, end = np.empty(nodes), np.empty(nodes), np.zeros(kinds)
    for p in range(nodes):
        node[p] = exp(radius * cosines[p * nodes + 1])
    of_grade, total = np.zeros((kinds, nodes + 2)), np.zeros(kinds)
    for k in range(kinds):
        own = slice(first[k], first[k + 1])
        _add_sigmoids(node, power[own], mass[own], sums)
        _coefficients(sums, cosines, of_grade[k, :nodes])
        for z in range(first[k], first[k + 1]):
            total[k] += mass[z]
    if valued is not None:
        for z in range(size):
            one[z] = log1pexp(radius * (x[z] - 1.0))
        for k in range(kinds):
            for z in range(first[k], first[k + 1]):
                end[k] += mass[z] * one[z]
    series, lower, other = np.empty(nodes + 2), np.empty(nodes + 2), np.empty(nodes + 2)
    losses = 0.0
    for k in range(kinds):
        below, at_the_end = 0.0, 0.0
        series[:] = 0.0
        for j in range(k):
            lead = level[k] - level[j]
            below += lead * total[j]
            at_the_end += lead * end[j]
            for n in range(nodes):
                series[n] += lead * of_grade[j, n]
        if valued is not None:  # its slope at x is the sum of lead w_j (sigmoid(x - s_j) - 1)
            for n in range(nodes + 2):
                lower[n] = series[n]
            lower[0] -= below
            _integrate(lower, radius, at_the_end, other)
        for j in range(k + 1, kinds):
            for n in range(nodes):
                series[n] += (level[j] - level[k]) * of_grade[j, n]
        series[0] -= below
        if valued is None:
            _differentiate(series, radius, other)
        own = slice(first[k], first[k + 1])
        _at(x[own], series, other, one[own], two[own])
    for z in range(size):
        slope[place[z]] = one[z]
        if valued is None:
            bend[place[z]] = max(two[z], 0.0)
        else:
            losses += mass[z] * max(two[z], 0.0)
    return losses


# ---------------------------------------------------------------------------------------------------- both forms


@kernel
def _graded(score, label, weight, grad, diagonal, table, valued):
    """The loss if it is ``valued``, or else (None) 0; adds the gradient, and second derivatives if it is not."""
    size, live, mass = len(score), 0, 0.0
    place = np.empty(size, np.int64)
    work = np.empty((6, size))
    s, y, w, slope, bend, power = work[0], work[1], work[2], work[3], work[4], work[5]
    lowest, highest, least, largest = np.inf, -np.inf, np.inf, -np.inf
    for i in range(size):
        if weight[i] > 0.0:  # the others are absent
            place[live], s[live], y[live], w[live] = i, score[i], label[i], weight[i]
            slope[live] = bend[live] = 0.0
            lowest, highest = min(lowest, score[i]), max(highest, score[i])
            least, largest = min(least, label[i]), max(largest, label[i])
            mass += weight[i]
            live += 1
    if not least < largest:
        return 0.0
    s, y, w, slope, bend, power = s[:live], y[:live], w[:live], slope[:live], bend[:live], power[:live]
    spread, loss = highest - lowest, -1.0
    middle = lowest + 0.5 * spread
    if len(table) > 0 and live > _SHORT:
        loss = _by_nodes(s, y, w, spread, middle, table, slope, bend, valued)
    if loss < 0.0:
        loss = 0.0
        if spread < _SPREAD:
            for i in range(live):
                power[i] = exp(s[i] - middle)
            _slopes_by_ratios(power, y, w, slope, bend)
        else:
            _slopes(s, y, w, slope, bend)
        if valued is not None:
            term, power[:] = np.empty(live), 0.0
            _losses(s, y, w, term, power)
            for i in range(live):
                loss += w[i] * power[i]
    for z in range(live):
        i = place[z]
        share = w[z] / mass
        grad[i] += slope[z] * share
        if valued is None:
            diagonal[i] += bend[z] * share
    return loss / mass


@kernel
def graded_pairs_formula(score, label, value, grad, table, params):
    """The loss and its gradient; ``value`` holds document weights."""
    return _graded(score, label, value, grad, grad, table, True)


@kernel
def graded_pairs_curved(score, label, value, grad, diagonal, table, params):
    """Gradient and second derivatives."""
    _graded(score, label, value, grad, diagonal, table, None)


@dataclass(frozen=True, kw_only=True, repr=False)
class GradedPairs(Loss):
    r"""phi = (1/m) sum over label_i > label_j of (label_i - label_j) log(1 + exp(s_j - s_i)), for m documents.

    Notes
    -----
    O(m): the cost per document does not grow with the list, unless it has many different labels or scores far apart.
    Convex and smooth, since x -> log(1 + e^x) is. The loss for boosted trees whose labels are grades, or any numbers
    whose differences mean something: a pair counts in proportion to the difference, and a list to its length.

    **Two forms.** What a document of label t gets from all documents of one label u is abs(t - u) times the sum of
    sigmoid(s_i - s_j) over them, a function of s_i alone. sigmoid is analytic in abs(Im) < pi. Short lists evaluate
    every pair; others evaluate the sums at R Chebyshev nodes on the range r of the scores, R = 10 + 4.4 r (10 + 2.2 r
    where second derivatives are asked for), rounded up to a multiple of 8. The series through these values gives the
    gradients, its derivative the second derivatives, its integral the loss. Every pair is taken, too, where R would
    pass 128 (r above 26, or 53) or nodes would cost more: K distinct labels cost K R (R + K) a list. Nodes usually pay
    from 40 documents on for the loss, from 100 on for second derivatives.

    **How exact.** Let D_i = sum_j abs(label_i - label_j) / m, which no derivative exceeds in absolute value. By the
    theorem on interpolation at Chebyshev nodes (Trefethen 2013, theorem 8.2) the error of a gradient is at most
    4 D_i rho^(1 - R) / ((rho - 1) sin d), log rho = asinh(2 (pi - d) / r), for every d in (0, pi / 2]: with 4.4 nodes a
    unit at most 6e-11 D_i, times r for the loss. In double precision 1e-13 is observed, so solvers and their gaps
    do not see which form was used. With second derivatives gradients are within 1.4e-8 D_i and second derivatives
    within 4e-6 D_i if r = 8 (scores of deviation 1); up to r = 53 errors of 3e-7 D_i and 2e-5 D_i are observed. A
    booster that rounds to 20 and 12 bits cannot tell them from 0.

    **G1 and H1** are infinite because labels may be any. If they are in an interval of length L, G1 = 2 L floor(m^2 /
    4) / m: the l1 norm of the gradient is the largest sum of (label_i - label_j) p_ij (u_j - u_i) / m over signs u,
    with p_ij = sigmoid(s_j - s_i) < 1, and only pairs of different signs add something. There are at most floor(m^2 /
    4) of them, each adds at most 2 L / m. H1 is half of that, as for :class:`PairLogistic`: p_ij (1 - p_ij) <= 1/4.
    The **range**: the sum of (label_i - label_j) over pairs is convex in each label, hence largest where labels are at
    both ends of the interval: L floor(m^2 / 4). It is attained by scores of -b for the larger label, b for the other.

    **No measure is bounded**: a pair in the wrong order may cost as little as log(2) / m times its difference.

    With document weights a pair weighs w_i w_j, and m is the sum of the weights: weight k is k copies.

    References
    ----------
    C. Burges, T. Shaked, E. Renshaw, A. Lazier, M. Deeds, N. Hamilton, G. Hullender (2005). Learning to rank using
    gradient descent. ICML. doi:10.1145/1102351.1102363.

    L. N. Trefethen (2013). Approximation theory and approximation practice. SIAM.

    Examples
    --------
    >>> value, gradient = GradedPairs()([0.0, 0.0], [3, 1])
    >>> round(value, 6), gradient.tolist()   # 2 log(2) / 2
    (0.693147, [-0.5, 0.5])
    """

    name = "GradedPairs"
    convex = True
    smooth = True
    kernel = weighted_kernel = graded_pairs_formula
    document_weights = True
    curved_kernel = weighted_curved_kernel = graded_pairs_curved

    def row_values(self, labels: Vector) -> Vector:
        """The weight of every document without weights: 1."""
        return np.ones(len(labels))

    def table(self, longest: int) -> Vector:
        """The cosines of Chebyshev nodes, for lists that may need them."""
        return _cosines() if longest > _SHORT else np.zeros(0)

    def lipschitz_l1(self, m: int) -> float:
        """Infinite for more than one document, as labels may be any; proved in the Notes."""
        return np.inf if m > 1 else 0.0

    def smoothness(self, m: int) -> float:
        """Infinite for more than one document, as labels may be any; proved in the Notes."""
        return np.inf if m > 1 else 0.0

    def range(self, b: float, m: int, labels: tuple[float, float] = (0.0, 4.0)) -> tuple[float, float]:
        """0 to floor(m^2 / 4) / m times log(1 + e^(2 b)) times the range of the labels."""
        return 0.0, (m * m // 4) / max(m, 1) * (labels[1] - labels[0]) * float(np.logaddexp(0.0, 2.0 * b))

    @property
    def curvature(self) -> Literal["exact"] | None:
        return "exact"
