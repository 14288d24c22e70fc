"""The annealed objective J(w) = lambda norm(w - w0)^2 + sum_q weight_q phi_q(X_q (f w); sigma): its laws and limits."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwise.losses.compute import LossOverLists
from rankwise.losses.smooth_ap import SmoothAP
from rankwise.losses.smooth_ndcg import SmoothDCG1, SmoothNDCG, SmoothPrecision, SmoothRR
from rankwise.losses.soft_rank import SoftRankNDCG
from rankwise.measures._base import parse
from rankwise.measures.compute import ScoredLists, measure_lists
from rankwise.queries.queries import Queries
from rankwise.rankers.smooth.annealing import Annealing, at_sigma

# soft indicators have their width in squared units of the scores, sigmoids and the softmax in the units themselves
SQUARED = [
    SmoothNDCG(k=3),
    SmoothNDCG(),
    SmoothPrecision(k=2),
    SmoothRR(),
    SmoothAP(form="indicator"),
]
PLAIN = [SmoothAP(), SoftRankNDCG(), SmoothDCG1()]
LAWS = [(loss, 0.5) for loss in SQUARED] + [(loss, 1.0) for loss in PLAIN]
over_all_laws = pytest.mark.parametrize(("loss", "power"), LAWS, ids=lambda value: repr(value))
over_all_losses = pytest.mark.parametrize("loss", SQUARED + PLAIN, ids=repr)


def lists(seed=0, count=8, features=3, dtype=np.float64, weighted=False):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 8, count)
    X = rng.normal(size=(sizes.sum(), features)).astype(dtype)
    y = rng.integers(0, 4, len(X)).astype(float)
    return Queries.from_arrays(X, y, group=sizes, weight=rng.uniform(0.5, 2, count) if weighted else None)


def annealing(loss, queries, *, alpha, center=None, factor=None, **options):
    return Annealing(
        lists=LossOverLists.of(loss, queries),
        factor=np.ones(queries.n_features) if factor is None else factor,
        center=np.zeros(queries.n_features) if center is None else center,
        alpha=alpha,
        **options,
    )


# ------------------------------------------------------------------------------------------- scaling laws


@over_all_laws
@given(seed=st.integers(0, 500), c=st.floats(0.05, 20), alpha=st.floats(1e-3, 10), sigma=st.floats(0.05, 20))
def test_strength_and_width_are_one_parameter_where_the_center_is_zero(loss, power, seed, c, alpha, sigma):
    """J_(lambda, sigma)(c^p w) = J_(lambda c^2p, sigma/c)(w): p = 1/2 for squared units of scores, 1 for plain ones.

    In these words: w*_(lambda, sigma) = c^p w*_(lambda c^2p, sigma / c).
    """
    queries, w = lists(seed, count=3), np.random.default_rng(seed).normal(size=3)
    one, gradient = annealing(loss, queries, alpha=alpha).objective(sigma)(c**power * w)
    other, slope = annealing(loss, queries, alpha=alpha * c ** (2 * power)).objective(sigma / c)(w)
    assert one == pytest.approx(other, rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(gradient * c**power, slope, rtol=1e-6, atol=1e-8)


@over_all_laws
@pytest.mark.parametrize("c", [0.25, 4.0])
def test_the_minimizers_that_are_found_obey_the_law(loss, power, c):
    """Powers of 2 (of 4 under the root) scale without rounding: the two descents take the same way."""
    queries, start = lists(3, count=12), np.array([1.0, -0.5, 0.25])
    options = {"solver": "lbfgs", "steps": 200, "tolerance": 1e-9}
    one = annealing(loss, queries, alpha=0.05, **options)
    other = annealing(loss, queries, alpha=0.05 * c ** (2 * power), **options)
    (stage,) = one.run(start, [1.0])
    (same,) = other.run(start / c**power, [1.0 / c])
    assert stage.objective < one.objective(1.0)(start)[0]
    assert same.objective == pytest.approx(stage.objective, rel=1e-6)
    np.testing.assert_allclose(c**power * same.w, stage.w, rtol=1e-3, atol=1e-3)


# ------------------------------------------------------------------------------------------- limits


@pytest.mark.parametrize(
    ("loss", "measure"),
    [
        (SmoothNDCG(), "nDCG"),
        (SmoothNDCG(k=3), "nDCG@3"),
        (SmoothPrecision(k=2), "P@2"),
        (SmoothRR(), "RR"),
        (SmoothAP(), "AP"),
        (SmoothAP(form="indicator"), "AP"),
        (SoftRankNDCG(), "nDCG"),
    ],
    ids=repr,
)
@given(seed=st.integers(0, 300))
def test_as_sigma_goes_to_zero_the_objective_becomes_the_measure(loss, measure, seed):
    queries, w = lists(seed), np.random.default_rng(seed).normal(size=3)
    scores = queries.X @ w
    values = measure_lists([parse(measure)], ScoredLists(scores, queries.labels(), queries.start))[0]
    values = np.where([np.ptp(one.y) > 0 for one in queries], values, 1.0)  # where there is nothing to learn: no loss
    found, _ = annealing(loss, queries, alpha=0.0).objective(1e-13)(w)
    assert found == pytest.approx(float(np.sum(1 - values)), abs=1e-6)


@pytest.mark.parametrize(
    ("loss", "measure"),
    [(SmoothNDCG(), "nDCG"), (SmoothNDCG(k=2), "nDCG@2"), (SmoothPrecision(k=2), "P@2")],
    ids=repr,
)
@given(seed=st.integers(0, 300))
def test_with_ties_the_limit_is_the_expectation_over_their_orders(loss, measure, seed):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 3, (12, 1)).astype(float), rng.integers(0, 3, 12).astype(float)
    queries = Queries.from_arrays(X, y, group=[6, 6])
    values = measure_lists([parse(measure)], ScoredLists(X[:, 0], y, queries.start))[0]  # ties: expected
    values = np.where([np.ptp(one.y) > 0 for one in queries], values, 1.0)
    if np.isnan(values).any():
        return
    found, _ = annealing(loss, queries, alpha=0.0).objective(1e-4)(np.ones(1))
    assert found == pytest.approx(float(np.sum(1 - values)), abs=1e-9)


def test_as_sigma_goes_to_infinity_only_the_regularizer_is_left():
    queries, center = lists(1), np.array([1.0, 2.0, -1.0])
    task = annealing(SmoothNDCG(), queries, alpha=0.5, center=center, solver="lbfgs", tolerance=1e-10)
    flat = 0.0
    for one in queries:
        if np.ptp(one.y) > 0:
            gain, discount = 2.0**one.y - 1, 1 / np.log2(np.arange(len(one)) + 2)
            flat += 1 - gain.mean() * discount.sum() / (np.sort(gain)[::-1] @ discount)
    for w in np.random.default_rng(2).normal(size=(5, 3)):
        value, slope = task.objective(1e12)(w)
        assert value == pytest.approx(0.5 * np.sum((w - center) ** 2) + flat, rel=1e-9)
        np.testing.assert_allclose(slope, w - center, atol=1e-9)
    (stage,) = task.run(np.zeros(3) + 0.1, [1e12])  # wherever it starts, it ends at w0
    np.testing.assert_allclose(stage.w, center, atol=1e-6)


@given(seed=st.integers(0, 500), sigma=st.floats(0.02, 5))
def test_the_error_of_smoothing_is_below_its_bound(seed, sigma):
    """|A - NDCG| <= G_max (sum_j D_j/Z) S/(1+S), S = min((m-1) exp(-mu/sigma), 2 sum_t exp(-t^2 mu/sigma))."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 9))
    X, y = rng.normal(size=(m, 2)), rng.integers(0, 4, m).astype(float)
    if np.ptp(y) == 0:
        return
    queries, w = Queries.from_arrays(X, y, group=[m]), rng.normal(size=2)
    value, _ = annealing(SmoothNDCG(), queries, alpha=0.0).objective(sigma)(w)
    exact = measure_lists([parse("nDCG")], ScoredLists(X @ w, y, queries.start))[0][0]
    ranked = np.sort(X @ w)
    mu = np.diff(ranked).min() ** 2
    series = 2 * math.fsum(math.exp(-t * t * mu / sigma) for t in range(1, 200))
    S = min((m - 1) * math.exp(-mu / sigma), series)
    gain, discount = 2.0**y - 1, 1 / np.log2(np.arange(m) + 2)
    bound = gain.max() * discount.sum() / (np.sort(gain)[::-1] @ discount) * S / (1 + S)
    assert abs((1 - value) - exact) <= bound + 1e-12


# ------------------------------------------------------------------------------------------- ties and zero


@over_all_losses
@given(seed=st.integers(0, 300), sigma=st.floats(0.1, 10))
def test_the_objective_is_continuous_where_scores_tie(loss, seed, sigma):
    """Rows 0 and 1 tie at w; on either side of the tie the values close in on the one at it."""
    rng = np.random.default_rng(seed)
    X, y, w = rng.normal(size=(6, 3)), rng.integers(0, 4, 6).astype(float), rng.normal(size=3)
    apart = X[0] - X[1]
    w -= apart * (apart @ w) / (apart @ apart)
    objective = annealing(loss, Queries.from_arrays(X, y, group=[6]), alpha=0.1).objective(sigma)
    at, _ = objective(w)
    for reach in (1e-6, 1e-9):
        for side in (-1, 1):
            assert abs(objective(w + side * reach * apart)[0] - at) <= 1e4 * reach


@over_all_losses
def test_at_zero_weights_the_loss_has_no_direction(loss):
    queries = lists(4)
    _, slope = annealing(loss, queries, alpha=1.0).objective(0.7)(np.zeros(3))
    if loss in SQUARED:
        np.testing.assert_array_equal(slope, np.zeros(3))
    else:  # sigmoids still slope at a tie
        assert np.isfinite(slope).all()


# ------------------------------------------------------------------------------------------- the whole gradient


@over_all_losses
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(seed=st.integers(0, 200), sigma=st.floats(0.2, 5), scatter=st.booleans(), weighted=st.booleans())
def test_the_gradient_of_the_whole_objective_is_that_of_differences(loss, dtype, seed, sigma, scatter, weighted):
    """float32 X, scattered rows, weights of lists, factors of features, and the regularizer, all at once."""
    rng = np.random.default_rng(seed)
    queries = lists(seed, count=4, dtype=dtype, weighted=weighted)
    if scatter:
        order = rng.permutation(queries.n_documents)
        queries = Queries(queries.X[order], queries.y[order], queries.start, np.argsort(order), weight=queries.weight)
    factor, center, w = rng.uniform(0.3, 3, 3), rng.normal(size=3), rng.normal(size=3)
    task = annealing(loss, queries, alpha=0.3, center=center, factor=factor)
    objective, step = task.objective(sigma), 1e-6
    value, slope = objective(w)
    for j, unit in enumerate(np.eye(3)):
        above, below = objective(w + step * unit)[0], objective(w - step * unit)[0]
        forward, backward = (above - value) / step, (value - below) / step
        if abs(forward - backward) > 1e-3:  # a tie between the two
            continue
        assert slope[j] == pytest.approx((above - below) / (2 * step), rel=1e-4, abs=1e-5)


# ------------------------------------------------------------------------------------------- stages


def test_stages_follow_one_another_and_each_is_no_worse_than_its_start():
    queries, center = lists(5, count=15), np.array([0.5, -0.5, 0.2])
    task = annealing(SmoothNDCG(k=3), queries, alpha=0.1, center=center, factor=np.array([1.0, 2.0, 0.5]))
    heard = []
    stages = task.run(center, [4.0, 1.0, 0.25], heard.append)
    assert heard == stages
    assert [stage.sigma for stage in stages] == [4.0, 1.0, 0.25]
    before = center
    for stage in stages:
        objective = task.objective(stage.sigma)
        assert stage.objective == objective(stage.w)[0] <= objective(before)[0]
        loss, _ = at_sigma(task.lists, stage.sigma)(stage.w * task.factor)
        assert stage.loss == pytest.approx(loss, rel=1e-12)
        before = stage.w
    assert stages[-1].objective < task.objective(0.25)(center)[0]


def test_another_width_prepares_nothing_anew():
    lists_of = LossOverLists.of(SmoothNDCG(k=3), lists())
    other = at_sigma(lists_of, 0.5)
    assert other.work is lists_of.work
    assert other.queries is lists_of.queries
    assert other.loss == SmoothNDCG(k=3, sigma=0.5)
    assert lists_of.loss.sigma == 1.0


@pytest.mark.parametrize("solver", ["cg", "lbfgs"])
def test_the_number_of_threads_changes_no_bit_of_any_stage(solver, monkeypatch):
    monkeypatch.setattr("rankwise._kernels.parallel.query_chunks.__defaults__", (16,))
    queries = lists(6, count=40)
    runs = [
        annealing(SmoothNDCG(), queries, alpha=0.1, solver=solver, n_jobs=jobs).run(np.ones(3), [2.0, 0.5])
        for jobs in (1, 2)
    ]
    for one, two in zip(*runs, strict=True):
        np.testing.assert_array_equal(one.w, two.w)
        assert (one.objective, one.steps, one.evaluations) == (two.objective, two.steps, two.evaluations)
