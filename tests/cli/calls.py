"""Calls that pretend to compile, for processes that the tests of ``rankwise.cli.compiling`` start."""

import os
import time
from pathlib import Path

from rankwise._kernels.machine import compile_log


def shared(folder, mine, other):
    """Load a kernel, or compile it while the other call comes to the same kernel; a file has a line a compilation."""
    place = Path(folder)
    if (place / "kernel").exists():
        compile_log.record_load("shared", "()", "cache")
        return
    (place / mine).touch()
    compile_log.compilation_begins("shared", "()", "")
    with (place / "log").open("a") as log:
        log.write(f"{mine}\n")
    deadline = time.monotonic() + 60
    while not (place / other).exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    (place / "kernel").touch()
    compile_log.compilation_ended("shared", "()")


def nested(folder):
    """Compile one kernel inside of another."""
    for kernel in ("outer", "inner"):
        compile_log.compilation_begins(kernel, "()", "")
    for kernel in ("inner", "outer"):
        compile_log.compilation_ended(kernel, "()")


def prints(folder):
    """Print, which must not be taken for a message."""
    os.write(1, b'["done", []]\n')
    print("text")
    compile_log.record_load("printed", "()", "pack")


def fails(folder):
    """Raise an error."""
    raise ValueError("of this kind")


def dies(folder):
    """End the process."""
    os._exit(3)
