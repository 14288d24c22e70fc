"""The sum of a loss over judged lists as a function of linear weights, with its gradient, in one pass over X."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels import drive
from rankwise.data.queries import Queries
from rankwise.losses._base import Loss
from rankwise.losses.compute import PreparedLists

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class LossOverLists:
    """f(w) = sum_q weight_q phi_q(X_q w), with its gradient sum_q weight_q X_q' g_q.

    The lists are worked through in fixed chunks whose parts are added in order, so that every number of threads
    gives the same bits. X is read once a call, where it stands, in float32 or float64.
    """

    queries: Queries
    prepared: PreparedLists
    weight: Vector

    @classmethod
    def of(cls, loss: Loss, queries: Queries, weight: Vector | None = None) -> Self:
        """``weight``: one number a list in place of the queries' own."""
        rows = None if queries.is_grouped else queries.rows
        own = np.empty(0) if queries.weight is None else queries.weight
        prepared = PreparedLists.of(loss, queries.labels(), queries.start, rows)
        return cls(queries, prepared, own if weight is None else np.ascontiguousarray(weight, dtype=np.float64))

    def __call__(self, w: Vector, *, n_jobs: int | None = None) -> tuple[float, Vector]:
        """(f(w), gradient)."""
        weights = np.ascontiguousarray(w, dtype=np.float64)

        def part(first: int, last: int) -> tuple[float, Vector]:
            return self._over_chunk(first, last, weights)

        total, slope = 0.0, np.zeros(self.queries.n_features)
        for value, gradient in drive.run(part, self._chunks, n_jobs):
            total += value
            slope += gradient
        return total, slope

    # What follows is the same at every call: on short lists looking it up takes as long as the work itself.

    @cached_property
    def _chunks(self) -> list[tuple[int, int]]:
        return list(drive.query_chunks(self.queries.start))

    @cached_property
    def _over_chunk(self) -> Callable[[int, int, Vector], tuple[float, Vector]]:
        from rankwise._kernels.jit import typed_function
        from rankwise.losses._driver import FORMULA
        from rankwise.solvers._fused import fused_on

        start, prepared, weight = self.queries.start, self.prepared, self.weight
        formula = typed_function(type(prepared.loss).formula, FORMULA)
        rows = np.empty(0, np.int64) if prepared.rows is None else prepared.rows
        label, value, table = prepared.label, prepared.value, prepared.table
        knobs = np.array(prepared.loss.knobs(), dtype=np.float64)
        X, features, fused = np.asarray(self.queries.X), self.queries.n_features, fused_on(self.queries.X.dtype)

        def over_chunk(first: int, last: int, w: Vector) -> tuple[float, Vector]:
            gradient = np.zeros(features)
            total = fused(formula, first, last, start, rows, X, label, value, weight, table, knobs, w, gradient)
            return total, gradient

        return over_chunk
