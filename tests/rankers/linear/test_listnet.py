"""ListNet over all lists at once: the minimum of a plain objective, choices as by loops, and what is left after Ctrl-C.

Its rounds are tried in ``test_perceptrons.py`` and ``test_streams.py``.
"""

import inspect

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax
from sklearn.base import clone

import rankwise as rw
from rankwise.errors import FileFormatError, Interrupted, RankwiseError
from rankwise.queries.queries import Queries
from rankwise.rankers.linear.listnet import ALPHAS, ListNet
from tests.rankers import test_every_ranker as every
from tests.rankers.test_saved import rewritten, saved


def lists(seed=0, count=25, features=4, weighted=False, stretch=1.0):
    """Judged lists with a linear signal, lists of one document, of one label and of none among them."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 9, count)
    X = stretch * rng.uniform(-1, 1, size=(sizes.sum(), features))
    y = np.clip(np.rint(2 * X @ np.linspace(1, -1, features) / stretch + rng.normal(size=len(X))), 0, 3)
    return Queries(X, y, np.cumsum([0, *sizes]), weight=rng.uniform(0, 2, count) if weighted else None)


def plain(queries, alpha, target="labels"):
    """(alpha/2) norm(w)^2 + mean over lists of sum_j P_j (log P_j - log softmax_j(X w)), with its gradient."""
    weights = np.ones(len(queries)) if queries.weight is None else queries.weight

    def function(w):
        value, gradient = alpha / 2 * w @ w, alpha * w
        for number, weight in enumerate(weights / weights.sum()):
            X, y = queries.X[queries.rows_of(number)], queries.y[queries.rows_of(number)]
            if len(set(y)) > 1:
                goal, s = softmax(y if target == "labels" else 2**y - 1), X @ w
                value += weight * goal @ (np.log(goal) - (s - logsumexp(s)))
                gradient = gradient + weight * X.T @ (softmax(s) - goal)
        return value, gradient

    return function


def batch(**parameters):
    return ListNet(**{"solver": "lbfgs", "alpha": 0.01, "tolerance": 1e-13} | parameters)


# ------------------------------------------------------------------------------------------- the minimum


@pytest.mark.parametrize("target", ["labels", "gains"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [1e-3, 0.1])
def test_it_finds_the_minimum_of_a_generic_solver(target, weighted, alpha):
    queries = lists(1, weighted=weighted)
    model = batch(alpha=alpha, target=target).fit(queries)
    function = plain(queries, alpha, target)
    reference = minimize(function, np.zeros(4), jac=True, method="BFGS", options={"gtol": 1e-12})
    value, gradient = function(model.coef_)
    assert value == pytest.approx(reference.fun, rel=1e-8)
    assert value <= reference.fun + gradient @ gradient / (2 * alpha) + 1e-15
    np.testing.assert_allclose(model.coef_, reference.x, atol=1e-4)
    assert model.history_["objective"][-1] == pytest.approx(value, rel=1e-12)
    assert model.history_["gradient"][-1] == pytest.approx(np.linalg.norm(gradient), abs=1e-10)


@pytest.mark.parametrize("target", ["labels", "gains"])
def test_the_objective_and_its_gradient_are_the_plain_ones_in_scaled_units(target):
    queries, factor = lists(2, weighted=True), np.array([1.0, 0.5, 0.0, 3.0])
    function = batch(target=target)._objective(queries, 0.2, factor)
    w = np.random.default_rng(3).normal(size=4)
    value, gradient = function(w)
    data, slope = plain(queries, 0.0, target)(w * factor)
    assert value == pytest.approx(0.1 * w @ w + data, rel=1e-12)
    np.testing.assert_allclose(gradient, 0.2 * w + factor * slope, rtol=1e-10, atol=1e-14)
    numeric = [(function(w + e)[0] - function(w - e)[0]) / 2e-6 for e in 1e-6 * np.eye(4)]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-7, atol=1e-9)


def test_weights_repeat_lists_and_their_sum_does_not_matter():
    queries = lists(4, count=8)
    query_weight = np.array([1.0, 0, 2, 1, 3, 1, 0, 1])
    repeated = batch().fit(queries[np.repeat(np.arange(8), query_weight.astype(int))])
    for times in (1.0, 50.0):
        weighted = batch().fit(queries.with_weight(times * query_weight))
        np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-5)


def test_features_outside_of_the_unit_interval_are_scaled_unless_told_not_to():
    queries = lists(5, stretch=40.0)
    deviation = queries.X.std(axis=0)
    by_hand = Queries.from_arrays(queries.X / deviation, queries.y, group=queries.sizes)
    scaled, same = batch().fit(queries), batch(scale="none").fit(by_hand)
    np.testing.assert_allclose(scaled.coef_ * deviation, same.coef_, rtol=1e-4)
    raw = batch(scale="none").fit(queries)
    assert plain(queries, 0.01)(raw.coef_)[0] < plain(queries, 0.01)(scaled.coef_)[0]


@pytest.mark.parametrize("scale", ["auto", "none"])
def test_rounds_cannot_look_ahead_so_auto_leaves_features_alone(scale):
    queries = lists(6, stretch=5.0)
    model = ListNet(scale=scale, eta=0.1).fit(queries)
    np.testing.assert_array_equal(model.coef_, ListNet(eta=0.1).fit(queries).coef_)
    assert model.ledger_.config.scale == "none"


def test_the_history_tells_every_step_and_falls():
    train, other = lists(7), lists(8)
    model = batch().fit(train, validation=other)
    history = model.history_
    assert history.columns == ("step", "objective", "gradient", "train", "validation")
    np.testing.assert_array_equal(history["step"], np.arange(len(history)))
    assert (np.diff(history["objective"]) <= 0).all()
    assert history["train"][-1] == model.score(train)
    assert history["validation"][-1] == model.score(other)
    assert history["objective"][0] == pytest.approx(plain(train, 0.01)(np.zeros(4))[0])
    assert model.step_ == len(history) - 1
    assert np.isnan(batch().fit(train).history_["validation"]).all()
    assert len(batch(steps=3).fit(train).history_) == 4


def test_patience_keeps_the_step_that_was_best_on_the_validation_set():
    train, other = lists(9, count=10), lists(10)
    whole = batch(alpha=1e-6, tolerance=0.0, steps=60).fit(train, validation=other).history_["validation"]
    model = batch(alpha=1e-6, tolerance=0.0, steps=60, patience=4).fit(train, validation=other)
    seen = model.history_["validation"]
    np.testing.assert_array_equal(seen, whole[: len(seen)])
    assert model.step_ == 1 + np.argmax(seen[1:])
    assert len(seen) < len(whole), "it ended early"
    assert len(seen) - 1 == model.step_ + 4
    assert model.score(other) == seen[model.step_]
    np.testing.assert_array_equal(model.coef_, batch(alpha=1e-6, tolerance=0.0, steps=model.step_).fit(train).coef_)


# ------------------------------------------------------------------------------------------- the choice of alpha


@pytest.mark.parametrize("weighted", [False, True])
def test_the_strength_is_the_best_of_a_plain_loop_over_the_validation_set(weighted):
    train, other, alphas = lists(11, weighted=weighted), lists(12, weighted=weighted), (1e-5, 1e-2, 0.3, 10.0)
    model = ListNet("nDCG@3", solver="lbfgs", alpha=alphas).fit(train, validation=other)
    alone = [ListNet("nDCG@3", solver="lbfgs", alpha=one).fit(train) for one in alphas]
    judged = [one.score(other) for one in alone]
    np.testing.assert_array_equal(model.path_["alpha"], alphas)
    np.testing.assert_array_equal(model.path_["nDCG@3"], judged)
    assert model.alpha_ == alphas[int(np.argmax(judged))]
    np.testing.assert_array_equal(model.coef_, alone[int(np.argmax(judged))].coef_)


def test_the_strength_is_the_best_of_a_plain_loop_over_folds():
    queries, alphas = lists(13, count=20), (1e-4, 0.05, 5.0)
    model = ListNet("AP", solver="lbfgs", alpha=alphas, folds=3, random_state=7).fit(queries)
    parts = np.array_split(np.random.default_rng(7).permutation(20), 3)
    judged = []
    for alpha in alphas:
        one = ListNet("AP", solver="lbfgs", alpha=alpha)
        judged.append(np.mean([one.fit(queries[np.setdiff1d(range(20), part)]).score(queries[part]) for part in parts]))
    np.testing.assert_allclose(model.path_["AP"], judged, rtol=1e-9)
    assert model.alpha_ == alphas[int(np.argmax(judged))]
    expected = ListNet("AP", solver="lbfgs", alpha=model.alpha_).fit(queries).coef_
    np.testing.assert_array_equal(model.coef_, expected)


def test_where_nothing_judges_them_the_strongest_is_taken():
    one = ListNet(solver="lbfgs", alpha=(0.1, 100.0, 10.0)).fit(lists(14)[:1])
    assert one.alpha_ == 100.0
    assert np.isnan(one.path_["nDCG@10"]).all()
    usual = ListNet(solver="lbfgs", steps=5, folds=2).fit(lists(15))
    np.testing.assert_array_equal(usual.path_["alpha"], ALPHAS)


def test_only_a_fit_over_all_lists_takes_a_validation_set():
    train = lists(16)
    assert batch().takes_validation
    assert not ListNet().takes_validation
    with pytest.raises(RankwiseError, match="does no model selection: omit the validation set"):
        ListNet().fit(train, validation=train)


# ------------------------------------------------------------------------------------------- what every ranker does

COMMON = {
    name: test
    for name, test in vars(every).items()
    if name.startswith("test_") and list(inspect.signature(test).parameters) == ["ranker"] and "online" not in name
}
BATCH = [
    ListNet("nDCG@5", solver="lbfgs", alpha=0.01, steps=20),
    ListNet("AP", solver="lbfgs", target="gains", alpha=(0.1, 1.0), steps=5, folds=2),
]


@pytest.mark.parametrize("name", COMMON)
@pytest.mark.parametrize("ranker", BATCH, ids=every.one_line)
def test_all_that_holds_for_every_ranker_holds_over_all_lists(name, ranker):
    COMMON[name](ranker)


@pytest.mark.parametrize("case", every.DEGENERATE)
def test_lists_with_little_to_learn_are_learned_from_without_fuss(case):
    every.test_lists_with_little_to_learn_are_learned_from_without_fuss(BATCH[0], case)


@pytest.mark.parametrize("scale", [1e100, 1e150, 1e300])
@pytest.mark.parametrize("how", ["auto", "none"])
def test_huge_features_work_or_are_refused_in_a_sentence(scale, how, tmp_path):
    ranker = clone(BATCH[0]).set_params(scale=how)
    every.test_huge_features_work_or_are_refused_in_a_sentence(ranker, scale, tmp_path)


def test_the_number_of_threads_changes_no_bit_of_the_whole_fit(monkeypatch):
    monkeypatch.setattr("rankwise._kernels.parallel.query_chunks.__defaults__", (16,))
    train, other = lists(17, count=60), lists(18, count=40)
    one, two = (
        ListNet(solver="lbfgs", alpha=(1e-4, 1e-2), n_jobs=jobs).fit(train, validation=other) for jobs in (1, 3)
    )
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert one.history_ == two.history_
    assert one.path_ == two.path_


# ------------------------------------------------------------------------------------------- Ctrl-C


def stop_after(monkeypatch, passes):
    """Ctrl-C in so many passes over the lists from now."""
    left = iter(range(passes))
    original = ListNet._objective

    def objective(self, queries, alpha, factor):
        function = original(self, queries, alpha, factor)

        def counted(w):
            if next(left, None) is None:
                raise KeyboardInterrupt
            return function(w)

        return counted

    monkeypatch.setattr(ListNet, "_objective", objective)


@pytest.mark.parametrize("passes", [4, 6, 9])
def test_after_ctrl_c_the_last_finished_step_stands(passes, monkeypatch):
    queries = lists(19)
    whole = batch().fit(queries)
    with monkeypatch.context() as patched:
        stop_after(patched, passes)
        model = batch()
        with pytest.raises(Interrupted, match="ListNet was stopped, and holds what it had learned by then"):
            model.fit(queries)
    assert 1 <= model.step_ < whole.step_
    short = batch(steps=model.step_).fit(queries)
    np.testing.assert_array_equal(model.coef_, short.coef_)
    assert model.history_ == short.history_
    assert model.path_ == short.path_


@pytest.mark.parametrize("passes", [0, 1, 2])
def test_after_ctrl_c_before_a_first_step_the_ranker_is_what_it_was(passes, monkeypatch):
    model = batch().fit(lists(20))
    before = model.coef_.tobytes(), model.history_
    stop_after(monkeypatch, passes)
    with pytest.raises(KeyboardInterrupt) as stopped:
        model.fit(lists(21))
    assert not isinstance(stopped.value, Interrupted)
    assert (model.coef_.tobytes(), model.history_) == before


def test_after_ctrl_c_among_several_strengths_the_best_so_far_is_kept(monkeypatch):
    train, other, alphas = lists(22), lists(23), (10.0, 1e-3, 1e-5)
    alone = [batch(alpha=one).fit(train) for one in alphas[:2]]
    with monkeypatch.context() as patched:
        counts = []
        original = ListNet._objective
        patched.setattr(ListNet, "_objective", lambda *of: counted(original(*of), counts))
        batch(alpha=alphas[:2]).fit(train, validation=other)
    stop_after(monkeypatch, len(counts) + 1)  # in the first step of the third
    model = batch(alpha=alphas)
    with pytest.raises(Interrupted):
        model.fit(train, validation=other)
    best = max(alone, key=lambda one: one.score(other))
    assert model.alpha_ == best.alpha_
    np.testing.assert_array_equal(model.coef_, best.coef_)
    np.testing.assert_array_equal(model.path_["nDCG@10"][:2], [one.score(other) for one in alone])


def counted(function, counts):
    return lambda w: (counts.append(1), function(w))[1]


def test_ctrl_c_while_folds_choose_leaves_nothing(monkeypatch):
    stop_after(monkeypatch, 30)
    model = batch(alpha=(1e-3, 1.0))
    with pytest.raises(KeyboardInterrupt):
        model.fit(lists(24))
    assert not hasattr(model, "coef_")


# ------------------------------------------------------------------------------------------- rounds and files


def test_streams_are_for_rounds():
    queries = lists(25)
    for model in (batch(), batch().fit(queries)):
        with pytest.raises(RankwiseError, match="learns from all queries at once; streams require solver='sgd'"):
            model.partial_fit(queries[3])
    with pytest.raises(AttributeError, match="has ledger_ only after rounds of solver='sgd'"):
        _ = batch().fit(queries).ledger_
    with pytest.raises(AttributeError, match="'ListNet' object has no attribute 'nothing'"):
        _ = batch().nothing


def test_a_second_fit_leaves_nothing_of_another_solver():
    queries = lists(26)
    model = ListNet().fit(queries)
    model.set_params(solver="lbfgs", alpha=0.1).fit(queries)
    assert not hasattr(model, "ledger_")
    model.set_params(solver="sgd").fit(queries)
    assert not any(hasattr(model, name) for name in ("history_", "path_", "alpha_", "step_"))
    np.testing.assert_array_equal(model.coef_, ListNet().fit(queries).coef_)
    begun = batch().fit(queries).set_params(solver="sgd").partial_fit(queries)
    np.testing.assert_array_equal(begun.coef_, model.coef_)


def test_a_saved_model_has_the_same_bits_history_and_path(tmp_path):
    model = ListNet("AP", solver="lbfgs", alpha=(1e-3, 1.0), patience=3).fit(lists(27), validation=lists(28))
    first = saved(model, tmp_path / "one.rankwise")
    copy = rw.load(tmp_path / "one.rankwise")
    np.testing.assert_array_equal(copy.coef_, model.coef_)
    assert copy.history_ == model.history_
    assert copy.history_.title == model.history_.title
    assert copy.path_ == model.path_
    assert (copy.alpha_, copy.step_) == (model.alpha_, model.step_)
    assert saved(copy, tmp_path / "two.rankwise") == first
    for place in np.linspace(0, len(first) - 1, 40).astype(int):
        (tmp_path / "one.rankwise").write_bytes(first[:place])
        with pytest.raises(FileFormatError):
            rw.load(tmp_path / "one.rankwise")


@pytest.mark.parametrize(
    "change",
    [
        lambda facts, _: facts["learned"].update(alpha="strong"),
        lambda facts, _: facts["learned"].update(step=10_000),
        lambda facts, _: facts["learned"].update(step=None),
        lambda facts, _: facts["learned"].pop("step"),
        lambda facts, _: facts["learned"].pop("alpha"),
        lambda _, header: header.pop("history.train"),
        lambda _, header: header.pop("judged"),
    ],
)
def test_what_no_fit_would_have_written_is_refused(change, tmp_path):
    path = tmp_path / "model.rankwise"
    whole = saved(batch().fit(lists(29)), path)
    path.write_bytes(rewritten(whole, change))
    with pytest.raises(FileFormatError) as error:
        rw.load(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"solver": "newton"}, "'solver' parameter of"),
        ({"alpha": -1.0}, "'alpha' parameter of"),
        ({"steps": 0}, "'steps' parameter of"),
        ({"steps": True}, "'steps' parameter of"),
        ({"tolerance": -1e-3}, "'tolerance' parameter of"),
        ({"tolerance": "small"}, "'tolerance' parameter of"),
        ({"patience": 5}, "patience counts steps on a validation set: pass validation= to fit, or"),
        ({"scale": "radius"}, "'scale' parameter of"),
        ({"target": "ranks"}, "'target' parameter of"),
        ({"alpha": (1.0, 2.0), "folds": 1}, r"'folds' parameter of ListNet must be an int in \[2, inf\). Got 1"),
    ],
)
def test_what_it_cannot_mean_is_refused_in_a_sentence(wrong, sentence):
    with pytest.raises(RankwiseError, match=sentence) as error:
        batch(**wrong).fit(lists())
    assert "\n" not in str(error.value)


def test_a_patience_of_nothing_is_refused():
    with pytest.raises(RankwiseError, match="'patience' parameter of"):
        batch(patience=0).fit(lists(), validation=lists(1))
