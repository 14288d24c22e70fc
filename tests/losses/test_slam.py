"""SLAM: its linear program, how it stands to the worst pair, and the statements in print that do not hold."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from scipy.optimize import linprog

from rankwise.errors import RankwiseError
from rankwise.losses import SLAM, MaxPair
from rankwise.losses.slam import RULES
from rankwise.measures import NDCG
from tests.losses.lists import all_lists, labelings, missed, on_lists, weak_orders
from tests.losses.weights import classes, read_off, tabled
from tests.strategies import few, judged_lists

over_all_rules = pytest.mark.parametrize("rule", RULES)


def all_lists_with_weights(loss, m, gap):
    """(scores, labels, v, c) of every weak order of every labeling; c_i = [1 + max over lower classes s_j - s_i]_+."""
    scores, labels = all_lists(m, 4)
    scores = gap * scores
    v = np.array([tabled(loss, judged) for judged in labelings(m, 4)])
    own = classes(loss, labels)
    lead = np.where(own[:, None, :] < own[:, :, None], scores[:, None, :] - scores[:, :, None], -np.inf)
    slack = np.maximum(loss.margin + lead.max(axis=2), 0)
    return scores, labels, np.repeat(v, len(weak_orders(m)), axis=0), slack


@pytest.mark.parametrize("loss", [SLAM(weights=rule) for rule in RULES], ids=repr)
@few
@given(judged_lists(min_size=2, max_size=6))
def test_slam_is_the_value_of_its_linear_program(loss, judged):
    """min sum v_i d_i with s_i + d_i >= margin + s_j for every j of a lower label, d >= 0."""
    scores, labels = np.clip(judged[0], -100, 100), np.array(judged[1], dtype=float)
    own, v = classes(loss, labels), tabled(loss, labels)
    pairs = [(i, j) for i, j in itertools.permutations(range(len(v)), 2) if own[j] < own[i]]
    if not pairs:
        assert loss(scores, labels)[0] == 0
        return
    A = np.zeros((len(pairs), len(v)))
    A[np.arange(len(pairs)), [i for i, _ in pairs]] = -1
    best = linprog(v, A_ub=A, b_ub=[scores[i] - scores[j] - 1 for i, j in pairs], bounds=(0, None))
    assert loss(scores, labels)[0] == pytest.approx(best.fun, abs=1e-6)  # the solver lets constraints slip by 1e-7


@over_all_rules
@pytest.mark.parametrize("gap", [0.3, 1.0])
def test_slam_is_at_most_its_weights_times_the_worst_slack_which_is_at_most_the_worst_pair(rule, gap):
    loss = SLAM(weights=rule)
    scores, labels, v, slack = all_lists_with_weights(loss, 4, gap)
    value, gradient = on_lists(loss, scores, labels)
    np.testing.assert_allclose(value, (v * slack).sum(axis=1), atol=1e-12)
    between = v.sum(axis=1) * slack.max(axis=1)
    assert (value <= between + 1e-12).all()
    assert (between <= on_lists(MaxPair(), scores, labels)[0] + 1e-12).all()
    assert (np.abs(gradient).sum(axis=1) <= 2 * v.sum(axis=1) + 1e-12).all()


@over_all_rules
@pytest.mark.parametrize("b", [0.5, 3.0])
def test_the_largest_value_is_margin_plus_2b_times_the_sum_of_weights(rule, b):
    """Attained, slope 2 sum v and all, by relevant documents at -b and irrelevant ones at b."""
    loss = SLAM(weights=rule)
    for m, r in [(2, 1), (5, 2), (6, 5)]:
        labels = np.arange(m) < r
        total = read_off(loss, labels).sum()
        value, gradient = loss(np.where(labels, -b, b), labels)
        assert value == pytest.approx((1 + 2 * b) * total)
        assert np.abs(gradient).sum() == pytest.approx(2 * total)


@over_all_rules
@pytest.mark.parametrize("margin", [0.25, 0.9])
def test_a_smaller_margin_bounds_that_share_of_the_loss(rule, margin):
    loss, measure = SLAM(weights=rule, margin=margin), SLAM(weights=rule).upper_bounds
    assert loss.upper_bounds is None
    tightest = np.inf
    for m in (2, 3, 4):
        scores, labels = all_lists(m, 4)
        for gap in (1e-300, 0.2, 1.0):
            value, lost = on_lists(loss, gap * scores, labels)[0], missed(measure, gap * scores, labels)
            assert (value >= margin * lost - 1e-12).all()
            tightest = min(tightest, (value[lost > 0] / lost[lost > 0]).min())
    if rule not in ("ndcg_003", "ndcg_003_sym", "ap_003"):  # the others are tight: at a tie of two documents, for one
        assert tightest == pytest.approx(margin)


def test_margin_zero_counts_ties_as_active_and_costs_nothing_there():
    value, gradient = SLAM(margin=0.0)([0, 0], [1, 0])
    assert value == 0
    assert gradient[0] < 0 < gradient[1]


def test_a_document_competes_with_strictly_lower_labels_only():
    """Neither equal labels nor the document itself may be the rival, however high they score."""
    value, gradient = SLAM()([0.0, 9.0, -0.5], [1, 1, 0])
    v = read_off(SLAM(), [1, 1, 0])
    assert value == pytest.approx(v[0] * 0.5)
    np.testing.assert_allclose(gradient, [-v[0], 0, v[0]])


def test_for_ap_grades_are_relevant_or_not():
    scores = [0.0, 5.0, -0.5, 0.3]
    for rule in ("ap_sym", "ap_003", "ap_000"):
        graded, binary = SLAM(weights=rule)(scores, [3, 1, 0, 2]), SLAM(weights=rule)(scores, [1, 1, 0, 1])
        assert graded[0] == binary[0]
        np.testing.assert_array_equal(graded[1], binary[1])
        assert SLAM(weights=rule, rel=2)(scores, [3, 1, 0, 2])[0] == SLAM(weights=rule)(scores, [1, 0, 0, 1])[0]


# ------------------------------------------------------------------------------- statements in print that do not hold


def test_exchanging_two_documents_of_a_class_does_change_slam_unless_the_weights_are_symmetric():
    labels = [1, 1, 0]
    one, other = ([0, 1, 0.5], [1, 0, 0.5])
    printed = SLAM(weights="ndcg_003")
    assert printed(one, labels)[0] == pytest.approx(1.1131, abs=5e-5)
    assert printed(other, labels)[0] == pytest.approx(0.8869, abs=5e-5)
    assert SLAM(weights="ap_000")(one, labels)[0] != pytest.approx(SLAM(weights="ap_000")(other, labels)[0], abs=0.01)
    for rule in ("ndcg_tight_sym", "ndcg_003_sym", "ap_sym", "ap_003"):
        assert SLAM(weights=rule)(one, labels)[0] == SLAM(weights=rule)(other, labels)[0]


def test_weights_that_follow_the_scores_would_not_be_convex():
    def followed(s):
        better = sorted(s[:2], reverse=True)  # the larger weight for the better-scored document of the class
        v = sorted(tabled(SLAM(weights="ndcg_003"), [1, 1, 0])[:2], reverse=True)
        return sum(w * max(0, 1 + s[2] - x) for w, x in zip(v, better, strict=True))

    one, other = np.array([0.0, 3.2, 2.2]), np.array([3.2, 0.0, 2.2])
    assert followed((one + other) / 2) > (followed(one) + followed(other)) / 2 + 0.36
    for fixed in (SLAM(weights="ndcg_003"), SLAM(weights="ndcg_003_sym")):  # by the index of documents, or shared
        values = [fixed(s, [1, 1, 0])[0] for s in (one, other, (one + other) / 2)]
        assert values[2] <= (values[0] + values[1]) / 2


def test_ndcg_at_k_over_the_k_most_relevant_documents_is_not_ndcg_at_k():
    """In print the sum goes over the documents of the ideal top k, wherever they are; positions are what is cut off."""
    scores, labels, k = np.array([3.0, 1.0, 2.0]), np.array([2, 1, 1]), 2
    gain, position = 2.0**labels - 1, 1 + np.argsort(np.argsort(-scores))
    most_relevant = np.argsort(-labels, kind="stable")[:k]
    ideal = np.sort(gain)[::-1][:k] @ (1 / np.log2([2, 3]))
    printed = (gain / np.log2(1 + position))[most_relevant].sum() / ideal
    assert printed == pytest.approx(0.9639, abs=5e-5)
    assert (NDCG() @ k)(scores, labels) == 1


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
