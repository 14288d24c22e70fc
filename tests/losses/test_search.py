"""The search that the common suite relies on finds the worst lists where they are known."""

import numpy as np
import pytest

from rankwise.losses import SLAM, ListNet, MaxPair, NDCGHinge, PairHinge, SmoothAP, SmoothDCG1, SVMMapHinge
from tests.losses.lists import on_lists
from tests.losses.search import highest

KNOWN = [
    ListNet(target="gains"),
    MaxPair(),
    PairHinge(),
    PairHinge(per_pair=False),
    SLAM(weights="ndcg_003"),
    SLAM(weights="ap_003"),
    SmoothAP(),
    SmoothAP(sigma=0.1),
    SmoothDCG1(),
    SVMMapHinge(),
    NDCGHinge(),
    NDCGHinge(k=1),
]


@pytest.mark.parametrize("loss", KNOWN, ids=repr)
@pytest.mark.parametrize("m", [2, 5, 9])
def test_the_steepest_list_is_found(loss, m):
    found, scores, labels = highest(lambda s, y: np.abs(on_lists(loss, s, y)[1]).sum(axis=1), m)
    assert found == np.abs(on_lists(loss, scores[None], labels)[1]).sum()
    assert found >= 0.95 * loss.lipschitz_l1(m)


@pytest.mark.parametrize("loss", [ListNet(), PairHinge(squared=True)], ids=repr)
def test_the_fastest_turn_is_found(loss):
    def turn(both, labels):
        s, direction = both[:, :3], np.clip(both[:, 3:], -1, 1)
        return np.abs(on_lists(loss, s + 1e-4 * direction, labels)[1] - on_lists(loss, s, labels)[1]).sum(axis=1) / 1e-4

    assert highest(turn, 3, width=6)[0] >= 0.999 * loss.smoothness(3)


@pytest.mark.parametrize("loss", [MaxPair(), PairHinge(), PairHinge(squared=True), SLAM(k=1)], ids=repr)
@pytest.mark.parametrize("b", [0.3, 2.0])
def test_the_largest_value_is_found(loss, b):
    found, scores, _ = highest(lambda s, y: on_lists(loss, s, y)[0], 5, box=b)
    assert found == pytest.approx(loss.range(b, 5)[1])
    assert np.abs(scores).max() <= b
