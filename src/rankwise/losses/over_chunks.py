"""A loss as a function of linear weights over queries that are read chunk by chunk: one pass per call.

Every chunk gives its value and its gradient, and both are added in the order of chunks, as
:class:`~rankwise.losses.compute.LossOverLists` adds those of queries in memory: the bits are the same.
"""

from dataclasses import dataclass, replace
from typing import Self, cast

import numpy as np

from rankwise.losses._base import Loss, Vector
from rankwise.losses.compute import LossOverLists, PreparedLists
from rankwise.queries.chunks import Job
from rankwise.queries.passes.chunked import ChunkedQueries
from rankwise.queries.passes.work import Work
from rankwise.queries.queries import Queries

_NOTHING = np.empty(0)


@dataclass(frozen=True)
class LossOfChunk(Job):
    """The loss and its gradient on one chunk.

    Attributes
    ----------
    loss : Loss
        The loss, as far as what it prepares from labels.
    weight : ndarray of shape (n_queries,) or None
        Weights of all queries, in place of their own.
    """

    loss: Loss
    weight: Vector | None

    def prepare(self, block: Queries, first: int) -> PreparedLists:
        return LossOverLists.of(self.loss, block).prepared

    def run(self, block: Queries, first: int, prepared: PreparedLists, w: Vector, loss: Loss) -> tuple[float, Vector]:
        own = block.weight if self.weight is None else self.weight[first : first + len(block)]
        lists = LossOverLists(block, replace(prepared, loss=loss), _NOTHING if own is None else own)
        return lists.part(0, len(block), w)


@dataclass(frozen=True)
class LossOverChunks(LossOverLists):
    """f(w) = sum_q weight_q phi_q(X_q w) over queries that are read chunk by chunk.

    Attributes
    ----------
    work : Work
        What is computed of every chunk.
    """

    work: Work

    @classmethod
    def over(cls, loss: Loss, queries: ChunkedQueries, weight: Vector | None = None) -> Self:
        """Prepare a loss for queries; the parameters are those of :meth:`LossOverLists.of`."""
        given = None if weight is None else np.ascontiguousarray(weight, dtype=np.float64)
        own = given if given is not None else _NOTHING if queries.weight is None else queries.weight
        unknown = PreparedLists(loss, _NOTHING, _NOTHING, queries.start, None, _NOTHING)
        return cls(cast(Queries, queries), unknown, own, queries.work(LossOfChunk(loss, given)))

    def __call__(self, w: Vector, *, n_jobs: int | None = None) -> tuple[float, Vector]:
        queries = cast(ChunkedQueries, self.queries)
        weights = np.ascontiguousarray(w, dtype=np.float64)
        value, slope = queries.total(self.work, weights, self.prepared.loss, n_jobs=n_jobs)
        return float(value), slope
