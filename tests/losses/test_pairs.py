"""Losses over pairs: when the worst pair bounds a measure, and how steep the sum over all pairs gets."""

import itertools

import numpy as np
import pytest

from rankwise.losses import MaxPair, PairHinge
from rankwise.measures import AP, NDCG, RR, WTA, Pairs
from tests.losses.lists import all_lists, missed, on_lists
from tests.losses.search import highest
from tests.oracles.losses import pairs

# ------------------------------------------------------------------------------------------------ the worst pair


@pytest.mark.parametrize("measure", [NDCG(), NDCG() @ 1, NDCG() @ 2, AP(), AP(rel=2), RR(), WTA(), Pairs()], ids=repr)
@pytest.mark.parametrize("m", [2, 3, 4])
def test_the_worst_pair_is_at_least_1_whenever_anything_is_ranked_wrongly(measure, m):
    scores, labels = all_lists(m, 4)
    for gap in (1e-300, 0.3, 1.0):
        wrong = missed(measure, gap * scores, labels) > 1e-12
        assert wrong.any()
        assert (on_lists(MaxPair(), gap * scores, labels)[0][wrong] >= 1).all()


def test_at_a_tie_the_worst_pair_is_1_and_no_more():
    """More than 1 is in print."""
    assert WTA()([0.7, 0.7], [1, 0], ties="pessimistic") == 0
    assert MaxPair()([0.7, 0.7], [1, 0])[0] == 1


def test_the_worst_pair_is_the_largest_slack_of_a_document_over_lower_labels():
    scores, labels = all_lists(4, 4)
    scores = 0.3 * scores
    lead = np.where(labels[:, None, :] < labels[:, :, None], scores[:, None, :] - scores[:, :, None], -np.inf)
    np.testing.assert_allclose(
        on_lists(MaxPair(), scores, labels)[0], np.maximum(1 + lead.max(axis=(1, 2)), 0), atol=1e-15
    )


# ------------------------------------------------------------------------------------------------ all pairs


@pytest.mark.parametrize("m", [2, 3, 4, 5, 6])
def test_no_labels_make_the_pair_hinge_steeper_than_two_equal_halves(m):
    """All labels there are with every pair active, and a search over scores that let some pairs go."""
    loss = PairHinge(per_pair=False)
    labels = np.array(list(itertools.combinations_with_replacement(range(m), m)), dtype=float)
    steepness = np.abs(on_lists(loss, np.zeros(labels.shape), labels)[1]).sum(axis=1)
    halves = (np.arange(m) < m // 2).astype(float)
    assert steepness.max() == loss.lipschitz_l1(m) == 2 * (m * m // 4) == np.abs(loss(np.zeros(m), halves)[1]).sum()
    assert highest(lambda s, y: np.abs(on_lists(loss, s, y)[1]).sum(axis=1), m)[0] == 2 * (m * m // 4)


def test_the_pair_hinge_is_steeper_than_2m():
    # 2m is in print; m = 5, two relevant, s = 0: 12 > 10
    _, gradient = PairHinge(per_pair=False)(np.zeros(5), [1, 1, 0, 0, 0])
    assert np.abs(gradient).sum() == 12 == PairHinge(per_pair=False).lipschitz_l1(5)


def test_the_pair_hinge_gradient_counts_pairs_and_not_their_slack():
    # in print the hinge's value stands in the gradient: (-2, 2) here
    np.testing.assert_array_equal(PairHinge(per_pair=False)([0, 1], [1, 0])[1], [-1, 1])


def test_dividing_by_the_number_of_pairs_divides_value_and_gradient():
    rng = np.random.default_rng(0)
    for squared in (False, True):
        for _ in range(50):
            scores, labels = rng.normal(size=6), rng.integers(0, 3, 6)
            whole = PairHinge(squared=squared, per_pair=False)(scores, labels)
            mean = PairHinge(squared=squared)(scores, labels)
            count = max(len(pairs(labels)), 1)
            assert mean[0] == pytest.approx(whole[0] / count)
            np.testing.assert_allclose(mean[1], whole[1] / count, atol=1e-14)
            assert squared or np.abs(mean[1]).sum() <= 2 + 1e-12
