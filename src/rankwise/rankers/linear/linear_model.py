"""LinearModel: weights that were learned elsewhere, or chosen by hand, as a ranker like any other."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from rankwise._arrays import Array, Vector
from rankwise._parameters import Check
from rankwise._store import Store
from rankwise.errors import DataError, RankwiseError
from rankwise.queries import checks
from rankwise.queries.queries import Queries
from rankwise.rankers._base import LinearRanker
from rankwise.rankers._parameters import is_vector


@dataclass(eq=False, repr=False, kw_only=True)
class LinearModel(LinearRanker):
    """A linear ranker whose weights are given and not learned.

    s(x) = intercept + sum_j coef_j x_j.

    :func:`rankwise.exports.read_model` reads what another tool has learned as such a model. It then predicts, and can
    be saved, evaluated, compared, certified and exported. Without weights every feature counts the same, which is the
    oldest baseline.

    Parameters
    ----------
    measure : str or Measure, default="nDCG@10"
        The measure that ``score`` and certificates report.
    coef : array-like of shape (n_features,), default=None
        The weights; None is 1 for each feature.
    intercept : float, default=0.0
        A constant that is added to every score; it changes no ranking.
    n_jobs : int, default=None
        Number of threads; None uses all cores. The result does not depend on it.
    verbose : bool, default=False
        Accepted for uniformity; there is no progress to show.
    missing : {"error", "zero", "min"}, default="error"
        What to do with NaN in arrays.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        The weights.
    intercept_ : float
        The constant.

    Notes
    -----
    ``fit`` learns nothing. It takes the names of the features from the queries, and raises an error if their number is
    not that of the weights. :meth:`of` makes a fitted model without queries. What the weights were learned from is then
    unknown, and certificates say so.

    Examples
    --------
    >>> model = LinearModel.of([0.5, -1.0], feature_names=["bm25", "age"])
    >>> model.predict([[2.0, 1.0], [0.0, 3.0]])
    array([ 0., -3.])
    """

    name = "LinearModel"
    learns = False

    coef: Annotated[ArrayLike, Check("a vector with one finite weight per feature", is_vector)] | None = None
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
        """A fitted model with these weights.

        Parameters
        ----------
        coef : array-like of shape (n_features,)
            The weights.
        intercept : float, default=0.0
            A constant that is added to every score.
        feature_names : sequence of str, default=None
            The names of the features.
        measure : str or Measure, default="nDCG@10"
            The measure that ``score`` and certificates report.
        missing : {"error", "zero", "min"}, default="error"
            What to do with NaN in arrays.

        Returns
        -------
        LinearModel
            The fitted model.
        """
        model = cls(measure, coef=np.asarray(coef, dtype=np.float64).tolist(), intercept=intercept, missing=missing)
        model._check_parameters()
        width = len(np.atleast_1d(coef))
        names = checks.as_names(feature_names, width)
        model.n_features_in_ = width
        if names is not None:
            model.feature_names_in_ = np.array(names, dtype=object)
        model._set()
        return model

    def _fit(self, queries: Queries, validation: Queries | None) -> None:
        if validation is not None:
            raise DataError("LinearModel does no model selection: omit the validation set")
        self._set()

    def _set(self) -> None:
        coef = np.ones(self.n_features_in_) if self.coef is None else np.array(self.coef, dtype=np.float64)
        if len(coef) != self.n_features_in_:
            raise DataError(f"coef must have one weight per feature, {self.n_features_in_}, got {len(coef)} weights")
        self.coef_ = coef
        self.intercept_ = float(self.intercept)

    def _scores(self, X: checks.Floats) -> Vector:
        # without an intercept the scores are those of any linear ranker to the bit
        scores = super()._scores(X)
        return scores + self.intercept_ if self.intercept_ else scores

    # ------------------------------------------------------------------------------------------- saving

    def _state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        return {"intercept": self.intercept_}, {"coef": self.coef_}

    def _restore(self, facts: Mapping[str, Any], store: Store) -> None:
        coef = self._read_coef(store)  # first: a false number of features then takes no memory
        self._measure()
        self._set()  # checks the parameters
        self.coef_, self.intercept_ = coef, float(facts["intercept"])
        if not math.isfinite(self.intercept_):
            raise RankwiseError("its intercept is not finite")
