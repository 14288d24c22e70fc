"""Progress bars for long work.

A bar is drawn on standard error, only where this is a terminal, and it vanishes when the work ends or is interrupted.
Elsewhere nothing is drawn and nothing is imported. :class:`progress` is the bar, :func:`track` wraps an iteration.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Sized
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

Item = TypeVar("Item")

# Seconds of progress that the remaining time is estimated from: rich's own 30 see at most one step of a long run.
_REMEMBERED = 600.0


def on_terminal() -> bool:
    """Tell whether standard error is a terminal that can redraw a line."""
    stream = sys.stderr
    try:
        return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"
    except ValueError:  # a closed stream
        return False


class progress:  # noqa: N801 - used as a verb: with progress("reading", total) as bar
    """A bar that shows how much of ``total`` is done and how long the rest may take.

    Parameters
    ----------
    what : str
        What is being done, in a word or two.
    total : float, default=None
        How much there is to do; None if this is unknown, and then only the elapsed time is shown.
    enabled : bool, default=None
        False draws nothing anywhere; otherwise the bar is drawn where standard error is a terminal.

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
        # rich is imported only where a bar is drawn
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
        """Count ``amount`` more as done; any thread may call this.

        Parameters
        ----------
        amount : float, default=1
            How much was done, in the unit of ``total``.
        """
        if self._bar is not None:
            self._bar.advance(self._task, amount)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()  # clears the line and shows the cursor again, whatever ended the work
            self._bar = None


def track(items: Iterable[Item], what: str, total: float | None = None, enabled: bool | None = None) -> Iterator[Item]:
    """Iterate over the items with a bar.

    Parameters
    ----------
    items : iterable
        The items.
    what : str
        What is being done, in a word or two.
    total : float, default=None
        The number of items; ``len(items)`` where it is known.
    enabled : bool, default=None
        As for :class:`progress`.

    Yields
    ------
    object
        The items, one by one.
    """
    if total is None and isinstance(items, Sized):
        total = len(items)
    with progress(what, total, enabled=enabled) as bar:
        for item in items:
            yield item
            bar.advance(1)
