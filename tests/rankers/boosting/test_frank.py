"""FRank: every choice and every step against brute force over pairs, thresholds and alphas, and odd data."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankwise as rw
from rankwise._tables import Table
from rankwise.errors import Interrupted, RankwiseError
from rankwise.queries.queries import Queries
from rankwise.rankers.boosting import steps as _watched
from rankwise.rankers.boosting.candidates import between
from rankwise.rankers.boosting.frank import (
    LARGEST,
    NODES,
    WIDTH,
    FRank,
    bound_alpha,
    exact_alpha,
    fidelity,
    loss_change,
)
from rankwise.rankers.boosting.steps import GRAIN, StepScorer, on_grain
from tests.oracles import boosting
from tests.rankers.boosting.test_rankboost import assert_same, lists, paired_rows, small_lists, steps_of
from tests.strategies import few

# ------------------------------------------------------------------------------------------- the algorithm


@pytest.mark.parametrize("choice", ["gain", "gradient"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("levels", [2, 4])
def test_every_round_takes_the_first_of_the_best_of_all_thresholds(choice, weighted, levels):
    queries = lists(levels, weighted=weighted, levels=levels)
    pairs = boosting.all_pairs(queries, each_query_equal=True)
    candidates = boosting.midpoints(queries.X, paired_rows(pairs))
    model = FRank(rounds=6, choice=choice).fit(queries)
    taken = []
    for row in model.history_:
        scores = boosting.score(queries.X, taken)
        sums = list(boosting.frank_sums(queries.X, pairs, scores, candidates))
        worth = [(math.sqrt(up) - math.sqrt(down)) ** 2 if choice == "gain" else abs(up - down) for up, down in sums]
        first = next(number for number, value in enumerate(worth) if value >= max(worth) - 1e-12)
        assert (row["feature"], row["threshold"]) == candidates[first]
        assert row["gain"] == pytest.approx(worth[first], rel=1e-9, abs=1e-12)
        up, down = sums[first]
        expected = 0.5 * math.log(up / down) if min(up, down) > 0 else math.copysign(LARGEST, up - down)
        assert row["alpha"] == pytest.approx(expected, abs=1e-5)
        taken.append((row["feature"], row["threshold"], row["alpha"]))
        assert row["loss"] == pytest.approx(boosting.fidelity_loss(pairs, boosting.score(queries.X, taken)), abs=1e-5)
    assert len(taken) == 6


@pytest.mark.parametrize("seed", range(4))
def test_the_exact_step_is_the_lowest_of_a_dense_grid(seed):
    queries = lists(seed, levels=3)
    pairs = boosting.all_pairs(queries, each_query_equal=True)
    history = FRank(rounds=4, step="exact").fit(queries).history_
    taken = []
    for row in history:
        before = boosting.score(queries.X, taken)
        h = (queries.X[:, row["feature"]] > row["threshold"]).astype(float)
        grid = np.linspace(-LARGEST, LARGEST, 2_001)
        ways = np.array([h[i] - h[j] for i, j, _ in pairs])
        margins = np.array([before[i] - before[j] for i, j, _ in pairs])
        weight = np.array([weight for *_, weight in pairs])
        losses = weight @ fidelity(margins[:, None] + ways[:, None] * grid)
        own = weight @ fidelity(margins + ways * row["alpha"])
        assert own <= losses.min() + 1e-6
        taken.append((row["feature"], row["threshold"], row["alpha"]))


@few
@given(small_lists(), st.sampled_from(["bound", "exact"]))
def test_the_loss_falls_by_the_gain_at_least(queries, step):
    """The bound is that of a concave function by its tangent; the exact step can only do better."""
    loss = 1 - math.sqrt(0.5)
    for row in FRank(rounds=5, step=step).fit(queries).history_:
        if abs(row["alpha"]) < LARGEST:
            assert row["loss"] <= loss - row["gain"] + 1e-6
        assert row["loss"] < loss
        loss = row["loss"]


def test_an_exact_step_finds_the_deeper_of_two_valleys():
    """Pairs far on the wrong side pull beyond a hill that pairs on the right side make."""
    counts = np.zeros((2, NODES))
    middle = NODES // 2
    counts[0, middle] = 0.2  # won a little more by a small step
    counts[0, middle - round(6 / WIDTH)] = 1.0  # won by a step of more than 6
    counts[1, middle + round(2 / WIDTH)] = 0.3  # lost by a step of more than 2
    alpha = exact_alpha(counts)
    grid = np.linspace(-LARGEST, LARGEST, 4_001)
    losses = [0.2 * fidelity(a) + 1.0 * fidelity(a - 6) + 0.3 * fidelity(2 - a) for a in grid]
    assert alpha == pytest.approx(grid[int(np.argmin(losses))], abs=0.01)
    assert alpha > 7 > bound_alpha(counts)
    assert loss_change(counts, alpha) < loss_change(counts, bound_alpha(counts)) < 0


@pytest.mark.parametrize("length", [bound_alpha, exact_alpha])
def test_a_step_that_all_pairs_want_goes_as_far_as_steps_go(length):
    counts = np.zeros((2, NODES))
    assert length(np.zeros((2, NODES))) in (0.0, -LARGEST)  # nothing to win: any alpha will do
    counts[0, NODES // 2] = 1.0
    assert length(counts) == LARGEST
    assert length(counts[::-1]) == -LARGEST


def test_a_pair_that_cannot_be_won_costs_no_more_than_one():
    assert fidelity(np.array([0.0]))[0] == pytest.approx(1 - math.sqrt(0.5))
    values = fidelity(np.linspace(-800, 800, 999))
    assert values[0] == 1
    assert 0 <= values[-1] < 1e-300
    assert (np.diff(values) <= 0).all()


# ------------------------------------------------------------------------------------------- lists, weights, threads


def test_lists_of_one_label_and_lists_of_weight_zero_teach_nothing():
    queries = lists(7)
    alike = Queries.from_arrays(np.random.default_rng(1).normal(size=(6, 3)), [1, 1, 1, 0, 0, 2], group=[3, 2, 1])
    model = FRank(rounds=5).fit(queries)
    assert steps_of(FRank(rounds=5).fit(Queries.concat([alike, queries]))) == steps_of(model)
    other = lists(8)
    weight = np.repeat([0.0, 1.0], [len(other), len(queries)])
    assert_same(FRank(rounds=5).fit(Queries.concat([other, queries]).with_weight(weight)), model)


@pytest.mark.parametrize("choice", ["gain", "gradient"])
@pytest.mark.parametrize("step", ["bound", "exact"])
def test_scattered_rows_and_other_precisions_and_threads_change_no_bit(choice, step, monkeypatch):
    monkeypatch.setattr("rankwise.rankers.boosting.candidates._WORK", 1)
    queries, held = lists(10, count=20, features=9), lists(11, features=9)
    options = {"rounds": 4, "choice": choice, "step": step}
    model = FRank(n_jobs=1, **options).fit(queries, validation=held)
    assert len(model.history_) == 4
    assert_same(FRank(n_jobs=3, **options).fit(queries, validation=held), model)
    short = Queries.from_arrays(queries.X.astype(np.float32), queries.y, group=queries.sizes)
    assert_same(FRank(**options).fit(short, validation=held), model)
    owner = queries.query_of_row
    order = np.argsort(np.arange(len(owner)) - queries.start[owner], kind="stable")
    scattered = Queries.from_arrays(queries.X[order], queries.y[order], qid=owner[order])
    assert_same(FRank(**options).fit(scattered, validation=held), model)


@pytest.mark.parametrize("change", [lambda x: 1e300 * (x - 1), lambda x: 1e-310 * x, np.exp])
def test_only_the_order_of_a_features_values_matters(change):
    queries = lists(12)
    other = Queries.from_arrays(change(queries.X), queries.y, group=queries.sizes)
    one, two = FRank(rounds=5).fit(queries), FRank(rounds=5).fit(other)
    np.testing.assert_array_equal(one.predict(queries), two.predict(other))


@pytest.mark.parametrize("call", [1, 2, 4])
def test_ctrl_c_keeps_the_rounds_that_had_finished(call, monkeypatch):
    train, held, calls = lists(16), lists(17), []
    measure = _watched.measure_lists

    def interrupted(*arguments, **options):
        calls.append(1)
        if len(calls) == call:
            raise KeyboardInterrupt
        return measure(*arguments, **options)

    finished = call - 1
    expected = FRank(rounds=max(finished, 1)).fit(train, validation=held)
    monkeypatch.setattr(_watched, "measure_lists", interrupted)
    model = FRank(rounds=20)
    with pytest.raises(KeyboardInterrupt) as stop:
        model.fit(train, validation=held)
    assert isinstance(stop.value, Interrupted) == (finished > 0)
    if finished:
        assert_same(model, expected)
    else:
        assert not hasattr(model, "history_")


def test_a_saved_ranker_has_the_same_rounds(tmp_path):
    for number, queries in enumerate([lists(18), Queries.from_arrays(np.ones((3, 2)), [0, 1, 2], group=[3])]):
        model = FRank(rounds=5).fit(queries, validation=queries)
        model.save(tmp_path / f"{number}.rankwise")
        copy = rw.load(tmp_path / f"{number}.rankwise")
        assert_same(copy, model)
        np.testing.assert_array_equal(copy.predict(queries), model.predict(queries))


@pytest.mark.parametrize("wrong", [{"choice": "best"}, {"step": "long"}])
def test_parameters_that_mean_nothing_are_refused_in_a_sentence(wrong):
    ((name, value),) = wrong.items()
    with pytest.raises(RankwiseError, match=f"^The '{name}' parameter of FRank must be .* Got '{value}' instead"):
        FRank(**wrong).fit(lists(19))


# ------------------------------------------------------------------------------------------- thresholds, steps, scores


@given(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(0, 40),
)
def test_a_threshold_separates_its_values_in_both_precisions(a, b, ulps):
    """Whatever two values, or neighbors so many units in the last place apart."""
    near = a
    for _ in range(ulps):
        near = math.nextafter(near, math.inf)
    for low, high in ((min(a, b), max(a, b)), (a, near)):
        if low == high or not math.isfinite(high):
            continue
        (t,) = between(np.array([low]), np.array([high]))
        assert low <= t < high
        with np.errstate(over="ignore"):
            short_low, short_high, short = (float(np.float32(value)) for value in (low, high, t))
        if short_low == low and short_high == high:
            assert short == t, "thresholds between float32 values are float32 values"
        if short_low < short_high:
            assert short_low <= t < short_high


@few
@given(st.data())
def test_scores_are_plain_sums_of_steps_in_any_order_to_the_bit(data):
    """Values on thresholds included; alphas lie on a grain, so that sums are exact."""
    place, count = st.integers(0, 3), data.draw(st.integers(0, 12))
    values = [-1.5, 0.0, 0.25, 3.0]
    alphas = st.floats(-20, 20).map(on_grain)
    steps = [(data.draw(place), values[data.draw(place)], data.draw(alphas)) for _ in range(count)]
    rows = np.array([[values[data.draw(place)] + data.draw(st.sampled_from([-0.1, 0, 0.1])) for _ in range(4)]] * 3)
    columns = zip(*steps, strict=True) if steps else ([], [], [])
    feature, cut, alpha = (np.array(list(column)) for column in columns)
    table = Table({"feature": feature.astype(np.int64), "threshold": cut.astype(float), "alpha": alpha})
    expected = boosting.score(rows, steps[::-1])
    np.testing.assert_array_equal(StepScorer.of(table)(rows), expected)
    short = rows.astype(np.float32)
    np.testing.assert_array_equal(StepScorer.of(table)(short), boosting.score(short, steps))


@given(st.floats(-20, 20))
def test_alphas_on_the_grain_are_the_nearest_and_never_vanish(alpha):
    found = on_grain(alpha)
    assert found / GRAIN == round(found / GRAIN)
    assert abs(found - alpha) <= (GRAIN / 2 if abs(alpha) >= GRAIN / 2 else GRAIN)
    assert (found == 0) == (alpha == 0)


@pytest.mark.parametrize(
    ("name", "value"),
    [("feature", -1), ("feature", 3), ("threshold", math.nan), ("alpha", math.inf), ("alpha", 1e308), ("round", 5)],
)
def test_steps_that_no_fit_has_taken_are_refused(name, value, tmp_path, monkeypatch):
    model = FRank(rounds=3).fit(lists(21))
    columns = {key: model.history_[key].copy() for key in model.history_.columns}
    columns[name][:2] = value
    monkeypatch.setattr(model, "history_", Table(columns))
    model.save(tmp_path / "model.rankwise")
    with pytest.raises(RankwiseError, match="is damaged: its") as error:
        rw.load(tmp_path / "model.rankwise")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("kept", [-1, 4, 1.0, True, None, "2"])
def test_no_other_rounds_are_kept_than_there_are(kept, tmp_path):
    model = FRank(rounds=3).fit(lists(21))
    model.rounds_ = kept
    model.save(tmp_path / "model.rankwise")
    with pytest.raises(RankwiseError, match="is damaged: it keeps"):
        rw.load(tmp_path / "model.rankwise")


def test_on_ohsumed_it_is_as_good_as_published(data_folder):
    """Five official folds, the round chosen on the validation part, the official evaluator's conventions."""
    folds = list(rw.io.read_folds(data_folder / "ohsumed"))
    scores = [FRank(rounds=25).fit(fold.train, validation=fold.validation).predict(fold.test) for fold in folds]
    tests = Queries.concat([fold.test for fold in folds])
    found = rw.evaluate(tests, np.concatenate(scores), ["nDCG@10", "AP"], like="letor").mean
    assert found["nDCG@10"] > 0.4433
    assert found["AP"] > 0.4439
