"""What the weights of SLAM add up to, how uneven they are, and that they cover the loss of the measure."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from rankwise.losses import SLAM
from rankwise.losses.slam import RULES
from rankwise.measures import AP
from tests.losses.lists import all_lists, labelings, missed, weak_orders
from tests.losses.weights import classes, read_off, tabled
from tests.strategies import few, judged_lists

BOUNDING = [loss for loss in SLAM.examples() if loss.upper_bounds is not None] + [
    SLAM(k=2),
    SLAM(weights="ndcg_003", k=2),
]
graded = st.lists(st.integers(0, 4), min_size=2, max_size=12).filter(lambda labels: len(set(labels)) > 1)
binary = st.lists(st.integers(0, 1), min_size=2, max_size=12).filter(lambda labels: len(set(labels)) > 1)


def outscored(loss, scores, labels):
    """Whether each document is reached or outscored by one of a lower class: c_i >= 1, list by list."""
    own = classes(loss, labels)
    return ((own[:, None, :] < own[:, :, None]) & (scores[:, None, :] >= scores[:, :, None])).any(axis=2)


# ------------------------------------------------------------------------------------------------ the table of rules


@pytest.mark.parametrize("loss", [*BOUNDING, SLAM(weights="ap_000", rel=2)], ids=repr)
@few
@given(graded)
def test_the_weights_are_those_of_the_table(loss, labels):
    lowest = classes(loss, labels) == classes(loss, labels).min()
    np.testing.assert_allclose(read_off(loss, labels), np.where(lowest, 0, tabled(loss, labels)), atol=1e-14)


@given(binary)
def test_what_the_weights_for_ap_add_up_to(labels):
    m, r = len(labels), sum(labels)
    assert tabled(SLAM(weights="ap_003"), labels).sum() == pytest.approx(1)
    printed = 1 - sum(i / (m - r + i) for i in range(1, r + 1)) / r
    assert printed < 1
    for rule in ("ap_000", "ap_sym"):
        assert read_off(SLAM(weights=rule), labels).sum() == pytest.approx(printed)


@given(graded, st.sampled_from([None, 1, 3]))
def test_what_the_weights_for_ndcg_add_up_to(labels, k):
    assert tabled(SLAM(weights="ndcg_003", k=k), labels).sum() == pytest.approx(1)
    tight, even = (read_off(SLAM(weights=rule, k=k), labels) for rule in ("ndcg_tight", "ndcg_tight_sym"))
    assert tight.sum() <= 1 + 1e-12
    assert even.sum() == pytest.approx(tight.sum())
    for label in set(labels):
        assert len(set(even[np.array(labels) == label].round(14))) == 1
    if k is None:
        np.testing.assert_allclose(read_off(SLAM(weights="ndcg_000"), labels), tight, atol=1e-15)


@given(graded, st.sampled_from([None, 1, 3]))
def test_the_lowest_class_weighs_nothing_in_the_tight_rule(labels, k):
    lowest = np.array(labels) == min(labels)
    assert (tabled(SLAM(weights="ndcg_tight", k=k), labels)[lowest] == 0).all()


# ------------------------------------------------------------------------------------------------ how uneven they are


def unevenness(v):
    """v_max, the largest weight over the smallest that is not 0."""
    return v.max() / v[v > 1e-15].min()


@given(binary)
def test_the_weights_for_ap_are_even_or_nearly(labels):
    m, r = len(labels), sum(labels)
    for rule in ("ap_003", "ap_sym"):
        assert unevenness(read_off(SLAM(weights=rule), labels)) == pytest.approx(1)
    printed = unevenness(read_off(SLAM(weights="ap_000"), labels))
    assert printed == pytest.approx(m / (m - r + 1))
    assert printed <= m / 2 + 1e-12


@given(graded, st.sampled_from([None, 1, 3, 8]))
def test_the_weights_for_ndcg_are_no_more_uneven_than_gains_and_discounts(labels, k):
    m, most = len(labels), 2 ** max(labels) - 1
    assert unevenness(tabled(SLAM(weights="ndcg_003", k=k), labels)) <= most * np.log2((k or m) + 1) + 1e-9
    # D(m - 1) - D(m) >= 1 / (m log2(m) log2(m + 1)), because log2(1 + 1/m) >= 1/m
    tight = tabled(SLAM(weights="ndcg_000"), labels)
    if tight.any():
        assert unevenness(tight) <= most * m * np.log2(m) * np.log2(m + 1) + 1e-9


def test_the_printed_weights_for_ndcg_are_as_uneven_as_m_log_squared_m():
    for m in (10, 100, 1000):
        labels = np.append(np.ones(m - 1), 0)
        share = unevenness(tabled(SLAM(weights="ndcg_000"), labels)) / (m * np.log2(m) ** 2)
        assert 0.4 < share < 1


# ------------------------------------------------------------------------------------------------ coverage


def assert_covers(loss, scores, labels, own):
    """pessimistic 1 - measure <= sum of v over the documents that are outscored; ``own`` holds v, list by list."""
    short = missed(loss.upper_bounds, scores, labels) - (own * outscored(loss, scores, labels)).sum(axis=1)
    worst = int(np.argmax(short))
    assert short[worst] <= 1e-12, (scores[worst], labels[worst])


def assert_covers_everything(loss, m, grades=4):
    scores, labels = all_lists(m, grades)
    own = np.array([tabled(loss, judged) for judged in labelings(m, grades)])
    assert_covers(loss, scores, labels, np.repeat(own, len(weak_orders(m)), axis=0))


@pytest.mark.parametrize("loss", BOUNDING, ids=repr)
@pytest.mark.parametrize("m", [2, 3, 4])
def test_the_outscored_documents_cover_the_loss_on_every_weak_order(loss, m):
    assert_covers_everything(loss, m)


@pytest.mark.thorough
@pytest.mark.parametrize("loss", BOUNDING, ids=repr)
def test_the_outscored_documents_cover_the_loss_on_every_weak_order_of_five(loss):
    assert_covers_everything(loss, 5)


@pytest.mark.parametrize("loss", BOUNDING, ids=repr)
@few
@given(judged_lists(min_size=2, max_size=11))
def test_the_outscored_documents_cover_the_loss_of_longer_lists(loss, judged):
    scores, labels = np.array([judged[0]]), np.array([judged[1]], dtype=float)
    assert_covers(loss, scores, labels, tabled(loss, labels[0])[None])


def least_sum_that_covers(labels):
    """The least sum of weights that cover 1 - AP on every weak order: a linear program."""
    orders = weak_orders(len(labels))
    reached = outscored(SLAM(weights="ap_000"), orders, np.broadcast_to(labels, orders.shape))
    lost = missed(AP(), orders, labels)
    return linprog(np.ones(len(labels)), A_ub=-reached.astype(float), b_ub=-lost, bounds=(0, None)).fun


@pytest.mark.parametrize(("m", "r"), [(m, r) for m in (2, 3, 4, 5) for r in range(1, m)])
def test_no_weights_that_cover_ap_have_a_smaller_sum_than_the_printed_ones(m, r):
    """Hence none are below them document by document either: they are Pareto-minimal, and so are the even ones."""
    labels = (np.arange(m) < r).astype(float)
    for rule in ("ap_000", "ap_sym"):
        assert read_off(SLAM(weights=rule), labels).sum() == pytest.approx(least_sum_that_covers(labels), abs=1e-9)


def test_the_printed_weights_for_ap_do_not_dominate_all_others_that_cover():
    """In print every valid v is at least v^MAP, document by document; (5/24, 5/24, 0) is valid, and 5/24 < 1/4."""
    labels = np.array([1.0, 1.0, 0.0])
    printed, even = (read_off(SLAM(weights=rule), labels) for rule in ("ap_000", "ap_sym"))
    np.testing.assert_allclose(printed, [1 / 4, 1 / 6, 0])
    np.testing.assert_allclose(even, [5 / 24, 5 / 24, 0])
    assert_covers_everything(SLAM(weights="ap_sym"), 3, grades=2)
    assert even[0] < printed[0]
    assert even.sum() == pytest.approx(printed.sum()) == pytest.approx(least_sum_that_covers(labels))


@given(graded)
def test_weights_are_not_negative_and_add_up_to_at_most_one(labels):
    for rule in RULES:
        v = tabled(SLAM(weights=rule), labels)
        assert (v >= 0).all()
        assert v.sum() <= 1 + 1e-12


@given(st.lists(st.integers(1, 4), min_size=1, max_size=6))
def test_where_all_are_relevant_nothing_weighs_anything_for_ap(labels):
    for rule in ("ap_sym", "ap_003", "ap_000"):
        assert not tabled(SLAM(weights=rule), labels).any()
        assert not read_off(SLAM(weights=rule), labels).any()
