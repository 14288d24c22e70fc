"""Group the rows of any sources by query in bounded memory, queries in order of first appearance.

1. Rows are read block by block, and their queries numbered (:class:`QueryNumbers`). Each block goes to a temporary file
   with the numbers of its rows.
2. Now the size of every query is known. Consecutive queries form *ranges* that fit into memory. Where the rows of a
   range are spread over much of the file, rows are first distributed to one file per range.
3. Range after range, the rows are put into the order of their queries, and within a query of their appearance.

So the result is `Queries` of the same rows, whatever the order of the rows, the cut into sources and the memory.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels.text.letor_rows import read_integers
from rankwise.errors import DataError, FileFormatError
from rankwise.queries import checks
from rankwise.queries.checks import Missing
from rankwise.queries.grouping import StringColumn, offsets, parse_ids
from rankwise.queries.parts.query_numbers import QueryNumbers
from rankwise.queries.parts.spool import IdSpool, Rows, Spool
from rankwise.queries.queries import Queries

# Bytes of rows that are put into order together; about three times as many are in memory.
RANGE_BYTES = 128 << 20
# Files that rows are distributed to; ranges grow where there would be more.
_MOST_FILES = 512
# Distribute the rows if the ranges would otherwise read the file more often than this.
_READ_TWICE = 2.0

IdKind = Literal["written", "whole", "real", "text"]


@dataclass(frozen=True)
class SourceBlock:
    """Consecutive rows of a source.

    Attributes
    ----------
    rows : Rows
        The rows; their numbers are not used.
    ids : StringColumn
        The query ids of the runs of rows.
    head : ndarray of int64, or None
        The first row of every run; None if there is an id for every row.
    kind : {"written", "whole", "real", "text"}
        What the ids are: texts that count as integers if all of them are written so, whole numbers, real numbers, or
        texts.
    source : str
        The name of the source, for messages.
    feature_names : tuple of str, or None
        The names of the features.
    """

    rows: Rows
    ids: StringColumn
    head: NDArray[np.int64] | None
    kind: IdKind
    source: str
    feature_names: tuple[str, ...] | None = None


class _Form(NamedTuple):
    """The facts that all blocks share, and the source of the first one."""

    source: str
    labelled: bool
    weighted: bool
    feature_names: tuple[str, ...] | None


class Regrouped:
    """Rows of any order, which :meth:`queries` gives back query by query.

    Parameters
    ----------
    folder : Path
        An empty folder for temporary files, as large as the rows in binary form.
    dtype : str
        The type of the features.
    missing : {"error", "zero", "min", "keep"}
        What to do with features that are not finite.
    range_bytes : int, default=134217728
        Bytes of rows that are put into order together.
    """

    def __init__(self, folder: Path, dtype: str, missing: Missing, range_bytes: int = RANGE_BYTES) -> None:
        self._folder, self._dtype, self._missing, self._range_bytes = folder, dtype, missing, range_bytes
        self._spool, self._ids, self._numbers = Spool(folder / "rows", dtype), IdSpool(folder), QueryNumbers()
        self._sizes = np.zeros(1024, np.int64)
        self._kinds: set[IdKind] = set()
        self._integers = True
        self._form: _Form | None = None
        self._documented = False

    @property
    def rows(self) -> int:
        """The number of rows so far."""
        return self._spool.rows

    @property
    def bytes(self) -> int:
        """The bytes of rows in binary form so far."""
        return self._spool.bytes

    def __len__(self) -> int:
        """The number of queries so far."""
        return len(self._numbers)

    def append(self, block: SourceBlock) -> None:
        """Take more rows.

        Parameters
        ----------
        block : SourceBlock
            Rows with the features of the first block, and with labels and query weights exactly if it has them.
        """
        rows = block.rows
        if not len(rows.X):
            return
        self._check(block)
        number, new = self._numbers.number(block.ids)
        fresh = block.ids[new]
        if len(new):
            self._ids.append(fresh)
            self._integers = self._integers and _are_integers(fresh)
            self._kinds.add(block.kind)
        if block.head is not None:
            number = np.repeat(number, np.diff(np.append(block.head, len(rows.X))))
        self._count(number)
        self._spool.append(Rows(number, rows.X, rows.y, rows.docid, rows.weight, rows.document_weight, rows.base))
        self._documented = self._documented or rows.docid is not None

    def _check(self, block: SourceBlock) -> None:
        """Refuse a block that does not fit to the first one."""
        own = _Form(block.source, block.rows.y is not None, block.rows.weight is not None, block.feature_names)
        if self._form is None:
            self._form = own
        first = self._form
        for what, here, there in (
            ("labels", own.labelled, first.labelled),
            ("query weights", own.weighted, first.weighted),
            ("feature names", own.feature_names is not None, first.feature_names is not None),
        ):
            if here != there:
                having, lacking = (own.source, first.source) if here else (first.source, own.source)
                raise DataError(f"{having} has {what} and {lacking} has none: convert them separately")
        if own.feature_names != first.feature_names:
            raise DataError(f"{own.source} has other features than {first.source}")

    def _count(self, number: NDArray[np.int64]) -> None:
        """Add rows to the sizes of their queries."""
        if len(self._numbers) > len(self._sizes):
            larger = np.zeros(max(len(self._numbers), 2 * len(self._sizes)), np.int64)
            larger[: len(self._sizes)] = self._sizes
            self._sizes = larger
        which, count = np.unique(number, return_counts=True)
        self._sizes[which] += count

    # ------------------------------------------------------------------------------------------- query by query

    def queries(self, on_rows: Callable[[int, int], object] | None = None) -> Iterator[Queries]:
        """All queries in order of first appearance, in blocks that fit into memory.

        Parameters
        ----------
        on_rows : callable, default=None
            Receives the number of rows and of bytes each time some have been put into order.

        Yields
        ------
        block : Queries
            Whole queries, their rows grouped.
        """
        if self._form is None:
            raise DataError("the sources have no rows")
        base, width = self._columns()
        self._check_disk(width)
        ranges = self._ranges(width)
        read = sum(segment.bytes for first, last in ranges for segment in self._spool.overlapping(first, last))
        if read <= _READ_TWICE * self._spool.bytes:
            spools: Iterable[Spool] = [self._spool] * len(ranges)
        else:
            spools = self._distribute(ranges)
        for (first, last), spool in zip(ranges, spools, strict=True):
            block = self._range(spool, first, last, base, width)
            if spool is not self._spool:
                spool.remove()
            yield block
            if on_rows is not None:
                on_rows(block.n_documents, block.X.nbytes)

    def _columns(self) -> tuple[int, int]:
        """(first feature, number of features) of all blocks together: texts may end at different features."""
        segments = self._spool.segments
        base = min(segment.base for segment in segments)
        return base, max(segment.base + segment.width for segment in segments) - base

    def _check_disk(self, width: int) -> None:
        """Refuse to begin what cannot end: files of rows, and the parts."""
        needed = self._spool.bytes + self._spool.rows * (width * np.dtype(self._dtype).itemsize + 16)
        free = shutil.disk_usage(self._folder).free
        if needed > free:
            raise FileFormatError(
                f"{self._folder.parent} has {free / 2**30:,.1f} GiB left, and up to {needed / 2**30:,.1f} GiB more are "
                "needed to group the rows and to write the parts"
            )

    def _ranges(self, width: int) -> list[tuple[int, int]]:
        """Ranges of queries that fit into memory, each at least one query."""
        sizes = self._sizes[: len(self._numbers)]
        per_row = max(1.0, self._spool.bytes / self._spool.rows, width * np.dtype(self._dtype).itemsize)
        rows = int(max(self._range_bytes, per_row * self._spool.rows / _MOST_FILES) / per_row) + 1
        start = offsets(sizes)
        bounds = [0]
        while bounds[-1] < len(sizes):
            end = int(np.searchsorted(start, start[bounds[-1]] + rows, side="right")) - 1
            bounds.append(max(end, bounds[-1] + 1))
        return list(pairwise(bounds))

    def _distribute(self, ranges: list[tuple[int, int]]) -> list[Spool]:
        """The rows in one file per range."""
        spools = [Spool(self._folder / f"range-{number}", self._dtype) for number in range(len(ranges))]
        ends = np.array([last for _, last in ranges])
        for segment in self._spool.segments:
            rows = self._spool.read(segment)
            owner = np.searchsorted(ends, rows.number, side="right")
            order = np.argsort(owner, kind="stable")
            rows, owner = rows.at(order), owner[order]
            edges = [0, *(np.flatnonzero(np.diff(owner)) + 1).tolist(), len(owner)]
            for first, last in pairwise(edges):
                spools[owner[first]].append(rows.at(slice(first, last)))
        self._spool.remove()
        return spools

    def _range(self, spool: Spool, first: int, last: int, base: int, width: int) -> Queries:
        """The queries first..last-1."""
        assert self._form is not None
        start = offsets(self._sizes[first:last])
        n_rows = int(start[-1])
        filled = start[:-1].copy()  # where the next row of every query goes
        X: Any = np.zeros((n_rows, width), self._dtype)
        y = np.empty(n_rows) if self._form.labelled else None
        weight = np.empty(n_rows) if self._form.weighted else None
        document_weight: NDArray[np.float64] | None = None
        texts: list[tuple[NDArray[np.int64], StringColumn | None]] = []
        for rows in spool.among(first, last):
            place = _places(rows.number - first, filled)
            X[place, rows.base - base : rows.base - base + rows.X.shape[1]] = rows.X
            if y is not None:
                y[place] = rows.y
            if weight is not None:
                weight[place] = rows.weight
            if rows.document_weight is not None:
                document_weight = np.ones(n_rows) if document_weight is None else document_weight
                document_weight[place] = rows.document_weight
            if self._documented:
                texts.append((place, rows.docid))
        names = checks.as_names(self._form.feature_names, width)
        return Queries._trusted(
            checks.fill_missing(X, start, None, self._missing, names),
            y,
            start,
            weight=None if weight is None else self._query_weights(weight, start, first),
            qid=self._names(first, last),
            docid=_texts_at(texts, n_rows) if self._documented else None,
            feature_names=names,
            document_weight=document_weight,
        )

    def _names(self, first: int, last: int) -> NDArray[Any]:
        """The ids of queries first..last-1, as `Queries` of the whole data set have them."""
        texts = self._ids.read(first, last)
        if self._kinds <= {"written", "whole"} and self._integers:
            return parse_ids(texts)
        if self._kinds == {"whole"}:
            return np.array(list(map(int, texts)))
        if self._kinds == {"real"}:
            return np.array(list(map(float, texts)))
        found = parse_ids(texts)
        return found.astype(str) if found.dtype.kind == "i" else found

    def _query_weights(self, weight: NDArray[np.float64], start: NDArray[np.int64], first: int) -> NDArray[np.float64]:
        """One weight per query from one weight per row."""
        one = weight[start[:-1]]
        other = np.flatnonzero(weight != np.repeat(one, np.diff(start)))
        if len(other):
            query = int(np.searchsorted(start, other[0], side="right")) - 1
            name = self._names(first + query, first + query + 1)[0]
            raise DataError(
                f"a query must have one weight, got {one[query]:g} and {weight[other[0]]:g} within query {name!r}"
            )
        return checks.as_weights(one, len(one)) if one.any() else one


def _places(query: NDArray[np.int64], filled: NDArray[np.int64]) -> NDArray[np.int64]:
    """The places of the rows of these queries, in their order; ``filled`` moves on."""
    order = np.argsort(query, kind="stable")
    which, begin, count = np.unique(query[order], return_index=True, return_counts=True)
    place = np.empty(len(query), np.int64)
    within = np.arange(len(query)) - np.repeat(begin, count)
    place[order] = np.repeat(filled[which], count) + within
    filled[which] += count
    return place


def _texts_at(texts: list[tuple[NDArray[np.int64], StringColumn | None]], n_rows: int) -> StringColumn:
    """Document ids in the order of the rows; empty where a block has none."""
    every = StringColumn.concat(StringColumn.empty(len(at)) if column is None else column for at, column in texts)
    order = np.empty(n_rows, np.int64)
    order[np.concatenate([at for at, _ in texts])] = np.arange(n_rows)
    return every[order]


def _are_integers(ids: StringColumn) -> bool:
    """Whether each id is written as an integer of 64 bits would be."""
    data = ids.data.view()
    data.flags.writeable = False
    return bool(read_integers(data, ids.offset[:-1], np.diff(ids.offset), np.empty(len(ids), np.int64)))
