"""RankBoost: every choice against brute force over pairs and thresholds, its training bound, ties, and odd data."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankwise as rw
from rankwise._kernels.pairs import exponential_potentials
from rankwise.errors import DataError, Interrupted, RankwiseError
from rankwise.queries.queries import Queries
from rankwise.rankers.boosting import steps
from rankwise.rankers.boosting.candidates import Candidates, GradedLists
from rankwise.rankers.boosting.steps import RankBoost
from tests.oracles import boosting
from tests.strategies import few


def lists(seed=0, count=8, features=3, levels=4, weighted=False, dtype=np.float64, values=7):
    """Judged lists whose features take few values, so that thresholds and documents are often tied."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, count)
    X = rng.integers(0, values, (sizes.sum(), features)).astype(dtype) / 2
    y = np.clip(np.rint(X @ np.linspace(1, -0.5, features) / 2 + rng.normal(size=len(X))), 0, levels - 1)
    weight = rng.choice([0.0, 0.5, 1.0, 3.0], count) if weighted else None
    return Queries.from_arrays(X, y, group=sizes, weight=weight)


def steps_of(model):
    return [tuple(step.values()) for step in model.steps_]


def assert_same(one, two):
    assert one.history_ == two.history_
    assert one.rounds_ == two.rounds_


def paired_rows(pairs):
    return sorted({row for i, j, _ in pairs for row in (i, j)})


@st.composite
def small_lists(draw):
    """One to three lists of one to six documents, two features of few values, any labels, some weights of 0."""
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    row = st.tuples(*[st.sampled_from([-1.0, 0.0, 0.5, 2.0])] * 2, st.sampled_from([0, 0, 1, 2, 2.5]))
    rows = np.array(draw(st.lists(row, min_size=sum(sizes), max_size=sum(sizes))))
    weight = draw(st.lists(st.sampled_from([0.0, 1.0, 2.5]), min_size=len(sizes), max_size=len(sizes)))
    return Queries.from_arrays(rows[:, :2], rows[:, 2], group=sizes, weight=weight if any(weight) else None)


# ------------------------------------------------------------------------------------------- the algorithm


@pytest.mark.parametrize("pairs", ["equal", "query"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("levels", [2, 4])
def test_every_round_takes_the_first_of_the_best_of_all_thresholds(pairs, weighted, levels):
    queries = lists(levels, weighted=weighted, levels=levels)
    weights = boosting.all_pairs(queries, pairs == "query")
    candidates = boosting.midpoints(queries.X, paired_rows(weights))
    model = RankBoost(rounds=12, pairs=pairs).fit(queries)
    taken, bound = [], 1.0
    for row in model.history_:
        every = boosting.rankboost_r(queries.X, weights, boosting.score(queries.X, taken), candidates)
        largest = max(map(abs, every))
        first = next(number for number, r in enumerate(every) if abs(r) >= largest - 1e-12)
        assert (row["feature"], row["threshold"]) == candidates[first]
        assert row["r"] == pytest.approx(every[first], abs=1e-12)
        assert row["alpha"] == pytest.approx(0.5 * math.log((1 + every[first]) / (1 - every[first])), abs=1e-11)
        bound *= math.sqrt(1 - row["r"] ** 2)
        assert row["bound"] == pytest.approx(bound, rel=1e-9)
        taken.append((row["feature"], row["threshold"], row["alpha"]))
        assert row["train"] == rw.evaluate(queries, boosting.score(queries.X, taken), ["nDCG@10"]).mean["nDCG@10"]
    assert len(taken) == 12


@few
@given(small_lists(), st.sampled_from(["equal", "query"]))
def test_the_fraction_of_misordered_pairs_is_below_the_bound_after_every_round(queries, pairs):
    """Pairs with equal scores count as misordered."""
    weights = boosting.all_pairs(queries, pairs == "query") if _has_pairs(queries) else []
    history = RankBoost(rounds=6, pairs=pairs).fit(queries).history_
    taken = []
    for row in history:
        taken.append((row["feature"], row["threshold"], row["alpha"]))
        wrong = boosting.misordered(boosting.score(queries.X, taken), weights)
        assert wrong <= row["bound"] * (1 + 1e-9)
    assert list(history["round"]) == list(range(1, len(history) + 1))
    assert weights or not len(history)


def _has_pairs(queries):
    weight = np.ones(len(queries)) if queries.weight is None else queries.weight
    return any(w > 0 and len(set(query.y)) > 1 for w, query in zip(weight, queries, strict=True))


@pytest.mark.parametrize("size", [1.0, 300.0, 1e5])
def test_potentials_are_sums_over_pairs_however_large_scores_are(size):
    queries = lists(5, levels=5, count=12)
    graded, rng = GradedLists.of(queries), np.random.default_rng(0)
    scores = size * rng.normal(size=queries.n_documents)
    weights = boosting.all_pairs(queries, False)
    logs = np.array([math.log(weight) + scores[j] - scores[i] for i, j, weight in weights])
    D = np.exp(logs - logs.max())
    expected = np.zeros(queries.n_documents)
    for d, (i, j, _) in zip(D / D.sum(), weights, strict=True):
        expected[i] += d
        expected[j] -= d
    potential = np.empty(graded.n_paired)
    own = scores[graded.rows[: graded.n_paired]]
    total = exponential_potentials(own, graded.segment, graded.lists, np.log(graded.weight), potential)
    np.testing.assert_allclose(potential, expected[graded.rows[: graded.n_paired]], rtol=1e-9, atol=1e-12)
    assert total == pytest.approx(logs.max() + math.log(D.sum()) + math.log(len(weights)), rel=1e-12)


def test_scores_may_grow_for_as_long_as_one_likes():
    """No single threshold orders these three grades; two do, and every round adds to the margin."""
    queries = Queries.from_arrays([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]], [0, 1, 2], group=[3])
    model = RankBoost(rounds=3_000, measure="AP").fit(queries)
    assert len(model.history_) == 3_000
    scores = model.predict(queries)
    assert np.isfinite(scores).all()
    assert np.diff(scores).min() > 400
    assert model.history_["bound"][-1] < 1e-250
    assert (np.abs(model.history_["r"]) > 0.1).all()


def test_a_perfect_threshold_ends_the_rounds():
    queries = Queries.from_arrays([[0.0], [0.1], [5.0], [6.0]], [0, 0, 1, 1], group=[4])
    for sign in (1, -1):
        model = RankBoost().fit(sign * queries.X, queries.y, group=[4])
        assert len(model.steps_) == 1
        assert model.steps_["threshold"][0] == pytest.approx(sign * 2.55)
        assert 10 < sign * model.steps_["alpha"][0] < 10.8
        assert model.history_["bound"][0] < 1e-4


def test_rounds_end_when_no_threshold_tells_better_from_worse():
    balanced = Queries.from_arrays([[0.0], [1.0], [1.0], [0.0]], [0, 1, 0, 1], group=[2, 2])
    for queries in (balanced, Queries.from_arrays(np.ones((3, 2)), [0, 1, 2], group=[3])):
        model = RankBoost().fit(queries)
        assert len(model.history_) == 0
        np.testing.assert_array_equal(model.predict(queries), np.zeros(queries.n_documents))


def test_equal_features_are_told_apart_by_their_numbers():
    queries = lists(6)
    twice = Queries.from_arrays(np.hstack([queries.X, -queries.X, queries.X]), queries.y, group=queries.sizes)
    one, two = RankBoost(rounds=20).fit(queries), RankBoost(rounds=20).fit(twice)
    assert steps_of(two) == steps_of(one)


# ------------------------------------------------------------------------------------------- lists and weights


def test_lists_of_one_label_and_lists_of_weight_zero_teach_nothing():
    queries = lists(7)
    alike = Queries.from_arrays(np.random.default_rng(1).normal(size=(6, 3)), [1, 1, 1, 0, 0, 2], group=[3, 2, 1])
    model = RankBoost(rounds=9).fit(queries)
    assert steps_of(RankBoost(rounds=9).fit(Queries.concat([alike, queries]))) == steps_of(model)
    other = lists(8)
    weight = np.repeat([0.0, 1.0], [len(other), len(queries)])
    both = Queries.concat([other, queries]).with_weight(weight)
    assert_same(RankBoost(rounds=9).fit(both), model)


@pytest.mark.parametrize("pairs", ["equal", "query"])
def test_a_list_of_weight_two_is_a_list_twice(pairs):
    queries = lists(9)
    weight = np.ones(len(queries))
    weight[[1, 4]] = 2
    query_weight = queries[np.sort([*range(len(queries)), 1, 4])]
    one, two = (RankBoost(rounds=9, pairs=pairs).fit(data) for data in (queries.with_weight(weight), query_weight))
    np.testing.assert_allclose(one.steps_["alpha"], two.steps_["alpha"], rtol=1e-9)
    np.testing.assert_array_equal(one.steps_["threshold"], two.steps_["threshold"])


def test_scattered_rows_and_other_precisions_and_threads_change_no_bit(monkeypatch):
    monkeypatch.setattr("rankwise.rankers.boosting.candidates._SHARED", 1)
    monkeypatch.setattr("rankwise.rankers.boosting.candidates._BLOCK", 2)
    monkeypatch.setattr("rankwise._kernels.parallel.CHUNK", 16)
    queries, held = lists(10, count=20, features=9), lists(11, features=9)
    model = RankBoost(rounds=25, n_jobs=1).fit(queries, validation=held)
    assert_same(RankBoost(rounds=25, n_jobs=3).fit(queries, validation=held), model)
    short = Queries.from_arrays(queries.X.astype(np.float32), queries.y, group=queries.sizes)
    assert_same(RankBoost(rounds=25).fit(short, validation=held), model)
    owner = queries.query_of_row
    order = np.argsort(np.arange(len(owner)) - queries.start[owner], kind="stable")  # first documents first
    scattered = Queries.from_arrays(queries.X[order], queries.y[order], qid=owner[order])
    assert not scattered.is_grouped
    again = RankBoost(rounds=25).fit(scattered, validation=held)
    assert_same(again, model)
    np.testing.assert_array_equal(again.predict(scattered), model.predict(queries)[order])


# ------------------------------------------------------------------------------------------- features


@pytest.mark.parametrize("change", [lambda x: 1e300 * (x - 1), lambda x: 1e-310 * x, np.exp, lambda x: x**3 - 1e6])
def test_only_the_order_of_a_features_values_matters(change):
    queries = lists(12)
    other = Queries.from_arrays(change(queries.X), queries.y, group=queries.sizes)
    one, two = RankBoost(rounds=15).fit(queries), RankBoost(rounds=15).fit(other)
    np.testing.assert_array_equal(one.predict(queries), two.predict(other))
    np.testing.assert_array_equal(one.history_["r"], two.history_["r"])
    assert np.isfinite(two.steps_["threshold"]).all()


def test_missing_values_are_refused_by_name():
    queries = lists(13)
    X = queries.X.copy()
    X[2, 1] = np.nan
    with pytest.raises(DataError, match=r"row 2, feature 1.*missing='zero'"):
        RankBoost().fit(X, queries.y, group=queries.sizes)
    with pytest.raises(DataError, match="row 2, feature 1"):
        RankBoost(rounds=1).fit(queries).predict(X)


@pytest.mark.parametrize("count", [9, 300, 70_000])
def test_all_thresholds_of_a_feature_are_tried_however_many_they_are(count):
    """One byte, two and four hold a document's place."""
    X = np.arange(count, dtype=np.float64)[:, None]
    y = (np.arange(count) >= count * 2 // 3).astype(float)
    y[0] = 1
    model = RankBoost(rounds=1, thresholds=None).fit(X, y, group=[count])
    assert model.steps_["threshold"][0] == count * 2 // 3 - 0.5
    fewer = RankBoost(rounds=1, thresholds=1).fit(X, y, group=[count])
    assert fewer.steps_["threshold"][0] == pytest.approx(count / 2 - 0.5, abs=1)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=80), st.integers(1, 8))
def test_thresholds_share_documents_out_evenly(values, most):
    column = np.array(values, dtype=np.float64)[:, None]
    found = Candidates.of(column, np.arange(len(column)), len(column), most, 1)
    distinct, count = np.unique(column, return_counts=True)
    assert len(found) <= most
    assert (np.diff(found.cut) > 0).all()
    if len(distinct) <= most + 1:
        np.testing.assert_array_equal(found.cut, (distinct[1:] + distinct[:-1]) / 2)
    else:
        share = np.diff(np.searchsorted(np.sort(column[:, 0]), [-1.0, *found.cut, 31.0]))
        assert share.min() > 0
        assert share.max() <= len(column) / (most + 1) + count.max()
    np.testing.assert_array_equal(found.bins[0], [(found.cut < value).sum() for value in column[:, 0]])


# ------------------------------------------------------------------------------------------- rounds that are kept


def test_the_best_round_on_the_validation_set_is_kept():
    train, held = lists(14, count=30), lists(15, count=30)
    model = RankBoost("nDCG@3", rounds=40).fit(train, validation=held)
    judged = [RankBoost("nDCG@3", rounds=n).fit(train).score(held) for n in range(1, 41)]
    np.testing.assert_array_equal(model.history_["validation"], judged)
    assert model.rounds_ == int(np.argmax(judged)) + 1
    assert len(model.steps_) == model.rounds_ < 40
    assert model.score(held) == max(judged)
    assert len(model.history_) == 40
    assert model.history_["train"][model.rounds_ - 1] == model.score(train)


def test_patience_ends_the_rounds_and_needs_a_validation_set():
    train, held = lists(14, count=30), lists(15, count=30)
    whole = RankBoost("nDCG@3", rounds=40).fit(train, validation=held)
    model = RankBoost("nDCG@3", rounds=40, patience=3).fit(train, validation=held)
    judged = whole.history_["validation"]
    expected = next(n for n in range(1, 41) if n - (np.argmax(judged[:n]) + 1) >= 3)
    assert len(model.history_) == expected < 40
    assert model.rounds_ == expected - 3
    with pytest.raises(RankwiseError, match="pass validation="):
        RankBoost(patience=3).fit(train)


@pytest.mark.parametrize("call", [1, 2, 3, 6])
def test_ctrl_c_keeps_the_rounds_that_had_finished(call, monkeypatch):
    train, held = lists(16), lists(17)
    measure, calls = steps.measure_lists, []

    def interrupted(*arguments, **options):
        calls.append(1)
        if len(calls) == call:
            raise KeyboardInterrupt
        return measure(*arguments, **options)

    finished = call - 1
    expected = RankBoost(rounds=max(finished, 1)).fit(train, validation=held)
    monkeypatch.setattr(steps, "measure_lists", interrupted)
    model = RankBoost(rounds=20)
    with pytest.raises(KeyboardInterrupt) as stop:
        model.fit(train, validation=held)
    assert isinstance(stop.value, Interrupted) == (finished > 0)
    if finished:
        monkeypatch.undo()
        assert_same(model, expected)
        np.testing.assert_array_equal(model.predict(held), expected.predict(held))
    else:
        assert not hasattr(model, "history_")


# ------------------------------------------------------------------------------------------- files and refusals


@pytest.mark.parametrize("queries", [lists(18), Queries.from_arrays(np.ones((3, 2)), [0, 1, 2], group=[3])])
def test_a_saved_ranker_has_the_same_rounds(queries, tmp_path):
    model = RankBoost(rounds=15, measure="AP").fit(queries, validation=queries)
    model.save(tmp_path / "boosted.rankwise")
    copy = rw.load(tmp_path / "boosted.rankwise")
    assert_same(copy, model)
    assert copy.steps_ == model.steps_
    np.testing.assert_array_equal(copy.predict(queries), model.predict(queries))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rounds", 0),
        ("rounds", 2.5),
        ("rounds", True),
        ("thresholds", 0),
        ("thresholds", "all"),
        ("patience", -1),
        ("pairs", "all"),
        ("missing", "max"),
    ],
)
def test_parameters_that_mean_nothing_are_refused_in_a_sentence(name, value):
    with pytest.raises(
        RankwiseError, match=f"^The '{name}' parameter of RankBoost must be .* Got {value!r} instead"
    ) as error:
        RankBoost(**{name: value}).fit(lists(19))
    assert "\n" not in str(error.value)


def test_the_history_draws_itself():
    pytest.importorskip("matplotlib")
    queries = lists(20)
    model = RankBoost(rounds=5).fit(queries, validation=queries)
    drawn = {line.get_label() for line in model.history_.plot().axes[0].lines}
    assert drawn == {"train", "validation", "bound"}


def test_on_ohsumed_it_is_as_good_as_published(data_folder):
    """Five official folds, the round chosen on the validation part, the official evaluator's conventions."""
    folds = list(rw.io.read_folds(data_folder / "ohsumed"))
    scores = [RankBoost(rounds=60).fit(fold.train, validation=fold.validation).predict(fold.test) for fold in folds]
    tests = Queries.concat([fold.test for fold in folds])
    found = rw.evaluate(tests, np.concatenate(scores), ["nDCG@10", "AP"], like="letor").mean
    assert found["nDCG@10"] > 0.4302
    assert found["AP"] > 0.4411
