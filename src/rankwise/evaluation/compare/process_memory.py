"""How much the memory of this process grows while something runs, looked at a hundred times a second."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

_STATM = Path("/proc/self/statm")
_EVERY = 0.01  # seconds


class Growth:
    """The largest size of the process since this began, above its size then."""

    def __init__(self, size: int | None) -> None:
        self._first = size
        self._most = size

    def see(self, size: int | None) -> None:
        """The process has this size now."""
        if size is not None and self._most is not None:
            self._most = max(self._most, size)

    @property
    def bytes(self) -> int | None:
        """The growth; None where the system does not say how large a process is."""
        return None if self._first is None or self._most is None else self._most - self._first


class MemoryWatch:
    """A thread that looks at the size of the process while the block lasts; what is shorter than a look is not seen.

    Examples
    --------
    >>> with MemoryWatch() as watch, watch.growth() as growth:
    ...     block = bytearray(1 << 24)
    >>> growth.bytes is None or growth.bytes >= 0
    True
    """

    def __init__(self) -> None:
        self._running: list[Growth] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="rankwise-memory", daemon=True)

    def __enter__(self) -> "MemoryWatch":
        if resident() is not None:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    @contextmanager
    def growth(self) -> Iterator[Growth]:
        """The growth during the block, that of whatever else runs at the same time included."""
        own = Growth(resident())
        self._running.append(own)
        try:
            yield own
        finally:
            self._running.remove(own)
            own.see(resident())

    def _look(self) -> None:
        while not self._over.wait(_EVERY):
            size = resident()
            for growth in tuple(self._running):
                growth.see(size)


def resident() -> int | None:
    """Bytes of this process that are in memory; None where the system does not say."""
    try:
        return int(_STATM.read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError, AttributeError):
        return None
