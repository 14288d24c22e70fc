"""Where text comes from: a path, ``-`` for standard input, or a binary file object; readers see UTF-8 alone.

:func:`read_text` gives a whole source as an array of bytes, mapped from its file where that is possible.
:func:`open_stream` gives a :class:`ByteStream`, which is read block by block and can be looked ahead into;
:func:`open_text` also raises an error for an empty one. gzip data are recognized by their first bytes and unpacked, and
files of known binary formats raise an error (:func:`refuse_binary`). Every failure (no such file, a folder, gzip data
that end too early) raises an error that names the source.

:class:`Utf8Reader` turns any usual encoding into UTF-8, block by block. A byte order mark decides (UTF-8, UTF-16,
UTF-32) and is left out. Without one, a text is UTF-8 if its first sequence of bytes above 127 is UTF-8, and otherwise
Windows-1252, which has the letters of Latin-1 where that has letters. Everything before that sequence is ASCII, which
both share, so no byte has to be read again. Stray bytes in a text that is UTF-8 otherwise, as in files that were
joined, are read as Windows-1252, too. In both cases a warning names the file.

Numbers are those that every tool reads: Python's ``float`` also accepts underscores (``1_000``), digits of other
scripts and the words ``nan`` and ``infinity``.
"""

import codecs
import gzip
import json
import mmap
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankwise._files import LONGEST, SIGNATURES, path_of
from rankwise._kernels.memory import available_memory
from rankwise.errors import FileFormatError, RankwiseError, in_one_line, warn

OnRead = Callable[[int], object] | None

STANDARD_INPUT = "standard input"
GZIP = b"\x1f\x8b"
BLOCK = 1 << 20  # bytes that are requested at a time
HEAD = 1 << 16  # bytes that decide what a text is
DELIMITERS = ",;\t|"
_LONGEST_OBJECT = 1 << 24  # bytes of an object that decides what a JSON text is
_LEAST_FREE = 1 << 27  # bytes of memory that have to stay free while something is unpacked

# Control characters that are neither blanks nor ends of lines nor the escape of terminals. In packed data one byte in
# ten is one of these 25.
_CONTROLS = bytes(byte for byte in range(32) if byte not in b"\b\t\n\v\f\r\x1b")
_RARE, _MANY = 32, 12

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_LETOR_LINE = re.compile(rb"\s*\S+\s+(qid:\S|\d+:\S)")

# That of UTF-32 stands first, because it begins with that of UTF-16.
_MARKS = {
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
    codecs.BOM_UTF8: "UTF-8",
}
# Five bytes have no letter in Windows-1252. They are read as control characters, as browsers do.
_LETTERS = "".join(bytes([byte]).decode("cp1252", "ignore") or chr(byte) for byte in range(256))
_STRAY = "rankwise.stray"  # the name of an error handler, by which codecs find it


@dataclass(frozen=True, eq=False)
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
    first : int, default=0
        The byte of the mapping at which ``data`` begins.
    """

    name: str
    data: NDArray[np.uint8]
    mapping: mmap.mmap | None = None
    first: int = 0

    def release(self, begin: int, end: int) -> None:
        """Return the memory of bytes that have been read to the system.

        The bytes can still be read, from the file again. Releasing piece by piece costs no more than releasing the
        mapping as a whole.

        Parameters
        ----------
        begin, end : int
            The range of bytes; only whole pages inside it are released.
        """
        begin, end = begin + self.first, end + self.first
        begin += -begin % mmap.PAGESIZE
        end -= end % mmap.PAGESIZE
        if self.mapping is not None and hasattr(mmap, "MADV_DONTNEED") and begin < end:
            self.mapping.madvise(mmap.MADV_DONTNEED, begin, end - begin)


class _Lookahead:
    """A function that reads blocks, whose next bytes can be looked at before they are read; it need not seek."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read
        self._ahead = b""

    def peek(self, size: int) -> bytes:
        while len(self._ahead) < size and (block := self._read(BLOCK)):
            self._ahead += block
        return self._ahead[:size]

    def beginning(self) -> bytes:
        """The first bytes that are there, at least eight of them: a pipe may give no more for a while."""
        self.peek(8)
        return self._ahead[:HEAD]

    def read(self, size: int) -> bytes:
        if self._ahead:
            block, self._ahead = self._ahead[:size], self._ahead[size:]
            return block
        return self._read(size)


class ByteStream:
    """A text that is read once, block after block, in UTF-8, and unpacked if it is gzipped.

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
        source = _Lookahead(self._read_packed)
        packed = source.peek(len(GZIP)) == GZIP
        if packed:
            inner: Any = source  # gzip uses nothing but its read
            self._unpack = gzip.GzipFile(fileobj=inner).read1
            source = _Lookahead(self._read_unpacked)
        head = source.beginning()
        if mark_of(head)[1] in ("", "UTF-8"):
            refuse_binary(head, name if not packed else f"{name}, unpacked,")
        self._bytes = _Lookahead(Utf8Reader(name, source.read, head))

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
    def kind(self) -> Literal["letor", "csv", "records", "json"]:
        """The format that the text looks like: lines ``label qid:id feature:value``, names with a delimiter between
        them, rows in JSON, or other JSON.
        """
        if self.head.lstrip()[:1] in (b"{", b"["):
            return "records" if self._holds_records() else "json"
        lines = self.head.splitlines()
        first = next((line for line in lines if line.strip() and not line.startswith(b"#")), b"")
        if _LETOR_LINE.match(first) or not any(mark.encode() in first for mark in DELIMITERS):
            return "letor"
        return "csv"

    def _holds_records(self) -> bool:
        """Whether the first object of a JSON text is a row of a table; one that is very long is not."""
        from rankwise.io.tables.records import is_record

        size = HEAD
        while True:
            ahead = self.peek(size)
            text = ahead.decode("utf-8", "ignore").lstrip().removeprefix("[").lstrip()
            try:
                return is_record(json.JSONDecoder().raw_decode(text)[0])
            except (ValueError, RecursionError):
                if len(ahead) < size or size > _LONGEST_OBJECT:
                    return False
            size *= 8

    @property
    def is_table(self) -> bool:
        """Whether the text has columns."""
        return self.kind in ("csv", "records")

    def _read_packed(self, size: int) -> bytes:
        try:
            block = self._source(size)
        except (OSError, ValueError) as error:  # ValueError: the file is closed
            raise RankwiseError(f"{self.name} cannot be read: {getattr(error, 'strerror', None) or error}") from error
        if not isinstance(block, bytes):
            raise RankwiseError(f"{self.name} must give bytes, got {type(block).__name__}: open it in binary mode")
        if self._on_read is not None:
            self._on_read(len(block))
        return block

    def _read_unpacked(self, size: int) -> bytes:
        free = available_memory()
        if free is not None and free < _LEAST_FREE:
            raise RankwiseError(
                f"{self.name} is larger, unpacked, than fits into memory, of which {free / 2**20:,.0f} MiB are free: "
                "convert it into parts (write_parts), or read it in blocks"
            )
        try:
            return self._unpack(size)
        except EOFError as error:
            raise FileFormatError(f"{self.name} is cut off: its gzip data has no end mark") from error
        except (zlib.error, gzip.BadGzipFile) as error:
            raise FileFormatError(f"{self.name} is damaged: its gzip data cannot be unpacked ({error})") from error


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Whether a path is standard input, a pipe or a device, which can be read only once."""
    return os.fspath(path) == "-" or (os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path))


def name_of(source: Any) -> str:
    """The name of a source in error messages."""
    if hasattr(source, "read"):
        name = getattr(source, "name", None)
        return name if isinstance(name, str) else "the stream"
    if not isinstance(source, (str, bytes, os.PathLike)):
        raise RankwiseError(f"a source must be a path, '-' or a binary file object, got {source!r:.60}")
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
def open_text(source: Any, on_read: OnRead = None) -> Iterator[ByteStream]:
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
        If the source is not text, or is empty.
    """
    with open_stream(source, on_read) as stream:
        if not stream.head.strip():
            raise FileFormatError(f"{stream.name} is empty")
        yield stream


def lines_of(source: Any) -> Iterator[bytes]:
    """The lines of a text, without their ends.

    Parameters
    ----------
    source : path, ``-`` or binary file object
        What is read.

    Yields
    ------
    line : bytes
        A line in UTF-8; lines end at newlines alone.
    """
    with open_stream(source) as stream:
        rest: list[bytes] = []  # joined once: a line may be many blocks long
        while block := stream.read():
            first, *lines = block.split(b"\n")
            rest.append(first)
            if lines:
                yield b"".join(rest)
                yield from lines[:-1]
                rest = [lines[-1]]
        if last := b"".join(rest):
            yield last


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
        with open_file(name) as file:
            mapping = None
            with suppress(OSError, ValueError):
                mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if mapping is not None:
            head = mapping[:HEAD]
            mark, encoding = mark_of(head)
            if head[: len(GZIP)] != GZIP and encoding in ("", "UTF-8"):
                text = Text(name, np.frombuffer(mapping, dtype=np.uint8)[len(mark) :], mapping, len(mark))
                refuse_binary(head, name)
                if is_utf8(_release_blocks(text)):
                    return text
    whole = bytearray()
    with open_stream(source) as stream:
        while block := stream.read():
            whole += block
    data = np.frombuffer(whole, dtype=np.uint8)
    data.flags.writeable = False  # as a mapping is: kernels are compiled for one of the two
    return Text(name, data)


def _release_blocks(text: Text) -> Iterator[bytes]:
    """The bytes of a mapped text, block by block, each of which is returned to the system after its use."""
    for first in range(0, len(text.data), BLOCK):
        yield text.data[first : first + BLOCK].tobytes()
        text.release(first, min(first + BLOCK, len(text.data)))


def open_file(name: str) -> Any:
    """Open a file for reading bytes, or raise an error that names it."""
    try:
        return open(name, "rb")
    except (FileNotFoundError, ValueError):
        path_of(name)  # raises if no file can have this name
        raise RankwiseError(f"{name} cannot be read: there is no such file") from None
    except OSError as error:
        raise RankwiseError(f"{name} cannot be read: {error.strerror or error}") from None


def beginning_of(name: str) -> bytes:
    """The first bytes of a file as they are, packed or not."""
    with open_file(name) as file:
        return bytes(file.read(LONGEST))


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


def refuse_binary(head: bytes, name: str, expected: str = "text") -> None:
    """Raise an error where a source is not text.

    Parameters
    ----------
    head : bytes
        The first bytes of the source, unpacked.
    name : str
        How the error message calls the source.
    expected : str, default="text"
        What the message says that was expected.

    Raises
    ------
    FileFormatError
        If the source has a known signature, or many different control characters: packed and other binary data have
        all of them, ids of texts a few at most.
    """
    known = next((one for one in SIGNATURES if one.begins.match(head[:LONGEST])), None)
    if known is not None:
        raise FileFormatError(f"{name} is {known.called}, expected {expected}: {known.advice}")
    strange = len(head) - len(head.translate(None, _CONTROLS))
    if strange * _RARE > len(head) and sum(bytes([byte]) in head for byte in _CONTROLS) >= _MANY:
        raise FileFormatError(f"{name} is a binary file of an unknown format, expected {expected}")


# ------------------------------------------------------------------------------------------------------------ encodings


def _as_letters(error: UnicodeError) -> tuple[str, int]:
    """The error handler that reads stray bytes as Windows-1252."""
    assert isinstance(error, UnicodeDecodeError)
    return _windows(error.object[error.start : error.end]), error.end


codecs.register_error(_STRAY, _as_letters)


def _windows(block: bytes) -> str:
    """Bytes as Windows-1252."""
    return codecs.charmap_decode(block, "strict", _LETTERS)[0]


def mark_of(head: bytes) -> tuple[bytes, str]:
    """The byte order mark that a text begins with, and the encoding that it stands for.

    Parameters
    ----------
    head : bytes
        The first bytes of the text, at least four unless it is shorter.

    Returns
    -------
    mark : bytes
        The mark; empty without one.
    encoding : {"UTF-8", "UTF-16", "UTF-32", ""}
        The encoding; empty without a mark.
    """
    return next(((mark, encoding) for mark, encoding in _MARKS.items() if head.startswith(mark)), (b"", ""))


def is_utf8(blocks: Iterable[bytes]) -> bool:
    """Whether consecutive blocks are UTF-8 altogether.

    Parameters
    ----------
    blocks : iterable of bytes
        The blocks.

    Returns
    -------
    bool
        Whether they are.
    """
    decoder, pending = codecs.getincrementaldecoder("utf-8")(), False
    try:
        for block in blocks:
            if pending or not block.isascii():
                decoder.decode(block)
                pending = bool(decoder.getstate()[0])
        decoder.decode(b"", True)
    except UnicodeDecodeError:
        return False
    return True


class Utf8Reader:
    """A function that reads a text in blocks of UTF-8, from one that reads its bytes.

    Parameters
    ----------
    name : str
        How messages call the source.
    source : callable
        Takes the largest number of bytes, and returns some of them; none at the end.
    head : bytes
        The first bytes, which were looked at and not read; at least four unless the text is shorter.
    """

    def __init__(self, name: str, source: Callable[[int], bytes], head: bytes) -> None:
        self._name, self._source = name, source
        mark, self._encoding = mark_of(head)
        if mark:
            source(len(mark))
        self._place = len(mark)  # bytes before the block
        self._held = b""  # the beginning of a sequence that the next block continues
        if self._encoding in ("UTF-16", "UTF-32"):
            self._encoding += "LE" if mark[0] == 0xFF else "BE"
        self._decoder = codecs.getincrementaldecoder(self._encoding or "UTF-8")()

    def __call__(self, size: int) -> bytes:
        """Read the next bytes; empty at the end alone."""
        while True:
            block = self._source(size)
            text = self._convert(block)
            self._place += len(block)
            if text or not block:
                return text

    def _convert(self, block: bytes) -> bytes:
        """A block in UTF-8; an empty block ends the text."""
        if not self._encoding:
            held, self._held = self._held, b""
            return self._recognize(held + block, self._place - len(held), last=not block)
        if self._encoding == "Windows-1252":
            return _windows(block).encode()
        if self._encoding == "UTF-8":
            return self._utf8(block, self._place, last=not block)
        try:
            return self._decoder.decode(block, not block).encode()
        except UnicodeError as error:  # half of a surrogate pair, an odd number of bytes
            raise FileFormatError(
                f"{self._name} is damaged: its byte order mark says {self._encoding[:6]}, but {in_one_line(error)}"
            ) from None

    def _recognize(self, block: bytes, place: int, last: bool) -> bytes:
        """A block of a text that was ASCII so far."""
        if block.isascii():
            return block
        try:
            block.decode("ascii")
        except UnicodeDecodeError as error:
            first = error.start
        self._encoding = "UTF-8"
        try:
            block[first : first + 4].decode()  # no sequence is longer
        except UnicodeDecodeError as error:
            if error.start == 0 and error.reason == "unexpected end of data" and not last:
                self._encoding, self._held = "", block[first:]
                return block[:first]
            if error.start == 0:
                self._encoding = "Windows-1252"
                self._warn(f"is not UTF-8 (byte {place + first + 1:,} is 0x{block[first]:02X}) and was read as")
                return _windows(block).encode()
        return self._utf8(block, place, last)

    def _utf8(self, block: bytes, place: int, last: bool) -> bytes:
        """A block of a text that is UTF-8, but for stray bytes."""
        pending, flag = self._decoder.getstate()
        if not pending and block.isascii():
            return block
        try:
            return self._decoder.decode(block, last).encode()
        except UnicodeDecodeError as error:
            at, byte = place - len(pending) + error.start + 1, error.object[error.start]
        self._warn(f"is UTF-8 with stray bytes, the first at byte {at:,} (0x{byte:02X}), which were read as")
        self._decoder = codecs.getincrementaldecoder("UTF-8")(_STRAY)
        self._decoder.setstate((pending, flag))
        return self._decoder.decode(block, last).encode()

    def _warn(self, what: str) -> None:
        warn(f"{self._name} {what} Windows-1252: if letters look wrong, save it as UTF-8")
