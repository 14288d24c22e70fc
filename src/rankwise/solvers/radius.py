"""The radius of lists: how far their rows lie from one point, which every bound on a linear ranker needs."""

import numpy as np

from rankwise.data.queries import Queries


def largest_radius(queries: Queries) -> float:
    """The largest over lists of max_i norm(x_i - c), c = 0 or the list's mean row, whichever is better for it."""
    from rankwise._kernels.rows import list_radius

    X, rows = np.asarray(queries.X), queries.rows
    ones, room = np.ones(queries.n_features), np.empty(queries.n_features)
    bounds = zip(queries.start[:-1], queries.start[1:], strict=True)
    return max((float(list_radius(X, rows[a:b], ones, room)) for a, b in bounds if b > a), default=0.0)
