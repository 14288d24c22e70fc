"""`Scaler`: bring features to a common scale, learned on the training set alone or within each query.

Features are read in blocks of rows, so memory-mapped ones need no copy in memory; normal scores read all rows of a few
features at a time.
"""

from collections.abc import Mapping
from copy import copy
from typing import Any, Literal, cast, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._kernels import parallel
from rankwise._parameters import check_parameters
from rankwise._tables import ShownAsFacts
from rankwise.errors import DataError, RankwiseError
from rankwise.queries.checks import Floats, as_features, as_floats, as_names, blocks_of_rows, first_not_finite, is_whole
from rankwise.queries.chunks import How, center_and_scale, transform_values
from rankwise.queries.queries import Queries, as_queries
from rankwise.queries.source import EachChunk, QuerySource, as_source, block_of

Method = Literal["standard", "minmax", "log", "normal"]
Per = Literal["set", "query"]
Array = NDArray[np.float64]

# The most knots of one feature, and the values that are sorted at a time to find them.
MOST_KNOTS, _SORTED = 255, 1 << 25


class Scaler(ShownAsFacts):
    """Scale each feature: z = (t(x) - center) / scale, and z = 0 where the feature does not vary.

    ========== ==================== ========= ==================
    how        t(x)                 center    scale
    ========== ==================== ========= ==================
    standard   x                    mean      standard deviation
    minmax     x                    minimum   maximum - minimum
    log        sign(x) log(1+|x|)   mean      standard deviation
    normal     normal score         0         1
    ========== ==================== ========= ==================

    The normal score of a value is the standard normal quantile of (its rank - 1/2) / n, where tied values have their
    mean rank. It is interpolated between at most 255 values of the feature, and constant beyond them.

    Center and scale are those of the set that the scaler was fitted on (``per="set"``), or those of each query's own
    documents (``per="query"``; with ``minmax`` this is LETOR's rule). The result keeps the type of ``X`` and stores the
    scaler as ``.scaling``.

    Parameters
    ----------
    how : {"standard", "minmax", "log", "normal"}, default="standard"
        The transformation.
    per : {"set", "query"}, default="set"
        What center and scale are computed over; "set" for "normal".

    Attributes
    ----------
    center_ : ndarray of float64, shape (n_features,), or None
        The centers for ``per="set"``; None for ``per="query"`` and for "normal".
    scale_ : ndarray of float64, shape (n_features,), or None
        The scales for ``per="set"``, 0 where the feature does not vary; None for ``per="query"`` and for "normal".
    knot_start_ : ndarray of int64, shape (n_features + 1,), or None
        For "normal", where the knots of every feature begin; None for the others.
    knots_ : ndarray of float64, or None
        For "normal", the knots of all features, one feature after the other, each ascending.
    scores_ : ndarray of float64, or None
        For "normal", the normal scores of the knots.
    n_features_in_ : int
        The number of features in ``fit``.
    feature_names_in_ : tuple of str, or None
        The feature names in ``fit``.

    Notes
    -----
    **Normal scores** are learned from all documents, without their labels, and do not depend on their order. A feature
    of at most 255 distinct values has a knot at each. Of more, a knot is followed by the last value whose score is
    higher by at most d, or by the next value if there is none, with the smallest d of a few that needs at most 255
    knots. The score of any training value is then within d of its own: nothing changes between neighbors, and elsewhere
    both rise from the one knot to the other. Two steps raise the score by more than d, so 254 knots are enough for
    d = 2 r / 254, where r is the range of all scores: below .08 for a million documents.

    A ranker learns on scaled queries, or with the scaler as its map: ``MappedRanker(Scaler("normal"), ranker)``.

    ``fit`` on :class:`~rankwise.Parts` is exact, too, and has the same bits: features are sorted in groups of some 33
    million values, each of which is one pass.

    Examples
    --------
    >>> train = Queries.from_arrays([[1.0, 7.0], [3.0, 7.0]], [0, 1], qid=[1, 1])
    >>> Scaler("minmax").fit(train).transform(train).X
    array([[0., 0.],
           [1., 0.]])
    >>> skewed = Queries.from_arrays([[1.0], [2.0], [2.0], [1000.0]], [0, 0, 1, 2], qid=[1, 1, 1, 1])
    >>> Scaler("normal").fit(skewed).transform(skewed).X.ravel().round(2)
    array([-1.15,  0.  ,  0.  ,  1.15])
    """

    center_: Array | None
    scale_: Array | None
    knot_start_: NDArray[np.int64] | None
    knots_: Array | None
    scores_: Array | None
    n_features_in_: int
    feature_names_in_: tuple[str, ...] | None

    def __init__(self, how: Method = "standard", per: Per = "set") -> None:
        self.how = how
        self.per = per

    def fit(self, queries: Any, y: Any = None) -> "Scaler":
        """Learn center and scale, or normal scores.

        Parameters
        ----------
        queries : Queries, Parts or ndarray
            The training set, not scaled yet; or the features of its documents, for ``per="set"``.
        y : ignored
            For scikit-learn's pipelines.

        Returns
        -------
        self : Scaler
            The fitted scaler.
        """
        self._check_parameters()
        data = as_source(self._as_queries(queries), "Scaler.fit")
        data.refuse_missing("a Scaler")
        _refuse_scaled(data)
        if self.per == "set" and not data.n_documents:
            raise DataError("Scaler.fit needs documents, got none")
        self.center_, self.scale_ = None, None
        self.knot_start_, self.knots_, self.scores_ = None, None, None
        if self.how == "normal":
            self.knot_start_, self.knots_, self.scores_ = _find_knots(data)
        elif self.per == "set":
            rows: QuerySource = data
            if not data.is_grouped and data.n_documents <= parallel.CHUNK:  # sums in the order of the input
                rows = Queries._trusted(queries.X, None, np.array([0, data.n_documents]))
            self.center_, self.scale_ = center_and_scale(rows, self._linear_how)
        self.n_features_in_ = data.n_features
        self.feature_names_in_ = data.feature_names
        return self

    @overload
    def transform(self, queries: Queries) -> Queries: ...

    @overload
    def transform(self, queries: Floats) -> Floats: ...

    def transform(self, queries: Queries | Floats) -> Queries | Floats:
        """Scale queries.

        Parameters
        ----------
        queries : Queries or ndarray
            Queries with the fitted features, in any order if they have names; or the features of documents.

        Returns
        -------
        queries : Queries or ndarray
            The same queries with scaled features, in the fitted order; or scaled features.

        Raises
        ------
        DataError
            If the features differ from the fitted ones, are scaled already, or leave the range of their type.
        """
        if isinstance(queries, np.ndarray):
            scaled: Floats = self.transform(self._as_queries(queries)).X
            return scaled
        queries = self._align(queries)
        if self.knot_start_ is not None and self.knots_ is not None and self.scores_ is not None:
            from rankwise._kernels.interpolate import interpolate_rows

            X = interpolate_rows(queries.X, self.knot_start_, self.knots_, self.scores_)
            return queries._replace(X=X, scaling=copy(self))
        X = np.empty_like(queries.X, subok=False)
        if self.center_ is not None and self.scale_ is not None:
            for rows in blocks_of_rows(*X.shape):
                with np.errstate(over="ignore"):  # found and named below
                    X[rows] = _scale(transform_values(queries.X[rows], self._linear_how), self.center_, self.scale_)
                self._check_result(X, queries.X, rows)
        else:
            for query in map(int, np.flatnonzero(queries.sizes)):
                rows = queries.rows_of(query)
                facts = center_and_scale(block_of(queries, query, query + 1), self._linear_how)
                X[rows] = _scale(transform_values(queries.X[rows], self._linear_how), *facts)
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

    def _check_parameters(self) -> None:
        """Refuse values of ``how`` and ``per`` that are not known."""
        check_parameters(self)
        if (self.how, self.per) == ("normal", "query"):
            raise RankwiseError("per must be 'set' for how='normal', whose scores are learned over all documents")

    _validate_params = _check_parameters  # as classes that :mod:`rankwise.features.codec` restores have it

    def _as_queries(self, given: Any) -> Any:
        """The rows of an array as one query; anything else as it is."""
        if not isinstance(given, np.ndarray):
            return given
        if self.per == "query":
            raise RankwiseError("an array has no queries: pass Queries, or per='set'")
        X = as_features(given)
        return Queries._trusted(X, None, np.array([0, len(X)]))

    @property
    def _linear_how(self) -> How:
        """The transformation that center and scale follow, where it is not "normal"."""
        return cast(How, self.how)

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

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return ["how", "per"]

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
            ``center`` and ``scale`` for ``per="set"``; ``knot_start``, ``knots`` and ``scores`` for "normal".
        """
        self._check_fitted()
        names = None if self.feature_names_in_ is None else list(self.feature_names_in_)
        facts = {**self.get_params(), "n_features": self.n_features_in_, "feature_names": names}
        learned = {name: getattr(self, f"{name}_") for name in LEARNED}
        return facts, {name: array for name, array in learned.items() if array is not None}

    @property
    def digest_(self) -> str:
        """SHA-256 of the fitted state: scalers with the same digest scale alike."""
        from rankwise._store import digest_state

        return digest_state(*self.to_state())

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
        scaler._check_parameters()
        count: Any = facts.get("n_features")
        names = facts.get("feature_names")
        if not is_whole(count, 0) or not (names is None or (isinstance(names, list) and len(names) == count)):
            raise DataError("the state of a scaler lacks the number or the names of its features")
        needed = () if scaler.per == "query" else _KNOTS if scaler.how == "normal" else _LINEAR
        for name, kind in LEARNED.items():
            array = arrays.get(name)
            if (array is not None) != (name in needed):
                raise DataError("the state of a scaler has centers, scales or knots that do not fit its features")
            if array is not None and not (isinstance(array, np.ndarray) and array.dtype == kind):
                raise DataError("the state of a scaler has centers, scales or knots of another type")
            if array is not None and not np.isfinite(array).all():
                raise DataError("the state of a scaler has centers, scales or knots that are not finite")
            setattr(scaler, f"{name}_", array)
        if scaler.center_ is not None and scaler.scale_ is not None:
            if scaler.center_.shape != (count,) or scaler.scale_.shape != (count,):
                raise DataError("the state of a scaler has centers or scales that do not fit its features")
            if (scaler.scale_ < 0).any():
                raise DataError("the state of a scaler has a scale below 0")
        elif needed and not are_knots(arrays["knot_start"], arrays["knots"], arrays["scores"], count):
            raise DataError("the state of a scaler has knots that do not rise, or do not fit its features")
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


# What a scaler learns, with the type of each array.
LEARNED = {
    "center": np.dtype(np.float64),
    "scale": np.dtype(np.float64),
    "knot_start": np.dtype(np.int64),
    "knots": np.dtype(np.float64),
    "scores": np.dtype(np.float64),
}
_LINEAR, _KNOTS = ("center", "scale"), ("knot_start", "knots", "scores")


# ------------------------------------------------------------------------------------------- normal scores


def _columns(block: Queries, first: int, last: int) -> Any:
    """Some features of a chunk, one after the other."""
    return np.ascontiguousarray(block.X[:, first:last].T)


def _find_knots(data: QuerySource) -> tuple[NDArray[np.int64], Array, Array]:
    """(start, knots, scores) of all features: exact, whatever the order of the documents."""
    found: list[tuple[Array, Array]] = []
    step = max(1, _SORTED // data.n_documents)
    for first in range(0, data.n_features, step):
        last = min(first + step, data.n_features)
        pieces = list(data.map(EachChunk(_columns, (first, last))))
        found += [knots_of(np.concatenate([piece[place] for piece in pieces])) for place in range(last - first)]
    start = np.cumsum([0, *(len(knots) for knots, _ in found)], dtype=np.int64)
    knots, scores = (np.concatenate([np.zeros(0), *each]) for each in zip(*found, strict=True)) if found else _NOTHING
    return start, knots, scores


_NOTHING = (np.zeros(0), np.zeros(0))


def knots_of(values: Floats, most: int = MOST_KNOTS) -> tuple[Array, Array]:
    """The knots of one feature, and their normal scores.

    Parameters
    ----------
    values : ndarray of float32 or float64
        The feature of all documents, at least one.
    most : int, default=255
        The largest number of knots.

    Returns
    -------
    knots, scores : ndarray of float64
        Both ascending.
    """
    from scipy.special import ndtri

    distinct, counts = np.unique(values + values.dtype.type(0), return_counts=True)  # -0 and 0 are one value: 0
    middle = (np.cumsum(counts) - 0.5 * counts) / len(values)
    chosen = np.arange(len(middle)) if len(middle) <= most else _spaced(middle, most)
    return distinct[chosen].astype(np.float64), ndtri(middle[chosen])


def _spaced(middle: Array, most: int) -> NDArray[np.int64]:
    """Some of many ascending probabilities: neighbors, or with normal scores that differ by at most a common step."""
    from scipy.special import ndtr, ndtri

    last, narrowest = len(middle) - 1, float(ndtri(middle[-1]) - ndtri(middle[0])) / (most - 1)
    for factor in (1.0, 1.125, 1.25, 1.5, 2.0):  # the last one is always enough
        chosen = [0]
        while chosen[-1] < last and len(chosen) < most:
            reach = ndtr(ndtri(middle[chosen[-1]]) + factor * narrowest)
            chosen.append(max(chosen[-1] + 1, int(np.searchsorted(middle, reach, side="right")) - 1))
        if chosen[-1] == last:
            break
    return np.array(chosen, dtype=np.int64)


def are_knots(start: NDArray[np.int64], knots: Array, scores: Array, count: int) -> bool:
    """Whether each of so many features has knots that rise, with scores that do not fall."""
    if start.shape != (count + 1,) or knots.ndim != 1 or scores.shape != knots.shape:
        return False
    own = np.diff(start)
    if start[0] != 0 or start[-1] != len(knots) or (own < 1).any() or (own > MOST_KNOTS).any():
        return False
    inside = np.ones(max(len(knots) - 1, 0), dtype=bool)
    inside[start[1:-1] - 1] = False  # from the last knot of a feature to the first one of the next
    return bool((np.diff(knots)[inside] > 0).all() and (np.diff(scores)[inside] >= 0).all())


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
