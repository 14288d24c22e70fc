"""Settings are chosen on validation parts, the test parts are scored once, and nothing that was handed in changes."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

from rankwise import Queries, SLAMPerceptron, evaluate, kfold, make_lists
from rankwise.errors import DataError, RankwiseError
from rankwise.evaluation.comparison.selection import combinations, select


class Spy(BaseEstimator):
    """Scores by one feature, and remembers which lists it was fitted on, judged on and asked to rank."""

    seen: list = []  # noqa: RUF012 - shared by clones on purpose

    def __init__(self, feature=0, sign=1):
        self.feature = feature
        self.sign = sign

    def fit(self, queries):
        self.fitted_ = True
        Spy.seen.append(("fit", tuple(queries.names())))
        return self

    def predict(self, queries):
        Spy.seen.append(("predict", tuple(queries.names())))
        return self.sign * queries.X[:, self.feature]

    def score(self, queries):
        return evaluate(queries, self.predict(queries), "nDCG@5").mean["nDCG@5"]


@pytest.fixture
def folds():
    return list(kfold(make_lists(45, documents=6, features=3, random_state=3), 3))


def test_all_combinations_in_order():
    assert list(combinations({"a": [1, 2], "b": ["x", "y"]})) == [
        {"a": 1, "b": "x"},
        {"a": 1, "b": "y"},
        {"a": 2, "b": "x"},
        {"a": 2, "b": "y"},
    ]
    assert list(combinations({})) == [{}]


def test_the_choice_is_the_best_on_the_validation_part_and_the_test_part_is_ranked_once(folds):
    found = select({"spy": Spy()}, folds, grids={"spy": {"feature": [0, 1, 2], "sign": [1, -1]}})
    for fold, line in zip(folds, found.chosen, strict=True):
        worth = {
            (feature, sign): evaluate(fold.validation, sign * fold.validation.X[:, feature], "nDCG@5").mean["nDCG@5"]
            for feature in range(3)
            for sign in (1, -1)
        }
        assert line["validation"] == max(worth.values())
        assert worth[line["settings"]["feature"], line["settings"]["sign"]] == max(worth.values())
        assert line["tried"] == 6
    for fold in folds:  # one by one, because a fold's test part is another fold's validation part
        Spy.seen.clear()
        select({"spy": Spy()}, [fold], grids={"spy": {"feature": [0, 1, 2], "sign": [1, -1]}})
        assert Spy.seen.count(("predict", tuple(fold.test.names()))) == 1
        assert {names for what, names in Spy.seen if what == "fit"} == {tuple(fold.train.names())}


def test_scores_stand_in_the_order_of_the_test_lists(folds):
    found = select({"first": Spy(feature=0), "second": Spy(feature=1)}, folds)
    assert len(found.queries) == 45
    np.testing.assert_array_equal(found.queries.X, Queries.concat([fold.test for fold in folds]).X)
    np.testing.assert_array_equal(found.scores["second"], found.queries.X[:, 1])
    results = found.evaluate(["nDCG@5", "AP"])
    assert results["first"].mean == evaluate(found.queries, found.queries.X[:, 0], ["nDCG@5", "AP"]).mean


def test_another_measure_may_choose(folds):
    found = select({"spy": Spy()}, folds, grids={"spy": {"feature": [0, 1, 2]}}, measure="RR")
    for fold, line in zip(folds, found.chosen, strict=True):
        chosen = fold.validation.X[:, line["settings"]["feature"]]
        assert line["validation"] == evaluate(fold.validation, chosen, "RR").mean["RR"]


def test_rankers_are_cloned(folds):
    ranker = SLAMPerceptron()
    before = clone(ranker).get_params()
    select({"slam": ranker}, folds, grids={"slam": {"epochs": [1, 3]}})
    assert ranker.get_params() == before
    assert not hasattr(ranker, "coef_")


class Chooser(Spy):
    """Chooses for itself, on the validation part that it asks for."""

    takes_validation = True

    def fit(self, queries, validation=None):
        self.validated_on_ = validation.names()
        return super().fit(queries)


def test_who_chooses_for_himself_is_given_the_validation_part(folds):
    given = []

    class Remembering(Chooser):
        def fit(self, queries, validation=None):
            given.append(tuple(validation.names()))
            return super().fit(queries, validation)

    select({"chooser": Remembering()}, folds)
    assert given == [tuple(fold.validation.names()) for fold in folds]


def test_mistakes_in_the_call_are_named(folds):
    with pytest.raises(RankwiseError, match="'other'"):
        select({"spy": Spy()}, folds, grids={"other": {"feature": [0]}})
    with pytest.raises(DataError, match="fold"):
        select({"spy": Spy()}, [])
