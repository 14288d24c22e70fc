"""The sum of a loss over judged queries as a function of linear weights, with its gradient, in one pass over X.

:class:`LossOverLists` is the function that batch solvers minimise. Its compiled loop scores a query, calls the kernel
of the loss, and adds X' g while the rows of the query are in the cache.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any, Self

import numpy as np
from numba import types
from numpy.typing import NDArray

from rankwise._kernels import drive
from rankwise._kernels.jit import compiled, kernel, typed_function
from rankwise._kernels.rows import add_rows, dot
from rankwise.data.queries import Queries
from rankwise.losses._base import Loss
from rankwise.losses.compute import PreparedLists, kernel_type

Vector = NDArray[np.float64]


def _fused_lists(kernel, first, last, start, rows, X, label, value, weight, table, params, w, gradient):
    """The weighted sum of the loss over queries first..last-1; adds its gradient with respect to w to ``gradient``."""
    longest = 0
    for q in range(first, last):
        longest = max(longest, start[q + 1] - start[q])
    scores, labels, values = np.empty(longest), np.empty(longest), np.empty(longest)
    slopes, places = np.empty(longest), np.empty(longest, np.int64)
    total = 0.0
    for q in range(first, last):
        low, size = start[q], start[q + 1] - start[q]
        query_weight = 1.0 if len(weight) == 0 else weight[q]
        if size == 0 or query_weight == 0.0:
            continue
        s, y, v, g, own = scores[:size], labels[:size], values[:size], slopes[:size], places[:size]
        for p in range(size):
            row = low + p if len(rows) == 0 else rows[low + p]
            own[p] = row
            s[p] = dot(X[row], w)
            y[p], v[p], g[p] = label[row], value[row], 0.0
        total += query_weight * kernel(s, y, v, g, table, params)
        for p in range(size):
            g[p] *= query_weight
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
    given = (types.FunctionType(kernel_type()), types.int64, types.int64, _ints_in, _ints_in, X, *(_floats_in,) * 6)
    return compiled(kernel(_fused_lists), types.float64(*given, _floats))


@dataclass(frozen=True)
class LossOverLists:
    """f(w) = sum_q weight_q phi_q(X_q w), with its gradient sum_q weight_q X_q' g_q.

    The queries are processed in fixed chunks whose parts are added in order, so every number of threads gives the same
    bits. X is read once per call, in place, in float32 or float64.

    Attributes
    ----------
    queries : Queries
        Judged queries.
    prepared : PreparedLists
        The loss, and what it computes from the labels.
    weight : ndarray, shape (n_queries,) or (0,)
        Weights of the queries; empty where all are 1.
    """

    queries: Queries
    prepared: PreparedLists
    weight: Vector

    @classmethod
    def of(cls, loss: Loss, queries: Queries, weight: Vector | None = None) -> Self:
        """Prepare a loss for queries.

        Parameters
        ----------
        loss : Loss
            The loss.
        queries : Queries
            Judged queries.
        weight : ndarray, shape (n_queries,), default=None
            Used in place of the queries' own weights.

        Returns
        -------
        LossOverLists
            The function.
        """
        own = np.empty(0) if queries.weight is None else queries.weight
        prepared = PreparedLists.of(
            loss, queries.labels(), queries.start, queries.scattered_rows, queries.document_weight
        )
        return cls(queries, prepared, own if weight is None else np.ascontiguousarray(weight, dtype=np.float64))

    def __call__(self, w: Vector, *, n_jobs: int | None = None) -> tuple[float, Vector]:
        """Evaluate the function.

        Parameters
        ----------
        w : ndarray, shape (n_features,)
            Weights.
        n_jobs : int, default=None
            Number of threads; None uses every core.

        Returns
        -------
        value : float
            f(w).
        gradient : ndarray, shape (n_features,)
            The gradient of f at w.
        """
        weights = np.ascontiguousarray(w, dtype=np.float64)

        given, compiled_loop = self._given, self._compiled

        def part(first: int, last: int) -> tuple[float, Vector]:
            gradient = np.zeros(self.queries.n_features)
            return compiled_loop(first, last, *given, weights, gradient), gradient

        total, slope = 0.0, np.zeros(self.queries.n_features)
        for value, gradient in drive.run(part, self._chunks, n_jobs):
            total += value
            slope += gradient
        return total, slope

    # The same at every call; on short lists, looking it up would take as long as the work itself.

    @cached_property
    def _chunks(self) -> list[tuple[int, int]]:
        return list(drive.query_chunks(self.queries.start))

    @cached_property
    def _given(self) -> tuple[Any, ...]:
        """What the compiled loop takes besides the range, the weights and the gradient."""
        prepared, X = self.prepared, np.asarray(self.queries.X)
        rows = np.empty(0, np.int64) if prepared.rows is None else prepared.rows
        params = np.array(prepared.loss.params(), dtype=np.float64)
        return self.queries.start, rows, X, prepared.label, prepared.value, self.weight, prepared.table, params

    @cached_property
    def _compiled(self) -> Callable[..., float]:
        """The compiled loop with its kernel."""
        kernel = typed_function(self.prepared.kernel, kernel_type())
        return partial(fused_on(self.queries.X.dtype), kernel)
