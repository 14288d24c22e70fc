"""Read LETOR / SVMlight text as a whole.

::

    <label> qid:<id> <feature>:<value> <feature>:<value> ... # <comment>

:func:`read_letor` maps the text, reads it into one table and groups its rows by qid; a text without qids needs a file
of query sizes. :mod:`rankwise.data.letor.stream` reads texts of any length, block by block.
"""

import os
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import FileFormatError, RankwiseError
from rankwise._kernels import drive
from rankwise._kernels.text import letor_lines as code
from rankwise.data.checks import Missing, as_names, as_whole, fill_missing, refuse_unless_one_of
from rankwise.data.grouping import Grouping, by_run, by_size, warn_of_empty
from rankwise.data.letor.problems import Reading
from rankwise.data.letor.table import LetorTable, read_table
from rankwise.data.queries import Queries
from rankwise.data.sources import (
    MARK,
    STANDARD_INPUT,
    Text,
    name_of,
    read_text,
    refuse_wide,
    without_mark,
)
from rankwise.data.string_column import StringColumn, offsets

SIDE_FILES = (".query", ".group")  # LightGBM's and XGBoost's names
_LONGEST = 256  # letters of an id up to which all ids may take the memory of the longest
Unjudged = Literal["error", "drop", "zero"]
ZeroBased = bool | Literal["auto"]
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
    table = read_table(text, first_byte(text), how)
    if table is None:
        raise FileFormatError(f"{text.name} holds no rows: expected lines of the form label qid:id feature:value ...")
    if not len(table.y):
        raise FileFormatError(f"{text.name}: every label is negative, and unjudged='drop' leaves no row")
    if table.rules.qid == code.WITH_QID:
        if query_file is not None:
            raise RankwiseError(f"{text.name} has qids, so query_file={query_file!r} has no effect: leave it out")
        return queries_of(table, how)
    query_file = find_side_file(path) if query_file is None else query_file
    if query_file is None:
        raise FileFormatError(
            f"{text.name}: no line has a qid: put qid:<id> after each label, or give query_file=, a file with the size "
            f"of each query ({' or '.join(name_of(path) + end for end in SIDE_FILES)} would be found by its name)"
        )
    return queries_of(table, how, group_sizes(query_file, text.name, table.dropped, len(table.y)))


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


def first_byte(text: Text) -> int:
    """Where the text begins: after the byte order mark of UTF-8, if it has one."""
    head = text.data[:4].tobytes()
    refuse_wide(head, text.name)
    return len(MARK) if head.startswith(MARK) else 0


def queries_of(table: LetorTable, how: Reading, grouping: Grouping | None = None) -> Queries:
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
