"""Evaluate scores: per-query values, means, intervals, and how many queries said nothing."""

from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._errors import DataError, RankwiseError
from rankwise.data import checks, grouping
from rankwise.data.queries import Queries
from rankwise.evaluation.result import Evaluation
from rankwise.measures._base import Empty, Measure, Ties
from rankwise.measures.compute import EMPTY, ScoredLists, fill_empty, measure_lists
from rankwise.measures.conventions import Convention, settle


def evaluate(
    queries: Any,
    scores: Any,
    measures: str | Measure | Sequence[str | Measure] = ("nDCG@10",),
    *,
    like: str | None = None,
    ties: Ties | None = None,
    empty: Empty | None = None,
    rel: float | None = None,
    qid: ArrayLike | Sequence[Any] | None = None,
    group: ArrayLike | None = None,
    weight: ArrayLike | None = None,
    random_state: int | np.random.Generator = 0,
    n_jobs: int | None = None,
) -> Evaluation:
    """Measure how well ``scores`` rank ``queries``.

    Parameters
    ----------
    queries : `Queries`; or the path of a file of judged lists; or the labels alone, with ``qid`` or ``group``
    scores : one number a document, in the order of the input (a higher score is ranked first; -inf: not retrieved);
        or the path of a file of scores; or anything with ``predict``
    measures : texts such as "nDCG@10", "AP", "RR", or measure objects, ir-measures' too
    like : measure as another tool does: "letor", "trec_eval", "sklearn", "lightgbm", "xgboost", "catboost",
        "ranklib" or "ranx"
    ties : how equal scores are ordered: "expected" (mean over all orders, the default), "pessimistic",
        "optimistic", or "stable" (order of the input)
    empty : what a query counts on which the measure is 0/0, such as one without a relevant document: "skip" (left
        out of the mean and counted, the default), "zero" or "one"
    rel : the smallest label that counts as relevant in binary measures that do not say their own (default 1)
    weight : one number a query; the queries' own weights where None
    random_state : seed of the bootstrap intervals

    Examples
    --------
    >>> result = evaluate([2, 0, 1, 0, 1], [0.9, 0.2, 0.4, 0.3, 0.1], ["nDCG@10", "RR"], group=[3, 2])
    >>> result.mean
    {'nDCG@10': 0.8154648767857288, 'RR': 0.75}
    """
    tool, parsed, titles = settle(measures, like, rel)
    judged, scores = _open(queries, scores, qid, group)
    if weight is not None:
        judged = judged.with_weight(weight)
    labels = judged.labels()
    if not isinstance(scores, (np.ndarray, Sequence)) and hasattr(scores, "predict"):
        scores = scores.predict(judged)
    values = checks.as_scores(scores, judged.n_documents)
    if tool is not None:
        _refuse_labels(tool, parsed, labels)
        values = _in_single_precision(values) if tool.single else values
    order: Ties | str = ties or ("expected" if tool is None else tool.ties)
    rows = None if judged.is_grouped else judged.rows
    if order == "docid":
        rows, order = _by_docid(judged, values), "stable"

    lists = ScoredLists(values, labels, judged.start, rows)
    raw = measure_lists(parsed, lists, ties=order, n_jobs=n_jobs)  # type: ignore[arg-type]
    stated = [empty or ("skip" if tool is None else tool.empty_value(measure)) for measure in parsed]
    for choice in stated:
        if not isinstance(choice, str) or choice not in EMPTY:
            raise RankwiseError(f"empty is one of {', '.join(map(repr, EMPTY))}: found {choice!r}")
    return Evaluation(
        measures=tuple(parsed),
        titles=tuple(titles),
        values=np.stack([fill_empty(row, choice) for row, choice in zip(raw, stated, strict=True)]),
        empty=np.isnan(raw),
        qid=judged.names(),
        weight=judged.weight,
        like=like,
        rel=rel,
        random_state=random_state,
        lists=lists,
    )


def _open(queries: Any, scores: Any, qid: Any, group: Any) -> tuple[Queries, Any]:
    """The judged lists and the scores, whatever they were given as."""
    if isinstance(queries, (str, PathLike)):
        from rankwise.evaluation.files import open_judged

        queries, scores = open_judged(queries, scores)
    if not isinstance(queries, Queries):
        labels = np.asarray(queries)
        if (qid is None) == (group is None):
            raise DataError(
                "labels alone need qid= (one id a label) or group= (sizes of consecutive queries), one of them"
            )
        n_rows = len(labels) if labels.ndim else 0
        parts = grouping.by_id(qid, n_rows) if qid is not None else grouping.by_size(group, n_rows)
        if group is not None:
            grouping.warn_of_empty(np.diff(parts.start), "group")
        queries = Queries._trusted(
            np.empty((n_rows, 0)), checks.as_labels(labels, n_rows), parts.start, parts.rows, qid=parts.qid
        )
    elif qid is not None or group is not None:
        raise DataError("these queries know which rows belong together: leave out qid= and group=")
    if isinstance(scores, (str, PathLike)):
        from rankwise.evaluation.files import read_scores

        scores = read_scores(scores, queries)
    return queries, scores


def _refuse_labels(tool: Convention, measures: Sequence[Measure], labels: NDArray[np.float64]) -> None:
    for measure in measures:
        problem = tool.labels(measure, labels)
        if problem:
            raise DataError(f"{tool.name} cannot measure {measure.name} here: {problem}")


def _in_single_precision(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores as the tool compares them; a huge one is a huge one there too, and never "not retrieved"."""
    most = float(np.finfo(np.float32).max)
    rounded = np.clip(scores, -most, most).astype(np.float32).astype(np.float64)
    return np.where(np.isinf(scores), scores, rounded)


def _by_docid(queries: Queries, scores: NDArray[np.float64]) -> NDArray[np.int64] | None:
    """Rows of each query by document id, descending, which is how trec_eval orders equal scores."""
    rows, owner = queries.rows, np.repeat(np.arange(len(queries)), queries.sizes)
    if queries.docid is None:
        order = np.lexsort((scores[rows], owner))
        ordered, owner = scores[rows][order], owner[order]
        tied = (ordered[1:] == ordered[:-1]) & (owner[1:] == owner[:-1]) & (ordered[1:] > -np.inf)
        if tied.any():
            query = queries.names()[int(owner[1:][tied][0])]
            raise DataError(
                f"trec_eval orders equal scores by document id, query {query!r} has equal scores, and these queries "
                "carry no docid: give docid= when making them, or ties="
            )
        return None if queries.is_grouped else rows
    # trec_eval compares the bytes of the ids; equal UTF-8 bytes order as the texts do
    ids = np.asarray(queries.docid)[rows]
    _, rank = np.unique(ids.astype(str), return_inverse=True)
    return np.asarray(rows[np.lexsort((-rank.reshape(-1), owner))], dtype=np.int64)
