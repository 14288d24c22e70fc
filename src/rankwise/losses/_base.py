"""A loss is one small class: its equation, its facts, and a kernel for the scores of one query.

Everything here is minimised. A loss is a function of the scores s and labels of ONE query; adding a constant to all
scores changes nothing, so its gradient sums to 0. The facts are what solvers and guarantees read: they branch on
``convex`` and ``smooth``, take constants from ``lipschitz_l1``, ``smoothness`` and ``range``, and never name a class.
The common tests search for scores that break any of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._errors import RankwiseError
from rankwise._registry import discover
from rankwise.data import checks
from rankwise.measures._base import Measure

Vector = NDArray[np.float64]
Rows = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, repr=False)
class Loss:
    """What all losses share.

    Notes
    -----
    A formula is called as ``formula(score, label, value, grad, table, params)`` for one query of at least one
    document: ``label`` and ``value`` are what :meth:`prepare` made of the labels (by default the labels, and what
    :meth:`row_values` made of them), ``table`` holds the numbers of :meth:`table`. It adds the (sub)gradient to
    ``grad``, which comes in as zeros, and returns the loss. Arrays are contiguous, and only ``grad`` may be written to.
    """

    name: ClassVar[str]
    convex: ClassVar[bool]
    smooth: ClassVar[bool] = False
    nonnegative: ClassVar[bool] = True
    kernel: ClassVar[Any]

    # ------------------------------------------------------------------------------------------- facts

    def lipschitz_l1(self, m: int) -> float:
        """G1: no (sub)gradient of a list of at most ``m`` documents has a larger l1 norm."""
        raise RankwiseError(f"{self.name} does not say how steep it is")

    def smoothness(self, m: int) -> float:
        """H1: the gradient changes by at most H1 times the largest change of a score, in the l1 norm; inf if none."""
        return np.inf

    def range(self, b: float, m: int, labels: tuple[float, float] = (0.0, 4.0)) -> tuple[float, float]:
        """Smallest and largest value on lists of at most ``m`` documents with scores in [-b, b] and these labels."""
        raise RankwiseError(f"{self.name} does not say how large it can get")

    @property
    def upper_bounds(self) -> Measure | None:
        """The measure whose loss 1 - measure, under pessimistic ties, is never above this loss, if there is one."""
        return None

    @property
    def squared_pairs(self) -> bool | None:
        """True for a mean, False for a sum of squared pair hinges, whose Hessian products solvers have; else None."""
        return None

    @property
    def order_free(self) -> bool:
        """Whether no order of the documents changes the loss."""
        return True

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """The variants that the common tests run on."""
        return (cls(),)

    # ------------------------------------------------------------------------------------------- what a loss file gives

    def row_values(self, labels: Vector) -> Vector:
        """What the formula needs of the labels besides themselves, such as gains."""
        return labels

    def prepare(self, labels: Vector, start: Rows, rows: Rows | None) -> tuple[Vector, Vector]:
        """(label, value) as the formula takes them, one a row, made once for any number of score vectors.

        A loss that can work out more from the labels of a list than from each alone (classes, weights) does it here.
        """
        return labels, self.row_values(labels)

    def table(self, longest: int) -> Vector:
        """Numbers by position, such as discounts, for lists of up to ``longest`` documents."""
        return np.zeros(0)

    def params(self) -> tuple[float, ...]:
        """The loss's parameters as numbers."""
        return ()

    # ------------------------------------------------------------------------------------------- what users see

    def __call__(self, scores: ArrayLike, labels: ArrayLike) -> tuple[float, Vector]:
        """(value, gradient with respect to the scores) on one list; both 0 where nothing can be ranked wrongly."""
        from rankwise.losses.compute import PreparedLists, loss_lists

        y = checks.as_one_list(labels, "labels")
        y = checks.as_labels(y, len(y))
        s = checks.as_vector(checks.as_one_list(scores, "scores"), len(y), "scores")
        if not np.isfinite(s).all():
            place = int(np.argmin(np.isfinite(s)))
            raise RankwiseError(f"scores is {s[place]} at row {place:,}: a loss needs finite scores")
        values, gradient = loss_lists(PreparedLists.of(self, y, np.array([0, len(y)])), s, n_jobs=1)
        return float(values[0]), gradient

    def __repr__(self) -> str:
        changed = (
            f"{field.name}={getattr(self, field.name)!r}"
            for field in fields(self)
            if getattr(self, field.name) != field.default
        )
        return f"{type(self).__name__}({', '.join(changed)})"


@dataclass(frozen=True, kw_only=True, repr=False)
class SmoothedMeasure(Loss):
    """A loss 1 - A, where A smooths a measure; A itself, the number that papers print, is :meth:`measure_value`."""

    convex = False

    def measure_value(self, scores: ArrayLike, labels: ArrayLike) -> float:
        """A; 1 where nothing can be ranked wrongly."""
        return 1.0 - self(scores, labels)[0]


def registered() -> dict[str, type[Loss]]:
    """Every loss by name: those of this package and those that installed packages declare."""
    return cast("dict[str, type[Loss]]", discover("rankwise.losses", Loss, "rankwise.losses"))
