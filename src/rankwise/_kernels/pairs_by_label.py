"""Count pairs of documents by their two grades: how many there are, how many stand wrongly, how many are tied."""

import numpy as np

from rankwise._kernels.jit import kernel


@kernel
def count_pairs(start, order, end, grade, n_grades):
    """Pairs of different grades within lists, by (higher grade, lower grade).

    ``start`` bounds the lists in ``order`` and ``end``, which hold their rows from the highest key down and their
    blocks of equal keys, as ``order_lists`` writes them. Returns four n_grades x n_grades arrays of whole numbers:
    all pairs; inverted ones (the lower grade has the strictly higher key); tied ones (the same key); and those of
    the tied ones in which the lower grade comes first. O(m n_grades) for a list of m documents.
    """
    pairs = np.zeros((n_grades, n_grades), dtype=np.int64)
    inverted = np.zeros((n_grades, n_grades), dtype=np.int64)
    tied = np.zeros((n_grades, n_grades), dtype=np.int64)
    tied_wrongly = np.zeros((n_grades, n_grades), dtype=np.int64)
    above = np.empty(n_grades, dtype=np.int64)  # documents with a strictly higher key, by grade
    beside = np.empty(n_grades, dtype=np.int64)  # earlier documents of the same block of equal keys, by grade
    for q in range(len(start) - 1):
        base = start[q] - start[0]
        size = start[q + 1] - start[q]
        above[:] = 0
        t = 0
        while t < size:
            beside[:] = 0
            for p in range(t, end[base + t]):
                own = grade[order[base + p]]
                for other in range(own):  # lower grades that stand higher, or the same
                    inverted[own, other] += above[other]
                    pairs[own, other] += above[other] + beside[other]
                    tied[own, other] += beside[other]
                    tied_wrongly[own, other] += beside[other]
                for other in range(own + 1, n_grades):  # higher grades that stand higher, or the same
                    pairs[other, own] += above[other] + beside[other]
                    tied[other, own] += beside[other]
                beside[own] += 1
            for g in range(n_grades):
                above[g] += beside[g]
            t = end[base + t]
    return pairs, inverted, tied, tied_wrongly
