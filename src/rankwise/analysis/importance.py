"""Permutation importance: what a fitted ranker loses when a feature is shuffled among the documents of each query.

:func:`permutation_importance` is the public function. :func:`losses_by_query` computes the losses per query, which the
report also uses fold by fold, and :class:`FeatureImportance` sums them up and draws them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._figures import COLORS, FAINT, PlottedTable
from rankwise._parameters import Jobs, OpenFraction, PositiveInt, Seed, as_random, validated
from rankwise._tables import Table
from rankwise.errors import DataError
from rankwise.evaluation.comparison.rankers import takes_lists
from rankwise.evaluation.evaluation import evaluate
from rankwise.evaluation.statistics.intervals import How, interval, mean
from rankwise.measures._base import Measure
from rankwise.queries.checks import names_or_columns
from rankwise.queries.queries import Queries, as_queries
from rankwise.rankers._base import LinearRanker

_DRAWN = 20  # features that a picture shows


@validated
def permutation_importance(
    model: Any,
    queries: Queries,
    measure: str | Measure = "nDCG@10",
    *,
    repeats: PositiveInt = 5,
    level: OpenFraction = 0.95,
    how: How = "bootstrap",
    random_state: Seed = 0,
    n_jobs: Jobs = None,
    **conventions: Any,
) -> "FeatureImportance":
    r"""What a measure loses when the values of one feature are shuffled among the documents of each query.

    .. math:: I_f = \frac1R \sum_{r=1}^R \; \mathrm{mean}_q \big( A_q(X) - A_q(X^{(f, r)}) \big)

    with :math:`X^{(f, r)}` the features after the r-th shuffle of column f within queries. Values stay in their query,
    so a feature that only distinguishes queries is worth nothing here, as it is to a ranking. Redundant features share
    their worth: each of them can be missed while the other is there.

    Parameters
    ----------
    model : ranker
        A fitted ranker, or any object with ``predict``.
    queries : Queries
        Judged queries that the model was not trained on; their features are copied once.
    measure : str or Measure, default="nDCG@10"
        The measure whose loss is reported.
    repeats : int, default=5
        Shuffles of every feature; the same ones for all features.
    level : float, default=0.95
        The confidence level of the intervals over queries.
    how : {"bootstrap", "t"}, default="bootstrap"
        The kind of interval, see :func:`~rankwise.evaluation.statistics.intervals.interval`.
    random_state : int or Generator, default=0
        Seed of the shuffles and of the bootstrap.
    n_jobs : int, default=None
        Threads of the measure; None uses every core.
    **conventions : dict
        Further options of :func:`evaluate`, such as ``like="letor"``.

    Returns
    -------
    FeatureImportance
        One row per feature, the largest loss first: feature, loss, low, high. A loss below 0 means that the ranking was
        better without the feature. ``per_query`` holds the loss of every feature, in the order of the data, on every
        query.

    Examples
    --------
    >>> from rankwise import RidgeRanker, make_lists
    >>> lists = make_lists(60, documents=10, features=4, random_state=1)
    >>> found = permutation_importance(RidgeRanker().fit(lists[:40]), lists[40:])
    >>> found.columns, len(found), found.per_query.shape
    (('feature', 'loss', 'low', 'high'), 4, (4, 20))
    """
    random = as_random(random_state)
    per_query = losses_by_query(
        model, queries, measure, repeats=repeats, random_state=random, n_jobs=n_jobs, **conventions
    )
    return FeatureImportance.of(names_or_columns(queries), per_query, queries.weight, level, how, random)


def losses_by_query(
    model: Any,
    queries: Queries,
    measure: str | Measure,
    *,
    repeats: int = 5,
    random_state: int | np.random.Generator = 0,
    n_jobs: int | None = None,
    **conventions: Any,
) -> NDArray[np.float64]:
    """The mean loss over the shuffles, for every feature and query.

    Parameters
    ----------
    model : ranker
        A fitted ranker, or any object with ``predict``.
    queries : Queries
        Judged queries.
    measure : str or Measure
        The measure whose loss is computed.
    repeats : int, default=5
        Shuffles of every feature.
    random_state : int or Generator, default=0
        Seed of the shuffles.
    n_jobs : int, default=None
        Threads of the measure.
    **conventions : dict
        Further options of :func:`evaluate`.

    Returns
    -------
    ndarray of shape (n_features, n_queries)
        The losses; NaN where the measure is undefined on a query.
    """
    queries = as_queries(queries, "permutation_importance")
    if not hasattr(model, "predict"):
        raise DataError(f"model must be a fitted ranker or an object with predict, got {type(model).__name__}")
    X = np.array(queries.X)  # one column at a time is shuffled in it, and put back
    random, rows = as_random(random_state), queries.rows
    shuffled = queries._replace(X=X)

    def measure_now() -> NDArray[np.float64]:
        scores = model.predict(shuffled if takes_lists(model) else X)
        return np.asarray(evaluate(queries, scores, [measure], n_jobs=n_jobs, **conventions).values[0])

    # the measure is compared with its value on the unshuffled data, query by query
    before = measure_now()
    lost = np.where(np.isnan(before), np.nan, np.zeros((queries.n_features, len(queries))))
    # the same shuffles for all features: differences between features are not due to chance
    owner = np.repeat(np.arange(len(queries)), queries.sizes)
    orders = [np.lexsort((random.random(len(owner)), owner)) for _ in range(repeats)]
    for feature in range(queries.n_features):
        kept = X[:, feature].copy()
        # its loss is exactly 0, and scoring is the expensive part
        if _is_unused(model, queries, feature):
            continue
        for order in orders:
            X[rows, feature] = kept[rows[order]]
            lost[feature] += (before - measure_now()) / repeats
        X[:, feature] = kept
    return lost


class FeatureImportance(PlottedTable):
    """Columns feature, loss, low, high; what :func:`permutation_importance` returns.

    Parameters
    ----------
    columns : dict of str to array-like
        The columns.
    title : str
        The title of the figure.
    per_query : ndarray of shape (n_features, n_queries)
        The losses.

    Attributes
    ----------
    per_query : ndarray of shape (n_features, n_queries)
        The loss of every feature, in the order of the data, on every query.
    """

    __slots__ = ("per_query",)

    def __init__(self, columns: Mapping[str, Any], title: str, per_query: NDArray[np.float64]) -> None:
        super().__init__(columns, title)
        self.per_query = per_query

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        per_query: NDArray[np.float64],
        weight: NDArray[np.float64] | None,
        level: float = 0.95,
        how: How = "bootstrap",
        random_state: int | np.random.Generator = 0,
    ) -> "FeatureImportance":
        """Summarize losses per query: means with intervals, the largest first and equals in the order of the data.

        Parameters
        ----------
        names : sequence of str
            The names of the features.
        per_query : ndarray of shape (n_features, n_queries)
            The losses.
        weight : ndarray of shape (n_queries,) or None
            The weights of the queries.
        level : float, default=0.95
            The confidence level of the intervals.
        how : {"bootstrap", "t"}, default="bootstrap"
            The kind of interval.
        random_state : int or Generator, default=0
            Seed of the bootstrap.

        Returns
        -------
        FeatureImportance
            The table.
        """
        if per_query.shape[0] != len(names):
            raise DataError(f"names must have one name per feature ({per_query.shape[0]}), got {len(names)}")
        # one seed for all features: their intervals use the same resampled queries
        seed = int(as_random(random_state).integers(2**32))
        losses = np.array([mean(row, weight) for row in per_query])
        ends = [
            interval(row, level, how, weight=weight, random_state=seed) if np.nan_to_num(row).any() else (value, value)
            for row, value in zip(per_query, losses, strict=True)
        ]
        order = np.argsort(-losses, kind="stable")
        rows = ((names[place], losses[place], *ends[place]) for place in order)
        columns = Table.of_rows(("feature", "loss", "low", "high"), rows).to_dict()
        return cls(columns, "loss when a feature is shuffled within queries", per_query)

    def _inches(self) -> tuple[float, float]:
        return 5.2, 1.0 + 0.2 * min(len(self), _DRAWN)

    def _draw(self, axes: Any) -> None:
        shown = slice(0, _DRAWN)
        at = np.arange(min(len(self), _DRAWN))[::-1]
        axes.axvline(0, color=FAINT, linewidth=0.8)
        axes.hlines(at, self["low"][shown], self["high"][shown], color=COLORS[0], linewidth=1.2)
        axes.plot(self["loss"][shown], at, "o", color=COLORS[0], markersize=4)
        axes.set_yticks(at, self["feature"][shown])
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("loss of the measure")


def _is_unused(model: Any, queries: Queries, feature: int) -> bool:
    """Whether no score can change: the weight is 0, or the feature is constant."""
    column = queries.X[:, feature]
    if len(column) == 0 or (column == column[0]).all():
        return True
    if not isinstance(model, LinearRanker):
        return False
    weights = weights_of(model, queries)
    return weights is not None and bool(weights[feature] == 0)


def weights_of(model: Any, queries: Queries) -> NDArray[np.float64] | None:
    """The weights of a linear ranker in the order of the features of these queries."""
    coef = getattr(model, "coef_", None)
    if not isinstance(model, LinearRanker) or coef is None or len(coef) != model.n_features_in_:
        return None
    found = np.asarray(coef, dtype=np.float64)
    names = model._names()
    if names is None or queries.feature_names is None or names == queries.feature_names:
        return found if len(found) == queries.n_features else None
    weight = dict(zip(names, found.tolist(), strict=True))
    return np.array([weight.get(name, 0.0) for name in queries.feature_names])
