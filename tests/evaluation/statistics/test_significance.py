"""Paired tests say how surprising a difference is, and never more surely than the queries allow."""

import math
from collections import Counter
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from rankwise._tables import Table
from rankwise.errors import DataError, RankwiseError
from rankwise.evaluation.statistics.multiple_testing import correct, significance
from rankwise.evaluation.statistics.paired import paired_test

TESTS = ("t", "randomization", "wilcoxon", "sign")
ALTERNATIVES = ("two-sided", "greater", "less")
alternatives = st.sampled_from(ALTERNATIVES)
# Eighths are exact in binary, so that an oracle may compare sums for equality.
eighths = st.integers(-8, 8).map(lambda number: number / 8)
differences = st.lists(eighths, min_size=1, max_size=9)


def extreme(flipped, seen, alternative):
    """Whether a statistic is at least as extreme as the one that was seen."""
    return {"two-sided": abs(flipped) >= abs(seen), "greater": flipped >= seen, "less": flipped <= seen}[alternative]


def share_of_flips(terms, alternative):
    """Fisher's p-value from the definition: every choice of signs, one by one."""
    seen = sum(terms)
    flips = list(product((-1, 1), repeat=len(terms)))
    return sum(extreme(sum(s * t for s, t in zip(f, terms, strict=True)), seen, alternative) for f in flips) / len(
        flips
    )


def share_of_flips_of_whole_numbers(terms, alternative):
    """The same for many whole numbers, by counting how many choices of signs give each sum."""
    ways = Counter({0: 1})
    for term in terms:
        ways = Counter({}) + sum(
            (Counter({total + s * term: n for total, n in ways.items()}) for s in (-1, 1)), Counter()
        )
    return sum(n for total, n in ways.items() if extreme(total, sum(terms), alternative)) / 2 ** len(terms)


def p_value(values, test, alternative="two-sided", **options):
    return paired_test(values, np.zeros(len(values)), test, alternative=alternative, **options).p_value


# ------------------------------------------------------------------------------------------- each test by its oracle


@given(differences, alternatives)
def test_randomization_is_the_share_of_all_sign_flips(values, alternative):
    result = paired_test(values, np.zeros(len(values)), "randomization", alternative=alternative)
    if any(values):
        assert result.p_value == share_of_flips(values, alternative)
    else:
        assert result.p_value == 1
    assert result.exact


@given(differences, st.data(), alternatives)
def test_weighted_randomization_flips_weighted_differences(values, data, alternative):
    weight = data.draw(st.lists(st.sampled_from([0.5, 1.0, 2.0, 3.0]), min_size=len(values), max_size=len(values)))
    terms = [value * number for value, number in zip(values, weight, strict=True)]
    expected = share_of_flips(terms, alternative) if any(values) else 1
    assert p_value(values, "randomization", alternative, weight=weight) == expected


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("n", [17, 29, 30])
def test_randomization_is_exact_for_thirty_queries(n, alternative):
    terms = np.random.default_rng(n).integers(-4, 8, size=n)
    terms[terms == 0] = 1
    result = paired_test(terms / 8, np.zeros(n), "randomization", alternative=alternative)
    assert result.exact
    assert result.p_value == pytest.approx(share_of_flips_of_whole_numbers(terms.tolist(), alternative), rel=1e-14)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_random_flips_estimate_the_share_of_all_flips(alternative):
    terms = np.random.default_rng(4).integers(-4, 6, size=60)
    truth = share_of_flips_of_whole_numbers([t for t in terms.tolist() if t], alternative)
    result = paired_test(terms / 8, np.zeros(60), "randomization", alternative=alternative, resamples=300_000)
    assert not result.exact
    assert result.p_value == pytest.approx(truth, abs=4 * math.sqrt(truth * (1 - truth) / 300_000))


def test_random_flips_never_claim_the_impossible():
    better = np.linspace(0.1, 0.9, 200)
    assert p_value(better, "randomization", resamples=999) == 1 / 1000
    assert p_value(better, "randomization", "less", resamples=999) == 1


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_t_is_the_paired_t_test(alternative):
    first, second = np.random.default_rng(2).random((2, 40))
    theirs = scipy.stats.ttest_rel(first, second, alternative=alternative).pvalue
    assert paired_test(first, second, "t", alternative=alternative).p_value == pytest.approx(theirs, rel=1e-12)
    weighted = paired_test(first, second, "t", alternative=alternative, weight=np.full(40, 2.5))
    assert weighted.p_value == pytest.approx(theirs, rel=1e-12)


@given(differences, alternatives)
def test_wilcoxon_is_the_share_of_flips_of_ranks(values, alternative):
    nonzero = np.array([value for value in values if value])
    expected = 1.0
    if len(nonzero):
        ranks = scipy.stats.rankdata(np.abs(nonzero)) * np.sign(nonzero)
        expected = share_of_flips(ranks.tolist(), alternative)
    assert p_value(values, "wilcoxon", alternative) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("n", [12, 30, 31, 50, 51, 200])
def test_wilcoxon_agrees_with_scipy_without_ties(n, alternative):
    values = np.random.default_rng(n).normal(0.2, 1, size=n)
    theirs = scipy.stats.wilcoxon(values, alternative=alternative, method="exact" if n <= 50 else "asymptotic").pvalue
    assert p_value(values, "wilcoxon", alternative) == pytest.approx(theirs, rel=1e-10)


@given(differences, alternatives)
def test_sign_is_the_binomial_test_of_the_queries_that_differ(values, alternative):
    wins, losses = sum(value > 0 for value in values), sum(value < 0 for value in values)
    n = wins + losses
    tails = {"greater": range(wins, n + 1), "less": range(wins + 1)}
    tails["two-sided"] = [k for k in range(n + 1) if abs(k - n / 2) >= abs(wins - n / 2)]
    expected = sum(math.comb(n, k) for k in tails[alternative]) / 2**n
    assert p_value(values, "sign", alternative) == pytest.approx(expected, rel=1e-12)


# ------------------------------------------------------------------------------------------- what all tests share


@settings(max_examples=25)
@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=6),
    st.sampled_from(["randomization", "wilcoxon", "sign"]),
    alternatives,
)
def test_p_values_are_super_uniform_when_signs_are_chance(sizes, test, alternative):
    """P(p <= a) <= a for every a, over all 2^n signs: the theorem that makes a p-value one."""
    flips = [np.array(f) * sizes for f in product((-1, 1), repeat=len(sizes))]
    found = np.sort([p_value(flip / 8, test, alternative) for flip in flips])
    assert (np.arange(1, len(found) + 1) / len(found) <= found + 1e-12)[np.append(np.diff(found) > 0, True)].all()


def rejections(test, repeats, n, **options):
    """Shares of p-values at or below 1, 5, 20 % when both rankings are equally good, on skewed values."""
    random = np.random.default_rng(17)
    found = [
        paired_test(*random.beta(0.5, 1.5, size=(2, n)).round(2), test, random_state=repeat, **options).p_value
        for repeat in range(repeats)
    ]
    return [(level, np.mean(np.array(found) <= level)) for level in (0.01, 0.05, 0.2)]


@pytest.mark.parametrize("test", TESTS)
def test_equally_good_rankings_are_seldom_told_apart(test):
    for level, share in rejections(test, 600, 40, resamples=199):
        assert share <= level + 3 * math.sqrt(level * (1 - level) / 600)


@pytest.mark.thorough
@pytest.mark.parametrize("test", TESTS)
def test_equally_good_rankings_are_seldom_told_apart_in_many_repeats(test):
    for level, share in rejections(test, 20_000, 40, resamples=999):
        assert share <= level + 3 * math.sqrt(level * (1 - level) / 20_000)


@given(differences, st.randoms(use_true_random=False), st.sampled_from(TESTS), alternatives)
def test_no_order_of_queries_changes_a_bit(values, random, test, alternative):
    shuffled = random.sample(values, len(values))
    base = np.linspace(0, 1, 7)[np.arange(len(values)) % 7]
    one = paired_test(base + values, base, test, alternative=alternative)
    order = sorted(range(len(values)), key=lambda _: random.random())
    two = paired_test((base + values)[order], base[order], test, alternative=alternative)
    assert one == two
    assert paired_test(shuffled, np.zeros(len(values)), test).p_value == p_value(values, test)


def test_no_order_of_queries_changes_random_flips():
    first, second = np.random.default_rng(1).random((2, 100))
    order = np.random.default_rng(2).permutation(100)
    assert paired_test(first, second) == paired_test(first[order], second[order])
    assert paired_test(first, second) != paired_test(first, second, random_state=1)


@given(differences, st.sampled_from(TESTS))
def test_exchanging_the_rankings_mirrors_the_result(values, test):
    zeros = np.zeros(len(values))
    one, two = paired_test(values, zeros, test), paired_test(zeros, values, test)
    assert (one.p_value, one.difference, one.wins, one.losses) == (two.p_value, -two.difference, two.losses, two.wins)
    greater = paired_test(values, zeros, test, alternative="greater").p_value
    assert greater == paired_test(zeros, values, test, alternative="less").p_value


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("n", [0, 1, 2, 40, 100])
def test_rankings_that_never_differ_have_p_one(test, alternative, n):
    values = np.linspace(0, 1, n)
    result = paired_test(values, values, test, alternative=alternative)
    assert result.p_value == 1
    assert (result.wins, result.losses, result.ties, result.n) == (0, 0, n, n)


@pytest.mark.filterwarnings("error")
def test_a_constant_difference_is_as_sure_as_the_test_can_be():
    better = np.full(5, 0.5)
    assert p_value(better, "t") == 0
    assert p_value(better, "t", "less") == 1
    assert p_value(better, "randomization") == p_value(better, "sign") == p_value(better, "wilcoxon") == 2 / 2**5


def test_one_query_cannot_show_anything_by_t():
    assert p_value([0.5], "t") == 1


def test_rounding_is_not_a_difference():
    result = paired_test([0.1 + 0.2, 0.5], [0.3, 0.5], "sign")
    assert (result.p_value, result.ties, result.difference) == (1.0, 2, 0.0)


def test_differences_that_are_the_same_number_share_their_rank():
    first, second = [0.3, 0.2, 0.1, 0.9], [0.2, 0.1, 0.2, 0.1]  # 0.3 - 0.2 and 0.2 - 0.1 differ in the last bit
    assert p_value([0.125, 0.125, -0.125, 1.0], "wilcoxon") == paired_test(first, second, "wilcoxon").p_value


def test_queries_without_a_value_are_left_out_in_pairs_and_counted():
    first, second = [0.9, math.nan, 0.5, 0.8, 0.7], [0.1, 0.2, math.nan, 0.3, 0.6]
    result = paired_test(first, second, "randomization")
    assert (result.n, result.left_out, result.wins) == (3, 2, 3)
    assert result.difference == pytest.approx((0.8 + 0.5 + 0.1) / 3)
    assert result.p_value == 2 / 8
    assert math.isnan(paired_test([math.nan], [0.5]).difference)


def test_a_query_of_weight_zero_is_left_out():
    weighted = paired_test([0.9, 0.1, 0.5], [0.1, 0.9, 0.2], "t", weight=[1, 0, 2])
    assert (weighted.n, weighted.left_out) == (2, 1)
    assert weighted.difference == pytest.approx((0.8 + 2 * 0.3) / 3)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"test": "z"}, "parameter of paired_test must be 't', 'randomization', 'wilcoxon' or 'sign'"),
        ({"alternative": "better"}, "'alternative' parameter of paired_test must be"),
        ({"test": "sign", "weight": [1, 2]}, "the sign test does not support query weights"),
        ({"test": "wilcoxon", "weight": [1, 2]}, "the wilcoxon test does not support query weights"),
        ({"second": [0.1]}, r"got shapes \(2,\) and \(1,\)"),
        ({"second": [0.1, math.inf]}, "requires finite values"),
    ],
)
def test_wrong_arguments_are_refused_in_a_sentence(arguments, sentence):
    with pytest.raises(RankwiseError, match=sentence):
        paired_test(**({"first": [0.1, 0.2], "second": [0.2, 0.1]} | arguments))


# ------------------------------------------------------------------------------------------- many comparisons


def naive_holm(p_values):
    """Step down: the i-th smallest is multiplied by the number of those not yet passed."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    return [
        min(1, max(p_values[order[j]] * (len(p_values) - j) for j in range(rank + 1)))
        for rank in (order.index(i) for i in range(len(p_values)))
    ]


def naive_bh(p_values):
    """Step up: the smallest of n p / rank among the p-values not smaller."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    n = len(p_values)
    return [min(1, *(p_values[order[j]] * n / (j + 1) for j in range(order.index(i), n)), 1) for i in range(n)]


@pytest.mark.parametrize(("how", "naive"), [("holm", naive_holm), ("bh", naive_bh)])
@given(p_values=st.lists(st.floats(0, 1), max_size=12))
def test_corrections_agree_with_their_definition(how, naive, p_values):
    corrected = correct(p_values, how)
    assert corrected == pytest.approx(np.array(naive(p_values), dtype=float), rel=1e-12, abs=1e-300)
    assert (corrected >= np.array(p_values) * (1 - 1e-12)).all()


@pytest.mark.parametrize("how", ["holm", "bh", "none"])
def test_unknown_p_values_stay_unknown_and_do_not_count(how):
    with_gap = correct([0.01, math.nan, 0.03], how)
    assert math.isnan(with_gap[1])
    assert with_gap[[0, 2]].tolist() == correct([0.01, 0.03], how).tolist()


def test_no_correction_changes_nothing():
    assert correct([0.5, 0.1], "none").tolist() == [0.5, 0.1]


def test_wrong_corrections_are_refused():
    with pytest.raises(RankwiseError, match="'how' parameter of correct must be 'holm', 'bh' or 'none'"):
        correct([0.1], "bonferroni")
    with pytest.raises(DataError, match=r"between 0 and 1, got values from -0\.1"):
        correct([-0.1])


# ------------------------------------------------------------------------------------------- many rankers


@dataclass
class Evaluated:
    """What the comparison needs of an evaluation."""

    per_query: Table
    titles: tuple[str, ...]
    weight: Any = None

    @classmethod
    def of(cls, qid, weight=None, **values):
        return cls(Table({"qid": qid, **values}), tuple(values), weight)


@pytest.fixture
def three_rankers():
    random = np.random.default_rng(8)
    base = random.random(25)
    return {
        name: Evaluated.of(list(range(25)), AP=base + shift + 0.1 * random.random(25), RR=random.random(25))
        for name, shift in (("bm25", 0.0), ("linear", 0.05), ("deep", 0.2))
    }


def test_all_pairs_are_compared_the_later_with_the_earlier(three_rankers):
    table = significance(three_rankers)
    assert table.columns == (
        *("measure", "ranker", "baseline", "difference", "low", "high"),
        *("p", "p_corrected", "wins", "losses", "ties"),
    )
    assert [(row["measure"], row["ranker"], row["baseline"]) for row in table] == [
        (measure, *pair)
        for measure in ("AP", "RR")
        for pair in (("linear", "bm25"), ("deep", "bm25"), ("deep", "linear"))
    ]
    first, second = (three_rankers[name].per_query["AP"] for name in ("deep", "bm25"))
    row = list(table)[1]
    assert row["difference"] == pytest.approx((first - second).mean())
    assert row["p"] == paired_test(first, second).p_value
    assert row["low"] < row["difference"] < row["high"]
    assert row["wins"] + row["losses"] + row["ties"] == 25


def test_the_correction_is_over_the_whole_table(three_rankers):
    table = significance(three_rankers, test="t", correction="bh")
    assert table["p_corrected"].tolist() == correct(table["p"], "bh").tolist()
    assert len(table) == 6


def test_a_baseline_is_compared_with_every_other(three_rankers):
    table = significance(three_rankers, baseline="linear", test="sign")
    assert table["ranker"].tolist() == ["bm25", "deep"] * 2
    assert set(table["baseline"]) == {"linear"}
    assert table["difference"][0] < 0 < table["difference"][1]


def test_what_evaluate_returns_is_compared():
    from rankwise.evaluation.evaluation import evaluate
    from rankwise.synthetic.lists import make_lists

    lists = make_lists(60).with_weight(np.linspace(1, 2, 60))
    good, poor = (evaluate(lists, scores, ["nDCG@10", "AP"]) for scores in (lists.y, lists.X[:, 0]))
    table = significance({"poor": poor, "good": good})
    assert table["measure"].tolist() == ["nDCG@10", "AP"]
    for row in table:
        assert row["difference"] == pytest.approx(good.mean[row["measure"]] - poor.mean[row["measure"]])
        assert row["losses"] == 0
        assert row["p_corrected"] < 0.001


def test_plain_dicts_of_values_are_compared():
    table = significance({"a": {"AP": [0.1, 0.2, 0.3]}, "b": {"AP": [0.2, 0.2, math.nan], "qid": [4, 5, 6]}})
    assert table["difference"].tolist() == pytest.approx([0.05])
    assert (table["wins"][0], table["losses"][0], table["ties"][0]) == (1, 0, 1)


def test_query_weights_count_in_the_comparison():
    values = {"a": [0.0, 0.0], "b": [1.0, -1.0]}
    weight = np.array([3.0, 1.0])
    table = significance({name: Evaluated.of([1, 2], weight, AP=v) for name, v in values.items()})
    assert table["difference"].tolist() == [0.5]


def test_evaluations_on_different_queries_are_refused_by_name():
    one, other = Evaluated.of(["x", "y"], AP=[0.1, 0.2]), Evaluated.of(["x", "z"], AP=[0.1, 0.2])
    with pytest.raises(
        DataError, match=r"'a' and 'b' must be evaluated on the same queries: number 1 is 'y' .* and 'z'"
    ):
        significance({"a": one, "b": other})
    with pytest.raises(DataError, match="'a' and 'b' must be evaluated on the same queries, got 2 and 3"):
        significance({"a": one, "b": {"AP": [0.1, 0.2, 0.3]}})
    with pytest.raises(DataError, match="only one of them has AP"):
        significance({"a": one, "b": {"RR": [0.1, 0.2]}})
    with pytest.raises(DataError, match="must have the same query weights"):
        significance({"a": one, "b": Evaluated.of(["x", "y"], np.array([1.0, 2.0]), AP=[0.1, 0.2])})


def test_a_comparison_needs_two_rankers_and_a_known_baseline():
    one = {"AP": [0.1, 0.2]}
    with pytest.raises(RankwiseError, match="at least two rankers, got 1"):
        significance({"a": one})
    with pytest.raises(RankwiseError, match="baseline must be one of 'a', 'b', got 'c'"):
        significance({"a": one, "b": one}, baseline="c")


def test_the_randomization_test_is_about_exchangeable_rankings_and_not_about_means():
    """Skewed differences of mean 0 are no reason to reject, and it rejects them more often than its level."""
    random = np.random.default_rng(0)
    drawn = random.exponential(size=(400, 20)) - 1
    rejected = np.mean([paired_test(one, np.zeros(20)).p_value <= 0.05 for one in drawn])
    assert 0.06 < rejected < 0.11
    flipped = drawn * random.choice([-1, 1], size=drawn.shape)
    assert np.mean([paired_test(one, np.zeros(20)).p_value <= 0.05 for one in flipped]) < 0.06
