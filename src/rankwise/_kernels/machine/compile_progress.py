"""Say what is being compiled to a user who waits for it.

The first use of a kernel on a machine compiles it, and a first fit may need dozens. Once the compiler has run for a
second in a process, one line on the terminal shows the kernel and how many there are, and vanishes when the compiler is
done; where a progress bar is shown, it says so in that bar. ``logging`` gets one line per process, at level INFO of the
logger ``rankwise``. Nothing is printed where neither a terminal nor a log asks for it. A process that finds its
kernels compiled does none of this.

The number of kernels is known beforehand: public functions say what they are about to run
(:func:`~rankwise._kernels.parallel.announce_kernels`), and ``counts.json``, which ``python3 run.py python -m
tests.kernels.make_counts`` writes, has the kernels that each of them loads.
"""

import json
import logging
import os
import shutil
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from rankwise import _progress
from rankwise._kernels.machine import compile_log
from rankwise._kernels.parallel import announced

_COUNTS = Path(__file__).with_name("counts.json")
_PATIENCE = 1.0  # seconds of compilation before anything is said
_REDRAWN_EVERY = 0.2
_ERASED = "\r\x1b[2K"

logger = logging.getLogger("rankwise")


@cache
def counts() -> dict[str, dict[str, Counter[str]]]:
    """The kernels that are loaded, from the file that a test keeps up to date.

    Returns
    -------
    counts : dict of str to dict of str to Counter
        ``"first calls"`` and ``"workloads"``; for each name, how many forms of each kernel are needed.
    """
    try:
        found = json.loads(_COUNTS.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # a package without its data still computes
        return {"first calls": {}, "workloads": {}}
    return {part: {name: Counter(kernels) for name, kernels in calls.items()} for part, calls in found.items()}


def count_needed(part: str, names: Iterable[str]) -> Counter[str]:
    """How many forms of each kernel these calls need together.

    Parameters
    ----------
    part : {"first calls", "workloads"}
        Whether the names are those of public calls or of workloads.
    names : iterable of str
        The names; unknown ones need nothing.

    Returns
    -------
    kernels : Counter
        The kernels.
    """
    together: Counter[str] = Counter()
    for name in names:
        together |= counts()[part].get(name, Counter())
    return together


class CompileProgress:
    """A listener of :mod:`~rankwise._kernels.machine.compile_log` that shows what the compiler does."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watch: threading.Thread | None = None
        self._kernel = ""
        self._spent = 0.0  # seconds of finished compilations
        self._since: float | None = None  # when the outermost kernel that is being compiled was begun
        self._drawn = ""  # what stands on the terminal
        self._remarked = self._logged = False

    def __call__(self, kernel: str, begins: bool) -> None:
        """Hear of a compilation.

        Parameters
        ----------
        kernel : str
            Module and name of the kernel.
        begins : bool
            Whether its compilation begins or has ended.
        """
        with self._lock:
            self._kernel = kernel.rpartition(".")[2].rpartition(":")[2].lstrip("_")
            if begins and self._since is None:
                self._since = time.monotonic()
                if self._watch is None:
                    self._watch = threading.Thread(target=self._run, name="rankwise-compile-progress", daemon=True)
                    self._watch.start()
            elif not begins and not compile_log.being_compiled() and self._since is not None:
                self._spent += time.monotonic() - self._since
                self._since = None
                self._clear()

    def _run(self) -> None:
        """Show what happens until the compiler has been idle for a while."""
        idle = 0
        while True:
            time.sleep(_REDRAWN_EVERY)
            with self._lock:
                if self._since is None:
                    idle += 1
                    if idle == 5:
                        self._watch = None
                        return
                elif _compiler_is_idle():  # an error or Ctrl-C ended the compilation without a word
                    compile_log.abandon()
                    self._since, self._drawn = None, ""  # the line is no longer the last one on the terminal
                    self._clear()
                else:
                    idle = 0
                    if self._spent + time.monotonic() - self._since > _PATIENCE:
                        self._show()

    def _show(self) -> None:
        done, total = progress_of(announced)
        how_far = f"{done} of about {total}" if total else f"{done} so far"
        if not self._logged:
            self._logged = True
            logger.info(
                "compiling kernels (%s), once on this machine; the command 'rankwise warm' does it beforehand", how_far
            )
        if _progress.remark(f"compiling {how_far}"):
            self._remarked = True
        elif _progress.on_terminal():
            text = f"rankwise: compiling kernels, {how_far}: {self._kernel} (once on this machine)"
            if text != self._drawn:
                sys.stderr.write(_ERASED + text[: shutil.get_terminal_size().columns - 1])
                sys.stderr.flush()
            self._drawn = text

    def _clear(self) -> None:
        if self._drawn:
            sys.stderr.write(_ERASED)
            sys.stderr.flush()
        if self._remarked:
            _progress.remark("")
        self._drawn, self._remarked = "", False


def progress_of(calls: Iterable[str]) -> tuple[int, int]:
    """How many kernels were compiled in this process, and how many will be.

    Parameters
    ----------
    calls : iterable of str
        What runs, as :func:`~rankwise._kernels.parallel.announce_kernels` takes it.

    Returns
    -------
    done : int
        The number of kernels that were compiled; only those that the calls need, if any of the calls is known.
    total : int
        The same with those that were not loaded yet; 0 if none of the calls is known.
    """
    needed = count_needed("first calls", calls)
    seen = Counter(origin.kernel for origin in compile_log.record)
    compiled = Counter(origin.kernel for origin in compile_log.record if origin.source == "compiler")
    if not needed:
        return compiled.total(), 0
    done = (needed & compiled).total()
    return done, done + (needed - seen).total()


def _compiler_is_idle() -> bool:
    """Whether no thread holds numba's lock, under which everything is compiled."""
    from numba.core.compiler_lock import global_compiler_lock

    lock = global_compiler_lock._lock
    if not lock.acquire(blocking=False):
        return False
    lock.release()
    return True


display = CompileProgress()
compile_log.listeners.append(display)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=display.__init__)  # type: ignore[misc]  # a lock may be held by a lost thread
