"""The strength of regularisation for which a bound on the expected risk is known."""

import math

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import RankwiseError
from rankwise.data.queries import Queries
from rankwise.losses._base import Loss
from rankwise.solvers._row_blocks import lists_that_count
from rankwise.solvers.radius import largest_radius

Vector = NDArray[np.float64]


def theory_strength(
    loss: Loss, queries: Queries, factor: Vector, row_radius: float | None, norm: float | None
) -> float:
    r"""lambda = 2 G R / (W sqrt(n)): over n lists drawn independently, E risk(w) - risk(u) <= 2 G W R / sqrt(n).

    u is any vector with norm(u - w0) <= W, G the G1 of the loss, and no document of any list, drawn or to come, lies
    farther than R from 0 (or from the mean of its list). The minimiser moves by 2 G R / (lambda n) at most when one
    list is replaced.

    Parameters
    ----------
    factor : of each feature, all 1 for R to be that of the features at hand
    row_radius, norm : R and W
    """
    if row_radius is None or norm is None or not (0 < row_radius < math.inf and 0 < norm < math.inf):
        raise RankwiseError(
            f"strength='theory' needs row_radius= and norm=, both above 0: found {row_radius!r} and {norm!r}"
        )
    if (factor != 1).any():
        raise RankwiseError("strength='theory' takes row_radius= of features as they are: give scale='none'")
    counting = lists_that_count(queries)
    if queries.weight is not None and len(counting) and np.ptp(queries.weight[counting]) > 0:
        raise RankwiseError("strength='theory' is for lists of equal weight: found weights that differ")
    found = largest_radius(queries)
    if found > row_radius * (1 + 1e-9):
        raise RankwiseError(f"row_radius={row_radius:g} holds for every list: found one of radius {found:g}")
    steep = loss.lipschitz_l1(int(queries.sizes[counting].max(initial=2)))
    if not math.isfinite(steep):
        raise RankwiseError(f"strength='theory' needs a loss of bounded slope: found {loss!r}")
    return 2 * steep * row_radius / (norm * math.sqrt(max(1, len(counting))))
