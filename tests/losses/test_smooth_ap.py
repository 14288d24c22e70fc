"""Smooth average precision: what it tends to, what was printed wrongly, and how steep it gets."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwise.errors import RankwiseError
from rankwise.losses.smooth_ap import SmoothAP
from rankwise.measures import AP
from tests.oracles.losses import plain
from tests.oracles.losses_soft import smooth_ap_as_printed

FORMS = ("sigmoid", "indicator")
both_forms = pytest.mark.parametrize("form", FORMS)


@st.composite
def untied_lists(draw, max_size=8):
    """(scores with gaps of at least 1/4, 0/1 labels), some relevant and some not."""
    size = draw(st.integers(2, max_size))
    places = draw(st.lists(st.integers(-20, 20), min_size=size, max_size=size, unique=True))
    labels = draw(st.lists(st.integers(0, 1), min_size=size, max_size=size))
    labels[draw(st.integers(0, size - 1))] ^= len(set(labels)) == 1
    return np.array(places) / 4, np.array(labels, dtype=float)


def positions(scores):
    return np.argsort(np.argsort(-scores)) + 1


def slopes(loss, s, labels, step=1e-5):
    moved = [s + step * side * unit for unit in np.eye(len(s)) for side in (1, -1)]
    values = [loss(t, labels)[0] for t in moved]
    return (np.array(values[::2]) - np.array(values[1::2])) / (2 * step)


@both_forms
@given(untied_lists(), st.sampled_from([0.3, 1.0, 4.0]))
def test_the_gradient_is_the_slope(form, judged, sigma):
    scores, labels = judged
    loss = SmoothAP(form=form, sigma=sigma)
    np.testing.assert_allclose(loss(scores, labels)[1], slopes(loss, scores, labels), atol=1e-8)


@both_forms
@given(untied_lists())
def test_without_ties_it_tends_to_average_precision(form, judged):
    assert SmoothAP(form=form, sigma=1e-3).measure_value(*judged) == pytest.approx(AP()(*judged), abs=1e-9)


@given(untied_lists())
def test_with_the_printed_diagonal_it_would_not(judged):
    scores, labels = judged
    missing = (labels / positions(scores)).sum() / (2 * labels.sum())
    assert smooth_ap_as_printed(1e-3, scores, labels) == pytest.approx(AP()(scores, labels) - missing, abs=1e-9)
    assert missing > 0


def test_one_relevant_document_alone_is_ranked_perfectly():
    assert smooth_ap_as_printed(1.0, [0.7], [1]) == 0.5
    assert SmoothAP().measure_value([0.7], [1]) == 1


@given(untied_lists(), st.sampled_from([0.5, 3.0]))
def test_scores_and_sigma_scale_together(judged, factor):
    scores, labels = judged
    value, gradient = SmoothAP(sigma=0.7)(scores, labels)
    scaled, scaled_gradient = SmoothAP(sigma=0.7 * factor)(factor * scores, labels)
    assert scaled == pytest.approx(value, abs=1e-12)
    np.testing.assert_allclose(scaled_gradient * factor, gradient, atol=1e-12)
    # the indicator form measures sigma in squared scores
    squared = SmoothAP(form="indicator", sigma=0.7 * factor**2).measure_value(factor * scores, labels)
    assert squared == pytest.approx(SmoothAP(form="indicator", sigma=0.7).measure_value(scores, labels), abs=1e-12)


@given(untied_lists())
def test_a_very_soft_one_sees_only_how_many_are_relevant(judged):
    scores, labels = judged
    m, r = len(labels), labels.sum()
    assert SmoothAP(sigma=1e9).measure_value(scores, labels) == pytest.approx((r + 1) / (m + 1), abs=1e-7)
    assert SmoothAP(form="indicator", sigma=1e9).measure_value(scores, labels) == pytest.approx(r / m, abs=1e-6)


@pytest.mark.parametrize("m", [2, 3, 10, 200])
@pytest.mark.parametrize("sigma", [0.2, 1.0])
def test_the_steepest_list_of_the_sigmoid_form(m, sigma):
    """One relevant document, the others log(m) sigma below it: the declared G1 is attained."""
    loss = SmoothAP(sigma=sigma)
    scores = np.append(0.0, np.full(m - 1, -np.log(m) * sigma))
    steepness = np.abs(loss(scores, np.arange(m) == 0)[1]).sum()
    assert steepness == pytest.approx(loss.lipschitz_l1(m), rel=1e-12)
    rng = np.random.default_rng(m)
    for _ in range(50):  # and never exceeded near it
        other = scores + rng.normal(size=m) * rng.choice([0.01, 1.0]) * sigma
        labels = np.arange(m) < rng.integers(1, m)
        assert np.abs(loss(other, labels)[1]).sum() <= loss.lipschitz_l1(m) * (1 + 1e-12)


@given(untied_lists(max_size=5), st.sampled_from([0.1, 0.5, 2.0]))
def test_the_sigmoid_form_bends_no_more_than_declared(judged, sigma):
    scores, labels = judged
    loss, step, m = SmoothAP(sigma=sigma), 1e-5 * sigma, len(judged[0])
    hessian = [
        (loss(scores + step * e, labels)[1] - loss(scores - step * e, labels)[1]) / (2 * step) for e in np.eye(m)
    ]
    corners = np.array(list(itertools.product((-1, 1), repeat=m)))
    assert np.abs(corners @ np.array(hessian)).sum(axis=1).max() <= loss.smoothness(m) * (1 + 1e-6)


@given(untied_lists(), st.sampled_from([0.1, 1.0]))
def test_the_sigmoid_form_is_a_fraction_of_what_can_go_wrong(judged, sigma):
    assert 0 <= SmoothAP(sigma=sigma)(*judged)[0] <= 1 - 1 / len(judged[0])


def test_the_largest_loss_is_approached():
    scores, labels = np.array([-50.0, 0, 0, 0, 0]), [1, 0, 0, 0, 0]
    assert SmoothAP()(scores, labels)[0] == pytest.approx(SmoothAP().range(50, 5)[1], abs=1e-12)


def test_a_tiny_loss_keeps_its_digits():
    assert SmoothAP()([50.0, 0.0], [1, 0])[0] == pytest.approx(np.exp(-50), rel=1e-12)


def test_the_indicator_form_can_exceed_one():
    """Relevant documents close together in front take part of the next position too: it is not one a document."""
    loss = SmoothAP(form="indicator")
    assert loss.measure_value([2.03, 1.74, 1.45, 0.0], [1, 1, 1, 0]) > 1.005
    assert not loss.nonnegative
    assert SmoothAP().nonnegative


def test_no_search_leaves_the_range_of_the_indicator_form():
    rng, loss = np.random.default_rng(3), SmoothAP(form="indicator")
    for _ in range(300):
        m = int(rng.integers(2, 9))
        value, gradient = loss(rng.normal(size=m) * rng.choice([0.3, 1.0, 2.0]), np.arange(m) < rng.integers(1, m))
        low, high = loss.range(10, m)
        assert low <= value <= high
        assert np.abs(gradient).sum() <= loss.lipschitz_l1(m)


@both_forms
@pytest.mark.parametrize("m", [17, 130])
def test_long_lists_equal_the_plain_definition(form, m):
    rng = np.random.default_rng(m)
    scores, labels = np.round(rng.normal(size=m), 1), (rng.random(m) < 0.2).astype(float)
    loss = SmoothAP(form=form, sigma=0.3)
    value, gradient = loss(scores, labels)
    expected, expected_gradient = plain(loss, scores, labels)
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(gradient, expected_gradient, atol=1e-12)


@both_forms
def test_labels_are_relevant_from_rel_on(form):
    scores, labels = [0.3, 0.1, 0.9, 0.3, -0.2], [2, 0, 1, 0, 3]
    for rel, binary in ((None, [1, 0, 1, 0, 1]), (0.5, [1, 0, 1, 0, 1]), (2, [1, 0, 0, 0, 1]), (3, [0, 0, 0, 0, 1])):
        assert SmoothAP(form=form, rel=rel)(scores, labels)[0] == SmoothAP(form=form)(scores, binary)[0]
    for rel in (0, 4):  # every document, or none
        assert SmoothAP(form=form, rel=rel)(scores, labels)[0] == 0


@pytest.mark.parametrize("wrong", [{"form": "hard"}, {"sigma": 0.0}, {"sigma": -1.0}, {"sigma": np.nan}])
def test_what_makes_no_sense_is_refused(wrong):
    with pytest.raises(RankwiseError, match=next(iter(wrong))):
        SmoothAP(**wrong)
