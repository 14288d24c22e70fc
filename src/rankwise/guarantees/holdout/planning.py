r"""How many queries to judge: for an interval of a given width, or to tell two rankers apart.

:func:`queries_needed` returns one :class:`Plan` per method. Each states how far it can be trusted: for any
distribution, if the guessed standard deviation is right, or as an approximation.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from rankwise._errors import RankwiseError
from rankwise.guarantees._bound import HasTerms, refuse_unless, refuse_unless_chance

# "certain": for any distribution; "if guessed right": if the sample's spread is at most the guess; "approximation": if,
# besides, means are approximately normal.
Trust = Literal["certain", "if guessed right", "approximation"]

# A search for the number of queries ends here.
MOST = 10**12


@dataclass(frozen=True, kw_only=True)
class Plan(HasTerms):
    """How many queries, by which method, and how far the number can be trusted.

    Attributes
    ----------
    queries : int
        Number of queries.
    method : str
        How the number was computed.
    trust : {"certain", "if guessed right", "approximation"}
        How far it can be trusted.
    purpose : str
        What this number of queries is enough for.
    statement : str
        The formula.
    terms : mapping of str to float
        The numbers in it, by name.
    """

    queries: int
    method: str
    trust: Trust
    purpose: str
    statement: str
    terms: Mapping[str, float] = field(hash=False)

    def __str__(self) -> str:
        return f"{self.queries:,} queries for {self.purpose} ({self.method}: {self.trust})"

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain numbers and strings, for tables and reports."""
        return self._fields()


def queries_needed(
    *,
    half_width: float | None = None,
    difference: float | None = None,
    sd: float | None = None,
    delta: float = 0.05,
    power: float = 0.8,
    span: tuple[float, float] = (0.0, 1.0),
) -> tuple[Plan, ...]:
    r"""Number of judged queries for an interval (``half_width``), or to tell two rankers apart (``difference``).

    An interval of mean +- half_width at level 1 - delta, for values within a span of width b:

    - Hoeffding: n >= b^2 log(2/delta) / (2 half_width^2), whatever the distribution;
    - empirical Bernstein: sqrt(2 sd^2 L/n) + 7 b L/(3 (n - 1)) <= half_width, L = log(3/delta), if the sample's
      standard deviation is ``sd`` at most;
    - normal: n >= (z sd/half_width)^2, the usual approximation.

    Two rankers on the same queries: the paired t test at level delta finds a true mean ``difference`` with probability
    ``power``, if the differences are normal with standard deviation ``sd``.

    Parameters
    ----------
    half_width : float, default=None
        Half the width of the interval.
    difference : float, default=None
        The smallest difference of the two means that is worth finding.
    sd : float, default=None
        A guess of the standard deviation, of the values or of the differences per query.
    delta : float, default=0.05
        Probability that the interval may miss, or that the test finds a difference that is not there.
    power : float, default=0.8
        Probability that the test has to find the difference.
    span : tuple of float, default=(0.0, 1.0)
        The smallest and the largest possible value.

    Returns
    -------
    tuple of Plan
        One per method, the most certain first.

    Raises
    ------
    RankwiseError
        If not exactly one of ``half_width`` and ``difference`` is given, or a number is not valid.

    Examples
    --------
    >>> for plan in queries_needed(half_width=0.05, sd=0.3):
    ...     print(plan)
    738 queries for +-0.05 at 95 % (Hoeffding: certain)
    619 queries for +-0.05 at 95 % (empirical Bernstein: if guessed right)
    139 queries for +-0.05 at 95 % (normal: approximation)
    >>> print(*queries_needed(difference=0.02, sd=0.1))
    199 queries for a difference of 0.02, found 80 % of the time at level 5 % (paired t test: approximation)
    """
    refuse_unless_chance("queries_needed", delta=delta, power=power)
    if not (math.isfinite(span[0]) and math.isfinite(span[1]) and span[0] < span[1]):
        raise RankwiseError(f"queries_needed: span is the smallest and the largest value possible: found {span!r}")
    if (half_width is None) == (difference is None):
        raise RankwiseError(
            "queries_needed takes half_width for an interval or difference for a comparison: "
            f"found half_width={half_width}, difference={difference}"
        )
    if sd is not None:
        refuse_unless("queries_needed", above=0, sd=sd)
    if half_width is not None:
        refuse_unless("queries_needed", above=0, half_width=half_width)
        return _for_interval(half_width, sd, delta, span[1] - span[0])
    assert difference is not None
    refuse_unless("queries_needed", above=0, difference=difference)
    if sd is None:
        raise RankwiseError("queries_needed: a comparison needs sd, the standard deviation of the differences")
    return (_for_comparison(difference, sd, delta, power),)


def _for_interval(half_width: float, sd: float | None, delta: float, b: float) -> tuple[Plan, ...]:
    """The plans for an interval."""
    purpose = f"+-{half_width:g} at {100 * (1 - delta):g} %"
    asked = {"half_width": half_width, "delta": delta}
    plans = [
        Plan(
            queries=math.ceil(b**2 * math.log(2 / delta) / (2 * half_width**2)),
            method="Hoeffding",
            trust="certain",
            purpose=purpose,
            statement="b^2 log(2/delta) / (2 half_width^2)",
            terms=asked | {"b": b},
        )
    ]
    if sd is None:
        return tuple(plans)
    from scipy.special import ndtri

    L, z = math.log(3 / delta), float(ndtri(1 - delta / 2))
    plans += [
        Plan(
            queries=first(lambda n: math.sqrt(2 * sd**2 * L / n) + 7 * b * L / (3 * (n - 1)) <= half_width),
            method="empirical Bernstein",
            trust="if guessed right",
            purpose=purpose,
            statement="sqrt(2 sd^2 L/n) + 7 b L/(3 (n - 1)) <= half_width, L = log(3/delta)",
            terms=asked | {"sd": sd, "b": b, "L": L},
        ),
        Plan(
            queries=math.ceil((z * sd / half_width) ** 2),
            method="normal",
            trust="approximation",
            purpose=purpose,
            statement="(z sd/half_width)^2",
            terms=asked | {"sd": sd, "z": z},
        ),
    ]
    return tuple(plans)


def _for_comparison(difference: float, sd: float, delta: float, power: float) -> Plan:
    """The plan for a comparison."""
    return Plan(
        queries=first(lambda n: paired_power(n, difference=difference, sd=sd, delta=delta) >= power),
        method="paired t test",
        trust="approximation",
        purpose=f"a difference of {difference:g}, found {100 * power:g} % of the time at level {100 * delta:g} %",
        statement="power of the two-sided t test with n - 1 degrees of freedom at difference sqrt(n)/sd",
        terms={"difference": difference, "sd": sd, "delta": delta, "power": power},
    )


def paired_power(n: int, *, difference: float, sd: float, delta: float = 0.05) -> float:
    """Probability that the paired t test finds a true mean difference, for normal differences.

    It is computed from the noncentral t distribution.

    Parameters
    ----------
    n : int
        Number of queries.
    difference : float
        The true mean difference.
    sd : float
        Standard deviation of the differences.
    delta : float, default=0.05
        Level of the test.

    Returns
    -------
    float
        The power.

    Examples
    --------
    >>> round(paired_power(34, difference=0.5, sd=1.0), 3)
    0.808
    """
    from scipy.special import nctdtr, stdtrit

    refuse_unless("paired_power", least=2, n=n)
    refuse_unless("paired_power", above=0, sd=sd)
    refuse_unless_chance("paired_power", delta=delta)
    shift = abs(difference) * math.sqrt(n) / sd
    if shift > 30:  # the power rounds to 1, and the distribution would overflow
        return 1.0
    critical = float(stdtrit(n - 1, 1 - delta / 2))
    return float(1 - nctdtr(n - 1, shift, critical) + nctdtr(n - 1, shift, -critical))


def first(enough: Callable[[int], bool], least: int = 2) -> int:
    """The smallest n from ``least`` on that is enough, for a condition that stays true from there on."""
    most = least
    while not enough(most):
        if most > MOST:
            raise RankwiseError(f"queries_needed: more than {MOST:,} queries would be needed")
        least, most = most + 1, 2 * most
    while least < most:
        middle = (least + most) // 2
        least, most = (least, middle) if enough(middle) else (middle + 1, most)
    return least
