"""A scorer gives the bits of ``predict``, ties in their order, and refuses what ``predict`` refuses."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankwise as rw
from rankwise.errors import DataError, RankwiseError
from rankwise.rankers._base import registered
from rankwise.rankers.scorer import Scorer

LISTS = rw.make_lists(30, documents=(2, 20), features=5, random_state=1)
LINEAR = rw.SLAMPerceptron().fit(LISTS)
STEPS = rw.RankBoost(rounds=8).fit(LISTS)
TREES = rw.BoostedRanker(trees=12, patience=None, start="ridge").fit(LISTS)
STACK = rw.AutoRanker(max_trees=10, folds=2).fit(LISTS)
FITTED = [LINEAR, STEPS, TREES, STACK, rw.FRank(rounds=3).fit(LISTS), rw.RidgeRanker().fit(LISTS)]


@pytest.mark.parametrize("model", FITTED, ids=lambda model: model.name)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@settings(max_examples=25)
@given(seed=st.integers(0, 2**20), rows=st.integers(0, 30), grain=st.sampled_from([0.0, 0.5]))
def test_scores_and_order_are_those_of_predict(model, dtype, seed, rows, grain):
    X = np.random.default_rng(seed).normal(size=(rows, 5)) * 10
    X = (np.round(X / grain) * grain if grain else X).astype(dtype)  # a coarse grain makes ties
    expected = model.predict(X)
    scorer = Scorer(model)
    assert scorer.is_compiled
    np.testing.assert_array_equal(scorer.scores(X), expected)
    np.testing.assert_array_equal(scorer.rank(X), sorted(range(rows), key=lambda row: -expected[row]))


@pytest.mark.parametrize("kind", registered().values(), ids=lambda kind: kind.name)
def test_every_ranker_has_a_scorer(kind):
    model = kind.examples()[0].fit(LISTS)
    one = rw.Queries.from_arrays(LISTS.X, group=[len(LISTS.X)]) if model.scores_by_query else LISTS.X
    np.testing.assert_array_equal(Scorer(model).scores(LISTS.X), model.predict(one))


@pytest.mark.parametrize("model", [LINEAR, STEPS], ids=lambda model: model.name)
def test_arrays_of_any_kind_are_taken(model):
    X, scorer = LISTS.X, Scorer(model)
    for other in (
        np.asfortranarray(X),
        X[::2],
        X[:, ::-1][:, ::-1],
        X.astype(">f8"),
        np.round(X).astype(int),
        X.tolist(),
    ):
        np.testing.assert_array_equal(scorer.scores(other), model.predict(other))
    np.testing.assert_array_equal(scorer.scores(LISTS), model.predict(LISTS))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("column", range(5))
@pytest.mark.parametrize("model", [LINEAR, STEPS], ids=lambda model: model.name)
def test_what_is_not_finite_is_refused_by_row_and_feature(model, value, column):
    X = LISTS.X.copy()
    X[3, column] = value
    with pytest.raises(DataError, match=rf"X is {value} at row 3, feature {column} "):
        Scorer(model).scores(X)


def test_a_weight_of_zero_hides_nothing():
    model = rw.SLAMPerceptron().fit(LISTS)
    model.coef_ = np.zeros(5)
    X = LISTS.X.copy()
    X[0, 0] = np.inf
    with pytest.raises(DataError, match="X is inf at row 0"):
        Scorer(model).scores(X)


@pytest.mark.parametrize("missing", ["zero", "min"])
def test_missing_values_are_filled_as_the_ranker_was_told(missing):
    X = LISTS[5].X.copy()
    X[0, 1] = np.nan
    trees = rw.BoostedRanker(trees=9, patience=None, missing=missing)
    for kind in (rw.SLAMPerceptron(missing=missing), rw.RankBoost(rounds=5, missing=missing), trees):
        model = kind.fit(LISTS)
        one = rw.Queries.from_arrays(X, group=[len(X)], missing=missing)
        np.testing.assert_array_equal(Scorer(model).scores(X), model.predict(one))


def test_trees_send_missing_values_as_predict_does_and_refuse_infinity(monkeypatch):
    X = LISTS[5].X.copy()
    X[0, 1] = np.nan
    model = rw.AutoRanker(members=("trees", "normal"), max_trees=10, folds=2).fit(LISTS)
    np.testing.assert_array_equal(Scorer(model).scores(X), model.predict(X))
    kept = rw.BoostedRanker(trees=9, patience=None, missing="keep").fit(LISTS)
    scorer, expected = Scorer(kept), kept.predict(X)
    monkeypatch.setattr(Scorer, "_carefully", None)  # NaN is no detour
    np.testing.assert_array_equal(scorer.scores(X), expected)
    monkeypatch.undo()
    X[1, 2] = np.inf
    for one in (model, kept):
        with pytest.raises(DataError, match="X is infinite at row 1, feature 2 "):
            Scorer(one).scores(X)


def test_finite_features_that_are_too_large_are_left_to_predict():
    X = np.full((2, 5), 1e200)
    np.testing.assert_array_equal(Scorer(STEPS).scores(X), STEPS.predict(X))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (np.ones((3, 4)), "SLAMPerceptron was fitted on 5 features, got 4"),
        (np.ones(5), "two dimensions"),
        (np.array([["a"] * 5]), "X must hold numbers, got type <U1"),
    ],
)
def test_a_wrong_shape_is_one_sentence(wrong, sentence):
    with pytest.raises(DataError, match=sentence) as refusal:
        Scorer(LINEAR).rank(wrong)
    assert "\n" not in str(refusal.value)


def test_what_is_no_fitted_ranker_is_refused():
    with pytest.raises(RankwiseError, match="not fitted yet"):
        Scorer(rw.SLAMPerceptron())
    with pytest.raises(DataError, match="got str"):
        Scorer("model.rankwise")


def test_files_become_scorers(tmp_path):
    STEPS.save(tmp_path / "m.rankwise")
    LISTS.save(tmp_path / "q.rankwise")
    np.testing.assert_array_equal(Scorer.load(tmp_path / "m.rankwise").scores(LISTS.X), STEPS.predict(LISTS.X))
    with pytest.raises(DataError, match=r"q\.rankwise must be a saved ranker, got queries"):
        Scorer.load(tmp_path / "q.rankwise")


def test_fitting_again_changes_no_scorer():
    model = rw.SLAMPerceptron().fit(LISTS)
    scorer, before = Scorer(model), model.predict(LISTS.X)
    model.fit(LISTS[:3])
    assert (model.predict(LISTS.X) != before).any()
    np.testing.assert_array_equal(scorer.scores(LISTS.X), before)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(scorer)).scores(LISTS.X), before)


def test_threads_share_a_scorer():
    scorer = Scorer(LINEAR)
    lists = [query.X.copy() for query in LISTS] * 20
    expected = [scorer.rank(X) for X in lists]
    with ThreadPoolExecutor(8) as pool:
        for found, known in zip(pool.map(scorer.rank, lists), expected, strict=True):
            np.testing.assert_array_equal(found, known)


@settings(max_examples=25)
@given(seed=st.integers(0, 2**20))
def test_other_weights_give_the_bits_of_the_ranker_that_has_them(seed):
    random = np.random.default_rng(seed)
    X, other = random.normal(size=(7, 5)), rw.LinearModel.of(random.normal(size=5))
    first = Scorer(LINEAR)
    changed = first.with_coef(other.coef_)
    np.testing.assert_array_equal(changed.scores(X), other.predict(X))
    np.testing.assert_array_equal(changed.scores(X[:, ::-1]), other.predict(X[:, ::-1]))  # by predict
    np.testing.assert_array_equal(first.scores(X), LINEAR.predict(X))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(changed)).scores(X), other.predict(X))


def test_weights_that_do_not_fit_are_one_sentence():
    with pytest.raises(DataError, match="one finite weight per feature, 5"):
        Scorer(LINEAR).with_coef([1.0, 2.0])
    with pytest.raises(DataError, match="one finite weight per feature, 5"):
        Scorer(LINEAR).with_coef([1.0, 2.0, 3.0, 4.0, np.nan])
    with pytest.raises(DataError, match="only scorers of linear rankers"):
        Scorer(STEPS).with_coef(np.ones(5))
