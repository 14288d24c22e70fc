"""The sum of a loss over judged lists as a function of linear weights, with its gradient, in one pass over X."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Self

import numpy as np
from numba import types
from numpy.typing import NDArray

from rankwise._kernels import drive
from rankwise._kernels.jit import compiled, kernel
from rankwise._kernels.rows import add_rows, dot
from rankwise.data.queries import Queries
from rankwise.losses._base import Loss
from rankwise.losses.compute import KERNEL, PreparedLists

Vector = NDArray[np.float64]


# -------------------------------------------------------------------------------------------------------------- fused
# One pass over X for a loss and its gradient: a list is scored, and X' g added while its rows are in cache.


def _fused_lists(kernel, first, last, start, rows, X, label, value, weight, table, params, w, gradient):
    """The weighted sum of the loss over lists first..last-1; adds its gradient with respect to w to ``gradient``."""
    longest = 0
    for q in range(first, last):
        longest = max(longest, start[q + 1] - start[q])
    buffer, places = np.empty((4, longest)), np.empty(longest, np.int64)
    total = 0.0
    for q in range(first, last):
        low, size = start[q], start[q + 1] - start[q]
        query_weight = 1.0 if len(weight) == 0 else weight[q]
        if size == 0 or query_weight == 0.0:
            continue
        s, y, v, g, own = buffer[0, :size], buffer[1, :size], buffer[2, :size], buffer[3, :size], places[:size]
        for p in range(size):
            row = low + p if len(rows) == 0 else rows[low + p]
            own[p] = row
            s[p] = dot(X[row], w)
            y[p], v[p], g[p] = label[row], value[row], 0.0
        total += query_weight * kernel(s, y, v, g, table, params)
        g *= query_weight
        add_rows(X, own, g, gradient)
    return total


_floats = types.Array(types.float64, 1, "C")
_floats_in = types.Array(types.float64, 1, "C", readonly=True)
_ints_in = types.Array(types.int64, 1, "C", readonly=True)


@cache
def fused_on(dtype: np.dtype[Any]) -> Any:
    """The pass compiled for this type of X."""
    real = types.float32 if dtype == np.float32 else types.float64
    X = types.Array(real, 2, "C", readonly=True)
    given = (types.FunctionType(KERNEL), types.int64, types.int64, _ints_in, _ints_in, X, *(_floats_in,) * 6)
    return compiled(kernel(_fused_lists), types.float64(*given, _floats))


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
        own = np.empty(0) if queries.weight is None else queries.weight
        prepared = PreparedLists.of(loss, queries.labels(), queries.start, queries.scattered_rows)
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
        from rankwise.losses.compute import KERNEL

        start, prepared, weight = self.queries.start, self.prepared, self.weight
        kernel = typed_function(type(prepared.loss).kernel, KERNEL)
        rows = np.empty(0, np.int64) if prepared.rows is None else prepared.rows
        label, value, table = prepared.label, prepared.value, prepared.table
        params = np.array(prepared.loss.params(), dtype=np.float64)
        X, features, fused = np.asarray(self.queries.X), self.queries.n_features, fused_on(self.queries.X.dtype)

        def over_chunk(first: int, last: int, w: Vector) -> tuple[float, Vector]:
            gradient = np.zeros(features)
            total = fused(kernel, first, last, start, rows, X, label, value, weight, table, params, w, gradient)
            return total, gradient

        return over_chunk
