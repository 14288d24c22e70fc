"""Executors of passes: the threads of this process, worker processes, a Dask cluster, or an executor of the user's own.

:class:`Threads` is the default: chunks are read from mapped files, and kernels release the GIL. The workers of
:class:`Processes` map the files themselves and keep the chunks that they are given: a chunk goes to the same worker in
every pass, so what is prepared for it stays there, and a worker that dies is started again and its chunks are
computed again, to the same bits. :func:`executor_of` returns the executor of a name or a client.

The workers of a :class:`Cluster` open the folder themselves, too. Dask moves and repeats the chunks of workers that are
lost, and workers may come and go. None of this changes a bit: results are those of single chunks, and are folded by the
caller. What could change bits is other arithmetic: another processor, or another version of a compiler. Every result
therefore carries a digest of what its worker makes of a probe, and the first chunk of every worker is computed by this
process, too. A worker whose versions, digest or result differ is refused by name, unless ``strict=False``.
"""

import hashlib
import multiprocessing
import os
import platform
import signal
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rankwise._extras import require
from rankwise._kernels import parallel
from rankwise._kernels.parallel import one_blas_thread
from rankwise.errors import RankwiseError
from rankwise.queries import checks
from rankwise.queries.passes.journal import digest_of
from rankwise.queries.passes.work import WINDOW, Executor, Kept, Work, in_order


class Threads:
    """Compute chunks on threads.

    Parameters
    ----------
    workers : int, default=None
        Number of threads; None leaves it to ``n_jobs`` of the ranker.
    memory_limit : int, default=None
        The largest number of bytes of prepared state.
    """

    name = "threads"

    def __init__(self, workers: int | None = None, memory_limit: int | None = None) -> None:
        self._workers, self.memory_limit, self.kept = workers, memory_limit, Kept(memory_limit)

    def workers(self, n_jobs: int | None) -> int:
        """The number of threads."""
        return parallel.threads(n_jobs if self._workers is None else self._workers)

    def results(
        self, work: Work, numbers: Sequence[int], arguments: Sequence[Any], n_jobs: int | None
    ) -> Iterator[Any]:
        """The results of these chunks, in their order."""
        workers, key = min(self.workers(n_jobs), len(numbers)), work.token
        if workers <= 1:
            for number in numbers:
                yield work.result(number, arguments, self.kept, key)
            return
        pool = ThreadPoolExecutor(workers, thread_name_prefix="rankwise-pass")
        try:
            yield from in_order(
                lambda number: pool.submit(work.result, number, arguments, self.kept, key), numbers, WINDOW * workers
            )
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def forget(self, spent: Mapping[str, Any]) -> None:
        """Drop what is prepared for a work that is over."""
        self.kept.forget(spent.get("token"))

    def close(self) -> None:
        """There is nothing to end."""


class Retried:
    """The result of a chunk, which is computed again each time that its worker is lost.

    Parameters
    ----------
    submit : callable
        Starts the chunk and returns a future; called with the number of workers that were lost before.
    lost : tuple of type
        The errors of a lost worker.
    lives : int
        How many workers are tried.
    problem : str
        The error message behind the number of lost workers.
    """

    def __init__(
        self, submit: Callable[[int], Any], lost: tuple[type[BaseException], ...], lives: int, problem: str
    ) -> None:
        self._submit, self._lost, self._lives, self._problem = submit, lost, lives, problem
        self._future = submit(0)

    def result(self) -> Any:
        """The result, or an error if too many workers were lost."""
        for life in range(1, self._lives):
            with suppress(*self._lost):
                return self._future.result()
            self._future = self._submit(life)
        try:
            return self._future.result()
        except self._lost as error:
            raise RankwiseError(f"{self._lives} {self._problem}") from error

    def cancel(self) -> None:
        """Do not compute the chunk if nobody has begun."""
        self._future.cancel()


class _Awaited:
    """The result of a chunk that a pool of processes computes.

    If a process of a pool dies at the moment at which more work is given to it, Python's pools can end without a word
    to those who wait for it.

    Parameters
    ----------
    future : Future
        The result.
    manager : Thread or None
        The thread that hands results on.
    """

    def __init__(self, future: "Future[Any]", manager: Any) -> None:
        self._future, self._manager = future, manager
        self.cancel = future.cancel

    def result(self) -> Any:
        """The result, or ``BrokenProcessPool`` if nobody is left to hand it on."""
        while self._manager is not None and self._manager.is_alive():
            if wait([self._future], _LOOK).done:
                return self._future.result()
        if not self._future.done():
            raise BrokenProcessPool("the process pool ended without a result")
        return self._future.result()


# Seconds between two looks at whether a pool has ended.
_LOOK = 1.0
# A chunk that ended this many workers is given up.
_LIVES = 3
_GIVEN_UP = (
    "worker processes died one after the other on the same chunk: there may be too little memory, or the script starts "
    "processes outside of `if __name__ == '__main__':`"
)


class Processes:
    """Compute chunks in worker processes.

    Parameters
    ----------
    workers : int, default=None
        Number of processes; None is the number of cores.
    memory_limit : int, default=None
        The largest number of bytes of prepared state in all workers together.
    """

    name = "processes"

    def __init__(self, workers: int | None = None, memory_limit: int | None = None) -> None:
        self._count, self.memory_limit = parallel.threads(workers), memory_limit
        self._limit = None if memory_limit is None else memory_limit // self._count
        # no fork: a copy of a process with threads may wait for ever
        way = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
        self._context = multiprocessing.get_context(way)
        self._folder = tempfile.TemporaryDirectory(prefix="rankwise-passes-")
        self._pools: list[ProcessPoolExecutor | None] = [None] * self._count
        self._lock = threading.RLock()
        self._holders: dict[str, set[int]] = {}  # the works that share a file, because they are equal
        self._end = weakref.finalize(self, _close, self._pools, self._folder)

    def workers(self, n_jobs: int | None) -> int:
        """The number of processes."""
        return self._count

    def pids(self) -> list[int]:
        """The process numbers of the workers that have begun."""
        with self._lock:
            return [pid for pool in self._pools if pool is not None for pid in (pool._processes or {})]

    def results(
        self, work: Work, numbers: Sequence[int], arguments: Sequence[Any], n_jobs: int | None
    ) -> Iterator[Any]:
        """The results of these chunks, in their order."""
        path = Path(self._folder.name) / work.key
        with self._lock:
            self._holders.setdefault(work.key, set()).add(work.token)
            if not path.exists():
                unfinished = path.with_suffix(".part")
                unfinished.write_bytes(work.pickled)
                unfinished.replace(path)

        def submit(number: int) -> Retried:
            # consecutive chunks for one worker would leave the others idle within a window
            given = number % self._count, str(path), number, tuple(arguments)
            lost = BrokenProcessPool, BrokenPipeError
            return Retried(lambda losses: self._submit(*given), lost, _LIVES, _GIVEN_UP)

        return in_order(submit, numbers, min(len(work.chunks), WINDOW * self._count))

    def _submit(self, worker: int, *given: Any) -> _Awaited:
        """Start a chunk on a worker, which is started if it does not run."""
        with self._lock:
            pool = self._pools[worker]
            if pool is not None:
                try:
                    return _Awaited(pool.submit(_chunk, *given), pool._executor_manager_thread)
                except BrokenProcessPool:  # its process died
                    pool.shutdown(wait=False, cancel_futures=True)
            pool = ProcessPoolExecutor(1, mp_context=self._context, initializer=_begin, initargs=(self._limit,))
            self._pools[worker] = pool
            first = _Awaited(pool.submit(_chunk, *given), pool._executor_manager_thread)
            _close_ends_of_worker(pool)
            return first

    def forget(self, spent: Mapping[str, Any]) -> None:
        """Drop the work; workers drop what they prepared for it when the next work comes."""
        with self._lock:
            holders = self._holders.get(spent.get("key", ""), set())
            if spent.get("token") in holders:
                holders.remove(spent["token"])
                if not holders:
                    del self._holders[spent["key"]]
                    (Path(self._folder.name) / spent["key"]).unlink(missing_ok=True)

    def close(self) -> None:
        """End the workers."""
        self._end()


def _close_ends_of_worker(pool: Any) -> None:
    """Close the ends of the pipes that the worker alone uses.

    A worker that dies in the middle of a result leaves the reader waiting for the rest while any process has the other
    end open, and Python's pools keep it open.
    """
    with suppress(AttributeError, OSError):
        pool._result_queue._writer.close()
        pool._call_queue._reader.close()


def _close(pools: list[ProcessPoolExecutor | None], folder: "tempfile.TemporaryDirectory[str]") -> None:
    for number, pool in enumerate(pools):
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)
            pools[number] = None
    folder.cleanup()


# ------------------------------------------------------------------------------------------------- in a worker process

_kept = Kept()
_works: dict[str, Work] = {}
_works_lock = threading.Lock()
# Works that a worker knows; the oldest is over, or comes again with its chunk.
_MOST_WORKS = 64


def _work_of(key: str, payload: Callable[[], bytes]) -> Work:
    """The work of this key, which is unpickle at its first chunk."""
    with _works_lock:
        if key not in _works:
            if len(_works) >= _MOST_WORKS:
                _drop(next(iter(_works)))
            _works[key] = Work.unpickle(payload())
        return _works[key]


def _drop(key: str) -> None:
    del _works[key]
    _kept.forget(key)


def _begin(limit: int | None) -> None:
    """Leave Ctrl-C to the process that started this one, and end with it even if it was killed."""
    global _kept
    _kept = Kept(limit)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)


def _chunk(path: str, number: int, arguments: tuple[Any, ...]) -> Any:
    """The result of one chunk; the work is read from its file at the first one."""
    for other in [key for key in _works if not Path(key).exists()]:  # works that are over
        _drop(other)
    return _work_of(path, Path(path).read_bytes).result(number, arguments, _kept, path)


# ------------------------------------------------------------------------------------------------------------ a cluster

# Works up to this size travel with every chunk; larger ones are sent to the workers once.
_SMALL = 1 << 12
# A chunk whose worker is lost so often is given up.
_CLUSTER_LIVES = 5


class Cluster:
    """Compute chunks on the workers of a Dask cluster.

    Parameters
    ----------
    client : distributed.Client
        The client.
    memory_limit : int, default=None
        The largest number of bytes of prepared state per worker.
    strict : bool, default=True
        Whether workers whose arithmetic differs raise an error.
    """

    name = "dask"

    def __init__(self, client: Any, memory_limit: int | None = None, strict: bool = True) -> None:
        require("distributed")
        if getattr(client, "asynchronous", False):
            raise RankwiseError("passes need a synchronous Dask client, got one with asynchronous=True")
        self.client, self._limit, self._strict = client, memory_limit, strict
        self._sent: dict[str, Any] = {}
        self._known: set[str] = set()
        self._lock = threading.RLock()

    def workers(self, n_jobs: int | None) -> int:
        """The number of worker processes, at least 1."""
        return max(1, len(self._addresses()))

    @property
    def memory_limit(self) -> int | None:
        """The largest number of bytes of prepared state of all workers together."""
        return None if self._limit is None else self._limit * self.workers(None)

    def _addresses(self) -> list[str]:
        return sorted(self.client.nthreads())

    def results(
        self, work: Work, numbers: Sequence[int], arguments: Sequence[Any], n_jobs: int | None
    ) -> Iterator[Any]:
        """The results of these chunks, in their order."""
        addresses = self._addresses()
        window = WINDOW * max(1, sum(self.client.nthreads().values()))
        given = self.client.scatter([tuple(arguments)], broadcast=True)[0] if _large(arguments) else tuple(arguments)
        lost = (require("distributed.scheduler").KilledWorker, CancelledError)

        def submit(number: int) -> Retried:
            def send(losses: int) -> Any:
                if not losses:
                    return self._submit(work, number, given, addresses)
                self.forget({"key": work.key})  # all workers that held it are lost
                return self._submit(work, number, tuple(arguments), ())

            problem = "Dask workers were lost on the same chunk: there may be too little memory"
            return Retried(send, lost, _CLUSTER_LIVES, problem)

        for number, (worker, found) in zip(numbers, in_order(submit, numbers, window), strict=True):
            self._check(worker, found, work, number, tuple(arguments))
            yield found

    def _submit(self, work: Work, number: int, arguments: Any, addresses: Sequence[str]) -> Any:
        """Start a chunk, on the worker that had it in the pass before if it is still there."""
        where: dict[str, Any] = {}
        if addresses:
            where = {"workers": [addresses[number % len(addresses)]], "allow_other_workers": True}
        given = (work.key, self._payload(work), number, arguments, self._limit)
        return self.client.submit(_chunk_on_cluster, *given, pure=False, retries=_CLUSTER_LIVES, **where)

    def _payload(self, work: Work) -> Any:
        if len(work.pickled) <= _SMALL:
            return work.pickled
        with self._lock:
            if work.key not in self._sent:
                self._sent[work.key] = self.client.scatter(work.pickled, broadcast=True, hash=False)
            return self._sent[work.key]

    def _check(self, worker: "WorkerFacts", found: Any, work: Work, number: int, arguments: tuple[Any, ...]) -> None:
        """Refuse a worker whose arithmetic is not that of this process: its first chunk is computed here, too."""
        if not self._strict or worker.address in self._known:
            return
        own = arithmetic()
        differs = [
            f"{name} {worker.facts.get(name)} there and {here} here"
            for name, here in own.facts.items()
            if worker.facts.get(name) != here
        ]
        # another processor is fine if its bits are those of this one: kernels are compiled for one level
        if not [one for one in differs if not one.startswith("processor")] and worker.digest == own.digest:
            here = work.result(number, arguments, Kept(0), work.key)
            if digest_of(here) == digest_of(found):
                self._known.add(worker.address)
                return
        raise RankwiseError(
            f"the worker {worker.address} computes other bits than this process "
            f"({'; '.join(differs) or 'with the same versions'}): use machines of one kind with one set of versions, "
            "or give strict=False"
        )

    def forget(self, spent: Mapping[str, Any]) -> None:
        """Drop the work, which is sent again if needed; workers drop what they prepared when they need the room."""
        with self._lock:
            self._sent.pop(spent.get("key", ""), None)

    def close(self) -> None:
        """The client is its user's."""


def _large(arguments: Sequence[Any]) -> bool:
    return sum(one.nbytes for one in arguments if isinstance(one, np.ndarray)) > _SMALL


def _chunk_on_cluster(key: str, payload: bytes, number: int, arguments: tuple[Any, ...], limit: int | None) -> Any:
    """(what the worker is, result) of one chunk."""
    global _kept
    with _works_lock:
        if not _works:
            _kept = Kept(limit)
    work = _work_of(key, lambda: payload)
    try:
        address = require("distributed").get_worker().address
    except ValueError:  # no worker: the same function in a test
        address = "here"
    own = arithmetic()
    return WorkerFacts(address, own.facts, own.digest), work.result(number, arguments, _kept, key)


class WorkerFacts(NamedTuple):
    """What decides the bits of a worker: versions, the processor, and a digest of what they make of a probe."""

    address: str
    facts: Mapping[str, str]
    digest: str


_arithmetic: list[WorkerFacts] = []


def arithmetic() -> WorkerFacts:
    """The arithmetic of this process, found once: products and sums by the package's kernels, NumPy and BLAS."""
    if not _arithmetic:
        from llvmlite.binding import get_host_cpu_name

        from rankwise._kernels.dot_products import score_rows

        facts = {name: version(name) for name in ("rankwise", "numpy", "scipy", "numba", "llvmlite")}
        facts |= {"processor": f"{platform.machine()} {get_host_cpu_name()}"}
        random = np.random.default_rng(20)
        X = random.normal(size=(500, 37)) * np.exp2(random.integers(-9, 9, size=37))
        found = hashlib.blake2b(digest_size=16)
        with one_blas_thread():
            for rows in (X, X.astype(np.float32)):
                scores = np.empty(len(rows))
                score_rows(rows, 0, len(rows), random.normal(size=37), scores)
                for one in (scores, rows.T @ rows, rows.sum(axis=0), np.exp(-np.abs(scores) / 1e3)):
                    found.update(np.ascontiguousarray(one).tobytes())
            found.update(np.linalg.eigvalsh(X.T @ X).tobytes())
        _arithmetic.append(WorkerFacts("here", facts, found.hexdigest()))
    return _arithmetic[0]


# ------------------------------------------------------------------------------------------------------------ which one

# Bytes of prepared state if nothing was said.
USUAL_LIMIT = 1 << 30


def executor_of(
    given: Any, workers: int | None = None, memory_limit: int | str | None = None, strict: bool = True
) -> Executor:
    """The executor of a name or a client; the parameters are those of :meth:`rankwise.Parts.on`."""
    limit = USUAL_LIMIT
    if memory_limit is not None:
        limit = checks.as_bytes(memory_limit, "memory_limit", 1)
    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
        raise RankwiseError(f"workers must be a positive integer, got {workers!r:.60}")
    if given == "threads":
        return Threads(workers, limit)
    if given == "processes":
        return Processes(workers, limit)
    if hasattr(given, "submit") and hasattr(given, "scheduler_info"):
        return Cluster(given, limit, strict)
    if hasattr(given, "results") and hasattr(given, "workers"):
        return given  # type: ignore[no-any-return]
    raise RankwiseError(f"executor must be 'threads', 'processes' or a Dask client, got {given!r:.60}")
