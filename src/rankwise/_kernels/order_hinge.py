"""The hinge between every perfect and every imperfect order of a list, without going through the pairs."""

import numpy as np

from rankwise._kernels.jit import kernel
from rankwise._kernels.rows import add_rows, dot


@kernel
def hinge_over_pairs(perfect, imperfect, missed, down, up):
    """(1/B) sum over b, c of missed_c [1 - (perfect_b - imperfect_c)]_+ in O(B log B + C log C).

    ``perfect`` and ``imperfect`` are scores; ``down`` and ``up`` receive the slopes with respect to them.
    """
    n_perfect, n_imperfect = len(perfect), len(imperfect)
    b_order, c_order = np.argsort(perfect), np.argsort(imperfect)
    base = perfect[b_order[0]]
    later = 0.0  # what is missed by the imperfect orders that are still to come
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


@kernel
def hinge_of_sets(first, last, features, place, start, middle, weight, missed, largest, w, slope):
    """sum_q weight_q hinge_q over the sets of lists first..last-1; adds the slope with respect to w.

    List q has perfect orders place[start[q]:middle[q]] and imperfect ones place[middle[q]:start[q+1]], by rows of
    ``features`` and ``missed``. The hinge is the largest of those between two orders, or their sum over imperfect and
    mean over perfect ones.
    """
    total = 0.0
    for q in range(first, last):
        own = place[start[q] : start[q + 1]]
        many = middle[q] - start[q]
        if many == 0 or many == len(own):
            continue
        score, lost, factor = np.empty(len(own)), np.empty(len(own)), np.empty(len(own))
        for p in range(len(own)):
            score[p], lost[p] = dot(features[own[p]], w), missed[own[p]]
        given = (score[:many], score[many:], lost[many:], factor[:many], factor[many:])
        value = largest_hinge(*given) if largest else hinge_over_pairs(*given)
        total += weight[q] * value
        factor *= weight[q]
        add_rows(features, own, factor, slope)
    return total
