"""The classification perceptron, the textbook case that the perceptrons for ranking grew out of."""

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from rankwise._blas import one_blas_thread
from rankwise._errors import DataError
from rankwise.data import checks
from rankwise.rankers._base import RankerNotFittedError

Vector = NDArray[np.float64]


class BinaryPerceptron(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""On a mistake, y (w . x) <= 0, w <- w + y x, for labels y of -1 and +1; no ranker, and no step to choose.

    For any u, with F(u) = sum over mistakes of [1 - y (u . x)]_+ and R the longest row of a mistake, the number of
    mistakes is at most F + norm(u) R sqrt(F) + norm(u)^2 R^2; rows that a unit vector separates by gamma cost at most
    R^2 / gamma^2.

    Attributes
    ----------
    coef_ : one weight a feature
    classes_ : the two labels, the smaller one is -1
    mistakes_, rounds_, radius_ : mistakes, rows seen, and the longest row of a mistake

    Examples
    --------
    >>> model = BinaryPerceptron().fit([[1.0, 0.0], [-1.0, 0.5]], [1, 0])
    >>> model.predict([[2.0, 1.0]])
    array([1])
    """

    classes_: NDArray[Any]
    coef_: Vector
    mistakes_: int
    rounds_: int
    radius_: float

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """One pass over the rows in their order, from w = 0."""
        return self._learn(X, y, None, fresh=True)

    def partial_fit(self, X: Any, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """Go on with more rows; ``classes`` names both labels if the first rows might have one of them alone."""
        return self._learn(X, y, classes, fresh=not hasattr(self, "classes_"))

    @one_blas_thread()
    def _learn(self, X: Any, y: ArrayLike, classes: ArrayLike | None, *, fresh: bool) -> Self:
        rows, labels = self._rows(X), np.asarray(y)
        if labels.shape != (len(rows),):
            raise DataError(f"y holds one label a row: found shape {labels.shape} for {len(rows):,} rows")
        if fresh:
            known = np.unique(labels if classes is None else np.asarray(classes))
            w, mistakes, rounds, radius = np.zeros(rows.shape[1]), 0, 0, 0.0
            if len(known) != 2:
                raise DataError(
                    f"a binary perceptron tells two classes apart: found {len(known)}, {known.tolist()!r:.60}"
                )
        else:
            known, w = self.classes_, self.coef_
            mistakes, rounds, radius = self.mistakes_, self.rounds_, self.radius_
            self._check_width(rows)
        if not np.isin(labels, known).all():
            raise DataError(f"the classes are {known.tolist()}: found another label in y")
        for x, sign in zip(rows, np.where(labels == known[1], 1.0, -1.0), strict=True):
            if sign * float(x @ w) <= 0:
                w = w + sign * x
                mistakes += 1
                radius = max(radius, float(np.linalg.norm(x)))
        self.classes_, self.coef_, self.n_features_in_ = known, w, len(w)
        self.mistakes_, self.rounds_, self.radius_ = mistakes, rounds + len(rows), radius
        return self

    @one_blas_thread()
    def decision_function(self, X: Any) -> Vector:
        """w . x of every row."""
        self._check_fitted()
        rows = self._rows(X)
        self._check_width(rows)
        return np.asarray(rows @ self.coef_)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of every row; the smaller one where w . x is 0."""
        above = self.decision_function(X) > 0
        return np.asarray(self.classes_[above.astype(int)])

    @one_blas_thread()
    def mistake_bound(self, X: Any, y: ArrayLike, u: ArrayLike) -> float:
        """F + norm(u) R sqrt(F) + norm(u)^2 R^2 over all these rows, which is at least that over the mistakes alone."""
        self._check_fitted()
        signs = np.where(np.asarray(y) == self.classes_[1], 1.0, -1.0)
        vector = np.asarray(u, dtype=np.float64)
        F = math.fsum(np.maximum(0.0, 1.0 - signs * (self._rows(X) @ vector)))
        b = float(np.linalg.norm(vector)) * self.radius_
        return F + b * math.sqrt(F) + b**2

    def _check_fitted(self) -> None:
        if not hasattr(self, "coef_"):
            raise RankerNotFittedError("this BinaryPerceptron is not fitted yet: call fit(X, y) first")

    @staticmethod
    def _rows(X: Any) -> Vector:
        rows = np.asarray(checks.as_features(X), dtype=np.float64)
        found = checks.first_not_finite(rows)
        if found is not None:
            raise DataError(f"X is {rows[found]} at row {found[0]:,}, feature {found[1]}: features are finite")
        return rows

    def _check_width(self, rows: Vector) -> None:
        if rows.shape[1] != self.n_features_in_:
            raise DataError(
                f"this BinaryPerceptron was fitted on {self.n_features_in_} features: found {rows.shape[1]}"
            )
