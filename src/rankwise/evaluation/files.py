"""Judged queries, scores, and values per query from files.

Scores come in four formats: one score per line, RankLib's score file, or a TREC run, distinguished by their number of
columns; or the predictions of MTEB and sentence-transformers, which are JSON. Runs and predictions are read against
qrels or against queries with document ids.
"""

import os
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from rankwise.errors import FileFormatError, in_one_line
from rankwise.io.any_file import is_json, is_store, kind_of, read_any
from rankwise.io.json_text import items_of, member, number_of, read_json
from rankwise.io.mteb import first_line, means_in_json, means_in_line, read_predictions, refuse_means
from rankwise.io.sources import name_of, open_stream, plain_number, read_text
from rankwise.io.tables.rows import is_arrow
from rankwise.io.trec import BEIR, Run, from_trec, read_qrels, read_run
from rankwise.measures._base import Vector
from rankwise.queries.parts.parts import Parts
from rankwise.queries.queries import Queries

Path = str | os.PathLike[str]

# -inf is the score of a document that was not retrieved
_INFINITE = {sign + word: float(sign + word) for sign in ("", "-") for word in ("inf", "infinity")}


def open_pair(
    judged: Path, scores: Path, opened: dict[str, Any] | None = None, **options: Any
) -> tuple[Queries, Vector]:
    """Read judged queries and the scores of their documents.

    Parameters
    ----------
    judged : str or path-like
        Judged queries, or TREC qrels when the scores are a TREC run.
    scores : str or path-like
        The file of scores.
    opened : dict, default=None
        Keeps the judged queries for the next file of scores.
    **options : dict
        Options for reading the queries.

    Returns
    -------
    queries : Queries
        The judged queries.
    scores : ndarray of shape (n_documents,)
        One score per document.
    """
    kept = {} if opened is None else opened
    if is_qrels(judged):
        kept["qrels"] = kept.get("qrels") or read_qrels(judged)
        return from_trec(kept["qrels"], _read_run(scores))
    if is_run(judged):
        read_qrels(judged)  # which says that the two files are in the wrong order
    if "queries" not in kept:
        kept["queries"] = read_any(judged, **options)
    return kept["queries"], read_scores(scores, kept["queries"])


def _read_run(path: Path) -> Run:
    """A TREC run or predictions."""
    if is_json(path):
        return read_predictions(path)
    if os.fspath(path) != "-" and os.path.isfile(path):
        refuse_means(name_of(path), means_in_line(first_line(path)))
    return read_run(path)


def read_scores(path: Path, queries: Queries) -> Vector:
    """Read one score per document of ``queries``, in the order of their rows.

    The file holds one score per line, in the order of the judged documents; or RankLib's three columns (query id, index
    in the query, score); or a TREC run or predictions, whose documents are found by query id and document id (documents
    that it lacks were not retrieved and have the score -inf).

    Parameters
    ----------
    path : str or path-like
        The file.
    queries : Queries
        The judged queries.

    Returns
    -------
    ndarray of shape (n_documents,)
        The scores.

    Raises
    ------
    FileFormatError
        If the file has another format, or does not match the queries.
    """
    if is_json(path):
        run = read_predictions(path)
        found = zip(run.qid, run.docid, run.score.tolist(), strict=True)
        return _by_docid(path, (("", *row) for row in found), queries)  # JSON has no lines to name
    text = read_text(path).data.tobytes()
    # cut as bytes: str also ends lines at \x1e and U+2028, and words at blanks of other scripts
    lines = [
        (number, [word.decode() for word in line.split()])
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip()
    ]
    if not lines:
        raise FileFormatError(f"{path} is empty, expected {queries.n_documents:,} scores")
    # the number of columns tells the three formats apart
    width = len(lines[0][1])
    if width == 1:
        refuse_means(name_of(path), means_in_line(lines[0][1][0]))
    for number, fields in lines:
        if len(fields) != width:
            raise FileFormatError(
                f"{path}, line {number}: expected {width} columns as in the first line, got {len(fields)}"
            )
    if width == 1:
        return _in_order(path, lines, queries)
    if width == 3:
        return _by_index(path, lines, queries)
    if width == 6:
        rows = ((f", line {line}", word[0], word[2], _number(path, line, word[4])) for line, word in lines)
        return _by_docid(path, rows, queries)
    raise FileFormatError(
        f"{path}: expected one score per line, RankLib's three columns, or the six of a TREC run; got {width} columns"
    )


def read_scores_of_parts(path: Path, parts: Parts) -> Vector:
    """Read one score per document of a data set in parts.

    One score per line is read block by block. The other formats of :func:`read_scores` are read as a whole.

    Parameters
    ----------
    path : str or path-like
        The file.
    parts : Parts
        The judged queries.

    Returns
    -------
    ndarray of shape (n_documents,)
        The scores.
    """
    scores, filled, rest = np.empty(parts.n_documents), 0, b""
    with open_stream(path) as stream:
        head = next((line for line in stream.head.splitlines() if line.strip()), b"")
        if len(head.split()) != 1:
            return read_scores(path, parts.lazy())
        while block := stream.read():
            text = rest + block
            cut = text.rfind(b"\n") + 1
            rest = text[cut:]
            filled = _fill(scores, filled, text[:cut], stream.name)
    filled = _fill(scores, filled, rest, name_of(path))
    if filled != len(scores):
        raise FileFormatError(f"{path} has {filled:,} scores, expected {len(scores):,}: one per document")
    return scores


def _fill(scores: Vector, filled: int, text: bytes, name: str) -> int:
    """Put the numbers of whole lines behind those that are there; returns how many there are."""
    try:
        found = np.array(text.split(), dtype=bytes).astype(np.float64) if text.strip() else np.zeros(0)
    except ValueError as error:
        raise FileFormatError(f"{name}: expected one score per line, {in_one_line(error)}") from error
    if filled + len(found) > len(scores):
        raise FileFormatError(f"{name} has more than {len(scores):,} scores, expected one per document")
    scores[filled : filled + len(found)] = found
    return filled + len(found)


def _in_order(path: Path, lines: list[tuple[int, list[str]]], queries: Queries) -> Vector:
    """Scores that stand in the order of the documents."""
    if len(lines) != queries.n_documents:
        raise FileFormatError(
            f"{path} must hold one score per judged document ({queries.n_documents:,}), got {len(lines):,}"
        )
    return np.array([_number(path, number, fields[0]) for number, fields in lines])


def _by_index(path: Path, lines: list[tuple[int, list[str]]], queries: Queries) -> Vector:
    """Scores with query id and index in the query, as RankLib writes them."""
    # RankLib writes ids as text, whatever they were
    place = {str(name): query for query, name in enumerate(queries.names())}
    # NaN marks documents without a score, which are an error at the end
    scores = np.full(queries.n_documents, np.nan)
    for number, (name, index, score) in lines:
        if name not in place:
            raise FileFormatError(f"{path}, line {number}: query {name!r} is not among the judged queries")
        query = place[name]
        rows = queries.rows_of(query)
        size = int(queries.sizes[query])
        if not re.fullmatch(r"[0-9]{1,18}", index) or int(index) >= size:
            raise FileFormatError(f"{path}, line {number}: expected an index below {size}, got {index!r}")
        row = rows.start + int(index) if isinstance(rows, slice) else rows[int(index)]
        scores[row] = _number(path, number, score)
    if np.isnan(scores).any():
        raise FileFormatError(f"{path} lacks the score of {int(np.isnan(scores).sum()):,} judged documents")
    return scores


def _by_docid(path: Path, rows: Iterable[tuple[str, str, str, float]], queries: Queries) -> Vector:
    """Scores of a run, given as (place in the file, query id, document id, score)."""
    if queries.docid is None:
        raise FileFormatError(f"{path} is a TREC run, which requires judged documents with ids")
    owner = queries.query_of_row
    names = [str(name) for name in queries.names()]
    row_of = {(names[query], docid): row for row, (query, docid) in enumerate(zip(owner, queries.docid, strict=True))}
    # a document that the run does not list was not retrieved
    scores = np.full(queries.n_documents, -np.inf)
    for place, qid, docid, score in rows:
        row = row_of.get((qid, docid))
        if row is None:
            raise FileFormatError(f"{path}{place}: document {docid!r} of query {qid!r} is not a judged document")
        scores[row] = score
    return scores


def _number(path: Path, line: int, text: str) -> float:
    """Parse one score; infinities are allowed."""
    value = _INFINITE.get(text.lower().lstrip("+"), plain_number(text))
    if value is None:
        raise FileFormatError(f"{path}, line {line}: expected a score, got {text!r:.60}")
    return value


def is_qrels(path: Path) -> bool:
    """Whether the first line of a file is BEIR's, or has the four columns of qrels and no ``qid:``.

    Parameters
    ----------
    path : path
        The file, or ``-``, which is not looked at.

    Returns
    -------
    bool
        Whether it holds judgments of documents, and no features.
    """
    fields = _first_fields(path)
    return tuple(fields) == BEIR or (len(fields) == 4 and not any(b":" in field for field in fields[1:]))


def is_run(path: Path) -> bool:
    """Whether the first line of a file has the six columns of a run, the fourth and the fifth of them numbers."""
    fields = _first_fields(path)
    return len(fields) == 6 and all(plain_number(field.decode()) is not None for field in fields[3:5])


def _first_fields(path: Path) -> list[bytes]:
    """The words of the first line of a file of lines; none for tables, rankwise files and ``-``."""
    name = os.fspath(path)
    if name == "-" or not os.path.isfile(name) or is_store(name) or is_arrow(name):
        return []
    fields = first_line(name).encode().split(b"#")[0].split()
    return fields if tuple(fields) == BEIR or kind_of(name) == "text" else []


# ---------------------------------------------------------------------------- values per query of other tools

# lines of trec_eval that are no measures
_NO_MEASURE = re.compile(r"num_.*|runid|relstring.*")


def read_values(path: str | os.PathLike[str]) -> dict[str, list[Any]]:
    """Read the values of measures per query.

    Parameters
    ----------
    path : path
        What ``trec_eval -q`` prints or RankLib writes with ``-idv``: measure, query and value on each line; or JSON:
        the object {query: {measure: value}} that pytrec_eval returns, or the one of :meth:`Evaluation.to_dict`.

    Returns
    -------
    columns : dict of str to list
        ``qid``, in the order of their texts, and one column per measure.

    Raises
    ------
    FileFormatError
        If the file holds something else, means alone among them, or lacks the value of a query.
    """
    line = first_line(path)
    refuse_means(name_of(path), means_in_line(line))
    values = _from_json(path) if line.lstrip()[:1] == "{" else _from_lines(path)
    names = {measure: None for own in values.values() for measure in own}
    if not names:
        raise FileFormatError(f"{name_of(path)} has no per-query values: expected lines of measure, query and value")
    for qid, own in values.items():
        lacking = next((measure for measure in names if measure not in own), None)
        if lacking is not None:
            raise FileFormatError(f"{name_of(path)} lacks the value of {lacking!r:.60} for query {qid!r:.60}")
    order = sorted(values)
    return {"qid": order, **{measure: [values[qid][measure] for qid in order] for measure in names}}


def _from_json(path: str | os.PathLike[str]) -> dict[str, dict[str, float]]:
    """query -> measure -> value."""
    values = read_json(path)
    where, content = values[0]
    refuse_means(where, means_in_json([content]))
    if len(values) > 1:
        raise FileFormatError(f"{values[1][0]}: expected a JSON object that maps queries to values")
    if isinstance(content, dict) and "per_query" in content:
        columns = dict(items_of(content["per_query"], "'per_query'", where))
        qid = [str(name) for name in member(columns, "qid", list, where)]
        found: dict[str, dict[str, float]] = {name: {} for name in qid}
        if len(found) < len(qid):
            (twice, _), *_ = Counter(qid).most_common(1)
            raise FileFormatError(f"{where}: query ids must be unique, got {twice!r:.60} more than once")
        for measure in columns:
            column = member(columns, measure, list, where)
            if len(column) != len(qid):
                raise FileFormatError(f"{where}: {measure!r:.60} has {len(column):,} values for {len(qid):,} queries")
            for name, value in zip(qid, column, strict=True):
                if measure != "qid":  # None: the measure is 0/0 there
                    found[name][measure] = float("nan") if value is None else number_of(value, measure, where)
        return found
    return {
        qid: {
            measure: number_of(value, f"the value of {measure!r:.60} for query {qid!r:.60}", where)
            for measure, value in items_of(own, f"the values of query {qid!r:.60}", where)
        }
        for qid, own in items_of(content, "values by query", where)
    }


def _from_lines(path: str | os.PathLike[str]) -> dict[str, dict[str, float]]:
    """query -> measure -> value."""
    name, found = name_of(path), dict[str, dict[str, float]]()
    text = read_text(path).data.tobytes().decode()
    for number, line in enumerate(text.split("\n"), 1):
        fields = line.split()
        if not fields:
            continue
        if len(fields) != 3:
            raise FileFormatError(
                f"{name}, line {number:,}: expected a measure, a query and a value, got {len(fields)} fields"
            )
        measure, qid, word = fields
        if qid == "all" or _NO_MEASURE.fullmatch(measure):
            continue
        value = plain_number(word)
        if value is None:
            raise FileFormatError(f"{name}, line {number:,}: expected a number as the value, got {word!r:.60}")
        if measure in found.setdefault(qid, {}):
            raise FileFormatError(
                f"{name}, line {number:,}: {measure} of query {qid!r:.60} is already on an earlier line"
            )
        found[qid][measure] = value
    return found
