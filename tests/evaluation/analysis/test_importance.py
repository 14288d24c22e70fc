"""Permutation importance within queries: against plain re-scoring, and where the answer is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as tried
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression

from rankwise import AdaRank, Queries, RankBoost, RidgeRanker, evaluate, make_lists
from rankwise.analysis.importance import losses_by_query, permutation_importance, weights_of
from rankwise.errors import RankwiseError


@pytest.fixture(scope="module")
def lists():
    return make_lists(40, documents=8, features=4, random_state=5)


class Column:
    """Scores by one feature alone."""

    def __init__(self, feature):
        self.feature = feature

    def predict(self, X):
        return np.asarray(X)[:, self.feature]


def plain_losses(model, queries, measure, repeats, seed):
    """The definition: a new matrix for every shuffle of every feature, scored from scratch."""
    random = np.random.default_rng(seed)
    owner = np.repeat(np.arange(len(queries)), queries.sizes)
    orders = [np.lexsort((random.random(len(owner)), owner)) for _ in range(repeats)]
    before = evaluate(queries, model.predict(queries.X), [measure]).values[0]
    found = np.zeros((queries.n_features, len(queries)))
    for feature in range(queries.n_features):
        for order in orders:
            X = queries.X.copy()
            X[queries.rows, feature] = X[queries.rows[order], feature]
            found[feature] += (before - evaluate(queries, model.predict(X), [measure]).values[0]) / repeats
    return found


@pytest.mark.parametrize("model", [RidgeRanker(), AdaRank(), RankBoost(rounds=5)], ids=lambda model: model.name)
@pytest.mark.parametrize("measure", ["nDCG@5", "AP"])
def test_it_is_what_plain_rescoring_loses(lists, model, measure):
    fitted = model.fit(lists[:25])
    for queries in (lists[25:], scattered(lists[25:])):
        found = losses_by_query(fitted, queries, measure, repeats=3, random_state=4)
        np.testing.assert_array_equal(found, plain_losses(fitted, queries, measure, 3, 4))


def scattered(queries):
    """The same lists with their rows in disorder."""
    rows = np.random.default_rng(0).permutation(queries.n_documents)
    qid = np.asarray(queries.names())[queries.query_of_row]
    return Queries.from_arrays(queries.X[rows], queries.y[rows], qid=qid[rows])


def test_objects_that_learn_from_arrays_take_part(lists):
    model = LinearRegression().fit(lists.X, lists.y)
    np.testing.assert_array_equal(
        losses_by_query(model, lists, "AP", repeats=2), plain_losses(model, lists, "AP", 2, 0)
    )


@given(st.integers(0, 3), st.integers(0, 2**32 - 1))
@tried(max_examples=20)
def test_a_feature_that_is_not_used_is_worth_exactly_nothing(feature, seed):
    lists = make_lists(12, documents=6, features=4, random_state=seed)
    found = permutation_importance(Column(feature), lists, repeats=2, random_state=seed)
    others = found["feature"] != lists.feature_names[feature]
    assert others.sum() == 3
    for name in ("loss", "low", "high"):
        assert (found[name][others] == 0).all()


def test_the_only_signal_is_worth_the_measure_less_that_of_chance():
    lists = make_lists(30, documents=6, features=3, random_state=8)
    for measure in ("nDCG@3", "AP", "P@2"):
        (loss,) = permutation_importance(Column(1), lists, measure, repeats=400)["loss"][:1]
        known = evaluate(lists, lists.X[:, 1], [measure]).mean[measure]
        chance = evaluate(lists, np.zeros(lists.n_documents), [measure]).mean[measure]  # equal scores: every order
        assert loss == pytest.approx(known - chance, abs=0.01)


def test_a_feature_that_is_constant_within_queries_is_worth_nothing(lists):
    X = np.column_stack([lists.X[:, 0], lists.query_of_row])
    queries = Queries.from_arrays(X, lists.y, group=lists.sizes)
    found = losses_by_query(RidgeRanker().fit(queries), queries, "AP")
    assert (found[1][np.isfinite(found[1])] == 0).all()


def test_queries_that_the_measure_skips_and_lists_of_one_document_are_harmless():
    queries = Queries.from_arrays(np.arange(10.0).reshape(5, 2), [0, 0, 1, 0, 1], group=[2, 1, 2])
    found = losses_by_query(Column(0), queries, "AP")
    assert np.isnan(found[:, 0]).all()
    assert (found[:, 1] == 0).all()
    table = permutation_importance(Column(0), queries, "AP")
    assert np.isfinite(table["loss"]).all()


def test_weights_of_queries_count(lists):
    weight = np.zeros(len(lists))
    weight[3] = 2.0
    found = permutation_importance(Column(0), lists.with_weight(weight), "AP", repeats=2)
    assert found["loss"].max() == found.per_query[0, 3]


def test_seeds_repeat_and_threads_do_not_matter(lists):
    model = RidgeRanker().fit(lists[:25])
    one, two, three = (permutation_importance(model, lists[25:], random_state=3, n_jobs=jobs) for jobs in (1, 1, 2))
    assert one == two == three
    assert not np.array_equal(one["loss"], permutation_importance(model, lists[25:], random_state=4)["loss"])


def test_lists_are_left_as_they_were_and_the_largest_loss_comes_first(lists):
    before = lists.X.copy()
    found = permutation_importance(RidgeRanker().fit(lists), lists)
    np.testing.assert_array_equal(lists.X, before)
    assert (np.diff(found["loss"]) <= 0).all()
    assert (found["low"] <= found["loss"]).all()
    assert (found["loss"] <= found["high"]).all()
    assert found.plot().axes[0].get_title(loc="left") == found.title


def test_weights_follow_the_names_of_features(lists):
    model = RidgeRanker().fit(lists)
    turned = lists.select_features(lists.feature_names[::-1])
    np.testing.assert_array_equal(weights_of(model, turned), model.coef_[::-1])
    assert weights_of(RankBoost(rounds=2).fit(lists), lists) is None
    one = permutation_importance(model, lists)
    other = permutation_importance(model, turned)
    np.testing.assert_array_equal(one.per_query, other.per_query[::-1])


def test_no_shuffle_at_all_is_refused(lists):
    with pytest.raises(RankwiseError, match="Got 0"):
        permutation_importance(Column(0), lists, repeats=0)
