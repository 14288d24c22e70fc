"""The estimates from the labels of the first k documents: their mean over all rankings, and where they exist."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankwise as rw
from rankwise._kernels.machine.jit import typed_function
from rankwise.losses import GradedPairs
from rankwise.losses._base import registered
from rankwise.losses.compute import KERNEL
from rankwise.solvers.online.top_k_rounds import draw_ranking, estimate_gradient, random_unit
from tests.oracles import top_k as plain

ALL = [loss for kind in registered().values() for loss in kind.examples()]
SUMS = [loss for loss in ALL if loss.labels_per_term is not None]
# the sum of GradedPairs is divided by the number of all documents, of which its kernel knows those it is given
CHECKED = [loss for loss in ALL if not loss.noisy and not isinstance(loss, GradedPairs)]
over_sums = pytest.mark.parametrize("loss", SUMS, ids=repr)


def estimated(loss, s, y, seen, k, explore):
    """(value, gradient) by the compiled estimate; labels that are not seen are worth nothing to it."""
    m, top = len(s), plain.top_of(s, k)
    flags = np.array([i in seen for i in range(m)]), np.array([i in top for i in range(m)])
    label, value = loss.prepare(np.where(flags[0], y, 77.0), np.array([0, m]), None)
    gradient, options = np.zeros(m), np.array([k, explore, loss.labels_per_term], dtype=float)
    args = (np.array(loss.params(), dtype=float),)
    kernels = (
        typed_function(one, KERNEL) for one in (type(loss).kernel, type(loss).estimate_kernel or type(loss).kernel)
    )
    found = estimate_gradient(*kernels, s, label, value, *flags, options, gradient, loss.table(m), *args)
    return found, gradient


def grid(loss):
    """Scores with ties and labels of lists of 1 to 5 documents: equal ones, irrelevant ones, graded ones."""
    random = np.random.default_rng(5)
    for m in range(1, 6):
        yield np.zeros(m), np.zeros(m)
        yield np.zeros(m), np.full(m, 2.0)
        yield np.zeros(m), np.arange(m) % 3.0
        yield random.integers(-1, 2, m).astype(float), random.integers(0, 3, m).astype(float)
        yield random.normal(size=m), random.integers(0, 5, m).astype(float)


@over_sums
def test_the_mean_of_the_estimate_over_all_rankings_is_the_gradient(loss):
    for (s, y), explore in itertools.product(grid(loss), (0.2, 1.0)):
        for k in range(loss.labels_per_term, 6):
            mean, slope, chance = 0.0, np.zeros(len(s)), 0.0
            for probability, seen in plain.outcomes(s, k, explore):
                value, gradient = estimated(loss, s, y, seen, k, explore)
                chance, mean, slope = chance + probability, mean + probability * value, slope + probability * gradient
            expected = plain.whole(loss, s, y) if len(s) > k else loss(s, y)
            assert chance == pytest.approx(1)
            assert mean == pytest.approx(expected[0], abs=1e-9)
            assert slope == pytest.approx(expected[1], abs=1e-9)


@over_sums
def test_the_sum_of_the_terms_is_the_loss_unless_all_labels_are_equal(loss):
    for s, y in grid(loss):
        value, gradient = plain.whole(loss, s, y)
        if loss.labels_per_term == 1 and len(set(loss.row_values(y))) == 1:
            assert loss(s, y)[0] == 0  # the exception that nobody can make who does not see all labels
        else:
            assert loss(s, y)[0] == pytest.approx(value)
            assert loss(s, y)[1] == pytest.approx(gradient, abs=1e-12)


@over_sums
def test_each_estimate_is_that_of_its_definition(loss):
    random = np.random.default_rng(0)
    for m, k in ((3, 2), (6, 2), (6, 4), (9, 3)):
        s, y = np.round(random.normal(size=m), 1), random.integers(0, 4, m).astype(float)
        for seen in map(set, itertools.combinations(range(m), k)):
            value, gradient = estimated(loss, s, y, seen, k, 0.3)
            expected = plain.estimate(loss, s, y, seen, k, 0.3)
            assert value == pytest.approx(expected[0])
            assert gradient == pytest.approx(expected[1], abs=1e-9)


def mixed_difference(loss, s, low, high, among):
    """The mixed difference of the gradient over some labels, each of which takes two values."""
    total = np.zeros(len(s))
    for choice in itertools.product((False, True), repeat=len(among)):
        y = low.copy()
        y[list(among)] = np.where(choice, high[list(among)], low[list(among)])
        total += (-1) ** sum(choice) * loss(s, y)[1]
    return total


@pytest.mark.parametrize("loss", CHECKED, ids=repr)
def test_losses_without_a_declared_sum_have_no_unbiased_estimate(loss):
    """A sum of functions of k labels each has mixed differences of 0 over k + 1 labels, and no other function has."""
    random = np.random.default_rng(3)
    largest = {1: 0.0, 2: 0.0}
    for k in (1, 2):
        for _ in range(40):
            low, high = random.integers(0, 4, size=(2, k + 3)).astype(float)
            low[:2] = high[:2] = 0.0, 1.0  # of no corner are all labels equal
            s = random.normal(size=k + 3)
            largest[k] = max(largest[k], float(np.abs(mixed_difference(loss, s, low, high, range(2, k + 3))).max()))
    declared = loss.labels_per_term
    for k in (1, 2):
        if declared is not None and declared <= k:
            assert largest[k] < 1e-9
        else:
            assert largest[k] > 1e-4


def shown_by(s, k, explore, key, draw):
    order, shown = np.empty(len(s), np.int64), np.empty(len(s), np.int64)
    draw_ranking(s, k, explore, np.uint64(key), np.uint64(draw), order, shown)
    return order, shown


@settings(max_examples=60, deadline=None)
@given(
    s=st.lists(st.integers(-2, 2), min_size=1, max_size=9),
    k=st.integers(1, 6),
    key=st.integers(0, 2**64 - 1),
    draw=st.integers(1, 2**64 - 1),
)
def test_the_documents_shown_first_are_those_of_the_definition(s, k, key, draw):
    s = np.array(s, dtype=float)
    order, shown = shown_by(s, k, 0.5, key, draw)
    assert sorted(shown) == list(range(len(s)))
    assert set(order[:k]) == plain.top_of(s, k)
    assert set(shown[:k]) == plain.seen_in(s, k, 0.5, key, draw)
    for part in (shown[:k], shown[k:]):  # both parts by decreasing scores, ties in the order of the input
        assert list(part) == sorted(part, key=lambda i: (-s[i], i))
    assert random_unit(np.uint64(key), np.uint64(draw), 3) == plain.unit(key, draw, 3)


def test_every_set_of_documents_is_equally_likely():
    s, k, explore, n = np.array([0.3, 0.1, 0.1, -2.0, 0.5]), 2, 0.4, 40_000
    counts = dict.fromkeys(itertools.combinations(range(5), k), 0)
    for draw in range(1, n + 1):
        counts[tuple(sorted(shown_by(s, k, explore, 12, draw)[1][:k].tolist()))] += 1
    for documents, count in counts.items():
        p = (1 - explore) * (set(documents) == plain.top_of(s, k)) + explore / math.comb(5, k)
        assert abs(count - n * p) < 5 * math.sqrt(n * p * (1 - p))


@pytest.mark.parametrize("scale", ["none", "standard"])
@over_sums
def test_the_rounds_are_those_of_the_definition(loss, scale):
    random = np.random.default_rng(2)
    sizes = [1, 2, 3, 5, 7, 4, 1, 6, 2, 8] * 2
    lists = [(random.normal(size=(m, 3)), random.integers(0, 3, m).astype(float)) for m in sizes]
    k = loss.labels_per_term + 1
    ranker = rw.OnlineRanker(
        loss, eta=0.05, projection="l2", max_norm=0.8, averaging="none", feedback_depth=k, explore=0.4, scale=scale
    )
    model = ranker.partial_fit(lists)
    if scale == "none":
        w, total = plain.run(loss, lists, k=k, explore=0.4, eta=0.05, key=int(model.state_.key[0]), max_norm=0.8)
        assert model.coef_ == pytest.approx(w, abs=1e-12)
        assert model.ledger_.feedback.estimated_loss == pytest.approx(total)
    else:
        assert np.isfinite(model.coef_).all()
    assert model.ledger_.feedback.longest == 8


@pytest.mark.parametrize("loss", [loss for loss in SUMS if loss.convex], ids=repr)
def test_no_term_is_steeper_than_declared_and_some_are_as_steep(loss):
    random, b, label = np.random.default_rng(7), 3.0, 2.0
    for m in (1, 2, 5):
        found = 0.0
        for extreme in (False, True):
            for _ in range(100):
                s = b * random.choice([-1.0, 1.0], m) if extreme else random.uniform(-b, b, m)
                y = random.integers(0, 3, m).astype(float)
                terms = plain.terms_of(loss, s, y).values()
                found = max([found, *(float(np.abs(gradient).sum()) for _, gradient in terms)])
        declared = loss.term_lipschitz_l1(b, m, label)
        assert 0.98 * declared <= found <= declared * (1 + 1e-12)
