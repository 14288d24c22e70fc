"""What is optimized against what is measured, on the lists at hand."""

import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwise.errors import RankwiseError
from rankwise.guarantees.bounds.training import smoothing_error, surrogate_above_loss, type_two_below_type_one
from rankwise.losses import SLAM, MaxPair, SmoothNDCG
from rankwise.losses.structured import SVMMapHinge
from rankwise.measures import parse
from tests.strategies import judged_lists

S2, LABELS = [0.3, 0.1, 0.9, 0.5, -0.2], [2, 0, 1, 0, 3]


def gains_of(labels):
    return 2.0 ** np.array(labels) - 1


@given(
    judged_lists(max_size=7),
    st.sampled_from([0.001, 0.05, 1.0, 100.0]),
    st.sampled_from([None, 1, 3]),
    st.sampled_from([0.1, 1.0, 7.0]),
)
def test_smooth_ndcg_is_no_farther_from_ndcg_than_the_bound(scored, sigma, k, scale):
    """Ties included, where NDCG is that of the tied documents in any order."""
    scores, labels = scale * np.array(scored[0], dtype=float), np.array(scored[1], dtype=float)
    bound = smoothing_error(scores, gains_of(labels), sigma=sigma, k=k)
    smooth = SmoothNDCG(k=k, sigma=sigma).measure_value(scores, labels)
    if not labels.any():
        assert bound.value == 0
        return
    for ties in ("optimistic", "pessimistic", "stable"):
        exact = parse("nDCG" if k is None else f"nDCG@{k}")(scores, labels, ties=ties)
        assert abs(smooth - exact) <= bound.value + 1e-12
    assert bound.value <= bound.ceiling


@pytest.mark.parametrize(("sigma", "smooth"), [(1.0, 0.6159420771591759), (0.1, 0.5421085266408681)])
def test_the_reference_list(sigma, smooth):
    """s = (.3, .1, .9, .5, -.2), labels (2, 0, 1, 0, 3)."""
    exact = 0.55446465433056
    assert SmoothNDCG(sigma=sigma).measure_value(S2, LABELS) == pytest.approx(smooth)
    assert smoothing_error(S2, gains_of(LABELS), sigma=sigma).allows(abs(smooth - exact))


def test_the_error_vanishes_like_an_exponential_of_gap_over_sigma():
    far = smoothing_error([0.0, 1.0, 2.0], [3.0, 1.0, 0.0], sigma=0.01)
    assert far.terms["mu"] == 1.0
    assert far.value < 1e-40
    near = smoothing_error([0.0, 1e-3, 2.0], [3.0, 1.0, 0.0], sigma=0.01)
    assert near.terms["S"] == pytest.approx(2 * math.exp(-1e-4))


@given(st.floats(1e-3, 1e3), st.integers(2, 30))
def test_both_ways_to_count_the_neighbors(sigma, m):
    """Even gaps: the sum over places is smaller where gaps are large, the plain count where they are small."""
    bound = smoothing_error(np.arange(m, dtype=float), np.ones(m), sigma=sigma)
    plain = (m - 1) * math.exp(-1 / sigma)
    assert bound.terms["S"] <= plain * (1 + 1e-12)
    true = max(sum(math.exp(-((i - j) ** 2) / sigma) for i in range(m) if i != j) for j in range(m))
    assert true <= bound.terms["S"] * (1 + 1e-9)


def test_lists_of_one_document_and_lists_without_gain_have_no_error():
    assert smoothing_error([0.3], [7.0], sigma=1.0).value == 0
    assert smoothing_error([0.3, 0.1], [0.0, 0.0], sigma=1.0).value == 0
    assert smoothing_error([1e200, -1e200], [1.0, 0.0], sigma=1.0).value == 0  # nor those that are this clear


def test_discounts_of_ones_own():
    usual = smoothing_error(S2, gains_of(LABELS), sigma=0.1)
    same = smoothing_error(S2, gains_of(LABELS), sigma=0.1, discounts=1 / np.log2(np.arange(2, 7)))
    assert same == usual
    cut = smoothing_error(S2, gains_of(LABELS), sigma=0.1, k=2)
    zeros = smoothing_error(S2, gains_of(LABELS), sigma=0.1, discounts=[1.0, 1 / math.log2(3), 0, 0, 0])
    assert cut.value == pytest.approx(zeros.value)


# ------------------------------------------------------------------------------------------ surrogates


@given(st.lists(judged_lists(max_size=6), min_size=1, max_size=5))
def test_surrogates_certify_the_measure_they_were_made_for(lists):
    pairs = [
        (SLAM(weights="ndcg_tight_sym"), "nDCG", None),
        (SLAM(weights="ndcg_tight", k=3), "nDCG@3", None),
        (SLAM(weights="ap_sym"), "AP", 1),
        (MaxPair(), "nDCG", None),
        (SVMMapHinge(), "AP", 1),
    ]
    for loss, measure, binary in pairs:
        surrogate, losses = [], []
        for scored in lists:
            scores, labels = (np.array(one, dtype=float) for one in scored)
            labels = np.minimum(labels, binary) if binary else labels
            if not labels.any():
                continue
            surrogate.append(loss(scores, labels)[0])
            losses.append(1 - parse(measure)(scores, labels, ties="pessimistic"))
        if not losses:
            continue
        bound = surrogate_above_loss(surrogate, losses)
        assert bound.applies is True, (loss, measure)
        assert bound.allows(np.mean(losses))
        assert bound.terms["mean_loss"] == pytest.approx(np.mean(losses))


def test_the_surrogates_of_the_reference_list():
    """s = (.3, .1, .9, .3, -.2): SLAM and the worst pair against pessimistic NDCG and AP, in full precision."""
    ndcg_loss, ap_loss = 1 - 0.55446465433056, 1 - 0.7555555555555555
    for surrogate, loss in (
        (1.908747478465139, ndcg_loss),  # ndcg_003
        (0.9666666666666667, ap_loss),  # ap_003
        (0.5048148148148147, ap_loss),  # ap_sym
        (2.1, ndcg_loss),  # the worst pair
    ):
        assert surrogate_above_loss([surrogate], [loss]).applies is True


def test_a_surrogate_that_is_below_the_loss_certifies_nothing():
    bound = surrogate_above_loss([0.5, 0.1], losses=[0.4, 0.2])
    assert bound.applies is False
    assert surrogate_above_loss([0.5, 0.1]).applies is None
    assert surrogate_above_loss([1.5, 0.7]).vacuous
    assert surrogate_above_loss([0.5]).kind == "training"


# ------------------------------------------------------------------------------------------ types one and two


def orders(labels):
    """All orders of a binary list, and whether each is perfect; documents best first."""
    found = [np.array(order) for order in permutations(range(len(labels)))]
    perfect = [bool((np.diff(labels[order]) <= 0).all()) for order in found]
    return found, perfect


def average_precision(labels, order):
    hits = labels[order]
    return float((np.cumsum(hits) / np.arange(1, len(hits) + 1))[hits > 0].mean())


def pairs_score(scores, labels, order):
    """F of the relevant and the other documents."""
    place = np.argsort(order)
    found = [
        (1 if place[a] < place[b] else -1) * (scores[a] - scores[b])
        for a in np.flatnonzero(labels == 1)
        for b in np.flatnonzero(labels == 0)
    ]
    return sum(found) / len(found)


SHAPES = {"exp": np.exp, "log": lambda x: np.log2(1 + np.exp(x)), "hinge": lambda x: np.maximum(0, 1 + x)}


@given(
    st.lists(st.sampled_from([-3.0, -1.0, 0.0, 0.5, 4.0]), min_size=2, max_size=4),
    st.integers(1, 14),
    st.sampled_from(list(SHAPES)),
)
def test_type_two_is_below_type_one_wherever_the_condition_is_met(scores, mask, shape):
    s = np.array(scores)
    labels = np.array([float(mask >> i & 1) for i in range(len(s))])
    if labels.min() == labels.max():
        return
    phi = SHAPES[shape]
    every, perfect = orders(labels)
    F = np.array([pairs_score(s, labels, order) for order in every])
    E = np.array([average_precision(labels, order) for order in every])
    ideal, other = np.flatnonzero(perfect), np.flatnonzero(~np.array(perfect))
    gaps = F[ideal][:, None] - F[other][None]
    type_two = float(((1 - E[other])[None] * phi(-gaps)).max())
    achieved = average_precision(labels, np.argsort(-s, kind="stable"))
    bound = type_two_below_type_one([phi(-achieved)], margin=[gaps.min()], achieved=[achieved])
    if bound.applies is None:
        assert bound.allows(type_two)
        assert achieved == 1  # the condition makes the ranking perfect


def test_the_condition_needs_every_list():
    bound = type_two_below_type_one([0.4, 0.6], margin=[2.0, 0.1], achieved=[1.0, 1.0])
    assert bound.applies is False
    assert bound.terms["lists_with_the_margin"] == 1
    assert bound.value == 0.5
    assert type_two_below_type_one([0.4, 0.6], margin=[2.0, 1.0], achieved=[1.0, 1.0]).applies is None


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: smoothing_error([0.1, 0.2], [1.0], sigma=1.0), "a score and a gain, got 2 and 1"),
        (lambda: smoothing_error([0.1], [-1.0], sigma=1.0), "gains must be non-negative, got -1"),
        (lambda: smoothing_error([0.1], [1.0], sigma=0.0), "sigma must be finite and above 0, got 0.0"),
        (lambda: smoothing_error([math.nan], [1.0], sigma=1.0), "array of finite numbers"),
        (lambda: smoothing_error([], [], sigma=1.0), "non-empty array"),
        (lambda: smoothing_error([0.1], [1.0], sigma=1.0, k=0), "k must be finite and at least 1, got 0"),
        (lambda: smoothing_error([0.1, 0.2], [1.0, 0], sigma=1.0, discounts=[0.5, 1.0]), "non-negative, decreasing"),
        (lambda: surrogate_above_loss([0.1, 0.2], [0.1]), "every query must have a surrogate and a loss, got 2 and 1"),
        (lambda: type_two_below_type_one([0.1], margin=[1.0, 2.0], achieved=[1.0]), "got 1, 2 and 1"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(call, sentence):
    with pytest.raises(RankwiseError, match=sentence):
        call()
