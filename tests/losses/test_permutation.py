"""Permutation scores, their oracles, and type one and type two losses, against every permutation of short lists."""

import itertools
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankwise.errors import RankwiseError
from rankwise.losses.permutation import (
    TypeOne,
    TypeTwo,
    best_imperfect,
    count_patterns,
    label_patterns,
    permutation_score,
    worst_perfect,
)
from rankwise.losses.structured import SVMMapHinge
from rankwise.measures import AP, DCG, NDCG, RR, WTA
from tests.losses.lists import weak_orders
from tests.strategies import judged_lists, tied_scores

FORMS = ("indicator", "exp", "logistic", "hinge", "additive")
MEASURES = (AP(), AP(rel=2), NDCG(), NDCG() @ 2, NDCG(discount="letor"), RR(), WTA())
# what runs for every form and map needs fewer lists each
few = settings(max_examples=settings.default.max_examples // 3)
short_lists = judged_lists(min_size=1, max_size=5)
ordinary_lists = short_lists.map(lambda judged: (np.clip(judged[0], -4, 4), np.array(judged[1], dtype=float)))


@cache
def orders(m):
    return np.array(list(itertools.permutations(range(m))))


def pair_score(every, s):
    """F of each order, summed over pairs as it is defined."""
    m = every.shape[1]
    total = np.zeros(len(every))
    for above in range(m):
        for below in range(above + 1, m):
            total += s[every[:, above]] - s[every[:, below]]
    return total / max(m * (m - 1), 1)


def perfect_orders(every, y, k):
    ideal = np.sort(y)[::-1][:k]
    return (y[every][:, :k] == ideal).all(axis=1)


def assert_oracles_are_exact(s, y, k):
    every = orders(len(s))
    perfect, score = perfect_orders(every, y, k), pair_score(every, s)
    worst = worst_perfect(s, y, k)
    assert perfect_orders(worst[None], y, k).all()
    assert pair_score(worst[None], s)[0] == pytest.approx(score[perfect].min(), abs=1e-12)
    best = best_imperfect(s, y, k)
    if perfect.all():
        assert best is None
    else:
        assert sorted(best) == list(range(len(s)))
        assert not perfect_orders(best[None], y, k).any()
        assert pair_score(best[None], s)[0] == pytest.approx(score[~perfect].max(), abs=1e-12)


@pytest.mark.parametrize("m", [1, 2, 3, 4])
def test_oracles_equal_all_permutations_on_every_weak_order(m):
    spread = np.array([0.0, 1.0, 1.25, 3.0])  # unequal gaps, so that the cheapest exchange is not just any
    for order in weak_orders(m):
        for y in itertools.combinations_with_replacement((0.0, 1.0, 2.0), m):
            for k in (None, *range(1, m + 2)):
                assert_oracles_are_exact(spread[order.astype(int)], np.array(y), k)


@given(st.data(), st.integers(5, 6), st.one_of(st.none(), st.integers(1, 6)))
def test_oracles_equal_all_permutations_on_longer_lists(data, m, k):
    some = st.one_of(tied_scores, st.floats(-10, 10))
    s = np.array(data.draw(st.lists(some, min_size=m, max_size=m)))
    y = np.array(data.draw(st.lists(st.integers(0, 3), min_size=m, max_size=m)), dtype=float)
    if data.draw(st.booleans()):  # scores that agree with the labels: only then has anything to be spoiled
        s = np.sort(s)[np.argsort(np.argsort(y, kind="stable"))]
    assert_oracles_are_exact(s, y, k)


def test_a_tie_between_labels_is_an_imperfect_order_that_costs_nothing():
    assert best_imperfect([1.0, 1.0], [1, 0]).tolist() == [1, 0]
    assert best_imperfect([2.0, 2.0], [1, 1]) is None


@pytest.mark.parametrize("oracle", [worst_perfect, best_imperfect])
def test_oracles_refuse_what_has_no_order(oracle):
    with pytest.raises(RankwiseError, match="scores"):
        oracle([np.nan, 1.0], [1, 0])
    with pytest.raises(RankwiseError, match="cut-off"):
        oracle([0.0, 1.0], [1, 0], k=0)


# ------------------------------------------------------------------------------------------------ the score F


def relevant_score(every, s, relevant):
    """F of each order over pairs of a relevant and an irrelevant document, as it is defined."""
    total, pairs = np.zeros(len(every)), relevant.sum() * (~relevant).sum()
    place = np.argsort(every, axis=1)
    for k in np.flatnonzero(relevant):
        for other in np.flatnonzero(~relevant):
            total += np.where(place[:, k] < place[:, other], 1, -1) * (s[k] - s[other])
    return total / max(pairs, 1)


@given(ordinary_lists)
def test_both_maps_equal_their_sums_over_pairs(judged):
    s, y = judged
    every = orders(len(s))
    for mapped, expected in (("pairs", pair_score(every, s)), ("relevant", relevant_score(every, s, y > 0))):
        found = [permutation_score(order, s, y, mapped) for order in every]
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_the_orders_of_largest_score_are_exactly_those_that_sort_the_scores():
    for m in (2, 3, 4):
        every = orders(m)
        for s in weak_orders(m):
            score = pair_score(every, s)
            sorts = (np.diff(s[every], axis=1) <= 0).all(axis=1)
            np.testing.assert_array_equal(np.isclose(score, score.max(), rtol=0, atol=1e-9), sorts)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_how_steep_a_difference_of_two_scores_is(n):
    unit = np.eye(n)
    weight = np.array([[permutation_score(order, row, np.ones(n)) for row in unit] for order in orders(n)])
    steepest = max(np.abs(one - weight[0]).sum() for one in weight)
    assert steepest == pytest.approx(2 * (n * n // 2) / (n * (n - 1)))


# ------------------------------------------------------------------------------------------------ type one


@given(ordinary_lists, st.sampled_from(MEASURES))
def test_type_one_losses_are_ordered_above_the_loss_of_the_measure(judged, measure):
    s, y = judged
    missed = 1 - measure(s, y, ties="pessimistic", empty="one")
    exponential, logistic = TypeOne(measure)(s, y), TypeOne(measure, form="logistic")(s, y)
    assert missed - 1e-12 <= exponential <= logistic


def test_a_perfect_ranking_still_costs_type_one_losses():
    assert TypeOne("AP")([2.0, 1.0], [1, 0]) == pytest.approx(np.exp(-1))
    assert TypeOne("AP", form="logistic")([2.0, 1.0], [1, 0]) == pytest.approx(np.log2(1 + np.exp(-1)))


# ------------------------------------------------------------------------------------------------ type two


def relaxed(form, missed, margin, tie):
    if form == "indicator":
        return missed * (margin <= tie)
    if form == "additive":
        return max(missed - margin, 0)
    phi = {"exp": np.exp(-margin), "logistic": np.log2(1 + np.exp(-margin)), "hinge": max(1 - margin, 0)}
    return missed * phi[form]


def brute_force(loss, s, y):
    """Every perfect against every imperfect order."""
    every = orders(len(s))
    missed = np.array([1 - loss.measure(-np.argsort(order), y, empty="one") for order in every])
    relevant = loss.measure.row_values(y) > 0
    score = pair_score(every, s) if loss.map == "pairs" else relevant_score(every, s, relevant)
    perfect = missed < 1e-9
    worst, tie = score[perfect].min(), 1e-12 * np.ptp(s)
    return max((relaxed(loss.form, missed[pi], worst - score[pi], tie) for pi in np.flatnonzero(~perfect)), default=0.0)


@pytest.mark.parametrize("mapped", ["pairs", "relevant"])
@pytest.mark.parametrize("form", FORMS)
@few
@given(ordinary_lists, st.sampled_from(MEASURES))
def test_patterns_give_the_maximum_over_all_permutations(form, mapped, judged, measure):
    loss = TypeTwo(measure, form=form, map=mapped)
    assert loss(*judged) == pytest.approx(brute_force(loss, *judged), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("mapped", ["pairs", "relevant"])
@few
@given(judged_lists(min_size=2, max_size=6), st.sampled_from(MEASURES))
def test_every_form_bounds_the_measure_and_the_exponential_is_never_tighter_than_the_hinge(mapped, judged, measure):
    s, y = np.clip(judged[0], -4, 4), judged[1]
    missed = 1 - measure(s, y, ties="pessimistic", empty="one")
    value = {form: TypeTwo(measure, form=form, map=mapped)(s, y) for form in FORMS}
    assert value["indicator"] >= missed - 1e-12
    for form in FORMS[1:]:
        assert value[form] >= value["indicator"] - 1e-9
    assert value["exp"] >= value["hinge"] - 1e-12


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("measure", "mapped"), [(AP(), "pairs"), (AP(), "relevant"), (NDCG(), "pairs"), (NDCG() @ 2, "pairs")]
)
@few
@given(judged_lists(min_size=2, max_size=6))
def test_oracles_give_a_value_between_the_loss_of_the_measure_and_the_exact_one(form, measure, mapped, judged):
    s, y = np.clip(judged[0], -4, 4), judged[1]
    missed = 1 - measure(s, y, ties="pessimistic", empty="one")
    between = TypeTwo(measure, form=form, map=mapped, by="oracles")(s, y)
    assert missed - 1e-9 <= between <= TypeTwo(measure, form=form, map=mapped, by="patterns")(s, y) + 1e-9


def test_a_perfect_ranker_pays_under_the_map_of_all_pairs_but_not_under_that_of_relevance():
    s, y = [1.0, 0.9, -5.0], [1, 0, 0]
    assert AP()(s, y) == 1
    assert TypeTwo("AP", form="indicator", map="pairs")(s, y) == pytest.approx(0.5)
    assert TypeTwo("AP", form="indicator", map="relevant")(s, y) == 0


@given(judged_lists(min_size=2, max_size=7))
def test_the_additive_form_on_relevance_is_the_svmmap_hinge(judged):
    s, y = np.clip(judged[0], -4, 4), judged[1]
    assert TypeTwo(AP(), form="additive", map="relevant")(s, y) == pytest.approx(SVMMapHinge()(s, y)[0], abs=1e-11)


@pytest.mark.parametrize("form", FORMS[1:])
@few
@given(judged_lists(min_size=2, max_size=5), st.lists(st.floats(-2, 2), min_size=5, max_size=5))
def test_the_relaxations_are_convex(form, judged, step):
    s, y = np.clip(judged[0], -2, 2), judged[1]
    t = s + np.array(step[: len(s)])
    loss = TypeTwo(NDCG(), form=form)
    assert loss((s + t) / 2, y) <= (loss(s, y) + loss(t, y)) / 2 + 1e-9


def test_patterns_are_counted_and_made_once_each():
    assert count_patterns(np.repeat([0.0, 1.0], [14, 7])) == 116_280
    made = [tuple(row) for row in label_patterns([2, 1, 3]).tolist()]
    assert sorted(made) == sorted(set(itertools.permutations([0, 0, 1, 2, 2, 2])))


def test_long_lists_are_left_to_the_oracles():
    rng = np.random.default_rng(0)
    s, y = rng.normal(size=500), rng.integers(0, 3, 500)
    loss = TypeTwo(NDCG() @ 10, form="hinge")
    assert loss(s, y) == TypeTwo(NDCG() @ 10, form="hinge", by="oracles")(s, y)
    assert loss(s, y) >= 1 - (NDCG() @ 10)(s, y, ties="pessimistic")


@pytest.mark.parametrize("labels", [[0], [3], [0, 0, 0], [2, 2]])
def test_nothing_to_rank_is_no_loss(labels):
    s = np.arange(float(len(labels)))
    for loss in (TypeOne(NDCG()), *(TypeTwo(NDCG(), form=form) for form in FORMS), TypeTwo(AP(), by="oracles")):
        assert loss(s, labels) == 0


def test_what_these_losses_cannot_take_is_refused_in_a_sentence():
    with pytest.raises(RankwiseError, match="each of 2 documents once"):
        permutation_score([0, 0], [1.0, 2.0], [1, 0])
    with pytest.raises(RankwiseError, match="count 1 at their best"):
        TypeTwo(DCG())([1.0, 2.0], [3, 1])
    with pytest.raises(RankwiseError, match=r"in \[0, 1\]"):
        TypeOne(DCG())([1.0, 2.0], [3, 1])
    for measure, mapped in ((RR(), "pairs"), (NDCG(discount="letor"), "pairs"), (NDCG(), "relevant")):
        with pytest.raises(RankwiseError, match="by='patterns'"):
            TypeTwo(measure, map=mapped, by="oracles")([1.0, 2.0, 3.0], [2, 1, 0])
    with pytest.raises(RankwiseError, match="by='oracles'"):
        TypeTwo(AP(), by="patterns")(np.arange(60.0), np.arange(60) % 2)
    for wrong in ({"form": "sine"}, {"map": "all"}, {"by": "luck"}):
        with pytest.raises(RankwiseError, match=f"The '{next(iter(wrong))}' parameter of TypeTwo must be"):
            TypeTwo(AP(), **wrong)
