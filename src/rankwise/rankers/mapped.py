"""`MappedRanker`: any ranker of the package on features that a transformer of scikit-learn makes.

BLAS gives a row other bits alone, in a slice and in the whole. :class:`RowMap` therefore shows the transformer blocks
of one fixed number of rows, the last one filled up with copies of its first row: what it makes of a row depends on the
row alone.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import clone

from rankwise._arrays import Array, Matrix, Vector
from rankwise._kernels.memory import available_memory
from rankwise._kernels.parallel import one_blas_thread
from rankwise._parameters import NonNegativeInt
from rankwise._store import Store
from rankwise.errors import DataError, RankwiseError
from rankwise.features.codec import STORABLE, storable
from rankwise.measures._base import Measure
from rankwise.queries import checks
from rankwise.queries.queries import Queries
from rankwise.rankers._base import AnyMeasure, Ranker, registered, trainable
from rankwise.rankers._inputs import align

if TYPE_CHECKING:
    from rankwise.rankers.certificate.objective import TrainingObjective


@dataclass(eq=False, repr=False, kw_only=True)
class MappedRanker(Ranker):
    r"""s(x) = r(z(x)): a transformer maps the features of every document, and a ranker scores the mapped features.

    With random Fourier features, ``Nystroem`` or :class:`~rankwise.features.KernelPCAMap` as the transformer, a linear
    ranker becomes one with a kernel; splines and bins make it an additive model; ``PolynomialFeatures`` adds products;
    ``Scaler("normal")`` gives it normal scores.

    Parameters
    ----------
    transformer : str or object, default="FourierFeatures"
        A transformer that works row by row (a ``Pipeline`` of them, too), or the name of one that this package can
        save. A clone is fitted on the training documents, without their labels.
    ranker : str or Ranker, default="RidgeRanker"
        The ranker on the mapped features, or its name. A clone is fitted.
    measure : str or Measure, default=None
        The measure; None takes that of the ranker, and any other is given to the ranker.
    memory_limit : int, default=None
        Bytes above which the mapped features of the training queries are kept in a temporary file that is mapped into
        memory, in the folder for such files; None is half of the memory that is available. It changes no result.
    n_jobs : int, default=None
        Number of threads; None uses all cores. The result does not depend on it.
    verbose : bool, default=False
        Accepted for uniformity; the ranker has its own.
    missing : {"error", "zero", "min"}, default="error"
        What to do with NaN in arrays, before documents are mapped.

    Attributes
    ----------
    transformer_ : object
        The fitted transformer.
    ranker_ : Ranker
        The ranker, fitted on mapped features.

    Notes
    -----
    ``fit`` holds X, the mapped X (in memory, or in a file above ``memory_limit``), and a few blocks of 8 MB; what the
    transformer needs for its own ``fit`` comes on top, and X of float32 is copied to float64 for it. ``predict`` maps
    block by block. A row is mapped to the same bits alone and among others.

    A certificate is about the mapped space: its radius is that of the rows z(x). Uniform bounds are given for maps that
    do not depend on the training queries, such as random Fourier features, whose rows have norm 1. A map that was
    fitted on the same queries leaves bounds on a hold-out and on the training queries alone.

    Examples
    --------
    >>> from rankwise import RidgeRanker, make_lists
    >>> from rankwise.features import FourierFeatures
    >>> queries = make_lists(60, documents=8, features=4, random_state=1)
    >>> model = MappedRanker(FourierFeatures(gamma=0.1, n_features=32), RidgeRanker(alpha=1.0)).fit(queries)
    >>> model.mapped(queries).n_features
    32
    """

    name = "MappedRanker"

    transformer: Any = field(default="FourierFeatures", kw_only=False)
    ranker: Any = field(default="RidgeRanker", kw_only=False)
    measure: AnyMeasure | None = field(default=None, kw_only=True)
    memory_limit: NonNegativeInt | None = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        as_transformer(self.transformer)
        self._make_ranker()._check_parameters()

    transformer_ = property(lambda self: self.map_.transformer)

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """Instances that the common tests run on."""
        return (cls(), cls("StandardScaler", "RankBoost"), cls("KernelPCAMap", "SLAMPerceptron", measure="AP"))

    @property
    def takes_validation(self) -> bool:  # type: ignore[override]
        """Whether ``fit`` uses a validation set: if the ranker does."""
        return self._make_ranker().takes_validation

    @property
    def takes_document_weights(self) -> bool:  # type: ignore[override]
        """Whether ``fit`` uses document weights: if the ranker does."""
        return self._make_ranker().takes_document_weights

    @property
    def _reason_no_document_weights(self) -> str:  # type: ignore[override]
        return self._make_ranker()._reason_no_document_weights

    @property
    def learns_from_validation(self) -> bool:  # type: ignore[override]
        """Whether the final fit learns from the validation set: if the ranker does."""
        return self._make_ranker().learns_from_validation

    def _measure(self) -> Measure:
        return trainable(self._make_ranker().measure if self.measure is None else self.measure)

    @property
    def row_radius(self) -> float | None:
        """A norm that no mapped row exceeds, whatever the document; None if none is known."""
        return getattr(self.transformer_, "row_radius", None) if hasattr(self, "map_") else None

    # ------------------------------------------------------------------------------------------- learning

    def _make_ranker(self) -> Ranker:
        """The ranker as it was given, made if it was given by name."""
        given = self.ranker
        if isinstance(given, str):
            kind = registered().get(given)
            if kind is None:
                raise self._wrong("ranker", f"a ranker or one of {', '.join(registered())}")
            given = kind()
        if not isinstance(given, Ranker):
            raise self._wrong("ranker", "a ranker of this package or its name")
        if given.scores_by_query:
            raise self._wrong("ranker", "a ranker that scores documents one by one")
        return given

    def _fit(self, queries: Queries, validation: Queries | None) -> None:

        ranker = clone(self._make_ranker())
        if self.measure is not None:
            ranker.set_params(measure=self.measure)
        if ranker.n_jobs is None:
            ranker.set_params(n_jobs=self.n_jobs)
        if validation is not None and not ranker.takes_validation:
            raise DataError(f"{ranker.name} does no model selection: omit the validation set")
        self.map_ = RowMap.fit(self.transformer, queries)
        held = None if validation is None else self.mapped(validation)
        self.ranker_ = ranker.fit(self.mapped(queries), validation=held)

    def mapped(self, queries: Queries) -> Queries:
        """The queries with mapped features, which ``ranker_`` was fitted on and scores.

        Parameters
        ----------
        queries : Queries
            Queries with the features that ``fit`` saw.

        Returns
        -------
        Queries
            The same queries; above ``memory_limit`` their features are in a temporary file.
        """
        if not hasattr(self, "map_"):
            self._check_fitted()
        return self.map_.queries(align(self, queries), self.memory_limit)

    # ------------------------------------------------------------------------------------------- ranking

    def _scores(self, X: checks.Floats) -> Vector:
        scores = np.empty(len(X))
        for rows, block in self.map_.blocks(X):
            scores[rows] = self.ranker_._scores(block)
        return scores

    # ------------------------------------------------------------------------------------------- what is guaranteed

    def _training_objective(self) -> "TrainingObjective | None":
        inner: Ranker = self.ranker_
        return inner._training_objective()

    def _linear_space(self, queries: Queries) -> tuple[Vector | None, Queries, str]:
        coef, mapped, note = self.ranker_._linear_space(self.mapped(queries))
        if coef is not None and not self.map_.fixed:
            about = type(self.transformer_).__name__
            return None, queries, f"no uniform bound: {about} was fitted on the training queries themselves"
        return coef, mapped, note if coef is None else "bounds for linear weights are about the mapped features"

    # ------------------------------------------------------------------------------------------- saving

    def _state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        from rankwise.features.codec import Packed
        from rankwise.rankers._record import nested_state

        packed = Packed()
        made = packed.pack(self.transformer_, f"{self.name} with this transformer")
        facts, arrays = nested_state([self.ranker_])
        arrays |= {f"map.{name}": array for name, array in packed.arrays.items()}
        return {"transformer": made, "width": self.map_.width, "ranker": facts}, arrays

    def _frozen_state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        from rankwise.features.codec import NotStorableError, Packed

        facts, arrays = self.ranker_._frozen_state()
        packed = Packed()
        try:
            made = packed.pack(self.transformer_, self.name)
        except NotStorableError:  # it learns, and cannot be saved
            import joblib

            made = joblib.hash(self.transformer_)
        coef = {"coef": self.ranker_.coef_} if hasattr(self.ranker_, "coef_") else {}
        return {"transformer": made, "ranker": facts}, {**arrays, **coef, **packed.arrays}

    @one_blas_thread()
    def _restore(self, facts: Mapping[str, Any], store: Store) -> None:
        from rankwise.features.codec import unpack
        from rankwise.rankers._record import read_nested

        self._measure()
        inside = store.part("map.", {})
        arrays = {name: inside.array(name) for name in inside.places}
        transformer = unpack(facts["transformer"], arrays)
        if not hasattr(transformer, "transform") or getattr(transformer, "n_features_in_", None) != self.n_features_in_:
            raise RankwiseError("its transformer is not fitted on its features")
        self.map_ = RowMap.of(transformer, np.zeros((1, self.n_features_in_)))
        if facts["width"] != self.map_.width:
            raise RankwiseError(f"its transformer makes {self.map_.width:,} features, and not {facts['width']!r:.40}")
        (self.ranker_,) = read_nested(store, facts["ranker"], self.map_.width)
        if self.ranker_.scores_by_query:
            raise RankwiseError("its ranker scores within queries")


# ---------------------------------------------------------------------------------------------------------- row by row


# Rows that a transformer sees at a time. The bits depend on it.
_ROWS = 128
# Transformers whose fit uses the number of features alone.
_FIXED = ("FourierFeatures", "PolynomialFeatures", "PolynomialCountSketch")


@dataclass(frozen=True)
class RowMap:
    """A fitted transformer that works row by row.

    Attributes
    ----------
    transformer : object
        The transformer.
    width : int
        The number of features that it makes.
    """

    transformer: Any
    width: int

    @classmethod
    @one_blas_thread()
    def fit(cls, transformer: Any, queries: Queries) -> Self:
        """Fit a clone of a transformer on the documents of queries, in the order of the queries.

        Parameters
        ----------
        transformer : object
            A transformer of scikit-learn, or the name of a class of :data:`rankwise.features.codec.STORABLE`.
        queries : Queries
            The training queries; X of float32 is copied to float64, and so are rows that are not grouped by query.

        Returns
        -------
        RowMap
            The map.

        Raises
        ------
        RankwiseError
            If it is no transformer, if it fails, or if it does not work row by row.
        """
        X = queries.X if queries.is_grouped else queries.X[queries.rows]
        made = clone(as_transformer(transformer))
        with np.errstate(all="ignore"):
            try:
                made.fit(np.asarray(X, dtype=np.float64))
            except (ValueError, TypeError, ArithmeticError, np.linalg.LinAlgError) as error:
                raise _error_of(made, "fitted on", error) from error
        return cls.of(made, X[:_ROWS])

    @classmethod
    def of(cls, transformer: Any, sample: Array) -> Self:
        """The map of a fitted transformer, tried on some rows, at most a block of them."""
        map_ = cls(transformer, 0)
        first = map_._block(sample)
        last = map_._block(sample[::-1])[::-1]
        if not np.allclose(first, last, rtol=1e-6, atol=1e-9 * float(np.abs(first).max(initial=0.0))):
            raise RankwiseError(
                f"{type(transformer).__name__} does not work row by row: what it makes of a document depends on the "
                "documents beside it"
            )
        return cls(transformer, first.shape[1])

    @property
    def fixed(self) -> bool:
        """Whether the map would be the same for any other training documents."""
        name = type(self.transformer).__name__
        return name in _FIXED or (name == "RBFSampler" and not isinstance(self.transformer.gamma, str))

    # ------------------------------------------------------------------------------------------- rows

    def blocks(self, X: Array) -> Iterator[tuple[slice, Matrix]]:
        """Mapped rows in blocks of about 8 MB, each with the rows that it belongs to."""
        step = _ROWS * max(1, checks.BLOCK_VALUES // (_ROWS * max(self.width, X.shape[1], 1)))
        for first in range(0, len(X), step):
            rows = slice(first, min(first + step, len(X)))
            made = np.empty((rows.stop - first, self.width))
            self._into(X[rows], made)
            yield rows, made

    @one_blas_thread()
    def _into(self, X: Array, out: Matrix) -> None:
        for first in range(0, len(X), _ROWS):
            out[first : first + _ROWS] = self._block(X[first : first + _ROWS])

    def _block(self, rows: Array) -> Matrix:
        """At most a block of rows, mapped."""
        block = np.empty((_ROWS, rows.shape[1]))
        block[: len(rows)] = rows
        block[len(rows) :] = block[0] if len(rows) else 0.0
        with np.errstate(all="ignore"):
            try:
                made = self.transformer.transform(block)
            except (ValueError, TypeError, ArithmeticError) as error:
                raise _error_of(self.transformer, "applied to", error) from error
        if hasattr(made, "toarray"):
            made = made.toarray()  # one-hot encoders make sparse matrices
        found = np.asarray(made, dtype=np.float64)
        if found.ndim != 2 or len(found) != _ROWS or not found.shape[1] or self.width not in (0, found.shape[1]):
            raise RankwiseError(
                f"{type(self.transformer).__name__} must make one row of features per document, got shape "
                f"{found.shape} for {_ROWS} documents"
            )
        if not np.isfinite(found).all():
            feature = int(np.argmin(np.isfinite(found).all(axis=0)))
            raise DataError(
                f"{type(self.transformer).__name__} makes a feature that is not finite (number {feature}): scale the "
                "features before it"
            )
        return found[: len(rows)]

    def queries(self, queries: Queries, memory_limit: int | None = None) -> Queries:
        """The same queries with mapped features.

        Parameters
        ----------
        queries : Queries
            The queries.
        memory_limit : int, default=None
            Bytes above which the mapped features are kept in a temporary file that is mapped into memory; None is
            half of the memory that is available.

        Returns
        -------
        Queries
            The queries; the temporary file vanishes with them.
        """
        shape = queries.n_documents, self.width
        made = _matrix(shape, memory_limit)
        for rows, block in self.blocks(queries.X):
            made[rows] = block
        return queries._replace(X=made, feature_names=None, scaling=None, built_by=None)


def as_transformer(given: Any) -> Any:
    """A transformer, or the one of the given name with its default parameters."""
    if isinstance(given, str):
        if given not in STORABLE or given == "Pipeline":
            known = ", ".join(name for name in STORABLE if name != "Pipeline")
            raise RankwiseError(f"the name of a transformer must be one of {known}, got {given!r:.60}")
        return storable(given)()
    if isinstance(given, type) or not all(callable(getattr(given, name, None)) for name in ("fit", "transform")):
        raise RankwiseError(f"transformer must have fit and transform, or be the name of one, got {given!r:.60}")
    return given


def _matrix(shape: tuple[int, int], memory_limit: int | None) -> Matrix:
    """An empty matrix, in memory or in a temporary file without a name."""
    size, most = 8 * shape[0] * shape[1], memory_limit
    if most is None:
        available = available_memory()
        most = size if available is None else available // 2
    if size <= most or not size:
        return np.empty(shape)
    with tempfile.TemporaryFile(prefix="rankwise-") as file:
        return np.memmap(file, np.float64, "w+", shape=shape)


def _error_of(transformer: Any, what: str, error: Exception) -> RankwiseError:
    """The error of a transformer as one sentence."""
    if isinstance(error, RankwiseError):
        return error
    told = (str(error).splitlines() or [type(error).__name__])[0]
    return DataError(f"{type(transformer).__name__} cannot be {what} these documents: {told:.150}")
