"""Average precision, with the expectation over the orders of tied scores in closed form.

Inside a block of ties the document at each place is relevant with the block's share of relevant documents, and those
above it hold a known mean number of relevant ones; :func:`ap_formula` adds these up.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from rankwise._kernels.machine.jit import kernel
from rankwise.measures._base import BinaryMeasure


@kernel
def ap_formula(value, end, retrieved, best, table, params):
    """AP; ``value`` holds 0/1 relevance, ``params`` the cut-off, the norm and whether blocks count at their end."""
    relevant = best.sum()
    if relevant == 0.0:
        return np.nan
    stop = int(min(params[0], float(retrieved)))
    total = 0.0
    before = 0.0  # relevant documents above the block
    t = 0
    while t < stop:
        e = end[t]
        size = e - t
        if size == 1:  # the common case, without a branch that would be mispredicted
            before += value[t]
            total += value[t] * before / e
            t = e
            continue
        inside = value[t:e].sum()
        if inside > 0.0:
            if params[2] != 0.0:
                total += inside * (before + inside) / e
            else:
                # the document at place q of the block is relevant with probability inside/size, and then
                # q-1 places before it hold (q-1)(inside-1)/(size-1) relevant ones on average
                slope = (inside - 1.0) / (size - 1.0)
                for q in range(min(e, stop) - t):
                    total += (inside / size) * (before + 1.0 + q * slope) / (t + q + 1)
        before += inside
        t = e
    norm = min(relevant, params[0]) if params[1] != 0.0 else relevant
    return total / norm


@dataclass(frozen=True, kw_only=True, repr=False)
class AP(BinaryMeasure):
    """Average precision: AP = (1/r) sum over relevant positions p of (relevant in 1..p) / p, r relevant documents.

    Parameters
    ----------
    cutoff : int, default=None
        The cut-off k; None for the whole list.
    rel : float, default=1
        A document is relevant if its label is at least this.
    norm : {"total", "cutoff"}, default="total"
        With a cut-off k, divide by r as in trec_eval ("total"), or by min(r, k) as in LightGBM and XGBoost ("cutoff").
    blocks : bool, default=False
        Whether a block of equal scores counts at its end, as scikit-learn's thresholds do; only meaningful under
        ``ties="expected"``.

    Notes
    -----
    The measure is 0/0 if no document is relevant.

    Examples
    --------
    >>> AP()([0.9, 0.3, 0.1], [1, 0, 1])
    0.8333333333333333
    """

    norm: Literal["total", "cutoff"] = "total"
    blocks: bool = False

    name = "AP"
    aliases = ("MAP",)
    kernel = ap_formula

    def params(self) -> tuple[float, ...]:
        """The norm and the treatment of blocks, as 0 and 1."""
        return float(self.norm == "cutoff"), float(self.blocks)
