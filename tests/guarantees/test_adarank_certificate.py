"""What AdaRank's rounds guarantee about its lists: true for any measures in [0, 1], any weights, any alphas."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.printed_bounds import adarank_printed
from rankwise.errors import RankwiseError
from rankwise.guarantees.bounds.training import adarank_certificate, adarank_logistic_certificate, log_factor

# Both ends of a measure's range, so that perfect and hopeless lists are the rule.
measures = st.one_of(st.sampled_from([0.0, 1.0, 0.5]), st.floats(0, 1))
alphas = st.one_of(st.none(), st.floats(-3, 20))


@st.composite
def accounts(draw):
    """Some rounds on some lists that nobody has ranked: measures are any numbers in [0, 1].

    Only what the proof asks for is kept: the distribution follows the measures. An alpha of None is the formula's.
    """
    Q, T = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    weight = np.array(draw(st.lists(st.sampled_from([1e-9, 0.5, 1.0, 3.0]), min_size=Q, max_size=Q)))
    rows = st.lists(measures, min_size=Q, max_size=Q)
    return weight / weight.sum(), [(np.array(draw(rows)), np.array(draw(rows)), draw(alphas)) for _ in range(T)]


def account(weight, rounds, start=0.0):
    """(phi, alpha, delta) of every round, and the mean measure after the last one."""
    before, lines = np.full(len(weight), start), []
    for alone, after, alpha in rounds:
        P = weight * np.exp(-before)
        P /= P.sum()
        phi = max(0.0, 1 - math.fsum(P * (1 - alone)))
        if alpha is None:
            alpha = math.atanh(min(phi, 1 - 1e-12))
        lines.append((phi, alpha, float((after - before - alpha * alone).min())))
        before = after
    phi, alpha, delta = zip(*lines, strict=True)
    return {"phi": phi, "alpha": alpha, "delta": delta}, math.fsum(weight * before) / math.fsum(weight)


@given(accounts())
def test_the_mean_measure_by_weight_is_at_least_minus_log_pi(given_rounds):
    rounds, mean = account(*given_rounds)
    bound = adarank_certificate(**rounds)
    assert 1 - mean <= bound.value
    assert bound.value == pytest.approx(max(0, 1 + bound.terms["log_Pi"]), abs=1e-11)
    assert bound.terms["rounds"] == len(rounds["phi"])


@given(accounts())
def test_the_printed_form_is_true_and_never_better(given_rounds):
    rounds, mean = account(*given_rounds)
    certificate, printed = adarank_certificate(**rounds), adarank_printed(**rounds)
    assert 1 - mean <= printed.value
    assert certificate.value <= printed.value * (1 + 1e-12)
    log_pi = certificate.terms["log_Pi"]
    assert -log_pi >= 1 - math.exp(min(log_pi, 700.0)) - 1e-12


@given(accounts())
def test_the_printed_form_never_certifies_more_than_0_632(given_rounds):
    rounds, _ = account(*given_rounds)
    assert 1 - adarank_printed(**rounds).value <= 1 - math.exp(-1)


@given(accounts(), st.floats(0, 1))
def test_the_account_may_begin_at_any_measure(given_rounds, start):
    """E_0 only enters the first distribution, which is that of the weights, and makes the first delta smaller."""
    rounds, mean = account(*given_rounds, start=start)
    assert 1 - mean <= adarank_certificate(**rounds).value
    assert adarank_certificate(**rounds).value >= adarank_certificate(**account(*given_rounds)[0]).value - 1e-12


@given(st.floats(0, 0.999), st.floats(-1, 1))
def test_a_round_with_the_formulas_alpha_multiplies_by_the_papers_factor(phi, delta):
    found = log_factor(phi=phi, alpha=math.atanh(phi), delta=delta)
    assert found == pytest.approx(math.log(math.sqrt(1 - phi**2)) - delta, abs=1e-9)


@given(st.floats(0, 0.999), st.floats(-5, 5))
def test_no_alpha_is_better_than_the_formulas(phi, other):
    assert log_factor(phi=phi, alpha=other, delta=0.0) >= log_factor(phi=phi, alpha=math.atanh(phi), delta=0.0) - 1e-12


def test_a_perfect_feature_is_certified_as_perfect_although_alpha_was_clipped():
    alpha = math.atanh(1 - 1e-12)
    bound = adarank_certificate(phi=[1.0], alpha=[alpha], delta=[1 - alpha])
    assert 0 <= bound.value < 1e-12
    assert adarank_printed(phi=[1.0], alpha=[alpha], delta=[1 - alpha]).value == pytest.approx(math.exp(-1))


def test_the_papers_factor_with_a_clipped_alpha_would_be_false():
    """sqrt(1 - phi^2) = 0 would certify a mean of 1 for rounds that end at a mean of 0.5."""
    perfect, half = np.array([1.0, 1.0]), np.array([1.0, 0.0])
    rounds, mean = account(np.array([0.5, 0.5]), [(perfect, perfect, None), (half, half, 0.3)])
    assert rounds["phi"][0] == 1
    assert mean == 0.5
    assert math.prod(math.sqrt(1 - phi**2) for phi in rounds["phi"]) == 0
    assert adarank_certificate(**rounds).value >= 1 - mean


def test_the_weights_must_be_in_the_distribution_for_a_weighted_mean():
    """Rounds on lists that count the same say nothing about a mean in which the bad list has nearly all the weight."""
    good, weight = np.array([1.0] * 9 + [0.0]), np.array([1 / 90] * 9 + [0.9])
    blind, _ = account(np.full(10, 0.1), [(good, good, None)])
    rounds, mean = account(weight, [(good, good, None)])
    assert mean == pytest.approx(0.1)
    assert adarank_certificate(**blind).value < 1 - mean <= adarank_certificate(**rounds).value


def test_no_rounds_say_nothing():
    for bound in (adarank_certificate(phi=[], alpha=[], delta=[]), adarank_printed(phi=[], alpha=[], delta=[])):
        assert bound.value == 1
        assert bound.vacuous


def test_rounds_that_spoil_everything_are_vacuous_and_overflow_nothing():
    rounds = {"phi": [0.5] * 500, "alpha": [0.5] * 500, "delta": [-5.0] * 500}
    assert adarank_certificate(**rounds).vacuous
    assert adarank_printed(**rounds).value == math.inf
    assert math.isfinite(log_factor(phi=0.5, alpha=1e6, delta=0.0))


def test_a_bound_names_its_terms_and_what_it_rests_on():
    bound = adarank_certificate(phi=[0.6], alpha=[0.5], delta=[0.2])
    log_pi = math.log((1.6 * math.exp(-0.5) + 0.4 * math.exp(0.5)) / 2) - 0.2
    assert bound.terms["log_Pi"] == pytest.approx(log_pi)
    assert bound.bounds == "1 - mean measure"
    assert len(bound.preconditions) == 2
    assert bound.applies is None


@pytest.mark.parametrize(
    ("rounds", "sentence"),
    [
        ({"phi": [0.5], "alpha": [], "delta": [0.0]}, "one number per round, got 1, 0 and 1"),
        ({"phi": [1.5], "alpha": [0.1], "delta": [0.0]}, "phi must be a mean of measures between 0 and 1, got 1.5"),
        ({"phi": [math.nan], "alpha": [0.1], "delta": [0.0]}, "between 0 and 1, got nan"),
        ({"phi": [0.5], "alpha": [math.inf], "delta": [0.0]}, "alpha must be a finite"),
        ({"phi": [0.5], "alpha": [0.1], "delta": [math.nan]}, "delta must be a finite"),
    ],
)
@pytest.mark.parametrize("function", [adarank_certificate, adarank_printed])
def test_what_is_no_account_is_refused_in_a_sentence(function, rounds, sentence):
    with pytest.raises(RankwiseError, match=sentence) as error:
        function(**rounds)
    assert "\n" not in str(error.value)


# ------------------------------------------------------------------------------------------- the logistic bound


def logistic_account(weight, rounds, start=0.0):
    """(phi, alpha, delta, mass) of every round with the logistic weights, and the mean measure after the last one."""
    before, lines = np.full(len(weight), start), []
    for alone, after, alpha in rounds:
        p = weight / (1 + np.exp(before))
        P = p / p.sum()
        phi = max(0.0, 1 - math.fsum(P * (1 - alone)))
        if alpha is None:
            alpha = math.atanh(min(phi, 1 - 1e-12))
        lines.append((phi, alpha, float((after - before - alpha * alone).min()), p.sum() / weight.sum()))
        before = after
    phi, alpha, delta, mass = zip(*lines, strict=True)
    named = {"phi": phi, "alpha": alpha, "delta": delta, "mass": mass}
    return named, math.fsum(weight * before) / math.fsum(weight)


@given(accounts())
def test_the_logistic_certificate_is_true_of_the_mean_measure_by_weight(given_rounds):
    rounds, mean = logistic_account(*given_rounds)
    bound = adarank_logistic_certificate(**rounds)
    assert 1 - mean <= bound.value
    # B bounds the mean of log(1 + exp(-E)), which is at least that of the mean measure
    assert math.log1p(math.exp(-mean)) <= bound.terms["B"] + 1e-9 * max(1.0, abs(bound.terms["B"]))


def test_perfect_queries_are_certified_as_perfect_by_the_logistic_bound():
    alpha = math.atanh(1 - 1e-12)
    bound = adarank_logistic_certificate(phi=[1.0], alpha=[alpha], delta=[1 - alpha], mass=[0.5])
    assert 0 <= bound.value < 1e-11


def test_no_logistic_rounds_say_nothing_and_bad_ones_overflow_nothing():
    nothing = adarank_logistic_certificate(phi=[], alpha=[], delta=[], mass=[])
    assert nothing.value == pytest.approx(1)
    assert nothing.vacuous
    bad = {"phi": [0.5] * 500, "alpha": [0.5] * 500, "delta": [-5.0] * 500, "mass": [0.4] * 500}
    assert adarank_logistic_certificate(**bad).vacuous
    assert math.isfinite(adarank_logistic_certificate(**bad).value)


@pytest.mark.parametrize(
    ("rounds", "sentence"),
    [
        ({"mass": []}, "one number per round, got 1, 1, 1 and 0"),
        ({"mass": [1.5]}, "mass must be between 0 and 1, got 1.5"),
        ({"mass": [math.nan]}, "mass must be between 0 and 1, got nan"),
    ],
)
def test_what_is_no_logistic_account_is_refused_in_a_sentence(rounds, sentence):
    with pytest.raises(RankwiseError, match=sentence):
        adarank_logistic_certificate(**{"phi": [0.5], "alpha": [0.1], "delta": [0.0], **rounds})


# ------------------------------------------------------------------------------------------- measures that add up


@given(accounts())
def test_a_measure_that_is_a_dot_product_improves_its_bound_in_every_round(given_rounds):
    """Then delta is 0, Pi the product of sqrt(1 - phi^2), and the mean is at least -log Pi: the remark of the paper."""
    weight, rounds = given_rounds
    E, phi, alpha, certified = np.zeros(len(weight)), [], [], [0.0]
    for measures, _, _ in rounds:
        alone = np.minimum(measures, 0.99)
        P = weight * np.exp(-E)
        phi.append(math.fsum(P / P.sum() * alone))
        alpha.append(math.atanh(phi[-1]))
        E = E + alpha[-1] * alone
        bound = adarank_certificate(phi=phi, alpha=alpha, delta=[0.0] * len(phi))
        certified.append(-bound.terms["log_Pi"])
        assert math.fsum(weight * E) / math.fsum(weight) >= certified[-1] - 1e-9
    assert certified[-1] == pytest.approx(-sum(math.log(math.sqrt(1 - p * p)) for p in phi), abs=1e-9)
    assert all(after > before for before, after, p in zip(certified, certified[1:], phi, strict=False) if p > 1e-6)
