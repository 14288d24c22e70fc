"""Learning from clicks: labels of the right mean for objectives that are linear in them, and safety for the rest."""

import numpy as np
import pytest

import rankwise as rw
from rankwise import clicks
from rankwise.clicks.simulation import attractiveness
from rankwise.errors import DataError, RankwiseError
from rankwise.losses import GivenSoftmax, PropensityHinge
from rankwise.losses._base import registered as losses
from rankwise.rankers._base import registered as rankers

THETA = 1 / np.arange(1, 9)
DCG = "DCG(dcg='log2')@8"


@pytest.fixture(scope="module")
def queries():
    return rw.make_lists(80, documents=8, features=5, random_state=2)


@pytest.fixture(scope="module")
def log(queries):
    found = clicks.simulate(queries, queries.X[:, 0], 4_000, shown=8, random_state=1)
    return found.with_propensities(clicks.given(THETA), tau=0.1)


def test_labels_have_the_mean_of_attractiveness(queries):
    log = clicks.simulate(queries, queries.X[:, 0], 60_000, shown=8, random_state=1)
    found = clicks.training_queries(log, clicks.given(THETA), tau=0.1)
    error = found.labels() - attractiveness(queries)
    assert abs(error.mean()) < 0.01
    assert np.abs(error).mean() < 0.1
    naive = clicks.training_queries(log, None).labels() - attractiveness(queries)
    assert naive.mean() < -0.1


def test_queries_with_their_sessions_as_weight_are_the_sessions(queries, log):
    """The ridge of averaged labels is that of one query per session."""
    few = log[:40]
    joined = rw.RidgeRanker(alpha=1.0, target="labels", balanced=False, scale="none").fit(few)
    X, y, qid = [], [], []
    for number in range(40):
        rows = np.flatnonzero(queries.query_of_row == few.query[number])
        label = np.zeros(queries.n_documents)
        own = slice(few.start[number], few.start[number + 1])
        label[few.row[own]] = few.click[own] / np.maximum(THETA[few.position[own] - 1], 0.1)
        X.append(queries.X[rows])
        y.append(label[rows])
        qid += [number] * len(rows)
    apart = rw.RidgeRanker(alpha=1.0, target="labels", balanced=False, scale="none")
    apart.fit(np.concatenate(X), np.concatenate(y), qid=qid)
    assert joined.coef_ == pytest.approx(apart.coef_, rel=1e-6)


LINEAR = [
    rw.RidgeRanker(DCG, target="labels", balanced=False),
    rw.RidgeRanker(alpha=1.0, target="labels", balanced=False),
    rw.LossRanker(PropensityHinge(), alpha=0.1),
    rw.LossRanker(GivenSoftmax(), alpha=(1.0, 0.1), measure=DCG, folds=2),
    rw.SmoothRank(DCG, start=[1.0, 0.0, 0.0, 0.0, 0.0], alpha=1.0, sigmas=(4.0, 1.0), steps=3),
]


@pytest.mark.parametrize("ranker", LINEAR, ids=lambda ranker: repr(ranker)[:40])
def test_linear_rankers_learn_from_a_log(ranker, log):
    model = ranker.fit(log)
    assert model.coef_.any()
    assert np.array_equal(np.sort(model.record_.click_sessions), np.sort(log.hashes()))
    model.fit(clicks.training_queries(log, clicks.given(THETA), tau=0.1))
    assert model.record_.click_sessions is None


REFUSING = [
    *(kind.examples()[0] for kind in rankers().values() if kind.__module__.startswith("rankwise.")),
    rw.RidgeRanker(target="labels", balanced=False),  # selects alpha by nDCG
    rw.LossRanker(GivenSoftmax()),
    rw.SmoothRank(DCG),
    rw.RankSVM(),
]


@pytest.mark.parametrize("ranker", REFUSING, ids=lambda ranker: repr(ranker)[:40])
def test_all_others_refuse_a_log_by_name(ranker, log):
    with pytest.raises(RankwiseError, match=f"{ranker.name}.* ClickLog"):
        ranker.fit(log)
    assert not hasattr(ranker, "coef_")


def test_a_stream_refuses_a_log_by_name(log):
    with pytest.raises(RankwiseError, match=r"SLAMPerceptron\.fit does not accept a ClickLog"):
        rw.SLAMPerceptron().partial_fit(log)


def test_losses_that_say_so_are_linear_in_the_labels():
    random = np.random.default_rng(0)
    found = [kind for kind in losses().values() if kind.linear_in_labels]
    assert {kind.__name__ for kind in found} == {"GivenSoftmax", "PropensityHinge"}
    for kind in found:
        for loss in kind.examples():
            s, y, z = random.normal(size=(3, 7))
            y, z = np.abs(y), np.abs(z)
            (one, g), (other, h), (both, both_g) = (loss(s, labels) for labels in (y, z, 2 * y + 3 * z))
            assert both == pytest.approx(2 * one + 3 * other)
            assert both_g == pytest.approx(2 * g + 3 * h)


def test_the_hinge_bounds_the_ranks_of_what_was_clicked():
    random = np.random.default_rng(1)
    for _ in range(50):
        s, y = np.round(random.normal(size=8), 1), np.abs(random.normal(size=8))
        ranks = [np.sum(s >= one) for one in s]  # ties against the document
        assert PropensityHinge()(s, y)[0] >= y @ (np.array(ranks) - 1) - 1e-9


def test_a_log_without_a_position_model_or_candidates_is_refused(queries):
    log = clicks.simulate(queries, queries.X[:, 0], 20, shown=8)
    ranker = rw.RidgeRanker(alpha=1.0, target="labels", balanced=False)
    with pytest.raises(DataError, match="with_propensities"):
        ranker.fit(log)
    with pytest.raises(DataError, match="tau must be in"):
        log.with_propensities(clicks.given(THETA), tau=0.0)
    with pytest.raises(DataError, match="must cover all 8 positions of the log, got 1"):
        ranker.fit(log.with_propensities(clicks.given([1.0]), tau=0.1))
    with pytest.raises(RankwiseError, match="beta"):
        clicks.training_queries(log, clicks.given(THETA, beta=THETA / 2), tau=0.1)


def test_folds_are_over_queries(queries, log):
    found = clicks.training_queries(log, clicks.given(THETA), tau=0.1)
    assert len(found) <= len(queries)
    assert found.weight.sum() == len(log)


def test_a_safe_ranker_replaces_a_bad_one_and_leaves_a_good_one(queries):
    labels = queries.labels()
    right = np.linalg.lstsq(queries.X - queries.X.mean(0), labels - labels.mean(), rcond=None)[0]
    model = clicks.given(THETA)
    bad = clicks.safe_ranker(clicks.simulate(queries, queries.X @ -right, 6_000, shown=8), -right, model, tau=0.1)
    assert bad.certified
    assert bad.gain.lower > 0
    assert bad.model is bad.learned
    assert "gain at least" in repr(bad)
    good = clicks.safe_ranker(clicks.simulate(queries, queries.X @ right, 300, shown=8), right, model, tau=0.1)
    assert not good.certified
    assert good.model is right
    assert "no gain certified" in repr(good)
    assert good.gain.alpha == pytest.approx(0.01)  # five strengths share delta
    with pytest.raises(RankwiseError, match="linear in the labels"):
        clicks.safe_ranker(
            clicks.simulate(queries, labels, 10, shown=8), right, model, tau=0.1, loss=rw.losses.PairHinge()
        )


@pytest.mark.thorough
def test_a_safe_ranker_is_rarely_worse_than_a_logged_one_that_is_best(queries):
    a = attractiveness(queries)
    logged = rw.RidgeRanker(DCG, target="labels", balanced=False).fit(queries.with_labels(a)).coef_
    base = clicks.true_value(queries, queries.X @ logged, a, k=8)
    wrong = 0
    for seed in range(100):
        log = clicks.simulate(queries, queries.X @ logged, 1_000, shown=8, random_state=seed)
        safe = clicks.safe_ranker(log, logged, clicks.given(THETA), tau=0.1, delta=0.1, random_state=seed)
        wrong += safe.certified and clicks.true_value(queries, safe.model, a, k=8) < base
    assert wrong <= 20
