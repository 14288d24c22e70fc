"""What holds for every loss, over whatever the registry finds: a new file comes under all of it.

The facts that a loss declares are tried in ``test_every_fact.py``, other processes in ``tests/kernels``.
"""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given

from rankwise.errors import RankwiseError
from rankwise.losses import registered
from rankwise.losses.compute import PreparedLists, loss_lists
from tests.losses.lists import on_lists
from tests.oracles.losses import DEFINITIONS, plain
from tests.strategies import ends, few, judged_lists

LOSSES = [loss for kind in registered().values() for loss in kind.examples()]
over_all_losses = pytest.mark.parametrize("loss", LOSSES, ids=repr)
# What installed packages declare comes under everything but this: their definitions are theirs to test.
over_all_defined = pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss.name in DEFINITIONS], ids=repr)


def assert_equals_plain(loss, scores, labels):
    value, gradient = loss(scores, labels)
    expected, expected_gradient = plain(loss, scores, labels)
    scale = 1 + np.abs(scores).max()
    rounding = 1e-11 * scale * (scale if getattr(loss, "squared", False) else 1)  # a square's error is a square
    assert value == pytest.approx(expected, rel=1e-11, abs=rounding)
    if expected_gradient is not None:
        np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-10, atol=rounding * len(labels))


def test_every_loss_of_the_package_has_a_definition_to_be_held_against():
    assert set(DEFINITIONS) == {name for name, kind in registered().items() if kind.__module__.startswith("rankwise.")}


@over_all_defined
@few
@given(judged_lists(max_size=9))
def test_fast_equals_plain(loss, judged):
    assert_equals_plain(loss, *judged)


@over_all_defined
@pytest.mark.parametrize("scale", [1e3, 1e-300])
def test_fast_equals_plain_on_huge_scores_and_on_gaps_that_almost_vanish(loss, scale):
    rng = np.random.default_rng(0)
    for m in (2, 5, 8):
        labels = np.append([3.0, 0.0], rng.integers(0, 4, m - 2))
        assert_equals_plain(loss, rng.normal(size=m) * scale, labels)


@over_all_losses
@pytest.mark.parametrize("scale", ends(1e3, 1e-300, 1e150))
def test_huge_and_tiny_scores_stay_numbers(loss, scale):
    """Where a square cannot be represented the loss is infinite, and never a NaN."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        value, gradient = loss(rng.normal(size=12) * scale, rng.integers(0, 4, 12).astype(float))
        assert not np.isnan(value)
        assert not np.isnan(gradient).any()
        if scale < 1e150:
            assert np.isfinite(value)
            assert np.isfinite(gradient).all()


@over_all_losses
@pytest.mark.parametrize("m", ends(2, 3, 7))
def test_neither_a_constant_nor_the_order_of_documents_matters(loss, m):
    rng = np.random.default_rng(m)
    scores, labels = rng.normal(size=(200, m)), rng.integers(0, 4, (200, m)).astype(float)
    scores[::2] = np.round(scores[::2])  # ties
    values, gradient = on_lists(loss, scores, labels)
    rounding = 1e-13 * (1 + np.abs(gradient).sum(axis=1)) * (1 + np.abs(values))
    assert (np.abs(gradient.sum(axis=1)) <= rounding).all()
    constant = rng.uniform(-100, 100, (200, 1))
    moved = on_lists(loss, scores + constant, labels)[0]
    assert (np.abs(moved - values) <= 1000 * rounding).all()  # the scores lost three digits
    if loss.order_free:
        shuffle = rng.permuted(np.tile(np.arange(m), (200, 1)), axis=1)
        shuffled = (np.take_along_axis(array, shuffle, axis=1) for array in (scores, labels))
        np.testing.assert_allclose(on_lists(loss, *shuffled)[0], values, rtol=1e-12, atol=1e-12)


@over_all_losses
@pytest.mark.parametrize("labels", [[0], [3], [0, 0, 0], [2, 2], [4, 4, 4, 4]])
def test_nothing_to_rank_is_no_loss_and_no_gradient(loss, labels):
    value, gradient = loss(np.linspace(-1, 2, len(labels)), labels)
    assert value == 0
    np.testing.assert_array_equal(gradient, np.zeros(len(labels)))


@over_all_losses
def test_an_empty_query_is_no_loss(loss):
    lists = PreparedLists.of(loss, np.array([1.0, 0.0]), np.array([0, 0, 2, 2]))
    values, gradient = loss_lists(lists, np.array([1.0, 2.0]))
    value, own = loss([1.0, 2.0], [1.0, 0.0])
    np.testing.assert_array_equal(values, [0, value, 0])
    np.testing.assert_array_equal(gradient, own)


@over_all_losses
def test_threads_chunks_and_row_order_do_not_change_a_bit(loss):
    rng = np.random.default_rng(2)
    size = 80_000  # more than one chunk
    start = np.append(np.sort(rng.choice(size, 4_000, replace=False)), size)
    start[0] = 0
    s, y = rng.normal(size=size), rng.integers(0, 4, size).astype(float)
    lists = PreparedLists.of(loss, y, start)
    one = loss_lists(lists, s, n_jobs=1)
    with ThreadPoolExecutor(2) as pool:  # two Python threads at once, on two threads each
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
