"""A source of bytes whose beginning was looked at: what it is, LETOR text or CSV, is decided by what it holds."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

from rankwise._errors import FileFormatError
from rankwise.data.plain_text import MARK, refuse_wide
from rankwise.data.sources import Stream, open_stream

HEAD = 1 << 16  # bytes that are looked at
DELIMITERS = ",;\t|"

_LETOR_LINE = re.compile(rb"\s*\S+\s+(qid:\S|\d+:\S)")


class Peeked:
    """An open source that can be read once, from its beginning, and whose first bytes are ``head``; gzip is unpacked.

    It has ``read`` and ``name``, and so is a binary file to every reader of the house.
    """

    def __init__(self, stream: Stream) -> None:
        self.name = stream.name
        self._stream = stream
        head = bytearray()
        while len(head) < HEAD and (block := stream.read()):
            head += block
        self.head = bytes(head)
        self._ahead = self.head

    def read(self, size: int) -> bytes:
        """At most ``size`` bytes, nothing at the end."""
        if self._ahead:
            block, self._ahead = self._ahead[:size], self._ahead[size:]
            return block
        return self._stream.read(size)

    @property
    def kind(self) -> Literal["letor", "csv"]:
        """What the first line looks like: ``label qid:id feature:value``, or names with something between them."""
        lines = self.head.removeprefix(MARK).splitlines()
        first = next((line for line in lines if line.strip() and not line.startswith(b"#")), b"")
        if _LETOR_LINE.match(first) or not any(mark.encode() in first for mark in DELIMITERS):
            return "letor"
        return "csv"


@contextmanager
def peeked(source: Any, on_read: Callable[[int], object] | None = None) -> Iterator[Peeked]:
    """Open a path, ``-`` or a binary file; ``on_read`` is told how many bytes, still packed, were taken.

    What is no text at all is refused by name.
    """
    with open_stream(source, on_read) as stream:
        found = Peeked(stream)
        if found.head[:4] == b"PK\x03\x04":
            raise FileFormatError(
                f"{found.name} is a zipped file, as an Excel workbook is: save the sheet as CSV, or unpack it"
            )
        refuse_wide(found.head, found.name)
        if not found.head.strip():
            raise FileFormatError(f"{found.name} is empty: expected judged lists")
        yield found
