"""Weights v(labels) of the SLAM losses: what each document is worth if a less relevant one is ranked above it.

i counts documents by decreasing label; r relevant ones, m in all, G gains, D_k discounts cut at k, Z_k the ideal DCG@k.

================== ======================================== ========================================
rule               v_i                                      where it is from
================== ======================================== ========================================
ndcg_tight         (G_i - G_min) (D_k(i) - D_k(m)) / Z_k    tightest; equals ndcg_000 at k = m
ndcg_000           (G_i - G_min) (D(i) - D(m)) / Z          perceptron 2014, (9); whole list only
ndcg_003           G_i D_k(i) / Z_k                         online perceptron, (11) and (24)
ap_000             (1/r) (m - r) / (m - r + i), relevant    perceptron 2014, (6)
ap_003             1/r, relevant                            online perceptron, (10)
ap_sym             the sum of ap_000, shared equally        same sum, no document preferred
ndcg_*_sym         averaged inside each label class
================== ======================================== ========================================

The rule must not look at scores: weights that follow the scores inside a class would make the loss non-convex. With
any of them the pessimistic loss of the measure is at most the sum of v over documents that a less relevant one
outscores, which is what makes SLAM an upper bound.

Losses that compare a document with the best of the lower classes walk through a list from its lowest class up. Labels
alone tell that way, so it is laid out once, as one number a document: its place in the list, and a half more where a
class begins.
"""

import numpy as np

from rankwise._kernels.jit import kernel
from rankwise._kernels.pairs import number_levels

# what the compiled code is told
KINDS = {"ndcg_003": 0, "ndcg_tight": 1, "ap_003": 2, "ap_000": 3}


@kernel
def class_layout(grade, n_grades):
    """``first``: documents ranked before each class when labels decrease; class c ends where class c - 1 begins."""
    first = np.zeros(n_grades + 1, np.int64)  # one more: class -1, of which there is none, begins at the end
    count = np.zeros(n_grades, np.int64)
    for i in range(len(grade)):
        count[grade[i]] += 1
    for c in range(n_grades - 1, 0, -1):
        first[c - 1] = first[c] + count[c]
    first[n_grades] = len(grade)
    return first, count


@kernel
def position_weights(kind, first, count, gain, discount, v):
    """v by position, labels decreasing; ``gain`` by class, ``discount`` 0 from the cut-off on."""
    n_grades, size = len(count), len(v)
    if kind >= 2:
        relevant = first[0]  # classes above the lowest, of which binary labels have one
        for p in range(relevant):
            v[p] = 1.0 / relevant if kind == 2 else (size - relevant) / (size - relevant + p + 1) / relevant
        v[relevant:] = 0.0
        return
    v[:] = 0.0
    depth = size
    while depth > 0 and discount[depth - 1] == 0.0:  # nothing below the cut-off counts
        depth -= 1
    ideal = 0.0
    for c in range(n_grades - 1, -1, -1):
        for p in range(first[c], min(first[c] + count[c], depth)):
            ideal += gain[c] * discount[p]
    if ideal <= 0.0:
        return
    lost, last = (0.0, 0.0) if kind == 0 else (gain[0], discount[size - 1])
    for c in range(n_grades - 1, -1, -1):
        for p in range(first[c], min(first[c] + count[c], depth)):
            v[p] = (gain[c] - lost) * (discount[p] - last) / ideal


@kernel
def average_inside_classes(first, count, v):
    """The symmetric form: every document of a class is worth the same."""
    for c in range(len(count)):
        total = 0.0
        for p in range(first[c], first[c] + count[c]):
            total += v[p]
        v[first[c] : first[c] + count[c]] = total / count[c]


@kernel
def lay_out(grade, first, count, way):
    """The way through one list; inside a class documents keep their order."""
    seen = np.zeros(len(count), np.int64)
    for i in range(len(grade)):
        c = grade[i]
        p = len(grade) - first[c] - count[c] + seen[c]
        way[p] = i if seen[c] > 0 else i + 0.5
        seen[c] += 1


@kernel
def _weigh(label, value, discount, kind, symmetric, grade, way, weight):
    """The way through one list, and the weight of every document."""
    n_grades = number_levels(label, grade)
    first, count = class_layout(grade, n_grades)
    gain = np.zeros(n_grades)
    for i in range(len(grade)):
        gain[grade[i]] = value[i]
    v = np.zeros(len(grade))
    if n_grades > 1:
        position_weights(kind, first, count, gain, discount, v)
    if symmetric:
        average_inside_classes(first, count, v)
    lay_out(grade, first, count, way)
    for i in range(len(grade)):
        weight[i] = v[first[grade[i]]]
        first[grade[i]] += 1  # documents of a class take its positions in their own order


@kernel
def weigh_lists(start, rows, label, value, discount, kind, symmetric, way_of_row, weight_of_row):
    """The way through every list, and every row's weight v; all 0 where every order is perfect.

    ``value`` holds gains for NDCG and relevance for AP; no ``rows``: lists stand together.
    """
    grade = np.empty(len(discount), np.int64)
    for q in range(len(start) - 1):
        low, high = start[q], start[q + 1]
        if low == high:
            continue
        buffer, by_position = grade[: high - low], discount[: high - low]
        if len(rows) == 0:
            own = slice(low, high)
            _weigh(label[own], value[own], by_position, kind, symmetric, buffer, way_of_row[own], weight_of_row[own])
        else:
            places, way, weight = rows[low:high], np.empty(high - low), np.empty(high - low)
            _weigh(label[places], value[places], by_position, kind, symmetric, buffer, way, weight)
            way_of_row[places], weight_of_row[places] = way, weight


@kernel
def lay_out_lists(start, rows, label, way_of_row):
    """The way through every list; no ``rows``: lists stand together."""
    for q in range(len(start) - 1):
        low, high = start[q], start[q + 1]
        if low < high:
            grade, way = np.empty(high - low, np.int64), np.empty(high - low)
            n_grades = number_levels(label[low:high] if len(rows) == 0 else label[rows[low:high]], grade)
            first, count = class_layout(grade, n_grades)
            lay_out(grade, first, count, way)
            if len(rows) == 0:
                way_of_row[low:high] = way
            else:
                way_of_row[rows[low:high]] = way


@kernel
def number_lists(start, rows, label, grade_of_row):
    """For every row the number of its label class in its list, 0 the lowest; no ``rows``: lists stand together."""
    for q in range(len(start) - 1):
        low, high = start[q], start[q + 1]
        if low < high and len(rows) == 0:
            number_levels(label[low:high], grade_of_row[low:high])
        elif low < high:
            grade = np.empty(high - low)
            number_levels(label[rows[low:high]], grade)
            grade_of_row[rows[low:high]] = grade


@kernel
def class_end(way, p):
    """Where the class ends that begins at ``p``."""
    p += 1
    while p < len(way) and way[p] == np.floor(way[p]):
        p += 1
    return p


@kernel
def first_with(wanted, score, way, p, end):
    """The first document of a class, ``way[p:end]``, that has this score."""
    while p < end - 1 and score[int(way[p])] != wanted:
        p += 1
    return int(way[p])
