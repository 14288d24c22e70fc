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
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
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
    kept : ndarray of bool, shape (n_documents,), default=None
        The documents that a cut-off keeps; None: all.
    """

    queries: "Queries"
    scores: NDArray[np.float64]
    before: int
    kept: NDArray[np.bool_] | None = None


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


def rank_documents(block: Ranked, top: int | None) -> tuple[list[Any], list[Any], list[int], list[float]]:
    """The documents of a block in ranked order, as the columns of the output.

    Documents without ids are named by their row in the input.
    """
    queries, scores = block.queries, block.scores
    rows, query, place = order_rows(block, top)
    names = queries.names()
    docid: list[Any] = (
        numbers_of(block, False)[rows].tolist() if queries.docid is None else _decode(queries.docid[rows])
    )
    return [names[number] for number in query.tolist()], docid, (place + 1).tolist(), scores[rows].tolist()


def _decode(texts: "StringColumn") -> list[str]:
    """The texts one by one; where all are ASCII they are cut from one string, which is three times as fast."""
    try:
        whole = texts.data.tobytes().decode("ascii")
    except UnicodeDecodeError:
        return list(texts)
    return [whole[first:last] for first, last in pairwise(texts.offset.tolist())]


Writer = Callable[[Ranked], object]


def _write_delimited(file: IO[str], top: int | None, mark: str) -> Writer:
    """CSV or TSV, with a header before the first block; by the csv module only where an id needs quotes."""
    writer = csv.writer(file, delimiter=mark, lineterminator="\n")
    header = iter([COLUMNS])

    def write(block: Ranked) -> None:
        writer.writerows(header)  # nothing is printed where nothing can be read
        if _holds(block, mark, '"', "\n", "\r"):
            writer.writerows(zip(*rank_documents(block, top), strict=True))
        else:  # the same text, without Python objects for every document
            file.write(lines(block, top, (mark, mark, mark, "\n")))

    return write


def _write_objects(file: IO[str], top: int | None) -> Writer:
    """One JSON object per document."""

    def write(block: Ranked) -> None:
        rows = zip(*rank_documents(block, top), strict=True)
        file.write("".join([json.dumps(dict(zip(COLUMNS, row, strict=True))) + "\n" for row in rows]))

    return write


def _write_trec(file: IO[str], top: int | None, tag: str) -> Writer:
    """A TREC run, whose tag and ids may hold no blanks."""
    behind = (" Q0 ", " ", " ", f" {_word(tag, 'tag')}\n")

    def write(block: Ranked) -> None:
        if not _are_words(block):
            for name in block.queries.names():
                _word(name, "query id")
            for one in block.queries.docid or ():
                _word(one, "document id")
        file.write(lines(block, top, behind, by_place=True))

    return write


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


@contextmanager
def _open_parquet(path: Path, top: int | None) -> Iterator[Writer]:
    """One row group per block; ids are texts, since each block could otherwise infer another type."""
    from rankwise._extras import require

    arrow = require("pyarrow")
    kinds = (arrow.string(), arrow.string(), arrow.int64(), arrow.float64())
    schema = arrow.schema(list(zip(COLUMNS, kinds, strict=True)))

    def write(block: Ranked) -> None:
        qid, docid, rank, score = rank_documents(block, top)
        try:
            table = arrow.table([list(map(str, qid)), list(map(str, docid)), rank, score], schema=schema)
        except UnicodeEncodeError as error:
            raise DataError(f"ids in a parquet file must be UTF-8, got {error.object!r:.60}") from error
        writer.write_table(table)

    with closing(require("pyarrow.parquet").ParquetWriter(path, schema)) as writer:
        yield write


@contextmanager
def open_output(out: Path | None, form: Form, tag: str, top: int | None) -> Iterator[Writer]:
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
    callable
        Writes a block.
    """
    from rankwise._files import writing

    if out is None:
        text = io.TextIOWrapper(sys.stdout.buffer, "utf-8", "surrogateescape", newline="", write_through=True)
        try:
            yield _write_text(text, form, tag, top)
            text.flush()
        finally:
            text.detach()  # standard output itself stays open
        return
    with writing(out) as part:  # readers raise errors of their own: any OSError left is about this file
        if form == "parquet":
            with _open_parquet(part, top) as write:
                yield write
            return
        with part.open("wb") as raw:
            packed: Any = gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if out.name.endswith(".gz") else raw
            with io.TextIOWrapper(packed, "utf-8", "surrogateescape", newline="") as text:
                yield _write_text(text, form, tag, top)


def _write_text(file: IO[str], form: Form, tag: str, top: int | None) -> Writer:
    """The writer of a text format."""
    if form == "trec":
        return _write_trec(file, top, tag)
    if form == "scores":  # in the order of the input
        return lambda block: file.write(score_lines(block.scores))
    return _write_objects(file, top) if form == "jsonl" else _write_delimited(file, top, "\t" if form == "tsv" else ",")


def _word(value: Any, what: str) -> str:
    """Raise an error for a text that is not a single word."""
    word = str(value)
    if word.split() != [word]:
        raise DataError(f"the {what} of a TREC run must be non-empty and without blanks, got {value!r}")
    return word


# --------------------------------------------------------------------------------------------------------- lines


def order_rows(block: Ranked, top: int | None) -> tuple[Places, Places, Places]:
    """Rows, queries and positions of documents in ranked order; equal scores keep the order of the input."""
    queries, scores = block.queries, block.scores
    owner = queries.query_of_row
    rows = np.lexsort((-scores, owner))  # stable
    place = np.arange(len(rows)) - np.repeat(queries.start[:-1], queries.sizes)
    chosen = np.ones(len(rows), bool) if top is None else place < top
    if block.kept is not None:
        chosen &= block.kept[rows]
    return rows[chosen], owner[rows][chosen], place[chosen]


def numbers_of(block: Ranked, by_place: bool) -> Places:
    """Numbers for documents without ids: their row in the input, or their position in the query; both from 0."""
    queries, scores, before = block.queries, block.scores, block.before
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

    queries, scores = block.queries, block.scores
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
