"""Trees grown by LightGBM on the derivatives of a loss: one set of binned rows that several models share.

:class:`BinnedRows` hands the features to LightGBM once. A :class:`GrowingModel` is a sum of trees under way: it
computes derivatives from the scores so far, has LightGBM add a tree, and knows the scores of all rows, those of weight
0 included. Rows that are held out are therefore neither copied nor predicted: they have a weight of 0.
:func:`grow_together` grows the models of all folds side by side and finds the number of trees.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rankwise._extras import require
from rankwise._kernels import parallel
from rankwise.errors import RankwiseError
from rankwise.losses.compute import loss_lists
from rankwise.queries.queries import Queries
from rankwise.rankers.boosting.binned_parts import JoinedParts, in_parts
from rankwise.rankers.boosting.objectives import Derivatives, rescale_derivatives
from rankwise.rankers.boosting.tree_ensemble import TreeEnsemble
from rankwise.rankers.boosting.tree_arrays import concat_trees

Vector = NDArray[np.float64]
Numbers = NDArray[np.int64]

# The measure is looked at after every so many trees, as a mean over three looks: single looks are noisy.
LOOK = 5
STATIONARY = "{!r} has a gradient of 0 at equal scores, where boosting starts: pass start='ridge'"
# Trees where nothing can judge their number.
UNJUDGED = 100


def joined(sets: Sequence[Any]) -> Any:
    """The queries of all sets, query after query, with labels and weights but without features; X is not copied.

    With a set in parts they are :class:`~rankwise.rankers.boosting.binned_parts.JoinedParts`.
    """
    if in_parts(sets):
        return JoinedParts.of(sets)
    sizes = np.concatenate([one.sizes for one in sets])
    weighted = any(one.weight is not None for one in sets)
    documents = any(one.document_weight is not None for one in sets)
    start = np.append(0, np.cumsum(sizes)).astype(np.int64)
    return Queries._trusted(
        np.empty((int(start[-1]), 0)),
        np.concatenate([one.in_query_order(one.labels()) for one in sets]),
        start,
        weight=np.concatenate([one.query_weight for one in sets]) if weighted else None,
        document_weight=np.concatenate([_own_weight(one) for one in sets]) if documents else None,
    )


def _own_weight(queries: Queries) -> Vector:
    """The document weights, query after query."""
    weight = queries.document_weight
    return np.ones(queries.n_documents) if weight is None else queries.in_query_order(weight)


def rows_of(queries: Queries, numbers: Numbers) -> Numbers:
    """The rows of these queries of a :func:`joined` set."""
    inside = np.zeros(len(queries), dtype=bool)
    inside[numbers] = True
    return np.flatnonzero(np.repeat(inside, queries.sizes))


def labels_of(queries: Any, rows: Numbers) -> Vector:
    """The labels of these rows of a :func:`joined` set."""
    found: Vector = queries.labels()[rows] if isinstance(queries, Queries) else queries.labels_of(rows)
    return found


def features_in_order(sets: Sequence[Queries]) -> Any:
    """The features of all sets, query after query, as LightGBM takes them without a copy of X."""
    if all(one.is_grouped for one in sets) and len({one.X.dtype for one in sets}) == 1:
        return np.asarray(sets[0].X) if len(sets) == 1 else [np.asarray(one.X) for one in sets]

    class InQueryOrder(require("lightgbm").Sequence):  # type: ignore[misc]
        """Rows that LightGBM fetches in batches."""

        batch_size = 1 << 13

        def __init__(self, queries: Queries) -> None:
            self.X = np.asarray(queries.X)
            self.rows = queries.rows

        def __getitem__(self, places: Any) -> Any:
            return np.asarray(self.X[self.rows[places]], dtype=np.float64)

        def __len__(self) -> int:
            return len(self.rows)

    return [InQueryOrder(one) for one in sets]


@dataclass(frozen=True)
class BinnedRows:
    """The features of some sets as LightGBM's data set, which takes a byte per value.

    Attributes
    ----------
    dataset : lightgbm.Dataset
        The binned features.
    params : mapping of str to object
        The parameters of LightGBM that all models share.
    n_documents : int
        Number of rows.
    n_features : int
        Number of features.
    """

    dataset: Any
    params: Mapping[str, Any]
    n_documents: int
    n_features: int

    @classmethod
    def of(
        cls, sets: Sequence[Queries], params: Mapping[str, Any], categorical: Sequence[int], n_jobs: int | None
    ) -> "BinnedRows":
        """Bin the documents of these sets, query after query.

        Parameters
        ----------
        sets : sequence of Queries
            The sets.
        params : mapping of str to object
            Parameters of LightGBM.
        categorical : sequence of int
            Features whose values are categories.
        n_jobs : int or None
            Number of threads.

        Returns
        -------
        BinnedRows
            The rows.
        """
        n_documents = sum(one.n_documents for one in sets)
        shared = {
            "objective": "none",
            "metric": "none",
            "verbosity": -1,
            # one thread sums a feature, in the order of the rows: any number of threads gives the same bits
            "deterministic": True,
            "force_col_wise": True,
            "num_threads": parallel.engine_threads(n_jobs, n_documents * sets[0].n_features),
            "feature_pre_filter": False,
            # LightGBM keeps this many rows as float64 while it finds the bins; its own 200,000 take more than the bins
            "bin_construct_sample_cnt": 50_000,
            "min_sum_hessian_in_leaf": 1e-3,  # at 0 LightGBM may fail on a leaf that has rounding errors alone
            **params,
        }
        label = np.zeros(n_documents, dtype=np.float32)  # LightGBM demands labels, and its trees do not see them
        features = list(categorical) if categorical else "auto"
        made = require("lightgbm").Dataset(features_in_order(sets), label, params=shared, categorical_feature=features)
        return cls(made.construct(), shared, n_documents, sets[0].n_features)

    @property
    def splittable(self) -> bool:
        """Whether a feature has two bins, and a tree gets a row; LightGBM fails otherwise."""
        if self.n_documents * self.params["bagging_fraction"] < 1:
            return False
        return any(self.dataset.feature_num_bin(number) > 1 for number in range(self.n_features))

    def model(self, derivatives: Derivatives, seed: int, start: Vector | None, n_jobs: int | None) -> "GrowingModel":
        """A model without trees whose rows have the weights of ``derivatives``, and these scores to start from."""
        weight = derivatives.weight
        counted = self.n_documents if weight is None else int(np.count_nonzero(weight))
        # LightGBM estimates the documents of a leaf by their second derivatives, those of weight 0 included
        least = self.params["min_data_in_leaf"] * self.n_documents / max(counted, 1)
        own = {**self.params, "min_data_in_leaf": round(min(least, 2.0**31 - 1)), "seed": seed}
        booster = require("lightgbm").Booster(own, self.dataset)
        return GrowingModel(booster, derivatives, start, n_jobs, self.n_features)


class Growing(Protocol):
    """A sum of trees under way, whichever engine grows it.

    Attributes
    ----------
    start : ndarray of shape (n_documents,), or None
        Scores that trees are added to.
    iteration : int
        Number of times that a tree was asked for.
    """

    start: Vector | None
    iteration: int

    def grow(self) -> None:
        """Add a tree."""

    def scores(self, rows: Numbers | None = None) -> Vector:
        """The scores of these rows; None for all."""

    def ensemble(self) -> TreeEnsemble:
        """The trees, without the start."""


@dataclass
class GrowingModel:
    """A sum of trees under way.

    Attributes
    ----------
    booster : lightgbm.Booster
        The trees.
    derivatives : Derivatives
        The loss and its queries.
    start : ndarray of shape (n_documents,), or None
        Scores that trees are added to.
    n_jobs : int or None
        Number of threads.
    n_features : int
        Number of features.
    iteration : int
        Number of times that a tree was asked for.
    """

    booster: Any
    derivatives: Derivatives
    start: Vector | None
    n_jobs: int | None
    n_features: int
    iteration: int = 0

    def grow(self) -> None:
        """Add a tree; none is added where no split helps."""
        self.booster.update(fobj=self._derivatives)
        self.iteration += 1

    def _derivatives(self, trees: Vector, _: Any) -> tuple[Any, Any]:
        scores = self._with_start(trees)
        self.derivatives = self.derivatives.before_tree(scores, self.iteration, self.n_jobs)
        gradient, diagonal = self.derivatives.at(scores, self.iteration, self.n_jobs)
        gradient, diagonal = rescale_derivatives(gradient, diagonal)
        return gradient.astype(np.float32), diagonal.astype(np.float32)

    def _with_start(self, trees: Vector) -> Vector:
        return np.ascontiguousarray(trees) if self.start is None else trees + self.start

    def scores(self, rows: Numbers | None = None) -> Vector:
        """The scores of these rows; None for all."""
        found: list[Vector] = []

        def look(trees: Vector, _: Any) -> list[Any]:
            found.append(self._with_start(trees))
            return []

        self.booster.eval_train(look)
        return found[0] if rows is None else found[0][rows]

    def ensemble(self) -> TreeEnsemble:
        """The trees, without the start."""
        if not self.booster.num_trees():
            return no_trees(self.n_features)
        return TreeEnsemble.from_lightgbm(self.booster.model_to_string(num_iteration=-1))


def no_trees(n_features: int) -> TreeEnsemble:
    """The sum of no trees, which is 0."""
    arrays: dict[str, Any] = concat_trees([])
    return TreeEnsemble(n_features, **arrays)


def refuse_stationary(derivatives: Derivatives, start: Vector | None, n_jobs: int | None) -> None:
    """Raise an error if the loss is above 0 somewhere and its gradient is 0 everywhere at the start."""
    scores = np.zeros(len(derivatives.lists.label)) if start is None else start
    derivatives = derivatives.before_tree(scores, 0, n_jobs)
    if derivatives.at(scores, 0, n_jobs)[0].any():
        return  # the kernel of the values need not be compiled
    values, gradient = loss_lists(derivatives.lists, scores, n_jobs=n_jobs)
    if not gradient.any() and values.any():
        raise RankwiseError(STATIONARY.format(derivatives.lists.loss))


# --------------------------------------------------------------------------------------------- the number of trees


@dataclass
class TreeCurve:
    """The measure on held-out queries by number of trees.

    Attributes
    ----------
    trees : list of int
        Numbers of trees.
    values : list of float
        The measure at each.
    """

    trees: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    @property
    def means(self) -> Vector:
        """The mean of each value and its neighbors."""
        return np.array([float(np.mean(self.values[max(i - 1, 0) : i + 2])) for i in range(len(self.values))])

    @property
    def best(self) -> int:
        """The number of trees with the highest mean, the fewest of equals."""
        return self.trees[int(np.argmax(self.means))]

    @property
    def judged(self) -> bool:
        """Whether there is a value, and none that is undefined."""
        return bool(self.values) and not any(map(math.isnan, self.values))


def grow_together(
    models: Sequence[Growing],
    judge: Callable[[Sequence[Growing]], float],
    most: int,
    patience: int,
    curve: TreeCurve,
    after: Callable[[], None],
    look: int = LOOK,
    least: int = 0,
) -> None:
    """Grow all models tree by tree until the curve of their measure has not risen for ``patience`` trees.

    Parameters
    ----------
    models : sequence of Growing
        One model per fold.
    judge : callable
        Takes the models, and returns the measure on what each of them holds out.
    most : int
        The largest number of trees.
    patience : int
        Trees to wait for a better mean.
    curve : TreeCurve
        Gets the values.
    after : callable
        Called after each number of trees.
    look : int, default=5
        Trees between two looks at the measure.
    least : int, default=0
        Trees before which the patience does not begin.
    """
    for count in range(most + 1):
        if (count % look == 0 or count == most) and (count or models[0].start is not None):
            curve.values.append(judge(models))
            curve.trees.append(count)
            if not curve.judged or count - max(curve.best, least) >= patience:
                return
        if count < most:
            for model in models:
                model.grow()
            after()
