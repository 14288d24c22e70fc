"""One safe file for data and models: safetensors, which holds numbers and no code.

What rankwise has to say about the arrays is JSON under the one metadata key ``rankwise``: the kind of thing stored,
the format, the version that wrote it, and plain facts. A reader for data (:mod:`rankwise.data.stored`) or models
looks at the kind and asks for its arrays by name, type and shape; nothing in a file is trusted.

Layout: 8 bytes with the header's length, the JSON header padded with spaces, then the arrays without a gap. The first
array begins at a multiple of 64 bytes, so that it can be mapped into memory and used in place; it may grow to any
length while it is written, because its shape is put into the header at the end.

A mapped file must not be cut short or written to in place while it is in use: the system ends a process (SIGBUS) that
touches a mapped page which the file no longer has. rankwise itself never does that. It writes a new file and renames
it, and whoever has the old one mapped keeps the old one. Where other programs may, the arrays are read into memory.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from math import prod
from tempfile import SpooledTemporaryFile
from types import TracebackType
from typing import IO, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from rankwise._atomic_write import atomic_write, refusing
from rankwise._errors import FileFormatError, RankwiseError
from rankwise._paths import path_of
from rankwise._version import __version__

T = TypeVar("T")

FORMAT = 1
KEY = "rankwise"

# safetensors' names for the types of NumPy that it knows
_TYPES = {
    **{f"F{8 * size}": np.dtype(f"<f{size}") for size in (2, 4, 8)},
    **{f"I{8 * size}": np.dtype(f"<i{size}") for size in (1, 2, 4, 8)},
    **{f"U{8 * size}": np.dtype(f"<u{size}") for size in (1, 2, 4, 8)},
    "BOOL": np.dtype(bool),
}
_NAMES = {dtype: name for name, dtype in _TYPES.items()}

_ATTEMPTS = 5  # to read a file that others keep saving over
_ALIGNMENT = 64
_RESERVED = 1 << 14  # bytes kept free for the header; a longer one costs a copy of the file at the end
_COPIED = 1 << 20  # bytes copied at a time
_SPOOL = 1 << 22  # bytes of an array that wait in memory before they go to a temporary file


# ----------------------------------------------------------------------------------------------------------- reading


@dataclass(frozen=True)
class _Place:
    """Where an array stands in its file."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int


@dataclass(frozen=True)
class Store:
    """An opened file: its kind, its facts, and its arrays by name.

    Arrays are read when they are asked for, from the very file whose header was checked: if it was replaced or changed
    since then, :class:`ChangedFileError` is raised.
    """

    path: str
    kind: str
    metadata: dict[str, Any]
    places: dict[str, _Place] = field(repr=False)
    identity: tuple[int, ...] = field(repr=False)

    def __contains__(self, name: str) -> bool:
        return name in self.places

    def array(
        self, name: str, dtype: DTypeLike | None = None, shape: Sequence[int | None] | None = None
    ) -> NDArray[Any]:
        """The array in memory of its own, of exactly this type and shape if they are given (None: any length)."""
        place = self._place(name, dtype, shape)
        with self._file() as file:
            flat = np.fromfile(file, place.dtype, prod(place.shape), offset=place.offset)
        if flat.size != prod(place.shape):
            raise ChangedFileError(f"{self.path} was cut short while it was read")
        return flat.reshape(place.shape).astype(place.dtype.newbyteorder("="), copy=False)

    def map(self, name: str, dtype: DTypeLike | None = None, shape: Sequence[int | None] | None = None) -> NDArray[Any]:
        """The array mapped into memory, read-only; one that is empty or does not lie on its boundary is read.

        The file must not be cut short or written to for as long as the array is in use.
        """
        place = self._place(name, dtype, shape)
        if not prod(place.shape) or place.offset % place.dtype.itemsize or not place.dtype.isnative:
            return self.array(name)
        try:
            with self._file() as file:
                return np.memmap(file, place.dtype, "r", place.offset, place.shape)
        except RankwiseError:
            raise
        except ValueError as error:  # shorter than a moment ago
            raise ChangedFileError(f"{self.path} was cut short while it was read") from error

    def fact(self, name: str, kind: type | tuple[type, ...]) -> Any:
        """One fact of the metadata, of this Python type."""
        value = self.metadata.get(name)
        if not isinstance(value, kind):
            raise FileFormatError(f"{self.path} is damaged: its fact {name!r} is {value!r:.60}")
        return value

    @contextmanager
    def _file(self) -> Iterator[IO[bytes]]:
        """The file whose header was checked, or the sentence that it is another one now."""
        try:
            with open(self.path, "rb") as file:
                if identity_of(file) != self.identity:
                    raise ChangedFileError(f"{self.path} was replaced or changed while it was read: load it again")
                yield file
        except OSError as error:
            raise FileFormatError(f"{self.path} cannot be read: {error.strerror or error}") from error

    def _place(self, name: str, dtype: DTypeLike | None, shape: Sequence[int | None] | None) -> _Place:
        place = self.places.get(name)
        if place is None:
            raise FileFormatError(f"{self.path} is damaged: it lacks the array {name!r}")
        fits = shape is None or (
            len(shape) == len(place.shape)
            and all(want is None or want == found for want, found in zip(shape, place.shape, strict=True))
        )
        if not fits or (dtype is not None and place.dtype != np.dtype(dtype)):
            raise FileFormatError(
                f"{self.path} is damaged: its array {name!r} has type {place.dtype} and shape {place.shape}"
            )
        return place


class ChangedFileError(FileFormatError):
    """A file that was replaced or changed between two looks at it; :func:`read_store` looks again."""


def read_store(path: str | os.PathLike[str], read: Callable[[Store], T]) -> T:
    """What ``read`` makes of the file; once more from the beginning where somebody saved over it meanwhile.

    Parameters
    ----------
    path : of a file that :class:`StoreWriter` wrote
    read : makes something of an opened file
    """
    for _ in range(_ATTEMPTS - 1):
        with suppress(ChangedFileError):
            return read(open_store(path))
    return read(open_store(path))


def open_store(path: str | os.PathLike[str]) -> Store:
    """Look into a file that :class:`StoreWriter` wrote; anything else raises one clear sentence."""
    from safetensors import safe_open

    name = path_of(path)
    if not os.path.isfile(name):
        raise FileFormatError(f"{name} is not there" if not os.path.exists(name) else f"{name} is not a file")
    try:
        with open(name, "rb") as file:
            identity = identity_of(file)
            with safe_open(
                name, framework="np"
            ) as validated:  # the format's own rules: sizes, types, no gap, no overlap
                stored = validated.metadata() or {}
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(length))
            end = os.fstat(file.fileno()).st_size
        with open(name, "rb") as file:
            same = identity_of(file) == identity
        header.pop("__metadata__", None)
        places = {called: _as_place(entry, 8 + length) for called, entry in header.items()}
    except Exception as error:  # whatever a hostile file provokes
        raise FileFormatError(f"{name} is no rankwise file, or is damaged: {_first_line(error)}") from error
    if not same:
        raise ChangedFileError(f"{name} was replaced or changed while it was read: load it again")
    if any(place.offset + prod(place.shape) * place.dtype.itemsize > end for place in places.values()):
        raise FileFormatError(f"{name} is damaged: an array reaches past its end")
    if KEY not in stored:
        raise FileFormatError(f"{name} holds tensors, but rankwise did not write it")
    return Store(name, *_about(name, stored[KEY]), places, identity)


def identity_of(file: IO[bytes]) -> tuple[int, ...]:
    """What tells an open file from another one, and from itself after a change."""
    status = os.fstat(file.fileno())
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _as_place(entry: dict[str, Any], begin: int) -> _Place:
    dtype, (first, last) = _TYPES[entry["dtype"]], entry["data_offsets"]
    place = _Place(dtype, tuple(entry["shape"]), begin + first)
    if first < 0 or prod(place.shape) * dtype.itemsize != last - first:
        raise ValueError(f"an array of shape {place.shape} and type {dtype} takes {last - first} bytes")
    return place


def _about(name: str, text: str) -> tuple[str, dict[str, Any]]:
    """(kind, facts) out of the JSON under rankwise's key."""
    try:
        about = json.loads(text)
        kind, version, number, facts = about["kind"], about["version"], about["format"], about["facts"]
        if not (isinstance(kind, str) and isinstance(number, int) and isinstance(facts, dict)):
            raise TypeError("kind, format or facts of another type")
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise FileFormatError(f"{name} is damaged: what it says about itself cannot be read") from error
    if number > FORMAT:
        raise FileFormatError(
            f"{name} has format {number!s:.20}, written by rankwise {version!s:.20}; this is rankwise {__version__}, "
            f"which reads formats up to {FORMAT}: install a newer one"
        )
    return kind, facts


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


# ----------------------------------------------------------------------------------------------------------- writing


class _Growing:
    """An array that is appended to without knowing its length; its bytes go straight to ``file``."""

    def __init__(self, file: IO[bytes], first: NDArray[Any]) -> None:
        self.file = file
        self.dtype = first.dtype
        self.row = first.shape[1:]
        self.length = 0

    def append(self, rows: NDArray[Any]) -> None:
        if rows.dtype != self.dtype or rows.shape[1:] != self.row:
            raise RankwiseError(
                f"rows of type {rows.dtype} and shape {rows.shape[1:]} cannot follow rows of type {self.dtype} "
                f"and shape {self.row}"
            )
        if rows.size:
            self.file.write(np.ascontiguousarray(rows).data.cast("B"))
        self.length += len(rows)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.length, *self.row)

    @property
    def size(self) -> int:
        return prod(self.shape) * self.dtype.itemsize


class StoreWriter:
    """Write one file; it appears under its name when all is there, and not at all after an error.

    Arrays are appended to in any order and in pieces. The first one goes straight into the file, the others wait in
    temporary files (small ones in memory), so that memory stays bounded whatever the number of rows.

    Attributes
    ----------
    metadata : facts for JSON, read back as :attr:`Store.metadata`

    Examples
    --------
    >>> with StoreWriter("numbers.rankwise", kind="numbers") as file:  # doctest: +SKIP
    ...     file.metadata["about"] = "two blocks"
    ...     for block in ([[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]):
    ...         file.append("X", block)
    """

    def __init__(self, path: str | os.PathLike[str], kind: str) -> None:
        self.path = path
        self.kind = kind
        self.metadata: dict[str, Any] = {}
        self._arrays: dict[str, _Growing] = {}

    def __enter__(self) -> "StoreWriter":
        with ExitStack() as opened, refusing(self.path):
            part = opened.enter_context(atomic_write(self.path))
            self._folder = str(part.parent)
            self._file = opened.enter_context(open(part, "w+b"))
            self._file.seek(_RESERVED)
            self._opened = opened.pop_all()
        return self

    def append(self, name: str, rows: ArrayLike) -> None:
        """Add rows to the array of that name; the first rows fix its type and the shape of a row."""
        array = np.asarray(rows)
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        if array.dtype not in _NAMES or not array.ndim:
            raise RankwiseError(f"{name} cannot be stored: it has type {array.dtype} and {array.ndim} dimensions")
        with refusing(self.path):
            if name not in self._arrays:
                self._arrays[name] = _Growing(self._spool() if self._arrays else self._file, array)
            self._arrays[name].append(array)

    def length(self, name: str) -> int:
        """Rows appended so far to the array of that name."""
        return self._arrays[name].length if name in self._arrays else 0

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            with refusing(self.path):  # closing writes what still waits in memory
                self._opened.__exit__(kind, error, trace)
            return
        with refusing(self.path), self._opened:
            self._finish()

    def _spool(self) -> IO[bytes]:
        return self._opened.enter_context(SpooledTemporaryFile(_SPOOL, dir=self._folder))

    def _finish(self) -> None:
        """Put the other arrays behind the first one, the widest types first, and then the header before all."""
        ordered = list(self._arrays.items())
        ordered[1:] = sorted(ordered[1:], key=lambda item: -item[1].dtype.itemsize)
        for _, array in ordered[1:]:
            array.file.seek(0)
            shutil.copyfileobj(array.file, self._file, _COPIED)
        header = self._header(ordered)
        size = _RESERVED
        if 8 + len(header) > size:
            size = -(-(8 + len(header)) // _ALIGNMENT) * _ALIGNMENT
            moved = self._spool()
            self._file.seek(_RESERVED)
            shutil.copyfileobj(self._file, moved, _COPIED)
            moved.seek(0)
            self._file.seek(size)
            shutil.copyfileobj(moved, self._file, _COPIED)
        self._file.seek(0)
        self._file.write((size - 8).to_bytes(8, "little") + header.ljust(size - 8))

    def _header(self, ordered: list[tuple[str, _Growing]]) -> bytes:
        about = {"kind": self.kind, "format": FORMAT, "version": __version__, "facts": self.metadata}
        header: dict[str, Any] = {"__metadata__": {KEY: json.dumps(about)}}
        first = 0
        for name, array in ordered:
            last = first + array.size
            header[name] = {
                "dtype": _NAMES[array.dtype],
                "shape": list(array.shape),
                "data_offsets": [first, last],
            }
            first = last
        return json.dumps(header).encode()
