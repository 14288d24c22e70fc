"""What one pass computes: a job, run on the fixed chunks of a data set, and what stays prepared between passes.

A :class:`~rankwise.queries.source.Job` maps the queries of one chunk to a small result. :class:`Work` is a job on a
data set; it is what executors send to their workers, once. A worker returns the result of a chunk, never a sum over
its own chunks, and the caller folds results in the order of the chunks. So neither the number of workers nor retries
change a bit.
"""

import hashlib
import pickle
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from itertools import count
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels.parallel import one_blas_thread
from rankwise.errors import RankwiseError
from rankwise.queries.queries import Queries
from rankwise.queries.source import Chunk, Job

# Results wait for their turn in the order of chunks: so many for each worker.
WINDOW = 4

_tokens = count()


class Blocks(Protocol):
    """A data set that hands out ranges of its queries, as :class:`rankwise.Parts` do."""

    @property
    def start(self) -> NDArray[np.int64]:
        """The offsets of the queries."""

    def block(self, first: int, last: int) -> Queries:
        """The queries first..last-1."""


@dataclass(frozen=True)
class Work:
    """A job on a data set.

    Attributes
    ----------
    source : Blocks
        The data set.
    chunks : tuple of (int, int)
        Its chunks.
    weight : ndarray of shape (n_queries,) or None
        Weights of the queries, in place of those of the data set; None keeps those.
    job : Job
        The job.
    """

    source: Blocks
    chunks: tuple[tuple[int, int], ...]
    weight: NDArray[np.float64] | None
    job: Job

    @cached_property
    def token(self) -> int:
        """A number that no other work of this process has."""
        return next(_tokens)

    @cached_property
    def pickled(self) -> bytes:
        """The work as a worker receives it."""
        given = (self.source, self.chunks, self.weight, self.job)
        try:
            return pickle.dumps(given, protocol=5)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise RankwiseError(
                f"{self.job.title} cannot be sent to other processes: {error}; define losses and measures of "
                "your own in a module that can be imported, or use threads"
            ) from error

    @cached_property
    def key(self) -> str:
        """A digest of the work."""
        return hashlib.blake2b(self.pickled, digest_size=16).hexdigest()

    @classmethod
    def unpickle(cls, data: bytes) -> "Work":
        """The work that a worker received."""
        return cls(*pickle.loads(data))

    def block(self, number: int) -> Queries:
        """The queries of a chunk."""
        first, last = self.chunks[number]
        block = self.source.block(first, last)
        return block if self.weight is None else block._replace(weight=self.weight[first:last])

    def result(self, number: int, arguments: Sequence[Any], kept: "Kept", key: Hashable) -> Any:
        """The result of a chunk; ``key`` names the work among what is kept."""
        block, first = self.block(number), self.chunks[number][0]
        with one_blas_thread():
            if self.job.keeps_prepared:
                prepared = kept.get((key, number), lambda: self.job.prepare(block, first))
            else:
                prepared = self.job.prepare(block, first)
            return self.job.run(Chunk(block, 0, len(block), first), prepared, *arguments)


class Kept:
    """What is prepared for chunks; above a limit, what works prepared that were not used for longest is dropped.

    Parameters
    ----------
    limit : int or None
        The largest number of bytes; None keeps everything.
    """

    def __init__(self, limit: int | None = None) -> None:
        self._limit, self._lock = limit, threading.Lock()
        self._kept: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self.bytes = 0

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """What was kept under this key, or what ``make`` returns, which is kept then."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key][0]
        made = make()
        size = own_bytes(made)
        with self._lock:
            if made is not None and key not in self._kept and (self._room_for(key, size) or is_indispensable(made)):
                self._kept[key] = made, size
                self.bytes += size
        return made

    def _room_for(self, key: Hashable, size: int) -> bool:
        """Whether there is room, after others were dropped.

        Chunks come round and round: dropping the oldest chunk of the same work would drop each before it comes again.
        """
        if self._limit is None:
            return True
        others = [one for one in self._kept if _work_of(one) != _work_of(key)]
        while others and self.bytes + size > self._limit:
            self._drop(others.pop(0))
        return self.bytes + size <= self._limit

    def forget(self, of: Hashable) -> None:
        """Drop everything of one work."""
        with self._lock:
            for key in [key for key in self._kept if _work_of(key) == of]:
                self._drop(key)

    def _drop(self, key: Hashable) -> None:
        self.bytes -= self._kept.pop(key)[1]


def is_indispensable(prepared: Any) -> bool:
    """Whether a prepared object is kept even where there is no room, because it follows what passes do."""
    return bool(getattr(prepared, "indispensable", False))


def _work_of(key: Hashable) -> Hashable:
    return key[0] if isinstance(key, tuple) else key


def own_bytes(value: Any) -> int:
    """The bytes of the arrays inside a prepared object; mapped files and views of them count nothing."""
    if is_indispensable(value):
        return int(value.kept_bytes)
    if isinstance(value, np.ndarray):
        base: Any = value
        while isinstance(base, np.ndarray) and not isinstance(base, np.memmap) and base.base is not None:
            base = base.base
        return 0 if not isinstance(base, np.ndarray) or isinstance(base, np.memmap) else value.nbytes
    if isinstance(value, Queries):
        return sum(own_bytes(getattr(value, name)) for name in ("X", "y", "start", "document_weight"))
    if is_dataclass(value) and not isinstance(value, type):
        return sum(own_bytes(getattr(value, field.name)) for field in fields(value))
    if isinstance(value, dict):
        return sum(map(own_bytes, value.values()))
    if isinstance(value, (tuple, list)):
        return sum(map(own_bytes, value))
    return 0


class Executor(Protocol):
    """What computes the chunks of a pass."""

    name: str

    def results(
        self, work: Work, numbers: Sequence[int], arguments: Sequence[Any], n_jobs: int | None
    ) -> Iterator[Any]:
        """The results of these chunks, in their order."""

    def workers(self, n_jobs: int | None) -> int:
        """The number of workers."""

    def forget(self, spent: Mapping[str, Any]) -> None:
        """Drop what is prepared for a work that is over, given its attributes."""

    def close(self) -> None:
        """End the workers."""


def in_order(submit: Callable[[int], Any], numbers: Sequence[int], window: int) -> Iterator[Any]:
    """The results of futures in the order of chunks, of which at most ``window`` are computed ahead.

    Parameters
    ----------
    submit : callable
        Starts a chunk and returns its future.
    numbers : sequence of int
        The chunks.
    window : int
        The largest number of futures at a time.

    Yields
    ------
    object
        The results.
    """
    waiting: OrderedDict[int, Any] = OrderedDict()
    todo = iter(numbers)
    try:
        for number in todo:
            waiting[number] = submit(number)
            if len(waiting) >= window:
                yield waiting.popitem(last=False)[1].result()
        while waiting:
            yield waiting.popitem(last=False)[1].result()
    finally:
        for future in waiting.values():
            with suppress(Exception):
                future.cancel()
