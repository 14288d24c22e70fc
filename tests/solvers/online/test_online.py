"""The round loop against plain loops: steps, balls, averages and running scales, however the rounds are divided."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwise.errors import RankwiseError
from rankwise.losses import SLAM, ListNet, MaxPair, PairHinge
from rankwise.measures._base import parse
from rankwise.queries.queries import Queries
from rankwise.solvers.online.config import Curve, OnlineConfig, State, Tally
from rankwise.solvers.online.loop import is_mistake, run_rounds
from tests.oracles import perceptrons as plain
from tests.strategies import few, judged_lists


def lists(count=40, features=4, seed=0, most=7):
    """Judged lists, some of one document, one label or none at all."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, most, count)
    X = rng.normal(size=(sizes.sum(), features)) * rng.uniform(0.1, 5, features)
    return Queries(X, rng.integers(0, 3, len(X)).astype(float), np.cumsum([0, *sizes]))


def states(config, queries, order=None):
    """The state after every round."""
    state, found = State.fresh(queries.n_features), []
    for number in range(len(queries)) if order is None else order:
        state, _ = run_rounds(config, state, queries, np.array([number]))
        found.append(state)
    return found


def gradient(config, X, labels, w):
    return X.T @ config.loss(X @ w, labels)[1] if len(labels) else np.zeros(len(w))


# ------------------------------------------------------------------------------------------- mistakes


@given(judged_lists(max_size=9), st.sampled_from([1, 2, 3, 5, 9, 20, None]))
def test_the_quick_test_for_a_mistake_equals_sorting(judged, k):
    scores, labels = np.array(judged[0], dtype=float), np.array(judged[1], dtype=float)
    grade = np.unique(labels, return_inverse=True)[1]
    buffer = np.empty(len(grade)), *np.empty((2, len(grade)), np.int64)
    assert is_mistake(scores, grade, math.inf if k is None else float(k), *buffer) == plain.is_mistake(
        scores, list(labels), k
    )


@pytest.mark.parametrize("measure", ["nDCG", "nDCG@3", "AP", "RR", "WTA", "Pairs"])
@few
@given(judged_lists(max_size=8))
def test_without_a_mistake_nothing_is_lost_and_with_one_something_is(measure, judged):
    """Whole grades, strictly larger gains and strictly smaller discounts: then the two are the same."""
    chosen = parse(measure)
    scores, labels = np.array(judged[0], dtype=float), np.array(judged[1], dtype=float)
    value = chosen(scores, labels, ties="pessimistic", empty="one")
    if measure == "Pairs" and len(set(labels)) == 1:
        value = 1.0
    wrong = plain.is_mistake(scores, plain.classes(chosen, labels), plain.looked_at(chosen))
    assert wrong == (value < 1 - 1e-12)


# ------------------------------------------------------------------------------------------- steps and balls


@pytest.mark.parametrize("step", ["constant", "sqrt"])
@pytest.mark.parametrize(("projection", "max_norm"), [("none", math.inf), ("l2", 0.3), ("l1", 0.3), ("l2", 1e3)])
@pytest.mark.parametrize("update", ["always", "mistakes"])
@pytest.mark.parametrize("loss", [ListNet(), PairHinge(), SLAM()], ids=repr)
def test_a_step_goes_down_the_gradient_and_back_into_the_ball(step, projection, max_norm, update, loss):
    queries = lists()
    config = OnlineConfig(
        loss=loss, measure=parse("nDCG@2"), update=update, eta=0.5, step=step, projection=projection, max_norm=max_norm
    )
    w = np.zeros(4)
    onto = {"l2": plain.onto_l2_ball, "l1": plain.onto_l1_ball, "none": lambda w, radius: w}[projection]
    outside = 0
    for t, (query, state) in enumerate(zip(queries, states(config, queries), strict=True), 1):
        if len(query) and (update == "always" or plain.is_mistake(query.X @ w, list(query.y), 2)):
            moved = w - 0.5 / (math.sqrt(t) if step == "sqrt" else 1) * gradient(config, query.X, query.y, w)
            outside += {"l1": np.abs(moved).sum(), "l2": np.linalg.norm(moved), "none": 0}[projection] > max_norm
            w = onto(moved, max_norm)
        np.testing.assert_allclose(state.w, w, rtol=1e-9, atol=1e-12)
        w = state.w  # from the same bits: a tie must not fall apart
    assert (outside > 0) == (max_norm == 0.3)


# ------------------------------------------------------------------------------------------- averages


@pytest.mark.parametrize("averaging", ["none", "uniform", "suffix"])
@pytest.mark.parametrize("rounds", [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 40])
def test_averages_are_of_the_weights_that_rounds_began_with(averaging, rounds):
    queries = lists()[:rounds]
    config = OnlineConfig(loss=ListNet(), measure=parse("nDCG"), update="always", averaging=averaging)
    found = states(config, queries)
    began = [np.zeros(4), *(state.w for state in found[:-1])]
    expected = {"none": found[-1].w, "uniform": np.mean(began, axis=0), "suffix": plain.suffix(began)}[averaging]
    np.testing.assert_allclose(found[-1].coef(averaging), expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(
        found[-1].w, states(OnlineConfig(**vars(config) | {"averaging": "none"}), queries)[-1].w
    )


def test_a_suffix_holds_half_of_the_rounds_at_least_and_three_quarters_at_most():
    for t in range(1, 200):
        middle = plain.suffix([np.array([float(i)]) for i in range(t)])[0]
        kept = 2 * (t - 1 - middle) + 1  # the mean of first .. t - 1 tells where it begins
        assert t / 2 <= kept <= max(1, 0.75 * (t + 1))


# ------------------------------------------------------------------------------------------- running scales


def test_a_running_radius_divides_every_feature_by_the_largest_list_so_far():
    queries = lists(seed=3)
    config = OnlineConfig(loss=ListNet(), measure=parse("nDCG"), update="always", scale="radius")
    w, largest, learned = np.zeros(4), 0.0, 0.0
    for query, state in zip(queries, states(config, queries), strict=True):
        if len(query):
            largest = max(largest, radius(query.X))
            scaled = query.X / largest if largest else query.X
            learned = max(learned, radius(scaled))
            w = w - gradient(config, scaled, query.y, w)
        np.testing.assert_allclose(state.w, w, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(state.coef("none"), w / (largest or 1), rtol=1e-9, atol=1e-12)
        assert state.radius == pytest.approx(learned, rel=1e-12)
        assert state.radius <= 1 + 1e-12


def test_a_running_standard_deviation_is_that_of_all_documents_so_far():
    queries = lists(seed=4)
    X = np.column_stack([queries.X, np.full(queries.n_documents, 0.7)])  # a constant feature counts for nothing
    queries = Queries.from_arrays(X, queries.y, group=queries.sizes)
    config = OnlineConfig(loss=ListNet(), measure=parse("nDCG"), update="always", scale="standard")
    w, seen = np.zeros(5), np.empty((0, 5))
    for query, state in zip(queries, states(config, queries), strict=True):
        if len(query):
            seen = np.concatenate([seen, query.X])
            spread = np.sqrt(((seen - seen.mean(axis=0)) ** 2).mean(axis=0))
            scale = np.divide(1, spread, out=np.zeros(5), where=spread > 1e-12)
            w = w - gradient(config, query.X * scale, query.y, w)
            np.testing.assert_allclose(state.scale, scale, rtol=1e-9)
        np.testing.assert_allclose(state.w, w, rtol=1e-8, atol=1e-10)
    assert state.w[4] == state.scale[4] == 0


def radius(X):
    return min(np.linalg.norm(X, axis=1).max(), np.linalg.norm(X - X.mean(axis=0), axis=1).max())


def test_units_of_features_do_not_matter_to_standardized_rounds():
    """Powers of two change no bit but the exponent."""
    queries = lists(seed=5)
    units = np.array([2.0**-20, 1, 8, 2.0**30])
    other = Queries.from_arrays(queries.X * units, queries.y, group=queries.sizes)
    config = OnlineConfig(loss=SLAM(), measure=parse("nDCG"), scale="standard")
    one, two = states(config, queries)[-1], states(config, other)[-1]
    np.testing.assert_array_equal(one.coef("none"), two.coef("none") * units)


# ------------------------------------------------------------------------------------------- rounds as values


@pytest.mark.parametrize("scale", ["none", "radius", "standard"])
@pytest.mark.parametrize("averaging", ["none", "uniform", "suffix"])
@few
@given(st.lists(st.integers(0, 40), max_size=5))
def test_any_division_of_the_rounds_gives_the_same_bits(scale, averaging, cuts):
    queries = lists()
    config = OnlineConfig(loss=PairHinge(), measure=parse("AP"), update="always", averaging=averaging, scale=scale)
    whole, account = run_rounds(config, State.fresh(4), queries, np.arange(40))
    state, parts = State.fresh(4), []
    for part in np.split(np.arange(40), sorted(cuts)):
        state, played = run_rounds(config, state, queries, part)
        parts.append(played)
    for name in State.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(state, name), getattr(whole, name))
    for name in ("order", "mistake", "loss", "measure", "worst"):
        np.testing.assert_array_equal(np.concatenate([getattr(one, name) for one in parts]), getattr(account, name))


def test_a_state_is_never_changed():
    queries = lists()
    config = OnlineConfig(loss=MaxPair(), measure=parse("nDCG"), scale="standard", averaging="uniform")
    state = states(config, queries)[5]
    before = [getattr(state, name).tobytes() for name in State.__dataclass_fields__]
    run_rounds(config, state, queries, np.arange(40))
    assert [getattr(state, name).tobytes() for name in State.__dataclass_fields__] == before


def test_what_happened_is_told_round_by_round():
    queries = lists()
    config = OnlineConfig(loss=SLAM(k=2), measure=parse("nDCG@2"), eta=0.5)
    order = np.random.default_rng(0).permutation(40)
    _, played = run_rounds(config, State.fresh(4), queries, order)
    w, ties = np.zeros(4), {"measure": "expected", "worst": "pessimistic"}
    for r, number in enumerate(order):
        query = queries[int(number)]
        scores = query.X @ w
        wrong = len(query) > 0 and plain.is_mistake(scores, list(query.y), 2)
        assert played.mistake[r] == wrong
        for name, rule in ties.items():
            expected = config.measure(scores, query.y, ties=rule) if len(query) else math.nan
            assert getattr(played, name)[r] == pytest.approx(expected, abs=1e-12, nan_ok=True)
        if wrong:
            assert played.loss[r] == pytest.approx(config.loss(scores, query.y)[0])
            w = w - 0.5 * plain.slam_gradient(query.X, query.y, scores, config.loss)
        else:
            assert played.loss[r] == 0


@pytest.mark.parametrize("place", [0, 3])
def test_scores_that_overflow_are_reported_with_their_query_and_round(place):
    X = np.full((8, 1), 1e-3)
    X[2 * place : 2 * place + 2] = [[1e200], [-1e200]]
    X[-2:] = [[1e200], [-1e200]]
    y = np.tile([1.0, 0.0], 4)
    queries = Queries.from_arrays(X, y, qid=np.repeat(["a", "b", "c", "d"], 2))
    config = OnlineConfig(loss=MaxPair(), measure=parse("nDCG"), eta=1e200)
    state = State.fresh(1)
    with pytest.raises(RankwiseError, match=r"too large for float64: scale the features") as error:
        run_rounds(config, state, queries, np.arange(4))
    assert "\n" not in str(error.value)
    assert state.w.tolist() == [0.0]


# ------------------------------------------------------------------------------------------- curves and tallies


@given(st.integers(0, 30_000), st.lists(st.integers(0, 30_000), max_size=6))
def test_a_curve_keeps_two_thousand_points_however_the_rounds_came(rounds, cuts):
    totals = np.arange(1, rounds + 1, dtype=float)
    curve, before = Curve(), 0
    for part in np.split(totals, sorted(cut for cut in cuts if cut <= rounds)):
        curve = curve.extend(before, part, part / 2, part, part)
        before += len(part)
    whole = Curve().extend(0, totals, totals / 2, totals, totals)
    np.testing.assert_array_equal(curve.points, whole.points)
    assert curve.stride == whole.stride
    assert len(curve.points) <= 2048
    assert rounds < 2048 or len(curve.points) > 1000
    np.testing.assert_array_equal(curve.rounds, np.arange(curve.stride, rounds + 1, curve.stride))
    np.testing.assert_array_equal(curve.mistakes, curve.rounds)
    assert (curve.mean == 1).all()


def test_runs_that_part_keep_tallies_of_their_own():
    common = Tally().add(np.array([0, 2]), 3).add(np.array([3]), 5)
    one = common.add(np.array([5, 5]), 7)
    other = common.add(np.array([6]), 8)
    again = one.add(np.array([0, 7]), 8)
    assert common.counts.tolist() == [1, 0, 1, 1, 0]
    assert other.counts.tolist() == [1, 0, 1, 1, 0, 0, 1, 0]
    assert again.counts.tolist() == [2, 0, 1, 1, 0, 2, 0, 1]
