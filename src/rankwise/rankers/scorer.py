"""`Scorer`: a fitted ranker prepared to rank one query at a time, as a search engine needs it."""

import copy
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankwise._arrays import Numbers, Vector
from rankwise._kernels.dot_products import score_rows
from rankwise._kernels.thresholds import score_steps
from rankwise._store import read_store
from rankwise._tables import notebook_html, paragraph
from rankwise.errors import DataError
from rankwise.queries import checks
from rankwise.queries.queries import Queries
from rankwise.queries.selection import Query
from rankwise.rankers import _inputs as inputs
from rankwise.rankers._base import LinearRanker, Ranker
from rankwise.rankers._record import read_ranker
from rankwise.rankers.boosting.steps import StepScorer, ThresholdRanker
from rankwise.rankers.boosting.tree_ensemble import TreeEnsemble
from rankwise.rankers.linear.linear_model import LinearModel

Kernel = Callable[[checks.Floats, Vector], Any]  # writes the scores of all rows into the vector

_PLAIN = (np.dtype(np.float64), np.dtype(np.float32))


class Scorer:
    """Scores and order of the documents of one query, in the bits of ``model.predict``, in microseconds.

    ``model.predict`` takes any input and checks all of it at every call. A scorer does the general part once. A call
    with a C-contiguous array of float64 or float32 then checks its width, makes one call into compiled code, and checks
    that everything was finite. Other input (data frames, slices, other types, NaN) works too, by ``predict``.

    Parameters
    ----------
    model : Ranker
        A fitted ranker. The scorer keeps its present state: fitting the ranker again does not change the scorer.

    Notes
    -----
    NaN and infinities are always found. A linear score with one of them among its features is itself not finite,
    whatever the weights (0 times infinity is NaN), so only the scores are checked; for sums of steps or trees every
    feature is. ``predict`` then handles such input: it names the row and the feature, fills in by the ranker's
    ``missing`` or keeps NaN for trees, or finds that finite features were too large. With ``missing="min"``, which
    ``predict`` does not take for arrays, the array is taken as the documents of one query; so is every array for a
    ranker that normalizes scores within a query (:class:`~rankwise.HybridRanker`).

    A scorer has no state that changes, and its compiled code runs without the interpreter's lock: threads may share it.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import RidgeRanker, make_lists
    >>> lists = make_lists(50, features=4, random_state=1)
    >>> scorer = Scorer(RidgeRanker().fit(lists))
    >>> documents = np.ascontiguousarray(lists[3].X[:5])
    >>> order = scorer.rank(documents)
    >>> bool((np.diff(scorer.scores(documents)[order]) <= 0).all())
    True
    """

    __slots__ = ("_kernel", "_model", "_sees_all", "_width")

    def __init__(self, model: Ranker) -> None:
        if not isinstance(model, Ranker):
            raise DataError(f"a Scorer requires a fitted ranker, got {type(model).__name__}")
        model._check_fitted()
        self._model = copy.copy(model)
        self._width = model.n_features_in_
        self._kernel, self._sees_all = _kernel_of(self._model)
        builder = model.record_.builder
        if builder is not None and builder.needs_queries:  # predict raises an error for arrays
            self._kernel = None
        if self._kernel is not None:
            for kind in _PLAIN:  # compile, or load, now and not at the first query
                self._kernel(np.zeros((1, self._width), dtype=kind), np.empty(1))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Scorer":
        """The scorer of a ranker that was saved.

        Parameters
        ----------
        path : str or path
            The file that :meth:`Ranker.save` wrote.

        Returns
        -------
        Scorer
            The scorer.

        Raises
        ------
        DataError
            If the file holds anything but a ranker.
        """
        with read_store(path) as store:
            if store.kind != "ranker":
                raise DataError(f"{store.path} holds {store.kind!r:.40}, and a Scorer is made of a saved ranker")
            return cls(read_ranker(store))

    @property
    def is_compiled(self) -> bool:
        """Whether plain arrays are scored by compiled code, in microseconds, and not by ``predict``."""
        return self._kernel is not None

    def with_coef(self, coef: ArrayLike) -> "Scorer":
        """The same scorer with other weights, in microseconds: what an online learner publishes after every block.

        Parameters
        ----------
        coef : array-like of shape (n_features,)
            The weights; they are copied.

        Returns
        -------
        Scorer
            A new scorer, in the bits of the ranker with this ``coef_``.

        Raises
        ------
        DataError
            If the scores are no products of weights and features, or the weights are not finite or not as many as the
            features.
        """
        if not isinstance(self._model, LinearRanker) or not _is_plain(self._model):
            raise DataError(f"only scorers of linear rankers take other weights, got a scorer of {self._model.name}")
        weights = np.array(coef, dtype=np.float64)
        if weights.shape != (self._width,) or not np.isfinite(weights).all():
            raise DataError(f"coef must have one finite weight per feature, {self._width}, got {coef!r:.60}")
        other = object.__new__(Scorer)
        other._model, other._width, other._sees_all = copy.copy(self._model), self._width, self._sees_all
        other._model.coef_ = weights
        other._kernel = None if self._kernel is None else _linear_kernel(weights)  # compiled by the first scorer
        return other

    def scores(self, X: Any) -> Vector:
        """The scores of the documents.

        Parameters
        ----------
        X : array of shape (n_documents, n_features), data frame or Queries
            The documents of one query; a raw table if the ranker has ``features_``.

        Returns
        -------
        ndarray of shape (n_documents,)
            One score per document, in the order of the rows.
        """
        # the conditions under which the compiled code reads the same numbers as predict
        if (
            self._kernel is not None
            and type(X) is np.ndarray
            and X.ndim == 2
            and X.shape[1] == self._width
            and X.dtype in _PLAIN
            and X.flags.c_contiguous
        ):
            scores = np.empty(len(X))
            self._kernel(X, scores)
            if np.isfinite(scores if self._sees_all else X).all():
                return scores
        return self._carefully(X)

    def rank(self, X: Any) -> Numbers:
        """The order of the documents: ``X[scorer.rank(X)]`` is the ranked list.

        Parameters
        ----------
        X : array of shape (n_documents, n_features), data frame or Queries
            The documents of one query.

        Returns
        -------
        ndarray of int64, shape (n_documents,)
            The rows from best to worst; equal scores keep the order of the rows.
        """
        scores = self.scores(X)
        np.negative(scores, out=scores)
        return scores.argsort(kind="stable")

    def _carefully(self, X: Any) -> Vector:
        """The scores of any input, by ``predict``."""
        X = inputs.apply_builder(self._model, X, one_query=True)
        by_query = self._model.missing == "min" or self._model.scores_by_query
        if by_query and not isinstance(X, (Queries, Query)):
            features = inputs.as_rows(self._model, X)
            X = Queries.from_arrays(features, group=[len(features)], missing=self._model.missing)
        return self._model.predict(X)

    def __repr__(self) -> str:
        return f"Scorer({self._model.name} on {self._width} features)"

    def _repr_html_(self) -> str:
        """The HTML that notebooks show."""
        way = "by predict" if self._kernel is None else "by compiled code"
        names = self._model._names()
        width = f"{self._width} features" + ("" if names is None else f": {', '.join(names[:8])}")
        more = f" and {self._width - 8} more" if names is not None and self._width > 8 else ""
        return notebook_html(paragraph(f"Scorer of {self._model.name}, {way}, on {width}{more}"))

    def __reduce__(self) -> tuple[Any, ...]:
        return Scorer, (self._model,)


def _kernel_of(model: Ranker) -> tuple[Kernel | None, bool]:
    """What scores rows as ``model._scores`` does, if that is known, and whether scores show what is not finite."""
    model = model._scoring_model()
    if isinstance(model, LinearRanker) and _is_plain(model):
        return _linear_kernel(np.array(model.coef_, dtype=np.float64)), True
    if isinstance(model, ThresholdRanker) and type(model)._scores is ThresholdRanker._scores:
        s = StepScorer.of(model.steps_)
        return lambda X, out: score_steps(X, 0, len(out), s.feature, s.start, s.cut, s.worth, out), False
    trees = vars(model).get("ensemble_")
    if isinstance(trees, TreeEnsemble) and _is_sum_of_trees(model):
        return trees.score_into, False
    return None, True


def _is_plain(model: Ranker) -> bool:
    """Whether a linear ranker's scores are x . coef_ alone: a constant would be added after the sum."""
    if type(model)._scores is LinearRanker._scores:
        return hasattr(model, "coef_")
    return isinstance(model, LinearModel) and not model.intercept_


def _is_sum_of_trees(model: Ranker) -> bool:
    """Whether the scores of a ranker with an ``ensemble_`` are those of the ensemble alone."""
    from rankwise.rankers.auto.auto_ranker import AutoRanker  # loaded by now where the answer is yes
    from rankwise.rankers.boosting.boosted import BoostedRanker
    from rankwise.rankers.boosting.tree_ranker import TreeRanker

    return type(model)._scores in (AutoRanker._scores, BoostedRanker._scores, TreeRanker._scores)


def _linear_kernel(weights: Vector) -> Kernel:
    """What writes the products of rows and weights."""
    return lambda X, out: score_rows(X, 0, len(out), weights, out)
