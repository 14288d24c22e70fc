"""One file for data and models that holds no code: safetensors.

What rankwise notes about the arrays is JSON under the metadata key ``rankwise``: the kind of content, the format, the
version that wrote it, and plain facts. A reader for data (:mod:`rankwise.queries.stored`) or models checks the kind and
requests its arrays by name, type and shape; nothing in a file is trusted. :func:`read_store` opens a file for reading
as a :class:`Store`, :class:`StoreWriter` writes one.

Layout: 8 bytes with the length of the header, the JSON header padded with spaces, then the arrays without a gap. The
first array begins at a multiple of 64 bytes, so it can be mapped into memory and used in place; it may grow to any
length while it is written, because its shape is put into the header at the end.

A mapped file must not be truncated or written to in place while it is in use: the system ends a process (SIGBUS) that
touches a mapped page which the file no longer has. rankwise itself never does that. It writes a new file and renames
it, and a process that has the old one mapped keeps the old one. Where other programs may do it, the arrays are read
into memory.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from io import BytesIO
from math import prod
from tempfile import SpooledTemporaryFile
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from rankwise._files import LONGEST, STORE, atomic_write, path_of, refusing, signature
from rankwise._version import __version__
from rankwise.errors import FileFormatError, RankwiseError

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

_ATTEMPTS = 5  # to read a file that others keep replacing
_ALIGNMENT = 64
_RESERVED = 1 << 14  # bytes kept free for the header; a longer one costs a copy of the file at the end
_COPIED = 1 << 20  # bytes copied at a time
_SPOOL = 1 << 22  # bytes of an array that wait in memory before they go to a temporary file


# ----------------------------------------------------------------------------------------------------------- reading


@dataclass(frozen=True)
class _Place:
    """The place of an array in its file."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int


@dataclass(frozen=True)
class Store:
    """An opened file: its kind, its facts, and its arrays by name.

    Arrays are read on request, from the very file whose header was checked; if it was changed since then, an error is
    raised.

    Attributes
    ----------
    path : str
        The file.
    kind : str
        The kind of content.
    metadata : dict
        The facts.
    places : dict of str to _Place
        Where the arrays stand.
    identity : tuple of int
        What identifies the file, as :func:`identity_of` has it.
    data : bytes, default=None
        The content of a file that exists in memory alone.
    file : binary file, default=None
        The open file; None opens it for each array.
    """

    path: str
    kind: str
    metadata: dict[str, Any]
    places: dict[str, _Place] = field(repr=False)
    identity: tuple[int, ...] = field(repr=False)
    data: bytes | None = field(default=None, repr=False)
    file: IO[bytes] | None = field(default=None, repr=False, compare=False)

    def __contains__(self, name: str) -> bool:
        return name in self.places

    def array(
        self, name: str, dtype: DTypeLike | None = None, shape: Sequence[int | None] | None = None
    ) -> NDArray[Any]:
        """Read an array into memory.

        Parameters
        ----------
        name : str
            The array.
        dtype : dtype, default=None
            The required type, if there is one.
        shape : sequence of int or None, default=None
            The required shape, if there is one; None stands for any length.

        Returns
        -------
        array : ndarray
            The array, in memory of its own.

        Raises
        ------
        FileFormatError
            If the file has no such array.
        """
        place = self._place(name, dtype, shape)
        if self.data is not None:
            flat = np.frombuffer(self.data, place.dtype, prod(place.shape), place.offset).copy()
        else:
            with self._file() as file:
                flat = np.fromfile(file, place.dtype, prod(place.shape), offset=place.offset)
        if flat.size != prod(place.shape):
            raise FileFormatError(f"{self.path} was cut short while it was read")
        return flat.reshape(place.shape).astype(place.dtype.newbyteorder("="), copy=False)

    def map(self, name: str, dtype: DTypeLike | None = None, shape: Sequence[int | None] | None = None) -> NDArray[Any]:
        """Map an array into memory, read-only; parameters as for :meth:`array`. An empty or unaligned array is read.

        The file must not be truncated or written to for as long as the array is in use.
        """
        place = self._place(name, dtype, shape)
        unaligned = place.offset % place.dtype.itemsize or not place.dtype.isnative
        if self.data is not None or not prod(place.shape) or unaligned:
            return self.array(name)
        try:
            with self._file() as file:
                return np.memmap(file, place.dtype, "r", place.offset, place.shape)
        except RankwiseError:
            raise
        except ValueError as error:  # shorter than a moment ago
            raise FileFormatError(f"{self.path} was cut short while it was read") from error

    def fact(self, name: str, kind: type | tuple[type, ...]) -> Any:
        """One fact of the metadata, of this Python type."""
        value = self.metadata.get(name)
        if not isinstance(value, kind):
            raise FileFormatError(f"{self.path} is damaged: its fact {name!r} is {value!r:.60}")
        return value

    def part(self, prefix: str, metadata: dict[str, Any]) -> "Store":
        """The arrays whose names begin with ``prefix``, without it, and these facts: a store inside of this one."""
        own = {name.removeprefix(prefix): place for name, place in self.places.items() if name.startswith(prefix)}
        return replace(self, metadata=metadata, places=own)

    @contextmanager
    def _file(self) -> Iterator[IO[bytes]]:
        """The file whose header was checked, or an error if it is another one now."""
        with _name_in_errors(self.path), nullcontext(self.file) if self.file else open(self.path, "rb") as file:
            if identity_of(file) != self.identity:
                raise FileFormatError(f"{self.path} was replaced or changed while it was read: load it again")
            file.seek(0)
            yield file

    def _place(self, name: str, dtype: DTypeLike | None, shape: Sequence[int | None] | None) -> _Place:
        """The place of an array of this type and shape, or an error."""
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


@contextmanager
def read_store(path: str | os.PathLike[str]) -> Iterator[Store]:
    """Check the header of a file, and keep the file open: one that is saved in its place meanwhile is not read.

    Parameters
    ----------
    path : path
        A file that :class:`StoreWriter` wrote.

    Yields
    ------
    store : Store
        The open file.

    Raises
    ------
    FileFormatError
        If it is another kind of file, is damaged, or needs a newer rankwise.
    """
    name = path_of(path)
    if not os.path.isfile(name):
        raise FileFormatError(f"{name} does not exist" if not os.path.exists(name) else f"{name} is not a file")
    with ExitStack() as opened:
        for _ in range(_ATTEMPTS):
            with _name_in_errors(name):
                file = opened.enter_context(open(name, "rb"))
            _refuse_foreign(name, file)
            store = _check_header(name, file)
            if store is not None:
                break
        else:
            raise FileFormatError(f"{name} was replaced or changed while it was read: load it again")
        yield store


def open_store(path: str | os.PathLike[str]) -> Store:
    """Check the header of a file; each array is read later, if the file is still the same.

    Parameters
    ----------
    path : path
        A file that :class:`StoreWriter` wrote.

    Returns
    -------
    store : Store
        The file, which is not kept open.

    Raises
    ------
    FileFormatError
        If it is another kind of file, is damaged, or needs a newer rankwise.
    """
    with read_store(path) as store:
        return replace(store, file=None)


def _check_header(name: str, file: IO[bytes]) -> Store | None:
    """The store of an open file; None if another file has its name now."""
    from safetensors import safe_open

    identity = identity_of(file)
    try:
        with safe_open(name, framework="np") as validated:  # the format's own rules: sizes, types, no gap, no overlap
            stored = validated.metadata() or {}
        file.seek(0)
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
        with open(name, "rb") as now:
            same = identity_of(now) == identity
    except Exception as error:  # a hostile file can raise anything
        raise _not_ours(name, error) from error
    if not same:
        return None
    return replace(_store_of(name, stored, header, 8 + length, identity[2], identity), file=file)


def store_of_bytes(data: bytes, name: str) -> Store:
    """Check the header of a file that exists in memory alone.

    Parameters
    ----------
    data : bytes
        The content of a file that :class:`StoreWriter` wrote.
    name : str
        What errors call it.

    Returns
    -------
    store : Store
        The opened file; its arrays are copies.

    Raises
    ------
    FileFormatError
        If it is another kind of file, is damaged, or needs a newer rankwise.
    """
    from safetensors import deserialize

    try:
        deserialize(data)  # type: ignore[no-untyped-call]  # the format's own rules
        length = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + length])
        stored = header.get("__metadata__") or {}
    except Exception as error:  # a hostile file can raise anything
        raise _not_ours(name, error) from error
    return replace(_store_of(name, stored, header, 8 + length, len(data), ()), data=data)


def _store_of(
    name: str, stored: dict[str, str], header: dict[str, Any], begin: int, end: int, identity: tuple[int, ...]
) -> Store:
    """The store of a header that follows the format's own rules."""
    header.pop("__metadata__", None)
    try:
        places = {called: _as_place(entry, begin) for called, entry in header.items()}
    except Exception as error:
        raise _not_ours(name, error) from error
    if any(place.offset + prod(place.shape) * place.dtype.itemsize > end for place in places.values()):
        raise FileFormatError(f"{name} is damaged: an array reaches past its end")
    if KEY not in stored:
        raise FileFormatError(f"{name} holds tensors, but rankwise did not write it")
    return Store(name, *_about(name, stored[KEY]), places, identity)


@contextmanager
def _name_in_errors(name: str) -> Iterator[None]:
    """Turn an error of the system into one that names the file."""
    try:
        yield
    except OSError as error:
        raise FileFormatError(f"{name} cannot be read: {error.strerror or error}") from error


def _refuse_foreign(name: str, file: IO[bytes]) -> None:
    """Raise an error for files that are known to be something else."""
    with _name_in_errors(name):
        head = file.read(LONGEST)
    if not head:
        raise FileFormatError(f"{name} is not a rankwise file, or is damaged: it is empty")
    known = signature(head)
    if known is not None and known.called != STORE:
        raise FileFormatError(f"{name} is not a rankwise file, but {known.called}: {known.advice}")
    # the length of a header has zero bytes, which text does not
    if known is None and b"\0" not in head and len(head) > 8:
        raise FileFormatError(
            f"{name} is not a rankwise file, as save() writes it, but text: read_table, read_letor and read_columns "
            "read data, read_model reads models of other tools"
        )


def _not_ours(name: str, error: Exception) -> FileFormatError:
    return FileFormatError(f"{name} is not a rankwise file, or is damaged: {_first_line(error)}")


def identity_of(file: IO[bytes]) -> tuple[int, ...]:
    """Numbers that distinguish an open file from another one, and from itself after a change."""
    status = os.fstat(file.fileno())
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _as_place(entry: dict[str, Any], begin: int) -> _Place:
    """The place of an array from its entry in the header."""
    dtype, (first, last) = _TYPES[entry["dtype"]], entry["data_offsets"]
    place = _Place(dtype, tuple(entry["shape"]), begin + first)
    if first < 0 or prod(place.shape) * dtype.itemsize != last - first:
        raise ValueError(f"an array of shape {place.shape} and type {dtype} takes {last - first} bytes")
    return place


def _about(name: str, text: str) -> tuple[str, dict[str, Any]]:
    """(kind, facts) from the JSON under the key of rankwise."""
    try:
        about = json.loads(text)
        kind, version, number, facts = about["kind"], about["version"], about["format"], about["facts"]
        if not (isinstance(kind, str) and isinstance(number, int) and isinstance(facts, dict)):
            raise TypeError("kind, format or facts of another type")
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise FileFormatError(f"{name} is damaged: its description of itself cannot be read") from error
    if number > FORMAT:
        raise FileFormatError(
            f"{name} has format {number!s:.20}, written by rankwise {version!s:.20}; this is rankwise {__version__}, "
            f"which reads formats up to {FORMAT}: install a newer one"
        )
    return kind, facts


def _first_line(error: Exception) -> str:
    """The first line of an error message."""
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


# ----------------------------------------------------------------------------------------------------------- writing


class _Growing:
    """An array of unknown length whose bytes go directly to ``file``."""

    def __init__(self, file: IO[bytes], first: NDArray[Any]) -> None:
        self.file = file
        self.dtype = first.dtype
        self.row = first.shape[1:]
        self.length = 0

    def append(self, rows: NDArray[Any]) -> None:
        """Add rows of the same type and shape."""
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
        """The shape so far."""
        return (self.length, *self.row)

    @property
    def size(self) -> int:
        """The number of bytes so far."""
        return prod(self.shape) * self.dtype.itemsize


class StoreWriter:
    """Write one file, which appears under its name when it is complete, and not at all after an error.

    Arrays are appended to in any order and in pieces. The first one goes directly into the file, the others wait in
    temporary files (small ones in memory): memory stays bounded whatever the number of rows.

    Parameters
    ----------
    path : path or BytesIO
        The file, which may exist in memory alone.
    kind : str
        The kind of content.

    Attributes
    ----------
    metadata : dict
        Facts for JSON, read back as :attr:`Store.metadata`.

    Examples
    --------
    >>> with StoreWriter("numbers.rankwise", kind="numbers") as file:  # doctest: +SKIP
    ...     file.metadata["about"] = "two blocks"
    ...     for block in ([[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]):
    ...         file.append("X", block)
    """

    def __init__(self, path: str | os.PathLike[str] | BytesIO, kind: str) -> None:
        self.memory = path if isinstance(path, BytesIO) else None
        self.path = "a file in memory" if isinstance(path, BytesIO) else path
        self.kind = kind
        self.metadata: dict[str, Any] = {}
        self._arrays: dict[str, _Growing] = {}

    def __enter__(self) -> "StoreWriter":
        with ExitStack() as opened, refusing(self.path):
            if self.memory is not None:
                self._file: IO[bytes] = self.memory
            else:
                part = opened.enter_context(atomic_write(self.path))
                self._folder = str(part.parent)
                self._file = opened.enter_context(open(part, "w+b"))
            self._file.seek(_RESERVED)
            self._opened = opened.pop_all()
        return self

    def append(self, name: str, rows: ArrayLike) -> None:
        """Add rows to an array; the first rows fix its type and the shape of a row.

        Parameters
        ----------
        name : str
            The array.
        rows : array-like, shape (n_rows, ...)
            The rows.
        """
        array = np.asarray(rows)
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        if array.dtype not in _NAMES or not array.ndim:
            raise RankwiseError(f"{name} cannot be stored: it has type {array.dtype} and {array.ndim} dimensions")
        with refusing(self.path):
            if name not in self._arrays:
                self._arrays[name] = _Growing(self._spool() if self._arrays else self._file, array)
            self._arrays[name].append(array)

    def length(self, name: str) -> int:
        """The number of rows of an array so far."""
        return self._arrays[name].length if name in self._arrays else 0

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is not None:
            with refusing(self.path):  # closing writes what still waits in memory
                self._opened.__exit__(kind, error, trace)
            return
        with refusing(self.path), self._opened:
            self._finish()

    def _spool(self) -> IO[bytes]:
        """A temporary file, in memory while it is small."""
        if self.memory is not None:
            return BytesIO()
        return self._opened.enter_context(SpooledTemporaryFile(_SPOOL, dir=self._folder))

    def _finish(self) -> None:
        """Put the other arrays behind the first one, the widest types first, and the header before all."""
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
        """The JSON header with the places of all arrays."""
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


# -------------------------------------------------------------------------------------------------------------- digests


def canonical_json(value: Any) -> str:
    """The JSON text of a value, with sorted keys; what JSON cannot hold enters by its ``repr``."""
    return json.dumps(value, sort_keys=True, default=repr)


def digest_state(facts: Any, arrays: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 of JSON values and of arrays by name, with their types and shapes.

    Parameters
    ----------
    facts : object
        The JSON values.
    arrays : mapping of str to ndarray
        The arrays.

    Returns
    -------
    str
        64 hexadecimal digits, which do not depend on the order of the keys.
    """
    digest = hashlib.sha256(canonical_json(facts).encode())
    for name, array in sorted(arrays.items()):
        contiguous = np.ascontiguousarray(array)
        digest.update(f"{name} {contiguous.dtype.str} {contiguous.shape}".encode())
        digest.update(contiguous.tobytes())
    return digest.hexdigest()


def digest_bytes(*parts: bytes) -> str:
    """BLAKE2b of some bytes, as 32 hexadecimal digits."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        # the length keeps ("ab", "c") and ("a", "bc") apart
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()
