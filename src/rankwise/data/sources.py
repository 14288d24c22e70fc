"""Where bytes come from, and how they are read as text: a path, ``-`` for standard input, or a binary file object.

:func:`read_text` gives a whole source as an array of bytes, mapped from its file where that is possible.
:func:`open_stream` gives a :class:`ByteStream`, which is read block by block and can be looked ahead into;
:func:`peeked` also refuses what is not text. gzip data are recognised by their first bytes and unpacked. Every failure
(no such file, a folder, gzip data that end too early) raises an error that names the source.

Text of other programs is UTF-8. Ids keep bytes that are not UTF-8 (they are written back as they were); names that
people and other programs read must be UTF-8. Numbers are those that every tool reads: Python's ``float`` also accepts
underscores (``1_000``), digits of other scripts and the words ``nan`` and ``infinity``.
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

OnRead = Callable[[int], object] | None

STANDARD_INPUT = "standard input"
GZIP = b"\x1f\x8b"
BLOCK = 1 << 20  # bytes that are requested at a time
HEAD = 1 << 16  # bytes that decide what a text is
DELIMITERS = ",;\t|"
MARK = b"\xef\xbb\xbf"  # the byte order mark of UTF-8, which some editors put before a text

_WIDE = {
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_LETOR_LINE = re.compile(rb"\s*\S+\s+(qid:\S|\d+:\S)")


class Text:
    """A whole text as an array of bytes, mapped from its file where that is possible.

    Parameters
    ----------
    name : str
        How error messages call the source.
    data : ndarray of uint8
        The bytes.
    mapping : mmap.mmap, default=None
        The mapping that ``data`` is a view of, if it is one.
    """

    def __init__(self, name: str, data: NDArray[np.uint8], mapping: mmap.mmap | None = None) -> None:
        self.name = name
        self.data = data
        self._mapping = mapping

    def release(self, begin: int, end: int) -> None:
        """Return the memory of bytes that have been read to the system.

        The bytes can still be read, from the file again. Releasing piece by piece costs no more than releasing the
        mapping as a whole.

        Parameters
        ----------
        begin, end : int
            The range of bytes; only whole pages inside it are released.
        """
        begin += -begin % mmap.PAGESIZE
        end -= end % mmap.PAGESIZE
        if self._mapping is not None and hasattr(mmap, "MADV_DONTNEED") and begin < end:
            self._mapping.madvise(mmap.MADV_DONTNEED, begin, end - begin)


class _Lookahead:
    """A function that reads blocks, whose next bytes can be looked at before they are read; it need not seek."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read
        self._ahead = b""

    def peek(self, size: int) -> bytes:
        while len(self._ahead) < size and (block := self._read(BLOCK)):
            self._ahead += block
        return self._ahead[:size]

    def read(self, size: int) -> bytes:
        if self._ahead:
            block, self._ahead = self._ahead[:size], self._ahead[size:]
            return block
        return self._read(size)


class ByteStream:
    """A source that is read once, block after block, and unpacked if it is gzipped.

    It has ``read`` and ``name``, so every reader of the package accepts it as a binary file.

    Parameters
    ----------
    name : str
        How error messages call the source.
    file : binary file object
        Where the bytes come from.
    on_read : callable, default=None
        Receives the number of bytes, still packed, each time some are read.
    """

    def __init__(self, name: str, file: IO[bytes], on_read: OnRead = None) -> None:
        self.name = name
        # read1 returns what a pipe holds, read would wait until the block is full
        self._source: Callable[[int], Any] = getattr(file, "read1", file.read)
        self._on_read = on_read
        self._bytes = _Lookahead(self._packed)
        if self._bytes.peek(len(GZIP)) == GZIP:
            packed: Any = self._bytes  # gzip uses nothing but its read
            self._unpack = gzip.GzipFile(fileobj=packed).read1
            self._bytes = _Lookahead(self._unpacked)

    def read(self, size: int = BLOCK) -> bytes:
        """Read the next bytes.

        Parameters
        ----------
        size : int, default=BLOCK
            The largest number of bytes.

        Returns
        -------
        block : bytes
            At most ``size`` bytes, as soon as there are any; empty at the end.
        """
        return self._bytes.read(size)

    def peek(self, size: int) -> bytes:
        """Look at the next bytes without reading them.

        Parameters
        ----------
        size : int
            The number of bytes.

        Returns
        -------
        ahead : bytes
            Exactly ``size`` bytes, fewer only where the source ends.
        """
        return self._bytes.peek(size)

    @property
    def head(self) -> bytes:
        """The next 64 KiB, which are not read by looking at them; fewer only where the source ends."""
        return self.peek(HEAD)

    @property
    def kind(self) -> Literal["letor", "csv"]:
        """What the first line looks like: ``label qid:id feature:value``, or names with a delimiter between them."""
        lines = self.head.removeprefix(MARK).splitlines()
        first = next((line for line in lines if line.strip() and not line.startswith(b"#")), b"")
        if _LETOR_LINE.match(first) or not any(mark.encode() in first for mark in DELIMITERS):
            return "letor"
        return "csv"

    def _packed(self, size: int) -> bytes:
        try:
            block = self._source(size)
        except (OSError, ValueError) as error:  # ValueError: the file is closed
            raise RankwiseError(f"{self.name} cannot be read: {getattr(error, 'strerror', None) or error}") from error
        if not isinstance(block, bytes):
            raise RankwiseError(f"{self.name} gives {type(block).__name__}, expected bytes: open it in binary mode")
        if self._on_read is not None:
            self._on_read(len(block))
        return block

    def _unpacked(self, size: int) -> bytes:
        try:
            return self._unpack(size)
        except EOFError as error:
            raise FileFormatError(f"{self.name} is cut off: its gzip data ends before its end mark") from error
        except (zlib.error, gzip.BadGzipFile) as error:
            raise FileFormatError(f"{self.name} is damaged: its gzip data cannot be unpacked ({error})") from error


def name_of(source: Any) -> str:
    """How error messages call a source."""
    if hasattr(source, "read"):
        name = getattr(source, "name", None)
        return name if isinstance(name, str) else "the stream"
    if not isinstance(source, (str, bytes, os.PathLike)):
        raise RankwiseError(f"a path, '-' or a binary file object was expected, found {source!r:.60}")
    name = os.fsdecode(source)
    return STANDARD_INPUT if name == "-" else name


@contextmanager
def open_stream(source: Any, on_read: OnRead = None) -> Iterator[ByteStream]:
    """Open a source for reading block by block.

    Parameters
    ----------
    source : path, ``-`` or binary file object
        What is read. Files that are opened here are closed at the end.
    on_read : callable, default=None
        Receives the number of bytes, still packed, each time some are read.

    Yields
    ------
    stream : ByteStream
        The bytes, unpacked.
    """
    name = name_of(source)
    if hasattr(source, "read"):
        yield ByteStream(name, source, on_read)
    elif name == STANDARD_INPUT:
        stdin: Any = sys.stdin  # some programs replace it by a stream without a buffer
        yield ByteStream(name, getattr(stdin, "buffer", stdin), on_read)
    else:
        with open_file(name) as file:
            yield ByteStream(name, file, on_read)


@contextmanager
def peeked(source: Any, on_read: OnRead = None) -> Iterator[ByteStream]:
    """Open a source that has to be text, such as LETOR lines or CSV.

    Parameters
    ----------
    source : path, ``-`` or binary file object
        What is read.
    on_read : callable, default=None
        Receives the number of bytes, still packed, each time some are read.

    Yields
    ------
    stream : ByteStream
        The text; its ``kind`` says what it looks like.

    Raises
    ------
    FileFormatError
        If the source is a zip file, is written in UTF-16 or UTF-32, or is empty.
    """
    with open_stream(source, on_read) as stream:
        head = stream.head
        if head[:4] == b"PK\x03\x04":
            raise FileFormatError(
                f"{stream.name} is a zip file, as an Excel workbook is: save the sheet as CSV, or unpack it"
            )
        refuse_wide(head, stream.name)
        if not head.strip():
            raise FileFormatError(f"{stream.name} is empty: expected judged queries")
        yield stream


def read_text(source: Any) -> Text:
    """Read a whole source: mapped if it is a plain file, otherwise unpacked into memory.

    Parameters
    ----------
    source : path, ``-`` or binary file object
        What is read.

    Returns
    -------
    text : Text
        The bytes, read-only.
    """
    name = name_of(source)
    if not hasattr(source, "read") and name != STANDARD_INPUT and os.path.isfile(name):
        # some files, usually those of the system, cannot be mapped: they are read as a stream
        with open_file(name) as file, suppress(OSError, ValueError):
            if file.peek(len(GZIP))[: len(GZIP)] != GZIP:
                mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                return Text(name, np.frombuffer(mapping, dtype=np.uint8), mapping)
    text = bytearray()
    with open_stream(source) as stream:
        while block := stream.read():
            text += block
    data = np.frombuffer(text, dtype=np.uint8)
    data.flags.writeable = False  # as a mapping is: kernels are compiled for one of the two
    return Text(name, data)


def open_file(name: str) -> Any:
    """Open a file for reading bytes, or raise an error that names it."""
    try:
        return open(name, "rb")
    except (FileNotFoundError, ValueError) as error:
        path_of(name)  # raises if no file can have this name
        raise RankwiseError(f"{name} cannot be read: there is no such file") from error
    except OSError as error:
        raise RankwiseError(f"{name} cannot be read: {error.strerror or error}") from error


# ------------------------------------------------------------------------------------------------ bytes as text


def refuse_wide(head: bytes, name: str) -> None:
    """Refuse a text that begins with the byte order mark of UTF-16 or UTF-32.

    Parameters
    ----------
    head : bytes
        The first bytes of the text, at least four unless the text is shorter.
    name : str
        How the error message calls the file.

    Raises
    ------
    FileFormatError
        If the text begins with such a mark.
    """
    for mark, encoding in _WIDE.items():
        if head.startswith(mark):
            raise FileFormatError(f"{name} is written in {encoding}: save it as UTF-8")


def without_mark(text: bytes, name: str) -> bytes:
    """Remove the byte order mark of UTF-8; the mark of UTF-16 or UTF-32 raises FileFormatError."""
    refuse_wide(text[:4], name)
    return text.removeprefix(MARK)


def decoded(text: bytes, where: str) -> str:
    """Decode a text that has to be UTF-8.

    Parameters
    ----------
    text : bytes
        The encoded text.
    where : str
        How the error message calls its place, such as "train.csv, line 1".

    Returns
    -------
    text : str
        The decoded text.

    Raises
    ------
    FileFormatError
        If the text is not UTF-8. The message names the byte, and the word around it as Latin-1.

    Examples
    --------
    >>> decoded("größe".encode(), "a.csv, line 1")
    'größe'
    """
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        begin = max((text.rfind(mark, 0, error.start) + 1 for mark in (b",", b";", b"\t", b"|")), default=0)
        word = re.split(rb"[,;\t|\r\n]", text[begin:])[0].decode("latin-1")
        raise FileFormatError(
            f"{where}: byte {error.start + 1:,} is 0x{text[error.start]:02X}, which is not UTF-8: save the file as "
            f"UTF-8 (it looks like Latin-1, in which the word there is {word!r:.40})"
        ) from error


def plain_number(word: str) -> float | None:
    """The number that a word spells.

    Parameters
    ----------
    word : str
        The word, without blanks.

    Returns
    -------
    number : float or None
        None where the word is not a number; infinity where it is too large for float64.

    Examples
    --------
    >>> plain_number("-1.5e3"), plain_number("1_000"), plain_number("nan")
    (-1500.0, None, None)
    """
    return float(word) if _NUMBER.fullmatch(word) else None
