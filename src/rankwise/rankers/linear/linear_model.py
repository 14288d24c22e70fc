"""LinearModel: weights that somebody else learned, or that are plain, as a ranker like any other."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._errors import DataError, RankwiseError
from rankwise._store import Store
from rankwise.data import checks
from rankwise.data.queries import Queries
from rankwise.rankers._base import LinearRanker
from rankwise.rankers.linear.ridge import read_coef

Vector = NDArray[np.float64]


@dataclass(eq=False, repr=False, kw_only=True)
class LinearModel(LinearRanker):
    """s(x) = intercept + sum_j coef_j x_j, with weights that are given and not learned.

    What another tool learned is read by :func:`rankwise.exports.read_model`, and then predicts, is saved, evaluated,
    compared, certified and exported. Without weights every feature counts the same, which is the oldest of baselines.

    Parameters
    ----------
    measure : what ``score`` and certificates are about
    coef : one weight a feature; None: 1 for each
    intercept : added to every score; no ranking sees it
    n_jobs, missing : as for :class:`SLAMPerceptron`

    Attributes
    ----------
    coef_, intercept_ : the weights and the constant

    Notes
    -----
    ``fit`` learns nothing: it takes the names of the features from the lists, and refuses another number of them than
    there are weights. :meth:`of` makes a fitted one without lists. What the weights were learned from is then not
    known, and a certificate says so.

    Examples
    --------
    >>> model = LinearModel.of([0.5, -1.0], feature_names=["bm25", "age"])
    >>> model.predict([[2.0, 1.0], [0.0, 3.0]])
    array([ 0., -3.])
    """

    name = "LinearModel"
    learns = False

    coef: ArrayLike | None = None
    intercept: float = 0.0

    @classmethod
    def of(
        cls,
        coef: ArrayLike,
        *,
        intercept: float = 0.0,
        feature_names: Sequence[str] | None = None,
        measure: Any = "nDCG@10",
        missing: checks.Missing = "error",
    ) -> Self:
        """A fitted model with these weights."""
        model = cls(measure, coef=np.asarray(coef, dtype=np.float64).tolist(), intercept=intercept, missing=missing)
        width = len(model._given(None))
        names = checks.as_names(feature_names, width)
        model._measure()
        model.n_features_in_ = width
        if names is not None:
            model.feature_names_in_ = np.array(names, dtype=object)
        model._set()
        return model

    def _fit(self, queries: Queries, validation: Queries | None) -> None:
        self._measure()
        if validation is not None:
            raise DataError("LinearModel has nothing to choose by a validation set: leave it out")
        self._set()

    def _set(self) -> None:
        if isinstance(self.intercept, bool) or not isinstance(self.intercept, (int, float, np.number)):
            raise RankwiseError(f"intercept is a number: found {self.intercept!r:.60}")
        if not math.isfinite(self.intercept):
            raise RankwiseError(f"intercept is a finite number: found {self.intercept!r}")
        coef = self._given(self.n_features_in_)
        if len(coef) != self.n_features_in_:
            raise DataError(f"coef holds one weight a feature: found {len(coef)} for {self.n_features_in_} features")
        self.coef_ = coef
        self.intercept_ = float(self.intercept)

    def _given(self, width: int | None) -> Vector:
        """The weights, which are numbers."""
        if self.coef is None:
            return np.ones(width or 0)
        try:
            coef = np.array(self.coef, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise RankwiseError(f"coef is one number a feature: found {self.coef!r:.60}") from error
        if coef.ndim != 1 or not np.isfinite(coef).all():
            raise RankwiseError(f"coef is one finite number a feature: found {self.coef!r:.60}")
        return coef

    def _scores(self, X: checks.Floats) -> Vector:
        scores = super()._scores(X)
        return scores + self.intercept_ if self.intercept_ else scores

    # ------------------------------------------------------------------------------------------- saving

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        return {"intercept": self.intercept_}, {"coef": self.coef_}

    def _restore(self, facts: Mapping[str, Any], store: Store) -> None:
        coef = read_coef(store, self.n_features_in_)  # first: a number of features that is a lie takes no memory
        self._measure()
        self._set()  # the parameters could be those of a model
        self.coef_, self.intercept_ = coef, float(facts["intercept"])
        if not math.isfinite(self.intercept_):
            raise RankwiseError("its intercept is not finite")
