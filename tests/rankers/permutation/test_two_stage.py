"""TwoStage: both ends of lambda, the minimum between them against a quadratic programme, choices against loops."""

import numpy as np
import pytest
from sklearn.base import clone

import rankwise as rw
from rankwise.errors import DataError, Interrupted, RankwiseError
from rankwise.losses import NDCGHinge, PairHinge, SmoothNDCG, SVMMapHinge
from rankwise.losses.compute import PreparedLists, loss_lists
from rankwise.measures._base import parse
from rankwise.queries.queries import Queries
from rankwise.rankers.boosting.adarank import AdaRank
from rankwise.rankers.linear.ridge import RidgeRanker
from rankwise.rankers.permutation import two_stage
from rankwise.rankers.permutation.two_stage import TwoStage
from tests.oracles import permurank as oracle


def lists(seed=0, count=15, features=3, labels=1, weighted=False, longest=6):
    """Judged lists with a linear signal."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, longest + 1, count)
    X = rng.uniform(-1, 1, size=(sizes.sum(), features))
    y = np.clip(np.rint(X @ np.linspace(2, -1, features) + 0.6 * rng.normal(size=len(X))), 0, labels)
    return Queries.from_arrays(X, y, group=sizes, weight=rng.uniform(0.1, 2, count) if weighted else None)


def mean_bound(loss, queries, w):
    """The weighted mean of the loss over lists that have something relevant, list by list."""
    weight = np.ones(len(queries)) if queries.weight is None else queries.weight
    prepared = PreparedLists.of(loss, queries.y, queries.start)
    values, _ = loss_lists(prepared, queries.X @ w, n_jobs=1)
    known = np.array([query.y.max() > 0 for query in queries])
    return (weight * values)[known].sum() / weight[known].sum()


def order_of(model, queries):
    return model.rank(queries)["docid"].tolist()


# ------------------------------------------------------------------------------------------- both ends


@pytest.mark.parametrize("measure", ["AP", "nDCG@3"])
@pytest.mark.parametrize("first", ["adarank", "ridge", "vector"])
def test_a_large_strength_gives_the_first_stage(measure, first):
    queries = lists(1, labels=2)
    weights = np.array([1.0, 0.3, -0.2]) if first == "vector" else first
    model = TwoStage(measure, first=weights, alpha=1e9).fit(queries)
    if first != "vector":
        weights = {"adarank": AdaRank, "ridge": RidgeRanker}[first](measure).fit(queries).coef_
    np.testing.assert_array_equal(model.first_, weights)
    np.testing.assert_allclose(model.coef_, model.length_ * weights, atol=1e-6 * model.length_ * np.abs(weights).max())


@pytest.mark.parametrize("measure", ["AP", "nDCG"])
def test_a_small_strength_forgets_the_first_stage(measure):
    """Wherever it began: the bound comes down to what it is without a first stage, within the tolerance."""
    queries = lists(2)
    ends = [
        TwoStage(measure, first=first, alpha=1e-4, tolerance=1e-6).fit(queries).path_["loss"][0]
        for first in (np.zeros(3), np.array([1.0, 0.5, 0.2]), np.array([-1.0, 2.0, 1.0]))
    ]
    starts = TwoStage(measure, first=np.array([-1.0, 2.0, 1.0]), alpha=1e9).fit(queries).path_["loss"][0]
    assert max(ends) - min(ends) < 0.02
    assert starts > max(ends) + 0.1


def test_between_them_the_bound_falls_and_the_distance_grows():
    queries = lists(3)
    first = np.array([1.0, 1.0, 0.0])
    alphas = [10.0**power for power in range(3, -4, -1)]
    model = TwoStage("AP", first=first, alpha=alphas, folds=2).fit(queries)
    assert model.path_["alpha"].tolist() == alphas
    loss = model.path_["loss"]
    assert (np.diff(loss) <= 1e-3).all()
    assert loss[-1] < loss[0] - 0.05
    distance = 2 * (model.path_["objective"] - loss) / model.path_["alpha"]
    assert (np.diff(distance) >= -1e-3).all()


# ------------------------------------------------------------------------------------------- the minimum


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [0.02, 0.5, 10.0])
def test_the_minimum_is_that_of_a_quadratic_programme_over_all_rankings(weighted, alpha):
    """slack_q >= 1 - AP(pi) - (F(perfect) - F(pi)) for every ranking pi of every list."""
    queries = lists(4, count=8, weighted=weighted, longest=4)
    first = np.array([0.5, 0.5, 0.5])
    model = TwoStage("AP", first=first, alpha=alpha, tolerance=1e-9, scale="none").fit(queries)
    able = [query for query in queries if query.y.max() > 0]
    total = sum(query.weight for query in able)
    rows, bounds, owner, costs = [], [], [], []
    for query in able:
        relevant = query.y > 0
        if relevant.all():
            continue
        costs.append(query.weight / total)
        orders = oracle.all_orders(len(query))
        worth = oracle.reached(parse("AP"), orders, query.y)
        vectors = [oracle.vector(order, query.X, oracle.class_score, relevant=relevant) for order in orders]
        perfect = vectors[int(np.argmax(worth))]
        rows += [perfect - one for one in vectors]
        bounds += list(1 - worth)
        owner += [len(costs) - 1] * len(orders)
    given = (np.array(rows), np.array(bounds), np.array(owner), np.array(costs), alpha)
    expected, least = oracle.programme(*given, center=model.length_ * first)
    assert model.path_["objective"][0] == pytest.approx(least, rel=1e-6)
    np.testing.assert_allclose(model.coef_, expected, atol=1e-3 * (1 + np.abs(expected).max()))


@pytest.mark.parametrize(
    ("measure", "loss"),
    [
        ("AP", SVMMapHinge(rel=1)),
        ("AP(rel=2)", SVMMapHinge(rel=2)),
        ("nDCG", NDCGHinge(normalized=True)),
        ("nDCG(dcg='log2')@2", NDCGHinge(k=2, gain="linear", normalized=True)),
    ],
)
def test_the_loss_is_the_mean_bound_and_above_what_the_measure_misses(measure, loss):
    queries = lists(5, labels=2, weighted=True)
    model = TwoStage(measure, first="ridge", alpha=0.1).fit(queries)
    if measure != "AP(rel=2)":
        assert model.path_["loss"][0] == pytest.approx(mean_bound(loss, queries, model.coef_))
    pessimistic = rw.evaluate(queries, model.predict(queries), [measure], ties="pessimistic").mean
    assert model.path_["loss"][0] >= 1 - next(iter(pessimistic.values())) - 1e-9


@pytest.mark.parametrize("measure", ["AP", "nDCG@3"])
def test_the_length_of_the_first_weights_makes_the_bound_smallest_along_them(measure):
    queries = lists(6)
    first = np.array([1.0, 0.2, -0.4])
    model = TwoStage(measure, first=first, alpha=1.0).fit(queries)
    loss = SVMMapHinge(rel=1) if measure == "AP" else NDCGHinge(k=3, normalized=True)
    reached = mean_bound(loss, queries, model.length_ * first)
    along = [mean_bound(loss, queries, length * first) for length in model.length_ * np.geomspace(1e-3, 1e3, 61)]
    assert reached <= min(along) + 1e-6
    longer = TwoStage(measure, first=1000 * first, alpha=1.0).fit(queries)
    assert longer.length_ == pytest.approx(model.length_ / 1000, rel=1e-3)


def test_first_weights_that_point_the_wrong_way_become_short_but_keep_their_ranking():
    queries = lists(7)
    wrong = -RidgeRanker("AP", alpha=1.0).fit(queries).coef_
    model = TwoStage("AP", first=wrong, alpha=1e12).fit(queries)
    assert 0 < model.length_ * np.abs(wrong).max() < 1e-3
    assert order_of(model, queries) == np.lexsort((-(queries.X @ wrong), queries.query_of_row)).tolist()


def test_any_convex_loss_will_do_for_a_second_stage():
    queries = lists(8, labels=2)
    model = TwoStage("P@2", first="ridge", second=PairHinge(), alpha=0.1).fit(queries)
    assert model.path_["loss"][0] == pytest.approx(mean_bound(PairHinge(), queries, model.coef_))


# ------------------------------------------------------------------------------------------- choices


def test_the_strength_is_the_best_of_a_plain_loop_over_the_validation_set():
    train, other = lists(9), lists(10)
    alphas = (100.0, 1.0, 0.01)
    model = TwoStage("AP", first="ridge", alpha=alphas, tolerance=1e-8).fit(train, validation=other)
    first = RidgeRanker("AP", refit="train").fit(train, validation=other).coef_
    np.testing.assert_array_equal(model.first_, first)
    alone = [TwoStage("AP", first=first, alpha=one, tolerance=1e-8).fit(train) for one in alphas]
    np.testing.assert_allclose(model.path_["AP"], [one.score(other) for one in alone])
    best = int(np.argmax(model.path_["AP"]))
    assert model.alpha_ == alphas[best]
    np.testing.assert_allclose(model.coef_, alone[best].coef_, rtol=1e-2, atol=1e-3)
    assert model.score(other) == model.path_["AP"].max()


def test_without_a_validation_set_folds_choose_and_every_first_stage_sees_its_own_part_only():
    queries, alphas = lists(11), (10.0, 0.1)
    options = {"first": "ridge", "scale": "none", "tolerance": 1e-8, "folds": 3, "random_state": 5}
    model = TwoStage("AP", alpha=alphas, **options).fit(queries)
    parts = np.array_split(np.random.default_rng(5).permutation(15), 3)
    judged = [
        np.nanmean(
            [
                TwoStage("AP", alpha=one, **options).fit(queries[np.setdiff1d(range(15), part)]).score(queries[part])
                for part in parts
            ]
        )
        for one in alphas
    ]
    np.testing.assert_allclose(model.path_["AP"], judged)
    assert model.alpha_ == alphas[int(np.argmax(judged))]


def test_lists_of_weight_zero_are_left_out():
    queries = lists(12)
    weight = np.ones(15)
    weight[[2, 7]] = 0
    options = {"first": np.array([1.0, 0.0, 0.0]), "alpha": 0.1, "scale": "none", "tolerance": 1e-9}
    some = TwoStage("AP", **options).fit(queries.with_weight(weight))
    without = TwoStage("AP", **options).fit(queries[weight > 0])
    assert some.path_["objective"][0] == pytest.approx(without.path_["objective"][0], rel=1e-8)
    assert some.length_ == pytest.approx(without.length_)


# ------------------------------------------------------------------------------------------- Ctrl-C, files, sentences


@pytest.mark.parametrize("finished", [0, 1, 2])
def test_ctrl_c_keeps_the_strengths_that_are_done(finished, monkeypatch):
    train, other, calls = lists(13), lists(14), []
    original, first = two_stage.measure_of_weights, np.array([1.0, 0.0, -1.0])

    def measured(*given):
        calls.append(1)
        if len(calls) > 2 * finished:  # training and validation lists
            raise KeyboardInterrupt
        return original(*given)

    monkeypatch.setattr(two_stage, "measure_of_weights", measured)
    model = TwoStage("AP", first=first, alpha=(10.0, 1.0, 0.1))
    with pytest.raises(KeyboardInterrupt) as stopped:
        model.fit(train, validation=other)
    monkeypatch.undo()
    assert isinstance(stopped.value, Interrupted) == (finished > 0)
    assert hasattr(model, "coef_") == (finished > 0)
    if finished:
        fewer = TwoStage("AP", first=first, alpha=(10.0, 1.0)[:finished]).fit(train, validation=other)
        np.testing.assert_array_equal(model.coef_, fewer.coef_)
        assert model.path_ == fewer.path_


def test_ctrl_c_in_the_first_stage_leaves_the_ranker_as_it_was(monkeypatch):
    def stopped(first, *_):
        raise Interrupted("AdaRank was stopped", first)

    model = TwoStage("AP", first=np.ones(3), alpha=1.0).fit(lists(13))
    before = model.coef_
    monkeypatch.setattr(AdaRank, "_fit", stopped)
    for one in (model.set_params(first="adarank"), TwoStage("AP", alpha=1.0)):
        with pytest.raises(KeyboardInterrupt) as error:
            one.fit(lists(13)[:5])
        assert not isinstance(error.value, Interrupted)
    assert model.coef_ is before
    assert not hasattr(one, "n_features_in_")


@pytest.mark.parametrize("first", ["ridge", "ranker", "vector"])
def test_a_saved_model_has_the_same_bits_and_path(first, tmp_path):
    queries = lists(15)
    given = {"ridge": "ridge", "ranker": RidgeRanker(alpha=1.0).fit(queries), "vector": np.array([1.0, 2.0, 3.0])}
    model = TwoStage("AP", first=given[first], second=SVMMapHinge(), alpha=(0.1, 1.0), folds=2).fit(queries)
    model.save(tmp_path / "model.rankwise")
    copy = rw.load(tmp_path / "model.rankwise")
    for name in ("coef_", "first_"):
        np.testing.assert_array_equal(getattr(copy, name), getattr(model, name))
    assert (copy.alpha_, copy.length_, copy.path_) == (model.alpha_, model.length_, model.path_)
    again = clone(copy).fit(queries)  # what was a ranker is now its weights
    np.testing.assert_array_equal(again.coef_, model.coef_)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"first": "listnet"}, "'first' parameter of"),
        ({"first": RidgeRanker()}, "'first' parameter of"),
        ({"first": [1.0, 2.0]}, "first must have one weight per feature, 3, got 2 weights"),
        ({"first": [1.0, 2.0, np.nan]}, "'first' parameter of"),
        ({"measure": "P@3"}, "the second stage has bounds for AP and nDCG, got P@3: pass a convex loss"),
        ({"measure": "AP@3"}, "the second stage has bounds for AP and nDCG, got AP@3: pass a convex loss"),
        ({"second": SmoothNDCG()}, "'second' parameter of"),
        ({"second": "hinge"}, "'second' parameter of"),
        ({"alpha": 0.0}, "'alpha' parameter of"),
        ({"alpha": "weak"}, "'alpha' parameter of"),
        ({"tolerance": 1.0}, "'tolerance' parameter of"),
        ({"scale": "log"}, "'scale' parameter of"),
    ],
)
def test_what_it_cannot_mean_is_refused_in_a_sentence(wrong, sentence):
    model = TwoStage(**{"first": np.ones(3), "alpha": 1.0, **wrong})
    with pytest.raises(RankwiseError, match=sentence) as error:
        model.fit(lists())
    assert "\n" not in str(error.value)
    assert not hasattr(model, "coef_")


def test_first_weights_too_large_for_the_features_are_refused():
    queries = lists(16)
    huge = Queries.from_arrays(1e200 * queries.X, queries.y, group=queries.sizes)
    with pytest.raises(DataError, match="first stage are not finite"):
        TwoStage("AP", first=np.full(3, 1e200), alpha=1.0).fit(huge)
