"""RidgeRanker: against scikit-learn and least squares on all rows, choices of alpha against plain loops."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

import rankwise as rw
from rankwise._errors import RankwiseError
from rankwise.data.queries import Queries
from rankwise.rankers.linear.ridge import ALPHAS, RidgeRanker


def lists(seed=0, count=20, features=4, weighted=False, spread=1.0):
    """Judged lists with a linear signal; ``spread`` stretches feature j by spread^j."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, count)
    X = rng.normal(size=(sizes.sum(), features))
    y = np.clip(np.rint(X @ np.linspace(1, -1, features) + rng.normal(size=len(X))), 0, 3)
    weight = rng.uniform(0.1, 2, count) if weighted else None
    return Queries.from_arrays(2 * X * spread ** np.arange(features), y, group=sizes, weight=weight)


def sample_weights(queries, balanced):
    weight = np.ones(queries.n_documents) if queries.weight is None else queries.weight[queries.query_of_row]
    if balanced:
        relevant, half = queries.y > 0, weight.sum() / 2
        weight = weight * np.where(relevant, half / weight[relevant].sum(), half / weight[~relevant].sum())
    return weight


def reference(queries, alpha, balanced=True, target="gains", scaled=True):
    """scikit-learn on all rows, with features of variance 1, and weights for raw ones."""
    wanted = 2.0**queries.y - 1 if target == "gains" else queries.y
    scale = StandardScaler().fit(queries.X).scale_ if scaled else np.ones(queries.n_features)
    model = Ridge(alpha=alpha, solver="cholesky")
    return model.fit(queries.X / scale, wanted, sample_weight=sample_weights(queries, balanced)).coef_ / scale


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("target", ["gains", "labels"])
@pytest.mark.parametrize("alpha", [0.01, 10.0])
def test_the_weights_are_those_of_scikit_learn(balanced, weighted, target, alpha):
    queries = lists(weighted=weighted)
    model = RidgeRanker(alpha=alpha, balanced=balanced, target=target).fit(queries)
    np.testing.assert_allclose(model.coef_, reference(queries, alpha, balanced, target), rtol=1e-9)
    raw = RidgeRanker(alpha=alpha, balanced=balanced, target=target, scale="none").fit(queries)
    np.testing.assert_allclose(raw.coef_, reference(queries, alpha, balanced, target, scaled=False), rtol=1e-9)


def test_without_a_strength_it_is_least_squares():
    queries = lists(1)
    model = RidgeRanker(alpha=0.0, balanced=False).fit(queries)
    with_one = np.column_stack([queries.X, np.ones(queries.n_documents)])
    expected = np.linalg.lstsq(with_one, 2.0**queries.y - 1, rcond=None)[0]
    np.testing.assert_allclose(model.coef_, expected[:-1], rtol=1e-9)


def test_balance_gives_relevant_and_other_documents_the_same_total_weight():
    """Repeating the relevant documents until they are as many as the others is the same as balancing them."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(12, 2))
    y = np.array([1.0] * 3 + [0.0] * 9)
    repeated = np.concatenate([np.repeat([0, 1, 2], 3), np.arange(3, 12)])
    balanced = RidgeRanker(alpha=0.0, scale="none").fit(X, y, group=[12])
    plain = RidgeRanker(alpha=0.0, scale="none", balanced=False).fit(X[repeated], y[repeated], group=[18])
    np.testing.assert_allclose(balanced.coef_, plain.coef_, rtol=1e-9)


# ------------------------------------------------------------------------------------------- the limits of balance


def graded(zeros, seed=20, documents=400, highest=4.0):
    """One list of grades from 1 on, but for so many documents without relevance."""
    rng = np.random.default_rng(seed)
    y = rng.integers(1, 5, documents).astype(float)
    y[:zeros], y[-1] = 0.0, highest
    return Queries.from_arrays(rng.normal(size=(documents, 3)) + y[:, None] / 5, y, group=[documents])


def regressed(queries, times):
    """scikit-learn, every document without relevance counting so often."""
    weights = np.where(queries.y == 0, times, 1.0)
    weights[queries.y > 0] *= (len(weights) - weights[queries.y == 0].sum()) / (queries.y > 0).sum()
    model = Ridge(alpha=1.0, solver="cholesky").fit(queries.X, 2.0**queries.y - 1, sample_weight=weights)
    return model.coef_


@pytest.mark.parametrize(("zeros", "times"), [(200, 1.0), (40, 5.0), (20, 10.0), (19, 10.0), (2, 10.0), (1, 10.0)])
def test_d9_few_documents_without_relevance_count_at_most_ten_times(zeros, times):
    queries = graded(zeros)
    model = RidgeRanker(alpha=1.0, scale="none").fit(queries)
    np.testing.assert_allclose(model.coef_, regressed(queries, times), rtol=1e-9)


@pytest.mark.parametrize(("highest", "times"), [(30.0, 10.0), (31.0, 1.0), (3.5, 1.0)])
def test_d9_labels_are_grades_where_they_are_whole_numbers_up_to_thirty(highest, times):
    queries = graded(5, highest=highest)
    model = RidgeRanker(alpha=1.0, scale="none").fit(queries)
    np.testing.assert_allclose(model.coef_, regressed(queries, times), rtol=1e-9)


def continuous(seed, lists=100, features=2):
    """Labels that are not grades: a weak signal in noise, shifted so that the smallest of all labels is 0."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(10 * lists, features))
    y = X.sum(axis=1) / 3 + rng.normal(size=len(X))
    y -= y.min()
    return X, y


@pytest.mark.parametrize("target", ["gains", "labels"])
@pytest.mark.parametrize("seed", range(5))
def test_d9_continuous_labels_are_ranked_clearly_better_than_by_a_random_order(target, seed):
    """The one document of label 0 looks like a good one; once it counted as much as all others together."""
    X, y = continuous(seed)
    X[np.argmin(y)] = 3.0
    model = RidgeRanker("Pairs", target=target).fit(X, y, group=[10] * 100)
    others, labels = continuous(100 + seed)
    rng = np.random.default_rng(seed)
    held = Queries.from_arrays(others, labels, group=[10] * 100)
    by_chance = rw.evaluate(held, rng.normal(size=len(labels)), ["Pairs"]).mean["Pairs"]
    assert abs(by_chance - 0.5) < 0.03
    assert model.score(held) > 0.58


def test_d9_continuous_labels_with_few_zeros_are_not_balanced_and_with_many_they_are():
    X, y = continuous(0)
    plain = RidgeRanker(alpha=1.0, balanced=False).fit(X, y, group=[10] * 100)
    np.testing.assert_array_equal(RidgeRanker(alpha=1.0).fit(X, y, group=[10] * 100).coef_, plain.coef_)
    queries = Queries.from_arrays(X, np.maximum(0.0, y - np.quantile(y, 0.9)), group=[10] * 100)
    np.testing.assert_allclose(RidgeRanker(alpha=1.0).fit(queries).coef_, reference(queries, 1.0), rtol=1e-9)


def test_r10_more_features_than_documents_need_no_matrix_of_features_by_features(monkeypatch):
    sizes = []
    whole = np.linalg.eigh

    def seen(matrix):
        sizes.append(len(matrix))
        return whole(matrix)

    monkeypatch.setattr(np.linalg, "eigh", seen)
    queries = lists(21, count=6, features=500)
    model = RidgeRanker(alpha=(0.1, 10.0), folds=2).fit(queries)
    assert sizes
    assert max(sizes) == queries.n_documents < 500
    np.testing.assert_allclose(model.coef_, reference(queries, model.alpha_), rtol=1e-7, atol=1e-12)


# ------------------------------------------------------------------------------------------- the choice of alpha


@pytest.mark.parametrize("weighted", [False, True])
def test_alpha_is_the_best_of_a_plain_loop_over_the_validation_set(weighted):
    train, other = lists(3, weighted=weighted), lists(4, weighted=weighted)
    alphas = (1e-3, 1.0, 30.0, 1e3, 1e5)
    model = RidgeRanker("nDCG@3", alpha=alphas).fit(train, validation=other)
    judged = [RidgeRanker("nDCG@3", alpha=alpha).fit(train).score(other) for alpha in alphas]
    np.testing.assert_allclose(model.path_["nDCG@3"], judged, rtol=1e-12)
    assert model.alpha_ == alphas[int(np.argmax(judged))]
    np.testing.assert_array_equal(model.path_["alpha"], alphas)
    np.testing.assert_array_equal(model.coef_, RidgeRanker("nDCG@3", alpha=model.alpha_).fit(train).coef_)


def test_alpha_is_the_best_of_a_plain_loop_over_folds():
    queries, alphas = lists(5), (1e-2, 10.0, 1e4)
    model = RidgeRanker("AP", alpha=alphas, folds=3, scale="none", random_state=7).fit(queries)
    parts = np.array_split(np.random.default_rng(7).permutation(20), 3)
    judged = []
    for alpha in alphas:
        one = RidgeRanker("AP", alpha=alpha, scale="none")
        judged.append(np.mean([one.fit(queries[np.setdiff1d(range(20), part)]).score(queries[part]) for part in parts]))
    np.testing.assert_allclose(model.path_["AP"], judged, rtol=1e-12)
    assert model.alpha_ == alphas[int(np.argmax(judged))]
    np.testing.assert_allclose(model.coef_, RidgeRanker("AP", alpha=model.alpha_, scale="none").fit(queries).coef_)


def test_fewer_queries_than_folds_are_left_out_one_by_one_and_a_single_one_takes_the_strongest():
    queries = lists(6)
    three = RidgeRanker(alpha=(0.1, 100.0), folds=5, random_state=1).fit(queries[:3])
    assert three.path_ == RidgeRanker(alpha=(0.1, 100.0), folds=3, random_state=1).fit(queries[:3]).path_
    one = RidgeRanker(alpha=(0.1, 100.0, 10.0)).fit(queries[:1])
    assert one.alpha_ == 100.0
    assert np.isnan(one.path_["nDCG@10"]).all()


def test_the_usual_grid_is_tried_where_none_is_given():
    model = RidgeRanker().fit(lists(7))
    np.testing.assert_array_equal(model.path_["alpha"], ALPHAS)
    assert model.alpha_ in ALPHAS


def test_a_single_alpha_is_judged_on_a_validation_set_but_needs_none():
    train, other = lists(8), lists(9)
    assert np.isnan(RidgeRanker(alpha=1.0).fit(train).path_["nDCG@10"]).all()
    model = RidgeRanker(alpha=1.0).fit(train, validation=other)
    assert model.path_["nDCG@10"][0] == model.score(other)


# ------------------------------------------------------------------------------------------- awkward features


@pytest.mark.parametrize("spread", [1e-2, 1e3])
def test_features_of_wildly_different_scales_rank_as_if_scaled_by_hand(spread):
    """From 1e-3 to 1e8 in one set, far from 0 as well: raw weights that rank as those on standardised features do."""
    queries = lists(10, spread=spread)
    shifted = Queries.from_arrays(queries.X + 3 * queries.X.std(axis=0), queries.y, group=queries.sizes)
    by_hand = StandardScaler().fit(shifted.X)
    standard = Queries.from_arrays(by_hand.transform(shifted.X), queries.y, group=queries.sizes)
    model = RidgeRanker(alpha=1.0).fit(shifted)
    same = RidgeRanker(alpha=1.0, scale="none").fit(standard)
    np.testing.assert_allclose(model.coef_ * by_hand.scale_, same.coef_, rtol=1e-9)
    one, other = (table["docid"] for table in (model.rank(shifted), same.rank(standard)))
    np.testing.assert_array_equal(one, other)


def test_repeated_and_constant_features_are_harmless():
    queries = lists(11)
    X = np.column_stack([queries.X, queries.X[:, 0], np.full(queries.n_documents, 1e6), queries.X @ [1, 2, 3, 4]])
    model = RidgeRanker(alpha=1e-9, balanced=False).fit(X, queries.y, group=queries.sizes)
    plain = RidgeRanker(alpha=1e-9, balanced=False).fit(queries)
    assert model.coef_[5] == 0
    assert model.coef_[0] == pytest.approx(model.coef_[4], rel=1e-6)
    scores = model.predict(X)
    expected = plain.predict(queries)
    np.testing.assert_allclose(scores - scores.mean(), expected - expected.mean(), atol=1e-6)


def test_a_saved_model_has_the_same_bits_and_path(tmp_path):
    model = RidgeRanker("AP", alpha=(0.5, 2.0)).fit(lists(12), validation=lists(13))
    model.save(tmp_path / "ridge.rankwise")
    copy = rw.load(tmp_path / "ridge.rankwise")
    np.testing.assert_array_equal(copy.coef_, model.coef_)
    assert copy.path_ == model.path_
    assert copy.alpha_ == model.alpha_


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"alpha": -1.0}, "alpha is one number or several, finite and 0 or more: found -1"),
        ({"alpha": []}, "alpha is one number or several"),
        ({"alpha": [1.0, np.nan]}, "alpha is one number or several"),
        ({"alpha": "strong"}, "alpha is one number or several"),
        ({"alpha": [[1.0, 2.0]]}, "alpha is one number or several"),
        ({"target": "ranks"}, "target is 'gains' or 'labels': found 'ranks'"),
        ({"scale": "log"}, "scale is 'auto' or 'none': found 'log'"),
        ({"folds": 1}, "model selection takes 2 or more folds: found folds=1"),
    ],
)
def test_what_it_cannot_mean_is_refused_in_a_sentence(wrong, sentence):
    with pytest.raises(RankwiseError, match=sentence) as error:
        RidgeRanker(**wrong).fit(lists())
    assert "\n" not in str(error.value)
