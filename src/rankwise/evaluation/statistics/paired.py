"""Paired tests over values per query: whether one ranking is better than another beyond chance.

:func:`paired_test` runs Fisher's randomization test, Student's t test, Wilcoxon's signed-rank test or the sign test.
With up to 30 differences the randomization and Wilcoxon tests are exact.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from rankwise._parameters import PositiveInt, Seed, as_random, validated
from rankwise._tables import ShownAsFacts
from rankwise.errors import DataError, RankwiseError, in_one_line
from rankwise.evaluation.statistics.intervals import mean, standard_error
from rankwise.measures._base import Vector
from rankwise.queries.checks import as_weights

Test = Literal["t", "randomization", "wilcoxon", "sign"]
Alternative = Literal["two-sided", "greater", "less"]

# Two values of a query that differ by less than this share of them differ by rounding, not by ranking.
_ROUNDING = 1e-12
# All 2^30 sign flips are counted from two sorted halves of 2^15 sums each, faster than 100,000 random flips.
_EXACT_UP_TO = 30
# Random flips summed together: any number of resamples takes a few hundred kilobytes, which stay in the cache.
_FLIPPED_TOGETHER = 1 << 14


@dataclass(frozen=True, slots=True)
class PairedTest(ShownAsFacts):
    """The result of a paired test over queries.

    Attributes
    ----------
    test : str
        Which test.
    alternative : str
        Against which alternative.
    difference : float
        The (weighted) mean of first minus second.
    p_value : float
        The probability of a difference at least this extreme if the two were exchangeable in every query.
    n : int
        Queries that were compared.
    left_out : int
        Queries without a value in one of the two, or of weight 0.
    wins : int
        Queries in which the first is better.
    losses : int
        Queries in which the first is worse.
    ties : int
        Queries in which both are the same.
    exact : bool
        Whether the p-value comes from the exact distribution of the test under the null hypothesis.
    """

    test: str
    alternative: str
    difference: float
    p_value: float
    n: int
    left_out: int
    wins: int
    losses: int
    ties: int
    exact: bool


@validated
def paired_test(
    first: ArrayLike,
    second: ArrayLike,
    test: Test = "randomization",
    *,
    weight: ArrayLike | None = None,
    resamples: PositiveInt = 100_000,
    random_state: Seed = 0,
    alternative: Alternative = "two-sided",
) -> PairedTest:
    r"""Test whether the first of two rankings of the same queries is better than the second.

    All tests look at the differences :math:`d_q` of the values per query:

    - ``"randomization"`` (Fisher's) asks how often :math:`|\sum_q \pm w_q d_q|` reaches :math:`|\sum_q w_q d_q|` when
      the sign of every difference is decided by a fair coin. It assumes only that the two rankings could change places
      within each query, and tests that, not only equal means: for skewed differences of mean 0 (an exponential variable
      minus its mean) p is at most 0.05 in about 8% of the samples. It is exact, over all sign flips, for up to 30
      differences that are not 0; otherwise it uses ``resamples`` random flips with p = (b + 1) / (resamples + 1), which
      is valid for any number of them.
    - ``"t"`` compares the mean difference with its standard error (Student's t, n - 1 degrees of freedom); with weights
      the error is linearized as in :func:`interval`.
    - ``"wilcoxon"`` sums the ranks of :math:`|d_q|` over the queries won. Differences of 0 are dropped (Wilcoxon's own
      rule), equal ones share their mean rank. It is exact for up to 30 differences, ties or not, and SciPy's choice
      beyond.
    - ``"sign"`` counts the queries won among those that differ: the exact binomial test.

    The order of the queries changes no bit of the result. Values that differ by rounding only (a share of 1e-12) are
    ties. When no query differs, p is 1; so it is for a t test of fewer than two queries.

    Parameters
    ----------
    first : array-like of shape (n_queries,)
        One value per query; NaN leaves the query out.
    second : array-like of shape (n_queries,)
        Values of the same queries in the same order; NaN leaves the query out.
    test : {"randomization", "t", "wilcoxon", "sign"}, default="randomization"
        Which test.
    weight : array-like of shape (n_queries,), default=None
        Weights of the queries, for "t" and "randomization"; the others raise an error.
    resamples : int, default=100000
        Random flips of "randomization" where not all can be counted.
    random_state : int or Generator, default=0
        Seed of these flips.
    alternative : {"two-sided", "greater", "less"}, default="two-sided"
        The alternative; "greater" means that the first is better.

    Returns
    -------
    PairedTest
        The difference, its p-value and the counts.

    References
    ----------
    M. D. Smucker, J. Allan and B. Carterette (2007). A comparison of statistical significance tests for information
    retrieval evaluation. CIKM, doi:10.1145/1321440.1321528.

    Examples
    --------
    >>> result = paired_test([0.9, 0.8, 0.7, 0.9, 0.6], [0.5, 0.7, 0.6, 0.4, 0.3])
    >>> result.p_value, result.exact
    (0.0625, True)
    """
    if weight is not None and test in ("wilcoxon", "sign"):
        raise RankwiseError(f"the {test} test does not support query weights: use 't' or 'randomization'")
    random = as_random(random_state)
    total, differences, weights = _differences(first, second, weight)
    exact = True
    # no difference is no evidence, whatever the test
    if not differences.any():
        p_value = 1.0
    elif test == "t":
        p_value, exact = _t_test(differences, weights, alternative), False
    elif test == "sign":
        p_value = _sign_test(differences, alternative)
    elif test == "wilcoxon":
        p_value, exact = _wilcoxon(differences, alternative)
    else:
        products = differences * weights
        # a difference of 0 is 0 under either sign, and would only double the number of flips
        products = products[products != 0]
        exact = len(products) <= _EXACT_UP_TO
        p_value = (
            _count_flips(products, alternative) if exact else _draw_flips(products, alternative, resamples, random)
        )
    return PairedTest(
        test=test,
        alternative=alternative,
        difference=mean(differences, weights),
        p_value=p_value,
        n=len(differences),
        left_out=total - len(differences),
        wins=int(np.count_nonzero(differences > 0)),
        losses=int(np.count_nonzero(differences < 0)),
        ties=int(np.count_nonzero(differences == 0)),
        exact=exact,
    )


def _differences(first: ArrayLike, second: ArrayLike, weight: ArrayLike | None) -> tuple[int, Vector, Vector]:
    """The number of queries, and the sorted differences and weights of those that count."""
    try:
        one, two = (np.asarray(values, dtype=np.float64) for values in (first, second))
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"a paired test requires one value per query for both rankers: {in_one_line(error)}") from error
    if one.ndim != 1 or one.shape != two.shape:
        raise DataError(
            f"a paired test requires one value per query for both rankers, got shapes {one.shape} and {two.shape}"
        )
    weights = np.ones(len(one)) if weight is None else as_weights(weight, len(one))
    counts = ~(np.isnan(one) | np.isnan(two)) & (weights > 0)
    one, two, weights = one[counts], two[counts], weights[counts]
    if not (np.isfinite(one) & np.isfinite(two)).all():
        raise DataError("a paired test requires finite values, got an infinite one")
    differences = one - two
    # equal rankings may differ in the last bit, which must not count as a win
    differences[np.abs(differences) <= _ROUNDING * np.maximum(np.abs(one), np.abs(two))] = 0
    # sorted: random flips do not depend on the order of the queries
    order = np.lexsort((weights, differences))
    return len(counts), differences[order], weights[order]


def _t_test(differences: Vector, weights: Vector, alternative: Alternative) -> float:
    """The p-value of Student's t test."""
    from scipy.special import stdtr

    if len(differences) < 2:
        return 1.0
    middle, error = mean(differences, weights), standard_error(differences, weights)
    # identical differences have no error: t is infinite with their sign
    t = middle / error if error > 0 else math.copysign(math.inf, middle)
    below = float(stdtr(len(differences) - 1, t))
    above = float(stdtr(len(differences) - 1, -t))
    return {"greater": above, "less": below, "two-sided": min(1.0, 2 * min(above, below))}[alternative]


def _sign_test(differences: Vector, alternative: Alternative) -> float:
    """The p-value of the exact binomial test."""
    from scipy.stats import binomtest

    wins, losses = int((differences > 0).sum()), int((differences < 0).sum())
    return float(binomtest(wins, wins + losses, 0.5, alternative=alternative).pvalue)


def _wilcoxon(differences: Vector, alternative: Alternative) -> tuple[float, bool]:
    """The p-value of Wilcoxon's test, and whether it is exact."""
    from scipy.stats import rankdata, wilcoxon

    # rounded: differences that are the same number share their rank
    nonzero = np.round(differences[differences != 0] / np.abs(differences).max(), 12)
    ranks = np.copysign(rankdata(np.abs(nonzero)), nonzero)
    if len(ranks) <= _EXACT_UP_TO:  # the rank sums under the null are the sign flips of the ranks, tied or not
        return _count_flips(ranks, alternative), True
    exact = len(ranks) <= 50 and len(np.unique(np.abs(ranks))) == len(ranks)
    result = wilcoxon(ranks, alternative=alternative, method="exact" if exact else "asymptotic")
    return float(result.pvalue), exact


def _count_flips(terms: Vector, alternative: Alternative) -> float:
    """The share of all 2^n sign flips whose sum is at least as extreme as the sum of the terms.

    Every sum is one of a left half plus one of a right half: for each right one, the left ones that suffice are counted
    in the sorted left half: 2^n flips take 2^(n/2) log steps.
    """
    wanted, sign = _target_sum(terms, alternative)
    if wanted <= 0 and alternative == "two-sided":
        return 1.0
    left = np.sort(_all_flips(sign * terms[0::2]))
    right = _all_flips(sign * terms[1::2])
    reached = int((len(left) - np.searchsorted(left, wanted - right, side="left")).sum())
    both = 2 if alternative == "two-sided" else 1  # the flips are symmetric
    return min(1.0, both * reached / (len(left) * len(right)))


def _draw_flips(terms: Vector, alternative: Alternative, resamples: int, random: np.random.Generator) -> float:
    """(b + 1) / (R + 1), where b of R random sign flips are at least as extreme as the observed sum.

    Eight coins are one random byte, which looks up the sum of its eight signed terms.
    """
    wanted, sign = _target_sum(terms, alternative)
    tables = [_all_flips(sign * terms[place : place + 8]) for place in range(0, len(terms), 8)]
    reached = 0
    for begun in range(0, resamples, _FLIPPED_TOGETHER):
        total = np.zeros(min(_FLIPPED_TOGETHER, resamples - begun))
        for sums in tables:
            coins = random.integers(0, len(sums), size=len(total), dtype=np.uint8)
            total += sums.take(coins.astype(np.intp))
        reached += int(np.count_nonzero((np.abs(total) if alternative == "two-sided" else total) >= wanted))
    return (reached + 1) / (resamples + 1)


def _target_sum(terms: Vector, alternative: Alternative) -> tuple[float, float]:
    """The sum that a flip must reach, and the sign that turns the alternative into "greater"."""
    seen, sign = math.fsum(terms.tolist()), -1.0 if alternative == "less" else 1.0
    seen = abs(seen) if alternative == "two-sided" else sign * seen
    # a flip with the same sum must count although its rounding differs
    return seen - _ROUNDING * math.fsum(np.abs(terms).tolist()), sign


def _all_flips(terms: Vector) -> Vector:
    """The 2^n sums of the terms with every choice of signs."""
    sums = np.zeros(1)
    for term in terms:
        sums = np.concatenate([sums - term, sums + term])
    return sums
