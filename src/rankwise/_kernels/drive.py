"""How public calls run kernels: they say what is about to run, and spread fixed chunks of queries over threads.

Kernels release the GIL and work on a range of queries. The chunks, and so the bits, do not depend on the number of
threads. Nothing is summed across threads here: each chunk writes its own part of the output, or its result is returned
in order.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import RankwiseError

Result = TypeVar("Result")

# Documents per chunk: many enough that the 50 us of a call into compiled code do not matter, few enough to balance.
CHUNK = 1 << 16

# The public calls so far, in order: :mod:`rankwise._kernels.waiting` looks up how many kernels they need.
expected: dict[str, None] = {}


def expect(*calls: str) -> None:
    """Say what is about to run, so that the number of kernels is known when they have to be compiled.

    Parameters
    ----------
    *calls : str
        Names of public functions and rankers; unknown ones are ignored.
    """
    expected.update(dict.fromkeys(calls))


def threads(n_jobs: int | None = None) -> int:
    """The number of threads that ``n_jobs`` means: None and -1 mean every core that this process may use."""
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer))):
        raise RankwiseError(f"n_jobs is a whole number, or None for every core: found {n_jobs!r:.60}")
    if n_jobs is not None and n_jobs > 0:
        return int(n_jobs)
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS or Windows
        return os.cpu_count() or 1


def query_chunks(start: NDArray[np.int64], size: int | None = None) -> Iterator[tuple[int, int]]:
    """Ranges of whole queries, the same on every machine.

    Parameters
    ----------
    start : ndarray of int64, shape (n_queries + 1,)
        The offsets of the queries.
    size : int, default=None
        About how many documents a chunk has; None is CHUNK.

    Yields
    ------
    first, last : int
        The chunk of queries first..last-1.
    """
    count, size = len(start) - 1, CHUNK if size is None else size
    first = 0
    while first < count:
        last = int(np.searchsorted(start, start[first] + size, side="right")) - 1
        last = min(max(last, first + 1), count)
        yield first, last
        first = last


def run(task: Callable[..., Result], chunks: Sequence[tuple[int, ...]], n_jobs: int | None = None) -> list[Result]:
    """Run a task on threads for every chunk.

    Parameters
    ----------
    task : callable
        Takes the numbers of a chunk.
    chunks : sequence of tuple
        The arguments of the calls.
    n_jobs : int, default=None
        The number of threads; None uses every core.

    Returns
    -------
    results : list
        ``[task(*chunk) for chunk in chunks]``. Ctrl-C cancels the chunks that have not begun.
    """
    workers = min(threads(n_jobs), len(chunks))
    if workers <= 1:
        return [task(*chunk) for chunk in chunks]
    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(task, *chunk) for chunk in chunks]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
