"""Read LETOR / SVMlight text, as a whole or as a stream of whole queries.

::

    <label> qid:<id> <feature>:<value> <feature>:<value> ... # <comment>

:func:`read_letor` maps the text and reads it into one table. :func:`iter_letor` cuts a stream where one run of rows
with the same qid ends, and reads block after block. Both group the rows by qid; a text without qids needs a file of
query sizes.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import FileFormatError, RankwiseError
from rankwise._kernels import drive
from rankwise._kernels.text import letor_lines as code
from rankwise.data.checks import Missing, as_names, as_whole, fill_missing, refuse_unless_one_of
from rankwise.data.grouping import Grouping, by_run, by_size, warn_of_empty
from rankwise.data.letor.problems import Reading, SourceLocation
from rankwise.data.letor.table import LetorTable, read_table
from rankwise.data.queries import Queries
from rankwise.data.sources import (
    MARK,
    STANDARD_INPUT,
    ByteStream,
    Text,
    name_of,
    open_stream,
    read_text,
    refuse_wide,
    without_mark,
)
from rankwise.data.string_column import StringColumn, offsets

SIDE_FILES = (".query", ".group")  # LightGBM's and XGBoost's names
_LONGEST = 256  # letters of an id up to which all ids may take the memory of the longest
Unjudged = Literal["error", "drop", "zero"]
ZeroBased = bool | Literal["auto"]
Returning = Literal["error", "new"]
_UNJUDGED = {"error": code.REFUSE, "drop": code.DROP, "zero": code.ZERO}


def read_letor(
    path: Any,
    *,
    dtype: Any = "float64",
    missing: Missing = "error",
    unjudged: Unjudged = "error",
    zero_based: ZeroBased = "auto",
    n_features: int | None = None,
    feature_names: Sequence[str] | None = None,
    query_file: Any = None,
    n_jobs: int | None = None,
) -> Queries:
    """Read judged queries from LETOR / SVMlight text.

    Lines end with a newline, or with a carriage return and a newline; a carriage return alone, with text behind it,
    raises an error. Blank lines and lines that begin with ``#`` are skipped, absent features are 0, and the rows of a
    query may stand anywhere. Values are bit for bit those of Python's ``float``, whatever the number of threads. A file
    that is not gzipped is mapped and read directly into X: it must not be truncated meanwhile, which would end the
    process. An open binary file is read as a stream, to which that does not apply.

    Parameters
    ----------
    path : path, ``-`` or binary file object
        The text; ``-`` is standard input. gzip is recognised by its first bytes.
    dtype : {"float64", "float32"}, default="float64"
        The type of X; float32 is the rounded float64 value.
    missing : {"error", "zero", "min", "keep"}, default="error"
        What to do with ``NULL``, ``nan``, ``inf`` and numbers that are too large. "min" takes the smallest value of the
        feature in the query (LETOR's rule).
    unjudged : {"error", "drop", "zero"}, default="error"
        What to do with negative labels: raise an error, leave the document out, or take label 0.
    zero_based : bool or "auto", default="auto"
        Whether feature ids begin at 0; "auto": yes if an id 0 occurs.
    n_features : int, default=None
        The width of X; None takes the largest id, or the number of names. An id that needs more than 100 MB, and more
        than 100 values per byte of the text, raises an error unless this allows it.
    feature_names : sequence of str, default=None
        One name per feature.
    query_file : path, ``-`` or binary file object, default=None
        For a text without qids: a file with the size of each query, one per line. None takes the file beside ``path``
        whose name ends in ``.query`` (LightGBM) or ``.group`` (XGBoost), if it exists.
    n_jobs : int, default=None
        The number of threads; None uses every core.

    Returns
    -------
    queries : Queries
        ``qid`` holds integers if every id is written as one, otherwise texts as in the file (``007`` stays ``007``).
        ``docid`` is X where a comment says ``docid = X``, otherwise the first word of the comment; it is None if no row
        has a comment.

    Raises
    ------
    FileFormatError
        If the text cannot be read; the message names the line and the column.

    Examples
    --------
    >>> import io
    >>> text = b"2 qid:7 1:0.5 2:1 # d1\\n0 qid:7 2:0.25 # d2\\n"
    >>> queries = read_letor(io.BytesIO(text))
    >>> queries
    Queries(1 query, 2 documents, 2 features, labels 0 to 2)
    >>> queries.X[1], queries.docid[1]
    (array([0.  , 0.25]), 'd2')
    """
    how = as_reading(dtype, missing, unjudged, zero_based, n_features, feature_names, n_jobs)
    text = read_text(path)
    drive.expect("read_letor")
    table = read_table(text, _first_byte(text), how)
    if table is None:
        raise FileFormatError(f"{text.name} holds no rows: expected lines of the form label qid:id feature:value ...")
    if not len(table.y):
        raise FileFormatError(f"{text.name}: every label is negative, and unjudged='drop' leaves no row")
    if table.rules.qid == code.WITH_QID:
        if query_file is not None:
            raise RankwiseError(f"{text.name} has qids, so query_file={query_file!r} has no effect: leave it out")
        return _queries(table, how)
    query_file = find_side_file(path) if query_file is None else query_file
    if query_file is None:
        raise FileFormatError(
            f"{text.name}: no line has a qid: put qid:<id> after each label, or give query_file=, a file with the size "
            f"of each query ({' or '.join(name_of(path) + end for end in SIDE_FILES)} would be found by its name)"
        )
    return _queries(table, how, group_sizes(query_file, text.name, table.dropped, len(table.y)))


def iter_letor(
    path: Any,
    *,
    rows: int = 100_000,
    dtype: Any = "float64",
    missing: Missing = "error",
    unjudged: Unjudged = "error",
    zero_based: ZeroBased = "auto",
    n_features: int | None = None,
    feature_names: Sequence[str] | None = None,
    n_jobs: int | None = None,
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
        The text; ``-`` is standard input. gzip is recognised by its first bytes.
    rows : int, default=100_000
        The smallest number of documents of a block, except for the last one.
    dtype : {"float64", "float32"}, default="float64"
        The type of X.
    missing : {"error", "zero", "min", "keep"}, default="error"
        As for :func:`read_letor`.
    unjudged : {"error", "drop", "zero"}, default="error"
        As for :func:`read_letor`.
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
        no id is remembered, so that a stream of any length takes the memory of one block; a block may then hold an id
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
    rows = as_whole(rows, "rows", 1)
    refuse_unless_one_of(returning, "returning", ("error", "new"))
    how = as_reading(dtype, missing, unjudged, zero_based, n_features, feature_names, n_jobs, streaming=True)
    return _iterate(path, rows, how, None if returning == "new" else set(), on_read)


def as_reading(
    dtype: Any,
    missing: Missing,
    unjudged: Any,
    zero_based: Any,
    n_features: int | None,
    feature_names: Sequence[str] | None,
    n_jobs: int | None,
    *,
    streaming: bool = False,
) -> Reading:
    """Check the options of :func:`read_letor` and :func:`iter_letor`."""
    try:
        kind = np.dtype(dtype)
    except Exception as error:  # NumPy parses texts, and raises what its parser does
        raise RankwiseError(f"dtype is 'float64' or 'float32': found {dtype!r}") from error
    if kind not in (np.float32, np.float64):
        raise RankwiseError(f"dtype is 'float64' or 'float32': found {dtype!r}")
    drive.threads(n_jobs)  # refuses an invalid number of threads
    refuse_unless_one_of(missing, "missing", get_args(Missing))
    refuse_unless_one_of(unjudged, "unjudged", tuple(_UNJUDGED))
    if not (isinstance(zero_based, bool) or (isinstance(zero_based, str) and zero_based == "auto")):
        raise RankwiseError(f"zero_based is True, False or 'auto': found {zero_based!r}")
    if n_features is not None:
        n_features = as_whole(n_features, "n_features", 1, code.LARGEST_ID)
    if feature_names is not None:
        feature_names = as_names(feature_names, n_features) or ()
        n_features = len(feature_names) if n_features is None else n_features
    rules = code.LetorRules(
        base=0 if zero_based is True else 1,
        width=n_features or 0,
        fixed_base=zero_based != "auto",
        fixed_width=n_features is not None,
        qid=code.WITH_QID if streaming else code.EITHER,
        unjudged=_UNJUDGED[unjudged],
        refuse_missing=missing == "error",
    )
    names = None if feature_names is None else tuple(feature_names)
    return Reading(kind, missing, names, rules, streaming, rules.fixed_width, rules.fixed_base, n_jobs)


def _iterate(
    path: Any, rows: int, how: Reading, seen: set[str] | None, on_read: Callable[[int], object] | None
) -> Iterator[Queries]:
    """The blocks; ``seen`` collects the ids that may not return, None makes each run of rows with one id a query."""
    with open_stream(path, on_read) as stream:
        for text, first_line in iter_blocks(stream, rows, skip_negative=how.rules.unjudged == code.DROP):
            table = read_table(text, _first_byte(text) if first_line == 1 else 0, how, first_line)
            if table is None:
                continue
            how = how.settled(table.rules)
            if not len(table.y):
                continue
            if seen is None:
                yield _queries(table, how, runs_as_lists(table))
            else:
                refuse_returning(table, seen, SourceLocation(text.name, text.data, first_line))
                yield _queries(table, how)


def _first_byte(text: Text) -> int:
    """Where the text begins: after the byte order mark of UTF-8, if it has one."""
    head = text.data[:4].tobytes()
    refuse_wide(head, text.name)
    return len(MARK) if head.startswith(MARK) else 0


def _queries(table: LetorTable, how: Reading, grouping: Grouping | None = None) -> Queries:
    """The table as `Queries`, with missing values replaced in place, a few queries at a time."""
    start, rows, qid = grouping or by_run(table.run_row, as_written(table.run_qid), len(table.y))
    if table.missing:
        for first, last in drive.query_chunks(start):
            begin, end = start[first], start[last]
            places = slice(begin, end) if rows is None else rows[begin:end]
            table.X[places] = fill_missing(table.X[places], start[first : last + 1] - begin, None, how.missing)
    return Queries._trusted(table.X, table.y, start, rows, qid=qid, docid=table.docid, feature_names=how.names)


# -------------------------------------------------------------------------------------------------- query ids and sizes


def as_written(tokens: StringColumn) -> NDArray[Any]:
    """Ids as integers if each is written as one, otherwise as texts (``007`` stays ``007``)."""
    data = tokens.data.view()
    data.flags.writeable = False
    numbers = np.empty(len(tokens), dtype=np.int64)
    if code.read_integers(data, tokens.offset[:-1], np.diff(tokens.offset), numbers):
        return numbers
    texts = list(tokens)
    if max(map(len, texts)) > _LONGEST or any(text.endswith("\0") for text in texts):  # NumPy drops zeros at the end
        return np.array([*texts, None], dtype=object)[:-1]
    return np.array(texts, dtype=str)


def find_side_file(source: Any) -> str | None:
    """The file of sizes that belongs to a text by its name: ``train.txt.query`` or ``train.txt.group``."""
    if hasattr(source, "read") or name_of(source) == STANDARD_INPUT:
        return None
    name = name_of(source)
    names = [name, name.removesuffix(".gz")]
    return next((known + end for known in names for end in SIDE_FILES if os.path.isfile(known + end)), None)


def group_sizes(query_file: Any, name: str, dropped: NDArray[np.bool_], n_rows: int) -> Grouping:
    """Queries of the sizes that a file lists, one per line, without the rows that were dropped.

    A query whose rows were all dropped disappears, as it does from a text with qids.
    """
    n_lines = len(dropped) or n_rows
    sizes = _read_sizes(query_file, name, n_lines)
    if sum(sizes) != n_lines:
        raise FileFormatError(
            f"{name_of(query_file)}: the sizes add up to {sum(sizes):,}, but {name} has {n_lines:,} rows"
        )
    warn_of_empty(np.array(sizes, dtype=np.int64), name_of(query_file))
    if len(dropped):
        kept_before = offsets(~dropped)
        kept = np.diff(kept_before[offsets(sizes)])
        return by_size(kept[kept > 0], n_rows)
    return by_size(sizes, n_rows)


def _read_sizes(query_file: Any, name: str, n_lines: int) -> list[int]:
    """The sizes, none above the number of rows; Python's own integers, whose sum does not wrap around."""
    text = read_text(query_file)
    sizes = []
    for number, line in enumerate(without_mark(text.data.tobytes(), text.name).splitlines(), start=1):
        words = line.split()
        if len(words) > 1 or not all(word.isdigit() and len(word) <= 18 for word in words):
            shown = line.decode("utf-8", "replace").strip()
            raise FileFormatError(f"{text.name}, line {number:,}: expected the size of a query, found {shown[:40]!r}")
        for size in map(int, words):
            if size > n_lines:
                raise FileFormatError(
                    f"{text.name}, line {number:,}: a query of {size:,} rows, but {name} has {n_lines:,} rows"
                )
            sizes.append(size)
    return sizes


# --------------------------------------------------------------------------------------------------- blocks of a stream


def iter_blocks(stream: ByteStream, rows: int, skip_negative: bool) -> Iterator[tuple[Text, int]]:
    """Blocks with at least ``rows`` rows, except for the last one, and the number of each block's first line.

    Rows whose label begins with a minus are not counted if ``skip_negative``. The bytes of a block are overwritten by
    the next one.
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
            state = code.find_last_run(held.text().data, whole_lines, skip_negative, state)
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
                f"{where.name}, line {line:,}: query {qid} returns after its rows have ended, and a stream needs them "
                "together: read_letor takes rows in any order"
            )
        seen.add(qid)
        last = qid


def runs_as_lists(table: LetorTable) -> Grouping:
    """Make every run of rows with one qid a query of its own, without memory of earlier runs."""
    qid = as_written(table.run_qid)
    begins = np.concatenate([[True], qid[1:] != qid[:-1]])  # neighbours with one id are a run that was read in pieces
    return Grouping(np.append(table.run_row[begins], len(table.y)).astype(np.int64), None, qid[begins])
