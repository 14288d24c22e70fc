"""AutoRanker tries a linear ranker, boosted trees and both, chooses by queries that they have not seen, and refits."""

import logging
import math

import numpy as np
import pytest

import rankwise as rw
from rankwise.errors import MissingExtraError, RankwiseError
from rankwise.rankers._model_selection import mean_of_known
from rankwise.rankers.auto import auto_ranker, candidates
from rankwise.rankers.auto.candidates import Difference, criterion_measures, measure_values
from rankwise.rankers.committee import within_query_deviation

pytest.importorskip("lightgbm")


def simulated(count, interactions, seed):
    """Simulated queries with features in logarithms, so that nothing but interactions speaks for trees."""
    queries = rw.make_lists(count, documents=(5, 15), features=10, interactions=interactions, random_state=seed)
    return rw.Queries.from_arrays(
        np.sign(queries.X) * np.log1p(np.abs(queries.X)),
        queries.y,
        group=queries.sizes,
        feature_names=queries.feature_names,
    )


def weighted(count, seed):
    """Queries whose relevance is a weighted sum of the features and noise."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(4, 12, count)
    X = rng.normal(size=(sizes.sum(), 10))
    useful = X @ np.linspace(1, -1, 10) + rng.normal(size=len(X))
    return rw.Queries.from_arrays(X, np.clip(np.rint(useful), 0, 4), group=sizes)


LINEAR, TREES = weighted(60, 1), simulated(150, 6.0, 1)
QUICK = {"folds": 3, "max_trees": 40, "linear": "RidgeCommittee", "n_jobs": 1}


@pytest.fixture(scope="module")
def linear():
    return rw.AutoRanker(**QUICK).fit(LINEAR)


@pytest.fixture(scope="module")
def trees():
    return rw.AutoRanker(**QUICK).fit(TREES)


def test_it_stays_linear_where_relevance_is(linear):
    assert linear.chosen_ == "linear"
    assert linear.reason_.startswith("linear: ")
    assert "3-fold cross-validation over 60 queries" in linear.reason_
    alone = candidates.Linear.of(linear).fit(LINEAR)
    np.testing.assert_array_equal(linear.predict(LINEAR), alone.predict(LINEAR))


def test_it_takes_trees_where_relevance_has_interactions(trees):
    assert trees.chosen_ != "linear"
    assert "better than linear by" in trees.reason_
    test = simulated(100, 6.0, 2)
    assert trees.score(test) > candidates.Linear.of(trees).fit(TREES).score(test)


def test_the_report_holds_every_candidate_and_one_choice(trees):
    report = trees.report_
    assert report["candidate"].tolist() == ["linear", "boosted", "half and half"]
    assert report.columns == (
        "candidate", "nDCG@10", "nDCG@50", "AP", "criterion", "difference", "standard error", "seconds", "chosen"
    )  # fmt: skip
    assert report["candidate"][report["chosen"]].tolist() == [trees.chosen_]
    np.testing.assert_allclose(report["difference"], report["criterion"] - report["criterion"][0], atol=1e-12)
    assert (report["seconds"] >= 0).all()
    assert "<table>" in report._repr_html_()


def test_the_trial_by_hand(trees):
    """Out-of-fold scores of the linear candidate, their criterion, and the rule, from public parts alone."""
    parts = [np.sort(part) for part in np.array_split(np.random.default_rng(0).permutation(len(TREES)), 3)]
    scores = np.zeros(TREES.n_documents)
    for part in parts:
        rest = np.setdiff1d(np.arange(len(TREES)), part)
        rows = np.isin(TREES.query_of_row, part)
        scores[rows] = candidates.Linear.of(trees).fit(TREES[rest]).predict(TREES)[rows]
    found = np.nanmean(mean_of_known(measure_values(TREES, scores, criterion_measures(trees._measure()))))
    assert trees.report_["criterion"][0] == pytest.approx(found)
    best = int(np.argmax(trees.report_["difference"]))
    assert Difference(trees.report_["difference"][best], trees.report_["standard error"][best]).is_clear
    assert trees.chosen_ == trees.report_["candidate"][best]


def test_half_and_half_is_a_committee_on_the_scale_of_out_of_fold_scores(monkeypatch):
    monkeypatch.setattr(auto_ranker, "choose", lambda criteria, weight: ("half and half", _all_zero(criteria)))
    model = rw.AutoRanker(**QUICK).fit(TREES)
    assert isinstance(model.model_, rw.Committee)
    np.testing.assert_array_equal(model.model_.weights_, [0.5, 0.5])
    _, boosted = model.model_.members_
    assert isinstance(boosted, rw.BoostedRanker)
    assert boosted.trees_ % 5 == 0
    inflated = within_query_deviation(TREES, boosted.predict(TREES))
    assert model.model_.deviations_[1] < inflated
    np.testing.assert_array_equal(model.predict(TREES), model.model_.predict(TREES))


def _all_zero(criteria):
    return {name: Difference(0.0, 0.0) for name in criteria}


def test_a_validation_set_joins_the_training_queries(linear):
    other = weighted(40, 3)
    model = rw.AutoRanker(boosters=(), linear="RidgeCommittee").fit(LINEAR, validation=other)
    both = rw.Queries.from_arrays(
        np.concatenate([LINEAR.X, other.X]), np.concatenate([LINEAR.y, other.y]), group=[*LINEAR.sizes, *other.sizes]
    )
    np.testing.assert_array_equal(
        model.predict(LINEAR.X), rw.AutoRanker(boosters=(), linear="RidgeCommittee").fit(both).predict(LINEAR.X)
    )
    certificate = model.certificate(None, other)
    assert not certificate.rows, "all queries that it was given are seen"


def test_queries_with_the_same_ids_and_documents_join_as_well():
    ids = [f"q{number}" for number in LINEAR.query_of_row]
    named = rw.Queries.from_arrays(LINEAR.X, LINEAR.y, qid=ids, docid=[f"d{row}" for row in range(len(LINEAR.y))])
    other = weighted(40, 3)
    again = rw.Queries.from_arrays(other.X, other.y, qid=[f"q{number}" for number in other.query_of_row])
    model = rw.AutoRanker(boosters=(), linear="RidgeCommittee").fit(named, validation=again)
    plain = rw.AutoRanker(boosters=(), linear="RidgeCommittee").fit(LINEAR, validation=other)
    np.testing.assert_array_equal(model.predict(LINEAR.X), plain.predict(LINEAR.X))


def test_many_queries_are_compared_on_one_part_that_was_held_out(monkeypatch):
    monkeypatch.setattr(auto_ranker, "MANY", 50)
    model = rw.AutoRanker(**QUICK).fit(LINEAR)
    assert "in a held-out part over 12 queries" in model.reason_


def test_a_file_keeps_the_report_without_the_seconds(trees, tmp_path):
    trees.save(tmp_path / "model.rankwise")
    loaded = rw.load(tmp_path / "model.rankwise")
    assert (loaded.chosen_, loaded.reason_) == (trees.chosen_, trees.reason_)
    for column in set(trees.report_.columns) - {"seconds"}:
        np.testing.assert_array_equal(loaded.report_[column], trees.report_[column])
    assert all(map(math.isnan, loaded.report_["seconds"]))
    np.testing.assert_array_equal(loaded.predict(TREES), trees.predict(TREES))


def test_without_the_extra_it_is_linear_and_says_what_is_missing(monkeypatch, caplog):
    def missing(module):
        raise MissingExtraError(f"{module} is needed here and is not installed: pip install 'rankwise[lightgbm]'")

    monkeypatch.setattr(auto_ranker, "require", missing)
    with caplog.at_level(logging.WARNING, logger="rankwise"):
        model = rw.AutoRanker().fit(LINEAR)
    assert model.chosen_ == "linear"
    assert "pip install 'rankwise[lightgbm]'" in model.reason_
    assert [record.name for record in caplog.records] == ["rankwise"]
    assert "adds boosted trees" in caplog.text
    assert len(model.report_) == 0


def test_a_limit_that_is_over_at_once_leaves_the_linear_candidate():
    model = rw.AutoRanker(time_limit=1e-9, **QUICK).fit(TREES)
    assert model.chosen_ == "linear"
    assert "within time_limit" in model.reason_


def test_a_limit_ends_the_growth_of_trees(monkeypatch):
    looks = iter([False] * 30 + [True] * 10_000)
    monkeypatch.setattr(candidates.Clock, "is_over", property(lambda clock: next(looks)))
    model = rw.AutoRanker(**(QUICK | {"max_trees": 200})).fit(TREES)
    assert "time_limit ended the search" in model.reason_
    boosted = model.model_ if isinstance(model.model_, rw.BoostedRanker) else model.model_.members_[1]
    assert boosted.trees_ <= 30


def test_linear_choices_are_exported_as_linear_models(linear):
    found = rw.export(linear, "ranklib", sample=LINEAR)
    assert found.parity is not None
    np.testing.assert_array_equal(rw.Scorer(linear).scores(LINEAR.X), linear.predict(LINEAR))


@pytest.mark.parametrize("threads", [2, 3])
def test_the_number_of_threads_changes_no_bit_of_the_choice(trees, threads):
    again = rw.AutoRanker(**(QUICK | {"n_jobs": threads})).fit(TREES)
    np.testing.assert_array_equal(again.predict(TREES), trees.predict(TREES))
    np.testing.assert_array_equal(again.report_["criterion"], trees.report_["criterion"])


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"boosters": "lightgbm"}, "'boosters' parameter of"),
        ({"boosters": ("forest",)}, "'boosters' parameter of"),
        ({"boosters": 5}, "'boosters' parameter of"),
        ({"time_limit": 0}, "'time_limit' parameter of"),
        ({"time_limit": "soon"}, "'time_limit' parameter of"),
        ({"max_trees": 0}, "max_trees"),
        ({"linear": "RidgeRanker"}, "'linear' parameter of"),
        ({"folds": 1}, "'folds' parameter of"),
    ],
)
def test_what_cannot_be_tried_is_refused(given, sentence):
    with pytest.raises(RankwiseError, match=sentence):
        rw.AutoRanker(**given).fit(LINEAR)
