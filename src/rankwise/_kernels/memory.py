"""The memory that this process may still take: what the system has free, and what control groups and limits allow."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from rankwise._kernels.parallel import control_groups

# What the interpreter, the libraries and compiled code take, whatever the data.
PROGRAMS = 200 << 20
# Bytes from which on arrays go back to the system when they are freed, and the number of that setting of glibc.
_RETURNED, _M_MMAP_THRESHOLD = 1 << 20, -3


def available_memory() -> int | None:
    """The bytes that can be allocated without swapping, or None where nobody says.

    Returns
    -------
    int or None
        The least of what the system has available, what the control groups of this process leave (a container has
        one), and what ``ulimit -v`` leaves.
    """
    return min((max(0, one) for one in (*_of_system(), *_of_groups(), *_of_process())), default=None)


def _of_system() -> Iterator[int]:
    """What the system has available."""
    with suppress(OSError, KeyError, ValueError), open("/proc/meminfo", encoding="ascii") as lines:
        figures = dict([line.split(":", 1) for line in lines])
        yield int(figures["MemAvailable"].split()[0]) * 1024


def _of_groups() -> Iterator[int]:
    """What each control group leaves."""
    with suppress(OSError, UnicodeDecodeError):
        yield from group_memory(Path("/sys/fs/cgroup"), Path("/proc/self/cgroup").read_text())


def group_memory(root: Path, groups: str) -> Iterator[int]:
    """What a control group, and those above it, leave of their limits; pages of files that are only kept count as free.

    Parameters
    ----------
    root : Path
        Where control groups are mounted.
    groups : str
        The text of ``/proc/self/cgroup``.

    Yields
    ------
    int
        The bytes of a group that has a limit.
    """
    for folder in control_groups(root, groups, "memory"):
        for limit, usage, prefix in (
            ("memory.max", "memory.current", ""),
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_"),
        ):
            with suppress(OSError, ValueError):  # "max" is no limit
                allowed, used = int((folder / limit).read_text()), int((folder / usage).read_text())
                words = (folder / "memory.stat").read_text().split()
                kept = dict(zip(words[::2], words[1::2], strict=False))
                yield allowed - used + sum(int(kept.get(f"{prefix}{name}_file", 0)) for name in ("active", "inactive"))


def _of_process() -> Iterator[int]:
    """What the limit of addresses of this process leaves."""
    with suppress(ImportError, OSError, ValueError):  # not on Windows
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit != resource.RLIM_INFINITY:
            yield limit - int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def return_freed_memory() -> None:
    """Give freed arrays back to the system at once, in this process from now on.

    glibc otherwise keeps arrays of up to 32 MB for later ones of each thread, which can double what a process holds.
    """
    with suppress(OSError, AttributeError):  # another libc
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _RETURNED)
