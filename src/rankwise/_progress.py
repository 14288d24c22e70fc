"""Progress bars for long work: on a terminal only, on standard error, gone when the work is done or broken off.

Away from a terminal nothing is drawn and nothing is imported.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Sized
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

Item = TypeVar("Item")

# Seconds of progress that the time left is told from: rich's own 30 see a single step of a long run, or none.
_REMEMBERED = 600.0


def on_terminal() -> bool:
    """Whether standard error is a terminal that can redraw a line."""
    stream = sys.stderr
    try:
        return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"
    except ValueError:  # a closed stream
        return False


class progress:  # noqa: N801 - used as a verb: with progress("reading", total) as bar
    """A bar that shows how much of ``total`` is done and how long the rest may take.

    Parameters
    ----------
    what : what is being done, in a word or two
    total : how much there is to do; None when nobody knows, and then only the time passed is shown
    enabled : False draws nothing anywhere; otherwise the bar is drawn where standard error is a terminal

    Examples
    --------
    >>> with progress("counting", total=3) as bar:
    ...     for _ in range(3):
    ...         bar.advance(1)
    """

    __slots__ = ("_bar", "_enabled", "_task", "_total", "_what")

    def __init__(self, what: str, total: float | None = None, enabled: bool | None = None) -> None:
        self._what = what
        self._total = total
        self._enabled = enabled
        self._bar: Bar | None = None

    def __enter__(self) -> "progress":
        if self._enabled is not False and on_terminal():
            from rich.console import Console
            from rich.markup import escape
            from rich.progress import BarColumn, Progress, TaskProgressColumn, TimeElapsedColumn, TimeRemainingColumn

            clock = TimeElapsedColumn() if self._total is None else TimeRemainingColumn()
            self._bar = Progress(
                "{task.description}",
                BarColumn(),
                TaskProgressColumn(),
                clock,
                console=Console(stderr=True),
                transient=True,
                speed_estimate_period=_REMEMBERED,
            )
            self._bar.start()
            self._task = self._bar.add_task(escape(self._what), total=self._total)
        return self

    def advance(self, amount: float = 1) -> None:
        """``amount`` more is done; may be called from any thread."""
        if self._bar is not None:
            self._bar.advance(self._task, amount)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()  # clears the line and shows the cursor again, whatever ended the work
            self._bar = None


def track(items: Iterable[Item], what: str, total: float | None = None, enabled: bool | None = None) -> Iterator[Item]:
    """The items, one by one, with a bar while they are worked on.

    Parameters
    ----------
    items : what to go through
    what, total, enabled : as for :class:`progress`; ``total`` is ``len(items)`` where that is known
    """
    if total is None and isinstance(items, Sized):
        total = len(items)
    with progress(what, total, enabled=enabled) as bar:
        for item in items:
            yield item
            bar.advance(1)
