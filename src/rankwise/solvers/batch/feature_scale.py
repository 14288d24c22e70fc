"""Features on a common scale without a second X: losses do not see a shift, so a factor a feature is enough.

s = sum_j w_j f_j x_j is the score of scaled features with weights w, and of raw ones with weights w f; the gradient
with respect to w is f X' g.
"""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import RankwiseError
from rankwise.data.queries import Queries
from rankwise.data.row_blocks import row_blocks
from rankwise.data.scaling import center_and_scale

Vector = NDArray[np.float64]
Scale = Literal["auto", "none"]

# features that are all smaller than this are in no units that anybody chose
_TINY = 1e-8


def scale_factors(queries: Queries, scale: Scale) -> tuple[Vector, Vector]:
    """(factor, centre) a feature, from the lists whose weight is not 0.

    1 and 0 for "none", and for "auto" where all values lie in [-1, 1] (but not all within 1e-8 of 0) or the queries
    were scaled already; otherwise 1 / standard deviation (0 where a feature does not vary) and the mean.
    """
    if scale not in ("auto", "none"):
        raise RankwiseError(f"scale is 'auto' or 'none': found {scale!r}")
    plain = np.ones(queries.n_features), np.zeros(queries.n_features)
    if scale == "none" or queries.scaling is not None:
        return plain
    blocks = list(row_blocks(queries))
    largest = max((_largest(queries.X[rows]) for rows in blocks), default=0.0)
    if _TINY <= largest <= 1 or largest == 0:
        return plain
    centre, deviation = center_and_scale(queries.X, blocks, "standard")
    with np.errstate(over="ignore"):
        factor = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 0)
    if not np.isfinite(factor).all():
        feature = int(np.argmin(np.isfinite(factor)))
        raise RankwiseError(f"feature {feature} varies by {deviation[feature]:g} only, which cannot be scaled")
    return factor, centre


def _largest(block: NDArray[Any]) -> float:
    return max(float(block.max(initial=0.0)), -float(block.min(initial=0.0)))
