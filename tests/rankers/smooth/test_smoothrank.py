"""SmoothRank by the paper: what its tables say, what its choices look at, where it starts, what it keeps to."""

from functools import partial

import numpy as np
import pytest
from sklearn.base import clone

import rankwise as rw
from rankwise.errors import RankwiseError
from rankwise.losses._base import smoothed
from rankwise.losses.compute import LossOverLists
from rankwise.queries.chunks import scale_factors
from rankwise.queries.queries import Queries
from rankwise.rankers.linear.ridge import RidgeRanker
from rankwise.rankers.smooth.annealing import SIGMAS, Annealing
from rankwise.rankers.smooth.smoothrank import ALPHAS, RIDGE_ALPHAS

# the protocol of the paper; the usual one has tests of its own
SmoothRank = partial(rw.SmoothRank, protocol="paper")
PAPER_RIDGE = {"alpha": RIDGE_ALPHAS, "intercept": "global", "refit": "train"}
MEASURES = ("nDCG@5", "nDCG", "DCG@5", "AP", "P@3", "RR")
over_all_measures = pytest.mark.parametrize("measure", MEASURES)
QUICK = {"sigmas": (4.0, 1.0, 0.25), "steps": 10}


def lists(seed=0, count=15, features=4, dtype=np.float64, names=None, weighted=False):
    """Judged lists with a noisy linear signal."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 12, count)
    X = rng.normal(size=(sizes.sum(), features)).astype(dtype)
    y = np.clip(np.rint(X @ np.linspace(1, -1, features) + rng.normal(size=len(X))), 0, 3)
    weight = rng.uniform(0.2, 2, count) if weighted else None
    return Queries.from_arrays(X, y, group=sizes, feature_names=names, weight=weight)


def mean(queries, coef, measure):
    return next(iter(rw.evaluate(queries, queries.X.astype(float) @ coef, [measure]).mean.values()))


def same(one, two):
    return one.coef_.tobytes() == two.coef_.tobytes() and one.history_ == two.history_ and one.path_ == two.path_


# ------------------------------------------------------------------------------------------- what it learns


@pytest.mark.parametrize(
    ("measure", "smoothing"), [*((measure, "sigmoid") for measure in MEASURES), ("AP", "indicator")]
)
def test_every_measure_is_raised_on_the_training_lists(measure, smoothing):
    queries = lists(1, count=30)
    start = np.array([0.3, 0.2, 0.1, 0.1])  # half of it points the wrong way
    model = SmoothRank(measure, alpha=1e-4, start=start, smoothing=smoothing).fit(queries)
    begun = mean(queries, start, measure)
    assert model.history_["train"][-1] > begun + 0.02 * abs(begun)
    assert model.score(queries) == pytest.approx(model.history_["train"][-1], rel=1e-12)


@over_all_measures
def test_every_stage_is_a_descent_of_the_objective_that_the_docstring_states(measure):
    queries = lists(2)
    model = SmoothRank(measure, alpha=0.3, **QUICK).fit(queries)
    factor, _ = scale_factors(queries, "auto")
    loss = smoothed(model._measure(), "sigmoid")
    weight = None
    if measure == "DCG@5":  # a sum of DCG: of nDCG, times ideals
        gain = 2.0**queries.y - 1
        weight = np.array(
            [np.sort(gain[queries.rows_of(q)])[::-1][:5] @ (1 / np.log2(np.arange(2, 7)))[: min(5, size)]
             for q, size in enumerate(queries.sizes)]
        )  # fmt: skip
    task = Annealing(
        lists=LossOverLists.of(loss, queries, weight), factor=factor, center=model.start_ / factor, alpha=0.3
    )
    before = model.start_
    for stage, coef in zip(model.history_, model.history_.coefs, strict=True):
        objective = task.objective(stage["sigma"])
        assert stage["objective"] == pytest.approx(objective(coef / factor)[0], rel=1e-9)
        assert stage["objective"] <= objective(before / factor)[0] + 1e-12
        before = coef


def test_a_tremendous_strength_stays_at_the_start_and_a_tiny_one_goes_away():
    queries = lists(3)
    start = RidgeRanker(alpha=1.0).fit(queries)
    near = SmoothRank(start=start, alpha=1e9, **QUICK).fit(queries)
    far = SmoothRank(start=start, alpha=1e-9, **QUICK).fit(queries)
    np.testing.assert_allclose(near.coef_, start.coef_, atol=1e-6)
    assert np.linalg.norm(far.coef_ - start.coef_) > 0.01
    np.testing.assert_array_equal(near.start_, start.coef_)


# ------------------------------------------------------------------------------------------- history and path


@over_all_measures
@pytest.mark.parametrize("weighted", [False, True])
def test_the_history_says_what_evaluate_finds_at_the_weights_of_every_stage(measure, weighted):
    train, other = lists(4, weighted=weighted), lists(5, weighted=weighted)
    model = SmoothRank(measure, alpha=0.1, **QUICK).fit(train, validation=other)
    history = model.history_
    assert history.columns == ("sigma", "objective", "smoothed", "train", "validation", "steps", "evaluations")
    assert history.coefs.shape == (3, 4)
    np.testing.assert_array_equal(history["sigma"], QUICK["sigmas"])
    for stage, coef in zip(history, history.coefs, strict=True):
        assert stage["train"] == pytest.approx(mean(train, coef, measure), rel=1e-12)
        assert stage["validation"] == pytest.approx(mean(other, coef, measure), rel=1e-12)
        assert 0 <= stage["steps"] <= 10
        assert stage["evaluations"] >= stage["steps"]
    np.testing.assert_array_equal(model.coef_, history.coefs[-1])


@over_all_measures
def test_the_smoothed_column_tends_to_the_train_column(measure):
    """At a tiny sigma the smoothed measure is the measure: means over the same lists, in the same units."""
    train = lists(6, weighted=True)
    model = SmoothRank(measure, alpha=1.0, sigmas=(1.0, 1e-12), steps=2).fit(train)
    assert model.history_["smoothed"][-1] == pytest.approx(model.history_["train"][-1], abs=1e-6)
    assert abs(model.history_["smoothed"][0] - model.history_["train"][0]) > 1e-4


def test_without_a_validation_set_its_column_is_empty():
    history = SmoothRank(alpha=1.0, **QUICK).fit(lists()).history_
    assert np.isnan(history["validation"]).all()
    assert np.isfinite(history["train"]).all()


def test_the_usual_stages_are_thirteen_powers_of_two():
    model = SmoothRank(alpha=1.0, steps=1).fit(lists())
    np.testing.assert_array_equal(model.history_["sigma"], 2.0 ** np.arange(6, -7, -1))
    np.testing.assert_array_equal(model.history_["sigma"], SIGMAS)
    np.testing.assert_allclose(ALPHAS, 10.0 ** np.arange(-6, 4))


def test_the_strength_is_the_best_of_a_plain_loop_over_the_validation_set_alone():
    train, other, alphas = lists(7), lists(8), (1e-4, 1.0, 1e3)
    model = SmoothRank("nDCG@3", alpha=alphas, **QUICK).fit(train, validation=other)
    alone = [SmoothRank("nDCG@3", alpha=one, **QUICK).fit(train, validation=other) for one in alphas]
    judged = [one.score(other) for one in alone]
    np.testing.assert_array_equal(model.path_["nDCG@3"], judged)
    np.testing.assert_array_equal(model.path_["alpha"], alphas)
    best = int(np.argmax(judged))
    assert model.alpha_ == alphas[best]
    np.testing.assert_array_equal(model.coef_, alone[best].coef_)
    assert model.history_ == alone[best].history_


def test_the_training_lists_have_no_say_in_the_choice():
    """The best on the validation set is taken, though another alpha is better on the training set."""
    for seed in range(20):
        train, other = lists(seed, count=6), lists(seed + 100, count=6)
        model = SmoothRank(alpha=(1e-6, 1e-2, 1e2), start=np.ones(4), **QUICK).fit(train, validation=other)
        trained = [
            SmoothRank(alpha=one, start=np.ones(4), **QUICK).fit(train).score(train) for one in (1e-6, 1e-2, 1e2)
        ]
        if model.alpha_ != (1e-6, 1e-2, 1e2)[int(np.argmax(trained))]:
            assert model.path_[model.path_.columns[-1]].max() == model.score(other)
            return
    pytest.fail("no seed tells the two choices apart")


def test_stop_best_keeps_the_stage_that_is_best_on_the_validation_set():
    early = 0
    for seed in range(6):
        train, other = lists(seed, count=6), lists(seed + 50, count=6)
        last = SmoothRank("AP", alpha=1e-3, **QUICK).fit(train, validation=other)
        best = clone(last).set_params(stop="best").fit(train, validation=other)
        assert best.history_ == last.history_
        place = int(np.argmax(last.history_["validation"]))
        np.testing.assert_array_equal(best.coef_, last.history_.coefs[place])
        assert best.path_["AP"][0] == last.history_["validation"].max()
        early += place < 2
    assert early, "some annealing is best stopped early"


def test_without_a_validation_set_strengths_are_judged_on_parts_that_neither_they_nor_their_starts_have_seen():
    queries, alphas = lists(9), (1e-3, 10.0)
    model = SmoothRank("AP", alpha=alphas, folds=3, scale="none", random_state=5, **QUICK).fit(queries)
    parts = np.array_split(np.random.default_rng(5).permutation(15), 3)
    judged = []
    for alpha in alphas:
        found = []
        for part in parts:
            train = queries[np.setdiff1d(range(15), part)]
            ridge = RidgeRanker("AP", folds=3, scale="none", random_state=5, **PAPER_RIDGE).fit(train)
            one = SmoothRank("AP", alpha=alpha, start=ridge, scale="none", **QUICK).fit(train)
            found.append(one.score(queries[part]))
        judged.append(np.mean(found))
    np.testing.assert_allclose(model.path_["AP"], judged, rtol=1e-6)
    assert model.alpha_ == alphas[int(np.argmax(judged))]
    whole = SmoothRank("AP", alpha=model.alpha_, folds=3, scale="none", random_state=5, **QUICK).fit(queries)
    np.testing.assert_array_equal(model.coef_, whole.coef_)


def test_a_single_list_is_learned_from_with_the_largest_strength():
    model = SmoothRank(alpha=(0.1, 10.0, 1.0), **QUICK).fit(lists(10)[3:4])
    assert model.alpha_ == 10.0
    assert np.isnan(model.path_["nDCG@50"]).all()


# ------------------------------------------------------------------------------------------- where it starts


def test_the_start_is_the_ridge_regression_unless_another_is_given():
    train, other = lists(11), lists(12)
    ridge = RidgeRanker("AP", **PAPER_RIDGE).fit(train, validation=other)
    model = SmoothRank("AP", alpha=1.0, **QUICK).fit(train, validation=other)
    np.testing.assert_allclose(model.start_, ridge.coef_, rtol=1e-12)
    for given in (ridge, ridge.coef_, list(ridge.coef_)):
        assert same(SmoothRank("AP", alpha=1.0, start=given, **QUICK).fit(train, validation=other), model)


def test_of_several_starts_the_best_on_the_validation_set_is_taken():
    train, other = lists(13), lists(14)
    starts = [np.array([-1.0, 0, 0, 0]), "ridge", np.ones(4)]
    model = SmoothRank("nDCG", alpha=(1.0, 1e3), start=starts, **QUICK).fit(train, validation=other)
    np.testing.assert_array_equal(model.path_["start"], [0, 0, 1, 1, 2, 2])
    np.testing.assert_array_equal(model.path_["alpha"], [1, 1e3] * 3)
    alone = [
        SmoothRank("nDCG", alpha=alpha, start=start, **QUICK).fit(train, validation=other)
        for start in starts
        for alpha in (1.0, 1e3)
    ]
    judged = [one.score(other) for one in alone]
    np.testing.assert_array_equal(model.path_["nDCG"], judged)
    np.testing.assert_array_equal(model.coef_, alone[int(np.argmax(judged))].coef_)


def test_a_warm_start_goes_on_from_the_weights_of_the_first_fit():
    queries = lists(15)
    model = SmoothRank(alpha=0.1, warm_start=True, **QUICK).fit(queries)
    first = model.coef_.copy()
    assert same(model.fit(queries), SmoothRank(alpha=0.1, start=first, **QUICK).fit(queries))
    np.testing.assert_allclose(model.start_, first, rtol=1e-15)
    fresh = SmoothRank(alpha=0.1, **QUICK).fit(queries)
    again = fresh.coef_.copy()
    np.testing.assert_array_equal(fresh.fit(queries).coef_, again)


@over_all_measures
@pytest.mark.parametrize("given", [np.zeros(4), "ridge"])
def test_it_refuses_to_start_where_everything_is_flat(measure, given):
    """With a cross of labels the regression finds nothing either: all correlations are 0."""
    X = np.array([[1.0, 0, 0, 0], [-1.0, 0, 0, 0], [0, 1, 0, 0], [0, -1, 0, 0]])
    queries = Queries.from_arrays(X, [1, 1, 0, 0], group=[4])
    with pytest.raises(RankwiseError, match="must not be 0 everywhere"):
        SmoothRank(measure, start=given, alpha=1.0).fit(queries)


@pytest.mark.parametrize("X", [np.full((4, 2), 3.0), np.eye(4)[:, :2]])
def test_where_there_is_nothing_to_learn_the_weights_are_left_at_zero(X):
    labels = [0, 1, 0, 2] if X[0, 0] == 3 else [0, 0, 0, 0]
    model = SmoothRank(alpha=1.0, **QUICK).fit(X, labels, group=[2, 2])
    np.testing.assert_array_equal(model.coef_, [0, 0])


def test_lists_that_say_nothing_change_nothing():
    """One document, no relevant document, or all alike: a list without a gradient."""
    queries, start = lists(16), np.array([1.0, 0.5, -0.5, -1.0])
    rng = np.random.default_rng(0)
    dull = Queries.from_arrays(rng.normal(size=(9, 4)), [1, 0, 0, 0, 2, 2, 2, 0, 0], group=[1, 3, 3, 2])
    both = Queries.concat([queries, dull])
    options = {"alpha": 0.1, "start": start, "scale": "none", **QUICK}
    one, two = SmoothRank(**options).fit(queries), SmoothRank(**options).fit(both)
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-10)
    np.testing.assert_allclose(one.history_["objective"], two.history_["objective"], rtol=1e-10)


# ------------------------------------------------------------------------------------------- signs


@pytest.mark.parametrize("by_name", [False, True])
def test_signs_hold_and_the_slope_shows_that_no_allowed_direction_helps(by_name):
    names = ("age", "bm25", "clicks", "depth") if by_name else None
    queries = lists(17, count=30, names=names)
    sign = {"age": -1, "depth": +1} if by_name else {0: -1, 3: +1}  # against the signal
    options = {"alpha": 0.5, "sigmas": (4.0, 2.0), "steps": 300, "tolerance": 1e-9, "scale": "none"}
    model = SmoothRank("nDCG", sign=sign, **options).fit(queries)
    free = SmoothRank("nDCG", solver="lbfgs", **options).fit(queries)
    assert free.coef_[0] > 0 > free.coef_[3]
    assert model.coef_[0] <= 0 <= model.coef_[3]
    lists_of = LossOverLists.of(smoothed(model._measure(), "sigmoid"), queries)
    task = Annealing(lists=lists_of, factor=np.ones(4), center=model.start_, alpha=0.5)
    _, slope = task.objective(2.0)(model.coef_)
    outward = np.array([-1, 0, 0, 1])
    for j in range(4):
        if model.coef_[j] == 0:
            assert slope[j] * outward[j] >= -1e-5, "at its bound a weight is pushed against it"
        else:
            assert abs(slope[j]) < 1e-3
    assert (model.coef_[[0, 3]] == 0).any()


def test_signs_that_the_signal_has_anyway_change_nothing_much():
    queries = lists(18, count=30)
    options = {"alpha": 0.5, "sigmas": (4.0,), "steps": 300, "tolerance": 1e-10, "solver": "lbfgs"}
    free = SmoothRank(**options).fit(queries)
    signed = SmoothRank(sign={0: 1, 3: -1}, **options).fit(queries)
    np.testing.assert_allclose(signed.coef_, free.coef_, rtol=1e-3, atol=1e-4)


# ------------------------------------------------------------------------------------------- real lists


def test_on_real_lists_annealing_beats_its_start_on_the_training_part(data_folder):
    fold = next(iter(rw.io.read_folds(data_folder / "ohsumed")))
    model = SmoothRank(alpha=0.01, scale="none").fit(fold.train, validation=fold.validation)
    assert model.score(fold.train) > mean(fold.train, model.start_, "nDCG@50") + 0.005
    assert model.path_["nDCG@50"][0] == model.score(fold.validation)
    missing = model.history_["train"] - model.history_["smoothed"]
    assert abs(missing[-1]) < 0.25 * missing[0], "the finer the smoothing, the closer to the measure"
