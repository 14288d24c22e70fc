"""``warm_start``: a fitted BoostedRanker that grows further trees, with the bits of those that are grown at once."""

import copy
from contextlib import nullcontext

import numpy as np
import pytest

import rankwise as rw
from rankwise import losses
from rankwise.errors import DataError, Interrupted, RankwiseError
from rankwise.rankers.boosting import symmetric
from tests.rankers.boosting.test_symmetric_boosting import queries
from tests.rankers.test_every_ranker import learned

GROWN = {"patience": None, "depth": 3, "n_jobs": 1}


def continued(lists, first, trees, folder=None, again=None, **settings):
    """A ranker of ``first`` trees, saved and loaded, that was continued to ``trees``."""
    model = rw.BoostedRanker(trees=first, warm_start=True, **{**GROWN, **settings}).fit(lists)
    if folder is not None:
        model.save(folder / "first.rankwise")
        model = rw.load(folder / "first.rankwise")
    return model.set_params(trees=trees).fit(lists if again is None else again)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"start": "ridge"},
        {"loss": losses.StochasticNDCG(k=5), "row_fraction": 0.5},
        {"feature_fraction": 0.5, "loss": losses.ListNet(target="gains")},
        {"additive": True, "depth": 2, "monotone": {"a": 1}},
    ],
    ids=str,
)
def test_trees_that_are_continued_after_a_reload_have_the_bits_of_those_grown_at_once(settings, tmp_path):
    lists = queries(60, holes=0.0 if "start" in settings else 0.1)
    at_once = rw.BoostedRanker(trees=30, warm_start=True, **{**GROWN, **settings}).fit(lists)
    for folder in (None, tmp_path):
        model = continued(lists, 18, 30, folder, **settings)
        assert model.trees_ == model.ensemble_.n_trees == 30
        assert learned(model) == learned(at_once)
        np.testing.assert_array_equal(model.predict(lists), at_once.predict(lists))
    thrice = continued(lists, 5, 18, **settings).set_params(trees=30).fit(lists)
    assert learned(thrice) == learned(at_once)
    assert learned(thrice.fit(lists)) == learned(at_once), "nothing is lacking"


def test_shape_functions_and_importances_are_those_of_all_trees():
    lists = queries(60)
    model = rw.BoostedRanker(trees=4, additive=True, warm_start=True, **{**GROWN, "depth": 1}).fit(lists)
    few = repr(model.shapes_)
    model.set_params(trees=40).fit(lists)
    whole = rw.BoostedRanker(trees=40, additive=True, **{**GROWN, "depth": 1}).fit(lists)
    np.testing.assert_array_equal(model.feature_importances_, whole.feature_importances_)
    assert repr(model.shapes_) == repr(whole.shapes_) != few


def test_other_queries_may_continue_and_count_as_seen():
    first, second = queries(60), queries(60, seed=1)
    model = rw.BoostedRanker(trees=20, warm_start=True, **GROWN).fit(first)
    before = model.predict(second)
    model.set_params(trees=50).fit(second)
    assert model.ensemble_.n_trees == 50
    assert model.score(second) > rw.evaluate(second, before, "nDCG@10").mean["nDCG@10"]
    kinds = [row.kind for row in model.certificate(None, first).rows if row.applies]
    assert "hold-out" not in kinds, "the first queries were learned from"


def test_several_models_continue_from_their_mean_whatever_chose_them():
    lists = queries(80)
    searched = rw.BoostedRanker(trees=30, folds=3, seeds=2, depth=3, n_jobs=1).fit(lists)
    model = copy.deepcopy(searched).set_params(patience=None, warm_start=True, trees=searched.trees_ + 10).fit(lists)
    further = model.ensemble_.n_trees - searched.ensemble_.n_trees
    assert (model.trees_, further) == (searched.trees_ + 10, 20)
    kept = model.ensemble_.first(searched.ensemble_.n_trees)
    np.testing.assert_array_equal(kept.predict(lists.X), searched.predict(lists))
    assert model.score(lists) > searched.score(lists)


def test_leaf_wise_trees_continue_too():
    pytest.importorskip("lightgbm")
    lists = queries(80)
    settings = {"engine": "lightgbm", "depth": None, "leaves": 6, "seeds": 1, "start": "ridge"}
    model = rw.BoostedRanker(trees=10, warm_start=True, **{**GROWN, **settings}).fit(lists)
    before = model.score(lists)
    model.set_params(trees=40).fit(lists)
    assert model.ensemble_.n_trees == 40
    assert model.score(lists) > before + 0.02


def test_named_features_are_matched_and_others_refused():
    lists = queries(60)
    moved = lists.select_features(["c", "a", "d", "b"])
    one, other = (continued(lists, 10, 20, again=again) for again in (lists, moved))
    assert learned(one) == learned(other)
    assert other.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    model = rw.BoostedRanker(trees=5, warm_start=True, **GROWN).fit(lists)
    for wrong in (lists.select_features(["a", "b"]), queries(20, names=("a", "b", "c", "e"))):
        with pytest.raises((DataError, RankwiseError)):
            model.fit(wrong)
    assert model.trees_ == 5


def test_what_was_grown_before_and_after_is_kept_after_an_interrupt(monkeypatch, tmp_path):
    lists = queries(60)
    model = rw.BoostedRanker(trees=10, warm_start=True, **GROWN).fit(lists)
    first = learned(model)
    grow, left = symmetric.SymmetricModel.grow, [1]

    def interrupted(self):
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        grow(self)

    monkeypatch.setattr(symmetric.SymmetricModel, "grow", interrupted)
    left[0] = 0
    with pytest.raises(KeyboardInterrupt) as stopped:
        model.set_params(trees=30).fit(lists)
    assert not isinstance(stopped.value, Interrupted)
    assert learned(model) == first, "stopped before a further tree"
    left[0] = 7
    with pytest.raises(Interrupted):
        model.fit(lists)
    monkeypatch.undo()
    assert model.trees_ == model.ensemble_.n_trees == 17
    model.save(tmp_path / "stopped.rankwise")
    model = rw.load(tmp_path / "stopped.rankwise").fit(lists)
    assert learned(model) == learned(rw.BoostedRanker(trees=30, warm_start=True, **GROWN).fit(lists))


@pytest.mark.parametrize("kind", ["constant features", "equal labels"])
def test_where_nothing_more_can_be_learned_the_trees_stay_as_they_are(kind):
    lists = queries(40)
    model = rw.BoostedRanker(trees=10, warm_start=True, **GROWN).fit(lists)
    before = model.predict(lists)
    X, y = lists.X, lists.y
    dull = (np.ones_like(X), y) if kind == "constant features" else (X, np.ones_like(y))
    with pytest.warns(rw.errors.NothingLearnedWarning) if kind == "equal labels" else nullcontext():
        model.set_params(trees=20).fit(*dull, group=lists.sizes)
    np.testing.assert_array_equal(model.predict(lists), before)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"patience": 5}, "'patience' parameter .* None with warm_start=True.* Got 5"),
        ({"patience": "auto"}, "'patience' parameter .* None with warm_start=True"),
        ({"sigmas": (1.0,), "loss": losses.SmoothNDCG(), "start": "ridge"}, "'sigmas' .* None with warm_start=True"),
        ({"engine": "catboost"}, "'warm_start' parameter .* False for engine='catboost'"),
    ],
)
def test_what_cannot_be_continued_is_refused(given, message):
    with pytest.raises(RankwiseError, match=message):
        rw.BoostedRanker(**{"patience": None, "warm_start": True, **given}).fit(queries(10))


def test_a_linear_start_has_no_use_for_gaps_later_either():
    model = rw.BoostedRanker(trees=5, start="ridge", warm_start=True, **GROWN).fit(queries(20))
    with pytest.raises(DataError, match="BoostedRanker that began with start="):
        model.set_params(start=None, trees=8).fit(queries(20, holes=0.1))
    coef = model.ensemble_.coef
    np.testing.assert_array_equal(model.fit(queries(20)).ensemble_.coef, coef)


def test_fewer_trees_than_there_are_is_an_error():
    lists = queries(20)
    model = rw.BoostedRanker(trees=10, warm_start=True, **GROWN).fit(lists)
    with pytest.raises(RankwiseError, match=r"'trees' parameter .* at least 10, the trees of the fit .* Got 5"):
        model.set_params(trees=5).fit(lists)
    assert model.trees_ == 10
    assert rw.BoostedRanker(trees=5, **GROWN).fit(lists).fit(lists).trees_ == 5, "without it, a fit begins anew"
