"""Evaluate scores: per-query values, means, intervals, and how many queries said nothing."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._errors import DataError, RankwiseError
from rankwise._tables import Table
from rankwise.data import checks, grouping
from rankwise.data.queries import Queries
from rankwise.evaluation.statistics.intervals import How, interval, mean
from rankwise.measures._base import Empty, Measure, Ties
from rankwise.measures.compute import EMPTY, ScoredLists, fill_empty, measure_lists
from rankwise.measures.conventions import Convention, convention, settle

# ------------------------------------------------------------------------------------------------------------- result
# What `evaluate` returns: numbers with their uncertainty, ready to print, plot and keep.


Value = TypeVar("Value")


class ByMeasure(dict[str, Value]):
    """A dict of column title -> value in which any other spelling of a measure finds it too."""

    def __init__(self, evaluation: "Evaluation", values: Iterable[Value]) -> None:
        super().__init__(zip(evaluation.titles, values, strict=True))
        self._evaluation = evaluation

    def __missing__(self, spelling: Any) -> Value:
        return self[self._evaluation.title_of(spelling)]

    def __reduce__(self) -> tuple[Any, ...]:
        return ByMeasure, (self._evaluation, list(self.values()))


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """Values of some measures on some queries.

    Attributes
    ----------
    measures, titles : the measures and their column titles
    values : measures x queries; NaN where a query was skipped
    empty : measures x queries; where the measure is 0/0, so that the value was skipped or given by ``empty=``
    mean : dict of title -> (weighted) mean over the queries that count, an exactly rounded sum; as in all dicts
        here, other spellings of a measure ("MAP", "ndcg@10") find it as well
    per_query : table with one row a query
    skipped, given : dicts of title -> queries left out, and queries whose value was stated by ``empty=``
    """

    measures: tuple[Measure, ...]
    titles: tuple[str, ...]
    values: NDArray[np.float64]
    empty: NDArray[np.bool_]
    qid: list[Any]
    weight: NDArray[np.float64] | None = None
    like: str | None = None
    rel: float | None = None
    random_state: Any = 0
    lists: ScoredLists | None = None

    def __post_init__(self) -> None:
        shape = (len(self.measures), len(self.qid))
        for name in ("values", "empty"):
            found = getattr(self, name)
            if not isinstance(found, np.ndarray) or found.shape != shape:
                raise DataError(
                    f"{name} of an evaluation is an array, measures x queries, of shape {shape}: found "
                    f"{getattr(found, 'shape', type(found).__name__)}"
                )
        if len(self.titles) != len(self.measures) or (self.weight is not None and np.shape(self.weight) != shape[1:]):
            raise DataError("an evaluation has one title for each measure, and one weight for each query or none")

    @property
    def mean(self) -> ByMeasure[float]:
        return ByMeasure(self, map(self._mean, self.values, self.empty))

    @cached_property
    def per_query(self) -> Table:
        return Table({"qid": self.qid, **dict(zip(self.titles, self.values, strict=True))})

    @property
    def skipped(self) -> ByMeasure[int]:
        return ByMeasure(self, np.isnan(self.values).sum(axis=1).tolist())

    @property
    def given(self) -> ByMeasure[int]:
        return ByMeasure(self, (self.empty & ~np.isnan(self.values)).sum(axis=1).tolist())

    def interval(self, level: float = 0.95, how: How = "bootstrap") -> ByMeasure[tuple[float, float]]:
        """Confidence interval of every mean: how sure the sample of queries makes us, by bootstrap or Student's t."""
        options: dict[str, Any] = {"weight": self.weight, "random_state": self.random_state}
        return ByMeasure(self, (interval(row, level, how, **options) for row in self.values))

    def tie_range(self) -> ByMeasure[tuple[float, float]]:
        """Smallest and largest mean over all orders of equal scores: a constant scorer shows a wide range."""
        if self.lists is None:
            raise RankwiseError("the range over ties needs the scores, and this evaluation was made without them")
        ends = []
        for ties in ("pessimistic", "optimistic"):
            values = measure_lists(self.measures, self.lists, ties=ties)
            settled = np.where(self.empty, self.values, values)  # a query is empty whatever the order
            ends.append(map(self._mean, settled, self.empty))
        return ByMeasure(self, zip(*ends, strict=True))

    def __getitem__(self, measure: str | Measure) -> NDArray[np.float64]:
        """Per-query values of one measure, by title or by any spelling of it."""
        return np.asarray(self.values[self.titles.index(self.title_of(measure))])

    def title_of(self, measure: str | Measure) -> str:
        """The column title of a measure that was evaluated, from any spelling of it."""
        if measure in self.titles:
            return str(measure)
        _, (wanted,), _ = settle(measure, self.like, self.rel)
        if wanted not in self.measures:
            raise RankwiseError(f"{measure} was not evaluated; there are: {', '.join(self.titles)}")
        return self.titles[self.measures.index(wanted)]

    def table(self, level: float = 0.95, how: How = "bootstrap") -> Table:
        """One row a measure: mean, interval, queries that count, skipped, given."""
        low, high = zip(*self.interval(level, how).values(), strict=True)
        skipped = list(self.skipped.values())
        return Table(
            {
                "measure": list(self.titles),
                "mean": list(self.mean.values()),
                "low": low,
                "high": high,
                "queries": [len(self.qid) - count for count in skipped],
                "skipped": skipped,
                "given": list(self.given.values()),
            }
        )

    def to_dict(self, level: float = 0.95, how: How = "bootstrap") -> dict[str, Any]:
        """Everything as plain values, ready for JSON (NaN becomes None)."""
        rows = zip(self.table(level, how), self.measures, strict=True)
        per_query = {title: list(map(_plain, row)) for title, row in zip(self.titles, self.values, strict=True)}
        return {
            "level": level,
            "measures": {
                row["measure"]: {
                    "spelling": repr(measure),
                    "mean": _plain(row["mean"]),
                    "interval": [_plain(row["low"]), _plain(row["high"])],
                    **{count: row[count] for count in ("queries", "skipped", "given")},
                }
                for row, measure in rows
            },
            "per_query": {
                "qid": [name if isinstance(name, (int, float, str)) else str(name) for name in self.qid],
                **per_query,
            },
        }

    def __repr__(self) -> str:
        return repr(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def _mean(self, row: NDArray[np.float64], empty: NDArray[np.bool_]) -> float:
        if self.weight is not None and self.like is not None and convention(self.like).unweighted_empty:
            # LightGBM adds an empty query's value without its weight, though the weight is in the divisor
            row = np.where(empty & (self.weight > 0), row / np.where(self.weight > 0, self.weight, 1), row)
        return mean(row, self.weight)


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


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
    rows = judged.scattered_rows
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
        return queries.scattered_rows
    # trec_eval compares the bytes of the ids; equal UTF-8 bytes order as the texts do
    ids = np.asarray(queries.docid)[rows]
    _, rank = np.unique(ids.astype(str), return_inverse=True)
    return np.asarray(rows[np.lexsort((-rank.reshape(-1), owner))], dtype=np.int64)
