"""The threads of this process, the default: chunks are read from mapped files, and kernels release the GIL."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from rankwise._kernels import drive
from rankwise.data.passes.work import WINDOW, Kept, Work, in_order


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
