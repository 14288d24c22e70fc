"""Winner takes all: whether the first document has the highest label; averaged over the orders of tied scores."""

from dataclasses import dataclass

import numpy as np

from rankwise._kernels.machine.jit import kernel
from rankwise.measures._base import Measure


@kernel
def wta_formula(value, end, retrieved, best, table, params):
    """WTA; ``value`` holds the labels."""
    highest = best.max() if len(best) > 0 else 0.0
    if highest <= 0.0:
        return np.nan
    if retrieved == 0:
        return 0.0
    winners = 0
    for p in range(end[0]):
        if value[p] == highest:
            winners += 1
    return winners / end[0]


@dataclass(frozen=True, kw_only=True, repr=False)
class WTA(Measure):
    """Winner takes all: 1 if the document ranked first has the highest label of the list, else 0.

    Parameters
    ----------
    cutoff : None
        Not allowed; the measure looks at the first position only.

    Notes
    -----
    The measure is 0/0 if every label is 0.
    """

    name = "WTA"
    takes_cutoff = False
    kernel = wta_formula

    @property
    def decisive_positions(self) -> float:
        """1: only the first document counts."""
        return 1.0
