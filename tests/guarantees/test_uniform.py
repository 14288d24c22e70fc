"""Uniform bounds are broken no more often than promised, by w that learned the sample by heart."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwise.errors import RankwiseError
from rankwise.guarantees._bound import smallest
from rankwise.guarantees.bounds.batch import rerm_best
from rankwise.guarantees.bounds.uniform import (
    ball_index,
    dudley,
    for_fitted_norm,
    l1_ball,
    l1_erm,
    l2_ball,
    linf_ball,
    linf_erm,
    smooth_ball,
)
from tests.guarantees.coin_lists import (
    L2,
    RADIUS,
    B,
    G,
    draw,
    memorized,
    memorized_fully,
    most_often,
    ramp,
    steepest,
    true_risk,
)
from tests.strategies import at_length

REPETITIONS = at_length(2_000, 4)
SHAPES = [(20, 2, 40), (100, 2, 400), (100, 50, 400), (400, 5, 100)]  # n, m, lists in all
DELTAS = (0.01, 0.1, 0.5)


def allowed(delta):
    """A share of samples that chance alone hardly passes."""
    return delta + 3 * math.sqrt(delta * (1 - delta) / REPETITIONS)


def coins(lists, fair, seed=0):
    return np.full(lists, 0.5) if fair else np.random.default_rng(seed).beta(0.5, 0.5, lists)


def gap_of(bound_at_zero):
    """What a bound adds to the sample's risk, which is all that differs between samples."""
    return bound_at_zero.value


@pytest.mark.parametrize("fair", [True, False])
@pytest.mark.parametrize(("n", "m", "lists"), SHAPES)
def test_whoever_learned_the_sample_by_heart_is_found_out(n, m, lists, fair):
    chances = coins(lists, fair)
    samples = draw(REPETITIONS, n, chances, seed=n + lists)
    for W in (0.5, 2.0, 5.0):
        w = memorized(samples, W)
        hidden = true_risk(w, chances) - samples.risk(w)
        for delta in DELTAS:
            known = {"risk": 0.0, "W": W, "radius": RADIUS, "m": m, "n": n, "b": B, "delta": delta}
            for bound in (l2_ball(L2=L2, **known), linf_ball(G=G, **known)):
                assert (hidden > gap_of(bound)).mean() <= allowed(delta), bound


def test_a_bound_without_its_complexity_would_be_broken_by_every_sample():
    """So the trials here can fail; and the complexity of the first is right up to a factor of 4."""
    n, chances = 100, coins(400, fair=True)
    samples = draw(REPETITIONS, n, chances, seed=1)
    known = {"risk": 0.0, "m": 2, "n": n, "b": B, "delta": 0.05}
    w = memorized(samples, 2.0)
    hidden = true_risk(w, chances) - samples.risk(w)
    for bound in (l2_ball(L2=L2, W=2.0, radius=RADIUS, **known), linf_ball(G=G, W=2.0, radius=RADIUS, **known)):
        assert (hidden > bound.terms["tail"]).mean() > 0.99
    assert l2_ball(L2=L2, W=2.0, radius=RADIUS, **known).terms["complexity"] < 4 * np.median(hidden)
    w = memorized_fully(samples)
    hidden = true_risk(w, chances) - samples.risk(w)
    bound = l1_ball(G=G, W1=float(np.abs(w).sum(axis=1).max()), entry=1.0, d=400, **known)
    assert (hidden > bound.terms["tail"]).mean() > 0.99


@pytest.mark.parametrize(("n", "m", "lists"), SHAPES)
def test_sparse_weights_chosen_by_the_sample(n, m, lists):
    chances = coins(lists, fair=True)
    samples = draw(REPETITIONS, n, chances, seed=2 * n)
    w = most_often(samples.totals(), 0.5)
    hidden = true_risk(w, chances) - samples.risk(w)
    assert hidden.mean() > 0  # it was a choice
    for delta in DELTAS:
        bound = l1_ball(risk=0.0, G=G, W1=0.5, entry=1.0, d=lists, m=m, n=n, b=B, delta=delta)
        assert (hidden > gap_of(bound)).mean() <= allowed(delta)


@pytest.mark.parametrize(("n", "m", "lists"), [(20, 2, 40), (100, 2, 400), (100, 30, 400), (400, 5, 100)])
@pytest.mark.parametrize("W_0", [0.1, 1.0])
def test_the_fitted_norm_is_paid_for(n, m, lists, W_0):
    """w is the smallest one with no loss on the sample, so its norm is the sample's own."""
    chances = coins(lists, fair=True)
    samples = draw(REPETITIONS, n, chances, seed=3 * n)
    w = memorized_fully(samples)
    risk, norm = samples.risk(w), np.sqrt((w**2).sum(axis=1))
    for delta in DELTAS:
        gaps = {}
        for each in np.unique(norm):
            bound = for_fitted_norm(
                lambda W, level: l2_ball(risk=0.0, L2=L2, W=W, radius=RADIUS, m=m, n=n, b=B, delta=level),
                norm=float(each),
                W_0=W_0,
                delta=delta,
            )
            assert bound.terms["W"] >= each
            gaps[each] = bound.value
        wrong = true_risk(w, chances) - risk > np.array([gaps[each] for each in norm])
        assert wrong.mean() <= allowed(delta)


@pytest.mark.parametrize("n", [20, 200])
def test_the_smallest_of_several_keeps_its_promise(n):
    chances = coins(100, fair=False, seed=n)
    samples = draw(REPETITIONS, n, chances, seed=4 * n)
    w = memorized(samples, 1.0)
    hidden = true_risk(w, chances) - samples.risk(w)
    known = {"risk": 0.0, "radius": RADIUS, "m": 2, "n": n, "b": B}
    for delta in DELTAS:
        bound = smallest(
            lambda level: l2_ball(L2=L2, W=1.0, delta=level, **known),
            lambda level: linf_ball(G=G, W=1.0, delta=level, **known),
            lambda level: for_fitted_norm(
                lambda W, part: l2_ball(L2=L2, W=W, delta=part, **known), norm=1.0, W_0=0.25, delta=level
            ),
            delta=delta,
        )
        assert bound.terms["compared"] == 3
        assert bound.terms["delta_each"] == pytest.approx(delta / 3)
        assert (hidden > bound.value).mean() <= allowed(delta)


def test_the_tail_alone_is_enough_for_a_w_that_never_learned():
    """Hoeffding's inequality: broken now and then, but rarely enough."""
    n, delta, chances = 50, 0.1, np.full(1, 0.5)
    samples = draw(20_000, n, chances, seed=5)
    w = np.full((20_000, 1), 0.5)
    bound = l2_ball(risk=0.0, L2=L2, W=0.5, radius=1.0, m=2, n=n, b=B, delta=delta)
    hidden = true_risk(w, chances) - samples.risk(w)
    assert 0.01 < (hidden > bound.terms["tail"]).mean() <= delta


@pytest.mark.parametrize("n", [10, 1_000])
def test_minimizers_are_not_much_worse_than_the_best(n):
    """Within radius 1/2 the ramp is linear, so that the sample's minimizer and the best w are known exactly."""
    chances, W = np.array([0.9, 0.2, 0.7]), 0.5
    samples = draw(REPETITIONS, n, chances, seed=n)
    toward = (2 * chances - 1)[None]
    for found, best, make in (
        (steepest(samples.totals(), W), steepest(toward, W), lambda **known: linf_erm(W=W, radius=1.0, **known)),
        (
            most_often(samples.totals(), W),
            most_often(toward, W),
            lambda **known: l1_erm(W1=W, entry=1.0, d=3, **known),
        ),
    ):
        excess = true_risk(found, chances) - true_risk(best, chances)
        assert excess.min() >= -1e-12  # the best is best
        assert excess.max() > 0
        for delta in DELTAS:
            bound = make(G=G, m=2, n=n, b=B, delta=delta)
            assert (excess > bound.value).mean() <= allowed(delta)


def test_the_ramp_has_the_constants_that_the_bounds_are_given():
    margins = np.linspace(-2, 2, 401)
    assert ramp(margins).min() == 0
    assert ramp(margins).max() == B
    # s_1 - s_2 is twice the margin w_k: a gradient of 1/2 on each score
    steepest = np.abs(np.diff(ramp(margins)) / np.diff(2 * margins)).max()
    assert steepest * 2 == pytest.approx(G)
    assert steepest * math.sqrt(2) == pytest.approx(L2)


def test_the_radius_of_the_sample_is_not_the_radius_of_lists_to_come():
    """One list in 2 n is huge: three samples in five have none, and a bound with their radius says nothing true."""
    n, huge, rest = 50, 1e6, 1.0
    chance = 1 / (2 * n)
    unseen = (1 - chance) ** n
    assert unseen == pytest.approx(0.61, abs=0.01)
    # the worst pair's hinge at w = e_1 for rows that are the wrong way round: 1 + 2 radius
    risk = (1 - chance) * (1 + 2 * rest) + chance * (1 + 2 * huge)
    known = {"risk": 1 + 2 * rest, "L2": math.sqrt(2), "W": 1.0, "m": 2, "n": n, "delta": 0.05}
    assert not l2_ball(radius=rest, b=1 + 2 * rest, **known).allows(risk)
    assert l2_ball(radius=huge, b=1 + 2 * huge, **known).allows(risk)


# ------------------------------------------------------------------------------------------ numbers


def test_each_formula_at_numbers_that_can_be_checked_by_hand():
    known = {"risk": 0.1, "W": 2.0, "radius": 3.0, "m": 4, "n": 100, "b": 1.0, "delta": 0.05}
    tail = math.sqrt(math.log(20) / 200)
    assert l2_ball(L2=0.5, **known).value == pytest.approx(0.1 + math.sqrt(2 * math.pi) * 3 * 0.2 + tail)
    assert linf_ball(G=0.5, **known).value == pytest.approx(0.1 + 1.0 + tail)  # Rad = b/2
    assert linf_ball(G=0.01, **known).value == pytest.approx(0.1 + 2 * 0.06 + tail)  # Rad = a
    assert linf_erm(G=0.01, **{key: known[key] for key in known if key != "risk"}).value == pytest.approx(
        2 * 0.06 + 2 * math.sqrt(math.log(40) / 200)
    )
    huge = linf_ball(G=1.0, **(known | {"n": 10**10, "W": 1.0, "radius": 1.0}))
    C = 10 * math.sqrt((1 + 4 * math.log2(8e10)) / 1e10)
    assert huge.terms["Rad"] == pytest.approx(C * (1 + math.log(4 / C)))
    sparse = l1_ball(risk=0.1, G=1.0, W1=1.0, entry=1.0, d=8, m=4, n=10**10, b=1.0, delta=0.05)
    C = 10 * math.sqrt((1 + 2 * math.log(8e10)) * 4 / 1e10)
    assert sparse.terms["Rad"] == pytest.approx(C * (1 + math.log(4 / C)))


def test_in_practice_scores_in_the_l2_norm_do_best():
    """The numbers of a loss with G = 2, W = R = 1 and lists of 100."""
    known = {"risk": 0.0, "W": 1.0, "radius": 1.0, "m": 100, "delta": 0.05}
    assert linf_ball(G=2.0, n=10**5, b=2.0, **known).terms["Rad"] == 1.0  # trivial
    assert linf_ball(G=2.0, n=10**5, b=2.0, **known).vacuous
    assert linf_ball(G=2.0, n=10**6, b=2.0, **known).terms["Rad"] == pytest.approx(0.98, abs=0.005)
    assert l2_ball(L2=math.sqrt(2), n=10**4, b=3.0, **known).value == pytest.approx(0.39, abs=0.005)
    smooth = smooth_ball(risk=0.2, H1=1.0, W=1.0, radius=1.0, m=100, n=10**7, B=3.0, delta=0.05)
    assert smooth.value == pytest.approx(6.6, abs=0.05)
    assert smooth.status == "unverified"


@given(st.floats(0, 10), st.floats(0.01, 10))
def test_dudleys_integral_is_the_best_of_all_places_to_stop(C, largest):
    alphas = largest * np.linspace(0.001, 1, 1_000)
    best = (4 * alphas + C * np.log(largest / alphas)).min()
    assert dudley(C=C, largest=largest) <= best * (1 + 1e-12)
    assert dudley(C=C, largest=largest) == pytest.approx(best, rel=0.05, abs=0.01 * largest)
    inside = largest > C / 4  # else alpha stops at the largest
    written = C * (1 + math.log(4 * largest / C)) if inside and C > 1e-300 else 4 * largest * (not inside)
    assert dudley(C=C, largest=largest) == pytest.approx(written, rel=1e-9, abs=1e-290)


makers = st.sampled_from(
    [
        lambda n, m, W, delta: l2_ball(risk=0.2, L2=0.7, W=W, radius=1.0, m=m, n=n, b=1.0, delta=delta),
        lambda n, m, W, delta: linf_ball(risk=0.2, G=0.7, W=W, radius=1.0, m=m, n=n, b=1.0, delta=delta),
        lambda n, m, W, delta: l1_ball(risk=0.2, G=0.7, W1=W, entry=1.0, d=9, m=m, n=n, b=1.0, delta=delta),
        lambda n, m, W, delta: linf_erm(G=0.7, W=W, radius=1.0, m=m, n=n, b=1.0, delta=delta),
        lambda n, m, W, delta: l1_erm(G=0.7, W1=W, entry=1.0, d=9, m=m, n=n, b=1.0, delta=delta),
    ]
)


@given(makers, st.integers(1, 10**8), st.integers(1, 10**4), st.floats(1e-3, 1e3), st.floats(0.001, 0.9))
def test_more_queries_help_and_longer_lists_larger_balls_and_more_certainty_cost(make, n, m, W, delta):
    value = make(n, m, W, delta).value
    assert make(2 * n, m, W, delta).value <= value * (1 + 1e-12)
    assert make(n, 2 * m, W, delta).value >= value * (1 - 1e-12)
    assert make(n, m, 2 * W, delta).value >= value * (1 - 1e-12)
    assert make(n, m, W, delta / 2).value >= value


def test_the_length_of_lists_matters_little_in_the_largest_score():
    one, many = (
        linf_ball(risk=0.0, G=1.0, W=1.0, radius=1.0, m=m, n=10**9, b=10.0, delta=0.05).terms["Rad"] for m in (1, 1000)
    )
    assert many < 1.2 * one
    one, many = (
        l2_ball(risk=0.0, L2=1.0, W=1.0, radius=1.0, m=m, n=10**9, b=10.0, delta=0.05).terms["complexity"]
        for m in (1, 10_000)
    )
    assert many == pytest.approx(100 * one)


# ------------------------------------------------------------------------------------------ fitted norm, smallest


@given(st.floats(0, 1e6), st.floats(1e-3, 1e3))
def test_the_first_ball_that_holds_the_fitted_w(norm, W_0):
    j = ball_index(norm=norm, W_0=W_0)
    assert norm <= W_0 * 2.0**j
    assert j == 0 or norm > W_0 * 2.0 ** (j - 1)


def test_the_levels_of_all_balls_add_up_to_delta():
    levels = [0.05 / ((j + 1) * (j + 2)) for j in range(100_000)]
    assert math.fsum(levels) == pytest.approx(0.05, rel=1e-4)
    assert math.fsum(levels) < 0.05


def test_a_fitted_norm_shows_what_it_was_made_of():
    def make(W, delta):
        return l2_ball(risk=0.1, L2=1.0, W=W, radius=1.0, m=2, n=1_000, b=1 + 2 * W, delta=delta)

    bound = for_fitted_norm(make, norm=5.0, W_0=0.5, delta=0.06)
    assert bound.terms["j"] == 4
    assert bound.terms["W"] == 8.0
    assert bound.terms["delta_j"] == pytest.approx(0.06 / 30)
    assert bound.value == make(8.0, 0.06 / 30).value
    assert "delta_j = delta/((j + 1)(j + 2))" in bound.statement
    sentences = " ".join(one.sentence for one in bound.preconditions)
    assert "W_0 was fixed" in sentences
    assert "the ball of w was fixed" not in sentences
    assert "0.94" in sentences
    again = pickle.loads(pickle.dumps(bound))
    assert again == bound


def test_what_is_unverified_is_the_smallest_only_for_those_who_ask():
    known = {"risk": 0.0, "W": 0.001, "radius": 1.0, "m": 2, "n": 10**7, "delta": 0.05}

    def smooth(delta):
        return smooth_ball(H1=1.0, B=1.0, **(known | {"delta": delta}))

    def largest(delta):
        return linf_ball(G=10.0, b=1.0, **(known | {"delta": delta}))

    assert smooth(0.025).value < largest(0.025).value
    assert smallest(smooth, largest, delta=0.05).terms["compared"] == 1
    asked = smallest(smooth, largest, delta=0.05, unverified=True)
    assert asked.status == "unverified"
    assert asked.terms["delta_each"] == 0.025
    with pytest.raises(RankwiseError, match="requires at least one that is verified"):
        smallest(smooth, delta=0.05)


def test_bounds_on_different_numbers_are_not_compared():
    known = {"G": 1.0, "W": 1.0, "radius": 1.0, "m": 2, "n": 10, "b": 1.0}
    with pytest.raises(RankwiseError, match="bounds on the same number"):
        smallest(
            lambda delta: linf_ball(risk=0.0, delta=delta, **known),
            lambda delta: linf_erm(delta=delta, **known),
            delta=0.05,
        )


def test_an_average_over_samples_is_never_compared_with_a_statement_about_one():
    known = {"G": 1.0, "W": 1.0, "radius": 1.0, "n": 100}
    with pytest.raises(RankwiseError, match="bounds on the same number"):
        smallest(
            lambda delta: linf_ball(risk=0.0, m=2, b=1.0, delta=delta, **known),
            lambda delta: rerm_best(**known),
            delta=0.05,
        )


# ------------------------------------------------------------------------------------------ refusals

GOOD = {"risk": 0.1, "L2": 1.0, "W": 1.0, "radius": 1.0, "m": 2, "n": 10, "b": 1.0, "delta": 0.05}


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"delta": 0.0}, "delta must be between 0 and 1, got 0.0"),
        ({"delta": math.nan}, "delta must be between 0 and 1, got nan"),
        ({"n": 0}, "n must be finite and at least 1, got 0"),
        ({"m": 0}, "m must be finite and at least 1, got 0"),
        ({"W": -1.0}, "W must be finite and above 0, got -1.0"),
        ({"radius": math.inf}, "radius must be finite and above 0, got inf"),
        ({"risk": 1.5}, "risk must be between low=0 and low \\+ b=1, got risk=1.5"),
        ({"risk": math.nan}, "risk must be a finite number, got nan"),
    ],
)
def test_numbers_that_cannot_be_are_refused_in_one_sentence(wrong, sentence):
    with pytest.raises(RankwiseError, match=sentence):
        l2_ball(**(GOOD | wrong))


def test_losses_below_zero_are_welcome_if_said():
    assert l2_ball(**(GOOD | {"risk": -0.2, "low": -0.5})).ceiling == 0.5
