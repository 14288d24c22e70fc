"""An interval for a mean over future queries, as a value: both ends, the numbers they come from, the preconditions.

:class:`Interval` is what :func:`~rankwise.guarantees.mean_interval` and confidence sequences return. Its ends are
available as :class:`~rankwise.guarantees.Bound` values, which certificates use.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from rankwise._tables import ShownAsFacts
from rankwise.guarantees._bound import Bound, HasTerms, Precondition, Side, plain_fields
from rankwise.guarantees.scope import HOLDOUT, Scope

# Which ends of an interval are bounds: both together, or one of them alone, which then is tighter.
Ends = Literal["both", "low", "high"]


@dataclass(frozen=True, repr=False, kw_only=True)
class Interval(ShownAsFacts, HasTerms):
    """An interval that holds a mean with probability 1 - delta.

    Parameters
    ----------
    name : str
        The name of the method.
    of : str
        The mean, in words.
    low, high : float
        The ends.
    mean : float
        Mean of the values that the interval was computed from.
    n : int
        Number of values.
    delta : float
        Probability that the interval may miss the mean.
    ends : {"both", "low", "high"}, default="both"
        Which ends are bounds.
    span : tuple of float, default=(0.0, 1.0)
        The smallest and the largest possible value.
    statement : str
        The formula of the ends.
    terms : mapping of str to float
        The numbers in the formula, by name.
    preconditions : tuple of Precondition, default=()
        The conditions, each with whether it is met.
    source : str, default=""
        Where the statement is from.
    scope : Scope
        Of which population the mean is, and when and after which choices the interval may be read.

    Examples
    --------
    >>> Interval(name="Wide", of="mean", low=0.0, high=1.0, mean=0.4, n=3, delta=0.05, statement="[0, 1]", terms={})
    Wide: mean between 0 and 1 with probability 0.95 [[0, 1]; mean=0.4, n=3; vacuous]
    """

    name: str
    of: str
    low: float
    high: float
    mean: float
    n: int
    delta: float
    ends: Ends = "both"
    span: tuple[float, float] = (0.0, 1.0)
    statement: str
    terms: Mapping[str, float] = field(hash=False)
    preconditions: tuple[Precondition, ...] = ()
    source: str = ""
    scope: Scope = HOLDOUT

    @property
    def width(self) -> float:
        """The distance of the ends; 0 if the interval is empty."""
        return max(0.0, self.high - self.low)

    @property
    def empty(self) -> bool:
        """Whether the ends have crossed: a precondition is violated, or the sample is among the delta that fail."""
        return self.low > self.high

    @property
    def vacuous(self) -> bool:
        """Whether the interval holds every possible mean."""
        return self.low <= self.span[0] and self.high >= self.span[1]

    def __contains__(self, mean: float) -> bool:
        return self.low <= mean <= self.high

    def bounds(self) -> tuple[Bound, ...]:
        """The ends as bounds, which hold together with probability 1 - delta."""
        own: dict[str, Any] = {name: getattr(self, name) for name in ("name", "statement", "preconditions", "source")}
        own |= {"bounds": self.of, "scope": self.scope, "floor": self.span[0], "ceiling": self.span[1]}
        own["terms"] = {"mean": self.mean, "n": float(self.n), "delta": self.delta} | dict(self.terms)
        sides: tuple[tuple[str, float, Side], ...] = (("high", self.low, "at least"), ("low", self.high, "at most"))
        return tuple(
            Bound(value=value, side=side, kind="hold-out", **own) for other, value, side in sides if self.ends != other
        )

    def to_dict(self) -> dict[str, Any]:
        """The interval as plain numbers and strings, for tables and reports."""
        numbers = ("low", "high", "mean", "n", "delta", "ends", "span", "empty", "vacuous")
        return plain_fields(self, "name", "of", *numbers, "statement", "terms", "preconditions", "source", "scope")

    def __repr__(self) -> str:
        where = {
            "both": f"between {self.low:g} and {self.high:g}",
            "low": f">= {self.low:g}",
            "high": f"<= {self.high:g}",
        }[self.ends]
        terms = "".join(f", {name}={number:g}" for name, number in self.terms.items())
        note = "; EMPTY" if self.empty else "; vacuous" if self.vacuous else ""
        made_of = f"{self.statement}; mean={self.mean:g}, n={self.n:,}{terms}{note}"
        return f"{self.name}: {self.of} {where} with probability {1 - self.delta:g} [{made_of}]"
