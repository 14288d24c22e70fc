"""Bounds against the angle of w: exact by every permutation, ordered as theory says, and what the study shows."""

import json
import math
from functools import cache
from itertools import permutations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from experiments import bounds_by_angle as experiment
from experiments.bound_angles import bounds_by_angle, draw_bounds, two_clouds
from rankwise._figures import save_png
from rankwise.errors import DataError, RankwiseError
from rankwise.losses.permutation import TypeOne, TypeTwo, permutation_score
from tests.strategies import few

MAPS = ("pairs", "relevant")
EVEN, MIXED = (0.2, 0.2), (0.2, 1.3)
coordinates = st.one_of(st.sampled_from([-1.0, 0.0, 0.5, 1.0]), st.floats(-3, 3, allow_subnormal=False))


@st.composite
def planes(draw, most=5):
    """(X, labels) of one short list with both labels, ties among its features."""
    size = draw(st.integers(2, most))
    labels = draw(st.lists(st.sampled_from([0, 1]), min_size=size, max_size=size))
    assume(0 < sum(labels) < size)
    points = st.lists(st.tuples(coordinates, coordinates), min_size=size, max_size=size)
    return np.array(draw(points)), np.array(labels, dtype=float)


@cache
def study(variance, seed):
    return bounds_by_angle(*two_clouds(variance, random_state=seed), angles=72)


def average_precision(labels):
    """AP of labels by position, as on paper."""
    places = [place for place, label in enumerate(labels, start=1) if label]
    return sum(found / place for found, place in enumerate(places, start=1)) / len(places)


def by_every_order(scores, labels, mapped):
    """Type two, type two against the best perfect order, and the smallest margin, by all n! orders."""
    orders = [
        (average_precision(labels[list(order)]), permutation_score(order, scores, labels, mapped))
        for order in permutations(range(len(labels)))
    ]
    perfect = [score for reached, score in orders if reached > 1 - 1e-12]
    others = [(reached, score) for reached, score in orders if reached <= 1 - 1e-12]
    worth = [
        max((1 - reached) * math.exp(score - end) for reached, score in others) for end in (min(perfect), max(perfect))
    ]
    return *worth, min(perfect) - max(score for _, score in others)


# ------------------------------------------------------------------------------------------------------- exact


@few
@given(planes(), st.floats(0, 7))
def test_bounds_are_those_of_all_permutations(plane, angle):
    X, labels = plane
    found = bounds_by_angle(X, labels, angles=[angle])
    scores = X[:, 0] * np.cos(angle) + X[:, 1] * np.sin(angle)
    for mapped in MAPS:
        value, best, margin = by_every_order(scores, labels, mapped)
        assert found.type_two[mapped][0] == pytest.approx(value, rel=1e-10)
        assert found.margin[mapped][0] == pytest.approx(margin, abs=1e-10)
        if mapped == "pairs":
            assert found.best_sorted[0] == pytest.approx(best, rel=1e-10)


@pytest.mark.parametrize("measure", ["AP", "nDCG", "nDCG@3", "RR", "nDCG@2"])
@given(plane=planes(most=7), label=st.sampled_from([1.0, 2.0]))
@few
def test_bounds_are_those_of_the_losses_on_permutations(measure, plane, label):
    X, labels = plane[0], label * plane[1]
    found = bounds_by_angle(X, labels, angles=5, measure=measure)
    for place, t in enumerate(found.angle):
        scores = X[:, 0] * np.cos(t) + X[:, 1] * np.sin(t)
        assert found.type_one[place] == pytest.approx(TypeOne(measure)(scores, labels), rel=1e-12)
        for mapped in MAPS:
            exact = TypeTwo(measure, map=mapped, by="patterns")(scores, labels)
            assert found.type_two[mapped][place] == pytest.approx(exact, rel=1e-9, abs=1e-12)


@given(planes(most=7))
def test_every_bound_is_above_the_loss(plane):
    found = bounds_by_angle(*plane, angles=6)
    for bound in (found.type_one, *found.type_two.values(), found.best_sorted):
        assert (bound >= found.loss - 1e-12).all()
    assert (found.best_sorted <= found.type_two["pairs"] * (1 + 1e-12)).all()


@given(planes(), st.sampled_from([1.0, 30.0, 300.0]))
def test_type_two_is_the_tighter_bound_where_condition_9_holds(plane, scale):
    found = bounds_by_angle(scale * plane[0], plane[1], angles=8)
    for mapped in MAPS:
        holds = found.margin[mapped] >= found.reached
        assert (found.type_two[mapped][holds] <= found.type_one[holds]).all()


def test_condition_9_holds_once_scores_are_far_enough_apart():
    X, labels = two_clouds(relevant=3, irrelevant=4)
    assert bounds_by_angle(100 * X, labels, angles=8).summary()["condition"].tolist()[-1] > 0


def test_the_order_of_documents_changes_nothing():
    X, labels = two_clouds(MIXED, relevant=3, irrelevant=5, random_state=3)
    order = np.random.default_rng(0).permutation(8)
    first, second = bounds_by_angle(X, labels, angles=9), bounds_by_angle(X[order], labels[order], angles=9)
    assert first.table() == second.table()


# ------------------------------------------------------------------------------------ what the paper's study shows


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("variance", [EVEN, MIXED])
def test_with_all_pairs_type_two_is_looser_at_every_angle(variance, seed):
    found = study(variance, seed)
    assert (found.type_two["pairs"] > found.type_one).all()
    assert (found.best_sorted > found.type_one).all()  # even against the best of all perfect orders


@pytest.mark.parametrize(("variance", "tighter"), [(EVEN, (24, 28)), (MIXED, (19, 26))])
def test_with_relevant_against_irrelevant_type_two_is_tighter_at_about_a_third_of_the_angles(variance, tighter):
    counts = [(found.type_two["relevant"] < found.type_one).sum() for found in (study(variance, s) for s in range(5))]
    assert (min(counts), max(counts)) == tighter


@pytest.mark.parametrize(
    ("variance", "pairs", "relevant"), [(EVEN, (0.48, 0.53), (0.19, 0.21)), (MIXED, (0.66, 0.77), (0.22, 0.26))]
)
def test_values_toward_the_other_center(variance, pairs, relevant):
    found = [study(variance, seed) for seed in range(5)]
    for mapped, (low, high) in (("pairs", pairs), ("relevant", relevant)):
        values = [round(float(each.type_two[mapped][72 // 8]), 2) for each in found]
        assert (min(values), max(values)) == pytest.approx((low, high), abs=0.006)
    assert all(0.38 < each.best_sorted[72 // 8] < 0.45 for each in found)
    assert all(each.type_one[72 // 8] == pytest.approx(math.exp(-1), abs=0.01) for each in found)


@pytest.mark.parametrize("seed", range(5))
def test_the_minimum_of_the_mixed_lists_is_not_at_45_degrees(seed):
    found = study(MIXED, seed)
    assert 20 - 1e-9 <= found.degrees[found.type_two["relevant"].argmin()] <= 35 + 1e-9


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("variance", [EVEN, MIXED])
def test_condition_9_never_holds_in_the_study(variance, seed):
    found = study(variance, seed)
    assert found.summary()["condition"].tolist() == [None, 0, 0]
    assert (found.margin["pairs"] < 0).all()  # so that with all pairs no longer w would make it hold


def test_the_numbers_of_the_page_are_those_of_the_code():
    kept = json.loads(experiment.NUMBERS.read_text())
    for variance in experiment.VARIANCES:
        lists = kept["lists"][experiment.title_of(variance)]
        assert len(lists) == len(kept["seeds"])
        for seed, line in zip(kept["seeds"], lists, strict=True):
            found = experiment.row(study(variance, seed))
            assert line["at 45 degrees"] == pytest.approx(found["at 45 degrees"], rel=1e-6)
            for stated, bound in zip(line["bounds"], found["bounds"], strict=True):
                assert stated["smallest"] == pytest.approx(bound["smallest"], rel=1e-6)
                assert {**stated, "smallest": None} == {**bound, "smallest": None}
    assert experiment.table(kept).count("\n") == 7


# ------------------------------------------------------------------------------------------------- the object


def test_the_same_seed_gives_the_same_list():
    one, two, other = (two_clouds(MIXED, random_state=seed)[0] for seed in (1, 1, 2))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)
    assert np.array_equal(two_clouds(random_state=np.random.default_rng(4))[0], two_clouds(random_state=4)[0])


def test_table_and_summary_hold_the_arrays():
    found = bounds_by_angle(*two_clouds(relevant=2, irrelevant=3), angles=4)
    table = found.table()
    assert table["degrees"].tolist() == pytest.approx([0, 90, 180, 270])
    assert np.array_equal(table["type two, pairs"], found.type_two["pairs"])
    assert np.array_equal(table["loss"], 1 - found.reached)
    summary = found.summary()
    assert summary["smallest"][2] == found.type_two["relevant"].min()
    assert repr(found) == repr(summary)


def test_the_picture_shows_every_bound_and_repeats_to_the_byte(tmp_path):
    found = bounds_by_angle(*two_clouds(relevant=3, irrelevant=4), angles=np.radians(np.arange(-135, 226, 15)))
    for name in ("one", "two"):
        save_png(found.plot(), tmp_path / f"{name}.png")
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()
    figure = draw_bounds({"even": found, "other": found})
    legends = [axes.get_legend() for axes in figure.axes if axes.get_legend()]
    texts = [text.get_text() for legend in legends for text in legend.texts]
    assert {"relevant", "irrelevant", "type one", "type two, all pairs", "the loss"} <= set(texts)
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        "even",
        "1 - AP and its bounds",
        "other",
        "1 - AP and its bounds",
    ]


def test_a_bound_may_be_infinite_and_is_then_said_to_be():
    found = bounds_by_angle(1e6 * two_clouds(relevant=2, irrelevant=2)[0], [1, 1, 0, 0], angles=[np.radians(225)])
    assert found.type_two["relevant"].tolist() == [math.inf]


# ----------------------------------------------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("X", "labels", "words"),
    [
        (np.zeros((3, 3)), [1, 0, 0], r"two finite features a document: found shape \(3, 3\)"),
        ([[0.0, np.nan], [1.0, 1.0]], [1, 0], "two finite features"),
        (np.zeros((2, 2)), [1, 1], r"both occur: found \[1.0\]"),
        (np.zeros((3, 2)), [2, 1, 0], r"one positive number.*found \[0.0, 1.0, 2.0\]"),
        (np.zeros((2, 2)), [1, 0, 0], "3"),
    ],
)
def test_a_list_that_is_not_one_of_two_classes_in_the_plane_is_refused(X, labels, words):
    with pytest.raises(DataError, match=words):
        bounds_by_angle(X, labels)


def test_lists_with_too_many_patterns_are_refused_before_they_fill_the_memory():
    X, labels = two_clouds(relevant=20, irrelevant=20)
    with pytest.raises(RankwiseError, match=r"20 relevant documents of 40 can be placed in 1.38e\+11 ways"):
        bounds_by_angle(X, labels)


def test_a_measure_that_is_never_1_is_refused():
    with pytest.raises(RankwiseError, match=r"count 1 at their best: .*P@5 is 0\.4"):
        bounds_by_angle(*two_clouds(relevant=2, irrelevant=4), measure="P@5")


@pytest.mark.parametrize("angles", [0, -3, [], [[0.0]], [np.inf]])
def test_angles_that_are_none_are_refused(angles):
    with pytest.raises(RankwiseError, match="angles is a number of angles"):
        bounds_by_angle(*two_clouds(relevant=1, irrelevant=1), angles=angles)


@pytest.mark.parametrize(
    "wrong", [{"relevant": 0}, {"irrelevant": 0}, {"variance": (-1.0, 1.0)}, {"variance": (0.1, np.nan)}]
)
def test_clouds_that_cannot_be_drawn_are_refused(wrong):
    with pytest.raises(RankwiseError, match="two clouds have"):
        two_clouds(**wrong)
