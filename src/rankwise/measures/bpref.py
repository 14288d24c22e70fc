"""Bpref, which does not count the documents that nobody judged.

All other measures of relevance take an unjudged document for one of label 0. Where every document was judged, as in
LETOR data, :class:`Bpref` is defined as usual.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels.machine.jit import kernel
from rankwise.measures._base import BinaryMeasure, Vector


@kernel
def bpref_formula(value, end, retrieved, best, table, params):
    """Bpref; ``value`` is 1 for relevant documents, 0 for those judged not to be relevant, 1/2 for unjudged ones."""
    relevant = other = 0.0
    for p in range(len(value)):
        if value[p] == 1.0:
            relevant += 1.0
        elif value[p] == 0.0:
            other += 1.0
    if relevant == 0.0:
        return np.nan
    most = min(relevant, other)
    total = 0.0
    above = 0.0  # documents above the block that were judged not to be relevant
    t = 0
    while t < retrieved:
        inside = inside_other = 0.0
        for p in range(t, end[t]):
            if value[p] == 1.0:
                inside += 1.0
            elif value[p] == 0.0:
                inside_other += 1.0
        if inside > 0.0:
            # each number of these others, from none to all, is equally likely to be above a relevant document
            share = 0.0
            for j in range(int(inside_other) + 1):
                share += 1.0 if above + j == 0.0 else 1.0 - min(above + j, relevant) / most
            total += inside * (share / (inside_other + 1.0))
        above += inside_other
        t = end[t]
    return total / relevant


@dataclass(frozen=True, kw_only=True, repr=False)
class Bpref(BinaryMeasure):
    """Binary preference: bpref = (1/r) sum over retrieved relevant documents of 1 - min(n, r) / min(N, r).

    r documents are relevant, N were judged not to be, and n of these are above the document. Unjudged documents do not
    count at all, so the measure changes little as judgments are taken away.

    Parameters
    ----------
    cutoff : None
        Not allowed; the measure looks at the whole list.
    rel : float, default=1
        A document is relevant if its label is at least this.

    Notes
    -----
    The measure is 0/0 if no document is relevant. This is the definition of trec_eval since version 8, which differs
    from that of the paper where fewer than r documents were judged not to be relevant.

    References
    ----------
    C. Buckley and E. M. Voorhees (2004). Retrieval evaluation with incomplete information. SIGIR 2004, 25-32.
    doi:10.1145/1008992.1009000.

    Examples
    --------
    >>> Bpref()([0.9, 0.5, 0.1], [0, 0, 1], judged=[False, True, True])
    0.0
    >>> Bpref()([0.9, 0.5, 0.1], [0, 1, 0], judged=[False, True, True])
    1.0
    """

    name = "Bpref"
    takes_cutoff = False
    kernel = bpref_formula

    def row_values_judged(self, labels: Vector, judged: NDArray[np.bool_]) -> Vector:
        """1 for relevant documents, 0 for those judged not to be relevant, 1/2 for those that were not judged."""
        return np.where(judged, self.row_values(labels), 0.5)
