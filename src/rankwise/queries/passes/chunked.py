"""`ChunkedQueries`: judged queries whose documents are read chunk by chunk, as rankers see a data set in parts.

What there is one of per query (sizes, weights) is in memory, as in :class:`rankwise.Queries`. Everything about
documents is a pass: :meth:`ChunkedQueries.map` gives the result of a job on every chunk, and :meth:`ChunkedQueries.
total` the sum of results in the order of chunks. :class:`rankwise.queries.source.QuerySource` is the protocol that both
kinds of queries implement.
"""

import logging
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._kernels import parallel
from rankwise._progress import displays, remark
from rankwise.errors import DataError
from rankwise.queries import checks
from rankwise.queries.passes.executors import Threads
from rankwise.queries.passes.work import Executor, Work
from rankwise.queries.queries import Queries
from rankwise.queries.source import EachChunk, Job, QuerySource, add_results

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
    survey : Survey or None
        What one pass tells of every query, once it was made.
    """

    passes: int = 0
    seconds: float = 0.0
    replayed: int = 0
    verbose: bool = False
    journal: "Journal | None" = None
    survey: "Survey | None" = None
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True, eq=False)
class ChunkedQueries(QuerySource):
    """Judged queries that are read chunk by chunk.

    Attributes
    ----------
    source : Parts
        The data set.
    executor : Executor
        The executor of passes.
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
    def n_features(self) -> int:
        """The number of features."""
        return int(self.source.n_features)

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

    def __getitem__(self, mask: NDArray[np.bool_]) -> "ChunkedQueries":
        """The queries of a mask."""
        known = self.account.survey
        survey = None if known is None else known.of_some(mask)
        found = ChunkedQueries.of(self.source[mask], self.executor, verbose=self.account.verbose, survey=survey)
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
        return np.zeros(1) if self.has_document_weights else None

    @property
    def has_document_weights(self) -> bool:
        """Whether a document weight differs from 1."""
        return bool(self.survey.weighted.any())

    @property
    def is_in_parts(self) -> bool:
        """True: documents are read chunk by chunk."""
        return True

    @property
    def is_grouped(self) -> bool:
        """True: files hold the rows of one query after those of another."""
        return True

    @property
    def identity(self) -> str:
        """A digest of the queries, which a checkpoint compares."""
        return f"{self.source!r} {self.source.identity}"

    @property
    def survey(self) -> "Survey":
        """What one pass tells of every query; it is made at the first use."""
        if self.account.survey is None:
            self.account.survey = Survey.of(self)
        return self.account.survey

    def blocks(self) -> Iterator[Queries]:
        """The queries of every chunk, in order."""
        return (self.load(np.arange(first, last))[0] for first, last in self.chunks)

    def lazy(self) -> Queries:
        """The queries with features that are read when rows of them are asked for; see :meth:`rankwise.Parts.lazy`."""
        return self.source.lazy()  # type: ignore[no-any-return]

    def require_labels(self) -> None:
        """Raise an error if the documents are not judged."""
        if not self.source.has_labels:
            raise DataError("these queries carry no labels, and labels are needed here")

    def refuse_missing(self, who: str) -> None:
        """Raise an error that names the first value that is not finite, if ``who`` has no use for it."""
        if self.survey.missing is not None:
            query, feature = self.survey.missing
            raise DataError(
                f"query {query:,} has no finite feature {feature}, and {who} gives no meaning to missing values: make "
                "the parts with missing='zero' or missing='min'"
            )

    def fill_missing(self, policy: checks.Missing) -> Self:
        """The queries themselves: :meth:`refuse_missing` names what parts were made without."""
        return self

    def with_document_weight(self, document_weight: ArrayLike | None) -> Self:
        """An error: parts hold their own document weights."""
        raise DataError("Parts hold their own document weights: leave out sample_weight=")

    def labels_differ(self) -> NDArray[np.bool_]:
        """Whether each query holds documents with different labels."""
        return self.survey.differs

    def fingerprints(self, n_jobs: int | None = None) -> NDArray[np.void]:
        """One fingerprint per query, from the index of the data set."""
        return self.survey.marks

    def select_features(self, names: Sequence[str]) -> Self:
        """The queries themselves, or an error if their features are not these."""
        if tuple(names) != self.feature_names:
            raise DataError("these parts have other features, or another order of features, than the training data")
        return self

    def record_in(self, journal: "Journal | None") -> None:
        """Record the results of passes in a checkpoint, and take those that it has; None ends it."""
        self.account.journal = journal

    def load(self, numbers: NDArray[np.int64]) -> tuple[Queries, NDArray[np.int64]]:
        """These queries in memory, in this order, and their numbers there.

        Parameters
        ----------
        numbers : ndarray of int64
            Their numbers.

        Returns
        -------
        queries : Queries
            A view of a file where consecutive queries stand in one.
        numbers : ndarray of int64
            0, 1, ...
        """
        if len(numbers) and (np.diff(numbers) == 1).all():
            block = self.source.block(int(numbers[0]), int(numbers[-1]) + 1)
        else:
            block = self.source[numbers].block(0, len(numbers))
        weight = None if self.weight is None else self.weight[numbers]
        return block._replace(weight=weight), np.arange(len(numbers))

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
                work.job.title,
                f"{documents:,}",
                seconds,
                self._speed(documents, seconds),
            )

    def apply(self, function: Callable[..., Any], *arguments: Any, axis: int = 0, n_jobs: int | None = None) -> Any:
        """The results of a function of every chunk, concatenated; see :meth:`QuerySource.apply`."""
        results = list(self.map(EachChunk(function, arguments), n_jobs=n_jobs))
        return np.concatenate(results, axis=axis) if results else function(self.source.block(0, 0), *arguments)

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
        found = add_results(self.map(work, *arguments, n_jobs=n_jobs))
        if journal is not None and key is not None:
            journal.add(key, found)
        return found


# --------------------------------------------------------------------------------------------------------- the survey


def survey_block(block: Queries) -> tuple[Any, ...]:
    """(whether labels differ, whether a document weight is not 1, for every query; the first missing value)."""
    count = len(block)
    weighted = np.zeros(count, bool)
    if block.document_weight is not None:
        weighted[block.query_of_row[block.document_weight != 1.0]] = True
    missing = checks.first_not_finite(block.X)
    place = None if missing is None else (int(block.query_of_row[missing[0]]), missing[1])
    return np.zeros(count, bool) if block.y is None else block.labels_differ(), weighted, place


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
        for (first, _), (other, heavy, place) in zip(queries.chunks, queries.map(EachChunk(survey_block)), strict=True):
            differs.append(other)
            weighted.append(heavy)
            if missing is None and place is not None:
                missing = place[0] + first, place[1]
        return cls(queries.source.fingerprints(), np.concatenate(differs), np.concatenate(weighted), missing)


def _forget(executor: Executor, spent: dict[str, Any]) -> None:
    with suppress(Exception):  # a finalizer may run when everything else is gone
        executor.forget(spent)
