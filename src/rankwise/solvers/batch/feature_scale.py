"""Features on a common scale without a second X: losses ignore a shift, so one factor per feature is enough.

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

# Features that are all smaller than this are scaled even though they lie in [-1, 1].
_TINY = 1e-8


def scale_factors(queries: Queries, scale: Scale) -> tuple[Vector, Vector]:
    """The factor and the centre of every feature, from the queries whose weight is not 0.

    Parameters
    ----------
    queries : Queries
        Queries with features.
    scale : {"auto", "none"}
        "none" gives 1 and 0; so does "auto" if all values lie in [-1, 1] (but not all within 1e-8 of 0), or if the
        queries were scaled already. Otherwise "auto" gives 1 / standard deviation (0 if a feature does not vary) and
        the mean.

    Returns
    -------
    factor, centre : ndarray, shape (n_features,)
        One number per feature.

    Raises
    ------
    RankwiseError
        If a feature varies so little that its factor overflows.
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
    """The largest absolute value, without a copy."""
    return max(float(block.max(initial=0.0)), -float(block.min(initial=0.0)))
