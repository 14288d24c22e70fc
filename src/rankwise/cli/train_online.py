"""The online half of ``rankwise train``: learn from a stream, query after query, in bounded memory.

:func:`train_online` prepares the ranker, new or resumed, and the source. :class:`OnlineRun` feeds the ranker blocks of
queries, shows a live line on a terminal, writes checkpoints, and saves the ranker when the run ends or is interrupted.
A run that is resumed ends with the same bits as a run that was never stopped.
"""

import copy
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rankwise._progress import displays, on_terminal, report_progress
from rankwise.cli import reading, wording
from rankwise.errors import DataError, FileFormatError, RankwiseError

if TYPE_CHECKING:
    from rich.progress import Progress

    from rankwise.queries.queries import Queries
    from rankwise.rankers.online.learner import OnlineLearner


def train_online(
    data: Path,
    model: "OnlineLearner",
    target: Path,
    epochs: int,
    skip: int,
    features: int | None,
    checkpoint: int | None,
    as_json: bool,
    reads: dict[str, Any],
) -> None:
    """Let ``model`` learn from all queries of a source, save it, and print its account.

    Parameters
    ----------
    data : Path
        The source: a file, or ``-`` for standard input.
    model : OnlineLearner
        A new ranker, or the ranker of a run to resume.
    target : Path
        Where the ranker is saved.
    epochs : int
        Passes over the source; more than one needs a file.
    skip : int
        Queries at the beginning that are passed over.
    features : int or None
        The number of features of a text; None takes that of the model, or of the first queries.
    checkpoint : int or None
        Save after every so many rounds, too.
    as_json : bool
        Print JSON instead of a table.
    reads : dict
        Options for reading the source.
    """
    is_stdin = os.fspath(data) == "-"
    name = "standard input" if is_stdin else os.fspath(data)
    if epochs > 1 and (is_stdin or (data.exists() and not data.is_file())):
        raise RankwiseError(f"--epochs {epochs} requires a file, since {name} can be read only once")
    run = OnlineRun(model, target, checkpoint)
    width = getattr(model, "n_features_in_", features)
    try:
        with nullcontext() if as_json else report_progress(f"learning online from {name}"):
            run.learn_from(
                lambda on_read: blocks(data, epochs, skip, width, reads, on_read),
                epochs * os.path.getsize(data) if data.is_file() else 0,
            )
    except KeyboardInterrupt:
        print(f"rankwise: {run.save_interrupted(skip)}", file=sys.stderr)
        raise
    if not run.learned:
        what = f"nothing after the first {skip:,} queries" if skip else "no judged queries"
        raise FileFormatError(f"{name} has {what}")
    run.save()
    _show(run.model, target, as_json)


def load_run(path: Path, given: list[str]) -> "OnlineLearner":
    """Load the ranker of a run to resume, whose settings are fixed: options in ``given`` raise an error."""
    from rankwise._load_saved import load
    from rankwise.rankers.online.learner import OnlineLearner

    if given:
        raise RankwiseError(f"--resume uses the settings of the saved run: leave out --{given[0]}")
    model = load(path)
    if not isinstance(model, OnlineLearner):
        raise DataError(f"--resume must be a saved online ranker, got {path} with a {type(model).__name__}")
    return model


def blocks(
    data: Path, epochs: int, skip: int, n_features: int | None, reads: dict[str, Any], on_read: reading.OnRead
) -> Iterator["Queries"]:
    """Yield the queries of a source in blocks, ``epochs`` times, without the first ``skip`` queries."""
    left = skip
    for _ in range(epochs):
        for block in _once(data, n_features, reads, on_read):
            if left < len(block):
                yield block[left:] if left else block
            left = max(0, left - len(block))


def _once(data: Path, n_features: int | None, reads: dict[str, Any], on_read: reading.OnRead) -> Iterator["Queries"]:
    """Yield the blocks of one pass; a LETOR text is read as it comes, other files are opened as a whole."""
    from rankwise.io.any_file import kind_of
    from rankwise.io.letor.stream import iter_letor

    reading.refuse_folders(data)
    if kind_of(data) == "text":
        how = reading.of_letor(data, reads)
        yield from iter_letor(data, rows=reading.ROWS, n_features=n_features, returning="new", on_read=on_read, **how)
        return
    yield from reading.iter_blocks(reading.read_queries(data, reads), data, on_read)


class OnlineRun:
    """A run of an online ranker; ``model`` is always the ranker after a whole block.

    Parameters
    ----------
    model : OnlineLearner
        A new ranker, or the ranker of a run to resume.
    target : Path
        Where the ranker is saved.
    every : int, default=None
        Save after every so many rounds, exactly then; None saves at the end only.

    Attributes
    ----------
    learned : int
        Queries that this run has learned from.
    """

    def __init__(self, model: "OnlineLearner", target: Path, every: int | None = None) -> None:
        self.model = model
        self.target = target
        self.learned = 0
        self._every = every

    @property
    def rounds(self) -> int:
        """Rounds of the ranker, those of a resumed run included."""
        return self.model.ledger_.rounds if hasattr(self.model, "ledger_") else 0

    def learn_from(self, source: Callable[[reading.OnRead], Iterator["Queries"]], size: int) -> None:
        """Learn from all blocks with a live line; ``size`` is the number of bytes to read, 0 if it is unknown."""
        with _LiveLine(size) as line:
            for block in source(line.read):
                for part in self._parts(block):
                    after = copy.copy(self.model)  # an interrupted block leaves self.model as it was
                    self.model = after.partial_fit(part)
                    self.learned += len(part)
                    line.show(self.model)
                    if self._every is not None and self.rounds % self._every == 0:
                        self.save()

    def _parts(self, block: "Queries") -> Iterable["Queries"]:
        """Cut a block where a checkpoint is due."""
        first = 0
        while first < len(block):
            due = len(block) if self._every is None else self._every - self.rounds % self._every
            yield block if due >= len(block) and not first else block[first : first + due]
            first += due

    def save(self) -> None:
        """Write the ranker to its file."""
        self.model.save(self.target)

    def save_interrupted(self, skipped: int) -> str:
        """Save the ranker after an interruption, and return the message that says how to continue."""
        if not self.learned:
            return "stopped before anything was learned; no model was written"
        self.save()
        return (
            f"learned from {self.learned:,} queries; the model after {self.rounds:,} rounds is in {self.target}: "
            f"resume with --resume {self.target} --skip {skipped + self.learned}"
        )


class _LiveLine:
    """One line on a terminal with rounds, mistakes and the running measure; it vanishes at the end."""

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
            self._task = self._bar.add_task("waiting for queries", total=self._size or None)
            displays.append(self)
        return self

    def read(self, n_bytes: int) -> None:
        """Count bytes that were read."""
        if self._bar is not None:
            self._bar.advance(self._task, n_bytes)

    def show(self, model: "OnlineLearner") -> None:
        """Show the account of the run so far."""
        if self._bar is not None:
            ledger = model.ledger_
            account = f"{ledger.rounds:,} rounds  {ledger.mistakes:,} mistakes  {ledger.config.measure.title} "
            self._bar.update(self._task, description=f"{account}{ledger.mean:.4f}")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            displays.remove(self)
            self._bar.stop()
            self._bar = None

    def remark(self, text: str) -> None:
        """Show what the run is waiting for."""
        if self._bar is not None:
            self._bar.update(self._task, description=text or "waiting for queries")


def _show(model: "OnlineLearner", target: Path, as_json: bool) -> None:
    """Print the account of a finished run as a table or as JSON."""
    ledger = model.ledger_
    if as_json:
        document = {
            "model": str(target),
            "ranker": model.name,
            "features": model.n_features_in_,
            "rounds": ledger.rounds,
            "mistakes": ledger.mistakes,
            "measure": ledger.config.measure.title,
            "mean": ledger.mean if math.isfinite(ledger.mean) else None,
            "loss": ledger.loss,
            "radius": ledger.radius,
        }
        print(json.dumps(document))
        return

    console = wording.new_console()
    console.print(ledger.table().rich())
    console.print(f"{model.name} on {model.n_features_in_:,} features: {target}", markup=False, soft_wrap=True)
