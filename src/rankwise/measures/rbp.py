"""Rank-biased precision: relevance discounted by a reader who goes on to the next document with probability p."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwise._kernels.machine.jit import kernel
from rankwise._parameters import OpenFraction
from rankwise.measures._base import BinaryMeasure


@kernel
def rbp_formula(value, end, retrieved, best, table, params):
    """RBP; ``value`` holds 0/1 relevance, ``params`` the cut-off and the persistence."""
    if best.sum() == 0.0:
        return np.nan
    stop = int(min(params[0], float(retrieved)))
    persistence = params[1]
    total = 0.0
    weight = 1.0  # persistence^t
    t = 0
    while t < stop:
        e = end[t]
        within = min(e, stop) - t
        inside = value[t:e].sum()
        if e - t == 1:
            total += inside * weight * (1.0 - persistence)
        else:
            # 1 - p^within; the plain difference would lose digits if p is close to 1
            total += (inside / (e - t)) * weight * -math.expm1(within * math.log(persistence))
        weight *= persistence**within
        t = e
    return total


@dataclass(frozen=True, kw_only=True, repr=False)
class RBP(BinaryMeasure):
    """Rank-biased precision: RBP = (1 - p) sum over relevant positions of p^(position - 1), not normalized.

    Parameters
    ----------
    cutoff : int, default=None
        The cut-off k; None for the whole list.
    rel : float, default=1
        A document is relevant if its label is at least this.
    p : float, default=0.8
        Persistence, between 0 and 1: the probability of looking at the next document.

    Notes
    -----
    The measure is 0/0 if no document is relevant.

    References
    ----------
    A. Moffat, J. Zobel (2008). Rank-biased precision for measurement of retrieval effectiveness. ACM Transactions on
    Information Systems 27(1). doi:10.1145/1416950.1416952.
    """

    p: OpenFraction = 0.8

    name = "RBP"
    kernel = rbp_formula

    def params(self) -> tuple[float, ...]:
        """The persistence."""
        return (self.p,)

    def spelling(self) -> dict[str, Any]:
        """Parameters as they are printed, ``rel`` always among them: without it, ir-measures means the graded form."""
        return {"rel": self.rel, **super().spelling()}

    def _short_spelling(self) -> dict[str, Any]:
        return super().spelling()
