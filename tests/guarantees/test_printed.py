"""Uniform bounds as the papers print them, each where it fails, and ours there."""

import math
import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.printed_bounds import (
    printed_corollary_8,
    printed_corollary_11,
    printed_smooth_erm,
    printed_theorem_1,
)
from rankwise.errors import RankwiseError
from rankwise.guarantees._bound import smallest
from rankwise.guarantees.bounds.uniform import l1_ball, l2_ball, linf_ball, linf_erm, smooth_ball, smooth_erm
from rankwise.losses import SmoothNDCG


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
    """Also as the generalization bounds quote them, with log(1/delta) in place of log(2/delta)."""
    known = {"risk": 0.5, "L2": 2.0, "W": 1.0, "radius": 1.0, "m": 7, "n": n, "delta": delta}
    ours, printed = l2_ball(b=1.0, **known), printed_theorem_1(**known)
    assert printed.allows(ours.value)
    quoted = printed.value - math.sqrt(8 * math.log(2 / delta) / n) + math.sqrt(8 * math.log(1 / delta) / n)
    assert ours.value <= quoted <= printed.value


def test_smoothranks_complexity_follows_from_its_own_constant():
    """24 (B R m)^2/(sigma sqrt(n)), from the slope 8 b m^1.5/sigma of scores up to b = B R."""
    B, R, m, n, sigma = 1.5, 2.0, 9, 400, 0.3
    slope = 8 * B * R * m**1.5 / sigma
    printed = printed_theorem_1(risk=0.0, L2=slope, W=B, radius=R, m=m, n=n, delta=0.05)
    tail = math.sqrt(8 * math.log(2 / 0.05) / n)
    assert printed.value - tail == pytest.approx(24 * (B * R * m) ** 2 / (sigma * math.sqrt(n)))
    # the slope that is proved here, without any bound on scores, is a fraction of it
    proved = SmoothNDCG(sigma=sigma).lipschitz_l1(m)
    assert (
        l2_ball(risk=0.0, L2=proved, W=B, radius=R, m=m, n=n, b=1.0, delta=0.05).terms["complexity"]
        < printed.value / 10
    )


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


def log2_cover(eps, a, rows):
    """What is proved here: log2 of how many balls of size eps in the largest score cover all scores of norm a."""
    return 1 + 4 * (a / eps) ** 2 * math.log2(2 * rows) if eps < a else 0.0


def log2_cover_sparse(eps, a, rows, d):
    return (2 * (a / eps) ** 2 * math.log(2 * rows) + 1) * math.log2(2 * d) if eps < a else 0.0


@pytest.mark.parametrize("rows", [1, 2, 3, 7])
@pytest.mark.parametrize("eps", [0.3, 0.55, 0.9, 0.999])
def test_no_points_that_are_far_apart_outnumber_the_covering_number(rows, eps):
    """Points 2 eps apart need a ball each. The rows are the axes, for which the l2 ball is hardest to cover."""
    random = np.random.default_rng(rows)
    inside = random.standard_normal((4_000, rows))
    inside /= np.linalg.norm(inside, axis=1, keepdims=True) / random.random((4_000, 1)) ** (1 / rows)
    corners = np.vstack([np.eye(rows), -np.eye(rows)])
    for points, limit in (
        (np.vstack([corners, inside]), log2_cover(eps, 1.0, rows)),
        (
            np.vstack([corners, inside / np.maximum(np.abs(inside).sum(axis=1, keepdims=True), 1)]),
            log2_cover_sparse(eps, 1.0, rows, rows),
        ),
    ):
        apart = []
        for point in points:
            if all(np.abs(point - other).max() > 2 * eps for other in apart):
                apart.append(point)
        assert math.log2(len(apart)) <= limit
        assert len(apart) > 1 or eps > 0.5


@pytest.mark.parametrize(("n", "m"), [(10, 3), (10**9, 100)])
def test_the_covering_numbers_are_those_of_dudleys_integral(n, m):
    """10 times the integral of sqrt(log2 N/n) from alpha to a is at most C log(a/alpha)."""
    known = {"risk": 0.0, "G": 2.0, "m": m, "n": n, "b": 50.0, "delta": 0.05}
    for bound, cover in (
        (linf_ball(W=3.0, radius=1.0, **known), lambda eps: log2_cover(eps, 6.0, m * n)),
        (l1_ball(W1=3.0, entry=1.0, d=9, **known), lambda eps: log2_cover_sparse(eps, 6.0, m * n, 9)),
    ):
        for alpha in (0.01, 1.0, 5.0):
            eps = np.geomspace(alpha, 6.0 * (1 - 1e-12), 20_001)
            heights = 10 * np.sqrt(np.array([cover(one) for one in eps]) / n)
            area = ((heights[1:] + heights[:-1]) / 2 * np.diff(eps)).sum()
            assert area <= bound.terms["C"] * math.log(6.0 / alpha) * (1 + 1e-6)
        assert bound.terms["C"] == pytest.approx(10 * 6.0 * math.sqrt(cover(6.0 * (1 - 1e-12)) / n))


@given(st.integers(1, 10**6), st.integers(1, 10**9), st.floats(0.01, 10))
def test_the_constants_of_theorem_17_are_larger_than_ours(m, n, WR):
    """5 sqrt(3) and log2(3 m n) for 5 sqrt(2) and log2(4 m n): what is printed is valid, too."""
    ours = smooth_ball(risk=0.0, H1=1.0, W=WR, radius=1.0, m=m, n=n, B=1.0, delta=0.05).terms["C"]
    assert ours <= 5 * math.sqrt(3) * WR * math.sqrt(math.log2(3 * m * n) / n) * (1 + 1e-12)


NONNEGATIVE = {  # name -> (loss of one number, how fast its slope turns at most)
    "square": (lambda t: t**2 / 2, 1.0),
    "log cosh": (lambda t: np.log(np.cosh(t)), 1.0),
    "softplus": (lambda t: np.logaddexp(0, t), 0.25),
    "wave": (lambda t: 1 - np.cos(t), 1.0),
    "smooth hinge": (lambda t: np.where(t > 1, t - 0.5, np.maximum(t, 0) ** 2 / 2), 1.0),
}


@pytest.mark.parametrize("name", NONNEGATIVE)
@given(st.floats(-20, 20), st.floats(-20, 20))
def test_roots_of_smooth_losses_are_lipschitz_with_a_constant_of_1_for_the_printed_6(name, s, t):
    """(f(s) - f(t))^2 <= 1 h (f(s) + f(t)) (s - t)^2, since sqrt(f) has a slope of sqrt(h/2) at most."""
    f, h = NONNEGATIVE[name]
    a, b = float(f(s)), float(f(t))
    assert abs(math.sqrt(a) - math.sqrt(b)) <= math.sqrt(h / 2) * abs(s - t) + 1e-7
    assert (a - b) ** 2 <= h * (a + b) * (s - t) ** 2 * (1 + 1e-9) + 1e-9


def test_a_constant_below_1_would_be_false():
    f, h = NONNEGATIVE["square"]
    s, t = 3.0, 3.001
    assert (f(s) - f(t)) ** 2 > 0.999 * h * (f(s) + f(t)) * (s - t) ** 2


@given(st.integers(1, 10**9), st.floats(1e-6, 0.999), st.floats(0.01, 100))
def test_the_tails_of_theorems_9_and_12_are_valid_and_never_smaller(n, delta, B):
    """3 B sqrt(log(2/delta)/(2 n)), and one more at log(2/delta) for the minimizer, with log(4/delta) for the first."""
    known = {"G": 1.0, "W": 1.0, "radius": 1.0, "m": 5, "n": n, "b": B, "delta": delta}

    def tail(k):
        return B * math.sqrt(math.log(k / delta) / (2 * n))

    assert linf_ball(risk=0.0, **known).terms["tail"] <= 3 * tail(2)
    assert linf_erm(**known).terms["tail"] <= 3 * tail(4) + tail(2)


def test_appendix_m_loses_the_best_risk_on_the_way():
    printed = printed_smooth_erm(L_star=1.0, D_0=1e-6)
    assert printed.value == pytest.approx(0.0005, abs=1e-5)
    assert printed.value < 1.0  # no w risks less than the best
    ours = smooth_erm(L_star=1.0, H1=1.0, W=1e-6, radius=1.0, m=1, n=10**9, B=1.0, delta=0.05)
    assert ours.value >= 1.0
    assert ours.status == "unverified"


def test_what_is_printed_is_never_the_smallest():
    known = {"risk": 0.5, "L2": 0.1, "W": 1.0, "radius": 1.0, "m": 1, "n": 100}
    with pytest.raises(RankwiseError, match="requires at least one that is verified"):
        smallest(lambda delta: printed_theorem_1(delta=delta, **known), delta=0.05)
    best = smallest(
        lambda delta: printed_theorem_1(delta=delta, **known),
        lambda delta: l2_ball(b=1.0, delta=delta, **known),
        delta=0.05,
    )
    assert best.terms["delta_each"] == 0.05


def test_corollary_11_refuses_a_logarithm_below_0():
    with pytest.raises(RankwiseError, match="length must be finite and above 0"):
        printed_corollary_11(G=0.01, W1=1.0, entry=1.0, d=2, m=1, n=1, B=1.0)


# ------------------------------------------------------------------------------------------ the page of all of them

PAGE = (Path(__file__).parents[2] / "docs" / "bounds.md").read_text(encoding="utf-8")
PAGE = PAGE[PAGE.index("\n## Printed statements") : PAGE.index("\n## How the bounds are tested")]
NAMED = re.findall(r"`([\w/]+/test_\w+\.py)::(test_\w+)`", PAGE)


def test_the_page_of_printed_statements_names_a_test_for_each():
    statements = [line for line in PAGE.splitlines() if line.startswith("- **")]
    assert len(statements) == len(NAMED) > 45


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_every_test_that_the_page_names_exists(file, name):
    assert f"def {name}(" in (Path(__file__).parents[1] / file).read_text(encoding="utf-8")
