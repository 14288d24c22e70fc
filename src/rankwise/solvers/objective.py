"""The sum of a loss over judged lists as a function of linear weights, with its gradient, in one pass over X."""

from dataclasses import dataclass
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
        from rankwise._kernels.jit import typed_function
        from rankwise.losses._driver import FORMULA
        from rankwise.solvers._fused import fused_on

        queries, prepared = self.queries, self.prepared
        formula = typed_function(type(prepared.loss).formula, FORMULA)
        rows = np.empty(0, np.int64) if prepared.rows is None else prepared.rows
        knobs = np.array(prepared.loss.knobs(), dtype=np.float64)
        fused, X = fused_on(queries.X.dtype), np.asarray(queries.X)

        def part(first: int, last: int) -> tuple[float, Vector]:
            gradient = np.zeros(queries.n_features)
            value = fused(
                formula, first, last, queries.start, rows, X, prepared.label, prepared.value, self.weight,
                prepared.table, knobs, w, gradient,
            )  # fmt: skip
            return value, gradient

        total, slope = 0.0, np.zeros(queries.n_features)
        for value, gradient in drive.run(part, list(drive.query_chunks(queries.start)), n_jobs):
            total += value
            slope += gradient
        return total, slope
