r"""Confidence bounds for a mean by betting: a mean m is refuted if bets against it would have multiplied the capital.

A gambler bets, value after value, that values x in [0, 1] are above m on average:

.. math:: K_t(m) = \prod_{i \le t} \big(1 + \min(\lambda_i, c/m) \, (x_i - m)\big).

Each bet is made before its value is seen, and no bet can lose more than the share c of the capital. If the mean is m or
less, the game is fair or worse, so the expected capital is at most 1. Each factor falls as m grows, so the refuted m
are an interval from 0 on, whose end is a lower bound on the mean; the upper bound is one minus that of 1 - x.

For n values, half of the capital is given to 40 gamblers, each with an order of the values of its own that is fixed
beforehand, and half to five gamblers whose bets have fixed sizes, so no order matters to them. The sum of their
final capitals has an expectation of at most 1, so by Markov's inequality it reaches 1/alpha with probability at most
alpha. No seed can be chosen, and the result depends little on the order of the input (:func:`lower_end`). If it is not
known which of the values are draws, the five gamblers bet alone (:func:`lower_end_of_readings`).

For values that arrive one after the other (:class:`LowerGrid`) one gambler bets, and by Ville's inequality the capital
*ever* reaches 1/alpha with probability at most alpha.

The size of a bet estimates, from the earlier values, what makes the capital grow fastest:

.. math:: \lambda_i = \sqrt{\frac{2 \log(1/\alpha)}{n \, \hat\sigma^2_{i-1}}}, \qquad
          \hat\sigma^2_i = \frac{1/4 + \sum_{j \le i} (x_j - \hat\mu_j)^2}{i + 1}, \qquad
          \hat\mu_i = \frac{1/2 + \sum_{j \le i} x_j}{i + 1},

with i log(i + 1) in place of n if the number of values is not known in advance.

References
----------
I. Waudby-Smith, A. Ramdas (2024). Estimating means of bounded random variables by betting. Journal of the Royal
Statistical Society B 86(1), 1-27. doi:10.1093/jrsssb/qkad009.

:class:`Readings` are upper bounds on a mean loss where it is not known which queries of a hold-out are independent
draws.
Queries with the same content are copies of one draw, or several draws of a query that is frequent; and queries whose
content was seen in training are the training rows themselves, or further draws. Data cannot tell which. A *reading*
says which queries are draws:

- of a group of queries with the same content, at least one is a draw, and any number of the others;
- of a group whose content was seen in training, any number, and possibly none;
- of a group in which some query does not count, any number of those that do, and possibly none: the draw may be the
  query that does not count.

Each bound here is the largest over all readings, mixtures included. It therefore holds under the reading that is true.

*Which readings matter.* Let the bound grow with every loss, and otherwise depend on the number N of draws alone. Among
the readings with N draws, take one with the largest bound. From every group of the first kind it may be assumed to hold
the query with the largest loss: if it does not, exchange one of its queries for that one. The other draws may be
assumed to be the largest of all other losses. So the largest bound is found among the readings that take the largest
loss of every group of the first kind (the ``sure`` losses), and of all other losses (the ``optional`` ones) the
largest, next to largest and so on, up to any number.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
# The logarithm of a final capital as a function of the mean m that is bet against.
Capital = Callable[[float], float]

# The share c of the capital that may be lost at once. Any number below 1 is valid; the authors name 1/2 and 3/4. On
# Bernoulli samples of 5 to 50 values with a mean of 0.95, 3/4 gives intervals that are 12 to 18% narrower; with a mean
# of 0.5 or 0.8 the difference is at most 3% from 50 values on.
SHARE = 0.75
# Accuracy of the end of the interval; the returned value is on the safe side of it.
ACCURACY = 1e-9
# Largest number of array entries at a time, values x grid of means.
_TOGETHER = 1 << 18


class BetMoments:
    """Mean and variance of the values so far, shrunk toward 1/2 and 1/4; the next bet may use them."""

    def __init__(self) -> None:
        self.count, self.total, self.squares = 0, 0.0, 0.0

    def before(self, x: Floats) -> tuple[Floats, Floats]:
        """Mean and variance before each of the next values, which are then added.

        The result is the same to the bit however the values are divided into calls.

        Parameters
        ----------
        x : ndarray, shape (n,)
            The next values.

        Returns
        -------
        means, variances : ndarray, shape (n,)
            Before each value.
        """
        place = self.count + np.arange(1, len(x) + 1)
        totals = np.add.accumulate(np.concatenate([[self.total], x]))
        means = (0.5 + totals) / (np.concatenate([[self.count], place]) + 1)
        squares = np.add.accumulate(np.concatenate([[self.squares], (x - means[1:]) ** 2]))
        variances = (0.25 + squares[:-1]) / place
        self.count += len(x)
        self.total, self.squares = float(totals[-1]), float(squares[-1])
        return means[:-1], variances


def bets(x: Floats, alpha: float) -> Floats:
    """The sizes lambda of the bets on rows of values in [0, 1] of a length n that is known beforehand.

    Parameters
    ----------
    x : ndarray, shape (..., n)
        Values; the last axis is the order of the bets.
    alpha : float
        The level.

    Returns
    -------
    ndarray, shape (..., n)
        The sizes.
    """
    n = x.shape[-1]
    place = np.arange(1, n + 1)
    means = (0.5 + np.add.accumulate(x, axis=-1)) / (place + 1)
    squares = np.add.accumulate((x - means) ** 2, axis=-1)
    variances = np.empty_like(x)  # before the value is seen
    variances[..., 0] = 0.25
    variances[..., 1:] = (0.25 + squares[..., :-1]) / place[1:]
    return np.asarray(np.sqrt(2 * math.log(1 / alpha) / (n * variances)))


def log_capital(x: Floats, sizes: Floats, m: float) -> Floats:
    """The logarithm of the final capital of each row of values against the mean m."""
    most = SHARE / m if m > 0 else math.inf  # anything may be bet against m = 0
    factors = np.minimum(sizes, most) * (x - m)
    factors += 1
    odd = np.zeros(factors.shape[:-1])
    for _ in range(3):  # the logarithm of a product of eight costs as much as that of one factor
        half = factors.shape[-1] // 2
        odd += np.log(factors[..., 2 * half :]).sum(axis=-1)
        factors = factors[..., :half] * factors[..., half : 2 * half]
    return np.asarray(np.log(factors).sum(axis=-1) + odd)


def lower_end(x: Floats, alpha: float) -> float:
    """The largest mean that bets on n values in [0, 1] refute; 0 if none is refuted.

    Parameters
    ----------
    x : ndarray, shape (n,)
        Values.
    alpha : float
        The level.

    Returns
    -------
    float
        A lower bound on the mean of independent draws, with probability 1 - alpha. It is too small by at most
        ``ACCURACY``.
    """
    return _largest_refuted(capital_of_values(x, alpha), alpha)


def capital_of_values(x: Floats, alpha: float) -> Capital:
    """The logarithm of the final capital of all gamblers, who bet on n values in [0, 1], as a function of the mean m.

    Parameters
    ----------
    x : ndarray, shape (n,)
        Values.
    alpha : float
        The level that the sizes of bets are made for; the capital is valid at any.

    Returns
    -------
    callable
        m -> the logarithm of the capital, which falls along m.
    """
    values = np.asarray(x, dtype=np.float64)
    ordered = values[fix_orders(len(values))]
    sizes, orders, steady = bets(ordered, alpha), len(ordered), fix_sizes(len(values), alpha)[:, None]

    def capital(m: float) -> float:
        adaptive = np.logaddexp.reduce(log_capital(ordered, sizes, m)) - math.log(orders)
        fixed = np.logaddexp.reduce(log_capital(values, steady, m)) - math.log(len(steady))
        return float(np.logaddexp(adaptive, fixed)) - math.log(2)

    return capital


@lru_cache(maxsize=2)
def fix_orders(n: int) -> NDArray[np.int64]:
    """Orders of n values, the same in every call: 40, and fewer of more than 50,000 values; shape (n_orders, n)."""
    random = np.random.default_rng(0)
    orders = np.stack([random.permutation(n) for _ in range(min(40, max(4, 2_000_000 // max(1, n))))])
    orders.setflags(write=False)
    return orders


def fix_sizes(n: int, alpha: float) -> Floats:
    """Five sizes of bets for n values, n rounded up to a power of 2: the best for five variances from 1/4 down."""
    power = 1 << (n - 1).bit_length()
    return np.asarray(np.sqrt(2 * math.log(1 / alpha) / (power * np.geomspace(0.25, max(1 / power, 1e-3), 5))))


def lower_end_of_readings(sure: Floats, optional: Floats, alpha: float) -> float:
    r"""The largest mean that is refuted whichever of the optional values are draws; 0 if none is.

    The sample holds the values ``sure`` and any number of those in ``optional``. With N values, and sizes of bets that
    depend on N alone,

    .. math:: K_N(m) = \frac{1}{10} \sum_{k=1}^{5} \prod_{i \le N} \big(1 + \min(\lambda_k, c/m)(x_i - m)\big)

    is the final capital of the five gamblers of :func:`lower_end` who bet fixed sizes, less than its total capital.

    Parameters
    ----------
    sure : ndarray, shape (n_sure,)
        Values in [0, 1] that are draws; at least one.
    optional : ndarray, shape (n_optional,)
        Values in [0, 1] of which any may be draws, or none.
    alpha : float
        The level.

    Returns
    -------
    float
        A lower bound on the mean of the draws, with probability 1 - alpha.

    Notes
    -----
    *Proof.* Take the reading that is true, with N draws. If the mean is m or less, the total capital of
    :func:`lower_end` reaches 1/alpha with probability at most alpha, and so does K_N, which is a part of it. K_N grows
    with each of its values, so among the readings with N values it is smallest for the one that adds the N - n_sure
    smallest optional values. A mean is refuted here only if all of these smallest capitals, one for each N, reach
    1/alpha; so, only if that of the true reading does. Hence both functions together fail with probability alpha, and
    whether data leave readings open may depend on the data.
    """
    return _largest_refuted(capital_of_readings(sure, optional, alpha), alpha)


def capital_of_readings(sure: Floats, optional: Floats, alpha: float) -> Capital:
    """The logarithm of the smallest final capital, over the number of optional values that are draws, as a function.

    Parameters
    ----------
    sure : ndarray, shape (n_sure,)
        Values in [0, 1] that are draws; at least one.
    optional : ndarray, shape (n_optional,)
        Values in [0, 1] of which any may be draws, or none.
    alpha : float
        The level that the sizes of bets are made for.

    Returns
    -------
    callable
        m -> the logarithm of the smallest K_N(m) of :func:`lower_end_of_readings`, which falls along m.
    """
    values, rest = np.asarray(sure, dtype=np.float64), np.sort(np.asarray(optional, dtype=np.float64))
    lengths = [(len(values) + more - 1).bit_length() for more in range(len(rest) + 1)]
    games = []  # one for each power of 2 that the number of values is rounded up to
    for length in sorted(set(lengths)):
        first, last = bisect_left(lengths, length), bisect_right(lengths, length)
        games.append((fix_sizes(len(values) + first, alpha), first, last))

    def capital(m: float) -> float:
        most, lowest = SHARE / m if m > 0 else math.inf, math.inf
        for bet, first, last in games:
            size = np.minimum(bet, most)[:, None]
            with_sure = log_capital(values, bet[:, None], m)[:, None]
            more = np.cumsum(np.log1p(size * (rest[: last - 1] - m)), axis=1)
            logs = np.concatenate([with_sure, with_sure + more], axis=1)[:, first:]
            lowest = min(lowest, float(np.logaddexp.reduce(logs, axis=0).min()) - math.log(2 * len(bet)))
        return lowest

    return capital


def _largest_refuted(log_capital_against: Capital, alpha: float) -> float:
    """The largest m with a capital of 1/alpha or more, too small by at most ``ACCURACY``; capital falls along m."""
    wanted, refuted, kept = math.log(1 / alpha), 0.0, 1.0
    if log_capital_against(0.0) < wanted:
        return 0.0
    while kept - refuted > ACCURACY:
        middle = (refuted + kept) / 2
        if log_capital_against(middle) >= wanted:
            refuted = middle
        else:
            kept = middle
    return refuted


class LowerGrid:
    """A lower bound at all times: the capital against every mean of a grid, updated in bounded memory.

    Parameters
    ----------
    alpha : float
        Probability that the bound may ever fail.
    steps : int
        The grid is 0, 1/steps, ..., 1; the bound is rounded down to it.
    """

    def __init__(self, alpha: float, steps: int) -> None:
        self.alpha, self.low, self.moments = alpha, 0.0, BetMoments()
        self.grid = np.arange(steps + 1) / steps
        self.capital = np.zeros(steps + 1)  # logarithms

    def update(self, x: Floats) -> Floats:
        """The bound after each of the next values."""
        block = max(1, _TOGETHER // len(self.grid))
        parts = [self._update(x[first : first + block]) for first in range(0, len(x), block)]
        return np.concatenate([np.empty(0), *parts])

    def _update(self, x: Floats) -> Floats:
        place = self.moments.count + np.arange(1, len(x) + 1)
        _, variances = self.moments.before(x)
        wanted = math.log(1 / self.alpha)
        sizes = np.sqrt(2 * wanted / (variances * place * np.log(place + 1)))
        with np.errstate(divide="ignore"):
            most = SHARE / self.grid
        growth = np.log1p(np.minimum(sizes[:, None], most) * (x[:, None] - self.grid))
        capital = np.add.accumulate(np.concatenate([self.capital[None], growth]), axis=0)
        self.capital = capital[-1]
        # Capital falls along the grid, so the refuted means are the first ones.
        refuted = np.count_nonzero(capital[1:] >= wanted, axis=1)
        lows = np.maximum(self.low, np.maximum.accumulate(self.grid[np.maximum(refuted - 1, 0)]))
        self.low = float(lows[-1])
        return np.asarray(lows)


# ------------------------------------------------------------------------------------------------------------- readings


@dataclass(frozen=True)
class Readings:
    """The losses of a hold-out, divided by what is known about them.

    Attributes
    ----------
    sure : ndarray
        The losses of queries that are draws under the readings that matter.
    optional : ndarray
        The losses of queries of which any number may be draws, in falling order.
    """

    sure: Floats
    optional: Floats

    @classmethod
    def of(
        cls, losses: ArrayLike, group: NDArray[np.int64] | None = None, seen: NDArray[np.bool_] | None = None
    ) -> "Readings":
        """Divide losses by group.

        Parameters
        ----------
        losses : array-like, shape (n_queries,)
            Losses; NaN where a query does not count.
        group : ndarray of int64, shape (n_queries,), default=None
            Numbers of :func:`rankwise.queries.overlap.same_content`: queries of one group have the same content. None
            means that all queries are distinct.
        seen : ndarray of bool, shape (n_queries,), default=None
            Whether the content of each query was seen in training.

        Returns
        -------
        Readings
            The losses that count.

        Examples
        --------
        >>> Readings.of([0.1, 0.4, 0.2, float("nan")], np.array([0, 0, 1, 2]))
        Readings(sure=array([0.4, 0.2]), optional=array([0.1]))
        """
        values = np.asarray(losses, dtype=np.float64)
        if group is None and seen is None:
            return cls(values[~np.isnan(values)], np.empty(0))
        group = np.arange(len(values)) if group is None else group
        aside = np.isnan(values) if seen is None else np.isnan(values) | seen
        counted = np.flatnonzero(~np.isin(group, group[aside]))
        order = counted[np.lexsort((counted, -values[counted], group[counted]))]
        sure = np.sort(order[np.unique(group[order], return_index=True)[1]])
        rest = np.setdiff1d(np.flatnonzero(~np.isnan(values)), sure)
        return cls(values[sure], np.sort(values[rest])[::-1])

    def capital(self, alpha: float) -> Capital:
        """The logarithm of the capital of bets on 1 - loss, at least one of which is sure to be a draw.

        Parameters
        ----------
        alpha : float
            The level that the sizes of bets are made for.

        Returns
        -------
        callable
            m -> the logarithm of the capital of all gamblers or, where losses are optional, of those whose bets have
            fixed sizes, the smallest of all readings.
        """
        if len(self.optional):
            return capital_of_readings(1 - self.sure, 1 - self.optional, alpha)
        return capital_of_values(1 - self.sure, alpha)

    @property
    def largest_mean(self) -> float:
        """The largest mean loss of all readings; NaN if no query is sure to be a draw."""
        if not len(self.sure):
            return math.nan
        return float(self._means.max())

    @property
    def _means(self) -> Floats:
        """The mean of the sure losses, and of those with 1, 2, ... of the optional ones."""
        sums = math.fsum(self.sure.tolist()) + np.concatenate([[0.0], np.cumsum(self.optional)])
        return np.asarray(sums / np.arange(len(self.sure), len(self.sure) + len(self.optional) + 1))

    def hoeffding(self, delta: float) -> float:
        """The largest of Hoeffding's upper ends: mean + sqrt(log(1/delta)/(2 N)), of losses in [0, 1]."""
        N = np.arange(len(self.sure), len(self.sure) + len(self.optional) + 1)
        return min(1.0, float((self._means + np.sqrt(math.log(1 / delta) / (2 * N))).max()))

    def betting(self, delta: float) -> float:
        """The largest upper end by bets whose sizes are fixed, see :func:`lower_end_of_readings`."""
        return 1.0 - lower_end_of_readings(1 - self.sure, 1 - self.optional, delta)
