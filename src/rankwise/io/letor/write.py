"""Write judged queries as LETOR / SVMlight text that reads back bit for bit.

Rows are formatted in blocks on threads by the kernels of :mod:`rankwise._kernels.text.written` and written in order.
"""

import os
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise._files import writing_bytes
from rankwise._kernels import parallel
from rankwise._parameters import validated
from rankwise.errors import DataError
from rankwise.queries.checks import first_repeated, refuse_unjudged
from rankwise.queries.grouping import StringColumn
from rankwise.queries.queries import Queries, as_queries

BLOCK = 1 << 22  # bytes formatted together, at most
BATCH = 8  # blocks that may wait for the file
_BLANKS = b" \t\n\r\v\f"


@validated
def write_letor(queries: Queries, path: str | os.PathLike[str], *, sparse: bool = False) -> None:
    """Write ``label qid:id feature:value ... # docid``, one line per document, in the order of the rows.

    :func:`read_letor` gives back the same X and y, bit for bit (float32 if it is requested), and the same qids and
    docids. Feature ids begin at 1. The format carries neither feature names nor query weights. An id that is a text but
    is written as an integer comes back as that integer; queries without ids are numbered from 0. The file is written
    beside ``path`` and renamed when it is complete.

    Parameters
    ----------
    queries : Queries
        Queries with labels, without repeated ids and without blanks in ids.
    path : path
        The file, gzipped if it ends in ``.gz``.
    sparse : bool, default=False
        Whether zeros are left out.

    Examples
    --------
    >>> queries = Queries.from_arrays([[0.5, 0.0], [0.25, 1.0]], [2, 0], qid=["a", "a"], docid=["d1", "d2"])
    >>> write_letor(queries, "train.txt")  # doctest: +SKIP
    """
    refuse_unjudged(as_queries(queries, "write_letor"), "LETOR text")
    columns = _Columns.of(queries)
    with writing_bytes(path) as file:
        _write(columns, sparse, file)


class _Columns(NamedTuple):
    """The parts of all lines, as the compiled writer takes them."""

    X: NDArray[Any]
    y: NDArray[np.float64]
    query: NDArray[np.int64]
    qid: StringColumn
    docid: StringColumn

    @classmethod
    def of(cls, queries: Queries) -> "_Columns":
        """The columns of queries; ids that the format cannot hold raise an error."""
        qid = StringColumn.of(queries.names())
        names = list(qid)
        if (twice := first_repeated(names)) is not None:
            raise DataError(f"query {twice!r} occurs twice, and the two queries would become one")
        _refuse_blanks(qid, "query", b"#")
        if "" in names:
            raise DataError(f"query {names.index('')} has an empty id, which the format cannot hold")
        docid = StringColumn.of([]) if queries.docid is None else StringColumn.concat([queries.docid])
        docid.data.flags.writeable = False  # as the other arrays are: kernels are compiled for one of the two
        _refuse_blanks(docid, "document", b"")
        return cls(queries.X, queries.labels(), queries.query_of_row, qid, docid)


def _refuse_blanks(texts: StringColumn, what: str, others: bytes) -> None:
    """Refuse ids with a byte that would end them in the text."""
    bad = np.flatnonzero(np.isin(texts.data, np.frombuffer(_BLANKS + others, dtype=np.uint8)))
    if len(bad):
        name = texts[int(np.searchsorted(texts.offset, bad[0], side="right")) - 1]
        raise DataError(f"{what} {name!r} holds {chr(texts.data[bad[0]])!r}, which would end its id in the text")


def _write(columns: _Columns, sparse: bool, file: IO[bytes]) -> None:
    """Format blocks on threads and write them in order."""
    blocks = list(_blocks(columns))
    for first in range(0, len(blocks), BATCH):
        for text in parallel.map_chunks(lambda *rows: _format(columns, sparse, *rows), blocks[first : first + BATCH]):
            file.write(text)


def _row_buffer(columns: _Columns) -> int:
    """Bytes that are enough for a row without its ids."""
    from rankwise._kernels.text.written import LONGEST_NUMBER

    width = int(columns.X.shape[1])
    return LONGEST_NUMBER + 20 + width * (LONGEST_NUMBER + 2 + len(str(width)))


def _blocks(columns: _Columns) -> Iterator[tuple[int, int]]:
    """Ranges of rows that are formatted together."""
    n_rows = len(columns.y)
    step = max(1, BLOCK // _row_buffer(columns))
    return ((first, min(first + step, n_rows)) for first in range(0, n_rows, step))


def _format(columns: _Columns, sparse: bool, first: int, last: int) -> bytes:
    """The lines of rows ``first`` to ``last``."""
    from rankwise._kernels.text.written import find_long, format_rows

    X, y, query, qid, docid = columns
    rows = (X, y, first, last, sparse, X.dtype == np.float32)
    texts = (query, qid.data, qid.offset, docid.data, docid.offset)
    buffer = (last - first) * _row_buffer(columns) + int(np.diff(qid.offset)[query[first:last]].sum())
    if len(docid):
        buffer += int(docid.offset[last] - docid.offset[first])
    out = np.empty(buffer, dtype=np.uint8)
    long = StringColumn.of([])
    size, needed = format_rows(*rows, *texts, long.data, long.offset, out)
    if needed:
        place = np.empty((needed, 2), dtype=np.int64)
        find_long(*rows, place)
        long = _long_texts(X, y, place[:, 0], place[:, 1])
        size, _ = format_rows(*rows, *texts, long.data, long.offset, out)
    return out[:size].tobytes()


def _long_texts(
    X: NDArray[Any], y: NDArray[np.float64], row: NDArray[np.int64], column: NDArray[np.int64]
) -> StringColumn:
    """The shortest text that reads back as each float64, or nine digits, which are enough for any float32."""
    features = column >= 0
    values = y[row]
    values[features] = X[row[features], column[features]]
    if X.dtype == np.float32:
        pairs = zip(values.tolist(), features.tolist(), strict=True)
        texts = [f"{value:.9g}" if is_feature else repr(value) for value, is_feature in pairs]
    else:
        texts = list(map(repr, values.tolist()))
    return StringColumn.of(texts)
