"""TREC runs and judgments (qrels): the files that search engines and their evaluation exchange.

A run has a line for each retrieved document, ``qid Q0 docid rank score tag``; judgments have ``qid iteration docid
label``. Fields are separated by blanks or tabs, files may be gzipped, and ids are
texts (``007`` stays ``007``). :func:`from_trec` joins the two files into `Queries` and scores; :func:`write_run` and
:func:`write_qrels` go the other way.
"""

import logging
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._files import writing_bytes
from rankwise._parameters import validated
from rankwise._tables import ShownAsFacts
from rankwise.errors import DataError, FileFormatError
from rankwise.io.sources import lines_of, name_of
from rankwise.queries.checks import as_floats, as_scores, first_repeated
from rankwise.queries.grouping import StringColumn, as_ids, offsets
from rankwise.queries.queries import Queries, as_queries

logger = logging.getLogger(__name__)

FilePath = str | os.PathLike[str]
Source = FilePath | IO[bytes]

_RUN = ("qid", "Q0", "docid", "rank", "score", "tag")
_QRELS = ("qid", "iteration", "docid", "label")
BEIR = (b"query-id", b"corpus-id", b"score")  # the first line of judgments of the BEIR benchmark, and so of MTEB


@dataclass(frozen=True, eq=False)
class _Documents(ShownAsFacts):
    qid: StringColumn
    docid: StringColumn

    def __len__(self) -> int:
        return len(self.docid)


@dataclass(frozen=True, eq=False)
class Run(_Documents):
    """Retrieved documents, in the order of the file.

    Rank and tag are not kept, because trec_eval ignores them.

    Attributes
    ----------
    qid : StringColumn
        The query id of each document.
    docid : StringColumn
        The document ids.
    score : ndarray of float64
        The scores.
    """

    score: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Qrels(_Documents):
    """Judged documents, in the order of the file.

    Attributes
    ----------
    qid : StringColumn
        The query id of each document.
    docid : StringColumn
        The document ids.
    label : ndarray of float64
        The labels. Negative ones, which mean that a document is known and was not judged, are allowed here.
    """

    label: NDArray[np.float64]


def read_run(path: Source) -> Run:
    """Read a run.

    Parameters
    ----------
    path : path, ``-`` or binary file object
        The run, plain or gzipped.

    Returns
    -------
    run : Run
        The retrieved documents.

    Raises
    ------
    FileFormatError
        If a line is malformed, or repeats a document of a query; the message names the line.
    """
    return Run(*_read(path, _RUN, "score"))


def read_qrels(path: Source) -> Qrels:
    """Read judgments.

    Parameters
    ----------
    path : path, ``-`` or binary file object
        The judgments, plain or gzipped; TREC's four columns, or BEIR's three under query-id, corpus-id and score.

    Returns
    -------
    qrels : Qrels
        The judged documents.

    Raises
    ------
    FileFormatError
        If a line is malformed, or repeats a document of a query; the message names the line.
    """
    return Qrels(*_read(path, _QRELS, "label", BEIR))


@validated
def from_trec(
    qrels: Any,
    run: Any,
    *,
    missing_queries: Literal["skip", "zero"] = "skip",
    unjudged: Literal["zero", "drop", "error"] = "zero",
) -> tuple[Queries, NDArray[np.float64]]:
    """Judged queries, and the scores that a run gives to their documents.

    A query holds every retrieved document, in the order of the run, and then every judged document that was not
    retrieved. A retrieved document without judgment has label 0, and ``queries.judged`` is False there. A document
    that was not retrieved has score -inf: it counts among the relevant ones and takes no position.

    Parameters
    ----------
    qrels : Qrels, path, binary file object or data frame
        The judgments, or what :func:`read_qrels` reads, or a table with the columns qid, docno (or docid) and label,
        as PyTerrier has them.
    run : Run, path, binary file object or data frame
        The run, or what :func:`read_run` reads, or a table with the columns qid, docno (or docid) and score.
    missing_queries : {"skip", "zero"}, default="skip"
        Whether a judged query that is not in the run is left out, or is kept with nothing retrieved. Queries of the run
        without judgments are left out. ``logging`` reports both.
    unjudged : {"zero", "drop", "error"}, default="zero"
        What a negative label means: label 0 and not judged (trec_eval's rule), no such document, or a mistake.

    Returns
    -------
    queries : Queries
        In the order of the judgments, with document ids and without features.
    scores : ndarray of float64, shape (n_documents,)
        One score per document.
    """
    qrels, run = as_qrels(qrels), as_run(run)
    labels = _labels_by_query(qrels, unjudged)
    scores = by_query(run.qid, run.docid, run.score)
    _report(labels, scores, missing_queries)
    lists = {
        qid: _join(labels[qid], scores.get(qid, {})) for qid in labels if qid in scores or missing_queries == "zero"
    }
    lists = {qid: documents for qid, documents in lists.items() if documents}  # "drop" may leave nothing
    rows = [row for documents in lists.values() for row in documents]
    start = offsets([len(documents) for documents in lists.values()])
    judged = np.array([label >= 0 for _, label, _ in rows], dtype=np.bool_)
    queries = Queries._trusted(
        np.empty((len(rows), 0)),
        np.array([max(label, 0.0) for _, label, _ in rows], dtype=np.float64),
        start,
        qid=as_ids(list(lists), "qid"),
        docid=StringColumn.of(docid for docid, _, _ in rows),
        judged=None if judged.all() else judged,
    )
    return queries, np.array([score for _, _, score in rows], dtype=np.float64)


@validated
def write_run(
    queries: Queries, scores: ArrayLike, path: FilePath, tag: str = "rankwise", ties_as_rank: bool = False
) -> None:
    """Write scores as a run: best first, ties in input order, documents with score -inf left out.

    Scores are written with all their digits. Tools break ties in their own ways, and trec_eval compares in single
    precision.

    Parameters
    ----------
    queries : Queries
        The queries. Documents without ids are called by their position in the query, from 0.
    scores : array-like, shape (n_documents,)
        One score per document.
    path : path
        The file, gzipped if it ends in ``.gz``.
    tag : str, default="rankwise"
        The name of the run, the last field of each line.
    ties_as_rank : bool, default=False
        Whether n, n-1, ..., 1 are written instead of the scores, which every tool reads as exactly this order.
    """
    values = as_scores(scores, as_queries(queries, "write_run").n_documents)
    if np.isposinf(values).any() and not ties_as_rank:
        raise DataError(
            f"scores must be finite in a run, got inf at row {int(np.argmax(values)):,}: pass ties_as_rank=True"
        )
    label = _field(tag, "tag")
    with writing_bytes(path, 9) as file:
        for query, qid, docids in _iter_ids(queries):
            own = values[queries.rows_of(query)]
            order = np.argsort(-own, kind="stable")[: int((own > -np.inf).sum())]
            shown = np.arange(len(order), 0, -1) if ties_as_rank else own[order]
            for rank, (place, score) in enumerate(zip(order.tolist(), shown.tolist(), strict=True), 1):
                file.write(b"%b Q0 %b %d %b %b\n" % (qid, docids[place], rank, repr(score).encode(), label))


def write_qrels(queries: Queries, path: FilePath) -> None:
    """Write the labels as judgments, in input order; whole labels as integers, as trec_eval requires them.

    Documents that were not judged are left out.

    Parameters
    ----------
    queries : Queries
        Queries with labels.
    path : path
        The file, gzipped if it ends in ``.gz``.
    """
    labels = as_queries(queries, "write_qrels").labels()
    written = labels if queries.judged is None else np.where(queries.judged, labels, np.nan)
    with writing_bytes(path, 9) as file:
        for query, qid, docids in _iter_ids(queries):
            for docid, value in zip(docids, written[queries.rows_of(query)].tolist(), strict=True):
                if math.isnan(value):
                    continue
                shown = int(value) if value == int(value) else value
                file.write(b"%b 0 %b %b\n" % (qid, docid, repr(shown).encode()))


def as_run(given: Any) -> Run:
    """The run that is given, or that a file or a table holds; see :func:`from_trec`."""
    if isinstance(given, Run):
        return given
    return Run(*_of_frame(given, "score")) if hasattr(given, "columns") else read_run(given)


def as_qrels(given: Any) -> Qrels:
    """The judgments that are given, or that a file or a table holds; see :func:`from_trec`."""
    if isinstance(given, Qrels):
        return given
    return Qrels(*_of_frame(given, "label")) if hasattr(given, "columns") else read_qrels(given)


def _of_frame(frame: Any, number: str) -> tuple[StringColumn, StringColumn, NDArray[np.float64]]:
    """The columns qid, docno (or docid) and ``number`` of a table."""
    from rankwise.io.tables.frames import open_frame

    table = open_frame(frame)
    docid = "docno" if "docno" in table.columns else "docid"
    for name in ("qid", docid, number):
        if name not in table.columns:
            raise DataError(f"the table must have a column {name!r}, got {', '.join(map(repr, table.columns)):.200}")
    values = as_floats(table[number].to_numpy(), f"the column {number} must hold numbers")
    if not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values)))
        raise DataError(f"the column {number} must hold numbers, got {values[row]} at row {row:,}")
    qids, docids = (StringColumn.of(str(value) for value in table[name].to_list()) for name in ("qid", docid))
    return qids, docids, values


# ------------------------------------------------------------------------------------------- joining


def by_query(qid: StringColumn, docid: StringColumn, values: NDArray[np.float64]) -> dict[str, dict[str, float]]:
    """query -> document -> value, in the order of the file."""
    grouped: dict[str, dict[str, float]] = {}
    for query, document, value in zip(qid, docid, values.tolist(), strict=True):
        own = grouped.setdefault(query, {})
        if document in own:
            raise DataError(f"document {document!r} occurs twice in query {query!r}")
        own[document] = value
    return grouped


def with_judgments(queries: Queries, labels: Sequence[float | None]) -> Queries:
    """The queries with these labels; None and a negative one are those of a document that nobody judged."""
    y = np.array([-1.0 if label is None else label for label in labels], dtype=np.float64)
    return queries.with_labels(np.maximum(y, 0.0)).with_judged(y >= 0)


def _labels_by_query(qrels: Qrels, unjudged: str) -> dict[str, dict[str, float]]:
    """query -> document -> label, -1 where it was not judged; NaN for a document to be dropped."""
    negative = qrels.label < 0
    if unjudged == "error" and negative.any():
        row = int(np.argmax(negative))
        raise DataError(
            f"document {qrels.docid[row]!r} of query {qrels.qid[row]!r} has label {qrels.label[row]:g}: "
            "labels must be 0 or more; pass unjudged='zero' or unjudged='drop'"
        )
    return by_query(qrels.qid, qrels.docid, np.where(negative, -1.0 if unjudged == "zero" else np.nan, qrels.label))


def _join(labels: dict[str, float], scores: dict[str, float]) -> list[tuple[str, float, float]]:
    """(docid, label, score) of the retrieved documents, and then of the others in the judgments; -1: not judged."""
    rows = [(docid, labels.get(docid, -1.0), score) for docid, score in scores.items()]
    rows += [(docid, label, -np.inf) for docid, label in labels.items() if docid not in scores]
    return [row for row in rows if row[1] == row[1]]


def _report(labels: dict[str, Any], scores: dict[str, Any], missing_queries: str) -> None:
    """Log the queries that only one of the two files has; no common query at all is an error."""
    missing = [qid for qid in labels if qid not in scores]
    extra = [qid for qid in scores if qid not in labels]
    if missing and len(missing) == len(labels) and scores:
        raise DataError(
            f"the run and the judgments have no query in common: the run begins with {next(iter(scores))!r}, the "
            f"judgments with {missing[0]!r}"
        )
    if missing:
        what = "left out" if missing_queries == "skip" else "kept with nothing retrieved"
        logger.warning(
            "%d of %d judged queries are not in the run, %s: %s", len(missing), len(labels), what, _some(missing)
        )
    if extra:
        logger.warning(
            "%d of %d queries of the run are not judged, left out: %s", len(extra), len(scores), _some(extra)
        )


def _some(names: list[str]) -> str:
    """The first names, for a message."""
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")


# ------------------------------------------------------------------------------------------- reading lines


def _read(
    source: Source, fields: tuple[str, ...], number: str, header: tuple[bytes, ...] = ()
) -> tuple[StringColumn, StringColumn, NDArray[np.float64]]:
    """The columns qid, docid and ``number`` of a file; under ``header`` it has these three alone."""
    name, place, docid_place = name_of(source), fields.index(number), fields.index("docid")
    qids: list[bytes] = []
    docids: list[bytes] = []
    values: list[float] = []
    seen: dict[bytes, dict[bytes, int]] = {}
    for line, text in enumerate(lines_of(source), 1):
        parts = text.split()
        if not parts:
            continue
        if header and not seen and tuple(parts) == header:
            fields, place, docid_place, header = ("qid", "docid", number), 2, 1, ()
            continue
        if not seen and {len(parts), len(fields)} == {len(_RUN), len(_QRELS)}:
            found, expected = ("a run", "judgments") if fields == _QRELS else ("judgments", "a run")
            raise FileFormatError(
                f"{name} is {found} ({len(parts)} fields per line), expected {expected} ({' '.join(fields)}): the "
                "judgments (qrels) come first, then the run"
            )
        if len(parts) != len(fields):
            raise FileFormatError(
                f"{name}, line {line:,}: expected {len(fields)} fields ({' '.join(fields)}), got {len(parts)}"
            )
        qid, docid = parts[0], parts[docid_place]
        first = seen.setdefault(qid, {}).setdefault(docid, line)
        if first != line:
            raise FileFormatError(
                f"{name}, line {line:,}: document {docid.decode()!r} of query {qid.decode()!r} is also on "
                f"line {first:,}"
            )
        qids.append(qid)
        docids.append(docid)
        values.append(_number(parts[place], name, line, number))
    return StringColumn.of_bytes(qids), StringColumn.of_bytes(docids), np.array(values, dtype=np.float64)


def _number(word: bytes, name: str, line: int, what: str) -> float:
    """A finite number, or an error that names the line."""
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or b"_" in word:  # Python takes 1_000 for a number
        raise FileFormatError(f"{name}, line {line:,}: {what} must be a number, got {word.decode()!r}")
    return value


# ------------------------------------------------------------------------------------------- writing lines


def _iter_ids(queries: Queries) -> Iterator[tuple[int, bytes, list[bytes]]]:
    """(number, id, ids of the documents) of each query, as the words of a file."""
    names = [_field(name, "query id") for name in queries.names()]
    if (twice := first_repeated(names)) is not None:
        raise DataError(f"two queries would be written as {_text(twice)!r}: give them different ids")
    for query, name in enumerate(names):
        if queries.docid is None:
            yield query, name, [b"%d" % place for place in range(queries.sizes[query])]
            continue
        docids = [_field(docid, "document id") for docid in queries.docid[queries.rows_of(query)]]
        if (twice := first_repeated(docids)) is not None:
            raise DataError(f"document {_text(twice)!r} occurs twice in query {_text(name)!r}")
        yield query, name, docids


def _text(word: bytes) -> str:
    """The text of a word whose bytes may not be UTF-8, as ids in memory may hold them."""
    return word.decode("utf-8", "surrogateescape")


def _field(value: Any, what: str) -> bytes:
    """A value as one field of a line."""
    try:
        word = str(value).encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise DataError(f"the {what} {value!r} cannot be written: it holds half of a surrogate pair") from error
    if word.split() != [word]:
        raise DataError(f"the {what} {value!r} cannot be written: a field must not be empty or hold blanks")
    return word
