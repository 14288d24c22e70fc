"""Losses over many queries: the two compiled loops that run any loss.

:class:`PreparedLists` holds what a loss can compute from the labels alone. :func:`loss_lists` then runs the kernel over
the queries, given their scores. :class:`LossOverLists`, which batch solvers minimize, is the sum of the loss as a
function of linear weights: its loop scores a query, calls the kernel, and adds X' g while the rows of the query are in
the cache, in one pass over X.

Both work through the queries in chunks, on threads, and take the kernel as a typed function, so each is compiled
once for all losses.
"""

from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Self

import numpy as np
from numba import types
from numpy.typing import NDArray

from rankwise._kernels import parallel
from rankwise._kernels.dot_products import add_rows, dot
from rankwise._kernels.machine.jit import FLOATS, FLOATS_IN, INTS_IN, compiled, features_in, kernel, typed_function
from rankwise._kernels.ragged import GRADES
from rankwise._tables import ShownAsFacts
from rankwise.errors import RankwiseError
from rankwise.losses._base import Loss, Rows, Vector
from rankwise.queries.queries import Queries
from rankwise.queries.source import Chunk, Job, QuerySource

# The signature of a kernel: (score, label, value, grad, table, params) -> loss.
KERNEL = types.float64(FLOATS_IN, FLOATS_IN, FLOATS_IN, FLOATS, FLOATS_IN, FLOATS_IN)
# That of one with curvature: (score, label, value, grad, diagonal, table, params).
CURVED_KERNEL = types.void(FLOATS_IN, FLOATS_IN, FLOATS_IN, FLOATS, FLOATS, FLOATS_IN, FLOATS_IN)


@dataclass(frozen=True)
class PreparedLists(ShownAsFacts):
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

    def with_rows(self, counts: NDArray[np.bool_]) -> "PreparedLists":
        """The queries that have a row which counts; gradients of all rows of the others are 0."""
        rows = np.arange(self.start[-1]) if self.rows is None else self.rows
        sizes = np.diff(self.start)
        owner = np.repeat(np.arange(len(sizes)), sizes)
        kept = np.bincount(owner[counts[rows]], minlength=len(sizes)) > 0
        start = np.append(0, np.cumsum(sizes[kept]))
        return self if kept.all() else replace(self, start=start, rows=rows[kept[owner]])


def label_classes(
    labels: NDArray[np.float64], start: NDArray[np.int64], rows: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Small whole numbers in place of labels, in the same order inside each query, and equal where labels are.

    Grades stay what they are; other labels are numbered from 0 on in their own query.

    Parameters
    ----------
    labels : ndarray, shape (n_documents,)
        Labels in input order.
    start : ndarray of int64, shape (n_queries + 1,)
        Query q owns ``rows[start[q]:start[q+1]]``.
    rows : ndarray of int64, default=None
        None: rows are grouped by query.

    Returns
    -------
    classes : ndarray of int64, shape (n_documents,)
        Below 64, or below the number of documents of the query.
    """
    if labels.min(initial=0.0) >= 0.0 and labels.max(initial=0.0) < GRADES:
        whole = labels.astype(np.int64)
        if np.array_equal(whole, labels):
            return whole
    own = labels[: start[-1]] if rows is None else labels[rows]
    sizes = np.diff(start)
    order = np.lexsort((own, np.repeat(np.arange(len(sizes)), sizes)))
    ranked = own[order]
    number = np.concatenate([[0], np.cumsum(ranked[1:] != ranked[:-1])])
    classes = np.zeros(len(labels), np.int64)
    place = order if rows is None else rows[order]
    classes[place] = number - np.repeat(number[np.minimum(start[:-1], len(number) - 1)], sizes)
    return classes


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
    rows = np.empty(0, dtype=np.int64) if lists.rows is None else lists.rows
    params = np.array(lists.loss.params(), dtype=np.float64)
    values, gradient = np.zeros(len(lists.start) - 1), np.zeros(len(scores))
    given = (lists.start, rows, scores, lists.label, lists.value, lists.table, params, values, gradient)
    work = partial(_driver(), typed_function(lists.kernel, KERNEL), *given)
    parallel.map_chunks(work, list(parallel.query_chunks(lists.start)), n_jobs)
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
    if lists.loss.curvature is None:
        raise RankwiseError(f"{lists.loss!r} declares no curvature")
    rows = np.empty(0, dtype=np.int64) if lists.rows is None else lists.rows
    params = np.array(lists.loss.params(), dtype=np.float64)
    gradient, diagonal = np.zeros(len(scores)), np.zeros(len(scores))
    given = (lists.start, rows, scores, lists.label, lists.value, lists.table, params, gradient, diagonal)
    work = partial(_curved_driver(), typed_function(lists.curved_kernel, CURVED_KERNEL), *given)
    parallel.map_chunks(work, list(parallel.query_chunks(lists.start)), n_jobs)
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
def _driver() -> Any:
    """The loop over queries, compiled at its first use."""
    given = (types.FunctionType(KERNEL), INTS_IN, INTS_IN, *(FLOATS_IN,) * 5, FLOATS, FLOATS, types.int64, types.int64)
    return compiled(kernel(_loss_range), types.void(*given))


@cache
def _curved_driver() -> Any:
    """The loop over queries for gradient and curvature, compiled at its first use."""
    given = (types.FunctionType(CURVED_KERNEL), INTS_IN, INTS_IN, *(FLOATS_IN,) * 5, FLOATS, FLOATS)
    return compiled(kernel(_curved_range), types.void(*given, types.int64, types.int64))


# ------------------------------------------------------------------------------------------------ linear weights


@dataclass(frozen=True)
class LossJob(Job):
    """The loss and its gradient on one chunk; every pass is given the weights w and the loss.

    Attributes
    ----------
    loss : Loss
        The loss, as far as what it prepares from labels.
    weight : ndarray of shape (n_queries,) or None
        Weights of all queries, in place of their own.
    """

    loss: Loss
    weight: Vector | None

    def prepare(self, queries: Queries, offset: int) -> "PreparedLoss":
        lists = PreparedLists.of(
            self.loss, queries.labels(), queries.start, queries.scattered_rows, queries.document_weight
        )
        own = queries.weight if self.weight is None else self.weight[offset : offset + len(queries)]
        return PreparedLoss(lists, _NOTHING if own is None else own)

    def run(self, chunk: Chunk, prepared: "PreparedLoss", w: Vector, loss: Loss) -> tuple[float, Vector]:
        X = np.asarray(chunk.queries.X)
        gradient = np.zeros(X.shape[1])
        compiled, before, after = prepared.arguments(loss, X.dtype)
        return compiled(chunk.first, chunk.last, *before, X, *after, w, gradient), gradient


@dataclass
class PreparedLoss:
    """What the compiled loop of :class:`LossJob` takes besides X, the weights and the gradient."""

    lists: PreparedLists
    weight: Vector
    known: tuple[Loss, tuple[Any, ...]] | None = None

    def arguments(self, loss: Loss, dtype: "np.dtype[Any]") -> tuple[Any, ...]:
        """(compiled loop, arguments before X, arguments after it), made once for a loss."""
        known = self.known
        if known is None or known[0] is not loss:
            lists = self.lists
            rows = np.empty(0, np.int64) if lists.rows is None else lists.rows
            params = np.array(loss.params(), dtype=np.float64)
            compiled = partial(_fused_on(dtype), typed_function(lists.kernel, KERNEL))
            given = compiled, (lists.start, rows), (lists.label, lists.value, self.weight, lists.table, params)
            known = self.known = loss, given
        return known[1]


@dataclass(frozen=True)
class LossOverLists:
    """f(w) = sum_q weight_q phi_q(X_q w), with its gradient sum_q weight_q X_q' g_q.

    The queries are processed in fixed chunks whose parts are added in order, so every number of threads gives the same
    bits. X is read once per call, in place, in float32 or float64.

    Attributes
    ----------
    queries : Queries or ChunkedQueries
        Judged queries.
    loss : Loss
        The loss.
    weight : ndarray, shape (n_queries,) or (0,)
        Weights of the queries; empty where all are 1.
    work : PreparedJob or Work
        What is computed of every chunk.
    """

    queries: QuerySource
    loss: Loss
    weight: Vector
    work: Any

    @classmethod
    def of(cls, loss: Loss, queries: QuerySource, weight: Vector | None = None) -> Self:
        """Prepare a loss for queries.

        Parameters
        ----------
        loss : Loss
            The loss.
        queries : Queries or ChunkedQueries
            Judged queries.
        weight : ndarray, shape (n_queries,), default=None
            Used in place of the queries' own weights.

        Returns
        -------
        LossOverLists
            The function.
        """
        other = None if weight is None else np.ascontiguousarray(weight, dtype=np.float64)
        own = other if other is not None else _NOTHING if queries.weight is None else queries.weight
        return cls(queries, loss, own, queries.work(LossJob(loss, other)))

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
        sums = self.queries.total(self.work, weights, self.loss, n_jobs=n_jobs)
        value, slope = sums or (0.0, np.zeros(self.queries.n_features))  # there may be no queries
        return float(value), slope


_NOTHING = np.empty(0)


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


@cache
def _fused_on(dtype: "np.dtype[Any]") -> Any:
    """The pass over this type of X, compiled at its first use."""
    given = (types.FunctionType(KERNEL), types.int64, types.int64, INTS_IN, INTS_IN, features_in(dtype))
    return compiled(kernel(_fused_lists), types.float64(*given, *(FLOATS_IN,) * 6, FLOATS))
