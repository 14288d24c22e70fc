"""Progress of long work, on standard error or in a notebook.

:class:`progress` is a bar, :func:`track` wraps an iteration. A bar is drawn only where standard error is a terminal, or
in the output of a notebook's cell, and it vanishes when the work ends or is interrupted. Elsewhere nothing is drawn and
nothing is imported, unless :class:`in_lines` is open, as in commands that people run in a container: then a line is
printed every few seconds. :class:`reported` prints a line after some seconds and then one every half minute.
:func:`remark` adds to the innermost bar what it is waiting for.
"""

import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sized
from contextlib import contextmanager
from html import escape
from typing import Any, Protocol, TypeVar

from rankwise._extras import require

Item = TypeVar("Item")

# Seconds of progress that the remaining time is estimated from: rich's own 30 see at most one step of a long run.
_REMEMBERED = 600.0
# Seconds after which rows and bytes per second are shown again.
_RATE_EVERY = 0.5
# Seconds between two lines; and of a long work as a whole, until its first line and between two of them.
_LINE_EVERY = 5.0
_REPORT_AFTER, _REPORT_EVERY = 5.0, 30.0
# The share of the work from which on an estimate of the rest says something.
_TELLING = 0.02
# Seconds after which a bar appears in a notebook, and between two pictures of it: each one is a message to the browser.
_PICTURE_AFTER, _PICTURE_EVERY = 1.0, 0.5


def on_terminal() -> bool:
    """Tell whether standard error is a terminal that can redraw a line."""
    # inside of a bar rich stands before standard error, and its older versions say that they are no terminal
    stream = getattr(sys.stderr, "rich_proxied_file", sys.stderr)
    try:
        return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"
    except ValueError:  # a closed stream
        return False


def in_notebook() -> bool:
    """Tell whether this is the kernel of a notebook, whose cells can show a bar."""
    # whoever runs in a kernel has imported IPython already
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


class Display(Protocol):
    """A display of the progress of one piece of work."""

    def remark(self, text: str) -> None:
        """Show what the work is waiting for; the empty text ends that."""


class _Bar:
    """A bar on a terminal, which vanishes at the end."""

    def __init__(self, what: str, total: float | None) -> None:
        # rich is imported only where a bar is drawn
        from rich.console import Console
        from rich.markup import escape
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TimeElapsedColumn, TimeRemainingColumn

        clock = TimeElapsedColumn() if total is None else TimeRemainingColumn()
        self._escape = escape
        self._what = escape(what)
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
        self._task = self._bar.add_task(self._what, total=total)

    def advance(self, amount: float) -> None:
        self._bar.advance(self._task, amount)

    def remark(self, text: str) -> None:
        self._bar.update(self._task, description=f"{self._what} ({self._escape(text)})" if text else self._what)

    def stop(self, finished: bool) -> None:
        self._bar.stop()  # clears the line and shows the cursor again, whatever ended the work


class _Picture:
    """A bar in the output of a notebook's cell: one output that is replaced, and empty at the end.

    It needs no widgets. Short work shows nothing at all.
    """

    def __init__(self, what: str, total: float | None) -> None:
        self._what, self._total, self._done, self._remark = what, total, 0.0, ""
        self._began = time.monotonic()
        self._next = self._began + _PICTURE_AFTER
        self._handle: Any = None
        self._one_at_a_time = threading.Lock()

    def advance(self, amount: float) -> None:
        with self._one_at_a_time:
            self._done += amount
            if time.monotonic() >= self._next:
                self._show(self._draw())

    def remark(self, text: str) -> None:
        self._remark = text
        self.advance(0)

    def stop(self, finished: bool) -> None:
        if self._handle is not None:
            self._show("")

    def _show(self, html: str) -> None:
        """Put HTML in the place of what is shown."""
        self._next = time.monotonic() + _PICTURE_EVERY
        # plain text beside HTML, for notebooks that are read as text
        content = {"text/html": html, "text/plain": ""}
        if self._handle is None:
            self._handle = require("IPython.display").display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)

    def _draw(self) -> str:
        """The bar, what is done, and how long the rest may take."""
        seconds = time.monotonic() - self._began
        value, rest = "", f"{seconds:.0f} s"
        if self._total:
            share = min(1.0, self._done / self._total)
            left = f", about {seconds / share - seconds:.0f} s left" if share else ""
            value, rest = f' value="{share:.3f}"', f"{share:.0%}, {seconds:.0f} s{left}"
        remark = f" ({escape(self._remark)})" if self._remark else ""
        return f"<div>{escape(self._what)} <progress{value}></progress> {rest}{remark}</div>"


class _Count:
    """The count of what is done so far, printed by others."""

    def __init__(self, what: str, total: float | None) -> None:
        self._what, self._total, self._done, self._remark = what, total, 0.0, ""
        self._began = time.monotonic()

    def advance(self, amount: float) -> None:
        self._done += amount

    def remark(self, text: str) -> None:
        self._remark = text

    def stop(self, finished: bool) -> None:
        pass

    def line(self) -> str:
        """A line with what is done, how long it took, and how long the rest may take."""
        seconds, parts = time.monotonic() - self._began, []
        if self._total is not None:
            parts.append(f"{self._done:,.0f} of {self._total:,.0f} done")
        parts.append(f"{seconds:.0f} s")
        if self._total and self._total * _TELLING <= self._done < self._total:
            parts.append(f"at most about {seconds * (self._total / self._done - 1):.0f} s left")
        return f"{self._what}: {', '.join(parts)}{self._remark and f' ({self._remark})'}"


class _Lines(_Count):
    """A line at the beginning, one every few seconds, and one at the end."""

    def __init__(self, what: str, total: float | None) -> None:
        super().__init__(what, total)
        self._ended = threading.Event()
        _say(f"{what} ..." if total is None else f"{what}: {total:,.0f} to do")
        threading.Thread(target=self._print, name="rankwise-progress", daemon=True).start()

    def stop(self, finished: bool) -> None:
        self._ended.set()
        if finished:
            _say(f"{self._what}: done in {time.monotonic() - self._began:.0f} s")

    def _print(self) -> None:
        while not self._ended.wait(_LINE_EVERY):
            _say(self.line())


def _say(text: str) -> None:
    if sys.stderr is not None and not sys.stderr.closed:
        print(text, file=sys.stderr, flush=True)


displays: list[Display] = []  # what is shown now, the innermost last
_line_scopes: list[type[_Count]] = []


@contextmanager
def in_lines() -> Iterator[None]:
    """Print progress as lines where standard error is no terminal, in this scope.

    Yields
    ------
    None
        Nothing.
    """
    _line_scopes.append(_Lines)
    try:
        yield
    finally:
        _line_scopes.pop()


@contextmanager
def report_progress(what: str) -> Iterator[None]:
    """Print a line after some seconds and then every half minute where standard error is no terminal, in this scope.

    Short work prints nothing. A line names the innermost work under way, with what is done of it and an estimate of
    the rest.

    Parameters
    ----------
    what : str
        What is being done.

    Yields
    ------
    None
        Nothing.
    """
    if on_terminal() or in_notebook():
        yield
        return
    whole, ended = _Count(what, None), threading.Event()

    def report() -> None:
        pause = _REPORT_AFTER
        while not ended.wait(pause):
            pause = _REPORT_EVERY
            inner = [one.line() for one in displays[-1:] if isinstance(one, _Count)]
            _say("; ".join([whole.line(), *inner]))

    _line_scopes.append(_Count)
    threading.Thread(target=report, name="rankwise-progress", daemon=True).start()
    try:
        yield
    finally:
        ended.set()
        _line_scopes.pop()


def remark(text: str) -> bool:
    """Show in the innermost bar what it is waiting for.

    Parameters
    ----------
    text : str
        A few words; the empty text removes them.

    Returns
    -------
    bool
        Whether there is a bar.
    """
    shown = displays[-1:]
    for display in shown:
        display.remark(text)
    return bool(shown)


class progress:  # noqa: N801 - used as a verb: with progress("reading", total) as bar
    """A bar that shows how much of ``total`` is done and how long the rest may take.

    Parameters
    ----------
    what : str
        What is being done, in a word or two.
    total : float, default=None
        How much there is to do; None if this is unknown, and then only the elapsed time is shown.
    enabled : bool, default=None
        False shows nothing anywhere; otherwise the bar is drawn where standard error is a terminal, or in a notebook.

    Examples
    --------
    >>> with progress("counting", total=3) as bar:
    ...     for _ in range(3):
    ...         bar.advance(1)
    """

    __slots__ = ("_display", "_enabled", "_total", "_what")

    def __init__(self, what: str, total: float | None = None, enabled: bool | None = None) -> None:
        self._what = what
        self._total = total
        self._enabled = enabled
        self._display: _Bar | _Picture | _Count | None = None

    def __enter__(self) -> "progress":
        if self._enabled is not False:
            if on_terminal():
                self._display = _Bar(self._what, self._total)
            elif in_notebook():
                self._display = _Picture(self._what, self._total)
            elif _line_scopes:
                self._display = _line_scopes[-1](self._what, self._total)
        if self._display is not None:
            displays.append(self._display)
        return self

    def advance(self, amount: float = 1) -> None:
        """Count ``amount`` more as done; any thread may call this.

        Parameters
        ----------
        amount : float, default=1
            How much was done, in the unit of ``total``.
        """
        if self._display is not None:
            self._display.advance(amount)

    def remark(self, text: str) -> None:
        """Show what the work is waiting for.

        Parameters
        ----------
        text : str
            A few words; the empty text removes them.
        """
        if self._display is not None:
            self._display.remark(text)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if self._display is not None:
            displays.remove(self._display)
            self._display.stop(finished=kind is None)
            self._display = None


class throughput(progress):  # noqa: N801 - as progress
    """A bar over bytes, with the rows and bytes per second.

    Parameters
    ----------
    what : str
        What is being done, in a word or two.
    total : float, default=None
        How many bytes there are; None if this is unknown.
    enabled : bool, default=None
        As for :class:`progress`.

    Examples
    --------
    >>> with throughput("reading", total=2000) as bar:
    ...     bar.advance_rows(10, 2000)
    """

    __slots__ = ("_began", "_bytes", "_rows", "_shown")

    def __enter__(self) -> "throughput":
        self._began = self._shown = time.monotonic()
        self._rows = self._bytes = 0.0
        super().__enter__()
        return self

    def advance_rows(self, rows: float, size: float) -> None:
        """Count more rows and bytes as done.

        Parameters
        ----------
        rows : float
            The number of rows.
        size : float
            The number of bytes.
        """
        self._rows += rows
        self._bytes += size
        self.advance(size)
        now = time.monotonic()
        if now - self._shown >= _RATE_EVERY:
            self._shown, seconds = now, now - self._began
            pace = f"{self._rows / seconds:,.0f} rows/s, " if self._rows else ""
            self.remark(f"{pace}{self._bytes / seconds / 1e6:,.1f} MB/s")


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
