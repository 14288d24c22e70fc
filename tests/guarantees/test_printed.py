"""Uniform bounds as the papers print them, each where it fails, and ours there."""

import math
from itertools import product

import numpy as np
import pytest

from rankwise._errors import RankwiseError
from rankwise.guarantees.fitted import smallest
from rankwise.guarantees.optimistic import smooth_erm
from rankwise.guarantees.printed import (
    printed_corollary_8,
    printed_corollary_11,
    printed_smooth_erm,
    printed_theorem_1,
)
from rankwise.guarantees.uniform import l1_ball, l2_ball, linf_ball


def test_theorem_1_of_smoothrank_needs_bounded_losses():
    """phi = 1000 y for a fair coin y, one list: constant in the scores, yet half of all samples break the bound."""
    for y in (0.0, 1.0):
        known = {"risk": 1000 * y, "L2": 1e-9, "W": 1.0, "radius": 1.0, "m": 1, "n": 1, "delta": 0.05}
        printed, ours = printed_theorem_1(**known), l2_ball(b=1000.0, **known)
        assert printed.allows(500.0) is (y == 1.0)
        assert ours.allows(500.0)
        assert printed.status == "as printed"


@pytest.mark.parametrize("n", [1, 10, 1_000])
@pytest.mark.parametrize("delta", [0.01, 0.5])
def test_between_0_and_1_the_printed_numbers_are_valid(n, delta):
    known = {"risk": 0.5, "L2": 2.0, "W": 1.0, "radius": 1.0, "m": 7, "n": n, "delta": delta}
    assert printed_theorem_1(**known).allows(l2_ball(b=1.0, **known).value)


def test_corollary_8_can_be_negative():
    """A Rademacher complexity is never below 0, and here the losses are all but constant."""
    known = {"G": 2.0, "W": 1.0, "radius": 1.0, "m": 100, "n": 50}
    printed = printed_corollary_8(B=0.05, **known)
    assert printed.value == pytest.approx(-30, abs=0.5)
    ours = linf_ball(risk=0.0, b=0.05, delta=0.05, **known)
    assert ours.terms["Rad"] == 0.025  # half the interval: always true
    assert ours.vacuous


def rademacher_of_absolute_value():
    """Exactly, for phi(s) = abs(s), one list of one document x = e_1 and the l1 ball of radius 1 in the plane."""
    corners = [(1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0), (0.0, 0.0)]
    return np.mean([max(sign * abs(w[0]) for w in corners) for sign in (-1, 1)])


def test_corollary_11_can_be_0_where_the_complexity_is_not():
    known = {"G": 1.0, "W1": 1.0, "entry": 1.0, "d": 2, "m": 1, "n": 1}
    printed = printed_corollary_11(B=76.85, **known)
    assert rademacher_of_absolute_value() == 0.5
    assert printed.value == pytest.approx(0, abs=1e-2)
    assert not printed.allows(0.5)
    assert l1_ball(risk=0.0, b=76.85, delta=0.05, **known).terms["Rad"] >= 0.5


@pytest.mark.parametrize("n", [1, 4, 8])
@pytest.mark.parametrize("m", [1, 3])
def test_ours_are_above_the_complexity_where_that_can_be_enumerated(n, m):
    """phi(s) = max abs(s_i), which is 1-Lipschitz in the largest score, over every choice of signs."""
    random = np.random.default_rng(n * m)
    X = random.uniform(-1, 1, size=(n, m, 2))
    X /= np.maximum(np.linalg.norm(X, axis=2, keepdims=True), 1.0)
    angles = np.linspace(0, 2 * np.pi, 721)
    ball = np.stack([np.cos(angles), np.sin(angles)]) * np.linspace(0, 1, 21)[:, None, None]
    values = np.abs(np.einsum("nmd,rda->nmra", X, ball)).max(axis=1).reshape(n, -1)
    signs = np.array(list(product([-1, 1], repeat=n)))
    rad = (signs @ values).max(axis=1).mean() / n
    known = {"risk": 0.0, "G": 1.0, "m": m, "n": n, "b": 1.0, "delta": 0.05}
    assert rad <= linf_ball(W=1.0, radius=1.0, **known).terms["Rad"]
    assert rad <= l1_ball(W1=math.sqrt(2), entry=1.0, d=2, **known).terms["Rad"]
    spread = l2_ball(risk=0.0, L2=1.0, W=1.0, radius=1.0, m=m, n=n, b=1.0, delta=0.05)
    assert 2 * rad <= spread.terms["complexity"]


def test_appendix_m_loses_the_best_risk_on_the_way():
    printed = printed_smooth_erm(L_star=1.0, D_0=1e-6)
    assert printed.value == pytest.approx(0.0005, abs=1e-5)
    assert printed.value < 1.0  # no w risks less than the best
    ours = smooth_erm(L_star=1.0, H1=1.0, W=1e-6, radius=1.0, m=1, n=10**9, B=1.0, delta=0.05)
    assert ours.value >= 1.0
    assert ours.status == "unverified"


def test_what_is_printed_is_never_the_smallest():
    known = {"risk": 0.5, "L2": 0.1, "W": 1.0, "radius": 1.0, "m": 1, "n": 100}
    with pytest.raises(RankwiseError, match="needs one that is verified"):
        smallest(lambda delta: printed_theorem_1(delta=delta, **known), delta=0.05)
    best = smallest(
        lambda delta: printed_theorem_1(delta=delta, **known),
        lambda delta: l2_ball(b=1.0, delta=delta, **known),
        delta=0.05,
    )
    assert best.terms["delta_each"] == 0.05


def test_corollary_11_refuses_a_logarithm_below_0():
    with pytest.raises(RankwiseError, match="length is finite and above 0"):
        printed_corollary_11(G=0.01, W1=1.0, entry=1.0, d=2, m=1, n=1, B=1.0)
