"""Expected ties in blocks of every size and every share of zeros, against 100 digits (D1)."""

import math
from collections.abc import Iterator, Sequence
from decimal import Decimal

import numpy as np
import pytest

from rankwise.errors import MeasureError
from rankwise.measures import DCG, ERR, NDCG, RBP, Measure, parse, registered
from tests.oracles.measures import DEFINITIONS, tie_orders
from tests.oracles.tie_blocks import EXPECTATIONS, Block, expected

# The largest error that is allowed, relative for values above 1 (DCG).
LARGEST_ERROR = Decimal("1e-12")

SPELLINGS = {
    "AP": ["AP", "AP(rel=2)", "AP(norm='cutoff')", "AP(blocks=True)"],
    "RR": ["RR", "RR(rel=3)"],
    "P": ["P", "P(short='list')", "P(rel=4)"],
    "R": ["R", "R(rel=2)"],
    "Rprec": ["Rprec", "Rprec(rel=2)"],
    "Bpref": ["Bpref", "Bpref(rel=3)"],
    "Judged": ["Judged"],
    "Success": ["Success", "Success(rel=3)"],
    "RBP": ["RBP", "RBP(p=0.5)", "RBP(p=0.999)"],
    "DCG": ["DCG", "DCG(dcg='letor')"],
    "nDCG": ["nDCG", "nDCG(dcg='log2')", "nDCG(dcg='exp-letor',short='zero')", "nDCG(gains={0:0,1:1,2:5,3:5,4:90})"],
    "MeanNDCG": ["MeanNDCG", "MeanNDCG(dcg='letor')"],
    "ERR": ["ERR", "ERR(max_grade=5)", "ERR(max_grade=10)"],
    "WTA": ["WTA"],
    "Pairs": ["Pairs"],
}
NAMES = sorted(SPELLINGS)
over_all_measures = pytest.mark.parametrize("name", NAMES)


def graded(size: int, zeros: int, grades: Sequence[int]) -> Block:
    """A block with so many zeros, whose other documents have these grades in turn."""
    block = {0: zeros} if zeros else {}
    for place, grade in enumerate(grades):
        if count := len(range(place, size - zeros, len(grades))):
            block[grade] = block.get(grade, 0) + count
    return block


def worst_error(name: str, lists: Sequence[Sequence[Block]]) -> tuple[Decimal, str]:
    """The largest error of all spellings of a measure, at cut-offs before, inside, at the end of and after blocks."""
    worst, where = Decimal(0), "nowhere"
    for blocks in lists:
        labels = [label for block in blocks for label, count in block.items() for _ in range(count)]
        sizes = [sum(block.values()) for block in blocks]
        scores = -np.repeat(np.arange(len(sizes), dtype=float), sizes)
        for measure in at_cutoffs(name, sizes):
            if max(labels) < getattr(measure, "rel", 1) or (name == "Pairs" and len(set(labels)) == 1):
                assert math.isnan(measure(scores, labels))
                continue
            exact = expected(measure, blocks)
            error = abs(Decimal(measure(scores, labels)) - exact) / max(Decimal(1), exact)
            if not error <= worst:  # NaN is worse than anything
                worst, where = error, f"{measure} on {list(map(dict, blocks))}: {exact:.17f}"
    return worst, where


def at_cutoffs(name: str, sizes: Sequence[int]) -> Iterator[Measure]:
    total, last = sum(sizes), sizes[-1]
    for spelling in SPELLINGS[name]:
        kind = registered()[name]
        if not kind.takes_cutoff:
            yield parse(spelling)
            continue
        bare = parse(f"{spelling}@1")
        if not kind.needs_cutoff:
            yield parse(spelling)
        for cutoff in {1, sizes[0], total - last + (last + 1) // 2, total - 1, total, total + 3} - {0}:
            yield bare @ cutoff


def random_lists(seed: int, number: int, longest: int) -> list[list[Block]]:
    """Lists of one to five blocks of any size, any share of zeros and any grades; never without a positive label."""
    rng = np.random.default_rng(seed)
    lists = []
    while len(lists) < number:
        blocks = []
        for _ in range(rng.integers(1, 6)):
            size = int(rng.integers(1, longest + 1))
            grades = rng.choice([1, 2, 3, 4], rng.integers(1, 4), replace=False).tolist()
            blocks.append(graded(size, int(rng.integers(0, size + 1)), grades))
        if any(label for block in blocks for label in block):
            lists.append(blocks)
    return lists


GRADES = ([1], [4], [3, 1, 2])


def check(name: str, lists: Sequence[Sequence[Block]]) -> None:
    error, where = worst_error(name, lists)
    print(f"{name}: {error:.1e} in {where}")  # shown by pytest -s
    assert error < LARGEST_ERROR, where


# ------------------------------------------------------------------------------------------- the oracle itself


def test_every_measure_of_the_package_has_an_expectation_and_spellings():
    assert set(EXPECTATIONS) == set(SPELLINGS) == set(DEFINITIONS)


@over_all_measures
def test_the_expectations_are_the_means_over_all_orders(name):
    measure = parse(name) if not registered()[name].needs_cutoff else parse(f"{name}@3")
    for blocks in random_lists(0, 12, 3):
        labels = [label for block in blocks for label, count in block.items() for _ in range(count)]
        if len(labels) > 8 or (name == "Pairs" and len(set(labels)) == 1):
            continue
        scores = [-place for place, block in enumerate(blocks) for _ in range(sum(block.values()))]
        values = [DEFINITIONS[name](order, measure.cutoff) for order in tie_orders(scores, labels)]
        assert float(expected(measure, blocks)) == pytest.approx(math.fsum(values) / len(values), rel=1e-13)


# ------------------------------------------------------------------------------------------- every measure


@over_all_measures
def test_d1_blocks_with_every_number_of_zeros_have_their_exact_expectation(name):
    sizes = (1, 2, 3, 7, 16, 31) if name != "ERR" else (1, 2, 3, 7, 16, 24)
    check(name, [[graded(size, zeros, [3, 1, 2])] for size in sizes for zeros in range(size)])


@over_all_measures
def test_d1_lists_of_several_blocks_have_their_exact_expectation(name):
    check(name, random_lists(1, 40, 20))


@over_all_measures
def test_d1_large_blocks_have_their_exact_expectation(name):
    sizes = [(150, 2), (200, 1), (300, 270)]
    check(name, [[graded(size, zeros, [1])] for size, zeros in sizes])


@pytest.mark.thorough
@over_all_measures
def test_d1_every_block_of_up_to_60_has_its_exact_expectation(name):
    blocks = [[graded(n, zeros, grades)] for n in range(1, 61) for zeros in range(n) for grades in GRADES]
    check(name, blocks)


@pytest.mark.thorough
@over_all_measures
def test_d1_sampled_blocks_of_up_to_5000_have_their_exact_expectation(name):
    rng = np.random.default_rng(2)
    lists = random_lists(3, 40, 60)
    for size in (100, 250, 600, 1_200):
        shares = {0, 1, 2, size // 10, size // 2, 9 * size // 10, size - 2, size - 1, int(rng.integers(size))}
        for zeros in sorted(shares):
            # the polynomials of three grades take long: one grade, or one high among low ones
            lists.append([graded(size, zeros, [1])])
            lists.append([{0: zeros, 1: size - zeros - 1, 4: 1}])
    lists += [[graded(5_000, zeros, [1])] for zeros in (0, 1, 50, 2_500, 4_900, 4_999)]
    check(name, lists)


# ------------------------------------------------------------------------------------------- ERR


@pytest.mark.parametrize(
    ("size", "zeros", "value"),
    [
        (200, 1, 0.184186759865476),
        (150, 2, 0.183096676839898),
        (120, 1, 0.183748356795232),
        (3_000, 3, 0.184708736521275),
    ],
)
def test_d1_err_of_a_block_with_few_zeros_is_a_probability_and_not_an_explosion(size, zeros, value):
    assert ERR()(np.zeros(size), [0] * zeros + [1] * (size - zeros)) == pytest.approx(value, abs=2e-15)


def test_err_keeps_its_digits_where_every_reader_passes_nearly_every_document():
    # x = 2^-60 each: to first order the sum of x / p, and 1 - x would round to 1
    block = {0: 10, 1: 30}
    measure = ERR(max_grade=60)
    exact = expected(measure, [block])
    found = Decimal(measure(np.zeros(40), [0] * 10 + [1] * 30))
    assert abs(found - exact) < exact * Decimal("1e-14")


def test_err_stops_at_the_first_document_whose_stop_probability_rounds_to_one():
    labels = [0] * 5 + [60] * 3
    measure = ERR(max_grade=60)
    first = [1 / place * math.comb(8 - place, 2) / math.comb(8, 3) for place in range(1, 7)]
    assert measure(np.zeros(8), labels) == pytest.approx(math.fsum(first), rel=1e-14)
    assert measure(np.zeros(30_000), [60] * 30_000) == 1.0


# ------------------------------------------------------------------------------------------- extreme labels and options


@pytest.mark.parametrize("label", [53, 90, 500, 996])
@pytest.mark.parametrize("ties", ["expected", "pessimistic", "optimistic", "stable"])
def test_huge_labels_never_give_nan(label, ties):
    """The largest grade outweighs all others: what remains is where it stands."""
    scores, labels = np.zeros(7), [0, 1, label, 2, 0, 3, 1]
    share = {"expected": sum(1 / math.log2(1 + p) for p in range(1, 8)) / 7, "pessimistic": 1 / 3, "optimistic": 1.0}
    found = NDCG()(scores, labels, ties=ties)
    assert found == pytest.approx(share.get(ties, 1 / math.log2(4)), rel=1e-12)
    stop = ERR(max_grade=label)(scores, labels, ties=ties)
    reciprocal = {"expected": sum(1 / p for p in range(1, 8)) / 7, "pessimistic": 1 / 7, "optimistic": 1.0}
    assert stop == pytest.approx(reciprocal.get(ties, 1 / 3), rel=1e-12)
    for name in NAMES:
        if name != "ERR":
            assert math.isfinite(next(at_cutoffs(name, [7]))(scores, np.minimum(labels, 996), ties=ties))


@pytest.mark.parametrize("name", ["DCG", "nDCG", "MeanNDCG"])
def test_gains_and_discounts_whose_sums_overflow_are_refused(name):
    """An infinite sum would make nDCG NaN, and so the list would count as empty, without a word."""
    kind = registered()[name]
    with pytest.raises(MeasureError, match=r"linear gain takes labels up to 1e\+300, got 1e\+308"):
        kind(gain="linear")(np.zeros(10), [1e308] * 10)
    with pytest.raises(MeasureError, match="where sums overflow"):
        kind(discount=[1e200, 1.0])([1.0, 0.0], [500, 1])
    for discount in ([math.inf, 1.0], [math.nan], [1.0, math.nan], [-1.0]):
        with pytest.raises(MeasureError, match="discounts must begin above 0"):
            kind(discount=discount)
    assert math.isfinite(kind(gain="linear", discount=[1e5, 1.0])([1.0, 0.0], [1e290, 1]))


def test_gains_of_labels_close_to_zero_keep_their_digits():
    labels = np.array([1e-13, 3e-13, 2e-13])  # 2^l - 1 = l ln 2 to 13 digits: the ratios are those of the labels
    linear = NDCG(gain="linear")([3.0, 2.0, 1.0], labels)
    assert NDCG()([3.0, 2.0, 1.0], labels) == pytest.approx(linear, rel=1e-12)
    assert ERR()([0.0, 0.0], [1e-20, 0.0]) == pytest.approx(1e-20 * math.log(2) / 16 * 0.75, rel=1e-12)
    assert DCG()([1.0], [0.5]) == pytest.approx(math.sqrt(2) - 1, rel=1e-15)


def test_rbp_of_a_tie_block_keeps_its_digits_for_a_very_persistent_reader():
    block = {0: 3, 1: 4}
    for p in (1 - 1e-12, 1 - 2.0**-53, 0.5, 1e-9):
        measure = RBP(p=p)
        exact = expected(measure, [block])
        found = Decimal(measure(np.zeros(7), [0] * 3 + [1] * 4))
        assert abs(found - exact) < exact * Decimal("1e-14")


@over_all_measures
def test_large_blocks_in_a_given_order_have_the_value_of_that_order(name):
    rng = np.random.default_rng(4)
    labels = rng.choice([0, 0, 1, 2, 3, 4], 600).tolist()
    scores = -np.repeat([0.0, 1.0, 2.0], [250, 50, 300])
    blocks = [labels[:250], labels[250:300], labels[300:]]
    orders = {
        "pessimistic": [label for block in blocks for label in sorted(block)],
        "optimistic": [label for block in blocks for label in sorted(block, reverse=True)],
        "stable": labels,
    }
    measure = parse(f"{name}@270" if registered()[name].takes_cutoff else name)
    for ties, order in orders.items():
        assert measure(scores, labels, ties=ties) == pytest.approx(DEFINITIONS[name](order, measure.cutoff), rel=1e-12)
