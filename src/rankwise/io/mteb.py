"""Scores of documents in the files of embedding tools: MTEB's predictions and those of sentence-transformers.

:func:`read_predictions` reads them into the same :class:`~rankwise.io.trec.Run` as a TREC run, which
:func:`~rankwise.io.trec.from_trec` joins with judgments. :func:`means_in_line` and :func:`means_in_json`
recognize the files of both tools that hold means alone, from which nothing can be measured again or tested.
"""

import os
import re
from typing import Any

import numpy as np

from rankwise._parameters import validated
from rankwise.errors import DataError, FileFormatError
from rankwise.io.json_text import describe_value, items_of, member, number_of, read_json, text_of
from rankwise.io.sources import name_of, open_stream
from rankwise.io.trec import Run, Source
from rankwise.queries.grouping import StringColumn

_META = "mteb_model_meta"
_MEANS = "only means over queries, by which nothing can be measured or tested again"


@validated
def read_predictions(
    path: Source, *, subset: str | None = None, split: str | None = None, ignore_identical_ids: bool = False
) -> Run:
    """Read the scores that an embedding model or a reranker gave to documents.

    Parameters
    ----------
    path : path, ``-`` or binary file object
        MTEB's ``TASK_predictions.json``, {subset: {split: {query: {document: score}}}}; the same without subsets and
        splits, as MTEB 1 wrote them to ``TASK_SUBSET_predictions.json``; or the ``*_predictions_*.jsonl`` that
        sentence-transformers' ``InformationRetrievalEvaluator`` writes with ``write_predictions=True``. Plain or
        gzipped.
    subset, split : str, default=None
        Which of MTEB's subsets and splits; None takes the only one.
    ignore_identical_ids : bool, default=False
        Whether documents that have the id of their query are left out. MTEB keeps them in the file and leaves them out
        of its measures in tasks with ``ignore_identical_ids = True``, such as ArguAna and Quora.

    Returns
    -------
    run : Run
        The scored documents, for :func:`rankwise.io.from_trec`.

    Raises
    ------
    FileFormatError
        If the file holds something else, for example means alone, or repeats a document of a query.
    DataError
        If the file has several subsets or splits and none was chosen, or lacks the chosen one.
    """
    values = read_json(path)
    refuse_means(name_of(path), means_in_json([value for _, value in values]))
    if all(isinstance(value, dict) and "query_id" in value for _, value in values):
        if subset is not None or split is not None:
            raise DataError(f"{name_of(path)} has lines of queries and no subsets: leave out subset= and split=")
        return _run(_of_lines(values), ignore_identical_ids)
    if len(values) != 1:
        raise FileFormatError(f"{values[0][0]}: expected an object with 'query_id' and 'results' on every line")
    return _run(_of_object(*values[0], subset, split), ignore_identical_ids)


def _of_lines(values: list[tuple[str, Any]]) -> dict[str, dict[str, float]]:
    """query -> document -> score of sentence-transformers' lines."""
    scores: dict[str, dict[str, float]] = {}
    for where, value in values:
        qid = text_of(value["query_id"], "query_id", where)
        if qid in scores:
            raise FileFormatError(f"{where}: query {qid!r:.60} is already on an earlier line")
        if "documents" in value and "results" not in value:
            raise FileFormatError(
                f"{where}: this is a ranking of sentence-transformers' ReciprocalRankFusionEvaluator, which holds "
                "texts of documents without ids and scores: pass the predictions of an InformationRetrievalEvaluator"
            )
        own = scores[qid] = {}
        for result in member(value, "results", list, where):
            found = dict(items_of(result, "a result", where))
            docid = text_of(found.get("corpus_id"), "corpus_id", where)
            if docid in own:
                raise FileFormatError(f"{where}: document {docid!r:.60} occurs twice in query {qid!r:.60}")
            own[docid] = number_of(found.get("score"), f"the score of document {docid!r:.60}", where)
    return scores


def _of_object(where: str, value: Any, subset: str | None, split: str | None) -> dict[str, dict[str, float]]:
    """query -> document -> score of MTEB's object."""
    parts = {key: part for key, part in items_of(value, "predictions", where) if key != _META}
    if _META in value or _is_nested(parts):
        part = _choose(parts, subset, "subset", where)
        part = _choose(dict(items_of(part, "a subset", where)), split, "split", where)
        parts = dict(items_of(part, "a split", where))
    elif subset is not None or split is not None:
        raise DataError(f"{where} has queries and no subsets: leave out subset= and split=")
    return {
        qid: {
            docid: number_of(score, f"the score of document {docid!r:.60} of query {qid!r:.60}", where)
            for docid, score in items_of(documents, f"the documents of query {qid!r:.60}", where)
        }
        for qid, documents in parts.items()
    }


def _is_nested(parts: dict[str, Any]) -> bool:
    """Whether objects stand where scores would."""
    first = next((part for part in parts.values() if isinstance(part, dict) and part), {})
    return isinstance(next(iter(first.values()), None), dict)


def _choose(parts: dict[str, Any], name: str | None, what: str, where: str) -> Any:
    """The part of this name, or the only one."""
    there = ", ".join(map(repr, parts)) or "none"
    if name is None and len(parts) == 1:
        return next(iter(parts.values()))
    if name not in parts:
        asked = f"read_predictions(path, {what}=...) chooses one" if name is None else f"there is no {name!r:.60}"
        raise DataError(f"{where} has the {what}s {there:.200}: {asked}")
    return parts[name]


def _run(scores: dict[str, dict[str, float]], ignore_identical_ids: bool) -> Run:
    """The columns of a run."""
    rows = [
        (qid, docid, score)
        for qid, documents in scores.items()
        for docid, score in documents.items()
        if not (ignore_identical_ids and docid == qid)
    ]
    return Run(
        StringColumn.of(qid for qid, _, _ in rows),
        StringColumn.of(docid for _, docid, _ in rows),
        np.array([score for _, _, score in rows], dtype=np.float64),
    )


# ------------------------------------------------------------------------------------------- means alone


def first_line(path: str | os.PathLike[str]) -> str:
    """The first line of a file, plain or gzipped, that is not blank."""
    with open_stream(path) as stream:
        lines = stream.head.splitlines()
    # the head may end within a letter
    return next((line for line in lines if line.strip()), b"").decode("utf-8", "ignore")


def means_in_line(line: str) -> str | None:
    """The tool that wrote the means in a file with this first line; None if it holds no means."""
    header = re.match(r'"?epoch"?,"?steps"?,', line)
    return None if header is None else "a CSV of sentence-transformers' evaluator, one line per evaluation"


def means_in_json(values: list[Any]) -> str | None:
    """The same of the values of a JSON file."""
    first = values[0]
    if len(values) == 1 and isinstance(first, dict) and _META not in first:
        if isinstance(first.get("scores"), dict) and "task_name" in first:
            return f"a result of MTEB's task {describe_value(first['task_name'])}"
        if "mteb_version" in first:
            return "a result of MTEB"
    return None


def refuse_means(name: str, tool: str | None) -> None:
    """Raise an error where a file holds means alone.

    Parameters
    ----------
    name : str
        The name of the file.
    tool : str or None
        What :func:`means_in_line` or :func:`means_in_json` returned.

    Raises
    ------
    FileFormatError
        If there is a tool.
    """
    if tool is not None:
        raise FileFormatError(
            f"{name} is {tool}, which holds {_MEANS}: pass the scores of documents, which MTEB writes to "
            "prediction_folder= and sentence-transformers with write_predictions=True"
        )
