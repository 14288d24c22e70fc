"""Read LETOR / SVMlight text of any length, as a stream of whole queries.

:func:`iter_letor` cuts the text where one run of rows with the same qid ends, and reads block after block, each as
:mod:`rankwise.io.letor.read` reads a text. Memory holds one block.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import numpy as np

from rankwise._kernels.text import letor_lines as code
from rankwise._kernels.text.letor_rows import find_last_run
from rankwise._parameters import Jobs, PositiveInt, validated
from rankwise.errors import FileFormatError
from rankwise.io.letor.problems import Reading, SourceLocation
from rankwise.io.letor.read import (
    FeatureCount,
    FloatType,
    LetorTable,
    Unjudged,
    ZeroBased,
    as_reading,
    queries_of,
    read_table,
)
from rankwise.io.sources import ByteStream, Text, open_stream
from rankwise.queries.checks import Missing
from rankwise.queries.grouping import Grouping, parse_ids
from rankwise.queries.queries import Queries

Returning = Literal["error", "new"]


@validated
def iter_letor(
    path: Any,
    *,
    rows: PositiveInt = 100_000,
    dtype: FloatType = "float64",
    missing: Missing = "error",
    unjudged: Unjudged = "error",
    zero_based: ZeroBased = "auto",
    n_features: FeatureCount | None = None,
    feature_names: Sequence[str] | None = None,
    n_jobs: Jobs = None,
    returning: Returning = "error",
    on_read: Callable[[int], object] | None = None,
) -> Iterator[Queries]:
    """Read judged queries from LETOR / SVMlight text of any length, in blocks of whole queries.

    Memory holds one block and the ids of the queries so far. The rows of a query must stand together: an id that
    returns after its rows have ended raises an error that names it. The first block decides the number of features
    (unless ``n_features`` or ``feature_names`` does) and whether ids begin at 0 (unless ``zero_based`` does).

    Parameters
    ----------
    path : path, ``-`` or binary file object
        The text; ``-`` is standard input. gzip is recognized by its first bytes.
    rows : int, default=100_000
        The smallest number of documents of a block, except for the last one.
    dtype : {"float64", "float32"}, default="float64"
        The type of X.
    missing : {"error", "zero", "min", "keep"}, default="error"
        As for :func:`~rankwise.read_letor`.
    unjudged : {"error", "drop", "zero"}, default="error"
        As for :func:`~rankwise.read_letor`.
    zero_based : bool or "auto", default="auto"
        Whether feature ids begin at 0.
    n_features : int, default=None
        The width of X.
    feature_names : sequence of str, default=None
        One name per feature.
    n_jobs : int, default=None
        The number of threads; None uses every core.
    returning : {"error", "new"}, default="error"
        What to do with an id that returns after its rows have ended: raise an error, or begin another query. With "new"
        no id is remembered, and a stream of any length takes the memory of one block; a block may then hold an id
        more than once.
    on_read : callable, default=None
        Receives the number of bytes (packed ones, if the source is gzipped) each time some are read.

    Returns
    -------
    blocks : iterator of Queries
        The queries. Each block decides for itself whether its ids are integers or texts.

    Examples
    --------
    >>> import io
    >>> text = b"1 qid:a 1:5\\n0 qid:a 1:3\\n2 qid:b 1:4\\n"
    >>> [block.names() for block in iter_letor(io.BytesIO(text), rows=1)]
    [['a'], ['b']]
    """
    how = as_reading(dtype, missing, unjudged, zero_based, n_features, feature_names, n_jobs, streaming=True)
    return _iterate(path, rows, how, None if returning == "new" else set(), on_read)


def _iterate(
    path: Any, rows: int, how: Reading, seen: set[str] | None, on_read: Callable[[int], object] | None
) -> Iterator[Queries]:
    """The blocks; ``seen`` collects the ids that may not return, None makes each run of rows with one id a query."""
    with open_stream(path, on_read) as stream:
        for text, first_line in iter_blocks(stream, rows, skip_negative=how.rules.unjudged == code.DROP):
            table = read_table(text, how, first_line)
            if table is None:
                continue
            how = how.with_known_shape(table.rules)
            if not len(table.y):
                continue
            if seen is None:
                yield queries_of(table, how, runs_as_lists(table))
            else:
                refuse_returning(table, seen, SourceLocation(text.name, text.data, first_line))
                yield queries_of(table, how)


def iter_blocks(stream: ByteStream, rows: int, skip_negative: bool) -> Iterator[tuple[Text, int]]:
    """Blocks with at least ``rows`` rows, except for the last one, and the number of each block's first line.

    Rows with a negative label count as absent if ``skip_negative``. The bytes of a block are overwritten by the next
    one.
    """
    held = _Held(stream.name)
    first_line = 1
    # place, rows so far, rows before the last run, first byte of that run, place and length of its qid (-2: none yet)
    state = (0, 0, 0, 0, 0, -2)
    ended = False
    while not ended:
        while not ended and state[2] < rows:
            block = stream.read()
            ended = not block
            whole_lines = held.append(block)
            state = find_last_run(held.text().data, whole_lines, skip_negative, state)
        end = held.filled if ended else state[3]
        text = held.text(end)
        yield text, first_line
        first_line = SourceLocation(stream.name, text.data, first_line).line(end)
        held.forget(end)
        place, seen, before, line, at, length = state
        state = (place - end, seen - before, 0, line - end, at - end, length)


class _Held:
    """The text that has been read and not yet been handed out, in memory that grows on demand."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._bytes = np.empty(1 << 21, dtype=np.uint8)
        self._whole_lines = 0
        self.filled = 0

    def append(self, block: bytes) -> int:
        """Add a block; returns where the last complete line ends."""
        if self.filled + len(block) > len(self._bytes):
            larger = np.empty(2 * len(self._bytes) + len(block), dtype=np.uint8)
            larger[: self.filled] = self._bytes[: self.filled]
            self._bytes = larger
        self._bytes[self.filled : self.filled + len(block)] = np.frombuffer(block, dtype=np.uint8)
        newline = block.rfind(b"\n")
        if newline >= 0:
            self._whole_lines = self.filled + newline + 1
        self.filled += len(block)
        return self._whole_lines

    def text(self, end: int | None = None) -> Text:
        """The bytes up to ``end``; all bytes by default."""
        data = self._bytes[: self.filled if end is None else end]
        data.flags.writeable = False
        return Text(self._name, data)

    def forget(self, end: int) -> None:
        """Drop the bytes up to ``end`` and move the others to the front."""
        self._bytes[: self.filled - end] = self._bytes[end : self.filled].copy()
        self._whole_lines -= end
        self.filled -= end


def refuse_returning(table: LetorTable, seen: set[str], where: SourceLocation) -> None:
    """Add the queries of a table to ``seen``; a query that was there already, before another one, raises an error."""
    last = None
    for number, qid in enumerate(table.run_qid):
        if qid != last and qid in seen:
            line = where.line(int(table.run_at[number]))
            raise FileFormatError(
                f"{where.name}, line {line:,}: query {qid} has rows in several places, and a stream needs them "
                "together: read_letor takes rows in any order"
            )
        seen.add(qid)
        last = qid


def runs_as_lists(table: LetorTable) -> Grouping:
    """Make every run of rows with one qid a query of its own, without memory of earlier runs."""
    qid = parse_ids(table.run_qid)
    begins = np.concatenate([[True], qid[1:] != qid[:-1]])  # neighbors with one id are a run that was read in pieces
    return Grouping(np.append(table.run_row[begins], len(table.y)).astype(np.int64), None, qid[begins])
