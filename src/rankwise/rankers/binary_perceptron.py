"""The classification perceptron, the textbook case that the perceptrons for ranking grew out of."""

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from rankwise._errors import DataError, RankwiseError
from rankwise.data import checks

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

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """One pass over the rows in their order, from w = 0."""
        for name in ("classes_", "coef_"):
            if hasattr(self, name):
                delattr(self, name)
        return self.partial_fit(X, y)

    def partial_fit(self, X: Any, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """Go on with more rows; ``classes`` names both labels if the first rows might have one of them alone."""
        rows = self._rows(X)
        labels = np.asarray(y)
        if labels.shape != (len(rows),):
            raise DataError(f"y holds one label a row: found shape {labels.shape} for {len(rows):,} rows")
        if not hasattr(self, "classes_"):
            known = np.unique(labels if classes is None else np.asarray(classes))
            if len(known) != 2:
                raise DataError(
                    f"a binary perceptron tells two classes apart: found {len(known)}, {known.tolist()!r:.60}"
                )
            self.classes_, self.coef_ = known, np.zeros(rows.shape[1])
            self.n_features_in_ = rows.shape[1]
            self.mistakes_, self.rounds_, self.radius_ = 0, 0, 0.0
        if not np.isin(labels, self.classes_).all():
            raise DataError(f"the classes are {self.classes_.tolist()}: found another label in y")
        self._check_width(rows)
        signs = np.where(labels == self.classes_[1], 1.0, -1.0)
        for x, sign in zip(rows, signs, strict=True):
            self.rounds_ += 1
            if sign * float(x @ self.coef_) <= 0:
                self.coef_ = self.coef_ + sign * x
                self.mistakes_ += 1
                self.radius_ = max(self.radius_, float(np.linalg.norm(x)))
        return self

    def decision_function(self, X: Any) -> Vector:
        """w . x of every row."""
        if not hasattr(self, "coef_"):
            raise RankwiseError("this BinaryPerceptron is not fitted yet: call fit(X, y) first")
        rows = self._rows(X)
        self._check_width(rows)
        return np.asarray(rows @ self.coef_)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of every row; the smaller one where w . x is 0."""
        return np.asarray(self.classes_[(self.decision_function(X) > 0).astype(int)])

    def mistake_bound(self, X: Any, y: ArrayLike, u: ArrayLike) -> float:
        """F + norm(u) R sqrt(F) + norm(u)^2 R^2 over all these rows, which is at least that over the mistakes alone."""
        signs = np.where(np.asarray(y) == self.classes_[1], 1.0, -1.0)
        vector = np.asarray(u, dtype=np.float64)
        F = math.fsum(np.maximum(0.0, 1.0 - signs * (self._rows(X) @ vector)))
        b = float(np.linalg.norm(vector)) * self.radius_
        return F + b * math.sqrt(F) + b**2

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
