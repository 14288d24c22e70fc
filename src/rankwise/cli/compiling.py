"""Compile in several processes, with progress: what ``rankwise warm`` and ``rankwise demo`` do before anything else.

numba compiles one function at a time in a process. :func:`compile_in_processes` therefore makes calls in processes of
their own; machine code goes to the cache on the disk, where every other process finds it. A process gets a new call
when it has finished one, and among those that are left the one that shares fewest kernels with what the others are
doing, so that little is compiled twice. :func:`without_compiler` finds out whether a call would compile anything.
"""

import importlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from rankwise._errors import RankwiseError
from rankwise._kernels import origins
from rankwise._progress import progress

_WORKER = "from rankwise.cli.compiling import work; work()"
_BEST = ("compiler", "cache", "pack")  # a kernel that one process compiled and another one loaded was compiled


class WouldCompileError(BaseException):
    """A kernel is neither in the pack nor in the cache; no handler of ordinary errors can catch this."""


@contextmanager
def without_compiler() -> Iterator[None]:
    """Raise instead of compiling, in this scope.

    Yields
    ------
    None
        Nothing.

    Raises
    ------
    WouldCompileError
        If a kernel would have to be compiled; its name is the argument.
    """

    def refuse(kernel: str, begins: bool) -> None:
        if begins:
            origins.abandoned()
            raise WouldCompileError(kernel)

    origins.listeners.insert(0, refuse)
    try:
        yield
    finally:
        origins.listeners.remove(refuse)


@dataclass(frozen=True)
class Call:
    """A call that compiles what it needs.

    Attributes
    ----------
    name : str
        How it is shown.
    function : str
        Module and name, with a colon between them.
    arguments : tuple
        What it takes, as JSON values.
    kernels : Counter of str
        The kernels that it is known to need.
    """

    name: str
    function: str
    arguments: tuple[Any, ...]
    kernels: Counter[str] = field(default_factory=Counter)


@dataclass
class Compiled:
    """What became of the calls.

    Attributes
    ----------
    kernels : dict of (str, str) to str
        For each kernel and signature, where its machine code came from: ``"pack"``, ``"cache"`` or ``"compiler"``.
    lacking : dict of str to str
        For each call that would have compiled something, the first kernel; only if compiling was not allowed.
    """

    kernels: dict[tuple[str, str], str] = field(default_factory=dict)
    lacking: dict[str, str] = field(default_factory=dict)

    def count(self, source: str) -> int:
        """How many kernels came from there."""
        return sum(one == source for one in self.kernels.values())

    def add(self, kernel: str, signature: str, source: str) -> None:
        """Note where a process had a kernel from."""
        known = self.kernels.get((kernel, signature), source)
        self.kernels[kernel, signature] = min(known, source, key=_BEST.index)


# ----------------------------------------------------------------------------------------------------- the processes


def compile_in_processes(
    calls: Sequence[Call], jobs: int, what: str = "compiling kernels", check: bool = False
) -> Compiled:
    """Make the calls in processes of their own, and show how many of their kernels are ready.

    Parameters
    ----------
    calls : sequence of Call
        The calls.
    jobs : int
        The number of processes.
    what : str, default="compiling kernels"
        What the bar says.
    check : bool, default=False
        Whether to stop each call at the first kernel that has to be compiled.

    Returns
    -------
    compiled : Compiled
        Where every kernel came from.

    Raises
    ------
    RankwiseError
        If a call failed.
    """
    crew = _Crew(calls, check)
    threads = [threading.Thread(target=crew.serve, daemon=True) for _ in range(min(jobs, len(calls)))]
    needed: Counter[str] = Counter()
    for call in calls:
        needed |= call.kernels
    result, ready, doing, open_ = Compiled(), Counter[str](), Counter[str](), len(calls)
    try:
        with progress(what, needed.total() or None) as bar:
            for thread in threads:
                thread.start()
            while open_:
                kind, call, *told = crew.told.get()
                before = (needed & ready).total()
                if kind == "starts":
                    doing[call.name] += 1
                elif kind == "compiled":
                    ready[told[0]] += 1
                else:
                    open_ -= 1
                    doing -= Counter([call.name])
                    if kind == "failed":
                        raise RankwiseError(f"{call.name}: {told[0]}")
                    ready |= call.kernels
                    for origin in told[0]:
                        result.add(*origin[:3])
                    if kind == "lacks":
                        result.lacking[call.name] = told[1]
                bar.advance((needed & ready).total() - before)
                bar.remark(", ".join(doing))
    finally:
        crew.stop()
    return result


class _Crew:
    """Processes that make calls; each is served by one thread of this process."""

    def __init__(self, calls: Sequence[Call], check: bool) -> None:
        self.told: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        self._check = check
        self._left = list(calls)
        self._running: list[Call] = []
        self._processes: list[subprocess.Popen[str]] = []
        self._lock = threading.Lock()

    def serve(self) -> None:
        """Start a process and give it calls until none is left."""
        with self._lock:
            process = subprocess.Popen(
                [sys.executable, "-c", _WORKER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            self._processes.append(process)
        assert process.stdin is not None
        assert process.stdout is not None
        while call := self._next():
            self.told.put(("starts", call))
            finished = False
            try:
                print(json.dumps([call.function, call.arguments, self._check]), file=process.stdin, flush=True)
                for line in process.stdout:
                    kind, *told = json.loads(line)
                    self.told.put((kind, call, *told))
                    finished = kind != "compiled"
                    if finished:
                        break
            except OSError:  # the process has ended
                pass
            if not finished:
                self.told.put(("failed", call, "the process that compiled it has ended"))
                return
            with self._lock:
                self._running.remove(call)
        process.stdin.close()

    def _next(self) -> Call | None:
        """The call that shares fewest kernels with those that are running; the largest of several."""
        with self._lock:
            busy: Counter[str] = Counter()
            for call in self._running:
                busy |= call.kernels
            best = min(
                self._left,
                key=lambda call: ((call.kernels & busy).total(), -call.kernels.total()),
                default=None,
            )
            if best is not None:
                self._left.remove(best)
                self._running.append(best)
            return best

    def stop(self) -> None:
        """End all processes."""
        with self._lock:
            self._left.clear()
            for process in self._processes:
                process.kill()
        for process in self._processes:
            process.wait()


def work() -> None:
    """Make the calls that standard input names, and tell standard output what they compile: the body of a process."""
    with os.fdopen(os.dup(1), "w") as out:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a call prints is nobody's

        def tell(*message: Any) -> None:
            print(json.dumps(message), file=out, flush=True)

        origins.listeners.append(lambda kernel, begins: None if begins else tell("compiled", kernel))
        for line in sys.stdin:
            tell(*_made(*json.loads(line)))


def _made(function: str, arguments: Sequence[Any], check: bool) -> Sequence[Any]:
    """Make one call: the message about its end."""
    module, _, name = function.partition(":")
    origins.record.clear()
    try:
        if check:
            with without_compiler():
                getattr(importlib.import_module(module), name)(*arguments)
        else:
            getattr(importlib.import_module(module), name)(*arguments)
    except WouldCompileError as lacking:
        return "lacks", origins.record, str(lacking)
    except Exception as error:
        return "failed", f"{type(error).__name__}: {error}"
    return "done", origins.record


def processes(jobs: int | None, calls: Mapping[str, Any] | Sequence[Any]) -> int:
    """How many processes to start.

    Parameters
    ----------
    jobs : int or None
        What was asked for; None means one per core, at most four: kernels that calls share are compiled once.
    calls : sequence or mapping
        The calls.

    Returns
    -------
    int
        At least one, at most one per call.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(jobs or min(cores, 4), len(calls)))
