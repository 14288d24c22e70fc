r"""Hold-out intervals for a mean over future queries, from n queries that the ranker did not learn from.

They hold for any scores and for any distribution of values in a known span, at every n:

======================= ====================================================================================
method                  each end, at level alpha, for values in [0, 1]
======================= ====================================================================================
``hoeffding``           mean -+ sqrt(log(1/alpha)/(2 n))
``empirical bernstein`` mean -+ (sqrt(2 V L/n) + 7 L/(3 (n - 1))), V the sample's variance, L = log(2/delta)
                        for one end and log(3/delta) for both (Maurer and Pontil)
``betting``             means that bets do not refute, see :mod:`rankwise.guarantees.holdout.betting`
======================= ====================================================================================

alpha = delta/2 for both ends. The method has to be chosen before the data are seen: the narrowest of three intervals at
delta is valid only if each was computed at delta/3.

Queries count equally: a weighted mean is a ratio of two means, which none of the three methods covers, so weights that
differ raise an error.

:func:`queries_needed` says how many queries to judge, for an interval of a given width or to tell two rankers apart,
as one :class:`Plan` per method. Each states how far it can be trusted: for any distribution, if the guessed standard
deviation is right, or as an approximation.

References
----------
W. Hoeffding (1963). Probability inequalities for sums of bounded random variables. Journal of the American Statistical
Association 58(301), 13-30. doi:10.1080/01621459.1963.10500830.

A. Maurer, M. Pontil (2009). Empirical Bernstein bounds and sample variance penalization. COLT. arXiv:0907.3740.

I. Waudby-Smith, A. Ramdas (2024). Estimating means of bounded random variables by betting. Journal of the Royal
Statistical Society B 86(1), 1-27. doi:10.1093/jrsssb/qkad009.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._tables import ShownAsFacts
from rankwise.errors import DataError, RankwiseError
from rankwise.guarantees._bound import (
    PLAN,
    Ends,
    HasTerms,
    Interval,
    Precondition,
    Scope,
    refuse_unless,
    refuse_unless_chance,
)
from rankwise.guarantees.holdout import betting

Method = Literal["hoeffding", "empirical bernstein", "betting"]
NAMES = {"hoeffding": "Hoeffding", "empirical bernstein": "Empirical Bernstein", "betting": "Betting"}
Floats = NDArray[np.float64]

UNSEEN = Precondition("the queries are independent draws of one distribution, and no choice of the ranker saw them")
# Rounding may move a measure this far out of its span.
_ROUNDING = 1e-9

STATEMENTS: dict[str, str] = {
    "hoeffding": "mean -+ sqrt(log(1/alpha)/(2 n))",
    "empirical bernstein": "mean -+ (sqrt(2 V L/n) + 7 L/(3 (n - 1)))",
    "betting": "means m whose capital, averaged over 40 fixed orders, is below 1/alpha",
}
SOURCES: dict[str, str] = {
    "hoeffding": "Hoeffding, Probability inequalities for sums of bounded random variables, 1963",
    "empirical bernstein": "Maurer and Pontil, Empirical Bernstein bounds and sample variance penalization, 2009",
    "betting": "Waudby-Smith and Ramdas, Estimating means of bounded random variables by betting, 2024",
}


def mean_interval(
    values: ArrayLike,
    delta: float = 0.05,
    *,
    method: Method = "betting",
    ends: Ends = "both",
    span: tuple[float, float] = (0.0, 1.0),
    weight: ArrayLike | None = None,
    of: str = "mean over future queries",
) -> Interval:
    """An interval for the mean over future queries, with probability 1 - delta, from the values of a hold-out.

    Parameters
    ----------
    values : array-like, shape (n_queries,)
        The values of the queries; NaN (a skipped query) is left out.
    delta : float, default=0.05
        Probability that the interval may miss the mean.
    method : {"betting", "empirical bernstein", "hoeffding"}, default="betting"
        How the ends are computed.
    ends : {"both", "low", "high"}, default="both"
        Which ends are wanted; one alone is tighter.
    span : tuple of float, default=(0.0, 1.0)
        The smallest and the largest possible value, known beforehand.
    weight : array-like, shape (n_queries,), default=None
        Accepted if all weights above 0 are equal; queries of weight 0 are left out.
    of : str, default="mean over future queries"
        The mean in words, for display.

    Returns
    -------
    Interval
        The interval. Crossed ends (``empty``) contradict each other, which happens for at most delta of the samples.

    Examples
    --------
    >>> values = [0.61, 0.32, 0.78, 0.95, 0.44, 0.57, 0.83, 0.70, 0.49, 0.66] * 10
    >>> for method in ("hoeffding", "empirical bernstein", "betting"):
    ...     interval = mean_interval(values, method=method)
    ...     print(f"{method}: {interval.low:.3f} to {interval.high:.3f}")
    hoeffding: 0.499 to 0.771
    empirical bernstein: 0.487 to 0.783
    betting: 0.584 to 0.687
    """
    refuse_unless_known("mean_interval", method, ends, span)
    refuse_unless_chance("mean_interval", delta=delta)
    x = scale_values("mean_interval", blank_uncounted(values, weight), span)
    if not len(x):
        raise RankwiseError("mean_interval: an interval requires the value of at least one query")
    low, high, terms = _FOUND[method](x, delta, ends)
    start, width = span[0], span[1] - span[0]
    return Interval(
        name=NAMES[method],
        of=of,
        low=start + width * low if ends != "high" else span[0],
        high=start + width * high if ends != "low" else span[1],
        mean=start + width * math.fsum(x.tolist()) / len(x),
        n=len(x),
        delta=delta,
        ends=ends,
        span=span,
        statement=STATEMENTS[method] + ("" if span == (0.0, 1.0) else ", values scaled to [0, 1]"),
        terms=terms,
        preconditions=(
            Precondition(f"values are between {span[0]:g} and {span[1]:g}", True),
            UNSEEN,
            Precondition(f"it holds with probability {1 - delta:g} over the queries"),
        ),
        source=SOURCES[method],
    )


def difference_interval(
    first: ArrayLike,
    second: ArrayLike,
    delta: float = 0.05,
    *,
    method: Method = "betting",
    ends: Ends = "both",
    span: tuple[float, float] = (0.0, 1.0),
    weight: ArrayLike | None = None,
    of: str = "mean difference over future queries",
) -> Interval:
    """An interval for the mean difference of two rankers on future queries, from values on the same queries.

    The differences are in [-1, 1] times the width of the span, and are scaled to [0, 1]. Queries on which either ranker
    has no value (NaN) are left out.

    Parameters
    ----------
    first, second : array-like, shape (n_queries,)
        The values of the two rankers.
    delta : float, default=0.05
        Probability that the interval may miss the mean difference.
    method : {"betting", "empirical bernstein", "hoeffding"}, default="betting"
        How the ends are computed.
    ends : {"both", "low", "high"}, default="both"
        Which ends are wanted; one alone is tighter.
    span : tuple of float, default=(0.0, 1.0)
        The smallest and the largest possible value of a ranker.
    weight : array-like, shape (n_queries,), default=None
        Accepted if all weights above 0 are equal; queries of weight 0 are left out.
    of : str, default="mean difference over future queries"
        The mean in words, for display.

    Returns
    -------
    Interval
        The interval.

    Examples
    --------
    >>> first = [0.7, 0.9, 0.5, 0.8] * 25
    >>> second = [0.6, 0.7, 0.5, 0.7] * 25
    >>> interval = difference_interval(first, second)
    >>> print(f"{interval.low:.3f} to {interval.high:.3f}")
    0.041 to 0.149
    """
    a, b = (np.asarray(one, dtype=np.float64) for one in (first, second))
    if a.ndim != 1 or a.shape != b.shape:
        raise DataError(f"both rankers must have one value per query, got shapes {a.shape} and {b.shape}")
    refuse_unless_known("difference_interval", method, ends, span)
    for values in (a, b):
        scale_values("difference_interval", values, span)
    width = span[1] - span[0]
    return mean_interval(a - b, delta, method=method, ends=ends, span=(-width, width), weight=weight, of=of)


def refuse_unless_known(where: str, method: str, ends: str, span: tuple[float, float]) -> None:
    """Raise an error for an unknown method or choice of ends, or for an invalid span."""
    if method not in get_args(Method):
        raise RankwiseError(f"{where}: method must be one of {', '.join(get_args(Method))}, got {method!r}")
    if ends not in get_args(Ends):
        raise RankwiseError(f"{where}: ends must be one of {', '.join(get_args(Ends))}, got {ends!r}")
    if not (math.isfinite(span[0]) and math.isfinite(span[1]) and span[0] < span[1]):
        raise RankwiseError(f"{where}: span must be (smallest possible value, largest possible value), got {span!r}")


def scale_values(where: str, values: Floats, span: tuple[float, float]) -> Floats:
    """The values that are not NaN, scaled so that the span becomes [0, 1]; a value outside the span raises an error."""
    if values.ndim != 1:
        raise DataError(f"{where}: values must hold one number per query, got shape {values.shape}")
    x = (values[~np.isnan(values)] - span[0]) / (span[1] - span[0])
    outside = (x < -_ROUNDING) | (x > 1 + _ROUNDING)
    if outside.any():
        found = values[~np.isnan(values)][outside][0]
        raise DataError(f"{where}: values must be between {span[0]:g} and {span[1]:g}, got {found:g}")
    return np.clip(x, 0.0, 1.0)


def blank_uncounted(values: ArrayLike, weight: ArrayLike | None) -> Floats:
    """The values, NaN for queries of weight 0; weights that differ raise an error."""
    found = np.asarray(values, dtype=np.float64)
    if weight is None:
        return found
    weights = np.asarray(weight, dtype=np.float64)
    if weights.shape != found.shape:
        raise DataError(f"weights must hold one number per query, of shape {found.shape}, got shape {weights.shape}")
    kept = weights[weights != 0]
    if len(kept) and not (kept == kept[0]).all():
        raise RankwiseError(
            f"hold-out intervals require equal query weights, got weights between {kept.min():g} and {kept.max():g}"
        )
    return np.where(weights != 0, found, math.nan)


Found = tuple[float, float, dict[str, float]]


def _hoeffding(x: Floats, delta: float, ends: Ends) -> Found:
    alpha = alpha_of(delta, ends)
    mean, reach = math.fsum(x.tolist()) / len(x), math.sqrt(math.log(1 / alpha) / (2 * len(x)))
    return max(0.0, mean - reach), min(1.0, mean + reach), {"alpha": alpha, "reach": reach}


def _empirical_bernstein(x: Floats, delta: float, ends: Ends) -> Found:
    # One event per end, and one for a too small sample variance, which both ends share.
    n, L = len(x), math.log((3 if ends == "both" else 2) / delta)
    if n < 2:
        return 0.0, 1.0, {"L": L}
    mean = math.fsum(x.tolist()) / n
    V = math.fsum(((x - mean) ** 2).tolist()) / (n - 1)
    reach = math.sqrt(2 * V * L / n) + 7 * L / (3 * (n - 1))
    return max(0.0, mean - reach), min(1.0, mean + reach), {"V": V, "L": L, "reach": reach}


def _betting(x: Floats, delta: float, ends: Ends) -> Found:
    alpha = alpha_of(delta, ends)
    low = betting.lower_end(x, alpha) if ends != "high" else 0.0
    high = 1 - betting.lower_end(1 - x, alpha) if ends != "low" else 1.0
    return low, high, {"alpha": alpha, "share": betting.SHARE}


def alpha_of(delta: float, ends: Ends) -> float:
    return delta / 2 if ends == "both" else delta


_FOUND: dict[str, Callable[[Floats, float, Ends], Found]] = {
    "hoeffding": _hoeffding,
    "empirical bernstein": _empirical_bernstein,
    "betting": _betting,
}


# ------------------------------------------------------------------------------------------------------------- planning

# "certain": for any distribution; "if guessed right": if the sample's spread is at most the guess; "approximation": if,
# besides, means are approximately normal.
Trust = Literal["certain", "if guessed right", "approximation"]

# A search for the number of queries ends here.
MOST = 10**12
# The power of the guaranteed interval is summed bet by bet up to here.
_EACH = 4_096


@dataclass(frozen=True, kw_only=True)
class Plan(ShownAsFacts, HasTerms):
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

    scope: ClassVar[Scope] = PLAN

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

    Two rankers on the same queries, whose true mean difference is ``difference``:

    - :func:`difference_interval`, which is guaranteed, excludes 0 with probability ``power``: the logarithm of the
      capital that bets against 0 is approximately normal, with the mean and the variance that differences of this mean
      and of standard deviation ``sd`` give it;
    - the paired t test, which is not guaranteed, finds the difference at level delta with probability ``power``, if the
      differences are normal with standard deviation ``sd``.

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
        Probability with which the difference has to be found.
    span : tuple of float, default=(0.0, 1.0)
        The smallest and the largest possible value.

    Returns
    -------
    tuple of Plan
        One per method, the most certain first; for a comparison the guaranteed interval, then the t test.

    Raises
    ------
    RankwiseError
        If not exactly one of ``half_width`` and ``difference`` is given, or a number is not valid.

    Examples
    --------
    >>> for plan in queries_needed(half_width=0.05, sd=0.3):
    ...     print(plan)
    738 queries for +-0.05 at 95% (Hoeffding: certain)
    619 queries for +-0.05 at 95% (empirical Bernstein: if guessed right)
    139 queries for +-0.05 at 95% (normal: approximation)
    >>> for plan in queries_needed(difference=0.02, sd=0.1):
    ...     print(plan)
    486 queries for a difference of 0.02, found 80% of the time at level 5% (guaranteed interval: approximation)
    199 queries for a difference of 0.02, found 80% of the time at level 5% (paired t test: approximation)
    """
    refuse_unless_chance("queries_needed", delta=delta, power=power)
    refuse_unless_known("queries_needed", "betting", "both", span)
    if (half_width is None) == (difference is None):
        raise RankwiseError(
            "queries_needed requires either half_width= (for an interval) or difference= (for a comparison), "
            f"got half_width={half_width}, difference={difference}"
        )
    if sd is not None:
        refuse_unless("queries_needed", above=0, sd=sd)
    if half_width is not None:
        refuse_unless("queries_needed", above=0, half_width=half_width)
        return _for_interval(half_width, sd, delta, span[1] - span[0])
    assert difference is not None
    refuse_unless("queries_needed", above=0, difference=difference)
    if sd is None:
        raise RankwiseError("queries_needed: a comparison requires sd=, the standard deviation of the differences")
    b = span[1] - span[0]
    if difference**2 + sd**2 > b**2:
        raise RankwiseError(
            f"queries_needed: values between {span[0]:g} and {span[1]:g} have differences of root mean square {b:g} at "
            f"most, got difference={difference:g} and sd={sd:g}: pass the span= of the measure"
        )
    return _for_comparison(difference, sd, delta, power, b)


def _for_interval(half_width: float, sd: float | None, delta: float, b: float) -> tuple[Plan, ...]:
    """The plans for an interval."""

    def plan(queries: int, method: str, trust: Trust, statement: str, **terms: float) -> Plan:
        asked = {"half_width": half_width, "delta": delta}
        purpose = f"+-{half_width:g} at {100 * (1 - delta):g}%"
        return Plan(
            queries=queries, method=method, trust=trust, purpose=purpose, statement=statement, terms=asked | terms
        )

    certain = math.ceil(b**2 * math.log(2 / delta) / (2 * half_width**2))
    plans = [plan(certain, "Hoeffding", "certain", "b^2 log(2/delta) / (2 half_width^2)", b=b)]
    if sd is not None:
        from scipy.special import ndtri

        L, z = math.log(3 / delta), float(ndtri(1 - delta / 2))
        guessed = first(lambda n: math.sqrt(2 * sd**2 * L / n) + 7 * b * L / (3 * (n - 1)) <= half_width)
        statement = "sqrt(2 sd^2 L/n) + 7 b L/(3 (n - 1)) <= half_width, L = log(3/delta)"
        plans.append(plan(guessed, "empirical Bernstein", "if guessed right", statement, sd=sd, b=b, L=L))
        normal = math.ceil((z * sd / half_width) ** 2)
        plans.append(plan(normal, "normal", "approximation", "(z sd/half_width)^2", sd=sd, z=z))
    return tuple(plans)


def _for_comparison(difference: float, sd: float, delta: float, power: float, b: float) -> tuple[Plan, ...]:
    """The plans for a comparison: by the interval that decides it with a guarantee, and by the usual test."""
    common: dict[str, Any] = {
        "trust": "approximation",
        "purpose": f"a difference of {difference:g}, found {100 * power:g}% of the time at level {100 * delta:g}%",
    }
    asked = {"difference": difference, "sd": sd, "delta": delta, "power": power}
    # three points with the first five moments of a normal distribution, cut at the span
    points = (difference + sd * math.sqrt(3) * np.array([-1.0, 0.0, 1.0])) / (2 * b)
    values, chances = 0.5 + np.clip(points, -0.5, 0.5), np.array([1, 4, 1]) / 6
    return (
        Plan(
            queries=first(lambda n: betting_power(n, 0.5, values, chances, delta / 2) >= power),
            method="guaranteed interval",
            statement="P(half of the capital against 0 >= 2/delta), its logarithm approximately normal",
            terms=asked | {"b": b},
            **common,
        ),
        Plan(
            queries=first(lambda n: paired_power(n, difference=difference, sd=sd, delta=delta) >= power),
            method="paired t test",
            statement="power of the two-sided t test with n - 1 degrees of freedom at difference sqrt(n)/sd",
            terms=asked,
            **common,
        ),
    )


def betting_power(n: int, m: float, values: Floats, chances: Floats, alpha: float) -> float:
    """Probability that bets on n values in [0, 1] refute the mean m at level alpha, approximately.

    They are bet on with half of the capital at least, which has to reach 1/alpha alone. The sizes of the bets are those
    for a sample variance that is as expected; then the logarithm of the capital is a sum of independent terms, which is
    approximately normal.

    Parameters
    ----------
    n : int
        Number of values.
    m : float
        The mean that is bet against.
    values, chances : ndarray
        What the values are, and how likely.
    alpha : float
        The level.

    Returns
    -------
    float
        The power.
    """
    from scipy.special import ndtr

    wanted, most = math.log(1 / alpha), betting.SHARE / m if m > 0 else math.inf
    spread = float((((values - (values * chances).sum()) ** 2) * chances).sum())
    # bets change slowly, so blocks of later ones are as good as one in the middle of each
    edges = np.unique(np.rint(np.geomspace(_EACH, max(n, _EACH), 1_000)))
    edges = np.concatenate([np.arange(min(n, _EACH)), edges if n > _EACH else [n]])
    before, times = (edges[:-1] + edges[1:] - 1) / 2, np.diff(edges)
    variance = (0.25 + before * spread) / (before + 1)
    bets = np.minimum(np.sqrt(2 * wanted / (n * variance)), most)
    growth = np.log1p(bets[:, None] * (values - m))
    mean = (growth * chances).sum(axis=-1)
    variances = (growth**2 * chances).sum(axis=-1) - mean**2
    excess = math.fsum(times * mean) - wanted - math.log(2)
    return float(ndtr(excess / math.sqrt(max(math.fsum(times * variances), 1e-300))))


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
