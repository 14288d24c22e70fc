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
from rankwise._kernels.levels import number_levels

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
def lay_out(own, grade, first, count, way_of_row):
    """The way through one list of the rows ``own``; inside a class documents keep their order."""
    seen = np.zeros(len(count), np.int64)
    for i in range(len(own)):
        c = grade[i]
        p = len(own) - first[c] - count[c] + seen[c]
        way_of_row[own[p]] = i if seen[c] > 0 else i + 0.5
        seen[c] += 1


@kernel
def weigh_lists(start, rows, label, value, discount, kind, symmetric, way_of_row, weight_of_row):
    """The way through every list, and every row's weight v; all 0 where every order is perfect.

    ``value`` holds gains for NDCG and relevance for AP.
    """
    for q in range(len(start) - 1):
        own = rows[start[q] : start[q + 1]]
        size = len(own)
        if size == 0:
            continue
        grade = np.empty(size, np.int64)
        n_grades = number_levels(label[own], grade)
        first, count = class_layout(grade, n_grades)
        gain = np.zeros(n_grades)
        for i in range(size):
            gain[grade[i]] = value[own[i]]
        v = np.zeros(size)
        if n_grades > 1:
            position_weights(kind, first, count, gain, discount[:size], v)
        if symmetric:
            average_inside_classes(first, count, v)
        lay_out(own, grade, first, count, way_of_row)
        for i in range(size):
            weight_of_row[own[i]] = v[first[grade[i]]]
            first[grade[i]] += 1  # documents of a class take its positions in their own order


@kernel
def lay_out_lists(start, rows, label, way_of_row):
    """The way through every list."""
    for q in range(len(start) - 1):
        own = rows[start[q] : start[q + 1]]
        if len(own) > 0:
            grade = np.empty(len(own), np.int64)
            first, count = class_layout(grade, number_levels(label[own], grade))
            lay_out(own, grade, first, count, way_of_row)


@kernel
def number_lists(start, rows, label, grade_of_row):
    """For every row the number of its label class in its list, 0 the lowest."""
    for q in range(len(start) - 1):
        own = rows[start[q] : start[q + 1]]
        if len(own) > 0:
            grade = np.empty(len(own), np.int64)
            number_levels(label[own], grade)
            for i in range(len(own)):
                grade_of_row[own[i]] = grade[i]


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
