"""`Scaler`: bring features to a common scale, learned on the training set alone or within each query.

Features are read in blocks of rows, so memory-mapped ones need no copy in memory.
"""

from collections.abc import Mapping
from copy import copy
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._kernels import parallel
from rankwise._parameters import check_parameters
from rankwise._tables import ShownAsFacts
from rankwise.errors import DataError, RankwiseError
from rankwise.queries.checks import Floats, as_floats, as_names, blocks_of_rows, first_not_finite, is_whole
from rankwise.queries.chunks import How, center_and_scale, transform_values
from rankwise.queries.queries import Queries, as_queries
from rankwise.queries.source import QuerySource, as_source, block_of

Per = Literal["set", "query"]
Array = NDArray[np.float64]


class Scaler(ShownAsFacts):
    """Scale each feature: z = (t(x) - center) / scale, and z = 0 where the feature does not vary.

    ========== ==================== ========= ==================
    how        t(x)                 center    scale
    ========== ==================== ========= ==================
    standard   x                    mean      standard deviation
    minmax     x                    minimum   maximum - minimum
    log        sign(x) log(1+|x|)   mean      standard deviation
    ========== ==================== ========= ==================

    Center and scale are those of the set that the scaler was fitted on (``per="set"``), or those of each query's own
    documents (``per="query"``; with ``minmax`` this is LETOR's rule). The result keeps the type of ``X`` and stores the
    scaler as ``.scaling``.

    Parameters
    ----------
    how : {"standard", "minmax", "log"}, default="standard"
        The transformation.
    per : {"set", "query"}, default="set"
        What center and scale are computed over.

    Attributes
    ----------
    center_ : ndarray of float64, shape (n_features,), or None
        The centers for ``per="set"``, None for ``per="query"``.
    scale_ : ndarray of float64, shape (n_features,), or None
        The scales for ``per="set"``, None for ``per="query"``; 0 where the feature does not vary.
    n_features_in_ : int
        The number of features in ``fit``.
    feature_names_in_ : tuple of str, or None
        The feature names in ``fit``.

    Examples
    --------
    >>> train = Queries.from_arrays([[1.0, 7.0], [3.0, 7.0]], [0, 1], qid=[1, 1])
    >>> Scaler("minmax").fit(train).transform(train).X
    array([[0., 0.],
           [1., 0.]])
    """

    center_: Array | None
    scale_: Array | None
    n_features_in_: int
    feature_names_in_: tuple[str, ...] | None

    def __init__(self, how: How = "standard", per: Per = "set") -> None:
        self.how = how
        self.per = per

    def fit(self, queries: Any, y: Any = None) -> "Scaler":
        """Learn center and scale.

        Parameters
        ----------
        queries : Queries or Parts
            The training set, not scaled yet.
        y : ignored
            For scikit-learn's pipelines.

        Returns
        -------
        self : Scaler
            The fitted scaler.
        """
        check_parameters(self)
        data = as_source(queries, "Scaler.fit")
        data.refuse_missing("a Scaler")
        _refuse_scaled(data)
        if self.per == "set" and not data.n_documents:
            raise DataError("Scaler.fit needs documents, got none")
        self.center_, self.scale_ = None, None
        if self.per == "set":
            rows: QuerySource = data
            if not data.is_grouped and data.n_documents <= parallel.CHUNK:  # sums in the order of the input
                rows = Queries._trusted(queries.X, None, np.array([0, data.n_documents]))
            self.center_, self.scale_ = center_and_scale(rows, self.how)
        self.n_features_in_ = data.n_features
        self.feature_names_in_ = data.feature_names
        return self

    def transform(self, queries: Queries) -> Queries:
        """Scale queries.

        Parameters
        ----------
        queries : Queries
            Queries with the fitted features, in any order if they have names.

        Returns
        -------
        queries : Queries
            The same queries with scaled features, in the fitted order.

        Raises
        ------
        DataError
            If the features differ from the fitted ones, are scaled already, or leave the range of their type.
        """
        queries = self._align(queries)
        X = np.empty_like(queries.X, subok=False)
        if self.center_ is not None and self.scale_ is not None:
            for rows in blocks_of_rows(*X.shape):
                with np.errstate(over="ignore"):  # found and named below
                    X[rows] = _scale(transform_values(queries.X[rows], self.how), self.center_, self.scale_)
                self._check_result(X, queries.X, rows)
        else:
            for query in map(int, np.flatnonzero(queries.sizes)):
                rows = queries.rows_of(query)
                facts = center_and_scale(block_of(queries, query, query + 1), self.how)
                X[rows] = _scale(transform_values(queries.X[rows], self.how), *facts)
        # a copy, because fitting this scaler again must not change the record of these queries
        return queries._replace(X=X, scaling=copy(self))

    def fit_transform(self, queries: Queries, y: Any = None) -> Queries:
        """Fit on queries and scale them.

        Parameters
        ----------
        queries : Queries
            The training set, not scaled yet.
        y : ignored
            For scikit-learn's pipelines.

        Returns
        -------
        queries : Queries
            The same queries with scaled features.
        """
        return self.fit(queries).transform(queries)

    def fold(self, coef: ArrayLike) -> Array:
        """Weights on raw features that rank as ``coef`` does on scaled ones: w_j / scale_j, 0 where the scale is 0.

        The scores differ by the constant sum_j w_j center_j / scale_j, which does not change a ranking.

        Parameters
        ----------
        coef : array-like, shape (n_features,)
            The weights on scaled features.

        Returns
        -------
        coef : ndarray of float64, shape (n_features,)
            The weights on raw features.

        Raises
        ------
        RankwiseError
            If the scaler is not fitted, or is not linear in the raw features.
        """
        self._check_fitted()
        if self.how == "log" or self.scale_ is None:
            raise RankwiseError(f"{self!r} is not linear in the raw features: it cannot be folded into linear weights")
        weights = as_floats(coef, "coef holds one weight per feature")
        if weights.shape != self.scale_.shape:
            raise DataError(
                f"coef has shape {weights.shape}: expected one weight for each of {len(self.scale_)} features"
            )
        with np.errstate(over="ignore"):
            folded = np.divide(weights, self.scale_, out=np.zeros_like(weights), where=self.scale_ > 0)
        if not np.isfinite(folded).all():
            feature = int(np.argmin(np.isfinite(folded)))
            raise DataError(
                f"the weight of feature {feature} does not fit into float64 on the raw scale: it is "
                f"{weights[feature]:g} divided by {self.scale_[feature]:g}"
            )
        return folded

    # ------------------------------------------------------------------------------------------- checks

    def _check_fitted(self) -> None:
        """Refuse a scaler that is not fitted."""
        if not hasattr(self, "n_features_in_"):
            raise RankwiseError(f"{self!r} is not fitted yet: call fit(training queries) first")

    def _align(self, queries: Queries) -> Queries:
        """The queries with their features in the fitted order."""
        self._check_fitted()
        queries = as_queries(queries, "Scaler.transform")
        queries.refuse_missing("a Scaler")
        _refuse_scaled(queries)
        if queries.n_features != self.n_features_in_:
            raise DataError(f"the scaler was fitted on {self.n_features_in_} features, got {queries.n_features}")
        if (queries.feature_names is None) != (self.feature_names_in_ is None):
            named, nameless = ("scaler", "queries") if queries.feature_names is None else ("queries", "scaler")
            raise DataError(
                f"the features of the {named} have names and those of the {nameless} have none: name both or none"
            )
        return queries if self.feature_names_in_ is None else queries.select_features(self.feature_names_in_)

    def _check_result(self, X: Floats, raw: Floats, rows: slice) -> None:
        """Refuse scaled features that are not finite."""
        found = first_not_finite(X[rows])
        if found is not None:
            row, feature = rows.start + found[0], found[1]
            raise DataError(
                f"X is {raw[row, feature]:g} at row {row:,}, feature {feature}: scaled, that is too large for "
                f"{X.dtype}; the scaler was fitted on another range"
            )

    # ------------------------------------------------------------------------------------------- as a value

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name, for scikit-learn.

        Parameters
        ----------
        deep : bool, default=True
            Without effect: a scaler contains no other estimator.

        Returns
        -------
        params : dict
            ``how`` and ``per``.
        """
        return {"how": self.how, "per": self.per}

    def set_params(self, **params: Any) -> "Scaler":
        """Change parameters by name, for scikit-learn.

        Parameters
        ----------
        **params : keyword arguments
            ``how`` and ``per``.

        Returns
        -------
        self : Scaler
            The scaler.
        """
        for name, value in params.items():
            if name not in self.get_params():
                raise RankwiseError(f"a scaler has the parameters how and per, got {name!r}")
            setattr(self, name, value)
        return self

    def to_state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """The fitted state as plain JSON values and plain arrays.

        Returns
        -------
        facts : dict
            Parameters, the number of features and their names.
        arrays : dict of ndarray
            ``center`` and ``scale``, for ``per="set"``.
        """
        self._check_fitted()
        names = None if self.feature_names_in_ is None else list(self.feature_names_in_)
        facts = {**self.get_params(), "n_features": self.n_features_in_, "feature_names": names}
        learned = {"center": self.center_, "scale": self.scale_}
        return facts, {name: array for name, array in learned.items() if array is not None}

    @classmethod
    def from_state(cls, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> "Scaler":
        """The scaler with a given state.

        Parameters
        ----------
        facts : mapping
            As :meth:`to_state` returns them.
        arrays : mapping of ndarray
            As :meth:`to_state` returns them.

        Returns
        -------
        scaler : Scaler
            The fitted scaler.

        Raises
        ------
        DataError
            If no scaler has this state.
        """
        if not isinstance(facts, Mapping) or not isinstance(arrays, Mapping):
            raise DataError("the state of a scaler is facts by name and arrays by name")
        scaler = cls(facts.get("how"), facts.get("per"))  # type: ignore[arg-type]  # checked on the next line
        check_parameters(scaler)
        count: Any = facts.get("n_features")
        names = facts.get("feature_names")
        if not is_whole(count, 0) or not (names is None or (isinstance(names, list) and len(names) == count)):
            raise DataError("the state of a scaler lacks the number or the names of its features")
        center, scale = arrays.get("center"), arrays.get("scale")
        for array in (center, scale):
            if array is not None and not (isinstance(array, np.ndarray) and array.dtype == np.float64):
                raise DataError("the state of a scaler has centers or scales that are not arrays of float64")
            if (array is None) != (scaler.per == "query") or (array is not None and array.shape != (count,)):
                raise DataError("the state of a scaler has centers or scales that do not fit its features")
            if array is not None and not np.isfinite(array).all():
                raise DataError("the state of a scaler has centers or scales that are not finite")
        if scale is not None and (scale < 0).any():
            raise DataError("the state of a scaler has a scale below 0")
        scaler.center_, scaler.scale_ = center, scale
        scaler.n_features_in_ = count
        scaler.feature_names_in_ = as_names(names, count)
        return scaler

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Scaler) or self.get_params() != other.get_params():
            return False
        mine, theirs = vars(self), vars(other)
        return mine.keys() == theirs.keys() and all(np.array_equal(mine[name], theirs[name]) for name in mine)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Scaler(how={self.how!r}, per={self.per!r})"


# ------------------------------------------------------------------------------------------- arithmetic on blocks


def _refuse_scaled(queries: Any) -> None:
    """Refuse queries that a scaler has already transformed."""
    if queries.scaling is not None:
        raise DataError(f"these queries were scaled already by {queries.scaling!r}: give the raw ones")


def _scale(values: Array, center: Array, scale: Array) -> Array:
    """(values - center) / scale without overflow in the difference; 0 where the scale is 0."""
    divisor = np.where(scale > 0, scale, np.inf)
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = (values - center) / divisor
        # where the difference itself was too large
        scaled = np.where(np.isfinite(scaled), scaled, values / divisor - center / divisor)
    return scaled
