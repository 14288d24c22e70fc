"""Average precision."""

from dataclasses import dataclass

import numpy as np

from rankwise._errors import MeasureError
from rankwise._kernels.jit import kernel
from rankwise.measures._base import BinaryMeasure


@kernel
def ap_formula(value, end, retrieved, best, table, params):
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
        if size == 1:  # the common case, without a branch that nobody can predict
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
    rel : a document is relevant when its label is at least this
    norm : with a cut-off k, divide by the "total" r (trec_eval), or by min(r, k) with "cutoff" (LightGBM, XGBoost)
    blocks : True counts a block of equal scores at its end, as scikit-learn's thresholds do; only meaningful under
        ``ties="expected"``
    cutoff : k, or None for the whole list

    Notes
    -----
    0/0 when no document is relevant.
    """

    norm: str = "total"
    blocks: bool = False

    name = "AP"
    aliases = ("MAP",)
    kernel = ap_formula

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.norm not in ("total", "cutoff"):
            raise MeasureError(f"norm is 'total' or 'cutoff': found {self.norm!r}")
        if not isinstance(self.blocks, (bool, np.bool_)):
            raise MeasureError(f"blocks is True or False: found {self.blocks!r:.60}")

    def params(self) -> tuple[float, ...]:
        return float(self.norm == "cutoff"), float(self.blocks)
