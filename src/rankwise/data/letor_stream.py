"""A LETOR text of any length as blocks of whole queries, cut where one run of a qid ends and the next begins."""

from collections.abc import Iterator
from typing import Literal

import numpy as np

from rankwise._errors import FileFormatError
from rankwise.data.grouping import Grouping
from rankwise.data.letor_groups import as_written
from rankwise.data.letor_problems import Where
from rankwise.data.letor_table import Table
from rankwise.data.sources import Stream, Text

Returning = Literal["error", "new"]


def iter_blocks(stream: Stream, rows: int, skip_negative: bool) -> Iterator[tuple[Text, int]]:
    """Blocks with at least ``rows`` rows, all but the last, and the number of each one's first line.

    A row whose label begins with a minus does not count if ``skip_negative``. The bytes of a block are overwritten
    by the next one.
    """
    from rankwise._kernels.letor_lines import find_last_run

    held = _Held(stream.name)
    first_line = 1
    # place, rows so far, rows before the last run, first byte of that run, place and length of its qid (-2: none yet)
    state = (0, 0, 0, 0, 0, -2)
    ended = False
    while not ended:
        while not ended and state[2] < rows:
            block = stream.read()
            ended = not block
            whole_lines = held.append(block)
            state = find_last_run(held.text().data, whole_lines, skip_negative, state)
        end = held.filled if ended else state[3]
        text = held.text(end)
        yield text, first_line
        first_line = Where(stream.name, text.data, first_line).line(end)
        held.forget(end)
        place, seen, before, line, at, length = state
        state = (place - end, seen - before, 0, line - end, at - end, length)


class _Held:
    """The text that has been read and not yet been given away, in memory that grows when it must."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._bytes = np.empty(1 << 21, dtype=np.uint8)
        self._whole_lines = 0
        self.filled = 0

    def append(self, block: bytes) -> int:
        """Add a block; returns where the last complete line ends."""
        if self.filled + len(block) > len(self._bytes):
            larger = np.empty(2 * len(self._bytes) + len(block), dtype=np.uint8)
            larger[: self.filled] = self._bytes[: self.filled]
            self._bytes = larger
        self._bytes[self.filled : self.filled + len(block)] = np.frombuffer(block, dtype=np.uint8)
        newline = block.rfind(b"\n")
        if newline >= 0:
            self._whole_lines = self.filled + newline + 1
        self.filled += len(block)
        return self._whole_lines

    def text(self, end: int | None = None) -> Text:
        """The bytes up to ``end``, all that are there by default."""
        data = self._bytes[: self.filled if end is None else end]
        data.flags.writeable = False
        return Text(self._name, data)

    def forget(self, end: int) -> None:
        """Drop the bytes up to ``end`` and move the others to the front."""
        self._bytes[: self.filled - end] = self._bytes[end : self.filled].copy()
        self._whole_lines -= end
        self.filled -= end


def refuse_returning(table: Table, seen: set[str], where: Where) -> None:
    """Add the table's queries to those ``seen``; one that was there already, before another, is refused by name."""
    last = None
    for number, qid in enumerate(table.run_qid):
        if qid != last and qid in seen:
            line = where.line(int(table.run_at[number]))
            raise FileFormatError(
                f"{where.name}, line {line:,}: query {qid} returns after its rows have ended, and a stream needs them "
                "together: read_letor takes rows in any order"
            )
        seen.add(qid)
        last = qid


def runs_as_lists(table: Table) -> Grouping:
    """Every run of rows with one qid is a list of its own, whatever stood before; memory of nothing is needed."""
    qid = as_written(table.run_qid)
    begins = np.concatenate([[True], qid[1:] != qid[:-1]])  # neighbours with one id are a run that was read in pieces
    return Grouping(np.append(table.run_row[begins], len(table.y)).astype(np.int64), None, qid[begins])
