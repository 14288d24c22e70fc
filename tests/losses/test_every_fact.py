"""The facts that every loss declares, over whatever the registry finds: tried on all short lists, and searched.

A fact that is too good to be true is found by climbing: each search below starts from dozens of lists and changes
them as long as that brings the loss closer to what it says can not be.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwise.errors import RankwiseError
from rankwise.losses import registered
from tests.losses.lists import all_lists, curvature_on_lists, missed, on_lists
from tests.losses.search import highest
from tests.strategies import ends, few, judged_lists

LOSSES = [loss for kind in registered().values() for loss in kind.examples()]
over_all_losses = pytest.mark.parametrize("loss", LOSSES, ids=repr)
over_all_bounds = pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss.upper_bounds is not None], ids=repr)
ordinary = st.one_of(st.floats(-4, 4), st.sampled_from([0.0, 1.0, -1.0]))


@st.composite
def two_score_vectors(draw, max_size=7):
    """(labels, s, t): two score vectors for one list, near and far, with ties."""
    labels = draw(st.lists(st.integers(0, 4), min_size=1, max_size=max_size))
    some = st.lists(ordinary, min_size=len(labels), max_size=len(labels))
    s = np.array(draw(some))
    step = np.array(draw(some)) * draw(st.sampled_from([1e-4, 0.1, 1.0]))
    return np.array(labels, dtype=float), s, s + step


# ------------------------------------------------------------------------------------------------ gradient


def quotients(loss, scores, labels, step):
    """Difference quotients of every coordinate, to the left and to the right: two arrays as large as the scores."""
    middle, units = on_lists(loss, scores, labels)[0], np.eye(scores.shape[1])
    return [
        # a coordinate at a time: every list stays at its place in the set, where it has the same noise
        np.stack([(on_lists(loss, scores + side * unit, labels)[0] - middle) / side for unit in units], axis=1)
        for side in (-step, step)
    ]


def spread_lists(m, many, rng):
    """Lists without ties: uneven gaps of at least 0.1."""
    scores = rng.permuted(np.cumsum(rng.uniform(0.1, 1.0, (many, m)), axis=1), axis=1)
    return scores - scores.mean(axis=1, keepdims=True), rng.integers(0, 5, (many, m)).astype(float)


@over_all_losses
@pytest.mark.parametrize("m", ends(2, 4, 7))
def test_the_gradient_is_the_slope_away_from_ties(loss, m):
    """Between both difference quotients where a loss is convex, so that no kink can spoil it; elsewhere their mean."""
    scores, labels = spread_lists(m, 40, np.random.default_rng(m))
    left, right = quotients(loss, scores, labels, 1e-5)
    values, gradient = on_lists(loss, scores, labels)
    tolerance = 1e-9 * (1 + np.abs(values)[:, None]) + 1e-7 * (1 + np.abs(gradient))
    if loss.convex:
        assert (left - tolerance <= gradient).all()
        assert (gradient <= right + tolerance).all()
    else:
        np.testing.assert_array_less(np.abs(gradient - (left + right) / 2), tolerance)


@over_all_losses
@pytest.mark.parametrize("m", ends(2, 3, 5))
def test_the_gradient_is_the_slope_at_ties_too_where_a_loss_is_smooth(loss, m):
    if loss.smooth:
        rng = np.random.default_rng(m)
        scores, labels = rng.integers(-1, 2, (40, m)) * 0.5, rng.integers(0, 5, (40, m)).astype(float)
        left, right = quotients(loss, scores, labels, 1e-5)
        np.testing.assert_allclose((left + right) / 2, on_lists(loss, scores, labels)[1], atol=1e-7)


# ------------------------------------------------------------------------------------------------ curvature


@over_all_losses
@pytest.mark.parametrize("m", ends(1, 2, 4, 7))
@pytest.mark.parametrize("weighted", [False, True])
def test_the_curvature_is_the_slope_of_the_gradient(loss, m, weighted):
    if loss.curvature is None or (weighted and not loss.document_weights):
        return
    rng = np.random.default_rng(m)
    scores, labels = spread_lists(m, 40, rng)
    weight = rng.integers(0, 4, scores.shape) / 2 if weighted else None
    gradient, diagonal = curvature_on_lists(loss, scores, labels, weight)
    np.testing.assert_allclose(gradient, on_lists(loss, scores, labels, weight)[1], rtol=1e-12, atol=1e-14)
    step = 1e-5
    for unit, curve in zip(np.eye(m), diagonal.T, strict=True):
        ahead, behind = (on_lists(loss, scores + side * unit, labels, weight)[1] @ unit for side in (step, -step))
        np.testing.assert_allclose(curve, (ahead - behind) / (2 * step), atol=1e-8 * (1 + np.abs(gradient).max()))


@over_all_losses
@few
@given(judged_lists(max_size=9))
def test_the_curvature_is_never_negative(loss, judged):
    scores, labels = (np.array([part], dtype=float) for part in judged)
    if loss.curvature is None:
        with pytest.raises(RankwiseError, match="declares no curvature"):
            curvature_on_lists(loss, scores, labels)
        return
    for scale in (1.0, 1e-300, 1e150):
        gradient, diagonal = curvature_on_lists(loss, scale * scores, labels)
        assert (diagonal >= 0).all()
        assert not np.isnan(gradient).any()
    if len(set(judged[1])) == 1:
        assert not diagonal.any()


# ------------------------------------------------------------------------------------------------ convexity


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
@pytest.mark.parametrize("m", [2, 5])
def test_no_search_finds_a_gradient_that_overestimates_a_convex_loss(loss, m):
    def overestimate(both, labels):
        s, t = both[:, :m], both[:, m:]
        (values, gradient), (others, _) = on_lists(loss, s, labels), on_lists(loss, t, labels)
        claimed = values + (gradient * (t - s)).sum(axis=1)
        return (claimed - others) / (1 + np.abs(values) + np.abs(others))

    if loss.convex:
        assert highest(overestimate, m, width=2 * m, box=5.0)[0] <= 1e-12


# ------------------------------------------------------------------------------------------------ constants


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
@pytest.mark.parametrize("m", ends(2, 3, 5, 9))
def test_no_search_finds_a_steeper_list_than_declared(loss, m):
    steepest = highest(lambda s, y: np.abs(on_lists(loss, s, y)[1]).sum(axis=1), m)
    assert steepest[0] <= loss.lipschitz_l1(m) * (1 + 1e-12), steepest


@over_all_losses
@pytest.mark.parametrize("m", ends(2, 3, 5))
def test_no_search_finds_a_gradient_that_turns_faster_than_declared(loss, m):
    step = 1e-4

    def turn(both, labels):
        s, direction = both[:, :m], np.clip(both[:, m:], -1, 1)
        change = on_lists(loss, s + step * direction, labels)[1] - on_lists(loss, s, labels)[1]
        return np.abs(change).sum(axis=1) / step

    if np.isfinite(loss.smoothness(m)):
        fastest = highest(turn, m, width=2 * m)
        assert fastest[0] <= loss.smoothness(m) * (1 + 1e-9), fastest


@over_all_losses
@pytest.mark.parametrize("m", [2, 5])
@pytest.mark.parametrize("b", [0.3, 2.0])
def test_no_search_leaves_the_declared_range(loss, m, b):
    low, high = loss.range(b, m)
    largest = highest(lambda s, y: on_lists(loss, s, y)[0], m, box=b)
    least = highest(lambda s, y: -on_lists(loss, s, y)[0], m, box=b)
    assert largest[0] <= high * (1 + 1e-12) + 1e-12, largest
    assert -least[0] >= low - 1e-12, least
    assert not loss.nonnegative or -least[0] >= 0


@over_all_losses
def test_longer_lists_are_declared_no_tamer(loss):
    """The constants hold for lists of AT MOST m documents, so they cannot fall with m."""
    sizes = [1, 2, 3, 5, 10, 100, 1000]
    assert (np.diff([loss.lipschitz_l1(m) for m in sizes if np.isfinite(loss.lipschitz_l1(m))]) >= 0).all()
    assert (np.diff([loss.smoothness(m) for m in sizes if np.isfinite(loss.smoothness(m))]) >= 0).all()
    for b in (0.5, 3.0):
        low, high = np.array([loss.range(b, m) for m in sizes]).T
        assert (np.diff(low) <= 0).all()
        assert (np.diff(high) >= 0).all()


@over_all_losses
@pytest.mark.parametrize("m", [2, 6])
def test_weights_feel_no_more_than_the_radius_of_the_documents(loss, m):
    """norm(X'g) <= R G1 and norm(X'g - X'g') <= R^2 H1 norm(w - w'), R the radius around any center: 1'g = 0."""
    rng = np.random.default_rng(m)
    for _ in range(40):
        X, labels = rng.normal(size=(m, 3)) + 10, rng.integers(0, 5, m).astype(float)
        w, other = rng.normal(size=(2, 3))
        radius = np.linalg.norm(X - X.mean(axis=0), axis=1).max()
        _, (one, two) = on_lists(loss, np.array([X @ w, X @ other]), labels)
        assert np.linalg.norm(X.T @ one) <= radius * loss.lipschitz_l1(m) + 1e-9
        if np.isfinite(loss.smoothness(m)):
            change = np.linalg.norm(X.T @ (one - two))
            assert change <= radius**2 * loss.smoothness(m) * np.linalg.norm(w - other) + 1e-9


# ------------------------------------------------------------------------------------------------ bounds


def assert_bounds(loss, scores, labels):
    short = missed(loss.upper_bounds, scores, labels) - on_lists(loss, scores, labels)[0]
    worst = int(np.argmax(short))
    assert short[worst] <= 1e-12, (scores[worst], labels[worst])


@over_all_bounds
@pytest.mark.parametrize("m", ends(2, 3, 4))
def test_every_bound_holds_on_every_weak_order_of_every_short_list(loss, m):
    """Ties count against the ranker; gaps of 1e-300 are gaps, and at gaps of 1 hinges let go."""
    scores, labels = all_lists(m, 4)
    for gap in (1e-300, 0.25, 1.0):
        assert_bounds(loss, gap * scores, labels)


@pytest.mark.thorough
@over_all_bounds
def test_every_bound_holds_on_every_weak_order_of_five_documents(loss):
    scores, labels = all_lists(5, 4)
    for gap in (0.25, 1.0):
        assert_bounds(loss, gap * scores, labels)


@over_all_bounds
@few
@given(judged_lists(min_size=2, max_size=11))
def test_every_bound_holds_on_longer_lists(loss, judged):
    assert_bounds(loss, np.array([judged[0]]), np.array([judged[1]], dtype=float))


@over_all_bounds
@pytest.mark.parametrize("m", ends(3, 6, 11))
def test_no_search_gets_below_a_bound(loss, m):
    def short(scores, labels):
        return missed(loss.upper_bounds, scores, labels) - on_lists(loss, scores, labels)[0]

    found = highest(short, m)
    assert found[0] <= 1e-12, found
