"""Writers of ranked documents: CSV, TSV, TREC run, plain scores, JSON lines or parquet.

:func:`open_output` opens the writer of a format on a file or on standard output, and blocks of queries
(:class:`Ranked`) are written as they come. Compiled code without the interpreter lock makes the lines of text formats,
so the next block is read meanwhile.
"""

import csv
import gzip
import io
import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from rankwise.errors import DataError, RankwiseError

if TYPE_CHECKING:
    from rankwise.queries.grouping import StringColumn
    from rankwise.queries.queries import Queries

COLUMNS = ("qid", "docid", "rank", "score")
_BLANKS = "\t\n\v\f\r\x1c\x1d\x1e\x1f "  # of ASCII, as str.split sees them


Form = Literal["csv", "tsv", "trec", "scores", "jsonl", "parquet"]
_ENDINGS: dict[str, Form] = {**{f".{form}": form for form in get_args(Form)}, ".run": "trec"}

Places = NDArray[np.int64]


class Ranked(NamedTuple):
    """A block of queries with scores.

    Attributes
    ----------
    queries : Queries
        The queries.
    scores : ndarray of shape (n_documents,)
        The score of every document.
    before : int
        The number of documents in the blocks before this one.
    """

    queries: "Queries"
    scores: NDArray[np.float64]
    before: int


def form_of(out: Path | None, to: Form | None, as_json: bool) -> Form:
    """Find the output format, by name or by the ending of the file.

    Parameters
    ----------
    out : Path or None
        The file; None is standard output.
    to : str or None
        The format that was named.
    as_json : bool
        Whether JSON was requested.

    Returns
    -------
    str
        The format.

    Raises
    ------
    RankwiseError
        If the options contradict each other, or nothing names a format.
    """
    ending = "" if out is None else Path(out.name.removesuffix(".gz")).suffix.lower()
    if as_json and out is None:
        if to not in (None, "jsonl"):
            raise RankwiseError(f"--json and --to {to} cannot be combined")
        return "jsonl"
    form = to or (_ENDINGS.get(ending) if out is not None else "csv")
    if form is None:
        raise RankwiseError(f"the suffix of {out} must be one of {', '.join(_ENDINGS)}, or pass --to FORMAT")
    if form == "parquet" and out is None:
        raise RankwiseError("--to parquet requires --out FILE")
    return form


class Order(NamedTuple):
    """Documents in ranked order, query after query."""

    qid: list[Any]
    docid: list[Any]
    rank: list[int]
    score: list[float]


def rank_documents(block: Ranked, top: int | None) -> Order:
    """The documents of a block in ranked order; documents without ids are named by their row in the input."""
    queries, scores, _ = block
    rows, query, place = order_rows(block, top)
    names = queries.names()
    docid: list[Any] = (
        numbers_of(block, False)[rows].tolist() if queries.docid is None else _decode(queries.docid[rows])
    )
    return Order([names[number] for number in query.tolist()], docid, (place + 1).tolist(), scores[rows].tolist())


def _decode(texts: "StringColumn") -> list[str]:
    """The texts one by one; where all are ASCII they are cut from one string, which is three times as fast."""
    try:
        whole = texts.data.tobytes().decode("ascii")
    except UnicodeDecodeError:
        return list(texts)
    return [whole[first:last] for first, last in pairwise(texts.offset.tolist())]


class Output(ABC):
    """A writer of blocks.

    Parameters
    ----------
    file : file object
        The text file.
    top : int or None
        Only so many documents per query.
    """

    def __init__(self, file: IO[str], top: int | None) -> None:
        self.file = file
        self.top = top

    @abstractmethod
    def write(self, block: Ranked) -> None:
        """Write the documents of a block."""


class _Delimited(Output):
    """CSV or TSV, with a header before the first block."""

    def __init__(self, file: IO[str], top: int | None, delimiter: str) -> None:
        super().__init__(file, top)
        self._writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        self._delimiter = delimiter
        self._begun = False

    def write(self, block: Ranked) -> None:
        """Write by the csv module only where an id needs quotes."""
        if not self._begun:  # nothing is printed where nothing can be read
            self._writer.writerow(COLUMNS)
            self._begun = True
        mark = self._delimiter
        if _holds(block, mark, '"', "\n", "\r"):
            self._writer.writerows(zip(*rank_documents(block, self.top), strict=True))
        else:  # the same text, without Python objects for every document
            self.file.write(lines(block, self.top, (mark, mark, mark, "\n")))


class _Scores(Output):
    """One score per line, in the order of the input."""

    def write(self, block: Ranked) -> None:
        self.file.write(score_lines(block.scores))


class _JsonLines(Output):
    """One JSON object per document."""

    def write(self, block: Ranked) -> None:
        rows = zip(*rank_documents(block, self.top), strict=True)
        self.file.write("".join([json.dumps(dict(zip(COLUMNS, row, strict=True))) + "\n" for row in rows]))


class _Trec(Output):
    """A TREC run."""

    def __init__(self, file: IO[str], top: int | None, tag: str) -> None:
        super().__init__(file, top)
        self._tag = _word(tag, "tag")

    def write(self, block: Ranked) -> None:
        """Check the ids, which may hold no blanks, and write."""
        if not _are_words(block):
            for name in block.queries.names():
                _word(name, "query id")
            for one in block.queries.docid or ():
                _word(one, "document id")
        self.file.write(lines(block, self.top, (" Q0 ", " ", " ", f" {self._tag}\n"), by_place=True))


def _holds(block: Ranked, *letters: str) -> bool:
    """Whether an id of the block holds one of these characters."""
    ids = _all_ids(block)
    return any(letter.encode() in ids for letter in letters)


def _are_words(block: Ranked) -> bool:
    """Whether a quick check shows that all ids are words: ASCII, not empty, and without blanks."""
    names, docid = block.queries.names(), block.queries.docid
    some = all(map(str, names)) and (docid is None or bool((docid.offset[1:] > docid.offset[:-1]).all()))
    return some and _all_ids(block).isascii() and not _holds(block, *_BLANKS)


def _all_ids(block: Ranked) -> bytes:
    """All ids of the block as bytes."""
    docid = block.queries.docid
    names = "".join(map(str, block.queries.names())).encode("utf-8", "surrogateescape")
    return names if docid is None else names + docid.data.tobytes()


class _Parquet:
    """One row group per block; ids are texts, since each block could otherwise infer another type."""

    def __init__(self, path: Path, top: int | None) -> None:
        from rankwise._extras import require

        self._arrow = require("pyarrow")
        kinds = (self._arrow.string(), self._arrow.string(), self._arrow.int64(), self._arrow.float64())
        self._schema = self._arrow.schema(list(zip(COLUMNS, kinds, strict=True)))
        self._writer = require("pyarrow.parquet").ParquetWriter(path, self._schema)
        self._top = top

    def write(self, block: Ranked) -> None:
        order = rank_documents(block, self._top)
        columns = [list(map(str, order.qid)), list(map(str, order.docid)), order.rank, order.score]
        try:
            table = self._arrow.table(columns, schema=self._schema)
        except UnicodeEncodeError as error:
            raise DataError(f"ids in a parquet file must be UTF-8, got {error.object!r:.60}") from error
        self._writer.write_table(table)

    def close(self) -> None:
        self._writer.close()


@contextmanager
def open_output(out: Path | None, form: Form, tag: str, top: int | None) -> Iterator[Any]:
    """Context manager: open the writer, on standard output or on a file that is renamed at the end.

    Parameters
    ----------
    out : Path or None
        The file; None is standard output.
    form : str
        The format.
    tag : str
        The name of the run, for TREC.
    top : int or None
        Only so many documents per query.

    Yields
    ------
    Output
        The writer.
    """
    from rankwise._files import writing

    if out is None:
        text = io.TextIOWrapper(sys.stdout.buffer, "utf-8", "surrogateescape", newline="", write_through=True)
        try:
            yield _output(text, form, tag, top)
            text.flush()
        finally:
            text.detach()  # standard output itself stays open
        return
    with writing(out) as part:  # readers raise errors of their own: any OSError left is about this file
        if form == "parquet":
            table = _Parquet(part, top)
            try:
                yield table
            finally:
                table.close()
            return
        with part.open("wb") as raw:
            packed: Any = gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if out.name.endswith(".gz") else raw
            with io.TextIOWrapper(packed, "utf-8", "surrogateescape", newline="") as text:
                yield _output(text, form, tag, top)


def _output(file: IO[str], form: Form, tag: str, top: int | None) -> Output:
    """The writer of a text format."""
    if form == "trec":
        return _Trec(file, top, tag)
    if form == "scores":
        return _Scores(file, top)
    if form == "jsonl":
        return _JsonLines(file, top)
    return _Delimited(file, top, "\t" if form == "tsv" else ",")


def _word(value: Any, what: str) -> str:
    """Raise an error for a text that is not a single word."""
    word = str(value)
    if word.split() != [word]:
        raise DataError(f"the {what} of a TREC run must be non-empty and without blanks, got {value!r}")
    return word


# --------------------------------------------------------------------------------------------------------- lines


class Placed(NamedTuple):
    """Documents in ranked order, query after query."""

    rows: Places
    query: Places
    place: Places


def order_rows(block: Ranked, top: int | None) -> Placed:
    """The documents of a block in ranked order; equal scores keep the order of the input."""
    queries, scores, _ = block
    owner = queries.query_of_row
    rows = np.lexsort((-scores, owner))  # stable
    place = np.arange(len(rows)) - np.repeat(queries.start[:-1], queries.sizes)
    found = Placed(rows, owner[rows], place)
    return found if top is None else Placed(*(part[place < top] for part in found))


def numbers_of(block: Ranked, by_place: bool) -> Places:
    """Numbers for documents without ids: their row in the input, or their position in the query; both from 0."""
    queries, scores, before = block
    if not by_place:
        return np.arange(len(scores)) + before
    inside = np.empty(len(scores), dtype=np.int64)
    inside[queries.rows] = np.arange(len(scores)) - np.repeat(queries.start[:-1], queries.sizes)
    return inside


def lines(block: Ranked, top: int | None, behind: tuple[str, str, str, str], by_place: bool = False) -> str:
    """Query, document, rank and score of every document as text.

    Parameters
    ----------
    block : Ranked
        The block.
    top : int or None
        Only so many documents per query.
    behind : tuple of str
        The text behind each of the four fields.
    by_place : bool, default=False
        Whether documents without ids are named by their position in the query.

    Returns
    -------
    str
        The lines.
    """
    from rankwise._kernels.text.written import put_lines
    from rankwise.queries.grouping import StringColumn

    queries, scores, _ = block
    rows, query, place = order_rows(block, top)
    ids, no_ids = StringColumn.of(queries.names()), StringColumn._trusted(np.empty(0, np.uint8), np.empty(0, np.int64))
    documents = no_ids if queries.docid is None else queries.docid
    called = rows if queries.docid is not None else numbers_of(block, by_place)[rows]
    text, length = score_texts(scores)
    marks = StringColumn.of(behind)
    out = put_lines(
        query, ids.data, ids.offset, called, documents.data, documents.offset, place + 1, text, length, rows,
        marks.data, marks.offset,
    )  # fmt: skip
    return bytes(out).decode("utf-8", "surrogateescape")


def score_lines(scores: NDArray[np.float64]) -> str:
    """One score per line, in the order of the rows."""
    from rankwise._kernels.text.written import put_column

    return bytes(put_column(*score_texts(scores))).decode("ascii")


def score_texts(scores: NDArray[np.float64]) -> tuple[NDArray[np.uint8], Places]:
    """``repr`` of every score.

    Parameters
    ----------
    scores : ndarray
        The scores.

    Returns
    -------
    text : ndarray of uint8, shape (n, longest)
        A row of characters for each score.
    length : ndarray of int64
        The number of characters that count.
    """
    from rankwise._kernels.text.written import LONGEST, put_scores

    text, length = np.empty((len(scores), LONGEST), np.uint8), np.empty(len(scores), np.int64)
    put_scores(scores, text, length)
    for row in np.flatnonzero(length < 0).tolist():
        letters = repr(float(scores[row])).encode()
        text[row, : len(letters)] = np.frombuffer(letters, np.uint8)
        length[row] = len(letters)
    return text, length
