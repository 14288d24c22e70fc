r"""Hold-out intervals for a mean over future queries, from n queries that the ranker did not learn from.

They hold for any scores and for any distribution of values in a known span, at every n:

======================= ====================================================================================
method                  each end, at level alpha, for values in [0, 1]
======================= ====================================================================================
``hoeffding``           mean -+ sqrt(log(1/alpha)/(2 n))
``empirical bernstein`` mean -+ (sqrt(2 V L/n) + 7 L/(3 (n - 1))), V the sample's variance, L = log(2/delta)
                        for one end and log(3/delta) for both (Maurer and Pontil)
``betting``             means that no bet refuted, see :mod:`rankwise.guarantees.holdout.betting`
======================= ====================================================================================

alpha = delta/2 for both ends. The method has to be chosen before the data are seen: the narrowest of three intervals at
delta is valid only if each was computed at delta/3.

Queries count equally: a weighted mean is a ratio of two means, which none of the three methods covers, so weights that
differ raise an error.

References
----------
W. Hoeffding (1963). Probability inequalities for sums of bounded random variables. Journal of the American Statistical
Association 58(301), 13-30. doi:10.1080/01621459.1963.10500830.

A. Maurer, M. Pontil (2009). Empirical Bernstein bounds and sample variance penalization. COLT. arXiv:0907.3740.

I. Waudby-Smith, A. Ramdas (2024). Estimating means of bounded random variables by betting. Journal of the Royal
Statistical Society B 86(1), 1-27. doi:10.1093/jrsssb/qkad009.
"""

import math
from collections.abc import Callable
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._errors import DataError, RankwiseError
from rankwise.data import checks
from rankwise.guarantees._bound import Precondition, refuse_unless_chance
from rankwise.guarantees.holdout import betting
from rankwise.guarantees.holdout.interval import Ends, Interval

Method = Literal["hoeffding", "empirical bernstein", "betting"]
NAMES = {"hoeffding": "Hoeffding", "empirical bernstein": "Empirical Bernstein", "betting": "Betting"}
Floats = NDArray[np.float64]

UNSEEN = Precondition("the queries are independent draws of one distribution, and no choice of the ranker saw them")
# Rounding may move a measure this far out of its span.
_ROUNDING = 1e-9

STATEMENTS: dict[str, str] = {
    "hoeffding": "mean -+ sqrt(log(1/alpha)/(2 n))",
    "empirical bernstein": "mean -+ (sqrt(2 V L/n) + 7 L/(3 (n - 1)))",
    "betting": "means m with capital(m) < 1/alpha, in a random order",
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
    random_state: int | np.random.Generator = 0,
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
    random_state : int or Generator, default=0
        Betting takes the values in a random order, on which its ends depend a little.
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
    betting: 0.583 to 0.678
    """
    refuse_unless_known("mean_interval", method, ends, span)
    refuse_unless_chance("mean_interval", delta=delta)
    x = scaled_values("mean_interval", _counted(values, weight), span)
    if not len(x):
        raise RankwiseError("mean_interval: an interval needs the value of one query or more: found none")
    low, high, terms = _FOUND[method](x, delta, ends, random_state)
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
    random_state: int | np.random.Generator = 0,
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
    random_state : int or Generator, default=0
        Seed of the order in which betting takes the values.
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
    0.045 to 0.146
    """
    a, b = (np.asarray(one, dtype=np.float64) for one in (first, second))
    if a.ndim != 1 or a.shape != b.shape:
        raise DataError(
            f"differences are of one value per query for both rankers: found shapes {a.shape} and {b.shape}"
        )
    refuse_unless_known("difference_interval", method, ends, span)
    for values in (a, b):
        scaled_values("difference_interval", values, span)
    width = span[1] - span[0]
    return mean_interval(
        a - b,
        delta,
        method=method,
        ends=ends,
        span=(-width, width),
        weight=weight,
        random_state=random_state,
        of=of,
    )


def refuse_unless_known(where: str, method: str, ends: str, span: tuple[float, float]) -> None:
    """Raise an error for an unknown method or choice of ends, or for an invalid span."""
    if method not in get_args(Method):
        raise RankwiseError(f"{where}: method is one of {', '.join(get_args(Method))}: found {method!r}")
    if ends not in get_args(Ends):
        raise RankwiseError(f"{where}: ends is one of {', '.join(get_args(Ends))}: found {ends!r}")
    if not (math.isfinite(span[0]) and math.isfinite(span[1]) and span[0] < span[1]):
        raise RankwiseError(f"{where}: span is the smallest and the largest value possible: found {span!r}")


def scaled_values(where: str, values: Floats, span: tuple[float, float]) -> Floats:
    """The values that are not NaN, scaled so that the span becomes [0, 1]; a value outside the span raises an error."""
    if values.ndim != 1:
        raise DataError(f"{where}: values are one number per query: found shape {values.shape}")
    x = (values[~np.isnan(values)] - span[0]) / (span[1] - span[0])
    outside = (x < -_ROUNDING) | (x > 1 + _ROUNDING)
    if outside.any():
        found = values[~np.isnan(values)][outside][0]
        raise DataError(f"{where}: values are between {span[0]:g} and {span[1]:g}: found {found:g}")
    return np.clip(x, 0.0, 1.0)


def _counted(values: ArrayLike, weight: ArrayLike | None) -> Floats:
    """The values of the queries whose weight is not 0; weights that differ raise an error."""
    found = np.asarray(values, dtype=np.float64)
    if weight is None:
        return found
    weights = np.asarray(weight, dtype=np.float64)
    if weights.shape != found.shape:
        raise DataError(f"weights are one per query, {found.shape} in all: found shape {weights.shape}")
    kept = weights[weights != 0]
    if len(kept) and not (kept == kept[0]).all():
        raise RankwiseError(
            f"a hold-out interval is for queries that count equally: found weights {kept.min():g} to {kept.max():g}"
        )
    return np.asarray(found[weights != 0])


Found = tuple[float, float, dict[str, float]]


def _hoeffding(x: Floats, delta: float, ends: Ends, random_state: int | np.random.Generator) -> Found:
    alpha = _alpha(delta, ends)
    mean, reach = math.fsum(x.tolist()) / len(x), math.sqrt(math.log(1 / alpha) / (2 * len(x)))
    return max(0.0, mean - reach), min(1.0, mean + reach), {"alpha": alpha, "reach": reach}


def _empirical_bernstein(x: Floats, delta: float, ends: Ends, random_state: int | np.random.Generator) -> Found:
    # One event per end, and one for a too small sample variance, which both ends share.
    n, L = len(x), math.log((3 if ends == "both" else 2) / delta)
    if n < 2:
        return 0.0, 1.0, {"L": L}
    mean = math.fsum(x.tolist()) / n
    V = math.fsum(((x - mean) ** 2).tolist()) / (n - 1)
    reach = math.sqrt(2 * V * L / n) + 7 * L / (3 * (n - 1))
    return max(0.0, mean - reach), min(1.0, mean + reach), {"V": V, "L": L, "reach": reach}


def _betting(x: Floats, delta: float, ends: Ends, random_state: int | np.random.Generator) -> Found:
    alpha = _alpha(delta, ends)
    shuffled = checks.as_random(random_state).permutation(x)
    low = float(betting.lower_end(shuffled, alpha)) if ends != "high" else 0.0
    high = 1 - float(betting.lower_end(1 - shuffled, alpha)) if ends != "low" else 1.0
    return low, high, {"alpha": alpha, "share": betting.SHARE}


def _alpha(delta: float, ends: Ends) -> float:
    return delta / 2 if ends == "both" else delta


_FOUND: dict[str, Callable[[Floats, float, Ends, int | np.random.Generator], Found]] = {
    "hoeffding": _hoeffding,
    "empirical bernstein": _empirical_bernstein,
    "betting": _betting,
}
