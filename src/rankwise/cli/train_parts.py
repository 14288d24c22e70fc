"""``rankwise train`` on a data set in parts: an estimate of the cost, then passes, which a checkpoint may record."""

import logging
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankwise._errors import RankwiseError
from rankwise.cli.train import BatchRun

if TYPE_CHECKING:
    from rankwise.data.diagnose.findings import Finding
    from rankwise.data.parts.parts import Parts


@dataclass(frozen=True)
class Passes:
    """Who computes passes, and what is recorded of them.

    Attributes
    ----------
    executor : {"threads", "processes"}
        Who computes.
    workers : int or None
        Number of threads or processes.
    memory_limit : str or None
        The largest number of bytes that is kept between passes.
    checkpoint : Path or None
        The folder that records passes.
    lines : bool
        Whether to print a line per pass.
    """

    executor: str
    workers: int | None
    memory_limit: str | None
    checkpoint: Path | None
    lines: bool

    def opened(self, path: Path) -> "Parts":
        """The data set."""
        from rankwise.data.parts.parts import Parts

        return Parts(path, executor=self.executor, workers=self.workers, memory_limit=self.memory_limit)


@dataclass(frozen=True)
class PartsRun(BatchRun):
    """A fit of one ranker on a data set in parts.

    Attributes
    ----------
    passes : Passes
        Who computes.
    """

    passes: Passes

    @property
    def leaks(self) -> "list[Finding]":
        """None are looked for: rankwise inspect does, in a pass of its own."""
        return []

    def _fitting(self) -> dict[str, Any]:
        return {"checkpoint": self.passes.checkpoint}

    def fit(self) -> None:
        """Print what the fit will cost, fit, and save the ranker."""
        train: Any = self.train
        if self.model.runs_on_parts:  # otherwise fit says why not
            print(f"rankwise: {train.estimate(self.model)}", file=sys.stderr)
        if self.passes.lines:
            handler = logging.StreamHandler(sys.stderr)
            handler.setFormatter(logging.Formatter("rankwise: %(message)s"))
            logger = logging.getLogger("rankwise")
            logger.addHandler(handler)
            logger.setLevel(logging.INFO)
        super().fit()


def sets_of(
    data: Path, validation: Path | None, share: float, seed: int, reads: dict[str, Any], passes: Passes
) -> tuple[Any, Any, Any]:
    """Return (train, validation, test): a second data set for model selection, or a share held out for a test."""
    from rankwise.cli import reading
    from rankwise.data.folds import split

    parts = passes.opened(data)
    if not parts.has_labels:
        raise RankwiseError(f"{data} holds no labels, which training needs")
    if validation is not None:
        second = passes.opened(validation) if reading.is_parts(validation) else reading.read_queries(validation, reads)
        return parts, second, None
    if share == 0:
        return parts, None, None
    train, test = split(parts, (1 - share, share), random_state=seed)
    return train, None, test
