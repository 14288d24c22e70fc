"""What the papers print and what is true: each sentence with the numbers that decide it."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.printed_bounds import printed_003
from rankwise.guarantees import WeightFacts, quarter_step, slam_loss
from rankwise.guarantees.bounds.adversary import publish
from rankwise.losses import SLAM, MaxPair
from tests.guarantees.perceptrons import Slam, WorstPair, classes, cumulative, is_mistake, query, weights_of
from tests.strategies import judged_lists

# Three documents, one feature, three rounds; the second for the weights of the paper that says otherwise.
WITNESS = [
    query([[0], [1], [1]], [1, 1, 0]),
    query([[-1], [2], [1]], [1, 1, 0]),
    query([[-1], [1], [0]], [1, 0, 0]),
]
WITNESS_2014 = [
    query([[0], [-4], [-1]], [1, 1, 0]),
    query([[4], [-4], [2]], [1, 1, 0]),
    query([[-2], [4], [1]], [1, 0, 1]),
]


def rankings(ranker, rounds):
    shown = []
    for one in rounds:
        shown.append(publish(ranker.predict(one.X), len(one.y)).tolist())
        ranker.partial_fit(one)
    return shown


@pytest.mark.parametrize(("rule", "rounds"), [("ap_003", WITNESS), ("ap_000", WITNESS_2014)])
def test_the_step_of_the_slam_perceptron_matters(rule, rounds):
    """The perceptron of 2014 says that predictions do not depend on eta."""
    one, quarter = (rankings(Slam(SLAM(weights=rule), eta), rounds) for eta in (1.0, 0.25))
    assert one[:2] == quarter[:2]
    assert one[2] != quarter[2]


@pytest.mark.parametrize("rule", ["ap_000", "ap_sym", "ndcg_tight_sym"])
@pytest.mark.parametrize("eta", [0.25, 4.0])
def test_it_does_not_without_a_margin_nor_for_the_worst_pair(rule, eta):
    scale_free = SLAM(weights=rule, margin=0.0)
    for rounds in (WITNESS * 5, WITNESS_2014 * 5):
        assert rankings(Slam(scale_free, 1.0), rounds) == rankings(Slam(scale_free, eta), rounds)
        assert rankings(WorstPair(1.0), rounds) == rankings(WorstPair(eta), rounds)


@pytest.mark.parametrize("rule", ["ap_000", "ndcg_tight_sym"])
def test_only_the_ratio_of_margin_and_step_counts(rule):
    one = rankings(Slam(SLAM(weights=rule, margin=1.0), 0.25), WITNESS_2014 * 5)
    assert one == rankings(Slam(SLAM(weights=rule, margin=4.0), 1.0), WITNESS_2014 * 5)


# Small rows: with eta = 1 every step is far too small for a margin of 1.
SMALL = query(0.01 * np.array([[0, 0], [1, 0], [-0.5, 0.3]]), [0, 1, 1])
SEPARATES = 100 * np.array([1.0, 5.0])


def test_the_bound_of_theorem_5_fails_for_a_step_of_1():
    loss = SLAM(weights="ap_000")
    ranker = Slam(loss, eta=1.0)
    assert cumulative(loss, [SMALL], SEPARATES) == 0.0
    facts = WeightFacts.of(weights_of(loss, SMALL.y))
    known = {"F": 0.0, "norm_u": float(np.linalg.norm(SEPARATES)), "radius": 0.01}
    printed = quarter_step(**known, kappa=3 * facts.v_max, eta=1.0)
    assert printed.value == pytest.approx(468)
    assert printed.applies is False
    for _ in range(2810):
        ranker.partial_fit(SMALL)
    assert len(ranker.mistakes) == 2810
    assert ranker.losses[-1] == pytest.approx(1 / 6)
    assert not printed.allows(sum(ranker.losses))
    assert slam_loss(**known, V=facts.V, eta=1.0).allows(sum(ranker.losses))
    # nor would Theorem S be true without its term for the margin
    assert not slam_loss(**known, V=facts.V, margin=0.0).allows(sum(ranker.losses))


@pytest.mark.parametrize("rule", ["ap_000", "ap_sym"])
def test_the_same_rounds_are_soon_learned_with_the_right_step_or_no_margin(rule):
    loss = SLAM(weights=rule)
    facts = WeightFacts.of(weights_of(loss, SMALL.y))
    known = {"F": 0.0, "norm_u": float(np.linalg.norm(SEPARATES)), "radius": 0.01}
    right = 1 / (4 * 0.01**2 * facts.kappa)
    for ranker in (Slam(loss, right), Slam(SLAM(weights=rule, margin=0.0))):
        for _ in range(300):
            ranker.partial_fit(SMALL)
        assert not is_mistake(ranker.predict(SMALL.X), SMALL.y)
        assert quarter_step(**known, kappa=facts.kappa, eta=right).allows(sum(ranker.losses))


def test_equation_19_is_false_for_a_step_that_is_too_small_and_true_for_large_ones():
    """With the weights of its own paper; what saves it is Theorem S, for eta >= 1/(2 R^2 (m - 1))."""
    loss = SLAM(weights="ap_003")
    known = {"F": 0.0, "norm_u": float(np.linalg.norm(SEPARATES)), "radius": 0.01}
    printed = printed_003(**known, v_max=1.0, m=3)
    assert printed.value == pytest.approx(312)
    small, large = Slam(loss, 1.0), Slam(loss, 1 / (2 * 0.01**2 * 2))
    for _ in range(2000):
        small.partial_fit(SMALL)
        large.partial_fit(SMALL)
    assert not printed.allows(sum(small.losses))
    assert printed.allows(sum(large.losses))


@given(st.floats(0, 50), st.floats(0, 50), st.floats(0.01, 10), st.integers(2, 50), st.floats(1, 20), st.floats(1, 1e3))
def test_equation_19_follows_from_slam_loss_for_large_steps(F, norm_u, radius, m, v_max, times):
    eta = times / (2 * radius**2 * (m - 1))
    ours = slam_loss(F=F, norm_u=norm_u, radius=radius, V=1.0, eta=eta)
    assert printed_003(F=F, norm_u=norm_u, radius=radius, v_max=v_max, m=m).allows(ours.value)


def test_equation_19_does_not_follow_from_its_own_derivation():
    """It solves x - b sqrt(x) - F <= 0 with b^2 = 4 norm_u^2 m R^2 v_max, and v_max is missing under its root."""
    F, norm_u, radius, m, v_max = 10_000.0, 1.0, 1.0, 5, 9.0
    b = 2 * norm_u * radius * math.sqrt(m * v_max)
    x = (b / 2 + math.sqrt(F + b * b / 4)) ** 2
    assert x - b * math.sqrt(x) - F <= 1e-6
    assert not printed_003(F=F, norm_u=norm_u, radius=radius, v_max=v_max, m=m).allows(x)
    assert printed_003(F=F, norm_u=norm_u, radius=radius, v_max=v_max, k=m).allows(x)  # (22) has it


def test_the_best_step_in_hindsight_depends_on_the_run_that_it_makes():
    """Theorems 6 and 8 minimize over eta a bound whose F adds up over mistakes: those are others for another eta."""
    loss, u = SLAM(weights="ap_003"), np.array([2.0])
    found = {}
    for eta in (1.0, 0.25):
        ranker = Slam(loss, eta)
        for one in WITNESS * 3:
            ranker.partial_fit(one)
        found[eta] = cumulative(loss, ranker.mistakes, u)
    assert found[1.0] != found[0.25]


def test_a_gap_of_exactly_the_margin_is_enough():
    """The corollaries ask for gaps above 1: at 1 the comparator has no loss either."""
    exact, less = (query([[gap], [0.0]], [1, 0]) for gap in (1.0, 1.0 - 1e-9))
    for surrogate in (SLAM(), SLAM(weights="ap_003"), MaxPair()):
        assert cumulative(surrogate, [exact], np.array([1.0])) == 0.0
        assert cumulative(surrogate, [less], np.array([1.0])) > 0.0


def test_at_k_the_outscored_document_of_the_proof_may_weigh_nothing():
    """NDCG@1 with the third document on top: both relevant ones are outscored, and the second has no weight."""
    scores, labels = np.array([0.5, 0.0, 1.0]), np.array([1.0, 1.0, 0.0])
    assert is_mistake(scores, labels, 1)
    assert (scores[:2] < scores[2]).all()
    assert weights_of(SLAM(weights="ndcg_003", k=1), labels).tolist() == [1.0, 0.0, 0.0]


@given(judged_lists(max_size=6), st.integers(1, 4), st.sampled_from(["ndcg_003", "ndcg_tight", "ndcg_tight_sym"]))
def test_but_on_every_mistake_some_outscored_document_weighs_something(scored, k, rule):
    scores, labels = (np.array(one, dtype=float) for one in scored)
    loss = SLAM(weights=rule, k=k)
    if not is_mistake(scores, labels, k):
        return
    v = weights_of(loss, labels)
    outscored = [
        i for i in range(len(labels)) if any(scores[j] >= scores[i] for j in np.flatnonzero(labels < labels[i]))
    ]
    assert v[outscored].sum() > 0
    assert 1 - loss.upper_bounds(scores, labels, ties="pessimistic") <= v[outscored].sum() + 1e-9


@given(st.floats(0, 1e3), st.floats(0, 1e3), st.floats(0, 1))
def test_the_lemma_about_x_and_its_root(b, c, share):
    """x - b sqrt(x) - c <= 0 has no solution above b^2 + c + b sqrt(c)."""
    limit = b * b + c + b * math.sqrt(c)
    largest = (b / 2 + math.sqrt(c + b * b / 4)) ** 2
    x = share * largest
    assert x - b * math.sqrt(x) - c <= 1e-9 * (1 + limit)
    assert x <= limit * (1 + 1e-12)
    above = limit * 1.001 + 1e-6
    assert above - b * math.sqrt(above) - c > 0


RULES = ["ndcg_tight_sym", "ndcg_tight", "ndcg_003", "ndcg_000", "ap_sym", "ap_003", "ap_000"]


@given(judged_lists(max_size=6), st.sampled_from(RULES), st.sampled_from([None, 1, 2]), st.integers(0, 99))
def test_on_a_mistake_the_gradient_is_bounded_by_the_loss_itself(scored, rule, k, seed):
    """norm(z)^2 <= 4 R^2 kappa phi, ties and w = 0 included; as printed with m v_max (k v_max), and sharper."""
    scores, labels = (np.array(one, dtype=float) for one in scored)
    loss = SLAM(weights=rule, k=k if rule in ("ndcg_tight_sym", "ndcg_tight", "ndcg_003") else None)
    if not is_mistake(scores, classes(loss, labels), loss.k):
        return
    X = np.random.default_rng(seed).standard_normal((len(labels), 2))
    phi, gradient = loss(scores, labels)
    z, radius = X.T @ gradient, np.sqrt((X**2).sum(axis=1)).max()
    v = weights_of(loss, labels)
    facts = WeightFacts.of(v)
    length = len(labels) if loss.k is None else loss.k
    assert z @ z <= 4 * radius**2 * facts.steepest * phi * (1 + 1e-9)
    assert z @ z <= 4 * radius**2 * facts.kappa * phi * (1 + 1e-9)
    assert facts.kappa <= facts.longest * facts.v_max * (1 + 1e-9)
    if not rule.endswith("_sym"):  # averaging may spread weight below the cut-off
        assert facts.longest <= length
    assert z @ z <= 4 * radius**2 * max(facts.longest, length) * facts.v_max * phi * (1 + 1e-9)
