"""SmoothRank by the paper: features of any size, any number of threads, interrupted, saved, drawn, asked too much."""

import io
import itertools
import threading
import time
import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone

import rankwise as rw
from experiments.landscape import landscape
from rankwise.errors import DataError, RankwiseError
from rankwise.losses.compute import LossOverLists
from rankwise.queries.queries import Queries
from rankwise.rankers.linear.ridge import RidgeRanker
from rankwise.rankers.smooth.annealing import SIGMAS, score_unit
from tests.rankers.smooth.test_smoothrank import QUICK, SmoothRank, lists, mean, same


def raw_like(seed=0, count=20):
    """Features as raw ones of web search are: from 1e-3 to 1e8, far from 0 and skewed."""
    queries = lists(seed, count)
    unit = np.array([1e-3, 1.0, 1e4, 1e8])
    return Queries.from_arrays((np.exp(queries.X) + 2) * unit, queries.y, group=queries.sizes), unit


# ------------------------------------------------------------------------------------------- features as they come


@pytest.mark.parametrize("measure", ["nDCG@5", "AP"])
def test_raw_features_of_all_sizes_rank_as_if_scaled_by_hand(measure):
    queries, _ = raw_like(19)
    deviation = queries.X.std(axis=0)
    by_hand = Queries.from_arrays(queries.X / deviation, queries.y, group=queries.sizes)
    start = np.array([0.5, -0.1, 0.2, -0.4])
    options = {"alpha": 0.3, **QUICK}
    model = SmoothRank(measure, start=start / deviation, **options).fit(queries)
    same_model = SmoothRank(measure, start=start, scale="none", **options).fit(by_hand)
    np.testing.assert_allclose(model.coef_ * deviation, same_model.coef_, rtol=1e-5)
    np.testing.assert_array_equal(model.rank(queries)["docid"], same_model.rank(by_hand)["docid"])
    np.testing.assert_allclose(model.predict(queries), queries.X @ model.coef_, rtol=1e-12)
    assert model.score(queries) > SmoothRank(measure, scale="none", **options).fit(queries).score(queries) - 0.05


def test_another_unit_of_a_feature_changes_its_weight_and_no_rank():
    queries, _ = raw_like(20)
    units = np.array([2.0**10, 1.0, 2.0**-7, 2.0])  # powers of two: no rounding
    other = Queries.from_arrays(queries.X * units, queries.y, group=queries.sizes)
    one, two = (SmoothRank(alpha=1.0, **QUICK).fit(data) for data in (queries, other))
    np.testing.assert_array_equal(two.coef_ * units, one.coef_)
    np.testing.assert_array_equal(two.predict(other), one.predict(queries))


def test_widths_follow_the_unit_of_the_starts_scores():
    """A start k times as large has scores k times as large: the same objective with sigma k^2 times as large."""
    queries = lists(21)
    ridge = RidgeRanker(alpha=1.0, balanced=False).fit(queries)
    unit = score_unit(queries, ridge.predict(queries))
    assert score_unit(queries, 8 * ridge.predict(queries)) == pytest.approx(8 * unit)
    one, eight = (SmoothRank("nDCG", start=k * ridge.coef_, alpha=0.0, steps=1).fit(queries).history_ for k in (1, 8))
    np.testing.assert_allclose(eight["sigma"], 64 * one["sigma"])
    np.testing.assert_allclose(eight["smoothed"][0], one["smoothed"][0], atol=1e-3)
    sigmoid = SmoothRank("AP", start=8 * ridge.coef_, alpha=0.0, steps=1).fit(queries).history_["sigma"]
    np.testing.assert_allclose(sigmoid, 8 * unit * np.sqrt(SIGMAS))


def test_float32_is_read_where_it_stands_and_never_widened(tmp_path, monkeypatch):
    """A read-only map of a file, and no more memory than a few numbers a document beside a block of rows."""
    monkeypatch.setattr("rankwise.queries.checks.BLOCK_VALUES", 1 << 16)
    rng = np.random.default_rng(22)
    X = rng.normal(size=(10_000, 200)).astype(np.float32)
    y = np.clip(np.rint(X[:, 0] + rng.normal(size=len(X))), 0, 2).astype(float)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    queries = Queries.from_arrays(mapped, y, group=[100] * 100)
    assert np.shares_memory(queries.X, mapped)
    model = SmoothRank(alpha=(0.1, 10.0), sigmas=(1.0,), steps=1, folds=2, n_jobs=1)
    clone(model).fit(lists(dtype=np.float32))  # compiles
    tracemalloc.start()
    model.fit(queries)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < X.nbytes / 2, "a copy in float64 would take twice as much as X, and folds a copy each"
    inside = Queries.from_arrays(X, y, group=[100] * 100)
    np.testing.assert_array_equal(clone(model).fit(inside).coef_, model.coef_)


# ------------------------------------------------------------------------------------------- same bits, or nothing


@pytest.mark.parametrize("measure", ["nDCG@5", "AP"])
@pytest.mark.parametrize("with_validation", [False, True])
def test_the_number_of_threads_changes_no_bit(measure, with_validation, monkeypatch):
    monkeypatch.setattr("rankwise._kernels.parallel.query_chunks.__defaults__", (16,))
    monkeypatch.setattr("rankwise._kernels.parallel.CHUNK", 16)
    train, other = lists(23), lists(24) if with_validation else None
    one, two = (
        SmoothRank(measure, alpha=(1e-3, 1.0, 100.0), folds=2, n_jobs=jobs, **QUICK).fit(train, validation=other)
        for jobs in (1, 2)
    )
    assert same(one, two)


def test_a_saved_model_has_the_same_bits_history_and_path(tmp_path):
    model = SmoothRank("DCG@3", alpha=(0.1, 1.0), sign={0: 1}, **QUICK).fit(lists(25), validation=lists(26))
    model.save(tmp_path / "smooth.rankwise")
    copy = rw.load(tmp_path / "smooth.rankwise")
    assert same(copy, model)
    assert copy.alpha_ == model.alpha_
    for name in ("start_", "coef_"):
        np.testing.assert_array_equal(getattr(copy, name), getattr(model, name))
    np.testing.assert_array_equal(copy.history_.coefs, model.history_.coefs)
    assert copy.history_.measure == model.history_.measure
    assert copy.get_params() == model.get_params()
    np.testing.assert_array_equal(copy.predict(lists(27)), model.predict(lists(27)))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_leaves_the_model_as_it_was_and_no_thread_behind(n_jobs, monkeypatch):
    queries = lists(28)
    model = SmoothRank(alpha=(0.1, 1.0), n_jobs=n_jobs, **QUICK).fit(queries, validation=queries)
    before, threads = clone(model).fit(queries, validation=queries), threading.active_count()
    evaluate, numbers, calls = LossOverLists.__call__, itertools.count(1), []

    def interrupted(self, w, *, n_jobs=None):
        number = next(numbers)
        calls.append(number)
        if number == 3:  # whichever thread runs first, no plan has finished a stage by then
            raise KeyboardInterrupt
        if number > 3:  # nor finishes one before the interrupted thread has told the others
            time.sleep(0.3)
        return evaluate(self, w, n_jobs=n_jobs)

    monkeypatch.setattr(LossOverLists, "__call__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.set_params(measure="AP").fit(lists(29), validation=queries)
    assert same(model, before)
    assert threading.active_count() == threads
    assert len(calls) <= 3 + n_jobs, "plans that were under way have stopped"


def test_a_generator_for_random_state_gives_the_folds_their_chance():
    queries = lists(30)
    one, two = (
        SmoothRank(alpha=(0.1, 1.0), random_state=np.random.default_rng(3), **QUICK).fit(queries) for _ in range(2)
    )
    assert same(one, two)


# ------------------------------------------------------------------------------------------- pictures


def png(figure):
    out = io.BytesIO()
    figure.savefig(out, format="png", metadata={"Software": None})
    return out.getvalue()


def test_the_history_draws_itself():
    pytest.importorskip("matplotlib")
    train, other, test = lists(31), lists(32), lists(33)
    model = SmoothRank(alpha=1.0, **QUICK).fit(train, validation=other)
    axes = model.history_.with_test(test).plot().axes[0]
    drawn = {line.get_label(): line.get_ydata() for line in axes.lines}
    assert set(drawn) == {"train, smoothed", "train", "validation", "test"}
    np.testing.assert_array_equal(drawn["validation"], model.history_["validation"])
    np.testing.assert_allclose(drawn["test"], [mean(test, w, "nDCG@50") for w in model.history_.coefs])
    assert png(model.history_.with_test(test).plot()) == png(model.history_.with_test(test).plot())
    alone = SmoothRank(alpha=1.0, **QUICK).fit(train).history_.plot().axes[0]
    assert {line.get_label() for line in alone.lines} == {"train, smoothed", "train"}


@pytest.mark.parametrize("measure", ["nDCG@5", "DCG@5", "AP"])
def test_a_landscape_shows_hills_where_the_smoothing_is_fine_and_none_where_it_is_coarse(measure):
    queries = Queries.concat([lists(36, count=10), Queries.from_arrays(np.ones((2, 4)), [0, 0], group=[1, 1])])
    model = SmoothRank(measure, alpha=1.0, sigmas=(64.0, 1.0, 1e-3), steps=5).fit(queries)
    found = landscape(model, queries, points=81)
    title = model._measure().title
    assert found.columns == ("step", title, "sigma 64", "sigma 1", "sigma 0.001", "sigma 6.25e-05")
    middle = 40
    assert found["step"][middle] == 0
    assert found[title][middle] == pytest.approx(model.score(queries), rel=1e-12)
    assert found["sigma 0.001"][middle] == pytest.approx(model.history_["smoothed"][-1], rel=1e-9)
    np.testing.assert_allclose(found["sigma 6.25e-05"], found[title], atol=0.12 * found[title].max())

    def tops(column):
        rises = np.sign(np.diff(found.one_list[column]))
        return int(np.sum(np.diff(rises[rises != 0]) < 0))

    assert tops("sigma 64") <= 1 < tops("sigma 6.25e-05")


def test_a_landscape_draws_itself_and_is_the_same_for_the_same_seed():
    pytest.importorskip("matplotlib")
    queries = lists(35)
    model = SmoothRank(alpha=1.0, **QUICK).fit(queries)
    one, two, other = (landscape(model, queries, points=11, random_state=seed) for seed in (0, 0, 1))
    assert one == two
    assert one != other
    assert png(one.plot()) == png(two.plot())
    assert png(one.plot()) != png(other.plot())
    assert [len(axes.lines) for axes in one.plot().axes] == [len(one.columns) - 1] * 2


# ------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"measure": "ERR@10"}, "nDCG, nDCG@k, DCG@k, AP, P@k and RR can be smoothed"),
        ({"measure": "AP@10"}, "can be smoothed"),
        ({"alpha": -1.0}, "'alpha' parameter of"),
        ({"alpha": []}, "'alpha' parameter of"),
        ({"alpha": "weak"}, "'alpha' parameter of"),
        ({"sigmas": []}, "'sigmas' parameter of"),
        ({"sigmas": [1.0, 2.0]}, "'sigmas' parameter of"),
        ({"sigmas": [1.0, 0.0]}, "'sigmas' parameter of"),
        ({"sigmas": "small"}, "'sigmas' parameter of"),
        ({"stop": "early"}, "'stop' parameter of"),
        ({"solver": "newton"}, "'solver' parameter of"),
        ({"scale": "log"}, "'scale' parameter of"),
        ({"smoothing": "soft", "measure": "AP"}, "'sigmoid'.*'indicator'"),
        ({"start": "zero"}, "'start' parameter of"),
        ({"start": []}, "'start' parameter of"),
        ({"start": np.ones(3)}, "start must have one weight per feature, 4, got 3 weights"),
        ({"start": [1.0, np.nan, 0, 0]}, "'start' parameter of"),
        ({"start": RidgeRanker()}, "'start' parameter of"),
        ({"sign": {"bm25": 1}}, "sign must name features of the training queries, got 'bm25'"),
        ({"sign": {7: 1}}, "sign must name features of the training queries, got 7"),
        ({"sign": {0: 2}}, "'sign' parameter of"),
        ({"alpha": (1.0, 2.0), "folds": 1}, r"'folds' parameter of SmoothRank must be an int in \[2, inf\). Got 1"),
    ],
)
def test_what_it_cannot_mean_is_refused_in_a_sentence(wrong, sentence):
    with pytest.raises(RankwiseError, match=sentence) as error:
        SmoothRank(**({"alpha": 1.0, **QUICK} | wrong)).fit(lists())
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 250


def test_a_landscape_needs_a_fitted_model_and_its_features():
    with pytest.raises(RankwiseError, match="not fitted yet"):
        landscape(SmoothRank(), lists())
    model = SmoothRank(alpha=1.0, **QUICK).fit(lists())
    with pytest.raises(DataError, match="was fitted on 4 features, got 3"):
        landscape(model, lists(features=3))
