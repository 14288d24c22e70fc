"""Where the compiled code of this process came from: the cache on the disk, or the compiler.

The caches of kernels report here what they load and what has to be compiled. ``rankwise doctor`` prints the record, and
listeners show a user who waits what is being compiled. numba compiles under one lock, so compilations are nested
but never interleaved; a kernel that is compiled because another one calls it is reported as well.
"""

import time
from collections.abc import Callable
from typing import NamedTuple


class Origin(NamedTuple):
    """Where the machine code of one kernel and signature came from.

    Attributes
    ----------
    kernel : str
        Module and name of the kernel.
    signature : str
        The types of its arguments.
    source : str
        ``"pack"``, ``"cache"`` or ``"compiler"``.
    reason : str
        Why it was not loaded from a better source; empty if it was.
    seconds : float
        Processor time of the compilation, with what it called that had to be compiled; 0 for loaded code.
    """

    kernel: str
    signature: str
    source: str
    reason: str
    seconds: float


record: list[Origin] = []
listeners: list[Callable[[str, bool], None]] = []
_open: list[tuple[str, str, str, float]] = []


def record_load(kernel: str, signature: str, source: str, reason: str = "") -> None:
    """Machine code was loaded from the pack or from the cache."""
    record.append(Origin(kernel, signature, source, reason, 0.0))


def compilation_begins(kernel: str, signature: str, reason: str) -> None:
    """The compiler starts on a kernel; listeners are called with its name and True."""
    _open.append((kernel, signature, reason, time.process_time()))
    for listener in listeners:
        listener(kernel, True)


def compilation_ended(kernel: str, signature: str) -> None:
    """The compiler has finished a kernel; listeners are called with its name and False."""
    while _open:  # what failed to compile was left open above it
        name, types, reason, began = _open.pop()
        if (name, types) == (kernel, signature):
            record.append(Origin(kernel, signature, "compiler", reason, time.process_time() - began))
            break
    for listener in listeners:
        listener(kernel, False)


def being_compiled() -> list[tuple[str, str]]:
    """Kernels and signatures that the compiler is busy with: the one that was asked for, and what it needs."""
    return [(kernel, signature) for kernel, signature, _, _ in _open]


def abandon() -> None:
    """The compiler has stopped without an end: an error or Ctrl-C."""
    _open.clear()
