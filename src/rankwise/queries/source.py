"""`QuerySource`: what algorithms see of judged queries, whether they are in memory or in parts.

:class:`rankwise.Queries` and :class:`~rankwise.queries.passes.chunked.ChunkedQueries`, which are
:class:`rankwise.Parts` as algorithms see them, implement the protocol. An algorithm is written once:

- :meth:`QuerySource.apply` calls a function of queries whose result has one entry per query or per document. In memory
  it is called once, on all queries; in parts once per chunk, and the results are concatenated.
- :meth:`QuerySource.map` and :meth:`QuerySource.total` run a :class:`Job` on every chunk. Chunks depend on the sizes of
  the queries alone, and sums are added in their order: so queries in memory and in parts give the same bits.

A job sees a :class:`Chunk`: queries in memory, and a range of them. In memory these are all queries, so neither a range
of grouped rows nor one of scattered rows is copied.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._kernels import parallel
from rankwise.errors import DataError
from rankwise.queries import checks
from rankwise.queries.grouping import offsets

if TYPE_CHECKING:
    from rankwise.queries.checks import Missing
    from rankwise.queries.passes.journal import Journal
    from rankwise.queries.queries import Queries
    from rankwise.queries.scaling import Scaler
    from rankwise.queries.selection import Query


Vector = NDArray[np.float64]
Numbers = NDArray[np.int64]


class Chunk(NamedTuple):
    """A range of queries.

    Attributes
    ----------
    queries : Queries
        Queries in memory.
    first, last : int
        The range: queries first..last-1 of ``queries``.
    offset : int
        The number of the first one of ``queries`` in the source.
    n_jobs : int or None
        The number of threads that a job may use for this chunk.
    """

    queries: "Queries"
    first: int
    last: int
    offset: int = 0
    n_jobs: int | None = 1

    @property
    def numbers(self) -> slice:
        """The numbers of the queries in the source."""
        return slice(self.offset + self.first, self.offset + self.last)

    @property
    def block(self) -> "Queries":
        """The queries of the range with their rows grouped: views where the rows of all queries stand together."""
        return block_of(self.queries, self.first, self.last)


def block_of(queries: "Queries", first: int, last: int) -> "Queries":
    """A range of queries with their rows grouped, without ids: a view where the rows of all queries stand together."""
    if (first, last) == (0, len(queries)) and queries.is_grouped:
        return queries
    low, high = int(queries.start[first]), int(queries.start[last])
    rows: Any = slice(low, high) if queries.is_grouped else queries.rows[low:high]
    return _at(queries, rows, queries.start[first : last + 1] - low, slice(first, last), with_ids=False)


def select(queries: "Queries", key: Any) -> "Query | Queries":
    """``queries[key]``: one query for a number, otherwise the queries of a slice, a mask or a list of numbers."""
    if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:  # how scikit-learn slices
        key = key[0]
    if isinstance(key, tuple) and len(key) == 2:
        raise DataError(
            "queries are selected by one index: select_features(names) selects features, and "
            "DocumentTransformer(transformer) applies a scikit-learn transformer of columns"
        )
    if isinstance(key, (int, np.integer)):
        from rankwise.queries.selection import one_query

        return one_query(queries, range(len(queries))[int(key)])
    if isinstance(key, slice) and key.step in (None, 1) and queries.is_grouped:
        first, last, _ = key.indices(len(queries))
        last = max(first, last)
        row, end = int(queries.start[first]), int(queries.start[last])
        # views of the same memory
        return _at(queries, slice(row, end), queries.start[first : last + 1] - row, slice(first, last))
    try:
        if not isinstance(key, slice):
            key = np.asarray(key) if len(key) else np.zeros(0, dtype=np.int64)
        chosen = np.arange(len(queries))[key]
        sizes = queries.sizes[chosen]
        start = offsets(sizes)
        places = np.repeat(queries.start[chosen] - start[:-1], sizes) + np.arange(start[-1])
        return _at(queries, places if queries.is_grouped else queries.rows[places], start, chosen)
    except (IndexError, TypeError) as error:
        raise DataError(f"queries are chosen by number, slice, mask or list of numbers: {error}") from error


def _at(queries: "Queries", rows: Any, start: Numbers, chosen: Any, with_ids: bool = True) -> "Queries":
    """The queries whose fields per document are at ``rows`` and whose fields per query are at ``chosen``."""
    return queries._trusted(
        queries.X[rows],
        None if queries.y is None else queries.y[rows],
        start,
        weight=None if queries.weight is None else queries.weight[chosen],
        qid=queries.qid[chosen] if with_ids and queries.qid is not None else None,
        docid=queries.docid[rows] if with_ids and queries.docid is not None else None,
        feature_names=queries.feature_names,
        scaling=queries.scaling,
        document_weight=None if queries.document_weight is None else queries.document_weight[rows],
        built_by=queries.built_by if with_ids else None,
        finite=with_ids and queries._finite,
        judged=None if queries.judged is None else queries.judged[rows],
    )


def rows_in_order(queries: "Queries", chosen: NDArray[np.int64] | None = None) -> tuple[NDArray[np.int64], int]:
    """Rows of some queries, query after query.

    Parameters
    ----------
    queries : Queries
        The documents and their grouping.
    chosen : ndarray of int64, default=None
        The numbers of the queries to take; None takes all queries of non-zero weight.

    Returns
    -------
    rows : ndarray of int64
        The row numbers; empty where all rows are taken and already have this order.
    count : int
        The number of rows that are taken.
    """
    taken = np.zeros(len(queries), dtype=bool)
    taken[queries.counted if chosen is None else chosen] = True
    if taken.all() and queries.is_grouped:
        return np.empty(0, np.int64), queries.n_documents
    rows = np.ascontiguousarray(queries.rows[np.repeat(taken, queries.sizes)])
    return rows, len(rows)


def differing_weights(queries: "Queries") -> NDArray[np.float64] | None:
    """The document weights, or None if there are none or all of them are 1, which is the same to the last bit."""
    weight = queries.document_weight
    return None if weight is None or (weight == 1.0).all() else weight


class Job(ABC):
    """What is computed of every chunk; a subclass is a frozen dataclass that can be pickled.

    Attributes
    ----------
    keeps_prepared : bool
        Whether what :meth:`prepare` returns is worth keeping for further passes.
    """

    keeps_prepared: ClassVar[bool] = True

    def prepare(self, queries: "Queries", offset: int) -> Any:
        """What only the queries decide, for all passes of this job.

        Parameters
        ----------
        queries : Queries
            All queries in memory, or those of one chunk in parts.
        offset : int
            The number of the first one in the source.

        Returns
        -------
        object
            Kept by whoever holds the queries, and made again, with the same bits, when it was evicted.
        """
        return None

    @abstractmethod
    def run(self, chunk: Chunk, prepared: Any, *arguments: Any) -> Any:
        """The result of one chunk.

        Parameters
        ----------
        chunk : Chunk
            The queries.
        prepared : object
            What :meth:`prepare` returned for ``chunk.queries``.
        *arguments : object
            What differs from pass to pass, such as weights.

        Returns
        -------
        object
            A tuple of numbers and arrays.
        """

    @property
    def title(self) -> str:
        """The name of the job in the log."""
        return type(self).__name__


@dataclass(frozen=True)
class EachChunk(Job):
    """A function of the queries of a chunk.

    Attributes
    ----------
    function : callable
        A function of a module, which takes Queries with grouped rows and then ``arguments``.
    arguments : tuple
        What it takes besides.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()

    def run(self, chunk: Chunk, prepared: Any, *arguments: Any) -> Any:
        return self.function(chunk.block, *self.arguments, *arguments)

    @property
    def title(self) -> str:
        return self.function.__name__


@runtime_checkable
class QuerySet(Protocol):
    """A container of queries: `Queries`, `Parts`, or `Parts` as algorithms see them."""

    def as_source(self, verbose: bool = False) -> "QuerySource":
        """The queries as algorithms see them; ``verbose`` logs every pass over parts."""

    def blocks(self) -> "Iterator[Queries]":
        """The queries of every chunk, in order."""

    def lazy(self) -> "Queries":
        """The queries with labels and ids in memory; features of parts are read when rows of them are asked for."""


class QueryLayout(Protocol):
    """What follows from the offsets and the weights of queries, wherever their documents are."""

    __slots__ = ()

    @property
    def start(self) -> Numbers:
        """The offsets of the queries, shape (n_queries + 1,)."""

    @property
    def n_features(self) -> int:
        """The number of features."""

    @property
    def weight(self) -> Vector | None:
        """The query weights; None where all are 1."""

    @property
    def sizes(self) -> Numbers:
        """The number of documents of every query."""
        return np.diff(self.start)

    @property
    def n_documents(self) -> int:
        """The number of documents of all queries together."""
        return int(self.start[-1])

    @property
    def shape(self) -> tuple[int, int]:
        """(queries, features): scikit-learn counts queries as its samples."""
        return len(self), self.n_features

    @property
    def query_weight(self) -> Vector:
        """The weight of every query; ones where ``weight`` is None."""
        return np.ones(len(self)) if self.weight is None else self.weight

    @property
    def counted(self) -> Numbers:
        """The numbers of the queries of non-zero weight."""
        return np.flatnonzero(self.query_weight)

    def __len__(self) -> int:
        return len(self.start) - 1


class QuerySource(QueryLayout, Protocol):
    """Judged queries in memory or in parts: what there is one of per query, and passes over the documents."""

    __slots__ = ()

    def as_source(self, verbose: bool = False) -> Self:
        """The queries themselves."""
        return self

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """The names of the features, or None."""

    @property
    def scaling(self) -> "Scaler | None":
        """The fitted scaler that made the features, or None."""

    @property
    def built_by(self) -> Any:
        """The fitted builder that made the features, or None."""

    @property
    def is_grouped(self) -> bool:
        """Whether the rows of every query stand together, in the order of the queries."""

    @property
    def is_in_parts(self) -> bool:
        """Whether documents are read from a data set in parts."""

    @property
    def has_document_weights(self) -> bool:
        """Whether a document weight differs from 1."""

    @property
    def identity(self) -> str:
        """A digest of the queries, which a checkpoint compares."""

    def __getitem__(self, mask: Any) -> Any:
        """The queries of a mask."""

    def names(self) -> list[Any]:
        """The ids of the queries; the positions 0, 1, ... where they have none."""

    def with_weight(self, weight: ArrayLike) -> "QuerySource":
        """The same queries with other weights."""

    def select_features(self, names: Sequence[str]) -> "QuerySource":
        """The same queries with these features, or an error if that takes a copy of a data set in parts."""

    def require_labels(self) -> None:
        """Raise an error if the documents are not judged."""

    def refuse_missing(self, who: str) -> None:
        """Raise an error if a value is not finite, and ``who`` has no use for it."""

    def fill_missing(self, policy: "Missing") -> "QuerySource":
        """The same queries without NaN, where that takes no copy of a data set in parts."""

    def with_document_weight(self, document_weight: ArrayLike | None) -> "QuerySource":
        """The same queries with other document weights, or an error for a data set in parts."""

    def labels_differ(self) -> NDArray[np.bool_]:
        """Whether each query holds documents with different labels."""

    def fingerprints(self, n_jobs: int | None = None) -> NDArray[np.void]:
        """One fingerprint per query."""

    def load(self, numbers: Numbers) -> "tuple[Queries, Numbers]":
        """Queries in memory that hold these, and their numbers there."""

    def record_in(self, journal: "Journal | None") -> None:
        """Record the results of passes in a checkpoint, and take those that it has; None ends it."""

    def apply(self, function: Callable[..., Any], *arguments: Any, axis: int = 0, n_jobs: int | None = None) -> Any:
        """The result of a function of queries that has one entry per query or per document.

        Parameters
        ----------
        function : callable
            A function of a module, which takes Queries and then ``arguments``.
        *arguments : object
            What it takes besides.
        axis : int, default=0
            The axis of queries or documents.
        n_jobs : int, default=None
            Number of threads, where threads compute chunks.

        Returns
        -------
        ndarray
            The result; the one of documents is in input order.
        """

    def work(self, job: Job) -> Any:
        """A job with what it prepares, for many passes."""

    def map(self, job: Any, *arguments: Any, n_jobs: int | None = None) -> Iterator[Any]:
        """The result of a job, or of :meth:`work`, on every chunk, in their order."""

    def total(self, job: Any, *arguments: Any, n_jobs: int | None = None) -> tuple[Any, ...]:
        """The sums of results over all chunks, added in their order to 0."""


def as_source(value: Any, function: str, verbose: bool = False) -> QuerySource:
    """Queries in memory as they are, and a data set in parts as algorithms see it; anything else raises an error.

    With ``verbose`` every pass over parts writes a line to ``logging``.
    """
    from rankwise.queries.queries import as_queries

    return value.as_source(verbose) if isinstance(value, QuerySet) else as_queries(value, function)


def add_results(results: Iterator[Any]) -> tuple[Any, ...]:
    """The sums of tuples of numbers and arrays, added in their order to 0."""
    sums: list[Any] = []
    for result in results:
        if not sums:
            sums = [np.zeros_like(one) if isinstance(one, np.ndarray) else 0.0 for one in result]
        for place, one in enumerate(result):
            sums[place] += one  # in place for arrays
    return tuple(sums)


# ------------------------------------------------------------------------------------------------- queries in memory


@dataclass(frozen=True)
class PreparedJob:
    """A job on queries in memory, with what it prepared and their chunks."""

    job: Job
    queries: "Queries"
    prepared: Any = field(init=False)
    chunks: list[tuple[int, int]] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "prepared", self.job.prepare(self.queries, 0))
        object.__setattr__(self, "chunks", list(parallel.query_chunks(self.queries.start)))

    def results(self, arguments: Sequence[Any], n_jobs: int | None) -> list[Any]:
        """The result of every chunk."""
        job, queries, prepared = self.job, self.queries, self.prepared
        inside = max(1, parallel.threads(n_jobs) // max(1, len(self.chunks)))

        def result(first: int, last: int) -> Any:
            return job.run(Chunk(queries, first, last, 0, inside), prepared, *arguments)

        return parallel.map_chunks(result, self.chunks, n_jobs)


class MemorySource(QuerySource):
    """The protocol for queries in memory: base class of :class:`rankwise.Queries`."""

    __slots__ = ("_fingerprints",)

    if TYPE_CHECKING:
        X: Any
        y: Vector | None
        document_weight: Vector | None
        _fingerprints: NDArray[np.void]

    @property
    def is_in_parts(self) -> bool:
        """False: documents are in memory."""
        return False

    @property
    def has_document_weights(self) -> bool:
        """Whether a document weight differs from 1; weights of 1 are the same as none, to the last bit."""
        return self.document_weight is not None and bool((self.document_weight != 1.0).any())

    @property
    def identity(self) -> str:
        """A digest of the queries, which a checkpoint compares."""
        digest = hashlib.blake2b(digest_size=16)
        for one in (self.X, self.y, self.start, self.weight, self.document_weight):
            digest.update(b"-" if one is None else np.ascontiguousarray(one).data)
        return f"{self!r} {digest.hexdigest()}"

    def require_labels(self) -> None:
        """Raise an error if the documents are not judged."""
        _queries(self).labels()

    def fill_missing(self, policy: "Missing") -> "Queries":
        """The same queries without NaN, by one of the policies of :meth:`rankwise.Queries.from_arrays`."""
        queries = _queries(self)
        rows, names = queries.scattered_rows, queries.feature_names
        return queries._replace(X=checks.fill_missing(queries.X, queries.start, rows, policy, names))

    def labels_differ(self) -> NDArray[np.bool_]:
        """Whether each query holds documents with different labels."""
        queries = _queries(self)
        labels, filled = queries.in_query_order(queries.labels()), np.flatnonzero(queries.sizes)
        found = np.zeros(len(queries), bool)
        if len(filled):
            first = queries.start[filled]
            found[filled] = np.minimum.reduceat(labels, first) != np.maximum.reduceat(labels, first)
        return found

    def fingerprints(self, n_jobs: int | None = None) -> NDArray[np.void]:
        """One fingerprint per query; computed once."""
        if not hasattr(self, "_fingerprints"):
            from rankwise.queries.fingerprints import compute_fingerprints

            object.__setattr__(self, "_fingerprints", compute_fingerprints(_queries(self), n_jobs))
        return self._fingerprints

    def load(self, numbers: Numbers) -> "tuple[Queries, Numbers]":
        """The queries themselves, and these numbers."""
        return _queries(self), numbers

    def blocks(self) -> "Iterator[Queries]":
        """The queries of every chunk, in order."""
        for first, last in parallel.query_chunks(self.start):
            yield _queries(self)[first:last]

    def lazy(self) -> "Queries":
        """The queries themselves; see :meth:`rankwise.Parts.lazy`."""
        return _queries(self)

    def record_in(self, journal: "Journal | None") -> None:
        """Nothing: passes over queries in memory are computed again."""

    def apply(self, function: Callable[..., Any], *arguments: Any, axis: int = 0, n_jobs: int | None = None) -> Any:
        """The result of a function of these queries; see :meth:`QuerySource.apply`."""
        return function(self, *arguments)

    def work(self, job: Job) -> PreparedJob:
        """A job with what it prepares, for many passes."""
        return PreparedJob(job, _queries(self))

    def map(self, job: Job | PreparedJob, *arguments: Any, n_jobs: int | None = None) -> Iterator[Any]:
        """The result of a job on every chunk, in their order; see :meth:`QuerySource.map`."""
        work = job if isinstance(job, PreparedJob) else self.work(job)
        return iter(work.results(arguments, n_jobs))

    def total(self, job: Job | PreparedJob, *arguments: Any, n_jobs: int | None = None) -> tuple[Any, ...]:
        """The sums of results over all chunks; see :meth:`QuerySource.total`."""
        return add_results(self.map(job, *arguments, n_jobs=n_jobs))


def _queries(source: MemorySource) -> "Queries":
    return source  # type: ignore[return-value]
