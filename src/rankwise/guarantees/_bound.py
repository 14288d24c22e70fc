"""A guarantee as a value: the number, the formula, every term of it, and what must be true for it to hold.

Every function of this sub-package that states a theorem returns a :class:`Bound`. Its :class:`Precondition` values are
met, not met, or only assumed; a bound with an unmet precondition does not apply, and one that is no smaller than what
is possible anyway is vacuous. The two ``refuse_unless`` functions validate the numbers that go in.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from rankwise._tables import ShownAsFacts
from rankwise.errors import RankwiseError
from rankwise.guarantees.scope import Scope
from rankwise.queries.checks import is_number

# How far a statement is trusted: its proof was written or checked for this package; it is a paper's formula, kept for
# comparison although it does not hold as printed; or it rests on an imported constant that was not checked.
Status = Literal["proved here", "as printed", "unverified"]

# Whether what is bounded is at most the number, or at least.
Side = Literal["at most", "at least"]

# What a bound is about: the queries that a model learned from; future queries, inferred from the sample that it learned
# from or from queries that it never saw; a run over a stream; or how far a solver is from the optimum.
Kind = Literal["training", "generalization", "hold-out", "online", "optimality gap"]


@dataclass(frozen=True)
class Precondition(ShownAsFacts):
    """A condition of a guarantee.

    Attributes
    ----------
    sentence : str
        The condition.
    met : bool or None
        Whether it is met; None if only the caller can know.
    """

    sentence: str
    met: bool | None = None

    def __str__(self) -> str:
        return f"{self.sentence} ({ {True: 'met', False: 'NOT met', None: 'assumed'}[self.met] })"


def all_met(preconditions: Iterable[Precondition]) -> bool | None:
    """False if a precondition is not met, True if all are known to be, None if some are only assumed."""
    met = [one.met for one in preconditions]
    return False if False in met else None if None in met else True


def plain_fields(shown: Any, *names: str) -> dict[str, Any]:
    """The attributes of these names as plain values, ready for JSON."""
    return {name: _plain(getattr(shown, name)) for name in names}


def _plain(value: Any) -> Any:
    if isinstance(value, (Precondition, Scope)):
        return dict(vars(value))
    if isinstance(value, Mapping):
        return dict(value)
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


class HasTerms:
    """Mixin of frozen dataclasses with ``terms``, a read-only mapping that pickles."""

    terms: Mapping[str, float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "terms", MappingProxyType(dict(self.terms)))

    def _fields(self) -> dict[str, Any]:
        return vars(self) | {"terms": dict(self.terms)}

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self._fields())


def _rebuild(kind: type[Any], state: dict[str, Any]) -> Any:
    return kind(**state)


@dataclass(frozen=True, repr=False, kw_only=True)
class Bound(ShownAsFacts, HasTerms):
    """An upper or a lower bound, with everything that it was computed from.

    Parameters
    ----------
    name : str
        The name of the bound.
    bounds : str
        The quantity that is at most, or at least, ``value``, in words.
    statement : str
        The formula, in the names of ``terms``.
    value : float
        The number; infinite where the formula is undefined.
    terms : mapping of str to float
        The numbers in the formula, by name.
    preconditions : tuple of Precondition, default=()
        The conditions, each with whether it is met.
    status : {"proved here", "as printed", "unverified"}, default="proved here"
        How far the statement is trusted.
    source : str, default=""
        Where the statement is from.
    ceiling : float, default=inf
        The quantity never exceeds this anyway.
    floor : float, default=-inf
        The quantity is never below this anyway.
    side : {"at most", "at least"}, default="at most"
        Whether it is an upper or a lower bound.
    kind : str, default=None
        "training", "generalization", "hold-out", "online" or "optimality gap"; None if not stated.
    scope : Scope, default=None
        Of which population it is, per which unit, when it may be read, and after which choices it holds.

    Examples
    --------
    >>> Bound(name="Markov", bounds="chance", statement="mean / a", value=0.25, terms={"mean": 1.0, "a": 4.0})
    Markov: chance <= 0.25 [mean / a; mean=1, a=4; proved here]
    >>> Bound(name="Jensen", bounds="mean square", statement="mean^2", value=4.0, terms={"mean": 2.0}, side="at least")
    Jensen: mean square >= 4 [mean^2; mean=2; proved here]
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
    floor: float = -math.inf
    side: Side = "at most"
    kind: Kind | None = None
    scope: Scope | None = None

    @property
    def applies(self) -> bool | None:
        """False if a precondition is not met, True if all are known to be, None if some are only assumed."""
        return all_met(self.preconditions)

    @property
    def vacuous(self) -> bool:
        """Whether the value is no better than what is possible anyway."""
        return self.value >= self.ceiling if self.side == "at most" else self.value <= self.floor

    def allows(self, found: float) -> bool:
        """Whether an observed number agrees with the bound.

        Parameters
        ----------
        found : float
            The observed number.

        Returns
        -------
        bool
            True if it is on the bound's side, up to rounding (1e-9 of the bound).
        """
        rounding = 1e-9 * abs(self.value)
        return found <= self.value + rounding if self.side == "at most" else found >= self.value - rounding

    def to_dict(self) -> dict[str, Any]:
        """The bound as plain numbers and strings, for tables and reports."""
        said = ("name", "kind", "side", "bounds", "statement", "value", "terms", "preconditions")
        return plain_fields(self, *said, "applies", "vacuous", "status", "source", "scope")

    def __repr__(self) -> str:
        terms = ", ".join(f"{name}={number:g}" for name, number in self.terms.items())
        if self.applies is False:  # the number follows from something false, so it is not printed as a bound
            broken = "; ".join(f"DOES NOT APPLY: {one.sentence}" for one in self.preconditions if one.met is False)
            return f"{self.name}: no bound on {self.bounds} [{broken}; {self.statement}; {terms}; {self.status}]"
        empty = "; vacuous" if self.vacuous else ""
        sign = "<=" if self.side == "at most" else ">="
        return f"{self.name}: {self.bounds} {sign} {self.value:g} [{self.statement}; {terms}; {self.status}{empty}]"


def refuse_unless(where: str, *, above: float | None = None, least: float | None = None, **numbers: float) -> None:
    """Raise an error for the first number that is not finite, not ``above`` one limit, or below the ``least``."""
    for name, number in numbers.items():
        low = not is_number(number)
        low = low or (above is not None and not number > above) or (least is not None and not number >= least)
        if low or not math.isfinite(number):
            limit = "a finite number" if least is None else f"finite and at least {least:g}"
            limit = limit if above is None else f"finite and above {above:g}"
            raise RankwiseError(f"{where}: {name} must be {limit}, got {number!r}")


def refuse_unless_chance(where: str, **chances: float) -> None:
    """Raise an error for the first number that is not a probability strictly between 0 and 1."""
    for name, chance in chances.items():
        if not is_number(chance) or not 0 < chance < 1:
            raise RankwiseError(f"{where}: {name} must be between 0 and 1, got {chance!r}")
