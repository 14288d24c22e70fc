"""A run of online learning from the command line: blocks of a source, a live line, checkpoints, and a clean stop."""

import copy
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rankwise._progress import on_terminal
from rankwise.data.queries import Queries
from rankwise.rankers.online.learner import OnlineLearner

if TYPE_CHECKING:
    from rich.progress import Progress

# Documents a block: the live line and Ctrl-C get their turn after each, and a slow pipe is not waited for too long.
_ROWS = 1 << 14

Source = Callable[[Callable[[int], object]], Iterator[Queries]]


def judged_blocks(
    data: str | os.PathLike[str], epochs: int, skip: int, n_features: int | None, options: dict[str, Any]
) -> Source:
    """The lists of a source in blocks, ``epochs`` times, without the first ``skip``; a text is read block by block.

    What comes back is called with a function that is told how many bytes were read.
    """

    def blocks(on_read: Callable[[int], object]) -> Iterator[Queries]:
        left = skip
        for _ in range(epochs):
            for block in _once(data, n_features, options, on_read):
                if left < len(block):
                    yield block[left:] if left else block
                left = max(0, left - len(block))

    return blocks


def _once(
    data: str | os.PathLike[str], n_features: int | None, options: dict[str, Any], on_read: Callable[[int], object]
) -> Iterator[Queries]:
    from rankwise._kernels.drive import query_chunks
    from rankwise.cli import reading
    from rankwise.data.anyfile import kind_of
    from rankwise.data.letor.read import iter_letor
    from rankwise.data.tabular.frames import is_table

    path = Path(data)
    reading.refuse_what_cannot_be(path)
    if kind_of(path) == "text" and not is_table(path) and not reading.looks_like_csv(path):
        how = {name: value for name, value in options.items() if name not in reading.OF_TABLES}
        yield from iter_letor(data, rows=_ROWS, n_features=n_features, returning="new", on_read=on_read, **how)
        return
    queries = reading.read_lists(path, options)
    size = os.path.getsize(data)
    for first, last in query_chunks(queries.start, _ROWS):
        yield queries[first:last]
        on_read(size * (last - first) // len(queries))


class OnlineRun:
    """A ranker that learns from blocks; ``model`` is at any moment what it was after a whole block.

    Parameters
    ----------
    model : an online ranker, fresh or one whose run goes on
    target : where it is saved
    every : save after every so many rounds, exactly then
    """

    def __init__(self, model: OnlineLearner, target: Path, every: int | None = None) -> None:
        self.model = model
        self.target = target
        self.learned = 0
        self._every = every

    @property
    def rounds(self) -> int:
        """Rounds played, those of the resumed run included."""
        return self.model.ledger_.rounds if hasattr(self.model, "ledger_") else 0

    def over(self, source: Source, size: int) -> None:
        """Learn from all blocks, with a live line; ``size``: bytes that will be read, 0 if nobody knows."""
        with _LiveLine(size) as line:
            for block in source(line.read):
                for part in self._parts(block):
                    after = copy.copy(self.model)  # an interrupted block leaves self.model as it was
                    self.model = after.partial_fit(part)
                    self.learned += len(part)
                    line.show(self.model)
                    if self._every is not None and self.rounds % self._every == 0:
                        self.save()

    def _parts(self, block: Queries) -> Iterable[Queries]:
        """The block, cut where a checkpoint is due."""
        first = 0
        while first < len(block):
            due = len(block) if self._every is None else self._every - self.rounds % self._every
            yield block if due >= len(block) and not first else block[first : first + due]
            first += due

    def save(self) -> None:
        """Write the model beside its target and rename it."""
        self.model.save(self.target)

    def stopped(self, skipped: int) -> str:
        """Save what was learned, and say how to go on."""
        if not self.learned:
            return "stopped before the first lists were learned from; no model was written"
        self.save()
        return (
            f"{self.learned:,} lists were learned from; the model after {self.rounds:,} rounds is in {self.target}: "
            f"go on with --resume {self.target} --skip {skipped + self.learned}"
        )


class _LiveLine:
    """Rounds, mistakes and the running measure, on a terminal only, gone at the end."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._bar: Progress | None = None

    def __enter__(self) -> "_LiveLine":
        if on_terminal():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, SpinnerColumn, TimeElapsedColumn, TimeRemainingColumn

            known = (BarColumn(bar_width=20), TimeRemainingColumn()) if self._size else (TimeElapsedColumn(),)
            columns = (SpinnerColumn(), "{task.description}", *known)
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task("waiting for lists", total=self._size or None)
        return self

    def read(self, n_bytes: int) -> None:
        """So many bytes more were read."""
        if self._bar is not None:
            self._bar.advance(self._task, n_bytes)

    def show(self, model: OnlineLearner) -> None:
        """The account of the run so far."""
        if self._bar is not None:
            ledger = model.ledger_
            told = f"{ledger.rounds:,} rounds  {ledger.mistakes:,} mistakes  {ledger.config.measure.title} "
            self._bar.update(self._task, description=f"{told}{ledger.mean:.4f}")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
