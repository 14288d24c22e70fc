"""Cutting planes: the minimum that other solvers find on programmes written out in full, and bounds that are true."""

import itertools
import sys

import numpy as np
import piqp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize
from sklearn.base import clone

import rankwise as rw
from rankwise.errors import RankwiseError
from rankwise.losses import SLAM, MaxPair, PairHinge, SVMMapHinge
from rankwise.losses.compute import PreparedLists, loss_lists
from rankwise.solvers.batch import bundle as bundle_module
from rankwise.solvers.batch.bundle import Bundle, maximize_on_simplex, shortfall
from tests.oracles.losses import slam_v
from tests.oracles.losses_structured import average_precision, pair_margin
from tests.strategies import few

# ------------------------------------------------------------------------------- functions, by oracle and written out


def judged(seed, n_lists=5, documents=4, features=3, grades=3):
    """(X, labels, start) of small lists; two documents of the first are the same."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_lists * documents, features))
    labels = rng.integers(0, grades, size=len(X)).astype(float)
    X[1] = X[0]
    return X, labels, np.arange(n_lists + 1) * documents


def mean_loss(loss, X, labels, start):
    """w -> (mean over lists of the loss of Xw, its subgradient)."""
    lists = PreparedLists.of(loss, labels, start)
    n = len(start) - 1

    def oracle(w):
        values, gradient = loss_lists(lists, X @ w, n_jobs=1)
        return values.sum() / n, X.T @ gradient / n

    return oracle


def written_out(loss, X, labels, start):
    """The same mean as a sum of maxima: [(offsets, slopes) of the planes of one maximum, ...]."""
    n, terms = len(start) - 1, []
    for first, last in itertools.pairwise(start):
        x, y = X[first:last], labels[first:last]
        lower = [[j for j in range(len(y)) if y[j] < y[i]] for i in range(len(y))]
        pairs = [(i, j) for i in range(len(y)) for j in lower[i]]
        if isinstance(loss, SVMMapHinge):
            parts = _svmmap_term(x, (y >= 1).astype(int))
        elif isinstance(loss, MaxPair):
            parts = [[(1.0, x[j] - x[i]) for i, j in pairs]]
        elif isinstance(loss, SLAM):
            v = slam_v(loss, y)
            parts = [[(v[i], v[i] * (x[j] - x[i])) for j in lower[i]] for i in range(len(y)) if v[i] > 0]
        else:
            parts = [[(1 / len(pairs), (x[j] - x[i]) / len(pairs))] for i, j in pairs]
        for part in parts:
            planes = [(0.0, np.zeros(x.shape[1])), *part]
            terms.append((np.array([b for b, _ in planes]) / n, np.array([a for _, a in planes]) / n))
    return terms


def _svmmap_term(x, relevant):
    """One plane a ranking: 1 - AP + F(ranking) - F(perfect), linear in the scores, so read off unit scores."""
    if relevant.sum() in (0, len(relevant)):
        return []
    perfect = np.argsort(-relevant, kind="stable")
    planes = []
    for order in map(list, itertools.permutations(range(len(relevant)))):
        lead = [
            pair_margin(relevant[order], unit[order]) - pair_margin(relevant[perfect], unit[perfect])
            for unit in np.eye(len(relevant))
        ]
        planes.append((1 - average_precision(relevant[order]), x.T @ lead))
    return [planes]


def least_by_slacks(terms, lambda_, d):
    """min lambda/2 norm(w)^2 + sum of slacks, each above the planes of its term: one quadratic programme."""
    n = len(terms)
    rows = np.vstack([np.hstack([a, -np.tile(np.eye(n)[t], (len(a), 1))]) for t, (_, a) in enumerate(terms)])
    solver = piqp.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_duality_gap_abs = 1e-11
    solver.setup(
        np.asfortranarray(np.diag(np.append(np.full(d, lambda_), np.zeros(n)))),
        np.append(np.zeros(d), np.ones(n)),
        G=np.asfortranarray(rows),
        h_u=-np.concatenate([b for b, _ in terms]),
    )
    assert solver.solve() == piqp.PIQP_SOLVED
    return solver.result.info.primal_obj


def least_in_ball(terms, radius, d):
    """min sum of slacks with norm1(w) <= radius, w = p - m: one linear program."""
    n = len(terms)
    rows = np.vstack([np.hstack([a, -a, -np.tile(np.eye(n)[t], (len(a), 1))]) for t, (_, a) in enumerate(terms)])
    rows = np.vstack([rows, np.append(np.ones(2 * d), np.zeros(n))])
    limits = np.append(-np.concatenate([b for b, _ in terms]), radius)
    found = linprog(np.append(np.zeros(2 * d), np.ones(n)), A_ub=rows, b_ub=limits, bounds=(0, None))
    assert found.success
    return found.fun


def highest_plane(offsets, slopes):
    """w -> (the highest plane at w, its slope)."""

    def oracle(w):
        heights = offsets + slopes @ w
        top = int(heights.argmax())
        return heights[top], slopes[top]

    return oracle


LOSSES = [PairHinge(), SLAM(), SLAM(weights="ndcg_003"), SVMMapHinge(), MaxPair()]

# ------------------------------------------------------------------------------- the minimum


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("lambda_", [1.0, 0.1, 0.01])
def test_convex_losses_reach_the_minimum_of_their_quadratic_programme(loss, lambda_):
    for seed in range(3):
        data = judged(seed)
        found = Bundle(mean_loss(loss, *data), 3, floor=0.0).solve(lambda_, tol=1e-8)
        least = least_by_slacks(written_out(loss, *data), lambda_, 3)
        assert found.converged
        assert found.objective == pytest.approx(least, abs=1e-6)
        assert found.lower_bound <= least + 1e-9


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("radius", [1e-3, 0.1, 1.0, 10.0, 1e3])
def test_an_l2_ball_has_the_optimum_of_the_penalty_whose_solution_it_touches(loss, radius):
    """Lagrange: weights of norm r that minimize F + (lambda/2) norm^2 minimize F in the ball of radius r."""
    for seed in range(3):
        data = judged(seed)
        bundle = Bundle(mean_loss(loss, *data), 3, floor=0.0)
        found = bundle.solve(radius, "l2 ball", tol=1e-8)
        assert found.converged
        assert np.linalg.norm(found.w) <= radius * (1 + 1e-12)
        assert found.objective == found.value
        for lambda_ in (1.0, 0.1, 0.01):
            penalized = bundle.solve(lambda_, tol=1e-10)
            norm = float(np.linalg.norm(penalized.w))
            if norm > 0:
                touching = bundle.solve(norm, "l2 ball", tol=1e-8)
                assert touching.objective == pytest.approx(penalized.value, rel=1e-6, abs=1e-8)
            if norm <= radius:
                assert found.lower_bound <= penalized.value + 1e-9


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("radius", [0.1, 1.0, 10.0])
def test_convex_losses_reach_the_minimum_of_their_linear_programme_in_an_l1_ball(loss, radius):
    for seed in range(3):
        data = judged(seed)
        found = Bundle(mean_loss(loss, *data), 3, floor=0.0).solve(radius, "l1 ball", tol=1e-8)
        assert found.converged
        assert np.abs(found.w).sum() <= radius * (1 + 1e-12)
        assert (
            found.objective
            == found.value
            == pytest.approx(least_in_ball(written_out(loss, *data), radius, 3), abs=1e-6)
        )


def test_ranksvm_agrees_with_a_support_vector_machine_on_differences_of_documents():
    from sklearn.svm import LinearSVC

    X, labels, _ = judged(3, n_lists=1, documents=30, features=4)
    better, worse = np.nonzero(labels[:, None] > labels)
    D = X[better] - X[worse]
    lambda_ = 0.05
    machine = LinearSVC(loss="hinge", C=1 / (lambda_ * len(D)), fit_intercept=False, tol=1e-8, max_iter=100_000)
    sign = np.where(np.arange(len(D)) % 2, 1, -1)
    theirs = machine.fit(D * sign[:, None], sign).coef_[0]
    found = Bundle(mean_loss(PairHinge(), X, labels, np.array([0, 30])), 4, floor=0.0).solve(lambda_, tol=1e-8)
    objective = lambda_ / 2 * theirs @ theirs + np.maximum(0, 1 - D @ theirs).mean()
    assert found.objective == pytest.approx(objective, rel=1e-6)
    np.testing.assert_allclose(found.w, theirs, atol=1e-3)


def test_a_smooth_function_is_made_as_small_as_a_method_for_smooth_functions_makes_it():
    oracle = mean_loss(PairHinge(squared=True), *judged(5, n_lists=10, features=4))
    for lambda_ in (1.0, 0.01):
        smooth = minimize(
            lambda w, lambda_=lambda_: (oracle(w)[0] + lambda_ / 2 * w @ w, oracle(w)[1] + lambda_ * w),
            np.zeros(4),
            jac=True,
            options={"gtol": 1e-10},
        )
        found = Bundle(oracle, 4, floor=0.0).solve(lambda_, tol=1e-8)
        assert found.converged
        assert found.objective == pytest.approx(smooth.fun, abs=1e-7)


@given(
    st.integers(1, 4).flatmap(
        lambda d: st.lists(st.lists(st.integers(-3, 3), min_size=d + 1, max_size=d + 1), min_size=1, max_size=12)
    ),
    st.sampled_from([1e-6, 1e-2, 1.0, 1e6]),
    st.integers(0, 2**16),
)
def test_no_point_is_below_the_lower_bound(planes, lambda_, seed):
    """The highest of some planes, repeated and flat ones among them; without a floor they may fall for ever."""
    planes = np.array(planes, dtype=float)
    offsets, slopes = planes[:, 0], planes[:, 1:]
    d = slopes.shape[1]
    found = Bundle(highest_plane(offsets, slopes), d).solve(lambda_, tol=1e-8)
    # slopes of size 3 at lambda 1e-6 make a master of size 1e7, in which a minimum of 0 drowns
    assert found.converged or found.gap <= 1e-13 * np.square(slopes).sum(axis=1).max() / lambda_
    assert found.gap >= 0
    assert found.objective == pytest.approx(
        lambda_ / 2 * found.w @ found.w + (offsets + slopes @ found.w).max(), rel=1e-12
    )
    # near the minimum and far from it
    rng = np.random.default_rng(seed)
    spread = np.repeat(10.0 ** np.arange(-6, 3), 20)[:, None] * (1 + np.abs(found.w).max())
    for w in found.w + spread * rng.normal(size=(len(spread), d)):
        objective = lambda_ / 2 * w @ w + (offsets + slopes @ w).max()
        assert objective >= found.lower_bound - 1e-10 * (abs(objective) + 1)
    # the plane that is handed out proves the bound, alone: it is below the function and its own minimum is the bound
    assert found.offset - found.slope @ found.slope / (2 * lambda_) == pytest.approx(
        found.lower_bound, rel=1e-8, abs=1e-9
    )


def test_history_closes_in_from_both_sides():
    found = Bundle(mean_loss(PairHinge(), *judged(7, n_lists=20)), 3, floor=0.0).solve(1e-3, tol=1e-9)
    history = found.history
    assert history.columns == ("call", "objective", "lower bound", "gap", "planes")
    assert (np.diff(history["objective"]) <= 0).all()
    assert (np.diff(history["lower bound"]) >= 0).all()
    assert (history["gap"] >= 0).all()
    np.testing.assert_array_equal(history["call"], np.arange(1, found.n_calls + 1))


# ------------------------------------------------------------------------------- kept planes, few planes, other centers


def test_a_path_of_lambdas_with_kept_planes_ends_where_cold_starts_do_and_asks_less():
    oracle = mean_loss(PairHinge(), *judged(11, n_lists=30, features=6))
    lambdas = 10.0 ** np.arange(0, -5, -1)
    kept = Bundle(oracle, 6, floor=0.0)
    warm = [kept.solve(lambda_, tol=1e-7) for lambda_ in lambdas]
    cold = [Bundle(oracle, 6, floor=0.0).solve(lambda_, tol=1e-7) for lambda_ in lambdas]
    for one, other in zip(warm, cold, strict=True):
        assert one.converged
        assert one.objective == pytest.approx(other.objective, rel=2e-7)
    assert sum(one.n_calls for one in warm) < sum(other.n_calls for other in cold)
    again = kept.solve(lambdas[0], tol=1e-4)
    assert again.n_calls < cold[0].n_calls
    assert again.objective == pytest.approx(cold[0].objective, rel=2e-4)


def test_planes_serve_the_ball_after_the_squared_norm():
    data = judged(2)
    bundle = Bundle(mean_loss(SVMMapHinge(), *data), 3, floor=0.0)
    bundle.solve(1e-3, tol=1e-6)
    found = bundle.solve(1.0, "l1 ball", tol=1e-8)
    assert found.objective == pytest.approx(least_in_ball(written_out(SVMMapHinge(), *data), 1.0, 3), abs=1e-6)


def test_a_ball_that_no_known_point_is_in_is_entered_at_its_center():
    bundle = Bundle(mean_loss(PairHinge(), *judged(2)), 3, floor=0.0)
    bundle.ask([5.0, 5.0, 5.0])
    found = bundle.solve(1.0, "l1 ball", tol=1e-8)
    assert found.objective == pytest.approx(least_in_ball(written_out(PairHinge(), *judged(2)), 1.0, 3), abs=1e-6)


def test_ten_planes_are_enough_and_only_slower():
    oracle = mean_loss(PairHinge(squared=True), *judged(13, n_lists=40, features=12))
    many = Bundle(oracle, 12, floor=0.0).solve(1e-2, tol=1e-5)
    few_planes = Bundle(oracle, 12, floor=0.0, max_planes=10).solve(1e-2, tol=1e-5, max_calls=5000)
    assert few_planes.converged
    assert few_planes.history["planes"].max() <= 12
    assert max(many.history["planes"]) > 12
    assert few_planes.objective == pytest.approx(many.objective, rel=2e-5)


def test_another_center_is_a_shifted_function():
    oracle, center = mean_loss(PairHinge(), *judged(17)), np.array([1.0, -2.0, 0.5])
    found = Bundle(oracle, 3, center=center, floor=0.0).solve(0.1, tol=1e-9)
    shifted = Bundle(lambda z: oracle(center + z), 3, floor=0.0).solve(0.1, tol=1e-9)
    assert found.objective == pytest.approx(shifted.objective, rel=1e-8)
    np.testing.assert_allclose(found.w, center + shifted.w, atol=1e-4)
    assert found.objective == pytest.approx(0.05 * ((found.w - center) ** 2).sum() + oracle(found.w)[0], rel=1e-12)


def test_a_good_start_spares_calls():
    oracle = mean_loss(PairHinge(), *judged(19, n_lists=20))
    cold = Bundle(oracle, 3, floor=0.0).solve(1e-2, tol=1e-9)
    warm = Bundle(oracle, 3, floor=0.0).solve(1e-2, start=cold.w, tol=1e-9)
    assert warm.objective <= cold.objective
    assert warm.history["objective"][0] == pytest.approx(cold.objective, rel=1e-12)


# ------------------------------------------------------------------------------- numbers at the edge


@pytest.mark.parametrize("lambda_", [1e-12, 1.0, 1e12])
def test_a_function_that_is_0_everywhere_is_done_at_once(lambda_):
    found = Bundle(lambda w: (0.0, np.zeros(3)), 3).solve(lambda_)
    assert (found.objective, found.gap, found.n_calls, found.converged) == (0.0, 0.0, 1, True)
    np.testing.assert_array_equal(found.w, 0)


@pytest.mark.parametrize("lambda_", [1e-9, 1e-3, 1.0, 1e9])
def test_a_linear_function_stops_where_its_slope_is_paid_for(lambda_):
    slope = np.array([3.0, -4.0])
    found = Bundle(lambda w: (slope @ w - 7, slope), 2).solve(lambda_, tol=1e-12, max_calls=200)
    assert found.objective == pytest.approx(-7 - 25 / (2 * lambda_), rel=1e-11)
    # strong convexity: the distance to the minimum is paid for by the gap
    away = found.w + slope / lambda_
    assert lambda_ / 2 * away @ away <= 2e-12 * abs(found.objective)


@pytest.mark.parametrize("lambda_", [1e-6, 1e-2, 1e2, 1e10])
def test_one_dimension_and_any_lambda(lambda_):
    """abs(w - 3): w = min(3, 1 / lambda)."""
    found = Bundle(lambda w: (abs(w[0] - 3), np.sign(w - 3)), 1, floor=0.0).solve(lambda_, tol=1e-9)
    w = min(3.0, 1 / lambda_)
    assert found.converged
    assert found.objective == pytest.approx(lambda_ / 2 * w * w + 3 - w, rel=1e-8)


def test_a_search_ends_where_rounding_decides():
    """At lambda 1e-10 the minimum is 4.5e-10 and numbers near 3 are 4e-16 apart: no gap of 1e-12 of the minimum."""
    found = Bundle(lambda w: (abs(w[0] - 3), np.sign(w - 3)), 1, floor=0.0).solve(1e-10, tol=1e-12)
    assert found.n_calls < 200
    assert found.lower_bound * (1 - 1e-9) <= 4.5e-10 <= found.objective <= 1e-9


@given(st.integers(-300, 300))
@few
def test_the_units_of_the_function_do_not_matter(power):
    """Powers of two: J and F times 2^p, w the same."""
    oracle, unit = mean_loss(PairHinge(), *judged(23)), 2.0 ** (power // 6)
    one = Bundle(oracle, 3, floor=0.0).solve(0.1, tol=1e-7)
    other = Bundle(lambda w: tuple(unit * part for part in oracle(w)), 3, floor=0.0).solve(0.1 * unit, tol=1e-7)
    assert other.objective == pytest.approx(unit * one.objective, rel=1e-6)


def test_single_precision_slopes_are_good_enough():
    X, labels, start = judged(29, n_lists=20)
    oracle = mean_loss(PairHinge(), X, labels, start)

    def rounded(w):
        value, slope = oracle(w.astype(np.float32).astype(float))
        return np.float32(value), slope.astype(np.float32)

    exact = Bundle(oracle, 3, floor=0.0).solve(1e-2, tol=1e-6)
    assert Bundle(rounded, 3, floor=0.0).solve(1e-2).objective == pytest.approx(exact.objective, rel=2e-4)


def test_a_function_may_round_to_just_below_its_floor():
    found = Bundle(lambda w: (-1e-17, np.zeros(2)), 2, floor=0.0).solve(1.0)
    assert found.converged
    assert found.gap == 0


# ------------------------------------------------------------------------------- the end, and refusals


def test_too_few_calls_are_admitted():
    oracle = mean_loss(PairHinge(), *judged(31, n_lists=30, features=6))
    found = Bundle(oracle, 6, floor=0.0).solve(1e-4, max_calls=3)
    assert not found.converged
    assert found.n_calls == 3
    assert found.gap == found.objective - found.lower_bound > 1e-4 * found.objective


def test_a_callback_sees_every_call_and_may_end_the_search():
    oracle, seen = mean_loss(PairHinge(), *judged(31, n_lists=30, features=6)), []

    def callback(w, row):
        assert row["objective"] == pytest.approx(oracle(w)[0] + 5e-5 * w @ w, rel=1e-12)
        seen.append(row["call"])
        return row["call"] == 4

    found = Bundle(oracle, 6, floor=0.0).solve(1e-4, callback=callback)
    assert seen == [1, 2, 3, 4]
    assert found.n_calls == 4


def test_a_search_that_was_broken_off_can_go_on():
    oracle, left = mean_loss(PairHinge(), *judged(31, n_lists=30, features=6)), [5]

    def interrupted(w):
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        return oracle(w)

    bundle = Bundle(interrupted, 6, floor=0.0)
    with pytest.raises(KeyboardInterrupt):
        bundle.solve(1e-3)
    assert len(bundle.planes) == 5  # the floor and four answers
    assert bundle.solve(1e-3, tol=1e-7).objective == pytest.approx(
        Bundle(oracle, 6, floor=0.0).solve(1e-3, tol=1e-7).objective, rel=2e-7
    )


def test_a_function_that_is_not_convex_is_found_out():
    with pytest.raises(RankwiseError, match="not convex"):
        Bundle(lambda w: (np.cos(w[0] + 1), -np.sin(w + 1)), 1).solve(0.01)
    oracle = mean_loss(PairHinge(), *judged(37))
    with pytest.raises(RankwiseError, match="not convex"):
        Bundle(lambda w: (oracle(w)[0], -oracle(w)[1]), 3).solve(0.1)  # the sign of the slope is wrong
    with pytest.raises(RankwiseError, match="floor is not 5"):
        Bundle(oracle, 3, floor=5.0).solve(0.1)


@pytest.mark.parametrize(
    "answer",
    [(np.nan, np.zeros(2)), (0.0, np.array([0.0, np.inf])), (0.0, np.zeros(3))],
    ids=["value", "slope", "shape"],
)
def test_answers_that_are_no_numbers_are_refused(answer):
    with pytest.raises(RankwiseError, match="finite"):
        Bundle(lambda w: answer, 2).solve(1.0)


def test_arguments_without_sense_are_refused():
    bundle = Bundle(lambda w: (0.0, np.zeros(2)), 2)
    for lambda_ in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(RankwiseError, match="above 0"):
            bundle.solve(lambda_)
        with pytest.raises(RankwiseError, match="above 0"):
            bundle.solve(lambda_, "l1 ball")
        with pytest.raises(RankwiseError, match="above 0"):
            bundle.solve(lambda_, "l2 ball")
    with pytest.raises(RankwiseError, match="max_calls"):
        bundle.solve(1.0, max_calls=0)
    with pytest.raises(RankwiseError, match="center"):
        Bundle(lambda w: (0.0, np.zeros(2)), 2, center=[1.0])
    with pytest.raises(RankwiseError, match="inside"):
        Bundle(lambda w: (0.0, np.zeros(2)), 2).solve(1.0, "l1 ball", start=[1.0, 1.0])


# ------------------------------------------------------------------------------- the master problem


@given(st.integers(1, 12), st.integers(1, 5), st.sampled_from([1e-8, 1e-3, 1.0, 1e3, 1e8]), st.integers(0, 2**16))
def test_the_master_is_solved_on_the_simplex(n, d, scale, seed):
    rng = np.random.default_rng(seed)
    A, q = rng.integers(-2, 3, size=(n, d)).astype(float), rng.integers(-3, 4, size=n).astype(float)
    P = A @ A.T * scale
    alpha = maximize_on_simplex(P, q)
    assert (alpha >= 0).all()
    assert alpha.sum() == pytest.approx(1, abs=1e-12)
    sizes = [size for size in (np.abs(P).max(), np.ptp(q)) if size > 0]
    assert shortfall(P, q, alpha) <= 1e-7 * min(sizes, default=1.0) + 1e-13 * max(sizes, default=0.0)
    # shortfall is what it says it is: no corner and no mixture with one is better by more
    value = q @ alpha - alpha @ P @ alpha / 2
    for corner, part in itertools.product(np.eye(n), (1.0, 0.1, 1e-3)):
        other = alpha + part * (corner - alpha)
        assert q @ other - other @ P @ other / 2 <= value + shortfall(P, q, alpha) + 1e-12 * (1 + np.abs(P).max())


@given(st.integers(2, 60), st.integers(1, 20), st.sampled_from([1e-6, 1e-3, 1.0, 1e3, 1e6]), st.integers(0, 2**32 - 1))
@few
def test_without_piqp_the_maximum_is_the_same(n, d, scale, seed):
    rng = np.random.default_rng(seed)
    A, q = rng.normal(size=(n, d)), rng.normal(size=n)
    P = A @ A.T * scale
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "piqp", None)
        alpha = maximize_on_simplex(P, q)
    right = maximize_on_simplex(P, q)
    allowed = shortfall(P, q, alpha) + shortfall(P, q, right)
    assert allowed <= 1e-7 * min(np.abs(P).max(), np.ptp(q))
    values = [q @ one - one @ P @ one / 2 for one in (alpha, right)]
    assert values[0] == pytest.approx(values[1], rel=1e-12, abs=allowed)


def test_without_piqp_a_ranker_reaches_the_same_objective(monkeypatch):
    queries = rw.make_lists(40, documents=8, features=5, random_state=0)
    ranker = rw.RankSVM(measure="nDCG@10", alpha=0.01, tolerance=1e-6)
    right = clone(ranker).fit(queries)
    monkeypatch.setitem(sys.modules, "piqp", None)
    found = clone(ranker).fit(queries)
    assert found.gap_ <= 1e-6 * found.objective_ * (1 + 1e-9)
    assert abs(found.objective_ - right.objective_) <= max(found.gap_, right.gap_)


@pytest.mark.parametrize("fault", ["nothing", "nonsense"])
def test_another_solver_helps_out_when_the_first_fails(monkeypatch, fault):
    rng = np.random.default_rng(0)
    A, q = rng.normal(size=(8, 3)), rng.normal(size=8)
    right = maximize_on_simplex(A @ A.T, q)
    corner = np.eye(8)[int(np.argmin(q))]
    monkeypatch.setattr(bundle_module, "_by_piqp", lambda P, q: q * np.nan if fault == "nothing" else corner)
    np.testing.assert_allclose(A.T @ maximize_on_simplex(A @ A.T, q), A.T @ right, atol=1e-3)


def test_a_master_beyond_the_range_of_numbers_is_refused():
    with pytest.raises(RankwiseError, match="not finite"):
        maximize_on_simplex(np.diag([np.inf, 1.0]), np.zeros(2))
