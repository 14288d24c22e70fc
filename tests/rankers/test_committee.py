"""A committee adds the scores of its members, each divided by its deviation; members come from anywhere."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge

import rankwise as rw
from rankwise.errors import DataError, RankwiseError
from rankwise.rankers.committee import within_query_deviation


def lists(count=30, seed=0, names=None):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 9, count)
    X = rng.normal(size=(sizes.sum(), 4))
    y = np.clip(np.rint(X @ [1, 0.5, -0.5, 0] + X[:, 0] * X[:, 3] + rng.normal(size=len(X))), 0, 3)
    return rw.Queries.from_arrays(X, y, group=sizes, feature_names=names)


TRAIN, TEST = lists(), lists(seed=1)


def deviation_by_hand(queries, scores):
    squares = [((scores[rows] - scores[rows].mean()) ** 2).sum() for rows in map(queries.rows_of, range(len(queries)))]
    return np.sqrt(sum(squares) / queries.n_documents)


def test_fitted_members_are_used_as_they_are_and_scaled_on_the_given_queries():
    members = [rw.RidgeRanker().fit(TRAIN), rw.RankBoost(rounds=5).fit(TRAIN)]
    model = rw.Committee(members, weights=[3, 1]).fit(TEST)
    assert model.members_ == members
    scores = [member.predict(TEST) for member in members]
    deviations = [deviation_by_hand(TEST, own) for own in scores]
    np.testing.assert_allclose(model.deviations_, deviations)
    np.testing.assert_allclose(
        model.predict(TEST), 0.75 * scores[0] / deviations[0] + 0.25 * scores[1] / deviations[1], atol=1e-12
    )


def test_deviations_of_members_that_it_fits_are_those_of_out_of_fold_scores():
    model = rw.Committee([rw.RankBoost(rounds=40), rw.RidgeRanker()], folds=3).fit(TRAIN)
    order = np.random.default_rng(0).permutation(len(TRAIN))
    scores = np.zeros(TRAIN.n_documents)
    for part in np.array_split(order, 3):
        rest = np.setdiff1d(np.arange(len(TRAIN)), part)
        rows = np.isin(TRAIN.query_of_row, part)
        scores[rows] = rw.RankBoost(rounds=40).fit(TRAIN[rest]).predict(TRAIN)[rows]
    np.testing.assert_allclose(model.deviations_[0], deviation_by_hand(TRAIN, scores))
    inflated = deviation_by_hand(TRAIN, model.members_[0].predict(TRAIN))
    assert model.deviations_[0] != pytest.approx(inflated)
    np.testing.assert_array_equal(model.members_[0].predict(TEST), rw.RankBoost(rounds=40).fit(TRAIN).predict(TEST))


def test_a_validation_set_selects_in_members_and_gives_the_deviations():
    model = rw.Committee([rw.RidgeRanker(), rw.AdaRank(rounds=3)]).fit(TRAIN, validation=TEST)
    ridge = rw.RidgeRanker().fit(TRAIN, validation=TEST)
    np.testing.assert_array_equal(model.members_[0].coef_, ridge.coef_)
    assert model.deviations_[0] == pytest.approx(deviation_by_hand(TEST, ridge.predict(TEST)))
    with pytest.raises(DataError, match="omit the validation set"):
        rw.Committee([rw.SLAMPerceptron()]).fit(TRAIN, validation=TEST)


def test_linear_members_collapse_into_one_linear_model(tmp_path):
    members = [rw.RidgeRanker().fit(TRAIN), rw.LinearModel.of([1.0, 0.0, 2.0, -1.0], intercept=5.0)]
    model = rw.Committee(members).fit(TRAIN)
    linear = model._scoring_model()
    expected = sum(factor * member.coef_ for factor, member in zip(model.factors_, members, strict=True))
    np.testing.assert_allclose(linear.coef_, expected)
    assert linear.intercept_ == pytest.approx(5.0 * model.factors_[1])
    np.testing.assert_array_equal(model.predict(TEST), linear.predict(TEST))
    found = rw.export(model, "ranklib", sample=TEST)
    assert found.parity is not None
    np.testing.assert_array_equal(rw.Scorer(model).scores(TEST.X), model.predict(TEST))


def test_a_committee_of_trees_and_weights_scores_in_the_bits_of_predict():
    model = rw.Committee(folds=2).fit(TRAIN)
    np.testing.assert_array_equal(rw.Scorer(model).scores(TEST.X), model.predict(TEST))
    np.testing.assert_allclose(model.ensemble_.predict(TEST.X), model.predict(TEST), atol=1e-12)  # steps are stumps
    assert rw.export(model, "python", sample=TEST).parity is not None
    foreign = rw.Committee([rw.RidgeRanker(), Ridge()], folds=2).fit(TRAIN)
    assert not hasattr(foreign, "ensemble_")
    with pytest.raises(RankwiseError, match="Committee cannot be exported"):
        rw.export(foreign, "ranklib")


def test_weights_and_boosted_trees_are_exported_as_one_sum_of_trees():
    pytest.importorskip("lightgbm")
    trees = rw.BoostedRanker(trees=8, patience=None, seeds=2, depth=3, n_jobs=1)
    model = rw.Committee([rw.RidgeRanker(), trees, rw.LinearModel.of(np.ones(4), intercept=2.0)], folds=2).fit(TRAIN)
    assert model.ensemble_.n_trees == 16
    np.testing.assert_allclose(model.ensemble_.predict(TEST.X), model.predict(TEST), atol=1e-12)
    found = rw.export(model, "python", sample=TEST)
    assert found.parity is not None


def test_contributions_add_up_to_the_score_if_every_member_has_them():
    model = rw.Committee(("RidgeRanker", "RankBoost"), folds=2).fit(TRAIN)
    parts, constant = model._contributions(TEST.X)
    np.testing.assert_allclose(parts.sum(axis=1) + constant, model.predict(TEST), atol=1e-9)
    foreign = rw.Committee([rw.RidgeRanker(), Ridge()], folds=2).fit(TRAIN)
    assert foreign._contributions(TEST.X) is None


def test_a_member_with_one_score_for_all_counts_for_nothing():
    ridge = rw.RidgeRanker().fit(TRAIN)
    model = rw.Committee([ridge, rw.LinearModel.of(np.zeros(4), intercept=0.1)]).fit(TEST)
    assert model.deviations_[1] == 0
    assert model.factors_[1] == 0
    assert model.score(TEST) == ridge.score(TEST)


def test_files_hold_the_members_and_the_members_of_members(tmp_path):
    inner = rw.Committee([rw.RidgeRanker(alpha=1.0), rw.FRank(rounds=3)], folds=2)
    model = rw.Committee([inner, rw.RankBoost(rounds=4)], folds=2).fit(TRAIN)
    model.save(tmp_path / "model.rankwise")
    loaded = rw.load(tmp_path / "model.rankwise")
    assert repr(loaded) == repr(model)
    np.testing.assert_array_equal(loaded.predict(TEST), model.predict(TEST))
    np.testing.assert_array_equal(
        loaded.members_[0].members_[1].predict(TEST), model.members_[0].members_[1].predict(TEST)
    )
    assert loaded.members[0].members[0].alpha == 1.0
    assert model.certificate(None, TEST).to_json() == loaded.certificate(None, TEST).to_json()


def test_queries_that_fitted_members_have_seen_are_seen():
    members = [rw.RidgeRanker().fit(TRAIN), rw.RankBoost(rounds=3).fit(TRAIN)]
    certificate = rw.Committee(members).fit(TEST).certificate(None, TRAIN)
    assert not certificate.rows
    assert any("training" in note for note in certificate.notes)


def test_a_clone_forgets_what_its_members_learned():
    model = rw.Committee([rw.RidgeRanker().fit(TRAIN)])
    again = clone(model).fit(TEST)
    np.testing.assert_array_equal(again.members_[0].coef_, rw.RidgeRanker().fit(TEST).coef_)


# ------------------------------------------------------------------------------------------- members from elsewhere


def boosters():
    lightgbm, xgboost, catboost = map(pytest.importorskip, ("lightgbm", "xgboost", "catboost"))
    return [
        lightgbm.LGBMRanker(n_estimators=3, min_child_samples=2, verbosity=-1, n_jobs=1),
        xgboost.XGBRanker(n_estimators=3, n_jobs=1),
        catboost.CatBoostRanker(iterations=3, verbose=False, allow_writing_files=False, thread_count=1),
    ]


def test_estimators_of_other_packages_get_the_grouping_that_they_take():
    shuffled = rw.Queries.from_arrays(
        TRAIN.X[::-1].copy(), TRAIN.y[::-1].copy(), qid=TRAIN.query_of_row[::-1].copy()
    )  # rows of a query stand together, queries in reverse
    model = rw.Committee([*boosters(), Ridge()], folds=2).fit(shuffled)
    X, y = TRAIN.X[::-1], TRAIN.y[::-1]
    alone = boosters()
    sizes, numbers = shuffled.sizes, np.repeat(np.arange(len(shuffled)), shuffled.sizes)
    own = [
        alone[0].fit(X, y, group=sizes),
        alone[1].fit(X, y, qid=numbers),
        alone[2].fit(X, y, group_id=numbers),
        Ridge().fit(X, y),
    ]
    for member, expected in zip(model.members_, own, strict=True):
        np.testing.assert_allclose(member.predict(TEST.X), expected.predict(TEST.X), rtol=1e-6)
    by_hand = sum(
        factor * np.asarray(one.predict(TEST.X), dtype=float) for factor, one in zip(model.factors_, own, strict=True)
    )
    np.testing.assert_allclose(model.predict(TEST), by_hand, rtol=1e-6, atol=1e-9)


def test_fitted_models_of_other_packages_and_their_boosters_are_used_as_they_are():
    estimators = rw.Committee(boosters(), folds=2).fit(TRAIN).members_
    lightgbm, xgboost, catboost = estimators
    fitted = rw.Committee([lightgbm.booster_, xgboost.get_booster(), catboost]).fit(TEST)
    assert fitted.members_[2] is catboost
    expected = [np.asarray(one.predict(TEST.X), dtype=float) for one in estimators]
    scaled = [own / deviation_by_hand(TEST, own) / 3 for own in expected]
    np.testing.assert_allclose(fitted.predict(TEST), sum(scaled), rtol=1e-5, atol=1e-6)


def test_members_of_other_packages_are_not_saved(tmp_path):
    model = rw.Committee([rw.RidgeRanker(), Ridge()], folds=2).fit(TRAIN)
    with pytest.raises(RankwiseError, match="cannot be saved with its member Ridge"):
        model.save(tmp_path / "model.rankwise")
    assert list(tmp_path.iterdir()) == []


class Odd:
    def __init__(self, found):
        self.found = found

    def predict(self, X):
        return self.found(len(X))


@pytest.mark.parametrize("found", [lambda n: np.zeros(n + 1), lambda n: np.full(n, np.nan), lambda n: ["a"] * n])
def test_scores_that_are_none_are_refused(found):
    with pytest.raises(DataError, match=r"Odd.predict must return one finite score per row"):
        rw.Committee([Odd(found)]).fit(TRAIN)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"members": []}, "'members' parameter of"),
        ({"members": "RidgeRanker"}, "'members' parameter of"),
        ({"members": None}, "'members' parameter of"),
        ({"members": ["scores.txt"]}, "the name of a member must be one of AdaRank, AutoRanker, BoostedRanker,"),
        ({"members": [np.zeros(5)]}, "a member must be a ranker, its name, or an object with predict, got"),
        ({"members": [rw.RidgeRanker]}, "object with predict"),
        ({"members": [rw.HybridRanker()]}, "the score of a member must depend on the document alone, but HybridRanker"),
        ({"weights": [1]}, "'weights' parameter of"),
        ({"weights": [1, -1]}, "'weights' parameter of"),
        ({"weights": [0, 0]}, "'weights' parameter of"),
        ({"weights": [1, np.inf]}, "'weights' parameter of"),
        ({"weights": "equal"}, "'weights' parameter of"),
        ({"folds": 1}, "'folds' parameter of"),
    ],
)
def test_what_is_no_committee_is_refused(given, sentence):
    with pytest.raises(RankwiseError, match=sentence):
        rw.Committee(**given).fit(TRAIN)


def test_members_on_other_features_are_refused():
    narrow = rw.Queries.from_arrays(TRAIN.X[:, :2], TRAIN.y, group=TRAIN.sizes)
    with pytest.raises(DataError, match="RidgeRanker was fitted on 2"):
        rw.Committee([rw.RidgeRanker().fit(narrow)]).fit(TRAIN)
    named = lists(names=("a", "b", "c", "d"))
    other = lists(names=("b", "a", "c", "d"))
    with pytest.raises(DataError, match="differ in name or order"):
        rw.Committee([rw.RidgeRanker().fit(named)]).fit(other)


# ------------------------------------------------------------------------------------------- deviations


def test_the_deviation_weights_queries_and_knows_no_scale():
    queries = TRAIN.with_weight(np.arange(len(TRAIN)) % 3)
    scores = np.random.default_rng(5).normal(size=TRAIN.n_documents)
    weight = queries.query_weight[queries.query_of_row]
    own = np.array([scores[TRAIN.rows_of(q)].mean() for q in range(len(TRAIN))])[queries.query_of_row]
    expected = np.sqrt((weight * (scores - own) ** 2).sum() / weight.sum())
    assert within_query_deviation(queries, scores) == pytest.approx(expected)
    assert within_query_deviation(queries, 1e200 * scores) == pytest.approx(1e200 * expected)
    assert within_query_deviation(queries, np.full(TRAIN.n_documents, 0.1)) == 0
