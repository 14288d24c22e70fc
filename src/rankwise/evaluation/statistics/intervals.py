"""Confidence intervals of means over queries: bootstrap (BCa) and Student's t.

Nothing here depends on the order of the queries, not even in the last bit: means are exactly rounded sums, and the
bootstrap draws from sorted values.
"""

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from rankwise._parameters import OpenFraction, PositiveInt, Seed, as_random, validated
from rankwise.errors import DataError
from rankwise.measures._base import Vector
from rankwise.queries.checks import as_weights

How = Literal["bootstrap", "t"]

FEW = 30  # queries below which an approximate interval gets a caution

# Values drawn together: a bootstrap over many queries takes a few megabytes, which stay in the processor's cache.
_DRAWN_TOGETHER = 1 << 17


def mean(values: ArrayLike, weight: ArrayLike | None = None) -> float:
    r"""The (weighted) mean over queries, from exactly rounded sums.

    .. math:: \bar v = \sum_q w_q v_q \Big/ \sum_q w_q

    Parameters
    ----------
    values : array-like of shape (n_queries,)
        One value per query; NaN (a skipped query) is left out.
    weight : array-like of shape (n_queries,), default=None
        Weights of the queries, 0 or more.

    Returns
    -------
    float
        The mean; NaN where no query is left.
    """
    kept, weights = _sort_counted(values, weight)
    if len(kept) == 0:
        return math.nan
    return _mean(kept, weights)


@validated
def interval(
    values: ArrayLike,
    level: OpenFraction = 0.95,
    how: How = "bootstrap",
    *,
    weight: ArrayLike | None = None,
    resamples: PositiveInt = 10_000,
    random_state: Seed = 0,
) -> tuple[float, float]:
    r"""A confidence interval for the mean over future queries, of which the given ones are a sample.

    ``"bootstrap"`` is the bias-corrected and accelerated (BCa) percentile interval: with :math:`\hat\theta^*` the means
    of samples of queries drawn with replacement, it runs between the quantiles

    .. math:: \Phi\Big(z_0 + \frac{z_0 + z_\alpha}{1 - a (z_0 + z_\alpha)}\Big), \qquad
              z_0 = \Phi^{-1}\big(P(\hat\theta^* < \hat\theta)\big), \quad
              a = \frac{\sum_q u_q^3}{6 (\sum_q u_q^2)^{3/2}}

    of :math:`\hat\theta^*`, where :math:`u_q` is the jackknife influence of query q. Values per query are skewed and
    accumulate at 0 and 1. BCa follows the skew, is second-order correct where the plain percentile interval and the t
    interval are first-order correct, and never leaves the range of the values, so nothing has to be clipped. Where it
    is undefined (all drawn means on one side of the mean), the plain percentile interval is given. How well a nominal
    95% is kept depends on the skew: on strongly skewed values (a beta(1, 4) distribution) BCa covered 89, 92, 93 and
    94% with 10, 20, 50 and 100 queries, and the t interval 92, 93, 94 and 95%; on milder ones both covered 94 to 96%
    from 10 queries on. The errors of BCa are distributed more evenly over both sides. Where values are 0 or 1, a small
    sample may hold only one of them and the interval is a point: with 10 queries and a mean of 0.1 either interval
    covers 65%. :func:`~rankwise.guarantees.mean_interval` holds at every number of queries.

    ``"t"`` is :math:`\bar v \pm t_{n-1} s`, symmetric and not clipped, with

    .. math:: s^2 = \frac{n}{n-1} \sum_q w_q^2 (v_q - \bar v)^2 \Big/ \Big(\sum_q w_q\Big)^2,

    the usual :math:`s^2/n` when all weights are the same. Weights belong to their queries: a query is drawn together
    with its weight.

    Parameters
    ----------
    values : array-like of shape (n_queries,)
        One value per query; NaN (a skipped query) is left out, and so are queries of weight 0.
    level : float, default=0.95
        The confidence level, between 0 and 1.
    how : {"bootstrap", "t"}, default="bootstrap"
        The kind of interval.
    weight : array-like of shape (n_queries,), default=None
        Weights of the queries, 0 or more.
    resamples : int, default=10000
        Samples that the bootstrap draws.
    random_state : int or Generator, default=0
        Seed of the bootstrap.

    Returns
    -------
    low : float
        The lower bound; NaN for fewer than two queries, whose spread is unknown; the value itself when all values are
        the same.
    high : float
        The upper bound, likewise.

    References
    ----------
    B. Efron and R. J. Tibshirani (1993). An Introduction to the Bootstrap. Chapman & Hall, eq. (14.10), (14.14) and
    (14.15).

    Examples
    --------
    >>> low, high = interval([0.2, 0.9, 0.4, 0.7, 0.6])
    >>> print(f"{low:.2f} to {high:.2f}")
    0.32 to 0.76
    """
    kept, weights = _sort_counted(values, weight)
    if len(kept) < 2:
        return math.nan, math.nan
    # without spread every resample has the same mean; both formulas would divide by 0
    if kept[0] == kept[-1]:
        return float(kept[0]), float(kept[0])
    if how == "t":
        return _t_interval(kept, weights, level)
    return _bca(kept, weights, resample_means(kept, weights, resamples, as_random(random_state)), level)


def caution(queries: int) -> str:
    """What to print beside intervals over so few queries that they are often too narrow; nothing for more.

    Parameters
    ----------
    queries : int
        The number of queries that count.

    Returns
    -------
    str
        The sentence; empty from 30 queries on.
    """
    if queries >= FEW:
        return ""
    return (
        f"intervals over {queries} queries are approximate and often too narrow; a certificate holds at any number of "
        "queries"
    )


def resample_means(kept: Vector, weights: Vector, resamples: int, random: np.random.Generator) -> Vector:
    """The (weighted) means of samples of the queries, each as large as the set, drawn with replacement.

    Parameters
    ----------
    kept : ndarray
        The values, sorted.
    weights : ndarray
        Their weights.
    resamples : int
        The number of samples.
    random : Generator
        The generator.

    Returns
    -------
    ndarray of shape (resamples,)
        The means.
    """
    count = len(kept)
    equal = bool((weights == weights[0]).all())
    # with equal weights one multiplication and one sum less for every draw
    products = kept if equal else kept * weights
    means = np.empty(resamples)
    # drawn in blocks: all indices at once would take resamples x queries numbers
    step = max(1, _DRAWN_TOGETHER // count)
    for first in range(0, resamples, step):
        block = means[first : first + step]
        drawn = random.integers(0, count, size=(len(block), count))
        total = products.take(drawn).sum(axis=1)
        block[:] = total / count if equal else total / weights.take(drawn).sum(axis=1)
    return np.clip(means, kept[0], kept[-1])  # rounding alone could take a mean out of the range of its values


def standard_error(kept: Vector, weights: Vector) -> float:
    """The standard error of the weighted mean, linearized as that of a ratio of sums."""
    count = len(kept)
    away, size = _scale(weights * (kept - _mean(kept, weights)))
    return size * math.sqrt(count / (count - 1) * math.fsum((away**2).tolist())) / math.fsum(weights.tolist())


def _mean(kept: Vector, weights: Vector) -> float:
    """The weighted mean of values that all count."""
    return math.fsum((kept * weights).tolist()) / math.fsum(weights.tolist())


def _t_interval(kept: Vector, weights: Vector, level: float) -> tuple[float, float]:
    """Student's t interval."""
    from scipy.special import stdtrit

    middle = _mean(kept, weights)
    reach = float(stdtrit(len(kept) - 1, (1 + level) / 2)) * standard_error(kept, weights)
    return middle - reach, middle + reach


def _bca(kept: Vector, weights: Vector, drawn: Vector, level: float) -> tuple[float, float]:
    """The BCa interval from the drawn means; the percentile interval where the correction is not finite."""
    from scipy.special import ndtr, ndtri

    middle = _mean(kept, weights)
    tails = np.array([(1 - level) / 2, (1 + level) / 2])
    # a drawn mean equal to the mean counts half on either side: with few distinct values there are many
    below = (np.count_nonzero(drawn < middle) + np.count_nonzero(drawn <= middle)) / (2 * len(drawn))
    if 0 < below < 1:
        bias = ndtri(below)
        acceleration = _acceleration(kept, weights)
        reach = bias + ndtri(tails)
        slowed = 1 - acceleration * reach
        if (slowed > 0).all():
            tails = ndtr(bias + reach / slowed)
    low, high = np.quantile(drawn, tails)
    return float(low), float(high)


def _acceleration(kept: Vector, weights: Vector) -> float:
    """Efron's a: a sixth of the skewness of the change that leaving one query out makes to the mean."""
    # fsum and not sum: the result must not depend on the order of the queries
    total = math.fsum(weights.tolist())
    left = total - weights
    # leaving out the query that carries all the weight leaves no mean: its influence is then all there is
    without = (math.fsum((kept * weights).tolist()) - kept * weights) / np.where(left > 0, left, np.inf)
    influence, _ = _scale(math.fsum(without.tolist()) / len(kept) - without)
    second = math.fsum((influence**2).tolist())
    return math.fsum((influence**3).tolist()) / (6 * second**1.5) if second > 0 else 0.0


def _scale(values: Vector) -> tuple[Vector, float]:
    """The values divided by the largest of them, and that largest value: no power of them underflows or overflows."""
    size = float(np.abs(values).max())
    return (values / size if size > 0 else values), size


def _sort_counted(values: ArrayLike, weight: ArrayLike | None) -> tuple[Vector, Vector]:
    """The values that count and their weights, sorted: the order of the queries has no effect."""
    array = np.asarray(values, dtype=np.float64) + 0.0  # -0 becomes 0: they sort as equals
    if array.ndim != 1:
        raise DataError(f"values must hold one number per query, got shape {array.shape}")
    if np.isinf(array).any():
        query = int(np.argmax(np.isinf(array)))
        raise DataError(f"values must be finite, got {array[query]} at query {query:,}")
    if weight is None:
        kept = np.sort(array[~np.isnan(array)])
        return kept, np.ones(len(kept))
    weights = as_weights(weight, len(array))
    counts = ~np.isnan(array) & (weights > 0)
    kept, weights = array[counts], weights[counts]
    order = np.lexsort((weights, kept))
    return kept[order], weights[order]
