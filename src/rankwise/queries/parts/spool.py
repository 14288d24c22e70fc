"""Rows on their way to their queries: arrays in memory, and segments of them in a file on disk."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from rankwise._files import refusing
from rankwise.queries.checks import Floats
from rankwise.queries.grouping import StringColumn, offsets


@dataclass(frozen=True)
class Rows:
    """Rows, each with the number of its query.

    Attributes
    ----------
    number : ndarray of int64, shape (n_rows,)
        The number of the query of every row.
    X : ndarray, shape (n_rows, n_features)
        The features from ``base`` on.
    y : ndarray of float64, shape (n_rows,), or None
        The labels.
    docid : StringColumn or None
        The document ids.
    weight : ndarray of float64, shape (n_rows,), or None
        The query weights.
    document_weight : ndarray of float64, shape (n_rows,), or None
        The document weights.
    base : int
        The number of the first feature, 0 or 1; blocks of one text may differ.
    """

    number: NDArray[np.int64]
    X: Floats
    y: NDArray[np.float64] | None = None
    docid: StringColumn | None = None
    weight: NDArray[np.float64] | None = None
    document_weight: NDArray[np.float64] | None = None
    base: int = 0

    def at(self, places: Any) -> "Rows":
        """The rows at these places."""
        fields = ("number", "X", "y", "docid", "weight", "document_weight")
        return replace(self, **{name: _at(getattr(self, name), places) for name in fields})


def _at(column: Any, places: Any) -> Any:
    return None if column is None else column[places]


@dataclass(frozen=True)
class Segment:
    """The places of rows in a file.

    Attributes
    ----------
    at : int
        The first byte.
    rows, width, base : int
        The number of rows and of features, and the number of the first feature.
    least, most : int
        The smallest and the largest number of a query.
    sorted : bool
        Whether the numbers never fall.
    has : tuple of bool
        Whether there are labels, query weights and document weights.
    texts : int
        The bytes of the document ids; -1 if there are none.
    bytes : int
        The number of bytes of all arrays.
    """

    at: int
    rows: int
    width: int
    base: int
    least: int
    most: int
    sorted: bool
    has: tuple[bool, bool, bool]
    texts: int
    bytes: int


_VECTORS = ("y", "weight", "document_weight")


class Spool:
    """A file of rows, written segment after segment and read in any order.

    Parameters
    ----------
    path : Path
        The file, which is made when the first rows come.
    dtype : str
        The type of the features.
    """

    def __init__(self, path: Path, dtype: str) -> None:
        self._path, self._dtype = path, np.dtype(dtype)
        self.segments: list[Segment] = []
        self.rows = self.bytes = 0

    def append(self, rows: Rows) -> None:
        """Write rows behind the others.

        Parameters
        ----------
        rows : Rows
            One row at least; others are ignored.
        """
        if not len(rows.number):
            return
        with refusing(self._path), open(self._path, "ab") as file:
            before = self.bytes
            for array in self._arrays(rows):
                file.write(np.ascontiguousarray(array).data.cast("B") if array.size else b"")
                self.bytes += array.nbytes
        docid, number = rows.docid, rows.number
        self.segments.append(
            Segment(
                before,
                len(number),
                rows.X.shape[1],
                rows.base,
                int(number.min()),
                int(number.max()),
                bool((number[1:] >= number[:-1]).all()),
                (rows.y is not None, rows.weight is not None, rows.document_weight is not None),
                -1 if docid is None else int(docid.offset[-1] - docid.offset[0]),
                self.bytes - before,
            )
        )
        self.rows += len(number)

    def _arrays(self, rows: Rows) -> Iterator[NDArray[Any]]:
        """The arrays in the order in which they are written."""
        yield rows.number
        yield from (vector for name in _VECTORS if (vector := getattr(rows, name)) is not None)
        yield rows.X.astype(self._dtype, copy=False)
        if rows.docid is not None:
            yield rows.docid.offset - rows.docid.offset[0]
            yield rows.docid.data[rows.docid.offset[0] : rows.docid.offset[-1]]

    def read(self, segment: Segment) -> Rows:
        """The rows of a segment.

        Parameters
        ----------
        segment : Segment
            One of :attr:`segments`.

        Returns
        -------
        rows : Rows
            As they were written.
        """
        with refusing(self._path), open(self._path, "rb") as file:
            file.seek(segment.at)
            number = _read(file, np.int64, segment.rows)
            vectors = {
                name: _read(file, np.float64, segment.rows)
                for name, there in zip(_VECTORS, segment.has, strict=True)
                if there
            }
            X: Any = _read(file, self._dtype, segment.rows * segment.width).reshape(segment.rows, segment.width)
            docid = None
            if segment.texts >= 0:
                offset = _read(file, np.int64, segment.rows + 1)
                docid = StringColumn(_read(file, np.uint8, segment.texts), offset)
        return Rows(number, X, docid=docid, base=segment.base, **vectors)

    def among(self, first: int, last: int) -> Iterator[Rows]:
        """The rows of queries first..last-1, in the order in which they came.

        Parameters
        ----------
        first, last : int
            The range of numbers of queries.

        Yields
        ------
        rows : Rows
            The rows of one segment that belong to these queries.
        """
        for segment in self.overlapping(first, last):
            rows = self.read(segment)
            if segment.least >= first and segment.most < last:
                yield rows
            elif segment.sorted:
                yield rows.at(slice(*np.searchsorted(rows.number, [first, last])))
            else:
                yield rows.at((rows.number >= first) & (rows.number < last))

    def overlapping(self, first: int, last: int) -> list[Segment]:
        """The segments with rows of queries first..last-1, by the range of their numbers."""
        return [segment for segment in self.segments if segment.least < last and segment.most >= first]

    def remove(self) -> None:
        """Give the disk back."""
        self._path.unlink(missing_ok=True)


def _read(file: IO[bytes], dtype: Any, count: int) -> NDArray[Any]:
    """So many numbers from the place in a file."""
    found = np.fromfile(file, dtype, count)
    if len(found) < count:
        raise OSError("a temporary file was cut short")
    return found


class IdSpool:
    """The ids of queries in the order of their numbers, on disk.

    Parameters
    ----------
    folder : Path
        Where the files are made.
    """

    def __init__(self, folder: Path) -> None:
        self._texts, self._lengths = folder / "ids.texts", folder / "ids.lengths"
        # the byte at which every 4,096th id begins, so that a range is found without reading all lengths
        self._bytes = self._count = 0
        self._marks: list[int] = []
        self._every = 4096

    def append(self, ids: StringColumn) -> None:
        """Write the ids of the next queries."""
        lengths = np.diff(ids.offset)
        with refusing(self._texts), open(self._texts, "ab") as texts, open(self._lengths, "ab") as file:
            texts.write(ids.data[ids.offset[0] : ids.offset[-1]].tobytes())
            file.write(lengths.astype(np.int64).tobytes())
        begins = self._bytes + offsets(lengths)
        first = -self._count % self._every
        self._marks.extend(begins[first : len(lengths) : self._every].tolist())
        self._bytes, self._count = int(begins[-1]), self._count + len(ids)

    def read(self, first: int, last: int) -> StringColumn:
        """The ids of queries first..last-1."""
        if first >= last:
            return StringColumn.empty(0)
        mark = first // self._every
        begin = mark * self._every
        with refusing(self._texts), open(self._texts, "rb") as texts, open(self._lengths, "rb") as file:
            file.seek(8 * begin)
            lengths = _read(file, np.int64, last - begin)
            skipped = int(lengths[: first - begin].sum())
            offset = offsets(lengths[first - begin :])
            texts.seek(self._marks[mark] + skipped)
            return StringColumn(_read(texts, np.uint8, int(offset[-1])), offset)
