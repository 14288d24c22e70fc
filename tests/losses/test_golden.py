"""Values worked out once, by enumeration and by hand; names as they stand in the specification.

Last digits depend on the platform: some processors round once where others round twice.
"""

import numpy as np
import pytest

from rankwise.losses import SLAM, ListNet, MaxPair, SmoothNDCG
from rankwise.measures import NDCG
from tests.losses.weights import read_off

SCORES, LABELS = [0.3, 0.1, 0.9, 0.3, -0.2], [2, 0, 1, 0, 3]
OTHER_SCORES = [0.3, 0.1, 0.9, 0.5, -0.2]  # without a tie

WEIGHTS = {
    "v_ndcg003": (SLAM(weights="ndcg_003"), [0.20151514190050246, 0, 0.05323232387329983, 0, 0.7452525342261976]),
    "v_ndcg_tight": (
        SLAM(weights="ndcg_tight"),
        [0.07795669834447638, 0, 0.012046176021291134, 0, 0.45694949926213674],
    ),
    "v_ndcg@3_tight": (
        SLAM(weights="ndcg_tight", k=3),
        [0.20151514190050246, 0, 0.05323232387329983, 0, 0.7452525342261976],
    ),
    "v_ap000": (SLAM(weights="ap_000"), [0.2222222222222222, 0, 0.16666666666666666, 0, 0.1333333333333333]),
    "v_ap_sym": (SLAM(weights="ap_sym"), [0.17407407407407405, 0, 0.17407407407407405, 0, 0.17407407407407405]),
}

LOSSES = {
    "slam_ndcg003": (
        SLAM(weights="ndcg_003"),
        1.908747478465139,
        [-0.20151514190050246, 0, 0.8935353522534002, 0.05323232387329983, -0.7452525342261976],
    ),
    "slam_ap003": (
        SLAM(weights="ap_003"),
        0.9666666666666667,
        [-0.3333333333333333, 0, -0.3333333333333333, 1, -0.3333333333333333],
    ),
    "slam_apsym": (
        SLAM(weights="ap_sym"),
        0.5048148148148147,
        [-0.17407407407407405, 0, -0.17407407407407405, 0.5222222222222221, -0.17407407407407405],
    ),
    "phiC": (MaxPair(), 2.1, [0, 0, 1, 0, -1]),
    "listnet_ce": (ListNet(form="ce"), 1.9252353235368014, None),
    "listnet_kl": (ListNet(), 0.8687141991173025, None),
}

SMOOTH_NDCG = {
    1.0: (
        0.6159420771591759,
        [-0.017625627140153567, -0.10751712697235294, -0.033199840195803285, -0.04527557258221436, 0.20361816689052412],
    ),
    0.1: (
        0.5421085266408681,
        [0.1183856787287638, -0.08088343112051449, 0.07317129687143448, -0.0872620973251104, -0.023411447154573273],
    ),
}


@pytest.mark.parametrize("name", WEIGHTS)
def test_weights(name):
    loss, expected = WEIGHTS[name]
    np.testing.assert_allclose(read_off(loss, LABELS), expected, rtol=1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_values_and_gradients(name):
    loss, expected, slope = LOSSES[name]
    value, gradient = loss(SCORES, LABELS)
    assert value == pytest.approx(expected, rel=1e-12)
    if slope is not None:
        np.testing.assert_allclose(gradient, slope, rtol=1e-12)


@pytest.mark.parametrize("sigma", SMOOTH_NDCG)
def test_smooth_ndcg_is_a_gain_and_its_loss_the_rest(sigma):
    loss, (gain, slope) = SmoothNDCG(sigma=sigma), SMOOTH_NDCG[sigma]
    value, gradient = loss(OTHER_SCORES, LABELS)
    assert loss.measure_value(OTHER_SCORES, LABELS) == 1 - value == pytest.approx(gain, rel=1e-12)
    np.testing.assert_allclose(-gradient, slope, rtol=1e-12)


def test_what_smooth_ndcg_smooths():
    assert NDCG()(OTHER_SCORES, LABELS) == pytest.approx(0.55446465433056, rel=1e-12)
    # Z is what the gains of a smooth NDCG are divided by: at a wide kernel its value is (sum G)(sum D) / (m Z)
    gains, discounts = 2.0 ** np.array(LABELS) - 1, 1 / np.log2(np.arange(2, 7))
    wide = SmoothNDCG(sigma=1e14).measure_value(OTHER_SCORES, LABELS)
    assert gains.mean() * discounts.sum() / wide == pytest.approx(9.392789260714373, rel=1e-11)
