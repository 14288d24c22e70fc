"""Prepared rounds: one list at a time, with the bits of partial_fit however calls are divided."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankwise as rw
from rankwise.errors import DataError, RankwiseError
from rankwise.rankers.online import rounds as rounds_module
from rankwise.rankers.online.learner import LinearOnlineLearner
from tests.rankers.online.test_streams import ONLINE, SETTINGS, lists, named, new, run

LINEAR = [*(one for one in ONLINE if isinstance(one, LinearOnlineLearner)), *SETTINGS[1::8]]
over_linear = pytest.mark.parametrize("ranker", LINEAR, ids=named)


def whole(model):
    """All that a run has become, with its fingerprints and its digest."""
    return run(model), model.record_.seen.training.marks.tobytes(), model.record_.seen.record, model.record_.digest


@over_linear
def test_prepared_rounds_have_the_bits_of_partial_fit(ranker):
    queries = lists(weighted=False)
    expected, model = whole(new(ranker).partial_fit(queries)), new(ranker)
    with rw.OnlineRounds(model) as prepared:
        for query in queries:
            prepared.learn(query.X, query.y)
    assert whole(model) == expected


@settings(max_examples=12, deadline=None)
@given(
    ranker=st.sampled_from(LINEAR),
    seed=st.integers(0, 99),
    cuts=st.lists(st.sampled_from(["learn", "query", "float32", "list", "settle", "one", "block"]), max_size=20),
    waiting=st.integers(1, 5),
)
def test_no_division_into_calls_changes_a_bit(ranker, seed, cuts, waiting):
    queries = lists(len(cuts), seed=seed)
    narrow = queries.map_features(np.float32)
    lone = [narrow[place] if cut == "float32" else queries[place] for place, cut in enumerate(cuts)]
    plain = [cut in ("learn", "float32", "list", "one") for cut in cuts]  # these tell no weight of the query
    expected, model = new(ranker), new(ranker)
    patch = pytest.MonkeyPatch()
    patch.setattr(rounds_module, "_WAITING", waiting)
    prepared = rw.OnlineRounds(model)
    for cut, query, unweighted in zip(cuts, lone, plain, strict=True):
        if unweighted:
            expected.partial_fit(query.X, query.y)
        else:
            expected.partial_fit(query)
        if cut in ("learn", "float32"):
            prepared.learn(query.X, query.y)
        elif cut == "list":
            prepared.learn(query.X.tolist() if len(query) else query.X, query.y.tolist())
        elif cut == "one":  # the model learns by itself, and is prepared again
            prepared.settle().partial_fit(query.X, query.y)
            prepared = rw.OnlineRounds(model)
        elif cut == "block":
            prepared.settle().partial_fit([query])
            prepared = rw.OnlineRounds(model)
        else:
            prepared.learn(query)
            if cut == "settle":
                assert prepared.settle() is model
        if hasattr(expected, "coef_"):
            assert prepared.coef_.tobytes() == expected.coef_.tobytes()
    prepared.settle()
    patch.undo()
    if cuts:
        assert whole(model) == whole(expected)


def test_the_model_stays_as_it_was_until_it_is_settled():
    queries = lists(20, weighted=False)
    model = rw.SLAMPerceptron().partial_fit(queries[:10])
    before = whole(model)
    prepared = rw.OnlineRounds(model)
    for query in queries[10:]:
        prepared.learn(query.X, query.y)
    assert whole(model) == before
    assert repr(prepared) == "OnlineRounds(SLAMPerceptron, 10 lists to settle)"
    assert whole(prepared.settle()) == whole(rw.SLAMPerceptron().partial_fit(queries))


def test_a_certificate_knows_the_lists_of_prepared_rounds():
    queries = rw.make_lists(30, features=4, random_state=2)
    model = rw.SLAMPerceptron()
    with rw.OnlineRounds(model) as prepared:
        for query in queries:
            prepared.learn(query)
    expected = rw.SLAMPerceptron().fit(queries)
    assert str(model.certificate(queries, queries)) == str(expected.certificate(queries, queries))
    assert "nothing certified: all 30 hold-out queries were used in training" in str(model.certificate(holdout=queries))


@pytest.mark.parametrize(
    ("X", "y", "sentence"),
    [
        (np.full((2, 3), np.nan), np.zeros(2), "X is nan at row 0"),
        (np.full((2, 3), np.inf), np.zeros(2), "X is inf at row 0"),
        (
            np.ones((2, 3)),
            np.array([-1.0, 0.0]),
            "labels must be 0 or more, got -1 at row 0: leave unjudged documents out",
        ),
        (
            np.ones((2, 3)),
            np.array([np.nan, 0.0]),
            "labels must be finite, got nan at row 0: leave unjudged documents out",
        ),
        (np.ones((2, 4)), np.zeros(2), "was fitted on 3 features, got 4"),
        (np.ones((2, 3)), np.zeros(3), "one number per row"),
        (np.ones((2, 3)), None, "SLAMPerceptron requires labels: pass y, or a Query or Queries with labels"),
        (1e300 * np.eye(3), np.array([0.0, 1.0, 2.0]), "too large for float64"),
    ],
)
def test_a_list_that_cannot_be_learned_from_leaves_everything_as_it_was(X, y, sentence):
    queries = lists(20, weighted=False)
    model, expected = rw.SLAMPerceptron(), rw.SLAMPerceptron()
    with rw.OnlineRounds(model) as prepared:
        for query in queries:
            prepared.learn(query.X, query.y)
            expected.partial_fit(query.X, query.y)
            for learner in (prepared.learn, expected.partial_fit):
                with pytest.raises(RankwiseError, match=sentence):
                    learner(X, y)
    assert whole(model) == whole(expected)


@pytest.mark.parametrize("missing", ["zero", "min"])
def test_missing_values_are_replaced_as_the_model_says(missing):
    X, y = np.array([[1.0, np.nan], [0.5, 2.0], [0.0, 1.0]]), np.array([0.0, 1.0, 2.0])
    model = rw.SLAMPerceptron(missing=missing)
    with rw.OnlineRounds(model) as prepared:
        for _ in range(3):
            prepared.learn(X, y)
    assert whole(model) == whole(rw.SLAMPerceptron(missing=missing).partial_fit([(X, y)] * 3))


def test_a_model_that_learned_elsewhere_is_not_overwritten():
    queries = lists(10, weighted=False)
    model = rw.SLAMPerceptron().partial_fit(queries[:5])
    prepared = rw.OnlineRounds(model)
    prepared.learn(queries[6].X, queries[6].y)
    model.partial_fit(queries[5])
    elsewhere = whole(model)
    with pytest.raises(RankwiseError, match=r"has learned outside of its OnlineRounds"):
        prepared.settle()
    assert whole(model) == elsewhere


def test_rounds_are_prepared_for_linear_online_rankers():
    for other in (rw.RidgeRanker(), rw.KernelPerceptron(), None):
        with pytest.raises(DataError, match="a linear online ranker, got"):
            rw.OnlineRounds(other)
    with pytest.raises(RankwiseError, match="solver='sgd'"):
        rw.OnlineRounds(rw.ListNet(solver="lbfgs")).learn(np.eye(2), np.arange(2.0))


def test_a_prepared_round_ranks_with_what_it_has_learned():
    queries = lists(30, weighted=False)
    model = rw.SLAMPerceptron().partial_fit(queries[:1])
    scorer, prepared = rw.Scorer(model), rw.OnlineRounds(model)
    for query in queries[1:]:
        prepared.learn(query.X, query.y)
    expected = rw.SLAMPerceptron().partial_fit(queries)
    found = scorer.with_coef(prepared.coef_).scores(queries.X)
    np.testing.assert_array_equal(found, expected.predict(queries.X))
