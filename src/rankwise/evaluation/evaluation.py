"""Evaluate scores: values per query, means, intervals, and the number of queries on which a measure is undefined.

:func:`evaluate` accepts queries or labels, scores or a model, from memory or from files, and computes the measures of
:mod:`rankwise.measures` under the conventions of this package or of another tool. :class:`Evaluation` holds the values
per query and derives means, intervals and tables from them.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from os import PathLike
from os.path import isdir
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._diagnose.row_order import DEVIATIONS, PREDICTS_LABEL, correlate_tied_labels
from rankwise._kernels.parallel import announce_kernels
from rankwise._progress import throughput
from rankwise._tables import Table
from rankwise.errors import DataError, DataWarning, RankwiseError, in_one_line, warn
from rankwise.evaluation.statistics.intervals import How, interval, mean
from rankwise.guarantees._bound import APPROXIMATE, Scope
from rankwise.measures._base import Empty, Measure, Ties, settle
from rankwise.measures.compute import ScoredLists, fill_empty, measure_lists
from rankwise.measures.conventions import Convention, convention
from rankwise.queries import checks, grouping
from rankwise.queries.overlap import overlap
from rankwise.queries.parts.parts import Parts
from rankwise.queries.queries import Queries
from rankwise.rankers._foreign import takes_arrays
from rankwise.rankers._inputs import align, apply_builder
from rankwise.rankers._record import record_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Value = TypeVar("Value")


class ByMeasure(dict[str, Value]):
    """A dict of column title to value that finds a measure under any spelling.

    Parameters
    ----------
    evaluation : Evaluation
        The evaluation, which knows the spellings.
    values : iterable
        One value per measure.
    """

    def __init__(self, evaluation: "Evaluation", values: Iterable[Value]) -> None:
        # the keys are the titles; other spellings are resolved by __missing__, which dict calls
        super().__init__(zip(evaluation.titles, values, strict=True))
        self._evaluation = evaluation

    def __missing__(self, spelling: Any) -> Value:
        return self[self._evaluation.title_of(spelling)]

    def __reduce__(self) -> tuple[Any, ...]:
        return ByMeasure, (self._evaluation, list(self.values()))


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """Values of measures on queries; what :func:`evaluate` returns.

    Parameters
    ----------
    measures : tuple of Measure
        The measures.
    titles : tuple of str
        Their column titles.
    values : ndarray of shape (n_measures, n_queries)
        The values; NaN where a query was skipped.
    empty : ndarray of bool, shape (n_measures, n_queries)
        Where a measure is 0/0, and its value was skipped or given by ``empty=``.
    qid : list
        The ids of the queries.
    weight : ndarray of shape (n_queries,), default=None
        The weights of the queries.
    like : str, default=None
        The convention of another tool, if one was followed.
    rel : float, default=None
        The smallest relevant label, if it was given.
    random_state : int or Generator, default=0
        Seed of the bootstrap intervals.
    lists : ScoredLists, default=None
        Scores and labels, needed by :meth:`tie_range`.

    Attributes
    ----------
    mean : dict of str to float
        The (weighted) mean of every measure over the queries that count, an exactly rounded sum. As in all dicts here,
        other spellings of a measure ("MAP", "ndcg@10") find it as well.
    per_query : Table
        One row per query.
    skipped : dict of str to int
        The number of queries left out, for every measure.
    given : dict of str to int
        The number of queries whose value was given by ``empty=``, for every measure.
    """

    scope: ClassVar[Scope] = APPROXIMATE  # of the intervals

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
        # evaluations are also built from stored values, so shapes are checked here and not in evaluate
        shape = (len(self.measures), len(self.qid))
        for name in ("values", "empty"):
            found = getattr(self, name)
            if not isinstance(found, np.ndarray) or found.shape != shape:
                raise DataError(
                    f"{name} of an evaluation must be an array of shape (measures, queries) = {shape}, got "
                    f"{getattr(found, 'shape', type(found).__name__)}"
                )
        if len(self.titles) != len(self.measures) or (self.weight is not None and np.shape(self.weight) != shape[1:]):
            raise DataError(
                "an evaluation must have one title per measure, and either no weights or one weight per query"
            )

    @property
    def mean(self) -> ByMeasure[float]:
        """The (weighted) mean of every measure over the queries that count."""
        return ByMeasure(self, map(self._mean, self.values, self.empty))

    @cached_property
    def per_query(self) -> Table:
        """A table with one row per query: its id and the value of every measure."""
        return Table({"qid": self.qid, **dict(zip(self.titles, self.values, strict=True))})

    @property
    def skipped(self) -> ByMeasure[int]:
        """The number of queries that every measure left out."""
        return ByMeasure(self, np.isnan(self.values).sum(axis=1).tolist())

    @property
    def given(self) -> ByMeasure[int]:
        """The number of queries whose value was given by ``empty=``, for every measure."""
        return ByMeasure(self, (self.empty & ~np.isnan(self.values)).sum(axis=1).tolist())

    def interval(self, level: float = 0.95, how: How = "bootstrap") -> ByMeasure[tuple[float, float]]:
        """Confidence interval of every mean, the queries being a sample.

        Parameters
        ----------
        level : float, default=0.95
            The confidence level.
        how : {"bootstrap", "t"}, default="bootstrap"
            The kind of interval, see :func:`~rankwise.evaluation.statistics.intervals.interval`.

        Returns
        -------
        dict of str to tuple of float
            (low, high) for every measure.
        """
        # the same seed for every measure: all intervals see the same resampled queries
        options: dict[str, Any] = {"weight": self.weight, "random_state": self.random_state}
        return ByMeasure(self, (interval(row, level, how, **options) for row in self.values))

    def tie_range(self) -> ByMeasure[tuple[float, float]]:
        """Smallest and largest mean over all orders of equal scores; a constant scorer shows a wide range.

        Returns
        -------
        dict of str to tuple of float
            (smallest, largest) for every measure.

        Raises
        ------
        RankwiseError
            If the evaluation was made without scores.
        """
        if self.lists is None:
            raise RankwiseError("the range over ties requires the scores, which this evaluation does not have")
        ends = []
        for ties in ("pessimistic", "optimistic"):
            values = measure_lists(self.measures, self.lists, ties=ties)
            settled = np.where(self.empty, self.values, values)  # a query is empty whatever the order
            ends.append(map(self._mean, settled, self.empty))
        return ByMeasure(self, zip(*ends, strict=True))

    def __getitem__(self, measure: str | Measure) -> NDArray[np.float64]:
        """Values per query of one measure, by title or any other spelling."""
        return np.asarray(self.values[self.titles.index(self.title_of(measure))])

    def title_of(self, measure: str | Measure) -> str:
        """The column title of an evaluated measure, from any spelling of it.

        Parameters
        ----------
        measure : str or Measure
            The measure.

        Returns
        -------
        str
            Its column title.

        Raises
        ------
        RankwiseError
            If the measure was not evaluated.
        """
        if measure in self.titles:
            return str(measure)
        _, (wanted,), _ = settle(measure, self.like, self.rel)
        if wanted not in self.measures:
            raise RankwiseError(f"{measure} was not evaluated; evaluated measures: {', '.join(self.titles)}")
        return self.titles[self.measures.index(wanted)]

    def table(self, level: float = 0.95, how: How = "bootstrap") -> Table:
        """Summarize as a table with one row per measure.

        Parameters
        ----------
        level : float, default=0.95
            The confidence level of the intervals.
        how : {"bootstrap", "t"}, default="bootstrap"
            The kind of interval.

        Returns
        -------
        Table
            Columns measure, mean, low, high, queries (those that count), skipped, given.
        """
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

    def to_markdown(self, level: float = 0.95, how: How = "bootstrap") -> str:
        """:meth:`table` in Markdown, see :meth:`rankwise._tables.Table.to_markdown`.

        Parameters
        ----------
        level : float, default=0.95
            The confidence level of the intervals.
        how : {"bootstrap", "t"}, default="bootstrap"
            The kind of interval.

        Returns
        -------
        str
            The text.
        """
        return self.table(level, how).to_markdown()

    def to_latex(self, level: float = 0.95, how: How = "bootstrap") -> str:
        """:meth:`table` in LaTeX, see :meth:`rankwise._tables.Table.to_latex`.

        Parameters
        ----------
        level : float, default=0.95
            The confidence level of the intervals.
        how : {"bootstrap", "t"}, default="bootstrap"
            The kind of interval.

        Returns
        -------
        str
            The text, which needs the package booktabs.
        """
        return self.table(level, how).to_latex()

    def to_dict(self, level: float = 0.95, how: How = "bootstrap") -> dict[str, Any]:
        """Convert to plain values, ready for JSON; NaN becomes None.

        Parameters
        ----------
        level : float, default=0.95
            The confidence level of the intervals.
        how : {"bootstrap", "t"}, default="bootstrap"
            The kind of interval.

        Returns
        -------
        dict
            Level, measures with means, intervals and counts, and values per query.
        """
        rows = zip(self.table(level, how), self.measures, strict=True)
        columns = zip(self.titles, self.values.tolist(), strict=True)
        per_query = {title: list(map(none_if_nan, column)) for title, column in columns}
        return {
            "level": level,
            "measures": {
                row["measure"]: {
                    "spelling": repr(measure),
                    "mean": none_if_nan(row["mean"]),
                    "interval": [none_if_nan(row["low"]), none_if_nan(row["high"])],
                    **{count: row[count] for count in ("queries", "skipped", "given")},
                }
                for row, measure in rows
            },
            "per_query": {"qid": plain_ids(self.qid), **per_query},
        }

    def plot(self, against: "Evaluation | None" = None, *, level: float = 0.95, how: How = "bootstrap") -> "Figure":
        """Draw the values of all queries and the means with their intervals; needs the extra ``plot``.

        Parameters
        ----------
        against : Evaluation, default=None
            Another evaluation of the same queries by the same measures: the differences to it are drawn, query by
            query, with the intervals of the mean differences.
        level : float, default=0.95
            The confidence level of the intervals.
        how : {"bootstrap", "t"}, default="bootstrap"
            The kind of interval.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        from rankwise._figures import COLORS, FAINT, house_style, new_figure
        from rankwise.evaluation.statistics.multiple_testing import significance

        table, values = self.table(level, how), self.values
        if against is not None:
            # the same checks and the same intervals as in the table of tests
            pair = {"this": self, "other": against}
            table = significance(pair, baseline="other", level=level, how=how, test="t")
            values = np.array([self[title] - against[title] for title in self.titles])
        means = table["mean" if against is None else "difference"]
        figure = new_figure(5.2, 1.1 + 0.45 * max(1, len(table)))
        with house_style():
            axes = figure.subplots()
            if against is not None:
                axes.axvline(0, color=FAINT, linewidth=0.8)
            at = np.arange(len(table))[::-1]
            for place, row in zip(at, values, strict=True):
                known = np.sort(row[np.isfinite(row)])
                # the same queries give the same picture: heights follow the order of the values, not chance
                height = place + 0.25 * np.cos(2.399963 * np.arange(len(known)))
                axes.plot(known, height, ".", color=FAINT, markersize=2, alpha=0.6)
            axes.hlines(at, table["low"], table["high"], color=COLORS[0], linewidth=2)
            axes.plot(means, at, "o", color=COLORS[0], markersize=5)
            axes.set_yticks(at, table["measure"])
            axes.set_ylim(-0.6, len(table) - 0.4)
            axes.grid(visible=False, axis="y")
            what = "value" if against is None else "difference"
            axes.set_xlabel(f"{what} per query, mean with {level:.0%} interval")
            axes.set_title(f"{len(self.qid):,} queries")
        return figure

    def __repr__(self) -> str:
        return repr(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def _mean(self, row: NDArray[np.float64], empty: NDArray[np.bool_]) -> float:
        """The mean of one measure, under the convention of the tool."""
        if self.weight is not None and self.like is not None and convention(self.like).unweighted_empty:
            # LightGBM adds an empty query's value without its weight, though the weight is in the divisor
            row = np.where(empty & (self.weight > 0), row / np.where(self.weight > 0, self.weight, 1), row)
        return mean(row, self.weight)


def none_if_nan(value: Any) -> Any:
    """The value itself, and None for NaN, which JSON does not have."""
    return None if isinstance(value, float) and math.isnan(value) else value


def plain_ids(names: Iterable[Any]) -> list[Any]:
    """Ids of queries as numbers and texts."""
    return [name if isinstance(name, (int, float, str)) else str(name) for name in names]


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
    queries : Queries, Parts, str, path-like or array-like
        Judged queries; or the file of some, or the folder of a data set in parts; or the labels alone, with ``qid`` or
        ``group``. `Parts` are measured block by block.
    scores : array-like of shape (n_documents,), str, path-like or ranker
        One score per document, in the order of the input (a higher score is ranked first; -inf: not retrieved); or the
        file of some; or any object with ``predict``.
    measures : str, Measure or list of them, default=("nDCG@10",)
        Texts such as "nDCG@10", "AP", "RR", or measure objects, those of ir-measures included.
    like : str, default=None
        Follow the conventions of another tool: "letor", "trec_eval", "sklearn", "lightgbm", "xgboost", "catboost",
        "ranklib" or "ranx".
    ties : {"expected", "pessimistic", "optimistic", "stable"}, default=None
        How equal scores are ordered: "expected" (mean over all orders, the default), "pessimistic", "optimistic", or
        "stable" (order of the input).
    empty : {"skip", "zero", "one"}, default=None
        The value of a query on which the measure is 0/0, such as one without a relevant document: "skip" (left out of
        the mean and counted, the default), "zero" or "one".
    rel : float, default=None
        The smallest label that counts as relevant in binary measures without a label of their own; None means 1.
    qid : array-like of shape (n_documents,), default=None
        The query of every label, where ``queries`` holds labels alone.
    group : array-like of int, default=None
        The sizes of consecutive queries, where ``queries`` holds labels alone.
    weight : array-like of shape (n_queries,), default=None
        Weights of the queries; None takes those that the queries have.
    random_state : int or Generator, default=0
        Seed of the bootstrap intervals.
    n_jobs : int, default=None
        Threads; None uses every core.

    Returns
    -------
    Evaluation
        Values per query, means and intervals.

    Raises
    ------
    RankwiseError
        If a measure, an option, the labels or the scores are not valid.

    Examples
    --------
    >>> result = evaluate([2, 0, 1, 0, 1], [0.9, 0.2, 0.4, 0.3, 0.1], ["nDCG@10", "RR"], group=[3, 2])
    >>> result.mean
    {'nDCG@10': 0.8154648767857288, 'RR': 0.75}
    """
    # measures are parsed before any file is read: a misspelt name is an error at once
    tool, parsed, titles = settle(measures, like, rel)
    judged, scores = open_judged_and_scores(queries, scores, qid, group)
    _warn_if_seen(scores, judged)
    if weight is not None:
        weight = checks.as_weights(weight, len(judged))
    order: Ties | str = ties or ("expected" if tool is None else tool.ties)
    announce_kernels("evaluate")
    measure_block = partial(_measure, measures=parsed, tool=tool, order=order, n_jobs=n_jobs)
    if isinstance(judged, Parts):
        raw, lists = _by_block(judged, scores, len(parsed), measure_block), None
    else:
        raw, lists = measure_block(judged, scores)
    stated = [empty or ("skip" if tool is None else tool.empty_value(measure)) for measure in parsed]
    return Evaluation(
        measures=tuple(parsed),
        titles=tuple(titles),
        values=np.stack([fill_empty(row, choice) for row, choice in zip(raw, stated, strict=True)]),
        empty=np.isnan(raw),
        qid=judged.names(),
        weight=judged.weight if weight is None else weight,
        like=like,
        rel=rel,
        random_state=random_state,
        lists=lists,
    )


def _warn_if_seen(model: Any, judged: Queries | Parts) -> None:
    """Warn if a model has learned from the queries that it is measured on, or was selected by them."""
    seen = record_of(model).seen if hasattr(model, "predict") else None
    if seen is None:
        return
    aligned = align(model, judged)
    known = {part: overlap(aligned, getattr(seen, part)).identified for part in ("training", "validation")}
    counts = [f"{int(which.sum()):,} as {part} queries" for part, which in known.items() if which.any()]
    if counts:
        warn(
            f"the model has seen {int(np.logical_or(*known.values()).sum()):,} of these {len(judged):,} queries before "
            f"({', '.join(counts)}): values on them are not those on new queries; use queries that it has not seen",
            DataWarning,
        )


def _measure(
    judged: Queries,
    scores: Any,
    measures: Sequence[Measure],
    tool: Convention | None,
    order: Ties | str,
    n_jobs: int | None,
) -> tuple[NDArray[np.float64], ScoredLists]:
    """(values, measures x queries, NaN where a measure is 0/0; the lists that were measured)."""
    labels = judged.labels()
    if not isinstance(scores, (np.ndarray, Sequence)) and hasattr(scores, "predict"):
        scores = predict_scores(scores, judged)
    values = _as_scores(scores, judged.n_documents)
    if tool is not None:
        _refuse_labels(tool, measures, labels)
        values = _in_single_precision(values) if tool.single else values
    rows = judged.scattered_rows
    # trec_eval breaks ties by document id: sort the rows by it once, and "stable" keeps that order
    if order == "docid":
        rows, order = _by_docid(judged, values), "stable"
    elif order == "stable":
        _warn_of_ties_in_order(values, labels, judged)
    lists = ScoredLists(values, labels, judged.start, rows, judged.judged)
    return measure_lists(measures, lists, ties=order, n_jobs=n_jobs), lists  # type: ignore[arg-type]


def _warn_of_ties_in_order(scores: NDArray[np.float64], labels: NDArray[np.float64], judged: Queries) -> None:
    """Warn if equal scores stay in input order, and that order predicts their labels."""
    correlation, deviations = correlate_tied_labels(scores, labels, judged.start, judged.scattered_rows)
    if abs(correlation) >= PREDICTS_LABEL and deviations >= DEVIATIONS:
        warn(
            "documents with equal scores stay in input order (ties='stable'), and that order predicts their labels "
            f"(rank correlation {correlation:+.2f}), so the values are too {'low' if correlation > 0 else 'high'}: "
            "shuffle the documents of each query, or pass ties='expected'",
            DataWarning,
        )


def _as_scores(scores: Any, n_documents: int) -> NDArray[np.float64]:
    """Scores as float64; those of rankers are that already, and are looked at for NaN alone."""
    plain = isinstance(scores, np.ndarray) and scores.dtype == np.float64 and scores.shape == (n_documents,)
    usable = plain and scores.flags.c_contiguous and not np.isnan(scores).any()
    return scores if usable else checks.as_scores(scores, n_documents)


def predict_scores(model: Any, queries: Queries) -> Any:
    """The scores of a model: rankers take queries, models of other packages the features as an array.

    Parameters
    ----------
    model : object
        Any object with ``predict``.
    queries : Queries
        The queries.

    Returns
    -------
    scores : array-like
        One score per document, if the model is one of documents.
    """
    if not takes_arrays(model):
        return model.predict(queries)
    try:
        return model.predict(np.asarray(queries.X))
    except RankwiseError:
        raise
    except Exception as error:  # a model of another package raises anything
        raise DataError(
            f"{type(model).__name__}.predict failed on the features, an array of shape {queries.X.shape}: "
            f"{in_one_line(error)}; pass the scores of the documents instead of the model"
        ) from error


def _by_block(judged: Parts, scores: Any, measures: int, measure_block: Callable[..., Any]) -> NDArray[np.float64]:
    """The values of a data set in parts, block by block: one number per query and measure stays in memory."""
    if not judged.has_labels:
        raise DataError("these queries have no labels, which evaluation requires")
    whole = None
    if isinstance(scores, (np.ndarray, Sequence)) or not hasattr(scores, "predict"):
        whole = checks.as_scores(scores, judged.n_documents)
    found = [np.zeros((measures, 0))]
    with throughput("evaluating", judged.bytes) as bar:
        for first, last in judged.chunks():
            block = judged.block(first, last)
            own = scores if whole is None else whole[judged.start[first] : judged.start[last]]
            found.append(measure_block(block, own)[0])
            bar.advance_rows(block.n_documents, block.X.nbytes + 8 * block.n_documents)
    return np.concatenate(found, axis=1)


def open_judged_and_scores(queries: Any, scores: Any, qid: Any = None, group: Any = None) -> tuple[Any, Any]:
    """Turn whatever was given into judged queries, and scores or an object with ``predict``."""
    if hasattr(queries, "predict") and not hasattr(scores, "predict"):
        raise DataError(
            f"the first argument must be judged queries or their labels, got {type(queries).__name__}, which has "
            "predict: evaluate(queries, model)"
        )
    if isinstance(queries, (str, PathLike)) and isdir(queries):
        queries = Parts(queries)
    if isinstance(queries, Parts):
        if qid is not None or group is not None:
            raise DataError("these queries are already grouped: remove qid= and group=")
        if isinstance(scores, (str, PathLike)):
            from rankwise.evaluation.files import read_scores_of_parts

            scores = read_scores_of_parts(scores, queries)
        return queries, scores
    if isinstance(queries, (str, PathLike)):
        from rankwise.evaluation.files import open_pair
        from rankwise.io.any_file import read_any

        is_pair = isinstance(scores, (str, PathLike))
        queries, scores = open_pair(queries, scores) if is_pair else (read_any(queries), scores)
    if not isinstance(queries, Queries) and record_of(scores).builder is not None:
        queries = apply_builder(scores, queries, grouped=True, judged=True)  # a raw table, for a ranker that takes one
    if not isinstance(queries, Queries):
        labels = np.asarray(queries)
        if (qid is None) == (group is None):
            raise DataError("labels require either qid= (one id per label) or group= (sizes of consecutive queries)")
        n_rows = len(labels) if labels.ndim else 0
        parts = grouping.by_id(qid, n_rows) if qid is not None else grouping.by_size(group, n_rows)
        if group is not None:
            grouping.warn_of_empty(np.diff(parts.start), "group")
        # no features are needed to measure, and the checks of from_arrays have been done above
        queries = Queries._trusted(
            np.empty((n_rows, 0)), checks.as_labels(labels, n_rows), parts.start, parts.rows, qid=parts.qid
        )
    elif qid is not None or group is not None:
        raise DataError("these queries are already grouped: remove qid= and group=")
    if isinstance(scores, (str, PathLike)):
        from rankwise.evaluation.files import read_scores

        scores = read_scores(scores, queries)
    return queries, scores


def _refuse_labels(tool: Convention, measures: Sequence[Measure], labels: NDArray[np.float64]) -> None:
    """Raise an error where the tool does not accept the labels."""
    for measure in measures:
        problem = tool.labels(measure, labels)
        if problem:
            raise DataError(f"{tool.name} cannot measure {measure.name} here: {problem}")


def _in_single_precision(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round scores to float32, in which the tool compares them; a huge score stays finite and never means "not
    retrieved".
    """
    # the cast alone would turn a score beyond the range into an infinity
    most = float(np.finfo(np.float32).max)
    rounded = np.clip(scores, -most, most).astype(np.float32).astype(np.float64)
    return np.where(np.isinf(scores), scores, rounded)


def _by_docid(queries: Queries, scores: NDArray[np.float64]) -> NDArray[np.int64] | None:
    """Rows of each query by document id, descending, which is how trec_eval orders equal scores."""
    rows, owner = queries.rows, np.repeat(np.arange(len(queries)), queries.sizes)
    if queries.docid is None:
        # without ids the order is only unknown if scores of one query are equal
        order = np.lexsort((scores[rows], owner))
        ordered, owner = scores[rows][order], owner[order]
        tied = (ordered[1:] == ordered[:-1]) & (owner[1:] == owner[:-1]) & (ordered[1:] > -np.inf)
        if tied.any():
            query = queries.names()[int(owner[1:][tied][0])]
            raise DataError(
                f"trec_eval breaks ties by document id, but query {query!r} has equal scores, and these queries "
                "carry no docid: pass docid= when making them, or ties="
            )
        return queries.scattered_rows
    # trec_eval compares the bytes of the ids; equal UTF-8 bytes order as the texts do
    ids = np.asarray(queries.docid)[rows]
    _, rank = np.unique(ids.astype(str), return_inverse=True)
    return np.asarray(rows[np.lexsort((-rank.reshape(-1), owner))], dtype=np.int64)
