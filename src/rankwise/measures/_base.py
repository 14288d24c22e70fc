"""A measure is a value: hashable, comparable, printed in ir-measures' spelling, and called on lists.

What a measure file holds: the class with its parameters, how labels become the numbers that are ranked
(:meth:`Measure.row_values`), and a formula compiled for one ranked list. The four ways to break ties come for free:
under "expected" the formula sees blocks of equal scores, under the other three it sees every block already put in
order and cut into blocks of one. The formula is therefore written once, for blocks.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._errors import MeasureError
from rankwise.data.checks import is_number

Ties = Literal["expected", "pessimistic", "optimistic", "stable"]
Empty = Literal["skip", "zero", "one"]
Vector = NDArray[np.float64]

# How the compiled loop is told.
TIES: dict[str, int] = {"expected": 0, "pessimistic": 1, "optimistic": 2, "stable": 3}


@dataclass(frozen=True, kw_only=True, repr=False)
class Measure:
    """What all measures share.

    Parameters
    ----------
    cutoff : only the first ``cutoff`` positions count; ``measure @ 10`` sets it, None means the whole list

    Notes
    -----
    A formula is called as ``formula(value, end, retrieved, best, table, params)`` for one query: ``value`` holds the
    row values by decreasing score (sorted ascending inside a tie block), ``end[t]`` the end of the block that begins
    at t, ``retrieved`` the number of documents that take a position, ``best`` all row values (if ``needs_ideal``:
    the largest ones up to the cut-off, decreasing), ``table`` what :meth:`table` returned and ``params`` the numbers
    of :meth:`all_params`. It returns NaN for a list on which the measure is 0/0.
    """

    cutoff: int | None = None

    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    takes_cutoff: ClassVar[bool] = True
    needs_cutoff: ClassVar[bool] = False
    needs_ideal: ClassVar[bool] = False
    kernel: ClassVar[Any]

    def __post_init__(self) -> None:
        if self.cutoff is None:
            return
        if not self.takes_cutoff:
            raise MeasureError(f"{self.name} looks at the whole list and takes no cut-off: found @{self.cutoff}")
        if isinstance(self.cutoff, bool) or not isinstance(self.cutoff, (int, np.integer)) or self.cutoff < 1:
            raise MeasureError(f"a cut-off is a whole number from 1 on: found {self.cutoff!r}")
        object.__setattr__(self, "cutoff", int(self.cutoff))

    def __matmul__(self, cutoff: int) -> Self:
        return replace(self, cutoff=cutoff)

    # ------------------------------------------------------------------------------------- what a measure file gives

    def row_values(self, labels: Vector) -> Vector:
        """The numbers that the formula ranks: gains, 0/1 relevance, or the labels themselves."""
        return labels

    def table(self, longest: int) -> Vector:
        """Numbers by position, such as discounts, for lists of up to ``longest`` documents."""
        return np.zeros(0)

    def params(self) -> tuple[float, ...]:
        """What the formula needs besides the cut-off, which is always its first parameter."""
        return ()

    def spelling(self) -> dict[str, Any]:
        """Parameters as they are printed; only those that differ from the default of the printed form."""
        defaults = {field.name: field.default for field in fields(self)}
        return {
            name: value
            for name, value in ((field.name, getattr(self, field.name)) for field in fields(self))
            if name != "cutoff" and value != defaults[name]
        }

    @classmethod
    def from_spelling(cls, cutoff: int | None, parameters: Mapping[str, Any]) -> Self:
        """The measure that these printed parameters mean."""
        known = [field.name for field in fields(cls) if field.name != "cutoff"]
        unknown = next((name for name in parameters if name not in known), None)
        if unknown is not None:
            offered = ", ".join(known) if known else "none"
            raise MeasureError(f"{cls.name} has no parameter {unknown!r}; it knows: {offered}")
        return cls(cutoff=cutoff, **parameters)

    # ------------------------------------------------------------------------------------- what users see

    def __repr__(self) -> str:
        return self._print(self.spelling())

    @property
    def title(self) -> str:
        """The shortest spelling that is read back as this measure: the title of its column."""
        return self._print(self._short_spelling())

    def _short_spelling(self) -> dict[str, Any]:
        return self.spelling()

    def _print(self, parameters: Mapping[str, Any]) -> str:
        inside = ",".join(f"{name}={_literal(value)}" for name, value in parameters.items())
        cut = "" if self.cutoff is None else f"@{self.cutoff}"
        return f"{self.name}{f'({inside})' if inside else ''}{cut}"

    def __call__(
        self, scores: ArrayLike, labels: ArrayLike, *, ties: Ties = "expected", empty: Empty = "skip"
    ) -> float:
        """The value on one list; NaN for a degenerate list unless ``empty`` gives it a value.

        Examples
        --------
        >>> from rankwise.measures import NDCG
        >>> (NDCG() @ 3)([0.3, 0.1, 0.9], [2, 0, 1])
        0.7967075809905066
        """
        from rankwise.measures.compute import one_list

        return one_list(self, scores, labels, ties=ties, empty=empty)

    def all_params(self) -> Vector:
        """The cut-off (infinite where there is none) and the measure's own params."""
        if self.needs_cutoff and self.cutoff is None:
            raise MeasureError(f"{self.name} needs a cut-off, for example {self.name}@10")
        return np.array([np.inf if self.cutoff is None else self.cutoff, *self.params()], dtype=np.float64)


@dataclass(frozen=True, kw_only=True, repr=False)
class BinaryMeasure(Measure):
    """Measures on relevant / not relevant: a document is relevant when its label is at least ``rel``."""

    rel: float = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_number(self.rel) or not 0 < self.rel < np.inf:
            raise MeasureError(f"rel is the smallest label that counts as relevant, above 0: found {self.rel!r}")

    def row_values(self, labels: Vector) -> Vector:
        return (labels >= self.rel).astype(np.float64)


def _literal(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{_literal(key)}:{_literal(item)}" for key, item in value.items()) + "}"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return repr(value)
