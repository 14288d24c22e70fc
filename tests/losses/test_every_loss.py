"""What holds for every loss, over whatever the registry finds: a new file comes under all of it."""

import itertools
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwise._errors import RankwiseError
from rankwise.losses import registered
from rankwise.losses.compute import PreparedLists, loss_lists
from tests.oracles.losses import DEFINITIONS, plain
from tests.strategies import few, judged_lists

LOSSES = [loss for kind in registered().values() for loss in kind.examples()]
over_all_losses = pytest.mark.parametrize("loss", LOSSES, ids=repr)
small_lists = judged_lists(max_size=9)
ordinary = st.floats(-4, 4, allow_nan=False)


@st.composite
def two_score_vectors(draw, max_size=7):
    """(labels, s, t): two score vectors for one list, near and far, with ties."""
    labels = draw(st.lists(st.integers(0, 4), min_size=1, max_size=max_size))
    some = st.lists(st.one_of(ordinary, st.sampled_from([0.0, 1.0, -1.0])), min_size=len(labels), max_size=len(labels))
    s = np.array(draw(some))
    step = np.array(draw(some)) * draw(st.sampled_from([1e-4, 0.1, 1.0]))
    return np.array(labels, dtype=float), s, s + step


def test_every_loss_of_the_package_has_a_definition_to_be_held_against():
    assert set(DEFINITIONS) == {name for name, kind in registered().items() if kind.__module__.startswith("rankwise.")}


@over_all_losses
@few
@given(small_lists)
def test_fast_equals_plain(loss, judged):
    scores, labels = judged
    value, gradient = loss(scores, labels)
    expected, expected_gradient = plain(loss, scores, labels)
    scale = 1 + np.abs(scores).max()
    rounding = 1e-11 * scale * (scale if getattr(loss, "squared", False) else 1)  # a square's error is a square
    assert value == pytest.approx(expected, rel=1e-11, abs=rounding)
    if expected_gradient is not None:
        np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-10, atol=rounding * len(labels))


@over_all_losses
@few
@given(two_score_vectors())
def test_no_chord_falls_below_a_convex_loss(loss, case):
    labels, s, t = case
    if loss.convex:
        value, gradient = loss(s, labels)
        assert loss(t, labels)[0] >= value + gradient @ (t - s) - 1e-9
        assert loss((s + t) / 2, labels)[0] <= (value + loss(t, labels)[0]) / 2 + 1e-9


@over_all_losses
@few
@given(two_score_vectors())
def test_the_gradient_is_the_slope_where_a_loss_is_smooth(loss, case):
    labels, s, _ = case
    if loss.smooth:
        step = 1e-6
        for i in range(len(s)):
            up, down = s.copy(), s.copy()
            up[i] += step
            down[i] -= step
            slope = (loss(up, labels)[0] - loss(down, labels)[0]) / (2 * step)
            assert loss(s, labels)[1][i] == pytest.approx(slope, abs=1e-7)


@over_all_losses
@few
@given(two_score_vectors())
def test_declared_constants_are_never_exceeded(loss, case):
    labels, s, t = case
    m, b = len(labels), max(np.abs(s).max(), np.abs(t).max())
    (value, gradient), (other, other_gradient) = loss(s, labels), loss(t, labels)
    steepest = loss.lipschitz_l1(m)
    assert np.abs(gradient).sum() <= steepest + 1e-9
    if np.isfinite(steepest):
        assert abs(value - other) <= steepest * np.abs(s - t).max() + 1e-9
    if np.isfinite(loss.smoothness(m)):
        change = np.abs(gradient - other_gradient).sum()
        assert change <= loss.smoothness(m) * np.abs(s - t).max() * (1 + 1e-9) + 1e-9
    low, high = loss.range(b, m)
    assert low - 1e-12 <= value <= high + 1e-9
    assert not loss.nonnegative or value >= 0


@over_all_losses
@few
@given(two_score_vectors(), st.floats(-100, 100), st.randoms(use_true_random=False))
def test_neither_a_constant_nor_the_order_of_documents_matters(loss, case, constant, random):
    labels, s, _ = case
    value, gradient = loss(s, labels)
    assert gradient.sum() == pytest.approx(0, abs=1e-9 * (1 + np.abs(gradient).sum()))
    assert loss(s + constant, labels)[0] == pytest.approx(value, abs=1e-9 * (1 + abs(constant)) * (1 + abs(value)))
    if loss.order_free:
        shuffle = np.array(random.sample(range(len(s)), len(s)))
        assert loss(s[shuffle], labels[shuffle])[0] == pytest.approx(value, rel=1e-12, abs=1e-12)


@over_all_losses
@pytest.mark.parametrize("labels", [[0], [3], [0, 0, 0], [2, 2], [4, 4, 4, 4]])
def test_nothing_to_rank_is_no_loss_and_no_gradient(loss, labels):
    value, gradient = loss(np.linspace(-1, 2, len(labels)), labels)
    assert value == 0
    np.testing.assert_array_equal(gradient, np.zeros(len(labels)))


def test_an_empty_query_is_no_loss():
    for loss in LOSSES:
        lists = PreparedLists.of(loss, np.array([1.0, 0.0]), np.array([0, 0, 2, 2]))
        values, gradient = loss_lists(lists, np.array([1.0, 2.0]))
        assert values[0] == values[2] == 0
        assert values[1] == loss([1.0, 2.0], [1.0, 0.0])[0]
        assert len(gradient) == 2


@over_all_losses
@pytest.mark.parametrize("scale", [1e3, 1e-300, 1e150])
def test_huge_and_tiny_scores_stay_finite(loss, scale):
    rng = np.random.default_rng(0)
    for _ in range(20):
        labels = rng.integers(0, 4, 12).astype(float)
        value, gradient = loss(rng.normal(size=12) * scale, labels)
        assert np.isfinite(value) or scale == 1e150
        assert np.isfinite(gradient).all() or scale == 1e150


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss.bounds is not None], ids=repr)
def test_every_bound_holds_on_every_weak_order_of_short_lists(loss):
    for m in (2, 3):
        for labels in itertools.product(range(4), repeat=m):
            for order in itertools.product(range(m), repeat=m):  # every weak order, ties included, many times over
                for spread in (0.25, 1.0):
                    s = np.array(order) * spread
                    measured = loss.bounds(s, labels, ties="pessimistic", empty="one")
                    assert loss(s, labels)[0] >= (1 - measured) - 1e-12 or np.isnan(measured), (labels, s)


@over_all_losses
@few
@given(judged_lists(min_size=2, max_size=11))
def test_every_bound_holds_on_longer_lists(loss, judged):
    if loss.bounds is not None:
        scores, labels = judged
        measured = loss.bounds(scores, labels, ties="pessimistic", empty="one")
        assert loss(scores, labels)[0] >= (1 - measured) - 1e-12


@over_all_losses
def test_threads_chunks_and_row_order_do_not_change_a_bit(loss):
    rng = np.random.default_rng(2)
    size = 80_000  # more than one chunk
    start = np.append(np.sort(rng.choice(size, 4_000, replace=False)), size)
    start[0] = 0
    s, y = rng.normal(size=size), rng.integers(0, 4, size).astype(float)
    lists = PreparedLists.of(loss, y, start)
    one = loss_lists(lists, s, n_jobs=1)
    with ThreadPoolExecutor(2) as pool:
        others = list(pool.map(lambda jobs: loss_lists(lists, s, n_jobs=jobs), (2, 2)))
    shuffle = rng.permutation(size)
    scattered = np.empty_like(shuffle)
    scattered[shuffle] = np.arange(size)
    others.append(loss_lists(PreparedLists.of(loss, y[shuffle], start, scattered), s[shuffle]))
    for number, (values, gradient) in enumerate(others):
        np.testing.assert_array_equal(values, one[0])
        np.testing.assert_array_equal(gradient, one[1][shuffle] if number == 2 else one[1])


@over_all_losses
def test_losses_are_values(loss):
    assert pickle.loads(pickle.dumps(loss)) == loss
    assert hash(pickle.loads(pickle.dumps(loss))) == hash(loss)
    assert eval(repr(loss), {kind.__name__: kind for kind in registered().values()}) == loss


@over_all_losses
@pytest.mark.parametrize(("scores", "labels"), [([1.0, np.nan], [1, 0]), ([np.inf, 0], [1, 0]), ([1.0], [1, 0])])
def test_what_has_no_loss_is_refused_in_a_sentence(loss, scores, labels):
    with pytest.raises(RankwiseError, match="scores"):
        loss(scores, labels)
