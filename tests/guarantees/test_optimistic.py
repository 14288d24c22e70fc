"""The bound for smooth losses: unverified, but not refuted by any trial, and silent where it has nothing to say."""

import math

import numpy as np
import pytest

from rankwise.guarantees.bounds.uniform import smooth_ball, smooth_erm
from tests.guarantees.coin_lists import RADIUS, draw, memorized
from tests.guarantees.test_uniform import DELTAS, REPETITIONS, allowed, coins


@pytest.mark.parametrize("n", [3, 50, 2_000])
@pytest.mark.parametrize("chance", [0.001, 0.02, 0.3, 0.9])
def test_the_smooth_bound_on_losses_of_0_and_1_that_no_w_changes(n, chance):
    """Exactly, over every number of ones: tiny weights leave of the bound what Bousquet's constants have to carry.

    Where it is unverified it is at least not refuted: rare losses that most samples have none of are its hard case.
    """
    successes = np.arange(n + 1)
    log_choose = [math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) for k in successes]
    weight = np.exp(np.array(log_choose) + successes * math.log(chance) + (n - successes) * math.log1p(-chance))
    for delta in DELTAS:
        known = {"H1": 1.0, "W": 1e-6, "radius": 1.0, "m": 2, "n": n, "B": 1.0, "delta": delta}
        wrong = np.array([not smooth_ball(risk=k / n, **known).allows(chance) for k in successes])
        assert weight[wrong].sum() <= delta
        best = smooth_erm(L_star=chance, **known)
        assert best.value >= chance


@pytest.mark.parametrize("n", [1_000, 4_000])
def test_smooth_losses_that_were_learned_by_heart(n):
    """phi = (1 - sign w_k)^2/4 on coins: its slope in the two scores turns by H1 = 1/2 at most, and w is short."""
    chances, W = coins(50, fair=True), 0.01
    samples = draw(REPETITIONS, n, chances, seed=n)
    w = memorized(samples, W)
    losses = (1 - samples.signs * np.take_along_axis(w, samples.lists, axis=1)) ** 2 / 4
    risk, B_W = losses.mean(axis=1), (1 + W) ** 2 / 4
    true = ((1 + w**2) / 4).mean(axis=1)
    assert (risk < true).mean() > 0.9
    for delta in DELTAS:
        known = {"H1": 0.5, "W": W, "radius": RADIUS, "m": 2, "n": n, "B": B_W, "delta": delta}
        at = {each: smooth_ball(risk=float(each), **known).value for each in np.unique(risk)}
        assert np.mean([one > at[each] for one, each in zip(true, risk, strict=True)]) <= allowed(delta)


def test_smooth_losses_have_no_bound_before_there_are_many_queries():
    few = smooth_ball(risk=0.0, H1=1.0, W=1.0, radius=1.0, m=10, n=100, B=1.0, delta=0.05)
    assert few.value == math.inf
    assert few.applies is False
    assert few.vacuous
    many = smooth_erm(L_star=0.0, H1=1.0, W=1.0, radius=1.0, m=10, n=10**11, B=1.0, delta=0.05)
    assert many.value < 0.05
    more = smooth_erm(L_star=0.0, H1=1.0, W=1.0, radius=1.0, m=10, n=10**12, B=1.0, delta=0.05)
    assert more.value < many.value / 5  # nearly 1/n at no loss
    assert smooth_erm(L_star=0.3, H1=1.0, W=1.0, radius=1.0, m=10, n=10**11, B=1.0, delta=0.05).value > 0.3
