"""What cannot be compared is refused in one sentence that names it, before anything is learned."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from rankwise import Queries, RidgeRanker, compare, kfold, make_lists, split
from rankwise.errors import RankwiseError
from rankwise.io import Fold
from rankwise.measures import parse


@pytest.fixture(scope="module")
def lists():
    return make_lists(30, documents=6, features=3, random_state=3)


class Never:
    """A ranker that must not be asked to learn."""

    def fit(self, queries):
        raise AssertionError("learned although the call is refused")

    def predict(self, queries):
        raise AssertionError("scored although the call is refused")


def refused(match, *args, **options):
    with pytest.raises(RankwiseError, match=match) as told:
        compare(*args, **options)
    assert "\n" not in str(told.value)


def test_rankers_that_are_none(lists):
    refused("at least one ranker", {}, lists)
    refused("names of rankers must be strings, got 3", {3: Ridge()}, lists)
    refused("two rankers are named 'Ridge'", [Ridge(), Ridge(alpha=2)], lists)
    refused("got the class Ridge: pass Ridge", {"a": Ridge}, lists)
    refused("'a' is int", {"a": 3}, lists)
    refused("no ranker is called 'nonsense': a ranker must be a file, or one of AdaRank", {"a": "nonsense"}, lists)
    refused("scores require a name", [np.zeros(3)], lists)


def test_names_that_nobody_has(lists):
    refused("baseline must be one of 'a', got 'b'", {"a": Never()}, lists, baseline="b")
    refused("grids names 'b'", {"a": Never()}, lists, grids={"b": {}})
    refused("grid of 'a' names 'beta'", {"a": Ridge()}, lists, grids={"a": {"beta": [1]}})
    refused("expected a list", {"a": Ridge()}, lists, grids={"a": {"alpha": 1.0}})
    refused("is not fitted in this comparison", {"a": np.zeros(180)}, lists, grids={"a": {"alpha": [1.0]}})


def test_conventions_that_are_none(lists):
    refused("level", {"a": Never()}, lists, level=95)
    refused("'holm', 'bh' or 'none'", {"a": Never()}, lists, correction="bonferroni")
    refused("parameter of compare must be 't'", {"a": Never(), "b": Never()}, lists, test="guess")
    weighted = lists.with_weight(np.arange(30))
    refused("does not support query weights", {"a": Never(), "b": Never()}, weighted, test="sign")
    refused("ties", {"a": Never()}, lists, ties="guess")
    refused("empty must be one of", {"a": Never()}, lists, empty="guess")
    refused("lightgbm cannot measure", {"a": Never()}, lists.with_labels(lists.y + 0.5), like="lightgbm")
    refused(
        "'random_state' parameter of compare must be an int",
        {"a": Never()},
        lists,
        random_state=np.random.default_rng(0),
    )
    refused("nonsense", {"a": Never()}, lists, "nonsense")
    refused("nonsense", {"a": Never()}, lists, choose_by="nonsense")


def test_scores_of_a_wrong_length(lists, tmp_path):
    refused(r"scores of 'a' have shape \(3,\).*has 180", {"a": np.zeros(3)}, lists)
    folds = list(kfold(lists, 3))
    refused("all folds together, which has 180", {"a": np.zeros(3)}, folds)
    refused("test part of fold 1, which has 60", {"a": [np.zeros(3)] * 3}, folds)
    (tmp_path / "short").write_text("1\n2\n")
    refused("\\(180\\), got 2", {"a": tmp_path / "short"}, lists)
    refused("NaN at row 0", {"a": np.full(180, np.nan)}, lists)


def test_data_that_are_no_folds(lists):
    refused("1 .* or an integer of at least 3, got 2", {"a": Never()}, lists, folds=2)
    refused("30 queries are too few for 31", {"a": Never()}, lists, folds=31)
    refused("already divided into folds", {"a": Never()}, list(kfold(lists, 3)), folds=3)
    refused("at least one fold", {"a": Never()}, [])
    refused("got int", {"a": Never()}, 3)
    refused("fold 1 must be", {"a": Never()}, [lists])
    refused("no labels", {"a": Never()}, lists.with_labels(None))
    refused("no query in its train part", {"a": Never()}, [Fold(lists[:0], lists[:5], lists[5:])])
    narrow = lists.map_features(lambda X: X[:, :2])
    refused("must have the same features, got 2 in its train part", {"a": Never()}, [(narrow[:5], lists[5:])])


def test_folds_that_share_lists(lists):
    train, validation, test = split(lists)
    shared = validation.names()[0]
    refused(f"query '{shared}' is in the train part and in the validation part of fold 1", {"a": Never()},
            [Fold(Queries.concat([train, validation]), validation, test)])  # fmt: skip
    refused("tested in fold 1 and in fold 2", {"a": Never()}, [Fold(train, validation, test)] * 2)


def test_a_model_is_not_tested_on_what_it_learned_from(lists):
    train, test = split(lists, (0.6, 0.4))
    model = RidgeRanker().fit(train)
    refused("'mine' learned from 18 of the 30 test queries", {"mine": model}, lists)
    assert compare({"mine": model}, test).rankers == ["mine"]


def test_what_fails_is_told_with_the_ranker_and_the_fold(lists):
    class Failing(Never):
        def fit(self, queries):
            raise ZeroDivisionError("no such luck\nand more")

    for jobs in (1, 2):
        refused("^mine on fold [123]: no such luck$", {"mine": Failing()}, lists, folds=3, n_jobs=jobs)


def test_a_measure_object_is_a_measure(lists):
    assert compare({"a": lists.y}, lists, parse("AP")).titles == ("AP",)
