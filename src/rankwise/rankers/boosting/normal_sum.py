"""A weighted sum of normal scores of features."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels import parallel
from rankwise._kernels.interpolate import interpolate_rows
from rankwise.errors import RankwiseError
from rankwise.queries.checks import Floats
from rankwise.queries.scaling import Scaler, are_knots
from rankwise.rankers._base import linear_scores

Vector = NDArray[np.float64]

BLOCK = 1 << 12  # rows whose normal scores are in memory at a time
TABLE = {"start": np.int64, "knots": np.float64, "heights": np.float64, "weight": np.float64}


@dataclass(frozen=True, eq=False)
class NormalSum:
    """s(x) = sum_j weight_j z_j(x_j), where z_j(x_j) is the normal score of feature j by ``Scaler("normal")``.

    Attributes
    ----------
    start : ndarray of int64, shape (n_features + 1,)
        Feature j has the knots start[j] .. start[j + 1]-1.
    knots : ndarray of float64
        The knots of all features, ascending within each.
    heights : ndarray of float64
        The normal scores of the knots.
    weight : ndarray of float64, shape (n_features,)
        The weights.
    """

    start: NDArray[np.int64]
    knots: Vector
    heights: Vector
    weight: Vector

    def __post_init__(self) -> None:
        for name, dtype in TABLE.items():
            own = np.array(getattr(self, name))  # a copy that nobody can change
            if own.dtype != dtype or own.ndim != 1:
                raise RankwiseError(f"{name} of the normal scores has type {own.dtype} and shape {own.shape}")
            if not np.isfinite(own).all():
                raise RankwiseError(f"{name} of the normal scores holds a number that is not finite")
            own.setflags(write=False)
            object.__setattr__(self, name, own)
        if not are_knots(self.start, self.knots, self.heights, len(self.weight)):
            raise RankwiseError("the knots of the normal scores do not rise, or do not fit the features")
        with np.errstate(over="ignore"):
            if not np.isfinite(self.largest):
                raise RankwiseError("the weighted normal scores add up to more than float64 can hold")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, field.name) for field in fields(self))

    @classmethod
    def of(cls, scaler: Scaler, weight: Vector) -> Self:
        """The sum over the features that a scaler makes.

        Parameters
        ----------
        scaler : Scaler
            A fitted ``Scaler("normal")``.
        weight : ndarray of float64, shape (n_features,)
            The weights on normal scores.

        Returns
        -------
        NormalSum
            The sum, on raw features.
        """
        start, knots, heights = scaler.knot_start_, scaler.knots_, scaler.scores_
        if start is None or knots is None or heights is None:
            raise RankwiseError(f"the scaler must be a fitted Scaler('normal'), got {scaler!r}")
        return cls(start, knots, heights, weight)

    @classmethod
    def total(cls, sums: "Sequence[NormalSum]", factors: Sequence[float]) -> "NormalSum":
        """The weighted sum of several on the same normal scores."""
        first = sums[0]
        for other in sums[1:]:
            if not all(
                np.array_equal(getattr(first, name), getattr(other, name)) for name in TABLE if name != "weight"
            ):
                raise RankwiseError(
                    "linear parts on normal scores can be added only if these are of the same Scaler('normal'), got "
                    "different knots"
                )
        weight = sum(factor * one.weight for factor, one in zip(factors, sums, strict=True))
        return cls(first.start, first.knots, first.heights, np.asarray(weight, np.float64))

    @property
    def largest(self) -> float:
        """A number that no score exceeds in size."""
        most = np.maximum.reduceat(np.abs(self.heights), self.start[:-1]) if len(self.weight) else np.zeros(0)
        return float((np.abs(self.weight) * most).sum())

    def normal_scores(self, X: Floats) -> Vector:
        """The normal scores of a block of rows, in float64; NaN stays NaN."""
        values = np.ascontiguousarray(X, dtype=np.float64)
        z = interpolate_rows(values, self.start, self.knots, self.heights, n_jobs=1)
        if np.isnan(values.min(initial=0.0)):
            z[np.isnan(values)] = np.nan
        return z

    def scores(self, X: Floats, n_jobs: int | None = None) -> Vector:
        """One score per row, which depends on the row alone.

        Parameters
        ----------
        X : ndarray of float32 or float64, shape (n_rows, n_features)
            Raw features. A row with NaN has the score NaN.
        n_jobs : int, default=None
            Number of threads; None uses all cores.

        Returns
        -------
        scores : ndarray of float64, shape (n_rows,)
            The scores.
        """
        found = np.empty(len(X))

        def task(first: int, last: int) -> None:
            found[first:last] = linear_scores(self.normal_scores(X[first:last]), self.weight, 1)

        parallel.map_chunks(task, [(first, min(first + BLOCK, len(X))) for first in range(0, len(X), BLOCK)], n_jobs)
        return found
