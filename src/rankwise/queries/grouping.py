"""Ids, and from them to the ragged layout: query q owns ``rows[start[q]:start[q+1]]``.

Ids are any hashables, in any row order; queries are numbered by first appearance. :func:`by_id` groups by ids,
:func:`by_size` by the sizes of consecutive queries, :func:`by_run` by runs of rows with one id, and :func:`as_layout`
checks a layout that a caller gives. ``rows`` is None where the input is already grouped: the common case stores
and copies nothing. :class:`StringColumn` holds the ids of many documents in little memory.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._tables import ShownAsFacts
from rankwise.errors import DataError, in_one_line, warn


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


_LONGEST = 256  # letters of an id up to which all ids may take the memory of the longest


class Grouping(NamedTuple):
    """The layout of queries, and their ids.

    Attributes
    ----------
    start : ndarray of int64, shape (n_queries + 1,)
        The offsets of the queries in ``rows``.
    rows : ndarray of int64, shape (n_documents,), or None
        The row numbers, query after query; None where the rows are grouped.
    qid : ndarray, shape (n_queries,), or None
        The query ids.
    """

    start: NDArray[np.int64]
    rows: NDArray[np.int64] | None
    qid: NDArray[Any] | None


def by_size(group: ArrayLike, n_rows: int) -> Grouping:
    """Consecutive queries of the given sizes (LightGBM's and XGBoost's ``group``)."""
    sizes = as_sizes(group, n_rows)
    start = offsets(sizes)
    # No size is above n_rows < 2^63, so the first sum that leaves 64 bits is negative: a total that wraps to n_rows
    # is caught.
    if start[-1] != n_rows or start.min() < 0:
        raise DataError(_wrong_total(sizes.tolist(), n_rows))
    return Grouping(start, None, None)


def as_sizes(group: ArrayLike, n_rows: int) -> NDArray[np.int64]:
    """Sizes of queries as int64, each between 0 and the number of rows.

    Every size is compared with the number of rows before sizes are added, because sums of 64 bits wrap around.
    """
    try:
        sizes = np.asarray(group)
    except Exception as error:  # foreign objects and ragged lists raise anything
        raise DataError(f"group must hold query sizes, whole numbers in one dimension: {in_one_line(error)}") from error
    masked = isinstance(group, np.ma.MaskedArray) and bool(np.ma.getmaskarray(group).any())
    if sizes.dtype.kind == "O" and sizes.ndim == 1:  # Python's whole numbers of any size, as some tables give them
        whole = all(isinstance(size, (int, np.integer)) and not isinstance(size, bool) for size in sizes)
    else:
        whole = sizes.dtype.kind in "iu" or sizes.shape == (0,)
    if sizes.ndim != 1 or not whole or masked:
        found = "masked values" if masked else describe(sizes)
        raise DataError(f"group must hold query sizes, whole numbers in one dimension, got {found}")
    if len(sizes) and sizes.min() < 0:
        raise DataError(f"query sizes in group must be 0 or more, got {sizes.min()} at position {int(sizes.argmin())}")
    if len(sizes) and sizes.max() > n_rows:
        raise DataError(_wrong_total(list(map(int, sizes)), n_rows))
    return sizes.astype(np.int64)


def warn_of_empty(sizes: NDArray[np.int64], name: str) -> None:
    """Warn of queries without documents: such sizes are more often offsets or a mistake than intended."""
    empty = np.flatnonzero(sizes == 0)
    if len(empty):
        several = f" and {len(empty) - 1:,} more" if len(empty) > 1 else ""
        warn(
            f"{name} holds the size 0 at position {int(empty[0]):,}{several}: a query without documents counts as a "
            "query and has nothing to rank; leave such sizes out"
        )


def _wrong_total(sizes: list[int], n_rows: int) -> str:
    """The message for sizes with another sum; Python's own integers are added, which never wrap around."""
    hint = " (query ids go into qid=)" if len(sizes) == n_rows else ""
    return f"the sizes in group add up to {_figure(sum(sizes))}, but there are {n_rows:,} rows{hint}"


def _figure(number: int) -> str:
    """A whole number for a message; very long numbers are abbreviated."""
    return f"{number:,}" if number < 10**30 else "more than 10^30"


def as_layout(start: ArrayLike, rows: ArrayLike | None, n_rows: int) -> Grouping:
    """The layout that a caller gives: offsets from 0 to the number of rows, and every row once."""
    first = _whole_numbers(start)
    if first is None or not climbs(first, n_rows):
        raise DataError(
            f"start must hold offsets that climb from 0 to the number of rows, {n_rows:,}; {_slip(start, n_rows)}"
        )
    if rows is None:
        return Grouping(first.astype(np.int64), None, None)
    order = _whole_numbers(rows)
    if order is None or order.shape != (n_rows,):
        raise DataError(f"rows must hold every row number once, {n_rows:,} of them, got {describe(rows)}")
    inside = (order >= 0) & (order < n_rows)
    seen = np.zeros(n_rows, dtype=bool)
    seen[order[inside].astype(np.int64)] = True
    if not inside.all():
        place = int(np.argmin(inside))
        raise DataError(f"rows must hold every row number once, got {order[place]} at position {place:,} of {n_rows:,}")
    if not seen.all():
        raise DataError(f"rows must hold every row number once, but row {int(np.argmin(seen)):,} is missing")
    return Grouping(first.astype(np.int64), order.astype(np.int64), None)


def as_query_ids(qid: ArrayLike | Sequence[Any], n_queries: int) -> NDArray[Any]:
    """One id per query, without repeats."""
    ids = as_ids(qid, "qid")
    if len(ids) != n_queries:
        raise DataError(
            f"qid must hold one id per query, got {len(ids):,} ids for {n_queries:,} queries; pass ids of rows to "
            "Queries.from_arrays(X, y, qid=ids)"
        )
    code, first = number_by_appearance(ids) if n_queries else (np.zeros(0, np.int64), np.zeros(0, np.int64))
    if len(first) < n_queries:
        again = int(np.argmax(code != np.arange(n_queries)))
        raise DataError(f"qid holds {ids.tolist()[again]!r} twice: rows with one id are one query")
    return ids


def _whole_numbers(values: Any) -> NDArray[Any] | None:
    """A one-dimensional array of whole numbers, or None where the values are not one."""
    try:
        array = np.asarray(values)
    except Exception:  # foreign objects and ragged lists raise anything
        return None
    return array if array.ndim == 1 and array.dtype.kind in "iu" else None


def climbs(first: NDArray[Any], end: int) -> bool:
    """Whether offsets lead from 0 to ``end`` without a step back."""
    return bool(len(first) and first[0] == 0 and first[-1] == end and (first[1:] >= first[:-1]).all())


def _slip(start: Any, n_rows: int) -> str:
    """A message about what was passed in place of offsets, and the argument that takes it."""
    try:
        length = len(start)
    except TypeError:
        return f"got {describe(start)}"
    if length == n_rows:
        return "got one value per row: pass query ids as Queries.from_arrays(X, y, qid=ids), sizes as group="
    sizes = _whole_numbers(start)
    if sizes is not None and sum(map(int, sizes)) == n_rows:
        return f"got {length:,} numbers that add up to it: pass sizes as Queries.from_arrays(X, y, group=sizes)"
    return f"got {describe(start)}"


def by_id(qid: ArrayLike | Sequence[Any], n_rows: int) -> Grouping:
    """Group rows by their ids, in any order."""
    ids = as_ids(qid, "qid")
    if len(ids) != n_rows:
        raise DataError(f"qid must hold one id per row, got {len(ids):,} ids for {n_rows:,} rows")
    if n_rows == 0:
        return Grouping(np.zeros(1, dtype=np.int64), None, ids)
    # objects are compared as a dictionary compares them, by hash and equality
    comparable = number_by_appearance(ids)[0] if ids.dtype.kind == "O" else ids
    head = np.flatnonzero(np.concatenate([[True], comparable[1:] != comparable[:-1]]))
    return by_run(head, ids[head], n_rows)


def by_run(head: NDArray[np.int64], ids: NDArray[Any], n_rows: int) -> Grouping:
    """Group runs of rows, each given by its first row and its id; runs with the same id form one query."""
    code, _ = number_by_appearance(ids)
    changes = np.flatnonzero(np.concatenate([[True], code[1:] != code[:-1]]))  # neighbors may be one run in two pieces
    head, ids, code = head[changes], ids[changes], code[changes]
    _, first = np.unique(code, return_index=True)
    bounds = np.append(head, n_rows).astype(np.int64)
    if len(first) == len(code):
        return Grouping(bounds, None, ids)
    row_code = np.repeat(code, np.diff(bounds))
    return Grouping(offsets(np.bincount(row_code)), np.argsort(row_code, kind="stable").astype(np.int64), ids[first])


def as_ids(values: ArrayLike | Sequence[Any], name: str) -> NDArray[Any]:
    """A one-dimensional array of ids without missing values; tuples and other hashables are kept as objects."""
    try:
        is_array = isinstance(values, np.ndarray) or hasattr(values, "__array__")
        ids = np.asarray(values) if is_array else _of_one_kind(list(values))  # type: ignore[arg-type]
    except Exception as error:  # foreign objects raise anything
        raise DataError(f"{name} must hold one id per row: {in_one_line(error)}") from error
    if ids.ndim != 1:
        raise DataError(f"{name} must have one dimension, got {describe(ids)}")
    missing = np.isnan(ids) if ids.dtype.kind in "fcmM" else np.zeros(0, dtype=bool)
    if ids.dtype.kind == "O":
        missing = np.array([_is_missing(value) for value in ids], dtype=bool)
    if missing.any():
        raise DataError(f"{name} is missing (None or NaN) at row {int(np.argmax(missing)):,}")
    return ids


def number_by_appearance(ids: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """``(code, first)``: the number of every id in order of first appearance, and where every number appears first."""
    if ids.dtype.kind == "O":
        known: dict[Any, int] = {}
        try:
            code = np.array([known.setdefault(value, len(known)) for value in ids], dtype=np.int64)
        except TypeError as error:
            raise DataError(f"query ids must be hashable: {in_one_line(error)}") from error
        return code, np.unique(code, return_index=True)[1].astype(np.int64)
    _, first, code = np.unique(ids, return_index=True, return_inverse=True)
    appearance = np.argsort(first, kind="stable")
    number = np.empty(len(first), dtype=np.int64)
    number[appearance] = np.arange(len(first))
    return number[code.reshape(-1)], first[appearance].astype(np.int64)


def _of_one_kind(items: list[Any]) -> NDArray[Any]:
    """Whole numbers, real numbers or texts as an array of that type; anything else, or a mixture, as objects."""
    kinds = set(map(type, items))
    for family, letters in (((int, np.integer), "iu"), ((float, np.floating), "f"), ((str,), "U")):
        if all(issubclass(kind, family) and kind is not bool for kind in kinds):
            array = np.asarray(items)
            # NumPy turns whole numbers beyond 64 bits into others, and drops the zeros that end a text
            faithful = array.dtype.kind in letters and not (letters == "U" and any(text[-1:] == "\0" for text in items))
            return array if faithful or not items else _objects(items)
    return _objects(items)


def _is_missing(value: Any) -> bool:
    """Whether an id is None, NaN or another value that is not equal to itself."""
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):  # pandas.NA; arrays, which are refused later because they have no hash
        return not hasattr(value, "__len__")


def _objects(items: Sequence[Any]) -> NDArray[Any]:
    """An object array of the items, even where they are sequences."""
    array = np.empty(len(items), dtype=object)
    for place, item in enumerate(items):
        array[place] = item
    return array


def parse_ids(tokens: StringColumn) -> NDArray[Any]:
    """Ids as integers if each is written as one, otherwise as texts (``007`` stays ``007``)."""
    from rankwise._kernels.text.letor_rows import read_integers  # imports the compiler

    data = tokens.data.view()
    data.flags.writeable = False
    numbers = np.empty(len(tokens), dtype=np.int64)
    if read_integers(data, tokens.offset[:-1], np.diff(tokens.offset), numbers):
        return numbers
    texts = list(tokens)
    if max(map(len, texts)) > _LONGEST or any(text.endswith("\0") for text in texts):  # NumPy drops zeros at the end
        return np.array([*texts, None], dtype=object)[:-1]
    return np.array(texts, dtype=str)
