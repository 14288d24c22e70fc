"""ListNet: how steep and how curved it is, what it can be worth, and where its cross-entropy stops short of 0."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import softmax

from rankwise.errors import MeasureError
from rankwise.losses import ListNet
from tests.losses.lists import on_lists
from tests.losses.search import highest

lists = st.lists(st.tuples(st.floats(-20, 20), st.integers(0, 4)), min_size=2, max_size=8)


@given(lists)
def test_the_gradient_is_a_difference_of_two_distributions(rows):
    scores, labels = np.array(rows, dtype=float).T
    if len(set(labels)) > 1:
        for target, of in (("labels", labels), ("gains", 2**labels - 1)):
            expected = softmax(scores) - softmax(of)
            for form in ("kl", "ce"):
                np.testing.assert_allclose(
                    ListNet(target=target, form=form)(scores, labels)[1], expected, rtol=1e-12, atol=1e-15
                )


@pytest.mark.parametrize("labels", [[1.0, 0.0], [0.0, 4.0, 1.0], [2.0, 2.0, 0.0, 1.0]])
def test_for_given_labels_the_steepest_slope_stays_below_twice_what_the_least_likely_leaves(labels):
    """2 (1 - min P(y)), reached when the scores put all probability on that document; 2 is the supremum over labels."""
    most = 2 * (1 - softmax(labels).min())
    steepest = highest(lambda s, _: np.abs(on_lists(ListNet(), s, np.array(labels))[1]).sum(axis=1), len(labels))[0]
    assert steepest <= most + 1e-12
    scores = np.where(np.arange(len(labels)) == np.argmin(labels), 40.0, 0.0)
    assert np.abs(ListNet()(scores, labels)[1]).sum() == pytest.approx(most, abs=1e-12)
    assert most < ListNet().lipschitz_l1(len(labels))


@pytest.mark.parametrize("m", [2, 3, 6])
def test_the_euclidean_slope_is_at_most_the_root_of_2(m):
    """2 is in print; the distance of two distributions is less than that of two corners of the simplex."""
    loss = ListNet(target="gains")
    longest = highest(lambda s, y: np.linalg.norm(on_lists(loss, s, y)[1], axis=1), m)[0]
    assert 1.41 < longest <= np.sqrt(2)


def test_the_curvature_1_is_attained_by_two_documents_at_a_tie():
    """Half of what is in print: (1/4)(u_1 - u_2)(v_1 - v_2) is at most 1 for u, v in [-1, 1]^2."""
    step, direction = 1e-4, np.array([1.0, -1.0])
    turned = ListNet()(step * direction, [1, 0])[1] - ListNet()(-step * direction, [1, 0])[1]
    assert np.abs(turned).sum() / (2 * step) == pytest.approx(ListNet().smoothness(2), rel=1e-7)


@given(st.lists(st.floats(-8, 8), min_size=2, max_size=6))
def test_no_hessian_exceeds_1_from_the_largest_to_the_sum(scores):
    p = softmax(scores)
    hessian = np.diag(p) - np.outer(p, p)
    corners = np.array(list(itertools.product((-1, 1), repeat=len(p))))
    assert np.abs(corners @ hessian).sum(axis=1).max() <= 1 + 1e-12


@pytest.mark.parametrize("m", [2, 4, 30])
@pytest.mark.parametrize("b", [0.5, 4.0])
@pytest.mark.parametrize("labels", [(0.0, 1.0), (0.0, 4.0), (2.0, 3.0)])
def test_the_kl_form_stays_between_0_and_2b_plus_the_spread_of_labels(m, b, labels):
    """However many documents there are; nearly reached by one document that has all the probability of the labels."""
    low, high = labels

    def value(scores, grades):
        return on_lists(ListNet(), scores, low + (high - low) * grades / 4)[0]

    most = 2 * b + high - low
    assert highest(value, m, box=b)[0] <= most
    assert -highest(lambda s, y: -value(s, y), m, box=b)[0] >= 0
    assert ListNet().range(b, m, labels) == (0, most)


def test_that_range_is_approached():
    m, b, spread = 10_000, 3.0, 30.0
    first = np.arange(m) == 0
    value, _ = ListNet()(np.where(first, -b, b), spread * first)
    # log P(y) - log P(s) there is 0 - (-2b - log(m - 1)), and the entropy of P(y) vanishes
    assert value == pytest.approx(2 * b + np.log(m - 1), rel=1e-3)
    assert value > 0.4 * ListNet().range(b, m, (0.0, spread))[1]


@pytest.mark.parametrize("labels", [[1.0, 0.0], [3.0, 0.0, 1.0], [0.0, 1e-9]])
def test_the_least_cross_entropy_is_the_entropy_of_the_labels_and_the_least_kl_is_0(labels):
    """In print some scores have no loss. The least is at s = y, where the cross-entropy is the labels' own entropy."""
    p = softmax(labels)
    entropy = -(p @ np.log(p))
    solved = minimize(lambda s: ListNet(form="ce")(s, labels), np.ones(len(labels)), jac=True, tol=1e-10)
    assert solved.fun == pytest.approx(entropy, abs=1e-9)
    assert entropy > 0.3
    assert ListNet()(labels, labels)[0] == pytest.approx(0, abs=1e-15)


def test_two_equal_labels_cost_log_2_in_print_and_nothing_here():
    assert ListNet(form="ce")([0.3, 0.3], [0, 1e-12])[0] == pytest.approx(np.log(2))
    assert ListNet()([0.3, 0.3], [0, 1e-12])[0] == pytest.approx(0, abs=1e-12)
    assert ListNet(form="ce")([0.3, 0.3], [0, 0])[0] == 0  # nothing can be ranked wrongly


def test_gains_that_overflow_are_refused_before_they_become_nan():
    with pytest.raises(MeasureError, match="overflows at label 1100"):
        ListNet(target="gains").row_values(np.array([0.0, 1100.0]))
