"""AdaRank against the algorithm as it is written down, and what its certificate says about what it returns."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from rankwise.guarantees.bounds.training import adarank_certificate
from rankwise.measures._base import parse
from rankwise.measures.compute import ScoredLists, measure_lists
from rankwise.queries.queries import Queries
from rankwise.rankers.boosting.adarank import AdaRank
from rankwise.rankers.boosting.candidates import RankedLists
from rankwise.rankers.boosting.rounds import boost
from rankwise.rankers.boosting.weak_rankers import WeakFeatures
from tests.oracles.adarank import adarank, pessimistic_ndcg

MEASURES = ("nDCG@2", "nDCG", "AP", "AP@3", "P@2", "RR", "ERR@3", "Pairs", "WTA", "RBP", "nDCG(short='zero')@4")
some = settings(max_examples=settings().max_examples // 2)


@st.composite
def judged(draw, weights=True):
    """Some lists with ties, lists of one document, one label and nothing relevant among them."""
    d, count = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    values = draw(st.sampled_from([(-1.0, 0.0, 0.5, 1.0), tuple(np.random.default_rng(d).normal(size=40))]))
    sizes = draw(st.lists(st.integers(1, 6), min_size=count, max_size=count))
    rows = st.lists(st.sampled_from(values), min_size=d, max_size=d)
    X = np.array(draw(st.lists(rows, min_size=sum(sizes), max_size=sum(sizes))))
    y = draw(st.lists(st.sampled_from([0, 0, 1, 2, 4]), min_size=sum(sizes), max_size=sum(sizes)))
    queries = Queries.from_arrays(X, y, group=sizes)
    query_weight = draw(st.lists(st.sampled_from([0.0, 0.3, 1.0, 7.0]), min_size=count, max_size=count))
    return queries.with_weight(query_weight) if weights and any(query_weight) else queries


options = st.fixed_dictionaries(
    {
        "measure": st.sampled_from(MEASURES),
        "ties": st.sampled_from(["pessimistic", "expected"]),
        "negated": st.booleans(),
        "repeats": st.booleans(),
    }
)


def lists(seed=0, count=20, features=5, dtype=np.float64, most=12):
    """Judged lists with a linear signal, some features better than others."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, most, count)
    X = rng.uniform(-1, 1, size=(sizes.sum(), features)).astype(dtype)
    y = np.clip(np.rint(X @ np.linspace(2, -1, features) + rng.normal(size=len(X)) / 2), 0, 3)
    return Queries.from_arrays(X, y, group=sizes)


def pairs(queries):
    return [(query.X, query.y) for query in queries]


def values(queries, scores, measure, ties):
    """One value a list that counts, NaN left out, with the weights of these lists."""
    weight = np.ones(len(queries)) if queries.weight is None else queries.weight
    rows = None if queries.is_grouped else queries.rows
    found = measure_lists([parse(measure)], ScoredLists(scores, queries.labels(), queries.start, rows), ties=ties)[0]
    told = ~np.isnan(found) & (weight > 0)
    return found[told], weight[told]


def same(one, two):
    return (
        one.coef_.tobytes() == two.coef_.tobytes()
        and one.history_ == two.history_
        and one.round_ == two.round_
        and one.training_certificate_.to_dict() == two.training_certificate_.to_dict()
    )


# ------------------------------------------------------------------------------------------- as it is written down


@some
@given(judged(), options)
def test_every_round_is_that_of_the_algorithm(queries, chosen):
    measure = parse(chosen["measure"])
    expected = adarank(
        pairs(queries),
        lambda s, y: measure(s, y, ties=chosen["ties"]),
        rounds=8,
        weight=queries.weight,
        negated=chosen["negated"],
        repeats=chosen["repeats"],
    )
    model = AdaRank(rounds=8, scale="none", **chosen).fit(queries)
    history = model.history_
    assert history["feature"].tolist() == [one.feature for one in expected]
    assert history["sign"].tolist() == [one.sign for one in expected]
    for name in ("alpha", "phi", "delta"):
        np.testing.assert_allclose(history[name], [getattr(one, name) for one in expected], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(history["Pi"], [one.Pi for one in expected], rtol=1e-9)
    if expected:
        np.testing.assert_allclose(model.coef_, expected[-1].w, rtol=1e-12, atol=1e-12)
    else:
        assert not model.coef_.any()


@pytest.mark.parametrize("ties", ["pessimistic", "expected"])
def test_the_distribution_of_every_round_is_that_of_the_algorithm(ties):
    queries = lists(1).with_weight(np.random.default_rng(1).uniform(0, 2, 20))
    measure = parse("nDCG@3")
    expected = adarank(pairs(queries), lambda s, y: measure(s, y, ties=ties), rounds=12, weight=queries.weight)
    ranked = RankedLists.of(queries, measure, ties, 1)
    alone = ranked.by_features(False, lambda share: None)
    told = ~np.isnan(alone[0])
    scores = np.zeros(len(ranked.rows))

    def add(candidate, alpha):
        scores[:] += alpha * ranked.column(candidate)
        return ranked.measured(scores)[told]

    weak = WeakFeatures(train=ranked, held=None, alone=alone[:, told], factor=np.ones(5))
    found = boost(weak, ranked.weight[told], add)
    for one, plain in zip(found, expected, strict=False):
        np.testing.assert_allclose(one.share, plain.P, rtol=1e-12)
        np.testing.assert_allclose(one.values, plain.E, rtol=1e-12)
        assert math.fsum(one.share) == pytest.approx(1)
    assert len(expected) >= 2


def test_a_plain_sort_in_numpy_gives_the_same_rounds():
    queries = lists(2, count=30, most=60)
    expected = adarank(pairs(queries), pessimistic_ndcg(10), rounds=5, repeats=False)
    history = AdaRank("nDCG@10", rounds=5, repeats=False).fit(queries).history_
    assert history["feature"].tolist() == [one.feature for one in expected]
    np.testing.assert_allclose(history["alpha"], [one.alpha for one in expected], rtol=1e-12)
    np.testing.assert_allclose(history["train"], [one.E.mean() for one in expected], rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("measure", ["nDCG@10", "P@3", "RR@5", "AP", "nDCG", "ERR@10", "Pairs", "MeanNDCG"])
@pytest.mark.parametrize("ties", ["pessimistic", "expected"])
def test_single_features_are_measured_as_scores_are_to_the_bit(measure, ties, dtype):
    """Long lists and short ones, features without ties, with many, and constant ones; rows anywhere."""
    rng = np.random.default_rng(3)
    qid = rng.permutation(np.repeat(np.arange(12), [1, 2, 3, 5, 8, 13, 19, 20, 21, 40, 80, 200]))
    X = rng.normal(size=(len(qid), 40)).astype(dtype)
    X[:, 1::4], X[:, 2::4] = np.round(X[:, 1::4]), X[:, 2::4] > 1.5
    X[:, 3] = 0.7
    y = rng.choice([0, 0, 0, 1, 2, 3], len(qid))
    queries = Queries.from_arrays(X, y, qid=qid)
    found = RankedLists.of(queries, parse(measure), ties, None).by_features(True, lambda share: None)
    for number in range(40):
        for sign, place in ((1.0, number), (-1.0, number + 40)):
            scored = ScoredLists(sign * X[:, number].astype(float), queries.y, queries.start, queries.rows)
            expected = measure_lists([parse(measure)], scored, ties=ties)[0]
            np.testing.assert_array_equal(found[place], np.minimum(expected, 1.0))


# ------------------------------------------------------------------------------------------- its certificate


@some
@given(judged(), judged(weights=False), options, st.booleans())
def test_the_returned_weights_are_as_good_as_certified(train, other, chosen, validated):
    """Whatever the ties, the weights of lists, degenerate lists, and whether an earlier round is returned."""
    assume(not validated or train.n_features == other.n_features)
    model = AdaRank(rounds=8, **chosen).fit(train, validation=other if validated else None)
    found, weight = values(train, model.predict(train), chosen["measure"], chosen["ties"])
    if not len(found):
        assert model.round_ == 0
        assert model.training_certificate_.vacuous
        return
    mean = math.fsum(weight * np.clip(found, 0, 1)) / math.fsum(weight)
    assert 1 - mean <= model.training_certificate_.value
    assert mean >= 1 - math.exp(model.training_certificate_.terms["log_Pi"]) - 1e-9
    assert model.training_certificate_.terms["rounds"] == model.round_ <= len(model.history_)
    if chosen["ties"] == "pessimistic":
        assert 1 - model.score(train) <= model.training_certificate_.value + 1e-12


@some
@given(judged(), options)
def test_the_certificate_of_every_round_holds_in_that_round(queries, chosen):
    history = AdaRank(rounds=8, **chosen).fit(queries).history_
    assert (history["train"] >= history["certificate"] - 1e-9).all()
    assert (history["certificate"] >= history["printed"] - 1e-9).all()
    assert (history["printed"] <= 1 - math.exp(-1) + 1e-9).all()
    np.testing.assert_allclose(history["printed"], 1 - history["Pi"])
    for rounds in range(1, len(history) + 1):
        columns = {name: history[name][:rounds] for name in ("phi", "alpha", "delta")}
        assert -adarank_certificate(**columns).terms["log_Pi"] == pytest.approx(history["certificate"][rounds - 1])


def test_an_earlier_round_has_the_certificate_of_an_earlier_round():
    train, other = lists(4, count=40), lists(5, count=8)
    model = AdaRank("nDCG@3", rounds=5, repeats=False).fit(train, validation=other)
    assert 0 < model.round_ < len(model.history_) == 5
    terms = model.training_certificate_.terms
    assert terms["rounds"] == model.round_
    assert terms["log_Pi"] == pytest.approx(-model.history_["certificate"][model.round_ - 1], abs=1e-9)
    assert same(clone(model).set_params(rounds=model.round_).fit(train), model) is False
    np.testing.assert_array_equal(clone(model).set_params(rounds=model.round_).fit(train).coef_, model.coef_)


def test_the_certificate_is_about_scores_as_they_are_published(monkeypatch):
    """Scores that tie in running sums and not in products with the weights, or vice versa, are measured anew."""
    queries = lists(6)
    model = AdaRank("nDCG@3", rounds=4, repeats=False).fit(queries)
    monkeypatch.setattr("rankwise.rankers._base.linear_scores", lambda X, coef, n_jobs: np.zeros(len(X)))
    worse = AdaRank("nDCG@3", rounds=4, repeats=False).fit(queries)
    np.testing.assert_array_equal(worse.history_["delta"], model.history_["delta"])
    tied, _ = values(queries, np.zeros(queries.n_documents), "nDCG@3", "pessimistic")
    assert 1 - tied.mean() <= worse.training_certificate_.value
    assert worse.training_certificate_.value > model.training_certificate_.value


# ------------------------------------------------------------------------------------------- when it stops


def test_a_feature_that_comes_again_and_changes_nothing_ends_it():
    """One feature is best on every list: its second round changes no order, and nothing else would ever come."""
    queries = lists(7)
    best = Queries.from_arrays(np.c_[queries.y, queries.X], queries.y, group=queries.sizes)
    best = best.map_features(lambda block: block * [1, -1, 1, 1, 1, 1])
    noisy = best.with_labels(np.where(np.arange(len(best.X)) % 7 == 0, 1 - best.y.clip(0, 1), best.y))
    model = AdaRank("nDCG", rounds=200, repeats=True, ties="pessimistic").fit(noisy)
    assert model.history_["feature"].tolist() == [0, 0]
    assert model.history_["train"][0] == model.history_["train"][1] < 1
    for_ever = adarank(pairs(noisy), lambda s, y: parse("nDCG")(s, y, ties="pessimistic"), rounds=30, freezes=False)
    assert [one.feature for one in for_ever] == [0] * 30


def test_most_fits_freeze_long_before_their_rounds_are_over():
    lengths = [
        len(AdaRank("nDCG@5", rounds=100, repeats=True).fit(lists(seed, count=30)).history_) for seed in range(20)
    ]
    assert sum(length < 100 for length in lengths) > 10


def test_a_perfect_feature_ends_it_with_a_finite_weight():
    queries = lists(8)
    perfect = Queries.from_arrays(np.c_[queries.X, queries.y], queries.y, group=queries.sizes)
    model = AdaRank("nDCG", scale="none").fit(perfect)
    assert model.history_["feature"].tolist() == [5]
    assert model.history_["phi"].tolist() == [1.0]
    assert model.coef_[5] == pytest.approx(math.log((2 - 1e-12) / 1e-12) / 2, rel=1e-4)
    assert model.score(perfect) == 1
    assert 0 <= model.training_certificate_.value < 1e-9


@pytest.mark.parametrize("negated", [False, True])
def test_without_repeats_every_feature_comes_once(negated):
    model = AdaRank("nDCG@3", repeats=False, negated=negated, rounds=50).fit(lists(9))
    assert sorted(model.history_["feature"].tolist()) == [0, 1, 2, 3, 4]


def test_a_feature_that_ranks_upside_down_is_used_upside_down():
    queries = lists(10)
    worst = Queries.from_arrays(
        np.c_[np.random.default_rng(0).uniform(size=len(queries.X)), -queries.y], queries.y, group=queries.sizes
    )
    model = AdaRank("nDCG", negated=True, scale="none").fit(worst)
    assert (model.history_["feature"][0], model.history_["sign"][0]) == (1, -1)
    assert model.history_["alpha"][0] > 0 > model.coef_[1]
    assert model.score(worst) == 1 > AdaRank("nDCG", scale="none").fit(worst).score(worst)


def test_the_first_best_round_on_the_validation_set_is_returned():
    train, other = lists(11, count=40, features=9), lists(12, count=8, features=9)
    model = AdaRank("nDCG@3", repeats=False).fit(train, validation=other)
    judged_by = model.history_["validation"]
    assert model.round_ == int(np.argmax(judged_by)) + 1
    assert model.score(other) == pytest.approx(judged_by.max(), rel=1e-12)
    assert len(model.history_) == 9


@pytest.mark.parametrize("patience", [1, 2, 4])
def test_patience_counts_rounds_without_a_better_validation_measure(patience):
    train, other = lists(13, count=40, features=9), lists(14, count=8, features=9)
    whole = AdaRank("nDCG@3", repeats=False).fit(train, validation=other).history_["validation"]
    best, waited, expected = -1.0, 0, 0
    for value in whole:
        expected, waited, best = expected + 1, 0 if value > best else waited + 1, max(best, value)
        if waited == patience:
            break
    model = AdaRank("nDCG@3", repeats=False, patience=patience).fit(train, validation=other)
    np.testing.assert_array_equal(model.history_["validation"], whole[:expected])
    alone = AdaRank("nDCG@3", repeats=False, patience=patience).fit(train).history_["train"]
    assert len(alone) == 9 or alone[-patience:].max() <= alone[:-patience].max()


def test_a_validation_set_that_the_measure_says_nothing_about_chooses_nothing():
    train, other = lists(15), lists(16)
    silent = AdaRank("nDCG@3", repeats=False).fit(train, validation=other.with_labels(np.zeros(len(other.X))))
    assert np.isnan(silent.history_["validation"]).all()
    assert same(silent, AdaRank("nDCG@3", repeats=False).fit(train))


# ------------------------------------------------------------------------------------------- lists and their weights


def test_a_list_of_weight_two_is_a_list_twice_and_one_of_weight_zero_is_none():
    queries = lists(17)
    query_weight = np.random.default_rng(0).integers(0, 4, 20)
    weighted = AdaRank("nDCG@3", repeats=False, scale="none").fit(queries.with_weight(query_weight))
    repeated = AdaRank("nDCG@3", repeats=False, scale="none").fit(queries[np.repeat(np.arange(20), query_weight)])
    assert weighted.history_["feature"].tolist() == repeated.history_["feature"].tolist()
    for name in ("alpha", "phi", "delta", "train", "certificate"):
        np.testing.assert_allclose(weighted.history_[name], repeated.history_[name], rtol=1e-12, atol=1e-12)


def test_lists_that_the_measure_says_nothing_about_are_left_out():
    queries = lists(18)
    nothing = Queries.from_arrays(np.random.default_rng(0).uniform(-1, 1, (6, 5)), np.zeros(6), group=[4, 2])
    one, two = (AdaRank("nDCG@3").fit(data) for data in (queries, Queries.concat([nothing, queries])))
    assert same(one, two)
    empty = AdaRank("nDCG@3").fit(nothing)
    assert (empty.round_, len(empty.history_)) == (0, 0)
    assert not empty.coef_.any()


def test_the_order_of_lists_and_of_rows_changes_no_bit():
    queries, rng = lists(19), np.random.default_rng(0)
    one = AdaRank("nDCG@3", repeats=False).fit(queries, validation=queries)
    assert same(AdaRank("nDCG@3", repeats=False).fit(queries[rng.permutation(20)], validation=queries), one)
    order = rng.permutation(len(queries.X))
    scattered = Queries.from_arrays(queries.X[order], queries.y[order], qid=queries.query_of_row[order])
    assert not scattered.is_grouped
    assert same(AdaRank("nDCG@3", repeats=False).fit(scattered, validation=scattered), one)


def test_features_that_are_equally_good_are_taken_in_their_order():
    queries = lists(20)
    twice = Queries.from_arrays(np.c_[queries.X, queries.X], queries.y, group=queries.sizes)
    model = AdaRank("nDCG@3", rounds=3, repeats=True).fit(twice)
    assert (model.history_["feature"] < 5).all()


def test_another_unit_of_a_feature_changes_its_weight_and_no_rank():
    queries, units = lists(21), np.array([2.0**10, 1.0, 2.0**-7, 2.0, 2.0**20])
    raw = queries.map_features(lambda block: 3 * block)
    other = raw.map_features(lambda block: block * units)
    one, two = (AdaRank("nDCG@3", repeats=False).fit(data) for data in (raw, other))
    np.testing.assert_array_equal(two.coef_ * units, one.coef_)
    np.testing.assert_array_equal(two.predict(other), one.predict(raw))
