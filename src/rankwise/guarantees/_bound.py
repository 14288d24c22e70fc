"""A guarantee as a value: the number, the formula, every term of it, and what must be true for it to hold."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from rankwise._errors import RankwiseError

# How far a statement is trusted: its proof was written or checked for this package; it is a paper's formula, kept
# for comparison although the text around it does not hold; or it rests on an imported constant that nobody checked.
Status = Literal["proved here", "as printed", "unverified"]


@dataclass(frozen=True)
class Precondition:
    """One sentence that a guarantee rests on, and whether it is met; None where only the caller can know."""

    sentence: str
    met: bool | None = None

    def __str__(self) -> str:
        return f"{self.sentence} ({ {True: 'met', False: 'NOT met', None: 'assumed'}[self.met] })"


@dataclass(frozen=True, repr=False, kw_only=True)
class Bound:
    """An upper bound with everything it was made of.

    Parameters
    ----------
    name : what it is called
    bounds : what is at most ``value``, in words
    statement : the formula, in the names of ``terms``
    value : the number; infinite where the formula says nothing
    terms : the numbers that stand in the formula, by name
    preconditions : what must be true, each with whether it is
    status : "proved here", "as printed" or "unverified"
    source : where the statement is from
    ceiling : what is bounded never exceeds this anyway

    Examples
    --------
    >>> Bound(name="Markov", bounds="chance", statement="mean / a", value=0.25, terms={"mean": 1.0, "a": 4.0})
    Markov: chance <= 0.25 [mean / a; mean=1, a=4; proved here]
    """

    name: str
    bounds: str
    statement: str
    value: float
    terms: Mapping[str, float] = field(hash=False)
    preconditions: tuple[Precondition, ...] = ()
    status: Status = "proved here"
    source: str = ""
    ceiling: float = math.inf

    def __post_init__(self) -> None:
        object.__setattr__(self, "terms", MappingProxyType(dict(self.terms)))

    @property
    def applies(self) -> bool | None:
        """False if a precondition is not met, True if all are known to be, None if some are only assumed."""
        met = [condition.met for condition in self.preconditions]
        return False if False in met else None if None in met else True

    @property
    def vacuous(self) -> bool:
        """Whether it says nothing that was not clear before."""
        return self.value >= self.ceiling

    def allows(self, found: float) -> bool:
        """Whether a number that was ``found`` is at most the bound, up to rounding (1e-9 of the bound)."""
        return found <= self.value + 1e-9 * abs(self.value)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and texts, for tables and reports."""
        return {
            "name": self.name,
            "bounds": self.bounds,
            "statement": self.statement,
            "value": self.value,
            "terms": dict(self.terms),
            "preconditions": [{"sentence": one.sentence, "met": one.met} for one in self.preconditions],
            "applies": self.applies,
            "vacuous": self.vacuous,
            "status": self.status,
            "source": self.source,
        }

    def __repr__(self) -> str:
        terms = ", ".join(f"{name}={number:g}" for name, number in self.terms.items())
        broken = "".join(f"; DOES NOT APPLY: {one.sentence}" for one in self.preconditions if one.met is False)
        empty = "; vacuous" if self.vacuous else ""
        return f"{self.name}: {self.bounds} <= {self.value:g} [{self.statement}; {terms}; {self.status}{empty}{broken}]"

    def __reduce__(self) -> tuple[Any, ...]:
        state = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return _rebuild, (state | {"terms": dict(self.terms)},)


def _rebuild(state: dict[str, Any]) -> Bound:
    return Bound(**state)


def refuse_unless(where: str, *, above: float | None = None, least: float | None = None, **numbers: float) -> None:
    """One sentence for the first number that is not finite, or not ``above`` one limit, or below the ``least``."""
    for name, number in numbers.items():
        low = (above is not None and not number > above) or (least is not None and not number >= least)
        if low or not math.isfinite(number):
            limit = (
                f"above {above:g}" if above is not None else f"{least:g} or more" if least is not None else "a number"
            )
            raise RankwiseError(f"{where}: {name} is finite and {limit}: found {number!r}")
