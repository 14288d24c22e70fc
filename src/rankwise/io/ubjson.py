"""Universal Binary JSON (UBJSON, draft 12), as XGBoost writes models: read into the values that JSON has.

Numbers are big-endian. A list or an object may say its length, and a list the type of its numbers, which then follow
without markers; such a list becomes a NumPy array. The file may be a stranger's: no length is believed that the rest
of the file cannot hold, so memory stays within a small multiple of the file.
"""

from typing import Any

import numpy as np

from rankwise.errors import FileFormatError

_NUMBERS = {
    kind: np.dtype(name) for kind, name in zip(b"iUIlLdD", ("i1", "u1", ">i2", ">i4", ">i8", ">f4", ">f8"), strict=True)
}
_WORDS = {ord("Z"): None, ord("T"): True, ord("F"): False}
_DEEPEST = 100


def read_ubjson(data: bytes) -> Any:
    """Read a value.

    Parameters
    ----------
    data : bytes
        The whole file.

    Returns
    -------
    value : object
        Dictionaries, lists, texts, numbers, True, False and None; an array for a list of numbers of one type.

    Raises
    ------
    FileFormatError
        If the data end early, hold a marker that is not known, are nested too deep, or have something after the value.
    """
    reader = _Reader(data)
    try:
        value = reader.value(reader.marker(), 0)
    except (IndexError, ValueError, UnicodeDecodeError) as error:
        raise FileFormatError(f"this is not UBJSON, or it is damaged near byte {reader.at:,}") from error
    if data[reader.at :].strip(b"N\0"):
        raise FileFormatError(f"this is not UBJSON, or it is damaged: something follows its end at byte {reader.at:,}")
    return value


class _Reader:
    """The bytes of a file, and the place that was reached."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def marker(self) -> int:
        """The next marker; those that mean nothing are skipped."""
        while True:
            found = self.data[self.at]
            self.at += 1
            if found != ord("N"):
                return found

    def take(self, length: int) -> bytes:
        """So many bytes."""
        if not 0 <= length <= len(self.data) - self.at:
            raise ValueError("a length that the file cannot hold")
        self.at += length
        return self.data[self.at - length : self.at]

    def length(self) -> int:
        """A number that counts."""
        kind = self.data[self.at]
        self.at += 1
        dtype = _NUMBERS[kind] if kind in _NUMBERS else np.dtype(object)
        if dtype.kind not in "iu":
            raise ValueError("a length that is no whole number")
        return int(np.frombuffer(self.take(dtype.itemsize), dtype)[0])

    def text(self) -> str:
        """A text without its marker."""
        return self.take(self.length()).decode()

    def value(self, kind: int, depth: int) -> Any:
        """The value behind a marker."""
        if kind in _WORDS:
            return _WORDS[kind]
        if kind in _NUMBERS:
            dtype = _NUMBERS[kind]
            return np.frombuffer(self.take(dtype.itemsize), dtype)[0].item()
        if kind == ord("S"):
            return self.text()
        if kind == ord("C"):
            return self.take(1).decode()
        if depth >= _DEEPEST or kind not in b"[{":
            raise ValueError("an unknown marker, or a value that is nested too deep")
        return self.listed(depth + 1) if kind == ord("[") else self.named(depth + 1)

    def header(self) -> tuple[int | None, int | None]:
        """The type and the number of the values of a list or an object, where it says so."""
        kind = None
        if self.data[self.at] == ord("$"):
            kind = self.data[self.at + 1]
            self.at += 2
            if self.data[self.at] != ord("#"):
                raise ValueError("a type without a number")
        if self.data[self.at] != ord("#"):
            return kind, None
        self.at += 1
        count = self.length()
        # values that take no bytes could be repeated without end
        if kind in _WORDS or not 0 <= count <= len(self.data) - self.at:
            raise ValueError("a number of values that the file cannot hold")
        return kind, count

    def listed(self, depth: int) -> Any:
        """The values of a list."""
        kind, count = self.header()
        if kind in _NUMBERS and count is not None:
            dtype = _NUMBERS[kind]
            found = np.frombuffer(self.take(count * dtype.itemsize), dtype)
            return found.astype(dtype.newbyteorder("="))
        values = []
        while count is None or len(values) < count:
            own = self.marker() if kind is None else kind
            if count is None and own == ord("]"):
                break
            values.append(self.value(own, depth))
        return values

    def named(self, depth: int) -> dict[str, Any]:
        """The values of an object by their names."""
        kind, count = self.header()
        values: dict[str, Any] = {}
        read = 0
        while count is None or read < count:
            if count is None and self.data[self.at] == ord("}"):
                self.at += 1
                break
            name = self.text()
            values[name] = self.value(self.marker() if kind is None else kind, depth)
            read += 1
        return values
