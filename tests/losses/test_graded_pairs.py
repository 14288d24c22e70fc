"""GradedPairs: both of its forms equal the plain sum over pairs, to the error that its docstring states."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

import rankwise as rw
from rankwise.losses import GradedPairs
from rankwise.losses.compute import LossOverLists, PreparedLists, curvature_lists, loss_lists
from tests.losses.lists import curvature_on_lists, on_lists
from tests.oracles.losses_graded import graded_pairs_at_once

LOSS = GradedPairs()


def prepared(labels, weight=None, pairwise=False):
    """One list; ``pairwise`` takes the nodes away, and with them the second form."""
    lists = PreparedLists.of(LOSS, labels, np.array([0, len(labels)]), None, weight)
    return replace(lists, table=np.zeros(0)) if pairwise else lists


def computed(scores, labels, weight=None, pairwise=False):
    """(value, gradient, gradient for boosters, second derivatives)."""
    lists = prepared(labels, weight, pairwise)
    (value,), gradient = loss_lists(lists, scores, n_jobs=1)
    return value, gradient, *curvature_lists(lists, scores, n_jobs=1)


def uses_nodes(scores, labels):
    """Whether the (loss, second derivatives) come from nodes, told by their last bits."""
    one, other = computed(scores, labels), computed(scores, labels, pairwise=True)
    return not np.array_equal(one[1], other[1]), not np.array_equal(one[3], other[3])


def assert_equals_plain(scores, labels, weight=None, exact=(1e-12, 1e-12, 1e-6, 5e-5)):
    """Errors in units of the largest derivatives that these labels and weights allow."""
    w = np.ones(len(labels)) if weight is None else weight
    value, gradient, second = graded_pairs_at_once(scores, labels, w)
    apart = w * (np.abs(labels[:, None] - labels[None, :]) * w).sum(axis=1) / (w.sum() or 1.0)
    unit = np.maximum(apart, 1e-300)
    got = computed(scores, labels, weight)
    assert abs(got[0] - value) <= exact[0] * (1 + np.ptp(scores)) * apart.sum() / 2
    assert (np.abs(got[1] - gradient) / unit).max() <= exact[1]
    assert (np.abs(got[2] - gradient) / unit).max() <= exact[2]
    assert (np.abs(got[3] - second) / unit).max() <= exact[3]
    assert (got[3] >= 0).all()


def scores_and_labels(m, deviation, kinds, seed=0):
    """Some scores tie; a few distinct labels are whole numbers, many are any numbers."""
    rng = np.random.default_rng([m, kinds, seed])
    levels = np.arange(kinds, dtype=float) if kinds <= 5 else np.sort(rng.uniform(0, 4, kinds))
    labels = rng.choice(levels, m)
    scores = rng.normal(size=m) * deviation + 0.3 * labels
    scores[::3] = np.round(scores[::3])
    return scores, labels


@pytest.mark.parametrize("kinds", [2, 5, 40])
@pytest.mark.parametrize("deviation", [1.0, 3.0])
@pytest.mark.parametrize("m", [1, 2, 3, 10, 33, 64, 101, 150, 400, 1500])
def test_fast_equals_plain(m, deviation, kinds):
    scores, labels = scores_and_labels(m, deviation, kinds)
    assert_equals_plain(scores, labels)
    weight = np.random.default_rng(m).lognormal(size=m)
    weight[::7] = 0.0
    assert_equals_plain(scores, labels, weight)


@pytest.mark.parametrize("deviation", [1.0, 3.0])
def test_fast_equals_plain_on_five_thousand_documents(deviation):
    assert_equals_plain(*scores_and_labels(5_000, deviation, 5))


@pytest.mark.parametrize("spread", [0.0, 1e-9, 0.5, 8.0, 20.0, 26.8, 27.0, 53.0, 54.0, 599.0, 601.0, 1e6, 1e300])
def test_one_relevant_document_at_any_place_and_any_spread(spread):
    """The sums are a single sigmoid here, the hardest function for the nodes."""
    scores, tight = np.linspace(0, spread, 300), 1e-7 if spread <= 8 else 1e-6
    for place in (0, 5, 150, 299):
        labels = np.zeros(300)
        labels[place] = 1.0
        assert_equals_plain(scores, labels, exact=(1e-12, 1e-12, tight, 5e-5))


def test_long_lists_of_few_labels_use_nodes_and_others_every_pair():
    assert uses_nodes(*scores_and_labels(400, 1.0, 5)) == (True, True)
    assert uses_nodes(*scores_and_labels(60, 1.0, 2)) == (True, False)
    assert uses_nodes(*scores_and_labels(30, 1.0, 2)) == (False, False)
    assert uses_nodes(*scores_and_labels(400, 3.0, 400)) == (False, False)  # too many labels
    scores, labels = scores_and_labels(400, 1.0, 3)
    assert uses_nodes(scores * 30 / np.ptp(scores), labels) == (False, True)
    assert uses_nodes(scores * 60 / np.ptp(scores), labels) == (False, False)


def test_equal_labels_and_absent_documents_leave_nothing_to_rank():
    scores = np.random.default_rng(0).normal(size=300)
    for weight in (None, np.zeros(300), np.full(300, 2.0)):
        value, *derivatives = computed(scores, np.full(300, 1.5), weight)
        assert value == 0
        assert not np.any(derivatives)
    labels = np.arange(300) % 2.0
    assert not np.any(computed(scores, labels, np.zeros(300))[1:])
    assert not np.any(computed(scores, labels, labels)[1:])  # all that are left have the same label


def test_a_document_of_weight_0_may_be_anywhere():
    """It neither counts nor widens the range that the nodes cover."""
    scores, labels = scores_and_labels(300, 1.0, 3)
    weight = np.ones(300)
    weight[7] = 0.0
    moved = scores.copy()
    moved[7] = 1e9
    for one, other in zip(computed(scores, labels, weight), computed(moved, labels, weight), strict=True):
        np.testing.assert_array_equal(one, other)


def test_whole_weights_are_copies_in_long_lists():
    scores, labels = scores_and_labels(300, 1.0, 4)
    weight = np.random.default_rng(1).integers(0, 4, 300)
    copies = np.repeat(np.arange(300), weight)
    one, other = computed(scores, labels, weight.astype(float)), computed(scores[copies], labels[copies])
    assert one[0] == pytest.approx(other[0], rel=1e-12)
    np.testing.assert_allclose(one[1], np.bincount(copies, other[1], 300), atol=1e-12)
    np.testing.assert_allclose(one[3], np.bincount(copies, other[3], 300), atol=1e-4)


@pytest.mark.parametrize("m", [40, 300])
def test_neither_a_constant_nor_the_order_of_documents_nor_a_factor_of_labels_matters(m):
    scores, labels = scores_and_labels(m, 1.0, 4)
    order = np.random.default_rng(0).permutation(m)
    value, gradient, _, second = computed(scores, labels)
    for other in (computed(scores[order], labels[order]), computed(scores[order] + 16, labels[order])):
        assert other[0] == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(other[1], gradient[order], atol=1e-12)
        np.testing.assert_allclose(other[3], second[order], atol=1e-4)
    np.testing.assert_array_equal(computed(scores, 4 * labels + 8)[1], 4 * gradient)


def test_the_slope_and_the_range_of_the_docstring_are_attained():
    for m in (2, 5, 8):
        labels = np.where(np.arange(m) < m // 2, 3.0, 0.0)
        value, gradient = LOSS(np.where(labels > 0, -400.0, 400.0), labels)
        assert np.abs(gradient).sum() == pytest.approx(2 * 3 * (m * m // 4) / m)
        assert value == pytest.approx(LOSS.range(400.0, m, (0.0, 3.0))[1])
        _, diagonal = curvature_on_lists(LOSS, np.zeros((1, m)), labels[None])
        assert diagonal.sum() == pytest.approx(2 * 3 * (m * m // 4) / m / 4)


def test_no_labels_of_an_interval_make_it_steeper_than_the_docstring_says():
    rng = np.random.default_rng(0)
    for m in (2, 3, 6):
        scores, labels = 5 * rng.normal(size=(500, m)), rng.uniform(1, 3, (500, m))
        steepest = 2 * 2 * (m * m // 4) / m
        _, gradient = on_lists(LOSS, scores, labels)
        assert np.abs(gradient).sum(axis=1).max() <= steepest
        step = rng.uniform(-1, 1, (500, m))
        turned = np.abs(on_lists(LOSS, scores + step, labels)[1] - gradient).sum(axis=1)
        assert (turned <= steepest / 2 * np.abs(step).max(axis=1) + 1e-12).all()


@pytest.mark.parametrize("documents", [6, 150])
def test_a_batch_ranker_finds_the_optimum_of_a_generic_solver(documents):
    queries = rw.make_lists(20, documents=documents, features=4, random_state=3)
    model = rw.LossRanker(LOSS, alpha=0.05, scale="none", tolerance=1e-8).fit(queries)
    lists = LossOverLists.of(LOSS, queries)

    def objective(w):
        value, slope = lists(w)
        return value / len(queries) + 0.025 * w @ w, slope / len(queries) + 0.05 * w

    best = minimize(objective, np.zeros(4), jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-10})
    assert model.objective_ == pytest.approx(best.fun, rel=1e-7)


@pytest.mark.parametrize(
    "ranker",
    [rw.OnlineRanker(LOSS, scale="standard"), rw.BoostedRanker(loss=LOSS, trees=20, seeds=1, folds=2, patience=None)],
    ids=repr,
)
def test_boosters_and_online_rankers_learn_with_it(ranker):
    queries = rw.make_lists(60, documents=120, features=4, random_state=1)
    chance = np.mean(rw.evaluate(queries, np.zeros(queries.n_documents), "nDCG@10")["nDCG@10"])
    assert ranker.fit(queries).score(queries) > chance + 0.1
