"""Which orders a measure calls perfect: those that put the best values above every edge between positions.

An edge after position t says that the measure is at its best only if the first t documents have the t largest row
values. Where a measure cannot tell two neighbouring positions apart (P@k inside the first k, a discount that stays the
same), there is no edge between them.
"""

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import MeasureError
from rankwise.measures import AP, ERR, NDCG, RBP, RR, WTA, MeanNDCG, P, Pairs, R, Success
from rankwise.measures._base import Measure

Edges = NDArray[np.bool_]


def position_edges(measure: Measure, longest: int) -> Edges:
    """Whether there is an edge after positions 1, 2, ..., longest, for lists of any length up to that.

    Measures with values in [0, 1] whose best orders can be told this way; others are refused.
    """
    position = np.arange(1, longest + 1)
    cut = np.inf if measure.cutoff is None else measure.cutoff
    if isinstance(measure, (AP, ERR, RBP)):
        return np.asarray(position <= cut)  # an earlier place always counts more
    if isinstance(measure, Pairs):
        return np.ones(longest, dtype=bool)
    if isinstance(measure, (P, R)):
        measure.all_knobs()  # which asks for the cut-off
        return np.asarray(position == cut)
    if isinstance(measure, (RR, WTA)) or (isinstance(measure, Success) and cut == 1):
        return np.asarray(position == 1)
    if isinstance(measure, NDCG):
        discount = np.where(np.arange(1, longest + 2) <= cut, measure.table(longest + 1), 0.0)
        return np.asarray(np.diff(discount) < 0)
    if isinstance(measure, MeanNDCG):
        return np.asarray(measure.table(longest) > 0)  # NDCG@1, NDCG@2, ... are all at their best
    raise MeasureError(
        f"permutations can be compared for nDCG, MeanNDCG, AP, P, R, RR, WTA, ERR, RBP and Pairs: found {measure.title}"
    )


def compares_classes(edges: Edges, values: NDArray[np.float64]) -> bool:
    """Whether all that counts is which documents with a value stand above which without: one value, all positions."""
    return bool(edges.all() and len(np.unique(np.append(values, 0.0))) <= 2)
