"""What the experiment on categories with many levels makes of its data, and what it stores."""

import json

import numpy as np
import pytest

from experiments import boosted_categories
from experiments.boosted_categories import CODE, MOST, SHRINK


@pytest.mark.parametrize("skewed", [False, True])
def test_a_statistic_has_seen_no_label_of_its_query(skewed):
    own = boosted_categories.draw(100, skewed, 40, 0)
    before, held = boosted_categories.statistics(own)
    for query in (0, 17):
        rows = own.train.query_of_row == query
        wrong = own.train.with_labels(np.where(rows, 4 - own.train.y, own.train.y))
        after, _ = boosted_categories.statistics(own._replace(train=wrong))
        np.testing.assert_array_equal(before[rows], after[rows])
        assert (before != after).any()
    code = int(own.held.X[0, CODE])
    label, query = own.train.y, own.train.query_of_row
    inside = own.train.X[:, CODE] == code
    away = [label[row] - label[query == query[row]].mean() for row in np.flatnonzero(inside)]
    assert held[0] == pytest.approx(sum(away) / (inside.sum() + SHRINK))


def test_the_most_frequent_levels_keep_a_code_and_all_others_share_one():
    own = boosted_categories.draw(100, True, 40, 0)
    codes = boosted_categories.frequent(own.train, own.train)
    count = np.bincount(codes.astype(int))
    assert len(count) == MOST + 1
    assert (np.diff(count[:MOST]) <= 0).all()
    assert boosted_categories.frequent(own.held, own.train).max() == MOST


def test_every_ranker_is_compared_with_lightgbm():
    stored = json.loads(boosted_categories.NUMBERS.read_text(encoding="utf-8"))
    assert list(stored) == [name for name, *_ in boosted_categories.worlds()]
    for one in stored.values():
        assert list(one["means"]) == list(boosted_categories.RANKERS)
        for ranker, (gain, low, high) in one["gains"].items():
            assert low <= gain <= high
            assert one["means"][boosted_categories.SETS] - one["means"][ranker] == pytest.approx(gain)


def test_a_summary_holds_means_and_paired_differences():
    draws = {name: [[0.5, 0.25 * (name == boosted_categories.SETS)]] * 3 for name in boosted_categories.RANKERS}
    found = boosted_categories.summary({"world": draws})["world"]
    assert found["means"][boosted_categories.SETS] == 0.375
    assert found["gains"]["codes as numbers"][0] == 0.125
    assert boosted_categories.SETS not in found["gains"]
