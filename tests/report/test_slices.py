"""Slices of a report: means and paired differences of groups of queries, corrected for all of them together."""

import numpy as np
import pytest

from rankwise import compare, make_lists
from rankwise.errors import DataError
from rankwise.evaluation import correct, paired_test
from rankwise.report.slices import groups_of, slice_results


@pytest.fixture(scope="module")
def found():
    lists = make_lists(60, documents=(3, 12), features=3, random_state=5)
    return compare({"a": lists.X[:, 0], "b": lists.X[:, 1], "c": lists.X[:, 2]}, lists, ["nDCG@5", "AP"])


def test_rows_are_what_plain_tests_of_the_queries_of_a_group_give(found):
    names = found.queries.names()
    kinds = {name: ("odd" if place % 2 else "even") for place, name in enumerate(names)}
    said = slice_results(found, {"parity": kinds, "size": lambda query: "long" if len(query) > 6 else "short"})
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
    said = slice_results(found, {"some": {names[0]: "x", names[1]: "x", names[2]: None}})["slices"][0]
    assert said["left_out"] == 58
    assert {row["group"] for row in said["rows"]} == {"x"}


def test_groups_with_numbers_stand_in_their_order(found):
    said = slice_results(found, {"tenth": [place // 5 for place in range(60)]})["slices"][0]
    assert list(dict.fromkeys(row["group"] for row in said["rows"])) == [str(place) for place in range(12)]


@pytest.mark.parametrize(
    ("slices", "complaint"),
    [
        ([True], "slices must be a dict of slices by their names, got list"),
        ({"a": [True]}, "slice 'a' must have one group for each of the 60 queries, got 1"),
        ({"a": {"nobody": 1}}, "slice 'a' must name queries such as 'q1', got ids such as 'nobody'"),
        ({"a": lambda query: query.nothing}, "slice 'a' fails on query 'q1'"),
        ({"a": lambda query: None}, "slice 'a' must have 1 to 200 groups, got 0"),
    ],
)
def test_a_slice_that_does_not_fit_is_named(found, slices, complaint):
    with pytest.raises(DataError, match=complaint):
        slice_results(found, slices)


def test_without_slices_there_is_no_section(found):
    assert slice_results(found, None) is None
    assert slice_results(found, {}) is None


# ------------------------------------------------------------------------------------------- hostile slices


class Nameless:
    def __str__(self):
        raise ValueError("no text")


@pytest.mark.parametrize(
    ("one", "complaint"),
    [
        ([["a"]] * 60, "must give each query one group, got a list"),
        ([["a"], ["b", "c"]] * 30, "must give each query one group, got a list"),
        (np.zeros((60, 2)), "must give each query one group, got a list"),
        (lambda query: query.X, "must give each query one group, got a ndarray"),
        (lambda query: Nameless(), "has a group without a text: no text"),
        ("abc", "must be one group per query, a function or a mapping from query ids, got str"),
        ({"a", "b"}, "got set"),
        (3, "got int"),
        ([1], "must have one group for each of the 60 queries, got 1"),
        (range(1_000), "got more than 60"),
        (["x" * 301] * 60, "has groups of up to 300 characters, got 301"),
        ([float("nan")] * 60, "must have 1 to 200 groups, got 0"),
        ({}, "must name queries such as '.*', got no id"),
    ],
)
def test_hostile_slices_are_one_sentence(found, one, complaint):
    with pytest.raises(DataError, match=complaint):
        slice_results(found, {"s": one})


def test_slices_have_names_that_can_be_told_apart_and_shown(found):
    with pytest.raises(DataError, match="slices must have different names, got 1, '1'"):
        slice_results(found, {1: [True] * 60, "1": [False] * 60})
    with pytest.raises(DataError, match="a slice has a name of up to 300 characters, got 301"):
        slice_results(found, {"x" * 301: [True] * 60})


@pytest.mark.parametrize("missing", [None, float("nan"), np.float64("nan")])
def test_what_is_missing_is_no_group_also_beside_texts(found, missing):
    """NumPy would turn the list into texts, and NaN into a group of that name."""
    assert set(groups_of(found, "s", ["a", missing] * 30)) == {"a", ""}


def test_pandas_and_masked_arrays_say_what_is_missing(found):
    pandas = pytest.importorskip("pandas")
    for one in (
        pandas.Series(["a", pandas.NA] * 30, dtype="string"),
        pandas.Categorical(["a", None] * 30),
        pandas.Series([pandas.Timestamp("2024-01-01"), pandas.NaT] * 30),
        np.ma.array([1, 2] * 30, mask=[False, True] * 30),
    ):
        group = groups_of(found, "s", one)
        assert (group[1::2] == "").all()
        assert len(set(group[::2]) - {""}) == 1


def test_groups_come_in_one_order_however_they_are_hashed(found):
    for names, expected in (
        (["1", "01", "1.0"], ["01", "1", "1.0"]),
        (["nan", "1", "0"], ["0", "1", "nan"]),
        (["10", "9", "inf"], ["9", "10", "inf"]),
        (["b", "10", "9"], ["10", "9", "b"]),
    ):
        (one,) = slice_results(found, {"s": names * 20})["slices"]
        assert list(dict.fromkeys(row["group"] for row in one["rows"])) == expected


def test_a_slice_of_one_query_has_a_mean_and_no_interval(found):
    (one,) = slice_results(found, {"s": [True] + [None] * 59})["slices"]
    assert one["left_out"] == 59
    for row in one["rows"]:
        assert row["low"] is None
        assert row["queries"] == (row["mean"] is not None)
