"""What only StochasticNDCG promises: its noise, its limit without noise, and who it refuses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwise.errors import RankwiseError
from rankwise.losses import StochasticNDCG
from rankwise.losses.compute import PreparedLists, curvature_lists, loss_lists
from tests.oracles.losses_stochastic import gumbel
from tests.strategies import few, judged_lists


def test_the_noise_of_the_definition_has_the_standard_gumbel_distribution():
    """Mean and variance, and the chance to be the largest of two is a softmax of the scores."""
    loss = StochasticNDCG(random_state=3)
    noise = np.array([gumbel(loss, draw, place) for draw in range(4) for place in range(5_000)])
    assert noise.mean() == pytest.approx(np.euler_gamma, abs=0.03)
    assert noise.std() == pytest.approx(np.pi / np.sqrt(6), abs=0.03)
    first, second = noise.reshape(2, -1)
    assert (first + 1.0 > second).mean() == pytest.approx(1 / (1 + np.exp(-1.0)), abs=0.02)
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.03


@few
@given(judged_lists(min_size=2, max_size=9), st.integers(1, 10))
def test_without_noise_every_draw_is_the_order_of_the_scores(judged, k):
    scores, labels = judged
    one = StochasticNDCG(k=k, beta=0.0, draws=1)(scores, labels)
    many = StochasticNDCG(k=k, beta=0.0, draws=4, random_state=7, iteration=2)(scores, labels)
    assert one[0] == pytest.approx(many[0], rel=1e-12, abs=1e-14)
    np.testing.assert_allclose(one[1], many[1], rtol=1e-12, atol=1e-14)


def test_iterations_seeds_and_places_have_noise_of_their_own():
    rng = np.random.default_rng(0)
    scores, labels = np.tile(rng.normal(size=8), 2), np.tile(np.array([3, 0, 1, 0, 2, 0, 0, 1.0]), 2)
    start = np.array([0, 8, 16])

    def values(loss):
        return loss_lists(PreparedLists.of(loss, labels, start), scores)[0]

    loss = StochasticNDCG(draws=1)
    np.testing.assert_array_equal(values(loss), values(StochasticNDCG(draws=1)))
    assert values(loss)[0] != values(loss)[1]
    assert (values(loss) != values(loss.at_iteration(1))).any()
    assert (values(loss) != values(StochasticNDCG(draws=1, random_state=1))).any()


def test_lists_prepared_once_serve_every_iteration():
    rng = np.random.default_rng(1)
    labels, start = rng.integers(0, 3, 30).astype(float), np.array([0, 12, 30])
    loss, scores = StochasticNDCG(), rng.normal(size=30)
    first, later = (PreparedLists.of(one, labels, start) for one in (loss, loss.at_iteration(9)))
    np.testing.assert_array_equal(first.label, later.label)
    np.testing.assert_array_equal(first.value, later.value)
    assert (curvature_lists(first, scores)[0] != curvature_lists(later, scores)[0]).any()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"k": 0}, "'k'.* must be an int .*Got 0"),
        ({"beta": -1.0}, "'beta'.* must be a float .*Got -1.0"),
        ({"beta": np.nan}, "'beta'.* must be a float"),
        ({"draws": 0}, "'draws'.* must be an int .*Got 0"),
        ({"draws": 2.5}, "'draws'.* must be an int"),
        ({"random_state": -1}, "'random_state'.* must be an int"),
        ({"iteration": 2**53}, "'iteration'.* must be an int"),
    ],
)
def test_what_makes_no_sense_is_refused(given, message):
    with pytest.raises(RankwiseError, match=message):
        StochasticNDCG(**given)
