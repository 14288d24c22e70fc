"""BinaryPerceptron: the perceptron for classification, from which the perceptrons for ranking are derived."""

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin

from rankwise._arrays import Array, Vector
from rankwise._kernels.parallel import one_blas_thread
from rankwise.errors import DataError
from rankwise.queries import checks
from rankwise.rankers._base import RankerNotFittedError


class BinaryPerceptron(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""The perceptron for labels of -1 and +1, which learns from one document at a time.

    On a mistake, y (w . x) <= 0, w <- w + y x, for labels y of -1 and +1.

    This is a classifier and no ranker. It has no parameters, because the size of a step would change no prediction.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        The weights w.
    classes_ : ndarray of shape (2,)
        The two labels; the smaller one is y = -1.
    n_features_in_ : int
        Number of features.
    mistakes_ : int
        Number of mistakes.
    rounds_ : int
        Number of rows seen.
    radius_ : float
        R, the largest norm of a row with a mistake.

    Notes
    -----
    For any u, with F(u) = sum over mistakes of [1 - y (u . x)]_+, the number of mistakes is at most
    F + norm(u) R sqrt(F) + norm(u)^2 R^2. On rows that a unit vector separates by gamma it is at most R^2 / gamma^2.

    References
    ----------
    F. Rosenblatt (1958). The perceptron: a probabilistic model for information storage and organization in the
    brain. Psychological Review 65. doi:10.1037/h0042519

    Examples
    --------
    >>> model = BinaryPerceptron().fit([[1.0, 0.0], [-1.0, 0.5]], [1, 0])
    >>> model.predict([[2.0, 1.0]])
    array([1])
    """

    classes_: Array
    coef_: Vector
    mistakes_: int
    rounds_: int
    radius_: float

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Learn from w = 0 on, in one pass over the rows in their order.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,)
            Their labels, of two different values.

        Returns
        -------
        BinaryPerceptron
            The classifier itself.

        Raises
        ------
        DataError
            If the labels have more or fewer than two values, or a feature is not finite.
        """
        return self._learn(X, y, None, fresh=True)

    def partial_fit(self, X: Any, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """Continue with more rows.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,)
            Their labels.
        classes : array-like of shape (2,), default=None
            Both labels, needed in the first call if its rows have only one of them.

        Returns
        -------
        BinaryPerceptron
            The classifier itself.
        """
        return self._learn(X, y, classes, fresh=not hasattr(self, "classes_"))

    @one_blas_thread()
    def _learn(self, X: Any, y: ArrayLike, classes: ArrayLike | None, *, fresh: bool) -> Self:
        rows, labels = self._rows(X), np.asarray(y)
        if labels.shape != (len(rows),):
            raise DataError(f"y must have one label per row, got shape {labels.shape} for {len(rows):,} rows")
        if fresh:
            known = np.unique(labels if classes is None else np.asarray(classes))
            w, mistakes, rounds, radius = np.zeros(rows.shape[1]), 0, 0, 0.0
            if len(known) != 2:
                raise DataError(f"y must have two classes, got {len(known)}: {known.tolist()!r:.60}")
        else:
            known, w = self.classes_, self.coef_
            mistakes, rounds, radius = self.mistakes_, self.rounds_, self.radius_
            self._check_width(rows)
        if not np.isin(labels, known).all():
            raise DataError(f"labels must be one of {known.tolist()}, got another one in y")
        # everything is checked before, and set after the loop: a call that fails leaves the classifier as it was
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
        """The scores w . x.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            One score per row.
        """
        self._check_fitted()
        rows = self._rows(X)
        self._check_width(rows)
        return np.asarray(rows @ self.coef_)

    def predict(self, X: Any) -> Array:
        """The class of every row.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            One of ``classes_`` per row; the smaller one if w . x is 0.
        """
        above = self.decision_function(X) > 0
        return np.asarray(self.classes_[above.astype(int)])

    @one_blas_thread()
    def mistake_bound(self, X: Any, y: ArrayLike, u: ArrayLike) -> float:
        """F + norm(u) R sqrt(F) + norm(u)^2 R^2, with F summed over all these rows.

        This is at least the bound with F summed over the mistakes alone.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            The rows that were learned from.
        y : array-like of shape (n_rows,)
            Their labels.
        u : array-like of shape (n_features,)
            The weights to compare with.

        Returns
        -------
        float
            An upper bound on the number of mistakes.
        """
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
            raise DataError(f"this BinaryPerceptron was fitted on {self.n_features_in_} features, got {rows.shape[1]}")
