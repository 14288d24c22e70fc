"""No run of a perceptron is ever above its bounds, whatever the stream, the comparator, the step, the margin."""

import copy
import math
import pickle
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.printed_bounds import printed_003
from rankwise.errors import RankwiseError
from rankwise.guarantees import (
    Bound,
    Precondition,
    WeightFacts,
    fixed_step,
    largest_root,
    online_to_batch,
    quarter_step,
    separable_loss,
    separable_mistakes,
    separable_worst_pair,
    slam_loss,
    slam_mistakes,
    worst_pair_mistakes,
)
from rankwise.losses import SLAM
from rankwise.synthetic.streams import noisy_stream, separable_stream
from tests.guarantees.perceptrons import (
    Slam,
    WorstPair,
    cumulative,
    longest_row,
    query,
    slam_at_one,
    weights_of,
    worst_pair_at_one,
)

RULES = [
    *({"weights": rule} for rule in ("ndcg_tight_sym", "ndcg_003", "ndcg_000", "ap_sym", "ap_003", "ap_000")),
    {"weights": "ndcg_tight_sym", "k": 2},
    {"weights": "ndcg_003", "k": 1},
]
# Few distinct values, so that ties are the rule and rows are often the same.
steps = st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0])


@st.composite
def streams(draw):
    """Some lists of any labels, shown once or several times."""
    d, scale = draw(st.integers(1, 3)), draw(st.sampled_from([0.01, 1.0, 30.0]))
    rounds = []
    for _ in range(draw(st.integers(1, 5))):
        m = draw(st.integers(1, 5))
        X = draw(st.lists(st.lists(steps, min_size=d, max_size=d), min_size=m, max_size=m))
        labels = draw(st.lists(st.integers(0, 3), min_size=m, max_size=m))
        rounds.append(query(scale * np.array(X), labels))
    return rounds * draw(st.sampled_from([1, 3, 8]))


def comparators(ranker, number):
    """Nothing, chance, and where the run ended, at every length: a good comparator makes a bound hard to keep."""
    w = ranker.w
    random = np.random.default_rng(number).standard_normal(len(w))
    length = math.sqrt(w @ w) or 1.0
    return [np.zeros_like(w), *(scale * direction for scale in (0.1, 1, 10, 100) for direction in (random, w / length))]


def run(ranker, rounds):
    for one in rounds:
        ranker.partial_fit(one)
    return ranker


def facts_of(loss, rounds):
    facts = WeightFacts()
    for one in rounds:
        facts |= WeightFacts.of(weights_of(loss, one.y))
    return facts


@given(streams(), st.sampled_from(RULES), st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from([0.01, 1.0, 100.0]))
def test_slam_loss_holds_for_every_stream_comparator_step_and_margin(rounds, rule, margin, eta):
    loss = SLAM(margin=margin, **rule)
    ranker = run(Slam(loss, eta), rounds)
    facts, radius = facts_of(loss, rounds), longest_row(rounds)
    assert sum(ranker.losses) <= sum(ranker.weight) + 1e-9  # coverage, on which everything rests
    for number, u in enumerate(comparators(ranker, len(rounds))):
        known = {
            "F": cumulative(slam_at_one(loss), ranker.mistakes, u),
            "norm_u": float(np.linalg.norm(u)),
            "radius": radius,
            "V": facts.V,
            "eta": eta,
            "margin": margin,
        }
        bound = slam_loss(**known)
        # the proof bounds the active weight, which is at least the loss; and by the exact root
        assert bound.allows(sum(ranker.weight)), number
        assert sum(ranker.weight) <= bound.terms["sharp"] * (1 + 1e-9) + 1e-12 <= bound.value * (1 + 2e-9) + 2e-12
        if facts.smallest < math.inf:
            assert slam_mistakes(**known, smallest=facts.smallest).allows(sum(one > 1e-12 for one in ranker.losses))


@given(streams(), st.sampled_from(RULES), st.sampled_from([0.01, 0.3, 0.5, 0.9]))
def test_small_steps_have_the_bounds_of_gradient_descent(rounds, rule, share):
    loss = SLAM(**rule)
    facts, radius = facts_of(loss, rounds), longest_row(rounds)
    if facts.kappa == 0 or radius == 0:
        return
    eta = share / (2 * radius**2 * facts.kappa)
    ranker = run(Slam(loss, eta), rounds)
    for u in comparators(ranker, len(rounds)):
        known = {
            "F": cumulative(loss, ranker.mistakes, u),
            "norm_u": float(np.linalg.norm(u)),
            "radius": radius,
            "kappa": facts.kappa,
            "eta": eta,
        }
        assert fixed_step(**known).applies is None  # assumed, for what the numbers cannot show
        assert fixed_step(**known).allows(sum(ranker.losses))
        special = quarter_step(**known)
        assert special.applies is (None if share == 0.5 else False)
        if share == 0.5:
            assert special.allows(sum(ranker.losses))
            assert special.value == pytest.approx(fixed_step(**known).value)


@given(streams(), st.sampled_from([0.01, 1.0, 100.0]))
def test_the_max_pair_perceptron_makes_few_mistakes_whatever_its_step(rounds, eta):
    ranker = run(WorstPair(eta), rounds)
    for u in comparators(ranker, len(rounds)):
        F = cumulative(worst_pair_at_one, ranker.mistakes, u)
        bound = worst_pair_mistakes(F=F, norm_u=float(np.linalg.norm(u)), radius=longest_row(rounds))
        assert bound.allows(len(ranker.mistakes))
        assert len(ranker.mistakes) <= bound.terms["sharp"] * (1 + 1e-9) <= bound.value * (1 + 2e-9)


@pytest.mark.parametrize("shape", [(3, 2, 0.3), (20, 10, 0.1)])
@pytest.mark.parametrize("margin", [0.0, 1.0])
@pytest.mark.parametrize("rule", RULES)
def test_on_separable_streams_losses_and_mistakes_end(shape, margin, rule):
    documents, features, gamma = shape
    stream = separable_stream(30, documents=documents, features=features, margin=gamma)
    loss, eta = SLAM(margin=margin, **rule), 2.0
    rounds = list(stream) * 2
    ranker, worst = run(Slam(loss, eta), rounds), run(WorstPair(), rounds)
    facts = facts_of(loss, rounds)
    known = {"gamma": gamma, "radius": stream.radius, "V": facts.V, "eta": eta, "margin": margin}
    assert separable_loss(**known).allows(sum(ranker.losses))
    assert separable_mistakes(**known, smallest=facts.smallest).allows(len(ranker.mistakes))
    assert separable_worst_pair(gamma=gamma, radius=stream.radius).allows(len(worst.mistakes))
    u = stream.comparator() / gamma
    assert cumulative(slam_at_one(loss), rounds, u) == pytest.approx(0, abs=1e-9)
    general = slam_loss(F=0.0, norm_u=1 / gamma, radius=stream.radius, V=facts.V, eta=eta, margin=margin)
    assert separable_loss(**known).value == general.value
    assert "F" not in separable_loss(**known).terms


def test_on_noisy_streams_the_hidden_comparator_pays_for_the_noise():
    stream = noisy_stream(150, noise=0.05, documents=8, features=6, margin=0.2)
    loss = SLAM(margin=0.0)
    rounds = list(stream)
    ranker = run(Slam(loss), rounds)
    u = stream.comparator() / stream.margin
    F = cumulative(slam_at_one(loss), ranker.mistakes, u)
    assert F > 0
    bound = slam_loss(F=F, norm_u=5.0, radius=1.0, V=facts_of(loss, rounds).V, margin=0.0)
    assert bound.allows(sum(ranker.losses))


@given(streams())
def test_lists_may_be_measured_around_a_center_of_their_own(rounds):
    """No surrogate sees a row that is added to all documents of a list, so neither does its bound."""
    moved = [query(one.X + 1000.0 * (number + 1), one.y) for number, one in enumerate(rounds)]
    loss = SLAM(margin=0.0)
    ranker = run(Slam(loss), moved)
    centered = [query(one.X - one.X.mean(axis=0), one.y) for one in moved]
    V = facts_of(loss, moved).V
    for u in comparators(ranker, len(rounds)):
        F = cumulative(slam_at_one(loss), [query(one.X - one.X.mean(axis=0), one.y) for one in ranker.mistakes], u)
        bound = slam_loss(F=F, norm_u=float(np.linalg.norm(u)), radius=longest_row(centered), V=V, margin=0.0)
        assert sum(ranker.losses) <= bound.value * (1 + 1e-6) + 1e-6


# ------------------------------------------------------------------------------------------ from a run to new lists


@given(st.integers(1, 60), st.floats(0.01, 0.99), st.sampled_from([0.01, 0.1, 0.3]))
def test_a_ranker_that_never_learns_is_bounded_as_often_as_promised(n, risk, delta):
    """Losses 0 and 1 by chance: the probability of all numbers of losses that the bound would be wrong for."""
    wrong = sum(
        math.comb(n, losses) * risk**losses * (1 - risk) ** (n - losses)
        for losses in range(n + 1)
        if online_to_batch(L=losses, n=n, delta=delta).value < risk
    )
    assert wrong <= delta


def test_a_perceptron_is_bounded_as_often_as_promised():
    """Every sequence that five rounds over three lists can be, exactly."""
    lists = [query([[1, 0], [0, 1]], [1, 0]), query([[1, 1], [2, 0]], [1, 0]), query([[0, 1], [2, 2]], [0, 1])]
    loss, n, deltas = SLAM(weights="ap_003", margin=0.0), 5, np.array([0.1, 0.5, 0.9])
    wrong = np.zeros(len(deltas))
    for order in product(range(3), repeat=n):
        ranker = run(Slam(loss), [lists[place] for place in order])
        risk = np.mean([risky(one, w) for one in lists for w in ranker.iterates])
        wrong += [risk > online_to_batch(L=sum(ranker.losses), n=n, delta=delta).value for delta in deltas]
    assert (wrong / 3**n <= deltas).all()
    assert wrong[-1] > 0  # a promise that could be broken


def risky(one, w):
    s = one.X @ w
    return 0.5 * (s[one.y == 1][0] <= s[one.y == 0][0])


@pytest.mark.parametrize("n", [5, 40, 200])
@pytest.mark.parametrize("m", [2, 10])
def test_the_mean_risk_of_the_iterates_is_bounded_as_often_as_promised(n, m):
    """2,000 perceptrons of the worst pair at once, over lists of m documents of which one is relevant.

    The loss is 1 where another document has the score of the relevant one or more, as in every other list, whose
    documents are all alike.
    """
    repetitions, K, d = 2_000, 12, 3
    random = np.random.default_rng(n * m)
    gap = 0.3 * random.standard_normal((K, m - 1, d)) + np.eye(d)[0]  # the relevant row less each of the others
    gap[::2] = 0.0
    drawn = random.integers(0, K, (repetitions, n))
    w, lost, risk = np.zeros((repetitions, d)), np.zeros(repetitions), np.zeros(repetitions)
    for t in range(n):
        margins = np.einsum("rd,kjd->rkj", w, gap)
        wrong = margins.min(axis=2) <= 0
        risk += wrong.mean(axis=1)
        shown = drawn[:, t]
        mistaken = wrong[np.arange(repetitions), shown]
        lost += mistaken
        worst = margins[np.arange(repetitions), shown].argmin(axis=1)
        w = w + mistaken[:, None] * gap[shown, worst]
    hidden = risk / n - lost / n
    for delta in (0.01, 0.1, 0.5):
        allowed = delta + 3 * math.sqrt(delta * (1 - delta) / repetitions)
        assert (hidden > online_to_batch(L=0.0, n=n, delta=delta).value).mean() <= allowed
        third = online_to_batch(L=0.0, n=n, delta=delta).value / 3
        assert delta != 0.1 or (hidden > third).mean() > allowed  # so it could have failed


# ------------------------------------------------------------------------------------------ numbers and refusals


@given(st.floats(0, 1e6), st.floats(0, 1e3))
def test_the_largest_root_solves_its_inequality_and_is_below_the_closed_form(F, b):
    x = largest_root(F=F, b=b)
    assert x - F == pytest.approx(b * math.sqrt(x), rel=1e-6, abs=1e-6 * (1 + F))
    assert x <= (F + b * math.sqrt(F) + b * b) * (1 + 1e-12)


def test_each_formula_at_numbers_that_can_be_checked_by_hand():
    assert slam_loss(F=4.0, norm_u=3.0, radius=2.0, V=0.5, eta=0.25, margin=1.0).terms["c"] == 4 * 4 * 0.5 + 8
    assert slam_loss(F=4.0, norm_u=3.0, radius=2.0, V=0.5, eta=0.25, margin=1.0).value == 4 + 3 * 8 + 16 * 9
    assert slam_loss(F=4.0, norm_u=3.0, radius=1.0, V=1.0, margin=0.0).value == 4 + 3 * 4 + 4 * 9
    assert fixed_step(F=1.0, norm_u=2.0, radius=1.0, kappa=1.0, eta=0.25).value == (1 + 8) / 0.5
    assert fixed_step(F=1.0, norm_u=2.0, radius=1.0, kappa=2.0, eta=0.25).value == math.inf
    assert quarter_step(F=1.0, norm_u=2.0, radius=3.0, kappa=4.0).value == 2 + 4 * 4 * 9 * 4
    assert worst_pair_mistakes(F=4.0, norm_u=3.0, radius=2.0).value == 4 + 24 + 144
    assert printed_003(F=4.0, norm_u=1.0, radius=1.0, v_max=2.0, m=4).value == 4 + 8 + 32
    assert printed_003(F=4.0, norm_u=1.0, radius=1.0, v_max=4.0, k=4).value == 4 + 16 + 64
    assert separable_loss(gamma=0.5, radius=1.0, V=0.5, margin=0.0).value == 8
    assert separable_mistakes(gamma=0.5, radius=1.0, V=0.5, margin=0.0, smallest=0.25).value == 32
    assert separable_worst_pair(gamma=0.5, radius=1.0).value == 16


def test_a_bound_shows_its_constants_and_what_it_rests_on():
    bound = fixed_step(F=1.0, norm_u=2.0, radius=1.0, kappa=2.0, eta=0.25)
    assert bound.applies is False
    assert "DOES NOT APPLY: eta < 1/(2 radius^2 kappa)" in repr(bound)
    assert "\n" not in repr(bound)
    assert "kappa=2" in repr(bound)
    assert bound.vacuous
    assert [str(one) for one in bound.preconditions][-1] == "eta < 1/(2 radius^2 kappa) (NOT met)"
    assert bound.to_dict()["terms"]["eta"] == 0.25
    assert bound.to_dict()["preconditions"][-1] == {"sentence": "eta < 1/(2 radius^2 kappa)", "met": False}
    assert pickle.loads(pickle.dumps(bound)) == bound == copy.deepcopy(bound)
    with pytest.raises(TypeError):
        bound.terms["eta"] = 3.0
    met = Bound(name="n", bounds="b", statement="s", value=2.0, terms={}, preconditions=(Precondition("p", True),))
    assert met.applies is True
    assert not met.vacuous
    assert met.allows(2.0)
    assert not met.allows(2.1)
    assert printed_003(F=0.0, norm_u=1.0, radius=1.0, v_max=1.0, m=3).status == "as printed"
    assert online_to_batch(L=9.9, n=10, delta=0.05).vacuous


NUMBERS = {
    slam_loss: {"F": 1.0, "norm_u": 1.0, "radius": 1.0, "V": 1.0, "eta": 1.0, "margin": 1.0},
    slam_mistakes: {"F": 1.0, "norm_u": 1.0, "radius": 1.0, "V": 1.0, "smallest": 0.1, "eta": 1.0, "margin": 1.0},
    fixed_step: {"F": 1.0, "norm_u": 1.0, "radius": 1.0, "kappa": 1.0, "eta": 0.1},
    quarter_step: {"F": 1.0, "norm_u": 1.0, "radius": 1.0, "kappa": 1.0, "eta": 0.25},
    worst_pair_mistakes: {"F": 1.0, "norm_u": 1.0, "radius": 1.0},
    separable_loss: {"gamma": 1.0, "radius": 1.0, "V": 1.0, "eta": 1.0, "margin": 1.0},
    separable_mistakes: {"gamma": 1.0, "radius": 1.0, "V": 1.0, "smallest": 0.1, "eta": 1.0, "margin": 1.0},
    separable_worst_pair: {"gamma": 1.0, "radius": 1.0},
    printed_003: {"F": 1.0, "norm_u": 1.0, "radius": 1.0, "v_max": 1.0, "m": 3},
    online_to_batch: {"L": 1.0, "n": 10, "delta": 0.1},
    largest_root: {"F": 1.0, "b": 1.0},
}


@pytest.mark.parametrize(("function", "name"), [(f, name) for f, named in NUMBERS.items() for name in named])
@pytest.mark.parametrize("number", [-1.0, math.nan, math.inf])
def test_numbers_that_mean_nothing_are_refused_by_name(function, name, number):
    with pytest.raises(RankwiseError, match=rf"{name}\b.*got"):
        function(**NUMBERS[function] | {name: number})


def test_what_a_bound_cannot_do_without_is_asked_for():
    with pytest.raises(RankwiseError, match="eta is required"):
        slam_loss(F=0.0, norm_u=1.0, radius=1.0, V=1.0)
    for wrong in ({}, {"m": 3, "k": 2}):
        with pytest.raises(RankwiseError, match=r"m for equation \(19\) or k for \(22\)"):
            printed_003(F=0.0, norm_u=1.0, radius=1.0, v_max=1.0, **wrong)
    with pytest.raises(RankwiseError, match="at most n"):
        online_to_batch(L=11.0, n=10, delta=0.1)
    with pytest.raises(RankwiseError, match="at row 1"):
        WeightFacts.of([0.5, -0.5])


@given(st.lists(st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.5]), max_size=4), max_size=5))
def test_facts_about_weights_are_extremes_over_lists(lists):
    start = np.cumsum([0, *map(len, lists)])
    facts = WeightFacts.of([number for one in lists for number in one], start)
    joined = WeightFacts()
    for one in lists:
        joined |= WeightFacts.of(one)
    assert facts == joined
    positive = [[number for number in one if number > 0] for one in lists]
    positive = [one for one in positive if one]
    assert pytest.approx(max(map(sum, positive), default=0.0)) == facts.V
    assert facts.smallest == min(map(min, positive), default=math.inf)
    printed = max(map(len, positive), default=0) * max((max(one) / min(one) for one in positive), default=1.0)
    own = max((sum(one) ** 2 / min(one) for one in positive), default=0.0)
    assert facts.kappa == pytest.approx(min(printed, own))
