"""AdaRank with rankers as weak ones, against the algorithm as it is written down, and with the logistic bound."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import rankwise as rw
from rankwise.errors import RankwiseError
from rankwise.exports.formula import TreeSum
from rankwise.exports.write import formula_of
from rankwise.measures._base import parse
from rankwise.queries.queries import Queries
from rankwise.rankers._base import Ranker
from rankwise.rankers.committee import within_query_deviation
from tests.rankers.boosting.test_adarank import judged, lists, pairs, values

some = settings(max_examples=settings().max_examples // 4)
RIDGE = rw.RidgeRanker(alpha=1.0)
STEPS = rw.RankBoost(rounds=3)


def noisy(seed, count=25):
    """Lists on which no ranker is perfect, and every distribution gives another one."""
    queries = lists(seed, count=count)
    return queries.with_labels(np.random.default_rng(seed).integers(0, 3, len(queries.X)))


def nothing(count=6):
    queries = lists(count=count)
    return queries.with_labels(np.zeros(len(queries.X)))


def written_down(queries, weak, measure, rounds, slope=lambda E: math.exp(-E), scaled=True):
    """(alpha, phi, delta, distribution, scores of f) of every round, for lists that all count the same."""
    told = [number for number, (X, y) in enumerate(pairs(queries)) if not math.isnan(measure(np.zeros(len(y)), y))]

    def measured(scores):
        return np.array([measure(scores[queries.rows_of(q)], np.asarray(queries.y)[queries.rows_of(q)]) for q in told])

    f, E, found = np.zeros(queries.n_documents), np.zeros(len(told)), []
    for _ in range(rounds):
        P = np.array([slope(value) for value in E])
        P /= P.sum()
        weight = np.zeros(len(queries))
        weight[told] = P * len(told)
        scores = clone(weak).fit(queries.with_weight(weight)).predict(queries)
        if scaled:
            scores = scores / within_query_deviation(queries, scores)
        alone = measured(scores)
        phi = P @ alone
        alpha = 0.5 * math.log((1 + phi) / (1 - phi))
        f = f + alpha * scores
        now = measured(f)
        found.append((alpha, phi, (now - E - alpha * alone).min(), P, f))
        E = now
    return found


# ------------------------------------------------------------------------------------------- as it is written down


@pytest.mark.parametrize("weak", [RIDGE, STEPS], ids=["linear", "steps"])
@pytest.mark.parametrize("bound", ["exp", "logistic"])
@pytest.mark.parametrize("scale", ["auto", "none"])
def test_every_round_trains_the_ranker_by_the_distribution_and_adds_it_by_its_alpha(weak, bound, scale):
    queries = noisy(1)
    slope = {"exp": lambda E: math.exp(-E), "logistic": lambda E: 1 / (1 + math.exp(E))}[bound]
    expected = written_down(queries, weak, parse("nDCG@3"), 4, slope, scale == "auto")
    model = rw.AdaRank("nDCG@3", weak=weak, bound=bound, rounds=4, scale=scale).fit(queries)
    rounds = len(model.history_)
    assert rounds > 2
    for place, name in enumerate(("alpha", "phi", "delta")):
        own = [one[place] for one in expected[:rounds]]
        np.testing.assert_allclose(model.history_[name], own, rtol=1e-8, atol=1e-8)
    total = math.fsum(model.history_["alpha"])
    np.testing.assert_allclose(model.predict(queries) * total, expected[rounds - 1][-1], rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("weak", [RIDGE, STEPS], ids=["linear", "steps"])
def test_the_model_is_the_sum_of_its_rankers_by_their_alphas(weak):
    queries, other = lists(2, count=25), lists(3)
    model = rw.AdaRank("AP", weak=weak, resample=True, rounds=5).fit(queries)
    committee, alpha = model.committee_, model.history_["alpha"]
    np.testing.assert_allclose(committee.weights_, alpha / alpha.sum())
    expected = sum(
        weight * member.predict(other) / within_query_deviation(queries, member.predict(queries))
        for weight, member in zip(alpha / alpha.sum(), committee.members_, strict=True)
    )
    np.testing.assert_allclose(model.predict(other), expected, rtol=1e-9, atol=1e-12)


def test_logistic_rounds_on_features_follow_the_logistic_slope():
    queries = lists(4, count=25)
    measure = parse("nDCG@3")
    model = rw.AdaRank("nDCG@3", bound="logistic", rounds=3, scale="none").fit(queries)
    E, f = np.zeros(25), [np.zeros(len(y)) for _, y in pairs(queries)]
    told = [q for q, (_, y) in enumerate(pairs(queries)) if not math.isnan(measure(np.zeros(len(y)), y))]
    for place in range(3):
        p = 1 / (1 + np.exp(E[told]))
        worth = [
            p @ [measure(pairs(queries)[q][0][:, k], pairs(queries)[q][1]) for q in told] / p.sum() for k in range(5)
        ]
        for taken in model.history_["feature"][:place]:
            worth[taken] = -1.0
        k = int(np.argmax(worth))
        assert model.history_["feature"][place] == k
        assert model.history_["phi"][place] == pytest.approx(worth[k])
        assert model.history_["mass"][place] == pytest.approx(p.mean())
        for q, (X, _) in enumerate(pairs(queries)):
            f[q] = f[q] + model.history_["alpha"][place] * X[:, k]
        E = np.array([measure(s, y) for s, (_, y) in zip(f, pairs(queries), strict=True)])


def test_resampled_rankers_depend_on_the_seed_alone_and_differ_among_each_other():
    queries = lists(5, count=30)
    one, two, other = (
        rw.AdaRank("nDCG@3", weak=RIDGE, resample=True, rounds=4, random_state=seed).fit(queries) for seed in (0, 0, 1)
    )
    assert one.coef_.tobytes() == two.coef_.tobytes() != other.coef_.tobytes()
    assert len({member.coef_.tobytes() for member in one.committee_.members_}) == 4


def test_rankers_without_resampling_stop_when_neither_the_distribution_nor_a_measure_changes():
    """The same distribution gives the same ranker: it is taken again, not trained again, and changes nothing."""
    model = rw.AdaRank("nDCG@3", weak=RIDGE, rounds=50).fit(noisy(6))
    assert len(model.history_) < 50
    last = model.history_["member"].tolist()[-2:]
    assert last[0] == last[1] == len(model.committee_.members_) - 1
    assert model.history_["train"][-1] == model.history_["train"][-2]


# ------------------------------------------------------------------------------------------- what it guarantees


@some
@given(
    judged(),
    st.sampled_from(["exp", "logistic"]),
    st.sampled_from(["features", RIDGE, STEPS]),
    st.sampled_from(["nDCG@2", "AP", "RR"]),
    st.sampled_from(["pessimistic", "expected"]),
)
def test_the_returned_model_is_as_good_as_certified(train, bound, weak, measure, ties):
    """On lists with ties, of one document, of one label, with nothing relevant, of any weight."""
    model = rw.AdaRank(measure, weak=weak, bound=bound, ties=ties, rounds=4).fit(train)
    found, weight = values(train, model.predict(train), measure, ties)
    if not len(found):
        assert model.round_ == 0
        assert model.training_certificate_.vacuous
        assert not model.coef_.any()
        return
    mean = math.fsum(weight * np.clip(found, 0, 1)) / math.fsum(weight)
    assert 1 - mean <= model.training_certificate_.value
    assert (model.history_["train"] >= model.history_["certificate"] - 1e-9).all()
    assert model.training_certificate_.terms["rounds"] == model.round_ == len(model.history_)


def test_a_weak_ranker_that_ranks_all_queries_perfectly_ends_it():
    queries = lists(7)
    perfect = Queries.from_arrays(np.c_[queries.X, 4 * queries.y], queries.y, group=queries.sizes)
    for bound in ("exp", "logistic"):
        model = rw.AdaRank("nDCG", weak=rw.RidgeRanker(alpha=1e-9, target="labels"), bound=bound).fit(perfect)
        assert model.history_["phi"].tolist() == [1.0]
        assert model.score(perfect) == 1
        assert 0 <= model.training_certificate_.value < 1e-6


# ------------------------------------------------------------------------------------------- validation


def test_the_first_best_round_on_the_validation_set_is_returned():
    train, other = noisy(8), noisy(9)
    model = rw.AdaRank("nDCG@3", weak=RIDGE, resample=True, rounds=8).fit(train, validation=other)
    judged_by = model.history_["validation"]
    assert len(judged_by) == 8
    assert model.round_ == int(np.argmax(judged_by)) + 1 == len(model.committee_.members_)
    assert model.score(other) == pytest.approx(judged_by.max(), rel=1e-12)
    fewer = clone(model).set_params(rounds=model.round_).fit(train)
    np.testing.assert_array_equal(fewer.predict(other), model.predict(other))


@pytest.mark.parametrize(
    ("weak", "given"),
    [(rw.RidgeRanker(), False), (rw.RidgeRanker(refit="train"), True), (STEPS, True), (rw.MaxPairPerceptron(), False)],
    ids=["learns from it", "selects by it", "stops by it", "takes none"],
)
def test_a_ranker_gets_the_validation_queries_unless_it_would_learn_from_them(weak, given, monkeypatch):
    seen = []
    original = Ranker.fit

    def fit(self, *arguments, **named):
        if type(self) is type(weak):
            seen.append(named.get("validation"))
        return original(self, *arguments, **named)

    monkeypatch.setattr(Ranker, "fit", fit)
    rw.AdaRank("nDCG@3", weak=weak, rounds=1).fit(lists(10), validation=lists(11))
    assert [one is not None for one in seen] == [given]


# ------------------------------------------------------------------------------------------- what a fitted one can do


@pytest.mark.parametrize("weak", [RIDGE, rw.RidgeRanker(alpha=1.0, intercept="global")], ids=["plain", "intercept"])
def test_of_linear_rankers_it_is_a_linear_ranker(weak):
    queries = lists(12, count=25)
    model = rw.AdaRank("nDCG@3", weak=weak, rounds=3).fit(queries)
    np.testing.assert_allclose(model.predict(queries), queries.X @ model.coef_, rtol=1e-9, atol=1e-12)
    formula, _ = formula_of(model, None, None)
    np.testing.assert_allclose(formula.weight, model.coef_)
    np.testing.assert_array_equal(rw.Scorer(model).scores(queries.X), model.predict(queries))
    other = rw.Scorer(model).with_coef(2 * model.coef_)
    np.testing.assert_allclose(other.scores(queries.X), 2 * model.predict(queries))
    assert rw.Committee([model, RIDGE]).fit(queries)._scoring_model().name == "LinearModel"


def test_of_other_rankers_it_is_a_committee():
    queries = lists(13, count=25)
    model = rw.AdaRank("nDCG@3", weak=STEPS, rounds=3).fit(queries)
    assert not hasattr(model, "coef_")
    np.testing.assert_array_equal(model.predict(queries), model.committee_.predict(queries))
    np.testing.assert_array_equal(rw.Scorer(model).scores(queries.X), model.predict(queries))
    with pytest.raises(rw.errors.DataError, match="only scorers of linear rankers"):
        rw.Scorer(model).with_coef(np.ones(5))
    certificate = model.certificate(queries, lists(14))
    assert any("AdaRank is not linear" in note for note in certificate.notes)
    rw.Committee([model, RIDGE]).fit(queries).predict(queries)


def test_the_sum_of_sums_of_steps_is_exported_as_one_sum_of_trees():
    queries = lists(15, count=25)
    model = rw.AdaRank("nDCG@3", weak=STEPS, rounds=3).fit(queries)
    formula, _ = formula_of(model, None, None)
    assert isinstance(formula, TreeSum)
    trees = model.committee_.ensemble_
    np.testing.assert_allclose(trees.predict(np.asarray(queries.X)), model.predict(queries), rtol=1e-9)


def test_contributions_of_features_add_up_to_the_score():
    queries = lists(16, count=25)
    for weak in (RIDGE, STEPS):
        model = rw.AdaRank("nDCG@3", weak=weak, rounds=3).fit(queries)
        parts, constant = model._contributions(np.asarray(queries.X))
        np.testing.assert_allclose(parts.sum(axis=1) + constant, model.predict(queries), rtol=1e-9, atol=1e-12)
        rw.explain(model, queries[3])


@pytest.mark.parametrize("weak", ["features", RIDGE, STEPS], ids=["features", "linear", "steps"])
@pytest.mark.parametrize("bound", ["exp", "logistic"])
def test_a_saved_model_has_the_same_bits_history_and_certificate(weak, bound, tmp_path):
    queries = lists(17, count=25)
    model = rw.AdaRank("nDCG@3", weak=weak, bound=bound, rounds=3).fit(queries, validation=lists(18))
    model.set_params(weak="features", bound="exp")  # the file is about the fit
    model.save(tmp_path / "model.rankwise")
    again = rw.load(tmp_path / "model.rankwise")
    np.testing.assert_array_equal(again.predict(queries), model.predict(queries))
    assert again.history_ == model.history_
    assert again.training_certificate_.to_dict() == model.training_certificate_.to_dict()
    assert repr(again.weak) == repr(weak)
    assert again.bound == bound


def test_nothing_to_learn_from_is_weights_of_zero():
    with pytest.warns(rw.errors.NothingLearnedWarning):
        model = rw.AdaRank("nDCG@3", weak=STEPS).fit(nothing())
    assert model.committee_ is None
    assert model.round_ == len(model.history_) == 0
    assert not model.predict(nothing()).any()


def test_rankers_whose_scores_are_equal_add_nothing():
    """Every feature is constant within queries: no linear ranker can separate documents."""
    queries = lists(19, count=20)
    flat = Queries.from_arrays(np.ones((len(queries.X), 2)), queries.y, group=queries.sizes)
    model = rw.AdaRank("nDCG@3", weak=RIDGE, rounds=3).fit(flat)
    assert not model.predict(flat).any()
    assert 1 - model.score(flat) <= model.training_certificate_.value


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"weak": "trees"}, "'features' or a ranker of this package"),
        ({"weak": rw.LinearModel()}, "LinearModel learns nothing"),
        ({"weak": rw.HybridRanker()}, "depends on the other documents of the query"),
        ({"weak": rw.RidgeRanker(alpha=-1.0)}, "'alpha' parameter of RidgeRanker"),
        ({"weak": RIDGE, "negated": True}, "'negated' parameter of AdaRank must be False unless weak='features'"),
        ({"weak": RIDGE, "repeats": True}, "'repeats' parameter of AdaRank must be False unless weak='features'"),
        ({"resample": True}, "'resample' parameter of AdaRank must be False unless weak is a ranker"),
        ({"bound": "hinge"}, "'bound' parameter of AdaRank must be 'exp' or 'logistic'"),
    ],
)
def test_what_it_cannot_mean_is_refused_in_a_sentence(wrong, sentence):
    with pytest.raises(RankwiseError, match=sentence):
        rw.AdaRank("nDCG@3", **wrong).fit(lists(20))


def test_a_ranker_that_gives_missing_values_a_meaning_keeps_it():
    queries = lists(21, count=25)
    X = np.asarray(queries.X).copy()
    X[::5, 0] = np.nan
    holes = {"group": queries.sizes}
    model = rw.AdaRank("nDCG@3", weak=rw.BoostedRanker(trees=2, missing="keep"), rounds=2, missing="keep")
    assert np.isfinite(model.fit(X, queries.y, **holes).predict(X)).all()
    with pytest.raises(RankwiseError, match="missing"):
        rw.AdaRank("nDCG@3", weak=RIDGE, missing="keep").fit(X, queries.y, **holes)
