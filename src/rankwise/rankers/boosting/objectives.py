"""The losses and measures of this package for boosters: LightGBM, XGBoost and CatBoost.

A booster hands a custom objective the scores of all rows and knows nothing of queries. :func:`objective` returns a
callable that carries the queries itself, and :func:`eval_metric` does the same for a measure. :class:`Derivatives` is
what both this package's own booster and the callables compute with.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from rankwise._arrays import Numbers, Vector
from rankwise._tables import ShownAsFacts
from rankwise.errors import DataError, RankwiseError
from rankwise.losses._base import Loss
from rankwise.losses.compute import PreparedLists, curvature_lists, loss_lists
from rankwise.measures._base import Measure, parse
from rankwise.queries import checks
from rankwise.queries.queries import Queries, as_queries
from rankwise.queries.source import differing_weights
from rankwise.rankers._model_selection import mean_measure

# Second derivatives are at least this, in units of their mean: an engine divides by sums of them.
_LEAST = 1e-9
# Random numbers that are drawn and not used, at a time.
_SKIPPED = 1 << 20
# The largest number that StochasticNDCG takes for an iteration is below 2^53.
_ITERATIONS = np.uint64(2**52)


@dataclass(frozen=True)
class Derivatives:
    """First and second derivatives of sum_q weight_q loss_q with respect to the score of every row.

    Attributes
    ----------
    lists : PreparedLists
        The loss and the queries.
    weight : ndarray of shape (n_documents,), or None
        What the derivatives of each row are multiplied by; None is 1.
    constant : float
        The second derivative of every document, for a loss that declares no curvature.
    """

    lists: PreparedLists
    weight: Vector | None
    constant: float

    @classmethod
    def of(cls, loss: Loss, queries: Queries, n_jobs: int | None = None, constant: float | None = None) -> Self:
        """Prepare queries; document weights are those of the loss, or else factors of the rows."""
        own = differing_weights(queries)
        inside = own if loss.document_weights else None
        lists = PreparedLists.of(loss, queries.labels(), queries.start, queries.scattered_rows, inside)
        weight = None if queries.weight is None else queries.weight[queries.query_of_row]
        if own is not None and inside is None:
            weight = own if weight is None else weight * own
        if constant is None:
            constant = 1.0 if loss.curvature is not None else typical_slope(lists, n_jobs)
        return cls(lists, weight, constant)

    def without(self, rows: Numbers) -> Self:
        """The same with a weight of 0 for these rows."""
        weight = np.ones(len(self.lists.label)) if self.weight is None else self.weight.copy()
        weight[rows] = 0.0
        # without a curvature, what stands for it is a mean over all queries
        lists = self.lists if self.lists.loss.curvature is None else self.lists.with_rows(weight > 0)
        return replace(self, lists=lists, weight=weight)

    @property
    def loss(self) -> Loss:
        """The loss."""
        return self.lists.loss

    @property
    def last_change(self) -> int:
        """The number of trees from which on the loss stays what it is."""
        return 0

    def before_tree(self, scores: Vector, iteration: int, n_jobs: int | None = None) -> Self:
        """What the next tree is grown on, given the scores of the ``iteration`` trees before it."""
        return self

    def at(self, scores: Vector, iteration: int, n_jobs: int | None = None) -> tuple[Vector, Vector]:
        """(gradient, second derivatives), in the order of the rows."""
        lists = replace(self.lists, loss=self.lists.loss.at_iteration(iteration))
        if lists.loss.curvature is not None:
            gradient, diagonal = curvature_lists(lists, scores, n_jobs=n_jobs)
        else:
            gradient, diagonal = loss_lists(lists, scores, n_jobs=n_jobs)[1], np.full(len(scores), self.constant)
        if self.weight is not None:
            gradient *= self.weight
            diagonal *= self.weight
        return gradient, diagonal


def typical_slope(lists: PreparedLists, n_jobs: int | None = None) -> float:
    """The mean absolute gradient at standard normal scores, 1 if it is 0 or infinite.

    A loss without curvature has it as the second derivative of every document: a Newton step then moves a typical score
    by about 1, whatever the unit of the loss. Scores are random because a smoothed measure is stationary at equal ones.
    """
    return typical(np.abs(loss_lists(lists, normal_scores(0, len(lists.label)), n_jobs=n_jobs)[1]))


def normal_scores(first: int, last: int) -> Vector:
    """The standard normal scores of rows first..last-1."""
    rng = np.random.default_rng(0)
    for skipped in range(0, first, _SKIPPED):
        rng.normal(size=min(_SKIPPED, first - skipped))
    return rng.normal(size=last - first)


def typical(slopes: Vector) -> float:
    """The mean of the sizes of slopes, 1 if it is 0 or infinite."""
    mean = float(slopes.mean()) if len(slopes) else 0.0
    return mean if 0.0 < mean < np.inf else 1.0


def rescale_derivatives(gradient: Vector, diagonal: Vector) -> tuple[Vector, Vector]:
    """Both times n / (sum of second derivatives), so that these have a mean of 1; each is at least 1e-9."""
    total = float(diagonal.sum())
    factor = np.count_nonzero(diagonal) / total if total > 0.0 else 1.0
    return gradient * factor, np.maximum(diagonal * factor, _LEAST)


# ---------------------------------------------------------------------------------------------- for other boosters


def _rows_agree(queries: Queries, labels: Any, n_scores: int) -> bool:
    """Whether these are the rows of the queries: as many, with the same labels in the precision of the engines."""
    own = queries.labels()
    return n_scores == len(own) and len(labels) == len(own) and np.array_equal(np.float32(own), np.float32(labels))


def _given(first: Any, second: Any) -> tuple[Any, Any]:
    """(scores, labels) from what an engine hands over: (scores, data set), or (labels, scores) as scikit-learn does."""
    if not hasattr(second, "get_label"):
        return np.asarray(second), np.asarray(first)
    labels = second.get_label()
    return np.asarray(first), np.empty(0) if labels is None else np.asarray(labels)


class BoosterObjective(ShownAsFacts):
    """A loss over queries as a custom objective; :func:`objective` makes it.

    Called as ``(scores, data set)`` by the training functions of LightGBM and XGBoost, and as ``(labels, scores)`` by
    their scikit-learn classes, it returns gradient and second derivatives of every row. It has no state: a loss that
    draws random numbers draws others whenever the scores change.

    Parameters
    ----------
    loss : Loss
        The loss.
    queries : Queries
        The training queries.
    rescale : bool
        Whether second derivatives are given a mean of 1.
    n_jobs : int or None
        Number of threads.
    """

    def __init__(self, loss: Loss, queries: Queries, rescale: bool, n_jobs: int | None) -> None:
        self.loss = loss
        self.queries = queries
        self.rescale = rescale
        self.n_jobs = n_jobs
        self._derivatives = Derivatives.of(loss, queries, n_jobs)

    def __call__(self, first: Any, second: Any) -> tuple[Vector, Vector]:
        scores, labels = _given(first, second)
        if not _rows_agree(self.queries, labels, len(scores)):
            raise DataError(
                f"the objective was made for {self.queries!r}, and the booster trains on {len(scores):,} rows"
                f"{_difference(self.queries, labels, len(scores))}: pass queries.X and queries.y, all rows in the "
                "same order (a booster's own cross-validation cuts rows out: make an objective for each part)"
            )
        return self.derivatives(scores)

    def derivatives(self, scores: Any, iteration: int | None = None) -> tuple[Vector, Vector]:
        """Gradient and second derivatives at these scores.

        Parameters
        ----------
        scores : array-like of shape (n_documents,)
            One score per row of the queries.
        iteration : int, default=None
            The iteration whose random numbers are taken, for losses that draw some; None derives it from the scores.

        Returns
        -------
        gradient, second : ndarray of shape (n_documents,)
            The derivatives of sum_q weight_q loss_q, times a common factor if they are rescaled.
        """
        s = np.ascontiguousarray(checks.as_vector(scores, self.queries.n_documents, "scores"))
        if not np.isfinite(s).all():
            raise DataError(f"the booster has scores that are not finite, {s[~np.isfinite(s)][0]} among them")
        number = _hash_of(s) if iteration is None else iteration
        gradient, diagonal = self._derivatives.at(s, number, self.n_jobs)
        return rescale_derivatives(gradient, diagonal) if self.rescale else (gradient, diagonal)

    def __deepcopy__(self, memo: Any) -> Self:
        return self  # boosters copy their parameters, and nothing here changes

    def __repr__(self) -> str:
        return f"objective({self.loss!r}, {self.queries!r})"


def _difference(queries: Queries, labels: Any, n_scores: int) -> str:
    """What differs between the queries and the rows of a booster, for an error message."""
    if n_scores != queries.n_documents:
        return ""
    if len(labels) != queries.n_documents:
        return " without labels"
    row = int(np.argmax(np.float32(queries.labels()) != np.float32(labels)))
    return f", whose label at row {row:,} is {float(labels[row]):g} where the queries have {queries.labels()[row]:g}"


def _hash_of(scores: Vector) -> int:
    """A number of 52 bits that changes with any score."""
    words = np.multiply(scores.view(np.uint64), np.arange(1, 2 * len(scores), 2, dtype=np.uint64), dtype=np.uint64)
    words ^= words >> np.uint64(29)
    return int(np.bitwise_xor.reduce(words, initial=np.uint64(0)) % _ITERATIONS)


def objective(
    loss: Loss, queries: Queries, engine: str = "lightgbm", *, rescale: bool = True, n_jobs: int | None = None
) -> BoosterObjective:
    """A loss of this package, or one of your own, as the custom objective of a booster.

    Parameters
    ----------
    loss : Loss
        Any loss. Its ``curvature`` gives second derivatives; for a loss without one, every document has the mean
        absolute gradient at standard normal scores.
    queries : Queries
        The training queries, in any row order; the booster trains on ``queries.X`` and ``queries.y``. Query weights
        and document weights are applied: the latter as the loss defines them, or as factors of the derivatives where it
        does not. Give no weights to the booster.
    engine : {"lightgbm", "xgboost"}, default="lightgbm"
        The booster. Both take the same callable, LightGBM as ``params["objective"]``, XGBoost as ``obj=``; their
        scikit-learn classes as ``objective=``.
    rescale : bool, default=True
        Whether gradient and second derivatives are multiplied by a common factor, so that the latter have a mean of
        1. Penalties and smallest leaves of the boosters are in that unit.
    n_jobs : int, default=None
        Number of threads; None uses all cores. The result does not depend on it.

    Returns
    -------
    objective : BoosterObjective
        The callable.

    Raises
    ------
    RankwiseError
        If the engine cannot be served.

    Notes
    -----
    A booster that starts at a model adds its scores as ``init_score`` or ``base_margin``: they are part of the scores
    that the objective sees, and have to be added again at prediction. A smoothed measure has a gradient of 0 where all
    scores are equal: start elsewhere.

    Examples
    --------
    >>> import lightgbm
    >>> from rankwise import losses, make_lists
    >>> queries = make_lists(60, documents=8, features=4, random_state=1)
    >>> params = {"objective": objective(losses.PairLogistic(), queries), "verbosity": -1, "num_threads": 1}
    >>> booster = lightgbm.train(params, lightgbm.Dataset(queries.X, queries.y), 10)
    >>> booster.num_trees()
    10
    """
    if engine == "catboost":
        raise RankwiseError(
            "CatBoost passes blocks of rows to a custom objective, which cut queries into pieces, so a ranking loss "
            "cannot be computed: pass engine='lightgbm' or 'xgboost'"
        )
    checks.refuse_unless_one_of(engine, "engine", ("lightgbm", "xgboost"))
    if not isinstance(loss, Loss):
        raise RankwiseError(f"objective requires a loss of rankwise.losses, got {loss!r:.60}")
    queries = as_queries(queries, "objective")
    return BoosterObjective(loss, queries, rescale, n_jobs)


# ----------------------------------------------------------------------------------------------------- evaluation


class BoosterMetric(ShownAsFacts):
    """The mean of a measure as a custom evaluation function; :func:`eval_metric` makes it.

    Parameters
    ----------
    measure : Measure
        The measure.
    sets : tuple of Queries
        The sets of queries that it may be called for.
    engine : str
        The booster.
    n_jobs : int or None
        Number of threads.
    """

    def __init__(self, measure: Measure, sets: tuple[Queries, ...], engine: str, n_jobs: int | None) -> None:
        self.measure = measure
        self.sets = sets
        self.engine = engine
        self.n_jobs = n_jobs
        # XGBoost minimizes custom metrics, and maximizes those whose name begins like one of its own
        self.name = f"1-{measure.title}" if engine == "xgboost" else measure.title
        self.__name__ = self.name

    def value(self, scores: Any, labels: Any) -> float:
        """The mean of the measure over the set with these labels."""
        for queries in self.sets:
            if _rows_agree(queries, labels, len(scores)):
                return mean_measure(queries, np.ascontiguousarray(scores, np.float64), self.measure, self.n_jobs)
        known = " or ".join(f"{one.n_documents:,}" for one in self.sets)
        raise DataError(
            f"{self.name} was made for {known} rows, and the booster evaluates {len(scores):,} rows, or rows with "
            "other labels: name all sets, as in eval_metric(measure, [train, validation])"
        )

    def __call__(self, first: Any, second: Any) -> Any:
        scores, labels = _given(first, second)
        value = self.value(scores, labels)
        if self.engine == "lightgbm":
            return self.name, value, True
        return (self.name, 1.0 - value) if hasattr(second, "get_label") else 1.0 - value

    # CatBoost's protocol

    def is_max_optimal(self) -> bool:
        """Whether larger values are better."""
        return True

    def evaluate(self, approxes: Any, target: Any, weight: Any) -> tuple[float, float]:
        """(value, 1) of CatBoost's scores, whose first row they are."""
        return self.value(np.asarray(approxes[0]), np.asarray(target)), 1.0

    def get_final_error(self, error: float, weight: float) -> float:
        """The value itself."""
        return error / weight

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def __repr__(self) -> str:
        return f"eval_metric({self.measure!r}, engine={self.engine!r})"


def eval_metric(
    measure: Any, queries: Queries | Sequence[Queries], engine: str = "lightgbm", *, n_jobs: int | None = None
) -> BoosterMetric:
    """The mean of a measure over queries as the custom evaluation function of a booster.

    Parameters
    ----------
    measure : str or Measure
        The measure; ties are averaged, and queries for which it is undefined do not count.
    queries : Queries, or sequence of Queries
        The evaluated queries, or all sets that the booster evaluates: each is recognized by its labels.
    engine : {"lightgbm", "xgboost", "catboost"}, default="lightgbm"
        The booster: LightGBM takes the callable as ``feval=`` (``eval_metric=`` in ``LGBMRanker.fit``), XGBoost as
        ``custom_metric=`` (``eval_metric=`` of its scikit-learn classes), CatBoost as ``eval_metric=``.
    n_jobs : int, default=None
        Number of threads; None uses all cores.

    Returns
    -------
    metric : BoosterMetric
        For LightGBM and CatBoost it is flagged as better where larger. XGBoost has no such flag and minimizes what it
        does not know, so it gets 1 - measure, under that name: early stopping then needs no option.

    Examples
    --------
    >>> from rankwise import make_lists
    >>> queries = make_lists(20, documents=5, features=2, random_state=1)
    >>> eval_metric("nDCG@5", queries)(queries.labels(), queries.labels())
    ('nDCG@5', 1.0, True)
    """
    checks.refuse_unless_one_of(engine, "engine", ("lightgbm", "xgboost", "catboost"))
    several = (queries,) if isinstance(queries, Queries) else tuple(queries)
    sets = tuple(as_queries(one, "eval_metric") for one in several)
    for one in sets:
        one.labels()
    return BoosterMetric(parse(measure), sets, engine, n_jobs)
