r"""Tests that decide by queries of a hold-out: one claim, claims along a grid, and claims that follow from answers.

A test at level alpha claims what is false with probability alpha at most. There are one test and three ways to spend a
level delta on several claims:

=========================== ==================================================== ======================================
function                    the claims                                           each is tested at
=========================== ==================================================== ======================================
:func:`shows_above`         a mean is above a threshold                          the level
:func:`level_of_each`       K claims, all of them or any choice                  delta / K
:func:`count_until_failure` a fixed sequence, up to the first that fails         delta
:func:`level_of_attempt`    attempt j, chosen by the answers of earlier ones     delta / (j (j + 1) 2^(b+1) C(j-1, b))
=========================== ==================================================== ======================================

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

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.errors import RankwiseError
from rankwise.guarantees._bound import refuse_unless_chance
from rankwise.guarantees.holdout.betting import Readings
from rankwise.guarantees.holdout.intervals import blank_uncounted, refuse_unless_known, scale_values


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
    if not 0 <= passed < attempt:
        raise RankwiseError(
            "level_of_attempt: attempt must be at least 1 and passed between 0 and attempt - 1, "
            f"got attempt={attempt!r}, passed={passed!r}"
        )
    doubled = attempt - 1 if passed == attempt - 1 else passed + 1
    shares = attempt * (attempt + 1) * (1 << doubled) * math.comb(attempt - 1, passed)
    return float(Fraction(delta) / shares)
