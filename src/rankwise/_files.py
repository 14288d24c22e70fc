"""Paths and files that come from outside: what cannot be a path, or is known not to be text, raises a clear error.

:func:`path_of` checks a path before the system sees it. :func:`signature` tells what a file is by its first bytes:
text begins with letters, digits and marks, and other formats begin with bytes of their own (:data:`SIGNATURES`). Two of
them are read here (Parquet and Arrow), one is rankwise's own (safetensors), and for the others :func:`refuse_binary`
says what the file is and what to do.
"""

import os
import re
from typing import NamedTuple

from rankwise.errors import FileFormatError, RankwiseError

PARQUET, ARROW, STORE = "a Parquet file", "an Arrow file", "a safetensors file"
LONGEST = 4096  # bytes within which every signature lies
# Control characters that are neither blanks nor ends of lines nor the escape of terminals. In packed data one byte in
# ten is one of these 25.
_CONTROLS = bytes(byte for byte in range(32) if byte not in b"\b\t\n\v\f\r\x1b")
_RARE, _MANY = 32, 12

_UNPACK = "unpack it first, or pack it with gzip, which is read as it is"
_AS_CSV = "save its sheet as CSV"
_TO_TABLE = "write its rows as CSV or Parquet"


class Signature(NamedTuple):
    """The first bytes of a format.

    Attributes
    ----------
    begins : pattern of bytes
        Matches the first bytes.
    called : str
        The format, with its article.
    advice : str
        What to do with such a file where text is expected.
    """

    begins: re.Pattern[bytes]
    called: str
    advice: str


def _begins(pattern: bytes) -> re.Pattern[bytes]:
    return re.compile(pattern, re.DOTALL)


# The first that matches counts: kinds of zip files stand before zip files.
SIGNATURES = (
    Signature(_begins(rb"PAR1"), PARQUET, "read it with read_table"),
    Signature(_begins(rb"PARE"), "an encrypted Parquet file", "write it without encryption"),
    # the continuation mark and the length of the schema, in the form without a table of contents
    Signature(_begins(rb"ARROW1\0\0|\xff\xff\xff\xff.{3}\0"), ARROW, "read it with read_table"),
    Signature(_begins(rb"FEA1"), "a Feather file of version 1", "write it as Parquet"),
    # eight bytes of length, of which no header has the last three, and the brace of the header
    Signature(_begins(rb".{5}\0\0\0\{"), STORE, "load it with load"),
    Signature(_begins(rb"PK\x03\x04.*xl/|\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"), "an Excel workbook", _AS_CSV),
    Signature(_begins(rb"PK\x03\x04.*\[Content_Types\]\.xml"), "an Office document", _AS_CSV),
    Signature(_begins(rb"PK\x03\x04.*application/vnd\.oasis"), "an OpenDocument file", _AS_CSV),
    Signature(_begins(rb"PK\x03\x04.{26}[^/]{0,200}\.npy"), "a NumPy .npz file", "give its arrays to Queries"),
    Signature(_begins(rb"PK(\x03\x04|\x05\x06)"), "a zip file", "unpack it first"),
    Signature(_begins(rb"\x93NUMPY"), "a NumPy .npy file", "give its array to Queries"),
    Signature(_begins(rb"\x1f\x8b"), "a gzip file", "unpack it first"),
    Signature(_begins(rb"\xfd7zXZ\0"), "a file packed with xz", _UNPACK),
    Signature(_begins(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"), "a file packed with bzip2", _UNPACK),
    Signature(_begins(rb"\x28\xb5\x2f\xfd"), "a file packed with zstd", _UNPACK),
    Signature(_begins(rb"\x04\x22\x4d\x18"), "a file packed with lz4", _UNPACK),
    Signature(_begins(rb"\x1f\x9d"), "a file packed with compress", _UNPACK),
    Signature(_begins(rb"7z\xbc\xaf\x27\x1c"), "a 7z archive", "unpack it first"),
    Signature(_begins(rb"Rar!\x1a\x07"), "a RAR archive", "unpack it first"),
    Signature(_begins(rb".{257}ustar"), "a tar archive", "unpack it first"),
    Signature(_begins(rb"SQLite format 3\0"), "a SQLite database", _TO_TABLE),
    Signature(_begins(rb".{8}DUCK"), "a DuckDB database", _TO_TABLE),
    Signature(_begins(rb"\x89HDF\r\n\x1a\n"), "an HDF5 file", _TO_TABLE),
    Signature(_begins(rb"ORC"), "an ORC file", _TO_TABLE),
    Signature(_begins(rb"Obj\x01"), "an Avro file", _TO_TABLE),
    # protocols 2 to 5; a text does not begin with 0x80, and cp1252's euro sign is followed by a letter
    Signature(
        _begins(rb"\x80[\x02-\x05]"),
        "a Python pickle",
        "pickles can run code and are not opened: save rankers with save(), data as Parquet or CSV",
    ),
    Signature(_begins(rb"%PDF-"), "a PDF file", _TO_TABLE),
    Signature(_begins(rb"\x89PNG\r\n|\xff\xd8\xff|GIF8"), "an image", _TO_TABLE),
    Signature(_begins(rb"\x7fELF|MZ\x90"), "a program", _TO_TABLE),
)


def signature(head: bytes) -> Signature | None:
    """The format that begins in this way.

    Parameters
    ----------
    head : bytes
        The first bytes of a file, :data:`LONGEST` of them unless it is shorter.

    Returns
    -------
    signature : Signature or None
        None for text and for formats that are not known.

    Examples
    --------
    >>> signature(b"PAR1").called
    'a Parquet file'
    """
    return next((one for one in SIGNATURES if one.begins.match(head[:LONGEST])), None)


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
    known = signature(head)
    if known is not None:
        raise FileFormatError(f"{name} is {known.called}, expected {expected}: {known.advice}")
    strange = len(head) - len(head.translate(None, _CONTROLS))
    if strange * _RARE > len(head) and sum(bytes([byte]) in head for byte in _CONTROLS) >= _MANY:
        raise FileFormatError(f"{name} is a binary file of an unknown format, expected {expected}")


def path_of(path: object) -> str:
    """The path as text.

    Parameters
    ----------
    path : str, bytes or os.PathLike
        The path.

    Returns
    -------
    name : str
        The same path.

    Raises
    ------
    RankwiseError
        If it is not a path, is empty, holds a zero byte, or holds a letter that the file system cannot encode.

    Examples
    --------
    >>> path_of("train.txt")
    'train.txt'
    """
    try:
        name = os.fsdecode(path)  # type: ignore[arg-type]
        os.fsencode(name)
    except TypeError as error:
        raise RankwiseError(f"a path must be a str or path-like, got {path!r:.60}") from error
    except UnicodeEncodeError as error:  # half of a surrogate pair
        raise RankwiseError(f"{path!r:.60} is not a path: the file system cannot encode it ({error.reason})") from error
    if not name:
        raise RankwiseError("a path must not be empty")
    if "\0" in name:
        raise RankwiseError(f"{name!r:.60} is not a path: it holds a zero byte")
    return name
