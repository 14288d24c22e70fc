"""Made-up lists look like web search: skewed grades, unscaled features, and no single feature that ranks well."""

import numpy as np
import pytest

from rankwise.errors import RankwiseError
from rankwise.queries.queries import Queries
from rankwise.synthetic.hybrid import make_hybrid
from rankwise.synthetic.lists import make_lists


@pytest.fixture(scope="module")
def web():
    return make_lists(400)


def dcg_at_10(labels, order):
    gains = (2.0**labels - 1)[order][:10]
    return float((gains / np.log2(np.arange(2, len(gains) + 2))).sum())


def ndcg(queries, scores):
    """Mean nDCG@10 over the queries that have a relevant document."""
    found = []
    for query in range(len(queries)):
        rows = queries.rows_of(query)
        labels = queries.y[rows]
        if labels.max() > 0:
            found.append(dcg_at_10(labels, np.argsort(-scores[rows])) / dcg_at_10(labels, np.argsort(-labels)))
    return np.mean(found)


def centered(queries, columns):
    """Columns with every query's mean taken away."""
    owner = queries.query_of_row
    totals = np.stack([np.bincount(owner, column) for column in columns.T], axis=1)
    return columns - (totals / queries.sizes[:, None])[owner]


def linear_ranker(queries, transform):
    """Least squares on standardized, centered features: a plain but honest linear ranker."""
    X = transform(queries.X)
    middle, spread = X.mean(axis=0), X.std(axis=0)
    target = centered(queries, queries.y[:, None])[:, 0]
    weights = np.linalg.lstsq(centered(queries, (X - middle) / spread), target, rcond=None)[0]
    return lambda other: ((transform(other.X) - middle) / spread) @ weights


def squeezed(X):
    return np.sign(X) * np.log1p(np.abs(X))


def test_a_linear_combination_ranks_clearly_better_than_any_feature(web):
    test = make_lists(400, random_state=1)
    single = max(ndcg(test, sign * column) for column in test.X.T for sign in (-1, 1))
    chance = ndcg(test, np.random.default_rng(0).random(test.n_documents))
    plain, logs = (ndcg(test, linear_ranker(web, how)(test)) for how in (np.asarray, squeezed))
    assert chance + 0.15 < single < plain - 0.1
    assert plain + 0.02 < logs < 0.95


def test_lists_are_of_all_lengths_and_grades_are_skewed(web):
    assert web.sizes.min() == 1
    assert 150 < web.sizes.max() <= 200
    assert 10 <= np.median(web.sizes) <= 25  # as on a logarithmic scale
    shares = np.bincount(web.y.astype(int)) / web.n_documents
    assert len(shares) == 5
    assert (np.diff(shares) < 0).all()
    assert 0.5 < shares[0] < 0.7
    without = np.mean([query.y.max() == 0 for query in web])
    assert 0.05 < without < 0.2


def test_features_are_as_unscaled_as_in_real_logs(web):
    widest = np.ptp(web.X, axis=0)
    assert widest.max() > 1e8
    assert widest.min() < 0.5
    assert (web.X.min(axis=0) < 0).any()
    by_name = dict(zip(web.feature_names, web.X.T, strict=True))
    assert (by_name["clicks"] == np.round(by_name["clicks"])).all()
    assert by_name["inlinks"].max() > 100 * by_name["inlinks"].mean()  # a heavy tail
    for name in ("query_words", "idf_sum"):
        assert all(len(set(by_name[name][web.rows_of(query)])) == 1 for query in range(len(web)))


def test_everything_has_a_name(web):
    assert web.names()[:2] == ["q1", "q2"]
    assert web.docid[0] == "d1"
    assert len(set(web.docid)) == web.n_documents
    assert "bm25_title" in web.feature_names


def test_the_same_seed_gives_the_same_lists():
    one, two, other = (
        make_lists(20),
        make_lists(20, random_state=np.random.default_rng(0)),
        make_lists(20, random_state=1),
    )
    assert np.array_equal(one.X, two.X)
    assert np.array_equal(one.y, two.y)
    assert one.X.shape != other.X.shape or not np.array_equal(one.X, other.X)


def test_noise_only_changes_the_labels():
    quiet, loud = make_lists(50, noise=0), make_lists(50, noise=3)
    assert np.array_equal(quiet.X, loud.X)
    assert ndcg(quiet, linear_ranker(quiet, squeezed)(quiet)) > ndcg(loud, linear_ranker(loud, squeezed)(loud)) + 0.1


@pytest.mark.parametrize("features", [1, 7, 45])
@pytest.mark.parametrize("grades", [2, 6])
def test_any_number_of_features_and_grades(features, grades):
    lists = make_lists(60, documents=30, features=features, grades=grades, dtype="float32")
    assert isinstance(lists, Queries)
    assert lists.X.dtype == np.float32
    assert np.isfinite(lists.X).all()
    assert lists.n_features == features
    assert len(set(lists.feature_names)) == features
    assert set(lists.sizes.tolist()) == {30}
    assert lists.y.max() <= grades - 1
    assert (lists.y == np.floor(lists.y)).all()


@pytest.mark.parametrize(
    "wrong",
    [
        {"queries": 0},
        {"features": 0},
        {"documents": 0},
        {"documents": (5, 2)},
        {"grades": 1},
        {"noise": -1},
        {"noise": float("nan")},
        {"dtype": "int8"},
    ],
)
def test_impossible_wishes_are_refused(wrong):
    with pytest.raises(RankwiseError, match="must be"):
        make_lists(**wrong)


def test_features_have_heavy_tails_and_go_together(web):
    column = dict(zip(web.feature_names, web.X.T, strict=True))
    for name in ("inlinks", "clicks", "pagerank", "dwell_seconds", "document_length"):
        deviation = (column[name] - column[name].mean()) / column[name].std()
        assert (deviation**4).mean() > 20  # 3 for normal numbers
    ranks = {name: np.argsort(np.argsort(values)) for name, values in column.items()}
    for one, other, least in (
        ("bm25_title", "bm25_body", 0.2),
        ("inlinks", "pagerank", 0.5),
        ("clicks", "dwell_seconds", 0.3),
    ):
        assert np.corrcoef(ranks[one], ranks[other])[0, 1] > least


def test_the_longest_list_has_two_hundred_documents():
    sizes = make_lists(2_000, features=1, random_state=0).sizes
    assert (sizes.min(), sizes.max()) == (1, 200)


def test_without_interactions_the_lists_are_those_of_earlier_versions(web):
    none = make_lists(400, interactions=0)
    assert np.array_equal(none.X, web.X)
    assert np.array_equal(none.y, web.y)


def test_interactions_change_the_labels_alone_and_keep_them_skewed(web):
    some = make_lists(400, interactions=3)
    assert np.array_equal(some.X, web.X)
    assert not np.array_equal(some.y, web.y)
    shares = np.bincount(some.y.astype(int)) / some.n_documents
    assert (np.diff(shares) < 0).all()
    assert 0.5 < shares[0] < 0.7


def test_trees_learn_the_interactions_and_a_linear_ranker_does_not():
    lightgbm = pytest.importorskip("lightgbm")

    def ahead(interactions):
        train, test = (make_lists(200, interactions=interactions, random_state=seed) for seed in (1, 2))
        rules = {"objective": "rank_xendcg", "learning_rate": 0.05, "num_threads": 1, "verbosity": -1, "seed": 0}
        data = lightgbm.Dataset(train.X, train.y, group=train.sizes)
        trees = lightgbm.train(rules, data, 100).predict(test.X)
        return ndcg(test, trees) - ndcg(test, linear_ranker(train, squeezed)(test))

    assert ahead(interactions=0) < 0
    assert ahead(interactions=3) > 0.03


@pytest.mark.parametrize("interactions", [-1, np.nan, np.inf, "some", None])
def test_interactions_are_a_number_of_0_or_more(interactions):
    with pytest.raises(RankwiseError, match="'interactions' parameter of"):
        make_lists(5, interactions=interactions)


# ------------------------------------------------------------------------------------------- runs of hybrid search


def test_every_sub_query_returns_its_best_documents_and_nothing_else():
    queries = make_hybrid(30, columns=6, documents=40, depth=10, random_state=1)
    assert queries.feature_names == ("bm25", "vector", "sparse", "bm25_title", "late_interaction", "popularity")
    for query in queries:
        returned = ~np.isnan(query.X)
        assert (returned.sum(axis=0) == 10).all()
        assert returned.any(axis=1).all()
    assert np.nanmin(queries.X) >= 0
    assert set(np.unique(queries.y)) == {0.0, 1.0, 2.0, 3.0}
    again = make_hybrid(30, columns=6, documents=40, depth=10, random_state=1)
    np.testing.assert_array_equal(again.X, queries.X)


def test_vectors_rank_better_than_bm25_and_scales_differ():
    queries = make_hybrid(200, random_state=2)
    bm25, vector = (ndcg(queries, np.nan_to_num(queries.X[:, column], nan=-1)) for column in (0, 1))
    assert vector > bm25 + 0.1
    assert np.nanmax(queries.X[:, 1]) < 1 < np.nanmedian(queries.X[:, 0])


@pytest.mark.parametrize(
    "wrong", [{"columns": 7}, {"columns": 0}, {"depth": 60}, {"grades": 1}, {"noise": -1}, {"queries": 0}]
)
def test_a_run_that_cannot_be_is_refused(wrong):
    with pytest.raises(RankwiseError):
        make_hybrid(**{"queries": 5, **wrong})
