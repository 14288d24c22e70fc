"""Losses over many queries: the one compiled loop that runs any loss.

:class:`PreparedLists` holds what a loss can compute from the labels alone; :func:`loss_lists` then runs the kernel over
the queries, in chunks, on threads. The loop takes the kernel as a typed function, so that it is compiled once for all
losses. numba is imported by the first call and not by this module.
"""

from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from rankwise._errors import RankwiseError
from rankwise._kernels import drive
from rankwise.losses._base import Loss, Rows, Vector


@dataclass(frozen=True)
class PreparedLists:
    """Queries with everything that a loss can compute before it sees scores.

    Attributes
    ----------
    loss : Loss
        The loss.
    label, value : ndarray, shape (n_documents,)
        What :meth:`Loss.prepare` returned.
    start : ndarray of int64, shape (n_queries + 1,)
        Query q owns ``rows[start[q]:start[q+1]]``.
    rows : ndarray of int64 or None
        None: rows are grouped by query.
    table : ndarray
        What :meth:`Loss.table` returned for the longest query.
    weighted : bool
        Whether documents have weights.
    """

    loss: Loss
    label: Vector
    value: Vector
    start: Rows
    rows: Rows | None
    table: Vector
    weighted: bool = False

    @property
    def kernel(self) -> Any:
        """The kernel to run over these queries."""
        return type(self.loss).weighted_kernel if self.weighted else type(self.loss).kernel

    @property
    def curved_kernel(self) -> Any:
        """The kernel of the gradient and the curvature."""
        kind = type(self.loss)
        return kind.weighted_curved_kernel if self.weighted else kind.curved_kernel

    @classmethod
    def of(
        cls,
        loss: Loss,
        labels: Vector,
        start: Rows,
        rows: Rows | None = None,
        document_weight: Vector | None = None,
    ) -> "PreparedLists":
        """Prepare queries for a loss.

        Parameters
        ----------
        loss : Loss
            The loss.
        labels : ndarray, shape (n_documents,)
            Labels in input order.
        start : ndarray of int64, shape (n_queries + 1,)
            Query q owns ``rows[start[q]:start[q+1]]``.
        rows : ndarray of int64, default=None
            None: rows are grouped by query.
        document_weight : ndarray, shape (n_documents,), default=None
            Document weights in input order, for a loss that takes them.

        Returns
        -------
        PreparedLists
            Ready for :func:`loss_lists`.

        Raises
        ------
        RankwiseError
            If the loss takes no document weights.
        """
        longest = int(np.diff(start).max(initial=0))
        table = np.ascontiguousarray(loss.table(longest))
        if document_weight is None or (document_weight == 1.0).all():  # the same, to the last bit
            return cls(loss, *loss.prepare(labels, start, rows), start, rows, table)
        if not loss.document_weights:
            raise RankwiseError(f"{loss!r} takes no document weights")
        weight = np.ascontiguousarray(document_weight)
        return cls(loss, *loss.prepare_weighted(labels, weight, start, rows), start, rows, table, weighted=True)


def loss_lists(lists: PreparedLists, scores: Vector, *, n_jobs: int | None = None) -> tuple[Vector, Vector]:
    """Compute a loss and its gradient on every query.

    Each query is computed independently of the others, so neither chunks nor threads change a bit.

    Parameters
    ----------
    lists : PreparedLists
        The loss and the queries.
    scores : ndarray, shape (n_documents,)
        Scores in input order.
    n_jobs : int, default=None
        Number of threads; None uses every core.

    Returns
    -------
    values : ndarray, shape (n_queries,)
        The loss of every query; 0 for a query without documents.
    gradient : ndarray, shape (n_documents,)
        The gradient with respect to every score, in input order.
    """
    from rankwise._kernels.jit import typed_function

    rows = np.empty(0, dtype=np.int64) if lists.rows is None else lists.rows
    params = np.array(lists.loss.params(), dtype=np.float64)
    values, gradient = np.zeros(len(lists.start) - 1), np.zeros(len(scores))
    given = (lists.start, rows, scores, lists.label, lists.value, lists.table, params, values, gradient)
    work = partial(_driver(), typed_function(lists.kernel, kernel_type()), *given)
    drive.run(work, list(drive.query_chunks(lists.start)), n_jobs)
    return values, gradient


def curvature_lists(lists: PreparedLists, scores: Vector, *, n_jobs: int | None = None) -> tuple[Vector, Vector]:
    """Compute the gradient of a loss and the diagonal of its Hessian on every query.

    Parameters
    ----------
    lists : PreparedLists
        The queries, and a loss that declares a curvature.
    scores : ndarray, shape (n_documents,)
        Scores in input order.
    n_jobs : int, default=None
        Number of threads; None uses every core.

    Returns
    -------
    gradient, diagonal : ndarray, shape (n_documents,)
        First and second derivatives with respect to every score, in input order; the second are never negative.

    Raises
    ------
    RankwiseError
        If the loss declares no curvature.
    """
    from rankwise._kernels.jit import typed_function

    if lists.loss.curvature is None:
        raise RankwiseError(f"{lists.loss!r} declares no curvature")
    rows = np.empty(0, dtype=np.int64) if lists.rows is None else lists.rows
    params = np.array(lists.loss.params(), dtype=np.float64)
    gradient, diagonal = np.zeros(len(scores)), np.zeros(len(scores))
    given = (lists.start, rows, scores, lists.label, lists.value, lists.table, params, gradient, diagonal)
    work = partial(_curved_driver(), typed_function(lists.curved_kernel, curved_kernel_type()), *given)
    drive.run(work, list(drive.query_chunks(lists.start)), n_jobs)
    return gradient, diagonal


def _loss_range(kernel, start, rows, score, label, value, table, params, out, gradient, first, last):
    """Fill ``out`` and ``gradient``, which holds zeros, for queries first..last-1; no ``rows``: they are grouped."""
    if len(rows) == 0:
        for q in range(first, last):
            own = slice(start[q], start[q + 1])
            if start[q] < start[q + 1]:
                out[q] = kernel(score[own], label[own], value[own], gradient[own], table, params)
        return
    longest = 0
    for q in range(first, last):
        longest = max(longest, start[q + 1] - start[q])
    scores, labels, values, slopes = np.empty(longest), np.empty(longest), np.empty(longest), np.empty(longest)
    for q in range(first, last):
        low, size = start[q], start[q + 1] - start[q]
        if size > 0:
            for p in range(size):
                row = rows[low + p]
                scores[p], labels[p], values[p], slopes[p] = score[row], label[row], value[row], 0.0
            out[q] = kernel(scores[:size], labels[:size], values[:size], slopes[:size], table, params)
            for p in range(size):
                gradient[rows[low + p]] = slopes[p]


def _curved_range(kernel, start, rows, score, label, value, table, params, gradient, diagonal, first, last):
    """Fill ``gradient`` and ``diagonal``, which hold zeros, for queries first..last-1, as :func:`_loss_range` does."""
    if len(rows) == 0:
        for q in range(first, last):
            own = slice(start[q], start[q + 1])
            if start[q] < start[q + 1]:
                kernel(score[own], label[own], value[own], gradient[own], diagonal[own], table, params)
        return
    longest = 0
    for q in range(first, last):
        longest = max(longest, start[q + 1] - start[q])
    scores, labels, values = np.empty(longest), np.empty(longest), np.empty(longest)
    slopes, curves = np.empty(longest), np.empty(longest)
    for q in range(first, last):
        low, size = start[q], start[q + 1] - start[q]
        if size > 0:
            for p in range(size):
                row = rows[low + p]
                scores[p], labels[p], values[p], slopes[p], curves[p] = score[row], label[row], value[row], 0.0, 0.0
            kernel(scores[:size], labels[:size], values[:size], slopes[:size], curves[:size], table, params)
            for p in range(size):
                gradient[rows[low + p]], diagonal[rows[low + p]] = slopes[p], curves[p]


@cache
def kernel_type() -> Any:
    """The numba signature of a kernel: (score, label, value, grad, table, params) -> loss."""
    from numba import types

    read = types.Array(types.float64, 1, "C", readonly=True)
    return types.float64(read, read, read, types.Array(types.float64, 1, "C"), read, read)


@cache
def _driver() -> Any:
    """The loop over queries; it takes the kernel as a typed argument, so one compiled loop serves all losses."""
    from numba import types

    from rankwise._kernels.jit import compiled, kernel

    ints = types.Array(types.int64, 1, "C", readonly=True)
    read, floats = types.Array(types.float64, 1, "C", readonly=True), types.Array(types.float64, 1, "C")
    given = (types.FunctionType(kernel_type()), ints, ints, *(read,) * 5, floats, floats, types.int64, types.int64)
    return compiled(kernel(_loss_range), types.void(*given))


@cache
def curved_kernel_type() -> Any:
    """The numba signature of a kernel with curvature: (score, label, value, grad, diagonal, table, params)."""
    from numba import types

    read, floats = types.Array(types.float64, 1, "C", readonly=True), types.Array(types.float64, 1, "C")
    return types.void(read, read, read, floats, floats, read, read)


@cache
def _curved_driver() -> Any:
    """The loop over queries for gradient and curvature, compiled once for all losses."""
    from numba import types

    from rankwise._kernels.jit import compiled, kernel

    ints = types.Array(types.int64, 1, "C", readonly=True)
    read, floats = types.Array(types.float64, 1, "C", readonly=True), types.Array(types.float64, 1, "C")
    given = (types.FunctionType(curved_kernel_type()), ints, ints, *(read,) * 5, floats, floats)
    return compiled(kernel(_curved_range), types.void(*given, types.int64, types.int64))
