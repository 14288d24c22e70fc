"""`ChunkedQueries`: judged queries whose documents are read chunk by chunk, as rankers see a data set in parts.

What there is one of per query (sizes, weights) is in memory, as in :class:`rankwise.Queries`. Everything about
documents is a pass: :meth:`ChunkedQueries.map` gives the result of a job on every chunk, and :meth:`ChunkedQueries.
total` the sum of results in the order of chunks. Functions that take either kind of queries call
:func:`rankwise.queries.chunks.over_chunks` and :func:`~rankwise.queries.chunks.summed`, which run the same job on the
same chunks of queries in memory.
"""

import logging
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._kernels import parallel
from rankwise._progress import displays, remark
from rankwise.errors import DataError
from rankwise.queries import checks
from rankwise.queries.chunks import Job
from rankwise.queries.passes.executors import Threads
from rankwise.queries.passes.work import Executor, Work
from rankwise.queries.queries import Queries, as_queries

if TYPE_CHECKING:
    from rankwise.queries.passes.journal import Journal
    from rankwise.queries.scaling import Scaler

Vector = NDArray[np.float64]
logger = logging.getLogger("rankwise")

# Seconds between two changes of what a bar says.
_SHOWN_EVERY = 0.5


@dataclass
class Account:
    """What the passes over one data set have cost, and what is known of its queries.

    Attributes
    ----------
    passes : int
        Number of passes so far.
    seconds : float
        Seconds that they took.
    replayed : int
        Number of passes whose results came from a checkpoint.
    verbose : bool
        Whether each pass writes a line to ``logging``.
    journal : Journal or None
        The checkpoint, if there is one.
    facts : dict
        What was computed of the queries once.
    """

    passes: int = 0
    seconds: float = 0.0
    replayed: int = 0
    verbose: bool = False
    journal: "Journal | None" = None
    facts: dict[str, Any] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True, eq=False)
class ChunkedQueries:
    """Judged queries that are read chunk by chunk.

    Attributes
    ----------
    source : Parts
        The data set.
    executor : Executor
        Who computes.
    weight : ndarray of shape (n_queries,) or None
        The query weights.
    reweighted : bool
        Whether ``weight`` is not that of the data set.
    account : Account
        Shared by all views of the data set.
    """

    source: Any
    executor: Executor = field(default_factory=Threads)
    weight: Vector | None = None
    reweighted: bool = False
    account: Account = field(default_factory=Account)

    @classmethod
    def of(cls, source: Any, executor: Executor | None = None, **account: Any) -> "ChunkedQueries":
        """A data set in parts, as rankers see it."""
        return cls(source, executor or Threads(), source.weight, account=Account(**account))

    # ------------------------------------------------------------------------------------------- what queries have

    @property
    def start(self) -> NDArray[np.int64]:
        """The offsets of the queries."""
        return self.source.start  # type: ignore[no-any-return]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of documents of every query."""
        return np.diff(self.start)

    @property
    def n_documents(self) -> int:
        """The number of documents."""
        return int(self.start[-1])

    @property
    def n_features(self) -> int:
        """The number of features."""
        return int(self.source.n_features)

    @property
    def shape(self) -> tuple[int, int]:
        """(queries, features)."""
        return len(self), self.n_features

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """The names of the features."""
        return self.source.feature_names  # type: ignore[no-any-return]

    @property
    def scaling(self) -> "Scaler | None":
        """The scaler that made the features."""
        return self.source.scaling  # type: ignore[no-any-return]

    @property
    def built_by(self) -> Any:
        """The builder that made the features, if one did and the data set was opened by :func:`rankwise.load`."""
        return getattr(self.source, "built_by", None)

    @property
    def query_weight(self) -> Vector:
        """The weight of every query; ones where ``weight`` is None."""
        return np.ones(len(self)) if self.weight is None else self.weight

    @property
    def counted(self) -> NDArray[np.int64]:
        """The numbers of the queries of non-zero weight."""
        return np.flatnonzero(self.query_weight)

    def __len__(self) -> int:
        return len(self.start) - 1

    def __getitem__(self, mask: NDArray[np.bool_]) -> "ChunkedQueries":
        """The queries of a mask."""
        facts = {}
        if "survey" in self.account.facts:
            facts["survey"] = self.survey.of_some(mask)
        found = ChunkedQueries.of(self.source[mask], self.executor, verbose=self.account.verbose, facts=facts)
        return found if not self.reweighted else found.with_weight(self.query_weight[mask])

    def names(self) -> list[Any]:
        """The ids of the queries."""
        return list(self.source.names())

    def with_weight(self, weight: ArrayLike) -> "ChunkedQueries":
        """The same queries with other weights.

        Parameters
        ----------
        weight : array-like, shape (n_queries,)
            The weights.

        Returns
        -------
        ChunkedQueries
            Another view of the same data set.
        """
        return replace(self, weight=checks.as_weights(weight, len(self)), reweighted=True)

    @property
    def document_weight(self) -> Vector | None:
        """None if all documents weigh 1; otherwise a single 0 stands for the weights, which passes alone see."""
        return np.zeros(1) if self.survey.weighted.any() else None

    @property
    def survey(self) -> "Survey":
        """What one pass tells of every query; it is made at the first use."""
        found = self.account.facts.get("survey")
        if found is None:
            found = self.account.facts["survey"] = Survey.of(self)
        return cast(Survey, found)

    def labels(self) -> None:
        """Raise an error if the documents are not judged; labels themselves are seen by passes alone."""
        if not self.source.has_labels:
            raise DataError("these queries carry no labels, and labels are needed here")

    def gather(self, numbers: NDArray[np.int64]) -> Queries:
        """Some queries in memory, in this order.

        Parameters
        ----------
        numbers : ndarray of int64
            Their numbers.

        Returns
        -------
        Queries
            A view of a file where consecutive queries stand in one.
        """
        if len(numbers) and (np.diff(numbers) == 1).all():
            found = self.source.block(int(numbers[0]), int(numbers[-1]) + 1)
        else:
            found = self.source[numbers].block(0, len(numbers))
        return cast(Queries, found._replace(weight=None if self.weight is None else self.weight[numbers]))

    # ------------------------------------------------------------------------------------------- passes

    @cached_property
    def chunks(self) -> tuple[tuple[int, int], ...]:
        """The ranges of queries that results are computed of."""
        return tuple(parallel.query_chunks(self.start))

    @property
    def bytes(self) -> int:
        """The bytes of the features and labels."""
        return int(self.source.bytes)

    def work(self, job: Job) -> Work:
        """A job on these queries, for many passes; what is prepared for it is dropped when nobody holds it."""
        work = Work(self.source, self.chunks, self.weight if self.reweighted else None, job)
        weakref.finalize(work, _forget, self.executor, vars(work))
        return work

    def map(
        self, job: Job | Work, *arguments: Any, n_jobs: int | None = None, only: Sequence[int] | None = None
    ) -> Iterator[Any]:
        """The result of every chunk, in their order.

        Parameters
        ----------
        job : Job or Work
            What is computed.
        *arguments : object
            What differs from pass to pass.
        n_jobs : int, default=None
            Number of threads, where threads compute.
        only : sequence of int, default=None
            The numbers of the chunks to compute; None for all.

        Yields
        ------
        object
            The results.
        """
        work = self.work(job) if isinstance(job, Job) else job
        numbers = range(len(self.chunks)) if only is None else only
        began, documents, shown = time.monotonic(), 0, 0.0
        number = self.account.passes + 1
        for place, result in zip(numbers, self.executor.results(work, numbers, arguments, n_jobs), strict=True):
            first, last = self.chunks[place]
            documents += int(self.start[last] - self.start[first])
            seconds = time.monotonic() - began
            if displays and seconds - shown > _SHOWN_EVERY:
                shown = seconds
                remark(f"pass {number:,}, {documents / self.n_documents:.0%}{self._speed(documents, seconds)}")
            yield result
        seconds = time.monotonic() - began
        with self.account.lock:
            self.account.passes += 1
            self.account.seconds += seconds
        if self.account.verbose:
            logger.info(
                "pass %d: %s, %s documents in %.2f s%s",
                number,
                type(work.job).__name__,
                f"{documents:,}",
                seconds,
                self._speed(documents, seconds),
            )

    def _speed(self, documents: int, seconds: float) -> str:
        if not seconds or not documents:
            return ""
        share = self.bytes / max(1, self.n_documents)
        return f", {documents / seconds / 1e6:.2f} million rows/s, {documents * share / seconds / 1e6:,.0f} MB/s"

    def total(self, job: Job | Work, *arguments: Any, n_jobs: int | None = None) -> tuple[Any, ...]:
        """The sums of results over all chunks, added in their order to 0, or taken from the checkpoint.

        Parameters
        ----------
        job : Job or Work
            What is computed: a tuple of numbers and arrays.
        *arguments : object
            What differs from pass to pass.
        n_jobs : int, default=None
            Number of threads, where threads compute.

        Returns
        -------
        tuple of float or ndarray
            The sums.
        """
        work, journal = self.work(job) if isinstance(job, Job) else job, self.account.journal
        key = None
        if journal is not None:
            key = journal.key(work, arguments)
            found = journal.get(key)
            if found is not None:
                self.account.replayed += 1
                return found
        sums: list[Any] | None = None
        for result in self.map(work, *arguments, n_jobs=n_jobs):
            if sums is None:
                sums = [np.zeros_like(one) if isinstance(one, np.ndarray) else 0.0 for one in result]
            for place, one in enumerate(result):
                sums[place] += one  # in place for arrays
        found = tuple(sums or ())
        if journal is not None and key is not None:
            journal.add(key, found)
        return found


# --------------------------------------------------------------------------------------------------------- the survey


@dataclass(frozen=True)
class SurveyOfChunk(Job):
    """Labels that differ, document weights that are not 1, and the first missing value of a chunk."""

    def run(self, block: Queries, first: int, prepared: Any, *arguments: Any) -> tuple[Any, ...]:
        count = len(block)
        owner, filled = block.query_of_row, block.sizes > 0
        differs, weighted = np.zeros(count, bool), np.zeros(count, bool)
        if block.y is not None:
            head = np.zeros(count)
            head[filled] = block.y[block.start[:-1][filled]]
            differs[owner[block.y != head[owner]]] = True
        if block.document_weight is not None:
            weighted[owner[block.document_weight != 1.0]] = True
        missing = checks.first_not_finite(block.X)
        return differs, weighted, (-1, -1) if missing is None else (int(owner[missing[0]]) + first, missing[1])


@dataclass(frozen=True)
class Survey:
    """What one pass tells of the queries.

    Attributes
    ----------
    marks : structured ndarray, shape (n_queries,)
        Fingerprints, which are in the index of the data set.
    differs : ndarray of bool, shape (n_queries,)
        Whether the labels of a query differ.
    weighted : ndarray of bool, shape (n_queries,)
        Whether a query has a document weight that is not 1.
    missing : tuple of int or None
        (query, feature) of the first value that is not finite.
    """

    marks: NDArray[np.void]
    differs: NDArray[np.bool_]
    weighted: NDArray[np.bool_]
    missing: tuple[int, int] | None

    def of_some(self, mask: NDArray[np.bool_]) -> "Survey":
        """That of the queries of a mask; a missing value, if there is one, was refused before."""
        return Survey(self.marks[mask], self.differs[mask], self.weighted[mask], None)

    @classmethod
    def of(cls, queries: ChunkedQueries) -> "Survey":
        """One pass over the queries."""
        differs, weighted = [np.zeros(0, bool)], [np.zeros(0, bool)]
        missing = None
        for other, heavy, hole in queries.map(SurveyOfChunk()):
            differs.append(other)
            weighted.append(heavy)
            missing = hole if missing is None and hole[0] >= 0 else missing
        return cls(queries.source.fingerprints(), np.concatenate(differs), np.concatenate(weighted), missing)


@dataclass(frozen=True)
class RecordedOfChunk(Job):
    """What the record of a fit keeps of the weights of a chunk."""

    def run(self, block: Queries, first: int, prepared: Any, *arguments: Any) -> Any:
        from rankwise.queries.fingerprints import weight_digests

        own = np.ones(block.n_documents) if block.document_weight is None else block.document_weight
        return weight_digests(block, own)


def _forget(executor: Executor, spent: dict[str, Any]) -> None:
    with suppress(Exception):  # a finalizer may run when everything else is gone
        executor.forget(spent)


def as_data(value: Any, function: str) -> "Queries | ChunkedQueries":
    """Queries in memory as they are, and a data set in parts as passes see it; anything else raises an error."""
    if isinstance(value, ChunkedQueries):
        return value
    if hasattr(value, "chunked"):  # Parts, which import this module
        return value.chunked()  # type: ignore[no-any-return]
    return as_queries(value, function)
