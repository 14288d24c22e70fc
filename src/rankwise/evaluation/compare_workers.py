"""Cells side by side: threads that take one after the other, and stop at once when they are told to.

Threads and not processes, because kernels release the interpreter: nothing is copied, nothing is imported again, and
classes that were typed into a notebook take part. A cell's result depends on nothing outside it, so the bits are the
same however many run together.
"""

import ctypes
import math
import threading
import time
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

from rankwise._kernels import drive

Result = TypeVar("Result")

_GLANCE = 0.2  # seconds between looks at whether Ctrl-C was pressed
_AGAIN, _PATIENCE = 2.0, 20.0  # seconds until a thread is told to stop once more, and until it is left to itself

# Training documents from which a ranker's own threads keep the cores busy; cells follow one another then, so that
# memory does not grow with their number.
_MANY_DOCUMENTS = 4 * drive.CHUNK


def shared_out(n_jobs: int | None, cells: int, documents: int) -> tuple[int, int]:
    """(cells side by side, threads of each) for so many cells, the largest of which learns from so many documents."""
    cores = drive.threads(n_jobs)
    workers = 1 if documents >= _MANY_DOCUMENTS else min(cores, cells)
    return workers, max(1, cores // workers)


def side_by_side(
    tasks: Sequence[Callable[[], Result]], workers: int, done: Callable[[], None] = lambda: None
) -> list[Result]:
    """``[task() for task in tasks]`` by so many threads; the first error, or Ctrl-C, stops all of them.

    Parameters
    ----------
    done : called after every task, in the caller's thread
    """
    if workers <= 1 or len(tasks) <= 1:
        results = []
        for task in tasks:
            results.append(task())
            done()
        return results
    return _Crew(tasks, workers).work(done)


class _Crew(Generic[Result]):
    def __init__(self, tasks: Sequence[Callable[[], Result]], workers: int) -> None:
        self._waiting: SimpleQueue[tuple[int, Callable[[], Result]]] = SimpleQueue()
        self._answers: SimpleQueue[tuple[int, Result | None, BaseException | None]] = SimpleQueue()
        self._stopping = False
        for place, task in enumerate(tasks):
            self._waiting.put((place, task))
        self._count = len(tasks)
        names = (f"rankwise-cell-{number}" for number in range(min(workers, len(tasks))))
        self._threads = [threading.Thread(target=self._take_turns, name=name, daemon=True) for name in names]

    def work(self, done: Callable[[], None]) -> list[Result]:
        found: dict[int, Result] = {}
        try:
            for thread in self._threads:
                thread.start()
            while len(found) < self._count:
                try:
                    place, result, error = self._answers.get(timeout=_GLANCE)
                except Empty:
                    continue
                if error is not None:
                    raise error
                found[place] = result  # type: ignore[assignment]
                done()
        except BaseException:
            self._stop()
            raise
        return [found[place] for place in range(self._count)]

    def _take_turns(self) -> None:
        while not self._stopping:
            try:
                place, task = self._waiting.get_nowait()
            except Empty:
                return
            try:
                self._answers.put((place, task(), None))
            except BaseException as error:  # SystemExit too, by which a cell is told to stop
                self._stopping = True
                self._answers.put((place, None, error))

    def _stop(self) -> None:
        """Have SystemExit raised in every thread at its next step; a long call into compiled code ends first."""
        self._stopping = True
        began, told = time.monotonic(), -math.inf
        while alive := [thread for thread in self._threads if thread.is_alive()]:
            now = time.monotonic()
            if now - began > _PATIENCE:
                return  # they end with the process
            if now - told > _AGAIN:
                told = now
                for thread in alive:
                    _raise_in(thread)
            alive[0].join(_GLANCE)


def _raise_in(thread: threading.Thread) -> None:
    if thread.ident is not None:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit))
