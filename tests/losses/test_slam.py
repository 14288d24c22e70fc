"""SLAM: golden values, its linear programme, coverage, and the statements in print that do not hold."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from rankwise._errors import RankwiseError
from rankwise.losses import SLAM, ListNet, MaxPair, PairHinge
from rankwise.losses.slam import RULES
from tests.oracles.losses import slam_v
from tests.strategies import judged_lists

SCORES, LABELS = [0.3, 0.1, 0.9, 0.3, -0.2], [2, 0, 1, 0, 3]


def weights(loss, labels):
    """v by document, read off the loss itself: the slope of each document's own term, one list at a time."""
    labels = np.asarray(labels, dtype=float)
    return slam_v(loss, loss.row_values(labels) if loss.is_ap else labels)


def test_golden_values():
    for rule, value, gradient in (
        (
            "ndcg_003",
            1.908747478465139,
            [-0.20151514190050246, 0, 0.8935353522534002, 0.05323232387329983, -0.7452525342261976],
        ),
        ("ap_003", 0.9666666666666667, [-1 / 3, 0, -1 / 3, 1, -1 / 3]),
        (
            "ap_sym",
            0.5048148148148147,
            [-0.17407407407407405, 0, -0.17407407407407405, 0.5222222222222221, -0.17407407407407405],
        ),
    ):
        found, slope = SLAM(weights=rule)(SCORES, LABELS)
        assert found == pytest.approx(value, rel=1e-14)
        np.testing.assert_allclose(slope, gradient, rtol=1e-14)
    value, gradient = MaxPair()(SCORES, LABELS)
    assert value == pytest.approx(2.1, rel=1e-15)
    np.testing.assert_array_equal(gradient, [0, 0, 1, 0, -1])
    assert ListNet(form="ce")(SCORES, LABELS)[0] == pytest.approx(1.9252353235368014, rel=1e-14)
    assert ListNet()(SCORES, LABELS)[0] == pytest.approx(0.8687141991173025, rel=1e-14)


def test_golden_weights():
    tight = [0.07795669834447638, 0, 0.012046176021291134, 0, 0.45694949926213674]
    np.testing.assert_allclose(weights(SLAM(weights="ndcg_tight"), LABELS), tight, rtol=1e-14)
    np.testing.assert_allclose(weights(SLAM(weights="ndcg_000"), LABELS), tight, rtol=1e-14)
    at_3 = [0.20151514190050246, 0, 0.05323232387329983, 0, 0.7452525342261976]
    np.testing.assert_allclose(weights(SLAM(weights="ndcg_tight", k=3), LABELS), at_3, rtol=1e-14)
    np.testing.assert_allclose(weights(SLAM(weights="ap_000"), LABELS), [2 / 9, 0, 1 / 6, 0, 2 / 15], rtol=1e-14)


@pytest.mark.parametrize("loss", [SLAM(weights=rule) for rule in RULES], ids=repr)
@given(judged_lists(min_size=2, max_size=6))
def test_slam_is_the_value_of_its_linear_programme(loss, judged):
    """min sum v_i d_i with s_i + d_i >= margin + s_j for every j of a lower label, d >= 0."""
    scores, labels = np.clip(judged[0], -100, 100), np.array(judged[1], dtype=float)
    classes = loss.row_values(labels) if loss.is_ap else labels
    v = weights(loss, labels)
    pairs = [(i, j) for i, j in itertools.permutations(range(len(v)), 2) if classes[j] < classes[i]]
    if not pairs:
        assert loss(scores, labels)[0] == 0
        return
    A = np.zeros((len(pairs), len(v)))
    A[np.arange(len(pairs)), [i for i, _ in pairs]] = -1
    best = linprog(v, A_ub=A, b_ub=[scores[i] - scores[j] - 1 for i, j in pairs], bounds=(0, None))
    assert loss(scores, labels)[0] == pytest.approx(best.fun, abs=1e-6)  # the solver lets constraints slip by 1e-7


@pytest.mark.parametrize("loss", [loss for loss in SLAM.examples() if loss.bounds is not None], ids=repr)
@given(judged_lists(min_size=2, max_size=11))
def test_the_documents_that_are_outscored_cover_the_loss(loss, judged):
    """pessimistic 1 - measure <= sum of v_i over documents that a lower label reaches or outscores."""
    scores, labels = np.array(judged[0]), np.array(judged[1], dtype=float)
    classes = loss.row_values(labels) if loss.is_ap else labels
    v = weights(loss, labels)
    outscored = [any(classes[j] < classes[i] and scores[j] >= scores[i] for j in range(len(v))) for i in range(len(v))]
    measured = loss.bounds(scores, labels, ties="pessimistic", empty="one")
    assert 1 - measured <= v[outscored].sum() + 1e-12


@pytest.mark.parametrize("rule", RULES)
@given(st.lists(st.integers(0, 4), min_size=2, max_size=12))
def test_weights_are_not_negative_and_sum_to_at_most_one(rule, labels):
    v = weights(SLAM(weights=rule), labels)
    assert (v >= 0).all()
    assert v.sum() <= 1 + 1e-12


@given(st.lists(st.integers(0, 1), min_size=2, max_size=10))
def test_ap_sym_has_the_sum_of_ap_000_and_no_largest_weight(labels):
    symmetric, printed = weights(SLAM(weights="ap_sym"), labels), weights(SLAM(weights="ap_000"), labels)
    assert symmetric.sum() == pytest.approx(printed.sum(), abs=1e-12)
    assert len(set(symmetric[symmetric > 0].round(12))) <= 1


@given(judged_lists(min_size=2, max_size=9))
def test_slam_never_exceeds_the_worst_pair(judged):
    assert SLAM()(*judged)[0] <= MaxPair()(*judged)[0] + 1e-9


# ------------------------------------------------------------------------------- statements in print that do not hold


def test_exchanging_two_documents_of_a_class_does_change_slam_unless_the_weights_are_symmetric():
    labels = [1, 1, 0]
    one, other = ([0, 1, 0.5], [1, 0, 0.5])
    printed = SLAM(weights="ndcg_003")
    assert printed(one, labels)[0] == pytest.approx(1.1131, abs=5e-5)
    assert printed(other, labels)[0] == pytest.approx(0.8869, abs=5e-5)
    assert SLAM()(one, labels)[0] == SLAM()(other, labels)[0]


def test_the_printed_ap_weights_do_not_dominate_every_valid_choice():
    # R = (1, 1, 0): v = (5/24, 5/24, 0) is valid too, and 5/24 < 1/4; only the sum is smallest
    np.testing.assert_allclose(weights(SLAM(weights="ap_000"), [1, 1, 0]), [1 / 4, 1 / 6, 0])
    np.testing.assert_allclose(weights(SLAM(weights="ap_sym"), [1, 1, 0]), [5 / 24, 5 / 24, 0])


def test_weights_that_follow_the_scores_would_not_be_convex():
    def followed(s):
        better = sorted(s[:2], reverse=True)  # the larger weight for the better-scored document of the class
        v = sorted(weights(SLAM(weights="ndcg_003"), [1, 1, 0])[:2], reverse=True)
        return sum(w * max(0, 1 + s[2] - x) for w, x in zip(v, better, strict=True))

    one, other = np.array([0.0, 3.0, 2.0]), np.array([3.0, 0.0, 2.0])
    assert followed((one + other) / 2) > (followed(one) + followed(other)) / 2 + 0.1


def test_the_pair_hinge_is_steeper_than_2m():
    # 2m is in print; m = 5, two relevant, s = 0: 12 > 10, and 2 floor(m^2 / 4) = 12 is exact
    _, gradient = PairHinge(per_pair=False)(np.zeros(5), [1, 1, 0, 0, 0])
    assert np.abs(gradient).sum() == 12 == PairHinge(per_pair=False).lipschitz_l1(5)


def test_the_pair_hinge_gradient_counts_pairs_and_not_their_slack():
    # in print the hinge's value stands in the gradient: (-2, 2) here
    np.testing.assert_array_equal(PairHinge(per_pair=False)([0, 1], [1, 0])[1], [-1, 1])


def test_the_cross_entropy_of_listnet_need_not_reach_zero_but_its_kl_form_does():
    labels = [1.0, 0.0]
    assert ListNet(form="ce")(labels, labels)[0] > 0.5
    assert ListNet()(labels, labels)[0] == pytest.approx(0, abs=1e-15)


def test_at_ties_the_worst_pair_is_exactly_the_margin():
    assert MaxPair()([0, 0], [1, 0])[0] == 1


@pytest.mark.parametrize(
    "options",
    [
        {"weights": "ndcg_best"},
        {"weights": "ap_sym", "k": 3},
        {"weights": "ndcg_000", "k": 3},
        {"k": 0},
        {"margin": -1},
    ],
)
def test_options_that_mean_nothing_are_refused_in_a_sentence(options):
    with pytest.raises(RankwiseError):
        SLAM(**options)


def test_margin_zero_counts_ties_as_active_and_costs_nothing_there():
    value, gradient = SLAM(margin=0.0)([0, 0], [1, 0])
    assert value == 0
    assert gradient[0] < 0 < gradient[1]
