"""About how much memory the queries of a file take while a ranker learns from them, by a look at some of its bytes."""

import io
import os
import re
import warnings
import zlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from rankwise.errors import RankwiseError
from rankwise.io.any_file import is_store, read_any
from rankwise.io.sources import GZIP, ByteStream, beginning_of, open_file
from rankwise.io.tables.csv import CsvText
from rankwise.io.tables.frames import open_frame, rows_of
from rankwise.io.tables.rows import Roles, find_noted_roles, is_arrow, open_arrow

# Times that the features are in memory at most: as they are read, divided into queries for training and for testing,
# and what is computed of them. Bytes of a cell of a table of words, whose features are built of all cells together.
_TIMES, _CELL = 3, 120
# Bytes at the beginning of a text that are read as the whole is, and of other places where rows are counted.
_HEAD, _PLACES, _PLACE = 1 << 20, 8, 1 << 16
_PACKED = 1 << 22
_ROWS = 1000  # of an Arrow file

_LAST_FEATURE = re.compile(rb"(\d+):\S+[ \t]*(?:#.*)?\r?$", re.MULTILINE)


def memory_needed(path: str | os.PathLike[str], options: Mapping[str, Any]) -> int | None:
    """Estimate the memory that training on a file takes at most, beside the programs themselves.

    Parameters
    ----------
    path : path
        A file of judged queries.
    options : mapping
        How it is read, as :func:`~rankwise.io.any_file.read_any` takes it; ``kinds`` are those of a FeatureBuilder.

    Returns
    -------
    needed : int or None
        Bytes: three times the features in float64, or 120 per cell of a table of words, of which features are built.
        A packed file counts unpacked. None for what cannot be looked at: streams, folders, files that no reader takes.
    """
    name = os.fspath(path)
    if not os.path.isfile(name):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the reader says them again
            if is_store(name):
                return _TIMES * int(read_any(name, "store").X.nbytes)
            return _of_arrow(name, options) if is_arrow(name) else _of_text(name, options)
    except (RankwiseError, zlib.error):
        return None


def exceeds(needed: int, memory: int) -> str:
    """What a message says of a file that needs more memory than there is."""
    return f"needs about {_size(needed)} of memory, more than {_size(memory)}"


def _size(count: int) -> str:
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:,.1f} MB"


def _of_arrow(name: str, options: Mapping[str, Any]) -> int | None:
    """The memory for a Parquet or Arrow file."""
    file = open_arrow(name)
    columns = _roles(options).among(file.names)
    first = next(file.batches(columns.every, _ROWS, None), None)
    if first is None:
        return None
    rows = file.n_rows or int(len(first) * os.path.getsize(name) / max(1, first.nbytes))
    try:
        _refuse_words(options)
        rows_of(open_frame(first), columns, options.get("grades"), options.get("unjudged", "error"))
    except RankwiseError:
        return _CELL * rows * len(file.names)
    return _TIMES * 8 * rows * len(columns.features)


def _of_text(name: str, options: Mapping[str, Any]) -> int | None:
    """The memory for a LETOR text, CSV, or rows in JSON."""
    head, size = _head(name)
    stream = ByteStream(name, io.BytesIO(head))
    kind = stream.kind
    if kind == "json" or not head.strip():
        return None
    if kind == "records" and head.lstrip().startswith(b"["):  # a list is one value, and is read as a whole
        return 12 * size
    lines, width = _places(name, head)
    try:
        _refuse_words(options)
        queries = read_any(stream, "text" if kind == "letor" else "table", **options)
    except RankwiseError:
        if kind == "letor":
            raise
        names = CsvText.open(ByteStream(name, io.BytesIO(head))).names
        return int(_CELL * size * lines * len(names))
    if kind != "letor":
        width = 0
    nested = kind == "records" and queries.n_documents > head.count(b"\n") + 1  # documents in a list of their query
    rows = size * (queries.n_documents / len(head) if nested else lines)
    return int(_TIMES * 8 * rows * max(width, queries.n_features))


def dtype_in_memory(name: str, options: Mapping[str, Any]) -> Literal["float32"] | None:
    """The type of the features of a Parquet or Arrow file of float32 alone, which readers keep; None for others."""
    if not is_arrow(name):
        return None
    file = open_arrow(name)
    roles = _roles(options)
    columns = replace(roles, **find_noted_roles(roles, file.facts, file.names)).among(file.names)
    first = next(file.batches(columns.every, 1, None), None)
    if first is None:
        return None
    X = rows_of(open_frame(first), columns, options.get("grades"), options.get("unjudged", "error")).X
    return "float32" if X.dtype == "float32" else None


def _roles(options: Mapping[str, Any]) -> Roles:
    return Roles(**{name: options[name] for name in ("qid", "label", "docid", "ignore", "features") if name in options})


def _refuse_words(options: Mapping[str, Any]) -> None:
    """Raise an error if columns are said to be something else than numbers."""
    if any(kind != "number" for kind in options.get("kinds", {}).values()):
        raise RankwiseError("a column is said to be no number")


def _head(name: str) -> tuple[bytes, int]:
    """(whole lines at the beginning, the size of the text), unpacked."""
    size = os.path.getsize(name)
    with open_file(name) as file:
        head = file.read(_HEAD if beginning_of(name)[: len(GZIP)] != GZIP else _PACKED)
    if head[: len(GZIP)] == GZIP:
        unpack = zlib.decompressobj(zlib.MAX_WBITS | 16)
        packed, head = head, unpack.decompress(head, _HEAD)
        read = len(packed) - len(unpack.unconsumed_tail) - len(unpack.unused_data)
        size = int(size * len(head) / max(1, read))
    return head[: head.rfind(b"\n") + 1] if len(head) < size else head, size


def _places(name: str, head: bytes) -> tuple[float, int]:
    """(lines per byte, the largest feature that ends a line) at several places of a text; of a packed one at its
    beginning.
    """
    found, size = [head], os.path.getsize(name)
    with open_file(name) as file:
        if file.read(len(GZIP)) != GZIP and size > len(head):
            for place in range(1, _PLACES + 1):
                file.seek(max(0, place * size // _PLACES - _PLACE))
                found.append(file.read(_PLACE))
    ids = (max(map(int, _LAST_FEATURE.findall(text)), default=0) for text in found)
    return max(1, sum(text.count(b"\n") for text in found)) / sum(map(len, found)), max(ids)
