r"""Tests that decide by queries of a hold-out: one claim, claims along a grid, and claims that follow from answers.

A test at level alpha claims what is false with probability alpha at most. There are one test, the same test for values
that arrive one after the other, and three ways to spend a level delta on several claims:

=========================== ==================================================== ======================================
function                    the claims                                           each is tested at
=========================== ==================================================== ======================================
:func:`shows_above`         a mean is above a threshold                          the level
:class:`RunningTest`        the same, at any time                                the level
:func:`level_of_each`       K claims, all of them or any choice                  delta / K
:func:`count_until_failure` a fixed sequence, up to the first that fails         delta
:func:`level_of_attempt`    attempt j, chosen by the answers of earlier ones     delta / (j (j + 1) 2^(b+1) C(j-1, b))
=========================== ==================================================== ======================================

:func:`queries_to_show` says how many queries a test needs.

References
----------
I. Waudby-Smith, A. Ramdas (2024). Estimating means of bounded random variables by betting. Journal of the Royal
Statistical Society B 86(1), 1-27. doi:10.1093/jrsssb/qkad009.

A. Angelopoulos, S. Bates, E. Candes, M. Jordan, L. Lei (2021). Learn then test: calibrating predictive algorithms to
achieve risk control. arXiv:2110.01052. Its fixed sequences are those of :func:`count_until_failure`.

A. Blum, M. Hardt (2015). The ladder: a reliable leaderboard for machine learning competitions. ICML. arXiv:1502.04585.
It counts histories of answers, as :func:`level_of_attempt` does.
"""

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._tables import ShownAsFacts
from rankwise.errors import RankwiseError
from rankwise.guarantees._bound import refuse_unless, refuse_unless_chance
from rankwise.guarantees.holdout.betting import SHARE, BetMoments, Readings
from rankwise.guarantees.holdout.intervals import (
    Plan,
    betting_power,
    blank_uncounted,
    first,
    refuse_unless_known,
    scale_values,
)

# What a plan adds to the number at which the power is reached approximately. On coins and on Beta distributions of
# means from 0.25 to 0.93 the power at that number is between 0.76 and 0.88 where 0.8 was asked for; a tenth more
# queries add 0.05 to 0.08.
_SAFE = 1.1
# Points that a distribution of values is represented by, and the share of the largest variance from which on it is that
# of a coin.
_POINTS, _COIN = 100, 0.98
_CONSTANT = 1e-9  # a variance below which values are taken to be constant
# The largest number of an attempt.
_MOST = 1_000_000


def shows_above(
    values: ArrayLike,
    threshold: float,
    level: float,
    *,
    span: tuple[float, float] = (0.0, 1.0),
    weight: ArrayLike | None = None,
    group: NDArray[np.int64] | None = None,
    seen: NDArray[np.bool_] | None = None,
) -> bool:
    r"""Whether bets on the values show, at this level, that their mean over future queries is above the threshold.

    .. math:: K(\theta) \ge 1 / \alpha

    with K the final capital of :mod:`~rankwise.guarantees.holdout.betting`, and the threshold theta and the values
    scaled so that the span becomes [0, 1]. It is whether the lower end of the betting interval at this level reaches
    the threshold, without the search for that end.

    Parameters
    ----------
    values : array-like, shape (n_queries,)
        The values of the queries; NaN where a query does not count.
    threshold : float
        The threshold.
    level : float
        The probability alpha with which a mean at or below the threshold may pass; 0 shows nothing.
    span : tuple of float, default=(0.0, 1.0)
        The smallest and the largest possible value, known beforehand.
    weight : array-like, shape (n_queries,), default=None
        Accepted if all weights above 0 are equal; queries of weight 0 do not count.
    group : ndarray of int64, shape (n_queries,), default=None
        Numbers of :func:`rankwise.queries.overlap.same_content`: queries of one group have the same content. None
        means that all queries are distinct.
    seen : ndarray of bool, shape (n_queries,), default=None
        Whether the content of each query was seen in training.

    Returns
    -------
    bool
        Whether it is shown. False if no query is sure to be a draw. Nothing needs to be shown of a threshold below the
        span, and a threshold of its upper end or more is never shown to be exceeded.

    Notes
    -----
    *Proof.* Let the threshold and the values be scaled to [0, 1]. If the mean is theta or less, each factor of the
    capital has an expectation of at most 1 given the earlier values, because no bet sees its value. So K(theta) has an
    expectation of at most 1, and by Markov's inequality it reaches 1/alpha with probability at most alpha. Where
    queries repeat each other, or repeat queries that were seen, the capital is the smallest of all readings of which
    queries are draws, so it is at most that of the true reading, of which the same holds
    (:func:`~rankwise.guarantees.holdout.betting.lower_end_of_readings`). The values that count are draws of the
    distribution given that a query counts, whatever their number is.

    Examples
    --------
    >>> values = [0.61, 0.32, 0.78, 0.95, 0.44, 0.57, 0.83, 0.70, 0.49, 0.66] * 10
    >>> shows_above(values, 0.58, 0.05), shows_above(values, 0.62, 0.05)
    (True, False)
    """
    refuse_unless_known("shows_above", "betting", "low", span)
    if not (math.isfinite(threshold) and 0 <= level < 1):
        raise RankwiseError(
            f"shows_above: threshold must be finite and level in [0, 1), got threshold={threshold!r}, level={level!r}"
        )
    kept = blank_uncounted(values, weight)
    x = scale_values("shows_above", kept, span)
    losses = np.full(kept.shape, math.nan)
    losses[~np.isnan(kept)] = 1 - x
    readings, theta = Readings.of(losses, group, seen), (threshold - span[0]) / (span[1] - span[0])
    if theta < 0:
        return True
    if theta >= 1 or level == 0 or not len(readings.sure):
        return False
    return readings.capital(level)(theta) >= math.log(1 / level)


class RunningTest(ShownAsFacts):
    r"""Whether values that arrive one after the other show that their mean is above a threshold, asked at any time.

    .. math:: \max_{s \le t} K_s(\theta) \ge 1 / \alpha, \qquad
        K_s(\theta) = \prod_{i \le s} \big(1 + \min(\lambda_i, c/\theta) (x_i - \theta)\big)

    with the bets of a stream of :mod:`~rankwise.guarantees.holdout.betting`, values and threshold scaled to [0, 1].

    *Proof.* If each value has a mean of theta or less, given the earlier ones, the capital is a nonnegative
    supermartingale that begins at 1. By Ville's inequality it ever reaches 1/alpha with probability at most alpha.

    Parameters
    ----------
    threshold : float
        The threshold.
    level : float
        The probability alpha with which a mean at or below the threshold may ever pass.
    span : tuple of float, default=(0.0, 1.0)
        The smallest and the largest possible value.

    Attributes
    ----------
    n : int
        Number of values so far.
    shown : bool
        Whether it was shown, now or earlier.

    Examples
    --------
    >>> test = RunningTest(0.58, 0.05)
    >>> answers = [test.update(value) for value in [0.61, 0.32, 0.78, 0.95, 0.44, 0.57, 0.83, 0.70, 0.49, 0.66] * 30]
    >>> answers.index(True), test.n
    (140, 300)
    """

    def __init__(self, threshold: float, level: float, *, span: tuple[float, float] = (0.0, 1.0)) -> None:
        refuse_unless_known("RunningTest", "betting", "low", span)
        refuse_unless_chance("RunningTest", level=level)
        if not span[0] < threshold < span[1]:
            raise RankwiseError(f"RunningTest: threshold must be inside of the span {span}, got {threshold!r}")
        self.threshold, self.level, self.span, self.shown = threshold, level, span, False
        self._log_capital, self._moments = 0.0, BetMoments()

    @property
    def n(self) -> int:
        """Number of values so far."""
        return self._moments.count

    def update(self, values: ArrayLike, *, optional: ArrayLike | None = None) -> bool:
        """Add the next values, one after the other.

        Parameters
        ----------
        values : float or array-like
            The next values; NaN is left out.
        optional : array-like of bool, default=None
            Whether it is open that a value is a draw. Such a value may lower the capital and does not raise it, so the
            capital is at most that of the draws alone, whichever they are: bets may depend on anything before them.

        Returns
        -------
        bool
            Whether it is shown that the mean is above the threshold.
        """
        given = np.atleast_1d(np.asarray(values, dtype=np.float64))
        x, counted = scale_values("RunningTest", given, self.span), ~np.isnan(given)
        theta = (self.threshold - self.span[0]) / (self.span[1] - self.span[0])
        place, wanted = self._moments.count + np.arange(1, len(x) + 1), math.log(1 / self.level)
        _, variances = self._moments.before(x)
        sizes = np.minimum(np.sqrt(2 * wanted / (variances * place * np.log(place + 1))), SHARE / theta)
        growth = np.log1p(sizes * (x - theta))
        if optional is not None:
            growth = np.where(np.asarray(optional, dtype=bool)[counted], np.minimum(growth, 0.0), growth)
        capital = np.add.accumulate(np.concatenate([[self._log_capital], growth]))
        self._log_capital = float(capital[-1])
        self.shown = self.shown or bool((capital >= wanted).any())
        return self.shown

    def to_dict(self) -> dict[str, Any]:
        """Plain values from which :meth:`from_dict` continues, to the bit."""
        return {
            "threshold": self.threshold,
            "level": self.level,
            "span": list(self.span),
            "shown": self.shown,
            "log_capital": self._log_capital,
            "moments": dict(vars(self._moments)),
        }

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> "RunningTest":
        """The test that :meth:`to_dict` described."""
        found = cls(state["threshold"], state["level"], span=tuple(state["span"]))
        found.shown, found._log_capital = state["shown"], state["log_capital"]
        vars(found._moments).update(state["moments"])
        return found

    def __repr__(self) -> str:
        asked = f"threshold={self.threshold:g}, level={self.level:.3g}"
        return f"RunningTest({asked}; {'shown' if self.shown else 'not shown'} after {self.n:,} values)"


def level_of_each(delta: float, claims: int) -> float:
    r"""The level at which each of K claims is tested, if all of them, or any that the data choose, hold together.

    .. math:: \delta / K

    *Proof.* Let :math:`F_k` be the event that claim k is made and false, of probability :math:`\delta / K` at most, and
    let :math:`\hat k` be any function of the data. By the union bound

    .. math:: P(F_{\hat k}) \le P\Big(\bigcup_k F_k\Big) \le \sum_{k=1}^K P(F_k) \le \delta .

    Nothing is assumed about how the claims depend on each other.

    Parameters
    ----------
    delta : float
        The probability with which any of the claims may be false.
    claims : int
        Their number K, fixed beforehand.

    Returns
    -------
    float
        The level.

    Examples
    --------
    >>> level_of_each(0.05, 10)
    0.005
    """
    refuse_unless_chance("level_of_each", delta=delta)
    if claims < 1:
        raise RankwiseError(f"level_of_each: claims must be at least 1, got {claims!r}")
    return delta / claims


def count_until_failure(answers: Iterable[bool]) -> int:
    """The number of claims of a fixed sequence that are made: those before the first that its test does not show.

    *Proof* that any claim made is false with probability delta at most, if each is tested at the whole delta. Let claim
    s be the first false one of the sequence, which is fixed before the data are seen. A false claim is claim s or comes
    after it, so it is made only if the test shows claim s, which happens with probability delta at most. Nothing is
    assumed about how the tests depend on each other, and no correction is paid.

    Parameters
    ----------
    answers : iterable of bool
        The answers of the tests in the order of the sequence; the ones after the first False are not asked for.

    Returns
    -------
    int
        The number of answers before the first False.

    Examples
    --------
    >>> values = [0.61, 0.32, 0.78, 0.95, 0.44, 0.57, 0.83, 0.70, 0.49, 0.66] * 10
    >>> count_until_failure(shows_above(values, threshold, 0.05) for threshold in (0.3, 0.5, 0.7, 0.9))
    2
    """
    count = 0
    for answer in answers:
        if not answer:
            break
        count += 1
    return count


def level_of_attempt(delta: float, attempt: int, passed: int) -> float:
    r"""The level of attempt j after b earlier attempts passed, if each attempt may depend on all earlier answers.

    .. math:: \delta_j = \frac{\delta}{j (j + 1) \; w_{jb} \binom{j - 1}{b}}, \qquad
        w_{jb} = 2^{b + 1}, \text{ and } 2^{j - 1} \text{ for } b = j - 1.

    *Proof* that any false claim ever passes with probability delta at most. What is asked in attempt j may be any
    function of the j - 1 earlier answers, passed or not, and of what is independent of the hold-out. So for each of the
    :math:`2^{j-1}` possible histories of answers it is one fixed claim. There are :math:`\binom{j-1}{b}` histories with
    b passes, and under each of them a false claim passes at level :math:`\delta_j` with probability :math:`\delta_j` at
    most, whether that history comes about or not. By the union bound over attempts and histories the probability is at
    most

    .. math:: \sum_{j \ge 1} \sum_{b=0}^{j-1} \binom{j - 1}{b} \delta_j
        = \delta \sum_{j \ge 1} \frac{1}{j (j + 1)} \sum_{b=0}^{j-1} \frac{1}{w_{jb}}
        = \delta \sum_{j \ge 1} \frac{1}{j (j + 1)} = \delta ,

    because :math:`\sum_{b \le j-2} 2^{-(b+1)} = 1 - 2^{-(j-1)}`, to which b = j - 1 adds what is missing. Nothing is
    assumed about how claims are chosen. The proof fails if anything but these answers depends on the hold-out: a mean
    that is shown, or a third kind of answer, makes more histories.

    Parameters
    ----------
    delta : float
        The probability with which any false claim may ever pass.
    attempt : int
        The number j of the attempt, from 1 on.
    passed : int
        How many of the j - 1 earlier attempts passed.

    Returns
    -------
    float
        The level; 0 where it is below the smallest number.

    Examples
    --------
    >>> [round(level_of_attempt(0.05, attempt, 0), 6) for attempt in (1, 2, 5, 20)]
    [0.025, 0.004167, 0.000833, 6e-05]
    >>> round(level_of_attempt(0.05, 5, 1), 6)
    0.000104
    """
    refuse_unless_chance("level_of_attempt", delta=delta)
    whole = all(isinstance(one, (int, np.integer)) and not isinstance(one, bool) for one in (attempt, passed))
    if not (whole and 0 <= passed < attempt <= _MOST):
        raise RankwiseError(
            f"level_of_attempt: attempt must be from 1 to {_MOST:,} and passed from 0 to attempt - 1, "
            f"got attempt={attempt!r}, passed={passed!r}"
        )
    attempt, passed = int(attempt), int(passed)
    doubled = attempt - 1 if passed == attempt - 1 else passed + 1
    shares = attempt * (attempt + 1) * (1 << doubled) * math.comb(attempt - 1, passed)
    return float(Fraction(delta) / shares)


# ------------------------------------------------------------------------------------------------------------- planning


def queries_to_show(
    margin: float,
    *,
    sd: float,
    threshold: float = 0.5,
    level: float = 0.05,
    power: float = 0.8,
    span: tuple[float, float] = (0.0, 1.0),
) -> Plan:
    """Number of queries with which :func:`shows_above` shows a mean that is above the threshold by a margin.

    The power is that of bets on values of a Beta distribution with the mean and the standard deviation that are
    declared, under a normal approximation of the logarithm of the capital. A tenth is added, and the sum is rounded up
    to two digits: in simulations the power at this number is at least the one that was asked for.

    Parameters
    ----------
    margin : float
        The true mean minus the threshold, as declared: not computed from the queries of a gate.
    sd : float
        A guess of the standard deviation of the values.
    threshold : float, default=0.5
        The threshold.
    level : float, default=0.05
        The level of the test; that of a gate is given by :func:`level_of_attempt`.
    power : float, default=0.8
        Probability with which the mean has to be shown to be above the threshold.
    span : tuple of float, default=(0.0, 1.0)
        The smallest and the largest possible value; (-1, 1) for differences of a measure.

    Returns
    -------
    Plan
        The number.

    Examples
    --------
    >>> print(queries_to_show(0.05, sd=0.3, threshold=0.6, level=level_of_attempt(0.05, attempt=20, passed=0)))
    1,300 queries for a mean of 0.05 above 0.6, shown 80% of the time at level 6e-05 (betting: approximation)
    """
    refuse_unless_known("queries_to_show", "betting", "low", span)
    refuse_unless("queries_to_show", above=0, margin=margin, sd=sd)
    refuse_unless("queries_to_show", threshold=threshold)
    refuse_unless_chance("queries_to_show", level=level, power=power)
    width = span[1] - span[0]
    m, mean, variance = (threshold - span[0]) / width, (threshold + margin - span[0]) / width, (sd / width) ** 2
    if not (m >= 0 and mean < 1):
        raise RankwiseError(
            f"queries_to_show: threshold and threshold + margin must be inside of the span {span}, got "
            f"threshold={threshold:g} and margin={margin:g}"
        )
    values, chances = _distribution(mean, min(variance, mean * (1 - mean)))
    least = first(lambda n: betting_power(n, m, values, chances, level) >= power)
    unit = 10 ** max(0, len(str(math.ceil(least * _SAFE))) - 2)
    return Plan(
        queries=math.ceil(least * _SAFE / unit) * unit,
        method="betting",
        trust="approximation",
        purpose=f"a mean of {margin:g} above {threshold:g}, shown {100 * power:g}% of the time at level {level:.2g}",
        statement="P(half of the capital against the threshold >= 1/level), its logarithm approximately normal",
        terms={"margin": margin, "sd": sd, "threshold": threshold, "level": level, "power": power, "least": least},
    )


def _distribution(mean: float, variance: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Values in [0, 1] and their chances: points of a Beta distribution, or those of a coin or of a constant."""
    from scipy.special import betaincinv

    largest = mean * (1 - mean)
    if variance >= _COIN * largest:
        return np.array([0.0, 1.0]), np.array([1 - mean, mean])
    if variance < _CONSTANT:
        return np.array([mean]), np.array([1.0])
    total = largest / variance - 1
    points = betaincinv(mean * total, (1 - mean) * total, (np.arange(_POINTS) + 0.5) / _POINTS)
    return points, np.full(_POINTS, 1 / _POINTS)
