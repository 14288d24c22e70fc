"""An order of a list as one vector of features: rows of X added up with weights that fall with their position."""

import numpy as np

from rankwise._kernels.jit import kernel


@kernel
def weights_of_places(relevant, by_class, out):
    """The weight of every position, for ``relevant`` by position; they add up to 0.

    (n + 1 - 2 position) / (n (n - 1)); by class, the pairs of a relevant and another item alone count: that is
    (N0 - 2 others above) / (N1 N0) for a relevant item and (N1 - 2 relevant above) / (N1 N0) for another one.
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
def _add_scaled(x, weight, centre, factor, out):
    for j in range(len(out)):
        out[j] += weight * ((x[j] - centre[j]) * factor[j])


@kernel
def order_features(X, lists, start, rows, value, orders, by_class, centre, factor, out):
    """out[i] = sum over positions p of weight_p (x - centre) factor, for the order of list lists[i].

    ``orders`` holds items at positions for all lists, at the lists' own places; an item is relevant when its value is
    above 0.
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
            _add_scaled(X[own[p]], weight[p], centre, factor, out[i])
