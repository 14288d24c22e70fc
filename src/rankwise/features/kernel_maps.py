"""Maps from kernels to features: random Fourier features, and the exact map of kernel PCA.

Both are scikit-learn transformers that work row by row. A linear ranker on their features is a ranker with a kernel:
:class:`rankwise.MappedRanker` puts the two together.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import NotFittedError

from rankwise._kernels import mercer
from rankwise._kernels.parallel import one_blas_thread
from rankwise._parameters import NonNegativeFloat, NumberRange, PositiveFloat, Seed, as_random, check_parameters
from rankwise.errors import DataError, RankwiseError
from rankwise.queries import checks

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Kernel = Literal["rbf", "linear", "poly"]
Degree = Annotated[int, NumberRange(1, 20, closed="both")]

# Documents whose kernel matrix is decomposed: with 10,000 it takes 0.8 GB and a minute.
_MOST_DOCUMENTS = 10_000
_MOST_FEATURES = 1_000_000
# Eigenvalues below this share of the largest one are rounding errors.
_RANK = 1e-12


class _NotFittedError(RankwiseError, NotFittedError):  # type: ignore[misc]
    """Raised if a map is used before ``fit``."""


def kernel_shape(kernel: Kernel, gamma: float | None, degree: int, coef0: float, n_features: int) -> Vector:
    """Number, gamma (None is 1 / n_features), degree and coef0 of a kernel, as compiled code reads them."""
    width = 1.0 / max(n_features, 1) if gamma is None else gamma
    return np.array([mercer.KERNELS.index(kernel), width, degree, coef0], dtype=np.float64)


class _RowMap(TransformerMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """Base class of the maps: checks, and feature names for scikit-learn."""

    n_features_in_: int

    def _validate_params(self) -> None:
        """Raise an error for parameters that are not valid."""
        check_parameters(self)

    def _rows(self, X: Any, fitted: bool = True) -> checks.Floats:
        if fitted and not hasattr(self, "n_features_in_"):
            raise _NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit(X) first")
        rows = checks.as_features(X)
        found = checks.first_not_finite(rows)
        if found is not None:
            raise DataError(f"features must be finite, got {rows[found]} at row {found[0]:,}, feature {found[1]}")
        if fitted and rows.shape[1] != self.n_features_in_:
            raise DataError(
                f"this {type(self).__name__} was fitted on {self.n_features_in_} features, got {rows.shape[1]}"
            )
        return rows

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The names of the new features: the name of the class and a number.

        Parameters
        ----------
        input_features : sequence of str, default=None
            Not used.

        Returns
        -------
        names : ndarray of str
            One name per new feature.
        """
        name = type(self).__name__.lower()
        return np.array([f"{name}{place}" for place in range(self._n_features_out)], dtype=object)

    @property
    @abstractmethod
    def _n_features_out(self) -> int:
        """The number of new features."""

    def _finite(self, made: Matrix) -> Matrix:
        if not np.isfinite(made).all():
            row = int(np.argmin(np.isfinite(made).all(axis=1)))
            raise DataError(f"{type(self).__name__} overflows at row {row:,}: scale the features")
        return made


@dataclass(eq=False, repr=False)
class FourierFeatures(_RowMap):
    r"""Random Fourier features of the rbf kernel, in pairs of a cosine and a sine: norm(z(x)) = 1 for every x.

    .. math:: z(x) = \sqrt{2/D}\,(\cos w_1 x, \dots, \cos w_{D/2} x, \sin w_1 x, \dots), \quad w_j \sim N(0, 2\gamma I).

    Then z(x) . z(y) has the expectation exp(-gamma norm(x - y)^2), and 1 - norm(z(x) - z(y))^2 / 2 is exactly
    z(x) . z(y). The map is drawn without a look at the data: bounds for weights that were fixed beforehand hold for it.

    Parameters
    ----------
    gamma : float, default=None
        The width of the kernel; None is 1 / (number of features).
    n_features : int, default=256
        D, the number of new features: even.
    random_state : int or numpy.random.Generator, default=0
        Seed of the frequencies.

    Attributes
    ----------
    frequencies_ : ndarray of shape (n_features / 2, n_features_in)
        The frequencies w.
    n_features_in_ : int
        Number of features seen by ``fit``.

    Notes
    -----
    ``RBFSampler`` of scikit-learn draws a random phase instead of pairs: its rows reach a norm of sqrt(2).

    References
    ----------
    A. Rahimi and B. Recht (2007). Random features for large-scale kernel machines. NIPS 20.

    D. J. Sutherland and J. Schneider (2015). On the error of random Fourier features. UAI 2015. arXiv:1506.02785.

    Examples
    --------
    >>> z = FourierFeatures(gamma=0.5, n_features=64).fit_transform([[0.0, 1.0], [2.0, 3.0]])
    >>> z.shape, [round(float(one @ one), 12) for one in z]
    ((2, 64), [1.0, 1.0])
    """

    # no row is longer, and fit does not look at the data
    row_radius = 1.0

    gamma: PositiveFloat | None = None
    n_features: Annotated[int, NumberRange(2, _MOST_FEATURES, closed="both")] = 256
    random_state: Seed = 0

    def _validate_params(self) -> None:
        super()._validate_params()
        if self.n_features % 2:
            raise RankwiseError(f"n_features must be even, for pairs of a cosine and a sine, got {self.n_features}")

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the frequencies; of X only the number of features is used.

        Parameters
        ----------
        X : array-like of shape (n_documents, n_features)
            The documents.
        y : object, default=None
            Not used.

        Returns
        -------
        FourierFeatures
            The map itself.
        """
        self._validate_params()
        return self._fit_width(self._rows(X, fitted=False).shape[1])

    def _fit_width(self, width: int) -> Self:
        """Draw the frequencies for so many features."""
        gamma = kernel_shape("rbf", self.gamma, 1, 0.0, width)[mercer.GAMMA]
        drawn = as_random(self.random_state).standard_normal((self.n_features // 2, width))
        self.frequencies_, self.n_features_in_ = math.sqrt(2 * gamma) * drawn, width
        return self

    def transform(self, X: Any) -> Matrix:
        """The features z(x).

        Parameters
        ----------
        X : array-like of shape (n_documents, n_features)
            The documents.

        Returns
        -------
        ndarray of shape (n_documents, n_features of the map)
            Cosines, then sines; a row has the same bits alone and among others.
        """
        rows = self._rows(X)
        made = np.empty((len(rows), self._n_features_out))
        mercer.fourier_rows_on(rows.dtype)(rows, 0, len(rows), self.frequencies_, made)
        return self._finite(made)

    @property
    def _n_features_out(self) -> int:
        return 2 * len(self.frequencies_)


@dataclass(eq=False, repr=False)
class KernelPCAMap(_RowMap):
    r"""The exact map of kernel PCA: Phi(x) = Lambda^(-1/2) V' k(x), for K = V Lambda V' on the training documents.

    Phi(x) . Phi(z) = k(x, z) for training documents, and a linear ranker on Phi that penalizes norm(w)^2 is the ranker
    with the kernel: the best w lies in the span of the training documents. Exact and for small data, because K of all
    documents is decomposed in O(documents^3); ``Nystroem`` of scikit-learn does the same on a sample of landmarks.

    Parameters
    ----------
    kernel : {"rbf", "linear", "poly"}, default="rbf"
        exp(-gamma norm(x - z)^2), x . z, or (gamma x . z + coef0)^degree.
    gamma : float, default=None
        gamma of "rbf" and "poly"; None is 1 / (number of features).
    degree : int, default=3
        The degree of "poly".
    coef0 : float, default=1.0
        The constant of "poly".

    Attributes
    ----------
    documents_ : ndarray of shape (n_documents, n_features)
        The training documents.
    projection_ : ndarray of shape (n_documents, rank)
        V Lambda^(-1/2); eigenvalues below 1e-12 of the largest one are left out.
    shape_ : ndarray of shape (4,)
        Number of the kernel, gamma, degree and coef0.
    n_features_in_ : int
        Number of features seen by ``fit``.

    References
    ----------
    O. Chapelle and M. Wu (2010). Gradient descent optimization of smoothed information retrieval metrics. Information
    Retrieval 13. doi:10.1007/s10791-009-9110-3

    B. Schoelkopf, A. Smola and K.-R. Mueller (1998). Nonlinear component analysis as a kernel eigenvalue problem.
    Neural Computation 10(5). doi:10.1162/089976698300017467

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 1.0], [2.0, 3.0], [1.0, 0.0]])
    >>> z = KernelPCAMap(gamma=0.5).fit_transform(X)
    >>> bool(np.allclose(z @ z.T, np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(-1))))
    True
    """

    kernel: Kernel = "rbf"
    gamma: PositiveFloat | None = None
    degree: Degree = 3
    coef0: NonNegativeFloat = 1.0  # with a constant below 0, k would not be a product of features

    @one_blas_thread()
    def fit(self, X: Any, y: Any = None) -> Self:
        """Decompose the kernel matrix of the documents.

        Parameters
        ----------
        X : array-like of shape (n_documents, n_features)
            The documents, at most 10,000.
        y : object, default=None
            Not used.

        Returns
        -------
        KernelPCAMap
            The map itself.
        """
        self._validate_params()
        rows = np.array(self._rows(X, fitted=False), dtype=np.float64)
        if not 1 <= len(rows) <= _MOST_DOCUMENTS:
            raise RankwiseError(
                f"KernelPCAMap takes 1 to {_MOST_DOCUMENTS:,} documents, got "
                f"{len(rows):,}; Nystroem of scikit-learn takes a sample of them"
            )
        shape = kernel_shape(self.kernel, self.gamma, self.degree, self.coef0, rows.shape[1])
        values, vectors = np.linalg.eigh(self._finite(_kernel_matrix(rows, rows, shape)))
        kept = values > max(_RANK * values[-1], np.finfo(np.float64).tiny)
        if not kept.any():  # every document is 0 in the space of the kernel
            values, vectors, kept = np.ones(1), np.zeros((len(rows), 1)), np.ones(1, dtype=bool)
        # the largest eigenvalue first
        self.projection_ = np.ascontiguousarray((vectors[:, kept] / np.sqrt(values[kept]))[:, ::-1])
        self.documents_, self.shape_, self.n_features_in_ = rows, shape, rows.shape[1]
        return self

    @one_blas_thread()
    def transform(self, X: Any) -> Matrix:
        """The features Phi(x).

        Parameters
        ----------
        X : array-like of shape (n_documents, n_features)
            The documents.

        Returns
        -------
        ndarray of shape (n_documents, rank)
            The features.
        """
        return self._finite(_kernel_matrix(self._rows(X), self.documents_, self.shape_) @ self.projection_)

    @property
    def _n_features_out(self) -> int:
        return int(self.projection_.shape[1])


def _kernel_matrix(X: checks.Floats, Z: Matrix, shape: Vector) -> Matrix:
    """k(x, z) of all rows of X with all rows of Z."""
    found = np.empty((len(X), len(Z)))
    mercer.mercer_rows_on(X.dtype)(X, 0, len(X), Z, shape, found)
    return found
