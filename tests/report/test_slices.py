"""Slices of a report: means and paired differences of groups of queries, corrected for all of them together."""

import numpy as np
import pytest

from rankwise import DataError, correct, make_lists, paired_test
from rankwise._api import compare
from rankwise.report.slices import groups_of, sliced


@pytest.fixture(scope="module")
def found():
    lists = make_lists(60, documents=(3, 12), features=3, random_state=5)
    return compare({"a": lists.X[:, 0], "b": lists.X[:, 1], "c": lists.X[:, 2]}, lists, ["nDCG@5", "AP"])


def test_rows_are_what_plain_tests_of_the_queries_of_a_group_give(found):
    names = found.queries.names()
    kinds = {name: ("odd" if place % 2 else "even") for place, name in enumerate(names)}
    said = sliced(found, {"parity": kinds, "size": lambda query: "long" if len(query) > 6 else "short"})
    sizes = np.array([len(query) for query in found.queries])
    inside = {
        "odd": np.arange(60) % 2 == 1,
        "even": np.arange(60) % 2 == 0,
        "long": sizes > 6,
        "short": sizes <= 6,
    }
    rows = [row for one in said["slices"] for row in one["rows"]]
    assert len(rows) == 4 * 2 * 3
    tested = []
    for row in rows:
        own, base = (found.results[name][row["measure"]][inside[row["group"]]] for name in (row["ranker"], "a"))
        assert row["queries"] == np.isfinite(own).sum()
        assert row["mean"] == pytest.approx(np.nanmean(own), rel=1e-12)
        assert row["low"] <= row["mean"] <= row["high"]
        if row["ranker"] == "a":
            assert row["verdict"] == "baseline"
            assert row["p"] is None
            continue
        expected = paired_test(own, base)
        assert (row["difference"], row["p"]) == (expected.difference, expected.p_value)
        assert row["difference_low"] <= row["difference"] <= row["difference_high"]
        tested.append(row)
    np.testing.assert_allclose([row["p_corrected"] for row in tested], correct([row["p"] for row in tested]))
    assert said["tests"] == len(tested) == 16
    for row in tested:
        shown = row["p_corrected"] <= 0.05
        assert row["verdict"] == (("better" if row["difference"] > 0 else "worse") if shown else "not shown")


def test_a_mask_a_list_and_a_mapping_may_say_the_same(found):
    long = np.array([len(query) > 6 for query in found.queries])
    names = found.queries.names()
    for one in (long, long.tolist(), dict(zip(names, long, strict=True)), lambda query: len(query) > 6):
        np.testing.assert_array_equal(groups_of(found, "long", one), np.where(long, "yes", "no"))


def test_queries_without_a_group_are_left_out_and_counted(found):
    names = found.queries.names()
    said = sliced(found, {"some": {names[0]: "x", names[1]: "x", names[2]: None}})["slices"][0]
    assert said["left_out"] == 58
    assert {row["group"] for row in said["rows"]} == {"x"}


def test_groups_with_numbers_stand_in_their_order(found):
    said = sliced(found, {"tenth": [place // 5 for place in range(60)]})["slices"][0]
    assert list(dict.fromkeys(row["group"] for row in said["rows"])) == [str(place) for place in range(12)]


@pytest.mark.parametrize(
    ("slices", "complaint"),
    [
        ([True], "slices are given by name"),
        ({"a": [True]}, r"slice 'a' holds one group per query: found shape \(1,\) for 60 queries"),
        ({"a": {"nobody": 1}}, "slice 'a' names none of the queries: found such as 'nobody'"),
        ({"a": lambda query: query.nothing}, "slice 'a' fails on query 'q1'"),
        ({"a": lambda query: None}, "slice 'a' has 1 to 200 groups: found 0"),
    ],
)
def test_a_slice_that_does_not_fit_is_named(found, slices, complaint):
    with pytest.raises(DataError, match=complaint):
        sliced(found, slices)


def test_without_slices_there_is_no_section(found):
    assert sliced(found, None) is None
    assert sliced(found, {}) is None
