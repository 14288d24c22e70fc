"""Where bytes come from: a path, ``-`` for standard input, or a binary file object; gzip is recognised by itself.

Whatever goes wrong on the way (no such file, a folder, a file cut off in the middle of its gzip data) is one sentence
that names the source.
"""

import gzip
import mmap
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import FileFormatError, RankwiseError
from rankwise._paths import path_of
from rankwise.data.plain_text import MARK, refuse_wide

BLOCK = 1 << 20  # bytes asked for at a time


class Text:
    """A whole text as an array of bytes, mapped from its file where that is possible."""

    def __init__(self, name: str, data: NDArray[np.uint8], mapping: mmap.mmap | None = None) -> None:
        self.name = name
        self.data = data
        self._mapping = mapping

    def release(self, begin: int, end: int) -> None:
        """Bytes ``begin`` to ``end`` have been read: what their mapping holds of memory can go to others.

        They can still be read, from the file again. This costs no more than giving up the mapping as a whole.
        """
        begin += -begin % mmap.PAGESIZE
        end -= end % mmap.PAGESIZE
        if self._mapping is not None and hasattr(mmap, "MADV_DONTNEED") and begin < end:
            self._mapping.madvise(mmap.MADV_DONTNEED, begin, end - begin)


class ByteStream:
    """Bytes one block after another, unpacked if they were gzipped."""

    def __init__(self, name: str, file: IO[bytes], on_read: Callable[[int], object] | None = None) -> None:
        self.name = name
        packed = _Rejoined(name, file, on_read)
        self._read: Callable[[int], bytes] = packed.read
        if packed.peek(len(GZIP)) == GZIP:
            readable: Any = packed  # nothing but its read is needed
            self._read = gzip.GzipFile(fileobj=readable).read1

    def read(self, size: int = BLOCK) -> bytes:
        """At most ``size`` bytes, as soon as there are any; nothing at the end."""
        try:
            return self._read(size)
        except EOFError as error:
            raise FileFormatError(f"{self.name} is cut off: its gzip data ends before its end mark") from error
        except (zlib.error, gzip.BadGzipFile) as error:
            raise FileFormatError(f"{self.name} is damaged: its gzip data cannot be unpacked ({error})") from error


class _Rejoined:
    """A file whose first bytes were looked at and are handed out again; it may be one that cannot seek."""

    def __init__(self, name: str, file: IO[bytes], on_read: Callable[[int], object] | None) -> None:
        self._name = name
        # read1 gives what a pipe holds, read would wait until the block is full
        self._read: Callable[[int], Any] = getattr(file, "read1", file.read)
        self._on_read = on_read
        self._ahead = b""

    def peek(self, size: int) -> bytes:
        while len(self._ahead) < size and (block := self._next(BLOCK)):
            self._ahead += block
        return self._ahead[:size]

    def read(self, size: int) -> bytes:
        if self._ahead:
            block, self._ahead = self._ahead[:size], self._ahead[size:]
            return block
        return self._next(size)

    def _next(self, size: int) -> bytes:
        try:
            block = self._read(size)
        except (OSError, ValueError) as error:  # ValueError: it is closed
            raise RankwiseError(f"{self._name} cannot be read: {getattr(error, 'strerror', None) or error}") from error
        if not isinstance(block, bytes):
            raise RankwiseError(f"{self._name} gives {type(block).__name__}, expected bytes: open it in binary mode")
        if self._on_read is not None:
            self._on_read(len(block))
        return block


def name_of(source: Any) -> str:
    """How sentences call a source."""
    if hasattr(source, "read"):
        name = getattr(source, "name", None)
        return name if isinstance(name, str) else "the stream"
    if not isinstance(source, (str, bytes, os.PathLike)):
        raise RankwiseError(f"a path, '-' or a binary file object was expected, found {source!r:.60}")
    name = path_of(source)
    return STANDARD_INPUT if name == "-" else name


@contextmanager
def open_stream(source: Any, on_read: Callable[[int], object] | None = None) -> Iterator[ByteStream]:
    """The source as a :class:`ByteStream`; ``on_read`` is told how many of its bytes, still packed, were taken."""
    name = name_of(source)
    if hasattr(source, "read"):
        yield ByteStream(name, source, on_read)
    elif name == STANDARD_INPUT:
        stdin: Any = sys.stdin  # some programs put a stream without a buffer there
        yield ByteStream(name, getattr(stdin, "buffer", stdin), on_read)
    else:
        with open_file(name) as file:
            yield ByteStream(name, file, on_read)


def read_text(source: Any) -> Text:
    """The whole source: mapped if it is a plain file, else unpacked into memory."""
    name = name_of(source)
    if not hasattr(source, "read") and name != STANDARD_INPUT and os.path.isfile(name):
        # some files, of the system as a rule, cannot be mapped: they are read as a stream
        with open_file(name) as file, suppress(OSError, ValueError):
            if file.peek(len(GZIP))[: len(GZIP)] != GZIP:
                mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                return Text(name, np.frombuffer(mapping, dtype=np.uint8), mapping)
    text = bytearray()
    with open_stream(source) as stream:
        while block := stream.read():
            text += block
    data = np.frombuffer(text, dtype=np.uint8)
    data.flags.writeable = False  # as a mapping is: compiled code is made for one of the two
    return Text(name, data)


def open_file(name: str) -> Any:
    """The file, open for reading bytes."""
    try:
        return open(name, "rb")
    except FileNotFoundError as error:
        raise RankwiseError(f"{name} cannot be read: there is no such file") from error
    except OSError as error:
        raise RankwiseError(f"{name} cannot be read: {error.strerror or error}") from error


# ------------------------------------------------------------------------------------------------------------- peeked
# A source of bytes whose beginning was looked at: what it is, LETOR text or CSV, is decided by what it holds.


HEAD = 1 << 16  # bytes that are looked at
DELIMITERS = ",;\t|"

_LETOR_LINE = re.compile(rb"\s*\S+\s+(qid:\S|\d+:\S)")


class Peeked:
    """An open source that can be read once, from its beginning, and whose first bytes are ``head``; gzip is unpacked.

    It has ``read`` and ``name``, and so is a binary file to every reader of the house.
    """

    def __init__(self, stream: ByteStream) -> None:
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


STANDARD_INPUT = "standard input"
GZIP = b"\x1f\x8b"
