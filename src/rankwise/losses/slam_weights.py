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
"""

import numpy as np

from rankwise._kernels.jit import kernel
from rankwise._kernels.sorting import sort_carrying

# what the compiled code is told
KINDS = {"ndcg_003": 0, "ndcg_tight": 1, "ap_003": 2, "ap_000": 3}


@kernel
def label_order(label):
    """Documents by decreasing label, equal labels by index: the order that never looks at scores."""
    size = len(label)
    key = -label
    order = np.arange(size)
    sort_carrying(key, order, np.empty(size), np.empty(size, np.int64), np.empty(size + 1, np.int64))
    return order


@kernel
def _ndcg_weights(order, gain, discount, kind, v):
    """ndcg_003 or ndcg_tight in the order given; ``discount`` is 0 from the cut-off on."""
    size = len(order)
    ideal = 0.0
    for p in range(size):
        ideal += gain[order[p]] * discount[p]
    if ideal <= 0.0:
        return
    least_gain = gain[order[size - 1]]
    least_discount = discount[size - 1]
    for p in range(size):
        if kind == 0:
            v[p] = gain[order[p]] * discount[p] / ideal
        else:
            v[p] = (gain[order[p]] - least_gain) * (discount[p] - least_discount) / ideal


@kernel
def _ap_weights(relevant, size, kind, v):
    for p in range(relevant):
        if kind == 2:
            v[p] = 1.0 / relevant
        else:
            v[p] = (size - relevant) / (size - relevant + p + 1) / relevant


@kernel
def slam_weights(order, label, gain, discount, kind, symmetric, v):
    """Fill v, in the order given (decreasing labels); 0 everywhere where no order is better than another."""
    size = len(order)
    v[:] = 0.0
    if label[order[0]] == label[order[size - 1]]:
        return
    if kind <= 1:
        _ndcg_weights(order, gain, discount, kind, v)
    else:
        relevant = 0
        while relevant < size and label[order[relevant]] > 0.0:
            relevant += 1
        _ap_weights(relevant, size, kind, v)
    if symmetric:
        t = 0
        while t < size:
            e = t + 1
            while e < size and label[order[e]] == label[order[t]]:
                e += 1
            v[t:e] = v[t:e].sum() / (e - t)
            t = e
