"""Nobody escapes the adversary, and it is fair: one vector would have ranked every round, with the margin."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwise.errors import RankwiseError
from rankwise.guarantees import Adversary, play, separable_worst_pair, slam_loss
from rankwise.guarantees.bounds.adversary import publish
from rankwise.losses import SLAM
from rankwise.measures import parse
from tests.guarantees.perceptrons import Slam, WorstPair
from tests.strategies import few


class Constant:
    """All documents are alike to it."""

    def predict(self, X):
        return np.zeros(len(X))

    def partial_fit(self, query):
        pass


class Stubborn:
    """Always puts the same document first."""

    def __init__(self, first):
        self.first = first

    def predict(self, X):
        return [float(i == self.first % len(X)) for i in range(len(X))]

    def partial_fit(self, query):
        pass


class Memory:
    """Knows all earlier rounds and ranks them perfectly: least squares on their labels."""

    def __init__(self):
        self.seen = []

    def weights(self, features):
        if not self.seen:
            return np.zeros(features)
        X = np.concatenate([one.X for one in self.seen])
        y = np.concatenate([2 * one.y - 1 for one in self.seen])
        return np.linalg.lstsq(X, y, rcond=None)[0]

    def predict(self, X):
        w = self.weights(X.shape[1])
        for one in self.seen:
            assert np.argmax(one.X @ w) == np.argmax(one.y)
        return X @ w

    def partial_fit(self, query):
        self.seen.append(query)


def rankers():
    return [
        Slam(SLAM(margin=0.0)),
        Slam(SLAM(), eta=0.1),
        Slam(SLAM(weights="ap_sym", margin=0.0)),
        Slam(SLAM(weights="ndcg_003", k=1)),
        WorstPair(),
        Constant(),
        Stubborn(0),
        Stubborn(1),
        Stubborn(2),
        Memory(),
    ]


@pytest.mark.parametrize("number", range(len(rankers())))
@pytest.mark.parametrize(
    ("documents", "radius", "gamma", "forced"),
    [(2, 1.0, 0.5, 16), (3, 1.0, 0.5, 15), (7, 1.0, 0.5, 15), (3, 3.0, 2.0, 8), (2, 0.01, 0.003, 44)],
)
def test_every_ranker_makes_every_mistake(number, documents, radius, gamma, forced):
    adversary = Adversary(gamma=gamma, radius=radius, documents=documents)
    assert adversary.rounds == forced
    game = play(rankers()[number], adversary)
    assert game.mistakes == len(game) == forced
    assert game.comparator @ game.comparator == pytest.approx(1)
    assert game.margin() >= gamma * (1 - 1e-12)


@few
@given(st.integers(2, 5), st.floats(0.1, 10), st.floats(0.15, 1.3), st.integers(0, 99))
def test_whatever_is_publish_the_rounds_stay_separable(documents, radius, share, seed):
    """A ranker that guesses; the bound is about deterministic ones, and this one is, given its seed."""
    random = np.random.default_rng(seed)

    class Guess(Constant):
        def predict(self, X):
            return random.standard_normal(len(X)).round()

    adversary = Adversary(gamma=share * radius, radius=radius, documents=documents)
    game = play(Guess(), adversary)
    assert game.mistakes == adversary.rounds
    # as many coordinates as a comparator of length 1 with this margin can have
    assert adversary.rounds == adversary.features - (documents > 2)
    assert adversary.features * adversary.gamma**2 <= 4 * radius**2 * (1 + 1e-12)
    assert (adversary.features + 1) * adversary.gamma**2 > 4 * radius**2 * (1 - 1e-12)
    assert game.margin() >= adversary.gamma * (1 - 1e-12)
    queries = game.queries()
    assert queries.X.shape == (adversary.rounds * documents, adversary.features)
    assert np.linalg.norm(queries.X, axis=1) == pytest.approx(radius)
    assert (np.add.reduceat(queries.y, queries.start[:-1]) == 1).all()


@pytest.mark.parametrize("number", range(len(rankers())))
@pytest.mark.parametrize("documents", [2, 4])
def test_every_round_costs_half_of_ap_and_a_third_of_ndcg(number, documents):
    ranker = rankers()[number]
    adversary = Adversary(gamma=0.5, documents=documents)
    ap, ndcg = parse("AP"), parse("nDCG")
    for i in range(adversary.rounds):
        scores = np.asarray(ranker.predict(adversary.show(i)))
        labels = adversary.answer(publish(scores, documents))
        assert 1 - ap(scores, labels, ties="stable") >= 1 / 2
        assert 1 - ndcg(scores, labels, ties="stable") >= 1 - 1 / math.log2(3) - 1e-12
        assert ap(scores, labels, ties="pessimistic") <= ap(scores, labels, ties="stable")


def test_with_two_documents_the_bounds_are_attained():
    """As many mistakes as allowed: no constant of the two perceptrons' bounds can be smaller."""
    adversary = Adversary(gamma=0.25, documents=2)
    most = separable_worst_pair(gamma=0.25, radius=1.0)
    assert play(WorstPair(), adversary).mistakes == most.value == 64
    scale_free = Slam(SLAM(weights="ap_sym", margin=0.0))
    play(scale_free, adversary)
    bound = slam_loss(F=0.0, norm_u=4.0, radius=1.0, V=0.5, margin=0.0)  # the only weight of a list is 1/2
    assert sum(scale_free.losses) == sum(scale_free.weight) == bound.value == 32
    assert play(WorstPair(), Adversary(gamma=0.25, documents=5)).mistakes == most.value - 1


def printed_comparator(adversary, first_relevant):
    """The paper's: coordinate i takes its sign from round i, counted from 1."""
    a = adversary.gamma / (2 * adversary.radius)
    u = np.full(adversary.features, -a)
    for i in range(2, adversary.features + 1):
        if i <= adversary.rounds and first_relevant[i - 1]:
            u[i - 1] = a
    return u


def test_the_printed_indexing_does_not_separate_the_rounds():
    """Rounds live on coordinate i + 1: a sign from round i on coordinate i belongs to another round."""

    class Alternating(Constant):
        turn = 0

        def predict(self, X):
            self.turn += 1
            return [float(self.turn % 2), 0.5, 0.0]

    adversary = Adversary(gamma=0.3)
    game = play(Alternating(), adversary)
    u = printed_comparator(adversary, game.first_relevant)
    gaps = [(one.X @ u)[one.y == 1].min() - (one.X @ u)[one.y == 0].max() for one in game]
    assert min(gaps) == pytest.approx(-0.3)
    assert game.margin() >= 0.3


@pytest.mark.parametrize(("radius", "gamma"), [(1.0, 0.25), (1.0, 0.3), (3.0, 0.5), (1.0, 0.9)])
def test_the_printed_comparator_is_half_as_long_as_it_may_be_and_forces_a_quarter_of_the_mistakes(radius, gamma):
    """Its vector is said to have the length 1; gamma/(2 R) on floor(R^2/gamma^2) axes make 1/2 at most."""
    axes = math.floor(radius**2 / gamma**2)
    printed = np.full(axes, gamma / (2 * radius))
    assert np.linalg.norm(printed) <= 0.5
    ours = Adversary(gamma=gamma, radius=radius)
    assert np.linalg.norm(ours.comparator(np.ones(ours.rounds, dtype=bool))) == pytest.approx(1)
    assert ours.rounds >= 4 * axes - 1
    assert play(WorstPair(), ours).mistakes == ours.rounds


def test_at_large_margins_the_printed_number_is_0_where_mistakes_can_be_forced():
    """floor(R^2/gamma^2) - 1 is 0 for R^2 < 2 gamma^2, where ours are 1 to 6."""
    for gamma, forced in ((0.75, 6), (0.8, 5), (1.0, 3), (1.4, 1)):
        assert math.floor(1 / gamma**2) - 1 <= 0
        assert play(WorstPair(), Adversary(gamma=gamma)).mistakes == forced


def test_rows_do_not_depend_on_the_game_and_lists_are_made_again():
    adversary = Adversary(gamma=0.5, documents=4)
    game = play(WorstPair(), adversary)
    for i, one in enumerate(game):
        assert np.array_equal(one.X, adversary.show(i))
        assert one.y.sum() == 1
        assert one.y[:2].sum() == 1
        assert one.qid == i


@pytest.mark.parametrize(
    "wrong",
    [
        {"gamma": 0.0},
        {"gamma": math.nan},
        {"gamma": 0.5, "radius": math.inf},
        {"gamma": 0.5, "documents": 1},
        {"gamma": 2.1, "documents": 2},
        {"gamma": 1.5, "documents": 3},
    ],
)
def test_games_that_cannot_be_played_are_refused(wrong):
    with pytest.raises(RankwiseError, match=r"(?i)got"):
        Adversary(**wrong)


def test_the_largest_margins_force_a_single_mistake():
    assert play(Constant(), Adversary(gamma=2.0, documents=2)).mistakes == 1
    assert play(Constant(), Adversary(gamma=1.4, documents=3)).mistakes == 1


def test_a_ranker_that_is_not_fitted_yet_publishes_the_documents_as_they_came():
    class Careful(WorstPair):
        def predict(self, X):
            if self.w is None:
                raise RankwiseError("not fitted yet")
            return super().predict(X)

    class Deaf(Careful):
        def partial_fit(self, query):
            pass

    adversary = Adversary(gamma=0.5)
    careful, plain = play(Careful(), adversary), play(WorstPair(), adversary)
    assert np.array_equal(careful.first_relevant, plain.first_relevant)
    assert not careful.first_relevant[0]
    with pytest.raises(RankwiseError, match="not fitted yet"):
        play(Deaf(), adversary)


def test_rankings_and_scores_that_are_none_are_refused():
    adversary = Adversary(gamma=0.5)
    for order in ([0, 1], [0, 1, 1], [1, 2, 3]):
        with pytest.raises(RankwiseError, match="a permutation of the 3 documents"):
            adversary.answer(order)
    for scores in ([1.0, 2.0], [1.0, 2.0, math.nan]):
        with pytest.raises(RankwiseError, match="one finite score per row"):
            publish(scores, 3)
    with pytest.raises(RankwiseError, match=r"one answer per round \(15\)"):
        adversary.comparator([True])
