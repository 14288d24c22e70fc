"""Long lists and large tie blocks, where enumeration is out of reach: exact fractions, and limits that are known."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest

from rankwise.measures import AP, ERR, NDCG, RBP, RR, P, Pairs, R, Success


def expected_err(grades, k):
    """ERR of one tie block, with exact fractions: position q is reached after a random subset of q - 1 documents."""
    stop = [Fraction(2**grade - 1, 16) for grade in grades]
    size = len(stop)
    total = Fraction(0)
    for place in range(1, min(size, k) + 1):
        for document, x in enumerate(stop):
            others = [1 - y for other, y in enumerate(stop) if other != document]
            symmetric = [Fraction(1)] + [Fraction(0)] * (place - 1)
            for y in others:
                for a in range(place - 1, 0, -1):
                    symmetric[a] += y * symmetric[a - 1]
            total += x * symmetric[place - 1] / comb(size - 1, place - 1) / size / place
    return float(total)


@pytest.mark.parametrize(
    ("grades", "k"), [([0] * 20 + [1] * 6 + [4] * 2, 10), ([2] * 12, 12), ([4] * 15 + [0] * 3, 18)]
)
def test_err_of_a_tie_block_equals_exact_arithmetic(grades, k):
    assert (ERR() @ k)(np.zeros(len(grades)), grades) == pytest.approx(expected_err(grades, k), rel=1e-13)


def test_a_constant_scorer_on_a_hundred_thousand_documents():
    rng = np.random.default_rng(0)
    labels = rng.choice([0, 0, 0, 1, 2, 3], 100_000)
    share = (labels >= 1).mean()
    constant = np.zeros(len(labels))
    assert (P() @ 10)(constant, labels) == pytest.approx(share, rel=1e-9)
    assert (R() @ 1000)(constant, labels) == pytest.approx(0.01, rel=1e-9)
    assert Pairs()(constant, labels) == 0.5
    assert (Success() @ 1)(constant, labels) == pytest.approx(share, rel=1e-9)
    assert AP()(constant, labels) == pytest.approx(share, rel=1e-3)
    assert RBP()(constant, labels) == pytest.approx(share, rel=1e-9)
    # the first relevant document of an endless random list: the reciprocal of a geometric variable
    assert RR()(constant, labels) == pytest.approx(-share * np.log(share) / (1 - share), rel=1e-3)
    draws = np.array([ERR()(rng.permutation(2000).astype(float), labels[:2000]) for _ in range(4000)])
    assert ERR()(np.zeros(2000), labels[:2000]) == pytest.approx(
        draws.mean(), abs=4 * draws.std() / np.sqrt(len(draws))
    )


def test_ties_of_ties_in_a_long_list_agree_with_random_orders():
    rng = np.random.default_rng(1)
    labels = rng.choice([0, 0, 1, 2], 300)
    scores = rng.integers(0, 8, 300).astype(float)
    for measure in (NDCG() @ 50, AP(), RR(), ERR() @ 40, RBP()):
        draws = np.array([measure(scores + rng.permutation(300) * 1e-6, labels) for _ in range(3000)])
        assert measure(scores, labels) == pytest.approx(draws.mean(), abs=4 * draws.std() / np.sqrt(len(draws)) + 1e-12)
