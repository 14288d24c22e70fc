"""Losses and measures of this package for networks of PyTorch, which is the extra ``torch``.

:func:`ranking_loss` makes any loss a differentiable function of scores, :func:`metric` any measure a function of them,
and :func:`loader` reads :class:`~rankwise.Queries` in batches of whole queries. Batches are ragged: the documents of
all queries stand one after the other, and query q owns rows ``offsets[q]`` to ``offsets[q + 1] - 1``. There is no
padding, and there are no masks.

PyTorch is imported by the first call and not by this module. Losses and measures are computed on the CPU, in float64.
"""

import math
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise._extras import require
from rankwise._tables import ShownAsFacts, facts_html, facts_of
from rankwise.errors import DataError, RankwiseError, warn
from rankwise.losses._base import Loss, refuse_unless_finite
from rankwise.losses.compute import PreparedLists, loss_lists
from rankwise.measures._base import Measure, parse
from rankwise.measures.compute import ScoredLists, measure_lists
from rankwise.queries import checks
from rankwise.queries.queries import Queries, as_queries

if TYPE_CHECKING:
    from torch import Tensor
    from torch.utils.data import DataLoader

__all__ = ["QueryBatch", "QueryDataset", "RankingLoss", "RankingMetric", "loader", "metric", "ranking_loss"]

Vector = NDArray[np.float64]
Rows = NDArray[np.int64]
Reduction = Literal["mean", "sum", "none"]

_REDUCTIONS = ("mean", "sum", "none")


# ------------------------------------------------------------------------------------------------------------- losses


def ranking_loss(loss: Loss, *, reduction: Reduction = "mean", n_jobs: int | None = None) -> "RankingLoss":
    """A loss of this package as a differentiable function of scores.

    Parameters
    ----------
    loss : Loss
        Any loss of :mod:`rankwise.losses`, or one of your own.
    reduction : {"mean", "sum", "none"}, default="mean"
        What is returned: the mean over queries, weighted where there are weights, their weighted sum, or one number per
        query.
    n_jobs : int, default=None
        Number of threads; None uses all cores. The result does not depend on it.

    Returns
    -------
    RankingLoss
        A function ``(scores, labels, offsets, weight=None) -> loss``.

    Raises
    ------
    MissingExtraError
        If PyTorch is not installed.

    Notes
    -----
    Values and gradients are those of :class:`~rankwise.losses.Loss`, to the bit for scores of float64. Scores of
    another type are computed in float64, and loss and gradient are returned in their type. There is no second
    derivative.

    :class:`~rankwise.losses.StochasticNDCG` draws its noise by the places of documents in the batch: each call has the
    noise of ``loss.iteration``, and ``ranking_loss(loss.at_iteration(step))`` has that of another step.

    Examples
    --------
    >>> import rankwise as rw
    >>> scores = torch.zeros(5, requires_grad=True)  # doctest: +SKIP
    >>> loss = rw.torch.ranking_loss(rw.losses.ListNet())  # doctest: +SKIP
    >>> loss(scores, labels=torch.tensor([1, 0, 0, 2, 1]), offsets=torch.tensor([0, 3, 5])).backward()  # doctest: +SKIP
    """
    require("torch")
    return RankingLoss(loss, reduction, n_jobs)


class RankingLoss(ShownAsFacts):
    """What :func:`ranking_loss` returns.

    Parameters
    ----------
    loss : Loss
        The loss.
    reduction : {"mean", "sum", "none"}, default="mean"
        What is returned.
    n_jobs : int, default=None
        Number of threads.
    """

    def __init__(self, loss: Loss, reduction: Reduction = "mean", n_jobs: int | None = None) -> None:
        if not isinstance(loss, Loss):
            raise RankwiseError(f"ranking_loss takes a loss such as rankwise.losses.ListNet(), got {loss!r:.60}")
        checks.refuse_unless_one_of(reduction, "reduction", _REDUCTIONS)
        self.loss, self.reduction, self.n_jobs = loss, reduction, n_jobs
        self._prepared: tuple[Vector, PreparedLists] | None = None

    def __call__(self, scores: "Tensor", labels: Any, offsets: Any, weight: Any = None) -> "Tensor":
        """Compute the loss of a batch of queries.

        Parameters
        ----------
        scores : Tensor of shape (n_documents,)
            Finite scores, of any floating type.
        labels : Tensor or array of shape (n_documents,)
            Labels, 0 or more.
        offsets : Tensor or array of int, shape (n_queries + 1,)
            Query q owns rows ``offsets[q]`` to ``offsets[q + 1] - 1``: it begins with 0 and ends with the number of
            documents.
        weight : Tensor or array of shape (n_queries,), default=None
            Query weights; None is 1.

        Returns
        -------
        Tensor
            The loss, a single number unless the reduction is "none", on the device and in the type of the scores.

        Raises
        ------
        DataError
            If the batch is malformed.
        """
        torch = require("torch")
        if not torch.is_tensor(scores) or scores.ndim != 1 or not scores.is_floating_point():
            raise DataError(f"scores must be a floating-point tensor, one number per document, got {_form(scores)}")
        lists = self._lists(labels, offsets, len(scores))
        values = _function().apply(_on_cpu(scores, "scores").double(), lists, self.n_jobs)
        if self.reduction != "none" or weight is not None:
            values = _reduce(values, _weights(weight, len(values)), self.reduction)
        return values.to(scores)

    def _lists(self, labels: Any, offsets: Any, n_documents: int) -> PreparedLists:
        """The prepared batch; that of the call before is used again if it was the same."""
        start, y = _start(offsets, n_documents), checks.as_labels(_array(labels, "labels"), n_documents)
        before = self._prepared
        if before is not None and np.array_equal(before[0], y) and np.array_equal(before[1].start, start):
            return before[1]
        own = y.copy()  # the tensor may be written to before the next call
        found = PreparedLists.of(self.loss, own, start)
        self._prepared = own, found
        return found

    def __repr__(self) -> str:
        return f"ranking_loss({self.loss!r}, reduction={self.reduction!r})"


@cache
def _function() -> Any:
    """The autograd function from scores to one loss per query; a class that cannot be declared without PyTorch."""
    torch = require("torch")
    from torch.autograd.function import once_differentiable

    class LossOfQueries(torch.autograd.Function):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, scores: "Tensor", lists: PreparedLists, n_jobs: int | None) -> "Tensor":
            own = np.ascontiguousarray(scores.detach().numpy())
            refuse_unless_finite(own)
            values, gradient = loss_lists(lists, own, n_jobs=n_jobs)
            ctx.save_for_backward(torch.from_numpy(gradient))
            ctx.sizes = torch.from_numpy(np.diff(lists.start))
            return torch.from_numpy(values)

        @staticmethod
        @once_differentiable  # type: ignore[untyped-decorator]
        def backward(ctx: Any, outer: "Tensor") -> "tuple[Tensor, None, None]":
            (gradient,) = ctx.saved_tensors
            return gradient * torch.repeat_interleave(outer, ctx.sizes), None, None

    return LossOfQueries


def _reduce(values: "Tensor", weight: "Tensor", reduction: Reduction) -> "Tensor":
    weighted = values * weight
    if reduction == "none":
        return weighted
    total = weighted.sum()
    return total if reduction == "sum" else total / weight.sum().clamp(min=math.ulp(0.0))


# ----------------------------------------------------------------------------------------------------------- measures


def metric(measure: str | Measure, *, reduction: Reduction = "mean", n_jobs: int | None = None) -> "RankingMetric":
    """A measure of this package as a function of scores; it has no gradient.

    Parameters
    ----------
    measure : str or Measure
        The measure, such as "nDCG@10".
    reduction : {"mean", "sum", "none"}, default="mean"
        What is returned: the weighted mean over the queries that the measure is defined for, their weighted sum, or one
        number per query, NaN where the measure is undefined.
    n_jobs : int, default=None
        Number of threads; None uses all cores. The result does not depend on it.

    Returns
    -------
    RankingMetric
        A function ``(scores, labels, offsets, weight=None) -> Tensor`` of float64 on the CPU, ties averaged.

    Raises
    ------
    MissingExtraError
        If PyTorch is not installed.
    """
    require("torch")
    return RankingMetric(parse(measure), reduction, n_jobs)


class RankingMetric(ShownAsFacts):
    """What :func:`metric` returns.

    Parameters
    ----------
    measure : Measure
        The measure.
    reduction : {"mean", "sum", "none"}, default="mean"
        What is returned.
    n_jobs : int, default=None
        Number of threads.
    """

    def __init__(self, measure: Measure, reduction: Reduction = "mean", n_jobs: int | None = None) -> None:
        checks.refuse_unless_one_of(reduction, "reduction", _REDUCTIONS)
        self.measure, self.reduction, self.n_jobs = measure, reduction, n_jobs

    def __call__(self, scores: Any, labels: Any, offsets: Any, weight: Any = None) -> "Tensor":
        """Measure a batch of queries; parameters as for a ranking loss.

        Parameters
        ----------
        scores : Tensor or array of shape (n_documents,)
            Scores.
        labels : Tensor or array of shape (n_documents,)
            Labels, 0 or more.
        offsets : Tensor or array of int, shape (n_queries + 1,)
            Query q owns rows ``offsets[q]`` to ``offsets[q + 1] - 1``.
        weight : Tensor or array of shape (n_queries,), default=None
            Query weights; None is 1.

        Returns
        -------
        Tensor
            The measure; NaN where it is undefined.
        """
        torch = require("torch")
        own = checks.as_one_list(_array(scores, "scores"), "scores")
        own = checks.as_scores(own, len(own))
        y = checks.as_labels(_array(labels, "labels"), len(own))
        lists = ScoredLists(own, y, _start(offsets, len(own)))
        values = torch.from_numpy(measure_lists([self.measure], lists, n_jobs=self.n_jobs)[0])
        if self.reduction == "none":
            return values
        counts = ~torch.isnan(values)
        if not counts.any():
            return torch.tensor(math.nan, dtype=torch.float64)
        return _reduce(values[counts], _weights(weight, len(values))[counts], self.reduction)

    def __repr__(self) -> str:
        return f"metric({str(self.measure)!r}, reduction={self.reduction!r})"


# ------------------------------------------------------------------------------------------------------------ batches


class QueryBatch(NamedTuple):
    """Whole queries, one after the other.

    Attributes
    ----------
    X : Tensor of shape (n_documents, n_features)
        The features.
    labels : Tensor of float64, shape (n_documents,)
        The labels.
    offsets : Tensor of int64, shape (n_queries + 1,)
        Query q owns rows ``offsets[q]`` to ``offsets[q + 1] - 1``.
    weight : Tensor of float64, shape (n_queries,)
        The query weights, 1 where the queries have none.
    """

    X: "Tensor"
    labels: "Tensor"
    offsets: "Tensor"
    weight: "Tensor"

    def _repr_html_(self) -> str:
        """The HTML that notebooks show."""
        return facts_html(self, facts_of(self))


class QueryDataset(ShownAsFacts):
    """Judged queries as a dataset of PyTorch: item number q is query q, several numbers are a batch.

    Features are copied batch by batch: a mapped X stays in its file.

    Parameters
    ----------
    queries : Queries
        Judged queries; their rows may be in any order.
    dtype : {"float32", "float64"}, default="float32"
        The type of the features in a batch.
    """

    def __init__(self, queries: Queries, dtype: str = "float32") -> None:
        checks.refuse_unless_one_of(dtype, "dtype", ("float32", "float64"))
        queries = as_queries(queries, "QueryDataset")
        queries.labels()  # raises an error where there are none
        queries.refuse_missing("a batch for PyTorch")
        self.queries, self.dtype = queries._replace(docid=None, qid=None), np.dtype(dtype)

    def __len__(self) -> int:
        return len(self.queries)

    def __getitem__(self, query: int) -> QueryBatch:
        return self.__getitems__([query])

    def __getitems__(self, numbers: Sequence[int]) -> QueryBatch:
        """The batch of these queries, in this order; PyTorch's loader asks for whole batches by this name."""
        from_numpy, part = require("torch").from_numpy, self.queries[np.asarray(numbers, dtype=np.int64)]
        X = np.ascontiguousarray(part.X, dtype=self.dtype)
        return QueryBatch(*(from_numpy(np.array(one)) for one in (X, part.labels(), part.start, part.query_weight)))


def loader(
    queries: Queries,
    batch: int = 32,
    *,
    shuffle: bool = True,
    random_state: int = 0,
    dtype: str = "float32",
    **options: Any,
) -> "DataLoader[QueryBatch]":
    """PyTorch's ``DataLoader`` over whole queries.

    Parameters
    ----------
    queries : Queries
        Judged queries.
    batch : int, default=32
        Number of queries in a batch.
    shuffle : bool, default=True
        Whether every epoch has another order.
    random_state : int, default=0
        Seed of the orders: a new loader with the same seed gives the same batches.
    dtype : {"float32", "float64"}, default="float32"
        The type of the features in a batch.
    **options : object
        Further arguments of ``torch.utils.data.DataLoader``, such as ``drop_last=True``.

    Returns
    -------
    torch.utils.data.DataLoader
        Yields :class:`QueryBatch`.

    Raises
    ------
    MissingExtraError
        If PyTorch is not installed.
    """
    data, torch = require("torch.utils.data"), require("torch")
    generator = torch.Generator().manual_seed(checks.as_whole(random_state, "random_state"))
    given: dict[str, Any] = {"shuffle": shuffle, "generator": generator, "collate_fn": _as_it_is, **options}
    made: DataLoader[QueryBatch] = data.DataLoader(
        QueryDataset(queries, dtype), batch_size=checks.as_whole(batch, "batch", 1), **given
    )
    return made


def _as_it_is(batch: QueryBatch) -> QueryBatch:
    """What the dataset returned is a batch already; a function by name, for workers are started by pickling it."""
    return batch


# ---------------------------------------------------------------------------------------------- what a batch is made of


def _on_cpu(tensor: Any, name: str) -> Any:
    """The tensor in memory that kernels can read; a copy from another device is announced."""
    if tensor.device.type == "cpu":
        return tensor
    warn(f"{name} is copied from {tensor.device.type}: losses and measures are computed on the CPU")
    return tensor.cpu()


def _array(values: Any, name: str) -> Any:
    """A tensor as an array; anything else as it is."""
    return _on_cpu(values.detach(), name).numpy() if require("torch").is_tensor(values) else values


def _start(offsets: Any, n_documents: int) -> Rows:
    """Checked offsets as int64, in memory of their own."""
    found = np.asarray(_array(offsets, "offsets"))
    if found.ndim != 1 or not np.issubdtype(found.dtype, np.integer) or not len(found):
        raise DataError(f"offsets must hold integers, one per query and one more, got {_form(offsets)}")
    start = found.astype(np.int64)
    if start[0] != 0 or start[-1] != n_documents or (np.diff(start) < 0).any():
        raise DataError(
            f"offsets must begin with 0, never fall, and end with the number of documents, {n_documents:,}, got "
            f"{start[0]:,} to {start[-1]:,}" + (", with a fall" if (np.diff(start) < 0).any() else "")
        )
    return start


def _weights(weight: Any, n_queries: int) -> Any:
    """Checked query weights as a tensor of float64."""
    torch = require("torch")
    if weight is None:
        return torch.ones(n_queries, dtype=torch.float64)
    found = checks.as_floats(_array(weight, "weight"), "weight must hold one number per query")
    if found.any() or found.shape != (n_queries,):  # in a batch, unlike in a whole set, all weights may be 0
        found = checks.as_weights(found, n_queries)
    return torch.from_numpy(found.copy())


def _form(value: Any) -> str:
    """Type and shape of what was given, for messages."""
    shape = getattr(value, "shape", None)
    return f"{type(value).__name__}" + ("" if shape is None else f" of {value.dtype} and shape {tuple(shape)}")
