"""Compile in several processes, with progress: what ``rankwise warm`` and ``rankwise demo`` do before anything else.

numba compiles one function at a time in a process. :func:`compile_in_processes` therefore makes calls in processes of
their own; machine code goes to the cache on the disk, where every other process finds it. Calls share kernels: a
process that comes to one that another process is compiling breaks its call off and makes a different one meanwhile.
:func:`without_compiler` finds out whether a call would compile anything.
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
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any

from rankwise._kernels.machine import compile_log
from rankwise._progress import progress
from rankwise.errors import RankwiseError

_WORKER = "from rankwise.cli.compiling import work; work()"
_BEST = ("compiler", "cache", "pack")  # a kernel that one process compiled and another one loaded was compiled


class WouldCompileError(BaseException):
    """A kernel is neither in the pack nor in the cache; no handler of ordinary errors can catch this."""


class _LeftError(BaseException):
    """A kernel is being compiled by another process."""


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
            compile_log.abandon()
            raise WouldCompileError(kernel)

    compile_log.listeners.insert(0, refuse)
    try:
        yield
    finally:
        compile_log.listeners.remove(refuse)


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
        If calls failed, after all others.
    """
    crew = _Crew(calls, check)
    needed: Counter[str] = Counter()
    for call in calls:
        needed |= call.kernels
    result, ready, open_ = Compiled(), Counter[str](), len(calls)
    doing: dict[str, str] = {}  # call -> what it compiles
    failed: list[str] = []
    try:
        with progress(what, needed.total() or None) as bar:
            crew.start(min(jobs, len(calls)))
            while open_:
                kind, call, *told = crew.told.get()
                before = (needed & ready).total()
                if kind == "starts":
                    doing[call.name] = call.name
                elif kind == "begins":
                    doing[call.name] = f"{call.name}: {told[0].rpartition('.')[2].lstrip('_')}"
                elif kind == "compiled":
                    ready[told[0]] += 1
                elif kind == "left":
                    del doing[call.name]
                else:
                    open_ -= 1
                    del doing[call.name]
                    ready |= call.kernels
                    if kind == "failed":
                        failed.append(f"{call.name}: {told[0]}")
                    else:
                        for origin in told[0]:
                            result.add(*origin[:3])
                    if kind == "lacks":
                        result.lacking[call.name] = told[1]
                bar.advance((needed & ready).total() - before)
                bar.remark(", ".join(doing.values()))
    finally:
        crew.stop()
    if failed:
        raise RankwiseError("; ".join(failed))
    return result


class _Crew:
    """Processes that make calls; each is served by one thread of this process."""

    def __init__(self, calls: Sequence[Call], check: bool) -> None:
        self.told: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        self._check = check
        self._left = list(calls)
        self._running: list[Call] = []
        self._compiling: set[tuple[str, str]] = set()  # kernels and signatures
        self._compiled: set[tuple[str, str]] = set()
        self._waits_for: dict[str, tuple[str, str]] = {}  # call -> the kernel that made it break off
        self._processes: list[subprocess.Popen[str]] = []
        self._threads: list[threading.Thread] = []
        self._changed = threading.Condition()
        self._stopped = False

    def start(self, count: int) -> None:
        """Start the processes."""
        self._threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    def _process(self) -> "subprocess.Popen[str]":
        """Start one process."""
        command = [sys.executable, "-c", _WORKER]
        with self._changed:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
            self._processes.append(process)
            if self._stopped:
                process.kill()
        return process

    def _serve(self) -> None:
        """Give calls to a process until none is left."""
        process = self._process()
        while call := self._next():
            self.told.put(("starts", call))
            try:
                last = self._make(call, process)
            except (OSError, ValueError):
                last = ("failed", "the process that compiled it has ended")
                process = self._process()
            with self._changed:
                self.told.put((last[0], call, *last[1:]))  # before another process can start it
                self._running.remove(call)
                if last[0] == "left":
                    self._left.insert(0, call)  # what comes first takes longest
                    self._waits_for[call.name] = (last[1], last[2])
                self._changed.notify_all()

    def _make(self, call: Call, process: "subprocess.Popen[str]") -> tuple[Any, ...]:
        """Have a call made, and answer which kernels the process may compile: its last message."""
        assert process.stdin is not None
        assert process.stdout is not None
        print(json.dumps([call.function, call.arguments, self._check]), file=process.stdin, flush=True)
        mine: tuple[str, str] | None = None
        try:
            for line in process.stdout:
                kind, *told = json.loads(line)
                if kind not in ("asks", "begins", "compiled"):
                    return kind, *told
                if kind == "asks":
                    wanted = (told[0], told[1])
                    mine = wanted if self._allows(call, wanted) else None
                    print(json.dumps(mine is not None), file=process.stdin, flush=True)
                else:
                    self.told.put((kind, call, told[0]))
                    if kind == "compiled" and mine is not None and told == list(mine):
                        self._has_compiled(mine)
                        mine = None
        finally:
            if mine is not None:
                self._has_compiled(mine)
        raise ValueError("no last message")

    def _allows(self, call: Call, kernel: tuple[str, str]) -> bool:
        """Whether a call may compile a kernel, and not another process compiles it, or has just done so.

        What was compiled is looked for on the disk once more, but not twice: where nothing is kept, it is not there.
        """
        with self._changed:
            just_compiled = kernel in self._compiled and self._waits_for.get(call.name) != kernel
            if kernel in self._compiling or just_compiled:
                return False
            self._compiling.add(kernel)
            return True

    def _has_compiled(self, kernel: tuple[str, str]) -> None:
        """Let the calls go on that wait for this kernel."""
        with self._changed:
            self._compiling.discard(kernel)
            self._compiled.add(kernel)
            self._changed.notify_all()

    def _next(self) -> Call | None:
        """The first call that waits for no other process, if need be after a while; None if there is nothing to do."""
        with self._changed:
            while not self._stopped and (self._left or self._running):
                for call in self._left:
                    if self._waits_for.get(call.name) not in self._compiling:
                        self._left.remove(call)
                        self._running.append(call)
                        return call
                self._changed.wait()
            return None

    def stop(self) -> None:
        """End all processes, and whoever waits for them."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        for process in self._processes:
            process.kill()
        for thread in self._threads:
            with suppress(RuntimeError):  # not started yet when Ctrl-C came; it will find that all is over
                thread.join()
        for process in self._processes:
            with suppress(OSError), process:  # waits, and closes the pipes; one may hold what nobody will read
                pass


def work() -> None:
    """Make the calls that standard input names, and print what they compile: the body of a process."""
    with os.fdopen(os.dup(1), "w") as out:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a call prints is nobody's

        compiled: list[tuple[str, str]] = []  # told with the next message: code is on the disk by then

        def tell(*message: Any) -> None:
            while compiled:
                print(json.dumps(("compiled", *compiled.pop())), file=out)
            print(json.dumps(message), file=out, flush=True)

        def listen(kernel: str, begins: bool) -> None:
            if not begins:
                compiled.append(compile_log.record[-1][:2])
                return
            (first, *inner) = compile_log.being_compiled()
            if not inner:  # a kernel that another one needs is compiled at once: to break off would lose that one
                tell("asks", *first)
                if not json.loads(sys.stdin.readline()):
                    compile_log.abandon()
                    raise _LeftError(*first)
            tell("begins", kernel)

        compile_log.listeners.append(listen)
        for line in iter(sys.stdin.readline, ""):
            tell(*_make_call(*json.loads(line)))


def _make_call(function: str, arguments: Sequence[Any], check: bool) -> Sequence[Any]:
    """Make one call: the message about its end."""
    module, _, name = function.partition(":")
    try:
        with without_compiler() if check else nullcontext():
            getattr(importlib.import_module(module), name)(*arguments)
    except WouldCompileError as lacking:
        return "lacks", compile_log.record, str(lacking)
    except _LeftError as left:
        return "left", *left.args
    except Exception as error:
        return "failed", f"{type(error).__name__}: {error}"
    return "done", compile_log.record


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
