"""In expectation what is learned from n lists is as near the best as the bounds say, on a known distribution."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.printed_bounds import printed_lambda_2014, printed_lambda_2015
from rankwise.errors import RankwiseError
from rankwise.guarantees.bounds.batch import (
    best_lambda,
    gap_cost,
    ogd_average,
    ogd_smooth,
    ogd_smooth_small_step,
    rerm,
    rerm_best,
    rerm_in_ball,
    rerm_in_ball_lambda,
)
from tests.guarantees.few_lists import H1, RADIUS, FewLists, G
from tests.strategies import at_length, few

REPETITIONS = at_length(2_000, 4)
constants = st.floats(0.01, 100)
# lists, documents, features
WORLDS = [(3, 2, 2), (5, 6, 3), pytest.param((12, 20, 6), marks=pytest.mark.thorough)]


def below(values, bound):
    """The mean is below the bound, up to three standard errors."""
    error = values.std(ddof=1) / math.sqrt(len(values))
    return values.mean() - 3 * error <= bound.value


@pytest.mark.parametrize("shape", WORLDS)
@pytest.mark.parametrize("n", [3, 30])
@pytest.mark.parametrize("W", [0.5, 3.0])
def test_one_pass_of_gradient_descent(shape, n, W):
    stream = FewLists.random(*shape, seed=n)
    bound = ogd_average(G=G, W=W, radius=RADIUS, n=n)
    w = stream.descend(stream.draw(REPETITIONS, n, seed=1), bound.terms["eta"])
    excess = stream.risk(w) - stream.risk(stream.best(W)[None])
    assert below(excess, bound)


@pytest.mark.parametrize("shape", WORLDS)
@pytest.mark.parametrize("n", [5, pytest.param(50, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("W", [0.5, 3.0])
def test_regularized_minimization_solved_well_or_badly(shape, n, W):
    stream = FewLists.random(*shape, seed=n)
    drawn = stream.draw(REPETITIONS, n, seed=2)
    best = stream.risk(stream.best(W)[None])
    known = {"G": G, "W": W, "radius": RADIUS, "n": n}
    right = best_lambda(**known)
    for lambda_ in (right / 10, right, 10 * right, rerm_in_ball_lambda(**known)):
        for steps in (100, 3):  # three steps leave a gap that the bound has to pay for
            w, gap = stream.regularized(drawn, lambda_, steps)
            excess = stream.risk(w) - best
            assert below(excess, rerm(lambda_=lambda_, gap=float(gap.max()), **known))
            if steps > 3:
                assert gap.max() < 1e-3
                if lambda_ == right:
                    assert below(excess, rerm_best(gap=float(gap.max()), **known))
                if lambda_ == rerm_in_ball_lambda(**known):
                    assert below(excess, rerm_in_ball(lambda_=lambda_, **known))


@pytest.mark.parametrize("shape", WORLDS)
@pytest.mark.parametrize("n", [3, 100])
@pytest.mark.parametrize("W", [0.5, 5.0])
def test_smooth_losses_are_learned_faster_the_smaller_they_can_get(shape, n, W):
    stream = FewLists.random(*shape, seed=n)
    drawn = stream.draw(REPETITIONS, n, seed=3)
    best = float(stream.risk(stream.best(W)[None])[0])
    for make in (ogd_smooth, ogd_smooth_small_step):
        for L_star in (best, 1.5 * best):  # an upper bound on it will do
            bound = make(L_star=L_star, H=RADIUS**2 * H1, W=W, n=n)
            assert below(stream.risk(stream.descend(drawn, bound.terms["eta"])), bound)


@given(st.integers(0, 10_000), st.sampled_from([(3, 2, 2), (5, 6, 3), (12, 20, 6)]))
def test_the_lists_have_the_constants_that_the_bounds_are_given(seed, shape):
    stream = FewLists.random(*shape, seed=seed)
    w = np.random.default_rng(seed).standard_normal((4, shape[2])) * 3
    v = w + np.random.default_rng(seed + 1).standard_normal(w.shape)
    at_w, at_v = stream.gradients(w), stream.gradients(v)
    assert (stream.losses(w) >= -1e-12).all()
    assert (np.linalg.norm(at_w, axis=2) <= G * RADIUS * (1 + 1e-12)).all()
    moved = np.linalg.norm(w - v, axis=1)[:, None]
    assert (np.linalg.norm(at_w - at_v, axis=2) <= H1 * RADIUS**2 * moved * (1 + 1e-9)).all()


# ------------------------------------------------------------------------------------------ how small they could be


def coin_descent(eta, n, p):
    """Expected average of n steps on f(w, z) = -z w, z a coin that shows 1 with chance p: w grows by eta p a step."""
    return eta * p * (n - 1) / 2


@pytest.mark.parametrize("n", [1, 2, 3, 10, 1_000])
@pytest.mark.parametrize("W", [0.5, 7.0])
def test_half_the_bound_of_gradient_descent_would_be_false(n, W):
    """Exactly, on coins: more than half of it is reached for every n, and all of it by a single list."""
    bound = ogd_average(G=1.0, W=W, radius=1.0, n=n)
    reached = max(p * (W - coin_descent(bound.terms["eta"], n, p)) for p in np.linspace(0.001, 1, 1_000))
    assert bound.value / 2 < reached <= bound.value * (1 + 1e-12)
    if n == 1:
        assert reached == pytest.approx(bound.value)


@pytest.mark.parametrize("n", [1, 10, 1_000])
@pytest.mark.parametrize("W", [0.5, 7.0])
def test_a_fifth_of_the_bound_of_regularized_minimization_would_be_false(n, W):
    """The same coins: w = p/lambda on average, and the excess is p (W - p/lambda), a quarter at the best lambda."""
    known = {"G": 1.0, "W": W, "radius": 1.0, "n": n}
    for factor in (0.3, 1.0, 3.0):
        lambda_ = factor * best_lambda(**known)
        bound = rerm(lambda_=lambda_, **known)
        reached = max(p * (W - p / lambda_) for p in np.linspace(0.001, 1, 1_000))
        assert reached <= bound.value
        if factor == 1.0 and n > 1:
            assert reached > rerm_best(**known).value / 5


def test_no_term_of_regularized_minimization_can_be_left_out():
    """Three losses of slope 1 at lambda = 2, for each of which the two other terms all but vanish."""
    known, lambda_, grid = {"G": 1.0, "radius": 1.0, "lambda_": 2.0}, 2.0, np.linspace(-1, 1, 2_001)
    # the regularizer holds w back: f = -w, and w* = 1
    pulled = rerm(W=1.0, n=10**12, **known)
    w = grid[(lambda_ / 2 * grid**2 - grid).argmin()]
    assert pulled.terms["stability"] < 1e-9 < 1 - w <= pulled.value
    # one list misleads: f = abs(w - z), z is 0 or, every other time, 1 or -1, and w* = 0
    misled = rerm(W=1e-9, n=1, **known)
    risk = np.abs(grid) / 2 + (np.abs(grid - 1) + np.abs(grid + 1)) / 4
    learned = [(lambda_ / 2 * grid**2 + np.abs(grid - z)).argmin() for z in (0, 0, 1, -1)]
    assert misled.terms["regularization"] < 1e-9 < risk[learned].mean() - risk.min() <= misled.value
    # the solver stopped early, at w = 0.1: f = abs(w), and w* = 0
    stopped = rerm(W=1e-9, n=10**12, gap=lambda_ / 2 * 0.1**2 + 0.1, **known)
    assert stopped.terms["regularization"] + stopped.terms["stability"] < 1e-9 < 0.1 <= stopped.value


@given(constants, constants)
def test_a_fifth_of_the_bound_for_smooth_losses_would_be_false(H, W):
    """f(w) = H (w - W)^2/2, where L* = 0: after a single list w is still 0, and risks a quarter of the bound."""
    for n in (1, 2, 10):
        bound = ogd_smooth(L_star=0.0, H=H, W=W, n=n)
        w = total = 0.0
        for _ in range(n):
            total += w
            w -= bound.terms["eta"] * H * (w - W)
        risk = H * (total / n - W) ** 2 / 2
        assert bound.allows(risk)
        assert n > 1 or risk > bound.value / 5


# ------------------------------------------------------------------------------------------ the printed lambdas


def linear_excess(lambda_, W):
    """f(w, z) = -w: the regularized minimizer within [-W, W] is min(W, 1/lambda), the best w is W."""
    return W - min(W, 1 / lambda_)


def test_the_lambda_of_theorem_18_lacks_a_factor_of_1_over_n():
    known = {"G": 1.0, "W": 1.0, "radius": 1.0, "n": 100}
    printed, right = printed_lambda_2015(**known), rerm_in_ball_lambda(**known)
    assert printed == pytest.approx(right * 10)
    assert linear_excess(printed, 1.0) == pytest.approx(0.633, abs=5e-4)
    assert rerm_in_ball(lambda_=printed, **known).value == pytest.approx(0.443, abs=5e-4)
    assert rerm_in_ball(lambda_=printed, **known).applies is False
    assert not rerm_in_ball(**known).allows(linear_excess(printed, 1.0))
    assert rerm_in_ball(lambda_=right, **known).allows(linear_excess(right, 1.0))
    assert rerm(lambda_=printed, **known).allows(linear_excess(printed, 1.0))  # any lambda
    assert rerm_best(**known).allows(linear_excess(best_lambda(**known), 1.0))


def test_the_lambda_of_theorem_11_does_not_know_the_ball():
    known = {"G": 1.0, "W": 100.0, "radius": 1.0, "n": 100}
    printed, right = printed_lambda_2014(G=1.0, radius=1.0, n=100), rerm_in_ball_lambda(**known)
    assert printed == 0.2
    assert linear_excess(printed, 100.0) == pytest.approx(95)
    assert rerm_in_ball(**known).value == pytest.approx(44.3, abs=0.05)
    assert not rerm_in_ball(**known).allows(linear_excess(printed, 100.0))
    assert rerm_in_ball(lambda_=right, **known).allows(linear_excess(right, 100.0))
    assert rerm(lambda_=printed, **known).allows(linear_excess(printed, 100.0))
    assert rerm_best(**known).allows(linear_excess(best_lambda(**known), 100.0))


@given(st.floats(0.01, 10), st.integers(2, 1_000), st.integers(0, 1_000))
def test_replacing_one_list_moves_the_minimizer_by_no_more_than_the_proof_says(lambda_, n, seed):
    """f(w, z) = z w with z = +1 or -1: the minimizer is -mean(z)/lambda, and the limit is attained."""
    z = np.random.default_rng(seed).choice([-1.0, 1.0], size=n)
    other = z.copy()
    other[0] = -z[0]
    moved = abs(z.mean() - other.mean()) / lambda_
    assert moved == pytest.approx(2 * 1.0 / (lambda_ * n))  # 2 G R/(lambda n) with G R = 1


@few
@given(st.integers(0, 10_000), st.sampled_from([(3, 2, 2), (5, 6, 3)]), st.sampled_from([0.01, 0.3, 10.0]))
def test_replacing_one_list_moves_no_minimizer_farther_than_a_linear_one(seed, shape, lambda_):
    """2 G R/(lambda n), where the papers' argument, by the slope of the whole objective, has twice as much or more."""
    stream, n = FewLists.random(*shape, seed=seed), 4
    first = stream.draw(20, n, seed)
    second = first.copy()
    second[:, 0] = stream.draw(20, 1, seed + 1)[:, 0]
    (one, gap), (other, other_gap) = (stream.regularized(drawn, lambda_, 300) for drawn in (first, second))
    unsolved = np.sqrt(2 * gap / lambda_) + np.sqrt(2 * other_gap / lambda_)
    assert (np.linalg.norm(one - other, axis=1) <= 2 * G * RADIUS / (lambda_ * n) + unsolved).all()


@given(st.integers(0, 10_000), st.sampled_from([(3, 2, 2), (5, 6, 3)]), st.floats(0, 30))
def test_the_gradient_of_a_smooth_loss_is_bounded_by_the_loss_itself(seed, shape, scale):
    """norm(grad)^2 <= 2 H f, where the papers have 4 H f; f = H w^2/2 shows that less than 2 would be false."""
    stream, H = FewLists.random(*shape, seed=seed), H1 * RADIUS**2
    w = scale * np.random.default_rng(seed).standard_normal((5, shape[2]))
    squared = (stream.gradients(w) ** 2).sum(axis=2)
    assert (squared <= 2 * H * stream.losses(w) * (1 + 1e-9) + 1e-12).all()
    quadratic, slope = H * w**2 / 2, H * w
    assert slope**2 == pytest.approx(2 * H * quadratic)


# ------------------------------------------------------------------------------------------ numbers


@given(constants, constants, constants, st.integers(1, 10**6), constants)
def test_the_best_lambda_is_best(G, W, radius, n, factor):
    known = {"G": G, "W": W, "radius": radius, "n": n}
    best = rerm_best(**known).value
    assert best == pytest.approx(rerm(lambda_=best_lambda(**known), **known).value)
    assert best <= rerm(lambda_=factor * best_lambda(**known), **known).value * (1 + 1e-12)
    assert ogd_average(**known).value == pytest.approx(best / 2)
    assert best <= rerm_in_ball(**known).value
    # the papers' own proof, with the papers' lambda
    lambda_ = rerm_in_ball_lambda(**known)
    proved = lambda_ * W**2 / 2 + 4 * (lambda_ * W + G * radius) ** 2 / (lambda_ * n)
    assert proved <= rerm_in_ball(**known).value * (1 + 1e-9)


@given(st.floats(0, 10), constants, constants, st.integers(1, 10**6))
def test_our_constants_for_smooth_losses_are_never_larger(L_star, H, W, n):
    ours, papers = (make(L_star=L_star, H=H, W=W, n=n) for make in (ogd_smooth, ogd_smooth_small_step))
    x = H * W**2 / n
    assert ours.value <= (L_star + math.sqrt(2 * x * L_star) + 2 * x) * (1 + 1e-12)  # the form of the paper's equation
    assert ours.value <= papers.value
    assert ours.terms["eta"] >= papers.terms["eta"]
    for bound, h in ((ours, H), (papers, 4 * H)):  # what each step gives, from its own regret
        eta = bound.terms["eta"]
        assert eta * h < 1
        reached = (L_star + W**2 / (2 * eta * n)) / (1 - eta * h)
        assert reached <= bound.value * (1 + 1e-9)
        if h == H:
            assert reached == pytest.approx(bound.value)
            for other in np.linspace(0.01, 0.99, 25) / H:  # no other step gives less
                assert (L_star + W**2 / (2 * other * n)) / (1 - other * H) >= bound.value * (1 - 1e-9)


def test_each_formula_at_numbers_that_can_be_checked_by_hand():
    known = {"G": 2.0, "W": 3.0, "radius": 0.5, "n": 100}
    assert ogd_average(**known).value == 0.3
    assert ogd_average(**known).terms["eta"] == 0.3
    assert rerm(lambda_=0.1, **known).value == pytest.approx(0.45 + 0.2)
    assert rerm(lambda_=0.1, gap=0.0005, **known).value == pytest.approx(0.45 + 0.2 + 0.1)
    assert gap_cost(G=2.0, radius=0.5, lambda_=0.1, gap=0.0005) == pytest.approx(0.1)
    assert rerm_best(**known).value == 0.6
    assert rerm_in_ball(**known).value == pytest.approx(6 * (0.08 + math.sqrt(0.02)))
    assert ogd_smooth(L_star=0.5, H=1.0, W=1.0, n=100).value == pytest.approx(0.5 + 0.01 + 0.0101**0.5)
    assert ogd_smooth_small_step(L_star=0.5, H=1.0, W=1.0, n=100).value == pytest.approx(0.5 + 0.2 + 0.08)


def test_a_validated_lambda_is_a_precondition_that_is_not_met():
    known = {"G": 2.0, "W": 3.0, "radius": 0.5, "n": 100, "lambda_": 0.1}
    assert rerm(**known).applies is None
    assert rerm(fixed=True, **known).applies is None  # the rest stays assumed
    assert rerm(fixed=False, **known).applies is False
    assert "DOES NOT APPLY: lambda was fixed before the data were seen" in repr(rerm(fixed=False, **known))
    assert rerm(**known).kind == "generalization"


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: ogd_average(G=0.0, W=1.0, radius=1.0, n=1), "ogd_average: G must be finite and above 0, got 0.0"),
        (
            lambda: rerm(G=1.0, W=1.0, radius=1.0, n=1, lambda_=-1.0),
            "rerm: lambda_ must be finite and above 0, got -1.0",
        ),
        (lambda: rerm(G=1.0, W=1.0, radius=1.0, n=1, lambda_=1.0, gap=-1.0), "gap must be finite and at least 0"),
        (lambda: rerm_best(G=1.0, W=1.0, radius=1.0, n=0), "n must be finite and at least 1, got 0"),
        (lambda: rerm_in_ball(G=1.0, W=math.nan, radius=1.0, n=1), "W must be finite and above 0, got nan"),
        (lambda: ogd_smooth(L_star=-0.1, H=1.0, W=1.0, n=1), "L_star must be finite and at least 0, got -0.1"),
    ],
)
def test_numbers_that_cannot_be_are_refused_in_one_sentence(call, sentence):
    with pytest.raises(RankwiseError, match=sentence):
        call()
