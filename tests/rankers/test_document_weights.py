"""Rankers with document weights: copies of documents, absent documents, and what certificates then leave out."""

import re
from pathlib import Path

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold
from sklearn.pipeline import Pipeline

import rankwise as rw
from rankwise.errors import DataError, RankwiseError
from rankwise.losses import ListNet, PairHinge, PairLogistic, registered
from rankwise.rankers._base import registered as rankers

TIGHT = {"tolerance": 1e-6, "scale": "none"}
TAKERS = [
    rw.RidgeRanker(alpha=1.0, scale="none"),
    rw.RidgeRanker(alpha=1.0, balanced=False),
    rw.RankSVM(alpha=0.1, **TIGHT),
    rw.RankSVM(alpha=0.1, loss="squared", **TIGHT),
    rw.LossRanker(PairHinge(per_pair=False), alpha=1.0, **TIGHT),
    rw.LossRanker(PairLogistic(), alpha=0.1, tolerance=1e-6),
    rw.LossRanker(ListNet(target="gains"), alpha=0.1, tolerance=1e-6),
    rw.LossRanker(PairHinge(), penalty="l1", alpha=0.05, **TIGHT),
    rw.ListNet(solver="lbfgs", alpha=0.1, tolerance=1e-12),
]
over_takers = pytest.mark.parametrize("ranker", TAKERS, ids=repr)


def lists(seed=0, whole=True):
    """Queries with scattered rows and document weights."""
    rng = np.random.default_rng(seed)
    qid = rng.permutation(np.repeat(np.arange(25), 6))
    X = rng.normal(size=(150, 3)) * [1.0, 2.0, 0.5]
    y = np.clip(np.rint(X @ [1.0, 0.3, -0.5] + rng.normal(size=150)), 0, 3)
    weight = rng.integers(0, 4, 150).astype(float) if whole else rng.lognormal(size=150)
    return rw.Queries.from_arrays(X, y, qid=qid, document_weight=weight)


def copies(queries):
    """The same with every document as often as its weight says, and no weights."""
    rows = np.repeat(np.arange(queries.n_documents), queries.document_weight.astype(int))
    ids = np.asarray(queries.names())[queries.query_of_row]
    return rw.Queries.from_arrays(queries.X[rows], queries.y[rows], qid=ids[rows])


def close(ranker, one, other):
    """Whether two fits are the same up to their gaps, which bound the distance to the one minimum."""
    gaps = getattr(one, "gap_", 0.0) + getattr(other, "gap_", 0.0)
    if getattr(ranker, "penalty", "l2") == "l1":
        assert one.objective_ == pytest.approx(other.objective_, abs=gaps + 1e-12)
        return
    alpha = getattr(one, "alpha_", 1.0)
    apart = np.sqrt(2 * gaps / alpha) * 2 + 2e-5
    np.testing.assert_allclose(one.coef_, other.coef_, atol=apart)


@over_takers
def test_a_document_of_weight_k_is_learned_from_as_k_copies(ranker):
    queries = lists()
    close(ranker, clone(ranker).fit(queries), clone(ranker).fit(copies(queries)))


@over_takers
def test_weights_change_what_is_learned(ranker):
    queries = lists()
    plain = clone(ranker).fit(queries.with_document_weight(None))
    assert np.abs(clone(ranker).fit(queries).coef_ - plain.coef_).max() > 1e-3


@over_takers
def test_weights_of_one_give_the_same_bits_as_none(ranker):
    queries = lists().with_document_weight(None)
    plain, ones = clone(ranker).fit(queries), clone(ranker).fit(queries, sample_weight=np.ones(150))
    np.testing.assert_array_equal(plain.coef_, ones.coef_)
    assert plain.record_.seen.record == ones.record_.seen.record
    assert not ones.record_.document_weights


@over_takers
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_threads_change_no_bit(ranker, n_jobs):
    queries = lists(whole=False)
    expected = clone(ranker).set_params(n_jobs=1).fit(queries).coef_
    np.testing.assert_array_equal(clone(ranker).set_params(n_jobs=n_jobs).fit(queries).coef_, expected)


@over_takers
def test_a_common_factor_changes_means_by_nothing(ranker):
    queries = lists(whole=False)
    scaled = queries.with_document_weight(4.0 * queries.document_weight)
    if isinstance(ranker, rw.RidgeRanker):
        scaled_alpha = clone(ranker).set_params(alpha=4.0).fit(scaled)
        np.testing.assert_allclose(scaled_alpha.coef_, clone(ranker).fit(queries).coef_, rtol=1e-9)
    elif isinstance(getattr(ranker, "loss", None), PairHinge) and not ranker.loss.per_pair:
        more = clone(ranker).set_params(alpha=16.0).fit(scaled)
        close(ranker, more, clone(ranker).fit(queries))
    else:
        close(ranker, clone(ranker).fit(scaled), clone(ranker).fit(queries))


def test_sample_weight_is_the_document_weight_of_arrays():
    queries = lists(whole=False)
    ids = np.asarray(queries.names())[queries.query_of_row]
    expected = rw.RidgeRanker(alpha=1.0).fit(queries).coef_
    found = rw.RidgeRanker(alpha=1.0).fit(queries.X, queries.y, qid=ids, sample_weight=queries.document_weight)
    np.testing.assert_array_equal(found.coef_, expected)
    other = rw.RidgeRanker(alpha=1.0).fit(
        queries.with_document_weight(None), sample_weight=queries.document_weight.tolist()
    )
    np.testing.assert_array_equal(other.coef_, expected)


def test_ridge_is_scikit_learn_s_with_the_products_of_both_weights():
    queries = lists(whole=False).with_weight(np.linspace(0.5, 2.0, 25))
    weight = queries.weight[queries.query_of_row] * queries.document_weight
    given = {"alpha": 2.0, "scale": "none", "balanced": False, "target": "labels", "intercept": "global"}
    model = rw.RidgeRanker(**given).fit(queries)
    expected = Ridge(alpha=2.0, solver="cholesky").fit(queries.X, queries.y, sample_weight=weight)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9)
    wide = queries[:2].map_features(lambda X: np.random.default_rng(0).normal(size=(len(X), 40)))
    assert wide.n_documents < wide.n_features
    weight = wide.weight[wide.query_of_row] * wide.document_weight
    model = rw.RidgeRanker(**given).fit(wide)
    expected = Ridge(alpha=2.0, solver="cholesky").fit(wide.X, wide.y, sample_weight=weight)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-8, atol=1e-12)


def test_scaling_takes_the_moments_of_weighted_documents():
    queries = lists()
    ranker = rw.LossRanker(PairLogistic(), alpha=0.1, scale="auto", tolerance=1e-6)
    close(ranker, clone(ranker).fit(queries), clone(ranker).fit(copies(queries)))


def check_search(scores, queries):
    """Whether the mean scores of two alphas are those of a loop over folds."""
    ids = np.asarray(queries.names())[queries.query_of_row]
    for alpha, score in zip(ALPHAS, scores, strict=True):
        found = []
        for train, test in GroupKFold(3).split(queries.X, queries.y, ids):
            part = rw.Queries.from_arrays(
                queries.X[train], queries.y[train], qid=ids[train], document_weight=queries.document_weight[train]
            )
            found.append(rw.RidgeRanker(alpha=alpha).fit(part).score(queries.X[test], queries.y[test], qid=ids[test]))
        assert score == pytest.approx(np.mean(found), rel=1e-12)


ALPHAS = [0.1, 1e4]


def test_a_search_slices_sample_weights_of_a_pipeline_s_step():
    queries = lists(whole=False)
    y = rw.sklearn.labels(queries)
    search = GridSearchCV(
        Pipeline([("r", rw.RidgeRanker())]), {"r__alpha": ALPHAS}, cv=GroupKFold(3), error_score="raise"
    )
    search.fit(queries.X, y, groups=y.qid, r__sample_weight=queries.document_weight)
    check_search(search.cv_results_["mean_test_score"], queries)


def test_metadata_routing_hands_them_to_fit_alone_under_another_name():
    queries = lists(whole=False)
    y = rw.sklearn.labels(queries)
    with sklearn.config_context(enable_metadata_routing=True):
        ranker = rw.RidgeRanker().set_fit_request(sample_weight="document_weight")
        model = Pipeline([("r", ranker)])
        search = GridSearchCV(model, {"r__alpha": ALPHAS}, cv=GroupKFold(3), error_score="raise")
        search.fit(queries.X, y, groups=y.qid, document_weight=queries.document_weight)
    check_search(search.cv_results_["mean_test_score"], queries)


def test_a_search_on_queries_keeps_their_document_weights():
    queries = lists(whole=False)
    search = GridSearchCV(rw.RidgeRanker(), {"alpha": ALPHAS}, cv=3, error_score="raise").fit(queries)
    expected = [
        np.mean([rw.RidgeRanker(alpha=a).fit(queries[i]).score(queries[j]) for i, j in KFold(3).split(queries)])
        for a in ALPHAS
    ]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected, rtol=1e-12)


def test_a_score_with_sample_weights_raises_an_error_that_names_the_way():
    """scikit-learn hands sample_weight to score as well, if the search is over a ranker and not over a pipeline."""
    queries = lists(whole=False)
    y = rw.sklearn.labels(queries)
    search = GridSearchCV(rw.RidgeRanker(), {"alpha": ALPHAS}, cv=GroupKFold(3), error_score="raise")
    with pytest.raises(DataError, match=r"score takes no sample_weight.*step__sample_weight="):
        search.fit(queries.X, y, groups=y.qid, sample_weight=queries.document_weight)


def test_measures_do_not_use_them():
    queries = lists()
    model = rw.RidgeRanker(alpha=1.0).fit(queries)
    plain = queries.with_document_weight(None)
    assert model.score(queries) == model.score(plain)
    assert rw.evaluate(queries, model, ["AP"]).mean == rw.evaluate(plain, model, ["AP"]).mean


# ------------------------------------------------------------------------------------------- certificates and files


@over_takers
def test_a_certificate_leaves_out_what_rests_on_the_training_objective(ranker):
    queries, other = lists(), lists(seed=5).with_document_weight(None)
    model = clone(ranker).fit(queries)
    certificate = model.certificate(queries, other)
    assert any("the fit weighted documents" in note for note in certificate.notes)
    names = {row.name for row in certificate.rows}
    plain = clone(ranker).fit(queries.with_document_weight(None)).certificate(queries.with_document_weight(None), other)
    assert names <= {row.name for row in plain.rows}
    assert "Gap to the minimum" not in names


@over_takers
def test_a_file_keeps_the_fact_and_the_record(ranker, tmp_path):
    queries = lists()
    model = clone(ranker).fit(queries)
    model.save(tmp_path / "model.rankwise")
    loaded = rw.load(tmp_path / "model.rankwise")
    assert loaded.record_.document_weights is True
    np.testing.assert_array_equal(loaded.predict(queries), model.predict(queries))
    assert loaded.record_.seen.record == model.record_.seen.record
    assert str(loaded.certificate(queries)) == str(model.certificate(queries))
    model.fit(queries.with_document_weight(None)).save(tmp_path / "model.rankwise")
    assert not rw.load(tmp_path / "model.rankwise").record_.document_weights


def test_the_training_queries_without_their_weights_are_not_those_of_the_fit():
    queries = lists()
    model = rw.RankSVM(alpha=0.1).fit(queries)
    said = model.certificate(queries.with_document_weight(None)).notes
    assert any("those of the fit with other weights" in note for note in said)
    assert not any("with other weights" in note for note in model.certificate(queries).notes)


def test_theory_is_for_equal_weights():
    with pytest.raises(RankwiseError, match="equal document weights"):
        rw.RankSVM(alpha="theory", row_radius=50.0, norm=1.0, scale="none").fit(lists())


# ------------------------------------------------------------------------------------------- refusals


def test_rounds_refuse_them_wherever_they_come_from():
    queries = lists()
    for model in (rw.SLAMPerceptron(), rw.OnlineRanker(PairHinge()), rw.ListNet()):
        for call in (model.fit, model.partial_fit):
            with pytest.raises(DataError, match=f"{model.name} takes no document weights"):
                call(queries)
        with pytest.raises(DataError, match="has document weights"):
            model.partial_fit(queries[0])
        with pytest.raises(DataError, match="has document weights"):
            model.partial_fit(iter(queries))


def test_a_loss_without_weights_is_named():
    for ranker in (rw.SLAMRanker(alpha=1.0), rw.LossRanker(rw.losses.MaxPair(), alpha=1.0)):
        with pytest.raises(DataError, match=r"takes no document weights: \w+\(.*declares none"):
            ranker.fit(lists())


def test_learners_of_other_packages_do_not_get_them():
    queries = lists()
    with pytest.raises(RankwiseError, match="takes no document weights"):
        rw.compare({"theirs": Ridge()}, queries, folds=3)


# ------------------------------------------------------------------------------------------- the documentation


def test_the_tables_of_the_documentation_are_the_declared_facts():
    page = (Path(__file__).parents[2] / "docs" / "data.md").read_text()
    found = re.search(r"<!-- document weights: .*?-->\n(.*?)<!-- end of document weights -->", page, re.DOTALL)
    stated = set(re.findall(r"^\| `(\w+)(?:\(.*?\))?` \|", found[1], re.MULTILINE))
    losses = {name for name, kind in registered().items() if kind.document_weights}
    linear = {"RidgeRanker", "RidgeCommittee", "RankSVM", "LossRanker", "ListNet"}
    takers = linear | {"BoostedRanker", "AutoRanker", "MappedRanker"}
    assert stated == takers
    assert all(f"`{name}`" in found[1] for name in losses)
    for name, kind in rankers().items():
        some = [*kind.examples(), *(kind(solver="lbfgs") for _ in [0] if name == "ListNet")]
        assert any(one.takes_document_weights for one in some) == (name in takers), name
