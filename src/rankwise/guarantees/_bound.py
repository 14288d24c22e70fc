"""A guarantee as a value: the number, the formula, every term of it, and what must be true for it to hold.

Every function of this sub-package that states a theorem returns a :class:`Bound`. Its :class:`Precondition` values are
met, not met, or only assumed; a bound with an unmet precondition does not apply, and one that is no smaller than what
is possible anyway is vacuous. :class:`Scope` says what a number is about. :class:`Interval` is what
:func:`~rankwise.guarantees.mean_interval` and confidence sequences return; its ends are available as bounds, which
certificates use. The two ``refuse_unless`` functions validate the numbers that go in.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal

from rankwise._tables import ShownAsFacts
from rankwise.errors import RankwiseError
from rankwise.queries.checks import is_number


@dataclass(frozen=True)
class Scope(ShownAsFacts):
    """The scope of a guarantee.

    Attributes
    ----------
    population : str
        What the number is about, of which the data are a sample.
    unit : str
        What is drawn: a query, a session, an impression, a user.
    read : str
        The moments at which the number may be read.
    choices : str
        The choices after which it still holds, and those after which it does not.

    Examples
    --------
    >>> scope = Scope("future queries of the same source", "query", "once", "none on these queries")
    >>> print(scope)
    about: future queries of the same source
    unit: query
    read: once
    choices: none on these queries
    """

    population: str
    unit: str
    read: str
    choices: str

    def __str__(self) -> str:
        return "\n".join(
            [f"about: {self.population}", f"unit: {self.unit}", f"read: {self.read}", f"choices: {self.choices}"]
        )

    def to_dict(self) -> dict[str, str]:
        """The scope as plain strings."""
        return {"population": self.population, "unit": self.unit, "read": self.read, "choices": self.choices}


ANY_TIME = "at any time, as often as you like"
_FUTURE = "future queries, drawn independently from the distribution of the {} queries"

# The scopes of bounds. The population of a certificate's row is narrower where its text says so: "with a relevant
# document", "of weight above 0".
TRAINING = Scope(
    "the training queries themselves; nothing is inferred about others",
    "query",
    ANY_TIME,
    "any: it is a fact about these weights and these queries",
)
OPTIMALITY_GAP = Scope(
    "the training objective, at these weights and at its minimum", "objective", ANY_TIME, "any: it is a fact"
)
UNIFORM = Scope(
    _FUTURE.format("training"),
    "query",
    "once, for a number of training queries that was fixed beforehand",
    "any choice of weights, by these queries too; not of the loss, the declared radius and length, or W_0",
)
ERM = Scope(
    _FUTURE.format("training"),
    "query",
    "once, for a number of training queries that was fixed beforehand",
    "none: the weights minimize the training loss over a ball, which was fixed beforehand like the loss",
)
EXPECTATION = Scope(
    _FUTURE.format("training") + "; on average over training samples, not for the one at hand",
    "query",
    "once, for a number of training queries that was fixed beforehand",
    "none by these queries: neither of lambda, the step, the loss nor the features' scale",
)
ROUNDS = Scope(
    "the rounds of one run, whatever their order and however they were made",
    "round",
    ANY_TIME,
    "any comparator, chosen afterwards too",
)
ON_AVERAGE = Scope(
    "the rounds of one run; on average over the documents that the run draws at random, not for the draws at hand",
    "round",
    "once, for a number of rounds that was fixed beforehand",
    "any weights in the ball, chosen afterwards too where the stream does not depend on what was shown",
)
ITERATES = Scope(
    _FUTURE.format("run's") + "; the average over the weights of the rounds, each ranked before it was learned from",
    "round",
    "once, for a number of rounds that was fixed beforehand",
    "none that depends on later rounds; each query is shown once",
)
HOLDOUT = Scope(
    _FUTURE.format("hold-out") + "; of queries with equal content any number may be copies",
    "query",
    "once, for a hold-out whose size was fixed beforehand",
    "any choice of the ranker without these queries; K rankers or measures: delta / K for each",
)
CALIBRATION = Scope(
    _FUTURE.format("calibration") + "; of queries with equal content any number may be copies",
    "query",
    "once, for a calibration set whose size was fixed beforehand",
    "any choice of the ranker without these queries; K cut-offs: delta / K for each; these queries may certify the "
    "ranker, too, both together at the sum of the deltas, but not the lists that are cut",
)
SEQUENCE = Scope(
    "the mean that every value of the stream has, given the earlier ones",
    "value of the stream",
    ANY_TIME,
    "when to stop; not which values are reported",
)
PLAN = Scope(
    "samples of queries that are yet to be drawn, independently from one distribution",
    "query",
    "before any of these queries is judged",
    "none: the number is for one interval, or one comparison, named beforehand; it says how far it can be trusted",
)
APPROXIMATE = Scope(
    "future queries, drawn independently from the distribution of these queries; an approximation, not a guarantee",
    "query",
    "once",
    "none: the rankers and measures were named beforehand, or the tests corrected for their number",
)


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


# ------------------------------------------------------------------------------------------------------------ intervals


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


def smallest(*makers: Callable[[float], Bound], delta: float, unverified: bool = False) -> Bound:
    """The smallest of several bounds on the same number, each computed at delta divided by their number.

    Bounds that are ``unverified`` are left out unless asked for, before delta is divided. Bounds that do not apply
    count in the division, since whether they apply may depend on the data.

    Parameters
    ----------
    *makers : callable
        Each returns its bound at a level delta, as in ``lambda delta: l2_ball(delta=delta, ...)``.
    delta : float
        Probability that the smallest may fail.
    unverified : bool, default=False
        Whether to use bounds that rest on unchecked constants.

    Returns
    -------
    Bound
        The smallest one that applies, with ``compared`` and ``delta_each`` among its terms.

    Raises
    ------
    RankwiseError
        If no bound is verified, none applies, or they do not bound the same number from above.

    Examples
    --------
    >>> from rankwise.guarantees import l2_ball, linf_ball
    >>> known = {"risk": 0.1, "W": 1.0, "radius": 1.0, "m": 10, "n": 10_000, "b": 3.0}
    >>> def scores(delta):
    ...     return l2_ball(L2=1.5, delta=delta, **known)
    >>> def largest(delta):
    ...     return linf_ball(G=2.0, delta=delta, **known)
    >>> best = smallest(scores, largest, delta=0.05)
    >>> best.name, best.terms["delta_each"], round(best.value, 3)
    ('Uniform, l2-Lipschitz, smallest of 2', 0.025, 0.26)
    """
    refuse_unless_chance("smallest", delta=delta)
    kept = [make for make in makers if unverified or make(delta).status == "proved here"]
    if not kept:
        raise RankwiseError(
            f"the smallest of several bounds requires at least one that is verified, got none of {len(makers)}"
        )
    each = delta / len(kept)
    bounds = [make(each) for make in kept]
    about = {(bound.bounds, bound.side) for bound in bounds}
    if len(about) > 1:
        raise RankwiseError(f"only bounds on the same number from above can be compared, got {sorted(about)}")
    best = min((bound for bound in bounds if bound.applies is not False), key=lambda bound: bound.value, default=None)
    if best is None or best.side != "at most":
        raise RankwiseError("none of the compared bounds applies and is an upper bound")
    return replace(
        best,
        name=f"{best.name}, smallest of {len(kept)}",
        terms=dict(best.terms) | {"compared": float(len(kept)), "delta_each": each},
        preconditions=(
            *(one for one in best.preconditions if not one.sentence.startswith("it holds with probability")),
            Precondition(f"it holds with probability {1 - delta:g} over the queries"),
        ),
    )
