"""`RowMap`: a transformer of scikit-learn, applied to documents block by block, with the same bits for the same row.

BLAS gives a row other bits alone, in a slice and in the whole. Here a transformer sees blocks of one fixed number of
rows, the last one filled up with copies of its first row: what it makes of a row depends on the row alone.
"""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from rankwise._errors import DataError, RankwiseError
from rankwise._kernels.drive import one_blas_thread
from rankwise.data import checks
from rankwise.data.queries import Queries
from rankwise.features.stored import STORABLE, storable

Matrix = NDArray[np.float64]

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
    def fitted(cls, transformer: Any, queries: Queries) -> Self:
        """Fit a clone of a transformer on the documents of queries, in the order of the queries.

        Parameters
        ----------
        transformer : object
            A transformer of scikit-learn, or the name of a class of :data:`rankwise.features.stored.STORABLE`.
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
                raise _refused(made, "fitted on", error) from error
        return cls.of(made, X[:_ROWS])

    @classmethod
    def of(cls, transformer: Any, sample: NDArray[Any]) -> Self:
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
    def row_radius(self) -> float | None:
        """A norm that no row exceeds, whatever the document; None if none is known."""
        return getattr(self.transformer, "row_radius", None)

    @property
    def fixed(self) -> bool:
        """Whether the map would be the same for any other training documents."""
        name = type(self.transformer).__name__
        return name in _FIXED or (name == "RBFSampler" and not isinstance(self.transformer.gamma, str))

    # ------------------------------------------------------------------------------------------- rows

    def blocks(self, X: NDArray[Any]) -> Iterator[tuple[slice, Matrix]]:
        """Mapped rows in blocks of about 8 MB, each with the rows that it belongs to."""
        step = _ROWS * max(1, checks.BLOCK_VALUES // (_ROWS * max(self.width, X.shape[1], 1)))
        for first in range(0, len(X), step):
            rows = slice(first, min(first + step, len(X)))
            made = np.empty((rows.stop - first, self.width))
            self._into(X[rows], made)
            yield rows, made

    @one_blas_thread()
    def _into(self, X: NDArray[Any], out: Matrix) -> None:
        for first in range(0, len(X), _ROWS):
            out[first : first + _ROWS] = self._block(X[first : first + _ROWS])

    def _block(self, rows: NDArray[Any]) -> Matrix:
        """At most a block of rows, mapped."""
        block = np.empty((_ROWS, rows.shape[1]))
        block[: len(rows)] = rows
        block[len(rows) :] = block[0] if len(rows) else 0.0
        with np.errstate(all="ignore"):
            try:
                made = self.transformer.transform(block)
            except (ValueError, TypeError, ArithmeticError) as error:
                raise _refused(self.transformer, "applied to", error) from error
        if hasattr(made, "toarray"):
            made = made.toarray()  # one-hot encoders make sparse matrices
        found = np.asarray(made, dtype=np.float64)
        if found.ndim != 2 or len(found) != _ROWS or not found.shape[1] or self.width not in (0, found.shape[1]):
            raise RankwiseError(
                f"{type(self.transformer).__name__} makes one row of features per document: found shape {found.shape} "
                f"for {_ROWS} documents"
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
            raise RankwiseError(f"a transformer given by name is one of {known}: found {given!r:.60}")
        return storable(given)()
    if isinstance(given, type) or not all(callable(getattr(given, name, None)) for name in ("fit", "transform")):
        raise RankwiseError(f"transformer has fit and transform, or is the name of one: found {given!r:.60}")
    return given


def _matrix(shape: tuple[int, int], memory_limit: int | None) -> Matrix:
    """An empty matrix, in memory or in a temporary file without a name."""
    size, most = 8 * shape[0] * shape[1], memory_limit
    if most is None:
        available = checks.available_memory()
        most = size if available is None else available // 2
    if size <= most or not size:
        return np.empty(shape)
    with tempfile.TemporaryFile(prefix="rankwise-") as file:
        return np.memmap(file, np.float64, "w+", shape=shape)


def _refused(transformer: Any, what: str, error: Exception) -> RankwiseError:
    """The error of a transformer as one sentence."""
    if isinstance(error, RankwiseError):
        return error
    told = (str(error).splitlines() or [type(error).__name__])[0]
    return DataError(f"{type(transformer).__name__} cannot be {what} these documents: {told:.150}")
