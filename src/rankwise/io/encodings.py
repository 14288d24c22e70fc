"""Text of any usual encoding as UTF-8, block by block: every reader of text gets its bytes from here.

A byte order mark decides (UTF-8, UTF-16, UTF-32) and is left out. Without one, a text is UTF-8 if its first sequence
of bytes above 127 is UTF-8, and otherwise Windows-1252, which has the letters of Latin-1 where that has letters.
Everything before that sequence is ASCII, which both share, so no byte has to be read again. Stray bytes in a text that
is UTF-8 otherwise, as in files that were joined, are read as Windows-1252, too. In both cases a warning names the file.
"""

import codecs
from collections.abc import Callable, Iterable

from rankwise.errors import FileFormatError, in_one_line, warn

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
            text = self._converted(block)
            self._place += len(block)
            if text or not block:
                return text

    def _converted(self, block: bytes) -> bytes:
        """A block in UTF-8; an empty block ends the text."""
        if not self._encoding:
            held, self._held = self._held, b""
            return self._recognized(held + block, self._place - len(held), last=not block)
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

    def _recognized(self, block: bytes, place: int, last: bool) -> bytes:
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
