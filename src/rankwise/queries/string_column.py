"""A column of texts as one block of UTF-8 bytes and offsets: millions of ids without millions of objects.

:func:`offsets` and :func:`describe` are the two small functions that every ragged array of the package needs.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._tables import ShownAsFacts
from rankwise.errors import DataError, in_one_line


class StringColumn(ShownAsFacts):
    """Texts 0..n-1; text i is ``data[offset[i]:offset[i+1]]`` in UTF-8.

    A column behaves as a sequence of ``str``. A slice, mask or index array gives a `StringColumn` again, and
    ``numpy.asarray`` gives an object array. Bytes that are not UTF-8 are kept (``surrogateescape``).

    Parameters
    ----------
    data : ndarray of uint8
        The bytes of all texts.
    offset : ndarray of int64, shape (n_texts + 1,)
        Where the texts begin, climbing, and where the last one ends.

    Examples
    --------
    >>> names = StringColumn.of(["d1", "d2", "d3"])
    >>> names[1], list(names[[2, 0]])
    ('d2', ['d3', 'd1'])
    """

    __slots__ = ("data", "offset")

    def __init__(self, data: NDArray[np.uint8], offset: NDArray[np.int64]) -> None:
        if not (isinstance(data, np.ndarray) and data.ndim == 1 and data.dtype == np.uint8):
            raise DataError(
                f"the bytes of a StringColumn must be a one-dimensional array of uint8, got {describe(data)}"
            )
        if not (isinstance(offset, np.ndarray) and offset.ndim == 1 and offset.dtype == np.int64 and len(offset)):
            raise DataError(
                f"the offsets of a StringColumn must be a one-dimensional array of int64, got {describe(offset)}"
            )
        if offset[0] < 0 or offset[-1] > len(data) or (offset[1:] < offset[:-1]).any():
            raise DataError(
                f"the offsets of a StringColumn must climb from 0 or more to at most {len(data):,}, the number of bytes"
            )
        self.data = data
        self.offset = offset

    @classmethod
    def _trusted(cls, data: NDArray[np.uint8], offset: NDArray[np.int64]) -> "StringColumn":
        """A column of checked arrays: parts of other columns."""
        texts = object.__new__(cls)
        texts.data, texts.offset = data, offset
        return texts

    @classmethod
    def of(cls, texts: Iterable[Any]) -> "StringColumn":
        """Make a column of any identities.

        Parameters
        ----------
        texts : iterable
            The identities; each is turned into its text by ``str``.

        Returns
        -------
        column : StringColumn
            One text per identity.
        """
        try:
            encoded = [str(text).encode("utf-8", "surrogateescape") for text in texts]
        except TypeError as error:  # not iterable, or an object without a text
            raise DataError(f"a StringColumn must be made of a list of texts: {in_one_line(error)}") from error
        except UnicodeEncodeError as error:
            raise DataError(f"{error.object!r} is not a text: it holds half of a surrogate pair") from error
        return cls.of_bytes(encoded)

    @classmethod
    def of_bytes(cls, words: Sequence[bytes]) -> "StringColumn":
        """Make a column of encoded texts.

        Parameters
        ----------
        words : sequence of bytes
            The texts in UTF-8.

        Returns
        -------
        column : StringColumn
            One text per word.
        """
        return cls(np.frombuffer(b"".join(words), dtype=np.uint8), offsets(np.fromiter(map(len, words), np.int64)))

    @classmethod
    def empty(cls, count: int) -> "StringColumn":
        """Make a column of empty texts.

        Parameters
        ----------
        count : int
            The number of texts.

        Returns
        -------
        column : StringColumn
            The column.
        """
        return cls(np.zeros(0, dtype=np.uint8), np.zeros(count + 1, dtype=np.int64))

    @classmethod
    def concat(cls, parts: Iterable["StringColumn"]) -> "StringColumn":
        """Join columns.

        Parameters
        ----------
        parts : iterable of StringColumn
            The columns, at least one.

        Returns
        -------
        column : StringColumn
            All texts of the parts, in order.
        """
        parts = list(parts)
        lengths = np.concatenate([np.diff(part.offset) for part in parts])
        data = np.concatenate([part.data[part.offset[0] : part.offset[-1]] for part in parts])
        return cls(data, offsets(lengths))

    def __len__(self) -> int:
        return len(self.offset) - 1

    @overload
    def __getitem__(self, key: int | np.integer[Any]) -> str: ...
    @overload
    def __getitem__(self, key: slice | list[int] | NDArray[Any]) -> "StringColumn": ...
    def __getitem__(self, key: Any) -> "str | StringColumn":
        if isinstance(key, (int, np.integer)):
            place = range(len(self))[int(key)]
            text = self.data[self.offset[place] : self.offset[place + 1]].tobytes()
            return text.decode("utf-8", "surrogateescape")
        if isinstance(key, slice) and key.step in (None, 1):
            first, last, _ = key.indices(len(self))
            return StringColumn._trusted(self.data, self.offset[first : max(first, last) + 1])
        places = np.arange(len(self))[key]
        if places.ndim != 1:
            raise IndexError(
                f"a StringColumn is indexed by a number, a slice, a mask or a list of numbers, got {key!r:.60}"
            )
        return self._take(places)

    def _take(self, places: NDArray[np.int64]) -> "StringColumn":
        """The texts at these places."""
        length = self.offset[places + 1] - self.offset[places]
        offset = offsets(length)
        # byte j of the result comes from its text's first byte plus its place inside the text
        source = np.repeat(self.offset[places] - offset[:-1], length) + np.arange(offset[-1])
        return StringColumn._trusted(self.data[source], offset)

    def __iter__(self) -> Iterator[str]:
        data = self.data[self.offset[0] : self.offset[-1]].tobytes()
        offset = (self.offset - self.offset[0]).tolist()
        return (data[first:last].decode("utf-8", "surrogateescape") for first, last in pairwise(offset))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        array = np.empty(len(self), dtype=object)
        array[:] = list(self)
        return array if dtype is None else array.astype(dtype)

    def __eq__(self, other: object) -> Any:
        if isinstance(other, StringColumn):
            return bool(np.array_equal(np.asarray(self), np.asarray(other)))
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(repr(self[place]) for place in range(min(3, len(self))))
        return f"StringColumn([{shown}{', ...' if len(self) > 3 else ''}], {len(self):,} texts)"


def offsets(lengths: ArrayLike) -> NDArray[np.int64]:
    """The offsets of consecutive pieces of these lengths: 0, l_0, l_0 + l_1, ..."""
    sums = np.cumsum(np.asarray(lengths, dtype=np.int64))
    return np.concatenate([np.zeros(1, np.int64), sums])


def describe(values: Any) -> str:
    """The shape and type of an array-like for an error message; the class of what is not one."""
    try:
        array = np.asarray(values)
    except Exception:  # foreign objects and ragged lists raise anything
        return f"a {type(values).__name__}"
    return f"an array of shape {array.shape} and type {array.dtype}"
