"""RidgeRanker: against scikit-learn on centered rows, choices of alpha against plain loops, uses of validation."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

import rankwise as rw
from rankwise.errors import RankwiseError
from rankwise.queries.fingerprints import fingerprints
from rankwise.queries.queries import Queries
from rankwise.rankers import _model_selection
from rankwise.rankers.linear.ridge import RELATIVE_ALPHAS, RidgeRanker


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


def within(queries, values, weight):
    """Values minus the weighted mean of their query."""
    owner, count = queries.query_of_row, len(queries)
    total = np.bincount(owner, weight, count)
    columns = [np.bincount(owner, weight * column, count) / total for column in np.atleast_2d(values.T)]
    return values - (np.array(columns).T[owner] if values.ndim == 2 else columns[0][owner])


def reference(queries, alpha, balanced=True, target="gains", scaled=True):
    """scikit-learn on rows that are centered within queries, features of variance 1, and weights for raw ones."""
    wanted = 2.0**queries.y - 1 if target == "gains" else queries.y
    weight = sample_weights(queries, balanced)
    X = within(queries, queries.X, weight)
    scale = np.sqrt(np.average(X**2, axis=0, weights=weight)) if scaled else np.ones(queries.n_features)
    model = Ridge(alpha=alpha, solver="cholesky", fit_intercept=False)
    return model.fit(X / scale, within(queries, wanted, weight), sample_weight=weight).coef_ / scale


def ordinary(queries, alpha, balanced=True, target="gains", scaled=True):
    """scikit-learn on all rows with one intercept."""
    wanted = 2.0**queries.y - 1 if target == "gains" else queries.y
    scale = StandardScaler().fit(queries.X).scale_ if scaled else np.ones(queries.n_features)
    model = Ridge(alpha=alpha, solver="cholesky")
    return model.fit(queries.X / scale, wanted, sample_weight=sample_weights(queries, balanced)).coef_ / scale


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("target", ["gains", "labels"])
@pytest.mark.parametrize("alpha", [0.01, 10.0])
@pytest.mark.parametrize(("intercept", "expected"), [("query", reference), ("global", ordinary)])
def test_the_weights_are_those_of_scikit_learn(balanced, weighted, target, alpha, intercept, expected):
    queries = lists(weighted=weighted)
    given = {"alpha": alpha, "balanced": balanced, "target": target, "intercept": intercept}
    model = RidgeRanker(**given).fit(queries)
    np.testing.assert_allclose(model.coef_, expected(queries, alpha, balanced, target), rtol=1e-9)
    raw = RidgeRanker(**given, scale="none").fit(queries)
    np.testing.assert_allclose(raw.coef_, expected(queries, alpha, balanced, target, scaled=False), rtol=1e-9)


def test_without_a_strength_it_is_least_squares_with_one_intercept_per_query():
    queries = lists(1)
    model = RidgeRanker(alpha=0.0, balanced=False).fit(queries)
    with_ones = np.column_stack([queries.X, np.eye(len(queries))[queries.query_of_row]])
    expected = np.linalg.lstsq(with_ones, 2.0**queries.y - 1, rcond=None)[0]
    np.testing.assert_allclose(model.coef_, expected[:4], rtol=1e-9)


def test_what_differs_between_queries_alone_changes_nothing():
    """A shift of all features and of the labels of a query is one of its intercept."""
    queries = lists(2)
    rng = np.random.default_rng(3)
    owner = queries.query_of_row
    X, y = queries.X + 10 * rng.normal(size=(20, 4))[owner], queries.y + rng.integers(1, 3, 20)[owner]
    given = {"target": "labels", "balanced": False}
    model = RidgeRanker(**given).fit(X, y, group=queries.sizes)
    positive = queries.with_labels(queries.y + 1)
    np.testing.assert_allclose(model.coef_, RidgeRanker(alpha=model.alpha_, **given).fit(positive).coef_, rtol=1e-9)


def test_balance_gives_relevant_and_other_documents_the_same_total_weight():
    """Repeating the relevant documents until they are as many as the others is the same as balancing them."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(12, 2))
    y = np.array([1.0] * 3 + [0.0] * 9)
    repeated = np.concatenate([np.repeat([0, 1, 2], 3), np.arange(3, 12)])
    balanced = RidgeRanker(alpha=0.0).fit(X, y, group=[12])
    plain = RidgeRanker(alpha=0.0, balanced=False).fit(X[repeated], y[repeated], group=[18])
    np.testing.assert_allclose(balanced.coef_, plain.coef_, rtol=1e-9)


@pytest.mark.parametrize("refit", ["all", "train"])
def test_a_query_of_weight_two_is_two_queries_and_a_document_of_weight_two_is_two_documents(refit):
    queries, other = lists(14), lists(15)
    weight = np.ones(20)
    weight[3] = 2
    twice = Queries.from_arrays(
        np.vstack([queries.X, queries[[3]].X]),
        np.append(queries.y, queries[[3]].y),
        group=[*queries.sizes, queries.sizes[3]],
    )
    given = {"alpha": 2.0, "refit": refit}
    one, two = (RidgeRanker(**given).fit(each, validation=other) for each in (queries.with_weight(weight), twice))
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-9)
    rows = np.insert(np.arange(queries.n_documents), 5, 5)
    sizes = queries.sizes.copy()
    sizes[queries.query_of_row[5]] += 1
    documents = np.ones(queries.n_documents)
    documents[5] = 2
    one = RidgeRanker(**given).fit(queries, validation=other, sample_weight=documents)
    two = RidgeRanker(**given).fit(queries.X[rows], queries.y[rows], group=sizes, validation=other)
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-9)


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
    model = RidgeRanker("nDCG@3", alpha=alphas, refit="train").fit(train, validation=other)
    judged = [RidgeRanker("nDCG@3", alpha=alpha).fit(train).score(other) for alpha in alphas]
    np.testing.assert_allclose(model.path_["nDCG@3"], judged, rtol=1e-12)
    assert model.alpha_ == alphas[int(np.argmax(judged))]
    np.testing.assert_array_equal(model.path_["alpha"], alphas)
    np.testing.assert_array_equal(model.coef_, RidgeRanker("nDCG@3", alpha=model.alpha_).fit(train).coef_)


def held_out_means(queries, parts, alphas, measure, **given):
    """For every alpha the mean over held-out queries of a ranker that is fitted on the others, in a plain loop."""
    found = []
    for alpha in alphas:
        values, weights = [], []
        for part in parts:
            others = queries[np.setdiff1d(range(len(queries)), part)]
            one = RidgeRanker(measure, alpha=alpha, balanced=False, scale="none", **given).fit(others)
            held = queries[part]
            values.append(rw.evaluate(held, one.predict(held), [measure]).per_query[measure])
            weights.append(held.query_weight)
        values, weights = np.concatenate(values), np.concatenate(weights)
        known = ~np.isnan(values)
        found.append(np.average(values[known], weights=weights[known]))
    return found


@pytest.mark.parametrize("intercept", ["query", "global"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("features", [4, 300])
def test_alpha_is_the_best_of_a_plain_loop_over_folds(intercept, weighted, features):
    queries, alphas = lists(5, features=features, weighted=weighted), (1e-2, 10.0, 1e4)
    given = {"intercept": intercept}
    options = {"folds": 3, "scale": "none", "balanced": False, "random_state": 7, **given}
    model = RidgeRanker("AP", alpha=alphas, **options).fit(queries)
    parts = np.array_split(np.random.default_rng(7).permutation(20), 3)
    judged = held_out_means(queries, [np.sort(part) for part in parts], alphas, "AP", **given)
    np.testing.assert_allclose(model.path_["AP"], judged, rtol=1e-12)
    assert model.alpha_ == alphas[int(np.argmax(judged))]
    whole = RidgeRanker("AP", alpha=model.alpha_, scale="none", balanced=False, **given).fit(queries)
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-6, atol=1e-12)


def test_a_validation_set_joins_the_folds_and_the_refit():
    train, other = lists(3), lists(4, count=15)
    both = Queries.from_arrays(
        np.vstack([train.X, other.X]), np.append(train.y, other.y), group=[*train.sizes, *other.sizes]
    )
    one = RidgeRanker("nDCG@3").fit(train, validation=other)
    two = RidgeRanker("nDCG@3").fit(both)
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-9)
    np.testing.assert_allclose(one.path_["alpha"], two.path_["alpha"], rtol=1e-9)
    np.testing.assert_allclose(one.path_["nDCG@3"], two.path_["nDCG@3"], rtol=1e-9)
    apart = RidgeRanker("nDCG@3", alpha=one.alpha_, refit="train").fit(train, validation=other)
    np.testing.assert_array_equal(apart.coef_, RidgeRanker(alpha=one.alpha_).fit(train).coef_)
    assert not np.allclose(one.coef_, apart.coef_, rtol=1e-3)


def test_what_was_learned_from_counts_as_training_queries_and_is_no_hold_out():
    train, other, fresh = lists(3), lists(4, count=15), lists(16)
    pooled = RidgeRanker(alpha=1.0).fit(train, validation=other)
    seen = pooled.record_.seen
    assert (seen.training.length, seen.validation.length, seen.record.count) == (35, 0, 35)
    np.testing.assert_array_equal(seen.training.marks[20:], fingerprints(other))
    certificate = pooled.certificate(train, other)
    assert any(
        "the training queries given are not those of the fit, which saw 35" in note for note in certificate.notes
    )
    assert certificate.missing.startswith("all 15 hold-out queries were used in training")
    assert pooled.certificate(holdout=fresh).headline is not None
    kept = RidgeRanker(alpha=1.0, refit="train").fit(train, validation=other)
    seen = kept.record_.seen
    assert (seen.training.length, seen.validation.length, seen.record.count) == (20, 15, 20)


@pytest.mark.parametrize("pooled", [False, True])
def test_of_many_queries_one_part_is_held_out(pooled, monkeypatch):
    monkeypatch.setattr(_model_selection, "MANY", 12)
    queries, alphas = lists(5, count=100), (1e-2, 10.0, 1e4)
    train, other = (queries[:70], queries[70:]) if pooled else (queries, None)
    options = {"scale": "none", "balanced": False, "random_state": 7}
    model = RidgeRanker("AP", alpha=alphas, **options).fit(train, validation=other)
    part = np.sort(np.random.default_rng(7).permutation(100)[:12])
    np.testing.assert_allclose(model.path_["AP"], held_out_means(queries, [part], alphas, "AP"), rtol=1e-12)
    np.testing.assert_allclose(model.coef_, RidgeRanker(alpha=model.alpha_, **options).fit(queries).coef_, rtol=1e-9)


def test_fewer_queries_than_folds_are_left_out_one_by_one_and_a_single_one_takes_the_strongest():
    queries = lists(6)
    three = RidgeRanker(alpha=(0.1, 100.0), folds=5, random_state=1).fit(queries[:3])
    assert three.path_ == RidgeRanker(alpha=(0.1, 100.0), folds=3, random_state=1).fit(queries[:3]).path_
    one = RidgeRanker(alpha=(0.1, 100.0, 10.0)).fit(queries[:1])
    assert one.alpha_ == 100.0
    assert np.isnan(one.path_["nDCG@10"]).all()


def test_the_usual_grid_is_in_units_of_the_mean_square_of_the_features():
    queries = lists(7)
    model = RidgeRanker().fit(queries)
    np.testing.assert_allclose(model.path_["alpha"], queries.n_documents * np.array(RELATIVE_ALPHAS), rtol=1e-9)
    assert model.alpha_ in model.path_["alpha"]
    again = RidgeRanker(alpha=model.alpha_).fit(queries)
    np.testing.assert_allclose(again.coef_, model.coef_, rtol=1e-9)
    larger = RidgeRanker(scale="none").fit(queries.X * 1000, queries.y, group=queries.sizes)
    raw = RidgeRanker(scale="none").fit(queries)
    np.testing.assert_allclose(larger.path_["alpha"], raw.path_["alpha"] * 1e6, rtol=1e-9)
    np.testing.assert_allclose(larger.coef_ * 1000, raw.coef_, rtol=1e-9)


def test_a_single_alpha_is_judged_on_a_validation_set_that_is_kept_for_it():
    train, other = lists(8), lists(9)
    assert np.isnan(RidgeRanker(alpha=1.0).fit(train).path_["nDCG@10"]).all()
    assert np.isnan(RidgeRanker(alpha=1.0).fit(train, validation=other).path_["nDCG@10"]).all()
    model = RidgeRanker(alpha=1.0, refit="train").fit(train, validation=other)
    assert model.path_["nDCG@10"][0] == model.score(other)


# ------------------------------------------------------------------------------------------- awkward features


@pytest.mark.parametrize(
    ("X", "y", "sizes"),
    [
        ([[1.0, 2.0]], [1], [1]),
        ([[1.0, 2.0], [3.0, 4.0]], [1, 0], [1, 1]),
        ([[1.0, 2.0], [3.0, 4.0]], [2, 2], [2]),
        ([[1.0, 2.0], [3.0, 4.0]], [0, 0], [2]),
        ([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]], [1, 0, 0], [2, 1]),
        ([[5.0, 7.0], [5.0, 7.0], [2.0, 2.0]], [1, 0, 0], [2, 1]),
    ],
)
@pytest.mark.parametrize("intercept", ["query", "global"])
@pytest.mark.filterwarnings("ignore")
def test_queries_with_nothing_to_learn_give_finite_weights_and_within_queries_none(X, y, sizes, intercept):
    model = RidgeRanker(intercept=intercept).fit(np.array(X), y, group=sizes)
    assert np.isfinite(model.coef_).all()
    if intercept == "query":
        assert not model.coef_.any()


def test_float32_and_shuffled_rows_give_the_same_weights():
    queries = lists(17)
    exact = Queries.from_arrays(np.float64(np.float32(queries.X)), queries.y, group=queries.sizes)
    model = RidgeRanker().fit(exact)
    np.testing.assert_array_equal(
        RidgeRanker().fit(np.float32(queries.X), queries.y, group=queries.sizes).coef_, model.coef_
    )
    order = np.random.default_rng(0).permutation(exact.n_documents)
    qid = exact.query_of_row[order]
    same = RidgeRanker(alpha=model.alpha_).fit(exact.X[order], exact.y[order], qid=qid)
    np.testing.assert_allclose(same.coef_, model.coef_, rtol=1e-9)


@pytest.mark.parametrize("spread", [1e-2, 1e3])
def test_features_of_wildly_different_scales_rank_as_if_scaled_by_hand(spread):
    """From 1e-3 to 1e8 in one set, far from 0 as well: raw weights that rank as those on standardized features do."""
    queries = lists(10, spread=spread)
    shifted = Queries.from_arrays(queries.X + 3 * queries.X.std(axis=0), queries.y, group=queries.sizes)
    by_hand = StandardScaler().fit(shifted.X)
    standard = Queries.from_arrays(by_hand.transform(shifted.X), queries.y, group=queries.sizes)
    given = {"alpha": 1.0, "intercept": "global"}
    model, same = RidgeRanker(**given).fit(shifted), RidgeRanker(**given, scale="none").fit(standard)
    np.testing.assert_allclose(
        RidgeRanker(alpha=1.0).fit(standard).coef_ / by_hand.scale_, RidgeRanker(alpha=1.0).fit(shifted).coef_
    )
    np.testing.assert_allclose(model.coef_ * by_hand.scale_, same.coef_, rtol=1e-9)
    one, other = (table["docid"] for table in (model.rank(shifted), same.rank(standard)))
    np.testing.assert_array_equal(one, other)


def test_repeated_and_constant_features_are_harmless():
    queries = lists(11)
    X = np.column_stack([queries.X, queries.X[:, 0], np.full(queries.n_documents, 1e6), queries.X @ [1, 2, 3, 4]])
    model = RidgeRanker(alpha=1e-9, balanced=False).fit(X, queries.y, group=queries.sizes)
    plain = RidgeRanker(alpha=1e-9, balanced=False).fit(queries)
    assert model.coef_[5] == 0, "it is constant"
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
        ({"alpha": -1.0}, "'alpha' parameter of"),
        ({"alpha": []}, "'alpha' parameter of"),
        ({"alpha": [1.0, np.nan]}, "'alpha' parameter of"),
        ({"alpha": "strong"}, "'alpha' parameter of"),
        ({"alpha": [[1.0, 2.0]]}, "'alpha' parameter of"),
        ({"target": "ranks"}, "'target' parameter of"),
        ({"scale": "log"}, "'scale' parameter of"),
        ({"intercept": "none"}, "'intercept' parameter of"),
        ({"refit": "both"}, "'refit' parameter of"),
        ({"folds": 1}, "'folds' parameter of"),
    ],
)
def test_what_it_cannot_mean_is_refused_in_a_sentence(wrong, sentence):
    with pytest.raises(RankwiseError, match=sentence) as error:
        RidgeRanker(**wrong).fit(lists())
    assert "\n" not in str(error.value)
