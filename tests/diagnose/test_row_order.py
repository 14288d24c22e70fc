"""The order of rows inside queries: what it predicts, and who warns of it."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

import rankwise as rw
from rankwise._diagnose.row_order import OrderTotals, correlate_tied_labels, feature_order
from rankwise.errors import DataWarning
from rankwise.losses import SLAM, NDCGHinge


def lists(seed=0, queries=30, documents=20, by=None):
    """Random queries; the rows of each are in falling order of the feature ``by``."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((queries, documents, 3))
    if by is not None:
        order = np.argsort(-X[:, :, by], axis=1)
        X = np.take_along_axis(X, order[:, :, None], axis=1)
    y = random.integers(0, 3, size=(queries, documents)).astype(float)
    return rw.Queries.from_arrays(X.reshape(-1, 3), y.ravel(), group=[documents] * queries)


def sorted_by_label(queries):
    """The same documents, those of each query in rising order of their labels."""
    rows = np.lexsort((queries.labels(), queries.query_of_row))
    return rw.Queries.from_arrays(queries.X[rows], queries.labels()[rows], group=queries.sizes)


def shuffled(queries, seed=0):
    rows = np.lexsort((np.random.default_rng(seed).random(queries.n_documents), queries.query_of_row))
    return rw.Queries.from_arrays(queries.X[rows], queries.labels()[rows], group=queries.sizes)


def order_warnings(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(one.message) for one in caught if "order" in str(one.message) and issubclass(one.category, DataWarning)]


@given(st.lists(st.integers(0, 4), min_size=2, max_size=9))
def test_one_group_without_ties_has_the_correlation_of_spearman(values):
    totals = OrderTotals(1)
    totals.add(np.array(values, dtype=float)[:, None])
    (correlation,), (deviations,) = totals.result()
    if len(set(values)) == 1:
        assert correlation == deviations == 0
        return
    spearman = spearmanr(values, np.arange(len(values))).statistic
    # a sorted column has correlation 1 here even if it has ties, so the two differ by a positive factor
    sorted_one = spearmanr(sorted(values), np.arange(len(values))).statistic
    assert correlation == pytest.approx(spearman / sorted_one, abs=1e-12)
    assert deviations == pytest.approx(abs(spearman) * np.sqrt(len(values) - 1), abs=1e-9)


def test_diagnose_names_the_feature_that_rows_are_sorted_by():
    queries = lists(by=1)
    (finding,) = (one for one in rw.diagnose(queries).findings if "order of rows" in one.what)
    assert finding.what == "the order of rows within queries predicts 1 feature (largest correlation -1.00)"
    assert finding.where == ("X[:, 1]",)
    for sound in (lists(), shuffled(queries)):
        assert not [one for one in rw.diagnose(sound).findings if "order of rows" in one.what]


def test_features_that_only_follow_the_label_are_not_counted_inside_labels():
    queries = lists()
    X = queries.X.copy()
    X[:, 0] = queries.labels() + 0.1 * X[:, 0]
    queries = sorted_by_label(queries.map_features(lambda _: X))
    whole, inside = (abs(feature_order(queries, by_label=by_label)[0][0]) for by_label in (False, True))
    assert whole > 0.8
    assert inside < 0.3


@pytest.mark.parametrize(
    "ranker",
    [
        rw.SLAMPerceptron(weights="ndcg_003"),
        rw.SLAMPerceptron("AP", weights="ap_000", margin=1.0),
        rw.OnlineRanker(SLAM(weights="ndcg_tight")),
        rw.KernelPerceptron(weights="ndcg_tight", budget=20),
        rw.SLAMRanker(weights="ndcg_003", alpha=1.0),
        rw.LossRanker(NDCGHinge(symmetric=False), alpha=1.0),
    ],
    ids=repr,
)
def test_rules_that_depend_on_the_order_of_equal_labels_warn_where_it_predicts_a_feature(ranker):
    (sentence,) = order_warnings(lambda: ranker.fit(lists(by=2, queries=20, documents=8)))
    assert sentence.startswith(f"{ranker.name} learns the order of the input")
    assert "feature number 2 (rank correlation -1.00)" in sentence
    assert not order_warnings(lambda: ranker.fit(shuffled(lists(by=2, queries=20, documents=8))))


@pytest.mark.parametrize("ranker", [rw.SLAMPerceptron(), rw.SLAMPerceptron("AP", weights="ap_003"), rw.ListNet()])
def test_rules_that_do_not_depend_on_it_do_not_warn(ranker):
    assert not order_warnings(lambda: ranker.fit(lists(by=2)))


def test_the_first_block_of_a_stream_is_looked_at():
    queries = lists(by=0)
    assert len(order_warnings(lambda: rw.SLAMPerceptron(weights="ndcg_003").partial_fit(queries))) == 1


def test_evaluation_in_input_order_warns_only_where_ties_and_order_make_a_difference():
    queries = sorted_by_label(lists())
    equal, random = np.zeros(queries.n_documents), np.random.default_rng(0).random(queries.n_documents)
    (sentence,) = order_warnings(lambda: rw.evaluate(queries, equal, ties="stable"))
    assert "rank correlation +1.00" in sentence
    assert "the values are too low" in sentence
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stable = rw.evaluate(queries, equal, ties="stable").mean["nDCG@10"]
    assert stable < rw.evaluate(queries, equal).mean["nDCG@10"]
    for quiet in (
        lambda: rw.evaluate(queries, equal),
        lambda: rw.evaluate(queries, random, ties="stable"),
        lambda: rw.evaluate(shuffled(queries), equal, ties="stable"),
    ):
        assert not order_warnings(quiet)


def test_only_equal_scores_are_compared():
    labels, scores = np.array([0.0, 1, 2, 0, 1]), np.array([1.0, 1, 1, 2, 3])
    start = np.array([0, 5])
    assert correlate_tied_labels(scores, labels, start, None)[0] == 1.0
    assert correlate_tied_labels(scores, labels, start, np.array([4, 3, 2, 1, 0]))[0] == -1.0
    assert correlate_tied_labels(np.arange(5.0), labels, start, None) == (0.0, 0.0)
