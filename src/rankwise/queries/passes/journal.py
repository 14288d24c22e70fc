"""The checkpoint of a long fit: a journal of pass results, from which a restart replays the run to the same bits.

Solvers here are deterministic: what they do next depends on the results of passes alone. So a restart runs the same
solver again and takes the results that are in the journal in place of computing them. The weights that it ends with are
equal to the last bit to those of an undisturbed run, whenever the first one was killed.

A record is appended as a whole: length, key, arrays, checksum. A record that was cut off, and everything behind it, is
dropped at the next start. The first record says what the fit is about, and another fit is refused by name.
"""

import hashlib
import io
import json
import os
import struct
import threading
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from rankwise._files import take_lock
from rankwise.errors import FileFormatError, RankwiseError
from rankwise.queries.passes.work import Work

_NAME = "passes.journal"
_MAGIC = b"rankwise journal 1\n"
_HEAD = struct.Struct("<QI")
# Results of more bytes are computed again: reading them back would take as long.
_LARGEST = 1 << 26

Result = tuple[Any, ...]


class Journal:
    """The pass results of one fit, in a folder.

    Parameters
    ----------
    folder : path
        The folder, which is made if it does not exist.
    about : mapping of str to str
        What the fit is about, by name: the data set, the ranker, its parameters.

    Raises
    ------
    RankwiseError
        If the folder holds the checkpoint of another fit, or another process is using it.
    """

    def __init__(self, folder: "str | os.PathLike[str]", about: Mapping[str, str]) -> None:
        path = Path(folder) / _NAME
        path.parent.mkdir(parents=True, exist_ok=True)
        self._found: dict[bytes, Result] = {}
        self._lock = threading.Lock()
        self._file: BinaryIO = open(path, "a+b")  # noqa: SIM115 - closed by close()
        try:
            # the system gives the lock back when the process ends, however that happens
            if take_lock(self._file.fileno()) is None:
                raise RankwiseError(f"{path.parent} is in use by another fit")
            self._read(path, dict(about))
        except BaseException:
            self._file.close()
            raise
        self.path = path

    def __len__(self) -> int:
        return len(self._found)

    def _read(self, path: Path, about: dict[str, str]) -> None:
        self._file.seek(0)
        magic = self._file.read(len(_MAGIC))
        if magic != _MAGIC[: len(magic)]:
            raise FileFormatError(f"{path} is not a checkpoint of rankwise: pass a folder of its own")
        head = _record(self._file) if magic == _MAGIC else None
        if head is None:  # new, or cut off before anything was known
            self._file.truncate(0)
            self._write(_MAGIC + _frame(json.dumps(about, sort_keys=True).encode()))
            return
        known = json.loads(head)
        for name in about:
            if about.get(name) != known.get(name):
                raise RankwiseError(
                    f"{path.parent} is the checkpoint of a fit with {name} {known.get(name, 'unknown')!s:.200}, and "
                    f"this one has {about.get(name, 'none')!s:.200}: give another folder, or delete this one"
                )
        whole = self._file.tell()
        while (record := _record(self._file)) is not None:
            self._found[record[:16]] = _arrays(record[16:])
            whole = self._file.tell()
        self._file.truncate(whole)

    def _write(self, data: bytes) -> None:
        self._file.seek(0, os.SEEK_END)
        self._file.write(data)
        self._file.flush()

    @staticmethod
    def key(work: Work, arguments: Sequence[Any]) -> bytes:
        """A digest of a pass: the job, the weights of the queries and the arguments; the data set is checked once."""
        found = vars(work).get("digest")
        if found is None:
            found = hashlib.blake2b(digest_size=16)
            for one in (getattr(work.source, "identity", ""), work.job, work.chunks, work.weight):
                _add(found, one)
            vars(work)["digest"] = found
        found = found.copy()
        _add(found, tuple(arguments))
        return bytes(found.digest())

    def get(self, key: bytes) -> Result | None:
        """The recorded result of a pass, or None."""
        return self._found.get(key)

    def add(self, key: bytes, result: Result) -> None:
        """Record the result of a pass."""
        with self._lock:
            if key in self._found or sum(np.asarray(one).nbytes for one in result) > _LARGEST:
                return
            stored = io.BytesIO()
            for one in result:
                np.lib.format.write_array(stored, np.asarray(one), allow_pickle=False)
            self._write(_frame(key + stored.getvalue()))
            self._found[key] = result

    def close(self) -> None:
        """Close the file; the journal stays for a restart."""
        self._file.close()


def _frame(data: bytes) -> bytes:
    return _HEAD.pack(len(data), zlib.crc32(data)) + data


def _record(file: BinaryIO) -> bytes | None:
    """The next record, or None if there is none or it is damaged."""
    head = file.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    length, checksum = _HEAD.unpack(head)
    rest = os.fstat(file.fileno()).st_size - file.tell()
    if length > rest:
        return None
    data = file.read(length)
    return data if len(data) == length and zlib.crc32(data) == checksum else None


def _arrays(data: bytes) -> Result:
    stored, found = io.BytesIO(data), []
    while stored.tell() < len(data):
        one = np.lib.format.read_array(stored, allow_pickle=False)
        found.append(float(one) if one.ndim == 0 else one)
    return tuple(found)


def digest_of(value: Any) -> bytes:
    """A digest of numbers and arrays, whatever they are nested in."""
    found = hashlib.blake2b(digest_size=16)
    _add(found, value)
    return found.digest()


def _add(found: Any, value: Any) -> None:
    """Add a value to a digest: arrays by their bytes, dataclasses by their fields."""
    if isinstance(value, np.ndarray):
        found.update(f"{value.dtype.str}{value.shape}".encode())
        found.update(np.ascontiguousarray(value).tobytes())
    elif is_dataclass(value) and not isinstance(value, type):
        found.update(repr(type(value)).encode())
        for one in fields(value):
            _add(found, getattr(value, one.name))
    elif isinstance(value, (tuple, list)):
        found.update(f"{len(value)}(".encode())
        for one in value:
            _add(found, one)
    elif callable(value) and hasattr(value, "__qualname__"):  # its representation has an address
        found.update(f"{value.__module__}.{value.__qualname__}".encode())
    else:
        found.update(repr(value).encode())
