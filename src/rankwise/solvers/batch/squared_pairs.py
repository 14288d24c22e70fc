"""The squared pair hinge over judged queries as a function of linear weights, with products by its generalised Hessian.

f(w) = sum_q weight_q phi_q(X_q w), phi = sum over label_i > label_j of [1 + s_j - s_i]_+^2.
:class:`SquaredPairsOverLists` is the function and :class:`SquaredPairsAt` the function at one point, as
:func:`rankwise.solvers.batch.newton.newton` takes it.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels import drive
from rankwise.data.queries import Queries
from rankwise.losses.pairwise_hinge import PairHinge
from rankwise.solvers.batch.objective import LossOverLists

Vector = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class SquaredPairsOverLists:
    """f as a function of w; ``pairs(w)`` has a value, a gradient and a ``hessian_product``.

    Queries are processed in fixed chunks whose parts are added in order, so every number of threads gives the same
    bits. X is read in place, in float32 or float64.

    Attributes
    ----------
    lists : LossOverLists
        Value and gradient.
    per_pair : bool
        Whether phi is divided by the number of pairs of its query.
    """

    lists: LossOverLists
    per_pair: bool

    @classmethod
    def of(cls, queries: Queries, per_pair: bool = True, weight: Vector | None = None) -> Self:
        """Prepare the function.

        Parameters
        ----------
        queries : Queries
            Judged queries.
        per_pair : bool, default=True
            Whether phi is divided by the number of pairs of its query.
        weight : ndarray, shape (n_queries,), default=None
            Used in place of the queries' own weights.

        Returns
        -------
        SquaredPairsOverLists
            The function.
        """
        return cls(LossOverLists.of(PairHinge(squared=True, per_pair=per_pair), queries, weight), per_pair)

    def __call__(self, w: Vector, n_jobs: int | None = None) -> "SquaredPairsAt":
        """The function at ``w``."""
        point = np.array(w, dtype=np.float64)
        return SquaredPairsAt(self, point, *self.lists(point, n_jobs=n_jobs), n_jobs)

    # The following does not depend on w.

    @cached_property
    def chunks(self) -> list[tuple[int, int]]:
        """Ranges of queries that are processed together."""
        return list(drive.query_chunks(self.lists.queries.start))

    @cached_property
    def rows(self) -> Integers:
        """The rows of the queries one after the other; empty if they are in this order already."""
        rows = self.lists.prepared.rows
        return np.empty(0, np.int64) if rows is None else rows

    @cached_property
    def levels(self) -> tuple[Integers, Integers, Vector]:
        """(level of each label in its query, number of levels per query, weight of a pair of the query)."""
        from rankwise._kernels.pairs import number_lists

        queries, weight = self.lists.queries, self.lists.weight
        level, many = np.zeros(queries.start[-1], np.int64), np.zeros(len(queries), np.int64)
        pairs = np.zeros(len(queries))
        number_lists(queries.start, self.rows, queries.labels(), level, many, pairs)
        share = np.where(pairs > 0, 1.0 if len(weight) == 0 else weight, 0.0)
        if self.per_pair:
            share = share / np.maximum(pairs, 1.0)
        return level, many, share


@dataclass(frozen=True)
class SquaredPairsAt:
    """f at one point: value, gradient, and products with the generalised Hessian.

    The Hessian is sum_q weight_q X_q' H_q X_q, H_q a = 2 sum over active pairs of (a_i - a_j)(e_i - e_j), where a pair
    is active if 1 + s_j - s_i > 0. The first product sorts the queries, in O(m log m); every product reads X once.

    Attributes
    ----------
    pairs : SquaredPairsOverLists
        The function.
    w : ndarray, shape (n_features,)
        The point.
    value : float
        f(w).
    gradient : ndarray, shape (n_features,)
        The gradient of f at w.
    n_jobs : int or None
        Number of threads.
    """

    pairs: SquaredPairsOverLists
    w: Vector
    value: float
    gradient: Vector
    n_jobs: int | None = None

    def hessian_product(self, v: Vector) -> Vector:
        """The product of the generalised Hessian at w with ``v``."""
        from rankwise._kernels.pairs import add_products_on

        pairs, queries = self.pairs, self.pairs.lists.queries
        X, direction = np.asarray(queries.X), np.ascontiguousarray(v, dtype=np.float64)
        level, many, share = pairs.levels
        place, reach = self._windows
        add_products = add_products_on(X.dtype)

        def part(first: int, last: int) -> Vector:
            own = np.zeros(queries.n_features)
            add_products(first, last, queries.start, pairs.rows, X, share, level, many, place, reach, direction, own)
            return own

        total = np.zeros(queries.n_features)
        for own in drive.run(part, pairs.chunks, self.n_jobs):
            total += own
        return 2.0 * total

    @cached_property
    def _windows(self) -> tuple[Integers, Integers]:
        """(documents of each query by decreasing score, how many of them each one may be paired with)."""
        from rankwise._kernels.pairs import find_windows_on

        pairs, queries = self.pairs, self.pairs.lists.queries
        X, share = np.asarray(queries.X), pairs.levels[2]
        place, reach = np.zeros(queries.start[-1], np.int64), np.zeros(queries.start[-1], np.int64)
        find = find_windows_on(X.dtype)

        def part(first: int, last: int) -> None:
            find(first, last, queries.start, pairs.rows, X, share, self.w, place, reach)

        drive.run(part, pairs.chunks, self.n_jobs)
        return place, reach
