"""Reciprocal rank: one over the position of the first relevant document, averaged over the orders of tied scores."""

from dataclasses import dataclass

import numpy as np

from rankwise._kernels.jit import kernel
from rankwise.measures._base import BinaryMeasure
from rankwise.measures.precision import first_relevant_block


@kernel
def rr_formula(value, end, retrieved, best, table, params):
    """RR; ``value`` holds 0/1 relevance."""
    if best.sum() == 0.0:
        return np.nan
    stop = int(min(params[0], float(retrieved)))
    t, inside = first_relevant_block(value, end, stop)
    if t < 0:
        return 0.0
    size = end[t] - t
    total = 0.0
    none_yet = 1.0  # probability that the places 1..q of the block hold no relevant document
    for q in range(min(end[t], stop) - t):
        total += none_yet * (inside / (size - q)) / (t + q + 1)
        none_yet *= (size - q - inside) / (size - q)
    return total


@dataclass(frozen=True, kw_only=True, repr=False)
class RR(BinaryMeasure):
    """Reciprocal rank: RR = 1 / (position of the first relevant document), 0 if it is below the cut-off.

    Parameters
    ----------
    cutoff : int, default=None
        The cut-off k; None for the whole list.
    rel : float, default=1
        A document is relevant if its label is at least this.

    Notes
    -----
    The measure is 0/0 if no document is relevant.

    Examples
    --------
    >>> RR()([0.3, 0.1, 0.9], [1, 0, 0])
    0.5
    """

    name = "RR"
    aliases = ("MRR",)
    kernel = rr_formula

    @property
    def decisive_positions(self) -> float:
        """1: once the first document is relevant, nothing below it matters."""
        return 1.0
