"""``--memory``: which files are larger than it, and data sets in parts whose passes keep to it."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankwise.cli import reading
from rankwise.errors import DataError

if TYPE_CHECKING:
    from rankwise.queries.parts.parts import Parts
    from rankwise.rankers._base import Ranker


@dataclass(frozen=True)
class Budget:
    """The memory that a command may use for data.

    Attributes
    ----------
    most : int or None
        Bytes, beside what the programs take; None where nobody knows what is free.
    said : bool
        Whether the user said so.
    executor : str
        What computes passes over parts.
    workers : int or None
        The number of threads or processes, where the user chose it.
    """

    most: int | None
    said: bool
    executor: str
    workers: int | None

    @classmethod
    def of(cls, memory: str | None, executor: str | None, workers: int | None) -> "Budget":
        """The budget that ``--memory`` says, or what is free."""
        from rankwise._kernels.memory import PROGRAMS, available_memory
        from rankwise.queries.checks import as_bytes

        whole = available_memory() if memory is None else as_bytes(memory, "--memory", 1)
        # a small part is left for data however little there is
        most = None if whole is None else max(whole - PROGRAMS, whole // 4)
        return cls(most, memory is not None, executor or "threads", workers)

    def exceeded_by(self, data: Path, reads: dict[str, Any], ranker: "Ranker") -> str | None:
        """What a message says of a file that does not fit; None for one that does, and for parts."""
        from rankwise.io.memory_needed import exceeds, memory_needed

        if self.most is None or (not self.said and not ranker.runs_on_parts):
            return None
        needed = memory_needed(data, reading.with_defaults(reads, kinds=True))
        if needed is None or needed <= self.most:
            return None
        why = exceeds(needed, self.most)
        if not ranker.runs_on_parts:
            raise DataError(f"{data} {why}, and {ranker.name} needs all documents in memory: choose another ranker")
        return why

    def open(self, data: Path) -> "Parts":
        """A data set in parts, with passes that keep to what the user said."""
        from rankwise.features.converted import open_parts

        return self._within(open_parts(data))

    def convert(self, data: Path, reads: dict[str, Any], why: str, **how: Any) -> "Parts":
        """The parts of a file that does not fit."""
        from rankwise._kernels.memory import return_freed_memory
        from rankwise.features.converted import open_converted

        assert self.most is not None
        return_freed_memory()
        given = reading.with_defaults(reads, kinds=True)
        return self._within(open_converted(data, given, self.most, why, **how), always=True)

    def _within(self, parts: "Parts", always: bool = False) -> "Parts":
        from rankwise._kernels.memory import return_freed_memory
        from rankwise.features.converted import within

        if self.most is None or not (self.said or always):
            return parts.on(self.executor, self.workers)
        return_freed_memory()
        return within(parts, self.most, self.executor, self.workers)
