"""Who computes a pass: the threads of this process, worker processes, or an executor of the user's own.

:class:`Threads` is the default: chunks are read from mapped files, and kernels release the GIL. The workers of
:class:`Processes` map the files themselves and keep the chunks that they are given: a chunk goes to the same worker in
every pass, so that what is prepared for it stays there, and a worker that dies is started again and its chunks are
computed again, to the same bits. :func:`executor_of` says which executor is meant; clusters are in
:mod:`rankwise.data.passes.dask`.
"""

import multiprocessing
import os
import signal
import tempfile
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from rankwise._errors import RankwiseError
from rankwise._kernels import drive
from rankwise.data.passes.work import WINDOW, Executor, Kept, Work, in_order


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
        self._workers, self.kept = workers, Kept(memory_limit)

    def workers(self, n_jobs: int | None) -> int:
        """The number of threads."""
        return drive.threads(n_jobs if self._workers is None else self._workers)

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


# A chunk that ended this many workers is given up.
_LIVES = 3


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
        self._count = drive.threads(workers)
        self._limit = None if memory_limit is None else memory_limit // self._count
        # no fork: a copy of a process with threads may wait for ever
        way = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
        self._context = multiprocessing.get_context(way)
        self._folder = tempfile.TemporaryDirectory(prefix="rankwise-passes-")
        self._pools: list[ProcessPoolExecutor | None] = [None] * self._count
        self._lock = threading.RLock()
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
        if not path.exists():
            unfinished = path.with_suffix(f".{threading.get_ident()}")
            unfinished.write_bytes(work.pickled)
            unfinished.replace(path)
        total = len(work.chunks)

        def submit(number: int) -> _Retried:
            # consecutive chunks for one worker would leave the others idle within a window
            return _Retried(self, number % self._count, (str(path), number, tuple(arguments)))

        return in_order(submit, numbers, min(total, WINDOW * self._count))

    def submit(self, worker: int, given: tuple[Any, ...]) -> "tuple[ProcessPoolExecutor, Future[Any]]":
        """Start a chunk on a worker, which is started if it does not run."""
        with self._lock:
            for _ in range(_LIVES):
                pool = self._pools[worker]
                if pool is None:
                    pool = ProcessPoolExecutor(1, mp_context=self._context, initializer=_begin, initargs=(self._limit,))
                    self._pools[worker] = pool
                try:
                    return pool, pool.submit(_chunk, *given)
                except BrokenProcessPool:
                    self.renew(worker, pool)
        raise RankwiseError(_GIVEN_UP)

    def renew(self, worker: int, broken: ProcessPoolExecutor) -> None:
        """Put an end to a worker that died, so that the next chunk starts another one."""
        with self._lock:
            if self._pools[worker] is broken:
                self._pools[worker] = None
        broken.shutdown(wait=False, cancel_futures=True)

    def forget(self, spent: Mapping[str, Any]) -> None:
        """Drop the work; workers drop what they prepared for it when the next work comes."""
        if "key" in spent:
            (Path(self._folder.name) / spent["key"]).unlink(missing_ok=True)

    def close(self) -> None:
        """End the workers."""
        self._end()


_GIVEN_UP = (
    f"{_LIVES} worker processes died one after the other on the same chunk: there may be too little memory, or the "
    "script starts processes outside of `if __name__ == '__main__':`"
)


class _Retried:
    """The result of a chunk, computed again by another worker if its own one dies."""

    def __init__(self, pools: Processes, worker: int, given: tuple[Any, ...]) -> None:
        self._pools, self._worker, self._given = pools, worker, given
        self._pool, self._future = pools.submit(worker, given)

    def result(self) -> Any:
        for _ in range(_LIVES):
            try:
                return self._future.result()
            except BrokenProcessPool:
                self._pools.renew(self._worker, self._pool)
                self._pool, self._future = self._pools.submit(self._worker, self._given)
        raise RankwiseError(_GIVEN_UP)

    def cancel(self) -> None:
        self._future.cancel()


def _close(pools: list[ProcessPoolExecutor | None], folder: "tempfile.TemporaryDirectory[str]") -> None:
    for number, pool in enumerate(pools):
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)
            pools[number] = None
    folder.cleanup()


# ------------------------------------------------------------------------------------------------- in a worker process

_kept = Kept()
_works: dict[str, Work] = {}


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
    work = _works.get(path)
    if work is None:
        for other in [one for one in _works if not Path(one).exists()]:  # works that are over
            del _works[other]
            _kept.forget(other)
        work = _works[path] = Work.unpickled(Path(path).read_bytes())
    return work.result(number, arguments, _kept, path)


# Bytes of prepared state if nothing was said.
USUAL_LIMIT = 1 << 30


def executor_of(
    given: Any, workers: int | None = None, memory_limit: int | str | None = None, strict: bool = True
) -> Executor:
    """The executor that was meant; the parameters are those of :meth:`rankwise.Parts.on`."""
    limit = USUAL_LIMIT
    if memory_limit is not None:
        from rankwise.data.parts.convert import as_bytes  # which imports this module

        limit = as_bytes(memory_limit, "memory_limit", 1)
    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
        raise RankwiseError(f"workers is a whole number from 1: found {workers!r:.60}")
    if given == "threads":
        return Threads(workers, limit)
    if given == "processes":
        return Processes(workers, limit)
    if hasattr(given, "submit") and hasattr(given, "scheduler_info"):
        from rankwise.data.passes.dask import Cluster

        return Cluster(given, limit, strict)
    if hasattr(given, "results") and hasattr(given, "workers"):
        return given  # type: ignore[no-any-return]
    raise RankwiseError(f"passes are computed by 'threads', 'processes' or a Dask client: found {given!r:.60}")
