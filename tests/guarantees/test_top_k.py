"""The regret of learning from the first k labels: its bound against exact expectations, and its rate."""

import itertools
import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankwise as rw
from rankwise.errors import RankwiseError
from rankwise.guarantees import top_k_regret, top_k_settings
from rankwise.guarantees.bounds.top_k import second_moment
from rankwise.losses import GivenSoftmax, PairHinge, PairLogistic, PropensityHinge
from tests.oracles import top_k as plain

LOSSES = [GivenSoftmax(), PropensityHinge(), PairHinge(per_pair=False), PairLogistic(per_pair=False)]
LOSSES.append(PairHinge(squared=True, per_pair=False))


def some_lists(random, sizes, features=2):
    return [(random.normal(size=(m, features)), random.integers(0, 3, m).astype(float)) for m in sizes]


def constants(loss, lists, W):
    """What the bound needs of a stream, computed from the stream."""
    radius = max(np.linalg.norm(X - X.mean(axis=0), axis=1).max() for X, _ in lists)
    m, label = max(len(y) for _, y in lists), max(y.max() for _, y in lists)
    G = loss.term_lipschitz_l1(W * radius, m, label)
    return {"W": W, "radius": radius, "G": G, "m": m, "labels_per_term": loss.labels_per_term}


def outcomes(s, k, explore):
    """(probability, documents seen), each set of documents once."""
    chance = {}
    for probability, seen in plain.outcomes(s, k, explore):
        chance[tuple(sorted(seen))] = chance.get(tuple(sorted(seen)), 0.0) + probability
    return [(probability, set(seen)) for seen, probability in chance.items()]


def losses_of(loss, lists, k, w):
    """The loss of fixed weights in each round, as it is estimated."""
    return [(plain.whole(loss, X @ w, y) if len(y) > k else loss(X @ w, y))[0] for X, y in lists]


@settings(max_examples=40, deadline=None)
@given(
    loss=st.sampled_from(LOSSES),
    seed=st.integers(0, 999),
    m=st.integers(1, 5),
    more=st.integers(0, 3),
    explore=st.floats(0.05, 1.0),
    length=st.floats(0.0, 3.0),
)
def test_no_second_moment_exceeds_its_bound(loss, seed, m, more, explore, length):
    random = np.random.default_rng(seed)
    ((X, y),) = lists = some_lists(random, [m])
    w, k = random.normal(size=2), loss.labels_per_term + more
    w *= length / np.linalg.norm(w)
    s = X @ w
    exact = sum(
        p * np.linalg.norm(X.T @ plain.estimate(loss, s, y, seen, k, explore)[1]) ** 2
        for p, seen in outcomes(s, k, explore)
    )
    known = constants(loss, lists, length)
    known.pop("W")
    assert exact <= second_moment(k=k, explore=explore, **known) * (1 + 1e-9)


def test_without_its_largest_term_the_second_moment_would_be_false():
    X, y = np.array([[1.0], [1.0], [-1.0]]), np.array([0.0, 0.0, 1.0])
    explore, s = 0.01, np.array([1.0, 0.0, -1.0])
    exact = sum(
        p * np.linalg.norm(X.T @ plain.estimate(PropensityHinge(), s, y, seen, 1, explore)[1]) ** 2
        for p, seen in outcomes(s, 1, explore)
    )
    known = {"radius": 4 / 3, "G": 4.0, "m": 3, "k": 1, "labels_per_term": 1}
    assert second_moment(explore=1.0, **known) < exact <= second_moment(explore=explore, **known)


@settings(max_examples=25, deadline=None)
@given(
    loss=st.sampled_from(LOSSES),
    seed=st.integers(0, 999),
    decreasing=st.booleans(),
    explore=st.floats(0.1, 1.0),
    eta=st.sampled_from([0.01, 0.1, 1.0]),
    charged=st.booleans(),
)
def test_no_expected_regret_exceeds_its_bound(loss, seed, decreasing, explore, eta, charged):
    """The expectation is exact: every outcome of every round of a run of three rounds."""
    random = np.random.default_rng(seed)
    lists = some_lists(random, random.integers(1, 5, size=3))
    k, W = loss.labels_per_term, 1.5
    known = constants(loss, lists, W)
    cost = loss.range(W * known["radius"], known["m"], (0.0, 2.0))[1]

    def expected(t, w):
        """The expected loss from round t on."""
        if t > len(lists):
            return 0.0
        X, y = lists[t - 1]
        total = losses_of(loss, [(X, y)], k, w)[0]
        if charged and len(y) > k:
            total += explore * (cost - total)
        for probability, seen in outcomes(X @ w, k, explore):
            gradient = plain.estimate(loss, X @ w, y, seen, k, explore)[1]
            after = w - eta / (math.sqrt(t) if decreasing else 1) * (X.T @ gradient)
            after = after * min(1.0, W / max(np.linalg.norm(after), 1e-300))
            total += probability * expected(t + 1, after)
        return total

    bound = top_k_regret(
        k=k, explore=explore, eta=eta, n=3, decreasing=decreasing, cost=cost if charged else 0.0, **known
    )
    angles = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    best = min(
        sum(losses_of(loss, lists, k, W * r * np.array([math.cos(a), math.sin(a)])))
        for a, r in itertools.product(angles, (0.0, 0.5, 1.0))
    )
    assert expected(1, np.zeros(2)) - best <= bound.value * (1 + 1e-9)


def test_the_bound_of_the_settings_grows_as_n_to_two_thirds():
    known = {"W": 1.0, "radius": 1.0, "G": 2.0, "m": 10, "k": 3, "labels_per_term": 2}
    charged = []
    for n in (10**6, 8 * 10**6, 64 * 10**6, 512 * 10**6):
        eta, explore = top_k_settings(n=n, cost=50.0, **known)
        bound = top_k_regret(n=n, cost=50.0, eta=eta, explore=explore, **known)
        charged.append(bound.value)
        near = [
            top_k_regret(n=n, cost=50.0, eta=eta * a, explore=min(1.0, explore * b), **known).value
            for a in (0.5, 1, 2)
            for b in (0.5, 1, 2)
        ]
        assert bound.value <= min(near) * 1.05
    assert [b / a for a, b in itertools.pairwise(charged)] == pytest.approx([4, 4, 4], rel=0.1)


def test_lists_that_are_seen_whole_need_no_exploration():
    known = {"W": 1.0, "radius": 1.0, "G": 2.0, "labels_per_term": 1, "cost": 5.0, "n": 100}
    eta, explore = top_k_settings(m=4, k=4, **known)
    assert explore < 1e-9
    assert eta == pytest.approx(
        1 / math.sqrt(100 * second_moment(radius=1, G=2, m=4, k=4, labels_per_term=1, explore=1))
    )


@pytest.mark.parametrize(
    "wrong",
    [{"explore": 0.0}, {"explore": 1.5}, {"k": 1}, {"labels_per_term": 3}, {"radius": -1.0}, {"eta": 0.0}, {"n": 0}],
)
def test_numbers_that_no_run_has_are_refused(wrong):
    right = {
        "W": 1.0,
        "radius": 1.0,
        "G": 2.0,
        "m": 5,
        "k": 2,
        "labels_per_term": 2,
        "explore": 0.2,
        "eta": 0.1,
        "n": 10,
    }
    assert top_k_regret(**right).value > 0
    with pytest.raises(RankwiseError, match=next(iter(wrong))):
        top_k_regret(**right | wrong)


def test_the_mean_regret_of_simulated_runs_is_below_its_bound():
    """Coverage: 40 runs over one stream, each with draws of its own; u is the hidden vector at several lengths."""
    random = np.random.default_rng(4)
    u, n, W, k = np.array([0.6, -0.8, 0.0]), 300, 2.0, 2
    lists = []
    for _ in range(n):
        X = random.uniform(-0.5, 0.5, size=(4, 3))
        lists.append((X, (X @ u + 0.05 * random.normal(size=4) > 0).astype(float)))
    for loss in (GivenSoftmax(), PairHinge(per_pair=False)):
        known = constants(loss, lists, W)
        cost = loss.range(W * known["radius"], 4, (0.0, 1.0))[1]
        eta, explore = top_k_settings(k=k, n=n, cost=cost, **known)
        bound = top_k_regret(k=k, n=n, eta=eta, explore=explore, **known).value
        best = min(sum(losses_of(loss, lists, k, length * u)) for length in (0.0, 0.5, 1.0, 2.0))
        make = partial(rw.OnlineRanker, loss, step="constant", projection="l2", averaging="none")
        regrets = []
        for seed in range(40):
            model = make(eta=eta, max_norm=W, feedback_depth=k, explore=explore, random_state=seed)
            model.partial_fit(lists)
            regrets.append(model.ledger_.feedback.estimated_loss - best)
            (found, charged) = model.ledger_.regret_bounds()
            assert found.value <= bound * (1 + 1e-9)
            assert charged.value == pytest.approx(found.value + explore * n * cost, rel=0.2)
        mean, error = np.mean(regrets), np.std(regrets) / math.sqrt(len(regrets))
        assert mean + 3 * error <= bound
        assert mean < 0.5 * sum(losses_of(loss, lists, k, np.zeros(3)))  # it is about learning, not about a loose bound
