"""Losses with document weights: a document of weight k counts as k copies of it.

The copies, given to the loss without weights, are the oracle for whole weights; the definition written out as loops is
that for any weights. Gradients are checked by differences, too.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankwise.errors import RankwiseError
from rankwise.losses import GradedPairs, ListMLE, ListNet, PairHinge, PairLogistic, RankCosine
from rankwise.losses._base import registered
from rankwise.losses.compute import PreparedLists, loss_lists
from tests.oracles.losses_graded import graded_pairs_at_once

WEIGHTED = [loss for kind in registered().values() if kind.document_weights for loss in kind.examples()]
OTHERS = [loss for kind in registered().values() if not kind.document_weights for loss in kind.examples()[:1]]
over_weighted = pytest.mark.parametrize("loss", WEIGHTED, ids=repr)


def pairs(loss, term, s, y, w):
    """(value, sum of weights) of a loss over pairs."""
    found = [(w[i] * w[j], term(s[j] - s[i])) for i in range(len(s)) for j in range(len(s)) if y[i] > y[j]]
    total, mass = math.fsum(a * b for a, b in found), math.fsum(a for a, _ in found)
    return (total / mass if mass else 0.0) if loss.per_pair else total


def list_mle(loss, s, y, w):
    """The weighted sum over draws, or their weighted mean."""
    every, total, mass = range(len(s)), 0.0, 0.0
    for i in every:
        rivals = [math.log(w[j]) + s[j] - s[i] for j in every if y[j] < y[i] and w[j] > 0]
        if rivals and w[i] > 0:
            total += w[i] * float(np.logaddexp.reduce([0.0, *rivals]))
            mass += w[i]
    return total / mass if loss.per_draw and mass else total


def rank_cosine(loss, s, y, w):
    """The cosine of weighted, centered vectors."""
    if len(set(y[w > 0])) < 2:
        return 0.0
    target = y if loss.target == "labels" else 2.0**y - 1
    t, x = target - w @ target / w.sum(), s - w @ s / w.sum()
    cosine = w @ (t * x) / math.sqrt((w @ t**2) * (w @ x**2 + loss.epsilon**2))
    return (1 - cosine) / 2


def definition(loss, s, y, w):
    """The value of a weighted loss, written out."""
    if isinstance(loss, PairHinge):
        return pairs(loss, lambda x: max(0.0, 1 + x) ** (2 if loss.squared else 1), s, y, w)
    if isinstance(loss, PairLogistic):
        return pairs(loss, lambda x: float(np.logaddexp(0, x)), s, y, w)
    if isinstance(loss, GradedPairs):
        return graded_pairs_at_once(s, y, w)[0]
    if isinstance(loss, ListMLE):
        return list_mle(loss, s, y, w)
    if isinstance(loss, RankCosine):
        return rank_cosine(loss, s, y, w)
    assert isinstance(loss, ListNet)
    kept = [i for i in range(len(s)) if w[i] > 0]
    if len({y[i] for i in kept}) < 2:
        return 0.0
    target = y if loss.target == "labels" else 2.0**y - 1
    log_y = math.log(math.fsum(w[i] * math.exp(target[i]) for i in kept))
    log_s = math.log(math.fsum(w[i] * math.exp(s[i]) for i in kept))
    entropy = 1.0 if loss.form == "kl" else 0.0
    return math.fsum(
        w[i] * math.exp(target[i] - log_y) * (entropy * (target[i] - log_y) - (s[i] - log_s)) for i in kept
    )


def lists(seed, whole=False, size=None):
    rng = np.random.default_rng(seed)
    m = size or int(rng.integers(1, 12))
    w = rng.integers(0, 4, m).astype(float) if whole else np.where(rng.random(m) < 0.2, 0.0, rng.lognormal(size=m))
    w[rng.integers(m)] = 1.0
    return rng.normal(size=m) * 2, rng.integers(0, 4, m).astype(float), w


def test_the_losses_that_take_weights_are_these():
    assert {type(loss).__name__ for loss in WEIGHTED} == {
        "PairHinge",
        "PairLogistic",
        "ListNet",
        "ListMLE",
        "RankCosine",
        "GradedPairs",
    }


@over_weighted
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_a_weighted_loss_is_its_definition(loss, seed):
    s, y, w = lists(seed)
    assert loss(s, y, w)[0] == pytest.approx(definition(loss, s, y, w), rel=1e-11, abs=1e-12)


@over_weighted
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_a_document_of_weight_k_is_k_copies(loss, seed):
    s, y, w = lists(seed, whole=True)
    copies = np.repeat(np.arange(len(s)), w.astype(int))
    value, gradient = loss(s, y, w)
    expected, slopes = loss(s[copies], y[copies])
    assert value == pytest.approx(expected, rel=1e-11, abs=1e-12)
    np.testing.assert_allclose(gradient, np.bincount(copies, slopes, len(s)), rtol=1e-10, atol=1e-12)


@over_weighted
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_a_document_of_weight_0_is_absent(loss, seed):
    s, y, w = lists(seed)
    kept = w > 0
    value, gradient = loss(s, y, w)
    expected, slopes = loss(s[kept], y[kept], w[kept])
    assert value == pytest.approx(expected, rel=1e-12, abs=1e-13)
    np.testing.assert_allclose(gradient[kept], slopes, rtol=1e-11, atol=1e-13)
    assert not gradient[~kept].any()
    moved = np.where(kept, s, s + 100.0)
    assert loss(moved, y, w)[0] == pytest.approx(value, rel=1e-9, abs=1e-9)


@over_weighted
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_gradient_is_that_of_differences(loss, seed):
    s, y, w = lists(seed, size=6)
    if isinstance(loss, PairHinge) and np.min(np.abs(1 + s[None] - s[:, None])) < 1e-3:
        return  # a kink
    value, gradient = loss(s, y, w)
    step = 1e-5
    for i in range(len(s)):
        ahead, back = (definition(loss, s + sign * step * np.eye(len(s))[i], y, w) for sign in (1, -1))
        assert gradient[i] == pytest.approx((ahead - back) / (2 * step), rel=1e-5, abs=1e-5 * (1 + abs(value)))
    assert gradient.sum() == pytest.approx(0.0, abs=1e-10 * (1 + np.abs(gradient).sum()))


@over_weighted
def test_weights_of_one_give_the_same_bits_as_none(loss):
    for seed in range(30):
        s, y, _ = lists(seed)
        value, gradient = loss(s, y)
        same, slopes = loss(s, y, np.ones(len(s)))
        assert same == value
        np.testing.assert_array_equal(slopes, gradient)


@over_weighted
def test_a_common_factor_does_what_the_docstring_says(loss):
    for seed in range(20):
        s, y, w = lists(seed)
        value, scaled = loss(s, y, w)[0], loss(s, y, 3 * w)[0]
        if isinstance(loss, (GradedPairs, ListMLE, RankCosine)):
            expected = definition(loss, s, y, 3 * w)
        elif isinstance(loss, ListNet):
            degenerate = len(set(y[w > 0])) < 2
            expected = value if loss.form == "kl" or degenerate else value + math.log(3)
        else:
            expected = value if loss.per_pair else 9 * value
        assert scaled == pytest.approx(expected, rel=1e-10, abs=1e-12)


@over_weighted
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_constants_of_means_hold_with_weights(loss, seed):
    """The docstrings say that G1 and the range stay true: means and softmax, not sums."""
    s, y, w = lists(seed)
    if getattr(loss, "per_pair", True) is False or getattr(loss, "form", "kl") == "ce":
        return
    if isinstance(loss, (GradedPairs, RankCosine)):
        return
    if isinstance(loss, ListMLE):  # weights change the range, and of the constants those of the sum
        if loss.per_draw:
            assert np.abs(loss(s, y, w)[1]).sum() <= 2 * (1 + 1e-12)
        return
    value, gradient = loss(s, y, w)
    low, high = loss.range(float(np.abs(s).max()), len(s), (y.min(), y.max()))
    assert low <= value <= high * (1 + 1e-12) + 1e-12
    assert np.abs(gradient).sum() <= loss.lipschitz_l1(len(s)) * (1 + 1e-12) + 1e-12


@over_weighted
def test_extreme_scores_and_weights_stay_finite(loss):
    s, y = np.array([1e5, -1e5, 0.0]), np.array([0.0, 2.0, 1.0])
    for w in ([1e-100, 1e100, 1.0], [1e-100] * 3, [1e50, 1e50, 0.0]):
        value, gradient = loss(s, y, w)
        assert np.isfinite(value)
        assert np.isfinite(gradient).all()


@over_weighted
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_many_queries_are_the_same_as_one_after_the_other(loss, n_jobs):
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, 9, 40)
    start = np.concatenate([[0], np.cumsum(sizes)])
    rows = rng.permutation(start[-1])
    s, y, w = rng.normal(size=start[-1]), rng.integers(0, 3, start[-1]).astype(float), rng.lognormal(size=start[-1])
    values, gradient = loss_lists(PreparedLists.of(loss, y, start, rows, w), s, n_jobs=n_jobs)
    for q in range(len(sizes)):
        own = rows[start[q] : start[q + 1]]
        value, slope = loss(s[own], y[own], w[own])
        assert values[q] == value
        np.testing.assert_array_equal(gradient[own], slope)


@pytest.mark.parametrize("loss", OTHERS, ids=repr)
def test_every_other_loss_refuses_them_by_name(loss):
    with pytest.raises(RankwiseError, match=rf"{type(loss).__name__}\(.*takes no document weights"):
        loss([0.0, 1.0], [1, 0], [1.0, 2.0])
    assert loss([0.0, 1.0], [1, 0], [1.0, 1.0])[0] == loss([0.0, 1.0], [1, 0])[0]
