"""Text of other programs: its encoding, and the numbers in it.

Files are read as UTF-8. Ids keep bytes that are not UTF-8 (they are written back as they were); names that people and
other programs read must be UTF-8. Numbers are those that every tool reads: Python's ``float`` also accepts underscores
(``1_000``), digits of other scripts and the words ``nan`` and ``infinity``.
"""

import re

from rankwise._errors import FileFormatError

MARK = b"\xef\xbb\xbf"  # the byte order mark of UTF-8, which some editors put before a text

_WIDE = {
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


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
